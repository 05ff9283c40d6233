//! Tests of mmap(2), munmap(2), mprotect(2), mremap(2), madvise(2), brk(2), and stacks, on the
//! simulated machine.

use super::*;
use crate::UserBuffer;
use crate::personality::{Task, Unix};
use crate::testing::account;
use mach::machine::simulated::{Failures, Simulated};
use mach::vm::Vm;

const RW: Rights = Rights { read: true, write: true, execute: false };
const RO: Rights = Rights { read: true, write: false, execute: false };
const LAYOUT: Layout = Layout { low: 0x10000, high: 0x7fff_f000_0000, randomise: false };

fn anonymous(place: Place, length: u64) -> NewMapping<'static> {
    NewMapping {
        place,
        length,
        rights: RW,
        shared: false,
        file: None,
        grows_down: false,
        populate: false,
        locked: false,
    }
}

/// A Mach host that makes tasks on the memory `vm`.
fn host(vm: &Arc<Vm<Simulated>>) -> Arc<mach::Host<Simulated, Unix>> {
    mach::Host::new(vm.clone(), Default::default(), 0)
}

/// Runs a test on an empty address space, and checks that all its memory is freed.
fn with_memory<F: Future<Output = ()>>(test: impl FnOnce(Arc<Task<Simulated>>, Limits) -> F) {
    let machine = Simulated::new(512);
    let vm = Vm::new(machine.clone()).unwrap();
    let free = machine.free_frames_now(&vm);
    machine.block_on(async {
        let memory =
            Memory::create(&host(&vm), &LAYOUT, &account(), FrontEndNumber::default()).await.unwrap();
        test(memory, Limits::default()).await;
    });
    assert_eq!(machine.free_frames_now(&vm), free, "every page was freed");
}

trait FreeNow {
    fn free_frames_now(&self, vm: &Arc<Vm<Simulated>>) -> u32;
}

impl FreeNow for Simulated {
    fn free_frames_now(&self, vm: &Arc<Vm<Simulated>>) -> u32 {
        vm.statistics().free
    }
}

#[test]
fn mappings_are_placed_as_asked() {
    with_memory(|memory, limits| async move {
        let map = async |place, length| memory.map_new(&anonymous(place, length), &limits).await;
        let first = map(Place::Hint(0), 1).await.unwrap();
        assert_eq!(first, LAYOUT.high - PAGE, "the highest free place");
        assert_eq!(map(Place::Hint(0x40_0123), PAGE).await, Ok(0x40_0000));
        assert!(map(Place::Hint(0x40_0000), PAGE).await.unwrap() > 0x40_0000, "a taken wish is not granted");
        assert_eq!(map(Place::FixedFree(0x40_0000), PAGE).await, Err(Error::EEXIST));
        assert_eq!(map(Place::Fixed(0x40_0000), 2 * PAGE).await, Ok(0x40_0000));
        assert_eq!(map(Place::Fixed(0x40_0001), PAGE).await, Err(Error::EINVAL));
        assert_eq!(map(Place::Fixed(0), PAGE).await, Err(Error::EPERM));
        assert_eq!(
            map(Place::Fixed(LAYOUT.high - PAGE), 2 * PAGE).await,
            Err(Error::ENOMEM),
            "what is reserved"
        );
        assert_eq!(map(Place::Fixed(u64::MAX - PAGE + 1), PAGE).await, Err(Error::ENOMEM));
        assert_eq!(map(Place::Hint(0), 0).await, Err(Error::EINVAL));
        assert_eq!(map(Place::Hint(0), u64::MAX).await, Err(Error::ENOMEM));
        assert_eq!(map(Place::Hint(0), 1 << 47).await, Err(Error::ENOMEM));
    });
}

#[test]
fn munmap_and_mprotect_change_the_access_to_pages() {
    with_memory(|memory, limits| async move {
        let at = 0x40_0000;
        memory.map_new(&anonymous(Place::Fixed(at), 4 * PAGE), &limits).await.unwrap();
        memory.copy_out(at, &[7; 4 * PAGE as usize]).await.unwrap();
        memory.unmap(at + PAGE, PAGE).await.unwrap();
        assert_eq!(memory.read::<1>(at + PAGE).await, Err(Error::EFAULT));
        assert_eq!(memory.unmap(at + 1, PAGE).await, Err(Error::EINVAL));
        assert_eq!(memory.unmap(at, 0).await, Err(Error::EINVAL));
        assert_eq!(memory.unmap(0x1000_0000, PAGE).await, Ok(()), "nothing there: fine");
        assert_eq!(memory.protect(at, 3 * PAGE, RO).await, Err(Error::ENOMEM));
        memory.protect(at + 2 * PAGE, PAGE, RO).await.unwrap();
        assert_eq!(memory.copy_out(at + 2 * PAGE, &[1]).await, Err(Error::EFAULT));
        assert_eq!(memory.read(at + 2 * PAGE).await, Ok([7]));
        let regions = memory.regions_from(0, usize::MAX).await;
        let rights: Vec<_> = regions.iter().map(|r| (r.range.clone(), r.rights)).collect();
        let page = |n: u64| at + n * PAGE..at + (n + 1) * PAGE;
        assert_eq!(rights, [(page(0), RW), (page(2), RO), (page(3), RW)]);
        memory.protect(at + 2 * PAGE, PAGE, RW).await.unwrap();
        assert_eq!(memory.regions_from(0, usize::MAX).await.len(), 2, "like neighbours are one region");
    });
}

#[test]
fn fork_copies_private_and_shares_shared_memory() {
    with_memory(|memory, limits| async move {
        let (private, shared, hidden) = (0x40_0000, 0x50_0000, 0x60_0000);
        for at in [private, shared, hidden] {
            let new = NewMapping { shared: at == shared, ..anonymous(Place::Fixed(at), PAGE) };
            memory.map_new(&new, &limits).await.unwrap();
            memory.copy_out(at, b"old").await.unwrap();
        }
        memory.advise(hidden, PAGE, Advice::Fork(false)).await.unwrap();
        let child = Memory::fork(&memory, &account()).await.unwrap();
        memory.copy_out(private, b"new").await.unwrap();
        memory.copy_out(shared, b"new").await.unwrap();
        assert_eq!(child.read(private).await, Ok(*b"old"));
        assert_eq!(child.read(shared).await, Ok(*b"new"));
        assert_eq!(child.read::<1>(hidden).await, Err(Error::EFAULT));
        assert_eq!(child.regions_from(0, usize::MAX).await.len(), 2);
    });
}

#[test]
fn brk_moves_within_its_limits() {
    with_memory(|memory, limits| async move {
        memory.regions.lock().await.break_start = 0x40_0000;
        memory.regions.lock().await.break_end = 0x40_0000;
        assert_eq!(memory.set_break(0, &limits).await, 0x40_0000);
        assert_eq!(memory.set_break(0x40_1234, &limits).await, 0x40_1234);
        memory.copy_out(0x40_1fff, &[1]).await.unwrap();
        memory.map_new(&anonymous(Place::Fixed(0x40_4000), PAGE), &limits).await.unwrap();
        assert_eq!(memory.set_break(0x40_4001, &limits).await, 0x40_1234, "something is in the way");
        assert_eq!(memory.set_break(0x40_0000, &limits).await, 0x40_0000);
        assert_eq!(memory.read::<1>(0x40_0000).await, Err(Error::EFAULT));
    });
}

#[test]
fn stacks_grow_to_their_limit() {
    with_memory(|memory, limits| async move {
        let top = 0x7000_0000;
        let new = NewMapping { grows_down: true, ..anonymous(Place::Fixed(top - PAGE), PAGE) };
        memory.map_new(&new, &limits).await.unwrap();
        memory.set_stack_limit(16 * PAGE);
        memory.copy_out(top - 5 * PAGE, &[1]).await.unwrap();
        assert_eq!(memory.resolve(top - 16 * PAGE, Protection::WRITE).await, Ok(()));
        assert_eq!(memory.resolve(top - 17 * PAGE, Protection::WRITE).await, Err(KernError::InvalidAddress));
        memory.set_stack_limit(1 << 30);
        memory.map_new(&anonymous(Place::Fixed(top - 500 * PAGE), PAGE), &limits).await.unwrap();
        let guard = top - 499 * PAGE + STACK_GUARD;
        assert_eq!(memory.resolve(guard, Protection::WRITE).await, Ok(()));
        assert!(memory.resolve(guard - PAGE, Protection::WRITE).await.is_err(), "the gap below a stack");
        let mut buffer = UserRanges::one(&memory, top - PAGE, 3);
        assert_eq!(buffer.copy_out(b"abc"), Ok(3));
    });
}

#[test]
fn mremap_keeps_contents_and_refuses_bad_ranges() {
    with_memory(|memory, limits| async move {
        let at = 0x40_0000;
        memory.map_new(&anonymous(Place::Fixed(at), 2 * PAGE), &limits).await.unwrap();
        memory.copy_out(at, b"contents").await.unwrap();
        assert_eq!(memory.remap(at, 2 * PAGE, 3 * PAGE, Move::No, &limits).await, Ok(at));
        memory.copy_out(at + 2 * PAGE, b"more").await.unwrap();
        memory.map_new(&anonymous(Place::Fixed(at + 3 * PAGE), PAGE), &limits).await.unwrap();
        assert_eq!(memory.remap(at, 3 * PAGE, 5 * PAGE, Move::No, &limits).await, Err(Error::ENOMEM));
        let moved = memory.remap(at, 3 * PAGE, 5 * PAGE, Move::Anywhere, &limits).await.unwrap();
        assert_ne!(moved, at);
        assert_eq!(memory.read(moved).await, Ok(*b"contents"));
        assert_eq!(memory.read(moved + 2 * PAGE).await, Ok(*b"more"));
        assert_eq!(memory.read(moved + 4 * PAGE).await, Ok([0]));
        assert_eq!(memory.read::<1>(at).await, Err(Error::EFAULT));
        assert_eq!(memory.remap(moved, 5 * PAGE, PAGE, Move::To(at), &limits).await, Ok(at));
        assert_eq!(memory.read(at).await, Ok(*b"contents"));
        assert_eq!(memory.read::<1>(moved).await, Err(Error::EFAULT));
        assert_eq!(memory.read::<1>(moved + PAGE).await, Err(Error::EFAULT));
        assert_eq!(memory.remap(at, PAGE, 0, Move::No, &limits).await, Err(Error::EINVAL));
        assert_eq!(memory.remap(moved, PAGE, PAGE, Move::No, &limits).await, Err(Error::EFAULT));
        assert_eq!(memory.remap(at, PAGE, PAGE, Move::To(at), &limits).await, Err(Error::EINVAL));
    });
}

/// Moves two pages from the middle of a region to `how`, where they become four. Meanwhile one
/// request for the server's memory fails, after `granted` others. Returns whether the move
/// succeeded. Pages and table of regions must agree afterwards in any case.
async fn move_with(machine: &Simulated, memory: &Memory<Simulated>, how: Move, granted: u32) -> bool {
    let limits = Limits::default();
    let (at, other) = (0x40_0000, 0x50_0000);
    for (start, pages) in [(at, 4), (other, 8)] {
        memory.map_new(&anonymous(Place::Fixed(start), pages * PAGE), &limits).await.unwrap();
        for page in 0..pages {
            memory.copy_out(start + page * PAGE, &[page as u8 + 1]).await.unwrap();
        }
    }
    machine.inject(Failures { reserve: Some(granted), ..Failures::default() });
    let done = memory.remap(at + PAGE, 2 * PAGE, 4 * PAGE, how, &limits).await;
    machine.inject(Failures::default());
    match done {
        Ok(new) => assert_eq!((memory.read(new).await, memory.read(new + PAGE).await), (Ok([2]), Ok([3]))),
        Err(error) => {
            assert_eq!(error, Error::ENOMEM);
            let old = (memory.read(at + PAGE).await, memory.read(at + 2 * PAGE).await);
            assert_eq!(old, (Ok([2]), Ok([3])), "with {granted}");
        }
    }
    let regions = memory.regions_from(0, usize::MAX).await;
    for page in (0..4).map(|page| at + page * PAGE).chain((0..8).map(|page| other + page * PAGE)) {
        let listed = regions.iter().any(|region| region.range.contains(&page));
        assert_eq!(memory.read::<1>(page).await.is_ok(), listed, "page {page:#x} with {granted}");
    }
    done.is_ok()
}

#[test]
fn a_move_that_fails_moves_nothing() {
    for how in [Move::Anywhere, Move::To(0x50_0000 + PAGE)] {
        let succeeds = |granted| {
            let machine = Simulated::new(512);
            let vm = Vm::new(machine.clone()).unwrap();
            machine.block_on(async {
                let memory =
                    Memory::create(&host(&vm), &LAYOUT, &account(), FrontEndNumber::default()).await.unwrap();
                move_with(&machine, &memory, how, granted).await
            })
        };
        let first = (0..100).find(|granted| succeeds(*granted)).expect("enough");
        assert!(first > 2, "several steps need memory: {first}");
    }
}

#[test]
fn shared_zeros_grow_for_all_processes_that_have_them() {
    with_memory(|memory, limits| async move {
        let at = 0x40_0000;
        for (how, guarded) in [(Move::No, false), (Move::Anywhere, true)] {
            let shared = NewMapping { shared: true, ..anonymous(Place::Fixed(at), PAGE) };
            memory.map_new(&shared, &limits).await.unwrap();
            if guarded {
                memory.map_new(&anonymous(Place::Fixed(at + PAGE), PAGE), &limits).await.unwrap();
            }
            memory.copy_out(at, b"old").await.unwrap();
            let new = memory.remap(at, PAGE, 3 * PAGE, how, &limits).await.unwrap();
            assert_eq!(new != at, guarded);
            let child = Memory::fork(&memory, &account()).await.unwrap();
            memory.copy_out(new + 2 * PAGE, b"parent").await.unwrap();
            child.copy_out(new, b"child").await.unwrap();
            assert_eq!(child.read(new + 2 * PAGE).await, Ok(*b"parent"));
            assert_eq!(memory.read(new).await, Ok(*b"child"));
            drop(child);
            memory.unmap(new, 3 * PAGE).await.unwrap();
        }
    });
}

#[test]
fn madvise_and_limits_follow_the_manual() {
    with_memory(|memory, mut limits| async move {
        let at = 0x40_0000;
        memory.map_new(&anonymous(Place::Fixed(at), 2 * PAGE), &limits).await.unwrap();
        memory.copy_out(at, b"x").await.unwrap();
        memory.advise(at, PAGE, Advice::Forget).await.unwrap();
        assert_eq!(memory.read(at).await, Ok([0]));
        assert_eq!(memory.advise(at, 3 * PAGE, Advice::Hint).await, Err(Error::ENOMEM));
        let limit = crate::process::Limit { soft: 3 * PAGE, hard: 3 * PAGE };
        limits.set(Resource::AddressSpace, limit, true).unwrap();
        let map = async |place, pages| memory.map_new(&anonymous(place, pages * PAGE), &limits).await;
        assert_eq!(map(Place::Hint(0), 2).await, Err(Error::ENOMEM));
        assert_eq!(map(Place::Fixed(at), 3).await, Ok(at), "what is replaced does not count");
        assert_eq!(memory.lock(at, PAGE, true, &limits, false).await, Ok(()));
        assert_eq!(memory.advise(at, PAGE, Advice::Forget).await, Err(Error::EINVAL), "it is locked");
        assert_eq!(
            memory.usage().await,
            Usage { total: 3 * PAGE, data: 3 * PAGE, locked: PAGE, ..Usage::default() }
        );
    });
}

#[test]
fn locked_pages_stay_in_memory() {
    with_memory(|memory, limits| async move {
        let wired = || memory.map().vm().statistics().wired;
        let map = async |new: NewMapping<'static>| memory.map_new(&new, &limits).await.unwrap();
        let lock = async |at, length, lock| memory.lock(at, length, lock, &limits, true).await;
        let at = map(anonymous(Place::Fixed(0x40_0000), 4 * PAGE)).await;
        assert_eq!(lock(at + PAGE, 2 * PAGE, true).await, Ok(()));
        assert_eq!(lock(at, 2 * PAGE, true).await, Ok(()), "a page twice");
        assert_eq!(wired(), 3);
        assert_eq!(lock(at + PAGE, PAGE, false).await, Ok(()), "once is enough");
        assert_eq!(lock(at + PAGE, 0, true).await, Ok(()));
        assert_eq!(wired(), 2);
        memory.remap(at + 2 * PAGE, PAGE, 3 * PAGE, Move::Anywhere, &limits).await.unwrap();
        assert_eq!(wired(), 4);
        memory.unmap(at, PAGE).await.unwrap();
        assert_eq!(wired(), 3);
        assert_eq!(memory.lock_all(false, false, &limits, true).await, Ok(()));
        assert_eq!(wired(), 0);
        // What cannot be reached is locked when it can.
        let none = Rights { read: false, write: false, execute: false };
        let hidden = map(NewMapping { rights: none, ..anonymous(Place::Fixed(0x80_0000), PAGE) }).await;
        assert_eq!(lock(hidden, PAGE, true).await, Err(Error::ENOMEM));
        assert_eq!(wired(), 0);
        memory.protect(hidden, PAGE, RW).await.unwrap();
        assert_eq!(wired(), 1);
        assert_eq!(lock(hidden, PAGE, false).await, Ok(()));
        let huge = map(anonymous(Place::Fixed(0x1000_0000), 1024 * PAGE)).await;
        assert_eq!(lock(huge, 1024 * PAGE, true).await, Err(Error::EAGAIN), "there is no such memory");
        memory.unmap(huge, 1024 * PAGE).await.unwrap();
        assert_eq!(wired(), 0);
        // New mappings, heaps and stacks.
        assert_eq!(memory.lock_all(false, true, &limits, true).await, Ok(()));
        let stack = NewMapping { grows_down: true, ..anonymous(Place::Fixed(0x4000_0000), PAGE) };
        let stack = map(stack).await;
        assert_eq!(wired(), 1);
        memory.resolve(stack - 2 * PAGE, Protection::WRITE).await.unwrap();
        assert_eq!(wired(), 3);
        memory.regions.lock().await.break_start = 0x60_0000;
        memory.regions.lock().await.break_end = 0x60_0000;
        assert_eq!(memory.set_break(0x60_0000 + PAGE, &limits).await, 0x60_0000 + PAGE);
        assert_eq!(wired(), 4);
        // A child has no locks, and the parent keeps what it copies for itself.
        let child = Memory::fork(&memory, &account()).await.unwrap();
        memory.copy_out(stack, b"new").await.unwrap();
        assert_eq!(wired(), 4);
        assert_eq!(child.read(stack).await, Ok(*b"\0\0\0"));
        assert_eq!(child.regions.lock().await.usage().locked, 0);
    });
}

#[test]
fn buffers_cross_pages_and_ranges() {
    with_memory(|memory, limits| async move {
        let at = 0x40_0000;
        memory.map_new(&anonymous(Place::Fixed(at), 2 * PAGE), &limits).await.unwrap();
        let ranges = vec![(at + PAGE - 2, 4), (at, 0), (at, 3)];
        let mut buffer = UserRanges::many(&memory, ranges.clone());
        assert_eq!(buffer.copy_out(b"abcdefg"), Ok(7));
        assert_eq!((buffer.transferred(), buffer.remaining()), (7, 0));
        buffer.retreat(5);
        assert_eq!(buffer.copy_out(b"XY"), Ok(2));
        assert_eq!(memory.read(at + PAGE - 2).await, Ok(*b"abXY"));
        assert_eq!(memory.read(at).await, Ok(*b"efg"));
        let mut bytes = [0; 7];
        assert_eq!(UserRanges::many(&memory, ranges).copy_in(&mut bytes), Ok(7));
        assert_eq!(&bytes, b"abXYefg");
        let mut bad = UserRanges::one(&memory, at + 2 * PAGE - 1, 2);
        assert_eq!(bad.copy_out(b"12"), Ok(1), "up to where it fails");
        assert_eq!(bad.copy_out(b"2"), Err(crate::CopyError::Fault));
        assert_eq!(memory.read_string(at, 10, Error::ENAMETOOLONG).await, Ok(b"efg".to_vec()));
        memory.copy_out(at, &[b'x'; 20]).await.unwrap();
        assert_eq!(memory.read_string(at, 10, Error::ENAMETOOLONG).await, Err(Error::ENAMETOOLONG));
    });
}

#[test]
fn the_regions_of_an_address_space_are_limited() {
    with_memory(|memory, limits| async move {
        let at = 0x1000_0000;
        memory.map_new(&anonymous(Place::Fixed(at), 80_000 * PAGE), &limits).await.unwrap();
        let mut made = 0;
        while memory.protect(at + (2 * made + 1) * PAGE, PAGE, RO).await.is_ok() {
            made += 1;
        }
        // There was room for one of the last two cuts, which was made.
        assert_eq!(made, (REGIONS_MAXIMUM as u64 - 1) / 2);
        assert_eq!(memory.regions_from(0, usize::MAX).await.len(), REGIONS_MAXIMUM);
        let last = at + 79_000 * PAGE;
        assert_eq!(memory.protect(last, PAGE, RO).await, Err(Error::ENOMEM));
        assert_eq!(memory.unmap(last, PAGE).await, Err(Error::ENOMEM), "a hole would make two of one");
        assert_eq!(memory.lock(last, PAGE, true, &limits, true).await, Err(Error::ENOMEM));
        assert_eq!(memory.advise(last, PAGE, Advice::Fork(false)).await, Err(Error::ENOMEM));
        let moved = memory.remap(last, PAGE, 2 * PAGE, Move::Anywhere, &limits).await;
        assert_eq!(moved, Err(Error::ENOMEM));
        let map = async || memory.map_new(&anonymous(Place::Hint(0x2000), PAGE), &limits).await;
        assert!(map().await.is_ok(), "a new one may be one too many");
        assert_eq!(map().await, Err(Error::ENOMEM));
        // A change that makes no more regions succeeds, and one that removes regions makes room for
        // others.
        assert_eq!(memory.protect(at, PAGE, RO).await, Ok(()));
        assert_eq!(memory.unmap(at, 9 * PAGE).await, Ok(()));
        assert!(map().await.is_ok());
        assert_eq!(memory.protect(last, PAGE, RO).await, Ok(()));
    });
}
