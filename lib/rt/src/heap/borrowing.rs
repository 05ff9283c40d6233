//! A heap that borrows memory when its own is used up, and returns borrowed memory that is not used
//! any more.

use super::{Keeping, SizeClassCache};
use core::alloc::Layout;
use core::ptr::{self, NonNull};
use talc::{OomHandler, Span, Talc};

/// A lender of memory for a heap, in pieces of whole pages.
pub trait Lender: Sync {
    /// Lends a piece of at least this size in bytes, or `None` if there is none. Called while the
    /// heap is locked: must not allocate.
    fn lend(&self, bytes: usize) -> Option<&'static mut [u8]>;

    /// Takes back a piece that was lent. Called while the heap is locked: must not allocate.
    fn take_back(&self, piece: &'static mut [u8]);

    /// How many bytes the lender can lend now, in pieces of any size.
    fn available(&self) -> usize;
}

/// The number of bytes that a heap borrows at a time, if the lender has that many.
const STEP: usize = 2 << 20;
/// The maximum number of bytes of a piece that cannot be allocated: its header and the allocator's
/// bookkeeping.
const NOTES: usize = 256;

/// The way in which a heap grows by memory of a [`Lender`].
pub struct Borrowing {
    /// The first memory of the heap, until the allocator has claimed it.
    initial: Option<Span>,
    lender: Option<&'static dyn Lender>,
    /// How many bytes the heap may borrow, and how many it has borrowed.
    most: usize,
    borrowed: usize,
    first: Option<NonNull<Piece>>,
}

/// The header of a borrowed piece. The rest of the piece is a part of the heap.
struct Piece {
    next: Option<NonNull<Piece>>,
    bytes: usize,
    heap: Span,
}

// SAFETY: the pieces belong to the heap alone, and are used only with its lock held.
#[allow(unsafe_code, reason = "an allocator")]
unsafe impl Send for Borrowing {}

/// The allocator with a spin lock, which is held for the time of one allocation and of borrowing
/// for it.
pub type Locked = SizeClassCache<talc::Talck<spin::Mutex<()>, Borrowing>>;

/// The size of a heap and its use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes that are allocated.
    pub used: usize,
    /// Bytes that are free, in pieces of any size.
    pub free: usize,
    /// The bytes that the heap may still borrow, in pieces of any size.
    pub obtainable: usize,
    /// Bytes that are borrowed from the lender. They are contained in `used` and `free`.
    pub borrowed: usize,
}

impl Borrowing {
    /// A heap that begins with `initial` and has borrowed nothing.
    ///
    /// # Safety
    /// No other code may use the memory.
    #[allow(unsafe_code, reason = "what else uses the memory is the caller's promise")]
    pub const unsafe fn new(initial: Span) -> Borrowing {
        Borrowing { initial: Some(initial), lender: None, most: 0, borrowed: 0, first: None }
    }

    fn obtainable(&self) -> usize {
        let available = self.lender.map_or(0, Lender::available);
        available.min(self.most.saturating_sub(self.borrowed))
    }

    /// Borrows a piece of at least this size in bytes, or of the usual size if the lender has that.
    fn borrow(&self, bytes: usize) -> Option<&'static mut [u8]> {
        let left = self.most.saturating_sub(self.borrowed);
        let sizes = [bytes.max(STEP), bytes].into_iter().filter(|size| *size <= left);
        sizes.into_iter().find_map(|size| self.lender?.lend(size))
    }
}

impl OomHandler for Borrowing {
    #[allow(unsafe_code, reason = "the memory is the allocator's own")]
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        if let Some(initial) = talc.oom_handler.initial.take() {
            // SAFETY: the caller of `new` has promised that only this heap uses the memory.
            return unsafe { talc.claim(initial) }.map(drop);
        }
        let needed =
            layout.size().checked_add(layout.align()).and_then(|sum| sum.checked_add(NOTES)).ok_or(())?;
        let memory = talc.oom_handler.borrow(needed).ok_or(())?;
        let (piece, bytes) = (memory.as_mut_ptr().cast::<Piece>(), memory.len());
        let heap = Span::new(piece.wrapping_add(1).cast(), memory.as_mut_ptr_range().end);
        // SAFETY: the lender does not use the memory any more. It is whole pages, so the header
        // fits.
        let heap = unsafe {
            let heap = talc.claim(heap)?;
            piece.write(Piece { next: talc.oom_handler.first, bytes, heap });
            heap
        };
        debug_assert!(!heap.is_empty());
        talc.oom_handler.first = NonNull::new(piece);
        talc.oom_handler.borrowed += bytes;
        Ok(())
    }
}

impl Keeping {
    /// Makes the heap borrow from `lender` when it needs memory, at most `most` bytes.
    pub fn borrow_from(&self, lender: &'static dyn Lender, most: usize) {
        let mut talc = self.heap().below().lock();
        (talc.oom_handler.lender, talc.oom_handler.most) = (Some(lender), most);
    }

    /// How many bytes of the heap are in use, free, and borrowed.
    pub fn extent(&self) -> Extent {
        let kept = self.heap().kept();
        let talc = self.heap().below().lock();
        let counters = talc.get_counters();
        Extent {
            used: counters.claimed_bytes.saturating_sub(counters.available_bytes + kept),
            free: counters.available_bytes + kept,
            obtainable: talc.oom_handler.obtainable(),
            borrowed: talc.oom_handler.borrowed,
        }
    }

    /// Returns borrowed pieces in which nothing is allocated, as long as `least` bytes stay free.
    #[allow(unsafe_code, reason = "an allocator")]
    pub fn trim(&self, least: usize) {
        let Extent { free, borrowed, .. } = self.extent();
        if borrowed == 0 || free < least.saturating_add(STEP - NOTES) {
            return;
        }
        // The cached small blocks are freed first: each would keep its whole piece in use.
        self.heap().give_back();
        let talc = &mut *self.heap().below().lock();
        let Some(lender) = talc.oom_handler.lender else { return };
        let mut link: *mut Option<NonNull<Piece>> = ptr::from_mut(&mut talc.oom_handler.first);
        // SAFETY: the list of pieces belongs to this heap, which is locked. A piece is not accessed
        // after it was returned.
        unsafe {
            while let Some(piece) = *link {
                let Piece { next, bytes, heap } = piece.read();
                let is_needed = talc.get_counters().available_bytes < least.saturating_add(bytes - NOTES);
                if is_needed || !talc.get_allocated_span(heap).is_empty() {
                    link = &raw mut (*piece.as_ptr()).next;
                    continue;
                }
                talc.truncate(heap, Span::empty());
                *link = next;
                talc.oom_handler.borrowed -= bytes;
                lender.take_back(core::slice::from_raw_parts_mut(piece.as_ptr().cast(), bytes));
            }
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "allocates by hand")]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::alloc::GlobalAlloc;

    /// A lender for tests, which counts what it lends.
    struct Bank {
        pieces: spin::Mutex<Vec<&'static mut [u8]>>,
        lent: spin::Mutex<usize>,
    }

    impl Bank {
        fn new(pieces: usize) -> &'static Bank {
            let pieces = (0..pieces).map(|_| &mut *vec![0u64; STEP / 8].leak()).map(|piece| {
                // SAFETY: it is the memory of the piece, of which every byte may have any value.
                unsafe { core::slice::from_raw_parts_mut(piece.as_mut_ptr().cast(), STEP) }
            });
            let bank = Bank { pieces: spin::Mutex::new(pieces.collect()), lent: spin::Mutex::new(0) };
            alloc::boxed::Box::leak(alloc::boxed::Box::new(bank))
        }

        fn lent(&self) -> usize {
            *self.lent.lock()
        }
    }

    impl Lender for Bank {
        fn lend(&self, bytes: usize) -> Option<&'static mut [u8]> {
            let piece = self.pieces.lock().pop_if(|piece| bytes <= piece.len())?;
            *self.lent.lock() += 1;
            Some(piece)
        }

        fn take_back(&self, piece: &'static mut [u8]) {
            piece.fill(0xff);
            self.pieces.lock().push(piece);
            *self.lent.lock() -= 1;
        }

        fn available(&self) -> usize {
            self.pieces.lock().len() * STEP
        }
    }

    fn heap() -> Keeping {
        let arena = vec![0u8; 256 << 10].leak();
        // SAFETY: no other code uses the memory.
        let arena = unsafe { Borrowing::new(Span::from(arena)) };
        Keeping::new(SizeClassCache::new(Talc::new(arena).lock()))
    }

    #[test]
    fn what_does_not_fit_is_borrowed_up_to_a_limit_and_given_back() {
        let (heap, bank) = (heap(), Bank::new(4));
        let layout = Layout::from_size_align(1 << 10, 8).unwrap();
        let fill = || {
            // SAFETY: the layout has bytes.
            let blocks =
                core::iter::from_fn(|| Some(unsafe { heap.alloc(layout) }).filter(|block| !block.is_null()));
            blocks.collect::<Vec<_>>()
        };
        let free = |blocks: Vec<*mut u8>| {
            for block in blocks {
                // SAFETY: the block was allocated with this layout, and is not used any more.
                unsafe { heap.dealloc(block, layout) };
            }
        };
        let own = fill();
        assert!((200..256).contains(&own.len()), "the memory to begin with: {}", own.len());
        heap.borrow_from(bank, 3 * STEP);
        assert_eq!(heap.extent().obtainable, 3 * STEP);
        let more = fill();
        assert!((3 * 1900..3 * 2048).contains(&more.len()), "three pieces of four: {}", more.len());
        assert_eq!((bank.lent(), heap.extent().obtainable, heap.extent().borrowed), (3, 0, 3 * STEP));
        assert!(
            heap.extent().used > (3 * 1900) << 10 && heap.extent().free < (64 << 10),
            "{:?}",
            heap.extent()
        );
        // The blocks do not overlap, and contain what was written into them.
        for (number, block) in own.iter().chain(&more).enumerate() {
            // SAFETY: the block has this size.
            unsafe { block.write_bytes(number as u8, 1 << 10) };
        }
        for (number, block) in own.iter().chain(&more).enumerate() {
            // SAFETY: the block was written above.
            let bytes = unsafe { core::slice::from_raw_parts(*block, 1 << 10) };
            assert!(bytes.iter().all(|byte| *byte == number as u8));
        }
        heap.trim(0);
        assert_eq!(bank.lent(), 3, "all are in use");
        let mut kept = more;
        let gone = kept.split_off(100);
        free(gone);
        heap.trim(2 * STEP);
        assert_eq!(bank.lent(), 3, "that much was to stay free");
        heap.trim(STEP);
        assert_eq!(bank.lent(), 2);
        heap.trim(0);
        assert_eq!(bank.lent(), 1, "the blocks that are left are in one piece");
        free(kept);
        heap.trim(0);
        assert_eq!((bank.lent(), heap.extent().borrowed), (0, 0));
        assert_eq!(fill().len() / 1000, 6, "what was given back can be borrowed again");
        free(own);
    }

    #[test]
    fn an_allocation_that_no_piece_can_hold_fails() {
        let (heap, bank) = (heap(), Bank::new(2));
        heap.borrow_from(bank, 4 * STEP);
        let layout = |size| Layout::from_size_align(size, 4096).unwrap();
        // SAFETY: the layouts have bytes.
        unsafe {
            assert!(heap.alloc(layout(STEP)).is_null(), "its notes need room, too");
            assert!(heap.alloc(layout(usize::MAX >> 2)).is_null());
            let most = heap.alloc(layout(STEP - 8192));
            assert!(!most.is_null() && most.addr() % 4096 == 0);
        }
        assert_eq!(bank.lent(), 1);
    }
}
