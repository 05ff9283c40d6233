//! The Unix library's file system over the file server, on a disk in memory.
#![allow(dead_code, reason = "each test program uses some of it")]

use crate::common::{Disk, MESSAGE, Ticks, fsck};
use ext4::{BlockIo, FileServer, SectorId};
use mach::machine::Frame;
use mach::machine::Machine;
use mach::machine::simulated::Simulated;
use mach::vm::Vm;
use ninep::{Answer, Call, Resume, kind};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use unix::disk::{About, Data, Device, Family};
use unix::ext4::{Ext4Type, FileServers};
use unix::memory::ObjectProvider;
use unix::testing::{TestEnvironment, World, now};
use unix::v9fs::Transport;
use unix::vfs::{FileMemory, FileSystemType, MemoryProvider, OpenFlags, VnodeRef};
use unix::{BoxFuture, Error, MaybeReady, Result};

pub const READ_WRITE: OpenFlags = OpenFlags::READ_WRITE;

/// Where a file server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has taken a request.
    Taken,
    /// After so many writes to the disk.
    Writes(u64),
    /// It has carried out a request, and not answered.
    CarriedOut,
    /// It has answered.
    Answered,
}

/// After how many requests a server ends, and where.
type Choose = dyn FnMut(bool) -> Option<(u64, End)> + Send;

/// When file servers end.
#[derive(Default)]
pub struct Ends {
    /// After how many requests, and where in that request.
    pub next: Option<(u64, End)>,
    /// Says that for the next server, whether it is given what the one before has lost, or has been
    /// given all.
    pub choose: Option<Box<Choose>>,
    /// How many servers have ended.
    pub count: u64,
    /// How many of them while they were given what the one before had lost.
    pub resuming: u64,
    /// No server is started any more.
    pub for_good: bool,
}

/// The way to a file server, which answers each message when it is sent. The answer arrives later
/// while the flag is set. Messages of one kind are refused.
pub struct Direct {
    pub server: Mutex<Option<FileServer<Disk, Ticks>>>,
    disk: Disk,
    is_slow: Arc<AtomicBool>,
    pub refused: AtomicU8,
    ends: Arc<Mutex<Ends>>,
    resuming: AtomicBool,
}

impl Transport for Direct {
    fn message_size(&self) -> usize {
        MESSAGE
    }

    fn exchange(&self, request: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        let (kind, tag) = (request[4], u16::from_le_bytes([request[5], request[6]]));
        let reply = match self.refused.load(Ordering::Relaxed) == kind {
            true => Ok(Answer::Error(5).encode(kind, tag)),
            false => self.answer(&request),
        };
        let mut reply = Some(reply);
        Box::pin(poll_fn(move |_| match self.is_slow.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Poll::Ready(reply.take().unwrap()),
        }))
    }

    fn has_ended(&self) -> bool {
        self.server.lock().unwrap().is_none()
    }
}

impl Direct {
    /// Has the file server store everything, as another task does at any time.
    pub fn store(&self) {
        let call = Call::Synchronize { fid: 0, data_only: false };
        let mut server = self.server.lock().unwrap();
        let server = server.as_mut().unwrap();
        server.answer(&call.encode());
        server.finish();
    }

    /// Where the server ends while it has this request.
    fn end(&self, kind: u8) -> Option<End> {
        let mut ends = self.ends.lock().unwrap();
        if kind == kind::MOUNT {
            self.resuming.store(ends.count > 0, Ordering::Relaxed);
        }
        match &mut ends.next {
            Some((left, _)) if *left > 0 => {
                *left -= 1;
                None
            }
            next => next.take().map(|(_, end)| end),
        }
    }

    fn answer(&self, request: &[u8]) -> Result<Vec<u8>> {
        let mut server = self.server.lock().unwrap();
        let there = server.as_mut().ok_or(Error::EIO)?;
        let end = self.end(request[4]);
        let (mut reply, mut has_ended) = (None, end == Some(End::Taken));
        if let Some(End::Writes(count)) = end {
            self.disk.0.lock().unwrap().writes_left = Some(count);
        }
        let is_cut = || self.disk.0.lock().unwrap().has_refused;
        if !has_ended {
            let answer = there.answer(request);
            reply = (!is_cut() && end != Some(End::CarriedOut)).then_some(answer);
            has_ended = reply.is_none() || end == Some(End::Answered);
        }
        if !has_ended {
            there.finish();
            has_ended = is_cut();
        }
        {
            let mut disk = self.disk.0.lock().unwrap();
            (disk.writes_left, disk.has_refused) = (None, false);
        }
        if has_ended {
            *server = None;
            let mut ends = self.ends.lock().unwrap();
            ends.count += 1;
            ends.resuming += u64::from(self.resuming.load(Ordering::Relaxed));
        } else if request == (Call::Resume { step: Resume::End }).encode() {
            self.resuming.store(false, Ordering::Relaxed);
            self.choose(false);
        } else if end.is_some() {
            // It has not written as often.
            self.choose(self.resuming.load(Ordering::Relaxed));
        }
        reply.ok_or(Error::EIO)
    }

    fn choose(&self, resuming: bool) {
        let ends = &mut *self.ends.lock().unwrap();
        if let Some(choose) = &mut ends.choose {
            ends.next = choose(resuming);
        }
    }
}

#[derive(Default)]
pub struct OneServer {
    pub disk: Disk,
    /// The way to the server that was made last.
    pub last: Mutex<Option<Arc<Direct>>>,
    pub log: Mutex<Vec<String>>,
    pub is_slow: Arc<AtomicBool>,
    pub ends: Arc<Mutex<Ends>>,
    /// The tasks of requests that were given up.
    pub tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl OneServer {
    /// Lets the tasks go on.
    pub fn run(&self) {
        let mut tasks = core::mem::take(&mut *self.tasks.lock().unwrap());
        tasks.retain_mut(|task| task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        self.tasks.lock().unwrap().append(&mut tasks);
    }
}

impl FileServers for OneServer {
    fn connect(&self, _: &Device) -> Result<Arc<dyn Transport>> {
        let server = FileServer::new(self.disk.clone(), Ticks::default(), MESSAGE);
        let way = Arc::new(Direct {
            server: Mutex::new(Some(server)),
            disk: self.disk.clone(),
            is_slow: self.is_slow.clone(),
            refused: AtomicU8::new(0),
            ends: self.ends.clone(),
            resuming: AtomicBool::new(false),
        });
        *self.last.lock().unwrap() = Some(way.clone());
        Ok(way)
    }

    fn connect_again<'a>(&'a self, device: &'a Device) -> BoxFuture<'a, Result<Arc<dyn Transport>>> {
        Box::pin(async move {
            if self.ends.lock().unwrap().for_good {
                return Err(Error::EIO);
            }
            let way = self.connect(device)?;
            self.last.lock().unwrap().as_ref().unwrap().choose(true);
            Ok(way)
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<()> {
        self.tasks.lock().unwrap().push(task);
        Ok(())
    }

    fn log(&self, message: core::fmt::Arguments<'_>) {
        self.log.lock().unwrap().push(message.to_string());
    }
}

/// A disk from which frames are filled, and which they are written to.
pub struct Frames {
    pub machine: Simulated,
    pub disk: Disk,
    /// How many pages were moved.
    pub moved: AtomicUsize,
    /// The file server that stores everything before pages are written.
    pub storing: Mutex<Option<Arc<Direct>>>,
    /// Whether the device refuses to write.
    pub refuses: AtomicBool,
}

impl Data for Frames {
    fn memory(&self) -> Arc<dyn FileMemory> {
        unreachable!("the file server has the disk")
    }

    fn read_frames<'a>(&'a self, place: u64, frames: &'a [Frame]) -> MaybeReady<'a, Result<()>> {
        self.moved.fetch_add(frames.len(), Ordering::Relaxed);
        for (number, &frame) in frames.iter().enumerate() {
            let mut page = [0; 4096];
            let sector = SectorId::new(place / 512 + number as u64 * 8);
            self.disk.clone().read(&mut page, sector, 8).unwrap();
            self.machine.write_frame(frame, 0, &page);
        }
        MaybeReady::ready(Ok(()))
    }

    fn write_frames<'a>(&'a self, place: u64, frames: &'a [Frame]) -> MaybeReady<'a, Result<()>> {
        self.moved.fetch_add(frames.len(), Ordering::Relaxed);
        if let Some(server) = &*self.storing.lock().unwrap() {
            server.store();
        }
        if self.refuses.load(Ordering::Relaxed) {
            return MaybeReady::ready(Err(Error::EIO));
        }
        for (number, &frame) in frames.iter().enumerate() {
            let mut page = [0; 4096];
            self.machine.read_frame(frame, 0, &mut page);
            let sector = SectorId::new(place / 512 + number as u64 * 8);
            self.disk.clone().write(&page, sector, 8).unwrap();
        }
        MaybeReady::ready(Ok(()))
    }

    fn write_back(&self, _: std::ops::Range<u64>, _: bool) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    fn failures(&self) -> u32 {
        0
    }

    fn flush(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    fn discard(&self, _: std::ops::Range<u64>) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }
}

pub fn device(data: Arc<Frames>) -> Device {
    let about = About {
        family: Family::Virtio,
        size: 16 << 20,
        logical: 512,
        physical: 512,
        read_only: false,
        has_cache: true,
        discard: 0,
        geometry: None,
        serial: Vec::new(),
    };
    let number = unix::vfs::DeviceNumber { major: 254, minor: 0 };
    Device { disk: unix::disk::Disk::new("vda", number, about, data), partition: None }
}

/// The memory of files, and a disk that fills its frames.
pub fn frames(disk: &Disk) -> (Arc<dyn MemoryProvider>, Arc<Frames>) {
    let machine = Simulated::new(1024);
    let memory = Arc::new(ObjectProvider(Vm::new(machine.clone()).unwrap()));
    let (disk, moved, refuses) = (disk.clone(), AtomicUsize::new(0), AtomicBool::new(false));
    (memory, Arc::new(Frames { machine, disk, moved, storing: Mutex::new(None), refuses }))
}

pub fn mount(disk: &Disk, read_only: bool) -> Result<World> {
    mount_counted(disk, read_only).map(|(w, _)| w)
}

pub fn mount_counted(disk: &Disk, read_only: bool) -> Result<(World, Arc<Frames>)> {
    mount_on(disk, read_only).map(|(w, frames, _)| (w, frames))
}

pub fn mount_on(disk: &Disk, read_only: bool) -> Result<(World, Arc<Frames>, Arc<OneServer>)> {
    let environment = TestEnvironment::new();
    let servers = Arc::new(OneServer { disk: disk.clone(), ..OneServer::default() });
    let (memory, frames) = frames(disk);
    let kind = Ext4Type { servers: servers.clone(), memory, environment: environment.clone() };
    let root: VnodeRef = now(kind.make_on(device(frames.clone()), b"", read_only))?;
    Ok((World::on(root, environment), frames, servers))
}

/// Unmounts, and checks that e2fsck finds nothing wrong.
pub fn end(w: World, disk: &Disk) {
    now(w.vfs.end_file_systems()).unwrap();
    let found = fsck(&disk.data());
    assert!(found.is_empty(), "{found}");
}
