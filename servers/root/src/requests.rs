//! Serves the requests of `interfaces/root.defs`, which generated stubs take out of messages.

use crate::devices::port_fpages;
use crate::end::End;
use crate::executable::PAGE;
use crate::fill::Fill;
use crate::frames::Initially;
use crate::machine::Machine;
use crate::resources::Resources;
use crate::server::Server;
use crate::spaces::SpaceName;
use crate::step::THREADS;
use crate::system::System;
use crate::thread_numbers::ServerIndex;
use crate::work_item::{Allocate, EndThreads, Release, Work, WorkItem};
use direct::{Array, Encoder, Registers, Reply};
use interfaces::root::{self, id, serve};
use rt::root::Status;
use x2::extension::SpaceOption;
use x2::protocol::{self, exception};
use x2::{MapItem, MessageTag, ThreadId};

/// The text of a request to print.
pub type Text = Array<u8, 488>;

/// The result of a request, from which the stubs write its answer.
type Result<T> = core::result::Result<T, direct::Status>;

/// The outcome of a message to root: whether and when its sender gets an answer.
#[allow(clippy::large_enum_variant, reason = "it is taken apart as soon as it is made")]
pub enum Outcome {
    /// The sender immediately gets the message that is in the registers, with this tag.
    Answer(MessageTag),
    /// The sender gets no answer now: it is answered after another event, or never.
    Wait,
    /// The sender is answered when this work item is done.
    Work(WorkItem),
    /// This text of the sender's is printed on the log, then the sender is [answered](printed).
    Print(Text),
}

/// A text to print, without control characters, by which a server could overwrite what others have
/// printed.
pub fn printable(text: &[u8]) -> impl Iterator<Item = char> {
    let shown = |&byte| if byte == b'\n' || (b' '..=b'~').contains(&byte) { byte } else { b'?' };
    text.iter().map(shown).map(char::from)
}

/// Writes the answer to a text that has been printed.
pub fn printed(registers: &mut impl Registers) -> MessageTag {
    root::reply_root_print(registers, Ok(())).tag
}

/// A request whose answer may wait for a work item or another event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongRequest {
    MemoryAllocate,
    MemoryFree,
    SpaceDelete,
    MemoryPool,
    NameLookup,
    ShareCreate,
    MemoryDma,
}

/// The answer to a request that was carried out as a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(crate) request: LongRequest,
    /// The word of the answer, 0 if it has none.
    pub(crate) result: core::result::Result<u64, Status>,
}

impl Answer {
    /// Writes the answer as a message into `registers`. Returns its tag.
    pub fn write(self, registers: &mut impl Registers) -> MessageTag {
        let word = self.result.map_err(direct::Status::from);
        let done = word.map(drop);
        match self.request {
            LongRequest::MemoryAllocate => root::reply_root_memory_allocate(registers, done),
            LongRequest::MemoryFree => root::reply_root_memory_free(registers, done),
            LongRequest::SpaceDelete => root::reply_root_space_delete(registers, done),
            LongRequest::MemoryPool => root::reply_root_memory_pool(registers, done),
            LongRequest::NameLookup => root::reply_root_name_lookup(registers, word),
            LongRequest::ShareCreate => root::reply_root_share_create(registers, word),
            LongRequest::MemoryDma => root::reply_root_memory_dma(registers, word),
        }
        .tag
    }
}

impl<M: Machine> System<M> {
    /// Carries out a request of server `index`, or begins work for it.
    pub(crate) fn serve(
        &mut self,
        index: usize,
        from: ThreadId,
        tag: MessageTag,
        registers: &mut impl Registers,
    ) -> Outcome {
        let (count, word) = (tag.untyped(), |register: usize| registers.register(register));
        if protocol::of(tag) == protocol::PAGE_FAULT && count == 2 {
            return self.ended(index, End::Fault { address: word(1), ip: word(2) });
        }
        if protocol::of(tag) == protocol::IO_PAGE_FAULT && count == 2 {
            return match self.servers[index].port_fault(&mut self.resources, word(1), word(2)) {
                Ok(ports) => {
                    let mut encoder = Encoder::new(registers);
                    port_fpages(&ports).for_each(|fpage| encoder.map(MapItem::map(fpage, 0)));
                    Outcome::Answer(encoder.finish(0))
                }
                Err(end) => self.ended(index, end),
            };
        }
        if protocol::of(tag) == protocol::ARCHITECTURE_EXCEPTION && count >= exception::WORDS {
            let (number, ip) = (word(exception::NUMBER), word(exception::RIP));
            return self.ended(index, End::Exception { number, ip });
        }
        // Without memory to record the result root carries out no request but that to exit.
        if !self.resources.machine.has_headroom() && tag.label() != id::ROOT_EXIT {
            return Outcome::Answer(Reply::refusal(registers, tag.label(), Status::NoMemory.into()).tag);
        }
        let mut call = Call { system: self, index, instead: Outcome::Wait };
        match serve(&mut call, from, tag, registers, &[], &mut []) {
            Some(reply) => Outcome::Answer(reply.tag),
            None => call.instead,
        }
    }

    /// Begins the work that takes back what server `index` had, which has ended for the reason
    /// `end`.
    fn ended(&mut self, index: usize, end: End) -> Outcome {
        Outcome::Work(self.end(index, end))
    }
}

/// A request of a server, on which the generated stubs call the functions of root's interface.
struct Call<'a, M> {
    system: &'a mut System<M>,
    index: usize,
    /// The outcome of a request that is not answered immediately.
    instead: Outcome,
}

impl<M: Machine> Call<'_, M> {
    /// The server that has sent the request, and the resources of all servers.
    fn parts(&mut self) -> (&mut Server, &mut Resources<M>) {
        (&mut self.system.servers[self.index], &mut self.system.resources)
    }

    /// The server that has sent the request, its first thread, and the resources of all servers.
    fn parts_and_first(&mut self) -> Result<(&mut Server, &mut Resources<M>, ThreadId)> {
        let (server, resources) = self.parts();
        let first = server.first.ok_or(Status::InvalidArgument)?;
        Ok((server, resources, first))
    }

    /// Sets the outcome of the request, which is not answered immediately.
    fn instead<T>(&mut self, outcome: Outcome) -> Result<T> {
        self.instead = outcome;
        Err(direct::Status::NO_REPLY)
    }

    /// Begins the work of a request that the background worker carries out.
    fn begin<T>(&mut self, work: Work) -> Result<T> {
        let (server, _) = self.parts();
        server.work_items += 1;
        let index = self.index;
        self.instead(Outcome::Work(WorkItem { index, work }))
    }

    /// Begins to map memory for `from`; `word` is the word of the answer.
    fn fill<T>(
        &mut self,
        from: ThreadId,
        fill: Fill,
        [address, size]: [u64; 2],
        request: LongRequest,
        word: u64,
    ) -> Result<T> {
        let answer = Answer { request, result: Ok(word) };
        self.begin(Work::Allocate(Allocate { from, fill, address, pages: size / PAGE, answer }))
    }

    /// Begins to allocate memory that counts against the server's quota.
    fn allocate(
        &mut self,
        from: ThreadId,
        [address, size]: [u64; 2],
        initially: Initially,
        request: LongRequest,
    ) -> Result<()> {
        let (server, resources, first) = self.parts_and_first()?;
        let memory = (&mut resources.frames, &resources.machine);
        let fill = server.memory.allocate(memory, first, address, size, initially)?;
        self.fill(from, fill, [address, size], request, 0)
    }
}

impl<M: Machine> root::Server for Call<'_, M> {
    fn root_print(&mut self, _: ThreadId, text: &[u8]) -> Result<()> {
        let text = Text::new(text).ok_or(Status::InvalidArgument)?;
        self.instead(Outcome::Print(text))
    }

    fn root_exit(&mut self, _: ThreadId, status: u64) {
        self.instead = self.system.ended(self.index, End::Exit(status));
    }

    fn root_memory_allocate(&mut self, from: ThreadId, address: u64, size: u64) -> Result<()> {
        self.allocate(from, [address, size], Initially::Zero, LongRequest::MemoryAllocate)
    }

    fn root_memory_free(&mut self, from: ThreadId, address: u64, size: u64) -> Result<()> {
        let (server, resources, thread) = self.parts_and_first()?;
        if resources.pools.has(server.index, address) {
            return Err(Status::InUse.into());
        }
        server.memory.unsettle(address, size)?;
        let answer = Answer { request: LongRequest::MemoryFree, result: Ok(0) };
        self.begin(Work::Release(Release { from, thread, address, done: 0, size, answer, share: None }))
    }

    fn root_thread_create(&mut self, _: ThreadId, ip: u64, sp: u64) -> Result<u64> {
        let (server, resources) = self.parts();
        Ok(server.create_thread(resources, ip, sp)?.raw())
    }

    fn root_thread_delete(&mut self, _: ThreadId, thread: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.delete_thread(resources, ThreadId::from_raw(thread))?)
    }

    fn root_space_create(
        &mut self,
        _: ThreadId,
        kernel_interface: u64,
        utcb_area: u64,
        utcb_area_log2: u64,
        system_calls: u64,
        emulation_entry: u64,
        kernel_memory: u64,
        handler: u64,
    ) -> Result<(u64, u64)> {
        let words =
            [kernel_interface, utcb_area, utcb_area_log2, system_calls, emulation_entry, kernel_memory];
        let (server, resources) = self.parts();
        let (space, thread) = server.create_space(resources, words, ThreadId::from_raw(handler))?;
        Ok((space.word(), thread.raw()))
    }

    fn root_space_thread_create(&mut self, _: ThreadId, space: u64, place: u64, handler: u64) -> Result<u64> {
        let (space, handler) = (SpaceName::from_word(space), ThreadId::from_raw(handler));
        let (server, resources) = self.parts();
        Ok(server.create_space_thread(resources, space, place, handler)?.raw())
    }

    fn root_space_thread_delete(&mut self, _: ThreadId, thread: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.delete_space_thread(resources, ThreadId::from_raw(thread))?)
    }

    fn root_space_delete(&mut self, from: ThreadId, space: u64) -> Result<()> {
        let (server, resources) = self.parts();
        let threads = server.delete_space(resources, SpaceName::from_word(space))?;
        self.begin(Work::EndThreads(EndThreads { from, threads, ending: [None; THREADS] }))
    }

    fn root_memory_available(&mut self, _: ThreadId) -> Result<u64> {
        let (server, resources) = self.parts();
        Ok(server.memory.available(&resources.frames))
    }

    fn root_memory_pool(&mut self, from: ThreadId, address: u64, size: u64) -> Result<()> {
        self.allocate(from, [address, size], Initially::AsItIs, LongRequest::MemoryPool)
    }

    fn root_module_map(&mut self, _: ThreadId, room: u64, name: &[u8]) -> Result<(u64, u64)> {
        let (server, resources, first) = self.parts_and_first()?;
        let names = &server.configuration.modules;
        let at = names.iter().position(|other| other.as_bytes() == name).ok_or(Status::NotFound)?;
        let module = server.modules[at];
        let address = server.memory.map_module(&mut resources.machine, first, room, module)?;
        Ok((address, module.size()))
    }

    fn root_name_register(&mut self, _: ThreadId, thread: u64) -> Result<()> {
        Ok(self.system.register(self.index, ThreadId::from_raw(thread))?)
    }

    fn root_name_lookup(&mut self, from: ThreadId, wait: u64, name: &[u8]) -> Result<u64> {
        match self.system.lookup(self.index, from, name, wait != 0)? {
            Some(thread) => Ok(thread.raw()),
            None => self.instead(Outcome::Wait),
        }
    }

    fn root_interrupt_attach(&mut self, _: ThreadId, line: u64, thread: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.attach_interrupt(resources, line, ThreadId::from_raw(thread))?)
    }

    fn root_interrupt_detach(&mut self, _: ThreadId, line: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.detach_interrupt(resources, line)?)
    }

    fn root_device_map(&mut self, _: ThreadId, physical: u64, size: u64, address: u64) -> Result<()> {
        let (server, resources, first) = self.parts_and_first()?;
        Ok(server.map_device(resources, first, [physical, size, address])?)
    }

    fn root_system_end(&mut self, _: ThreadId, how: u64, status: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.end_system(&mut resources.machine, how, status)?)
    }

    fn root_resource(&mut self, _: ThreadId, kind: u64, index: u64) -> Result<(u64, u64)> {
        let (server, resources) = self.parts();
        Ok(server.resource(resources, kind, index).ok_or(Status::NotFound)?)
    }

    fn root_share_create(&mut self, from: ThreadId, address: u64, size: u64, partner: u64) -> Result<u64> {
        let (server, resources, first) = self.parts_and_first()?;
        let partner = ThreadId::from_raw(partner);
        let (share, fill) = server.create_share(resources, first, [address, size], partner)?;
        self.fill(from, fill, [address, size], LongRequest::ShareCreate, share)
    }

    fn root_share_renew(&mut self, _: ThreadId, share: u64, partner: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.renew_share(resources, share, ThreadId::from_raw(partner))?)
    }

    fn root_share_map(&mut self, _: ThreadId, share: u64, address: u64) -> Result<u64> {
        let (server, resources, first) = self.parts_and_first()?;
        Ok(server.map_share(resources, first, share, address)?)
    }

    fn root_server(
        &mut self,
        _: ThreadId,
        index: u64,
    ) -> Result<(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, Array<u8, 256>)> {
        let system = &mut *self.system;
        let server = usize::try_from(index).ok().and_then(|index| system.servers.get(index));
        let server = server.ok_or(Status::NotFound)?;
        let memory = &server.memory;
        // Only a server that runs has kernel memory.
        let machine = &mut system.resources.machine;
        let kernel = server.first.and_then(|first| {
            machine.space_options(first, SpaceOption::Information, [0; 2]).ok().map(|[used, _]| used)
        });
        let [end, what, ip] = End::words(server.end);
        let (used, limit, runs) = (memory.used(), memory.limit(), server.first.is_some().into());
        let (restarts, kernel_memory) = (server.restarts.into(), kernel.unwrap_or(0));
        let (threads, spaces) = (server.threads.used(), server.spaces.used());
        let name = Array::new(server.configuration.name.as_bytes()).ok_or(Status::Unsupported)?;
        Ok((used, limit, runs, restarts, kernel_memory, threads, spaces, end, what, ip, name))
    }

    fn root_memory_dma(
        &mut self,
        from: ThreadId,
        address: u64,
        size: u64,
        bits: u64,
        kept: u64,
    ) -> Result<u64> {
        let (server, resources, first) = self.parts_and_first()?;
        let (physical, fill) = server.allocate_dma(resources, first, [address, size, bits], kept != 0)?;
        self.fill(from, fill, [address, size], LongRequest::MemoryDma, physical)
    }

    fn root_pool_create(&mut self, _: ThreadId, address: u64, size: u64, driver: u64) -> Result<u64> {
        let (server, resources) = self.parts();
        Ok(server.create_pool(resources, [address, size], ThreadId::from_raw(driver))?)
    }

    fn root_pool_find(&mut self, _: ThreadId, pool: u64, offset: u64) -> Result<(u64, u64)> {
        let (server, resources) = self.parts();
        Ok(server.find_in_pool(resources, pool, offset)?)
    }

    fn root_pci_region(&mut self, _: ThreadId, function: u64, base_address: u64) -> Result<(u64, u64, u64)> {
        let (server, resources) = self.parts();
        let [kind, first, size] = server.pci_region(resources, function, base_address)?;
        Ok((kind, first, size))
    }

    fn root_pci_read(&mut self, _: ThreadId, function: u64, offset: u64) -> Result<u64> {
        let (server, resources) = self.parts();
        Ok(server.pci_read(resources, function, offset)?)
    }

    fn root_message_attach(&mut self, _: ThreadId, function: u64, entry: u64, thread: u64) -> Result<u64> {
        let (server, resources) = self.parts();
        Ok(server.attach_message(resources, [function, entry], ThreadId::from_raw(thread))?)
    }

    fn root_message_detach(&mut self, _: ThreadId, interrupt: u64) -> Result<()> {
        let (server, resources) = self.parts();
        Ok(server.detach_message(resources, interrupt)?)
    }
}

/// Converts the index of a server to the type that the tables of resources use.
pub(crate) fn server_index(index: usize) -> ServerIndex {
    index as ServerIndex
}
