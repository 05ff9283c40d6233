//! Boots a suite on one machine, and judges it by its output.

use crate::patience::Clock;
use crate::suites::{Expectation, Run};
use crate::symbolise::Symboliser;
use crate::tap::{Outcome, Report, Test};
use crate::{image, keys, monitor, picture};
use anstream::adapter::strip_str;
use anyhow::{Context, Result, bail};
use mac_build::scratch::{Guard, Scratch, file_name, pass_on};
use mac_build::tree;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The result of a boot.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The tests, in the order in which they were reported.
    pub tests: Vec<Test>,
    /// Whether the plan of the tests was printed, so that the machine got as far as running them.
    pub announced: bool,
    /// The JSON lines that the programs printed.
    pub records: Vec<Value>,
    /// Failures that do not belong to a test: the machine hung, ended early, or announced too few
    /// tests. Each counts as a failure.
    pub failures: Vec<String>,
    /// The last lines of the console, with the addresses of backtraces explained, and the machine's
    /// state if it hung.
    pub tail: Vec<String>,
    /// How many seconds the boot took.
    pub seconds: f64,
    /// The file that has the whole console output.
    pub log: PathBuf,
}

impl Verdict {
    /// How many tests failed, plus the other failures.
    pub fn failed(&self) -> usize {
        self.failures.len() + self.tests.iter().filter(|test| test.outcome == Outcome::Failed).count()
    }

    /// How many tests passed.
    pub fn passed(&self) -> usize {
        self.tests.iter().filter(|test| test.outcome == Outcome::Passed).count()
    }
}

/// How many console lines a failure report shows.
const TAIL: usize = 40;

/// How long a machine may print after its last test, so that a crash directly after it is seen.
const GRACE: Duration = Duration::from_millis(300);

/// How long the screen may take to show what is expected.
const SCREEN: Duration = Duration::from_secs(60);

/// How long the console must be silent before a hung machine's report of its state counts as
/// complete.
pub const ANSWER: Duration = Duration::from_secs(2);

/// Boots a suite of native programs, watches its output, stops the machine and judges. Returns an
/// error only if the machine could not be started.
pub fn run(run: &Run) -> Result<Verdict> {
    let scratch = Scratch::new(&run.name)?;
    let mut machine = run.machine.clone();
    if !machine.boot.imageless() && machine.image.is_none() {
        machine.image = Some(image::cached(&machine)?);
    }
    let socket = scratch.0.join("monitor");
    let mut command = machine.command(&scratch.0)?;
    command.args(["-serial", "stdio"]);
    monitor::listen(&mut command, &socket)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let log = tree::target().join("test-logs").join(format!("{}.log", file_name(&run.name)));
    let started = Instant::now();
    let mut child = Guard(command.spawn().context("cannot start QEMU")?);
    let console = Console::attach(&mut child.0, &log, socket)?;
    let symboliser = Symboliser::new(machine.files().iter().map(PathBuf::as_path).collect::<Vec<_>>());
    let mut verdict = console.watch(run, &symboliser);
    drop(child);
    verdict.seconds = started.elapsed().as_secs_f64();
    verdict.log = log;
    Ok(verdict)
}

/// Prints the result of a run: each test that did not pass, and the end of the console if a test
/// failed.
pub fn show(run: &Run, verdict: &Verdict) {
    let word = if verdict.failed() == 0 { "ok" } else { "not ok" };
    println!("{word} - {} ({} tests, {:.1} s)", run.name, verdict.tests.len(), verdict.seconds);
    for test in &verdict.tests {
        match &test.outcome {
            Outcome::Passed => {}
            Outcome::Failed => println!("    failed: {} {}", test.id, test.sentence),
            Outcome::Skipped(reason) => println!("    skipped: {} {} ({reason})", test.id, test.sentence),
        }
    }
    for failure in &verdict.failures {
        println!("    failed: {failure}");
    }
    if verdict.failed() > 0 {
        println!("    this suite: {}", run.suite.about);
        println!("    the console's last lines (all of them: {}):", verdict.log.display());
        for line in &verdict.tail {
            println!("    | {line}");
        }
    }
}

/// The console of a running machine.
struct Console {
    output: Receiver<Heard>,
    /// The clock of the machine's processes, which stands still while the host is busy with others.
    clock: Clock,
    input: ChildStdin,
    log: fs::File,
    socket: PathBuf,
    /// The incomplete last lines: one of the machine's console, and one of QEMU's own output.
    partial: Vec<u8>,
    complaint: Vec<u8>,
    lines: Vec<String>,
}

/// Output of a machine.
enum Heard {
    /// Output of the console.
    Console(Vec<u8>),
    /// Output of QEMU itself. It may come at any moment, also in the middle of a line of the
    /// console.
    Emulator(Vec<u8>),
}

/// Why the machine is not watched any more.
enum Stop {
    /// All announced tests and expected texts have been seen.
    Complete,
    /// The machine was silent for too long, and its processors are idle.
    Hung,
    /// QEMU has ended.
    Ended,
    /// The machine was busy for longer than its limit.
    GivenUp,
}

impl Console {
    fn attach(child: &mut Child, log: &std::path::Path, socket: PathBuf) -> Result<Console> {
        fs::create_dir_all(log.parent().unwrap_or(log))?;
        let log = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let input = child.stdin.take().context("QEMU without standard input")?;
        let (sender, output) = channel();
        let stdout = child.stdout.take().context("QEMU without standard output")?;
        let stderr = child.stderr.take().context("QEMU without standard error")?;
        pass_on(stdout, sender.clone(), Heard::Console);
        pass_on(stderr, sender, Heard::Emulator);
        Ok(Console {
            output,
            clock: Clock::of(child.id()),
            input,
            log,
            socket,
            partial: Vec::new(),
            complaint: Vec::new(),
            lines: Vec::new(),
        })
    }

    fn watch(mut self, run: &Run, symboliser: &Symboliser) -> Verdict {
        let mut judge = Judge::new(run);
        let mut read = 0;
        let stop = loop {
            let patience = if judge.complete() { GRACE } else { run.quiet };
            match self.clock.receive(&self.output, patience) {
                Ok(heard) => self.hear(heard),
                Err(RecvTimeoutError::Timeout) if judge.complete() => break Stop::Complete,
                Err(RecvTimeoutError::Timeout) if monitor::stands_still(&self.socket) => break Stop::Hung,
                // The machine is busy, so it may be silent for longer.
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Stop::Ended,
            }
            let mut keys = String::new();
            while read < self.lines.len() {
                keys += &judge.line(&self.lines[read]);
                read += 1;
            }
            // A prompt has no newline, so expected texts are looked for in the incomplete line,
            // too.
            keys += &judge.partial_line(&String::from_utf8_lossy(&self.partial));
            // An error is ignored: a machine that has stopped reading is noticed because it does
            // not print what is expected.
            let _ = self.input.write_all(keys.as_bytes()).and_then(|()| self.input.flush());
            for act in std::mem::take(&mut judge.acts) {
                let result = match act {
                    Act::Command(command) => self.command(&command),
                    Act::Keys(text) => keys::commands(&text).try_for_each(|command| self.command(&command)),
                    Act::Screen(wanted) => self.compare_screen(&wanted),
                };
                judge.failures.extend(result.err().map(|error| format!("{error:#}")));
            }
            if self.clock.elapsed() > run.limit {
                judge.failures.push(format!("still running after {} s", run.limit.as_secs()));
                break Stop::GivenUp;
            }
        };
        if !self.partial.is_empty() {
            self.take(b"\n");
            judge.line(&self.lines[self.lines.len() - 1].clone());
        }
        match stop {
            Stop::Hung => {
                judge.failures.push(format!("hung: nothing on the console for {} s", run.quiet.as_secs()));
                self.interrogate();
            }
            Stop::Ended if !judge.complete() => judge.failures.push("the machine stopped early".into()),
            Stop::GivenUp => self.interrogate(),
            Stop::Complete | Stop::Ended => {}
        }
        let mut verdict = judge.verdict(run);
        if verdict.failed() > 0 {
            let from = self.lines.len().saturating_sub(TAIL);
            for line in &self.lines[from..] {
                verdict.tail.push(without_control_sequences(line));
                verdict.tail.extend(symboliser.explain(line).into_iter().map(|more| format!("    {more}")));
            }
        }
        verdict
    }

    /// Gives QEMU's monitor a command.
    ///
    /// # Errors
    /// QEMU answers: it has refused.
    fn command(&self, command: &str) -> Result<()> {
        let answer = monitor::Monitor::connect(&self.socket).and_then(|mut monitor| monitor.ask(command));
        match answer.with_context(|| format!("QEMU was told {command:?}"))?.as_str() {
            "" => Ok(()),
            answer => bail!("QEMU answers {command:?}: {answer}"),
        }
    }

    /// Waits until the screen shows these texts.
    ///
    /// # Errors
    /// It does not after a minute. The error has what it shows.
    fn compare_screen(&mut self, wanted: &[String]) -> Result<()> {
        let scratch = Scratch::new("screen")?;
        let until = self.clock.elapsed() + SCREEN;
        loop {
            let mut monitor = monitor::Monitor::connect(&self.socket)?;
            let shown = picture::text(&mut monitor, &scratch.0)?;
            if shows(&shown, wanted) {
                return Ok(());
            }
            if self.clock.elapsed() > until {
                bail!("the screen does not show {wanted:?}, but:\n{}", shown.join("\n").trim_end());
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Asks a hung machine for its state, and keeps what the kernel and QEMU print.
    fn interrogate(&mut self) {
        let registers = monitor::interrogate(&self.socket);
        while let Ok(heard) = self.clock.receive(&self.output, ANSWER) {
            self.hear(heard);
            if self.lines.len() > 100_000 {
                break;
            }
        }
        if !self.partial.is_empty() {
            self.take(b"\n");
        }
        self.take(registers.as_bytes());
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Console(bytes) => self.take(&bytes),
            Heard::Emulator(bytes) => {
                let _ = self.log.write_all(&bytes);
                split(&bytes, &mut self.complaint, &mut self.lines);
            }
        }
    }

    /// Appends output of the console: unchanged to the log, and split into lines.
    fn take(&mut self, bytes: &[u8]) {
        let _ = self.log.write_all(bytes);
        split(bytes, &mut self.partial, &mut self.lines);
    }
}

/// Appends the lines that `bytes` complete. `partial` is the incomplete line before and after.
fn split(bytes: &[u8], partial: &mut Vec<u8>, lines: &mut Vec<String>) {
    for byte in bytes {
        match byte {
            b'\n' => {
                lines.push(String::from_utf8_lossy(partial).trim_end_matches('\r').to_string());
                partial.clear();
            }
            _ => partial.push(*byte),
        }
    }
}

/// Whether the rows have these texts, each in a row of its own, in this order.
fn shows(rows: &[String], texts: &[String]) -> bool {
    let mut rows = rows.iter();
    texts.iter().all(|text| rows.any(|row| row.contains(text)))
}

/// The line without cursor movements, colours and other control sequences.
pub(crate) fn without_control_sequences(line: &str) -> String {
    strip_str(&line.replace('\t', " ")).to_string()
}

/// What is done with the machine after a text has appeared, in addition to what is typed into the
/// console.
enum Act {
    /// A command for QEMU's monitor.
    Command(String),
    /// What is typed at the machine's keyboard.
    Keys(String),
    /// Texts that are to be on the screen.
    Screen(Vec<String>),
}

/// The state of judging a run.
struct Judge<'a> {
    tap: Option<Report>,
    expected: &'a [Expectation],
    /// Texts that must not appear.
    never: &'a [String],
    /// How many expected texts have appeared.
    met: usize,
    /// How many bytes of the current line have been matched with expected texts.
    consumed: usize,
    /// What is to be done now, in this order.
    acts: Vec<Act>,
    records: Vec<Value>,
    failures: Vec<String>,
}

impl<'a> Judge<'a> {
    fn new(run: &'a Run) -> Judge<'a> {
        Judge {
            tap: run.suite.tests.map(|_| Report::default()),
            expected: &run.suite.expect,
            never: &run.suite.never,
            met: 0,
            consumed: 0,
            acts: Vec::new(),
            records: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Reads a complete line. Returns the text that is to be typed now.
    fn line(&mut self, line: &str) -> String {
        if let Some(report) = &mut self.tap {
            report.line(line);
        }
        if line.starts_with('{') {
            match serde_json::from_str(line) {
                Ok(record) => self.records.push(record),
                Err(error) => self.failures.push(format!("not a JSON line ({error}): {line}")),
            }
        }
        if let Some(text) = self.never.iter().find(|text| line.contains(*text)) {
            self.failures.push(format!("{text:?} must not appear: {line}"));
        }
        let keys = self.partial_line(line);
        self.consumed = 0;
        keys
    }

    /// Reads an incomplete line, for prompts. Returns the text that is to be typed now.
    fn partial_line(&mut self, text: &str) -> String {
        let mut keys = String::new();
        while let Some(next) = self.expected.get(self.met) {
            let Some(place) = text.get(self.consumed..).and_then(|rest| rest.find(&next.text)) else { break };
            self.consumed += place + next.text.len();
            self.met += 1;
            keys += next.send.as_deref().unwrap_or_default();
            self.acts.extend(next.monitor.clone().map(Act::Command));
            self.acts.extend(next.keys.clone().map(Act::Keys));
            self.acts.extend((!next.screen.is_empty()).then(|| Act::Screen(next.screen.clone())));
        }
        keys
    }

    fn complete(&self) -> bool {
        self.met == self.expected.len() && self.tap.as_ref().is_none_or(Report::complete)
    }

    fn verdict(self, run: &Run) -> Verdict {
        let mut verdict = Verdict { failures: self.failures, records: self.records, ..Verdict::default() };
        for (index, expectation) in self.expected.iter().enumerate() {
            verdict.tests.push(Test {
                id: expectation.id.clone(),
                sentence: expectation.sentence.clone(),
                outcome: if index < self.met { Outcome::Passed } else { Outcome::Failed },
            });
        }
        if let Some(report) = self.tap {
            verdict.announced = report.announced();
            verdict.failures.extend(report.shortcomings(run.suite.tests));
            verdict.tests.extend(report.tests);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_emulator_says_does_not_cut_a_line_in_two() {
        let (mut console, mut complaint, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        split(b"ok 1 - a\r\nok 2", &mut console, &mut lines);
        split(b"qemu: warning\n", &mut complaint, &mut lines);
        split(b" - b\n", &mut console, &mut lines);
        assert_eq!(lines, ["ok 1 - a", "qemu: warning", "ok 2 - b"]);
    }

    #[test]
    fn terminal_control_is_not_shown() {
        assert_eq!(without_control_sequences("\x1b[2J\x1b[01;01Ha\tb\x07\x1b[0mc"), "a bc");
        assert_eq!(without_control_sequences("\x1b["), "");
    }

    fn expectations(texts: &[(&str, &str)]) -> Vec<Expectation> {
        let expectation = |(text, send): &(&str, &str)| Expectation {
            id: "A0001".into(),
            sentence: String::new(),
            text: (*text).into(),
            send: Some((*send).into()),
            monitor: None,
            keys: None,
            screen: Vec::new(),
        };
        texts.iter().map(expectation).collect()
    }

    fn judge(expected: &[Expectation]) -> Judge<'_> {
        Judge {
            tap: None,
            expected,
            never: &[],
            met: 0,
            consumed: 0,
            acts: Vec::new(),
            records: Vec::new(),
            failures: Vec::new(),
        }
    }

    #[test]
    fn texts_are_looked_for_in_rows_of_their_own() {
        let strings = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let rows = strings(&["one two", "", "three"]);
        assert!(shows(&rows, &strings(&["two", "three"])) && shows(&rows, &[]));
        assert!(!shows(&rows, &strings(&["one", "two"])) && !shows(&rows, &strings(&["three", "two"])));
    }

    #[test]
    fn a_prompt_is_answered_once() {
        let expected = expectations(&[("$ ", "ls\n"), ("$ ", "exit\n")]);
        let mut judge = judge(&expected);
        assert_eq!(judge.partial_line("$"), "");
        assert_eq!(judge.partial_line("$ "), "ls\n");
        assert_eq!(judge.partial_line("$ l"), "");
        assert_eq!(judge.line("$ ls"), "");
        assert_eq!(judge.line("files"), "");
        assert!(!judge.complete());
        assert_eq!(judge.partial_line("$ "), "exit\n");
        assert!(judge.complete());
    }

    #[test]
    fn what_must_not_appear_is_a_failure() {
        let never = ["kdb>".into()];
        let mut judge = Judge { never: &never, ..judge(&[]) };
        judge.line("the kernel has stopped");
        assert!(judge.failures.is_empty());
        judge.line("kdb> ");
        assert_eq!(judge.failures.len(), 1);
    }

    #[test]
    fn texts_are_expected_in_order() {
        let expected = expectations(&[("first", ""), ("second", "")]);
        let mut judge = judge(&expected);
        judge.line("second");
        judge.line("first");
        assert_eq!(judge.met, 1);
        judge.line("second");
        assert!(judge.complete());
    }
}
