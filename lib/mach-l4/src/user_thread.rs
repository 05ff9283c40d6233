//! Threads of programs: where each is, what it waits for, and how it continues.
//!
//! A thread is new, or it is with its program (it runs, or will when it is scheduled), or it is
//! with the server (it has sent an event and waits for its answer). A message is accepted only from
//! a thread that is with its program. So each event is answered once and each answer belongs to an
//! event, whatever messages a program sends in its threads' names.
//!
//! All functions may be called on any worker. A thread's lock protects its state, and is held
//! during the kernel calls that change the thread accordingly. A thread's messages go to its
//! worker, the one of its processor. Processor and worker change together, just before the worker
//! that has the thread's last message answers it (or before the thread first runs). So the answer
//! always comes from the worker that the thread asked, and an answer for a thread that has ended is
//! never sent to a later thread of that number.

mod residence;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};

use l4::x2::control::{DEFAULT_PRIORITY, DEFAULT_TIMESLICE, TimeControl};
use l4::x2::{MessageTag, ThreadId, Time};
use macadamia_sync::{SpinGuard, SpinLock};
use mach::machine::{
    Attempt, Breakpoints, Event, ExecutionContext, NonblockingHandler, Resume, SystemCall, ThreadState, Times,
};
use mach::{KernError, KernResult};
use rt::executor::TaskAssignment;

use crate::event::{self, Origin, Preparation, Words};
use crate::machine::Shared;
use crate::placement::Assignment;
use crate::space::Space;
use crate::{kernel, registers};

/// Number of bytes of the smallest extended state: legacy area and header.
pub(crate) const EXTENDED_STATE_HEADER_END: usize = 576;
/// Number of bytes of the legacy area, which has the x87 and SSE registers.
pub(crate) const LEGACY: usize = 512;

/// A thread of a program. Clones stand for one thread. It ends with [`end`](Self::end), or when the
/// last clone is dropped.
///
/// One task serves a thread: it awaits [`run`](Self::run) repeatedly. All other functions may be
/// called by any task.
#[derive(Clone)]
pub struct UserThread(pub(crate) Arc<Record>);

/// Where a thread is at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The thread has never run.
    New,
    /// The thread runs its program.
    Program,
    /// The thread has sent a message of this kind, and waits for its answer.
    Server(Origin),
    /// The thread has ended.
    Ended,
}

/// A message of a thread whose earlier message is still being served: it is served afterwards.
struct Later {
    worker: usize,
    origin: Origin,
    event: Event,
}

struct State {
    place: Place,
    /// An event of the thread that its task has not taken yet.
    event: Option<Event>,
    /// The system call with which the thread was held.
    held: Option<SystemCall>,
    /// A message that came while an earlier one of this thread was being served. The thread does
    /// not wait for the answer to the earlier one any more.
    later: Option<Later>,
    /// The task that waits for the thread's event.
    waker: Option<Waker>,
    /// The answer that the thread is to get, and the worker that has its message and has to send
    /// the answer.
    answer: Option<Resume>,
    asked: usize,
    /// Whether the server has stopped the thread: it may be started, but does not execute.
    stopped: bool,
    /// Whether a recall was requested.
    recall: bool,
    /// Whether the thread's priority or time slice was set.
    scheduled: bool,
    /// The thread's processor, and the time that it has used; not used with one processor.
    assignment: Assignment,
    handler: Option<Arc<dyn NonblockingHandler>>,
    /// The task that serves the thread. It is moved to the thread's worker.
    task: Option<TaskAssignment>,
}

pub(crate) struct Record {
    pub(crate) id: ThreadId,
    /// The thread's place in the UTCB area of its space.
    place: u32,
    space: Space,
    shared: Arc<Shared>,
    /// The worker that receives the thread's messages. It is written under the lock.
    worker: AtomicUsize,
    /// The thread's priority in the kernel.
    priority: AtomicU8,
    state: SpinLock<State>,
}

/// How a thread's handler has served a message without waiting.
pub(crate) enum Served {
    /// The worker has to send this answer, of one word at most, immediately; the thread continues.
    Answer(MessageTag, u64),
    /// The thread waits for an answer that will be queued, or is queued already.
    Held,
}

/// The result of delivering a message to its thread.
pub(crate) enum Delivered {
    /// The worker has to send this answer immediately; the thread continues.
    Answer(MessageTag, Words),
    /// The thread waits for an answer that will be queued, or is queued already.
    Held,
    /// The message was an event, for which this task waits.
    Event(Option<Waker>),
    /// The message was out of date and is ignored.
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
            held: None,
            later: None,
            waker: None,
            answer: None,
            asked: worker,
            stopped: false,
            recall: false,
            scheduled: false,
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
            priority: AtomicU8::new(DEFAULT_PRIORITY),
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

    /// Makes `task` run on the worker that serves the thread, now and after each move.
    pub fn set_task(&self, task: TaskAssignment) {
        let mut state = self.0.state.lock();
        task.move_to(self.worker());
        state.task = Some(task);
    }
}

impl ExecutionContext for UserThread {
    /// Resumes the thread, and returns its next event. The answer is sent when the thread's worker
    /// next waits for messages.
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
            // An event that was answered has been taken before.
            state.event = None;
            state.held = None;
            let asked = state.asked;
            drop(state);
            record.shared.post(asked, record.clone());
        }
    }

    #[inline]
    fn next_event(&self) -> impl Future<Output = Event> + Send {
        NextEvent(&self.0)
    }

    #[inline(always)]
    fn hold(&self, call: &SystemCall) -> bool {
        let record = &self.0;
        let mut state = record.state.lock();
        match state.place {
            Place::Program => {
                record.set_place(&mut state, Place::Server(Origin::SystemCall));
                state.asked = record.shared.executor.platform().current();
            }
            Place::Server(Origin::SystemCall) => {}
            _ => return false,
        }
        state.held = Some(*call);
        true
    }

    fn surrender(&self) {
        let waker = {
            let mut state = self.0.state.lock();
            let Some(call) = state.held.take() else { return };
            state.event = Some(Event::SystemCall(call));
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
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

    /// Recalls the thread. An IPC that the thread has begun itself fails.
    fn recall(&self) -> KernResult {
        let record = &self.0;
        let place = {
            let mut state = record.state.lock();
            if state.event == Some(Event::Recalled) {
                // The task that takes the pending event learns of this recall, too.
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
                    // The thread's own IPC may wait for ever. If it is a message to the server that
                    // was not received yet, the thread will send it again.
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
        Ok(self.0.state_from(&kernel::read_registers(self.0.id)?))
    }

    fn set_state(&self, state: &ThreadState) -> KernResult {
        kernel::write_registers(self.0.id, &registers::to_kernel(state)).map(drop)
    }

    fn extended_state(&self) -> KernResult<Vec<u8>> {
        let mut image = self.0.extended_room()?;
        let size = kernel::read_extended_state(self.0.id, &mut image)?;
        image.truncate(size);
        Ok(image)
    }

    fn set_extended_state(&self, image: &[u8]) -> KernResult {
        kernel::write_extended_state(self.0.id, whole_image(image, &mut initial_extended_state())?)
    }

    fn set_breakpoints(&self, breakpoints: &Breakpoints) -> KernResult {
        kernel::write_breakpoints(self.0.id, breakpoints)
    }

    fn debug_status(&self) -> KernResult<u64> {
        kernel::debug_status(self.0.id)
    }

    fn begin_handler(&self) -> KernResult<(ThreadState, Vec<u8>)> {
        let mut image = self.0.extended_room()?;
        image[..EXTENDED_STATE_HEADER_END].copy_from_slice(&initial_extended_state());
        let (registers, size) = kernel::exchange_extended_state(self.0.id, &mut image)?;
        image.truncate(size);
        Ok((self.0.state_from(&registers), image))
    }

    fn end_handler(&self, state: &ThreadState, image: &[u8]) -> KernResult {
        let mut small = initial_extended_state();
        kernel::write_all(self.0.id, &registers::to_kernel(state), whole_image(image, &mut small)?)
    }

    /// The time that the thread has used, as its worker has measured it between messages. Threads
    /// that compute at the same time are charged equal shares.
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
        self.0.state.lock().scheduled = true;
        // Relaxed: only the accounting reads it, by which a new value is seen late at worst.
        self.0.priority.store(priority, Ordering::Relaxed);
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
    /// The registers that the kernel has told, in Mach's structure.
    fn state_from(&self, told: &l4::extension::Registers) -> ThreadState {
        let mut state = registers::from_kernel(told);
        if state.gs_base == self.own_gs_base() {
            state.gs_base = 0;
        }
        state
    }

    /// Room for an extended state.
    fn extended_room(&self) -> KernResult<Vec<u8>> {
        let mut image = Vec::new();
        image.try_reserve_exact(self.shared.extended_size).map_err(|_| KernError::ResourceShortage)?;
        image.resize(self.shared.extended_size, 0);
        Ok(image)
    }

    fn worker(&self) -> usize {
        // Relaxed: all other state of the worker is under locks.
        self.worker.load(Ordering::Relaxed)
    }

    /// Changes the place of the thread, and counts the threads that are with their programs.
    fn set_place(&self, state: &mut State, place: Place) {
        let running = &self.shared.running;
        // Relaxed: the count guards no other data.
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

    /// Starts a thread that is new. If `halted`, it executes nothing until it is resumed.
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

    /// The thread's priority in the kernel.
    pub(crate) fn priority(&self) -> u8 {
        self.priority.load(Ordering::Relaxed)
    }

    /// The initial GS base of a thread (docs/src/architecture.md, K5): the address of the word of
    /// its UTCB that holds the UTCB pointer.
    fn own_gs_base(&self) -> u64 {
        let block = self.shared.layout.utcb_area + u64::from(self.place) * l4::x2::utcb::SIZE;
        block + l4::x2::utcb::MR0_OFFSET - 63 * 8
    }

    /// Serves a message of this thread, which worker `worker` has received.
    #[inline]
    pub(crate) fn serve(
        &self,
        worker: usize,
        tag: MessageTag,
        words: &Words,
        word: impl Fn(usize) -> u64,
    ) -> Delivered {
        match self.try_serve(tag, words) {
            Some(Served::Answer(tag, word)) => Delivered::Answer(tag, event::first(word)),
            Some(Served::Held) => Delivered::Held,
            None => self.deliver(worker, tag, *words, word),
        }
    }

    /// Serves a message of this thread if its handler can do that without waiting. `None`: it
    /// cannot.
    #[inline(always)]
    pub(crate) fn try_serve(&self, tag: MessageTag, words: &Words) -> Option<Served> {
        if self.serve_fault(tag, words) {
            return Some(Served::Answer(MessageTag::EMPTY, 0));
        }
        match self.serve_call(tag, words) {
            Attempt::Event => None,
            Attempt::Return(value) => Some(Served::Answer(event::return_tag(), value)),
            Attempt::Held => Some(Served::Held),
        }
    }

    /// Serves a page fault if the thread's handler can do that without waiting. Returns false if it
    /// cannot, or if the message is not a page fault.
    #[inline(always)]
    fn serve_fault(&self, tag: MessageTag, words: &Words) -> bool {
        let Some((address, access)) = event::page_fault(tag, words) else { return false };
        // No lock is held during the call: the handler may end the thread.
        let served = self.handler().is_some_and(|handler| handler.fault(address, access));
        if served {
            self.try_settle();
        }
        served
    }

    /// Serves a system call if the thread's handler can do that without waiting, and if the message
    /// is a system call.
    #[inline(always)]
    fn serve_call(&self, tag: MessageTag, words: &Words) -> Attempt {
        let Some(call) = event::system_call(tag, words) else { return Attempt::Event };
        // No lock is held during the call.
        let Some(handler) = self.handler() else { return Attempt::Event };
        let attempt = handler.call(&call);
        if let Attempt::Return(_) = attempt {
            self.try_settle();
        }
        attempt
    }

    /// The handler of the thread if it is with its program; only then are its messages accepted.
    #[inline(always)]
    fn handler(&self) -> Option<Arc<dyn NonblockingHandler>> {
        let state = self.state.lock();
        if state.place == Place::Program { state.handler.clone() } else { None }
    }

    /// Delivers a message of this thread that its handler has not served to the thread's task. The
    /// words are passed by value, so that those of other messages stay in registers.
    #[inline(never)]
    pub(crate) fn deliver(
        &self,
        worker: usize,
        tag: MessageTag,
        words: Words,
        word: impl Fn(usize) -> u64,
    ) -> Delivered {
        let Some((origin, event)) = event::decode(tag, &words, word) else { return Delivered::Ignored };
        let mut state = self.state.lock();
        match event {
            _ if state.place != Place::Program => {}
            Event::Recalled if !core::mem::take(&mut state.recall) => {
                // The recall was not requested for the task: it is from before the thread was taken
                // into use, repeats another, or was made to move the thread.
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
                // The thread has sent a second message without waiting for the first answer. A
                // message of its own that reaches one worker after a report of the kernel has
                // reached another was sent before that report, and is ignored.
                if worker == state.asked || present == Origin::Message || origin != Origin::Message {
                    state.later = Some(Later { worker, origin, event });
                }
                Delivered::Ignored
            }
            Place::New | Place::Ended => Delivered::Ignored,
        }
    }

    /// Takes the answer that was queued for this thread: prepares the thread for it, and returns
    /// the message to send, if any. Message registers from MR8 on belong to the answer until it is
    /// sent.
    #[inline]
    pub(crate) fn take_answer(&self) -> Option<(MessageTag, Words)> {
        let mut state = self.state.lock();
        match self.result(&mut state) {
            Some(value) => Some((event::return_tag(), event::first(value))),
            None => self.take_other_answer(state),
        }
    }

    /// Takes the answer that was queued for this thread, if it is the result of a call: prepares
    /// the thread for it, and returns the result. `None`: nothing has changed.
    #[inline]
    pub(crate) fn take_result(&self) -> Option<u64> {
        self.result(&mut self.state.lock())
    }

    /// Does what [`take_result`](Self::take_result) does; `state` is the thread's.
    #[inline(always)]
    fn result(&self, state: &mut State) -> Option<u64> {
        let (Place::Server(Origin::SystemCall), Some(Resume::Return(value)), None) =
            (state.place, &state.answer, &state.later)
        else {
            return None;
        };
        let value = *value;
        state.answer = None;
        self.settle(state);
        self.set_place(state, Place::Program);
        Some(value)
    }

    /// Takes an answer that is not the result of a call, or that has more to it.
    #[inline(never)]
    fn take_other_answer(&self, mut state: SpinGuard<'_, State>) -> Option<(MessageTag, Words)> {
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
                    // If both messages went to one worker, the thread waits for the answer to the
                    // later one, and this answer is not sent. Otherwise it may wait for either.
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
        (state.event, state.held, state.later, state.answer) = (None, None, None, None);
        let waker = state.waker.take();
        let handlers = (state.handler.take(), state.task.take());
        let (worker, scheduled) = (self.worker(), state.scheduled);
        drop(state);
        if scheduled {
            // The thread may be cached, and its next user expects the values of a new one. This
            // fails only if the thread is gone.
            let slice = TimeControl::new(Some(DEFAULT_TIMESLICE), None).raw();
            let _ = kernel::schedule(self.id, DEFAULT_PRIORITY, slice);
        }
        self.shared.thread_ended(&self.space, self.place, self.id, worker);
        drop(handlers);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The image for the kernel of an extended state as [`ExecutionContext::set_extended_state`] has
/// it. `small` is the initial one, and room for what has no header. `InvalidArgument`.
fn whole_image<'a>(image: &'a [u8], small: &'a mut [u8; EXTENDED_STATE_HEADER_END]) -> KernResult<&'a [u8]> {
    match image.len() {
        0 => {}
        LEGACY => {
            small[..LEGACY].copy_from_slice(image);
            // XSTATE_BV: the image contains x87 and SSE state.
            small[LEGACY] = 3;
        }
        EXTENDED_STATE_HEADER_END.. => return Ok(image),
        _ => return Err(KernError::InvalidArgument),
    }
    Ok(small)
}

/// The smallest image of the initial extended state.
pub(crate) fn initial_extended_state() -> [u8; EXTENDED_STATE_HEADER_END] {
    let mut image = [0; EXTENDED_STATE_HEADER_END];
    // The initial control word of FNINIT, and the reset value of MXCSR.
    image[..2].copy_from_slice(&0x37fu16.to_le_bytes());
    image[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    image
}

/// Reads the first words of a message from the message registers if the message has more words than
/// fit into registers.
fn with_message_registers(tag: MessageTag, words: Words) -> Words {
    if tag.untyped() > words.len() { kernel::register_words() } else { words }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.end();
    }
}

/// A future of the next event of a thread. It may be dropped at any time.
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
