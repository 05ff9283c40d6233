//! Decodes and serves the requests of `interfaces/root.defs`.

use crate::end::End;
use crate::executable::PAGE;
use crate::fill::Fill;
use crate::frames::Initially;
use crate::machine::Machine;
use crate::server::Server;
use crate::spaces::SpaceName;
use crate::step::THREADS;
use crate::system::System;
use crate::thread_numbers::ServerIndex;
use crate::work_item::{Allocate, EndThreads, Release, Work, WorkItem};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use rt::root::{Status, request};
use x2::extension::SpaceOption;
use x2::message::MESSAGE_REGISTERS;
use x2::protocol::{self, exception};
use x2::{MessageTag, ThreadId};

/// The outcome of a message to root: whether and when its sender gets an answer.
pub enum Outcome {
    /// The sender gets this answer immediately.
    Answer(Answer),
    /// The sender gets no answer now: it is answered after another event, or never.
    Wait,
    /// The sender is answered when this work item is done.
    Work(WorkItem),
    /// The message is text of the sender's, which is printed on the log.
    Print,
}

/// A request, copied from the message registers: these are free for kernel calls and other
/// messages.
pub struct Request {
    /// The thread that sent the request.
    pub from: ThreadId,
    /// The message tag of the request.
    pub tag: MessageTag,
    words: [u64; MESSAGE_REGISTERS],
    count: usize,
}

impl Request {
    /// A message with this tag and these untyped words.
    pub fn new(from: ThreadId, tag: MessageTag, content: impl Iterator<Item = u64>) -> Request {
        let mut words = [0; MESSAGE_REGISTERS];
        let count = tag.untyped();
        for (word, value) in words[..count].iter_mut().zip(content) {
            *word = value;
        }
        Request { from, tag, words, count }
    }

    /// Word `index` of the request, if the message has so many words.
    pub fn word(&self, index: usize) -> Option<u64> {
        self.words[..self.count].get(index).copied()
    }

    /// The words of the request, if the message has exactly `COUNT` of them.
    fn arguments<const COUNT: usize>(&self) -> Result<[u64; COUNT], Status> {
        self.words[..self.count].try_into().map_err(|_| Status::InvalidArgument)
    }

    /// The text in the request: word `at` is its length, and its bytes follow.
    fn text(&self, at: usize) -> Result<Vec<u8>, Status> {
        let words = self.words[..self.count].get(at..).unwrap_or_default();
        let (&length, words) = words.split_first().ok_or(Status::InvalidArgument)?;
        let length = usize::try_from(length).ok().filter(|&length| length <= words.len() * 8);
        let length = length.ok_or(Status::InvalidArgument)?;
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect())
    }

    /// The text of a request to print, without control characters, by which a server could
    /// overwrite what others have printed.
    ///
    /// # Errors
    /// The message is not a request to print.
    pub fn printable(&self) -> Result<impl Iterator<Item = char> + use<>, Status> {
        let shown = |byte| if byte == b'\n' || (b' '..=b'~').contains(&byte) { byte } else { b'?' };
        Ok(self.text(0)?.into_iter().map(move |byte| char::from(shown(byte))))
    }

    /// The first word of a request that ends with a text, and the text.
    fn word_and_text(&self) -> Result<(u64, Vec<u8>), Status> {
        Ok((self.words[0], self.text(1)?))
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request cannot be carried out, for this reason.
    Refused(Status),
    /// The request was carried out.
    Done,
    /// The request was carried out; the answer has one word after the status.
    One(u64),
    /// The request was carried out; the answer has two words after the status.
    Two(u64, u64),
    /// The request was carried out; the answer has three words after the status.
    Three(u64, u64, u64),
    /// The answer to `root_server`: ten words that describe a server, and its name.
    Server([u64; 10], String),
    /// The answer to a port fault: the thread gets all ports of this range.
    Ports(RangeInclusive<u16>),
}

impl<M: Machine> System<M> {
    /// Carries out a request of server `index`, or begins work for it.
    pub(crate) fn serve(&mut self, index: usize, request: &Request) -> Outcome {
        let tag = request.tag;
        let word = |register: usize| request.words[register - 1];
        if protocol::of(tag) == protocol::PAGE_FAULT && request.count == 2 {
            return self.ended(index, End::Fault { address: word(1), ip: word(2) });
        }
        if protocol::of(tag) == protocol::IO_PAGE_FAULT && request.count == 2 {
            return match self.servers[index].port_fault(&mut self.resources, word(1), word(2)) {
                Ok(ports) => Outcome::Answer(Answer::Ports(ports)),
                Err(end) => self.ended(index, end),
            };
        }
        if protocol::of(tag) == protocol::ARCHITECTURE_EXCEPTION && request.count >= exception::WORDS {
            let (number, ip) = (word(exception::NUMBER), word(exception::RIP));
            return self.ended(index, End::Exception { number, ip });
        }
        // Without memory to record the result root carries out no request but that to exit.
        if !self.resources.machine.has_headroom() && tag.label() != request::EXIT {
            return Outcome::Answer(Answer::Refused(Status::NoMemory));
        }
        match tag.label() {
            request::EXIT => match request.arguments() {
                Ok([status]) => self.ended(index, End::Exit(status)),
                Err(status) => Outcome::Answer(Answer::Refused(status)),
            },
            request::NAME_LOOKUP => match request.word_and_text() {
                Ok((wait, name)) => self.lookup(index, request.from, &name, wait != 0),
                Err(status) => Outcome::Answer(Answer::Refused(status)),
            },
            request::PRINT => Outcome::Print,
            request::SERVER => Outcome::Answer(match request.arguments() {
                Ok([place]) => self.describe(place),
                Err(status) => Answer::Refused(status),
            }),
            request::MEMORY_ALLOCATE
            | request::MEMORY_POOL
            | request::MEMORY_FREE
            | request::MEMORY_DMA
            | request::SHARE_CREATE
            | request::SPACE_DELETE => match self.begin_work(index, request) {
                Ok(item) => Outcome::Work(item),
                Err(status) => Outcome::Answer(Answer::Refused(status)),
            },
            _ => Outcome::Answer(match self.perform(index, request) {
                Ok(answer) => answer,
                Err(status) => Answer::Refused(status),
            }),
        }
    }

    /// Begins the work that takes back what server `index` had, which has ended for the reason
    /// `end`.
    fn ended(&mut self, index: usize, end: End) -> Outcome {
        Outcome::Work(self.end(index, end))
    }

    /// Describes the server at index `place` of the configuration.
    fn describe(&mut self, place: u64) -> Answer {
        let server = usize::try_from(place).ok().and_then(|place| self.servers.get(place));
        let Some(server) = server else { return Answer::Refused(Status::NotFound) };
        let (runs, memory) = (server.first.is_some(), &server.memory);
        // Only a server that runs has kernel memory.
        let machine = &mut self.resources.machine;
        let kernel = server.first.and_then(|first| {
            machine.space_options(first, SpaceOption::Information, [0; 2]).ok().map(|[used, _]| used)
        });
        let [kind, what, ip] = End::words(server.end);
        let words = [
            memory.used(),
            memory.limit(),
            runs.into(),
            server.restarts.into(),
            kernel.unwrap_or(0),
            server.threads.used(),
            server.spaces.used(),
            kind,
            what,
            ip,
        ];
        Answer::Server(words, server.configuration.name.clone())
    }

    /// Begins the work of a request that the background worker carries out.
    fn begin_work(&mut self, index: usize, request: &Request) -> Result<WorkItem, Status> {
        let (server, resources, from) = (&mut self.servers[index], &mut self.resources, request.from);
        let first = server.first.ok_or(Status::InvalidArgument)?;
        let allocate = |address, size, fill: Fill, answer, share| {
            Work::Allocate(Allocate { from, fill, address, pages: size / PAGE, answer, share })
        };
        let work = match request.tag.label() {
            request::MEMORY_FREE => {
                let [address, size] = request.arguments()?;
                server.memory.unsettle(address, size)?;
                let (done, answer) = (0, Answer::Done);
                Work::Release(Release { from, thread: first, address, done, size, answer, share: None })
            }
            request::MEMORY_DMA => {
                let words @ [address, size, _] = request.arguments()?;
                let (physical, fill) = server.allocate_dma(resources, first, words)?;
                allocate(address, size, fill, Some(physical), None)
            }
            request::SHARE_CREATE => {
                let [address, size, partner] = request.arguments()?;
                let partner = ThreadId::from_raw(partner);
                let (share, fill) = server.create_share(resources, first, [address, size], partner)?;
                allocate(address, size, fill, Some(share), Some(share))
            }
            request::SPACE_DELETE => {
                let [space] = request.arguments()?;
                let threads = server.delete_space(resources, SpaceName::from_word(space))?;
                Work::EndThreads(EndThreads { from, threads, ending: [None; THREADS] })
            }
            label => {
                let [address, size] = request.arguments()?;
                let initially =
                    if label == request::MEMORY_POOL { Initially::AsItIs } else { Initially::Zero };
                let memory = (&mut resources.frames, &resources.machine);
                let fill = server.memory.allocate(memory, first, address, size, initially)?;
                allocate(address, size, fill, None, None)
            }
        };
        server.work_items += 1;
        Ok(WorkItem { index, work })
    }

    /// Carries out a request immediately, without the background worker.
    fn perform(&mut self, index: usize, request: &Request) -> Result<Answer, Status> {
        let label = request.tag.label();
        if label == request::NAME_REGISTER {
            let [thread] = request.arguments()?;
            return self.register(index, ThreadId::from_raw(thread)).map(|()| Answer::Done);
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
                return map_module(server, &mut resources.machine, first, room, &name);
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
                server.end_system(&mut resources.machine, how, status)?;
            }
            _ => return Err(Status::UnknownRequest),
        }
        Ok(Answer::Done)
    }
}

fn map_module(
    server: &mut Server,
    machine: &mut impl Machine,
    first: ThreadId,
    room: u64,
    name: &[u8],
) -> Result<Answer, Status> {
    let names = &server.configuration.modules;
    let at = names.iter().position(|other| other.as_bytes() == name).ok_or(Status::NotFound)?;
    let module = server.modules[at];
    Ok(Answer::Two(server.memory.map_module(machine, first, room, module)?, module.size()))
}

/// Converts the index of a server to the type that the tables of resources use.
pub(crate) fn server_index(index: usize) -> ServerIndex {
    index as ServerIndex
}
