//! Tests of the rules of path_resolution(7), open(2) and the calls on names and attributes.

use super::*;
use crate::testing::{World, memory, now};
use crate::tmpfs::{Tmpfs, TmpfsOptions};
use proptest::prelude::*;

const RW: OpenFlags = OpenFlags::READ_WRITE;
const R: OpenFlags = OpenFlags::READ;
const CREATE: OpenFlags = OpenFlags::WRITE.union(OpenFlags::CREATE);

impl World {
    fn stat(&self, path: &str) -> Result<Metadata> {
        now(self.caller().status(&At::Current, path.as_bytes(), true, false))
    }
    fn lstat(&self, path: &str) -> Result<Metadata> {
        now(self.caller().status(&At::Current, path.as_bytes(), false, false))
    }
    fn rename(&self, old: &str, new: &str, how: RenameHow) -> Result<()> {
        now(self.caller().rename(&At::Current, old.as_bytes(), &At::Current, new.as_bytes(), how))
    }
    fn mv(&self, old: &str, new: &str) -> Result<()> {
        self.rename(old, new, RenameHow::Replace)
    }
    fn rm(&self, path: &str) -> Result<()> {
        now(self.caller().unlink(&At::Current, path.as_bytes()))
    }
    fn rmdir(&self, path: &str) -> Result<()> {
        now(self.caller().remove_directory(&At::Current, path.as_bytes()))
    }
    fn ln(&self, old: &str, new: &str) -> Result<()> {
        now(self.caller().link(&At::Current, old.as_bytes(), false, false, &At::Current, new.as_bytes()))
    }
    fn cd(&self, path: &str) -> Result<()> {
        now(self.caller().change_directory(&At::Current, path.as_bytes(), false))
    }
    fn chmod(&self, path: &str, mode: u16) -> Result<()> {
        let place = now(self.caller().find(&At::Current, path.as_bytes(), true))?.location;
        now(self.caller().change_mode(&place, Mode::new(mode)))
    }
    fn chown(&self, path: &str, user: u32, group: u32) -> Result<()> {
        let place = now(self.caller().find(&At::Current, path.as_bytes(), true))?.location;
        now(self.caller().change_owner(&place, Some(user), Some(group)))
    }
    fn try_mkdir(&self, path: &str, mode: u16) -> Result<()> {
        now(self.caller().make_directory(&At::Current, path.as_bytes(), Mode::new(mode)))
    }
    fn pwd(&self) -> Result<String> {
        self.caller().current_path().map(|path| String::from_utf8(path).unwrap())
    }
    fn mount_tmpfs(&self, path: &str, flags: MountFlags) {
        let options = TmpfsOptions::for_memory(100);
        let root = Tmpfs::new(&options, memory(), self.environment.clone()).unwrap();
        now(self.caller().mount(path.as_bytes(), root, "tmpfs", flags)).unwrap();
    }
}

#[test]
fn paths_are_resolved_component_by_component() {
    let w = World::new();
    w.mkdir("/a");
    w.mkdir("/a/b");
    w.put("/a/b/f", b"x");
    for path in ["/a/b/f", "a/b/f", "/a//b///f", "/a/./b/../b/f", "/../../a/b/f"] {
        assert_eq!(w.cat(path), Ok(b"x".to_vec()), "{path}");
    }
    assert_eq!(w.stat("").unwrap_err(), Error::ENOENT);
    assert_eq!(w.stat("/a/missing").unwrap_err(), Error::ENOENT);
    assert_eq!(w.stat("/a/missing/f").unwrap_err(), Error::ENOENT);
    assert_eq!(w.stat("/a/b/f/").unwrap_err(), Error::ENOTDIR);
    assert_eq!(w.stat("/a/b/f/.").unwrap_err(), Error::ENOTDIR);
    assert_eq!(w.stat("/a/b/f/..").unwrap_err(), Error::ENOTDIR);
    assert_eq!(w.stat("/a/b/f/g").unwrap_err(), Error::ENOTDIR);
    assert!(w.stat("/a/b///").is_ok());
    assert_eq!(w.stat(&"x".repeat(256)).unwrap_err(), Error::ENAMETOOLONG);
    assert_eq!(w.stat(&"x".repeat(255)).unwrap_err(), Error::ENOENT);
    assert_eq!(w.stat(&"./".repeat(2048)).unwrap_err(), Error::ENAMETOOLONG);
    assert!(w.stat(&"/.".repeat(2047)).is_ok());
}

#[test]
fn symbolic_links_are_followed_as_the_flags_say() {
    let w = World::new();
    w.mkdir("/a");
    w.put("/a/f", b"x");
    w.symlink("a", "/to-a");
    w.symlink("/a/f", "/a/abs");
    w.symlink("f", "/a/rel");
    w.symlink("missing", "/dangling");
    w.symlink("loop", "/loop");
    assert_eq!(w.cat("/to-a/rel"), Ok(b"x".to_vec()));
    assert_eq!(w.cat("/to-a/abs"), Ok(b"x".to_vec()));
    assert_eq!(w.lstat("/to-a").unwrap().file_type, FileType::SymbolicLink);
    assert_eq!(w.lstat("/to-a").unwrap().size, 1);
    assert_eq!(w.lstat("/to-a/").unwrap().file_type, FileType::Directory);
    assert_eq!(w.stat("/dangling").unwrap_err(), Error::ENOENT);
    assert_eq!(w.stat("/loop").unwrap_err(), Error::ELOOP);
    assert_eq!(w.open("/to-a", R | OpenFlags::NO_FOLLOW).err(), Some(Error::ELOOP));
    assert_eq!(w.open("/to-a", R | OpenFlags::NO_FOLLOW | OpenFlags::DIRECTORY).err(), Some(Error::ELOOP));
    let read = |path: &str| now(w.caller().read_link(&At::Current, path.as_bytes()));
    assert_eq!(read("/to-a"), Ok(b"a".to_vec()));
    assert_eq!(read("/a/f"), Err(Error::EINVAL));
    // An open through a dangling link makes the target, unless it is exclusive.
    assert_eq!(w.open("/dangling", CREATE | OpenFlags::EXCLUSIVE).err(), Some(Error::EEXIST));
    w.put("/dangling", b"new");
    assert_eq!(w.cat("/missing"), Ok(b"new".to_vec()));
    // A path may have a chain of 40 links, but not of 41.
    for i in 0..41 {
        w.symlink(&if i == 0 { "/a/f".into() } else { format!("/chain{}", i - 1) }, &format!("/chain{i}"));
    }
    assert!(w.stat("/chain39").is_ok());
    assert_eq!(w.stat("/chain40").unwrap_err(), Error::ELOOP);
    let caller = w.caller();
    assert_eq!(now(caller.make_link(b"", &At::Current, b"/empty")), Err(Error::ENOENT));
}

#[test]
fn open_flags_mean_what_open_2_says() {
    let mut w = World::new();
    w.put("/f", b"hello");
    w.mkdir("/d");
    assert_eq!(w.open("/f", CREATE | OpenFlags::EXCLUSIVE).err(), Some(Error::EEXIST));
    assert_eq!(w.open("/d", OpenFlags::WRITE).err(), Some(Error::EISDIR));
    assert_eq!(w.open("/d", R | OpenFlags::CREATE).err(), Some(Error::EISDIR));
    assert_eq!(w.open("/new/", CREATE).err(), Some(Error::EISDIR));
    assert_eq!(w.open("/", CREATE).err(), Some(Error::EISDIR));
    assert_eq!(w.open("/f", R | OpenFlags::DIRECTORY).err(), Some(Error::ENOTDIR));
    assert_eq!(w.open("/n", CREATE | OpenFlags::DIRECTORY).err(), Some(Error::EINVAL));
    assert_eq!(w.open("/nope/f", CREATE).err(), Some(Error::ENOENT));
    drop(w.open("/f", OpenFlags::WRITE | OpenFlags::TRUNCATE).unwrap());
    assert_eq!(w.cat("/f"), Ok(vec![]));
    // The umask applies to the mode. A file that was made read-only can be written through the
    // descriptor that made it.
    w.become_user(100, 100);
    assert_eq!(w.open("/mine", CREATE).err(), Some(Error::EACCES));
    w.identity = Identity::superuser();
    w.try_mkdir("/tmp", 0o777).unwrap();
    w.chmod("/tmp", 0o1777).unwrap();
    w.become_user(100, 200);
    let file = w.open_mode("/tmp/g", CREATE, 0o444).unwrap();
    assert_eq!(w.write(&file, b"abc"), Ok(3));
    let metadata = w.stat("/tmp/g").unwrap();
    assert_eq!((metadata.mode.bits(), metadata.user, metadata.group), (0o444, 100, 200));
    assert_eq!(w.open("/tmp/g", OpenFlags::WRITE).err(), Some(Error::EACCES));
    w.open_mode("/tmp/h", CREATE, 0o666).unwrap();
    assert_eq!(w.stat("/tmp/h").unwrap().mode.bits(), 0o644);
    assert_eq!(w.open("/f", R | OpenFlags::NO_ACCESS_TIME).err(), Some(Error::EPERM));
    assert!(w.open("/tmp/g", R | OpenFlags::NO_ACCESS_TIME).is_ok());
}

#[test]
fn a_path_descriptor_can_only_name_its_file() {
    let w = World::new();
    w.put("/f", b"x");
    w.symlink("f", "/l");
    let file = w.open("/f", OpenFlags::PATH).unwrap();
    assert_eq!(w.read(&file, 1), Err(Error::EBADF));
    assert_eq!(file.metadata().size, 1);
    let link = w.open("/l", OpenFlags::PATH | OpenFlags::NO_FOLLOW).unwrap();
    assert_eq!(link.file_type(), FileType::SymbolicLink);
    assert_eq!(now(w.caller().read_link(&At::File(link), b"")), Ok(b"f".to_vec()));
    assert_eq!(w.open("/f", OpenFlags::PATH | OpenFlags::DIRECTORY).err(), Some(Error::ENOTDIR));
}

#[test]
fn a_path_is_relative_to_the_given_descriptor() {
    let w = World::new();
    w.mkdir("/d");
    w.put("/d/f", b"x");
    let directory = At::File(w.open("/d", R).unwrap());
    let file = At::File(w.open("/d/f", R).unwrap());
    assert!(now(w.caller().status(&directory, b"f", true, false)).is_ok());
    assert_eq!(now(w.caller().status(&file, b"f", true, false)).unwrap_err(), Error::ENOTDIR);
    assert!(now(w.caller().status(&file, b"/d/f", true, false)).is_ok());
    assert_eq!(now(w.caller().status(&file, b"", true, true)).unwrap().size, 1);
    assert_eq!(now(w.caller().status(&file, b"", true, false)).unwrap_err(), Error::ENOENT);
}

#[test]
fn a_temporary_file_has_no_name_until_it_is_linked() {
    let w = World::new();
    w.mkdir("/d");
    assert_eq!(w.open("/d", R | OpenFlags::TEMPORARY).err(), Some(Error::EINVAL));
    let link = |file: &Arc<OpenFile>, name: &[u8]| {
        now(w.caller().link(&At::File(file.clone()), b"", false, true, &At::Current, name))
    };
    let file = w.open("/d", RW | OpenFlags::TEMPORARY).unwrap();
    assert_eq!(file.metadata().links, 0);
    w.write(&file, b"data").unwrap();
    assert!(w.list("/d").unwrap().is_empty());
    assert_eq!(link(&file, b"/d/named"), Ok(()));
    assert_eq!(w.cat("/d/named"), Ok(b"data".to_vec()));
    let exclusive = w.open("/d", RW | OpenFlags::TEMPORARY | OpenFlags::EXCLUSIVE).unwrap();
    assert_eq!(link(&exclusive, b"/d/other"), Err(Error::ENOENT));
    // A file that was unlinked does not get a name again.
    w.rm("/d/named").unwrap();
    assert_eq!(link(&file, b"/d/again"), Err(Error::ENOENT));
}

#[test]
fn directories_are_made_and_removed() {
    let w = World::new();
    w.mkdir("/d");
    w.mkdir("/d/e/");
    assert_eq!(w.try_mkdir("/d", 0o755), Err(Error::EEXIST));
    assert_eq!(w.try_mkdir("/", 0o755), Err(Error::EEXIST));
    assert_eq!(w.try_mkdir("/d/.", 0o755), Err(Error::EEXIST));
    assert_eq!(w.stat("/d").unwrap().links, 3);
    assert_eq!(w.rmdir("/d"), Err(Error::ENOTEMPTY));
    assert_eq!(w.rmdir("/d/e/."), Err(Error::EINVAL));
    assert_eq!(w.rmdir("/d/e/.."), Err(Error::ENOTEMPTY));
    assert_eq!(w.rmdir("/"), Err(Error::EBUSY));
    assert_eq!(w.rm("/d/e"), Err(Error::EISDIR));
    w.cd("/d/e").unwrap();
    assert_eq!(w.pwd(), Ok("/d/e".into()));
    w.rmdir("/d/e/").unwrap();
    assert_eq!(w.pwd(), Err(Error::ENOENT));
    assert_eq!(w.try_mkdir("x", 0o755), Err(Error::ENOENT));
    assert_eq!(w.open("f", CREATE).err(), Some(Error::ENOENT));
    assert_eq!(w.stat("/d").unwrap().links, 2);
    w.put("/f", b"");
    assert_eq!(w.rmdir("/f"), Err(Error::ENOTDIR));
    assert_eq!(w.rm("/f/"), Err(Error::ENOTDIR));
    assert_eq!(w.rm("/missing"), Err(Error::ENOENT));
}

#[test]
fn the_link_count_is_the_number_of_names() {
    let w = World::new();
    w.put("/f", b"x");
    w.mkdir("/d");
    w.ln("/f", "/d/g").unwrap();
    assert_eq!(w.stat("/f").unwrap().links, 2);
    assert_eq!(w.stat("/f").unwrap().number, w.stat("/d/g").unwrap().number);
    assert_eq!(w.ln("/f", "/d/g"), Err(Error::EEXIST));
    assert_eq!(w.ln("/d", "/e"), Err(Error::EPERM));
    assert_eq!(w.ln("/f", "/new/"), Err(Error::ENOENT));
    let file = w.open("/f", R).unwrap();
    w.rm("/f").unwrap();
    w.rm("/d/g").unwrap();
    assert_eq!(file.metadata().links, 0);
    assert_eq!(w.read(&file, 10), Ok(b"x".to_vec()));
    // link(2) does not follow a link at the end unless told to.
    w.put("/t", b"t");
    w.symlink("t", "/s");
    w.ln("/s", "/s2").unwrap();
    assert_eq!(w.lstat("/s2").unwrap().file_type, FileType::SymbolicLink);
}

#[test]
fn rename_follows_rename_2() {
    let w = World::new();
    for d in ["/a", "/a/b", "/c", "/full", "/full/x"] {
        w.mkdir(d);
    }
    w.put("/f", b"f");
    w.put("/g", b"g");
    assert_eq!(w.mv("/f", "/a"), Err(Error::EISDIR));
    assert_eq!(w.mv("/a", "/f"), Err(Error::ENOTDIR));
    assert_eq!(w.mv("/a", "/a/b/c"), Err(Error::EINVAL));
    assert_eq!(w.mv("/a", "/a/b"), Err(Error::EINVAL));
    assert_eq!(w.mv("/a/b", "/a"), Err(Error::ENOTEMPTY));
    assert_eq!(w.mv("/a", "/full"), Err(Error::ENOTEMPTY));
    assert_eq!(w.mv("/", "/a"), Err(Error::EBUSY));
    assert_eq!(w.mv("/a/.", "/z"), Err(Error::EBUSY));
    assert_eq!(w.mv("/f/", "/z"), Err(Error::ENOTDIR));
    assert_eq!(w.mv("/f", "/z/"), Err(Error::ENOTDIR));
    assert_eq!(w.mv("/missing", "/z"), Err(Error::ENOENT));
    w.mv("/f", "/g").unwrap();
    assert_eq!((w.cat("/g"), w.cat("/f")), (Ok(b"f".to_vec()), Err(Error::ENOENT)));
    w.mv("/a", "/c").unwrap();
    assert!(w.stat("/c/b").is_ok());
    assert_eq!(w.stat("/c").unwrap().links, 3);
    w.mv("/c/b", "/full/b/").unwrap();
    assert_eq!((w.stat("/c").unwrap().links, w.stat("/full").unwrap().links), (2, 4));
    assert_eq!(w.stat("/full/b/..").unwrap().number, w.stat("/full").unwrap().number);
    // Both names are of one file, so rename does nothing.
    w.ln("/g", "/h").unwrap();
    w.mv("/g", "/h").unwrap();
    assert!(w.stat("/g").is_ok() && w.stat("/h").is_ok());
    w.mv("/g", "/g").unwrap();
    assert_eq!(w.rename("/g", "/h", RenameHow::NoReplace), Err(Error::EEXIST));
    w.rename("/g", "/i", RenameHow::NoReplace).unwrap();
    // Files of different types can be exchanged, too.
    w.rename("/i", "/full", RenameHow::Exchange).unwrap();
    assert_eq!(w.stat("/full").unwrap().file_type, FileType::Regular);
    assert!(w.stat("/i/b").is_ok());
    assert_eq!(w.rename("/i", "/none", RenameHow::Exchange), Err(Error::ENOENT));
    assert_eq!(w.rename("/i", "/i/b", RenameHow::Exchange), Err(Error::EINVAL));
    assert_eq!(w.rename("/i/b", "/i", RenameHow::Exchange), Err(Error::EINVAL));
}

#[test]
fn sticky_and_set_group_id_bits_of_directories_have_their_effect() {
    let mut w = World::new();
    w.mkdir("/t");
    w.chmod("/t", 0o1777).unwrap();
    w.become_user(1, 1);
    w.put("/t/mine", b"");
    w.become_user(2, 2);
    assert_eq!(w.rm("/t/mine"), Err(Error::EPERM));
    assert_eq!(w.mv("/t/mine", "/t/yours"), Err(Error::EPERM));
    w.put("/t/other", b"");
    assert_eq!(w.mv("/t/other", "/t/mine"), Err(Error::EPERM));
    w.become_user(1, 1);
    w.rm("/t/mine").unwrap();
    w.identity = Identity::superuser();
    w.mkdir("/g");
    w.chown("/g", 1, 77).unwrap();
    w.chmod("/g", 0o2777).unwrap();
    w.become_user(1, 1);
    w.put("/g/f", b"");
    w.mkdir("/g/d");
    assert_eq!(w.stat("/g/f").unwrap().group, 77);
    let made = w.stat("/g/d").unwrap();
    assert!(made.group == 77 && made.mode.contains(Mode::SET_GROUP));
}

#[test]
fn owners_modes_and_times_change_as_permissions_allow() {
    let mut w = World::new();
    w.put("/f", b"x");
    w.chown("/f", 5, 6).unwrap();
    w.chmod("/f", 0o6755).unwrap();
    w.become_user(7, 7);
    assert_eq!(w.chmod("/f", 0o777), Err(Error::EPERM));
    w.identity = Identity::new(5, 6, Arc::new([9]));
    assert_eq!(w.chown("/f", 7, 6), Err(Error::EPERM));
    assert_eq!(w.chown("/f", 5, 8), Err(Error::EPERM));
    // A change of the group removes the set-id bits.
    w.chown("/f", 5, 9).unwrap();
    assert_eq!(w.stat("/f").unwrap().mode.bits(), 0o755);
    // A write removes the set-id bits, too. A process outside the group cannot set the set-group-id
    // bit.
    w.chmod("/f", 0o4755).unwrap();
    let file = w.open("/f", OpenFlags::WRITE).unwrap();
    w.write(&file, b"y").unwrap();
    assert_eq!(w.stat("/f").unwrap().mode.bits(), 0o755);
    w.identity = Identity::new(5, 1, Arc::new([]));
    w.chmod("/f", 0o2755).unwrap();
    assert_eq!(w.stat("/f").unwrap().mode.bits(), 0o755);
    let place = now(w.caller().find(&At::Current, b"/f", true)).unwrap().location;
    let past = SetTime::To(crate::Timestamp { seconds: -5, nanoseconds: 7 });
    now(w.caller().change_times(&place, Some(past), None)).unwrap();
    assert_eq!(w.stat("/f").unwrap().accessed.seconds, -5);
    w.become_user(8, 8);
    assert_eq!(now(w.caller().change_times(&place, Some(past), Some(past))), Err(Error::EPERM));
    let touch = now(w.caller().change_times(&place, Some(SetTime::Now), Some(SetTime::Now)));
    assert_eq!(touch, Err(Error::EACCES));
}

#[test]
fn relatime_updates_old_access_times_only() {
    let w = World::new();
    w.put("/f", b"x");
    let day = core::time::Duration::from_secs(86400);
    let accessed = || w.stat("/f").unwrap().accessed;
    let first = accessed();
    w.environment.advance(day / 24);
    w.cat("/f").unwrap();
    let second = accessed();
    assert!(second > first, "older than the modification: updated");
    w.environment.advance(day / 24);
    w.cat("/f").unwrap();
    assert_eq!(accessed(), second, "newer than the modification and younger than a day: kept");
    w.environment.advance(day);
    w.cat("/f").unwrap();
    assert!(accessed() > second);
}

#[test]
fn each_directory_of_a_path_needs_search_permission() {
    let mut w = World::new();
    w.mkdir("/d");
    w.put("/d/f", b"x");
    w.chmod("/d", 0o644).unwrap();
    w.become_user(1, 1);
    assert_eq!(w.cat("/d/f"), Err(Error::EACCES));
    assert_eq!(w.stat("/d/missing").unwrap_err(), Error::EACCES);
    assert_eq!(w.list("/d"), Ok(vec!["f".into()]));
    assert_eq!(w.cd("/d"), Err(Error::EACCES));
    w.identity = Identity::superuser();
    w.chmod("/d", 0o711).unwrap();
    w.become_user(1, 1);
    assert_eq!(w.cat("/d/f"), Ok(b"x".to_vec()));
    assert_eq!(w.list("/d"), Err(Error::EACCES));
    assert_eq!(w.rm("/d/f"), Err(Error::EACCES));
    let (caller, real) = (w.caller(), Identity::superuser());
    let write = now(caller.access(&w.identity, &At::Current, b"/d/f", true, false, Access::WRITE));
    assert_eq!(write, Err(Error::EACCES));
    assert_eq!(now(caller.access(&real, &At::Current, b"/d/f", true, false, Access::WRITE)), Ok(()));
}

#[test]
fn a_mount_hides_its_mount_point_until_it_is_removed() {
    let w = World::new();
    w.mkdir("/m");
    w.put("/m/below", b"1");
    w.mount_tmpfs("/m", MountFlags::empty());
    assert_eq!(w.cat("/m/below"), Err(Error::ENOENT));
    w.put("/m/above", b"2");
    w.mkdir("/m/d");
    w.cd("/m/d").unwrap();
    assert_eq!(w.pwd(), Ok("/m/d".into()));
    assert_eq!(w.stat("../..").unwrap().number, w.stat("/").unwrap().number);
    assert_ne!(w.stat("/m").unwrap().device, w.stat("/").unwrap().device);
    assert_eq!(w.rmdir("/m"), Err(Error::EBUSY));
    assert_eq!(w.mv("/m", "/n"), Err(Error::EBUSY));
    assert_eq!(w.ln("/m/above", "/x"), Err(Error::EXDEV));
    assert_eq!(w.mv("/m/above", "/x"), Err(Error::EXDEV));
    let unmount = |detach| now(w.caller().unmount(b"/m", detach, true));
    assert_eq!(unmount(false), Err(Error::EBUSY), "the working directory is there");
    w.cd("/").unwrap();
    w.mount_tmpfs("/m", MountFlags::empty());
    assert_eq!(w.cat("/m/above"), Err(Error::ENOENT), "the later mount is on top");
    assert_eq!(unmount(false), Ok(()));
    assert_eq!(w.cat("/m/above"), Ok(b"2".to_vec()));
    let open = w.open("/m/above", R).unwrap();
    assert_eq!(unmount(false), Err(Error::EBUSY));
    assert_eq!(unmount(true), Ok(()));
    assert_eq!(w.read(&open, 9), Ok(b"2".to_vec()));
    assert_eq!(w.cat("/m/below"), Ok(b"1".to_vec()));
    assert_eq!(unmount(false), Err(Error::EINVAL));
    assert_eq!(w.vfs.tree.mounts().len(), 1);
}

#[test]
fn mount_options_and_bind_mounts_have_their_effect() {
    let w = World::new();
    w.mkdir("/m");
    w.mkdir("/b");
    w.mount_tmpfs("/m", MountFlags::empty());
    w.put("/m/f", b"1");
    w.mkdir("/m/d");
    w.put("/m/d/g", b"g");
    now(w.caller().remount(b"/m", MountFlags::READ_ONLY | MountFlags::NO_EXECUTE, false, Some(b""))).unwrap();
    assert_eq!(w.open("/m/f", OpenFlags::WRITE).err(), Some(Error::EROFS));
    assert_eq!(w.open("/m/new", CREATE).err(), Some(Error::EROFS));
    assert_eq!(w.rm("/m/f"), Err(Error::EROFS));
    assert_eq!(w.chmod("/m/f", 0o777), Err(Error::EROFS));
    let execute = now(w.caller().access(&w.identity, &At::Current, b"/m/f", true, false, Access::EXECUTE));
    assert_eq!(execute, Err(Error::EACCES));
    now(w.caller().bind(b"/m/d", b"/b", false)).unwrap();
    assert_eq!(w.cat("/b/g"), Ok(b"g".to_vec()));
    w.cd("/b").unwrap();
    assert_eq!(w.pwd(), Ok("/b".into()));
    assert_eq!(w.stat("..").unwrap().number, w.stat("/").unwrap().number);
    now(w.caller().remount(b"/b", MountFlags::empty(), false, Some(b""))).unwrap();
    w.put("/b/h", b"h");
    assert_eq!(w.cat("/m/d/h"), Ok(b"h".to_vec()));
    w.mkdir("/n");
    now(w.caller().move_mount(b"/m", b"/n")).unwrap();
    assert_eq!(w.cat("/n/f"), Ok(b"1".to_vec()));
    assert_eq!(now(w.caller().move_mount(b"/n", b"/n/d")), Err(Error::ELOOP));
    let mut user = World::new();
    user.become_user(1, 1);
    assert_eq!(now(user.caller().unmount(b"/", false, true)), Err(Error::EPERM));
}

#[test]
fn a_changed_root_directory_cannot_be_left() {
    let w = World::new();
    w.mkdir("/jail");
    w.mkdir("/jail/d");
    w.symlink("/d", "/jail/abs");
    w.put("/secret", b"s");
    now(w.caller().change_root(b"/jail")).unwrap();
    w.cd("/").unwrap();
    assert_eq!(w.cat("/../../secret"), Err(Error::ENOENT));
    assert_eq!(w.stat("/abs").unwrap().file_type, FileType::Directory);
    w.cd("/abs").unwrap();
    assert_eq!(w.pwd(), Ok("/d".into()));
}

#[test]
fn device_nodes_fifos_and_sockets_are_made_by_mknod() {
    let mut w = World::new();
    let number = DeviceNumber { major: 1, minor: 3 };
    let node = |w: &World, path: &[u8], file_type| {
        now(w.caller().make_node(&At::Current, path, file_type, Mode::new(0o666), number)).map(drop)
    };
    node(&w, b"/null", FileType::CharacterDevice).unwrap();
    assert_eq!(w.stat("/null").unwrap().represents, number);
    assert_eq!(w.open("/null", R).err(), Some(Error::ENXIO), "no driver");
    node(&w, b"/sock", FileType::Socket).unwrap();
    assert_eq!(w.open("/sock", R).err(), Some(Error::ENXIO));
    assert_eq!(node(&w, b"/d", FileType::Directory), Err(Error::EPERM));
    w.chmod("/", 0o777).unwrap();
    w.become_user(1, 1);
    assert_eq!(node(&w, b"/x", FileType::BlockDevice), Err(Error::EPERM));
    node(&w, b"/fifo", FileType::Fifo).unwrap();
    node(&w, b"/reg", FileType::Regular).unwrap();
}

#[test]
fn extended_attributes_follow_xattr_7() {
    let mut w = World::new();
    w.put("/f", b"");
    w.symlink("f", "/l");
    let place = |w: &World, path: &[u8]| now(w.caller().find(&At::Current, path, false)).unwrap().location;
    let (f, l) = (place(&w, b"/f"), place(&w, b"/l"));
    let set = |w: &World, at, name: &str, value: &[u8], condition| {
        now(w.caller().set_attribute(at, name.as_bytes(), Some(value), condition))
    };
    use AttributeCondition::*;
    assert_eq!(set(&w, &f, "user.a", b"1", Replace), Err(Error::ENODATA));
    assert_eq!(set(&w, &f, "user.a", b"1", Create), Ok(()));
    assert_eq!(set(&w, &f, "user.a", b"1", Create), Err(Error::EEXIST));
    assert_eq!(set(&w, &f, "trusted.b", b"2", Any), Ok(()));
    assert_eq!(set(&w, &l, "user.a", b"1", Any), Err(Error::EPERM));
    assert_eq!(set(&w, &f, "nonsense", b"1", Any), Err(Error::EOPNOTSUPP));
    assert_eq!(set(&w, &f, "user.big", &vec![0; 65537], Any), Err(Error::E2BIG));
    assert_eq!(now(w.caller().attribute(&f, b"user.a")), Ok(b"1".to_vec()));
    assert_eq!(now(w.caller().attributes(&f)), Ok(b"trusted.b\0user.a\0".to_vec()));
    w.become_user(1, 1);
    assert_eq!(now(w.caller().attributes(&f)), Ok(b"user.a\0".to_vec()));
    assert_eq!(now(w.caller().attribute(&f, b"trusted.b")), Err(Error::ENODATA));
    assert_eq!(set(&w, &f, "user.a", b"2", Any), Err(Error::EACCES));
    w.identity = Identity::superuser();
    assert_eq!(now(w.caller().set_attribute(&f, b"user.a", None, Any)), Ok(()));
    assert_eq!(now(w.caller().set_attribute(&f, b"user.a", None, Any)), Err(Error::ENODATA));
}

#[test]
fn privileges_that_a_file_gives_need_a_privilege_and_go_with_its_content() {
    let mut w = World::new();
    const NAME: &[u8] = b"security.privileges";
    fn kept(value: &[u8]) -> Result<Vec<u8>> {
        if value.len() == 20 { Ok(value.to_vec()) } else { Err(Error::EINVAL) }
    }
    static ATTRIBUTE: PrivilegeAttribute = PrivilegeAttribute { name: NAME, decode: |_| Ok(None), kept };
    let value = vec![7; 20];
    w.vfs.keep_privileges_in(&ATTRIBUTE);
    w.put("/f", b"text");
    w.chmod("/f", 0o777).unwrap();
    let place = now(w.caller().find(&At::Current, b"/f", false)).unwrap().location;
    let set = |w: &World, value| now(w.caller().set_attribute(&place, NAME, value, AttributeCondition::Any));
    let there = |w: &World| now(w.caller().attribute(&place, NAME));
    assert_eq!(set(&w, Some(&value[..19])), Err(Error::EINVAL));
    let writer = w.open("/f", OpenFlags::WRITE).unwrap();
    set(&w, Some(&value)).unwrap();
    assert_eq!(there(&w), Ok(value.clone()));
    // The superuser's write takes them, too.
    w.write(&writer, b"more").unwrap();
    assert_eq!(there(&w), Err(Error::ENODATA));
    set(&w, Some(&value)).unwrap();
    now(w.caller().truncate(&At::Current, b"/f", 1)).unwrap();
    assert_eq!(there(&w), Err(Error::ENODATA));
    set(&w, Some(&value)).unwrap();
    now(w.caller().change_owner(&place, Some(1), None)).unwrap();
    assert_eq!(there(&w), Err(Error::ENODATA));
    set(&w, Some(&value)).unwrap();
    now(w.caller().change_mode(&place, Mode::new(0o755))).unwrap();
    assert_eq!(there(&w), Ok(value.clone()));
    w.become_user(1, 1);
    assert_eq!(there(&w), Ok(value.clone()));
    assert_eq!((set(&w, Some(&value)), set(&w, None)), (Err(Error::EPERM), Err(Error::EPERM)));
}

#[test]
fn a_file_that_is_executed_cannot_be_written() {
    let w = World::new();
    w.put("/bin", b"elf");
    let file = w.open("/bin", R).unwrap();
    let writer = w.open("/bin", OpenFlags::WRITE).unwrap();
    let hooks = file.hooks().unwrap();
    assert_eq!(hooks.begin_execution(), Err(Error::ETXTBSY));
    drop(writer);
    hooks.begin_execution().unwrap();
    assert_eq!(w.open("/bin", OpenFlags::WRITE).err(), Some(Error::ETXTBSY));
    assert_eq!(now(w.caller().truncate(&At::Current, b"/bin", 0)), Err(Error::ETXTBSY));
    hooks.end_execution();
    assert!(w.open("/bin", OpenFlags::WRITE).is_ok());
}

#[test]
fn a_pipe_can_be_opened_again_through_its_location() {
    let w = World::new();
    let (read, write) = crate::testing::pipe(OpenFlags::empty());
    let place = w.vfs.place_of(&write);
    let again = now(w.caller().open_found(place, None, OpenFlags::WRITE, false)).unwrap();
    drop(write);
    w.write(&again, b"through").unwrap();
    assert_eq!(w.read(&read, 99), Ok(b"through".to_vec()));
    drop(again);
    assert_eq!(w.read(&read, 99), Ok(vec![]));
    let kind = crate::socket::SocketType::Stream;
    let socket = crate::socket::socket(&w.caller(), kind, OpenFlags::empty()).unwrap();
    let place = w.vfs.place_of(&socket);
    assert_eq!(now(w.caller().open_found(place, None, OpenFlags::READ, false)).err(), Some(Error::ENXIO));
    w.put("/f", b"");
    let file = w.open("/f", R).unwrap();
    assert!(w.vfs.place_of(&file).same(file.location().unwrap()));
}

#[test]
fn an_open_file_shows_its_path() {
    let w = World::new();
    w.mkdir("/d");
    w.put("/d/f", b"");
    w.ln("/d/f", "/g").unwrap();
    let root = w.vfs.tree.root();
    let file = w.open("/d/f", R).unwrap();
    let path = || String::from_utf8(now(file.path(&root))).unwrap();
    assert_eq!(path(), "/d/f");
    // A file that is bound over another one is what its name means.
    w.put("/d/other", b"");
    now(w.caller().bind(b"/g", b"/d/other", false)).unwrap();
    let bound = w.open("/d/other", R).unwrap();
    assert_eq!(now(bound.path(&root)), b"/d/other");
    drop(bound);
    now(w.caller().unmount(b"/d/other", false, true)).unwrap();
    w.mv("/d", "/e").unwrap();
    assert_eq!(path(), "/e/f");
    w.mv("/e/f", "/h").unwrap();
    assert_eq!(path(), "/h");
    w.rm("/g").unwrap();
    w.rm("/h").unwrap();
    assert_eq!(path(), "/h (deleted)");
}

/// A part of a path that is resolved by the walker and by a simple model over canonical names.
#[derive(Clone, Debug)]
enum Piece {
    Name(u8),
    Dot,
    DotDot,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn walking_matches_a_model(
        pieces in proptest::collection::vec(
            prop_oneof![(0u8..4).prop_map(Piece::Name), Just(Piece::Dot), Just(Piece::DotDot)], 1..12),
        absolute in any::<bool>(), slash in any::<bool>(), doubled in any::<bool>(),
    ) {
        // /a/b/c are directories, /a/l leads to /a/b, /a/b/u to "..", and d is a file in every
        // directory.
        let w = World::new();
        for d in ["/a", "/a/b", "/a/b/c"] { w.mkdir(d); }
        for d in ["", "/a", "/a/b", "/a/b/c"] { w.put(&format!("{d}/d"), b""); }
        w.cd("/a").unwrap();
        let names = ["a", "b", "c", "d"];
        let mut text = String::new();
        if absolute { text.push('/'); }
        let separator = if doubled { "//" } else { "/" };
        let texts: Vec<&str> = pieces.iter().map(|piece| match piece {
            Piece::Name(n) => names[*n as usize], Piece::Dot => ".", Piece::DotDot => "..",
        }).collect();
        text.push_str(&texts.join(separator));
        if slash { text.push('/'); }
        // The model of a walk: a list of names, all of which must be directories except the last.
        let mut here: Vec<&str> = if absolute { vec![] } else { vec!["a"] };
        let exists = |path: &[&str]| matches!(path, [] | ["a"] | ["a", "b"] | ["a", "b", "c"])
            || (path.last() == Some(&"d") && matches!(&path[..path.len() - 1], [] | ["a"] | ["a", "b"] | ["a", "b", "c"]));
        let mut expected = Ok(());
        for piece in &texts {
            if here.last() == Some(&"d") { expected = Err(Error::ENOTDIR); break; }
            match *piece { "." => {}, ".." => { here.pop(); }, name => here.push(name) }
            if !exists(&here) { expected = Err(Error::ENOENT); break; }
        }
        if expected.is_ok() && slash && here.last() == Some(&"d") { expected = Err(Error::ENOTDIR); }
        let found = w.stat(&text);
        prop_assert_eq!(found.as_ref().map(|_| ()).map_err(|e| *e), expected, "{}", text);
        if let Ok(found) = found {
            let canonical = w.stat(&format!("/{}", here.join("/"))).unwrap();
            prop_assert_eq!(found.number, canonical.number);
        }
    }
}

#[test]
fn links_in_sticky_directories_are_followed_as_protected_symlinks_says() {
    let mut w = World::new();
    w.put("/secret", b"x");
    let sticky = now(w.caller().make_directory(&At::Current, b"/tmp", Mode::new(0o1777)));
    assert_eq!(sticky, Ok(()));
    let tmp = now(w.caller().find(&At::Current, b"/tmp", true)).unwrap().location;
    now(w.caller().change_mode(&tmp, Mode::new(0o1777))).unwrap();
    w.become_user(7, 7);
    w.symlink("/secret", "/tmp/trap");
    assert_eq!(w.cat("/tmp/trap"), Ok(b"x".to_vec()), "one's own");
    w.become_user(8, 8);
    assert_eq!(w.cat("/tmp/trap"), Err(Error::EACCES));
    assert_eq!(w.open("/tmp/trap", OpenFlags::READ | OpenFlags::CREATE).map(drop), Err(Error::EACCES));
    assert_eq!(w.cat("/tmp/trap/"), Err(Error::EACCES));
    w.identity = crate::Identity::superuser();
    assert_eq!(w.cat("/tmp/trap"), Err(Error::EACCES), "the superuser above all");
    w.symlink("/secret", "/tmp/fine");
    w.become_user(8, 8);
    assert_eq!(w.cat("/tmp/fine"), Ok(b"x".to_vec()), "the directory's owner's");
}

#[test]
fn a_user_cannot_link_to_files_of_others() {
    let mut w = World::new();
    for (name, mode) in [("/readable", 0o644), ("/writable", 0o666), ("/lent", 0o4666)] {
        w.put(name, b"");
        let place = now(w.caller().find(&At::Current, name.as_bytes(), true)).unwrap().location;
        now(w.caller().change_mode(&place, Mode::new(mode))).unwrap();
    }
    let root = now(w.caller().find(&At::Current, b"/", true)).unwrap().location;
    now(w.caller().change_mode(&root, Mode::new(0o777))).unwrap();
    let file = w.open("/writable", OpenFlags::READ).unwrap();
    w.become_user(7, 7);
    let link = |old: &str, new: &str| {
        now(w.caller().link(&At::Current, old.as_bytes(), false, false, &At::Current, new.as_bytes()))
    };
    assert_eq!(link("/readable", "/a"), Err(Error::EPERM));
    assert_eq!(link("/lent", "/b"), Err(Error::EPERM));
    assert_eq!(link("/writable", "/c"), Ok(()));
    w.put("/own", b"");
    assert_eq!(link("/own", "/d"), Ok(()));
    let named = now(w.caller().link(&At::File(file), b"", false, true, &At::Current, b"/e"));
    assert_eq!(named, Err(Error::ENOENT), "a descriptor alone is no permission");
}
