//! `./mac run`, `./mac debug` and `./mac image`: the system for interactive use.

use anyhow::{Context, Result, bail};
use mac_build::scratch::{Guard, Scratch, show};
use mac_build::{build, tree};
use mac_machine::image;
use mac_machine::qemu::{Accelerator, module_name};
use mac_machine::symbolise::Symboliser;
use mac_machine::systems::{Choice, Hardware};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
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
}

/// Options of `./mac debug`.
#[derive(clap::Args)]
pub(crate) struct DebugOptions {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    hardware: Hardware,
    /// The TCP port on which QEMU waits for gdb
    #[arg(long, default_value = "1234")]
    port: u16,
}

/// Options of `./mac image`.
#[derive(clap::Args)]
pub(crate) struct ImageOptions {
    #[command(flatten)]
    choice: Choice,
    /// The benchmarks, which show their report on the screen and the serial port
    #[arg(long, conflicts_with = "system")]
    bench: bool,
    /// Where the image is written
    #[arg(long, short, value_name = "FILE", default_value = "target/macadamia.iso")]
    output: PathBuf,
}

/// The system that measures real hardware.
const BENCHMARKS: &str = "hardware-benchmarks";

/// Runs a command or a shell of Linux programs, or boots another system with its console in this
/// terminal.
pub(crate) fn run(options: &RunOptions) -> Result<ExitCode> {
    // The system with guest programs, unless another one is named.
    let guest = options.choice.system.is_none();
    if guest {
        if options.guest.kernel == mac_guest::Kernel::Macadamia {
            build::guest_system()?;
        }
        let mut machine = options.hardware.machine();
        machine.arguments = format!("{} exit", options.choice.arguments).trim_start().to_string();
        return mac_guest::run(&options.guest, machine);
    }
    if options.guest.wanted() {
        bail!("a system of systems.toml runs no command and has no image: leave out its name");
    }
    // Check the name first: if there is no such system, the error comes before minutes of building.
    options.choice.machine(&options.hardware)?;
    build::everything(&build::Options::default())?;
    eprintln!("mac: booting; Ctrl-A X leaves, Ctrl-A H lists the other keys");
    boot(&options.choice, &options.hardware, &[]).map(|()| ExitCode::SUCCESS)
}

/// Boots the system stopped, waiting for gdb.
pub(crate) fn debug(options: &DebugOptions) -> Result<()> {
    build::everything(&build::Options::default())?;
    // QEMU's own message for a port in use names neither the port nor the way out.
    if let Err(error) = TcpListener::bind(("127.0.0.1", options.port)) {
        bail!("port {} cannot be used ({error}): choose another with --port", options.port);
    }
    let machine = options.choice.machine(&options.hardware)?;
    let files = machine.files();
    let (kernel, modules) = files.split_first().context("a machine without a kernel")?;
    // A path may have blanks.
    let symbols = modules.iter().map(|module| format!(" -ex 'add-symbol-file \"{}\"'", module.display()));
    eprintln!("mac: the machine waits for gdb. In another terminal:");
    eprintln!(
        "  gdb '{}' -ex 'target remote :{}'{}",
        kernel.display(),
        options.port,
        symbols.collect::<String>()
    );
    eprintln!(
        "mac: set hardware breakpoints (hbreak) before the kernel has switched on paging; Ctrl-A X leaves"
    );
    boot(&options.choice, &options.hardware, &["-S".into(), "-gdb".into(), format!("tcp::{}", options.port)])
}

/// Writes a bootable image.
pub(crate) fn image(options: &ImageOptions) -> Result<()> {
    let mut choice = options.choice.clone();
    if options.bench {
        build::only_release()?;
        choice.system = Some(BENCHMARKS.into());
    }
    let machine = choice.machine(&Hardware::plain())?;
    match options.bench {
        // Nothing else is built for guests, because building everything takes minutes.
        true => {
            let programs: Vec<&str> = machine.modules.iter().map(|module| module_name(module)).collect();
            build::kernel_and_programs(&programs)?;
        }
        false => drop(build::everything(&build::Options::default())?),
    }
    let output = std::path::absolute(tree::root().join(&options.output))?;
    image::write(&machine, &output)?;
    println!("{}", output.display());
    println!(
        "It boots under BIOS and UEFI, from a CD or from a USB stick (dd if=IMAGE of=/dev/STICK bs=4M)."
    );
    Ok(())
}

fn boot(choice: &Choice, hardware: &Hardware, extra: &[String]) -> Result<()> {
    let mut machine = choice.machine(hardware)?;
    if !machine.boot.imageless() {
        machine.image = Some(image::cached(&machine)?);
    }
    let scratch = Scratch::new("run")?;
    let files = machine.files();
    let symboliser = Symboliser::new(files.iter().map(PathBuf::as_path));
    let mut qemu = machine.command(&scratch.0)?;
    qemu.args(["-serial", "mon:stdio"]).args(extra);
    let result = console(&mut qemu, &symboliser, &mut std::io::stdout());
    if machine.accelerator == Accelerator::Kvm {
        return result
            .context("KVM does not work on this host (QEMU's own words are above): leave out --accel kvm");
    }
    result
}

/// Passes the machine's console through to this terminal and explains the backtraces in it. The
/// machine ends when its output has no reader any more.
fn console(qemu: &mut Command, symboliser: &Symboliser, terminal: &mut impl Write) -> Result<()> {
    let mut child = Guard(qemu.stdout(Stdio::piped()).spawn().context("cannot start QEMU")?);
    let mut output = child.0.stdout.take().context("QEMU without standard output")?;
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut buffer) {
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
            return Ok(());
        }
    }
    let status = child.0.wait()?;
    // The guest's way to end the machine is isa-debug-exit, which makes QEMU exit with an odd
    // status.
    match status.code() {
        Some(code) if code == 0 || code % 2 == 1 && code > 1 => Ok(()),
        _ => bail!("QEMU ended with {status}"),
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
    fn the_console_is_shown_and_the_status_judged() {
        let show = |script: &str| {
            let mut shown = Vec::new();
            let result = console(Command::new("sh").args(["-c", script]), &Symboliser::new([]), &mut shown);
            (String::from_utf8(shown).unwrap(), result.is_ok())
        };
        assert_eq!(show("printf 'a\\nb'; exit 33"), ("a\nb".into(), true));
        assert_eq!(show("echo wrong; exit 1"), ("wrong\n".into(), false));
    }
}
