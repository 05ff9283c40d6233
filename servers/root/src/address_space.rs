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

/// Most regions of one server, so that no server can fill root's own memory with notes about single
/// pages.
const MOST_REGIONS: usize = 4096;

/// The regions of a server's space and its quota of memory.
pub(crate) struct AddressSpace {
    index: ServerIndex,
    quota: Quota,
    regions: BTreeMap<u64, Region>,
}

/// Something that was put into the space in one go.
struct Region {
    pages: u64,
    content: Content,
    /// Whether the whole range is mapped, and no request is taking it away.
    settled: bool,
}

enum Content {
    /// The server's own memory, in these physical blocks.
    Memory(Vec<Block>),
    /// What lies at this physical address and stays root's: a module, a device.
    Borrowed(u64),
}

/// Why new memory was not mapped.
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

    /// Memory of the server's own, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.quota.used()
    }

    /// How much memory of its own the server may have, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.quota.used() + self.quota.left()
    }

    /// How many bytes the server could still be given.
    pub(crate) fn available(&self, frames: &Frames) -> u64 {
        self.quota.left().min(frames.free())
    }

    /// Takes `pages` new pages for `address`, where they are not yet. The caller fills and maps
    /// them, and says at the end that they are [settled](Self::settle) or [takes them
    /// back](Self::take_out).
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

    /// Request: `size` bytes of memory at `address`, where nothing may be.
    pub(crate) fn allocate(
        &mut self,
        memory: (&mut Frames, &impl Machine),
        thread: ThreadId,
        address: u64,
        size: u64,
        initially: Initially,
    ) -> Result<Fill, Status> {
        self.check_free(address, size)?;
        // The server maps pages of such a pool into the spaces that it owns. They may hold code
        // there.
        let rights = if initially == Initially::AsItIs { Rights::ALL } else { Rights::READ_WRITE };
        Ok(self.reserve_memory(memory, thread, address, size / PAGE, initially, rights)?)
    }

    /// The region at `address` is complete: it is mapped as it was asked for.
    pub(crate) fn settle(&mut self, address: u64) {
        self.regions.entry(address).and_modify(|region| region.settled = true);
    }

    /// All regions are complete: they are mapped as they were asked for.
    pub(crate) fn settle_all(&mut self) {
        self.regions.values_mut().for_each(|region| region.settled = true);
    }

    /// Request: the memory at `address`, all of it that was allocated together, is to be taken
    /// back. The caller unmaps it, and [takes it out](Self::take_out) then. Returns how many pages
    /// it has.
    pub(crate) fn unsettle(&mut self, address: u64, size: u64) -> Result<u64, Status> {
        match self.regions.get_mut(&address) {
            Some(region) if region.settled && region.pages.checked_mul(PAGE) == Some(size) => {
                region.settled = false;
                Ok(region.pages)
            }
            _ => Err(Status::InvalidArgument),
        }
    }

    /// Request: the module read-only in the room from `room` on, or where it is already. Returns
    /// where its content begins.
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

    /// Maps what stays root's: `size` bytes from `physical` on at `address`, where nothing may be;
    /// all whole pages.
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

    /// Takes note of what is to be mapped at `address` and stays root's; the rest is as with
    /// [`reserve_memory`](Self::reserve_memory).
    pub(crate) fn note_borrowed(&mut self, address: u64, physical: u64, size: u64) -> Result<(), Status> {
        self.check_free(address, size)?;
        let content = Content::Borrowed(physical);
        self.regions.insert(address, Region { pages: size / PAGE, content, settled: false });
        Ok(())
    }

    /// Whether what begins at this physical address, and stays root's, is mapped.
    pub(crate) fn has_borrowed(&self, physical: u64) -> bool {
        let mut regions = self.regions.values();
        regions.any(|region| matches!(region.content, Content::Borrowed(start) if start == physical))
    }

    /// Counts against the quota `size` bytes of memory that other spaces have, too.
    pub(crate) fn reserve(&mut self, size: u64) -> Result<(), Status> {
        self.quota.take(size).map_err(|_| Status::QuotaExceeded)
    }

    /// Takes back what [`reserve`](Self::reserve) counted.
    pub(crate) fn give_back(&mut self, size: u64) {
        self.quota.give_back(size);
    }

    /// Whether the server may have something at `address`: whole pages where nothing is.
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

    /// The address of each page that is mapped.
    #[cfg(test)]
    pub(crate) fn addresses(&self) -> Vec<u64> {
        let pages = |(&at, region): (&u64, &Region)| (0..region.pages).map(move |page| at + page * PAGE);
        self.regions.iter().flat_map(pages).collect()
    }

    /// Takes the region at `address`, which is not mapped any more, back.
    pub(crate) fn take_out(&mut self, frames: &mut Frames, address: u64) {
        let Some(region) = self.regions.remove(&address) else { return };
        if let Content::Memory(blocks) = region.content {
            blocks.iter().for_each(|block| frames.release(self.index, &block.range));
            self.quota.give_back(region.pages * PAGE);
        }
    }

    /// Takes back all memory of an address space that no longer exists.
    pub(crate) fn clear(&mut self, frames: &mut Frames) {
        frames.release_all(self.index);
        self.regions.clear();
        self.quota.give_back(self.quota.used());
    }
}

/// Maps what root has at `source` into the space of `thread`, by the largest pages.
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
