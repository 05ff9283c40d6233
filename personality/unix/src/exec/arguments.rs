//! The arguments and environment of a new program, with their limits (execve(2), "Limits on size of
//! arguments and environment").

use crate::{Error, Result};
use alloc::vec::Vec;

/// Bytes of the longest argument or environment string, with its terminating zero.
pub const STRING_LIMIT: usize = 32 * 4096;

/// The arguments or the environment of a program: strings, each with a terminating zero, one after
/// the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    bytes: Vec<u8>,
    count: usize,
}

/// How many bytes the arguments, the environment and the pointers to them may take on the stack of
/// a new program, for a stack limit of `stack_limit` bytes.
pub fn size_limit(stack_limit: u64) -> usize {
    const MIB: u64 = 1 << 20;
    (stack_limit / 4).clamp(128 << 10, 6 * MIB) as usize
}

impl Arguments {
    /// Makes a list without strings.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// Adds a string, which has no zero in it. `E2BIG` if the string is too long, `ENOMEM` without
    /// memory.
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

    /// Removes the first string of the list.
    pub fn remove_first(&mut self) {
        if let Some(end) = self.bytes.iter().position(|byte| *byte == 0) {
            self.bytes.drain(..=end);
            self.count -= 1;
        }
    }

    /// How many strings the list has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list has no strings.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of all strings, terminating zeros included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The strings, without their terminating zeros.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split_inclusive(|byte| *byte == 0).map(|string| &string[..string.len() - 1])
    }

    /// Bytes that the strings take on a new program's stack, with a pointer for each.
    pub fn stack_size(&self) -> usize {
        self.bytes.len() + 8 * self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_keep_their_order_and_a_long_one_is_refused() {
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
