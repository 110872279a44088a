//! Logs that something is wrong with: each is refused in one line that names the place, or read with a warning.
//! One long table, so that a file of the corpus stands beside what is said about it.
#![allow(missing_docs)]

mod common {
    pub mod npz;
}

use std::fs;
use std::path::PathBuf;

use common::npz::{archive, array as npy, doubles};
use ictd_lab::Progress;
use ictd_lab::logs::{Kept, Missing, Wanted, read};

/// What is said about the first bytes of a Parquet file and nothing after them.
const PARQUET: &str = match cfg!(feature = "parquet") {
    true => "found a Parquet file that ends early or is damaged, expected a whole one",
    false => {
        "found Parquet, expected CSV, JSONL, NPZ or HDF5; build with --features parquet or convert it first"
    }
};

/// The same of an Arrow file.
const ARROW: &str = match cfg!(feature = "parquet") {
    true => "found an Arrow file that ends early or is damaged, expected a whole one",
    false => {
        "found Arrow, expected CSV, JSONL, NPZ or HDF5; build with --features parquet or convert it first"
    }
};

/// A file of the corpus: name, content, flags (as `--flag value`), and what is said about it.
struct Case(&'static str, Vec<u8>, &'static str, &'static str);

fn wanted(flags: &str) -> Wanted {
    let mut wanted = Wanted::default();
    let words: Vec<&str> = flags.split_whitespace().collect();
    for pair in words.chunks(2) {
        let value = Some(pair[1].to_owned());
        match pair[0] {
            "--episode" => wanted.episode = value,
            "--time" => wanted.time = value,
            "--state" => wanted.state = value,
            "--reward" => wanted.reward = value,
            "--terminated" => wanted.terminated = value,
            "--truncated" => wanted.truncated = value,
            "--id" => wanted.id = value,
            "--missing" => wanted.missing = pair[1].parse::<Missing>().unwrap(),
            other => panic!("{other}"),
        }
    }
    wanted
}

/// A plain table with one line replaced.
fn csv(line: usize, with: &str) -> Vec<u8> {
    let mut lines: Vec<&str> =
        "episode,t,s_0,s_1,reward,terminated\na,0,1,2,1,0\na,1,2,3,1,0\na,2,3,4,1,1\nb,0,1,1,1,0\nb,1,2,2,,0"
            .lines()
            .collect();
    lines[line - 1] = with;
    lines.join("\n").into_bytes()
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn real(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)).unwrap()
}

fn cut(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    bytes.truncate(length);
    bytes
}

fn refused() -> Vec<Case> {
    let row = |json: &str| {
        text(&format!("{json}\n{{\"episode\":1,\"t\":1,\"state\":2,\"reward\":1,\"terminated\":true}}\n"))
    };
    let mut cases = vec![
        // Cells.
        Case("a.csv", csv(3, "a,1,2,3,abc,0"), "", "row 3, column reward: found 'abc', expected a number"),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,\"1,234\",0"),
            "",
            "row 3, column reward: found '1,234', expected a number without thousands separators",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,\"0,5\",0"),
            "",
            "row 3, column reward: found '0,5', expected a number with a decimal point",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,inf,0"),
            "",
            "row 3, column reward: found 'inf', expected a finite number",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,1e999,0"),
            "",
            "row 3, column reward: found '1e999', expected a finite number",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,,0"),
            "",
            "row 3, column reward: found no value, expected a number (only the last row",
        ),
        Case("a.csv", csv(3, "a,1,2,3,NaN,0"), "--missing mean", "row 3, column reward: found no value"),
        Case("a.csv", csv(3, "a,1,two,3,1,0"), "", "row 3, column s_0: found 'two', expected a number"),
        Case(
            "a.csv",
            csv(3, "a,1,,3,1,0"),
            "",
            "row 3, column s_0: found no value, expected a value (--missing",
        ),
        Case("a.csv", csv(3, "a,1,2,NA,1,0"), "", "row 3, column s_1: found 'NA', expected a value"),
        Case(
            "a.csv",
            csv(3, "a,1,2,-inf,1,0"),
            "--missing drop",
            "row 3, column s_1: found '-inf', expected a finite number",
        ),
        Case("a.csv", csv(3, "a,1,2,$3,1,0"), "", "row 3, column s_1: found '$3', expected a number"),
        Case("a.csv", csv(3, "a,1,2,3%,1,0"), "", "row 3, column s_1: found '3%', expected a number"),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,1,maybe"),
            "",
            "row 3, column terminated: found 'maybe', expected true or false",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,1,2"),
            "",
            "row 3, column terminated: found '2', expected true or false",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,1,"),
            "",
            "row 3, column terminated: found no value, expected true or false",
        ),
        Case(
            "a.csv",
            csv(3, ",1,2,3,1,0"),
            "",
            "row 3, column episode: found no value, expected the name of an episode",
        ),
        Case("a.csv", csv(3, "a,,2,3,1,0"), "", "row 3, column t: found no value, expected a time"),
        Case(
            "a.csv",
            csv(3, "a,soon,2,3,1,0"),
            "",
            "row 3, column t: found 'soon', expected a number or a date",
        ),
        Case(
            "a.csv",
            csv(3, "a,2024-02-30,2,3,1,0"),
            "",
            "row 3, column t: found '2024-02-30', expected a date",
        ),
        Case(
            "a.csv",
            text("episode,date,state,reward\na,2026-01-01T00:00:00+xy:zz,x,1\n"),
            "",
            "row 2, column date: found '2026-01-01T00:00:00+xy:zz', expected a date",
        ),
        Case(
            "a.csv",
            text("episode,t,who,state,reward\na,0,,x,1\n"),
            "--id who",
            "row 2, column who: found no value, expected an id",
        ),
        Case(
            "a.csv",
            [text("episode,t,who,state,reward\na,0,"), b"\xe9,x,1\na,1,\xe8,x,1\n".to_vec()].concat(),
            "--id who",
            "row 2, column who: found '\u{fffd}', expected UTF-8 text",
        ),
        Case(
            "a.csv",
            text("episode,timestamp,state,reward\na,1700000000000000001,x,1\na,1700000000000000002,y,1\n"),
            "",
            "row 3, column timestamp: found 1700000000000000000, expected another time: from 2^53 on",
        ),
        // Rows.
        Case("a.csv", csv(4, "a,1,3,4,1,1"), "", "row 4, column t: found 1, expected another time than"),
        Case("a.csv", csv(3, "a,1.5,2,3,1,0"), "", "row 3, column t: found 1.5, expected a whole number"),
        Case("a.csv", csv(5, "b,-3,1,1,1,0"), "", "row 6, column t: found 1, expected -2 after -3"),
        Case(
            "a.csv",
            text("episode;t;state;reward;terminated\na;0;\"x\"\"q\";1;0\n\n\na;1;y;oops;1\n"),
            "",
            "row 5, column reward: found 'oops', expected a number",
        ),
        Case(
            "a.csv",
            [b"episode,t,\xe9,reward\n".to_vec(), text("a,0,\"x\"\"\",1\n")].concat(),
            "",
            "row 1: found bytes that are no UTF-8",
        ),
        Case("a.csv", csv(3, "a,1,2,3,1"), "", "row 3: found 5 cells, expected 6 as in the header"),
        Case("a.csv", csv(3, "a,1,2,3,1,0,"), "", "row 3: found 7 cells, expected 6"),
        Case("a.csv", csv(3, "a;1;2;3;1;0"), "", "row 3: found 1 cells, expected 6"),
        Case(
            "a.csv",
            csv(3, "episode,t,s_0,s_1,reward,terminated"),
            "",
            "row 3, column t: found 't', expected a number",
        ),
        Case(
            "a.csv",
            csv(3, "a,0,2,3,1,0"),
            "",
            "row 3, column t: found 0, expected another time than that of row 2",
        ),
        Case(
            "a.csv",
            csv(4, "a,3,3,4,1,1"),
            "",
            "row 4, column t: found 3, expected 2 after 1: steps are missing",
        ),
        Case(
            "a.csv",
            csv(3, "a,1,2,3,1,1"),
            "",
            "row 4: found a row after the terminated end of its episode",
        ),
        Case("a.csv", csv(3, "a,1,2,3,1,0\"x"), "", "row 3, column terminated: found '0\"x'"),
        Case("a.csv", csv(6, "b,1,2,2,\"1,0"), "", "row 6: found 5 cells, expected 6"),
        // The header.
        Case("a.csv", text(""), "", "found an empty file, expected a line of column names"),
        Case("a.csv", text("\n\n"), "", "row 1: found '', expected names of columns"),
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\n"),
            "",
            "found no transition in 0 rows, expected one: terminated",
        ),
        Case(
            "a.csv",
            text("1,0,5,1.5,0\n1,1,5,1.5,0\n"),
            "",
            "row 1: found numbers, expected names of columns",
        ),
        Case(
            "a.csv",
            text("episode t state reward\n1 0 5 1\n"),
            "",
            "row 1: found 'episode t state reward', expected names of columns separated by",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_0,reward,terminated"),
            "",
            "row 1: found the column 's_0' twice",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_1,gain,terminated"),
            "",
            "row 1: found the columns episode, t, s_0, s_1, gain, terminated, expected one for rewards",
        ),
        Case(
            "a.csv",
            csv(1, "week,t,s_0,s_1,reward,kind"),
            "",
            "expected one for episodes (episode, episode_id, trajectory, …) or ends",
        ),
        Case("a.csv", text("action,context,pscore,reward\n1,2,0.5,1\n"), "", "logs of single decisions"),
        Case(
            "a.csv",
            text("episode,t,reward,terminated\na,0,1,1\n"),
            "",
            "expected one for the state; name it with --state",
        ),
        Case(
            "a.csv",
            text("episode,done,terminal,state,reward\na,0,0,x,1\n"),
            "",
            "found both 'done' and 'terminal', expected one; in SCOPE-RL",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_1,reward,terminated"),
            "--state age",
            "found no column 'age', expected it for --state",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_1,reward,terminated"),
            "--reward rewards",
            "found no column 'rewards', expected it for --reward; did you mean 'reward'?",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_1,reward,terminated"),
            "--state s_0,s_1:label",
            "found 2 columns, expected one for --state",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_1,reward,terminated"),
            "--episode t --time t",
            "row 1: found 't' for --episode and --time, expected different columns",
        ),
        Case(
            "a.csv",
            csv(1, "episode,t,s_0,s_1,reward,terminated"),
            "--state s_0,reward",
            "row 1: found 'reward' for --state and for another role, expected different columns",
        ),
        Case(
            "a.csv",
            csv(1, "episode\rt\rs_0"),
            "",
            "row 1: found lines that end with CR alone, expected LF or CRLF",
        ),
        Case(
            "a.csv",
            [&[0xff, 0xfe][..], b"e\0p\0"].concat(),
            "",
            "row 1: found UTF-16, expected UTF-8 text",
        ),
        Case(
            "a.csv",
            [b"episode,t,\xe9tat,reward\n".to_vec(), text("a,0,1,1\n")].concat(),
            "",
            "row 1: found bytes that are no UTF-8",
        ),
        Case(
            "a.csv",
            [text("episode,t,state,reward,terminated\na,0,"), b"\xe9,1,1\n".to_vec()].concat(),
            "",
            "row 2, column state: found '\u{fffd}', expected UTF-8 text",
        ),
        Case("a.csv", b"PK\x03\x04 a spreadsheet".to_vec(), "", "row 1: found a zip archive"),
        // States.
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\na,0,1,1,0\na,1,x,1,1\n"),
            "",
            "row 3, column state: found 'x', expected a number as in row 2; if these are labels say --state state:label",
        ),
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\na,0,x,1,0\na,1,7.5,1,1\n"),
            "",
            "row 3, column state: found '7.5', expected text as in row 2",
        ),
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\na,0,\"1,000\",1,0\n"),
            "",
            "row 2, column state: found '1,000', expected a number without thousands separators",
        ),
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\na,0,x,1,0\na,1,,1,1\n"),
            "--missing mean",
            "row 3, column state: found no value, expected a label: labels have no mean",
        ),
        Case(
            "a.csv",
            text("episode,t,s_0,s_1,reward,terminated\na,0,,1,1,1\n"),
            "--missing mean",
            "column s_0: found no value at all, expected some",
        ),
        Case(
            "a.csv",
            text("episode,t,state,next_state,reward,terminated\na,0,x,y,1,0\na,1,z,y,1,1\n"),
            "",
            "row 2, column next_state: found another state than the row after it has",
        ),
        Case("a.csv", text("episode,t,state,reward\na,0,x,1\n"), "", "found no transition in 1 rows"),
        // JSON.
        Case("a.jsonl", text(""), "", "found an empty file, expected JSON"),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":1,\"reward\":\"x\",\"terminated\":false}"),
            "",
            "row 1, column reward: found 'x', expected a number",
        ),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":1,\"reward\":1}"),
            "",
            "row 2: found the key 'terminated', expected those of row 1",
        ),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":1,\"reward\":Infinity,\"terminated\":false}"),
            "",
            "row 1, column reward: found 'Infinity', expected a finite number",
        ),
        Case(
            "a.jsonl",
            text("{\"obs\":[1,-Infinity],\"reward\":1,\"terminated\":true}\n"),
            "--missing mean",
            "row 1, column obs: found '\"-Infinity\"', expected a number",
        ),
        Case(
            "a.jsonl",
            [text("\n{\"state\":\"caf"), b"\xe9\",\"reward\":1,\"terminated\":true}\n".to_vec()].concat(),
            "",
            "row 2: found bytes that are no UTF-8 at byte 14, expected UTF-8 text",
        ),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":null,\"reward\":1,\"terminated\":false}"),
            "",
            "row 1, column state: found no value",
        ),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":NaN,\"reward\":1,\"terminated\":false}"),
            "",
            "row 1, column state: found no value",
        ),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":[1,2],\"reward\":1,\"terminated\":false}"),
            "",
            "row 2, column state: found '2', expected a list as before",
        ),
        Case(
            "a.jsonl",
            row("{\"episode\":1,\"t\":0,\"state\":1,\"reward\":1,\"terminated\":false}\n{\"episode\""),
            "",
            "row 2: found no JSON object",
        ),
        Case(
            "a.jsonl",
            text("{\"obs\":[[1],[2],[3],[4]],\"rewards\":[1,2],\"dones\":[0,1]}\n"),
            "",
            "row 1, column obs: found 4 entries, expected 2 as there are rewards, or one more",
        ),
        Case(
            "a.json",
            text("{\"gamma\": 0.5,\n \"transitions\": [[1]], \"rewards\": [1], \"features\": 1}"),
            "",
            "found a task, expected trajectories",
        ),
        Case(
            "a.json",
            text("{\"features\": [[1], [2]], \"rewards\": [1, 2]}"),
            "",
            "episode 0 has 2 rewards and 2 feature rows, expected one row more",
        ),
        Case(
            "a.json",
            text("{\"features\": [[1], [2, 3]], \"rewards\": [1]}"),
            "",
            "row 1 of episode 0 has 2 entries, expected 1",
        ),
        Case(
            "a.json",
            text("{\"features\": [[1], [Infinity]], \"rewards\": [1]}"),
            "--missing mean",
            "invalid type: string \"Infinity\", expected a number at line 1 column",
        ),
        Case("a.json", text("[]"), "", "found no rows, expected some"),
        // Arrays.
        Case("a.npy", text("hello"), "", "found no signature of NumPy, expected arrays"),
        Case("a.npy", npy("'<f8'", "(3, 5)", &[0; 8]), "", "found 8 bytes of data, expected 15 entries of 8"),
        Case(
            "a.npy",
            npy("'<f8'", "(3,)", &[0; 24]),
            "",
            "found an array of shape [3], expected rows and columns",
        ),
        Case(
            "a.npy",
            npy("'<c16'", "(1, 5)", &[0; 80]),
            "",
            "found entries of type '<c16', expected numbers, booleans or texts",
        ),
        Case("a.npy", npy("'|O'", "(1, 5)", &[0; 80]), "", "found Python objects, expected numbers or texts"),
        Case(
            "a.npy",
            npy("'|S2'", "(2,)", b"ok\xe9\xe8"),
            "",
            "found '\u{fffd}\u{fffd}' in entry 1, expected UTF-8 text",
        ),
        Case("a.npy", npy("[('a', '<f8')]", "(1,)", &[0; 8]), "", "found an array of records"),
        Case("a.npz", cut(real("flat.npz"), 4000), "", "found a zip archive that ends early or is damaged"),
        Case(
            "a.npz",
            archive(&[("r.npy", doubles("(1,)", &[0.0])), ("r", doubles("(1,)", &[1.0]))], false),
            "",
            "r: found two arrays of that name, expected one",
        ),
        // HDF5.
        Case("a.hdf5", text("hello"), "", "found no signature of HDF5, expected an HDF5 file"),
        Case("a.hdf5", cut(real("d4rl.hdf5"), 3000), "", "not an HDF5 file that can be read"),
        Case("a.csv.gz", cut(real("cartpole.hdf5.gz"), 3000), "", "the compressed file ends early"),
        Case("a.feather", text("ARROW1xx"), "", ARROW),
        Case("a.arrow", [255; 40].to_vec(), "", ARROW),
        Case("a.feather", text("FEA1xxxx"), "", "found Feather of the first version, expected the second"),
        Case("a.parquet", text("PAR1xxxx"), "", PARQUET),
        Case("a.parquet", text("episode,reward\n"), "", "found no signature of Arrow or Parquet"),
    ];
    cases.push(Case(
        "a.jsonl",
        text(&format!("{{\"obs\":\"{}\",\"rewards\":[1,2],\"dones\":[0,1]}}\n", "BCJNGGhA".repeat(30))),
        "",
        "row 1, column obs: found packed data, expected lists of numbers (RLlib",
    ));
    cases
}

/// Files that are read, with a warning that the documentation knows.
fn warned() -> Vec<Case> {
    vec![
        Case(
            "a.csv",
            text("episode;t;state;reward;terminated\na;0;x;1;1\n"),
            "",
            "cells are separated by ';', not by commas",
        ),
        Case("a.csv", text("episode,t,state,reward\na,0,x,1\na,1,y,\n"), "", "no column for terminated"),
        Case("a.csv", text("episode,t,state,reward,done\na,0,x,1,1\n"), "", "'done' is taken for terminated"),
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\na,0,x,1,0\na,1,y,1,0\n"),
            "",
            "1 transitions were left out because",
        ),
        Case(
            "a.csv",
            text("episode,t,state,reward,terminated\na,0,x,1,1\nb,0,y,1,0\n"),
            "",
            "1 of 2 episodes have no transition",
        ),
        Case("a.csv", csv(3, "a,1,,3,1,0"), "--missing drop", "1 rows without a value were left out"),
        Case("a.csv", csv(3, "a,1,,3,1,0"), "--missing mean", "1 missing features were replaced by the mean"),
        Case("a.csv", csv(4, "a,5,3,4,1,1"), "--missing drop", "1 gaps cut an episode in two"),
        Case(
            "a.csv",
            text("episode,t,state,reward,done,timeout\na,0,x,1,1,1\na,1,y,,,\n"),
            "",
            "1 ends are marked as done and as truncated, and are taken for truncated",
        ),
        Case(
            "a.csv",
            text("episode,time,state,reward,terminated\na,0,x,1,0\na,1,y,1,0\na,7,x,1,1\n"),
            "",
            "1 steps in time are longer or shorter than others",
        ),
        Case(
            "a.csv",
            text("episode;t;state;reward;terminated\na;0;\"x\"\"\";1;1\n"),
            "",
            "cells are separated by ';', not by commas",
        ),
    ]
}

fn run(case: &Case) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(case.0);
    fs::write(&path, &case.1).unwrap();
    let read = read(&path, &wanted(case.2), || Ok(Kept::default()), &Progress::default());
    read.map(|(reading, _)| reading.warnings).map_err(|error| {
        assert_eq!(error.exit_code(), 2, "{error}");
        let message = error.to_string();
        assert!(message.contains(case.0), "{message} does not name the file");
        message
    })
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_its_place() {
    let cases = refused();
    assert!(cases.len() >= 70, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        match run(case) {
            Ok(_) => wrong.push(format!("read: {:?}, expected {}", String::from_utf8_lossy(&case.1), case.3)),
            Err(message) if !message.contains(case.3) || message.contains('\n') => {
                wrong.push(format!("{message}\n  expected {}", case.3));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_doubtful_is_read_with_a_warning() {
    for case in warned() {
        let warnings = run(&case).unwrap();
        assert!(warnings.iter().any(|w| w.contains(case.3)), "{warnings:?}, expected {}", case.3);
    }
    // What somebody says is not doubtful.
    let said = text("episode,done,terminal,state,reward\na,1,0,x,1\n");
    let case = Case("a.csv", said, "--terminated done --truncated terminal", "");
    assert_eq!(run(&case), Ok(Vec::new()));
}
