//! [`ProcessContext`]: the view that file operations have of the calling process.

use crate::account::Account;
use crate::namespace::{ObjectNamespace, UserNamespace};
use crate::tty::Terminal;
use alloc::sync::Arc;

/// A process, process group or session id.
pub type ProcessId = u32;

/// A signal that files and terminals send. Its number is known to the process layer and to front
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSignal {
    /// The terminal was hung up (SIGHUP).
    Hangup,
    /// The interrupt character was typed (SIGINT).
    Interrupt,
    /// The quit character was typed (SIGQUIT).
    Quit,
    /// The suspend character was typed (SIGTSTP).
    Stop,
    /// A background process reads its terminal (SIGTTIN).
    BackgroundRead,
    /// A background process writes to or changes its terminal (SIGTTOU).
    BackgroundWrite,
    /// Stopped processes have to continue after a hang-up (SIGCONT).
    Continue,
    /// The size of the window has changed (SIGWINCH).
    WindowChange,
}

/// The calling process, as terminals and sockets see it. The process layer implements this; no
/// method blocks.
pub trait ProcessContext: Send + Sync {
    /// The id of the calling process.
    fn process(&self) -> ProcessId;

    /// The id of the calling thread.
    fn thread(&self) -> ProcessId;

    /// The id of the caller's process group.
    fn group(&self) -> ProcessId;

    /// The id of the caller's session.
    fn session(&self) -> ProcessId;

    /// The controlling terminal of the caller's session.
    fn terminal(&self) -> Option<Arc<Terminal>>;

    /// Sets or removes the controlling terminal of the caller's session.
    fn set_terminal(&self, terminal: Option<Arc<Terminal>>);

    /// Whether the calling process blocks or ignores the signal.
    fn disregards(&self, signal: FileSignal) -> bool;

    /// Whether the caller's process group is orphaned: no member has a parent in another group of
    /// the session.
    fn is_orphaned(&self) -> bool;

    /// The session of a process group; `None` if there is no such group.
    fn session_of_group(&self, group: ProcessId) -> Option<ProcessId>;

    /// Sends a signal to every process of a group.
    fn signal_group(&self, group: ProcessId, signal: FileSignal);

    /// The account of the calling user, to which objects that the call makes are charged.
    fn account(&self) -> Arc<Account>;

    /// The namespace of users to which belongs what a new file system of this type would show to
    /// the process; `None` if only the first namespace of users can mount it.
    fn owner_of(&self, kind: &str) -> Option<UserNamespace> {
        let _ = kind;
        None
    }

    /// The namespace of objects of the process, if it is not the first one.
    fn objects(&self) -> Option<Arc<ObjectNamespace>> {
        None
    }
}

/// The processes of the system, as a terminal sends signals to them because of typed characters:
/// such a signal has no sending process. The process layer implements this.
pub trait SessionHost: Send + Sync {
    /// Sends a signal to every process of a group.
    fn signal_group(&self, group: ProcessId, signal: FileSignal);

    /// Sends a signal to a process.
    fn signal_process(&self, process: ProcessId, signal: FileSignal);

    /// Called when a session has lost its controlling terminal.
    fn lose_terminal(&self, session: ProcessId);
}
