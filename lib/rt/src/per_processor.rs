//! Memory of which each processor has its own part, for programs that run on several (SMP thesis
//! 5.1).
//!
//! The kernel gives all threads of a space the same memory, so a processor's part is found by its
//! number, which the thread reads from its UTCB without a system call. Parts do not share cache
//! lines: as long as each thread uses the part of the processor that it runs on, no line goes from
//! one to the other.

use crate::executor::OutOfMemory;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A value of type `T` for each processor.
///
/// A thread may be preempted by another of its processor, and moved to another processor, between
/// any two instructions. So the value of a processor is shared, but is *mostly* used by one
/// processor at a time. `T` must be an atomic, or have a lock, which is rarely contended.
#[derive(Debug)]
pub struct PerProcessor<T>(Box<[Part<T>]>);

/// The values are two cache lines apart, because processors also fetch the neighbour of a line.
#[derive(Debug)]
#[repr(align(128))]
struct Part<T>(T);

impl<T> PerProcessor<T> {
    /// Makes a value for each processor of the machine; `make` gets the processor's number.
    ///
    /// # Errors
    /// [`OutOfMemory`] if there is no memory for the values.
    pub fn new(make: impl FnMut(usize) -> T) -> Result<Self, OutOfMemory> {
        Self::for_processors(l4::kip().processor_info().processors as usize, make)
    }

    fn for_processors(count: usize, mut make: impl FnMut(usize) -> T) -> Result<Self, OutOfMemory> {
        let mut parts = Vec::new();
        parts.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        parts.extend((0..count).map(|number| Part(make(number))));
        Ok(Self(parts.into_boxed_slice()))
    }

    /// The value of the processor on which the caller runs now.
    pub fn here(&self) -> &T {
        self.of(l4::utcb::processor_number() as usize)
    }

    /// The value of processor `number`.
    ///
    /// # Panics
    /// If there is no such processor.
    pub fn of(&self, number: usize) -> &T {
        &self.0[number].0
    }

    /// The values of all processors, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|part| &part.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_processors_share_no_cache_line() {
        let parts = PerProcessor::for_processors(3, |number| number * 10).unwrap();
        assert_eq!(parts.iter().copied().collect::<Vec<_>>(), [0, 10, 20]);
        let address = |number| core::ptr::from_ref(parts.of(number)) as usize;
        assert!(address(0).is_multiple_of(128) && address(1) - address(0) >= 128);
    }
}
