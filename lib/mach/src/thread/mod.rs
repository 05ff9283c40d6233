//! Threads: what runs in a task.
//!
//! A thread is one execution context of the machine, together with what Mach wants of it: it runs
//! when neither it nor its task is suspended. An operation changes what is wanted, and then makes
//! the context as it is wanted, under one lock. An event and its answer do not take this lock: they
//! pass between the context and the task that serves it.

mod exception;
mod schedule;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};

use macadamia_sync::SpinLock;

pub use crate::machine::ExceptionState;
pub use exception::{Exception, ExceptionHandler, ExceptionKind, Handled};
pub use schedule::{AGE_INTERVAL, BASE_LEVEL, LEVELS, Policy, PriorityRange};

use crate::machine::{ExecutionContext, Machine, PageFault, ThreadState, Times};
use crate::personality::Personality;
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::{KernError, KernResult};
use schedule::Usage;

/// The values that the context has been given.
#[derive(Default)]
struct Told {
    runs: bool,
    /// Priority and slice.
    priority: Option<(u8, u32)>,
    processor: Option<usize>,
}

/// The state in which the thread is to be.
struct Wanted<M: Machine, P: Personality<M>> {
    suspend_count: u32,
    policy: Policy,
    base: u8,
    usage: Usage,
    handler: Option<Arc<dyn ExceptionHandler<M, P>>>,
    set: Arc<ProcessorSet<M>>,
    /// The processor that the context is assigned to; `None` until it is first given one.
    processor: Option<usize>,
    told: Told,
}

/// How often a stopped thread is looked at, while the machine still works for it, and after how
/// many microseconds each time.
const REST_ATTEMPTS: usize = 100;
const REST_TIME: u64 = 1000;

/// A thread. It ends with [`terminate`](Self::terminate), with its task, or with the last reference
/// to it.
pub struct Thread<M: Machine, P: Personality<M> = ()> {
    id: u64,
    task: Arc<Task<M, P>>,
    alive: AtomicBool,
    context: M::Thread,
    wanted: SpinLock<Wanted<M, P>>,
    personality: P::Thread,
}

impl<M: Machine, P: Personality<M>> Deref for Thread<M, P> {
    type Target = P::Thread;

    fn deref(&self) -> &P::Thread {
        &self.personality
    }
}

/// Information about a thread: `thread_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Suspensions of the thread itself.
    pub suspend_count: u32,
    /// Whether neither the thread nor its task is suspended.
    pub runnable: bool,
    /// Microseconds of processor time used.
    pub time: u64,
    /// Percent of a processor used lately.
    pub usage: u8,
    /// The scheduling policy of the thread.
    pub policy: Policy,
    /// The thread's priority when it has used no processor time lately.
    pub base: u8,
    /// The thread's present priority.
    pub level: u8,
    /// Its processor.
    pub processor: usize,
}

impl<M: Machine, P: Personality<M>> Thread<M, P> {
    /// Bytes that are charged for a thread.
    const BYTES: usize = size_of::<Self>();

    /// A new thread of a task, with this suspend count; [`Task::create_thread_of`] adds it to the
    /// task.
    pub(crate) async fn new(
        task: &Arc<Task<M, P>>,
        suspend_count: u32,
        personality: impl FnOnce(&M::Thread) -> P::Thread,
    ) -> KernResult<Arc<Self>> {
        let host = task.host();
        let machine = host.machine();
        let space = task.map().space().ok_or(KernError::Terminated)?;
        if !machine.reserve_memory(Self::BYTES) {
            return Err(KernError::ResourceShortage);
        }
        // Gives the reservation back if this future is dropped or the machine has no thread for us.
        let reserved = Reservation { machine, bytes: Self::BYTES };
        let context = machine.thread_create(&space).await?;
        if suspend_count > 0 {
            context.stop()?;
        }
        let (base, set) = task.schedule();
        let wanted = Wanted {
            suspend_count,
            policy: Policy::TimeSharing,
            base: base.max(set.most_urgent()),
            usage: Usage::starting(machine.now(), 0),
            handler: None,
            processor: None,
            set,
            told: Told { runs: suspend_count == 0, ..Told::default() },
        };
        core::mem::forget(reserved);
        Ok(Arc::new(Self {
            id: host.new_id(),
            task: task.clone(),
            alive: AtomicBool::new(true),
            personality: personality(&context),
            context,
            wanted: SpinLock::new(wanted),
        }))
    }

    /// A number that names this thread alone, for ever.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its task.
    pub fn task(&self) -> &Arc<Task<M, P>> {
        &self.task
    }

    /// Whether the thread has not been terminated.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// The machine's side of the thread: its events, and how it goes on.
    pub fn machine_thread(&self) -> &M::Thread {
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
        if self.alive.swap(false, Ordering::Relaxed) {
            self.task.forget_thread(self.id, self.time());
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
                // The thread was stopped in the midst of something that the machine does for it.
                Err(KernError::InvalidArgument) => {}
                done => return done,
            }
            let machine = self.task.host().machine();
            machine.sleep_until(machine.now() + REST_TIME).await;
        }
        self.context.state()
    }

    /// Replaces the registers; as [`state`](Self::state).
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: it runs, or a state that no program may have.
    pub async fn set_state(&self, state: &ThreadState) -> KernResult {
        // `InvalidArgument` has two causes: the thread is not at rest yet, or the argument is
        // wrong. After `state` has succeeded, it can only be the second.
        self.state().await?;
        self.context.set_state(state)
    }

    /// The thread's state: Mach's `thread_info`.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn info(&self) -> KernResult<ThreadInfo> {
        self.check_alive()?;
        let time = self.time();
        let mut wanted = self.wanted.lock();
        wanted.usage.age(self.task.host().machine().now(), time);
        Ok(ThreadInfo {
            suspend_count: wanted.suspend_count,
            runnable: self.should_run(&wanted),
            time,
            usage: wanted.usage.percent(),
            policy: wanted.policy,
            base: wanted.base,
            level: wanted.level(),
            processor: self.context.processor(),
        })
    }

    /// Sets how the thread is scheduled, and its base level.
    ///
    /// # Errors
    /// `Terminated`. `InvalidArgument`: no such level. `NoAccess`: more urgent than its processor
    /// set allows.
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
            wanted.processor = Some(set.choose());
            wanted.base = wanted.base.max(set.most_urgent());
            Ok(())
        })
    }

    /// Moves the thread to another processor of its set if it has `processor` and the set has lost
    /// that.
    pub(crate) fn leave_processor(&self, processor: usize, set: &Arc<ProcessorSet<M>>) -> KernResult {
        self.change(|wanted| {
            if wanted.processor == Some(processor) && Arc::ptr_eq(&wanted.set, set) {
                wanted.processor = Some(set.choose());
            }
            Ok(())
        })
    }

    /// Takes note of the processor time used, and lowers or raises a time-sharing thread for it.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn age(&self) -> KernResult {
        let (now, time) = (self.task.host().machine().now(), self.time());
        self.change(|wanted| {
            wanted.usage.age(now, time);
            Ok(())
        })
    }

    /// Sets the handler that gets this thread's exceptions before its task's handler does.
    pub fn set_exception_handler(&self, handler: Option<Arc<dyn ExceptionHandler<M, P>>>) {
        // The old handler is dropped after the lock is released.
        let _old = core::mem::replace(&mut self.wanted.lock().handler, handler);
    }

    /// Answers a page fault of this thread from its task's memory; one that memory does not answer
    /// is an exception.
    ///
    /// # Errors
    /// `Terminated`: the thread does not go on.
    pub async fn fault(self: &Arc<Self>, fault: &PageFault) -> KernResult {
        match self.task.map().fault(fault.address, fault.access).await {
            Ok(()) => Ok(()),
            // The error path is boxed, because most faults end before it.
            Err(error) => {
                let exception = Exception::of_fault(fault, error);
                Box::pin(self.raise(&exception)).await
            }
        }
    }

    /// Hands an exception of this thread to its handler, then to its task's, then to its
    /// personality, then to the host's handler. If none handles it, the task is terminated. The
    /// machine keeps the thread stopped meanwhile; the caller lets it go on after `Ok`.
    ///
    /// # Errors
    /// `Terminated`: the thread does not go on.
    pub async fn raise(self: &Arc<Self>, exception: &Exception) -> KernResult {
        let own = self.wanted.lock().handler.clone();
        if self.is_handled_by(own, exception).await?
            || self.is_handled_by(self.task.exception_handler(), exception).await?
            || P::raise(self, exception).await == Handled::Resume
            || self.is_handled_by(self.task.host().exception_handler(), exception).await?
        {
            return self.check_alive();
        }
        self.task.terminate().await;
        Err(KernError::Terminated)
    }

    async fn is_handled_by(
        self: &Arc<Self>,
        handler: Option<Arc<dyn ExceptionHandler<M, P>>>,
        exception: &Exception,
    ) -> KernResult<bool> {
        let Some(handler) = handler else { return Ok(false) };
        let handled = handler.raise(self, *exception).await;
        self.check_alive()?;
        Ok(handled == Handled::Resume)
    }

    /// Changes what is wanted, and brings the context in line with it.
    fn change(&self, change: impl FnOnce(&mut Wanted<M, P>) -> KernResult) -> KernResult {
        self.check_alive()?;
        let mut wanted = self.wanted.lock();
        change(&mut wanted)?;
        self.tell(&mut wanted)
    }

    /// Brings the context in line with what is wanted of the thread and its task.
    pub(crate) fn apply(&self) -> KernResult {
        self.change(|_| Ok(()))
    }

    fn tell(&self, wanted: &mut Wanted<M, P>) -> KernResult {
        let slice = match wanted.policy {
            Policy::TimeSharing => self.task.host().time_slice(),
            Policy::FixedPriority { slice } => slice,
        };
        let priority = (self.task.host().priorities().priority(wanted.level()), slice);
        let runs = self.should_run(wanted);
        let set = &wanted.set;
        let (processor, told) = (*wanted.processor.get_or_insert_with(|| set.choose()), &mut wanted.told);
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
    fn should_run(&self, wanted: &Wanted<M, P>) -> bool {
        wanted.suspend_count == 0 && !self.task.is_suspended()
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

impl<M: Machine, P: Personality<M>> Wanted<M, P> {
    fn level(&self) -> u8 {
        match self.policy {
            Policy::TimeSharing => self.usage.level(self.base),
            Policy::FixedPriority { .. } => self.base,
        }
    }
}

impl<M: Machine, P: Personality<M>> Drop for Thread<M, P> {
    fn drop(&mut self) {
        // The thread ends before its address space, whatever else refers to its context.
        self.terminate();
        self.task.host().machine().unreserve_memory(Self::BYTES);
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
