//! A program: its space, its only thread, its memory, and the loop that serves it.

use crate::elf::Executable;
use crate::memory::{self, PAGE, Page};
use crate::{bounce, linux};
use l4::ipc::{self, Message, Received};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, space, utcb};
use x2::extension::{MapItem, MapOperation, SYSTEM_CALL_LABEL, SystemCallAnswer, SystemCallMode};
use x2::protocol::{self, exception};
use x2::{Fpage, Rights, ThreadId};

/// The address of the program's kernel interface page, where Linux programs do not map anything.
pub(crate) const KIP_AREA: u64 = 0x7fff_8000_0000;
/// The address of the process's UTCB area.
const UTCB_AREA: u64 = 0x7fff_8001_0000;
/// The address of the process's UTCB pointer.
pub(crate) const UTCB_POINTER: u64 = UTCB_AREA + x2::utcb::MR0_OFFSET;
/// The address of the emulation library in bounce mode.
const EMULATION: u64 = 0x7fff_8002_0000;
const STACK_TOP: u64 = 0x7fff_0000_0000;
const STACK_PAGES: u64 = 64;
/// The address at which anonymous memory begins.
const MMAP_BASE: u64 = 0x7000_0000_0000;
const MAX_REGIONS: usize = 24;
const MAX_PAGES: usize = 700;

/// How system calls are delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Exception,
    Bounce,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The process ended by exit_group, with this status.
    Exited(u64),
    /// The process ended by this processor exception.
    Exception(u64),
    /// The process ended by a fault at this address.
    Fault(u64),
    /// No memory is left for the process.
    OutOfMemory,
    /// The process sent a message that these programs do not send.
    Confused,
}

/// A range of addresses that the program may use.
#[derive(Clone, Copy)]
struct Region {
    start: u64,
    end: u64,
    rights: Rights,
    /// The content is `length` bytes of the image from `offset` on, put at `content_at`; the rest
    /// is zero.
    content_at: u64,
    offset: usize,
    size: usize,
}

/// The bytes that a program has written to its standard output.
pub(crate) struct Output {
    bytes: [u8; 1024],
    length: usize,
}

impl Output {
    pub(crate) fn ends_with(&self, text: &[u8]) -> bool {
        self.bytes[..self.length].ends_with(text)
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

pub(crate) struct Process {
    thread: ThreadId,
    mode: Mode,
    image: Executable,
    regions: [Option<Region>; MAX_REGIONS],
    pages: [Option<(u64, Page)>; MAX_PAGES],
    output: Output,
    /// The end of the heap, and its beginning.
    pub(crate) heap: (u64, u64),
    next_mapping: u64,
}

impl Process {
    /// Loads a program. It does not run yet.
    pub(crate) fn load(image: &'static [u8], arguments: &[&str], mode: Mode) -> Process {
        let image = Executable::parse(image).expect("a static executable");
        let number = kip().thread_info().user_base + 9;
        let thread = ThreadId::global(number, 1).expect("the version makes a global id");
        let me = utcb::my_global_id();
        let create = ThreadControl { space: thread, scheduler: me, pager: ThreadId::NIL, utcb: None };
        thread::control(thread, create).expect("a new space");
        let areas = (Fpage::memory(KIP_AREA, 12), Fpage::memory(UTCB_AREA, 12));
        space::control(thread, 0, areas.0, areas.1, ThreadId::ANY).expect("the areas are valid");
        extension::set_owner(thread, me).expect("the root task is privileged");
        let mut process = Process {
            thread,
            mode,
            image,
            regions: [None; MAX_REGIONS],
            pages: [None; MAX_PAGES],
            output: Output { bytes: [0; 1024], length: 0 },
            heap: (0, 0),
            next_mapping: MMAP_BASE,
        };
        process.lay_out();
        process.set_mode();
        let activate = ThreadControl { pager: me, utcb: Some(UTCB_AREA), ..create };
        thread::control(thread, activate).expect("the thread");
        extension::set_handlers(thread, Some(me), None).expect("the thread is owned");
        let stack = linux::initial_stack(&mut process, arguments);
        ipc::send(thread, Message::with_words(0, &[image.entry, stack])).expect("it waits for its start");
        process
    }

    fn lay_out(&mut self) {
        let mut end = 0;
        for segment in self.image.segments() {
            let mut rights = Rights::NONE;
            for (flag, right) in [(1, Rights::EXECUTE), (2, Rights::WRITE), (4, Rights::READ)] {
                if segment.flags & flag != 0 {
                    rights = rights.or(right);
                }
            }
            let last = segment.address + segment.memory_size;
            self.add_region(Region {
                start: segment.address & !0xfff,
                end: last.next_multiple_of(4096),
                rights,
                content_at: segment.address,
                offset: segment.offset,
                size: segment.file_size,
            });
            end = end.max(last);
        }
        let heap = end.next_multiple_of(1 << 21);
        self.heap = (heap, heap);
        self.add_zeroed(STACK_TOP - STACK_PAGES * 4096, STACK_TOP, Rights::READ_WRITE);
    }

    fn set_mode(&mut self) {
        let mode = match self.mode {
            Mode::Exception => SystemCallMode::Exception,
            Mode::Bounce => {
                extension::set_emulation_entry(self.thread, EMULATION).expect("a user address");
                self.add_zeroed(EMULATION, EMULATION + bounce::DATA, Rights::READ_EXECUTE);
                self.add_zeroed(
                    EMULATION + bounce::DATA,
                    EMULATION + bounce::DATA + 4096,
                    Rights::READ_WRITE,
                );
                self.write(EMULATION, bounce::code());
                let data = EMULATION + bounce::DATA;
                let me = utcb::my_global_id().raw();
                self.write(data + bounce::SERVER as u64, &me.to_le_bytes());
                self.write(data + bounce::IPC as u64, &kip().word(x2::kip::IPC).to_le_bytes());
                SystemCallMode::Bounce
            }
        };
        extension::set_system_call_mode(self.thread, mode).expect("the space is owned");
    }

    /// Serves the program until it ends.
    pub(crate) fn run(&mut self) -> End {
        let mut received = ipc::receive(self.thread);
        loop {
            let Ok(request) = received else { return End::Confused };
            let answer = match self.serve(request) {
                Ok(answer) => answer,
                Err(end) => return end,
            };
            received = ipc::call(self.thread, answer);
        }
    }

    fn serve(&mut self, request: Received) -> Result<Message, End> {
        let words = |from: usize| core::array::from_fn(|index| request.word(from + index));
        match request.tag.label() {
            SYSTEM_CALL_LABEL | bounce::LABEL if request.tag.untyped() == 7 => {
                let result = linux::system_call(self, request.word(0), words(1))?;
                Ok(Message::with_words(SystemCallAnswer::Return as u64, &[result]))
            }
            _ if protocol::of(request.tag) == protocol::PAGE_FAULT => {
                let (address, access) = (request.word(0), protocol::fault_access(request.tag));
                self.page_fault(address, access)?;
                Ok(Message::new(0))
            }
            _ if protocol::of(request.tag) == protocol::ARCHITECTURE_EXCEPTION => {
                Err(End::Exception(request.word(exception::NUMBER - 1)))
            }
            // A program of the tests has no I/O ports.
            _ if protocol::of(request.tag) == protocol::IO_PAGE_FAULT => Err(End::Exception(13)),
            _ => Err(End::Confused),
        }
    }

    /// Maps the page that contains `address`, if the program may access it in this way.
    fn page_fault(&mut self, address: u64, access: Rights) -> Result<(), End> {
        let region = self.region_at(address).ok_or(End::Fault(address))?;
        if !region.rights.contains(access) {
            return Err(End::Fault(address));
        }
        let page = self.page(address).ok_or(End::OutOfMemory)?;
        let target = Fpage::memory(address & !0xfff, 12).with_rights(region.rights);
        let mut items = [MapItem::new(MapOperation::Map, target, 1, page.address())];
        extension::map_control(self.thread, &mut items).map_err(|_| End::OutOfMemory)
    }

    fn region_at(&self, address: u64) -> Option<Region> {
        // Of two regions the later one counts, because a program may map something over another
        // region.
        let mut regions = self.regions.iter().rev().flatten();
        regions.find(|region| (region.start..region.end).contains(&address)).copied()
    }

    /// The program's page that contains `address`. If it does not exist, it is allocated and
    /// filled.
    fn page(&mut self, address: u64) -> Option<Page> {
        let start = address & !0xfff;
        self.region_at(start)?;
        let known = self.pages.iter().flatten().find(|(at, _)| *at == start);
        if let Some(&(_, page)) = known {
            return Some(page);
        }
        let place = self.pages.iter().position(Option::is_none)?;
        let page = memory::allocate()?;
        self.pages[place] = Some((start, page));
        // Every segment that has a part in the page is copied, as two may share one.
        for region in self.regions.iter().flatten().filter(|region| region.size > 0) {
            let from = region.content_at.max(start);
            let to = (region.content_at + region.size as u64).min(start + PAGE as u64);
            if from < to {
                let offset = region.offset + (from - region.content_at) as usize;
                let bytes = &self.image.image[offset..offset + (to - from) as usize];
                page.write((from - start) as usize, bytes);
            }
        }
        Some(page)
    }

    fn add_region(&mut self, region: Region) {
        let place = self.regions.iter_mut().find(|place| place.is_none()).expect("few regions");
        *place = Some(region);
    }

    /// Adds zero-filled memory.
    pub(crate) fn add_zeroed(&mut self, start: u64, end: u64, rights: Rights) {
        self.add_region(Region { start, end, rights, content_at: 0, offset: 0, size: 0 });
    }

    /// Moves the end of the heap to `end`, if that is within limits. Returns the end of the heap.
    pub(crate) fn set_heap_end(&mut self, end: u64) -> u64 {
        let (start, present) = self.heap;
        if (present..start + (1 << 21)).contains(&end) {
            let (from, to) = (present.next_multiple_of(4096), end.next_multiple_of(4096));
            if from < to {
                self.add_zeroed(from, to, Rights::READ_WRITE);
            }
            self.heap.1 = end;
        }
        self.heap.1
    }

    /// Adds `size` bytes of anonymous memory. Returns their address.
    pub(crate) fn map_anonymous(&mut self, size: u64) -> u64 {
        let start = self.next_mapping;
        self.next_mapping = start + size.next_multiple_of(4096) + 4096;
        self.add_zeroed(start, start + size.next_multiple_of(4096), Rights::READ_WRITE);
        start
    }

    /// Changes the rights of a region, and removes rights from its mapped pages.
    pub(crate) fn protect(&mut self, start: u64, size: u64, rights: Rights) {
        let Some(region) = self.region_at(start) else { return };
        let end = (start + size).next_multiple_of(4096).min(region.end);
        self.add_region(Region { start, end, rights, size: 0, ..region });
        let count = ((end - start) / 4096) as u32;
        // A right that the program has gained is added to the mapping at its next page fault.
        let target = Fpage::memory(start, 12).with_rights(rights);
        let mut items = [MapItem::new(MapOperation::Protect, target, count, 0)];
        let _ = extension::map_control(self.thread, &mut items);
    }

    /// Sets the FS base of the thread, which is waiting for the answer to its system call.
    pub(crate) fn set_fs_base(&mut self, base: u64) -> bool {
        let Ok(mut registers) = extension::read_registers(self.thread) else { return false };
        registers.set(extension::Registers::FS_BASE, base);
        // SAFETY: only the FS base changes, as the program has asked.
        unsafe { extension::write_registers(self.thread, &registers) }.is_ok()
    }

    /// Writes to the program's memory, whatever rights the program has there. Returns `false` if no
    /// page is mapped at the address.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        bytes.iter().enumerate().all(|(index, &byte)| {
            let at = address.wrapping_add(index as u64);
            let page = self.page(at);
            page.inspect(|page| page.write((at & 0xfff) as usize, &[byte])).is_some()
        })
    }

    /// Reads a byte of the program's memory.
    pub(crate) fn read_byte(&mut self, address: u64) -> Option<u8> {
        Some(self.page(address)?.byte((address & 0xfff) as usize))
    }

    /// Reads a word of the program's memory.
    pub(crate) fn read_word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = self.read_byte(address.checked_add(index as u64)?)?;
        }
        Some(u64::from_le_bytes(bytes))
    }

    /// Adds `size` bytes at `address` to the output. `None` if not all of them are mapped.
    pub(crate) fn print(&mut self, address: u64, size: u64) -> Option<u64> {
        for index in 0..size.min(4096) {
            let byte = self.read_byte(address.checked_add(index)?)?;
            self.output.push(byte);
        }
        Some(size.min(4096))
    }

    /// Values of the executable for the auxiliary vector: entry, and address, size and number of
    /// program headers.
    pub(crate) fn executable(&self) -> [u64; 4] {
        let image = &self.image;
        [image.entry, image.header_address(), image.header_size as u64, image.header_count as u64]
    }

    /// The address of the top of the stack.
    pub(crate) fn stack_top(&self) -> u64 {
        STACK_TOP
    }

    /// The output that the program has written.
    pub(crate) fn output(&mut self) -> Output {
        Output { bytes: self.output.bytes, length: self.output.length }
    }

    /// Deletes the program's space, and frees its pages.
    pub(crate) fn delete(self) {
        thread::delete(self.thread).expect("deletion never fails");
        memory::free_all();
    }
}
