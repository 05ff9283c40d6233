//! The type descriptors of the typed dialect.

use crate::format::{get, put};
use crate::{Format, is_right};

/// The flag of a type descriptor that says that the data is in the message.
pub const INLINE: u32 = 1;
/// The flag of a type descriptor that says that it has the long form.
pub const LONG: u32 = 2;
/// The flag of a type descriptor that says that the sender gives up its copy of the memory.
pub const DEALLOCATE: u32 = 4;

/// A type descriptor of the typed dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The number of the type.
    pub name: u32,
    /// The size of an element in bits.
    pub bits: u32,
    /// The number of elements.
    pub number: u32,
    /// A sum of [`INLINE`], [`LONG`] and [`DEALLOCATE`].
    pub flags: u32,
}

impl Descriptor {
    /// Whether the data is in the message.
    pub fn is_inline(&self) -> bool {
        self.flags & INLINE != 0
    }

    /// Whether a message with this item has rights or memory out of line.
    pub fn is_complex(&self) -> bool {
        is_right(self.name) || !self.is_inline()
    }

    /// The size in bytes of the data in the message, without padding.
    fn data(&self, format: &Format) -> usize {
        match (self.is_inline(), is_right(self.name)) {
            (false, _) => format.pointer,
            (true, true) => self.number as usize * format.port,
            (true, false) => (u64::from(self.bits) * u64::from(self.number)).div_ceil(8) as usize,
        }
    }

    /// Reads a descriptor at the offset `at`. Returns it with its size in bytes. `None`: the bytes
    /// end before.
    #[inline]
    pub(crate) fn read(format: &Format, bytes: &[u8], at: usize) -> Option<(Self, usize)> {
        if format.descriptor == 8 {
            let both = get(bytes, at, 8)?;
            let (word, number) = (both as u32, (both >> 32) as u32);
            // The bits from 29 on are `INLINE`, `LONG` and `DEALLOCATE`.
            return Some((
                Self { name: word & 0xff, bits: word >> 8 & 0xffff, number, flags: word >> 29 },
                8,
            ));
        }
        let word = get(bytes, at, 4)? as u32;
        let flag = |bit: u32, flag: u32| if word >> bit & 1 != 0 { flag } else { 0 };
        let flags = flag(28, INLINE) | flag(29, LONG) | flag(30, DEALLOCATE);
        if flags & LONG != 0 {
            let type_and_bits = get(bytes, at + 4, 4)? as u32;
            let number = get(bytes, at + 8, 4)? as u32;
            return Some((
                Self { name: type_and_bits & 0xffff, bits: type_and_bits >> 16, number, flags },
                12,
            ));
        }
        let (name, bits, number) = (word & 0xff, word >> 8 & 0xff, word >> 16 & 0xfff);
        Some((Self { name, bits, number, flags }, 4))
    }

    /// Writes the descriptor at the offset `at`. Returns its size in bytes.
    #[inline]
    pub(crate) fn write(&self, format: &Format, bytes: &mut [u8], at: usize) -> usize {
        let Descriptor { name, bits, number, flags } = *self;
        let flag = |flag: u32, shift: u32| u64::from(flags & flag != 0) << shift;
        if format.descriptor == 8 {
            let flags = flag(INLINE, 29) | flag(LONG, 30) | flag(DEALLOCATE, 31);
            let word = u64::from(name & 0xff) | u64::from(bits & 0xffff) << 8 | flags;
            put(bytes, at, word | u64::from(number) << 32, 8);
            return 8;
        }
        let common = flag(INLINE, 28) | flag(LONG, 29) | flag(DEALLOCATE, 30);
        if flags & LONG != 0 {
            put(bytes, at, common, 4);
            put(bytes, at + 4, u64::from(name & 0xffff) | u64::from(bits) << 16, 4);
            put(bytes, at + 8, u64::from(number), 4);
            return 12;
        }
        let short = u64::from(name & 0xff) | u64::from(bits & 0xff) << 8 | u64::from(number & 0xfff) << 16;
        put(bytes, at, short | common, 4);
        4
    }
}

/// Calls `with` for each item in the body of a typed message: with the descriptor, which it may
/// change as long as the size of the data stays, the body, and the offset of the data in it.
/// `None`: the body ends in the middle of an item.
pub fn for_each_item(
    format: &Format,
    body: &mut [u8],
    mut with: impl FnMut(&mut Descriptor, &mut [u8], usize),
) -> Option<()> {
    let mut at = 0;
    while at < body.len() {
        let (found, size) = Descriptor::read(format, body, at)?;
        let data = (at + size).next_multiple_of(format.word);
        let end = data.checked_add(found.data(format))?;
        if end > body.len() {
            return None;
        }
        let mut changed = found;
        with(&mut changed, body, data);
        if changed != found {
            changed.write(format, body, at);
        }
        at = end.next_multiple_of(format.word);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_and_their_descriptors_changed() {
        for format in [&Format::MACH64, &Format::MACH64_2022, &Format::MACH32] {
            let mut body = [0; 96];
            let mut at = 0;
            let pad = |at: usize| at.next_multiple_of(format.word);
            let items = [
                Descriptor { name: 2, bits: 32, number: 3, flags: INLINE },
                Descriptor { name: 19, bits: 8 * format.port as u32, number: 1, flags: INLINE },
                Descriptor { name: 9, bits: 8, number: 100, flags: LONG },
            ];
            for item in items {
                at = pad(at + item.write(format, &mut body, at) + item.data(format));
            }
            let mut found = Vec::new();
            for_each_item(format, &mut body[..at], |item, _, place| {
                found.push((*item, place));
                if item.name == 19 {
                    item.name = 17;
                }
            })
            .unwrap();
            assert_eq!(found.iter().map(|(item, _)| *item).collect::<Vec<_>>(), items);
            let mut names = Vec::new();
            for_each_item(format, &mut body[..at], |item, _, _| names.push(item.name)).unwrap();
            assert_eq!(names, [2, 17, 9]);
            assert_eq!(for_each_item(format, &mut body[..at - 1], |_, _, _| ()), None);
        }
    }
}
