//! PCI functions that the configuration gives this server: their registers, and their interrupts by
//! messages.
//!
//! Memory registers are mapped by [`map_device`](super::device::map_device), in whole pages. Ports
//! can be used without a request. Root keeps configuration space, and the pages of registers that
//! hold the table of messages (MSI-X). The function can write memory, and so send messages, from
//! the first [`Function::attach`] until the server ends.

use super::{Status, ask};
use l4::x2::ThreadId;

/// A PCI function of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The index of the function among those of the server.
    index: u64,
    /// Bus (bits 8..16), device (bits 3..8) and function.
    pub place: u64,
    /// The number of messages that the function can raise: 1 with MSI, up to 2048 with MSI-X.
    pub messages: u64,
}

/// The registers to which a base address register leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The registers are in memory.
    Memory {
        /// The physical address of the first register.
        base: u64,
        /// How many bytes the registers take.
        size: u64,
    },
    /// The registers are I/O ports.
    Ports {
        /// The first port of the range.
        first: u16,
        /// How many ports there are.
        count: u32,
    },
}

/// The PCI function that the `index`th line `pci` of the configuration gives this server.
///
/// # Errors
/// `NotFound`: the configuration has no such line, or the machine no such function.
pub fn function(index: usize) -> Result<Function, Status> {
    let index = index as u64;
    let (place, messages) = ask(|root| root.root_resource(3, index))?;
    Ok(Function { index, place, messages })
}

impl Function {
    /// Reads the word of 32 bits at this offset in the function's configuration space, a multiple
    /// of 4. Root alone can write it.
    ///
    /// # Errors
    /// `InvalidArgument`: it is not a multiple of 4.
    pub fn configuration(self, register: u8) -> Result<u32, Status> {
        let value = ask(|root| root.root_pci_read(self.index, register.into()))?;
        u32::try_from(value).map_err(|_| Status::UnknownRequest)
    }

    /// The registers of base address register `number`, 0 to 5.
    ///
    /// # Errors
    /// `NotFound`: the function has no registers there.
    pub fn region(self, number: u64) -> Result<Region, Status> {
        let (kind, first, size) = ask(|root| root.root_pci_region(self.index, number))?;
        Ok(match kind {
            0 => Region::Memory { base: first, size },
            _ => Region::Ports { first: first as u16, count: size as u32 },
        })
    }

    /// Makes the function's interrupt message `entry` (0 with MSI) an IPC message to `thread`, a
    /// thread of this server. It comes from the thread id that is returned. Each must be answered
    /// by an empty message before the next one can come. The device is not masked meanwhile: all
    /// interrupts before the answer become one message, directly after the answer.
    ///
    /// # Errors
    /// `NotFound`: the function has no such message. `InUse`: it is attached already.
    /// `InvalidArgument`: the thread is not this server's. `NoMemory`: the kernel has no interrupt
    /// left (boot option `msi`).
    pub fn attach(self, entry: u64, thread: ThreadId) -> Result<ThreadId, Status> {
        let number = ask(|root| root.root_message_attach(self.index, entry, thread.raw()))?;
        u32::try_from(number).map(ThreadId::interrupt).map_err(|_| Status::UnknownRequest)
    }
}

/// Detaches an interrupt that [`Function::attach`] has attached.
///
/// # Errors
/// `InvalidArgument`: this server has not attached such an interrupt.
pub fn detach(interrupt: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_message_detach(interrupt.number().into()))
}
