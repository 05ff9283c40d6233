//! The registry of servers' names: how servers find each other by the names in the configuration.

use crate::machine::Machine;
use crate::requests::{Answer, LongRequest};
use crate::server::name;
use crate::system::System;
use alloc::vec::Vec;
use rt::root::Status;
use x2::extension::SpaceOption;
use x2::{ErrorCode, ThreadId};

/// A thread that waits until a server has registered its name.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    thread: ThreadId,
    /// The thread of root's that received the lookup: the answer is sent in its name.
    asked: ThreadId,
    /// The server whose name the thread has looked up.
    index: usize,
}

impl<M: Machine> System<M> {
    /// Carries out the request to register `thread` under the name of server `index`. Threads that
    /// wait for the name get their answers.
    pub(crate) fn register(&mut self, index: usize, thread: ThreadId) -> Result<(), Status> {
        if !self.resources.is_own(self.servers[index].index, thread) {
            return Err(Status::InvalidArgument);
        }
        self.servers[index].registered = Some(thread);
        for waiter in self.take_waiters(index) {
            let opened = open(&mut self.resources.machine, waiter.thread, thread);
            self.answer(waiter, opened.map(|()| thread));
        }
        Ok(())
    }

    /// Carries out a lookup: finds the thread that is registered as `wanted`, for `from`, a thread
    /// of server `index`. None: `from` waits until a thread is registered.
    pub(crate) fn lookup(
        &mut self,
        index: usize,
        from: ThreadId,
        wanted: &[u8],
        wait: bool,
    ) -> Result<Option<ThreadId>, Status> {
        let target = self.servers.iter().position(|server| server.configuration.name.as_bytes() == wanted);
        let target = target.filter(|&target| target != index).ok_or(Status::NotFound)?;
        let server = &self.servers[target];
        let registered = server.registered.filter(|&thread| self.resources.is_own(server.index, thread));
        match registered {
            Some(thread) => open(&mut self.resources.machine, from, thread).map(|()| Some(thread)),
            None if wait && server.is_expected() => {
                self.waiters.try_reserve(1).map_err(|_| Status::NoMemory)?;
                let asked = self.resources.machine.caller();
                self.waiters.push(Waiter { thread: from, asked, index: target });
                Ok(None)
            }
            None => Err(Status::NotFound),
        }
    }

    /// Answers all threads that wait for the name of server `index` with an error, since the server
    /// will not run again.
    pub(crate) fn refuse_waiters(&mut self, index: usize) {
        for waiter in self.take_waiters(index) {
            self.answer(waiter, Err(Status::NotFound));
        }
    }

    fn answer(&mut self, waiter: Waiter, result: Result<ThreadId, Status>) {
        let answer = Answer { request: LongRequest::NameLookup, result: result.map(ThreadId::raw) };
        self.resources.machine.reply(waiter.thread, waiter.asked, answer);
    }

    /// Removes the waiting threads that no longer exist, after a server's threads have ended.
    pub(crate) fn forget_waiters(&mut self) {
        self.waiters.retain(|waiter| self.resources.numbers.owner(name(waiter.thread)).is_some());
    }

    fn take_waiters(&mut self, index: usize) -> Vec<Waiter> {
        self.waiters.extract_if(.., |waiter| waiter.index == index).collect()
    }
}

/// Lets the spaces of two threads send to each other.
fn open(machine: &mut impl Machine, one: ThreadId, other: ThreadId) -> Result<(), Status> {
    for (space, other) in [(one, other), (other, one)] {
        machine.space_options(space, SpaceOption::Open, [other.raw(), 1]).map_err(|error| match error {
            Some(ErrorCode::NoMemory) => Status::NoMemory,
            _ => Status::NotFound,
        })?;
    }
    Ok(())
}
