//! A byte-accurate simulated machine for tests: frames with contents, address spaces, threads and a
//! virtual clock.
//!
//! It checks what the library must guarantee to a real machine: frames are freed only once, and not
//! while they are mapped; only allocated frames are accessed; large pages are aligned. A violation
//! panics, so any test finds it. Newly allocated frames are filled with a pattern, so tests see
//! memory that should have been cleared. Failures can be injected, and kernel entries are counted.

mod executor;
mod thread;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::task::Waker;

use macadamia_sync::SpinLock;

use super::buddy::Buddy;
use super::{
    Frame, Machine, PAGE_SHIFT, PAGE_SIZE, PageStatus, PhysicalPage, PmapChange, PmapFull, Protection,
};
use crate::KernResult;
pub use executor::{Executor, TaskId};
pub use thread::{EXTENDED_SIZE, SimulatedThread};
use thread::{Program, ThreadRecord};

/// The byte with which a newly allocated frame is filled.
const RUBBISH: u8 = 0xa5;
/// The translation of one base page. A large page has many of them.
#[derive(Clone, Copy)]
struct Translation {
    page: PhysicalPage,
    protection: Protection,
    status: PageStatus,
    shift: u32,
}

#[derive(Default)]
struct PmapTable {
    translations: BTreeMap<u64, Translation>,
}

/// Counts of what a simulated machine has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that would be system calls of a microkernel: batches of changes, protections, queries.
    pub kernel_entries: u64,
    /// Pages entered (a large page counts once).
    pub entered: u64,
    /// Frames that were cleared.
    pub zeroed: u64,
    /// Frames that were copied.
    pub copied: u64,
    /// Calls that interrupt what other processors execute.
    pub synchronizations: u64,
}

/// Which requests are to fail, so that tests see whether callers handle it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failures {
    /// The number of frame allocations that still succeed; the next fails.
    pub allocate_frame: Option<u32>,
    /// The number of reservations of server memory that still succeed; the next fails.
    pub reserve: Option<u32>,
    /// The number of page entries that still succeed; the next fails.
    pub enter: Option<u32>,
}

struct State {
    buddy: Buddy,
    frames: Vec<Option<Box<[u8]>>>,
    /// For each frame, where it is mapped: address space and address.
    mapped: Vec<Vec<(usize, u64)>>,
    pmaps: BTreeMap<usize, PmapTable>,
    next_pmap: usize,
    threads: BTreeMap<usize, ThreadRecord>,
    next_thread: usize,
    program: Option<Program>,
    devices: BTreeMap<u64, Box<[u8]>>,
    reserved: usize,
    reserve_limit: usize,
    counters: Counters,
    failures: Failures,
    thread_delay: u64,
    now: u64,
    timers: Vec<(u64, Waker)>,
}

/// A simulated machine. Clones stand for one machine.
#[derive(Clone)]
pub struct Simulated {
    state: Arc<SpinLock<State>>,
    page_shifts: [u32; 2],
}

/// An address space of a [`Simulated`] machine.
#[derive(Debug)]
pub struct SimulatedPmap(usize);

impl Simulated {
    /// A machine with `frames` frames of memory, pages of 4 KiB and 2 MiB, and no limit of server
    /// memory.
    pub fn new(frames: u32) -> Self {
        Self::with_large_pages(frames, 21)
    }

    /// A machine with large pages of 2^`large_shift` bytes, smaller than on real machines so that
    /// small tests have many. Otherwise it is as [`new`](Self::new) makes it.
    pub fn with_large_pages(frames: u32, large_shift: u32) -> Self {
        let mut buddy = Buddy::new(frames).expect("memory for the simulation");
        buddy.donate(0, frames);
        let state = State {
            buddy,
            frames: (0..frames).map(|_| None).collect(),
            mapped: (0..frames).map(|_| Vec::new()).collect(),
            pmaps: BTreeMap::new(),
            next_pmap: 0,
            threads: BTreeMap::new(),
            next_thread: 0,
            program: None,
            devices: BTreeMap::new(),
            reserved: 0,
            reserve_limit: usize::MAX,
            counters: Counters::default(),
            failures: Failures::default(),
            thread_delay: 0,
            now: 0,
            timers: Vec::new(),
        };
        Self { state: Arc::new(SpinLock::new(state)), page_shifts: [PAGE_SHIFT, large_shift] }
    }

    /// The counts of what the machine has done so far.
    pub fn counters(&self) -> Counters {
        self.state.lock().counters
    }

    /// Makes requests fail from now on.
    pub fn inject(&self, failures: Failures) {
        self.state.lock().failures = failures;
    }

    /// Sets how many microseconds the creation of a thread takes.
    pub fn set_thread_delay(&self, microseconds: u64) {
        self.state.lock().thread_delay = microseconds;
    }

    async fn delay(&self) {
        let until = {
            let state = self.state.lock();
            state.now + state.thread_delay
        };
        self.sleep_until(until).await;
    }

    /// How many bytes of server memory are reserved.
    pub fn reserved(&self) -> usize {
        self.state.lock().reserved
    }

    /// How many address spaces exist.
    pub fn pmaps(&self) -> usize {
        self.state.lock().pmaps.len()
    }

    /// How many threads exist.
    pub fn threads(&self) -> usize {
        self.state.lock().threads.len()
    }

    /// How many base pages are mapped in an address space.
    pub fn mapped_pages(&self, pmap: &SimulatedPmap) -> usize {
        self.state.lock().pmaps[&pmap.0].translations.len()
    }

    /// Drops every translation of an address space, as a machine may do at any time.
    pub fn forget_translations(&self, pmap: &SimulatedPmap) {
        self.state.lock().remove(pmap.0, 0, u64::MAX);
    }

    /// Does a program's load at `address`: copies bytes from one page, or returns `None` for a page
    /// fault.
    ///
    /// # Panics
    /// If the range crosses a page.
    pub fn user_read(&self, pmap: &SimulatedPmap, address: u64, buffer: &mut [u8]) -> Option<()> {
        let state = &mut *self.state.lock();
        let (page, offset) = state.translate(pmap.0, address, buffer.len(), Protection::READ)?;
        buffer.copy_from_slice(&state.contents(page)[offset..][..buffer.len()]);
        Some(())
    }

    /// Does a program's store at `address`: copies bytes to one page, or returns `None` for a page
    /// fault.
    ///
    /// # Panics
    /// If the range crosses a page.
    pub fn user_write(&self, pmap: &SimulatedPmap, address: u64, bytes: &[u8]) -> Option<()> {
        self.user_write_in(pmap.0, address, bytes)
    }

    /// Does a program's store as [`user_write`](Self::user_write) does, in the address space of
    /// this number.
    pub fn user_write_in(&self, space: usize, address: u64, bytes: &[u8]) -> Option<()> {
        let state = &mut *self.state.lock();
        let (page, offset) = state.translate(space, address, bytes.len(), Protection::WRITE)?;
        state.contents(page)[offset..][..bytes.len()].copy_from_slice(bytes);
        Some(())
    }

    /// Whether an instruction at `address` could be fetched without a page fault.
    pub fn user_fetch(&self, pmap: &SimulatedPmap, address: u64) -> Option<()> {
        self.state.lock().translate(pmap.0, address, 1, Protection::EXECUTE).map(|_| ())
    }

    /// Advances the clock and wakes the tasks whose time has come.
    pub fn advance(&self, microseconds: u64) {
        let due: Vec<Waker> = {
            let mut state = self.state.lock();
            state.now += microseconds;
            let now = state.now;
            let (due, later) =
                core::mem::take(&mut state.timers).into_iter().partition(|(time, _)| *time <= now);
            state.timers = later;
            let due: Vec<(u64, Waker)> = due;
            due.into_iter().map(|(_, waker)| waker).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// Advances the clock to the next timer. Returns false if there is none.
    pub fn advance_to_next_timer(&self) -> bool {
        let next = {
            let state = self.state.lock();
            state.timers.iter().map(|(time, _)| time.saturating_sub(state.now)).min()
        };
        next.inspect(|&step| self.advance(step)).is_some()
    }
}

/// Counts an injected failure down. Returns true if this request is to fail.
fn fails(countdown: &mut Option<u32>) -> bool {
    match countdown {
        Some(0) => {
            *countdown = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

impl State {
    fn frame(&mut self, frame: Frame) -> &mut [u8] {
        self.frames[frame.0 as usize].as_mut().expect("access to a frame that is not allocated")
    }

    fn contents(&mut self, page: PhysicalPage) -> &mut [u8] {
        match page {
            PhysicalPage::Frame(frame) => self.frame(frame),
            PhysicalPage::Device(address, _) => {
                self.devices.entry(address).or_insert_with(|| alloc::vec![0; PAGE_SIZE as usize].into())
            }
        }
    }

    fn translate(
        &mut self,
        pmap: usize,
        address: u64,
        length: usize,
        access: Protection,
    ) -> Option<(PhysicalPage, usize)> {
        let offset = address % PAGE_SIZE;
        assert!(offset + length as u64 <= PAGE_SIZE, "an access within one page");
        let translation = self.pmaps.get_mut(&pmap)?.translations.get_mut(&(address - offset))?;
        if !translation.protection.contains(access) {
            return None;
        }
        translation.status |= PageStatus::REFERENCED;
        if access.contains(Protection::WRITE) {
            translation.status |= PageStatus::MODIFIED;
        }
        Some((translation.page, offset as usize))
    }

    fn remove(&mut self, pmap: usize, start: u64, end: u64) {
        let table = self.pmaps.get_mut(&pmap).expect("a live address space");
        let gone: Vec<u64> = table.translations.range(start..end).map(|(&address, _)| address).collect();
        for address in gone {
            let translation = table.translations.remove(&address).expect("listed above");
            if let PhysicalPage::Frame(frame) = translation.page {
                self.mapped[frame.0 as usize].retain(|&mapping| mapping != (pmap, address));
            }
        }
    }

    fn enter(
        &mut self,
        pmap: usize,
        address: u64,
        page: PhysicalPage,
        shift: u32,
        protection: Protection,
    ) -> bool {
        assert!(address.is_multiple_of(1 << shift), "an aligned page");
        if fails(&mut self.failures.enter) {
            return false;
        }
        self.counters.entered += 1;
        self.remove(pmap, address, address + (1 << shift));
        let protection = match protection.contains(Protection::WRITE) {
            true => protection | Protection::READ,
            false => protection,
        };
        for number in 0..1u32 << (shift - PAGE_SHIFT) {
            let address = address + u64::from(number) * PAGE_SIZE;
            let page = match page {
                PhysicalPage::Frame(first) => {
                    assert!(first.0.is_multiple_of(1 << (shift - PAGE_SHIFT)), "an aligned run of frames");
                    let frame = Frame(first.0 + number);
                    self.frame(frame);
                    self.mapped[frame.0 as usize].push((pmap, address));
                    PhysicalPage::Frame(frame)
                }
                PhysicalPage::Device(first, caching) => {
                    PhysicalPage::Device(first + u64::from(number) * PAGE_SIZE, caching)
                }
            };
            let translation = Translation { page, protection, status: PageStatus::empty(), shift };
            self.pmaps
                .get_mut(&pmap)
                .expect("a live address space")
                .translations
                .insert(address, translation);
        }
        true
    }

    /// Unmaps the large pages that a change would have to split, as [`Machine::pmap_change`]
    /// allows.
    fn drop_cut_pages(&mut self, pmap: usize, start: u64, end: u64) {
        for edge in [start, end] {
            let table = &self.pmaps[&pmap];
            if let Some(translation) = table.translations.get(&edge)
                && !edge.is_multiple_of(1 << translation.shift)
            {
                let first = edge & !((1 << translation.shift) - 1);
                let size = 1 << translation.shift;
                self.remove(pmap, first, first + size);
            }
        }
    }

    fn mappings(&mut self, frame: Frame) -> Vec<(usize, u64)> {
        self.mapped[frame.0 as usize].clone()
    }
}

impl Machine for Simulated {
    type Pmap = SimulatedPmap;
    type Space = usize;
    type Thread = SimulatedThread;

    fn page_shifts(&self) -> &[u32] {
        &self.page_shifts
    }

    async fn pmap_create(&self) -> KernResult<SimulatedPmap> {
        let mut state = self.state.lock();
        let number = state.next_pmap;
        state.next_pmap += 1;
        state.pmaps.insert(number, PmapTable::default());
        Ok(SimulatedPmap(number))
    }

    fn pmap_destroy(&self, pmap: SimulatedPmap) {
        let mut state = self.state.lock();
        state.counters.kernel_entries += 1;
        state.remove(pmap.0, 0, u64::MAX);
        state.pmaps.remove(&pmap.0);
    }

    fn space(&self, pmap: &SimulatedPmap) -> usize {
        pmap.0
    }

    fn pmap_change(&self, pmap: &SimulatedPmap, changes: &[PmapChange]) -> Result<(), PmapFull> {
        let state = &mut *self.state.lock();
        state.counters.kernel_entries += 1;
        for (index, change) in changes.iter().enumerate() {
            match *change {
                PmapChange::Enter { address, page, shift, protection } => {
                    assert!(self.page_shifts.contains(&shift), "a page of known size");
                    state.drop_cut_pages(pmap.0, address, address + (1 << shift));
                    if !state.enter(pmap.0, address, page, shift, protection) {
                        return Err(PmapFull { index });
                    }
                }
                PmapChange::Remove { address, length } => {
                    state.drop_cut_pages(pmap.0, address, address + length);
                    state.remove(pmap.0, address, address + length);
                }
                PmapChange::Protect { address, length, protection } => {
                    state.drop_cut_pages(pmap.0, address, address + length);
                    let table = state.pmaps.get_mut(&pmap.0).expect("a live address space");
                    for (_, translation) in table.translations.range_mut(address..address + length) {
                        translation.protection &= protection;
                    }
                }
            }
        }
        Ok(())
    }

    fn pmap_query(&self, pmap: &SimulatedPmap, addresses: &[u64], status: &mut [PageStatus]) {
        let state = &mut *self.state.lock();
        state.counters.kernel_entries += 1;
        let table = state.pmaps.get_mut(&pmap.0).expect("a live address space");
        for (address, status) in addresses.iter().zip(status) {
            let translation = table.translations.get_mut(address);
            *status = translation
                .map_or(PageStatus::empty(), |translation| core::mem::take(&mut translation.status));
        }
    }

    fn frame_limit(&self) -> u32 {
        self.state.lock().frames.len() as u32
    }

    fn free_frames(&self) -> u32 {
        self.state.lock().buddy.free_frames()
    }

    fn allocate_frames(&self, order: u32) -> Option<Frame> {
        let state = &mut *self.state.lock();
        if fails(&mut state.failures.allocate_frame) {
            return None;
        }
        let first = state.buddy.allocate(order)?;
        for frame in first..first + (1 << order) {
            state.frames[frame as usize] = Some(alloc::vec![RUBBISH; PAGE_SIZE as usize].into());
        }
        Some(Frame(first))
    }

    fn release_frames(&self, first: Frame, order: u32) {
        let state = &mut *self.state.lock();
        for frame in first.0..first.0 + (1 << order) {
            assert!(state.frames[frame as usize].take().is_some(), "frame {frame} released twice");
            let mapped = &state.mapped[frame as usize];
            assert!(mapped.is_empty(), "frame {frame} released while mapped: {mapped:x?}");
        }
        state.buddy.release(first.0, order);
    }

    fn zero_frame(&self, frame: Frame) {
        let mut state = self.state.lock();
        state.counters.zeroed += 1;
        state.frame(frame).fill(0);
    }

    fn copy_frame(&self, from: Frame, to: Frame) {
        let state = &mut *self.state.lock();
        state.counters.copied += 1;
        let contents: Box<[u8]> = state.frame(from).into();
        state.frame(to).copy_from_slice(&contents);
    }

    fn read_frame(&self, frame: Frame, offset: usize, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.state.lock().frame(frame)[offset..][..buffer.len()]);
    }

    fn write_frame(&self, frame: Frame, offset: usize, bytes: &[u8]) {
        self.state.lock().frame(frame)[offset..][..bytes.len()].copy_from_slice(bytes);
    }

    fn copy_between(&self, from: (Frame, usize), to: (Frame, usize), length: usize) {
        assert!(from.0 != to.0, "a frame has one owner");
        let state = &mut *self.state.lock();
        // An array and not a vector, because tests of costs count allocations.
        let mut bytes = [0; PAGE_SIZE as usize];
        let bytes = &mut bytes[..length];
        bytes.copy_from_slice(&state.frame(from.0)[from.1..][..length]);
        state.frame(to.0)[to.1..][..length].copy_from_slice(bytes);
    }

    fn load_u32(&self, frame: Frame, offset: usize) -> u32 {
        assert!(offset.is_multiple_of(4), "an aligned word");
        let mut word = [0; 4];
        self.read_frame(frame, offset, &mut word);
        u32::from_le_bytes(word)
    }

    fn compare_exchange_u32(&self, frame: Frame, offset: usize, current: u32, new: u32) -> Result<u32, u32> {
        assert!(offset.is_multiple_of(4), "an aligned word");
        let mut state = self.state.lock();
        let word = &mut state.frame(frame)[offset..][..4];
        let old = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        if old != current {
            return Err(old);
        }
        word.copy_from_slice(&new.to_le_bytes());
        Ok(old)
    }

    fn frames_protect(&self, frames: &[Frame], protection: Protection) {
        let state = &mut *self.state.lock();
        state.counters.kernel_entries += 1;
        for &frame in frames {
            for (pmap, address) in state.mappings(frame) {
                let Some(translation) = state.pmaps[&pmap].translations.get(&address) else { continue };
                if translation.shift != PAGE_SHIFT {
                    let size = 1 << translation.shift;
                    state.remove(pmap, address & !(size - 1), (address & !(size - 1)) + size);
                } else if protection.is_empty() {
                    state.remove(pmap, address, address + PAGE_SIZE);
                } else if let Some(translation) =
                    state.pmaps.get_mut(&pmap).and_then(|table| table.translations.get_mut(&address))
                {
                    translation.protection &= protection;
                }
            }
        }
    }

    fn frames_status(&self, frames: &[Frame], status: &mut [PageStatus]) {
        let state = &mut *self.state.lock();
        state.counters.kernel_entries += 1;
        for (&frame, status) in frames.iter().zip(status) {
            *status = PageStatus::empty();
            for (pmap, address) in state.mappings(frame) {
                let table = state.pmaps.get_mut(&pmap).expect("a mapping's address space");
                if let Some(translation) = table.translations.get_mut(&address) {
                    *status |= core::mem::take(&mut translation.status);
                }
            }
        }
    }

    fn reserve_memory(&self, bytes: usize) -> bool {
        let state = &mut *self.state.lock();
        if fails(&mut state.failures.reserve) || state.reserve_limit - state.reserved < bytes {
            return false;
        }
        state.reserved += bytes;
        true
    }

    fn unreserve_memory(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.reserved = state.reserved.checked_sub(bytes).expect("no more given back than was reserved");
    }

    async fn thread_create(&self, space: &usize) -> KernResult<SimulatedThread> {
        self.delay().await;
        self.make_thread(*space)
    }

    fn extended_state_size(&self) -> usize {
        EXTENDED_SIZE
    }

    fn now(&self) -> u64 {
        self.state.lock().now
    }

    fn sleep_until(&self, time: u64) -> impl Future<Output = ()> + Send {
        core::future::poll_fn(move |context| {
            let mut state = self.state.lock();
            if state.now >= time {
                return core::task::Poll::Ready(());
            }
            state.timers.push((time, context.waker().clone()));
            core::task::Poll::Pending
        })
    }

    fn processors(&self) -> usize {
        2
    }

    fn current_processor(&self) -> usize {
        0
    }

    fn synchronize_processors(&self) {
        self.state.lock().counters.synchronizations += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reached_through_translations_with_their_rights() {
        let machine = Simulated::new(8);
        let pmap = machine.block_on(machine.pmap_create()).unwrap();
        let frame = machine.allocate_frames(0).unwrap();
        machine.zero_frame(frame);
        let enter = |protection| PmapChange::Enter {
            address: 0x1000,
            page: PhysicalPage::Frame(frame),
            shift: PAGE_SHIFT,
            protection,
        };
        machine.pmap_change(&pmap, &[enter(Protection::READ)]).unwrap();
        assert_eq!(machine.user_write(&pmap, 0x1001, &[1]), None);
        machine.pmap_change(&pmap, &[enter(Protection::WRITE)]).unwrap();
        machine.user_write(&pmap, 0x1001, &[1, 2]).unwrap();
        let mut bytes = [0; 3];
        machine.user_read(&pmap, 0x1000, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 1, 2]);
        let mut status = [PageStatus::empty()];
        machine.frames_status(&[frame], &mut status);
        assert_eq!(status[0], PageStatus::all());
        machine.frames_protect(&[frame], Protection::NONE);
        assert_eq!(machine.user_read(&pmap, 0x1000, &mut bytes), None);
        machine.pmap_destroy(pmap);
        machine.release_frames(frame, 0);
        assert_eq!(machine.free_frames(), 8);
    }

    #[test]
    #[should_panic(expected = "released while mapped")]
    fn releasing_a_mapped_frame_is_noticed() {
        let machine = Simulated::new(1);
        let pmap = machine.block_on(machine.pmap_create()).unwrap();
        let frame = machine.allocate_frames(0).unwrap();
        let page = PhysicalPage::Frame(frame);
        let enter = PmapChange::Enter { address: 0, page, shift: PAGE_SHIFT, protection: Protection::READ };
        machine.pmap_change(&pmap, &[enter]).unwrap();
        machine.release_frames(frame, 0);
    }

    #[test]
    fn sleepers_wake_in_virtual_time() {
        let machine = Simulated::new(1);
        machine.block_on(machine.sleep_until(5_000_000));
        assert_eq!(machine.now(), 5_000_000);
    }
}
