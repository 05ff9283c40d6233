//! A module that is part of each generated program over messages: random values, and a transport
//! through the `mach_msg` of the C tests.

use message::{Call, Data, Element, Memory, Transport};
use std::sync::atomic::{AtomicU64, Ordering};

static STATE: AtomicU64 = AtomicU64::new(1);

/// A generator of random values.
pub struct Draw(u64);

impl Draw {
    /// A generator that continues the sequence of the last one.
    pub fn new() -> Draw {
        Draw(STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32 | self.0 << 32
    }

    /// A number with `bytes` random bytes.
    pub fn number<T: Element>(&mut self, bytes: usize) -> T {
        T::from_word(self.next() >> (64 - 8 * bytes))
    }

    /// An array of `N` random numbers.
    pub fn fixed<T: Element, const N: usize>(&mut self, bytes: usize) -> [T; N] {
        std::array::from_fn(|_| self.number(bytes))
    }

    /// At most `most` random numbers; often none or exactly `most`.
    pub fn some<T: Element>(&mut self, most: usize, bytes: usize) -> Vec<T> {
        let count = match self.next() % 4 {
            0 => 0,
            1 => most,
            _ => self.next() as usize % (most + 1),
        };
        (0..count).map(|_| self.number(bytes)).collect()
    }

    /// A random string, short enough that its final zero fits in `most` bytes.
    pub fn text(&mut self, most: usize) -> Vec<u8> {
        (0..self.next() as usize % most).map(|_| b'a' + (self.next() % 26) as u8).collect()
    }
}

/// The contents of received memory, which belongs to the program.
pub fn memory<T: Element>(memory: &Memory) -> Vec<T> {
    unsafe { std::slice::from_raw_parts(memory.address as *const T, memory.count as usize) }.to_vec()
}

/// The elements of received data, whether in the message or in memory.
pub fn elements<T: Element, const N: usize>(data: &Data<T, N>) -> Vec<T> {
    match data {
        Data::Inline(array) => array.to_vec(),
        Data::Memory(outside) => memory(outside),
    }
}

/// A received request with its trailer.
pub fn received<'a>(request: *const u8) -> &'a [u8] {
    let size = unsafe { request.add(4).cast::<u32>().read_unaligned() };
    unsafe { std::slice::from_raw_parts(request, size as usize + 68) }
}

/// The value that a C server function returns. The tests' transport reads the reply's header even
/// if the request has no reply.
pub fn answered(size: Option<usize>, reply: *mut u8) -> i32 {
    if size.is_none() {
        unsafe { reply.write_bytes(0, 8) };
    }
    i32::from(size.is_some())
}

unsafe extern "C" {
    static mut loopback_meddle: Option<extern "C" fn(which: i32, message: *mut u8)>;
    fn mach_msg(message: *mut u8, option: i32, send: u32, receive: u32, port: u32, time: u32, notify: u32) -> i32;
}

/// The transport of the C tests.
pub struct Messages;

impl Messages {
    fn exchange(&mut self, message: &mut [u8], length: usize, call: &Call, option: i32) -> Result<(), i32> {
        // The call's options go to `mach_msg` unchanged; a timeout sets the bit for the timeout.
        let times = i32::from(call.send.is_some()) << 4 | i32::from(call.wait.is_some()) << 8;
        let elements = if call.trailer > 20 { 3 } else { 2 * i32::from(call.trailer > 0) } << 24;
        let option = option | call.options as i32 | times | elements;
        let time = call.wait.or(call.send).unwrap_or(0);
        let room = if option & 2 != 0 { message.len() as u32 } else { 0 };
        match unsafe { mach_msg(message.as_mut_ptr(), option, length as u32, room, 99, time, 0) } {
            0 => Ok(()),
            error => Err(error),
        }
    }
}

impl Transport for Messages {
    fn reply_port(&mut self) -> u64 {
        99
    }
    fn call(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32> {
        self.exchange(message, length, call, 3)
    }
    fn send(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32> {
        self.exchange(message, length, call, 1)
    }
}

/// Makes the transport damage each message in transit: its size, its complexity, or bytes after the
/// header.
pub fn damage_messages() {
    unsafe { loopback_meddle = Some(damage) };
}

extern "C" fn damage(_: i32, message: *mut u8) {
    let mut draw = Draw::new();
    let size = unsafe { message.add(4).cast::<u32>().read_unaligned() } as usize;
    for _ in 0..draw.next() % 3 {
        let at = match draw.next() % 8 {
            0 => 3,
            1 => 4 + draw.next() as usize % 2,
            _ => 24 + draw.next() as usize % (size - 23),
        };
        // Bytes after the message are still inside the transport's buffer.
        unsafe { *message.add(at) ^= 1 << (draw.next() % 8) };
    }
    // The kernel never delivers a message that is smaller than the header.
    let least = unsafe { message.add(4).cast::<u32>().read_unaligned() }.max(size.min(32) as u32);
    unsafe { message.add(4).cast::<u32>().write_unaligned(least) };
}
