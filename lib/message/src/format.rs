//! What messages look like on a kind of machine and in a dialect.

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// A message's header.
    pub(crate) header: usize,
    /// A type descriptor of the short form; 0 in the untyped dialect.
    pub(crate) descriptor: usize,
    /// What items are padded to.
    pub(crate) word: usize,
    /// A port's name.
    pub(crate) port: usize,
    /// A pointer to memory out of line.
    pub(crate) pointer: usize,
}

impl Format {
    /// The typed dialect of 64 bits.
    pub const MACH64: Format = Format { header: 32, descriptor: 8, word: 8, port: 8, pointer: 8 };
    /// GNU's first 64-bit form of the typed dialect.
    pub const MACH64_2022: Format = Format { header: 32, descriptor: 4, word: 4, port: 4, pointer: 8 };
    /// The typed dialect of 32 bits.
    pub const MACH32: Format = Format { header: 24, descriptor: 4, word: 4, port: 4, pointer: 4 };
    /// The untyped dialect of 64 bits.
    pub const UNTYPED64: Format = Format { header: 24, descriptor: 0, word: 4, port: 4, pointer: 8 };
    /// The untyped dialect of 32 bits.
    pub const UNTYPED32: Format = Format { header: 24, descriptor: 0, word: 4, port: 4, pointer: 4 };

    /// Whether it is of the typed dialect.
    pub(crate) const fn is_typed(&self) -> bool {
        self.descriptor != 0
    }

    /// Bytes of a reply that has only a result, and where the result is in it.
    pub(crate) const fn result(&self) -> (usize, usize) {
        let at = self.header + if self.is_typed() { self.descriptor } else { 8 };
        ((at + 4).next_multiple_of(self.word), at)
    }

    /// Bytes of a port in the header.
    const fn slot(&self) -> usize {
        (self.header - 16) / 2
    }
}

/// The bit of a header that says that a message holds rights or memory.
pub(crate) const COMPLEX: u32 = 0x8000_0000;

/// A message's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What the ports are, and whether there are rights or memory.
    pub bits: u32,
    /// Bytes of the message.
    pub size: usize,
    /// Where it goes; at the receiver, where its reply goes.
    pub remote: u64,
    /// Where its reply goes; at the receiver, where it came to.
    pub local: u64,
    /// The sequence number of a received message of the typed dialect.
    pub sequence: u32,
    /// What it is.
    pub id: u32,
}

impl Header {
    /// The header of a message. None: the bytes are not a message.
    pub fn read(format: &Format, bytes: &[u8]) -> Option<Header> {
        let (header, slot) = (format.header, format.slot());
        // Names have 32 bits: what fills a wider slot in the header may be anything.
        let port = |at| get(bytes, at, 4);
        let size = get(bytes, 4, 4)? as usize;
        if size < header || size > bytes.len() {
            return None;
        }
        Some(Header {
            bits: get(bytes, 0, 4)? as u32,
            size,
            remote: port(8)?,
            local: port(8 + slot)?,
            sequence: get(bytes, header - 8, 4)? as u32,
            id: get(bytes, header - 4, 4)? as u32,
        })
    }

    /// Writes it to the beginning of a message.
    pub fn write(&self, format: &Format, bytes: &mut [u8]) {
        let (header, slot) = (format.header, format.slot());
        put(bytes, 0, u64::from(self.bits), 4);
        put(bytes, 4, self.size as u64, 4);
        put(bytes, 8, self.remote, slot);
        put(bytes, 8 + slot, self.local, slot);
        put(bytes, header - 8, u64::from(self.sequence), 4);
        put(bytes, header - 4, u64::from(self.id), 4);
    }

    /// The type of the right to the remote port.
    pub fn remote_type(&self) -> u32 {
        self.bits & 0xff
    }

    /// The type of the right to the local port.
    pub fn local_type(&self) -> u32 {
        self.bits >> 8 & 0xff
    }
}

/// A number of so many bytes, at most 8.
#[inline]
pub(crate) fn get(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..size)?.copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(number))
}

/// Writes the lowest bytes of a number, at most 8. What would lie outside is not written.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, number: u64, size: usize) {
    if let (Some(room), Some(number)) = (bytes.get_mut(at..at + size), number.to_le_bytes().get(..size)) {
        room.copy_from_slice(number);
    }
}
