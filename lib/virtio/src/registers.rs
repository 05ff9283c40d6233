//! Access to a device's registers.

/// A part of the registers, in the order of the numbers that capabilities have for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Status, features and queues.
    Common,
    /// Where the device is told that there is something in a queue.
    Notify,
    /// Why the device has interrupted by a line.
    Interrupt,
    /// The configuration of this type of device.
    Device,
}

impl Part {
    /// All parts.
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
    /// The size in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }
}

/// The registers of a device. An offset is in bytes, in its part, and a multiple of the width.
pub trait Registers {
    /// Reads a register; all ones if there is none.
    fn read(&mut self, part: Part, offset: u32, width: Width) -> u32;
    /// Writes a register, if there is one.
    fn write(&mut self, part: Part, offset: u32, width: Width, value: u32);
    /// How many bytes of registers the part has.
    fn length(&self, part: Part) -> u32;
    /// The distance in bytes of the registers at which queues are notified.
    fn notify_multiplier(&self) -> u32;
}
