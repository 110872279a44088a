//! Every reader of the program, with inputs that it accepts.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::path::Path;

use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, Family, Kind};
use ictd::transformer::{Parameters, TransformerConfig};
use ictd_lab::figure::{Anchor, Label, Scene, to_png, to_svg};
use ictd_lab::files::{AnyTask, TaskFile, Tensors, read_params, read_task, to_json_17};
use ictd_lab::report::Report as _;
use ictd_lab::studies::pretrain::{self, Earlier, Ending, RunOptions, Settings};
use ictd_lab::studies::readings::{self, Search};
use ictd_lab::studies::reproduce;
use ictd_lab::studies::{Paper, Plan};
use ictd_lab::{LabError, Progress};

use super::fuzz::{Answer, Reader, scratch, words};

/// The readers, each with a directory of its own below `scratch`.
pub fn all(scratch: &Path) -> Vec<Reader> {
    let below = |name: &str| {
        let path = scratch.join(name);
        fs::create_dir_all(&path).expect("the scratch directory can be written to");
        path
    };
    let mut readers = super::context_readers::all();
    readers.extend([
        params(),
        task(),
        safetensors(),
        header(),
        config(),
        overrides(),
        checkpoint(&below("checkpoint-run")),
        journal(&below("journal-run")),
        super::sweep_readers::plan(),
        super::sweep_readers::journal(&below("sweep-run")),
        cache(&below("cache-run")),
        label(),
    ]);
    readers.extend(super::log_readers::all());
    readers
}

pub fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Runs a Transformer on a context: values are numbers, or it says why there are none.
pub fn evaluate(parameters: Parameters, context: &Context, number: usize) -> Answer {
    let kernel = KernelName::ALL[number % KernelName::ALL.len()];
    let run = || -> Result<(), LabError> {
        let mut config = TransformerConfig::theta_star(Attention::new(kernel.at(1.0)?, 0.0)?, 2, 0.9);
        if let Parameters::PerLayer(layers) = &parameters {
            config.num_layers = layers.len();
        }
        config.parameters = parameters;
        let values = config.check()?.values(context)?;
        for layer in 0..=values.num_layers() {
            assert!(values.values(layer).iter().all(|v| v.is_finite()), "a value that is no number");
        }
        Ok(())
    };
    run().into()
}

fn params() -> Reader {
    let (v, a) = ("[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,1,1,-1]]", "[[1,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]");
    let pair = format!(r#"{{"V": {v}, "A": {a}}}"#);
    Reader {
        name: "params",
        refuses: true,
        valid: bytes(&[&pair, &format!(r#"{{"layers": [{pair}, {pair}]}}"#), r#"{"layers": []}"#]),
        words: words!["\"V\"", "\"A\"", "\"layers\"", "[0,0,0,0]", "[]"],
        read: Box::new(|path, input| run_params(path, input.len())),
    }
}

/// Tasks of both kinds, and one with everything that follows; what is accepted is written and read again.
fn task() -> Reader {
    let coin = r#"{"gamma": 0.5, "transitions": [[0.5, 0.5], [0.5, 0.5]], "rewards": [1, 0], "features": [[1, 0], [0, 1]]}"#;
    let complete = coin.replace(
        "\"rewards\"",
        r#""initial_distribution": [0.5, 0.5], "values": [1.5, 0.5], "stationary_distribution": [0.5, 0.5],
           "eigenvalues": [[1, 0], [0, 0]], "reversibilisation_spectrum": [1, 0], "rewards""#,
    );
    let written = |task: &AnyTask| -> String {
        let file = TaskFile::of(task).expect("a task has a file");
        to_json_17(&file).expect("a file has JSON")
    };
    let cart = CartPole::generate(&Family::of(Kind::Cartpole), &mut Stream::new(0, Purpose::Task, 0))
        .expect("a cart-pole");
    Reader {
        name: "task",
        refuses: true,
        valid: bytes(&[coin, &complete, &written(&AnyTask::CartPole(cart))]),
        words: words![
            "\"gamma\"",
            "\"transitions\"",
            "\"rewards\"",
            "\"features\"",
            "\"values\"",
            "\"eigenvalues\"",
            "\"cartpole\"",
            "null",
            "[0.5, 0.5]",
            "[[1]]",
        ],
        read: Box::new(move |path, _| {
            let read = read_task(path);
            if let Ok(found) = &read {
                let again = path.with_extension("again");
                fs::write(&again, written(&found.task)).expect("the scratch directory can be written to");
                let again = read_task(&again).expect("what was written is read");
                assert_eq!(again.task, found.task, "what was written is another task");
            }
            read.into()
        }),
    }
}

/// Reads parameters and runs them on a context that they may be made for.
fn run_params(path: &Path, number: usize) -> Answer {
    let context = Context::builder().episode(&[[1.0], [0.5], [1.0]], &[1.0, 2.0], End::Truncated).build();
    match (read_params(path), context) {
        (Ok(model), Ok(context)) => evaluate(model.parameters, &context, number),
        (read, _) => read.into(),
    }
}

/// Tensors as `--params` reads them.
fn tensors(names: &[&str]) -> Tensors {
    let mut tensors = Tensors::default();
    for name in names {
        tensors.insert(name, &[4, 4], (0..16).map(|k| 0.1 * k as f32).collect());
    }
    tensors.metadata.insert("format".into(), "ictd.ckpt".into());
    tensors
}

fn read_tensors(input: &[u8], path: &Path) -> Answer {
    let file = path.with_extension("safetensors");
    fs::write(&file, input).expect("the scratch directory can be written to");
    let answer = run_params(&file, input.len());
    if let (Answer::Accepted, Ok(tensors)) = (&answer, Tensors::from_bytes(input)) {
        let is_matrix = |name: &str| tensors.tensors.get(name).is_some_and(|(shape, _)| shape.len() == 2);
        assert!(is_matrix("V") && is_matrix("A") || is_matrix("layers.0.V"), "parameters of another shape");
    }
    answer
}

/// A whole file, its binary part too.
fn safetensors() -> Reader {
    Reader {
        name: "safetensors",
        refuses: true,
        valid: vec![
            tensors(&["V", "A"]).to_bytes(),
            tensors(&["layers.0.V", "layers.0.A", "layers.1.V", "layers.1.A"]).to_bytes(),
            Tensors::default().to_bytes(),
        ],
        words: words!["\"dtype\"", "\"F32\"", "\"shape\"", "\"data_offsets\"", "\"V\"", "[4,4]", "[0,64]"],
        read: Box::new(|path, input| read_tensors(input, path)),
    }
}

/// The header and its length; what an input has after a line break that no JSON has stays as it is.
fn split(file: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let length = u64::from_le_bytes(*file.first_chunk().expect("a length")) as usize;
    let (header, data) = file[8..].split_at(length);
    (header.to_vec(), data.to_vec())
}

fn joined(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header, data].concat()
}

/// The header alone is damaged, its length fits.
fn header() -> Reader {
    let (header, data) = split(&tensors(&["V", "A"]).to_bytes());
    Reader {
        name: "safetensors-header",
        refuses: true,
        valid: vec![header],
        words: words![
            "\"dtype\"",
            "\"F32\"",
            "\"shape\"",
            "\"V\"",
            "4,4",
            "2,4,2",
            "2,8",
            "[16]",
            "[0,64]",
            "[64,0]"
        ],
        read: Box::new(move |path, input| read_tensors(&joined(input, &data), path)),
    }
}

fn resolved(settings: Result<Settings, LabError>) -> Answer {
    if let Ok(settings) = &settings {
        let text = settings.to_toml().expect("a configuration can be written");
        let dir = scratch().expect("a temporary directory");
        let path = dir.path().join("again.toml");
        fs::write(&path, text).expect("the temporary directory can be written to");
        let again = Settings::file(&path, &[]).expect("what was written is read");
        assert_eq!(again.config, settings.config, "what was written is another configuration");
    }
    settings.into()
}

fn config() -> Reader {
    let preset = Settings::preset("mask-relaxed", &[]).and_then(|s| s.to_toml()).expect("a preset");
    Reader {
        name: "config",
        refuses: true,
        valid: bytes(&[
            &preset,
            "epochs = 7\nquery = \"skip\"\n[optimizer]\nlr = 1\n",
            "query = \"source\"\nsource = { columns = \"n+1\", reward = \"hidden\" } # a comment\nn = 0x10\n",
        ]),
        words: words![
            "epochs",
            "optimizer",
            "[optimizer]",
            "lr",
            "\"adam\"",
            "[[rho]]",
            "rho.start",
            "'''",
            "\"\"\"",
            "1979-05-27",
            "\"a\\nb\" = 1\n",
            "= [\n",
            "{ }",
            "0x7fffffffffffffff",
            "1_000",
        ],
        read: Box::new(|path, _| resolved(Settings::file(path, &[]))),
    }
}

fn overrides() -> Reader {
    Reader {
        name: "set",
        refuses: true,
        valid: bytes(&[
            "query=skip",
            "optimizer.lr=3e-4\0n=20",
            "rho.end=0.5\0mask=\"relaxed\"",
            "init.gain=1",
        ]),
        words: words![
            "epochs",
            "batch",
            "features",
            "states",
            "gamma",
            "tau",
            "source.reward",
            "target",
            ".",
            "=",
            "\0",
            "[1,2]",
            "{a=1}",
            "1979-05-27",
            "'x",
            "\"",
            "#",
        ],
        read: Box::new(|_, input| {
            let text = String::from_utf8_lossy(input);
            let texts: Vec<String> = text.split('\0').map(str::to_owned).collect();
            resolved(Settings::preset("paper", &texts))
        }),
    }
}

/// A run directory whose newest checkpoint is damaged is taken up: trained to its end, measured and drawn, or refused.
fn checkpoint(dir: &Path) -> Reader {
    let small = ["epochs=4", "batches=2", "batch=2", "n=2", "states=4", "features=1", "layers=1"];
    let small: Vec<String> = small.map(str::to_owned).to_vec();
    let settings = Settings::preset("paper", &small).expect("a small setting");
    let out = dir.join("runs");
    let train = move |earlier: Earlier| -> Result<(), LabError> {
        let options = RunOptions { earlier, checkpoint_every: None, notice: |_| {} };
        let ending = pretrain::run(&settings, &[0], &out, &options, &Progress::default())?;
        let Ending::Done { result, .. } = ending else { panic!("nobody stopped it") };
        result.figures().iter().for_each(|(_, figure)| drop(to_svg(figure)));
        Ok(())
    };
    train(Earlier::Nothing).expect("a small run");
    let hash = fs::read_dir(dir.join("runs/paper")).ok().and_then(|mut d| d.next()).expect("a run");
    let seed = hash.expect("a run").path().join("seed_0000");
    let newest = seed.join("ckpt/step_00000008.safetensors");
    // Of format 2, whose content is not hidden behind a digest.
    let mut whole = Tensors::from_bytes(&fs::read(&newest).expect("a checkpoint")).expect("a checkpoint");
    whole.metadata.insert("schema_version".into(), "2".into());
    let (header, data) = split(&whole.to_bytes());
    // Damage that a single change would rarely do: histories of other lengths, a best step that was never reached.
    let with = |changes: &[(&str, serde_json::Value)]| {
        let mut entries: serde_json::Value = serde_json::from_slice(&header).expect("a header");
        for (pointer, value) in changes {
            *entries.pointer_mut(pointer).expect("an entry") = value.clone();
        }
        entries.to_string().into_bytes()
    };
    let none = serde_json::json!({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]});
    let some = serde_json::json!({"dtype": "F32", "shape": [3], "data_offsets": [0, 12]});
    let mut valid = vec![
        header.clone(),
        with(&[
            ("/__metadata__/best_step", "9".into()),
            ("/__metadata__/best_joint_bits", "3ff0000000000000".into()),
        ]),
        with(&[("/__metadata__/epoch", "2".into())]),
        with(&[("/__metadata__/best_joint_bits", "7ff8000000000000".into())]),
    ];
    for name in ["td_loss", "v_em", "diag_mean", "eval_diag_mean", "eval_msve"] {
        valid.extend([&none, &some].map(|entry| with(&[(&format!("/history.{name}"), entry.clone())])));
    }
    Reader {
        name: "checkpoint",
        refuses: true,
        valid,
        words: words![
            "\"epoch\"",
            "\"8\"",
            "\"3\"",
            "3ff0000000000000",
            "7ff8000000000000",
            "\"18446744073709551615\"",
            "\"best_step\"",
            "\"7ff8000000000000\"",
            "\"history.td_loss\"",
            "\"history.eval_msve\"",
            "\"shape\"",
            "[8]",
            "[0]",
            "[4,4]",
            "\"best.V\"",
            "[0,4]",
            "[0,32]",
            "\"seed\"",
        ],
        read: Box::new(move |_, input| {
            let _ = fs::remove_file(seed.join("result.json"));
            let folder = newest.parent().expect("a folder");
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let _ = fs::remove_file(entry.path());
            }
            fs::write(&newest, joined(input, &data)).expect("the run can be written to");
            train(Earlier::Checkpoints).into()
        }),
    }
}

/// The journal of a search, one entry damaged: it is taken up or trained again, and the picture is drawn.
fn journal(dir: &Path) -> Reader {
    let changes = ["epochs=1", "batches=1", "batch=1", "n=1", "states=3", "features=1", "layers=1"];
    let changes: Vec<String> = changes.map(str::to_owned).to_vec();
    let search = Search { seeds: "0..1".parse().unwrap(), changes, fresh: false };
    let out = dir.to_owned();
    let run = move || -> Result<(), LabError> {
        let found = readings::run(&search, &out, &Progress::default(), |_| {})?;
        to_svg(&found.figure());
        found.text(80);
        Ok(())
    };
    run().expect("a small search");
    let entry = dir.join("journal/paper-masked-nplus1-hidden-shifted.json");
    Reader {
        name: "journal",
        refuses: false,
        valid: vec![fs::read(&entry).expect("an entry")],
        words: words!["\"key\"", "\"counts\"", "\"fig3a\"", "\"fig6-full\"", "\"seeds\"", "\"td\""],
        read: Box::new(move |_, input| {
            fs::write(&entry, input).expect("the journal can be written to");
            run().into()
        }),
    }
}

/// The cached result of a study, damaged: it is taken up or computed again, and the report is written.
fn cache(dir: &Path) -> Reader {
    let plan = Plan { seed: 0, seeds: "1".parse().ok(), quick: true };
    let out = dir.join("out");
    let run = move || -> Result<(), LabError> {
        let studies = reproduce::select(Paper::Main, &["fig4".into()])?;
        let found = reproduce::run(&studies, &plan, &out, false, |_, _| Ok(()))?;
        for stability in found.claims.iter().filter_map(|claim| claim.stability) {
            stability.is_doubtful();
        }
        Ok(())
    };
    run().expect("a small reproduction");
    let entry = dir.join("out/cache/fig4.json");
    Reader {
        name: "cache",
        refuses: false,
        valid: vec![fs::read(&entry).expect("a cached result")],
        words: words![
            "\"key\"",
            "\"claims\"",
            "\"files\"",
            "\"verdict\"",
            "\"partly\"",
            "\"..\"",
            "\"/\"",
            "\"fig4\"",
            "\"stability\"",
            "{\"seeds\": 1, \"same\": 2}",
            "{\"seeds\": 20, \"same\": 3}",
            "\"past-the-paper\"",
            "\"<script>\"",
        ],
        read: Box::new(move |_, input| {
            fs::write(&entry, input).expect("the cache can be written to");
            run().into()
        }),
    }
}

/// Labels of figures are written by the program; titles come from the user.
fn label() -> Reader {
    Reader {
        name: "label",
        refuses: false,
        valid: bytes(&["error *v*_{l} = 10^{−5}", "**n** = 5, Z_{*l*+1}", "plain"]),
        words: words!["*", "**", "_{", "^{", "}", "&", "<", ">", "\u{302}", "\u{1f600}"],
        read: Box::new(|_, input| {
            let text = String::from_utf8_lossy(input);
            let label = Label::parse(&text);
            assert!(label.width(10.0).is_finite());
            assert!(!label.outlines(10.0, Anchor::Middle).is_empty() || label.width(10.0) >= 0.0);
            let mut scene = Scene::new(100.0, 20.0, &text);
            scene.text(50.0, 10.0, &text, 10.0, Anchor::Middle, ictd_lab::figure::style::INK);
            let svg = to_svg(&scene);
            // What the user wrote is no markup of the file.
            assert!(!svg.contains("<script"), "{svg}");
            // A picture per input would be slow.
            assert!(input.len() % 64 != 0 || to_png(&scene).is_some());
            Answer::Accepted
        }),
    }
}
