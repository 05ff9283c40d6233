//! A client of QEMU's machine protocol: it finds out whether a machine hangs, where, and whether
//! its processors are idle.

use crate::qemu;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long QEMU may take for an answer; on a busy host that may be long.
const ANSWER: Duration = Duration::from_secs(60);

/// How often the processors of a machine must be found idle before it counts as hung, and the pause
/// before each look.
const RESTS: u32 = 5;
const REST: Duration = Duration::from_millis(20);

/// Makes a QEMU that is to be started listen on this socket.
pub fn listen(command: &mut Command, socket: &Path) -> Result<()> {
    command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", qemu::value(socket)?));
    Ok(())
}

/// A connection to the monitor of a running QEMU.
pub struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects to the socket that QEMU listens on. Waits at most [`ANSWER`] for each answer.
    pub fn connect(socket: &Path) -> Result<Monitor> {
        let stream = UnixStream::connect(socket).context("connecting to QEMU's monitor")?;
        stream.set_read_timeout(Some(ANSWER))?;
        let mut monitor = Monitor { stream: BufReader::new(stream) };
        monitor.read()?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Sends every processor a non-maskable interrupt; the kernel then reports where it is.
    pub(crate) fn inject_nmi(&mut self) -> Result<()> {
        self.execute("inject-nmi", json!({})).map(|_| ())
    }

    /// The registers of every processor, as QEMU prints them.
    pub fn registers(&mut self) -> Result<String> {
        self.ask("info registers -a")
    }

    /// Whether every processor of the machine has halted until its next interrupt, and has no
    /// interrupt to take. On a busy host a processor may stay halted for long although it has an
    /// interrupt. A processor that has halted with interrupts disabled takes none.
    pub fn is_at_rest(&mut self) -> Result<bool> {
        let registers = self.registers()?;
        for (processor, registers) in of_each(&registers).enumerate() {
            if takes_interrupts(registers) && is_interrupted(&self.ask(&format!("info lapic {processor}"))?) {
                return Ok(false);
            }
        }
        Ok(all_halted(&self.registers()?))
    }

    /// The answer to a command of QEMU's human monitor.
    pub fn ask(&mut self, command: &str) -> Result<String> {
        let answer = self.execute("human-monitor-command", json!({"command-line": command}))?;
        Ok(answer.as_str().unwrap_or_default().replace('\r', ""))
    }

    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let mut request = json!({"execute": command, "arguments": arguments}).to_string();
        request.push('\n');
        self.stream.get_mut().write_all(request.as_bytes())?;
        loop {
            let answer = self.read()?;
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            }
            if let Some(error) = answer.get("error") {
                bail!("QEMU refused {command}: {error}");
            }
        }
    }

    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("QEMU closed its monitor");
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// Asks a machine that hangs for its state: the kernel by a non-maskable interrupt, upon which its
/// debugger prints threads and a backtrace on the console; and QEMU for the registers, in case the
/// kernel cannot answer. Returns the registers.
pub fn interrogate(socket: &Path) -> String {
    let answer = Monitor::connect(socket).and_then(|mut monitor| {
        let registers = monitor.registers()?;
        monitor.inject_nmi()?;
        Ok(registers)
    });
    let text = answer.unwrap_or_else(|error| format!("the monitor did not answer: {error:#}"));
    let wanted = |line: &&str| {
        ["CPU#", "RAX", "RSI", "R8", "R12", "RIP", "CR0", "the monitor"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let lines = text.lines().filter(wanted).map(|line| line.replace('=', " = ") + "\n");
    std::iter::once("--- registers when the machine was given up ---\n".to_string()).chain(lines).collect()
}

fn all_halted(registers: &str) -> bool {
    registers.contains("HLT=1") && !registers.contains("HLT=0")
}

/// Splits QEMU's output into the registers of each processor.
fn of_each(registers: &str) -> impl Iterator<Item = &str> {
    registers.split("CPU#").skip(1)
}

/// Whether a processor has interrupts enabled: bit 9 of its flags.
fn takes_interrupts(registers: &str) -> bool {
    let flags = registers.split_whitespace().find_map(|word| word.strip_prefix("RFL="));
    flags.and_then(|flags| u64::from_str_radix(flags, 16).ok()).is_none_or(|flags| flags & 1 << 9 != 0)
}

/// Whether a silent machine is idle each time that it is looked at, or its QEMU does not even
/// answer.
pub fn stands_still(socket: &Path) -> bool {
    let look = |monitor: &mut Monitor| {
        std::thread::sleep(REST);
        monitor.is_at_rest().unwrap_or(true)
    };
    Monitor::connect(socket).map_or(true, |mut monitor| (0..RESTS).all(|_| look(&mut monitor)))
}

/// Whether a local APIC has an interrupt that its processor has not taken.
fn is_interrupted(local_apic: &str) -> bool {
    let mut lines = local_apic.lines().map(str::trim);
    lines.any(|line| line.strip_prefix("IRR").is_some_and(|requests| requests.trim() != "(none)"))
}

#[cfg(test)]
mod tests {
    use super::{all_halted, is_interrupted, of_each, takes_interrupts};

    #[test]
    fn a_machine_rests_when_all_its_processors_do() {
        let of = |flags: &[&str]| {
            flags.iter().map(|flag| format!("CPU#\nA20=1 SMM=0 HLT={flag}\n")).collect::<String>()
        };
        assert!(all_halted(&of(&["1"])) && all_halted(&of(&["1", "1"])));
        assert!(!all_halted(&of(&["0"])) && !all_halted(&of(&["1", "0"])) && !all_halted(""));
    }

    #[test]
    fn a_processor_that_has_an_interrupt_to_take_does_not_rest() {
        let of = |requests: &str| {
            format!(
                "dumping local APIC state for CPU 1 \n\nSPIV\t 0x000001ff APIC enabled\nISR\t (none)\nIRR\t {requests}\n"
            )
        };
        assert!(!is_interrupted(&of("(none)")) && !is_interrupted("No local APIC\n"));
        assert!(is_interrupted(&of("33 ")) && is_interrupted(&of("33(level) 64 ")));
    }

    #[test]
    fn a_processor_that_has_halted_for_good_takes_no_interrupts() {
        let registers = "\nCPU#0\nRIP=0 RFL=00000246 [---Z-P-] CPL=0 HLT=1\n\nCPU#1\nRIP=0 RFL=00000046 [---Z-P-] HLT=1\n";
        assert_eq!(of_each(registers).map(takes_interrupts).collect::<Vec<_>>(), [true, false]);
        assert!(takes_interrupts("RAX=0"), "it is not said");
    }
}
