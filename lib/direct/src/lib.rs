//! The runtime library of the stubs that `mig` writes for direct L4 IPC. It encodes values in
//! message registers, and has a trait for a thread's IPC, so that stubs run over any transport.
//! Nothing here allocates.
//!
//! The label of a request is the routine's number in the interface. The untyped words are the
//! arguments. Data of varying size is a word with the number of elements, then the elements, packed
//! into words. Data that does not fit in the registers is a string item, and a word with the data's
//! size. Map items come before string items. A reply has the label of its request + 100; its first
//! word is the status, and the results follow as arguments do in a request.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub use x2;

use core::ops::Deref;
use x2::message::MESSAGE_REGISTERS;
use x2::{IpcError, MapItem, MessageTag, StringDescriptor, ThreadId};

/// The difference between the label of a reply and the label of its request.
pub const REPLY: u64 = 100;

/// The most string items of a message.
pub const STRINGS: usize = 8;

/// The status of a reply to a request that the server has not carried out; it is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    /// The interface has no routine with the request's label.
    pub const BAD_ID: Status = Status(-303);
    /// The words and items of the request are not those that the interface defines.
    pub const BAD_ARGUMENTS: Status = Status(-304);
    /// The server's method returns this to send no reply: the server replies later, with the stub
    /// that writes the reply, or never. No reply has this status.
    pub const NO_REPLY: Status = Status(-305);
    /// The results do not fit in the caller's buffers or in the message.
    pub const ARRAY_TOO_LARGE: Status = Status(-307);
}

/// The cause of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message was not sent, or no reply was received.
    Ipc(IpcError),
    /// The server has replied with this status.
    Status(Status),
    /// The reply is not in the form that the interface defines.
    Malformed,
}

/// The message registers of a thread.
pub trait Registers {
    /// Message register `index`, 0..=63.
    fn register(&self, index: usize) -> u64;
    /// Sets message register `index`, 0..=63.
    fn set_register(&mut self, index: usize, word: u64);
}

/// A thread's IPC, together with the thread's message registers.
pub trait Transport: Registers {
    /// Sends the message in the registers to `to`, with `strings` as string items after its other
    /// items, and receives the reply. The strings of the reply are written into `rooms`, in order.
    /// Blocks until the reply has arrived.
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

    /// Sends the message in the registers and `strings` to `to`. Blocks until the message is
    /// received.
    ///
    /// # Errors
    /// The IPC has failed.
    fn send(&mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError>;
}

/// The IPC of a thread that can do other work while a server handles a request.
///
/// A stub writes the request to the message registers before it makes a future, and the future
/// sends the request when it is polled for the first time. The caller must await the future before
/// it uses the message registers again.
pub trait AsyncTransport: Registers {
    /// Like [`Transport::call`], as a future instead of a blocking call.
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

/// An unsigned number that can be an element of an array.
pub trait Element: Copy + Default {
    /// The size of the number in bytes.
    const SIZE: usize;
    /// Takes the number from the lowest bytes of a word.
    fn from_word(word: u64) -> Self;
    /// Puts the number into the lowest bytes of a word, whose other bytes are 0.
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

/// An array of at most `N` elements, stored in place.
#[derive(Clone, Copy)]
pub struct Array<T, const N: usize> {
    elements: [T; N],
    count: usize,
}

impl<T: Element, const N: usize> Array<T, N> {
    /// Copies the elements of a slice; none if there are more than `N`.
    pub fn new(slice: &[T]) -> Option<Self> {
        let mut array = Self { elements: [T::default(); N], count: slice.len() };
        array.elements.get_mut(..slice.len())?.copy_from_slice(slice);
        Some(array)
    }

    /// An array of `count` elements, each computed from its index; none if `count` is more than
    /// `N`.
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

/// Writes a message into the registers. The stub guarantees that the message fits.
#[derive(Debug)]
pub struct Encoder<'a, R> {
    registers: &'a mut R,
    untyped: usize,
    typed: usize,
}

impl<'a, R: Registers> Encoder<'a, R> {
    /// Begins an empty message.
    #[inline(always)]
    pub fn new(registers: &'a mut R) -> Self {
        Self { registers, untyped: 0, typed: 0 }
    }

    /// Adds an untyped word.
    #[inline(always)]
    pub fn word(&mut self, word: u64) {
        self.untyped += 1;
        self.registers.set_register(self.untyped, word);
    }

    /// Adds elements without their number. Each word holds as many elements as fit.
    #[inline(always)]
    pub fn elements<T: Element>(&mut self, elements: &[T]) {
        let pack = |some: &[T]| {
            let shifted =
                some.iter().enumerate().map(|(at, element)| element.to_word() << (at * T::SIZE * 8));
            shifted.fold(0, |word, part| word | part)
        };
        // With a chunk size that is known at compile time, the compiler makes one load of each
        // chunk.
        let chunks = elements.chunks_exact(8 / T::SIZE);
        let rest = chunks.remainder();
        chunks.for_each(|some| self.word(pack(some)));
        if !rest.is_empty() {
            self.word(pack(rest));
        }
    }

    /// Adds a word with the number of elements, then the elements.
    #[inline(always)]
    pub fn array<T: Element>(&mut self, elements: &[T]) {
        self.word(elements.len() as u64);
        self.elements(elements);
    }

    /// Adds a map or grant item. Untyped words cannot follow it.
    #[inline(always)]
    pub fn map(&mut self, item: MapItem) {
        for word in item.to_words(false) {
            self.typed += 1;
            self.registers.set_register(self.untyped + self.typed, word);
        }
    }

    /// The tag of the message. The transport adds string items to it.
    #[inline(always)]
    pub fn finish(self, label: u64) -> MessageTag {
        MessageTag::new(label, self.untyped, self.typed)
    }
}

/// Reads a message from the registers. Methods return none if the message is not in the form that
/// the interface defines.
#[derive(Debug)]
pub struct Decoder<'a, R> {
    registers: &'a R,
    tag: MessageTag,
    untyped: usize,
    typed: usize,
}

impl<'a, R: Registers> Decoder<'a, R> {
    /// Reads a message of any size, whose tag is `tag`. Each read checks that the message has the
    /// word.
    #[inline(always)]
    pub fn new(registers: &'a R, tag: MessageTag) -> Self {
        Self { registers, tag, untyped: 0, typed: 0 }
    }

    /// Reads a message that must have `untyped` and `typed` words; none if it has not. After this
    /// check the compiler can remove the checks of the reads.
    #[inline(always)]
    pub fn exact(registers: &'a R, tag: MessageTag, untyped: usize, typed: usize) -> Option<Self> {
        let counts = MessageTag::new(0, untyped, typed);
        (tag.without_flags().with_label(0) == counts).then(|| Self::new(registers, counts))
    }

    /// Reads the next untyped word.
    #[inline(always)]
    pub fn word(&mut self) -> Option<u64> {
        if self.untyped >= self.tag.untyped() {
            return None;
        }
        self.untyped += 1;
        Some(self.registers.register(self.untyped))
    }

    /// Reads the next untyped word as a number; none if the word is larger than the type of the
    /// number.
    #[inline(always)]
    pub fn number<T: Element>(&mut self) -> Option<T> {
        let word = self.word()?;
        let number = T::from_word(word);
        (number.to_word() == word).then_some(number)
    }

    /// Reads `N` elements.
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
        // With a chunk size that is known at compile time, the compiler makes one store of each
        // chunk.
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

    /// Reads a word with the number of elements, then the elements.
    #[inline(always)]
    pub fn array<T: Element, const N: usize>(&mut self) -> Option<Array<T, N>> {
        let count = usize::try_from(self.word()?).ok().filter(|&count| count <= N)?;
        let mut array = Array { elements: [T::default(); N], count };
        self.fill(&mut array.elements[..count])?;
        Some(array)
    }

    /// Reads the next map or grant item.
    #[inline(always)]
    pub fn map(&mut self) -> Option<MapItem> {
        if self.typed + 2 > self.tag.typed() {
            return None;
        }
        let at = 1 + self.tag.untyped() + self.typed;
        self.typed += 2;
        MapItem::from_words([self.registers.register(at), self.registers.register(at + 1)])
    }

    /// Reads the length of the next string; none if it is more than `most`.
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

    /// Checks that all words and items have been read; none if some are left.
    #[inline(always)]
    pub fn finish(self) -> Option<()> {
        (self.untyped == self.tag.untyped() && self.typed == self.tag.typed()).then_some(())
    }
}

/// A server's reply: its tag and its strings. Its words are in the message registers.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The reply's tag without string items, which the transport adds.
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

    /// A reply that refuses a request: it has only the status.
    #[inline(always)]
    pub fn refusal<R: Registers>(registers: &mut R, label: u64, status: Status) -> Self {
        let mut encoder = Encoder::new(registers);
        encoder.word(status.0 as u32 as u64);
        Self::new(encoder.finish(label + REPLY))
    }

    /// Adds a string. The stub guarantees that a reply has at most [`STRINGS`] strings.
    #[inline(always)]
    pub fn add_string(&mut self, string: &'a [u8]) {
        if let Some(room) = self.strings.get_mut(self.count) {
            *room = string;
            self.count += 1;
        }
    }

    /// The strings of the reply, in order.
    #[inline(always)]
    pub fn strings(&self) -> &[&'a [u8]] {
        &self.strings[..self.count]
    }
}

/// Begins to read the reply to the request with `label`; the first read yields what follows the
/// status.
///
/// # Errors
/// The reply has a status other than 0, or the message is not a reply to such a request.
#[inline(always)]
pub fn reply<R: Registers>(registers: &R, tag: MessageTag, label: u64) -> Result<Decoder<'_, R>, Error> {
    let is_reply = tag.label() == label + REPLY && tag.untyped() > 0;
    after_status(registers, tag, label, is_reply, tag)
}

/// Like [`reply`], for a reply whose numbers of words do not vary if the request was carried out.
///
/// # Errors
/// The errors of [`reply`].
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

/// Checks a reply's status; returns a decoder that begins after it. `counts` is a tag that has the
/// numbers of words of the reply.
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

/// The error of a message that is not a successful reply. It takes the value of the first word and
/// not `registers`: if their address were passed to a function that is not inlined, the compiler
/// could not keep their contents in the processor's registers.
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
