//! Reading the items of a message in their order. Methods return `None` if the next item is not
//! what the interface says.

use direct::Element;

use crate::format::{COMPLEX, get};
use crate::{Array, DEALLOCATE, Descriptor, Format, Header, INLINE, LONG, Memory, Trailer, is_right};

/// How many elements a type descriptor may say that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Exactly this number of elements.
    Exactly(u32),
    /// At most this number of elements if the data is in the message, and any number out of line.
    UpTo(u32),
    /// Any number of elements.
    Any,
}

/// What a type descriptor must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The type; `None`: the sender chooses it.
    pub name: Option<u32>,
    /// The size of an element in bits.
    pub bits: u32,
    /// The number of elements.
    pub number: Number,
    /// Whether the data is in the message; `None`: it may also be out of line.
    pub inline: Option<bool>,
    /// Whether the descriptor has the long form.
    pub long: bool,
}

impl Expected {
    /// The only descriptor that is expected, and its word of 8 bytes, if it is one of data in the
    /// message that has no rights.
    #[inline]
    fn only_value(&self) -> Option<(Descriptor, u64)> {
        let Self { name: Some(name), bits, number: Number::Exactly(number), inline: Some(true), long: false } =
            *self
        else {
            return None;
        };
        let word = u64::from(name) | u64::from(bits) << 8 | u64::from(INLINE) << 29 | u64::from(number) << 32;
        let has_room = name <= 0xff && bits <= 0xffff;
        (has_room && !is_right(name)).then_some((Descriptor { name, bits, number, flags: INLINE }, word))
    }
}

/// Memory out of line, as a descriptor of the untyped dialect describes it.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    memory: Memory,
    /// The number of bytes, or of rights if the memory holds rights.
    size: u32,
    /// The type of the rights, if the memory holds rights.
    pub disposition: u32,
}

impl Described {
    /// The memory, if its size is `count` elements of `bytes` bytes each (of 1 for rights).
    #[inline]
    pub fn counted(self, count: u32, bytes: u32) -> Option<Memory> {
        (count.checked_mul(bytes)? == self.size).then_some(Memory { count, ..self.memory })
    }
}

/// How many bytes of a string come before the first zero.
#[inline(never)]
fn length(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == 0).unwrap_or(text.len())
}

/// A position in a message from which items are read.
#[derive(Debug)]
pub struct Reader<'a> {
    format: &'static Format,
    /// The message and its trailer.
    bytes: &'a [u8],
    at: usize,
    end: usize,
    complex: bool,
}

impl<'a> Reader<'a> {
    /// Begins to read the items after a header. `complex` says whether the message must hold rights
    /// or memory; `None`: that depends on its items.
    pub fn new(
        format: &'static Format,
        header: &Header,
        bytes: &'a [u8],
        complex: Option<bool>,
    ) -> Option<Self> {
        let is_complex = header.bits & COMPLEX != 0;
        if complex.is_some_and(|complex| complex != is_complex) {
            return None;
        }
        (header.size <= bytes.len()).then_some(Self {
            format,
            bytes,
            at: format.header,
            end: header.size,
            complex: is_complex,
        })
    }

    #[inline]
    fn number_of(&mut self, size: usize) -> Option<u64> {
        let at = self.at;
        self.at += size;
        if self.at > self.end { None } else { get(self.bytes, at, size) }
    }

    /// The next `size` bytes. The padding after them is skipped.
    #[inline]
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let data = self.bytes.get(self.at..self.at.checked_add(size)?)?;
        self.at = (self.at + size).next_multiple_of(self.format.word);
        (self.at <= self.end).then_some(data)
    }

    /// The next number, of `size` bytes, with its padding.
    pub fn number(&mut self, size: usize) -> Option<u64> {
        get(self.take(size)?, 0, size)
    }

    /// Typed dialect: the next number, of `size` bytes, after the descriptor that is expected.
    pub fn value(&mut self, expected: &Expected, size: usize) -> Option<u64> {
        self.described(expected)?;
        self.number(size)
    }

    /// The trailer after the message, if there is one.
    pub fn trailer(&self) -> Option<Trailer<'a>> {
        Trailer::of(self.bytes.get(self.end.next_multiple_of(4)..)?)
    }

    /// The next `N` elements, with their padding.
    #[inline]
    pub fn elements<T: Element, const N: usize>(&mut self) -> Option<[T; N]> {
        let data = self.take(N * T::SIZE)?;
        let mut elements = [T::default(); N];
        for (element, bytes) in elements.iter_mut().zip(data.chunks_exact(T::SIZE)) {
            *element = T::from_word(get(bytes, 0, T::SIZE)?);
        }
        Some(elements)
    }

    /// The next `count` elements, with their padding. `count` must be at most `N`. `None` also if
    /// there is no memory for them.
    #[inline]
    pub fn array<T: Element, const N: usize>(&mut self, count: u32) -> Option<Array<T, N>> {
        let count = usize::try_from(count).ok().filter(|&count| count <= N)?;
        let data = self.take(count * T::SIZE)?;
        Array::from_fn(count, |at| T::from_word(get(data, at * T::SIZE, T::SIZE).unwrap_or(0)))
    }

    /// A string in the next `size` bytes: the bytes before the first zero, or all bytes if none is
    /// zero.
    #[inline]
    pub fn text<const N: usize>(&mut self, size: u32) -> Option<Array<u8, N>> {
        let size = usize::try_from(size).ok().filter(|&size| size <= N)?;
        let data = self.take(size)?;
        Array::new(data.get(..length(data))?)
    }

    /// Typed dialect: the type descriptor that is expected.
    #[inline(always)]
    pub fn expect(&mut self, expected: &Expected) -> Option<()> {
        self.described(expected).map(|_| ())
    }

    /// Typed dialect: the next type descriptor, if it is the one that is expected. It is not
    /// inlined, because a stub has one call for each item.
    #[inline(never)]
    pub fn described(&mut self, expected: &Expected) -> Option<Descriptor> {
        // Most items are numbers, whose descriptors can have one value only.
        if let Some((descriptor, word)) = expected.only_value()
            && self.format.descriptor == 8
            && self.at + 8 <= self.end
            && get(self.bytes, self.at, 8) == Some(word)
        {
            self.at += 8;
            return Some(descriptor);
        }
        self.described_otherwise(expected)
    }

    /// What [`described`](Self::described) does, for all descriptors.
    fn described_otherwise(&mut self, expected: &Expected) -> Option<Descriptor> {
        let (found, size) = Descriptor::read(self.format, self.bytes.get(..self.end)?, self.at)?;
        self.at += size;
        let is_inline = found.is_inline();
        // The sender may keep or give up its own memory out of line, but not data in the message.
        let kept = found.flags & DEALLOCATE == 0 || expected.inline != Some(true);
        let right_number = match expected.number {
            Number::Exactly(number) => found.number == number,
            Number::UpTo(most) => found.number <= most || !is_inline,
            Number::Any => true,
        };
        let is_expected = expected.name.is_none_or(|name| name == found.name)
            && found.bits == expected.bits
            && right_number
            && expected.inline.is_none_or(|inline| inline == is_inline)
            && expected.long == (found.flags & LONG != 0)
            && kept
            && (self.complex || !found.is_complex());
        is_expected.then_some(found)
    }

    /// Typed dialect: the address of memory out of line, whose descriptor was read. The descriptor
    /// counts `multiplier` of its elements for each element of the memory.
    pub fn pointer(&mut self, descriptor: Descriptor, multiplier: u32) -> Option<Memory> {
        let address = self.number_of(self.format.pointer)?;
        self.at = self.at.next_multiple_of(self.format.word);
        let deallocate = descriptor.flags & DEALLOCATE != 0;
        Some(Memory { address, count: descriptor.number.checked_div(multiplier)?, deallocate })
    }

    /// Typed dialect: a 32-bit integer and its descriptor.
    pub fn integer(&mut self) -> Option<u32> {
        let number = Number::Exactly(1);
        let expected = Expected { name: Some(2), bits: 32, number, inline: Some(true), long: false };
        self.value(&expected, 4).map(|integer| integer as u32)
    }

    /// Untyped dialect: the number of descriptors, which must be this one.
    #[inline]
    pub fn body(&mut self, descriptors: u32) -> Option<()> {
        (self.number_of(4)? == u64::from(descriptors)).then_some(())
    }

    /// Untyped dialect: a right and its type. With a disposition, that must be the type.
    #[inline]
    pub fn right(&mut self, disposition: Option<u32>) -> Option<(u32, u32)> {
        let name = self.number_of(8)? as u32;
        let word = self.number_of(4)? as u32;
        let found = word >> 16 & 0xff;
        (word >> 24 == 0 && disposition.is_none_or(|expected| expected == found)).then_some((name, found))
    }

    /// Untyped dialect: `N` rights, which all have one type. With a disposition, that must be the
    /// type.
    pub fn rights<const N: usize>(&mut self, disposition: Option<u32>) -> Option<([u32; N], u32)> {
        let (mut names, mut found) = ([0; N], disposition);
        for name in &mut names {
            let (other, kind) = self.right(found)?;
            (*name, found) = (other, Some(kind));
        }
        Some((names, found.unwrap_or(0)))
    }

    /// Untyped dialect: memory out of line. `None` for `rights` means plain memory; otherwise the
    /// memory holds rights, of the given type or of any type.
    pub fn memory(&mut self, rights: Option<Option<u32>>) -> Option<Described> {
        let address = self.number_of(self.format.pointer)?;
        let (first, second) = (self.number_of(4)? as u32, self.number_of(4)? as u32);
        let (word, size) = if self.format.pointer == 8 { (first, second) } else { (second, first) };
        let disposition = word >> 16 & 0xff;
        let is_expected = word >> 24 == u32::from(rights.is_some()) + 1
            && rights.flatten().is_none_or(|expected| expected == disposition);
        let memory = Memory { address, count: 0, deallocate: word & 0xff != 0 };
        is_expected.then_some(Described { memory, size, disposition })
    }

    /// Untyped dialect: skips the representation of numbers, which is not checked.
    #[inline]
    pub fn representation(&mut self) -> Option<()> {
        self.number_of(8).map(|_| ())
    }

    /// Untyped dialect: a 32-bit integer.
    #[inline]
    pub fn word(&mut self) -> Option<u32> {
        Some(self.number_of(4)? as u32)
    }

    /// Checks that the message has no bytes after the items that were read.
    #[inline]
    pub fn finish(self) -> Option<()> {
        (self.at == self.end).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use std::vec;

    #[test]
    fn a_descriptor_that_can_have_one_value_only_is_checked_as_all_others_are() {
        let mut random = 1u64;
        let mut pick = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % most
        };
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let format = [&Format::MACH64, &Format::MACH64_2022, &Format::MACH32][pick(3) as usize];
            let mut bytes = vec![0; 64];
            let name = [2, 9, 15, 17, 21, 300][pick(6) as usize];
            let (bits, number) = ([8, 32, 64][pick(3) as usize], pick(3) as u32);
            let flags = [INLINE, INLINE, INLINE, LONG, INLINE | DEALLOCATE, 0][pick(6) as usize];
            let mut writer = Writer::new(format, &mut bytes);
            writer.describe(&Descriptor { name, bits, number, flags });
            let size = writer.finish(&Header::default());
            let end = size - pick(2) as usize;
            let mut header = Header::read(format, &bytes).unwrap();
            header.size = end;
            let expected = Expected {
                name: [Some(name), Some(2), None][pick(3) as usize],
                bits: [bits, 32][pick(2) as usize],
                number: [Number::Exactly(number), Number::Exactly(1), Number::UpTo(2)][pick(3) as usize],
                inline: [Some(true), Some(true), Some(false), None][pick(4) as usize],
                long: pick(8) == 0,
            };
            let mut readers = [0, 1].map(|_| Reader::new(format, &header, &bytes, None).unwrap());
            let [one, other] = &mut readers;
            let found = one.described(&expected);
            assert_eq!(found, other.described_otherwise(&expected), "{expected:?}");
            if found.is_some() {
                assert_eq!(one.at, other.at);
                accepted += 1;
            } else {
                refused += 1;
            }
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
    }
}
