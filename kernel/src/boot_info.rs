//! The generic boot info (ABI 1.8, X.2 rules 12.12-12.14): what the root task learns about modules.
use x2::boot_info::{NodeMemory, OutOfSpace, Segment, SimpleExec, Writer};

use crate::boot::BootInformation;
use crate::boot::nodes::Nodes;
use crate::config;
use crate::elf::Executable;
use crate::kip::MAX_PROCESSORS;
use crate::memory::PhysRange;
use crate::memory::node::{self, MAX_NODES};

/// Bytes that are always enough: 32 modules, all command lines, the two programs, the nodes.
pub const SIZE: u64 = 12288;

/// The word of the kernel's command line that is passed on to sigma0 (K13).
const SIGMA0_OPEN: &[u8] = b" sigma0=open";
/// `flags` of a program record: a 64-bit ELF file.
const ELF_64: u64 = 2;
const EXECUTE: u32 = 1;

/// Writes a record for every module into `page`: the first two as the programs they were, the
/// others as they are.
pub fn write(
    page: &mut [u8],
    boot: &BootInformation,
    sigma0: &Executable<'_>,
    root: &Executable<'_>,
) -> Result<(), OutOfSpace> {
    let mut writer = Writer::new(page)?;
    for (index, module) in boot.modules().iter().enumerate() {
        let command_line = boot.module_command_line(module).as_bytes();
        match index {
            0 if config::get().sigma0_open => {
                let (mut line, length) = ([0; 1024], command_line.len());
                line.get_mut(..length).ok_or(OutOfSpace)?.copy_from_slice(command_line);
                let end = length + SIGMA0_OPEN.len();
                line.get_mut(length..end).ok_or(OutOfSpace)?.copy_from_slice(SIGMA0_OPEN);
                writer.simple_exec(record(sigma0), &line[..end])?;
            }
            0 => writer.simple_exec(record(sigma0), command_line)?,
            1 => writer.simple_exec(record(root), command_line)?,
            _ => writer.module(module.start, module.end - module.start, command_line)?,
        }
    }
    if let Some(screen) = &boot.screen {
        writer.screen(screen)?;
    }
    writer.finish();
    Ok(())
}

/// Adds a record about the machine's nodes, if there are several, to what [`write()`] has written
/// into `page`. The first `processors` processors run.
pub fn add_nodes(page: &mut [u8], nodes: &Nodes, processors: u32) -> Result<(), OutOfSpace> {
    let count = nodes.count();
    if count < 2 {
        return Ok(());
    }
    let mut memory = [NodeMemory { node: 0, start: 0, size: 0 }; 64];
    let memory = memory.get_mut(..nodes.ranges().len()).ok_or(OutOfSpace)?;
    for (place, (range, node)) in memory.iter_mut().zip(nodes.ranges()) {
        *place = NodeMemory { node: u64::from(*node), start: range.start.value(), size: range.size() };
    }
    let mut rows: [&[u8]; MAX_NODES] = [&[]; MAX_NODES];
    for (row, distances) in rows.iter_mut().zip(nodes.distances()) {
        *row = &distances[..count];
    }
    let mut of_processors = [0; MAX_PROCESSORS];
    for (number, place) in (0..processors).zip(&mut of_processors) {
        *place = node::of_processor(number);
    }
    let mut writer = Writer::resume(page).ok_or(OutOfSpace)?;
    writer.nodes(memory, &rows[..count], &of_processors[..processors as usize])?;
    writer.finish();
    Ok(())
}

/// Adds a record about the firmware's table of units between devices and memory.
pub fn add_remapping(page: &mut [u8], table: PhysRange) -> Result<(), OutOfSpace> {
    let mut writer = Writer::resume(page).ok_or(OutOfSpace)?;
    writer.remapping(table.start.value(), table.size())?;
    writer.finish();
    Ok(())
}

/// The record has room for one executable and one other segment: the first of each kind is told,
/// its zeroed rest as bss.
fn record(program: &Executable<'_>) -> SimpleExec {
    let part = |executable: bool| {
        program.segments().find(|segment| (segment.flags & EXECUTE != 0) == executable).map(|segment| {
            let size = segment.content.len() as u64;
            let zeroed = Segment {
                physical: segment.physical.start.value() + size,
                virtual_address: segment.virtual_address + size,
                size: segment.physical.size() - size,
            };
            let loaded = Segment {
                physical: segment.physical.start.value(),
                virtual_address: segment.virtual_address,
                size,
            };
            (loaded, zeroed)
        })
    };
    let (text, text_rest) = part(true).unwrap_or_default();
    let (data, data_rest) = part(false).unwrap_or_default();
    SimpleExec {
        text,
        data,
        bss: if data.size + data_rest.size > 0 { data_rest } else { text_rest },
        initial_ip: program.entry(),
        flags: ELF_64,
        label: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Protocol;
    use crate::elf::tests::file;
    use crate::memory::PhysAddr;
    use x2::boot_info::{BootInfo, Record};

    /// Rules: 12.12, 12.13, ABI 1.8.
    #[test]
    fn tells_programs_and_modules() {
        let mut boot = BootInformation::empty(Protocol::Multiboot1);
        boot.add_module(0x1000, 0x2000, b"sigma0");
        boot.add_module(0x2000, 0x3000, b"root verbose");
        boot.add_module(0x3000, 0x3123, b"disk image");
        let program = file(0x100_0000, &[(0x100_0000, b"text", 0x1000)]);
        let program = Executable::parse(&program).unwrap();
        let mut page = [0xaa; SIZE as usize];
        write(&mut page, &boot, &program, &program).unwrap();
        let records: Vec<_> = BootInfo::new(&page).unwrap().records().collect();
        assert_eq!(records.len(), 3);
        let Record::SimpleExec { program, command_line } = records[1] else { panic!("{records:?}") };
        assert_eq!(command_line, b"root verbose");
        assert_eq!((program.initial_ip, program.text.size, program.bss.size), (0x100_0000, 4, 0xffc));
        assert_eq!(records[2], Record::Module { start: 0x3000, size: 0x123, command_line: b"disk image" });
    }

    /// Rules: EXT 10.1.
    #[test]
    fn tells_nodes() {
        let boot = BootInformation::empty(Protocol::Multiboot1);
        let program = file(0x100_0000, &[(0x100_0000, b"text", 4)]);
        let program = Executable::parse(&program).unwrap();
        let mut page = [0xaa; SIZE as usize];
        write(&mut page, &boot, &program, &program).unwrap();
        add_nodes(&mut page, &Nodes::ONE, 2).unwrap();
        assert_eq!(BootInfo::new(&page).unwrap().records().count(), 0);
        add_nodes(&mut page, &crate::boot::nodes::tests::halves(1 << 20), 2).unwrap();
        let records: Vec<_> = BootInfo::new(&page).unwrap().records().collect();
        let [Record::Nodes(nodes)] = records[..] else { panic!("{records:?}") };
        assert_eq!((nodes.count(), nodes.of_processor(1), nodes.of_processor(2)), (2, Some(0), None));
        assert_eq!(nodes.distance(0, 1), Some(20));
        assert_eq!(nodes.memory().map(|range| (range.node, range.start)).last(), Some((1, 1 << 20)));
    }

    #[test]
    fn tells_where_the_table_of_remapping_units_is() {
        let boot = BootInformation::empty(Protocol::Multiboot1);
        let program = file(0x100_0000, &[(0x100_0000, b"text", 4)]);
        let program = Executable::parse(&program).unwrap();
        let mut page = [0xaa; SIZE as usize];
        write(&mut page, &boot, &program, &program).unwrap();
        let table = PhysRange::new(PhysAddr::new(0x7000_1234), PhysAddr::new(0x7000_1284));
        add_remapping(&mut page, table).unwrap();
        let records: Vec<_> = BootInfo::new(&page).unwrap().records().collect();
        assert_eq!(records, [Record::Remapping { start: 0x7000_1234, size: 0x50 }]);
    }

    #[test]
    fn the_largest_boot_fits() {
        let mut boot = BootInformation::empty(Protocol::Multiboot1);
        boot.screen = Some(x2::boot_info::Screen::TEXT);
        for _ in 0..40 {
            boot.add_module(0x1000, 0x2000, &[b'x'; 200]);
        }
        let program = file(0x100_0000, &[(0x100_0000, b"text", 4)]);
        let program = Executable::parse(&program).unwrap();
        write(&mut [0; SIZE as usize], &boot, &program, &program).unwrap();
        assert!(boot.loss().is_some());
    }
}
