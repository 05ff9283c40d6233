//! The way to a file server that may end.
//!
//! Root starts a file server again that has ended. What it had carried out is on the disk if the
//! journal has committed it, and otherwise lost. So the requests that have changed something are
//! kept until their transaction is committed, which the file server says after each reply
//! ([`Progress`]). The new file server mounts the file system, which replays the journal. It gets
//! the requests again that are lost, in their order, then the numbers of the files that are in use,
//! and at last the requests that were not answered. The file server commits no request before it
//! has answered it, or can carry it out twice. So each request takes effect once.
//!
//! Programs rely on two things that the first file server chose, which the new one is told: the
//! numbers of new files, and the places of data. Pages are written to the disk without the file
//! server, so space that had been given to a file is kept for it, and has its data.
//!
//! A request that is given up is carried out to its end by a task of its own, since the file server
//! may have carried it out already.

use super::{Ext4Type, FileServers};
use crate::disk::Device;
use crate::sync::SpinLock;
use crate::v9fs::{Transport, error_of};
use crate::{BoxFuture, Environment, Error, Result};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use macadamia_sync::RwLock;
use ninep::{Body, Call, Mapped, Progress, Resume, WALK_MAXIMUM, kind};

/// How many requests and how many bytes of them are kept before the file server has to commit them.
const MOST: usize = 512;
const MOST_BYTES: usize = 1 << 20;

/// The present time in nanoseconds since 1970-01-01 00:00:00 UTC.
pub(super) fn now(environment: &dyn Environment) -> u64 {
    let now = environment.realtime();
    (now.seconds.max(0) as u64).saturating_mul(1_000_000_000) + u64::from(now.nanoseconds)
}

/// The way to a file server, and to those that take its place.
pub(super) struct Way {
    this: Weak<Way>,
    servers: Arc<dyn FileServers>,
    environment: Arc<dyn Environment>,
    device: Device,
    /// The server, if there is one. Locked for writing while a new one gets to where the one before
    /// was.
    server: RwLock<Option<Arc<dyn Transport>>>,
    state: SpinLock<State>,
}

#[derive(Default)]
struct State {
    /// How often a new server has taken the place of one.
    restarts: u64,
    /// Whether what a server loses can be given to the next one.
    lasts: bool,
    /// The first request of the session.
    version: Vec<u8>,
    read_only: bool,
    /// The number of the root directory.
    root: u32,
    /// The files that have numbers.
    files: BTreeMap<u32, File>,
    /// The requests that have changed something, in their order.
    log: VecDeque<Entry>,
    bytes: usize,
}

/// What a number stands for.
#[derive(Clone)]
struct File {
    inode: u64,
    /// The requests that have made it an extended attribute.
    attribute: Vec<Vec<u8>>,
}

/// A request that has changed something.
#[derive(Clone)]
struct Entry {
    /// The transaction that has the change. `None`: it is not carried out by this server yet.
    transaction: Option<u32>,
    number: u32,
    /// The request, and before it those that have made its file an extended attribute.
    requests: Vec<Vec<u8>>,
    /// The numbers of files in it.
    uses: Uses,
    /// The file that was made.
    made: Option<u64>,
    /// The place that a range has got, and how long it is.
    place: Option<(u64, u64)>,
    time: u64,
}

/// The numbers of files in a request, with their files.
type Uses = [Option<(u32, u64)>; 2];

/// The room for names that decoding a request needs.
fn names<'a>() -> [&'a [u8]; WALK_MAXIMUM] {
    Default::default()
}

/// Whether the transaction `number` is before `other`. They are numbers modulo 2^32.
fn is_before(number: u32, other: u32) -> bool {
    other.wrapping_sub(number).cast_signed() > 0
}

impl State {
    /// Whether more is kept than should be.
    fn is_full(&self) -> bool {
        self.log.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// The files that a request which changes something uses. `None`: it changes nothing.
    fn uses(&self, call: &Call<'_>) -> Option<Uses> {
        let numbers = match *call {
            Call::Make { fid, .. }
            | Call::UnlinkAt { fid, .. }
            | Call::SetAttributes { fid, .. }
            | Call::Write { fid, .. }
            | Call::Allocate { fid, .. }
            | Call::Place { fid, .. }
            | Call::Written { fid, .. }
            | Call::Clunk { fid } => [Some(fid), None],
            Call::Link { directory, fid, .. } => [Some(directory), Some(fid)],
            Call::RenameAt { from, to, .. } | Call::Exchange { from, to, .. } => [Some(from), Some(to)],
            _ => return None,
        };
        Some(numbers.map(|number| {
            let number = number?;
            self.files.get(&number).map(|file| (number, file.inode))
        }))
    }

    fn add_file(&mut self, number: u32, inode: u64) {
        self.files.insert(number, File { inode, attribute: Vec::new() });
    }

    /// Keeps a request that was carried out.
    fn add(&mut self, entry: Entry) {
        self.bytes += entry.requests.iter().map(Vec::len).sum::<usize>();
        // Replies may be seen in another order than the server's.
        let later = |kept: &Entry| is_before(entry.number, kept.number);
        let behind = self.log.iter().rev().take_while(|kept| later(kept)).count();
        self.log.insert(self.log.len() - behind, entry);
    }

    /// Forgets the requests that are committed.
    fn forget_before(&mut self, transaction: u32) {
        let is_committed = |entry: &Entry| entry.transaction.is_some_and(|it| is_before(it, transaction));
        while self.log.front().is_some_and(is_committed) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(entry) = self.log.pop_front() {
            self.bytes -= entry.requests.iter().map(Vec::len).sum::<usize>();
        }
    }

    /// Records what a reply means for the files that have numbers. Returns the entry of a request
    /// that has changed something.
    fn record(&mut self, call: &Call<'_>, request: &[u8], uses: Uses, body: Body<'_>) -> Option<Entry> {
        let mut entry = Entry {
            transaction: None,
            number: 0,
            requests: Vec::new(),
            uses,
            made: None,
            place: None,
            time: 0,
        };
        match *call {
            Call::Find { new, .. } => {
                let found = body.attributes().ok()?;
                self.add_file(new, found.qid.path);
                return None;
            }
            Call::Make { new, .. } => {
                let made = body.attributes().ok()?.qid.path;
                self.add_file(new, made);
                entry.made = Some(made);
            }
            Call::Walk { fid, new, .. } | Call::XattrWalk { fid, new, .. } => {
                let inode = self.files.get(&fid)?.inode;
                self.add_file(new, inode);
                if let (Call::XattrWalk { .. }, Some(file)) = (call, self.files.get_mut(&new)) {
                    file.attribute.push(request.to_vec());
                }
                return None;
            }
            Call::XattrCreate { fid, .. } => {
                self.files.get_mut(&fid)?.attribute = vec![request.to_vec()];
                return None;
            }
            Call::Write { fid, .. } => {
                if let Some(file) = self.files.get_mut(&fid).filter(|file| !file.attribute.is_empty()) {
                    file.attribute.push(request.to_vec());
                    return None;
                }
            }
            Call::Place { .. } => match body.mapped().ok()? {
                Mapped::Unwritten { length, place } | Mapped::Data { length, place } => {
                    entry.place = Some((length, place));
                }
                Mapped::Hole { .. } => return None,
            },
            Call::Remount { read_only } => {
                self.read_only = read_only;
                return None;
            }
            Call::Unmount => {
                (self.lasts, self.bytes) = (false, 0);
                self.files.clear();
                self.log.clear();
                return None;
            }
            Call::Link { .. }
            | Call::RenameAt { .. }
            | Call::Exchange { .. }
            | Call::UnlinkAt { .. }
            | Call::SetAttributes { .. }
            | Call::Allocate { .. }
            | Call::Written { .. } => {}
            _ => return None,
        }
        entry.requests.push(request.to_vec());
        Some(entry)
    }

    /// A number was forgotten. Returns the entry if that has set an extended attribute.
    fn forgotten(&mut self, number: u32, request: &[u8], done: bool) -> Option<Entry> {
        let File { inode, attribute: mut requests } = self.files.remove(&number)?;
        let is_set = requests.first().is_some_and(|it| it.get(4) == Some(&kind::XATTRCREATE));
        if !is_set || !done {
            return None;
        }
        requests.push(request.to_vec());
        let uses = [Some((number, inode)), None];
        Some(Entry { transaction: None, number: 0, requests, uses, made: None, place: None, time: 0 })
    }
}

impl Way {
    /// The way to a file server that is free, whose disk is `device` from now on.
    pub(super) fn to(of: &Ext4Type, device: &Device) -> Result<Arc<Way>> {
        let server = of.servers.connect(device)?;
        Ok(Arc::new_cyclic(|this| Way {
            this: this.clone(),
            servers: of.servers.clone(),
            environment: of.environment.clone(),
            device: device.clone(),
            server: RwLock::new(Some(server)),
            state: SpinLock::new(State::default()),
        }))
    }

    /// Has a request carried out, by the server or one that takes its place.
    async fn carry_out(self: Arc<Self>, request: Vec<u8>) -> Result<Vec<u8>> {
        loop {
            let restarts = {
                let server = self.server.read().await;
                let server = server.as_ref().ok_or(Error::EIO)?;
                // What the numbers stand for is looked up now: when the reply comes, they may be
                // forgotten.
                let (uses, is_full, restarts) = {
                    let (mut names, state) = (names(), self.state.lock());
                    let call = Call::decode(&request, &mut names).ok();
                    let uses = call.and_then(|(_, call)| state.uses(&call));
                    (uses, uses.is_some() && state.is_full(), state.restarts)
                };
                if is_full {
                    self.store(&**server).await;
                }
                match server.exchange(request.clone()).await {
                    Ok(reply) => {
                        self.record(&request, uses.unwrap_or_default(), &reply);
                        return Ok(reply);
                    }
                    Err(_) if server.has_ended() && self.state.lock().lasts => restarts,
                    Err(error) => return Err(error),
                }
            };
            self.restart(restarts).await?;
        }
    }

    /// Has the server commit what is kept. An error is one that the next request meets.
    async fn store(&self, server: &dyn Transport) {
        let request = Call::Synchronize { fid: self.state.lock().root, data_only: false }.encode();
        if let Ok(reply) = server.exchange(request.clone()).await {
            self.record(&request, Uses::default(), &reply);
        }
    }

    fn record(&self, request: &[u8], uses: Uses, reply: &[u8]) {
        let mut names = names();
        let Ok((_, call)) = Call::decode(request, &mut names) else { return };
        let (progress, body) = (Progress::of(reply), ninep::reply(call.kind(), reply));
        let mut state = self.state.lock();
        match call {
            Call::Version { .. } => state.version = request.to_vec(),
            Call::Mount { fid, read_only, .. } => {
                if let Ok(Ok(Ok(root))) = body.map(Body::mounted) {
                    state.add_file(fid, root.path);
                    (state.root, state.read_only, state.lasts) = (fid, read_only, progress.is_some());
                }
            }
            call => {
                let Some(progress) = progress.filter(|_| state.lasts) else { return };
                let entry = match (call, body) {
                    (Call::Clunk { fid }, body) => state.forgotten(fid, request, body.is_ok()),
                    (call, Ok(body)) => state.record(&call, request, uses, body),
                    (_, Err(_)) => None,
                };
                if let Some(mut entry) = entry {
                    entry.time = now(&*self.environment);
                    (entry.transaction, entry.number) = (Some(progress.transaction), progress.number);
                    state.add(entry);
                }
                state.forget_before(progress.transaction);
            }
        }
    }

    /// Waits for a server that takes the place of the one that has ended, unless there was one
    /// after so many `restarts`. `EIO`: there is none.
    async fn restart(&self, restarts: u64) -> Result<()> {
        let mut server = self.server.write().await;
        if self.state.lock().restarts != restarts {
            return if server.is_some() { Ok(()) } else { Err(Error::EIO) };
        }
        let name = self.device.name();
        let why = loop {
            // The way to the old server is given back, which may be that to the new one, too.
            *server = None;
            let new = match self.servers.connect_again(&self.device).await {
                Ok(new) => new,
                Err(error) => break error,
            };
            match self.resume(&*new).await {
                Ok(()) => {
                    *server = Some(new);
                    self.state.lock().restarts += 1;
                    self.servers.log(format_args!("the file server of {name} was started again"));
                    return Ok(());
                }
                Err(_) if new.has_ended() => {}
                Err(error) => break error,
            }
        };
        let mut state = self.state.lock();
        state.restarts += 1;
        state.lasts = false;
        drop(state);
        self.servers.log(format_args!("the file server of {name} has ended for good: {why:?}"));
        Err(Error::EIO)
    }

    /// Gets a server to where the one before was.
    async fn resume(&self, server: &dyn Transport) -> Result<()> {
        let (version, fid, read_only) = {
            let state = self.state.lock();
            (state.version.clone(), state.root, state.read_only)
        };
        let reply = server.exchange(version).await?;
        ninep::reply(kind::VERSION, &reply).map_err(error_of)?;
        let mount = Call::Mount { fid, read_only, resume: true, time: now(&*self.environment) };
        let reply = server.exchange(mount.encode()).await?;
        let mounted = ninep::reply(kind::MOUNT, &reply).and_then(Body::mounted).map_err(error_of)?;
        mounted.map_err(|(number, _)| error_of(ninep::Failure::Server(number)))?;
        let first = Progress::of(&reply).ok_or(Error::EIO)?.transaction;
        let places: Vec<_> = {
            let mut state = self.state.lock();
            state.forget_before(first);
            // The new transaction may have the same number, and has none of these changes yet.
            state.log.iter_mut().for_each(|entry| entry.transaction = None);
            state.log.iter().filter_map(|entry| entry.place).collect()
        };
        for (length, place) in places {
            self.step(server, Resume::Reserve { place, length }).await?;
        }
        let mut named = BTreeSet::from([fid]);
        for index in 0.. {
            let Some(entry) = self.state.lock().log.get(index).cloned() else { break };
            let progress = self.give_again(server, &entry, &mut named).await?;
            let mut state = self.state.lock();
            if let Some(entry) = state.log.get_mut(index) {
                (entry.transaction, entry.number) = (Some(progress.transaction), progress.number);
            }
        }
        self.name_files(server, &mut named).await?;
        self.step(server, Resume::Time { time: now(&*self.environment) }).await?;
        self.step(server, Resume::End).await
    }

    async fn step(&self, server: &dyn Transport, step: Resume) -> Result<()> {
        perform(server, kind::RESUME, Call::Resume { step }.encode()).await.map(drop)
    }

    /// Gives a request again that was carried out and lost. Returns which transaction has it now.
    async fn give_again(
        &self,
        server: &dyn Transport,
        entry: &Entry,
        named: &mut BTreeSet<u32>,
    ) -> Result<Progress> {
        for (fid, inode) in entry.uses.into_iter().flatten() {
            if named.insert(fid) {
                self.step(server, Resume::Name { fid, inode }).await?;
            }
        }
        self.step(server, Resume::Time { time: entry.time }).await?;
        if let Some(inode) = entry.made {
            self.step(server, Resume::Choose { inode }).await?;
        }
        let mut progress = Progress::default();
        for request in &entry.requests {
            let mut names = names();
            let (_, call) = Call::decode(request, &mut names).map_err(error_of)?;
            let (kind, request) = match (call, entry.place) {
                (Call::Place { fid, offset, .. }, Some((length, place))) => {
                    let step = Resume::Place { fid, offset, length, place };
                    (kind::RESUME, Call::Resume { step }.encode())
                }
                (call, _) => (call.kind(), request.clone()),
            };
            progress = Progress::of(&perform(server, kind, request).await?).ok_or(Error::EIO)?;
            match call {
                Call::Make { new, .. } => drop(named.insert(new)),
                Call::Clunk { fid } => drop(named.remove(&fid)),
                _ => {}
            }
        }
        Ok(progress)
    }

    /// Gives the files the numbers that they have, and no others.
    async fn name_files(&self, server: &dyn Transport, named: &mut BTreeSet<u32>) -> Result<()> {
        let files = self.state.lock().files.clone();
        for number in named.iter().filter(|number| !files.contains_key(number)) {
            // The server does not know the number if its file was freed.
            server.exchange(Call::Clunk { fid: *number }.encode()).await?;
        }
        // An extended attribute that is read is that of a file which has a number of its own.
        let is_read =
            |file: &File| file.attribute.first().is_some_and(|it| it.get(4) == Some(&kind::XATTRWALK));
        for (&fid, file) in files.iter().filter(|(fid, file)| !named.contains(fid) && !is_read(file)) {
            match self.step(server, Resume::Name { fid, inode: file.inode }).await {
                // It was freed by a request to unmount that was not answered.
                Ok(()) | Err(Error::ENOENT) => {}
                Err(error) => return Err(error),
            }
        }
        for request in files.values().flat_map(|file| &file.attribute) {
            let kind = request.get(4).copied().unwrap_or_default();
            match perform(server, kind, request.clone()).await {
                // The attribute was removed meanwhile: its reader sees an error.
                Ok(_) | Err(Error::ENODATA | Error::EBADF) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Has a request of this kind carried out, which must succeed. Returns the reply.
async fn perform(server: &dyn Transport, kind: u8, request: Vec<u8>) -> Result<Vec<u8>> {
    let reply = server.exchange(request).await?;
    ninep::reply(kind, &reply).map_err(error_of)?;
    Ok(reply)
}

impl Transport for Way {
    fn message_size(&self) -> usize {
        self.server.try_read().and_then(|server| Some(server.as_ref()?.message_size())).unwrap_or_default()
    }

    fn exchange(&self, request: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>> {
        let Some(way) = self.this.upgrade() else { return Box::pin(async { Err(Error::EIO) }) };
        let exchange = Some(Box::pin(way.clone().carry_out(request)) as BoxFuture<'static, _>);
        Box::pin(Whole { way, exchange, is_begun: false })
    }
}

/// A request that is carried out as a whole, even if this is dropped after it has begun.
struct Whole {
    way: Arc<Way>,
    exchange: Option<BoxFuture<'static, Result<Vec<u8>>>>,
    is_begun: bool,
}

impl Future for Whole {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.is_begun = true;
        let Some(exchange) = &mut self.exchange else { return Poll::Pending };
        let polled = exchange.as_mut().poll(context);
        if polled.is_ready() {
            self.exchange = None;
        }
        polled
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take().filter(|_| self.is_begun) else { return };
        if self.way.servers.spawn(Box::pin(async move { drop(exchange.await) })).is_err() {
            // What the request changes is not known, and cannot be given again.
            self.way.state.lock().lasts = false;
        }
    }
}
