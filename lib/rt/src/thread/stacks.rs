//! The addresses of threads' stacks: slots of one MiB, with a stack at the end of each.

use crate::root::{Status, memory};
use spin::Mutex;

/// The address of the first slot. A server that makes threads must not use the 4 GiB from here on.
const BEGIN: u64 = 0x6800_0000_0000;
/// The size of a slot in bytes.
const SLOT: u64 = 1 << 20;
/// How many slots there are: the threads that a server can have.
const SLOTS: usize = 4096;
const PAGE: u64 = 4096;
/// The largest size of a stack, so that at least one page below it is not mapped.
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

/// A slot that has a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    number: u32,
    size: u32,
}

impl Slot {
    /// Takes a slot and allocates a stack of `size` bytes, rounded up to pages, all zeros.
    ///
    /// # Errors
    /// `InvalidArgument`: the size is larger than [`LARGEST`], or 0. `QuotaExceeded`: no slot is
    /// free. Otherwise root's error for the memory.
    pub(super) fn take(size: u64) -> Result<Slot, Status> {
        if size == 0 || size > LARGEST {
            return Err(Status::InvalidArgument);
        }
        let number = TAKEN.lock().take().ok_or(Status::QuotaExceeded)?;
        let slot = Slot { number, size: size.next_multiple_of(PAGE) as u32 };
        memory::allocate(slot.begin(), slot.size()).inspect_err(|_| TAKEN.lock().give_back(number))?;
        Ok(slot)
    }

    /// Frees the stack and the slot. The thread must have been deleted.
    pub(super) fn give_back(self) {
        #[allow(unsafe_code, reason = "nothing refers to the stack")]
        // SAFETY: the caller promises that the thread that ran on the stack has been deleted.
        let freed = unsafe { memory::free(self.begin(), self.size()) };
        // Root gave the memory as one region. If it did not take it back, the slot would stay in
        // use.
        if freed.is_ok() {
            TAKEN.lock().give_back(self.number);
        }
    }

    /// The first address of the stack.
    pub(super) fn begin(self) -> u64 {
        self.end() - self.size()
    }

    /// The first address after the stack.
    pub(super) fn end(self) -> u64 {
        BEGIN + (u64::from(self.number) + 1) * SLOT
    }

    /// The size of the stack in bytes.
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
