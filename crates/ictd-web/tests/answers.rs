//! Whatever a page asks, it gets an answer: a value, or an error of one line.

use ictd_web::Engine;
use serde_json::{Value, json};

fn ask(engine: &mut Engine, request: &Value, payload: &[u8]) -> Result<Value, String> {
    answered(&engine.answer(request.to_string().as_bytes(), payload))
}

/// The value of an answer, or its error.
fn answered(bytes: &[u8]) -> Result<Value, String> {
    let answer: Value = serde_json::from_slice(bytes).unwrap();
    let fields = answer.as_object().unwrap();
    assert_eq!(fields.len(), 1, "{answer}");
    match fields.get("error") {
        Some(error) => {
            let line = error.as_str().unwrap();
            assert!(!line.is_empty() && !line.contains('\n') && line.len() < 5000, "{line}");
            Err(line.to_owned())
        }
        None => Ok(fields["value"].clone()),
    }
}

fn context() -> Value {
    json!({"features": [[0.3, -0.2], [0.9, 0.1], [-0.5, 0.7], [0.3, -0.2]], "rewards": [1.0, -0.5, 0.25]})
}

const LOG: &[u8] =
    b"episode,x,y,reward\n1,0.5,1,0\n1,0.25,2,1\n1,0.5,1,0.5\n1,0.25,2,\n2,0.5,1,1\n2,0.25,2,\n";

#[test]
fn every_call_gives_its_value() {
    let engine = &mut Engine::default();
    let process =
        ask(engine, &json!({"call": "process", "kind": "grid", "states": 6, "gamma": 0.9}), b"").unwrap();
    assert_eq!(process["P"].as_array().unwrap().len(), 6);
    let exact = ask(engine, &json!({"call": "values", "process": process}), b"").unwrap();
    assert_eq!(exact["values"], process["values"]);
    let path = ask(engine, &json!({"call": "sample", "process": process, "n": 12, "seed": 1}), b"").unwrap();
    assert_eq!(path["states"].as_array().unwrap().len(), 13);

    let options = json!({"layers": 4, "gamma": 0.8, "step_size": [1, 0.5, 0.5, 0.25]});
    let about = |call: &str| json!({"call": call, "context": path["context"], "options": options});
    let forward = ask(engine, &about("forward"), b"").unwrap();
    let layers = ask(engine, &about("layers"), b"").unwrap();
    for (l, row) in layers["attention"].as_array().unwrap().iter().enumerate() {
        for (j, value) in row.as_array().unwrap().iter().enumerate() {
            let other = forward["values"][l][j].as_f64().unwrap();
            assert!((value.as_f64().unwrap() - other).abs() < 1e-13, "layer {l}, column {j}");
        }
    }
    let options = json!({"layers": 4, "unit_norm": true});
    let about = |call: &str| json!({"call": call, "context": path["context"], "options": options});
    let certified = ask(engine, &about("certify"), b"").unwrap();
    let spectrum = ask(engine, &about("spectrum"), b"").unwrap();
    assert_eq!(spectrum["norm_inf"], certified["contraction"]["norm_inf"]);
    assert_eq!(spectrum["error"].as_array().unwrap().len(), 5);

    let overrides = json!({"epochs": 3});
    let result = ask(engine, &json!({"call": "train", "overrides": overrides, "seed": 1}), b"").unwrap();
    assert_eq!(result["seeds"][0]["seed"], 1);
    let opened = ask(engine, &json!({"call": "train_open", "overrides": overrides, "seed": 1}), b"").unwrap();
    let id = &opened["id"];
    assert_eq!((opened["epochs"].as_u64(), opened["settings"]["epochs"].as_u64()), (Some(3), Some(3)));
    let standing = ask(engine, &json!({"call": "train_advance", "id": id, "epochs": 9}), b"").unwrap();
    assert_eq!(standing["done"], true);
    let model = ask(engine, &json!({"call": "train_params", "id": id}), b"").unwrap();
    let last = ask(engine, &json!({"call": "train_result", "id": id}), b"").unwrap();
    assert_eq!(last, result["seeds"][0]);
    // It is forgotten.
    ask(engine, &json!({"call": "train_close", "id": id}), b"").unwrap_err();

    let file = model["params"].to_string();
    let read = ask(engine, &json!({"call": "checkpoint", "name": "params.json"}), file.as_bytes()).unwrap();
    assert_eq!((&read["params"], &read["options"]), (&model["params"], &json!({})));
    let named = |call: &str| json!({"call": call, "name": "log.csv", "options": {"gamma": 0.9}});
    assert_eq!(ask(engine, &named("understand"), LOG).unwrap()["rows"], 6);
    assert!(ask(engine, &named("evaluate"), LOG).unwrap()["judgement"].is_string());
    let window = json!({"call": "log_context", "name": "log.csv", "from": 1, "transitions": 3});
    let window = ask(engine, &window, LOG).unwrap();
    ask(engine, &json!({"call": "forward", "context": window["context"]}), b"").unwrap();
}

#[test]
fn a_bad_request_gets_one_line() {
    let engine = &mut Engine::default();
    for request in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b"{\"call\": 3}",
        b"{\"call\": \"no\\nsuch\"}",
        b"{\"call\": \"about\", \"x\": NaN}",
        b"{\"call\": \"about\", \"x\": 1e999}",
        &[b"{\"call\":".repeat(1000), b"1".to_vec(), b"}".repeat(1000)].concat(),
    ] {
        answered(&engine.answer(request, b"")).unwrap_err();
    }
    let context = context();
    let ring = json!({"call": "process", "kind": "ring", "states": 4, "gamma": 0.5});
    let process = ask(engine, &ring, b"").unwrap();
    for request in [
        json!({"call": "about", "more": 1}),
        json!({"call": "forward"}),
        json!({"call": "forward", "context": 3}),
        json!({"call": "forward", "context": {"features": [[1]], "rewards": []}}),
        json!({"call": "forward", "context": {"features": [[null], [1]], "rewards": [1]}}),
        json!({"call": "forward", "context": {"features": [[1, 2], [1]], "rewards": [1]}}),
        json!({"call": "forward", "context": context, "options": {"layres": 3}}),
        json!({"call": "forward", "context": context, "options": {"layers": -1}}),
        json!({"call": "forward", "context": context, "options": {"layers": 4_000_000_000u64}}),
        json!({"call": "forward", "context": context, "options": {"gamma": 1.5}}),
        json!({"call": "forward", "context": context, "options": {"kernel": "cubic"}}),
        json!({"call": "forward", "context": context, "options": {"step_size": "1"}}),
        json!({"call": "forward", "context": context, "options": {"step_size": []}}),
        json!({"call": "forward", "context": context, "options": {"params": {"V": [[1]], "A": [[1]]}}}),
        json!({"call": "forward", "context": context, "options": {"params": {"V": [[1]]}}}),
        json!({"call": "forward", "context": context, "options": {"params": 3}}),
        json!({"call": "layers", "context": context, "options": {"layers": 4_000_000_000u64}}),
        json!({"call": "layers", "context": context, "options": {"temperature": 0}}),
        json!({"call": "certify", "context": context, "options": {"step_size": 0}}),
        json!({"call": "certify", "context": context, "options": {"tolerance": -1}}),
        json!({"call": "spectrum", "context": context, "options": {"layers": 1_000_000}}),
        json!({"call": "spectrum", "context": context, "options": {"gamma": 1}}),
        json!({"call": "process", "kind": "torus", "states": 4, "gamma": 0.9}),
        json!({"call": "process", "kind": "ring", "states": 4_000_000, "gamma": 0.9}),
        json!({"call": "process", "kind": "ring", "states": 4, "gamma": 1}),
        json!({"call": "sample", "process": process, "n": 1e9}),
        json!({"call": "sample", "process": process, "n": 1_000_000_000}),
        json!({"call": "sample", "process": process, "n": 5, "seed": -1}),
        json!({"call": "values", "process": {"P": [], "rewards": [], "features": [], "gamma": 0.9}}),
        json!({"call": "train", "overrides": {"layers": 1_000_000_000}}),
        json!({"call": "train", "overrides": {"n": 4_000_000_000u64, "batch": 4_000_000_000u64}}),
        json!({"call": "train_advance", "id": 0, "epochs": 1}),
        json!({"call": "evaluate", "name": "log.csv"}),
        json!({"call": "evaluate", "name": "log.csv", "options": {"gamma": 0.9, "estimator": "best"}}),
        json!({"call": "log_context", "name": "log.csv", "transitions": 1_000_000}),
        json!({"call": "checkpoint", "name": "a.safetensors"}),
    ] {
        let error = ask(engine, &request, LOG).unwrap_err();
        assert!(error.len() < 1100, "{request}: {error}");
    }
}
