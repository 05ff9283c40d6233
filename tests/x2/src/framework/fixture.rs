//! The objects that tests use: threads, spaces, ids. All of them are deleted after the test.

use super::{arena, failure, image, runner};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use l4::ipc::{self, Message, Received};
use l4::thread::{self, ThreadControl};
use l4::{kip, space, start, utcb};
use x2::control::ThreadState;
use x2::{ErrorCode, Fpage, MapItem, Rights, ThreadId, Time, Timeouts, protocol};

/// How many thread numbers a test can use.
const THREADS: u32 = 1000;
/// The first thread number of tests; lower ones belong to the initial servers.
const FIRST_THREAD: u32 = 8;
/// How many UTCBs the areas of the root task and of spaces of tests have.
const UTCBS: u64 = 256;
const STACK_LOG2: u32 = 14;
/// The version of new ids; tests of versions use others.
const VERSION: u32 = 1;

static NEXT_THREAD: AtomicU32 = AtomicU32::new(0);
static NEXT_ROOT_UTCB: AtomicU64 = AtomicU64::new(1);

/// An id that no thread has.
pub(crate) fn new_id() -> ThreadId {
    let index = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    assert!(index < THREADS, "a test has at most {THREADS} threads");
    with_version(kip().thread_info().user_base + FIRST_THREAD + index, VERSION)
}

/// The id of thread `number` with `version`, which looks global.
pub(crate) fn with_version(number: u32, version: u32) -> ThreadId {
    ThreadId::global(number, version).expect("the version makes a global id")
}

/// The base of the root task's UTCB area. The first UTCB there is the runner's.
pub(crate) fn root_utcb_area() -> u64 {
    // The runner's UTCB is the first of the area; those of other threads of the space follow it.
    utcb::pointer() & !(UTCBS * x2::utcb::SIZE - 1)
}

/// Allocates a place for the UTCB of another thread in the root task's space.
pub(crate) fn new_root_utcb() -> u64 {
    let slot = NEXT_ROOT_UTCB.fetch_add(1, Ordering::Relaxed);
    assert!(slot < UTCBS, "the root task has at most {UTCBS} threads");
    root_utcb_area() + slot * x2::utcb::SIZE
}

/// A space that a test has made.
#[derive(Debug)]
pub(crate) struct Space {
    /// The first thread of the space, which is inactive until the first [`Space::spawn`] uses it.
    pub(crate) first: ThreadId,
    /// The base of the space's UTCB area.
    pub(crate) utcb_area: u64,
    next_utcb: AtomicU64,
}

impl Space {
    /// Makes a space with the kernel interface page at the same address as in the root task, and
    /// 256 UTCBs in the usual area.
    pub(crate) fn new() -> Self {
        let first = new_id();
        let arguments =
            ThreadControl { space: first, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None };
        thread::control(first, arguments).expect("a new space");
        let utcb_area = root_utcb_area();
        let area = Fpage::memory(utcb_area, (UTCBS * x2::utcb::SIZE).ilog2());
        space::control(first, 0, kip_area(), area, ThreadId::ANY).expect("the areas are valid");
        Self { first, utcb_area, next_utcb: AtomicU64::new(0) }
    }

    /// Starts a thread that runs `body` in this space, paged by the runner.
    pub(crate) fn spawn(&self, body: impl FnOnce() + 'static) -> ThreadId {
        self.spawn_paged_by(kip().root(), body)
    }

    /// Starts a thread that runs `body` in this space, paged by `pager` after its start by the
    /// runner.
    pub(crate) fn spawn_paged_by(&self, pager: ThreadId, body: impl FnOnce() + 'static) -> ThreadId {
        let slot = self.next_utcb.fetch_add(1, Ordering::Relaxed);
        let id = if slot == 0 { self.first } else { new_id() };
        activate(id, self.first, self.utcb_area + slot * x2::utcb::SIZE).expect("a new thread");
        launch(id, pager, body);
        id
    }
}

/// The fpage of the kernel interface page, the same in every space made here.
pub(crate) fn kip_area() -> Fpage {
    Fpage::memory(kip().base(), x2::kip::SIZE_LOG2)
}

/// Makes an active thread with the runner as pager and scheduler, in the space of thread `space`;
/// it waits for its start.
pub(crate) fn activate(id: ThreadId, space: ThreadId, utcb: u64) -> thread::Result<()> {
    let root = kip().root();
    thread::control(id, ThreadControl { space, scheduler: root, pager: root, utcb: Some(utcb) })
}

/// Starts a thread that runs `body` in the root task's space.
pub(crate) fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    let id = new_id();
    spawn_as(id, body);
    id
}

/// Starts a thread that runs `body` in the root task's space, with the id `id`, which no thread
/// has.
pub(crate) fn spawn_as(id: ThreadId, body: impl FnOnce() + 'static) {
    activate(id, kip().root(), new_root_utcb()).expect("a new thread");
    launch(id, kip().root(), body);
}

/// Starts thread `id`, which waits for its start, on a new stack.
fn launch<F: FnOnce() + 'static>(id: ThreadId, pager: ThreadId, body: F) {
    let sp = new_stack(move || {
        utcb::set_pager(pager);
        body();
    });
    let words = [id.raw(), entry as *const () as u64, sp];
    let answer =
        ipc::call(kip().root(), Message::with_words(runner::START, &words)).expect("the runner answers");
    assert_eq!(answer.tag.label(), 1, "the runner could start {id:?}");
}

/// Starts the thread of a test. Called by the runner.
pub(crate) fn start_test(test: fn()) -> ipc::Result<()> {
    let id = new_id();
    activate(id, kip().root(), new_root_utcb()).expect("the test's thread");
    let sp = new_stack(move || {
        test();
        failure::end(runner::PASSED);
    });
    ipc::reply(id, Message::with_words(0, &[entry as *const () as u64, sp]))
}

/// Deletes every thread that the last test may have made.
pub(crate) fn clean_up() {
    let first = kip().thread_info().user_base + FIRST_THREAD;
    for index in 0..NEXT_THREAD.swap(0, Ordering::Relaxed).min(THREADS) {
        delete(with_version(first + index, VERSION));
    }
    NEXT_ROOT_UTCB.store(1, Ordering::Relaxed);
}

/// Deletes `thread`, if it still exists. A thread of the test may be deleting it on another
/// processor at this moment. Then the second of the two calls fails until the thread has gone (X.2
/// says nothing about this case).
fn delete(thread: ThreadId) {
    while let Err(error) = thread::delete(thread) {
        assert_eq!(error, Some(ErrorCode::InvalidThread), "deletion fails only beside another");
        // This is a pause, not just a yield: the other thread can be of low priority, on the
        // runner's own processor.
        ipc::sleep(Time::period(1000));
    }
}

/// Waits until `thread` is in `state`; a test in which that never happens hangs.
pub(crate) fn await_state(thread: ThreadId, state: ThreadState) {
    while state_of(thread) != state {
        thread::yield_now();
    }
}

/// The state of a thread.
pub(crate) fn state_of(thread: ThreadId) -> ThreadState {
    let unchanged = x2::control::UNCHANGED;
    thread::schedule(thread, unchanged, unchanged, unchanged, unchanged).expect("the thread exists").0
}

/// Receives from `from`, and meanwhile answers page faults on the program itself. For tests that
/// are pagers.
pub(crate) fn receive_as_pager(from: ThreadId) -> ipc::Result<Received> {
    as_pager(ipc::receive(from)?, from)
}

/// Sends to `thread` and receives from it, meanwhile answering its page faults on the program
/// itself.
pub(crate) fn call_as_pager(thread: ThreadId, message: Message) -> Received {
    let received = ipc::call(thread, message).expect("the thread goes on");
    as_pager(received, thread).expect("the thread goes on")
}

fn as_pager(mut received: Received, from: ThreadId) -> ipc::Result<Received> {
    while let Some(answer) = image_fault_answer(received) {
        received = ipc::ipc(received.from, from, Timeouts::NEVER, answer.tag())?;
    }
    Ok(received)
}

/// The answer to a page fault of another space on the program itself.
pub(crate) fn image_fault_answer(request: Received) -> Option<Message> {
    let is_fault = protocol::of(request.tag) == protocol::PAGE_FAULT && request.tag.untyped() == 2;
    if !is_fault || !image::range().contains(&request.word(0)) || arena::contains_page(request.word(0)) {
        return None;
    }
    let address = request.word(0);
    let page = Fpage::memory(address, 12).with_rights(Rights::ALL);
    Some(Message::new(0).map_item(MapItem::map(page, address & !0xfff)))
}

/// Makes a stack for [`entry`], which pops two words; `body` lies above them. Returns the stack
/// pointer.
fn new_stack<F: FnOnce() + 'static>(body: F) -> u64 {
    let top = arena::stack(STACK_LOG2) + (1 << STACK_LOG2);
    let body_at = (top - size_of::<F>() as u64) & !(align_of::<F>().max(16) as u64 - 1);
    assert!(top - body_at < 1 << (STACK_LOG2 - 1), "the body's captures fit the stack");
    let sp = body_at - 16;
    // SAFETY: the block is new and large enough; the places are aligned and do not overlap.
    unsafe {
        (body_at as *mut F).write(body);
        (sp as *mut u64).write(body_at);
        ((sp + 8) as *mut u64).write(run_body::<F> as *const () as u64);
    }
    sp
}

/// The first instructions of every thread of a test, in any space: they take the thread's body from
/// the stack.
#[unsafe(naked)]
extern "C" fn entry() -> ! {
    // At the call the stack pointer is a multiple of 16, as the calling convention requires.
    core::arch::naked_asm!("xor ebp, ebp", "pop rdi", "pop rsi", "call rsi", "ud2")
}

/// Runs the body at `body`, then sleeps.
///
/// # Safety
/// `body` points to an `F` that is not used again.
unsafe extern "C" fn run_body<F: FnOnce()>(body: *mut F) -> ! {
    utcb::set_exception_handler(kip().root());
    // SAFETY: the caller keeps this function's contract.
    let body = unsafe { body.read() };
    body();
    start::halt()
}
