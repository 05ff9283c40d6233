//! Segments of shared memory (shmget(2), shmat(2)). A segment is a memory file that has no name;
//! attaching it is mapping that file.

use super::User;
use super::objects::{Access, Find, Object, Permission, Registry};
use crate::account::Charge;
use crate::file::OpenFile;
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::sync::{Arc, Weak};

/// The most segments (SHMMNI).
pub const SEGMENTS_LIMIT: u32 = 4096;
/// The most bytes of a segment (SHMMAX).
pub const SIZE_LIMIT: u64 = i64::MAX as u64 - (1 << 24);

/// The memory of a segment, as it is mapped for reading and writing, and for reading only.
#[derive(Clone)]
pub struct Files {
    /// The file of mappings that can be written.
    pub writable: Arc<OpenFile>,
    /// The file of mappings that cannot.
    pub readable: Arc<OpenFile>,
}

/// The files of a segment: it keeps them until it is removed, and then its mappings do.
enum Held {
    Kept(Files),
    Removed(Weak<OpenFile>, Weak<OpenFile>),
}

/// A segment.
pub struct Segment {
    /// The owner of the segment, and what others may do with it.
    pub permission: Permission,
    /// The size in bytes, as it was asked for.
    pub size: u64,
    held: Held,
    /// The process that made it.
    pub creator: u32,
    /// The process that attached or detached it last; 0 for none.
    pub user: u32,
    /// When it was attached last, in seconds since 1970; 0 for never.
    pub attached: i64,
    /// When it was detached last by a call.
    pub detached: i64,
    /// When it was made or changed.
    pub changed: i64,
    /// Whether its owner wants it to stay in memory (SHM_LOCK).
    pub is_locked: bool,
    _charge: Charge,
}

impl Object for Segment {
    fn permission(&self) -> &Permission {
        &self.permission
    }
}

impl Segment {
    /// How many mappings there are.
    pub fn attachments(&self) -> u64 {
        let count = match &self.held {
            Held::Kept(files) => Arc::strong_count(&files.writable) + Arc::strong_count(&files.readable) - 2,
            Held::Removed(writable, readable) => writable.strong_count() + readable.strong_count(),
        };
        count as u64
    }

    /// Whether the segment exists only as long as it is attached.
    pub fn is_removed(&self) -> bool {
        matches!(self.held, Held::Removed(..))
    }

    /// The file to be mapped. `EIDRM` if the last mapping of a removed segment has just gone.
    fn file(&self, write: bool) -> Result<Arc<OpenFile>> {
        match (&self.held, write) {
            (Held::Kept(files), true) => Ok(files.writable.clone()),
            (Held::Kept(files), false) => Ok(files.readable.clone()),
            (Held::Removed(file, _), true) | (Held::Removed(_, file), false) => {
                file.upgrade().ok_or(Error::EIDRM)
            }
        }
    }

    fn is_of(&self, file: &Arc<OpenFile>) -> bool {
        let is = |own: *const OpenFile| own == Arc::as_ptr(file);
        match &self.held {
            Held::Kept(files) => is(Arc::as_ptr(&files.writable)) || is(Arc::as_ptr(&files.readable)),
            Held::Removed(writable, readable) => is(writable.as_ptr()) || is(readable.as_ptr()),
        }
    }
}

/// All segments.
pub struct Segments(SpinLock<Registry<Segment>>);

impl Default for Segments {
    fn default() -> Segments {
        Segments(SpinLock::new(Registry::new(SEGMENTS_LIMIT)))
    }
}

impl Segments {
    /// Reads or changes the registry, which is locked meanwhile. Removed segments that are not
    /// attached any more are not in it.
    pub fn with<R>(&self, work: impl FnOnce(&mut Registry<Segment>) -> R) -> R {
        let mut segments = self.0.lock();
        segments.retain(|segment| !segment.is_removed() || segment.attachments() > 0);
        work(&mut segments)
    }

    /// The id of the segment that `find` describes, of at least `size` bytes; `None` if it has to
    /// be made. `EINVAL`, and the errors of a look-up.
    pub fn find(&self, user: &User, find: Find, size: u64) -> Result<Option<i32>> {
        let fits = |segment: &Segment| if size > segment.size { Err(Error::EINVAL) } else { Ok(()) };
        let found = self.with(|segments| segments.find(user, find, fits))?;
        match found {
            None if size == 0 || size > SIZE_LIMIT => Err(Error::EINVAL),
            found => Ok(found),
        }
    }

    /// Adds a segment with the memory `files`; returns its id. If another process has made it
    /// meanwhile, that one is found. `ENOSPC`, and the errors of [`Segments::find`].
    pub fn add(&self, user: &User, find: Find, size: u64, files: Files) -> Result<i32> {
        self.with(|segments| {
            if let Some(id) = segments.find(user, find, |_| Ok(()))? {
                return Ok(id);
            }
            let charge = user.charge(0)?;
            segments.add(user, find, |permission| Segment {
                permission,
                size,
                held: Held::Kept(files),
                creator: user.process,
                user: 0,
                attached: 0,
                detached: 0,
                changed: user.now,
                is_locked: false,
                _charge: charge,
            })
        })
    }

    /// The file to be mapped to attach segment `id`, and its size. `EINVAL`, `EACCES`, `EIDRM`.
    pub fn attach(&self, user: &User, id: i32, write: bool) -> Result<(Arc<OpenFile>, u64)> {
        self.with(|segments| {
            let segment = segments.get_mut(id)?;
            segment.permission.check(user, if write { Access::ReadWrite } else { Access::Read })?;
            let file = segment.file(write)?;
            (segment.attached, segment.user) = (user.now, user.process);
            Ok((file, segment.size))
        })
    }

    /// Whether `file` is mapped as a segment. Records that it is detached.
    pub fn detach(&self, user: &User, file: &Arc<OpenFile>) -> bool {
        self.with(|segments| {
            let found = segments.iter().find(|(_, segment)| segment.is_of(file)).map(|(id, _)| id);
            let segment = found.and_then(|id| segments.get_mut(id).ok());
            segment.map(|segment| (segment.detached, segment.user) = (user.now, user.process)).is_some()
        })
    }

    /// Removes a segment, which exists from now on only as long as it is attached (IPC_RMID).
    /// `EINVAL`, `EPERM`.
    pub fn remove(&self, user: &User, id: i32) -> Result<()> {
        let files = self.with(|segments| {
            let segment = segments.get_mut(id)?;
            segment.permission.check_owner(user)?;
            segment.permission.key = super::objects::PRIVATE;
            let Held::Kept(files) = &segment.held else { return Ok(None) };
            let removed = Held::Removed(Arc::downgrade(&files.writable), Arc::downgrade(&files.readable));
            Ok::<_, Error>(Some(core::mem::replace(&mut segment.held, removed)))
        })?;
        // The memory is freed without the lock.
        drop(files);
        self.with(|_| ());
        Ok(())
    }
}
