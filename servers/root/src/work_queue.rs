//! Which work items a request thread and its background worker have, and which of the two does the
//! next step of one.

use crate::requests::Answer;
use crate::step::{self, Step};
use crate::work_item::{Next, WorkItem};
use alloc::collections::VecDeque;
use x2::ThreadId;

/// Work that a request thread does itself, in bytes that could be cleared meanwhile.
const SHORT: u64 = 256 << 10;

/// The work items of one processor.
#[derive(Default)]
pub struct WorkQueue {
    /// Whether the background worker waits for a step.
    is_idle: bool,
    /// The work item of which the worker does a step now.
    current: Option<WorkItem>,
    /// The work items that the worker does in turn, each with its next step.
    queue: VecDeque<(WorkItem, Step)>,
}

/// How work goes on: what the caller of a [`WorkQueue`] does for it.
pub trait Advance {
    /// What a work item does next, given the result of its last step.
    fn advance(&mut self, item: &mut WorkItem, last: step::Result) -> Next;

    /// Does a step.
    ///
    /// # Errors
    /// The kernel's reason.
    fn perform(&mut self, step: &Step) -> step::Result;
}

impl WorkQueue {
    /// New work: the request thread does the first steps itself as long as they are short together,
    /// then the background worker goes on. Returns the thread that gets an answer, and the answer,
    /// if the work is done.
    pub fn begin(&mut self, by: &mut impl Advance, item: WorkItem) -> Option<(ThreadId, Answer)> {
        self.go_on(by, item, Ok(()), SHORT)
    }

    /// The background worker waits for a step, and says how its last one went. Returns an answer as
    /// [`begin`](Self::begin) does.
    pub fn step_done(&mut self, by: &mut impl Advance, last: step::Result) -> Option<(ThreadId, Answer)> {
        self.is_idle = true;
        let item = self.current.take()?;
        self.go_on(by, item, last, 0)
    }

    /// The next step for the background worker, if it waits for one, and the work item to which the
    /// step belongs.
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
