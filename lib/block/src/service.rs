//! The program of a block device's driver, whatever the device is: one client's requests become
//! commands of the device, and what it has ended becomes answers.
//!
//! The device starts when the program does, and is stopped and started for each client. With the
//! argument `end-after=COUNT` the driver ends in the middle of its work ([`end`]), when it has
//! given the device so many commands.
#![allow(unsafe_code, reason = "that the memory of an earlier client is not used is a promise")]

use crate::area::{self, SIZE};
use crate::description::{Description, IDENTITY};
use crate::driver::Driver;
use crate::pools::Pools;
use crate::work::{Command, Limits, Work};
use crate::{Error, SLOTS};
use ::driver::client::{Attachment, Client};
use ::driver::{Interrupts, end};
use alloc::vec::Vec;
use core::fmt::Display;
use direct::{Array, Reply};
use interfaces::block::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use rt::root::{Status, pool};

/// The address at which the client's area is mapped. Nothing else of the program may be there.
const AREA: u64 = 0x4000_0000;

/// A block device, which is stopped or runs.
pub trait Device {
    /// The device while it runs.
    type Running: Running;

    /// Starts the device, which must be stopped. It has no command of an earlier client then.
    ///
    /// # Errors
    /// The device, or root, refuses to start it.
    fn start(&mut self) -> Result<Self::Running, Failure<Self>>;

    /// Stops the device. It uses no memory afterwards.
    ///
    /// # Errors
    /// The device does not stop.
    fn stop(&mut self, running: Self::Running) -> Result<(), Failure<Self>>;
}

/// Why a device cannot be used any more.
pub type Failure<D> = <<D as Device>::Running as Running>::Error;

/// The number of the request to which an ended command belongs, and the command's result.
pub type Ended = (usize, Result<(), Error>);

/// A block device that runs. No function blocks.
pub trait Running {
    /// Why the device cannot be used any more.
    type Error: Display;

    /// The threads from which its interrupts come.
    fn interrupts(&self) -> &[ThreadId];

    /// What it is and can do.
    fn description(&self) -> &Description;

    /// The most memory of one command.
    fn limits(&self) -> Limits;

    /// Its serial number.
    fn identity(&self) -> &[u8];

    /// Takes a command that the device has ended, if there is one.
    ///
    /// # Errors
    /// The device has broken the rules, and cannot be used any more.
    fn take(&mut self) -> Result<Option<Ended>, Self::Error>;

    /// Gives the device a command of the request `owner`. Returns false if it has too many now.
    ///
    /// # Errors
    /// As for [`take`](Running::take).
    fn give(&mut self, command: Command<'_>, owner: usize) -> Result<bool, Self::Error>;

    /// Notifies the device of the commands that were given.
    fn notify(&mut self);

    /// Says that the driver waits for interrupts. Returns whether the device has ended a command
    /// already.
    fn sleep(&mut self) -> bool;
}

/// What the client has asked for, and its memory.
struct Requests {
    ring: Driver<'static>,
    pools: Pools,
    /// The requests that are not answered yet, in the order of their coming.
    works: Vec<Work>,
}

struct Service<D: Device> {
    device: D,
    running: Option<D::Running>,
    client: Option<Client<Requests>>,
}

/// Starts a driver's program, and serves clients for ever. `open` finds the device; it gets the
/// thread to which interrupts must come.
///
/// # Panics
/// If there is no device, or it cannot be used any more: root then starts the program again.
pub fn run<D: Device>(open: impl FnOnce(ThreadId) -> Result<D, Failure<D>>) -> ! {
    ::driver::start("block device", |thread| {
        let mut device = open(thread)?;
        let running = Some(device.start()?);
        Ok::<_, Failure<D>>(Service { device, running, client: None })
    })
}

impl<D: Device> ::driver::Driver for Service<D> {
    fn interrupts(&self) -> Interrupts<'_> {
        self.running.as_ref().map_or(Interrupts::None, |running| Interrupts::Messages(running.interrupts()))
    }

    fn serve(&mut self) {
        if let Err(error) = self.pass() {
            panic!("the block device has failed: {error}");
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl<D: Device> Service<D> {
    /// Passes requests to the device and answers to the client, as long as there are some.
    fn pass(&mut self) -> Result<(), Failure<D>> {
        let (Some(running), Some(client)) = (&mut self.running, &mut self.client) else { return Ok(()) };
        let limits = running.limits();
        loop {
            let requests = &mut client.shared;
            while let Some((owner, result)) = running.take()? {
                let work = requests.works.iter_mut().find(|work| work.slot() == owner);
                let work = work.unwrap_or_else(|| panic!("the block device has ended a command twice"));
                work.ended(result);
            }
            while requests.works.len() < SLOTS
                && let Some(job) = requests.ring.take(running.description(), &requests.pools, limits.piece)
            {
                requests.works.push(Work::new(job, running.description().flushes));
            }
            for work in &mut requests.works {
                while let Some(command) = work.next(&limits) {
                    if !running.give(command, work.slot())? {
                        break;
                    }
                    work.given(&limits);
                    end::step();
                }
            }
            running.notify();
            if requests.answer() {
                // A client that has ended is replaced by the next one.
                client.notify();
            }
            // Both are asked: each says that the driver waits for it.
            let (more_answers, more_requests) = (running.sleep(), client.shared.ring.sleep());
            if !more_answers && !more_requests {
                return Ok(());
            }
        }
    }

    /// Stops the device, and starts it for its next client. After an error the device cannot be
    /// used any more.
    fn restart(&mut self) -> Result<(), Failure<D>> {
        if let Some(running) = self.running.take() {
            self.device.stop(running)?;
        }
        self.running = Some(self.device.start()?);
        Ok(())
    }

    /// Ends the client that there was, and starts the device for another one.
    fn attach(&mut self, attachment: Attachment) -> Result<(), Status> {
        if self.client.as_ref().is_some_and(|client| !client.has_ended()) {
            return Err(Status::InUse);
        }
        // Whatever fails from here on, the device gets nothing more of the earlier client: by now
        // its memory belongs to others.
        self.client = None;
        // Root has stopped the function if a server has ended that gave it memory. A device that
        // cannot be started again ends the driver, so that root starts it again.
        if let Err(error) = self.restart() {
            panic!("the block device cannot be started again: {error}");
        }
        // SAFETY: root has mapped the area when the requests are made, and unmaps it only when they
        // are gone. Nothing else is at this address.
        unsafe {
            Client::attach(&mut self.client, attachment, AREA, SIZE, || Requests {
                ring: Driver::new(area::at(AREA)),
                pools: Pools::default(),
                works: Vec::with_capacity(SLOTS),
            })?;
        }
        ::driver::Driver::serve(self);
        Ok(())
    }

    fn add_pool(&mut self, number: u64, size: u64) -> Result<u64, Status> {
        let client = self.client.as_mut().ok_or(Status::NotFound)?;
        let find = |offset| pool::find(pool::Pool::from_word(number), offset);
        client.shared.pools.add(size, find)?.map(u64::from).ok_or(Status::InvalidArgument)
    }
}

impl Requests {
    /// Answers the requests that have ended. Returns whether the client must be notified.
    fn answer(&mut self) -> bool {
        self.works.retain(|work| {
            let Some(result) = work.result() else { return true };
            self.ring.answer(work.slot(), result);
            false
        });
        self.ring.must_notify()
    }
}

impl<D: Device> Server for Service<D> {
    fn block_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), direct::Status> {
        Ok(self.attach(Attachment { share, thread, bits })?)
    }

    fn block_pool(&mut self, _: ThreadId, pool: u64, size: u64) -> Result<u64, direct::Status> {
        Ok(self.add_pool(pool, size)?)
    }

    fn block_describe(
        &mut self,
        _: ThreadId,
    ) -> Result<(u64, u64, u64, u64, u64, u64, Array<u8, IDENTITY>), direct::Status> {
        // Before a client has attached, the device may not have started.
        let running = self.running.as_ref().filter(|_| self.client.is_some()).ok_or(Status::NotFound)?;
        let [sectors, logical, physical, abilities, discard, geometry] = running.description().words();
        let identity = Array::new(running.identity()).ok_or(Status::Unsupported)?;
        Ok((sectors, logical, physical, abilities, discard, geometry, identity))
    }
}
