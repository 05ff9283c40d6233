//! The system on which the tests run: a Mach host on the L4 machine, with swap space in the
//! server's heap.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use l4::kip;

use macadamia_sync::SpinLock;
use mach::machine::{Machine, PAGE_SIZE};
use mach::thread::PriorityRange;
use mach::vm::{BoxFuture, DataRequest, DataReturn, DefaultPager, Pager, Settings, SwapPager, Vm, VmObject};
use mach::{Host, KernResult, Task};
use mach_l4::{Configuration, L4Machine, SpaceLayout};

use crate::servant::{self, Servant, TOP};

/// The size of all frames in bytes. It is small, so that tests use them up.
const FRAMES: u64 = 8 << 20;
const HEAP: u64 = 48 << 20;
/// How often `usage` is read before a difference counts as a leak.
const PATIENCE: usize = 200;

/// Everything that tests use.
pub(crate) struct System {
    pub(crate) machine: L4Machine,
    pub(crate) host: Arc<Host<L4Machine>>,
}

/// The numbers of objects that exist, which must be the same before and after each test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    free_frames: u32,
    reserved: usize,
    objects: usize,
    tasks: usize,
}

impl System {
    pub(crate) fn start(grow_heap: fn(&'static mut [u8])) -> System {
        let processors = kip().processor_info().processors as usize;
        let configuration = Configuration {
            workers: processors,
            processors,
            frames: Some(FRAMES),
            heap: Some(HEAP),
            grow_heap,
            layout: SpaceLayout::default(),
        };
        let machine = L4Machine::start(&configuration).unwrap_or_else(|error| panic!("{error}"));
        let settings =
            Settings { fault_around: 16, cluster: 8, free_target: 64, free_reserve: 16, large_pages: false };
        let vm = Vm::with_settings(machine.clone(), settings).expect("memory for the table of frames");
        vm.set_default_pager(Arc::new(Swap));
        machine.spawn(0, vm.clone().page_out_daemon()).expect("memory for a task");
        let host = Host::new(vm, PriorityRange::default(), 10_000);
        System { machine, host }
    }

    pub(crate) fn vm(&self) -> &Arc<Vm<L4Machine>> {
        self.host.vm()
    }

    pub(crate) fn usage(&self) -> Usage {
        let statistics = self.vm().statistics();
        Usage {
            free_frames: statistics.free,
            reserved: self.machine.reserved_memory(),
            objects: self.machine.objects(),
            tasks: self.host.tasks().len(),
        }
    }

    /// Waits for a while until the usage is the same as `before`: the server frees some things
    /// only after the call that released them has returned.
    pub(crate) async fn settled_usage(&self, before: Usage) -> Usage {
        for _ in 0..PATIENCE {
            if self.usage() == before {
                break;
            }
            self.machine.sleep_until(self.machine.now() + 1000).await;
        }
        self.usage()
    }

    /// Makes a task whose memory has the servant's code.
    pub(crate) async fn task(&self) -> KernResult<Arc<Task<L4Machine>>> {
        let task = self.host.create_task(PAGE_SIZE, TOP).await?;
        servant::load(task.map()).await?;
        Ok(task)
    }

    /// Makes a task with a thread that carries out commands.
    pub(crate) async fn servant(&self) -> KernResult<Servant> {
        Servant::start(&self.task().await?).await
    }
}

/// A default pager whose swap space is in the server's heap.
pub(crate) struct Swap;

/// How many pages were written to swap space, and how many were read.
pub(crate) static RETURNED: AtomicU32 = AtomicU32::new(0);
pub(crate) static REQUESTED: AtomicU32 = AtomicU32::new(0);

type Page = Box<[u8; PAGE_SIZE as usize]>;

/// The pages of one object in swap space.
struct SwapFile(SpinLock<BTreeMap<u64, Page>>);

impl DefaultPager<L4Machine> for Swap {
    fn create(&self, _: &Arc<VmObject<L4Machine>>) -> KernResult<Arc<dyn SwapPager<L4Machine>>> {
        Ok(Arc::new(SwapFile(SpinLock::new(BTreeMap::new()))))
    }
}

impl SwapPager<L4Machine> for SwapFile {}

impl Pager<L4Machine> for SwapFile {
    fn data_request<'a>(&'a self, request: DataRequest<'a, L4Machine>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move {
            // The answer comes later, as a disk's would.
            request.machine.sleep_until(request.machine.now() + 10).await;
            let pages = self.0.lock();
            let mut done = 0;
            while done < request.length() {
                let Some(page) = pages.get(&(request.offset + done as u64)) else { break };
                request.write(done, &page[..]);
                done += page.len();
                REQUESTED.fetch_add(1, Ordering::Relaxed);
            }
            Ok(done)
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, L4Machine>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            data.machine.sleep_until(data.machine.now() + 10).await;
            for at in (0..data.length()).step_by(PAGE_SIZE as usize) {
                let mut page = Box::new([0; PAGE_SIZE as usize]);
                data.read(at, &mut page[..]);
                self.0.lock().insert(data.offset + at as u64, page);
                RETURNED.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
    }
}
