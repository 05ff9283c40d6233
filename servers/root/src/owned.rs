//! Requests about the spaces that a server owns. Only root may create and delete spaces and
//! threads; the owner does everything else itself (docs/src/architecture.md).

use crate::executable::PAGE;
use crate::machine::Machine;
use crate::resources::Resources;
use crate::server::{Server, id, name};
use crate::spaces::{RemovalError, SpaceName};
use crate::thread_numbers::ThreadName;
use alloc::vec::Vec;
use l4::thread::ThreadControl;
use rt::root::Status;
use x2::control::DEFAULT_PRIORITY;
use x2::extension::{Quota, SpaceOption, SystemCallMode};
use x2::{ErrorCode, Fpage, ThreadId};

/// The arguments of the request root_space_create.
struct Wanted {
    kernel_interface: Fpage,
    utcb_area: Fpage,
    utcb_base: u64,
    mode: SystemCallMode,
    emulation_entry: u64,
    kernel_memory: Quota,
}

impl Wanted {
    fn from_words(
        [kip, utcb_base, utcb_log2, mode, emulation_entry, kernel_memory]: [u64; 6],
    ) -> Option<Wanted> {
        let mode = SystemCallMode::from_word(mode)?;
        let kernel_memory = Quota::from_word(kernel_memory)?;
        let utcb_log2 = u32::try_from(utcb_log2).ok().filter(|log2| (12..47).contains(log2))?;
        let aligned = kip.is_multiple_of(PAGE) && utcb_base.is_multiple_of(1 << utcb_log2);
        // Only the alignment is checked here. The kernel checks that the areas lie in user memory
        // and do not overlap.
        aligned.then_some(Wanted {
            kernel_interface: Fpage::memory(kip, 12),
            utcb_area: Fpage::memory(utcb_base, utcb_log2),
            utcb_base,
            mode,
            emulation_entry,
            kernel_memory,
        })
    }
}

impl Server {
    /// Carries out the request for a new space with its first thread.
    pub(crate) fn create_space<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        words: [u64; 6],
        handler: ThreadId,
    ) -> Result<(SpaceName, ThreadId), Status> {
        let wanted = Wanted::from_words(words).ok_or(Status::InvalidArgument)?;
        if !resources.is_own(self.index, handler) {
            return Err(Status::InvalidArgument);
        }
        // A server with a limit cannot ask for "no limit": that word is larger than any limit.
        if self.configuration.kernel_memory.is_some_and(|share| wanted.kernel_memory.word() > share.word()) {
            return Err(Status::QuotaExceeded);
        }
        self.spaces.take(1).map_err(|_| Status::QuotaExceeded)?;
        let first = match self.take_number(resources) {
            Ok(first) => first,
            Err(status) => {
                self.spaces.give_back(1);
                return Err(status);
            }
        };
        let result = self.make_space(resources, &wanted, first, handler);
        if result.is_err() {
            self.give_back_number(resources, first);
            self.spaces.give_back(1);
        }
        result
    }

    fn make_space<M: Machine>(
        &self,
        resources: &mut Resources<M>,
        wanted: &Wanted,
        first: ThreadName,
        handler: ThreadId,
    ) -> Result<(SpaceName, ThreadId), Status> {
        let owner = self.first.ok_or(Status::InvalidArgument)?;
        let thread = id(first);
        let machine = &mut resources.machine;
        let create = ThreadControl { space: thread, scheduler: handler, pager: ThreadId::NIL, utcb: None };
        machine.thread_control(thread, create).map_err(status)?;
        machine.set_areas(thread, wanted.kernel_interface, wanted.utcb_area).map_err(status)?;
        let mut set = |option, value| machine.space_options(thread, option, [value, 0]);
        set(SpaceOption::Owner, owner.raw()).map_err(status)?;
        if wanted.kernel_memory != Quota::UNLIMITED {
            set(SpaceOption::Quota, wanted.kernel_memory.word()).map_err(|_| Status::QuotaExceeded)?;
        }
        if wanted.emulation_entry != 0 {
            set(SpaceOption::EmulationEntry, wanted.emulation_entry).map_err(status)?;
        }
        if wanted.mode != SystemCallMode::None {
            set(SpaceOption::SystemCallMode, wanted.mode as u64).map_err(status)?;
        }
        let activate = ThreadControl { pager: handler, utcb: Some(wanted.utcb_base), ..create };
        machine.thread_control(thread, activate).map_err(status)?;
        self.limit_priority(machine, thread)?;
        let space =
            resources.spaces.add(self.index, wanted.utcb_base, first).map_err(|_| Status::NoMemory)?;
        resources.numbers.set_space(first, space);
        Ok((space, thread))
    }

    /// Carries out the request for another thread in a space that the server owns.
    pub(crate) fn create_space_thread<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        space: SpaceName,
        place: u64,
        handler: ThreadId,
    ) -> Result<ThreadId, Status> {
        let known = resources.spaces.find(self.index, space).ok_or(Status::InvalidArgument)?;
        let (specifier, area) = (id(known.representative()), known.utcb_area());
        let utcb = place.checked_mul(x2::utcb::SIZE).and_then(|offset| area.checked_add(offset));
        if utcb.is_none() || !resources.is_own(self.index, handler) {
            return Err(Status::InvalidArgument);
        }
        resources.spaces.reserve_thread(self.index, space).map_err(|_| Status::NoMemory)?;
        let new = self.take_number(resources)?;
        let thread = id(new);
        let machine = &mut resources.machine;
        let create = ThreadControl { space: specifier, scheduler: handler, pager: handler, utcb };
        let result = machine
            .thread_control(thread, create)
            .map_err(status)
            .and_then(|()| self.limit_priority(machine, thread));
        if let Err(status) = result {
            self.give_back_number(resources, new);
            return Err(status);
        }
        resources.spaces.add_thread(self.index, space, new).expect("room was reserved");
        resources.numbers.set_space(new, space);
        Ok(thread)
    }

    /// Carries out the request to end a thread of a space that the server owns. The last thread of
    /// a space is refused.
    pub(crate) fn delete_space_thread<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        thread: ThreadId,
    ) -> Result<(), Status> {
        if !thread.is_global() {
            return Err(Status::InvalidArgument);
        }
        let name = name(thread);
        let space = resources.numbers.space(name).ok_or(Status::InvalidArgument)?;
        resources
            .spaces
            .remove_thread(self.index, space, name)
            .map_err(|_: RemovalError| Status::InvalidArgument)?;
        self.give_back_number(resources, name);
        Ok(())
    }

    /// Carries out the request to end a space that the server owns. Returns its threads, which the
    /// caller has to end.
    pub(crate) fn delete_space<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        space: SpaceName,
    ) -> Result<Vec<ThreadName>, Status> {
        let ended = resources.spaces.remove(self.index, space).ok_or(Status::InvalidArgument)?;
        Ok(ended.into_threads())
    }

    /// Allocates a thread number for the server, out of its quota of threads.
    fn take_number<M: Machine>(&mut self, resources: &mut Resources<M>) -> Result<ThreadName, Status> {
        self.threads.take(1).map_err(|_| Status::QuotaExceeded)?;
        resources.numbers.allocate(self.index).map_err(|_| {
            self.threads.give_back(1);
            Status::NoMemory
        })
    }

    /// Ends the thread with this name, if the kernel has made it, and frees its number.
    fn give_back_number<M: Machine>(&mut self, resources: &mut Resources<M>, name: ThreadName) {
        resources.end_thread(name);
        self.threads.give_back(1);
    }

    /// Gives a new thread of the server's the server's priority if the kernel's default is higher:
    /// no thread of a server has a higher priority than the server.
    fn limit_priority(&self, machine: &mut impl Machine, thread: ThreadId) -> Result<(), Status> {
        let highest = self.configuration.priority;
        if highest >= DEFAULT_PRIORITY {
            Ok(())
        } else {
            machine.schedule(thread, None, highest).map_err(status)
        }
    }
}

fn status(error: Option<ErrorCode>) -> Status {
    match error {
        Some(ErrorCode::NoMemory) => Status::NoMemory,
        _ => Status::InvalidArgument,
    }
}
