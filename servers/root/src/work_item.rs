//! Work items: work for a server that takes long, which are some of its requests, its start and its
//! end. A work item is a sequence of [steps](Step). Steps are done without root's lock; between two
//! steps the item reads and changes root's tables. The tables reserve what an item uses for it.
//!
//! The resources of a server that has ended are taken back after its other work items have stopped.
//! A work item stops when it sees that its server has ended.

use crate::end::End;
use crate::executable::PAGE;
use crate::fill::{Fill, next_run};
use crate::machine::Machine;
use crate::requests::{Answer, LongRequest};
use crate::server::{State, id};
use crate::step::{self, Step, THREADS};
use crate::system::System;
use crate::thread_numbers::ThreadName;
use alloc::vec::Vec;
use rt::root::Status;
use x2::ThreadId;

/// What happens after a step of a work item.
pub enum Next {
    /// This step is done next.
    Step(Step),
    /// The work is done, and this thread, which has waited for it, gets this answer.
    Answer(ThreadId, Answer),
    /// The work is done, and no thread waits for it.
    Over,
    /// Another work item takes the place of this one.
    Become(WorkItem),
}

/// Work that root's background worker does for the server `index`.
pub struct WorkItem {
    pub(crate) index: usize,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    Allocate(Allocate),
    Release(Release),
    EndThreads(EndThreads),
    Start(Start),
    TakeDown(TakeDown),
}

/// Work: maps new memory for a thread that waits for it.
pub(crate) struct Allocate {
    pub(crate) from: ThreadId,
    pub(crate) fill: Fill,
    /// Where the new memory begins in the server's space.
    pub(crate) address: u64,
    pub(crate) pages: u64,
    /// The answer if nothing fails. The one to a request for shared memory has the number of the
    /// share.
    pub(crate) answer: Answer,
}

impl Allocate {
    /// The number of the share, if the memory is to be shared.
    fn share(&self) -> Option<u64> {
        self.answer.result.ok().filter(|_| self.answer.request == LongRequest::ShareCreate)
    }
}

/// Work: unmaps a region of a server's space and frees its memory.
pub(crate) struct Release {
    pub(crate) from: ThreadId,
    /// A thread of the space from which the region is unmapped.
    pub(crate) thread: ThreadId,
    pub(crate) address: u64,
    /// How many bytes have been unmapped, and how many there are.
    pub(crate) done: u64,
    pub(crate) size: u64,
    /// The answer to the thread that waits.
    pub(crate) answer: Answer,
    pub(crate) share: Option<u64>,
}

/// Work: ends the threads of a space that has ended.
pub(crate) struct EndThreads {
    pub(crate) from: ThreadId,
    pub(crate) threads: Vec<ThreadName>,
    /// The threads that the present step ends.
    pub(crate) ending: [Option<ThreadName>; THREADS],
}

/// Work: loads a server's program and starts its first thread.
pub(crate) struct Start {
    pub(crate) thread: ThreadId,
    pub(crate) entry: u64,
    /// The contents of the server's initial memory. They are filled in from the end of this list.
    pub(crate) fills: Vec<Fill>,
}

/// Work: takes back all resources of a server that has ended.
pub(crate) struct TakeDown {
    /// The thread number from which the search for the server's threads continues.
    pub(crate) cursor: u32,
    pub(crate) ending: [Option<ThreadName>; THREADS],
    /// Whether the server has ended because it could not be started.
    pub(crate) failed: bool,
}

impl<M: Machine> System<M> {
    /// What a work item does next. `last` is the result of its last step; `Ok` before the first
    /// step.
    pub fn advance(&mut self, item: &mut WorkItem, last: step::Result) -> Next {
        let index = item.index;
        let has_ended = self.servers[index].state == State::Ending;
        let next = match &mut item.work {
            Work::Start(start) => return self.advance_start(index, start, last),
            Work::TakeDown(down) => return self.advance_take_down(index, down),
            _ if has_ended => Next::Over,
            Work::Allocate(allocate) => self.advance_allocate(index, allocate, last),
            Work::Release(release) => self.advance_release(index, release),
            Work::EndThreads(end) => self.advance_end_threads(index, end),
        };
        if matches!(next, Next::Over | Next::Answer(..)) {
            self.servers[index].work_items -= 1;
        }
        next
    }

    fn advance_allocate(&mut self, index: usize, item: &mut Allocate, last: step::Result) -> Next {
        let (Allocate { from, address, answer, .. }, share) = (&*item, item.share());
        let (from, address, answer) = (*from, *address, *answer);
        if last.is_err() {
            let (thread, size) = (item.fill.thread, item.pages * PAGE);
            let answer = Answer { result: Err(Status::NoMemory), ..answer };
            let work = Work::Release(Release { from, thread, address, done: 0, size, answer, share });
            return Next::Become(WorkItem { index, work });
        }
        if let Some(step) = item.fill.next() {
            return Next::Step(step);
        }
        self.servers[index].memory.settle(address);
        if let Some(share) = share {
            self.resources.shares.publish(share);
        }
        Next::Answer(from, answer)
    }

    fn advance_release(&mut self, index: usize, item: &mut Release) -> Next {
        let address = item.address + item.done;
        if let Some(run) = next_run(address, address, item.size - item.done) {
            item.done += u64::from(run.count) << run.size_log2;
            return Next::Step(Step::Unmap { thread: item.thread, run });
        }
        let server = &mut self.servers[index];
        server.memory.take_out(&mut self.resources.frames, item.address);
        if let Some(share) = item.share {
            server.memory.give_back(item.size);
            self.resources.shares.withdraw(&mut self.resources.frames, share);
        }
        Next::Answer(item.from, item.answer)
    }

    fn advance_end_threads(&mut self, index: usize, item: &mut EndThreads) -> Next {
        let server = &mut self.servers[index];
        for thread in item.ending.iter_mut().filter_map(Option::take) {
            self.resources.forget_thread(thread);
            server.threads.give_back(1);
        }
        if item.threads.is_empty() {
            server.spaces.give_back(1);
            return Next::Answer(item.from, Answer { request: LongRequest::SpaceDelete, result: Ok(0) });
        }
        item.ending = core::array::from_fn(|_| item.threads.pop());
        Next::Step(Step::End(item.ending.map(|name| name.map(id))))
    }

    fn advance_start(&mut self, index: usize, item: &mut Start, last: step::Result) -> Next {
        let mut result =
            last.map_err(|error| alloc::format!("the kernel refused to map its memory: {error:?}"));
        if result.is_ok() {
            while let Some(fill) = item.fills.last_mut() {
                if let Some(step) = fill.next() {
                    return Next::Step(step);
                }
                item.fills.pop();
            }
            result = self.activate(index, item);
        }
        match result {
            Ok(()) => Next::Over,
            Err(reason) => Next::Become(self.cannot_start(index, &reason)),
        }
    }

    /// Reports that server `index` cannot be started, for this reason, and returns the work of
    /// taking back what it has.
    pub(crate) fn cannot_start(&mut self, index: usize, reason: &str) -> WorkItem {
        let server = &mut self.servers[index];
        self.resources
            .machine
            .report(format_args!("root: server {} cannot be started: {reason}", server.configuration.name));
        (server.state, server.end) = (State::Ending, Some(End::NotStarted));
        TakeDown::of(index, true)
    }

    fn advance_take_down(&mut self, index: usize, item: &mut TakeDown) -> Next {
        let (server, resources) = (&self.servers[index], &mut self.resources);
        if server.work_items > 0 {
            return Next::Step(Step::Pause);
        }
        for thread in item.ending.iter_mut().filter_map(Option::take) {
            item.cursor = thread.number + 1;
            resources.forget_thread(thread);
        }
        let mut threads = resources.numbers.of_from(server.index, item.cursor);
        item.ending = core::array::from_fn(|_| threads.next());
        if item.ending[0].is_some() {
            return Next::Step(Step::End(item.ending.map(|name| name.map(id))));
        }
        drop(threads);
        match self.is_down(index, item.failed) {
            Some(next) => Next::Become(next),
            None => Next::Over,
        }
    }
}

impl Start {
    /// The work of starting a server whose first thread has this name.
    pub(crate) fn of(name: ThreadName, entry: u64, mut fills: Vec<Fill>) -> Start {
        fills.reverse();
        Start { thread: id(name), entry, fills }
    }
}

impl TakeDown {
    /// The work of taking back the resources of server `index`, which has ended, or `failed` to
    /// start.
    pub(crate) fn of(index: usize, failed: bool) -> WorkItem {
        let work = Work::TakeDown(TakeDown { cursor: 0, ending: [None; THREADS], failed });
        WorkItem { index, work }
    }
}
