//! Booted by Pistachio's kickstart (ABI 1): no register carries anything; the kernel interface page
//! describes servers and memory, and the boot info leads to a copy of the Multiboot 1 information,
//! whose first module is the kernel with its command line.
use core::fmt;
use x2::boot_info::{BootInfo, Record};
use x2::kip::{MemoryDescriptor, MemoryKind as Kind};

use super::{BootInformation, MemoryKind, PhysicalMemory, Protocol, string_at};
use crate::initial_servers::InitialServer;
use crate::memory::{PhysAddr, PhysRange};

/// Boot info as kickstart writes it takes one page (ABI 1.8).
const BOOT_INFO_SIZE: usize = 4096;
const FLAG_MODULES: u32 = 1 << 3;
const MODULES: u64 = 24;
const STRING: u64 = 8;
/// Less kernel memory does not suffice.
const LEAST_KERNEL_MEMORY: u64 = 2 << 20;

/// What is missing in the loader's information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// The kernel was entered neither by Multiboot nor by kickstart.
    Servers,
    /// No reserved memory descriptor of a useful size.
    KernelMemory,
    /// The reserved memory is not all RAM, or overlaps the kernel.
    Conflict(PhysRange),
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Servers => {
                formatter.write_str("the loader speaks neither Multiboot nor kickstart's protocol")
            }
            Self::KernelMemory => {
                formatter.write_str("kickstart reserved no memory for the kernel (its kmem=)")
            }
            Self::Conflict(range) => write!(
                formatter,
                "kickstart reserved {:#x}..{:#x} for the kernel, which is not free memory",
                range.start, range.end
            ),
        }
    }
}

/// Reads the memory map from the descriptors and the command line from the boot info.
pub fn parse(
    memory: &impl PhysicalMemory,
    descriptors: impl Iterator<Item = MemoryDescriptor>,
    boot_info: u64,
    into: &mut BootInformation,
) {
    into.protocol = Protocol::Kickstart;
    for descriptor in descriptors.filter(|descriptor| !descriptor.is_virtual) {
        let kind = match descriptor.kind {
            Kind::Conventional => MemoryKind::Available,
            Kind::Architecture => MemoryKind::from_firmware(u32::from(descriptor.subtype)),
            _ => continue,
        };
        into.add_range(descriptor.low, (descriptor.last - descriptor.low).saturating_add(1), kind);
    }
    if let Some(text) = command_line(memory, boot_info) {
        into.set_command_line(text);
    }
}

fn command_line(memory: &impl PhysicalMemory, boot_info: u64) -> Option<&[u8]> {
    let page = memory.bytes(boot_info, BOOT_INFO_SIZE).filter(|_| boot_info != 0)?;
    let multiboot = BootInfo::new(page)?.records().find_map(|record| match record {
        Record::Multiboot(address) => Some(address),
        _ => None,
    })?;
    if memory.word(multiboot, "").ok()? & FLAG_MODULES == 0 {
        return None;
    }
    let modules = u64::from(memory.word(multiboot + MODULES, "").ok()?);
    Some(string_at(memory, u64::from(memory.word(modules + STRING, "").ok()?)))
}

/// The memory that kickstart chose for the kernel: its reserved descriptor. `is_memory` says what
/// is RAM; `image` is the kernel's already.
pub fn kernel_memory(
    (sigma0, root): (InitialServer, InitialServer),
    descriptors: impl Iterator<Item = MemoryDescriptor>,
    image: PhysRange,
    is_memory: impl Fn(PhysRange) -> bool,
) -> Result<PhysRange, Missing> {
    if sigma0.high <= sigma0.low || root.high <= root.low {
        return Err(Missing::Servers);
    }
    let reserved = descriptors
        .filter(|descriptor| descriptor.kind == Kind::Reserved && !descriptor.is_virtual)
        .map(|descriptor| PhysRange::new(PhysAddr::new(descriptor.low), PhysAddr::new(descriptor.last + 1)))
        .find(|range| range.size() >= LEAST_KERNEL_MEMORY)
        .ok_or(Missing::KernelMemory)?;
    let images =
        [sigma0, root].map(|server| PhysRange::new(PhysAddr::new(server.low), PhysAddr::new(server.high)));
    if !is_memory(reserved) || images.iter().chain([&image]).any(|taken| taken.overlaps(reserved)) {
        return Err(Missing::Conflict(reserved));
    }
    Ok(reserved)
}
