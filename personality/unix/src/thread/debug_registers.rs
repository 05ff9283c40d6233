//! The debug registers of a thread, as its tracer reads and writes them (ptrace(2), struct user).
//! The machine gets the breakpoints that they enable. Each change is checked as a whole, and one
//! that is wrong changes nothing.

use crate::{Error, Result};
use mach::machine::Breakpoints;

/// The first address that no program can have.
const END: u64 = (1 << 47) - 4096;
/// Bits of the control register that do not count: those above 32, and 10 to 15.
const IGNORED: u64 = 0xffff_ffff_0000_fc00;
/// Bits of the status register that are 1 when nothing has happened.
const QUIET: u64 = 0xffff_0ff0;
/// The number of the status register.
const STATUS: usize = 6;
/// The number of the control register.
const CONTROL: usize = 7;

/// The status of a single step.
pub(super) const STEP: u64 = 1 << 14;
/// The status of the breakpoints.
pub(super) const REACHED: u64 = 0xf;

/// The debug registers of a thread. A register that was never set watches nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct DebugRegisters {
    slots: [Option<Slot>; 4],
    /// As a tracer has written it.
    control: u64,
    /// Why the last debug exception came, or what a tracer has written.
    pub(super) status: u64,
}

/// A breakpoint, enabled or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    address: u64,
    /// The bits of the control register: the condition, and above it the size.
    kind: u64,
    enabled: bool,
}

impl Slot {
    const WRITE_OF_ONE_BYTE: u64 = 1;

    /// `EINVAL`: a port, an instruction with a size, an address that is no multiple of the size.
    /// `EPERM`: an address of the kernel.
    fn check(self) -> Result<Slot> {
        let size = match (self.kind & 3, self.kind >> 2) {
            (0, 0) | (1 | 3, 0) => 1,
            (1 | 3, 1) => 2,
            (1 | 3, 2) => 8,
            (1 | 3, 3) => 4,
            _ => return Err(Error::EINVAL),
        };
        match () {
            () if !self.address.is_multiple_of(size) => Err(Error::EINVAL),
            // The end is a multiple of all sizes.
            () if self.address >= END => Err(Error::EPERM),
            () => Ok(self),
        }
    }
}

impl DebugRegisters {
    /// What register `number` holds, 0 to 7.
    pub(super) fn get(&self, number: usize) -> u64 {
        match number {
            STATUS => self.status ^ QUIET,
            CONTROL => self.control,
            _ => self.slots.get(number).copied().flatten().map_or(0, |slot| slot.address),
        }
    }

    /// The registers after `value` is written to register `number`, 0 to 7. `EINVAL` and `EPERM`
    /// for a breakpoint that is impossible, `EIO` for a register that cannot be written.
    pub(super) fn with(mut self, number: usize, value: u64) -> Result<DebugRegisters> {
        match number {
            STATUS => self.status = value ^ QUIET,
            CONTROL => {
                let bits = value & !IGNORED;
                for (index, slot) in self.slots.iter_mut().enumerate() {
                    let enabled = bits >> (2 * index) & 3 != 0;
                    let kind = bits >> (16 + 4 * index) & 15;
                    let address = match slot {
                        None if !enabled => continue,
                        None => 0,
                        Some(slot) => slot.address,
                    };
                    *slot = Some(Slot { address, kind, enabled }.check()?);
                }
                self.control = value;
            }
            _ => {
                let slot = self.slots.get_mut(number).ok_or(Error::EIO)?;
                let (kind, enabled) =
                    slot.map_or((Slot::WRITE_OF_ONE_BYTE, false), |slot| (slot.kind, slot.enabled));
                *slot = Some(Slot { address: value, kind, enabled }.check()?);
            }
        }
        Ok(self)
    }

    /// The breakpoints that are enabled.
    pub(super) fn breakpoints(&self) -> Breakpoints {
        let mut breakpoints = Breakpoints::default();
        for (index, slot) in self.slots.iter().enumerate() {
            if let Some(Slot { address, kind, enabled: true }) = slot {
                breakpoints.addresses[index] = *address;
                breakpoints.control |= 1 << (2 * index) | kind << (16 + 4 * index);
            }
        }
        breakpoints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: DebugRegisters = DebugRegisters { slots: [None; 4], control: 0, status: 0 };

    #[test]
    fn registers_are_read_as_they_were_written_and_the_enabled_ones_become_breakpoints() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|number| NONE.get(number)), [0, 0, 0, 0, 0, 0, QUIET, 0]);
        let registers = NONE.with(1, 0x1008).unwrap();
        assert_eq!(registers.breakpoints(), Breakpoints::default(), "an address alone watches nothing");
        // Writes of eight bytes; bits that do not count are kept.
        let control = 0x90_0000 | 1 << 10 | 1 << 8 | 1 << 2;
        let registers = registers.with(7, control).unwrap();
        assert_eq!((registers.get(1), registers.get(7)), (0x1008, control));
        let watched = Breakpoints { addresses: [0, 0x1008, 0, 0], control: 0x90_0004 };
        assert_eq!(registers.breakpoints(), watched);
        // The other of the two bits enables as well. Another address moves the breakpoint.
        let moved = registers.with(7, 0x90_0008).unwrap().with(1, 0x2000).unwrap();
        let watched = Breakpoints { addresses: [0, 0x2000, 0, 0], control: 0x90_0004 };
        assert_eq!(moved.breakpoints(), watched);
        assert_eq!(moved.with(7, 0).unwrap().breakpoints(), Breakpoints::default());
        assert_eq!(NONE.with(6, 0).unwrap().get(6), 0);
        assert_eq!(DebugRegisters { status: 1 | STEP, ..NONE }.get(6), QUIET | 1 | STEP);
    }

    #[test]
    fn what_is_impossible_is_refused() {
        for number in [4, 5, 8] {
            assert_eq!(NONE.with(number, 0), Err(Error::EIO));
        }
        assert_eq!(NONE.with(0, END), Err(Error::EPERM));
        assert_eq!(NONE.with(0, u64::MAX), Err(Error::EPERM));
        assert!(NONE.with(0, END - 1).is_ok());
        let odd = NONE.with(0, 0x1001).unwrap();
        // A port, instructions with sizes, and sizes that do not fit the address.
        for kind in [2, 6, 4, 8, 12, 5, 7, 9, 11, 13, 15] {
            assert_eq!(odd.with(7, 1 | kind << 16), Err(Error::EINVAL), "{kind}");
            assert_eq!(odd.with(7, kind << 16), Err(Error::EINVAL), "not even if it is not enabled");
        }
        for kind in [0, 1, 3] {
            assert!(odd.with(7, 1 | kind << 16).is_ok());
        }
        let eight = NONE.with(0, 0x1000).unwrap().with(7, 0x9_0001).unwrap();
        assert_eq!(eight.with(0, 0x1004), Err(Error::EINVAL));
        assert_eq!(eight.with(0, END - 8).map(|registers| registers.get(0)), Ok(END - 8));
    }
}
