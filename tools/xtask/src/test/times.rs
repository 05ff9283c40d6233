//! The duration of each suite. It is kept in `target/test-times.json`, so that the next run can
//! begin with the longest.

use anyhow::{Context, Result};
use mac_build::tree;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// How many of the slowest suites the report names.
const SLOWEST: usize = 10;

/// The durations of runs in seconds, by name.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// The durations of the last time that each was run, including this run of the tests.
    known: BTreeMap<String, f64>,
    /// The durations in this run of the tests.
    now: Vec<(String, f64)>,
}

fn file() -> PathBuf {
    tree::target().join("test-times.json")
}

impl Times {
    /// Reads the durations of earlier runs. None are known in a new tree, or if the file cannot be
    /// parsed.
    pub(crate) fn read() -> Times {
        let known = fs::read_to_string(file()).ok().and_then(|text| serde_json::from_str(&text).ok());
        Times { known: known.unwrap_or_default(), now: Vec::new() }
    }

    /// The duration of a run when it was last made.
    pub(crate) fn of(&self, name: &str) -> Option<f64> {
        self.known.get(name).copied()
    }

    pub(crate) fn add(&mut self, name: &str, seconds: f64) {
        let seconds = (seconds * 10.0).round() / 10.0;
        self.known.insert(name.into(), seconds);
        self.now.push((name.into(), seconds));
    }

    /// The slowest runs of these tests, the longest first.
    fn slowest(&self) -> Vec<&(String, f64)> {
        let mut all: Vec<_> = self.now.iter().collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all.truncate(SLOWEST);
        all
    }

    /// Prints the slowest runs and writes the file, if there are new durations.
    pub(crate) fn close(&self) -> Result<()> {
        if self.now.is_empty() {
            return Ok(());
        }
        for (name, seconds) in self.slowest() {
            println!("# {seconds:6.1} s: {name}");
        }
        let text = serde_json::to_string_pretty(&self.known)? + "\n";
        fs::create_dir_all(tree::target())?;
        fs::write(file(), text).with_context(|| format!("cannot write {}", file().display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_this_run_are_named() {
        let mut times = Times { known: [("old".into(), 900.0), ("c".into(), 1.0)].into(), now: Vec::new() };
        for (index, name) in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"].iter().enumerate() {
            times.add(name, index as f64 + 0.04);
        }
        let slowest: Vec<_> = times.slowest().into_iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(slowest, ["l", "k", "j", "i", "h", "g", "f", "e", "d", "c"]);
        assert_eq!((times.of("c"), times.of("old"), times.of("new")), (Some(2.0), Some(900.0), None));
    }
}
