//! Processor sets: groups of processors that threads are assigned to, so that a privileged program
//! can divide the machine (Mach paper 3.1).

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use macadamia_sync::SpinLock;

use crate::machine::Machine;
use crate::thread::LEVELS;
use crate::{KernError, KernResult};

/// A set of processors. Threads assigned to it run on those only.
pub struct ProcessorSet<M: Machine> {
    id: u64,
    processors: SpinLock<Vec<usize>>,
    next: AtomicUsize,
    most_urgent: AtomicU8,
    /// Whether threads of the set may have fixed priorities.
    fixed_priority: AtomicBool,
    /// Ties a set to hosts of one type of machine.
    machine: core::marker::PhantomData<fn() -> M>,
}

impl<M: Machine> ProcessorSet<M> {
    pub(crate) fn new(id: u64, processors: Vec<usize>) -> Self {
        Self {
            id,
            processors: SpinLock::new(processors),
            next: AtomicUsize::new(0),
            most_urgent: AtomicU8::new(0),
            fixed_priority: AtomicBool::new(true),
            machine: core::marker::PhantomData,
        }
    }

    /// A number that no other set of the host has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The processors of the set.
    pub fn processors(&self) -> Vec<usize> {
        self.processors.lock().clone()
    }

    /// The most urgent priority level that threads of the set may have.
    pub fn most_urgent(&self) -> u8 {
        self.most_urgent.load(Ordering::Relaxed)
    }

    /// Limits the priority levels of threads that are assigned to the set, or whose policy is set,
    /// after this call.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such level.
    pub fn set_most_urgent(&self, level: u8) -> KernResult {
        if level >= LEVELS {
            return Err(KernError::InvalidArgument);
        }
        self.most_urgent.store(level, Ordering::Relaxed);
        Ok(())
    }

    /// Whether threads of the set may have fixed priorities. All may share time.
    pub fn allows_fixed_priority(&self) -> bool {
        self.fixed_priority.load(Ordering::Relaxed)
    }

    /// Sets whether threads of the set may have fixed priorities. Threads that have one keep it.
    pub fn allow_fixed_priority(&self, allowed: bool) {
        self.fixed_priority.store(allowed, Ordering::Relaxed);
    }

    /// Chooses a processor of the set for one more thread, each in turn.
    pub(crate) fn choose(&self) -> usize {
        let processors = self.processors.lock();
        match processors.len() {
            0 => 0,
            count => processors[self.next.fetch_add(1, Ordering::Relaxed) % count],
        }
    }

    pub(crate) fn take(&self, processor: usize) {
        self.processors.lock().retain(|&own| own != processor);
    }

    pub(crate) fn give(&self, processor: usize) {
        self.processors.lock().push(processor);
    }
}
