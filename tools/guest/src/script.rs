//! Scripts of interactive sessions (`tests/interactive`): what is typed at a shell, and what should
//! appear then.

use super::host::Action;
use anyhow::{Context, Result, bail};
use mac_build::tree;
use mac_machine::tap;
use serde::Deserialize;
use std::path::PathBuf;

/// One script: a test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) id: String,
    pub(super) sentence: String,
    pub(super) steps: Vec<Step>,
    /// Whether the screen at the end is the same under Debian's own kernel; otherwise the reason.
    #[serde(default)]
    pub(super) differs: Option<String>,
    /// Why the script cannot be played under Debian's own kernel at all.
    #[serde(default)]
    pub(super) only_here: Option<String>,
    /// How it ends the system, if it does not come back to the prompt.
    #[serde(default)]
    pub(super) ends: Option<Ending>,
}

/// What becomes of the machine at the end of a script.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ending {
    /// It stops.
    Stop,
    /// It starts again, from the same image or disk.
    Restart,
    /// The emulator is killed, as if the power failed, and the machine starts again.
    Kill,
}

/// One step of a session: what is typed, and what the session then waits for. The fields that are
/// given take effect in the order in which they stand here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// Nothing is done before the machine rests. Programs may have a moment in which they miss what
    /// is typed immediately after they have printed something, whatever system they run on.
    #[serde(default)]
    pub(super) rested: bool,
    /// The window gets this size: rows and columns.
    #[serde(default)]
    pub(super) resize: Option<[u16; 2]>,
    /// The command that QEMU's monitor gets; it must say nothing to it.
    #[serde(default)]
    pub(super) monitor: Option<String>,
    /// What the host does, to its end. Only suites with a network have it.
    #[serde(default)]
    pub(super) host: Option<Action>,
    /// What is typed; \u0003 is Ctrl-C.
    #[serde(default, rename = "type")]
    pub(super) keys: String,
    /// How often.
    #[serde(default = "once")]
    pub(super) times: usize,
    /// Must appear after what was waited for before, as shown, without what steers the terminal.
    #[serde(default)]
    pub(super) expect: Vec<String>,
    /// Lines with this in them must stand on the screen at the same time.
    #[serde(default)]
    pub(super) screen: Vec<String>,
    /// The prompt must come back.
    #[serde(default)]
    pub(super) prompt: bool,
    /// For how many seconds the session waits for each of these.
    #[serde(default = "patience")]
    pub(super) patience: u64,
    /// A picture of the screen then, for the documentation.
    #[serde(default)]
    pub(super) picture: Option<String>,
}

fn once() -> usize {
    1
}

fn patience() -> u64 {
    120
}

/// Where scripts are.
fn directory() -> PathBuf {
    tree::root().join("tests/interactive")
}

/// The file that holds what the screen shows at a script's end under Debian's own kernel.
pub(super) fn recording(name: &str) -> PathBuf {
    directory().join("expected").join(format!("{name}.txt"))
}

impl Script {
    /// Reads the script of this name.
    pub(super) fn read(name: &str) -> Result<Script> {
        let path = directory().join(format!("{name}.toml"));
        let script: Script =
            toml::from_str(&tree::read(&path)?).with_context(|| path.display().to_string())?;
        if !tap::is_id(&script.id) {
            bail!("{}: {:?} is not a test id like SHELL0001", path.display(), script.id);
        }
        Ok(script)
    }

    /// Whether its screen is compared with the one under Debian's own kernel.
    pub(super) fn is_compared(&self) -> bool {
        self.differs.is_none() && self.only_here.is_none() && self.ends.is_none()
    }
}

/// A screen's text without what is another at each run: the process ids that a shell tells of its
/// jobs.
pub(super) fn comparable(text: &str) -> String {
    let line = |line: &str| {
        let job = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        match job {
            Some((number, id)) if is_number(number) && is_number(id) => format!("[{number}] PID\n"),
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_machine::suites;
    use std::collections::HashSet;
    use std::fs;

    #[test]
    fn every_script_is_valid_belongs_to_a_suite_and_is_recorded_if_it_is_compared() {
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for suite in suites::read(suites::GUESTS).unwrap() {
            for name in &suite.interactive {
                let script = Script::read(name).unwrap();
                // A script may be in several suites, each with another machine.
                let is_new = names.insert(format!("{name}.toml"));
                assert!(!is_new || ids.insert(script.id.clone()), "{name} is not the only {}", script.id);
                let is_recorded = recording(name).is_file();
                assert!(
                    suite.pending.is_some() || is_recorded == script.is_compared(),
                    "{name}: ./mac record"
                );
            }
        }
        for entry in fs::read_dir(directory()).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(!name.ends_with(".toml") || names.contains(&name), "{name} belongs to no suite");
        }
    }

    #[test]
    fn the_book_compares_what_each_script_does_with_linux() {
        let book = fs::read_to_string(tree::root().join("docs/src/at-the-shell.md")).unwrap();
        for suite in suites::read(suites::GUESTS).unwrap() {
            for name in &suite.interactive {
                let row = format!("| `{name}` |");
                assert!(book.contains(&row), "{name} is not in docs/src/at-the-shell.md");
            }
        }
    }

    #[test]
    fn process_ids_are_not_compared() {
        assert_eq!(comparable("[1] 312\n[2]+ Done  [3] 4\n[x] 3\n"), "[1] PID\n[2]+ Done  [3] 4\n[x] 3\n");
    }
}
