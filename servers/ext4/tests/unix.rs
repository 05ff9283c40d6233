//! The Unix library's file system over the file server, on a disk in memory.

#![allow(unreachable_pub, reason = "the common module is shared by test programs")]

mod common;
mod world;

use common::{Client, Disk, Event, FILE, ROOT, Random, SECTOR, campaign, cut, fsck, mkfs};
use ninep::kind;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;
use unix::ext4::Ext4Type;
use unix::file::OpenFile;
use unix::privilege::PrivilegeAttribute;
use unix::testing::{TestEnvironment, World, now};
use unix::vfs::{
    AccessList, At, AttributeCondition, Entry, FileMemory, FileSystemType, ListKind, Mode, MountFlags,
    OpenFlags, RenameHow, Tag,
};
use unix::{BoxFuture, Bytes, CopyError, Error, Part, Result, UserBuffer};
use world::{OneServer, READ_WRITE, device, end, frames, mount, mount_counted, mount_on};

#[test]
fn files_last() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at / 7) as u8).collect();
    w.mkdir("/d");
    w.put("/d/f", &content);
    w.symlink("d/f", "/link");
    assert!(w.cat("/link").unwrap() == content);
    let here = At::Current;
    now(w.caller().link(&here, b"/d/f", false, false, &here, b"/other")).unwrap();
    let mut names = w.list("/").unwrap();
    names.sort();
    assert_eq!(names, ["d", "link", "lost+found", "other"]);
    end(w, &disk);
    let w = mount(&disk, false).unwrap();
    assert!(w.cat("/other").unwrap() == content);
    let file = w.open("/d/f", READ_WRITE).unwrap();
    assert_eq!((file.metadata().links, file.metadata().size), (2, 300_000));
    now(file.truncate(&w.caller(), 100_000)).unwrap();
    now(file.truncate(&w.caller(), 200_000)).unwrap();
    let append = w.open("/d/f", OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
    assert_eq!(w.write(&append, b"the end"), Ok(7));
    drop((file, append));
    let expected = [&content[..100_000], &[0; 100_000], b"the end"].concat();
    assert!(w.cat("/other").unwrap() == expected);
    end(w, &disk);
    let w = mount(&disk, true).unwrap();
    assert!(w.cat("/other").unwrap() == expected);
    end(w, &disk);
}

#[test]
fn extents_are_where_the_data_are() {
    for block in ["1024", "4096"] {
        let disk = mkfs(16, &["-b", block]);
        let w = mount(&disk, false).unwrap();
        let pattern: Vec<u8> = (0..100_000_u32).map(|at| ((at / 7) | 1) as u8).collect();
        w.put("/f", &pattern);
        let file = w.open("/f", READ_WRITE).unwrap();
        now(file.allocate(&w.caller(), 204_800, 20_480, false, false)).unwrap();
        now(file.truncate(&w.caller(), 400_000)).unwrap();
        let append = w.open("/f", OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
        assert_eq!(w.write(&append, b"the end"), Ok(7));
        let (device, extents) = now(file.location().unwrap().vnode.extents()).unwrap();
        assert!(device.partition.is_none());
        let content = w.cat("/f").unwrap();
        let mut found = vec![0; content.len().next_multiple_of(4096)];
        let mut end = 0;
        for extent in &extents {
            assert!(extent.offset >= end && extent.length > 0, "{extents:?}");
            end = extent.offset + extent.length;
            let place = extent.place as usize..(extent.place + extent.length) as usize;
            if !extent.is_unwritten {
                found[extent.offset as usize..end as usize]
                    .copy_from_slice(&disk.0.lock().unwrap().data[place]);
            }
        }
        assert!(found[..content.len()] == content);
        assert!(extents.iter().any(|it| it.is_unwritten && it.offset <= 204_800), "{extents:?}");
        let block: u64 = block.parse().unwrap();
        assert_eq!(end, 400_007_u64.next_multiple_of(block), "the last block as a whole");
        let directory = now(w.caller().find(&At::Current, b"/", true)).unwrap().location.vnode;
        assert_eq!(now(directory.extents()).err(), Some(Error::EOPNOTSUPP));
        drop((file, append, directory));
        self::end(w, &disk);
    }
}

#[test]
fn a_file_without_a_name_is_freed_when_it_is_closed() {
    let disk = mkfs(16, &[]);
    let w = mount(&disk, false).unwrap();
    let root = now(w.caller().find(&At::Current, b"/", true)).unwrap().location.vnode.file_system();
    let free_files = || now(root.load_status()).unwrap().free_files;
    let make = |path: &str| {
        w.put(path, &[7; 5000]);
        w.open(path, READ_WRITE).unwrap()
    };
    let before = free_files();
    for _ in 0..3 {
        drop(make("/closed"));
        now(w.caller().unlink(&At::Current, b"/closed")).unwrap();
        assert_eq!(free_files(), before, "although nothing was stored meanwhile");
    }
    // While it is open, it is stored like others.
    let open = make("/open");
    now(w.caller().unlink(&At::Current, b"/open")).unwrap();
    assert_eq!(w.write(&open, &[8; 100]), Ok(100));
    now(root.synchronize()).unwrap();
    assert_eq!(free_files(), before - 1);
    assert_eq!(w.read(&open, 6000).unwrap(), [7; 4900]);
    drop(open);
    assert_eq!(free_files(), before);
    drop(root);
    end(w, &disk);
}

#[test]
fn a_new_file_has_no_attributes_of_the_one_that_had_its_number() {
    let disk = mkfs(16, &["-b", "4096"]);
    let mut w = mount(&disk, false).unwrap();
    let find = |w: &World| now(w.caller().find(&At::Current, b"/f", true)).unwrap().location.vnode;
    w.put("/f", b"");
    let old = find(&w);
    now(old.set_attribute(b"user.a", Some(b"1"), AttributeCondition::Any)).unwrap();
    let number = old.number();
    drop(old);
    now(w.caller().unlink(&At::Current, b"/f")).unwrap();
    w.put("/f", b"");
    assert_eq!(find(&w).number(), number);
    end(w, &disk);
    w = mount(&disk, false).unwrap();
    assert_eq!(now(find(&w).attribute(b"user.a")), Err(Error::ENODATA));
    end(w, &disk);
}

#[test]
fn names_are_exchanged_replaced_and_forgotten() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let (caller, here) = (w.caller(), At::Current);
    w.mkdir("/a");
    w.mkdir("/a/b");
    w.put("/f", b"1");
    w.put("/a/g", b"2");
    now(caller.rename(&here, b"/f", &here, b"/a/g", RenameHow::Exchange)).unwrap();
    assert_eq!((w.cat("/f").unwrap(), w.cat("/a/g").unwrap()), (b"2".to_vec(), b"1".to_vec()));
    let open = w.open("/a/g", OpenFlags::READ).unwrap();
    now(caller.rename(&here, b"/f", &here, b"/a/g", RenameHow::Replace)).unwrap();
    assert_eq!(w.read(&open, 10).unwrap(), b"1");
    assert_eq!(open.metadata().links, 0);
    assert_eq!(w.cat("/f"), Err(Error::ENOENT));
    let into_itself = now(caller.rename(&here, b"/a", &here, b"/a/b/c", RenameHow::Replace));
    assert_eq!(into_itself, Err(Error::EINVAL));
    assert_eq!(now(caller.remove_directory(&here, b"/a")), Err(Error::ENOTEMPTY));
    now(caller.remove_directory(&here, b"/a/b")).unwrap();
    now(caller.unlink(&here, b"/a/g")).unwrap();
    now(caller.remove_directory(&here, b"/a")).unwrap();
    assert_eq!(w.list("/").unwrap(), ["lost+found"]);
    drop(open);
    end(w, &disk);
}

fn read_memory(memory: &Arc<dyn FileMemory>, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = Bytes::empty(length);
    let mut at = offset;
    while bytes.remaining() > 0 {
        match now(memory.read(at, bytes.remaining(), &mut bytes)).unwrap() {
            0 => break,
            count => at += count as u64,
        }
    }
    bytes.done().to_vec()
}

#[test]
fn mappings_and_reads_show_the_same_pages() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    w.put("/f", &[5; 10_000]);
    let file = w.open("/f", READ_WRITE).unwrap();
    let memory = file.memory(true).unwrap();
    assert_eq!(read_memory(&memory, 8000, 100), [5; 100]);
    now(memory.write(100, 3, &mut Bytes::of(b"abc"))).unwrap();
    assert_eq!(&w.cat("/f").unwrap()[99..104], b"\x05abc\x05");
    now(file.synchronize()).unwrap();
    // The machine stops: what was synchronized is there.
    let w2 = mount(&Disk::of(disk.data()), false).unwrap();
    assert_eq!(&w2.cat("/f").unwrap()[99..104], b"\x05abc\x05");
    drop((file, memory));
    end(w, &disk);
}

/// Data that are in memory only have the space that they will get.
#[test]
fn space_is_counted_before_it_is_given() {
    const PAGE: u64 = 4096;
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let dirty = || w.vfs.unwritten_pages().dirty;
    let blocks = |file: &OpenFile| file.metadata().blocks;
    let write = |file: &OpenFile, page: u64, pages: u64| {
        let bytes = vec![7; (pages * PAGE) as usize];
        assert_eq!(now(file.write_at(&w.caller(), page * PAGE, &mut Bytes::of(&bytes))), Ok(bytes.len()));
    };
    let settles = |file: &OpenFile, expected: u64| {
        assert_eq!(blocks(file), expected);
        now(file.synchronize()).unwrap();
        assert_eq!((blocks(file), dirty()), (expected, 0));
    };
    w.put("/f", &[]);
    let file = w.open("/f", READ_WRITE).unwrap();
    assert_eq!((blocks(&file), dirty()), (0, 0));
    write(&file, 0, 3);
    assert_eq!(dirty(), 3);
    settles(&file, 24);
    // The space is there.
    write(&file, 1, 2);
    assert_eq!(dirty(), 2);
    settles(&file, 24);
    write(&file, 2, 3);
    settles(&file, 40);
    // A hole at the end, in which something is written.
    now(file.truncate(&w.caller(), 100 * PAGE)).unwrap();
    settles(&file, 40);
    write(&file, 50, 2);
    assert_eq!(dirty(), 2);
    settles(&file, 56);
    // Space without data.
    w.put("/g", &[]);
    let other = w.open("/g", READ_WRITE).unwrap();
    now(other.allocate(&w.caller(), 20 * PAGE, 10 * PAGE, false, false)).unwrap();
    settles(&other, 80);
    write(&other, 23, 4);
    assert_eq!(dirty(), 4);
    settles(&other, 80);
    drop((file, other));
    end(w, &disk);
}

#[test]
fn attributes_times_and_space() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    w.put("/f", b"content");
    let place = now(w.caller().find(&At::Current, b"/f", true)).unwrap().location;
    let set = |name: &[u8], value, condition| now(place.vnode.set_attribute(name, value, condition));
    set(b"user.x", Some(&b""[..]), AttributeCondition::Create).unwrap();
    assert_eq!(set(b"user.x", Some(&b"v"[..]), AttributeCondition::Create), Err(Error::EEXIST));
    set(b"user.x", Some(&b"v"[..]), AttributeCondition::Any).unwrap();
    assert_eq!(now(place.vnode.attributes()).unwrap(), b"user.x\0");
    let time = unix::Timestamp { seconds: 1_234_567, nanoseconds: 89 };
    let change =
        unix::vfs::AttributeChange { modified: Some(unix::vfs::SetTime::To(time)), ..Default::default() };
    now(place.vnode.change(change)).unwrap();
    let file = w.open("/f", READ_WRITE).unwrap();
    now(place.vnode.allocate(1 << 20, 4096, false, false)).unwrap();
    assert_eq!(file.metadata().size, (1 << 20) + 4096);
    assert_eq!(now(place.vnode.seek_data(0, true)), Ok(4096));
    assert_eq!(now(place.vnode.seek_data(4096, false)), Err(Error::ENXIO));
    now(place.vnode.allocate(0, 4, true, true)).unwrap();
    assert_eq!(&w.cat("/f").unwrap()[..8], b"\0\0\0\0ent\0");
    w.put("/g", b"later");
    let other = now(w.caller().find(&At::Current, b"/g", true)).unwrap().location;
    let change =
        unix::vfs::AttributeChange { modified: Some(unix::vfs::SetTime::To(time)), ..Default::default() };
    now(other.vnode.change(change)).unwrap();
    drop((place, other, file));
    end(w, &disk);
    let w = mount(&disk, false).unwrap();
    let place = now(w.caller().find(&At::Current, b"/g", true)).unwrap().location;
    // The data were written after the time was set, which stays nevertheless.
    assert_eq!(place.vnode.metadata().modified, time);
    assert_eq!(w.cat("/g").unwrap(), b"later");
    drop(place);
    end(w, &disk);
}

/// The file server learns later that a file was read: its other times, and with them whether the
/// next read changes the first one, stay.
#[test]
fn a_read_changes_the_access_time_only() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    w.put("/f", b"content");
    w.mkdir("/d");
    end(w, &disk);
    let times = |w: &World, path: &[u8]| {
        let found = now(w.caller().find(&At::Current, path, true)).unwrap().location.vnode.metadata();
        (found.accessed, found.modified, found.changed)
    };
    let w = mount(&disk, false).unwrap();
    let before = [b"/f".as_slice(), b"/d"].map(|path| times(&w, path));
    w.environment.advance(Duration::from_secs(10));
    w.cat("/f").unwrap();
    w.list("/d").unwrap();
    end(w, &disk);
    let w = mount(&disk, false).unwrap();
    let after = [b"/f".as_slice(), b"/d"].map(|path| times(&w, path));
    for (before, after) in before.into_iter().zip(after) {
        assert!(after.0 > before.0, "{before:?} {after:?}");
        assert_eq!((after.1, after.2), (before.1, before.2));
    }
    // What is written over a file changes it, although no space is new.
    let file = w.open("/f", READ_WRITE).unwrap();
    w.environment.advance(Duration::from_secs(20));
    w.write(&file, b"C").unwrap();
    drop(file);
    end(w, &disk);
    let w = mount(&disk, false).unwrap();
    let last = times(&w, b"/f");
    assert!(last.1 > after[0].1 && last.2 != after[0].2, "{after:?} {last:?}");
    end(w, &disk);
}

/// A file with capabilities keeps them over a mount, until it is written.
#[test]
fn capabilities_of_files_last_until_a_write() {
    const NAME: &[u8] = b"security.capability";
    static ATTRIBUTE: PrivilegeAttribute =
        PrivilegeAttribute { name: NAME, decode: |_| Ok(None), kept: |value| Ok(value.to_vec()) };
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    w.vfs.keep_privileges_in(&ATTRIBUTE);
    let find =
        |w: &World, path: &str| now(w.caller().find(&At::Current, path.as_bytes(), true)).unwrap().location;
    w.put("/program", b"1");
    w.put("/other", b"1");
    let place = find(&w, "/program");
    assert!(!place.vnode.has_attributes(), "a new file has none");
    now(w.caller().set_attribute(&place, NAME, Some(b"all"), AttributeCondition::Any)).unwrap();
    assert!(place.vnode.has_attributes());
    drop(place);
    end(w, &disk);

    let w = mount(&disk, false).unwrap();
    w.vfs.keep_privileges_in(&ATTRIBUTE);
    let [place, other] = ["/program", "/other"].map(|path| find(&w, path));
    assert!(other.vnode.has_attributes(), "it may have some");
    assert_eq!(now(other.vnode.attribute(NAME)), Err(Error::ENODATA));
    assert!(!other.vnode.has_attributes(), "the file server was asked");
    assert_eq!(now(place.vnode.attribute(NAME)), Ok(b"all".to_vec()));
    assert!(place.vnode.has_attributes());
    let file = w.open("/program", READ_WRITE).unwrap();
    w.write(&file, b"2").unwrap();
    assert_eq!(now(place.vnode.attribute(NAME)), Err(Error::ENODATA));
    assert!(!place.vnode.has_attributes());
    now(place.vnode.set_attribute(b"user.a", Some(b"v"), AttributeCondition::Any)).unwrap();
    now(place.vnode.set_attribute(b"user.a", None, AttributeCondition::Any)).unwrap();
    let again = now(place.vnode.set_attribute(b"user.a", None, AttributeCondition::Any));
    assert_eq!(again, Err(Error::ENODATA));
    drop((place, other, file));
    end(w, &disk);
}

/// Access control lists are inherited, follow the mode, and are there after a mount. The checker of
/// file systems knows their layout.
#[test]
fn access_control_lists_last_and_follow_the_mode() {
    let list = |mask, others| {
        let rights = [
            (Tag::Owner, 6),
            (Tag::User(1000), 7),
            (Tag::OwnGroup, 4),
            (Tag::Mask, mask),
            (Tag::Others, others),
        ];
        AccessList::of(&rights.map(|(tag, rights)| Entry { tag, rights })).unwrap()
    };
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let find =
        |w: &World, path: &str| now(w.caller().find(&At::Current, path.as_bytes(), true)).unwrap().location;
    w.put("/file", b"1");
    let place = find(&w, "/file");
    assert_eq!(now(w.caller().list(&place, ListKind::Access)), Ok(None));
    now(w.caller().set_list(&place, ListKind::Access, Some(list(6, 0)))).unwrap();
    assert_eq!(place.vnode.metadata().mode.bits(), 0o660);
    now(w.caller().change_mode(&place, Mode::new(0o645))).unwrap();
    assert_eq!(now(w.caller().list(&place, ListKind::Access)), Ok(Some(list(4, 5))));
    now(w.caller().make_directory(&At::Current, b"/directory", Mode::new(0o777))).unwrap();
    let directory = find(&w, "/directory");
    now(w.caller().set_list(&directory, ListKind::Default, Some(list(7, 5)))).unwrap();
    w.put("/directory/file", b"2");
    now(w.caller().make_directory(&At::Current, b"/directory/below", Mode::new(0o777))).unwrap();
    drop((place, directory));
    end(w, &disk);

    let w = mount(&disk, false).unwrap();
    let lists = |path: &str| {
        let vnode = find(&w, path).vnode;
        (vnode.metadata().mode.bits(), vnode.access_list(), vnode.default_list())
    };
    assert_eq!(lists("/file"), (0o645, Some(list(4, 5)), None));
    assert_eq!(lists("/directory").2, Some(list(7, 5)));
    assert_eq!(lists("/directory/file").1.map(|list| list.mode().bits() & 0o070), Some(0o040));
    assert_eq!(lists("/directory/below").2, Some(list(7, 5)));
    let place = find(&w, "/file");
    now(w.caller().set_list(&place, ListKind::Access, None)).unwrap();
    assert_eq!(lists("/file"), (0o645, None, None));
    drop(place);
    end(w, &disk);
    let w = mount(&disk, true).unwrap();
    assert_eq!(find(&w, "/file").vnode.access_list(), None);
    end(w, &disk);
}

#[test]
fn a_full_disk_refuses_what_it_could_not_keep() {
    let disk = mkfs(8, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let file = w.open("/big", READ_WRITE | OpenFlags::CREATE).unwrap();
    let part = vec![7; 64 << 10];
    let mut written = 0;
    let error = loop {
        match w.write(&file, &part) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::ENOSPC);
    now(file.synchronize()).unwrap();
    assert!(written > 1 << 20);
    drop(file);
    now(w.caller().unlink(&At::Current, b"/big")).unwrap();
    w.put("/small", &part);
    end(w, &disk);
}

/// Space is reserved for what a write comes to, not for all of it each time: a call that writes
/// more than there is room for writes a part.
#[test]
fn a_large_write_fills_the_disk() {
    let disk = mkfs(8, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let file = w.open("/big", READ_WRITE | OpenFlags::CREATE).unwrap();
    let bytes = vec![7; 16 << 20];
    let written = w.write(&file, &bytes).unwrap();
    assert!(written > 3 << 20, "{written}");
    now(file.synchronize()).unwrap();
    assert_eq!(w.write(&file, &bytes), Err(Error::ENOSPC));
    // Room for less than a step is used, too.
    let freed = 5 * 4096;
    now(file.truncate(&w.caller(), written as u64 - freed)).unwrap();
    now(file.seek(0, unix::file::Whence::End)).unwrap();
    assert_eq!(w.write(&file, &bytes[written - freed as usize..]), Ok(freed as usize));
    now(file.synchronize()).unwrap();
    assert_eq!(w.write(&file, b"x"), Err(Error::ENOSPC));
    drop(file);
    end(w, &disk);
    let w = mount(&disk, true).unwrap();
    assert!(w.cat("/big").unwrap() == bytes[..written]);
    end(w, &disk);
}

#[test]
fn what_cannot_be_mounted_is_logged_with_its_reason() {
    let servers = Arc::new(OneServer { disk: Disk::of(vec![0; 1 << 20]), ..OneServer::default() });
    let (memory, frames) = frames(&servers.disk);
    let kind = Ext4Type { servers: servers.clone(), memory, environment: TestEnvironment::new() };
    let device = || device(frames.clone());
    assert_eq!(now(kind.make_on(device(), b"", false)).map(drop), Err(Error::EINVAL));
    assert_eq!(*servers.log.lock().unwrap(), ["vda cannot be mounted as ext4: it is no ext4 file system"]);
    assert_eq!(now(kind.make_on(device(), b"nonsense", false)).map(drop), Err(Error::EINVAL));
    assert_eq!(now(kind.make(b"/dev/vda", b"")).map(drop), Err(Error::ENOTBLK));
}

#[test]
fn a_file_system_is_made_read_only_and_writable_again() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    let remount = |flags: MountFlags| now(w.caller().remount(b"/", flags, false, Some(b"errors=remount-ro")));
    w.mkdir("/d");
    w.put("/d/f", b"before");
    let file = w.open("/d/f", READ_WRITE).unwrap();
    assert_eq!(remount(MountFlags::READ_ONLY), Err(Error::EBUSY), "a file is open for writing");
    assert_eq!(w.write(&file, b"during"), Ok(6), "nothing has changed");
    drop(file);
    let unnamed = w.open("/d/f", OpenFlags::READ).unwrap();
    now(w.caller().link(&At::Current, b"/d/f", false, false, &At::Current, b"/other")).unwrap();
    now(w.caller().unlink(&At::Current, b"/d/f")).unwrap();
    let gone = w.open("/gone", READ_WRITE | OpenFlags::CREATE).unwrap();
    now(w.caller().unlink(&At::Current, b"/gone")).unwrap();
    assert_eq!(remount(MountFlags::READ_ONLY), Err(Error::EBUSY), "a file without a name is open");
    drop(gone);
    assert_eq!(remount(MountFlags::READ_ONLY), Ok(()));

    // The disk is as after an unmount, although files are open for reading.
    let found = fsck(&disk.data());
    assert!(found.is_empty(), "{found}");
    assert_eq!(w.read(&unnamed, 10), Ok(b"during".to_vec()));
    assert_eq!(w.cat("/other"), Ok(b"during".to_vec()));
    assert_eq!(w.open("/other", READ_WRITE).err(), Some(Error::EROFS));
    let made = now(w.caller().make_directory(&At::Current, b"/new", Mode::new(0o755)));
    assert_eq!(made, Err(Error::EROFS));

    // Only the mount becomes writable: its file system is not.
    now(w.caller().remount(b"/", MountFlags::empty(), false, None)).unwrap();
    assert_eq!(w.open("/other", READ_WRITE).err(), Some(Error::EROFS));
    assert_eq!(remount(MountFlags::empty()), Ok(()));
    w.put("/other", b"after");
    w.mkdir("/new");
    assert_eq!(w.list("/d").unwrap(), Vec::<String>::new());
    assert_eq!(remount(MountFlags::READ_ONLY), Ok(()));
    assert_eq!(remount(MountFlags::READ_ONLY), Ok(()), "it is so already");
    assert_eq!(remount(MountFlags::empty()), Ok(()));
    end(w, &disk);
    let w = mount(&disk, true).unwrap();
    assert_eq!(w.cat("/other"), Ok(b"after".to_vec()));
    // What was mounted only for reading can be written, too.
    assert_eq!(w.open("/other", READ_WRITE).err(), Some(Error::EROFS));
    now(w.caller().remount(b"/", MountFlags::empty(), false, Some(b""))).unwrap();
    w.put("/last", b"1");
    end(w, &disk);
    let w = mount(&disk, true).unwrap();
    assert_eq!(w.cat("/last"), Ok(b"1".to_vec()));
}

#[test]
fn an_unmount_waits_for_a_store_that_is_under_way() {
    let disk = mkfs(16, &["-b", "4096"]);
    let servers = Arc::new(OneServer { disk: disk.clone(), ..OneServer::default() });
    let is_slow = servers.is_slow.clone();
    let w = World::new();
    let (memory, frames) = frames(&disk);
    let kind = Ext4Type { servers, memory, environment: w.environment.clone() };
    w.mkdir("/m");
    let root = now(kind.make_on(device(frames), b"", false)).unwrap();
    let file_system = Arc::downgrade(&root.file_system());
    now(w.caller().mount(b"/m", root, "/dev/vda", MountFlags::empty())).unwrap();
    w.put("/m/f", b"stored");
    is_slow.store(true, Ordering::Relaxed);
    let caller = w.caller();
    let mut storing = Box::pin(w.vfs.synchronize());
    let mut unmounting = Box::pin(caller.unmount(b"/m", false, true));
    let mut context = Context::from_waker(Waker::noop());
    assert!(storing.as_mut().poll(&mut context).is_pending());
    is_slow.store(false, Ordering::Relaxed);
    assert!(unmounting.as_mut().poll(&mut context).is_pending());
    assert_eq!(now(storing), Ok(()));
    assert_eq!(now(unmounting), Ok(()));
    assert_eq!(file_system.strong_count(), 0, "the file server is free");
    let found = fsck(&disk.data());
    assert!(found.is_empty(), "{found}");
}

/// Data move between the disk and the pages of the cache, where the disk has a place for them.
#[test]
fn data_with_places_do_not_move_through_the_file_server() {
    let disk = mkfs(16, &["-b", "4096"]);
    let (w, frames) = mount_counted(&disk, false).unwrap();
    w.put("/f", &[5; 80 << 10]);
    let file = w.open("/f", READ_WRITE).unwrap();
    now(file.synchronize()).unwrap();
    let moved = || frames.moved.swap(0, Ordering::Relaxed);
    assert_eq!(moved(), 20, "the file server has found places");
    now(file.write_at(&w.caller(), 8192, &mut Bytes::of(&[6; 40 << 10]))).unwrap();
    now(file.synchronize()).unwrap();
    assert_eq!(moved(), 10, "it is written over");
    now(file.write_at(&w.caller(), 80 << 10, &mut Bytes::of(&[7; 100]))).unwrap();
    now(file.write_at(&w.caller(), 96 << 10, &mut Bytes::of(&[8; 5000]))).unwrap();
    now(file.synchronize()).unwrap();
    assert_eq!(moved(), 3, "it grows, with a hole");
    drop(file);
    end(w, &disk);
    let (w, frames) = mount_counted(&disk, false).unwrap();
    let (before, hole) = ([vec![5; 8192], vec![6; 40 << 10], vec![5; 32 << 10]].concat(), 0);
    let expected = [before, vec![7; 100], vec![hole; (16 << 10) - 100], vec![8; 5000]].concat();
    assert!(w.cat("/f").unwrap() == expected);
    assert_eq!(frames.moved.load(Ordering::Relaxed), 23);
    end(w, &disk);
}

/// What a program writes through a mapping after the end of a file does not show when the file
/// grows over it, although the device has written the whole page.
#[test]
fn bytes_after_the_end_of_a_file_are_zeros_when_it_grows() {
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    w.put("/f", &[5; 100]);
    let file = w.open("/f", READ_WRITE).unwrap();
    let memory = file.memory(true).unwrap();
    now(memory.write(200, 3, &mut Bytes::of(b"abc"))).unwrap();
    now(file.synchronize()).unwrap();
    now(memory.write_back(0, u64::MAX, true)).unwrap();
    now(file.write_at(&w.caller(), 8192, &mut Bytes::of(b"1"))).unwrap();
    let expected = [vec![5; 100], vec![0; 8092], b"1".to_vec()].concat();
    assert!(w.cat("/f").unwrap() == expected);
    drop((file, memory));
    end(w, &disk);
}

/// Changes the contents of a file in some way, and the model's likewise. Returns whether it was
/// stored.
fn change_contents(w: &World, model: &mut Vec<u8>, random: &mut Random) -> bool {
    let file = w.open("/f", READ_WRITE).unwrap();
    let vnode = now(w.caller().find(&At::Current, b"/f", true)).unwrap().location.vnode;
    let (offset, length) = (random.below(200_000), random.below(30_000) + 1);
    // Often whole pages.
    let (offset, length) = match random.below(2) {
        0 => (offset, length),
        _ => (offset / 4096 * 4096, length.next_multiple_of(4096)),
    };
    let end = (offset + length) as usize;
    match random.below(10) {
        0..5 => {
            let byte = random.below(255) as u8 + 1;
            let bytes = vec![byte; length as usize];
            now(file.write_at(&w.caller(), offset, &mut Bytes::of(&bytes))).unwrap();
            model.resize(model.len().max(end), 0);
            model[offset as usize..end].fill(byte);
        }
        5 => {
            now(file.truncate(&w.caller(), offset)).unwrap();
            model.resize(offset as usize, 0);
        }
        6 => {
            now(vnode.allocate(offset, length, true, true)).unwrap();
            let range = model.len().min(offset as usize)..model.len().min(end);
            model[range].fill(0);
        }
        7 => {
            now(vnode.allocate(offset, length, false, false)).unwrap();
            model.resize(model.len().max(end), 0);
        }
        8 => now(file.memory(true).unwrap().write_back(0, u64::MAX, true)).unwrap(),
        _ => {
            now(file.synchronize()).unwrap();
            return true;
        }
    }
    false
}

#[test]
fn contents_are_as_a_model_has_them() {
    for seed in 1..=12 {
        let mut random = Random(seed * 7919);
        let disk = mkfs(16, &["-b", ["4096", "1024"][seed as usize % 2]]);
        let mut w = mount(&disk, false).unwrap();
        w.put("/f", b"");
        let mut model = Vec::new();
        for step in 0..150 {
            let stored = change_contents(&w, &mut model, &mut random);
            if stored {
                // The machine stops.
                let w = mount(&Disk::of(disk.data()), false).unwrap();
                assert!(w.cat("/f").unwrap() == model, "{seed} {step}: stored");
            }
            if random.below(4) == 0 {
                assert!(w.cat("/f").unwrap() == model, "{seed} {step}");
            }
            if random.below(20) == 0 {
                end(w, &disk);
                w = mount(&disk, false).unwrap();
            }
        }
        end(w, &disk);
    }
}

/// The power is cut while pages of a file are written over: each sector has what was stored last,
/// or something later.
#[test]
fn what_is_written_over_a_file_is_there_after_a_power_cut() {
    const PAGES: usize = 24;
    let disk = mkfs(16, &["-b", "4096"]);
    let w = mount(&disk, false).unwrap();
    w.put("/f", &[1; PAGES * 4096]);
    now(w.vfs.end_file_systems()).unwrap();
    let before = disk.data();
    let w = mount(&disk, false).unwrap();
    let mut random = Random(4711);
    disk.record();
    let file = w.open("/f", READ_WRITE).unwrap();
    let (mut now_there, mut stored) = (vec![1_u8; PAGES], vec![vec![1_u8; PAGES]]);
    for version in 2..60 {
        let first = random.below(PAGES as u64) as usize;
        let count = (random.below(6) as usize + 1).min(PAGES - first);
        let bytes = vec![version; count * 4096];
        now(file.write_at(&w.caller(), first as u64 * 4096, &mut Bytes::of(&bytes))).unwrap();
        now_there[first..first + count].fill(version);
        if random.below(3) == 0 {
            now(file.synchronize()).unwrap();
            disk.note(stored.len());
            stored.push(now_there.clone());
        }
    }
    drop(file);
    let log = disk.log();
    assert!(log.iter().filter(|event| matches!(event, Event::Flush)).count() >= stored.len() - 1);
    for _ in 0..campaign("EXT4_CUTS", 60) {
        let end = random.below(log.len() as u64 + 1) as usize;
        let (data, point) = cut(&before, &log, end, &mut random);
        let cut = Disk::of(data);
        let w = mount(&cut, false).unwrap();
        let found = w.cat("/f").unwrap();
        assert_eq!(found.len(), PAGES * 4096);
        for (number, sector) in found.chunks(SECTOR).enumerate() {
            let least = stored[point][number * SECTOR / 4096];
            assert!(sector.iter().all(|&byte| byte == sector[0] && byte >= least), "{end}: {number}");
        }
        now(w.vfs.end_file_systems()).unwrap();
        let wrong = fsck(&cut.data());
        assert!(wrong.is_empty(), "{end} of {}: {wrong}", log.len());
    }
}

/// What is to be written, in pieces, between which something else happens.
struct Pieces<'a> {
    bytes: Bytes,
    length: usize,
    /// Called before the second piece. The buffer ends there with an error if the result is false.
    between: &'a mut (dyn FnMut() -> bool + Send),
}

impl UserBuffer for Pieces<'_> {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn transferred(&self) -> usize {
        self.bytes.transferred()
    }

    fn copy_out(&mut self, _: &[u8]) -> std::result::Result<usize, CopyError> {
        unreachable!("it is only read")
    }

    fn copy_in(&mut self, bytes: &mut [u8]) -> std::result::Result<usize, CopyError> {
        self.bytes.copy_in(bytes)
    }

    fn with_part(
        &mut self,
        length: usize,
        write: bool,
        work: &mut dyn FnMut(Part<'_>) -> usize,
    ) -> std::result::Result<usize, CopyError> {
        if self.transferred() == self.length && !(self.between)() {
            return Err(CopyError::Fault);
        }
        self.bytes.with_part(length.min(self.length), write, work)
    }

    fn skip(&mut self, count: usize) {
        self.bytes.skip(count);
    }

    fn retreat(&mut self, count: usize) {
        self.bytes.retreat(count);
    }

    fn resolve(&mut self, _: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Err(Error::EFAULT)))
    }
}

/// Pages of a write that makes a file longer are written back before the write has ended: they
/// count as pages of the file, and the file is as long as the write says in the end.
#[test]
fn a_write_that_is_under_way_is_written_back() {
    for (length, goes_on) in [(4096, true), (100, true), (100, false), (4096, false)] {
        let disk = mkfs(16, &["-b", "4096"]);
        let w = mount(&disk, false).unwrap();
        let file = w.open("/f", READ_WRITE | OpenFlags::CREATE).unwrap();
        let memory = file.memory(true).unwrap();
        // The first page is in memory, so that it is written without waiting.
        w.write(&file, &[6]).unwrap();
        let mut calls = 0;
        let mut between = || {
            calls += 1;
            // Memory is short.
            now(memory.write_back(0, u64::MAX, true)).unwrap();
            now(w.vfs.synchronize()).unwrap();
            // The machine stops: zeros may be there where the write has not come to.
            let found = mount(&Disk::of(disk.data()), false).unwrap().cat("/f").unwrap();
            assert!(found.len() >= length && found.len() <= 10_000);
            assert_eq!(
                (&found[..length], &found[length..]),
                (&*vec![6; length], &*vec![0; found.len() - length])
            );
            goes_on
        };
        let mut pieces = Pieces { bytes: Bytes::of(&[6; 10_000]), length, between: &mut between };
        let written = if goes_on { 10_000 } else { length };
        let mut done = 0;
        while let Ok(count @ 1..) = now(file.write_at(&w.caller(), done as u64, &mut pieces)) {
            done += count;
        }
        assert_eq!((done, calls > 0), (written, true), "{length} {goes_on}");
        assert!(w.cat("/f").unwrap() == vec![6; written]);
        now(w.vfs.synchronize()).unwrap();
        let found = mount(&Disk::of(disk.data()), false).unwrap().cat("/f").unwrap();
        assert!(found == vec![6; written], "{length} {goes_on}: {} bytes are stored", found.len());
        now(file.truncate(&w.caller(), 12_000)).unwrap();
        drop((file, memory));
        end(w, &disk);
        let found = mount(&disk, true).unwrap().cat("/f").unwrap();
        assert!(found == [vec![6; written], vec![0; 12_000 - written]].concat());
    }
}

/// Something refuses to store pages that have no place yet: the error is told, the pages stay in
/// memory and are stored the next time, and the disk has nothing else of the file.
#[test]
fn pages_that_could_not_be_stored_are_stored_later() {
    for refused in [None, Some(kind::PLACE), Some(kind::WRITTEN)] {
        let disk = mkfs(16, &["-b", "4096"]);
        let (w, frames, servers) = mount_on(&disk, false).unwrap();
        w.put("/f", &[5; 5000]);
        now(w.vfs.synchronize()).unwrap();
        let server = servers.last.lock().unwrap().clone().unwrap();
        server.refused.store(refused.unwrap_or(0), Ordering::Relaxed);
        frames.refuses.store(refused.is_none(), Ordering::Relaxed);
        let file = w.open("/f", READ_WRITE).unwrap();
        // After the last page, and after a hole.
        let expected = [vec![5; 5000], vec![0; 11_384], vec![6; 50_000]].concat();
        now(file.write_at(&w.caller(), 16_384, &mut Bytes::of(&expected[16_384..]))).unwrap();
        assert_eq!(now(file.synchronize()), Err(Error::EIO), "{refused:?}");
        server.store();
        let found = mount(&Disk::of(disk.data()), false).unwrap().cat("/f").unwrap();
        assert!(found.len() >= 5000 && found[..5000] == [5; 5000] && found[5000..].iter().all(|&it| it == 0));
        assert!(w.cat("/f").unwrap() == expected);
        server.refused.store(0, Ordering::Relaxed);
        frames.refuses.store(false, Ordering::Relaxed);
        now(file.synchronize()).unwrap();
        let found = mount(&Disk::of(disk.data()), false).unwrap().cat("/f").unwrap();
        assert!(found == expected, "{refused:?}: {} bytes", found.len());
        drop(file);
        end(w, &disk);
    }
}

/// What a file of the next test has: its own byte, from `start` to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grown {
    byte: u8,
    size: usize,
}

/// Files by name.
type AllGrown = std::collections::BTreeMap<String, Grown>;

/// Checks a file after a power cut: bytes of its own, or zeros where nothing was stored before.
fn check_grown(found: &[u8], byte: u8, stored: usize) -> std::result::Result<(), String> {
    if found.len() < stored {
        return Err(format!("{} bytes of {stored}", found.len()));
    }
    match found.iter().enumerate().find(|&(at, &it)| it != byte && (it != 0 || at < stored)) {
        Some((at, other)) => {
            Err(format!("{other} instead of {byte} at {at} of {}, {stored} stored", found.len()))
        }
        None => Ok(()),
    }
}

/// The power is cut while files grow, shrink and go: each has what was stored, and no other file's
/// bytes. The disk has been used before, so blocks that are not written show; and everything is
/// stored between the moment at which a page gets its place and the one at which it is written.
#[test]
fn files_that_grow_have_their_own_bytes_after_a_power_cut() {
    let mut random = Random(90_001);
    for _ in 0..campaign("EXT4_CUTS", 60).div_ceil(20) {
        let disk = mkfs(16, &["-b", "4096"]);
        // Everything that is free now has had other bytes.
        let mut client = Client::mount(&disk, false).unwrap();
        let (old, _) = client.make(ROOT, "old", FILE).unwrap();
        client.write(old, 0, &vec![251; 9 << 20]).unwrap();
        client.sync().unwrap();
        client.unlink(ROOT, "old", false).unwrap();
        client.unmount().unwrap();
        let before = disk.data();
        disk.record();
        let (w, frames, servers) = mount_on(&disk, false).unwrap();
        *frames.storing.lock().unwrap() = servers.last.lock().unwrap().clone();
        let (mut files, mut stored, mut next) = (AllGrown::new(), vec![AllGrown::new()], 0);
        // The files that have lost bytes or their names since they were stored.
        let mut lost: Vec<Vec<String>> = vec![Vec::new()];
        for _ in 0..60 {
            let any = files.keys().nth(random.below(files.len().max(1) as u64) as usize).cloned();
            match (random.below(10), any) {
                (0..3, _) | (_, None) => {
                    next += 1;
                    let contents = Grown { byte: next, size: random.below(90_000) as usize };
                    w.put(&format!("/f{next}"), &vec![next; contents.size]);
                    files.insert(format!("/f{next}"), contents);
                }
                (3..6, Some(name)) => {
                    let contents = files.get_mut(&name).unwrap();
                    let more = random.below(40_000) as usize;
                    let file = w.open(&name, READ_WRITE | OpenFlags::APPEND).unwrap();
                    w.write(&file, &vec![contents.byte; more]).unwrap();
                    contents.size += more;
                }
                (6, Some(name)) => {
                    let contents = files.get_mut(&name).unwrap();
                    contents.size = random.below(contents.size as u64 + 1) as usize;
                    let file = w.open(&name, READ_WRITE).unwrap();
                    now(file.truncate(&w.caller(), contents.size as u64)).unwrap();
                    lost.last_mut().unwrap().push(name);
                }
                (7, Some(name)) => {
                    files.remove(&name);
                    now(w.caller().unlink(&At::Current, name.as_bytes())).unwrap();
                    lost.last_mut().unwrap().push(name);
                }
                (8, Some(name)) => {
                    // Memory is short.
                    let file = w.open(&name, READ_WRITE).unwrap();
                    now(file.memory(true).unwrap().write_back(0, u64::MAX, true)).unwrap();
                }
                _ => {
                    now(w.vfs.synchronize()).unwrap();
                    disk.note(stored.len());
                    stored.push(files.clone());
                    lost.push(Vec::new());
                }
            }
        }
        let log = disk.log();
        for _ in 0..20 {
            let end = random.below(log.len() as u64 + 1) as usize;
            let (data, point) = cut(&before, &log, end, &mut random);
            let cut = Disk::of(data);
            let w = mount(&cut, false).unwrap();
            for name in w.list("/").unwrap().into_iter().filter(|name| name != "lost+found") {
                let byte = name[1..].parse().unwrap();
                let name = format!("/{name}");
                let is_whole = !lost[point].contains(&name);
                let size = stored[point].get(&name).filter(|_| is_whole).map_or(0, |it| it.size);
                let found = w.cat(&name).unwrap();
                if let Err(wrong) = check_grown(&found, byte, size) {
                    panic!("{end} of {}: {name}: {wrong}", log.len());
                }
            }
            for name in stored[point].keys().filter(|name| !lost[point].contains(name)) {
                assert!(w.cat(name).is_ok(), "{end} of {}: {name} is missing", log.len());
            }
            now(w.vfs.end_file_systems()).unwrap();
            let wrong = fsck(&cut.data());
            assert!(wrong.is_empty(), "{end} of {}: {wrong}", log.len());
        }
    }
}
