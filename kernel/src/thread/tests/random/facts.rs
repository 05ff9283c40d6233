//! What the model knows: threads and spaces, as successful calls have made them. The kernel must
//! agree after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use x2::{Region, ThreadId, utcb};

use super::action::NUMBERS;
use crate::interrupt;
use crate::space::Space;
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, ThreadRef};

/// Names a space: where the kernel has it in memory.
pub(super) type SpaceKey = usize;

/// The key of a space.
pub(super) fn key_of(space: &Space) -> SpaceKey {
    core::ptr::from_ref(space) as SpaceKey
}

/// A thread that exists.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Thread {
    pub id: ThreadId,
    pub space: SpaceKey,
    pub active: bool,
    /// The address of the thread's UTCB; 0 = it has none.
    pub utcb: u64,
    /// The address that the UTCB is to have once the thread is activated.
    pub kept: Option<u64>,
    pub scheduler: ThreadId,
    /// The thread's id has ended and it is about to go.
    pub dying: bool,
}

impl Thread {
    /// The facts about a thread as the kernel has them.
    fn of(thread: ThreadRef) -> Option<Self> {
        Some(Self {
            id: thread.id(),
            space: key_of(thread.space.get()?),
            active: thread.continuation() != Continuation::Inactive,
            utcb: thread.local_id.get().saturating_sub(utcb::MR0_OFFSET),
            kept: thread.kept_location(),
            scheduler: thread.scheduler.get(),
            dying: thread.id().is_nil(),
        })
    }
}

/// A space that has threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SpaceFacts {
    pub kip: Option<Region>,
    pub utcbs: Option<Region>,
    pub privileged: bool,
    /// The owner. `Some(0)`: the space had one, which is gone.
    pub owner: Option<SpaceKey>,
}

impl SpaceFacts {
    /// The facts of a space that has just been made.
    pub(super) const NEW: Self = Self { kip: None, utcbs: None, privileged: false, owner: None };

    pub(super) fn is_configured(&self) -> bool {
        self.kip.is_some() && self.utcbs.is_some()
    }
}

/// Threads by number above UserBase, and their spaces.
#[derive(Default, Debug)]
pub(super) struct Facts {
    pub threads: BTreeMap<u32, Thread>,
    pub spaces: BTreeMap<SpaceKey, SpaceFacts>,
    /// How often each thread's id has ended, or the thread has moved.
    pub changes: [u64; NUMBERS as usize],
    /// Threads whose deletion has begun.
    pub condemned: [bool; NUMBERS as usize],
    /// Ids that have ended, which schedulers' roles end with.
    retired: BTreeSet<u64>,
}

/// The thread with this number above UserBase.
pub(super) fn thread_of(number: u32) -> Option<ThreadRef> {
    threads().by_number(interrupt::user_base() + number).map(Found::anywhere)
}

/// The number above UserBase of a thread that lives.
pub(super) fn number_of(id: ThreadId) -> u32 {
    id.number().wrapping_sub(interrupt::user_base())
}

impl Facts {
    /// Takes all facts from the kernel, after an action that the model does not follow.
    pub(super) fn load(&mut self) {
        let before = core::mem::take(&mut self.threads);
        self.spaces.clear();
        for number in 0..NUMBERS {
            let found = thread_of(number);
            let now = found.and_then(Thread::of);
            let identity = |thread: &Thread| (thread.id, thread.space, thread.utcb);
            if before.get(&number).map(identity) != now.as_ref().map(identity) {
                self.changes[number as usize] += 1;
            }
            self.condemned[number as usize] &= now.is_some();
            if let (Some(now), Some(space)) = (now, found.and_then(|thread| thread.space.get())) {
                self.threads.insert(number, now);
                self.condemned[number as usize] |= now.dying;
                let owner = threads()
                    .iter()
                    .filter_map(Found::space)
                    .find(|other| space.is_owned_by(other))
                    .map(key_of);
                let facts = SpaceFacts {
                    kip: space.kip_area(),
                    utcbs: space.utcb_area(),
                    privileged: space.is_privileged(),
                    owner: owner.or(space.is_owned().then_some(0)),
                };
                self.spaces.insert(key_of(space), facts);
            }
        }
    }

    /// The thread that `id`, global or local to `space`, names.
    pub(super) fn resolve(&self, space: SpaceKey, id: ThreadId) -> Option<(u32, &Thread)> {
        let names = |thread: &Thread| {
            !thread.dying
                && if id.is_global() {
                    thread.id == id
                } else {
                    id.is_local()
                        && thread.space == space
                        && thread.utcb != 0
                        && thread.utcb + utcb::MR0_OFFSET == id.raw()
                }
        };
        self.threads.iter().find(|(_, thread)| names(thread)).map(|(&number, thread)| (number, thread))
    }

    /// The space of the thread that `id`, a global id, names.
    pub(super) fn space_of(&self, id: ThreadId) -> Option<SpaceKey> {
        let thread = if id.is_global() { self.resolve(0, id) } else { None };
        thread.map(|(_, thread)| thread.space)
    }

    /// The id of thread `number` ends.
    pub(super) fn retire(&mut self, number: u32) {
        self.changes[number as usize] += 1;
        if let Some(thread) = self.threads.get(&number) {
            self.retired.insert(thread.id.raw());
        }
    }

    /// Notes which threads whose deletion has begun have lost their ids, and which are gone.
    pub(super) fn reap(&mut self) {
        for number in 0..NUMBERS {
            let Some(thread) = self.threads.get(&number).copied() else { continue };
            let kernel = thread_of(number).and_then(Thread::of);
            let gone = kernel.is_none();
            if !gone && !kernel.is_some_and(|kernel| kernel.dying) {
                continue;
            }
            assert!(self.condemned[number as usize], "{number} ends, which no thread deletes: {thread:?}");
            if !thread.dying {
                self.retire(number);
            }
            match kernel {
                Some(kernel) => {
                    assert_eq!(kernel.space, thread.space, "{number} moves while it dies");
                    self.threads.insert(number, Thread { id: thread.id, ..kernel });
                }
                None => {
                    self.threads.remove(&number);
                    self.condemned[number as usize] = false;
                    self.thread_leaves(thread.space);
                }
            }
        }
    }

    /// A thread has left a space, which may be gone with it.
    pub(super) fn thread_leaves(&mut self, space: SpaceKey) {
        if !self.threads.values().any(|other| other.space == space) {
            self.spaces.remove(&space);
            self.orphan_those_of_the_dead();
        }
    }

    /// Compares with the kernel.
    pub(super) fn agree(&mut self) {
        for number in 0..NUMBERS {
            let (kernel, found) =
                (thread_of(number).and_then(Thread::of), self.threads.get(&number).copied());
            let Some((kernel, thread)) = kernel.zip(found) else {
                assert_eq!(kernel, found, "thread {number}: the kernel, then the model");
                continue;
            };
            let scheduler_gone = kernel.scheduler != thread.scheduler
                && kernel.scheduler.is_nil()
                && self.retired.contains(&thread.scheduler.raw());
            let expected = Thread {
                scheduler: if scheduler_gone { ThreadId::NIL } else { thread.scheduler },
                id: if thread.dying { ThreadId::NIL } else { thread.id },
                ..thread
            };
            assert_eq!(kernel, expected, "thread {number}: the kernel, then the model");
            self.threads.insert(number, Thread { id: thread.id, ..kernel });
            let Some(space) = thread_of(number).and_then(|thread| thread.space.get()) else { continue };
            let Some(facts) = self.spaces.get(&kernel.space) else {
                panic!("thread {number} is in a space that is not there")
            };
            assert_eq!((space.kip_area(), space.utcb_area()), (facts.kip, facts.utcbs), "areas of a space");
            assert_eq!(space.is_owned(), facts.owner.is_some(), "whether a space is owned");
        }
    }

    /// A space whose last thread goes leaves those that it owned without owner, for ever.
    fn orphan_those_of_the_dead(&mut self) {
        let alive: Vec<_> = self.spaces.keys().copied().collect();
        for facts in self.spaces.values_mut() {
            facts.owner = facts.owner.map(|owner| if alive.contains(&owner) { owner } else { 0 });
        }
    }
}
