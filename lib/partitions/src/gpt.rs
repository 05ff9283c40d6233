//! The GUID partition table: a header in the second block and another one in the last, each with
//! check sums of itself and of its array of entries.

use crate::{Disk, Kind, MOST, Partition, u32_at, u64_at};
use alloc::vec::Vec;

pub(crate) const SIGNATURE: &[u8] = b"EFI PART";
/// The length in bytes of the header that every table has.
pub(crate) const HEADER: usize = 92;
/// The length in bytes of the part of an entry that every table has.
pub(crate) const ENTRY: usize = 128;
/// The longest entry that is read.
const LONGEST_ENTRY: usize = 4096;

/// The part of a header that leads to partitions.
struct Header {
    entries: u64,
    count: usize,
    size: usize,
    sum: u32,
    /// The first and the last block that partitions may use.
    first: u64,
    last: u64,
}

/// Reads the partitions by the first header, or by that at the disk's end if the first is damaged.
pub(crate) async fn read<D: Disk>(disk: &D) -> Result<Vec<Partition>, D::Error> {
    for place in [1, disk.blocks() - 1] {
        let mut block = alloc::vec![0; disk.block_size()];
        disk.read(place, &mut block).await?;
        let Some(header) = header(&block, place, disk.blocks()) else { continue };
        if let Some(found) = entries(disk, &header).await? {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The header in a block, if it is one of the block at `place`.
fn header(block: &[u8], place: u64, blocks: u64) -> Option<Header> {
    let length = usize::try_from(u32_at(block, 12)).ok()?;
    if !block.starts_with(SIGNATURE)
        || !(HEADER..=block.len()).contains(&length)
        || u64_at(block, 24) != place
    {
        return None;
    }
    let mut checked = block[..length].to_vec();
    checked[16..20].fill(0);
    if check_sum(&checked) != u32_at(block, 16) {
        return None;
    }
    let header = Header {
        entries: u64_at(block, 72),
        count: u32_at(block, 80) as usize,
        size: u32_at(block, 84) as usize,
        sum: u32_at(block, 88),
        first: u64_at(block, 40),
        last: u64_at(block, 48),
    };
    let is_possible = (ENTRY..=LONGEST_ENTRY).contains(&header.size)
        && header.size.is_multiple_of(8)
        && header.count <= MOST * LONGEST_ENTRY / header.size
        && header.first <= header.last
        && header.last < blocks;
    is_possible.then_some(header)
}

/// The partitions in a header's array; `None`: the array is damaged.
async fn entries<D: Disk>(disk: &D, header: &Header) -> Result<Option<Vec<Partition>>, D::Error> {
    let length = header.count * header.size;
    let blocks = length.div_ceil(disk.block_size());
    let end = header.entries.checked_add(blocks as u64);
    if header.entries == 0 || end.is_none_or(|end| end > disk.blocks()) {
        return Ok(None);
    }
    let mut array = alloc::vec![0; blocks * disk.block_size()];
    disk.read(header.entries, &mut array).await?;
    array.truncate(length);
    if check_sum(&array) != header.sum {
        return Ok(None);
    }
    let found = (1..).zip(array.chunks_exact(header.size)).filter_map(|(number, entry)| {
        let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
        let is_used = entry[..16].iter().any(|&byte| byte != 0);
        if !is_used || first > last || first < header.first || last > header.last {
            return None;
        }
        let mut identity = [0; 16];
        identity.copy_from_slice(&entry[16..32]);
        let units = entry[56..ENTRY].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let name = units.take_while(|&unit| unit != 0).collect();
        Some(Partition { number, first, count: last - first + 1, kind: Kind::Gpt { identity, name } })
    });
    Ok(Some(found.take(MOST).collect()))
}

/// The check sum of bytes: CRC-32 as in Ethernet.
pub(crate) fn check_sum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !sum
}
