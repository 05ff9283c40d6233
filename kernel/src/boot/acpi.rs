//! ACPI tables as far as the kernel needs them (ACPI 6.5, chapter 5): the interrupt controllers and
//! processors of the MADT, the address of the HPET, where the DMAR is, and what [`Nodes`] makes of
//! SRAT and SLIT.
//! Broken or absent tables are an answer, not a failure: the caller goes on without.
use core::fmt;

use super::PhysicalMemory;
use super::nodes::{Complaint, Nodes};
use crate::kip::MAX_PROCESSORS;
use crate::memory::{PhysAddr, PhysRange};

/// The maximum number of I/O APICs that the kernel uses.
pub const MAX_IO_APICS: usize = 8;
/// Number of interrupt lines of the old interrupt controllers, which overrides can remap.
pub const LEGACY_LINES: usize = 16;
/// A longer ACPI table counts as corrupt.
const MAX_TABLE: usize = 1 << 20;
const HEADER: usize = 36;

/// An I/O APIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoApic {
    /// Its id.
    pub id: u8,
    /// Its registers.
    pub address: PhysAddr,
    /// The number of the I/O APIC's first interrupt line.
    pub first_line: u32,
}

/// The polarity and trigger mode of an interrupt line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Active low instead of high.
    pub active_low: bool,
    /// Level instead of edge.
    pub level: bool,
}

impl Signal {
    /// ISA: edge, active high.
    pub const ISA: Self = Self { active_low: false, level: false };
    /// PCI: level, active low.
    pub const PCI: Self = Self { active_low: true, level: true };
}

/// The parts of the ACPI tables that the kernel uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables {
    /// Registers of the local APICs.
    pub local_apic: PhysAddr,
    /// Registers of the HPET, if there is one.
    pub hpet: Option<PhysAddr>,
    /// The table of units between devices and memory (DMAR), if there is one.
    pub remapping: Option<PhysRange>,
    /// Which memory and processors belong together.
    pub nodes: Nodes,
    processors: [u32; MAX_PROCESSORS],
    processor_count: usize,
    /// Processors that can be used, but for which there is no room in the list.
    pub processors_beyond: usize,
    io_apics: [IoApic; MAX_IO_APICS],
    io_apic_count: usize,
    /// Overrides of the legacy lines: (line, signal).
    overrides: [Option<(u32, Signal)>; LEGACY_LINES],
}

/// Why the tables cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcpiError {
    /// No root pointer found.
    NoRoot,
    /// A table lies out of reach, is too short, or its checksum is wrong.
    Broken(&'static str),
    /// There is no MADT.
    NoMadt,
}

impl fmt::Display for AcpiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoot => formatter.write_str("no ACPI root pointer"),
            Self::Broken(table) => write!(formatter, "ACPI table {table} is broken"),
            Self::NoMadt => formatter.write_str("no ACPI table of interrupt controllers (MADT)"),
        }
    }
}

impl Tables {
    /// Local APIC ids of the processors that can be used, in the order of the table.
    pub fn processors(&self) -> &[u32] {
        &self.processors[..self.processor_count]
    }

    /// The I/O APICs.
    pub fn io_apics(&self) -> &[IoApic] {
        &self.io_apics[..self.io_apic_count]
    }

    /// How a line signals: as overridden, else as ISA for the first 16 lines, as PCI for others.
    pub fn signal(&self, line: u32) -> Signal {
        let overridden = self.overrides.iter().flatten().find(|(number, _)| *number == line);
        match overridden {
            Some((_, signal)) => *signal,
            None if (line as usize) < LEGACY_LINES => Signal::ISA,
            None => Signal::PCI,
        }
    }
}

/// Finds and reads the tables. `root` is the root pointer's address if the loader told it;
/// otherwise it is looked for where a BIOS puts it.
pub fn read(memory: &impl PhysicalMemory, root: Option<u64>) -> Result<Tables, AcpiError> {
    let root = root.filter(|&address| is_root(memory, address)).or_else(|| find_root(memory));
    let root = root.ok_or(AcpiError::NoRoot)?;
    let (mut hpet, mut remapping) = (None, None);
    let mut madt = Err(AcpiError::NoMadt);
    let (mut srat, mut slit, mut broken) = (None, None, None);
    for_each_table(memory, root, |name, address, table| match (name, table) {
        (b"APIC", Ok(table)) if madt.is_err() => madt = read_madt(table),
        (b"APIC", Err(_)) if madt.is_err() => madt = Err(AcpiError::Broken("MADT")),
        (b"HPET", Ok(table)) => hpet = read_hpet(table),
        (b"DMAR", Ok(table)) => {
            let range = PhysRange::new(PhysAddr::new(address), PhysAddr::new(address + table.len() as u64));
            remapping = remapping.or(Some(range));
        }
        (b"SRAT", Ok(table)) => srat = srat.or(Some(table)),
        (b"SLIT", Ok(table)) => slit = slit.or(Some(table)),
        (b"SRAT", Err(_)) => broken = Some(Complaint::Broken("SRAT")),
        (b"SLIT", Err(_)) => broken = broken.or(Some(Complaint::Broken("SLIT"))),
        // A table that is broken and not needed is passed over.
        _ => {}
    })?;
    let mut tables = madt?;
    (tables.hpet, tables.remapping) = (hpet, remapping);
    tables.nodes = Nodes::read(srat, slit);
    tables.nodes.complaint = tables.nodes.complaint.or(broken);
    Ok(tables)
}

fn is_root(memory: &impl PhysicalMemory, address: u64) -> bool {
    memory.bytes(address, 20).is_some_and(|bytes| bytes.starts_with(b"RSD PTR ") && checksum(bytes) == 0)
}

/// The first kilobyte of the extended BIOS data area and the BIOS' read-only area, in steps of 16
/// bytes.
fn find_root(memory: &impl PhysicalMemory) -> Option<u64> {
    let segment =
        memory.bytes(0x40e, 2).map_or(0, |bytes| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let data_area = segment << 4;
    let data_area = if data_area >= 0x400 { data_area..data_area + 1024 } else { 0..0 };
    data_area.step_by(16).chain((0xe_0000..0x10_0000).step_by(16)).find(|&address| is_root(memory, address))
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// An ACPI table with a valid length and checksum.
fn table<'a>(
    memory: &'a impl PhysicalMemory,
    address: u64,
    name: &'static str,
) -> Result<&'a [u8], AcpiError> {
    let broken = AcpiError::Broken(name);
    let length = word(memory.bytes(address, HEADER).ok_or(broken)?, 4).ok_or(broken)? as usize;
    if !(HEADER..MAX_TABLE).contains(&length) {
        return Err(broken);
    }
    let bytes = memory.bytes(address, length).ok_or(broken)?;
    if checksum(bytes) == 0 { Ok(bytes) } else { Err(broken) }
}

/// Calls `with` for every table that the root table names, whole or broken, with its address, and
/// with its own name if that can be read.
fn for_each_table<'a>(
    memory: &'a impl PhysicalMemory,
    root: u64,
    mut with: impl FnMut(&[u8; 4], u64, Result<&'a [u8], AcpiError>),
) -> Result<(), AcpiError> {
    let broken = AcpiError::Broken("RSDP");
    let pointer = memory.bytes(root, 36).or_else(|| memory.bytes(root, 20)).ok_or(broken)?;
    let old = u64::from(word(pointer, 16).ok_or(broken)?);
    let extended = match (pointer[15] >= 2, word(pointer, 24), word(pointer, 28)) {
        (true, Some(low), Some(high)) => u64::from(high) << 32 | u64::from(low),
        _ => 0,
    };
    let (root_table, width) = match extended {
        0 => (table(memory, old, "RSDT")?, 4),
        address => (table(memory, address, "XSDT")?, 8),
    };
    for entry in root_table[HEADER..].chunks_exact(width) {
        let low = word(entry, 0).map_or(0, u64::from);
        let address = low | word(entry, 4).map_or(0, u64::from) << 32;
        let name = memory.bytes(address, 4).and_then(|name| name.try_into().ok());
        with(name.unwrap_or(b"    "), address, table(memory, address, ""));
    }
    Ok(())
}

/// The HPET's registers, if they are in memory.
fn read_hpet(table: &[u8]) -> Option<PhysAddr> {
    let address = u64::from(word(table, 44)?) | u64::from(word(table, 48)?) << 32;
    (table.get(40) == Some(&0) && address != 0).then_some(PhysAddr::new(address))
}

const ENABLED: u32 = 1 << 0;

fn read_madt(table: &[u8]) -> Result<Tables, AcpiError> {
    let broken = AcpiError::Broken("MADT");
    let mut tables = Tables {
        local_apic: PhysAddr::new(u64::from(word(table, 36).ok_or(broken)?)),
        hpet: None,
        remapping: None,
        nodes: Nodes::ONE,
        processors: [0; MAX_PROCESSORS],
        processor_count: 0,
        processors_beyond: 0,
        io_apics: [IoApic::default(); MAX_IO_APICS],
        io_apic_count: 0,
        overrides: [None; LEGACY_LINES],
    };
    let mut rest = table.get(44..).ok_or(broken)?;
    while let [kind, length, ..] = *rest {
        let length = usize::from(length);
        let entry = rest.get(..length).filter(|_| length >= 2).ok_or(broken)?;
        tables.add(kind, entry).ok_or(broken)?;
        rest = &rest[length..];
    }
    Ok(tables)
}

impl Tables {
    /// Takes over one entry; `None` if it is too short for its kind. What there is no room for is
    /// left out.
    fn add(&mut self, kind: u8, entry: &[u8]) -> Option<()> {
        match kind {
            // Local APIC: processor, id, flags.
            0 if word(entry, 4)? & ENABLED != 0 => self.add_processor(u32::from(entry[3])),
            // Local x2APIC: reserved, id, flags.
            9 if word(entry, 8)? & ENABLED != 0 => self.add_processor(word(entry, 4)?),
            // I/O APIC: id, reserved, address, first line.
            1 => {
                let io_apic = IoApic {
                    id: entry[2],
                    address: PhysAddr::new(u64::from(word(entry, 4)?)),
                    first_line: word(entry, 8)?,
                };
                if let Some(free) = self.io_apics.get_mut(self.io_apic_count) {
                    *free = io_apic;
                    self.io_apic_count += 1;
                }
            }
            // Interrupt source override: bus, legacy line, line, flags (polarity 3 low, trigger 3
            // level).
            2 => {
                let flags = u16::from_le_bytes([*entry.get(8)?, *entry.get(9)?]);
                let signal = Signal { active_low: flags & 3 == 3, level: flags >> 2 & 3 == 3 };
                if let Some(legacy) = self.overrides.get_mut(usize::from(entry[3])) {
                    *legacy = Some((word(entry, 4)?, signal));
                }
            }
            // Local APIC address, 64 bits wide.
            5 => {
                let address = u64::from(word(entry, 4)?) | u64::from(word(entry, 8)?) << 32;
                self.local_apic = PhysAddr::new(address);
            }
            _ => {}
        }
        Some(())
    }

    fn add_processor(&mut self, id: u32) {
        // Some firmware lists a processor twice, as one of xAPIC and as one of x2APIC.
        if self.processors().contains(&id) {
            return;
        }
        if let Some(free) = self.processors.get_mut(self.processor_count) {
            *free = id;
            self.processor_count += 1;
        } else {
            self.processors_beyond += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory(Vec<u8>);

    impl PhysicalMemory for Memory {
        fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
            self.0.get(address as usize..)?.get(..length)
        }
    }

    fn seal(mut table: Vec<u8>, sum_at: usize) -> Vec<u8> {
        table[sum_at] = 0;
        table[sum_at] = checksum(&table).wrapping_neg();
        table
    }

    fn make_table(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut table = vec![0; HEADER];
        table[..4].copy_from_slice(name);
        table[4..8].copy_from_slice(&((HEADER + body.len()) as u32).to_le_bytes());
        table.extend_from_slice(body);
        seal(table, 9)
    }

    fn madt() -> Vec<u8> {
        let mut body = vec![];
        body.extend_from_slice(&0xfee0_0000_u32.to_le_bytes());
        body.extend_from_slice(&1_u32.to_le_bytes());
        body.extend_from_slice(&[0, 8, 0, 0, 1, 0, 0, 0]);
        body.extend_from_slice(&[0, 8, 1, 4, 1, 0, 0, 0]);
        body.extend_from_slice(&[0, 8, 2, 5, 0, 0, 0, 0]);
        body.extend_from_slice(&[1, 12, 7, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]);
        body.extend_from_slice(&[2, 10, 0, 0, 2, 0, 0, 0, 0, 0]);
        body.extend_from_slice(&[2, 10, 0, 9, 9, 0, 0, 0, 0x0f, 0]);
        make_table(b"APIC", &body)
    }

    /// A megabyte with the root pointer at 0xe0010, the root table at 0x1000, and `tables` at
    /// 0x2000, 0x3000, ...
    fn machine(tables: &[Vec<u8>]) -> Memory {
        let mut bytes = vec![0; 1 << 20];
        let mut root = vec![];
        for (index, table) in tables.iter().enumerate() {
            let at = 0x2000 + index * 0x1000;
            bytes[at..at + table.len()].copy_from_slice(table);
            root.extend_from_slice(&(at as u32).to_le_bytes());
        }
        let root = make_table(b"RSDT", &root);
        bytes[0x1000..0x1000 + root.len()].copy_from_slice(&root);
        let mut pointer = vec![0; 20];
        pointer[..8].copy_from_slice(b"RSD PTR ");
        pointer[16..20].copy_from_slice(&0x1000_u32.to_le_bytes());
        bytes[0xe0010..0xe0024].copy_from_slice(&seal(pointer, 8));
        Memory(bytes)
    }

    #[test]
    fn reads_controllers_and_processors() {
        let mut hpet = vec![0; 20];
        hpet[8..16].copy_from_slice(&0xfed0_0000_u64.to_le_bytes());
        let memory = machine(&[make_table(b"FACP", &[0; 8]), madt(), make_table(b"HPET", &hpet)]);
        let tables = read(&memory, None).unwrap();
        assert_eq!(tables.processors(), [0, 4]);
        let io_apic = IoApic { id: 7, address: PhysAddr::new(0xfec0_0000), first_line: 0 };
        assert_eq!(tables.io_apics(), [io_apic]);
        assert_eq!(tables.hpet, Some(PhysAddr::new(0xfed0_0000)));
        assert_eq!(tables.signal(2), Signal::ISA);
        assert_eq!(tables.signal(9), Signal { active_low: true, level: true });
        assert_eq!(tables.signal(4), Signal::ISA);
        assert_eq!(tables.signal(16), Signal::PCI);
        assert_eq!(read(&memory, Some(0xe0010)).unwrap(), tables);
        assert_eq!(
            read(&memory, Some(0x5000)).unwrap(),
            tables,
            "a wrong pointer from the loader is not the end"
        );
    }

    #[test]
    fn the_table_of_remapping_units_is_found_if_it_is_whole() {
        let mut table = make_table(b"DMAR", &[38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let found = read(&machine(&[madt(), table.clone()]), None).unwrap().remapping;
        assert_eq!(found, Some(PhysRange::new(PhysAddr::new(0x3000), PhysAddr::new(0x3030))));
        table[40] ^= 1;
        assert_eq!(read(&machine(&[madt(), table]), None).unwrap().remapping, None);
    }

    /// A table that is whole is used, and a broken one is reported.
    #[test]
    fn tables_of_nodes_are_read() {
        let mut srat = vec![0; 12];
        for node in 0..2 {
            srat.extend_from_slice(&[1, 40, node, 0, 0, 0, 0, 0, 0, 0, 0, node, 0, 0, 0, 0]);
            srat.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        let slit = make_table(b"SLIT", &[2, 0, 0, 0, 0, 0, 0, 0, 10, 40, 50, 10]);
        let mut srat = make_table(b"SRAT", &srat);
        let tables = read(&machine(&[slit.clone(), madt(), srat.clone()]), None).unwrap();
        assert_eq!((tables.nodes.count(), tables.nodes.distances()[1][0]), (2, 50));
        assert_eq!(tables.nodes.complaint, None);
        srat[50] ^= 1;
        let tables = read(&machine(&[slit, madt(), srat]), None).unwrap();
        assert_eq!((tables.nodes.count(), tables.nodes.complaint), (1, Some(Complaint::Broken("SRAT"))));
    }

    #[test]
    fn a_processor_that_is_listed_twice_is_one() {
        let mut body = vec![0; 8];
        for id in 0..MAX_PROCESSORS as u8 {
            body.extend_from_slice(&[0, 8, id, id, 1, 0, 0, 0]);
            body.extend_from_slice(&[9, 16, 0, 0, id, 0, 0, 0, 1, 0, 0, 0, id, 0, 0, 0]);
        }
        let tables = read(&machine(&[make_table(b"APIC", &body)]), None).unwrap();
        assert_eq!((tables.processors().len(), tables.processors_beyond), (MAX_PROCESSORS, 0));
    }

    #[test]
    fn counts_processors_beyond_the_most() {
        let mut body = vec![0; 8];
        (0..MAX_PROCESSORS as u8 + 3).for_each(|id| body.extend_from_slice(&[0, 8, id, id, 1, 0, 0, 0]));
        let tables = read(&machine(&[make_table(b"APIC", &body)]), None).unwrap();
        assert_eq!((tables.processors().len(), tables.processors_beyond), (MAX_PROCESSORS, 3));
    }

    #[test]
    fn broken_tables_are_an_answer() {
        assert_eq!(read(&Memory(vec![0; 1 << 20]), None), Err(AcpiError::NoRoot));
        assert_eq!(read(&Memory(vec![]), None), Err(AcpiError::NoRoot));
        assert_eq!(read(&machine(&[]), None), Err(AcpiError::NoMadt));
        let mut broken = madt();
        broken[40] ^= 1;
        let whole = read(&machine(&[broken.clone(), madt()]), None).unwrap();
        assert_eq!(whole.processors(), [0, 4], "of several the first that can be used is");
        assert_eq!(read(&machine(&[broken]), None), Err(AcpiError::Broken("MADT")), "its checksum is wrong");
        for entry in [&[1, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0, 0], &[0, 200, 1, 1]] {
            let mut body = vec![0; 8];
            body.extend_from_slice(entry);
            assert_eq!(read(&machine(&[make_table(b"APIC", &body)]), None), Err(AcpiError::Broken("MADT")));
        }
    }

    /// No change of one byte makes reading panic.
    #[test]
    fn corrupted_memory_is_harmless() {
        let memory = machine(&[madt()]);
        for at in (0x1000..0x1040).chain(0x2000..0x2070).chain(0xe0010..0xe0024) {
            for value in [0, 1, 0x2c, 0x7f, 0xff] {
                let mut broken = Memory(memory.0.clone());
                broken.0[at] = value;
                let _ = read(&broken, None);
                let _ = read_madt(&broken.0[0x2000..0x2070]);
            }
        }
    }
}
