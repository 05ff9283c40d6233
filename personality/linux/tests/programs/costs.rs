//! The cost of the commonest calls: how many allocations each makes, which the tests limit, and the
//! time, as far as the machine shows it.

use crate::run_in;
use crate::world::{DATA, Program, World};
use mach::machine::{Resume, SystemCall};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;
use unix::front_end::{FrontEnd, Next};

/// An allocator that counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every request is passed on as it is; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Makes a call many times; returns the allocations and nanoseconds of one.
async fn cost(p: &mut Program, number: u64, arguments: &[u64], expected: i64) -> (f64, f64) {
    const TIMES: u32 = 2000;
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let request = SystemCall { number, arguments: all };
    let mut cost = (0, 0);
    for times in [10, TIMES] {
        let (before, start) = (ALLOCATIONS.get(), Instant::now());
        for _ in 0..times {
            match p.world.linux.serve_call(&p.thread, &p.kept, request).await {
                Next::Resume(Resume::Return(value)) => assert_eq!(value as i64, expected, "call {number}"),
                _ => panic!("call {number} did not just return"),
            }
        }
        cost = (ALLOCATIONS.get() - before, start.elapsed().as_nanos());
    }
    (cost.0 as f64 / f64::from(TIMES), cost.1 as f64 / f64::from(TIMES))
}

/// `--nocapture` prints the figures (only their ratios mean something: this is a simulated machine
/// without optimisation).
#[test]
fn common_calls_allocate_no_more_than_listed() {
    let world = World::new();
    world.install_devices();
    world.install("/file", 0o644, b"contents");
    run_in(&world, async |p| {
        let zero = p.string(DATA, "/dev/zero").await?;
        let null = p.string(DATA + 0x40, "/dev/null").await?;
        let file = p.string(DATA + 0x80, "/file").await?;
        assert_eq!(p.call(2, &[zero, 0]).await?, 0);
        assert_eq!(p.call(2, &[null, 1]).await?, 1);
        assert_eq!(p.call(2, &[file, 2]).await?, 2);
        assert_eq!(p.call(293, &[DATA + 0x100, 0]).await?, 0);
        let buffer = DATA + 0x200;
        p.store(buffer, &[0; 0x200]).await?;
        let rows: [(&str, u64, &[u64], i64, f64); 14] = [
            ("getpid", 39, &[], 1, 0.0),
            ("getppid", 110, &[], 0, 0.0),
            ("read 1 of /dev/zero", 0, &[0, buffer, 1], 1, 0.0),
            ("write 1 to /dev/null", 1, &[1, buffer, 1], 1, 0.0),
            ("pread 1 of a file", 17, &[2, buffer, 1, 0], 1, 0.0),
            // There is one allocation: a boxed future takes the vnode's locks.
            ("pwrite 1 to a file", 18, &[2, buffer, 1, 0], 1, 1.0),
            ("fstat", 5, &[2, buffer], 0, 0.0),
            ("lseek", 8, &[2, 0, 0], 0, 0.0),
            ("dup2", 33, &[2, 5], 5, 0.0),
            ("rt_sigprocmask", 14, &[0, 0, buffer, 8], 0, 0.0),
            ("clock_gettime", 228, &[1, buffer], 0, 0.0),
            ("futex wake", 202, &[buffer, 129, 1], 0, 0.0),
            // The path is copied into a string.
            ("stat", 4, &[file, buffer], 0, 3.0),
            ("access", 21, &[file, 4], 0, 3.0),
        ];
        let mut wasteful = Vec::new();
        for (name, number, arguments, expected, allowed) in rows {
            let (allocations, time) = cost(p, number, arguments, expected).await;
            println!("{name:24} {allocations:6.1} allocations {time:8.0} ns");
            if allocations > allowed {
                wasteful.push(format!("{name}: {allocations} allocations, not {allowed}"));
            }
        }
        assert!(wasteful.is_empty(), "{}", wasteful.join("\n"));
        Ok(())
    });
}
