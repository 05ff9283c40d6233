//! A network interface as its client has it: the driver, the memory, and the client's half.

use crate::area::{self, Area, SIZE};
use crate::buffers;
use crate::client::Client;
use crate::offload::Offload;
use crate::{POOL, SHORTEST};
use direct::Error;
use driver::connection::Connection;
use interfaces::net;
use l4::direct::Direct;
use l4::x2::ThreadId;
use rt::root::{Status, memory, pool};

/// What a driver says of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The address of the interface.
    pub address: [u8; 6],
    /// The most bytes of a packet in a frame.
    pub mtu: u16,
    /// What the device does for the client.
    pub offload: Offload,
}

impl Description {
    /// The description as words of a message.
    pub fn words(&self) -> [u64; 3] {
        let address = self.address.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        [address, self.mtu.into(), self.offload.word()]
    }

    /// The description of these words. `None`: they describe no network interface.
    pub fn from_words([address, mtu, offload]: [u64; 3]) -> Option<Description> {
        let mtu = u16::try_from(mtu).ok().filter(|&mtu| mtu >= LEAST_MTU)?;
        let address: [u8; 6] = core::array::from_fn(|index| (address >> (8 * index)) as u8);
        // The lowest bit of the first byte is that of groups.
        let is_own = address[0] & 1 == 0 && address != [0; 6];
        is_own.then_some(Description { address, mtu, offload: Offload::from_word(offload) })
    }
}

/// The smallest MTU of an interface that can have IPv4 (RFC 791).
const LEAST_MTU: u16 = 68;
const _: () = assert!(SHORTEST < LEAST_MTU as usize);

/// A thread of the client's, and the bits by which the driver notifies it.
#[derive(Clone, Copy, Debug)]
pub struct Notified {
    /// The thread.
    pub thread: ThreadId,
    /// The bits.
    pub bits: u64,
}

/// Where the client has the memory that it shares with the driver and with the device.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// The address of the area of [`SIZE`] bytes.
    pub area: u64,
    /// The address of the buffers, which are [`POOL`] bytes.
    pub buffers: u64,
}

/// A network interface.
#[derive(Debug)]
pub struct Interface {
    connection: Connection,
    places: Places,
    area: &'static Area,
    offload: Offload,
    description: Description,
    /// The rings. After a change of them the caller calls [`flush`](Interface::flush).
    pub client: Client<'static>,
}

impl Interface {
    /// Opens the interface that the server `name` drives. The memory at both of the places, which
    /// are multiples of 4096, must be free. `notified` is a thread of this server; `offload` is
    /// what the client can leave to the device. Blocks until the driver has registered and has
    /// answered; overwrites the message registers.
    ///
    /// # Errors
    /// `NotFound`: there is no such server, it has ended for good, or it does not drive a network
    /// interface. `InUse`: another server has it. `InvalidArgument`, `QuotaExceeded`, `NoMemory`:
    /// root's status for the memory.
    pub fn open(
        name: &str,
        places: Places,
        notified: Notified,
        offload: Offload,
    ) -> Result<Interface, Status> {
        // Without a driver no memory is used.
        rt::root::names::lookup_wait(name)?;
        memory::allocate(places.buffers, POOL)?;
        let attach = |driver, share| attach(driver, share, places, notified, offload);
        let (connection, words) = Connection::open(name, places.area, SIZE, attach)?;
        let description = Description::from_words(words).ok_or(Status::NotFound)?;
        #[allow(unsafe_code, reason = "the memory is root's, not Rust objects")]
        // SAFETY: root has mapped the area for these two servers, as long as this one lives, and
        // the buffers, which this server never frees. Nothing else is at these places.
        let (area, buffers) = unsafe { (area::at(places.area), buffers::at(places.buffers)) };
        let client = Client::new(buffers);
        let mut interface = Interface { connection, places, area, offload, description, client };
        interface.client.restart(area);
        interface.flush();
        Ok(interface)
    }

    /// What the interface is and does.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Notifies the driver, if it sleeps, of frames to send and of empty buffers.
    pub fn flush(&mut self) {
        if self.client.must_notify() {
            self.connection.notify();
        }
    }

    /// Whether the driver has ended.
    pub fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    /// Connects with the driver that was started as the server `name` in place of one that has
    /// ended. Frames that were not sent are sent again. Blocks until the driver has answered;
    /// overwrites the message registers.
    ///
    /// # Errors
    /// Those of [`Connection::open_again`]; `Unsupported`: it is another interface.
    pub fn open_again(&mut self, name: &str, notified: Notified) -> Result<(), Status> {
        self.client.detach();
        let (area, places, offload) = (self.area, self.places, self.offload);
        let words = self.connection.open_again(name, |driver, share| {
            area.clear();
            attach(driver, share, places, notified, offload)
        })?;
        if Description::from_words(words) != Some(self.description) {
            return Err(Status::Unsupported);
        }
        self.client.restart(area);
        self.flush();
        Ok(())
    }
}

/// The request to attach a client. Returns the words of the description.
fn attach(
    driver: ThreadId,
    share: u64,
    places: Places,
    notified: Notified,
    offload: Offload,
) -> Result<[u64; 3], Error> {
    let pool = pool::create(places.buffers, POOL, driver).map_err(|status| Error::Status(status.into()))?;
    let mut device = net::Client { transport: &mut Direct::default(), to: driver };
    let (thread, bits) = (notified.thread.raw(), notified.bits);
    let (address, mtu, agreed) = device.net_attach(share, pool.word(), thread, bits, offload.word())?;
    Ok([address, mtu, agreed])
}
