//! Tests of several programs at a time, over slow pagers and with little memory. They are cancelled
//! and terminated at random points. The memory of the others must be right, and nothing may leak.

#[allow(dead_code, reason = "the model asks more of the pagers")]
#[path = "model/pagers.rs"]
mod pagers;
#[allow(dead_code, reason = "the model asks more of swap space")]
#[path = "model/swap.rs"]
mod swap;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use mach::machine::simulated::{Executor, Simulated};
use mach::machine::{Machine, PAGE_SIZE, Protection};
use mach::vm::{
    BoxFuture, CopyStrategy, DataRequest, DataReturn, MapRequest, Pager, Placement, Settings, Vm, VmMap,
    VmObject,
};
use mach::{KernError, KernResult};
use pagers::FilePager;
use proptest::prelude::*;
use swap::Swap;

const FRAMES: u32 = 40;
const PROGRAMS: u64 = 5;
const BASE: u64 = 0x10_0000;
const FILE_PAGES: u64 = 8;

/// A small random generator: a test can be repeated by its seed.
#[derive(Clone)]
struct Random(Rc<Cell<u64>>);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Rc::new(Cell::new(seed | 1)))
    }

    fn below(&self, limit: u64) -> u64 {
        let mut value = self.0.get();
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        self.0.set(value);
        (value >> 11) % limit
    }
}

fn settings() -> Settings {
    Settings { fault_around: 4, cluster: 2, free_target: 4, free_reserve: 0, large_pages: false }
}

/// A program with 12 pages of its own and a byte of its own in each page of a shared file.
async fn program(
    number: u64,
    map: Arc<VmMap<Simulated>>,
    file: Arc<VmObject<Simulated>>,
    random: Random,
) -> KernResult {
    const PAGES: u64 = 12;
    let mut expected = [0u8; PAGES as usize];
    let mut slots = [0u8; FILE_PAGES as usize];
    map.allocate(Placement::Fixed(BASE), PAGES * PAGE_SIZE).await?;
    let window = map.map(&MapRequest::shared(file.clone(), 0, FILE_PAGES * PAGE_SIZE)).await?;
    let copy_error = |fault: mach::vm::CopyFault| fault.error;
    for turn in 1..40u8 {
        let page = random.below(PAGES);
        let address = BASE + page * PAGE_SIZE + number;
        let slot = random.below(FILE_PAGES);
        let mut byte = [0];
        match random.below(7) {
            0 | 1 => {
                map.copyout(address, &[turn]).await.map_err(copy_error)?;
                expected[page as usize] = turn;
            }
            2 => {
                map.copyin(address, &mut byte).await.map_err(copy_error)?;
                assert_eq!(byte[0], expected[page as usize], "program {number} page {page}");
            }
            3 => {
                let child = map.fork().await?;
                map.copyout(address, &[turn]).await.map_err(copy_error)?;
                child.copyin(address, &mut byte).await.map_err(copy_error)?;
                assert_eq!(byte[0], expected[page as usize], "child of program {number} page {page}");
                expected[page as usize] = turn;
            }
            4 => {
                map.fault(window + slot * PAGE_SIZE, Protection::WRITE).await?;
                map.copyout(window + slot * PAGE_SIZE + number, &[turn]).await.map_err(copy_error)?;
                slots[slot as usize] = turn;
            }
            5 => {
                file.read(slot * PAGE_SIZE + number, &mut byte).await?;
                assert_eq!(byte[0], slots[slot as usize], "program {number} slot {slot}");
            }
            _ => {
                map.wire(BASE, 2 * PAGE_SIZE).await?;
                file.clean(0, u64::MAX).await?;
                map.unwire(BASE, 2 * PAGE_SIZE).await?;
            }
        }
    }
    Ok(())
}

/// Runs the programs. Some are cancelled, and the maps of some are terminated under them.
fn run(seed: u64, with_daemon: bool) {
    let machine = Simulated::new(FRAMES);
    let vm = Vm::with_settings(machine.clone(), settings()).unwrap();
    vm.set_default_pager(Swap::new(30, usize::MAX / 2));
    let mut executor = Executor::new(machine.clone());
    let random = Random::new(seed);
    let daemon = with_daemon.then(|| executor.spawn(vm.clone().page_out_daemon()));
    {
        let size = FILE_PAGES * PAGE_SIZE;
        let pager = FilePager::new(vec![0; size as usize], 20);
        let file = VmObject::paged(&vm, pager, size, CopyStrategy::Delay).unwrap();
        let mut tasks = Vec::new();
        for number in 0..PROGRAMS {
            let map = executor.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
            let (program_map, file, random) = (map.clone(), file.clone(), random.clone());
            let task = executor.spawn(async move {
                match program(number, program_map, file, random).await {
                    Ok(()) | Err(KernError::Terminated) => {}
                    Err(error) => panic!("program {number}: {error}"),
                }
            });
            tasks.push((task, map));
        }
        let victims = random.below(PROGRAMS);
        for _ in 0..victims {
            for _ in 0..random.below(200) {
                if !executor.step() {
                    machine.advance_to_next_timer();
                }
            }
            let (task, map) = &tasks[random.below(PROGRAMS) as usize];
            if random.below(2) == 0 {
                executor.cancel(*task);
            } else {
                executor.block_on(map.terminate());
            }
        }
        for (task, _) in &tasks {
            for _ in 0..1_000_000 {
                if executor.is_finished(*task) {
                    break;
                }
                if !executor.step() {
                    assert!(machine.advance_to_next_timer(), "deadlock with seed {seed}");
                }
            }
            assert!(executor.is_finished(*task), "livelock with seed {seed}");
        }
    }
    executor.block_on(vm.finish_writes());
    if let Some(daemon) = daemon {
        executor.cancel(daemon);
    }
    assert_eq!(vm.statistics().free, FRAMES, "frames leaked with seed {seed}");
    assert_eq!(vm.statistics().wired, 0);
    drop(vm);
    assert_eq!((machine.reserved(), machine.pmaps()), (0, 0), "leaks with seed {seed}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_live_and_die(seed: u64, with_daemon: bool) {
        run(seed, with_daemon);
    }
}

/// A pager that never answers.
struct Silent;

impl Pager<Simulated> for Silent {
    fn data_request<'a>(&'a self, _: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(std::future::pending())
    }

    fn data_return<'a>(&'a self, _: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_pager_that_never_answers_delays_only_programs_that_need_it() {
    let machine = Simulated::new(16);
    let vm = Vm::with_settings(machine.clone(), settings()).unwrap();
    let mut executor = Executor::new(machine.clone());
    {
        let silent = VmObject::paged(&vm, Arc::new(Silent), 4 * PAGE_SIZE, CopyStrategy::Symmetric).unwrap();
        let map = executor.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
        let request = MapRequest::shared(silent, 0, 4 * PAGE_SIZE);
        let at = executor.block_on(map.map(&request)).unwrap();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let map = map.clone();
                executor.spawn(async move {
                    let _ = map.fault(at, Protection::READ).await;
                })
            })
            .collect();
        assert!(!executor.run());
        // The map continues to be used. If a caller that has asked the pager is cancelled, the next
        // caller asks it.
        let other = executor.block_on(map.allocate(Placement::Above(0), PAGE_SIZE)).unwrap();
        executor.block_on(map.copyout(other, b"alive")).unwrap();
        executor.cancel(waiters[0]);
        assert!(!executor.run());
        executor.block_on(map.terminate());
        waiters.iter().for_each(|&waiter| executor.cancel(waiter));
    }
    assert_eq!(vm.statistics().free, 16);
}

#[test]
fn a_pager_that_never_writes_is_waited_for_only_so_long() {
    let file = FilePager::new(vec![0; 8 * PAGE_SIZE as usize], u64::MAX / 2);
    memory_is_short_beside(vec![Arc::new(HalfSilent(file))]);
}

/// Fills memory with written pages of these pagers, eight of each, and checks that a request for
/// memory is then refused within the time limit.
fn memory_is_short_beside(pagers: Vec<Arc<dyn Pager<Simulated>>>) {
    let machine = Simulated::new(8 * pagers.len() as u32);
    let vm = Vm::with_settings(machine.clone(), settings()).unwrap();
    let mut executor = Executor::new(machine.clone());
    let size = 8 * PAGE_SIZE;
    let map = executor.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
    for pager in pagers {
        let object = VmObject::paged(&vm, pager, size, CopyStrategy::Symmetric).unwrap();
        let at = executor.block_on(map.map(&MapRequest::shared(object, 0, size))).unwrap();
        for page in 0..8 {
            executor.block_on(map.copyout(at + page * PAGE_SIZE, &[1])).unwrap();
        }
    }
    let other = executor.block_on(map.allocate(Placement::Above(0), PAGE_SIZE)).unwrap();
    let fault = executor.block_on(map.copyout(other, b"x")).unwrap_err();
    assert_eq!(fault.error, KernError::ResourceShortage);
    assert!(machine.now() < 60_000_000);
}

/// A pager that answers requests, but never finishes a write.
struct HalfSilent(Arc<FilePager>);

impl Pager<Simulated> for HalfSilent {
    fn data_request<'a>(&'a self, request: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        let contents = self.0.contents.lock().unwrap();
        request.write(0, &contents[request.offset as usize..][..request.length()]);
        let length = request.length();
        Box::pin(async move { Ok(length) })
    }

    fn data_return<'a>(&'a self, _: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn more_than_memory_cannot_be_wired() {
    const OTHERS: u64 = 20;
    let machine = Simulated::new(FRAMES);
    let vm = Vm::with_settings(machine.clone(), settings()).unwrap();
    vm.set_default_pager(Swap::new(30, usize::MAX / 2));
    let mut executor = Executor::new(machine.clone());
    let map = executor.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
    let size = u64::from(FRAMES) * PAGE_SIZE;
    executor.block_on(map.allocate(Placement::Fixed(BASE), 2 * size)).unwrap();
    for page in 0..2 * u64::from(FRAMES) {
        executor.block_on(map.copyout(BASE + page * PAGE_SIZE, &[page as u8])).unwrap();
    }
    // A request for more than all memory, and one for more than is left next to what is wired, are
    // refused each time.
    executor.block_on(map.wire(BASE, OTHERS * PAGE_SIZE)).unwrap();
    for pages in [2 * u64::from(FRAMES), u64::from(FRAMES) + 1] {
        let wired = executor.block_on(map.wire(BASE, pages * PAGE_SIZE));
        assert_eq!(wired, Err(KernError::ResourceShortage), "{pages} pages");
        assert_eq!(u64::from(vm.statistics().wired), OTHERS);
    }
    executor.block_on(map.wire(BASE, (OTHERS + 10) * PAGE_SIZE)).unwrap();
    assert_eq!(u64::from(vm.statistics().wired), OTHERS + 10);
    for page in 0..2 * u64::from(FRAMES) {
        let mut byte = [0];
        executor.block_on(map.copyin(BASE + page * PAGE_SIZE, &mut byte)).unwrap();
        assert_eq!(byte[0], page as u8);
    }
}

/// A pager that refuses every page without waiting.
struct Refusing(Arc<FilePager>);

impl Pager<Simulated> for Refusing {
    fn data_request<'a>(&'a self, request: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        self.0.data_request(request)
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            data.machine.sleep_until(data.machine.now() + 50_000).await;
            Err(KernError::Failure)
        })
    }
}

#[test]
fn pagers_that_refuse_and_pagers_that_are_silent_are_waited_for_only_so_long() {
    let file = || FilePager::new(vec![0; 8 * PAGE_SIZE as usize], 1);
    memory_is_short_beside(vec![Arc::new(HalfSilent(file())), Arc::new(Refusing(file()))]);
}

#[test]
fn a_page_brought_in_for_a_copy_is_not_taken_for_the_copy() {
    // `programs_live_and_die` found this error: the only clean page was the source, paged in and
    // taken in turns.
    run(1680156742857485988, false);
}

/// Runs a future on this thread, while other threads may advance the machine's clock.
fn run_beside_others<T>(machine: &Simulated, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        // Tasks are polled without need as well: what matters here is that processors meet.
        if let std::task::Poll::Ready(value) =
            future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
        {
            return value;
        }
        machine.advance_to_next_timer();
        std::thread::yield_now();
    }
}

#[test]
fn programs_on_several_processors_meet_in_objects_and_queues() {
    for seed in 1..=8u64 {
        let machine = Simulated::new(FRAMES);
        let vm = Vm::with_settings(machine.clone(), settings()).unwrap();
        vm.set_default_pager(Swap::new(30, usize::MAX / 2));
        let size = FILE_PAGES * PAGE_SIZE;
        let file =
            VmObject::paged(&vm, FilePager::new(vec![0; size as usize], 20), size, CopyStrategy::Delay)
                .unwrap();
        let threads: Vec<_> = (0..PROGRAMS)
            .map(|number| {
                let (machine, vm, file) = (machine.clone(), vm.clone(), file.clone());
                std::thread::spawn(move || {
                    for turn in 0..6 {
                        let random = Random::new(seed * 1000 + number * 10 + turn);
                        let map = run_beside_others(&machine, VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
                        match run_beside_others(&machine, program(number, map, file.clone(), random)) {
                            // Other threads advance the clock, so a program that waits for memory
                            // may reach its time limit.
                            Ok(()) | Err(KernError::ResourceShortage) => {}
                            Err(error) => panic!("program {number}: {error}"),
                        }
                        // The next program begins with an empty slot in each page of the file.
                        for page in 0..FILE_PAGES {
                            while run_beside_others(&machine, file.write(page * PAGE_SIZE + number, &[0]))
                                .is_err()
                            {}
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        run_beside_others(&machine, vm.finish_writes());
        drop(file);
        assert_eq!(
            (vm.statistics().free, vm.statistics().wired),
            (FRAMES, 0),
            "frames leaked with seed {seed}"
        );
        drop(vm);
        assert_eq!((machine.reserved(), machine.pmaps()), (0, 0), "leaks with seed {seed}");
    }
}

#[test]
fn the_daemon_keeps_memory_free() {
    let machine = Simulated::new(64);
    let vm = Vm::with_settings(machine.clone(), Settings { free_target: 20, ..settings() }).unwrap();
    vm.set_default_pager(Swap::new(30, usize::MAX / 2));
    let mut executor = Executor::new(machine.clone());
    let daemon = executor.spawn(vm.clone().page_out_daemon());
    let map = executor.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
    executor.block_on(map.allocate(Placement::Fixed(BASE), 60 * PAGE_SIZE)).unwrap();
    for page in 0..60 {
        executor.block_on(map.copyout(BASE + page * PAGE_SIZE, &[page as u8])).unwrap();
    }
    executor.block_on(machine.sleep_until(machine.now() + 1_000_000));
    assert!(vm.statistics().free >= 20, "{:?}", vm.statistics());
    for page in 0..60 {
        let mut byte = [0];
        executor.block_on(map.copyin(BASE + page * PAGE_SIZE, &mut byte)).unwrap();
        assert_eq!(byte[0], page as u8);
    }
    executor.cancel(daemon);
}
