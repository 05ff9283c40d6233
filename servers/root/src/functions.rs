//! PCI functions and their message-signalled interrupts.
//!
//! A driver has the registers of its functions, but neither their configuration space nor the pages
//! with tables of messages: root decides which interrupt a function raises. A driver could still
//! make its device write to the address where such a message goes, and so raise any interrupt.
//! Where no [IOMMU](crate::iommu) keeps it from that, it is trusted not to do it.

use crate::configuration::FunctionId;
use crate::machine::Machine;
use crate::pci::{self, ConfigurationSpace, ENTRY, Messages, Region};
use crate::resources::Resources;
use crate::server::{Server, id, name};
use crate::thread_numbers::{ServerIndex, ThreadName};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use l4::extension::InterruptMessage;
use rt::root::Status;
use x2::ThreadId;

/// Upper bound of the number of PCI functions that are recorded.
const MOST_FUNCTIONS: usize = 256;

/// The number of a PCI function: bus, device and function, as [`Machine::read_configuration`] takes
/// it.
type Place = u32;

/// The configuration space of the PCI function at `place`.
struct Registers<'a, M> {
    machine: &'a mut M,
    place: Place,
}

impl<M: Machine> ConfigurationSpace for Registers<'_, M> {
    fn read(&self, register: u8) -> u32 {
        self.machine.read_configuration(self.place, register)
    }

    fn write(&mut self, register: u8, value: u32) {
        self.machine.write_configuration(self.place, register, value);
    }
}

/// A function of a PCI device.
pub(crate) struct Function {
    pub(crate) place: Place,
    function: pci::Function,
    pub(crate) owner: Option<ServerIndex>,
    /// The name of the owner; empty without one.
    pub(crate) driver: String,
    attached: Vec<Attached>,
    /// The place in whose name its accesses to memory reach an IOMMU, if that is another one: it is
    /// beyond a bridge of conventional PCI.
    alias: Option<Place>,
    /// The index of the IOMMU that translates for it.
    pub(crate) unit: Option<usize>,
    /// The memory that it must reach, because the firmware has told it so.
    pub(crate) reserved: Vec<Range<u64>>,
    /// How many of its accesses to memory have been refused since its driver was started.
    pub(crate) faults: u32,
}

/// A PCI bridge.
pub(crate) struct Bridge {
    pub(crate) place: Place,
    /// The first bus beyond it, and the last.
    pub(crate) first: u8,
    pub(crate) last: u8,
}

impl Bridge {
    /// The buses beyond the function at `place`, from the first to the last, if it is a bridge.
    pub(crate) fn beyond(all: &[Bridge], place: Place) -> Option<(u8, u8)> {
        let bridge = all.iter().find(|bridge| bridge.place == place)?;
        (bridge.first <= bridge.last).then_some((bridge.first, bridge.last))
    }
}

/// A message-signalled interrupt that a server has attached to.
struct Attached {
    /// The index of the interrupt message among those of the function.
    entry: u16,
    interrupt: u32,
    handler: ThreadName,
}

/// All functions that can be reached from the first PCI bus, and the bridges between. Each function
/// is disabled: it sends no interrupts and uses no memory.
pub(crate) fn find_all(machine: &mut impl Machine) -> (Vec<Function>, Vec<Bridge>) {
    let (mut found, mut bridges) = (Vec::new(), Vec::new());
    let (mut buses, mut next) = (alloc::vec![(0u8, None)], 0);
    while let Some(&(bus, alias)) = buses.get(next) {
        next += 1;
        for device in 0..32 {
            let mut functions = 1;
            let mut number = 0;
            while number < functions {
                let place = u32::from(bus) << 16 | device << 11 | number << 8;
                number += 1;
                let registers = Registers { machine, place };
                if registers.read(0) & 0xffff == 0xffff {
                    continue;
                }
                let (_, more) = pci::kind(&registers);
                functions = if more { 8 } else { functions };
                let beyond = pci::buses_beyond(&registers);
                if let Some((first, last)) = beyond
                    && buses.iter().all(|&(other, _)| other != first)
                {
                    buses.push((first, alias.or_else(|| alias_beyond(&registers, first))));
                    bridges.push(Bridge { place, first, last });
                }
                found.push((place, alias, beyond.is_none()));
            }
        }
    }
    let ends = found.into_iter().filter(|&(_, _, is_end)| is_end).take(MOST_FUNCTIONS);
    let functions = ends.filter_map(|(place, alias, _)| Function::at(machine, place, alias)).collect();
    (functions, bridges)
}

/// The place in whose name all functions beyond a bridge reach memory, if they have one: the bridge
/// leads to conventional PCI, where accesses do not say which function they come from.
fn alias_beyond<M: Machine>(bridge: &Registers<'_, M>, first_bus: u8) -> Option<Place> {
    match pci::express_port(bridge) {
        None => Some(bridge.place),
        Some(pci::TO_CONVENTIONAL) => Some(u32::from(first_bus) << 16),
        Some(_) => None,
    }
}

impl Function {
    fn at(machine: &mut impl Machine, place: Place, alias: Option<Place>) -> Option<Function> {
        let function = pci::Function::find(&mut Registers { machine, place })?;
        Some(Function {
            place,
            function,
            owner: None,
            driver: String::new(),
            attached: Vec::new(),
            alias,
            unit: None,
            reserved: Vec::new(),
            faults: 0,
        })
    }

    /// The message-signalled interrupts that the function raises.
    #[cfg(test)]
    pub(crate) fn attached_interrupts(&self) -> Vec<u32> {
        self.attached.iter().map(|used| used.interrupt).collect()
    }

    /// The places in whose names the function's accesses reach an IOMMU.
    pub(crate) fn requesters(&self) -> impl Iterator<Item = Place> + use<> {
        [Some(self.place), self.alias].into_iter().flatten()
    }

    /// The bus, device and function in whose name its interrupt messages reach an IOMMU.
    fn source(&self) -> u16 {
        (self.alias.unwrap_or(self.place) >> 8) as u16
    }

    /// Whether accesses in the name of `place` may be the function's.
    pub(crate) fn is_requester(&self, place: Place) -> bool {
        self.requesters().any(|own| own == place)
    }

    /// Whether an IOMMU cannot tell the two functions apart.
    fn is_as(&self, other: &Function) -> bool {
        self.unit.is_some() && self.alias.is_some() && self.alias == other.alias
    }

    /// Whether a server that asks for such a function may be given it: it matches, and no server
    /// has it.
    pub(crate) fn is_free(&self, wanted: FunctionId) -> bool {
        let matches = match wanted {
            FunctionId::Device { vendor, device } => {
                self.function.identity == u32::from(device) << 16 | u32::from(vendor)
            }
            FunctionId::Class(class) => self.function.class == class,
        };
        self.owner.is_none() && matches
    }

    /// Gives the function to this server, which keeps it until the system ends.
    pub(crate) fn give_to(&mut self, owner: ServerIndex, name: &str) {
        self.owner = Some(owner);
        self.driver = name.into();
    }

    /// Writes the four words of entry `entry` of the MSI-X table, if the function has one. The
    /// entry must exist.
    fn write_entry(&self, machine: &mut impl Machine, entry: u16, words: [u32; 4]) -> Result<(), Status> {
        let Some(Messages::Table { table, .. }) = self.function.messages else { return Ok(()) };
        let at = table + u64::from(entry) * ENTRY;
        if !machine.request_memory(at, ENTRY) {
            return Err(Status::Unsupported);
        }
        for (index, word) in (0u64..).zip(words) {
            machine.write_register(at + 4 * index, word);
        }
        Ok(())
    }

    /// Writes the interrupt message into an entry of the MSI-X table, or into the MSI capability.
    fn enable_message(
        &mut self,
        machine: &mut impl Machine,
        entry: u16,
        message: InterruptMessage,
    ) -> Result<(), Status> {
        if self.attached.is_empty() {
            for other in 0..self.function.message_count() {
                self.write_entry(machine, other, MASKED)?;
            }
        }
        let InterruptMessage { address, data } = message;
        self.write_entry(machine, entry, [address as u32, (address >> 32) as u32, data as u32, 0])?;
        self.function.enable(&mut Registers { machine, place: self.place }, address, data as u32);
        Ok(())
    }

    /// Detaches the function's interrupt messages for which `which` is true. Returns their
    /// interrupts, which are free then.
    fn mask_messages(&mut self, machine: &mut impl Machine, which: impl Fn(&Attached) -> bool) -> Vec<u32> {
        let gone: Vec<Attached> = self.attached.extract_if(.., |attached| which(attached)).collect();
        for attached in &gone {
            self.write_entry(machine, attached.entry, MASKED).expect("the entry has been written before");
        }
        if self.attached.is_empty() && !gone.is_empty() {
            self.function.disable_messages(&mut Registers { machine, place: self.place });
        }
        gone.into_iter().map(|attached| attached.interrupt).collect()
    }
}

/// An entry of the MSI-X table that sends no message.
const MASKED: [u32; 4] = [0, 0, 0, 1];

impl<M: Machine> Resources<M> {
    /// Detaches the interrupt messages whose handler was `thread`, which has been ended.
    pub(crate) fn forget_messages(&mut self, thread: ThreadName) {
        let mut gone = Vec::new();
        for function in &mut self.functions {
            gone.extend(function.mask_messages(&mut self.machine, |attached| attached.handler == thread));
        }
        self.give_back(&gone);
    }

    /// Finds the PCI functions of the machine.
    pub(crate) fn find_functions(&mut self) {
        (self.functions, self.bridges) = find_all(&mut self.machine);
    }

    /// The index of a function that a server may be given for which its configuration asks. Those
    /// that an IOMMU cannot tell apart are of one server.
    pub(crate) fn free_function(&self, wanted: FunctionId, server: ServerIndex) -> Option<usize> {
        let is_free = |function: &Function| {
            let mut others = self.functions.iter().filter(|other| function.is_as(other));
            function.is_free(wanted) && others.all(|other| other.owner.is_none_or(|owner| owner == server))
        };
        self.functions.iter().position(is_free)
    }

    /// Disables the PCI functions of a server that has ended.
    pub(crate) fn disable_functions(&mut self, server: ServerIndex) {
        self.disable_functions_where(|function| function.owner == Some(server));
    }

    /// Disables the PCI functions for which `which` is true.
    pub(crate) fn disable_functions_where(&mut self, which: impl Fn(&Function) -> bool) {
        for function in self.functions.iter_mut().filter(|function| which(function)) {
            let registers = &mut Registers { machine: &mut self.machine, place: function.place };
            function.function.disable(registers);
        }
    }

    /// The message-signalled interrupts that are in use by functions.
    #[cfg(test)]
    pub(crate) fn attached_interrupts(&self) -> Vec<u32> {
        self.functions.iter().flat_map(Function::attached_interrupts).collect()
    }

    /// A message-signalled interrupt that no function uses, if there is one; preferably one that
    /// the present processor receives.
    pub(crate) fn free_interrupt(&self) -> Option<u32> {
        let all = self.machine.message_interrupts();
        let used = |number: u32| {
            self.iommu.interrupt == Some(number)
                || self
                    .functions
                    .iter()
                    .flat_map(|function| &function.attached)
                    .any(|used| used.interrupt == number)
        };
        let (here, processors) = (self.machine.processor(), self.machine.processors());
        let is_here = |number: &u32| (number - all.start) % processors == here;
        let mut free = all.clone().filter(|&number| !used(number));
        free.clone().find(is_here).or_else(|| free.next())
    }
}

impl Server {
    /// The `index`th PCI function of the server's configuration, if the machine has it.
    fn function<'a>(&self, all: &'a mut [Function], index: u64) -> Option<&'a mut Function> {
        let at = *self.functions.get(usize::try_from(index).ok()?)?;
        all.get_mut(at?)
    }

    fn functions<'a, M>(&self, resources: &'a Resources<M>) -> impl Iterator<Item = &'a pci::Function> {
        let index = self.index;
        let own = resources.functions.iter().filter(move |function| function.owner == Some(index));
        own.map(|function| &function.function)
    }

    /// Carries out the request that asks where the server's `index`th PCI function is: (bus,
    /// device, function), and how many interrupt messages it can send.
    pub(crate) fn pci_function<M>(&self, resources: &mut Resources<M>, index: u64) -> Option<(u64, u64)> {
        let function = self.function(&mut resources.functions, index)?;
        Some(((function.place >> 8).into(), function.function.message_count().into()))
    }

    /// Carries out the request that asks what the base address register `number` of the server's
    /// `index`th PCI function says: 0 for memory or 1 for ports, the first address or port, and how
    /// many bytes or ports there are.
    pub(crate) fn pci_region<M>(
        &self,
        resources: &mut Resources<M>,
        index: u64,
        number: u64,
    ) -> Result<[u64; 3], Status> {
        let function = self.function(&mut resources.functions, index).ok_or(Status::NotFound)?;
        let number = usize::try_from(number).ok();
        let region = number.and_then(|number| *function.function.regions.get(number)?);
        match region.ok_or(Status::NotFound)? {
            Region::Memory { base, size } => Ok([0, base, size]),
            Region::Ports { first, last } => Ok([1, first.into(), u64::from(last - first) + 1]),
        }
    }

    /// Carries out the request that reads the word at `offset` in the configuration space of the
    /// server's `index`th PCI function.
    pub(crate) fn pci_read<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        index: u64,
        offset: u64,
    ) -> Result<u64, Status> {
        let place = self.function(&mut resources.functions, index).ok_or(Status::NotFound)?.place;
        let register = u8::try_from(offset).ok().filter(|register| register.is_multiple_of(4));
        let register = register.ok_or(Status::InvalidArgument)?;
        Ok(resources.machine.read_configuration(place, register).into())
    }

    /// Whether all of these physical pages are registers of one of the server's PCI functions.
    pub(crate) fn may_map<M>(&self, resources: &Resources<M>, pages: &Range<u64>) -> bool {
        self.functions(resources).any(|function| function.may_map(pages))
    }

    /// The range of ports of one of the server's PCI functions in which `first ..= last` lies.
    pub(crate) fn pci_ports<M>(&self, resources: &Resources<M>, first: u16, last: u16) -> Option<(u16, u16)> {
        self.functions(resources).find_map(|function| function.ports(first, last))
    }

    /// Carries out the request that makes interrupt message `entry` of the server's `index`th PCI
    /// function an IPC message to `handler`. Returns the number of the interrupt.
    pub(crate) fn attach_message<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        [index, entry]: [u64; 2],
        handler: ThreadId,
    ) -> Result<u64, Status> {
        if !resources.is_own(self.index, handler) {
            return Err(Status::InvalidArgument);
        }
        let interrupt = resources.free_interrupt();
        let function = self.function(&mut resources.functions, index).ok_or(Status::NotFound)?;
        let count = function.function.message_count();
        let entry = u16::try_from(entry).ok().filter(|&entry| entry < count).ok_or(Status::NotFound)?;
        if function.attached.iter().any(|attached| attached.entry == entry) {
            return Err(Status::InUse);
        }
        if !resources.iommu.answers(function.unit) {
            return Err(Status::Unsupported);
        }
        let interrupt = interrupt.ok_or(Status::NoMemory)?;
        function.attached.try_reserve(1).map_err(|_| Status::NoMemory)?;
        let (source, unit) = (function.source(), function.unit);
        let result = resources.make_message(interrupt, source, unit).and_then(|message| {
            self.enable_message(
                resources,
                index,
                message,
                Attached { entry, interrupt, handler: name(handler) },
            )
        });
        if result.is_err() {
            resources.give_back(&[interrupt]);
        }
        result.map(|()| interrupt.into())
    }

    /// Gives the interrupt its handler, and has the function, which exists, raise it.
    fn enable_message<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        index: u64,
        message: InterruptMessage,
        attached: Attached,
    ) -> Result<(), Status> {
        let (machine, line) = (&mut resources.machine, ThreadId::interrupt(attached.interrupt));
        machine.set_interrupt_handler(line, id(attached.handler)).map_err(|_| Status::NoMemory)?;
        let function = self.function(&mut resources.functions, index).ok_or(Status::NotFound)?;
        if let Err(status) = function.enable_message(machine, attached.entry, message) {
            machine.set_interrupt_handler(line, line).map_err(|_| Status::Unsupported)?;
            return Err(status);
        }
        function.attached.push(attached);
        Ok(())
    }

    /// Carries out the request to detach the server from a message-signalled interrupt.
    pub(crate) fn detach_message<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        interrupt: u64,
    ) -> Result<(), Status> {
        let index = self.index;
        let own = resources.functions.iter_mut().filter(|function| function.owner == Some(index));
        let machine = &mut resources.machine;
        let gone = own
            .flat_map(|function| {
                function.mask_messages(machine, |used| u64::from(used.interrupt) == interrupt)
            })
            .next();
        let interrupt = gone.ok_or(Status::InvalidArgument)?;
        resources.give_back(&[interrupt]);
        let line = ThreadId::interrupt(interrupt);
        resources.machine.set_interrupt_handler(line, line).map_err(|_| Status::NotFound)
    }
}
