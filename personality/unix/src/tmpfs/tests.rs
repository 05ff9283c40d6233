//! Tests of tmpfs against a model, and of its limits.

use super::FILE_ROOM;
use crate::account::{Account, Kept, Settings};
use crate::file::Whence;
use crate::testing::{World, now};
use crate::tmpfs::TmpfsOptions;
use crate::tmpfs::directory::{ODD, summary};
use crate::vfs::{At, Mode, OpenFlags, RenameHow};
use crate::{Bytes, Error, Result};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Clone, Debug)]
enum FileStep {
    Write(u64, usize),
    Append(usize),
    Read(u64, usize),
    Truncate(u64),
    Punch(u64, u64),
    Allocate(u64, u64, bool),
}

fn file_step() -> impl Strategy<Value = FileStep> {
    let offset = 0u64..20000;
    prop_oneof![
        (offset.clone(), 1usize..9000).prop_map(|(o, n)| FileStep::Write(o, n)),
        (1usize..5000).prop_map(FileStep::Append),
        (offset.clone(), 1usize..9000).prop_map(|(o, n)| FileStep::Read(o, n)),
        offset.clone().prop_map(FileStep::Truncate),
        (offset.clone(), 1u64..9000).prop_map(|(o, n)| FileStep::Punch(o, n)),
        (offset, 1u64..9000, any::<bool>()).prop_map(|(o, n, k)| FileStep::Allocate(o, n, k)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// A file behaves as an array of bytes does.
    #[test]
    fn files_match_a_vector(steps in proptest::collection::vec(file_step(), 1..40)) {
        let w = World::new();
        let file = w.open("/f", OpenFlags::READ_WRITE | OpenFlags::CREATE).unwrap();
        let append = w.open("/f", OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
        let caller = w.caller();
        let mut model: Vec<u8> = Vec::new();
        let mut next = 0u8;
        let mut fresh = |n: usize| -> Vec<u8> { next = next.wrapping_add(1).max(1); vec![next; n] };
        for step in steps {
            match step {
                FileStep::Write(offset, count) => {
                    let bytes = fresh(count);
                    prop_assert_eq!(now(file.write_at(&caller, offset, &mut Bytes::of(&bytes))), Ok(count));
                    let end = offset as usize + count;
                    model.resize(model.len().max(end), 0);
                    model[offset as usize..end].copy_from_slice(&bytes);
                }
                FileStep::Append(count) => {
                    let bytes = fresh(count);
                    prop_assert_eq!(now(append.write(&caller, &mut Bytes::of(&bytes))), Ok(count));
                    model.extend(bytes);
                }
                FileStep::Read(offset, count) => {
                    let mut to = Bytes::empty(count);
                    now(file.read_at(&caller, offset, &mut to)).unwrap();
                    let rest = model.get(offset as usize..).unwrap_or_default();
                    prop_assert_eq!(to.done(), &rest[..rest.len().min(count)]);
                }
                FileStep::Truncate(size) => {
                    now(file.truncate(&caller, size)).unwrap();
                    model.resize(size as usize, 0);
                }
                FileStep::Punch(offset, count) => {
                    now(file.allocate(&caller, offset, count, true, true)).unwrap();
                    let end = model.len().min((offset + count) as usize);
                    if let Some(range) = model.get_mut(offset as usize..end) { range.fill(0); }
                }
                FileStep::Allocate(offset, count, keep) => {
                    now(file.allocate(&caller, offset, count, keep, false)).unwrap();
                    if !keep { model.resize(model.len().max((offset + count) as usize), 0); }
                }
            }
            prop_assert_eq!(file.metadata().size, model.len() as u64);
        }
        prop_assert_eq!(w.cat("/f").unwrap(), model);
        let status = file.location().unwrap().vnode.file_system().status();
        prop_assert_eq!((status.blocks - status.free_blocks) * 8, file.metadata().blocks);
        drop((file, append));
        now(caller.unlink(&At::Current, b"/f")).unwrap();
        let status = now(caller.file_system_status(&w.vfs.tree.root())).unwrap();
        prop_assert_eq!((status.free_blocks, status.free_files), (status.blocks, status.files - 1));
    }
}

#[derive(Clone, Debug)]
enum TreeStep {
    Make(Vec<u8>),
    Put(Vec<u8>),
    Remove(Vec<u8>),
    RemoveDirectory(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>, u8),
}

fn tree_step() -> impl Strategy<Value = TreeStep> {
    let path = || proptest::collection::vec(0u8..3, 1..4);
    prop_oneof![
        3 => path().prop_map(TreeStep::Make),
        2 => path().prop_map(TreeStep::Put),
        1 => path().prop_map(TreeStep::Remove),
        1 => path().prop_map(TreeStep::RemoveDirectory),
        3 => (path(), path(), 0u8..3).prop_map(|(a, b, how)| TreeStep::Rename(a, b, how)),
    ]
}

/// The model of a file system: every path that exists, and whether it is a file (with its identity)
/// or a directory.
type Tree = BTreeMap<Vec<u8>, Option<u32>>;

fn parent_exists(tree: &Tree, path: &[u8]) -> Result<()> {
    for end in 1..path.len() {
        match tree.get(&path[..end]) {
            None => return Err(Error::ENOENT),
            Some(Some(_)) => return Err(Error::ENOTDIR),
            Some(None) => {}
        }
    }
    Ok(())
}

fn has_children(tree: &Tree, path: &[u8]) -> bool {
    tree.keys().any(|other| other.len() > path.len() && other.starts_with(path))
}

fn model_rename(tree: &mut Tree, from: &[u8], to: &[u8], how: u8) -> Result<()> {
    parent_exists(tree, from)?;
    parent_exists(tree, to)?;
    let source = *tree.get(from).ok_or(Error::ENOENT)?;
    let target = tree.get(to).copied();
    match (how, target) {
        (1, Some(_)) => return Err(Error::EEXIST),
        (2, None) => return Err(Error::ENOENT),
        _ => {}
    }
    if let (0, Some(target)) = (how, target)
        && from != to
    {
        match (source, target) {
            (None, Some(_)) => return Err(Error::ENOTDIR),
            (Some(_), None) => return Err(Error::EISDIR),
            _ => {}
        }
    }
    if from == to {
        return Ok(());
    }
    if source.is_none() && to.starts_with(from) {
        return Err(Error::EINVAL);
    }
    if target == Some(None) && from.starts_with(to) {
        return Err(if how == 2 { Error::EINVAL } else { Error::ENOTEMPTY });
    }
    if how == 0 && target == Some(None) && has_children(tree, to) {
        return Err(Error::ENOTEMPTY);
    }
    let moved = |tree: &mut Tree, from: &[u8]| -> Vec<(Vec<u8>, Option<u32>)> {
        let keys: Vec<_> = tree.keys().filter(|key| key.starts_with(from)).cloned().collect();
        keys.into_iter().map(|key| (key[from.len()..].to_vec(), tree.remove(&key).unwrap())).collect()
    };
    let source = moved(tree, from);
    let target = moved(tree, to);
    tree.extend(source.into_iter().map(|(rest, v)| ([to, &rest].concat(), v)));
    if how == 2 {
        tree.extend(target.into_iter().map(|(rest, v)| ([from, &rest].concat(), v)));
    }
    Ok(())
}

/// Three names of letters and digits that begin with a, b and c and have one summary. The summary
/// combines the words of a name one after the other, so for every first word there is a second one
/// that leads to the same result.
fn names_of_one_summary() -> [String; 3] {
    let sum_behind = |first: &[u8; 8]| summary(&[first.as_slice(), &[0; 8]].concat());
    // The last step of the summary multiplies by an odd number, which can be undone: different
    // inputs have different results.
    let inverse = |odd: u64| (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
    let before_last = |first: &[u8; 8]| sum_behind(first).wrapping_mul(inverse(ODD));
    let wanted = before_last(b"a0000000") ^ u64::from_le_bytes(*b"00000000");
    [b'a', b'b', b'c'].map(|letter| {
        let candidate = |number: u32| {
            let first: [u8; 8] = format!("{}{number:07}", char::from(letter)).into_bytes().try_into().ok()?;
            let second = (wanted ^ before_last(&first)).to_le_bytes();
            let name = String::from_utf8([first, second].concat()).ok()?;
            name.bytes().all(|byte| byte > b'/').then_some(name)
        };
        (0..10_000_000).find_map(candidate).expect("one in some thousands")
    })
}

#[test]
fn names_with_one_summary_exist() {
    let [a, b, c] = names_of_one_summary().map(|name| summary(name.as_bytes()));
    assert!(a == b && b == c);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Names behave as a map of paths does, even names that have one summary (`alike`).
    #[test]
    fn names_match_a_map(alike: bool, steps in proptest::collection::vec(tree_step(), 1..60)) {
        static ALIKE: LazyLock<[String; 3]> = LazyLock::new(names_of_one_summary);
        let w = World::new();
        let caller = w.caller();
        let mut tree = Tree::new();
        let name_of = |n: &u8| if alike { &*ALIKE[usize::from(*n)] } else { ["a", "b", "c"][usize::from(*n)] };
        let text = |path: &[u8]| path.iter().flat_map(|n| ["/", name_of(n)]).collect::<String>().into_bytes();
        let mut identity = 0;
        for step in steps {
            match step {
                TreeStep::Make(path) => {
                    let done = now(caller.make_directory(&At::Current, &text(&path), Mode::new(0o755)));
                    let expected = parent_exists(&tree, &path).and_then(|()| {
                        if tree.contains_key(&path) { return Err(Error::EEXIST); }
                        tree.insert(path, None);
                        Ok(())
                    });
                    prop_assert_eq!(done, expected);
                }
                TreeStep::Put(path) => {
                    identity += 1;
                    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
                    let done = now(caller.open(&At::Current, &text(&path), flags, Mode::new(0o644)));
                    let expected = parent_exists(&tree, &path).and_then(|()| {
                        if tree.contains_key(&path) { return Err(Error::EEXIST); }
                        tree.insert(path, Some(identity));
                        Ok(())
                    });
                    if let Ok(file) = &done {
                        now(file.write(&caller, &mut Bytes::of(&identity.to_le_bytes()))).unwrap();
                    }
                    prop_assert_eq!(done.map(drop), expected);
                }
                TreeStep::Remove(path) => {
                    let done = now(caller.unlink(&At::Current, &text(&path)));
                    let expected = parent_exists(&tree, &path).and_then(|()| match tree.get(&path) {
                        None => Err(Error::ENOENT),
                        Some(None) => Err(Error::EISDIR),
                        Some(Some(_)) => { tree.remove(&path); Ok(()) }
                    });
                    prop_assert_eq!(done, expected);
                }
                TreeStep::RemoveDirectory(path) => {
                    let done = now(caller.remove_directory(&At::Current, &text(&path)));
                    let expected = parent_exists(&tree, &path).and_then(|()| match tree.get(&path) {
                        None => Err(Error::ENOENT),
                        Some(Some(_)) => Err(Error::ENOTDIR),
                        Some(None) if has_children(&tree, &path) => Err(Error::ENOTEMPTY),
                        Some(None) => { tree.remove(&path); Ok(()) }
                    });
                    prop_assert_eq!(done, expected);
                }
                TreeStep::Rename(from, to, how) => {
                    let kind = [RenameHow::Replace, RenameHow::NoReplace, RenameHow::Exchange][how as usize];
                    let done = now(caller.rename(&At::Current, &text(&from), &At::Current, &text(&to), kind));
                    prop_assert_eq!(done, model_rename(&mut tree, &from, &to, how));
                }
            }
        }
        // The file system has every name of the model and no others, and its link counts are right.
        let mut found = Tree::new();
        let mut pending = vec![vec![]];
        while let Some(path) = pending.pop() {
            let name = if path.is_empty() { "/".into() } else { String::from_utf8(text(&path)).unwrap() };
            let mut directories = 0;
            for entry in w.list(&name).unwrap() {
                let path = [&path[..], &[entry.as_bytes()[0] - b'a']].concat();
                let name = String::from_utf8(text(&path)).unwrap();
                let metadata = now(caller.status(&At::Current, name.as_bytes(), false, false)).unwrap();
                if metadata.file_type == crate::vfs::FileType::Directory {
                    directories += 1;
                    found.insert(path.clone(), None);
                    pending.push(path);
                } else {
                    let content = w.cat(&name).unwrap();
                    prop_assert_eq!(metadata.links, 1);
                    found.insert(path, Some(u32::from_le_bytes(content.try_into().unwrap())));
                }
            }
            let metadata = now(caller.status(&At::Current, name.as_bytes(), false, false)).unwrap();
            prop_assert_eq!(metadata.links, 2 + directories);
        }
        let files = now(caller.file_system_status(&w.vfs.tree.root())).unwrap();
        prop_assert_eq!(files.files - files.free_files, found.len() as u64 + 1);
        prop_assert_eq!(found, tree);
    }
}

fn small() -> World {
    World::with(&TmpfsOptions { pages: 4, files: 4, mode: Mode::new(0o755), ..TmpfsOptions::for_memory(0) })
}

#[test]
fn a_write_above_the_size_limit_is_enospc_after_what_fits() {
    let w = small();
    let file = w.open("/f", OpenFlags::READ_WRITE | OpenFlags::CREATE).unwrap();
    assert_eq!(w.write(&file, &[1; 5 * 4096]), Ok(4 * 4096));
    assert_eq!(w.write(&file, &[1]), Err(Error::ENOSPC));
    let caller = w.caller();
    assert_eq!(now(file.allocate(&caller, 0, 1 << 40, false, false)), Err(Error::ENOSPC));
    now(file.truncate(&caller, 4096)).unwrap();
    assert_eq!(now(file.seek(0, Whence::End)), Ok(4096));
    assert_eq!(w.write(&file, &[2; 4096]), Ok(4096));
    // Holes take no pages.
    now(file.truncate(&caller, 1 << 40)).unwrap();
    assert_eq!(file.metadata().blocks, 16);
}

#[test]
fn a_file_above_the_file_limit_is_enospc() {
    let w = small();
    w.put("/1", b"");
    w.put("/2", b"");
    w.mkdir("/3");
    let caller = w.caller();
    assert_eq!(w.open("/4", OpenFlags::WRITE | OpenFlags::CREATE).err(), Some(Error::ENOSPC));
    assert_eq!(now(caller.make_link(b"x", &At::Current, b"/4")), Err(Error::ENOSPC));
    now(caller.unlink(&At::Current, b"/1")).unwrap();
    w.put("/4", b"");
}

#[test]
fn links_long_targets_and_extended_attributes_count_against_the_limit() {
    let w = small();
    let caller = w.caller();
    let set = |path: &str, value: Option<&[u8]>| {
        let place = now(caller.find(&At::Current, path.as_bytes(), true)).unwrap().location;
        now(caller.set_attribute(&place, b"user.a", value, crate::vfs::AttributeCondition::Any))
    };
    let link = |from: &str, to: &str| {
        now(caller.link(&At::Current, from.as_bytes(), false, false, &At::Current, to.as_bytes()))
    };
    let free = || now(caller.file_system_status(&w.vfs.tree.root())).unwrap().free_files;
    w.put("/1", b"");
    assert_eq!(free(), 2);
    // Each further name of a file counts as a file, until it is removed or replaced.
    link("/1", "/2").unwrap();
    link("/1", "/3").unwrap();
    assert_eq!((link("/1", "/4"), free()), (Err(Error::ENOSPC), 0));
    now(caller.unlink(&At::Current, b"/1")).unwrap();
    assert_eq!(free(), 1);
    w.put("/1", b"");
    now(caller.rename(&At::Current, b"/1", &At::Current, b"/2", RenameHow::Replace)).unwrap();
    assert_eq!(free(), 1);
    now(caller.unlink(&At::Current, b"/3")).unwrap();
    assert_eq!(free(), 2);
    // Extended attributes take room by their bytes. Setting a smaller value releases room.
    set("/2", Some(&[1; 1100])).unwrap();
    assert_eq!(free(), 0);
    assert_eq!(set("/2", Some(&[1; 1024])), Err(Error::ENOSPC), "both are there for a moment");
    set("/2", None).unwrap();
    set("/2", Some(&[1; 1000])).unwrap();
    set("/2", Some(&[1; 10])).unwrap();
    assert_eq!(free(), 1);
    set("/2", None).unwrap();
    // Long targets of symbolic links take room by their bytes.
    now(caller.make_link(&[b'x'; 128], &At::Current, b"/5")).unwrap();
    now(caller.unlink(&At::Current, b"/5")).unwrap();
    now(caller.make_link(&[b'x'; 1024], &At::Current, b"/5")).unwrap();
    assert_eq!(free(), 0);
    now(caller.unlink(&At::Current, b"/5")).unwrap();
    now(caller.unlink(&At::Current, b"/2")).unwrap();
    assert_eq!(free(), 3);
}

#[test]
fn a_very_deep_tree_is_dropped_without_recursion() {
    let w = World::with(&TmpfsOptions { files: 200_000, ..TmpfsOptions::for_memory(1 << 20) });
    let caller = w.caller();
    for _ in 0..100_000 {
        now(caller.make_directory(&At::Current, b"d", Mode::new(0o755))).unwrap();
        now(caller.change_directory(&At::Current, b"d", false)).unwrap();
    }
    now(caller.change_directory(&At::Current, b"/", false)).unwrap();
    drop(w);
}

#[test]
fn readers_of_a_changing_directory_end_and_miss_nothing() {
    let w = World::new();
    for i in 0..100 {
        w.put(&format!("/f{i}"), b"");
    }
    let directory = w.open("/", OpenFlags::READ).unwrap();
    let caller = w.caller();
    let mut seen = Vec::new();
    let mut made = 0;
    loop {
        let mut batch = Vec::new();
        now(directory.read_directory(&caller, |entry| {
            let has_room = batch.len() < 7;
            if has_room {
                batch.push(String::from_utf8(entry.name.to_vec()).unwrap());
            }
            has_room
        }))
        .unwrap();
        if batch.is_empty() {
            break;
        }
        for name in batch {
            // Does what `for f in *; do mv` does while the directory is read: every file that is
            // seen gets a new name.
            if name.starts_with('f') {
                let new = format!("/n{made}");
                made += 1;
                let old = format!("/{name}");
                let (old, new) = (old.as_bytes(), new.as_bytes());
                now(caller.rename(&At::Current, old, &At::Current, new, RenameHow::Replace)).unwrap();
            }
            seen.push(name);
        }
    }
    assert_eq!(seen.len(), 102, "100 files, . and ..");
    assert_eq!(&seen[..2], [".", ".."]);
    // A buffer that is too small for one entry is an error, and a removed directory cannot be read.
    now(directory.seek(0, Whence::Start)).unwrap();
    assert_eq!(now(directory.read_directory(&caller, |_| false)).err(), Some(Error::EINVAL));
    w.mkdir("/d");
    let removed = w.open("/d", OpenFlags::READ).unwrap();
    now(caller.remove_directory(&At::Current, b"/d")).unwrap();
    assert_eq!(now(removed.read_directory(&caller, |_| true)).err(), Some(Error::ENOENT));
    assert_eq!(w.read(&directory, 1), Err(Error::EISDIR));
}

#[test]
fn files_are_charged_to_the_user_that_makes_them() {
    let mut w = World::new();
    w.directories.set_umask(Mode::new(0));
    now(w.caller().make_directory(&At::Current, b"/tmp", Mode::new(0o1777))).unwrap();
    w.become_user(1000, 1000);
    w.process.account = Account::new(1000, Settings::new(2 * (3 * FILE_ROOM + 100)));
    let account = w.process.account.clone();
    let used = || account.amount(Kept::ServerMemory) / FILE_ROOM;
    for path in ["/tmp/a", "/tmp/b"] {
        w.put(path, b"");
    }
    now(w.caller().link(&At::Current, b"/tmp/a", false, false, &At::Current, b"/tmp/c")).unwrap();
    assert_eq!(used(), 3, "a further name counts");
    let flags = OpenFlags::WRITE | OpenFlags::CREATE;
    assert!(matches!(w.open("/tmp/d", flags), Err(Error::ENOSPC)));
    w.process.account = Account::new(1001, account.settings().clone());
    assert!(w.open("/tmp/d", flags).is_ok(), "another user has room");
    w.process.account = account.clone();
    now(w.caller().unlink(&At::Current, b"/tmp/a")).unwrap();
    assert_eq!(used(), 2);
    w.put("/tmp/e", b"");
    for path in [&b"/tmp/b"[..], b"/tmp/c", b"/tmp/e"] {
        now(w.caller().unlink(&At::Current, path)).unwrap();
    }
    assert_eq!(account.amount(Kept::ServerMemory), 0);
}
