//! The life of one thread of a program: run, come back, be served, run again.

use crate::Driver;
use crate::server::Server;
use abi_linux::{Next, Registers};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use mach::Machine;
use mach::machine::{
    AtOnce, Event, ExecutionContext, PageFault, ProcessorException, Protection, Resume, SystemCall,
};
use mach::vm::VmMap;
use unix::process::{ExitStatus, Pid};
use unix::signal::{Fault, Signal};
use unix::thread::{Thread, Trap};

/// What a thread's machine serves without its task: faults that its memory has all it takes for, and calls that need not wait.
struct Quick<M: Machine, D: Driver<M>> {
    map: Arc<VmMap<M>>,
    server: Weak<Server<M, D>>,
    /// Its thread of the machine keeps this.
    thread: Weak<Thread<M>>,
}

impl<M: Machine, D: Driver<M>> AtOnce for Quick<M, D> {
    #[inline]
    fn fault(&self, address: u64, access: Protection) -> bool {
        AtOnce::fault(&*self.map, address, access)
    }

    #[inline]
    fn call(&self, call: &SystemCall) -> Option<u64> {
        let server = self.server.upgrade()?;
        // A trace is to show every call.
        if server.trace { None } else { server.linux.call_at_once(&self.thread.upgrade()?, call) }
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
        let mut user = thread.user();
        self.begin(&thread, &user);
        loop {
            let resume = match next {
                Next::Return(value) => Resume::Return(value),
                Next::Resume => Resume::Continue,
                Next::Run(state) => Resume::Registers(state),
                Next::RunNew(state) => {
                    user = thread.user();
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
    fn begin(self: &Arc<Self>, thread: &Arc<Thread<M>>, user: &M::Thread) {
        self.driver.identify(user, thread.pid(), thread.tid());
        let map = thread.memory().map().clone();
        let (server, thread) = (Arc::downgrade(self), Arc::downgrade(thread));
        user.serve_at_once(Arc::new(Quick { map, server, thread }));
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
            // No message that a program sends itself means anything here.
            Event::SystemCall(_) | Event::Recalled | Event::Message(_) => {}
            Event::PageFault(PageFault { address, access, .. }) => {
                let trap = Trap { error: page_fault_error(access), number: PAGE_FAULT, address };
                // A thread that has to end does not wait for memory.
                let resolving = Box::pin(thread.page_fault(trap, access));
                let _ = thread.system().processes.killable(tid, resolving).await;
            }
            Event::Exception(ProcessorException { vector: DEVICE_NOT_AVAILABLE, .. }) => {
                thread.out_of_memory();
            }
            Event::Exception(ProcessorException { vector, error, .. }) => match fault_of(vector) {
                Some(fault) => thread.raise(fault, Trap { error, number: vector, address: 0 }),
                None => end(thread, tid),
            },
            Event::Ended => end(thread, tid),
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
