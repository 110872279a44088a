//! What is known about the running process and its machine.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::hex;

/// The processor's name, where the system tells.
pub fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name"));
    line.map_or_else(|| "unknown".into(), |rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
}

/// The largest memory the process has had, where the system tells.
pub fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The machine's name, where the system tells.
pub fn host_name() -> Option<String> {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    told.or_else(|| std::env::var("HOSTNAME").ok()).map(|n| n.trim().to_owned()).filter(|n| !n.is_empty())
}

/// What tells this moment of this process from others, on other machines too: host, number and time, as `node1-4711-5f3a1c`. Numbers
/// of processes are given out again, and machines that share a file system give out the same ones.
pub(crate) fn moment() -> String {
    let host = host_name().unwrap_or_else(|| "host".into());
    let host: String = host.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("{host}-{}-{now:x}", std::process::id())
}

/// Whether a text may come from [`moment`].
pub(crate) fn is_moment(text: &str) -> bool {
    let mut parts = text.rsplitn(3, '-');
    let time = parts.next().is_some_and(|time| u128::from_str_radix(time, 16).is_ok());
    let number = parts.next().is_some_and(|number| number.parse::<u32>().is_ok());
    time && number && parts.next().is_some_and(|host| host.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The file that has the code of this library, where that is not the executable.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Says which file has the code, for a library that some other program has loaded. What is said first stands, and nothing
/// changes once the digest was asked for.
pub fn set_program(library: PathBuf) {
    let _ = LIBRARY.set(library);
}

/// SHA-256 of the executable, which stands for the code: another program may compute something else. Never twice the same
/// where it cannot be read, so that nothing is taken for the work of the same program.
pub fn program_sha256() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| {
        let program = LIBRARY.get().cloned().map_or_else(std::env::current_exe, Ok);
        let digest = program.and_then(File::open).and_then(sha256_of);
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        digest.unwrap_or_else(|_| format!("unknown {} {}", std::process::id(), now()))
    })
}

/// The digest of a file that may be large.
pub(crate) fn sha256_of(mut file: File) -> std::io::Result<String> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// A time as `YYYY-MM-DDThh:mm:ssZ`.
pub fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of year 0, so that leap days come last in a year: 400 years have 146097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 153 days per five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
