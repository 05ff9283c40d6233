//! What must hold whenever a thread is at user level, or all wait.

use core::ptr::eq;

use crate::scheduler::timeouts::NEVER;
use crate::thread::table::threads;
use crate::thread::transfer_record::Work;
use crate::thread::{Continuation, Found, IpcKind, Offer, ThreadRef, breakpoints, flag, ipc};
use crate::{arch, interrupt};

/// Checks all threads against each other.
pub(super) fn check() {
    let all = || threads().iter_from(0).map(|(_, thread)| thread.anywhere());
    let with_breakpoints = all().filter(|thread| thread.breakpoints().is_some()).count();
    assert_eq!(breakpoints::count(), with_breakpoints, "how many threads have breakpoints");
    for (number, thread) in threads().iter_from(0).map(|(number, thread)| (number, thread.anywhere())) {
        if thread.id().is_nil() {
            assert!(deleter_of(thread), "{number}: half deleted, and no deletion goes on");
            continue;
        }
        assert_eq!(thread.id().number(), number);
        let at = thread.location.processor();
        if !thread.location.is_at(at) {
            // Under way.
            continue;
        }
        let current = arch::local_processor(u32::from(at)).is_current(thread);
        assert!(!current || thread.home() == at, "{:?} runs away from home", thread.id());
        check_readiness(thread, current);
        check_place(thread, at);
        check_ipc(thread);
    }
    for number in 0..arch::cpu_count() {
        let scheduler = &arch::local_processor(number).scheduler;
        assert!(!scheduler.ready.has_outbound() && !scheduler.ready.has_arrived());
        let arriving = &arch::local_processor(number).arriving;
        assert!(
            !arch::local_processor(number).followers.are_left(),
            "senders have not followed their receiver"
        );
        for requests in [&arriving.threads, &arriving.interrupts] {
            assert!(
                requests.take().is_empty(),
                "a processor does something else before it has seen to its requests"
            );
        }
        for priority in 0..=255 {
            for thread in scheduler.ready.threads(priority) {
                assert_eq!(thread.priority.get(), priority);
                assert!(thread.location.is_at(number as u16), "{:?} is ready elsewhere", thread.id());
            }
        }
    }
}

/// Whether some thread has the deletion of `thread` still to finish.
fn deleter_of(thread: ThreadRef) -> bool {
    pending_works().any(|work| matches!(work, Work::EndRelations { thread: other, .. } if eq(other, thread)))
}

fn pending_works() -> impl Iterator<Item = Work> {
    threads().all().filter_map(|thread| thread.transfer_record.get()).map(|record| record.work.get())
}

/// Away from home a thread waits only for a thread that is at the same place, or to send.
fn check_place(thread: ThreadRef, at: u16) {
    if let Some(receiver) = thread.senders_node.receiver() {
        assert_eq!(at, receiver.home(), "{:?} waits where its receiver does not live", thread.id());
    }
    if thread.home() == at {
        return;
    }
    assert!(thread.offer() == Offer::NONE, "{:?} makes an offer away from home", thread.id());
    if thread.awaits_message().is_some() && !thread.ready.is_queued() {
        assert!(
            ipc::is_user_number(thread.partner()),
            "{:?} waits for any thread away from home",
            thread.id()
        );
    }
}

fn check_readiness(thread: ThreadRef, current: bool) {
    let what = thread.continuation();
    let queued = thread.ready.is_queued();
    assert!(!(queued && current), "{:?} is running and in the ready queue", thread.id());
    assert!(
        !thread.is_runnable() || queued || current,
        "{:?} ({what:?}) is forgotten at {} of {}",
        thread.id(),
        thread.location.processor(),
        thread.home()
    );
    if queued {
        assert!(
            !matches!(what, Continuation::Inactive | Continuation::Send(_)),
            "{:?} is ready in {what:?}",
            thread.id()
        );
        assert!(what != Continuation::ReturnToUser || thread.is_runnable(), "{:?} is halted", thread.id());
    }
    if current {
        assert!(what == Continuation::ReturnToUser && !thread.has(flag::HALTED));
    }
    let end = thread.waits_until();
    if end != NEVER && thread.location.is_at(thread.location.processor()) {
        assert!(
            thread.timeout.deadline().is_some_and(|looked_at| looked_at <= end),
            "{:?} waits until {end} in {what:?}, and no timeout ends it then",
            thread.id()
        );
    }
    assert_eq!(thread.is_active(), thread.transfer_record.get().is_some());
}

fn check_ipc(thread: ThreadRef) {
    let queue = thread.senders_node.receiver();
    // A redirected message waits nowhere while there is no redirector.
    let sends = matches!(thread.continuation(), Continuation::Send(_));
    assert!(queue.is_some() == sends || sends && thread.has(flag::REDIRECTED), "{:?}", thread.id());
    if let Some(receiver) = queue
        && !receiver.id().is_nil()
    {
        assert!(receiver.senders.iter().any(|sender| eq(sender, thread)));
        // No meeting is missed: a receiver that would take the message is about to look.
        let originators_change =
            pending_works().any(|work| matches!(work, Work::EndRelations { .. } | Work::Redirect { .. }));
        let is_under_way = !receiver.location.is_at(receiver.location.processor());
        if receiver.awaits_message().is_some()
            && !receiver.ready.is_queued()
            && !originators_change
            && !is_under_way
        {
            assert!(
                !ipc::would_accept(receiver, thread),
                "{:?} waits for {:?}, and {:?} waits to send to it (propagated for {:?}: {})",
                receiver.id(),
                receiver.partner(),
                thread.id(),
                thread.virtual_sender.get(),
                thread.has(flag::PROPAGATED)
            );
        }
    }
    check_originator(thread);
    let from = thread.partner();
    let ends = |work| matches!(work, Work::EndRelations { id, .. } if id == from);
    if matches!(thread.continuation(), Continuation::Receive(kind) if kind != IpcKind::Start)
        && ipc::is_user_number(from)
        && !pending_works().any(ends)
    {
        assert!(threads().find(from).is_some(), "{:?} waits for {from:?}, which does not exist", thread.id());
    }
    if matches!(thread.continuation(), Continuation::Receive(_))
        && !thread.ready.is_queued()
        && thread.location.is_at(thread.home())
        && interrupt::is_pending_for(thread)
    {
        panic!("{:?} does not take its interrupt", thread.id());
    }
    if thread.offer() != Offer::NONE {
        assert!(
            ipc::transfer_peer(thread).is_none()
                && !thread.ready.is_queued()
                && !thread.has(flag::HALTED | flag::RECALLED),
            "{:?} makes an offer in {:?}",
            thread.id(),
            thread.continuation()
        );
    }
    check_transfer(thread);
}

/// A thread that waits for another one, which waits to send in its name, is at the same place, so
/// that its partner changes with the delivery.
fn check_originator(sender: ThreadRef) {
    let Some(receiver) = sender.senders_node.receiver() else { return };
    let originator = ipc::resolve_thread(sender, sender.virtual_sender.get()).map(Found::anywhere);
    let Some(originator) = originator else { return };
    let waits = originator.location.is_at(originator.location.processor())
        && originator.awaits_message().is_some_and(|kind| kind != IpcKind::Start)
        && originator.partner() == sender.id()
        && !originator.ready.is_queued()
        // The originator must look through its senders when its partner changes.
        && !(originator.has(flag::PROPAGATED_SENDERS) && originator.senders.first().is_some());
    if waits && sender.has(flag::PROPAGATED) && !eq(originator, sender) && !eq(originator, receiver) {
        assert_eq!(
            originator.location.processor(),
            sender.location.processor(),
            "{:?} waits elsewhere than {:?}, which sends in its name",
            originator.id(),
            sender.id()
        );
    }
}

fn check_transfer(thread: ThreadRef) {
    let other_side = match thread.continuation() {
        Continuation::SendTransfer(_) => |peer: ThreadRef| peer.continuation().receiving(),
        Continuation::ReceiveTransfer(_) => |peer: ThreadRef| peer.continuation().sending(),
        _ => return,
    };
    let peer = |thread: ThreadRef| thread.transfer_record.get().and_then(|record| record.peer.get());
    let partner = peer(thread).expect("a transfer has two sides");
    if ipc::transfer_peer(partner).is_some_and(|back| eq(back, thread)) {
        // The thread tells its pager of a missing page, and then goes on.
        assert!(!thread.ready.is_queued() && partner.continuation() != Continuation::ReturnToUser);
        return;
    }
    assert!(peer(partner).is_some_and(|back| eq(back, thread)) && other_side(partner).is_some());
    let driven = [thread, partner].iter().filter(|side| side.ready.is_queued()).count();
    assert_eq!(driven, 1, "one side of a transfer goes on with it");
}
