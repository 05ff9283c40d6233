//! The models. Their names contain `loom`, by which `./mac test` finds them.

use crate::arch::{serve_by, serve_requests};
use crate::counters::{Counters, NONE, Table};
use crate::redirector_word::{GONE, RedirectorWord};
use crate::ring::{Ring, Wanted};
use crate::shoot_down::{ActiveRoot, Requested, ShootDown};
use crate::spin_lock::SpinLock;
use crate::walks::Walks;
use loom::cell::UnsafeCell;
use loom::hint::spin_loop;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;
use std::cell::Cell;
use std::rc::Rc;

/// A value whose accesses loom watches. The model fails if two accesses overlap, or if one does not
/// see an earlier one.
struct Watched(UnsafeCell<u64>);

impl Watched {
    fn add(&self) -> u64 {
        self.0.with_mut(|value| {
            // SAFETY: loom fails the model if another thread accesses the value meanwhile.
            unsafe {
                *value += 1;
                *value
            }
        })
    }

    fn get(&self) -> u64 {
        // SAFETY: loom fails the model if another thread changes the value meanwhile.
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
fn loom_spin_lock_is_taken_once_by_several_that_try() {
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

/// A space's redirector goes while another one is set.
#[test]
fn loom_the_end_of_a_redirector_does_not_take_another_away() {
    const OLD: u64 = 5;
    const NEW: u64 = 6;
    loom::model(|| {
        let word = Arc::new(RedirectorWord::new());
        word.set(OLD);
        let ends = {
            let word = Arc::clone(&word);
            thread::spawn(move || word.forget(OLD))
        };
        let changed = word.set(NEW);
        ends.join().unwrap();
        assert!(changed, "what waits for the old one is told");
        assert_eq!(word.get(), NEW);
        word.forget(NEW);
        assert_eq!(word.get(), GONE);
    });
}

/// Two processors that run threads of one space, with two pages. Memory that was taken out of a
/// page table belongs to the thread that took it out. (The threads of a model share this by the
/// ordinary `Arc`: what a processor serves requests with outlives a model that fails.)
struct Shared {
    shoot_down: ShootDown,
    processors: [(ActiveRoot, Requested); 2],
    /// The page table: whether a page is there.
    entries: [AtomicU32; 2],
    memory: [Watched; 2],
    /// Accesses to the page table itself.
    table: Watched,
    done: AtomicU32,
}

const ROOT: u64 = 1;
const OTHER_ROOT: u64 = 2;

/// The processor loads another page table.
fn load() {
    fence(Ordering::SeqCst);
}

impl Shared {
    fn new() -> std::sync::Arc<Self> {
        let pair = || [0, 0].map(|word| Watched(UnsafeCell::new(word)));
        std::sync::Arc::new(Self {
            shoot_down: ShootDown::new(),
            processors: [0, 1].map(|_| (ActiveRoot::new(), Requested::new())),
            entries: [0, 1].map(|_| AtomicU32::new(1)),
            memory: pair(),
            table: Watched(UnsafeCell::new(0)),
            done: AtomicU32::new(0),
        })
    }

    /// Tells the other one than `here`, if that is true of it, what has become of [`ROOT`].
    fn tell_other(&self, here: usize, concerns: fn(&ActiveRoot, u64) -> bool) -> u32 {
        self.shoot_down.send(
            [1 - here].into_iter(),
            |other| concerns(&self.processors[other].0, ROOT),
            || {},
            |other| &self.processors[other].1,
            |_| {},
        )
    }

    /// From now on the executing processor serves requests by calling `carry_out`.
    fn serve_by(shared: &std::sync::Arc<Self>, here: usize, carry_out: impl Fn(&Self) + 'static) {
        let shared = std::sync::Arc::clone(shared);
        serve_by(move || {
            let asked = &shared.processors[here].1;
            if asked.get() {
                shared.shoot_down.serve(asked, || carry_out(&shared));
            }
        });
    }

    /// The executing processor has nothing more to do than to serve the others, at user level.
    fn end(&self) {
        self.done.fetch_add(1, Ordering::AcqRel);
        while self.done.load(Ordering::Acquire) < 2 {
            serve_requests();
            spin_loop();
        }
    }

    /// Uses the page of the other processor, takes its own away and uses that memory for something
    /// else.
    fn use_and_unmap(shared: &std::sync::Arc<Self>, here: usize) {
        let remembered = Rc::new(Cell::new(false));
        let forgotten = Rc::clone(&remembered);
        Self::serve_by(shared, here, move |_| forgotten.set(false));
        shared.processors[here].0.change(ROOT, load);
        remembered.set(shared.entries[1 - here].load(Ordering::Relaxed) != 0);
        serve_requests();
        if remembered.get() {
            shared.memory[1 - here].get();
        }
        serve_requests();
        shared.entries[here].store(0, Ordering::Relaxed);
        shared.tell_other(here, ActiveRoot::is);
        shared.memory[here].add();
        shared.end();
    }
}

/// A model in which processors wait for each other: with few preemptions, since there are too many.
fn bounded(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Two processors take a page away at the same time: each waits until the other has forgotten it,
/// and neither waits for ever.
#[test]
fn loom_shoot_down_against_shoot_down() {
    bounded(|| {
        let shared = Shared::new();
        let other = {
            let shared = std::sync::Arc::clone(&shared);
            thread::spawn(move || Shared::use_and_unmap(&shared, 1))
        };
        Shared::use_and_unmap(&shared, 0);
        other.join().unwrap();
    });
}

/// A page table is freed while a processor leaves it, by `leave`: it is not used afterwards.
fn freed_while_left(leave: fn(&ActiveRoot, &dyn Fn())) {
    bounded(move || {
        let shared = Shared::new();
        let user = {
            let shared = std::sync::Arc::clone(&shared);
            thread::spawn(move || {
                Shared::serve_by(&shared, 1, |shared| shared.processors[1].0.unload(load));
                let root = &shared.processors[1].0;
                root.change(ROOT, load);
                if shared.entries[0].load(Ordering::Relaxed) != 0 {
                    // Until another table is loaded the processor looks at this one whenever it
                    // likes.
                    leave(root, &|| {
                        shared.table.get();
                        load();
                    });
                }
                shared.end();
            })
        };
        // The space has no thread any more, so that no processor begins to use its table.
        shared.entries[0].store(0, Ordering::Relaxed);
        shared.tell_other(0, ActiveRoot::is_held);
        shared.table.add();
        shared.end();
        user.join().unwrap();
    });
}

#[test]
fn loom_a_processor_that_loads_another_page_table_does_not_use_the_old_one_freed() {
    freed_while_left(|root, load| root.change(OTHER_ROOT, load));
}

#[test]
fn loom_a_processor_that_goes_idle_does_not_use_its_page_table_freed() {
    freed_while_left(|root, load| root.unload(load));
}

/// A thread that holds a lock may wait for an answer from a thread that waits for the lock, as with
/// shoot-downs within changes of mappings.
#[test]
fn loom_a_processor_that_waits_for_a_spin_lock_serves_requests() {
    loom::model(|| {
        let shared = (Arc::new(SpinLock::new(())), Shared::new());
        shared.1.processors[1].0.change(ROOT, load);
        let other = {
            let (lock, shared) = shared.clone();
            thread::spawn(move || {
                Shared::serve_by(&shared, 1, |_| {});
                drop(lock.lock());
                shared.end();
            })
        };
        let (lock, shared) = shared;
        let held = lock.lock();
        assert_eq!(shared.tell_other(0, ActiveRoot::is), 1);
        drop(held);
        shared.end();
        other.join().unwrap();
    });
}

/// Memory that a walk has found in a page table is not given to another user before the walk has
/// ended; later walks do not find it.
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
        // The kernel holds a lock here, which orders the threads that claim.
        if self.counters(number).claim() {
            self.freed.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Runs both at the same time and returns the result of the first.
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

/// An account whose last reference and whose last byte are given back at the same time is freed,
/// and once.
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

/// An account moves from one upper account to another while bytes are taken or given back. They
/// count at the one where the account ends.
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

/// Like the test above, for an account that leaves the shared quota and keeps a part of it for
/// itself.
#[test]
fn loom_accounts_leave_with_a_part() {
    loom::model(|| {
        // The upper account has room for what stays and what comes: one of them is taken twice for
        // a moment.
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
