//! Tests of root on a simulated machine: requests of hostile servers, servers that end in the
//! middle of work, kernel calls that fail.

mod devices;
mod ends;
mod iommu;
mod memory;
mod messages;
mod random;
mod simulation;
mod threads;
mod unit;
mod work;

use crate::configuration;
use crate::executable::{PAGE, tests::program};
use crate::frames::Frames;
use crate::machine::Machine as _;
use crate::modules::Module;
use crate::requests::Outcome;
use crate::server::State;
use crate::step;
use crate::system::System;
use crate::thread_numbers::ServerIndex;
use crate::work_item::{Next, WorkItem};
use interfaces::root::id as request;
use messages::{Answer, answered, handle};
use rt::root::Status;
use simulation::{MEMORY, Simulation, Space, root_thread};
use std::collections::BTreeSet;
use x2::{MessageTag, ThreadId};

/// An address at which a server has no memory at its start.
const ROOM: u64 = 0x4000_0000;

/// Root with its servers, and the work that its background workers have not done yet.
struct Root {
    system: System<Simulation>,
    queue: Vec<(WorkItem, step::Result)>,
    /// The answers to requests that were carried out as work items.
    answers: Vec<(ThreadId, Answer)>,
}

impl Root {
    /// Starts root with this configuration. Every boot module is a small program.
    fn start(configuration: &str) -> Root {
        Root::start_on(Simulation::default(), configuration)
    }

    fn start_on(machine: Simulation, configuration: &str) -> Root {
        let servers = configuration::parse(configuration.as_bytes()).unwrap();
        let roots = vec![root_thread(0), root_thread(1)];
        let system = System::new(machine, Frames::new([MEMORY]), roots, 110);
        let mut root = Root { system, queue: Vec::new(), answers: Vec::new() };
        root.system.find_functions();
        if let Some(table) = root.machine().dmar.clone() {
            root.system.set_up_iommu(Some(&table), 3);
        }
        let module = Module { start: 0x8000_3000, content: program().leak() };
        for server in servers {
            let modules = server.modules.iter().map(|_| module).collect();
            root.system.add(server, module, modules, 1 << 20);
        }
        for index in 0..root.system.server_count() {
            let item = root.system.begin(index);
            root.queue.push((item, Ok(())));
            root.finish();
        }
        root
    }

    fn machine(&mut self) -> &mut Simulation {
        &mut self.system.resources.machine
    }

    /// The first thread of a server that runs.
    fn first(&self, index: usize) -> ThreadId {
        self.system.servers[index].first.expect("the server runs")
    }

    /// The own space of a server that runs.
    fn space(&self, index: usize) -> &Space {
        self.system.resources.machine.space_of(self.first(index)).expect("it has a space")
    }

    /// Sends a request. Returns the immediate answer; `None` if the request made a work item, which
    /// stays in the queue.
    fn send(&mut self, from: ThreadId, label: u64, words: &[u64]) -> Option<Answer> {
        let tag = MessageTag::new(label, words.len(), 0);
        match answered(handle(&mut self.system, from, tag, words), label) {
            Ok(answer) => return Some(answer),
            Err(Some(item)) => self.queue.push((*item, Ok(()))),
            Err(None) => {}
        }
        None
    }

    /// Sends a request and does all work in the queue. `None`: the sender gets no answer.
    fn ask(&mut self, from: ThreadId, label: u64, words: &[u64]) -> Option<Answer> {
        let answer = self.send(from, label, words);
        self.finish();
        let queued = self.answers.extract_if(.., |(to, _)| *to == from).last();
        answer.or(queued.map(|(_, answer)| answer))
    }

    /// Sends a request in the name of a server's first thread, and does all work in the queue.
    fn request(&mut self, index: usize, label: u64, words: &[u64]) -> Option<Answer> {
        let from = self.first(index);
        self.ask(from, label, words)
    }

    /// Sends a request that ends with a text in the name of a server's first thread.
    fn request_text(&mut self, index: usize, label: u64, word: u64, text: &str) -> Option<Answer> {
        self.request(index, label, &words_of(word, text))
    }

    /// Does one step of a work item in the queue.
    fn step(&mut self, at: usize) {
        let (mut item, last) = self.queue.remove(at);
        match self.system.advance(&mut item, last) {
            Next::Step(step) => {
                let result = self.machine().perform(&step);
                self.queue.push((item, result));
            }
            Next::Answer(to, answer) => self.answers.push((to, Answer::of(answer))),
            Next::Become(next) => self.queue.push((next, Ok(()))),
            Next::Over => {}
        }
    }

    /// Does all work in the queue, one step of each item in turn.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            if self.queue.is_empty() {
                return self.check();
            }
            self.step(0);
        }
        panic!("work comes to an end");
    }

    /// The indices of the servers that run.
    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.system.servers.len()).filter(|&index| self.system.servers[index].first.is_some())
    }

    /// Checks what must hold whenever the queue is empty: root's tables agree with the machine.
    fn check(&self) {
        let (servers, resources) = (&self.system.servers, &self.system.resources);
        let machine = &resources.machine;
        let mut accounted = resources.frames.free();
        let mut threads = BTreeSet::new();
        for server in servers {
            let name = &server.configuration.name;
            let index = server.index;
            assert_eq!(server.work_items, 0, "{name}: no work is left");
            assert!(matches!(server.state, State::Up | State::Down), "{name} runs or does not");
            let own: Vec<_> = resources.numbers.of_from(index, 0).map(crate::server::id).collect();
            assert_eq!(server.threads.used(), own.len() as u64, "{name}: threads");
            let spaces: BTreeSet<u32> =
                own.iter().map(|&id| machine.thread(id).expect("the kernel has it").space).collect();
            assert_eq!(server.spaces.used(), spaces.len() as u64, "{name}: spaces");
            let own_space = usize::from(server.first.is_some());
            assert_eq!(resources.spaces.count_of(index), spaces.len() - own_space, "{name}: its spaces");
            let owned = resources.frames.size_of(index);
            let shared = resources.shares.size_made_by(index);
            assert_eq!(server.memory.used(), owned + shared, "{name}: memory");
            assert!(server.memory.used() <= server.memory.limit(), "{name}: quota of memory");
            accounted += owned;
            assert_eq!(own.is_empty(), server.first.is_none(), "{name} has threads if it runs");
            if let Some(first) = server.first {
                assert_eq!(machine.mapped(first), server.memory.addresses(), "{name}: mapped pages");
            } else {
                assert_eq!((server.memory.used(), server.registered), (0, None), "{name} has nothing");
            }
            threads.extend(own.iter().map(|id| id.number()));
        }
        accounted += [ServerIndex::MAX, ServerIndex::MAX - 1, crate::iommu::TABLES]
            .map(|it| resources.frames.size_of(it))
            .iter()
            .sum::<u64>();
        assert_eq!(accounted, MEMORY.end - MEMORY.start, "all memory is free or has an owner");
        let all: BTreeSet<u32> = machine.threads.keys().copied().collect();
        assert_eq!(all, threads, "the kernel has the threads that root knows");
        let mut interrupts: BTreeSet<u32> = resources.lines.iter().map(|&(line, _)| line).collect();
        let attached: BTreeSet<u32> = resources.attached_interrupts().into_iter().collect();
        let valid: BTreeSet<u32> = machine.sources.keys().copied().collect();
        assert!(!machine.uses_table || valid == attached, "{valid:?} can be raised");
        interrupts.extend(attached);
        interrupts.extend(resources.iommu.interrupt);
        assert_eq!(machine.interrupts.keys().copied().collect::<BTreeSet<_>>(), interrupts, "interrupts");
        self.check_separation();
        self.check_pools();
        self.check_reach();
    }

    /// Checks that functions reach memory of their drivers and of these drivers' pools, all of it
    /// and no other.
    fn check_reach(&self) {
        let resources = &self.system.resources;
        let Some(unit) = resources.machine.unit.as_ref().filter(|unit| unit.is_on()) else { return };
        for function in resources.functions.iter().filter(|function| function.unit.is_some()) {
            let reachable = unit.reachable(function.place);
            let mut may: BTreeSet<u64> = function.reserved.iter().cloned().flat_map(pages).collect();
            let mut must = BTreeSet::new();
            if let Some(owner) = function.owner {
                let driver = &self.system.servers[usize::from(owner)];
                may.extend(driver.dma.blocks().into_iter().flat_map(pages));
                let pools = resources.pools.memory().filter(|(_, of, _)| *of == owner);
                must.extend(pools.flat_map(|(_, _, block)| pages(block)));
                if driver.state == State::Up {
                    let mapped = self.space(owner.into()).pages.values().map(|&(page, _)| page);
                    must.extend(mapped.filter(|page| may.contains(page)));
                } else if driver.state == State::Down {
                    assert_eq!(reachable, BTreeSet::new(), "its driver has ended");
                }
                may.extend(&must);
            }
            assert!(reachable.is_subset(&may), "{:x?}", reachable.difference(&may));
            let has_lost = resources.machine.reports.iter().any(|line| line.contains("have lost the memory"));
            assert!(has_lost || must.is_subset(&reachable), "{:x?}", must.difference(&reachable));
        }
    }

    /// Checks that each function raises the interrupts that are attached to it, unless it has been
    /// disabled, and no others.
    fn check_interrupts(&mut self) {
        let functions = &self.system.resources.functions;
        let own: Vec<(u32, Vec<u32>)> =
            functions.iter().map(|function| (function.place, function.attached_interrupts())).collect();
        for (place, own) in own {
            for number in simulation::MESSAGES {
                let is_on = self.machine().devices[&place].words[&4] & 4 != 0;
                assert_eq!(self.machine().raises(place, number), is_on && own.contains(&number), "{number}");
            }
        }
    }

    /// Checks that the memory of each pool belongs to its owner, and that its driver has not ended.
    fn check_pools(&self) {
        for (owner, driver, block) in self.system.resources.pools.memory() {
            assert!(self.system.resources.frames.is_of(owner, block.start), "{block:x?} is not the owner's");
            assert!(self.system.servers[usize::from(driver)].state == State::Up, "a driver has ended");
        }
    }

    /// Checks that no two servers have the same memory, except for shares.
    fn check_separation(&self) {
        let resources = &self.system.resources;
        for index in self.running() {
            let server = &self.system.servers[index];
            for &(page, _) in self.space(index).pages.values().filter(|(page, _)| MEMORY.contains(page)) {
                let is_own = resources.frames.is_of(server.index, page);
                let is_shared = resources.shares.is_between(server.index, page);
                let is_device = server.dma.contains(page);
                assert!(is_own || is_shared || is_device, "page {page:#x} is not the server's");
            }
        }
    }
}

/// The pages of a range.
fn pages(range: core::ops::Range<u64>) -> impl Iterator<Item = u64> {
    range.step_by(PAGE as usize)
}

/// Encodes the arguments of a request that ends with a text.
fn words_of(word: u64, text: &str) -> Vec<u64> {
    let chunks = text.as_bytes().chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    [word, text.len() as u64].into_iter().chain(chunks).collect()
}

/// The word of an answer that has one word.
fn word(answer: Option<Answer>) -> u64 {
    match answer {
        Some(Answer::One(word)) => word,
        other => panic!("no word: {other:?}"),
    }
}

fn refused(status: Status) -> Option<Answer> {
    Some(Answer::Refused(status))
}

/// The address of page `page` of the memory at [`ROOM`].
fn room(page: u64) -> u64 {
    ROOM + page * PAGE
}

const ALLOCATE: u64 = request::ROOT_MEMORY_ALLOCATE;

/// The configuration of two servers, of which the first has threads and spaces.
const TWO: &str =
    "server a\nprogram p\nmemory 128K\nthreads 4\nspaces 3\nrestart yes\nserver b\nprogram p\nmemory 128K\n";

/// How many pages a server has at its start: two of its program, the start page, its stack.
const AT_START: u64 = 2 + 1 + 16;

/// The configuration of one server with these settings, which may allocate `pages` pages after its
/// start.
fn one(pages: u64, settings: &str) -> String {
    format!("server a\nprogram p\nmemory {}K\n{settings}", (AT_START + pages) * 4)
}

/// The configuration of [`one`] and a second server with as much memory.
fn two(pages: u64, settings: &str) -> String {
    format!("{}{}", one(pages, settings), one(pages, "").replace("server a", "server b"))
}
