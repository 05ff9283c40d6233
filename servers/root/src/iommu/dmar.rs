//! The firmware's table of units between devices and memory (DMAR), as chapter 8 of Intel's
//! "Virtualization Technology for Directed I/O" describes it: which units there are, and which
//! functions each of them translates for.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Bytes of a table before its first entry.
const HEADER: usize = 48;
/// Types of entries: a unit, and memory that a device must reach from the machine's start on.
const UNIT: u16 = 0;
const RESERVED: u16 = 1;
/// Types of scopes: a function, all functions beyond a bridge, and an I/O APIC.
const ENDPOINT: u8 = 1;
const BRIDGE: u8 = 2;
const IO_APIC: u8 = 3;
/// Where the table's flags are, and the flag that the machine can remap interrupts.
const FLAGS: usize = 37;
const REMAPS_INTERRUPTS: u8 = 1;
/// The most entries of each type, and the most scopes of an entry. A table with more counts as
/// broken.
const MOST: usize = 64;

/// The content of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dmar {
    /// Whether the machine can remap interrupts.
    pub(crate) remaps_interrupts: bool,
    /// The units of the first PCI segment.
    pub(crate) units: Vec<Unit>,
    /// Memory that devices must reach.
    pub(crate) reserved: Vec<Reserved>,
}

/// A unit that translates what devices access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The physical address of its registers.
    pub(crate) registers: u64,
    /// Whether it translates for all functions that are in no other unit's scopes.
    pub(crate) is_for_rest: bool,
    /// Its functions.
    pub(crate) scopes: Vec<Scope>,
    /// Its I/O APICs.
    io_apics: Vec<IoApic>,
}

/// An I/O APIC.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IoApic {
    id: u8,
    /// The function in whose name it sends messages.
    function: Scope,
}

/// Memory that the functions of some scopes must reach, because the firmware has told them so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// The physical memory, whole pages.
    pub(crate) memory: Range<u64>,
    /// The functions.
    pub(crate) scopes: Vec<Scope>,
}

/// A function, or a bridge with all functions beyond it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    is_bridge: bool,
    bus: u8,
    /// Device and function on `bus`, then on the bus beyond that function, and so on.
    path: Vec<(u8, u8)>,
}

/// Why a table is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// It is no such table, or its checksum is wrong.
    NoTable,
    /// An entry or a scope is shorter than it must be, or longer than what is around it.
    Length,
    /// The registers or the reserved memory are not whole pages, or are nowhere.
    Address,
    /// There are more entries or scopes than any machine has.
    TooMany,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Error::NoTable => "it is not whole",
            Error::Length => "an entry has a wrong length",
            Error::Address => "an entry has a wrong address",
            Error::TooMany => "it has too many entries",
        })
    }
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Result<u64, Error> {
    let part = bytes.get(at..at + BYTES).ok_or(Error::Length)?;
    Ok(part.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

impl Dmar {
    /// Reads a table.
    ///
    /// # Errors
    /// What is wrong with the table. A part of a table is never used.
    pub(crate) fn parse(table: &[u8]) -> Result<Dmar, Error> {
        let sum = table.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
        if table.len() < HEADER || !table.starts_with(b"DMAR") || sum != 0 {
            return Err(Error::NoTable);
        }
        let remaps_interrupts = table[FLAGS] & REMAPS_INTERRUPTS != 0;
        let mut found = Dmar { remaps_interrupts, ..Dmar::default() };
        let mut rest = &table[HEADER..];
        while !rest.is_empty() {
            let (kind, length) = (number::<2>(rest, 0)? as u16, number::<2>(rest, 2)? as usize);
            let entry = rest.get(..length).filter(|_| length >= 4).ok_or(Error::Length)?;
            rest = &rest[length..];
            // Root knows the functions of the first segment only.
            match kind {
                UNIT if number::<2>(entry, 6)? == 0 => add(&mut found.units, unit(entry)?)?,
                RESERVED if number::<2>(entry, 6)? == 0 => add(&mut found.reserved, reserved(entry)?)?,
                _ => {}
            }
        }
        Ok(found)
    }

    /// The index of the unit that translates for the function at `place`, if there is one.
    pub(crate) fn unit_of(&self, place: u32, space: &impl Fn(u32) -> Bridge) -> Option<usize> {
        let named = |unit: &Unit| unit.scopes.iter().any(|scope| scope.has(place, space));
        let named = self.units.iter().position(named);
        named.or_else(|| self.units.iter().position(|unit| unit.is_for_rest))
    }

    /// The I/O APICs: the id of each, and the bus, device and function in whose name it sends
    /// messages.
    pub(crate) fn io_apics(&self, space: &impl Fn(u32) -> Bridge) -> Vec<(u8, u16)> {
        let all = self.units.iter().flat_map(|unit| &unit.io_apics);
        all.filter_map(|it| Some((it.id, (it.function.end(space)? >> 8) as u16))).collect()
    }

    /// The memory that the function at `place` must reach.
    pub(crate) fn reserved_for(&self, place: u32, space: &impl Fn(u32) -> Bridge) -> Vec<Range<u64>> {
        let own = |it: &&Reserved| it.scopes.iter().any(|scope| scope.has(place, space));
        self.reserved.iter().filter(own).map(|it| it.memory.clone()).collect()
    }
}

/// The buses beyond a function, if it is a bridge: from the first to the last.
pub(crate) type Bridge = Option<(u8, u8)>;

impl Scope {
    /// Whether the function at `place` is in the scope. `bridge` tells which buses are beyond a
    /// function.
    fn has(&self, place: u32, bridge: &impl Fn(u32) -> Bridge) -> bool {
        let Some(end) = self.end(bridge) else { return false };
        let is_beyond = || {
            let own = (place >> 16) as u8;
            bridge(end).is_some_and(|(first, last)| (first..=last).contains(&own))
        };
        place == end || self.is_bridge && is_beyond()
    }

    /// The place of the function to which the path leads.
    fn end(&self, bridge: &impl Fn(u32) -> Bridge) -> Option<u32> {
        let (&last, before) = self.path.split_last()?;
        let at = |bus: u8, (device, function): (u8, u8)| {
            u32::from(bus) << 16 | u32::from(device) << 11 | u32::from(function) << 8
        };
        let mut bus = self.bus;
        for &step in before {
            (bus, _) = bridge(at(bus, step))?;
        }
        Some(at(bus, last))
    }
}

fn add<T>(all: &mut Vec<T>, one: T) -> Result<(), Error> {
    if all.len() == MOST {
        return Err(Error::TooMany);
    }
    all.push(one);
    Ok(())
}

fn unit(entry: &[u8]) -> Result<Unit, Error> {
    let registers = number::<8>(entry, 8)?;
    if registers == 0 || !registers.is_multiple_of(4096) || registers >> 52 != 0 {
        return Err(Error::Address);
    }
    let (scopes, io_apics) = scopes(&entry[16..])?;
    Ok(Unit { registers, is_for_rest: entry[4] & 1 != 0, scopes, io_apics })
}

fn reserved(entry: &[u8]) -> Result<Reserved, Error> {
    let (start, last) = (number::<8>(entry, 8)?, number::<8>(entry, 16)?);
    let end = last.checked_add(1).filter(|&end| start < end && end >> 52 == 0).ok_or(Error::Address)?;
    if !start.is_multiple_of(4096) || !end.is_multiple_of(4096) {
        return Err(Error::Address);
    }
    Ok(Reserved { memory: start..end, scopes: scopes(&entry[24..])?.0 })
}

/// The scopes of an entry: functions, and I/O APICs.
fn scopes(mut rest: &[u8]) -> Result<(Vec<Scope>, Vec<IoApic>), Error> {
    let (mut functions, mut io_apics) = (Vec::new(), Vec::new());
    while let [kind, length, ..] = *rest {
        let length = usize::from(length);
        let scope = rest.get(..length).filter(|_| length >= 8 && length % 2 == 0).ok_or(Error::Length)?;
        rest = &rest[length..];
        let path = scope[6..].chunks_exact(2).map(|step| (step[0] & 31, step[1] & 7)).collect();
        let found = Scope { is_bridge: kind == BRIDGE, bus: scope[5], path };
        match kind {
            ENDPOINT | BRIDGE => add(&mut functions, found)?,
            IO_APIC => add(&mut io_apics, IoApic { id: scope[4], function: found })?,
            _ => {}
        }
    }
    if rest.is_empty() { Ok((functions, io_apics)) } else { Err(Error::Length) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn scope(kind: u8, bus: u8, path: &[(u8, u8)]) -> Vec<u8> {
        let mut bytes = vec![kind, 6 + 2 * path.len() as u8, 0, 0, 0, bus];
        bytes.extend(path.iter().flat_map(|&(device, function)| [device, function]));
        bytes
    }

    pub(crate) fn io_apic(id: u8, bus: u8, path: &[(u8, u8)]) -> Vec<u8> {
        let mut bytes = scope(IO_APIC, bus, path);
        bytes[4] = id;
        bytes
    }

    fn entry(kind: u16, body: &[u8], scopes: &[Vec<u8>]) -> Vec<u8> {
        let scopes = scopes.concat();
        let length = (4 + body.len() + scopes.len()) as u16;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &scopes].concat()
    }

    pub(crate) fn unit_entry(is_for_rest: bool, registers: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
        let body = [&[u8::from(is_for_rest), 0, 0, 0][..], &registers.to_le_bytes()].concat();
        entry(UNIT, &body, scopes)
    }

    pub(crate) fn reserved_entry(memory: Range<u64>, scopes: &[Vec<u8>]) -> Vec<u8> {
        let body = [&[0; 4][..], &memory.start.to_le_bytes(), &(memory.end - 1).to_le_bytes()].concat();
        entry(RESERVED, &body, scopes)
    }

    /// A table of a machine that can remap interrupts.
    pub(crate) fn table_with_interrupts(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut table = table(entries);
        table[FLAGS] = REMAPS_INTERRUPTS;
        seal(&mut table);
        table
    }

    pub(crate) fn table(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut table = vec![0; HEADER];
        table[..4].copy_from_slice(b"DMAR");
        entries.iter().for_each(|entry| table.extend_from_slice(entry));
        seal(&mut table);
        table
    }

    fn seal(table: &mut [u8]) {
        table[9] = 0;
        table[9] = table.iter().fold(0u8, |sum, &byte| sum.wrapping_sub(byte));
    }

    /// The bridge at 00:1c.0 has bus 2 beyond it, the one at 02:00.0 the buses 3 to 5.
    fn bridges(place: u32) -> Bridge {
        match place {
            0x00_e000 => Some((2, 5)),
            0x02_0000 => Some((3, 5)),
            _ => None,
        }
    }

    #[test]
    fn units_and_reserved_memory_are_those_of_their_functions() {
        let first = unit_entry(false, 0xfed9_0000, &[scope(1, 0, &[(2, 0)]), io_apic(5, 0xf0, &[(31, 0)])]);
        let second = unit_entry(false, 0xfed9_1000, &[scope(2, 0, &[(28, 0), (0, 0)])]);
        let third = unit_entry(true, 0xfed9_2000, &[]);
        let memory = reserved_entry(
            0x7c00_0000..0x7c80_0000,
            &[scope(1, 0, &[(2, 0)]), scope(1, 0, &[(28, 0), (5, 1)])],
        );
        let other = [2, 0, 8, 0, 0, 0, 0, 0].to_vec();
        assert!(!Dmar::parse(&table(&[])).unwrap().remaps_interrupts);
        let found = Dmar::parse(&table(&[first, other, second, third, memory])).unwrap();
        assert_eq!(
            found.units.iter().map(|unit| unit.registers & 0xffff).collect::<Vec<_>>(),
            [0, 0x1000, 0x2000]
        );
        let unit = |place| found.unit_of(place, &bridges);
        assert_eq!([unit(2 << 11), unit(2 << 11 | 1 << 8), unit(3 << 11)], [Some(0), Some(2), Some(2)]);
        assert_eq!([unit(0x02_0000), unit(0x03_0000), unit(0x05_ff00)], [Some(1); 3]);
        assert_eq!([unit(0x02_0100), unit(0x06_0000)], [Some(2); 2]);
        for place in [2 << 11, 0x02_2900] {
            assert_eq!(found.reserved_for(place, &bridges).first(), Some(&(0x7c00_0000..0x7c80_0000)));
        }
        assert_eq!(found.reserved_for(3 << 11, &bridges), []);
        assert_eq!(found.io_apics(&bridges), [(5, 0xf0f8)]);
    }

    #[test]
    fn a_function_may_have_no_unit() {
        let found = Dmar::parse(&table(&[unit_entry(false, 0x1000, &[scope(1, 0, &[(2, 0)])])])).unwrap();
        assert_eq!(found.unit_of(3 << 11, &bridges), None);
        let mut elsewhere = unit_entry(true, 0x1000, &[]);
        elsewhere[6] = 1;
        assert_eq!(Dmar::parse(&table(&[elsewhere])), Ok(Dmar::default()), "another segment");
    }

    #[test]
    fn broken_tables_are_refused() {
        let good = table(&[unit_entry(true, 0x1000, &[])]);
        let mut sum = good.clone();
        sum[50] ^= 1;
        for bad in [&sum, &good[..47], &[][..], b"DMAR"] {
            assert_eq!(Dmar::parse(bad), Err(Error::NoTable));
        }
        let reserved = |memory| reserved_entry(memory, &[]);
        let short = [entry(UNIT, &[0; 4], &[]), entry(RESERVED, &[0; 12], &[]), vec![0, 0, 3], vec![0; 4]];
        for bad in short {
            assert_eq!(Dmar::parse(&table(&[bad])), Err(Error::Length));
        }
        let mut wide = scope(1, 0, &[(2, 0)]);
        wide[1] = 10;
        for bad in [wide, vec![1, 6, 0, 0, 0, 0], vec![1, 9, 0, 0, 0, 0, 0, 0, 0], vec![1]] {
            assert_eq!(Dmar::parse(&table(&[unit_entry(true, 0x1000, &[bad])])), Err(Error::Length));
        }
        let addresses = [
            unit_entry(true, 0, &[]),
            unit_entry(true, 0x1001, &[]),
            unit_entry(true, 1 << 52, &[]),
            reserved(0x1001..0x2000),
            reserved(0x1000..0x2001),
            reserved(0x1000..1 << 53),
            reserved(0x2000..0x2000),
        ];
        for bad in addresses {
            assert_eq!(Dmar::parse(&table(&[bad])), Err(Error::Address));
        }
        let many = vec![unit_entry(false, 0x1000, &[]); MOST + 1];
        assert_eq!(Dmar::parse(&table(&many)), Err(Error::TooMany));
    }

    proptest! {
        #[test]
        fn no_table_stops_root(bytes in proptest::collection::vec(any::<u8>(), 0..200), place in any::<u32>()) {
            let mut all = table(&[]);
            all.extend(bytes);
            seal(&mut all);
            if let Ok(found) = Dmar::parse(&all) {
                let _ = (found.unit_of(place, &bridges), found.reserved_for(place, &bridges));
            }
        }
    }
}
