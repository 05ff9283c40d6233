//! I/O ports (X.2 rules 7.41, 8.9, 8.10), against a plain model: which space has which port, and
//! from which space.
use proptest::prelude::*;

use super::*;
use crate::arch::ports as processor;

const ALL: Fpage = Fpage::COMPLETE_IO;

impl World {
    fn give(&self, from: usize, to: usize, item: MapItem, window: Fpage) -> Fpage {
        self.try_map(from, to, item, window).unwrap()
    }

    fn give_all(&self, from: usize, to: usize, ports: Fpage) -> Fpage {
        self.give(from, to, MapItem::map(ports, 0), ALL)
    }

    fn take(&self, space: usize, ports: Fpage, flush: bool) {
        let status = Self::finish(|cursor| unmap(cursor, self.spaces[space], ports, flush));
        assert!(status.is_none(), "ports have no status");
    }

    fn has(&self, space: usize, port: u16) -> bool {
        held_ports(self.spaces[space], usize::from(port / 64)) >> (port % 64) & 1 != 0
    }

    /// The processor learns of 64 ports of a space, as after a forbidden access.
    fn learn(&self, space: usize, port: u16) {
        let word = usize::from(port / 64);
        let root = self.spaces[space].page_table_root();
        processor::load(root, word, held_ports(self.spaces[space], word));
    }

    fn knows(&self, space: usize, port: u16) -> bool {
        processor::is_open(self.spaces[space].page_table_root(), port)
    }
}

/// Rules: 8.10, 7.39.
#[test]
fn sigma0_has_all_ports_and_cannot_lose_them() {
    let world = World::new(2);
    assert!(world.has(0, 0) && world.has(0, 0xffff));
    assert_eq!(world.give(0, 1, MapItem::grant(ALL, 0), ALL), ALL);
    world.take(0, ALL, true);
    assert!(world.has(0, 0x3f8) && !world.has(1, 0x3f8));
    assert_eq!(world.give_all(1, 0, Fpage::io(0, 3)), Fpage::NIL, "no space gives sigma0 anything");
    assert_eq!(world.give_all(2, 1, ALL), Fpage::NIL, "nor does a space without ports");
    world.end();
}

#[test]
fn all_ports_are_few_nodes() {
    let world = World::new(2);
    let before = usage().0;
    world.give_all(0, 1, ALL);
    assert_eq!(usage().0, before + 128 + 1, "512 ports each, and the root");
    world.give_all(1, 2, ALL);
    assert_eq!(usage().0, before + 256 + 1);
    world.take(2, Fpage::io(0x3f8, 0), true);
    assert!(!world.has(2, 0x3f8) && world.has(2, 0x3f9) && world.has(1, 0x3f8));
    world.end();
}

/// Rules: 7.41.
#[test]
fn memory_and_ports_do_not_meet() {
    let world = World::new(1);
    // The addresses that stand for ports inside the kernel are no memory.
    assert_eq!(world.map(0, super::super::ports::PORT_BASE, 1, GIB, 12, Rights::ALL), Fpage::NIL);
    world.give_all(0, 1, ALL);
    world.unmap(0, 0, 64, Rights::ALL, true);
    assert!(world.has(1, 0), "unmapping all memory takes no port");
    assert_eq!(world.at(1, super::super::ports::PORT_BASE), None);
    world.end();
}

/// Rules: 8.10.
#[test]
fn the_processor_forgets_what_was_taken() {
    let world = World::new(2);
    world.give_all(0, 1, ALL);
    world.give_all(1, 2, Fpage::io(0x3f8, 3));
    world.learn(2, 0x3f8);
    assert!(world.knows(2, 0x3ff) && !world.knows(2, 0x3f7) && !world.knows(1, 0x3f8));
    world.take(1, Fpage::io(0x3fa, 0), false);
    assert!(!world.knows(2, 0x3fa));
    world.learn(2, 0x3f8);
    assert!(world.knows(2, 0x3f8) && !world.knows(2, 0x3fa));
    world.learn(1, 0x3f8);
    assert!(!world.knows(2, 0x3f8), "one space at a time");
    world.end();
}

const SPACES: usize = 4;
/// Ports around the boundary of two groups of 512.
const FIRST: u16 = 504;
const PORTS: usize = 16;

#[derive(Clone, Debug)]
enum Operation {
    Map { from: usize, to: usize, port: u16, size: u32, grant: bool },
    Unmap { space: usize, port: u16, size: u32, flush: bool },
}

fn operation() -> impl Strategy<Value = Operation> {
    let place = || (FIRST..FIRST + PORTS as u16, prop_oneof![4 => 0u32..4, 1 => 8u32..=16]);
    prop_oneof![
        (0..SPACES, 1..SPACES, place(), any::<bool>())
            .prop_map(|(from, to, (port, size), grant)| Operation::Map { from, to, port, size, grant }),
        (0..SPACES, place(), any::<bool>()).prop_map(|(space, (port, size), flush)| Operation::Unmap {
            space,
            port,
            size,
            flush
        }),
    ]
}

/// Which space has each port, and from which space; a space has a port at most once.
#[derive(Default)]
struct Model {
    parent: [[Option<usize>; SPACES]; PORTS],
}

impl Model {
    fn has(&self, port: usize, space: usize) -> bool {
        space == 0 || self.parent[port][space].is_some()
    }

    fn descends(&self, port: usize, mut space: usize, from: usize) -> bool {
        while let Some(parent) = self.parent[port][space] {
            if parent == from {
                return true;
            }
            space = parent;
        }
        false
    }

    fn revoke(&mut self, port: usize, space: usize, flush: bool) {
        let gone: Vec<usize> = (1..SPACES)
            .filter(|&other| self.descends(port, other, space) || flush && other == space)
            .collect();
        gone.into_iter().for_each(|other| self.parent[port][other] = None);
    }

    fn map(&mut self, port: usize, from: usize, to: usize, grant: bool) {
        if from == to || !self.has(port, from) {
            return;
        }
        let grant = grant && from != 0;
        if !grant && self.parent[port][to] == Some(from) {
            return;
        }
        self.revoke(port, to, true);
        // The ports that were taken may be those from which the sender had its own.
        if !self.has(port, from) {
            return;
        }
        self.parent[port][to] = Some(from);
        if grant {
            self.parent[port][to] = self.parent[port][from].take();
            for parent in self.parent[port].iter_mut().filter(|parent| **parent == Some(from)) {
                *parent = Some(to);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Rules: 8.10, 7.41.
    #[test]
    fn ports_follow_the_model(
        operations in prop::collection::vec(operation(), 1..40),
        interrupts in any::<u64>(),
    ) {
        let world = World::new(SPACES - 1);
        world.machine.interrupts(interrupts, 5);
        let mut model = Model::default();
        for operation in operations {
            let (port, size) = match operation {
                Operation::Map { port, size, .. } | Operation::Unmap { port, size, .. } => (port, size),
            };
            let fpage = Fpage::io(port, size);
            let range = fpage.ports().unwrap();
            let affected = (0..PORTS).filter(|&index| range.contains(FIRST + index as u16));
            match operation {
                Operation::Map { from, to, grant, .. } => {
                    let item = if grant { MapItem::grant(fpage, 0) } else { MapItem::map(fpage, 0) };
                    world.give(from, to, item, ALL);
                    affected.for_each(|index| model.map(index, from, to, grant));
                }
                Operation::Unmap { space, flush, .. } => {
                    world.take(space, fpage, flush);
                    affected.for_each(|index| model.revoke(index, space, flush));
                }
            }
            for space in 0..SPACES {
                for index in 0..PORTS {
                    let port = FIRST + index as u16;
                    prop_assert_eq!(world.has(space, port), model.has(index, space), "{} of {}", port, space);
                    prop_assert!(!world.knows(space, port) || world.has(space, port), "stale {}", port);
                }
            }
            world.learn(1 + (port as usize) % (SPACES - 1), port);
        }
        world.machine.interrupts(0, 1);
        world.end();
    }
}
