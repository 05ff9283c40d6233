//! Memory nodes (ACPI 6.5, 5.2.16 and 5.2.17): which memory and which processors belong together
//! (SRAT), and how far they are from each other (SLIT).
//!
//! The firmware numbers *domains* as it likes; the kernel numbers the *nodes* that it finds from 0,
//! in the order of the table. Tables that contradict themselves are not believed at all: the
//! machine is one node then, as one without tables.
use core::fmt;

use crate::kip::MAX_PROCESSORS;
use crate::memory::node::{LOCAL_DISTANCE, Layout, MAX_NODES, REMOTE_DISTANCE};
use crate::memory::{PhysAddr, PhysRange};

/// The maximum number of memory ranges that are recorded.
const MAX_RANGES: usize = 64;
/// Where the SRAT's entries begin: after the header, a number and reserved bytes.
const SRAT_ENTRIES: usize = 48;
/// Where the SLIT's number of domains is; its distances follow.
const SLIT_COUNT: usize = 36;
const SLIT_DISTANCES: usize = 44;
const ENABLED: u32 = 1 << 0;

/// The machine's memory nodes (NUMA).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes {
    domains: [u32; MAX_NODES],
    count: usize,
    ranges: [(PhysRange, u8); MAX_RANGES],
    range_count: usize,
    /// Local APIC ids of processors, each with its node.
    processors: [(u32, u8); MAX_PROCESSORS],
    processor_count: usize,
    distances: [[u8; MAX_NODES]; MAX_NODES],
    /// Why a table was ignored, if one was.
    pub complaint: Option<Complaint>,
}

/// Why an ACPI table about nodes is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Complaint {
    /// This table is out of reach, too short, its checksum is wrong, or an entry does not end
    /// inside it.
    Broken(&'static str),
    /// There are more nodes than the kernel can number.
    ManyNodes,
    /// There are more ranges of memory than the table has room for.
    ManyRanges,
    /// No node has memory.
    NoMemory,
    /// The end of this memory range is beyond the address space.
    Endless(u64),
    /// The memory at this address belongs to two nodes.
    Memory(u64),
    /// The processor with this local APIC id belongs to two nodes.
    Processor(u32),
    /// The distance between these domains is less than that of a node to itself, or the latter is
    /// wrong.
    Distance(u32, u32),
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(table) => write!(formatter, "ACPI table {table} is broken"),
            Self::ManyNodes => write!(formatter, "SRAT: more than {MAX_NODES} nodes"),
            Self::ManyRanges => write!(formatter, "SRAT: more than {MAX_RANGES} ranges of memory"),
            Self::NoMemory => formatter.write_str("SRAT: no node has memory"),
            Self::Endless(start) => write!(formatter, "SRAT: the memory at {start:#x} has no end"),
            Self::Memory(start) => write!(formatter, "SRAT: the memory at {start:#x} is in two nodes"),
            Self::Processor(id) => write!(formatter, "SRAT: the processor {id} is in two nodes"),
            Self::Distance(from, to) => write!(formatter, "SLIT: no distance from domain {from} to {to}"),
        }
    }
}

const NOTHING: PhysRange = PhysRange::new(PhysAddr::new(0), PhysAddr::new(0));

impl Nodes {
    /// One node that has all memory and processors.
    pub const ONE: Self = Self { count: 1, ..Self::NONE };

    const NONE: Self = Self {
        domains: [0; MAX_NODES],
        count: 0,
        ranges: [(NOTHING, 0); MAX_RANGES],
        range_count: 0,
        processors: [(0, 0); MAX_PROCESSORS],
        processor_count: 0,
        distances: [[REMOTE_DISTANCE; MAX_NODES]; MAX_NODES],
        complaint: None,
    };

    /// Takes the tables over. Of the SRAT all is believed or nothing; a bad SLIT leaves the nodes
    /// equally far from each other.
    pub fn read(srat: Option<&[u8]>, slit: Option<&[u8]>) -> Self {
        let Some(srat) = srat else { return Self::ONE };
        let mut nodes = Self::NONE;
        if let Err(complaint) = nodes.read_srat(srat) {
            return Self { complaint: Some(complaint), ..Self::ONE };
        }
        if let Some(Err(complaint)) = slit.map(|slit| nodes.read_slit(slit)) {
            nodes.complaint = Some(complaint);
            nodes.distances = Self::NONE.distances;
        }
        for (node, distances) in nodes.distances.iter_mut().enumerate() {
            distances[node] = LOCAL_DISTANCE;
        }
        nodes
    }

    /// How many nodes there are. Their numbers are below this number.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The memory that a node has, as the firmware says: with what is not there yet, or not usable.
    pub fn ranges(&self) -> &[(PhysRange, u8)] {
        &self.ranges[..self.range_count]
    }

    /// The node of the processor with this local APIC id; the first one if the tables do not say.
    pub fn of_processor(&self, id: u32) -> u8 {
        let processors = &self.processors[..self.processor_count];
        processors.iter().find(|processor| processor.0 == id).map_or(0, |processor| processor.1)
    }

    /// The distances from each node to each other one: [`LOCAL_DISTANCE`] and more.
    pub fn distances(&self) -> &[[u8; MAX_NODES]; MAX_NODES] {
        &self.distances
    }

    /// A layout of kernel memory for these nodes, without any memory yet.
    pub fn layout(&self) -> Layout {
        Layout::new(self.count, self.distances)
    }

    /// Kernel memory that is `region`, in pieces of one node each; in one piece if the first is too
    /// small for what the kernel has to know about all.
    pub fn cut(&self, region: PhysRange) -> Layout {
        let mut layout = self.layout();
        let bounds = || self.ranges().iter().flat_map(|(range, _)| [range.start, range.end]);
        let mut piece = PhysRange::new(region.start, region.start);
        let mut node = self.of_memory(region.start);
        while piece.end < region.end {
            let next = bounds().filter(|&bound| bound > piece.end && bound < region.end).min();
            piece.end = next.unwrap_or(region.end);
            let following = self.of_memory(piece.end);
            if piece.end == region.end || following != node {
                layout.add(piece, node);
                (piece.start, node) = (piece.end, following);
            }
        }
        if layout.has_room_for_records() { layout } else { Layout::one(region) }
    }

    /// The node of an address; the first one if the tables do not say.
    fn of_memory(&self, address: PhysAddr) -> u8 {
        let range = self.ranges().iter().find(|(range, _)| range.start <= address && address < range.end);
        range.map_or(0, |range| range.1)
    }

    fn read_srat(&mut self, table: &[u8]) -> Result<(), Complaint> {
        let broken = Complaint::Broken("SRAT");
        let mut rest = table.get(SRAT_ENTRIES..).ok_or(broken)?;
        while let [kind, length, ..] = *rest {
            let length = usize::from(length);
            let entry = rest.get(..length).filter(|_| length >= 2).ok_or(broken)?;
            self.add(kind, entry)?;
            rest = &rest[length..];
        }
        if self.range_count == 0 { Err(Complaint::NoMemory) } else { Ok(()) }
    }

    fn add(&mut self, kind: u8, entry: &[u8]) -> Result<(), Complaint> {
        let word = |at: usize| number::<4>(entry, at).ok_or(Complaint::Broken("SRAT"));
        let wide = |at: usize| number::<8>(entry, at).ok_or(Complaint::Broken("SRAT"));
        match kind {
            // Processor by its local APIC: the domain in two parts, id, flags.
            0 if word(4)? as u32 & ENABLED != 0 => {
                let domain = word(2)? & 0xff | word(8)? & 0xffff_ff00;
                self.add_processor(domain as u32, u32::from(entry[3]))
            }
            // Memory: domain, start, size, flags.
            1 if word(28)? as u32 & ENABLED != 0 => self.add_memory(word(2)? as u32, wide(8)?, wide(16)?),
            // Processor by its local x2APIC: domain, id, flags.
            2 if word(12)? as u32 & ENABLED != 0 => self.add_processor(word(4)? as u32, word(8)? as u32),
            _ => Ok(()),
        }
    }

    fn node(&mut self, domain: u32) -> Result<u8, Complaint> {
        if let Some(node) = self.domains[..self.count].iter().position(|&known| known == domain) {
            return Ok(node as u8);
        }
        *self.domains.get_mut(self.count).ok_or(Complaint::ManyNodes)? = domain;
        self.count += 1;
        Ok(self.count as u8 - 1)
    }

    fn add_processor(&mut self, domain: u32, id: u32) -> Result<(), Complaint> {
        let node = self.node(domain)?;
        match self.processors[..self.processor_count].iter().find(|processor| processor.0 == id) {
            Some(processor) if processor.1 != node => return Err(Complaint::Processor(id)),
            Some(_) => {}
            // A processor that does not fit into the table cannot run, either.
            None => {
                if let Some(free) = self.processors.get_mut(self.processor_count) {
                    *free = (id, node);
                    self.processor_count += 1;
                }
            }
        }
        Ok(())
    }

    fn add_memory(&mut self, domain: u32, start: u64, size: u64) -> Result<(), Complaint> {
        let node = self.node(domain)?;
        if size == 0 {
            return Ok(());
        }
        let end = start.checked_add(size).ok_or(Complaint::Endless(start))?;
        let range = PhysRange::new(PhysAddr::new(start), PhysAddr::new(end));
        if let Some((other, _)) =
            self.ranges().iter().find(|(other, of)| *of != node && other.overlaps(range))
        {
            return Err(Complaint::Memory(start.max(other.start.value())));
        }
        *self.ranges.get_mut(self.range_count).ok_or(Complaint::ManyRanges)? = (range, node);
        self.range_count += 1;
        Ok(())
    }

    fn read_slit(&mut self, table: &[u8]) -> Result<(), Complaint> {
        let broken = Complaint::Broken("SLIT");
        let domains = number::<8>(table, SLIT_COUNT).ok_or(broken)?;
        let told = |from: u32, to: u32| {
            let inside = u64::from(from) < domains && u64::from(to) < domains;
            let at = u64::from(from).checked_mul(domains)?.checked_add(u64::from(to))?;
            let at = usize::try_from(at).ok()?.checked_add(SLIT_DISTANCES)?;
            table.get(at).copied().filter(|_| inside)
        };
        for from in 0..self.count {
            for to in 0..self.count {
                let distance = told(self.domains[from], self.domains[to]).ok_or(broken)?;
                if (from == to) != (distance == LOCAL_DISTANCE) || distance < LOCAL_DISTANCE {
                    return Err(Complaint::Distance(self.domains[from], self.domains[to]));
                }
                self.distances[from][to] = distance;
            }
        }
        Ok(())
    }
}

/// The little-endian number of `SIZE` bytes at `at`.
fn number<const SIZE: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(SIZE)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two nodes that meet at `middle`.
    pub(crate) fn halves(middle: u64) -> Nodes {
        Nodes::read(Some(&srat(&[memory(0, 0, middle), memory(1, middle, middle)])), None)
    }

    fn processor(domain: u32, id: u8) -> Vec<u8> {
        let [low, rest @ ..] = domain.to_le_bytes();
        let [a, b, c] = rest;
        vec![0, 16, low, id, 1, 0, 0, 0, 0, a, b, c, 0, 0, 0, 0]
    }

    fn wide_processor(domain: u32, id: u32) -> Vec<u8> {
        let words = [0x1802, domain, id, 1, 0, 0];
        words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect()
    }

    fn memory(domain: u32, start: u64, size: u64) -> Vec<u8> {
        let mut entry = vec![1, 40];
        entry.extend_from_slice(&domain.to_le_bytes());
        entry.extend_from_slice(&[0; 2]);
        entry.extend_from_slice(&start.to_le_bytes());
        entry.extend_from_slice(&size.to_le_bytes());
        entry.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        entry
    }

    fn srat(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut table = vec![0; SRAT_ENTRIES];
        entries.iter().for_each(|entry| table.extend_from_slice(entry));
        table
    }

    fn slit(count: u64, distances: &[u8]) -> Vec<u8> {
        let mut table = vec![0; SLIT_COUNT];
        table.extend_from_slice(&count.to_le_bytes());
        table.extend_from_slice(distances);
        table
    }

    fn complaint(entries: &[Vec<u8>]) -> Option<Complaint> {
        let nodes = Nodes::read(Some(&srat(entries)), None);
        assert_eq!(nodes, Nodes { complaint: nodes.complaint, ..Nodes::ONE }, "one node");
        nodes.complaint
    }

    fn two() -> Vec<u8> {
        srat(&[
            processor(7, 0),
            processor(0x102, 1),
            wide_processor(7, 300),
            memory(7, 0, 0xa_0000),
            memory(7, 0x10_0000, 0x700_0000),
            memory(0x102, 0x800_0000, 0x800_0000),
            memory(0x102, 0x4000_0000, 0),
            vec![77, 2],
            vec![0, 16, 9, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ])
    }

    #[test]
    fn reads_processors_memory_and_distances() {
        let table = two();
        let nodes = Nodes::read(Some(&table), None);
        assert_eq!((nodes.count(), nodes.complaint), (2, None), "a disabled processor makes no node");
        assert_eq!([0, 1, 300, 3, 4].map(|id| nodes.of_processor(id)), [0, 1, 0, 0, 0]);
        let ranges: Vec<_> =
            nodes.ranges().iter().map(|(range, node)| (range.start.value(), *node)).collect();
        assert_eq!(ranges, [(0, 0), (0x10_0000, 0), (0x800_0000, 1)]);
        assert_eq!(nodes.distances()[0][..2], [10, 20]);

        // The table of distances is indexed by domains.
        let mut distances = vec![255; 0x103 * 0x103];
        for (from, to, distance) in [(7, 7, 10), (7, 0x102, 21), (0x102, 7, 31), (0x102, 0x102, 10)] {
            distances[from * 0x103 + to] = distance;
        }
        let nodes = Nodes::read(Some(&table), Some(&slit(0x103, &distances)));
        assert_eq!((nodes.distances()[0][1], nodes.distances()[1][0], nodes.complaint), (21, 31, None));
    }

    #[test]
    fn memory_is_cut_where_nodes_meet() {
        let nodes = Nodes::read(Some(&two()), None);
        let range = |start, end| PhysRange::new(PhysAddr::new(start), PhysAddr::new(end));
        let layout = nodes.cut(range(0x700_0000, 0x900_0000));
        let (low, high) = (range(0x700_0000, 0x800_0000), range(0x800_0000, 0x900_0000));
        assert_eq!((layout.nodes, layout.pieces()), (2, &[(low, 0), (high, 1)][..]));
        assert_eq!(nodes.cut(low).pieces(), [(low, 0)]);
        assert_eq!(nodes.cut(high).pieces(), [(high, 1)]);
        let (all, tiny) = (range(0x7ff_e000, 0x900_0000), range(0x7ff_e000, 0x800_0000));
        assert_eq!(
            (nodes.cut(all).nodes, nodes.cut(all).pieces()),
            (1, &[(all, 0)][..]),
            "{tiny:?} is too small"
        );
        assert_eq!(Nodes::ONE.cut(all).pieces(), [(all, 0)]);
    }

    #[test]
    fn without_a_table_there_is_one_node() {
        assert_eq!(Nodes::read(None, Some(&slit(1, &[10]))), Nodes::ONE);
    }

    #[test]
    fn contradictions_are_not_believed() {
        let ram = || memory(0, 0, 0x1000);
        assert_eq!(complaint(&[]), Some(Complaint::NoMemory));
        assert_eq!(complaint(&[processor(0, 0)]), Some(Complaint::NoMemory));
        assert_eq!(complaint(&[ram(), memory(1, 0xfff, 1)]), Some(Complaint::Memory(0xfff)));
        assert_eq!(complaint(&[ram(), memory(1, 0x1000, u64::MAX)]), Some(Complaint::Endless(0x1000)));
        assert_eq!(complaint(&[ram(), processor(0, 1), processor(1, 1)]), Some(Complaint::Processor(1)));
        let many: Vec<_> = (0..=MAX_NODES as u8).map(|node| processor(node.into(), node)).collect();
        assert_eq!(complaint(&many), Some(Complaint::ManyNodes));
        let many: Vec<_> = (0..=MAX_RANGES as u64).map(|at| memory(0, at << 12, 0x1000)).collect();
        assert_eq!(complaint(&many), Some(Complaint::ManyRanges));
        for entry in [vec![1, 39], vec![1, 0], vec![0, 4, 0, 0], vec![1, 4, 0, 0], vec![2, 200]] {
            assert_eq!(complaint(&[ram(), entry]), Some(Complaint::Broken("SRAT")));
        }
        assert_eq!(Nodes::read(Some(&[0; 40]), None).complaint, Some(Complaint::Broken("SRAT")));
    }

    #[test]
    fn bad_distances_leave_the_nodes() {
        let table = srat(&[memory(0, 0, 0x1000), memory(1, 0x1000, 0x1000)]);
        for (distances, expected) in [
            (slit(2, &[10, 20, 20]), Complaint::Broken("SLIT")),
            (slit(1, &[10, 20, 20, 10]), Complaint::Broken("SLIT")),
            (slit(u64::MAX, &[10, 20, 20, 10]), Complaint::Broken("SLIT")),
            (vec![0; 40], Complaint::Broken("SLIT")),
            (slit(2, &[10, 9, 20, 10]), Complaint::Distance(0, 1)),
            (slit(2, &[10, 20, 10, 10]), Complaint::Distance(1, 0)),
            (slit(2, &[11, 20, 20, 10]), Complaint::Distance(0, 0)),
        ] {
            let nodes = Nodes::read(Some(&table), Some(&distances));
            assert_eq!((nodes.count(), nodes.complaint), (2, Some(expected)));
            assert_eq!([0, 1].map(|node| nodes.distances()[node][..2].to_vec()), [[10, 20], [20, 10]]);
        }
    }

    /// No change of one byte, and no cut, makes reading panic.
    #[test]
    fn corrupted_tables_are_harmless() {
        let (table, distances) = (two(), slit(2, &[10, 20, 20, 10]));
        for at in 0..table.len() {
            for value in [0, 1, 2, 0x10, 0x28, 0x7f, 0xff] {
                let mut broken = table.clone();
                broken[at] = value;
                let _ = Nodes::read(Some(&broken), Some(&distances));
            }
            let _ = Nodes::read(Some(&table[..at]), Some(&distances));
        }
    }
}
