//! Looking at a sweep: tables, pictures and the page of a small one, finished and not.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ictd::statistics::wilson;
use ictd_lab::files::OutputDir;
use ictd_lab::report::Report;
use ictd_lab::sweep::show::{Asked, Overview, PAGE, Runs, tensorboard, watch};
use ictd_lab::sweep::{Plan, Request};
use ictd_lab::{LabError, Progress};
use serde_json::Value;

const PLAN: &str = "seeds = \"0..6\"\nmetrics = \"every 10\"\n[set]\nepochs = 60\n[grid]\nkernel = [\"softmax\", \"linear\"]\n\"init.gain\" = [0.03, 0.3, 3.0]\n";

/// A sweep of which the first so many runs are done.
fn swept(dir: &Path, plan: &str, runs: usize) -> PathBuf {
    let (file, out) = (dir.join("small.toml"), dir.join("out"));
    fs::write(&file, plan).unwrap();
    let request = Request { plan: Plan::read(&file).unwrap(), out: out.clone(), fresh: false, extend: false };
    let opened = request.open(true).unwrap();
    let all = opened.sweep.num_runs();
    if runs > 0 {
        opened.work(&(0..runs.min(all)), &Progress::default()).unwrap();
    }
    if runs >= all {
        opened.finish(&Progress::default(), |_| {}).unwrap();
    }
    out
}

fn looked_at(out: &Path, asked: &Asked) -> Result<Overview, LabError> {
    let progress = Progress::default();
    Overview::new(Runs::read(out, &progress)?, asked, &progress)
}

fn asked(metric: &str, x: &str, y: &str) -> Asked {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Asked { metric: given(metric), statistic: None, x: given(x), y: given(y) }
}

/// The data of a page.
fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// From the file of the table: by setting the branches, and a metric of those that have it.
fn by_hand(out: &Path, metric: &str) -> Vec<(Vec<String>, Vec<f64>)> {
    let mut reader = csv::Reader::from_path(out.join("results.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    let mut found: BTreeMap<usize, (Vec<String>, Vec<f64>)> = BTreeMap::new();
    for (k, row) in reader.records().enumerate() {
        let row = row.unwrap();
        let (branches, values) = found.entry(k / 6).or_default();
        branches.push(row[column("branch")].to_owned());
        values.extend(row[column(metric)].parse::<f64>().ok());
    }
    found.into_values().collect()
}

#[test]
fn tables_pictures_and_page_are_those_of_the_runs() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(dir.path(), PLAN, usize::MAX);
    let overview = looked_at(&out, &asked("msve", "", "")).unwrap();
    let json = serde_json::to_value(&overview).unwrap();
    let hand = by_hand(&out, "msve");
    assert_eq!(hand.len(), 6);
    for (setting, (branches, values)) in json["settings"].as_array().unwrap().iter().zip(&hand) {
        let count = |name: &str| branches.iter().filter(|branch| *branch == name).count() as u64;
        for name in ["td", "mirror", "none", "diverged"] {
            assert_eq!(setting[name], count(name), "{name}");
        }
        let (low, high) = wilson(count("td"), 6);
        assert_eq!((&setting["td_low"], &setting["td_high"]), (&low.into(), &high.into()));
        if values.len() == 6 {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            // Of six numbers one is cut off at either end.
            let iqm = sorted[1..5].iter().sum::<f64>() / 4.0;
            assert!((setting["iqm"].as_f64().unwrap() / iqm - 1.0).abs() < 1e-12);
            assert!(
                setting["iqm_low"].as_f64().unwrap() <= iqm && iqm <= setting["iqm_high"].as_f64().unwrap()
            );
            assert!(
                (setting["median"].as_f64().unwrap() / (0.5 * (sorted[2] + sorted[3])) - 1.0).abs() < 1e-12
            );
        }
    }
    assert_eq!(
        (&json["y"], &json["x"], &json["curve"]),
        (&"kernel".into(), &"init.gain".into(), &"eval_msve".into())
    );
    assert_eq!(json["cells"].as_array().unwrap().len(), 6);
    assert!(!json["curves"][0]["steps"].as_array().unwrap().is_empty());

    let shown = OutputDir::create(&dir.path().join("shown")).unwrap();
    overview.write(&shown).unwrap();
    let mut names = shown.take_written().files;
    names.sort();
    let pictures =
        ["curves", "heatmap"].map(|name| ["pdf", "png", "svg"].map(|ending| format!("{name}.{ending}")));
    let mut expected = [pictures.concat(), vec![PAGE.into(), "summary.csv".into()]].concat();
    expected.sort();
    assert_eq!(names, expected);
    // Other axes: the map goes, as it shows something else.
    looked_at(&out, &asked("", "kernel", "none")).unwrap().write(&shown).unwrap();
    assert!(shown.path().join("along.svg").is_file() && !shown.path().join("heatmap.svg").exists());
}

#[test]
fn the_page_has_every_run_and_needs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(dir.path(), PLAN, usize::MAX);
    let overview = looked_at(&out, &Asked::default()).unwrap();
    let page = overview.page().unwrap();
    for outside in ["http://", "https://", "//cdn", "@import", "src=\"", "{{"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(
        page,
        looked_at(&out, &Asked::default()).unwrap().page().unwrap(),
        "the same bytes every time"
    );
    let data = embedded(&page);
    let ends = data["runs"]["ends"].as_str().unwrap();
    let names = data["ends"].as_array().unwrap();
    let metric = data["view"]["metric"].as_u64().unwrap() as usize;
    let values = data["runs"]["values"][metric].as_array().unwrap();
    for (setting, (branches, numbers)) in
        by_hand(&out, data["metrics"][metric].as_str().unwrap()).iter().enumerate()
    {
        for (k, branch) in branches.iter().enumerate() {
            let end = ends.as_bytes()[6 * setting + k] - b'0';
            assert_eq!(names[usize::from(end)], branch.as_str());
        }
        let known = values[6 * setting..6 * (setting + 1)].iter().filter_map(Value::as_f64);
        assert!(known.zip(numbers).all(|(a, b)| (a / b - 1.0).abs() < 1e-6));
    }
    let command = data["command"].as_str().unwrap().to_owned() + data["changes"][1].as_str().unwrap();
    assert_eq!(
        command,
        "ictd pretrain --preset paper --set epochs=60 --set kernel=softmax --set init.gain=0.3"
    );
    agrees(&page, &overview);
}

/// What the page computes of its runs is what the program says of them.
fn agrees(page: &str, overview: &Overview) {
    let Ok(found) = Command::new("node").arg("--version").output() else { return };
    assert!(found.status.success());
    let script = include_str!("../src/sweep/show/page/statistics.js");
    let check = r#"
const { page, overview } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const near = (a, b, what) => { if (!(Math.abs(a - b) <= 2e-6 * Math.max(Math.abs(a), Math.abs(b)))) throw new Error(`${what}: ${a} is not ${b}`); };
overview.settings.forEach((setting, k) => {
  const counts = page.counts[k];
  const [low, high] = wilson(counts[0], setting.runs);
  near(low, setting.td_low, "low"); near(high, setting.td_high, "high");
  page.metrics.forEach((name, metric) => {
    const values = page.runs.values[metric].slice(6 * k, 6 * k + 6).filter((x) => x !== null).sort((a, b) => a - b);
    ["iqm", "median", "mean"].forEach((statistic, j) => {
      if (values.length) near(centre(statistic, values), page.estimates[metric][k][j][0], `${name} ${statistic}`);
    });
    const [value, from, to] = page.estimates[metric][k][0];
    const drawn = resampled("iqm", values);
    // Both are intervals of the same numbers, from other resamples.
    if (drawn && to > from && !(drawn[0] <= to && drawn[1] >= from)) throw new Error(`${name}: ${drawn} and ${from} to ${to}`);
    if (name === overview.metric && setting.iqm !== null) near(value, setting.iqm, "iqm");
  });
});
"#;
    let both = serde_json::json!({ "page": embedded(page), "overview": overview });
    let dir = tempfile::tempdir().unwrap();
    let (program, input) = (dir.path().join("check.cjs"), dir.path().join("input.json"));
    fs::write(&program, format!("{script}\n{check}")).unwrap();
    fs::write(&input, both.to_string()).unwrap();
    let ran = Command::new("node").arg(&program).stdin(fs::File::open(&input).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Names of cases may have anything in them, and shells read what is printed.
#[test]
fn words_of_plans_are_safe_in_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "seeds = [3]\nmetrics = \"none\"\n[set]\nepochs = 2\n[[case]]\ntitle = \"</script><b>\\\"*n* = 5\"\nset = { n = 5 }\n[[case]]\ntitle = \"other\"\n";
    let out = swept(dir.path(), plan, usize::MAX);
    let overview = looked_at(&out, &Asked::default()).unwrap();
    let page = overview.page().unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    assert_eq!(embedded(&page)["values"][0][0], "</script><b>\"n = 5");
    // Nothing was measured, and the branch is read off the parameters.
    assert_eq!(serde_json::to_value(&overview).unwrap()["metric"], "v_em");
    let refused = looked_at(&out, &asked("msve", "", "")).unwrap_err().to_string();
    assert!(
        refused.starts_with("metric is 'msve', which was not measured, expected one of v_em"),
        "{refused}"
    );
}

#[test]
fn one_that_goes_on_is_shown_as_far_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(dir.path(), PLAN, 10);
    let part = looked_at(&out, &asked("msve", "", "")).unwrap();
    assert!(
        part.text(100).starts_with("small: 6 settings, 10 of 36 runs, 6 seeds per setting"),
        "{}",
        part.text(100)
    );
    let part = serde_json::to_value(&part).unwrap();
    assert_eq!(part["done"], 10);
    let page = looked_at(&out, &Asked::default()).unwrap().page().unwrap();
    assert_eq!(embedded(&page)["runs"]["numbers"].as_array().unwrap().len(), 10);
    // What is done is what it will be.
    swept(dir.path(), PLAN, usize::MAX);
    let whole = serde_json::to_value(looked_at(&out, &asked("msve", "", "")).unwrap()).unwrap();
    assert_eq!((&part["settings"][0], &part["curves"][0]), (&whole["settings"][0], &whole["curves"][0]));
    // A table that somebody changed is not believed: the journal still knows.
    fs::write(out.join("results.csv"), "").unwrap();
    let again = serde_json::to_value(looked_at(&out, &asked("msve", "", "")).unwrap()).unwrap();
    assert_eq!(again, whole);
}

#[test]
fn mistakes_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = looked_at(&dir.path().join("none"), &Asked::default()).unwrap_err().to_string();
    assert!(nothing.contains("has no sweep.json"), "{nothing}");
    let out = swept(dir.path(), PLAN, 0);
    let none = looked_at(&out, &Asked::default()).unwrap_err();
    assert!(none.to_string().contains("none of 36 runs is done yet"), "{none}");
    assert_eq!(none.exit_code(), 2);
    swept(dir.path(), PLAN, 7);
    for (asked, message) in [
        (asked("msv", "", ""), "metric is 'msv', expected one of v_em"),
        (asked("msv", "", ""), "did you mean 'msve'?"),
        (asked("branch", "", ""), "metric is 'branch', which is no number, expected"),
        (asked("", "kernle", ""), "x is 'kernle', expected one of kernel, init.gain; did you mean 'kernel'?"),
        (asked("", "", "layers"), "y is 'layers', expected one of kernel, init.gain"),
        (asked("", "kernel", "kernel"), "y: 'kernel' is on the other axis"),
    ] {
        let found = looked_at(&out, &asked).unwrap_err().to_string();
        assert!(found.contains(message) && found.lines().count() == 1, "{found}");
    }
    assert!("iqn".parse::<ictd_lab::sweep::show::Statistic>().unwrap_err().to_string().ends_with("'iqm'?"));
    fs::write(out.join("sweep.json"), "{}").unwrap();
    let damaged = looked_at(&out, &Asked::default()).unwrap_err().to_string();
    assert!(damaged.contains("not as it was written"), "{damaged}");
}

#[test]
fn axes_follow_from_the_plan_unless_they_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(dir.path(), PLAN, 7);
    for (x, y, expected) in [
        ("", "", ("init.gain", Some("kernel"))),
        ("kernel", "", ("kernel", Some("init.gain"))),
        ("", "init.gain", ("kernel", Some("init.gain"))),
        ("kernel", "none", ("kernel", None)),
        ("", "none", ("kernel", None)),
    ] {
        let found = serde_json::to_value(looked_at(&out, &asked("", x, y)).unwrap()).unwrap();
        assert_eq!((found["x"].as_str().unwrap(), found["y"].as_str()), expected, "{x} {y}");
    }
}

#[test]
fn a_finished_sweep_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(dir.path(), PLAN, 5);
    let stop = Arc::new(AtomicBool::new(true));
    assert!(matches!(watch(&out, &Progress::new("", stop)), Err(LabError::Stopped)));
    swept(dir.path(), PLAN, usize::MAX);
    watch(&out, &Progress::default()).unwrap();
    // The records are enough where the table is not written yet.
    fs::remove_file(out.join("results.json")).unwrap();
    let progress = Progress::default();
    watch(&out, &progress).unwrap();
    assert_eq!(progress.standing().name, "sweep small, 36 done before");
}

#[test]
fn runs_go_to_tensorboard_with_the_same_bytes_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "seeds = \"1..3\"\nmetrics = \"every 1\"\n[set]\nepochs = 2\n[grid]\nn = [5, 10]\n";
    let out = swept(dir.path(), plan, usize::MAX);
    let file = "00001-n=10/seed_0002/events.out.tfevents.0000000000.ictd";
    let written = |name: &str, out: &Path| {
        let logs = dir.path().join(name);
        let runs = Runs::read(out, &Progress::default()).unwrap();
        assert_eq!(tensorboard(&runs, &logs, &Progress::default()).unwrap(), 4);
        fs::read(logs.join(file)).unwrap()
    };
    let events = written("a", &out);
    assert_eq!(events, written("b", &out));
    let count = |events: &[u8], tag: &str| events.windows(tag.len()).filter(|w| *w == tag.as_bytes()).count();
    assert_eq!(count(&events, "train/td_loss"), 2);
    // Without curves: the numbers at the end.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let final_only = swept(&other, &plan.replace("every 1", "final"), usize::MAX);
    let events = written("c", &final_only);
    assert_eq!((count(&events, "final/msve"), count(&events, "train/td_loss")), (2, 0));
}

/// The example of the docs: many panels, whose titles are words that no line can break.
#[test]
fn the_example_of_the_docs_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/data/sweep.toml");
    let text =
        fs::read_to_string(example).unwrap().replace("epochs = 200", "epochs = 80").replace("0..6", "0..2");
    let out = swept(dir.path(), &text, usize::MAX);
    let names: Vec<String> =
        looked_at(&out, &Asked::default()).unwrap().figures().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["heatmap", "curves"]);
}

/// Runs that diverged at once have no curve and no place in a legend; that they diverged is said, and is no failure to look.
#[test]
fn settings_without_a_curve_are_in_no_legend() {
    let dir = tempfile::tempdir().unwrap();
    let plan =
        "seeds = 1\nmetrics = \"every 10\"\n[set]\nepochs = 20\n[grid]\n\"optimizer.lr\" = [1e-3, 1e30]\n";
    let out = swept(dir.path(), plan, usize::MAX);
    let overview = looked_at(&out, &Asked::default()).unwrap();
    assert!(overview.holds() && overview.text(100).contains("1 run diverged and has no numbers"));
    let (_, curves) = overview.figures().into_iter().find(|(name, _)| name == "curves").unwrap();
    let drawn = ictd_lab::figure::to_svg(&curves);
    assert!(drawn.contains("1 of 2 settings") && !drawn.contains("1e30") && !drawn.contains("0000000"));
    // The page opens with the curve of the figure.
    let page = embedded(&overview.page().unwrap());
    let curve = page["view"]["curve"].as_u64().unwrap() as usize;
    assert_eq!(page["curves"][curve], serde_json::to_value(&overview).unwrap()["curve"]);
    assert_eq!((&page["view"]["line"], &page["values"][0][1]), (&"median".into(), &"1e30".into()));
}

#[test]
fn ticks_of_the_page_are_round() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let script = include_str!("../src/sweep/show/page/statistics.js").to_owned()
        + include_str!("../src/sweep/show/page/pictures.js");
    let check = r#"
const same = (found, expected) => {
  const [a, b] = [found, expected].map((x) => JSON.stringify(x));
  if (a !== b) throw new Error(`${a} is not ${b}`);
};
same(ticks(0.343, 0.506, false), [0.35, 0.4, 0.45, 0.5]);
same(ticks(38, 1200, false), [200, 400, 600, 800, 1000, 1200]);
same(ticks(0, 1, false), [0, 0.2, 0.4, 0.6, 0.8, 1]);
same(ticks(-3, 4, false), [-2, 0, 2, 4]);
same(ticks(2e-4, 3, true), [1e-3, 1e-2, 0.1, 1]);
same(ticks(0.3, 7, true), [0.5, 1, 2, 5]);
same(ticks(1e-300, 1e300, true).length <= 6, true);
same([0.35, 0.00002, 1e6, -1.05e7].map(exact), ["0.35", "2e−5", "1e6", "−1.05e7"]);
same(scale(2, 2, false).ticks, [[2, "2"]]);
"#;
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("check.cjs");
    fs::write(&program, format!("{script}\n{check}")).unwrap();
    let ran = Command::new("node").arg(&program).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A sweep that nobody works on is not waited for.
#[test]
fn one_that_stopped_is_said_to_have_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(dir.path(), PLAN, 5);
    let stopped = watch(&out, &Progress::default()).unwrap_err().to_string();
    assert!(stopped.contains("5 of 36 runs are done and no process works on the others"), "{stopped}");
    // Neither is the lock of a killed process anybody.
    fs::write(out.join(".lock"), "process 1").unwrap();
    assert!(watch(&out, &Progress::default()).unwrap_err().to_string().contains("no process"));
}
