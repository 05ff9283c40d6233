//! `./mac run`, `./mac debug` and `./mac image`: boot the system for interactive use, or write it
//! as an image.

use anyhow::{Context, Result, bail};
use mac_build::scratch::{Guard, Scratch, show};
use mac_build::{build, tree};
use mac_machine::devices::{self, DiskImage};
use mac_machine::image;
use mac_machine::network::{Network, Published};
use mac_machine::qemu::{Accelerator, Machine, module_name};
use mac_machine::symbolise::Symboliser;
use mac_machine::systems::{Choice, Hardware};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Options of `./mac run`.
#[derive(clap::Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    guest: mac_guest::RunOptions,
    #[command(flatten)]
    hardware: Hardware,
    /// A raw image that the machine has as a disk as it is: /dev/vda, or /dev/vdb with --disk; with
    /// `,ro` it is read-only, with `,nvme` it is an NVMe disk, /dev/nvme0n1
    #[arg(long, value_name = "FILE[,ro][,nvme]")]
    attach: Option<DiskImage>,
    /// Give the machine a network: one in the emulator with a way out (`user`, the default), a
    /// network device of this computer (`tap=DEVICE`), or another machine (`peer=listen:PORT` in
    /// one, `peer=connect:PORT` in the other)
    #[arg(long, value_name = "NETWORK", num_args = 0..=1, default_missing_value = "user")]
    net: Option<Network>,
    /// Place the internet protocols in a task of their own, and not in the Unix server
    #[arg(long)]
    network_server: bool,
    /// Pass connections to this port of this computer, 127.0.0.1, on to a port of the machine; with
    /// `/udp`, datagrams; implies --net
    #[arg(long, value_name = "HOST:GUEST[/udp]")]
    publish: Vec<Published>,
    /// Run this native Mach program, a static ELF file, instead of Linux programs; the words after
    /// `--` are its arguments
    #[arg(long, value_name = "PROGRAM", conflicts_with = "system")]
    mach: Option<PathBuf>,
}

/// Options of `./mac debug`.
#[derive(clap::Args)]
pub(crate) struct DebugOptions {
    #[command(flatten)]
    run: RunOptions,
    /// The TCP port on which QEMU waits for gdb
    #[arg(long, default_value = "1234")]
    port: u16,
}

/// Options of `./mac image`.
#[derive(clap::Args)]
pub(crate) struct ImageOptions {
    #[command(flatten)]
    choice: Choice,
    /// Make a disk with a root file system that lasts, which boots by itself, instead of an ISO
    /// image. If there is one, the kernel and the servers on it are replaced, and its files stay
    #[arg(long, value_name = "FILE", conflicts_with_all = ["system", "bench", "output"])]
    disk: Option<PathBuf>,
    #[command(flatten)]
    contents: mac_guest::DiskOptions,
    /// The benchmarks, which show their report on the screen and the serial port
    #[arg(long, conflicts_with = "system")]
    bench: bool,
    /// Where the image is written
    #[arg(long, short, value_name = "FILE", default_value = "target/macadamia.iso")]
    output: PathBuf,
}

/// The system that measures on real hardware.
const BENCHMARKS: &str = "hardware-benchmarks";

/// Runs a command or a shell of Linux programs, or boots another system with its console in this
/// terminal.
pub(crate) fn run(options: &RunOptions) -> Result<ExitCode> {
    if let Some(program) = &options.mach {
        return run_mach(options, program);
    }
    // Without a name, the system with guest programs is booted.
    if options.choice.system.is_none() {
        if options.guest.kernel == mac_guest::Kernel::Macadamia {
            build::guest_system()?;
        }
        let machine = options.guest_machine(&["exit"])?;
        if machine.boot.from_disk() {
            eprintln!("mac: the disk's own system boots; Ctrl-] X leaves, `poweroff` ends it");
            return boot_machine(machine, &[]).map(|()| ExitCode::SUCCESS);
        }
        return mac_guest::run(&options.guest, machine);
    }
    options.check()?;
    build::everything(&build::Options::default())?;
    eprintln!("mac: booting; Ctrl-] X leaves, Ctrl-] H lists the other keys");
    boot(&options.choice, &options.hardware, &[]).map(|()| ExitCode::SUCCESS)
}

/// Runs a native Mach program, with its output in this terminal.
fn run_mach(options: &RunOptions, program: &Path) -> Result<ExitCode> {
    let program = std::path::absolute(program)?;
    if !program.is_file() {
        bail!("--mach {}: there is no such file", program.display());
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let configuration = mach_configuration(&name, &options.guest.command)?;
    build::kernel_and_programs(&["sigma0", "root", "mach"])?;
    let scratch = Scratch::new("mach")?;
    let file = scratch.0.join(MACH_CONFIGURATION);
    std::fs::write(&file, configuration).with_context(|| format!("writing {}", file.display()))?;
    let mut machine = options.hardware.machine();
    machine.arguments = format!("{} exit", options.choice.arguments).trim_start().to_string();
    machine.modules = ["sigma0", "root", MACH_CONFIGURATION, "mach", &name].map(String::from).to_vec();
    machine.elsewhere.extend([(MACH_CONFIGURATION.to_string(), file), (name, program)]);
    let accelerator = machine.accelerator;
    in_context(accelerator, watch(machine, &[]).and_then(|ended| mach_status(&ended)))
}

/// The exit code for the end of a machine that ran a native Mach program: success if the server has
/// ended with status 0, failure with status 1, which it has after an exception.
fn mach_status(ended: &Ended) -> Result<ExitCode> {
    match ended {
        // QEMU itself also fails with 1, but then before the machine has said anything.
        Ended { status: None | Some(0), .. } | Ended { status: Some(1), printed: true } => {
            Ok(ExitCode::SUCCESS)
        }
        Ended { status: Some(3), .. } => Ok(ExitCode::FAILURE),
        Ended { status: Some(status), .. } => bail!("QEMU ended with status {status}"),
    }
}

/// The name of the boot configuration with a native Mach program.
const MACH_CONFIGURATION: &str = "native-program.conf";

/// The boot configuration that starts the native Mach program in the module `name`.
fn mach_configuration(name: &str, arguments: &[String]) -> Result<String> {
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace) && word != "--";
    for word in std::iter::once(name).chain(arguments.iter().map(String::as_str)) {
        if !is_word(word) || word.contains('#') {
            bail!("{word:?} cannot be passed to a native Mach program: it must be one word");
        }
    }
    let words = arguments.iter().map(|word| format!(" {word}")).collect::<String>();
    Ok(format!(
        "server mach\n    program mach\n    priority 150\n    threads 4000\n    spaces 400\n    memory rest\n    \
         module {name}\n    power yes\n    \
         arguments -- {name} ${{host-port}} ${{device-port}}{words} $(task-create) $(task-resume)\n"
    ))
}

impl RunOptions {
    /// The machine for guest programs, with further words for the kernel.
    fn guest_machine(&self, words: &[&str]) -> Result<Machine> {
        let mut machine = self.hardware.machine();
        let words = std::iter::once(self.choice.arguments.as_str()).chain(words.iter().copied());
        machine.arguments = words.collect::<Vec<_>>().join(" ").trim_start().to_string();
        machine.devices = vec![devices::ENTROPY, devices::CLOCK];
        if machine.screen.is_some() {
            machine.devices.extend([devices::KEYBOARD, devices::SCREEN]);
        }
        self.guest.add_disk(&mut machine)?;
        let has_more = self.attach.is_some() || self.network().is_some() || self.network_server;
        if machine.boot.from_disk() && has_more {
            bail!(
                "--uefi: the disk's own system has no other devices; leave out --attach and those of networks"
            );
        }
        if let Some(image) = &self.attach {
            machine.add_disk(image)?;
        }
        if let Some(network) = self.network() {
            machine.add_network(&network, &self.publish)?;
        }
        if self.network_server {
            machine.add_network_server();
        }
        Ok(machine)
    }

    /// The network that the options ask for.
    fn network(&self) -> Option<Network> {
        self.net.clone().or((!self.publish.is_empty()).then_some(Network::User))
    }

    /// Checks the options of a named system. If there is no such system, the error comes before
    /// minutes of building.
    fn check(&self) -> Result<()> {
        if self.guest.wanted() {
            bail!("a system of systems.toml runs no command and has no image: leave out its name");
        }
        if self.attach.is_some() {
            bail!("only the system with Linux programs has a disk: leave out --attach");
        }
        if self.network().is_some() {
            bail!("only the system with Linux programs has a network: leave out --net and --publish");
        }
        if self.network_server {
            bail!("only the system with Linux programs has internet protocols: leave out --network-server");
        }
        self.choice.machine(&self.hardware).map(drop)
    }
}

/// Boots the system that `run` would boot, stopped until gdb connects.
pub(crate) fn debug(options: &DebugOptions) -> Result<ExitCode> {
    let DebugOptions { run, port } = options;
    // QEMU's own message for a port in use names neither the port nor the option to choose another.
    if let Err(error) = TcpListener::bind(("127.0.0.1", *port)) {
        bail!("port {port} cannot be used ({error}): choose another with --port");
    }
    let stopped = ["-S".to_string(), "-gdb".into(), format!("tcp:127.0.0.1:{port}")];
    if run.choice.system.is_none() {
        if run.guest.kernel != mac_guest::Kernel::Macadamia {
            bail!("gdb gets the symbols of this tree's kernel only: leave out --kernel");
        }
        build::guest_system()?;
        let mut machine = run.guest_machine(&["kdb=break"])?;
        machine.extra.extend(stopped);
        let files = ["kernel", "root", "console", "unix"].map(|name| tree::boot().join(name));
        eprint!("{}", how_to_attach(&files, *port));
        return mac_guest::run(&run.guest, machine);
    }
    run.check()?;
    build::everything(&build::Options::default())?;
    eprint!("{}", how_to_attach(&run.choice.machine(&run.hardware)?.files(), *port));
    boot(&run.choice, &run.hardware, &stopped).map(|()| ExitCode::SUCCESS)
}

/// The command line for gdb, with the symbols of these files, of which the first is the kernel.
/// Files that are not programs have none.
fn how_to_attach(files: &[PathBuf], port: u16) -> String {
    let kernel = files.first().map(|file| file.display().to_string()).unwrap_or_default();
    let is_program =
        |file: &&PathBuf| std::fs::read(file).is_ok_and(|content| content.starts_with(b"\x7fELF"));
    // Paths may have blanks, so they are quoted.
    let symbols = files.iter().skip(1).filter(is_program);
    let symbols = symbols.map(|file| format!(" -ex 'add-symbol-file \"{}\"'", file.display()));
    format!(
        "mac: the machine waits for gdb. In another terminal:\n  \
         gdb '{kernel}'{} -ex 'target remote :{port}'\n\
         mac: set hardware breakpoints (hbreak): the programs are not in memory yet; Ctrl-] X leaves\n",
        symbols.collect::<String>()
    )
}

/// Writes a bootable image.
pub(crate) fn image(options: &ImageOptions) -> Result<()> {
    let mut choice = options.choice.clone();
    if options.bench {
        build::only_release()?;
        choice.system = Some(BENCHMARKS.into());
    }
    if let Some(disk) = &options.disk {
        build::guest_system()?;
        let disk = std::path::absolute(disk)?;
        options.contents.write(&disk, &choice.arguments)?;
        println!("{}", disk.display());
        println!("It boots under BIOS and UEFI, as a virtio or NVMe disk (docs/src/disks.md).");
        return Ok(());
    }
    let output = std::path::absolute(tree::root().join(&options.output))?;
    let scratch = Scratch::new("stick")?;
    if choice.system.is_none() {
        build::guest_system()?;
        let machine = Machine { arguments: choice.arguments.clone(), ..Hardware::plain().machine() };
        let machine = options.contents.on_stick(machine, &scratch.0)?;
        return write_image(&machine, &output);
    }
    let machine = choice.machine(&Hardware::plain())?;
    match options.bench {
        // Only the programs for guests are built, because building everything takes minutes.
        true => {
            let programs: Vec<&str> = machine.modules.iter().map(|module| module_name(module)).collect();
            build::kernel_and_programs(&programs)?;
        }
        false => drop(build::everything(&build::Options::default())?),
    }
    write_image(&machine, &output)
}

fn write_image(machine: &Machine, output: &Path) -> Result<()> {
    image::write(machine, output)?;
    println!("{}", output.display());
    println!(
        "It boots under BIOS and UEFI, from a CD or from a USB stick (dd if=IMAGE of=/dev/STICK bs=4M)."
    );
    Ok(())
}

fn boot(choice: &Choice, hardware: &Hardware, extra: &[String]) -> Result<()> {
    boot_machine(choice.machine(hardware)?, extra)
}

/// Boots a machine with its console in this terminal.
fn boot_machine(machine: Machine, extra: &[String]) -> Result<()> {
    let accelerator = machine.accelerator;
    in_context(accelerator, watch(machine, extra).and_then(|ended| judge(&ended)))
}

/// Says what may be wrong if a machine has failed.
fn in_context<T>(accelerator: Accelerator, result: Result<T>) -> Result<T> {
    if accelerator == Accelerator::Kvm {
        return result
            .context("KVM does not work on this host (QEMU's own words are above): leave out --accel kvm");
    }
    result
}

/// Boots a machine and shows its console until it ends.
fn watch(mut machine: Machine, extra: &[String]) -> Result<Ended> {
    if !machine.boot.imageless() {
        machine.image = Some(image::cached(&machine)?);
    }
    let scratch = Scratch::new("run")?;
    let files = machine.files();
    let symboliser = Symboliser::new(files.iter().map(PathBuf::as_path));
    let mut qemu = machine.command(&scratch.0)?;
    // The escape key is that of guests.
    qemu.args(["-serial", "mon:stdio", "-echr", "0x1d"]).args(extra);
    console(&mut qemu, &symboliser, &mut std::io::stdout())
}

/// How a machine has ended.
#[derive(Debug)]
struct Ended {
    /// QEMU's exit status; `None`: the machine was stopped because its output had no reader. A
    /// signal is -1.
    status: Option<i32>,
    /// Whether the machine has printed anything.
    printed: bool,
}

/// Passes the machine's console through to this terminal and explains the backtraces in it. The
/// machine is stopped when its output has no reader any more.
fn console(qemu: &mut Command, symboliser: &Symboliser, terminal: &mut impl Write) -> Result<Ended> {
    let mut child = Guard(qemu.stdout(Stdio::piped()).spawn().context("cannot start QEMU")?);
    let mut output = child.0.stdout.take().context("QEMU without standard output")?;
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    let mut printed = false;
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        printed = true;
        let mut shown = Vec::new();
        for byte in &buffer[..count] {
            shown.push(*byte);
            match byte {
                b'\n' => {
                    for explanation in symboliser.explain(&String::from_utf8_lossy(&line)) {
                        shown.extend(format!("    {explanation}\r\n").bytes());
                    }
                    line.clear();
                }
                _ => line.push(*byte),
            }
        }
        if !show(terminal, &shown)? {
            return Ok(Ended { status: None, printed });
        }
    }
    Ok(Ended { status: Some(child.0.wait()?.code().unwrap_or(-1)), printed })
}

/// Returns an error if the end of a machine was not that of a guest: a guest ends the machine by
/// the device isa-debug-exit, which makes QEMU exit with an odd status.
fn judge(ended: &Ended) -> Result<()> {
    match ended.status {
        None => Ok(()),
        Some(status) if status == 0 || status % 2 == 1 && status > 1 => Ok(()),
        Some(status) => bail!("QEMU ended with status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_whose_output_has_no_reader_ends_quietly() {
        let (mut terminal, reader) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        let mut endless = Command::new("sh");
        endless.args(["-c", "while echo x; do :; done"]);
        console(&mut endless, &Symboliser::new([]), &mut terminal).unwrap();
    }

    #[test]
    fn a_native_program_gets_its_arguments_as_words() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let text = mach_configuration("hello", &words(&["-v", "x"])).unwrap();
        let line = "arguments -- hello ${host-port} ${device-port} -v x $(task-create) $(task-resume)\n";
        assert!(text.ends_with(line) && text.contains("module hello\n"), "{text}");
        for bad in ["two words", "", "--", "a#b"] {
            assert!(mach_configuration("hello", &words(&[bad])).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_console_is_shown_and_the_status_judged() {
        let show = |script: &str| {
            let mut shown = Vec::new();
            let ended =
                console(Command::new("sh").args(["-c", script]), &Symboliser::new([]), &mut shown).unwrap();
            let code = mach_status(&ended).ok().map(|code| code == ExitCode::SUCCESS);
            (String::from_utf8(shown).unwrap(), judge(&ended).is_ok(), code)
        };
        assert_eq!(show("printf 'a\\nb'; exit 33"), ("a\nb".into(), true, None));
        assert_eq!(show("echo wrong; exit 1"), ("wrong\n".into(), false, Some(true)));
        // A native program that an exception has ended, and a machine that never began.
        assert_eq!(show("echo bad; exit 3"), ("bad\n".into(), true, Some(false)));
        assert_eq!(show("exit 1"), (String::new(), false, None));
        assert_eq!(show("kill -9 $$"), (String::new(), false, None));
    }
}
