//! `ictd explore` writes and serves the page where it is built, and says how to build it where it is not.
#![allow(missing_docs)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PAGE: &str = "<!doctype html><title>a page</title>";

/// A folder of its own with the binary in it, far from what the repository has built.
fn installed() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("bin").join("ictd");
    fs::create_dir(dir.path().join("bin")).unwrap();
    // A link where there can be one: what another test starts while a copy is being written keeps it open, and then it cannot be run.
    let built = assert_cmd::cargo::cargo_bin("ictd");
    fs::hard_link(&built, &binary).or_else(|_| fs::copy(&built, &binary).map(|_| ())).unwrap();
    (dir, binary)
}

fn explore(binary: &Path, dir: &Path, arguments: &[&str]) -> Output {
    Command::new(binary).current_dir(dir).arg("explore").args(arguments).output().unwrap()
}

#[test]
fn the_page_is_written_from_where_it_is_found() {
    let (dir, binary) = installed();
    let missing = explore(&binary, dir.path(), &[]);
    let message = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(message.contains("cargo xtask explorer") && message.lines().count() == 1, "{message}");
    for place in ["bin", "explorer", "target/explorer"] {
        let folder = dir.path().join(place);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ictd-explorer.html"), PAGE).unwrap();
        for (arguments, path) in [(&[][..], "ictd-explorer.html"), (&["--out", "a/page.html"], "a/page.html")]
        {
            let done = explore(&binary, dir.path(), arguments);
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(String::from_utf8(done.stdout).unwrap().trim_end(), path);
            assert_eq!(fs::read_to_string(dir.path().join(path)).unwrap(), PAGE);
        }
        let refused = explore(&binary, dir.path(), &["--out", "bin"]);
        assert_eq!(refused.status.code(), Some(2));
        fs::remove_dir_all(dir.path().join("a")).unwrap();
        fs::remove_file(folder.join("ictd-explorer.html")).unwrap();
    }
}

#[test]
fn the_page_is_served_to_this_machine() {
    let (dir, binary) = installed();
    fs::write(dir.path().join("bin/ictd-explorer.html"), PAGE).unwrap();
    let mut server = Command::new(&binary)
        .current_dir(dir.path())
        .args(["explore", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let asked = |request: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = asked("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with(PAGE), "{page}");
    assert!(asked("HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    for other in ["GET /other HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "\r\n\r\n"] {
        assert!(asked(other).starts_with("HTTP/1.1 404"), "{other}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
