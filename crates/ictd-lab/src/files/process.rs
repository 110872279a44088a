//! What is known about the running process and its machine.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// Size and time of the executable, which change whenever it is built anew from other sources; never twice the same where the
/// system does not tell, so that nothing is taken for the work of the same program.
pub fn build_stamp() -> String {
    let nanoseconds = |t: SystemTime| t.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let stamp = std::env::current_exe()
        .and_then(std::fs::metadata)
        .and_then(|m| Ok(format!("{} {}", m.len(), nanoseconds(m.modified()?))));
    stamp.unwrap_or_else(|_| format!("unknown {} {}", std::process::id(), nanoseconds(SystemTime::now())))
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
