//! Tests of the work items of a request thread and its background worker.

use super::*;
use crate::step::Step;
use crate::work_queue::{Advance, WorkQueue};

/// Carries out steps on the simulated machine, and counts them.
struct Noting<'a> {
    root: &'a mut Root,
    steps: usize,
}

impl Advance for Noting<'_> {
    fn advance(&mut self, item: &mut WorkItem, last: step::Result) -> Next {
        self.root.system.advance(item, last)
    }

    fn perform(&mut self, step: &Step) -> step::Result {
        self.steps += 1;
        self.root.machine().perform(step)
    }
}

/// Sends a request that makes a work item, and begins it in this queue.
fn begin(root: &mut Root, work: &mut WorkQueue, index: usize, words: [u64; 2]) -> (Option<Answer>, usize) {
    assert_eq!(root.send(root.first(index), ALLOCATE, &words), None);
    let (item, _) = root.queue.pop().unwrap();
    let mut by = Noting { root, steps: 0 };
    let answer = work.begin(&mut by, item);
    (answer.map(|(_, answer)| Answer::of(answer)), by.steps)
}

#[test]
fn short_work_is_done_by_the_request_thread_and_long_work_by_the_worker_in_turn() {
    let mut root = Root::start(&two(1024, ""));
    let mut work = WorkQueue::default();
    // A short request is done in two steps: the memory is cleared, then mapped.
    assert_eq!(begin(&mut root, &mut work, 0, [ROOM, 4 * PAGE]), (Some(Answer::Done), 2));
    assert_eq!(begin(&mut root, &mut work, 0, [room(512), 512 * PAGE]), (None, 0));
    assert_eq!(begin(&mut root, &mut work, 1, [room(512), 512 * PAGE]), (None, 0));
    assert!(work.next_step().is_none(), "the worker is not ready yet");
    let mut turns = Vec::new();
    let mut answers = Vec::new();
    let mut last = Ok(());
    loop {
        let answer = work.step_done(&mut Noting { root: &mut root, steps: 0 }, last);
        answers.extend(answer.map(|(to, answer)| (to, Answer::of(answer))));
        let Some((step, item)) = work.next_step() else { break };
        turns.push(item.index);
        last = root.machine().perform(&step);
        assert!(work.next_step().is_none(), "the worker has a step");
    }
    assert_eq!(answers, [(root.first(0), Answer::Done), (root.first(1), Answer::Done)]);
    assert!(turns.len() >= 6 && turns.chunks(2).all(|turn| *turn == [0, 1]), "{turns:?}");
    root.check();
}

#[test]
fn a_step_that_fails_at_the_worker_is_undone() {
    let mut root = Root::start(&two(1024, ""));
    let mut work = WorkQueue::default();
    assert_eq!(begin(&mut root, &mut work, 0, [ROOM, 512 * PAGE]).0, None);
    let mut last = Ok(());
    let answer = loop {
        let answer = work.step_done(&mut Noting { root: &mut root, steps: 0 }, last);
        if answer.is_some() {
            break answer;
        }
        let (step, _) = work.next_step().unwrap();
        let is_map = matches!(step, Step::Map { .. });
        last = if is_map { Err(None) } else { root.machine().perform(&step) };
    };
    let answer = answer.map(|(to, answer)| (to, Answer::of(answer)));
    assert_eq!(answer, Some((root.first(0), Answer::Refused(Status::NoMemory))));
    root.check();
}
