//! A worker's alarm: a thread that waits for the time of the next timer in its worker's stead.
//!
//! A thread that waits with a timeout leaves the kernel's fast path, and so does a thread that
//! sends to it. A timer that is armed anywhere in the server would therefore make every system call
//! several times as dear. So a worker waits without a timeout, and its alarm notifies it. The alarm
//! receives only from its worker: no program can disturb it.
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

/// The notification bit that says that the alarm has rung.
pub(crate) const RUNG: u64 = 1 << 63;

/// Size of the alarm thread's stack in bytes.
const STACK: usize = 8 << 10;

enum Thread {
    /// The thread has not been needed yet.
    None,
    Runs(ThreadId),
    /// Root refused a thread for the alarm.
    Refused,
}

/// The worker's side of its alarm.
pub(crate) struct Alarm {
    /// The worker's number, and that of its processor.
    worker: usize,
    thread: Thread,
    /// The time at which the alarm notifies the worker, or an earlier one.
    set: Option<Instant>,
}

impl Alarm {
    /// For the worker that the calling thread drives.
    pub(crate) const fn new(worker: usize) -> Alarm {
        Alarm { worker, thread: Thread::None, set: None }
    }

    /// Sees to it that the worker is notified at this time, or before. False: it has to wait for
    /// that itself, for once.
    #[inline]
    pub(crate) fn set(&mut self, at: Instant) -> bool {
        self.set.is_some_and(|set| set <= at) || self.advance(at)
    }

    /// Notes that the alarm has notified the worker.
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
        // The alarm thread does not wait for a message while it begins or notifies.
        let told =
            kernel::ipc(thread, ThreadId::NIL, Timeouts::new(Time::ZERO, Time::NEVER), message).is_ok();
        if told {
            self.set = Some(at);
        }
        told
    }
}

/// Starts the alarm of the worker that the calling thread drives, on its processor; nothing if
/// there is no memory or no thread for it.
fn start(worker: usize) -> Option<ThreadId> {
    let stack = Box::into_raw(Box::new(Stack::<STACK>::new()));
    let top = stack as u64 + STACK as u64 - 16;
    // SAFETY: the word is in the stack, which nothing else uses.
    unsafe { (top as *mut u64).write(l4::utcb::my_global_id().raw()) };
    // SAFETY: the code finds what it needs, its worker, on this stack, which lives as long as the
    // program if there is a thread.
    let thread = unsafe { root::create_thread(entry as *const () as u64, top) };
    match thread {
        Ok(thread) => {
            // Where it is not, it rings from where it is.
            let _ = kernel::move_to(thread, worker);
            Some(thread)
        }
        Err(_) => {
            // SAFETY: it was made above, and no thread has it.
            drop(unsafe { Box::from_raw(stack) });
            None
        }
    }
}

/// Where the thread begins: its worker is on top of the stack.
#[unsafe(naked)]
extern "C" fn entry() -> ! {
    naked_asm!("mov rdi, [rsp]", "call {ring}", "ud2", ring = sym ring)
}

/// The thread: takes times from its worker, and rings.
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
        // A receive error means that the time is over.
        if let Ok((_, (_, words))) = kernel::ipc(ThreadId::NIL, worker, timeouts, (MessageTag::EMPTY, [0; 7]))
        {
            set = Some(words[0]);
        }
    }
}
