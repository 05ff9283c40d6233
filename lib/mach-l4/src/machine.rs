//! The machine: the state that its parts share, and the implementation of [`mach::Machine`].

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use l4::extension::{self, Registers};
use l4::thread::system_clock;
use l4::utcb;
use l4::x2::extension::{MapAnswer, MapItem, MapOperation, SystemCallMode};
use l4::x2::{Fpage, Rights, ThreadId};
use macadamia_sync::SpinLock;
use mach::machine::{
    Breakpoints, Frame, Machine, PAGE_SHIFT, PAGE_SIZE, PageStatus, PhysicalPage, PmapChange, PmapFull,
    Protection, Times,
};
use mach::{KernError, KernResult};
use rt::executor::{Executor, JoinHandle, Platform};
use rt::heap::Lender;
use rt::root::Status;
use rt::root::space as root;

use crate::changes;
use crate::devices::Devices;
use crate::frames::FramePool;
use crate::idle_time::IdleTime;
use crate::kernel;
use crate::placement::{Assignment, Moment, Placement};
use crate::platform::L4Platform;
use crate::space::{Found, Pmap, Space, SpaceRecord};
use crate::start::SpaceLayout;
use crate::thread_table::ThreadTable;
use crate::user_thread::{Record, UserThread, initial_extended_state};

/// The page sizes that the kernel maps, as shifts: 4 KiB, 2 MiB, 1 GiB.
const PAGE_SHIFTS: [u32; 3] = [PAGE_SHIFT, 21, 30];
/// Number of items of the largest batch; a compromise between the number of system calls and the
/// size of the stack.
const BATCH: usize = 64;
/// The machine of the Mach library on L4. Clones stand for one machine.
#[derive(Clone)]
pub struct L4Machine(Arc<Shared>);

/// An object that a worker will end by a request to root.
pub(crate) enum PendingDestruction {
    /// A thread, with its space and its place there.
    Thread(Space, u32, ThreadId),
    Space(Space),
}

/// A thread of the kernel that a new [`UserThread`] gets: its place in its space, and whether an
/// earlier [`UserThread`] has used it.
struct Taken {
    thread: ThreadId,
    place: u32,
    used: bool,
}

/// The state that all parts of the machine share.
pub(crate) struct Shared {
    pub(crate) layout: SpaceLayout,
    pub(crate) pool: FramePool,
    pub(crate) devices: Devices,
    pub(crate) executor: Executor<L4Platform>,
    pub(crate) threads: SpinLock<ThreadTable<Record>>,
    /// For each worker, the threads whose answers it has to send. Each queue has room for every
    /// thread.
    pub(crate) answers: Box<[SpinLock<VecDeque<Arc<Record>>>]>,
    /// The objects that workers end when they have no more urgent work. There is room for every
    /// thread and space.
    pub(crate) pending_destruction: SpinLock<Vec<PendingDestruction>>,
    /// The number of threads and spaces that exist.
    pub(crate) objects: AtomicUsize,
    /// The number of threads that run their programs, or will when they are scheduled.
    pub(crate) running: AtomicUsize,
    /// The assignment of threads to processors; `None` if there is only one processor.
    pub(crate) placement: Option<SpinLock<Placement>>,
    /// Whether there are processors without a worker.
    pub(crate) has_distant: bool,
    /// For each worker, the time for which its processor was free for programs; counted only with
    /// several processors.
    pub(crate) idle: Box<[IdleTime]>,
    /// The maximum size of a thread's extended state, in bytes.
    pub(crate) extended_size: usize,
    /// How many bytes of heap may be reserved, and how many are reserved.
    pub(crate) heap: usize,
    pub(crate) reserved: AtomicUsize,
    /// The time-stamp counter and the clock at the start. The length of a tick is calculated from
    /// how far both have advanced since then.
    pub(crate) epoch: (u64, u64),
}

/// Lends frames to a heap of the server.
pub struct HeapFrames(Arc<Shared>);

impl HeapFrames {
    /// One part in so many of the frames is not lent: the OOM killer needs some free frames to end
    /// a program.
    const KEPT_PART: u32 = 64;

    fn kept(&self) -> u32 {
        self.0.pool.limit() / HeapFrames::KEPT_PART
    }
}

impl Lender for HeapFrames {
    fn lend(&self, bytes: usize) -> Option<&'static mut [u8]> {
        let pages = bytes.div_ceil(PAGE_SIZE as usize).checked_next_power_of_two()?;
        if pages > self.0.pool.limit() as usize {
            return None;
        }
        self.0.pool.lend(pages.ilog2(), self.kept())
    }

    fn take_back(&self, piece: &'static mut [u8]) {
        self.0.pool.take_back(piece);
    }

    fn available(&self) -> usize {
        (self.0.pool.free().saturating_sub(self.kept()) as usize) << PAGE_SHIFT
    }
}

impl Shared {
    /// Counts a new thread or space, and reserves room for it in the queues.
    fn admit(&self) -> KernResult {
        let objects = self.objects.fetch_add(1, Ordering::Relaxed) + 1;
        let mut room = {
            let mut pending_destruction = self.pending_destruction.lock();
            let more = objects.saturating_sub(pending_destruction.len());
            pending_destruction.try_reserve(more).is_ok()
        };
        for answers in &self.answers {
            let mut answers = answers.lock();
            let more = objects.saturating_sub(answers.len());
            room &= answers.try_reserve(more).is_ok();
        }
        if room {
            return Ok(());
        }
        self.release();
        Err(KernError::ResourceShortage)
    }

    /// Counts a thread or space that no longer exists.
    fn release(&self) {
        self.objects.fetch_sub(1, Ordering::Relaxed);
    }

    /// Converts ticks of the time-stamp counter to microseconds.
    pub(crate) fn microseconds(&self, ticks: u64) -> u64 {
        if ticks == 0 {
            return 0;
        }
        let passed = u128::from(kernel::time_stamp().wrapping_sub(self.epoch.0)).max(1);
        let clock = u128::from(system_clock().saturating_sub(self.epoch.1));
        u64::try_from(u128::from(ticks) * clock / passed).unwrap_or(u64::MAX)
    }

    /// The present moment, for [`Placement`].
    pub(crate) fn moment(&self) -> Moment<'_> {
        Moment { stamp: kernel::time_stamp(), idle: &self.idle }
    }

    /// Queues a thread's answer for its worker.
    pub(crate) fn post(&self, worker: usize, record: Arc<Record>) {
        self.answers[worker].lock().push_back(record);
        if self.answers.len() > 1 {
            // If a worker queues an answer for itself this does not notify it. That is not needed:
            // it looks at its queue before it waits.
            self.executor.platform().notify(worker);
        }
    }

    /// The thread whose answer the worker is to send next.
    #[inline]
    pub(crate) fn next_answer(&self, worker: usize) -> Option<Arc<Record>> {
        self.answers[worker].lock().pop_front()
    }

    /// The thread whose answer the worker is to send, if it is the only one.
    #[inline]
    pub(crate) fn only_answer(&self, worker: usize) -> Option<Arc<Record>> {
        let mut answers = self.answers[worker].lock();
        if answers.len() == 1 { answers.pop_front() } else { None }
    }

    /// Caches a thread that no [`UserThread`] has any more, or queues it for destruction.
    pub(crate) fn thread_ended(&self, space: &Space, place: u32, thread: ThreadId, worker: usize) {
        self.threads.lock().remove(thread);
        if space.0.leave(place, thread, worker) {
            self.pending_destruction.lock().push(PendingDestruction::Thread(space.clone(), place, thread));
        } else {
            self.release();
        }
    }

    /// Ends the threads and spaces that are pending destruction, by requests to root.
    pub(crate) fn reap(&self) {
        loop {
            let Some(pending_destruction) = self.pending_destruction.lock().pop() else { return };
            match pending_destruction {
                PendingDestruction::Thread(space, place, thread) => {
                    // This fails only if the space, and the thread with it, has ended.
                    let _ = root::delete_thread(thread);
                    space.0.fill(place, None);
                }
                PendingDestruction::Space(space) => {
                    // This cannot fail: the server has made the space, and ends it only here.
                    let _ = root::delete(space.0.handle);
                }
            }
            self.release();
        }
    }

    /// The address in the server's space of a page.
    #[inline]
    fn source(&self, page: PhysicalPage) -> Option<u64> {
        match page {
            PhysicalPage::Frame(frame) => Some(self.pool.address(frame)),
            PhysicalPage::Device(address, _) => self.devices.address(address),
        }
    }
}

/// The library's error for the status of a request that root refused.
fn refused(status: Status) -> KernError {
    match status {
        Status::QuotaExceeded | Status::NoMemory => KernError::ResourceShortage,
        Status::InvalidArgument => KernError::Terminated,
        _ => KernError::Failure,
    }
}

impl L4Machine {
    pub(crate) fn new(shared: Arc<Shared>) -> L4Machine {
        L4Machine(shared)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// The worker that the calling thread drives; 0 if it drives none.
    pub fn current_worker(&self) -> usize {
        self.0.executor.platform().current()
    }

    /// How a processor's time since the start was used: by programs, and by its worker. The rest
    /// was idle. `None` with one processor, for which only the threads' times are known.
    pub fn processor_times(&self, processor: usize) -> Option<Times> {
        let shared = &self.0;
        let mut placement = shared.placement.as_ref()?.lock();
        if processor >= placement.processors() {
            return None;
        }
        let now = shared.moment();
        let program = placement.used_by_programs(processor, now);
        drop(placement);
        let server = shared
            .idle
            .get(processor)
            .map_or(0, |idle| now.stamp.wrapping_sub(shared.epoch.0).saturating_sub(idle.until(now.stamp)));
        Some(Times { program: shared.microseconds(program), server: shared.microseconds(server) })
    }

    /// Starts a task on a worker.
    ///
    /// # Errors
    /// `ResourceShortage`: there is no memory for the task.
    pub fn spawn<F>(&self, worker: usize, future: F) -> KernResult<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.executor.spawn(worker, future).map_err(|_| KernError::ResourceShortage)
    }

    fn make_thread(&self, space: &Space) -> KernResult<UserThread> {
        let shared = &self.0;
        let worker = self.current_worker();
        shared.admit()?;
        let Taken { thread: id, place, used } =
            self.find_or_make(space, worker).inspect_err(|_| shared.release())?;
        let assignment = match &shared.placement {
            None => Ok(Assignment::default()),
            Some(placement) => placement.lock().enter(id, used, worker),
        };
        // From here on, dropping `thread` undoes all steps.
        let thread = UserThread::new(shared, space, (id, place), worker, assignment.unwrap_or_default());
        assignment.map_err(|_| KernError::ResourceShortage)?;
        let entered = shared.threads.lock().insert(id, Arc::downgrade(&thread.0));
        entered.map_err(|_| KernError::ResourceShortage)?;
        Ok(thread)
    }

    /// Returns a thread of the space: a cached one with its registers reset, or a new one.
    fn find_or_make(&self, space: &Space, worker: usize) -> KernResult<Taken> {
        let handler = self.0.executor.platform().worker(worker);
        let record = &space.0;
        let place = match record.find_thread()? {
            Found::Cached { thread, place, used, worker: old } => {
                let known = if old == worker { Ok(()) } else { kernel::set_handlers(thread, handler) };
                match known.and_then(|()| if used { renew(thread) } else { Ok(()) }) {
                    Ok(()) => return Ok(Taken { thread, place, used }),
                    // The registers of the thread cannot be reset: it is still in the middle of a
                    // system call.
                    Err(_) if thread == record.anchor => {
                        record.leave(place, thread, if known.is_ok() { worker } else { old });
                        return Err(KernError::ResourceShortage);
                    }
                    Err(_) => {
                        // This fails only if the space has ended; then the next request fails, too.
                        let _ = root::delete_thread(thread);
                        place
                    }
                }
            }
            Found::Place(place) => place,
        };
        let made = root::create_thread(record.handle, place, handler);
        if !record.fill(place, made.ok()) {
            return Err(KernError::Terminated);
        }
        made.map(|thread| Taken { thread, place, used: false }).map_err(refused)
    }

    /// Sets what a foreign system call does in a space (docs/src/architecture.md, K9): it becomes a
    /// message to the server, or continues at `emulation_entry`. New spaces have exception mode.
    ///
    /// # Errors
    /// `InvalidArgument`: a program cannot have memory at this address. `Terminated`: the space has
    /// ended.
    pub fn set_system_call_mode(
        &self,
        space: &Space,
        mode: SystemCallMode,
        emulation_entry: u64,
    ) -> KernResult {
        let anchor = space.0.anchor;
        extension::set_emulation_entry(anchor, emulation_entry)
            .and_then(|()| extension::set_system_call_mode(anchor, mode))
            .map_err(kernel::error)
    }

    /// How many bytes of heap [`Machine::reserve_memory`] has reserved.
    pub fn reserved_memory(&self) -> usize {
        self.0.reserved.load(Ordering::Relaxed)
    }

    /// Returns a lender of frames for heaps of the server ([`rt::heap::Lender`]). It keeps a part
    /// of them for programs.
    pub fn lender(&self) -> HeapFrames {
        HeapFrames(self.0.clone())
    }

    /// The region of this server's memory that holds the frames, in the order of their numbers: its
    /// address, and its size in bytes as root has given it.
    pub fn pool(&self) -> (u64, u64) {
        (self.0.pool.address(Frame(0)), self.frame_bytes())
    }

    /// The aligned word at `offset` of a frame, which the server shares with programs that can only
    /// read it.
    ///
    /// # Panics
    /// If the word does not lie in the frame, or is not aligned.
    pub fn frame_word(&self, frame: Frame, offset: usize) -> &AtomicU64 {
        self.0.pool.long_word(frame, offset)
    }

    /// The number of bytes of all frames, used or free.
    pub fn frame_bytes(&self) -> u64 {
        u64::from(self.0.pool.limit()) << PAGE_SHIFT
    }

    /// The number of spaces and threads of programs, including those that have ended and wait for
    /// root to destroy them.
    pub fn objects(&self) -> usize {
        self.0.objects.load(Ordering::Relaxed)
    }

    /// How many bytes of kernel memory a space uses.
    ///
    /// # Errors
    /// `Terminated`: the space has ended.
    pub fn kernel_memory(&self, space: &Space) -> KernResult<u64> {
        extension::kernel_memory(space.0.anchor).map_err(kernel::error)
    }

    /// Carries out changes of a translation that are not a single page to enter.
    #[inline(never)]
    fn change_many(&self, pmap: &Pmap, changes: &[PmapChange]) -> Result<(), PmapFull> {
        let source = |page| self.0.source(page);
        let make = |items: &mut [MapItem]| kernel::map_control(pmap.space.0.anchor, items);
        let enters = changes.iter().any(|change| matches!(change, PmapChange::Enter { .. }));
        // Relaxed: the caller allows only one change of a space's translation at a time.
        if enters {
            pmap.entered.store(true, Ordering::Relaxed);
        } else if !pmap.entered.load(Ordering::Relaxed) {
            return Ok(());
        }
        match changes.len() {
            0 => Ok(()),
            1 => changes::carry_out::<1>(changes, source, make),
            2..=16 => changes::carry_out::<16>(changes, source, make),
            _ => changes::carry_out::<BATCH>(changes, source, make),
        }
    }

    /// Carries out items on the mappings that other spaces have of the server's own pages.
    fn control_own(&self, items: &mut [MapItem]) {
        // This cannot fail: a mapping derived from an own page can always be queried and reduced.
        let _ = kernel::map_control(utcb::my_global_id(), items);
    }
}

/// Resets the registers of a cached thread. One that has breakpoints has extended state, too.
fn renew(thread: ThreadId) -> KernResult {
    if kernel::write_registers(thread, &Registers([0; 20]))?.has_extended_state() {
        kernel::write_extended_state(thread, &initial_extended_state())?;
        kernel::write_breakpoints(thread, &Breakpoints::default())?;
    }
    Ok(())
}

impl Machine for L4Machine {
    type Pmap = Pmap;
    type Space = Space;
    type Thread = UserThread;

    fn page_shifts(&self) -> &[u32] {
        &PAGE_SHIFTS
    }

    /// Makes a new space by a request to root.
    async fn pmap_create(&self) -> KernResult<Pmap> {
        let shared = &self.0;
        shared.admit()?;
        let make = || {
            let SpaceLayout { kernel_interface, utcb_area, utcb_area_log2 } = shared.layout;
            let description = root::Description {
                kernel_interface,
                utcb_area,
                utcb_area_log2,
                system_calls: SystemCallMode::Exception,
                emulation_entry: 0,
                kernel_memory: u64::MAX,
            };
            let worker = self.current_worker();
            let handler = shared.executor.platform().worker(worker);
            let (handle, anchor) = root::create(&description, handler).map_err(refused)?;
            let record = SpaceRecord::new(handle, anchor, worker, shared.layout.threads());
            record.inspect_err(|_| {
                // This cannot fail: root has just made the space, and no thread of a program has
                // run in it.
                let _ = root::delete(handle);
            })
        };
        let record = make().inspect_err(|_| shared.release())?;
        Ok(Pmap { space: Space(Arc::new(record)), entered: AtomicBool::new(false) })
    }

    fn pmap_destroy(&self, pmap: Pmap) {
        let shared = &self.0;
        if pmap.space.0.end() {
            // The memory is unmapped before root deletes the space, because the frames may be used
            // for something else after this call.
            let end = shared.layout.kernel_interface.min(shared.layout.utcb_area);
            let everything = PmapChange::Remove { address: 0, length: end };
            let _ = self.pmap_change(&pmap, &[everything]);
            shared.pending_destruction.lock().push(PendingDestruction::Space(pmap.space));
        }
    }

    fn space(&self, pmap: &Pmap) -> Space {
        pmap.space.clone()
    }

    #[inline]
    fn pmap_change(&self, pmap: &Pmap, changes: &[PmapChange]) -> Result<(), PmapFull> {
        if let &[
            PmapChange::Enter { address, page: PhysicalPage::Frame(frame), shift: PAGE_SHIFT, protection },
        ] = changes
            && !protection.is_empty()
        {
            // The short path: most page faults end with one page that is entered.
            pmap.entered.store(true, Ordering::Relaxed);
            let target = Fpage::memory(address, PAGE_SHIFT).with_rights(changes::rights(protection));
            let item = MapItem::new(MapOperation::Map, target, 1, self.0.pool.address(frame));
            return extension::map_control_one(pmap.space.0.anchor, &item)
                .map(drop)
                .map_err(|_| PmapFull { index: 0 });
        }
        if let &[PmapChange::Remove { address, length: PAGE_SIZE }] = changes {
            if pmap.entered.load(Ordering::Relaxed) {
                let target = Fpage::memory(address, PAGE_SHIFT);
                let item = MapItem::new(MapOperation::Unmap, target, 1, 0);
                // Unmapping cannot fail.
                let _ = extension::map_control_one(pmap.space.0.anchor, &item);
            }
            return Ok(());
        }
        self.change_many(pmap, changes)
    }

    fn pmap_query(&self, pmap: &Pmap, addresses: &[u64], status: &mut [PageStatus]) {
        query(
            addresses,
            status,
            |&address| address,
            |items| {
                // This cannot fail: the space exists as long as its translation.
                let _ = kernel::map_control(pmap.space.0.anchor, items);
            },
        );
    }

    fn frame_limit(&self) -> u32 {
        self.0.pool.limit()
    }

    fn free_frames(&self) -> u32 {
        self.0.pool.free()
    }

    fn allocate_frames(&self, order: u32) -> Option<Frame> {
        self.0.pool.allocate(order)
    }

    fn release_frames(&self, first: Frame, order: u32) {
        self.0.pool.release(first, order);
    }

    #[inline]
    fn zero_frame(&self, frame: Frame) {
        self.0.pool.zero(frame);
    }

    #[inline]
    fn copy_frame(&self, from: Frame, to: Frame) {
        self.0.pool.copy(from, to);
    }

    #[inline]
    fn read_frame(&self, frame: Frame, offset: usize, buffer: &mut [u8]) {
        self.0.pool.read(frame, offset, buffer);
    }

    #[inline]
    fn write_frame(&self, frame: Frame, offset: usize, bytes: &[u8]) {
        self.0.pool.write(frame, offset, bytes);
    }

    #[inline]
    fn copy_between(&self, from: (Frame, usize), to: (Frame, usize), length: usize) {
        self.0.pool.copy_between(from, to, length);
    }

    fn load_u32(&self, frame: Frame, offset: usize) -> u32 {
        // SeqCst, as for the exchange below: programs order other accesses by these.
        self.0.pool.word(frame, offset).load(Ordering::SeqCst)
    }

    fn compare_exchange_u32(&self, frame: Frame, offset: usize, current: u32, new: u32) -> Result<u32, u32> {
        let word = self.0.pool.word(frame, offset);
        word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    fn frames_protect(&self, frames: &[Frame], protection: Protection) {
        let rights = changes::rights(protection);
        for some in frames.chunks(BATCH) {
            let mut items = [MapItem::default(); BATCH];
            let mut count = 0;
            for run in some.chunk_by(|frame, next| frame.0 + 1 == next.0) {
                let address = self.0.pool.address(run[0]);
                items[count] = changes::item(MapOperation::Protect, address, run.len() as u32, rights);
                count += 1;
            }
            self.control_own(&mut items[..count]);
        }
    }

    fn frames_status(&self, frames: &[Frame], status: &mut [PageStatus]) {
        query(frames, status, |&frame| self.0.pool.address(frame), |items| self.control_own(items));
    }

    fn reserve_memory(&self, bytes: usize) -> bool {
        // Relaxed: the count guards no other data.
        let reserve = |reserved: usize| reserved.checked_add(bytes).filter(|&all| all <= self.0.heap);
        self.0.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_ok()
    }

    fn unreserve_memory(&self, bytes: usize) {
        self.0.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes a thread that the calling worker serves. Its priority is 100. Root is asked only
    /// if the space has no cached thread.
    async fn thread_create(&self, space: &Space) -> KernResult<UserThread> {
        self.make_thread(space)
    }

    fn extended_state_size(&self) -> usize {
        self.0.extended_size
    }

    fn now(&self) -> u64 {
        system_clock()
    }

    fn sleep_until(&self, time: u64) -> impl Future<Output = ()> + Send {
        let executor = &self.0.executor;
        executor.sleep_until(executor.platform().current(), time)
    }

    fn processors(&self) -> usize {
        self.0.placement.as_ref().map_or(1, |placement| placement.lock().processors())
    }

    fn current_processor(&self) -> usize {
        self.current_worker()
    }

    /// The kernel reads a thread's state on the thread's processor, where it interrupts what runs.
    fn synchronize_processors(&self) {
        let platform = self.0.executor.platform();
        let own = platform.current();
        for worker in (0..self.0.idle.len()).filter(|&worker| worker != own) {
            let thread = platform.worker(worker);
            // A worker's thread exists as long as the server. One that has not started serves none.
            let _ = kernel::visit(thread);
        }
        if self.0.has_distant {
            let places = self.0.threads.lock().places();
            for place in 0..places {
                let record = self.0.threads.lock().record(place);
                if let Some(record) = record.filter(|record| record.runs()) {
                    // A thread that has ended meanwhile runs nowhere.
                    let _ = kernel::visit(record.id);
                }
            }
        }
    }
}

/// Queries pages one by one, in batches, and clears the bits of each that it reads.
fn query<T>(
    pages: &[T],
    status: &mut [PageStatus],
    address: impl Fn(&T) -> u64,
    mut control: impl FnMut(&mut [MapItem]),
) {
    for (some, status) in pages.chunks(BATCH).zip(status.chunks_mut(BATCH)) {
        let mut items = [MapItem::default(); BATCH];
        for (item, page) in items.iter_mut().zip(some) {
            *item = changes::item(MapOperation::Query, address(page), 1, Rights::NONE)
                .clearing(MapItem::CLEAR_REFERENCED | MapItem::CLEAR_DIRTY);
        }
        control(&mut items[..some.len()]);
        for (item, status) in items.iter().zip(status) {
            let answer = MapAnswer(item.answer);
            *status = PageStatus::empty();
            status.set(PageStatus::REFERENCED, answer.is_referenced());
            status.set(PageStatus::MODIFIED, answer.is_dirty());
        }
    }
}
