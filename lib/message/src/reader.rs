//! Reading a message, one item after the other. None: it is not as the interface says.

use crate::format::{COMPLEX, get};
use crate::{DEALLOCATE, Descriptor, Format, Header, INLINE, LONG, Memory, Trailer, is_right};
use direct::{Array, Element};

/// How many elements a type descriptor may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// So many.
    Exactly(u32),
    /// Not more.
    UpTo(u32),
    /// Any number.
    Any,
}

/// Which type descriptor is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The type; none if the sender decides.
    pub name: Option<u32>,
    /// Bits of an element.
    pub bits: u32,
    /// Elements.
    pub number: Number,
    /// Data in the message, or out of line; none: either.
    pub inline: Option<bool>,
    /// Whether it has the long form.
    pub long: bool,
}

/// Memory as an untyped descriptor says it.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    memory: Memory,
    /// Bytes, or rights.
    size: u32,
    /// The type of the rights.
    pub disposition: u32,
}

impl Described {
    /// The memory, if it has so many elements of so many bytes (1 for rights).
    #[inline]
    pub fn counted(self, count: u32, bytes: u32) -> Option<Memory> {
        (count.checked_mul(bytes)? == self.size).then_some(Memory { count, ..self.memory })
    }
}

/// How many bytes there are before a zero.
#[inline(never)]
fn length(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == 0).unwrap_or(text.len())
}

/// Reads a message.
#[derive(Debug)]
pub struct Reader<'a> {
    format: &'static Format,
    /// The message, and its trailer.
    bytes: &'a [u8],
    at: usize,
    end: usize,
    complex: bool,
}

impl<'a> Reader<'a> {
    /// A message whose header has been read. `complex` is whether it must hold rights or memory,
    /// if that does not depend on its items.
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

    /// So many bytes of data, and padding after them.
    #[inline]
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let data = self.bytes.get(self.at..self.at.checked_add(size)?)?;
        self.at = (self.at + size).next_multiple_of(self.format.word);
        (self.at <= self.end).then_some(data)
    }

    /// A number of so many bytes.
    pub fn number(&mut self, size: usize) -> Option<u64> {
        get(self.take(size)?, 0, size)
    }

    /// Typed: the type descriptor that is expected, and a number of so many bytes.
    pub fn value(&mut self, expected: &Expected, size: usize) -> Option<u64> {
        self.described(expected)?;
        self.number(size)
    }

    /// What the kernel has appended to the message.
    pub fn trailer(&self) -> Option<Trailer<'a>> {
        Trailer::of(self.bytes.get(self.end.next_multiple_of(4)..)?)
    }

    /// So many elements.
    #[inline]
    pub fn elements<T: Element, const N: usize>(&mut self) -> Option<[T; N]> {
        let data = self.take(N * T::SIZE)?;
        let mut elements = [T::default(); N];
        for (element, bytes) in elements.iter_mut().zip(data.chunks_exact(T::SIZE)) {
            *element = T::from_word(get(bytes, 0, T::SIZE)?);
        }
        Some(elements)
    }

    /// Up to `N` elements.
    #[inline]
    pub fn array<T: Element, const N: usize>(&mut self, count: u32) -> Option<Array<T, N>> {
        let count = usize::try_from(count).ok().filter(|&count| count <= N)?;
        let data = self.take(count * T::SIZE)?;
        Array::from_fn(count, |at| T::from_word(get(data, at * T::SIZE, T::SIZE).unwrap_or(0)))
    }

    /// A string in `size` bytes: what is before its zero, or all.
    #[inline]
    pub fn text<const N: usize>(&mut self, size: u32) -> Option<Array<u8, N>> {
        let size = usize::try_from(size).ok().filter(|&size| size <= N)?;
        let data = self.take(size)?;
        Array::new(data.get(..length(data))?)
    }

    /// Typed: the type descriptor that is expected.
    #[inline(always)]
    pub fn expect(&mut self, expected: &Expected) -> Option<()> {
        self.described(expected).map(|_| ())
    }

    /// Typed: the type descriptor. A stub has one call for each item: it is not inlined.
    #[inline(never)]
    pub fn described(&mut self, expected: &Expected) -> Option<Descriptor> {
        let word = self.number_of(4)? as u32;
        let flag = |bit: u32, flag: u32| if word >> bit & 1 != 0 { flag } else { 0 };
        let found = if self.format.descriptor == 8 {
            let flags = flag(29, INLINE) | flag(30, LONG) | flag(31, DEALLOCATE);
            let number = self.number_of(4)? as u32;
            Descriptor { name: word & 0xff, bits: word >> 8 & 0xffff, number, flags }
        } else {
            let flags = flag(28, INLINE) | flag(29, LONG) | flag(30, DEALLOCATE);
            if expected.long {
                let type_and_bits = self.number_of(4)? as u32;
                let number = self.number_of(4)? as u32;
                Descriptor { name: type_and_bits & 0xffff, bits: type_and_bits >> 16, number, flags }
            } else {
                let (name, bits, number) = (word & 0xff, word >> 8 & 0xff, word >> 16 & 0xfff);
                Descriptor { name, bits, number, flags }
            }
        };
        let is_inline = found.flags & INLINE != 0;
        // Whether the sender has kept a copy of what is out of line is its own business.
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
            && (self.complex || (is_inline && !is_right(found.name)));
        is_expected.then_some(found)
    }

    /// Typed: memory after its descriptor, which counts `multiplier` elements for each of its own.
    pub fn pointer(&mut self, descriptor: Descriptor, multiplier: u32) -> Option<Memory> {
        let address = self.number_of(self.format.pointer)?;
        self.at = self.at.next_multiple_of(self.format.word);
        let deallocate = descriptor.flags & DEALLOCATE != 0;
        Some(Memory { address, count: descriptor.number.checked_div(multiplier)?, deallocate })
    }

    /// Typed: an integer and its descriptor.
    pub fn integer(&mut self) -> Option<u32> {
        let number = Number::Exactly(1);
        let expected = Expected { name: Some(2), bits: 32, number, inline: Some(true), long: false };
        self.value(&expected, 4).map(|integer| integer as u32)
    }

    /// Untyped: so many descriptors follow.
    #[inline]
    pub fn body(&mut self, descriptors: u32) -> Option<()> {
        (self.number_of(4)? == u64::from(descriptors)).then_some(())
    }

    /// Untyped: a right, and its type, which must be this one if there is one.
    #[inline]
    pub fn right(&mut self, disposition: Option<u32>) -> Option<(u32, u32)> {
        let name = self.number_of(8)? as u32;
        let word = self.number_of(4)? as u32;
        let found = word >> 16 & 0xff;
        (word >> 24 == 0 && disposition.is_none_or(|expected| expected == found)).then_some((name, found))
    }

    /// Untyped: rights, and their type.
    pub fn rights<const N: usize>(&mut self, disposition: Option<u32>) -> Option<([u32; N], u32)> {
        let (mut names, mut found) = ([0; N], disposition);
        for name in &mut names {
            let (other, kind) = self.right(found)?;
            (*name, found) = (other, Some(kind));
        }
        Some((names, found.unwrap_or(0)))
    }

    /// Untyped: memory, or with a disposition rights in memory; any type if that is none.
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

    /// Untyped: how numbers are represented.
    #[inline]
    pub fn representation(&mut self) -> Option<()> {
        self.number_of(8).map(|_| ())
    }

    /// Untyped: an integer.
    #[inline]
    pub fn word(&mut self) -> Option<u32> {
        Some(self.number_of(4)? as u32)
    }

    /// Nothing is left.
    #[inline]
    pub fn finish(self) -> Option<()> {
        (self.at == self.end).then_some(())
    }
}
