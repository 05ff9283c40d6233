//! The servers of files that devices lead to, for the file system "9p": channels of messages that
//! drivers pass on.

use crate::places;
use crate::report::say;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use rt::root::Status;
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;
use unix::v9fs::{Servers, Transport};
use unix::{AttemptError, BoxFuture, Environment, Error, Result};
use virtio_9p::area::{MESSAGE, SLOTS};
use virtio_9p::client::{self, Answer, Channel};

/// The name of the first server that drives a channel; those after it have a number at the end.
const NAME: &str = "share";
/// How often is looked whether a driver has ended.
const CHECK: Duration = Duration::from_secs(1);

/// The servers of files.
pub(crate) struct Shares {
    /// For each driver its name, and the channel to it.
    links: SpinLock<Vec<(String, Arc<Link>)>>,
}

/// The channel to one server, and the requests that are outstanding.
struct Link {
    channel: Channel,
    slots: SpinLock<[Slot; SLOTS]>,
    /// The tasks that wait for replies or for free slots.
    queue: PollQueue,
    has_ended: AtomicBool,
    /// Whether a file system uses it.
    is_busy: AtomicBool,
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
        let mut links = Vec::new();
        for number in 0.. {
            let name = if number == 0 { String::from(NAME) } else { format!("{NAME}{number}") };
            match Link::open(&name) {
                Ok(link) => links.push((name, link)),
                Err(Status::NotFound) => break,
                Err(status) => {
                    say(format_args!("unix: the server {name} cannot be opened: {status:?}"));
                    break;
                }
            }
        }
        Arc::new(Shares { links: SpinLock::new(links) })
    }

    fn all(&self) -> Vec<Arc<Link>> {
        self.links.lock().iter().map(|(_, link)| link.clone()).collect()
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
            clock.sleep_until(clock.monotonic() + CHECK).await;
            for link in self.all() {
                if !link.has_ended.load(Ordering::Acquire) && link.channel.has_ended() {
                    link.has_ended.store(true, Ordering::Release);
                    link.queue.wake(Readiness::READ | Readiness::WRITE);
                }
            }
        }
    }
}

impl Servers for Shares {
    fn connect(&self, tag: &[u8]) -> Result<Arc<dyn Transport>> {
        let found = self.links.lock().iter().find(|(_, link)| link.channel.tag() == tag).cloned();
        let (name, mut link) = found.ok_or(Error::ENOENT)?;
        if link.channel.has_ended() {
            // Its driver may have been started again. Files of the old channel are not of the new
            // one, whatever uses them.
            link = Link::open(&name).map_err(|_| Error::EIO)?;
            let mut links = self.links.lock();
            links.iter_mut().filter(|(other, _)| *other == name).for_each(|other| other.1 = link.clone());
        }
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
    }
}

impl Transport for User {
    fn message_size(&self) -> usize {
        MESSAGE
    }

    fn exchange(&self, request: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(self.0.exchange(request))
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
    fn open(name: &str) -> Result<Arc<Link>, Status> {
        // Each driver, also one that was started again, shares memory after that of the one before.
        static NEXT: AtomicU64 = AtomicU64::new(places::SHARES);
        // Relaxed ordering: the addresses have to be different, and order nothing else.
        let area = NEXT.fetch_add(virtio_9p::area::SIZE, Ordering::Relaxed);
        let channel = client::open(name, area, l4::utcb::my_global_id(), places::SHARE_NEWS)?;
        Ok(Arc::new(Link {
            channel,
            slots: SpinLock::new([Slot::Free; SLOTS]),
            queue: PollQueue::new(),
            has_ended: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
        }))
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
        let number = slots.iter().position(|slot| *slot == Slot::Free)?;
        slots[number] = Slot::Used;
        Some(number)
    }
}
