//! Multiboot 1 information (Multiboot Specification 0.6.96, section 3.3).
use super::{BootError, BootInformation, MAX_MODULES, MemoryKind, PhysicalMemory, Protocol, string_at};

/// The value in EAX by which a Multiboot 1 loader says so.
pub const MAGIC: u32 = 0x2bad_b002;

const FLAG_BASIC_MEMORY: u32 = 1 << 0;
const FLAG_COMMAND_LINE: u32 = 1 << 2;
const FLAG_MODULES: u32 = 1 << 3;
const FLAG_MEMORY_MAP: u32 = 1 << 6;

/// Reads the information structure at `address`.
pub fn parse(
    memory: &impl PhysicalMemory,
    address: u64,
    into: &mut BootInformation,
) -> Result<(), BootError> {
    let word = |offset: u64| memory.word(address + offset, "Multiboot information");
    into.protocol = Protocol::Multiboot1;
    let flags = word(0)?;
    if flags & FLAG_MEMORY_MAP != 0 {
        parse_memory_map(memory, u64::from(word(48)?), u64::from(word(44)?), into)?;
    } else if flags & FLAG_BASIC_MEMORY != 0 {
        into.add_range(0, u64::from(word(4)?) << 10, MemoryKind::Available);
        into.add_range(1 << 20, u64::from(word(8)?) << 10, MemoryKind::Available);
    } else {
        return Err(BootError::NoMemoryMap);
    }
    if flags & FLAG_COMMAND_LINE != 0 {
        into.set_command_line(string_at(memory, u64::from(word(16)?)));
    }
    if flags & FLAG_MODULES != 0 {
        let (count, modules) = (u64::from(word(20)?), u64::from(word(24)?));
        // One more than can be kept, so that the loss is noticed and a wrong count is harmless.
        for module in (0..count.min(MAX_MODULES as u64 + 1)).map(|index| modules + index * 16) {
            let word = |offset: u64| memory.word(module + offset, "module list").map(u64::from);
            into.add_module(word(0)?, word(4)?, string_at(memory, word(8)?));
        }
    }
    Ok(())
}

/// Entries: size of the rest, base, length, type.
fn parse_memory_map(
    memory: &impl PhysicalMemory,
    address: u64,
    length: u64,
    into: &mut BootInformation,
) -> Result<(), BootError> {
    const WHAT: &str = "memory map";
    let mut at = address;
    while at + 24 <= address + length {
        let size = u64::from(memory.word(at, WHAT)?);
        let start = memory.double_word(at + 4, WHAT)?;
        let bytes = memory.double_word(at + 12, WHAT)?;
        let kind = memory.word(at + 20, WHAT)?;
        into.add_range(start, bytes, MemoryKind::from_firmware(kind));
        at += size + 4;
    }
    Ok(())
}
