//! A module that is part of each generated program by direct IPC: values as bytes, and message
//! registers in memory.

use crate::{Echo, serve};
use direct::x2::{IpcError, MessageTag, StringDescriptor, ThreadId};
use direct::{Array, Element, Registers, Transport};

/// The thread of the server.
pub const SERVER: ThreadId = ThreadId::from_raw(0x5678_0001);

/// A generator of random values.
pub struct Draw(u64);

impl Draw {
    /// A generator that always yields one sequence.
    pub fn new() -> Draw {
        Draw(1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number of elements, at most `most`; often 0 or exactly `most`.
    pub fn count(&mut self, most: usize) -> usize {
        match self.next() % 4 {
            0 => 0,
            1 => most,
            _ => self.next() as usize % (most + 1),
        }
    }

    /// A vector of `count` random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Values that can be converted to bytes.
pub trait Bytes {
    /// The bytes of the value, lowest byte first.
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Bytes for $number {
            fn bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        })*
    };
}
numbers!(u8, u16, u32, u64);

impl<T: Element> Bytes for [T] {
    fn bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|element| element.to_word().to_le_bytes()[..T::SIZE].to_vec()).collect()
    }
}

impl<T: Element, const N: usize> Bytes for [T; N] {
    fn bytes(&self) -> Vec<u8> {
        self[..].bytes()
    }
}

impl<T: Element, const N: usize> Bytes for Array<T, N> {
    fn bytes(&self) -> Vec<u8> {
        self[..].bytes()
    }
}

/// The number that has these bytes.
pub fn number<T: Element>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), T::SIZE);
    T::from_word(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

/// The numbers that have these bytes.
pub fn numbers<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks(T::SIZE).map(number).collect()
}

/// An array of the numbers that have these bytes.
pub fn fixed<T: Element, const N: usize>(bytes: &[u8]) -> [T; N] {
    numbers(bytes).try_into().unwrap_or_else(|_| panic!("{} bytes", bytes.len()))
}

/// Writes data into the room for a reply's string; returns the number of bytes.
pub fn put(room: &mut [u8], bytes: &[u8]) -> usize {
    room[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// A transport within one program: the message registers are memory, and a call invokes the
/// server's dispatching function directly.
pub struct Loopback([u64; 64]);

impl Loopback {
    /// Registers that hold no message.
    pub fn new() -> Loopback {
        Loopback([0xdead; 64])
    }

    fn with_strings(&mut self, tag: MessageTag, strings: &[&[u8]]) -> MessageTag {
        for (at, string) in (tag.end()..).step_by(2).zip(strings) {
            self.0[at] = StringDescriptor::new(string.len() as u64, 1, false).raw();
            self.0[at + 1] = string.as_ptr() as u64;
        }
        tag.with_words(tag.untyped(), tag.typed() + 2 * strings.len())
    }
}

impl Registers for Loopback {
    fn register(&self, index: usize) -> u64 {
        self.0[index]
    }
    fn set_register(&mut self, index: usize, word: u64) {
        self.0[index] = word;
    }
}

impl Transport for Loopback {
    fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        assert_eq!(to, SERVER);
        let tag = self.with_strings(tag, strings);
        assert!(tag.is_well_formed());
        let mut room = vec![0; 100_000];
        let reply = serve(&mut Echo, to, tag, self, strings, &mut room).expect("a reply");
        for (room, string) in rooms.iter_mut().zip(reply.strings()) {
            room[..string.len()].copy_from_slice(string);
        }
        Ok(self.with_strings(reply.tag, reply.strings()))
    }

    fn send(&mut self, _: ThreadId, _: MessageTag, _: &[&[u8]]) -> Result<(), IpcError> {
        unreachable!("no routine is simple")
    }
}
