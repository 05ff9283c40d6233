//! The screen's memory.

use core::marker::PhantomData;

/// The screen's memory. It is only written.
#[derive(Debug)]
pub struct ScreenMemory<'a> {
    start: *mut u8,
    size: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl ScreenMemory<'_> {
    /// The screen's memory of `size` bytes at `address`.
    ///
    /// # Safety
    /// The memory is mapped there, may be written at any time, and nothing else of the program uses
    /// it.
    #[allow(unsafe_code, reason = "that the memory is there is the caller's promise")]
    pub unsafe fn at(address: u64, size: u64) -> ScreenMemory<'static> {
        ScreenMemory { start: address as *mut u8, size: size as usize, memory: PhantomData }
    }

    /// The memory in `bytes`, for tests.
    #[cfg(test)]
    pub(crate) fn of(bytes: &mut [u8]) -> ScreenMemory<'_> {
        ScreenMemory { start: bytes.as_mut_ptr(), size: bytes.len(), memory: PhantomData }
    }

    /// Writes four bytes at a multiple of four. Beyond the end nothing is written.
    pub(crate) fn write_word(&mut self, at: usize, word: [u8; 4]) {
        if at.is_multiple_of(4) && self.size.checked_sub(4).is_some_and(|last| at <= last) {
            #[allow(unsafe_code, reason = "the screen's memory is no Rust object")]
            // SAFETY: the place is within the memory, which the maker of this value has promised to
            // be there, and whose start is a multiple of four wherever words are written.
            unsafe {
                self.start.add(at).cast::<[u8; 4]>().write_volatile(word)
            }
        }
    }

    /// Writes a byte. Beyond the end nothing is written.
    pub(crate) fn write(&mut self, at: usize, byte: u8) {
        if at < self.size {
            #[allow(unsafe_code, reason = "the screen's memory is no Rust object")]
            // SAFETY: the place is within the memory, which the maker of this value has promised to
            // be there.
            unsafe {
                self.start.add(at).write_volatile(byte)
            }
        }
    }
}
