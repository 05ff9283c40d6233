//! Threads: the units of execution of a task.
//!
//! A thread has one execution context of the machine. `Wanted` says how the context is to be: for
//! example, it runs if neither the thread nor its task is suspended. An operation changes `Wanted`
//! and then the context, under one lock. Events and their answers do not take this lock: they pass
//! between the context and the task that serves it.

mod exception;
mod schedule;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};

use macadamia_sync::SpinLock;

pub use crate::machine::ExceptionState;
pub use exception::{Exception, ExceptionHandler, ExceptionKind, Handled};
pub use schedule::{AGE_INTERVAL, BASE_LEVEL, LEVELS, Policy, PriorityRange, RecentUse};

use crate::machine::{ExecutionContext, Machine, PageFault, ThreadState, Times};
use crate::personality::Personality;
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::{KernError, KernResult};

/// The settings that the context has been given.
#[derive(Default)]
struct Told {
    runs: bool,
    /// The priority and the time slice.
    priority: Option<(u8, u32)>,
    processor: Option<usize>,
}

/// The state in which the thread's context is to be.
struct Wanted<M: Machine, P: Personality<M>> {
    suspend_count: u32,
    policy: Policy,
    base: u8,
    /// The most urgent level that the base may be set to.
    most_urgent: u8,
    usage: RecentUse,
    handler: Option<Arc<dyn ExceptionHandler<M, P>>>,
    set: Arc<ProcessorSet<M>>,
    /// The processor that the context is assigned to; `None` until it is first given one.
    processor: Option<usize>,
    told: Told,
}

/// How often the registers of a stopped thread are read, if the machine still works for the thread,
/// and how many microseconds lie between two attempts.
const REST_ATTEMPTS: usize = 100;
const REST_TIME: u64 = 1000;

/// A Mach thread. It ends with [`terminate`](Self::terminate), with its task, or with the last
/// reference to it.
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
    /// How often the thread itself is suspended.
    pub suspend_count: u32,
    /// Whether neither the thread nor its task is suspended.
    pub runnable: bool,
    /// The processor time that the thread has used, in microseconds.
    pub time: u64,
    /// The share of a processor that the thread has used lately, in per cent.
    pub usage: u8,
    /// The scheduling policy of the thread.
    pub policy: Policy,
    /// The thread's priority when it has used no processor time lately.
    pub base: u8,
    /// The most urgent level that the thread's base may be set to.
    pub most_urgent: u8,
    /// The thread's present priority.
    pub level: u8,
    /// The processor on which the thread runs.
    pub processor: usize,
}

impl<M: Machine, P: Personality<M>> Thread<M, P> {
    /// How many bytes of server memory are reserved for a thread.
    const BYTES: usize = size_of::<Self>();

    /// Makes a thread with this suspend count; [`Task::create_thread_of`] adds it to the task.
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
        // Unreserves the memory if this future is dropped, or if the machine has no thread.
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
            most_urgent: set.most_urgent(),
            usage: RecentUse::starting(machine.now(), 0),
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

    /// A number that no other thread of the host has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The task to which the thread belongs.
    pub fn task(&self) -> &Arc<Task<M, P>> {
        &self.task
    }

    /// Whether the thread has not been terminated.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// The machine's execution context of the thread.
    pub fn machine_thread(&self) -> &M::Thread {
        &self.context
    }

    /// The processor time that the thread has used, in microseconds.
    pub(crate) fn time(&self) -> u64 {
        used(&self.context)
    }

    /// Increments the thread's suspend count. After the call the thread executes no instruction.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `ResourceShortage`: it is suspended 2^32 times.
    pub fn suspend(&self) -> KernResult {
        self.change(|wanted| {
            wanted.suspend_count = wanted.suspend_count.checked_add(1).ok_or(KernError::ResourceShortage)?;
            Ok(())
        })
    }

    /// Decrements the thread's suspend count. At 0 the thread runs, unless its task is suspended.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `Failure`: it was not suspended.
    pub fn resume(&self) -> KernResult {
        self.change(|wanted| {
            wanted.suspend_count = wanted.suspend_count.checked_sub(1).ok_or(KernError::Failure)?;
            Ok(())
        })
    }

    /// Ends the thread: it executes no instruction any more. Operations on it that are in progress
    /// end with `Terminated`.
    pub fn terminate(&self) {
        // Relaxed: the context's own lock orders its end.
        if self.alive.swap(false, Ordering::Relaxed) {
            self.task.forget_thread(self.id, self.time());
            P::thread_ended(&self.personality);
        }
        self.context.end();
    }

    /// Reads the registers. The thread must be suspended, or stopped by an exception. Waits up to a
    /// limit for the machine to finish an operation for the thread.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `InvalidArgument`: it runs.
    pub async fn state(&self) -> KernResult<ThreadState> {
        for _ in 0..REST_ATTEMPTS {
            match self.context.state() {
                // The thread was stopped in the middle of an operation of the machine.
                Err(KernError::InvalidArgument) => {}
                done => return done,
            }
            let machine = self.task.host().machine();
            machine.sleep_until(machine.now() + REST_TIME).await;
        }
        self.context.state()
    }

    /// Replaces the registers. The thread must be suspended, or stopped by an exception.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `InvalidArgument`: it runs, or a program cannot have
    /// such registers.
    pub async fn set_state(&self, state: &ThreadState) -> KernResult {
        // `InvalidArgument` has two causes: the thread has not come to rest yet, or the argument is
        // wrong. After `state` has succeeded, only the second is possible.
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
            most_urgent: wanted.most_urgent,
            level: wanted.level(),
            processor: self.context.processor(),
        })
    }

    /// Sets the scheduling policy and the base level of the thread.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `InvalidArgument`: there is no such level. `NoAccess`:
    /// it is more urgent than the processor set allows.
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

    /// The processor set to which the thread is assigned.
    pub fn processor_set(&self) -> Arc<ProcessorSet<M>> {
        self.wanted.lock().set.clone()
    }

    /// Sets the base level, and with `limit` also the most urgent level that the base may be set
    /// to: Mach's `thread_priority`.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `InvalidArgument`: there is no such level. `Failure`: it
    /// is more urgent than the thread's limit.
    pub fn set_base(&self, base: u8, limit: bool) -> KernResult {
        self.change(|wanted| {
            if base >= LEVELS {
                return Err(KernError::InvalidArgument);
            }
            if base < wanted.most_urgent {
                return Err(KernError::Failure);
            }
            wanted.base = base;
            if limit {
                wanted.most_urgent = base;
            }
            Ok(())
        })
    }

    /// Sets the most urgent level that the base may be set to, and lowers the base to it: Mach's
    /// `thread_max_priority`.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `InvalidArgument`: there is no such level.
    pub fn set_most_urgent(&self, level: u8) -> KernResult {
        self.change(|wanted| {
            if level >= LEVELS {
                return Err(KernError::InvalidArgument);
            }
            wanted.most_urgent = level;
            wanted.base = wanted.base.max(level);
            Ok(())
        })
    }

    /// Sets the scheduling policy: Mach's `thread_policy`.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended. `Failure`: the processor set does not allow the policy.
    pub fn choose_policy(&self, policy: Policy) -> KernResult {
        self.change(|wanted| {
            if policy != Policy::TimeSharing && !wanted.set.allows_fixed_priority() {
                return Err(KernError::Failure);
            }
            wanted.policy = policy;
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
            wanted.most_urgent = wanted.most_urgent.max(set.most_urgent());
            if !set.allows_fixed_priority() {
                wanted.policy = Policy::TimeSharing;
            }
            Ok(())
        })
    }

    /// Moves the thread to another processor of its set if it runs on `processor`, which has left
    /// the set.
    pub(crate) fn leave_processor(&self, processor: usize, set: &Arc<ProcessorSet<M>>) -> KernResult {
        self.change(|wanted| {
            if wanted.processor == Some(processor) && Arc::ptr_eq(&wanted.set, set) {
                wanted.processor = Some(set.choose());
            }
            Ok(())
        })
    }

    /// Reads the processor time that the thread has used, and adjusts the priority of a
    /// time-sharing thread.
    ///
    /// # Errors
    /// `Terminated`: the thread has ended.
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

    /// Serves a page fault of this thread from its task's memory. A fault that cannot be served is
    /// raised as an exception.
    ///
    /// # Errors
    /// `Terminated`: the thread must not be resumed.
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
    /// thread is stopped meanwhile; the caller resumes it after `Ok`.
    ///
    /// # Errors
    /// `Terminated`: the thread must not be resumed.
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

    /// Changes the wanted state, and applies it to the context.
    fn change(&self, change: impl FnOnce(&mut Wanted<M, P>) -> KernResult) -> KernResult {
        self.check_alive()?;
        let mut wanted = self.wanted.lock();
        change(&mut wanted)?;
        self.tell(&mut wanted)
    }

    /// Applies to the context what the thread and its task want.
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

    /// Whether the context should run. Takes the lock of the task, which comes after the lock of
    /// this thread.
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
        // The context ends here, before the address space can end, even if there are other
        // references to it.
        self.terminate();
        self.task.host().machine().unreserve_memory(Self::BYTES);
    }
}

/// A reservation of server memory, which is given back when it is dropped unless it was taken over.
pub(crate) struct Reservation<'a, M: Machine> {
    pub(crate) machine: &'a M,
    pub(crate) bytes: usize,
}

impl<M: Machine> Drop for Reservation<'_, M> {
    fn drop(&mut self) {
        self.machine.unreserve_memory(self.bytes);
    }
}
