//! Task files by the names that configurations give them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::context::read_bytes;
use super::output::OutputDir;
use super::task::{NamedTask, read_task, task_of};
use crate::LabError;
use crate::files::sha256;

/// Task files that are what they were when they were named, wherever a command is given and whatever became of them since. A name
/// that is not among them is a file of the working directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskFiles(Vec<KeptTask>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptTask {
    /// What configurations call it.
    name: String,
    /// SHA-256 of its content.
    sha256: String,
    /// Where the content is: nowhere yet in what was just deserialized.
    #[serde(skip)]
    content: Content,
    /// Read once: every setting of a sweep asks for it.
    #[serde(skip)]
    task: Arc<OnceLock<NamedTask>>,
}

#[derive(Clone, Debug)]
enum Content {
    Bytes(Arc<[u8]>),
    File(PathBuf),
}

impl Default for Content {
    fn default() -> Self {
        Self::File(PathBuf::new())
    }
}

impl PartialEq for KeptTask {
    /// The same name and content.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.sha256) == (&other.name, &other.sha256)
    }
}

impl KeptTask {
    /// The content, as it was when it was named.
    fn bytes(&self) -> Result<Arc<[u8]>, LabError> {
        let path = match &self.content {
            Content::Bytes(bytes) => return Ok(bytes.clone()),
            Content::File(path) => path,
        };
        let bytes = read_bytes(path)?;
        if sha256(&bytes) != self.sha256 {
            let problem =
                format!("not the task file '{}' that was named, expected an undamaged file", self.name);
            return Err(LabError::parse(path, problem));
        }
        Ok(bytes.into())
    }

    /// Where a copy of it is, in a directory of copies.
    fn copy(&self) -> String {
        format!("{}.json", self.sha256)
    }
}

impl TaskFiles {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a name is among them.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|kept| kept.name == name)
    }

    /// Takes the file at a path under a name, in the place of another of that name.
    pub fn keep(&mut self, name: &str, path: &Path) -> Result<(), LabError> {
        let bytes: Arc<[u8]> = read_bytes(path)?.into();
        self.0.retain(|kept| kept.name != name);
        let (name, sha256) = (name.to_owned(), sha256(&bytes));
        self.0.push(KeptTask { name, sha256, content: Content::Bytes(bytes), task: Arc::default() });
        Ok(())
    }

    /// The task of a name.
    pub fn read(&self, name: &str) -> Result<NamedTask, LabError> {
        let Some(kept) = self.0.iter().find(|kept| kept.name == name) else {
            return read_task(Path::new(name));
        };
        if let Some(task) = kept.task.get() {
            return Ok(task.clone());
        }
        let task = task_of(Path::new(name), &kept.bytes()?)?;
        Ok(kept.task.get_or_init(|| task).clone())
    }

    /// The first of them that another list does not have, or has with another content.
    pub fn first_other(&self, others: &Self) -> Option<&str> {
        self.0.iter().find(|kept| !others.0.contains(kept)).map(|kept| kept.name.as_str())
    }

    /// What is in them, to be written after a directory that they lie in was cleared.
    pub fn contents(&self) -> Result<Vec<(String, Arc<[u8]>)>, LabError> {
        self.0.iter().map(|kept| Ok((kept.copy(), kept.bytes()?))).collect()
    }

    /// Writes them to a directory of copies, as far as they are not there.
    pub fn write(contents: &[(String, Arc<[u8]>)], folder: &OutputDir) -> Result<(), LabError> {
        let new = contents.iter().filter(|(name, _)| !folder.path().join(name).exists());
        new.into_iter().try_for_each(|(name, bytes)| folder.write(name, bytes))
    }

    /// The same files, read from a directory of copies.
    pub fn copied_to(mut self, folder: &Path) -> Self {
        self.0.iter_mut().for_each(|kept| kept.content = Content::File(folder.join(kept.copy())));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COIN: &str = r#"{"gamma": 0.5, "transitions": [[0.5, 0.5], [0.5, 0.5]], "rewards": [1, 0], "features": [[1, 0], [0, 1]]}"#;

    #[test]
    fn what_was_named_stays_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("coin.json");
        std::fs::write(&path, COIN).unwrap();
        let mut files = TaskFiles::default();
        files.keep("coin", &path).unwrap();
        let before = files.clone();
        std::fs::write(&path, COIN.replace("[1, 0]", "[2, 0]")).unwrap();
        let read = files.read("coin").unwrap();
        assert_eq!(read.name, "coin");
        assert_eq!(read.task, before.read("coin").unwrap().task);
        files.keep("coin", &path).unwrap();
        assert_ne!(read.task, files.read("coin").unwrap().task);
        assert_eq!(before.first_other(&files), Some("coin"));
        assert!(!files.has("dice") && files.read("dice").is_err());
    }

    #[test]
    fn copies_are_read_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("coin.json");
        std::fs::write(&path, COIN).unwrap();
        let mut files = TaskFiles::default();
        files.keep("coin", &path).unwrap();
        let folder = OutputDir::create(&dir.path().join("copies")).unwrap();
        TaskFiles::write(&files.contents().unwrap(), &folder).unwrap();
        // As a manifest has them: names and digests alone.
        let text = serde_json::to_string(&files).unwrap();
        let read = || serde_json::from_str::<TaskFiles>(&text).unwrap().copied_to(folder.path());
        assert_eq!(read(), files);
        assert_eq!(read().read("coin").unwrap().task, files.read("coin").unwrap().task);
        let copy = folder.path().join(files.0[0].copy());
        std::fs::write(&copy, COIN.replace("0.5,", "0.50,")).unwrap();
        let error = read().read("coin").unwrap_err().to_string();
        assert!(error.contains("not the task file 'coin' that was named"), "{error}");
    }
}
