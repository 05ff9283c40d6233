//! The protocol of sigma0: how it answers messages (ABI 14, X.2 rules 12.4-12.8).

use crate::memory_map::Memory;
use crate::pool::{Pool, State};
use core::ops::Range;
use x2::fpage::Region;
use x2::protocol::{self, sigma0};
use x2::{Fpage, FpageKind, MessageTag, PortRange, Rights, ThreadId};

/// The I/O ports in units of one port.
pub type Ports<'a> = Pool<'a, 16, 0>;

/// Which threads sigma0 serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// The root task: its first thread, and the threads that it has announced, which are served as
    /// that thread.
    Root,
    /// All threads, each in its own name.
    Everybody,
}

/// sigma0's answer to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A map item for this fpage, mapped at its physical address after its memory attributes have
    /// been set.
    Map {
        /// The memory that was asked for, with the rights that the thread gets.
        fpage: Fpage,
        /// Memory attributes to set; 0 for the default.
        attributes: u64,
    },
    /// A grant item for this fpage, at its physical address: the memory belongs to the kernel from
    /// now on.
    Grant(Fpage),
    /// A map item with nilpage: the request was refused.
    Refused,
    /// An empty message: the request was carried out.
    Done,
}

/// Extended requests, which X.2 leaves to sigma0: the values of MR1 of a message with label -1001
/// from the root task.
pub mod extended {
    /// Asks sigma0 to print its pools. Pistachio's sigma0 does; this one has no console, and prints
    /// nothing. Answer: an empty message if MR2 is not 0, else none.
    pub const DUMP: u64 = 2;
    /// Has sigma0 serve the thread in MR2 as if it were the root task's first thread. Answer: an
    /// empty message. At most [`super::MAX_ANNOUNCED`] threads can be announced; MR2 = nil removes
    /// them all.
    pub const ANNOUNCE_THREAD: u64 = 3;
}

/// log2 of the number of bytes of kernel memory that sigma0 recommends to a kernel that leaves the
/// amount to sigma0: 4 MiB.
const RECOMMENDED: u32 = 22;

/// The most threads that root can announce.
pub const MAX_ANNOUNCED: usize = 128;

/// The whole state of sigma0.
#[derive(Debug)]
pub struct Server<'a> {
    memory: Memory<'a>,
    ports: Ports<'a>,
    root: ThreadId,
    kernel: Range<u32>,
    clients: Clients,
    announced: [ThreadId; MAX_ANNOUNCED],
}

impl<'a> Server<'a> {
    /// Makes a server that gives out this memory and these ports. Thread numbers in `kernel` belong
    /// to the kernel.
    pub fn new(
        memory: Memory<'a>,
        ports: Ports<'a>,
        root: ThreadId,
        kernel: Range<u32>,
        clients: Clients,
    ) -> Self {
        Self { memory, ports, root, kernel, clients, announced: [ThreadId::NIL; MAX_ANNOUNCED] }
    }

    /// Answers the message of `from` with `words` = MR1, MR2. `None` means no answer: the sender is
    /// not served, or the message does not follow the protocol (X.2 rule 12.6).
    pub fn serve(&mut self, from: ThreadId, tag: MessageTag, words: [u64; 2]) -> Option<Answer> {
        if tag.typed() != 0 || !matches!(tag.untyped(), 2 | 3) {
            return None;
        }
        if from.is_global() && self.kernel.contains(&from.number()) {
            let asks = protocol::of(tag) == protocol::SIGMA0_RPC;
            return asks.then(|| self.kernel_memory(Fpage::from_raw(words[0])));
        }
        let client = self.client(from)?;
        match protocol::of(tag) {
            protocol::PAGE_FAULT => Some(self.page_fault(client, words[0])),
            protocol::IO_PAGE_FAULT => Some(self.io_fault(client, words[0])),
            protocol::SIGMA0_RPC => Some(self.request(client, Fpage::from_raw(words[0]), words[1])),
            protocol::SIGMA0_EXTENDED if from == self.root => self.extended(words),
            _ => None,
        }
    }

    /// The thread that will own memory given to `from`; `None` if `from` is not served.
    fn client(&self, from: ThreadId) -> Option<ThreadId> {
        if from == self.root || !from.is_nil() && self.announced.contains(&from) {
            Some(self.root)
        } else if self.clients == Clients::Everybody {
            Some(from)
        } else {
            None
        }
    }

    fn extended(&mut self, [operation, argument]: [u64; 2]) -> Option<Answer> {
        match operation {
            extended::ANNOUNCE_THREAD => {}
            extended::DUMP => return (argument != 0).then_some(Answer::Done),
            _ => return None,
        }
        let thread = ThreadId::from_raw(argument);
        if thread.is_nil() {
            self.announced = [ThreadId::NIL; MAX_ANNOUNCED];
            return Some(Answer::Done);
        }
        if self.announced.contains(&thread) {
            return Some(Answer::Done);
        }
        match self.announced.iter_mut().find(|place| place.is_nil()) {
            Some(place) => *place = thread,
            None => return Some(Answer::Refused),
        }
        Some(Answer::Done)
    }

    /// Serves a page fault (X.2 rule 12.5): gives the page at `address` if it is conventional,
    /// shared or the client's own.
    fn page_fault(&mut self, client: ThreadId, address: u64) -> Answer {
        let page = Region::containing(address, Fpage::MIN_SIZE_LOG2);
        let allowed = match self.memory.next_state(page.base) {
            State::Conventional => self.memory.take_unit(page.base, client).is_ok(),
            State::Shared => true,
            State::Owned(owner) => owner == client,
            State::OnRequest | State::Unavailable => false,
        };
        if allowed { give(page, 0) } else { Answer::Refused }
    }

    fn request(&mut self, client: ThreadId, fpage: Fpage, attributes: u64) -> Answer {
        match fpage.kind() {
            FpageKind::Io(ports) => self.ports(client, ports),
            FpageKind::Memory(region) if sigma0::is_any(fpage) => {
                match self.memory.take_any(region.size_log2, client) {
                    Ok(Some(base)) => give(Region { base, size_log2: region.size_log2 }, attributes),
                    _ => Answer::Refused,
                }
            }
            FpageKind::Memory(region) if takes(&mut self.memory, region.base, region.size_log2, client) => {
                give(region, attributes)
            }
            _ => Answer::Refused,
        }
    }

    /// Gives the kernel memory, which no user thread will ever get (X.2 rule 12.4 c). The base of
    /// the fpage does not matter.
    fn kernel_memory(&mut self, fpage: Fpage) -> Answer {
        let order = if fpage.size_field() == 0 { RECOMMENDED } else { fpage.size_field() };
        let Ok(Some(base)) = self.memory.take_any(order, self.root) else { return Answer::Refused };
        let region = Region { base, size_log2: order };
        match self.memory.set(base, region.last(), State::Unavailable) {
            Ok(()) => Answer::Grant(Fpage::from_region(region, Rights::ALL)),
            // The memory counts as root's now, so that no other thread gets it, but root is not
            // told of it.
            Err(_) => Answer::Refused,
        }
    }

    fn io_fault(&mut self, client: ThreadId, fpage: u64) -> Answer {
        match Fpage::from_raw(fpage).ports() {
            Some(ports) => self.ports(client, ports),
            None => Answer::Refused,
        }
    }

    fn ports(&mut self, client: ThreadId, ports: PortRange) -> Answer {
        if !takes(&mut self.ports, ports.first.into(), ports.size_log2, client) {
            return Answer::Refused;
        }
        let fpage = Fpage::io(ports.first, ports.size_log2).with_rights(Rights::ALL);
        Answer::Map { fpage, attributes: 0 }
    }
}

fn give(region: Region, attributes: u64) -> Answer {
    Answer::Map { fpage: Fpage::from_region(region, Rights::ALL), attributes }
}

/// Takes the block for `client`, unless a part of it is unavailable or owned by another thread (X.2
/// rule 12.4 a). The complete address space (2^64) is refused.
fn takes<const TOP: u32, const UNIT: u32>(
    pool: &mut Pool<'_, TOP, UNIT>,
    base: u64,
    order: u32,
    client: ThreadId,
) -> bool {
    let allowed = |state| match state {
        State::Conventional | State::OnRequest | State::Shared => true,
        State::Owned(owner) => owner == client,
        State::Unavailable => false,
    };
    pool.all(base, order, allowed) && pool.take(base, order, client).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Node;
    use x2::protocol::label;

    const ROOT: ThreadId = ThreadId::interrupt(0x3a);
    const KERNEL: ThreadId = ThreadId::interrupt(0x18);
    const OTHER: ThreadId = ThreadId::interrupt(0x40);
    const RPC: MessageTag = sigma0::REQUEST_TAG;

    /// Runs a test with a server for 16 MiB of conventional memory, in which a MiB is reserved and
    /// a page dedicated; shared memory lies above.
    fn with_server(clients: Clients, test: impl FnOnce(&mut Server<'_>)) {
        let (mut nodes, mut port_nodes) = ([Node::UNUSED; 1000], [Node::UNUSED; 1000]);
        let mut memory = Memory::new(&mut nodes);
        memory.set(0, u64::MAX, State::Shared).unwrap();
        memory.set(0, 0xff_ffff, State::Conventional).unwrap();
        memory.set(0x60_0000, 0x6f_ffff, State::Unavailable).unwrap();
        memory.set(0x20_0000, 0x20_0fff, State::OnRequest).unwrap();
        let mut ports = Ports::new(&mut port_nodes);
        ports.set(0, 0xffff, State::OnRequest).unwrap();
        test(&mut Server::new(memory, ports, ROOT, 0x18..0x38, clients));
    }

    fn fault(server: &mut Server<'_>, from: ThreadId, address: u64) -> Option<Answer> {
        server.serve(from, protocol::page_fault_tag(Rights::WRITE), [address, 0x1234])
    }

    fn ask(server: &mut Server<'_>, from: ThreadId, fpage: Fpage) -> Answer {
        server.serve(from, RPC, [fpage.raw(), 0]).unwrap()
    }

    fn given(fpage: Fpage) -> Answer {
        Answer::Map { fpage: fpage.with_rights(Rights::ALL), attributes: 0 }
    }

    /// Rules: 12.5.
    #[test]
    fn page_faults_give_one_page_at_its_own_address() {
        with_server(Clients::Everybody, |server| {
            assert_eq!(fault(server, ROOT, 0x12_3456), Some(given(Fpage::memory(0x12_3000, 12))));
            assert_eq!(fault(server, ROOT, 0x12_3456), Some(given(Fpage::memory(0x12_3000, 12))));
            assert_eq!(fault(server, OTHER, 0x12_3456), Some(Answer::Refused));
            assert_eq!(fault(server, ROOT, 0x20_0000), Some(Answer::Refused), "only on request");
            assert_eq!(fault(server, ROOT, 0x60_0000), Some(Answer::Refused), "reserved");
            assert_eq!(fault(server, OTHER, 0xfec0_0000), Some(given(Fpage::memory(0xfec0_0000, 12))));
            assert_eq!(fault(server, ROOT, 0xfec0_0000), Some(given(Fpage::memory(0xfec0_0000, 12))));
        });
    }

    /// Rules: 12.4, 12.14.
    #[test]
    fn specific_requests_mix_free_shared_and_own_memory() {
        with_server(Clients::Everybody, |server| {
            let quarter = Fpage::memory(0x20_0000, 20);
            assert_eq!(ask(server, ROOT, quarter), given(quarter), "with a page that is only on request");
            assert_eq!(ask(server, ROOT, Fpage::memory(0x20_0000, 21)), given(Fpage::memory(0x20_0000, 21)));
            assert_eq!(ask(server, OTHER, Fpage::memory(0x20_0000, 12)), Answer::Refused);
            assert_eq!(ask(server, OTHER, Fpage::memory(0, 22)), Answer::Refused, "partly another's");
            assert_eq!(ask(server, OTHER, Fpage::memory(0x40_0000, 22)), Answer::Refused, "partly reserved");
            assert_eq!(fault(server, OTHER, 0x40_0000), Some(given(Fpage::memory(0x40_0000, 12))));
            assert_eq!(ask(server, OTHER, Fpage::memory(0x80_0000, 23)), given(Fpage::memory(0x80_0000, 23)));
            assert_eq!(ask(server, OTHER, Fpage::COMPLETE), Answer::Refused);
            assert_eq!(ask(server, OTHER, Fpage::NIL), Answer::Refused);
            assert_eq!(ask(server, OTHER, Fpage::from_raw(0x1000 | 5 << 4)), Answer::Refused);
        });
    }

    /// Rules: 12.4.
    #[test]
    fn requests_for_any_memory_end_with_refusal() {
        with_server(Clients::Everybody, |server| {
            let mut megabytes = 0;
            while let Answer::Map { fpage, .. } = ask(server, ROOT, sigma0::any(20)) {
                let region = fpage.region().unwrap();
                assert_eq!(region.size_log2, 20);
                assert_eq!(fault(server, OTHER, region.base), Some(Answer::Refused));
                megabytes += 1;
            }
            assert_eq!(megabytes, 16 - 3, "reserved, with a page on request, and that at address 0");
            assert_eq!(ask(server, ROOT, sigma0::any(11)), Answer::Refused);
            assert_eq!(ask(server, ROOT, sigma0::any(63)), Answer::Refused);
            assert_eq!(ask(server, ROOT, sigma0::any(1)), Answer::Refused);
        });
    }

    /// Rules: 12.4.
    #[test]
    fn the_kernel_gets_memory_without_an_owner() {
        with_server(Clients::Root, |server| {
            for (asked, bits) in [(Fpage::NIL, RECOMMENDED), (sigma0::any(20), 20), (sigma0::any(12), 12)] {
                let Answer::Grant(fpage) = ask(server, KERNEL, asked) else { panic!("{asked:?}") };
                let region = fpage.region().unwrap();
                assert_eq!((region.size_log2, fpage.rights()), (bits, Rights::ALL));
                assert_eq!(fault(server, ROOT, region.base), Some(Answer::Refused));
                assert_eq!(ask(server, ROOT, fpage), Answer::Refused);
            }
            assert_eq!(ask(server, KERNEL, sigma0::any(30)), Answer::Refused, "there is not so much");
            assert_eq!(fault(server, KERNEL, 0x1000), None, "the kernel has no faults");
        });
    }

    /// Rules: 12.6.
    #[test]
    fn malformed_messages_get_no_answer() {
        with_server(Clients::Everybody, |server| {
            for tag in [
                MessageTag::new(label(protocol::SIGMA0_RPC, 0), 1, 0),
                MessageTag::new(label(protocol::SIGMA0_RPC, 0), 4, 0),
                MessageTag::new(label(protocol::SIGMA0_RPC, 0), 2, 2),
                MessageTag::new(label(protocol::PREEMPTION, 0), 2, 0),
                MessageTag::new(0x123, 2, 0),
                MessageTag::new(label(protocol::SIGMA0_EXTENDED, 0), 2, 0),
            ] {
                assert_eq!(server.serve(OTHER, tag, [0x1000 | 12 << 4, 0]), None, "{tag:?}");
            }
            assert!(server.serve(ROOT, RPC.with_words(3, 0), [0x1000 | 12 << 4, 0]).is_some());
        });
    }

    /// Rules: 9.4.
    #[test]
    fn attributes_are_passed_on() {
        with_server(Clients::Everybody, |server| {
            let fpage = Fpage::memory(0xfec0_0000, 12);
            let answer = server.serve(ROOT, RPC, [fpage.raw(), 1]);
            assert_eq!(answer, Some(Answer::Map { fpage: fpage.with_rights(Rights::ALL), attributes: 1 }));
        });
    }

    /// Rules: ABI 14.
    #[test]
    fn a_dump_is_answered_if_an_answer_is_wanted() {
        with_server(Clients::Everybody, |server| {
            let tag = MessageTag::new(label(protocol::SIGMA0_EXTENDED, 0), 2, 0);
            assert_eq!(server.serve(ROOT, tag, [extended::DUMP, 1]), Some(Answer::Done));
            assert_eq!(server.serve(ROOT, tag, [extended::DUMP, u64::MAX]), Some(Answer::Done));
            assert_eq!(server.serve(ROOT, tag, [extended::DUMP, 0]), None);
            assert_eq!(server.serve(OTHER, tag, [extended::DUMP, 1]), None);
            // How much is printed; another number is no request.
            for operation in [0, 1, 4, u64::MAX] {
                assert_eq!(server.serve(ROOT, tag, [operation, 1]), None);
            }
        });
    }

    /// Rules: EXT 2.8.
    #[test]
    fn closed_sigma0_serves_root_and_whom_root_announces() {
        with_server(Clients::Root, |server| {
            assert_eq!(fault(server, OTHER, 0x1000), None);
            assert_eq!(fault(server, ROOT, 0x1000), Some(given(Fpage::memory(0x1000, 12))));
            let announce = MessageTag::new(label(protocol::SIGMA0_EXTENDED, 0), 2, 0);
            let words = [extended::ANNOUNCE_THREAD, OTHER.raw()];
            assert_eq!(server.serve(OTHER, announce, words), None);
            assert_eq!(server.serve(ROOT, announce, words), Some(Answer::Done));
            assert_eq!(fault(server, OTHER, 0x1000), Some(given(Fpage::memory(0x1000, 12))), "as root");
            for number in 0..100 {
                let words = [extended::ANNOUNCE_THREAD, ThreadId::interrupt(200 + number).raw()];
                let expected =
                    if (number as usize) < MAX_ANNOUNCED - 1 { Answer::Done } else { Answer::Refused };
                assert_eq!(server.serve(ROOT, announce, words), Some(expected));
            }
            assert_eq!(server.serve(ROOT, announce, [extended::ANNOUNCE_THREAD, 0]), Some(Answer::Done));
            assert_eq!(fault(server, OTHER, 0x1000), None);
            assert_eq!(server.serve(ThreadId::NIL, RPC, [0x1000 | 12 << 4, 0]), None);
        });
    }

    /// Rules: 12.7.
    #[test]
    fn ports_have_owners_too() {
        with_server(Clients::Everybody, |server| {
            let serial = Fpage::io(0x3f8, 3);
            assert_eq!(ask(server, ROOT, serial), given(serial));
            assert_eq!(ask(server, OTHER, Fpage::io(0x3f8, 0)), Answer::Refused);
            assert_eq!(ask(server, OTHER, Fpage::COMPLETE_IO), Answer::Refused);
            let io_fault = protocol::IO_PAGE_FAULT_TAG;
            assert_eq!(
                server.serve(OTHER, io_fault, [Fpage::io(0x61, 0).raw(), 0]),
                Some(given(Fpage::io(0x61, 0)))
            );
            assert_eq!(server.serve(OTHER, io_fault, [0x1000 | 12 << 4, 0]), Some(Answer::Refused));
        });
    }
}
