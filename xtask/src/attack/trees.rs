//! Directories as what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files by their paths, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Tree {
    /// What is there; links are not followed, and a directory that is not there has nothing in it.
    pub fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        tree.collect(root, Path::new(""));
        tree
    }

    fn collect(&mut self, root: &Path, below: &Path) {
        for entry in fs::read_dir(root.join(below)).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.collect(root, &path),
                Ok(kind) if kind.is_file() => {
                    self.files.insert(path.clone(), fs::read(root.join(&path)).unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    /// Writes it all below a directory.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        fs::create_dir_all(root)?;
        for (path, bytes) in &self.files {
            let path = root.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, bytes)?;
        }
        Ok(())
    }

    /// The part of which the paths are wanted.
    pub fn only(mut self, is_wanted: impl Fn(&str) -> bool) -> Self {
        self.files.retain(|path, _| is_wanted(&path.to_string_lossy()));
        self
    }

    /// Paths that end so.
    pub fn ending(&self, ending: &str) -> Vec<&Path> {
        let paths = self.files.keys().map(PathBuf::as_path);
        paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
    }

    /// The first difference in words, from what was expected; times are not compared.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        let lost = self.lost(expected);
        let names = |tree: &Self| -> BTreeSet<PathBuf> { tree.plain().into_keys().collect() };
        let extra = || names(self).difference(&names(expected)).next().cloned();
        let timed = |tree: &Self| -> Vec<PathBuf> {
            tree.files.keys().filter(|path| without_times(path).1).cloned().collect()
        };
        lost.or_else(|| extra().map(|path| format!("{} is left behind", path.display()))).or_else(|| {
            let (found, wanted) = (timed(self), timed(expected));
            (found.len() != wanted.len()).then(|| format!("{found:?} instead of {wanted:?}"))
        })
    }

    /// The first file in words that was expected and is not there, or differs; times are not compared.
    pub fn lost(&self, expected: &Self) -> Option<String> {
        let (found, wanted) = (self.plain(), expected.plain());
        let missing = wanted.keys().find(|path| !found.contains_key(*path));
        let differs = wanted.iter().find(|(path, bytes)| found.get(*path).is_some_and(|f| f != *bytes));
        missing
            .map(|path| format!("{} is missing", path.display()))
            .or_else(|| differs.map(|(path, _)| format!("{} differs", path.display())))
    }

    /// Its files without locks and without times.
    fn plain(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let plain = |(path, bytes): (&PathBuf, &Vec<u8>)| {
            let (path, has_times) = without_times(path);
            let bytes = if path.ends_with("result.json") { without_digests(bytes) } else { bytes.clone() };
            (path, if has_times { Vec::new() } else { bytes })
        };
        self.files.iter().filter(|(path, _)| !is_lock(path)).map(plain).collect()
    }
}

/// The path without the time in its name, and whether what is in it depends on the time.
pub fn without_times(path: &Path) -> (PathBuf, bool) {
    let name = path.file_name().map_or("".into(), |name| name.to_string_lossy());
    if name.starts_with("events.out.tfevents") {
        return (path.with_file_name("events"), true);
    }
    (path.to_owned(), matches!(&*name, "provenance.json" | "timings.json"))
}

/// A result without what it says of files, some of which have times in them.
fn without_digests(bytes: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return bytes.to_vec() };
    if let Some(entries) = value.as_object_mut() {
        entries.retain(|name, _| name != "files" && name != "sha256");
    }
    value.to_string().into_bytes()
}

/// Locks may stay: what holds them is the process, not the file.
fn is_lock(path: &Path) -> bool {
    let name = path.file_name().map_or("".into(), |name| name.to_string_lossy());
    name.ends_with(".lock") || name == "lock"
}

/// An empty directory.
pub fn fresh(path: &Path) -> io::Result<()> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path)
}
