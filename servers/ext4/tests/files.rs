//! Files, directories and attributes, on file systems made by Debian's mkfs.ext4; after each test
//! e2fsck finds nothing wrong.

#![allow(unreachable_pub, reason = "the common module is shared by test programs")]

mod common;

use common::*;
use ninep::{AttributeChange, Call, Mapped, SetTime, SpaceChange, Time};
use std::collections::BTreeSet;

const NOT_FOUND: u32 = 2;
const EXISTS: u32 = 17;
const NOT_A_DIRECTORY: u32 = 20;
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;
const TOO_LONG: u32 = 36;
const NOT_EMPTY: u32 = 39;
const NO_DATA: u32 = 61;

fn mounted(mebibytes: u64) -> Client {
    Client::mount(&mkfs(mebibytes, &["-b", "4096"]), false).unwrap()
}

fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed | 1);
    (0..length).map(|_| random.next() as u8).collect()
}

/// The blocks of an extent tree are blocks of the directory, too.
#[test]
fn a_directory_in_many_pieces_knows_how_many_blocks_it_has() {
    for block in ["1024", "4096"] {
        let mut client = Client::mount(&mkfs(32, &["-b", block]), false).unwrap();
        let (directory, _) = client.make(ROOT, "d", DIRECTORY).unwrap();
        for number in 0..1000 {
            let name = format!("{number:0>100}");
            let (file, _) = client.make(directory, &name, FILE).unwrap();
            // The data come after the directory's last block, so that its next one is elsewhere.
            client.write(file, 0, b"data").unwrap();
            client.forget(file).unwrap();
        }
        client.end();
    }
}

#[test]
fn what_is_written_is_there_after_the_next_mount() {
    let mut client = mounted(16);
    let (directory, made) =
        client.make_as(ROOT, "dir", 0o040_750, More { owner: (7, 8), ..More::default() }).unwrap();
    assert_eq!((made.mode, made.user, made.group, made.links), (0o040_750, 7, 8, 2));
    let (file, _) = client.make(directory, "file", FILE).unwrap();
    let data = bytes(300_000, 5);
    client.write(file, 0, &data).unwrap();
    assert_eq!(client.read_all(file).unwrap(), data);
    client.write(file, 1000, b"in the middle").unwrap();
    client.link(ROOT, file, "other").unwrap();
    let disk = client.disk.clone();
    client.end();
    let mut client = Client::mount(&disk, false).unwrap();
    let (other, attributes) = client.find(ROOT, "other").unwrap();
    assert_eq!((attributes.size, attributes.links), (300_000, 2));
    let mut expected = data;
    expected[1000..1013].copy_from_slice(b"in the middle");
    assert_eq!(client.read_all(other).unwrap(), expected);
    assert_eq!(errno(client.find(ROOT, "none")), NOT_FOUND);
    assert_eq!(errno(client.find(other, "none")), NOT_A_DIRECTORY);
    assert_eq!(errno(client.make(ROOT, "other", FILE)), EXISTS);
    assert_eq!(errno(client.make(ROOT, &"n".repeat(256), FILE)), TOO_LONG);
    client.make(ROOT, &"n".repeat(255), FILE).unwrap();
    client.end();
    let listing = debugfs(&disk, &["ls -l /dir", "stat /other"], false);
    assert!(listing.contains("file") && listing.contains("Links: 2"), "{listing}");
}

#[test]
fn nodes_of_every_type() {
    let mut client = mounted(16);
    let short = b"short/target";
    let long = bytes(3000, 9).iter().map(|byte| b'a' + byte % 26).collect::<Vec<u8>>();
    for (name, target) in [("fast", &short[..]), ("slow", &long)] {
        let (link, made) = client.make_as(ROOT, name, LINK, More { target, ..More::default() }).unwrap();
        assert_eq!((made.size, made.mode), (target.len() as u64, LINK));
        assert_eq!(client.read_link(link).unwrap(), target);
    }
    for (name, mode, device, number) in [
        ("tty", 0o020_620, (4, 64), 4 << 8 | 64),
        ("disk", 0o060_660, (259, 300), 0x0001_0000_u64 << 4 | 259 << 8 | 44),
        ("fifo", 0o010_600, (0, 0), 0),
        ("socket", 0o140_777, (0, 0), 0),
    ] {
        let more = More { device, ..More::default() };
        let (_, made) = client.make_as(ROOT, name, mode, more).unwrap();
        assert_eq!((made.mode, made.device), (mode, number), "{name}");
    }
    assert_eq!(errno(client.make(ROOT, "nothing", 0o644)), INVALID);
    let types: Vec<u8> = client.list(ROOT, 4096).unwrap().into_iter().map(|(_, _, kind)| kind).collect();
    for kind in [1, 2, 4, 6, 10, 12] {
        assert!(types.contains(&kind), "{types:?}");
    }
    client.end();
}

#[test]
fn names_change_and_go() {
    let mut client = mounted(16);
    let (one, _) = client.make(ROOT, "one", DIRECTORY).unwrap();
    let (two, _) = client.make(ROOT, "two", DIRECTORY).unwrap();
    let (file, _) = client.make(one, "file", FILE).unwrap();
    client.write(file, 0, b"contents").unwrap();
    client.rename((one, "file"), (two, "moved"), false).unwrap();
    assert_eq!(errno(client.find(one, "file")), NOT_FOUND);
    let (other, _) = client.make(one, "other", FILE).unwrap();
    client.write(other, 0, b"of another").unwrap();
    client.rename((two, "moved"), (one, "other"), true).unwrap();
    let (exchanged, _) = client.find(one, "other").unwrap();
    assert_eq!(client.read_all(exchanged).unwrap(), b"contents");
    // The file that is replaced lives on as long as its numbers.
    client.rename((one, "other"), (two, "moved"), false).unwrap();
    assert_eq!(client.read_all(other).unwrap(), b"of another");
    assert_eq!(client.attributes(other).unwrap().links, 0);
    assert_ne!(client.link(ROOT, other, "again"), Ok(()), "it has lost its last name");
    client.rename((ROOT, "one"), (two, "below"), false).unwrap();
    assert_ne!(client.rename((ROOT, "two"), (one, "loop"), false), Ok(()), "a directory in itself");
    assert_eq!(errno(client.unlink(ROOT, "two", true)), NOT_EMPTY);
    assert_eq!(errno(client.unlink(two, "moved", true)), NOT_A_DIRECTORY);
    client.unlink(two, "below", true).unwrap();
    client.unlink(two, "moved", false).unwrap();
    client.unlink(ROOT, "two", true).unwrap();
    client.end();
}

#[test]
fn a_file_without_names_is_freed_with_its_last_number_or_at_the_next_mount() {
    let mut client = mounted(16);
    let free = client.status().blocks[1];
    let (file, _) = client.make(ROOT, "file", FILE).unwrap();
    client.write(file, 0, &bytes(1 << 20, 3)).unwrap();
    let (again, _) = client.find(ROOT, "file").unwrap();
    client.unlink(ROOT, "file", false).unwrap();
    assert!(client.status().blocks[1] <= free - 256);
    client.forget(file).unwrap();
    assert_eq!(client.read(again, 0, 16).unwrap().len(), 16);
    client.forget(again).unwrap();
    assert_eq!(client.status().blocks[1], free);
    // The machine stops while a file without names is open.
    let (file, _) = client.make(ROOT, "file", FILE).unwrap();
    client.write(file, 0, &bytes(1 << 20, 3)).unwrap();
    client.unlink(ROOT, "file", false).unwrap();
    client.sync().unwrap();
    let mut client = Client::mount(&client.disk.clone(), false).unwrap();
    assert_eq!(client.status().blocks[1], free);
    client.end();
}

#[test]
fn times_have_nanoseconds_and_attributes_last() {
    let mut client = mounted(16);
    let (file, made) = client.make(ROOT, "file", FILE).unwrap();
    assert!(made.modified.seconds >= BEGIN / 1_000_000_000 && made.modified.nanoseconds != 0);
    let change = AttributeChange {
        mode: Some(0o4711),
        user: Some(70_000),
        group: Some(80_000),
        accessed: Some(SetTime::To(3_000_000_000, 999_999_999)),
        modified: Some(SetTime::To(-5_i64 as u64, 1)),
        ..Default::default()
    };
    client.change(file, change).unwrap();
    client.write(file, 0, b"x").unwrap();
    client
        .change(file, AttributeChange { modified: change.modified, mode: change.mode, ..Default::default() })
        .unwrap();
    let disk = client.disk.clone();
    client.end();
    let mut client = Client::mount(&disk, false).unwrap();
    let (_, found) = client.find(ROOT, "file").unwrap();
    assert_eq!((found.mode, found.user, found.group), (0o104_711, 70_000, 80_000));
    assert_eq!(found.accessed, Time { seconds: 3_000_000_000, nanoseconds: 999_999_999 });
    assert_eq!(found.modified, Time { seconds: -5_i64 as u64, nanoseconds: 1 });
    client.end();
}

#[test]
fn sizes_holes_and_space() {
    let mut client = mounted(32);
    let (file, _) = client.make(ROOT, "sparse", FILE).unwrap();
    client.write(file, 5 << 30, b"far away").unwrap();
    let attributes = client.attributes(file).unwrap();
    assert_eq!(attributes.size, (5 << 30) + 8);
    assert!(attributes.blocks <= 16, "{}", attributes.blocks);
    assert_eq!(client.read(file, 1 << 30, 100).unwrap(), [0; 100]);
    assert_eq!(client.map(file, 0, 4096), Ok(Mapped::Hole { length: 4096 }));
    assert!(matches!(client.map(file, 5 << 30, 4096), Ok(Mapped::Data { .. })));
    client.truncate(file, 10_000).unwrap();
    assert_eq!(client.read_all(file).unwrap(), vec![0; 10_000]);
    client.write(file, 0, &[7; 10_000]).unwrap();
    client.truncate(file, 5000).unwrap();
    client.truncate(file, 9000).unwrap();
    let expected = [vec![7; 5000], vec![0; 4000]].concat();
    assert_eq!(client.read_all(file).unwrap(), expected, "what was cut off is zero");
    client.allocate(file, 1 << 20, 1 << 20, SpaceChange::Keep).unwrap();
    assert_eq!(client.attributes(file).unwrap().size, 9000);
    client.allocate(file, 1 << 20, 1 << 20, SpaceChange::Grow).unwrap();
    assert_eq!(client.attributes(file).unwrap().size, 2 << 20);
    assert!(matches!(client.map(file, 1 << 20, 1 << 20), Ok(Mapped::Unwritten { .. })));
    client.write(file, (1 << 20) + 4096, &[3; 4096]).unwrap();
    assert_eq!(client.read(file, 1 << 20, 4096).unwrap(), [0; 4096]);
    assert_eq!(client.read(file, (1 << 20) + 4096, 4096).unwrap(), [3; 4096]);
    client.allocate(file, 0, 4096, SpaceChange::Punch).unwrap();
    assert_eq!(client.read(file, 4090, 20).unwrap(), [&[0; 6][..], &[7; 14]].concat());
    let before = client.status().blocks[1];
    client.truncate(file, 0).unwrap();
    assert!(client.status().blocks[1] >= before + 256);
    client.end();
}

#[test]
fn a_full_file_system_says_so_and_stays_whole() {
    let mut client = mounted(8);
    let (file, _) = client.make(ROOT, "big", FILE).unwrap();
    let part = bytes(64 << 10, 1);
    let mut offset = 0;
    let full = loop {
        match client.write(file, offset, &part) {
            Ok(()) => offset += part.len() as u64,
            failed => break errno(failed),
        }
    };
    assert_eq!(full, NO_SPACE);
    assert!(offset > 1 << 20);
    for (at, part) in (0..offset).step_by(part.len()).map(|at| (at, &part)) {
        assert_eq!(&client.read(file, at, part.len()).unwrap(), part);
    }
    client.unlink(ROOT, "big", false).unwrap();
    client.forget(file).unwrap();
    let (file, _) = client.make(ROOT, "small", FILE).unwrap();
    client.write(file, 0, &part).unwrap();
    client.end();
}

#[test]
fn extended_attributes() {
    let mut client = mounted(16);
    let (file, _) = client.make(ROOT, "file", FILE).unwrap();
    assert_eq!(errno(client.xattr(file, "user.none")), NO_DATA);
    client.set_xattr(file, "user.small", Some(b"value"), 0).unwrap();
    client.set_xattr(file, "user.empty", Some(b""), 0).unwrap();
    let large = bytes(3000, 4);
    client.set_xattr(file, "security.large", Some(&large), 1).unwrap();
    let acl = [
        2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255,
        255, 255,
    ];
    let _ = client.set_xattr(file, "system.posix_acl_access", Some(&acl), 0);
    assert_eq!(errno(client.set_xattr(file, "user.small", Some(b"x"), 1)), EXISTS);
    assert_eq!(errno(client.set_xattr(file, "user.none", Some(b"x"), 2)), NO_DATA);
    assert_eq!(errno(client.set_xattr(file, "user.", Some(b"x"), 0)), INVALID);
    client.set_xattr(file, "user.small", Some(b"another value"), 2).unwrap();
    let disk = client.disk.clone();
    client.end();
    let mut client = Client::mount(&disk, false).unwrap();
    let (file, _) = client.find(ROOT, "file").unwrap();
    assert_eq!(client.xattr(file, "user.small").unwrap(), b"another value");
    assert_eq!(client.xattr(file, "user.empty").unwrap(), b"");
    assert_eq!(client.xattr(file, "security.large").unwrap(), large);
    let names = String::from_utf8(client.xattr(file, "").unwrap()).unwrap();
    assert!(names.contains("user.small\0") && names.contains("security.large\0"), "{names}");
    client.set_xattr(file, "user.small", None, 0).unwrap();
    assert_eq!(errno(client.xattr(file, "user.small")), NO_DATA);
    assert_eq!(errno(client.set_xattr(file, "user.small", None, 0)), NO_DATA);
    client.end();
}

/// A directory of ten thousand names gets an index, is listed in parts of any size, and shrinks.
#[test]
fn a_directory_of_ten_thousand_names() {
    // Blocks of 1 KiB: inodes come from groups that have never been used.
    let mut client = Client::mount(&mkfs(64, &["-b", "1024"]), false).unwrap();
    let (directory, _) = client.make(ROOT, "many", DIRECTORY).unwrap();
    let names: BTreeSet<String> =
        (0..10_000).map(|number| format!("name-{number}-{:x}", number * 7919)).collect();
    for name in &names {
        let (file, _) = client.make(directory, name, FILE).unwrap();
        client.forget(file).unwrap();
    }
    for part in [512, 65536] {
        let listed = client.list(directory, part).unwrap();
        let found: BTreeSet<String> = listed.iter().map(|(name, _, _)| name.clone()).collect();
        assert_eq!((listed.len(), found.len()), (10_002, 10_002), "none is missing or there twice");
        assert!(found.is_superset(&names));
    }
    for name in names.iter().step_by(97) {
        let (file, _) = client.find(directory, name).unwrap();
        client.forget(file).unwrap();
    }
    for name in names.iter().filter(|name| !name.ends_with('0')) {
        client.unlink(directory, name, false).unwrap();
    }
    let left = client.list(directory, 4096).unwrap().len() - 2;
    assert_eq!(left, names.iter().filter(|name| name.ends_with('0')).count());
    let disk = client.disk.clone();
    client.end();
    let shown = debugfs(&disk, &["htree_dump /many"], false);
    assert!(shown.contains("Root node dump"), "{shown}");
}

/// A file system that debugfs has written, with blocks of every size.
#[test]
fn files_of_other_writers() {
    for block in ["1024", "2048", "4096"] {
        let disk = mkfs(16, &["-b", block]);
        let scratch = Scratch::new();
        let data = bytes(700_000, 11);
        std::fs::write(&scratch.0, &data).unwrap();
        debugfs(&disk, &[&format!("write {} copied", scratch.0.display()), "mkdir d"], true);
        let mut client = Client::mount(&disk, false).unwrap();
        let (file, _) = client.find(ROOT, "copied").unwrap();
        assert_eq!(client.read_all(file).unwrap(), data);
        client.write(file, 100, b"changed").unwrap();
        client.rename((ROOT, "copied"), (ROOT, "renamed"), false).unwrap();
        client.end();
    }
}

#[test]
fn bad_requests_are_refused() {
    let mut client = mounted(8);
    let (file, _) = client.make(ROOT, "file", FILE).unwrap();
    assert_eq!(errno(client.read(77, 0, 1)), 9);
    assert_eq!(errno(client.map(file, 0, 0)), INVALID);
    assert_eq!(errno(client.make(ROOT, "a/b", FILE)), INVALID);
    assert_eq!(errno(client.make(ROOT, "..", FILE)), INVALID);
    assert_eq!(errno(client.truncate(ROOT, 5)), INVALID);
    assert_ne!(client.write(ROOT, 0, b"x"), Ok(()), "a directory's data");
    assert_ne!(client.write(file, u64::MAX - 1, b"xyz"), Ok(()));
    assert_ne!(client.truncate(file, u64::MAX), Ok(()));
    let nonsense = ninep::Writer::new(NONSENSE, 3).finish();
    let mut random = Random(77);
    for _ in 0..20_000 {
        let mut message = nonsense.clone();
        message[4] = random.next() as u8;
        message.extend((0..random.below(60)).map(|_| random.next() as u8 & 3));
        let size = message.len() as u32;
        message[..4].copy_from_slice(&size.to_le_bytes());
        // Each message gets a reply. A mount or an unmount among them is one that is meant.
        if ![ninep::kind::VERSION, ninep::kind::UNMOUNT].contains(&message[4]) {
            assert!(client.server.answer(&message).len() >= ninep::HEADER);
        }
    }
    client.end();
}

/// A range gets a place, reads as zeros until it was written there, and is data then. The size
/// changes only then.
#[test]
fn a_range_has_a_place_before_it_has_data() {
    let disk = mkfs(16, &["-b", "4096"]);
    let mut client = Client::mount(&disk, false).unwrap();
    let (file, _) = client.make(ROOT, "f", FILE).unwrap();
    client.write(file, 0, &[1; 4096]).unwrap();
    let place = |client: &mut Client, offset, length| {
        client.call(&Call::Place { fid: file, offset, length }, |body| body.mapped())
    };
    assert!(matches!(place(&mut client, 0, 4096), Ok(Mapped::Data { length: 4096, .. })));
    let Ok(Mapped::Unwritten { length: 0x4000, place: found }) = place(&mut client, 8192, 0x4000) else {
        panic!("four blocks without data");
    };
    assert_eq!(client.attributes(file).unwrap().size, 4096);
    disk.0.lock().unwrap().data[found as usize..][..0x4000].fill(7);
    client.truncate(file, 30_000).unwrap();
    assert_eq!(client.read(file, 4096, 30_000).unwrap(), vec![0; 25_904]);
    // The two blocks in the middle are written.
    let written = |client: &mut Client, offset, length, size| {
        client.perform(&Call::Written { fid: file, offset, length, size })
    };
    written(&mut client, 12_288, 8192, 0).unwrap();
    let expected = [vec![0; 8192], vec![7; 8192], vec![0; 9520]].concat();
    assert!(client.read(file, 4096, 30_000).unwrap() == expected);
    assert!(matches!(client.map(file, 12_288, 30_000), Ok(Mapped::Data { length: 8192, .. })));
    // Those that have no space, or a size after them, are refused.
    assert_eq!(errno(written(&mut client, 4096, 4096, 0)), 22);
    assert_eq!(errno(written(&mut client, 1 << 20, 4096, 0)), 22);
    assert_eq!(errno(written(&mut client, 12_288, 4096, 40_000)), 22);
    assert_eq!(errno(written(&mut client, 12_288, 100, 0)), 22);
    assert_eq!(errno(place(&mut client, 0, 0)), 22);
    assert_eq!(errno(place(&mut client, 0, 1 << 40)), 28);
    assert_eq!(
        errno(client.call(&Call::Place { fid: ROOT, offset: 0, length: 1 }, |body| body.mapped())),
        22
    );
    client.end();
}
