//! The interface between the library and the machine below it: translation, frames, threads, time,
//! processors.
//!
//! [`Machine`] is implemented by the L4 layer of the Mach server and by `simulated::Simulated`. It
//! is a parameter of every type of the library, never a trait object, so a page costs no indirect
//! call.
//!
//! Two things keep the library free of page tables (section 11.1 of the thesis on Darwin over L4).
//! The machine may throw away a translation at any time: the next access faults, and the map can
//! enter the translation again. One call revokes the rights to a *frame* in all address spaces
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
    Attempt, Event, ExecutionContext, NonblockingHandler, PageFault, Resume, SystemCall, Times, UserMessage,
};
pub use exception::{ExceptionCause, ExceptionState, ProcessorException};
pub use state::{Breakpoints, ThreadState};

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
        /// Stores. Hardware has no write-only pages, so this right implies loads once a page is
        /// mapped.
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
    /// All rights.
    pub const ALL: Self = Self::all();
}

bitflags::bitflags! {
    /// What the hardware has recorded about a page.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PageStatus: u8 {
        /// The page has been accessed.
        const REFERENCED = 1;
        /// The page has been written.
        const MODIFIED = 2;
    }
}

/// How accesses to a page of device memory are cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Write-back, as for ordinary memory.
    #[default]
    Default,
    /// Not cached; for registers of devices.
    Uncached,
    /// Not cached, but writes are combined; for frame buffers.
    WriteCombined,
}

/// The number of a base-size page of memory that the machine has given to the library.
///
/// Numbers are dense enough to index an array of [`Machine::frame_limit`] elements. Neighbouring
/// numbers are neighbouring memory, and a number's alignment is the memory's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub u32);

/// The memory that a virtual page is mapped to.
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
        /// The first virtual address of the page.
        address: u64,
        /// The memory that the page is mapped to.
        page: PhysicalPage,
        /// The size of the page as a shift: one of [`Machine::page_shifts`].
        shift: u32,
        /// The rights of the page (write implies read).
        protection: Protection,
    },
    /// Unmaps everything in the range.
    Remove {
        /// The first virtual address of the range.
        address: u64,
        /// The length of the range in bytes.
        length: u64,
    },
    /// Removes the rights that are not in `protection` from all mappings in the range. No right is
    /// added.
    Protect {
        /// The first virtual address of the range.
        address: u64,
        /// The length of the range in bytes.
        length: u64,
        /// The rights that remain, where they exist.
        protection: Protection,
    },
}

/// The error that there is no kernel memory for a [`PmapChange::Enter`]. Changes before `index`
/// have been made, that one and those after it have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmapFull {
    /// The index of the change that failed.
    pub index: usize,
}

/// The machine. All methods that do not return a future are short and do not block: they may be
/// called while spin locks are held.
pub trait Machine: Send + Sync + Sized + 'static {
    /// An address space's translation.
    type Pmap: Send + Sync;
    /// A reference to an address space, by which threads are made in it; it may outlive the space.
    type Space: Clone + Send + Sync;
    /// A thread of the machine.
    type Thread: ExecutionContext;

    /// The page sizes that can be mapped, as shifts in ascending order; the first is
    /// [`PAGE_SHIFT`].
    fn page_shifts(&self) -> &[u32];

    // Address spaces

    /// Makes a new, empty address space.
    fn pmap_create(&self) -> impl Future<Output = KernResult<Self::Pmap>> + Send;

    /// Ends an address space and every translation in it. Its threads must have ended. It cannot
    /// fail; work that takes time is done after the call has returned.
    fn pmap_destroy(&self, pmap: Self::Pmap);

    /// The reference to an address space.
    fn space(&self, pmap: &Self::Pmap) -> Self::Space;

    /// Makes the changes in order, in as few system calls as possible.
    ///
    /// Only [`PmapChange::Enter`] can fail. The machine may revoke more than it is asked to: if a
    /// large page cannot be split for lack of kernel memory, all of it is unmapped.
    fn pmap_change(&self, pmap: &Self::Pmap, changes: &[PmapChange]) -> Result<(), PmapFull>;

    /// Reads and clears the status of the pages that are mapped at `addresses`. There is one status
    /// for each address, empty if nothing is mapped there.
    fn pmap_query(&self, pmap: &Self::Pmap, addresses: &[u64], status: &mut [PageStatus]);

    // Frames

    /// An upper bound of the frame numbers: all are below it.
    fn frame_limit(&self) -> u32;

    /// The number of free frames.
    fn free_frames(&self) -> u32;

    /// Allocates a run of 2^`order` frames, aligned to its size. The contents are undefined. `None`
    /// if there is no such run.
    fn allocate_frames(&self, order: u32) -> Option<Frame>;

    /// Frees a run of 2^`order` aligned frames, which must not be mapped. They need not have been
    /// allocated as one run.
    fn release_frames(&self, first: Frame, order: u32);

    /// Clears a frame.
    fn zero_frame(&self, frame: Frame);

    /// Copies a whole frame.
    fn copy_frame(&self, from: Frame, to: Frame);

    /// Copies bytes out of a frame. `offset + buffer.len()` is at most [`PAGE_SIZE`].
    fn read_frame(&self, frame: Frame, offset: usize, buffer: &mut [u8]);

    /// Copies bytes into a frame. `offset + bytes.len()` is at most [`PAGE_SIZE`].
    fn write_frame(&self, frame: Frame, offset: usize, bytes: &[u8]);

    /// Copies `length` bytes from one frame to another, each at its offset. `offset + length` is at
    /// most [`PAGE_SIZE`] for both.
    fn copy_between(&self, from: (Frame, usize), to: (Frame, usize), length: usize);

    /// Loads the aligned word at `offset` of a frame atomically.
    fn load_u32(&self, frame: Frame, offset: usize) -> u32;

    /// Atomically replaces the aligned word at `offset` if it is `current`. Returns the old value,
    /// as `Err` if it was not `current`.
    fn compare_exchange_u32(&self, frame: Frame, offset: usize, current: u32, new: u32) -> Result<u32, u32>;

    /// Removes the rights that are not in `protection` from every mapping of these frames, in every
    /// address space.
    fn frames_protect(&self, frames: &[Frame], protection: Protection);

    /// Reads and clears the status of these frames over all address spaces.
    fn frames_status(&self, frames: &[Frame], status: &mut [PageStatus]);

    /// Reserves `bytes` of the server's own memory for a structure that is about to be made.
    /// Returns false if the limit is reached. The allocator must be able to deliver all reserved
    /// memory.
    fn reserve_memory(&self, bytes: usize) -> bool;

    /// Gives back what [`reserve_memory`](Self::reserve_memory) granted.
    fn unreserve_memory(&self, bytes: usize);

    // Threads

    /// Makes a thread in an address space, with all registers zero. It does not run before it is
    /// answered or unstopped. Fails with `Terminated` if the space has ended. If the future is
    /// dropped, no thread is left.
    fn thread_create(&self, space: &Self::Space) -> impl Future<Output = KernResult<Self::Thread>> + Send;

    /// The most bytes of a thread's extended state in XSAVE's standard format.
    fn extended_state_size(&self) -> usize;

    // Time and processors

    /// Microseconds since the machine started; never goes back.
    fn now(&self) -> u64;

    /// Waits until [`now`](Self::now) is at least `time`.
    fn sleep_until(&self, time: u64) -> impl Future<Output = ()> + Send;

    /// How many processors there are, numbered from 0.
    fn processors(&self) -> usize;

    /// The processor that executes this call.
    fn current_processor(&self) -> usize;

    /// Interrupts what other processors execute: when the call returns, each processor on which a
    /// thread of a program ran has executed a full barrier of memory and an instruction that
    /// serialises since the call began.
    fn synchronize_processors(&self);
}
