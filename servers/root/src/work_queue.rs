//! The queue of work items of a processor, and the decision whether its request thread or its
//! background worker does a step.

use crate::requests::Answer;
use crate::step::{self, Step};
use crate::work_item::{Next, WorkItem};
use alloc::collections::VecDeque;
use x2::ThreadId;

/// Upper bound of the work that a request thread does itself, as a number of bytes that could be
/// cleared in the same time.
const SHORT: u64 = 256 << 10;

/// The work items of one processor.
#[derive(Default)]
pub struct WorkQueue {
    /// Whether the background worker is waiting for a step.
    is_idle: bool,
    /// The work item of which the background worker is doing a step.
    current: Option<WorkItem>,
    /// The work items that wait for the background worker, each with its next step.
    queue: VecDeque<(WorkItem, Step)>,
}

/// How a [`WorkQueue`] carries out work items.
pub trait Advance {
    /// What a work item does next. `last` is the result of its last step; `Ok` before the first
    /// step.
    fn advance(&mut self, item: &mut WorkItem, last: step::Result) -> Next;

    /// Does a step of a work item.
    ///
    /// # Errors
    /// The kernel's reason for refusing the step.
    fn perform(&mut self, step: &Step) -> step::Result;
}

impl WorkQueue {
    /// Begins a work item. The request thread does its first steps itself, as long as they are
    /// short together; then the background worker continues. Returns the thread that gets an
    /// answer, and the answer, if the work is done.
    pub fn begin(&mut self, by: &mut impl Advance, item: WorkItem) -> Option<(ThreadId, Answer)> {
        self.go_on(by, item, Ok(()), SHORT)
    }

    /// Records the result of the step that the background worker has done; the worker waits for
    /// another one. Returns an answer as [`begin`](Self::begin) does.
    pub fn step_done(&mut self, by: &mut impl Advance, last: step::Result) -> Option<(ThreadId, Answer)> {
        self.is_idle = true;
        let item = self.current.take()?;
        self.go_on(by, item, last, 0)
    }

    /// The next step for the background worker and its work item, if the worker is waiting and
    /// there is one.
    pub fn next_step(&mut self) -> Option<(Step, &WorkItem)> {
        if !self.is_idle {
            return None;
        }
        let (item, step) = self.queue.pop_front()?;
        self.is_idle = false;
        Some((step, self.current.insert(item)))
    }

    fn go_on(
        &mut self,
        by: &mut impl Advance,
        mut item: WorkItem,
        mut last: step::Result,
        mut budget: u64,
    ) -> Option<(ThreadId, Answer)> {
        loop {
            match by.advance(&mut item, last) {
                Next::Step(step) => match budget.checked_sub(step.cost()) {
                    None if self.queue.try_reserve(1).is_ok() => {
                        self.queue.push_back((item, step));
                        return None;
                    }
                    left => {
                        budget = left.unwrap_or(0);
                        last = by.perform(&step);
                    }
                },
                Next::Answer(to, answer) => return Some((to, answer)),
                Next::Become(next) => (item, last) = (next, Ok(())),
                Next::Over => return None,
            }
        }
    }
}
