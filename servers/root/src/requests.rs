//! The requests of `interfaces/root.defs`: words in, words out.

use crate::end::End;
use crate::fill::Fill;
use crate::frames::Initially;
use crate::job::{Allocate, EndThreads, Job, Release};
use crate::piece::THREADS;
use crate::server::Server;
use crate::system::System;
use alloc::vec::Vec;
use l4::ipc::{Message, Received};
use l4::{extension, print, utcb};
use root::executable::PAGE;
use root::spaces::SpaceName;
use root::thread_numbers::ServerIndex;
use rt::root::{Status, request, with_text};
use x2::message::MESSAGE_REGISTERS;
use x2::protocol::{self, exception};
use x2::{MessageTag, ThreadId};

/// How root answers a message.
pub(crate) enum Outcome {
    /// The sender gets this answer without delay.
    Answer(Message),
    /// The sender waits: it is answered when something else happens, or never.
    Later,
    /// The sender waits until this job is done.
    Work(Job),
    /// The sender's text is printed on the log.
    Print,
}

/// A request as it was received: the message registers are free for kernel calls and other
/// messages.
pub(crate) struct Request {
    pub(crate) from: ThreadId,
    pub(crate) tag: MessageTag,
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

    /// Word `index` of the request, if the message has so many words.
    pub(crate) fn word(&self, index: usize) -> Option<u64> {
        self.words[..self.count].get(index).copied()
    }

    /// The words of the request, if the message has exactly so many.
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

/// An answer of so many words, after the status.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    None,
    One(u64),
    Two(u64, u64),
    Three(u64, u64, u64),
}

impl System {
    /// Carries out a request of server `index`, or begins a job for it.
    pub(crate) fn serve(&mut self, index: usize, request: &Request) -> Outcome {
        let tag = request.tag;
        let word = |register: usize| request.words[register - 1];
        if protocol::of(tag) == protocol::PAGE_FAULT && request.count == 2 {
            return self.ended(index, End::Fault { address: word(1), ip: word(2) });
        }
        if protocol::of(tag) == protocol::IO_PAGE_FAULT && request.count == 2 {
            return match self.servers[index].port_fault(&self.resources, word(1), word(2)) {
                Ok(ports) => Outcome::Answer(ports),
                Err(end) => self.ended(index, end),
            };
        }
        if protocol::of(tag) == protocol::ARCHITECTURE_EXCEPTION && request.count >= exception::WORDS {
            let (number, ip) = (word(exception::NUMBER), word(exception::RIP));
            return self.ended(index, End::Exception { number, ip });
        }
        // Whatever a server asks for, root must be able to note it.
        if !crate::has_headroom() && tag.label() != request::EXIT {
            return Outcome::Answer(refusal(Status::NoMemory));
        }
        match tag.label() {
            request::EXIT => match request.arguments() {
                Ok([status]) => self.ended(index, End::Exit(status)),
                Err(status) => Outcome::Answer(refusal(status)),
            },
            request::NAME_LOOKUP => match request.word_and_text() {
                Ok((wait, name)) => self.lookup(index, request.from, &name, wait != 0),
                Err(status) => Outcome::Answer(refusal(status)),
            },
            request::PRINT => Outcome::Print,
            request::SERVER => Outcome::Answer(match request.arguments() {
                Ok([place]) => self.describe(place),
                Err(status) => refusal(status),
            }),
            request::MEMORY_ALLOCATE
            | request::MEMORY_POOL
            | request::MEMORY_FREE
            | request::MEMORY_DMA
            | request::SHARE_CREATE
            | request::SPACE_DELETE => match self.begin_work(index, request) {
                Ok(job) => Outcome::Work(job),
                Err(status) => Outcome::Answer(refusal(status)),
            },
            _ => Outcome::Answer(match self.perform(index, request) {
                Ok(answer) => message(&answer),
                Err(status) => refusal(status),
            }),
        }
    }

    /// Server `index` has ended: begins the job that takes back what it had.
    fn ended(&mut self, index: usize, end: End) -> Outcome {
        Outcome::Work(self.end(index, end))
    }

    /// What the server at this place of the configuration is and has.
    fn describe(&self, place: u64) -> Message {
        let server = usize::try_from(place).ok().and_then(|place| self.servers.get(place));
        let Some(server) = server else { return refusal(Status::NotFound) };
        let (runs, memory) = (server.first.is_some(), &server.memory);
        // A server that does not run has no kernel memory.
        let kernel = server.first.and_then(|first| extension::kernel_memory(first).ok()).unwrap_or(0);
        let [kind, what, ip] = End::words(server.end);
        let words = [
            Status::Done as u64,
            memory.used(),
            memory.limit(),
            runs.into(),
            server.restarts.into(),
            kernel,
            server.threads.used(),
            server.spaces.used(),
            kind,
            what,
            ip,
        ];
        with_text(Message::with_words(request::ANSWER, &words), server.configuration.name.as_bytes())
    }

    /// Begins the job of a request that may take long.
    fn begin_work(&mut self, index: usize, request: &Request) -> Result<Job, Status> {
        let (server, resources, from) = (&mut self.servers[index], &mut self.resources, request.from);
        let first = server.first.ok_or(Status::InvalidArgument)?;
        let allocate = |address, size, fill: Fill, answer, share| {
            Job::Allocate(Allocate { index, from, fill, address, pages: size / PAGE, answer, share })
        };
        let job = match request.tag.label() {
            request::MEMORY_FREE => {
                let [address, size] = request.arguments()?;
                server.memory.unsettle(address, size)?;
                let (done, status) = (0, Status::Done);
                Job::Release(Release { index, from, thread: first, address, done, size, status, share: None })
            }
            request::MEMORY_DMA => {
                let words @ [address, size, _] = request.arguments()?;
                let (physical, fill) = server.allocate_dma(resources, first, words)?;
                allocate(address, size, fill, Answer::One(physical), None)
            }
            request::SHARE_CREATE => {
                let [address, size, partner] = request.arguments()?;
                let partner = ThreadId::from_raw(partner);
                let (share, fill) = server.create_share(resources, first, [address, size], partner)?;
                allocate(address, size, fill, Answer::One(share), Some(share))
            }
            request::SPACE_DELETE => {
                let [space] = request.arguments()?;
                let threads = server.delete_space(resources, SpaceName::from_word(space))?;
                Job::EndThreads(EndThreads { index, from, threads, ending: [None; THREADS] })
            }
            label => {
                let [address, size] = request.arguments()?;
                let initially =
                    if label == request::MEMORY_POOL { Initially::AsItIs } else { Initially::Zero };
                let fill = server.memory.allocate(&mut resources.frames, first, address, size, initially)?;
                allocate(address, size, fill, Answer::None, None)
            }
        };
        server.jobs += 1;
        Ok(job)
    }

    /// Carries out a request that is answered immediately, without the background worker.
    fn perform(&mut self, index: usize, request: &Request) -> Result<Answer, Status> {
        let label = request.tag.label();
        if label == request::NAME_REGISTER {
            let [thread] = request.arguments()?;
            return self.register(index, ThreadId::from_raw(thread)).map(|()| Answer::None);
        }
        let (server, resources) = (&mut self.servers[index], &mut self.resources);
        let first = server.first.ok_or(Status::InvalidArgument)?;
        match label {
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
            request::INTERRUPT_ATTACH => {
                let [line, thread] = request.arguments()?;
                server.attach_interrupt(resources, line, ThreadId::from_raw(thread))?;
            }
            request::INTERRUPT_DETACH => {
                let [line] = request.arguments()?;
                server.detach_interrupt(resources, line)?;
            }
            request::DEVICE_MAP => {
                server.map_device(resources, first, request.arguments()?)?;
            }
            request::RESOURCE => {
                let [kind, index] = request.arguments()?;
                let (first, second) = server.resource(resources, kind, index).ok_or(Status::NotFound)?;
                return Ok(Answer::Two(first, second));
            }
            request::PCI_REGION => {
                let [function, region] = request.arguments()?;
                let [kind, begin, size] = server.pci_region(resources, function, region)?;
                return Ok(Answer::Three(kind, begin, size));
            }
            request::MESSAGE_ATTACH => {
                let [function, entry, thread] = request.arguments()?;
                let thread = ThreadId::from_raw(thread);
                return Ok(Answer::One(server.attach_message(resources, [function, entry], thread)?));
            }
            request::MESSAGE_DETACH => {
                let [interrupt] = request.arguments()?;
                server.detach_message(resources, interrupt)?;
            }
            request::SHARE_MAP => {
                let [share, address] = request.arguments()?;
                return Ok(Answer::One(server.map_share(resources, first, share, address)?));
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

/// The message for a request that was carried out.
pub(crate) fn message(answer: &Answer) -> Message {
    let done = Status::Done as u64;
    match *answer {
        Answer::None => Message::with_words(request::ANSWER, &[done]),
        Answer::One(word) => Message::with_words(request::ANSWER, &[done, word]),
        Answer::Two(first, second) => Message::with_words(request::ANSWER, &[done, first, second]),
        Answer::Three(first, second, third) => {
            Message::with_words(request::ANSWER, &[done, first, second, third])
        }
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

/// The type by which the tables of resources name server `index`.
pub(crate) fn server_index(index: usize) -> ServerIndex {
    index as ServerIndex
}

/// The answer to a request to print, which needs none of root's notes.
pub(crate) fn print_text(request: &Request) -> Message {
    let Ok(text) = request.text(0) else { return refusal(Status::InvalidArgument) };
    let _turn = crate::console::turn();
    for byte in text {
        // Control characters would let a server rewrite what others have printed.
        let shown = if byte == b'\n' || (b' '..=b'~').contains(&byte) { byte } else { b'?' };
        print!("{}", char::from(shown));
    }
    message(&Answer::None)
}
