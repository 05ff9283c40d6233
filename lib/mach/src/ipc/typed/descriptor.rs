//! The type descriptors of typed messages.

use crate::ipc::{Disposition, MsgErrorKind};

/// The size of a descriptor, and the multiple to which data is padded, in bytes.
pub(super) const DESCRIPTOR: usize = 8;
/// The size in bytes of a right in line, whose name is in the lower half, and of an address.
pub(super) const SLOT: usize = 8;
/// The size in bytes of a name in an array out of line.
pub(super) const NAME: usize = 4;

/// The type of a name that carries no right.
pub(super) const PORT_NAME: u32 = 15;
/// The type of 32-bit integers.
pub(super) const INTEGER_32: u32 = 2;

const IN_LINE: u32 = 1 << 29;
const LONG_FORM: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 31;
const UNUSED: u32 = 0x1f << 24;

/// The fields of a descriptor. The long form has the layout of the short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    bits: u32,
    /// The number of elements.
    pub(super) number: u32,
}

impl Descriptor {
    /// The descriptor of `number` elements in line.
    pub(super) fn in_line(kind: u32, bits: u32, number: u32) -> Self {
        Self { bits: kind | bits << 8 | IN_LINE, number }
    }

    pub(super) fn from_bytes(bytes: [u8; DESCRIPTOR]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self { bits: word as u32, number: (word >> 32) as u32 }
    }

    pub(super) fn to_bytes(self) -> [u8; DESCRIPTOR] {
        (u64::from(self.bits) | u64::from(self.number) << 32).to_le_bytes()
    }

    /// The disposition, if the elements are rights.
    pub(super) fn disposition(self) -> Option<Disposition> {
        Disposition::from_number(self.bits & 0xff)
    }

    pub(super) fn is_in_line(self) -> bool {
        self.bits & IN_LINE != 0
    }

    /// Whether the sender gives up the memory out of line.
    pub(super) fn deallocates(self) -> bool {
        self.bits & DEALLOCATE != 0
    }

    /// The size in bytes of all elements in the sender's memory.
    pub(super) fn length(self) -> u64 {
        let bits = u64::from(self.bits >> 8 & 0xffff);
        match (self.disposition(), self.is_in_line()) {
            (Some(_), true) => u64::from(self.number) * SLOT as u64,
            (Some(_), false) => u64::from(self.number) * NAME as u64,
            (None, _) => (bits * u64::from(self.number)).div_ceil(8),
        }
    }

    /// Checks the descriptor of a message to be sent.
    ///
    /// # Errors
    /// `SendInvalidType`: an unused bit is set, rights have another size than 64 bits, or data in
    /// line is to be deallocated.
    pub(super) fn check(self) -> Result<(), MsgErrorKind> {
        let bits = self.bits >> 8 & 0xffff;
        let is_bad = self.bits & UNUSED != 0
            || self.disposition().is_some() && bits != 8 * SLOT as u32
            || self.is_in_line() && self.deallocates();
        if is_bad { Err(MsgErrorKind::SendInvalidType) } else { Ok(()) }
    }

    /// The descriptor as the receiver gets it: with the kind of right that arrives, and the flag to
    /// deallocate set for memory out of line, which the receiver owns and gives up if it sends it
    /// on.
    pub(super) fn received(self) -> Self {
        let kind = match self.disposition() {
            Some(disposition) => disposition.received(),
            None => self.bits & 0xff,
        };
        let owned = if self.is_in_line() { 0 } else { DEALLOCATE };
        Self { bits: self.bits & (0xffff << 8 | IN_LINE | LONG_FORM) | owned | kind, ..self }
    }
}
