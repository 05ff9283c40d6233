//! Reading and writing the parts of messages.

use alloc::vec::Vec;

/// Writes a message.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Begins a message of this kind; its size is filled in at the end.
    pub fn new(kind: u8, tag: u16) -> Writer {
        let mut writer = Writer { bytes: alloc::vec![0, 0, 0, 0, kind] };
        writer.half(tag);
        writer
    }

    /// The parts that were written to a writer that has not begun a message.
    pub(crate) fn parts(self) -> Vec<u8> {
        self.bytes
    }

    /// The complete message.
    pub fn finish(mut self) -> Vec<u8> {
        // A message of 4 GiB does not exist: transports have far smaller limits.
        let size = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&size.to_le_bytes());
        self.bytes
    }

    /// Appends 8 bits.
    pub fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends 16 bits.
    pub fn half(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends 32 bits.
    pub fn word(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends 64 bits.
    pub fn long(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a string, of which the first 65535 bytes are kept.
    pub fn string(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(usize::from(u16::MAX))];
        self.half(text.len() as u16);
        self.raw(text);
    }
}

/// Reads the parts of a message one after the other. `None`: the message is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn raw(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        self.raw(COUNT)?.try_into().ok()
    }

    /// The next 8 bits.
    pub fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next 16 bits.
    pub fn half(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next 32 bits.
    pub fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 64 bits.
    pub fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next string.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.half()?;
        self.raw(length.into())
    }

    /// The next bytes, whose count in 32 bits is before them.
    pub fn data(&mut self) -> Option<&'a [u8]> {
        let length = self.word()?;
        self.raw(usize::try_from(length).ok()?)
    }
}
