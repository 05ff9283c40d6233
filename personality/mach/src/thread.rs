//! The task of one thread of a program: it waits until the thread stops, serves the event, and
//! resumes the thread.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::Poll;

use mach::KernResult;
use mach::machine::{
    Attempt, Event, ExecutionContext, Machine, NonblockingHandler, Protection, Resume, SystemCall,
};
use mach::thread::Exception;

use crate::calls::{self, Next};
use crate::system::{ProgramThread, Services, System};

/// The handler of those events of a thread that need no wait.
struct Direct<M: Machine, S> {
    system: Arc<System<M, S>>,
    thread: Arc<ProgramThread<M>>,
}

impl<M: Machine, S: Services<M>> NonblockingHandler for Direct<M, S> {
    #[inline]
    fn fault(&self, address: u64, access: Protection) -> bool {
        NonblockingHandler::fault(&**self.thread.task().map(), address, access)
    }

    #[inline]
    fn call(&self, call: &SystemCall) -> Attempt {
        calls::try_call(&self.system, &self.thread, call)
    }
}

impl<M: Machine, S: Services<M>> System<M, S> {
    /// Begins to serve a thread, which has not run yet.
    ///
    /// # Errors
    /// `ResourceShortage`: there is no memory for that.
    pub(crate) fn serve_from_now(self: Arc<Self>, thread: Arc<ProgramThread<M>>) -> KernResult {
        let context = thread.machine_thread().clone();
        let direct = Direct { system: self.clone(), thread: thread.clone() };
        context.set_handler(Arc::new(direct));
        // Relaxed: the end of the count orders what is needed.
        self.threads.fetch_add(1, Ordering::Relaxed);
        let spawned = self.services.spawn(&context, self.clone().serve(thread));
        spawned.inspect_err(|_| {
            context.end();
            self.thread_ended();
        })
    }

    async fn serve(self: Arc<Self>, thread: Arc<ProgramThread<M>>) {
        let context = thread.machine_thread().clone();
        let mut event = context.run(Resume::Continue).await;
        loop {
            event = match until_ended(&context, self.event(&thread, event)).await {
                Next::Resume(resume) => context.run(resume).await,
                Next::Held => context.next_event().await,
                Next::End => break,
            };
        }
        // Ending the context also drops its handler, which has a reference to the thread.
        thread.terminate();
        drop(thread);
        self.thread_ended();
    }

    /// Serves an event, and returns how the thread goes on.
    async fn event(self: &Arc<Self>, thread: &Arc<ProgramThread<M>>, event: Event) -> Next {
        let served = match event {
            Event::SystemCall(call) => return calls::call(self, thread, &call).await,
            Event::PageFault(fault) => Box::pin(thread.fault(&fault)).await,
            Event::Exception(exception) => {
                let exception = Exception::of_processor(&exception);
                Box::pin(thread.raise(&exception)).await
            }
            // A message that a program sends the server itself has no meaning.
            Event::Recalled | Event::Message(_) => Ok(()),
            Event::Ended => return Next::End,
        };
        served.map_or(Next::End, |()| Next::Resume(Resume::Continue))
    }
}

/// Awaits what serves an event of the context, unless the context ends before.
async fn until_ended<C: ExecutionContext>(context: &C, service: impl Future<Output = Next>) -> Next {
    let mut service = pin!(service);
    let mut ended = pin!(context.next_event());
    poll_fn(|waker| {
        if let Poll::Ready(resume) = service.as_mut().poll(waker) {
            return Poll::Ready(resume);
        }
        // A context that is with its server has no other event than its end.
        ended.as_mut().poll(waker).map(|_| Next::End)
    })
    .await
}
