//! The x86-64 Linux system-call interface over the Unix library, which does not know about Linux.
//!
//! [`serve_call`](unix::front_end::FrontEnd::serve_call) serves one system call of one thread, from
//! its number and arguments to the return to its program: first the call itself
//! ([`Linux::perform`]), then the delivery of signals ([`Linux::return_to_user`]). The thread's
//! other registers are fetched only if they are needed. Only the server knows whether the call came
//! as an exception message or from the emulation library.
//!
//! | module | what it holds |
//! |---|---|
//! | [`errno`], [`layout`] | numbers of errors, structures |
//! | `names` | numbers and names of calls |
//! | `call` | arguments, results, access to the program's memory |
//! | `decoded` | decoded arguments that an attempt without blocking leaves for the same call |
//! | `describe` | descriptions of calls, for the trace |
//! | `kept` | the state that is kept for each thread |
//! | `futex` | futexes |
//! | `core_file` | images of processes that signals end |
//! | `calls` | the calls, by subject, and the table that finds them |
//! | `filter` | filters of system calls |
//! | `traced` | threads whose calls a tracer sees |
//! | `return_to_user` | signals: frames, restarts, rt_sigreturn |
//! | `linux` | the state that all threads of Linux programs share |
//! | `auxiliary` | the auxiliary vector |
//! | `version` | the version of Linux that programs see |
//! | `socket` | sockets of all families |
//! | `epoll`, `eventfd`, `inotify`, `pidfd`, `signalfd`, `timerfd` | files that only Linux has |
//! | `procfs`, `sysfs`, `kmsg` | file systems and a device that only Linux has |
//! | `system` | registers them in a system |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod aio;
mod auxiliary;
mod call;
mod calls;
mod core_file;
mod decoded;
mod describe;
mod directory_signals;
mod epoll;
pub mod errno;
mod eventfd;
mod file_capabilities;
mod filter;
mod futex;
mod inotify;
mod kept;
mod kmsg;
pub mod layout;
mod linux;
mod names;
mod nsfs;
mod pidfd;
mod procfs;
mod return_to_user;
mod signalfd;
mod signals_of_files;
mod socket;
mod sysfs;
mod system;
mod timerfd;
mod traced;
mod version;

pub use call::Outcome;
pub use kept::Kept;
pub use linux::{Linux, Processor};
pub use names::name;
pub use system::{DEVICES, register};

use alloc::boxed::Box;
use alloc::sync::Arc;
use call::{Call, Stop};
use mach::Machine;
use mach::machine::{Resume, SystemCall};
use unix::front_end::{CallDescription, FrontEnd, Next};
use unix::thread::Thread;

impl<M: Machine> FrontEnd<M> for Linux<M> {
    type Kept = Kept<M>;

    fn begin(&self, _: &Arc<Thread<M>>) -> Kept<M> {
        Kept::default()
    }

    /// Every call is tried here unless its row in the table of calls says why not.
    #[inline]
    fn try_call(&self, thread: &Arc<Thread<M>>, kept: &Kept<M>, request: &SystemCall) -> Option<u64> {
        let call = Call { linux: self, thread, arguments: request.arguments, kept };
        match calls::try_call(&call, request.number)? {
            Ok(value) => Some(value),
            Err(Stop::Error(error)) => Some(errno::result(Err(error))),
            Err(Stop::Outcome(_)) => None,
        }
    }

    async fn serve_call(&self, thread: &Arc<Thread<M>>, kept: &Kept<M>, request: SystemCall) -> Next<M> {
        let tid = thread.tid();
        if thread.system().processes().with(|table| table.enter(tid)) {
            return Box::pin(self.serve_observed(thread, kept, request)).await;
        }
        let outcome = self.perform(thread, kept, request).await;
        self.finish(thread, request.number, outcome).await
    }

    fn no_call(&self, kept: &Kept<M>) {
        kept.decoded.clear();
    }

    async fn return_to_user(&self, thread: &Arc<Thread<M>>, _: &Kept<M>, resume: Resume) -> Next<M> {
        self.return_from_call(thread, resume, None).await
    }

    fn describe(&self, _: &Kept<M>, call: &SystemCall) -> CallDescription {
        describe::describe(call.number)
    }
}

impl<M: Machine> Linux<M> {
    /// Performs a call. A call that signals do not interrupt is still cut short when the thread has
    /// to end.
    pub async fn perform(&self, thread: &Arc<Thread<M>>, kept: &Kept<M>, request: SystemCall) -> Outcome {
        let call = Call { linux: self, thread, arguments: request.arguments, kept };
        if !calls::needs_little(request.number) && call.is_short_of_memory() {
            kept.decoded.clear();
            return Outcome::Return(errno::result(Err(unix::Error::ENOMEM)));
        }
        let tid = thread.tid();
        // The future is pinned here, so that futures that wait for it contain a pointer and no
        // second copy.
        let performing = async {
            match call.kept.decoded.take_answer() {
                Some(answer) => call.finish(answer).await,
                None => calls::dispatch(&call, request.number).await,
            }
        };
        let performing = core::pin::pin!(performing);
        match thread.system().processes().killable(tid, performing).await {
            Some(Ok(value)) => Outcome::Return(value),
            Some(Err(Stop::Error(error))) => Outcome::Return(errno::result(Err(error))),
            Some(Err(Stop::Outcome(outcome))) => outcome,
            // The thread has to end. [`Linux::return_to_user`] finds that before the program goes
            // on, so this result is not used.
            None => Outcome::Return(errno::result(Err(unix::Error::EINTR))),
        }
    }
}
