//! The disks of the Unix server: the client's half of the way to the drivers of block devices,
//! whose requests are about frames of the pool.

use crate::again;
use crate::places::{DISK_NEWS, DISK_RESERVE, DISKS, FIRST_DISK_NEWS};
use crate::report::say;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use block::client::{Client, Ticket};
use block::device::{Attachment, Device};
use block::request::{Operation, Request, SEGMENTS, Segments};
use block::{PAGE, SECTOR, area};
use core::fmt::Arguments;
use core::time::Duration;
use macadamia_sync::WaitQueue;
use macadamia_sync::oneshot::{Receiver, Sender, oneshot};
use mach::machine::Frame;
use mach_l4::L4Machine;
use rt::root::{Status, memory};
use unix::disk::{About, Family, Store};
use unix::sync::SpinLock;
use unix::{BoxFuture, Environment, Error, Result};

/// The names of the servers that drive disks, in the order of the disks' names.
const NAMES: [&str; 4] = ["disk", "disk1", "disk2", "disk3"];
/// How far the memory that is shared with one driver is from that of the next.
const DISTANCE: u64 = 1 << 32;
/// How often a driver that has requests is looked at, which may have ended.
const LOOK: Duration = Duration::from_millis(20);
/// How many pages a request has at most.
const MOST_PAGES: usize = SEGMENTS;
/// The number of the pool of frames in requests.
const FRAMES: u16 = 0;

/// A disk, as the page cache sees it.
pub(crate) struct Disk {
    name: &'static str,
    /// The bits by which the driver notifies the server.
    news: u64,
    device: Device,
    state: SpinLock<State>,
    /// Woken when there is a request.
    issued: WaitQueue,
}

struct State {
    client: Client<'static>,
    waiting: BTreeMap<Ticket, Sender<Result<(), block::Error>>>,
}

/// Reserves the memory that the disks' drivers will share with this server. Returns which of them
/// there are: one whose device the machine lacks has ended. It is called before the frames take all
/// memory.
pub(crate) fn reserve() -> Vec<usize> {
    let is_there = |index: &usize| rt::root::names::lookup_wait(NAMES[*index]).is_ok();
    let disks: Vec<usize> = (0..NAMES.len()).filter(is_there).collect();
    for &index in &disks {
        if memory::allocate(DISK_RESERVE + index as u64 * area::SIZE, area::SIZE).is_err() {
            say(format_args!("unix: there is no memory for the drivers of disks"));
        }
    }
    disks
}

/// Opens the disk of the driver [`NAMES`] has at `index`. The calling thread must be the worker
/// that gets its notifications.
pub(crate) fn open(machine: &L4Machine, index: usize) -> Option<(Arc<Disk>, About)> {
    let (name, news) = (NAMES[index], FIRST_DISK_NEWS << index);
    give_back(index as u64);
    let thread = l4::utcb::my_global_id();
    let attachment = Attachment { thread, bits: news, pools: vec![machine.pool()] };
    let (device, client) = match Device::open(name, DISKS + index as u64 * DISTANCE, attachment) {
        Ok(opened) => opened,
        Err(status) => {
            say(format_args!("unix: the disk of the server {name} cannot be opened: {status:?}"));
            return None;
        }
    };
    let description = device.description();
    let about = About {
        family: match description.family {
            block::description::Family::Virtio => Family::Virtio,
            block::description::Family::Nvme => Family::Nvme,
        },
        size: description.sectors * SECTOR,
        logical: description.logical,
        physical: description.physical,
        read_only: description.read_only,
        has_cache: description.flushes,
        discard: u64::from(description.discard) * SECTOR,
        geometry: description.geometry.map(|it| (it.cylinders, it.heads, it.sectors)),
        serial: device.identity().to_vec(),
    };
    let state = SpinLock::new(State { client, waiting: BTreeMap::new() });
    let disk = Arc::new(Disk { name, news, device, state, issued: WaitQueue::new() });
    disk.collect();
    Some((disk, about))
}

/// Gives back the reserve of this number, so that the memory of an area can be had.
fn give_back(reserve: u64) {
    // SAFETY: nothing uses the reserve.
    #[allow(unsafe_code, reason = "the reserve is memory that no object is in")]
    let _ = unsafe { memory::free(DISK_RESERVE + reserve * area::SIZE, area::SIZE) };
}

impl Disk {
    /// The bits of notifications that are this disk's.
    pub(crate) fn notified(&self, bits: u64) {
        if bits & self.news & DISK_NEWS != 0 {
            self.collect();
        }
    }

    /// Issues a request.
    fn issue(&self, request: Request) -> Result<Receiver<Result<(), block::Error>>> {
        let (sender, receiver) = oneshot();
        let notified = {
            let mut state = self.state.lock();
            let ticket = state.client.issue(request).map_err(error)?;
            state.waiting.insert(ticket, sender);
            state.client.must_notify()
        };
        if notified {
            self.device.notify();
        }
        self.issued.wake_one();
        Ok(receiver)
    }

    /// Takes the answers that there are, and wakes the tasks that wait for them.
    fn collect(&self) {
        loop {
            let (mut answers, mut notified) = (Vec::new(), false);
            let more = {
                let state = &mut *self.state.lock();
                while let Some((ticket, result)) = state.client.take() {
                    answers.extend(state.waiting.remove(&ticket).map(|sender| (sender, result)));
                    notified |= state.client.must_notify();
                }
                state.client.sleep()
            };
            if notified {
                self.device.notify();
            }
            for (sender, result) in answers {
                // The task that waits may have ended.
                let _ = sender.send(result);
            }
            if !more {
                return;
            }
        }
    }

    /// Issues the requests without an answer again to the driver that is started in place of one
    /// that has ended. Ends when no driver is started any more.
    pub(crate) async fn look_after(
        self: Arc<Self>,
        clock: Arc<dyn Environment>,
        log: impl Fn(Arguments<'_>),
    ) {
        loop {
            let is_busy = || (self.state.lock().client.outstanding() > 0).then_some(());
            self.issued.wait_until(is_busy).await;
            clock.sleep_until(clock.monotonic() + LOOK).await;
            if is_busy().is_none() || !self.device.has_ended() {
                continue;
            }
            self.state.lock().client.detach();
            let is_there = again::connect(&*clock, || self.connect_again()).await;
            if is_there {
                log(format_args!("the disk's driver {} was started again", self.name));
            } else {
                log(format_args!("the disk's driver {} has ended for good", self.name));
                self.state.lock().client.fail(block::Error::Gone);
            }
            self.collect();
            if !is_there {
                return;
            }
        }
    }

    fn connect_again(&self) -> core::result::Result<(), Status> {
        let area = self.device.open_again(self.name)?;
        let notified = {
            let mut state = self.state.lock();
            state.client.restart(area);
            state.client.must_notify()
        };
        if notified {
            self.device.notify();
        }
        Ok(())
    }

    /// Carries out the requests for data of these frames, several at a time.
    async fn transfer(
        &self,
        operation: Operation,
        mut sector: u64,
        sectors: u64,
        frames: &[Frame],
    ) -> Result<()> {
        let mut left = sectors;
        let mut receivers = Vec::new();
        let mut result = Ok(());
        for frames in frames.chunks(MOST_PAGES) {
            let count = left.min(frames.len() as u64 * (PAGE / SECTOR));
            let mut segments = Segments::default();
            // A frame's number is that of its page in the pool. There is room for so many pages.
            frames
                .iter()
                .for_each(|frame| assert!(segments.push(FRAMES, frame.0), "each page has a segment"));
            let request = Request { operation, sector, sectors: count as u32, offset: 0, segments };
            match self.issue(request) {
                Ok(receiver) => receivers.push(receiver),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            (sector, left) = (sector + count, left - count);
        }
        // All are awaited, since the device uses the frames until the last one has ended.
        for mut receiver in receivers {
            result = result.and(answer(&mut receiver).await);
        }
        result
    }

    async fn simple(&self, request: Request) -> Result<()> {
        answer(&mut self.issue(request)?).await
    }
}

async fn answer(receiver: &mut Receiver<Result<(), block::Error>>) -> Result<()> {
    receiver.receive().await.map_err(|_| Error::EIO)?.map_err(error)
}

/// The error that programs see.
fn error(error: block::Error) -> Error {
    match error {
        block::Error::Unsupported => Error::EOPNOTSUPP,
        block::Error::ReadOnly => Error::EROFS,
        block::Error::Shortage => Error::ENOMEM,
        _ => Error::EIO,
    }
}

impl Store<L4Machine> for Disk {
    fn read<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.transfer(Operation::Read, sector, sectors, frames))
    }

    fn write<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.transfer(Operation::Write { through: false }, sector, sectors, frames))
    }

    fn flush(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.simple(Request::flush()))
    }

    fn discard(&self, sector: u64, sectors: u64) -> BoxFuture<'_, Result<()>> {
        let (operation, segments) = (Operation::Discard, Segments::default());
        let request = Request { operation, sector, sectors: sectors as u32, offset: 0, segments };
        Box::pin(self.simple(request))
    }
}
