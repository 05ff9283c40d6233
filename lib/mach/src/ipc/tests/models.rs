//! Loom models of what two processors share: every interleaving of two threads with at most two
//! preemptions, where one thread waits for what the other does. Loom reports a lost wake-up as a
//! deadlock.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use std::task::Wake;

use loom::thread::{self, Thread};

use super::super::message::{Destination, Item, Message};
use super::super::*;
use crate::machine::simulated::Simulated;
use crate::vm::Vm;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

type Shared = Arc<Space<Simulated>>;

/// Explores all interleavings of two threads in one space. Each gets a value that `prepare` has
/// made for it. At the end of each interleaving no port and no memory may be left.
fn explore<A: Send + 'static, B: 'static>(
    prepare: impl Fn(&Shared) -> (A, B) + Send + Sync + 'static,
    one: fn(Shared, A),
    other: fn(Shared, B),
    check: fn(&Shared),
) {
    let interleavings = Arc::new(AtomicU64::new(0));
    let count = interleavings.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 20_000;
    model.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let machine = Simulated::new(8);
        let vm = Vm::new(machine.clone()).unwrap();
        let ipc = Ipc::new(&vm, NameRule::Lowest, Limits::default()).unwrap();
        let space = Space::new(&ipc);
        let (first, second) = prepare(&space);
        let theirs = space.clone();
        let thread = thread::spawn(move || one(theirs, first));
        other(space.clone(), second);
        thread.join().unwrap();
        check(&space);
        drop(space);
        assert_eq!(ipc.ports(), 0, "ports leaked");
        drop((ipc, vm));
        assert_eq!(machine.reserved(), 0, "server memory leaked");
    });
    // If loom explored only one interleaving, the threads would share nothing and show nothing.
    assert!(interleavings.load(Ordering::Relaxed) > 2);
}

const PORT: Name = Name(1);
const SECOND: Name = Name(2);

fn port(space: &Shared) -> Name {
    space.allocate(PortRight::Receive).unwrap()
}

/// A message to the port of the receive right `to`, or `None` if there is no such right.
fn message(space: &Shared, to: Name) -> Option<Box<Message<Simulated>>> {
    let Ok(Right::Send(right)) = space.extract_right(to, Disposition::MakeSend) else { return None };
    let mut message = space.ipc.new_message(&space.account, 0).unwrap();
    message.destination = Destination::Send(right);
    Some(message)
}

fn send_message(space: &Shared, message: Box<Message<Simulated>>) {
    assert!(block_on(space.send(message, None, &Interruption::new())).is_ok());
}

/// Sends a message to [`PORT`], if that name has a receive right.
fn send(space: &Shared) {
    if let Some(message) = message(space, PORT) {
        send_message(space, message);
    }
}

fn receive(space: &Shared, name: Name, until: Option<u64>) -> bool {
    let received = block_on(space.receive(name, &|_| Ok(()), until, &Interruption::new()));
    let Ok(mut message) = received else { return false };
    if let Destination::SendOnce(right) = core::mem::take(&mut message.destination) {
        right.use_up();
    }
    space.ipc.reuse(message);
    true
}

#[test]
fn loom_a_receiver_that_waits_gets_the_message() {
    explore(
        |space| (assert_eq!(port(space), PORT), ()),
        |space, ()| assert!(receive(&space, PORT, None)),
        |space, ()| send(&space),
        |space| assert!(!receive(space, PORT, Some(0))),
    );
}

#[test]
fn loom_a_receiver_of_a_set_gets_the_message() {
    explore(
        |space| {
            assert_eq!(port(space), PORT);
            assert_eq!(space.allocate(PortRight::PortSet), Ok(SECOND));
            (space.move_member(PORT, SECOND).unwrap(), ())
        },
        |space, ()| assert!(receive(&space, SECOND, None)),
        |space, ()| send(&space),
        |space| assert!(!receive(space, SECOND, Some(0))),
    );
}

#[test]
fn loom_a_receiver_of_a_set_gets_the_messages_of_a_port_that_joins() {
    explore(
        |space| {
            assert_eq!(port(space), PORT);
            assert_eq!(space.allocate(PortRight::PortSet), Ok(SECOND));
            ((), message(space, PORT).unwrap())
        },
        |space, ()| {
            space.move_member(PORT, SECOND).unwrap();
            assert!(receive(&space, SECOND, None));
        },
        |space, message| send_message(&space, message),
        |space| assert!(!receive(space, SECOND, Some(0))),
    );
}

#[test]
fn loom_a_sender_that_waits_goes_on() {
    explore(
        |space| {
            port(space);
            space.set_queue_limit(PORT, 1).unwrap();
            send(space);
            (message(space, PORT).unwrap(), ())
        },
        |space, message| send_message(&space, message),
        |space, ()| assert!(receive(&space, PORT, None)),
        |space| assert!(receive(space, PORT, Some(0))),
    );
}

#[test]
fn loom_a_port_that_dies_frees_those_that_wait() {
    explore(
        |space| {
            port(space);
            space.set_queue_limit(PORT, 0).unwrap();
            (message(space, PORT).unwrap(), ())
        },
        // Whether the port ends before the send or after it, the message counts as sent.
        |space, message| send_message(&space, message),
        |space, ()| space.destroy(PORT).unwrap(),
        |space| assert_eq!(space.ipc.ports(), 0),
    );
    explore(
        |space| (assert_eq!(port(space), PORT), ()),
        |space, ()| assert!(!receive(&space, PORT, None)),
        |space, ()| space.destroy(PORT).unwrap(),
        |space| assert_eq!(space.ipc.ports(), 0),
    );
}

#[test]
fn loom_two_senders_close_no_cycle() {
    explore(
        |space| {
            assert_eq!((port(space), port(space)), (PORT, SECOND));
            let mut messages = [PORT, SECOND].map(|to| message(space, to).unwrap());
            for (message, moved) in messages.iter_mut().zip([SECOND, PORT]) {
                let right = space.extract_right(moved, Disposition::MoveReceive).unwrap();
                message.moves_receive_right = true;
                message.items.push((0, Item::Right(right)));
            }
            messages.into()
        },
        |space, message| send_message(&space, message),
        |space, message| send_message(&space, message),
        |space| assert_eq!(space.ipc.ports(), 0, "one of the two ended the cycle"),
    );
}

#[test]
fn loom_the_last_send_right_is_told_once() {
    explore(
        |space| {
            assert_eq!((port(space), port(space)), (PORT, SECOND));
            let right = space.extract_right(PORT, Disposition::MakeSend).unwrap();
            (right, space.extract_right(SECOND, Disposition::MakeSendOnce).unwrap())
        },
        |_, right| drop(right),
        |space, notify| {
            let previous = space.request_notification(PORT, 70, 1, notify);
            assert!(previous.unwrap().is_none());
        },
        |space| {
            assert!(receive(space, SECOND, Some(0)));
            assert!(!receive(space, SECOND, Some(0)));
        },
    );
}

#[test]
fn loom_an_interrupted_thread_waits_no_more() {
    explore(
        |space| {
            port(space);
            let interruption = Arc::new(Interruption::new());
            (interruption.clone(), interruption)
        },
        |space, interruption| {
            // The wait ends in each interleaving: by the interruption, or else by the message.
            let received = block_on(space.receive(PORT, &|_| Ok(()), None, &interruption));
            if let Ok(message) = received {
                space.ipc.reuse(message);
            }
        },
        |space, interruption| {
            // `interrupt` returns false if the thread does not wait yet, so a message must end its
            // wait.
            if !interruption.interrupt() {
                send(&space);
            }
        },
        |_| {},
    );
}
