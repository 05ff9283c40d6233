//! A simulated machine: it does what the kernel, sigma0 and devices would do, and fails the test if
//! root asks for something that gives a server the memory of another.

use crate::executable::PAGE;
use crate::machine::{Machine, MachineEnd};
use crate::requests;
use crate::step::{self, Step};
use crate::tests::messages::Answer;
use crate::tests::unit::{self, Unit, Words};
use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use l4::thread::{Result, ThreadControl};
use std::collections::{BTreeMap, BTreeSet};
use x2::extension::{MessageSource, SpaceOption, TableRequest};
use x2::{ErrorCode, Fpage, IpcError, IpcErrorKind, IpcPhase, Rights, ThreadId, Time};

/// Thread numbers below this are interrupts.
pub(super) const USER_BASE: u32 = 100;
/// The thread numbers of the message-signalled interrupts.
pub(super) const MESSAGES: Range<u32> = 40..48;
/// The id of the machine's I/O APIC.
pub(super) const IO_APIC: u8 = 5;
/// The numbers of root's request threads on the two processors.
pub(super) const ROOT: [u32; 2] = [101, 102];
/// The physical addresses of the machine's memory.
pub(super) const MEMORY: Range<u64> = 0x10_0000..0x90_0000;

/// The id of root's request thread on a processor.
pub(super) fn root_thread(processor: usize) -> ThreadId {
    ThreadId::global(ROOT[processor], 1).unwrap()
}

/// A thread in the simulated kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) space: u32,
    pub(super) is_active: bool,
    pub(super) handler: Option<ThreadId>,
    pub(super) start: Option<(u64, u64)>,
    pub(super) priority: u8,
}

/// An address space in the simulated kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) owner: Option<ThreadId>,
    pub(super) utcbs: Option<Range<u64>>,
    pub(super) used_utcbs: BTreeMap<u64, ThreadId>,
    pub(super) opened: BTreeSet<u32>,
    /// The physical page at each mapped address, and the rights to it.
    pub(super) pages: BTreeMap<u64, (u64, Rights)>,
}

/// A PCI function's configuration space: its words, and which bits of them can be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    pub(super) words: BTreeMap<u8, u32>,
    pub(super) writable: BTreeMap<u8, u32>,
}

/// The simulated machine.
pub(super) struct Simulation {
    /// The processor on which root's calling thread runs.
    pub(super) processor: usize,
    pub(super) threads: BTreeMap<u32, Thread>,
    pub(super) spaces: BTreeMap<u32, Space>,
    last_space: u32,
    pub(super) interrupts: BTreeMap<u32, ThreadId>,
    /// Pages that a space could write and that have not been cleared since, with the space.
    dirty: BTreeMap<u64, u32>,
    /// The memory of root's cleared shares, and that of devices, which servers get as it is, as
    /// they were before the present request.
    pub(super) shares: Vec<Range<u64>>,
    pub(super) replies: Vec<(ThreadId, ThreadId, Answer)>,
    pub(super) reports: Vec<String>,
    /// How many more calls that can fail succeed; all after them fail. `None`: no call fails.
    pub(super) calls_left: Cell<Option<u32>>,
    /// The time in microseconds.
    pub(super) now: u64,
    pub(super) is_out_of_memory: bool,
    pub(super) end: Option<MachineEnd>,
    pub(super) has_left_screen: bool,
    pub(super) devices: BTreeMap<u32, Device>,
    pub(super) registers: BTreeMap<u64, u32>,
    pub(super) ports: Vec<Fpage>,
    /// The IOMMU, if the machine has one, and the firmware's table of it.
    pub(super) unit: Option<Unit>,
    pub(super) dmar: Option<Vec<u8>>,
    /// Whether the kernel has a table of interrupts.
    pub(super) has_table: bool,
    /// The function or the device in whose name the only I/O APIC sends messages.
    pub(super) io_apic: Option<u16>,
    /// Whether messages name entries of the table, and the sources of the entries that are valid.
    pub(super) uses_table: bool,
    pub(super) sources: BTreeMap<u32, u16>,
    /// What root has written into memory of its own, as the processors see it.
    words: Words,
    /// How often root has asked for the time while the IOMMU did not answer.
    waits: Cell<u64>,
}

impl Default for Simulation {
    fn default() -> Simulation {
        Simulation {
            processor: 0,
            threads: BTreeMap::new(),
            spaces: BTreeMap::new(),
            last_space: 0,
            interrupts: BTreeMap::new(),
            dirty: BTreeMap::new(),
            shares: Vec::new(),
            replies: Vec::new(),
            reports: Vec::new(),
            calls_left: Cell::new(None),
            now: 0,
            is_out_of_memory: false,
            end: None,
            has_left_screen: false,
            devices: BTreeMap::new(),
            registers: BTreeMap::new(),
            ports: Vec::new(),
            unit: None,
            dmar: None,
            has_table: true,
            io_apic: None,
            uses_table: false,
            sources: BTreeMap::new(),
            words: Words::default(),
            waits: Cell::new(0),
        }
    }
}

impl Simulation {
    /// The number of the space that was the first to be able to write a page since the page was
    /// cleared.
    pub(super) fn writer(&self, page: u64) -> Option<u32> {
        self.dirty.get(&page).copied()
    }

    /// Fails if the test has said that this call is to fail.
    fn call(&self) -> Result<()> {
        match self.calls_left.get() {
            Some(0) => Err(Some(ErrorCode::NoMemory)),
            left => {
                self.calls_left.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }

    /// The thread with this id, if its version is right, too.
    pub(super) fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(&id.number()).filter(|thread| thread.id == id)
    }

    fn thread_mut(&mut self, id: ThreadId) -> Result<&mut Thread> {
        let thread = self.threads.get_mut(&id.number()).filter(|thread| thread.id == id);
        thread.ok_or(Some(ErrorCode::InvalidThread))
    }

    /// The space of this thread.
    pub(super) fn space_of(&self, id: ThreadId) -> Option<&Space> {
        self.spaces.get(&self.thread(id)?.space)
    }

    fn space_mut(&mut self, id: ThreadId) -> Result<&mut Space> {
        let space = self.thread(id).map(|thread| thread.space).ok_or(Some(ErrorCode::InvalidSpace))?;
        Ok(self.spaces.get_mut(&space).expect("a thread has a space"))
    }

    /// The mapped addresses in the space of a thread.
    pub(super) fn mapped(&self, id: ThreadId) -> Vec<u64> {
        self.space_of(id).map(|space| space.pages.keys().copied().collect()).unwrap_or_default()
    }

    fn is_mapped(&self, physical: u64) -> bool {
        self.spaces.values().any(|space| space.pages.values().any(|&(page, _)| page == physical))
    }

    fn delete(&mut self, id: ThreadId) {
        if self.thread(id).is_none() {
            return;
        }
        let thread = self.threads.remove(&id.number()).expect("it was found");
        self.interrupts.retain(|_, handler| *handler != id);
        if self.threads.values().all(|other| other.space != thread.space) {
            self.spaces.remove(&thread.space);
            self.spaces.values_mut().for_each(|space| space.opened.retain(|&other| other != thread.space));
        } else {
            let space = self.spaces.get_mut(&thread.space).expect("a thread has a space");
            space.used_utcbs.retain(|_, user| *user != id);
        }
    }

    fn create(&mut self, id: ThreadId, arguments: ThreadControl) -> Result<()> {
        let ThreadControl { space, scheduler, .. } = arguments;
        if space == id {
            self.last_space += 1;
            self.spaces.insert(self.last_space, Space::default());
        } else if self.thread(space).is_none() {
            return Err(Some(ErrorCode::InvalidSpace));
        }
        let is_root = ROOT.map(|number| number == scheduler.number()).contains(&true);
        assert!(is_root || self.thread(scheduler).is_some(), "the scheduler exists");
        let space = self.thread(space).map_or(self.last_space, |thread| thread.space);
        let thread = Thread { id, space, is_active: false, handler: None, start: None, priority: 100 };
        self.threads.insert(id.number(), thread);
        Ok(())
    }

    /// Gives an inactive thread its UTCB and its pager.
    fn activate(&mut self, id: ThreadId, utcb: Option<u64>) -> Result<()> {
        let number = self.thread(id).map(|thread| thread.space).ok_or(Some(ErrorCode::InvalidThread))?;
        let space = self.spaces.get_mut(&number).expect("a thread has a space");
        let utcb = utcb.ok_or(Some(ErrorCode::InvalidUtcbArea))?;
        let area = space.utcbs.clone().ok_or(Some(ErrorCode::InvalidUtcbArea))?;
        if !area.contains(&utcb) || space.used_utcbs.contains_key(&utcb) {
            return Err(Some(ErrorCode::InvalidUtcbArea));
        }
        space.used_utcbs.insert(utcb, id);
        self.thread_mut(id)?.is_active = true;
        Ok(())
    }

    fn map(&mut self, thread: ThreadId, address: u64, physical: u64, rights: Rights) -> Result<()> {
        let number = self.thread(thread).map(|thread| thread.space).ok_or(Some(ErrorCode::InvalidSpace))?;
        if MEMORY.contains(&physical) {
            let dirty = self.dirty.get(&physical);
            let is_fresh = dirty.is_none_or(|&by| by == number && self.is_mapped(physical));
            // The creator of a share may have ended before its partner maps the share.
            let is_shared = self.shares.iter().any(|share| share.contains(&physical))
                || dirty.is_some_and(|by| {
                    let space = self.spaces.get(by);
                    space.is_some_and(|space| space.pages.values().any(|&(page, _)| page == physical))
                });
            assert!(is_fresh || is_shared, "page {physical:#x} holds what another server has written");
            if rights.contains(Rights::WRITE) {
                self.dirty.entry(physical).or_insert(number);
            }
        }
        let space = self.spaces.get_mut(&number).expect("a thread has a space");
        let old = space.pages.insert(address, (physical, rights));
        assert_eq!(old, None, "something is mapped at {address:#x}");
        Ok(())
    }
}

impl Machine for Simulation {
    fn caller(&self) -> ThreadId {
        root_thread(self.processor)
    }

    fn processor(&self) -> u32 {
        self.processor as u32
    }

    fn processors(&self) -> u32 {
        2
    }

    fn now(&self) -> u64 {
        if self.unit.as_ref().is_some_and(|unit| unit.is_stuck) {
            self.waits.set(self.waits.get() + 1);
        }
        self.now + self.waits.get() * 1000
    }

    fn message_interrupts(&self) -> Range<u32> {
        MESSAGES
    }

    fn has_headroom(&self) -> bool {
        !self.is_out_of_memory
    }

    fn report(&mut self, line: fmt::Arguments<'_>) {
        self.reports.push(line.to_string());
    }

    fn thread_control(&mut self, thread: ThreadId, arguments: ThreadControl) -> Result<()> {
        if arguments.space.is_nil() {
            self.delete(thread);
            return Ok(());
        }
        if thread.number() < USER_BASE {
            return self.set_handler(thread, arguments.pager);
        }
        self.call()?;
        if let Some(other) = self.threads.get(&thread.number()) {
            assert_eq!(other.id, thread, "the number of a new thread is free");
        } else {
            self.create(thread, arguments)?;
        }
        if arguments.pager.is_nil() {
            return Ok(());
        }
        let is_new = !self.thread(thread).expect("it was made").is_active;
        let activated = if is_new { self.activate(thread, arguments.utcb) } else { Ok(()) };
        if activated.is_err() && arguments.space != thread {
            self.delete(thread);
        }
        activated
    }

    fn set_areas(&mut self, space: ThreadId, kernel_interface: Fpage, utcbs: Fpage) -> Result<()> {
        self.call()?;
        let regions = kernel_interface.region().zip(utcbs.region());
        let (interface, area) = regions.ok_or(Some(ErrorCode::InvalidParameter))?;
        let end = area.last().checked_add(1).filter(|&end| end <= 1 << 47);
        let end = end.ok_or(Some(ErrorCode::InvalidUtcbArea))?;
        if interface.last() >= 1 << 47 || interface.overlaps(area) {
            return Err(Some(ErrorCode::InvalidKipArea));
        }
        self.space_mut(space)?.utcbs = Some(area.base..end);
        Ok(())
    }

    fn space_options(&mut self, space: ThreadId, option: SpaceOption, values: [u64; 2]) -> Result<[u64; 2]> {
        let gives_back = option == SpaceOption::InterruptMessage
            && values[1] == MessageSource::Unchecked.word()
            && self.uses_table;
        if !gives_back {
            self.call()?;
        }
        match option {
            SpaceOption::InterruptMessage => {
                return Ok(self.message(values[0] as u32, MessageSource::from_word(values[1]).unwrap()));
            }
            SpaceOption::InterruptTable => {
                let answer = self.table(TableRequest::from_words(values).unwrap());
                return answer.ok_or(Some(ErrorCode::InvalidParameter));
            }
            SpaceOption::Owner => self.space_mut(space)?.owner = Some(ThreadId::from_raw(values[0])),
            SpaceOption::Open => {
                let other = self.thread(ThreadId::from_raw(values[0]));
                let other = other.ok_or(Some(ErrorCode::InvalidSpace))?.space;
                self.space_mut(space)?.opened.insert(other);
            }
            _ => drop(self.space_mut(space)?),
        }
        Ok([0; 2])
    }

    fn set_exception_handler(&mut self, thread: ThreadId, handler: ThreadId) -> Result<()> {
        self.call()?;
        self.thread_mut(thread)?.handler = Some(handler);
        Ok(())
    }

    fn schedule(&mut self, thread: ThreadId, _: Option<u64>, priority: u8) -> Result<()> {
        self.call()?;
        self.thread_mut(thread)?.priority = priority;
        Ok(())
    }

    fn start(&mut self, thread: ThreadId, ip: u64, sp: u64, _: Time) -> core::result::Result<(), IpcError> {
        let error = IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner);
        self.call().map_err(|_| error)?;
        let thread = self.thread_mut(thread).map_err(|_| error)?;
        assert!(thread.is_active && thread.start.is_none(), "it waits for its start");
        thread.start = Some((ip, sp));
        Ok(())
    }

    fn reply(&mut self, to: ThreadId, asked: ThreadId, answer: requests::Answer) {
        self.replies.push((to, asked, Answer::of(answer)));
    }

    fn perform(&mut self, step: &Step) -> step::Result {
        match *step {
            Step::Fill { start, size, content } => {
                assert!(size <= step::BYTES, "a step is short");
                self.write_memory(start..start + size, content);
            }
            Step::Map { thread, run, rights } => {
                assert!(run.count <= step::PAGES, "a step is short");
                self.call()?;
                let size = u64::from(run.count) << run.size_log2;
                for offset in (0..size).step_by(PAGE as usize) {
                    self.map(thread, run.address + offset, run.source + offset, rights)?;
                }
            }
            Step::Unmap { thread, run } => {
                let size = u64::from(run.count) << run.size_log2;
                let space = self.space_mut(thread).expect("the space exists");
                space.pages.retain(|&at, _| !(run.address..run.address + size).contains(&at));
            }
            Step::End(threads) => threads.into_iter().flatten().for_each(|thread| self.delete(thread)),
            Step::Pause => {}
        }
        Ok(())
    }

    fn write_memory(&mut self, memory: Range<u64>, bytes: &[u8]) {
        assert!(bytes.len() as u64 <= memory.end - memory.start, "the bytes fit");
        assert!(MEMORY.start <= memory.start && memory.end <= MEMORY.end, "there is such memory");
        let cleared = memory.clone();
        for page in memory.step_by(PAGE as usize) {
            assert!(!self.is_mapped(page), "page {page:#x} is a server's while root writes to it");
            self.dirty.remove(&page);
        }
        self.words.clear(cleared.clone());
        if let Some(unit) = self.unit.as_mut().filter(|unit| unit.is_coherent()) {
            unit.memory.clear(cleared);
        }
    }

    fn request_memory(&mut self, _: u64, _: u64) -> bool {
        true
    }

    fn request_ports(&mut self, ports: Fpage) -> bool {
        self.ports.push(ports);
        self.call().is_ok()
    }

    fn read_configuration(&self, place: u32, register: u8) -> u32 {
        let device = self.devices.get(&place);
        device.map_or(u32::MAX, |device| device.words.get(&register).copied().unwrap_or(0))
    }

    fn write_configuration(&mut self, place: u32, register: u8, value: u32) {
        let device = self.devices.get_mut(&place).expect("root writes to what it has found");
        let writable = device.writable.get(&register).copied().unwrap_or(0);
        let word = device.words.entry(register).or_default();
        *word = *word & !writable | value & writable;
    }

    fn write_register(&mut self, address: u64, value: u32) {
        let Some(unit) = self.unit.as_mut().filter(|_| is_of_unit(address)) else {
            self.registers.insert(address, value);
            return;
        };
        if let Some((at, word)) = unit.write(address - unit::REGISTERS, value) {
            unit.memory.write(at, word);
            self.words.write(at, word);
        }
    }

    fn read_register(&self, address: u64) -> u32 {
        match self.unit.as_ref().filter(|_| is_of_unit(address)) {
            Some(unit) => unit.read(address - unit::REGISTERS),
            None => self.registers[&address],
        }
    }

    fn read_word(&self, address: u64) -> u64 {
        self.words.read(address)
    }

    fn write_word(&mut self, address: u64, value: u64) {
        assert!(MEMORY.contains(&address) && !self.is_mapped(address & !(PAGE - 1)), "it is root's own");
        self.words.write(address, value);
        if self.unit.as_ref().is_some_and(Unit::is_coherent) {
            self.write_back(address, 8);
        }
    }

    fn write_back(&mut self, address: u64, size: u64) {
        if let Some(unit) = &mut self.unit {
            unit.memory.copy(&self.words, address..address + size);
        }
    }

    fn leave_screen(&mut self) {
        self.has_left_screen = true;
    }

    fn end(&mut self, how: MachineEnd) {
        self.end = Some(how);
    }
}

/// Whether this is the address of a register of the IOMMU.
fn is_of_unit(address: u64) -> bool {
    (unit::REGISTERS..unit::REGISTERS + PAGE).contains(&address)
}

impl Simulation {
    /// Tells the message of an interrupt, as the kernel does.
    fn message(&mut self, number: u32, source: MessageSource) -> [u64; 2] {
        assert!(MESSAGES.contains(&number), "it is such an interrupt");
        match source {
            MessageSource::Function(source) if self.uses_table => {
                let old = self.sources.insert(number, source);
                assert_eq!(old, None, "an interrupt is given back before it is another function's");
                [0xfee0_0010 | u64::from(number) << 5, 0]
            }
            _ => {
                self.sources.remove(&number);
                [0xfee0_0000, number.into()]
            }
        }
    }

    /// Carries out a request about the table of interrupts, as the kernel does.
    fn table(&mut self, request: TableRequest) -> Option<[u64; 2]> {
        match request {
            TableRequest::Tell => {}
            TableRequest::Lines { io_apic, source } if io_apic == IO_APIC => self.io_apic = Some(source),
            TableRequest::Lines { .. } => return None,
            TableRequest::Use => {
                assert!(self.io_apic.is_some() && self.unit.as_ref().is_some_and(Unit::is_remapping));
                self.uses_table = true;
            }
        }
        self.has_table.then_some([unit::TABLE, self.io_apic.is_none().into()])
    }

    /// Whether the function at `place` raises this interrupt if its driver has it send any message.
    /// What the IOMMU refuses is on record.
    pub(super) fn raises(&mut self, place: u32, number: u32) -> bool {
        if self.devices[&place].words[&4] & 4 == 0 {
            return false;
        }
        let source = self.sources.get(&number).copied();
        match self.unit.as_mut().filter(|unit| unit.is_remapping()) {
            Some(unit) => unit.message(place, number, source),
            None => true,
        }
    }

    /// Whether the function at `place` can read and write the page now. What the IOMMU refuses is
    /// on record.
    pub(super) fn reaches(&mut self, place: u32, page: u64) -> bool {
        if self.devices[&place].words[&4] & 4 == 0 {
            return false;
        }
        let Some(unit) = &mut self.unit else { return true };
        [true, false].map(|is_read| unit.access(place, page, is_read)) == [true; 2]
    }

    fn set_handler(&mut self, interrupt: ThreadId, handler: ThreadId) -> Result<()> {
        if handler == interrupt {
            self.interrupts.remove(&interrupt.number());
            return Ok(());
        }
        self.call()?;
        if !ROOT.contains(&handler.number()) {
            self.thread(handler).ok_or(Some(ErrorCode::InvalidThread))?;
        }
        let old = self.interrupts.insert(interrupt.number(), handler);
        assert_eq!(old, None, "the interrupt has no handler yet");
        Ok(())
    }
}
