//! Tables that the tests make, and damaged ones.

use crate::gpt::check_sum;
use crate::{Disk, Kind, MOST, Partition, read, write};
use core::future::{Future, ready};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use proptest::prelude::*;

/// A disk in memory. Reading beyond its end fails the test.
struct Image {
    bytes: Vec<u8>,
    block: usize,
}

impl Disk for Image {
    type Error = ();

    fn block_size(&self) -> usize {
        self.block
    }

    fn blocks(&self) -> u64 {
        (self.bytes.len() / self.block) as u64
    }

    fn read(&self, block: u64, buffer: &mut [u8]) -> impl Future<Output = Result<(), ()>> + Send {
        buffer.copy_from_slice(&self.bytes[block as usize * self.block..][..buffer.len()]);
        ready(Ok(()))
    }
}

fn partitions(image: &Image) -> Vec<Partition> {
    let mut reading = pin!(read(image));
    match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found.unwrap(),
        Poll::Pending => panic!("the disk is in memory"),
    }
}

/// A disk of so many blocks of this size, without a table.
fn blank(blocks: usize, block: usize) -> Image {
    Image { bytes: vec![0; blocks * block], block }
}

/// Writes an entry of a boot record in a block.
fn entry(image: &mut Image, block: u64, index: usize, kind: u8, first: u32, count: u32) {
    let at = block as usize * image.block;
    let record = &mut image.bytes[at..][..512];
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    let entry = &mut record[446 + 16 * index..][..16];
    entry[4] = kind;
    entry[8..12].copy_from_slice(&first.to_le_bytes());
    entry[12..].copy_from_slice(&count.to_le_bytes());
}

/// Writes a GPT, of both headers, with these partitions: number, first block, count of blocks.
fn write_gpt(image: &mut Image, list: &[(usize, u64, u64)]) {
    let (block, blocks) = (image.block, image.blocks());
    entry(image, 0, 0, 0xee, 1, u32::MAX);
    let mut array = vec![0; 128 * 128];
    for &(number, first, count) in list {
        let entry = &mut array[(number - 1) * 128..][..128];
        entry[0] = 0xaf;
        entry[16] = number as u8;
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&(first + count - 1).to_le_bytes());
        entry[56] = b'p';
    }
    let array_blocks = (array.len() / block) as u64;
    let first = 2 + array_blocks;
    let last = blocks - 2 - array_blocks;
    for (place, entries) in [(1, 2), (blocks - 1, blocks - 1 - array_blocks)] {
        image.bytes[entries as usize * block..][..array.len()].copy_from_slice(&array);
        let header = &mut image.bytes[place as usize * block..][..512];
        header[..8].copy_from_slice(b"EFI PART");
        header[12..16].copy_from_slice(&92u32.to_le_bytes());
        for (at, number) in [(24, place), (40, first), (48, last), (72, entries)] {
            header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        header[80..84].copy_from_slice(&128u32.to_le_bytes());
        header[84..88].copy_from_slice(&128u32.to_le_bytes());
        header[88..92].copy_from_slice(&check_sum(&array).to_le_bytes());
        let sum = check_sum(&header[..92]);
        header[16..20].copy_from_slice(&sum.to_le_bytes());
    }
}

fn places(found: &[Partition]) -> Vec<(u32, u64, u64)> {
    found.iter().map(|partition| (partition.number, partition.first, partition.count)).collect()
}

#[test]
fn the_check_sum_is_that_of_the_standard() {
    assert_eq!(check_sum(b"123456789"), 0xcbf4_3926);
}

#[test]
fn a_disk_without_a_table_has_no_partitions() {
    assert_eq!(partitions(&blank(100, 512)), []);
    assert_eq!(partitions(&blank(1, 512)), []);
    assert_eq!(partitions(&blank(0, 4096)), []);
    let mut other = blank(100, 512);
    entry(&mut other, 0, 0, 0x83, 10, 10);
    other.bytes[446] = 0x41;
    assert_eq!(partitions(&other), [], "a boot block of another kind");
}

#[test]
fn primary_and_logical_partitions_are_found() {
    let mut image = blank(1000, 512);
    entry(&mut image, 0, 0, 0x83, 10, 90);
    entry(&mut image, 0, 2, 0x05, 200, 600);
    entry(&mut image, 0, 3, 0x82, 900, 100);
    entry(&mut image, 200, 0, 0x83, 2, 50);
    entry(&mut image, 200, 1, 0x05, 100, 100);
    entry(&mut image, 300, 0, 0x83, 1, 20);
    let found = partitions(&image);
    assert_eq!(places(&found), [(1, 10, 90), (3, 200, 2), (4, 900, 100), (5, 202, 50), (6, 301, 20)]);
    assert_eq!(found[2].kind, Kind::Mbr(0x82));
}

#[test]
fn partitions_beyond_the_end_are_left_out_and_keep_their_numbers() {
    let mut image = blank(100, 512);
    entry(&mut image, 0, 0, 0x83, 50, 51);
    entry(&mut image, 0, 1, 0x83, 0, 10);
    entry(&mut image, 0, 2, 0x83, u32::MAX, u32::MAX);
    entry(&mut image, 0, 3, 0x83, 50, 50);
    assert_eq!(places(&partitions(&image)), [(4, 50, 50)]);
}

#[test]
fn a_circle_of_logical_partitions_ends() {
    let mut image = blank(1000, 512);
    entry(&mut image, 0, 0, 0x0f, 100, 800);
    entry(&mut image, 100, 0, 0x83, 1, 5);
    entry(&mut image, 100, 1, 0x05, 50, 10);
    entry(&mut image, 150, 0, 0x83, 1, 5);
    entry(&mut image, 150, 1, 0x05, 50, 10);
    assert!(partitions(&image).len() <= MOST);
}

#[test]
fn a_gpt_is_read_from_either_header() {
    for block in [512, 4096] {
        let mut image = blank(400, block);
        write_gpt(&mut image, &[(1, 40, 60), (128, 200, 1), (3, 100, 100)]);
        let expected = [(1, 40, 60), (3, 100, 100), (128, 200, 1)];
        let found = partitions(&image);
        assert_eq!(places(&found), expected);
        assert!(
            matches!(&found[1].kind, Kind::Gpt { identity, name } if identity[0] == 3 && name == &[b'p'.into()])
        );
        // A damaged header, then a damaged array: the copies at the end count.
        for damaged in [block + 50, 2 * block + 40] {
            let mut image = Image { bytes: image.bytes.clone(), block };
            image.bytes[damaged] ^= 1;
            assert_eq!(places(&partitions(&image)), expected);
            let last = image.bytes.len() - block;
            image.bytes[last + 50] ^= 1;
            assert_eq!(partitions(&image), [], "both are damaged");
        }
    }
}

#[test]
fn partitions_outside_of_a_gpts_room_are_left_out() {
    let mut image = blank(400, 512);
    write_gpt(&mut image, &[(1, 1, 60), (2, 300, 99), (3, 100, 100)]);
    assert_eq!(places(&partitions(&image)), [(3, 100, 100)]);
}

proptest! {
    #[test]
    fn any_damage_gives_partitions_on_the_disk(
        is_gpt in any::<bool>(),
        damage in proptest::collection::vec((0usize..100 * 512, any::<u8>()), 0..40),
        links in proptest::collection::vec((0u64..100, 0usize..2, 0u32..120, 0u32..120), 0..10),
    ) {
        let mut image = blank(100, 512);
        if is_gpt {
            write_gpt(&mut image, &[(1, 40, 10), (2, 50, 10)]);
        } else {
            entry(&mut image, 0, 0, 0x83, 1, 9);
            entry(&mut image, 0, 1, 0x05, 10, 90);
            for &(block, index, first, count) in &links {
                entry(&mut image, block, index, if index == 0 { 0x83 } else { 0x05 }, first, count);
            }
        }
        damage.iter().for_each(|&(at, byte)| image.bytes[at] = byte);
        let found = partitions(&image);
        prop_assert!(found.len() <= MOST);
        prop_assert!(found.windows(2).all(|pair| pair[0].number < pair[1].number));
        for partition in &found {
            prop_assert!(partition.first > 0 && partition.count > 0 && partition.first + partition.count <= 100);
        }
    }
}

#[test]
fn a_partition_takes_the_room_of_a_disk_that_has_become_larger() {
    let new = |first, count| write::New { first, count, purpose: [1; 16], identity: [2; 16], name: "p" };
    let (old, blocks) = (10_000, 100_000);
    let (mut before, _) = write::gpt(old, [3; 16], &[new(4096, 2048), new(64, 1024)]);
    before[..440].fill(7);
    let write::Enlarged { count, before: first, after: last } = write::enlarged(&before, blocks, 1).unwrap();
    assert_eq!(count, (blocks - write::AFTER - 4096) / 2048 * 2048);
    assert_eq!((&first[..440], first.len()), (&[7; 440][..], before.len()));
    let mut image = blank(blocks as usize, 512);
    image.bytes[..first.len()].copy_from_slice(&first);
    let end = image.bytes.len();
    image.bytes[end - last.len()..].copy_from_slice(&last);
    for damaged in [false, true] {
        image.bytes[512 + 60] ^= u8::from(damaged);
        let found = partitions(&image);
        let places: Vec<_> = found.iter().map(|it| (it.first, it.count)).collect();
        assert_eq!(places, [(4096, count), (64, 1024)]);
    }
    let refused = |before: &[u8], blocks, number| write::enlarged(before, blocks, number).is_none();
    assert!(refused(&before, blocks, 2), "the first is in the way");
    assert!(refused(&before, 5000, 1), "it would become smaller");
    assert!(refused(&before, 10, 1) && refused(&before, blocks, 0) && refused(&before, blocks, 129));
    assert!(refused(&before[..before.len() - 1], blocks, 1));
    before[1024] ^= 1;
    assert!(refused(&before, blocks, 1), "a wrong sum");
}

#[test]
fn a_guid_is_written_with_its_first_numbers_reversed() {
    let bytes = core::array::from_fn(|at| at as u8 * 0x11);
    assert_eq!(crate::guid_text(bytes), "33221100-5544-7766-8899-aabbccddeeff");
}

#[test]
fn a_table_that_was_made_is_read_by_either_header() {
    let blocks = 1000;
    let name = "a name of exactly 36 characters long";
    let new = |first, count, name| write::New { first, count, purpose: [1; 16], identity: [2; 16], name };
    let all = [new(write::BEFORE, 100, name), new(500, blocks - write::AFTER - 500, "é")];
    let (before, after) = write::gpt(blocks, [3; 16], &all);
    assert_eq!((before.len(), after.len()), (34 * 512, 33 * 512));
    let mut image = blank(blocks as usize, 512);
    image.bytes[..before.len()].copy_from_slice(&before);
    let end = image.bytes.len();
    image.bytes[end - after.len()..].copy_from_slice(&after);
    for damaged in [false, true] {
        if damaged {
            image.bytes[512 + 60] ^= 1;
        }
        let found = partitions(&image);
        assert_eq!(found.len(), 2);
        for ((found, number), new) in found.iter().zip(1..).zip(&all) {
            assert_eq!((found.number, found.first, found.count), (number, new.first, new.count));
            let name: Vec<u16> = new.name.encode_utf16().collect();
            assert_eq!(found.kind, Kind::Gpt { identity: [2; 16], name });
        }
    }
}
