//! Moves threads between processors and between the workers that serve them.

use core::sync::atomic::Ordering;

use macadamia_sync::SpinLock;
use mach::{KernError, KernResult};

use super::{Place, Record, State};
use crate::placement::Placement;
use crate::{kernel, placement};

impl Record {
    /// The processor to which the thread is assigned.
    pub(super) fn processor(&self) -> usize {
        if self.shared.placement.is_some() { self.state.lock().assignment.processor() } else { 0 }
    }

    /// The mask of processors on which the thread may run.
    pub(super) fn affinity(&self) -> u64 {
        if self.shared.placement.is_some() { self.state.lock().assignment.allowed() } else { 1 }
    }

    /// Sets the processors on which the thread may run.
    pub(super) fn set_affinity(&self, mask: u64) -> KernResult {
        let Some(placement) = &self.shared.placement else {
            return if mask & 1 != 0 { Ok(()) } else { Err(KernError::InvalidArgument) };
        };
        let mut state = self.state.lock();
        let has_to_move = {
            let mut placement = placement.lock();
            let mask = mask & placement.all();
            if mask == 0 {
                return Err(KernError::InvalidArgument);
            }
            state.assignment.allow(&mut placement, mask)
        };
        if has_to_move && state.place == Place::Program {
            // The thread gets the new processor's worker when it next sends a message.
            self.settle_again(&mut state);
        }
        Ok(())
    }

    /// Chooses the processor on which a thread that is not with its program continues, and gives it
    /// the worker of that processor. It is called by the thread's own worker just before it answers
    /// the thread; before the thread first runs, any worker may call it.
    #[inline(always)]
    pub(super) fn settle(&self, state: &mut State) {
        if let Some(placement) = &self.shared.placement {
            self.settle_with(placement, state);
        }
    }

    #[inline(never)]
    fn settle_with(&self, placement: &SpinLock<Placement>, state: &mut State) {
        let processor = state.assignment.settle(&mut placement.lock(), self.shared.moment());
        self.live(processor);
        self.follow(state);
    }

    /// Chooses the processor on which the thread continues whose message the calling worker is
    /// about to answer without the thread's task.
    #[inline(always)]
    pub(super) fn try_settle(&self) {
        if self.shared.placement.is_some() {
            self.settle_on_the_way();
        }
    }

    #[inline(never)]
    fn settle_on_the_way(&self) {
        let mut state = self.state.lock();
        self.settle_again(&mut state);
        self.follow(&mut state);
    }

    /// Chooses the processor on which the thread continues, if the thread is with its program.
    pub(super) fn settle_again(&self, state: &mut State) {
        let Some(placement) = &self.shared.placement else { return };
        if state.place == Place::Program {
            let processor = {
                let (placement, now) = (&mut placement.lock(), self.shared.moment());
                state.assignment.end(placement, now);
                let processor = state.assignment.settle(placement, now);
                state.assignment.begin(placement, now);
                processor
            };
            self.live(processor);
        }
    }

    /// Moves the thread to `processor`, if one is given.
    fn live(&self, processor: Option<usize>) {
        if let Some(processor) = processor {
            // This fails only for a thread that has ended.
            let _ = kernel::move_to(self.id, processor);
        }
    }

    /// Makes the worker of the thread's processor receive its messages. It is called by the worker
    /// that is about to answer the thread.
    fn follow(&self, state: &mut State) {
        let worker = placement::worker_of(state.assignment.processor(), self.shared.idle.len());
        if worker == self.worker() {
            return;
        }
        let handler = self.shared.executor.platform().worker(worker);
        // This fails only for a thread that has ended, which sends no messages.
        if kernel::set_handlers(self.id, handler).is_ok() {
            self.worker.store(worker, Ordering::Relaxed);
            if let Some(task) = &state.task {
                task.move_to(worker);
            }
        }
    }
}
