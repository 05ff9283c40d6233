//! The file server ends, at any request and at any write to the disk, and another one takes its
//! place: programs see no error, and lose nothing.

#![allow(unreachable_pub, reason = "the common modules are shared by test programs")]

mod common;
mod world;

use common::{Client, DIRECTORY, Disk, FILE, ROOT, Random, campaign, fsck, mkfs};
use ninep::{Call, Mapped, Resume};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use unix::file::OpenFile;
use unix::testing::{World, now};
use unix::vfs::{At, AttributeCondition, Mode, NewAttributes, NewNode, OpenFlags, RenameHow, VnodeRef};
use unix::{Bytes, Error};
use world::{End, OneServer, READ_WRITE, end, mount, mount_on};

/// A file as it should be.
#[derive(Default)]
struct Model {
    number: u64,
    content: Vec<u8>,
    attribute: Option<Vec<u8>>,
}

type Shared = Arc<Mutex<Model>>;

/// Files with their names, and files that are open, which may have no names.
#[derive(Default)]
struct Tree {
    names: BTreeMap<String, Shared>,
    open: Vec<(Arc<OpenFile>, Shared)>,
    directories: BTreeMap<String, u64>,
    symlinks: BTreeMap<String, String>,
    made: u64,
}

fn vnode(w: &World, path: &str) -> VnodeRef {
    now(w.caller().find(&At::Current, path.as_bytes(), false)).unwrap().location.vnode
}

/// Servers end after up to so many requests.
fn ends(servers: &OneServer, seed: u64, most: u64) {
    let mut random = Random(seed);
    let mut choose = move |resuming: bool| {
        let most = if resuming { 8 * most } else { most };
        let end = match random.below(6) {
            0 => End::Taken,
            1 => End::CarriedOut,
            2 => End::Answered,
            _ => End::Writes(random.below(12)),
        };
        Some((random.below(most), end))
    };
    let mut ends = servers.ends.lock().unwrap();
    ends.next = choose(false);
    ends.choose = Some(Box::new(choose));
}

impl Tree {
    fn some(&self, random: &mut Random) -> Option<(String, Shared)> {
        let index = random.below(self.names.len().max(1) as u64) as usize;
        self.names.iter().nth(index).map(|(name, file)| (name.clone(), file.clone()))
    }

    fn new_name(&mut self, random: &mut Random) -> String {
        self.made += 1;
        let directory = random.below(self.directories.len() as u64 + 1) as usize;
        let above = self.directories.keys().nth(directory).map_or("", String::as_str);
        // Some are long, so that directories get more blocks.
        let length = if random.below(4) == 0 { 200 } else { 1 };
        format!("{above}/{}{}", "f".repeat(length), self.made)
    }

    /// Changes something in the same way in both.
    fn step(&mut self, w: &World, random: &mut Random) {
        match random.below(24) {
            0..4 => {
                let name = self.new_name(random);
                let file = w.open(&name, READ_WRITE | OpenFlags::CREATE).unwrap();
                let number = file.metadata().number;
                let model = Arc::new(Mutex::new(Model { number, ..Model::default() }));
                self.names.insert(name, model.clone());
                if random.below(3) == 0 {
                    self.open.push((file, model));
                }
            }
            4..9 => {
                let Some((name, model)) = self.some(random) else { return };
                let file = w.open(&name, READ_WRITE).unwrap();
                change_contents(w, &file, &vnode(w, &name), &mut model.lock().unwrap().content, random);
            }
            9..12 => {
                let Some((name, _)) = self.some(random) else { return };
                now(w.caller().unlink(&At::Current, name.as_bytes())).unwrap();
                self.names.remove(&name);
            }
            12 => {
                let Some((name, model)) = self.some(random) else { return };
                let new = self.new_name(random);
                let here = At::Current;
                now(w.caller().link(&here, name.as_bytes(), false, false, &here, new.as_bytes())).unwrap();
                self.names.insert(new, model);
            }
            13..15 => {
                let (Some((old, model)), Some((other, replaced))) = (self.some(random), self.some(random))
                else {
                    return;
                };
                let is_same = Arc::ptr_eq(&model, &replaced);
                let how = if random.below(3) == 0 { RenameHow::Exchange } else { RenameHow::Replace };
                let new = if random.below(2) == 0 { other.clone() } else { self.new_name(random) };
                if is_same || (how == RenameHow::Exchange && new != other) {
                    return;
                }
                let here = At::Current;
                let caller = w.caller();
                now(caller.rename(&here, old.as_bytes(), &here, new.as_bytes(), how)).unwrap();
                self.names.remove(&old);
                let before = self.names.insert(new, model);
                if let (Some(before), true) = (before, how == RenameHow::Exchange) {
                    self.names.insert(old, before);
                }
            }
            15 => {
                self.made += 1;
                let name = format!("/d{}", self.made);
                w.mkdir(&name);
                let number = vnode(w, &name).number();
                self.directories.insert(name, number);
            }
            16 => {
                let Some((name, _)) = self.directories.first_key_value() else { return };
                let name = name.clone();
                let is_empty = !self.names.keys().any(|file| file.starts_with(&format!("{name}/")));
                let removed = now(w.caller().remove_directory(&At::Current, name.as_bytes()));
                assert_eq!(removed, if is_empty { Ok(()) } else { Err(Error::ENOTEMPTY) });
                if is_empty {
                    self.directories.remove(&name);
                }
            }
            17 => {
                let Some((name, model)) = self.some(random) else { return };
                let value = vec![random.below(256) as u8; random.below(700) as usize];
                let model = &mut model.lock().unwrap().attribute;
                let set = match random.below(3) {
                    0 => None,
                    _ => Some(&*value),
                };
                let done = now(vnode(w, &name).set_attribute(b"user.a", set, AttributeCondition::Any));
                let expected = if set.is_none() && model.is_none() { Err(Error::ENODATA) } else { Ok(()) };
                assert_eq!(done, expected);
                *model = set.map(<[u8]>::to_vec);
            }
            18 => {
                self.made += 1;
                let (name, text) = (format!("/s{}", self.made), "t".repeat(random.below(200) as usize + 1));
                w.symlink(&text, &name);
                self.symlinks.insert(name, text);
            }
            19..22 if !self.open.is_empty() => {
                let index = random.below(self.open.len() as u64) as usize;
                if random.below(3) == 0 {
                    self.open.swap_remove(index);
                    return;
                }
                let (file, model) = &self.open[index];
                change_contents(w, file, file.vnode().unwrap(), &mut model.lock().unwrap().content, random);
            }
            22 => now(w.vfs.synchronize()).unwrap(),
            _ => self.look(w, random),
        }
    }

    fn look(&self, w: &World, random: &mut Random) {
        if let Some((name, model)) = self.some(random) {
            check(w, &name, &model.lock().unwrap());
        }
    }

    fn check(&self, w: &World) {
        for (name, model) in &self.names {
            check(w, name, &model.lock().unwrap());
        }
        for (file, model) in &self.open {
            let mut to = Bytes::empty(1 << 20);
            now(file.read_at(&w.caller(), 0, &mut to)).unwrap();
            assert!(to.done() == model.lock().unwrap().content);
            assert_eq!(file.metadata().number, model.lock().unwrap().number);
        }
        for (name, number) in &self.directories {
            assert_eq!(vnode(w, name).number(), *number, "{name}");
        }
        for (name, text) in &self.symlinks {
            let found = now(w.caller().read_link(&At::Current, name.as_bytes())).unwrap();
            assert_eq!(found, text.as_bytes());
        }
        let in_root = |name: &&String| name.matches('/').count() == 1;
        let mut expected: Vec<&str> = self.names.keys().filter(in_root).map(|name| &name[1..]).collect();
        expected.extend(self.directories.keys().chain(self.symlinks.keys()).map(|name| &name[1..]));
        expected.push("lost+found");
        expected.sort_unstable();
        let mut found = w.list("/").unwrap();
        found.sort();
        assert_eq!(found, expected);
    }
}

fn check(w: &World, name: &str, model: &Model) {
    assert!(w.cat(name).unwrap() == model.content, "{name}");
    let vnode = vnode(w, name);
    assert_eq!(vnode.number(), model.number, "{name}");
    let attribute = now(vnode.attribute(b"user.a"));
    assert_eq!(attribute, model.attribute.clone().ok_or(Error::ENODATA), "{name}");
}

fn change_contents(w: &World, file: &OpenFile, vnode: &VnodeRef, model: &mut Vec<u8>, random: &mut Random) {
    let (offset, length) = (random.below(60_000), random.below(20_000) + 1);
    let (offset, length) = match random.below(2) {
        0 => (offset, length),
        _ => (offset / 4096 * 4096, length.next_multiple_of(4096)),
    };
    let end = (offset + length) as usize;
    match random.below(12) {
        0..6 => {
            let byte = random.below(255) as u8 + 1;
            now(file.write_at(&w.caller(), offset, &mut Bytes::of(&vec![byte; length as usize]))).unwrap();
            model.resize(model.len().max(end), 0);
            model[offset as usize..end].fill(byte);
        }
        6 => {
            now(file.truncate(&w.caller(), offset)).unwrap();
            model.resize(offset as usize, 0);
        }
        7 => {
            now(vnode.allocate(offset, length, true, true)).unwrap();
            let range = model.len().min(offset as usize)..model.len().min(end);
            model[range].fill(0);
        }
        8 => {
            now(vnode.allocate(offset, length, false, false)).unwrap();
            model.resize(model.len().max(end), 0);
        }
        // Memory is short: the pages are written and forgotten.
        9..11 => now(file.memory(true).unwrap().write_back(0, u64::MAX, true)).unwrap(),
        _ => now(file.synchronize()).unwrap(),
    }
}

/// Has a file system used while its server ends. Returns how often it has, and how often it has
/// while it was given what the one before had lost.
fn use_files(seed: u64, block: &str, steps: usize, most: u64) -> (u64, u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let disk = mkfs(24, &["-b", block]);
    let (w, _, servers) = mount_on(&disk, false).unwrap();
    let mut tree = Tree::default();
    ends(&servers, seed * 31 + 7, most);
    for step in 0..steps {
        let before = servers.ends.lock().unwrap().count;
        tree.step(&w, &mut random);
        servers.run();
        if servers.ends.lock().unwrap().count > before && step % 7 == 0 {
            tree.check(&w);
        }
    }
    tree.check(&w);
    let mut counted = (0, 0);
    // Open files that have lost their names are freed.
    tree.open.clear();
    end(w, &disk);
    {
        let ends = servers.ends.lock().unwrap();
        counted.0 += ends.count;
        counted.1 += ends.resuming;
    }
    let log = servers.log.lock().unwrap();
    assert!(!log.iter().any(|line| line.contains("for good")), "{log:?}");
    // All is on the disk.
    let (w, _, _) = mount_on(&Disk::of(disk.data()), false).unwrap();
    tree.check(&w);
    counted
}

#[test]
fn nothing_is_lost_when_file_servers_end() {
    let (mut all, mut resuming) = (0, 0);
    for seed in 1..=campaign("EXT4_RESTARTS", 10) {
        let (count, again) = use_files(seed, ["4096", "4096", "1024"][seed as usize % 3], 600, 20);
        (all, resuming) = (all + count, resuming + again);
    }
    println!("{all} file servers ended, {resuming} of them while they resumed");
    assert!(all > 300 && resuming > 20, "{all}, {resuming}");
}

/// The next file server ends when it has the next request.
fn ends_now(servers: &OneServer, end: End) {
    servers.ends.lock().unwrap().next = Some((0, end));
}

#[test]
fn a_request_that_was_given_up_is_not_lost_when_it_was_carried_out() {
    let disk = mkfs(16, &["-b", "4096"]);
    let (w, _, servers) = mount_on(&disk, false).unwrap();
    w.put("/f", b"content");
    servers.is_slow.store(true, Ordering::Relaxed);
    {
        let attributes =
            NewAttributes { mode: Mode::new(0o755), user: 0, group: 0, account: None, lists: None };
        let root = vnode(&w, "/");
        let mut making = Box::pin(root.create(b"d", NewNode::Directory, attributes));
        assert!(making.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    servers.is_slow.store(false, Ordering::Relaxed);
    servers.run();
    assert!(servers.tasks.lock().unwrap().is_empty());
    ends_now(&servers, End::Taken);
    now(w.caller().unlink(&At::Current, b"/f")).unwrap();
    assert_eq!(servers.ends.lock().unwrap().count, 1);
    let mut names = w.list("/").unwrap();
    names.sort();
    assert_eq!(names, ["d", "lost+found"]);
    end(w, &disk);
}

#[test]
fn file_servers_end_while_a_file_system_is_unmounted_or_mounted_again() {
    for at in [End::Taken, End::Writes(0), End::Writes(3), End::CarriedOut, End::Answered] {
        let disk = mkfs(16, &["-b", "4096"]);
        let (w, _, servers) = mount_on(&disk, false).unwrap();
        w.put("/f", &[7; 5000]);
        let file_system = vnode(&w, "/").file_system();
        for read_only in [true, false] {
            ends_now(&servers, at);
            now(file_system.reconfigure(b"", read_only)).unwrap();
            assert_eq!(w.cat("/f").unwrap(), [7; 5000]);
            assert_eq!(file_system.is_read_only(), read_only);
        }
        w.put("/g", b"g");
        ends_now(&servers, at);
        now(file_system.synchronize()).unwrap();
        let open = w.open("/g", READ_WRITE).unwrap();
        now(w.caller().unlink(&At::Current, b"/g")).unwrap();
        ends_now(&servers, at);
        drop(file_system);
        now(w.vfs.end_file_systems()).unwrap();
        drop(open);
        let log = servers.log.lock().unwrap().clone();
        assert!(!log.is_empty() && !log.iter().any(|line| line.contains("for good")), "{at:?}: {log:?}");
        assert_eq!(fsck(&disk.data()), "", "{at:?}");
        let w = mount(&disk, true).unwrap();
        assert_eq!(w.cat("/f").unwrap(), [7; 5000]);
        assert_eq!(w.open("/g", OpenFlags::READ).err(), Some(Error::ENOENT));
    }
}

#[test]
fn without_another_file_server_requests_fail() {
    let disk = mkfs(16, &["-b", "4096"]);
    let (w, _, servers) = mount_on(&disk, false).unwrap();
    w.mkdir("/stored");
    now(w.vfs.synchronize()).unwrap();
    w.mkdir("/lost");
    servers.ends.lock().unwrap().for_good = true;
    ends_now(&servers, End::Taken);
    let make = |name: &str| now(w.caller().make_directory(&At::Current, name.as_bytes(), Mode::new(0o755)));
    assert_eq!(make("/d"), Err(Error::EIO));
    assert_eq!(make("/e"), Err(Error::EIO));
    assert_eq!(servers.log.lock().unwrap().len(), 1);
    assert!(now(w.vfs.end_file_systems()).is_err());
    let w = mount(&disk, false).unwrap();
    let mut names = w.list("/").unwrap();
    names.sort();
    assert_eq!(names, ["lost+found", "stored"]);
    end(w, &disk);
}

/// What the next file server is told to choose, it chooses; other requests do not take it before.
#[test]
fn numbers_and_places_are_as_they_were() {
    const PAGE: u64 = 4096;
    let disk = mkfs(16, &["-b", "4096"]);
    let mut before = Client::mount(&disk, false).unwrap();
    let (file, attributes) = before.make(ROOT, "f", FILE).unwrap();
    before.sync().unwrap();
    let call = Call::Place { fid: file, offset: 0, length: PAGE };
    let Mapped::Unwritten { place, .. } = before.call(&call, |body| body.mapped()).unwrap() else {
        panic!("it is new")
    };
    drop(before);
    let mut next = Client::resume(&disk);
    let step = |next: &mut Client, step| next.perform(&Call::Resume { step });
    let number = next.number();
    step(&mut next, Resume::Reserve { place, length: PAGE }).unwrap();
    step(&mut next, Resume::Name { fid: number, inode: attributes.qid.path }).unwrap();
    step(&mut next, Resume::Choose { inode: 50 }).unwrap();
    // The directory gets a block, too.
    let (_, made) = next.make(ROOT, "d", DIRECTORY).unwrap();
    assert_eq!(made.qid.path, 50);
    step(&mut next, Resume::Place { fid: number, offset: 0, length: PAGE, place }).unwrap();
    let call = Call::Place { fid: number, offset: 0, length: PAGE };
    let found = next.call(&call, |body| body.mapped()).unwrap();
    assert_eq!(found, Mapped::Unwritten { length: PAGE, place });
    // A number that a file with a name has, a file that is not there, and steps after the end.
    assert!(step(&mut next, Resume::Choose { inode: 50 }).is_err());
    assert!(step(&mut next, Resume::Choose { inode: 1 << 40 }).is_err());
    assert!(step(&mut next, Resume::Name { fid: 1000, inode: 60 }).is_err());
    step(&mut next, Resume::End).unwrap();
    assert!(step(&mut next, Resume::End).is_err());
    next.perform(&Call::Unmount).unwrap();
    assert_eq!(fsck(&disk.data()), "");
}

/// The file server ends whenever it has carried out a request and has not answered. It has not
/// committed the request then, also when so much has changed that it empties the journal.
#[test]
fn no_request_is_committed_before_it_is_answered() {
    let disk = mkfs(16, &["-b", "4096"]);
    let (w, _, servers) = mount_on(&disk, false).unwrap();
    let root = vnode(&w, "/");
    for number in 0..250 {
        let attributes =
            NewAttributes { mode: Mode::new(0o755), user: 0, group: 0, account: None, lists: None };
        ends_now(&servers, End::CarriedOut);
        let made = now(root.create(format!("f{number}").as_bytes(), NewNode::Regular, attributes));
        assert_eq!(made.map(drop), Ok(()), "{number}");
    }
    assert_eq!(servers.ends.lock().unwrap().count, 250);
    drop(root);
    assert_eq!(w.list("/").unwrap().len(), 251);
    end(w, &disk);
}
