//! The start of the machine: takes memory from root and makes frames and heap of it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::AtomicUsize;

use l4::ipc::{self, Message};
use l4::x2::ThreadId;
use l4::{kip, utcb};
use macadamia_sync::SpinLock;
use rt::executor::Executor;
use rt::root::{Status, memory};
use rt::thread;

use crate::devices::Devices;
use crate::frames::FramePool;
use crate::idle_time::IdleTime;
use crate::machine::{L4Machine, Shared};
use crate::placement::{self, Placement};
use crate::platform::L4Platform;
use crate::registers;
use crate::thread_table::ThreadTable;

/// Address of the frames in the server's space.
const POOL: u64 = 0x1000_0000_0000;
/// Address of the server's growing heap.
const HEAP: u64 = 0x0800_0000_0000;
/// Memory is requested from root in multiples of this many bytes.
const LARGE_PAGE: u64 = memory::LARGE_PAGE;

/// Where the parts of a program's space are that belong to the kernel. They lie above all addresses
/// that the program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceLayout {
    /// Address of the space's kernel interface page.
    pub kernel_interface: u64,
    /// The address of the space's UTCB area, a multiple of the area's size.
    pub utcb_area: u64,
    /// The size of the UTCB area as a power of two: 2^n bytes hold 2^(n - 10) threads.
    pub utcb_area_log2: u32,
}

impl SpaceLayout {
    /// The number of threads that a space can have.
    pub fn threads(&self) -> usize {
        1 << (self.utcb_area_log2 - l4::x2::utcb::SIZE.ilog2())
    }
}

impl Default for SpaceLayout {
    /// Both parts lie at or above 0x7fff_8000_0000, in one GiB so that they share page tables, with
    /// room for 4096 threads.
    fn default() -> Self {
        Self { kernel_interface: 0x7fff_8000_0000, utcb_area: 0x7fff_8040_0000, utcb_area_log2: 22 }
    }
}

/// The parameters of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// How many workers there are, on the first processors: at most one for each. The calling
    /// thread is to drive the first by [`serve`](L4Machine::serve); for the others threads are
    /// made. A number larger than that of the processors is reduced to it.
    pub workers: usize,
    /// How many processors threads of programs may run on, at most 64.
    pub processors: usize,
    /// How many bytes of frames there are; `None`: all memory that root still gives.
    pub frames: Option<u64>,
    /// How many bytes of heap the library and the server get in addition to the heap with which the
    /// program began; `None`: an eighth of the memory that root gives.
    pub heap: Option<u64>,
    /// Adds memory to the program's heap: the `grow` function of [`rt::heap!`].
    pub grow_heap: fn(memory: &'static mut [u8]),
    /// The layout of programs' address spaces.
    pub layout: SpaceLayout,
}

/// Why the machine could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Root answered the request for memory with this status.
    Root(Status),
    /// Root has too little memory left.
    NoMemory,
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Root(status) => write!(formatter, "root gives no memory: {status:?}"),
            StartError::NoMemory => formatter.write_str("there is not enough memory"),
        }
    }
}

impl From<Status> for StartError {
    fn from(status: Status) -> Self {
        StartError::Root(status)
    }
}

impl L4Machine {
    /// Starts the machine with memory from root. It is called once in a program, by its first
    /// thread. Blocks until root has answered.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn start(configuration: &Configuration) -> Result<L4Machine, StartError> {
        let whole = |bytes: u64| bytes & !(LARGE_PAGE - 1);
        let heap = whole(configuration.heap.unwrap_or(memory::available()? / 8));
        if heap > 0 {
            memory::allocate(HEAP, heap)?;
            (configuration.grow_heap)(new_memory(HEAP, heap));
        }
        let processors = configuration.processors.clamp(1, placement::MOST);
        // The helper threads are made first, since the frames take all remaining memory.
        let helpers = Helpers::make(configuration.workers.clamp(1, processors) - 1)?;
        let frames = whole(configuration.frames.map_or_else(memory::available, Ok)?);
        if frames == 0 {
            return Err(StartError::NoMemory);
        }
        memory::allocate_pool(POOL, frames)?;
        let count = u32::try_from(frames >> 12).unwrap_or(u32::MAX);
        let pool = pool(count).ok_or(StartError::NoMemory)?;
        let workers = helpers.threads.len() + 1;
        let platform = L4Platform::new(workers);
        platform.set_worker(0, utcb::my_global_id());
        for (thread, worker) in helpers.threads.iter().zip(1..) {
            platform.set_worker(worker, *thread);
        }
        let answers = (0..workers).map(|_| SpinLock::new(VecDeque::new())).collect();
        let placement = (processors > 1).then(|| Placement::new(processors, workers, first_number()));
        let machine = L4Machine::new(Arc::new(Shared {
            layout: configuration.layout,
            pool,
            devices: Devices::map(),
            executor: Executor::new(platform, workers),
            threads: SpinLock::new(ThreadTable::new(first_number())),
            answers,
            pending_destruction: SpinLock::new(Vec::new()),
            objects: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            has_distant: placement.as_ref().is_some_and(Placement::has_distant),
            placement: placement.map(SpinLock::new),
            idle: (0..workers).map(|_| IdleTime::default()).collect(),
            extended_size: registers::extended_state_size(),
            heap: heap as usize,
            reserved: AtomicUsize::new(0),
            epoch: (crate::kernel::time_stamp(), l4::thread::system_clock()),
        }));
        helpers.set_to_work(&machine);
        Ok(machine)
    }
}

/// The threads that drive all workers but the first. They wait for the machine.
struct Helpers {
    threads: Vec<ThreadId>,
    machine: Arc<SpinLock<Option<L4Machine>>>,
}

impl Helpers {
    /// Starts helper threads on the processors from 1 on, in order.
    fn make(count: usize) -> Result<Helpers, StartError> {
        let machine = Arc::new(SpinLock::new(None));
        let starter = utcb::my_global_id();
        let mut threads = Vec::with_capacity(count);
        for worker in 1..=count {
            let given = machine.clone();
            let thread = thread::spawn_with_stack(thread::STACK_MAXIMUM, move || {
                // This fails only if the program's first thread does not exist any more.
                let _ = ipc::receive(starter);
                let machine: Option<L4Machine> = given.lock().clone();
                if let Some(machine) = machine {
                    machine.serve(worker, &mut |_bits| {});
                }
            })?;
            // Only its scheduler may move a thread; the first thread is that of the others. If
            // moving fails the worker is slow, but works.
            let _ = thread.place(worker as u64);
            threads.push(thread.id());
        }
        Ok(Helpers { threads, machine })
    }

    fn set_to_work(self, machine: &L4Machine) {
        *self.machine.lock() = Some(machine.clone());
        for &thread in &self.threads {
            // The helpers wait for this message, or are about to.
            let _ = ipc::send(thread, Message::new(0));
        }
    }
}

/// The lowest number that a thread of a program can have.
fn first_number() -> u32 {
    let first = kip().thread_info().user_base;
    debug_assert!(ThreadId::global(first, 1).is_some());
    first
}

#[allow(unsafe_code)]
fn new_memory(address: u64, size: u64) -> &'static mut [u8] {
    // SAFETY: root has just mapped this memory, zeroed, at an unused address. It stays mapped as
    // long as the program exists, and this is the only reference to it.
    unsafe { core::slice::from_raw_parts_mut(address as *mut u8, size as usize) }
}

#[allow(unsafe_code)]
fn pool(frames: u32) -> Option<FramePool> {
    // SAFETY: root has just mapped this memory at an unused address, and it stays mapped as long as
    // the program exists.
    unsafe { FramePool::new(POOL, frames) }
}
