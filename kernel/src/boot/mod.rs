//! What the boot loader tells: memory, modules, command line, firmware tables. One form, whatever
//! the protocol.
//!
//! The parsers copy everything into fixed buffers immediately, so that the loader's own structures
//! can be overwritten.
pub mod acpi;
pub mod candidates;
pub mod kickstart;
pub mod multiboot1;
pub mod multiboot2;
pub mod nodes;
pub mod option_modules;
pub mod placement;
pub mod preparation;
pub mod reserved;
pub mod time_stamps;

use core::fmt;
use x2::boot_info::Screen;

/// The maximum number of memory ranges; more are dropped from the end, with a warning.
pub const MAX_RANGES: usize = 96;
/// The most modules that the kernel takes from a loader (as kickstart does, ABI 1.1).
pub const MAX_MODULES: usize = 32;
/// Bytes for all command lines together (as kickstart, ABI 1.1).
pub const TEXT_SIZE: usize = 4096;

/// The protocol by which the kernel was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Multiboot 1 (QEMU's `-kernel`, GRUB's `multiboot`).
    Multiboot1,
    /// Multiboot 2 (GRUB's `multiboot2`).
    Multiboot2,
    /// Pistachio's kickstart: modules are loaded and described in the kernel interface page (ABI
    /// 1).
    Kickstart,
}

/// What a range of physical memory is. The numbers are the firmware's own (e820), which the memory
/// descriptors of the kernel interface page repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MemoryKind {
    /// Usable.
    Available = 1,
    /// Memory that must not be used.
    Reserved = 2,
    /// Holds ACPI tables; usable once they are read.
    AcpiReclaimable = 3,
    /// Kept by the firmware over sleep.
    AcpiNonVolatile = 4,
    /// Broken.
    Bad = 5,
}

impl MemoryKind {
    /// The kind for a firmware type; unknown ones are reserved.
    pub fn from_firmware(kind: u32) -> Self {
        match kind {
            1 => Self::Available,
            3 => Self::AcpiReclaimable,
            4 => Self::AcpiNonVolatile,
            5 => Self::Bad,
            _ => Self::Reserved,
        }
    }
}

/// A range of physical memory; `end` is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// What the memory may be used for.
    pub kind: MemoryKind,
}

/// A file that the loader put into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Module {
    /// First byte, physical.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The place of the module's command line in the text buffer: start and length.
    text: (u16, u16),
}

/// All information of the boot loader, in one form for all protocols.
pub struct BootInformation {
    /// The protocol by which the boot loader gave the information.
    pub protocol: Protocol,
    /// Physical address of the ACPI root pointer, if the loader gave a copy of it.
    pub rsdp: Option<u64>,
    /// The screen that the loader has set up, or that was found.
    pub screen: Option<Screen>,
    ranges: [MemoryRange; MAX_RANGES],
    range_count: usize,
    modules: [Module; MAX_MODULES],
    module_count: usize,
    text: [u8; TEXT_SIZE],
    text_length: usize,
    command_line: (u16, u16),
    /// What had to be left out for want of room.
    dropped: Dropped,
}

#[derive(Clone, Copy, Default)]
struct Dropped {
    ranges: usize,
    modules: usize,
    text: bool,
}

/// Why the loader's information cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BootError {
    /// No memory map was given.
    NoMemoryMap,
    /// A structure lies outside memory that can be read, or ends early.
    Truncated(&'static str),
}

impl fmt::Display for BootError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemoryMap => formatter.write_str("the boot loader gave no memory map"),
            Self::Truncated(what) => write!(formatter, "the boot loader's {what} is cut off or out of reach"),
        }
    }
}

/// Physical memory as the parsers see it.
pub trait PhysicalMemory {
    /// `length` bytes at a physical address, or `None` if they cannot be reached.
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]>;

    /// A little-endian 32-bit word.
    fn word(&self, address: u64, what: &'static str) -> Result<u32, BootError> {
        let bytes = self.bytes(address, 4).ok_or(BootError::Truncated(what))?;
        Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| BootError::Truncated(what))?))
    }

    /// A little-endian 64-bit word.
    fn double_word(&self, address: u64, what: &'static str) -> Result<u64, BootError> {
        Ok(u64::from(self.word(address, what)?) | u64::from(self.word(address + 4, what)?) << 32)
    }
}

impl BootInformation {
    /// Information that has no memory, modules or command line yet.
    pub const fn empty(protocol: Protocol) -> Self {
        Self {
            protocol,
            rsdp: None,
            screen: None,
            ranges: [MemoryRange { start: 0, end: 0, kind: MemoryKind::Reserved }; MAX_RANGES],
            range_count: 0,
            modules: [Module { start: 0, end: 0, text: (0, 0) }; MAX_MODULES],
            module_count: 0,
            text: [0; TEXT_SIZE],
            text_length: 0,
            command_line: (0, 0),
            dropped: Dropped { ranges: 0, modules: 0, text: false },
        }
    }

    /// The memory ranges, sorted by start. They may overlap as the firmware said; later kinds of
    /// the same byte are not resolved here.
    pub fn memory(&self) -> &[MemoryRange] {
        &self.ranges[..self.range_count]
    }

    /// The modules in order. By convention 0 is not the kernel: the first is sigma0, the second the
    /// root task.
    pub fn modules(&self) -> &[Module] {
        &self.modules[..self.module_count]
    }

    /// The modules, so that new addresses can be written when they are moved.
    pub fn modules_mut(&mut self) -> &mut [Module] {
        &mut self.modules[..self.module_count]
    }

    /// The kernel's command line.
    pub fn command_line(&self) -> &str {
        self.text(self.command_line)
    }

    /// A module's command line: its name and arguments, as given to the loader.
    pub fn module_command_line(&self, module: &Module) -> &str {
        self.text(module.text)
    }

    /// What was left out for want of room, as a sentence, if anything.
    pub fn loss(&self) -> Option<&'static str> {
        match self.dropped {
            Dropped { modules: 1.., .. } => Some("more than 32 modules: the rest is ignored"),
            Dropped { text: true, .. } => Some("command lines of more than 4096 bytes together: cut off"),
            Dropped { ranges: 1.., .. } => Some("more than 96 memory ranges: the rest is ignored"),
            _ => None,
        }
    }

    fn text(&self, (start, end): (u16, u16)) -> &str {
        core::str::from_utf8(&self.text[usize::from(start)..usize::from(end)]).unwrap_or("")
    }

    /// Adds a range in its place. Empty ones and those that wrap are ignored.
    pub(crate) fn add_range(&mut self, start: u64, size: u64, kind: MemoryKind) {
        let Some(end) = start.checked_add(size).filter(|&end| end > start) else { return };
        if self.range_count == MAX_RANGES {
            self.dropped.ranges += 1;
            return;
        }
        let at = self.memory().partition_point(|range| range.start <= start);
        self.ranges.copy_within(at..self.range_count, at + 1);
        self.ranges[at] = MemoryRange { start, end, kind };
        self.range_count += 1;
    }

    /// Whether [`BootInformation::add_range`] can record one more range.
    fn has_room_for_range(&self) -> bool {
        self.range_count < MAX_RANGES
    }

    pub(crate) fn add_module(&mut self, start: u64, end: u64, command_line: &[u8]) {
        if self.module_count == MAX_MODULES {
            self.dropped.modules += 1;
            return;
        }
        let text = self.add_text(command_line);
        self.modules[self.module_count] = Module { start, end: end.max(start), text };
        self.module_count += 1;
    }

    pub(crate) fn set_command_line(&mut self, command_line: &[u8]) {
        self.command_line = self.add_text(command_line);
    }

    fn add_text(&mut self, text: &[u8]) -> (u16, u16) {
        let start = self.text_length;
        let length = text.len().min(TEXT_SIZE - start);
        self.dropped.text |= length < text.len();
        self.text[start..start + length].copy_from_slice(&text[..length]);
        self.text_length += length;
        (start as u16, (start + length) as u16)
    }
}

/// A NUL-terminated string in physical memory, without the NUL; at most [`TEXT_SIZE`] bytes of it.
pub(crate) fn string_at(memory: &impl PhysicalMemory, address: u64) -> &[u8] {
    let mut length = 0;
    while length < TEXT_SIZE && memory.bytes(address + length as u64, 1).is_some_and(|byte| byte[0] != 0) {
        length += 1;
    }
    memory.bytes(address, length).unwrap_or(&[])
}

#[cfg(test)]
mod tests;
