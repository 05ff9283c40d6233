//! Control and result words of the system calls other than Ipc (ABI 12; X.2 rules 3.5-3.16,
//! 5.24-5.26, 8.2).

use crate::{Time, bits};

/// "Unchanged" in a control word of Schedule and as UTCB location of ThreadControl.
pub const UNCHANGED: u64 = u64::MAX;

/// Privilege-free flags that a user may set: CF, PF, AF, ZF, SF, OF (X.2 rule 5.33).
pub const USER_FLAGS: u64 = 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 11;

/// The flags that a program changes by its own instructions: [`USER_FLAGS`], TF, DF, RF, AC, ID.
/// The answer to an exception and an owner (ThreadState) set them.
pub const PROGRAM_FLAGS: u64 = USER_FLAGS | 1 << 8 | 1 << 10 | 1 << 16 | 1 << 18 | 1 << 21;

/// Control word of ExchangeRegisters (in), X.2 rule 5.24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct ExchangeControl(u64);

impl ExchangeControl {
    /// Nothing: converts between local and global id.
    pub const NONE: Self = Self(0);
    /// H: the halt value that [`Self::HALT_VALID`] puts into effect.
    pub const HALT: Self = Self(1);
    /// R: abort the receive phase.
    pub const CANCEL_RECEIVE: Self = Self(1 << 1);
    /// S: abort the send phase.
    pub const CANCEL_SEND: Self = Self(1 << 2);
    /// s: set SP.
    pub const SP: Self = Self(1 << 3);
    /// i: set IP.
    pub const IP: Self = Self(1 << 4);
    /// f: set FLAGS.
    pub const FLAGS: Self = Self(1 << 5);
    /// u: set the user-defined handle.
    pub const HANDLE: Self = Self(1 << 6);
    /// p: set the pager.
    pub const PAGER: Self = Self(1 << 7);
    /// h: H is valid.
    pub const HALT_VALID: Self = Self(1 << 8);
    /// d: deliver the old values (they always are).
    pub const DELIVER: Self = Self(1 << 9);
    /// Start a thread: set SP and IP, cancel its IPC, resume it (0x11e).
    pub const START: Self =
        Self(Self::SP.0 | Self::IP.0 | Self::CANCEL_SEND.0 | Self::CANCEL_RECEIVE.0 | Self::HALT_VALID.0);
    /// Halt a thread (0x301).
    pub const STOP: Self = Self(Self::HALT.0 | Self::HALT_VALID.0 | Self::DELIVER.0);
    /// Resume a thread.
    pub const RESUME: Self = Self(Self::HALT_VALID.0);
    /// Abort the IPC of a thread (6).
    pub const ABORT_IPC: Self = Self(Self::CANCEL_SEND.0 | Self::CANCEL_RECEIVE.0);

    /// The control word with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The bits of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Control word of ExchangeRegisters (out): the state before the call, X.2 rule 5.26.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct ExchangeState {
    /// The thread was halted.
    pub halted: bool,
    /// The thread was receiving or waiting to receive.
    pub receiving: bool,
    /// The thread was sending or waiting to send.
    pub sending: bool,
}

impl ExchangeState {
    /// The state in a result word.
    pub const fn from_raw(raw: u64) -> Self {
        Self { halted: raw & 1 != 0, receiving: raw & 2 != 0, sending: raw & 4 != 0 }
    }

    /// The result word.
    pub const fn raw(self) -> u64 {
        self.halted as u64 | (self.receiving as u64) << 1 | (self.sending as u64) << 2
    }
}

/// Control word of Unmap: bits 0..=5 index of the last message register with an fpage, bit 6 flush.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct UnmapControl(u64);

impl UnmapControl {
    /// `fpages` (1..=64) fpages in MR0 and on; `flush`: the invoker's own mappings too.
    pub const fn new(fpages: usize, flush: bool) -> Self {
        Self((fpages.wrapping_sub(1) & 0x3f) as u64 | (flush as u64) << 6)
    }

    /// The control word with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Number of fpages, 1..=64.
    pub const fn fpages(self) -> usize {
        bits(self.0, 0, 5) as usize + 1
    }

    /// f: the operation also applies to the invoker's own mappings.
    pub const fn flush(self) -> bool {
        self.0 & 1 << 6 != 0
    }
}

/// A field of a Schedule control word: `0xffff` in a 16-bit half means "unchanged" (X.2 rule 3.8).
const fn half(word: u64, low: u32) -> Option<u16> {
    match bits(word, low, low + 15) as u16 {
        0xffff => None,
        value => Some(value),
    }
}

/// Time control of Schedule: bits 0..=15 total quantum, 16..=31 timeslice length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct TimeControl(u64);

impl TimeControl {
    /// Neither of the two lengths is changed.
    pub const UNCHANGED: Self = Self(UNCHANGED);

    /// The control word with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Sets those of the two lengths that are given.
    pub const fn new(timeslice: Option<Time>, total_quantum: Option<Time>) -> Self {
        let timeslice = match timeslice {
            Some(time) => time.raw() as u64,
            None => 0xffff,
        };
        let total_quantum = match total_quantum {
            Some(time) => time.raw() as u64,
            None => 0xffff,
        };
        Self(timeslice << 16 | total_quantum)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// New timeslice length, or nothing for "unchanged".
    pub const fn timeslice(self) -> Option<Time> {
        match half(self.0, 16) {
            Some(raw) => Some(Time::from_raw(raw)),
            None => None,
        }
    }

    /// New total quantum, or nothing for "unchanged".
    pub const fn total_quantum(self) -> Option<Time> {
        match half(self.0, 0) {
            Some(raw) => Some(Time::from_raw(raw)),
            None => None,
        }
    }
}

/// Processor control of Schedule: bits 0..=15 processor number; nothing for "unchanged" (X.2 rule
/// 3.8).
pub const fn processor_control(raw: u64) -> Option<u16> {
    if raw == UNCHANGED { None } else { half(raw, 0) }
}

/// Priority control of Schedule: bits 0..=7; nothing for "unchanged". 0xff in another word is
/// priority 255.
pub const fn priority_control(raw: u64) -> Option<u8> {
    if raw == UNCHANGED { None } else { Some(raw as u8) }
}

/// Preemption control of Schedule: bits 0..=15 maximum delay in microseconds, 16..=23 sensitive
/// priority.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PreemptionControl {
    /// Maximum delay in microseconds, 0 = delay disabled.
    pub max_delay: u16,
    /// Highest priority of a preemptor that can be delayed.
    pub sensitive_priority: u8,
}

impl PreemptionControl {
    /// The fields of a control word; nothing for "unchanged".
    pub const fn from_raw(raw: u64) -> Option<Self> {
        if raw == UNCHANGED {
            return None;
        }
        Some(Self { max_delay: raw as u16, sensitive_priority: (raw >> 16) as u8 })
    }

    /// The control word.
    pub const fn raw(self) -> u64 {
        (self.sensitive_priority as u64) << 16 | self.max_delay as u64
    }
}

/// Attribute of MemoryControl and of requests to sigma0: how memory is cached (X.2 rule 9.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
pub enum MemoryAttribute {
    /// The type as the machine has it: memory is cached, devices are not.
    Default = 0,
    /// Not cached.
    Uncacheable = 1,
    /// Not cached; writes may be combined and delayed.
    WriteCombining = 2,
    /// Reads are cached, writes go through.
    WriteThrough = 5,
    /// Reads are cached, writes are not.
    WriteProtected = 6,
    /// Cached.
    WriteBack = 7,
}

impl MemoryAttribute {
    /// The attribute with this value, if there is one.
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw {
            0 => Self::Default,
            1 => Self::Uncacheable,
            2 => Self::WriteCombining,
            5 => Self::WriteThrough,
            6 => Self::WriteProtected,
            7 => Self::WriteBack,
            _ => return None,
        })
    }
}

/// Result of Schedule: what the thread was doing (X.2 rule 3.12). 0 is an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
pub enum ThreadState {
    /// Cannot run at all, or does not exist.
    Dead = 1,
    /// Inactive or halted.
    Inactive = 2,
    /// Running or ready, or in an IPC that the kernel makes for it.
    Running = 3,
    /// Waiting to send.
    PendingSend = 4,
    /// Sending.
    Sending = 5,
    /// Waiting to receive.
    Waiting = 6,
    /// Receiving.
    Receiving = 7,
}

impl ThreadState {
    /// The state in a result word; nothing for 0 and unknown values.
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw {
            1 => Self::Dead,
            2 => Self::Inactive,
            3 => Self::Running,
            4 => Self::PendingSend,
            5 => Self::Sending,
            6 => Self::Waiting,
            7 => Self::Receiving,
            _ => return None,
        })
    }
}

/// Priority of a new thread (X.2 rule 3.2).
pub const DEFAULT_PRIORITY: u8 = 100;
/// Highest priority, and that of the initial servers.
pub const MAX_PRIORITY: u8 = 255;
/// Timeslice of a new thread: 10 ms, as the interface encodes it (ABI 12.4).
pub const DEFAULT_TIMESLICE: Time = Time::from_raw(0x1271);

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: 5.24.
    #[test]
    fn exchange_controls_of_old_programs() {
        assert_eq!(ExchangeControl::START.raw(), 0x11e);
        assert_eq!(ExchangeControl::STOP.raw(), 0x301);
        assert_eq!(ExchangeControl::ABORT_IPC.raw(), 6);
        assert!(ExchangeControl::START.contains(ExchangeControl::IP));
        assert!(!ExchangeControl::START.contains(ExchangeControl::FLAGS.with(ExchangeControl::IP)));
        for raw in 0..8 {
            assert_eq!(ExchangeState::from_raw(raw).raw(), raw);
        }
    }

    /// Rules: 8.2a.
    #[test]
    fn unmap_control() {
        assert_eq!(UnmapControl::new(1, false).raw(), 0);
        assert_eq!(UnmapControl::new(64, true).raw(), 0x7f);
        assert_eq!((UnmapControl::from_raw(0x7f).fpages(), UnmapControl::from_raw(0x7f).flush()), (64, true));
    }

    /// Rules: 3.7, 3.8.
    #[test]
    fn schedule_unchanged_per_word_and_per_half() {
        assert_eq!(TimeControl::UNCHANGED.timeslice(), None);
        let control = TimeControl::new(Some(DEFAULT_TIMESLICE), None);
        assert_eq!(control.raw(), 0x1271_ffff);
        assert_eq!((control.timeslice(), control.total_quantum()), (Some(DEFAULT_TIMESLICE), None));
        assert_eq!((processor_control(0xffff), processor_control(3)), (None, Some(3)));
        assert_eq!((priority_control(UNCHANGED), priority_control(0xff)), (None, Some(255)));
        let preemption = PreemptionControl { max_delay: 500, sensitive_priority: 200 };
        assert_eq!(preemption.raw(), 0xc8_01f4);
        assert_eq!(PreemptionControl::from_raw(preemption.raw()), Some(preemption));
        assert_eq!(PreemptionControl::from_raw(UNCHANGED), None);
    }
}
