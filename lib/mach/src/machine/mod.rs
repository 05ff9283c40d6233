//! What the library asks of the machine below: translation, frames, threads, time, processors.
//!
//! [`Machine`] is implemented by the L4 layer of the Mach server and by `simulated::Simulated`. It
//! is a parameter of every type of the library, never a trait object, so a page costs no indirect
//! call.
//!
//! Two things keep the library free of page tables (Darwin thesis 11.1). The machine may throw away
//! a translation at any time: the next access faults, and the map has all that it takes to answer.
//! And one call revokes the rights to a *frame* in all address spaces
//! ([`Machine::frames_protect`]), so no list of a page's mappings is kept.

pub mod buddy;
mod context;
mod exception;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
pub mod state;

use core::future::Future;

use crate::KernResult;
pub use context::{
    Event, ExecutionContext, NonblockingHandler, PageFault, Resume, SystemCall, Times, UserMessage,
};
pub use exception::{ExceptionCause, ExceptionState, ProcessorException};
pub use state::ThreadState;

/// Bytes of the base page, as a shift.
pub const PAGE_SHIFT: u32 = 12;
/// Bytes of the base page.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;

bitflags::bitflags! {
    /// Rights to memory, as in Mach's `vm_prot_t`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Protection: u8 {
        /// Loads.
        const READ = 1;
        /// Stores. Hardware has no write-only page: this implies loads once a page is mapped.
        const WRITE = 2;
        /// Instruction fetches.
        const EXECUTE = 4;
    }
}

impl Protection {
    /// No access at all.
    pub const NONE: Self = Self::empty();
    /// Loads and stores, the default of fresh memory.
    pub const DEFAULT: Self = Self::READ.union(Self::WRITE);
    /// Everything.
    pub const ALL: Self = Self::all();
}

bitflags::bitflags! {
    /// What the hardware noticed about a page.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PageStatus: u8 {
        /// Touched.
        const REFERENCED = 1;
        /// Written.
        const MODIFIED = 2;
    }
}

/// How accesses to a page of device memory are cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Write-back, as ordinary memory.
    #[default]
    Default,
    /// Not cached: registers of devices.
    Uncached,
    /// Not cached, but writes are combined: frame buffers.
    WriteCombined,
}

/// The number of a base-size page of memory that the machine has given to the library.
///
/// Numbers are dense enough to index an array of [`Machine::frame_limit`] elements. Neighbouring
/// numbers are neighbouring memory, and a number's alignment is the memory's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub u32);

/// What a virtual page is mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhysicalPage {
    /// A frame of the memory that the library manages.
    Frame(Frame),
    /// Device memory at this physical address, a multiple of the page size.
    Device(u64, Caching),
}

/// One change of an address space's translation. Addresses and lengths are multiples of
/// [`PAGE_SIZE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmapChange {
    /// Maps one page of 2^`shift` bytes, in place of whatever was mapped there. Both sides are
    /// aligned to its size.
    Enter {
        /// First virtual address of the page.
        address: u64,
        /// First byte of memory.
        page: PhysicalPage,
        /// Size of the page as a shift: one of [`Machine::page_shifts`].
        shift: u32,
        /// The page gets exactly these rights (write implies read).
        protection: Protection,
    },
    /// Unmaps everything in the range.
    Remove {
        /// First virtual address.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// Takes the rights outside `protection` from what is mapped in the range; never adds a right.
    Protect {
        /// First virtual address.
        address: u64,
        /// Bytes.
        length: u64,
        /// The rights that remain, at most.
        protection: Protection,
    },
}

/// An [`PmapChange::Enter`] found no kernel memory. Changes before `index` are done, those from it
/// on are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmapFull {
    /// The change that failed.
    pub index: usize,
}

/// The machine. All methods without a future are short and do not block: they may be called in spin
/// sections.
pub trait Machine: Send + Sync + Sized + 'static {
    /// An address space's translation.
    type Pmap: Send + Sync;
    /// Names an address space, to make threads in it; it may outlive the space.
    type Space: Clone + Send + Sync;
    /// A thread of the machine.
    type Thread: ExecutionContext;

    /// Page sizes that can be mapped, as shifts, ascending; the first is [`PAGE_SHIFT`].
    fn page_shifts(&self) -> &[u32];

    // Address spaces

    /// A new, empty address space.
    fn pmap_create(&self) -> impl Future<Output = KernResult<Self::Pmap>> + Send;

    /// Ends an address space and every translation in it. Its threads have ended before. Cannot
    /// fail; what takes time is done after the call has returned.
    fn pmap_destroy(&self, pmap: Self::Pmap);

    /// The name of the address space.
    fn space(&self, pmap: &Self::Pmap) -> Self::Space;

    /// Makes the changes in order, in as few kernel entries as the machine can.
    ///
    /// Only [`PmapChange::Enter`] can fail. The machine may revoke more than asked (a large page
    /// that cannot be split is unmapped whole, K4).
    fn pmap_change(&self, pmap: &Self::Pmap, changes: &[PmapChange]) -> Result<(), PmapFull>;

    /// Reads and clears the status of the pages mapped at `addresses`; one answer each, empty where
    /// nothing is mapped.
    fn pmap_query(&self, pmap: &Self::Pmap, addresses: &[u64], status: &mut [PageStatus]);

    // Frames

    /// One more than the highest frame number there can ever be.
    fn frame_limit(&self) -> u32;

    /// Frames free now.
    fn free_frames(&self) -> u32;

    /// A run of 2^`order` frames aligned to its size, contents undefined, or `None`.
    fn allocate_frames(&self, order: u32) -> Option<Frame>;

    /// Gives back a run of 2^`order` aligned frames. They need not have been allocated as one run,
    /// and are mapped nowhere.
    fn release_frames(&self, first: Frame, order: u32);

    /// Clears a frame.
    fn zero_frame(&self, frame: Frame);

    /// Copies a whole frame.
    fn copy_frame(&self, from: Frame, to: Frame);

    /// Copies bytes out of a frame. `offset + buffer.len()` is at most [`PAGE_SIZE`].
    fn read_frame(&self, frame: Frame, offset: usize, buffer: &mut [u8]);

    /// Copies bytes into a frame. `offset + bytes.len()` is at most [`PAGE_SIZE`].
    fn write_frame(&self, frame: Frame, offset: usize, bytes: &[u8]);

    /// Copies `length` bytes from one frame, at the offset given with it, to another. `offset +
    /// length` is at most [`PAGE_SIZE`] for both.
    fn copy_between(&self, from: (Frame, usize), to: (Frame, usize), length: usize);

    /// Atomically loads the aligned word at `offset` of a frame.
    fn load_u32(&self, frame: Frame, offset: usize) -> u32;

    /// Atomically replaces the aligned word at `offset` if it is `current`. The result holds the
    /// old value.
    fn compare_exchange_u32(&self, frame: Frame, offset: usize, current: u32, new: u32) -> Result<u32, u32>;

    /// Takes the rights outside `protection` from every mapping of these frames, in every address
    /// space.
    fn frames_protect(&self, frames: &[Frame], protection: Protection);

    /// Reads and clears the status of these frames over all address spaces.
    fn frames_status(&self, frames: &[Frame], status: &mut [PageStatus]);

    /// Sets aside `bytes` of the server's own memory for a structure about to be made; false when
    /// its limit is reached. The allocator must be able to deliver all that is granted here.
    fn reserve_memory(&self, bytes: usize) -> bool;

    /// Gives back what [`reserve_memory`](Self::reserve_memory) granted.
    fn unreserve_memory(&self, bytes: usize);

    // Threads

    /// A new thread in an address space, with all registers zero; it does not run before it is
    /// answered or let go. `Terminated` if the space is gone. A future dropped before its end
    /// leaves no thread.
    fn thread_create(&self, space: &Self::Space) -> impl Future<Output = KernResult<Self::Thread>> + Send;

    // Time and processors

    /// Microseconds since the machine started; never goes back.
    fn now(&self) -> u64;

    /// Waits until [`now`](Self::now) is at least `time`.
    fn sleep_until(&self, time: u64) -> impl Future<Output = ()> + Send;

    /// How many processors there are, numbered from 0.
    fn processors(&self) -> usize;
}
