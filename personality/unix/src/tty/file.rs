//! The open file of a terminal.

use super::terminal::Terminal;
use crate::file::{FileObject, Io};
use crate::poll::{PollQueue, Readiness};
use crate::process_context::ProcessContext;
use crate::vfs::OpenFlags;
use crate::{AttemptError, Error, Identity, Privilege, Result, UserBuffer};
use alloc::sync::Arc;
use core::time::Duration;

/// The slave side of a terminal, as an open file.
pub struct TerminalFile {
    terminal: Arc<Terminal>,
    /// The terminal's count of hang-ups when the file was opened.
    hangups: u64,
}

impl TerminalFile {
    /// Opens the slave side of a terminal. `EBUSY` if a process has it for exclusive use
    /// (TIOCEXCL).
    pub fn open(
        terminal: &Arc<Terminal>,
        process: &dyn ProcessContext,
        identity: Option<&Identity>,
        flags: OpenFlags,
    ) -> Result<Arc<TerminalFile>> {
        let hangups = {
            let mut state = terminal.state.lock();
            let administrator = identity.is_none_or(|identity| identity.has(Privilege::Administrator));
            if state.exclusive && state.opens > 0 && !administrator {
                return Err(Error::EBUSY);
            }
            state.opens += 1;
            state.was_opened = true;
            state.hangups
        };
        let file = Arc::new(TerminalFile { terminal: terminal.clone(), hangups });
        if !flags.contains(OpenFlags::NO_CONTROLLING_TERMINAL) && flags.contains(OpenFlags::READ) {
            terminal.acquire_if_free(process);
        }
        Ok(file)
    }

    /// Whether the terminal was hung up after the file was opened.
    pub fn is_dead(&self) -> bool {
        self.terminal.state.lock().hangups != self.hangups
    }
}

impl FileObject for TerminalFile {
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if self.is_dead() || to.remaining() == 0 {
            return Ok(0);
        }
        self.terminal.check_read(io.caller.process)?;
        self.terminal.read(to, io.expired)
    }

    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if self.is_dead() {
            return Err(Error::EIO.into());
        }
        self.terminal.check_write(io.caller.process)?;
        self.terminal.write(from)
    }

    fn writes_all(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        if self.is_dead() {
            return Readiness::READ | Readiness::WRITE | Readiness::ERROR | Readiness::HANGUP;
        }
        self.terminal.readiness()
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.terminal.programs)
    }

    fn deadline(&self, io: &Io<'_>, write: bool) -> Option<Duration> {
        if write { None } else { self.terminal.read_deadline(io.started) }
    }

    fn label(&self) -> &'static str {
        "tty"
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.terminal.readable_bytes())
    }

    fn terminal(&self) -> Option<&Arc<Terminal>> {
        Some(&self.terminal)
    }
}

impl Drop for TerminalFile {
    fn drop(&mut self) {
        let mut state = self.terminal.state.lock();
        state.opens -= 1;
        let last = state.opens == 0;
        if last {
            state.exclusive = false;
        }
        drop(state);
        if last {
            self.terminal.driver.wake(Readiness::ALL);
        }
    }
}
