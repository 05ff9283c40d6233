//! Random operations, compared with a simple model of files.

#![allow(unreachable_pub, reason = "the common module is shared by test programs")]

mod common;

use common::*;
use ninep::{AttributeChange, Failure, SpaceChange};
use proptest::prelude::*;
use std::collections::BTreeMap;

const NAMES: [&str; 5] = ["a", "b", "c", "a name that is somewhat longer", "e"];

#[derive(Clone, Debug)]
enum Operation {
    Make(usize, usize),
    MakeDirectory(usize, usize),
    Link(usize, usize, usize, usize),
    Symlink(usize, usize, u16),
    Remove(usize, usize),
    Rename(usize, usize, usize, usize, bool),
    Write(usize, usize, u32, u16, u8),
    Truncate(usize, usize, u32),
    Space(usize, usize, u32, u16, u8),
    Xattr(usize, usize, u8, u16),
    Mode(usize, usize, u16),
    Sync,
    MountAgain,
}

fn operations() -> impl Strategy<Value = Operation> {
    let place = || (0..3_usize, 0..NAMES.len());
    prop_oneof![
        4 => place().prop_map(|(d, n)| Operation::Make(d, n)),
        2 => place().prop_map(|(d, n)| Operation::MakeDirectory(d, n)),
        2 => (place(), place()).prop_map(|((a, b), (c, d))| Operation::Link(a, b, c, d)),
        1 => (place(), 1..4000_u16).prop_map(|((d, n), length)| Operation::Symlink(d, n, length)),
        3 => place().prop_map(|(d, n)| Operation::Remove(d, n)),
        3 => (place(), place(), any::<bool>()).prop_map(|((a, b), (c, d), e)| Operation::Rename(a, b, c, d, e)),
        6 => (place(), 0..300_000_u32, any::<u16>(), 1..255_u8)
            .prop_map(|((d, n), at, length, byte)| Operation::Write(d, n, at, length, byte)),
        2 => (place(), 0..300_000_u32).prop_map(|((d, n), size)| Operation::Truncate(d, n, size)),
        2 => (place(), 0..300_000_u32, 1..u16::MAX, 0..3_u8)
            .prop_map(|((d, n), at, length, how)| Operation::Space(d, n, at, length, how)),
        1 => (place(), 0..4_u8, 0..1500_u16).prop_map(|((d, n), name, length)| Operation::Xattr(d, n, name, length)),
        1 => (place(), 0..0o10000_u16).prop_map(|((d, n), mode)| Operation::Mode(d, n, mode)),
        1 => Just(Operation::Sync),
        1 => Just(Operation::MountAgain),
    ]
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    data: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    links: u64,
    mode: u32,
    xattrs: BTreeMap<String, Vec<u8>>,
    /// Of a directory: names and nodes.
    names: Option<BTreeMap<String, usize>>,
}

/// Files as they should be. Directory 0 is the root; 1 and 2 are in it, and directories can only be
/// made there and hold no directories.
struct Model {
    nodes: Vec<Node>,
}

impl Model {
    fn directory(&self, number: usize) -> Option<usize> {
        match number {
            0 => Some(0),
            number => {
                let node = *self.nodes[0].names.as_ref()?.get(&format!("directory{number}"))?;
                self.nodes[node].names.as_ref().map(|_| node)
            }
        }
    }

    fn find(&self, directory: usize, name: usize) -> Option<usize> {
        self.nodes[self.directory(directory)?].names.as_ref()?.get(NAMES[name]).copied()
    }

    fn file(&self, directory: usize, name: usize) -> Option<usize> {
        self.find(directory, name).filter(|&node| self.nodes[node].data.is_some())
    }

    fn names(&mut self, directory: usize) -> &mut BTreeMap<String, usize> {
        let node = self.directory(directory).unwrap();
        self.nodes[node].names.as_mut().unwrap()
    }

    fn add(&mut self, directory: usize, name: usize, node: Node) {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.names(directory).insert(NAMES[name].into(), number);
    }
}

fn number(client: &mut Client, directory: usize) -> u32 {
    match directory {
        0 => ROOT,
        number => client.find(ROOT, &format!("directory{number}")).unwrap().0,
    }
}

fn apply(operation: &Operation, client: &mut Client, model: &mut Model) -> Result<(), Failure> {
    match *operation {
        Operation::Make(d, n) => {
            let at = number(client, d);
            let made = client.make(at, NAMES[n], FILE);
            match model.find(d, n) {
                Some(_) => assert_eq!(errno(made), 17),
                None => {
                    made?;
                    model.add(d, n, Node { data: Some(vec![]), links: 1, mode: FILE, ..Node::default() });
                }
            }
        }
        Operation::MakeDirectory(d, n) => {
            let at = number(client, d);
            let made = client.make(at, NAMES[n], DIRECTORY);
            match model.find(d, n) {
                Some(_) => assert_eq!(errno(made), 17),
                None => {
                    made?;
                    let names = Some(BTreeMap::new());
                    model.add(d, n, Node { names, links: 2, mode: DIRECTORY, ..Node::default() });
                }
            }
        }
        Operation::Symlink(d, n, length) => {
            if model.find(d, n).is_none() {
                let at = number(client, d);
                let target: Vec<u8> = (0..length).map(|it| b'a' + (it % 23) as u8).collect();
                client.make_as(at, NAMES[n], LINK, More { target: &target, ..More::default() })?;
                model.add(d, n, Node { target: Some(target), links: 1, mode: LINK, ..Node::default() });
            }
        }
        Operation::Link(d, n, to, name) => {
            let Some(node) = model.file(d, n) else { return Ok(()) };
            let (from, at) = (number(client, d), number(client, to));
            let (file, _) = client.find(from, NAMES[n])?;
            let linked = client.link(at, file, NAMES[name]);
            if model.find(to, name).is_some() {
                assert_eq!(errno(linked), 17);
            } else {
                linked?;
                model.names(to).insert(NAMES[name].into(), node);
                model.nodes[node].links += 1;
            }
            client.forget(file)?;
        }
        Operation::Remove(d, n) => {
            let at = number(client, d);
            let Some(node) = model.find(d, n) else {
                assert_eq!(errno(client.unlink(at, NAMES[n], false)), 2);
                return Ok(());
            };
            client.unlink(at, NAMES[n], model.nodes[node].names.is_some())?;
            model.nodes[node].links -= 1;
            model.names(d).remove(NAMES[n]);
        }
        Operation::Rename(d, n, to, name, exchange) => {
            let Some(node) = model.find(d, n) else { return Ok(()) };
            let other = model.find(to, name);
            let is_directory = |node: usize| model.nodes[node].names.is_some();
            // The client has checked the types.
            let fits = match other {
                Some(other) => exchange || is_directory(other) == is_directory(node),
                None => !exchange,
            };
            if !fits || other == Some(node) {
                return Ok(());
            }
            let (from, at) = (number(client, d), number(client, to));
            client.rename((from, NAMES[n]), (at, NAMES[name]), exchange)?;
            model.names(to).insert(NAMES[name].into(), node);
            match other {
                Some(other) if exchange => {
                    model.names(d).insert(NAMES[n].into(), other);
                }
                Some(other) => {
                    model.nodes[other].links -= 1;
                    model.names(d).remove(NAMES[n]);
                }
                None => {
                    model.names(d).remove(NAMES[n]);
                }
            }
        }
        Operation::Write(d, n, offset, length, byte) => {
            let Some(node) = model.file(d, n) else { return Ok(()) };
            let at = number(client, d);
            let (file, _) = client.find(at, NAMES[n])?;
            client.write(file, offset.into(), &vec![byte; length.into()])?;
            client.forget(file)?;
            let data = model.nodes[node].data.as_mut().unwrap();
            let (start, end) = (offset as usize, offset as usize + usize::from(length));
            if length > 0 {
                data.resize(data.len().max(end), 0);
                data[start..end].fill(byte);
                // Set-id bits go when a file is written.
            }
        }
        Operation::Truncate(d, n, size) => {
            let Some(node) = model.file(d, n) else { return Ok(()) };
            let at = number(client, d);
            let (file, _) = client.find(at, NAMES[n])?;
            client.truncate(file, size.into())?;
            client.forget(file)?;
            model.nodes[node].data.as_mut().unwrap().resize(size as usize, 0);
        }
        Operation::Space(d, n, offset, length, how) => {
            let Some(node) = model.file(d, n) else { return Ok(()) };
            let at = number(client, d);
            let (file, _) = client.find(at, NAMES[n])?;
            let change = [SpaceChange::Grow, SpaceChange::Keep, SpaceChange::Punch][how as usize];
            client.allocate(file, offset.into(), length.into(), change)?;
            client.forget(file)?;
            let data = model.nodes[node].data.as_mut().unwrap();
            let (start, end) = (offset as usize, offset as usize + usize::from(length));
            match change {
                SpaceChange::Grow => data.resize(data.len().max(end), 0),
                SpaceChange::Keep => {}
                SpaceChange::Punch => {
                    let (start, end) = (start.min(data.len()), end.min(data.len()));
                    data[start..end].fill(0);
                }
            }
        }
        Operation::Xattr(d, n, name, length) => {
            let Some(node) = model.file(d, n) else { return Ok(()) };
            let at = number(client, d);
            let (file, _) = client.find(at, NAMES[n])?;
            let (name, value) = (format!("user.name{name}"), vec![length as u8; length.into()]);
            match client.set_xattr(file, &name, Some(&value), 0) {
                Ok(()) => drop(model.nodes[node].xattrs.insert(name, value)),
                // There is no more room than a block.
                refused => assert_eq!(errno(refused), 28),
            }
            client.forget(file)?;
        }
        Operation::Mode(d, n, mode) => {
            let Some(node) = model.file(d, n) else { return Ok(()) };
            let at = number(client, d);
            let (file, _) = client.find(at, NAMES[n])?;
            client.change(file, AttributeChange { mode: Some(mode.into()), ..Default::default() })?;
            client.forget(file)?;
            model.nodes[node].mode = FILE & !0o7777 | u32::from(mode);
        }
        Operation::Sync => client.sync()?,
        Operation::MountAgain => {}
    }
    Ok(())
}

/// Compares everything that there is with the model.
fn compare(client: &mut Client, model: &Model) {
    for directory in 0..3 {
        let at = number(client, directory);
        let mut listed: Vec<String> =
            client.list(at, 4096).unwrap().into_iter().map(|(name, _, _)| name).collect();
        listed.retain(|name| {
            name != "." && name != ".." && name != "lost+found" && !name.starts_with("directory")
        });
        listed.sort();
        let node = model.directory(directory).unwrap();
        let names = model.nodes[node].names.as_ref().unwrap();
        let expected: Vec<String> =
            names.keys().filter(|name| !name.starts_with("directory")).cloned().collect();
        let mut expected = expected;
        expected.sort();
        assert_eq!(listed, expected);
        for name in listed {
            let node = &model.nodes[names[&name]];
            let (file, found) = client.find(at, &name).unwrap();
            if node.names.is_none() {
                assert_eq!(found.links, node.links, "{name}");
            }
            if let Some(data) = &node.data {
                assert_eq!(found.size, data.len() as u64);
                let read = client.read_all(file).unwrap();
                let differs = read.iter().zip(data).position(|(one, other)| one != other);
                assert_eq!((differs, read.len()), (None, data.len()), "{name}");
                // Writing takes set-id bits away.
                assert_eq!(found.mode & !0o6000, node.mode & !0o6000);
                for (name, value) in &node.xattrs {
                    assert_eq!(&client.xattr(file, name).unwrap(), value);
                }
            }
            if let Some(target) = &node.target {
                assert_eq!(&client.read_link(file).unwrap(), target);
            }
            client.forget(file).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn files_are_as_a_model_has_them(all in prop::collection::vec(operations(), 1..120), block in 0..2_usize) {
        let disk = mkfs(32, &["-b", ["4096", "1024"][block]]);
        let mut client = Client::mount(&disk, false).unwrap();
        let mut model = Model { nodes: vec![Node { names: Some(BTreeMap::new()), ..Node::default() }] };
        for number in 1..3 {
            let name = format!("directory{number}");
            client.make(ROOT, &name, DIRECTORY).unwrap();
            model.nodes.push(Node { names: Some(BTreeMap::new()), ..Node::default() });
            model.nodes[0].names.as_mut().unwrap().insert(name, number);
        }
        for operation in &all {
            // A symbolic link of more than a block is refused.
            let is_long = matches!(operation, Operation::Symlink(_, _, length) if *length > 1000);
            if is_long && block == 1 {
                continue;
            }
            if let Err(failure) = apply(operation, &mut client, &mut model) {
                panic!("{operation:?}: {failure:?}");
            }
            if let Operation::MountAgain = operation {
                client.unmount().unwrap();
                let wrong = fsck(&disk.data());
                assert!(wrong.is_empty(), "{wrong}");
                client = Client::mount(&disk, false).unwrap();
                compare(&mut client, &model);
            }
        }
        compare(&mut client, &model);
        client.end();
    }
}
