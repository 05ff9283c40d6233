//! How servers find each other: by the names in the configuration.

use crate::machine::Machine;
use crate::requests::{Answer, LongRequest};
use crate::server::name;
use crate::system::System;
use alloc::vec::Vec;
use rt::root::Status;
use x2::extension::SpaceOption;
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

impl<M: Machine> System<M> {
    /// Request: from now on `thread` answers to the name of server `index`; the threads that wait
    /// for this name are told.
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

    /// Request: the thread that answers to `wanted`, for `from`, a thread of server `index`. None:
    /// `from` waits for it.
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

    /// Server `index` will not run again: all threads that wait for its name are refused.
    pub(crate) fn refuse_waiters(&mut self, index: usize) {
        for waiter in self.take_waiters(index) {
            self.answer(waiter, Err(Status::NotFound));
        }
    }

    fn answer(&mut self, waiter: Waiter, result: Result<ThreadId, Status>) {
        let answer = Answer { request: LongRequest::NameLookup, result: result.map(ThreadId::raw) };
        self.resources.machine.reply(waiter.thread, waiter.asked, answer);
    }

    /// A server's threads have ended: removes those of them that have waited.
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
