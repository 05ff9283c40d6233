use super::*;
use crate::Bytes;
use crate::testing::{TestEnvironment, World, memory, now};
use crate::vfs::{At, Metadata, OpenFlags};
use proptest::prelude::*;

struct Fields {
    inode: u32,
    mode: u32,
    links: u32,
    device: (u32, u32),
}

fn entry(archive: &mut Vec<u8>, name: &str, f: Fields, data: &[u8]) {
    let numbers = [
        f.inode,
        f.mode,
        7,
        8,
        f.links,
        1234,
        data.len() as u32,
        0,
        0,
        f.device.0,
        f.device.1,
        name.len() as u32 + 1,
        0,
    ];
    archive.extend(b"070701");
    numbers.iter().for_each(|n| archive.extend(format!("{n:08x}").bytes()));
    archive.extend(name.bytes());
    archive.push(0);
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend(data);
    archive.resize(archive.len().next_multiple_of(4), 0);
}

fn simple(inode: u32, mode: u32) -> Fields {
    Fields { inode, mode, links: 1, device: (0, 0) }
}

fn sample() -> Vec<u8> {
    let mut a = Vec::new();
    entry(&mut a, ".", simple(1, 0o40711), b"");
    entry(&mut a, "bin", simple(2, 0o40755), b"");
    // Two names of one file: the data comes with the last name.
    entry(&mut a, "bin/sh", Fields { links: 2, ..simple(3, 0o104755) }, b"");
    entry(&mut a, "./bin/ls", Fields { links: 2, ..simple(3, 0o104755) }, b"busybox");
    entry(&mut a, "etc/motd", simple(4, 0o100644), b"hello\n");
    entry(&mut a, "sh", simple(5, 0o120777), b"bin/sh");
    entry(&mut a, "dev/null", Fields { device: (1, 3), ..simple(6, 0o020666) }, b"");
    entry(&mut a, "TRAILER!!!", simple(0, 0), b"");
    // A second archive, which follows after padding, replaces files and adds some.
    a.resize(a.len().next_multiple_of(512), 0);
    entry(&mut a, "etc/motd", simple(1, 0o100600), &[b'x'; 5000]);
    entry(&mut a, "TRAILER!!!", simple(0, 0), b"");
    a
}

fn unpacked(archive: Vec<u8>) -> (World, Result<(), UnpackError>) {
    let environment = TestEnvironment::new();
    let options = TmpfsOptions { mode: Mode::new(0o755), ..TmpfsOptions::for_memory(1000) };
    let (root, done) = now(unpack(Arc::new(archive), &options, memory(), environment.clone()));
    (World::on(root.unwrap(), environment), done)
}

fn stat(w: &World, path: &str) -> Metadata {
    now(w.caller().status(&At::Current, path.as_bytes(), false, false)).unwrap()
}

#[test]
fn an_archive_becomes_a_tree_of_files() {
    let (w, done) = unpacked(sample());
    assert_eq!(done, Ok(()));
    assert_eq!(w.cat("/sh"), Ok(b"busybox".to_vec()));
    assert_eq!(w.cat("/bin/ls"), Ok(b"busybox".to_vec()));
    let ls = stat(&w, "/bin/ls");
    assert_eq!((ls.links, ls.number, ls.mode.bits()), (2, stat(&w, "/bin/sh").number, 0o4755));
    assert_eq!((ls.user, ls.group, ls.modified.seconds), (7, 8, 1234));
    assert_eq!(w.cat("/etc/motd"), Ok(vec![b'x'; 5000]));
    assert_eq!(stat(&w, "/etc/motd").mode.bits(), 0o600);
    assert_eq!(stat(&w, "/").mode.bits(), 0o711);
    assert_eq!(stat(&w, "/dev/null").represents.minor, 3);
    assert_eq!(w.list("/etc"), Ok(vec!["motd".into()]));
}

#[test]
fn file_contents_are_not_copied_until_they_are_written() {
    let (w, _) = unpacked(sample());
    let used = |w: &World| {
        let s = now(w.caller().file_system_status(&w.vfs.tree.root())).unwrap();
        s.blocks - s.free_blocks
    };
    assert_eq!(used(&w), 0);
    w.cat("/etc/motd").unwrap();
    assert_eq!(used(&w), 0);
    let file = w.open("/etc/motd", OpenFlags::READ_WRITE).unwrap();
    w.write(&file, b"abc").unwrap();
    assert_eq!(used(&w), 0, "written or not");
    let mut expected = vec![b'x'; 5000];
    expected[..3].copy_from_slice(b"abc");
    assert_eq!(w.cat("/etc/motd"), Ok(expected));
    // A file that is cut and then grown has zeros in the new part, not the archive's bytes.
    now(file.truncate(&w.caller(), 4097)).unwrap();
    now(file.truncate(&w.caller(), 5000)).unwrap();
    assert_eq!(w.cat("/etc/motd").unwrap()[4090..], [vec![b'x'; 7], vec![0; 903]].concat());
    now(file.write_at(&w.caller(), 8192, &mut Bytes::of(b"more"))).unwrap();
    assert_eq!(used(&w), 1, "the file's third page is not the archive's");
}

#[test]
fn a_damaged_archive_is_reported_with_the_offset() {
    let reason = |archive: &[u8]| match unpacked(archive.to_vec()).1 {
        Err(UnpackError::Corrupt(corrupt)) => corrupt.reason,
        other => panic!("{other:?}"),
    };
    let good = sample();
    assert_eq!(reason(&[b'g'; 200]), "no newc header here");
    assert_eq!(reason(&good[..50]), "the header is cut off");
    assert_eq!(reason(&good[..111]), "the name is cut off");
    let mut bad = good.clone();
    bad[8] = b'z';
    assert_eq!(reason(&bad), "a header field is not a number");
    let one = |name: &str, mode, data: &[u8]| {
        let mut a = Vec::new();
        entry(&mut a, name, simple(1, mode), data);
        a
    };
    let file = one("f", 0o100644, b"12345678");
    assert_eq!(reason(&file[..file.len() - 4]), "the contents are cut off");
    assert_eq!(reason(&one("../f", 0o100644, b"")), "the name cannot be used");
    assert_eq!(reason(&one(&"n".repeat(256), 0o100644, b"")), "the name cannot be used");
    assert_eq!(reason(&one("f", 0o170000, b"")), "unknown file type");
    assert_eq!(reason(&one("l", 0o120777, b"")), "the link cannot be used");
    // The entries before the damage are unpacked.
    let mut cut = sample();
    let place = cut.len() - 5000;
    cut.truncate(place);
    let (w, done) = unpacked(cut);
    assert!(done.is_err());
    assert_eq!(w.cat("/bin/sh"), Ok(b"busybox".to_vec()));
    // The archive has a file where a directory is needed.
    let mut clash = one("f", 0o100644, b"");
    clash.extend(one("f/g", 0o100644, b""));
    assert_eq!(unpacked(clash).1, Err(UnpackError::Failed(Error::ENOTDIR)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Unpacking a damaged archive ends without a panic, and makes no files outside its tree.
    #[test]
    fn unpacking_a_damaged_archive_ends(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        hex in any::<bool>(),
    ) {
        let mut archive = sample();
        for (at, byte) in changes {
            let at = at.index(1200);
            archive[at] = if hex { b"0123456789abcdef"[byte as usize % 16] } else { byte };
        }
        archive.truncate(cut.index(archive.len()).max(600));
        let (w, _) = unpacked(archive);
        for name in w.list("/").unwrap() {
            let path = format!("/{name}");
            let found = now(w.caller().status(&At::Current, path.as_bytes(), false, false));
            if found.is_ok_and(|found| found.file_type == FileType::Regular) {
                w.cat(&path).unwrap();
            }
        }
    }
}
