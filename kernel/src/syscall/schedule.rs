//! Schedule(RDI dest, RDX time control, R8 processor control, RSI priority control, R9 preemption
//! control): result in RAX, remaining times in RDX (X.2 rules 3.5 to 3.17).

use core::ptr::{eq, from_ref, null};

use x2::control::{PreemptionControl, ThreadState, TimeControl, UNCHANGED};
use x2::{ErrorCode, ThreadId, Time};

use super::{Call, Entry, Object, arguments, check_privilege, find_here, is_privileged, object, set_error};
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::{Microseconds, NEVER};
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, Here, IpcKind, Tcb, ThreadRef, flag, ipc, location, send_queue};
use crate::{arch, interrupt};

/// The checked changes of a thread's scheduling parameters.
struct Request<'entry> {
    thread: Here<'entry>,
    timeslice: Option<Microseconds>,
    quantum: Option<Microseconds>,
    priority: Option<u8>,
    preemption: Option<PreemptionControl>,
    processor: Option<u16>,
}

/// The thread or number that the call names.
enum Decoded<'entry> {
    Change(Request<'entry>),
    /// The number could be a user thread's, but there is no such thread.
    NoThread,
    /// An associated interrupt: it has no schedule, and accepts any.
    Interrupt,
}

/// The results of a call that changes nothing, for entry code: state and remaining times. `None`:
/// the whole call has to be made to know.
#[inline]
pub fn read(current: ThreadRef, id: ThreadId) -> Option<(ThreadState, u64)> {
    if let Some(thread) = threads().find(id).and_then(Found::if_here)
        && let Some(own) = current.space.get()
        && eq(thread.space.get().map_or(null(), from_ref), own)
        && own.is_privileged()
        && thread.runs_at_user_level()
    {
        // The commonest case: a privileged space's own thread, which runs.
        return Some((ThreadState::Running, remaining_times(thread)));
    }
    read_other(current, id)
}

#[inline(never)]
fn read_other(current: ThreadRef, id: ThreadId) -> Option<(ThreadState, u64)> {
    let entry = Entry::of_handler();
    let thread = find_here(&entry, current, id)?;
    let allowed = ipc::reaches(current, &thread) && (is_privileged(current) || schedules(current, &thread));
    allowed.then(|| (state(&thread), remaining_times(&thread)))
}

/// Whether the current thread's space holds the scheduler of `thread`.
fn schedules(current: ThreadRef, thread: &Tcb) -> bool {
    let scheduler = ipc::resolve_thread(current, thread.scheduler.get());
    scheduler.is_some_and(|scheduler| scheduler.shares_space_with(current))
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    let entry = Entry::of_handler();
    let arguments = arguments::Schedule::of(current);
    let id = arguments.thread();
    let thread = match object(&entry, current, id, Call::Schedule) {
        Object::Elsewhere(next) => return next,
        Object::None => None,
        Object::Here(thread) => Some(thread),
    };
    let (state, times) = match decode(current, thread, id) {
        Ok(Decoded::Change(request)) => {
            let before = (state(&request.thread), remaining_times(&request.thread));
            perform(current, &request);
            before
        }
        Ok(Decoded::NoThread) => (ThreadState::Dead, 0),
        Ok(Decoded::Interrupt) => (ThreadState::Waiting, 0),
        Err(error) => {
            set_error(current, error);
            arguments.set_state(0);
            return Next::Return;
        }
    };
    arguments.set_state(state as u64);
    arguments.set_times(times);
    // A thread that schedules itself away is preempted (X.2 rule 3.17).
    let all_gone = !processor::this().followers.are_left() || location::send_followers();
    if all_gone { Next::ReturnFromEvent } else { Next::Interrupted }
}

/// `thread` is what `id` names, if it names a thread.
fn decode<'entry>(
    current: ThreadRef,
    thread: Option<Here<'entry>>,
    id: ThreadId,
) -> Result<Decoded<'entry>, ErrorCode> {
    if id.is_global() && id.number() < interrupt::system_base() {
        interrupt::find(id).and_then(|interrupt| interrupt.handler()).ok_or(ErrorCode::InvalidThread)?;
        return check_privilege(current).map(|()| Decoded::Interrupt);
    }
    let Some(thread) = thread.filter(|thread| ipc::reaches(current, thread)) else {
        return if ipc::is_user_number(id) { Ok(Decoded::NoThread) } else { Err(ErrorCode::InvalidThread) };
    };
    let privileged = is_privileged(current);
    if !privileged && !schedules(current, &thread) {
        return Err(ErrorCode::NoPrivilege);
    }
    let arguments = arguments::Schedule::of(current);
    let (priority, preemption) = (arguments.priority(), arguments.preemption());
    let highest = if privileged { u8::MAX } else { current.priority.get() };
    let (timeslice, quantum) = times(arguments.times())?;
    let processor = arguments.processor();
    if processor.is_some_and(|number| u32::from(number) >= arch::cpu_count())
        || priority.is_some_and(|priority| priority > highest)
        || preemption.is_some_and(|control| control.sensitive_priority > highest)
    {
        return Err(ErrorCode::InvalidParameter);
    }
    Ok(Decoded::Change(Request { thread, timeslice, quantum, priority, preemption, processor }))
}

/// The new timeslice length and the new total quantum.
fn times(control: TimeControl) -> Result<(Option<Microseconds>, Option<Microseconds>), ErrorCode> {
    if control.raw() == UNCHANGED {
        return Ok((None, None));
    }
    Ok((length(control.timeslice())?, length(control.total_quantum())?))
}

/// A length of time, which is not zero and no point.
fn length(time: Option<Time>) -> Result<Option<Microseconds>, ErrorCode> {
    match time {
        None => Ok(None),
        Some(Time::NEVER) => Ok(Some(NEVER)),
        Some(period) => match period.micros() {
            None | Some(0) => Err(ErrorCode::InvalidParameter),
            length => Ok(length),
        },
    }
}

fn perform(current: ThreadRef, request: &Request<'_>) {
    let thread = request.thread.for_queues();
    let scheduler = &processor::this().scheduler;
    if let Some(length) = request.timeslice {
        scheduler.set_timeslice(thread, length);
    }
    if let Some(quantum) = request.quantum {
        scheduler.set_quantum(thread, quantum);
        if matches!(
            thread.continuation(),
            Continuation::Send(IpcKind::Quantum) | Continuation::SendAgain(IpcKind::Quantum)
        ) {
            // The message that the quantum was used up is not delivered yet (X.2 rule 3.22).
            ipc::cancel_send(thread);
        } else if thread.is_runnable() && !eq(thread, current) {
            scheduler.make_ready(thread);
        }
    }
    if let Some(priority) = request.priority {
        // A sender's place in its receiver's queue depends on its priority.
        let queue = thread.senders_node.receiver();
        send_queue::remove_sender(thread);
        scheduler.set_priority(thread, priority, Some(current));
        queue.inspect(|receiver| {
            receiver.senders.insert(receiver, thread);
            // The sender's new place may be before the one where an interrupted search goes on.
            receiver.search.set(None);
        });
    }
    if let Some(control) = request.preemption {
        thread.maximum_delay.set(control.max_delay);
        thread.sensitive_priority.set(control.sensitive_priority);
    }
    if let Some(processor) = request.processor {
        location::migrate(thread, processor);
    }
}

/// The thread's state in the form in which Schedule returns it.
fn state(thread: &Tcb) -> ThreadState {
    if thread.has(flag::HALTED) { ThreadState::Inactive } else { doing(thread.continuation()) }
}

/// What a thread with this continuation is doing, be it halted or not. Only user-invoked IPC counts
/// as such (X.2 rule 3.12).
pub(super) fn doing(continuation: Continuation) -> ThreadState {
    match continuation {
        Continuation::Inactive => ThreadState::Inactive,
        Continuation::Send(IpcKind::User) | Continuation::SendAgain(IpcKind::User) => {
            ThreadState::PendingSend
        }
        Continuation::SendTransfer(IpcKind::User) => ThreadState::Sending,
        Continuation::Receive(IpcKind::User | IpcKind::Start) => ThreadState::Waiting,
        Continuation::ReceiveTransfer(IpcKind::User | IpcKind::Start) => ThreadState::Receiving,
        _ => ThreadState::Running,
    }
}

/// Rest of the timeslice in bits 16..31, of the total quantum in 0..15, as time periods (X.2 rule
/// 3.15).
#[inline]
fn remaining_times(thread: &Tcb) -> u64 {
    let scheduler = &processor::this().scheduler;
    let period = |left| match left {
        NEVER => Time::NEVER,
        left => Time::period_rounded_down(left),
    };
    let (slice, quantum) = (period(scheduler.timeslice_left(thread)), period(scheduler.quantum_left(thread)));
    u64::from(slice.raw()) << 16 | u64::from(quantum.raw())
}
