//! Logs are read as they are meant, whatever they are kept in.
#![allow(missing_docs)]

mod common {
    pub mod logs;
}

use std::fs;
use std::path::PathBuf;

use common::logs::{data, missing, ok, read_kept, read_text, told};
use ictd_lab::Progress;
use ictd_lab::logs::{Kept, LastSeen, Missing, States, Wanted, convert, read};
use tempfile::TempDir;

const PLAIN: &str = "episode,t,state,reward,terminated\n\
                     a,0,x,1,0\na,1,y,2,1\n\
                     b,0,y,0.5,0\nb,1,x,-1,0\nb,2,y,,0\n";

#[test]
fn a_plain_table_needs_no_flags() {
    let (reading, kept) = ok(PLAIN);
    assert_eq!(told(&reading, &kept), ["a: x y | [1.0, 2.0] terminated", "b: y x y | [0.5, -1.0] truncated"]);
    assert_eq!(reading.states, States::Labels(vec!["x".into(), "y".into()]));
    assert_eq!((reading.visited, reading.counts.transitions, reading.counts.rows), (2, 4, 5));
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    assert_eq!(reading.first.len(), 3);
    assert_eq!(reading.first[1].to_string(), "episode a, step 1: state y, reward 2, next state (end)");
    assert!(reading.mapping.contains(&"state       state".to_owned()), "{:?}", reading.mapping);
}

#[test]
fn other_ways_to_write_the_same_table_are_the_same() {
    let (reading, kept) = ok(PLAIN);
    let mut shuffled: Vec<&str> = PLAIN.lines().collect();
    shuffled[1..].reverse();
    let same = [
        PLAIN.replace('\n', "\r\n"),
        format!("\u{feff}{PLAIN}"),
        PLAIN.trim_end().to_owned(),
        PLAIN.replace('\n', "\n\n"),
        PLAIN.replace("terminated\n", "terminated\n,,,,\n"),
        PLAIN.replace(",x,", ",\"x\",").replace("\na,", "\n\"a\","),
        PLAIN.replace(",1,0\n", ", 1 ,false\n").replace(",1\n", ",True\n"),
        PLAIN.replace("episode", "Trajectory_ID").replace("terminated", "DONE"),
    ];
    for text in same {
        let (other, others) = ok(&text);
        assert_eq!(told(&other, &others), told(&reading, &kept), "{text}");
    }
    for (name, separator) in [("log.tsv", "\t"), ("log.csv", ";"), ("log.txt", "|")] {
        let (other, others) = read_text(name, PLAIN.replace(',', separator), &Wanted::default()).unwrap();
        assert_eq!(told(&other, &others), told(&reading, &kept));
        assert_eq!(other.warnings.len(), usize::from(name == "log.csv"));
    }
    // Rows in any order: time decides within episodes, the first row of each among them.
    let (other, others) = ok(&shuffled.join("\n"));
    let mut told_others = told(&other, &others);
    told_others.reverse();
    assert_eq!(told_others, told(&reading, &kept));
}

#[test]
fn quotes_may_hold_line_breaks_and_quotes() {
    let text = PLAIN.replace(",x,", ",\"x\nof \"\"two\"\" lines\",");
    let (reading, kept) = ok(&text);
    assert!(told(&reading, &kept)[0].starts_with("a: x\nof \"two\" lines y |"));
    let error =
        read_text("log.csv", text.replace("-1", "minus"), &Wanted::default()).unwrap_err().to_string();
    assert!(error.contains("row 6, column reward: found 'minus', expected a number"), "{error}");
    // Names too; what a line ends with stands outside.
    let text = PLAIN.replacen("state", "\"sta\rte\"", 1);
    assert_eq!(ok(&text).0.state_columns, ["sta\rte"]);
    let error = read_text("log.csv", text.replace('\n', "\r"), &Wanted::default()).unwrap_err().to_string();
    assert!(error.contains("row 1: found lines that end with CR alone"), "{error}");
}

#[test]
fn interleaved_episodes_are_gathered() {
    let text = "episode,t,state,reward,terminated\n\
                a,0,x,1,0\nb,0,y,2,0\na,1,y,3,1\nb,2,x,,0\nb,1,x,5,0\n";
    let (reading, kept) = ok(text);
    assert_eq!(told(&reading, &kept), ["a: x y | [1.0, 3.0] terminated", "b: y x x | [2.0, 5.0] truncated"]);
}

#[test]
fn the_kind_of_a_single_column_is_that_of_its_cells() {
    let with = |x: &str, y: &str| {
        ok(&PLAIN.replace(",x,", &format!(",{x},")).replace(",y,", &format!(",{y},"))).0.states
    };
    assert_eq!(with("7", "07"), States::Labels(vec!["7".into()]));
    assert_eq!(with("7", "-8"), States::Labels(vec!["7".into(), "-8".into()]));
    let States::Features { names, rows } = with("7", "7.5") else { panic!("a feature") };
    assert_eq!((names, rows.as_slice().to_vec()), (vec!["state".to_owned()], vec![7.0, 7.5]));
    let States::Features { rows, .. } = with("7", "7.0") else { panic!("a feature") };
    assert_eq!(rows.num_rows(), 1, "the same number written in two ways");
    let label = Wanted { state: Some("state:label".into()), ..Wanted::default() };
    let text = PLAIN.replace(",x,", ",7,").replace(",y,", ",7.0,");
    assert_eq!(read_text("log.csv", text, &label).unwrap().0.states.len(), 2);
}

#[test]
fn columns_without_known_names_are_features() {
    let text = "customer_id,date,age,balance,action,reward\n\
                17,2024-01-01,30,1e3,a,1\n17,2024-01-15,30,2e3,b,2\n17,2024-03-01,31,0,,\n";
    let wanted = Wanted { id: Some("customer_id".into()), ..Wanted::default() };
    let (reading, kept) = read_text("log.csv", text, &wanted).unwrap();
    let States::Features { names, rows } = &reading.states else { panic!("features") };
    assert_eq!(names, &["age", "balance"]);
    assert_eq!(rows.row(1), [30.0, 2000.0]);
    // Times of a calendar are kept, and need not be evenly spaced.
    let times = kept.0[0].times.clone().unwrap();
    assert_eq!((times[1] - times[0], times[2] - times[1]), (14.0 * 86_400.0, 46.0 * 86_400.0));
    assert_eq!(reading.ids, [LastSeen { id: "17".into(), state: 2, ended: false }]);
    assert!(reading.warnings[0].contains("no column for terminated"), "{:?}", reading.warnings);
}

#[test]
fn what_is_not_known_is_left_out_and_counted() {
    // The last transition of b has no next state.
    let (reading, kept) =
        ok("episode,t,state,reward,terminated\na,0,x,1,1\nb,0,y,2,0\nb,1,x,3,0\nc,0,x,1,0\n");
    assert_eq!(told(&reading, &kept), ["a: x | [1.0] terminated", "b: y x | [2.0] truncated"]);
    assert_eq!((reading.counts.dropped_transitions, reading.counts.without_transition), (2, 1));
    assert!(reading.warnings[0].contains("2 transitions were left out"), "{:?}", reading.warnings);
    // Columns of the next state tell it.
    let text = "episode,t,state,next_state,reward,terminated\nb,0,y,x,2,0\nb,1,x,z,3,0\n";
    let (reading, kept) = ok(text);
    assert_eq!(told(&reading, &kept), ["b: y x z | [2.0, 3.0] truncated"]);
}

#[test]
fn a_gap_is_never_bridged() {
    let text = "episode,t,s_0,s_1,reward,terminated\n\
                a,0,1,1,1,0\na,1,2,2,2,0\na,2,,3,3,0\na,3,4,4,4,0\na,4,5,5,NA,0\na,5,6,6,6,1\n";
    let error = read_text("log.csv", text, &Wanted::default()).unwrap_err().to_string();
    assert!(error.contains("row 4, column s_0: found no value, expected a value"), "{error}");
    let (reading, kept) = read_text("log.csv", text, &missing(Missing::Drop)).unwrap();
    assert_eq!(
        told(&reading, &kept),
        [
            "a: (1, 1) (2, 2) | [1.0] truncated",
            "a: (4, 4) (5, 5) | [4.0] truncated",
            "a: (6, 6) | [6.0] terminated"
        ]
    );
    assert_eq!((reading.counts.dropped_rows, reading.counts.dropped_transitions), (2, 1));
    // A step that is not there.
    let text = "episode,t,state,reward,terminated\na,0,x,1,0\na,1,y,2,0\na,3,x,3,0\na,4,y,4,1\n";
    let (reading, kept) = read_text("log.csv", text, &missing(Missing::Drop)).unwrap();
    assert_eq!(told(&reading, &kept), ["a: x y | [1.0] truncated", "a: x y | [3.0, 4.0] terminated"]);
}

#[test]
fn without_episodes_flags_end_them_wherever_the_file_is_cut_for_reading() {
    let mut text = String::from("state,reward,terminated,truncated\n");
    for k in 0..80_000 {
        text += &format!(
            "label{},{}.25,{},{}\n",
            k % 7,
            k % 3,
            u8::from(k % 2000 == 999),
            u8::from(k % 2000 == 1999)
        );
    }
    assert!(text.len() > 1 << 20, "more than a piece");
    let (reading, kept) = ok(&text);
    assert_eq!((reading.counts.episodes, reading.counts.terminated), (80, 40));
    assert!(kept.0.iter().all(|e| e.rewards.len() >= 999));
    // Time that does not go on ends an episode too.
    let (reading, kept) = ok("t,state,reward,terminated\n0,x,1,0\n1,y,1,0\n2,x,,0\n0,y,2,0\n1,x,2,1\n");
    assert_eq!(told(&reading, &kept), ["0: x y x | [1.0, 1.0] truncated", "1: y x | [2.0, 2.0] terminated"]);
}

#[test]
fn ids_have_the_last_state_that_has_a_value() {
    let text = "episode,t,who,state,reward,terminated\na,0,u,x,1,0\na,1,u,y,1,1\na,2,u,z,,0\nb,0,v,y,1,0\nb,1,v,w,,0\nc,0,s,q,1,0\n";
    let wanted = Wanted { id: Some("who".into()), ..Wanted::default() };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    fs::write(&path, text).unwrap();
    let counted = || Ok(ictd::evaluate::LogBuilder::new(0.9, None)?);
    let (reading, log) = read(&path, &wanted, counted, &Progress::default()).unwrap();
    let last: Vec<(&str, String)> =
        reading.ids.iter().map(|last| (last.id.as_str(), reading.states.describe(last.state))).collect();
    assert_eq!(last, [("u", "y".into()), ("v", "w".into()), ("s", "q".into())]);
    // The terminal state is no state of the log; the one that nothing is known of comes last.
    assert_eq!((reading.visited, reading.states.len()), (3, 4));
    let features = ictd::Matrix::from_fn(3, 1, |s, _| s as f64);
    assert_eq!(log.build(features).unwrap().num_transitions(), 3);
}

#[test]
fn means_are_those_of_all_rows() {
    let text = "episode,t,s_0,s_1,reward,terminated\na,0,1,10,1,0\na,1,1,20,2,0\na,2,,30,3,0\na,3,4,,4,1\n";
    let (reading, _) = read_text("log.csv", text, &missing(Missing::Mean)).unwrap();
    let States::Features { rows, .. } = &reading.states else { panic!("features") };
    assert_eq!(rows.as_slice(), [1.0, 10.0, 1.0, 20.0, 2.0, 30.0, 4.0, 20.0]);
    assert_eq!(reading.counts.replaced, 2);
    let text = "episode,t,state,reward,terminated\na,0,1.5,1,0\na,1,,1,0\na,2,2.5,1,1\n";
    let (reading, kept) = read_text("log.csv", text, &missing(Missing::Mean)).unwrap();
    assert_eq!(told(&reading, &kept), ["a: (1.5) (2) (2.5) | [1.0, 1.0, 1.0] terminated"]);
}

#[test]
fn real_files_of_other_libraries_are_read() {
    // What make.py printed.
    let (steps, first) =
        (138, [0.013696168549358845, -0.023021329194307327, -0.04590264707803726, -0.04834723472595215]);
    for (name, terminal_states, dropped) in
        [("cartpole.hdf5.gz", 2, 0), ("d4rl.hdf5", 2, 0), ("flat.npz", 2, 0), ("d3rlpy.h5", 0, 8)]
    {
        let (reading, kept) = read_kept(&data(name), &Wanted::default()).unwrap();
        let States::Features { rows, .. } = &reading.states else { panic!("features") };
        assert_eq!(rows.row(0), first, "{name}");
        assert_eq!(reading.counts.transitions + dropped, steps, "{name}");
        assert_eq!(reading.counts.dropped_transitions, dropped, "{name}");
        assert_eq!((reading.counts.terminated, reading.counts.truncated), (2, 8), "{name}");
        let all: usize = kept.0.iter().map(|e| e.states.len() - e.rewards.len()).sum();
        assert_eq!(all, 8 + terminal_states, "{name}");
    }
    let (legacy, kept) = read_kept(&data("legacy.hdf5.gz"), &Wanted::default()).unwrap();
    assert_eq!((legacy.counts.transitions, legacy.counts.terminated, legacy.states.len()), (83, 6, 5));
    assert!(kept.0.iter().all(|e| e.rewards.iter().all(|r| *r == -1.0)));
}

/// A Minari data set as a folder and as an id; damage is named.
#[test]
fn minari_is_a_folder_or_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("log-v0");
    convert(&data("cartpole.hdf5.gz"), &folder, &Wanted::default(), &Progress::default()).unwrap();
    let all = [folder.clone(), folder.join("data"), folder.join("data/main_data.hdf5")].map(|path| {
        let (reading, kept) = read_kept(&path, &Wanted::default()).unwrap();
        told(&reading, &kept)
    });
    assert!(all[0] == all[1] && all[1] == all[2]);
    let metadata = folder.join("data/metadata.json");
    let text = fs::read_to_string(&metadata).unwrap();
    fs::write(&metadata, text.replace("\"total_episodes\":10", "\"total_episodes\":11")).unwrap();
    let error = read_kept(&folder, &Wanted::default()).unwrap_err().to_string();
    assert!(error.contains("found 10 episodes, expected 11"), "{error}");
}

fn sources(dir: &TempDir) -> Vec<PathBuf> {
    let texts = [
        ("labels.csv", PLAIN.to_owned()),
        ("whole.csv", PLAIN.replace(",x,", ",3,").replace(",y,", ",5,")),
        ("one.csv", PLAIN.replace(",x,", ",0.1,").replace(",y,", ",2,")),
        (
            "dates.csv",
            "user,date,age,income,reward,terminated\nu,2024-01-01,1,0.1,1,0\nu,2024-02-01,2,1e-300,0.1,1\nv,2024-01-01,3,7,1,0\nv,2024-05-05,4,8,,\n".into(),
        ),
        ("next.csv", "episode,time,state,next_state,reward\na,1.5,x,y,1\na,7,y,z,2\nb,0,x,x,1\n".into()),
        ("cut.csv", "episode,t,state,reward,terminated\na,0,x,1,0\na,1,y,,0\na,2,x,3,0\na,3,y,4,1\n".into()),
        ("strange.csv", "episode,t,state,reward,terminated\n\"a,b\",0,\"x\"\"\n\",1,0\n\"a,b\",1,\"é|;\t\",2,1\n".into()),
    ];
    let write = |(name, text): (&str, String)| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let mut paths: Vec<PathBuf> = texts.into_iter().map(write).collect();
    paths.extend(["cartpole.hdf5.gz", "legacy.hdf5.gz", "d4rl.hdf5"].map(data));
    paths
}

#[test]
fn every_round_trip_is_exact() {
    let dir = tempfile::tempdir().unwrap();
    for source in sources(&dir) {
        let wanted = missing(Missing::Drop);
        let (reading, kept) = read_kept(&source, &wanted).unwrap();
        let mut expected = told(&reading, &kept);
        // Parts of an episode are told apart where they are written.
        let mut seen = std::collections::HashMap::new();
        for (line, episode) in expected.iter_mut().zip(&kept.0) {
            let part = seen.entry(episode.name.clone()).or_insert(0);
            *part += 1;
            if *part > 1 {
                *line = line.replacen(&episode.name, &format!("{}/{part}", episode.name), 1);
            }
        }
        for name in ["out.csv", "out.tsv", "out.jsonl", "out.npz", "out-v0"] {
            let output = dir.path().join(name);
            let _ = fs::remove_dir_all(&output);
            convert(&source, &output, &wanted, &Progress::default()).unwrap();
            let (again, kept_again) = read_kept(&output, &Wanted::default()).unwrap();
            let place = format!("{} to {name}", source.display());
            assert_eq!(told(&again, &kept_again), expected, "{place}");
            assert_eq!(again.states, reading.states, "{place}");
            let steps =
                |e: &ictd_lab::logs::OwnedEpisode| Some(e.times.as_ref()?[..e.rewards.len()].to_vec());
            let times = |kept: &Kept| kept.0.iter().map(steps).collect::<Vec<_>>();
            // Minari has no times.
            if name != "out-v0" {
                assert_eq!(times(&kept_again), times(&kept), "{place}");
            }
        }
    }
}

#[test]
fn a_context_is_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("context.json");
    let done = convert(&data("cartpole.hdf5.gz"), &output, &Wanted::default(), &Progress::default()).unwrap();
    assert!(done.warnings.is_empty(), "{:?}", done.warnings);
    let context = ictd_lab::files::read_context(&output).unwrap();
    assert_eq!(context.num_transitions(), 138);
    let (reading, kept) = read_kept(&output, &Wanted::default()).unwrap();
    let (before, kept_before) = read_kept(&data("cartpole.hdf5.gz"), &Wanted::default()).unwrap();
    assert_eq!(told(&reading, &kept), told(&before, &kept_before));
}

#[test]
fn the_number_of_threads_does_not_show() {
    let mut text = String::from("episode,t,s_0,s_1,reward,terminated\n");
    for episode in 0..20_000 {
        for t in 0..12 {
            let x = (episode * 31 + t * 17) % 97;
            text += &format!(
                "{episode},{t},{x}.5,{},{},{}\n",
                x % 7,
                x % 5,
                u8::from(t == 11 && episode % 3 > 0)
            );
        }
    }
    assert!(text.len() > 2 << 20, "{} bytes are more than a piece", text.len());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    fs::write(&path, text).unwrap();
    let all = [1, 2, 5].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read_kept(&path, &Wanted::default()).unwrap())
    });
    assert!(all[0] == all[1] && all[1] == all[2]);
    assert_eq!(all[0].0.counts.episodes, 20_000);
}
