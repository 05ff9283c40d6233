//! The driver of a virtio network device as a program: a server that root has started with the
//! device's PCI function and 16 KiB of memory for devices.
//!
//! The device starts when a client attaches, and is reset when the next one does. Frames are in the
//! client's memory, which this program does not have. With the argument `end-after=COUNT` the
//! driver ends in the middle of its work ([`end`]), when so many frames were passed.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod device;

use device::{Card, Started};
use direct::Reply;
use driver::client::{Attachment, Client};
use driver::{Interrupts, end};
use interfaces::net::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use net::area::{self, SIZE};
use net::driver::{Driver, Pages};
use net::offload::Offload;
use rt::root::{Status, pool};

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(256 << 10);

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;

struct Service {
    card: Card,
    started: Option<Started>,
    client: Option<Client<Driver<'static>>>,
    /// Whether the configuration may have changed since the driver has read it.
    is_changed: bool,
}

fn run() -> ! {
    driver::start("network device", open)
}

/// Finds the device, whose interrupts are to come to `thread`.
fn open(thread: ThreadId) -> Result<Service, virtio::Error> {
    let mut card = Card::open(thread)?;
    // A device that cannot be driven is found out before clients come.
    let started = Some(card.start(Offload::default())?);
    Ok(Service { card, started, client: None, is_changed: true })
}

impl driver::Driver for Service {
    fn interrupts(&self) -> Interrupts<'_> {
        self.started.as_ref().map_or(Interrupts::None, |started| Interrupts::Messages(&started.interrupts))
    }

    fn interrupted(&mut self, from: ThreadId) {
        self.is_changed |= self.started.as_ref().is_some_and(|started| started.tells_changes(from));
    }

    /// A device that breaks the rules ends the driver, so that root starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass() {
            panic!("the network device has failed: {error:?}");
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Service {
    /// Passes frames between the client and the device, as long as there are some.
    fn pass(&mut self) -> Result<(), virtio::Error> {
        let (Some(started), Some(client)) = (&mut self.started, &mut self.client) else { return Ok(()) };
        let is_changed = core::mem::take(&mut self.is_changed);
        let mut has_news = is_changed && client.shared.set_link(started.link()?);
        loop {
            while let Some((buffer, length)) = started.take_filled()? {
                client.shared.filled(buffer, length);
                end::step();
            }
            while let Some(frame) = started.take_sent()? {
                client.shared.sent(&frame);
            }
            while let Some((buffer, memory)) = client.shared.take_empty() {
                started.give_empty(buffer, memory)?;
            }
            while let Some(frame) = client.shared.take() {
                started.give(frame)?;
                end::step();
            }
            started.notify();
            if client.shared.must_notify() || has_news {
                // A client that has ended is replaced by the next one.
                client.notify();
                has_news = false;
            }
            // Both are asked: each says that the driver waits for it.
            let (has_done, has_requests) = (started.sleep(), client.shared.sleep());
            if !has_done && !has_requests {
                return Ok(());
            }
        }
    }

    /// Stops the device, and starts it so that it does this work for its next client. After an
    /// error the device cannot be used any more.
    fn restart(&mut self, offload: Offload) -> Result<&Started, virtio::Error> {
        // The device may use the memory of the earlier client until it is reset.
        if let Some(started) = self.started.take() {
            self.card.stop(started)?;
        }
        let started = self.card.start(offload)?;
        Ok(self.started.insert(started))
    }

    /// Ends the client that there was, and starts the device for another one.
    fn attach(&mut self, attachment: Attachment, number: u64, offload: Offload) -> Result<[u64; 3], Status> {
        if self.client.as_ref().is_some_and(|client| !client.has_ended()) {
            return Err(Status::InUse);
        }
        // Whatever fails from here on, the device gets nothing more of the earlier client: by now
        // its memory belongs to others.
        self.client = None;
        // A device that cannot be started again ends the driver, so that root starts it again.
        let words = match self.restart(offload) {
            Ok(started) => started.description.words(),
            Err(error) => panic!("the network device cannot be started again: {error:?}"),
        };
        let find = |offset| pool::find(pool::Pool::from_word(number), offset);
        let pages = Pages::find(find)?.ok_or(Status::InvalidArgument)?;
        // SAFETY: root has mapped the area when the driver's half is made, and unmaps it only when
        // that half is gone. Nothing else is at this address.
        unsafe {
            Client::attach(&mut self.client, attachment, AREA, SIZE, || Driver::new(area::at(AREA), pages))?;
        }
        self.is_changed = true;
        driver::Driver::serve(self);
        Ok(words)
    }
}

impl Server for Service {
    fn net_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        pool: u64,
        thread: u64,
        bits: u64,
        offload: u64,
    ) -> Result<(u64, u64, u64), direct::Status> {
        let attachment = Attachment { share, thread, bits };
        let [address, mtu, agreed] = self.attach(attachment, pool, Offload::from_word(offload))?;
        Ok((address, mtu, agreed))
    }
}
