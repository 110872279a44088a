//! Results as text, as tables and as files; claims and what lowers their verdicts.
#![allow(missing_docs)]

use std::fs;

use ictd_lab::LabError;
use ictd_lab::figure::Scene;
use ictd_lab::files::OutputDir;
use ictd_lab::report::{Records, Report, Table, wrapped};
use ictd_lab::studies::reproduce::{self, Stability, select};
use ictd_lab::studies::{Claim, Paper, Plan, Section, Study, Verdict};
use serde::Serialize;

#[derive(Serialize)]
struct Found {
    name: &'static str,
    holds: bool,
}

impl Report for Found {
    fn text(&self, _: usize) -> String {
        self.name.into()
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of(self.name, [("x", 1.5)])?])
    }

    fn json_name(&self) -> Option<&str> {
        Some(self.name)
    }

    fn holds(&self) -> bool {
        self.holds
    }
}

#[test]
fn one_that_fails_fails_all_and_each_writes_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    let both = vec![Found { name: "a", holds: true }, Found { name: "b", holds: false }];
    both.write(&out).unwrap();
    let mut names = out.take_written().files;
    names.sort();
    assert_eq!(names, ["a.csv", "a.json", "b.csv", "b.json"]);
    assert_eq!((both.text(80).as_str(), both.holds()), ("a\nb\n", false));
}

fn table() -> Table {
    let rows = [
        ["thm1", "reproduced", "largest discrepancy 5.7e-16 over all prompts", "0.20"],
        ["a-very-long-name-of-a-claim", "no", "x", "12.00"],
    ];
    let rows = rows.map(|row| row.map(String::from).to_vec());
    Table::new(&["claim", "verdict", "what was measured", "seconds"], rows).words([1, 2])
}

#[test]
fn what_fits_is_one_line_per_row() {
    let text = table().text(200);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.lines().nth(2).unwrap().ends_with("all prompts     0.20"), "{text}");
}

/// Never wider than asked for, and nothing is lost.
#[test]
fn every_width_is_kept_and_every_word_is_there() {
    for width in 30..120 {
        let text = table().text(width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        for word in ["thm1", "discrepancy", "5.7e-16", "prompts", "12.00", "seconds", "reproduced"] {
            assert!(text.contains(word), "{width}, {word}:\n{text}");
        }
    }
}

/// Columns of numbers that have no room follow below, beside the first column.
#[test]
fn numbers_are_never_broken() {
    let names: Vec<String> = (0..9).map(|k| format!("c{k}")).collect();
    let row: Vec<String> = (0..9).map(|k| format!("{k}.000000")).collect();
    let text = Table::new(&names, [row]).text(40);
    assert_eq!(text.matches("0.000000").count(), text.matches("c0").count(), "{text}");
    assert!((1..9).all(|k| text.contains(&format!("{k}.000000"))) && text.matches("c0").count() > 1);
}

#[test]
fn csv_is_what_records_serialise_to() {
    #[derive(Serialize)]
    struct Row {
        name: &'static str,
        x: f64,
        missing: Option<u8>,
    }
    let rows =
        [Row { name: "a, \"b\"", x: 0.1, missing: None }, Row { name: "", x: -1e300, missing: Some(2) }];
    let table = Records::of("t", &rows).unwrap();
    let expected = "name,x,missing\n\"a, \"\"b\"\"\",0.1,\n,-1e300,2\n";
    assert_eq!(table.csv(), expected);
    let none = Records::of("none", Vec::<Row>::new()).unwrap();
    assert_eq!((none.csv(), none.table().text(80)), ("", String::new()));
}

#[test]
fn text_rounds_what_records_have_in_full() {
    let text = Records::of("t", [Mixed { x: 1.0 / 3.0, n: 12345, small: 1e-9, word: "w" }])
        .unwrap()
        .table()
        .text(80);
    assert_eq!(text.split_whitespace().skip(8).collect::<Vec<_>>(), ["0.3333", "12345", "1.000e-9", "w"]);
    let two = Records::of("t", [Pair { x: 0.5, y: 1.5 }]).unwrap().only(&["y"]);
    assert_eq!(two.text(80), "y\n------\n1.5000\n");
}

/// A row is known in every part of a table by the same columns; what nobody filled in is not shown.
#[test]
fn parts_of_a_table_name_their_rows() {
    #[derive(Serialize)]
    struct Point {
        name: &'static str,
        n: usize,
        error: f64,
        nothing: Option<f64>,
        error_of_another_method: f64,
    }
    let point = |n| Point { name: "here", n, error: 0.5, nothing: None, error_of_another_method: 1.5 };
    let text = Records::of("t", [1, 2].map(point)).unwrap().table().text(30);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("name")).collect();
    assert_eq!(headings.len(), 2, "{text}");
    assert!(headings.iter().all(|line| line.split_whitespace().nth(1) == Some("n")), "{text}");
    assert!(!text.contains("nothing"));
}

#[derive(Serialize)]
struct Mixed {
    x: f64,
    n: u64,
    small: f64,
    word: &'static str,
}

#[derive(Serialize)]
struct Pair {
    x: f64,
    y: f64,
}

#[test]
fn prose_is_wrapped_and_keeps_its_indentation() {
    let text = wrapped("  - one two three four five\nshort\n", 16);
    assert_eq!(text, "  - one two\n    three four\n    five\nshort\n");
}

fn found(verdict: Verdict) -> Claim {
    Claim::new("a", "", "", "").found(verdict, 1.0, String::new(), String::new())
}

#[test]
fn a_share_is_partly() {
    let verdicts = [(3, 3), (2, 3), (0, 3), (0, 0)].map(|(met, parts)| Verdict::by_share(met, parts));
    use Verdict::{NotReproduced, Partly, Reproduced};
    assert_eq!(verdicts, [Reproduced, Partly, NotReproduced, NotReproduced]);
    assert_eq!([Verdict::both(true, true), Verdict::both(false, true)], [Reproduced, Partly]);
}

#[test]
fn weak_tests_are_consistent_at_best() {
    assert_eq!(found(Verdict::Reproduced).with_slack(2.0).verdict, Verdict::Reproduced);
    assert_eq!(found(Verdict::Reproduced).with_slack(1e3).verdict, Verdict::Consistent);
    assert_eq!(found(Verdict::Reproduced).with_slack(f64::NAN).verdict, Verdict::Consistent);
    assert_eq!(found(Verdict::Reproduced).in_chosen_setting().verdict, Verdict::Consistent);
    // Neither rule improves a verdict.
    for verdict in [Verdict::Partly, Verdict::NotReproduced, Verdict::NotTestable] {
        assert_eq!(found(verdict).with_slack(1e3).in_chosen_setting().verdict, verdict);
    }
}

/// Whoever runs a study learns when it judges something else than it is listed with.
#[test]
fn studies_judge_what_they_list() {
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    let plan = Plan { seed: 0, seeds: None, quick: true };
    let run = |_: &Plan, _: &OutputDir| Ok(["a", "b"].map(|id| Claim::new(id, "", "", "")).to_vec());
    let with = |claims| Study::new("s", Section::Others, claims, run).judge(&plan, &out);
    assert_eq!(with(&["a", "b"]).unwrap().len(), 2);
    for other in [&["b", "a"][..], &["a"], &["a", "b", "c"], &[]] {
        assert!(matches!(with(other), Err(LabError::Claims { study: "s", .. })), "{other:?}");
    }
}

#[test]
fn names_are_unique_and_known() {
    let studies = Paper::ALL.into_iter().flat_map(Paper::studies);
    let mut names: Vec<&str> = studies.flat_map(|s| s.claims.iter().copied()).collect();
    let total = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), total);
    assert_eq!(select(Paper::Main, &["thm2-floor".into()]).unwrap()[0].id, "rates");
    assert!(select(Paper::Main, &["nobody".into()]).is_err());
}

#[test]
fn doubt_begins_with_the_second_seed() {
    let stability = |same| Stability { seeds: 20, same };
    assert!(!stability(19).is_doubtful() && stability(18).is_doubtful());
}

fn two_that_differ(_: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    out.figure("fig1", &Scene::new(10.0, 10.0, "drawn"))?;
    let claim = |id: &str| {
        let claim = Claim::new(id, "Figure 1", "a < b & \"c\"", "a drop");
        let claim = claim.found(Verdict::Partly, 1.0, String::new(), String::new());
        claim.because("It is flat. More of it.")
    };
    Ok(vec![claim("fig1").shown(Some("fig1"), None), claim("thm1")])
}

/// The news comes before the contents, the contents before the claims; a figure is taken as it is, text is escaped.
#[test]
fn the_page_opens_with_the_news() {
    let dir = tempfile::tempdir().unwrap();
    let study = Study::new("own", Section::Others, &["fig1", "thm1"], two_that_differ);
    let plan = Plan { seed: 0, seeds: "1".parse().ok(), quick: false };
    reproduce::run(&[study], &plan, dir.path(), true, |_, _| Ok(())).unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let (page, svg) = (read("report.html"), read("fig1.svg"));
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("It is flat.<") < at("<nav") && at("<nav") < at("<article"));
    assert!(at(&svg) > at("<article") && at("fig1.pdf") > at(&svg));
    // One item for one reason, all of the reason with each claim.
    assert_eq!((page.matches("It is flat.<").count(), page.matches("More of it.").count()), (1, 2));
    assert_eq!(page.matches("<p>a &lt; b &amp; &quot;c&quot;</p>").count(), 2);
}
