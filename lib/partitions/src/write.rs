//! Makes a GUID partition table, for a program that makes a disk.

use crate::gpt::{ENTRY, HEADER, SIGNATURE, check_sum};
use crate::{u32_at, u64_at};
use alloc::vec::Vec;

/// The bytes of a logical block of the disks for which tables are made.
pub const BLOCK: usize = 512;
/// How many entries the array has: as many as the specification asks for.
const ENTRIES: usize = 128;
/// How many blocks the array takes.
const ARRAY: u64 = (ENTRIES * ENTRY / BLOCK) as u64;
/// The blocks of a mebibyte.
const MEBIBYTE: u64 = (1 << 20) / BLOCK as u64;
/// The blocks before the first that a partition may have: the MBR, a header and the array.
pub const BEFORE: u64 = 2 + ARRAY;
/// The blocks after the last that a partition may have: the array and a header.
pub const AFTER: u64 = 1 + ARRAY;

/// A partition that a table is to have.
#[derive(Clone, Debug)]
pub struct New<'a> {
    /// The first logical block.
    pub first: u64,
    /// How many logical blocks there are: at least 1.
    pub count: u64,
    /// The GUID of what the partition is for, as the table has it.
    pub purpose: [u8; 16],
    /// The GUID of the partition.
    pub identity: [u8; 16],
    /// The name of the partition: at most 36 characters are kept.
    pub name: &'a str,
}

/// The first [`BEFORE`] and the last [`AFTER`] blocks of a disk of so many blocks, with this GUID
/// and these partitions, which must lie between them.
pub fn gpt(blocks: u64, identity: [u8; 16], partitions: &[New<'_>]) -> (Vec<u8>, Vec<u8>) {
    let mut array = alloc::vec![0; ENTRIES * ENTRY];
    for (entry, partition) in array.chunks_exact_mut(ENTRY).zip(partitions) {
        entry[..16].copy_from_slice(&partition.purpose);
        entry[16..32].copy_from_slice(&partition.identity);
        entry[32..40].copy_from_slice(&partition.first.to_le_bytes());
        entry[40..48].copy_from_slice(&(partition.first + partition.count - 1).to_le_bytes());
        for (unit, place) in partition.name.encode_utf16().zip(entry[56..].chunks_exact_mut(2)) {
            place.copy_from_slice(&unit.to_le_bytes());
        }
    }
    table(blocks, identity, alloc::vec![0; BLOCK], array)
}

/// The table of a disk that has been made larger.
#[derive(Clone, Debug)]
pub struct Enlarged {
    /// How many blocks the partition has now.
    pub count: u64,
    /// The first [`BEFORE`] blocks of the disk.
    pub before: Vec<u8>,
    /// The last [`AFTER`] blocks of the disk.
    pub after: Vec<u8>,
}

/// The first [`BEFORE`] and the last [`AFTER`] blocks of a disk that has been made larger, to so
/// many blocks, and whose partition `number` then has all mebibytes after its first block. `before`
/// is what the first blocks of the disk are: what they say in addition stays.
/// `None`: that is no table as [`gpt`] makes them, or another partition is in the way.
pub fn enlarged(before: &[u8], blocks: u64, number: u32) -> Option<Enlarged> {
    let (header, array) = (before.get(BLOCK..2 * BLOCK)?, before.get(2 * BLOCK..BEFORE as usize * BLOCK)?);
    let is_ours = header[..8] == *SIGNATURE
        && u64_at(header, 72) == 2
        && (u32_at(header, 80), u32_at(header, 84)) == (ENTRIES as u32, ENTRY as u32)
        && u32_at(header, 88) == check_sum(array);
    let own = usize::try_from(number).ok()?.checked_sub(1).filter(|&own| own < ENTRIES && is_ours)?;
    let mut array = array.to_vec();
    let (first, old) = (u64_at(&array, own * ENTRY + 32), u64_at(&array, own * ENTRY + 40));
    let count = blocks.checked_sub(AFTER)?.checked_sub(first)? / MEBIBYTE * MEBIBYTE;
    let last = (first + count).checked_sub(1)?;
    let is_in_the_way = |entry: &[u8]| entry[..16].iter().any(|&byte| byte != 0) && u64_at(entry, 40) > old;
    if last < old || array.chunks(ENTRY).any(is_in_the_way) {
        return None;
    }
    array[own * ENTRY + 40..own * ENTRY + 48].copy_from_slice(&last.to_le_bytes());
    let mut identity = [0; 16];
    identity.copy_from_slice(&header[56..72]);
    let (before, after) = table(blocks, identity, before[..BLOCK].to_vec(), array);
    Some(Enlarged { count, before, after })
}

/// The blocks before and after partitions with these entries. `record` has what a boot record has
/// in addition to its partition, such as a loader.
fn table(blocks: u64, identity: [u8; 16], mut record: Vec<u8>, array: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let header = |own: u64, other: u64, first_of_array: u64| {
        let mut header = alloc::vec![0; BLOCK];
        header[..8].copy_from_slice(SIGNATURE);
        header[8..12].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        header[12..16].copy_from_slice(&(HEADER as u32).to_le_bytes());
        for (at, number) in [(24, own), (32, other), (40, BEFORE), (48, blocks - AFTER - 1)] {
            header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        header[56..72].copy_from_slice(&identity);
        header[72..80].copy_from_slice(&first_of_array.to_le_bytes());
        let sum = check_sum(&array);
        for (at, number) in [(80, ENTRIES as u32), (84, ENTRY as u32), (88, sum)] {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let sum = check_sum(&header[..HEADER]);
        header[16..20].copy_from_slice(&sum.to_le_bytes());
        header
    };
    // The only partition of the boot record is the whole disk, for programs that know no GPT.
    record[446..454].copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff]);
    record[454..458].copy_from_slice(&1_u32.to_le_bytes());
    record[458..462].copy_from_slice(&u32::try_from(blocks - 1).unwrap_or(u32::MAX).to_le_bytes());
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    let last = blocks - 1;
    let before = [record, header(1, last, 2), array.clone()].concat();
    let after = [array.clone(), header(last, 1, blocks - AFTER)].concat();
    (before, after)
}
