//! The servers together, and the loop that hears of them: requests, faults, exceptions.

use crate::frames::Frames;
use crate::modules::Module;
use crate::names::Waiter;
use crate::requests::{Outcome, Request, server_index};
use crate::resources::Resources;
use crate::server::{self, Server};
use crate::shares::Shares;
use alloc::vec::Vec;
use l4::ipc::{self, Message, Received};
use l4::{kip, println};
use root::configuration::{self, MemoryLimit};
use root::spaces::Spaces;
use root::thread_numbers::ThreadNumbers;

/// Thread numbers below the first of root's own: those of the initial servers.
const INITIAL_THREADS: u32 = 8;
/// Thread numbers that root hands out.
const THREADS: u32 = 1 << 16;
/// A server that dies oftener than this is not started again: it would only die once more.
const MOST_RESTARTS: u32 = 5;

/// All servers and what they share.
pub(crate) struct System {
    pub(crate) servers: Vec<Server>,
    pub(crate) resources: Resources,
    /// Threads that wait until another server registers.
    pub(crate) waiters: Vec<Waiter>,
}

impl System {
    pub(crate) fn new(frames: Frames) -> System {
        let first = kip().thread_info().user_base + INITIAL_THREADS;
        let numbers = ThreadNumbers::new(first, THREADS);
        let (spaces, shares, lines) = (Spaces::new(), Shares::new(), Vec::new());
        let resources = Resources { frames, numbers, spaces, shares, lines };
        System { servers: Vec::new(), resources, waiters: Vec::new() }
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
        self.servers.push(Server::new(configuration, program, modules, index, memory));
    }

    /// Starts all servers and serves them for ever.
    pub(crate) fn run(&mut self) -> ! {
        (0..self.servers.len()).for_each(|index| self.start(index));
        let mut received = ipc::wait();
        loop {
            // An error leaves nothing to answer: the receiver of the last answer was gone or not waiting.
            let answer = received.ok().and_then(|message| Some((message.from, self.hear(message)?)));
            received = match answer {
                Some((to, message)) => ipc::reply_wait(to, message),
                None => ipc::wait(),
            };
        }
    }

    fn start(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let result = server.start(&mut self.resources);
        let (name, used) = (&server.configuration.name, server.memory.used() >> 10);
        match result {
            Ok(thread) => {
                let (program, priority) = (&server.configuration.program, server.configuration.priority);
                let (number, version) = (thread.number(), thread.version());
                println!(
                    "root: server {name} started: program {program}, thread {number}.{version}, priority {priority}, {used} KiB"
                );
            }
            Err(reason) => println!("root: server {name} cannot be started: {reason}"),
        }
    }

    /// The answer to a message, if it has one. Whoever is not a thread of a server's own space gets none.
    fn hear(&mut self, message: Received) -> Option<Message> {
        if !message.from.is_global() {
            return None;
        }
        let name = server::name(message.from);
        let index = self.resources.numbers.owner(name)?;
        if !self.resources.numbers.is_own(index, name) {
            return None;
        }
        match self.serve(index.into(), &Request::new(message)) {
            Outcome::Answer(answer) => Some(answer),
            Outcome::Later => None,
            Outcome::End(reason) => {
                self.end(index.into(), &reason);
                None
            }
        }
    }

    /// Reports the end of a server, takes back what it had and starts it again if it is to be.
    fn end(&mut self, index: usize, reason: &str) {
        let server = &mut self.servers[index];
        println!("root: server {} has ended: {reason}", server.configuration.name);
        let used = server.memory.used() >> 10;
        server.take_down(&mut self.resources);
        println!("root: {used} KiB taken back, {} KiB free", self.resources.frames.free() >> 10);
        self.forget_waiters(index);
        let server = &mut self.servers[index];
        if server.configuration.restart && server.restarts < MOST_RESTARTS {
            server.restarts += 1;
            self.start(index);
        } else if server.configuration.restart {
            println!(
                "root: server {} is not started again: it ended {} times",
                server.configuration.name,
                server.restarts + 1
            );
        }
    }
}
