//! Measures the cost of the library alone: runs each operation many times over a machine that does
//! nothing.
//!
//! `cargo run --release -p mach --example cost` prints nanoseconds on the host. With the name of
//! one operation and a count as arguments only that operation is run; under `valgrind
//! --tool=callgrind`, the difference between two counts is instructions.

#[path = "../tests/ipc/bench.rs"]
mod bench;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bench::{Pair, now};
use mach::ipc::typed::MsgOptions;
use mach::ipc::{Ipc, Limits, Name, NameRule};

use mach::machine::buddy::Buddy;
use mach::machine::{
    Breakpoints, Event, ExecutionContext, Frame, Machine, NonblockingHandler, PAGE_SHIFT, PAGE_SIZE,
    PageStatus, PmapChange, PmapFull, Protection, Resume, SystemCall, ThreadState, Times,
};
use mach::thread::PriorityRange;
use mach::vm::{Placement, Vm, VmMap};
use mach::{Host, KernResult};

/// A machine whose frames have no contents, and whose translations are not kept.
struct Nothing {
    buddy: Mutex<Buddy>,
}

const FRAMES: u32 = 1 << 16;

impl Machine for Nothing {
    type Pmap = ();
    type Space = ();
    type Thread = NoContext;

    fn page_shifts(&self) -> &[u32] {
        &[PAGE_SHIFT, 21]
    }
    async fn pmap_create(&self) -> KernResult<()> {
        Ok(())
    }
    fn pmap_destroy(&self, (): ()) {}
    fn space(&self, (): &()) {}
    fn pmap_change(&self, (): &(), _: &[PmapChange]) -> Result<(), PmapFull> {
        Ok(())
    }
    fn pmap_query(&self, (): &(), _: &[u64], _: &mut [PageStatus]) {}
    fn frame_limit(&self) -> u32 {
        FRAMES
    }
    fn free_frames(&self) -> u32 {
        self.buddy.lock().unwrap().free_frames()
    }
    fn allocate_frames(&self, order: u32) -> Option<Frame> {
        self.buddy.lock().unwrap().allocate(order).map(Frame)
    }
    fn release_frames(&self, first: Frame, order: u32) {
        self.buddy.lock().unwrap().release(first.0, order);
    }
    fn zero_frame(&self, _: Frame) {}
    fn copy_frame(&self, _: Frame, _: Frame) {}
    fn read_frame(&self, _: Frame, _: usize, _: &mut [u8]) {}
    fn write_frame(&self, _: Frame, _: usize, _: &[u8]) {}
    fn copy_between(&self, _: (Frame, usize), _: (Frame, usize), _: usize) {}
    fn load_u32(&self, _: Frame, _: usize) -> u32 {
        0
    }
    fn compare_exchange_u32(&self, _: Frame, _: usize, _: u32, _: u32) -> Result<u32, u32> {
        Ok(0)
    }
    fn frames_protect(&self, _: &[Frame], _: Protection) {}
    fn frames_status(&self, _: &[Frame], _: &mut [PageStatus]) {}
    fn reserve_memory(&self, _: usize) -> bool {
        true
    }
    fn unreserve_memory(&self, _: usize) {}
    async fn thread_create(&self, (): &()) -> KernResult<NoContext> {
        Ok(NoContext)
    }
    fn extended_state_size(&self) -> usize {
        0
    }

    fn now(&self) -> u64 {
        0
    }
    fn sleep_until(&self, _: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
    fn processors(&self) -> usize {
        1
    }

    fn current_processor(&self) -> usize {
        0
    }

    fn synchronize_processors(&self) {}
}

/// A thread of the machine that never runs.
#[derive(Clone)]
struct NoContext;

impl ExecutionContext for NoContext {
    fn answer(&self, _: Resume) {}
    fn next_event(&self) -> impl Future<Output = Event> + Send {
        std::future::ready(Event::Ended)
    }
    fn hold(&self, _: &SystemCall) -> bool {
        false
    }
    fn surrender(&self) {}
    fn set_handler(&self, _: Arc<dyn NonblockingHandler>) {}
    fn recall(&self) -> KernResult {
        Ok(())
    }
    fn stop(&self) -> KernResult {
        Ok(())
    }
    fn unstop(&self) -> KernResult {
        Ok(())
    }
    fn end(&self) {}
    fn state(&self) -> KernResult<ThreadState> {
        Ok(ThreadState::default())
    }
    fn set_state(&self, _: &ThreadState) -> KernResult {
        Ok(())
    }
    fn extended_state(&self) -> KernResult<Vec<u8>> {
        Ok(Vec::new())
    }
    fn set_extended_state(&self, _: &[u8]) -> KernResult {
        Ok(())
    }
    fn set_breakpoints(&self, _: &Breakpoints) -> KernResult {
        Ok(())
    }
    fn debug_status(&self) -> KernResult<u64> {
        Ok(0)
    }
    fn begin_handler(&self) -> KernResult<(ThreadState, Vec<u8>)> {
        Ok(Default::default())
    }
    fn end_handler(&self, _: &ThreadState, _: &[u8]) -> KernResult {
        Ok(())
    }
    fn times(&self) -> Times {
        Times::default()
    }
    fn set_priority(&self, _: u8, _: u32) -> KernResult {
        Ok(())
    }
    fn processor(&self) -> usize {
        0
    }
    fn affinity(&self) -> u64 {
        1
    }
    fn set_affinity(&self, _: u64) -> KernResult {
        Ok(())
    }
}

const BASE: u64 = 1 << 30;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let only = arguments.get(1).map(String::as_str);
    let count: u64 = arguments.get(2).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let mut buddy = Buddy::new(FRAMES).unwrap();
    buddy.donate(0, FRAMES);
    let vm = Vm::new(Nothing { buddy: Mutex::new(buddy) }).unwrap();
    let run = |name: &str, operation: &mut dyn FnMut(u64)| {
        if only.is_none_or(|only| only == name) {
            let start = Instant::now();
            (0..count).for_each(operation);
            println!("{name:<24} {:>8.1} ns", start.elapsed().as_nanos() as f64 / count as f64);
        }
    };
    let new_map = || now(VmMap::new(&vm, PAGE_SIZE, 1 << 47)).unwrap();

    let map = new_map();
    now(map.allocate(Placement::Fixed(BASE), count * PAGE_SIZE)).unwrap();
    run("zero_fill_fault", &mut |page| now(map.fault(BASE + page * PAGE_SIZE, Protection::WRITE)).unwrap());
    if only.is_some_and(|only| only != "zero_fill_fault") {
        (0..20_000.min(count))
            .for_each(|page| now(map.fault(BASE + page * PAGE_SIZE, Protection::WRITE)).unwrap());
    }
    run("resident_fault", &mut |page| now(map.fault(BASE + page * PAGE_SIZE, Protection::READ)).unwrap());
    let child = now(map.fork()).unwrap();
    run("copy_on_write_fault", &mut |page| {
        now(child.fault(BASE + page * PAGE_SIZE, Protection::WRITE)).unwrap()
    });
    drop(child);
    drop(map);

    let map = new_map();
    run("allocate_touch_free", &mut |_| {
        let at = now(map.allocate(Placement::Above(BASE), PAGE_SIZE)).unwrap();
        now(map.fault(at, Protection::WRITE)).unwrap();
        now(map.deallocate(at, PAGE_SIZE)).unwrap();
    });

    let host = Host::new(vm.clone(), PriorityRange::default(), 10_000);
    let task = now(host.create_task(PAGE_SIZE, 1 << 47)).unwrap();
    for region in 0..16 {
        let at = BASE + region * 16 * PAGE_SIZE;
        now(task.map().allocate(Placement::Fixed(at), 8 * PAGE_SIZE)).unwrap();
        (0..4).for_each(|page| now(task.map().fault(at + page * PAGE_SIZE, Protection::WRITE)).unwrap());
    }
    run("task_inherit_terminate", &mut |_| now(now(task.create_task(true)).unwrap().terminate()));
    run("thread_create_terminate", &mut |_| now(task.create_thread()).unwrap().terminate());

    let map = new_map();
    let entries = if only.is_none_or(|only| only == "region_of_65536") { 1 << 16 } else { 1 };
    for entry in 0..entries {
        now(map.allocate(Placement::Fixed(BASE + 2 * entry * PAGE_SIZE), PAGE_SIZE)).unwrap();
    }
    run("region_of_65536", &mut |turn| {
        now(map.region(BASE + 2 * (turn * 7919 % entries) * PAGE_SIZE)).unwrap();
    });

    messages(&vm, &run);
}

/// Measures an operation under a name.
type Run<'a> = dyn Fn(&str, &mut dyn FnMut(u64)) + 'a;

/// Operations on ports and messages.
fn messages(vm: &Arc<Vm<Nothing>>, run: &Run<'_>) {
    let limits = Limits { names: 1 << 20, bytes: 1 << 30, ..Limits::default() };
    let ipc = Ipc::new(vm, NameRule::Lowest, limits).unwrap();
    let task = || bench::Task::new(&ipc, now(VmMap::new(vm, PAGE_SIZE, 1 << 47)).unwrap());
    let pair = Pair::new(task(), task());
    let own = pair.client.port();
    pair.client.give(own, &pair.client);
    run("port_allocate_destroy", &mut |_| {
        let port = pair.client.port();
        pair.client.space.destroy(port).unwrap();
    });
    run("send_receive_self", &mut |_| pair.to_self(own));
    run("rpc_32", &mut |_| pair.rpc(&[]));
    run("rpc_1024", &mut |_| pair.rpc(&[0; 992]));
    run("rpc_4096", &mut |_| pair.rpc(&[0; 4064]));

    // 1 MiB out of line, which the receiver gives back.
    const SIZE: u64 = 1 << 20;
    let map = now(VmMap::new(vm, PAGE_SIZE, 1 << 47)).unwrap();
    now(map.allocate(Placement::Fixed(BASE), SIZE)).unwrap();
    (0..SIZE / PAGE_SIZE)
        .for_each(|page| now(map.fault(BASE + page * PAGE_SIZE, Protection::WRITE)).unwrap());
    let sender = bench::Task::new(&ipc, map);
    let sends = pair.server.give(pair.port, &sender);
    let mut body = [0; 16];
    body[..8].copy_from_slice(&(9 | 8 << 8 | SIZE << 32).to_le_bytes());
    body[8..].copy_from_slice(&BASE.to_le_bytes());
    run("out_of_line_1_mib", &mut |_| {
        sender.write(19 | 1 << 31, sends, Name::NULL, &body);
        now(sender.call(MsgOptions::SEND, 48, Name::NULL)).unwrap();
        now(pair.server.call(MsgOptions::RECEIVE, 0, pair.port)).unwrap();
        now(pair.server.deallocate(pair.server.word(40), SIZE));
    });

    run("send_receive_of_1", &mut |_| {
        pair.client.queue(own);
        now(pair.client.call(MsgOptions::RECEIVE, 0, own)).unwrap();
    });

    // The same with many ports, and many messages in one queue.
    for _ in 0..100_000 {
        let port = pair.server.port();
        pair.server.give(port, &pair.client);
    }
    run("rpc_32_of_100000_ports", &mut |_| pair.rpc(&[]));
    for _ in 0..10_000 {
        pair.client.queue(own);
    }
    run("send_receive_of_10000", &mut |_| {
        pair.client.queue(own);
        now(pair.client.call(MsgOptions::RECEIVE, 0, own)).unwrap();
    });
}
