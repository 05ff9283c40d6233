//! Threads of programs: where each is, what it waits for, and how it goes on.
//!
//! A thread is with its program (it runs, or will), or with the server (it has come with an event
//! and waits for its answer), or it is new. Only a message from a thread that is with its program
//! counts; so whatever a program sends in its threads' names, each event is answered once and each
//! answer has its event.
//!
//! Everything here may be called on any worker. What is known of a thread is under its lock, with
//! the calls of the kernel that make it so. Its worker, to which its messages go, is that of its
//! processor. Both change together, when the worker that has its last message is about to answer it
//! (or before it first runs). So an answer always comes from the worker that the thread asked, and
//! no answer for a thread that has ended goes to one that has its number now.

mod residence;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};

use l4::x2::control::TimeControl;
use l4::x2::{MessageTag, ThreadId, Time};
use macadamia_sync::SpinLock;
use mach::machine::{Event, ExecutionContext, NonblockingHandler, Resume, ThreadState, Times};
use mach::{KernError, KernResult};
use rt::executor::TaskAssignment;

use crate::event::{self, Origin, Preparation, Words};
use crate::machine::Shared;
use crate::placement::Assignment;
use crate::space::Space;
use crate::{kernel, registers};

/// Bytes of the smallest extended state: legacy area and header.
pub(crate) const EXTENDED_STATE_HEADER_END: usize = 576;
/// Bytes of the legacy area: x87 and SSE.
pub(crate) const LEGACY: usize = 512;

/// A thread of a program. Clones are the same thread. It ends with [`end`](Self::end), or when the
/// last clone is dropped.
///
/// One task serves a thread: it awaits [`run`](Self::run) again and again. All other functions may
/// be called by any task.
#[derive(Clone)]
pub struct UserThread(pub(crate) Arc<Record>);

/// What a thread does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It has never run.
    New,
    /// The thread runs its program.
    Program,
    /// It came by a message of this kind, and waits for its answer.
    Server(Origin),
    /// The thread has ended.
    Ended,
}

/// A message that is to be served after another.
struct Later {
    worker: usize,
    origin: Origin,
    event: Event,
}

struct State {
    place: Place,
    /// An event of the thread that its task has not taken yet.
    event: Option<Event>,
    /// A message that came while the thread's earlier one was being served: the thread does not
    /// wait for the answer to the earlier one any more.
    later: Option<Later>,
    /// The task that waits for an event.
    waker: Option<Waker>,
    /// The answer that is to be given, and the worker which does that: the one that has the
    /// thread's message.
    answer: Option<Resume>,
    asked: usize,
    /// The server has stopped it: it is started, but not let go.
    stopped: bool,
    /// Whether a recall was requested.
    recall: bool,
    /// Where it lives, and for how long it was there; not used with one processor.
    assignment: Assignment,
    handler: Option<Arc<dyn NonblockingHandler>>,
    /// The task that serves it: it is moved to the thread's worker.
    task: Option<TaskAssignment>,
}

pub(crate) struct Record {
    pub(crate) id: ThreadId,
    /// The thread's place in the UTCB area of its space.
    place: u32,
    space: Space,
    shared: Arc<Shared>,
    /// The worker that its messages go to. Written under the lock.
    worker: AtomicUsize,
    state: SpinLock<State>,
}

/// What a worker does with a message.
pub(crate) enum Delivered {
    /// The worker answers immediately, with this message, and the thread goes on.
    Answer(MessageTag, Words),
    /// The thread has an event, for which this task waits.
    Event(Option<Waker>),
    /// The message is out of date and was ignored.
    Ignored,
}

impl UserThread {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        space: &Space,
        (id, place): (ThreadId, u32),
        worker: usize,
        assignment: Assignment,
    ) -> UserThread {
        let state = State {
            place: Place::New,
            event: None,
            later: None,
            waker: None,
            answer: None,
            asked: worker,
            stopped: false,
            recall: false,
            assignment,
            handler: None,
            task: None,
        };
        UserThread(Arc::new(Record {
            id,
            place,
            space: space.clone(),
            shared: shared.clone(),
            worker: AtomicUsize::new(worker),
            state: SpinLock::new(state),
        }))
    }

    /// The kernel's id of the thread.
    pub fn id(&self) -> ThreadId {
        self.0.id
    }

    /// The worker that serves the thread now.
    pub fn worker(&self) -> usize {
        self.0.worker()
    }

    /// Lets the task that awaits the thread's events live where its worker does, from now on.
    pub fn set_task(&self, task: TaskAssignment) {
        let mut state = self.0.state.lock();
        task.move_to(self.worker());
        state.task = Some(task);
    }
}

impl ExecutionContext for UserThread {
    /// The answer goes out when the thread's worker next waits for messages.
    #[inline]
    fn answer(&self, resume: Resume) {
        let record = &self.0;
        let mut state = record.state.lock();
        if !matches!(state.place, Place::New | Place::Server(_)) {
            return;
        }
        let posted = state.answer.is_some();
        state.answer = Some(resume);
        if !posted {
            // An event whose answer is sent was taken before.
            state.event = None;
            let asked = state.asked;
            drop(state);
            record.shared.post(asked, record.clone());
        }
    }

    #[inline]
    fn next_event(&self) -> impl Future<Output = Event> + Send {
        NextEvent(&self.0)
    }

    fn set_handler(&self, handler: Arc<dyn NonblockingHandler>) {
        let _old = self.0.state.lock().handler.replace(handler);
    }

    fn succeed(&self, other: &UserThread) {
        let task = other.0.state.lock().task.clone();
        if let Some(task) = task {
            self.set_task(task);
        }
    }

    /// An IPC of the thread's own is ended by an error.
    fn recall(&self) -> KernResult {
        let record = &self.0;
        let place = {
            let mut state = record.state.lock();
            if state.event == Some(Event::Recalled) {
                // The task that takes that event learns of this recall, too.
                return Ok(());
            }
            state.recall = true;
            state.place
        };
        match place {
            Place::Ended => Err(KernError::Terminated),
            Place::Program => {
                let before = kernel::recall(record.id)?;
                if kernel::is_in_own_ipc(before) {
                    // It may wait for ever; and a message to the server that is not received yet is
                    // better sent again.
                    kernel::abort(record.id)?;
                }
                Ok(())
            }
            Place::New | Place::Server(_) => kernel::recall(record.id).map(drop),
        }
    }

    fn stop(&self) -> KernResult {
        let mut state = self.0.state.lock();
        state.stopped = true;
        match state.place {
            Place::New => Ok(()),
            Place::Ended => Err(KernError::Terminated),
            Place::Program | Place::Server(_) => kernel::halt(self.0.id),
        }
    }

    fn unstop(&self) -> KernResult {
        let mut state = self.0.state.lock();
        state.stopped = false;
        match state.place {
            Place::New if state.answer.is_none() => self.0.start(&mut state, false),
            Place::New => Ok(()),
            Place::Ended => Err(KernError::Terminated),
            Place::Program | Place::Server(_) => kernel::unhalt(self.0.id),
        }
    }

    fn end(&self) {
        self.0.end();
    }

    fn state(&self) -> KernResult<ThreadState> {
        let mut state = registers::from_kernel(&kernel::read_registers(self.0.id)?);
        if state.gs_base == self.0.own_gs_base() {
            state.gs_base = 0;
        }
        Ok(state)
    }

    fn set_state(&self, state: &ThreadState) -> KernResult {
        kernel::write_registers(self.0.id, &registers::to_kernel(state)).map(drop)
    }

    fn extended_state(&self) -> KernResult<Vec<u8>> {
        let mut image = Vec::new();
        image.try_reserve_exact(self.0.shared.extended_size).map_err(|_| KernError::ResourceShortage)?;
        image.resize(self.0.shared.extended_size, 0);
        let size = kernel::read_extended_state(self.0.id, &mut image)?;
        image.truncate(size);
        Ok(image)
    }

    fn set_extended_state(&self, image: &[u8]) -> KernResult {
        if image.len() >= EXTENDED_STATE_HEADER_END {
            return kernel::write_extended_state(self.0.id, image);
        }
        let mut small = initial_extended_state();
        match image.len() {
            0 => {}
            LEGACY => {
                small[..LEGACY].copy_from_slice(image);
                // XSTATE_BV: x87 and SSE are in the image.
                small[LEGACY] = 3;
            }
            _ => return Err(KernError::InvalidArgument),
        }
        kernel::write_extended_state(self.0.id, &small)
    }

    /// As its worker has measured it between messages, and for threads that compute side by side
    /// their equal shares.
    fn times(&self) -> Times {
        let record = &self.0;
        let mut ticks = record.shared.threads.lock().ticks(record.id);
        if let Some(placement) = &record.shared.placement {
            ticks.program +=
                record.state.lock().assignment.used(&mut placement.lock(), record.shared.moment());
        }
        let time = |ticks| record.shared.microseconds(ticks);
        Times { program: time(ticks.program), server: time(ticks.server) }
    }

    fn set_priority(&self, priority: u8, slice: u32) -> KernResult {
        let slice = if slice == 0 { Time::NEVER } else { Time::period(slice.into()) };
        kernel::schedule(self.0.id, priority, TimeControl::new(Some(slice), None).raw())
    }

    fn processor(&self) -> usize {
        self.0.processor()
    }

    fn affinity(&self) -> u64 {
        self.0.affinity()
    }

    fn set_affinity(&self, mask: u64) -> KernResult {
        self.0.set_affinity(mask)
    }
}

impl Record {
    fn worker(&self) -> usize {
        // Relaxed: what is at the worker is under locks.
        self.worker.load(Ordering::Relaxed)
    }

    /// Notes where the thread is, and how many are with their programs.
    fn set_place(&self, state: &mut State, place: Place) {
        let running = &self.shared.running;
        // Relaxed: a count that guards nothing.
        match (state.place == Place::Program, place == Place::Program) {
            (false, true) => _ = running.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = running.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        if (state.place == Place::Program) != (place == Place::Program)
            && let Some(placement) = &self.shared.placement
        {
            let (placement, now) = (&mut placement.lock(), self.shared.moment());
            if place == Place::Program {
                state.assignment.begin(placement, now);
            } else {
                state.assignment.end(placement, now);
            }
        }
        state.place = place;
    }

    /// Starts a thread that is new; `halted`: it executes nothing until it is let go.
    fn start(&self, state: &mut State, halted: bool) -> KernResult {
        self.settle(state);
        kernel::start(self.id, halted)?;
        self.set_place(state, Place::Program);
        Ok(())
    }

    /// Whether the thread runs its program.
    pub(crate) fn runs(&self) -> bool {
        let state = self.state.lock();
        state.place == Place::Program && !state.stopped
    }

    /// GS base of a thread that has not set another (K5): the word of the UTCB block that holds the
    /// UTCB pointer.
    fn own_gs_base(&self) -> u64 {
        let block = self.shared.layout.utcb_area + u64::from(self.place) * l4::x2::utcb::SIZE;
        block + l4::x2::utcb::MR0_OFFSET - 63 * 8
    }

    /// A message of this thread, which this worker has received.
    #[inline]
    pub(crate) fn serve(
        &self,
        worker: usize,
        tag: MessageTag,
        words: &Words,
        word: impl Fn(usize) -> u64,
    ) -> Delivered {
        match self.try_serve(tag, words) {
            Some((tag, words)) => Delivered::Answer(tag, words),
            None => self.deliver(worker, tag, words, word),
        }
    }

    /// The answer to a message of this thread, if its handler gives it without waiting.
    #[inline(always)]
    pub(crate) fn try_serve(&self, tag: MessageTag, words: &Words) -> Option<(MessageTag, Words)> {
        if self.serve_fault(tag, words) {
            return Some((MessageTag::EMPTY, [0; 7]));
        }
        self.serve_call(tag, words).map(event::returned)
    }

    /// True if the message is a page fault and the thread's handler has served it without waiting.
    #[inline(always)]
    fn serve_fault(&self, tag: MessageTag, words: &Words) -> bool {
        let Some((address, access)) = event::page_fault(tag, words) else { return false };
        // No lock is held: the handler may end the thread.
        let served = self.handler().is_some_and(|handler| handler.fault(address, access));
        if served {
            self.try_settle();
        }
        served
    }

    /// The result of the system call that a message is, if the thread's handler has it without
    /// waiting.
    #[inline(always)]
    fn serve_call(&self, tag: MessageTag, words: &Words) -> Option<u64> {
        let call = event::system_call(tag, words)?;
        // No lock is held while the handler runs.
        let value = self.handler()?.call(&call)?;
        self.try_settle();
        Some(value)
    }

    /// Its handler, if it is with its program: only then does its message count.
    #[inline(always)]
    fn handler(&self) -> Option<Arc<dyn NonblockingHandler>> {
        let state = self.state.lock();
        if state.place == Place::Program { state.handler.clone() } else { None }
    }

    /// A message of this thread that its handler has not answered.
    #[inline(never)]
    pub(crate) fn deliver(
        &self,
        worker: usize,
        tag: MessageTag,
        words: &Words,
        word: impl Fn(usize) -> u64,
    ) -> Delivered {
        let Some((origin, event)) = event::decode(tag, words, word) else { return Delivered::Ignored };
        let mut state = self.state.lock();
        match event {
            _ if state.place != Place::Program => {}
            Event::Recalled if !core::mem::take(&mut state.recall) => {
                // Left over from before the thread was taken into use, recalled twice, or recalled
                // to be moved.
                drop(state);
                self.try_settle();
                let (_, tag, words) = event::encode(origin, &Resume::Continue);
                return match kernel::read_registers(self.id) {
                    Ok(_) => Delivered::Answer(tag, with_message_registers(tag, words)),
                    Err(_) => Delivered::Ignored,
                };
            }
            _ => {}
        }
        match state.place {
            Place::Program => {
                self.set_place(&mut state, Place::Server(origin));
                state.asked = worker;
                state.event = Some(event);
                Delivered::Event(state.waker.take())
            }
            Place::Server(present) => {
                // Two messages without a wait in between. One of its own that comes after a report
                // to another worker was sent before.
                if worker == state.asked || present == Origin::Message || origin != Origin::Message {
                    state.later = Some(Later { worker, origin, event });
                }
                Delivered::Ignored
            }
            Place::New | Place::Ended => Delivered::Ignored,
        }
    }

    /// Takes the answer that was posted: makes the thread ready for it, and returns what is to be
    /// sent, if anything. Message registers from MR8 on belong to the answer until it is sent.
    #[inline]
    pub(crate) fn take_answer(&self) -> Option<(MessageTag, Words)> {
        let mut state = self.state.lock();
        let resume = state.answer.take()?;
        match state.place {
            Place::Program | Place::Ended => None,
            Place::New => {
                let written = match resume {
                    Resume::Registers(registers) => {
                        kernel::write_registers(self.id, &registers::to_kernel(&registers)).map(drop)
                    }
                    _ => Ok(()),
                };
                let stopped = state.stopped;
                if written.and_then(|()| self.start(&mut state, stopped)).is_err() {
                    drop(state);
                    self.end();
                }
                None
            }
            Place::Server(origin) => {
                let (preparation, tag, words) = event::encode(origin, &resume);
                let prepared = match preparation {
                    Preparation::None => Ok(()),
                    Preparation::Read => kernel::read_registers(self.id).map(drop),
                    Preparation::Write(registers) => {
                        kernel::write_registers(self.id, &registers::to_kernel(registers)).map(drop)
                    }
                };
                if let Some(Later { worker, origin, event }) = state.later.take() {
                    // The thread waits for the answer to the later one, if both went to one worker;
                    // else for one of them.
                    let answer = (worker != state.asked && prepared.is_ok())
                        .then(|| (tag, with_message_registers(tag, words)));
                    state.place = Place::Server(origin);
                    (state.asked, state.event) = (worker, Some(event));
                    let waker = state.waker.take();
                    drop(state);
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                    return answer;
                }
                if prepared.is_err() {
                    drop(state);
                    self.end();
                    return None;
                }
                self.settle(&mut state);
                self.set_place(&mut state, Place::Program);
                Some((tag, with_message_registers(tag, words)))
            }
        }
    }

    fn end(&self) {
        let mut state = self.state.lock();
        if state.place == Place::Ended {
            return;
        }
        self.set_place(&mut state, Place::Ended);
        (state.event, state.later, state.answer) = (None, None, None);
        let waker = state.waker.take();
        let handlers = (state.handler.take(), state.task.take());
        let worker = self.worker();
        drop(state);
        self.shared.thread_ended(&self.space, self.place, self.id, worker);
        drop(handlers);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The smallest image of the initial extended state.
pub(crate) fn initial_extended_state() -> [u8; EXTENDED_STATE_HEADER_END] {
    let mut image = [0; EXTENDED_STATE_HEADER_END];
    // As FNINIT and the reset value of MXCSR have it.
    image[..2].copy_from_slice(&0x37fu16.to_le_bytes());
    image[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    image
}

/// The words in registers of a message that has more words than those: they are in the message
/// registers, too.
fn with_message_registers(tag: MessageTag, words: Words) -> Words {
    if tag.untyped() > words.len() { kernel::register_words() } else { words }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.end();
    }
}

/// The next event of a thread. May be dropped at any time.
struct NextEvent<'a>(&'a Record);

impl Future for NextEvent<'_> {
    type Output = Event;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let mut state = self.0.state.lock();
        if let Some(event) = state.event.take() {
            return Poll::Ready(event);
        }
        if state.place == Place::Ended {
            return Poll::Ready(Event::Ended);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}
