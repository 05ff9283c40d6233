//! A server of 9P2000.L over a tree of files in memory.

use crate::v9fs::{Servers, Transport};
use crate::{BoxFuture, Error, Result};
use ninep::{HEADER, Reader, VERSION, Writer, kind};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const ENOENT: u32 = 2;
const EBADF: u32 = 9;
const EEXIST: u32 = 17;
const EINVAL: u32 = 22;
const ENOTEMPTY: u32 = 39;
const ENODATA: u32 = 61;

/// A file of the server.
#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) data: Vec<u8>,
    pub(super) entries: BTreeMap<Vec<u8>, u64>,
    pub(super) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) version: u32,
    pub(super) modified: (u64, u64),
}

/// What a fid stands for.
#[derive(Clone)]
enum Use {
    File { file: u64, open: bool },
    Attribute(Vec<u8>),
    NewAttribute { file: u64, name: Vec<u8>, value: Vec<u8>, size: usize },
}

#[derive(Default)]
pub(super) struct State {
    pub(super) files: BTreeMap<u64, File>,
    next: u64,
    fids: HashMap<u32, Use>,
}

/// The server, and how it behaves.
pub(super) struct Server {
    pub(super) state: Mutex<State>,
    pub(super) is_gone: AtomicBool,
    is_busy: AtomicBool,
    pub(super) requests: AtomicUsize,
    message: usize,
    /// Changes a reply, for a server that lies.
    pub(super) lie: Mutex<Option<Box<dyn FnMut(&mut Vec<u8>) + Send>>>,
}

/// The way to a server; the server is free again when this is dropped.
struct Way(Arc<Server>);

impl Drop for Way {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::SeqCst);
    }
}

pub(super) struct OneServer(pub(super) Arc<Server>);

impl Servers for OneServer {
    fn connect(&self, tag: &[u8]) -> Result<Arc<dyn Transport>> {
        if tag != b"share" {
            return Err(Error::ENOENT);
        }
        if self.0.is_busy.swap(true, Ordering::SeqCst) {
            return Err(Error::EBUSY);
        }
        Ok(Arc::new(Way(self.0.clone())))
    }
}

impl Transport for Way {
    fn message_size(&self) -> usize {
        self.0.message
    }

    fn exchange(&self, request: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(async move {
            // A server takes its time.
            crate::sync::give_turn().await;
            if self.0.is_gone.load(Ordering::SeqCst) {
                return Err(Error::EIO);
            }
            self.0.requests.fetch_add(1, Ordering::SeqCst);
            let mut reply = self.0.answer(&request);
            if let Some(lie) = &mut *self.0.lie.lock().unwrap() {
                lie(&mut reply);
            }
            Ok(reply)
        })
    }
}

type Answer = Result<Box<dyn FnOnce(&mut Writer)>, u32>;

fn qid(to: &mut Writer, file: u64, mode: u32, version: u32) {
    to.byte(if mode & 0o170_000 == 0o040_000 { 0x80 } else { 0 });
    to.word(version);
    to.long(file);
}

impl Server {
    /// A server with an empty root directory.
    pub(super) fn new(message: usize) -> Arc<Server> {
        let mut state = State { next: 2, ..State::default() };
        state.files.insert(1, File { mode: 0o040_755, links: 2, ..File::default() });
        Arc::new(Server {
            state: Mutex::new(state),
            is_gone: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            message,
            lie: Mutex::new(None),
        })
    }

    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let mut from = Reader::new(request);
        let (size, kind, tag) = (from.word().unwrap(), from.byte().unwrap(), from.half().unwrap());
        assert_eq!(size as usize, request.len());
        let mut from = Reader::new(&request[HEADER..]);
        let done = self.state.lock().unwrap().perform(kind, &mut from);
        let answer = done.unwrap_or_else(|| panic!("a request of kind {kind} is too short"));
        match answer {
            Ok(write) => {
                assert!(from.is_empty(), "a request of kind {kind} has more than its arguments");
                let mut to = Writer::new(kind + 1, tag);
                write(&mut to);
                to.finish()
            }
            Err(number) => {
                let mut to = Writer::new(kind::ERROR, tag);
                to.word(number);
                to.finish()
            }
        }
    }

    /// The number of the file at a path.
    pub(super) fn at(&self, path: &str) -> Option<u64> {
        let state = self.state.lock().unwrap();
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(1, |at, name| state.files[&at].entries.get(name.as_bytes()).copied())
    }

    /// How many files the client uses.
    pub(super) fn fids(&self) -> usize {
        self.state.lock().unwrap().fids.len()
    }

    pub(super) fn content(&self, path: &str) -> Option<Vec<u8>> {
        let file = self.at(path)?;
        Some(self.state.lock().unwrap().files[&file].data.clone())
    }

    /// Writes a file as a program on the server's side does.
    pub(super) fn put(&self, path: &str, content: &[u8]) {
        let (above, name) = path.rsplit_once('/').unwrap();
        let above = self.at(above).unwrap();
        let mut state = self.state.lock().unwrap();
        let file = match state.files[&above].entries.get(name.as_bytes()) {
            Some(file) => *file,
            None => state.make(above, name.as_bytes(), 0o100_644).unwrap(),
        };
        let file = state.files.get_mut(&file).unwrap();
        file.data = content.to_vec();
        file.changed();
    }
}

impl File {
    fn changed(&mut self) {
        self.version += 1;
        self.modified = (1000 + u64::from(self.version), 5);
    }
}

impl State {
    fn make(&mut self, above: u64, name: &[u8], mode: u32) -> Result<u64, u32> {
        let number = self.next;
        let directory = self.files.get_mut(&above).ok_or(ENOENT)?;
        if directory.entries.contains_key(name) {
            return Err(EEXIST);
        }
        directory.entries.insert(name.to_vec(), number);
        let links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
        self.files.insert(number, File { mode, links, ..File::default() });
        self.next += 1;
        Ok(number)
    }

    fn file(&self, fid: u32) -> Result<u64, u32> {
        match self.fids.get(&fid) {
            Some(Use::File { file, .. }) if self.files.contains_key(file) => Ok(*file),
            _ => Err(EBADF),
        }
    }

    fn perform(&mut self, request: u8, from: &mut Reader<'_>) -> Option<Answer> {
        Some(match request {
            kind::VERSION => {
                let size = from.word()?;
                assert_eq!(from.string()?, VERSION);
                self.fids.clear();
                Ok(Box::new(move |to| {
                    to.word(size);
                    to.string(VERSION);
                }))
            }
            kind::ATTACH => {
                let fid = from.word()?;
                let _ = (from.word()?, from.string()?, from.string()?, from.word()?);
                self.fids.insert(fid, Use::File { file: 1, open: false });
                self.qid(1)
            }
            kind::WALK => {
                let (fid, new, count) = (from.word()?, from.word()?, from.half()?);
                let names: Vec<&[u8]> = (0..count).map(|_| from.string()).collect::<Option<_>>()?;
                self.walk(fid, new, &names)
            }
            kind::OPEN => {
                let (fid, _) = (from.word()?, from.word()?);
                self.open(fid)
            }
            kind::CREATE => {
                let (fid, name, _, mode, _) =
                    (from.word()?, from.string()?, from.word()?, from.word()?, from.word()?);
                let made = self.file(fid).and_then(|above| self.make(above, name, 0o100_000 | mode));
                made.and_then(|file| {
                    self.fids.insert(fid, Use::File { file, open: false });
                    self.open(fid)
                })
            }
            kind::MKDIR => {
                let (fid, name, mode, _) = (from.word()?, from.string()?, from.word()?, from.word()?);
                let made = self.file(fid).and_then(|above| self.make(above, name, 0o040_000 | mode));
                made.and_then(|file| self.qid(file))
            }
            kind::SYMLINK => {
                let (fid, name, target, _) = (from.word()?, from.string()?, from.string()?, from.word()?);
                let made = self.file(fid).and_then(|above| self.make(above, name, 0o120_777));
                made.and_then(|file| {
                    self.files.get_mut(&file).unwrap().data = target.to_vec();
                    self.qid(file)
                })
            }
            kind::MKNOD => {
                let (fid, name, mode) = (from.word()?, from.string()?, from.word()?);
                let _ = (from.word()?, from.word()?, from.word()?);
                let made = self.file(fid).and_then(|above| self.make(above, name, mode));
                made.and_then(|file| self.qid(file))
            }
            kind::READLINK => {
                let target = self.file(from.word()?).map(|file| self.files[&file].data.clone());
                target.map(|target| Box::new(move |to: &mut Writer| to.string(&target)) as _)
            }
            kind::GETATTR => {
                let (fid, _) = (from.word()?, from.long()?);
                self.file(fid).map(|file| self.attributes(file))
            }
            kind::SETATTR => {
                let fid = from.word()?;
                let words: Vec<u32> = (0..4).map(|_| from.word()).collect::<Option<_>>()?;
                let longs: Vec<u64> = (0..5).map(|_| from.long()).collect::<Option<_>>()?;
                self.file(fid).map(|file| self.change(file, &words, &longs))
            }
            kind::LINK => {
                let (directory, fid, name) = (from.word()?, from.word()?, from.string()?);
                self.link(directory, fid, name)
            }
            kind::RENAMEAT => {
                let (old, name, new, new_name) = (from.word()?, from.string()?, from.word()?, from.string()?);
                self.rename((old, name), (new, new_name))
            }
            kind::UNLINKAT => {
                let (fid, name, flags) = (from.word()?, from.string()?, from.word()?);
                self.unlink(fid, name, flags == 0x200)
            }
            kind::READDIR => {
                let (fid, offset, count) = (from.word()?, from.long()?, from.word()?);
                self.list(fid, offset as usize, count as usize)
            }
            kind::READ => {
                let (fid, offset, count) = (from.word()?, from.long()? as usize, from.word()? as usize);
                self.read(fid, offset, count)
            }
            kind::WRITE => {
                let (fid, offset, data) = (from.word()?, from.long()? as usize, from.data()?);
                self.write(fid, offset, data)
            }
            kind::FSYNC => {
                let _ = (from.word()?, from.word()?);
                done()
            }
            kind::STATFS => {
                let _ = from.word()?;
                Ok(Box::new(|to| {
                    to.word(0x0102_1994);
                    to.word(4096);
                    [1000, 500, 400, 100, 50, 7].into_iter().for_each(|value| to.long(value));
                    to.word(255);
                }))
            }
            kind::XATTRWALK => {
                let (fid, new, name) = (from.word()?, from.word()?, from.string()?);
                self.find_attribute(fid, new, name)
            }
            kind::XATTRCREATE => {
                let (fid, name, size, _) = (from.word()?, from.string()?, from.long()?, from.word()?);
                self.file(fid).and_then(|file| {
                    let (name, value, size) = (name.to_vec(), vec![], size as usize);
                    self.fids.insert(fid, Use::NewAttribute { file, name, value, size });
                    done()
                })
            }
            kind::CLUNK => {
                let fid = from.word()?;
                match self.fids.remove(&fid) {
                    Some(Use::NewAttribute { file, name, value, size }) => {
                        let attributes = &mut self.files.get_mut(&file).unwrap().attributes;
                        match size {
                            0 => drop(attributes.remove(&name)),
                            _ => drop(attributes.insert(name, value)),
                        }
                        done()
                    }
                    Some(_) => done(),
                    None => Err(EBADF),
                }
            }
            other => panic!("a request of kind {other}"),
        })
    }

    fn qid(&self, file: u64) -> Answer {
        let File { mode, version, .. } = self.files[&file];
        Ok(Box::new(move |to| qid(to, file, mode, version)))
    }

    fn walk(&mut self, fid: u32, new: u32, names: &[&[u8]]) -> Answer {
        let mut file = self.file(fid)?;
        assert!(!self.fids.contains_key(&new), "the fid {new} is in use");
        let mut found = vec![];
        for name in names {
            let Some(next) = self.files[&file].entries.get(*name) else { break };
            file = *next;
            found.push((file, self.files[&file].mode, self.files[&file].version));
        }
        if found.is_empty() && !names.is_empty() {
            return Err(ENOENT);
        }
        if found.len() == names.len() {
            self.fids.insert(new, Use::File { file, open: false });
        }
        Ok(Box::new(move |to| {
            to.half(found.len() as u16);
            found.iter().for_each(|(file, mode, version)| qid(to, *file, *mode, *version));
        }))
    }

    fn open(&mut self, fid: u32) -> Answer {
        let file = self.file(fid)?;
        self.fids.insert(fid, Use::File { file, open: true });
        let File { mode, version, .. } = self.files[&file];
        Ok(Box::new(move |to| {
            qid(to, file, mode, version);
            to.word(0);
        }))
    }

    fn attributes(&self, number: u64) -> Box<dyn FnOnce(&mut Writer)> {
        let file = self.files[&number].clone();
        Box::new(move |to| {
            to.long(0x7ff);
            qid(to, number, file.mode, file.version);
            [file.mode, 1000, 1000].into_iter().for_each(|word| to.word(word));
            let size = file.data.len() as u64;
            [file.links, 0, size, 4096, size.div_ceil(512)].into_iter().for_each(|value| to.long(value));
            for (seconds, nanoseconds) in [(1, 2), file.modified, file.modified, (0, 0)] {
                to.long(seconds);
                to.long(nanoseconds);
            }
            to.long(0);
            to.long(0);
        })
    }

    fn change(&mut self, file: u64, words: &[u32], longs: &[u64]) -> Box<dyn FnOnce(&mut Writer)> {
        let file = self.files.get_mut(&file).unwrap();
        if words[0] & 1 != 0 {
            file.mode = file.mode & !0o7777 | words[1];
        }
        if words[0] & 8 != 0 {
            file.data.resize(longs[0] as usize, 0);
            file.changed();
        }
        if words[0] & 0x120 == 0x120 {
            file.modified = (longs[3], longs[4]);
        }
        Box::new(|_| {})
    }

    fn link(&mut self, directory: u32, fid: u32, name: &[u8]) -> Answer {
        let (above, file) = (self.file(directory)?, self.file(fid)?);
        if self.files[&above].entries.contains_key(name) {
            return Err(EEXIST);
        }
        self.files.get_mut(&above).unwrap().entries.insert(name.to_vec(), file);
        self.files.get_mut(&file).unwrap().links += 1;
        done()
    }

    fn rename(&mut self, (old, name): (u32, &[u8]), (new, new_name): (u32, &[u8])) -> Answer {
        let (old, new) = (self.file(old)?, self.file(new)?);
        let file = self.files.get_mut(&old).unwrap().entries.remove(name).ok_or(ENOENT)?;
        let replaced = self.files.get_mut(&new).unwrap().entries.insert(new_name.to_vec(), file);
        replaced.map(|replaced| self.files.get_mut(&replaced).unwrap().links -= 1);
        done()
    }

    fn unlink(&mut self, fid: u32, name: &[u8], directory: bool) -> Answer {
        let above = self.file(fid)?;
        let file = *self.files[&above].entries.get(name).ok_or(ENOENT)?;
        let is_directory = self.files[&file].mode & 0o170_000 == 0o040_000;
        if is_directory != directory {
            return Err(EINVAL);
        }
        if !self.files[&file].entries.is_empty() {
            return Err(ENOTEMPTY);
        }
        self.files.get_mut(&above).unwrap().entries.remove(name);
        self.files.get_mut(&file).unwrap().links -= 1;
        done()
    }

    /// Entries have their places in the list as positions.
    fn list(&mut self, fid: u32, offset: usize, count: usize) -> Answer {
        let Some(Use::File { file, open: true }) = self.fids.get(&fid) else { return Err(EBADF) };
        let mut to = Writer::new(0, 0);
        let dots = [(&b"."[..], *file), (b"..", *file)];
        let own = self.files[file].entries.iter().map(|(name, file)| (&name[..], *file));
        let mut length = 0;
        for (place, (name, number)) in dots.into_iter().chain(own).enumerate().skip(offset) {
            length += 24 + name.len();
            if length > count {
                break;
            }
            let entry = &self.files[&number];
            qid(&mut to, number, entry.mode, entry.version);
            to.long(place as u64 + 1);
            to.byte((entry.mode >> 12) as u8);
            to.string(name);
        }
        Ok(Box::new(move |reply| {
            let entries = &to.finish()[HEADER..];
            reply.word(entries.len() as u32);
            reply.raw(entries);
        }))
    }

    fn read(&self, fid: u32, offset: usize, count: usize) -> Answer {
        let data = match self.fids.get(&fid).ok_or(EBADF)? {
            Use::File { file, open: true } => &self.files[file].data,
            Use::Attribute(value) => value,
            _ => return Err(EBADF),
        };
        let start = offset.min(data.len());
        let part = data[start..(start + count).min(data.len())].to_vec();
        Ok(Box::new(move |to| {
            to.word(part.len() as u32);
            to.raw(&part);
        }))
    }

    fn write(&mut self, fid: u32, offset: usize, data: &[u8]) -> Answer {
        let count = data.len() as u32;
        match self.fids.get_mut(&fid).ok_or(EBADF)? {
            Use::File { file, open: true } => {
                let file = self.files.get_mut(file).unwrap();
                let end = offset + data.len();
                if file.data.len() < end {
                    file.data.resize(end, 0);
                }
                file.data[offset..end].copy_from_slice(data);
                file.changed();
            }
            Use::NewAttribute { value, .. } => value.extend_from_slice(data),
            _ => return Err(EBADF),
        }
        Ok(Box::new(move |to| to.word(count)))
    }

    fn find_attribute(&mut self, fid: u32, new: u32, name: &[u8]) -> Answer {
        let attributes = &self.files[&self.file(fid)?].attributes;
        let value = match name {
            b"" => attributes.keys().flat_map(|name| name.iter().copied().chain([0])).collect(),
            name => attributes.get(name).ok_or(ENODATA)?.clone(),
        };
        let size = value.len() as u64;
        self.fids.insert(new, Use::Attribute(value));
        Ok(Box::new(move |to| to.long(size)))
    }
}

fn done() -> Answer {
    Ok(Box::new(|_| {}))
}
