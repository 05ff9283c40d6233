//! Job control: sessions, foreground groups, stopping background processes, hang-up
//! (credentials(7), tty_ioctl(4)).

use super::settings::{LocalModes, Settings};
use super::terminal::Terminal;
use crate::poll::{Readiness, until_ready};
use crate::process_context::{FileSignal, ProcessContext, ProcessId};
use crate::{AttemptError, Error, Identity, Privilege, Result};
use alloc::sync::Arc;

impl Terminal {
    fn is_controlling(self: &Arc<Self>, process: &dyn ProcessContext) -> bool {
        process.terminal().is_some_and(|terminal| Arc::ptr_eq(&terminal, self))
    }

    /// Whether this is the controlling terminal of the process, which is in the background.
    fn in_background(&self, process: &dyn ProcessContext) -> bool {
        let controlling = process.terminal().is_some_and(|terminal| core::ptr::eq(&*terminal, self));
        let state = self.state.lock();
        controlling
            && state.session == Some(process.session())
            && state.foreground.is_some_and(|foreground| foreground != process.group())
    }

    /// Checks that a process may read. A background process is sent SIGTTIN, and the result is
    /// [`AttemptError::WouldBlock`]; `EIO` if the signal would not stop it.
    pub(super) fn check_read(&self, process: &dyn ProcessContext) -> Result<(), AttemptError> {
        if !self.in_background(process) {
            return Ok(());
        }
        if process.disregards(FileSignal::BackgroundRead) || process.is_orphaned() {
            return Err(Error::EIO.into());
        }
        process.signal_group(process.group(), FileSignal::BackgroundRead);
        Err(AttemptError::WouldBlock)
    }

    /// Checks that a process may write. A background process is sent SIGTTOU, as by
    /// [`Terminal::check_read`], if the settings stop background output (TOSTOP).
    pub(super) fn check_write(&self, process: &dyn ProcessContext) -> Result<(), AttemptError> {
        if !self.settings().local.contains(LocalModes::STOP_BACKGROUND) {
            return Ok(());
        }
        self.check_change(process)
    }

    fn check_change(&self, process: &dyn ProcessContext) -> Result<(), AttemptError> {
        if !self.in_background(process) || process.disregards(FileSignal::BackgroundWrite) {
            return Ok(());
        }
        if process.is_orphaned() {
            return Err(Error::EIO.into());
        }
        process.signal_group(process.group(), FileSignal::BackgroundWrite);
        Err(AttemptError::WouldBlock)
    }

    /// Waits until the process is in the foreground, before it changes the terminal: a background
    /// process is stopped (SIGTTOU). It does not wait if the process blocks or ignores the signal.
    pub(super) async fn to_foreground(&self, process: &dyn ProcessContext) -> Result<()> {
        let ready = until_ready(&self.programs, Readiness::ALL, || self.check_change(process));
        match ready.await {
            Ok(()) => Ok(()),
            Err(AttemptError::Failed(error)) => Err(error),
            Err(_) => Err(Error::EIO),
        }
    }

    /// Makes this the controlling terminal of a session leader that opens it, if neither has a
    /// partner yet: the session no terminal, the terminal no session.
    pub(super) fn acquire_if_free(self: &Arc<Self>, process: &dyn ProcessContext) {
        if process.process() == process.session() && process.terminal().is_none() {
            let mut state = self.state.lock();
            if state.session.is_none() {
                state.session = Some(process.session());
                state.foreground = Some(process.group());
                drop(state);
                process.set_terminal(Some(self.clone()));
            }
        }
    }

    /// Makes this the controlling terminal of the caller's session (TIOCSCTTY); with `steal`, an
    /// administrator takes it from another session.
    pub fn acquire(
        self: &Arc<Self>,
        process: &dyn ProcessContext,
        identity: &Identity,
        steal: bool,
    ) -> Result<()> {
        if self.is_controlling(process) && process.process() == process.session() {
            return Ok(());
        }
        if process.process() != process.session() || process.terminal().is_some() {
            return Err(Error::EPERM);
        }
        let mut state = self.state.lock();
        let robbed = state.session;
        if robbed.is_some() && !(steal && identity.has(Privilege::Administrator)) {
            return Err(Error::EPERM);
        }
        state.session = Some(process.session());
        state.foreground = Some(process.group());
        drop(state);
        if let Some(session) = robbed {
            self.host.lose_terminal(session);
        }
        process.set_terminal(Some(self.clone()));
        Ok(())
    }

    /// Makes the terminal give up the caller's session, whose controlling terminal it is
    /// (TIOCNOTTY): the foreground group gets SIGHUP and SIGCONT. This has no effect if the caller
    /// does not lead the session.
    pub fn give_up(self: &Arc<Self>, process: &dyn ProcessContext) -> Result<()> {
        if !self.is_controlling(process) {
            return Err(Error::ENOTTY);
        }
        if process.process() == process.session() {
            self.disconnect(true);
            process.set_terminal(None);
        }
        Ok(())
    }

    /// To be called when the leader of the terminal's session has ended.
    pub fn leader_ended(&self) {
        self.disconnect(false);
    }

    fn disconnect(&self, go_on: bool) {
        let mut state = self.state.lock();
        let (session, foreground) = (state.session.take(), state.foreground.take());
        drop(state);
        if let Some(group) = foreground {
            self.host.signal_group(group, FileSignal::Hangup);
            if go_on {
                self.host.signal_group(group, FileSignal::Continue);
            }
        }
        if let Some(session) = session {
            self.host.lose_terminal(session);
        }
        self.changed();
    }

    /// Hangs up the terminal, since its other side is gone (or vhangup(2)): the session's leader
    /// gets SIGHUP, and on files that are open now reads return 0 bytes and writes fail.
    pub fn hang_up(&self) {
        let mut state = self.state.lock();
        state.hangups += 1;
        let session = state.session.take();
        state.foreground = None;
        state.discipline.flush_input();
        state.discipline.output.bytes.clear();
        state.discipline.set(Settings::default());
        drop(state);
        if let Some(leader) = session {
            self.host.signal_process(leader, FileSignal::Hangup);
            self.host.signal_process(leader, FileSignal::Continue);
            self.host.lose_terminal(leader);
        }
        self.programs.wake(Readiness::ALL);
        self.driver.wake(Readiness::ALL);
    }

    /// The foreground process group (tcgetpgrp(3)); 0 if there is none. Any process may ask for it
    /// through the master.
    pub fn foreground(self: &Arc<Self>, process: &dyn ProcessContext, master: bool) -> Result<ProcessId> {
        if !master && !self.is_controlling(process) {
            return Err(Error::ENOTTY);
        }
        Ok(self.state.lock().foreground.unwrap_or(0))
    }

    /// Moves a group of the caller's session to the foreground (tcsetpgrp(3)).
    pub async fn set_foreground(
        self: &Arc<Self>,
        process: &dyn ProcessContext,
        group: ProcessId,
    ) -> Result<()> {
        if !self.is_controlling(process) || self.state.lock().session != Some(process.session()) {
            return Err(Error::ENOTTY);
        }
        self.to_foreground(process).await?;
        match process.session_of_group(group) {
            None => return Err(Error::ESRCH),
            Some(session) if session != process.session() => return Err(Error::EPERM),
            Some(_) => {}
        }
        {
            // While the process waited, the terminal may have been hung up, or may have become that
            // of another session.
            let mut state = self.state.lock();
            if state.session != Some(process.session()) {
                return Err(Error::ENOTTY);
            }
            state.foreground = Some(group);
        }
        // Wake processes that were in the background: they may be able to go on now.
        self.changed();
        Ok(())
    }

    /// The session whose controlling terminal this is (tcgetsid(3)).
    pub fn session(self: &Arc<Self>, process: &dyn ProcessContext, master: bool) -> Result<ProcessId> {
        if !master && !self.is_controlling(process) {
            return Err(Error::ENOTTY);
        }
        self.state.lock().session.ok_or(Error::ENOTTY)
    }

    /// The foreground process group, for listings of processes.
    pub fn foreground_group(&self) -> Option<ProcessId> {
        self.state.lock().foreground
    }
}
