//! The x86-64 Linux system-call interface over the Unix library; neither leaks into the other.
//!
//! [`Linux::serve_call`] is one system call of one thread, from its number and arguments to how its
//! program goes on: the call itself ([`Linux::perform`]), then whatever signals have to be
//! delivered ([`Linux::leave`]). The thread's other registers are fetched only where they matter.
//! How the call came (as an exception message, or from the emulation library) is the server's
//! matter.
//!
//! | module | what it holds |
//! |---|---|
//! | [`errno`], [`layout`] | numbers of errors, structures |
//! | `names` | numbers and names of calls |
//! | `call` | arguments, results, access to the program's memory |
//! | `calls` | the calls, by subject, and the table that finds them |
//! | `leave` | signals: frames, restarts, rt_sigreturn |
//! | `auxiliary` | what a program is told at its start |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod auxiliary;
mod call;
mod calls;
pub mod errno;
pub mod layout;
mod leave;
mod names;

pub use auxiliary::Processor;
pub use call::Outcome;
pub use calls::{Transfer, is_served};
pub use leave::{Next, Registers};
pub use names::name;

use alloc::boxed::Box;
use alloc::sync::Arc;
use call::{Call, Stop};
use calls::Tried;
use mach::Machine;
use mach::machine::SystemCall;
use unix::sync::SpinLock;
use unix::thread::{ExecRequest, Executed, Thread};

/// What became of a call that was tried without waiting.
pub enum Attempt<M: Machine> {
    /// It is done, with this result.
    Done(u64),
    /// Nothing was done: [`Linux::serve_call`] does it, for which this is.
    No(Option<Box<Transfer<M>>>),
}

/// The Linux personality of a system.
pub struct Linux<M: Machine> {
    processor: Processor,
    /// Numbers of unknown calls that were logged, a bit each; the last bit stands for all beyond.
    logged: SpinLock<[u64; 8]>,
    machine: core::marker::PhantomData<fn(M)>,
}

impl<M: Machine> Linux<M> {
    /// The personality, on a processor of this kind.
    pub fn new(processor: Processor) -> Linux<M> {
        Linux { processor, logged: SpinLock::new([0; 8]), machine: core::marker::PhantomData }
    }

    /// Serves a system call of `thread`: what the server has to do next. `decoded` is what
    /// [`Linux::call_at_once`] has found out about this very call.
    pub async fn serve_call(
        &self,
        thread: &Arc<Thread<M>>,
        request: SystemCall,
        decoded: Option<Box<Transfer<M>>>,
    ) -> Next<M> {
        let tid = thread.tid();
        thread.system().processes.with(|table| table.enter(tid));
        let outcome = self.perform(thread, request, decoded).await;
        self.finish(thread, request.number, outcome).await
    }

    /// Replaces the program of `thread`, as execve does: the way the first process gets its
    /// program. Errors as those of [`unix::thread::Resources::exec`].
    pub async fn execute(&self, thread: &Arc<Thread<M>>, request: ExecRequest) -> unix::Result<Executed<M>> {
        thread.exec(request, auxiliary::PLATFORM, |program| auxiliary::vector(&self.processor, program)).await
    }

    /// Performs a call. Only the end of the thread cuts short what is not meant to be interrupted.
    pub async fn perform(
        &self,
        thread: &Arc<Thread<M>>,
        request: SystemCall,
        decoded: Option<Box<Transfer<M>>>,
    ) -> Outcome {
        let decoded = SpinLock::new(decoded);
        let call = Call { linux: self, thread, arguments: request.arguments, decoded };
        if call.is_refused(request.number) {
            return Outcome::Return(errno::result(Err(unix::Error::ENOMEM)));
        }
        let tid = thread.tid();
        // Pinned here, so that what waits for it holds a pointer and not the future once more.
        let performing = core::pin::pin!(calls::dispatch(&call, request.number));
        match thread.system().processes.killable(tid, performing).await {
            Some(Ok(value)) => Outcome::Return(value),
            Some(Err(Stop::Error(error))) => Outcome::Return(errno::result(Err(error))),
            Some(Err(Stop::Outcome(outcome))) => outcome,
            // The thread has to end. [`Linux::leave`] sees that before the program goes on, so this
            // result is not used.
            None => Outcome::Return(errno::result(Err(unix::Error::EINTR))),
        }
    }

    /// The result of a call that only asks for something, or moves a few bytes to or from a device
    /// that never waits, if the result is known without waiting. The call sends no signals. For
    /// other threads this thread stays in its program all the time: neither [`Linux::serve_call`]
    /// nor [`Linux::leave`] is part of this.
    pub fn call_at_once(&self, thread: &Arc<Thread<M>>, request: &SystemCall) -> Attempt<M> {
        let call = Call { linux: self, thread, arguments: request.arguments, decoded: SpinLock::new(None) };
        match calls::at_once(&call, request.number) {
            Tried::Done(Ok(value)) => Attempt::Done(value),
            Tried::Done(Err(Stop::Error(error))) => Attempt::Done(errno::result(Err(error))),
            Tried::Done(Err(Stop::Outcome(_))) | Tried::No => Attempt::No(None),
            Tried::Decoded(transfer) => Attempt::No(Some(transfer)),
        }
    }

    /// Logs an unknown call, once for each number.
    fn log_unknown(&self, thread: &Thread<M>, number: u64) {
        let bit = number.min(511);
        let first = {
            let mut logged = self.logged.lock();
            let word = &mut logged[(bit / 64) as usize];
            let first = *word & (1 << (bit % 64)) == 0;
            *word |= 1 << (bit % 64);
            first
        };
        if first {
            let name = name(number).unwrap_or("unknown");
            let pid = thread.pid();
            let host = &thread.system().host;
            host.log(format_args!("process {pid}: system call {number} ({name}) is not available"));
        }
    }
}
