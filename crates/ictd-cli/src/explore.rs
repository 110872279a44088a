//! `ictd explore`.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ictd_lab::files::OutputDir;
use ictd_lab::{LabError, Progress};

use crate::{Outcome, message, print_data};

/// The page's name where it is built and where it is written.
const NAME: &str = "ictd-explorer.html";
/// How often a stop is looked for while nobody asks.
const TICK: Duration = Duration::from_millis(20);
/// Time that a browser has to ask and to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request that are read; its first line is what counts.
const REQUEST: usize = 8192;

#[derive(Debug, Args)]
pub struct Arguments {
    /// File to write [default: ictd-explorer.html]
    #[arg(long, value_name = "FILE", conflicts_with = "port")]
    out: Option<PathBuf>,
    /// Serve the page on 127.0.0.1 at this port instead, until Ctrl-C; 0 takes a free one
    #[arg(long, value_name = "N")]
    port: Option<u16>,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let page = page()?;
    match arguments.port {
        Some(port) => serve(&page, port, progress),
        None => {
            let path = arguments.out.unwrap_or_else(|| NAME.into());
            write(&path, &page)?;
            print_data(&format!("{}\n", path.display()))?;
            Ok(Outcome::Success)
        }
    }
}

/// The page, from beside the binary or from where it is built.
fn page() -> Result<Vec<u8>, LabError> {
    let binary = std::env::current_exe().unwrap_or_default();
    let beside = binary.parent().unwrap_or(Path::new(""));
    let built = Path::new("explorer").join(NAME);
    let places = [beside.join(NAME), beside.join("..").join(&built), Path::new("target").join(built)];
    let Some(path) = places.into_iter().find(|path| path.is_file()) else {
        let problem = "not there; `cargo xtask explorer` in the repository builds it";
        return Err(LabError::refused(NAME, problem));
    };
    std::fs::read(&path).map_err(|source| LabError::Read { path, source })
}

fn write(path: &Path, page: &[u8]) -> Result<(), LabError> {
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| !path.is_dir());
    let name = name.ok_or_else(|| {
        LabError::value("out", format!("'{}'", path.display()), "the name of a file, as page.html")
    })?;
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    OutputDir::create(folder)?.write(name, page)
}

/// Answers browsers on this machine, one after the other, until it is stopped.
fn serve(page: &[u8], port: u16, progress: &Progress) -> Result<Outcome, LabError> {
    let failed = |source| LabError::Write { path: format!("127.0.0.1:{port}").into(), source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = format!("http://{}/", listener.local_addr().map_err(failed)?);
    print_data(&format!("{address}\n"))?;
    message("Ctrl-C ends it");
    progress.begin(format!("serving {address}"), "", 0)?;
    loop {
        progress.check()?;
        match listener.accept() {
            // That a browser goes away is its own affair.
            Ok((stream, _)) => drop(answer(stream, page)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(TICK),
            Err(error) => return Err(failed(error)),
        }
    }
}

fn answer(mut stream: TcpStream, page: &[u8]) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while request.len() < REQUEST && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => break,
            read => request.extend_from_slice(&part[..read]),
        }
    }
    let (is_head, is_page) = (
        request.starts_with(b"HEAD "),
        [&b"GET / "[..], b"GET /?", b"HEAD / "].iter().any(|r| request.starts_with(r)),
    );
    let (status, body) = if is_page { ("200 OK", page) } else { ("404 Not Found", &b"not found\n"[..]) };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if is_head { Ok(()) } else { stream.write_all(body) }
}
