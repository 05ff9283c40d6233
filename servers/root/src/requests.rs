//! The requests of `interfaces/root.defs`: words in, words out.

use crate::frames::Fill;
use crate::server::Server;
use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use l4::ipc::{Message, Received};
use l4::{extension, print, utcb};
use root::spaces::SpaceName;
use root::thread_numbers::ServerIndex;
use rt::root::{Status, request, with_text};
use x2::message::MESSAGE_REGISTERS;
use x2::protocol::{self, exception};
use x2::{MessageTag, ThreadId};

/// What a message leads to.
pub(crate) enum Outcome {
    /// The sender goes on with this answer.
    Answer(Message),
    /// The sender waits: it is answered when something else happens.
    Later,
    /// The server has come to its end, for this reason.
    End(String),
}

/// A request as it was received: the message registers are free for kernel calls and other messages.
pub(crate) struct Request {
    pub(crate) from: ThreadId,
    tag: MessageTag,
    words: [u64; MESSAGE_REGISTERS],
    count: usize,
}

impl Request {
    pub(crate) fn new(message: Received) -> Request {
        let mut words = [0; MESSAGE_REGISTERS];
        let count = message.tag.untyped();
        for (index, word) in words[..count].iter_mut().enumerate() {
            *word = utcb::message_register(index + 1);
        }
        Request { from: message.from, tag: message.tag, words, count }
    }

    /// The words, if there are so many.
    fn arguments<const COUNT: usize>(&self) -> Result<[u64; COUNT], Status> {
        self.words[..self.count].try_into().map_err(|_| Status::InvalidArgument)
    }

    /// The text whose length is word `at` and whose bytes follow.
    fn text(&self, at: usize) -> Result<Vec<u8>, Status> {
        let words = self.words[..self.count].get(at..).unwrap_or_default();
        let (&length, words) = words.split_first().ok_or(Status::InvalidArgument)?;
        let length = usize::try_from(length).ok().filter(|&length| length <= words.len() * 8);
        let length = length.ok_or(Status::InvalidArgument)?;
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect())
    }

    /// The first word of a request that ends with a text, and the text.
    fn word_and_text(&self) -> Result<(u64, Vec<u8>), Status> {
        Ok((self.words[0], self.text(1)?))
    }
}

/// An answer of so many words.
enum Answer {
    None,
    One(u64),
    Two(u64, u64),
}

impl System {
    /// What `request` of server `index` leads to.
    pub(crate) fn serve(&mut self, index: usize, request: &Request) -> Outcome {
        let tag = request.tag;
        let word = |register: usize| request.words[register - 1];
        if protocol::of(tag) == protocol::PAGE_FAULT && request.count == 2 {
            return Outcome::End(format!("fault at {:#x}, instruction {:#x}", word(1), word(2)));
        }
        if protocol::of(tag) == protocol::IO_PAGE_FAULT && request.count == 2 {
            return self.servers[index].port_fault(word(1), word(2));
        }
        if protocol::of(tag) == protocol::ARCHITECTURE_EXCEPTION && request.count >= exception::WORDS {
            let (number, ip) = (word(exception::NUMBER), word(exception::RIP));
            return Outcome::End(format!("exception {number}, instruction {ip:#x}"));
        }
        // Whatever a server asks for, root must be able to note it.
        if !crate::has_headroom() && tag.label() != request::EXIT {
            return Outcome::Answer(refusal(Status::NoMemory));
        }
        match tag.label() {
            request::EXIT => match request.arguments() {
                Ok([status]) => Outcome::End(format!("exit with status {status}")),
                Err(status) => Outcome::Answer(refusal(status)),
            },
            request::NAME_LOOKUP => match request.word_and_text() {
                Ok((wait, name)) => self.lookup(index, request.from, &name, wait != 0),
                Err(status) => Outcome::Answer(refusal(status)),
            },
            request::SERVER => Outcome::Answer(match request.arguments() {
                Ok([place]) => self.describe(place),
                Err(status) => refusal(status),
            }),
            _ => Outcome::Answer(match self.perform(index, request) {
                Ok(answer) => message(&answer),
                Err(status) => refusal(status),
            }),
        }
    }

    /// What the server at this place of the configuration is and has.
    fn describe(&self, place: u64) -> Message {
        let server = usize::try_from(place).ok().and_then(|place| self.servers.get(place));
        let Some(server) = server else { return refusal(Status::NotFound) };
        let (runs, memory) = (server.first.is_some(), &server.memory);
        // A server that does not run has none.
        let kernel = server.first.and_then(|first| extension::kernel_memory(first).ok()).unwrap_or(0);
        let words = [
            Status::Done as u64,
            memory.used(),
            memory.limit(),
            runs.into(),
            server.restarts.into(),
            kernel,
            server.threads.used(),
            server.spaces.used(),
        ];
        with_text(Message::with_words(request::ANSWER, &words), server.configuration.name.as_bytes())
    }

    /// Carries out a request that is answered at once.
    fn perform(&mut self, index: usize, request: &Request) -> Result<Answer, Status> {
        let label = request.tag.label();
        if label == request::PRINT {
            return print_text(&request.text(0)?);
        }
        if label == request::NAME_REGISTER {
            let [thread] = request.arguments()?;
            return self.register(index, ThreadId::from_raw(thread)).map(|()| Answer::None);
        }
        let (server, resources) = (&mut self.servers[index], &mut self.resources);
        let first = server.first.ok_or(Status::InvalidArgument)?;
        match label {
            request::MEMORY_ALLOCATE | request::MEMORY_POOL => {
                let [address, size] = request.arguments()?;
                let fill = if label == request::MEMORY_POOL { Fill::AsItIs } else { Fill::Zero };
                server.memory.allocate(&mut resources.frames, first, address, size, fill)?;
            }
            request::MEMORY_FREE => {
                let [address, size] = request.arguments()?;
                server.memory.free(&mut resources.frames, first, address, size)?;
            }
            request::MEMORY_AVAILABLE => {
                let [] = request.arguments()?;
                return Ok(Answer::One(server.memory.available(&resources.frames)));
            }
            request::MODULE_MAP => {
                let (room, name) = request.word_and_text()?;
                return map_module(server, first, room, &name);
            }
            request::THREAD_CREATE => {
                let [ip, sp] = request.arguments()?;
                return Ok(Answer::One(server.create_thread(resources, ip, sp)?.raw()));
            }
            request::THREAD_DELETE => {
                let [thread] = request.arguments()?;
                server.delete_thread(resources, ThreadId::from_raw(thread))?;
            }
            request::SPACE_CREATE => {
                let [kip, utcb_area, utcb_log2, mode, entry, kernel_memory, handler] = request.arguments()?;
                let words = [kip, utcb_area, utcb_log2, mode, entry, kernel_memory];
                let (space, thread) = server.create_space(resources, words, ThreadId::from_raw(handler))?;
                return Ok(Answer::Two(space.word(), thread.raw()));
            }
            request::SPACE_THREAD_CREATE => {
                let [space, place, handler] = request.arguments()?;
                let (space, handler) = (SpaceName::from_word(space), ThreadId::from_raw(handler));
                return Ok(Answer::One(server.create_space_thread(resources, space, place, handler)?.raw()));
            }
            request::SPACE_THREAD_DELETE => {
                let [thread] = request.arguments()?;
                server.delete_space_thread(resources, ThreadId::from_raw(thread))?;
            }
            request::SPACE_DELETE => {
                let [space] = request.arguments()?;
                server.delete_space(resources, SpaceName::from_word(space))?;
            }
            request::INTERRUPT_ATTACH => {
                let [line, thread] = request.arguments()?;
                server.attach_interrupt(resources, line, ThreadId::from_raw(thread))?;
            }
            request::INTERRUPT_DETACH => {
                let [line] = request.arguments()?;
                server.detach_interrupt(resources, line)?;
            }
            request::DEVICE_MAP => {
                let [physical, size, address] = request.arguments()?;
                server.map_device(first, physical, size, address)?;
            }
            request::RESOURCE => {
                let [kind, index] = request.arguments()?;
                let (first, second) = server.resource(kind, index).ok_or(Status::NotFound)?;
                return Ok(Answer::Two(first, second));
            }
            request::SHARE_CREATE => {
                let [address, size, partner] = request.arguments()?;
                let partner = ThreadId::from_raw(partner);
                return Ok(Answer::One(server.create_share(resources, first, [address, size], partner)?));
            }
            request::SHARE_MAP => {
                let [share, address] = request.arguments()?;
                return Ok(Answer::One(server.map_share(resources, first, share, address)?));
            }
            request::MEMORY_DMA => {
                let words = request.arguments()?;
                return Ok(Answer::One(server.allocate_dma(resources, first, words)?));
            }
            request::SYSTEM_END => {
                let [how, status] = request.arguments()?;
                server.end_system(how, status)?;
            }
            _ => return Err(Status::UnknownRequest),
        }
        Ok(Answer::None)
    }
}

fn map_module(server: &mut Server, first: ThreadId, room: u64, name: &[u8]) -> Result<Answer, Status> {
    let names = &server.configuration.modules;
    let at = names.iter().position(|other| other.as_bytes() == name).ok_or(Status::NotFound)?;
    let module = server.modules[at];
    Ok(Answer::Two(server.memory.map_module(first, room, module)?, module.size))
}

/// The answer that a request is done.
fn message(answer: &Answer) -> Message {
    let done = Status::Done as u64;
    match *answer {
        Answer::None => Message::with_words(request::ANSWER, &[done]),
        Answer::One(word) => Message::with_words(request::ANSWER, &[done, word]),
        Answer::Two(first, second) => Message::with_words(request::ANSWER, &[done, first, second]),
    }
}

/// The answer that a request is done and leads to this thread.
pub(crate) fn found(thread: ThreadId) -> Message {
    message(&Answer::One(thread.raw()))
}

/// The answer that a request cannot be carried out.
pub(crate) fn refusal(status: Status) -> Message {
    Message::with_words(request::ANSWER, &[status as u64])
}

/// Which server, as the tables of resources name it.
pub(crate) fn server_index(index: usize) -> ServerIndex {
    index as ServerIndex
}

fn print_text(text: &[u8]) -> Result<Answer, Status> {
    for &byte in text {
        // Control characters would let a server rewrite what others have printed.
        let shown = if byte == b'\n' || (b' '..=b'~').contains(&byte) { byte } else { b'?' };
        print!("{}", char::from(shown));
    }
    Ok(Answer::None)
}
