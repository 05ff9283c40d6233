//! Random operations: against the model, and for their invariants with interference and without
//! memory.
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use x2::extension::{MapAnswer, MapItem as ControlItem, MapOperation};

use super::check::{check, check_beside};
use super::model::Model;
use super::*;
use crate::memory::injection;

/// Where the windows of all spaces, and sigma0's memory, begin: 2 GiB.
const BASE: u64 = 0x8000_0000;
const PAGES: usize = 1024;
const SPACES: usize = 4;

#[derive(Clone, Debug)]
enum Operation {
    Map {
        from: usize,
        source: usize,
        to: usize,
        target: usize,
        bits: u32,
        rights: u64,
        grant: bool,
    },
    Unmap {
        space: usize,
        page: usize,
        bits: u32,
        rights: u64,
        flush: bool,
    },
    Control {
        owner: usize,
        source: usize,
        space: usize,
        page: usize,
        bits: u32,
        count: u32,
        operation: u64,
        rights: u64,
    },
    Touch {
        space: usize,
        page: usize,
        right: u64,
    },
    Destroy {
        space: usize,
    },
    Fail {
        nth: u64,
    },
}

/// Sizes of fpages, in bits: small, odd, large, everything.
fn bits(largest: u32) -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(12u32), 2 => 13..=16u32, 1 => Just(20u32), 4 => Just(largest), 1 => Just(22u32.min(largest))]
}

/// Pages, mostly few, so that operations meet.
fn page() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..4usize, 2 => 510..516usize, 1 => 0..PAGES]
}

fn operation(largest: u32) -> impl Strategy<Value = Operation> {
    let map = (0..=SPACES, page(), 1..=SPACES, page(), bits(largest), 1..8u64, prop::bool::weighted(0.2));
    let unmap = (0..=SPACES, page(), bits(largest), 0..8u64, any::<bool>());
    let control = (0..=SPACES, page(), 1..=SPACES, page(), bits(largest), 0..5u32, 0..16u64, 1..8u64);
    prop_oneof![
        4 => control.prop_map(|(owner, source, space, page, bits, count, operation, rights)| {
            Operation::Control { owner, source, space, page, bits, count, operation, rights }
        }),
        8 => map.prop_map(|(from, source, to, target, bits, rights, grant)| {
            Operation::Map { from, source, to, target, bits, rights, grant }
        }),
        4 => unmap.prop_map(|(space, page, bits, rights, flush)| {
            Operation::Unmap { space, page, bits, rights, flush }
        }),
        6 => (1..=SPACES, page(), prop_oneof![Just(4u64), Just(2u64), Just(1u64)])
            .prop_map(|(space, page, right)| Operation::Touch { space, page, right }),
        1 => (1..=SPACES).prop_map(|space| Operation::Destroy { space }),
    ]
}

/// The item of a MapControl operation.
fn control_item(operation: &Operation) -> ControlItem {
    let Operation::Control { source, page, bits, count, operation, rights, .. } = *operation else {
        unreachable!("another operation")
    };
    ControlItem {
        target: Fpage::memory(address(page), bits).raw() | rights,
        control: operation | u64::from(count) << 16,
        source: address(source),
        answer: 0,
    }
}

fn address(page: usize) -> u64 {
    BASE + page as u64 * KIB4
}

/// The pages of an fpage of 2^`bits` bytes around `page`.
fn pages(page: usize, bits: u32) -> std::ops::Range<usize> {
    let count = 1 << (bits - 12);
    let first = page & !(count - 1);
    first..first + count
}

fn recreate(world: &mut World, space: usize) {
    world.destroy(space);
    let account = Account::create(Quota::UNLIMITED).unwrap();
    world.spaces.insert(space, SpaceMemory::new(account).unwrap());
    account.release();
}

/// Runs one operation on world and model and compares.
fn step(world: &mut World, model: &mut Model, operation: &Operation, exact_status: bool) {
    match *operation {
        Operation::Map { from, source, to, target, bits, rights, grant } => {
            // Larger fpages go only to lower addresses: otherwise the result depends on the order
            // in which pages of one item are handled.
            if from == to || (bits > 12 && from > to) {
                return;
            }
            let rights = Rights::from_bits(rights);
            let fpage = Fpage::memory(address(source), bits).with_rights(rights);
            let item = if grant {
                MapItem::grant(fpage, address(target))
            } else {
                MapItem::map(fpage, address(target))
            };
            let delivered = world.try_map(from, to, item, Fpage::COMPLETE).unwrap();
            let mut granted = Rights::NONE;
            for (source, target) in pages(source, bits).zip(pages(target, bits)) {
                granted = granted.or(model.map(from, source, to, target, rights, grant));
            }
            if granted.is_none() {
                assert_eq!(delivered, Fpage::NIL);
            } else {
                assert_eq!(delivered, Fpage::memory(address(target), bits).with_rights(granted));
            }
        }
        Operation::Unmap { space, page, bits, rights, flush } => {
            let rights = Rights::from_bits(rights);
            let status = world.unmap(space, address(page), bits, rights, flush);
            let expected = pages(page, bits)
                .fold(Rights::NONE, |status, page| status.or(model.unmap(space, page, rights, flush)));
            if space != 0 {
                assert!(status.contains(expected), "status lost: {status:?}, not {expected:?}");
                assert!(!exact_status || status == expected, "status {status:?}, not {expected:?}");
            }
        }
        Operation::Control { owner, space, .. } if owner == space => {}
        Operation::Control { owner, source, space, page, bits, rights, .. } => {
            let item = control_item(operation);
            let (page, source) = (pages(page, bits).start, source);
            let count = (item.count() as usize) << (bits - 12);
            let is_map = item.operation() == MapOperation::Map;
            let rights = Rights::from_bits(rights);
            // Ranges are limited as for map items, and stay within the windows.
            if page + count > PAGES || (is_map && (source + count > PAGES || (count > 1 && owner > space))) {
                return;
            }
            let (memory, owner_memory) = (world.spaces[space], world.spaces[owner]);
            let answer = World::finish(|cursor| control(cursor, owner_memory, memory, &item, true)).unwrap();
            if is_map {
                let mapped = (0..count)
                    .filter(|offset| model.replace(owner, source + offset, space, page + offset, rights))
                    .count();
                assert_eq!(answer >> 32, (mapped >> (bits - 12)) as u64);
                return;
            }
            let mut revoke = Rights::NONE;
            let mut forget = Rights::NONE;
            match item.operation() {
                MapOperation::Protect => revoke = Rights::ALL.without(rights),
                MapOperation::Unmap => revoke = Rights::ALL,
                _ => {}
            }
            for (bit, status) in
                [(ControlItem::CLEAR_REFERENCED, Rights::READ), (ControlItem::CLEAR_DIRTY, Rights::WRITE)]
            {
                if item.control & bit != 0 {
                    forget = forget.or(status);
                }
            }
            let first = model.at(space, page).map_or(0, |(frame, _)| address(frame));
            let (mut held, mut status) = (Rights::NONE, Rights::NONE);
            for page in page..page + count {
                let (page_held, page_status) = model.control(space, page, revoke, forget);
                (held, status) = (held.or(page_held), status.or(page_status));
            }
            let answer = MapAnswer(answer);
            assert_eq!(answer.rights(), held.bits());
            assert_eq!(answer.is_mapped(), !held.is_none());
            if item.count() == 1 {
                assert_eq!(answer.physical_address(), first);
            }
            for (reported, right) in
                [(answer.is_referenced(), Rights::READ), (answer.is_dirty(), Rights::WRITE)]
            {
                let expected = status.contains(right);
                assert!(reported || !expected, "status lost");
                assert!(!exact_status || reported == expected, "status {status:?}");
            }
        }
        Operation::Touch { space, page, right } => {
            let right = Rights::from_bits(right);
            let reached = world.touch(space, address(page), right);
            assert_eq!(reached, model.touch(space, page, right).map(address));
        }
        Operation::Destroy { space } => {
            model.clear(space);
            recreate(world, space);
        }
        Operation::Fail { nth } => injection::fail_nth(nth),
    }
}

fn compare(world: &World, model: &Model) {
    for space in 1..=SPACES {
        for page in 0..PAGES {
            let real = world.at(space, address(page));
            let expected = model.at(space, page).map(|(frame, rights)| (address(frame), rights));
            assert_eq!(real, expected, "space {space} page {page}");
        }
    }
}

fn run_against_model(operations: &[Operation], seed: u64, exact_status: bool) {
    let mut world = World::new(SPACES);
    world.machine.interrupts(seed, 3);
    let mut model = Model::new(SPACES, PAGES);
    for operation in operations {
        step(&mut world, &mut model, operation, exact_status);
        compare(&world, &model);
        check(&world.spaces, &[BASE]);
    }
    world.end();
}

/// Several operations under way at the same time, interfering at preemption points, while memory
/// runs out: only the invariants hold.
fn run_wild(operations: &[Operation], seed: u64) {
    let mut world = World::new(SPACES);
    world.machine.interrupts(seed, 2);
    let mut cursors: Vec<_> = (0..3).map(|_| Box::pin(Cursor::new())).collect();
    let mut running: Vec<Option<Operation>> = vec![None; cursors.len()];
    for (turn, operation) in operations.iter().enumerate() {
        match operation {
            Operation::Touch { space, page, right } => {
                world.touch(*space, address(*page), Rights::from_bits(*right));
            }
            Operation::Fail { nth } => injection::fail_nth(*nth),
            Operation::Destroy { space } => {
                // Operations on the space end with its threads.
                for (cursor, running) in cursors.iter_mut().zip(&mut running) {
                    let concerned = match running {
                        Some(Operation::Map { from, to, .. }) => from == space || to == space,
                        Some(Operation::Unmap { space: of, .. }) => of == space,
                        Some(Operation::Control { owner, space: of, .. }) => owner == space || of == space,
                        _ => false,
                    };
                    if concerned {
                        cursor.as_mut().cancel();
                        *running = None;
                    }
                }
                injection::cancel();
                recreate(&mut world, *space);
            }
            other => {
                let slot = turn % cursors.len();
                // An operation that runs in this slot goes on first; the new one begins when it is
                // over.
                let todo = running[slot].take().unwrap_or_else(|| other.clone());
                if advance(&world, cursors[slot].as_mut(), &todo) {
                    assert!(!cursors[slot].is_active());
                } else {
                    running[slot] = Some(todo);
                }
            }
        }
        let prepared = cursors.iter().map(|cursor| cursor.prepared_nodes()).sum();
        check_beside(&world.spaces, &[BASE], prepared);
    }
    injection::cancel();
    drop(cursors);
    world.end();
}

/// Status, memory and rights at every page of every space, nodes.
type Outcome = (Rights, Vec<Option<(u64, Rights)>>, u32);

/// The outcome of operations on small pages: the status that each reports, what is mapped where
/// then, and how many nodes there are. They are done by the `short` way where that can be, or in
/// general.
fn outcome(operations: &[Operation], short: bool) -> Vec<Outcome> {
    let world = World::new(SPACES);
    let mut outcome = Vec::new();
    for operation in operations {
        let mut status = Rights::NONE;
        match *operation {
            Operation::Map { from, source, to, target, rights, grant, .. } => {
                let fpage = Fpage::memory(address(source), 12).with_rights(Rights::from_bits(rights));
                let item = MapItem { grant, ..MapItem::map(fpage, address(target)) };
                if !short || !world.map_page(from, to, item) {
                    world.try_map(from, to, item, Fpage::COMPLETE).unwrap();
                }
            }
            Operation::Unmap { space, page, rights: revoke, flush, .. } => {
                let fpage = Fpage::memory(address(page), 12).with_rights(Rights::from_bits(revoke));
                let done = if short { world.unmap_page(space, fpage, flush) } else { None };
                status = done.unwrap_or_else(|| world.unmap_in_general(space, fpage, flush));
            }
            Operation::Touch { space, page, right } => {
                world.touch(space, address(page), Rights::from_bits(right));
            }
            _ => {}
        }
        let places = (1..=SPACES).flat_map(|space| (0..PAGES).map(move |page| (space, page)));
        let there = places.map(|(space, page)| world.at(space, address(page))).collect();
        outcome.push((status, there, usage().0));
        check(&world.spaces, &[BASE]);
    }
    world.end();
    outcome
}

/// Calls an operation once; whether it is done.
fn advance(world: &World, cursor: Pin<&mut Cursor>, operation: &Operation) -> bool {
    match *operation {
        Operation::Map { from, source, to, target, bits, rights, grant } => {
            let fpage = Fpage::memory(address(source), bits).with_rights(Rights::from_bits(rights));
            let item = if grant {
                MapItem::grant(fpage, address(target))
            } else {
                MapItem::map(fpage, address(target))
            };
            let progress = map(cursor, world.spaces[from], world.spaces[to], item, Fpage::COMPLETE);
            !matches!(progress, Progress::Preempted)
        }
        Operation::Unmap { space, page, bits, rights, flush } => {
            let fpage = Fpage::memory(address(page), bits).with_rights(Rights::from_bits(rights));
            !cursor.is_active() && world.unmap_page(space, fpage, flush).is_some()
                || !matches!(unmap(cursor, world.spaces[space], fpage, flush), Progress::Preempted)
        }
        Operation::Control { owner, space, .. } => {
            let item = control_item(operation);
            !matches!(
                control(cursor, world.spaces[owner], world.spaces[space], &item, true),
                Progress::Preempted
            )
        }
        _ => true,
    }
}

/// An eighth of the usual number of cases (PROPTEST_CASES): each is long.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let failure_persistence = Some(Box::new(FileFailurePersistence::Off) as Box<_>);
    ProptestConfig { cases: default.cases / 8, failure_persistence, ..default }
}

proptest! {
    #![proptest_config(config())]

    /// Rules: 7.32, 7.34, 7.37, 8.3, 8.5.
    #[test]
    fn small_pages_agree_with_the_model(operations in vec(operation(16), 1..60), seed in any::<u64>()) {
        run_against_model(&operations, seed, true);
    }

    /// Rules: 7.37, 8.4.
    #[test]
    fn large_pages_agree_with_the_model(operations in vec(operation(21), 1..60), seed in any::<u64>()) {
        run_against_model(&operations, seed, false);
    }

    /// Rules: 7.32, 7.34, 7.39, 8.3, 8.5, 8.6.
    #[test]
    fn page_operations_have_the_results_of_the_general_ones(operations in vec(operation(12), 1..60)) {
        prop_assert_eq!(outcome(&operations, true), outcome(&operations, false));
    }

    #[test]
    fn interference_and_lack_of_memory_leave_a_consistent_tree(
        operations in vec(prop_oneof![
            6 => operation(21),
            1 => (1..40u64).prop_map(|nth| Operation::Fail { nth }),
        ], 1..120),
        seed in any::<u64>(),
    ) {
        run_wild(&operations, seed);
    }
}
