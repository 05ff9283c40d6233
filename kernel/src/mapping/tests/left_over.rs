//! Removals that are given up half-way: what is derived from a page that is gone goes, too, in
//! pieces.
use super::check::check;
use super::*;

const RWX: Rights = Rights::ALL;

/// How often the page was mapped on.
const DEPTH: u64 = 1000;

/// Where space `1 + step % 2` has the page after `step` steps.
fn place(step: u64) -> (usize, u64) {
    (1 + (step % 2) as usize, step.div_ceil(2) * KIB4)
}

/// A page that was mapped to and fro between spaces 1 and 2. Interrupts come all the time.
fn world() -> World {
    let world = World::new(3);
    world.map(0, GIB, 1, 0, 12, RWX);
    for step in 0..DEPTH {
        let ((from, source), (to, target)) = (place(step), place(step + 1));
        world.map(from, source, to, target, 12, RWX);
    }
    world.machine.interrupts(1, 1);
    world
}

/// Takes the page from those after space 1, but gives up half-way.
fn give_up_half_way(world: &World, mut cursor: Pin<&mut Cursor>) {
    let fpage = Fpage::memory(0, 12).with_rights(RWX);
    let (_, half) = place(DEPTH / 2);
    while world.at(1, half).is_some() {
        assert_eq!(unmap(cursor.as_mut(), world.spaces[1], fpage, false), Progress::Preempted);
    }
    cursor.as_mut().cancel();
    assert!(!cursor.is_active() && cursor.has_walk());
    check(&world.spaces, &[GIB]);
}

/// Frees of all but the first page, a few at a time.
fn finish_in_pieces(mut operation: impl FnMut() -> Progress<()>) -> u32 {
    let mut turns = 0;
    loop {
        let (before, _) = usage();
        let progress = operation();
        assert!(before - usage().0 <= 16, "{} nodes freed in one turn", before - usage().0);
        if progress == Progress::Done(()) {
            return turns;
        }
        turns += 1;
    }
}

#[test]
fn k12_what_a_given_up_walk_leaves_is_finished_in_pieces() {
    for leaf_goes_first in [false, true] {
        let world = world();
        let mut cursor = pin!(Cursor::new());
        give_up_half_way(&world, cursor.as_mut());
        if leaf_goes_first {
            // Each node is released by itself, from the end up to where the walk stands; then
            // nothing is below it any more.
            for step in (1..=DEPTH).rev() {
                let (space, address) = place(step);
                if world.at(space, address).is_some() {
                    let (before, _) = usage();
                    world.unmap(space, address, 12, RWX, true);
                    assert!(before - usage().0 <= 2, "{} nodes freed in one go", before - usage().0);
                }
            }
            assert!(usage().0 > (DEPTH / 3) as u32, "what the walk has visited is its to free");
            check(&world.spaces, &[GIB]);
        }
        let turns = finish_in_pieces(|| finish_walk(cursor.as_mut()));
        assert!(turns > 100, "{turns}");
        assert!(!cursor.has_walk());
        assert_eq!(usage().0, 3, "the page, the root, one part of it");
        assert_eq!(world.at(1, 0), Some((GIB, RWX)));
        check(&world.spaces, &[GIB]);
        world.end();
    }
}

#[test]
fn k12_the_next_operation_finishes_what_the_last_one_left() {
    let world = world();
    world.map(0, GIB + KIB4, 3, 0, 12, RWX);
    let mut cursor = pin!(Cursor::new());
    give_up_half_way(&world, cursor.as_mut());
    let fpage = Fpage::memory(0, 12).with_rights(RWX);
    let mut result = Rights::ALL;
    let turns = finish_in_pieces(|| match unmap(cursor.as_mut(), world.spaces[3], fpage, true) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(status) => {
            result = status;
            Progress::Done(())
        }
    });
    assert!(turns > 100, "{turns}");
    assert_eq!((result, world.at(3, 0)), (Rights::NONE, None), "its own result, and its own work");
    assert!((1..=DEPTH).map(place).all(|(space, address)| world.at(space, address).is_none()));
    check(&world.spaces, &[GIB]);
    world.end();
}

#[test]
fn k12_other_removals_meet_a_walk_that_was_given_up() {
    // The tree is released from above, or by the end of the space in the midst of which the walk
    // stands.
    for space_ends in [false, true] {
        let mut world = world();
        let mut cursor = pin!(Cursor::new());
        give_up_half_way(&world, cursor.as_mut());
        if space_ends {
            world.destroy(2);
        } else {
            world.unmap(0, GIB, 30, RWX, false);
        }
        check(&world.spaces, &[GIB]);
        World::finish(|_| finish_walk(cursor.as_mut()));
        check(&world.spaces, &[GIB]);
        world.end();
    }
}
