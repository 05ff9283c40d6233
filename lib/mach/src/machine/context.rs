//! Execution contexts: threads as the machine has them, why they come to their server, and how they
//! go on.
//!
//! A context is with its program (it runs, or will), or with its server (it has come with an
//! [`Event`] and waits for a [`Resume`]), or it is new. Each event is answered once, and each
//! answer has its event. Everything above the machine uses these types as they are: Mach's threads,
//! the personalities, and their servers' loops.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;

use super::{ProcessorException, Protection, ThreadState};
use crate::KernResult;

/// Why a context has come to its server. It waits there, at the boundary of user level, until it is
/// answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The thread has made a system call of another system.
    SystemCall(SystemCall),
    /// It has accessed memory that is not mapped, or not for this kind of access.
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
    /// RAX.
    pub number: u64,
    /// The arguments of the call: RDI, RSI, RDX, R10, R8, R9.
    pub arguments: [u64; 6],
}

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// The address accessed.
    pub address: u64,
    /// The right that the access needs.
    pub access: Protection,
    /// The instruction pointer.
    pub ip: u64,
}

/// A message of up to seven words from or to a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// 48 bits.
    pub label: u64,
    /// How many words the exception has, at most 7.
    pub count: usize,
    /// The words; those beyond the count are 0.
    pub words: [u64; 7],
}

/// How a context goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Returns from its system call with this result; no other register changes but RCX and R11.
    /// After any other event the same as `Continue`.
    Return(u64),
    /// Goes on with all these registers. Starts a context that has never run.
    ///
    /// A state that no program may have (addresses outside the user area) is not taken; the context
    /// ends.
    Registers(Box<ThreadState>),
    /// Goes on with the registers that it has: repeats the access that faulted, or continues after
    /// the system call (with what [`set_state`](ExecutionContext::set_state) has left, else RAX is
    /// the call's number), or at the instruction that raised the exception. Starts a context that
    /// has never run.
    Continue,
    /// The thread's message is answered. After any other event the same as `Continue`.
    Reply(Box<UserMessage>),
}

/// Processor time of a context, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time that the thread's program used.
    pub program: u64,
    /// Time that the server used on the thread's behalf.
    pub server: u64,
}

/// Serves those events of a context that need not wait. Called by the machine outside of any task:
/// nothing here may block.
pub trait NonblockingHandler: Send + Sync {
    /// Serves a page fault, if that needs no wait: then true, and the access is repeated. False: it
    /// becomes an event.
    fn fault(&self, address: u64, access: Protection) -> bool;

    /// The result of a system call, if there is one without waiting; `None`, with nothing done: it
    /// becomes an event. Must not recall or end the context.
    fn call(&self, call: &SystemCall) -> Option<u64> {
        let _ = call;
        None
    }
}

/// An execution context of the machine. Clones are the same context; it ends with
/// [`end`](Self::end), or when the last clone is dropped.
///
/// One task serves a context: it awaits [`run`](Self::run) again and again. Everything else may be
/// called by any other, and no method without a future blocks.
pub trait ExecutionContext: Clone + Send + Sync + 'static {
    /// Answers the context's event, or starts it, and awaits its next event. The answer is given
    /// when this is called, the future is for the event; dropped, the event is there for the next
    /// [`next_event`](Self::next_event).
    fn run(&self, resume: Resume) -> impl Future<Output = Event> + Send {
        self.answer(resume);
        self.next_event()
    }

    /// Answers the context's event, or starts it. No effect while it is with its program, or ended.
    fn answer(&self, resume: Resume);

    /// Awaits the context's next event. Ready with [`Event::Ended`] from its end on. At most one
    /// such future exists at a time.
    fn next_event(&self) -> impl Future<Output = Event> + Send;

    /// Lets `handler` serve what needs no wait, from now on.
    fn set_handler(&self, handler: Arc<dyn NonblockingHandler>);

    /// Says that the task which awaits the events of `other` awaits this context's events from now
    /// on: the two are served on the same worker.
    fn succeed(&self, other: &Self) {
        let _ = other;
    }

    /// Makes the context come to the server with [`Event::Recalled`] before its next instruction at
    /// user level, also if it is only about to go on or to start. Recalls do not add up.
    ///
    /// # Errors
    /// `Terminated`.
    fn recall(&self) -> KernResult;

    /// Stops the context: after this it executes no instruction until [`unstop`](Self::unstop). Its
    /// events and their answers go on.
    ///
    /// # Errors
    /// `Terminated`.
    fn stop(&self) -> KernResult;

    /// Lets a stopped context go on. One that is new is started with the registers that it has.
    ///
    /// # Errors
    /// `Terminated`.
    fn unstop(&self) -> KernResult;

    /// Ends the context wherever it is: it executes no further instruction, and what awaits its
    /// events gets [`Event::Ended`].
    fn end(&self);

    /// The registers of a context that is new, with the server, or stopped. GS base is 0 unless the
    /// program has set another than its own.
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs, or is not at rest yet.
    fn state(&self) -> KernResult<ThreadState>;

    /// Replaces the registers of a context as in [`state`](Self::state); a GS base of 0 is its own.
    /// Flags that programs may not change keep their values.
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs, or an address lies outside the user area.
    fn set_state(&self, state: &ThreadState) -> KernResult;

    /// The extended state (x87, SSE, AVX) in XSAVE's standard format, of a context as in
    /// [`state`](Self::state).
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs. `ResourceShortage`.
    fn extended_state(&self) -> KernResult<Vec<u8>>;

    /// Replaces the extended state: by an image in that format, by the 512 bytes of x87 and SSE
    /// alone (the rest becomes initial), or, with no bytes, by the initial state.
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs, or the processor would refuse the image.
    /// `ResourceShortage`: of the machine.
    fn set_extended_state(&self, image: &[u8]) -> KernResult;

    /// The processor time that the thread has used.
    fn times(&self) -> Times;

    /// Sets its priority in the machine, 0 (least) to 255, and its time slice in microseconds (0:
    /// none, it runs until it blocks).
    ///
    /// # Errors
    /// `Terminated`.
    fn set_priority(&self, priority: u8, slice: u32) -> KernResult;

    /// The processor to which the thread is assigned.
    fn processor(&self) -> usize;

    /// The processors that the thread may run on, a bit for each.
    fn affinity(&self) -> u64;

    /// Sets the processors that it may live on; bits of others mean nothing. If it is on another
    /// one it is moved, also if it does not get to run there.
    ///
    /// # Errors
    /// `InvalidArgument`: none of them exists.
    fn set_affinity(&self, mask: u64) -> KernResult;
}
