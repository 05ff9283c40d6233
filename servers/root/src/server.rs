//! A server: its program in an address space of its own, its threads, its resources, and how they
//! are taken back.

use crate::address_space::AddressSpace;
use crate::configuration;
use crate::dma::DeviceMemory;
use crate::end::End;
use crate::executable::{Executable, PAGE};
use crate::frames::Initially;
use crate::machine::Machine;
use crate::modules::Module;
use crate::quota::Quota;
use crate::resources::Resources;
use crate::thread_numbers::{ServerIndex, ThreadName};
use crate::work_item::Start;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use l4::thread::ThreadControl;
use rt::root::Status;
use rt::start_page;
use x2::extension::SpaceOption;
use x2::{ErrorCode, Fpage, Rights, ThreadId, Time};

/// The address of a server's UTCB area, which has room for as many threads as a configuration can
/// give.
const UTCB_AREA: u64 = 0x7ffe_0000_0000;
/// Pages of the first thread's stack.
const STACK_PAGES: u64 = 16;
/// Address of the first thread's stack. The page below it is never mapped.
const STACK: u64 = 0x7ffd_0000_0000;
/// After how many microseconds a server does not end because of its start any more.
const LASTING: u64 = 60_000_000;

/// The state of a server between its start and its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The server has ended or was never started: it has no memory, thread or address space.
    Down,
    /// The server's program is being loaded; none of its threads runs yet.
    Starting,
    /// The server runs.
    Up,
    /// The server has ended, and its resources are being taken back. Its requests get no answer.
    Ending,
}

/// A server of the configuration and, while it runs, its resources.
pub(crate) struct Server {
    pub(crate) configuration: configuration::Server,
    program: Module,
    /// The boot modules that the server may map, in the configuration's order.
    pub(crate) modules: Vec<Module>,
    /// For each PCI function of the configuration, its index in [`Resources::functions`]; `None`
    /// where the machine has no such function.
    pub(crate) functions: Vec<Option<usize>>,
    pub(crate) index: ServerIndex,
    pub(crate) memory: AddressSpace,
    /// The memory that the server's devices may write; it is kept when the server ends.
    pub(crate) dma: DeviceMemory,
    pub(crate) threads: Quota,
    pub(crate) spaces: Quota,
    /// For each place in the server's UTCB area, the thread that has it.
    utcbs: Vec<Option<ThreadName>>,
    pub(crate) state: State,
    /// How many unfinished work items there are for the server.
    pub(crate) work_items: u32,
    /// The server's first thread, while it runs.
    pub(crate) first: Option<ThreadId>,
    /// The thread that clients get when they look up the server's name.
    pub(crate) registered: Option<ThreadId>,
    /// How often root has started the server again.
    pub(crate) restarts: u32,
    /// How often of these since it ran for [`LASTING`] the last time.
    pub(crate) recent_restarts: u32,
    /// When its first thread was started the last time ([`Machine::now`]).
    started: u64,
    /// The reason why the server ended the last time.
    pub(crate) end: Option<End>,
}

/// The global id of the thread with this name.
pub(crate) fn id(name: ThreadName) -> ThreadId {
    ThreadId::global(name.number, name.version).expect("versions make global ids")
}

/// The name of the thread with this global id.
pub(crate) fn name(id: ThreadId) -> ThreadName {
    ThreadName { number: id.number(), version: id.version() }
}

impl Server {
    pub(crate) fn new(
        configuration: configuration::Server,
        program: Module,
        modules: Vec<Module>,
        index: ServerIndex,
        memory: u64,
    ) -> Server {
        Server {
            program,
            modules,
            functions: Vec::new(),
            index,
            memory: AddressSpace::new(index, memory),
            dma: DeviceMemory::default(),
            threads: Quota::new(configuration.threads.into()),
            spaces: Quota::new(configuration.spaces.into()),
            utcbs: Vec::new(),
            state: State::Down,
            work_items: 0,
            first: None,
            registered: None,
            restarts: 0,
            recent_restarts: 0,
            started: 0,
            end: None,
            configuration,
        }
    }

    /// Whether the server runs or is going to be started.
    pub(crate) fn is_expected(&self) -> bool {
        match self.state {
            State::Down => false,
            State::Starting | State::Up => true,
            State::Ending => self.will_restart(),
        }
    }

    /// Whether root starts the server again after it has ended. A driver of functions that the
    /// machine lacks would only end again.
    pub(crate) fn will_restart(&self) -> bool {
        self.recent_restarts < self.configuration.restarts && !self.lacks_functions()
    }

    /// Whether the server has PCI functions by its configuration, and the machine none of them.
    fn lacks_functions(&self) -> bool {
        !self.functions.is_empty() && self.functions.iter().all(Option::is_none)
    }

    /// Counts that the server is started again.
    pub(crate) fn count_restart(&mut self) {
        self.restarts += 1;
        self.recent_restarts += 1;
    }

    /// The server has ended, at the time `now`: it must be taken down.
    pub(crate) fn has_ended(&mut self, end: End, now: u64) {
        if self.state == State::Up && now - self.started >= LASTING {
            self.recent_restarts = 0;
        }
        self.end = Some(end);
        self.state = State::Ending;
        (self.first, self.registered) = (None, None);
    }

    /// Begins to start the server, which has no resources yet: allocates its space and memory.
    /// Returns the work of filling the memory.
    ///
    /// # Errors
    /// The reason why the server cannot be started, as text. It may have some resources then.
    pub(crate) fn begin<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        roots: &[ThreadId],
    ) -> Result<Start, String> {
        let program = Executable::parse(self.program.content)?;
        self.state = State::Starting;
        resources.begin_domain(self.index)?;
        self.threads.take(1).map_err(|_| "it may have no thread")?;
        self.spaces.take(1).map_err(|_| "it may have no space")?;
        let name = resources.numbers.allocate(self.index).map_err(|_| "no thread number is free")?;
        let thread = id(name);
        self.utcbs.push(Some(name));
        let machine = &mut resources.machine;
        let me = machine.caller();
        let create = ThreadControl { space: thread, scheduler: me, pager: ThreadId::NIL, utcb: None };
        machine.thread_control(thread, create).map_err(refused("a space"))?;
        let utcbs = (u64::from(self.configuration.threads) * x2::utcb::SIZE).next_power_of_two().max(PAGE);
        let areas = (Fpage::memory(start_page::KIP, 12), Fpage::memory(UTCB_AREA, utcbs.ilog2()));
        machine.set_areas(thread, areas.0, areas.1).map_err(refused("its areas"))?;
        let mut set = |option, value| machine.space_options(thread, option, [value, 0]);
        set(SpaceOption::Owner, me.raw()).map_err(refused("owning its space"))?;
        if let Some(quota) = self.configuration.kernel_memory {
            set(SpaceOption::Quota, quota.word()).map_err(refused("its kernel memory"))?;
        }
        let mut fills = Vec::new();
        let mut add = |machine: &M, address, pages, rights| {
            let memory = (&mut resources.frames, machine);
            self.memory.reserve_memory(memory, thread, address, pages, Initially::Zero, rights)
        };
        for segment in &program.segments {
            let mut rights = Rights::READ;
            for (right, given) in [(Rights::EXECUTE, segment.execute), (Rights::WRITE, segment.write)] {
                if given {
                    rights = rights.or(right);
                }
            }
            let mut fill = add(&resources.machine, segment.address, segment.pages, rights)?;
            fill.content = segment.content;
            fills.push(fill);
        }
        let page = start_page::encode(&self.configuration.name, &self.configuration.arguments, roots);
        let page = page.ok_or("its name and arguments do not fit a page")?;
        let mut fill = add(&resources.machine, start_page::ADDRESS, 1, Rights::READ)?;
        for block in &mut fill.blocks {
            resources.machine.write_memory(block.range.clone(), &page);
            block.clear = false;
        }
        fills.push(fill);
        fills.push(add(&resources.machine, STACK, STACK_PAGES, Rights::READ_WRITE)?);
        Ok(Start::of(name, program.entry, fills))
    }

    /// Starts the first thread of the server, whose program is in its memory, on the first
    /// processor.
    ///
    /// # Errors
    /// The reason why the thread cannot be started, as text.
    pub(crate) fn activate(&mut self, machine: &mut impl Machine, start: &Start) -> Result<(), String> {
        let (thread, me) = (start.thread, machine.caller());
        let create = ThreadControl { space: thread, scheduler: me, pager: me, utcb: Some(UTCB_AREA) };
        machine.thread_control(thread, create).map_err(refused("its first thread"))?;
        machine.set_exception_handler(thread, me).map_err(refused("handling its exceptions"))?;
        let priority = self.configuration.priority;
        machine.schedule(thread, Some(0), priority).map_err(refused("its priority"))?;
        self.memory.settle_all();
        // The stack pointer is as after a call instruction, which pushes a return address of 8
        // bytes.
        let stack = STACK + STACK_PAGES * PAGE - 8;
        machine
            .start(thread, start.entry, stack, Time::NEVER)
            .map_err(|error| format!("it could not be started: {error:?}"))?;
        (self.state, self.first, self.started) = (State::Up, Some(thread), machine.now());
        Ok(())
    }

    /// Carries out the request for another thread in the server's space, which starts at `ip` with
    /// `sp`. The server's first thread becomes its scheduler.
    pub(crate) fn create_thread<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        ip: u64,
        sp: u64,
    ) -> Result<ThreadId, Status> {
        let first = self.first.ok_or(Status::InvalidArgument)?;
        self.threads.take(1).map_err(|_| Status::QuotaExceeded)?;
        let Ok(name) = resources.numbers.allocate(self.index) else {
            self.threads.give_back(1);
            return Err(Status::NoMemory);
        };
        let place = self.utcbs.iter().position(Option::is_none).unwrap_or_else(|| {
            self.utcbs.push(None);
            self.utcbs.len() - 1
        });
        self.utcbs[place] = Some(name);
        let machine = &mut resources.machine;
        let (thread, me) = (id(name), machine.caller());
        let utcb = Some(UTCB_AREA + place as u64 * x2::utcb::SIZE);
        let create = ThreadControl { space: first, scheduler: first, pager: me, utcb };
        let started = machine.thread_control(thread, create).is_ok()
            && machine.set_exception_handler(thread, me).is_ok()
            && machine.schedule(thread, None, self.configuration.priority).is_ok()
            && machine.start(thread, ip, sp, Time::ZERO).is_ok();
        if started {
            return Ok(thread);
        }
        self.drop_thread(resources, name);
        Err(Status::NoMemory)
    }

    /// Carries out the request to end a thread of the server's own space. Its first thread is
    /// refused.
    pub(crate) fn delete_thread<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        thread: ThreadId,
    ) -> Result<(), Status> {
        if !resources.is_own(self.index, thread) || self.first == Some(thread) {
            return Err(Status::InvalidArgument);
        }
        self.drop_thread(resources, name(thread));
        Ok(())
    }

    fn drop_thread<M: Machine>(&mut self, resources: &mut Resources<M>, name: ThreadName) {
        resources.end_thread(name);
        self.threads.give_back(1);
        self.utcbs.iter_mut().filter(|place| **place == Some(name)).for_each(|place| *place = None);
    }

    /// Takes back all resources of the server. Its threads, and with them its spaces, must have
    /// been deleted.
    pub(crate) fn take_down<M: Machine>(&mut self, resources: &mut Resources<M>) {
        resources.disable_functions(self.index);
        resources.end_domain(self.index);
        resources.forget_pools(self.index);
        resources.spaces.remove_all(self.index);
        resources.shares.forget(&mut resources.frames, self.index);
        // The server's spaces are deleted, so no space but root's has the memory mapped.
        self.memory.clear(&mut resources.frames);
        self.utcbs.clear();
        self.threads.give_back(self.threads.used());
        self.spaces.give_back(self.spaces.used());
        self.state = State::Down;
    }
}

/// Describes a step of a server's start that the kernel has refused.
fn refused(what: &'static str) -> impl Fn(Option<ErrorCode>) -> String {
    move |error| format!("the kernel refused {what}: {error:?}")
}
