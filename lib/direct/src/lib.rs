//! What the stubs that `mig` writes for direct L4 IPC are made of: values in message registers, and
//! the thread's IPC as a trait, so that stubs run over any transport. Nothing here allocates.
//!
//! A request's label is its number in the interface. Its untyped words are the arguments; data of
//! varying size is a word that counts its elements, then its bytes, eight in a word; data that does
//! not fit the registers is a string item, after its count. Map items come before string items. A
//! reply is the same with the label of the request + 100; its first word is the status.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub use x2;

use core::ops::Deref;
use x2::message::MESSAGE_REGISTERS;
use x2::{IpcError, MapItem, MessageTag, StringDescriptor, ThreadId};

/// How much larger than a request's label its reply's label is.
pub const REPLY: u64 = 100;

/// Most strings in a message.
pub const STRINGS: usize = 8;

/// What a server's routine answers when it does not carry out a request: not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    /// There is no such routine.
    pub const BAD_ID: Status = Status(-303);
    /// The words of a request are not as the interface says.
    pub const BAD_ARGUMENTS: Status = Status(-304);
    /// No status of an answer: the server's routine answers later, by the function that writes the
    /// reply, or never.
    pub const NO_REPLY: Status = Status(-305);
    /// What is answered does not fit where the caller wants it.
    pub const ARRAY_TOO_LARGE: Status = Status(-307);
}

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message could not be sent, or no reply received.
    Ipc(IpcError),
    /// The server has answered this status.
    Status(Status),
    /// The reply is not what the interface says.
    Malformed,
}

/// The message registers of a thread.
pub trait Registers {
    /// Message register `index`, 0..=63.
    fn register(&self, index: usize) -> u64;
    /// Sets message register `index`, 0..=63.
    fn set_register(&mut self, index: usize, word: u64);
}

/// The IPC of a thread whose message registers these are.
pub trait Transport: Registers {
    /// Sends the message in the registers, and `strings` after its items, to `to`, and receives its
    /// reply. Strings of the reply go into `rooms`, in their order. Blocks until there is a reply.
    ///
    /// # Errors
    /// The IPC has failed.
    fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError>;

    /// Sends the message and `strings` to `to`. Blocks until it is received.
    ///
    /// # Errors
    /// The IPC has failed.
    fn send(&mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError>;
}

/// The IPC of a thread that does something else while a server works.
///
/// A request is in the message registers when the future is made, and is sent when it is polled for
/// the first time: it has to be awaited immediately.
pub trait AsyncTransport: Registers {
    /// As [`Transport::call`], without blocking.
    ///
    /// # Errors
    /// The IPC has failed.
    fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> impl Future<Output = Result<MessageTag, IpcError>>;
}

/// A number that arrays consist of.
pub trait Element: Copy + Default {
    /// Bytes of one.
    const SIZE: usize;
    /// The number in the lowest bytes of a word.
    fn from_word(word: u64) -> Self;
    /// A word whose lowest bytes are the number, the others 0.
    fn to_word(self) -> u64;
}

macro_rules! elements {
    ($($number:ty),*) => {
        $(impl Element for $number {
            const SIZE: usize = size_of::<$number>();
            fn from_word(word: u64) -> Self {
                word as $number
            }
            fn to_word(self) -> u64 {
                u64::from(self)
            }
        })*
    };
}
elements!(u8, u16, u32, u64);

/// Up to `N` elements.
#[derive(Clone, Copy)]
pub struct Array<T, const N: usize> {
    elements: [T; N],
    count: usize,
}

impl<T: Element, const N: usize> Array<T, N> {
    /// The elements of a slice; none if there are more than `N`.
    pub fn new(slice: &[T]) -> Option<Self> {
        let mut array = Self { elements: [T::default(); N], count: slice.len() };
        array.elements.get_mut(..slice.len())?.copy_from_slice(slice);
        Some(array)
    }

    /// So many elements, each made of its index; none if there are more than `N`.
    #[inline]
    pub fn from_fn(count: usize, element: impl Fn(usize) -> T) -> Option<Self> {
        let mut array = Self { elements: [T::default(); N], count };
        for (at, room) in array.elements.get_mut(..count)?.iter_mut().enumerate() {
            *room = element(at);
        }
        Some(array)
    }
}

impl<T, const N: usize> Deref for Array<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.elements[..self.count]
    }
}

impl<T: core::fmt::Debug, const N: usize> core::fmt::Debug for Array<T, N> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Array<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for Array<T, N> {}

/// Writes a message into the registers. A stub writes no more than there are.
#[derive(Debug)]
pub struct Encoder<'a, R> {
    registers: &'a mut R,
    untyped: usize,
    typed: usize,
}

impl<'a, R: Registers> Encoder<'a, R> {
    /// An empty message.
    #[inline(always)]
    pub fn new(registers: &'a mut R) -> Self {
        Self { registers, untyped: 0, typed: 0 }
    }

    /// Adds a word.
    #[inline(always)]
    pub fn word(&mut self, word: u64) {
        self.untyped += 1;
        self.registers.set_register(self.untyped, word);
    }

    /// Adds elements without their count, as many in a word as fit.
    #[inline(always)]
    pub fn elements<T: Element>(&mut self, elements: &[T]) {
        let pack = |some: &[T]| {
            let shifted =
                some.iter().enumerate().map(|(at, element)| element.to_word() << (at * T::SIZE * 8));
            shifted.fold(0, |word, part| word | part)
        };
        // Of chunks whose size the compiler knows each becomes one load.
        let chunks = elements.chunks_exact(8 / T::SIZE);
        let rest = chunks.remainder();
        chunks.for_each(|some| self.word(pack(some)));
        if !rest.is_empty() {
            self.word(pack(rest));
        }
    }

    /// Adds a count and the elements.
    #[inline(always)]
    pub fn array<T: Element>(&mut self, elements: &[T]) {
        self.word(elements.len() as u64);
        self.elements(elements);
    }

    /// Adds a map or grant item, after all words.
    #[inline(always)]
    pub fn map(&mut self, item: MapItem) {
        for word in item.to_words(false) {
            self.typed += 1;
            self.registers.set_register(self.untyped + self.typed, word);
        }
    }

    /// The tag of the message, without strings.
    #[inline(always)]
    pub fn finish(self, label: u64) -> MessageTag {
        MessageTag::new(label, self.untyped, self.typed)
    }
}

/// Reads a message from the registers. None: the message is not as the interface says.
#[derive(Debug)]
pub struct Decoder<'a, R> {
    registers: &'a R,
    tag: MessageTag,
    untyped: usize,
    typed: usize,
}

impl<'a, R: Registers> Decoder<'a, R> {
    /// A message with this tag.
    #[inline(always)]
    pub fn new(registers: &'a R, tag: MessageTag) -> Self {
        Self { registers, tag, untyped: 0, typed: 0 }
    }

    /// A message that must have so many words. The check is made once, here.
    #[inline(always)]
    pub fn exact(registers: &'a R, tag: MessageTag, untyped: usize, typed: usize) -> Option<Self> {
        let counts = MessageTag::new(0, untyped, typed);
        (tag.without_flags().with_label(0) == counts).then(|| Self::new(registers, counts))
    }

    /// The next word.
    #[inline(always)]
    pub fn word(&mut self) -> Option<u64> {
        if self.untyped >= self.tag.untyped() {
            return None;
        }
        self.untyped += 1;
        Some(self.registers.register(self.untyped))
    }

    /// The next word, which holds a number.
    #[inline(always)]
    pub fn number<T: Element>(&mut self) -> Option<T> {
        let word = self.word()?;
        let number = T::from_word(word);
        (number.to_word() == word).then_some(number)
    }

    /// So many elements.
    #[inline(always)]
    pub fn elements<T: Element, const N: usize>(&mut self) -> Option<[T; N]> {
        let mut elements = [T::default(); N];
        self.fill(&mut elements)?;
        Some(elements)
    }

    #[inline(always)]
    fn fill<T: Element>(&mut self, elements: &mut [T]) -> Option<()> {
        let unpack = |some: &mut [T], word: u64| {
            for (at, element) in some.iter_mut().enumerate() {
                *element = T::from_word(word >> (at * T::SIZE * 8));
            }
        };
        // Of chunks whose size the compiler knows each becomes one store.
        let mut chunks = elements.chunks_exact_mut(8 / T::SIZE);
        for some in &mut chunks {
            unpack(some, self.word()?);
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            unpack(rest, self.word()?);
        }
        Some(())
    }

    /// A count and the elements.
    #[inline(always)]
    pub fn array<T: Element, const N: usize>(&mut self) -> Option<Array<T, N>> {
        let count = usize::try_from(self.word()?).ok().filter(|&count| count <= N)?;
        let mut array = Array { elements: [T::default(); N], count };
        self.fill(&mut array.elements[..count])?;
        Some(array)
    }

    /// The next map or grant item.
    #[inline(always)]
    pub fn map(&mut self) -> Option<MapItem> {
        if self.typed + 2 > self.tag.typed() {
            return None;
        }
        let at = 1 + self.tag.untyped() + self.typed;
        self.typed += 2;
        MapItem::from_words([self.registers.register(at), self.registers.register(at + 1)])
    }

    /// The length of the next string, at most `most`.
    #[inline(always)]
    pub fn string(&mut self, most: usize) -> Option<usize> {
        let at = 1 + self.tag.untyped() + self.typed;
        if self.typed + 2 > self.tag.typed() || at + 1 >= MESSAGE_REGISTERS {
            return None;
        }
        self.typed += 2;
        let descriptor = StringDescriptor::from_raw(self.registers.register(at));
        let is_string = self.registers.register(at) & 0b1000 == 0;
        let simple = is_string && descriptor.substrings() == 1 && !descriptor.compound_continues();
        usize::try_from(descriptor.length()).ok().filter(|&length| simple && length <= most)
    }

    /// Nothing is left.
    #[inline(always)]
    pub fn finish(self) -> Option<()> {
        (self.untyped == self.tag.untyped() && self.typed == self.tag.typed()).then_some(())
    }
}

/// A server's reply.
#[derive(Debug)]
pub struct Reply<'a> {
    /// Its tag, without strings.
    pub tag: MessageTag,
    strings: [&'a [u8]; STRINGS],
    count: usize,
}

impl<'a> Reply<'a> {
    /// A reply without strings.
    #[inline(always)]
    pub fn new(tag: MessageTag) -> Self {
        Self { tag, strings: [&[]; STRINGS], count: 0 }
    }

    /// The answer that a request is not carried out.
    #[inline(always)]
    pub fn refusal<R: Registers>(registers: &mut R, label: u64, status: Status) -> Self {
        let mut encoder = Encoder::new(registers);
        encoder.word(status.0 as u32 as u64);
        Self::new(encoder.finish(label + REPLY))
    }

    /// Adds a string. A stub adds no more than there can be.
    #[inline(always)]
    pub fn add_string(&mut self, string: &'a [u8]) {
        if let Some(room) = self.strings.get_mut(self.count) {
            *room = string;
            self.count += 1;
        }
    }

    /// The strings, in their order.
    #[inline(always)]
    pub fn strings(&self) -> &[&'a [u8]] {
        &self.strings[..self.count]
    }
}

/// The reply to a request with `label`, after its status.
///
/// # Errors
/// The server's status, or the message is no such reply.
#[inline(always)]
pub fn reply<R: Registers>(registers: &R, tag: MessageTag, label: u64) -> Result<Decoder<'_, R>, Error> {
    let is_reply = tag.label() == label + REPLY && tag.untyped() > 0;
    after_status(registers, tag, label, is_reply, tag)
}

/// As [`reply`], of a reply that has so many words if the request was carried out.
///
/// # Errors
/// Those of [`reply`].
#[inline(always)]
pub fn exact_reply<R: Registers>(
    registers: &R,
    tag: MessageTag,
    label: u64,
    untyped: usize,
    typed: usize,
) -> Result<Decoder<'_, R>, Error> {
    let expected = MessageTag::new(label + REPLY, untyped, typed);
    after_status(registers, tag, label, tag.without_flags() == expected, expected)
}

/// A decoder of what follows the status, if it is 0, of a message whose words `counts` counts.
#[inline(always)]
fn after_status<R: Registers>(
    registers: &R,
    tag: MessageTag,
    label: u64,
    is_reply: bool,
    counts: MessageTag,
) -> Result<Decoder<'_, R>, Error> {
    let status = registers.register(1);
    if !is_reply || status != 0 {
        return Err(failure(tag, label, status));
    }
    Ok(Decoder { registers, tag: counts, untyped: 1, typed: 0 })
}

/// Why a message is not the reply of a request that was carried out. It takes the first word, not
/// the registers: these could not stay in the processor's if their address were known elsewhere.
#[cold]
#[inline(never)]
fn failure(tag: MessageTag, label: u64, status: u64) -> Error {
    let is_reply = tag.label() == label + REPLY && tag.untyped() > 0;
    match u32::try_from(status) {
        Ok(status) if is_reply && status != 0 => Error::Status(Status(status as i32)),
        _ => Error::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory([u64; 64]);

    impl Registers for Memory {
        fn register(&self, index: usize) -> u64 {
            self.0[index]
        }
        fn set_register(&mut self, index: usize, word: u64) {
            self.0[index] = word;
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut memory = Memory([0; 64]);
        let mut encoder = Encoder::new(&mut memory);
        encoder.word(7);
        encoder.array(b"nine byte");
        encoder.elements(&[1u32, 2, 3]);
        encoder.array::<u64>(&[]);
        let tag = encoder.finish(500);
        assert_eq!((tag.untyped(), tag.typed(), tag.label()), (7, 0, 500));
        let mut decoder = Decoder::new(&memory, tag);
        assert_eq!(decoder.word(), Some(7));
        assert_eq!(decoder.array::<u8, 9>().as_deref(), Some(&b"nine byte"[..]));
        assert_eq!(decoder.elements::<u32, 3>(), Some([1, 2, 3]));
        assert_eq!(decoder.array::<u64, 4>().as_deref(), Some(&[][..]));
        assert_eq!(decoder.finish(), Some(()));
    }

    #[test]
    fn what_is_not_as_expected_is_refused() {
        let mut memory = Memory([0; 64]);
        memory.0[1] = 1 << 32;
        let tag = MessageTag::new(1, 1, 0);
        assert_eq!(Decoder::new(&memory, tag).number::<u32>(), None);
        assert_eq!(Decoder::new(&memory, tag).array::<u8, 8>(), None);
        memory.0[1] = 1;
        assert_eq!(Decoder::new(&memory, tag).array::<u8, 8>(), None, "there is no word after the count");
        assert_eq!(Decoder::new(&memory, tag).finish(), None);
        assert_eq!(Decoder::new(&memory, tag).string(8), None);
        assert!(Decoder::exact(&memory, tag, 2, 0).is_none() && Decoder::exact(&memory, tag, 1, 0).is_some());
        assert!(matches!(reply(&memory, tag, 1), Err(Error::Malformed)));
        assert!(matches!(reply(&memory, tag.with_label(101), 1), Err(Error::Status(Status(1)))));
        assert!(matches!(exact_reply(&memory, tag.with_label(101), 1, 3, 0), Err(Error::Status(Status(1)))));
        memory.0[1] = 0;
        let short = exact_reply(&memory, tag.with_label(101), 1, 3, 0);
        assert!(matches!(short, Err(Error::Malformed)), "it was carried out, and results are missing");
        memory.0[1] = 1 << 32;
        assert!(matches!(reply(&memory, tag.with_label(101), 1), Err(Error::Malformed)), "no status");
    }
}
