//! What lies in a server's own address space, as far as root has put it there: memory, boot modules, device memory.

use crate::frames::{self, Fill, Frames};
use crate::modules::Module;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use l4::extension;
use root::executable::{PAGE, PROGRAM_END};
use root::pages;
use root::quota::Quota;
use root::thread_numbers::ServerIndex;
use rt::root::Status;
use rt::root::memory::LARGE_PAGE;
use x2::extension::{MapItem, MapOperation};
use x2::{ErrorCode, Fpage, Rights, ThreadId};

/// Most regions of one server, so that no server can fill root's own memory with notes about single pages.
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
}

enum Content {
    /// The server's own, in these physical blocks.
    Memory(Vec<Range<u64>>),
    /// What lies at this physical address and stays root's: a module, a device.
    Borrowed(u64),
}

/// Why new memory was not mapped.
pub(crate) enum MapError {
    Quota { wanted: u64, left: u64 },
    Machine,
    Kernel(Option<ErrorCode>),
}

impl From<MapError> for Status {
    fn from(error: MapError) -> Status {
        match error {
            MapError::Quota { .. } => Status::QuotaExceeded,
            MapError::Machine | MapError::Kernel(_) => Status::NoMemory,
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
            MapError::Kernel(error) => format!("the kernel refused to map its memory: {error:?}"),
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

    /// How much of it there may be.
    pub(crate) fn limit(&self) -> u64 {
        self.quota.used() + self.quota.left()
    }

    /// How many bytes it could still be given.
    pub(crate) fn available(&self, frames: &Frames) -> u64 {
        self.quota.left().min(frames.free())
    }

    /// Puts `pages` new pages at `address`, filled in that way, with `content` at their beginning.
    pub(crate) fn add_memory(
        &mut self,
        frames: &mut Frames,
        thread: ThreadId,
        address: u64,
        pages: u64,
        (content, fill): (&[u8], Fill),
        rights: Rights,
    ) -> Result<(), MapError> {
        let (wanted, left) = (pages * PAGE, self.quota.left());
        self.quota.take(wanted).map_err(|_| MapError::Quota { wanted, left })?;
        let Ok(blocks) = frames.allocate(self.index, pages, fill) else {
            self.quota.give_back(wanted);
            return Err(MapError::Machine);
        };
        let mut offset = 0;
        let mut result = Ok(());
        for block in &blocks {
            let size = block.end - block.start;
            frames::write(block, 0, part(content, offset, size));
            result = result.and_then(|()| map(thread, address + offset, block.start, size, rights));
            offset += size;
        }
        self.regions.insert(address, Region { pages, content: Content::Memory(blocks) });
        result.map_err(|error| {
            self.remove(frames, thread, address);
            MapError::Kernel(error)
        })
    }

    /// Request: `size` bytes of memory at `address`, where nothing may be.
    pub(crate) fn allocate(
        &mut self,
        frames: &mut Frames,
        thread: ThreadId,
        address: u64,
        size: u64,
        fill: Fill,
    ) -> Result<(), Status> {
        self.check_free(address, size)?;
        // A pool is for what the server maps into its own spaces, which may be code.
        let rights = if fill == Fill::AsItIs { Rights::ALL } else { Rights::READ_WRITE };
        self.add_memory(frames, thread, address, size / PAGE, (&[], fill), rights)?;
        Ok(())
    }

    /// Request: takes back the memory at `address`, all of it that was allocated together.
    pub(crate) fn free(
        &mut self,
        frames: &mut Frames,
        thread: ThreadId,
        address: u64,
        size: u64,
    ) -> Result<(), Status> {
        match self.regions.get(&address) {
            Some(region) if region.pages.checked_mul(PAGE) == Some(size) => {
                self.remove(frames, thread, address);
                Ok(())
            }
            _ => Err(Status::InvalidArgument),
        }
    }

    /// Request: the module read-only in the room from `room` on, or where it is already. Returns where its content begins.
    pub(crate) fn map_module(&mut self, thread: ThreadId, room: u64, module: Module) -> Result<u64, Status> {
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
        if module.size > 0 {
            let size = (in_page + module.size).next_multiple_of(PAGE);
            self.add_borrowed(thread, address, first, size, Rights::READ_EXECUTE)?;
        }
        Ok(address + in_page)
    }

    /// Maps what stays root's: `size` bytes from `physical` on at `address`, where nothing may be; all whole pages.
    pub(crate) fn add_borrowed(
        &mut self,
        thread: ThreadId,
        address: u64,
        physical: u64,
        size: u64,
        rights: Rights,
    ) -> Result<(), Status> {
        self.check_free(address, size)?;
        let pages = size / PAGE;
        if map(thread, address, physical, size, rights).is_err() {
            unmap(thread, address, pages);
            return Err(Status::NoMemory);
        }
        self.regions.insert(address, Region { pages, content: Content::Borrowed(physical) });
        Ok(())
    }

    /// Whether what begins at this physical address, and stays root's, is mapped.
    pub(crate) fn has_borrowed(&self, physical: u64) -> bool {
        let mut regions = self.regions.values();
        regions.any(|region| matches!(region.content, Content::Borrowed(start) if start == physical))
    }

    /// Counts `size` bytes against the quota that are not this space's alone.
    pub(crate) fn reserve(&mut self, size: u64) -> Result<(), Status> {
        self.quota.take(size).map_err(|_| Status::QuotaExceeded)
    }

    /// Counts them no more.
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

    /// Takes the region at `address` back.
    fn remove(&mut self, frames: &mut Frames, thread: ThreadId, address: u64) {
        let Some(region) = self.regions.remove(&address) else { return };
        unmap(thread, address, region.pages);
        if let Content::Memory(blocks) = region.content {
            blocks.iter().for_each(|block| frames.release(self.index, block));
            self.quota.give_back(region.pages * PAGE);
        }
    }

    /// Takes everything back when the space itself is gone.
    pub(crate) fn clear(&mut self, frames: &mut Frames) {
        frames.release_all(self.index);
        self.regions.clear();
        self.quota.give_back(self.quota.used());
    }
}

/// The part of `content` that belongs to `size` bytes from `offset` on.
fn part(content: &[u8], offset: u64, size: u64) -> &[u8] {
    let length = content.len() as u64;
    &content[offset.min(length) as usize..(offset + size).min(length) as usize]
}

/// Maps what root has at `source` into the space of `thread`, by the largest pages.
fn map(
    thread: ThreadId,
    address: u64,
    source: u64,
    size: u64,
    rights: Rights,
) -> Result<(), Option<ErrorCode>> {
    pages::runs(address, source, size).try_for_each(|run| {
        let target = Fpage::memory(run.address, run.size_log2).with_rights(rights);
        let mut items = [MapItem::new(MapOperation::Map, target, run.count, run.source)];
        extension::map_control(thread, &mut items).map_err(|(_, error)| error)
    })
}

fn unmap(thread: ThreadId, address: u64, pages: u64) {
    for run in pages::runs(address, address, pages * PAGE) {
        let target = Fpage::memory(run.address, run.size_log2).with_rights(Rights::ALL);
        let mut items = [MapItem::new(MapOperation::Unmap, target, run.count, 0)];
        extension::map_control(thread, &mut items).expect("unmapping never fails");
    }
}
