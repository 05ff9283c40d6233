//! The registers of the device, and the memory that it uses.
#![allow(unsafe_code, reason = "the registers and the memory of a device are not Rust objects")]

use block::PAGE;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use nvme::command::WORDS;
use nvme::controller::{self, REGISTERS};
use nvme::identify;
use nvme::pages::LIST_BYTES;
use nvme::queue::{COMPLETION, Queue};
use rt::root::{Status, device, memory};

/// The address at which the registers are mapped.
const REGISTERS_AT: u64 = 0x100_0000_0000;
/// The address of the memory that the device uses, and its size.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 128 << 10;
/// The entries of each queue.
pub(crate) const ENTRIES: u16 = 64;
/// The parts of the memory: the admin queues, the I/O queues, the page for descriptions, the ranges
/// of commands that discard, and the lists of pages.
pub(crate) const ADMIN_COMMANDS: u64 = 0;
pub(crate) const ADMIN_COMPLETIONS: u64 = PAGE;
pub(crate) const COMMANDS: u64 = 2 * PAGE;
pub(crate) const COMPLETIONS: u64 = 3 * PAGE;
pub(crate) const DESCRIPTIONS: u64 = 4 * PAGE;
const RANGES: u64 = 5 * PAGE;
const RANGE_BYTES: u64 = 16;
pub(crate) const LISTS: u64 = 6 * PAGE;
const _: () = assert!(4 * (WORDS as u64) * (ENTRIES as u64) <= PAGE && RANGE_BYTES * ENTRIES as u64 <= PAGE);
const _: () = assert!(LISTS + LIST_BYTES * ENTRIES as u64 <= DMA_SIZE);

/// The registers, which are mapped.
pub(crate) struct Mapped(());

impl Mapped {
    /// Maps the registers at this physical address. Called once.
    ///
    /// # Errors
    /// Root's status.
    pub(crate) fn open(base: u64) -> Result<Mapped, Status> {
        device::map_device(base, REGISTERS, REGISTERS_AT)?;
        Ok(Mapped(()))
    }
}

/// The memory that the device uses: its address for the device.
pub(crate) struct Memory(u64);

impl controller::Registers for Mapped {
    fn read(&mut self, offset: u32) -> u32 {
        assert!(u64::from(offset) < REGISTERS && offset.is_multiple_of(4), "it is a register");
        // SAFETY: a `Mapped` is made when the registers are mapped at this address, uncached;
        // nothing unmaps them. Reading one does not affect Rust's memory.
        unsafe { ((REGISTERS_AT + u64::from(offset)) as *const u32).read_volatile() }
    }

    fn write(&mut self, offset: u32, value: u32) {
        assert!(u64::from(offset) < REGISTERS && offset.is_multiple_of(4), "it is a register");
        // SAFETY: as for `read`. The device writes only to memory whose addresses the driver
        // has told it, and that memory is accessed as shared with a device.
        unsafe { ((REGISTERS_AT + u64::from(offset)) as *mut u32).write_volatile(value) }
    }
}

impl Memory {
    /// Allocates the memory, which is zero.
    ///
    /// # Errors
    /// Root's status.
    pub(crate) fn allocate() -> Result<Memory, Status> {
        memory::allocate_dma(DMA, DMA_SIZE, 64).map(Memory)
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// The queues in it must be gone, and the device must be stopped.
    pub(crate) unsafe fn free(self) -> Result<(), Status> {
        // SAFETY: the caller promises that nothing uses the memory.
        unsafe { memory::free(DMA, DMA_SIZE) }
    }

    /// The address of a part for the device.
    pub(crate) fn address(&self, offset: u64) -> u64 {
        self.0 + offset
    }

    /// The words of 32 bits at an offset of the memory.
    ///
    /// # Safety
    /// They must not be used after the memory was freed.
    unsafe fn words(offset: u64, count: usize) -> &'static [AtomicU32] {
        // SAFETY: a `Memory` is made when the memory is mapped at this address, and all parts
        // lie within it. Every content is valid, and all words are atomic.
        unsafe { core::slice::from_raw_parts((DMA + offset) as *const AtomicU32, count) }
    }

    /// A queue in this memory, which is zero there. It is dropped before the memory is freed.
    pub(crate) fn queue(&self, commands: u64, completions: u64) -> Queue<'static> {
        let entries = usize::from(ENTRIES);
        // SAFETY: `Disk::stop` drops the queue of a device that runs before it frees the
        // memory, and the admin queue ends with `Disk::start`.
        let (commands, completions) = unsafe {
            (Memory::words(commands, entries * WORDS), Memory::words(completions, entries * COMPLETION))
        };
        Queue::new(commands, completions)
    }

    /// The description that the controller has written.
    pub(crate) fn description(&self) -> [u8; identify::BYTES] {
        let mut bytes = [0; identify::BYTES];
        // SAFETY: the words are used here only, while the memory is there.
        let words = unsafe { Memory::words(DESCRIPTIONS, identify::BYTES / 4) };
        for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        bytes
    }

    /// Writes the range of a command that discards. Returns its address for the device.
    pub(crate) fn write_range(&self, id: u16, range: [u32; 4]) -> u64 {
        let offset = RANGES + RANGE_BYTES * u64::from(id);
        // SAFETY: as above.
        let words = unsafe { Memory::words(offset, range.len()) };
        words.iter().zip(range).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        self.0 + offset
    }

    /// Writes an address into the list of a command.
    pub(crate) fn write_list(&self, id: u16, index: usize, page: u64) {
        assert!(id < ENTRIES && index < (LIST_BYTES / 8) as usize, "the list has such an entry");
        let address = DMA + LISTS + LIST_BYTES * u64::from(id) + 8 * index as u64;
        // SAFETY: the place lies in the memory, is aligned, and every content is valid.
        unsafe { (*(address as *const AtomicU64)).store(page, Ordering::Relaxed) }
    }
}
