//! The master boot record: four entries, of which one may be an extended partition. That is a list
//! of blocks, each with the entry of a logical partition and a link to the next block.

use crate::{Disk, Kind, MOST, Partition, u32_at};
use alloc::vec::Vec;

/// The offset of the four entries, and the size of each.
const ENTRIES: usize = 446;
const ENTRY: usize = 16;
/// The type of the entry that protects a GPT.
const PROTECTIVE: u8 = 0xee;
/// The types of extended partitions.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// The number of the first logical partition.
const FIRST_LOGICAL: u32 = 5;

/// An entry: its status, its type, its first block (relative to something) and how many blocks.
struct Entry {
    status: u8,
    kind: u8,
    first: u64,
    count: u64,
}

fn entries(block: &[u8]) -> [Entry; 4] {
    core::array::from_fn(|index| {
        let entry = &block[ENTRIES + index * ENTRY..][..ENTRY];
        let (first, count) = (u32_at(entry, 8).into(), u32_at(entry, 12).into());
        Entry { status: entry[0], kind: entry[4], first, count }
    })
}

/// Whether the block has the signature of a boot record.
pub(crate) fn is_signed(block: &[u8]) -> bool {
    block[510..512] == [0x55, 0xaa]
}

/// Whether the record says that the disk has a GPT.
pub(crate) fn protects_gpt(block: &[u8]) -> bool {
    entries(block).iter().any(|entry| entry.kind == PROTECTIVE)
}

/// Reads the partitions of a disk whose first block is `first`.
pub(crate) async fn read<D: Disk>(disk: &D, first: &[u8]) -> Result<Vec<Partition>, D::Error> {
    let mut found = Vec::new();
    let entries = entries(first);
    // The boot block of a FAT file system has the same signature; what is at the place of the table
    // is no table then.
    if entries.iter().any(|entry| entry.status & 0x7f != 0) {
        return Ok(found);
    }
    let end = disk.blocks();
    let lies_on_disk = |first: u64, count: u64| {
        first > 0 && count > 0 && first.checked_add(count).is_some_and(|last| last <= end)
    };
    for (number, entry) in (1..).zip(&entries) {
        if entry.kind != 0 && lies_on_disk(entry.first, entry.count) {
            let Entry { kind, first, count, .. } = *entry;
            // Of an extended partition only the first two blocks can be used: a boot loader may be
            // there, and nothing that is written there damages a logical partition.
            let count = if EXTENDED.contains(&kind) { count.min(2) } else { count };
            found.push(Partition { number, first, count, kind: Kind::Mbr(kind) });
        }
    }
    let extended = entries.iter().find(|entry| EXTENDED.contains(&entry.kind));
    let Some(extended) = extended.filter(|entry| lies_on_disk(entry.first, entry.count)) else {
        return Ok(found);
    };
    let mut block = alloc::vec![0; disk.block_size()];
    let (mut link, mut number) = (0, FIRST_LOGICAL);
    // The links of a damaged disk may form a circle.
    while found.len() < MOST && number < FIRST_LOGICAL + MOST as u32 {
        if link >= extended.count {
            break;
        }
        let at = extended.first + link;
        disk.read(at, &mut block).await?;
        if !is_signed(&block) {
            break;
        }
        let [logical, next, ..] = self::entries(&block);
        if logical.kind != 0
            && !EXTENDED.contains(&logical.kind)
            && lies_on_disk(at + logical.first, logical.count)
        {
            let kind = Kind::Mbr(logical.kind);
            found.push(Partition { number, first: at + logical.first, count: logical.count, kind });
        }
        // A number belongs to each link, so that a partition that is left out does not change those
        // of the others.
        number += 1;
        if !EXTENDED.contains(&next.kind) || next.first == 0 {
            break;
        }
        link = next.first;
    }
    Ok(found)
}
