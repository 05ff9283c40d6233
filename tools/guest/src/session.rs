//! A guest on an emulated machine: what boots, its two serial ports and its streams, and how it
//! ended.
//!
//! The first port carries what the kernel and the servers say, the second is the guest's terminal.
//! It is the other way round for a session under Debian's kernel.

use super::streams::COUNT;
use super::{linux, telnet};
use anyhow::{Context, Result, bail};
use mac_build::scratch::{Guard, Scratch, pass_on};
use mac_build::tree;
use mac_machine::boots;
use mac_machine::devices;
use mac_machine::monitor::{self, Monitor};
use mac_machine::patience::Clock;
use mac_machine::qemu::{self, Machine};
use mac_machine::suites::Mode;
use mac_machine::symbolise::Symboliser;
use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kernel that the guest runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kernel {
    /// Macadamia, with its Unix server
    Macadamia,
    /// Debian's own kernel, for comparison
    Linux,
}

/// What is started.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it runs on.
    pub kernel: Kernel,
    /// How its system calls are delivered.
    pub mode: Mode,
    /// The root file system; `None`: it is on the machine's first disk, which has one of ours.
    pub image: Option<PathBuf>,
    /// The command and its arguments; none: the image's own init.
    pub command: Vec<String>,
    /// Whether the terminal says first what has been started.
    pub greet: bool,
    /// Which of the command's descriptors 0, 1 and 2 are streams of bytes instead of the terminal.
    /// Only Macadamia has streams.
    pub streams: [bool; COUNT],
    /// Variables for the command.
    pub environment: Vec<(String, String)>,
    /// The emulated machine; what boots on it is filled in here.
    pub machine: Machine,
}

/// Something that a port printed.
#[derive(Debug)]
pub(crate) enum Printed {
    /// What the kernel and the servers say.
    Log(Vec<u8>),
    /// What the guest writes to its terminal.
    Terminal(Vec<u8>),
}

/// A running guest. It ends when this is dropped.
pub(crate) struct Session {
    child: Guard,
    /// Disconnected once the machine has ended and everything has been read.
    pub printed: Receiver<Printed>,
    /// What is sent here is typed at the guest's terminal, by a separate thread, because the guest
    /// may take it late.
    keyboard: Sender<Vec<u8>>,
    /// What is sent here is typed at the first serial port.
    console: Sender<Vec<u8>>,
    /// The ways to and from the command's descriptors that are streams.
    pub streams: [Option<UnixStream>; COUNT],
    /// Whether the line carries commands in addition to what is typed ([`telnet`]).
    has_commands: bool,
    /// Where QEMU's monitor listens.
    monitor: PathBuf,
    /// The machine's own time.
    pub clock: Clock,
    _scratch: Scratch,
}

impl Start {
    /// Starts the machine.
    pub(crate) fn start(&self, name: &str) -> Result<Session> {
        let scratch = Scratch::new(name)?;
        let socket = scratch.0.join("terminal");
        let listener = UnixListener::bind(&socket).context("making the terminal's socket")?;
        let mut machine = self.machine.clone();
        let streams = self.streams(&mut machine, &scratch.0)?;
        let image = self.image(&scratch.0)?;
        match self.kernel {
            Kernel::Macadamia => self.macadamia(&mut machine, image, &scratch.0)?,
            Kernel::Linux => {
                let image = image.context("Debian's kernel has its root in memory here")?;
                linux::on(&mut machine, image, self.terminal_is_first(), &self.environment)?;
            }
        }
        let mut qemu = machine.command(&scratch.0)?;
        qemu.args(["-chardev", "stdio,id=log", "-chardev"]);
        qemu.arg(format!("socket,id=terminal,path={}", qemu::value(&socket)?));
        let ports = if self.terminal_is_first() { ["terminal", "log"] } else { ["log", "terminal"] };
        qemu.args(ports.iter().flat_map(|port| ["-serial".to_string(), format!("chardev:{port}")]));
        let monitor = scratch.0.join("monitor");
        monitor::listen(&mut qemu, &monitor)?;
        let mut child =
            Guard(qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start QEMU")?);
        let log = child.0.stdout.take().context("QEMU without standard output")?;
        let console = child.0.stdin.take().context("QEMU without standard input")?;
        let terminal = connect(&listener, &mut child)?;
        let keyboard = terminal.try_clone()?;
        let mut ways: [Option<UnixStream>; COUNT] = Default::default();
        for (listener, way) in streams.iter().zip(&mut ways) {
            *way = listener.as_ref().map(|listener| connect(listener, &mut child)).transpose()?;
        }
        let (sender, printed) = channel();
        pass_on(log, sender.clone(), Printed::Log);
        let has_commands = self.kernel == Kernel::Macadamia;
        let (keyboard, console) = (type_on(keyboard), type_on(console));
        let shows = Arc::new(AtomicBool::new(false));
        if has_commands && !self.machine.mounts.is_empty() {
            tell_time(keyboard.clone(), shows.clone());
        }
        pass_on(terminal, sender, move |bytes| {
            shows.store(true, Ordering::Relaxed);
            Printed::Terminal(bytes)
        });
        let clock = Clock::of(child.0.id());
        Ok(Session {
            child,
            printed,
            keyboard,
            console,
            streams: ways,
            has_commands,
            monitor,
            clock,
            _scratch: scratch,
        })
    }

    /// Adds the device of the streams to the machine, if there are any. Returns the sockets to
    /// which QEMU will connect.
    fn streams(&self, machine: &mut Machine, scratch: &Path) -> Result<[Option<UnixListener>; COUNT]> {
        let mut listeners: [Option<UnixListener>; COUNT] = Default::default();
        if self.streams.contains(&true) {
            machine.devices.push(devices::STREAMS);
        }
        for (number, listener) in listeners.iter_mut().enumerate().filter(|(number, _)| self.streams[*number])
        {
            let socket = scratch.join(format!("stream{number}"));
            *listener = Some(UnixListener::bind(&socket).context("making a stream's socket")?);
            machine.extra.extend(devices::stream(number, &socket)?);
        }
        Ok(listeners)
    }

    /// The image, for Linux with the command in it.
    fn image(&self, scratch: &Path) -> Result<Option<PathBuf>> {
        if self.kernel == Kernel::Macadamia || self.command.is_empty() {
            return Ok(self.image.clone());
        }
        let mut words = Vec::new();
        for word in &self.command {
            words.extend_from_slice(word.as_bytes());
            words.push(0);
        }
        let mut tree = super::tree::Tree::default();
        tree.file("run/command", 0o644, words);
        let path = scratch.join(super::image::MODULE);
        let image = self.image.as_ref().context("Debian's kernel has its root in memory here")?;
        fs::copy(image, &path).with_context(|| format!("copying {}", image.display()))?;
        let both = fs::File::options().append(true).open(&path).context("opening the copy of the image")?;
        super::archive::pack(&tree, both)?;
        Ok(Some(path))
    }

    /// Whether the guest's terminal is the first serial port, and its status goes to the second.
    /// Debian's own init has getty on the first one, and our system calls its terminal so.
    fn terminal_is_first(&self) -> bool {
        self.kernel == Kernel::Linux && self.command.is_empty()
    }

    fn macadamia(&self, machine: &mut Machine, image: Option<PathBuf>, scratch: &Path) -> Result<()> {
        put(machine, &self.configuration(true)?, image, scratch)
    }

    /// The machine on which this system boots by itself. Its line is a plain serial port: `adapt`
    /// says which in the boot configuration, which is written into `scratch`.
    pub(crate) fn by_itself(&self, scratch: &Path, adapt: impl FnOnce(String) -> String) -> Result<Machine> {
        let mut machine = self.machine.clone();
        put(&mut machine, &adapt(self.configuration(false)?), self.image.clone(), scratch)?;
        Ok(machine)
    }

    /// What root starts. `has_commands`: the line carries commands in addition to what is typed.
    fn configuration(&self, has_commands: bool) -> Result<String> {
        let time =
            SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs();
        let mut words = vec![format!("mode={}", self.mode.name()), format!("time={time}")];
        if has_commands {
            words.push("line=telnet".into());
        }
        let streams = (0..COUNT).filter(|&number| self.streams[number]);
        words.extend(streams.map(|number| format!("stream={number}")));
        if self.image.is_none() {
            words.push(FIRST_DISK.into());
        }
        if self.greet {
            words.push("greet".into());
        }
        if self.machine.devices.iter().any(|device| device.is_screen()) {
            words.push(format!("env=CONSOLES={CONSOLES}"));
        }
        words.extend(self.environment.iter().map(|(name, value)| format!("env={name}={}", escaped(value))));
        words.extend(self.machine.mounts.iter().map(|mount| format!("mount={}", escaped(mount))));
        if !self.command.is_empty() {
            // The image's init sets the terminal for a command, whatever system it is.
            words.push(format!("-- /{} --", super::image::INIT));
            words.extend(self.command.iter().map(|word| escaped(word)));
        }
        let configuration = CONFIGURATION.replace("ARGUMENTS", &words.join(" "));
        Ok(match self.image {
            Some(_) => configuration,
            None => configuration.replace(MODULE_LINE, ""),
        })
    }
}

/// Makes the system with this boot configuration, which is written into `scratch`, and this image
/// the one that boots on a machine.
fn put(machine: &mut Machine, configuration: &str, image: Option<PathBuf>, scratch: &Path) -> Result<()> {
    let file = scratch.join("boot.conf");
    fs::write(&file, configuration).context("writing the boot configuration")?;
    machine.modules = ["sigma0", "root", "boot.conf", "console", "unix"].map(String::from).to_vec();
    machine.elsewhere = [("boot.conf".to_string(), file)].into();
    if let Some(image) = image {
        machine.modules.push(super::image::MODULE.into());
        machine.elsewhere.insert(super::image::MODULE.into(), image);
    }
    Ok(())
}

/// The word that says that the root is on the first partition of the first disk.
pub(crate) const FIRST_DISK: &str = "root=/dev/vda1";

/// The virtual consoles on which there are shells, if the machine has a screen.
const CONSOLES: &str = "tty1,tty2,tty3";

/// The line that gives the Unix server an image.
const MODULE_LINE: &str = "    module     image.cpio\n";

/// The servers that run guests.
const CONFIGURATION: &str = include_str!("boot.conf");

/// A word of the Unix server's arguments: no blank, nothing that the boot configuration takes for
/// its own.
fn escaped(word: &str) -> String {
    if word.is_empty() {
        return "\\e".into();
    }
    let escape = |byte: u8| match byte {
        b'\\' | b'#' | 0..=b' ' | 0x7f.. => format!("\\x{byte:02x}"),
        _ => char::from(byte).to_string(),
    };
    word.bytes().map(escape).collect()
}

/// Waits until QEMU has connected to a socket, or has given up.
fn connect(listener: &UnixListener, child: &mut Guard) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if let Some(status) = child.0.try_wait()? {
                    bail!("QEMU ended with {status}");
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(error) => return Err(error).context("waiting for QEMU"),
        }
    }
}

/// Writes what is to be typed as fast as it is taken, until no more is typed or taken.
fn type_on(mut keyboard: impl Write + Send + 'static) -> Sender<Vec<u8>> {
    let (sender, typed) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        while let Ok(bytes) = typed.recv() {
            if keyboard.write_all(&bytes).and_then(|()| keyboard.flush()).is_err() {
                break;
            }
        }
    });
    sender
}

/// How often a guest is told the time until its terminal shows something, and afterwards.
const OFTEN: Duration = Duration::from_millis(20);
const SELDOM: Duration = Duration::from_secs(1);
/// The time that a guest is told is so much ahead: more than telling it takes.
const AHEAD: Duration = Duration::from_millis(30);

/// Tells a guest the time as long as it runs. Files of the host have the host's times, which must
/// not be in the guest's future: make would complain. So its clock must be right before its first
/// program runs, and must not become late.
fn tell_time(keyboard: Sender<Vec<u8>>, shows: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        while keyboard.send(telnet::time(now() + AHEAD)).is_ok() {
            std::thread::sleep(if shows.load(Ordering::Relaxed) { SELDOM } else { OFTEN });
        }
    });
}

impl Session {
    /// Types at the guest's terminal. If the machine has ended, the bytes are lost; its end is
    /// noticed elsewhere.
    pub(crate) fn send(&self, bytes: &[u8]) {
        let typed = if self.has_commands { telnet::text(bytes) } else { bytes.to_vec() };
        let _ = self.keyboard.send(typed);
    }

    /// Types at the first serial port, where the kernel debugger is. If the machine has ended, the
    /// bytes are lost.
    pub(crate) fn send_console(&self, bytes: &[u8]) {
        let _ = self.console.send(bytes.to_vec());
    }

    /// Tells the guest the size of the window in which its terminal is shown, if the line has a way
    /// to say so.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        if self.has_commands {
            let _ = self.keyboard.send(telnet::window_size(rows, columns));
        }
    }

    /// Ends the emulator without notice, as if the power failed.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.0.kill().context("ending QEMU")?;
        self.child.0.wait().map(drop).context("waiting for QEMU")
    }

    /// A connection to QEMU's monitor.
    pub(crate) fn monitor(&self) -> Result<Monitor> {
        Monitor::connect(&self.monitor)
    }

    /// Whether a machine that prints nothing rests each time it is looked at.
    pub(crate) fn stands_still(&self) -> bool {
        monitor::stands_still(&self.monitor)
    }

    /// Asks a machine that hangs where it is; returns what it says on its log, and QEMU's
    /// registers.
    pub(crate) fn interrogate(&self) -> Vec<u8> {
        let registers = monitor::interrogate(&self.monitor);
        let mut said = Vec::new();
        while let Ok(printed) = self.clock.receive(&self.printed, boots::ANSWER) {
            if let Printed::Log(bytes) = printed {
                said.extend(bytes);
            }
        }
        said.extend(registers.bytes());
        said
    }

    /// The status with which the guest ended, after the ports have been read to their ends.
    ///
    /// # Errors
    /// The log names none: the machine has stopped by itself. The error has the last lines of the
    /// log.
    pub(crate) fn status(&mut self, log: &Log) -> Result<i32> {
        let status = self.child.0.wait().context("waiting for QEMU")?;
        log.status.with_context(|| {
            format!(
                "the machine stopped before the command had ended (QEMU: {status}):\n{}",
                log.last_lines()
            )
        })
    }
}

/// How many of the last lines of the log are kept.
const LAST_LINES: usize = 16;

/// The log's lines, and what they say about the guest's end.
#[derive(Debug, Default)]
pub(crate) struct Log {
    partial: Vec<u8>,
    last: VecDeque<String>,
    pub status: Option<i32>,
    /// Whether the machine was to start again.
    pub(crate) restarts: bool,
}

impl Log {
    /// Takes what has been printed.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte != b'\n' {
                self.partial.push(*byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.partial).trim_end().to_string();
            let status = line.trim().strip_prefix("guest: status ").and_then(|status| status.parse().ok());
            self.status = status.or(self.status);
            self.restarts |= line.trim() == "unix: the machine starts anew";
            if self.last.len() == LAST_LINES {
                self.last.pop_front();
            }
            self.last.push_back(line);
            self.partial.clear();
        }
    }

    /// What was printed last, a line to a line, with the backtraces explained.
    pub(crate) fn last_lines(&self) -> String {
        let partial = String::from_utf8_lossy(&self.partial);
        let lines = explained(self.last.iter().map(String::as_str).chain([partial.trim_end()]));
        format!("  {}", lines.join("\n  ").trim_end())
    }
}

/// Lines of a log, each followed by what the code addresses in it are.
pub(crate) fn explained<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let files = ["kernel", "root", "unix"].map(|name| tree::boot().join(name));
    let symboliser = Symboliser::new(files.iter().map(PathBuf::as_path));
    let with_explanation = |line: &str| {
        let more = symboliser.explain(line).into_iter().map(|more| format!("    {more}"));
        [line.trim_end().to_string()].into_iter().chain(more).collect::<Vec<_>>()
    };
    lines.flat_map(with_explanation).collect()
}

/// What the image's init writes to the terminal once it is as a command wants it: a control
/// sequence that shows nothing.
const READY: &[u8] = b"\x1b_guest ready\x1b\\";

/// Waits for the moment from which on a command gets what is typed.
#[derive(Debug)]
pub(crate) struct Readiness {
    pub ready: bool,
    /// What may be the beginning of the sign.
    kept: Vec<u8>,
}

impl Readiness {
    /// For a shell there is nothing to wait for.
    pub(crate) fn of(interactive: bool) -> Readiness {
        Readiness { ready: interactive, kept: Vec::new() }
    }

    /// Takes what the terminal showed; returns it without the sign.
    pub(crate) fn take(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if self.ready {
            return bytes;
        }
        self.kept.extend(bytes);
        if let Some(at) = self.kept.windows(READY.len()).position(|part| part == READY) {
            self.ready = true;
            self.kept.drain(at..at + READY.len());
            return std::mem::take(&mut self.kept);
        }
        let open =
            (0..self.kept.len()).find(|&at| READY.starts_with(&self.kept[at..])).unwrap_or(self.kept.len());
        self.kept.drain(..open).collect()
    }
}

/// Where the log of an interactive run is kept.
pub(crate) fn log_file() -> PathBuf {
    tree::target().join("run.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_escaped_for_the_server() {
        assert_eq!(escaped("plain-word"), "plain-word");
        assert_eq!(escaped(""), "\\e");
        assert_eq!(escaped("a b#c\\"), "a\\x20b\\x23c\\x5c");
    }

    #[test]
    fn the_sign_is_taken_out() {
        let shown = [b"before ", READY, b"after"].concat();
        for size in 1..shown.len() {
            let mut readiness = Readiness::of(false);
            let seen: Vec<u8> = shown.chunks(size).flat_map(|chunk| readiness.take(chunk.to_vec())).collect();
            assert_eq!(seen, b"before after");
            assert!(readiness.ready);
        }
    }

    #[test]
    fn the_status_is_found_in_the_log() {
        let mut log = Log::default();
        log.take(b"[ 1.0] up\r\nguest: sta");
        log.take(b"tus 137\r\n[ 2.0] Power down\r\n");
        assert_eq!((log.status, log.restarts), (Some(137), false));
        log.take(b"unix: the machine starts anew\r\n");
        assert!(log.restarts);
    }

    #[test]
    fn the_last_lines_of_the_log_are_kept() {
        let mut log = Log::default();
        for line in 0..2 * LAST_LINES {
            log.take(format!("line {line}\r\n").as_bytes());
        }
        log.take(b"panic: no mem");
        let last = log.last_lines();
        assert!(last.starts_with(&format!("  line {LAST_LINES}\n")), "{last}");
        assert!(last.ends_with("\n  panic: no mem"), "{last}");
    }
}
