//! The protocols, explored by loom: every interleaving of two or three processors (with few
//! preemptions where there are too many). An object's state is an `UnsafeCell` of loom's, which
//! fails when two processors touch it without an order.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

use crate::{Again, Attention, Identity, Idle, Location, Node, RequestQueue};

/// An object: a thread, for example.
#[repr(C)]
struct Object {
    node: Node,
    location: Location,
    state: UnsafeCell<State>,
}

// SAFETY: the protocol under test is to make sure of it; loom's cell checks it.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct State {
    /// What the object is going to do.
    work: Work,
    delivered: u32,
    refused: u32,
    cancelled: u32,
    dead: bool,
    moves: u32,
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
enum Work {
    #[default]
    Nothing,
    /// Brings the target a message.
    Deliver,
    /// Ends the target's wait for a message, if it still waits.
    Cancel,
    /// Ends the target.
    Delete,
    /// Sends the target to this processor.
    Migrate(u16),
    /// The work is over.
    Done,
}

fn object(at: u16, work: Work) -> &'static Object {
    let state = UnsafeCell::new(State { work, ..State::default() });
    Box::leak(Box::new(Object { node: Node::new(), location: Location::new(at), state }))
}

/// The object of a node, which is its first field.
fn object_of(node: &'static Node) -> &'static Object {
    // SAFETY: all nodes of these models are those of objects.
    unsafe { &*core::ptr::from_ref(node).cast::<Object>() }
}

impl Object {
    fn state(&self) -> State {
        // SAFETY: only where the object is; loom checks.
        self.state.with(|state| unsafe { *state })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        // SAFETY: only where the object is; loom checks.
        self.state.with_mut(|state| change(unsafe { &mut *state }));
    }
}

/// The processors, the one target, and how many objects have not done their work at it.
struct Machine {
    queues: Vec<RequestQueue>,
    target: &'static Object,
    left: AtomicU32,
}

impl Machine {
    fn new(processors: usize, target: &'static Object, callers: u32) -> Arc<Self> {
        let queues = (0..processors).map(|_| RequestQueue::new()).collect();
        Arc::new(Self { queues, target, left: AtomicU32::new(callers) })
    }

    fn send(&self, object: &'static Object, to: u16) {
        object.location.hand_over(to);
        self.queues[usize::from(to)].post(&[&object.node]);
    }

    /// `caller`, which is here, does its work if the target is here too, else follows it.
    fn serve(&self, here: u16, caller: &'static Object) {
        let target = self.target;
        if !target.location.is_at(here) {
            return self.send(caller, target.location.processor());
        }
        match caller.state().work {
            Work::Deliver if target.state().dead || target.state().cancelled > 0 => {
                caller.change(|state| state.refused += 1)
            }
            Work::Deliver => target.change(|state| state.delivered += 1),
            Work::Cancel if target.state().delivered > 0 => {}
            Work::Cancel => target.change(|state| state.cancelled += 1),
            Work::Delete => target.change(|state| state.dead = true),
            // An object that is to move to the processor where it is stays.
            Work::Migrate(to) if to == here => target.change(|state| state.moves += 1),
            Work::Migrate(to) => {
                target.change(|state| state.moves += 1);
                self.send(target, to);
            }
            Work::Nothing | Work::Done => return,
        }
        caller.change(|state| state.work = Work::Done);
        self.left.fetch_sub(1, Ordering::AcqRel);
    }

    /// A processor: it serves its request queue until all objects that came to it are done.
    fn run(&self, here: u16, first: Option<&'static Object>) {
        if let Some(caller) = first {
            self.serve(here, caller);
        }
        while self.left.load(Ordering::Acquire) != 0 {
            let requests: Vec<_> = self.queues[usize::from(here)].take().map(object_of).collect();
            requests.iter().for_each(|object| object.location.arrive(here));
            requests.iter().for_each(|object| self.serve(here, object));
            // The other processor makes progress, also when an object here waits for one that is
            // under way to here.
            thread::yield_now();
        }
    }
}

/// Explores two processors, each with an object that has work to do at the target, which is at the
/// second. Each of them begins once: with only one order of beginning, loom has been seen to miss
/// what the other order leads to.
fn race(first: Work, second: Work, check: fn(State, State, State)) {
    for second_begins in [false, true] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.max_branches = 10_000;
        model.check(move || {
            let (a, b) = (object(0, first), object(1, second));
            let machine = Machine::new(2, object(1, Work::Nothing), 2);
            let other = {
                let machine = machine.clone();
                thread::spawn(move || machine.run(1, Some(b)))
            };
            if second_begins {
                thread::yield_now();
            }
            machine.run(0, Some(a));
            other.join().unwrap();
            check(machine.target.state(), a.state(), b.state());
        });
    }
}

#[test]
fn loom_delivery_against_delivery() {
    race(Work::Deliver, Work::Deliver, |target, _, _| assert_eq!(target.delivered, 2));
}

#[test]
fn loom_deletion_against_delivery() {
    race(Work::Deliver, Work::Delete, |target, sender, _| {
        assert!(target.dead);
        assert_eq!(target.delivered + sender.refused, 1, "delivered, or told that it was not");
    });
}

#[test]
fn loom_cancellation_against_delivery() {
    race(Work::Deliver, Work::Cancel, |target, sender, _| {
        assert_eq!(target.delivered + target.cancelled, 1, "the wait ends once, one way or the other");
        assert_eq!(target.delivered + sender.refused, 1, "the sender knows which");
    });
}

#[test]
fn loom_cancellation_against_deletion() {
    race(Work::Delete, Work::Cancel, |target, _, _| assert!(target.dead && target.cancelled == 1));
}

#[test]
fn loom_deletion_against_deletion() {
    race(Work::Delete, Work::Delete, |target, _, _| assert!(target.dead));
}

#[test]
fn loom_migration_against_delivery() {
    race(Work::Deliver, Work::Migrate(0), |target, _, _| {
        assert_eq!((target.delivered, target.moves), (1, 1))
    });
}

#[test]
fn loom_migration_against_deletion() {
    race(Work::Delete, Work::Migrate(0), |target, _, _| assert!(target.dead && target.moves == 1));
}

#[test]
fn loom_migration_against_cancellation() {
    race(Work::Cancel, Work::Migrate(0), |target, _, _| assert!(target.cancelled == 1 && target.moves == 1));
}

#[test]
fn loom_migration_against_migration() {
    for (first, second) in [(0, 0), (0, 1)] {
        race(Work::Migrate(first), Work::Migrate(second), |target, _, _| assert_eq!(target.moves, 2));
    }
}

/// An object goes to and fro: its state is never touched by two threads at the same time, and
/// nothing is lost.
#[test]
fn loom_an_object_has_one_owner() {
    loom::model(|| {
        let object = object(0, Work::Nothing);
        let queue = Arc::new(RequestQueue::new());
        let sent = queue.clone();
        let other = thread::spawn(move || {
            loop {
                if let Some(node) = queue.take().next() {
                    let object = object_of(node);
                    object.location.arrive(1);
                    object.change(|state| state.moves += 1);
                    return object.state().moves;
                }
                thread::yield_now();
            }
        });
        // This is done after the other thread has begun, so that only the request queue orders the
        // two.
        object.change(|state| state.moves = 1);
        object.location.hand_over(1);
        sent.post(&[&object.node]);
        assert!(!object.location.is_at(0), "the processor that gave it away does not own it");
        assert_eq!(other.join().unwrap(), 2);
    });
}

/// Two producers: what each has posted arrives in its order, and all of it.
#[test]
fn loom_two_post_to_one_queue() {
    loom::model(|| {
        let queue = Arc::new(RequestQueue::new());
        let objects: Vec<_> = (0..3).map(|number| object(number, Work::Nothing)).collect();
        let [a, b, c] = [objects[0], objects[1], objects[2]];
        let shared = queue.clone();
        let other = thread::spawn(move || u32::from(shared.post(&[&c.node])));
        let empty = u32::from(queue.post(&[&a.node, &b.node]));
        let empty = empty + other.join().unwrap();
        let order: Vec<_> = queue.take().map(|node| core::ptr::from_ref(object_of(node))).collect();
        assert_eq!((order.len(), empty), (3, 1), "one of them found it empty");
        let place = |object: &'static Object| order.iter().position(|&other| core::ptr::eq(other, object));
        assert_eq!(place(a).unwrap() + 1, place(b).unwrap());
    });
}

/// A processor that stops polling and goes to sleep is woken, or has seen what was posted.
#[test]
fn loom_no_request_is_left_when_its_processor_sleeps() {
    loom::model(|| {
        let queue = Arc::new(RequestQueue::new());
        let attention = Arc::new(Attention::new());
        let interrupted = Arc::new(AtomicBool::new(false));
        attention.start_polling();
        let (theirs, asked, interrupt) = (queue.clone(), attention.clone(), interrupted.clone());
        let object = object(0, Work::Nothing);
        let sender = thread::spawn(move || {
            if theirs.post(&[&object.node]) && asked.is_needed() {
                interrupt.store(true, Ordering::SeqCst);
            }
        });
        let polled = queue.take().count();
        attention.stop_polling();
        let seen = polled != 0 || queue.has_requests();
        sender.join().unwrap();
        assert!(seen || interrupted.load(Ordering::SeqCst), "it sleeps, and nothing wakes it");
    });
}

/// An event that has happened to an object happens again while its owner is giving it back: it is
/// handled, once.
#[test]
fn loom_what_happens_again_is_seen_to_once() {
    loom::model(|| {
        let object = object(1, Work::Nothing);
        let shared = Arc::new((Again::new(), AtomicBool::new(false)));
        let theirs = shared.clone();
        let owner = thread::spawn(move || {
            let (again, raised) = &*theirs;
            if again.take() {
                return object.change(|state| state.delivered += 1);
            }
            object.change(|state| state.work = Work::Deliver);
            object.location.assign(0);
            if again.take_after_return() {
                raised.store(true, Ordering::SeqCst);
            }
        });
        let (again, raised) = &*shared;
        let is_open = || object.location.has_come_to(0) && object.state().work == Work::Deliver;
        let occur = || {
            object.change(|state| (state.work, state.delivered) = (Work::Done, state.delivered + 1));
        };
        if is_open() {
            occur();
        } else {
            again.note();
            if is_open() && again.take() {
                occur();
            }
        }
        owner.join().unwrap();
        if raised.load(Ordering::SeqCst) {
            assert!(is_open());
            occur();
        }
        assert_eq!(object.state().delivered, 1);
        assert!(!again.take());
    });
}

/// An object that is looked up without being owned.
struct Named {
    identity: Identity,
    location: Location,
    touched: UnsafeCell<u32>,
}

// SAFETY: the protocol under test is to make sure of it; loom's cell checks it.
unsafe impl Sync for Named {}
// SAFETY: as above.
unsafe impl Send for Named {}

impl Named {
    /// Touches the object if it is found at processor `here`. Returns whether it was.
    fn touch_at(&self, here: u16) -> bool {
        let found = self.identity.find() != 0 && self.location.is_at(here);
        if found {
            self.touch();
        }
        found
    }

    fn touch(&self) {
        // SAFETY: only where the object is; loom checks.
        self.touched.with_mut(|touched| unsafe { *touched += 1 });
    }
}

/// An object is ended at processor 0, and its memory is used for another one at processor 1, while
/// 0 goes on looking.
#[test]
fn loom_an_object_that_was_ended_here_is_not_found_in_what_its_memory_is_used_for() {
    loom::model(|| {
        let object = Arc::new(Named {
            identity: Identity::new(),
            location: Location::new(0),
            touched: UnsafeCell::new(0),
        });
        object.identity.set(1);
        let ended = Arc::new(AtomicBool::new(false));
        let maker = {
            let (object, ended) = (Arc::clone(&object), Arc::clone(&ended));
            thread::spawn(move || {
                // The lock under which objects end and are made orders these two.
                while !ended.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                object.location.assign(1);
                object.touch();
                object.identity.set(2);
                assert!(object.touch_at(1));
            })
        };
        assert!(object.touch_at(0));
        object.identity.set(0);
        ended.store(true, Ordering::Release);
        assert!(!object.touch_at(0));
        assert!(!object.touch_at(0));
        maker.join().unwrap();
    });
}

/// The second of two processors is idle and looks at its request queue; `others` find that and act
/// there, on the one object, or fail and go there.
fn claims(others: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 10_000;
    model.check(move || {
        let target = object(0, Work::Nothing);
        let machine = Machine::new(1, target, others as u32);
        let idle = Arc::new(Idle::new());
        let claimants: Vec<_> = (0..others)
            .map(|_| {
                let (machine, idle) = (machine.clone(), idle.clone());
                thread::spawn(move || {
                    let claim = idle.claim();
                    // The claimant acts in the processor's place: the object is there, and goes to
                    // it.
                    if claim.is_some() && target.location.is_at(0) {
                        target.change(|state| state.delivered += 1);
                        target.location.hand_over(0);
                        drop(claim);
                        machine.queues[0].post(&[&target.node]);
                        machine.left.fetch_sub(1, Ordering::AcqRel);
                    } else {
                        drop(claim);
                        machine.send(object(1, Work::Deliver), 0);
                    }
                })
            })
            .collect();
        let served = |machine: &Machine| {
            let requests: Vec<_> = machine.queues[0].take().map(object_of).collect();
            requests.iter().for_each(|object| object.location.arrive(0));
            requests.iter().for_each(|object| machine.serve(0, object));
        };
        loop {
            idle.begin();
            thread::yield_now();
            idle.end();
            if target.location.is_at(0) {
                // The owner looks at the state as a busy processor does: no claim is left.
                target.state();
            }
            served(&machine);
            if machine.left.load(Ordering::Acquire) == 0 && target.location.is_at(0) {
                break;
            }
        }
        claimants.into_iter().for_each(|claimant| claimant.join().expect("it ends"));
        assert_eq!(target.state().delivered, others as u32);
    });
}

#[test]
fn loom_an_idle_processor_is_claimed() {
    claims(1);
}

#[test]
fn loom_an_idle_processor_is_claimed_by_one_at_a_time() {
    claims(2);
}
