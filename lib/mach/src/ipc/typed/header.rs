//! The header of a message.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | bits: dispositions of remote (0-7) and local port (8-15), circular (30), complex (31) |
//! | 4..8 | size of the message |
//! | 8..16 | remote port: the destination when it is sent, the reply port when it is received |
//! | 16..24 | local port: the reply port when it is sent, the port that received it when it is received |
//! | 24..28 | number of the message at its port |
//! | 28..32 | id |

use crate::ipc::{Disposition, MsgErrorKind, Name};

/// The size of a header in bytes.
pub(super) const HEADER: usize = 32;
/// The bit that says that the body has rights or memory out of line.
pub(super) const COMPLEX: u32 = 1 << 31;
/// The bit that says that the message is in a cycle. A header to be sent may not have it.
const CIRCULAR: u32 = 1 << 30;
/// The disposition of the local port that says that the field has a protected payload.
pub(super) const PROTECTED_PAYLOAD: u32 = 23;

/// The fields of a header. The field of a port is 64 bits wide, because it can hold a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) bits: u32,
    pub(super) size: u32,
    pub(super) remote: u64,
    pub(super) local: u64,
    pub(super) sequence: u32,
    pub(super) id: i32,
}

/// The destination, and the reply port, which has no disposition if the header names none.
pub(super) type HeaderRights = ((Name, Disposition), (Name, Option<Disposition>));

fn word(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Header {
    #[inline]
    pub(super) fn from_bytes(bytes: &[u8; HEADER]) -> Self {
        // Names have 32 bits, so the upper halves of the ports' fields of 8 bytes are not read.
        Self {
            bits: word(bytes, 0),
            size: word(bytes, 4),
            remote: u64::from(word(bytes, 8)),
            local: u64::from(word(bytes, 16)),
            sequence: word(bytes, 24),
            id: word(bytes, 28) as i32,
        }
    }

    #[inline]
    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.bits.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.remote.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.local.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[28..].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }

    /// The rights that the header of a message to be sent names: destination and reply port.
    ///
    /// # Errors
    /// `SendInvalidHeader`: the bits or the dispositions are not valid. `SendInvalidDest`: the
    /// header names no destination.
    #[inline]
    pub(super) fn rights(&self) -> Result<HeaderRights, MsgErrorKind> {
        if self.bits & !(COMPLEX | CIRCULAR | 0xffff) != 0 {
            return Err(MsgErrorKind::SendInvalidHeader);
        }
        // A message cannot be sent by a receive right, and no reply by one.
        let sends = |number| {
            let disposition = Disposition::from_number(number);
            disposition.filter(|disposition| *disposition != Disposition::MoveReceive)
        };
        let (remote, local) = (Name(self.remote as u32), Name(self.local as u32));
        let destination = sends(self.bits & 0xff).ok_or(MsgErrorKind::SendInvalidHeader)?;
        let reply = match self.bits >> 8 & 0xff {
            0 if local == Name::NULL => None,
            number => Some(sends(number).ok_or(MsgErrorKind::SendInvalidHeader)?),
        };
        if !remote.is_valid() {
            return Err(MsgErrorKind::SendInvalidDest);
        }
        Ok(((remote, destination), (local, reply)))
    }

    pub(super) fn is_complex(&self) -> bool {
        self.bits & COMPLEX != 0
    }
}
