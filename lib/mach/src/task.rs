//! Tasks: an address space and the threads in it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use crate::host::Host;
use crate::machine::Machine;
use crate::processor_set::ProcessorSet;
use crate::thread::{BASE_LEVEL, ExceptionHandler, LEVELS, Thread};
use crate::vm::VmMap;
use crate::{KernError, KernResult};

struct State<M: Machine> {
    alive: bool,
    suspend_count: u32,
    /// In order of their making.
    threads: Vec<Arc<Thread<M>>>,
    /// Processor time of threads that have ended, in microseconds.
    ended_time: u64,
    base: u8,
    handler: Option<Arc<dyn ExceptionHandler<M>>>,
    set: Arc<ProcessorSet<M>>,
}

/// A task.
pub struct Task<M: Machine> {
    id: u64,
    host: Arc<Host<M>>,
    map: Arc<VmMap<M>>,
    state: SpinLock<State<M>>,
}

/// What is to be known of a task: `task_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Suspensions of the task itself.
    pub suspend_count: u32,
    /// Bytes mapped, touched or not.
    pub virtual_size: u64,
    /// Threads.
    pub threads: usize,
    /// Processor time of all its threads, ended ones too, in microseconds.
    pub time: u64,
    /// The base level of its new threads.
    pub base: u8,
}

impl<M: Machine> Task<M> {
    /// Bytes that a task is accounted with.
    const BYTES: usize = size_of::<Self>();

    pub(crate) fn new(
        host: &Arc<Host<M>>,
        map: Arc<VmMap<M>>,
        parent: Option<&Task<M>>,
    ) -> KernResult<Arc<Self>> {
        if !host.machine().reserve_memory(Self::BYTES) {
            return Err(KernError::ResourceShortage);
        }
        let (base, handler, set) = match parent {
            Some(parent) => {
                let state = parent.state.lock();
                (state.base, state.handler.clone(), state.set.clone())
            }
            None => (BASE_LEVEL, None, host.default_set().clone()),
        };
        let state =
            State { alive: true, suspend_count: 0, threads: Vec::new(), ended_time: 0, base, handler, set };
        Ok(Arc::new(Self { id: host.new_id(), host: host.clone(), map, state: SpinLock::new(state) }))
    }

    /// A number that names this task alone, for ever.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its address space.
    pub fn map(&self) -> &Arc<VmMap<M>> {
        &self.map
    }

    /// The host it runs on.
    pub fn host(&self) -> &Arc<Host<M>> {
        &self.host
    }

    /// Whether it has not been terminated.
    pub fn is_alive(&self) -> bool {
        self.state.lock().alive
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.state.lock().suspend_count > 0
    }

    pub(crate) fn base_level(&self) -> u8 {
        self.state.lock().base
    }

    /// The processor set that its new threads are assigned to.
    pub fn processor_set(&self) -> Arc<ProcessorSet<M>> {
        self.state.lock().set.clone()
    }

    pub(crate) fn exception_handler(&self) -> Option<Arc<dyn ExceptionHandler<M>>> {
        self.state.lock().handler.clone()
    }

    /// Sets the handler of the exceptions of its threads that they do not handle themselves;
    /// children inherit it.
    pub fn set_exception_handler(&self, handler: Option<Arc<dyn ExceptionHandler<M>>>) {
        // The old one is dropped after the lock.
        let _old = core::mem::replace(&mut self.state.lock().handler, handler);
    }

    /// Its threads, in order of their making.
    pub fn threads(&self) -> Vec<Arc<Thread<M>>> {
        self.state.lock().threads.clone()
    }

    /// A new task: with `inherit`, this task's memory as its regions' inheritance says; without,
    /// none.
    ///
    /// # Errors
    /// `Terminated`. `ResourceShortage`.
    pub async fn create_task(&self, inherit: bool) -> KernResult<Arc<Self>> {
        let map = if inherit {
            self.map.fork().await?
        } else {
            let (lowest, highest) = self.map.bounds();
            VmMap::new(self.map.vm(), lowest, highest).await?
        };
        if !self.is_alive() {
            return Err(KernError::Terminated);
        }
        let task = Self::new(&self.host, map, Some(self))?;
        self.host.add_task(&task);
        Ok(task)
    }

    /// A new thread, suspended once, with all registers zero.
    ///
    /// # Errors
    /// `Terminated`. `ResourceShortage`.
    pub async fn create_thread(self: &Arc<Self>) -> KernResult<Arc<Thread<M>>> {
        let thread = Thread::new(&self.host, self).await?;
        {
            let mut state = self.state.lock();
            if !state.alive {
                return Err(KernError::Terminated);
            }
            if state.threads.try_reserve(1).is_ok() {
                let place = state.threads.partition_point(|other| other.id() < thread.id());
                state.threads.insert(place, thread.clone());
                return Ok(thread);
            }
        }
        thread.terminate();
        Err(KernError::ResourceShortage)
    }

    pub(crate) fn forget_thread(&self, id: u64) {
        let thread = {
            let threads = &mut self.state.lock().threads;
            let place = threads.binary_search_by_key(&id, |thread| thread.id());
            place.ok().map(|place| threads.remove(place))
        };
        if let Some(thread) = thread {
            let time = thread.time();
            self.state.lock().ended_time += time;
        }
    }

    /// Suspends the task once more: when this is done, none of its threads executes an instruction.
    ///
    /// # Errors
    /// `Terminated`. `ResourceShortage`: suspended 2^32 times.
    pub fn suspend(&self) -> KernResult {
        self.change_suspension(|count| count.checked_add(1).ok_or(KernError::ResourceShortage))
    }

    /// Takes back one suspension; the last lets its threads run that are not suspended themselves.
    ///
    /// # Errors
    /// `Terminated`. `Failure`: it was not suspended.
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
            state.threads.clone()
        };
        for thread in threads {
            // A thread that has ended meanwhile is as suspended as it can be.
            let _ = thread.apply();
        }
        Ok(())
    }

    /// Sets the base level of its new threads.
    ///
    /// # Errors
    /// `InvalidArgument`: no such level. `NoAccess`: more urgent than its processor set allows.
    pub fn set_base_level(&self, base: u8) -> KernResult {
        let mut state = self.state.lock();
        if base >= LEVELS {
            return Err(KernError::InvalidArgument);
        }
        if base < state.set.most_urgent() {
            return Err(KernError::NoAccess);
        }
        state.base = base;
        Ok(())
    }

    /// Assigns the task's new threads, and with `threads` those that it has, to a processor set.
    ///
    /// # Errors
    /// `Terminated`.
    pub fn assign(&self, set: &Arc<ProcessorSet<M>>, threads: bool) -> KernResult {
        let all = {
            let mut state = self.state.lock();
            if !state.alive {
                return Err(KernError::Terminated);
            }
            state.set = set.clone();
            if threads { state.threads.clone() } else { Vec::new() }
        };
        for thread in all {
            // One that has ended meanwhile needs no processor.
            let _ = thread.assign(set);
        }
        Ok(())
    }

    /// Ends the task: its threads, then its memory. Requests that are under way in it end with
    /// `Terminated`.
    ///
    /// Its threads have ended when this is first polled; dropped before its end, the memory is
    /// released with the last reference to the task.
    pub async fn terminate(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.alive = false;
            core::mem::take(&mut state.threads)
        };
        for thread in &threads {
            thread.terminate();
        }
        self.host.forget_task(self.id);
        self.map.terminate().await;
    }

    /// What is to be known of it.
    ///
    /// # Errors
    /// `Terminated`.
    pub async fn info(&self) -> KernResult<TaskInfo> {
        let virtual_size = self.map.size().await;
        let state = self.state.lock();
        if !state.alive {
            return Err(KernError::Terminated);
        }
        Ok(TaskInfo {
            suspend_count: state.suspend_count,
            virtual_size,
            threads: state.threads.len(),
            time: state.ended_time + state.threads.iter().map(|thread| thread.time()).sum::<u64>(),
            base: state.base,
        })
    }
}

impl<M: Machine> Drop for Task<M> {
    fn drop(&mut self) {
        self.host.forget_task(self.id);
        self.host.machine().unreserve_memory(Self::BYTES);
    }
}
