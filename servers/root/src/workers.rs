//! Root's threads. Each processor has two.
//!
//! The *front* serves the requests of the servers' threads that live there, at the highest
//! priority: it is interrupted by nothing but the kernel, so that a thread that waits for its lock
//! waits for a running thread. What root knows is under one lock, [`SYSTEM`], which is held for the
//! short time that notes take, and for calls of the kernel about single threads and spaces.
//!
//! The *back* does the front's long work, piece by piece, at the priority of the server for which
//! it is done. It takes no lock and allocates nothing, so it does no harm that it is preempted.
//! When it has done a piece it calls the front, which looks at its notes and answers with the next
//! one.

use crate::job::{Job, Next};
use crate::piece::{self, Piece};
use crate::requests::{Outcome, Request, print_text};
use crate::system::System;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use l4::ipc::{self, Message, Received};
use l4::thread::{self, ThreadControl};
use l4::{kip, utcb};
use macadamia_sync::{SpinGuard, SpinLock};
use x2::control::{MAX_PRIORITY, UNCHANGED};
use x2::{ErrorCode, ThreadId};

/// The most processors that root serves.
const PROCESSORS: usize = 64;
/// Thread numbers below the first that root gives away: those of the initial servers.
const INITIAL_THREADS: u32 = 8;
/// Bytes of stack of a front, and of a back, which does not call deep.
const FRONT_STACK: usize = 64 << 10;
const BACK_STACK: usize = 16 << 10;
/// Work that a front does itself, in bytes that could be cleared meanwhile.
const SHORT: u64 = 256 << 10;
/// How often a front looks whether the lock is free before it lets other threads of its processor
/// run.
const PATIENCE: u32 = 1000;

/// What root knows of the servers and of the resources.
static SYSTEM: SpinLock<Option<System>> = SpinLock::new(None);
/// The piece that each back does. The front writes it while the back waits for it, so the two never
/// meet.
static PIECES: [SpinLock<Piece>; PROCESSORS] = [const { SpinLock::new(Piece::Pause) }; PROCESSORS];

fn lock() -> SpinGuard<'static, Option<System>> {
    loop {
        for _ in 0..PATIENCE {
            if let Some(guard) = SYSTEM.try_lock() {
                return guard;
            }
            pause();
        }
        // The holder of the lock may wait for sigma0, which may live on this processor.
        thread::yield_now();
    }
}

/// One PAUSE in one place, by which a plugin of the emulator knows polling (docs/src/measuring.md):
/// a copy of the loop for each of a few rounds, as compilers make it, would count as work.
#[inline(never)]
fn pause() {
    core::hint::spin_loop();
}

fn with<T>(act: impl FnOnce(&mut System) -> T) -> T {
    act(lock().as_mut().expect("it is there before the threads that use it"))
}

/// How many thread numbers after root's first root has for itself.
pub(crate) fn first_number() -> u32 {
    kip().thread_info().user_base + INITIAL_THREADS + 2 * processors() as u32
}

fn processors() -> usize {
    (kip().processor_info().processors as usize).min(PROCESSORS)
}

fn front_of(processor: usize) -> ThreadId {
    if processor == 0 { kip().root() } else { number(2 * processor) }
}

fn back_of(processor: usize) -> ThreadId {
    number(2 * processor + 1)
}

fn number(index: usize) -> ThreadId {
    let first = kip().thread_info().user_base + INITIAL_THREADS;
    ThreadId::global(first + index as u32, 1).expect("a version that is not 0 makes a global id")
}

/// The request threads, by their processors.
pub(crate) fn fronts() -> Vec<ThreadId> {
    (0..processors()).map(front_of).collect()
}

/// Starts the other threads, then all servers, and serves them for ever. Called by root's first
/// thread, which becomes the front of the first processor.
pub(crate) fn run(system: System) -> ! {
    let servers = system.servers.len();
    *lock() = Some(system);
    for processor in 0..processors() {
        if processor > 0 {
            create(processor, front_of(processor), FRONT_STACK, front);
        }
        create(processor, back_of(processor), BACK_STACK, back);
    }
    // No server runs before all are there: their first threads live here.
    for index in 0..servers {
        let mut job = with(|system| system.begin(index));
        let mut last = Ok(());
        loop {
            match with(|system| system.advance(&mut job, last)) {
                Next::Piece(piece) => last = piece.perform(),
                Next::Become(next) => (job, last) = (next, Ok(())),
                Next::Answer(..) | Next::Over => break,
            }
        }
    }
    front()
}

/// Makes a thread of root's that runs `main` on `processor`.
fn create(processor: usize, id: ThreadId, stack: usize, main: fn() -> !) {
    let (me, sigma0) = (utcb::my_global_id(), kip().sigma0());
    l4::sigma0::announce(id).expect("sigma0 answers root");
    let first = utcb::pointer() & !(x2::utcb::SIZE - 1);
    let utcb = Some(first + u64::from(id.number() - me.number()) * x2::utcb::SIZE);
    thread::control(id, ThreadControl { space: me, scheduler: me, pager: sigma0, utcb })
        .expect("there is kernel memory for root's threads");
    thread::schedule(id, UNCHANGED, processor as u64, MAX_PRIORITY.into(), UNCHANGED)
        .expect("the processor exists");
    let stack = alloc::vec![0u8; stack].leak();
    // As after a call: the return address would be at the stack pointer.
    let sp = (stack.as_ptr_range().end as u64 & !15) - 8;
    // SAFETY: the stack is this thread's alone, for ever, and `main` needs nothing else.
    unsafe { thread::start(id, main as *const () as u64, sp) }.expect("a thread of root's");
}

/// The request thread of a processor.
fn front() -> ! {
    let mut front = Front::new(utcb::processor_number() as usize);
    let mut received = ipc::wait();
    loop {
        // An error leaves nothing to answer: the receiver of the last answer was gone or not
        // waiting.
        let answer = received.ok().and_then(|message| front.hear(message));
        received = match answer {
            Some((to, message)) => ipc::reply_wait(to, message),
            None => ipc::wait(),
        };
    }
}

/// The background worker of a processor.
fn back() -> ! {
    let processor = utcb::processor_number() as usize;
    let front = front_of(processor);
    let mut message = Message::new(0);
    loop {
        ipc::call(front, message).expect("the front always comes back to its back");
        let piece = *PIECES[processor].lock();
        message = Message::with_words(0, &[encode(piece.perform())]);
    }
}

/// The result of a piece of work, packed into a message word.
fn encode(result: piece::Result) -> u64 {
    match result {
        Ok(()) => DONE,
        Err(error) => error.map_or(0, |error| error as u64),
    }
}

const DONE: u64 = u64::MAX;

fn decode(word: u64) -> piece::Result {
    if word == DONE { Ok(()) } else { Err(ErrorCode::from_raw(word)) }
}

struct Front {
    processor: usize,
    back: ThreadId,
    /// Whether the background worker waits for a piece of work.
    is_idle: bool,
    /// The job that the background worker carries out now.
    current: Option<Job>,
    /// The jobs that the back works on in turn, each with its next piece.
    queue: VecDeque<(Job, Piece)>,
}

/// The thread that gets an answer, and the answer.
type Answer = Option<(ThreadId, Message)>;

impl Front {
    fn new(processor: usize) -> Front {
        let back = back_of(processor);
        Front { processor, back, is_idle: false, current: None, queue: VecDeque::new() }
    }

    fn hear(&mut self, message: Received) -> Answer {
        let request = Request::new(message);
        if request.from.is_local() {
            // A local sender is the back: no other thread of root's space calls the front.
            self.is_idle = true;
            let result = request.word(0).map_or(Ok(()), decode);
            if let Some(job) = self.current.take()
                && let Some((to, answer)) = self.go_on(job, result, 0)
            {
                let _ = ipc::reply(to, answer);
            }
            return self.engage();
        }
        match with(|system| system.hear(&request)) {
            Outcome::Answer(answer) => Some((request.from, answer)),
            Outcome::Print => Some((request.from, print_text(&request))),
            Outcome::Work(job) => self.go_on(job, Ok(()), SHORT).or_else(|| self.engage()),
            Outcome::Later => None,
        }
    }

    /// Goes on with a job, given the result of its last piece. The front does the next pieces
    /// itself as long as they fit into `budget`; then the back goes on.
    fn go_on(&mut self, mut job: Job, mut last: piece::Result, mut budget: u64) -> Answer {
        loop {
            match with(|system| system.advance(&mut job, last)) {
                Next::Piece(piece) => match budget.checked_sub(piece.cost()) {
                    None if self.queue.try_reserve(1).is_ok() => {
                        self.queue.push_back((job, piece));
                        return None;
                    }
                    left => {
                        budget = left.unwrap_or(0);
                        last = piece.perform();
                    }
                },
                Next::Answer(to, answer) => return Some((to, answer)),
                Next::Become(next) => (job, last) = (next, Ok(())),
                Next::Over => return None,
            }
        }
    }

    /// Gives the back its next piece, if it waits for one and there is one.
    fn engage(&mut self) -> Answer {
        if !self.is_idle {
            return None;
        }
        let (job, piece) = self.queue.pop_front()?;
        let priority = with(|system| system.servers[job.index()].configuration.priority);
        thread::set_priority(self.back, priority).expect("root may set the priority of its threads");
        *PIECES[self.processor].lock() = piece;
        (self.is_idle, self.current) = (false, Some(job));
        Some((self.back, Message::new(0)))
    }
}
