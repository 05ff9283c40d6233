//! The frames of physical memory: one pool that is contiguous in the server's space, so that a
//! frame's address follows from its number (docs/src/architecture.md).
//!
//! Programs change the frames that they have mapped at any time. Therefore no Rust object lies in a
//! frame: contents are copied by assembler instructions, and shared words are atomic. The exception
//! are frames that are lent to the server's heap; no program has these.
#![allow(unsafe_code)]

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use macadamia_sync::SpinLock;
use mach::machine::buddy::Buddy;
use mach::machine::{Frame, PAGE_SHIFT, PAGE_SIZE};

/// The pool of frames, and which of them are free.
pub(crate) struct FramePool {
    base: u64,
    limit: u32,
    buddy: SpinLock<Buddy>,
    /// The number of free frames, which can be read without the lock.
    free: AtomicU32,
}

impl FramePool {
    /// A pool of the frames of `limit` pages from `base` on, all free. `None`: there is no memory
    /// for the table of frames.
    ///
    /// # Safety
    /// `base` is a multiple of the largest page. The memory is readable and writable, no Rust
    /// object lies in it, and it stays mapped as long as the pool exists.
    pub(crate) unsafe fn new(base: u64, limit: u32) -> Option<FramePool> {
        let mut buddy = Buddy::new(limit)?;
        buddy.donate(0, limit);
        Some(FramePool { base, limit, buddy: SpinLock::new(buddy), free: AtomicU32::new(limit) })
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    pub(crate) fn free(&self) -> u32 {
        // Relaxed: the number is a hint, as it may change at any time.
        self.free.load(Ordering::Relaxed)
    }

    pub(crate) fn allocate(&self, order: u32) -> Option<Frame> {
        let mut buddy = self.buddy.lock();
        let first = buddy.allocate(order)?;
        self.free.store(buddy.free_frames(), Ordering::Relaxed);
        Some(Frame(first))
    }

    pub(crate) fn release(&self, first: Frame, order: u32) {
        let mut buddy = self.buddy.lock();
        buddy.release(first.0, order);
        self.free.store(buddy.free_frames(), Ordering::Relaxed);
    }

    /// Lends an aligned run of 2^`order` frames as memory for the server's heap. Its content is
    /// arbitrary. `None`: there is no such run, or fewer than `kept` frames would be left.
    pub(crate) fn lend(&self, order: u32, kept: u32) -> Option<&'static mut [u8]> {
        if self.free() < kept.saturating_add(1 << order) {
            return None;
        }
        let first = self.allocate(order)?;
        let pages = usize::try_from(PAGE_SIZE).ok()? << order;
        // SAFETY: the frames have just been taken out of the pool, so no other code uses them. The
        // pool exists as long as the program.
        Some(unsafe { core::slice::from_raw_parts_mut(self.address(first) as *mut u8, pages) })
    }

    /// Takes back memory that [`lend`](Self::lend) gave.
    pub(crate) fn take_back(&self, memory: &'static mut [u8]) {
        let first = (memory.as_ptr() as u64 - self.base) >> PAGE_SHIFT;
        let order = (memory.len() as u64 >> PAGE_SHIFT).ilog2();
        self.release(Frame(first as u32), order);
    }

    /// The address of a frame in the server's space.
    ///
    /// # Panics
    /// If there is no such frame. The Mach library uses only frames that the pool has given it.
    #[inline]
    pub(crate) fn address(&self, frame: Frame) -> u64 {
        assert!(frame.0 < self.limit, "no such frame");
        self.base + (u64::from(frame.0) << PAGE_SHIFT)
    }

    /// The address of `length` bytes at `offset` of a frame.
    ///
    /// # Panics
    /// If they do not lie in the frame.
    #[inline]
    fn part(&self, frame: Frame, offset: usize, length: usize) -> u64 {
        assert!(offset <= PAGE_SIZE as usize && length <= PAGE_SIZE as usize - offset, "within the frame");
        self.address(frame) + offset as u64
    }

    /// Fills a frame with zeros.
    #[inline]
    pub(crate) fn zero(&self, frame: Frame) {
        let address = self.address(frame);
        // SAFETY: the frame lies in the pool, whose memory may be written and holds no Rust object.
        unsafe {
            asm!(
                "rep stosq",
                inout("rdi") address => _, inout("rcx") PAGE_SIZE / 8 => _, in("rax") 0u64,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Copies a whole frame.
    #[inline]
    pub(crate) fn copy(&self, from: Frame, to: Frame) {
        // SAFETY: both frames lie in the pool.
        unsafe { copy_words(self.address(from), self.address(to), PAGE_SIZE / 8) }
    }

    /// Copies bytes out of a frame.
    #[inline]
    pub(crate) fn read(&self, frame: Frame, offset: usize, buffer: &mut [u8]) {
        let from = self.part(frame, offset, buffer.len());
        // SAFETY: the source lies in the frame; the buffer is exclusively borrowed.
        unsafe { copy_bytes(from, buffer.as_mut_ptr() as u64, buffer.len()) }
    }

    /// Copies bytes into a frame.
    #[inline]
    pub(crate) fn write(&self, frame: Frame, offset: usize, bytes: &[u8]) {
        let to = self.part(frame, offset, bytes.len());
        // SAFETY: the target lies in the frame, which may be written and holds no Rust object.
        unsafe { copy_bytes(bytes.as_ptr() as u64, to, bytes.len()) }
    }

    /// Copies bytes from one frame to another, each at its offset.
    #[inline]
    pub(crate) fn copy_between(&self, from: (Frame, usize), to: (Frame, usize), length: usize) {
        let (from, to) = (self.part(from.0, from.1, length), self.part(to.0, to.1, length));
        // SAFETY: source and target lie in frames, which may be written and hold no Rust object.
        unsafe { copy_bytes(from, to, length) }
    }

    /// The aligned word at `offset` of a frame. Programs may change it at any time.
    #[inline]
    pub(crate) fn word(&self, frame: Frame, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "an aligned word");
        let address = self.part(frame, offset, 4);
        // SAFETY: the word is aligned and lies in the pool. It is accessed only by programs, or
        // atomically through this function.
        unsafe { AtomicU32::from_ptr(address as *mut u32) }
    }

    /// The same for a word of 64 bits.
    #[inline]
    pub(crate) fn long_word(&self, frame: Frame, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "an aligned word");
        let address = self.part(frame, offset, 8);
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(address as *mut u64) }
    }
}

/// Copies bytes, whole words first.
///
/// # Safety
/// The source is readable and the target writable. The caller may change every Rust object in the
/// target.
#[inline]
unsafe fn copy_bytes(from: u64, to: u64, length: usize) {
    // SAFETY: the caller promises that the source is readable and the target writable.
    unsafe {
        asm!(
            "mov rcx, {length}",
            "shr rcx, 3",
            "rep movsq",
            "mov rcx, {length}",
            "and ecx, 7",
            "rep movsb",
            length = in(reg) length,
            inout("rsi") from => _, inout("rdi") to => _, out("rcx") _,
            options(nostack)
        );
    }
}

/// Copies 64-bit words.
///
/// # Safety
/// The source is readable and the target writable. The caller may change every Rust object in the
/// target.
#[inline]
unsafe fn copy_words(from: u64, to: u64, words: u64) {
    // SAFETY: the caller promises that the source is readable and the target writable.
    unsafe {
        asm!(
            "rep movsq",
            inout("rsi") from => _, inout("rdi") to => _, inout("rcx") words => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[repr(C, align(4096))]
    #[derive(Clone)]
    struct Page([u8; 4096]);

    /// A pool of frames in memory of the test program.
    fn pool(pages: usize) -> (Vec<Page>, FramePool) {
        let mut memory = alloc::vec![Page([0xa5; 4096]); pages];
        // SAFETY: the memory exists as long as the pool and is not used otherwise. No test maps it,
        // so it need not be aligned to the largest page.
        let pool = unsafe { FramePool::new(memory.as_mut_ptr() as u64, pages as u32) }.unwrap();
        (memory, pool)
    }

    #[test]
    fn bytes_that_were_written_to_a_frame_are_read_back() {
        let (_memory, pool) = pool(4);
        let (one, other) = (pool.allocate(0).unwrap(), pool.allocate(0).unwrap());
        assert_eq!(pool.free(), 2);
        pool.zero(one);
        pool.write(one, 4093, b"end");
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte as u8 + 1).collect();
            pool.write(one, 100 + length, &bytes);
            let mut back = alloc::vec![0; length + 2];
            pool.read(one, 99 + length, &mut back);
            assert_eq!((back[0], &back[1..=length], back[length + 1]), (0, &bytes[..], 0), "{length}");
            pool.zero(one);
        }
        pool.write(one, 4093, b"end");
        pool.copy(one, other);
        let mut end = [0; 4];
        pool.read(other, 4092, &mut end);
        assert_eq!(&end, b"\0end");
        for length in [0, 1, 7, 8, 9, 64, 3000] {
            let bytes: Vec<u8> = (0..length).map(|byte| byte as u8 | 1).collect();
            pool.zero(other);
            pool.write(one, 5, &bytes);
            pool.copy_between((one, 5), (other, 1000), length);
            let mut back = alloc::vec![0; length + 2];
            pool.read(other, 999, &mut back);
            assert_eq!((back[0], &back[1..=length], back[length + 1]), (0, &bytes[..], 0), "{length}");
        }
        pool.word(other, 8).store(7, Ordering::Relaxed);
        assert_eq!(pool.word(other, 8).compare_exchange(7, 9, Ordering::SeqCst, Ordering::SeqCst), Ok(7));
        pool.long_word(other, 8).store(u64::MAX - 1, Ordering::Relaxed);
        assert_eq!(pool.word(other, 12).load(Ordering::Relaxed), u32::MAX);
        pool.release(one, 0);
        pool.release(other, 0);
        assert_eq!((pool.free(), pool.limit()), (4, 4));
    }

    #[test]
    fn runs_are_lent_as_memory_as_long_as_some_frames_are_left() {
        let (_memory, pool) = pool(16);
        let one = pool.lend(3, 8).unwrap();
        one.fill(1);
        assert_eq!((one.len(), pool.free()), (8 * 4096, 8));
        assert!(pool.lend(3, 1).is_none() && pool.lend(4, 0).is_none());
        let other = pool.lend(2, 4).unwrap();
        other.fill(2);
        assert!(one.iter().all(|byte| *byte == 1) && pool.lend(0, 4).is_none());
        pool.take_back(one);
        pool.take_back(other);
        assert_eq!((pool.free(), pool.lend(4, 0).map(|all| all.len())), (16, Some(16 * 4096)));
    }

    #[test]
    fn the_address_of_a_frame_follows_from_its_number() {
        let (_memory, pool) = pool(4);
        let run = pool.allocate(1).unwrap();
        assert_eq!(pool.address(Frame(run.0 + 1)) - pool.address(run), PAGE_SIZE);
    }

    #[test]
    #[should_panic(expected = "within the frame")]
    fn nothing_reaches_beyond_a_frame() {
        let (_memory, pool) = pool(2);
        pool.write(Frame(0), 4094, b"abc");
    }

    #[test]
    #[should_panic(expected = "within the frame")]
    fn no_long_word_reaches_beyond_its_frame() {
        let (_memory, pool) = pool(2);
        pool.long_word(Frame(0), 4096);
    }

    #[test]
    #[should_panic(expected = "within the frame")]
    fn no_copy_reaches_beyond_its_target() {
        let (_memory, pool) = pool(2);
        pool.copy_between((Frame(0), 0), (Frame(1), 4094), 3);
    }

    #[test]
    #[should_panic(expected = "no such frame")]
    fn nothing_reaches_beyond_the_pool() {
        let (_memory, pool) = pool(2);
        pool.zero(Frame(2));
    }
}
