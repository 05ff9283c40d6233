//! `./mac run` for guests: a command or a shell, with its terminal in this one.

use super::disk::{self, Size};
use super::session::{Kernel, Log, Printed, Readiness, Session, Start, log_file};
use super::streams::{self, Streams};
use super::terminal::{self, Terminal};
use super::{Request, make};
use anyhow::{Context, Result, bail};
use mac_build::scratch::show;
use mac_machine::devices::{self, Controller, DiskImage};
use mac_machine::qemu::{Boot, Machine};
use mac_machine::shares::{Share, Shared};
use mac_machine::suites::Mode;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Options of `./mac run` that are about guests.
#[derive(clap::Args)]
pub struct Options {
    /// The image of Debian's programs (guests/images.toml); default: base for a command, shell for
    /// an interactive session
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Put the contents of this directory of the host under /mnt
    #[arg(long, value_name = "DIR")]
    with: Option<PathBuf>,
    /// Share this directory of the host with the guest, which may change it, at /mnt/share or
    /// another place
    #[arg(long, value_name = "DIR[:/PLACE]")]
    share: Vec<Share>,
    /// Add these Debian packages and what they depend on to the image
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    packages: Vec<String>,
    /// The disk with the root file system, which lasts. If there is no such file, it is made from
    /// the image first, sparse
    #[arg(long, value_name = "FILE", conflicts_with = "ram")]
    disk: Option<PathBuf>,
    /// The size of a disk that --disk makes, 8G if none is given; or to which it grows
    #[arg(long, value_name = "SIZE", requires = "disk")]
    size: Option<Size>,
    /// The root file system is in memory, as it is without --disk: each run begins with the image,
    /// and what it changes ends with it
    #[arg(long)]
    ram: bool,
    /// How system calls are delivered
    #[arg(long, value_enum, default_value = "exception")]
    mode: Mode,
    /// The kernel that the programs run on
    #[arg(long, value_enum, default_value = "macadamia")]
    pub kernel: Kernel,
    /// Show what the kernel and the servers say, too
    #[arg(long, short)]
    verbose: bool,
    /// Show nothing but the shell: neither what starts nor what there is to try
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Whether a command is at this terminal, which then passes each key and the window's size on:
    /// `auto` says so if input and output are a terminal. Otherwise lines that are typed are its
    /// input
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    tty: Tty,
    /// Run this command instead of a shell, and end with its status
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Whether a command is at the user's terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tty {
    /// If input and output are a terminal
    Auto,
    /// It must be
    Yes,
    /// It is not
    No,
}

impl Options {
    /// Whether what runs is at this terminal. `terminals`: which of the standard descriptors are
    /// terminals.
    ///
    /// # Errors
    /// It must be, and there is none.
    fn at_terminal(&self, terminals: [bool; streams::COUNT]) -> Result<bool> {
        let [input, output, _] = terminals;
        let is_shell = self.command.is_empty();
        match self.tty {
            Tty::Yes if !(input && output) => bail!("--tty yes: input and output are not a terminal"),
            Tty::Yes => Ok(true),
            // A shell without a terminal reads a script.
            Tty::Auto | Tty::No if is_shell => Ok(input),
            Tty::Auto => Ok(input && output),
            Tty::No => Ok(false),
        }
    }

    /// Whether any of them says that a guest is to run.
    pub fn wanted(&self) -> bool {
        let Options { image, with, share, packages, disk, ram, kernel, command, .. } = self;
        image.is_some()
            || disk.is_some()
            || *ram
            || with.is_some()
            || !share.is_empty()
            || !packages.is_empty()
            || *kernel == Kernel::Linux
            || !command.is_empty()
    }

    /// What the image of the system is to hold.
    fn request(&self) -> Result<Request> {
        // A disk lasts, so what is run first says little about what it is for.
        let default = if self.command.is_empty() || self.disk.is_some() { "shell" } else { "base" };
        let name = self.image.clone().unwrap_or_else(|| default.into());
        let mut request = Request { name, packages: self.packages.clone(), ..Request::default() };
        if let Some(directory) = &self.with {
            // Made absolute here: a relative path is meant from the user's working directory, but
            // everything that is started from here has the source tree as its working directory.
            let directory = std::path::absolute(directory)?;
            if !directory.is_dir() {
                bail!("--with {}: there is no such directory", directory.display());
            }
            request.directories.push(("mnt".into(), directory));
        }
        Ok(request)
    }

    /// Adds the disk with the root file system to the machine, if there is to be one, and makes the
    /// disk if it does not exist.
    ///
    /// # Errors
    /// The disk is not one of ours, or is in use; it cannot be made; other options need a root in
    /// memory.
    pub fn add_disk(&self, machine: &mut Machine) -> Result<()> {
        let Some(file) = &self.disk else { return Ok(()) };
        if self.kernel == Kernel::Linux {
            bail!("--disk: Debian's kernel has its root in memory here; leave out --kernel");
        }
        let file = std::path::absolute(file)?;
        if !machine.boot.imageless() {
            return self.boot_from(file, machine);
        }
        let is_new = disk::provide(&file, self.size, &self.request()?)?;
        if !is_new && (self.image.is_some() || self.with.is_some() || !self.packages.is_empty()) {
            bail!(
                "the disk {} has its files already: --image, --packages and --with are for a disk that is made; use \
                 apt-get and dpkg in the system, or --share",
                file.display()
            );
        }
        machine.add_disk(&DiskImage::of(file))
    }

    /// Makes the machine boot the system that is on the disk, through UEFI.
    ///
    /// # Errors
    /// The disk does not boot by itself, or other options are about another system.
    fn boot_from(&self, disk: PathBuf, machine: &mut Machine) -> Result<()> {
        disk::check_bootable(&disk)?;
        let Options { image, with, share, packages, size, command, .. } = self;
        let has_files = image.is_some() || with.is_some() || !packages.is_empty() || size.is_some();
        if has_files || !share.is_empty() || !command.is_empty() {
            bail!(
                "--uefi: the disk's own system boots, as it is, and to a shell; leave out the other options"
            );
        }
        machine.boot = Boot::UefiDisk;
        machine.devices = vec![devices::firmware_disk(Controller::Virtio)];
        machine.image = Some(disk);
        Ok(())
    }

    /// Adds the shared directories to the machine.
    fn share_directories(&self, machine: &mut Machine) -> Result<()> {
        if self.share.is_empty() {
            return Ok(());
        }
        if self.kernel == Kernel::Linux {
            bail!("--share: Debian's kernel mounts nothing by itself here; leave out --kernel");
        }
        if !machine.boot.imageless() {
            bail!(
                "--share: a system that boots from an image has no drivers of further devices; leave out --uefi"
            );
        }
        let absolute = |share: &Share| {
            // A relative path is meant from the user's working directory.
            Ok(Share { directory: std::path::absolute(&share.directory)?, place: share.place.clone() })
        };
        let shares = self.share.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        Shared::of(&shares)?.add_to(machine);
        Ok(())
    }

    /// The command that runs; none for a shell at a terminal. Without a terminal the shell takes
    /// what is piped in for its script, and ends with it.
    fn what_runs(&self, at_terminal: bool) -> Vec<String> {
        match at_terminal || !self.command.is_empty() {
            true => self.command.clone(),
            false => ["sh", "-c", self.script()].map(String::from).to_vec(),
        }
    }

    /// Runs the shell of the image, which must not read the script from a terminal: there it would
    /// prompt.
    fn script(&self) -> &'static str {
        match self.kernel {
            Kernel::Macadamia => "if [ -x /bin/bash ]; then exec bash; else exec sh; fi",
            Kernel::Linux => "cat | if [ -x /bin/bash ]; then exec bash; else exec sh; fi",
        }
    }
}

/// Runs the command, or a shell; returns the status with which it ended.
pub fn run(options: &Options, mut machine: Machine) -> Result<ExitCode> {
    let at_terminal = options.at_terminal(terminal::standard())?;
    let command = options.what_runs(at_terminal);
    let interactive = command.is_empty();
    // A shell has the terminal only; what it prints there can go to a file.
    let streams = if interactive { Default::default() } else { streams::wanted(options.kernel) };
    options.share_directories(&mut machine)?;
    let image = match options.disk {
        Some(_) => None,
        None => Some(make(&options.request()?)?.path),
    };
    let start = Start {
        kernel: options.kernel,
        mode: options.mode,
        image,
        command,
        greet: interactive && !options.quiet,
        streams,
        environment: environment(options.quiet, at_terminal && !interactive),
        machine,
    };
    if interactive && !options.quiet {
        eprintln!(
            "mac: booting; Ctrl-] X leaves, Ctrl-] C changes to the system's console and back, \
             `poweroff` ends it, {} has the system's log",
            log_file().display()
        );
    }
    let mut session = start.start("run")?;
    let mut log = std::fs::File::create(log_file()).context("cannot write the log")?;
    let terminal = Terminal::take(at_terminal);
    // What is piped in is not typed.
    let typed = if streams[0] { channel().1 } else { read_keys(at_terminal) };
    let status = loop {
        let ways = std::mem::take(&mut session.streams);
        let run = Run {
            session,
            streams: Streams::of_process(ways).context("passing the command's bytes")?,
            screen: screen(streams),
            log: Log::default(),
            readiness: Readiness::of(interactive),
            verbose: options.verbose,
            at_terminal,
            at_console: false,
        };
        match run.pass_through(&typed, &mut log)? {
            End::Restart if interactive => session = start.start("run")?,
            End::Restart => bail!("the command has started the machine again"),
            End::Status(status) => break status,
        }
    };
    drop(terminal);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Where this process shows what the guest writes to its terminal: not where a stream goes.
fn screen(streams: [bool; streams::COUNT]) -> Box<dyn Write> {
    match streams {
        [_, false, _] => Box::new(std::io::stdout()),
        [_, true, false] => Box::new(std::io::stderr()),
        [_, true, true] => Box::new(std::io::sink()),
    }
}

/// What the guest is told about this terminal, for its init.
fn environment(quiet: bool, at_terminal: bool) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    if at_terminal {
        variables.push(("TTY".to_string(), "1".to_string()));
    }
    if quiet {
        variables.push(("QUIET".to_string(), "1".to_string()));
    }
    // A terminal type that is no plain word would not survive the command line of the guest's
    // kernel.
    let plain =
        |term: &String| term.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.+_".contains(&byte));
    if let Some(term) = std::env::var("TERM").ok().filter(plain) {
        variables.push(("TERM".to_string(), term));
    }
    if let Some((rows, columns)) = terminal::size() {
        variables.push(("ROWS".to_string(), rows.to_string()));
        variables.push(("COLUMNS".to_string(), columns.to_string()));
    }
    variables
}

struct Run {
    session: Session,
    streams: Streams,
    /// Where the guest's terminal is shown.
    screen: Box<dyn Write>,
    log: Log,
    /// A shell takes what is typed from the beginning.
    readiness: Readiness,
    verbose: bool,
    /// Whether this terminal passes each key on.
    at_terminal: bool,
    /// Whether this terminal is at the first serial port, where the kernel debugger is, and not at
    /// the guest's terminal.
    at_console: bool,
}

/// How a guest ended.
enum End {
    /// With this status, or because the user has left the interactive session.
    Status(i32),
    /// A program there wants the machine to start again.
    Restart,
}

/// What the user has typed.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Bytes(Vec<u8>),
    /// The end of the input.
    End,
    /// Ctrl-] X.
    Leave,
    /// Ctrl-] C: to the first serial port, or back to the guest's terminal.
    Switch,
    /// Ctrl-] B: into the kernel debugger.
    Break,
}

/// The key that enters the kernel debugger, with the kernel's option `kdb=break`.
const BREAK: &[u8] = b"\x1b";

/// The key that ends a program at a terminal, and its signal.
const INTERRUPT: u8 = 3;
const SIGINT: i32 = 2;
/// The signal that ends a program whose output has no reader.
const SIGPIPE: i32 = 13;

/// The key before those that steer the emulator instead of the guest: Ctrl-], as in telnet. Ctrl-A
/// and the other keys are the guest's.
const ESCAPE: u8 = 0x1d;

impl Run {
    /// Passes everything through until the guest ends.
    fn pass_through(mut self, typed: &Receiver<Typed>, file: &mut std::fs::File) -> Result<End> {
        let mut leaving = false;
        // The size of the window that the guest was told. Before the guest has shown something, no
        // program there listens.
        let (mut told, mut listens) = (None, false);
        let mut early = VecDeque::new();
        loop {
            match self.session.printed.recv_timeout(Duration::from_millis(20)) {
                Ok(Printed::Terminal(bytes)) => {
                    listens = true;
                    let bytes = self.readiness.take(bytes);
                    if !show(&mut self.screen, &bytes)? {
                        return Ok(End::Status(128 + SIGPIPE));
                    }
                }
                Ok(Printed::Log(bytes)) => {
                    self.log.take(&bytes);
                    file.write_all(&bytes)?;
                    if self.at_console {
                        show(&mut self.screen, &bytes)?;
                    } else if self.verbose {
                        std::io::stderr().write_all(&bytes)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some((rows, columns)) = terminal::size().filter(|&size| listens && told != Some(size)) {
                self.session.resize(rows, columns);
                told = Some((rows, columns));
            }
            // Before the command has its terminal, keys that are typed would be lost. So they wait
            // until then. A terminal that passes each key on leaves at Ctrl-C meanwhile, as every
            // other does.
            while self.at_terminal
                && !self.readiness.ready
                && let Ok(typed) = typed.try_recv()
            {
                match typed {
                    Typed::Leave => leaving = true,
                    Typed::Bytes(bytes) if bytes.contains(&INTERRUPT) => {
                        return Ok(End::Status(128 + SIGINT));
                    }
                    typed => early.push_back(typed),
                }
            }
            while self.readiness.ready
                && let Some(typed) = early.pop_front().or_else(|| typed.try_recv().ok())
            {
                match typed {
                    Typed::Bytes(bytes) if self.at_console => self.session.send_console(&bytes),
                    Typed::Bytes(bytes) => self.session.send(&bytes),
                    Typed::Switch => self.switch(!self.at_console),
                    Typed::Break => {
                        self.switch(true);
                        self.session.send_console(BREAK);
                    }
                    // The character that ends the input of a terminal.
                    Typed::End => self.session.send(b"\x04"),
                    Typed::Leave => leaving = true,
                }
            }
            if leaving {
                eprint!("\r\nmac: left\r\n");
                return Ok(End::Status(0));
            }
        }
        self.streams.finish().context("writing the command's output")?;
        if self.log.restarts {
            return Ok(End::Restart);
        }
        let status = self.session.status(&self.log);
        let status = status.with_context(|| {
            format!("what the kernel and the servers said is in {}", log_file().display())
        })?;
        ended(status, listens, &self.log).map(End::Status)
    }

    /// Brings this terminal to the first serial port or to the guest's terminal.
    fn switch(&mut self, to_console: bool) {
        if self.at_console != to_console {
            let place = if to_console { "the system's console; Ctrl-] C goes back" } else { "the guest" };
            eprint!("\r\nmac: this terminal is at {place}\r\n");
        }
        self.at_console = to_console;
    }
}

/// The status with which the guest ended.
///
/// # Errors
/// It is none of a program's: the terminal has shown nothing, so that not even init has run. The
/// error has the last lines of the log.
fn ended(status: i32, listens: bool, log: &Log) -> Result<i32> {
    if status != 0 && !listens {
        bail!("the system ended with status {status} before a program ran in it:\n{}", log.last_lines());
    }
    Ok(status)
}

/// Reads what is typed, or what is piped in, on a separate thread, because the read may block for
/// ever.
fn read_keys(at_terminal: bool) -> Receiver<Typed> {
    let (sender, typed) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        let mut keys = Keys { at_terminal, escaped: false };
        loop {
            let all = match std::io::stdin().read(&mut buffer) {
                Ok(count @ 1..) => keys.take(&buffer[..count]),
                _ => vec![Typed::End],
            };
            for typed in all {
                let last = matches!(typed, Typed::End | Typed::Leave);
                if sender.send(typed).is_err() || last {
                    return;
                }
            }
        }
    });
    typed
}

/// Tells the keys that steer the emulator from those that the guest gets.
struct Keys {
    /// Whether the terminal passes each key on: then [`ESCAPE`] is a key of this program.
    at_terminal: bool,
    /// Whether the key before was [`ESCAPE`].
    escaped: bool,
}

impl Keys {
    fn take(&mut self, keys: &[u8]) -> Vec<Typed> {
        let mut typed = Vec::new();
        let mut bytes = Vec::new();
        for &key in keys {
            if !self.escaped && key == ESCAPE && self.at_terminal {
                self.escaped = true;
                continue;
            }
            let command = match key {
                b'x' | b'X' => Typed::Leave,
                b'c' | b'C' => Typed::Switch,
                b'b' | b'B' => Typed::Break,
                _ => Typed::Bytes(vec![key]),
            };
            match std::mem::take(&mut self.escaped) {
                true => typed.extend([Typed::Bytes(std::mem::take(&mut bytes)), command]),
                false => bytes.push(key),
            }
        }
        typed.push(Typed::Bytes(bytes));
        typed.retain(|typed| !matches!(typed, Typed::Bytes(bytes) if bytes.is_empty()));
        typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use mac_machine::qemu::Boot;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn what_runs(line: &[&str], at_terminal: bool) -> Vec<String> {
        Line::parse_from([&["run"], line].concat()).options.what_runs(at_terminal)
    }

    #[test]
    fn a_command_is_at_the_terminal_if_input_and_output_are() {
        let at_terminal = |line: &[&str], terminals| {
            let options = Line::parse_from([&["run"], line].concat()).options;
            options.at_terminal(terminals).map_err(|error| error.to_string())
        };
        let (all, piped_out, piped_in) = ([true; 3], [true, false, true], [false, true, true]);
        assert_eq!(at_terminal(&["--", "vi"], all), Ok(true));
        assert_eq!(at_terminal(&["--", "ls"], piped_out), Ok(false));
        assert_eq!(at_terminal(&["--", "cat"], piped_in), Ok(false));
        assert_eq!(at_terminal(&["--tty", "no", "--", "cat"], all), Ok(false));
        // What a shell prints can go to a file.
        assert_eq!((at_terminal(&[], piped_out), at_terminal(&[], piped_in)), (Ok(true), Ok(false)));
        assert!(at_terminal(&["--tty=yes", "--", "vi"], piped_out).unwrap_err().contains("--tty"));
        assert_eq!(at_terminal(&["--tty=yes", "--", "vi"], all), Ok(true));
    }

    #[test]
    fn what_cannot_be_shared_is_refused_before_anything_starts() {
        let refusal = |line: &[&str], boot: Boot| {
            let options = Line::parse_from([&["run"], line].concat()).options;
            let mut machine = Machine { boot, ..Machine::default() };
            options.share_directories(&mut machine).map(|()| machine).map_err(|error| format!("{error:#}"))
        };
        let machine = refusal(&["--share", "/tmp:/a b"], Boot::Direct).unwrap();
        assert_eq!((machine.mounts, machine.devices.len()), (vec!["9p:share:/a b".to_string()], 1));
        for (line, boot, word) in [
            (&["--share", "/no/such/directory"][..], Boot::Direct, "/no/such/directory"),
            (&["--share", "/etc/passwd"], Boot::Direct, "not a directory"),
            (&["--share", "/tmp", "--share", "/etc"], Boot::Direct, "/mnt/share"),
            (&["--share", "/tmp", "--kernel", "linux"], Boot::Direct, "--kernel"),
            (&["--share", "/tmp"], Boot::UefiCd, "--uefi"),
        ] {
            let error = refusal(line, boot).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_disk_that_does_not_boot_by_itself_is_refused_through_uefi_and_is_not_made() {
        let options = Line::parse_from(["run", "--disk", "/no/such/disk.img"]).options;
        let mut machine = Machine { boot: Boot::UefiCd, ..Machine::default() };
        let refused = format!("{:#}", options.add_disk(&mut machine).unwrap_err());
        assert!(refused.starts_with("the disk /no/such/disk.img: "), "{refused}");
    }

    #[test]
    fn keys_after_the_escape_key_steer_the_emulator_and_others_reach_the_guest() {
        let bytes = |text: &str| Typed::Bytes(text.into());
        let mut keys = Keys { at_terminal: true, escaped: false };
        assert_eq!(keys.take(b"ls\x1dcq\x1d"), [bytes("ls"), Typed::Switch, bytes("q")]);
        // A second one is the key itself, and Ctrl-A is a key like others.
        assert_eq!(
            keys.take(b"B\x1d\x1d\x01\x1dx"),
            [Typed::Break, bytes("\x1d"), bytes("\x01"), Typed::Leave]
        );
        keys.at_terminal = false;
        assert_eq!(keys.take(b"\x1dx"), [bytes("\x1dx")]);
    }

    #[test]
    fn a_system_that_ends_before_a_program_runs_shows_its_last_lines() {
        let mut log = Log::default();
        log.take(b"unix: no memory\r\nguest: status 16\r\n");
        let error = ended(16, false, &log).unwrap_err().to_string();
        assert!(error.contains("status 16") && error.contains("\n  unix: no memory\n"), "{error}");
        assert_eq!((ended(3, true, &log).unwrap(), ended(0, false, &log).unwrap()), (3, 0));
    }

    #[test]
    fn a_shell_without_a_terminal_runs_a_script_and_a_command_stays_as_it_is() {
        assert!(what_runs(&[], true).is_empty());
        for at_terminal in [true, false] {
            assert_eq!(what_runs(&["--", "ls", "-l"], at_terminal), ["ls", "-l"]);
        }
        let command = what_runs(&[], false);
        let mut shell = Command::new(&command[0]);
        shell.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdin.take().unwrap().write_all(b"echo one\nexit 3\necho two\n").unwrap();
        let output = shell.wait_with_output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.status.code()), (b"one\n".as_slice(), Some(3)));
    }
}
