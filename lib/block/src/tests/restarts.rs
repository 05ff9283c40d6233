//! A client, drivers that end at any moment, and a device with a cache whose power fails at last:
//! compared with a model of its sectors.

use super::*;
use crate::area::Area;
use crate::client::{Client, Ticket};
use crate::driver::{Driver, Job};
use crate::pools::Pools;
use crate::{Error, SLOTS};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// How many pages the device and the pool have.
const PLACES: usize = 6;
const POOL: u64 = 0x10_0000;

#[derive(Clone, Debug)]
enum Step {
    /// The client writes a page with new content, reads one, or flushes.
    Write {
        place: usize,
        through: bool,
    },
    Read {
        place: usize,
    },
    Flush,
    /// The driver takes requests.
    Take,
    /// The device carries out one of the driver's requests, which the driver then answers.
    Perform(usize),
    /// The same, but the driver ends before it can answer.
    PerformAndEnd(usize),
    /// The driver ends; another one is started.
    End,
    /// The client takes an answer.
    Collect,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..PLACES, any::<bool>()).prop_map(|(place, through)| Step::Write { place, through }),
        2 => (0..PLACES).prop_map(|place| Step::Read { place }),
        3 => Just(Step::Flush),
        4 => Just(Step::Take),
        8 => any::<usize>().prop_map(Step::Perform),
        1 => any::<usize>().prop_map(Step::PerformAndEnd),
        1 => Just(Step::End),
        6 => Just(Step::Collect),
    ]
}

/// A device with a volatile cache: what is in each place for its reader, and what is in stable
/// storage. In place of data there are numbers, one for each page.
#[derive(Default)]
struct Device {
    cache: BTreeMap<usize, u64>,
    stable: BTreeMap<usize, u64>,
}

impl Device {
    fn read(&self, place: usize) -> u64 {
        self.cache.get(&place).or(self.stable.get(&place)).copied().unwrap_or(0)
    }

    fn flush(&mut self) {
        self.stable.append(&mut self.cache);
    }
}

/// What the client knows of a request.
#[derive(Clone, Debug)]
enum Asked {
    Write { place: usize, value: u64, through: bool },
    Read { place: usize, value: u64 },
    Flush,
}

struct World {
    area: &'static Area,
    client: Client<'static>,
    driver: Driver<'static>,
    jobs: Vec<Job>,
    pools: Pools,
    device: Device,
    /// The content of the pool's pages.
    memory: [u64; PLACES],
    asked: BTreeMap<Ticket, Asked>,
    /// The requests issued so far that the client may still have to be told of.
    open: BTreeSet<Ticket>,
    /// For each place the value that was written last, whether answered or not.
    written: [u64; PLACES],
    /// For each place the last value that must survive a power failure.
    safe: [u64; PLACES],
    /// For each place the last value whose write was answered.
    answered: [u64; PLACES],
    next: u64,
}

impl World {
    fn new() -> World {
        let area: &'static Area = Box::leak(Box::<Area>::default());
        let mut pools = Pools::default();
        let size = PLACES as u64 * PAGE;
        assert_eq!(pools.add(size, |offset| Ok::<_, ()>((POOL + offset, size - offset))), Ok(Some(0)));
        World {
            area,
            client: Client::new(area),
            driver: Driver::new(area),
            jobs: Vec::new(),
            pools,
            device: Device::default(),
            memory: [0; PLACES],
            asked: BTreeMap::new(),
            open: BTreeSet::new(),
            written: [0; PLACES],
            safe: [0; PLACES],
            answered: [0; PLACES],
            next: 1,
        }
    }

    /// Whether a request about this place has no answer: its page is busy, as that of a page cache.
    fn is_busy(&self, place: usize) -> bool {
        self.open.iter().any(|ticket| match self.asked[ticket] {
            Asked::Write { place: other, .. } | Asked::Read { place: other, .. } => other == place,
            Asked::Flush => false,
        })
    }

    fn issue(&mut self, operation: Operation, place: usize, asked: Asked) {
        let request = match operation {
            Operation::Flush => Request::flush(),
            _ => request(operation, place as u64 * SECTORS, SECTORS as u32, &[place as u32]),
        };
        let ticket = self.client.issue(request).unwrap();
        self.asked.insert(ticket, asked);
        self.open.insert(ticket);
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Write { place, .. } | Step::Read { place } if self.is_busy(place) => {}
            Step::Write { place, through } => {
                let value = self.next;
                self.next += 1;
                (self.memory[place], self.written[place]) = (value, value);
                self.issue(Operation::Write { through }, place, Asked::Write { place, value, through });
            }
            Step::Read { place } => {
                self.memory[place] = u64::MAX;
                let value = self.written[place];
                self.issue(Operation::Read, place, Asked::Read { place, value });
            }
            Step::Flush => self.issue(Operation::Flush, 0, Asked::Flush),
            Step::Take => {
                let device = description(PLACES as u64 * SECTORS);
                let taken = core::iter::from_fn(|| self.driver.take(&device, &self.pools, PAGE));
                self.jobs.extend(taken);
            }
            Step::Perform(at) => {
                if let Some(job) = self.perform(at) {
                    self.driver.answer(job.slot, Ok(()));
                }
            }
            Step::PerformAndEnd(at) => {
                self.perform(at);
                self.end();
            }
            Step::End => self.end(),
            Step::Collect => {
                self.collect();
            }
        }
    }

    /// The device carries out one of the driver's requests.
    fn perform(&mut self, at: usize) -> Option<Job> {
        if self.jobs.is_empty() {
            return None;
        }
        let job = self.jobs.remove(at % self.jobs.len());
        let place = (job.sector / SECTORS) as usize;
        let page = job.pieces.first().map(|piece| ((piece.address - POOL) / PAGE) as usize);
        match (job.operation, page) {
            (Operation::Read, Some(page)) => self.memory[page] = self.device.read(place),
            (Operation::Write { through }, Some(page)) => {
                self.device.cache.insert(place, self.memory[page]);
                if through {
                    let value = self.memory[page];
                    self.device.stable.insert(place, value);
                    self.device.cache.remove(&place);
                }
            }
            _ => self.device.flush(),
        }
        Some(job)
    }

    /// The driver ends, with the requests that it has; another one is started in its place.
    fn end(&mut self) {
        self.jobs.clear();
        self.client.detach();
        self.area.clear();
        self.client.restart(self.area);
        self.driver = Driver::new(self.area);
    }

    /// The client takes an answer, if there is one.
    fn collect(&mut self) -> bool {
        let Some((ticket, result)) = self.client.take() else { return false };
        assert_eq!(result, Ok(()));
        assert!(self.open.remove(&ticket), "{ticket:?} has ended before");
        match self.asked[&ticket] {
            Asked::Write { place, value, through } => {
                self.answered[place] = value;
                if through {
                    self.safe[place] = value;
                }
            }
            Asked::Read { place, value } => assert_eq!(self.memory[place], value, "what was read"),
            Asked::Flush => {
                // All writes that were issued before the flush have been answered.
                for (_, asked) in self.asked.range(..ticket) {
                    if let Asked::Write { place, value, .. } = *asked {
                        assert!(self.answered[place] >= value, "a flush that was answered before a write");
                        self.safe[place] = self.safe[place].max(value);
                    }
                }
            }
        }
        true
    }

    /// Lets everything come to its end.
    fn finish(&mut self) {
        while self.client.outstanding() > 0 {
            self.act(&Step::Take);
            self.act(&Step::Perform(0));
            self.collect();
        }
        assert!(self.open.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Drivers end at any moments. Each request is answered once, reads give what was written last,
    /// and a power failure loses nothing whose write was answered before a flush that was answered,
    /// or that was written through.
    #[test]
    fn nothing_that_was_flushed_is_lost(
        steps in proptest::collection::vec(step(), 1..200),
        lost in proptest::collection::vec(any::<bool>(), PLACES),
        to_the_end in any::<bool>(),
    ) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.act(step));
        if to_the_end {
            world.finish();
            for place in 0..PLACES {
                prop_assert_eq!(world.device.read(place), world.written[place]);
            }
        }
        while world.collect() {}
        // The power fails: any part of the cache is lost.
        for (place, value) in core::mem::take(&mut world.device.cache) {
            if !lost[place] {
                world.device.stable.insert(place, value);
            }
        }
        for place in 0..PLACES {
            prop_assert!(world.device.read(place) >= world.safe[place], "place {}", place);
        }
    }
}

#[test]
fn more_requests_than_slots_wait_for_their_turn() {
    let mut world = World::new();
    (0..3 * SLOTS).for_each(|_| world.issue(Operation::Flush, 0, Asked::Flush));
    world.act(&Step::Take);
    assert_eq!(world.jobs.len(), SLOTS);
    world.act(&Step::Perform(5));
    assert!(world.collect());
    world.act(&Step::Take);
    assert_eq!(world.jobs.len(), SLOTS);
    world.finish();
}

#[test]
fn a_driver_that_is_gone_for_good_fails_all_requests_once() {
    let mut world = World::new();
    world.act(&Step::Write { place: 1, through: false });
    world.act(&Step::Flush);
    world.act(&Step::Take);
    world.client.fail(Error::Gone);
    assert!(world.client.sleep(), "there are answers");
    let results: Vec<_> = core::iter::from_fn(|| world.client.take()).map(|(_, result)| result).collect();
    assert_eq!(results, [Err(Error::Gone); 2]);
    assert!(!world.client.sleep() && world.client.failure() == Some(Error::Gone));
}

#[test]
fn each_side_is_notified_only_when_it_sleeps() {
    let mut world = World::new();
    world.act(&Step::Flush);
    assert!(!world.client.must_notify(), "the driver polls");
    assert!(world.driver.sleep(), "there is a request already");
    world.act(&Step::Take);
    assert!(!world.driver.sleep());
    world.act(&Step::Flush);
    assert!(world.client.must_notify() && !world.client.must_notify());
    assert!(!world.client.sleep());
    world.act(&Step::Perform(0));
    assert!(world.driver.must_notify() && !world.driver.must_notify());
}
