//! The models. Their names contain `loom`, by which `./mac test` finds them.

use crate::counters::Counters;
use crate::ring::{Ring, Wanted};
use crate::spin_lock::SpinLock;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// A value whose accesses loom watches: two at once, or one that does not see an earlier one, fail the model.
struct Watched(UnsafeCell<u64>);

impl Watched {
    fn add(&self) -> u64 {
        self.0.with_mut(|value| {
            // SAFETY: loom fails the model if anybody else accesses the value meanwhile.
            unsafe {
                *value += 1;
                *value
            }
        })
    }
}

// SAFETY: the lock that it is in is what the models check.
unsafe impl Send for Watched {}

#[test]
fn loom_spin_lock_excludes_and_publishes() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(Watched(UnsafeCell::new(0))));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || lock.lock().add())
            })
            .collect();
        let mut seen: Vec<u64> = others.into_iter().map(|other| other.join().unwrap()).collect();
        seen.push(lock.lock().add());
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    });
}

#[test]
fn loom_spin_lock_is_taken_once_by_those_who_try() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(Watched(UnsafeCell::new(0))));
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || lock.try_lock().map(|value| value.add()).is_some())
        };
        let here = lock.try_lock().map(|value| value.add()).is_some();
        let taken = u64::from(here) + u64::from(other.join().unwrap());
        assert!(taken >= 1, "a free lock is taken");
        assert_eq!(lock.lock().add(), taken + 1);
    });
}

#[test]
fn loom_trace_events_find_their_memory() {
    loom::model(|| {
        let shared = Arc::new((Wanted::new(), Ring::<1>::new()));
        let recorder = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (wanted, ring) = &*shared;
                let mut recorded = 0;
                for _ in 0..2 {
                    if wanted.get() != 0 {
                        assert_ne!(ring.frame(0), 0, "an event is wanted, and there is nowhere to put it");
                        ring.advance();
                        recorded += 1;
                    }
                }
                recorded
            })
        };
        let (wanted, ring) = &*shared;
        ring.set_frames([7]);
        wanted.set(1);
        let recorded = recorder.join().unwrap();
        assert_eq!(ring.count(), recorded);
    });
}

#[test]
fn loom_accounts_keep_their_limit() {
    loom::model(|| {
        let account = Arc::new(Counters::new(10));
        let charge = |account: &Counters| u64::from(account.charge(6)) * 6;
        let other = {
            let account = Arc::clone(&account);
            thread::spawn(move || charge(&account))
        };
        let charged = charge(&account) + other.join().unwrap();
        assert!(charged <= 10 && account.used() == charged, "{charged} of 10");
    });
}

/// An account whose last reference and whose last byte are given back at the same time is freed, and once.
#[test]
fn loom_accounts_are_freed_once() {
    loom::model(|| {
        let account = Arc::new(Counters::new(10));
        assert!(account.charge(6));
        let freed = Arc::new(AtomicU32::new(0));
        let free_if = |unused: bool, account: &Counters, freed: &AtomicU32| {
            // The kernel holds a lock here, which orders those who claim.
            if unused && account.claim() {
                freed.fetch_add(1, Ordering::AcqRel);
            }
        };
        let other = {
            let (account, freed) = (Arc::clone(&account), Arc::clone(&freed));
            thread::spawn(move || free_if(account.release(), &account, &freed))
        };
        free_if(account.credit(6), &account, &freed);
        other.join().unwrap();
        assert_eq!(freed.load(Ordering::Acquire), 1);
    });
}
