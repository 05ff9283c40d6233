//! Execution contexts: threads as the machine has them, the events by which they come to their
//! server, and the ways in which they are resumed.
//!
//! A context is new, or with its program (it runs, or will when it is scheduled), or with its
//! server (it has sent an [`Event`] and waits for a [`Resume`]). Each event is answered once, and
//! each answer belongs to an event. Mach's threads, the personalities and their servers' loops all
//! use these types.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;

use super::{Breakpoints, ProcessorException, Protection, ThreadState};
use crate::KernResult;

/// The reason why a context has come to its server. The context waits at the boundary of user level
/// until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The thread has made a system call of another system.
    SystemCall(SystemCall),
    /// The thread has accessed memory that is not mapped, or in a way that the mapping does not
    /// allow.
    PageFault(PageFault),
    /// The thread has caused a processor exception.
    Exception(ProcessorException),
    /// The thread was recalled ([`ExecutionContext::recall`]).
    Recalled,
    /// The thread has sent a message itself (by an emulation library).
    Message(UserMessage),
    /// The thread has ended: there will be no other event.
    Ended,
}

/// A system call: the registers that it uses. All others can be read by
/// [`ExecutionContext::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    /// The number of the call (RAX).
    pub number: u64,
    /// The arguments of the call: RDI, RSI, RDX, R10, R8, R9.
    pub arguments: [u64; 6],
}

/// A page fault of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// The address that the program accessed.
    pub address: u64,
    /// The right that the access needs.
    pub access: Protection,
    /// The address of the instruction that faulted.
    pub ip: u64,
}

/// A message of up to seven words from or to a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// The label of the message, in 48 bits.
    pub label: u64,
    /// How many words the message has, at most 7.
    pub count: usize,
    /// The words; those beyond the count are 0.
    pub words: [u64; 7],
}

/// How a context is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Returns from the system call with this result; no other register changes but RCX and R11.
    /// After any other event it is [`Continue`](Self::Continue).
    Return(u64),
    /// Continues with all these registers. Starts a context that has never run.
    ///
    /// If a program cannot have such registers (addresses outside the user area), the context ends.
    Registers(Box<ThreadState>),
    /// Continues with the registers that the context has: repeats the access that faulted, or
    /// continues after the system call (with what [`set_state`](ExecutionContext::set_state) has
    /// left, else RAX is the call's number), or at the instruction that raised the exception.
    /// Starts a context that has never run.
    Continue,
    /// Answers the thread's message. After any other event it is [`Continue`](Self::Continue).
    Reply(Box<UserMessage>),
}

/// The processor time of a context, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time that the thread's program used.
    pub program: u64,
    /// Time that the server used on the thread's behalf.
    pub server: u64,
}

/// What a [`NonblockingHandler`] has done with a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Nothing has been done: the call becomes an event.
    Event,
    /// The call has this result.
    Return(u64),
    /// The handler has [held](ExecutionContext::hold) the context, which gets its answer later.
    Held,
}

/// Serves those events of a context that need no wait. The machine calls it outside of any task, so
/// it must not block.
pub trait NonblockingHandler: Send + Sync {
    /// Serves a page fault, if that needs no wait. Returns true if it was served: the access is
    /// repeated. False: the fault becomes an event.
    fn fault(&self, address: u64, access: Protection) -> bool;

    /// Serves a system call, if that needs no wait. It must not end the context. If it recalls the
    /// context, that comes to its server after the call's answer.
    fn call(&self, call: &SystemCall) -> Attempt {
        let _ = call;
        Attempt::Event
    }
}

/// An execution context of the machine. Clones stand for one context. It ends with
/// [`end`](Self::end), or when the last clone is dropped.
///
/// One task serves a context: it awaits [`run`](Self::run) repeatedly. Any task may call the other
/// methods; those that do not return a future do not block.
pub trait ExecutionContext: Clone + Send + Sync + 'static {
    /// Answers the context's event, or starts the context, and awaits its next event. The answer is
    /// given by the call itself, before the future is polled. If the future is dropped,
    /// [`next_event`](Self::next_event) returns the event.
    fn run(&self, resume: Resume) -> impl Future<Output = Event> + Send {
        self.answer(resume);
        self.next_event()
    }

    /// Answers the context's event, or starts the context. It has no effect on a context that is
    /// with its program or has ended.
    fn answer(&self, resume: Resume);

    /// Awaits the context's next event, which is [`Event::Ended`] after its end. At most one such
    /// future exists at a time.
    fn next_event(&self) -> impl Future<Output = Event> + Send;

    /// Makes a context wait in the system call that its handler or its task is serving: it is with
    /// its server, without an event, until it is answered or [surrendered](Self::surrender).
    /// Returns false, and does nothing, if the context is in no system call.
    fn hold(&self, call: &SystemCall) -> bool;

    /// Turns the wait of a context that was held into an event: the system call that it was held
    /// with. It has no effect on any other context.
    fn surrender(&self);

    /// Makes `handler` serve the events that need no wait.
    fn set_handler(&self, handler: Arc<dyn NonblockingHandler>);

    /// Tells the machine that the task which has awaited the events of `other` will await those of
    /// this context: the two contexts are served on one worker.
    fn succeed(&self, other: &Self) {
        let _ = other;
    }

    /// Makes the context come to the server with [`Event::Recalled`] before its next instruction at
    /// user level, even if it is about to be resumed or started. A recall that repeats a pending
    /// one has no effect.
    ///
    /// # Errors
    /// `Terminated`: the context has ended.
    fn recall(&self) -> KernResult;

    /// Stops the context: after this it executes no instruction until [`unstop`](Self::unstop). Its
    /// events and their answers go on.
    ///
    /// # Errors
    /// `Terminated`.
    fn stop(&self) -> KernResult;

    /// Lets a stopped context execute again. A new context is started with the registers that it
    /// has.
    ///
    /// # Errors
    /// `Terminated`: the context has ended.
    fn unstop(&self) -> KernResult;

    /// Ends the context wherever it is: it executes no further instruction, and what awaits its
    /// events gets [`Event::Ended`].
    fn end(&self);

    /// The registers of a context that is new, with the server, or stopped. The GS base is 0 unless
    /// the program has changed it.
    ///
    /// # Errors
    /// `Terminated`: the context has ended. `InvalidArgument`: it runs, or has not come to rest
    /// yet.
    fn state(&self) -> KernResult<ThreadState>;

    /// Replaces the registers of a context that is new, with the server, or stopped; a GS base of 0
    /// means the initial one. Flags that programs may not change keep their values.
    ///
    /// # Errors
    /// `Terminated`: the context has ended. `InvalidArgument`: it runs, or an address lies outside
    /// the user area.
    fn set_state(&self, state: &ThreadState) -> KernResult;

    /// The extended state (x87, SSE, AVX), in XSAVE's standard format, of a context that is new,
    /// with the server, or stopped.
    ///
    /// # Errors
    /// `Terminated`: the context has ended. `InvalidArgument`: it runs. `ResourceShortage`: memory
    /// is short.
    fn extended_state(&self) -> KernResult<Vec<u8>>;

    /// Replaces the extended state by an image in XSAVE's standard format; by the 512 bytes of x87
    /// and SSE, with the initial state for the rest; or, if `image` is empty, by the initial state.
    ///
    /// # Errors
    /// `Terminated`: the context has ended. `InvalidArgument`: it runs, or the processor would
    /// refuse the image. `ResourceShortage`: the machine's memory is short.
    fn set_extended_state(&self, image: &[u8]) -> KernResult;

    /// Replaces the breakpoints of a context that is new, with the server, or stopped. A context
    /// has none at first.
    ///
    /// # Errors
    /// `Terminated`: the context has ended. `InvalidArgument`: it runs, or a program cannot have
    /// such breakpoints. `ResourceShortage`: the machine's memory is short.
    fn set_breakpoints(&self, breakpoints: &Breakpoints) -> KernResult;

    /// Why the last debug exception of a context with breakpoints came, as in DR6: bits 0 to 3 for
    /// the breakpoints, bit 14 for a single step.
    ///
    /// # Errors
    /// `Terminated`: the context has ended. `InvalidArgument`: it runs.
    fn debug_status(&self) -> KernResult<u64>;

    /// What a signal handler begins with: [`state`](Self::state) and
    /// [`extended_state`](Self::extended_state), after which the extended state is the initial one.
    ///
    /// # Errors
    /// As theirs; then nothing has changed.
    fn begin_handler(&self) -> KernResult<(ThreadState, Vec<u8>)>;

    /// What a signal handler ends with: [`set_state`](Self::set_state) and
    /// [`set_extended_state`](Self::set_extended_state).
    ///
    /// # Errors
    /// As theirs; then nothing has changed.
    fn end_handler(&self, state: &ThreadState, image: &[u8]) -> KernResult;

    /// The processor time that the thread has used.
    fn times(&self) -> Times;

    /// Sets the context's priority in the machine, 0 (least) to 255, and its time slice in
    /// microseconds (0: it runs until it blocks).
    ///
    /// # Errors
    /// `Terminated`: the context has ended.
    fn set_priority(&self, priority: u8, slice: u32) -> KernResult;

    /// The processor to which the thread is assigned.
    fn processor(&self) -> usize;

    /// The processors that the thread may run on, a bit for each.
    fn affinity(&self) -> u64;

    /// Sets the processors that the thread may run on; bits of processors that do not exist are
    /// ignored. A thread on another processor is moved, even if it gets no time there.
    ///
    /// # Errors
    /// `InvalidArgument`: none of the processors exists.
    fn set_affinity(&self, mask: u64) -> KernResult;
}
