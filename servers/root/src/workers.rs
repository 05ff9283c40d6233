//! Root's threads, two on each processor.
//!
//! The *request thread* serves the requests of the servers' threads on its processor. It has the
//! highest priority and is never preempted. So a thread that waits for root's lock waits for a
//! thread that runs. All tables of root are under this lock, [`SYSTEM`]. It is held only while a
//! request changes the tables and calls the kernel about single threads and spaces.
//!
//! The *background worker* does the long work of the request thread, step by step, at the priority
//! of the server for which it is done. It takes no lock and allocates nothing, so it may be
//! preempted. When it has done a step it calls the request thread, which updates the tables and
//! answers with the next step.

use crate::console;
use crate::l4_machine::L4;
use alloc::vec::Vec;
use direct::Reply;
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{kip, utcb};
use macadamia_sync::{SpinGuard, SpinLock};
use root::machine::Machine;
use root::requests::{self, Outcome};
use root::step::{self, Step};
use root::system::System;
use root::work_item::{Next, WorkItem};
use root::work_queue::{Advance, WorkQueue};
use x2::control::{MAX_PRIORITY, UNCHANGED};
use x2::{MessageTag, ThreadId};

/// The most processors that root serves.
const PROCESSORS: usize = 64;
/// How many thread numbers, below those of root's other threads, belong to the initial servers.
const INITIAL_THREADS: u32 = 8;
/// The size of a request thread's stack in bytes, and that of a background worker's, whose calls
/// are not nested deeply.
const REQUEST_STACK: usize = 64 << 10;
const WORKER_STACK: usize = 16 << 10;
/// How often a request thread polls the lock before it lets other threads of its processor run.
const PATIENCE: u32 = 1000;

/// Root's tables of servers and resources.
static SYSTEM: SpinLock<Option<System<L4>>> = SpinLock::new(None);
/// The step that each background worker does, and how its last one went. The request thread looks
/// there while the worker waits for its answer, so the lock is always free.
static STEPS: [SpinLock<(Step, step::Result)>; PROCESSORS] =
    [const { SpinLock::new((Step::Pause, Ok(()))) }; PROCESSORS];

fn lock() -> SpinGuard<'static, Option<System<L4>>> {
    loop {
        for _ in 0..PATIENCE {
            if let Some(guard) = SYSTEM.try_lock() {
                return guard;
            }
            pause();
        }
        // The holder of the lock may be waiting for sigma0, which may live on this processor.
        thread::yield_now();
    }
}

/// Executes the instruction PAUSE. There must be only one of it in the program: a plugin of the
/// emulator recognises polling by its address (docs/src/measuring.md). If compilers put copies of
/// it into unrolled loops, polling would count as work.
#[inline(never)]
fn pause() {
    core::hint::spin_loop();
}

fn with<T>(act: impl FnOnce(&mut System<L4>) -> T) -> T {
    act(lock().as_mut().expect("it is there before the threads that use it"))
}

/// The first thread number that root gives to servers: those below belong to interrupts, the
/// initial servers and root's threads.
pub(crate) fn first_number() -> u32 {
    kip().thread_info().user_base + INITIAL_THREADS + 2 * processors() as u32
}

fn processors() -> usize {
    (kip().processor_info().processors as usize).min(PROCESSORS)
}

fn request_thread_of(processor: usize) -> ThreadId {
    if processor == 0 { kip().root() } else { number(2 * processor) }
}

fn worker_of(processor: usize) -> ThreadId {
    number(2 * processor + 1)
}

fn number(index: usize) -> ThreadId {
    let first = kip().thread_info().user_base + INITIAL_THREADS;
    ThreadId::global(first + index as u32, 1).expect("a version that is not 0 makes a global id")
}

/// The request threads, by their processors.
pub(crate) fn request_threads() -> Vec<ThreadId> {
    (0..processors()).map(request_thread_of).collect()
}

/// Starts root's other threads, then all servers, and serves them for ever. It is called by root's
/// first thread, which becomes the request thread of the first processor.
pub(crate) fn run(system: System<L4>) -> ! {
    let servers = system.server_count();
    *lock() = Some(system);
    for processor in 0..processors() {
        if processor > 0 {
            create(processor, request_thread_of(processor), REQUEST_STACK, serve);
        }
        create(processor, worker_of(processor), WORKER_STACK, work);
    }
    // The request thread serves no server before all are being started, because it is the thread
    // that starts them.
    for index in 0..servers {
        let mut item = with(|system| system.begin(index));
        let mut last = Ok(());
        loop {
            match with(|system| system.advance(&mut item, last)) {
                Next::Step(step) => last = L4.perform(&step),
                Next::Become(next) => (item, last) = (next, Ok(())),
                Next::Answer(..) | Next::Over => break,
            }
        }
    }
    serve()
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
    // The stack pointer is as after a call instruction, which pushes a return address of 8 bytes.
    let sp = (stack.as_ptr_range().end as u64 & !15) - 8;
    // SAFETY: the stack belongs to this thread alone, for ever, and `main` needs nothing else.
    unsafe { thread::start(id, main as *const () as u64, sp) }.expect("a thread of root's");
}

/// The main function of the request threads.
fn serve() -> ! {
    let mut requests = RequestThread::new(utcb::processor_number() as usize);
    let mut registers = Direct::default();
    let mut received = registers.wait(&mut []);
    loop {
        // After an error there is no request to answer: the receiver of the last answer did not
        // exist or did not wait.
        let answer = received.ok().and_then(|(from, tag)| requests.handle(from, tag, &mut registers));
        received = match answer {
            Some((to, tag)) => registers.reply_wait(to, &Reply::new(tag), &mut []),
            None => registers.wait(&mut []),
        };
    }
}

/// The main function of the background workers.
fn work() -> ! {
    let processor = utcb::processor_number() as usize;
    let request_thread = request_thread_of(processor);
    loop {
        ipc::call(request_thread, Message::new(0)).expect("the request thread always answers its worker");
        let (step, _) = *STEPS[processor].lock();
        let result = L4.perform(&step);
        STEPS[processor].lock().1 = result;
    }
}

struct RequestThread {
    processor: usize,
    /// The background worker.
    worker: ThreadId,
    work: WorkQueue,
}

/// Carries out work items: tables are changed with root's lock held, steps are done without it.
struct Unlocked;

impl Advance for Unlocked {
    fn advance(&mut self, item: &mut WorkItem, last: step::Result) -> Next {
        with(|system| system.advance(item, last))
    }

    fn perform(&mut self, step: &Step) -> step::Result {
        L4.perform(step)
    }
}

impl RequestThread {
    fn new(processor: usize) -> RequestThread {
        RequestThread { processor, worker: worker_of(processor), work: WorkQueue::default() }
    }

    /// Serves the message in `registers`. Returns the thread that is answered, and the tag of the
    /// answer, which is in `registers`.
    fn handle(
        &mut self,
        from: ThreadId,
        tag: MessageTag,
        registers: &mut Direct,
    ) -> Option<(ThreadId, MessageTag)> {
        let reply = if from.is_local() {
            // A sender with a local id is the background worker, since no other thread of root's
            // space calls the request thread.
            let (_, last) = *STEPS[self.processor].lock();
            if let Some((to, answer)) = self.work.step_done(&mut Unlocked, last) {
                let tag = answer.write(registers);
                let _ = registers.reply(to, tag);
            }
            None
        } else {
            match with(|system| system.handle(from, tag, registers)) {
                Outcome::Answer(tag) => Some((from, tag)),
                Outcome::Print(text) => {
                    console::print_text(requests::printable(&text));
                    Some((from, requests::printed(registers)))
                }
                Outcome::Work(item) => {
                    let done = self.work.begin(&mut Unlocked, item);
                    done.map(|(to, answer)| (to, answer.write(registers)))
                }
                Outcome::Wait => None,
            }
        };
        reply.or_else(|| self.next_step().map(|worker| (worker, MessageTag::EMPTY)))
    }

    /// Writes the next step of the background worker to its place, if it is waiting and there is
    /// one. Returns the worker, which is to be answered.
    fn next_step(&mut self) -> Option<ThreadId> {
        let (step, item) = self.work.next_step()?;
        let priority = with(|system| system.priority_of(item));
        thread::set_priority(self.worker, priority).expect("root may set the priority of its threads");
        STEPS[self.processor].lock().0 = step;
        Some(self.worker)
    }
}
