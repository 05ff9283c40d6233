//! Seals of files in memory (F_ADD_SEALS): what can be done with the file no more, by any process.

use crate::sync::SpinLock;
use crate::{Error, Result};
use bitflags::bitflags;

bitflags! {
    /// What is forbidden for a file in memory, for as long as it exists.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SealFlags: u32 {
        /// No seal can be added (F_SEAL_SEAL).
        const SEAL = 1;
        /// The file cannot become smaller (F_SEAL_SHRINK).
        const SHRINK = 2;
        /// The file cannot become larger (F_SEAL_GROW).
        const GROW = 4;
        /// The contents cannot be changed (F_SEAL_WRITE).
        const WRITE = 8;
        /// The contents can be changed only through mappings that were there before the seal
        /// (F_SEAL_FUTURE_WRITE).
        const FUTURE_WRITE = 16;
    }
}

impl SealFlags {
    /// The seals with which writes fail.
    pub const NO_WRITE: SealFlags = SealFlags::WRITE.union(SealFlags::FUTURE_WRITE);
}

/// The seals of a file, and what they depend on.
#[derive(Default)]
pub struct Seals(SpinLock<State>);

#[derive(Default)]
struct State {
    flags: SealFlags,
    /// How many shared mappings of the file there are through which it may be written.
    writable_mappings: u32,
}

impl Seals {
    /// The seals at this moment.
    pub fn flags(&self) -> SealFlags {
        self.0.lock().flags
    }

    /// Sets the seals of a new file.
    pub fn begin(&self, flags: SealFlags) {
        self.0.lock().flags = flags;
    }

    /// Adds seals. `EPERM` after F_SEAL_SEAL, `EBUSY` if writes are to be forbidden and the file is
    /// mapped to be written.
    pub fn add(&self, more: SealFlags) -> Result<()> {
        let mut state = self.0.lock();
        if state.flags.contains(SealFlags::SEAL) {
            return Err(Error::EPERM);
        }
        if more.difference(state.flags).contains(SealFlags::WRITE) && state.writable_mappings > 0 {
            return Err(Error::EBUSY);
        }
        state.flags |= more;
        Ok(())
    }

    /// Counts one more mapping through which the file may be written; `writes`: it is to be written
    /// from the start. False if the mapping may only be read, and is not counted. `EPERM` if a seal
    /// forbids it.
    pub(crate) fn begin_mapping(&self, writes: bool) -> Result<bool> {
        let mut state = self.0.lock();
        match state.flags {
            flags if flags.contains(SealFlags::WRITE) => Err(Error::EPERM),
            flags if !flags.contains(SealFlags::FUTURE_WRITE) => {
                state.writable_mappings += 1;
                Ok(true)
            }
            _ if writes => Err(Error::EPERM),
            _ => Ok(false),
        }
    }

    /// Counts a part of a mapping, or a copy of one, that is counted already.
    pub(crate) fn copy_mapping(&self) {
        self.0.lock().writable_mappings += 1;
    }

    /// Counts one mapping less.
    pub(crate) fn end_mapping(&self) {
        self.0.lock().writable_mappings -= 1;
    }
}
