//! One server: its program in a space of its own, its first thread, what it may have and how it is taken down.

use crate::frames;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, space, utcb};
use root::configuration;
use root::executable::{Executable, PAGE, PROGRAM_END};
use root::quota::Quota;
use root::ranges::Ranges;
use root::thread_numbers::{ServerIndex, ThreadName, ThreadNumbers};
use rt::root::Status;
use rt::start_page;
use x2::extension::{MapItem, MapOperation};
use x2::{Fpage, Rights, ThreadId};

/// Where its UTCBs lie: room for as many threads as a configuration can give.
const UTCB_AREA: u64 = 0x7ffe_0000_0000;
/// Pages of the first thread's stack.
const STACK_PAGES: u64 = 16;
/// Where it lies; the page below is never mapped.
const STACK: u64 = 0x7ffd_0000_0000;

/// A configured server and, while it runs, what it has.
pub(crate) struct Server {
    pub(crate) configuration: configuration::Server,
    file: &'static [u8],
    index: ServerIndex,
    memory: Quota,
    threads: Quota,
    /// Its memory by address.
    regions: BTreeMap<u64, Region>,
    /// Which thread has each place in its UTCB area.
    utcbs: Vec<Option<ThreadName>>,
    /// Its first thread, while it runs.
    pub(crate) first: Option<ThreadId>,
    /// How often it has been started again.
    pub(crate) restarts: u32,
}

/// Memory of a server: so many pages, in these physical blocks.
struct Region {
    pages: u64,
    blocks: Vec<Range<u64>>,
}

/// The id of a thread.
pub(crate) fn id(name: ThreadName) -> ThreadId {
    ThreadId::global(name.number, name.version).expect("versions make global ids")
}

/// The name of a thread with a global id.
pub(crate) fn name(id: ThreadId) -> ThreadName {
    ThreadName { number: id.number(), version: id.version() }
}

impl Server {
    pub(crate) fn new(
        configuration: configuration::Server,
        file: &'static [u8],
        index: ServerIndex,
        memory: u64,
    ) -> Server {
        let threads = Quota::new(configuration.threads.into());
        let memory = Quota::new(memory);
        let (regions, utcbs) = (BTreeMap::new(), Vec::new());
        Server { configuration, file, index, memory, threads, regions, utcbs, first: None, restarts: 0 }
    }

    /// Starts it. Returns its first thread.
    ///
    /// # Errors
    /// Why it could not be started, for a person; then it has nothing.
    pub(crate) fn start(
        &mut self,
        memory: &mut Ranges,
        numbers: &mut ThreadNumbers,
    ) -> Result<ThreadId, String> {
        let result = self.try_start(memory, numbers);
        match result {
            Ok(thread) => self.first = Some(thread),
            Err(_) => self.take_down(memory, numbers),
        }
        result
    }

    fn try_start(&mut self, memory: &mut Ranges, numbers: &mut ThreadNumbers) -> Result<ThreadId, String> {
        let program = Executable::parse(self.file)?;
        self.threads.take(1).map_err(|_| "it may have no thread")?;
        let name = numbers.allocate(self.index).map_err(|_| "no thread number is free")?;
        let thread = id(name);
        self.utcbs.push(Some(name));
        let me = utcb::my_global_id();
        let create = ThreadControl { space: thread, scheduler: me, pager: ThreadId::NIL, utcb: None };
        let refused = |what: &'static str| move |error| format!("the kernel refused {what}: {error:?}");
        thread::control(thread, create).map_err(refused("a space"))?;
        let utcbs = (u64::from(self.configuration.threads) * x2::utcb::SIZE).next_power_of_two().max(PAGE);
        let areas = (Fpage::memory(start_page::KIP, 12), Fpage::memory(UTCB_AREA, utcbs.ilog2()));
        space::control(thread, 0, areas.0, areas.1, ThreadId::ANY).map_err(refused("its areas"))?;
        extension::set_owner(thread, me).map_err(refused("owning its space"))?;
        for segment in &program.segments {
            let mut rights = Rights::READ;
            for (right, given) in [(Rights::EXECUTE, segment.execute), (Rights::WRITE, segment.write)] {
                if given {
                    rights = rights.or(right);
                }
            }
            self.map_new(memory, thread, segment.address, segment.pages, segment.content, rights)?;
        }
        let page = start_page::encode(&self.configuration.name, &self.configuration.arguments);
        let page = page.ok_or("its name and arguments do not fit a page")?;
        self.map_new(memory, thread, start_page::ADDRESS, 1, &page, Rights::READ)?;
        self.map_new(memory, thread, STACK, STACK_PAGES, &[], Rights::READ_WRITE)?;
        thread::control(thread, ThreadControl { pager: me, utcb: Some(UTCB_AREA), ..create })
            .map_err(refused("its first thread"))?;
        extension::set_handlers(thread, Some(me), None).map_err(refused("handling its exceptions"))?;
        thread::set_priority(thread, self.configuration.priority).map_err(refused("its priority"))?;
        // As after a call: the return address would be at the stack pointer.
        let stack = STACK + STACK_PAGES * PAGE - 8;
        ipc::send(thread, Message::with_words(0, &[program.entry, stack]))
            .map_err(|error| format!("it could not be started: {error:?}"))?;
        Ok(thread)
    }

    /// Gives the server `pages` new pages at `address`, with `content` at their beginning and zeros behind.
    fn map_new(
        &mut self,
        memory: &mut Ranges,
        thread: ThreadId,
        address: u64,
        pages: u64,
        content: &[u8],
        rights: Rights,
    ) -> Result<(), String> {
        self.memory.take(pages * PAGE).map_err(|_| {
            let (pages, left) = ((pages * PAGE) >> 10, self.memory.left() >> 10);
            format!("its memory does not suffice: {pages} KiB more are needed and {left} KiB left")
        })?;
        let Ok(blocks) = frames::allocate(memory, self.index, pages) else {
            self.memory.give_back(pages * PAGE);
            return Err(String::from("the machine's memory does not suffice"));
        };
        let mut offset = 0;
        let mut result = Ok(());
        for block in &blocks {
            let size = block.end - block.start;
            frames::write(block, 0, part(content, offset, size));
            result = result.and_then(|()| map(thread, address + offset, block, rights));
            offset += size;
        }
        self.regions.insert(address, Region { pages, blocks });
        result.map_err(|error| {
            self.unmap(memory, thread, address);
            format!("the kernel refused to map its memory: {error:?}")
        })
    }

    /// Takes the region at `address` back.
    fn unmap(&mut self, memory: &mut Ranges, thread: ThreadId, address: u64) {
        let Some(region) = self.regions.remove(&address) else { return };
        let target = Fpage::memory(address, 12).with_rights(Rights::ALL);
        let mut items = [MapItem::new(MapOperation::Unmap, target, region.pages as u32, 0)];
        extension::map_control(thread, &mut items).expect("unmapping never fails");
        for block in region.blocks {
            memory.release(self.index, block.start, block.end).expect("it was the server's");
        }
        self.memory.give_back(region.pages * PAGE);
    }

    /// Request: `size` bytes of zeroed memory at `address`, where nothing may be.
    pub(crate) fn allocate(&mut self, memory: &mut Ranges, address: u64, size: u64) -> Status {
        let pages = size / PAGE;
        let end = address.checked_add(size).filter(|&end| end <= PROGRAM_END);
        let Some((end, thread)) = end.zip(self.first) else { return Status::InvalidArgument };
        let aligned = address.is_multiple_of(PAGE) && size.is_multiple_of(PAGE);
        let last = self.regions.range(..end).next_back();
        let is_free = last.is_none_or(|(&at, region)| at + region.pages * PAGE <= address);
        if !aligned || pages == 0 || address == 0 || !is_free {
            return Status::InvalidArgument;
        }
        if self.memory.left() < size {
            return Status::QuotaExceeded;
        }
        match self.map_new(memory, thread, address, pages, &[], Rights::READ_WRITE) {
            Ok(()) => Status::Done,
            Err(_) => Status::NoMemory,
        }
    }

    /// Request: takes back the memory at `address`, all of it that was allocated together.
    pub(crate) fn free(&mut self, memory: &mut Ranges, address: u64, size: u64) -> Status {
        match (self.regions.get(&address), self.first) {
            (Some(region), Some(thread)) if region.pages.checked_mul(PAGE) == Some(size) => {
                self.unmap(memory, thread, address);
                Status::Done
            }
            _ => Status::InvalidArgument,
        }
    }

    /// Request: another thread in the server's space, started at `ip` with `sp`.
    pub(crate) fn create_thread(
        &mut self,
        numbers: &mut ThreadNumbers,
        ip: u64,
        sp: u64,
    ) -> Result<ThreadId, Status> {
        let first = self.first.ok_or(Status::InvalidArgument)?;
        self.threads.take(1).map_err(|_| Status::QuotaExceeded)?;
        let Ok(name) = numbers.allocate(self.index) else {
            self.threads.give_back(1);
            return Err(Status::NoMemory);
        };
        let place = self.utcbs.iter().position(Option::is_none).unwrap_or_else(|| {
            self.utcbs.push(None);
            self.utcbs.len() - 1
        });
        self.utcbs[place] = Some(name);
        let (thread, me) = (id(name), utcb::my_global_id());
        let utcb = Some(UTCB_AREA + place as u64 * x2::utcb::SIZE);
        let started = thread::control(thread, ThreadControl { space: first, scheduler: me, pager: me, utcb })
            .and_then(|()| extension::set_handlers(thread, Some(me), None))
            .and_then(|()| thread::set_priority(thread, self.configuration.priority))
            .is_ok()
            && ipc::reply(thread, Message::with_words(0, &[ip, sp])).is_ok();
        if started {
            return Ok(thread);
        }
        self.drop_thread(numbers, name);
        Err(Status::NoMemory)
    }

    /// Request: ends a thread of the server, not its first.
    pub(crate) fn delete_thread(&mut self, numbers: &mut ThreadNumbers, thread: ThreadId) -> Status {
        let is_own = thread.is_global() && numbers.owner(name(thread)) == Some(self.index);
        if !is_own || self.first == Some(thread) {
            return Status::InvalidArgument;
        }
        self.drop_thread(numbers, name(thread));
        Status::Done
    }

    fn drop_thread(&mut self, numbers: &mut ThreadNumbers, name: ThreadName) {
        thread::delete(id(name)).expect("deletion of a thread never fails");
        numbers.free(name);
        self.threads.give_back(1);
        self.utcbs.iter_mut().filter(|place| **place == Some(name)).for_each(|place| *place = None);
    }

    /// Takes everything back that the server has: threads, with them its spaces, and memory.
    pub(crate) fn take_down(&mut self, memory: &mut Ranges, numbers: &mut ThreadNumbers) {
        let threads: Vec<ThreadName> = numbers.of(self.index).collect();
        for thread in threads {
            thread::delete(id(thread)).expect("deletion of a thread never fails");
            numbers.free(thread);
        }
        // The spaces are gone, so nobody has the memory but root.
        let blocks: Vec<(u64, u64)> = memory.of(self.index).collect();
        for (start, end) in blocks {
            memory.release(self.index, start, end).expect("it was the server's");
        }
        self.regions.clear();
        self.utcbs.clear();
        self.threads.give_back(self.threads.used());
        self.memory.give_back(self.memory.used());
        self.first = None;
    }

    /// Memory that it has, in bytes.
    pub(crate) fn memory_used(&self) -> u64 {
        self.memory.used()
    }
}

/// The part of `content` that belongs to `size` bytes from `offset` on.
fn part(content: &[u8], offset: u64, size: u64) -> &[u8] {
    let length = content.len() as u64;
    &content[offset.min(length) as usize..(offset + size).min(length) as usize]
}

fn map(
    thread: ThreadId,
    address: u64,
    block: &Range<u64>,
    rights: Rights,
) -> Result<(), Option<x2::ErrorCode>> {
    let pages = ((block.end - block.start) / PAGE) as u32;
    let target = Fpage::memory(address, 12).with_rights(rights);
    let mut items = [MapItem::new(MapOperation::Map, target, pages, block.start)];
    extension::map_control(thread, &mut items).map_err(|(_, error)| error)
}
