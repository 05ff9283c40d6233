//! The servers together: how they start and end, and whose messages count.

use crate::end::End;
use crate::frames::Frames;
use crate::job::{Job, Start, TakeDown};
use crate::modules::Module;
use crate::names::Waiter;
use crate::piece::THREADS;
use crate::report;
use crate::requests::{Outcome, Request, server_index};
use crate::resources::Resources;
use crate::server::{self, Server, State};
use crate::shares::Shares;
use alloc::string::String;
use alloc::vec::Vec;
use root::configuration::{self, MemoryLimit};
use root::spaces::Spaces;
use root::thread_numbers::ThreadNumbers;
use x2::ThreadId;

/// Thread numbers that root hands out.
const THREAD_NUMBERS: u32 = 1 << 16;

/// All servers and what they share.
pub(crate) struct System {
    pub(crate) servers: Vec<Server>,
    pub(crate) resources: Resources,
    /// Threads that wait until another server registers.
    pub(crate) waiters: Vec<Waiter>,
    /// Root's threads that serve, by their processors.
    roots: Vec<ThreadId>,
}

impl System {
    /// A system without servers, served by `roots`, the threads of each processor. Thread numbers
    /// below `first` are not root's to give away.
    pub(crate) fn new(frames: Frames, roots: Vec<ThreadId>, first: u32) -> System {
        let numbers = ThreadNumbers::new(first, THREAD_NUMBERS);
        let (spaces, shares) = (Spaces::new(), Shares::new());
        let (lines, functions) = (Vec::new(), Vec::new());
        let resources = Resources { frames, numbers, spaces, shares, lines, functions };
        System { servers: Vec::new(), resources, waiters: Vec::new(), roots }
    }

    /// Adds a server. `rest` is what `memory rest` stands for.
    pub(crate) fn add(
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
        for &(vendor, device) in &server.configuration.functions {
            let mut all = self.resources.functions.iter_mut();
            let at = all.position(|function| function.is_free((vendor, device)));
            match at {
                Some(at) => self.resources.functions[at].give_to(index),
                None => report!(
                    "root: server {}: there is no PCI function {vendor:04x}:{device:04x}",
                    server.configuration.name
                ),
            }
            server.functions.push(at);
        }
        self.servers.push(server);
    }

    /// Begins to start server `index`, which is down.
    pub(crate) fn begin(&mut self, index: usize) -> Job {
        match self.servers[index].begin(&mut self.resources, &self.roots) {
            Ok(start) => Job::Start(start),
            Err(reason) => self.cannot_start(index, &reason),
        }
    }

    /// Lets a server run that has got its program.
    ///
    /// # Errors
    /// Why that does not go, as a text to read.
    pub(crate) fn activate(&mut self, start: &Start) -> Result<(), String> {
        let server = &mut self.servers[start.index];
        server.activate(start)?;
        let (name, used) = (&server.configuration.name, server.memory.used() >> 10);
        let (program, priority) = (&server.configuration.program, server.configuration.priority);
        let (number, version) = (start.thread.number(), start.thread.version());
        report!(
            "root: server {name} started: program {program}, thread {number}.{version}, priority {priority}, {used} KiB"
        );
        Ok(())
    }

    /// What a message leads to. A sender that is not a thread of a running server's own space gets
    /// no answer.
    pub(crate) fn hear(&mut self, request: &Request) -> Outcome {
        if !request.from.is_global() {
            return Outcome::Later;
        }
        let name = server::name(request.from);
        let owner = self.resources.numbers.owner(name);
        match owner.filter(|&index| self.resources.numbers.is_own(index, name)) {
            Some(index) if self.servers[usize::from(index)].state == State::Up => {
                self.serve(index.into(), request)
            }
            _ => Outcome::Later,
        }
    }

    /// Reports the end of a server. What it has is to be taken back.
    pub(crate) fn end(&mut self, index: usize, end: End) -> Job {
        let server = &mut self.servers[index];
        report!("root: server {} has ended: {end}", server.configuration.name);
        server.end = Some(end);
        server.state = State::Ending;
        (server.first, server.registered) = (None, None);
        Job::TakeDown(TakeDown { index, cursor: 0, ending: [None; THREADS], failed: false })
    }

    /// A server has no threads any more: takes the rest back and starts it again if it is to be.
    pub(crate) fn is_down(&mut self, index: usize, failed: bool) -> Option<Job> {
        let server = &mut self.servers[index];
        let used = server.memory.used() >> 10;
        server.take_down(&mut self.resources);
        self.forget_waiters();
        if !failed {
            report!("root: {used} KiB taken back, {} KiB free", self.resources.frames.free() >> 10);
            let server = &mut self.servers[index];
            if server.will_restart() {
                server.restarts += 1;
                return Some(self.begin(index));
            }
            if server.configuration.restart {
                let (name, ends) = (&server.configuration.name, server.restarts + 1);
                report!("root: server {name} is not started again: it ended {ends} times");
            }
        }
        self.refuse_waiters(index);
        None
    }
}
