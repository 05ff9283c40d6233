//! The models. Their names contain `loom`, by which `./mac test` finds them.

use crate::arch::Request;
use crate::counters::{Counters, NONE, Table};
use crate::ring::{Ring, Wanted};
use crate::spin_lock::SpinLock;
use crate::walks::Walks;
use loom::cell::UnsafeCell;
use loom::hint::spin_loop;
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

    fn get(&self) -> u64 {
        // SAFETY: loom fails the model if anybody changes the value meanwhile.
        self.0.with(|value| unsafe { *value })
    }
}

// SAFETY: the lock that it is in is what the models check.
unsafe impl Send for Watched {}
// SAFETY: so is whatever else keeps accesses apart.
unsafe impl Sync for Watched {}

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

/// Who holds a lock may wait for an answer of who waits for the lock, as with shoot-downs within changes of mappings.
#[test]
fn loom_who_waits_for_a_spin_lock_serves_requests() {
    loom::model(|| {
        let shared = Arc::new((SpinLock::new(()), Arc::new(Request::new())));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (lock, request) = &*shared;
                Request::expect(request);
                drop(lock.lock());
                // At user level again, where interrupts are on.
                while !request.serve() {
                    spin_loop();
                }
            })
        };
        let (lock, request) = &*shared;
        let held = lock.lock();
        request.make_and_wait();
        drop(held);
        other.join().unwrap();
    });
}

/// Memory that a walk has found in a page table is nobody else's before the walk has ended; later walks do not find it.
#[test]
fn loom_what_a_walk_finds_is_not_given_away_before_its_end() {
    loom::model(|| {
        let shared = Arc::new((Walks::new(), AtomicU32::new(1), Watched(UnsafeCell::new(7))));
        let walker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (walks, entry, memory) = &*shared;
                for _ in 0..2 {
                    walks.begin();
                    if entry.load(Ordering::Relaxed) != 0 {
                        assert_eq!(memory.get(), 7, "it is the walker's");
                    }
                    walks.end();
                }
            })
        };
        let (walks, entry, memory) = &*shared;
        entry.store(0, Ordering::Relaxed);
        Walks::await_ends([walks].into_iter());
        memory.add();
        walker.join().unwrap();
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

/// Accounts with these limits, with a reference each; their numbers begin at 1.
struct Accounts {
    counters: Vec<Counters>,
    freed: AtomicU32,
}

impl Accounts {
    fn new<const COUNT: usize>(limits: [u64; COUNT]) -> Arc<Self> {
        let counters = [u64::MAX].into_iter().chain(limits).map(Counters::new).collect();
        Arc::new(Self { counters, freed: AtomicU32::new(0) })
    }

    fn used(&self) -> Vec<u64> {
        self.counters[1..].iter().map(Counters::used).collect()
    }
}

impl Table for Accounts {
    fn counters(&self, number: u16) -> &Counters {
        &self.counters[usize::from(number)]
    }

    fn reclaim(&self, number: u16) {
        // The kernel holds a lock here, which orders those who claim.
        if self.counters(number).claim() {
            self.freed.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Does both at once and returns what the first has.
fn race<R: 'static>(
    accounts: &Arc<Accounts>,
    first: fn(&Accounts) -> R,
    second: impl FnOnce(&Accounts),
) -> R {
    let other = {
        let accounts = Arc::clone(accounts);
        thread::spawn(move || first(&accounts))
    };
    second(accounts);
    other.join().unwrap()
}

#[test]
fn loom_accounts_keep_their_limit() {
    loom::model(|| {
        let accounts = Accounts::new([10]);
        let mut here = false;
        let there =
            race(&accounts, |accounts| accounts.charge(1, 6), |accounts| here = accounts.charge(1, 6));
        assert!(here != there, "one of them has it");
        assert_eq!(accounts.used(), [6]);
    });
}

/// An account whose last reference and whose last byte are given back at the same time is freed, and once.
#[test]
fn loom_accounts_are_freed_once() {
    loom::model(|| {
        let accounts = Accounts::new([10]);
        assert!(accounts.charge(1, 6));
        let release = |accounts: &Accounts| {
            if accounts.counters(1).release() {
                accounts.reclaim(1);
            }
        };
        race(&accounts, release, |accounts| accounts.credit(1, 6));
        assert_eq!(accounts.freed.load(Ordering::Acquire), 1);
    });
}

/// Two that share the limit of a third keep it together.
#[test]
fn loom_accounts_share_a_limit() {
    loom::model(|| {
        let accounts = Accounts::new([u64::MAX, u64::MAX, 10]);
        assert!(accounts.relink(1, 3, 0, 0) && accounts.relink(2, 3, 0, 0));
        let mut here = false;
        let there =
            race(&accounts, |accounts| accounts.charge(1, 6), |accounts| here = accounts.charge(2, 6));
        assert!(here != there, "one of them has it");
        assert_eq!(accounts.used(), [6 * u64::from(there), 6 * u64::from(here), 6]);
    });
}

/// What is taken, or given back, while the account moves from one upper account to another counts at the one where it ends.
#[test]
fn loom_accounts_move_with_what_they_use() {
    let check = |race_with: fn(&Accounts) -> u64, before: u64| {
        loom::model(move || {
            let accounts = Accounts::new([u64::MAX, 20, 20]);
            assert!(accounts.relink(1, 2, 0, 0) && accounts.charge(1, before));
            let used = race(&accounts, race_with, |accounts| assert!(accounts.relink(1, 3, 0, 0)));
            assert_eq!(accounts.used(), [used, 0, used]);
        });
    };
    check(|accounts| 4 + 6 * u64::from(accounts.charge(1, 6)), 4);
    check(
        |accounts| {
            accounts.credit(1, 6);
            4
        },
        10,
    );
}

/// The same for an account that leaves the shared quota and keeps a part of it for itself.
#[test]
fn loom_accounts_leave_with_a_part() {
    loom::model(|| {
        // The upper account has room for what stays and what comes: one of them is taken twice for a moment.
        let accounts = Accounts::new([15, 21]);
        assert!(accounts.relink(1, 2, 0, 0) && accounts.charge(1, 4));
        let charged = race(
            &accounts,
            |accounts| accounts.charge(1, 6),
            |accounts| assert!(accounts.relink(1, NONE, 0, 15)),
        );
        assert!(charged);
        assert_eq!(accounts.used(), [10, 15]);
    });
}
