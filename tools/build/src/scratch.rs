//! What a running machine needs on the host, and what must not outlive it.

use anyhow::{Context, Result};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::Sender;

/// Kills the machine when dropped, so that none outlives its run.
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes on what can be read, on a thread of its own, until the end or until nothing takes it.
pub fn pass_on<T: Send + 'static>(
    mut from: impl Read + Send + 'static,
    to: Sender<T>,
    what: fn(Vec<u8>) -> T,
) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(what(buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
}

/// Shows something. Returns whether there is still a reader: the reader of a pipe may have ended,
/// as `head -1` does after one line.
pub fn show(terminal: &mut impl Write, shown: &[u8]) -> Result<bool> {
    match terminal.write_all(shown).and_then(|()| terminal.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("writing to the terminal"),
    }
}

/// A private directory that disappears with its run.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the directory; `name` becomes a part of its name.
    pub fn new(name: &str) -> Result<Scratch> {
        // Sockets have short names, so this is not below the tree.
        let path = std::env::temp_dir().join(format!("mac-{}-{}", std::process::id(), file_name(name)));
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A run's name as a file name.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect::<String>().trim_end_matches('_').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_name_becomes_a_plain_file_name() {
        assert_eq!(file_name("boot[q35, uefi-cd]"), "boot_q35__uefi-cd");
    }
}
