//! A file system whose files are those of a server that speaks 9P2000.L, such as the directory of
//! the host that an emulator shares with the machine.
//!
//! Nothing is kept that the server could change unnoticed: names are looked up, attributes loaded,
//! directories and data read at each use, and what is written is at the server when the call
//! returns. Only the pages of files that are mapped (or executed) are cached. Reads and writes of
//! such a file go through its pages. They are read again from the server when the file is opened
//! and the server says that it has changed (close-to-open consistency), and are written back by
//! fsync, msync and sync, and after at most some seconds.
//!
//! | module | subject |
//! |---|---|
//! | `session` | requests and replies, numbers of files |
//! | `node` | vnodes |
//! | `data` | the data of a regular file |
//! | `names` | operations on directories |
//! | `replies` | what replies are in Unix' terms; the client of `ext4` has it and `session`, too |

mod data;
mod names;
mod node;
mod replies;
mod session;

#[cfg(test)]
mod tests;

use crate::sync::SpinLock;
use crate::vfs::{
    DeviceNumber, FileSystem, FileSystemStatus, FileSystemType, MemoryProvider, UnwrittenPages, VnodeRef,
};
use crate::{BoxFuture, Environment, Error, MaybeReady, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use ninep::{Body, Call};
use node::Node;

pub(crate) use replies::{list, load_status, metadata, type_of};
pub(crate) use session::{Fid, Session, error_of};

/// The way of messages to a server.
pub trait Transport: Send + Sync {
    /// The largest message in bytes, at least 4096.
    fn message_size(&self) -> usize;

    /// Sends a request and waits for its reply. The transport sets the tag of the request. If the
    /// future is dropped, the server may carry out the request nevertheless. `EIO` if there is no
    /// reply: the server is gone.
    fn exchange(&self, request: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>>>;

    /// Whether there is no reply any more because the server has ended.
    fn has_ended(&self) -> bool {
        false
    }
}

/// The servers that a system reaches, by name.
pub trait Servers: Send + Sync {
    /// The way to the server that is called `tag`. `ENOENT`: there is none. `EBUSY`: it is in use,
    /// that is, an earlier result has not been dropped.
    fn connect(&self, tag: &[u8]) -> Result<Arc<dyn Transport>>;
}

/// The type of these file systems, "9p".
pub struct V9fsType {
    /// The servers that can be mounted.
    pub servers: Arc<dyn Servers>,
    /// Makes the memory of files that are mapped.
    pub memory: Arc<dyn MemoryProvider>,
    /// The source of time.
    pub environment: Arc<dyn Environment>,
}

impl FileSystemType for V9fsType {
    fn make<'a>(&'a self, source: &'a [u8], options: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::pending(async move {
            let options = Options::parse(options)?;
            let session = Session::begin(self.servers.connect(source)?).await?;
            let root: VnodeRef = V9fs::attach(session, options, self).await?;
            Ok(root)
        })
    }
}

/// The options of a mount. Other systems' names are known, as far as they ask for what is done
/// anyway.
struct Options<'a> {
    /// The directory of the server that is mounted.
    directory: &'a [u8],
}

impl<'a> Options<'a> {
    /// `EINVAL` for an option that is unknown or has another value.
    fn parse(options: &'a [u8]) -> Result<Options<'a>> {
        let mut parsed = Options { directory: b"" };
        for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
            let (name, value) = match option.iter().position(|&byte| byte == b'=') {
                Some(at) => (&option[..at], &option[at + 1..]),
                None => (option, &b""[..]),
            };
            match (name, value) {
                (b"aname", directory) => parsed.directory = directory,
                (b"trans", b"virtio") | (b"version", b"9p2000.L") => {}
                (b"cache", b"none" | b"mmap" | b"loose" | b"fscache" | b"readahead") => {}
                (b"access", b"client" | b"user" | b"any") | (b"uname", _) => {}
                (b"msize", size)
                    if core::str::from_utf8(size).is_ok_and(|size| size.parse::<u32>().is_ok()) => {}
                _ => return Err(Error::EINVAL),
            }
        }
        Ok(parsed)
    }
}

/// A file system.
pub(super) struct V9fs {
    session: Arc<Session>,
    memory: Arc<dyn MemoryProvider>,
    environment: Arc<dyn Environment>,
    device: DeviceNumber,
    root: SpinLock<Weak<Node>>,
    /// The nodes that exist, by the numbers of their files: a file has one node.
    nodes: SpinLock<BTreeMap<u64, Weak<Node>>>,
    /// Files whose pages may differ from what the server has. They are kept until they are written.
    mapped: SpinLock<Vec<Arc<Node>>>,
    /// Counts changes of the sizes of files, so that attributes that were loaded before a change
    /// are known to be older.
    changes: AtomicU64,
    status: SpinLock<FileSystemStatus>,
}

impl V9fs {
    async fn attach(session: Arc<Session>, options: Options<'_>, of: &V9fsType) -> Result<Arc<Node>> {
        let fid = session.fid();
        session.perform(&Call::Attach { fid: fid.number, user: 0, name: options.directory }).await?;
        let device = DeviceNumber::unnamed();
        let file_system = Arc::new(V9fs {
            session,
            memory: of.memory.clone(),
            environment: of.environment.clone(),
            device,
            root: SpinLock::new(Weak::new()),
            nodes: SpinLock::new(BTreeMap::new()),
            mapped: SpinLock::new(Vec::new()),
            changes: AtomicU64::new(0),
            status: SpinLock::new(FileSystemStatus::without_store("9p", device.minor.into())),
        });
        let root = file_system.node(fid, None).await?;
        *file_system.root.lock() = Arc::downgrade(&root);
        file_system.load_status().await?;
        Ok(root)
    }

    /// The node of the file of `fid`, with its attributes as they are now. `place` is where it was
    /// found.
    async fn node(self: &Arc<Self>, fid: Fid, place: Option<(Arc<Node>, &[u8])>) -> Result<Arc<Node>> {
        let seen = self.changes.load(Ordering::Acquire);
        let reply = self.session.call(&Call::GetAttributes { fid: fid.number }).await?;
        let attributes = reply.read(Body::attributes)?;
        let number = attributes.qid.path;
        let known = self.nodes.lock().get(&number).and_then(Weak::upgrade);
        if let Some(node) = known
            && node.is_of(&attributes)
        {
            node.found_again(fid, attributes, seen, place);
            return Ok(node);
        }
        let node = Node::new(self, fid, attributes, place)?;
        let mut nodes = self.nodes.lock();
        // Another task may have made it meanwhile.
        if let Some(other) =
            nodes.get(&number).and_then(Weak::upgrade).filter(|other| other.is_of(&attributes))
        {
            drop(nodes);
            return Ok(other);
        }
        let old = nodes.insert(number, Arc::downgrade(&node));
        drop(nodes);
        drop(old);
        Ok(node)
    }

    /// Keeps a file until its pages have been written.
    fn is_mapped(&self, node: Arc<Node>) {
        let mut mapped = self.mapped.lock();
        if !mapped.iter().any(|other| Arc::ptr_eq(other, &node)) {
            mapped.push(node);
        }
    }

    async fn write_all_back(&self) -> Result<()> {
        let all = self.mapped.lock().clone();
        let mut result = Ok(());
        for node in all {
            let written = node.write_back().await;
            // This list and `node` have the last references: no program can change the pages.
            let mut mapped = self.mapped.lock();
            let gone = match Arc::strong_count(&node) {
                2 => mapped.extract_if(.., |other| Arc::ptr_eq(other, &node)).next(),
                _ => None,
            };
            drop(mapped);
            drop(gone);
            result = result.and(written);
        }
        result
    }
}

impl FileSystem for V9fs {
    fn status(&self) -> FileSystemStatus {
        self.status.lock().clone()
    }

    fn options(&self) -> alloc::string::String {
        ",trans=virtio,version=9p2000.L,cache=mmap".into()
    }

    fn load_status(&self) -> MaybeReady<'_, Result<FileSystemStatus>> {
        MaybeReady::pending(async move {
            let root = self.root.lock().upgrade().ok_or(Error::EIO)?;
            let fid = root.fid();
            let status = load_status(&self.session, fid.number, "9p", self.device.minor.into()).await?;
            *self.status.lock() = status.clone();
            Ok(status)
        })
    }

    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        if self.mapped.lock().is_empty() {
            return MaybeReady::ready(Ok(()));
        }
        MaybeReady::pending(self.write_all_back())
    }

    fn count_unwritten(&self, pages: &mut UnwrittenPages) {
        let mapped = self.mapped.lock().clone();
        mapped.iter().filter_map(|node| node.cached()).for_each(|memory| pages.add(&*memory));
    }
}
