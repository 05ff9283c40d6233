//! The resources that processes use (getrusage(2), times(2)).

use core::ops::AddAssign;
use core::time::Duration;

/// Resources that a thread, a process, or its waited-for children used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time used in the program (user time).
    pub user_time: Duration,
    /// Processor time that the server used on behalf of the program (system time).
    pub system_time: Duration,
    /// Largest resident size, in KiB.
    pub max_resident: u64,
    /// Page faults served without input.
    pub minor_faults: u64,
    /// Page faults that needed input.
    pub major_faults: u64,
    /// Blocks of 512 bytes read from storage.
    pub blocks_in: u64,
    /// Blocks of 512 bytes written to storage.
    pub blocks_out: u64,
    /// How often a thread of the process gave up the processor to wait.
    pub voluntary_switches: u64,
    /// How often a thread of the process was preempted.
    pub involuntary_switches: u64,
}

impl AddAssign for Usage {
    /// Adds `other` to this: the largest resident size is the larger of both, the other fields are
    /// sums.
    fn add_assign(&mut self, other: Usage) {
        self.user_time += other.user_time;
        self.system_time += other.system_time;
        self.max_resident = self.max_resident.max(other.max_resident);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.blocks_in += other.blocks_in;
        self.blocks_out += other.blocks_out;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}
