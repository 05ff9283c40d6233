//! Kernel memory: exhaustion, quotas, packing, colouring, leaks.
use std::collections::HashSet;

use x2::extension::Quota;

use super::*;
use crate::arch::Machine;

const KIB: u64 = 1024;

#[repr(C)]
struct Block([u64; 64]);

fn quota(bytes: u64) -> Quota {
    Quota::from_word(bytes).unwrap()
}

#[test]
fn frames_are_zeroed_distinct_and_run_out_without_panic() {
    let _machine = Machine::new(256 * KIB);
    let before = statistics();
    for _ in 0..2 {
        let mut frames = Vec::new();
        while let Ok(frame) = frame::alloc(Account::KERNEL, Use::Kernel) {
            // SAFETY: the frame belongs to the test.
            let bytes = unsafe { std::slice::from_raw_parts_mut(frame.as_ptr(), PAGE_SIZE as usize) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(0xa5);
            frames.push(frame);
        }
        let addresses: HashSet<_> = frames.iter().map(Frame::address).collect();
        assert_eq!(addresses.len(), frames.len());
        assert_eq!(statistics().of(Use::Free), 0);
        assert_eq!(statistics().of(Use::Kernel) as usize, frames.len());
        assert!(frames.len() > 55);
    }
    assert_eq!(statistics(), before);
}

#[test]
fn an_account_that_uses_up_memory_leaves_the_reserve_to_the_kernel() {
    let _machine = Machine::new(4096 * KIB);
    let user = Account::create(Quota::UNLIMITED).unwrap();
    let before = statistics().of(Use::Free);
    let taken: Vec<_> = std::iter::from_fn(|| frame::alloc(user, Use::Kernel).ok()).collect();
    let reserve = statistics().of(Use::Free);
    assert!((10..before / 10).contains(&reserve), "{reserve} of {before}");
    // Objects come from frames.
    static SLAB: ObjectSlab<Block> = ObjectSlab::new(Use::Kernel);
    assert!(SLAB.reserve(user).is_err());
    assert!(SLAB.reserve(Account::KERNEL).is_ok());
    let kept: Vec<_> = std::iter::from_fn(|| frame::alloc(Account::KERNEL, Use::Kernel).ok()).collect();
    assert!(kept.len() as u32 >= reserve - 1);
    drop(taken);
    drop(kept);
    assert!(frame::alloc(user, Use::Kernel).is_ok());
}

#[test]
fn an_account_limits_its_users_together() {
    let _machine = Machine::new(256 * KIB);
    let account = Account::create(quota(3 * PAGE_SIZE)).unwrap();
    account.retain();
    let one = frame::alloc(account, Use::Kernel).unwrap();
    let _two = Reservation::<2>::new(account, Use::Kernel, 2).unwrap();
    assert_eq!(account.used(), 3 * PAGE_SIZE);
    assert!(matches!(frame::alloc(account, Use::Kernel), Err(OutOfMemory)));
    drop(one);
    let one = frame::alloc(account, Use::Kernel).unwrap();
    account.set_limit(Quota::UNLIMITED);
    assert!(frame::alloc(account, Use::Kernel).is_ok());
    account.release();
    account.release();
    // The account is still charged: its slot is not given to another account.
    let other = Account::create(quota(1)).unwrap();
    assert_ne!(other, account);
    drop((one, _two));
    assert_eq!(Account::create(quota(1)).unwrap(), account);
}

#[test]
fn a_reservation_takes_all_or_nothing() {
    let _machine = Machine::new(256 * KIB);
    let before = statistics();
    injection::fail_nth(3);
    assert!(Reservation::<4>::new(Account::KERNEL, Use::Kernel, 4).is_err());
    assert_eq!(statistics(), before);
    let mut reservation = Reservation::<4>::new(Account::KERNEL, Use::Kernel, 4).unwrap();
    let frame = reservation.take();
    drop(reservation);
    assert_eq!(statistics().of(Use::Kernel), 1);
    drop(frame);
    assert_eq!(statistics(), before);
}

#[test]
fn slabs_pack_and_give_frames_back() {
    let _machine = Machine::new(256 * KIB);
    static SLAB: Slab = Slab::new(Use::MapNodes, 32);
    let account = Account::create(Quota::UNLIMITED).unwrap();
    let before = statistics();
    let objects: Vec<_> = (0..300).map(|_| SLAB.alloc(account).unwrap()).collect();
    assert_eq!(SLAB.usage(), (300, 3));
    assert_eq!(account.used(), 300 * 32);
    assert_eq!(objects.iter().collect::<HashSet<_>>().len(), 300);
    assert!(objects.iter().all(|object| object.is_aligned(5)));
    // Objects can be freed in any order, and hold zeros when they are allocated again.
    for (index, &object) in objects.iter().enumerate().filter(|(index, _)| index % 3 == 0) {
        // SAFETY: the object belongs to the test.
        unsafe { crate::arch::phys_to_virt(object).write_bytes(index as u8, 32) };
        // SAFETY: as above, and freed once.
        unsafe { SLAB.free(object, account) };
    }
    for _ in 0..100 {
        let object = SLAB.alloc(account).unwrap();
        assert!(objects.contains(&object));
        // SAFETY: the object belongs to the test.
        let bytes = unsafe { std::slice::from_raw_parts(crate::arch::phys_to_virt(object), 32) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
    for &object in &objects {
        // SAFETY: all are in use, each is freed once.
        unsafe { SLAB.free(object, account) };
    }
    assert_eq!(SLAB.usage(), (0, 1), "one frame is kept");
    assert_eq!(statistics().of(Use::Free) + 1, before.of(Use::Free));
    assert_eq!(account.used(), 0);
}

#[test]
fn stable_slabs_keep_contents_and_spread_over_cache_sets() {
    let _machine = Machine::new(256 * KIB);
    static SLAB: ObjectSlab<Block, 504> = ObjectSlab::new(Use::Threads);
    let objects: Vec<_> = (0..56).map(|_| SLAB.alloc(Account::KERNEL).unwrap()).collect();
    assert_eq!(SLAB.slab().usage(), (56, 8));
    let first_lines: HashSet<_> = objects.iter().map(|object| object.as_ptr() as usize % 4096 / 64).collect();
    assert_eq!(first_lines.len(), 56, "eight frames of seven objects meet in no cache set of a 4 KiB way");
    for object in &objects {
        // SAFETY: the memory belongs to the test.
        unsafe { object.as_ptr().write(Block([7; 64])) };
    }
    for &object in &objects {
        // SAFETY: as above, freed once.
        unsafe { SLAB.free(object, Account::KERNEL) };
    }
    // SAFETY: a stable slab's memory stays what it was.
    assert!(objects.iter().all(|object| unsafe { object.read() }.0[..63] == [7; 63]));
    assert_eq!(SLAB.slab().usage(), (0, 8));
    let reserved = SLAB.reserve(Account::KERNEL).unwrap();
    assert_eq!(SLAB.slab().usage().0, 1);
    drop(reserved);
    assert_eq!(SLAB.slab().usage().0, 0);
}

#[test]
fn what_a_stable_slab_had_last_is_at_hand() {
    let _machine = Machine::new(256 * KIB);
    static SLAB: ObjectSlab<Block, 504> = ObjectSlab::new(Use::Threads);
    // SAFETY: the test is one thread: nothing else uses the slab.
    let at_hand = || unsafe { SLAB.alloc_at_hand(Account::KERNEL) };
    let [first, second] = [at_hand(), SLAB.alloc(Account::KERNEL).ok()].map(Option::unwrap);
    // SAFETY: the test is one thread, so nothing else uses the slab, and each object is freed once.
    unsafe {
        SLAB.free(first, Account::KERNEL);
        SLAB.free_to_hand(second, Account::KERNEL);
    }
    assert_eq!(SLAB.slab().usage(), (0, 1));
    assert_eq!(at_hand(), Some(second));
    injection::fail_nth(100);
    assert_eq!(at_hand(), None, "what is unusual is not for this way");
    let another = SLAB.alloc(Account::KERNEL).unwrap();
    assert!(injection::cancel() && another != first, "nor is what is at hand for that");
    assert_eq!(SLAB.alloc(Account::KERNEL), Ok(first));
    assert_eq!(SLAB.slab().usage(), (3, 1));
    let poor = Account::create(quota(512)).unwrap();
    // SAFETY: the test is one thread: nothing else uses the slab.
    let for_poor = || unsafe { SLAB.alloc_at_hand(poor) };
    assert!((0..4).all(|_| at_hand().is_some()));
    let hoard: Vec<_> = core::iter::from_fn(|| frame::alloc(Account::KERNEL, Use::Kernel).ok()).collect();
    assert_eq!((for_poor(), poor.used()), (None, 0), "there is no memory");
    drop(hoard);
    assert!(for_poor().is_some() && for_poor().is_none());
    assert_eq!((SLAB.slab().usage(), poor.used()), ((8, 2), 512));
}

#[test]
fn accounts_are_charged_apart_as_together() {
    let _machine = Machine::new(256 * KIB);
    let [owner, shared] = [quota(1000), Quota::UNLIMITED].map(|limit| Account::create(limit).unwrap());
    assert!(!owner.charge_apart(1001) && owner.charge_apart(600));
    shared.share(Some(owner), 0, 0).unwrap();
    assert!(!shared.charge_apart(401) && shared.charge_apart(400));
    assert_eq!([owner, shared].map(Account::used), [1000, 400]);
    shared.credit_apart(400);
    assert_eq!([owner, shared].map(Account::used), [600, 0]);
    owner.release();
    owner.credit_apart(600);
    assert_eq!(Account::create(Quota::UNLIMITED), Ok(owner), "the last byte frees what no account has");
}

#[test]
fn no_sum_of_quotas_reaches_the_upper_accounts_number() {
    let _machine = Machine::new(256 * KIB);
    let words = [0, 1 << 30, Quota::END - 1, u64::MAX];
    assert!(words.iter().all(|&word| Quota::from_word(word).is_some_and(|quota| quota.word() == word)));
    assert!((47..64).all(|bit| Quota::from_word(1 << bit).is_none()));
    assert!((1..16).all(|below| Quota::from_word(u64::MAX - below).is_none()));
    let most = Quota::END - 1;
    let [owner, shared] = [Quota::UNLIMITED; 2].map(|limit| Account::create(limit).unwrap());
    shared.share(Some(owner), 0, 0).unwrap();
    for account in [owner, shared] {
        account.charge(PAGE_SIZE).unwrap();
        account.charge(most).unwrap();
        // The rest is less than another largest quota, or than a page, and is not exceeded in any
        // of several ways.
        let before = [owner, shared].map(|account| (account.used(), account.upper()));
        assert_eq!(account.charge(most), Err(OutOfMemory));
        assert_eq!(account.charge(u64::MAX), Err(OutOfMemory));
        assert!(!account.charge_apart(most));
        assert_eq!([owner, shared].map(|account| (account.used(), account.upper())), before);
        account.credit(most);
    }
    assert_eq!([owner, shared].map(Account::upper), [None, Some(owner)]);
    assert_eq!([owner, shared].map(Account::limit), [Quota::UNLIMITED; 2]);
    assert_eq!([owner, shared].map(Account::used), [2 * PAGE_SIZE, PAGE_SIZE]);
}

#[test]
fn the_nth_allocation_fails() {
    let _machine = Machine::new(256 * KIB);
    static SLAB: Slab = Slab::new(Use::Kernel, 128);
    injection::fail_nth(2);
    let frame = frame::alloc(Account::KERNEL, Use::Kernel).unwrap();
    assert_eq!(SLAB.alloc(Account::KERNEL), Err(OutOfMemory));
    assert!(SLAB.alloc(Account::KERNEL).is_ok());
    assert!(!injection::cancel());
    drop(frame);
}

#[test]
fn accounts_share_the_quota_of_another() {
    let _machine = Machine::new(256 * KIB);
    let [owner, first, second] = [quota(10 * PAGE_SIZE), Quota::UNLIMITED, Quota::UNLIMITED]
        .map(|limit| Account::create(limit).unwrap());
    let before = frame::alloc(first, Use::Kernel).unwrap();
    first.share(Some(owner), 0, 0).unwrap();
    second.share(Some(first), 0, 0).unwrap();
    assert_eq!([owner, first, second].map(Account::used), [PAGE_SIZE, PAGE_SIZE, 0]);
    let frames: Vec<_> = (0..9).map(|_| frame::alloc(second, Use::Kernel).unwrap()).collect();
    for account in [owner, first, second] {
        assert!(frame::alloc(account, Use::Kernel).is_err(), "nothing is left for {account:?}");
    }
    assert_eq!([owner, first, second].map(|account| account.used() / PAGE_SIZE), [10, 10, 9]);
    // A part of the quota becomes the second account's own: what is used stays, and nothing is left
    // beyond.
    second.set_limit(quota(11 * PAGE_SIZE));
    assert_eq!(second.share(None, 0, 11 * PAGE_SIZE), Err(OutOfMemory));
    assert_eq!((second.upper(), owner.used()), (Some(first), 10 * PAGE_SIZE));
    drop(before);
    second.share(None, 0, 10 * PAGE_SIZE).unwrap();
    second.set_limit(quota(10 * PAGE_SIZE));
    assert_eq!([owner, first, second].map(|account| account.used() / PAGE_SIZE), [10, 10, 9]);
    let more = frame::alloc(second, Use::Kernel).unwrap();
    assert!(frame::alloc(second, Use::Kernel).is_err());
    drop((frames, more));
    assert_eq!([owner, first, second].map(|account| account.used() / PAGE_SIZE), [10, 10, 0]);
    // The account shares the quota again, and gives back what it does not use.
    second.share(Some(first), 10 * PAGE_SIZE, 0).unwrap();
    assert_eq!([owner, first, second].map(Account::used), [0; 3]);
    // The object does not go to another owner without room.
    let poor = Account::create(quota(PAGE_SIZE - 1)).unwrap();
    let frame = frame::alloc(second, Use::Kernel).unwrap();
    assert_eq!(second.share(Some(poor), 0, 0), Err(OutOfMemory));
    assert_eq!([owner, first, second, poor].map(Account::used), [PAGE_SIZE, PAGE_SIZE, PAGE_SIZE, 0]);
    first.share(None, 0, 0).unwrap();
    assert_eq!([owner, first, second].map(Account::used), [0, PAGE_SIZE, PAGE_SIZE]);
    drop(frame);
}

/// Sharing is limited to so many levels that charging them takes neither too long nor too much of
/// the stack.
#[test]
fn levels_of_sharing_are_bounded() {
    let _machine = Machine::new(256 * KIB);
    let accounts: Vec<_> = (0..100).map(|_| Account::create(Quota::UNLIMITED).unwrap()).collect();
    for pair in accounts.windows(2) {
        pair[0].share(Some(pair[1]), 0, 0).unwrap();
    }
    assert_eq!(accounts[0].charge(1), Err(OutOfMemory));
    assert!(accounts.iter().all(|account| account.used() == 0), "all or nothing");
    accounts[70].charge(1).unwrap();
    assert!(accounts[70..].iter().all(|account| account.used() == 1));
    accounts[70].credit(1);
}

/// Random owners, charges and returns: each account has what it and those below it use, and no
/// limit is exceeded.
#[test]
fn shared_quotas_always_add_up() {
    const ACCOUNTS: usize = 6;
    for seed in 1..200u64 {
        let _machine = Machine::new(256 * KIB);
        let mut state = seed;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let accounts: [Account; ACCOUNTS] = core::array::from_fn(|_| {
            Account::create(if below(2) == 0 { Quota::UNLIMITED } else { quota(20 + below(100)) }).unwrap()
        });
        let mut upper = [None; ACCOUNTS];
        let mut own = [0; ACCOUNTS];
        for _ in 0..200 {
            let which = below(ACCOUNTS as u64) as usize;
            let bytes = below(20);
            match below(4) {
                0 => {
                    // Accounts share quotas only upwards, so that there is no circle.
                    let to = which + 1 + below(ACCOUNTS as u64) as usize;
                    let to = (to < ACCOUNTS).then_some(to);
                    if accounts[which].share(to.map(|to| accounts[to]), 0, 0).is_ok() {
                        upper[which] = to;
                    }
                }
                1 if own[which] >= bytes => {
                    accounts[which].credit(bytes);
                    own[which] -= bytes;
                }
                _ => {
                    if accounts[which].charge(bytes).is_ok() {
                        own[which] += bytes;
                    }
                }
            }
            let mut sums = own;
            for number in 0..ACCOUNTS {
                if let Some(to) = upper[number] {
                    sums[to] += sums[number];
                }
            }
            assert_eq!(accounts.map(Account::used), sums, "seed {seed}");
            assert!(accounts.iter().all(|account| account.used() <= account.limit().word()), "seed {seed}");
        }
    }
}

/// Two nodes: one below and one above a hole, which have 1 MiB and 3 MiB of kernel memory.
fn two_nodes() -> Machine {
    let machine = Machine::new(8192 * KIB);
    let start = node::layout().pieces()[0].0.start;
    let mut distances = node::Layout::EMPTY.distances;
    (distances[0][0], distances[1][1]) = (node::LOCAL_DISTANCE, node::LOCAL_DISTANCE);
    let mut layout = node::Layout::new(2, distances);
    layout.add(PhysRange::new(start.offset(5 << 20), start.offset(8 << 20)), 1);
    layout.add(PhysRange::new(start, start.offset(1 << 20)), 0);
    // SAFETY: the machine is new, and its memory has not been used.
    unsafe { init(&layout) };
    machine
}

/// Rules: EXT 10.2.
#[test]
fn frames_come_from_the_wanted_node_and_return_there() {
    let _machine = two_nodes();
    let alloc = |node| node::from(node, || frame::alloc(Account::KERNEL, Use::Kernel));
    let free = statistics().of(Use::Free);
    let of_nodes = [0, 1].map(frame::statistics_of);
    assert_eq!(of_nodes.map(|node| node.total), [256, 768]);
    assert_eq!(of_nodes.iter().map(|node| node.of(Use::Free)).sum::<u32>(), free);
    // The records of the hole's frames take no memory: 1024 of 2048 frames have some.
    assert!(statistics().of(Use::Records) <= 6, "{:?}", statistics());
    for _ in 0..3 {
        let frames: Vec<_> = (0..40).map(|number| alloc(number % 2).unwrap()).collect();
        for (number, frame) in frames.iter().enumerate() {
            assert_eq!(usize::from(node::of(frame.address())), number % 2);
        }
    }
    assert_eq!([0, 1].map(frame::statistics_of), of_nodes);
    // A node that has nothing left gets it from the other.
    let mut all: Vec<_> = std::iter::from_fn(|| alloc(0).ok()).collect();
    assert_eq!((all.len() as u32, statistics().of(Use::Free)), (free, 0));
    let of_first = of_nodes[0].of(Use::Free) as usize;
    assert!(all[..of_first].iter().all(|frame| node::of(frame.address()) == 0));
    all.truncate(of_first);
    drop(all);
    assert_eq!([0, 1].map(frame::statistics_of), of_nodes);
}

/// Rules: EXT 10.2.
#[test]
fn objects_come_from_the_wanted_node_and_return_there() {
    static SLAB: ObjectSlab<Block> = ObjectSlab::new(Use::Kernel);
    let _machine = two_nodes();
    let account = Account::create(Quota::UNLIMITED).unwrap();
    let alloc = |node| node::from(node, || SLAB.alloc(account));
    let node_of = |object| node::of(crate::arch::virt_to_phys(std::ptr::NonNull::as_ptr(object)));
    // SAFETY: the objects are the test's.
    let free = |object| unsafe { SLAB.free(object, account) };
    for _ in 0..3 {
        let objects: Vec<_> = (0..100).map(|number| alloc(number % 2).unwrap()).collect();
        assert!(
            objects.iter().enumerate().all(|(number, object)| usize::from(node_of(*object)) == number % 2)
        );
        objects.into_iter().rev().for_each(free);
        assert_eq!(SLAB.slab().usage(), (0, 2), "each node keeps a frame");
    }
    // Memory runs out in one node, then in both, and an object of the other node is better than
    // none.
    let kept = [alloc(0).unwrap(), alloc(1).unwrap()];
    let mut frames: Vec<_> = std::iter::from_fn(|| frame::alloc(Account::KERNEL, Use::Kernel).ok()).collect();
    let objects: Vec<_> = std::iter::from_fn(|| alloc(0).ok()).collect();
    assert_eq!(objects.len(), 2 * (PAGE_SIZE as usize / size_of::<Block>() - 1), "the rest of both frames");
    assert_eq!(account.used(), ((objects.len() + 2) * size_of::<Block>()) as u64);
    objects.into_iter().chain(kept).for_each(free);
    frames.clear();
    assert_eq!(account.used(), 0);
    account.release();
}

/// What the kernel allocates while it works for no thread comes from the node of the processor.
#[test]
fn without_a_thread_the_processor_says_the_node() {
    let _machine = two_nodes();
    assert_eq!(node::wanted(), 0);
    node::set_processor(crate::arch::cpu_number(), 1);
    assert_eq!(node::wanted(), 1);
    assert_eq!(node::from(0, node::wanted), 0);
    let frame = frame::alloc(Account::KERNEL, Use::Kernel).unwrap();
    assert_eq!(node::of(frame.address()), 1);
}
