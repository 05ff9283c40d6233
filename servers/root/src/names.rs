//! How servers find each other: by the names in the configuration.

use crate::requests::{Outcome, found, refusal};
use crate::server::name;
use crate::system::System;
use alloc::vec::Vec;
use l4::ipc::Message;
use l4::{extension, ipc, utcb};
use rt::root::Status;
use x2::{ErrorCode, ThreadId};

/// A thread that waits until a server registers.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    thread: ThreadId,
    /// The thread of root's that it has asked, and whose answer it waits for.
    asked: ThreadId,
    /// The server.
    index: usize,
}

impl System {
    /// Request: from now on `thread` answers to the name of server `index`; the threads that wait
    /// for this name are told.
    pub(crate) fn register(&mut self, index: usize, thread: ThreadId) -> Result<(), Status> {
        if !self.resources.is_own(self.servers[index].index, thread) {
            return Err(Status::InvalidArgument);
        }
        self.servers[index].registered = Some(thread);
        for waiter in self.take_waiters(index) {
            let answer = match open(waiter.thread, thread) {
                Ok(()) => found(thread),
                Err(status) => refusal(status),
            };
            waiter.answer(answer);
        }
        Ok(())
    }

    /// Request: the thread that answers to `wanted`, for `from`, a thread of server `index`.
    pub(crate) fn lookup(&mut self, index: usize, from: ThreadId, wanted: &[u8], wait: bool) -> Outcome {
        let refused = |status| Outcome::Answer(refusal(status));
        let target = self.servers.iter().position(|server| server.configuration.name.as_bytes() == wanted);
        let Some(target) = target.filter(|&target| target != index) else { return refused(Status::NotFound) };
        let server = &self.servers[target];
        let registered = server.registered.filter(|&thread| self.resources.is_own(server.index, thread));
        match registered {
            Some(thread) => match open(from, thread) {
                Ok(()) => Outcome::Answer(found(thread)),
                Err(status) => refused(status),
            },
            None if wait && server.is_expected() => {
                if self.waiters.try_reserve(1).is_err() {
                    return refused(Status::NoMemory);
                }
                self.waiters.push(Waiter { thread: from, asked: utcb::my_global_id(), index: target });
                Outcome::Later
            }
            None => refused(Status::NotFound),
        }
    }

    /// Server `index` will not run again: all threads that wait for its name are refused.
    pub(crate) fn refuse_waiters(&mut self, index: usize) {
        for waiter in self.take_waiters(index) {
            waiter.answer(refusal(Status::NotFound));
        }
    }

    /// A server's threads have ended: removes those of them that have waited.
    pub(crate) fn forget_waiters(&mut self) {
        self.waiters.retain(|waiter| self.resources.numbers.owner(name(waiter.thread)).is_some());
    }

    fn take_waiters(&mut self, index: usize) -> Vec<Waiter> {
        self.waiters.extract_if(.., |waiter| waiter.index == index).collect()
    }
}

impl Waiter {
    /// The answer comes in the name of the thread that was asked. If the receiver no longer waits,
    /// it gets none.
    fn answer(&self, answer: Message) {
        let here = self.asked == utcb::my_global_id();
        let answer = if here { answer } else { answer.propagated_for(self.asked) };
        let _ = ipc::reply(self.thread, answer);
    }
}

/// Lets the spaces of two threads send to each other.
fn open(one: ThreadId, other: ThreadId) -> Result<(), Status> {
    let status = |error| match error {
        Some(ErrorCode::NoMemory) => Status::NoMemory,
        _ => Status::NotFound,
    };
    extension::set_open(one, other, true).map_err(status)?;
    extension::set_open(other, one, true).map_err(status)
}
