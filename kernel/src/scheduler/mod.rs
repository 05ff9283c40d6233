//! Which thread runs: hard priorities, round robin by timeslices, and the timeouts of one processor
//! (X.2 rules 3).
//!
//! Handlers do not switch threads: they return a [`Next`], and [`Scheduler::choose`] turns it into
//! the thread that runs. The running thread is in no queue. A timeslice belongs to the thread that
//! the scheduler last picked from the ready queue; when that thread blocks towards a partner, the
//! partner runs on what is left of it.

mod preemption;
pub mod quantum;
pub mod ready_queue;
pub mod timeouts;

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::eq;

use self::preemption::Verdict;
use self::ready_queue::{ReadyQueue, Ring};
use self::timeouts::{Microseconds, NEVER, Timeouts};
use crate::arch;
use crate::thread::{PriorityCell, Tcb, ThreadRef};

/// What shall run when a handler is done. The value is the whole of the decision: nothing was
/// switched yet.
#[derive(Clone, Copy)]
#[must_use]
pub enum Next {
    /// The current thread goes on, unless one of higher priority is ready, by what it did itself.
    Return,
    /// As `Return`, and nothing has changed for the current thread, nor any deadline: it can go on
    /// as it came.
    Unchanged,
    /// As `Return`, after something that the current thread has nothing to do with, or that it did
    /// as a scheduler. If it loses the processor, that is a preemption of which it can be told (X.2
    /// rule 4.1).
    ReturnFromEvent,
    /// The current thread cannot go on, or waits in the ready queue already: `0` runs on its
    /// timeslice.
    SwitchTo(ThreadRef),
    /// The current thread lets `0`, which is in the ready queue, run on its time, whatever their
    /// priorities (X.2 rule 3.25).
    DonateTo(ThreadRef),
    /// The current thread cannot go on, or waits in the ready queue already: pick a ready thread.
    Schedule,
    /// No thread runs, and `0`, which is in no queue, is the one ready thread: see
    /// [`Scheduler::starts`].
    Start(ThreadRef),
    /// The current thread was interrupted in a long operation: it goes on after the interrupt.
    Interrupted,
    /// The fast path has switched to `0`, which returns to user level: nothing is left to decide.
    Switched(ThreadRef),
}

/// The scheduler of one processor. Home processor only.
pub struct Scheduler {
    /// Ready threads except the running one.
    pub ready: ReadyQueue,
    /// Running timeouts of this processor's threads.
    pub timeouts: Timeouts,
    /// The thread whose timeslice is being used up.
    slice_owner: Cell<Option<ThreadRef>>,
    /// When that thread's timeslice ends.
    slice_end: Cell<Microseconds>,
    /// Lowest priority that preempts: that of the running thread, or of the one that donated its
    /// time to it.
    running_priority: PriorityCell,
    /// The time for which the timer is set.
    timer: Cell<Microseconds>,
    /// The running thread, if its total quantum is finite, and since when it runs.
    metered: Cell<Option<ThreadRef>>,
    metered_since: Cell<Microseconds>,
    /// The running thread, if it should have lost the processor and has delayed that, and until
    /// when.
    delayed: Cell<Option<ThreadRef>>,
    delay_end: Cell<Microseconds>,
    /// The earlier of the two ends.
    special_end: Cell<Microseconds>,
    /// The thread that the end of a timeslice stopped, until another thread is picked.
    slice_loser: Cell<Option<ThreadRef>>,
}

impl Scheduler {
    /// Where entry code finds the priority of the running thread (a byte).
    pub const RUNNING_PRIORITY: usize = offset_of!(Self, running_priority);
    /// Where entry code finds how far from the highest a priority may be so that no ready thread is
    /// above it.
    pub const FARTHEST: usize = offset_of!(Self, ready) + ReadyQueue::FARTHEST;
    /// Where entry code finds the highest priority that has a ready thread (a signed 32-bit word,
    /// -1 = none).
    pub const HIGHEST_READY: usize = offset_of!(Self, ready) + ReadyQueue::HIGHEST;

    /// Where entry code finds the thread whose timeslice is being used up (0 = none).
    pub const SLICE_OWNER: usize = offset_of!(Self, slice_owner);
    /// Offset of the end of the timeslice, for entry code.
    pub const SLICE_END: usize = offset_of!(Self, slice_end);
    /// Where entry code finds the thread that has delayed its preemption (0 = none).
    pub const DELAYED: usize = offset_of!(Self, delayed);

    /// A scheduler without threads.
    pub const fn new() -> Self {
        Self {
            ready: ReadyQueue::new(),
            timeouts: Timeouts::new(),
            slice_owner: Cell::new(None),
            slice_end: Cell::new(NEVER),
            running_priority: PriorityCell::new(),
            timer: Cell::new(NEVER),
            metered: Cell::new(None),
            metered_since: Cell::new(0),
            delayed: Cell::new(None),
            delay_end: Cell::new(NEVER),
            special_end: Cell::new(NEVER),
            slice_loser: Cell::new(None),
        }
    }

    /// Puts a runnable thread that is neither running nor queued into the ready queue. One whose
    /// home is elsewhere goes there when the present handler is done, and is queued here until
    /// then.
    pub fn make_ready(&self, thread: ThreadRef) {
        if thread.ready.is_queued() {
            return;
        }
        if thread.is_home() {
            self.ready.push_back(thread);
        } else {
            self.ready.push_to(Ring::Outbound, thread);
        }
    }

    /// Forgets `thread`, which leaves this processor, and books what it has used.
    #[inline]
    pub fn forget_thread(&self, thread: ThreadRef) {
        let is_it = |place: &Cell<Option<ThreadRef>>| place.get().is_some_and(|other| eq(other, thread));
        if thread.ready.is_queued() {
            self.ready.remove(thread);
        }
        self.timeouts.remove(thread);
        if is_it(&self.slice_owner) {
            self.charge(self.now_for(NEVER));
        }
        if is_it(&self.metered) {
            self.stop_meter();
        }
        if is_it(&self.delayed) {
            self.end_delay();
        }
        if is_it(&self.slice_loser) {
            self.slice_loser.set(None);
        }
    }

    /// Decides which thread runs, charging and starting timeslices. `None`: none is ready.
    ///
    /// `current` is the thread that ran until now.
    pub fn choose(&self, current: Option<ThreadRef>, next: Next) -> Option<ThreadRef> {
        let stays = matches!(next, Next::Return | Next::Unchanged | Next::ReturnFromEvent);
        let asynchronous = matches!(next, Next::ReturnFromEvent);
        if !stays && self.delayed.get().is_some() {
            self.end_delay();
        }
        let candidate = match next {
            Next::Switched(thread) => return Some(thread),
            Next::Start(thread) => {
                self.start(thread);
                return Some(thread);
            }
            Next::Return | Next::Unchanged | Next::ReturnFromEvent => current,
            Next::SwitchTo(thread) => {
                self.ready.remove(thread);
                self.running_priority.set(thread.priority.get());
                Some(thread)
            }
            Next::DonateTo(thread) => {
                self.ready.remove(thread);
                let donor = current.inspect(|donor| self.ready.push_front(donor));
                // The donor's claim to the processor goes with its time.
                let donated = donor.map_or(0, |donor| donor.priority.get());
                self.running_priority.set(thread.priority.get().max(donated));
                Some(thread)
            }
            Next::Interrupted => {
                current.inspect(|thread| self.ready.push_front(thread));
                None
            }
            Next::Schedule => None,
        };
        match (candidate, self.ready.highest_priority()) {
            (Some(thread), Some(highest)) if highest > self.running_priority.get() => {
                if stays && self.preempt(thread, highest, asynchronous) == Verdict::GoesOn {
                    return Some(thread);
                }
                // The thread was preempted: it keeps the rest of its timeslice and its place at the
                // front (X.2 rule 3.4).
                self.ready.push_front(thread);
                self.pick()
            }
            (None, _) => self.pick(),
            (running, _) => running,
        }
    }

    /// Whether `thread`, which runs, goes on after what it did itself, with nothing to be metered.
    #[inline]
    pub fn goes_on(&self, thread: ThreadRef) -> bool {
        self.keeps_processor() && !self.meters(thread)
    }

    /// Whether `thread` runs instead of the current one, if that gives it its timeslice, with
    /// nothing to be metered and no thread that would have to be told.
    #[inline]
    pub fn switches_to(&self, thread: ThreadRef) -> bool {
        self.ready.has_none_above(thread.priority.get())
            && self.delayed.get().is_none()
            && !self.meters(thread)
    }

    /// Whether no ready thread is above the one that runs.
    #[inline]
    pub fn keeps_processor(&self) -> bool {
        self.ready.has_none_above(self.running_priority.get())
    }

    /// The current thread waits and `thread`, than which none of higher priority is ready, runs on
    /// what is left of its timeslice: [`Next::SwitchTo`] on the fast path.
    #[inline]
    pub fn switch_directly(&self, thread: ThreadRef) {
        self.running_priority.set(thread.priority.get());
    }

    /// Takes the next thread from the ready queue and starts its timeslice.
    fn pick(&self) -> Option<ThreadRef> {
        self.begin_timeslice(self.ready.pop())
    }

    /// Whether `thread`, which has become ready, can be started without going into a queue, if no
    /// thread runs.
    #[inline]
    pub fn starts(&self, thread: ThreadRef) -> bool {
        thread.is_home()
            && !thread.ready.is_queued()
            && self.ready.highest_priority().is_none()
            && !self.ready.has_outbound()
    }

    /// The timeslice of `thread`, which is in no queue and runs from now on, begins.
    #[inline]
    pub fn start(&self, thread: ThreadRef) {
        self.begin_timeslice(Some(thread));
    }

    /// The timeslice that was used ends, and that of `thread`, which is in no queue, begins.
    fn begin_timeslice(&self, thread: Option<ThreadRef>) -> Option<ThreadRef> {
        let left = thread.map_or(NEVER, |thread| thread.timeslice_left.get());
        let now = self.now_for(left);
        self.charge(now);
        if let Some(loser) = self.slice_loser.take()
            && !thread.is_some_and(|thread| eq(thread, loser))
        {
            self.timeslice_lost(loser);
        }
        self.slice_owner.set(thread);
        self.slice_end.set(now.saturating_add(left));
        self.running_priority.set(thread.map_or(0, |thread| thread.priority.get()));
        thread
    }

    /// Now, if it matters when the present timeslice ends and the next one, which is `left` long,
    /// begins: one of them is finite.
    #[inline]
    fn now_for(&self, left: Microseconds) -> Microseconds {
        if left == NEVER && self.slice_end.get() == NEVER { 0 } else { arch::clock() }
    }

    /// Books what was used until `now` of the present timeslice to its owner.
    #[inline]
    fn charge(&self, now: Microseconds) {
        if let Some(owner) = self.slice_owner.take() {
            let left = self.slice_end.replace(NEVER);
            // The timeslice is used up: a new one begins (X.2 rule 3.4).
            let left = if left == NEVER || left <= now { owner.timeslice.get() } else { left - now };
            owner.timeslice_left.set(left);
        }
    }

    /// The rest of `thread`'s timeslice in microseconds; `NEVER` = infinite.
    pub fn timeslice_left(&self, thread: &Tcb) -> Microseconds {
        match self.slice_owner.get() {
            Some(owner) if eq(owner, thread) && self.slice_end.get() != NEVER => {
                self.slice_end.get().saturating_sub(arch::clock())
            }
            _ => thread.timeslice_left.get(),
        }
    }

    /// Gives `thread` a new timeslice length, and a whole timeslice of it (X.2 rule 3.16).
    pub fn set_timeslice(&self, thread: ThreadRef, length: Microseconds) {
        thread.timeslice.set(length);
        thread.timeslice_left.set(length);
        if self.slice_owner.get().is_some_and(|owner| eq(owner, thread)) {
            self.slice_end.set(arch::clock().saturating_add(length));
        }
    }

    /// Changes the priority of `thread`, wherever it is queued here.
    pub fn set_priority(&self, thread: ThreadRef, priority: u8, current: Option<ThreadRef>) {
        self.ready.change_priority(thread, priority);
        if current.is_some_and(|current| eq(current, thread)) {
            self.running_priority.set(priority);
        }
    }

    /// The current thread gives up the rest of its timeslice (X.2 rule 3.24).
    pub fn yield_current(&self, current: ThreadRef) -> Next {
        if self.delayed.get().is_some() {
            // The postponed preemption takes place here (X.2 rule 4.8).
            self.end_delay();
        }
        // The timeslice that the current thread gives up may belong to another thread, which then
        // starts with a new one, too.
        if let Some(owner) = self.slice_owner.take() {
            owner.timeslice_left.set(owner.timeslice.get());
        }
        let slice = current.timeslice.get();
        current.timeslice_left.set(slice);
        if self.ready.has_none_above(current.priority.get().saturating_sub(1)) && current.priority.get() > 0 {
            // No other thread would run instead: the thread goes on with a new timeslice.
            self.slice_owner.set(Some(current));
            self.slice_end.set(if slice == NEVER { NEVER } else { arch::clock().saturating_add(slice) });
            self.running_priority.set(current.priority.get());
            return Next::Return;
        }
        self.ready.push_back(current);
        Next::Schedule
    }

    /// Removes a thread that is being deleted from all of the scheduler's data.
    pub fn forget(&self, thread: ThreadRef) {
        self.ready.remove(thread);
        self.timeouts.remove(thread);
        for place in [&self.slice_owner, &self.metered, &self.delayed, &self.slice_loser] {
            if place.get().is_some_and(|other| eq(other, thread)) {
                place.set(None);
            }
        }
        self.update_special();
        self.forget_quantum(thread);
    }

    /// Forgets the total quantum of a thread that is being deleted.
    pub fn forget_quantum(&self, thread: ThreadRef) {
        self.count_quantum(thread, NEVER);
    }

    /// When the quantum or the delay of the running thread ends, or `NEVER`.
    fn update_special(&self) {
        let delay_end = if self.delayed.get().is_some() { self.delay_end.get() } else { NEVER };
        self.special_end.set(delay_end.min(self.quantum_end()));
    }

    /// The timer has fired at `now`: a total quantum ends. Returns whether the delay of a
    /// preemption does.
    pub fn end_special(&self, now: Microseconds) -> bool {
        if now < self.special_end.get() {
            return false;
        }
        self.end_quantum(now);
        let over = self.delay_is_over(now);
        self.update_special();
        over
    }

    /// Whether the present timeslice is over. If so, its owner gets a new one and waits after the
    /// other threads of its priority; so does the current thread after those of its own.
    pub fn end_timeslice(&self, now: Microseconds, current: Option<ThreadRef>) -> bool {
        if now < self.slice_end.get() {
            return false;
        }
        self.slice_end.set(NEVER);
        if let Some(owner) = self.slice_owner.take() {
            owner.timeslice_left.set(owner.timeslice.get());
            self.ready.move_back(owner);
        }
        current.inspect(|thread| self.ready.push_back(thread));
        self.slice_loser.set(current);
        true
    }

    /// The timeout of `thread`, which runs and is about to wait, ends at `deadline`.
    #[inline]
    pub fn begin_timeout(&self, thread: ThreadRef, deadline: Microseconds) {
        if self.timeouts.arm(thread, deadline) && deadline < self.timer.get() {
            self.timer.set(deadline);
            arch::set_timer(deadline);
        }
    }

    /// Sets the timer for the next event, if that is not later than what it is set for. An event
    /// that was dropped meanwhile costs one interrupt without consequence.
    pub fn set_timer(&self) {
        let next = self.slice_end.get().min(self.timeouts.first_deadline()).min(self.special_end.get());
        if next < self.timer.get() {
            self.timer.set(next);
            arch::set_timer(next);
        }
    }

    /// The timer has fired: it is set for nothing now.
    pub fn timer_fired(&self) {
        self.timer.set(NEVER);
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}
