//! Runs interactive sessions at a guest's terminal: types, and waits for what should appear on the
//! screen. It never waits for a fixed time.

use super::disk::{self, Size};
use super::host::{Action, Host};
use super::script::{Ending, Script, comparable, recording};
use super::session::{Kernel, Log, Printed, Session, Start};
use super::{Request, make};
use anyhow::{Context, Result, bail, ensure};
use mac_build::scratch::{Scratch, file_name};
use mac_build::{build, tree};
use mac_machine::boots::Verdict;
use mac_machine::devices::DiskImage;
use mac_machine::hub::Hub;
use mac_machine::qemu::Machine;
use mac_machine::suites::{self, Mode, Overrides, Run};
use mac_machine::tap::{Outcome, Test};
use mac_terminal::Screen;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Options of `./mac interact`.
#[derive(clap::Args)]
pub struct Options {
    /// Only suites and scripts whose name contains this
    filter: Option<String>,
    /// The kernel that the programs run on
    #[arg(long, value_enum, default_value = "macadamia")]
    kernel: Kernel,
    /// How system calls are delivered; default: as the suite says
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Write the pictures that scripts ask for into this directory
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    /// Write a recording of each suite (asciicast version 2) into this directory
    #[arg(long, value_name = "DIR")]
    cast: Option<PathBuf>,
}

/// Size of the window at the beginning.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;
/// What the shell shows when it waits for a command.
const PROMPT: &str = "ready> ";
/// How long the machine may take to its first prompt, and to its end.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long each way back to the prompt is tried.
const RECOVERY: Duration = Duration::from_secs(10);
/// How often a machine that rests is found at rest, and how long nothing is printed before each
/// time.
const RESTS: u32 = 5;
const REST: Duration = Duration::from_millis(20);
/// Memory for Debian's kernel, which unpacks the image into half of it.
const LINUX_MEMORY: &str = "1G";

/// How a suite is played.
#[derive(Clone, Debug, Default)]
pub(super) struct Play {
    /// Only scripts whose name, or whose suite's, contains this.
    filter: Option<String>,
    pictures: Option<PathBuf>,
    cast: Option<PathBuf>,
}

/// What became of a script.
pub(super) struct Played {
    pub(super) name: String,
    pub(super) script: Script,
    /// The screen at its end, or why there is none. `None`: it was not played, for the reason that
    /// is given.
    pub(super) result: Option<Result<String>>,
}

/// Plays the suites whose name contains this, and puts the pictures that their scripts ask for into
/// a directory.
pub fn pictures(suites: &str, directory: &Path) -> Result<()> {
    run(&Options {
        filter: Some(suites.into()),
        kernel: Kernel::Macadamia,
        mode: None,
        pictures: Some(directory.into()),
        cast: None,
    })
}

/// Plays suites; an error if a script has failed.
pub fn run(options: &Options) -> Result<()> {
    if options.kernel == Kernel::Macadamia {
        build::guest_system()?;
    }
    let play = Play {
        filter: options.filter.clone(),
        pictures: options.pictures.clone(),
        cast: options.cast.clone(),
    };
    let (mut count, mut failed) = (0, 0);
    for suite in suites::read(suites::GUESTS)? {
        if !suite.interactive.iter().any(|name| play.wants(&suite.name, name)) {
            continue;
        }
        let overrides = match options.kernel {
            Kernel::Linux => Overrides { memory: Some(LINUX_MEMORY.into()), ..Overrides::default() },
            Kernel::Macadamia => Overrides::default(),
        };
        for mut run in suite.runs(&overrides).map_err(|excluded| anyhow::anyhow!(excluded.reason))? {
            if options.mode.is_some_and(|mode| mode != run.mode) {
                continue;
            }
            if options.kernel == Kernel::Linux {
                run.name = format!("{}-linux", suite.name);
            }
            let verdict = judge(&run, options.kernel, &play)?;
            count += verdict.tests.len();
            failed += verdict.failed();
            mac_machine::boots::show(&run, &verdict);
            if options.kernel == Kernel::Linux {
                break;
            }
        }
    }
    match (count, failed) {
        (0, _) => bail!("no script matches {:?}", options.filter.as_deref().unwrap_or_default()),
        (_, 0) => Ok(()),
        _ => bail!("{failed} failed"),
    }
}

/// Plays a suite on Macadamia and compares the screens with those under Debian's own kernel.
pub(crate) fn run_suite(run: &Run) -> Result<Verdict> {
    judge(run, Kernel::Macadamia, &Play::default())
}

fn judge(run: &Run, kernel: Kernel, play: &Play) -> Result<Verdict> {
    let started = Instant::now();
    let (played, trouble, log) = play_suite(run, kernel, play)?;
    let mut verdict =
        Verdict { seconds: started.elapsed().as_secs_f64(), log, failures: trouble, ..Verdict::default() };
    for Played { name, script, result } in played {
        let outcome = match result {
            None => Outcome::Skipped(script.only_here.clone().unwrap_or_default()),
            Some(Err(error)) => {
                verdict.tail.extend(format!("{name}: {error:#}").lines().map(String::from));
                Outcome::Failed
            }
            Some(Ok(screen)) if script.is_compared() => {
                let expected = fs::read_to_string(recording(&name))
                    .unwrap_or_else(|error| format!("(not recorded: ./mac record; {error})\n"));
                if screen == expected {
                    Outcome::Passed
                } else {
                    let text = format!("{name}: the screen under Linux:\n{expected}\nand here:\n{screen}");
                    verdict.tail.extend(text.lines().map(String::from));
                    Outcome::Failed
                }
            }
            Some(Ok(_)) => Outcome::Passed,
        };
        verdict.tests.push(Test { id: script.id, sentence: script.sentence, outcome });
    }
    Ok(verdict)
}

/// Boots, plays the scripts of a suite one after the other, and ends the system. Returns what
/// became of each script, what else went wrong, and where everything that was shown is kept.
pub(super) fn play_suite(
    run: &Run,
    kernel: Kernel,
    play: &Play,
) -> Result<(Vec<Played>, Vec<String>, PathBuf)> {
    let log = tree::target().join("test-logs").join(format!("{}.log", file_name(&run.name)));
    fs::create_dir_all(log.parent().unwrap_or(Path::new("/")))?;
    let mut interactive = InteractiveSession::begin(run, kernel, play, &log)?;
    let mut played = Vec::new();
    let mut stuck = interactive.first_prompt().err();
    let mut ended = false;
    for name in run.suite.interactive.iter().filter(|name| play.wants(&run.suite.name, name)) {
        let script = Script::read(name)?;
        let result = if kernel == Kernel::Linux && script.only_here.is_some() {
            None
        } else if let Some(error) = &stuck {
            Some(Err(anyhow::anyhow!("not played: {error:#}")))
        } else {
            let result = interactive.play(name, &script);
            ended = script.ends.is_some();
            if result.is_err() && interactive.recover().is_err() {
                stuck = Some(anyhow::anyhow!("{name} has failed"));
            }
            Some(result)
        };
        played.push(Played { name: name.clone(), script, result });
    }
    let mut trouble = Vec::new();
    if stuck.is_none() && !ended {
        trouble.extend(interactive.leave().err().map(|error| format!("{error:#}")));
    }
    if let Some(scratch) = &interactive.disk
        && trouble.is_empty()
        && stuck.is_none()
    {
        trouble.extend(disk::check_sound(&scratch.0.join(DISK)).err().map(|error| format!("{error:#}")));
    }
    if let Some(peer) = &interactive.peer {
        writeln!(interactive.log, "\n--- the other machine ---")?;
        for printed in peer.session.printed.try_iter() {
            let (Printed::Log(bytes) | Printed::Terminal(bytes)) = printed;
            interactive.log.write_all(&bytes)?;
        }
        writeln!(interactive.log, "\n--- the cable ---\n{}", peer.hub.report())?;
        if trouble.is_empty() && stuck.is_none() {
            trouble.extend(peer.hub.check_used().err().map(|error| format!("{error:#}")));
        }
    }
    if let Some(directory) = &play.cast {
        interactive.write_cast(&directory.join(format!("{}.cast", file_name(&run.name))))?;
    }
    Ok((played, trouble, log))
}

impl Play {
    fn wants(&self, suite: &str, name: &str) -> bool {
        self.filter.as_deref().is_none_or(|filter| suite.contains(filter) || name.contains(filter))
    }
}

/// An interactive session at the terminal: what was shown so far, and how much of it has been
/// waited for.
struct InteractiveSession {
    start: Start,
    session: Session,
    screen: Screen,
    /// How much of what was ever shown has been waited for.
    read: usize,
    log: fs::File,
    said: Log,
    started: Instant,
    /// When what was shown.
    cast: Vec<(f64, Vec<u8>)>,
    pictures: Option<PathBuf>,
    /// Where the disk with the root file system is, if there is one.
    disk: Option<Scratch>,
    /// The other side of the machine's network, if it has one.
    host: Option<Host>,
    /// The machine at the other end of the cable, if there is one.
    peer: Option<Peer>,
}

/// A second machine.
struct Peer {
    session: Session,
    /// What connects it with the first.
    hub: Hub,
}

/// The file of a disk in its directory.
const DISK: &str = "root.img";

/// Makes the disk from which a suite's system boots, and adds it to the machine.
fn root_disk(run: &Run, size: Size, request: &Request, machine: &mut Machine) -> Result<Scratch> {
    let scratch = Scratch::new(&format!("{}-disk", run.name))?;
    let file = scratch.0.join(DISK);
    disk::provide(&file, Some(size), request)?;
    machine.add_disk(&DiskImage::of(file))?;
    Ok(scratch)
}

impl InteractiveSession {
    fn begin(run: &Run, kernel: Kernel, play: &Play, log: &Path) -> Result<InteractiveSession> {
        let request = Request::of(&run.suite);
        let mut machine = run.machine.clone();
        let on_disk = run.suite.root_disk().filter(|_| kernel == Kernel::Macadamia);
        let disk =
            on_disk.map(|disk| root_disk(run, Size(disk.size << 20), &request, &mut machine)).transpose()?;
        let image = match &disk {
            Some(_) => None,
            None => Some(make(&request)?.path),
        };
        let has_host = run.suite.has_open_network() && kernel == Kernel::Macadamia;
        let host = has_host.then(|| Host::make(&run.suite, &mut machine)).transpose()?;
        let hub = run.suite.peer.is_some().then(|| Hub::new(run.suite.cable)).transpose()?;
        if let Some(hub) = &hub {
            machine.add_cable(hub.port, false);
        }
        let size = [("ROWS", ROWS), ("COLUMNS", COLUMNS)];
        let mut environment: Vec<_> =
            size.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        environment.push(("TERM".into(), "xterm-256color".into()));
        let start = Start {
            kernel,
            mode: run.mode,
            image,
            command: Vec::new(),
            streams: Default::default(),
            greet: true,
            environment,
            machine,
        };
        let session = start.start(&run.name)?;
        let mut peer = None;
        if let (Some(mut hub), Some(script)) = (hub, &run.suite.peer) {
            hub.plug()?;
            let mut machine = run.machine.clone();
            machine.add_cable(hub.port, true);
            let command = ["sh", "-c", script].map(String::from).to_vec();
            let second = Start { command, greet: false, machine, ..start.clone() };
            let session = second.start(&format!("{}-peer", run.name))?;
            hub.plug()?;
            peer = Some(Peer { session, hub });
        }
        Ok(InteractiveSession {
            session,
            start,
            screen: Screen::new(ROWS.into(), COLUMNS.into()),
            read: 0,
            log: fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?,
            said: Log::default(),
            started: Instant::now(),
            cast: Vec::new(),
            pictures: play.pictures.clone(),
            disk,
            host,
            peer,
        })
    }

    /// Waits for the shell.
    fn first_prompt(&mut self) -> Result<()> {
        let at_prompt = |interactive: &InteractiveSession| interactive.cursor_follows("#").then_some(());
        // Debian's own init asks for a name first; root has no password.
        let is_asked = self.until(PATIENCE, "the first prompt", |interactive| {
            let asks = interactive.cursor_follows("login:").then_some(true);
            asks.or_else(|| at_prompt(interactive).map(|()| false))
        })?;
        if is_asked {
            self.session.send(b"root\r");
            self.until(PATIENCE, "the first prompt", at_prompt)?;
        }
        self.picture("boot.svg")
    }

    /// Keeps a picture of the screen, if pictures are wanted. A program may have drawn a part of
    /// what it will show, so the machine must rest first.
    fn picture(&mut self, name: &str) -> Result<()> {
        let Some(directory) = self.pictures.clone() else { return Ok(()) };
        self.until_rested(PATIENCE)?;
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(name), mac_terminal::svg(&self.screen))
            .with_context(|| format!("cannot write {name}"))
    }

    /// Plays a script: what the screen shows at its end.
    fn play(&mut self, name: &str, script: &Script) -> Result<String> {
        // Every script begins in an empty directory, with an empty history, on an empty screen.
        let begin = format!(
            "PS1='{PROMPT}' PS2='more> '; cd; rm -rf /tmp/play; mkdir /tmp/play; cd /tmp/play; history -c; clear; echo '# {name}'\r"
        );
        self.session.send(begin.as_bytes());
        let title = format!("# {name}");
        self.until(PATIENCE, "a fresh screen", |interactive| {
            (interactive.screen.line(0) == title && interactive.cursor_follows(PROMPT.trim_end()))
                .then_some(())
        })?;
        self.read = self.screen.shown().len();
        for (number, step) in script.steps.iter().enumerate() {
            self.step(step).with_context(|| format!("step {}", number + 1))?;
        }
        match script.ends {
            None => return Ok(comparable(&self.screen.text())),
            Some(Ending::Stop) => self.ended()?,
            Some(Ending::Restart) => self.restarted()?,
            Some(Ending::Kill) => {
                self.session.kill()?;
                self.started_again()?;
            }
        }
        Ok(String::new())
    }

    /// Goes back to the prompt after a script that has failed, if keys can do that.
    fn recover(&mut self) -> Result<()> {
        for keys in ["\x03", "q", "\x1b:q!\r", "\x18", "\x04"] {
            let back = |interactive: &InteractiveSession| {
                interactive.cursor_follows(PROMPT.trim_end()).then_some(())
            };
            if self.until(RECOVERY, "the prompt", back).is_ok() {
                return Ok(());
            }
            self.session.send(keys.as_bytes());
        }
        bail!("the shell does not come back")
    }

    fn step(&mut self, step: &super::script::Step) -> Result<()> {
        let patience = Duration::from_secs(step.patience);
        if step.rested {
            self.until_rested(patience)?;
        }
        if let Some([rows, columns]) = step.resize {
            self.screen.resize(rows.into(), columns.into());
            self.session.resize(rows, columns);
        }
        if let Some(command) = &step.monitor {
            let said = self.session.monitor()?.ask(command)?;
            ensure!(said.is_empty(), "QEMU's monitor says to {command:?}: {said}");
        }
        if let Some(action) = &step.host {
            self.host_does(action, patience)?;
        }
        for _ in 0..step.times {
            self.session.send(step.keys.as_bytes());
        }
        for text in &step.expect {
            self.expect(text, patience)?;
        }
        for text in &step.screen {
            self.until(patience, &format!("{text:?} on the screen"), |interactive| {
                let all = |wanted: &String| interactive.screen.text().contains(wanted);
                step.screen.iter().all(all).then_some(())
            })?;
        }
        if step.prompt {
            self.expect_prompt(patience)?;
        }
        if let Some(name) = &step.picture {
            self.picture(name)?;
        }
        Ok(())
    }

    /// Lets the host do something, and takes what is printed meanwhile.
    fn host_does(&mut self, action: &Action, patience: Duration) -> Result<()> {
        let host = self.host.as_ref().context("the suite has no network")?;
        let done = host.begin(action, &self.session)?;
        let deadline = self.session.clock.elapsed() + patience;
        loop {
            match done.recv_timeout(REST) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => bail!("what the host does has failed"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            while self.listen(Duration::ZERO)? {}
            if self.session.clock.elapsed() > deadline {
                bail!("what the host does has not ended; the screen:\n{}", self.screen.text());
            }
        }
    }

    /// Waits for a text after those that were waited for before.
    fn expect(&mut self, text: &str, patience: Duration) -> Result<()> {
        let end = self.until(patience, &format!("{text:?}"), |interactive| {
            interactive.screen.shown()[interactive.read..]
                .find(text)
                .map(|at| interactive.read + at + text.len())
        })?;
        self.read = end;
        Ok(())
    }

    /// Waits for a new prompt on which nothing has been typed.
    fn expect_prompt(&mut self, patience: Duration) -> Result<()> {
        let end = self.until(patience, "the prompt", |interactive| {
            let at = interactive.screen.shown()[interactive.read..].rfind(PROMPT)?;
            interactive.cursor_follows(PROMPT.trim_end()).then_some(interactive.read + at + PROMPT.len())
        })?;
        self.read = end;
        Ok(())
    }

    /// Whether the cursor stands after a line that ends so, and a blank.
    fn cursor_follows(&self, end: &str) -> bool {
        let (row, column) = self.screen.cursor();
        let line = self.screen.line(row);
        line.ends_with(end) && column == line.chars().count() + 1
    }

    /// Leaves the shell: the system ends.
    fn leave(&mut self) -> Result<()> {
        self.session.send(b"cd /; exit 0\r");
        self.ended()
    }

    /// Waits for the end of the machine.
    fn ended(&mut self) -> Result<()> {
        self.stopped()?;
        match self.session.status(&self.said)? {
            0 => Ok(()),
            status => bail!("the system ended with status {status}"),
        }
    }

    /// Waits until the machine is to start again, starts it as `./mac run` does, and waits for the
    /// shell.
    fn restarted(&mut self) -> Result<()> {
        self.stopped()?;
        if self.start.kernel == Kernel::Macadamia && !self.said.restarts {
            bail!("the system ended, and did not ask to be started again:\n{}", self.said.last_lines());
        }
        self.started_again()
    }

    /// Starts the machine again, and waits for the shell.
    fn started_again(&mut self) -> Result<()> {
        self.session = self.start.start("restarted")?;
        self.screen = Screen::new(ROWS.into(), COLUMNS.into());
        self.said = Log::default();
        self.first_prompt()
    }

    /// Waits until the machine has stopped.
    fn stopped(&mut self) -> Result<()> {
        let deadline = self.session.clock.elapsed() + PATIENCE;
        while self.session.clock.elapsed() < deadline {
            if !self.listen(deadline)? && self.session.clock.elapsed() < deadline {
                return Ok(());
            }
        }
        bail!("the system did not end")
    }

    /// Listens until `found` finds what the session waits for.
    fn until<T>(
        &mut self,
        patience: Duration,
        what: &str,
        mut found: impl FnMut(&InteractiveSession) -> Option<T>,
    ) -> Result<T> {
        let deadline = self.session.clock.elapsed() + patience;
        loop {
            if let Some(value) = found(self) {
                return Ok(value);
            }
            if !self.listen(deadline)? {
                let why =
                    if self.session.clock.elapsed() < deadline { ": the machine has ended" } else { "" };
                bail!("{what} did not appear{why}; the screen:\n{}", self.screen.text());
            }
        }
    }

    /// Waits until the machine prints nothing and its processors are at rest, several times in a
    /// row.
    fn until_rested(&mut self, patience: Duration) -> Result<()> {
        let mut monitor = self.session.monitor()?;
        let deadline = self.session.clock.elapsed() + patience;
        let mut rests = 0;
        while rests < RESTS {
            let silent = !self.listen(self.session.clock.elapsed() + REST)?;
            rests = if silent && monitor.is_at_rest()? { rests + 1 } else { 0 };
            if self.session.clock.elapsed() > deadline {
                bail!("the machine did not come to rest; the screen:\n{}", self.screen.text());
            }
        }
        Ok(())
    }

    /// Takes what is printed next. Returns false if nothing was printed before `deadline` on the
    /// machine's clock, or if the machine has ended.
    fn listen(&mut self, deadline: Duration) -> Result<bool> {
        let clock = &self.session.clock;
        match clock.receive(&self.session.printed, deadline.saturating_sub(clock.elapsed())) {
            Ok(Printed::Terminal(bytes)) => {
                self.log.write_all(&bytes)?;
                self.screen.write(&bytes);
                let answers = std::mem::take(&mut self.screen.answers);
                self.session.send(&answers);
                self.cast.push((self.started.elapsed().as_secs_f64(), bytes));
                Ok(true)
            }
            Ok(Printed::Log(bytes)) => {
                self.log.write_all(&bytes)?;
                self.said.take(&bytes);
                Ok(true)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(false),
        }
    }

    /// Keeps the session as a recording that players of asciicasts play.
    fn write_cast(&self, path: &Path) -> Result<()> {
        let mut text = format!("{{\"version\": 2, \"width\": {COLUMNS}, \"height\": {ROWS}}}\n");
        for (time, bytes) in &self.cast {
            let event = serde_json::json!([time, "o", String::from_utf8_lossy(bytes)]);
            text += &format!("{event}\n");
        }
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
