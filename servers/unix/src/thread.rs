//! The life of one thread of a program: run, come back, be served, run again.

use crate::Driver;
use crate::server::Server;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux::{Decoded, Next, Registers};
use mach::Machine;
use mach::machine::{Event, ExecutionContext, NonblockingHandler, Protection, Resume, SystemCall};
use mach::thread::Exception;
use mach::vm::VmMap;
use unix::thread::Thread;

/// Serves, without the thread's task, page faults for which the memory system has all that it
/// needs, and system calls that need not wait. It keeps the thread; the thread's end drops it.
struct Quick<M: Machine, D: Driver<M>> {
    map: Arc<VmMap<M>>,
    server: Arc<Server<M, D>>,
    thread: Arc<Thread<M>>,
    decoded: Arc<Decoded<M>>,
}

impl<M: Machine, D: Driver<M>> NonblockingHandler for Quick<M, D> {
    #[inline]
    fn fault(&self, address: u64, access: Protection) -> bool {
        NonblockingHandler::fault(&*self.map, address, access)
    }

    #[inline]
    fn call(&self, call: &SystemCall) -> Option<u64> {
        self.server.linux.try_call(&self.thread, call, &self.decoded)
    }
}

impl<M: Machine, D: Driver<M>> Server<M, D> {
    /// Serves `thread` from now on, `next` being what it does first, until it has ended.
    pub(crate) async fn run(self: Arc<Self>, mut thread: Arc<Thread<M>>, mut next: Next<M>) {
        let decoded = Arc::new(Decoded::default());
        if !matches!(next, Next::RunNew(..)) {
            self.begin(&thread, &decoded);
        }
        loop {
            let resume = match next {
                Next::Return(value) => Resume::Return(value),
                Next::Resume => Resume::Continue,
                Next::Run(state) => Resume::Registers(state),
                Next::RunNew(new, state) => {
                    thread = new;
                    self.begin(&thread, &decoded);
                    Resume::Registers(state)
                }
                Next::Ended => break,
            };
            let event = thread.machine_thread().run(resume).await;
            next = self.serve(&thread, event, &decoded).await;
        }
        // Its handler, which holds the thread, goes with it.
        thread.machine_thread().end();
    }

    /// Prepares a new thread before it runs for the first time.
    fn begin(self: &Arc<Self>, thread: &Arc<Thread<M>>, decoded: &Arc<Decoded<M>>) {
        let machine_thread = thread.machine_thread();
        self.driver.identify(machine_thread, thread.pid(), thread.tid());
        let map = thread.task().map().clone();
        // With the option `trace` each call goes to the log, from the thread's task.
        if self.trace {
            machine_thread.set_handler(map);
            return;
        }
        let (server, thread, decoded) = (self.clone(), thread.clone(), decoded.clone());
        machine_thread.set_handler(Arc::new(Quick { map, server, thread, decoded }));
    }

    /// Handles an event of the thread, and returns how the thread goes on.
    async fn serve(&self, thread: &Arc<Thread<M>>, event: Event, decoded: &Decoded<M>) -> Next<M> {
        let tid = thread.tid();
        if let Event::SystemCall(request) = event {
            return match self.trace {
                false => self.linux.serve_call(thread, request, decoded).await,
                true => Box::pin(self.serve_traced(thread, request, decoded)).await,
            };
        }
        decoded.clear();
        thread.system().processes.with(|table| table.enter(tid));
        match event {
            // No message that a program sends itself means anything here.
            Event::SystemCall(_) | Event::Recalled | Event::Message(_) => {}
            Event::PageFault(fault) => {
                if thread.begin_fault() {
                    // A thread that has to end does not wait for memory.
                    let serving = Box::pin(thread.fault(&fault));
                    let _ = thread.system().processes.killable(tid, serving).await;
                }
            }
            Event::Exception(exception) => {
                // Every exception becomes a signal, so that there is always an answer.
                let _ = Box::pin(thread.raise(&Exception::of_processor(&exception))).await;
            }
            Event::Ended => thread.lost(),
        }
        if self.trace {
            self.trace_event(thread, event);
        }
        self.linux.leave(thread, Registers::Unchanged, None).await
    }
}
