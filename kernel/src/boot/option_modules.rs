//! Modules that the kernel's command line names, `module=NAME,START,SIZE`, in addition to those of
//! the boot loader. They are in memory already, where no loader need have put them: loaders have
//! 32-bit addresses and copy every module. A machine whose firmware does not report that memory
//! gets it as usable memory, of which the module is the user.
use core::fmt;

use super::{BootInformation, MAX_MODULES, MemoryKind, MemoryRange, Protocol};
use crate::config::parse_size;
use crate::memory::{PAGE_SIZE, PhysAddr, PhysRange};

/// The option's name.
pub const NAME: &str = "module";

/// Why a module of the command line is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The value does not have the three parts.
    Form,
    /// The start is not a multiple of 4096, or the size is 0.
    Alignment,
    /// The module ends beyond the physical addresses that the kernel can use.
    Endless,
    /// The firmware says that part of the memory is not usable, or is not there.
    NotMemory,
    /// The kernel, the first megabyte or another module is in this memory.
    Occupied,
    /// There are too many modules.
    Many,
    /// The boot loader, and not the kernel, tells the root task of modules.
    Loader,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Form => "it is not NAME,START,SIZE",
            Self::Alignment => "it does not start at a multiple of 4096, or it is empty",
            Self::Endless => "the kernel does not reach physical addresses that are so high",
            Self::NotMemory => "only part of it is memory that can be used",
            Self::Occupied => "its memory has another use",
            Self::Many => "there are too many modules",
            Self::Loader => "a system that kickstart loads gets its modules from kickstart",
        })
    }
}

/// Adds the modules that the command line names. `reach` is the end of the physical addresses that
/// the kernel can use, `own` the kernel's memory so far. `refused` is told which values are
/// ignored, and why.
pub fn add(boot: &mut BootInformation, reach: u64, own: PhysRange, mut refused: impl FnMut(&str, Refusal)) {
    // The options are read from a copy, since the modules' names are added to the same buffer.
    let text = boot.text;
    let (start, end) = boot.command_line;
    let line = core::str::from_utf8(&text[usize::from(start)..usize::from(end)]).unwrap_or("");
    let values = line.split_ascii_whitespace().filter_map(|word| word.strip_prefix(NAME)?.strip_prefix('='));
    for value in values {
        if let Err(refusal) = add_one(boot, reach, own, value) {
            refused(value, refusal);
        }
    }
}

fn add_one(boot: &mut BootInformation, reach: u64, own: PhysRange, value: &str) -> Result<(), Refusal> {
    let mut parts = value.split(',');
    let (Some(name), Some(start), Some(size), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refusal::Form);
    };
    let (Some(start), Some(size)) = (address(start), address(size)) else { return Err(Refusal::Form) };
    if name.is_empty() {
        return Err(Refusal::Form);
    }
    if boot.protocol == Protocol::Kickstart {
        return Err(Refusal::Loader);
    }
    if !start.is_multiple_of(PAGE_SIZE) || size == 0 {
        return Err(Refusal::Alignment);
    }
    let end = start.checked_add(size).and_then(|end| end.checked_next_multiple_of(PAGE_SIZE));
    let end = end.filter(|&end| end <= reach).ok_or(Refusal::Endless)?;
    let place = PhysRange::new(PhysAddr::new(start), PhysAddr::new(end));
    let is_taken = |other: PhysRange| other.size() > 0 && other.overlaps(place);
    let first = PhysRange::new(PhysAddr::new(0), PhysAddr::new(1 << 20));
    let modules = || {
        let all = boot.modules().iter();
        all.map(|module| PhysRange::new(PhysAddr::new(module.start), PhysAddr::new(module.end)))
    };
    if is_taken(first) || is_taken(own) || modules().any(is_taken) {
        return Err(Refusal::Occupied);
    }
    let touches = |range: &MemoryRange| range.start < end && start < range.end;
    let mut ranges = boot.memory().iter().filter(|range| touches(range));
    let is_reported = match (ranges.next(), ranges.next()) {
        (None, _) => false,
        (Some(range), None) if range.kind == MemoryKind::Available && range.start <= start => {
            if range.end < end {
                return Err(Refusal::NotMemory);
            }
            true
        }
        _ => return Err(Refusal::NotMemory),
    };
    let is_full = boot.modules().len() == MAX_MODULES || boot.text.len() - boot.text_length < name.len();
    if is_full || !is_reported && !boot.has_room_for_range() {
        return Err(Refusal::Many);
    }
    if !is_reported {
        boot.add_range(start, end - start, MemoryKind::Available);
    }
    boot.add_module(start, start + size, name.as_bytes());
    Ok(())
}

/// A number: hexadecimal after `0x`, or a size as in other options.
fn address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => parse_size(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::MAX_RANGES;
    use crate::boot::placement::FreeMemory;

    const REACH: u64 = 1 << 39;
    const OWN: PhysRange = PhysRange::new(PhysAddr::new(8 << 20), PhysAddr::new(14 << 20));

    /// 1 GiB of memory with a module of the loader's, and what came of a command line.
    fn boot(line: &str) -> (BootInformation, Vec<(String, Refusal)>) {
        let mut boot = BootInformation::empty(Protocol::Multiboot1);
        boot.add_range(0, 0x9_fc00, MemoryKind::Available);
        boot.add_range(0x10_0000, 0x3fef_0000, MemoryKind::Available);
        boot.add_range(0x3fff_0000, 0x1_0000, MemoryKind::Reserved);
        boot.add_module(0x400_0000, 0x400_1234, b"sigma0");
        boot.set_command_line(line.as_bytes());
        let mut refused = vec![];
        add(&mut boot, REACH, OWN, |value, refusal| refused.push((value.to_string(), refusal)));
        (boot, refused)
    }

    fn named(boot: &BootInformation) -> Vec<(&str, u64, u64)> {
        let modules = boot.modules()[1..].iter();
        modules.map(|module| (boot.module_command_line(module), module.start, module.end)).collect()
    }

    #[test]
    fn a_module_may_be_where_the_firmware_reports_no_memory() {
        let (boot, refused) = boot("kernel module=image.cpio,0x1000000000,3G module=b,512M,0x1234 log=info");
        assert_eq!(refused, []);
        let end = (64 << 30) + (3 << 30);
        assert_eq!(named(&boot), [("image.cpio", 64 << 30, end), ("b", 512 << 20, (512 << 20) + 0x1234)]);
        assert_eq!(boot.command_line().split(' ').count(), 4);
        // The memory map has it now, once, and reported memory is not added twice.
        assert_eq!(boot.memory().len(), 4);
        let last = boot.memory()[3];
        assert_eq!((last.start, last.end, last.kind), (64 << 30, end, MemoryKind::Available));
        assert_eq!(FreeMemory::new(&boot, u64::MAX).size(), 0x3fef_0000 + (3 << 30));
    }

    #[test]
    fn values_that_cannot_be_are_ignored_with_their_reason() {
        for (value, reason) in [
            ("", Refusal::Form),
            ("a", Refusal::Form),
            ("a,64M", Refusal::Form),
            ("a,64M,1M,x", Refusal::Form),
            (",64M,1M", Refusal::Form),
            ("a,sixty,1M", Refusal::Form),
            ("a,0x,1M", Refusal::Form),
            ("a,0x+1000,1M", Refusal::Form),
            ("a,64M,-1", Refusal::Form),
            ("a,64M,0", Refusal::Alignment),
            ("a,0x4000001,1M", Refusal::Alignment),
            ("a,0xfffffffffffff000,4096", Refusal::Endless),
            ("a,0xfffffffffffff000,1G", Refusal::Endless),
            ("a,64M,99999999999G", Refusal::Form),
            ("a,64M,0xffffffffffffffff", Refusal::Endless),
            ("a,512G,4096", Refusal::Endless),
            ("a,0,4096", Refusal::Occupied),
            ("a,9M,4096", Refusal::Occupied),
            ("a,64M,4096", Refusal::Occupied),
            ("a,0x3fffe000,16K", Refusal::NotMemory),
            ("a,0x3fff0000,4096", Refusal::NotMemory),
            ("a,512M,1G", Refusal::NotMemory),
        ] {
            let (boot, refused) = boot(&format!("module={value}"));
            assert_eq!(refused, [(value.to_string(), reason)]);
            assert_eq!((named(&boot), boot.memory().len()), (vec![], 3), "{value}");
        }
    }

    #[test]
    fn modules_of_the_command_line_do_not_overlap_each_other() {
        let (boot, refused) = boot("module=a,64G,1G module=b,0x103ffff000,4096 module=c,65G,4096");
        assert_eq!(refused, [("b,0x103ffff000,4096".to_string(), Refusal::Occupied)]);
        assert_eq!(named(&boot).len(), 2);
    }

    #[test]
    fn full_tables_are_a_reason_too() {
        let mut boot = BootInformation::empty(Protocol::Multiboot2);
        for index in 0..MAX_RANGES as u64 {
            boot.add_range((index + 2) << 20, 4096, MemoryKind::Available);
        }
        let mut reason = None;
        boot.set_command_line(b"module=a,64G,1G");
        add(&mut boot, REACH, OWN, |_, refusal| reason = Some(refusal));
        assert_eq!((reason, boot.loss(), boot.modules().len()), (Some(Refusal::Many), None, 0));
        let mut boot = BootInformation::empty(Protocol::Multiboot2);
        (0..MAX_MODULES as u64).for_each(|at| boot.add_module(at << 30, at << 30, b""));
        boot.set_command_line(b"module=a,64G,1G");
        add(&mut boot, REACH, OWN, |_, refusal| reason = Some(refusal));
        assert_eq!((reason, boot.loss(), boot.memory().len()), (Some(Refusal::Many), None, 0));
    }

    #[test]
    fn kickstart_tells_of_modules_itself() {
        let mut boot = BootInformation::empty(Protocol::Kickstart);
        boot.set_command_line(b"module=a,64G,1G");
        let mut reason = None;
        add(&mut boot, REACH, OWN, |_, refusal| reason = Some(refusal));
        assert_eq!(reason, Some(Refusal::Loader));
    }
}
