//! Swap areas on a disk that is slow and refuses what a test chooses, and memory that is larger
//! than the machine's.

use super::header::parse;
use super::slots::Slots;
use super::*;
use crate::disk::{About, Cache, Family, SECTOR, Store};
use crate::sync::SpinLock as Lock;
use crate::testing::World;
use crate::vfs::DeviceNumber;
use mach::Machine;
use mach::machine::simulated::Simulated;
use mach::vm::{Placement, Vm, VmMap};
use mach::{KernError, KernResult};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::String;
use std::vec;
use std::vec::Vec;

const PAGE_BYTES: usize = PAGE as usize;

/// A first page as mkswap(8) writes it.
fn first_page(last: u32, bad: &[u32]) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[PAGE_BYTES - 10..].copy_from_slice(b"SWAPSPACE2");
    for (at, word) in [(1024, 1), (1028, last), (1032, bad.len() as u32)] {
        page[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    for (index, bad) in bad.iter().enumerate() {
        page[1536 + 4 * index..1540 + 4 * index].copy_from_slice(&bad.to_le_bytes());
    }
    page
}

#[test]
fn headers_are_checked() {
    let with = |at: usize, word: u32| {
        let mut page = first_page(9, &[]);
        page[at..at + 4].copy_from_slice(&word.to_le_bytes());
        page
    };
    let refused = |page: &[u8; PAGE_BYTES], pages: u64, is_file| parse(page, pages * PAGE, is_file).err();
    assert_eq!(parse(&first_page(9, &[]), 10 * PAGE, true).unwrap().pages, 10);
    assert_eq!(parse(&first_page(9, &[4, 2, 4]), 10 * PAGE, false).unwrap().bad, [2, 4]);
    assert_eq!(refused(&with(PAGE_BYTES - 10, 0), 10, false), Some(Refused::NoSignature));
    assert_eq!(refused(&with(1024, 2), 10, false), Some(Refused::Version(2)));
    assert_eq!(refused(&with(1028, 0), 10, false), Some(Refused::Empty));
    assert_eq!(refused(&first_page(9, &[]), 9, false), Some(Refused::TooShort));
    assert_eq!(refused(&with(1032, 638), 10, false), Some(Refused::BadPages));
    assert_eq!(refused(&first_page(9, &[0]), 10, false), Some(Refused::BadPages));
    assert_eq!(refused(&first_page(9, &[10]), 10, false), Some(Refused::BadPages));
    assert_eq!(refused(&first_page(9, &[3]), 10, true), Some(Refused::BadPages), "a file has none");
    assert_eq!(refused(&first_page(2, &[1, 2]), 10, false), Some(Refused::Empty), "no page is left");
    let huge = parse(&first_page(u32::MAX, &[u32::MAX]), u64::MAX, false).unwrap();
    assert_eq!((huge.pages, huge.oversized, huge.bad.len()), (1 << PAGE_BITS, Some(u32::MAX), 0));
}

#[test]
fn a_page_of_an_area_has_one_use() {
    let mut slots = Slots::new(200, &[3, 64, 199]).unwrap();
    assert_eq!(slots.free_count(), 196);
    let mut owner = [false; 200];
    for page in [0, 3, 64, 199] {
        owner[page] = true;
    }
    let mut random = Random(7);
    for _ in 0..20_000 {
        if random.below(2) == 0 {
            let most = 1 + random.below(16) as u32;
            let free = owner.iter().filter(|taken| !**taken).count();
            match slots.allocate(most) {
                None => assert_eq!(free, 0, "there is room"),
                Some((first, count)) => {
                    assert!((1..=most).contains(&count));
                    for page in first..first + count {
                        assert!(!core::mem::replace(&mut owner[page as usize], true), "{page} is used");
                    }
                }
            }
        } else {
            let page = random.below(200) as usize;
            if owner[page] && ![0, 3, 64, 199].contains(&page) {
                owner[page] = false;
                slots.release(page as u32);
            }
        }
        assert_eq!(slots.free_count() as usize, owner.iter().filter(|taken| !**taken).count());
    }
}

/// Numbers that a seed determines.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A disk in memory. It reads and writes the frames when a request ends, not when it begins.
struct Plate {
    machine: Simulated,
    bytes: Lock<Vec<u8>>,
    /// Whether reads and writes fail.
    refuses: Lock<[bool; 2]>,
    /// How many requests there were.
    requests: Lock<u64>,
}

impl Plate {
    async fn request(&self, what: usize) -> Result<()> {
        *self.requests.lock() += 1;
        self.machine.sleep_until(self.machine.now() + 50).await;
        if self.refuses.lock()[what] { Err(Error::EIO) } else { Ok(()) }
    }

    fn pieces(sector: u64, sectors: u64, frames: &[Frame]) -> impl Iterator<Item = (Range<usize>, Frame)> {
        let (start, end) = ((sector * SECTOR) as usize, ((sector + sectors) * SECTOR) as usize);
        let pieces = (start..end).step_by(PAGE_BYTES).map(move |at| at..(at + PAGE_BYTES).min(end));
        pieces.zip(frames.iter().copied())
    }
}

impl Store<Simulated> for Plate {
    fn read<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.request(0).await?;
            for (range, frame) in Plate::pieces(sector, sectors, frames) {
                self.machine.write_frame(frame, 0, &self.bytes.lock()[range]);
            }
            Ok(())
        })
    }

    fn write<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.request(1).await?;
            for (range, frame) in Plate::pieces(sector, sectors, frames) {
                self.machine.read_frame(frame, 0, &mut self.bytes.lock()[range]);
            }
            Ok(())
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(core::future::ready(Ok(())))
    }

    fn discard(&self, _: u64, _: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(core::future::ready(Err(Error::EOPNOTSUPP)))
    }
}

/// A machine with disks that are swap areas.
struct System {
    machine: Simulated,
    vm: Arc<Vm<Simulated>>,
    world: World,
    plates: Vec<Arc<Plate>>,
    log: std::sync::Mutex<Vec<String>>,
}

impl System {
    /// A machine with so many frames, and prepared disks of so many pages.
    fn new(frames: u32, disks: &[u32]) -> System {
        let machine = Simulated::new(frames);
        let vm = Vm::new(machine.clone()).unwrap();
        let world = World::new();
        vm.set_default_pager(Arc::new(SwapSpace(world.vfs.swap.clone())));
        let root = world.vfs.tree.root().vnode;
        let mut system = System { machine, vm, world, plates: Vec::new(), log: Default::default() };
        system.machine.block_on(system.world.vfs.disks.set_directory(root)).unwrap();
        disks.iter().for_each(|&pages| system.add_disk(pages));
        system
    }

    fn add_disk(&mut self, pages: u32) {
        let mut bytes = vec![0; pages as usize * PAGE_BYTES];
        bytes[..PAGE_BYTES].copy_from_slice(&first_page(pages - 1, &[]));
        let (machine, refuses, requests) = (self.machine.clone(), Lock::new([false; 2]), Lock::new(0));
        let plate = Arc::new(Plate { machine, bytes: Lock::new(bytes), refuses, requests });
        let about = About {
            family: Family::Virtio,
            size: u64::from(pages) * PAGE,
            logical: 512,
            physical: 512,
            read_only: false,
            has_cache: false,
            discard: 0,
            geometry: None,
            serial: Vec::new(),
        };
        let cache = Cache::new(&self.vm, plate.clone(), &about).unwrap();
        let minor = self.plates.len() as u32 * 16;
        let name = std::format!("vd{}", char::from(b'a' + self.plates.len() as u8));
        let disk = Disk::new(&name, DeviceNumber { major: 254, minor }, about, cache);
        self.machine.block_on(self.world.vfs.disks.add(disk)).unwrap();
        self.plates.push(plate);
    }

    /// Changes a byte of a disk, which the page cache then has not read.
    fn damage(&self, disk: usize, at: usize, byte: u8) {
        self.plates[disk].bytes.lock()[at] = byte;
        let disk = self.world.vfs.disks.all()[disk].clone();
        self.machine.block_on(disk.data.write_back(0..PAGE, true)).unwrap();
    }

    fn on(&self, path: &str, priority: Option<u16>) -> Result<()> {
        let flags = SwapFlags { priority, discard: false };
        let log = |line: core::fmt::Arguments<'_>| self.log.lock().unwrap().push(line.to_string());
        let caller = self.world.caller();
        self.machine.block_on(caller.swap_on(path.as_bytes(), flags, &log))
    }

    fn off(&self, path: &str) -> Result<()> {
        let caller = self.world.caller();
        self.machine.block_on(async {
            // The clock of the world does not move by itself.
            let mut off = core::pin::pin!(caller.swap_off(path.as_bytes()));
            core::future::poll_fn(|context| {
                let polled = off.as_mut().poll(context);
                if polled.is_pending() {
                    self.world.environment.advance(core::time::Duration::from_millis(20));
                }
                polled
            })
            .await
        })
    }

    fn map(&self) -> Arc<VmMap<Simulated>> {
        self.machine.block_on(VmMap::new(&self.vm, PAGE, 1 << 40)).unwrap()
    }

    fn swap(&self) -> &Swap {
        &self.world.vfs.swap
    }

    fn used(&self) -> u64 {
        let usage = self.swap().usage();
        usage.total - usage.free
    }

    fn logged(&self, text: &str) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.contains(text))
    }
}

#[test]
fn areas_are_refused_with_a_line_in_the_log() {
    let system = System::new(256, &[20, 20, 20, 20]);
    system.damage(1, PAGE_BYTES - 1, 0);
    system.damage(2, 1028, 20);
    assert_eq!(system.on("/vda", None), Ok(()));
    assert!(system.logged("Adding 76k swap on /vda.  Priority:-2 extents:1 across:80k SS"));
    assert_eq!(system.on("/vda", None), Err(Error::EBUSY));
    assert_eq!(system.on("/vdb", None), Err(Error::EINVAL));
    assert!(system.logged("Unable to find swap-space signature"));
    assert_eq!(system.on("/vdc", None), Err(Error::EINVAL));
    assert!(system.logged("Swap area shorter than signature indicates"));
    system.damage(3, 0, 0);
    *system.plates[3].refuses.lock() = [true, false];
    assert_eq!(system.on("/vdd", None), Err(Error::EIO));
    assert_eq!(system.on("/none", None), Err(Error::ENOENT));
    assert_eq!(system.on("/", None), Err(Error::EISDIR));
    assert_eq!(system.off("/vdb"), Err(Error::EINVAL));
    assert_eq!(system.off("/"), Err(Error::EISDIR));
    assert_eq!(system.off("/vda"), Ok(()));
    assert_eq!(system.swap().areas(), []);
    assert!(!system.swap().has_room());
}

#[test]
fn a_file_without_a_place_on_a_disk_is_no_area() {
    let system = System::new(256, &[]);
    system.world.put("/file", &first_page(3, &[]));
    assert_eq!(system.on("/file", None), Err(Error::EINVAL));
}

#[test]
fn priorities_say_which_area_is_used_first() {
    let system = System::new(64, &[33, 33, 17]);
    assert_eq!(system.on("/vda", None), Ok(()));
    assert_eq!(system.on("/vdb", Some(5)), Ok(()));
    assert_eq!(system.on("/vdc", Some(5)), Ok(()));
    let priorities =
        |system: &System| system.swap().areas().into_iter().map(|area| area.priority).collect::<Vec<_>>();
    assert_eq!(priorities(&system), [-2, 5, 5]);
    let map = system.map();
    let pages = 100;
    system.machine.block_on(async {
        map.allocate(Placement::Fixed(0x1000_0000), pages * PAGE).await.unwrap();
        for page in 0..pages {
            map.copyout(0x1000_0000 + page * PAGE, &page.to_le_bytes()).await.unwrap();
        }
    });
    let used: Vec<_> = system.swap().areas().into_iter().map(|area| area.used).collect();
    assert!(used[1] > 0 && used[2] > 0, "areas of one priority are used in turn: {used:?}");
    assert!(used[0] == 0 || used[1..] == [32, 16], "the last one is used last: {used:?}");
    // The next default priority is below the others, and they close up when one goes.
    assert_eq!(system.off("/vdb"), Ok(()));
    assert_eq!(system.on("/vdb", None), Ok(()));
    assert_eq!(priorities(&system), [-2, -3, 5]);
    assert_eq!(system.off("/vda"), Ok(()));
    assert_eq!(priorities(&system), [-2, 5]);
    system.machine.block_on(async {
        for page in 0..pages {
            let mut bytes = [0; 8];
            map.copyin(0x1000_0000 + page * PAGE, &mut bytes).await.unwrap();
            assert_eq!(u64::from_le_bytes(bytes), page);
        }
    });
}

#[test]
fn wired_pages_do_not_go_to_swap_space() {
    let system = System::new(64, &[200]);
    assert_eq!(system.on("/vda", None), Ok(()));
    let map = system.map();
    let (wired, pages) = (16, 100);
    system.machine.block_on(async {
        map.allocate(Placement::Fixed(BASE), pages * PAGE).await.unwrap();
        map.wire_rest(BASE, wired * PAGE).await.unwrap();
        for page in 0..pages {
            map.copyout(BASE + page * PAGE, &page.to_le_bytes()).await.unwrap();
        }
        assert_eq!(map.paged_out_pages(BASE, BASE + wired * PAGE).await, 0);
        assert!(map.paged_out_pages(BASE, BASE + pages * PAGE).await >= (pages - 64) as _);
        map.unwire_parts(BASE, pages * PAGE).await.unwrap();
        for page in wired..pages {
            map.copyout(BASE + page * PAGE, &page.to_le_bytes()).await.unwrap();
        }
        assert!(map.paged_out_pages(BASE, BASE + wired * PAGE).await > 0);
    });
}

/// A task of the model, with the first word of each page that it has.
struct Task {
    map: Arc<VmMap<Simulated>>,
    pages: BTreeMap<u64, u64>,
}

const BASE: u64 = 0x1000_0000;
const PAGES: u64 = 96;

/// Random stores, loads, forks, exits, and areas that come and go, on a machine with less memory
/// than its tasks use, compared with plain numbers.
fn run(seed: u64, steps: u32, areas: &[u32], refuses: bool) {
    let system = System::new(48, areas);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for (number, _) in areas.iter().enumerate() {
        let path = std::format!("/vd{}", char::from(b'a' + number as u8));
        assert_eq!(system.on(&path, None), Ok(()));
    }
    let mut tasks = vec![Task { map: system.map(), pages: BTreeMap::new() }];
    let mut next = 1;
    // Tasks may find no memory when swap space is full, or the disk refuses pages.
    let failed = |result: &KernResult<()>| match result {
        Err(KernError::ResourceShortage | KernError::MemoryError) => true,
        result => {
            assert_eq!(*result, Ok(()));
            false
        }
    };
    for step in 0..steps {
        let count = tasks.len() as u64;
        let task = random.below(count) as usize;
        let page = random.below(PAGES);
        let at = BASE + page * PAGE;
        match random.below(16) {
            0..=5 => {
                let task = &mut tasks[task];
                let length = PAGE * (1 + random.below(4)).min(PAGES - page);
                for at in (at..at + length).step_by(PAGE_BYTES) {
                    let number = (at - BASE) / PAGE;
                    let done = system.machine.block_on(async {
                        if !task.pages.contains_key(&number) {
                            task.map.allocate(Placement::Fixed(at), PAGE).await?;
                        }
                        Ok(())
                    });
                    if failed(&done) {
                        continue;
                    }
                    task.pages.entry(number).or_insert(0);
                    next += 1;
                    let done = system.machine.block_on(task.map.copyout(at, &u64::to_le_bytes(next)));
                    let done = done.map_err(|fault| fault.error);
                    if !failed(&done) {
                        task.pages.insert(number, next);
                    }
                }
            }
            6..=10 => {
                let Some((&number, &value)) = tasks[task].pages.range(page..).next() else { continue };
                let mut bytes = [0; 8];
                let map = &tasks[task].map;
                let done = system.machine.block_on(map.copyin(BASE + number * PAGE, &mut bytes));
                let done = done.map_err(|fault| fault.error);
                if !failed(&done) {
                    assert_eq!(u64::from_le_bytes(bytes), value, "seed {seed}, step {step}, page {number}");
                }
            }
            11 if tasks.len() < 4 => {
                if let Ok(map) = system.machine.block_on(tasks[task].map.fork()) {
                    let pages = tasks[task].pages.clone();
                    tasks.push(Task { map, pages });
                }
            }
            12 if tasks.len() > 1 => drop(tasks.swap_remove(task)),
            13 => {
                let end = (page + 1 + random.below(8)).min(PAGES);
                let freed = tasks[task].map.deallocate(at, (end - page) * PAGE);
                if !failed(&system.machine.block_on(freed)) {
                    (page..end).for_each(|page| {
                        tasks[task].pages.remove(&page);
                    });
                }
            }
            14 => {
                let index = random.below(areas.len() as u64);
                let path = std::format!("/vd{}", char::from(b'a' + index as u8));
                match system.off(&path) {
                    Ok(()) | Err(Error::ENOMEM) => {}
                    Err(Error::EIO) => assert!(refuses, "a page cannot be read"),
                    Err(Error::EINVAL) => match system.on(&path, None) {
                        Ok(()) | Err(Error::ENOMEM) => {}
                        Err(Error::EIO) => assert!(refuses, "the header cannot be read"),
                        Err(error) => panic!("{error:?}"),
                    },
                    Err(error) => panic!("{error:?}"),
                }
            }
            15 if refuses => {
                let plate = random.below(areas.len() as u64) as usize;
                let which = [random.below(3) == 0, random.below(3) == 0];
                *system.plates[plate].refuses.lock() = which;
            }
            _ => {}
        }
        let total: u64 = system.swap().areas().iter().map(|area| area.used).sum();
        assert_eq!(total, system.used());
        assert_eq!(system.swap().has_room(), system.swap().usage().free > 0, "seed {seed}, step {step}");
    }
    system.plates.iter().for_each(|plate| *plate.refuses.lock() = [false; 2]);
    for task in &tasks {
        for (&number, &value) in &task.pages {
            let mut bytes = [0; 8];
            let done = system.machine.block_on(task.map.copyin(BASE + number * PAGE, &mut bytes));
            match done.map_err(|fault| fault.error) {
                Err(KernError::ResourceShortage) => continue,
                done => assert_eq!(done, Ok(())),
            }
            assert_eq!(u64::from_le_bytes(bytes), value, "seed {seed}, at the end, page {number}");
        }
    }
    drop(tasks);
    system.machine.block_on(system.vm.finish_writes());
    assert_eq!((system.used(), system.swap().pagers.lock().count()), (0, 0), "swap space leaked");
    assert_eq!(system.vm.statistics().paged_out, 0);
}

/// How many seeds are tried; `SWAP_SEEDS` sets more.
fn seeds() -> u64 {
    std::env::var("SWAP_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40)
}

#[test]
fn memory_larger_than_the_machine_is_as_it_was_left() {
    (0..seeds()).for_each(|seed| run(seed, 1500, &[300, 200], false));
}

#[test]
fn a_disk_that_refuses_pages_loses_none() {
    (0..seeds()).for_each(|seed| run(seed, 1500, &[300, 200], true));
}

#[test]
fn full_swap_space_loses_no_page() {
    (0..seeds()).for_each(|seed| run(seed, 1500, &[40, 20], false));
}
