//! Tasks and threads on the simulated machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mach::machine::simulated::{Executor, Failures, Simulated};
use mach::machine::{Machine, PAGE_SIZE, ThreadState};
use mach::thread::{
    BASE_LEVEL, Exception, ExceptionHandler, ExceptionKind, Handled, LEVELS, Policy, PriorityRange,
};
use mach::vm::{BoxFuture, Placement, Vm};
use mach::{Host, KernError, Task, Thread};

const RANGE: PriorityRange = PriorityRange { lowest: 10, highest: 72 };
const SLICE: u32 = 10_000;

struct System {
    machine: Simulated,
    host: Option<Arc<Host<Simulated>>>,
}

impl System {
    fn new() -> Self {
        let machine = Simulated::new(64);
        let host = Some(Host::new(Vm::new(machine.clone()).unwrap(), RANGE, SLICE));
        Self { machine, host }
    }

    fn host(&self) -> &Arc<Host<Simulated>> {
        self.host.as_ref().unwrap()
    }

    fn task(&self) -> Arc<Task<Simulated>> {
        self.machine.block_on(self.host().create_task(PAGE_SIZE, 1 << 47)).unwrap()
    }

    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.machine.block_on(future)
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.host = None;
            assert_eq!(
                (self.machine.threads(), self.machine.pmaps()),
                (0, 0),
                "threads or address spaces leaked"
            );
            assert_eq!((self.machine.reserved(), self.machine.free_frames()), (0, 64), "memory leaked");
        }
    }
}

fn schedule(machine: &Simulated, thread: &Thread<Simulated>) -> (u8, u32, usize, bool) {
    thread.with_machine_thread(|thread| machine.schedule_of(thread)).expect("a live thread")
}

fn runs(machine: &Simulated, thread: &Thread<Simulated>) -> bool {
    schedule(machine, thread).3
}

#[test]
fn a_thread_runs_when_neither_it_nor_its_task_is_suspended() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        let thread = task.create_thread().await.unwrap();
        assert!(!runs(&system.machine, &thread));
        thread.set_state(&ThreadState { rip: 7, ..ThreadState::default() }).await.unwrap();
        thread.resume().await.unwrap();
        assert!(runs(&system.machine, &thread));
        assert_eq!(thread.resume().await, Err(KernError::Failure));
        task.suspend().await.unwrap();
        task.suspend().await.unwrap();
        assert!(!runs(&system.machine, &thread));
        assert_eq!(thread.state().await.unwrap().rip, 7);
        thread.suspend().await.unwrap();
        task.resume().await.unwrap();
        task.resume().await.unwrap();
        assert!(!runs(&system.machine, &thread));
        thread.resume().await.unwrap();
        assert!(runs(&system.machine, &thread));
        assert_eq!(task.resume().await, Err(KernError::Failure));
    });
}

#[test]
fn termination_ends_everything_at_once() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        let threads = [task.create_thread().await.unwrap(), task.create_thread().await.unwrap()];
        threads[0].resume().await.unwrap();
        threads[0].terminate();
        assert_eq!(system.machine.threads(), 1);
        assert_eq!(threads[0].resume().await, Err(KernError::Terminated));
        assert_eq!(task.threads().len(), 1);
        let child = task.create_task(true).await.unwrap();
        task.terminate().await;
        assert_eq!((system.machine.threads(), system.machine.pmaps()), (0, 1));
        assert_eq!(threads[1].state().await, Err(KernError::Terminated));
        assert_eq!(task.create_thread().await.err(), Some(KernError::Terminated));
        assert_eq!(task.create_task(true).await.err(), Some(KernError::Terminated));
        assert_eq!(task.info().await, Err(KernError::Terminated));
        assert_eq!(system.host().tasks().len(), 1);
        child.terminate().await;
        assert_eq!(system.host().tasks().len(), 0);
    });
}

#[test]
fn a_child_inherits_memory_or_none() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        let at = task.map().allocate(Placement::Above(0), PAGE_SIZE).await.unwrap();
        task.map().copyout(at, b"inherited").await.unwrap();
        let (heir, other) = (task.create_task(true).await.unwrap(), task.create_task(false).await.unwrap());
        let mut bytes = [0; 9];
        heir.map().copyin(at, &mut bytes).await.unwrap();
        assert_eq!(&bytes, b"inherited");
        assert_eq!(other.map().copyin(at, &mut bytes).await.unwrap_err().error, KernError::InvalidAddress);
        assert_eq!(
            (heir.info().await.unwrap().virtual_size, other.info().await.unwrap().virtual_size),
            (PAGE_SIZE, 0)
        );
    });
}

#[test]
fn failed_creations_leave_nothing() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        task.map().allocate(Placement::Above(0), PAGE_SIZE).await.unwrap();
        task.map().copyout(PAGE_SIZE, b"x").await.unwrap();
        for after in 0..3 {
            system.machine.inject(Failures { reserve: Some(after), ..Failures::default() });
            let result = task.create_task(true).await;
            assert_eq!(result.err(), Some(KernError::ResourceShortage), "failure {after}");
        }
        system.machine.inject(Failures { reserve: Some(0), ..Failures::default() });
        assert_eq!(task.create_thread().await.err(), Some(KernError::ResourceShortage));
        system.machine.inject(Failures::default());
        assert_eq!((system.machine.threads(), system.machine.pmaps()), (0, 1));
    });
}

#[test]
fn busy_threads_sink_and_rise_without_a_tick() {
    let system = System::new();
    let task = system.task();
    let mut executor = Executor::new(system.machine.clone());
    let scheduler = executor.spawn(system.host().clone().scheduler());
    let thread = executor.block_on(task.create_thread()).unwrap();
    executor.block_on(thread.resume()).unwrap();
    let second = |executor: &mut Executor, used: u64| {
        thread.with_machine_thread(|thread| system.machine.use_time(thread, used));
        executor.block_on(system.machine.sleep_until(system.machine.now() + 1_000_000));
    };
    assert_eq!(schedule(&system.machine, &thread).0, RANGE.priority(BASE_LEVEL));
    (0..20).for_each(|_| second(&mut executor, 1_000_000));
    assert_eq!(schedule(&system.machine, &thread).0, RANGE.priority(LEVELS - 1));
    let info = executor.block_on(thread.info()).unwrap();
    assert!(
        info.usage > 90 && info.level == LEVELS - 1 && info.base == BASE_LEVEL && info.time == 20_000_000
    );
    (0..20).for_each(|_| second(&mut executor, 0));
    assert_eq!(schedule(&system.machine, &thread).0, RANGE.priority(BASE_LEVEL));
    // A thread of fixed priority does not change.
    executor.block_on(thread.set_policy(Policy::FixedPriority { slice: 77 }, 3)).unwrap();
    (0..5).for_each(|_| second(&mut executor, 1_000_000));
    assert_eq!(schedule(&system.machine, &thread), (RANGE.priority(3), 77, 0, true));
    assert_eq!(
        executor.block_on(thread.set_policy(Policy::TimeSharing, LEVELS)),
        Err(KernError::InvalidArgument)
    );
    executor.cancel(scheduler);
}

#[test]
fn processor_sets_divide_the_machine() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        let host = system.host();
        let set = host.create_processor_set();
        let thread = task.create_thread().await.unwrap();
        thread.resume().await.unwrap();
        host.assign_processor(1, &set).await.unwrap();
        assert_eq!(host.assign_processor(0, &set).await, Err(KernError::Failure));
        assert_eq!(host.assign_processor(9, &set).await, Err(KernError::InvalidArgument));
        assert_eq!((host.default_set().processors(), set.processors()), (vec![0], vec![1]));
        task.assign(&set, true).await.unwrap();
        assert_eq!(schedule(&system.machine, &thread).2, 1);
        set.set_most_urgent(20).unwrap();
        assert_eq!(thread.set_policy(Policy::TimeSharing, 5).await, Err(KernError::NoAccess));
        let other = task.create_thread().await.unwrap();
        assert_eq!(other.info().await.unwrap().base, 20);
        host.assign_processor(1, host.default_set()).await.unwrap();
        assert_eq!(set.processors(), Vec::<usize>::new());
    });
}

/// Handles what it is told to, and counts.
struct Handler {
    answer: Handled,
    raised: AtomicU64,
}

impl ExceptionHandler<Simulated> for Handler {
    fn raise<'a>(
        &'a self,
        thread: &'a Arc<Thread<Simulated>>,
        exception: Exception,
    ) -> BoxFuture<'a, Handled> {
        Box::pin(async move {
            self.raised.fetch_add(1, Ordering::Relaxed);
            let state = ThreadState { rax: exception.code, ..thread.state().await.unwrap() };
            thread.set_state(&state).await.unwrap();
            self.answer
        })
    }
}

#[test]
fn exceptions_go_to_thread_task_and_host_in_turn() {
    let system = System::new();
    let task = system.task();
    let handler = |answer| Arc::new(Handler { answer, raised: AtomicU64::new(0) });
    let exception = Exception { kind: ExceptionKind::BadAccess, code: 11, subcode: 0 };
    system.run(async {
        let thread = task.create_thread().await.unwrap();
        let (own, tasks, hosts) =
            (handler(Handled::Pass), handler(Handled::Resume), handler(Handled::Resume));
        thread.set_exception_handler(Some(own.clone()));
        task.set_exception_handler(Some(tasks.clone()));
        system.host().set_exception_handler(Some(hosts.clone()));
        assert_eq!(thread.raise(exception).await, Ok(()));
        assert_eq!(thread.state().await.unwrap().rax, 11);
        let count = |handler: &Handler| handler.raised.load(Ordering::Relaxed);
        assert_eq!((count(&own), count(&tasks), count(&hosts)), (1, 1, 0));
        task.set_exception_handler(None);
        assert_eq!(thread.raise(exception).await, Ok(()));
        assert_eq!(count(&hosts), 1);
        // No handler handles it: the end of the task.
        system.host().set_exception_handler(None);
        assert_eq!(thread.raise(exception).await, Err(KernError::Terminated));
        assert!(!task.is_alive() && !thread.is_alive());
    });
}

#[test]
fn operations_dropped_at_any_point_leave_a_thread_that_can_be_used_and_ended() {
    let system = System::new();
    let task = system.task();
    let mut executor = Executor::new(system.machine.clone());
    for steps in 0..12 {
        let thread = executor.block_on(task.create_thread()).unwrap();
        executor.block_on(thread.resume()).unwrap();
        system.machine.set_thread_delay(10);
        // Two that wait for each other; the first is dropped where it happens to be.
        let (first, second) = (thread.clone(), thread.clone());
        let creation = task.clone();
        let suspend = executor.spawn(async move {
            first.suspend().await.unwrap();
            first.set_policy(Policy::TimeSharing, 20).await.unwrap();
        });
        let read = executor.spawn(async move {
            let _ = second.state().await;
        });
        let create = executor.spawn(async move {
            let _ = creation.create_thread().await.map(|thread| thread.terminate());
        });
        (0..steps).for_each(|_| {
            if !executor.step() {
                system.machine.advance_to_next_timer();
            }
        });
        executor.cancel(suspend);
        executor.cancel(create);
        if steps % 2 == 0 {
            // Ended while others are at it.
            thread.terminate();
            assert!(executor.run());
            assert_eq!(executor.block_on(thread.resume()), Err(KernError::Terminated));
        } else {
            assert!(executor.run() && executor.is_finished(read));
            let count = executor.block_on(thread.info()).unwrap().suspend_count;
            executor.block_on(thread.suspend()).unwrap();
            assert!(!runs(&system.machine, &thread));
            (0..=count).for_each(|_| executor.block_on(thread.resume()).unwrap());
            assert!(runs(&system.machine, &thread));
            thread.terminate();
        }
        system.machine.set_thread_delay(0);
        assert_eq!(system.machine.threads(), 0, "after {steps} steps");
    }
}
