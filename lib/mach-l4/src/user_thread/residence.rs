//! On which processor a thread lives, and which worker serves it.

use core::sync::atomic::Ordering;

use mach::{KernError, KernResult};

use super::{Place, Record, State};
use crate::{kernel, placement};

impl Record {
    /// The processor to which the thread is assigned.
    pub(super) fn processor(&self) -> usize {
        if self.shared.placement.is_some() { self.state.lock().assignment.processor() } else { 0 }
    }

    /// The processors that it may live on, a bit for each.
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
            // Its worker follows when it next comes.
            self.settle_again(&mut state);
        }
        Ok(())
    }

    /// Chooses the processor on which a thread that is not with its program goes on, and gives it
    /// the worker there. Called by the thread's own worker when it is about to answer it; before
    /// the thread first runs, any worker may call this.
    pub(super) fn settle(&self, state: &mut State) {
        let Some(placement) = &self.shared.placement else { return };
        let processor = state.assignment.settle(&mut placement.lock(), self.shared.moment());
        self.live(processor);
        self.follow(state);
    }

    /// The calling worker is about to answer this thread's message without its task: chooses the
    /// processor on which the thread goes on.
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

    /// Chooses where one goes on that is with its program.
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

    /// Lets it live on a processor, if it is a new one.
    fn live(&self, processor: Option<usize>) {
        if let Some(processor) = processor {
            // A thread that has ended cannot be moved.
            let _ = kernel::move_to(self.id, processor);
        }
    }

    /// Lets the worker of its processor be its own. Called by the worker that is about to answer
    /// it.
    fn follow(&self, state: &mut State) {
        let worker = placement::worker_of(state.assignment.processor(), self.shared.idle.len());
        if worker == self.worker() {
            return;
        }
        let handler = self.shared.executor.platform().worker(worker);
        // A thread that has ended sends no messages.
        if kernel::set_handlers(self.id, handler).is_ok() {
            self.worker.store(worker, Ordering::Relaxed);
            if let Some(task) = &state.task {
                task.move_to(worker);
            }
        }
    }
}
