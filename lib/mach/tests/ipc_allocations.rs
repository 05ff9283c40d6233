//! Counts of the allocations of messages and ports. A null RPC allocates nothing, however many
//! ports and queued messages exist.

#[path = "ipc/bench.rs"]
#[expect(dead_code, reason = "the example uses the rest")]
mod bench;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bench::{Pair, Task, now};
use mach::ipc::{Ipc, Limits, NameRule};
use mach::machine::PAGE_SIZE;
use mach::machine::simulated::Simulated;
use mach::vm::{Vm, VmMap};

/// An allocator that counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: each request goes to the system's allocator unchanged, and counting neither allocates nor
// unwinds.
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

/// How many allocations an operation makes, after it has been repeated until all buffers exist.
fn allocations(mut operation: impl FnMut()) -> u64 {
    (0..10).for_each(|_| operation());
    let before = ALLOCATIONS.get();
    (0..100).for_each(|_| operation());
    ALLOCATIONS.get() - before
}

#[test]
fn a_null_rpc_allocates_nothing() {
    let machine = Simulated::new(64);
    let vm = Vm::new(machine.clone()).unwrap();
    let limits = Limits { names: 1 << 20, bytes: 1 << 30, ..Limits::default() };
    for names in [NameRule::Lowest, NameRule::Generation] {
        let ipc = Ipc::new(&vm, names, limits).unwrap();
        let task = || Task::new(&ipc, now(VmMap::new(&vm, PAGE_SIZE, 1 << 47)).unwrap());
        let pair = Pair::new(task(), task());
        for body in [0, 96, 992, 4064] {
            let body = vec![0; body];
            assert_eq!(allocations(|| pair.rpc(&body)), 0, "with {} bytes", body.len());
        }
        // Many ports with many queued messages do not make an RPC allocate either.
        for _ in 0..10_000 {
            let port = pair.server.port();
            pair.server.give(port, &pair.client);
        }
        assert_eq!(allocations(|| pair.rpc(&[])), 0);
        let own = pair.client.port();
        pair.client.give(own, &pair.client);
        assert_eq!(allocations(|| pair.to_self(own)), 0);
    }
}
