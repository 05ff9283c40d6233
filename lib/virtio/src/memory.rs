//! The memory of a queue, which driver and device share (2.6): the descriptors, the ring of
//! available requests, the ring of used requests, and for each request a table of more descriptors.
#![allow(unsafe_code, reason = "the memory is root's, not a Rust object")]

use crate::queue::Piece;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The description of one piece of memory of a request, in the layout that the device reads.
#[repr(C, align(16))]
#[derive(Debug, Default)]
pub struct Descriptor {
    /// The address at which the device finds the first byte.
    pub(crate) address: AtomicU64,
    /// The length of the piece in bytes.
    pub(crate) length: AtomicU32,
    pub(crate) flags: AtomicU16,
    /// The index of the request's next descriptor, if the flags say that there is one.
    pub(crate) next: AtomicU16,
}

/// The size of a descriptor in bytes.
const DESCRIPTOR: usize = 16;
const _: () = assert!(size_of::<Descriptor>() == DESCRIPTOR);

/// The numbers of entries of a queue and of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of descriptors, and of requests that each ring holds.
    size: u16,
    /// The number of descriptors in the table of each request; 0: requests have no tables.
    entries: u16,
}

impl Layout {
    /// The layout of a queue of `size` descriptors, a power of two up to 2^15. Each request gets a
    /// table of `entries` descriptors, which is used if the device supports tables
    /// ([`INDIRECT`](crate::features::INDIRECT)). `None`: a queue cannot have this size.
    pub const fn new(size: u16, entries: u16) -> Option<Layout> {
        if size.is_power_of_two() { Some(Layout { size, entries }) } else { None }
    }

    /// The number of descriptors of the queue.
    pub const fn size(self) -> u16 {
        self.size
    }

    /// The offsets in bytes of the ring of available requests, of the ring of used requests, of the
    /// tables, and of the end.
    const fn offsets(self) -> [usize; 4] {
        let size = self.size as usize;
        let available = DESCRIPTOR * size;
        let used = (available + 2 * self.available()).next_multiple_of(4);
        let tables = (used + 4 * self.used()).next_multiple_of(DESCRIPTOR);
        [available, used, tables, tables + DESCRIPTOR * size * self.entries as usize]
    }

    /// The number of 16-bit words of the ring of available requests: flags, count, one descriptor
    /// index for each request, and the entry of the other ring at which the driver wants an
    /// interrupt.
    pub(crate) const fn available(self) -> usize {
        self.size as usize + 3
    }

    /// The number of 32-bit words of the ring of used requests: flags and count, two for each
    /// request, and the entry of the other ring at which the device wants a notification.
    pub(crate) const fn used(self) -> usize {
        2 * self.size as usize + 2
    }

    /// The size of the queue's memory in bytes. The memory must begin at a multiple of 16.
    pub const fn bytes(self) -> usize {
        self.offsets()[3]
    }
}

/// The addresses at which the device finds the parts of a queue's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
    pub(crate) tables: u64,
}

/// The memory of a queue. Every content of it is valid, since the device may write anything.
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
    /// Uses the memory at `address`, which the device reaches at `physical`. Both are multiples of
    /// 16. The memory must be zero.
    ///
    /// # Safety
    /// [`Layout::bytes`] bytes at `address` must stay mapped as long as the program runs, and only
    /// this value and the device may use them.
    pub unsafe fn at(address: u64, physical: u64, layout: Layout) -> QueueMemory<'static> {
        let [available, used, tables, _] = layout.offsets();
        let at = |offset: usize| address + offset as u64;
        // SAFETY: the caller promises that the memory is mapped and used by nothing else. The
        // offsets keep the alignment of each type, the parts do not overlap, and all fields are
        // atomic.
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
    /// The addresses of the parts of a queue's memory that begins at `physical`.
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
    /// Uses the `length` bytes at `address`, which the device reaches at `physical`.
    ///
    /// # Safety
    /// The bytes must stay mapped as long as the program runs, and only this value and the device
    /// may use them.
    pub unsafe fn at(address: u64, physical: u64, length: usize) -> Buffer<'static> {
        // SAFETY: the caller promises that the memory is mapped and used by nothing else. Every
        // content is valid, and all bytes are atomic.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const AtomicU8, length) };
        Buffer { bytes, physical }
    }
}

impl Buffer<'_> {
    /// The number of bytes in the buffer.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The first `length` bytes of the buffer, or all if it has fewer, as a piece of a request.
    pub fn piece(&self, length: usize) -> Piece {
        // The device's field for the length of a piece has 32 bits.
        let length = length.min(self.bytes.len()).min(u32::MAX as usize);
        Piece { address: self.physical, length: length as u32 }
    }

    /// Calls `take` with each of the first `count` bytes, or with all bytes if there are fewer.
    pub fn read_each(&self, count: usize, take: impl FnMut(u8)) {
        self.bytes.iter().take(count).map(|byte| byte.load(Ordering::Relaxed)).for_each(take);
    }

    /// Writes `bytes` to the beginning of the buffer, as far as they fit. Returns how many fit.
    pub fn write(&self, bytes: impl Iterator<Item = u8>) -> usize {
        self.bytes.iter().zip(bytes).map(|(place, byte)| place.store(byte, Ordering::Relaxed)).count()
    }
}
