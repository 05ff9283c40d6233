//! Disks in memory, made and checked by e2fsprogs, and a client of the file server.
#![allow(dead_code, reason = "each test program uses some of it")]

use ext4::{
    BlockIo, Clock, DeviceCapabilities, DeviceGeometry, Ext4Error, Ext4Result, Ext4Timestamp, FileServer,
    SectorId, WallClock,
};
use ninep::{
    AttributeChange, Attributes, Body, Call, Failure, FileSystemStatus, Mapped, SpaceChange, kind, reply,
};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub const SECTOR: usize = 512;
/// Where the superblock begins, which has two sectors.
const SUPERBLOCK: usize = 1024;
/// The largest message.
pub const MESSAGE: usize = 128 << 10;

/// What was done to a disk.
#[derive(Clone, Debug)]
pub enum Event {
    Write(usize, Vec<u8>),
    Flush,
    /// The test has noted something.
    Note(usize),
}

#[derive(Default)]
pub struct State {
    pub data: Vec<u8>,
    /// What was done since the recording began.
    pub log: Option<Vec<Event>>,
    /// After so many writes each write fails.
    pub writes_left: Option<u64>,
    /// Whether a write has failed for that.
    pub has_refused: bool,
    pub read_only: bool,
    /// How many requests have read and written the disk.
    pub reads: u64,
    pub writes: u64,
}

/// A disk in memory.
#[derive(Clone, Default)]
pub struct Disk(pub Arc<Mutex<State>>);

impl Disk {
    pub fn of(data: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(State { data, ..State::default() })))
    }

    pub fn data(&self) -> Vec<u8> {
        self.0.lock().unwrap().data.clone()
    }

    pub fn record(&self) {
        self.0.lock().unwrap().log = Some(Vec::new());
    }

    pub fn note(&self, what: usize) {
        if let Some(log) = &mut self.0.lock().unwrap().log {
            log.push(Event::Note(what));
        }
    }

    pub fn log(&self) -> Vec<Event> {
        self.0.lock().unwrap().log.take().unwrap_or_default()
    }
}

impl BlockIo for Disk {
    fn write(&mut self, buffer: &[u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        let mut state = self.0.lock().unwrap();
        state.writes += 1;
        let start = sector.as_usize()? * SECTOR;
        assert_eq!(buffer.len(), count as usize * SECTOR);
        if let Some(left) = state.writes_left {
            state.has_refused |= left == 0;
            state.writes_left = Some(left.checked_sub(1).ok_or(Ext4Error::io())?);
        }
        let place = state.data.get_mut(start..start + buffer.len()).ok_or(Ext4Error::io())?;
        place.copy_from_slice(buffer);
        if let Some(log) = &mut state.log {
            log.push(Event::Write(start, buffer.to_vec()));
        }
        Ok(())
    }

    fn write_gathered(&mut self, buffers: &[&[u8]], mut sector: SectorId) -> Ext4Result<()> {
        let writes = self.0.lock().unwrap().writes;
        for buffer in buffers {
            let count = (buffer.len() / SECTOR) as u32;
            self.write(buffer, sector, count)?;
            sector = SectorId::new(sector.raw() + u64::from(count));
        }
        self.0.lock().unwrap().writes = writes + 1;
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], sector: SectorId, _count: u32) -> Ext4Result<()> {
        let mut state = self.0.lock().unwrap();
        state.reads += 1;
        let start = sector.as_usize()?.checked_mul(SECTOR).ok_or(Ext4Error::io())?;
        let place = start.checked_add(buffer.len()).and_then(|end| state.data.get(start..end));
        buffer.copy_from_slice(place.ok_or(Ext4Error::io())?);
        Ok(())
    }

    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry::new(SECTOR as u32, (self.0.lock().unwrap().data.len() / SECTOR) as u64)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let read_only = self.0.lock().unwrap().read_only;
        DeviceCapabilities { read_only, flush: true, ..DeviceCapabilities::default() }
    }

    fn flush(&mut self) -> Ext4Result<()> {
        if let Some(log) = &mut self.0.lock().unwrap().log {
            log.push(Event::Flush);
        }
        Ok(())
    }
}

/// A clock that goes on by a known time at each look.
#[derive(Clone, Default)]
pub struct Ticks(Arc<AtomicU64>);

impl Clock for Ticks {
    fn now(&self) -> Ext4Result<Ext4Timestamp> {
        let now = self.0.fetch_add(1_000_001, Ordering::Relaxed);
        Ok(Ext4Timestamp::new((now / 1_000_000_000) as i64, (now % 1_000_000_000) as u32))
    }
}

impl WallClock for Ticks {
    fn set(&self, nanoseconds: u64) {
        self.0.store(nanoseconds, Ordering::Relaxed);
    }
}

/// A file with a name of its own in the directory for temporary files, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("ext4-{}-{number}.img", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn program(name: &str) -> Command {
    let found = ["/usr/sbin", "/sbin"].map(|directory| PathBuf::from(directory).join(name));
    let found = found.into_iter().find(|path| path.exists());
    let mut command = Command::new(found.unwrap_or_else(|| name.into()));
    // The time that e2fsck has agrees with the times of the tests' clock.
    command.env("LC_ALL", "C").env("E2FSCK_TIME", "2000000000");
    command
}

/// Makes a file system of so many mebibytes with Debian's `mkfs.ext4` and these options.
pub fn mkfs(mebibytes: u64, options: &[&str]) -> Disk {
    let scratch = Scratch::new();
    let file = std::fs::File::create(&scratch.0).unwrap();
    file.set_len(mebibytes << 20).unwrap();
    let made = program("mkfs.ext4").args(["-q", "-F"]).args(options).arg(&scratch.0).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    Disk::of(std::fs::read(&scratch.0).unwrap())
}

/// Writes a disk's contents to a file, without its zeros.
pub fn save(data: &[u8], scratch: &Scratch) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(&scratch.0).unwrap();
    file.set_len(data.len() as u64).unwrap();
    for (number, block) in data.chunks(4096).enumerate() {
        if block.iter().any(|&byte| byte != 0) {
            file.write_all_at(block, number as u64 * 4096).unwrap();
        }
    }
}

/// What `e2fsck -fn` finds wrong with a file system; empty: nothing.
pub fn fsck(data: &[u8]) -> String {
    let scratch = Scratch::new();
    save(data, &scratch);
    let checked = program("e2fsck").args(["-f", "-n"]).arg(&scratch.0).output().unwrap();
    match checked.status.code() {
        Some(0) => String::new(),
        code => format!("{code:?}: {}", String::from_utf8_lossy(&checked.stdout)),
    }
}

/// Runs commands of debugfs on a disk. Returns what they print.
pub fn debugfs(disk: &Disk, commands: &[&str], write: bool) -> String {
    let scratch = Scratch::new();
    save(&disk.data(), &scratch);
    let mut output = String::new();
    for command in commands {
        let mut debugfs = program("debugfs");
        if write {
            debugfs.arg("-w");
        }
        let done = debugfs.args(["-R", command]).arg(&scratch.0).output().unwrap();
        output += &String::from_utf8_lossy(&done.stdout);
        output += &String::from_utf8_lossy(&done.stderr);
    }
    if write {
        disk.0.lock().unwrap().data = std::fs::read(&scratch.0).unwrap();
    }
    output
}

/// A client of a file server.
pub struct Client {
    pub server: FileServer<Disk, Ticks>,
    pub disk: Disk,
    next: u32,
}

pub type Done<T> = Result<T, Failure>;

/// The root directory's number.
pub const ROOT: u32 = 1;
/// The time at which the tests mount: in the year 2023.
pub const BEGIN: u64 = 1_700_000_000_000_000_000;

impl Client {
    /// Mounts a disk. Otherwise why that cannot be done.
    pub fn mount(disk: &Disk, read_only: bool) -> Result<Client, (u32, String)> {
        let server = FileServer::new(disk.clone(), Ticks::default(), MESSAGE);
        let mut client = Client { server, disk: disk.clone(), next: ROOT + 1 };
        client.call(&Call::Version { size: MESSAGE as u32 }, |body| body.version().map(drop)).unwrap();
        let call = Call::Mount { fid: ROOT, read_only, resume: false, time: BEGIN };
        let mounted = client.call(&call, |body| {
            body.mounted().map(|it| it.map_err(|(number, why)| (number, String::from_utf8_lossy(why).into())))
        });
        mounted.unwrap().map(|_| client)
    }

    /// Mounts a disk whose file server has ended.
    pub fn resume(disk: &Disk) -> Client {
        let server = FileServer::new(disk.clone(), Ticks::default(), MESSAGE);
        let mut client = Client { server, disk: disk.clone(), next: ROOT + 1 };
        client.call(&Call::Version { size: MESSAGE as u32 }, |body| body.version().map(drop)).unwrap();
        let call = Call::Mount { fid: ROOT, read_only: false, resume: true, time: BEGIN };
        client.call(&call, |body| body.mounted().map(drop)).unwrap();
        client
    }

    pub fn call<T>(&mut self, call: &Call<'_>, read: impl FnOnce(Body<'_>) -> Done<T>) -> Done<T> {
        let message = self.server.answer(&call.encode());
        self.server.finish();
        reply(call.kind(), &message).and_then(read)
    }

    pub fn perform(&mut self, call: &Call<'_>) -> Done<()> {
        self.call(call, |_| Ok(()))
    }

    pub fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub fn find(&mut self, fid: u32, name: &str) -> Done<(u32, Attributes)> {
        let new = self.number();
        let call = Call::Find { fid, new, name: name.as_bytes() };
        self.call(&call, |body| body.attributes()).map(|attributes| (new, attributes))
    }

    pub fn make_as(&mut self, fid: u32, name: &str, mode: u32, more: More<'_>) -> Done<(u32, Attributes)> {
        let new = self.number();
        let More { owner, device, target } = more;
        let call = Call::Make { fid, new, name: name.as_bytes(), mode, owner, device, target };
        self.call(&call, |body| body.attributes()).map(|attributes| (new, attributes))
    }

    pub fn make(&mut self, fid: u32, name: &str, mode: u32) -> Done<(u32, Attributes)> {
        self.make_as(fid, name, mode, More::default())
    }

    pub fn unlink(&mut self, fid: u32, name: &str, directory: bool) -> Done<()> {
        self.perform(&Call::UnlinkAt { fid, name: name.as_bytes(), directory })
    }

    pub fn rename(&mut self, from: (u32, &str), to: (u32, &str), exchange: bool) -> Done<()> {
        let (old, new) = (from.1.as_bytes(), to.1.as_bytes());
        self.perform(&match exchange {
            false => Call::RenameAt { from: from.0, old, to: to.0, new },
            true => Call::Exchange { from: from.0, old, to: to.0, new },
        })
    }

    pub fn link(&mut self, directory: u32, fid: u32, name: &str) -> Done<()> {
        self.perform(&Call::Link { directory, fid, name: name.as_bytes() })
    }

    pub fn attributes(&mut self, fid: u32) -> Done<Attributes> {
        self.call(&Call::GetAttributes { fid }, |body| body.attributes())
    }

    pub fn change(&mut self, fid: u32, change: AttributeChange) -> Done<()> {
        self.perform(&Call::SetAttributes { fid, change })
    }

    pub fn truncate(&mut self, fid: u32, size: u64) -> Done<()> {
        self.change(fid, AttributeChange { size: Some(size), ..Default::default() })
    }

    pub fn write(&mut self, fid: u32, mut offset: u64, data: &[u8]) -> Done<()> {
        for part in data.chunks(MESSAGE - ninep::DATA_OVERHEAD) {
            let call = Call::Write { fid, offset, data: part };
            let count = self.call(&call, |body| body.count(part.len()))?;
            assert_eq!(count, part.len());
            offset += count as u64;
        }
        Ok(())
    }

    pub fn read(&mut self, fid: u32, offset: u64, length: usize) -> Done<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let count = (length - bytes.len()).min(MESSAGE - ninep::DATA_OVERHEAD);
            let call = Call::Read { fid, offset: offset + bytes.len() as u64, count: count as u32 };
            let data = self.call(&call, |body| body.data(count).map(<[u8]>::to_vec))?;
            if data.is_empty() {
                break;
            }
            bytes.extend(data);
        }
        Ok(bytes)
    }

    pub fn read_all(&mut self, fid: u32) -> Done<Vec<u8>> {
        let size = self.attributes(fid)?.size;
        self.read(fid, 0, size as usize)
    }

    pub fn sync(&mut self) -> Done<()> {
        self.perform(&Call::Synchronize { fid: ROOT, data_only: false })
    }

    pub fn forget(&mut self, fid: u32) -> Done<()> {
        self.perform(&Call::Clunk { fid })
    }

    pub fn status(&mut self) -> FileSystemStatus {
        self.call(&Call::Statfs { fid: ROOT }, |body| body.status()).unwrap()
    }

    pub fn read_link(&mut self, fid: u32) -> Done<Vec<u8>> {
        self.call(&Call::ReadLink { fid }, |body| body.text().map(<[u8]>::to_vec))
    }

    /// The names in a directory with the numbers and types of their files, `count` bytes at a time.
    pub fn list(&mut self, fid: u32, count: u32) -> Done<Vec<(String, u64, u8)>> {
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let call = Call::ReadDirectory { fid, offset, count };
            let before = names.len();
            offset = self.call(&call, |body| {
                let mut next = offset;
                for entry in body.entries()? {
                    let name = String::from_utf8_lossy(entry.name).into_owned();
                    names.push((name, entry.qid.path, entry.file_type));
                    next = entry.next;
                }
                Ok(next)
            })?;
            if names.len() == before {
                return Ok(names);
            }
        }
    }

    pub fn set_xattr(&mut self, fid: u32, name: &str, value: Option<&[u8]>, flags: u32) -> Done<()> {
        let new = self.number();
        self.perform(&Call::Walk { fid, new, names: &[] })?;
        let size = value.map_or(0, <[u8]>::len) as u64;
        let flags = if value.is_none() { ninep::XATTR_REMOVE } else { flags };
        let begun = self.perform(&Call::XattrCreate { fid: new, name: name.as_bytes(), size, flags });
        if begun.is_err() {
            self.forget(new)?;
            return begun;
        }
        self.write(new, 0, value.unwrap_or_default())?;
        self.forget(new)
    }

    pub fn xattr(&mut self, fid: u32, name: &str) -> Done<Vec<u8>> {
        let new = self.number();
        let size = self.call(&Call::XattrWalk { fid, new, name: name.as_bytes() }, |body| body.size())?;
        let value = self.read(new, 0, size as usize)?;
        self.forget(new)?;
        Ok(value)
    }

    pub fn allocate(&mut self, fid: u32, offset: u64, length: u64, change: SpaceChange) -> Done<()> {
        self.perform(&Call::Allocate { fid, offset, length, change })
    }

    pub fn map(&mut self, fid: u32, offset: u64, length: u64) -> Done<Mapped> {
        self.call(&Call::Map { fid, offset, length }, |body| body.mapped())
    }

    pub fn unmount(mut self) -> Done<()> {
        self.perform(&Call::Unmount)
    }

    /// Unmounts, and checks that e2fsck finds nothing wrong.
    pub fn end(self) {
        let disk = self.disk.clone();
        self.unmount().unwrap();
        let found = fsck(&disk.data());
        assert!(found.is_empty(), "{found}");
    }
}

/// Owner, device and target of a file that is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct More<'a> {
    pub owner: (u32, u32),
    pub device: (u32, u32),
    pub target: &'a [u8],
}

pub const FILE: u32 = 0o100_644;
pub const DIRECTORY: u32 = 0o040_755;
pub const LINK: u32 = 0o120_777;

/// The number by which a server reports an error.
pub fn errno<T: std::fmt::Debug>(done: Done<T>) -> u32 {
    match done {
        Err(Failure::Server(number)) => number,
        other => panic!("an error is expected: {other:?}"),
    }
}

/// The kind of requests that no client of this file server sends.
pub const NONSENSE: u8 = kind::ATTACH;

/// How many cases a test tries: as many as the variable `name` says, else `few`, or ten times as
/// many in a campaign (`./mac test --all`).
pub fn campaign(name: &str, few: u64) -> u64 {
    let said = std::env::var(name).ok().and_then(|count| count.parse().ok());
    said.unwrap_or(if std::env::var_os("MAC_TEST_ALL").is_some() { 10 * few } else { few })
}

/// Random numbers that are the same at each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// What the disk may hold if the power is cut after so many events: everything up to the last
/// flush, and any part of what came after it, but both sectors of the superblock or none of them.
/// Also returns the last synchronization that ended.
pub fn cut(before: &[u8], log: &[Event], end: usize, random: &mut Random) -> (Vec<u8>, usize) {
    let mut data = before.to_vec();
    let flushed = log[..end].iter().rposition(|event| matches!(event, Event::Flush)).map_or(0, |at| at + 1);
    let mut point = 0;
    let keep = random.below(4);
    for (number, event) in log[..end].iter().enumerate() {
        match event {
            Event::Write(at, bytes) if number < flushed => data[*at..][..bytes.len()].copy_from_slice(bytes),
            Event::Write(at, bytes) => {
                let mut is_there = false;
                for (sector, part) in bytes.chunks(SECTOR).enumerate() {
                    let chosen = match keep {
                        0 => false,
                        1 => true,
                        2 => random.below(2) == 0,
                        // Whole writes, or none of them.
                        _ => (number as u64 ^ random.0).is_multiple_of(3),
                    };
                    is_there = if at + sector * SECTOR == SUPERBLOCK + SECTOR { is_there } else { chosen };
                    if is_there {
                        data[at + sector * SECTOR..][..part.len()].copy_from_slice(part);
                    }
                }
            }
            Event::Flush => {}
            Event::Note(synced) => point = *synced,
        }
    }
    (data, point)
}
