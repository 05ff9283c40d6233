//! The servers of files: channels of messages. Those that devices lead to are for the file system
//! "9p", and drivers pass the messages on; those of disks are for the file systems of disks, and
//! ask for the disk in return.

use crate::again;
use crate::places;
use crate::report::say;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use macadamia_sync::WaitQueue;
use mach_l4::L4Machine;
use rt::root::Status;
use unix::disk::Device;
use unix::ext4::{DiskService, FileServers, Operation};
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;
use unix::v9fs::{Servers, Transport};
use unix::{AttemptError, BoxFuture, Environment, Error, Result};
use virtio_9p::area::{MESSAGE, SLOTS};
use virtio_9p::client::{self, Answer, Channel};
use virtio_9p::disk_slot::{self, Ask};

/// The name of the first server that drives a channel; those after it have a number at the end.
const NAME: &str = "share";
/// The name of the first file server of disks.
const DISK_NAME: &str = "ext4";
/// How often is looked whether a driver that has requests has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The servers of files.
pub(crate) struct Shares {
    /// For each driver its name, and the channel to it.
    links: SpinLock<Vec<(String, Arc<Link>)>>,
    /// The same for the file servers of disks.
    disk_links: SpinLock<Vec<(String, Arc<Link>)>>,
    /// Woken when there is a request.
    issued: Arc<WaitQueue>,
}

/// The channel to one server, and the requests that are outstanding.
struct Link {
    channel: Channel,
    /// How many slots are for requests.
    usable: usize,
    slots: SpinLock<[Slot; SLOTS]>,
    /// The tasks that wait for replies or for free slots.
    queue: PollQueue,
    has_ended: AtomicBool,
    /// Whether a file system uses it.
    is_busy: AtomicBool,
    /// Whether a task serves the disk of the server at the other end.
    is_served: AtomicBool,
    /// Woken when there is a request.
    issued: Arc<WaitQueue>,
}

/// What a slot of the channel is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    Used,
    /// Its request was given up, and the reply is still to come.
    Abandoned,
}

impl Shares {
    /// Opens all channels that the configuration has drivers for. The calling thread must be the
    /// worker that is notified. Blocks until the drivers have started.
    pub(crate) fn open() -> Arc<Shares> {
        let issued = Arc::new(WaitQueue::new());
        let all = |name: &str, slots| {
            let mut links = Vec::new();
            for number in 0.. {
                let name = if number == 0 { String::from(name) } else { format!("{name}{number}") };
                match Link::open(&name, slots, &issued) {
                    Ok(link) => links.push((name, link)),
                    Err(Status::NotFound) => break,
                    Err(status) => {
                        say(format_args!("unix: the server {name} cannot be opened: {status:?}"));
                        break;
                    }
                }
            }
            SpinLock::new(links)
        };
        let (links, disk_links) = (all(NAME, SLOTS), all(DISK_NAME, disk_slot::NUMBER));
        Arc::new(Shares { links, disk_links, issued })
    }

    fn all(&self) -> Vec<Arc<Link>> {
        let links = self.links.lock().iter().map(|(_, link)| link.clone()).collect::<Vec<_>>();
        links.into_iter().chain(self.disk_links.lock().iter().map(|(_, link)| link.clone())).collect()
    }

    /// Wakes those that wait for a driver, whose notification bits are `bits`.
    pub(crate) fn notified(&self, bits: u64) {
        if bits & places::SHARE_NEWS != 0 {
            self.all().iter().for_each(|link| link.queue.wake(Readiness::READ | Readiness::WRITE));
        }
    }

    /// Ends the requests to drivers that have ended, as long as the system runs.
    pub(crate) async fn watch(&self, clock: &dyn Environment) {
        while !self.all().is_empty() {
            let is_used = |link: &Arc<Link>| link.slots.lock().iter().any(|slot| *slot != Slot::Free);
            self.issued.wait_until(|| self.all().iter().any(is_used).then_some(())).await;
            clock.sleep_until(clock.monotonic() + LOOK).await;
            for link in self.all() {
                if !link.has_ended.load(Ordering::Acquire) && link.channel.has_ended() {
                    link.has_ended.store(true, Ordering::Release);
                    link.queue.wake(Readiness::READ | Readiness::WRITE);
                }
            }
        }
    }
}

/// The link, or the one that takes its place because the driver has ended and was started again.
/// Files of the old channel are not of the new one, whatever uses them.
fn alive(links: &SpinLock<Vec<(String, Arc<Link>)>>, (name, link): (String, Arc<Link>)) -> Result<Arc<Link>> {
    if !link.channel.has_ended() {
        return Ok(link);
    }
    let link = Link::open(&name, link.usable, &link.issued).map_err(|_| Error::EIO)?;
    links.lock().iter_mut().filter(|(other, _)| *other == name).for_each(|other| other.1 = link.clone());
    Ok(link)
}

impl Servers for Shares {
    fn connect(&self, tag: &[u8]) -> Result<Arc<dyn Transport>> {
        let found = self.links.lock().iter().find(|(_, link)| link.channel.tag() == tag).cloned();
        let link = alive(&self.links, found.ok_or(Error::ENOENT)?)?;
        if link.is_busy.swap(true, Ordering::AcqRel) {
            return Err(Error::EBUSY);
        }
        Ok(Arc::new(User(link)))
    }
}

/// The use of a channel by a file system.
struct User(Arc<Link>);

impl Drop for User {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::Release);
        // The task that serves the disk of a file system ends.
        self.0.queue.wake(Readiness::READ);
    }
}

/// The file servers of disks.
pub(crate) struct DiskFileServers<L> {
    /// The channels.
    pub(crate) shares: Arc<Shares>,
    /// Runs the tasks that serve the disks.
    pub(crate) machine: L4Machine,
    /// The source of time.
    pub(crate) clock: Arc<dyn Environment>,
    /// Writes to the log.
    pub(crate) log: L,
}

impl<L: Fn(core::fmt::Arguments<'_>) + Send + Sync> FileServers for DiskFileServers<L> {
    fn connect(&self, device: &Device) -> Result<Arc<dyn Transport>> {
        let all = self.shares.disk_links.lock().clone();
        if all.is_empty() {
            return Err(Error::ENODEV);
        }
        for (name, link) in all {
            // A server that has ended is that of a file system which waits for the next one, or is
            // unmounted.
            let is_free = !link.is_busy.load(Ordering::Acquire);
            if is_free && (!link.channel.has_ended() || link.renew(&name).is_ok()) {
                match self.use_link(link, DiskService::new(device.clone())) {
                    Err(Error::EBUSY) => {}
                    result => return result,
                }
            }
        }
        Err(Error::EBUSY)
    }

    fn connect_again<'a>(&'a self, device: &'a Device) -> BoxFuture<'a, Result<Arc<dyn Transport>>> {
        Box::pin(async move {
            let mut found = Err(Error::EIO);
            let attempt = || {
                let all = self.shares.disk_links.lock().clone();
                let ended = |link: &Link| !link.is_busy.load(Ordering::Acquire) && link.channel.has_ended();
                let mut refused = Status::InUse;
                for (name, link) in all.into_iter().filter(|(_, link)| ended(link)) {
                    match link.renew(&name) {
                        Ok(()) => {
                            found = self.use_link(link, DiskService::again(device.clone()));
                            return Ok(());
                        }
                        Err(status) => refused = status,
                    }
                }
                Err(refused)
            };
            if again::connect(&*self.clock, attempt).await { found } else { Err(Error::EIO) }
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<()> {
        let spawned = self.machine.spawn(self.machine.current_worker(), task);
        spawned.map(drop).map_err(|_| Error::ENOMEM)
    }

    fn log(&self, message: core::fmt::Arguments<'_>) {
        (self.log)(message);
    }
}

impl<L> DiskFileServers<L> {
    /// Takes a link to a server, whose disk is served from now on. `EBUSY`: another has taken it.
    fn use_link(&self, link: Arc<Link>, service: DiskService) -> Result<Arc<dyn Transport>> {
        if link.is_busy.swap(true, Ordering::AcqRel) {
            return Err(Error::EBUSY);
        }
        let user = Arc::new(User(link.clone()));
        link.is_served.store(true, Ordering::Release);
        let task = serve_disk(Serving(link), service, Arc::downgrade(&user));
        let spawned = self.machine.spawn(self.machine.current_worker(), task);
        spawned.map(|_| user as Arc<dyn Transport>).map_err(|_| Error::ENOMEM)
    }
}

/// A link to a server whose disk is served until this is dropped.
struct Serving(Arc<Link>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.is_served.store(false, Ordering::Release);
    }
}

/// Answers what a file server asks for its disk, until the file system is unmounted or the server
/// ends.
async fn serve_disk(serving: Serving, service: DiskService, user: Weak<User>) {
    let link = &serving.0;
    loop {
        let asked = until_ready(&link.queue, Readiness::READ, || {
            if link.has_ended.load(Ordering::Acquire) || user.strong_count() == 0 {
                return Ok(None);
            }
            link.channel.asked().map(Some).ok_or(AttemptError::WouldBlock)
        });
        let Ok(Some(asked)) = asked.await else { return };
        let (done, data) = answer(link, &service, asked).await;
        link.channel.answer_asked(done, &data);
    }
}

/// Carries out what a file server asks. Returns what the answer says, and the data that were read.
async fn answer(link: &Link, service: &DiskService, asked: Result<Ask, ()>) -> (Option<(u64, u64)>, Vec<u8>) {
    let mut data = Vec::new();
    let (operation, offset, length) = match asked {
        Ok(Ask::Read { offset, length }) => (Operation::Read, offset, length),
        Ok(Ask::Write { offset, length }) => (Operation::Write, offset, length),
        Ok(Ask::Flush) => (Operation::Flush, 0, 0),
        Ok(Ask::Describe) => return (Some((service.size(), service.is_read_only().into())), data),
        Err(()) => return (None, data),
    };
    if data.try_reserve_exact(length).is_err() {
        return (None, data);
    }
    data.resize(length, 0);
    if operation == Operation::Write {
        link.channel.asked_data(&mut data);
    }
    let done = service.carry_out(operation, offset, &mut data).await;
    if operation != Operation::Read || done.is_err() {
        data.clear();
    }
    (done.ok().map(|()| (0, 0)), data)
}

impl Transport for User {
    fn message_size(&self) -> usize {
        MESSAGE
    }

    fn exchange(&self, request: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(self.0.exchange(request))
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }
}

/// A slot that a request has, and whether the driver may still answer it.
struct Taken<'a> {
    link: &'a Link,
    number: usize,
    is_sent: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.link.slots.lock()[self.number] = if self.is_sent { Slot::Abandoned } else { Slot::Free };
        self.link.queue.wake(Readiness::WRITE);
    }
}

impl Link {
    /// Opens the channel to a server; the first `usable` slots are for requests.
    fn open(name: &str, usable: usize, issued: &Arc<WaitQueue>) -> Result<Arc<Link>, Status> {
        // Each driver, also one that was started again, shares memory after that of the one before.
        static NEXT: AtomicU64 = AtomicU64::new(places::SHARES);
        // Relaxed ordering: the addresses have to be different, and order nothing else.
        let area = NEXT.fetch_add(virtio_9p::area::SIZE, Ordering::Relaxed);
        let channel = client::open(name, area, l4::utcb::my_global_id(), places::SHARE_NEWS)?;
        Ok(Arc::new(Link {
            channel,
            usable,
            slots: SpinLock::new([Slot::Free; SLOTS]),
            queue: PollQueue::new(),
            has_ended: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            is_served: AtomicBool::new(false),
            issued: issued.clone(),
        }))
    }

    /// Connects with the server that was started in place of the one that has ended. `InUse`: not
    /// all that was asked for the disk is carried out yet, or none has ended.
    fn renew(&self, name: &str) -> Result<(), Status> {
        if self.is_served.load(Ordering::Acquire) {
            return Err(Status::InUse);
        }
        self.channel.open_again(name, l4::utcb::my_global_id(), places::SHARE_NEWS)?;
        *self.slots.lock() = [Slot::Free; SLOTS];
        self.has_ended.store(false, Ordering::Release);
        Ok(())
    }

    async fn exchange(&self, mut request: Vec<u8>) -> Result<Vec<u8>> {
        if request.len() > MESSAGE {
            return Err(Error::E2BIG);
        }
        let mut slot = self.take_slot().await?;
        // The number of the slot is the tag, since each slot has one request.
        if let Some(tag) = request.get_mut(ninep::TAG..ninep::HEADER)
            && tag != ninep::NO_TAG.to_le_bytes()
        {
            tag.copy_from_slice(&(slot.number as u16).to_le_bytes());
        }
        self.channel.send(slot.number, &request);
        slot.is_sent = true;
        self.issued.wake_one();
        let length = self.answer(slot.number).await?;
        let mut reply = Vec::new();
        reply.try_reserve_exact(length).map_err(|_| Error::ENOMEM)?;
        reply.resize(length, 0);
        self.channel.take(slot.number, &mut reply);
        slot.is_sent = false;
        let tag = |message: &[u8]| message.get(ninep::TAG..ninep::HEADER).map(<[u8]>::to_vec);
        if tag(&reply) == tag(&request) { Ok(reply) } else { Err(Error::EIO) }
    }

    /// Waits for the answer to the request in a slot; returns the length of the reply.
    async fn answer(&self, number: usize) -> Result<usize> {
        let answer = until_ready(&self.queue, Readiness::READ, || match self.channel.answer(number) {
            Answer::Reply(length) => Ok(length),
            Answer::Refused => Err(Error::EIO.into()),
            Answer::None if self.has_ended.load(Ordering::Acquire) => Err(Error::EIO.into()),
            Answer::None => Err(AttemptError::WouldBlock),
        });
        answer.await.map_err(|_| Error::EIO)
    }

    /// Waits for a free slot.
    async fn take_slot(&self) -> Result<Taken<'_>> {
        let number = until_ready(&self.queue, Readiness::WRITE, || {
            if self.has_ended.load(Ordering::Acquire) {
                return Err(Error::EIO.into());
            }
            self.try_take_slot().ok_or(AttemptError::WouldBlock)
        });
        let number = number.await.map_err(|_| Error::EIO)?;
        Ok(Taken { link: self, number, is_sent: false })
    }

    fn try_take_slot(&self) -> Option<usize> {
        let mut slots = self.slots.lock();
        for (number, slot) in slots.iter_mut().enumerate() {
            if *slot == Slot::Abandoned && self.channel.answer(number) != Answer::None {
                self.channel.take(number, &mut []);
                *slot = Slot::Free;
            }
        }
        let number = slots[..self.usable].iter().position(|slot| *slot == Slot::Free)?;
        slots[number] = Slot::Used;
        Some(number)
    }
}
