//! The driver: performs random operations on the library and on the model, and compares results and
//! memory.
//!
//! Property tests and the fuzzer share it; a step is a few bytes, so any bytes are a valid
//! sequence.

mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;

use mach::machine::simulated::{Executor, Failures, Simulated};
use mach::machine::{Caching, Machine, PAGE_SIZE, Protection};
use mach::vm::{Behavior, CopyFault, CopyStrategy, Inheritance, Placement, Settings, Vm, VmMap, VmObject};
use mach::{KernError, KernResult};

use crate::contents::{Cell, Contents, assert_same, bytes_of, cell, copy_of, in_pages, load, store, write};
use crate::pagers::FilePager;
use crate::swap::Swap;

/// How many bytes encode a step.
pub(crate) const STEP_BYTES: usize = 8;
/// How many pages of an address space are used.
const PAGES: u64 = 24;
const BASE: u64 = 0x10_0000;
const TASKS: usize = 4;
const FILE_PAGES: u64 = 4;
/// The physical address of the device memory, and its size: two large pages.
const DEVICE: u64 = 0xfe00_0000;
const DEVICE_PAGES: u64 = 8;
/// log2 of the size of large pages: small, so that a few fit.
const LARGE_SHIFT: u32 = 14;
pub(crate) const PAGE: usize = PAGE_SIZE as usize;

/// The settings of a run.
#[derive(Clone, Copy)]
pub(crate) struct Conditions {
    pub(crate) frames: u32,
    /// For how many pages there is swap space, if there is any.
    pub(crate) swap: Option<usize>,
    /// Whether large pages are used wherever they fit, not only where a program asks for them.
    pub(crate) large_pages: bool,
}

#[derive(Clone)]
struct ModelPage {
    cell: Cell,
    protection: Protection,
    max_protection: Protection,
    inheritance: Inheritance,
    shared: bool,
    device: bool,
    wired: u32,
}

impl ModelPage {
    fn zero() -> Self {
        Self {
            cell: cell(vec![0; PAGE]),
            protection: Protection::DEFAULT,
            max_protection: Protection::ALL,
            inheritance: Inheritance::Copy,
            shared: false,
            device: false,
            wired: 0,
        }
    }
}

struct ModelFile {
    object: Arc<VmObject<Simulated>>,
    pager: Arc<FilePager>,
    strategy: CopyStrategy,
    pages: Vec<Cell>,
}

struct Task {
    map: Arc<VmMap<Simulated>>,
    pages: BTreeMap<u64, ModelPage>,
}

struct World {
    machine: Simulated,
    vm: Arc<Vm<Simulated>>,
    executor: Executor,
    tasks: Vec<Task>,
    files: Vec<ModelFile>,
    device: Arc<VmObject<Simulated>>,
    device_pages: Vec<Cell>,
    next_byte: u8,
    /// Whether an operation may fail for lack of memory.
    may_run_out: bool,
    short_of_frames: bool,
    swap: Option<Arc<Swap>>,
}

/// Runs a sequence of steps and checks all results.
///
/// # Panics
/// If the library differs from the model, or leaks.
pub(crate) fn run(steps: &[[u8; STEP_BYTES]], conditions: Conditions) {
    let Conditions { frames, swap, large_pages } = conditions;
    let machine = Simulated::with_large_pages(frames, LARGE_SHIFT);
    let settings = Settings { fault_around: 4, cluster: 2, free_target: 4, free_reserve: 2, large_pages };
    let vm = Vm::with_settings(machine.clone(), settings).expect("memory for the frame table");
    let swap = swap.map(|room| Swap::new(10, room));
    if let Some(swap) = &swap {
        vm.set_default_pager(swap.clone());
    }
    let device = VmObject::device(&vm, DEVICE, DEVICE_PAGES * PAGE_SIZE, Caching::Uncached).unwrap();
    let mut world = World {
        executor: Executor::new(machine.clone()),
        tasks: Vec::new(),
        files: Vec::new(),
        device,
        device_pages: (0..DEVICE_PAGES).map(|_| cell(vec![0; PAGE])).collect(),
        next_byte: 1,
        may_run_out: false,
        short_of_frames: frames < 1000 && swap.as_ref().is_none_or(|swap| swap.room() < 1000),
        swap: swap.clone(),
        machine: machine.clone(),
        vm: vm.clone(),
    };
    world.start();
    for step in steps {
        world.step(step);
    }
    world.may_run_out = world.short_of_frames || world.much_is_wired();
    for task in 0..world.tasks.len() {
        world.compare_all(task);
    }
    world.tasks.clear();
    world.executor.block_on(vm.finish_writes());
    let room = conditions.swap;
    drop(world);
    assert_eq!((vm.statistics().free, vm.statistics().wired), (frames, 0), "frames leaked");
    assert_eq!(vm.statistics().paged_out, 0, "pages that are gone count as paged out");
    assert_eq!(swap.map(|swap| swap.room()), room, "swap space leaked");
    drop(vm);
    assert_eq!(machine.free_frames(), frames, "free frames not given back");
    assert_eq!((machine.reserved(), machine.pmaps()), (0, 0), "server memory or address spaces leaked");
}

impl World {
    fn start(&mut self) {
        let map = self.executor.block_on(VmMap::new(&self.vm, BASE, BASE + PAGES * PAGE_SIZE)).unwrap();
        self.tasks.push(Task { map, pages: BTreeMap::new() });
        for (number, strategy) in [CopyStrategy::Delay, CopyStrategy::Symmetric].into_iter().enumerate() {
            let contents: Vec<u8> =
                (0..FILE_PAGES as usize * PAGE).map(|at| (at / 7 + number * 100) as u8).collect();
            let pages = contents.chunks(PAGE).map(|page| cell(page.to_vec())).collect();
            let pager = FilePager::new(contents, 20);
            let size = FILE_PAGES * PAGE_SIZE;
            let object = VmObject::paged(&self.vm, pager.clone(), size, strategy).unwrap();
            self.files.push(ModelFile { object, pager, strategy, pages });
        }
    }

    fn step(&mut self, step: &[u8; STEP_BYTES]) {
        let [operation, task, page, count, choice, extra, extra_2, failure] = *step;
        let task = task as usize % self.tasks.len();
        let page = u64::from(page) % PAGES;
        let count = (1 + u64::from(count) % 6).min(PAGES - page);
        self.inject(failure);
        match operation % 25 {
            0 | 1 => self.allocate(task, page, count, choice),
            2 => self.deallocate(task, page, count),
            3 => self.protect(task, page, count, choice),
            4 => self.inherit(task, page, count, choice),
            5..=7 => self.store(task, page, choice, extra, extra_2),
            8 => self.load(task, page, choice, extra),
            9 => self.fork(task),
            10 => self.terminate(task),
            11 => self.map_file(task, page, count, choice, extra),
            12 => self.write_file(choice, page, extra),
            13 => self.copy(task, page, count, u64::from(extra)),
            14 => self.transfer(task, page, count, choice, u64::from(extra)),
            15 => self.forget(task, page, count),
            16 if extra & 1 == 0 => self.clean(choice),
            16 => self.lock(choice, page, count, extra),
            17 => self.wire(task, page, count),
            18 => self.unwire(task, page, count),
            19 => self.map_device(task, page, count, choice, extra),
            20 => self.behavior(task, page, count, choice),
            24 => self.swap_off(choice),
            21 | 22 => self.again(task, page, count, [choice, extra, extra_2]),
            _ => {
                let map = &self.tasks[task].map;
                map.with_pmap(|pmap| self.machine.forget_translations(pmap));
            }
        }
        self.machine.inject(Failures::default());
        self.files.iter().for_each(|file| *file.pager.fail.lock().unwrap() = None);
        if let Some(swap) = &self.swap {
            swap.set_fail(None);
        }
        let size = self.tasks[0].pages.len() as u64 * PAGE_SIZE;
        assert_eq!(self.executor.block_on(self.tasks[0].map.size()), size);
    }

    /// Injects a failure of some kind in one step of four.
    fn inject(&mut self, failure: u8) {
        let after = u32::from(failure >> 4);
        let injected = (1..=3).contains(&(failure & 0xf));
        self.may_run_out = self.short_of_frames || injected || self.much_is_wired();
        match failure & 0xf {
            1 => self.machine.inject(Failures { reserve: Some(after), ..Failures::default() }),
            2 => self.machine.inject(Failures { enter: Some(after), ..Failures::default() }),
            3 => self.machine.inject(Failures { allocate_frame: Some(after), ..Failures::default() }),
            5 => {
                if let Some(swap) = &self.swap {
                    swap.set_fail(Some(after / 4));
                    // What cannot be written keeps its frames.
                    self.may_run_out = true;
                }
            }
            4 => self.files.iter().for_each(|file| *file.pager.fail.lock().unwrap() = Some(after / 4)),
            _ => {}
        }
    }

    /// Whether so many pages are wired that memory may run out although there is swap space.
    fn much_is_wired(&self) -> bool {
        let pages = self.tasks.iter().flat_map(|task| task.pages.values());
        pages.filter(|page| page.wired > 0).count() > 4
    }

    /// Whether a result is a failure that is possible now; the model does not change then.
    fn failed<T: std::fmt::Debug>(&self, result: &KernResult<T>) -> bool {
        match result {
            Err(KernError::ResourceShortage) => {
                assert!(self.may_run_out, "out of memory without a reason");
                true
            }
            _ => false,
        }
    }

    fn address(page: u64) -> u64 {
        BASE + page * PAGE_SIZE
    }

    /// Brings pages back from swap space; others may go there meanwhile.
    fn swap_off(&mut self, choice: u8) {
        let Some(swap) = self.swap.clone() else { return };
        for (object, pages) in swap.owners() {
            for page in pages.into_iter().take(1 + usize::from(choice % 16)) {
                match self.executor.block_on(object.take_back(page)) {
                    // There are frames for a few pages only.
                    Ok(()) | Err(KernError::ResourceShortage) => {}
                    Err(error) => panic!("a page did not come back: {error:?}"),
                }
            }
        }
    }

    fn all_mapped(&self, task: usize, page: u64, count: u64) -> bool {
        (page..page + count).all(|page| self.tasks[task].pages.contains_key(&page))
    }

    fn pages_mut(&mut self, task: usize, page: u64, count: u64) -> impl Iterator<Item = &mut ModelPage> {
        self.tasks[task].pages.range_mut(page..page + count).map(|(_, page)| page)
    }

    fn allocate(&mut self, task: usize, page: u64, count: u64, choice: u8) {
        let address = Self::address(page);
        let placement = match choice % 4 {
            0 => Placement::Fixed(address),
            1 => Placement::Replace(address),
            2 => Placement::Above(address),
            _ => Placement::Below(address),
        };
        let pages = &self.tasks[task].pages;
        let is_free = |&first: &u64| {
            first + count <= PAGES && (first..first + count).all(|page| !pages.contains_key(&page))
        };
        let expected = match placement {
            Placement::Fixed(_) => Some(page).filter(is_free),
            Placement::Replace(_) => Some(page),
            Placement::Above(_) => (page..PAGES).find(is_free),
            Placement::Below(_) => (0..page).rev().find(|first| first + count <= page && is_free(first)),
        };
        let result = self.executor.block_on(self.tasks[task].map.allocate(placement, count * PAGE_SIZE));
        if self.failed(&result) {
            return;
        }
        assert_eq!(result, expected.map(Self::address).ok_or(KernError::NoSpace));
        if let Some(first) = expected {
            (first..first + count).for_each(|page| {
                self.tasks[task].pages.insert(page, ModelPage::zero());
            });
        }
    }

    fn deallocate(&mut self, task: usize, page: u64, count: u64) {
        let map = self.tasks[task].map.clone();
        let result = self.executor.block_on(map.deallocate(Self::address(page), count * PAGE_SIZE));
        if !self.failed(&result) {
            assert_eq!(result, Ok(()));
            (page..page + count).for_each(|page| {
                self.tasks[task].pages.remove(&page);
            });
        }
    }

    /// Allocates memory, uses it, frees it and, if no other operation comes between, allocates it
    /// again.
    fn again(&mut self, task: usize, page: u64, count: u64, [choice, between, used]: [u8; 3]) {
        let mapped = |world: &Self| world.tasks[task].pages.keys().copied().collect::<Vec<u64>>();
        for turn in 0..2 {
            let before = mapped(self);
            self.allocate(task, page, count, choice);
            let new = mapped(self).into_iter().find(|page| !before.contains(page));
            let Some(first) = new else { return };
            self.load(task, first, used & 1, 8);
            if used & 2 != 0 {
                self.store(task, first, used >> 2 & 1, between, used);
            }
            if turn == 0 {
                self.deallocate(task, first, count);
                match between % 8 {
                    0 => self.load(task, first, 0, 1),
                    1 => self.store(task, page, choice, between, 1),
                    2 => self.protect(task, page, 1, choice),
                    3 => self.deallocate(task, page, count),
                    4 => self.fork(task),
                    _ => {}
                }
            }
        }
    }

    fn protect(&mut self, task: usize, page: u64, count: u64, choice: u8) {
        let protection = Protection::from_bits_truncate(choice & 7);
        // The maximum can never grow again, so it is reduced seldom.
        let set_maximum = choice > 0xe0;
        let map = self.tasks[task].map.clone();
        let change = map.protect(Self::address(page), count * PAGE_SIZE, protection, set_maximum);
        let result = self.executor.block_on(change);
        if self.failed(&result) {
            return;
        }
        let mapped = self.all_mapped(task, page, count);
        let allowed = self.pages_mut(task, page, count).all(|page| page.max_protection.contains(protection));
        match (mapped, allowed) {
            (false, _) => return assert_eq!(result, Err(KernError::InvalidAddress)),
            (true, false) => return assert_eq!(result, Err(KernError::ProtectionFailure)),
            (true, true) => assert_eq!(result, Ok(())),
        }
        for page in self.pages_mut(task, page, count) {
            if set_maximum {
                page.max_protection = protection;
                page.protection &= protection;
            } else {
                page.protection = protection;
            }
        }
    }

    fn inherit(&mut self, task: usize, page: u64, count: u64, choice: u8) {
        let inheritance = [Inheritance::Share, Inheritance::Copy, Inheritance::None][choice as usize % 3];
        let map = self.tasks[task].map.clone();
        let result = self.executor.block_on(map.inherit(Self::address(page), count * PAGE_SIZE, inheritance));
        if self.failed(&result) {
            return;
        }
        if !self.all_mapped(task, page, count) {
            return assert_eq!(result, Err(KernError::InvalidAddress));
        }
        assert_eq!(result, Ok(()));
        self.pages_mut(task, page, count).for_each(|page| page.inheritance = inheritance);
    }

    /// Stores a few bytes, in the name of the program or of the server.
    fn store(&mut self, task: usize, page: u64, choice: u8, at: u8, length: u8) {
        let address = Self::address(page) + u64::from(at) * 16;
        let length = if choice & 2 == 0 { length as usize % 16 } else { length as usize * 24 };
        let bytes: Vec<u8> = (0..length).map(|at| self.next_byte.wrapping_add(at as u8)).collect();
        self.next_byte = self.next_byte.wrapping_add(17);
        let map = self.tasks[task].map.clone();
        let (done, error) = if choice & 1 == 0 {
            self.executor.block_on(store(&map, address, &bytes))
        } else {
            match self.executor.block_on(map.copyout(address, &bytes)) {
                Ok(()) => (length, None),
                Err(fault) => (fault.copied, Some(fault.error)),
            }
        };
        for (at, bytes) in in_pages(address - BASE, &bytes[..done]) {
            let page =
                self.tasks[task].pages.get_mut(&(at / PAGE_SIZE)).expect("stored where something is mapped");
            assert!(page.protection.contains(Protection::WRITE), "stored without the right");
            write(&page.cell, at as usize % PAGE, bytes);
        }
        if let Some(error) = error {
            let at = address + done as u64;
            self.check_error(task, at, Protection::WRITE, error);
            if error == KernError::ResourceShortage {
                // It is not known whether the page was copied before memory ran out, so it is not
                // compared any more.
                self.machine.inject(Failures::default());
                self.deallocate(task, (at - BASE) / PAGE_SIZE, 1);
            }
        }
    }

    /// Checks that an access may fail with this error.
    fn check_error(&self, task: usize, address: u64, access: Protection, error: KernError) {
        let page = self.tasks[task].pages.get(&((address - BASE) / PAGE_SIZE));
        match error {
            KernError::InvalidAddress => assert!(page.is_none(), "mapped at {address:#x}"),
            KernError::ProtectionFailure => {
                assert!(
                    !page.expect("something mapped").protection.contains(access),
                    "allowed at {address:#x}"
                );
            }
            KernError::ResourceShortage => assert!(self.may_run_out, "out of memory without a reason"),
            KernError::MemoryError => {
                let failed = self.files.iter().any(|file| file.pager.fail.lock().unwrap().is_none());
                assert!(failed, "the pager made no error");
            }
            KernError::NotSupported => assert!(page.expect("something mapped").device, "no device"),
            other => panic!("unexpected error {other:?} at {address:#x}"),
        }
    }

    fn load(&mut self, task: usize, page: u64, choice: u8, length: u8) {
        let address = Self::address(page) + u64::from(choice) * 8;
        let mut bytes = vec![0xee; length as usize * 24];
        let map = self.tasks[task].map.clone();
        let (done, error) = if choice & 1 == 0 {
            self.executor.block_on(load(&map, address, &mut bytes))
        } else {
            match self.executor.block_on(map.copyin(address, &mut bytes)) {
                Ok(()) => (bytes.len(), None),
                Err(fault) => (fault.copied, Some(fault.error)),
            }
        };
        for (at, bytes) in in_pages(address - BASE, &bytes[..done]) {
            let page =
                self.tasks[task].pages.get(&(at / PAGE_SIZE)).expect("loaded where something is mapped");
            // Write implies read, as in the hardware.
            assert!(!page.protection.is_empty(), "loaded without the right");
            assert_same(bytes, &page.cell, at, task);
        }
        if let Some(error) = error {
            self.check_error(task, address + done as u64, Protection::READ, error);
        }
    }

    fn fork(&mut self, task: usize) {
        if self.tasks.len() == TASKS {
            return;
        }
        let map = self.tasks[task].map.clone();
        let result = self.executor.block_on(map.fork());
        let Ok(map) = result else {
            assert!(self.failed(&result.map(|_| ())), "fork failed without a reason");
            return;
        };
        let mut pages = BTreeMap::new();
        for (&number, page) in &mut self.tasks[task].pages {
            match page.inheritance {
                Inheritance::None => continue,
                Inheritance::Share => {
                    page.shared = true;
                    pages.insert(number, ModelPage { wired: 0, ..page.clone() });
                }
                // Devices are not copied.
                Inheritance::Copy if page.device => {
                    pages.insert(number, ModelPage { wired: 0, ..page.clone() });
                }
                Inheritance::Copy => {
                    let cell = copy_of(&page.cell, page.shared);
                    pages.insert(number, ModelPage { cell, shared: false, wired: 0, ..page.clone() });
                }
            }
        }
        self.tasks.push(Task { map, pages });
    }

    fn terminate(&mut self, task: usize) {
        if task > 0 {
            let task = self.tasks.remove(task);
            self.executor.block_on(task.map.terminate());
            let ended = self.executor.block_on(task.map.fault(BASE, Protection::READ));
            assert_eq!(ended, Err(KernError::Terminated));
        }
    }

    fn behavior(&mut self, task: usize, page: u64, count: u64, choice: u8) {
        let behaviors = [Behavior::Default, Behavior::Random, Behavior::Sequential, Behavior::LargePages];
        let behavior = behaviors[choice as usize % behaviors.len()];
        let map = self.tasks[task].map.clone();
        let change = map.behavior(Self::address(page), count * PAGE_SIZE, behavior);
        let result = self.executor.block_on(change);
        if !self.failed(&result) {
            let mapped = self.all_mapped(task, page, count);
            assert_eq!(result, if mapped { Ok(()) } else { Err(KernError::InvalidAddress) });
        }
    }

    fn copy(&mut self, task: usize, page: u64, count: u64, to: u64) {
        let to = to % (PAGES - count + 1);
        let map = self.tasks[task].map.clone();
        let result =
            self.executor.block_on(map.copy(Self::address(page), count * PAGE_SIZE, Self::address(to)));
        let source_mapped = self.all_mapped(task, page, count);
        let readable =
            self.pages_mut(task, page, count).all(|page| page.protection.contains(Protection::READ));
        let mapped = self.all_mapped(task, to, count);
        let writable =
            self.pages_mut(task, to, count).all(|page| page.protection.contains(Protection::WRITE));
        let partly_done = self.pages_mut(task, to, count).any(|page| page.shared || page.wired > 0);
        match result {
            Ok(()) => assert!(source_mapped && readable && mapped && writable),
            Err(KernError::InvalidAddress) => return assert!(!source_mapped || !mapped),
            Err(KernError::ProtectionFailure) => return assert!(!readable || !writable),
            // Shared memory is written page by page, so the copy may be done in part. The model
            // cannot follow that, and drops the pages.
            Err(KernError::ResourceShortage | KernError::MemoryError) if partly_done => {
                return self.start_again();
            }
            Err(KernError::ResourceShortage) => return assert!(self.may_run_out),
            Err(KernError::NotSupported) => {
                if !self.pages_mut(task, page, count).any(|page| page.device) {
                    assert!(self.pages_mut(task, to, count).any(|page| page.device), "no device");
                    self.start_again();
                }
                return;
            }
            Err(other) => panic!("unexpected {other:?}"),
        }
        let copy = |page: &mut ModelPage| copy_of(&page.cell, page.shared);
        let cells: Vec<Cell> = self.pages_mut(task, page, count).map(copy).collect();
        for (target, cell) in self.pages_mut(task, to, count).zip(cells) {
            if partly_done {
                match bytes_of(&cell) {
                    Some(bytes) => write(&target.cell, 0, &bytes),
                    None => *target.cell.borrow_mut() = Contents::Any,
                }
            } else {
                target.cell = cell;
            }
        }
    }

    /// Unmaps everything in all tasks and reads the files again: afterwards the model expects
    /// nothing of shared memory.
    fn start_again(&mut self) {
        self.machine.inject(Failures::default());
        for task in 0..self.tasks.len() {
            let map = self.tasks[task].map.clone();
            self.executor.block_on(map.deallocate(BASE, PAGES * PAGE_SIZE)).expect("no entry is cut");
            self.tasks[task].pages.clear();
        }
        for file in &self.files {
            *file.pager.fail.lock().unwrap() = None;
            let mut bytes = vec![0; FILE_PAGES as usize * PAGE];
            self.executor.block_on(file.object.read(0, &mut bytes)).expect("memory is free now");
            for (page, bytes) in file.pages.iter().zip(bytes.chunks(PAGE)) {
                *page.borrow_mut() = Contents::Bytes(bytes.to_vec());
            }
        }
    }

    /// Moves or shares a range into a task.
    fn transfer(&mut self, task: usize, page: u64, count: u64, choice: u8, to: u64) {
        let target = choice as usize / 2 % self.tasks.len();
        let to = to % (PAGES - count + 1);
        let sharing = choice & 1 == 0;
        let (map, target_map) = (self.tasks[task].map.clone(), self.tasks[target].map.clone());
        let (address, size) = (Self::address(page), count * PAGE_SIZE);
        let taken = if sharing {
            self.executor.block_on(map.share(address, size))
        } else {
            self.executor.block_on(map.take(address, size))
        };
        let taken = match taken {
            Ok(taken) => taken,
            Err(KernError::InvalidAddress) => return assert!(!self.all_mapped(task, page, count)),
            Err(error) => {
                assert!(error == KernError::ResourceShortage && self.may_run_out, "{error:?}");
                // Some pages may be marked as shared already. That has no effect but on later
                // copies of them.
                return;
            }
        };
        assert!(self.all_mapped(task, page, count));
        let mut pages = Vec::new();
        for number in page..page + count {
            let page = self.tasks[task].pages.get_mut(&number).expect("checked");
            if sharing {
                page.shared = true;
                pages.push(ModelPage { wired: 0, ..page.clone() });
            } else {
                pages.extend(self.tasks[task].pages.remove(&number));
            }
        }
        let placement = Placement::Replace(Self::address(to));
        match self.executor.block_on(target_map.insert(taken, placement)) {
            Ok(at) => {
                assert_eq!(at, Self::address(to));
                for (number, page) in pages.into_iter().enumerate() {
                    self.tasks[target].pages.insert(to + number as u64, page);
                }
            }
            Err((error, _)) => assert!(error == KernError::ResourceShortage && self.may_run_out, "{error:?}"),
        }
    }

    fn forget(&mut self, task: usize, page: u64, count: u64) {
        // The model no longer knows the contents of private file pages, so only anonymous ranges
        // are chosen.
        let anonymous = self.tasks[task].pages.range(page..page + count).all(|(_, page)| page.shared);
        if !anonymous {
            return;
        }
        let map = self.tasks[task].map.clone();
        let result = self.executor.block_on(map.forget(Self::address(page), count * PAGE_SIZE));
        if !self.failed(&result) && !self.all_mapped(task, page, count) {
            assert_eq!(result, Err(KernError::InvalidAddress));
        }
    }

    fn wire(&mut self, task: usize, page: u64, count: u64) {
        let map = self.tasks[task].map.clone();
        // The pages that are wired now count towards what may run out.
        self.may_run_out = true;
        let result = self.executor.block_on(map.wire(Self::address(page), count * PAGE_SIZE));
        let mapped = self.all_mapped(task, page, count);
        let accessible = self.pages_mut(task, page, count).all(|page| !page.protection.is_empty());
        match result {
            Ok(()) => assert!(mapped && accessible),
            Err(KernError::InvalidAddress) => return assert!(!mapped),
            Err(KernError::ProtectionFailure) => return assert!(!accessible),
            // A part of the range may have been brought in, and so copied. The contents of such
            // pages of a file are not known any more.
            Err(KernError::ResourceShortage | KernError::MemoryError) => {
                self.machine.inject(Failures::default());
                return self.deallocate(task, page, count);
            }
            Err(other) => panic!("unexpected {other:?}"),
        }
        for page in self.pages_mut(task, page, count) {
            page.wired += 1;
            // Pages that can be written are brought in as for a write.
            if page.protection.contains(Protection::WRITE) {
                write(&page.cell, 0, &[]);
            }
        }
    }

    fn unwire(&mut self, task: usize, page: u64, count: u64) {
        let map = self.tasks[task].map.clone();
        let result = self.executor.block_on(map.unwire(Self::address(page), count * PAGE_SIZE));
        if self.failed(&result) {
            return;
        }
        let wired = self.all_mapped(task, page, count)
            && self.pages_mut(task, page, count).all(|page| page.wired > 0);
        if !wired {
            return assert_eq!(result, Err(KernError::InvalidAddress));
        }
        assert_eq!(result, Ok(()));
        self.pages_mut(task, page, count).for_each(|page| page.wired -= 1);
    }

    /// Compares every page of a task.
    fn compare_all(&mut self, task: usize) {
        let map = self.tasks[task].map.clone();
        let mut bytes = vec![0; PAGE];
        for number in 0..PAGES {
            let address = Self::address(number);
            let result = if self.tasks[task].pages.get(&number).is_some_and(|page| page.device) {
                // The server cannot read device memory; only programs can.
                let (copied, error) = self.executor.block_on(load(&map, address, &mut bytes));
                error.map_or(Ok(()), |error| Err(CopyFault { copied, error }))
            } else {
                self.executor.block_on(map.copyin(address, &mut bytes))
            };
            match (result, self.tasks[task].pages.get(&number)) {
                (Ok(()), Some(page)) => assert_same(&bytes, &page.cell, number * PAGE_SIZE, task),
                (Err(fault), _) => {
                    self.check_error(task, Self::address(number), Protection::READ, fault.error);
                }
                (Ok(()), None) => panic!("page {number} of task {task} should not be mapped"),
            }
        }
    }
}
