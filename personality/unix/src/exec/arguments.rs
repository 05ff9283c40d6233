//! The arguments and environment of a new program, with their limits (execve(2), "Limits on size of
//! arguments and environment").

use crate::{Error, Result};
use alloc::vec::Vec;

/// Longest single string, with its terminating zero.
pub const STRING_LIMIT: usize = 32 * 4096;

/// Strings, each with a terminating zero, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    bytes: Vec<u8>,
    count: usize,
}

/// How many bytes arguments and environment may take together with their pointers, for a stack
/// limit of `stack_limit` bytes.
pub fn size_limit(stack_limit: u64) -> usize {
    const MIB: u64 = 1 << 20;
    (stack_limit / 4).clamp(128 << 10, 6 * MIB) as usize
}

impl Arguments {
    /// No strings.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// Adds a string, which has no zero in it. `E2BIG` if it is too long, `ENOMEM`.
    pub fn push(&mut self, string: &[u8]) -> Result<()> {
        self.insert_at(self.bytes.len(), string)
    }

    /// Puts a string before all others.
    pub fn push_front(&mut self, string: &[u8]) -> Result<()> {
        self.insert_at(0, string)
    }

    fn insert_at(&mut self, position: usize, string: &[u8]) -> Result<()> {
        if string.len() >= STRING_LIMIT {
            return Err(Error::E2BIG);
        }
        self.bytes.try_reserve(string.len() + 1).map_err(|_| Error::ENOMEM)?;
        let tail = self.bytes.len() - position;
        self.bytes.extend_from_slice(string);
        self.bytes.push(0);
        self.bytes[position..].rotate_left(tail);
        self.count += 1;
        Ok(())
    }

    /// Takes the first string away.
    pub fn remove_first(&mut self) {
        if let Some(end) = self.bytes.iter().position(|byte| *byte == 0) {
            self.bytes.drain(..=end);
            self.count -= 1;
        }
    }

    /// How many strings.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All bytes, terminating zeros included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The strings, without their zeros.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split_inclusive(|byte| *byte == 0).map(|string| &string[..string.len() - 1])
    }

    /// Bytes on the stack, with a pointer for each string.
    pub fn stack_size(&self) -> usize {
        self.bytes.len() + 8 * self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_limits() {
        let mut arguments = Arguments::new();
        arguments.push(b"b").unwrap();
        arguments.push(b"").unwrap();
        arguments.push_front(b"aa").unwrap();
        assert!(arguments.iter().eq([&b"aa"[..], b"b", b""]));
        assert_eq!((arguments.bytes(), arguments.stack_size()), (&b"aa\0b\0\0"[..], 6 + 24));
        arguments.remove_first();
        assert!(arguments.iter().eq([&b"b"[..], b""]));
        assert_eq!(arguments.push(&[b'x'; STRING_LIMIT]), Err(Error::E2BIG));
        assert_eq!(arguments.push(&[b'x'; STRING_LIMIT - 1]), Ok(()));
        assert_eq!(arguments.len(), 3);
        assert_eq!([size_limit(0), size_limit(8 << 20), size_limit(u64::MAX)], [128 << 10, 2 << 20, 6 << 20]);
    }
}
