//! Resource limits (getrlimit(2)).

use crate::{Error, Result};

/// The resource that a limit restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processor time of the process, in seconds.
    ProcessorTime,
    /// Size of a file that the process writes, in bytes.
    FileSize,
    /// Bytes of the data segment, the heap and private writable memory.
    Data,
    /// Bytes of the main thread's stack.
    Stack,
    /// Size of a core file, in bytes (without effect).
    Core,
    /// Bytes of resident memory (without effect).
    Resident,
    /// How many threads the user may have.
    Processes,
    /// One more than the highest descriptor.
    Files,
    /// Bytes of memory that the process may lock (mlock(2)).
    LockedMemory,
    /// Bytes of address space that may be mapped.
    AddressSpace,
    /// How many file locks the process may have (without effect).
    Locks,
    /// How many signals may be queued for the user.
    PendingSignals,
    /// Bytes that the user's POSIX message queues may hold.
    MessageQueues,
    /// The lowest nice value that may be set is 20 minus the limit.
    Nice,
    /// The highest real-time priority.
    RealTimePriority,
    /// Microseconds for which a real-time thread may run without blocking.
    RealTimeTime,
}

/// A soft limit, which is in force, and a hard limit up to which the process may raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit that is in force.
    pub soft: u64,
    /// The largest value to which `soft` can be set.
    pub hard: u64,
}

impl Limit {
    /// The value of a limit that does not restrict the resource.
    pub const INFINITE: u64 = u64::MAX;
}

/// The resource limits of a process.
#[derive(Clone, Debug)]
pub struct Limits([Limit; 16]);

impl Default for Limits {
    /// The resource limits of the first process, except for the number of threads.
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
    /// The resource limits of the first process of a system that may have `threads` threads. Each
    /// user may have half of them.
    pub fn with_threads(threads: usize) -> Limits {
        let half = threads as u64 / 2;
        let mut limits = Limits::default();
        limits.0[Resource::Processes as usize] = Limit { soft: half, hard: half };
        limits
    }

    /// The soft and hard limit of `resource`.
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
    fn setting_limits_needs_privilege_above_the_hard_limit() {
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
