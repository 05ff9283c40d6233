//! Tasks: an address space and the threads in it.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Deref;

use macadamia_sync::SpinLock;

use crate::host::Host;
use crate::machine::Machine;
use crate::personality::Personality;
use crate::processor_set::ProcessorSet;
use crate::thread::{BASE_LEVEL, ExceptionHandler, LEVELS, Thread};
use crate::vm::VmMap;
use crate::{KernError, KernResult};

struct State<M: Machine, P: Personality<M>> {
    alive: bool,
    suspend_count: u32,
    /// The task's threads, the oldest first. Each thread holds a reference to its task.
    threads: Vec<(u64, Weak<Thread<M, P>>)>,
    /// The processor time of threads that have ended, in microseconds.
    ended_time: u64,
    base: u8,
    /// The most urgent level that the base may be set to.
    most_urgent: u8,
    handler: Option<Arc<dyn ExceptionHandler<M, P>>>,
    set: Arc<ProcessorSet<M>>,
}

/// A Mach task.
pub struct Task<M: Machine, P: Personality<M> = ()> {
    id: u64,
    host: Arc<Host<M, P>>,
    map: Arc<VmMap<M>>,
    state: SpinLock<State<M, P>>,
    personality: P::Task,
}

impl<M: Machine, P: Personality<M>> Deref for Task<M, P> {
    type Target = P::Task;

    fn deref(&self) -> &P::Task {
        &self.personality
    }
}

/// Information about a task: `task_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// How often the task itself is suspended.
    pub suspend_count: u32,
    /// How many bytes are mapped, accessed or not.
    pub virtual_size: u64,
    /// How many threads the task has.
    pub threads: usize,
    /// The processor time of all threads of the task, ended ones too, in microseconds.
    pub time: u64,
    /// The processor time of ended threads, in microseconds.
    pub ended_time: u64,
    /// The priority level at which the task's new threads start.
    pub base: u8,
}

impl<M: Machine, P: Personality<M>> Task<M, P> {
    /// How many bytes of server memory are reserved for a task.
    const BYTES: usize = size_of::<Self>();

    pub(crate) fn new(
        host: &Arc<Host<M, P>>,
        map: Arc<VmMap<M>>,
        parent: Option<&Self>,
        personality: P::Task,
    ) -> KernResult<Arc<Self>> {
        if !host.machine().reserve_memory(Self::BYTES) {
            return Err(KernError::ResourceShortage);
        }
        let (base, most_urgent, handler, set) = match parent {
            Some(parent) => {
                let state = parent.state.lock();
                (state.base, state.most_urgent, state.handler.clone(), state.set.clone())
            }
            None => (BASE_LEVEL, 0, None, host.default_set().clone()),
        };
        let state = State {
            alive: true,
            suspend_count: 0,
            threads: Vec::new(),
            ended_time: 0,
            base,
            most_urgent,
            handler,
            set,
        };
        let (id, state) = (host.new_id(), SpinLock::new(state));
        let task = Arc::new(Self { id, host: host.clone(), map, state, personality });
        host.add_task(&task);
        Ok(task)
    }

    /// A number that no other task of the host has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The task's address space.
    pub fn map(&self) -> &Arc<VmMap<M>> {
        &self.map
    }

    /// The host to which the task belongs.
    pub fn host(&self) -> &Arc<Host<M, P>> {
        &self.host
    }

    /// Whether the task has not been terminated.
    pub fn is_alive(&self) -> bool {
        self.state.lock().alive
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.state.lock().suspend_count > 0
    }

    /// The base level and the processor set of a new thread.
    pub(crate) fn schedule(&self) -> (u8, Arc<ProcessorSet<M>>) {
        let state = self.state.lock();
        (state.base, state.set.clone())
    }

    /// The processor set that the task's new threads are assigned to.
    pub fn processor_set(&self) -> Arc<ProcessorSet<M>> {
        self.state.lock().set.clone()
    }

    pub(crate) fn exception_handler(&self) -> Option<Arc<dyn ExceptionHandler<M, P>>> {
        self.state.lock().handler.clone()
    }

    /// Sets the handler of exceptions that the task's threads do not handle themselves; children
    /// inherit it.
    pub fn set_exception_handler(&self, handler: Option<Arc<dyn ExceptionHandler<M, P>>>) {
        // The old handler is dropped after the lock is released.
        let _old = core::mem::replace(&mut self.state.lock().handler, handler);
    }

    /// The task's threads, the oldest first.
    pub fn threads(&self) -> Vec<Arc<Thread<M, P>>> {
        self.state.lock().living()
    }

    /// Makes a child task. With `inherit` it gets this task's memory, by the inheritance of each
    /// region; without, no memory.
    ///
    /// # Errors
    /// `Terminated`: the task has ended. `ResourceShortage`: memory is short.
    pub async fn create_child(
        &self,
        inherit: bool,
        personality: impl FnOnce(&Arc<VmMap<M>>) -> P::Task,
    ) -> KernResult<Arc<Self>> {
        let map = if inherit {
            self.map.fork().await?
        } else {
            let (lowest, highest) = self.map.bounds();
            VmMap::new(self.map.vm(), lowest, highest).await?
        };
        if !self.is_alive() {
            return Err(KernError::Terminated);
        }
        let personality = personality(&map);
        Self::new(&self.host, map, Some(self), personality)
    }

    /// Makes a thread with all registers zero and this suspend count.
    ///
    /// # Errors
    /// `Terminated`: the task has ended. `ResourceShortage`: memory is short.
    pub async fn create_thread_of(
        self: &Arc<Self>,
        suspend_count: u32,
        personality: impl FnOnce(&M::Thread) -> P::Thread,
    ) -> KernResult<Arc<Thread<M, P>>> {
        let thread = Thread::new(self, suspend_count, personality).await?;
        let mut state = self.state.lock();
        let added = match () {
            () if !state.alive => Err(KernError::Terminated),
            () if state.threads.try_reserve(1).is_err() => Err(KernError::ResourceShortage),
            () => {
                let place = state.threads.partition_point(|(other, _)| *other < thread.id());
                state.threads.insert(place, (thread.id(), Arc::downgrade(&thread)));
                Ok(())
            }
        };
        // The lock is released before a thread that was not added ends.
        drop(state);
        added?;
        // If the task was suspended before the thread was in the list, the thread is suspended
        // here. A later suspension finds it in the list.
        if self.is_suspended() {
            thread.apply()?;
        }
        Ok(thread)
    }

    /// Adds the processor time of a thread that has ended.
    pub(crate) fn forget_thread(&self, id: u64, time: u64) {
        let mut state = self.state.lock();
        if let Ok(place) = state.threads.binary_search_by_key(&id, |(id, _)| *id) {
            state.threads.remove(place);
        }
        state.ended_time += time;
    }

    /// Increments the task's suspend count. After the call none of its threads executes an
    /// instruction.
    ///
    /// # Errors
    /// `Terminated`: the task has ended. `ResourceShortage`: it is suspended 2^32 times.
    pub fn suspend(&self) -> KernResult {
        self.change_suspension(|count| count.checked_add(1).ok_or(KernError::ResourceShortage))
    }

    /// Decrements the task's suspend count. At 0, those threads run that are not suspended
    /// themselves.
    ///
    /// # Errors
    /// `Terminated`: the task has ended. `Failure`: it was not suspended.
    pub fn resume(&self) -> KernResult {
        self.change_suspension(|count| count.checked_sub(1).ok_or(KernError::Failure))
    }

    fn change_suspension(&self, change: impl FnOnce(u32) -> KernResult<u32>) -> KernResult {
        let threads = {
            let mut state = self.state.lock();
            if !state.alive {
                return Err(KernError::Terminated);
            }
            state.suspend_count = change(state.suspend_count)?;
            state.living()
        };
        for thread in threads {
            // A thread that has ended meanwhile need not be suspended or resumed.
            let _ = thread.apply();
        }
        Ok(())
    }

    /// Sets the base level of the task's new threads.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such level. `NoAccess`: it is more urgent than the processor
    /// set allows.
    pub fn set_base_level(&self, base: u8) -> KernResult {
        let mut state = self.state.lock();
        if base >= LEVELS {
            return Err(KernError::InvalidArgument);
        }
        if base < state.set.most_urgent().max(state.most_urgent) {
            return Err(KernError::NoAccess);
        }
        state.base = base;
        Ok(())
    }

    /// Sets the most urgent level that the base level may be set to, and lowers the base to it.
    /// Returns the base level.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such level. `Failure`: without `raise`, the level is more
    /// urgent than the task's limit.
    pub fn set_most_urgent(&self, level: u8, raise: bool) -> KernResult<u8> {
        let mut state = self.state.lock();
        if level >= LEVELS {
            return Err(KernError::InvalidArgument);
        }
        if !raise && level < state.most_urgent {
            return Err(KernError::Failure);
        }
        state.most_urgent = level;
        state.base = state.base.max(level);
        Ok(state.base)
    }

    /// Assigns the task's new threads and, if `threads` is true, also its present ones to a
    /// processor set.
    ///
    /// # Errors
    /// `Terminated`: the task has ended.
    pub fn assign(&self, set: &Arc<ProcessorSet<M>>, threads: bool) -> KernResult {
        let all = {
            let mut state = self.state.lock();
            if !state.alive {
                return Err(KernError::Terminated);
            }
            state.set = set.clone();
            if threads { state.living() } else { Vec::new() }
        };
        for thread in all {
            // A thread that has ended meanwhile needs no processor.
            let _ = thread.assign(set);
        }
        Ok(())
    }

    /// Ends the task: its threads, then its memory. Operations on it that are in progress end with
    /// `Terminated`.
    ///
    /// The threads end when the future is first polled. If the future is dropped before its end,
    /// the memory is released with the last reference to the task.
    pub async fn terminate(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.alive = false;
            state.living()
        };
        for thread in &threads {
            thread.terminate();
        }
        self.host.forget_task(self.id);
        P::task_ended(&self.personality);
        self.map.terminate().await;
    }

    /// The task's state: Mach's `task_info`.
    ///
    /// # Errors
    /// `Terminated`.
    pub async fn info(&self) -> KernResult<TaskInfo> {
        let virtual_size = self.map.size().await;
        // The threads are counted before the lock is taken: a reference that is dropped here may
        // end a thread, which takes the lock.
        let threads = self.threads();
        let time = threads.iter().map(|thread| thread.time()).sum::<u64>();
        let state = self.state.lock();
        if !state.alive {
            return Err(KernError::Terminated);
        }
        Ok(TaskInfo {
            suspend_count: state.suspend_count,
            virtual_size,
            threads: threads.len(),
            time: state.ended_time + time,
            ended_time: state.ended_time,
            base: state.base,
        })
    }
}

impl<M: Machine> Task<M> {
    /// Makes a child task. With `inherit` it gets this task's memory, by the inheritance of each
    /// region; without, no memory.
    ///
    /// # Errors
    /// `Terminated`: the task has ended. `ResourceShortage`: memory is short.
    pub async fn create_task(&self, inherit: bool) -> KernResult<Arc<Self>> {
        self.create_child(inherit, |_| ()).await
    }

    /// Makes a thread that is suspended once, with all registers zero.
    ///
    /// # Errors
    /// `Terminated`: the task has ended. `ResourceShortage`: memory is short.
    pub async fn create_thread(self: &Arc<Self>) -> KernResult<Arc<Thread<M>>> {
        self.create_thread_of(1, |_| ()).await
    }
}

impl<M: Machine, P: Personality<M>> State<M, P> {
    fn living(&self) -> Vec<Arc<Thread<M, P>>> {
        self.threads.iter().filter_map(|(_, thread)| thread.upgrade()).collect()
    }
}

impl<M: Machine, P: Personality<M>> Drop for Task<M, P> {
    fn drop(&mut self) {
        self.host.forget_task(self.id);
        self.host.machine().unreserve_memory(Self::BYTES);
    }
}
