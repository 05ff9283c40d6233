//! The system of all servers: how servers start and end, and from which threads messages are
//! accepted.

use crate::configuration::{self, MemoryLimit};
use crate::end::End;
use crate::frames::Frames;
use crate::iommu::Iommu;
use crate::machine::Machine;
use crate::modules::Module;
use crate::names::Waiter;
use crate::pools::Pools;
use crate::requests::{Outcome, server_index};
use crate::resources::Resources;
use crate::server::{self, Server, State};
use crate::shares::Shares;
use crate::spaces::Spaces;
use crate::thread_numbers::ThreadNumbers;
use crate::work_item::{Start, TakeDown, Work, WorkItem};
use alloc::string::String;
use alloc::vec::Vec;
use direct::Registers;
use x2::boot_info::Screen;
use x2::{MessageTag, ThreadId};

/// How many thread numbers root gives to servers.
const THREAD_NUMBERS: u32 = 1 << 16;

/// All servers and their resources.
pub struct System<M> {
    pub(crate) servers: Vec<Server>,
    pub(crate) resources: Resources<M>,
    /// The threads that wait until another server has registered its name.
    pub(crate) waiters: Vec<Waiter>,
    /// Root's request threads, by their processors.
    roots: Vec<ThreadId>,
}

impl<M: Machine> System<M> {
    /// A system without servers. `roots` are root's request threads, one for each processor.
    /// Servers get thread numbers from `first` on.
    pub fn new(machine: M, frames: Frames, roots: Vec<ThreadId>, first: u32) -> System<M> {
        let numbers = ThreadNumbers::new(first, THREAD_NUMBERS);
        let (spaces, shares, pools) = (Spaces::new(), Shares::new(), Pools::new());
        let (lines, functions, bridges) = (Vec::new(), Vec::new(), Vec::new());
        let (screen, iommu) = (None, Iommu::default());
        let resources = Resources {
            machine,
            frames,
            numbers,
            spaces,
            shares,
            pools,
            lines,
            screen,
            functions,
            bridges,
            iommu,
        };
        System { servers: Vec::new(), resources, waiters: Vec::new(), roots }
    }

    /// Adds a server. `rest` is the number of bytes that `memory rest` stands for.
    pub fn add(
        &mut self,
        configuration: configuration::Server,
        program: Module,
        modules: Vec<Module>,
        rest: u64,
    ) {
        let memory = match configuration.memory {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Rest => rest,
        };
        let index = server_index(self.servers.len());
        let mut server = Server::new(configuration, program, modules, index, memory);
        for &wanted in &server.configuration.functions {
            let at = self.resources.free_function(wanted, index);
            match at {
                Some(at) => self.resources.functions[at].give_to(index, &server.configuration.name),
                None => self.resources.machine.report(format_args!(
                    "root: server {}: there is no PCI function {wanted}",
                    server.configuration.name
                )),
            }
            server.functions.push(at);
        }
        self.servers.push(server);
    }

    /// Makes this the machine's screen, for the server that may have it.
    pub fn set_screen(&mut self, screen: Option<Screen>) {
        self.resources.screen = screen;
    }

    /// Finds the PCI functions of the machine. It must be called before servers are added that have
    /// PCI functions.
    pub fn find_functions(&mut self) {
        self.resources.find_functions();
    }

    /// Sets up the units between PCI functions and memory, which the firmware's table names if
    /// there are any. The functions must have been found, and no server has been added. `drivers`
    /// servers will have functions.
    pub fn set_up_iommu(&mut self, table: Option<&[u8]>, drivers: u64) {
        self.resources.set_up_iommu(table, drivers);
    }

    /// How many bytes of memory servers can have.
    pub fn free_memory(&self) -> u64 {
        self.resources.frames.free().saturating_sub(self.resources.iommu.reserve())
    }

    /// The priority at which the background worker does a work item: that of the item's server.
    pub fn priority_of(&self, item: &WorkItem) -> u8 {
        self.servers[item.index].configuration.priority
    }

    /// How many servers there are.
    pub fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Begins to start server `index`, which must be down.
    pub fn begin(&mut self, index: usize) -> WorkItem {
        match self.servers[index].begin(&mut self.resources, &self.roots) {
            Ok(start) => WorkItem { index, work: Work::Start(start) },
            Err(reason) => self.cannot_start(index, &reason),
        }
    }

    /// Starts the first thread of a server whose program has been loaded.
    ///
    /// # Errors
    /// The reason why the thread cannot be started, as text.
    pub(crate) fn activate(&mut self, index: usize, start: &Start) -> Result<(), String> {
        let server = &mut self.servers[index];
        server.activate(&mut self.resources.machine, start)?;
        let (name, used) = (&server.configuration.name, server.memory.used() >> 10);
        let (program, priority) = (&server.configuration.program, server.configuration.priority);
        let (number, version) = (start.thread.number(), start.thread.version());
        self.resources.machine.report(format_args!("root: server {name} started: program {program}, thread {number}.{version}, priority {priority}, {used} KiB"));
        Ok(())
    }

    /// Handles the message in `registers`. A sender that does not live in the own space of a server
    /// that runs gets no answer.
    pub fn handle(&mut self, from: ThreadId, tag: MessageTag, registers: &mut impl Registers) -> Outcome {
        if !from.is_global() {
            return Outcome::Wait;
        }
        if self.resources.iommu.interrupt.is_some_and(|line| from == ThreadId::interrupt(line)) {
            self.resources.take_faults();
            return Outcome::Answer(MessageTag::EMPTY);
        }
        let name = server::name(from);
        let owner = self.resources.numbers.owner(name);
        match owner.filter(|&index| self.resources.numbers.is_own(index, name)) {
            Some(index) if self.servers[usize::from(index)].state == State::Up => {
                self.serve(index.into(), from, tag, registers)
            }
            _ => Outcome::Wait,
        }
    }

    /// Reports the end of a server. Returns the work of taking back its resources.
    pub(crate) fn end(&mut self, index: usize, end: End) -> WorkItem {
        let server = &mut self.servers[index];
        self.resources
            .machine
            .report(format_args!("root: server {} has ended: {end}", server.configuration.name));
        server.has_ended(end, self.resources.machine.now());
        TakeDown::of(index, false)
    }

    /// Takes back the resources of a server that has no threads any more, and begins to start it
    /// again if it is to be restarted.
    pub(crate) fn is_down(&mut self, index: usize, failed: bool) -> Option<WorkItem> {
        let server = &mut self.servers[index];
        let used = server.memory.used() >> 10;
        server.take_down(&mut self.resources);
        self.forget_waiters();
        if !failed {
            self.resources.machine.report(format_args!(
                "root: {used} KiB taken back, {} KiB free",
                self.resources.frames.free() >> 10
            ));
            let server = &mut self.servers[index];
            if server.will_restart() {
                server.count_restart();
                return Some(self.begin(index));
            }
            if server.configuration.restarts > 0 {
                let (name, ends) = (&server.configuration.name, server.recent_restarts + 1);
                let machine = &mut self.resources.machine;
                match server.recent_restarts < server.configuration.restarts {
                    true => machine.report(format_args!("root: server {name} has no device")),
                    false => machine.report(format_args!(
                        "root: server {name} is not started again: it ended {ends} times"
                    )),
                }
            }
        }
        self.refuse_waiters(index);
        None
    }
}
