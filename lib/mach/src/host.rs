//! The host: all tasks, processor sets and memory of one machine.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use macadamia_sync::SpinLock;

use crate::machine::Machine;
use crate::personality::Personality;
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::thread::{AGE_INTERVAL, ExceptionHandler, PriorityRange};
use crate::vm::{Vm, VmMap};
use crate::{KernError, KernResult};

/// The tasks, processor sets and memory of a machine.
pub struct Host<M: Machine, P: Personality<M> = ()> {
    vm: Arc<Vm<M>>,
    priorities: PriorityRange,
    time_slice: u32,
    default_set: Arc<ProcessorSet<M>>,
    sets: SpinLock<Vec<Arc<ProcessorSet<M>>>>,
    tasks: SpinLock<BTreeMap<u64, Weak<Task<M, P>>>>,
    handler: SpinLock<Option<Arc<dyn ExceptionHandler<M, P>>>>,
    next_id: AtomicU64,
}

impl<M: Machine, P: Personality<M>> Host<M, P> {
    /// A host whose threads get machine priorities from `priorities`. Time-sharing threads get time
    /// slices of `time_slice` microseconds. All processors are in the default set.
    pub fn new(vm: Arc<Vm<M>>, priorities: PriorityRange, time_slice: u32) -> Arc<Self> {
        let default_set = Arc::new(ProcessorSet::new(0, (0..vm.machine().processors()).collect()));
        Arc::new(Self {
            vm,
            priorities,
            time_slice,
            sets: SpinLock::new(alloc::vec![default_set.clone()]),
            default_set,
            tasks: SpinLock::new(BTreeMap::new()),
            handler: SpinLock::new(None),
            next_id: AtomicU64::new(1),
        })
    }

    /// The machine on which the library runs.
    pub fn machine(&self) -> &M {
        self.vm.machine()
    }

    /// The machine's memory system.
    pub fn vm(&self) -> &Arc<Vm<M>> {
        &self.vm
    }

    pub(crate) fn priorities(&self) -> PriorityRange {
        self.priorities
    }

    pub(crate) fn time_slice(&self) -> u32 {
        self.time_slice
    }

    pub(crate) fn new_id(&self) -> u64 {
        // Relaxed: only uniqueness matters.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a task without a parent, with an empty address space for addresses from `lowest` to
    /// before `highest`.
    ///
    /// # Errors
    /// `InvalidArgument`: the bounds are not aligned or in order. `ResourceShortage`: memory is
    /// short.
    pub async fn create_task_of(
        self: &Arc<Self>,
        lowest: u64,
        highest: u64,
        personality: impl FnOnce(&Arc<VmMap<M>>) -> P::Task,
    ) -> KernResult<Arc<Task<M, P>>> {
        let map = VmMap::new(&self.vm, lowest, highest).await?;
        let personality = personality(&map);
        Task::new(self, map, None, personality)
    }

    pub(crate) fn add_task(&self, task: &Arc<Task<M, P>>) {
        self.tasks.lock().insert(task.id(), Arc::downgrade(task));
    }

    pub(crate) fn forget_task(&self, id: u64) {
        self.tasks.lock().remove(&id);
    }

    /// The tasks that have not been terminated, oldest first.
    pub fn tasks(&self) -> Vec<Arc<Task<M, P>>> {
        let tasks = self.tasks.lock();
        tasks.values().filter_map(Weak::upgrade).collect()
    }

    /// Sets the handler of exceptions that neither thread nor task handle.
    pub fn set_exception_handler(&self, handler: Option<Arc<dyn ExceptionHandler<M, P>>>) {
        // The old handler is dropped after the lock is released.
        let _old = core::mem::replace(&mut *self.handler.lock(), handler);
    }

    pub(crate) fn exception_handler(&self) -> Option<Arc<dyn ExceptionHandler<M, P>>> {
        self.handler.lock().clone()
    }

    /// The processor set that new tasks are assigned to.
    pub fn default_set(&self) -> &Arc<ProcessorSet<M>> {
        &self.default_set
    }

    /// All processor sets of the host.
    pub fn processor_sets(&self) -> Vec<Arc<ProcessorSet<M>>> {
        self.sets.lock().clone()
    }

    /// Makes a processor set without processors.
    pub fn create_processor_set(&self) -> Arc<ProcessorSet<M>> {
        let set = Arc::new(ProcessorSet::new(self.new_id(), Vec::new()));
        self.sets.lock().push(set.clone());
        set
    }

    /// Ends a processor set. Its processors, tasks and threads go to the default set.
    ///
    /// # Errors
    /// `Failure`: it is the default set.
    pub fn destroy_processor_set(&self, set: &Arc<ProcessorSet<M>>) -> KernResult {
        if Arc::ptr_eq(set, &self.default_set) {
            return Err(KernError::Failure);
        }
        for processor in set.processors() {
            // A processor that has left the set meanwhile is in another one.
            let _ = self.assign_processor(processor, &self.default_set);
        }
        self.sets.lock().retain(|other| !Arc::ptr_eq(other, set));
        for task in self.tasks() {
            if Arc::ptr_eq(&task.processor_set(), set) {
                // A task or a thread that has ended meanwhile needs no set.
                let _ = task.assign(&self.default_set, false);
            }
            for thread in task.threads() {
                if Arc::ptr_eq(&thread.processor_set(), set) {
                    let _ = thread.assign(&self.default_set);
                }
            }
        }
        Ok(())
    }

    /// Moves a processor into a set, and the threads of the set that it leaves to that set's other
    /// processors.
    ///
    /// # Errors
    /// `InvalidArgument`: no such processor. `Failure`: it is the last of the default set.
    pub fn assign_processor(&self, processor: usize, set: &Arc<ProcessorSet<M>>) -> KernResult {
        let old = {
            // The lock is held for the whole step, because a processor must always be in one set:
            // of two processors that leave the default set, the second must see that the first has
            // gone.
            let sets = self.sets.lock();
            let old = sets.iter().find(|set| set.processors().contains(&processor));
            let old = old.cloned().ok_or(KernError::InvalidArgument)?;
            let last = Arc::ptr_eq(&old, &self.default_set) && old.processors().len() == 1;
            if last && !Arc::ptr_eq(&old, set) {
                return Err(KernError::Failure);
            }
            old.take(processor);
            set.give(processor);
            old
        };
        for thread in self.tasks().iter().flat_map(|task| task.threads()) {
            // A thread that has ended meanwhile needs no processor.
            let _ = thread.leave_processor(processor, &old);
        }
        Ok(())
    }

    /// Lowers and raises the priorities of time-sharing threads by their use of the processor, for
    /// ever. A server spawns this once.
    pub async fn scheduler(self: Arc<Self>) {
        let mut next = self.machine().now();
        loop {
            next += AGE_INTERVAL;
            self.machine().sleep_until(next).await;
            for thread in self.tasks().iter().flat_map(|task| task.threads()) {
                // A thread that has ended meanwhile has no priority to change.
                let _ = thread.age();
            }
        }
    }
}

impl<M: Machine> Host<M> {
    /// Makes a task without a parent, with an empty address space for addresses from `lowest` to
    /// before `highest`.
    ///
    /// # Errors
    /// `InvalidArgument`: the bounds are not aligned or in order. `ResourceShortage`: memory is
    /// short.
    pub async fn create_task(self: &Arc<Self>, lowest: u64, highest: u64) -> KernResult<Arc<Task<M>>> {
        self.create_task_of(lowest, highest, |_| ()).await
    }
}
