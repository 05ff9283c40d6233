//! Tests of commands whose input and output are piped (`tests/piped.toml`): each is a boot, and
//! compares what a command prints, and its status, byte for byte.

use super::session::Start;
use super::streams::Streams;
use super::{Request, at_terminal, make, suite};
use anyhow::{Context, Result, bail};
use mac_build::scratch::file_name;
use mac_build::tree;
use mac_machine::boots::Verdict;
use mac_machine::suites::Run;
use mac_machine::tap::{self, Outcome, Test};
use serde::Deserialize;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A test of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Piped {
    /// The name by which suites choose it.
    name: String,
    pub(super) id: String,
    sentence: String,
    /// The command and its arguments.
    pub(super) command: Vec<String>,
    /// How many bytes are piped in: a fixed sequence in which all values occur.
    #[serde(default)]
    input: u64,
    /// What the command writes to its standard output.
    pub(super) output: Expected,
    /// What the command writes to its standard error.
    #[serde(default)]
    errors: Expected,
    /// The command's exit status, as a shell has it.
    pub(super) status: i32,
    /// Whether the reader of the output closes it when all that is expected has come. Else nothing
    /// more must come.
    #[serde(default)]
    closes: bool,
    /// The command is at a terminal instead: for each text that it shows, what is typed then. All
    /// that it shows in between is compared with `output`, which ends what it shows.
    #[serde(default)]
    pub(super) terminal: Vec<Exchange>,
}

/// What a command shows at a terminal, and what is typed then.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    pub(super) shows: String,
    pub(super) typed: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Expected {
    /// So many bytes of the sequence.
    Sequence(u64),
    /// This text, any number of times if the reader closes the output.
    Text(String),
}

impl Default for Expected {
    fn default() -> Expected {
        Expected::Sequence(0)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    test: Vec<Piped>,
}

impl Piped {
    /// Reads the test of this name.
    pub(super) fn read(name: &str) -> Result<Piped> {
        let path = tree::root().join("tests/piped.toml");
        let table: Table = toml::from_str(&tree::read(&path)?).with_context(|| path.display().to_string())?;
        let test = table.test.into_iter().find(|test| test.name == name);
        let test = test.with_context(|| format!("{}: there is no test {name:?}", path.display()))?;
        if !tap::is_id(&test.id) {
            bail!("{}: {:?} is not a test id like PIPE0001", path.display(), test.id);
        }
        Ok(test)
    }
}

/// Boots each test of a suite, and judges.
pub(super) fn run(run: &Run) -> Result<Verdict> {
    let log = tree::target().join("test-logs").join(format!("{}.log", file_name(&run.name)));
    let started = Instant::now();
    let mut verdict = Verdict { log, ..Verdict::default() };
    for name in &run.suite.piped {
        let test = Piped::read(name)?;
        let wrong = match test.terminal.is_empty() {
            true => play(&test, run, &mut verdict)?,
            false => at_terminal::play(&test, run, &verdict.log)?,
        };
        let outcome = if wrong.is_empty() { Outcome::Passed } else { Outcome::Failed };
        verdict.tail.extend(wrong.iter().map(|wrong| format!("{name}: {wrong}")));
        verdict.tests.push(Test { id: test.id, sentence: test.sentence, outcome });
    }
    verdict.seconds = started.elapsed().as_secs_f64();
    Ok(verdict)
}

/// Runs the command. Returns what was wrong.
fn play(test: &Piped, run: &Run, verdict: &mut Verdict) -> Result<Vec<String>> {
    let request = Request { name: run.suite.image.clone().unwrap_or_default(), ..Request::default() };
    let start = Start {
        kernel: super::Kernel::Macadamia,
        mode: run.mode,
        image: Some(make(&request)?.path),
        command: test.command.clone(),
        streams: [true; 3],
        greet: false,
        environment: Vec::new(),
        machine: run.machine.clone(),
    };
    std::fs::create_dir_all(verdict.log.parent().context("a log has a directory")?)?;
    let mut session = start.start(&run.name)?;
    let [input, output, errors] = std::mem::take(&mut session.streams);
    let mut streams = Streams::default();
    let (got, complaints) =
        (Comparison::with(&test.output, test.closes), Comparison::with(&test.errors, false));
    streams.bring(Sequence::default().take(test.input), input.context("a stream of input")?);
    streams.take(output.context("a stream of output")?, got.clone());
    streams.take(errors.context("a stream of errors")?, complaints.clone());
    let (_, ended) = suite::watch(&mut session, run, &verdict.log)?;
    drop(session);
    let mut wrong = Vec::new();
    match ended {
        Ok(status) if status == test.status => {}
        Ok(status) => wrong.push(format!("the status is {status} instead of {}", test.status)),
        Err(trouble) => wrong.push(trouble),
    }
    wrong.extend(streams.finish().err().map(|error| error.to_string()));
    wrong.extend(got.wrong().map(|wrong| format!("standard output: {wrong}")));
    wrong.extend(complaints.wrong().map(|wrong| format!("standard error: {wrong}")));
    Ok(wrong)
}

/// A sequence of bytes in which all values occur, and no part occurs again soon.
#[derive(Debug)]
struct Sequence(u64);

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence(0x9e37_79b9_7f4a_7c15)
    }
}

impl Sequence {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }
}

impl Read for Sequence {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        bytes.iter_mut().for_each(|byte| *byte = self.next());
        Ok(bytes.len())
    }
}

/// Compares what is written to it with what is expected.
#[derive(Clone, Debug)]
struct Comparison(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    expected: Expected,
    sequence: Sequence,
    /// How many bytes have come, all of them the expected ones.
    right: u64,
    /// Some bytes from the first wrong one on.
    wrong: Vec<u8>,
    closes: bool,
}

/// How often a text is expected from a command whose output is closed.
const REPEATED: u64 = 1000;
/// How many of the wrong bytes are shown.
const SHOWN: usize = 200;

impl Comparison {
    fn with(expected: &Expected, closes: bool) -> Comparison {
        let state = State {
            expected: expected.clone(),
            sequence: Sequence::default(),
            right: 0,
            wrong: Vec::new(),
            closes,
        };
        Comparison(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What differs from what is expected, after everything has been written.
    fn wrong(&self) -> Option<String> {
        let state = self.state();
        if !state.wrong.is_empty() {
            let shown = state.wrong.escape_ascii();
            return Some(format!("after {} right bytes there is \"{shown}\"", state.right));
        }
        let length = state.length();
        (state.right < length).then(|| format!("{} of {length} bytes have come", state.right))
    }
}

impl State {
    /// How many bytes are expected.
    fn length(&self) -> u64 {
        match &self.expected {
            Expected::Sequence(length) => *length,
            Expected::Text(text) if self.closes => text.len() as u64 * REPEATED,
            Expected::Text(text) => text.len() as u64,
        }
    }

    /// The byte that is expected next.
    fn next(&mut self) -> u8 {
        match &self.expected {
            Expected::Sequence(_) => self.sequence.next(),
            Expected::Text(text) => text.as_bytes()[(self.right % text.len() as u64) as usize],
        }
    }
}

impl Write for Comparison {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        for &byte in bytes {
            if state.right == state.length() && state.closes {
                return Err(ErrorKind::BrokenPipe.into());
            }
            if state.wrong.is_empty() && state.right < state.length() && state.next() == byte {
                state.right += 1;
            } else if state.wrong.len() < SHOWN {
                state.wrong.push(byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_machine::suites;
    use std::collections::HashSet;

    #[test]
    fn every_test_belongs_to_a_suite() {
        let path = tree::root().join("tests/piped.toml");
        let table: Table = toml::from_str(&tree::read(&path).unwrap()).unwrap();
        let suites = suites::read(suites::GUESTS).unwrap();
        let chosen: HashSet<&String> = suites.iter().flat_map(|suite| &suite.piped).collect();
        for test in &table.test {
            assert!(chosen.contains(&test.name), "{} belongs to no suite", test.name);
        }
        for name in chosen {
            Piped::read(name).unwrap();
        }
    }

    #[test]
    fn each_value_occurs_in_the_sequence() {
        let mut bytes = [0; 4096];
        Sequence::default().read_exact(&mut bytes).unwrap();
        assert_eq!(bytes.iter().collect::<HashSet<_>>().len(), 256);
    }

    #[test]
    fn what_differs_is_noticed() {
        let mut sequence = [0; 100];
        Sequence::default().read_exact(&mut sequence).unwrap();
        let judged = |expected: &Expected, bytes: &[u8]| {
            let mut comparison = Comparison::with(expected, false);
            bytes.chunks(7).for_each(|part| comparison.write_all(part).unwrap());
            comparison.wrong()
        };
        let (bytes, text) = (Expected::Sequence(100), Expected::Text("yes\n".into()));
        assert_eq!((judged(&bytes, &sequence), judged(&text, b"yes\n")), (None, None));
        assert_eq!(judged(&Expected::default(), b""), None);
        assert_eq!(judged(&bytes, &sequence[..99]).unwrap(), "99 of 100 bytes have come");
        assert!(judged(&bytes, &[&sequence[..], b"x"].concat()).unwrap().starts_with("after 100 "));
        assert_eq!(judged(&text, b"yes\r\n").unwrap(), "after 3 right bytes there is \"\\r\\n\"");
        assert!(judged(&Expected::default(), b"warning").is_some());
    }

    #[test]
    fn a_reader_that_closes_reads_enough_and_no_more() {
        let mut comparison = Comparison::with(&Expected::Text("y\n".into()), true);
        let all = "y\n".repeat(REPEATED as usize);
        comparison.write_all(all.as_bytes()).unwrap();
        assert_eq!(comparison.wrong(), None);
        assert_eq!(comparison.write_all(b"y\n").unwrap_err().kind(), ErrorKind::BrokenPipe);
        let comparison = Comparison::with(&Expected::Text("y\n".into()), true);
        assert!(comparison.wrong().is_some());
    }
}
