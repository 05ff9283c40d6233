//! PCI functions and their message-signalled interrupts.
//!
//! A driver has the registers of its functions, but neither their configuration space nor the pages
//! with tables of messages: which interrupt a function raises is root's to say. Without an IOMMU
//! that does not hold a driver up that lets its device write what looks like a message: such a
//! driver is trusted not to.

use crate::resources::Resources;
use crate::server::{Server, name};
use alloc::vec::Vec;
use core::ops::Range;
use l4::extension::{self, InterruptMessage};
use l4::{kip, port, thread, utcb};
use root::pci::{self, ConfigurationSpace, ENTRY, Messages, Region};
use root::thread_numbers::{ServerIndex, ThreadName};
use rt::root::Status;
use x2::ThreadId;

/// Configuration mechanism 1: which register, and its value.
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;
/// At most so many PCI functions are recorded.
const MOST_FUNCTIONS: usize = 256;

/// Where a function is: bus, device and function, as bits 8..24 of an address of configuration
/// mechanism 1.
#[derive(Clone, Copy)]
struct Place(u32);

impl ConfigurationSpace for Place {
    fn read(&self, register: u8) -> u32 {
        // SAFETY: reading configuration space changes nothing of the devices that there are; no
        // other code uses the ports.
        unsafe {
            port::write32(ADDRESS, ENABLE | self.0 | u32::from(register));
            port::read32(DATA)
        }
    }

    fn write(&mut self, register: u8, value: u32) {
        // SAFETY: `root::pci` writes what does not let a device touch memory but that of its
        // driver.
        unsafe {
            port::write32(ADDRESS, ENABLE | self.0 | u32::from(register));
            port::write32(DATA, value);
        }
    }
}

/// A function of a PCI device.
pub(crate) struct Function {
    place: Place,
    function: pci::Function,
    owner: Option<ServerIndex>,
    attached: Vec<Attached>,
}

/// A message-signalled interrupt that a server has attached to.
struct Attached {
    /// Which of the function's interrupt messages it is.
    entry: u16,
    interrupt: u32,
    handler: ThreadName,
}

/// All functions that can be reached from the first bus. They are silent from now on.
pub(crate) fn find_all() -> Vec<Function> {
    let mut found = Vec::new();
    let (mut buses, mut next) = (alloc::vec![0u8], 0);
    while let Some(&bus) = buses.get(next) {
        next += 1;
        for device in 0..32 {
            let mut functions = 1;
            let mut number = 0;
            while number < functions {
                let place = Place(u32::from(bus) << 16 | device << 11 | number << 8);
                number += 1;
                if place.read(0) & 0xffff == 0xffff {
                    continue;
                }
                let (behind, more) = pci::kind(&place);
                functions = if more { 8 } else { functions };
                if let Some(behind) = behind.filter(|behind| !buses.contains(behind)) {
                    buses.push(behind);
                }
                found.push((place, behind.is_none()));
            }
        }
    }
    let ends = found.into_iter().filter(|&(_, is_end)| is_end).take(MOST_FUNCTIONS);
    ends.filter_map(|(place, _)| Function::at(place)).collect()
}

impl Function {
    fn at(mut place: Place) -> Option<Function> {
        let function = pci::Function::find(&mut place)?;
        Some(Function { place, function, owner: None, attached: Vec::new() })
    }

    /// Whether a server may be given it: no server has it, and it is what is asked for.
    pub(crate) fn is_free(&self, (vendor, device): (u16, u16)) -> bool {
        self.owner.is_none() && self.function.identity == u32::from(device) << 16 | u32::from(vendor)
    }

    /// Gives the function to this server, which keeps it for ever.
    pub(crate) fn give_to(&mut self, owner: ServerIndex) {
        self.owner = Some(owner);
    }

    /// Writes an entry of the table of messages, which exists.
    fn write_entry(&self, entry: u16, words: [u32; 4]) -> Result<(), Status> {
        let Some(Messages::Table { table, .. }) = self.function.messages else { return Ok(()) };
        let at = table + u64::from(entry) * ENTRY;
        crate::modules::map(at, ENTRY).ok_or(Status::Unsupported)?;
        for (index, word) in (0u64..).zip(words) {
            // SAFETY: the table is the device's, which `map` has mapped here, and no other code
            // writes to it.
            unsafe { ((at + 4 * index) as *mut u32).write_volatile(word) }
        }
        Ok(())
    }

    /// Writes the interrupt message into an entry of the MSI-X table, or into the MSI capability.
    fn tell(&mut self, entry: u16, message: InterruptMessage) -> Result<(), Status> {
        if self.attached.is_empty() {
            for other in 0..self.function.message_count() {
                self.write_entry(other, MASKED)?;
            }
        }
        let InterruptMessage { address, data } = message;
        self.write_entry(entry, [address as u32, (address >> 32) as u32, data as u32, 0])?;
        self.function.enable(&mut self.place, address, data as u32);
        Ok(())
    }

    /// Those of its messages that `which` are interrupts no more. Returns the interrupts.
    fn untell(&mut self, which: impl Fn(&Attached) -> bool) -> Vec<u32> {
        let gone: Vec<Attached> = self.attached.extract_if(.., |attached| which(attached)).collect();
        for attached in &gone {
            self.write_entry(attached.entry, MASKED).expect("the entry has been written before");
        }
        if self.attached.is_empty() && !gone.is_empty() {
            self.function.disable(&mut self.place);
        }
        gone.into_iter().map(|attached| attached.interrupt).collect()
    }
}

/// An entry of the MSI-X table that sends no message.
const MASKED: [u32; 4] = [0, 0, 0, 1];

impl Resources {
    /// A thread has been ended, and with it what made its interrupts messages to it.
    pub(crate) fn forget_messages(&mut self, thread: ThreadName) {
        for function in &mut self.functions {
            function.untell(|attached| attached.handler == thread);
        }
    }

    /// The functions of a server that has ended do nothing any more.
    pub(crate) fn silence(&mut self, server: ServerIndex) {
        for function in self.functions.iter_mut().filter(|function| function.owner == Some(server)) {
            function.function.silence(&mut function.place);
        }
    }

    /// A message-signalled interrupt that no function has, if there is one; preferably one of this
    /// processor's.
    fn free_interrupt(&self) -> Option<u32> {
        let all = kip().message_interrupts();
        let used = |number: u32| {
            self.functions.iter().flat_map(|function| &function.attached).any(|used| used.interrupt == number)
        };
        let (here, processors) = (utcb::processor_number() as u32, kip().processor_info().processors);
        let is_here = |number: &u32| (number - all.start) % processors == here;
        let mut free = all.clone().filter(|&number| !used(number));
        free.clone().find(is_here).or_else(|| free.next())
    }
}

impl Server {
    /// The `index`th function of the server's configuration, if the machine has it.
    fn function<'a>(&self, resources: &'a mut Resources, index: u64) -> Option<&'a mut Function> {
        let at = *self.functions.get(usize::try_from(index).ok()?)?;
        resources.functions.get_mut(at?)
    }

    fn functions<'a>(&self, resources: &'a Resources) -> impl Iterator<Item = &'a pci::Function> {
        let index = self.index;
        let own = resources.functions.iter().filter(move |function| function.owner == Some(index));
        own.map(|function| &function.function)
    }

    /// Request: where the `index`th function is (bus, device, function), and how many messages it
    /// can be told.
    pub(crate) fn pci_function(&self, resources: &mut Resources, index: u64) -> Option<(u64, u64)> {
        let function = self.function(resources, index)?;
        Some(((function.place.0 >> 8).into(), function.function.message_count().into()))
    }

    /// Request: the registers that the `index`th function has at its base address `number`: 0 for
    /// memory or 1 for ports, the first address or port, and how many.
    pub(crate) fn pci_region(
        &self,
        resources: &mut Resources,
        index: u64,
        number: u64,
    ) -> Result<[u64; 3], Status> {
        let function = self.function(resources, index).ok_or(Status::NotFound)?;
        let number = usize::try_from(number).ok();
        let region = number.and_then(|number| *function.function.regions.get(number)?);
        match region.ok_or(Status::NotFound)? {
            Region::Memory { base, size } => Ok([0, base, size]),
            Region::Ports { first, last } => Ok([1, first.into(), u64::from(last - first) + 1]),
        }
    }

    /// Whether the pages are registers of a function of the server's.
    pub(crate) fn may_map(&self, resources: &Resources, pages: &Range<u64>) -> bool {
        self.functions(resources).any(|function| function.may_map(pages))
    }

    /// The ports of a function of the server's among which these are.
    pub(crate) fn pci_ports(&self, resources: &Resources, first: u16, last: u16) -> Option<(u16, u16)> {
        self.functions(resources).find_map(|function| function.ports(first, last))
    }

    /// Request: message `entry` of the `index`th function becomes messages to `handler`. Returns
    /// the interrupt.
    pub(crate) fn attach_message(
        &self,
        resources: &mut Resources,
        [index, entry]: [u64; 2],
        handler: ThreadId,
    ) -> Result<u64, Status> {
        if !resources.is_own(self.index, handler) {
            return Err(Status::InvalidArgument);
        }
        let interrupt = resources.free_interrupt();
        let function = self.function(resources, index).ok_or(Status::NotFound)?;
        let count = function.function.message_count();
        let entry = u16::try_from(entry).ok().filter(|&entry| entry < count).ok_or(Status::NotFound)?;
        if function.attached.iter().any(|attached| attached.entry == entry) {
            return Err(Status::InUse);
        }
        let interrupt = interrupt.ok_or(Status::NoMemory)?;
        function.attached.try_reserve(1).map_err(|_| Status::NoMemory)?;
        let message = extension::interrupt_message(interrupt).map_err(|_| Status::Unsupported)?;
        let line = ThreadId::interrupt(interrupt);
        thread::associate_interrupt(line, handler).map_err(|_| Status::NoMemory)?;
        if let Err(status) = function.tell(entry, message) {
            thread::disassociate_interrupt(line).map_err(|_| Status::Unsupported)?;
            return Err(status);
        }
        function.attached.push(Attached { entry, interrupt, handler: name(handler) });
        Ok(interrupt.into())
    }

    /// Request: detaches the server from a message-signalled interrupt.
    pub(crate) fn detach_message(&self, resources: &mut Resources, interrupt: u64) -> Result<(), Status> {
        let index = self.index;
        let own = resources.functions.iter_mut().filter(|function| function.owner == Some(index));
        let gone =
            own.flat_map(|function| function.untell(|used| u64::from(used.interrupt) == interrupt)).next();
        let line = ThreadId::interrupt(gone.ok_or(Status::InvalidArgument)?);
        thread::disassociate_interrupt(line).map_err(|_| Status::NotFound)
    }
}
