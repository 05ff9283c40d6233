//! What lies in a server's own address space, as far as root has put it there: memory, boot
//! modules, device memory.

use crate::executable::{PAGE, PROGRAM_END};
use crate::fill::Fill;
use crate::frames::{Block, Frames, Initially};
use crate::machine::Machine;
use crate::modules::Module;
use crate::pages;
use crate::quota::Quota;
use crate::step::{self, Step};
use crate::thread_numbers::ServerIndex;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rt::root::Status;
use rt::root::memory::LARGE_PAGE;
use x2::{Rights, ThreadId};

/// Upper bound of the number of regions of one server, so that no server can fill root's own memory
/// with records of single pages.
const MOST_REGIONS: usize = 4096;

/// The regions of a server's space and its quota of memory.
pub(crate) struct AddressSpace {
    index: ServerIndex,
    quota: Quota,
    regions: BTreeMap<u64, Region>,
}

/// A contiguous range of the address space that was added by one request.
struct Region {
    pages: u64,
    content: Content,
    /// Whether the whole range is mapped, and no request is unmapping it.
    settled: bool,
}

enum Content {
    /// Memory that belongs to the server and lies in these physical blocks.
    Memory(Vec<Block>),
    /// Memory that stays root's, at this physical address: a boot module or device memory.
    Borrowed(u64),
}

/// Why new memory was not mapped into a server's space.
pub(crate) enum MapError {
    Quota { wanted: u64, left: u64 },
    Machine,
}

impl From<MapError> for Status {
    fn from(error: MapError) -> Status {
        match error {
            MapError::Quota { .. } => Status::QuotaExceeded,
            MapError::Machine => Status::NoMemory,
        }
    }
}

impl From<MapError> for String {
    fn from(error: MapError) -> String {
        match error {
            MapError::Quota { wanted, left } => format!(
                "its memory does not suffice: {} KiB more are needed and {} KiB left",
                wanted >> 10,
                left >> 10
            ),
            MapError::Machine => String::from("the machine's memory does not suffice"),
        }
    }
}

impl AddressSpace {
    pub(crate) fn new(index: ServerIndex, quota: u64) -> AddressSpace {
        AddressSpace { index, quota: Quota::new(quota), regions: BTreeMap::new() }
    }

    /// Memory that belongs to the server, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.quota.used()
    }

    /// How much memory the server may own, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.quota.used() + self.quota.left()
    }

    /// How many more bytes the server could be given: limited by its quota and by free memory.
    pub(crate) fn available(&self, frames: &Frames) -> u64 {
        self.quota.left().min(frames.free())
    }

    /// Allocates `pages` pages of physical memory for `address`, and records them as not yet
    /// mapped. The caller fills and maps them; then it [settles](Self::settle) the region, or
    /// [takes it out](Self::take_out) if mapping failed.
    pub(crate) fn reserve_memory(
        &mut self,
        (frames, machine): (&mut Frames, &impl Machine),
        thread: ThreadId,
        address: u64,
        pages: u64,
        initially: Initially,
        rights: Rights,
    ) -> Result<Fill, MapError> {
        let (wanted, left) = (pages * PAGE, self.quota.left());
        self.quota.take(wanted).map_err(|_| MapError::Quota { wanted, left })?;
        let Ok(blocks) = frames.allocate(machine, self.index, pages, initially) else {
            self.quota.give_back(wanted);
            return Err(MapError::Machine);
        };
        let content = Content::Memory(blocks.clone());
        self.regions.insert(address, Region { pages, content, settled: false });
        Ok(Fill::new(thread, address, blocks, rights))
    }

    /// Carries out the request for `size` bytes of memory at `address`, where the space must be
    /// empty.
    pub(crate) fn allocate(
        &mut self,
        memory: (&mut Frames, &impl Machine),
        thread: ThreadId,
        address: u64,
        size: u64,
        initially: Initially,
    ) -> Result<Fill, Status> {
        self.check_free(address, size)?;
        // Memory that is given out with any content is a pool: the server maps its pages into the
        // spaces that it owns, which may hold code there. So the rights include execution.
        let rights = if initially == Initially::AsItIs { Rights::ALL } else { Rights::READ_WRITE };
        Ok(self.reserve_memory(memory, thread, address, size / PAGE, initially, rights)?)
    }

    /// Records that the whole region at `address` is mapped.
    pub(crate) fn settle(&mut self, address: u64) {
        self.regions.entry(address).and_modify(|region| region.settled = true);
    }

    /// Records that all regions of the space are mapped.
    pub(crate) fn settle_all(&mut self) {
        self.regions.values_mut().for_each(|region| region.settled = true);
    }

    /// Begins to free the region at `address`. `size` must be that of the whole region, in bytes.
    /// The caller unmaps the region, then calls [`take_out`](Self::take_out). Returns the number of
    /// pages.
    pub(crate) fn unsettle(&mut self, address: u64, size: u64) -> Result<u64, Status> {
        match self.regions.get_mut(&address) {
            Some(region) if region.settled && region.pages.checked_mul(PAGE) == Some(size) => {
                region.settled = false;
                Ok(region.pages)
            }
            _ => Err(Status::InvalidArgument),
        }
    }

    /// Carries out the request to map a boot module read-only: at `room`, or where it is mapped
    /// already. Returns the address of the module's first byte.
    pub(crate) fn map_module(
        &mut self,
        machine: &mut impl Machine,
        thread: ThreadId,
        room: u64,
        module: Module,
    ) -> Result<u64, Status> {
        let (first, in_page) = (module.start & !(PAGE - 1), module.start % PAGE);
        let present = self
            .regions
            .iter()
            .find(|(_, region)| matches!(region.content, Content::Borrowed(physical) if physical == first));
        if let Some((address, _)) = present {
            return Ok(address + in_page);
        }
        if !room.is_multiple_of(LARGE_PAGE) {
            return Err(Status::InvalidArgument);
        }
        let address = room.checked_add(first % LARGE_PAGE).ok_or(Status::InvalidArgument)?;
        if module.size() > 0 {
            let size = (in_page + module.size()).next_multiple_of(PAGE);
            self.add_borrowed(machine, thread, address, first, size, Rights::READ_EXECUTE)?;
        }
        Ok(address + in_page)
    }

    /// Maps memory that stays root's: `size` bytes from `physical` on at `address`, where the space
    /// must be empty. All three are multiples of the page size.
    pub(crate) fn add_borrowed(
        &mut self,
        machine: &mut impl Machine,
        thread: ThreadId,
        address: u64,
        physical: u64,
        size: u64,
        rights: Rights,
    ) -> Result<(), Status> {
        self.note_borrowed(address, physical, size)?;
        if map(machine, thread, address, physical, size, rights).is_err() {
            unmap(machine, thread, address, size);
            self.regions.remove(&address);
            return Err(Status::NoMemory);
        }
        self.settle(address);
        Ok(())
    }

    /// Records that memory which stays root's is being mapped at `address`; the caller then calls
    /// [`settle`](Self::settle) or [`take_out`](Self::take_out).
    pub(crate) fn note_borrowed(&mut self, address: u64, physical: u64, size: u64) -> Result<(), Status> {
        self.check_free(address, size)?;
        let content = Content::Borrowed(physical);
        self.regions.insert(address, Region { pages: size / PAGE, content, settled: false });
        Ok(())
    }

    /// Whether memory that stays root's and begins at this physical address is mapped in the space.
    pub(crate) fn has_borrowed(&self, physical: u64) -> bool {
        let mut regions = self.regions.values();
        regions.any(|region| matches!(region.content, Content::Borrowed(start) if start == physical))
    }

    /// The physical memory of the region at `address`, if it is mapped, belongs to the server and
    /// has `size` bytes.
    pub(crate) fn blocks(&self, address: u64, size: u64) -> Option<&[Block]> {
        match self.regions.get(&address)? {
            Region { pages, content: Content::Memory(blocks), settled: true }
                if pages.checked_mul(PAGE) == Some(size) =>
            {
                Some(blocks)
            }
            _ => None,
        }
    }

    /// Counts `size` bytes of memory that is shared with other spaces against the quota.
    pub(crate) fn reserve(&mut self, size: u64) -> Result<(), Status> {
        self.quota.take(size).map_err(|_| Status::QuotaExceeded)
    }

    /// Takes back `size` bytes that [`reserve`](Self::reserve) has counted.
    pub(crate) fn give_back(&mut self, size: u64) {
        self.quota.give_back(size);
    }

    /// Checks that a new region may be at `address`: page-aligned, not empty, below the end of
    /// programs and free.
    pub(crate) fn check_free(&self, address: u64, size: u64) -> Result<(), Status> {
        let end = address.checked_add(size).filter(|&end| end <= PROGRAM_END);
        let end = end.ok_or(Status::InvalidArgument)?;
        let aligned = address.is_multiple_of(PAGE) && size.is_multiple_of(PAGE);
        let last = self.regions.range(..end).next_back();
        let is_free = last.is_none_or(|(&at, region)| at + region.pages * PAGE <= address);
        if !aligned || size == 0 || address == 0 || !is_free {
            return Err(Status::InvalidArgument);
        }
        if self.regions.len() >= MOST_REGIONS { Err(Status::QuotaExceeded) } else { Ok(()) }
    }

    /// The address of each page that is mapped in the space.
    #[cfg(test)]
    pub(crate) fn addresses(&self) -> Vec<u64> {
        let pages = |(&at, region): (&u64, &Region)| (0..region.pages).map(move |page| at + page * PAGE);
        self.regions.iter().flat_map(pages).collect()
    }

    /// Removes the region at `address`, which must not be mapped any more, and frees its memory.
    pub(crate) fn take_out(&mut self, frames: &mut Frames, address: u64) {
        let Some(region) = self.regions.remove(&address) else { return };
        if let Content::Memory(blocks) = region.content {
            blocks.iter().for_each(|block| frames.release(self.index, &block.range));
            self.quota.give_back(region.pages * PAGE);
        }
    }

    /// Frees all memory of an address space that no longer exists.
    pub(crate) fn clear(&mut self, frames: &mut Frames) {
        frames.release_all(self.index);
        self.regions.clear();
        self.quota.give_back(self.quota.used());
    }
}

/// Maps memory from the address `source` in root's space into the space of `thread`, by the largest
/// pages that fit.
fn map(
    machine: &mut impl Machine,
    thread: ThreadId,
    address: u64,
    source: u64,
    size: u64,
    rights: Rights,
) -> step::Result {
    pages::runs(address, source, size).try_for_each(|run| machine.perform(&Step::Map { thread, run, rights }))
}

fn unmap(machine: &mut impl Machine, thread: ThreadId, address: u64, size: u64) {
    for run in pages::runs(address, address, size) {
        machine.perform(&Step::Unmap { thread, run }).expect("unmapping never fails");
    }
}
