//! Messages: tag, typed items, acceptor and buffer descriptors (ABI 8, X.2 rules 7.26-7.32).

use crate::{Fpage, Rights, bits};

/// Number of message registers.
pub const MESSAGE_REGISTERS: usize = 64;
/// Number of buffer registers.
pub const BUFFER_REGISTERS: usize = 33;
/// Message registers that travel in processor registers: MR0 ..= MR7.
pub const REGISTER_MESSAGE_REGISTERS: usize = 8;

/// MR0 of every message: bits 0..=5 u, 6..=11 t, 12 P, 13 R, 14 X, 15 E, 16..=63 label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct MessageTag(u64);

impl MessageTag {
    /// The empty message.
    pub const EMPTY: Self = Self(0);
    /// The tag after an error without a transfer: only E.
    pub const ERROR: Self = Self(Self::E);

    const P: u64 = 1 << 12;
    const R: u64 = 1 << 13;
    const X: u64 = 1 << 14;
    const E: u64 = 1 << 15;
    const FLAGS: u64 = 0xf000;

    /// Label (48 bits, higher bits are dropped), `untyped` (0..=63) and `typed` (0..=63) words, no
    /// flag.
    pub const fn new(label: u64, untyped: usize, typed: usize) -> Self {
        Self(label << 16 | (typed as u64 & 0x3f) << 6 | (untyped as u64 & 0x3f))
    }

    /// The tag with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// u: number of untyped words, 0..=63.
    pub const fn untyped(self) -> usize {
        bits(self.0, 0, 5) as usize
    }

    /// t: number of words of typed items, 0..=63.
    pub const fn typed(self) -> usize {
        bits(self.0, 6, 11) as usize
    }

    /// The 48-bit label.
    pub const fn label(self) -> u64 {
        self.0 >> 16
    }

    /// The label as a signed number, as the kernel protocols are numbered (with their low four
    /// bits).
    pub const fn signed_label(self) -> i64 {
        self.0 as i64 >> 16
    }

    /// Whether tag, untyped and typed words fit the message registers (X.2 rule 7.2 b).
    pub const fn is_well_formed(self) -> bool {
        self.untyped() + self.typed() < MESSAGE_REGISTERS
    }

    /// Index of the first message register after the message.
    pub const fn end(self) -> usize {
        1 + self.untyped() + self.typed()
    }

    /// P: propagated.
    pub const fn is_propagated(self) -> bool {
        self.0 & Self::P != 0
    }

    /// R: redirected.
    pub const fn is_redirected(self) -> bool {
        self.0 & Self::R != 0
    }

    /// X: from another processor.
    pub const fn is_cross_processor(self) -> bool {
        self.0 & Self::X != 0
    }

    /// E: the call failed, the error word says how.
    pub const fn is_error(self) -> bool {
        self.0 & Self::E != 0
    }

    /// This tag with all four flags off.
    pub const fn without_flags(self) -> Self {
        Self(self.0 & !Self::FLAGS)
    }

    /// This tag with P as given.
    pub const fn with_propagated(self, on: bool) -> Self {
        self.with(Self::P, on)
    }

    /// This tag with R as given.
    pub const fn with_redirected(self, on: bool) -> Self {
        self.with(Self::R, on)
    }

    /// This tag with X as given.
    pub const fn with_cross_processor(self, on: bool) -> Self {
        self.with(Self::X, on)
    }

    /// This tag with E as given.
    pub const fn with_error(self, on: bool) -> Self {
        self.with(Self::E, on)
    }

    /// This tag with another label.
    pub const fn with_label(self, label: u64) -> Self {
        Self(self.0 & 0xffff | label << 16)
    }

    /// This tag with other numbers of words.
    pub const fn with_words(self, untyped: usize, typed: usize) -> Self {
        Self(self.0 & !0xfff | Self::new(0, untyped, typed).0)
    }

    const fn with(self, flag: u64, on: bool) -> Self {
        Self(if on { self.0 | flag } else { self.0 & !flag })
    }
}

impl core::fmt::Debug for MessageTag {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "label {:#x} u={} t={}", self.label(), self.untyped(), self.typed())?;
        for (flag, letter) in [(Self::P, " P"), (Self::R, " R"), (Self::X, " X"), (Self::E, " E")] {
            if self.0 & flag != 0 {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// Bit 0 of an item's or buffer's first word: another one follows. The kernel ignores it in sent
/// items and writes it in received ones (X.2 rule 7.26); in buffer registers it chains buffers.
pub const CONTINUES: u64 = 1;

/// What the first word of a typed item says that the item is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypedItemKind {
    /// A map item: two words.
    Map,
    /// A grant item: two words.
    Grant,
    /// A control-transfer item (not part of this interface: message overflow).
    ControlTransfer,
    /// A string item: descriptor and pointers.
    String(StringDescriptor),
    /// The type that nothing has: message overflow.
    Unknown,
}

impl TypedItemKind {
    /// The kind in bits 1..=3 of `first_word`.
    pub const fn of(first_word: u64) -> Self {
        match bits(first_word, 1, 3) {
            0..=3 => Self::String(StringDescriptor(first_word)),
            4 => Self::Map,
            5 => Self::Grant,
            6 => Self::ControlTransfer,
            _ => Self::Unknown,
        }
    }
}

/// A map or grant item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapItem {
    /// The pages to send, with the rights offered.
    pub fpage: Fpage,
    /// Selects the place when send fpage and receive window differ in size; a multiple of 1024.
    pub send_base: u64,
    /// Whether the sender gives its own mapping away.
    pub grant: bool,
}

impl MapItem {
    /// A map item.
    pub const fn map(fpage: Fpage, send_base: u64) -> Self {
        Self { fpage, send_base, grant: false }
    }

    /// A grant item.
    pub const fn grant(fpage: Fpage, send_base: u64) -> Self {
        Self { fpage, send_base, grant: true }
    }

    /// The item in two message words, or nothing if the first is not that of a map or grant item.
    pub const fn from_words(words: [u64; 2]) -> Option<Self> {
        let grant = match TypedItemKind::of(words[0]) {
            TypedItemKind::Map => false,
            TypedItemKind::Grant => true,
            _ => return None,
        };
        Some(Self { fpage: Fpage::from_raw(words[1]), send_base: words[0] & !0x3ff, grant })
    }

    /// The item as two message words, `continues` being bit C.
    pub const fn to_words(self, continues: bool) -> [u64; 2] {
        let kind = if self.grant { 0xa } else { 0x8 };
        [self.send_base & !0x3ff | kind | continues as u64, self.fpage.raw()]
    }

    /// Rights offered.
    pub const fn rights(self) -> Rights {
        self.fpage.rights()
    }
}

/// First word of a string item or of a receive buffer: bit 0 C, 1..=2 cache hints, 4..=8 number of
/// pointers - 1, bit 9 the string goes on in another descriptor, 10..=63 length of each substring
/// in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct StringDescriptor(u64);

impl StringDescriptor {
    /// Longest substring: 2^54 - 1 bytes.
    pub const MAX_LENGTH: u64 = (1 << 54) - 1;
    /// The maximum number of substrings of one descriptor.
    pub const MAX_SUBSTRINGS: usize = 32;

    /// `substrings` (1..=32) pieces of `length` bytes each; `compound_continues`: another
    /// descriptor of the same string follows. Out-of-range values are truncated to their fields.
    pub const fn new(length: u64, substrings: usize, compound_continues: bool) -> Self {
        Self(
            length << 10 | (compound_continues as u64) << 9 | (substrings.wrapping_sub(1) as u64 & 0x1f) << 4,
        )
    }

    /// The descriptor with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Number of pointer words that follow, 1..=32.
    pub const fn substrings(self) -> usize {
        bits(self.0, 4, 8) as usize + 1
    }

    /// Bytes in each substring.
    pub const fn length(self) -> u64 {
        self.0 >> 10
    }

    /// c: the string goes on in another descriptor after this one's pointers.
    pub const fn compound_continues(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// C: another item or buffer follows this string.
    pub const fn continues(self) -> bool {
        self.0 & CONTINUES != 0
    }

    /// This descriptor with C as given.
    pub const fn with_continues(self, continues: bool) -> Self {
        Self(self.0 & !CONTINUES | continues as u64)
    }
}

/// BR0: bit 0 accept strings, bit 2 accept notifications (K15), bits 4..=63 receive window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Acceptor(u64);

impl Acceptor {
    /// Untyped words only.
    pub const UNTYPED_WORDS: Self = Self(0);
    /// Map and grant items anywhere in the address space.
    pub const COMPLETE: Self = Self(0x10);

    const STRINGS: u64 = 1;
    const NOTIFICATIONS: u64 = 1 << 2;

    /// Map and grant items within `window` (an IO fpage accepts ports), and strings if `strings`.
    pub const fn new(window: Fpage, strings: bool) -> Self {
        Self(window.raw() & !0xf | strings as u64)
    }

    /// The acceptor with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The receive window, without rights.
    pub const fn window(self) -> Fpage {
        Fpage::from_raw(self.0 & !0xf)
    }

    /// Whether string items are accepted into the buffers of BR1 and on.
    pub const fn accepts_strings(self) -> bool {
        self.0 & Self::STRINGS != 0
    }

    /// Whether a receive from anythread may be completed by a notification (K15).
    pub const fn accepts_notifications(self) -> bool {
        self.0 & Self::NOTIFICATIONS != 0
    }

    /// This acceptor, but it also accepts notifications.
    pub const fn with_notifications(self) -> Self {
        Self(self.0 | Self::NOTIFICATIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: ABI 8.
    #[test]
    fn tag_fields() {
        let tag = MessageTag::new(0xffff_ffff_ffe2, 2, 0);
        assert_eq!(tag.raw(), 0xffff_ffff_ffe2_0002);
        assert_eq!((tag.label(), tag.signed_label()), (0xffff_ffff_ffe2, -30));
        let tag = MessageTag::new(7, 3, 4).with_propagated(true).with_error(true);
        assert_eq!((tag.untyped(), tag.typed(), tag.end()), (3, 4, 8));
        assert!(tag.is_propagated() && tag.is_error() && !tag.is_redirected() && !tag.is_cross_processor());
        assert_eq!(tag.without_flags(), MessageTag::new(7, 3, 4));
        assert_eq!(tag.with_words(1, 2).with_label(9).without_flags(), MessageTag::new(9, 1, 2));
        assert_eq!(MessageTag::ERROR.raw(), 0x8000);
    }

    #[test]
    fn tag_well_formed_up_to_63_words() {
        assert!(MessageTag::new(0, 63, 0).is_well_formed());
        assert!(MessageTag::new(0, 0, 63).is_well_formed());
        assert!(!MessageTag::new(0, 63, 1).is_well_formed());
        assert!(!MessageTag::new(0, 63, 63).is_well_formed());
    }

    /// Rules: ABI 8.
    #[test]
    fn map_items() {
        let fpage = Fpage::memory(0x4000_0000, 12).with_rights(Rights::ALL);
        let item = MapItem::map(fpage, 0x7fff_3000);
        assert_eq!(item.to_words(false), [0x7fff_3008, 0x4000_00c7]);
        assert_eq!(MapItem::grant(fpage, 0x7fff_3000).to_words(true)[0], 0x7fff_300b);
        assert_eq!(MapItem::from_words(item.to_words(true)), Some(item));
        assert_eq!(MapItem::from_words([0, 0]), None);
        assert_eq!(TypedItemKind::of(0xc), TypedItemKind::ControlTransfer);
        assert_eq!(TypedItemKind::of(0xe), TypedItemKind::Unknown);
    }

    /// Rules: ABI 8.
    #[test]
    fn string_descriptors() {
        let string = StringDescriptor::new(256, 1, false);
        assert_eq!(string.raw(), 256 << 10);
        let string = StringDescriptor::new(StringDescriptor::MAX_LENGTH, 32, true).with_continues(true);
        assert_eq!((string.length(), string.substrings()), ((1 << 54) - 1, 32));
        assert!(string.compound_continues() && string.continues());
        for hints in 0..4 {
            assert!(matches!(TypedItemKind::of(string.raw() | hints << 1), TypedItemKind::String(_)));
        }
    }

    /// Rules: ABI 8.
    #[test]
    fn acceptors() {
        assert_eq!(Acceptor::COMPLETE.window().region(), Some(crate::Region::COMPLETE));
        let acceptor = Acceptor::new(Fpage::memory(0x8000_0000, 20).with_rights(Rights::ALL), true);
        assert_eq!(acceptor.raw(), 0x8000_0141);
        assert!(acceptor.accepts_strings() && !acceptor.accepts_notifications());
        assert!(acceptor.with_notifications().accepts_notifications());
        assert_eq!(acceptor.with_notifications().window(), acceptor.window());
    }
}
