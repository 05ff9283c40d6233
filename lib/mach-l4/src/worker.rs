//! The loop of a worker: it polls tasks, sends answers and receives messages.

use alloc::sync::Arc;
use core::task::Waker;

use l4::x2::extension::NOTIFICATION_LABEL;
use l4::x2::{Acceptor, IpcPhase, MessageTag, ThreadId, Time, Timeouts};
use rt::executor::{Platform, Sleep, Worker};

use crate::alarm::{self, Alarm};
use crate::cpu_accounting::CpuAccounting;
use crate::event::{self, Words};
use crate::kernel;
use crate::machine::{L4Machine, Shared};
use crate::placement::Look;
use crate::platform::{L4Platform, WAKE};
use crate::user_thread::{Delivered, Record, Served};

/// How many tasks are polled before the worker looks for messages again.
const BUDGET: usize = 32;

/// How many messages are served before the worker polls its tasks, if one is ready. Programs can
/// send faster than they use up the time that the worker owes them, so that time alone is no limit.
const TURN: u32 = 32;

/// How many messages are served before the worker balances the load of the processors again.
const BALANCE: u32 = 64;

/// A worker's clocks: its CPU-time accounting, and its alarm.
struct Clocks {
    accounting: CpuAccounting,
    alarm: Alarm,
}

/// A reply that the worker has to send.
#[derive(Clone, Copy)]
struct Reply {
    to: ThreadId,
    tag: MessageTag,
    words: Words,
}

impl Reply {
    const NONE: Reply = Reply { to: ThreadId::NIL, tag: MessageTag::EMPTY, words: [0; 7] };
}

impl L4Machine {
    /// Drives worker `worker`; never returns. The calling thread must run on the processor of that
    /// number; it receives the messages of the threads there. Messages of threads that are not of
    /// programs get no answer. `notified` is called with the notification bits other than bits 0
    /// and 63, which are the worker's own; it must not block.
    pub fn serve(&self, worker: usize, notified: &mut dyn FnMut(u64)) -> ! {
        let shared = self.shared();
        shared.executor.platform().set_worker(worker, l4::utcb::my_global_id());
        accept_words_and_notifications();
        let mut tasks = shared.executor.worker(worker);
        let mut clocks = Clocks { accounting: CpuAccounting::new(worker), alarm: Alarm::new(worker) };
        loop {
            tasks.run(BUDGET);
            shared.reap();
            self.receive(&mut tasks, notified, &mut clocks);
        }
    }

    /// Sends the queued answers, and receives messages until a task may have something to do.
    fn receive(&self, tasks: &mut Worker<L4Platform>, notified: &mut dyn FnMut(u64), clocks: &mut Clocks) {
        let shared = self.shared();
        let Clocks { accounting, alarm } = clocks;
        let worker = tasks.index();
        // The thread that gets `reply`, if it has waited without its task: its next message is
        // probably the next one.
        let (mut reply, mut served) = self.give_answers(worker);
        let mut sleep = tasks.prepare_sleep();
        let mut messages = 0u32;
        loop {
            if sleep != Sleep::Busy && !tasks.is_sleeping() {
                // Serving the message has woken a task. The answer is sent before that task runs,
                // because the task may recall the thread that gets the answer.
                send(reply);
                break;
            }
            if sleep == Sleep::Busy && messages == TURN {
                send(reply);
                break;
            }
            if messages.is_multiple_of(BALANCE)
                && let Sleep::Until(at) = &mut sleep
            {
                if let Some(look) = self.balance() {
                    *at = Some(at.map_or(look, |at| at.min(look)));
                }
                if at.is_some_and(|at| alarm.set(at)) {
                    *at = None;
                }
            }
            messages = messages.wrapping_add(1);
            let (receive, gift) = match sleep {
                Sleep::Busy => {
                    let gift = accounting.is_busy(shared);
                    (if gift > 0 { Time::period(gift) } else { Time::ZERO }, gift)
                }
                Sleep::Until(_) => {
                    accounting.sleeps();
                    (timeout(sleep, shared.executor.platform()), 0)
                }
            };
            let timeouts = Timeouts::new(Time::ZERO, receive);
            let next = match served.take() {
                // With several processors, messages are also counted, to balance the load from time
                // to time.
                Some(record) if sleep == Sleep::Until(None) && shared.placement.is_none() => {
                    accounting.turns_to(shared, record.id);
                    serve_again(shared, record, reply, accounting, tasks, timeouts)
                }
                _ => {
                    accounting.idles(shared);
                    Next::Received(kernel::ipc(reply.to, ThreadId::ANY, timeouts, (reply.tag, reply.words)))
                }
            };
            reply = Reply::NONE;
            accounting.gave(gift);
            let received = match next {
                Next::Received(received) => received,
                Next::Event(waker) => {
                    accounting.charge(shared);
                    wake(tasks, waker);
                    break;
                }
                Next::Reply(next) => {
                    reply = next;
                    continue;
                }
                Next::Held => {
                    (reply, served) = self.give_answers(worker);
                    continue;
                }
                Next::Woken => break,
            };
            let (from, (tag, words)) = match received {
                Ok(received) => received,
                // A thread that does not wait for its answer does not get it.
                Err(error) if error.phase == IpcPhase::Send => continue,
                Err(_) => {
                    accounting.interrupted(shared);
                    break;
                }
            };
            if from.is_nil() && tag.label() == NOTIFICATION_LABEL {
                accounting.interrupted(shared);
                tasks.awake();
                if words[0] & alarm::RUNG != 0 {
                    alarm.rung();
                }
                let more = words[0] & !(WAKE | alarm::RUNG);
                if more != 0 {
                    notified(more);
                }
                break;
            }
            match accounting.received(shared, from) {
                // A propagated message is ignored: its sender sends it in another thread's name.
                Some(_) if tag.is_propagated() => {}
                Some(record) => match record.serve(worker, tag, &words, l4::utcb::message_register) {
                    Delivered::Answer(tag, words) => {
                        reply = Reply { to: from, tag, words };
                        served = Some(record);
                    }
                    Delivered::Held => (reply, served) = self.give_answers(worker),
                    Delivered::Ignored => {}
                    Delivered::Event(waker) => {
                        wake(tasks, waker);
                        break;
                    }
                },
                None => break,
            }
        }
        tasks.awake();
    }

    /// Recalls a thread if it should move to a processor with less load. Returns the time at which
    /// to balance again, if any.
    fn balance(&self) -> Option<u64> {
        let shared = self.shared();
        let placement = shared.placement.as_ref()?;
        let now = shared.executor.platform().now();
        let look = placement.lock().look(shared.moment(), now);
        match look {
            Look::Balanced => None,
            Look::Later(time) => Some(now + time),
            Look::Pull(thread) => {
                // The recalled thread sends a message, and is moved when that is answered. A thread
                // that has ended need not move.
                let _ = kernel::recall(thread);
                None
            }
        }
    }

    /// Sends all queued answers but the last, which is sent by the system call of the next receive.
    /// Returns it, and the thread that gets it.
    fn give_answers(&self, worker: usize) -> (Reply, Option<Arc<Record>>) {
        let shared = self.shared();
        let (mut last, mut answered) = (Reply::NONE, None);
        while let Some(record) = shared.next_answer(worker) {
            if !last.to.is_nil() {
                send(last);
                (last, answered) = (Reply::NONE, None);
            }
            if let Some((tag, words)) = record.take_answer() {
                last = Reply { to: record.id, tag, words };
                if tag.untyped() > words.len() {
                    // The message registers from MR8 on must be free for the next answer.
                    send(last);
                    last = Reply::NONE;
                } else {
                    answered = Some(record);
                }
            }
        }
        (last, answered)
    }
}

/// What follows an answer that was given without the thread's task.
enum Next {
    /// A message was received, or the receive has failed.
    Received(l4::ipc::Result<(ThreadId, (MessageTag, Words))>),
    /// The thread has an event, for which this task waits.
    Event(Option<Waker>),
    /// The thread waits for an answer, and another thread may have got one.
    Held,
    /// This answer is to be sent.
    Reply(Reply),
    /// Serving the thread has woken a task. The thread has its answer.
    Woken,
}

/// Sends `reply` to the thread and receives. Serves the thread's next messages, as long as no other
/// message comes and each can be answered without the thread's task. If the thread waits, and one
/// other thread has got an answer instead, that thread takes its place.
fn serve_again(
    shared: &Shared,
    mut record: Arc<Record>,
    reply: Reply,
    accounting: &mut CpuAccounting,
    tasks: &Worker<L4Platform>,
    timeouts: Timeouts,
) -> Next {
    accounting.waits();
    let mut received = kernel::ipc(reply.to, ThreadId::ANY, timeouts, (reply.tag, reply.words));
    loop {
        let (tag, words) = match received {
            Ok((from, message))
                if from == record.id && !message.0.is_propagated() && accounting.received_again() =>
            {
                message
            }
            other => return Next::Received(other),
        };
        let (tag, word) = match record.try_serve(tag, &words) {
            Some(Served::Answer(tag, word)) => (tag, word),
            Some(Served::Held) => {
                let Some(next) = shared.only_answer(tasks.index()) else { return Next::Held };
                let Some(value) = next.take_result() else {
                    let answer = next.take_answer();
                    return answer
                        .map_or(Next::Held, |(tag, words)| Next::Reply(Reply { to: next.id, tag, words }));
                };
                accounting.turns_to(shared, next.id);
                record = next;
                (event::return_tag(), value)
            }
            None => match record.deliver(tasks.index(), tag, words, l4::utcb::message_register) {
                Delivered::Answer(tag, words) => return Next::Reply(Reply { to: record.id, tag, words }),
                // The caller looks the sender's number up again. If it belongs to another thread by
                // now, that thread gets the message; otherwise the caller ignores the message, too.
                Delivered::Ignored => return Next::Received(Ok((record.id, (tag, words)))),
                Delivered::Held => return Next::Held,
                Delivered::Event(waker) => return Next::Event(waker),
            },
        };
        if !tasks.is_sleeping() {
            send(Reply { to: record.id, tag, words: event::first(word) });
            return Next::Woken;
        }
        accounting.waits();
        received = kernel::ipc(record.id, ThreadId::ANY, timeouts, (tag, event::first(word)));
    }
}

/// Wakes the task of a thread that has an event.
fn wake(tasks: &mut Worker<L4Platform>, waker: Option<Waker>) {
    // The worker is marked awake first. Otherwise the waker would notify it, which is not needed.
    tasks.awake();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Sends an answer without blocking. A receiver that does not wait for it does not get it.
fn send(reply: Reply) {
    if reply.to.is_nil() {
        return;
    }
    let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
    let _ = kernel::ipc(reply.to, ThreadId::NIL, timeouts, (reply.tag, reply.words));
}

/// How long a worker may wait for a message.
fn timeout(sleep: Sleep, platform: &L4Platform) -> Time {
    match sleep {
        Sleep::Busy => Time::ZERO,
        Sleep::Until(None) => Time::NEVER,
        // Rounded down: the worker sleeps again for what remains.
        Sleep::Until(Some(at)) => Time::period_rounded_down(at.saturating_sub(platform.now())),
    }
}

#[allow(unsafe_code)]
fn accept_words_and_notifications() {
    // SAFETY: no mapping and no string is accepted, so a message overwrites nothing of this
    // program.
    unsafe { l4::utcb::accept(Acceptor::UNTYPED_WORDS.with_notifications()) }
}
