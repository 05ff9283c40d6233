//! Which processes may inspect another one (ptrace(2), "Ptrace access mode checking").

use super::Pid;
use super::table::Table;
use crate::{Error, Result};

/// Which ids of the caller are compared with those of the inspected process. Reading and changing
/// are not distinguished, because no rule here treats them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectAs {
    /// The file-system ids are compared: for files that show the process.
    FileUser,
    /// The real ids are compared: for system calls that name the process.
    RealUser,
}

impl Table {
    /// Whether thread `caller` may inspect process `target`: its memory, its descriptors, its
    /// directories. `EPERM`, `ESRCH`.
    ///
    /// The caller has to take the object that it inspects (memory, descriptors) from the process
    /// before it asks this. Credentials change before a program can use the new ones, so if this
    /// permits the inspection, the object is not one of a more privileged program.
    pub fn may_inspect(&self, caller: Pid, target: Pid, inspect_as: InspectAs) -> Result<()> {
        let (thread, process) = (self.thread(caller)?, self.process(target)?);
        // A zombie has no memory left that could be inspected.
        let is_dumpable = process.is_dumpable || process.is_zombie();
        let permitted = thread.pid == target
            || thread.credentials.may_inspect(
                &process.credentials,
                is_dumpable,
                &process.memory_owner,
                inspect_as,
            );
        if permitted { Ok(()) } else { Err(Error::EPERM) }
    }
}
