//! Threads: what runs in a task.
//!
//! A thread is one thread of the machine. It runs when neither it nor its task is suspended. What
//! is wanted (the counts) and what is so (the machine's thread) are kept apart: an operation first
//! changes the counts, which never waits, and then brings the machine's thread in line. If the
//! operation is dropped in between, only the counts have changed; the next operation on the thread
//! finishes the work. Ending a thread takes no await.

mod exception;
mod schedule;

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

use macadamia_sync::{Mutex, MutexGuard, SpinLock};

pub use exception::{Exception, ExceptionHandler, ExceptionKind, Handled};
pub use schedule::{AGE_INTERVAL, BASE_LEVEL, LEVELS, Policy, PriorityRange};

use crate::host::Host;
use crate::machine::{Machine, ThreadState};
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::{KernError, KernResult};
use schedule::Usage;

/// The machine's thread, and what is known of it.
struct Control<M: Machine> {
    /// `None` once it is destroyed.
    thread: Option<M::Thread>,
    /// Whether it was told to run; `None` while that is being changed.
    runs: Option<bool>,
    /// Priority and slice that it was given.
    priority: Option<(u8, u32)>,
    /// Processor that it was given.
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
}

/// A thread.
pub struct Thread<M: Machine> {
    id: u64,
    host: Arc<Host<M>>,
    task: Weak<Task<M>>,
    alive: AtomicBool,
    control: Mutex<Control<M>>,
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

/// Destroys the machine's thread of a dead thread when an operation that kept it ends, however it
/// ends.
struct Reaper<'a, M: Machine>(&'a Thread<M>);

impl<M: Machine> Drop for Reaper<'_, M> {
    fn drop(&mut self) {
        self.0.reap();
    }
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
        let thread = machine.thread_create(&space).await?;
        let set = task.processor_set();
        let wanted = Wanted {
            suspend_count: 1,
            policy: Policy::TimeSharing,
            base: task.base_level().max(set.most_urgent()),
            usage: Usage::starting(machine.now(), machine.thread_time(&thread)),
            handler: None,
            processor: set.choose(),
            set,
        };
        core::mem::forget(reserved);
        Ok(Arc::new(Self {
            id: host.new_id(),
            host: host.clone(),
            task: Arc::downgrade(task),
            alive: AtomicBool::new(true),
            control: Mutex::new(Control {
                thread: Some(thread),
                runs: Some(false),
                priority: None,
                processor: None,
            }),
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
        // SeqCst: see `terminate`.
        self.alive.load(Ordering::SeqCst)
    }

    /// Calls `with` with the machine's thread, unless it is gone or an operation has it.
    pub fn with_machine_thread<R>(&self, with: impl FnOnce(&M::Thread) -> R) -> Option<R> {
        let _reaper = Reaper(self);
        self.control.try_lock().and_then(|control| control.thread.as_ref().map(with))
    }

    /// Suspends the thread once more. When this is done it executes no instruction.
    ///
    /// # Errors
    /// `Terminated`. `ResourceShortage`: suspended 2^32 times.
    pub async fn suspend(&self) -> KernResult {
        self.check_alive()?;
        {
            let mut wanted = self.wanted.lock();
            wanted.suspend_count = wanted.suspend_count.checked_add(1).ok_or(KernError::ResourceShortage)?;
        }
        self.apply().await
    }

    /// Takes back one suspension; the last lets it run if its task does.
    ///
    /// # Errors
    /// `Terminated`. `Failure`: it was not suspended.
    pub async fn resume(&self) -> KernResult {
        self.check_alive()?;
        {
            let mut wanted = self.wanted.lock();
            wanted.suspend_count = wanted.suspend_count.checked_sub(1).ok_or(KernError::Failure)?;
        }
        self.apply().await
    }

    /// Ends the thread. Nothing of it runs any more; operations that are under way end with
    /// `Terminated`.
    pub fn terminate(&self) {
        // SeqCst: an operation that holds the machine's thread now looks at this after it let go,
        // and ends it.
        let first = self.alive.swap(false, Ordering::SeqCst);
        if let Some(task) = self.task.upgrade().filter(|_| first) {
            task.forget_thread(self.id);
        }
        self.reap();
    }

    fn reap(&self) {
        if self.is_alive() {
            return;
        }
        let thread = self.control.try_lock().and_then(|mut control| control.thread.take());
        if let Some(thread) = thread {
            self.host.machine().thread_destroy(thread);
        }
    }

    /// The registers. The thread must be suspended, or stopped by an exception.
    ///
    /// # Errors
    /// `Terminated`. What the machine says of a thread that runs.
    pub async fn state(&self) -> KernResult<ThreadState> {
        let _reaper = Reaper(self);
        let control = self.control().await?;
        self.host.machine().thread_state(Self::machine_thread(&control)?).await
    }

    /// Replaces the registers; as [`state`](Self::state).
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: a state that no program may have.
    pub async fn set_state(&self, state: &ThreadState) -> KernResult {
        let _reaper = Reaper(self);
        let control = self.control().await?;
        self.host.machine().thread_set_state(Self::machine_thread(&control)?, state).await
    }

    /// What is to be known of it.
    pub async fn info(&self) -> KernResult<ThreadInfo> {
        let _reaper = Reaper(self);
        let control = self.control().await?;
        let time = self.host.machine().thread_time(Self::machine_thread(&control)?);
        let runnable = self.should_run();
        let mut wanted = self.wanted.lock();
        wanted.usage.age(self.host.machine().now(), time);
        Ok(ThreadInfo {
            suspend_count: wanted.suspend_count,
            runnable,
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
    /// `Terminated`. `InvalidArgument`: no such level. `NoAccess`: more urgent than its processor
    /// set allows.
    pub async fn set_policy(&self, policy: Policy, base: u8) -> KernResult {
        self.check_alive()?;
        {
            let mut wanted = self.wanted.lock();
            if base >= LEVELS {
                return Err(KernError::InvalidArgument);
            }
            if base < wanted.set.most_urgent() {
                return Err(KernError::NoAccess);
            }
            (wanted.policy, wanted.base) = (policy, base);
        }
        self.apply().await
    }

    /// Assigns the thread to a processor set, and so to one of its processors.
    ///
    /// # Errors
    /// `Terminated`.
    pub async fn assign(&self, set: &Arc<ProcessorSet<M>>) -> KernResult {
        self.check_alive()?;
        {
            let mut wanted = self.wanted.lock();
            wanted.set = set.clone();
            wanted.processor = set.choose();
            wanted.base = wanted.base.max(set.most_urgent());
        }
        self.apply().await
    }

    /// Moves the thread to another processor of its set if it has `processor` and the set has lost
    /// that.
    pub(crate) async fn leave_processor(&self, processor: usize, set: &Arc<ProcessorSet<M>>) -> KernResult {
        {
            let mut wanted = self.wanted.lock();
            if wanted.processor != processor || !Arc::ptr_eq(&wanted.set, set) {
                return Ok(());
            }
            wanted.processor = set.choose();
        }
        self.apply().await
    }

    /// Takes note of the processor time used, and lowers or raises a time-sharing thread for it.
    ///
    /// # Errors
    /// `Terminated`.
    pub async fn age(&self) -> KernResult {
        {
            let Some(time) = self.with_machine_thread(|thread| self.host.machine().thread_time(thread))
            else {
                return self.check_alive();
            };
            let mut wanted = self.wanted.lock();
            let before = wanted.level();
            wanted.usage.age(self.host.machine().now(), time);
            if wanted.level() == before {
                return Ok(());
            }
        }
        self.apply().await
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

    /// Brings the machine's thread in line with what is wanted.
    pub(crate) async fn apply(&self) -> KernResult {
        let _reaper = Reaper(self);
        let machine = self.host.machine();
        let mut control = self.control().await?;
        loop {
            self.check_alive()?;
            let (level, policy, processor) = {
                let wanted = self.wanted.lock();
                (wanted.level(), wanted.policy, wanted.processor)
            };
            let slice = match policy {
                Policy::TimeSharing => self.host.time_slice(),
                Policy::FixedPriority { slice } => slice,
            };
            let priority = (self.host.priorities().priority(level), slice);
            let runs = self.should_run();
            let Control { thread: Some(thread), runs: known, priority: given, processor: place } =
                &mut *control
            else {
                return Err(KernError::Terminated);
            };
            // `None` first: if this future is dropped in the middle, the processor is not known,
            // and the next call sets it again.
            if *place != Some(processor) {
                *place = None;
                machine.thread_set_processor(thread, processor).await?;
                *place = Some(processor);
            } else if *given != Some(priority) {
                *given = None;
                machine.thread_set_priority(thread, priority.0, priority.1).await?;
                *given = Some(priority);
            } else if *known != Some(runs) {
                *known = None;
                if runs {
                    machine.thread_run(thread).await?;
                } else {
                    machine.thread_stop(thread).await?;
                }
                *known = Some(runs);
            } else {
                return Ok(());
            }
        }
    }

    fn should_run(&self) -> bool {
        let own = self.wanted.lock().suspend_count == 0;
        own && self.task.upgrade().is_some_and(|task| !task.is_suspended())
    }

    fn check_alive(&self) -> KernResult {
        if self.is_alive() { Ok(()) } else { Err(KernError::Terminated) }
    }

    async fn control(&self) -> KernResult<MutexGuard<'_, Control<M>>> {
        let control = self.control.lock().await;
        self.check_alive()?;
        Ok(control)
    }

    fn machine_thread<'a>(control: &'a MutexGuard<'_, Control<M>>) -> KernResult<&'a M::Thread> {
        control.thread.as_ref().ok_or(KernError::Terminated)
    }
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
        if let Some(thread) = self.control.get_mut().thread.take() {
            self.host.machine().thread_destroy(thread);
        }
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
