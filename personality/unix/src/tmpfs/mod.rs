//! tmpfs: a file system in memory. Files are [`FileMemory`], so reading, writing and mapping share
//! one page cache.
//!
//! Locks are taken in this order: `tree` (by operations that lock more than one directory),
//! directories, then a node's attributes, place and extended attributes. Code that holds one
//! directory's lock takes another's only if it holds `tree`, too.

mod directory;
mod names;
mod node;
mod options;

#[cfg(test)]
mod tests;

pub use options::TmpfsOptions;

use crate::file::FileObject;
use crate::sync::{Mutex, SpinLock};
use crate::vfs::{
    DeviceNumber, FileSystem, FileSystemStatus, FileType, InitialContents, MemoryProvider, NAME_MAXIMUM,
    NewAttributes, PAGE_SIZE, Quota, VnodeRef,
};
use crate::{Environment, Error, MaybeReady, Result};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use node::{Content, Node};

#[cfg(doc)]
use crate::vfs::FileMemory;

/// A file system of type tmpfs.
pub struct Tmpfs {
    kind: &'static str,
    device: DeviceNumber,
    environment: Arc<dyn Environment>,
    memory: Arc<dyn MemoryProvider>,
    quota: Arc<Pages>,
    room: SpinLock<Room>,
    next_number: AtomicU64,
    tree: Mutex<()>,
    /// How many pages the machine has; limits in percent refer to this.
    memory_pages: u64,
    /// What a new regular file is, in a file system whose files are objects.
    objects: Option<Arc<ObjectMaker>>,
}

/// Makes the object to which the reads and writes of a new file go.
pub(crate) type ObjectMaker = dyn Fn(&NewAttributes) -> Result<Arc<dyn FileObject>> + Send + Sync;

/// How many bytes the system keeps for a file with a name. Long targets of symbolic links and
/// extended attributes are not included, and counted as well.
const FILE_ROOM: u64 = 1024;

/// The limit and use of the system's own memory, in bytes, for files and names of one tmpfs.
struct Room {
    used: u64,
    limit: u64,
}

/// How many bytes of the system's memory `files` files take.
fn room_for(files: u64) -> u64 {
    files.saturating_mul(FILE_ROOM)
}

/// The limit and use of pages for the contents of one tmpfs.
struct Pages {
    used: SpinLock<u64>,
    limit: AtomicU64,
}

impl Quota for Pages {
    fn charge(&self, pages: u64) -> bool {
        let mut used = self.used.lock();
        // Relaxed ordering: while the limit is being changed, the old or the new one may apply.
        if pages > self.limit.load(Ordering::Relaxed).saturating_sub(*used) {
            return false;
        }
        *used += pages;
        true
    }

    fn release(&self, pages: u64) {
        *self.used.lock() -= pages;
    }
}

impl Tmpfs {
    /// Makes an empty tmpfs; returns its root directory.
    // The caller needs the root directory, which keeps a reference to the file system.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(
        options: &TmpfsOptions,
        memory: Arc<dyn MemoryProvider>,
        environment: Arc<dyn Environment>,
    ) -> Result<VnodeRef> {
        let file_system = Tmpfs::create(options, memory, environment, None);
        let root = file_system.root_node(options)?;
        Ok(root)
    }

    /// Makes an empty file system that has only one directory, and in it only files whose reads and
    /// writes go to objects; returns its root directory.
    pub(crate) fn of_objects(
        options: &TmpfsOptions,
        memory: Arc<dyn MemoryProvider>,
        environment: Arc<dyn Environment>,
        objects: Arc<ObjectMaker>,
    ) -> Result<VnodeRef> {
        let file_system = Tmpfs::create(options, memory, environment, Some(objects));
        let root = file_system.root_node(options)?;
        Ok(root)
    }

    fn create(
        options: &TmpfsOptions,
        memory: Arc<dyn MemoryProvider>,
        environment: Arc<dyn Environment>,
        objects: Option<Arc<ObjectMaker>>,
    ) -> Arc<Tmpfs> {
        Arc::new(Tmpfs {
            kind: options.kind,
            device: DeviceNumber::unnamed(),
            environment,
            memory,
            quota: Arc::new(Pages { used: SpinLock::new(0), limit: AtomicU64::new(options.pages) }),
            room: SpinLock::new(Room { used: 0, limit: room_for(options.files) }),
            next_number: AtomicU64::new(1),
            tree: Mutex::new(()),
            memory_pages: options.memory_pages,
            objects,
        })
    }

    fn root_node(self: &Arc<Tmpfs>, options: &TmpfsOptions) -> Result<Arc<Node>> {
        let attributes = NewAttributes {
            mode: options.mode,
            user: options.user,
            group: options.group,
            account: None,
            lists: None,
        };
        let root = Node::new(self, FileType::Directory, Content::directory(), attributes)?;
        root.become_root();
        Ok(root)
    }

    /// Makes the root directory of a new tmpfs whose files start with contents that are already in
    /// memory.
    pub(crate) fn with_contents(
        options: &TmpfsOptions,
        memory: Arc<dyn MemoryProvider>,
        environment: Arc<dyn Environment>,
    ) -> Result<Builder> {
        let file_system = Tmpfs::create(options, memory, environment, None);
        let root = file_system.root_node(options)?;
        Ok(Builder { file_system, root })
    }

    /// Charges `bytes` of the system's memory for a file to the limit. `ENOSPC`.
    fn take_room(&self, bytes: u64) -> Result<()> {
        let mut room = self.room.lock();
        if bytes > room.limit.saturating_sub(room.used) {
            return Err(Error::ENOSPC);
        }
        room.used += bytes;
        Ok(())
    }

    fn give_room(&self, bytes: u64) {
        self.room.lock().used -= bytes;
    }

    /// Changes the options that are given (remount).
    fn change_options(&self, options: &[u8]) -> Result<()> {
        let (pages, files) = (self.quota.limit.load(Ordering::Relaxed), self.room.lock().limit / FILE_ROOM);
        let now = TmpfsOptions { pages, files, ..TmpfsOptions::for_memory(0) };
        let new = now.parse(options, self.memory_pages)?;
        self.set_limits(new.pages, new.files)
    }

    /// Changes the limits (remount): the most pages and the most files. `EINVAL` if more is used
    /// already.
    pub fn set_limits(&self, pages: u64, files: u64) -> Result<()> {
        let used = self.quota.used.lock();
        let mut room = self.room.lock();
        if pages < *used || room_for(files) < room.used {
            return Err(Error::EINVAL);
        }
        room.limit = room_for(files);
        self.quota.limit.store(pages, Ordering::Relaxed);
        Ok(())
    }
}

impl FileSystem for Tmpfs {
    fn status(&self) -> FileSystemStatus {
        let used = *self.quota.used.lock();
        let limit = self.quota.limit.load(Ordering::Relaxed);
        let room = self.room.lock();
        let free = limit.saturating_sub(used);
        FileSystemStatus {
            kind: self.kind,
            block_size: PAGE_SIZE as u32,
            blocks: limit,
            free_blocks: free,
            available_blocks: free,
            files: room.limit / FILE_ROOM,
            free_files: room.limit.saturating_sub(room.used) / FILE_ROOM,
            identifier: u64::from(self.device.minor),
            name_maximum: NAME_MAXIMUM as u32,
        }
    }

    fn reconfigure<'a>(&'a self, options: &'a [u8], _read_only: bool) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(self.change_options(options))
    }

    fn options(&self) -> String {
        if self.objects.is_some() {
            return String::new();
        }
        let limit = self.quota.limit.load(Ordering::Relaxed);
        alloc::format!(",size={}k", limit.saturating_mul(PAGE_SIZE as u64 / 1024))
    }
}

/// Fills a new tmpfs before any process sees it.
pub(crate) struct Builder {
    file_system: Arc<Tmpfs>,
    root: Arc<Node>,
}

impl Builder {
    /// The root directory of the new tmpfs.
    pub(crate) fn root(&self) -> VnodeRef {
        self.root.clone()
    }

    /// Makes a regular file that is not in any directory yet, with these contents (which are not
    /// copied until they are written).
    pub(crate) fn file(&self, contents: InitialContents, attributes: NewAttributes) -> Result<VnodeRef> {
        let size = contents.length as u64;
        let memory = self.file_system.memory.file_memory(self.file_system.quota.clone(), Some(contents))?;
        let node = Node::new(&self.file_system, FileType::Regular, Content::Regular { memory }, attributes)?;
        node.begin_unnamed(size);
        Ok(node)
    }
}
