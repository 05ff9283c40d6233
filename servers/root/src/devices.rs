//! Requests of drivers for interrupts, I/O ports and device memory, and the request that ends the
//! system.

use crate::end::End;
use crate::executable::PAGE;
use crate::machine::{Machine, MachineEnd};
use crate::pages;
use crate::resources::Resources;
use crate::server::{Server, name};
use core::ops::RangeInclusive;
use rt::root::Status;
use x2::boot_info::Screen;
use x2::{Fpage, Rights, ThreadId};

impl Server {
    /// Handles the fault of a thread of the server that has used ports which its space does not
    /// have. Returns the whole range that the server may use and in which the ports lie.
    ///
    /// # Errors
    /// The reason why the server ends: it may not use these ports.
    pub(crate) fn port_fault<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        fpage: u64,
        ip: u64,
    ) -> Result<RangeInclusive<u16>, End> {
        let ports = Fpage::from_raw(fpage).ports();
        let granted = ports.and_then(|ports| {
            let holds =
                |range: &&RangeInclusive<u16>| range.contains(&ports.first) && range.contains(&ports.last());
            let configured = self.configuration.ports.iter().find(holds).cloned();
            let registers = || self.pci_ports(resources, ports.first, ports.last());
            configured.or_else(|| registers().map(|(first, last)| first..=last))
        });
        let ports = granted.ok_or(End::Ports { fpage, ip })?;
        if port_fpages(&ports).any(|fpage| !resources.machine.request_ports(fpage)) {
            return Err(End::Ports { fpage, ip });
        }
        Ok(ports)
    }

    /// Carries out the request that asks which resources the configuration gives the server: the
    /// `index`th of a kind.
    pub(crate) fn resource<M>(
        &self,
        resources: &mut Resources<M>,
        kind: u64,
        index: u64,
    ) -> Option<(u64, u64)> {
        if kind == 3 {
            return self.pci_function(resources, index);
        }
        let (configuration, index) = (&self.configuration, usize::try_from(index).ok()?);
        match kind {
            0 => configuration.interrupts.get(index).map(|&line| (line.into(), 0)),
            1 => configuration.ports.get(index).map(|ports| ((*ports.start()).into(), (*ports.end()).into())),
            2 => configuration.devices.get(index).copied(),
            4 => {
                let screen = self.screen(resources)?;
                let pairs = [
                    (screen.physical, screen.pitch),
                    (screen.width, screen.height),
                    (screen.bits, screen.colours),
                ];
                pairs.get(index).copied()
            }
            _ => None,
        }
    }

    /// The machine's screen, if there is one and the server may have it.
    fn screen<M>(&self, resources: &Resources<M>) -> Option<Screen> {
        resources.screen.filter(|_| self.configuration.screen)
    }

    /// Carries out the request to map device memory: whole pages of one of the server's devices.
    pub(crate) fn map_device<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        first: ThreadId,
        [physical, size, address]: [u64; 3],
    ) -> Result<(), Status> {
        if !physical.is_multiple_of(PAGE) || !size.is_multiple_of(PAGE) {
            return Err(Status::InvalidArgument);
        }
        let end = physical.checked_add(size).ok_or(Status::InvalidArgument)?;
        let is_own = |&(base, length): &(u64, u64)| base <= physical && end <= base + length;
        let is_own = self.configuration.devices.iter().any(is_own);
        let is_screen = self.screen(resources).is_some_and(|screen| {
            let screen_end = screen.physical.saturating_add(screen.size()).next_multiple_of(PAGE);
            screen.physical & !(PAGE - 1) <= physical && end <= screen_end
        });
        if is_screen {
            resources.machine.leave_screen();
        }
        if !is_own && !is_screen && !self.may_map(resources, &(physical..end)) {
            return Err(Status::NotFound);
        }
        if !resources.machine.request_memory(physical, size) {
            return Err(Status::Unsupported);
        }
        self.memory.add_borrowed(&mut resources.machine, first, address, physical, size, Rights::READ_WRITE)
    }

    /// Carries out the request that makes interrupts of `line` messages to `thread`.
    pub(crate) fn attach_interrupt<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        line: u64,
        thread: ThreadId,
    ) -> Result<(), Status> {
        let line = u32::try_from(line).ok().filter(|line| self.configuration.interrupts.contains(line));
        let line = line.ok_or(Status::NotFound)?;
        if !resources.is_own(self.index, thread) {
            return Err(Status::InvalidArgument);
        }
        if resources.lines.iter().any(|&(other, _)| other == line) {
            return Err(Status::InUse);
        }
        resources.lines.try_reserve(1).map_err(|_| Status::NoMemory)?;
        resources
            .machine
            .set_interrupt_handler(ThreadId::interrupt(line), thread)
            .map_err(|_| Status::NotFound)?;
        resources.lines.push((line, name(thread)));
        Ok(())
    }

    /// Carries out the request to detach a thread of the server's from an interrupt line.
    pub(crate) fn detach_interrupt<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        line: u64,
    ) -> Result<(), Status> {
        let numbers = &resources.numbers;
        let is_it =
            |&(other, thread): &(u32, _)| u64::from(other) == line && numbers.is_own(self.index, thread);
        let at = resources.lines.iter().position(is_it).ok_or(Status::InvalidArgument)?;
        let (line, _) = resources.lines.swap_remove(at);
        let line = ThreadId::interrupt(line);
        resources.machine.set_interrupt_handler(line, line).map_err(|_| Status::NotFound)
    }

    /// Carries out the request to end the system. Returns if the machine does not do it.
    pub(crate) fn end_system(&self, machine: &mut impl Machine, how: u64, status: u64) -> Result<(), Status> {
        if !self.configuration.power {
            return Err(Status::NotFound);
        }
        let how = match (how, u8::try_from(status)) {
            (0, Ok(status @ 0..128)) => MachineEnd::PowerOff { status },
            (1, _) => MachineEnd::Reset,
            _ => return Err(Status::InvalidArgument),
        };
        machine.end(how);
        Err(Status::Unsupported)
    }
}

/// Splits a range of ports into fpages, each as large as possible.
pub fn port_fpages(ports: &RangeInclusive<u16>) -> impl Iterator<Item = Fpage> {
    let (first, count) = (u64::from(*ports.start()), ports.len() as u64);
    pages::runs(first, first, count)
        .map(|run| Fpage::io(run.address as u16, run.size_log2).with_rights(Rights::ALL))
}
