//! The structures of the interface, byte by byte (x86-64: little-endian, natural alignment).

pub mod file;
pub mod process;
pub mod signal;
pub mod socket;
pub mod terminal;
pub mod time;

use unix::{Error, Result};

/// A structure of `N` bytes under construction; what is not set is zero.
pub struct Writer<const N: usize>([u8; N]);

impl<const N: usize> Writer<N> {
    /// All zeros.
    pub fn new() -> Self {
        Writer([0; N])
    }

    /// Puts bytes at `at`, which must lie inside.
    pub fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// A half word.
    pub fn u16(self, at: usize, value: u16) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// A word.
    pub fn u32(self, at: usize, value: u32) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// A signed word.
    pub fn i32(self, at: usize, value: i32) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// A double word.
    pub fn u64(self, at: usize, value: u64) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// A signed double word.
    pub fn i64(self, at: usize, value: i64) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// The structure.
    pub fn done(self) -> [u8; N] {
        self.0
    }
}

impl<const N: usize> Default for Writer<N> {
    fn default() -> Self {
        Writer::new()
    }
}

/// Reads fields of a structure. A field beyond its end is `EINVAL`, which callers rule out by its
/// size.
pub trait Fields {
    /// `N` bytes at `at`.
    fn field<const N: usize>(&self, at: usize) -> Result<[u8; N]>;

    /// A half word.
    fn u16_at(&self, at: usize) -> Result<u16> {
        self.field(at).map(u16::from_le_bytes)
    }

    /// A word.
    fn u32_at(&self, at: usize) -> Result<u32> {
        self.field(at).map(u32::from_le_bytes)
    }

    /// A signed word.
    fn i32_at(&self, at: usize) -> Result<i32> {
        self.field(at).map(i32::from_le_bytes)
    }

    /// A double word.
    fn u64_at(&self, at: usize) -> Result<u64> {
        self.field(at).map(u64::from_le_bytes)
    }

    /// A signed double word.
    fn i64_at(&self, at: usize) -> Result<i64> {
        self.field(at).map(i64::from_le_bytes)
    }
}

impl Fields for [u8] {
    fn field<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        self.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Error::EINVAL)
    }
}
