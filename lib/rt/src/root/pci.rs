//! PCI functions that the configuration gives this server: their registers, and their interrupts by
//! messages.
//!
//! Registers are used as those of any device: memory is mapped by
//! [`map_device`](super::device::map_device), whole pages of it, ports are there at the first use.
//! Configuration space is root's, and so are the pages of registers that hold the table of messages
//! (MSI-X): they are not mapped. The function writes memory, and with it messages, from the first
//! [`Function::attach`] on until the server ends.

use super::{Status, ask};
use l4::x2::ThreadId;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The number of the function among those of the server.
    index: u64,
    /// Bus (bits 8..16), device (bits 3..8) and function.
    pub place: u64,
    /// The number of messages that the function can raise: 1 with MSI, up to 2048 with MSI-X.
    pub messages: u64,
}

/// The registers that a base address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Memory.
    Memory {
        /// Physical address.
        base: u64,
        /// Bytes.
        size: u64,
    },
    /// I/O ports.
    Ports {
        /// The first port of the range.
        first: u16,
        /// How many.
        count: u32,
    },
}

/// The function that the `index`th `pci` of the configuration names.
///
/// # Errors
/// `NotFound`: the server has no function of that number, or the machine has no such function.
pub fn function(index: usize) -> Result<Function, Status> {
    let index = index as u64;
    let (place, messages) = ask(|root| root.root_resource(3, index))?;
    Ok(Function { index, place, messages })
}

impl Function {
    /// The registers that base address 0 to 5 leads to.
    ///
    /// # Errors
    /// `NotFound`: it has none there.
    pub fn region(self, number: u64) -> Result<Region, Status> {
        let (kind, first, size) = ask(|root| root.root_pci_region(self.index, number))?;
        Ok(match kind {
            0 => Region::Memory { base: first, size },
            _ => Region::Ports { first: first as u16, count: size as u32 },
        })
    }

    /// From now on the function's message `entry` (0 with MSI) is a message to `thread`, one of
    /// this server's, from the thread that is returned. It must be answered by an empty message, or
    /// the next does not come. A device is not masked meanwhile: what comes before the answer comes
    /// once, right after it.
    ///
    /// # Errors
    /// `NotFound`: it has no such message. `InUse`: it is attached already. `InvalidArgument`: the
    /// thread is not this server's. `NoMemory`: the kernel has no interrupt left (boot option
    /// `msi`).
    pub fn attach(self, entry: u64, thread: ThreadId) -> Result<ThreadId, Status> {
        let number = ask(|root| root.root_message_attach(self.index, entry, thread.raw()))?;
        u32::try_from(number).map(ThreadId::interrupt).map_err(|_| Status::UnknownRequest)
    }
}

/// Ends what [`Function::attach`] has begun.
///
/// # Errors
/// `InvalidArgument`: it is no interrupt that this server has attached so.
pub fn detach(interrupt: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_message_detach(interrupt.number().into()))
}
