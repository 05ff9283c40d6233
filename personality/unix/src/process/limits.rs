//! Resource limits (getrlimit(2)).

use crate::{Error, Result};

/// The resource that a limit restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processor time in seconds.
    ProcessorTime,
    /// Bytes of a file.
    FileSize,
    /// Bytes of data segment, heap and private writable memory.
    Data,
    /// Bytes of the main thread's stack.
    Stack,
    /// Bytes of a memory image.
    Core,
    /// Bytes of resident memory (without effect).
    Resident,
    /// Threads of the user.
    Processes,
    /// Descriptors (one more than the highest).
    Files,
    /// Bytes of locked memory.
    LockedMemory,
    /// Bytes of address space.
    AddressSpace,
    /// File locks (without effect).
    Locks,
    /// Queued signals of the user.
    PendingSignals,
    /// Bytes of message queues.
    MessageQueues,
    /// 20 - limit is the lowest nice value that may be set.
    Nice,
    /// Real-time priority.
    RealTimePriority,
    /// Microseconds of real-time processor use without sleeping.
    RealTimeTime,
}

/// A soft limit, which counts, and a hard limit up to which the process may raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What counts.
    pub soft: u64,
    /// The largest value to which `soft` can be set.
    pub hard: u64,
}

impl Limit {
    /// No limit.
    pub const INFINITE: u64 = u64::MAX;
}

/// The limits of a process.
#[derive(Clone, Debug)]
pub struct Limits([Limit; 16]);

impl Default for Limits {
    /// The limits of the first process, apart from the number of threads.
    fn default() -> Limits {
        const MIB: u64 = 1 << 20;
        let mut limits = Limits([Limit { soft: Limit::INFINITE, hard: Limit::INFINITE }; 16]);
        let mut set = |resource: Resource, soft, hard| limits.0[resource as usize] = Limit { soft, hard };
        set(Resource::Stack, 8 * MIB, Limit::INFINITE);
        set(Resource::Core, 0, Limit::INFINITE);
        set(Resource::Files, 1024, 4096);
        set(Resource::LockedMemory, 8 * MIB, 8 * MIB);
        set(Resource::PendingSignals, 16384, 16384);
        set(Resource::MessageQueues, 819_200, 819_200);
        set(Resource::Nice, 0, 0);
        set(Resource::RealTimePriority, 0, 0);
        limits
    }
}

impl Limits {
    /// The limits of the first process of a system that may have `threads` threads. Each user may
    /// have half of them.
    pub fn with_threads(threads: usize) -> Limits {
        let half = threads as u64 / 2;
        let mut limits = Limits::default();
        limits.0[Resource::Processes as usize] = Limit { soft: half, hard: half };
        limits
    }

    /// The limit of `resource`.
    pub fn get(&self, resource: Resource) -> Limit {
        self.0[resource as usize]
    }

    /// The soft limit of `resource`.
    pub fn soft(&self, resource: Resource) -> u64 {
        self.0[resource as usize].soft
    }

    /// Sets a limit: `EINVAL` if soft exceeds hard, `EPERM` if the hard limit would rise without
    /// privilege or the number of descriptors would exceed `1 << 20`.
    pub fn set(&mut self, resource: Resource, new: Limit, privileged: bool) -> Result<()> {
        if new.soft > new.hard {
            return Err(Error::EINVAL);
        }
        let raises = new.hard > self.0[resource as usize].hard;
        if (raises && !privileged) || (resource == Resource::Files && new.hard > 1 << 20) {
            return Err(Error::EPERM);
        }
        self.0[resource as usize] = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        let mut limits = Limits::default();
        let limit = |soft, hard| Limit { soft, hard };
        assert_eq!(limits.set(Resource::Files, limit(10, 5), true), Err(Error::EINVAL));
        assert_eq!(limits.set(Resource::Files, limit(10, 20), false), Ok(()));
        assert_eq!(limits.set(Resource::Files, limit(10, 21), false), Err(Error::EPERM));
        assert_eq!(limits.set(Resource::Files, limit(20, 20), false), Ok(()));
        assert_eq!(limits.set(Resource::Files, limit(20, (1 << 20) + 1), true), Err(Error::EPERM));
        assert_eq!(limits.soft(Resource::Stack), 8 << 20);
        assert_eq!(Limits::with_threads(100).get(Resource::Processes), limit(50, 50));
    }
}
