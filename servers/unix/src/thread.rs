//! The life of one thread of a program: run, come back, be served, run again.

use crate::Driver;
use crate::server::Server;
use abi_linux::{Next, Registers, Request};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::future::Future;
use mach::Machine;
use mach::machine::{Protection, ThreadState};
use unix::process::{ExitStatus, Pid};
use unix::signal::{Fault, Signal};
use unix::thread::{Thread, Trap};

/// Why a thread came to the server. It waits there until it is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It made a system call.
    SystemCall(Request),
    /// It accessed memory that is not mapped, or not for that.
    PageFault {
        /// What it accessed.
        address: u64,
        /// How.
        access: Protection,
    },
    /// The processor raised an exception.
    Exception {
        /// Its vector.
        vector: u64,
        /// Its error code, 0 if it has none.
        error: u64,
    },
    /// [`unix::process::Control::recall`] was called.
    Recalled,
    /// The machine has lost it.
    Lost,
}

/// How a thread goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// After its system call, with this result; no other register changes.
    Return(u64),
    /// With the registers that it has: what faulted is tried again, what was recalled goes on.
    Unchanged,
    /// With these registers: also how a new thread starts.
    Registers(Box<ThreadState>),
}

/// A thread of the machine as the server drives it. Dropping it ends it.
pub trait UserThread: unix::thread::UserThread + Sized + 'static {
    /// Names a task.
    type Task;

    /// Which Unix thread it is, said before it runs for the first time: for what the program can
    /// find out by itself.
    fn set_ids(&self, pid: Pid, tid: Pid);

    /// Lets `calls` serve the thread's system calls that need not wait, from now on. May do
    /// nothing.
    fn serve_at_once(&self, calls: impl CallsAtOnce + 'static) {
        let _ = calls;
    }

    /// Says which task runs it: the two may be served together. May do nothing.
    fn set_task(&self, task: Self::Task) {
        let _ = task;
    }

    /// Says that the task which ran `other` runs this one from now on. May do nothing.
    fn take_task_of(&self, other: &Self) {
        let _ = other;
    }

    /// Lets the thread run until it comes back. At most one such future exists at a time; a recall
    /// that comes while there is none takes effect in the next.
    fn run(&self, resume: Resume) -> impl Future<Output = Event> + Send;
}

/// Serves those system calls of a thread that need not wait, without its task.
pub trait CallsAtOnce: Send + Sync {
    /// The result, if it is known without waiting. `None`: nothing was done, and the call becomes
    /// an event.
    fn call(&self, request: &Request) -> Option<u64>;
}

/// The server, for one thread.
struct AtOnce<M: Machine, D: Driver<M>> {
    server: Weak<Server<M, D>>,
    /// Its thread of the machine keeps this.
    thread: Weak<Thread<M>>,
}

impl<M: Machine, D: Driver<M>> CallsAtOnce for AtOnce<M, D> {
    fn call(&self, request: &Request) -> Option<u64> {
        self.server.upgrade()?.linux.call_at_once(&self.thread.upgrade()?, request)
    }
}

/// The signal-worthy meaning of a processor exception.
fn fault_of(vector: u64) -> Option<Fault> {
    Some(match vector {
        0 => Fault::IntegerDivide,
        1 => Fault::Step,
        3 => Fault::Breakpoint,
        4 => Fault::IntegerOverflow,
        6 => Fault::IllegalInstruction,
        5 | 13 => Fault::NotCanonical,
        11 | 12 | 17 => Fault::Alignment,
        16 | 19 => Fault::FloatInvalid,
        _ => return None,
    })
}

/// Vector of the exception that the kernel raises when it has no memory for a thread's extended
/// state.
const DEVICE_NOT_AVAILABLE: u64 = 7;
/// Vector of a page fault, for signal frames.
const PAGE_FAULT: u64 = 14;

/// The processor's error code of a page fault in user mode.
fn page_fault_error(access: Protection) -> u64 {
    let bit = |right, bit: u64| if access.contains(right) { bit } else { 0 };
    4 | bit(Protection::WRITE, 2) | bit(Protection::EXECUTE, 16)
}

impl<M: Machine, D: Driver<M>> Server<M, D> {
    /// Serves `thread` from now on, `next` being what it does first, until it has ended.
    pub(crate) async fn run(self: Arc<Self>, thread: Arc<Thread<M>>, mut next: Next) {
        let Some(mut user) = self.machine_thread(&thread) else { return };
        self.begin(&thread, &user);
        loop {
            let resume = match next {
                Next::Return(value) => Resume::Return(value),
                Next::Resume => Resume::Unchanged,
                Next::Run(state) => Resume::Registers(state),
                Next::RunNew(_, state) => {
                    let Some(new) = self.machine_thread(&thread) else { return };
                    new.take_task_of(&user);
                    user = new;
                    self.begin(&thread, &user);
                    Resume::Registers(state)
                }
                Next::Ended => return,
            };
            let event = user.run(resume).await;
            next = self.serve(&thread, event).await;
        }
    }

    /// Before `user` runs for `thread` for the first time.
    fn begin(self: &Arc<Self>, thread: &Arc<Thread<M>>, user: &Arc<D::Thread>) {
        user.set_ids(thread.pid(), thread.tid());
        // A trace is to show every call.
        if !self.trace {
            let at_once = AtOnce { server: Arc::downgrade(self), thread: Arc::downgrade(thread) };
            user.serve_at_once(at_once);
        }
    }

    /// The machine's side of a thread.
    pub(crate) fn machine_thread(&self, thread: &Thread<M>) -> Option<Arc<D::Thread>> {
        // Every thread was made by this server's driver.
        thread.user().into_any().downcast().ok()
    }

    /// What the thread does after this event.
    async fn serve(&self, thread: &Arc<Thread<M>>, event: Event) -> Next {
        let tid = thread.tid();
        if let Event::SystemCall(request) = event {
            return match self.trace {
                false => self.linux.serve_call(thread, request).await,
                true => Box::pin(self.serve_traced(thread, request)).await,
            };
        }
        thread.system().processes.with(|table| table.enter(tid));
        match event {
            Event::SystemCall(_) | Event::Recalled => {}
            Event::PageFault { address, access } => {
                let trap = Trap { error: page_fault_error(access), number: PAGE_FAULT, address };
                // A thread that has to end does not wait for memory.
                let resolving = Box::pin(thread.page_fault(trap, access));
                let _ = thread.system().processes.killable(tid, resolving).await;
            }
            Event::Exception { vector: DEVICE_NOT_AVAILABLE, .. } => thread.out_of_memory(),
            Event::Exception { vector, error } => match fault_of(vector) {
                Some(fault) => thread.raise(fault, Trap { error, number: vector, address: 0 }),
                None => end(thread, tid),
            },
            Event::Lost => end(thread, tid),
        }
        if self.trace {
            self.trace_event(thread, event);
        }
        self.linux.leave(thread, Registers::Unchanged, None).await
    }
}

/// Ends the process of a thread that cannot go on.
fn end<M: Machine>(thread: &Thread<M>, tid: Pid) {
    thread.system().processes.with(|table| {
        if let Ok(pid) = table.thread(tid).map(|thread| thread.pid()) {
            table.begin_exit(pid, ExitStatus::Killed(Signal::KILL));
        }
    });
}
