//! Thread ids (ABI 6, X.2 rules 5.1-5.2).

/// A thread id as it stands in registers and messages: global, local, or one of the three special
/// values.
///
/// A *global* id has the thread number in bits 32..=63 and the version in bits 0..=31; bits 0..=5
/// of the version are never all zero. A *local* id is the address of MR0 in the thread's UTCB and
/// has bits 0..=5 zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct ThreadId(u64);

impl ThreadId {
    /// No thread: "no send phase", "no receive phase", "unchanged", "delete", depending on the
    /// call.
    pub const NIL: Self = Self(0);
    /// Any thread, as FromSpecifier.
    pub const ANY: Self = Self(u64::MAX);
    /// Any thread of the own address space, as FromSpecifier.
    pub const ANY_LOCAL: Self = Self(!0x3f);

    /// The id with this raw value; every word is an id of some kind (see [`Self::is_global`],
    /// [`Self::is_local`]).
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The global id of `number` with `version`, or nothing when bits 0..=5 of the version are all
    /// zero: such an id would look local (X.2 rule 5.1).
    pub const fn global(number: u32, version: u32) -> Option<Self> {
        if version & 0x3f == 0 { None } else { Some(Self((number as u64) << 32 | version as u64)) }
    }

    /// The id of interrupt `line` (X.2 rule 5.19: version 1).
    pub const fn interrupt(line: u32) -> Self {
        Self((line as u64) << 32 | 1)
    }

    /// The local id for the UTCB whose MR0 is at `utcb_pointer`; the low six bits are ignored.
    pub const fn local(utcb_pointer: u64) -> Self {
        Self(utcb_pointer & !0x3f)
    }

    /// Whether this is nilthread.
    pub const fn is_nil(self) -> bool {
        self.0 == 0
    }

    /// Whether this is anythread.
    pub const fn is_any(self) -> bool {
        self.0 == u64::MAX
    }

    /// Whether this is anylocalthread.
    pub const fn is_any_local(self) -> bool {
        self.0 == Self::ANY_LOCAL.0
    }

    /// Whether this has the form of a global id (nilthread and the two "any" values have not).
    pub const fn is_global(self) -> bool {
        self.0 & 0x3f != 0 && !self.is_any()
    }

    /// Whether this has the form of a global id, or is anythread: its number is no thread's.
    pub const fn has_version(self) -> bool {
        self.0 & 0x3f != 0
    }

    /// Whether this has the form of a local id (nilthread and the two "any" values have not).
    pub const fn is_local(self) -> bool {
        self.0 & 0x3f == 0 && !self.is_nil() && !self.is_any_local()
    }

    /// Thread number of a global id: bits 32..=63 (unchecked: numbers of 2^t and above exist in no
    /// kernel).
    pub const fn number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Version of a global id: bits 0..=31.
    pub const fn version(self) -> u32 {
        self.0 as u32
    }

    /// Address of MR0 that a local id stands for.
    pub const fn utcb_pointer(self) -> u64 {
        self.0
    }
}

impl core::fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_nil() {
            f.write_str("nilthread")
        } else if self.is_any() {
            f.write_str("anythread")
        } else if self.is_any_local() {
            f.write_str("anylocalthread")
        } else if self.is_local() {
            write!(f, "local:{:#x}", self.0)
        } else {
            write!(f, "{}.{}", self.number(), self.version())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_ids_are_neither_global_nor_local() {
        for id in [ThreadId::NIL, ThreadId::ANY, ThreadId::ANY_LOCAL] {
            assert!(!id.is_global() && !id.is_local(), "{id:?}");
        }
        assert_eq!(ThreadId::ANY_LOCAL.raw(), 0xffff_ffff_ffff_ffc0);
    }

    /// Rules: 5.1.
    #[test]
    fn global_ids_keep_number_and_version() {
        let id = ThreadId::global(0x3a, 1).unwrap();
        assert!(id.is_global() && !id.is_local());
        assert_eq!((id.raw(), id.number(), id.version()), (0x3a_0000_0001, 0x3a, 1));
        assert_eq!(ThreadId::global(5, 0x40), None);
        assert_eq!(ThreadId::global(5, 0), None);
        assert_eq!(ThreadId::interrupt(4), ThreadId::global(4, 1).unwrap());
    }

    /// Rules: 5.2.
    #[test]
    fn local_ids_are_utcb_pointers() {
        let id = ThreadId::local(0xbf00_0200);
        assert!(id.is_local() && !id.is_global());
        assert_eq!(id.utcb_pointer(), 0xbf00_0200);
    }
}
