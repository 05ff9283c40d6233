//! The disks of the Unix server: the client's half of the way to the drivers of block devices,
//! whose requests are about frames of the pool.

use crate::places::{DISK_NEWS, DISK_RESERVE, DISKS, FIRST_DISK_NEWS};
use crate::report::say;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use block::attach::{self, Attached};
use block::client::{Client, Ticket};
use block::description::Description;
use block::request::{Operation, Request, SEGMENTS, Segments};
use block::{PAGE, SECTOR, area};
use core::time::Duration;
use l4::x2::ThreadId;
use macadamia_sync::WaitQueue;
use macadamia_sync::oneshot::{Receiver, Sender, oneshot};
use mach::Machine;
use mach::machine::Frame;
use mach_l4::L4Machine;
use rt::root::memory;
use unix::disk::{About, Family, Store};
use unix::sync::SpinLock;
use unix::{BoxFuture, Error, Result};

/// The names of the servers that drive disks, in the order of the disks' names.
const NAMES: [&str; 4] = ["disk", "disk1", "disk2", "disk3"];
/// How far the memory that is shared with a driver is from that of the driver before. A driver that
/// is started again takes the next area.
const DISTANCE: u64 = 1 << 32;
/// How often root starts a driver again, at most.
const RESTARTS: u64 = 5;
/// How often a driver that has requests is looked after, and how long one may take to be started
/// again.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
/// How many pages a request has at most.
const MOST_PAGES: usize = SEGMENTS;
/// The number of the pool of frames in requests.
const FRAMES: u16 = 0;

/// A disk, as the page cache sees it.
pub(crate) struct Disk {
    machine: L4Machine,
    name: &'static str,
    /// The thread that is notified, and by which bits.
    thread: ThreadId,
    news: u64,
    description: Description,
    state: SpinLock<State>,
    /// Woken when there is a request.
    issued: WaitQueue,
}

struct State {
    client: Client<'static>,
    driver: ThreadId,
    /// Where the memory shared with the next driver will be.
    next_area: u64,
    restarts: u64,
    waiting: BTreeMap<Ticket, Sender<Result<(), block::Error>>>,
}

/// Reserves the memory that the disks' drivers will share with this server, for as many disks as
/// the configuration has. It is called before the frames take all memory.
pub(crate) fn reserve() -> usize {
    let count = NAMES.iter().take_while(|name| rt::root::names::lookup_wait(name).is_ok()).count();
    for number in 0..count as u64 * (RESTARTS + 1) {
        if memory::allocate(DISK_RESERVE + number * area::SIZE, area::SIZE).is_err() {
            say(format_args!("unix: there is no memory for the drivers of disks"));
        }
    }
    count
}

/// Opens the `index`th disk. The calling thread must be the worker that gets its notifications.
pub(crate) fn open(machine: &L4Machine, index: usize) -> Option<(Arc<Disk>, About)> {
    let (name, news) = (NAMES[index], FIRST_DISK_NEWS << index);
    let first = DISKS + index as u64 * DISTANCE;
    let thread = l4::utcb::my_global_id();
    give_back(index as u64 * (RESTARTS + 1));
    let attached = match attach::attach(name, true, first, thread, news, &[machine.pool()]) {
        Ok(attached) => attached,
        Err(status) => {
            say(format_args!("unix: the disk of the server {name} cannot be opened: {status:?}"));
            return None;
        }
    };
    let Attached { driver, area, description, identity } = attached;
    let state = State {
        client: Client::new(area),
        driver,
        next_area: first + area::SIZE,
        restarts: 0,
        waiting: BTreeMap::new(),
    };
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
        serial: identity,
    };
    let (state, issued, machine) = (SpinLock::new(state), WaitQueue::new(), machine.clone());
    let disk = Arc::new(Disk { machine, name, thread, news, description, state, issued });
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
        let (notified, driver) = {
            let mut state = self.state.lock();
            let ticket = state.client.issue(request).map_err(error)?;
            state.waiting.insert(ticket, sender);
            (state.client.must_notify(), state.driver)
        };
        if notified {
            attach::notify(driver);
        }
        self.issued.wake_one();
        Ok(receiver)
    }

    /// Takes the answers that there are, and wakes the tasks that wait for them.
    fn collect(&self) {
        loop {
            let (mut answers, mut notified) = (Vec::new(), false);
            let (more, driver) = {
                let state = &mut *self.state.lock();
                while let Some((ticket, result)) = state.client.take() {
                    answers.extend(state.waiting.remove(&ticket).map(|sender| (sender, result)));
                    notified |= state.client.must_notify();
                }
                (state.client.sleep(), state.driver)
            };
            if notified {
                attach::notify(driver);
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

    /// Issues a request again to the driver that is started in place of one that has ended. Ends
    /// when no driver is started any more.
    pub(crate) async fn look_after(self: Arc<Self>, log: impl Fn(core::fmt::Arguments<'_>)) {
        loop {
            let is_busy = || (self.state.lock().client.outstanding() > 0).then_some(());
            self.issued.wait_until(is_busy).await;
            self.sleep(LOOK).await;
            let (driver, is_busy) = {
                let state = self.state.lock();
                (state.driver, state.client.outstanding() > 0)
            };
            if !is_busy || !attach::has_ended(driver) {
                continue;
            }
            self.state.lock().client.detach();
            if self.attach_again().await {
                log(format_args!("the disk's driver {} was started again", self.name));
            } else {
                log(format_args!("the disk's driver {} has ended for good", self.name));
                self.state.lock().client.fail(block::Error::Gone);
                self.collect();
                return;
            }
        }
    }

    /// Attaches to the driver that is started next. Returns false if none is.
    async fn attach_again(&self) -> bool {
        let deadline = self.machine.now() + PATIENCE.as_micros() as u64;
        while self.machine.now() < deadline {
            let (address, restarts) = {
                let state = self.state.lock();
                (state.next_area, state.restarts)
            };
            if restarts == RESTARTS {
                return false;
            }
            // Without waiting: no other task would run meanwhile.
            if rt::root::names::lookup(self.name).is_ok() {
                let index = u64::from((self.news / FIRST_DISK_NEWS).trailing_zeros());
                give_back(index * (RESTARTS + 1) + restarts + 1);
                let pools = [self.machine.pool()];
                let attached = attach::attach(self.name, false, address, self.thread, self.news, &pools);
                let mut state = self.state.lock();
                state.next_area += area::SIZE;
                state.restarts += 1;
                match attached {
                    // Another disk has other contents.
                    Ok(attached) if attached.description == self.description => {
                        state.driver = attached.driver;
                        state.client.restart(attached.area);
                        let (notified, driver) = (state.client.must_notify(), state.driver);
                        drop(state);
                        if notified {
                            attach::notify(driver);
                        }
                        self.collect();
                        return true;
                    }
                    Ok(_) => return false,
                    Err(_) => {}
                }
            }
            self.sleep(LOOK).await;
        }
        false
    }

    async fn sleep(&self, time: Duration) {
        self.machine.sleep_until(self.machine.now() + time.as_micros() as u64).await;
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
