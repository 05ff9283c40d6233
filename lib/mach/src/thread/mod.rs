//! Threads: what runs in a task.
//!
//! A thread is one execution context of the machine with what Mach wants of it: it runs when neither it nor its task is
//! suspended. An operation changes what is wanted and brings the context in line, under one lock. Nothing of that is on the
//! way of an event and its answer: they are between the context and the task that serves it.

mod exception;
mod schedule;

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

use macadamia_sync::SpinLock;

pub use exception::{Exception, ExceptionHandler, ExceptionKind, Handled};
pub use schedule::{AGE_INTERVAL, BASE_LEVEL, LEVELS, Policy, PriorityRange};

use crate::host::Host;
use crate::machine::{ExecutionContext, Machine, ThreadState, Times};
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::{KernError, KernResult};
use schedule::Usage;

/// What the context was told.
#[derive(Default)]
struct Told {
    runs: bool,
    /// Priority and slice.
    priority: Option<(u8, u32)>,
    processor: Option<usize>,
}

/// What is wanted of the thread.
struct Wanted<M: Machine> {
    suspend_count: u32,
    policy: Policy,
    base: u8,
    usage: Usage,
    handler: Option<Arc<dyn ExceptionHandler<M>>>,
    set: Arc<ProcessorSet<M>>,
    processor: usize,
    told: Told,
}

/// How often, and after how many microseconds, a stopped thread is looked at that the machine is still at work for.
const REST_ATTEMPTS: usize = 100;
const REST_TIME: u64 = 1000;

/// A thread.
pub struct Thread<M: Machine> {
    id: u64,
    host: Arc<Host<M>>,
    task: Weak<Task<M>>,
    alive: AtomicBool,
    context: M::Thread,
    wanted: SpinLock<Wanted<M>>,
}

/// What is to be known of a thread: `thread_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Suspensions of the thread itself.
    pub suspend_count: u32,
    /// Neither it nor its task is suspended.
    pub runnable: bool,
    /// Microseconds of processor time used.
    pub time: u64,
    /// Percent of a processor used lately.
    pub usage: u8,
    /// How it is scheduled.
    pub policy: Policy,
    /// Its level when it has used nothing.
    pub base: u8,
    /// Its level now.
    pub level: u8,
    /// Its processor.
    pub processor: usize,
}

impl<M: Machine> Thread<M> {
    /// Bytes that a thread is accounted with.
    const BYTES: usize = size_of::<Self>();

    /// A new thread of a task, suspended once; [`Task::create_thread`] adds it to the task.
    pub(crate) async fn new(host: &Arc<Host<M>>, task: &Arc<Task<M>>) -> KernResult<Arc<Self>> {
        let machine = host.machine();
        let space = task.map().space().ok_or(KernError::Terminated)?;
        if !machine.reserve_memory(Self::BYTES) {
            return Err(KernError::ResourceShortage);
        }
        // Gives the reservation back if this future is dropped or the machine has no thread for us.
        let reserved = Reservation { machine, bytes: Self::BYTES };
        let context = machine.thread_create(&space).await?;
        // Suspended, until it is resumed.
        context.stop()?;
        let set = task.processor_set();
        let wanted = Wanted {
            suspend_count: 1,
            policy: Policy::TimeSharing,
            base: task.base_level().max(set.most_urgent()),
            usage: Usage::starting(machine.now(), used(&context)),
            handler: None,
            processor: set.choose(),
            set,
            told: Told::default(),
        };
        core::mem::forget(reserved);
        Ok(Arc::new(Self {
            id: host.new_id(),
            host: host.clone(),
            task: Arc::downgrade(task),
            alive: AtomicBool::new(true),
            context,
            wanted: SpinLock::new(wanted),
        }))
    }

    /// A number that names this thread alone, for ever.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its task, if that still exists.
    pub fn task(&self) -> Option<Arc<Task<M>>> {
        self.task.upgrade()
    }

    /// Whether it has not been terminated.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// The machine's side of it: its events, and how it goes on.
    pub fn context(&self) -> &M::Thread {
        &self.context
    }

    /// Microseconds of processor time used.
    pub(crate) fn time(&self) -> u64 {
        used(&self.context)
    }

    /// Suspends the thread once more. When this is done it executes no instruction.
    ///
    /// # Errors
    /// `Terminated`. `ResourceShortage`: suspended 2^32 times.
    pub fn suspend(&self) -> KernResult {
        self.change(|wanted| {
            wanted.suspend_count = wanted.suspend_count.checked_add(1).ok_or(KernError::ResourceShortage)?;
            Ok(())
        })
    }

    /// Takes back one suspension; the last lets it run if its task does.
    ///
    /// # Errors
    /// `Terminated`. `Failure`: it was not suspended.
    pub fn resume(&self) -> KernResult {
        self.change(|wanted| {
            wanted.suspend_count = wanted.suspend_count.checked_sub(1).ok_or(KernError::Failure)?;
            Ok(())
        })
    }

    /// Ends the thread. Nothing of it runs any more; operations that are under way end with
    /// `Terminated`.
    pub fn terminate(&self) {
        // Relaxed: the context's own lock orders its end.
        let first = self.alive.swap(false, Ordering::Relaxed);
        if let Some(task) = self.task.upgrade().filter(|_| first) {
            task.forget_thread(self.id);
        }
        self.context.end();
    }

    /// The registers. The thread must be suspended, or stopped by an exception.
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs.
    pub async fn state(&self) -> KernResult<ThreadState> {
        for _ in 0..REST_ATTEMPTS {
            match self.context.state() {
                // Stopped in the midst of something that the machine does for it.
                Err(KernError::InvalidArgument) => {}
                done => return done,
            }
            let machine = self.host.machine();
            machine.sleep_until(machine.now() + REST_TIME).await;
        }
        self.context.state()
    }

    /// Replaces the registers; as [`state`](Self::state).
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs, or a state that no program may have.
    pub async fn set_state(&self, state: &ThreadState) -> KernResult {
        // What is wrong with the argument is told apart from a thread that is not at rest yet by its state.
        self.state().await?;
        self.context.set_state(state)
    }

    /// What is to be known of it.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn info(&self) -> KernResult<ThreadInfo> {
        self.check_alive()?;
        let time = self.time();
        let mut wanted = self.wanted.lock();
        wanted.usage.age(self.host.machine().now(), time);
        Ok(ThreadInfo {
            suspend_count: wanted.suspend_count,
            runnable: self.should_run(&wanted),
            time,
            usage: wanted.usage.percent(),
            policy: wanted.policy,
            base: wanted.base,
            level: wanted.level(),
            processor: wanted.processor,
        })
    }

    /// Sets how the thread is scheduled, and its base level.
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: no such level. `NoAccess`: more urgent than its processor set allows.
    pub fn set_policy(&self, policy: Policy, base: u8) -> KernResult {
        self.change(|wanted| {
            if base >= LEVELS {
                return Err(KernError::InvalidArgument);
            }
            if base < wanted.set.most_urgent() {
                return Err(KernError::NoAccess);
            }
            (wanted.policy, wanted.base) = (policy, base);
            Ok(())
        })
    }

    /// Assigns the thread to a processor set, and so to one of its processors.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn assign(&self, set: &Arc<ProcessorSet<M>>) -> KernResult {
        self.change(|wanted| {
            wanted.set = set.clone();
            wanted.processor = set.choose();
            wanted.base = wanted.base.max(set.most_urgent());
            Ok(())
        })
    }

    /// Moves the thread to another processor of its set if it has `processor` and the set has lost that.
    pub(crate) fn leave_processor(&self, processor: usize, set: &Arc<ProcessorSet<M>>) -> KernResult {
        self.change(|wanted| {
            if wanted.processor == processor && Arc::ptr_eq(&wanted.set, set) {
                wanted.processor = set.choose();
            }
            Ok(())
        })
    }

    /// Takes note of the processor time used, and lowers or raises a time-sharing thread for it.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn age(&self) -> KernResult {
        let (now, time) = (self.host.machine().now(), self.time());
        self.change(|wanted| {
            wanted.usage.age(now, time);
            Ok(())
        })
    }

    /// Sets the handler that gets this thread's exceptions before its task's handler does.
    pub fn set_exception_handler(&self, handler: Option<Arc<dyn ExceptionHandler<M>>>) {
        // The old one is dropped after the lock.
        let _old = core::mem::replace(&mut self.wanted.lock().handler, handler);
    }

    /// Hands an exception of this thread to its handler, then to its task's, then to the host's. If
    /// none handles it, the task is terminated. The machine keeps the thread stopped meanwhile; the
    /// caller lets it go on after `Ok`.
    ///
    /// # Errors
    /// `Terminated`: the thread does not go on.
    pub async fn raise(self: &Arc<Self>, exception: Exception) -> KernResult {
        let own = self.wanted.lock().handler.clone();
        let task = self.task().ok_or(KernError::Terminated)?;
        for handler in [own, task.exception_handler(), self.host.exception_handler()].into_iter().flatten() {
            let handled = handler.raise(self, exception).await;
            self.check_alive()?;
            if handled == Handled::Resume {
                return Ok(());
            }
        }
        task.terminate().await;
        Err(KernError::Terminated)
    }

    /// Changes what is wanted, and brings the context in line with it.
    fn change(&self, change: impl FnOnce(&mut Wanted<M>) -> KernResult) -> KernResult {
        self.check_alive()?;
        let mut wanted = self.wanted.lock();
        change(&mut wanted)?;
        self.tell(&mut wanted)
    }

    /// Brings the context in line with what is wanted of the thread and its task.
    pub(crate) fn apply(&self) -> KernResult {
        self.change(|_| Ok(()))
    }

    fn tell(&self, wanted: &mut Wanted<M>) -> KernResult {
        let slice = match wanted.policy {
            Policy::TimeSharing => self.host.time_slice(),
            Policy::FixedPriority { slice } => slice,
        };
        let priority = (self.host.priorities().priority(wanted.level()), slice);
        let runs = self.should_run(wanted);
        let (processor, told) = (wanted.processor, &mut wanted.told);
        if told.processor != Some(processor) {
            self.context.set_affinity(1 << processor)?;
            told.processor = Some(processor);
        }
        if told.priority != Some(priority) {
            self.context.set_priority(priority.0, priority.1)?;
            told.priority = Some(priority);
        }
        if told.runs != runs {
            if runs { self.context.unstop() } else { self.context.stop() }?;
            told.runs = runs;
        }
        Ok(())
    }

    /// Looks at the task, whose lock comes after this thread's.
    fn should_run(&self, wanted: &Wanted<M>) -> bool {
        wanted.suspend_count == 0 && self.task.upgrade().is_some_and(|task| !task.is_suspended())
    }

    fn check_alive(&self) -> KernResult {
        if self.is_alive() { Ok(()) } else { Err(KernError::Terminated) }
    }
}

/// Microseconds of processor time that a context has used.
fn used<C: ExecutionContext>(context: &C) -> u64 {
    let Times { program, server } = context.times();
    program + server
}

impl<M: Machine> Wanted<M> {
    fn level(&self) -> u8 {
        match self.policy {
            Policy::TimeSharing => self.usage.level(self.base),
            Policy::FixedPriority { .. } => self.base,
        }
    }
}

impl<M: Machine> Drop for Thread<M> {
    fn drop(&mut self) {
        self.context.end();
        self.host.machine().unreserve_memory(Self::BYTES);
    }
}

/// Server memory that is given back unless something took it over.
pub(crate) struct Reservation<'a, M: Machine> {
    pub(crate) machine: &'a M,
    pub(crate) bytes: usize,
}

impl<M: Machine> Drop for Reservation<'_, M> {
    fn drop(&mut self) {
        self.machine.unreserve_memory(self.bytes);
    }
}
