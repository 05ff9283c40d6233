//! A command in a guest, and what it prints: for measuring.

use super::session::{Kernel, Log, Printed, Readiness, Start};
use super::{Request, make};
use anyhow::{Result, bail};
use mac_machine::qemu::Machine;
use mac_machine::suites::Mode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// For how long a machine may print nothing before it is given up.
const PATIENCE: Duration = Duration::from_secs(900);

impl Start {
    /// Boots: what the terminal has shown when the machine ends.
    ///
    /// # Errors
    /// It was silent for too long, or its status was not 0.
    pub fn output(&self, name: &str) -> Result<String> {
        let mut session = self.start(name)?;
        let (mut log, mut readiness, mut shown) = (Log::default(), Readiness::of(false), Vec::new());
        loop {
            match session.clock.receive(&session.printed, PATIENCE) {
                Ok(Printed::Terminal(bytes)) => shown.extend(readiness.take(bytes)),
                Ok(Printed::Log(bytes)) => log.take(&bytes),
                Err(RecvTimeoutError::Timeout) => bail!("nothing was shown for {} s", PATIENCE.as_secs()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let shown = String::from_utf8_lossy(&shown).replace('\r', "");
        match session.status(&log)? {
            0 => Ok(shown),
            status => bail!("the system ended with status {status}; it showed:\n{shown}"),
        }
    }
}

/// Boots an image with a command: what it has printed when the machine ends.
///
/// # Errors
/// As [`Start::output`], and what making the image can fail with.
pub fn output(
    request: &Request,
    kernel: Kernel,
    mode: Mode,
    machine: Machine,
    command: &[String],
) -> Result<String> {
    // Ours has no such mitigations either.
    let environment = match kernel {
        Kernel::Linux => vec![("mitigations".to_string(), "off".to_string())],
        Kernel::Macadamia => Vec::new(),
    };
    let (image, command) = (Some(make(request)?.path), command.to_vec());
    Start { kernel, mode, image, command, greet: false, streams: Default::default(), environment, machine }
        .output("output")
}
