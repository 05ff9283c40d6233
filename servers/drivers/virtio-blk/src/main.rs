//! The driver of a virtio block device as a program: a server that root has started with the
//! device's PCI function and memory for devices, 64 KiB for each queue.
//!
//! The device starts when a client attaches, and is reset when the next one does. With the argument
//! `end-after=COUNT` the driver ends in the middle of its work ([`end`]), when it has given the
//! device so many commands.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod device;

use alloc::vec::Vec;
use block::area::{self, SIZE};
use block::description::IDENTITY;
use block::driver::Driver;
use block::pools::Pools;
use block::{Error, SLOTS};
use device::{Disk, Started};
use direct::{Array, Reply};
use driver::client::{Attachment, Client};
use driver::{Interrupts, end};
use interfaces::block::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use rt::root::{Status, pool};
use virtio_blk::work::Work;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(256 << 10);

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;

/// What the client has asked for, and its memory.
struct Requests {
    ring: Driver<'static>,
    pools: Pools,
    /// The requests that are not answered yet, in the order of their coming.
    works: Vec<Work>,
}

struct Service {
    disk: Disk,
    started: Option<Started>,
    client: Option<Client<Requests>>,
}

fn run() -> ! {
    driver::start("block device", open)
}

/// Starts the device, whose interrupts are to come to `thread`.
fn open(thread: ThreadId) -> Result<Service, virtio::Error> {
    let mut disk = Disk::open(thread)?;
    let started = Some(disk.start()?);
    Ok(Service { disk, started, client: None })
}

impl driver::Driver for Service {
    fn interrupts(&self) -> Interrupts<'_> {
        self.started.as_ref().map_or(Interrupts::None, |started| Interrupts::Messages(&started.interrupts))
    }

    /// A device that breaks the rules ends the driver, so that root starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass() {
            panic!("the block device has failed: {error:?}");
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Service {
    /// Passes requests to the device and answers to the client, as long as there are some.
    fn pass(&mut self) -> Result<(), virtio::Error> {
        let (Some(started), Some(client)) = (&mut self.started, &mut self.client) else { return Ok(()) };
        loop {
            let requests = &mut client.shared;
            while let Some((owner, result)) = started.take()? {
                let work = requests.works.iter_mut().find(|work| work.slot() == owner);
                work.ok_or(virtio::Error::Broken)?.ended(result);
            }
            let (description, piece) = (&started.description, started.limits.piece);
            while requests.works.len() < SLOTS
                && let Some(job) = requests.ring.take(description, &requests.pools, piece)
            {
                requests.works.push(Work::new(job, description.flushes));
            }
            for work in &mut requests.works {
                while let Some(command) = work.next(started.limits.pieces) {
                    if !started.give(command, work.slot())? {
                        break;
                    }
                    work.given(started.limits.pieces);
                    end::step();
                }
            }
            started.notify();
            if requests.answer() {
                // A client that has ended is replaced by the next one.
                client.notify();
            }
            // Both are asked: each says that the driver waits for it.
            let (more_answers, more_requests) = (started.sleep(), client.shared.ring.sleep());
            if !more_answers && !more_requests {
                return Ok(());
            }
        }
    }

    /// Stops the device, and starts it for its next client. After an error the device cannot be
    /// used any more.
    fn restart(&mut self) -> Result<(), virtio::Error> {
        if let Some(started) = self.started.take() {
            self.disk.stop(started)?;
        }
        self.started = Some(self.disk.start()?);
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
            panic!("the block device cannot be started again: {error:?}");
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
        driver::Driver::serve(self);
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

/// The client may make requests of this server, and the device may have started.
fn of_client(client: Option<&Client<Requests>>) -> Result<(), Status> {
    client.map(drop).ok_or(Status::NotFound)
}

impl Server for Service {
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
        of_client(self.client.as_ref())?;
        let started = self.started.as_ref().ok_or(Status::NotFound)?;
        let [sectors, logical, physical, abilities, discard, geometry] = started.description.words();
        let identity = Array::new(&started.identity).ok_or(Status::Unsupported)?;
        Ok((sectors, logical, physical, abilities, discard, geometry, identity))
    }
}

/// The result of a command whose status byte is this (5.2.6).
fn result(status: u8) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        2 => Err(Error::Unsupported),
        _ => Err(Error::Device),
    }
}
