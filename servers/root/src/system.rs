//! The servers together, and the loop that hears of them: requests, faults, exceptions.

use crate::server::{self, Server};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use l4::ipc::{self, Message, Received};
use l4::{kip, print, println};
use root::configuration::{self, MemoryLimit};
use root::ranges::Ranges;
use root::thread_numbers::{ServerIndex, ThreadNumbers};
use rt::root::{Status, request};
use x2::protocol::{self, exception};
use x2::{Fpage, ThreadId};

/// Thread numbers below the first of root's own: those of the initial servers.
const INITIAL_THREADS: u32 = 8;
/// Thread numbers that root hands out.
const THREADS: u32 = 1 << 16;
/// A server that dies oftener than this is not started again: it would only die once more.
const MOST_RESTARTS: u32 = 5;

/// All servers and what they share.
pub(crate) struct System {
    servers: Vec<Server>,
    memory: Ranges,
    numbers: ThreadNumbers,
}

/// What a message leads to.
enum Outcome {
    /// The sender goes on with this answer.
    Answer(Message),
    /// The server has come to its end, for this reason.
    End(String),
}

impl System {
    pub(crate) fn new(memory: Ranges) -> System {
        let first = kip().thread_info().user_base + INITIAL_THREADS;
        System { servers: Vec::new(), memory, numbers: ThreadNumbers::new(first, THREADS) }
    }

    /// Adds a server and starts it. `rest` is what `memory rest` stands for.
    pub(crate) fn add(&mut self, configuration: configuration::Server, file: &'static [u8], rest: u64) {
        let memory = match configuration.memory {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Rest => rest,
        };
        let index = self.servers.len();
        self.servers.push(Server::new(configuration, file, index as ServerIndex, memory));
        self.start(index);
    }

    fn start(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let result = server.start(&mut self.memory, &mut self.numbers);
        let (name, used) = (&server.configuration.name, server.memory_used() >> 10);
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

    /// Serves the servers for ever.
    pub(crate) fn serve(&mut self) -> ! {
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

    /// The answer to a message, if it has one. Whoever is not a server's thread gets none.
    fn hear(&mut self, message: Received) -> Option<Message> {
        if !message.from.is_global() {
            return None;
        }
        let index = usize::from(self.numbers.owner(server::name(message.from))?);
        match self.outcome(index, message) {
            Outcome::Answer(answer) => Some(answer),
            Outcome::End(reason) => {
                self.end(index, &reason);
                None
            }
        }
    }

    /// Reports the end of a server, takes back what it had and starts it again if it is to be.
    fn end(&mut self, index: usize, reason: &str) {
        let server = &mut self.servers[index];
        let name = &server.configuration.name;
        println!("root: server {name} has ended: {reason}");
        let used = server.memory_used() >> 10;
        server.take_down(&mut self.memory, &mut self.numbers);
        println!("root: {used} KiB taken back, {} KiB free", self.memory.free() >> 10);
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

    fn outcome(&mut self, index: usize, message: Received) -> Outcome {
        let (server, memory, numbers) = (&mut self.servers[index], &mut self.memory, &mut self.numbers);
        let tag = message.tag;
        let words = tag.untyped();
        match tag.label() {
            request::PRINT => Outcome::Answer(print_text(message)),
            request::EXIT if words == 1 => Outcome::End(format!("exit with status {}", message.word(0))),
            request::MEMORY_ALLOCATE if words == 2 => {
                Outcome::Answer(status(server.allocate(memory, message.word(0), message.word(1))))
            }
            request::MEMORY_FREE if words == 2 => {
                Outcome::Answer(status(server.free(memory, message.word(0), message.word(1))))
            }
            request::THREAD_CREATE if words == 2 => {
                Outcome::Answer(match server.create_thread(numbers, message.word(0), message.word(1)) {
                    Ok(thread) => Message::with_words(request::ANSWER, &[Status::Done as u64, thread.raw()]),
                    Err(error) => status(error),
                })
            }
            request::THREAD_DELETE if words == 1 => {
                let thread = ThreadId::from_raw(message.word(0));
                Outcome::Answer(status(server.delete_thread(numbers, thread)))
            }
            request::EXIT | request::MEMORY_ALLOCATE | request::MEMORY_FREE => {
                Outcome::Answer(status(Status::InvalidArgument))
            }
            request::THREAD_CREATE | request::THREAD_DELETE => {
                Outcome::Answer(status(Status::InvalidArgument))
            }
            _ if protocol::of(tag) == protocol::PAGE_FAULT && words == 2 => {
                let (address, ip) = (message.word(0), message.word(1));
                Outcome::End(format!("fault at {address:#x}, instruction {ip:#x}"))
            }
            _ if protocol::of(tag) == protocol::IO_PAGE_FAULT && words == 2 => {
                let (ports, ip) = (Fpage::from_raw(message.word(0)), message.word(1));
                Outcome::End(format!("access to {ports:?}, instruction {ip:#x}"))
            }
            _ if protocol::of(tag) == protocol::ARCHITECTURE_EXCEPTION && words >= exception::WORDS => {
                let (number, ip) = (message.word(exception::NUMBER - 1), message.word(exception::RIP - 1));
                Outcome::End(format!("exception {number}, instruction {ip:#x}"))
            }
            _ => Outcome::Answer(status(Status::UnknownRequest)),
        }
    }
}

fn status(status: Status) -> Message {
    Message::with_words(request::ANSWER, &[status as u64])
}

/// Prints the text in the words of a message: its length in bytes, then the bytes.
fn print_text(message: Received) -> Message {
    let mut words = message.words();
    let length = words.next().unwrap_or(u64::MAX);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let Some(bytes) = usize::try_from(length).ok().and_then(|length| bytes.get(..length)) else {
        return status(Status::InvalidArgument);
    };
    for &byte in bytes {
        // Control characters would let a server rewrite what others have printed.
        let shown = if byte == b'\n' || (b' '..=b'~').contains(&byte) { byte } else { b'?' };
        print!("{}", char::from(shown));
    }
    status(Status::Done)
}
