//! Breakpoints of programs: what the processor watches while a thread runs, as the owner of its
//! space wants it. The formats are those of the debug registers.

use super::BREAKPOINTS;
use crate::arch::USER_END;

/// The bits of the control word that enable breakpoints: two for each, of which one is enough.
const ENABLE: u64 = 0xff;
/// The bits of the control word for conditions and sizes: four for each breakpoint.
const CONDITIONS: u64 = 0xffff_0000;

/// The breakpoints of a thread.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ProgramBreakpoints {
    /// The addresses, as in DR0 to DR3.
    pub addresses: [u64; BREAKPOINTS],
    /// Which breakpoints are enabled, conditions and sizes, as in DR7.
    pub control: u64,
    /// Why the thread's last debug exception came, as in DR6.
    pub status: u64,
}

impl ProgramBreakpoints {
    /// No breakpoints.
    pub const NONE: Self = Self { addresses: [0; BREAKPOINTS], control: 0, status: 0 };

    /// Whether a program may have these: they watch only its own memory, in ways that the processor
    /// knows, and stop at nothing else (accesses to ports and to the debug registers).
    pub fn are_valid(&self) -> bool {
        self.control & !(ENABLE | CONDITIONS) == 0 && (0..BREAKPOINTS).all(|index| self.is_valid(index))
    }

    fn is_valid(&self, index: usize) -> bool {
        let address = self.addresses[index];
        if address >= USER_END {
            return false;
        }
        if !self.is_enabled(index) {
            return true;
        }
        let (condition, size) = (self.condition(index), self.control >> (18 + 4 * index) & 3);
        let size = match (condition, size) {
            (0, 0) | (1 | 3, 0) => 1,
            (1 | 3, 1) => 2,
            (1 | 3, 2) => 8,
            (1 | 3, 3) => 4,
            _ => return false,
        };
        // The user area's end is a multiple of all sizes.
        address.is_multiple_of(size)
    }

    /// 0: execution, 1: writes, 2: ports, 3: reads and writes.
    fn condition(&self, index: usize) -> u64 {
        self.control >> (16 + 4 * index) & 3
    }

    fn is_enabled(&self, index: usize) -> bool {
        self.control >> (2 * index) & 3 != 0
    }

    /// Whether one of them is enabled.
    pub fn are_enabled(&self) -> bool {
        self.control & ENABLE != 0
    }

    /// Those of the `reached` breakpoints (a bit for each) that are enabled: the processor may
    /// report others, too.
    pub fn enabled_of(&self, reached: u8) -> u8 {
        (0..BREAKPOINTS).filter(|&index| self.is_enabled(index)).fold(0, |bits, index| bits | 1 << index)
            & reached
    }

    /// Whether one of the `reached` breakpoints has stopped the thread before an instruction.
    pub fn stop_before_instruction(&self, reached: u8) -> bool {
        let reached = self.enabled_of(reached);
        (0..BREAKPOINTS).any(|index| reached >> index & 1 != 0 && self.condition(index) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = USER_END;

    fn one(index: usize, address: u64, condition: u64, size: u64) -> ProgramBreakpoints {
        let mut breakpoints = ProgramBreakpoints::NONE;
        breakpoints.addresses[index] = address;
        breakpoints.control = 1 << (2 * index) | (condition | size << 2) << (16 + 4 * index);
        breakpoints
    }

    #[test]
    fn each_condition_has_its_sizes_and_their_alignment() {
        for index in 0..BREAKPOINTS {
            assert!(one(index, 0x1001, 0, 0).are_valid());
            for condition in [1, 3] {
                for (size, bytes) in [(0, 1), (1, 2), (3, 4), (2, 8)] {
                    assert!(one(index, 0x1000 + bytes, condition, size).are_valid());
                    assert!(one(index, END - bytes, condition, size).are_valid());
                    for off in 1..bytes {
                        assert!(!one(index, 0x1000 + off, condition, size).are_valid());
                        assert!(!one(index, END - off, condition, size).are_valid());
                    }
                }
            }
            for size in 1..4 {
                assert!(!one(index, 0x1000, 0, size).are_valid(), "an instruction has no size");
            }
            for size in 0..4 {
                assert!(!one(index, 0x1000, 2, size).are_valid(), "ports");
            }
        }
    }

    #[test]
    fn only_addresses_of_the_user_area_are_valid_also_in_what_is_not_enabled() {
        for index in 0..BREAKPOINTS {
            for address in [END, END + 1, 1 << 47, 0xffff_8000_0000_0000, u64::MAX] {
                for condition in [0, 1, 3] {
                    assert!(!one(index, address, condition, 0).are_valid());
                }
                let mut off = one(index, address, 1, 0);
                off.control = 0;
                assert!(!off.are_valid());
            }
            let mut odd = one(index, 0x1001, 2, 3);
            odd.control &= !0xff;
            assert!(odd.are_valid(), "a condition that is not enabled does not matter");
        }
    }

    #[test]
    fn no_other_bit_of_the_control_word_is_valid() {
        for bit in (8..16).chain(32..64) {
            assert!(!ProgramBreakpoints { control: 1 << bit, ..ProgramBreakpoints::NONE }.are_valid());
        }
        for bit in 0..8 {
            let breakpoints = ProgramBreakpoints { control: 1 << bit, ..ProgramBreakpoints::NONE };
            assert!(breakpoints.are_valid() && breakpoints.are_enabled());
            assert_eq!(breakpoints.enabled_of(0xf), 1 << (bit / 2));
        }
        assert!(!ProgramBreakpoints { control: 0xffff_0000, ..ProgramBreakpoints::NONE }.are_enabled());
    }

    #[test]
    fn only_what_is_enabled_counts_as_reached() {
        let mut breakpoints = one(1, 0x1000, 0, 0);
        breakpoints.control |= one(2, 0x2000, 1, 1).control;
        assert_eq!(breakpoints.enabled_of(0b1011), 0b0010);
        assert!(breakpoints.stop_before_instruction(0b0110));
        assert!(!breakpoints.stop_before_instruction(0b1101));
    }
}
