//! A cache of small blocks that were freed, by size classes. A server mostly allocates blocks of
//! sizes that it has just freed. To take a block from a list costs a sixth of the allocator's work,
//! which is to find, split and join gaps.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use spin::Mutex;

/// Up to this size, classes differ by [`STEP`] bytes; for larger sizes they differ by
/// [`WIDE_STEP`].
const NARROW: usize = 1 << 10;
const STEP: usize = 16;
/// Larger blocks are not cached.
const LARGEST: usize = 4 << 10;
const WIDE_STEP: usize = 64;
/// How many size classes there are.
const KINDS: usize = NARROW / STEP + (LARGEST - NARROW) / WIDE_STEP;
/// Blocks with a larger alignment are not cached.
const ALIGNMENT: usize = align_of::<Block>();

/// For each class, how many bytes are cached at most, and how many blocks are cached even if they
/// have more bytes.
const BYTES_OF_KIND: usize = 2 << 10;
const BLOCKS_OF_KIND: usize = 2;
/// The maximum size of the cached blocks together, in bytes.
const MOST_BYTES: usize = 64 << 10;
/// The bytes that the allocator below needs for each block in addition to its size.
const TAG: usize = size_of::<usize>();

/// The number of a size class: all its blocks have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind(usize);

impl Kind {
    /// The class of the blocks for a layout of at least one byte, if its blocks are cached.
    #[inline]
    const fn of(size: usize, alignment: usize) -> Option<Kind> {
        if alignment > ALIGNMENT || size > LARGEST {
            return None;
        }
        Some(Kind(match size {
            ..=NARROW => (size - 1) / STEP,
            _ => NARROW / STEP + (size - NARROW - 1) / WIDE_STEP,
        }))
    }

    /// The size of the blocks of this class in bytes.
    const fn size(self) -> usize {
        match self.0.checked_sub(NARROW / STEP) {
            None => (self.0 + 1) * STEP,
            Some(wide) => NARROW + (wide + 1) * WIDE_STEP,
        }
    }

    /// The layout with which blocks of this class come from the allocator below.
    fn layout(self) -> Layout {
        Layout::from_size_align(self.size(), ALIGNMENT).expect("a size far from the largest")
    }

    /// How many blocks of this class are cached at most.
    const fn most(self) -> usize {
        let most = BYTES_OF_KIND / self.size();
        if most > BLOCKS_OF_KIND { most } else { BLOCKS_OF_KIND }
    }
}

/// A cached block.
struct Block {
    next: *mut Block,
}

/// The cached blocks of one class.
#[derive(Clone, Copy)]
struct List {
    first: *mut Block,
    count: usize,
}

struct Kept {
    lists: [List; KINDS],
    /// The total size of all cached blocks, including what the allocator below needs for each.
    bytes: usize,
}

// SAFETY: only the lists refer to the blocks.
#[allow(unsafe_code, reason = "an allocator")]
unsafe impl Send for Kept {}

impl Kept {
    const NONE: Kept = Kept { lists: [List { first: ptr::null_mut(), count: 0 }; KINDS], bytes: 0 };

    #[inline]
    #[allow(unsafe_code, reason = "an allocator")]
    fn take(&mut self, kind: Kind) -> Option<*mut u8> {
        let list = &mut self.lists[kind.0];
        if list.first.is_null() {
            return None;
        }
        let block = list.first;
        // SAFETY: `keep` has written a `Block` there, and the memory has not been allocated since.
        list.first = unsafe { (*block).next };
        list.count -= 1;
        self.bytes -= kind.size() + TAG;
        Some(block.cast())
    }

    /// Caches a block. Returns false if there are enough blocks of its class.
    ///
    /// # Safety
    /// The block must be of this class, and not in use.
    #[inline]
    #[allow(unsafe_code, reason = "an allocator")]
    unsafe fn keep(&mut self, kind: Kind, block: *mut u8) -> bool {
        let list = &mut self.lists[kind.0];
        let bytes = self.bytes + kind.size() + TAG;
        if list.count >= kind.most() || bytes > MOST_BYTES {
            return false;
        }
        let block = block.cast::<Block>();
        // SAFETY: blocks of every class are large enough and aligned for a `Block`.
        unsafe { block.write(Block { next: list.first }) };
        (list.first, list.count, self.bytes) = (block, list.count + 1, bytes);
        true
    }
}

/// An allocator that caches small blocks which were freed, on top of another one. If that one has
/// no memory left, the cached blocks are freed there.
pub struct SizeClassCache<A> {
    below: A,
    kept: Mutex<Kept>,
}

impl<A: GlobalAlloc> SizeClassCache<A> {
    /// An empty cache on top of the allocator `below`.
    pub const fn new(below: A) -> SizeClassCache<A> {
        SizeClassCache { below, kept: Mutex::new(Kept::NONE) }
    }

    /// The allocator below the cache.
    pub fn below(&self) -> &A {
        &self.below
    }

    /// The number of bytes in the cache.
    pub fn kept(&self) -> usize {
        self.kept.lock().bytes
    }

    /// Frees all cached blocks in the allocator below. Returns whether there were any.
    #[cold]
    #[allow(unsafe_code, reason = "an allocator")]
    pub(super) fn give_back(&self) -> bool {
        let mut all = core::mem::replace(&mut *self.kept.lock(), Kept::NONE);
        let any = all.bytes > 0;
        for kind in (0..KINDS).map(Kind) {
            while let Some(block) = all.take(kind) {
                // SAFETY: cached blocks come from the allocator below, with this layout.
                unsafe { self.below.dealloc(block, kind.layout()) };
            }
        }
        any
    }

    /// Allocates by `allocate` from the allocator below. If that fails, the cached blocks are freed
    /// and it is called once more.
    #[inline]
    fn allocate_below(&self, allocate: impl Fn(&A) -> *mut u8) -> *mut u8 {
        let first = allocate(&self.below);
        if first.is_null() && self.give_back() { allocate(&self.below) } else { first }
    }
}

// SAFETY: a block is either in one list or belongs to its user. All blocks come from the allocator
// below, with the layout of their class, and all other calls are passed on.
#[allow(unsafe_code, reason = "an allocator")]
unsafe impl<A: GlobalAlloc> GlobalAlloc for SizeClassCache<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(kind) = Kind::of(layout.size(), layout.align()) else {
            // SAFETY: the caller keeps this function's contract.
            return self.allocate_below(|below| unsafe { below.alloc(layout) });
        };
        let kept = self.kept.lock().take(kind);
        // SAFETY: every class has blocks of at least one byte.
        kept.unwrap_or_else(|| self.allocate_below(|below| unsafe { below.alloc(kind.layout()) }))
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(kind) = Kind::of(layout.size(), layout.align()) else {
            // SAFETY: the caller keeps this function's contract.
            return unsafe { self.below.dealloc(pointer, layout) };
        };
        // SAFETY: `alloc` has returned it as a block of this class, and the caller does not use it
        // any more.
        if !unsafe { self.kept.lock().keep(kind, pointer) } {
            // SAFETY: cached blocks come from the allocator below, with this layout.
            unsafe { self.below.dealloc(pointer, kind.layout()) }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, new) = (Kind::of(layout.size(), layout.align()), Kind::of(size, layout.align()));
        if old.is_none() && new.is_none() {
            // SAFETY: the caller keeps this function's contract.
            return self.allocate_below(|below| unsafe { below.realloc(pointer, layout, size) });
        }
        if old == new {
            return pointer;
        }
        let Ok(larger_or_smaller) = Layout::from_size_align(size, layout.align()) else {
            return ptr::null_mut();
        };
        // SAFETY: both blocks have as many bytes as are copied, and the old one belongs to the
        // caller until it is freed.
        unsafe {
            let moved = self.alloc(larger_or_smaller);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(pointer, moved, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "allocates by hand")]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use talc::{ErrOnOom, Span, Talc, Talck};

    type Heap = SizeClassCache<Talck<Mutex<()>, ErrOnOom>>;

    fn heap(bytes: usize) -> Heap {
        let mut talc = Talc::new(ErrOnOom);
        // SAFETY: no other code uses the memory.
        unsafe { talc.claim(Span::from(vec![0u8; bytes].leak())) }.expect("enough for a heap");
        SizeClassCache::new(talc.lock())
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).expect("a layout")
    }

    #[test]
    fn every_size_has_a_kind_with_room_for_it() {
        let mut last = 0;
        for size in 1..=LARGEST {
            let kind = Kind::of(size, 8).expect("small");
            let spare = kind.size() - size;
            assert!(spare < if size <= NARROW { STEP } else { WIDE_STEP }, "{size}: {spare}");
            assert!(kind.0 == last || kind.0 == last + 1);
            last = kind.0;
        }
        assert_eq!(last + 1, KINDS);
        assert_eq!((Kind::of(LARGEST + 1, 8), Kind::of(64, 16)), (None, None));
    }

    #[test]
    fn a_block_serves_the_next_of_its_size() {
        let heap = heap(64 << 10);
        // SAFETY: no block is used after it was freed.
        unsafe {
            let first = heap.alloc(layout(100));
            heap.dealloc(first, layout(100));
            assert_eq!(heap.kept(), 112 + TAG);
            assert_ne!(heap.alloc(layout(96)), first, "of another kind");
            assert_eq!(heap.alloc(layout(112)), first);
            assert_eq!(heap.kept(), 0);
            assert_eq!(heap.realloc(first, layout(112), 97), first);
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_there_when_it_is_needed() {
        let heap = heap(512 << 10);
        // SAFETY: no block is used after it was freed.
        unsafe {
            let small: Vec<_> = (0..300).map(|_| heap.alloc(layout(16))).collect();
            let sizes = (1..=LARGEST).step_by(48);
            let all: Vec<_> = sizes.map(|size| (heap.alloc(layout(size)), layout(size))).collect();
            assert!(small.iter().chain(all.iter().map(|(block, _)| block)).all(|block| !block.is_null()));
            small.into_iter().for_each(|block| heap.dealloc(block, layout(16)));
            assert_eq!(heap.kept(), Kind(0).most() * (16 + TAG));
            all.into_iter().for_each(|(block, layout)| heap.dealloc(block, layout));
            assert!(heap.kept() > MOST_BYTES / 2 && heap.kept() <= MOST_BYTES);
            // The test allocates all memory except for the tables of the allocator below.
            assert!(!heap.alloc(layout(500 << 10)).is_null());
            assert_eq!(heap.kept(), 0);
        }
    }

    proptest! {
        /// Blocks never overlap, and keep their content wherever they move.
        #[test]
        fn blocks_do_not_overlap_and_keep_their_content(steps in proptest::collection::vec((0..24usize, 1..6000usize, 0..3u32), 1..400)) {
            let heap = heap(64 << 10);
            let mut owned: Vec<(*mut u8, Layout, u8)> = Vec::new();
            let filled = |&(block, layout, byte): &(*mut u8, Layout, u8), bytes: usize| {
                // SAFETY: the block belongs to the test, and has been written.
                unsafe { core::slice::from_raw_parts(block, bytes.min(layout.size())) }.iter().all(|&is| is == byte)
            };
            for (step, (which, size, what)) in steps.into_iter().enumerate() {
                let alignment = if size % 7 == 0 { 64 } else { 8 };
                let layout = Layout::from_size_align(size, alignment).unwrap();
                let byte = step as u8;
                // SAFETY: each block belongs to the test, and has the layout that is passed.
                unsafe {
                    match owned.get(which).copied() {
                        Some(old) if what == 0 => {
                            prop_assert!(filled(&old, usize::MAX));
                            heap.dealloc(old.0, old.1);
                            owned.swap_remove(which);
                        }
                        Some(old) if what == 1 => {
                            let layout = Layout::from_size_align(size, old.1.align()).unwrap();
                            let block = heap.realloc(old.0, old.1, size);
                            if !block.is_null() {
                                prop_assert!(filled(&(block, old.1, old.2), size));
                                block.write_bytes(byte, size);
                                owned[which] = (block, layout, byte);
                            }
                        }
                        _ => {
                            let block = heap.alloc(layout);
                            if !block.is_null() {
                                prop_assert!((block as usize).is_multiple_of(alignment));
                                block.write_bytes(byte, size);
                                owned.push((block, layout, byte));
                            }
                        }
                    }
                }
            }
            prop_assert!(owned.iter().all(|old| filled(old, usize::MAX)));
            for (block, layout, _) in owned {
                // SAFETY: the block belongs to the test, and has this layout.
                unsafe { heap.dealloc(block, layout) };
            }
            heap.give_back();
            prop_assert_eq!(heap.below().lock().get_counters().allocated_bytes, 0);
        }
    }
}
