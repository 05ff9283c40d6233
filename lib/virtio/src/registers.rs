//! The parts of a device's registers, and the trait through which a driver reads and writes them.

/// A part of a device's registers. The numbers of the parts in capabilities have this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The common part: status, features and queues.
    Common,
    /// The registers by which the driver tells the device that a queue has requests.
    Notify,
    /// The register that says why the device has raised its interrupt line.
    Interrupt,
    /// The configuration that depends on the type of the device.
    Device,
}

impl Part {
    /// All parts, in the order of their numbers in capabilities.
    pub const ALL: [Part; 4] = [Part::Common, Part::Notify, Part::Interrupt, Part::Device];
}

/// The size of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
}

impl Width {
    /// The size of a register in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }
}

/// Access to the registers of a device. Offsets are in bytes from the beginning of a part, and
/// multiples of the register's width.
pub trait Registers {
    /// Reads a register. The result is all ones if the part has no such register.
    fn read(&mut self, part: Part, offset: u32, width: Width) -> u32;
    /// Writes a register. Nothing happens if the part has no such register.
    fn write(&mut self, part: Part, offset: u32, width: Width, value: u32);
    /// The length of a part in bytes.
    fn length(&self, part: Part) -> u32;
    /// The distance in bytes of the registers at which queues are notified.
    fn notify_multiplier(&self) -> u32;
}
