//! The report in a real browser, light and dark: no overflow, no overlapping text, enough contrast, no console errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Widths of a desktop and of a phone, in CSS pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// Frames the report at every width, measures what it looks like, and says so in the page's own text: the browser
/// prints that as the finished document.
const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><body><pre id="result"></pre><script>
const problems = [];
function overlap(a, b) {
  const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  // Neighbouring lines touch; a third of a line is an overlap.
  return w > 1.5 && h > 0.34 * Math.min(a.height, b.height);
}
function luminance(rgb) {
  const [r, g, b] = rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [x, y] = [luminance(a) + 0.05, luminance(b) + 0.05];
  return Math.max(x, y) / Math.min(x, y);
}
const numbers = color => (color.match(/[\d.]+/g) || []).map(Number);
// What lies behind a text: the last opaque shape before it that covers its middle, or the nearest background.
function behind(element, view) {
  const box = element.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  if (element.tagName === "text")
    for (let other = element.previousElementSibling; other; other = other.previousElementSibling) {
      const style = view.getComputedStyle(other), b = other.getBoundingClientRect();
      if (other.tagName === "path" && style.fill !== "none" && Number(style.fillOpacity) > 0.5
          && b.left <= x && x <= b.right && b.top <= y && y <= b.bottom) return numbers(style.fill);
    }
  for (let other = element; other; other = other.parentElement) {
    const color = numbers(view.getComputedStyle(other).backgroundColor);
    if (color.length === 3) return color;
  }
  return [255, 255, 255];
}
function readable(page, view, width) {
  const own = [...page.querySelectorAll("body *")].filter(e => e.tagName === "text" ||
    (!e.closest("svg") && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())));
  for (const element of own) {
    const style = view.getComputedStyle(element);
    const found = contrast(numbers(element.tagName === "text" ? style.fill : style.color), behind(element, view));
    // Text wants 4.5 to 1 (WCAG 2, AA).
    if (!(found >= 4.5)) problems.push(`width ${width}: '${element.textContent.slice(0, 40)}' has contrast ${found.toFixed(2)}`);
  }
}
function look(frame, width) {
  const page = frame.contentDocument.documentElement;
  if (page.scrollWidth > width) problems.push(`width ${width}: the page is ${page.scrollWidth} wide`);
  readable(page, frame.contentWindow, width);
  const figures = page.querySelectorAll("figure svg");
  if (figures.length < 10) problems.push(`width ${width}: only ${figures.length} figures`);
  for (const svg of figures) {
    const name = svg.querySelector("title").textContent;
    const frameBox = svg.getBoundingClientRect();
    if (frameBox.height < 50) problems.push(`width ${width}: '${name}' is ${frameBox.height} high`);
    const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const [text, box] of texts) {
      if (box.left < frameBox.left - 1 || box.right > frameBox.right + 1 || box.bottom > frameBox.bottom + 1)
        problems.push(`width ${width}: '${name}': '${text}' is clipped`);
    }
    for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++)
      if (overlap(texts[i][1], texts[j][1]))
        problems.push(`width ${width}: '${name}': '${texts[i][0]}' overlaps '${texts[j][0]}'`);
  }
}
let left = WIDTHS.length;
for (const width of WIDTHS) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 800px; border: 0`;
  frame.src = "report.html";
  frame.onload = () => {
    try { look(frame, width); } catch (error) { problems.push(String(error)); }
    if (--left === 0) document.getElementById("result").textContent = "RESULT " + JSON.stringify(problems);
  };
  document.body.append(frame);
}
</script>"#;

/// Opens the report; tells what is wrong with it.
pub fn check(report: &str) -> bool {
    let Some(browser) = provide() else { return false };
    let folder = Path::new(report).parent().unwrap_or(Path::new("."));
    let page = PAGE.replace("WIDTHS", &format!("{WIDTHS:?}"));
    let harness = folder.join("browser-check.html");
    if let Err(error) = fs::write(&harness, page) {
        eprintln!("xtask slow: {}: {error}", harness.display());
        return false;
    }
    let Ok(address) = fs::canonicalize(&harness) else { return false };
    // Blink's numbers for what a reader prefers.
    let fine = [("light", 1), ("dark", 0)]
        .map(|(name, scheme)| look(&browser, &address, &format!("{report}, {name}"), scheme));
    let _ = fs::remove_file(&harness);
    fine == [true, true]
}

fn look(browser: &str, harness: &Path, what: &str, scheme: u8) -> bool {
    let profile = std::env::temp_dir().join(format!("ictd-browser-{}", std::process::id()));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-quic"])
        .args(["--allow-file-access-from-files", "--window-size=1400,900", "--virtual-time-budget=20000"])
        .args(["--enable-logging=stderr", "--log-level=0"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", harness.display()))
        .output();
    let _ = fs::remove_dir_all(&profile);
    let Ok(output) = output else {
        eprintln!("xtask slow: {browser} did not start");
        return false;
    };
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    // Messages of the page itself are logged with CONSOLE.
    let console: Vec<&str> = errors.lines().filter(|line| line.contains("CONSOLE")).collect();
    let result = document.split("RESULT ").nth(1).and_then(|rest| rest.split("</pre>").next());
    eprintln!("xtask slow: {what} in {browser}, {WIDTHS:?} pixels wide: {}", result.unwrap_or("no result"));
    console.iter().for_each(|line| eprintln!("{line}"));
    result == Some("[]") && console.is_empty()
}

/// A Chromium or Chrome that is there, or that could be installed; says what to install where neither is so.
pub fn provide() -> Option<String> {
    let found = find().or_else(|| install().then(find).flatten());
    if found.is_none() {
        eprintln!("xtask: no Chromium found; set CHROMIUM or install it (Debian: apt-get install chromium)");
    }
    found
}

/// Debian's, where we may: other systems have other ways, and a person chooses.
fn install() -> bool {
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        eprintln!("xtask set-up: {apt:?}");
        apt.status().is_ok_and(|status| status.success())
    };
    let may = Command::new("apt-get").arg("--version").output().is_ok_and(|found| found.status.success())
        && Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    may && apt(&["update", "-qq"]) && apt(&["install", "-y", "-qq", "--no-install-recommends", "chromium"])
}

/// Where it is: the driver of the explorer's tests wants a path.
fn find() -> Option<String> {
    let named = std::env::var("CHROMIUM").ok();
    let usual = ["chromium", "chromium-browser", "google-chrome", "chrome"].map(String::from);
    let on_mac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome".to_owned();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    named
        .into_iter()
        .chain(usual)
        .chain([on_mac])
        .flat_map(|name| {
            [PathBuf::new()].iter().chain(&folders).map(|folder| folder.join(&name)).collect::<Vec<_>>()
        })
        .filter(|path| path.is_absolute() && path.is_file())
        .find(|path| Command::new(path).arg("--version").output().is_ok_and(|output| output.status.success()))
        .and_then(|path| path.to_str().map(String::from))
}
