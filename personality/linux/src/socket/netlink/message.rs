//! Messages of netlink(7): headers, and attributes that are nested in each other.

use crate::layout::Fields;
use alloc::vec::Vec;
use unix::Result;

/// Bytes of struct nlmsghdr.
pub(super) const HEADER: usize = 16;
/// Requests: the kind of message that ends a dump, and the one that reports an error.
pub(super) const ERROR: u16 = 2;
pub(super) const DONE: u16 = 3;
/// Flags of messages.
pub(super) const REQUEST: u16 = 1;
pub(super) const MULTIPART: u16 = 2;
pub(super) const ACKNOWLEDGE: u16 = 4;
pub(super) const DUMP: u16 = 0x300;
pub(super) const CAPPED: u16 = 0x100;

/// A request of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    /// The whole message, with its header.
    pub(super) bytes: &'a [u8],
}

impl<'a> Request<'a> {
    /// What follows the header.
    pub(super) fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER..]
    }

    /// The attribute of this kind, in the attributes that begin after `skip` bytes of the body.
    pub(super) fn attribute(&self, skip: usize, kind: u16) -> Option<&'a [u8]> {
        attributes(self.body().get(skip..)?).find(|(known, _)| *known == kind).map(|(_, data)| data)
    }
}

/// The messages in these bytes; those after a malformed one are left out.
pub(super) fn requests(mut bytes: &[u8]) -> impl Iterator<Item = Request<'_>> {
    core::iter::from_fn(move || {
        let request = first(bytes).ok().flatten()?;
        bytes = bytes.get(request.bytes.len().next_multiple_of(4)..).unwrap_or_default();
        Some(request)
    })
}

fn first(bytes: &[u8]) -> Result<Option<Request<'_>>> {
    if bytes.len() < HEADER {
        return Ok(None);
    }
    let length = bytes.u32_at(0)? as usize;
    let (kind, flags, sequence) = (bytes.u16_at(4)?, bytes.u16_at(6)?, bytes.u32_at(8)?);
    let message = bytes.get(..length).filter(|message| message.len() >= HEADER);
    Ok(message.map(|bytes| Request { kind, flags, sequence, bytes }))
}

/// The attributes in these bytes: kind and data of each.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const KINDS: u16 = 0x3fff;
    core::iter::from_fn(move || {
        let (length, kind) = (usize::from(bytes.u16_at(0).ok()?), bytes.u16_at(2).ok()?);
        let data = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & KINDS, data))
    })
}

/// A message that is being written.
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A message that answers a request, to the socket with this port, with a fixed part after its
    /// header.
    pub(super) fn answer(request: &Request<'_>, port: u32, kind: u16, flags: u16, fixed: &[u8]) -> Message {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(request.sequence.to_le_bytes());
        bytes.extend(port.to_le_bytes());
        bytes.extend(fixed);
        Message(bytes).padded()
    }

    fn padded(mut self) -> Message {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Adds an attribute.
    pub(super) fn bytes(mut self, kind: u16, data: &[u8]) -> Message {
        self.0.extend((4 + data.len() as u16).to_le_bytes());
        self.0.extend(kind.to_le_bytes());
        self.0.extend(data);
        self.padded()
    }

    /// Adds an attribute that is a byte.
    pub(super) fn u8(self, kind: u16, value: u8) -> Message {
        self.bytes(kind, &[value])
    }

    /// Adds an attribute that is a word.
    pub(super) fn u32(self, kind: u16, value: u32) -> Message {
        self.bytes(kind, &value.to_le_bytes())
    }

    /// Adds an attribute that is a text, with a 0 at its end.
    pub(super) fn text(self, kind: u16, text: &str) -> Message {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// The bytes of the finished message.
    pub(super) fn done(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_and_read() {
        let request = Request { kind: 18, flags: 1, sequence: 7, bytes: &[0; HEADER] };
        let message = Message::answer(&request, 99, 16, MULTIPART, &[5; 6]).u32(1, 0x1234).text(3, "lo");
        let bytes = message.bytes(18 | 0x8000, &[5, 0, 1, 0, 9, 0, 0, 0]).u8(2, 7).done();
        assert_eq!(bytes.len() % 4, 0);
        let twice = [&bytes[..], &bytes[..]].concat();
        let read: Vec<_> = requests(&twice).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[1].kind, read[1].flags, read[1].sequence), (16, MULTIPART, 7));
        assert_eq!(read[0].attribute(8, 1), Some(&0x1234u32.to_le_bytes()[..]));
        assert_eq!(read[0].attribute(8, 3), Some(&b"lo\0"[..]));
        let inside: Vec<_> = attributes(read[0].attribute(8, 18).unwrap()).collect();
        assert_eq!(inside, [(1, &[9][..])]);
        assert_eq!(read[0].attribute(8, 4), None);
    }

    #[test]
    fn malformed_messages_end_the_list() {
        assert_eq!(requests(&[1; 15]).count(), 0);
        for length in [0u32, 15, 21] {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(requests(&bytes).count(), 0, "{length}");
        }
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[9, 0, 1, 0, 0, 0, 0, 0]).count(), 0);
    }
}
