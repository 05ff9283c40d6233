//! Multiboot 2 information (Multiboot2 Specification 2.0, section 3.6).
use x2::boot_info::Screen;

use super::{BootError, BootInformation, MemoryKind, PhysicalMemory, Protocol, string_at};

/// The value in EAX that says that the loader follows Multiboot 2.
pub const MAGIC: u32 = 0x36d7_6289;

const END: u32 = 0;
const COMMAND_LINE: u32 = 1;
const MODULE: u32 = 3;
const MEMORY_MAP: u32 = 6;
const FRAMEBUFFER: u32 = 8;
const ACPI_OLD: u32 = 14;
const ACPI_NEW: u32 = 15;

/// Reads the information at `address`: its size, a reserved word, then tags of type, size and
/// content, each on 8 bytes.
pub fn parse(
    memory: &impl PhysicalMemory,
    address: u64,
    into: &mut BootInformation,
) -> Result<(), BootError> {
    const WHAT: &str = "Multiboot 2 information";
    into.protocol = Protocol::Multiboot2;
    let end = address + u64::from(memory.word(address, WHAT)?);
    let mut at = address + 8;
    let mut has_map = false;
    loop {
        if at + 8 > end {
            return Err(BootError::Truncated(WHAT));
        }
        let (kind, size) = (memory.word(at, WHAT)?, u64::from(memory.word(at + 4, WHAT)?));
        if size < 8 || at + size > end {
            return Err(BootError::Truncated(WHAT));
        }
        match kind {
            END => break,
            COMMAND_LINE => into.set_command_line(string_at(memory, at + 8)),
            MODULE => {
                let word = |offset: u64| memory.word(at + offset, "module tag").map(u64::from);
                into.add_module(word(8)?, word(12)?, string_at(memory, at + 16));
            }
            MEMORY_MAP => {
                has_map = true;
                parse_memory_map(memory, at, at + size, into)?;
            }
            FRAMEBUFFER => into.screen = framebuffer(memory, at)?.or(into.screen),
            ACPI_NEW => into.rsdp = Some(at + 8),
            ACPI_OLD => into.rsdp = into.rsdp.or(Some(at + 8)),
            _ => {}
        }
        at += size.next_multiple_of(8);
    }
    if has_map { Ok(()) } else { Err(BootError::NoMemoryMap) }
}

/// Tag content: address, pitch, width, height, then a byte each: bits of a pixel, and the kind; two
/// reserved bytes, and for pixels with colours of their own the places of these. `None` for another
/// kind: pixels with a palette.
fn framebuffer(memory: &impl PhysicalMemory, tag: u64) -> Result<Option<Screen>, BootError> {
    const WHAT: &str = "framebuffer tag";
    const COLOURS: u32 = 1;
    const TEXT: u32 = 2;
    let word = |offset: u64| memory.word(tag + offset, WHAT).map(u64::from);
    let format = memory.word(tag + 28, WHAT)?;
    let (bits, kind) = (u64::from(format & 0xff), format >> 8 & 0xff);
    let screen = Screen {
        physical: memory.double_word(tag + 8, WHAT)?,
        pitch: word(16)?,
        width: word(20)?,
        height: word(24)?,
        bits: if kind == TEXT { 0 } else { bits },
        colours: if kind == TEXT { 0 } else { memory.double_word(tag + 32, WHAT)? & (1 << 48) - 1 },
    };
    // What a line has must fit into it, and the whole screen into memory.
    let line = screen.width * if kind == TEXT { 2 } else { bits.div_ceil(8) };
    let fits = line <= screen.pitch && screen.physical.checked_add(screen.size()).is_some();
    let is_known = kind == TEXT || kind == COLOURS && (15..=32).contains(&bits);
    Ok(Some(screen).filter(|screen| is_known && fits && screen.size() > 0))
}

/// Tag content: size of an entry, its version, the entries: base, length, type, reserved.
fn parse_memory_map(
    memory: &impl PhysicalMemory,
    tag: u64,
    end: u64,
    into: &mut BootInformation,
) -> Result<(), BootError> {
    const WHAT: &str = "memory map";
    const LEAST: u64 = 24;
    let size = u64::from(memory.word(tag + 8, WHAT)?);
    if size < LEAST {
        return Err(BootError::Truncated(WHAT));
    }
    let mut at = tag + 16;
    while at + size <= end {
        let start = memory.double_word(at, WHAT)?;
        let bytes = memory.double_word(at + 8, WHAT)?;
        let kind = memory.word(at + 16, WHAT)?;
        into.add_range(start, bytes, MemoryKind::from_firmware(kind));
        at += size;
    }
    Ok(())
}
