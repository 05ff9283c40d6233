//! The way from a handler's decision to the thread that runs. The dispatcher chooses a thread,
//! carries on its work in the kernel until it is to return to user level, and loads its space and
//! registers.

use handover::{Node, Requests};
use x2::Time;

use crate::processor::{self, Processor};
use crate::scheduler::ready_queue::Ring;
use crate::scheduler::{Next, Scheduler};
use crate::sync::SEVERAL;
use crate::sync::delay::{self, Point};
use crate::thread::location::Arrival;
use crate::thread::{Continuation, IpcKind, ThreadRef, exception, flag, ipc, location, pending};
use crate::trace::{self, Event};
use crate::{arch, interrupt, syscall};

/// What the processor does after a dispatch.
pub enum Outcome {
    /// Runs this thread at user level; its space and registers are loaded.
    Resume(ThreadRef),
    /// The processor waits for an interrupt.
    Idle,
    /// Takes a pending interrupt by [`take_interrupts`], and dispatches again.
    TakeInterrupts,
}

/// How many timeouts end in one go before other interrupts get their turn.
const EXPIRED_PER_POLL: usize = 16;

/// Carries out `next`, the decision of a handler that worked for the current thread.
pub fn dispatch(next: Next) -> Outcome {
    let this = processor::this();
    let mut next = next;
    loop {
        if this.scheduler.ready.has_outbound() {
            send_home();
        }
        if let Next::Switched(thread) = next {
            return Outcome::Resume(thread);
        }
        if let Next::Interrupted = next {
            if let Some(current) = this.current.take() {
                this.scheduler.ready.push_front(current);
            }
            return Outcome::TakeInterrupts;
        }
        let chosen = this.scheduler.choose(this.current.get(), next);
        this.current.set(chosen);
        let Some(thread) = chosen else {
            this.scheduler.meter(None);
            this.scheduler.set_timer();
            trace::event(Event::Idle, 0, 0);
            return Outcome::Idle;
        };
        next = match thread.continuation() {
            Continuation::ReturnToUser if !thread.is_home() => {
                location::depart(thread, thread.home());
                Next::Schedule
            }
            Continuation::ReturnToUser if thread.is_orphaned() => {
                // The thread's system calls and faults wait with it until its space has an owner,
                // which resumes it (K13). The owner that has recalled it is gone.
                thread.set_flag(flag::HALTED, true);
                thread.set_flag(flag::RECALLED, false);
                Next::Schedule
            }
            Continuation::ReturnToUser if thread.has(flag::RECALLED) => {
                thread.set_flag(flag::RECALLED, false);
                exception::report_exception(thread, x2::extension::RECALLED, 0)
            }
            Continuation::ReturnToUser if thread.has(flag::HALTED) => Next::Schedule,
            Continuation::ReturnToUser if !arch::is_canonical(thread.registers.rip.get()) => {
                // Whatever set the instruction pointer, the thread cannot go on there (K14).
                exception::report_exception(thread, exception::GENERAL_PROTECTION, 0)
            }
            Continuation::ReturnToUser if thread.pending.get() != 0 => attend(thread),
            Continuation::ReturnToUser => {
                this.scheduler.meter(Some(thread));
                load(thread);
                this.scheduler.set_timer();
                return Outcome::Resume(thread);
            }
            _ => go_on(thread),
        };
    }
}

/// Carries on what the current thread was doing in the kernel.
fn go_on(thread: ThreadRef) -> Next {
    match thread.continuation() {
        Continuation::RaiseException => exception::report_again(thread),
        Continuation::RaiseFault => ipc::raise_transfer_fault(thread),
        Continuation::Receive(_)
        | Continuation::SendTransfer(_)
        | Continuation::ReceiveTransfer(_)
        | Continuation::ResumeTransfer => ipc::resume_ipc(thread),
        Continuation::SystemCall => syscall::resume_call(thread),
        Continuation::SendAgain(kind) => ipc::send_again(thread, kind),
        Continuation::Call(call) => {
            thread.set_continuation(Continuation::ReturnToUser);
            syscall::call_again(thread, call)
        }
        Continuation::Inactive | Continuation::Send(_) | Continuation::ReturnToUser => Next::Schedule,
    }
}

/// Sends threads home that belong to other processors. A thread that has moved goes after the
/// threads that wait to send to it, so that it finds them there.
#[cold]
fn send_home() {
    if processor::this().followers.are_left() {
        return;
    }
    while let Some(thread) = processor::this().scheduler.ready.pop_from(Ring::Outbound) {
        location::depart(thread, thread.home());
    }
}

/// Serves the cross-processor requests that other processors have sent. Threads that have arrived
/// do immediately what they came for; the current thread, if it can, goes on afterwards.
pub fn receive_requests() -> Next {
    let this = processor::this();
    arch::serve_requests();
    let interrupted = this.current.take();
    // The request queue for threads is emptied first: interrupts that were handed over before these
    // threads are in the other request queue then.
    let mut threads = this.public.threads.take();
    // What the threads bring with them may forbid the fast path.
    this.update_fast_path();
    if interrupted.is_none()
        && !this.public.interrupts.has_requests()
        && let Some(request) = threads.take_only()
    {
        delay::at(Point::Admit);
        return match admit(arrival(request)) {
            Some(woken) if this.scheduler.starts(woken) => Next::Start(woken),
            None if this.followers.are_left() => take_in_requests(None),
            woken => {
                queue_woken(woken);
                Next::Schedule
            }
        };
    }
    if threads.is_empty() && !this.public.interrupts.has_requests() {
        this.current.set(interrupted);
        return after_interrupt();
    }
    interrupted.inspect(|thread| this.scheduler.ready.push_front(thread));
    this.arriving.threads.set(threads);
    take_in_requests(interrupted)
}

/// The thread that this entry of the request queue has brought.
#[inline]
fn arrival(request: &'static Node) -> ThreadRef {
    // SAFETY: this request queue holds only threads.
    let thread = unsafe { location::of_request(request) };
    thread.location.arrive(arch::cpu_number() as u16);
    thread
}

/// Threads or interrupts have come while `interrupted` ran: all of them are served, before any
/// thread that lives here runs. As they can be many, the processor gives way to pending interrupts
/// in between, and goes on by [`take_interrupts`].
fn take_in_requests(interrupted: Option<ThreadRef>) -> Next {
    if !location::send_followers() || !let_in() || !admit_all() {
        processor::this().arriving.interrupted.set(interrupted);
        return Next::Interrupted;
    }
    if run_on(interrupted) { Next::ReturnFromEvent } else { Next::Schedule }
}

/// `interrupted`, which waits in the ready queue while the requests are served, is the current
/// thread again, if it still runs. Returns whether it does.
fn run_on(interrupted: Option<ThreadRef>) -> bool {
    let this = processor::this();
    let runs = |thread: &ThreadRef| {
        thread.is_here() && thread.ready.is_queued() && thread.continuation() == Continuation::ReturnToUser
    };
    let thread = interrupted.filter(runs);
    thread.inspect(|thread| this.scheduler.ready.remove(thread));
    this.current.set(thread);
    thread.is_some()
}

/// The handler of cross-processor requests has given way to interrupts
/// ([`Outcome::TakeInterrupts`]). `take` serves one of these, if there is one, and leaves the
/// request queue alone. If the handler was letting in threads when it gave way, that goes on.
pub fn take_interrupts(take: impl FnOnce() -> Option<Next>) -> Next {
    let this = processor::this();
    // The order is as if the interrupt had come just before the others: it may end the timeslice,
    // or a delayed preemption.
    run_on(this.arriving.interrupted.take());
    let next = take().unwrap_or_else(after_interrupt);
    let interrupted = this.current.take().filter(|_| matches!(next, Next::ReturnFromEvent));
    interrupted.inspect(|thread| this.scheduler.ready.push_front(thread));
    take_in_requests(interrupted)
}

/// Takes the interrupt for cross-processor requests when this processor is about to look at its
/// request queue anyway.
pub fn attend_before_requests() -> Next {
    arch::serve_requests();
    processor::this().update_fast_path();
    after_interrupt()
}

/// How many entries of a request queue are put in order, and how many threads arrive, between two
/// looks for interrupts: about 30 instructions each.
const REQUESTS_PER_POLL: usize = arch::POLL_INTERVAL as usize / 2;
/// The maximum number of threads that do what they came for between two looks for interrupts.
const ADMITTED_PER_POLL: usize = 2;

/// Takes in the cross-processor requests: interrupts are delivered, threads go into the ring of
/// arrived threads. Returns whether that is all; `false`: an interrupt is pending.
fn let_in() -> bool {
    let this = processor::this();
    let Processor { arriving, public, .. } = this;
    loop {
        let mut threads = arriving.threads.take();
        if threads.is_empty() && public.threads.has_requests() {
            threads = public.threads.take();
            this.update_fast_path();
        }
        // Interrupts that were handed over before these threads are in the other request queue now.
        let done = let_interrupts_in() && let_threads_in(&mut threads);
        arriving.threads.set(threads);
        if !done {
            return false;
        }
        if !public.has_requests() {
            return true;
        }
        if arch::interrupt_pending() {
            return false;
        }
    }
}

/// Takes in the interrupts among the cross-processor requests. Returns whether that is all, as
/// [`let_in`].
fn let_interrupts_in() -> bool {
    let Processor { arriving, public, .. } = processor::this();
    let mut requests = arriving.interrupts.take();
    loop {
        if requests.is_empty() && public.interrupts.has_requests() {
            requests = public.interrupts.take();
        }
        let Some(request) = requests.next() else { return true };
        // SAFETY: this request queue holds only interrupts.
        unsafe { interrupt::of_request(request) }.arrive();
        if !requests.is_empty() && arch::interrupt_pending() {
            arriving.interrupts.set(requests);
            return false;
        }
    }
}

/// Takes in these threads. Returns whether that is all, as [`let_in`]. Threads that it has not
/// reached stay on their way.
fn let_threads_in(threads: &mut Requests) -> bool {
    while !threads.put_in_order(REQUESTS_PER_POLL) {
        if arch::interrupt_pending() {
            return false;
        }
    }
    while !threads.is_empty() {
        for thread in threads.take(REQUESTS_PER_POLL).map(arrival) {
            processor::this().scheduler.ready.push_to(Ring::Arrived, thread);
        }
        if !threads.is_empty() && arch::interrupt_pending() {
            return false;
        }
    }
    true
}

/// The threads that have arrived do what they came for: all are here before one of them does
/// anything. Returns whether that is all; `false`: an interrupt is pending.
fn admit_all() -> bool {
    delay::at(Point::Admit);
    let Processor { scheduler: Scheduler { ready, .. }, followers, .. } = processor::this();
    let next = || if followers.are_left() { None } else { ready.pop_from(Ring::Arrived) };
    loop {
        if !location::send_followers() {
            return false;
        }
        core::iter::from_fn(next).take(ADMITTED_PER_POLL).for_each(|thread| queue_woken(admit(thread)));
        if !ready.has_arrived() && !followers.are_left() {
            return true;
        }
        if arch::interrupt_pending() {
            return false;
        }
    }
}

/// `thread`, which has come, goes where it belongs or does what it came for. Returns the thread
/// that can run then, and is not in the ready queue yet.
fn admit(thread: ThreadRef) -> Option<ThreadRef> {
    match location::admit(thread) {
        Arrival::Acts => serve_request(thread),
        Arrival::Ready => Some(thread),
        Arrival::Waits => None,
        Arrival::Later => {
            processor::this().scheduler.ready.push_front_to(Ring::Arrived, thread);
            None
        }
    }
}

/// Puts `woken`, which can run, into the ready queue, and sends threads home that belong to other
/// processors.
fn queue_woken(woken: Option<ThreadRef>) {
    let scheduler = &processor::this().scheduler;
    woken.inspect(|woken| scheduler.make_ready(woken));
    if scheduler.ready.has_outbound() {
        send_home();
    }
}

/// `thread`, which has just come, does what it came for. Returns the thread that can run then, and
/// is not in the ready queue yet.
fn serve_request(thread: ThreadRef) -> Option<ThreadRef> {
    let this = processor::this();
    trace::event(Event::Serve, thread.id().raw(), u64::from(thread.home()));
    this.current.set(Some(thread));
    let next = match thread.continuation() {
        Continuation::SendAgain(kind) => ipc::send_again(thread, kind),
        _ => go_on(thread),
    };
    let current = this.current.take();
    match next {
        Next::Return | Next::Unchanged | Next::ReturnFromEvent => {
            Some(thread).filter(|thread| thread.is_runnable())
        }
        Next::SwitchTo(other) | Next::DonateTo(other) => Some(other).filter(|other| !other.ready.is_queued()),
        Next::Interrupted => {
            current.inspect(|thread| this.scheduler.ready.push_front(thread));
            None
        }
        Next::Schedule => None,
        Next::Switched(_) | Next::Start(_) => {
            debug_assert!(false, "the fast path is for threads at home, which do not come");
            None
        }
    }
}

/// The current thread, if it goes on after what it did itself and there is nothing to do before:
/// what `dispatch` finds for [`Next::Return`] nearly always.
#[inline]
pub fn returning() -> Option<ThreadRef> {
    let this = processor::this();
    let thread = this.current.get()?;
    let returns =
        !this.scheduler.ready.has_outbound() && this.scheduler.goes_on(thread) && can_return(thread);
    returns.then(|| {
        this.scheduler.set_timer();
        thread
    })
}

/// `thread`, if it runs now instead of the current one, which cannot go on, and there is nothing to
/// do before: what `dispatch` finds for [`Next::SwitchTo`] nearly always.
#[inline]
pub fn switching(thread: ThreadRef) -> Option<ThreadRef> {
    let this = processor::this();
    let switches = !this.scheduler.ready.has_outbound()
        && this.scheduler.switches_to(thread)
        && has_nothing_to_do(thread);
    switches.then(|| {
        this.scheduler.ready.remove(thread);
        switch_directly(thread);
        this.scheduler.set_timer();
        thread
    })
}

/// `thread`, which is in no queue, if it can run immediately: no thread runs or is ready, and there
/// is nothing to do before. That is what `dispatch` finds for [`Next::Start`] nearly always.
#[inline]
pub fn starting(thread: ThreadRef) -> Option<ThreadRef> {
    let this = processor::this();
    let starts = has_nothing_to_do(thread) && !this.scheduler.meters(thread);
    starts.then(|| {
        this.scheduler.start(thread);
        this.current.set(Some(thread));
        load(thread);
        this.scheduler.set_timer();
        thread
    })
}

/// Whether `thread`, the current one, has nothing to do before it returns to user level, and the
/// processor has all that it has there.
#[inline]
fn can_return(thread: ThreadRef) -> bool {
    has_nothing_to_do(thread) && processor::this().has_loaded(thread)
}

/// Whether `thread` has nothing to do before it returns to user level.
#[inline]
fn has_nothing_to_do(thread: ThreadRef) -> bool {
    thread.returns_to_user()
        && !thread.has(flag::HALTED | flag::RECALLED)
        && thread.pending.get() == 0
        && !thread.is_orphaned()
        && thread.is_home()
        && arch::is_canonical(thread.registers.rip.get())
}

/// Whether `current` goes on after [`Next::Unchanged`], since there is nothing that it has to make
/// room for.
#[inline]
pub fn returns_unchanged(current: ThreadRef) -> bool {
    let scheduler = &processor::this().scheduler;
    debug_assert!(processor::this().is_current(current) && can_return(current));
    scheduler.keeps_processor() && !scheduler.ready.has_outbound()
}

/// `thread`, which waited, runs now instead of the current thread, which waits: what `dispatch`
/// does for [`Next::SwitchTo`] where nothing else has to be done. No timer has to be set, because
/// no deadline has changed.
#[inline]
pub fn switch_directly(thread: ThreadRef) {
    let this = processor::this();
    this.scheduler.switch_directly(thread);
    this.current.set(Some(thread));
    load(thread);
}

/// Does for `thread`, which would return to user level, what has to be done before.
#[cold]
fn attend(thread: ThreadRef) -> Next {
    if thread.is_pending(pending::STOPPED) {
        return Next::Schedule;
    }
    if thread.is_pending(pending::OUT_OF_QUANTUM) {
        thread.set_pending(pending::OUT_OF_QUANTUM, false);
        thread.set_pending(pending::STOPPED, true);
        thread.fault[0].set(thread.quantum_over_at.get());
        return send_quantum_message(thread);
    }
    thread.set_pending(pending::PREEMPTED, false);
    thread.fault[0].set(thread.preempted_at.get());
    send_preemption_message(thread)
}

fn send_quantum_message(thread: ThreadRef) -> Next {
    ipc::send_notice(thread, IpcKind::Quantum, thread.scheduler.get(), Time::NEVER)
}

fn send_preemption_message(thread: ThreadRef) -> Next {
    match thread.exception_handler() {
        handler if handler.is_nil() => Next::Return,
        handler => ipc::send_notice(thread, IpcKind::Preemption, handler, Time::ZERO),
    }
}

/// Makes the thread's space and registers those of the processor.
#[inline]
fn load(thread: ThreadRef) {
    let this = processor::this();
    if let Some(space) = thread.space.get()
        && !this.loaded_space.get().is_some_and(|loaded| core::ptr::eq(loaded, space))
    {
        let root = space.memory.page_table_root();
        if SEVERAL {
            this.public.active_root.change(root.value(), || arch::tlb::activate(root));
        } else {
            arch::tlb::activate(root);
        }
        this.loaded_space.set(Some(space));
    }
    let loaded = this.loaded_thread.get();
    if !loaded.is_some_and(|loaded| core::ptr::eq(loaded, thread)) {
        let space = this.loaded_space.get().map_or(0, |space| core::ptr::from_ref(space) as u64);
        trace::event(Event::Switch, thread.id().raw(), space);
        arch::switch_thread_state(loaded, thread);
        this.loaded_thread.set(Some(thread));
    }
}

/// The timer has fired: timeouts end, timeslices too.
pub fn timer_interrupt() -> Next {
    let this = processor::this();
    this.scheduler.timer_fired();
    let now = arch::clock();
    trace::event(Event::Timer, now, 0);
    for _ in 0..EXPIRED_PER_POLL {
        match this.scheduler.timeouts.pop_expired(now) {
            Some(ended) => ended.into_iter().for_each(ipc::expire),
            None => break,
        }
    }
    let current = this.current.get();
    if this.scheduler.end_special(now) || !this.scheduler.end_timeslice(now, current) {
        after_interrupt()
    } else {
        Next::Schedule
    }
}

/// What follows an interrupt that the current thread, if any, has nothing to do with.
pub fn after_interrupt() -> Next {
    if processor::this().current.get().is_some() { Next::ReturnFromEvent } else { Next::Schedule }
}
