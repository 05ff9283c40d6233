//! How threads move between processors (K6, K12).
//!
//! A thread's state belongs to the processor where the thread is *located*, and no other reads or
//! writes it, but for a few words that say so. A thread that has to do with another one which is
//! elsewhere goes there: it leaves with a continuation that begins the system call or IPC again,
//! and comes back home, where alone it runs at user level, when that is done. `lib/handover` has
//! the protocol; this module what goes with a thread.
//!
//! A thread is away from home only while it sends or makes a system call, and in a closed receive
//! from a thread that was located at the same place when the receive began (the answer comes from
//! there). For anything else it goes home first. So its home processor has all that others may
//! bring it at any time: the queue of senders, and interrupts.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use handover::Node;
use x2::utcb;

use super::table::threads;
use super::tcb::NOWHERE;
use super::{Continuation, IpcKind, Tcb, ThreadRef, flag, ipc, lifecycle};
use crate::arch;
use crate::interrupt;
use crate::memory::node;
use crate::processor;
use crate::scheduler::Next;
use crate::sync::SEVERAL;
use crate::trace::{self, Event};

/// The executing processor's number.
fn here() -> u16 {
    arch::cpu_number() as u16
}

impl Tcb {
    /// Whether the thread is located at the executing processor, which then may touch it until it
    /// sends it away.
    #[inline]
    pub fn is_here(&self) -> bool {
        !SEVERAL || self.location.is_at(here())
    }

    /// Whether the executing processor is the thread's home.
    #[inline]
    pub fn is_home(&self) -> bool {
        !SEVERAL || self.home() == here()
    }

    /// The thread's home processor.
    #[inline]
    pub fn home(&self) -> u16 {
        // Acquire: a processor that finds itself the home processor finds the queues as the last
        // one left them.
        self.home.load(Ordering::Acquire)
    }

    /// Sets the home of a thread that has just been made, and has no UTCB yet.
    #[inline]
    pub(super) fn set_first_home(&self, home: u16) {
        // Relaxed: no other code can find the thread yet.
        self.home.store(home, Ordering::Relaxed);
    }

    /// Sets the home of a thread that is here and has nothing at its old home, and tells its
    /// program.
    pub fn set_home(&self, home: u16) {
        self.home.store(home, Ordering::Release);
        if let Some(block) = self.utcb.get() {
            block.write(utcb::PROCESSOR_NUMBER, u64::from(home));
        }
    }
}

/// The thread that lies in a request queue with this node.
///
/// # Safety
/// The node is the `request` of a TCB.
pub unsafe fn of_request(node: &'static Node) -> ThreadRef {
    // SAFETY: the caller promises that the node is a TCB's, and a TCB's memory stays a TCB.
    unsafe { &*core::ptr::from_ref(node).byte_sub(offset_of!(Tcb, request)).cast::<Tcb>() }
}

/// The processor after this one, in a circle: for threads that go to all processors in turn.
pub fn next_processor() -> u16 {
    ((arch::cpu_number() + 1) % arch::cpu_count()) as u16
}

/// The current thread goes to `processor`, and does `continuation` there.
#[cold]
pub fn continue_on(current: ThreadRef, processor: u16, continuation: Continuation) -> Next {
    current.set_continuation(continuation);
    depart(current, processor);
    Next::Schedule
}

/// The current thread goes to where `thread` is. If that is under way to here, the current thread
/// waits in the request queue after it.
#[cold]
pub fn follow(current: ThreadRef, thread: ThreadRef, continuation: Continuation) -> Next {
    continue_on(current, thread.location.processor(), continuation)
}

/// Sends `thread`, which is here, in no queue of senders and in no timeout that it still needs, to
/// `processor`. It must not be touched afterwards. A thread that must be at the same place goes
/// with it.
pub fn depart(thread: ThreadRef, processor: u16) {
    let Some(companion) = companion(thread) else { return depart_alone(thread, processor) };
    trace::event(Event::Post, u64::from(processor), thread.id().raw());
    // The companion goes first, so that it is there when the thread goes on.
    hand_over(companion, processor);
    hand_over(thread, processor);
    processor::post(processor, |public| &public.threads, &[&companion.request, &thread.request]);
}

/// [`depart`] of a thread that no other thread goes with: it is in no transfer, and not about to
/// send in another's name.
#[inline]
pub fn depart_alone(thread: ThreadRef, processor: u16) {
    debug_assert!(ipc::transfer_peer(thread).is_none());
    trace::event(Event::Post, u64::from(processor), thread.id().raw());
    hand_over(thread, processor);
    processor::post(processor, |public| &public.threads, &[&thread.request]);
}

/// `thread` is under way to `processor`, and not the executing one's any more.
#[inline(always)]
fn hand_over(thread: ThreadRef, processor: u16) {
    let this = processor::this();
    this.scheduler.forget_thread(thread);
    lifecycle::forget_loaded(thread);
    if this.is_current(thread) {
        this.current.set(None);
    }
    thread.location.hand_over(processor);
}

/// The thread that has to go where `thread` goes: the other side of its transfer, or the originator
/// in whose name it sends, if that waits for it to do so.
fn companion(thread: ThreadRef) -> Option<ThreadRef> {
    if let Some(peer) = ipc::transfer_peer(thread) {
        return Some(peer);
    }
    ipc::take_originator_along(thread)
}

/// What a thread does when it arrives at another processor.
pub enum Arrival {
    /// The thread does what it came for, immediately, as current thread.
    Acts,
    /// The thread can run, and is not in the ready queue.
    Ready,
    /// The thread waits, or has been put into a queue.
    Waits,
    /// An interrupt is pending, and threads that follow it to its new home come first: it is
    /// admitted again after them.
    Later,
}

/// `thread` has just arrived here and is in no queue: what it does now.
pub fn admit(thread: ThreadRef) -> Arrival {
    // The move comes first, whatever the thread does then: nothing else asks for it before the
    // thread comes home again.
    if thread.is_home() {
        let to = thread.moves_to.replace(NOWHERE);
        if to != NOWHERE {
            migrate(thread, to);
            if !send_followers() && !thread.ready.is_queued() {
                return Arrival::Later;
            }
        }
    }
    match thread.continuation() {
        Continuation::Inactive | Continuation::Send(_) => Arrival::Waits,
        // The thread is a side of a transfer that the other side carries on.
        Continuation::SendTransfer(_) | Continuation::ReceiveTransfer(_) => Arrival::Waits,
        Continuation::Receive(_) if partner_has_gone(thread) => Arrival::Waits,
        // The thread has come home, or is going to the home that it has just got.
        Continuation::ReturnToUser | Continuation::Receive(_)
            if thread.is_home() || thread.ready.is_queued() =>
        {
            let goes_on = thread.is_runnable() || thread.awaits_message().is_some();
            if goes_on && !thread.ready.is_queued() { Arrival::Ready } else { Arrival::Waits }
        }
        Continuation::ReturnToUser => Arrival::Ready,
        Continuation::Receive(kind) => {
            ipc::wait_away(thread, kind);
            Arrival::Waits
        }
        _ => Arrival::Acts,
    }
}

/// Whether `thread`, which has arrived in its receive phase, finds that no partner can answer any
/// more. Then the receive phase is over.
fn partner_has_gone(thread: ThreadRef) -> bool {
    ipc::check_partner(thread);
    thread.awaits_message().is_none()
}

/// Whether `thread`, which is here, waits for a message of the thread that makes the present call.
fn awaits_caller(thread: ThreadRef) -> bool {
    let caller = processor::this().current.get();
    thread.awaits_message().is_some() && caller.is_some_and(|caller| thread.partner() == caller.id())
}

/// Moves `thread`, which is here, to live at `processor` (X.2 "Schedule", processor number). A
/// thread that is away from home moves when it comes back. One that waits for an answer of the
/// thread that moves it takes the answer along; otherwise that thread would have to follow it. Its
/// senders are left to [`send_followers`].
pub fn migrate(thread: ThreadRef, processor: u16) {
    if node::are_several()
        && let Some(space) = thread.space.get()
    {
        space.memory.set_node(node::of_processor(processor.into()));
    }
    if !thread.is_home() {
        thread.moves_to.set(processor);
        if thread.awaits_message().is_some() && !awaits_caller(thread) {
            ipc::look_again(thread);
        }
        return;
    }
    thread.moves_to.set(NOWHERE);
    if processor == thread.home() {
        return;
    }
    trace::event(Event::Migrate, thread.id().raw(), u64::from(processor));
    // The queues of senders and of interrupts belong to the home processor: they are empty before
    // the new one may touch them. A thread that goes to the new home too early comes back and finds
    // the way.
    interrupt::move_pending(thread, processor);
    processor::this().followers.take_from(thread, processor);
    let queued = thread.ready.is_queued();
    processor::this().scheduler.ready.remove(thread);
    thread.set_home(processor);
    match thread.continuation() {
        // Elsewhere the thread stands in a queue, or is in the middle of something: it goes home
        // from there.
        Continuation::Inactive => {}
        Continuation::Receive(_) if queued => processor::this().scheduler.make_ready(thread),
        Continuation::Receive(kind) if awaits_caller(thread) && may_wait_away(thread, kind) => {
            // The thread is away from home now, where the fast path does not reach it.
            thread.withdraw_offer();
        }
        Continuation::Receive(_) => ipc::look_again(thread),
        Continuation::ReturnToUser if !queued => {}
        Continuation::SendTransfer(_) | Continuation::ReceiveTransfer(_) | Continuation::SystemCall
            if queued =>
        {
            processor::this().scheduler.ready.push_back(thread);
        }
        _ if queued => processor::this().scheduler.make_ready(thread),
        _ => {}
    }
}

/// How many threads go after one that has moved between two looks for interrupts: about 170
/// instructions each.
const FOLLOWERS_PER_POLL: usize = arch::POLL_INTERVAL as usize / 4;

/// Lets the senders of a thread that has moved go after it, in their order. Returns whether that is
/// all: else an interrupt is pending, and the rest goes before the processor does anything else.
#[must_use]
pub fn send_followers() -> bool {
    let followers = &processor::this().followers;
    loop {
        let firsts = core::iter::from_fn(|| followers.first());
        firsts.take(FOLLOWERS_PER_POLL).for_each(|(sender, to)| ipc::follow_receiver(sender, to));
        if !followers.are_left() {
            return true;
        }
        if arch::interrupt_pending() {
            return false;
        }
    }
}

/// Whether `thread`, which begins a closed receive, can wait for its partner here although its home
/// is elsewhere. The partner must be here, so that it does not stand in the queue at home; and no
/// thread at home may send in the partner's name.
pub fn may_wait_away(thread: ThreadRef, kind: IpcKind) -> bool {
    let from = thread.partner();
    kind != IpcKind::Start
        && !thread.has(flag::PROPAGATED_SENDERS)
        && ipc::is_user_number(from)
        && threads().find(from).is_some_and(|partner| partner.is_here() && !partner.is(thread))
}
