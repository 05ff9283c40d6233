//! Tasks and threads on the simulated machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mach::machine::simulated::{Executor, Failures, Simulated};
use mach::machine::{
    Event, ExecutionContext, Machine, PAGE_SIZE, PageFault, Protection, Resume, ThreadState,
};
use mach::thread::{
    BASE_LEVEL, Exception, ExceptionHandler, ExceptionKind, ExceptionState, Handled, LEVELS, Policy,
    PriorityRange,
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
    machine.schedule_of(thread.machine_thread())
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
        thread.resume().unwrap();
        assert!(runs(&system.machine, &thread));
        assert_eq!(thread.resume(), Err(KernError::Failure));
        task.suspend().unwrap();
        task.suspend().unwrap();
        assert!(!runs(&system.machine, &thread));
        assert_eq!(thread.state().await.unwrap().rip, 7);
        thread.suspend().unwrap();
        task.resume().unwrap();
        task.resume().unwrap();
        assert!(!runs(&system.machine, &thread));
        thread.resume().unwrap();
        assert!(runs(&system.machine, &thread));
        assert_eq!(task.resume(), Err(KernError::Failure));
    });
}

#[test]
fn a_new_thread_of_a_suspended_task_waits_for_the_task() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        task.suspend().unwrap();
        let thread = task.create_thread_of(0, |_| ()).await.unwrap();
        assert!(!runs(&system.machine, &thread));
        task.resume().unwrap();
        assert!(runs(&system.machine, &thread));
    });
}

#[test]
fn termination_ends_everything() {
    let system = System::new();
    let task = system.task();
    system.run(async {
        let threads = [task.create_thread().await.unwrap(), task.create_thread().await.unwrap()];
        threads[0].resume().unwrap();
        threads[0].terminate();
        assert_eq!(system.machine.threads(), 1);
        assert_eq!(threads[0].resume(), Err(KernError::Terminated));
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
    thread.resume().unwrap();
    let second = |executor: &mut Executor, used: u64| {
        system.machine.use_time(thread.machine_thread(), used);
        executor.block_on(system.machine.sleep_until(system.machine.now() + 1_000_000));
    };
    assert_eq!(schedule(&system.machine, &thread).0, RANGE.priority(BASE_LEVEL));
    (0..20).for_each(|_| second(&mut executor, 1_000_000));
    assert_eq!(schedule(&system.machine, &thread).0, RANGE.priority(LEVELS - 1));
    let info = thread.info().unwrap();
    assert!(
        info.usage > 90 && info.level == LEVELS - 1 && info.base == BASE_LEVEL && info.time == 20_000_000
    );
    (0..20).for_each(|_| second(&mut executor, 0));
    assert_eq!(schedule(&system.machine, &thread).0, RANGE.priority(BASE_LEVEL));
    // The priority of a thread with fixed priority does not change with its use of the processor.
    thread.set_policy(Policy::FixedPriority { slice: 77 }, 3).unwrap();
    (0..5).for_each(|_| second(&mut executor, 1_000_000));
    assert_eq!(schedule(&system.machine, &thread), (RANGE.priority(3), 77, 0, true));
    assert_eq!(thread.set_policy(Policy::TimeSharing, LEVELS), Err(KernError::InvalidArgument));
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
        thread.resume().unwrap();
        host.assign_processor(1, &set).unwrap();
        assert_eq!(host.assign_processor(0, &set), Err(KernError::Failure));
        assert_eq!(host.assign_processor(9, &set), Err(KernError::InvalidArgument));
        assert_eq!((host.default_set().processors(), set.processors()), (vec![0], vec![1]));
        task.assign(&set, true).unwrap();
        assert_eq!(schedule(&system.machine, &thread).2, 1);
        set.set_most_urgent(20).unwrap();
        assert_eq!(thread.set_policy(Policy::TimeSharing, 5), Err(KernError::NoAccess));
        let other = task.create_thread().await.unwrap();
        assert_eq!(other.info().unwrap().base, 20);
        host.assign_processor(1, host.default_set()).unwrap();
        assert_eq!(set.processors(), Vec::<usize>::new());
    });
}

/// An exception handler that returns a preset outcome, and counts its calls.
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
    let exception =
        Exception { kind: ExceptionKind::BadAccess, code: 11, subcode: 0, state: ExceptionState::default() };
    system.run(async {
        let thread = task.create_thread().await.unwrap();
        let (own, tasks, hosts) =
            (handler(Handled::Pass), handler(Handled::Resume), handler(Handled::Resume));
        thread.set_exception_handler(Some(own.clone()));
        task.set_exception_handler(Some(tasks.clone()));
        system.host().set_exception_handler(Some(hosts.clone()));
        assert_eq!(thread.raise(&exception).await, Ok(()));
        assert_eq!(thread.state().await.unwrap().rax, 11);
        let count = |handler: &Handler| handler.raised.load(Ordering::Relaxed);
        assert_eq!((count(&own), count(&tasks), count(&hosts)), (1, 1, 0));
        task.set_exception_handler(None);
        assert_eq!(thread.raise(&exception).await, Ok(()));
        assert_eq!(count(&hosts), 1);
        // Without a handler that handles the exception, the task ends.
        system.host().set_exception_handler(None);
        assert_eq!(thread.raise(&exception).await, Err(KernError::Terminated));
        assert!(!task.is_alive() && !thread.is_alive());
    });
}

#[test]
fn a_dropped_creation_leaves_no_thread_and_an_end_meets_it_at_any_point() {
    let system = System::new();
    let mut executor = Executor::new(system.machine.clone());
    for steps in 0..6 {
        let task = system.task();
        system.machine.set_thread_delay(10);
        let creation = task.clone();
        let create = executor.spawn(async move {
            let _ = creation.create_thread().await;
        });
        (0..steps).for_each(|_| {
            if !executor.step() {
                system.machine.advance_to_next_timer();
            }
        });
        if steps % 2 == 0 {
            executor.cancel(create);
        } else {
            executor.block_on(task.terminate());
        }
        assert!(executor.run());
        system.machine.set_thread_delay(0);
        executor.block_on(task.terminate());
        assert_eq!(system.machine.threads(), 0, "after {steps} steps");
    }
}

#[test]
fn the_state_of_a_thread_that_runs_cannot_be_had_and_its_events_are_its_contexts() {
    let system = System::new();
    let task = system.task();
    system.machine.set_program(|_, resume| match resume {
        Resume::Continue => Some(Event::PageFault(PageFault { address: 8, access: Protection::READ, ip: 0 })),
        _ => None,
    });
    system.run(async {
        let thread = task.create_thread().await.unwrap();
        let context = thread.machine_thread();
        let event = context.run(Resume::Continue).await;
        assert!(matches!(event, Event::PageFault(PageFault { address: 8, .. })));
        context.answer(Resume::Registers(Box::new(ThreadState { rip: 5, ..ThreadState::default() })));
        thread.resume().unwrap();
        assert_eq!(thread.state().await, Err(KernError::InvalidArgument));
        thread.suspend().unwrap();
        assert_eq!(thread.state().await.unwrap().rip, 5);
        context.recall().unwrap();
        assert_eq!(context.next_event().await, Event::Recalled);
        thread.terminate();
        assert_eq!(context.next_event().await, Event::Ended);
        assert_eq!(thread.suspend(), Err(KernError::Terminated));
        assert_eq!(context.recall(), Err(KernError::Terminated));
    });
}
