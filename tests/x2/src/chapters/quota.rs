//! Tests of quotas of kernel memory: a space without a quota of its own is limited by its owner's
//! (SpaceOptions 0, 1, 2; docs/src/architecture.md, K4).

use crate::framework::fixture::{Space, new_id};
use crate::framework::tests;
use l4::thread::{self, ThreadControl};
use l4::{extension, kip};
use x2::extension::SpaceOption;
use x2::{ErrorCode, ThreadId};

tests! {
    QUO0001 [EXT 3.6] "a space without a quota of its own is limited by its owner's" shared;
    QUO0002 [EXT 3.6, EXT 3.1] "what a space uses moves with it to a new owner, or the change is refused" moves;
    QUO0003 [EXT 3.2, EXT 3.6] "a space that shared gets a quota of its own out of its owner's, and shares again" own_quota;
    QUO0004 [EXT 3.6] "the quota of the owner's owner limits, too" through_owners;
    QUO0005 [EXT 3.6] "an orphan counts at no owner, and at its new one" orphan;
    QUO0006 [EXT 3.6] "a space that a privileged one owns is not limited" privileged_owner;
    QUO0007 [EXT 3.2] "a quota has 47 bits, and an owner deals out no more than can be counted" most;
}

/// The size in bytes of a thread's kernel memory.
const THREAD: u64 = 768;
const UNLIMITED: u64 = u64::MAX;
const NO_MEMORY: Option<ErrorCode> = Some(ErrorCode::NoMemory);

fn used(space: &Space) -> u64 {
    extension::space_options(space.first, SpaceOption::Information, [0; 2]).unwrap()[0]
}

/// Sets quotas so that the space, together with those that share its quota, can have `threads` more
/// threads.
fn leave(space: &Space, threads: u64) {
    extension::set_quota(space.first, used(space) + threads * THREAD).unwrap();
}

fn add_thread(space: &Space) -> thread::Result<ThreadId> {
    let id = new_id();
    let arguments =
        ThreadControl { space: space.first, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None };
    thread::control(id, arguments).map(|_| id)
}

/// Adds threads until there is no memory for more. Returns how many were added, at most 50.
fn fill(space: &Space) -> u64 {
    for count in 0..50 {
        if let Err(error) = add_thread(space) {
            assert_eq!(error, NO_MEMORY);
            return count;
        }
    }
    50
}

/// Makes two spaces, of which the first owns the second.
fn family() -> (Space, Space) {
    let (owner, owned) = (Space::new(), Space::new());
    extension::set_owner(owned.first, owner.first).unwrap();
    (owner, owned)
}

fn shared() {
    let (owner, owned) = (Space::new(), Space::new());
    let (alone, own) = (used(&owner), used(&owned));
    extension::set_owner(owned.first, owner.first).unwrap();
    assert_eq!((used(&owner), used(&owned)), (alone + own, own));
    leave(&owner, 10);
    assert_eq!(fill(&owned), 10);
    assert_eq!(add_thread(&owner).map(drop), Err(NO_MEMORY));
    assert_eq!(used(&owned), own + 10 * THREAD);
    leave(&owner, 1);
    let last = add_thread(&owner).unwrap();
    assert_eq!(add_thread(&owned).map(drop), Err(NO_MEMORY));
    thread::delete(last).unwrap();
    add_thread(&owned).unwrap();
    extension::set_quota(owner.first, UNLIMITED).unwrap();
    assert_eq!(fill(&owned), 50);
}

fn moves() {
    let (first, owned) = family();
    let second = Space::new();
    let moved = used(&owned);
    let before = [used(&first), used(&second)];
    extension::set_quota(second.first, before[1] + moved - 1).unwrap();
    assert_eq!(extension::set_owner(owned.first, second.first), Err(NO_MEMORY));
    assert_eq!([used(&first), used(&second)], before);
    assert_eq!(fill(&owned), 50, "it still is the first's");
    let moved = moved + 50 * THREAD;
    extension::set_quota(second.first, before[1] + moved).unwrap();
    extension::set_owner(owned.first, second.first).unwrap();
    assert_eq!([used(&first), used(&second)], [before[0] + 50 * THREAD - moved, before[1] + moved]);
    assert_eq!(fill(&owned), 0);
    // The owner is set again to the same space.
    extension::set_owner(owned.first, second.first).unwrap();
    assert_eq!(used(&second), before[1] + moved);
    extension::set_owner(owned.first, ThreadId::NIL).unwrap();
    assert_eq!(used(&second), before[1]);
    assert_eq!(fill(&owned), 50);
}

fn own_quota() {
    let (owner, owned) = family();
    let (own, both) = (used(&owned), used(&owner));
    leave(&owner, 20);
    assert_eq!(extension::set_quota(owned.first, own + 21 * THREAD), Err(NO_MEMORY));
    assert_eq!(fill(&owned), 20, "nothing has changed");
    extension::set_quota(owner.first, both + 30 * THREAD).unwrap();
    extension::set_quota(owned.first, own + 25 * THREAD).unwrap();
    assert_eq!((used(&owner), used(&owned)), (both + 25 * THREAD, own + 20 * THREAD));
    assert_eq!((fill(&owned), fill(&owner)), (5, 5));
    extension::set_quota(owned.first, UNLIMITED).unwrap();
    assert_eq!((used(&owner), used(&owned)), (both + 30 * THREAD, own + 25 * THREAD));
    assert_eq!(fill(&owned), 0, "the owner has nothing left");
    extension::set_quota(owner.first, both + 33 * THREAD).unwrap();
    assert_eq!(fill(&owned), 3);
    let [_, limit] = extension::space_options(owned.first, SpaceOption::Information, [0; 2]).unwrap();
    assert_eq!(limit, UNLIMITED, "it has none of its own");
}

fn through_owners() {
    let (top, middle) = family();
    let low = Space::new();
    extension::set_owner(low.first, middle.first).unwrap();
    assert!(used(&top) > used(&middle) && used(&middle) > used(&low));
    leave(&top, 4);
    assert_eq!(fill(&low), 4);
    leave(&top, 10);
    leave(&middle, 3);
    assert_eq!(fill(&low), 3);
    // The middle space's own memory is taken out of the top's quota, of which seven frames are
    // left.
    assert_eq!(fill(&top), 7);
    extension::set_quota(middle.first, UNLIMITED).unwrap();
    assert_eq!(fill(&low), 0);
}

fn orphan() {
    let (owner, owned) = family();
    leave(&owner, 2);
    assert_eq!(fill(&owned), 2);
    thread::delete(owner.first).unwrap();
    assert_eq!(fill(&owned), 50);
    let heir = Space::new();
    let before = used(&heir);
    leave(&heir, 3);
    assert_eq!(extension::set_owner(owned.first, heir.first), Err(NO_MEMORY));
    extension::set_quota(heir.first, UNLIMITED).unwrap();
    extension::set_owner(owned.first, heir.first).unwrap();
    assert_eq!(used(&heir), before + used(&owned));
    thread::delete(owned.first).unwrap();
}

fn privileged_owner() {
    let space = Space::new();
    extension::set_owner(space.first, kip().root()).unwrap();
    assert_eq!(fill(&space), 50);
}

fn most() {
    const MOST: u64 = (1 << 47) - 1;
    let (owner, first) = family();
    let (second, third) = (Space::new(), Space::new());
    for space in [&second, &third] {
        extension::set_owner(space.first, owner.first).unwrap();
    }
    let before = [&owner, &first, &second, &third].map(used);
    let too_many =
        [1 << 47, 1 << 48, (1 << 48) + (1 << 20), 1 << 51, (1 << 52) - 1, 1 << 52, 1 << 63, u64::MAX - 1];
    for bytes in too_many {
        let refused = extension::set_quota(first.first, bytes);
        assert_eq!(refused, Err(Some(ErrorCode::InvalidParameter)), "{bytes:#x}");
    }
    extension::set_quota(first.first, MOST).unwrap();
    // The owner has no limit. But its use and that of the others leave less than this amount of the
    // largest number that can be counted.
    assert_eq!(extension::set_quota(second.first, MOST), Err(NO_MEMORY));
    let left = (1 << 48) - 1 - used(&owner);
    extension::set_quota(second.first, used(&second) + left).unwrap();
    assert_eq!(used(&owner), (1 << 48) - 1);
    assert_eq!(add_thread(&third).map(drop), Err(NO_MEMORY));
    for space in [&first, &second] {
        assert_eq!(add_thread(space).map(drop), Ok(()));
        extension::set_quota(space.first, UNLIMITED).unwrap();
    }
    assert_eq!(fill(&third), 50);
    assert_eq!([&first, &second].map(used), [before[1] + THREAD, before[2] + THREAD]);
    assert_eq!(used(&owner), before[0] + 52 * THREAD);
}
