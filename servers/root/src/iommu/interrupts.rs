//! Interrupt messages: a function raises the interrupts that have been made for it, and no other.
//!
//! The kernel has the table of interrupts, in which each message-signalled interrupt has an entry.
//! The entry is valid for one function, and a message names the entry. Root has all units use the
//! table, and forget what they have read of it whenever an entry has changed.

use super::dmar::Dmar;
use super::{Iommu, TableMemory};
use crate::functions::Bridge;
use crate::machine::Machine;
use crate::resources::Resources;
use l4::extension::InterruptMessage;
use rt::root::Status;
use x2::ThreadId;
use x2::extension::{MessageSource, SpaceOption, TableRequest};

impl<M: Machine> Resources<M> {
    /// Has all units remap interrupts by the kernel's table, if they can, and says whether they do.
    pub(super) fn remap_interrupts(&mut self, dmar: &Dmar) {
        match self.use_interrupt_table(dmar) {
            Ok(()) => {
                self.iommu.remaps = true;
                self.machine
                    .report(format_args!("root: interrupts of PCI functions go through the kernel's table"));
            }
            Err(reason) => self.machine.report(format_args!(
                "root: PCI functions can raise any interrupt, since {reason}: drivers are trusted not to"
            )),
        }
    }

    fn use_interrupt_table(&mut self, dmar: &Dmar) -> Result<(), &'static str> {
        let [table, _] = self
            .request_table(TableRequest::Tell)
            .ok_or("the kernel has no table of interrupts (boot option interrupt-remapping)")?;
        let units = &self.iommu.units;
        let all_can = dmar.remaps_interrupts && units.iter().all(|it| it.unit.can_remap_interrupts());
        if !all_can || units.len() != dmar.units.len() {
            return Err("not all units can keep them from that");
        }
        let bridges = &self.bridges;
        for (io_apic, source) in dmar.io_apics(&|place| Bridge::beyond(bridges, place)) {
            // The kernel refuses one that it does not use.
            let request = TableRequest::Lines { io_apic, source };
            let _ = self.machine.space_options(ThreadId::NIL, SpaceOption::InterruptTable, request.words());
        }
        if self.request_table(TableRequest::Tell).is_none_or(|[_, without_source]| without_source > 0) {
            return Err("the firmware's table lacks an I/O APIC");
        }
        let (units, _, mut memory) = parts!(self);
        let stuck = units.iter_mut().position(|it| it.unit.remap_interrupts(&mut memory, table).is_err());
        if stuck.is_none() && self.request_table(TableRequest::Use).is_some() {
            return Ok(());
        }
        // Without the kernel, messages go on as before.
        let (units, _, memory) = parts!(self);
        units.iter_mut().for_each(|it| it.unit.stop_remapping(memory.machine));
        stuck.inspect(|&index| self.stop_functions_of(index));
        Err("a unit does not answer")
    }

    fn request_table(&mut self, request: TableRequest) -> Option<[u64; 2]> {
        self.machine.space_options(ThreadId::NIL, SpaceOption::InterruptTable, request.words()).ok()
    }

    /// The message by which `source` raises the message-signalled interrupt, in the unit with this
    /// index. From now on no other source raises it.
    ///
    /// # Errors
    /// `Unsupported`: the kernel refuses, or the unit does not answer.
    pub(crate) fn make_message(
        &mut self,
        interrupt: u32,
        source: u16,
        unit: Option<usize>,
    ) -> Result<InterruptMessage, Status> {
        let is_remapped = self.iommu.remaps && unit.is_some();
        let source = if is_remapped { MessageSource::Function(source) } else { MessageSource::Unchecked };
        let message = self.tell_message(interrupt, source)?;
        self.forget_interrupts();
        if self.iommu.answers(unit) { Ok(message) } else { Err(Status::Unsupported) }
    }

    /// Takes message-signalled interrupts from their functions, which raise them no more.
    pub(crate) fn give_back(&mut self, interrupts: &[u32]) {
        if !self.iommu.remaps || interrupts.is_empty() {
            return;
        }
        for &interrupt in interrupts {
            self.tell_message(interrupt, MessageSource::Unchecked).expect("there is such an interrupt");
        }
        self.forget_interrupts();
    }

    pub(super) fn tell_message(
        &mut self,
        interrupt: u32,
        source: MessageSource,
    ) -> Result<InterruptMessage, Status> {
        let values = [interrupt.into(), source.word()];
        let told = self.machine.space_options(ThreadId::NIL, SpaceOption::InterruptMessage, values);
        let [address, data] = told.map_err(|_| Status::Unsupported)?;
        Ok(InterruptMessage { address, data })
    }

    /// Has all units forget what they have read of the table of interrupts: also one that
    /// translates for other functions may have read an entry, and refused it. The functions of
    /// those that do not answer are stopped.
    fn forget_interrupts(&mut self) {
        for index in 0..if self.iommu.remaps { self.iommu.units.len() } else { 0 } {
            let (units, _, mut memory) = parts!(self);
            if units[index].unit.forget_interrupts(&mut memory).is_err() {
                self.stop_functions_of(index);
            }
        }
    }
}
