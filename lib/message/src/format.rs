//! The layout of messages on a kind of machine and in a dialect of Mach.

/// A layout of messages. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The size of a message's header.
    pub(crate) header: usize,
    /// The size of a type descriptor of the short form; 0 in the untyped dialect.
    pub(crate) descriptor: usize,
    /// The multiple to which items are padded.
    pub(crate) word: usize,
    /// The size of a port's name in the body.
    pub(crate) port: usize,
    /// The size of a pointer to memory out of line.
    pub(crate) pointer: usize,
}

impl Format {
    /// The layout of the typed dialect for 64 bits.
    pub const MACH64: Format = Format { header: 32, descriptor: 8, word: 8, port: 8, pointer: 8 };
    /// The layout of GNU's first 64-bit form of the typed dialect.
    pub const MACH64_2022: Format = Format { header: 32, descriptor: 4, word: 4, port: 4, pointer: 8 };
    /// The layout of the typed dialect for 32 bits.
    pub const MACH32: Format = Format { header: 24, descriptor: 4, word: 4, port: 4, pointer: 4 };
    /// The layout of the untyped dialect for 64 bits.
    pub const UNTYPED64: Format = Format { header: 24, descriptor: 0, word: 4, port: 4, pointer: 8 };
    /// The layout of the untyped dialect for 32 bits.
    pub const UNTYPED32: Format = Format { header: 24, descriptor: 0, word: 4, port: 4, pointer: 4 };

    /// Whether the layout is of the typed dialect.
    pub(crate) const fn is_typed(&self) -> bool {
        self.descriptor != 0
    }

    /// The size of a reply that has only a result, and the offset of the result in it.
    pub(crate) const fn result(&self) -> (usize, usize) {
        let at = self.header + if self.is_typed() { self.descriptor } else { 8 };
        ((at + 4).next_multiple_of(self.word), at)
    }

    /// The size of a port's name in the header.
    const fn slot(&self) -> usize {
        (self.header - 16) / 2
    }
}

/// The bit of a header that says that the message holds rights or memory out of line.
pub(crate) const COMPLEX: u32 = 0x8000_0000;

/// The fields of a message's header, in all layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The types of the rights to the remote and the local port, and the bit for rights or memory.
    pub bits: u32,
    /// The size of the message in bytes, without its trailer.
    pub size: usize,
    /// In a message to be sent, the port to which it goes; in a received one, the port for the
    /// reply.
    pub remote: u64,
    /// In a message to be sent, the port for the reply; in a received one, the port to which it
    /// came.
    pub local: u64,
    /// The sequence number of a received message. Only the typed dialect has it in the header.
    pub sequence: u32,
    /// The id, which says which request or reply the message is.
    pub id: u32,
}

impl Header {
    /// Reads the header of a message. `None`: the bytes are too few for a header or for the size in
    /// it.
    pub fn read(format: &Format, bytes: &[u8]) -> Option<Header> {
        let (header, slot) = (format.header, format.slot());
        // A name has 32 bits. The other bytes of a wider field may have any content.
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

    /// Writes the header to the beginning of a message.
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

/// Reads a number of `size` bytes, at most 8, at the offset `at`. `None`: the bytes end before.
#[inline]
pub(crate) fn get(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    // Most numbers have one of two sizes, for which there is an instruction.
    match size {
        4 => return Some(u64::from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))),
        8 => return Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)),
        _ => {}
    }
    let mut number = [0; 8];
    number.get_mut(..size)?.copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(number))
}

/// Writes the lowest `size` bytes of a number, at most 8, at the offset `at`. Nothing is written if
/// they do not lie in `bytes`.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, number: u64, size: usize) {
    let rest = bytes.get_mut(at..);
    match size {
        4 => _ = rest.and_then(<[u8]>::first_chunk_mut).map(|room| *room = (number as u32).to_le_bytes()),
        8 => _ = rest.and_then(<[u8]>::first_chunk_mut).map(|room| *room = number.to_le_bytes()),
        _ => put_other(bytes, at, number, size),
    }
}

/// Writes a number as [`put`] does, whatever its size.
fn put_other(bytes: &mut [u8], at: usize, number: u64, size: usize) {
    if let (Some(room), Some(number)) = (bytes.get_mut(at..at + size), number.to_le_bytes().get(..size)) {
        room.copy_from_slice(number);
    }
}
