//! Which processes may inspect another one (ptrace(2), "Ptrace access mode checking").

use super::Pid;
use super::table::Table;
use crate::{Error, Result};

/// Which ids of the caller count. Reading and changing are not distinguished, because no rule here
/// treats them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectAs {
    /// Compare with the file-system ids: for what shows the process as a file.
    FileUser,
    /// The real ids: for system calls that name the process.
    RealUser,
}

impl Table {
    /// Whether thread `caller` may inspect process `target`: its memory, its descriptors, its
    /// directories. `EPERM`, `ESRCH`.
    ///
    /// What is to be inspected has to be taken from the process before this is asked: a change of
    /// credentials comes before all that a program does with them, so that nothing of a more
    /// privileged program has been taken if this still permits.
    pub fn may_inspect(&self, caller: Pid, target: Pid, inspect_as: InspectAs) -> Result<()> {
        let (thread, process) = (self.thread(caller)?, self.process(target)?);
        // A zombie has no memory left.
        let is_dumpable = process.is_dumpable || process.is_zombie();
        let permitted = thread.pid == target
            || thread.credentials.may_inspect(&process.credentials, is_dumpable, inspect_as);
        if permitted { Ok(()) } else { Err(Error::EPERM) }
    }
}
