//! A worker's alarm: a thread that waits for the time of the worker's next timer and then notifies
//! the worker.
//!
//! The worker itself waits without a timeout. A thread that waits with one leaves the kernel's fast
//! path, and so does a thread that sends to it: one armed timer would make every system call
//! several times as expensive. The alarm receives only from its worker, so no program can disturb
//! it.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::arch::naked_asm;

use l4::extension;
use l4::start::Stack;
use l4::thread::system_clock;
use l4::x2::{MessageTag, ThreadId, Time, Timeouts};
use rt::executor::Instant;
use rt::root;

use crate::kernel;

/// The notification bit by which the alarm tells the worker that the time has come.
pub(crate) const RUNG: u64 = 1 << 63;

/// Size of the alarm thread's stack in bytes.
const STACK: usize = 8 << 10;

enum Thread {
    /// The alarm thread has not been made, since it was not needed yet.
    None,
    Runs(ThreadId),
    /// Root refused to make a thread for the alarm.
    Refused,
}

/// The alarm as its worker sees it.
pub(crate) struct Alarm {
    /// The number of the worker, which is that of its processor, too.
    worker: usize,
    thread: Thread,
    /// The time for which the alarm is set. The worker may need a later time only.
    set: Option<Instant>,
}

impl Alarm {
    /// The alarm of the worker that the calling thread drives. Its thread is made when it is first
    /// needed.
    pub(crate) const fn new(worker: usize) -> Alarm {
        Alarm { worker, thread: Thread::None, set: None }
    }

    /// Sets the alarm so that the worker is notified at this time or earlier. Returns false if that
    /// failed: the worker must use a timeout for its next wait.
    #[inline]
    pub(crate) fn set(&mut self, at: Instant) -> bool {
        self.set.is_some_and(|set| set <= at) || self.advance(at)
    }

    /// Records that the alarm has notified the worker.
    pub(crate) fn rung(&mut self) {
        self.set = None;
    }

    #[cold]
    fn advance(&mut self, at: Instant) -> bool {
        if let Thread::None = self.thread {
            self.thread = start(self.worker).map_or(Thread::Refused, Thread::Runs);
        }
        let Thread::Runs(thread) = self.thread else { return false };
        let message = (MessageTag::new(0, 1, 0), [at, 0, 0, 0, 0, 0, 0]);
        // The send fails while the alarm thread starts or notifies, since it does not receive then.
        let told =
            kernel::ipc(thread, ThreadId::NIL, Timeouts::new(Time::ZERO, Time::NEVER), message).is_ok();
        if told {
            self.set = Some(at);
        }
        told
    }
}

/// Makes the alarm thread of the worker that the calling thread drives, on the worker's processor.
/// `None` if there is no memory or no thread for it.
fn start(worker: usize) -> Option<ThreadId> {
    let stack = Box::into_raw(Box::new(Stack::<STACK>::new()));
    let top = stack as u64 + STACK as u64 - 16;
    // SAFETY: the word lies in the new stack, which no other code uses.
    unsafe { (top as *mut u64).write(l4::utcb::my_global_id().raw()) };
    // SAFETY: the code uses only this stack, on which it finds its worker. The stack is never freed
    // if the thread was made.
    let thread = unsafe { root::create_thread(entry as *const () as u64, top) };
    match thread {
        Ok(thread) => {
            // If the thread cannot be moved it works from the processor on which it is.
            let _ = kernel::move_to(thread, worker);
            Some(thread)
        }
        Err(_) => {
            // SAFETY: the stack was allocated above, and no thread uses it.
            drop(unsafe { Box::from_raw(stack) });
            None
        }
    }
}

/// The first instructions of the alarm thread. The id of its worker is on top of the stack.
#[unsafe(naked)]
extern "C" fn entry() -> ! {
    naked_asm!("mov rdi, [rsp]", "call {ring}", "ud2", ring = sym ring)
}

/// The main function of the alarm thread: receives times from the worker, and notifies it when they
/// have come.
extern "C" fn ring(worker: u64) -> ! {
    let worker = ThreadId::from_raw(worker);
    let mut set: Option<Instant> = None;
    loop {
        let wait = match set.map(|at| at.saturating_sub(system_clock())) {
            None => Time::NEVER,
            Some(0) => {
                // The worker's thread exists as long as the server.
                let _ = extension::notify(worker, RUNG);
                set = None;
                continue;
            }
            Some(microseconds) => Time::period_rounded_down(microseconds),
        };
        let timeouts = Timeouts::new(Time::ZERO, wait);
        // An error means that the receive has timed out: the time has come.
        if let Ok((_, (_, words))) = kernel::ipc(ThreadId::NIL, worker, timeouts, (MessageTag::EMPTY, [0; 7]))
        {
            set = Some(words[0]);
        }
    }
}
