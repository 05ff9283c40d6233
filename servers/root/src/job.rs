//! Long work: a server's request that takes long, a server's start and its end. Each is a sequence
//! of [pieces](Piece), done outside root's lock, with a look at the notes in between. What a job
//! works on is its own: the notes say so.
//!
//! A server that has come to its end is taken down when no job works for it any more; jobs stop
//! when they see it.

use crate::end::End;
use crate::fill::{Fill, next_run};
use crate::piece::{self, Piece, THREADS};
use crate::requests::{Answer, message, refusal};
use crate::server::{State, id};
use crate::system::System;
use alloc::vec::Vec;
use l4::ipc::Message;
use root::executable::PAGE;
use root::thread_numbers::ThreadName;
use rt::root::Status;
use x2::ThreadId;

/// How a job goes on.
pub(crate) enum Next {
    /// This piece of work is to be done next.
    Piece(Piece),
    /// The job is done, and the thread that has waited for it is to be answered.
    Answer(ThreadId, Message),
    /// The job is done.
    Over,
    /// The job has become another one.
    Become(Job),
}

/// Work that root's background worker does for the server `index`.
pub(crate) enum Job {
    Allocate(Allocate),
    Release(Release),
    EndThreads(EndThreads),
    Start(Start),
    TakeDown(TakeDown),
}

/// Memory is mapped for a thread that waits for it.
pub(crate) struct Allocate {
    pub(crate) index: usize,
    pub(crate) from: ThreadId,
    pub(crate) fill: Fill,
    /// Where the new memory begins in the server's space.
    pub(crate) address: u64,
    pub(crate) pages: u64,
    /// What the thread is told; for shared memory, the number of the share.
    pub(crate) answer: Answer,
    pub(crate) share: Option<u64>,
}

/// A region of a server's space is unmapped and its memory taken back.
pub(crate) struct Release {
    pub(crate) index: usize,
    pub(crate) from: ThreadId,
    /// A thread of the space from which the region is unmapped.
    pub(crate) thread: ThreadId,
    pub(crate) address: u64,
    /// How many bytes are unmapped, and how many there are.
    pub(crate) done: u64,
    pub(crate) size: u64,
    /// The status in the answer to the waiting thread.
    pub(crate) status: Status,
    pub(crate) share: Option<u64>,
}

/// A space has ended; its threads have still to be ended.
pub(crate) struct EndThreads {
    pub(crate) index: usize,
    pub(crate) from: ThreadId,
    pub(crate) threads: Vec<ThreadName>,
    /// The threads that the present piece ends.
    pub(crate) ending: [Option<ThreadName>; THREADS],
}

/// A server's program is loaded and its first thread started.
pub(crate) struct Start {
    pub(crate) index: usize,
    pub(crate) thread: ThreadId,
    pub(crate) entry: u64,
    /// The contents of its memory at the start. They are filled in from the end of this list.
    pub(crate) fills: Vec<Fill>,
}

/// A server has ended, and all that it had is taken back.
pub(crate) struct TakeDown {
    pub(crate) index: usize,
    /// Where the search for the server's threads goes on.
    pub(crate) cursor: u32,
    pub(crate) ending: [Option<ThreadName>; THREADS],
    /// Whether it is taken down because it could not be started.
    pub(crate) failed: bool,
}

impl Job {
    /// The index of the server for which the job works.
    pub(crate) fn index(&self) -> usize {
        match self {
            Job::Allocate(Allocate { index, .. })
            | Job::Release(Release { index, .. })
            | Job::EndThreads(EndThreads { index, .. })
            | Job::Start(Start { index, .. })
            | Job::TakeDown(TakeDown { index, .. }) => *index,
        }
    }
}

impl System {
    /// What a job does next, given the result of its last piece, if there was one.
    pub(crate) fn advance(&mut self, job: &mut Job, last: piece::Result) -> Next {
        let index = job.index();
        let has_ended = self.servers[index].state == State::Ending;
        let next = match job {
            Job::Start(start) => return self.advance_start(start, last),
            Job::TakeDown(down) => return self.advance_take_down(down),
            _ if has_ended => Next::Over,
            Job::Allocate(job) => self.advance_allocate(job, last),
            Job::Release(job) => self.advance_release(job),
            Job::EndThreads(job) => self.advance_end_threads(job),
        };
        if matches!(next, Next::Over | Next::Answer(..)) {
            self.servers[index].jobs -= 1;
        }
        next
    }

    fn advance_allocate(&mut self, job: &mut Allocate, last: piece::Result) -> Next {
        let Allocate { index, from, address, share, .. } = *job;
        if last.is_err() {
            let (thread, size, status) = (job.fill.thread, job.pages * PAGE, Status::NoMemory);
            return Next::Become(Job::Release(Release {
                index,
                from,
                thread,
                address,
                done: 0,
                size,
                status,
                share,
            }));
        }
        if let Some(piece) = job.fill.next() {
            return Next::Piece(piece);
        }
        self.servers[index].memory.settle(address);
        if let Some(share) = share {
            self.resources.shares.publish(share);
        }
        Next::Answer(from, message(&job.answer))
    }

    fn advance_release(&mut self, job: &mut Release) -> Next {
        let address = job.address + job.done;
        if let Some(run) = next_run(address, address, job.size - job.done) {
            job.done += u64::from(run.count) << run.size_log2;
            return Next::Piece(Piece::Unmap { thread: job.thread, run });
        }
        let server = &mut self.servers[job.index];
        server.memory.take_out(&mut self.resources.frames, job.address);
        if let Some(share) = job.share {
            server.memory.give_back(job.size);
            self.resources.shares.withdraw(&mut self.resources.frames, share);
        }
        Next::Answer(job.from, refusal(job.status))
    }

    fn advance_end_threads(&mut self, job: &mut EndThreads) -> Next {
        let server = &mut self.servers[job.index];
        for thread in job.ending.iter_mut().filter_map(Option::take) {
            self.resources.forget_thread(thread);
            server.threads.give_back(1);
        }
        if job.threads.is_empty() {
            server.spaces.give_back(1);
            return Next::Answer(job.from, message(&Answer::None));
        }
        job.ending = core::array::from_fn(|_| job.threads.pop());
        Next::Piece(Piece::End(job.ending))
    }

    fn advance_start(&mut self, job: &mut Start, last: piece::Result) -> Next {
        let mut result =
            last.map_err(|error| alloc::format!("the kernel refused to map its memory: {error:?}"));
        if result.is_ok() {
            while let Some(fill) = job.fills.last_mut() {
                if let Some(piece) = fill.next() {
                    return Next::Piece(piece);
                }
                job.fills.pop();
            }
            result = self.activate(job);
        }
        match result {
            Ok(()) => Next::Over,
            Err(reason) => Next::Become(self.cannot_start(job.index, &reason)),
        }
    }

    /// The report that a server cannot be started, and what is left to do.
    pub(crate) fn cannot_start(&mut self, index: usize, reason: &str) -> Job {
        let server = &mut self.servers[index];
        crate::report!("root: server {} cannot be started: {reason}", server.configuration.name);
        (server.state, server.end) = (State::Ending, Some(End::NotStarted));
        Job::TakeDown(TakeDown { index, cursor: 0, ending: [None; THREADS], failed: true })
    }

    fn advance_take_down(&mut self, job: &mut TakeDown) -> Next {
        let (server, resources) = (&self.servers[job.index], &mut self.resources);
        if server.jobs > 0 {
            return Next::Piece(Piece::Pause);
        }
        for thread in job.ending.iter_mut().filter_map(Option::take) {
            job.cursor = thread.number + 1;
            resources.forget_thread(thread);
        }
        let mut threads = resources.numbers.of_from(server.index, job.cursor);
        job.ending = core::array::from_fn(|_| threads.next());
        if job.ending[0].is_some() {
            return Next::Piece(Piece::End(job.ending));
        }
        drop(threads);
        match self.is_down(job.index, job.failed) {
            Some(next) => Next::Become(next),
            None => Next::Over,
        }
    }
}

impl Start {
    /// The start of a server whose first thread has this name.
    pub(crate) fn of(index: usize, name: ThreadName, entry: u64, mut fills: Vec<Fill>) -> Start {
        fills.reverse();
        Start { index, thread: id(name), entry, fills }
    }
}
