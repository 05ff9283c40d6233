//! Tests of threads of a server, made by the run-time library.

use crate::report::Report;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{kip, utcb};
use rt::per_processor::PerProcessor;
use rt::root::{Status, memory};
use rt::thread::{self, JoinHandle, Local, STACK_MAXIMUM, STACK_SIZE};

/// Threads that the configuration allows in addition to the first.
const QUOTA: usize = 15;

pub(crate) fn test() -> ! {
    let mut report = Report::plan(9);
    let joined = thread::spawn(|| 6 * 7).map(JoinHandle::join);
    report.test(joined == Ok(42), "RT0001", "a thread returns a value to who joins it");
    report.test(early() && late(), "RT0002", "it does so whether it ends before the join or behind it");
    let nested = thread::spawn(|| thread::spawn(|| 5).map(JoinHandle::join)).map(JoinHandle::join);
    report.test(nested == Ok(Ok(5)), "RT0003", "threads make and join threads");
    report.test(
        local_values(),
        "RT0004",
        "each thread has values of its own, which are dropped when it ends",
    );
    report.test(left_alone(), "RT0005", "a thread whose handle is dropped ends, and what it had comes back");
    report.test(wrong_stacks(), "RT0006", "a stack that is too small or too large is refused");
    report.test(
        too_many(),
        "RT0007",
        "as many threads as the quota allows run at once, and no more; nothing is lost",
    );
    report.test(
        on_processors(),
        "RT0008",
        "threads run where they are placed, each with that processor's memory",
    );
    report.test(results_are_dropped(), "RT0009", "a result that nobody wants is dropped once");
    l4::start::halt()
}

/// Receives from `thread` the message that reports its progress.
fn hear(thread: &JoinHandle<impl Send>) -> bool {
    ipc::receive(thread.id()).is_ok()
}

/// Tests a thread that has certainly ended when it is joined.
fn early() -> bool {
    let me = utcb::my_global_id();
    let Ok(thread) = thread::spawn(move || ipc::send(me, Message::new(0)).is_ok()) else { return false };
    hear(&thread) && {
        ipc::sleep(l4::x2::Time::period(20_000));
        thread.join()
    }
}

/// Tests a thread that certainly still runs when it is joined.
fn late() -> bool {
    let thread = thread::spawn(|| {
        ipc::sleep(l4::x2::Time::period(20_000));
        7
    });
    thread.map(JoinHandle::join) == Ok(7)
}

/// Counts its instances that exist.
struct Counted;

static COUNT: AtomicU64 = AtomicU64::new(0);

impl Counted {
    fn new() -> Counted {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

fn local_values() -> bool {
    static NUMBER: Local<(AtomicU64, Counted)> = Local::new(|| (AtomicU64::new(0), Counted::new()));
    let add = |number| NUMBER.with(|(sum, _)| sum.fetch_add(number, Ordering::Relaxed) + number);
    let threads = [1, 2, 3].map(|number| thread::spawn(move || (add(number), add(number))));
    let sums = threads.map(|thread| thread.map(JoinHandle::join));
    let good = sums == [1, 2, 3].map(|number| Ok((Ok(number), Ok(2 * number))));
    good && add(10) == Ok(10) && COUNT.load(Ordering::Relaxed) == 1
}

/// The memory that root could still give this server, after threads that have ended were freed.
fn available() -> Option<u64> {
    thread::spawn(|| ()).ok()?.join();
    memory::available().ok()
}

fn left_alone() -> bool {
    static ENDED: AtomicU64 = AtomicU64::new(0);
    let before = available();
    for round in 1..=200 {
        let Ok(thread) = thread::spawn(|| ENDED.fetch_add(1, Ordering::Relaxed)) else { return false };
        drop(thread);
        // In some rounds a thread has ended when the next begins, in others several have not.
        while round % 8 == 0 && ENDED.load(Ordering::Relaxed) < round {
            ipc::sleep(l4::x2::Time::period(1000));
        }
    }
    // The last threads have counted, but may not quite have ended.
    (0..1000).any(|_| {
        ipc::sleep(l4::x2::Time::period(1000));
        before.is_some() && available() == before
    })
}

fn wrong_stacks() -> bool {
    let before = available();
    let large = [7_u64; 600];
    let spawn = |stack| thread::spawn_with_stack(stack, move || large[599]).map(JoinHandle::join);
    let refused = [0, 1, 4096, STACK_MAXIMUM + 1, usize::MAX].map(spawn);
    refused.iter().all(|result| *result == Err(Status::InvalidArgument))
        && spawn(3 * 4096) == Ok(7)
        && spawn(STACK_MAXIMUM) == Ok(7)
        && available() == before
}

fn too_many() -> bool {
    let before = available();
    let mut threads = alloc::vec::Vec::new();
    let refused = loop {
        match thread::spawn(|| ipc::wait().map(|message| message.word(0))) {
            Ok(thread) => threads.push(thread),
            Err(status) => break status,
        }
    };
    let many = threads.len();
    let answers = threads.into_iter().enumerate().all(|(number, thread)| {
        let told = ipc::send(thread.id(), Message::with_words(0, &[number as u64]));
        told.is_ok() && thread.join() == Ok(number as u64)
    });
    refused == Status::QuotaExceeded && many == QUOTA && answers && available() == before
}

fn on_processors() -> bool {
    let processors = u64::from(kip().processor_info().processors);
    let Ok(counters) = PerProcessor::new(|_| AtomicU64::new(0)) else { return false };
    let counters = alloc::sync::Arc::new(counters);
    let start = |processor| {
        let counters = counters.clone();
        let thread = thread::spawn(move || {
            ipc::wait().map(|_| counters.here().fetch_add(1 + processor, Ordering::Relaxed)).is_ok()
        });
        thread.ok().filter(|thread| thread.place(processor).is_ok())
    };
    let threads: alloc::vec::Vec<_> = (0..processors).map(start).collect();
    let refused = thread::spawn(|| ()).is_ok_and(|thread| {
        let refused = thread.place(processors) == Err(Status::InvalidArgument);
        thread.join();
        refused
    });
    let ran = threads.into_iter().all(|thread| {
        thread.is_some_and(|thread| ipc::send(thread.id(), Message::new(0)).is_ok() && thread.join())
    });
    let counted = counters.iter().zip(1..).all(|(counter, sum)| counter.load(Ordering::Relaxed) == sum);
    refused && ran && counted && counters.iter().count() as u64 == processors
}

fn results_are_dropped() -> bool {
    let before = COUNT.load(Ordering::Relaxed);
    for round in 0..40 {
        let Ok(thread) = thread::spawn_with_stack(STACK_SIZE, Counted::new) else { return false };
        if round % 2 == 0 {
            ipc::sleep(l4::x2::Time::period(1000));
        }
        drop(thread);
    }
    (0..1000).any(|_| {
        ipc::sleep(l4::x2::Time::period(1000));
        COUNT.load(Ordering::Relaxed) == before
    })
}

/// Overflows the stack of a thread.
pub(crate) fn run_over() -> ! {
    #[allow(unconditional_recursion, reason = "that is what it is for")]
    fn deeper(depth: u64) -> u64 {
        let here = core::hint::black_box([depth; 64]);
        deeper(depth + 1) + here[7]
    }
    let _ = thread::spawn(|| deeper(0)).map(JoinHandle::join);
    l4::start::halt()
}
