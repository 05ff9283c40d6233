//! The structures of Linux' interface, byte by byte (x86-64: little-endian, natural alignment).

pub mod core;
pub mod file;
pub mod inet;
pub mod interface;
pub mod process;
pub mod registers;
pub mod signal;
pub mod socket;
pub mod sysv;
pub mod terminal;
pub mod time;

use unix::{Error, Result};

/// A structure of `N` bytes that is being written; fields that are not set are zero.
pub struct Writer<const N: usize>([u8; N]);

impl<const N: usize> Writer<N> {
    /// A structure in which all bytes are zero.
    pub fn new() -> Self {
        Writer([0; N])
    }

    /// Sets bytes at offset `at`, which must lie inside the structure.
    pub fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.put(at, bytes);
        self
    }

    /// Sets bytes as [`Self::bytes`] does, in a loop, where the structure should not be moved.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets a field of 16 bits at offset `at`.
    pub fn u16(self, at: usize, value: u16) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// Sets a field of 32 bits at offset `at`.
    pub fn u32(self, at: usize, value: u32) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// Sets a signed field of 32 bits at offset `at`.
    pub fn i32(self, at: usize, value: i32) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// Sets a field of 64 bits at offset `at`.
    pub fn u64(self, at: usize, value: u64) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// Sets a signed field of 64 bits at offset `at`.
    pub fn i64(self, at: usize, value: i64) -> Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// The bytes of the finished structure.
    pub fn done(self) -> [u8; N] {
        self.0
    }
}

impl<const N: usize> Default for Writer<N> {
    fn default() -> Self {
        Writer::new()
    }
}

/// Reads fields of a structure. A field beyond the structure's end is `EINVAL`; callers check the
/// size before.
pub trait Fields {
    /// The field of `N` bytes at offset `at`.
    fn field<const N: usize>(&self, at: usize) -> Result<[u8; N]>;

    /// The field of 16 bits at offset `at`.
    fn u16_at(&self, at: usize) -> Result<u16> {
        self.field(at).map(u16::from_le_bytes)
    }

    /// The field of 32 bits at offset `at`.
    fn u32_at(&self, at: usize) -> Result<u32> {
        self.field(at).map(u32::from_le_bytes)
    }

    /// The signed field of 32 bits at offset `at`.
    fn i32_at(&self, at: usize) -> Result<i32> {
        self.field(at).map(i32::from_le_bytes)
    }

    /// The field of 64 bits at offset `at`.
    fn u64_at(&self, at: usize) -> Result<u64> {
        self.field(at).map(u64::from_le_bytes)
    }

    /// The signed field of 64 bits at offset `at`.
    fn i64_at(&self, at: usize) -> Result<i64> {
        self.field(at).map(i64::from_le_bytes)
    }
}

impl Fields for [u8] {
    fn field<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        self.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Error::EINVAL)
    }
}
