//! Tests of mount namespaces, of what is propagated, and of pivot_root.

use super::*;
use crate::account::Account;
use crate::credentials::Credentials;
use crate::namespace::UserNamespace;
use crate::testing::{World, memory, now};
use crate::tmpfs::{Tmpfs, TmpfsOptions};

/// The account of a user.
fn account() -> Arc<Account> {
    Account::new(1000, crate::account::Settings::new(1 << 30))
}

impl World {
    fn memory_mount(&self, path: &str) -> Result<()> {
        let root = Tmpfs::new(&TmpfsOptions::for_memory(100), memory(), self.environment.clone()).unwrap();
        now(self.caller().mount(path.as_bytes(), root, "tmpfs", MountFlags::empty()))
    }

    fn propagate(&self, path: &str, kind: Propagation) {
        now(self.caller().propagate(path.as_bytes(), kind, false)).unwrap();
    }

    fn unmount(&self, path: &str) -> Result<()> {
        now(self.caller().unmount(path.as_bytes(), false, true))
    }

    /// Does something in another namespace, which begins as a copy of this one.
    fn elsewhere<T>(&self, work: impl FnOnce(&Caller<'_>, &Directories) -> T) -> T {
        let directories = self.directories.copy();
        directories.unshare_mounts(&UserNamespace::FIRST, &account()).unwrap();
        let caller = Caller { directories: &directories, ..self.caller() };
        work(&caller, &directories)
    }
}

fn exists(caller: &Caller<'_>, path: &str) -> bool {
    now(caller.find(&At::Current, path.as_bytes(), true)).is_ok()
}

#[test]
fn a_namespace_changes_alone_and_leaves_nothing_behind() {
    let w = World::new();
    for directory in ["/m", "/n"] {
        w.mkdir(directory);
    }
    w.memory_mount("/m").unwrap();
    w.mkdir("/m/in");
    let tmpfs = Arc::downgrade(&w.vfs.tree.mounts()[1].file_system());
    let mounts = w.vfs.tree.roots_of_all().len();
    let kept = w.elsewhere(|caller, directories| {
        assert_eq!(w.vfs.tree.roots_of_all().len(), 2 * mounts);
        assert!(exists(caller, "/m/in"));
        now(caller.bind(b"/m", b"/n", false)).unwrap();
        assert!(exists(caller, "/n/in") && !exists(&w.caller(), "/n/in"));
        now(caller.unmount(b"/m", false, true)).unwrap();
        assert!(!exists(caller, "/m/in") && exists(&w.caller(), "/m/in"));
        // A location of another namespace cannot be used for mounts.
        let foreign = now(w.caller().find(&At::Current, b"/m", true)).unwrap().location;
        let tree = directories.tree();
        assert_eq!(tree.unmount(foreign.clone(), true), Err(Error::EINVAL));
        assert_eq!(tree.copy_at(&foreign, false).err(), Some(Error::EINVAL));
        assert_ne!(tree.number(), w.vfs.tree.number());
        Arc::downgrade(&tree.mounts()[1])
    });
    assert_eq!(kept.strong_count(), 0, "the mounts of the namespace are released");
    assert_eq!(w.vfs.tree.roots_of_all().len(), mounts);
    w.unmount("/m").unwrap();
    assert_eq!(tmpfs.strong_count(), 0);
}

#[test]
fn the_root_and_the_working_directory_of_a_copy_are_in_the_copy() {
    let w = World::new();
    w.mkdir("/m");
    w.memory_mount("/m").unwrap();
    w.mkdir("/m/d");
    now(w.caller().change_directory(&At::Current, b"/m/d", false)).unwrap();
    w.elsewhere(|caller, directories| {
        assert_eq!(caller.current_path(), Ok(b"/m/d".to_vec()));
        let mount = directories.current().mount;
        assert!(directories.tree().mounts().iter().any(|known| Arc::ptr_eq(known, &mount)));
        assert!(w.vfs.tree.mounts().iter().all(|known| !Arc::ptr_eq(known, &mount)));
        assert_eq!(now(caller.unmount(b"/m", false, true)), Err(Error::EBUSY));
    });
}

#[test]
fn mounts_are_propagated_to_peers_and_slaves_and_not_back() {
    let w = World::new();
    for directory in ["/a", "/b", "/c"] {
        w.mkdir(directory);
    }
    w.memory_mount("/a").unwrap();
    w.propagate("/a", Propagation::Shared);
    w.mkdir("/a/x");
    w.mkdir("/a/y");
    now(w.caller().bind(b"/a", b"/b", false)).unwrap();
    now(w.caller().bind(b"/a", b"/c", false)).unwrap();
    w.propagate("/c", Propagation::Slave);
    w.elsewhere(|caller, _| {
        w.memory_mount("/b/x").unwrap();
        w.mkdir("/b/x/in");
        for path in ["/a/x/in", "/c/x/in"] {
            assert!(exists(&w.caller(), path) && exists(caller, path), "{path}");
        }
        w.memory_mount("/c/y").unwrap();
        w.mkdir("/c/y/own");
        assert!(!exists(&w.caller(), "/a/y/own") && !exists(caller, "/c/y/own"));
        now(caller.unmount(b"/a/x", false, true)).unwrap();
        assert!(!exists(&w.caller(), "/b/x/in") && !exists(&w.caller(), "/c/x/in"));
    });
    // A private mount takes no part, and one that cannot be bound is not bound.
    w.propagate("/b", Propagation::Private);
    w.memory_mount("/a/x").unwrap();
    w.mkdir("/a/x/in");
    assert!(!exists(&w.caller(), "/b/x/in") && exists(&w.caller(), "/c/x/in"));
    w.propagate("/b", Propagation::Unbindable);
    w.mkdir("/d");
    assert_eq!(now(w.caller().bind(b"/b", b"/d", false)), Err(Error::EINVAL));
    assert_eq!(now(w.caller().propagate(b"/d", Propagation::Slave, true)), Err(Error::EINVAL));
    // What is mounted in a shared mount cannot be moved out of it.
    assert_eq!(now(w.caller().move_mount(b"/a/x", b"/d")), Err(Error::EINVAL));
    // The last of a group has no peers to become a slave of.
    w.propagate("/a", Propagation::Private);
    w.propagate("/a", Propagation::Shared);
    w.propagate("/a", Propagation::Slave);
    let mount = now(w.caller().find(&At::Current, b"/a", true)).unwrap().location.mount;
    assert_eq!(mount.sharing(), Sharing::default());
}

#[test]
fn what_is_propagated_to_a_mount_point_goes_beneath_what_is_mounted_there() {
    let w = World::new();
    for directory in ["/a", "/b"] {
        w.mkdir(directory);
    }
    w.memory_mount("/a").unwrap();
    w.mkdir("/a/x");
    w.propagate("/a", Propagation::Shared);
    now(w.caller().bind(b"/a", b"/b", false)).unwrap();
    w.propagate("/b", Propagation::Slave);
    w.memory_mount("/b/x").unwrap();
    w.mkdir("/b/x/own");
    for detach in [false, true] {
        w.memory_mount("/a/x").unwrap();
        w.mkdir("/a/x/new");
        assert!(exists(&w.caller(), "/b/x/own") && !exists(&w.caller(), "/b/x/new"));
        now(w.caller().unmount(b"/a/x", detach, true)).unwrap();
        assert!(exists(&w.caller(), "/b/x/own"), "it stays when what is beneath is removed");
    }
    w.memory_mount("/a/x").unwrap();
    w.mkdir("/a/x/new");
    w.unmount("/b/x").unwrap();
    assert!(exists(&w.caller(), "/b/x/new"));
    w.unmount("/a/x").unwrap();
    assert_eq!(w.vfs.tree.mounts().len(), 3);
}

#[test]
fn copies_in_peers_are_peers_and_slaves_of_those_in_their_master() {
    let w = World::new();
    for directory in ["/a", "/b", "/c", "/d"] {
        w.mkdir(directory);
    }
    w.memory_mount("/a").unwrap();
    w.mkdir("/a/x");
    w.propagate("/a", Propagation::Shared);
    now(w.caller().bind(b"/a", b"/b", false)).unwrap();
    w.propagate("/b", Propagation::Slave);
    w.propagate("/b", Propagation::Shared);
    for path in ["/c", "/d"] {
        now(w.caller().bind(b"/b", path.as_bytes(), false)).unwrap();
    }
    w.propagate("/d", Propagation::Slave);
    w.memory_mount("/a/x").unwrap();
    w.mkdir("/a/x/y");
    assert!(["/b/x/y", "/c/x/y", "/d/x/y"].iter().all(|path| exists(&w.caller(), path)));
    let sharing = |path: &str| {
        now(w.caller().find(&At::Current, path.as_bytes(), true)).unwrap().location.mount.sharing()
    };
    assert_eq!(sharing("/b/x").master, sharing("/a/x").peers);
    assert_eq!(sharing("/c/x"), sharing("/b/x"));
    assert_eq!(sharing("/d/x"), Sharing { peers: None, master: sharing("/b/x").peers, unbindable: false });
    w.memory_mount("/c/x/y").unwrap();
    w.mkdir("/c/x/y/deep");
    assert!(exists(&w.caller(), "/b/x/y/deep") && exists(&w.caller(), "/d/x/y/deep"));
    assert!(!exists(&w.caller(), "/a/x/y/deep"));
}

#[test]
fn a_mount_is_busy_while_a_copy_elsewhere_is_used() {
    let w = World::new();
    w.mkdir("/a");
    w.memory_mount("/a").unwrap();
    w.propagate("/a", Propagation::Shared);
    w.mkdir("/a/x");
    w.elsewhere(|caller, _| {
        w.memory_mount("/a/x").unwrap();
        now(caller.change_directory(&At::Current, b"/a/x", false)).unwrap();
        assert_eq!(w.unmount("/a/x"), Err(Error::EBUSY));
        assert!(exists(caller, "/a/x") && exists(&w.caller(), "/a/x"));
        now(caller.change_directory(&At::Current, b"/", false)).unwrap();
        w.unmount("/a/x").unwrap();
    });
}

#[test]
fn a_bind_that_fails_leaves_nothing_behind() {
    let w = World::new();
    for directory in ["/s", "/t"] {
        w.mkdir(directory);
    }
    w.memory_mount("/s").unwrap();
    w.mkdir("/s/m");
    w.memory_mount("/s/m").unwrap();
    w.memory_mount("/t").unwrap();
    let count = || Arc::strong_count(&w.vfs.tree.mounts()[2].file_system());
    let before = count();
    w.open("/file", OpenFlags::WRITE | OpenFlags::CREATE).unwrap();
    assert_eq!(now(w.caller().bind(b"/s", b"/file", true)), Err(Error::ENOTDIR));
    assert_eq!(count(), before);
}

#[test]
fn recursive_binds_copy_what_is_below_and_not_beside() {
    let w = World::new();
    for directory in ["/s", "/s/in", "/s/in/m", "/s/out", "/t"] {
        w.mkdir(directory);
    }
    w.memory_mount("/s/in/m").unwrap();
    w.mkdir("/s/in/m/deep");
    w.memory_mount("/s/in/m/deep").unwrap();
    w.mkdir("/s/in/m/deep/file");
    w.memory_mount("/s/out").unwrap();
    now(w.caller().bind(b"/s/in", b"/t", true)).unwrap();
    assert!(exists(&w.caller(), "/t/m/deep/file"));
    assert_eq!(w.vfs.tree.mounts().len(), 1 + 3 + 3);
    now(w.caller().unmount(b"/t", true, true)).unwrap();
    assert_eq!(w.vfs.tree.mounts().len(), 1 + 3);
    assert!(!exists(&w.caller(), "/t/m") && exists(&w.caller(), "/s/in/m/deep/file"));
}

#[test]
fn a_copy_that_is_in_no_tree_is_released_with_its_file() {
    let w = World::new();
    for directory in ["/s", "/t"] {
        w.mkdir(directory);
    }
    w.memory_mount("/s").unwrap();
    w.mkdir("/s/m");
    w.memory_mount("/s/m").unwrap();
    let at = now(w.caller().find(&At::Current, b"/s", true)).unwrap().location;
    let count = || Arc::strong_count(&w.vfs.tree.mounts()[2].file_system());
    let before = count();
    let file = w.caller().copy_mount(&at, true).unwrap();
    assert!(w.vfs.tree.is_detached(file.location().unwrap()));
    let below = Arc::downgrade(&file.location().unwrap().mount.children()[0]);
    drop(file);
    assert_eq!((below.strong_count(), count()), (0, before));
    // One that has been attached stays when the file is closed.
    let file = w.caller().copy_mount(&at, true).unwrap();
    let to = now(w.caller().find(&At::Current, b"/t", true)).unwrap().location;
    w.caller().move_mount_to(file.location().unwrap(), to.clone()).unwrap();
    drop(file);
    w.mkdir("/s/m/seen");
    assert!(exists(&w.caller(), "/t/m/seen"));
    // What is below a copy cannot be taken out of it.
    let file = w.caller().copy_mount(&at, true).unwrap();
    let inner = file.location().unwrap().mount.children()[0].root();
    assert_eq!(w.caller().move_mount_to(&inner, to), Err(Error::EINVAL));
}

#[test]
fn pivot_root_exchanges_the_root() {
    let w = World::new();
    for directory in ["/new", "/new/old", "/d"] {
        w.mkdir(directory);
    }
    let pivot = |new: &str, put: &str| now(w.caller().pivot_root(new.as_bytes(), put.as_bytes()));
    assert_eq!(pivot("/new", "/new/old").err(), Some(Error::EBUSY), "nothing is mounted there");
    w.memory_mount("/new").unwrap();
    w.mkdir("/new/put");
    w.mkdir("/new/plain");
    assert_eq!(pivot("/new", "/d").err(), Some(Error::EBUSY));
    assert_eq!(pivot("/new/plain", "/new/put").err(), Some(Error::EINVAL));
    assert_eq!(pivot("/new/put", "/new").err(), Some(Error::EINVAL));
    w.propagate("/new", Propagation::Shared);
    assert_eq!(pivot("/new", "/new/put").err(), Some(Error::EINVAL));
    // The mount that moves may be shared, but not the one that gets the old root.
    w.memory_mount("/new/put").unwrap();
    w.propagate("/new/put", Propagation::Shared);
    w.propagate("/new", Propagation::Private);
    assert_eq!(pivot("/new", "/new/put").err(), Some(Error::EINVAL));
    w.unmount("/new/put").unwrap();
    let (old, new) = pivot("/new", "/new/put").unwrap();
    w.directories.follow_pivot(&old, &new);
    assert!(exists(&w.caller(), "/plain") && exists(&w.caller(), "/put/d"));
    assert!(w.vfs.tree.root().same(&w.directories.root()));
    now(w.caller().unmount(b"/put", true, true)).unwrap();
    assert!(!exists(&w.caller(), "/put/d"));
    assert_eq!(w.vfs.tree.mounts().len(), 1);
    assert_eq!(w.unmount("/"), Err(Error::EBUSY));
    // Both may be the working directory: the old root is then on top, and is removed from there.
    w.memory_mount("/put").unwrap();
    w.mkdir("/put/last");
    now(w.caller().change_directory(&At::Current, b"/put", false)).unwrap();
    let (old, new) = pivot(".", ".").unwrap();
    w.directories.follow_pivot(&old, &new);
    now(w.caller().unmount(b".", true, true)).unwrap();
    assert!(exists(&w.caller(), "/last") && !exists(&w.caller(), "/plain"));
}

#[test]
fn a_tree_has_a_most_mounts_and_is_charged_for_them() {
    let w = World::new();
    w.mkdir("/m");
    let poor = Account::new(1000, crate::account::Settings::new(2 * 1024 + 8 * 512));
    let directories = w.directories.copy();
    directories.unshare_mounts(&UserNamespace::FIRST, &poor).unwrap();
    let caller = Caller { directories: &directories, ..w.caller() };
    let mount = || {
        let root = Tmpfs::new(&TmpfsOptions::for_memory(100), memory(), w.environment.clone()).unwrap();
        now(caller.mount(b"/m", root, "tmpfs", MountFlags::empty()))
    };
    let made = (0..8).take_while(|_| mount().is_ok()).count();
    assert!((1..8).contains(&made), "{made}");
    assert_eq!(mount(), Err(Error::ENOMEM));
    now(caller.unmount(b"/m", false, true)).unwrap();
    assert_eq!(mount(), Ok(()));
    // What is bound in itself, with what is mounted below it, doubles each time.
    let bind = |index: usize| {
        let path = format!("/{index}");
        w.mkdir(&path);
        now(w.caller().bind(b"/", path.as_bytes(), true))
    };
    let doubled = (0..20).take_while(|index| bind(*index).is_ok()).count();
    assert!((10..20).contains(&doubled), "{doubled}");
    assert_eq!(bind(20), Err(Error::ENOSPC));
    assert!(w.directories.tree().mounts().len() <= 10_000);
    drop(directories);
    assert_eq!(poor.amount(crate::account::Kept::ServerMemory), 0);
}

impl World {
    /// The directories of a process in another namespace of mounts, which belongs to another one
    /// of users and is charged to `account`.
    fn directories_of_others(&self, account: &Arc<Account>) -> Directories {
        let owner = UserNamespace::make(&Credentials::superuser(), account).unwrap();
        let directories = self.directories.copy();
        directories.unshare_mounts(&owner, account).unwrap();
        directories
    }
}

#[test]
fn what_was_covered_for_a_namespace_stays_covered_in_mounts_that_are_gone() {
    let w = World::new();
    for directory in ["/a", "/a/cover", "/a/cover/secret", "/b", "/c"] {
        w.mkdir(directory);
    }
    w.memory_mount("/a/cover").unwrap();
    let directories = w.directories_of_others(&account());
    let caller = Caller { directories: &directories, ..w.caller() };
    let place = |path: &[u8]| now(caller.find(&At::Current, path, true)).unwrap().location;
    let is_covered = |above: &Location| {
        let vnode = now(above.vnode.lookup(b"cover")).unwrap();
        let seen = Location { mount: above.mount.clone(), vnode: vnode.clone() }.visible();
        !same(&seen.vnode, &vnode)
    };
    // After the mount in which it is was removed,
    now(caller.bind(b"/a", b"/b", true)).unwrap();
    let removed = place(b"/b");
    now(caller.unmount(b"/b", true, true)).unwrap();
    assert!(is_covered(&removed));
    // wherever that gets,
    assert_eq!(directories.tree().attach(place(b"/c"), &removed.mount), Err(Error::EINVAL));
    // and after the end of the namespace.
    let left = place(b"/a");
    let covers = [&removed, &left].map(|above| Arc::downgrade(&above.mount.children()[0]));
    drop(directories);
    assert!(is_covered(&left) && is_covered(&removed));
    drop((removed, left));
    assert!(covers.iter().all(|mount| mount.strong_count() == 0), "nothing keeps them");
}

#[test]
fn a_namespace_without_room_does_not_keep_others_from_mounting() {
    let w = World::new();
    w.mkdir("/m");
    w.propagate("/", Propagation::Shared);
    let poor = Account::new(1000, crate::account::Settings::new(2 * 1024 + 8 * 512));
    let directories = w.directories_of_others(&poor);
    let caller = Caller { directories: &directories, ..w.caller() };
    let fill = || {
        let root = Tmpfs::new(&TmpfsOptions::for_memory(100), memory(), w.environment.clone()).unwrap();
        now(caller.mount(b"/m", root, "tmpfs", MountFlags::empty()))
    };
    while fill().is_ok() {}
    let before = directories.tree().mounts().len();
    assert_eq!(w.memory_mount("/m"), Ok(()));
    assert_eq!(directories.tree().mounts().len(), before);
    // With room it gets them.
    now(caller.unmount(b"/m", false, true)).unwrap();
    w.unmount("/m").unwrap();
    w.memory_mount("/m").unwrap();
    assert_eq!(directories.tree().mounts().len(), before);
}
