//! The memory of a queue, which driver and device share (2.6): descriptors, the ring of available
//! requests, the ring of used ones, and a table of further descriptors for each request.
#![allow(unsafe_code, reason = "the memory is root's, not a Rust object")]

use crate::queue::Piece;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A piece of memory of a request, as the device reads it.
#[repr(C, align(16))]
#[derive(Debug, Default)]
pub struct Descriptor {
    /// The address of the first byte for the device.
    pub(crate) address: AtomicU64,
    /// How many bytes the piece has.
    pub(crate) length: AtomicU32,
    pub(crate) flags: AtomicU16,
    /// The next descriptor of the request, if the flags say that there is one.
    pub(crate) next: AtomicU16,
}

/// The bytes of a descriptor.
const DESCRIPTOR: usize = 16;
const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR);

/// How many entries a queue and its tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of descriptors, and of requests that the rings hold.
    size: u16,
    /// The number of descriptors in the table of each request; 0 without tables.
    entries: u16,
}

impl Layout {
    /// The layout of a queue of `size` descriptors, a power of two up to 2^15. With `entries`, each
    /// request has a table of that many descriptors, which are used if the device knows them
    /// ([`INDIRECT`](crate::features::INDIRECT)). `None`: the size is not possible.
    pub const fn new(size: u16, entries: u16) -> Option<Layout> {
        if size.is_power_of_two() { Some(Layout { size, entries }) } else { None }
    }

    /// The number of descriptors.
    pub const fn size(self) -> u16 {
        self.size
    }

    /// The offsets in bytes of the ring of available requests, the ring of used ones, the tables,
    /// and the end.
    const fn offsets(self) -> [usize; 4] {
        let size = self.size as usize;
        let available = DESCRIPTOR * size;
        let used = (available + 2 * self.available()).next_multiple_of(4);
        let tables = (used + 4 * self.used()).next_multiple_of(DESCRIPTOR);
        [available, used, tables, tables + DESCRIPTOR * size * self.entries as usize]
    }

    /// How many numbers of 16 bits the ring of available requests has: flags, count, a descriptor
    /// for each request, and the entry of the other ring for which the driver waits.
    pub(crate) const fn available(self) -> usize {
        self.size as usize + 3
    }

    /// How many numbers of 32 bits the ring of used requests has: flags and count, two for each
    /// request, and the entry of the other ring for which the device waits.
    pub(crate) const fn used(self) -> usize {
        2 * self.size as usize + 2
    }

    /// How many bytes the memory of the queue takes. It must begin at a multiple of 16.
    pub const fn bytes(self) -> usize {
        self.offsets()[3]
    }
}

/// The addresses of a queue's parts for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
    pub(crate) tables: u64,
}

/// The memory of a queue. Every content is valid: what the device writes into it may be anything.
#[derive(Debug)]
pub struct QueueMemory<'a> {
    pub(crate) layout: Layout,
    pub(crate) descriptors: &'a [Descriptor],
    pub(crate) available: &'a [AtomicU16],
    pub(crate) used: &'a [AtomicU32],
    pub(crate) tables: &'a [Descriptor],
    pub(crate) addresses: Addresses,
}

impl QueueMemory<'static> {
    /// The memory at `address`, which the device reaches at `physical`; both are multiples of 16.
    /// It must be zero.
    ///
    /// # Safety
    /// [`Layout::bytes`] bytes at `address` must be mapped as long as the program runs, and be used
    /// by nothing but this value and the device.
    pub unsafe fn at(address: u64, physical: u64, layout: Layout) -> QueueMemory<'static> {
        let [available, used, tables, _] = layout.offsets();
        let at = |offset: usize| address + offset as u64;
        // SAFETY: the caller promises the memory. The offsets keep the alignment of each type, the
        // parts do not overlap, and all fields are atomic.
        unsafe {
            QueueMemory {
                layout,
                descriptors: core::slice::from_raw_parts(address as *const Descriptor, layout.size.into()),
                available: core::slice::from_raw_parts(at(available) as *const AtomicU16, layout.available()),
                used: core::slice::from_raw_parts(at(used) as *const AtomicU32, layout.used()),
                tables: core::slice::from_raw_parts(
                    at(tables) as *const Descriptor,
                    usize::from(layout.size) * usize::from(layout.entries),
                ),
                addresses: Addresses::of(layout, physical),
            }
        }
    }
}

impl Addresses {
    /// The addresses of the parts, of which the first is at `physical`.
    pub(crate) fn of(layout: Layout, physical: u64) -> Addresses {
        let [available, used, tables, _] = layout.offsets();
        let at = |offset: usize| physical + offset as u64;
        Addresses { descriptors: physical, available: at(available), used: at(used), tables: at(tables) }
    }
}

impl QueueMemory<'_> {
    /// The number of descriptors in the table of each request.
    pub(crate) fn entries(&self) -> usize {
        self.layout.entries.into()
    }
}

/// Memory for the data of requests. The device may write into it at any time.
#[derive(Debug)]
pub struct Buffer<'a> {
    bytes: &'a [AtomicU8],
    physical: u64,
}

impl Buffer<'static> {
    /// `length` bytes at `address`, which the device reaches at `physical`.
    ///
    /// # Safety
    /// The bytes must be mapped as long as the program runs, and be used by nothing but this value
    /// and the device.
    pub unsafe fn at(address: u64, physical: u64, length: usize) -> Buffer<'static> {
        // SAFETY: the caller promises the memory; every content is valid, and all bytes are atomic.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const AtomicU8, length) };
        Buffer { bytes, physical }
    }
}

impl Buffer<'_> {
    /// The number of bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The first `length` bytes, or all if there are less, as a piece of a request.
    pub fn piece(&self, length: usize) -> Piece {
        // A piece of 4 GiB or more could not be given to the device.
        let length = length.min(self.bytes.len()).min(u32::MAX as usize);
        Piece { address: self.physical, length: length as u32 }
    }

    /// Passes each of the first `count` bytes, or of all if there are less, to `take`.
    pub fn read_each(&self, count: usize, take: impl FnMut(u8)) {
        self.bytes.iter().take(count).map(|byte| byte.load(Ordering::Relaxed)).for_each(take);
    }

    /// Writes as many bytes as the buffer holds and `bytes` has. Returns how many.
    pub fn write(&self, bytes: impl Iterator<Item = u8>) -> usize {
        self.bytes.iter().zip(bytes).map(|(place, byte)| place.store(byte, Ordering::Relaxed)).count()
    }
}
