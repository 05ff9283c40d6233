//! The registers of a unit between devices and memory: its commands, the queue by which it is told
//! to forget what it has read from tables, and its records of faults (Intel's "Virtualization
//! Technology for Directed I/O", chapters 6, 7 and 11).

use super::tables::{NoMemory, TableMemory};
use crate::executable::PAGE;
use crate::machine::Machine;
use alloc::vec::Vec;
use core::fmt;
use l4::extension::InterruptMessage;

/// Offsets of registers, and bits of them.
const CAPABILITIES: u64 = 0x8;
const EXTENDED: u64 = 0x10;
const COMMAND: u64 = 0x18;
const STATUS: u64 = 0x1c;
const ROOT_TABLE: u64 = 0x20;
const FAULT_STATUS: u64 = 0x34;
const FAULT_CONTROL: u64 = 0x38;
const FAULT_DATA: u64 = 0x3c;
const FAULT_ADDRESS: u64 = 0x40;
const FAULT_ADDRESS_HIGH: u64 = 0x44;
const PROTECTED: u64 = 0x64;
const QUEUE_TAIL: u64 = 0x88;
const QUEUE: u64 = 0x90;
const INTERRUPT_TABLE: u64 = 0xb8;
/// Bits of the command register, and of the status register that answers.
const TRANSLATE: u32 = 1 << 31;
const SET_ROOT: u32 = 1 << 30;
const WRITE_BUFFERS: u32 = 1 << 27;
const USE_QUEUE: u32 = 1 << 26;
const REMAP: u32 = 1 << 25;
const SET_INTERRUPT_TABLE: u32 = 1 << 24;
/// Messages that name no entry of the table of interrupts go on as they are.
const COMPATIBLE: u32 = 1 << 23;
/// The bits of the status register that the next command must repeat: the others are events.
const LASTING: u32 = 0x96ff_ffff;
/// Bits of the registers of faults.
const ANY_FAULT: u32 = 1 << 1;
const FAULT_ERRORS: u32 = 0x71;
const MASKED: u32 = 1 << 31;
const RECORDED: u32 = 1 << 31;
/// How many microseconds a unit has for an answer.
const PATIENCE: u64 = 50_000;
/// How often all records of faults are read in one go.
const PASSES: u32 = 4;

/// Descriptors in the queue.
const FORGET_CONTEXTS: u64 = 1 | 1 << 4;
const FORGET_PAGES: u64 = 2;
const ALL_DOMAINS: u64 = 1 << 4;
const ONE_DOMAIN: u64 = 2 << 4;
const FORGET_INTERRUPTS: u64 = 4;
const WAIT: u64 = 5 | 1 << 5;

/// The numbers of reasons why messages are refused.
const REASONS_OF_MESSAGES: core::ops::RangeInclusive<u8> = 0x20..=0x26;

/// A unit that has been asked for something has not done it in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck;

/// Why a unit is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Its registers cannot be reached.
    NoRegisters,
    /// It lacks something that root needs.
    Lacks(&'static str),
}

impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::NoRegisters => formatter.write_str("its registers cannot be reached"),
            Unusable::Lacks(what) => write!(formatter, "it has no {what}"),
        }
    }
}

/// What a unit has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// To read the page at this address.
    Read(u64),
    /// To write it.
    Write(u64),
    /// An interrupt message that names this entry of the table.
    Interrupt(u16),
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Read(address) => write!(formatter, "read {address:#x}"),
            Refused::Write(address) => write!(formatter, "write {address:#x}"),
            Refused::Interrupt(entry) => write!(formatter, "raise the interrupt of entry {entry}"),
        }
    }
}

/// An access or a message that a unit has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The function: bus, device and function in bits 16..24, 11..16 and 8..11.
    pub(crate) place: u32,
    pub(crate) what: Refused,
    /// The unit's number for the reason.
    pub(crate) reason: u8,
}

/// A unit.
pub(crate) struct Unit {
    /// The physical address of its registers.
    pub(crate) registers: u64,
    capabilities: u64,
    extended: u64,
    /// The queue, a page, and the word that the unit writes when it has come to a certain place in
    /// the queue.
    queue: u64,
    answer: u64,
    /// Where the next descriptor is written, as an offset in the queue.
    tail: u64,
    /// The last number that the unit has been told to write.
    last: u32,
    /// Whether it has always answered in time.
    pub(crate) answers: bool,
}

impl Unit {
    /// The unit whose registers are at this physical address.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn find(machine: &mut impl Machine, registers: u64) -> Result<Unit, Unusable> {
        if !machine.request_memory(registers, PAGE) {
            return Err(Unusable::NoRegisters);
        }
        let wide = |at| {
            u64::from(machine.read_register(registers + at))
                | u64::from(machine.read_register(registers + at + 4)) << 32
        };
        let (capabilities, extended) = (wide(CAPABILITIES), wide(EXTENDED));
        let unit =
            Unit { registers, capabilities, extended, queue: 0, answer: 0, tail: 0, last: 0, answers: true };
        if extended >> 1 & 1 == 0 {
            return Err(Unusable::Lacks("queue of invalidations"));
        }
        if !(3..=4).any(|levels| unit.knows(levels)) {
            return Err(Unusable::Lacks("page tables of 3 or 4 levels"));
        }
        let records = unit.records();
        if !machine.request_memory(records.start & !(PAGE - 1), records.end - (records.start & !(PAGE - 1))) {
            return Err(Unusable::NoRegisters);
        }
        Ok(unit)
    }

    /// Whether it walks page tables of so many levels.
    pub(crate) fn knows(&self, levels: u32) -> bool {
        self.capabilities >> (8 + levels - 2) & 1 != 0
    }

    /// How many bits the addresses have that it translates.
    pub(crate) fn bits(&self) -> u32 {
        (self.capabilities >> 16 & 0x3f) as u32 + 1
    }

    /// The highest level of page tables whose entries can lead to pages.
    pub(crate) fn largest(&self) -> u32 {
        match self.capabilities >> 34 & 3 {
            3 => 3,
            1 => 2,
            _ => 1,
        }
    }

    /// Whether it reads memory itself and not the processors' caches.
    pub(crate) fn needs_write_back(&self) -> bool {
        self.extended & 1 == 0
    }

    /// How many domains it can tell apart.
    pub(crate) fn domains(&self) -> u32 {
        1 << (4 + 2 * (self.capabilities & 7)).min(16)
    }

    /// Whether it keeps what it has found not to be there, so that it must be told of what is new.
    fn keeps_absent(&self) -> bool {
        self.capabilities >> 7 & 1 != 0
    }

    /// The addresses of its records of faults.
    fn records(&self) -> core::ops::Range<u64> {
        let first = self.registers + (self.capabilities >> 24 & 0x3ff) * 16;
        first..first + ((self.capabilities >> 40 & 0xff) + 1) * 16
    }

    /// Takes the memory for the queue, before the unit is started.
    pub(crate) fn take_memory<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
    ) -> Result<(), NoMemory> {
        let mut pages = Vec::new();
        self.queue = memory.take(&mut pages)?;
        self.answer = memory.take(&mut pages)?;
        Ok(())
    }

    /// Has the unit translate by the table of buses at `root`. Until a function has a domain, it
    /// reaches no memory.
    pub(crate) fn start<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        root: u64,
    ) -> Result<(), Stuck> {
        // The firmware may have used the queue.
        self.command(memory.machine, USE_QUEUE, false)?;
        self.write_wide(memory.machine, QUEUE_TAIL, 0);
        self.write_wide(memory.machine, QUEUE, self.queue);
        self.command(memory.machine, USE_QUEUE, true)?;
        self.tail = 0;
        self.write_wide(memory.machine, ROOT_TABLE, root);
        self.command(memory.machine, SET_ROOT, true)?;
        self.forget(memory, true, None)?;
        self.command(memory.machine, TRANSLATE, true)?;
        if self.capabilities >> 5 & 3 != 0 {
            // What the firmware has kept devices from: domains are to have all of their memory.
            self.write(memory.machine, PROTECTED, 0);
            self.wait(memory.machine, |unit, machine| unit.read(machine, PROTECTED) & 1 == 0)?;
        }
        Ok(())
    }

    /// Whether it can remap interrupts.
    pub(crate) fn can_remap_interrupts(&self) -> bool {
        self.extended >> 3 & 1 != 0
    }

    /// Has the unit, which has been started, turn messages into interrupts by the table that
    /// `table` stands for, and refuse those that name no entry.
    pub(crate) fn remap_interrupts<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        table: u64,
    ) -> Result<(), Stuck> {
        // The firmware may have used a table.
        self.command(memory.machine, REMAP, false)?;
        self.write_wide(memory.machine, INTERRUPT_TABLE, table);
        self.command(memory.machine, SET_INTERRUPT_TABLE, true)?;
        self.forget_interrupts(memory)?;
        self.command(memory.machine, COMPATIBLE, false)?;
        self.command(memory.machine, REMAP, true)
    }

    /// Has the unit let messages go on as they are.
    pub(crate) fn stop_remapping(&mut self, machine: &mut impl Machine) {
        // One that does not answer has been told nevertheless.
        let _ = self.command(machine, REMAP, false);
    }

    /// Has the unit send this message when it has recorded a fault.
    pub(crate) fn set_fault_message(&self, machine: &mut impl Machine, message: InterruptMessage) {
        self.write(machine, FAULT_DATA, message.data as u32);
        self.write(machine, FAULT_ADDRESS, message.address as u32);
        self.write(machine, FAULT_ADDRESS_HIGH, (message.address >> 32) as u32);
        self.write(machine, FAULT_CONTROL, 0);
    }

    /// Has the unit send no more messages of faults.
    pub(crate) fn mask_faults(&self, machine: &mut impl Machine) {
        self.write(machine, FAULT_CONTROL, MASKED);
    }

    /// Takes the faults that the unit has recorded. Returns whether it has got all of them.
    pub(crate) fn take_faults(&self, machine: &mut impl Machine, mut take: impl FnMut(Fault)) -> bool {
        for _ in 0..PASSES {
            for record in self.records().step_by(16) {
                let word = |number: u32| machine.read_register(record + 4 * u64::from(number));
                let [low, high, source, reason] = [word(0), word(1), word(2), word(3)];
                if reason & RECORDED != 0 {
                    let address = u64::from(high) << 32 | u64::from(low) & !(PAGE - 1);
                    let what = match reason as u8 {
                        number if REASONS_OF_MESSAGES.contains(&number) => {
                            Refused::Interrupt((high >> 16) as u16)
                        }
                        _ if reason >> 30 & 1 != 0 => Refused::Read(address),
                        _ => Refused::Write(address),
                    };
                    take(Fault { place: (source & 0xffff) << 8, what, reason: reason as u8 });
                    machine.write_register(record + 12, RECORDED);
                }
            }
            self.write(machine, FAULT_STATUS, FAULT_ERRORS);
            if self.read(machine, FAULT_STATUS) & ANY_FAULT == 0 {
                return true;
            }
        }
        false
    }

    /// Has the unit forget what it has read from the tables: the domains of functions with
    /// `contexts`, and the pages of one domain, or of all. Returns after it has, and after all that
    /// devices had begun by what is forgotten has ended.
    pub(crate) fn forget<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        contexts: bool,
        domain: Option<u16>,
    ) -> Result<(), Stuck> {
        self.write_buffers(memory.machine)?;
        // Accesses that have begun are to end before the answer, as far as the unit can do that.
        let drain = (self.capabilities >> 54 & 3) << 6;
        let which = domain.map_or(ALL_DOMAINS, |domain| ONE_DOMAIN | u64::from(domain) << 16);
        if contexts {
            self.enqueue(memory, [FORGET_CONTEXTS, 0]);
        }
        self.enqueue(memory, [FORGET_PAGES | which | drain, 0]);
        self.work(memory)
    }

    /// Has the unit forget what it has read from the table of interrupts. Returns after it has.
    pub(crate) fn forget_interrupts<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
    ) -> Result<(), Stuck> {
        self.write_buffers(memory.machine)?;
        self.enqueue(memory, [FORGET_INTERRUPTS, 0]);
        self.work(memory)
    }

    /// Has the unit do what is in the queue, and waits until it has.
    fn work<M: Machine>(&mut self, memory: &mut TableMemory<'_, M>) -> Result<(), Stuck> {
        self.last = self.last.wrapping_add(1);
        self.enqueue(memory, [WAIT | u64::from(self.last) << 32, self.answer]);
        self.write(memory.machine, QUEUE_TAIL, self.tail as u32);
        self.wait(memory.machine, |unit, machine| machine.read_word(unit.answer) as u32 == unit.last)
    }

    /// Tells the unit of new entries in the page tables of a domain.
    pub(crate) fn announce<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        domain: u16,
    ) -> Result<(), Stuck> {
        match self.keeps_absent() {
            true => self.forget(memory, false, Some(domain)),
            false => self.write_buffers(memory.machine),
        }
    }

    fn enqueue<M: Machine>(&mut self, memory: &mut TableMemory<'_, M>, words: [u64; 2]) {
        for (at, word) in (self.queue + self.tail..).step_by(8).zip(words) {
            memory.write(at, word);
        }
        // The queue is never full: each use of it waits until the unit has come to its end.
        self.tail = (self.tail + 16) % PAGE;
    }

    /// Some units must be told that what the processors have written is to be in memory.
    fn write_buffers(&mut self, machine: &mut impl Machine) -> Result<(), Stuck> {
        if self.capabilities >> 4 & 1 == 0 {
            return Ok(());
        }
        let lasting = self.read(machine, STATUS) & LASTING;
        self.write(machine, COMMAND, lasting | WRITE_BUFFERS);
        self.wait(machine, |unit, machine| unit.read(machine, STATUS) & WRITE_BUFFERS == 0)
    }

    /// Gives a command, and waits until it has been carried out.
    fn command(&mut self, machine: &mut impl Machine, command: u32, is_on: bool) -> Result<(), Stuck> {
        let lasting = self.read(machine, STATUS) & LASTING & !command;
        self.write(machine, COMMAND, lasting | if is_on { command } else { 0 });
        self.wait(machine, |unit, machine| (unit.read(machine, STATUS) & command != 0) == is_on)
    }

    /// Waits, but not for ever, until `is_done` is true. A unit that has not answered once is not
    /// waited for again.
    fn wait<M: Machine>(&mut self, machine: &M, is_done: impl Fn(&Unit, &M) -> bool) -> Result<(), Stuck> {
        let begin = machine.now();
        while self.answers {
            if is_done(self, machine) {
                return Ok(());
            }
            self.answers = machine.now().saturating_sub(begin) < PATIENCE;
        }
        Err(Stuck)
    }

    fn read(&self, machine: &impl Machine, register: u64) -> u32 {
        machine.read_register(self.registers + register)
    }

    fn write(&self, machine: &mut impl Machine, register: u64, value: u32) {
        machine.write_register(self.registers + register, value);
    }

    fn write_wide(&self, machine: &mut impl Machine, register: u64, value: u64) {
        self.write(machine, register, value as u32);
        self.write(machine, register + 4, (value >> 32) as u32);
    }
}
