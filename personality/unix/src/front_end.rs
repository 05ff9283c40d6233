//! Front ends: what programs of one system see of this one.
//!
//! A front end serves the calls of its programs, with their numbers, structures and ways to be
//! interrupted, and lets signals reach them. Which one serves a process is a value of its task:
//! exec finds it from the file ([`Host::programs`](crate::thread::Host::programs)), and fork copies
//! it. A server has one value that stands for all its front ends; it serves a thread by what it has
//! made for the thread when that began ([`FrontEnd::Kept`]), so that nothing is looked up for a
//! call.

use crate::exec::ImageFormat;
use crate::thread::{ProgramInformation, Thread};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::AtomicU64;
use mach::Machine;
use mach::machine::{Resume, SystemCall, ThreadState};

/// Which of its server's front ends serves a program. The server gives the numbers; 0 is that of
/// processes that have no program yet, in addition to what else it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontEndNumber(pub u8);

/// Words that a front end keeps in each thread's own record, where other threads find them. Only the
/// front end knows what they mean; they are 0 in a new thread, and in one that begins a program by
/// exec.
pub type FrontEndWords = [AtomicU64; 2];

/// The programs of a front end, as exec loads them.
pub trait Programs: Send + Sync {
    /// The format of their files.
    fn format(&self) -> &dyn ImageFormat;

    /// The name of the processor family, which they find on their stack.
    fn platform(&self) -> &[u8];

    /// The auxiliary vector for a program, without its end.
    fn auxiliary(&self, program: &ProgramInformation<'_>) -> Vec<(u64, u64)>;
}

/// What a server has to do with a thread now.
pub enum Next<M: Machine> {
    /// Let its program go on so. From now on the thread can be reached only by
    /// [`Control::recall`](crate::process::Control::recall).
    Resume(Resume),
    /// The thread has ended, and its process has a new program, which this thread is to begin with
    /// these registers: [`FrontEnd::return_to_user`] of the new program's front end comes first.
    Executed(Arc<Thread<M>>, Box<ThreadState>),
    /// The thread has ended: nothing is to be done.
    Ended,
}

/// A call in words, for those that read what a program does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallDescription {
    /// Its name, if there is such a call.
    pub name: Option<&'static str>,
    /// Which of the arguments is the address of a path.
    pub path: Option<usize>,
    /// Which arguments are address and number of bytes that it writes.
    pub data: Option<(usize, usize)>,
    /// Whether it may not return, or only after a long time.
    pub is_long: bool,
}

/// A front end, or all those of a server as one. Everything of a thread is done by the thread's own
/// task, but [`try_call`](Self::try_call).
pub trait FrontEnd<M: Machine>: Send + Sync + 'static {
    /// What it keeps for a thread between two events.
    type Kept: Send + Sync + 'static;

    /// What it keeps for a thread that is about to begin its program.
    fn begin(&self, thread: &Arc<Thread<M>>) -> Self::Kept;

    /// The result of a call, if it is known without waiting. The call sends no signals. For other
    /// threads this thread stays in its program all the time. Never blocks; called outside of the
    /// thread's task.
    ///
    /// `None` means that nothing was done: [`serve_call`](Self::serve_call) does it.
    fn try_call(&self, thread: &Arc<Thread<M>>, kept: &Self::Kept, call: &SystemCall) -> Option<u64>;

    /// Serves a call, which may have been tried before: how the thread goes on.
    fn serve_call(
        &self,
        thread: &Arc<Thread<M>>,
        kept: &Self::Kept,
        call: SystemCall,
    ) -> impl Future<Output = Next<M>> + Send;

    /// The thread comes with something else than a call: what a call that was tried has left means
    /// nothing any more.
    fn no_call(&self, kept: &Self::Kept);

    /// Lets a thread return to its program after anything else than a call (its start, a fault, a
    /// recall): delivers signals, waits while it is stopped, ends it. If nothing of that changes how
    /// it goes on, it does so by `resume`.
    fn return_to_user(
        &self,
        thread: &Arc<Thread<M>>,
        kept: &Self::Kept,
        resume: Resume,
    ) -> impl Future<Output = Next<M>> + Send;

    /// A call in words.
    fn describe(&self, kept: &Self::Kept, call: &SystemCall) -> CallDescription;
}

/// All front ends of a server.
pub trait FrontEnds<M: Machine>: FrontEnd<M> {
    /// Whose program a file is that starts with these bytes (the first
    /// [`START_SIZE`](crate::exec::image::START_SIZE), or all), and how it is loaded.
    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)>;
}
