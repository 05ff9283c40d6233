//! Where threads have their stacks: slots of one MiB of the address space, a stack at each one's
//! end.

use crate::root::{Status, memory};
use spin::Mutex;

/// Where the slots begin: a server that makes threads leaves them the 4 GiB from here on.
const BEGIN: u64 = 0x6800_0000_0000;
/// Bytes of a slot.
const SLOT: u64 = 1 << 20;
/// How many slots there are: the threads that a server can have.
const SLOTS: usize = 4096;
const PAGE: u64 = 4096;
/// The largest stack: at least one page of the slot below it is not mapped.
pub(super) const LARGEST: u64 = SLOT - PAGE;

/// Which slots are taken, one bit each.
struct Taken([u64; SLOTS / 64]);

static TAKEN: Mutex<Taken> = Mutex::new(Taken([0; SLOTS / 64]));

impl Taken {
    fn take(&mut self) -> Option<u32> {
        let word = self.0.iter().position(|&word| word != u64::MAX)?;
        let bit = (!self.0[word]).trailing_zeros();
        self.0[word] |= 1 << bit;
        Some(word as u32 * 64 + bit)
    }

    fn give_back(&mut self, number: u32) {
        self.0[number as usize / 64] &= !(1 << (number % 64));
    }
}

/// A slot with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    number: u32,
    size: u32,
}

impl Slot {
    /// A slot with a stack of `size` bytes, rounded up to pages, all zeros.
    ///
    /// # Errors
    /// `InvalidArgument`: it is larger than [`LARGEST`], or nothing. Root's, for the memory;
    /// `QuotaExceeded`: no slot is free.
    pub(super) fn take(size: u64) -> Result<Slot, Status> {
        if size == 0 || size > LARGEST {
            return Err(Status::InvalidArgument);
        }
        let number = TAKEN.lock().take().ok_or(Status::QuotaExceeded)?;
        let slot = Slot { number, size: size.next_multiple_of(PAGE) as u32 };
        memory::allocate(slot.begin(), slot.size()).inspect_err(|_| TAKEN.lock().give_back(number))?;
        Ok(slot)
    }

    /// Frees stack and slot: neither is in use any more.
    pub(super) fn give_back(self) {
        #[allow(unsafe_code, reason = "nothing refers to the stack")]
        // SAFETY: the caller's promise: the thread that ran on it is gone.
        let freed = unsafe { memory::free(self.begin(), self.size()) };
        // Root gave it in one piece. If it did not take it back, the slot would stay taken.
        if freed.is_ok() {
            TAKEN.lock().give_back(self.number);
        }
    }

    /// The stack's first address.
    pub(super) fn begin(self) -> u64 {
        self.end() - self.size()
    }

    /// One past the stack's last byte.
    pub(super) fn end(self) -> u64 {
        BEGIN + (u64::from(self.number) + 1) * SLOT
    }

    /// Bytes of the stack.
    pub(super) fn size(self) -> u64 {
        self.size.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_is_taken_once() {
        let mut taken = Taken([0; SLOTS / 64]);
        let all: Vec<u32> = core::iter::from_fn(|| taken.take()).collect();
        assert_eq!(all, (0..SLOTS as u32).collect::<Vec<_>>());
        for number in [0, 63, 64, SLOTS as u32 - 1] {
            taken.give_back(number);
            assert_eq!((taken.take(), taken.take()), (Some(number), None));
        }
    }

    #[test]
    fn stacks_leave_an_unmapped_page_below() {
        let [first, second] = [0, 1].map(|number| Slot { number, size: LARGEST as u32 });
        assert_eq!(first.begin(), BEGIN + PAGE);
        assert_eq!(second.begin(), first.end() + PAGE);
        assert_eq!(Slot { number: SLOTS as u32 - 1, size: 4096 }.end(), BEGIN + (4 << 30));
        for wrong in [0, LARGEST + 1, u64::MAX] {
            assert_eq!(Slot::take(wrong), Err(Status::InvalidArgument));
        }
    }
}
