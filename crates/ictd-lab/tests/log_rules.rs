//! What the rows of a log mean: ends, times, states and numbers that are easily mistaken.
#![allow(missing_docs)]

mod common {
    pub mod logs;
}

use std::fs;

use common::logs::{missing, ok, read_kept, read_text, told};
use hdf5_pure::{Datatype, DatatypeByteOrder, FileBuilder, FloatingPointLayout};
use ictd_lab::logs::{LastSeen, Missing, States, Wanted, convert, queries};
use ictd_lab::{LabError, Progress};

fn refused(name: &str, text: impl AsRef<[u8]>, wanted: &Wanted) -> String {
    read_text(name, text, wanted).unwrap_err().to_string()
}

fn state(said: &str) -> Wanted {
    Wanted { state: Some(said.into()), ..Wanted::default() }
}

#[test]
fn a_flag_on_the_terminal_state_itself_ends_the_episode() {
    let head = "episode,t,state,reward,terminated\n";
    let (reading, kept) =
        ok(&format!("{head}a,0,x,1,0\na,1,y,,1\nb,0,x,1,1\nb,1,y,,1\nc,0,x,1,0\nc,1,y,,0\n"));
    let lines = ["a: x y | [1.0] terminated", "b: x y | [1.0] terminated", "c: x y | [1.0] truncated"];
    assert_eq!(told(&reading, &kept), lines);
    // It has no value of its own, and may have no name either.
    let wanted = Wanted { id: Some("episode".into()), ..missing(Missing::Drop) };
    let (reading, kept) = read_text("log.csv", format!("{head}a,0,x,1,0\na,1,,,1\n"), &wanted).unwrap();
    assert_eq!(told(&reading, &kept), ["a: x | [1.0] terminated"]);
    assert_eq!(reading.ids, [LastSeen { id: "a".into(), state: 0, ended: true }]);
    // A flag for the end of recording leaves it one.
    let (reading, kept) = ok("episode,state,reward,terminated,truncated\na,x,1,0,0\na,y,,0,1\n");
    assert_eq!(told(&reading, &kept), ["a: x y | [1.0] truncated"]);
}

#[test]
fn done_beside_truncated_may_mark_both_ends() {
    let text = "episode,t,state,reward,done,truncated\na,0,x,1,0,0\na,1,y,2,1,1\na,2,x,,,\nb,0,x,1,1,0\n";
    let (reading, kept) = ok(text);
    assert_eq!(told(&reading, &kept), ["a: x y x | [1.0, 2.0] truncated", "b: x | [1.0] terminated"]);
    assert_eq!(reading.counts.limits, 1);
    assert!(reading.warnings[0].starts_with("1 ends are marked as done and as truncated"));
    // Where somebody says so, and in the words of Gymnasium, terminated wins.
    let said = Wanted { terminated: Some("done".into()), ..Wanted::default() };
    for (text, wanted) in [(text.to_owned(), said), (text.replace("done", "terminated"), Wanted::default())] {
        let (reading, kept) = read_text("log.csv", text, &wanted).unwrap();
        assert_eq!(told(&reading, &kept)[0], "a: x y x | [1.0, 2.0] terminated");
        assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    }
}

#[test]
fn steps_are_as_far_apart_in_every_episode() {
    let head = "episode,t,state,reward,terminated\n";
    let text = format!("{head}a,0,x,1,0\na,1,y,1,1\nb,0,x,1,0\nb,5,y,1,1\n");
    let error = refused("log.csv", &text, &Wanted::default());
    assert!(error.contains("row 5, column t: found 5, expected 1 after 0: steps are missing"), "{error}");
    let (reading, kept) = read_text("log.csv", &text, &missing(Missing::Drop)).unwrap();
    assert_eq!(told(&reading, &kept), ["a: x y | [1.0, 1.0] terminated", "b: y | [1.0] terminated"]);
    // What was joined already is not taken back.
    let text = format!("{head}b,0,x,1,0\nb,5,y,1,1\na,0,x,1,0\na,1,y,1,1\n");
    let error = refused("log.csv", text, &missing(Missing::Drop));
    assert!(
        error.contains("row 5, column t: found 1, expected 5 after 0, as steps are 5 apart in episode b"),
        "{error}"
    );
    // Evenly thinned out.
    let (reading, _) = ok(&format!("{head}a,0,x,1,0\na,5,y,1,1\nb,5,x,1,0\nb,10,y,1,0\nb,15,y,1,1\n"));
    assert_eq!(reading.counts.transitions, 5);
    let error = refused(
        "log.csv",
        format!("{head}a,0,x,1,0\na,1,x,1,0\na,2,x,1,0\na,7.5,y,1,1\n"),
        &Wanted::default(),
    );
    assert!(
        error.contains("row 5, column t: found 7.5, expected a whole number as the others are"),
        "{error}"
    );
    // Seconds are no steps.
    let (reading, _) = ok(&format!("{head}a,0,x,1,0\na,0.5,y,1,0\na,1.25,y,1,1\n"));
    assert_eq!((reading.counts.transitions, reading.counts.uneven), (3, 1));
}

#[test]
fn weeks_are_counted_and_dates_are_not() {
    let text = "user,week,state,reward,terminated\nu,3,x,1,0\nu,4,y,1,0\nu,8,x,1,1\n";
    let error = refused("log.csv", text, &Wanted::default());
    assert!(error.contains("row 4, column week: found 8, expected 5 after 4: steps are missing"), "{error}");
    // Times of the calendar stay beside the states.
    let (reading, kept) = read_text("log.csv", text, &missing(Missing::Drop)).unwrap();
    assert_eq!(kept.0[0].times, Some(vec![3.0, 4.0]));
    assert_eq!(reading.counts.cuts, 1);
    let dates =
        text.replace(",3,", ",2024-01-01,").replace(",4,", ",2024-01-08,").replace(",8,", ",2024-02-05,");
    for text in [dates.clone(), dates.replace("week", "date"), text.replace("week", "time")] {
        let (reading, _) = ok(&text);
        assert_eq!((reading.counts.transitions, reading.counts.uneven), (3, 1), "{text}");
        assert!(reading.warnings[0].starts_with("1 steps in time are longer or shorter"), "{text}");
    }
}

#[test]
fn large_whole_numbers_are_told_apart() {
    let (large, larger) = (u64::MAX - 1, u64::MAX);
    let text = format!("episode,t,state,reward,terminated\na,0,{large},1,0\na,1,0{larger},2,1\nb,0,7,1,1\n");
    let (reading, _) = ok(&text);
    let labels = [large.to_string(), larger.to_string(), "7".into()];
    assert_eq!(reading.states, States::Labels(labels.to_vec()));
    let row = |episode: u64, state: u64, end: bool| {
        format!("{{\"episode\": {episode}, \"state\": {state}, \"reward\": 1, \"terminated\": {end}}}\n")
    };
    let text = row(large, 1, false) + &row(large, large, true) + &row(larger, larger, true);
    let (reading, kept) = read_text("log.jsonl", text, &Wanted::default()).unwrap();
    assert_eq!((kept.0.len(), reading.states.len()), (2, 3));
    assert_eq!(kept.0[1].name, larger.to_string());
}

#[test]
fn rows_of_json_do_not_depend_on_how_many_are_read_at_once() {
    // Keys that are not there, objects beside nothing and lists after nothing, around the end of a batch.
    let mut text = String::from(
        "{\"episode\": -1, \"obs\": null, \"reward\": 1, \"info\": null, \"terminated\": true}\n",
    );
    for e in 0..2100 {
        text += &format!(
            "{{\"episode\": {e}, \"obs\": [{e}, 2], \"reward\": 1, \"info\": {{}}, \"terminated\": false}}\n"
        );
        text += "\n";
        let end = format!("{{\"terminated\": false, \"episode\": {e}, \"obs\": [0, 1], \"info\": null}}\n");
        text += &end;
    }
    let (reading, _) = read_text("log.jsonl", &text, &missing(Missing::Drop)).unwrap();
    assert_eq!((reading.counts.rows, reading.counts.transitions), (4201, 2100));
    assert_eq!((reading.counts.dropped_rows, reading.state_columns.len()), (1, 2));
    let wrong = text.clone() + "\n\n{\"episode\": 9999, \"obs\": [1, \"x\"], \"reward\": 1}\n";
    let error = refused("log.jsonl", wrong, &missing(Missing::Drop));
    assert!(error.contains("row 6304, column obs: found '\"x\"', expected a number"), "{error}");
    // One episode per line.
    let text = "{\"obs\": [[1, 2], [3, 4]], \"rewards\": [1], \"info\": {\"a\": 1}, \"terminated\": true}\n\
                {\"terminated\": true, \"obs\": [[1, 2], null], \"rewards\": [1], \"info\": null}\n";
    let (reading, _) = read_text("log.jsonl", text, &missing(Missing::Drop)).unwrap();
    assert_eq!((reading.counts.terminated, reading.counts.episodes), (2, 2));
}

#[test]
fn columns_with_a_part_in_a_log_are_no_features() {
    let text = "episode,t,timestamp,user_id,x,reward,terminated,is_terminal\n\
                a,0,1700000000,5,1.5,1,0,0\na,1,1700000060,5,2,2,1,1\n";
    assert_eq!(ok(text).0.state_columns, ["x"]);
    // Nor where a prefix is theirs too; by its whole name a time may be one.
    let text = "session,step,s_a,lab_x,lab_y,lab_reward,terminated\na,0,9,1,2,1,0\na,1,8,2,3,2,1\n";
    for (said, found) in
        [("s", vec!["s_a"]), ("lab_", vec!["lab_x", "lab_y"]), ("lab_x,step", vec!["lab_x", "step"])]
    {
        let wanted = Wanted { reward: Some("lab_reward".into()), ..state(said) };
        assert_eq!(read_text("log.csv", text, &wanted).unwrap().0.state_columns, found, "{said}");
    }
    // A name that somebody gives is not guessed again.
    let wanted = Wanted { episode: Some("t".into()), ..Wanted::default() };
    let (reading, _) = read_text("log.csv", "t,step,state,reward\na,0,x,1\na,1,y,\n", &wanted).unwrap();
    assert!(reading.mapping.contains(&"time        step".to_owned()), "{:?}", reading.mapping);
}

#[test]
fn a_terminal_state_without_features_has_no_means() {
    let text = "episode,t,s_a,s_b,reward,terminated,next_s_a,next_s_b\na,0,1,2,1,0,3,4\na,1,3,4,2,1,,\n";
    let (reading, kept) = read_text("log.csv", text, &missing(Missing::Mean)).unwrap();
    assert_eq!(told(&reading, &kept), ["a: (1, 2) (3, 4) | [1.0, 2.0] terminated"]);
}

#[test]
fn lines_without_content_and_labels_that_look_like_none() {
    let (reading, kept) = ok("state,reward,terminated\nx,1,0\n,,\ny,1,1\n,,\n");
    assert_eq!(told(&reading, &kept), ["0: x y | [1.0, 1.0] terminated"]);
    let text = "episode,t,zone,reward,terminated\na,0,NA,1,0\na,1,EU,1,1\n";
    for (name, text) in [
        ("log.csv", text.to_owned()),
        ("log.jsonl", "{\"zone\": \"NA\", \"reward\": 1, \"terminated\": false}\n{\"zone\": \"EU\", \"reward\": 1, \"terminated\": true}\n".into()),
    ] {
        let (reading, _) = read_text(name, text, &state("zone:label")).unwrap();
        assert_eq!(reading.states, States::Labels(vec!["NA".into(), "EU".into()]), "{name}");
    }
    let error = refused("log.csv", text.replace("NA", ""), &state("zone:label"));
    assert!(error.contains("row 2, column zone: found no value"), "{error}");
}

/// A file of D4RL with `timeouts` of another type.
fn d4rl(timeouts: impl Fn(&mut FileBuilder)) -> Vec<u8> {
    let mut file = FileBuilder::new();
    let observations: Vec<f64> = (0..12).map(f64::from).collect();
    file.create_dataset("observations").with_f64_data(&observations).with_shape(&[6, 2]);
    file.create_dataset("rewards").with_f64_data(&[0.0, 1.0, 2.0, 3.0, 4.0, f64::NAN]);
    file.create_dataset("terminals").with_u8_data(&[0, 0, 0, 0, 0, 1]);
    file.create_dataset("step").with_u8_data(&[0, 1, 2, 0, 1, 2]).with_shape(&[6, 1]);
    timeouts(&mut file);
    file.finish().unwrap()
}

#[test]
fn an_array_that_has_a_part_in_a_log_is_read_or_refused() {
    let half = |order: DatatypeByteOrder| Datatype::FloatingPoint {
        size: 2,
        byte_order: order,
        layout: FloatingPointLayout {
            bit_offset: 0,
            bit_precision: 16,
            exponent_location: 10,
            exponent_size: 5,
            mantissa_location: 0,
            mantissa_size: 10,
            exponent_bias: 15,
        },
    };
    // The third is 1.
    let bytes = [0, 0, 0, 0, 0, 0x3c, 0, 0, 0, 0, 0, 0];
    let whole = d4rl(|file| {
        file.create_dataset("timeouts").with_raw_data(
            half(DatatypeByteOrder::LittleEndian),
            bytes.to_vec(),
            6,
        );
    });
    let (reading, kept) = read_text("log.hdf5", whole, &Wanted::default()).unwrap();
    let lines = [
        "0: (0, 1) (2, 3) (4, 5) | [0.0, 1.0] truncated",
        "1: (6, 7) (8, 9) (10, 11) | [3.0, 4.0] terminated",
    ];
    assert_eq!(told(&reading, &kept), lines);
    assert!(reading.mapping.contains(&"time        step".to_owned()), "{:?}", reading.mapping);
    // A checksum that is not that of the flags.
    let flags = [0u8, 0, 1, 0, 0, 0];
    let mut damaged = d4rl(|file| {
        file.create_dataset("timeouts").with_u8_data(&flags).with_chunks(&[6]).with_fletcher32();
    });
    assert!(read_text("log.hdf5", &damaged, &Wanted::default()).is_ok());
    let at = damaged.windows(6).rposition(|window| window == flags).unwrap();
    damaged[at + 1] ^= 1;
    let error = refused("log.hdf5", &damaged, &Wanted::default());
    assert!(error.contains("timeouts: not an HDF5 file that can be read"), "{error}");
    // One observation more than rewards.
    let mut file = FileBuilder::new();
    file.create_dataset("observations").with_f64_data(&[0.0; 7]);
    file.create_dataset("rewards").with_f64_data(&[0.0; 6]);
    file.create_dataset("terminals").with_u8_data(&[0; 6]);
    let error = refused("log.hdf5", file.finish().unwrap(), &Wanted::default());
    assert!(error.contains("observations: found 7 rows, expected 6 as there are rewards"), "{error}");
}

#[test]
fn minari_written_here_is_asked_by_the_names_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, query) = (dir.path().join("log-v0"), dir.path().join("query.csv"));
    for (text, column, ask) in [
        ("episode,t,zone,reward,terminated\na,0,north,1,0\na,1,south,1,1\n", "state", "state\nsouth\n"),
        ("episode,t,age,income,reward,terminated\na,0,1,2,1,0\na,1,3,4,1,1\n", "age", "income,age\n2,1\n"),
    ] {
        let table = dir.path().join("log.csv");
        fs::write(&table, text).unwrap();
        let _ = fs::remove_dir_all(&folder);
        convert(&table, &folder, &Wanted::default(), &Progress::default()).unwrap();
        let (reading, _) = read_kept(&folder, &Wanted::default()).unwrap();
        assert_eq!(reading.state_columns[0], column);
        assert_eq!(reading.first, read_kept(&table, &Wanted::default()).unwrap().0.first);
        fs::write(&query, ask).unwrap();
        assert_eq!(queries(&query, &reading, &Wanted::default()).unwrap().states.len(), 1);
    }
    // One that is kept in another format says so.
    fs::remove_file(folder.join("data/main_data.hdf5")).unwrap();
    fs::write(folder.join("data/metadata.json"), "{\"data_format\": \"arrow\"}").unwrap();
    let error = read_kept(&folder, &Wanted::default()).unwrap_err().to_string();
    let expected = match cfg!(feature = "parquet") {
        true => "found no episodes, expected some",
        false => "found a Minari data set in arrow, expected one in HDF5; build with --features parquet",
    };
    assert!(error.contains(expected) && error.contains("log-v0"), "{error}");
    fs::write(folder.join("data/metadata.json"), "{}").unwrap();
    let error = read_kept(&folder, &Wanted::default()).unwrap_err().to_string();
    assert!(error.contains("found a Minari data set in hdf5 without main_data.hdf5"), "{error}");
}

#[test]
fn queries_are_read_as_the_log_is() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |log: &str, text: &[u8], wanted: &Wanted| -> Result<_, LabError> {
        let (reading, _) = read_text("log.csv", log, &Wanted { id_may_lack: true, ..wanted.clone() })?;
        let path = dir.path().join("query.csv");
        fs::write(&path, text).unwrap();
        queries(&path, &reading, wanted)
    };
    let log = "episode,t,state,reward,terminated\na,0,7,1,0\na,1,8,1,1\n";
    let wanted = Wanted { id: Some("who".into()), ..Wanted::default() };
    let found = ask(log, b"WHO,state\r\nann,7.0\r\n\r\nbob,+8\r\neve,9.0\r\n", &wanted).unwrap();
    assert_eq!(found.ids, ["ann", "bob", "eve"]);
    assert_eq!(found.states, States::Labels(vec!["7".into(), "8".into(), "9.0".into()]));
    for (text, problem) in [
        (&b"state,a,state\n7,1,8\n"[..], "found the column 'state' twice"),
        (b"state,a\r\n7,1\r\n\r\n\r\n,1\r\n", "row 5, column state: found no value"),
        (b"state,a\n7,1\n8,\xe9\n", "row 3, column a: found '\u{fffd}', expected UTF-8 text"),
        (b"st\xe9te,a\n7,1\n", "row 1: found bytes that are no UTF-8"),
    ] {
        let error = ask(log, text, &Wanted::default()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// A file compressed by not compressing: deflate has blocks of bytes as they are.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for block in content.chunks(65_535) {
        let length = block.len() as u16;
        out.push(0);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out
}

#[test]
fn the_first_of_two_errors_is_said_whatever_the_number_of_threads() {
    let mut text = String::from("episode,t,state,reward,terminated\n");
    for e in 0..300_000 {
        text += &format!("{e},0,{},{},1\n", e % 7, if e == 150_000 { "x" } else { "1" });
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv.gz");
    fs::write(&path, gzip(text.as_bytes())).unwrap();
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let error = pool.install(|| read_kept(&path, &Wanted::default())).unwrap_err().to_string();
        assert!(error.contains("row 150002, column reward: found 'x'"), "{threads}: {error}");
    }
}

#[test]
fn labels_survive_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("log.csv");
    fs::write(&table, "episode,t,zone,reward,terminated\na,0,7,1,0\na,1,07,1,0\na,2,NA,1,0\na,3,x,2,1\n")
        .unwrap();
    let (reading, kept) = read_kept(&table, &state("zone:label")).unwrap();
    assert_eq!(told(&reading, &kept), ["a: 7 07 NA x | [1.0, 1.0, 1.0, 2.0] terminated"]);
    for name in ["out.csv", "out.tsv", "out.jsonl", "out.npz", "out-v0"] {
        let output = dir.path().join(name);
        let done = convert(&table, &output, &state("zone:label"), &Progress::default()).unwrap();
        assert!(done.warnings.iter().any(|w| w.contains("--state state:label")), "{:?}", done.warnings);
        let wanted = if name == "out-v0" { Wanted::default() } else { state("state:label") };
        let (again, kept_again) = read_kept(&output, &wanted).unwrap();
        assert_eq!(told(&again, &kept_again), told(&reading, &kept), "{name}");
    }
}
