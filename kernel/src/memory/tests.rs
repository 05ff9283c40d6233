//! Kernel memory: exhaustion, quotas, packing, colouring, leaks.
use std::collections::HashSet;

use super::account::UNLIMITED;
use super::*;
use crate::arch::Machine;

const KIB: u64 = 1024;

#[repr(C)]
struct Block([u64; 64]);

#[test]
fn frames_are_zeroed_distinct_and_run_out_without_panic() {
    let _machine = Machine::new(256 * KIB);
    let before = statistics();
    for _ in 0..2 {
        let mut frames = Vec::new();
        while let Ok(frame) = frame::alloc(Account::KERNEL, Use::Kernel) {
            // SAFETY: the frame is ours.
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
fn who_uses_up_memory_leaves_the_reserve_to_the_kernels_own_account() {
    let _machine = Machine::new(4096 * KIB);
    let user = Account::create(UNLIMITED).unwrap();
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
    let account = Account::create(3 * PAGE_SIZE).unwrap();
    account.retain();
    let one = frame::alloc(account, Use::Kernel).unwrap();
    let _two = Reservation::<2>::new(account, Use::Kernel, 2).unwrap();
    assert_eq!(account.used(), 3 * PAGE_SIZE);
    assert!(matches!(frame::alloc(account, Use::Kernel), Err(OutOfMemory)));
    drop(one);
    let one = frame::alloc(account, Use::Kernel).unwrap();
    account.set_limit(UNLIMITED);
    assert!(frame::alloc(account, Use::Kernel).is_ok());
    account.release();
    account.release();
    // Still charged: the slot is not given to another account.
    let other = Account::create(1).unwrap();
    assert_ne!(other, account);
    drop((one, _two));
    assert_eq!(Account::create(1).unwrap(), account);
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
    let account = Account::create(UNLIMITED).unwrap();
    let before = statistics();
    let objects: Vec<_> = (0..300).map(|_| SLAB.alloc(account).unwrap()).collect();
    assert_eq!(SLAB.usage(), (300, 3));
    assert_eq!(account.used(), 300 * 32);
    assert_eq!(objects.iter().collect::<HashSet<_>>().len(), 300);
    assert!(objects.iter().all(|object| object.is_aligned(5)));
    // Any order of freeing works, and what comes again is zero.
    for (index, &object) in objects.iter().enumerate().filter(|(index, _)| index % 3 == 0) {
        // SAFETY: the object is ours.
        unsafe { crate::arch::phys_to_virt(object).write_bytes(index as u8, 32) };
        // SAFETY: as above, and freed once.
        unsafe { SLAB.free(object, account, false) };
    }
    for _ in 0..100 {
        let object = SLAB.alloc(account).unwrap();
        assert!(objects.contains(&object));
        // SAFETY: the object is ours.
        let bytes = unsafe { std::slice::from_raw_parts(crate::arch::phys_to_virt(object), 32) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
    for &object in &objects {
        // SAFETY: all are in use, each is freed once.
        unsafe { SLAB.free(object, account, false) };
    }
    assert_eq!(SLAB.usage(), (0, 1), "one frame is kept");
    assert_eq!(statistics().of(Use::Free) + 1, before.of(Use::Free));
    assert_eq!(account.used(), 0);
}

#[test]
fn stable_slabs_keep_contents_and_spread_over_cache_sets() {
    let _machine = Machine::new(256 * KIB);
    static SLAB: ObjectSlab<Block> = ObjectSlab::stable(Use::Threads, 504);
    let objects: Vec<_> = (0..56).map(|_| SLAB.alloc(Account::KERNEL).unwrap()).collect();
    assert_eq!(SLAB.slab().usage(), (56, 8));
    let first_lines: HashSet<_> = objects.iter().map(|object| object.as_ptr() as usize % 4096 / 64).collect();
    assert_eq!(first_lines.len(), 56, "eight frames of seven objects meet in no cache set of a 4 KiB way");
    for object in &objects {
        // SAFETY: the memory is ours.
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
