//! Tests of requests to root from all processors at the same time, of long requests, and of threads
//! that are deleted while root serves them.

use crate::report::Report;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use direct::Transport;
use interfaces::root::{encode_root_memory_allocate, encode_root_memory_available};
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::x2::Time;
use l4::x2::extension::SystemCallMode;
use l4::{kip, utcb};
use rt::root::space::{self, Description};
use rt::root::{Status, memory, names, servers};
use rt::start_page;
use rt::thread::{self, JoinHandle};

/// The address of the memory that threads allocate, each in a part of its own.
const AREA: u64 = 0x1_0000_0000;
const PART: u64 = 1 << 32;
/// A size that root clears for so long that other requests are served meanwhile.
const LARGE: u64 = 64 << 20;
/// The size of the allocations that use up the quota.
const PIECE: u64 = 256 << 10;
/// The indices of two servers in the configuration: this one, and the one that ends repeatedly.
const TESTS: u64 = 0;
const VICTIM: u64 = 1;
/// How often root starts a server again.
const RESTARTS: u64 = 5;

fn processors() -> u64 {
    kip().processor_info().processors.into()
}

/// Runs `main` in two threads on each processor. Returns their results.
fn everywhere<T: Send + 'static>(main: impl Fn(u64) -> T + Copy + Send + 'static) -> Option<Vec<T>> {
    let start = |number| {
        let thread = thread::spawn(move || ipc::wait().ok().map(|_| main(number))).ok()?;
        thread.place(number % processors()).ok()?;
        Some(thread)
    };
    let threads: Option<Vec<_>> = (0..2 * processors()).map(start).collect();
    let threads = threads?;
    let told = threads.iter().all(|thread| ipc::send(thread.id(), Message::new(0)).is_ok());
    threads.into_iter().filter(|_| told).map(JoinHandle::join).collect()
}

/// Whether all threads returned true.
fn all_good(main: impl Fn(u64) -> bool + Copy + Send + 'static) -> bool {
    everywhere(main).is_some_and(|results| results.into_iter().all(|good| good))
}

/// The resources that this server uses, after threads that have ended were freed.
fn possessions() -> Option<[u64; 4]> {
    thread::spawn(|| ()).ok()?.join();
    let server = servers::describe(TESTS).ok()?;
    Some([server.used, server.threads, server.spaces, memory::available().ok()?])
}

fn free(address: u64, size: u64) -> bool {
    // SAFETY: there are no references to the memory.
    unsafe { memory::free(address, size) }.is_ok()
}

const SPACE: Description = Description {
    kernel_interface: 0x7fff_8000_0000,
    utcb_area: 0x7fff_8001_0000,
    utcb_area_log2: 14,
    system_calls: SystemCallMode::None,
    emulation_entry: 0,
    kernel_memory: u64::MAX,
};

pub(crate) fn test() -> ! {
    let mut report = Report::plan(9);
    let before = possessions();
    report.test(own_root(), "ROOT0500", "each processor is served by a thread of root's own");
    report.test(
        all_good(every_kind) && possessions() == before,
        "ROOT0501",
        "requests of every kind come from all processors at once, and nothing is left behind",
    );
    report.test(
        memory_quota() && possessions() == before,
        "ROOT0502",
        "who asks at once from all processors gets exactly the quota of memory",
    );
    report.test(
        space_quota() && possessions() == before,
        "ROOT0503",
        "and exactly the quota of spaces, which come to one and all",
    );
    report.test(
        (0..processors()).all(quick_beside_long) && possessions() == before,
        "ROOT0504",
        "a short request beside a long one is done before the long one is",
    );
    report.test(
        (0..processors()).all(deleted_while_served) && possessions() == before,
        "ROOT0505",
        "a thread may be deleted while root clears memory for it, which is the server's then",
    );
    report.test(
        all_good(deaf) && possessions() == before,
        "ROOT0506",
        "who does not wait for its answer stops nobody",
    );
    let late = everywhere(|_| names::lookup_wait("late"));
    let same = late.is_some_and(|late| late[0].is_ok() && late.iter().all(|&thread| thread == late[0]));
    report.test(same, "ROOT0507", "threads on all processors wait for the same name");
    report.test(
        victim_is_given_up(),
        "ROOT0508",
        "a server that ends in the midst of its requests on all processors is taken down and started again",
    );
    l4::start::halt()
}

/// Whether the threads on each processor find a thread of root's there that answers, another one on
/// each processor.
fn own_root() -> bool {
    let Some(mut roots) = everywhere(|_| (start_page::root().raw(), memory::available().is_ok())) else {
        return false;
    };
    let answer = roots.iter().all(|&(_, answers)| answers);
    roots.sort_unstable();
    roots.dedup();
    answer && roots.len() as u64 == processors()
}

fn every_kind(number: u64) -> bool {
    let here = AREA + number * PART;
    (0..12).all(|round| {
        // Root clears short areas in one step, long ones in several. Some areas are aligned so that
        // they consist of many small pages.
        let (address, size) = (here + (round % 3) * 4096, 4096 << (round % 11));
        let cleared = || {
            let (first, last) = (address as *mut u64, (address + size - 8) as *mut u64);
            // SAFETY: root has just mapped the memory for this thread alone.
            unsafe {
                let zero = first.read_volatile() == 0 && last.read_volatile() == 0;
                first.write_volatile(number);
                last.write_volatile(number);
                zero
            }
        };
        let memory = memory::allocate(address, size).is_ok()
            && memory::allocate(address, size) == Err(Status::InvalidArgument)
            && cleared()
            && free(address, size)
            && memory::allocate_pool(address, size).is_ok()
            && free(address, size);
        // The request may fail because too many spaces exist at the moment.
        let spaces = match space::create(&SPACE, utcb::my_global_id()) {
            Ok((space, _)) => {
                let second = space::create_thread(space, 1, utcb::my_global_id());
                second.is_ok_and(|thread| space::delete_thread(thread).is_ok())
                    && space::delete(space).is_ok()
            }
            Err(error) => error == Status::QuotaExceeded,
        };
        memory && spaces && names::lookup("nobody") == Err(Status::NotFound)
    })
}

fn memory_quota() -> bool {
    let take = |number| {
        let here = AREA + number * PART;
        (0..).take_while(|&piece| memory::allocate(here + piece * PIECE, PIECE).is_ok()).count() as u64
    };
    // The threads have their stacks when the first of them begins.
    static LEFT: AtomicU64 = AtomicU64::new(0);
    LEFT.store(0, Ordering::Relaxed);
    let taken = everywhere(move |number| {
        let left = memory::available().unwrap_or(0);
        let _ = LEFT.compare_exchange(0, left, Ordering::Relaxed, Ordering::Relaxed);
        take(number)
    });
    let Some(taken) = taken else { return false };
    let sum: u64 = taken.iter().sum();
    let back = (0..)
        .zip(&taken)
        .all(|(number, &pieces)| (0..pieces).all(|piece| free(AREA + number * PART + piece * PIECE, PIECE)));
    let before = servers::describe(TESTS).map_or(0, |server| server.limit);
    // Other threads may have allocated some of the amount before the first thread read it.
    let left = LEFT.load(Ordering::Relaxed) / PIECE;
    back && sum >= left && sum * PIECE <= before && sum - left <= 2 * processors()
}

fn space_quota() -> bool {
    let make = |_| {
        let mut made = Vec::new();
        while let Ok((space, _)) = space::create(&SPACE, utcb::my_global_id()) {
            made.push(space);
        }
        made
    };
    let Some(made) = everywhere(make) else { return false };
    let count = made.iter().flatten().count();
    // The server's own space is one of the eight.
    count == 7 && made.into_iter().flatten().all(|space| space::delete(space).is_ok())
}

/// On one processor a thread has much memory cleared, and another one makes a short request
/// meanwhile. Returns whether the short one is answered first.
fn quick_beside_long(processor: u64) -> bool {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static SERVED: AtomicU64 = AtomicU64::new(0);
    BEGUN.store(false, Ordering::SeqCst);
    SERVED.store(0, Ordering::SeqCst);
    let quick = thread::spawn(|| {
        while !BEGUN.load(Ordering::SeqCst) {
            l4::thread::yield_now();
        }
        for _ in 0..10 {
            if memory::allocate(AREA + PART, 4096).is_ok() && free(AREA + PART, 4096) {
                SERVED.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let long = thread::spawn(|| {
        BEGUN.store(true, Ordering::SeqCst);
        let given = memory::allocate(AREA, LARGE).is_ok();
        let served = SERVED.load(Ordering::SeqCst);
        given && served == 10 && free(AREA, LARGE)
    });
    let (Ok(quick), Ok(long)) = (quick, long) else { return false };
    let placed = quick.place(processor).is_ok() && long.place(processor).is_ok();
    quick.join();
    long.join() && placed
}

fn deleted_while_served(processor: u64) -> bool {
    static STACK: l4::start::Stack = l4::start::Stack::new();
    static ASKS: AtomicBool = AtomicBool::new(false);
    extern "C" fn ask() -> ! {
        let _ = ipc::wait();
        ASKS.store(true, Ordering::SeqCst);
        let _ = memory::allocate(AREA, LARGE);
        l4::start::halt()
    }
    ASKS.store(false, Ordering::SeqCst);
    let sp = &raw const STACK as u64 + l4::start::STACK_SIZE as u64 - 8;
    // SAFETY: the function needs only a stack, and no other thread uses this one now.
    let Ok(asker) = (unsafe { rt::root::create_thread(ask as extern "C" fn() -> ! as usize as u64, sp) })
    else {
        return false;
    };
    let unchanged = l4::x2::control::UNCHANGED;
    let placed = l4::thread::schedule(asker, unchanged, processor, unchanged, unchanged).is_ok();
    let told = ipc::send(asker, Message::new(0)).is_ok();
    let asked =
        wait_until(|| ASKS.load(Ordering::SeqCst) && memory::available().is_ok_and(|left| left < LARGE));
    let deleted = rt::root::delete_thread(asker).is_ok();
    // While root works at the request, another thread cannot free the memory.
    placed && told && asked && deleted && wait_until(|| free(AREA, LARGE))
}

/// Sends requests without reading the answers.
fn deaf(number: u64) -> bool {
    let (mut registers, root) = (Direct::default(), start_page::root());
    let here = AREA + number * PART;
    (0..10).all(|_| {
        let allocate = encode_root_memory_allocate(&mut registers, here, 512 << 10);
        let sent = allocate.is_ok_and(|tag| registers.send(root, tag, &[]).is_ok());
        let available = encode_root_memory_available(&mut registers);
        let sent = sent && available.is_ok_and(|tag| registers.send(root, tag, &[]).is_ok());
        sent && wait_until(|| free(here, 512 << 10))
    })
}

fn wait_until(mut good: impl FnMut() -> bool) -> bool {
    (0..10_000).any(|_| {
        good() || {
            ipc::sleep(Time::period(1000));
            false
        }
    })
}

fn victim_is_given_up() -> bool {
    let victim = || servers::describe(VICTIM);
    let given_up = wait_until(|| {
        victim().is_ok_and(|victim| !victim.runs && victim.restarts == RESTARTS && victim.used == 0)
    });
    given_up && victim().is_ok_and(|victim| victim.threads + victim.spaces + victim.kernel_memory == 0)
}

/// Makes requests on all processors, and ends while they are served.
pub(crate) fn end_while_served() -> ! {
    let start = |number: u64| {
        let thread = thread::spawn(move || while every_kind(number) {}).ok()?;
        thread.place(number % processors()).ok()
    };
    let started = (0..2 * processors()).all(|number| start(number).is_some());
    assert!(started, "what it had before was taken back");
    ipc::sleep(Time::period(30_000));
    if memory::allocate(AREA + 64 * PART, 16 << 20).is_err() { crate::fault() } else { rt::root::exit(3) }
}

/// Registers a name for which other servers are waiting.
pub(crate) fn register_late() -> ! {
    ipc::sleep(Time::period(300_000));
    names::register(utcb::my_global_id()).expect("it is a thread of this server");
    l4::start::halt()
}
