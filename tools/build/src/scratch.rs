//! Resources on the host that a running machine needs, and that must be released when it ends.

use anyhow::{Context, Result};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;

/// A process that is killed when this is dropped, so that no machine outlives its run.
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a thread that reads to the end and passes each piece on, until the receiver does not take
/// it any more.
pub fn pass_on<T: Send + 'static>(
    mut from: impl Read + Send + 'static,
    to: Sender<T>,
    what: impl Fn(Vec<u8>) -> T + Send + 'static,
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

/// Writes to the terminal. Returns whether there is still a reader: that of a pipe may have ended,
/// as `head -1` does after one line.
pub fn show(terminal: &mut impl Write, shown: &[u8]) -> Result<bool> {
    match terminal.write_all(shown).and_then(|()| terminal.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("writing to the terminal"),
    }
}

/// A temporary directory that is removed when this is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes a directory of its own for each call; `name` becomes a part of its name.
    pub fn new(name: &str) -> Result<Scratch> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // The directory is not in the tree, because the paths of sockets must be short.
        let name = format!("mac-{}-{number}-{}", std::process::id(), file_name(name));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file name made of a run's name.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect::<String>().trim_end_matches('_').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_a_name_are_two_directories() {
        let (first, second) = (Scratch::new("twice").unwrap(), Scratch::new("twice").unwrap());
        drop(first);
        assert!(second.0.is_dir());
    }

    #[test]
    fn a_run_name_becomes_a_plain_file_name() {
        assert_eq!(file_name("boot[q35, uefi-cd]"), "boot_q35__uefi-cd");
    }
}
