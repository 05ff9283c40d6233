//! The file server of ext4 file systems as a program: an ordinary server of root's. Its client, the
//! Unix server, opens a channel of messages to it (`interfaces/file_channel.defs`), mounts a file
//! system, and serves the server's requests for the disk, in the last slot of the channel. With the
//! argument `end-after=COUNT` the server ends in the middle of its work ([`driver::end`]), when it
//! has written to the disk, taken, carried out or answered a request so many times.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};
use direct::Reply;
use driver::client::{Attachment, Client};
use driver::{Interrupts, end};
use ext4::{
    BlockIo, Clock, DeviceCapabilities, DeviceGeometry, Ext4Error, Ext4Result, Ext4Timestamp, FileServer,
    SectorId, WallClock,
};
use interfaces::file_channel::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use rt::root::{self, Status};
use virtio_9p::area::{self, Area, LEAST, MESSAGE, REFUSED, REPLY, REQUEST};
use virtio_9p::disk_slot::{self, Ask};

l4::program!(run, kip = rt::start_page::KIP);

rt::growing_heap!(1 << 20);

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;
/// The size in bytes of the stack of the thread that serves.
const STACK: usize = 256 << 10;
/// The name by which the client finds out what the channel leads to.
const TAG: &[u8; 8] = b"ext4\0\0\0\0";
/// The bytes of a sector.
const SECTOR: u64 = 512;

/// The time in nanoseconds since 1970 at the start of the machine.
static BEGIN: AtomicU64 = AtomicU64::new(0);

/// The clock of the machine, from a time that the client has said.
#[derive(Clone, Copy)]
struct SystemClock;

/// Nanoseconds since the start of the machine.
fn since_start() -> u64 {
    l4::syscall::system_clock().saturating_mul(1000)
}

impl Clock for SystemClock {
    fn now(&self) -> Ext4Result<Ext4Timestamp> {
        let now = BEGIN.load(Ordering::Relaxed).saturating_add(since_start());
        Ok(Ext4Timestamp::new((now / 1_000_000_000) as i64, (now % 1_000_000_000) as u32))
    }
}

impl WallClock for SystemClock {
    fn set(&self, nanoseconds: u64) {
        BEGIN.store(nanoseconds.saturating_sub(since_start()), Ordering::Relaxed);
    }
}

/// The disk, whose requests the client carries out.
#[derive(Clone, Default)]
struct ClientDisk(Rc<Connection>);

/// The way to the client.
#[derive(Default)]
struct Connection {
    client: Cell<Option<Client<Area>>>,
    /// Whether the server is where the one before it was.
    is_started: Cell<bool>,
    /// The size of the disk in bytes, and whether it is read-only, once the client has said it.
    description: Cell<Option<(u64, bool)>>,
}

impl Connection {
    /// A step of the server, at which it may end.
    fn step(&self) {
        match self.is_started.get() {
            true => end::step(),
            false => end::step_of_start(),
        }
    }

    /// Asks the client, and waits for its answer. `data` are those of a write, `buffer` is for
    /// those of a read.
    fn ask(&self, ask: Ask, data: &[&[u8]], buffer: &mut [u8]) -> Ext4Result<(u64, u64)> {
        if matches!(ask, Ask::Write { .. } | Ask::Flush) {
            self.step();
        }
        let client = self.client.take().ok_or(Ext4Error::io())?;
        disk_slot::put(&client.shared, ask, data);
        let answer = wait(&client);
        let done = answer.then(|| disk_slot::take(&client.shared, ask, buffer)).flatten();
        self.client.set(Some(client));
        done.ok_or(Ext4Error::io())
    }

    fn description(&self) -> (u64, bool) {
        if let Some(description) = self.description.get() {
            return description;
        }
        // A client that does not say it has no disk.
        let described =
            self.ask(Ask::Describe, &[], &mut []).map_or((0, true), |(size, flags)| (size, flags != 0));
        self.description.set(Some(described));
        described
    }
}

/// Waits until the client has answered. Returns false if it has ended.
fn wait(client: &Client<Area>) -> bool {
    if !client.notify() {
        return false;
    }
    let mut registers = Direct::default();
    while !disk_slot::is_answered(&client.shared) {
        match registers.wait(&mut []) {
            // A notification: by the client, of the answer or of new requests.
            Ok((from, _)) if from.is_nil() => {}
            // Another client, which has come because the one that should answer has ended. It finds
            // this server started again.
            _ => root::exit(1),
        }
    }
    true
}

impl BlockIo for ClientDisk {
    fn write(&mut self, buffer: &[u8], sector: SectorId, _count: u32) -> Ext4Result<()> {
        self.write_gathered(&[buffer], sector)
    }

    fn write_gathered(&mut self, buffers: &[&[u8]], sector: SectorId) -> Ext4Result<()> {
        let mut offset = sector.raw() * SECTOR;
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut length = 0;
        let mut rest = buffers.iter().flat_map(|buffer| buffer.chunks(disk_slot::DATA)).peekable();
        while let Some(part) = rest.next() {
            parts.push(part);
            length += part.len();
            if rest.peek().is_some_and(|next| length + next.len() <= disk_slot::DATA) {
                continue;
            }
            self.0.ask(Ask::Write { offset, length }, &parts, &mut [])?;
            offset += length as u64;
            (length, parts) = (0, Vec::new());
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], sector: SectorId, _count: u32) -> Ext4Result<()> {
        let mut offset = sector.raw() * SECTOR;
        for part in buffer.chunks_mut(disk_slot::DATA) {
            self.0.ask(Ask::Read { offset, length: part.len() }, &[], part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry::new(SECTOR as u32, self.0.description().0 / SECTOR)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let read_only = self.0.description().1;
        DeviceCapabilities { read_only, flush: true, ..DeviceCapabilities::default() }
    }

    fn flush(&mut self) -> Ext4Result<()> {
        self.0.ask(Ask::Flush, &[], &mut []).map(drop)
    }
}

struct Files {
    disk: ClientDisk,
    server: FileServer<ClientDisk, SystemClock>,
}

fn run() -> ! {
    let thread = rt::thread::spawn_with_stack(STACK, || {
        driver::start("file server", |_| {
            let disk = ClientDisk::default();
            let server = FileServer::new(disk.clone(), SystemClock, MESSAGE);
            Ok::<_, Infallible>(Files { disk, server })
        })
    });
    let thread: Result<rt::thread::JoinHandle<()>, _> = thread;
    thread.expect("there is memory for a thread").join();
    root::exit(1)
}

impl driver::Driver for Files {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::None
    }

    /// Answers the requests in the slots until there are none.
    fn serve(&mut self) {
        loop {
            let answered = (0..disk_slot::NUMBER).filter(|number| self.answer_slot(*number)).count();
            if answered == 0 {
                return;
            }
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Files {
    /// Runs `with` on the client, if there is one.
    fn with_client<T>(&self, with: impl FnOnce(&Client<Area>) -> T) -> Option<T> {
        let client = self.disk.0.client.take()?;
        let result = with(&client);
        self.disk.0.client.set(Some(client));
        Some(result)
    }

    /// Answers the request in a slot. Returns whether there was one.
    fn answer_slot(&mut self, number: usize) -> bool {
        let request = self.with_client(|client| {
            let slot = client.shared.slot(number);
            (slot.state() == REQUEST).then(|| {
                let mut message = vec![0; slot.length()];
                area::get(slot.words, &mut message);
                message
            })
        });
        let Some(request) = request.flatten() else { return false };
        let reply = (request.len() >= LEAST).then(|| {
            if request.get(4) == Some(&ninep::kind::MOUNT) {
                // The disk may be another one than before.
                self.disk.0.description.set(None);
            }
            self.disk.0.step();
            let reply = self.server.answer(&request);
            self.disk.0.step();
            reply
        });
        self.with_client(|client| {
            let slot = client.shared.slot(number);
            match reply {
                Some(reply) => {
                    area::put(&reply, slot.words);
                    slot.pass(REPLY, reply.len());
                }
                None => slot.pass(REFUSED, 0),
            }
            client.notify()
        });
        self.disk.0.step();
        self.server.finish();
        self.disk.0.is_started.set(self.server.is_started());
        true
    }
}

impl Server for Files {
    fn file_channel_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(u64, u64, u64, u64), direct::Status> {
        let attachment = Attachment { share, thread, bits };
        let mut client = self.disk.0.client.take();
        // SAFETY: root has mapped the area when the end of it is made, and unmaps it only when that
        // end is gone. Nothing else is at this address.
        let attached: Result<(), Status> =
            unsafe { Client::attach(&mut client, attachment, AREA, area::SIZE, || Area::at(AREA)) };
        self.disk.0.client.set(client);
        attached?;
        Ok((u64::from_le_bytes(*TAG), 0, 0, 0))
    }
}
