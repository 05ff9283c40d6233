//! The protocol of memory objects against a model: clients read and write the memory of a pager,
//! copy it, inherit it and end, while the pager answers late, in parts and in any order, takes
//! pages back, locks them, fails, falls silent, and dies. Whatever it does, no client sees other
//! bytes than the model's, and an access fails only if the pager was to blame.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use mach::ipc::typed::MsgOptions;
use mach::ipc::{Disposition, Limits, Name};
use mach::machine::{Machine, PAGE_SIZE};
use mach::vm::{Inheritance, Placement, VmMap};
use mach::{KernError, KernResult};
use message::Memory;
use proptest::prelude::*;

use crate::call;
use crate::pair::{self, poll};
use crate::support::{BUFFER, Program, System};
use crate::swap::Swap;

type Simulated = mach::machine::simulated::Simulated;

/// How many bytes encode a step.
const STEP_BYTES: usize = 6;
const PAGES: usize = 12;
/// The bytes of a page that the model has, by their places.
const PLACES: [u64; 3] = [0, 1777, 4095];
const CLIENTS: usize = 4;
/// How many accesses wait at a time at most.
const ACCESSES: usize = 6;
const PATIENCE: u64 = 1_000_000;
/// Where the pager makes the pages that it supplies.
const SUPPLIED: u64 = BUFFER + 4 * PAGE_SIZE;
const SIZE: u64 = PAGES as u64 * PAGE_SIZE;

type Contents = [[u8; PLACES.len()]; PAGES];

/// The memory of the object in a client.
struct Mapping {
    address: u64,
    /// What a copy shows; `None`: the object itself.
    copy: Option<Contents>,
    inheritance: Inheritance,
}

struct Client {
    number: u64,
    program: Program,
    mappings: Vec<Mapping>,
}

/// An access that may wait.
struct Access {
    client: u64,
    address: u64,
    page: usize,
    place: usize,
    /// The byte that is written, if it is no read.
    written: Option<u8>,
    done: Pin<Box<dyn Future<Output = KernResult<u8>>>>,
    /// How often the pager had been to blame when the access began.
    blamed: u64,
}

/// What the pager has: what it has been given last of each page, and which pages it is asked for.
struct PagerState {
    program: Program,
    port: Name,
    object: Option<u64>,
    control: u64,
    store: Contents,
    asked: Vec<usize>,
    unlock: Vec<usize>,
    is_alive: bool,
}

struct World {
    pager: PagerState,
    clients: Vec<Client>,
    accesses: Vec<Access>,
    /// Another task of the pager, which waits for the end of lock requests.
    locker: Rc<Program>,
    lock: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// What the object's memory is.
    truth: Contents,
    next_byte: u8,
    next_client: u64,
    blamed: u64,
    /// The time when the accesses went on last.
    now: u64,
    short_of_memory: bool,
    daemon: Pin<Box<dyn Future<Output = ()>>>,
    /// It checks that nothing is left, so it goes last.
    system: System,
}

fn read(map: Arc<VmMap<Simulated>>, address: u64) -> Pin<Box<dyn Future<Output = KernResult<u8>>>> {
    Box::pin(async move {
        let mut byte = [0];
        map.copyin(address, &mut byte).await.map_err(|fault| fault.error)?;
        Ok(byte[0])
    })
}

fn write(
    map: Arc<VmMap<Simulated>>,
    address: u64,
    byte: u8,
) -> Pin<Box<dyn Future<Output = KernResult<u8>>>> {
    Box::pin(async move {
        map.copyout(address, &[byte]).await.map_err(|fault| fault.error)?;
        Ok(byte)
    })
}

async fn send_lock_request(
    locker: &Program,
    control: u64,
    (offset, size): (u64, u64),
    (returned, flush, lock): (u32, u32, u32),
) {
    // The object may have ended.
    let _ = call!(*locker, mach, control, memory_object_lock_request(offset, size, returned, flush, lock, 0));
}

impl World {
    fn new(frames: u32, swap: bool, queue: usize) -> Self {
        let system = System::with_frames(frames, Limits::default());
        let vm = system.kernel().host().vm().clone();
        if swap {
            vm.set_default_pager(Swap::new(10, 1 << 20));
        }
        system.kernel().set_pager_patience(PATIENCE);
        system.kernel().set_pager_queue(queue);
        let program = system.run(system.program());
        let port = program.port();
        let locker = Rc::new(system.run(system.program()));
        let pager = PagerState {
            program,
            port,
            object: None,
            control: 0,
            store: [[0; PLACES.len()]; PAGES],
            asked: Vec::new(),
            unlock: Vec::new(),
            is_alive: true,
        };
        let mut world = Self {
            system,
            pager,
            clients: Vec::new(),
            accesses: Vec::new(),
            locker,
            lock: None,
            truth: [[0; PLACES.len()]; PAGES],
            next_byte: 1,
            next_client: 0,
            blamed: 0,
            now: 0,
            short_of_memory: frames < 200 && !swap,
            daemon: Box::pin(vm.page_out_daemon()),
        };
        world.new_client();
        world
    }

    fn new_client(&mut self) {
        let program = self.system.run(self.system.program());
        self.add_client(program, Vec::new());
    }

    fn add_client(&mut self, program: Program, mappings: Vec<Mapping>) {
        self.clients.push(Client { number: self.next_client, program, mappings });
        self.next_client += 1;
    }

    fn byte(&mut self) -> u8 {
        self.next_byte = self.next_byte.checked_add(1).unwrap_or(1);
        self.next_byte
    }

    /// Maps the object, or a copy of it, in a client.
    fn map(&mut self, client: usize, copy: bool, inheritance: Inheritance) {
        let right = self.pager.program.space().extract_right(self.pager.port, Disposition::MakeSend);
        let Ok(right) = right else { return };
        let client = &mut self.clients[client];
        let object = client.program.name(right);
        let (own, map) = (client.program.own(), &client.program);
        let (copied, inherited) = (u32::from(copy), inheritance as u32);
        let mapped = self
            .system
            .run(async { call!(*map, mach, own, vm_map(0, SIZE, 0, 1, object, 0, copied, 7, 7, inherited)) });
        match mapped {
            Ok(address) => {
                let copy = copy.then_some(self.truth);
                client.mappings.push(Mapping { address, copy, inheritance });
            }
            Err(_) => assert!(!self.pager.is_alive || self.short_of_memory, "{mapped:?}"),
        }
    }

    /// A client gets a child, which has the memory that it inherits.
    fn fork(&mut self, client: usize) {
        let parent = &self.clients[client];
        if self.clients.len() == CLIENTS {
            return;
        }
        let child = self.system.run(self.system.kernel().create_task(&parent.program.task, true));
        let Ok(child) = child else { return assert!(self.short_of_memory) };
        let inherited = parent.mappings.iter().filter_map(|mapping| {
            let copy = match mapping.inheritance {
                Inheritance::None => return None,
                Inheritance::Share if mapping.copy.is_none() => None,
                _ => Some(mapping.copy.unwrap_or(self.truth)),
            };
            // What both write to the memory of a copy that they share is not in the model.
            let shares = mapping.copy.is_some() && mapping.inheritance == Inheritance::Share;
            (!shares).then_some(Mapping { address: mapping.address, copy, inheritance: mapping.inheritance })
        });
        let mappings = inherited.collect();
        // The child inherits the buffer for messages.
        let map = child.map().clone();
        let freed = self.system.run(map.deallocate(BUFFER, 16 * PAGE_SIZE));
        assert!(freed.is_ok());
        let program = self.system.run(Program::of(child));
        self.add_client(program, mappings);
    }

    fn access(&mut self, client: usize, mapping: usize, page: usize, place: usize, writes: bool) {
        if self.clients[client].mappings.is_empty() || self.accesses.len() == ACCESSES {
            return;
        }
        let byte = self.byte();
        let client = &self.clients[client];
        let mapping = &client.mappings[mapping % client.mappings.len()];
        let address = mapping.address + page as u64 * PAGE_SIZE + PLACES[place];
        let map = client.program.task.map().clone();
        let done = if writes { write(map, address, byte) } else { read(map, address) };
        self.accesses.push(Access {
            client: client.number,
            address: mapping.address,
            page,
            place,
            written: writes.then_some(byte),
            done,
            blamed: self.blamed,
        });
    }

    /// Lets all accesses go on, and compares the results of those that end.
    fn go_on(&mut self) {
        let now = self.system.machine.now();
        if std::mem::replace(&mut self.now, now) != now {
            // The pager has had its time.
            self.blamed += 1;
        }
        assert!(poll(&mut self.daemon).is_none());
        if self.lock.as_mut().is_some_and(|lock| poll(lock).is_some()) {
            self.lock = None;
        }
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.retain_mut(|access| {
            let Some(result) = poll(&mut access.done) else { return true };
            let mappings = self.clients.iter_mut().find(|client| client.number == access.client);
            let mapping = mappings.and_then(|client| {
                client.mappings.iter_mut().find(|mapping| mapping.address == access.address)
            });
            // The mapping has ended.
            let Some(mapping) = mapping else { return false };
            let model = &mut mapping.copy.as_mut().unwrap_or(&mut self.truth)[access.page][access.place];
            match (result, access.written) {
                (Ok(_), Some(byte)) => *model = byte,
                (Ok(byte), None) => assert_eq!(byte, *model, "page {} place {}", access.page, access.place),
                (Err(KernError::ResourceShortage), _) => assert!(self.short_of_memory),
                (Err(error), _) => {
                    assert!(self.blamed > access.blamed || !self.pager.is_alive, "{error:?}");
                    assert!(matches!(error, KernError::MemoryError | KernError::MemoryFailure), "{error:?}");
                }
            }
            false
        });
        self.accesses = accesses;
    }

    /// Runs what may have to wait for the accesses.
    fn drive<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(future);
        for _ in 0..1000 {
            if let Some(result) = poll(&mut future) {
                return result;
            }
            self.go_on();
            self.system.machine.advance_to_next_timer();
        }
        panic!("deadlock");
    }

    /// The pager receives a message, if there is one.
    fn receive(&mut self) -> bool {
        let pager = &mut self.pager;
        let mut bytes = [0; 256];
        let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
        let received = self.system.run(pager.program.message(options, &mut bytes, 0, pager.port));
        if received.is_err() {
            return false;
        }
        let words: Vec<u64> =
            bytes[32..].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let pages = |offset: u64, size: u64| {
            let first = (offset / PAGE_SIZE) as usize;
            first..first + (size / PAGE_SIZE) as usize
        };
        match u32::from_le_bytes(bytes[28..32].try_into().unwrap()) {
            pair::INIT => {
                pager.control = words[1];
                pager.object = Some(words[1]);
                pager.asked.clear();
            }
            pair::TERMINATE => {
                for name in [words[1], words[3]] {
                    pager.program.space().destroy(Name(name as u32)).unwrap();
                }
                if pager.control == words[1] {
                    pager.object = None;
                }
            }
            pair::DATA_REQUEST => pager.asked.extend(pages(words[3], words[5])),
            pair::DATA_UNLOCK => pager.unlock.extend(pages(words[3], words[5])),
            pair::DATA_RETURN => {
                let (size, map) = (words[4] >> 32, pager.program.task.map().clone());
                for (number, page) in pages(words[3], size).enumerate() {
                    for (place, at) in PLACES.into_iter().enumerate() {
                        let address = words[5] + number as u64 * PAGE_SIZE + at;
                        let byte = self.drive(read(map.clone(), address)).unwrap();
                        self.pager.store[page][place] = byte;
                    }
                }
                self.system.run(map.deallocate(words[5], size)).unwrap();
            }
            // Replies to the pager's own requests.
            pair::LOCK_COMPLETED | pair::SUPPLY_COMPLETED | pair::CHANGE_COMPLETED => {}
            other => panic!("message {other}"),
        }
        true
    }

    fn control(&self) -> Option<u64> {
        self.pager.object.filter(|_| self.pager.is_alive)
    }

    /// The pager supplies pages as it has them.
    fn supply(&mut self, first: usize, count: usize, precious: bool, lock: u32, provided: bool) {
        let Some(control) = self.control() else { return };
        let (pager, system) = (&mut self.pager, &self.system);
        let count = count.min(PAGES - first);
        let mut bytes = vec![0; count * PAGE_SIZE as usize];
        for (number, page) in pager.store[first..first + count].iter().enumerate() {
            for (place, at) in PLACES.into_iter().enumerate() {
                bytes[number * PAGE_SIZE as usize + at as usize] = page[place];
            }
        }
        let length = bytes.len() as u32;
        system.run(async {
            let (at, offset) = (SUPPLIED, first as u64 * PAGE_SIZE);
            if pager.program.task.map().copyout(at, &bytes).await.is_err() {
                return;
            }
            let data = Memory { address: at, count: length, deallocate: false };
            let program = &pager.program;
            let _ = match provided {
                true => call!(*program, mach, control, memory_object_data_provided(offset, data, 0)),
                false => {
                    let precious = u32::from(precious);
                    call!(*program, mach, control, memory_object_data_supply(offset, data, lock, precious, 0))
                }
            };
        });
        pager.asked.retain(|page| !(first..first + count).contains(page));
    }

    /// The pager answers for a page that it is asked for.
    fn answer(&mut self, which: usize, kind: u8, count: usize) {
        let Some(control) = self.control() else { return };
        if self.pager.asked.is_empty() {
            return;
        }
        let page = self.pager.asked[which % self.pager.asked.len()];
        let all_are_asked = (page..page + count).all(|page| self.pager.asked.contains(&page));
        // The pages after it are asked for as well, or not supplied.
        let count = if all_are_asked { count } else { 1 };
        let (offset, size) = (page as u64 * PAGE_SIZE, PAGE_SIZE);
        let is_zero = self.pager.store[page].iter().all(|byte| *byte == 0);
        match kind % 8 {
            0 => {
                self.blamed += 1;
                let program = &self.pager.program;
                let failed = self
                    .system
                    .run(async { call!(*program, mach, control, memory_object_data_error(offset, size, 5)) });
                failed.unwrap();
                self.pager.asked.retain(|asked| *asked != page);
            }
            1 if is_zero => {
                let program = &self.pager.program;
                let answered = self.system.run(async {
                    call!(*program, mach, control, memory_object_data_unavailable(offset, size))
                });
                answered.unwrap();
                self.pager.asked.retain(|asked| *asked != page);
            }
            2 => self.supply(page, count, true, 0, false),
            3 => self.supply(page, count, false, pair::WRITE as u32, false),
            4 => self.supply(page, count, false, 0, true),
            _ => self.supply(page, count, false, 0, false),
        }
    }

    /// The pager has received everything, and supplies what it was not asked for.
    fn supply_unasked(&mut self, first: usize, count: usize, precious: bool) {
        if !self.pager.is_alive {
            return;
        }
        while self.receive() {}
        self.supply(first, count, precious, 0, false);
    }

    /// The second thread of the pager begins a lock request, if it does not wait for one.
    fn lock_request(&mut self, offset: u64, size: u64, (returned, flush, lock): (u32, u32, u32)) {
        let Some(control) = self.control() else { return };
        if self.lock.is_some() {
            return;
        }
        let name = Name(control as u32);
        let Ok(right) = self.pager.program.space().extract_right(name, Disposition::CopySend) else { return };
        let locker = self.locker.clone();
        let control = locker.name(right);
        self.lock = Some(Box::pin(async move {
            let request = send_lock_request(&locker, control, (offset, size), (returned, flush, lock));
            request.await;
            let _ = locker.space().deallocate(Name(control as u32));
        }));
    }

    fn lock(&mut self, first: usize, count: usize, kind: u8) {
        let (offset, size) = (first as u64 * PAGE_SIZE, count.min(PAGES - first) as u64 * PAGE_SIZE);
        let returned = 1 + u32::from(kind & 1);
        let flush = u32::from(kind >> 1 & 1);
        let lock = [0, pair::WRITE as u32, pair::NO_CHANGE, pair::NO_CHANGE][usize::from(kind >> 2 & 3)];
        self.lock_request(offset, size, (returned, flush, lock));
    }

    fn unlock(&mut self) {
        if let Some(page) = self.pager.unlock.pop() {
            self.lock_request(page as u64 * PAGE_SIZE, PAGE_SIZE, (0, 0, 0));
        }
    }

    fn attributes(&mut self, may_cache: u32, cluster: u64) {
        let Some(control) = self.control() else { return };
        let program = &self.pager.program;
        self.system.run(async {
            call!(*program, mach, control, memory_object_set_cluster_size(cluster * PAGE_SIZE)).unwrap();
            call!(*program, mach, control, memory_object_ready(may_cache, 2)).unwrap();
        });
    }

    /// Time passes: requests that are too old fail.
    fn wait(&mut self) {
        for _ in 0..4 {
            self.system.machine.advance(PATIENCE / 3);
            self.go_on();
        }
    }

    /// A client uses as many pages as its room allows.
    fn use_memory(&mut self, client: usize, pages: u64) {
        let map = self.clients[client].program.task.map().clone();
        self.system.run(async {
            let Ok(address) = map.allocate(Placement::Above(1 << 30), pages * PAGE_SIZE).await else {
                return;
            };
            for page in 0..pages {
                if map.copyout(address + page * PAGE_SIZE, &[page as u8 + 1]).await.is_err() {
                    break;
                }
            }
            map.deallocate(address, pages * PAGE_SIZE).await.unwrap();
        });
    }

    fn end_client(&mut self, client: usize) {
        let client = self.clients.swap_remove(client);
        self.system.run(client.program.task.terminate());
        self.accesses.retain(|access| access.client != client.number);
        if self.clients.is_empty() {
            self.new_client();
        }
    }

    fn unmap(&mut self, client: usize, mapping: usize) {
        let client = &mut self.clients[client];
        if client.mappings.is_empty() {
            return;
        }
        let mapping = client.mappings.swap_remove(mapping % client.mappings.len());
        self.system.run(client.program.task.map().deallocate(mapping.address, SIZE)).unwrap();
    }

    fn step(&mut self, step: &[u8; STEP_BYTES]) {
        let [kind, which, page, count, more, _] = *step;
        let client = usize::from(which) % self.clients.len();
        let (page, count) = (usize::from(page) % PAGES, usize::from(count) % 5 + 1);
        let inheritance = [Inheritance::Share, Inheritance::Copy, Inheritance::None][usize::from(more) % 3];
        match kind % 64 {
            0..=14 => self.access(client, count, page, usize::from(more) % PLACES.len(), false),
            15..=26 => self.access(client, count, page, usize::from(more) % PLACES.len(), true),
            27..=33 => {
                self.receive();
            }
            34..=43 => {
                self.receive();
                self.answer(usize::from(which), more, count);
            }
            44..=45 => self.supply_unasked(page, count, more & 1 != 0),
            46..=48 => self.lock(page, count, more),
            49 => self.unlock(),
            50..=52 => self.attributes(u32::from(more & 1), u64::from(count as u32)),
            53..=54 => self.map(client, false, inheritance),
            55 => self.map(client, true, inheritance),
            56 => self.fork(client),
            57 | 63 => self.use_memory(client, u64::from(more)),
            58 => self.end_client(client),
            59 => self.unmap(client, count),
            60 if more < 90 => self.wait(),
            61 if more < 4 && self.pager.is_alive => {
                self.pager.is_alive = false;
                self.pager.program.space().destroy(self.pager.port).unwrap();
            }
            62 if self.clients.len() < CLIENTS => self.new_client(),
            _ => {}
        }
        self.go_on();
    }
}

/// Runs a sequence of steps and checks all results.
///
/// # Panics
/// If the library differs from the model, or leaks.
fn run(steps: &[[u8; STEP_BYTES]], frames: u32, swap: bool, queue: usize) {
    let mut world = World::new(frames, swap, queue);
    world.map(0, false, Inheritance::Share);
    world.receive();
    world.attributes(0, 3);
    for step in steps {
        world.step(step);
    }
    world.accesses.clear();
    world.lock = None;
    // Dropping the daemon leaves what it has begun to others.
    world.daemon = Box::pin(std::future::pending());
}

/// The number of cases of one test; `PROPTEST_CASES` sets more.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(200),
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn steps() -> impl Strategy<Value = Vec<[u8; STEP_BYTES]>> {
    proptest::collection::vec(any::<[u8; STEP_BYTES]>(), 1..200)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_memory_of_a_pager_is_as_the_model_says(steps in steps(), queue in 2usize..8) {
        run(&steps, 1024, false, queue);
    }

    #[test]
    fn the_memory_of_a_pager_is_as_the_model_says_under_pressure(steps in steps(), queue in 2usize..8) {
        run(&steps, 80, true, queue);
    }

    #[test]
    fn the_memory_of_a_pager_is_as_the_model_says_without_swap_space(
        steps in steps(),
        queue in 2usize..8,
    ) {
        run(&steps, 80, false, queue);
    }
}
