//! Interrupts, I/O ports and device memory for drivers, and the end of the system.

use crate::end::End;
use crate::resources::Resources;
use crate::server::{Server, name};
use core::ops::RangeInclusive;
use l4::ipc::Message;
use l4::{port, sigma0, thread};
use root::executable::PAGE;
use root::pages;
use rt::root::Status;
use x2::{Fpage, MapItem, Rights, ThreadId};

/// Port of the emulator's debug-exit device.
const DEBUG_EXIT: u16 = 0xf4;
/// PM1a control register where the firmware of QEMU's machines puts it, and what switches them off
/// (sleep type 0, enable).
const POWER_CONTROL: u16 = 0x604;
const POWER_OFF: u16 = 1 << 13;
/// The chipset's reset register, and a full reset.
const RESET_CONTROL: u16 = 0xcf9;
const RESET: u8 = 6;
/// The keyboard controller's command register, and a pulse on its reset line.
const KEYBOARD: u16 = 0x64;
const KEYBOARD_RESET: u8 = 0xfe;

impl Server {
    /// A thread of the server has used `ports`, which its space does not have: it gets all of the
    /// range that they lie in, or comes to its end, for the reason that is returned.
    pub(crate) fn port_fault(&self, resources: &Resources, fpage: u64, ip: u64) -> Result<Message, End> {
        let ports = Fpage::from_raw(fpage).ports();
        let granted = ports.and_then(|ports| {
            let holds =
                |range: &&RangeInclusive<u16>| range.contains(&ports.first) && range.contains(&ports.last());
            let configured = self.configuration.ports.iter().find(holds).cloned();
            let registers = || self.pci_ports(resources, ports.first, ports.last());
            configured.or_else(|| registers().map(|(first, last)| first..=last))
        });
        let fpages = granted.iter().flat_map(|range| {
            let (first, count) = (u64::from(*range.start()), range.len() as u64);
            pages::runs(first, first, count)
                .map(|run| Fpage::io(run.address as u16, run.size_log2).with_rights(Rights::ALL))
        });
        // Asking sigma0 uses the message registers: the answer is written afterwards.
        if granted.is_none() || fpages.clone().any(|fpage| sigma0::request_ports(fpage) != Ok(true)) {
            return Err(End::Ports { fpage, ip });
        }
        Ok(fpages.fold(Message::new(0), |message, fpage| message.map_item(MapItem::map(fpage, 0))))
    }

    /// Request: which resources the configuration gives the server: the `index`th of a kind.
    pub(crate) fn resource(&self, resources: &mut Resources, kind: u64, index: u64) -> Option<(u64, u64)> {
        if kind == 3 {
            return self.pci_function(resources, index);
        }
        let (configuration, index) = (&self.configuration, usize::try_from(index).ok()?);
        match kind {
            0 => configuration.interrupts.get(index).map(|&line| (line.into(), 0)),
            1 => configuration.ports.get(index).map(|ports| ((*ports.start()).into(), (*ports.end()).into())),
            2 => configuration.devices.get(index).copied(),
            _ => None,
        }
    }

    /// Request: device memory, whole pages of one of the server's devices.
    pub(crate) fn map_device(
        &mut self,
        resources: &Resources,
        first: ThreadId,
        [physical, size, address]: [u64; 3],
    ) -> Result<(), Status> {
        if !physical.is_multiple_of(PAGE) || !size.is_multiple_of(PAGE) {
            return Err(Status::InvalidArgument);
        }
        let end = physical.checked_add(size).ok_or(Status::InvalidArgument)?;
        let is_own = |&(base, length): &(u64, u64)| base <= physical && end <= base + length;
        let is_own = self.configuration.devices.iter().any(is_own);
        if !is_own && !self.may_map(resources, &(physical..end)) {
            return Err(Status::NotFound);
        }
        if crate::modules::map(physical, size).is_none() {
            return Err(Status::Unsupported);
        }
        self.memory.add_borrowed(first, address, physical, size, Rights::READ_WRITE)
    }

    /// Request: interrupts of `line` become messages to `thread`.
    pub(crate) fn attach_interrupt(
        &self,
        resources: &mut Resources,
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
        thread::associate_interrupt(ThreadId::interrupt(line), thread).map_err(|_| Status::NotFound)?;
        resources.lines.push((line, name(thread)));
        Ok(())
    }

    /// Request: the line of a thread of the server's is free again.
    pub(crate) fn detach_interrupt(&self, resources: &mut Resources, line: u64) -> Result<(), Status> {
        let numbers = &resources.numbers;
        let is_it =
            |&(other, thread): &(u32, _)| u64::from(other) == line && numbers.is_own(self.index, thread);
        let at = resources.lines.iter().position(is_it).ok_or(Status::InvalidArgument)?;
        let (line, _) = resources.lines.swap_remove(at);
        thread::disassociate_interrupt(ThreadId::interrupt(line)).map_err(|_| Status::NotFound)
    }

    /// Request: ends the system. Returns if the machine does not do it.
    pub(crate) fn end_system(&self, how: u64, status: u64) -> Result<(), Status> {
        if !self.configuration.power {
            return Err(Status::NotFound);
        }
        match how {
            // SAFETY: the system ends here, as it was asked to; sigma0 gives root every port.
            0 if status < 128 => unsafe {
                port::write32(DEBUG_EXIT, status as u32);
                port::write16(POWER_CONTROL, POWER_OFF);
            },
            // SAFETY: the system ends here, as it was asked to; sigma0 gives root every port.
            1 => unsafe {
                port::write8(RESET_CONTROL, RESET);
                port::write8(KEYBOARD, KEYBOARD_RESET);
            },
            _ => return Err(Status::InvalidArgument),
        }
        Err(Status::Unsupported)
    }
}
