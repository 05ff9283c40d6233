//! What programs of random interfaces by direct IPC have in common: values as bytes, and message
//! registers in memory. This is a module of theirs.

use crate::{Echo, serve};
use direct::x2::{IpcError, MessageTag, StringDescriptor, ThreadId};
use direct::{Array, Element, Registers, Transport};

/// The server.
pub const SERVER: ThreadId = ThreadId::from_raw(0x5678_0001);

/// Random values.
pub struct Draw(u64);

impl Draw {
    /// Always the same.
    pub fn new() -> Draw {
        Draw(1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number of elements: often none or all.
    pub fn count(&mut self, most: usize) -> usize {
        match self.next() % 4 {
            0 => 0,
            1 => most,
            _ => self.next() as usize % (most + 1),
        }
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A value as bytes.
pub trait Bytes {
    /// Its bytes, the lowest first.
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

/// A number from its bytes.
pub fn number<T: Element>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), T::SIZE);
    T::from_word(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

/// Numbers from their bytes.
pub fn numbers<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks(T::SIZE).map(number).collect()
}

/// So many numbers from their bytes.
pub fn fixed<T: Element, const N: usize>(bytes: &[u8]) -> [T; N] {
    numbers(bytes).try_into().unwrap_or_else(|_| panic!("{} bytes", bytes.len()))
}

/// Writes an answer into its room.
pub fn put(room: &mut [u8], bytes: &[u8]) -> usize {
    room[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// Message registers in memory. A call has the server carry out the request.
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
