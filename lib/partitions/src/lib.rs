//! Partition tables of disks: GPT (UEFI specification 2.10, chapter 5) and MBR with logical
//! partitions. A table is read and checked; a GPT can be made for a disk that is new.
//!
//! No content of a disk leads to a panic, to a partition beyond the disk's end, or to reading
//! without end.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod gpt;
mod mbr;
pub mod write;

#[cfg(test)]
mod tests;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::future::Future;

/// A disk whose table is read.
pub trait Disk: Sync {
    /// Why a disk cannot be read.
    type Error;

    /// The size of a logical block in bytes: 512, or a larger power of two up to 4096.
    fn block_size(&self) -> usize;

    /// How many logical blocks the disk has.
    fn blocks(&self) -> u64;

    /// Fills the buffer from a block on, whose end lies on the disk. The buffer has the size of
    /// some blocks.
    fn read(&self, block: u64, buffer: &mut [u8]) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The number of the partition, from 1 on: `vda1` has number 1.
    pub number: u32,
    /// The first logical block.
    pub first: u64,
    /// How many logical blocks there are: at least 1.
    pub count: u64,
    /// What the table says in addition.
    pub kind: Kind,
}

/// What a table says about a partition in addition to its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An entry of an MBR, with the number of its type.
    Mbr(u8),
    /// An entry of a GPT.
    Gpt {
        /// The GUID of the partition.
        identity: [u8; 16],
        /// The name of the partition, as UTF-16 code units without the zeros at its end.
        name: Vec<u16>,
    },
}

/// A GUID as text, in small letters: the bytes of its first three numbers are in reverse order.
pub fn guid_text(guid: [u8; 16]) -> String {
    let hex =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.map(|byte| format!("{byte:02x}")).collect::<String>();
    let [low, middle, high] = [0..4, 4..6, 6..8].map(|range| hex(&mut guid[range].iter().rev()));
    let [clock, node] = [8..10, 10..16].map(|range| hex(&mut guid[range].iter()));
    format!("{low}-{middle}-{high}-{clock}-{node}")
}

/// The most partitions of a disk.
pub const MOST: usize = 128;

/// Reads the partitions of a disk, in the order of their numbers. Partitions that do not lie on the
/// disk are left out; a disk without a table has none.
///
/// # Errors
/// The first error of reading the disk.
pub async fn read<D: Disk>(disk: &D) -> Result<Vec<Partition>, D::Error> {
    let size = disk.block_size();
    if !(512..=4096).contains(&size) || !size.is_power_of_two() || disk.blocks() < 2 {
        return Ok(Vec::new());
    }
    let mut first = alloc::vec![0; size];
    disk.read(0, &mut first).await?;
    if !mbr::is_signed(&first) {
        return Ok(Vec::new());
    }
    if mbr::protects_gpt(&first) {
        return gpt::read(disk).await;
    }
    mbr::read(disk, &first).await
}

/// The 32-bit number at an offset, which lies in the bytes.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// The 64-bit number at an offset, which lies in the bytes.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
