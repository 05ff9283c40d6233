//! Front ends: each is the interface of one operating system to its programs.
//!
//! A front end serves the calls of its programs, with their numbers, structures and ways to be
//! interrupted, and delivers signals to them. The task of a process records which front end serves
//! it: exec finds that from the program file ([`Host::programs`](crate::thread::Host::programs)),
//! and fork copies it. A server has one value that is all its front ends together. That value keeps
//! state for each thread ([`FrontEnd::Kept`]), so that a call needs no look-up.

use crate::exec::ImageFormat;
use crate::thread::{ProgramInformation, Thread};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::AtomicU64;
use mach::Machine;
use mach::machine::{Resume, SystemCall, ThreadState};

/// The number of the front end that serves a program. The server assigns the numbers; processes
/// that have no program yet have number 0, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontEndNumber(pub u8);

/// Words that a front end keeps in each thread's own record, where other threads find them. Only
/// the front end knows their meaning. They are 0 in a new thread, and in a thread that begins a
/// program by exec.
pub type FrontEndWords = [AtomicU64; 2];

/// How the programs of a front end are loaded by exec.
pub trait Programs: Send + Sync {
    /// The format of the program files.
    fn format(&self) -> &dyn ImageFormat;

    /// The name of the processor family, which programs find on their stack (AT_PLATFORM).
    fn platform(&self) -> &[u8];

    /// The auxiliary vector for a program, without its terminating pair.
    fn auxiliary(&self, program: &ProgramInformation<'_>) -> Vec<(u64, u64)>;
}

/// What a server has to do next with a thread.
pub enum Next<M: Machine> {
    /// The program goes on as this says. From now on the thread can be reached only by
    /// [`Control::recall`](crate::process::Control::recall).
    Resume(Resume),
    /// The thread has ended, and its process has executed a new program, which this thread is to
    /// begin with these registers. [`FrontEnd::return_to_user`] of the new program's front end has
    /// to be called first.
    Executed(Arc<Thread<M>>, Box<ThreadState>),
    /// The thread has ended: there is nothing to do.
    Ended,
}

/// The description of a system call, for tools that show what a program does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallDescription {
    /// The name of the call; `None` if there is no such call.
    pub name: Option<&'static str>,
    /// The index of the argument that is the address of a path.
    pub path: Option<usize>,
    /// The indexes of the arguments that are the address and the number of bytes that the call
    /// writes.
    pub data: Option<(usize, usize)>,
    /// Whether the call may not return, or return only after a long time.
    pub is_long: bool,
}

/// A front end, or all front ends of a server as one. All methods for a thread except
/// [`try_call`](Self::try_call) are called by the thread's own async task.
pub trait FrontEnd<M: Machine>: Send + Sync + 'static {
    /// The state that the front end keeps for a thread between two events.
    type Kept: Send + Sync + 'static;

    /// The state that the front end keeps for a thread that is about to begin its program.
    fn begin(&self, thread: &Arc<Thread<M>>) -> Self::Kept;

    /// The result of a call, if that is known without blocking and the call sends no signals. Other
    /// threads see this thread in its program all the time. Never blocks; called outside of the
    /// thread's async task.
    ///
    /// `None` means that nothing was done: [`serve_call`](Self::serve_call) has to do it.
    fn try_call(&self, thread: &Arc<Thread<M>>, kept: &Self::Kept, call: &SystemCall) -> Option<u64>;

    /// Serves a call, which may have been tried before; returns how the thread goes on.
    fn serve_call(
        &self,
        thread: &Arc<Thread<M>>,
        kept: &Self::Kept,
        call: SystemCall,
    ) -> impl Future<Output = Next<M>> + Send;

    /// Called when the thread comes to the server for another reason than a call: forgets what a
    /// call that was tried before has left.
    fn no_call(&self, kept: &Self::Kept);

    /// Lets a thread return to its program after an event that is no call (its start, a fault, a
    /// recall): delivers signals, waits while the thread is stopped, ends it. Otherwise the program
    /// goes on as `resume` says.
    fn return_to_user(
        &self,
        thread: &Arc<Thread<M>>,
        kept: &Self::Kept,
        resume: Resume,
    ) -> impl Future<Output = Next<M>> + Send;

    /// The description of a system call.
    fn describe(&self, kept: &Self::Kept, call: &SystemCall) -> CallDescription;
}

/// All front ends of a server together.
pub trait FrontEnds<M: Machine>: FrontEnd<M> {
    /// The front end of the program file that begins with `start` (the first
    /// [`START_SIZE`](crate::exec::image::START_SIZE) bytes, or all), and how its programs are
    /// loaded. `None` if no front end recognises it.
    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)>;
}
