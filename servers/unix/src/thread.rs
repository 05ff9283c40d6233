//! The task of one thread of a program: it resumes the thread, waits until it stops, serves the
//! event, and resumes it again.

use crate::Driver;
use crate::server::Server;
use alloc::boxed::Box;
use alloc::sync::Arc;
use mach::Machine;
use mach::machine::{
    Attempt, Event, ExecutionContext, NonblockingHandler, Protection, Resume, SystemCall, ThreadState,
};
use mach::thread::Exception;
use mach::vm::VmMap;
use unix::front_end::{FrontEnds, Next};
use unix::thread::Thread;

/// A thread that has begun its program, with the state that the front end keeps for it.
///
/// As the handler of the thread's events it serves, without the thread's task, page faults for
/// which the memory system has all that it needs, and system calls that cannot block. It holds a
/// reference to the thread, which is dropped when the thread ends.
struct Begun<M: Machine, D: Driver<M>, F: FrontEnds<M>> {
    map: Arc<VmMap<M>>,
    server: Arc<Server<M, D, F>>,
    thread: Arc<Thread<M>>,
    kept: F::Kept,
}

impl<M: Machine, D: Driver<M>, F: FrontEnds<M>> NonblockingHandler for Begun<M, D, F> {
    #[inline]
    fn fault(&self, address: u64, access: Protection) -> bool {
        NonblockingHandler::fault(&*self.map, address, access)
    }

    #[inline]
    fn call(&self, call: &SystemCall) -> Attempt {
        let value = self.server.front_ends.try_call(&self.thread, &self.kept, call);
        value.map_or(Attempt::Event, Attempt::Return)
    }
}

impl<M: Machine, D: Driver<M>, F: FrontEnds<M>> Server<M, D, F> {
    /// Begins the program of `thread` with these registers, and serves the thread until it has
    /// ended. Programs that the process executes later are included.
    pub(crate) async fn run(self: Arc<Self>, thread: Arc<Thread<M>>, state: Box<ThreadState>) {
        let mut begun = self.begin(thread);
        let mut first = Resume::Registers(state);
        'program: loop {
            let mut next = self.front_ends.return_to_user(&begun.thread, &begun.kept, first).await;
            // A thread that was killed before it ran is not started.
            if !matches!(next, Next::Ended) {
                self.prepare_to_run(&begun);
            }
            loop {
                let resume = match next {
                    Next::Resume(resume) => resume,
                    Next::Executed(new, state) => {
                        (begun, first) = (self.begin(new), Resume::Registers(state));
                        continue 'program;
                    }
                    Next::Ended => break 'program,
                };
                let event = begun.thread.machine_thread().run(resume).await;
                next = self.serve(&begun.thread, event, &begun.kept).await;
            }
        }
        // Ending the machine thread also drops its handler, which holds a reference to the thread.
        begun.thread.machine_thread().end();
    }

    /// Makes the front end's state for a thread that is about to begin its program.
    fn begin(self: &Arc<Self>, thread: Arc<Thread<M>>) -> Arc<Begun<M, D, F>> {
        let (map, kept) = (thread.task().map().clone(), self.front_ends.begin(&thread));
        Arc::new(Begun { map, server: self.clone(), thread, kept })
    }

    /// Prepares a new thread before it runs for the first time.
    fn prepare_to_run(&self, begun: &Arc<Begun<M, D, F>>) {
        let thread = &begun.thread;
        self.driver.identify(thread.machine_thread(), thread.pid(), thread.tid());
        // With the option `trace` each call goes to the log, which only the thread's task does, and
        // a tracer sees each call of its tracee. So the handler serves page faults only.
        thread.machine_thread().set_handler(match self.trace || thread.is_observed() {
            true => begun.map.clone(),
            false => begun.clone(),
        });
    }

    /// Handles an event of the thread, and returns how the thread continues.
    async fn serve(&self, thread: &Arc<Thread<M>>, event: Event, kept: &F::Kept) -> Next<M> {
        let tid = thread.tid();
        if let Event::SystemCall(request) = event {
            return match self.trace {
                false => self.front_ends.serve_call(thread, kept, request).await,
                true => Box::pin(self.serve_traced(thread, request, kept)).await,
            };
        }
        self.front_ends.no_call(kept);
        thread.system().processes().with(|table| table.enter(tid));
        match event {
            // These events need no service: no messages of programs have a meaning to the server.
            Event::SystemCall(_) | Event::Recalled | Event::Message(_) => {}
            Event::PageFault(fault) => {
                match self.driver.provide(thread.memory(), fault.address, fault.access) {
                    Ok(true) => {}
                    Ok(false) => {
                        if thread.begin_fault() {
                            // A thread that is being killed does not wait for memory.
                            let serving = Box::pin(thread.fault(&fault));
                            let _ = thread.system().processes().killable(tid, serving).await;
                        }
                    }
                    Err(_) => thread.out_of_memory(),
                }
            }
            Event::Exception(exception) => {
                // Every exception becomes a signal, so that the thread always gets an answer.
                let _ = Box::pin(thread.raise(&Exception::of_processor(&exception))).await;
            }
            Event::Ended => thread.lost(),
        }
        if self.trace {
            self.trace_event(thread, event);
        }
        self.front_ends.return_to_user(thread, kept, Resume::Continue).await
    }
}
