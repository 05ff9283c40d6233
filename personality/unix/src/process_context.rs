//! [`ProcessContext`]: what file operations know of the process that asks.

use crate::account::Account;
use crate::tty::Terminal;
use alloc::sync::Arc;

/// A process, process group or session id.
pub type ProcessId = u32;

/// A signal that files and terminals send. Front ends and the process layer know its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSignal {
    /// The terminal is gone (SIGHUP).
    Hangup,
    /// The interrupt character (SIGINT).
    Interrupt,
    /// The quit character (SIGQUIT).
    Quit,
    /// The suspend character (SIGTSTP).
    Stop,
    /// A background process reads its terminal (SIGTTIN).
    BackgroundRead,
    /// A background process writes to or changes its terminal (SIGTTOU).
    BackgroundWrite,
    /// After a hang-up: stopped processes go on (SIGCONT).
    Continue,
    /// The window has another size (SIGWINCH).
    WindowChange,
}

/// The calling process, as terminals and sockets need it. Implemented by the process layer; every
/// method is immediate.
pub trait ProcessContext: Send + Sync {
    /// Process id.
    fn process(&self) -> ProcessId;

    /// The id of the calling thread.
    fn thread(&self) -> ProcessId;

    /// Process group.
    fn group(&self) -> ProcessId;

    /// Session.
    fn session(&self) -> ProcessId;

    /// The session's controlling terminal.
    fn terminal(&self) -> Option<Arc<Terminal>>;

    /// The session now has this controlling terminal, or none.
    fn set_terminal(&self, terminal: Option<Arc<Terminal>>);

    /// Whether this process blocks or ignores the signal.
    fn disregards(&self, signal: FileSignal) -> bool;

    /// Whether the process group is orphaned: no member has a parent in another group of the
    /// session.
    fn is_orphaned(&self) -> bool;

    /// The session of a process group; `None` if there is no such group.
    fn session_of_group(&self, group: ProcessId) -> Option<ProcessId>;

    /// Sends a signal to every process of a group.
    fn signal_group(&self, group: ProcessId, signal: FileSignal);

    /// The calling user's account. What is made for the call is charged to it.
    fn account(&self) -> Arc<Account>;
}

/// The processes to which a terminal itself sends signals, because of keys that are typed: such a
/// signal has no process as its sender. Implemented by the process layer.
pub trait SessionHost: Send + Sync {
    /// Sends a signal to every process of a group.
    fn signal_group(&self, group: ProcessId, signal: FileSignal);

    /// Sends a signal to a process.
    fn signal_process(&self, process: ProcessId, signal: FileSignal);

    /// A session has lost its controlling terminal.
    fn lose_terminal(&self, session: ProcessId);
}
