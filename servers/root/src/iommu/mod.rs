//! The units between devices and memory (IOMMUs, Intel's VT-d): a PCI function reaches the memory
//! that was granted to its driver, and no other.
//!
//! Each server that has PCI functions has a *domain*: page tables that map the memory of its
//! devices and of the pools of its clients, each page at its physical address, so that drivers tell
//! devices physical addresses whether there is a unit or not. Its functions have the domain from
//! the server's start until its end. A function that has none reaches nothing. What a domain loses
//! is given to no server before the units have said that they have forgotten it.
//!
//! Interrupt messages do not pass through a domain: [`interrupts`] has how a function is kept from
//! raising other functions' interrupts.
//!
//! A unit that does not answer in time is not waited for again. Its functions are stopped for
//! ever.

/// The parts of [`Resources`] that hold tables: the units, and the memory.
macro_rules! parts {
    ($resources:ident) => {{
        let Iommu { units, domains, pages_left, needs_write_back, .. } = &mut $resources.iommu;
        let memory = TableMemory {
            machine: &mut $resources.machine,
            frames: &mut $resources.frames,
            left: pages_left,
            needs_write_back: *needs_write_back,
        };
        (units, domains, memory)
    }};
}

mod dmar;
mod interrupts;
mod tables;
mod unit;

use crate::executable::PAGE;
use crate::functions::Bridge;
use crate::machine::Machine;
use crate::resources::Resources;
use crate::thread_numbers::ServerIndex;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use dmar::Dmar;
use rt::root::Status;
use tables::{ContextTables, Format, NoMemory, PageTables, TableMemory};
use unit::{Fault, Refused, Unit};
use x2::ThreadId;
use x2::extension::MessageSource;

#[cfg(test)]
pub(crate) use {dmar::tests as dmar_tests, tables::TABLES};

/// How many faults of a function are reported in its driver's life, and how many of functions that
/// root does not know.
pub(crate) const MOST_FAULTS: u32 = 8;
/// Pages that the tables of a domain may have in any case, and for how many bytes of memory there
/// is one more if pages can be large: in the worst case, a page for each 2 MiB, as without large
/// pages.
const LEAST_PAGES: u64 = 64;
const BYTES_PER_PAGE: u64 = 32 << 20;
const BYTES_PER_TABLE: u64 = 2 << 20;

/// All units, and the domains of servers. Without units it does nothing.
#[derive(Default)]
pub(crate) struct Iommu {
    units: Vec<Translating>,
    domains: Vec<Domain>,
    format: Option<Format>,
    needs_write_back: bool,
    /// How many more pages tables may have.
    pages_left: u64,
    /// Whether all units use the kernel's table of interrupts.
    remaps: bool,
    /// The interrupt by which the units tell of faults.
    pub(crate) interrupt: Option<u32>,
}

/// A unit with its tables.
struct Translating {
    unit: Unit,
    contexts: ContextTables,
    /// How many faults there were of functions that root does not know.
    unknown_faults: u32,
}

/// What the functions of a server reach.
struct Domain {
    server: ServerIndex,
    number: u16,
    tables: PageTables,
    /// The memory that the server has asked for, for its devices. Pools are in the table of pools.
    memory: Vec<Range<u64>>,
}

/// The place of a PCI function as it is usually written.
pub(crate) struct PlaceName(pub(crate) u32);

impl fmt::Display for PlaceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0;
        write!(formatter, "{:02x}:{:02x}.{}", place >> 16, place >> 11 & 31, place >> 8 & 7)
    }
}

impl Iommu {
    /// Whether a function that belongs to this unit may be used: the unit answers, or there is
    /// none.
    pub(crate) fn answers(&self, unit: Option<usize>) -> bool {
        unit.is_none_or(|index| self.units[index].unit.answers)
    }

    /// Bytes of memory that tables may need in addition to what they have.
    pub(crate) fn reserve(&self) -> u64 {
        self.pages_left * PAGE
    }

    fn domain(&self, server: ServerIndex) -> Option<usize> {
        self.domains.iter().position(|domain| domain.server == server)
    }

    /// A form of page tables that all units know, for memory that ends at `end`.
    fn common_format(units: &[Unit], end: u64) -> Option<Format> {
        let largest = units.iter().map(Unit::largest).min()?;
        let bits = units.iter().map(Unit::bits).min()?;
        let formats = (3..=4).map(|levels| Format { levels, largest, bits: bits.min(12 + 9 * levels) });
        let fits =
            |format: &Format| units.iter().all(|unit| unit.knows(format.levels)) && end <= 1 << format.bits;
        formats.into_iter().find(fits)
    }
}

impl<M: Machine> Resources<M> {
    /// Has the units that the firmware's table names translate for the PCI functions, which have
    /// been found. From then on each function reaches only what it is granted. There will be
    /// `drivers` servers that have functions.
    pub(crate) fn set_up_iommu(&mut self, table: Option<&[u8]>, drivers: u64) {
        let Some(table) = table else {
            self.machine.report(format_args!("root: there is no IOMMU: drivers of devices are trusted"));
            return;
        };
        if let Err(reason) = self.start_units(table, drivers) {
            self.machine
                .report(format_args!("root: there is no IOMMU: {reason}: drivers of devices are trusted"));
        }
    }

    fn start_units(&mut self, table: &[u8], drivers: u64) -> Result<(), String> {
        let dmar = Dmar::parse(table).map_err(|error| alloc::format!("the firmware's table: {error}"))?;
        let mut units = Vec::new();
        let mut numbers = Vec::new();
        for described in &dmar.units {
            match Unit::find(&mut self.machine, described.registers) {
                Ok(unit) => {
                    numbers.push(Some(units.len()));
                    units.push(unit);
                }
                Err(reason) => {
                    numbers.push(None);
                    let at = described.registers;
                    self.machine.report(format_args!("root: the IOMMU at {at:#x} is not used: {reason}"));
                }
            }
        }
        if units.is_empty() {
            return Err("none can be used".into());
        }
        let end = self.frames.end();
        let format = Iommu::common_format(&units, end).ok_or("there is no form of tables that all know")?;
        let table_size = if format.largest > 1 { BYTES_PER_PAGE } else { BYTES_PER_TABLE };
        self.iommu.format = Some(format);
        self.iommu.needs_write_back = units.iter().any(Unit::needs_write_back);
        // A unit has three pages of its own, and one for each bus on which it has functions.
        let own = units.len() * 3 + self.functions.len() * 2;
        self.iommu.pages_left = own as u64 + drivers * (LEAST_PAGES + end / table_size);
        for mut unit in units {
            let (all, _, mut memory) = parts!(self);
            let taken = unit.take_memory(&mut memory).and_then(|()| ContextTables::new(&mut memory));
            match taken {
                Ok(contexts) => all.push(Translating { unit, contexts, unknown_faults: 0 }),
                Err(NoMemory) => {
                    self.iommu = Iommu::default();
                    return Err("there is no memory for tables".into());
                }
            }
        }
        self.assign_functions(&dmar, &numbers);
        (0..self.iommu.units.len()).for_each(|index| self.start_unit(index, format));
        self.remap_interrupts(&dmar);
        if self.attach_fault_interrupt().is_none() {
            self.machine.report(format_args!("root: faults of devices are seen only when drivers end"));
        }
        Ok(())
    }

    /// Notes for each function which unit translates for it, and what the firmware has told it.
    fn assign_functions(&mut self, dmar: &Dmar, numbers: &[Option<usize>]) {
        let bridges = &self.bridges;
        let beyond = |place| Bridge::beyond(bridges, place);
        for function in &mut self.functions {
            function.unit = dmar.unit_of(function.place, &beyond).and_then(|index| numbers[index]);
            function.reserved = dmar.reserved_for(function.place, &beyond);
            let place = PlaceName(function.place);
            let (machine, frames) = (&mut self.machine, &self.frames);
            function.reserved.retain(|memory| {
                let is_other = !frames.has_part_of(memory);
                if !is_other {
                    machine.report(format_args!(
                        "root: the firmware reserves {:#x}..{:#x} for function {place}, which is free memory: not granted",
                        memory.start, memory.end
                    ));
                }
                is_other
            });
        }
    }

    fn start_unit(&mut self, index: usize, format: Format) {
        let (units, _, mut memory) = parts!(self);
        let Translating { unit, contexts, .. } = &mut units[index];
        let started = unit.start(&mut memory, contexts.root());
        let at = unit.registers;
        if started.is_err() {
            return self.stop_functions_of(index);
        }
        let count = self.functions.iter().filter(|function| function.unit == Some(index)).count();
        let levels = format.levels;
        self.machine.report(format_args!(
            "root: IOMMU at {at:#x}, tables of {levels} levels, PCI functions: {count}"
        ));
    }

    /// Makes an interrupt message of the units' faults, which the calling thread gets.
    fn attach_fault_interrupt(&mut self) -> Option<()> {
        let interrupt = self.free_interrupt()?;
        // What units send themselves is not remapped.
        let message = self.tell_message(interrupt, MessageSource::Unchecked).ok()?;
        let machine = &mut self.machine;
        let caller = machine.caller();
        machine.set_interrupt_handler(ThreadId::interrupt(interrupt), caller).ok()?;
        self.iommu.interrupt = Some(interrupt);
        for translating in &self.iommu.units {
            translating.unit.set_fault_message(machine, message);
        }
        Some(())
    }

    /// Gives the server a domain in which its functions reach what the firmware has told them.
    ///
    /// # Errors
    /// The reason why the server cannot be started, as text.
    pub(crate) fn begin_domain(&mut self, server: ServerIndex) -> Result<(), String> {
        let Some(format) = self.iommu.format else { return Ok(()) };
        let own = self.functions.iter_mut().filter(|function| function.owner == Some(server));
        let mut places = Vec::new();
        let mut reserved = Vec::new();
        for function in own {
            function.faults = 0;
            match function.unit {
                Some(unit) => places.extend(function.requesters().map(|place| (place, unit))),
                None => self.machine.report(format_args!(
                    "root: no IOMMU translates for function {}: its driver is trusted",
                    PlaceName(function.place)
                )),
            }
            reserved.extend(function.reserved.iter().cloned());
        }
        if places.is_empty() {
            return Ok(());
        }
        let (units, domains, mut memory) = parts!(self);
        // Some units keep domain 0 for themselves.
        let is_free = |number: &u32| domains.iter().all(|domain| u32::from(domain.number) != *number);
        let most = places.iter().map(|&(_, unit)| units[unit].unit.domains()).min().unwrap_or(0);
        let number = (1..most).find(is_free).ok_or("the IOMMU has no domain left")? as u16;
        let no_memory = |NoMemory| "no memory for the tables of its devices";
        let mut tables = PageTables::new(&mut memory, format).map_err(no_memory)?;
        let mut result = tables.map(&mut memory, &reserved);
        for &(place, unit) in &places {
            let contexts = &mut units[unit].contexts;
            result = result.and_then(|()| contexts.attach(&mut memory, place, number, &tables));
        }
        domains.push(Domain { server, number, tables, memory: Vec::new() });
        self.forget(server, number, true);
        result.map_err(no_memory).map_err(String::from)
    }

    /// Lets the functions of a server reach this memory, too.
    ///
    /// # Errors
    /// `NoMemory`: there is none for tables, or the units cannot reach the memory; then the
    /// functions reach what they reached before. `Unsupported`: a unit does not answer, and the
    /// functions are stopped.
    pub(crate) fn grant(&mut self, server: ServerIndex, ranges: &[Range<u64>]) -> Result<(), Status> {
        let (units, domains, mut memory) = parts!(self);
        let Some(domain) = domains.iter_mut().find(|domain| domain.server == server) else { return Ok(()) };
        domain.tables.map(&mut memory, ranges).map_err(|NoMemory| Status::NoMemory)?;
        let mut stuck = None;
        for (index, translating) in units.iter_mut().enumerate() {
            let is_its = self.functions.iter().any(|it| it.owner == Some(server) && it.unit == Some(index));
            if is_its && translating.unit.announce(&mut memory, domain.number).is_err() {
                stuck = Some(index);
            }
        }
        match stuck {
            None => Ok(()),
            Some(index) => {
                self.stop_functions_of(index);
                Err(Status::Unsupported)
            }
        }
    }

    /// Lets the functions of a server reach memory that it has for its devices, until it ends.
    ///
    /// # Errors
    /// As for [`grant`](Self::grant).
    pub(crate) fn grant_memory(&mut self, server: ServerIndex, block: &Range<u64>) -> Result<(), Status> {
        let Some(domain) = self.iommu.domain(server) else { return Ok(()) };
        self.iommu.domains[domain].memory.try_reserve(1).map_err(|_| Status::NoMemory)?;
        self.grant(server, core::slice::from_ref(block))?;
        self.iommu.domains[domain].memory.push(block.clone());
        Ok(())
    }

    /// Takes a server's domain away: when the function returns, its functions reach no memory.
    pub(crate) fn end_domain(&mut self, server: ServerIndex) {
        self.remove_domain(server);
    }

    /// Returns the memory that the server had for its devices, if it had a domain.
    fn remove_domain(&mut self, server: ServerIndex) -> Option<Vec<Range<u64>>> {
        let domain = self.iommu.domain(server)?;
        self.take_faults();
        let (units, domains, mut memory) = parts!(self);
        let Domain { number, tables, memory: blocks, .. } = domains.swap_remove(domain);
        for function in self.functions.iter().filter(|function| function.owner == Some(server)) {
            if let Some(unit) = function.unit {
                function.requesters().for_each(|place| units[unit].contexts.detach(&mut memory, place));
            }
        }
        // A unit that does not answer may still read the tables, which are given back to it only.
        if self.forget(server, number, true) {
            let (_, _, mut memory) = parts!(self);
            memory.give_back(tables.into_pages());
        }
        Some(blocks)
    }

    /// Makes the domain of a driver again, after it has lost pools. Its functions must have been
    /// disabled.
    pub(crate) fn renew_domain(&mut self, driver: ServerIndex) {
        let Some(blocks) = self.remove_domain(driver) else { return };
        let mut renewed = self.begin_domain(driver).is_ok();
        for block in &blocks {
            renewed = renewed && self.grant_memory(driver, block).is_ok();
        }
        let pools = self.pools.ranges_of_driver(driver);
        if !renewed || self.grant(driver, &pools).is_err() {
            self.machine.report(format_args!("root: functions have lost the memory of their driver"));
        }
    }

    /// Has the units of a server's functions forget its domain. Returns whether all of them have;
    /// the functions of those that have not are stopped.
    fn forget(&mut self, server: ServerIndex, number: u16, contexts: bool) -> bool {
        let mut stuck = Vec::new();
        let (units, _, mut memory) = parts!(self);
        for (index, translating) in units.iter_mut().enumerate() {
            let is_its = self.functions.iter().any(|it| it.owner == Some(server) && it.unit == Some(index));
            if is_its && translating.unit.forget(&mut memory, contexts, Some(number)).is_err() {
                stuck.push(index);
            }
        }
        stuck.iter().for_each(|&index| self.stop_functions_of(index));
        stuck.is_empty()
    }

    /// Stops the functions of a unit that does not answer.
    fn stop_functions_of(&mut self, index: usize) {
        let at = self.iommu.units[index].unit.registers;
        self.machine
            .report(format_args!("root: the IOMMU at {at:#x} does not answer: its functions are stopped"));
        self.disable_functions_where(|function| function.unit == Some(index));
    }

    /// Reports the accesses that the units have refused.
    pub(crate) fn take_faults(&mut self) {
        for index in 0..self.iommu.units.len() {
            let mut faults = Vec::new();
            let unit = &self.iommu.units[index].unit;
            let has_all = unit.take_faults(&mut self.machine, |fault| {
                if faults.try_reserve(1).is_ok() {
                    faults.push(fault);
                }
            });
            faults.iter().for_each(|fault| self.fault(index, fault));
            if !has_all {
                self.mask_faults(index);
            }
        }
    }

    fn fault(&mut self, unit: usize, fault: &Fault) {
        let Fault { what, reason, .. } = *fault;
        let function = self.functions.iter_mut().find(|function| function.is_requester(fault.place));
        let Some(function) = function else {
            let unknown = &mut self.iommu.units[unit].unknown_faults;
            *unknown = unknown.saturating_add(1);
            let count = *unknown;
            if count <= MOST_FAULTS {
                let place = PlaceName(fault.place);
                self.machine
                    .report(format_args!("root: unknown function {place} may not {what} (reason {reason})"));
            }
            if count == MOST_FAULTS {
                self.mask_faults(unit);
            }
            return;
        };
        function.faults = function.faults.saturating_add(1);
        let (place, faults, owner) = (function.place, function.faults, function.owner);
        if faults <= MOST_FAULTS {
            let driver = if function.driver.is_empty() { "none" } else { &function.driver };
            self.machine.report(format_args!(
                "root: function {} (driver: {driver}) may not {what} (reason {reason})",
                PlaceName(place)
            ));
        }
        if faults == MOST_FAULTS {
            self.machine.report(format_args!(
                "root: faults of function {} are not reported any more",
                PlaceName(place)
            ));
            let requesters: Vec<u32> = function.requesters().collect();
            let (units, domains, mut memory) = parts!(self);
            requesters.iter().for_each(|&place| units[unit].contexts.silence(&mut memory, place));
            let number =
                domains.iter().find(|domain| Some(domain.server) == owner).map(|domain| domain.number);
            if units[unit].unit.forget(&mut memory, true, number).is_err() {
                self.stop_functions_of(unit);
            }
        }
        if faults >= MOST_FAULTS && matches!(what, Refused::Interrupt(_)) {
            // A unit cannot be told to record no more of these.
            self.disable_functions_where(|function| function.is_requester(fault.place));
        }
    }

    fn mask_faults(&mut self, index: usize) {
        let unit = &self.iommu.units[index].unit;
        unit.mask_faults(&mut self.machine);
        let at = unit.registers;
        self.machine.report(format_args!(
            "root: the IOMMU at {at:#x} has more faults: they are seen only when drivers end"
        ));
    }
}
