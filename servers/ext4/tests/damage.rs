//! File systems that are damaged or of another kind: errors, and nothing worse.

#![allow(unreachable_pub, reason = "the common module is shared by test programs")]

mod common;

use common::*;

/// Reads everything that there is, and tries to change it.
fn use_everything(client: &mut Client, directory: u32, depth: usize) {
    let names = client.list(directory, 4096).unwrap_or_default();
    for (name, _, _) in names.into_iter().filter(|(name, _, _)| !name.starts_with('.')).take(50) {
        let Ok((file, attributes)) = client.find(directory, &name) else { continue };
        let _ = client.read(file, 0, attributes.size.min(100_000) as usize);
        let _ = client.map(file, 0, 1 << 20);
        let _ = client.read_link(file);
        let _ = client.xattr(file, "");
        let _ = client.write(file, 5000, &[1; 5000]);
        let _ = client.truncate(file, 700);
        let _ = client.set_xattr(file, "user.more", Some(&[5; 300]), 0);
        if depth > 0 {
            use_everything(client, file, depth - 1);
        }
        let _ = client.rename((directory, &name), (directory, "renamed"), false);
        let _ = client.unlink(directory, "renamed", false);
        let _ = client.forget(file);
    }
    let _ = client.make(directory, "new", FILE);
    let _ = client.make(directory, "new directory", DIRECTORY);
}

fn populated() -> Disk {
    let disk = mkfs(8, &["-b", "1024"]);
    let mut client = Client::mount(&disk, false).unwrap();
    let (directory, _) = client.make(ROOT, "directory", DIRECTORY).unwrap();
    for number in 0..120 {
        let (file, _) = client.make(directory, &format!("file number {number}"), FILE).unwrap();
        client.write(file, number * 10_000, &[number as u8; 3000]).unwrap();
        if number % 10 == 0 {
            client.set_xattr(file, "user.name", Some(&[7; 500]), 0).unwrap();
        }
    }
    let target = &[b'x'; 200][..];
    client.make_as(ROOT, "link", LINK, More { target, ..More::default() }).unwrap();
    // Neither unmounted nor synchronized at the end: there is a journal to be replayed.
    client.sync().unwrap();
    for number in 0..20 {
        client.unlink(directory, &format!("file number {number}"), false).unwrap();
    }
    client.sync().unwrap();
    disk
}

/// `EXT4_DAMAGED` says how many images are tried.
#[test]
fn damaged_file_systems_give_errors() {
    let images: u64 = campaign("EXT4_DAMAGED", 300);
    let whole = populated().data();
    let used: Vec<usize> = (0..whole.len() / 1024)
        .filter(|block| whole[block * 1024..][..1024].iter().any(|&byte| byte != 0))
        .collect();
    for seed in 1..=images {
        let mut random = Random(seed * 7919);
        let mut data = whole.clone();
        for _ in 0..1 + random.below(6) {
            let block = used[random.below(used.len() as u64) as usize] * 1024;
            let at = block + random.below(1024) as usize;
            match random.below(4) {
                0 => data[at] ^= 1 << random.below(8),
                1 => data[at] = random.next() as u8,
                2 => data[block..block + 512].fill(0),
                _ => {
                    let other = used[random.below(used.len() as u64) as usize] * 1024;
                    data.copy_within(other..other + 1024, block);
                }
            }
        }
        let disk = Disk::of(data);
        let tried = std::panic::catch_unwind(|| {
            let Ok(mut client) = Client::mount(&disk, false) else { return };
            use_everything(&mut client, ROOT, 2);
            let _ = client.sync();
            let _ = client.unmount();
        });
        assert!(tried.is_ok(), "image {seed} ended the server");
    }
}

/// The target of a symbolic link is at most a block long, whatever its size says.
#[test]
fn a_link_of_impossible_size_is_an_error() {
    for target in [20, 200] {
        let disk = populated_with_link(target);
        for size in ["4097", "549755814088", "18446744073709551615"] {
            debugfs(&disk, &[&format!("set_inode_field /link size {size}")], true);
            let mut client = Client::mount(&disk, false).unwrap();
            let (link, _) = client.find(ROOT, "link").unwrap();
            assert!(client.read_link(link).is_err(), "{target}, {size}");
            assert!(client.read(link, 0, 100).is_err(), "{target}, {size}");
            client.unmount().unwrap();
        }
    }
}

fn populated_with_link(length: usize) -> Disk {
    let disk = mkfs(8, &["-b", "4096"]);
    let mut client = Client::mount(&disk, false).unwrap();
    let target = &vec![b'x'; length][..];
    client.make_as(ROOT, "link", LINK, More { target, ..More::default() }).unwrap();
    client.unmount().unwrap();
    disk
}

#[test]
fn what_is_no_such_file_system_is_refused_with_a_reason() {
    let refused = |disk: &Disk, read_only: bool| match Client::mount(disk, read_only) {
        Err(refused) => refused,
        Ok(_) => panic!("it is mounted"),
    };
    let (number, why) = refused(&Disk::of(vec![0; 1 << 20]), false);
    assert_eq!((number, why.as_str()), (22, "it is no ext4 file system"));
    let (number, _) = refused(&Disk::of(vec![0; 512]), false);
    assert!([5, 22].contains(&number));
    for (feature, name) in
        [("inline_data", "inline_data"), ("encrypt", "encrypt"), ("meta_bg,^resize_inode", "meta_bg")]
    {
        let (number, why) = refused(&mkfs(16, &["-O", feature]), true);
        assert_eq!((number, why), (22, format!("it has features that are not supported: {name}")));
    }
    let quota = mkfs(16, &["-O", "quota"]);
    let (_, why) = refused(&quota, false);
    assert_eq!(why, "features allow only a mount that is read-only: quota");
    assert!(Client::mount(&quota, true).is_ok());
    assert_eq!(refused(&mkfs(16, &["-O", "bigalloc"]), true).0, 22);
    let mut cut = mkfs(16, &[]).data();
    cut.truncate(8 << 20);
    let (number, why) = refused(&Disk::of(cut), false);
    assert_eq!(number, 22, "{why}");
    let mut torn = mkfs(16, &[]).data();
    torn[1024 + 0x78] ^= 1;
    assert_eq!(refused(&Disk::of(torn), false), (5, "a checksum is wrong: use e2fsck".into()));
}

#[test]
fn a_mount_that_is_read_only_writes_nothing() {
    let disk = mkfs(16, &[]);
    let mut client = Client::mount(&disk, false).unwrap();
    let (file, _) = client.make(ROOT, "file", FILE).unwrap();
    client.write(file, 0, b"data").unwrap();
    client.unmount().unwrap();
    let before = disk.data();
    disk.0.lock().unwrap().read_only = true;
    disk.0.lock().unwrap().writes_left = Some(0);
    let mut client = Client::mount(&disk, false).unwrap();
    let (file, _) = client.find(ROOT, "file").unwrap();
    assert_eq!(client.read_all(file).unwrap(), b"data");
    assert_eq!(errno(client.write(file, 0, b"x")), 30);
    assert_eq!(errno(client.make(ROOT, "other", FILE)), 30);
    assert_eq!(errno(client.unlink(ROOT, "file", false)), 30);
    client.unmount().unwrap();
    assert!(disk.data() == before);
}

/// A disk that refuses writes from some time on: an error for each request that needs one, and
/// afterwards the file system is whole as far as it was brought to the disk.
#[test]
fn a_disk_that_refuses_writes() {
    for writes in [0, 1, 3, 10, 40, 100, 250] {
        let disk = mkfs(16, &["-b", "4096"]);
        let mut client = Client::mount(&disk, false).unwrap();
        let (stored, _) = client.make(ROOT, "stored", FILE).unwrap();
        client.write(stored, 0, &[5; 10_000]).unwrap();
        client.sync().unwrap();
        disk.0.lock().unwrap().writes_left = Some(writes);
        let mut failed = false;
        for number in 0..60 {
            let made = client.make(ROOT, &format!("file{number}"), FILE);
            failed |= made.is_err();
            let Ok((file, _)) = made else { continue };
            failed |= client.write(file, 0, &[number; 20_000]).is_err();
            failed |= client.sync().is_err();
        }
        assert!(failed, "after {writes} writes");
        let _ = client.unmount();
        disk.0.lock().unwrap().writes_left = None;
        let mut client = Client::mount(&disk, false).unwrap();
        let (stored, _) = client.find(ROOT, "stored").unwrap();
        assert_eq!(client.read_all(stored).unwrap(), [5; 10_000]);
        client.end();
    }
}
