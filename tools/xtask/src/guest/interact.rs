//! `./mac interact`: types at a guest's terminal as a person would, and waits for what should appear.

use super::session::{Kernel, Mode, Printed, Session, Start};
use super::{Request, make};
use crate::boots::without_control_sequences;
use crate::systems::Hardware;
use crate::{build, tap, tree};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Options of `./mac interact`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only scripts whose file name contains this
    filter: Option<String>,
    /// The kernel that the programs run on
    #[arg(long, value_enum, default_value = "macadamia")]
    kernel: Kernel,
    /// How system calls are delivered
    #[arg(long, value_enum, default_value = "exception")]
    mode: Mode,
    #[command(flatten)]
    hardware: Hardware,
}

/// One script of `tests/interactive`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    id: String,
    sentence: String,
    image: String,
    step: Vec<Step>,
}

/// What a person waits for, and types then.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Must appear behind what the steps before have waited for; as shown, without what steers the terminal.
    expect: String,
    /// Seconds to wait then: for programs that throw away what was typed before they began.
    #[serde(default)]
    wait: f32,
    /// What is typed.
    #[serde(default)]
    send: String,
}

/// How long a person waits for one thing to appear.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs the scripts; an error if one of them has failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.kernel == Kernel::Macadamia {
        build::everything(&build::Options::default())?;
    }
    let mut failed = 0;
    let mut count = 0;
    for path in scripts()? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if options.filter.as_deref().is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let script = read(&path)?;
        count += 1;
        let started = Instant::now();
        match play(&script, &name, options) {
            Ok(()) => {
                println!("ok - {} {} ({:.1} s)", script.id, script.sentence, started.elapsed().as_secs_f64())
            }
            Err(error) => {
                failed += 1;
                println!("not ok - {} {}: {error:#}", script.id, script.sentence);
            }
        }
    }
    match (count, failed) {
        (0, _) => bail!("no script matches {:?}", options.filter.as_deref().unwrap_or_default()),
        (_, 0) => Ok(()),
        _ => bail!("{failed} failed"),
    }
}

fn scripts() -> Result<Vec<PathBuf>> {
    let directory = tree::root().join("tests/interactive");
    let entries = fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Script> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let script: Script = toml::from_str(&text).with_context(|| path.display().to_string())?;
    if !tap::is_id(&script.id) {
        bail!("{}: {:?} is not a test id like SHELL0001", path.display(), script.id);
    }
    Ok(script)
}

fn play(script: &Script, name: &str, options: &Options) -> Result<()> {
    let image = make(&Request { name: script.image.clone(), ..Request::default() })?;
    let start = Start {
        kernel: options.kernel,
        mode: options.mode,
        image: image.path,
        command: Vec::new(),
        environment: [("TERM", "vt100"), ("ROWS", "24"), ("COLUMNS", "80")]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .to_vec(),
        machine: options.hardware.machine(),
    };
    let log = tree::target().join("test-logs").join(format!("interact-{name}.log"));
    fs::create_dir_all(log.parent().unwrap_or(Path::new("/")))?;
    let log = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut screen = Screen {
        session: start.start(&format!("interact-{name}"))?,
        printed: Vec::new(),
        shown: String::new(),
        read: 0,
        log,
    };
    for step in &script.step {
        screen.expect(&step.expect)?;
        screen.rest(Duration::from_secs_f32(step.wait))?;
        screen.session.send(step.send.as_bytes());
    }
    screen.ended()
}

/// What the terminal has shown so far.
struct Screen {
    session: Session,
    /// Everything that was printed.
    printed: Vec<u8>,
    /// The same, without what steers the terminal.
    shown: String,
    /// How much of it has been waited for.
    read: usize,
    log: fs::File,
}

impl Screen {
    fn expect(&mut self, text: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown[self.read..].find(text) {
                self.read += at + text.len();
                return Ok(());
            }
            if !self.listen(deadline)? {
                let tail: Vec<&str> = self.shown[self.read..].lines().rev().take(12).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                bail!("{text:?} did not appear; since the step before:\n{}", tail.join("\n"));
            }
        }
    }

    /// Waits for a time.
    fn rest(&mut self, time: Duration) -> Result<()> {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline && self.listen(deadline)? {}
        Ok(())
    }

    /// Waits for the end of the machine.
    fn ended(mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.listen(deadline)? {}
        if Instant::now() < deadline { Ok(()) } else { bail!("the system did not end after the last step") }
    }

    /// Takes what is printed next; false if nothing came until then, or nothing will.
    fn listen(&mut self, deadline: Instant) -> Result<bool> {
        match self.session.printed.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Printed::Terminal(bytes)) => {
                self.log.write_all(&bytes)?;
                self.printed.extend(bytes);
                // A control sequence may come in pieces, so it is left out of the whole.
                self.shown.clear();
                for part in String::from_utf8_lossy(&self.printed).split_inclusive(['\r', '\n']) {
                    let end = part.trim_end_matches(['\r', '\n']).len();
                    self.shown.push_str(&without_control_sequences(&part[..end]));
                    self.shown.push_str(&part[end..]);
                }
                Ok(true)
            }
            Ok(Printed::Log(bytes)) => {
                self.log.write_all(&bytes)?;
                Ok(true)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_of_the_tree_are_valid() {
        let paths = scripts().unwrap();
        assert!(!paths.is_empty());
        let ids: std::collections::HashSet<String> =
            paths.iter().map(|path| read(path).unwrap().id).collect();
        assert_eq!(ids.len(), paths.len());
    }
}
