//! [`FileMemory`]: the pages of a file, which read, write and mappings share.

use crate::{AttemptError, BoxFuture, MaybeReady, Result, UserBuffer};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::ops::Range;
use core::time::Duration;
use mach::machine::Frame;

/// Bytes of a page of memory.
pub const PAGE_SIZE: usize = 4096;

/// The contents of one file as pages. Absent pages read as zeros, or as the initial contents with
/// which the file was made.
pub trait FileMemory: Any + Send + Sync {
    /// Copies at most `length` bytes at `offset` to the reader.
    fn read<'a>(
        &'a self,
        offset: u64,
        length: usize,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>>;

    /// Copies at most `length` bytes from the writer to `offset`, and makes pages as needed
    /// (`ENOSPC`, `ENOMEM` if no page could be made).
    fn write<'a>(
        &'a self,
        offset: u64,
        length: usize,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>>;

    /// Sets the end of the file to `size`: frees the pages after it, even in mappings, and clears
    /// the rest of the last page.
    fn truncate(&self, size: u64) -> MaybeReady<'_, ()>;

    /// Makes the pages of a range (`punch` is false), or frees and clears them (`punch` is true).
    fn allocate(&self, offset: u64, length: u64, punch: bool) -> MaybeReady<'_, Result<()>>;

    /// The first offset from `offset` on and below `size` that is in an allocated page (or with
    /// `hole` in none).
    fn seek(&self, offset: u64, size: u64, hole: bool) -> Option<u64>;

    /// How many pages the file has in memory.
    fn pages(&self) -> u64;

    /// How long ago a program first wrote to the file through a mapping, since the last question;
    /// `None` if none did.
    fn take_written(&self) -> Option<Duration> {
        None
    }

    /// Calls `with` for each page from byte `start` on that was changed and is not in the file's
    /// [`Store`] yet: with its offset, and whether it is being written. The pages are locked
    /// meanwhile. It is of no use for a file without a store.
    fn each_unwritten(&self, start: u64, with: &mut dyn FnMut(u64, bool)) {
        let _ = (start, with);
    }

    /// Writes the changed pages of a range to the file's [`Store`] and waits until they are there.
    /// With `forget` the pages are then freed, even in mappings, so that the next use reads them
    /// from the store again. A file without a store has nothing to write.
    fn write_back(&self, offset: u64, end: u64, forget: bool) -> MaybeReady<'_, Result<()>> {
        let _ = (offset, end, forget);
        MaybeReady::ready(Ok(()))
    }
}

/// How many pages were changed and are not stored yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwrittenPages {
    /// Pages that are not being written.
    pub dirty: u64,
    /// Pages that are being written.
    pub in_writing: u64,
}

impl UnwrittenPages {
    /// Adds the pages of a file.
    pub fn add(&mut self, memory: &dyn FileMemory) {
        memory.each_unwritten(0, &mut |_, in_writing| match in_writing {
            true => self.in_writing += 1,
            false => self.dirty += 1,
        });
    }
}

/// Where the contents of a file are if they are not in memory: a disk, or a server of files. The
/// memory of the file is a cache of them.
pub trait Store: Send + Sync {
    /// Reads bytes at `offset`; returns how many. After the end of the file the bytes are zeros and
    /// need not be returned.
    fn read<'a>(&'a self, offset: u64, bytes: &'a mut [u8]) -> BoxFuture<'a, Result<usize>>;

    /// Writes bytes at `offset`. Those after the end of the file are ignored.
    fn write<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>>;

    /// Whether a device can move bytes between the store and frames of memory. If not, the two
    /// functions below are not called.
    fn has_device(&self) -> bool {
        false
    }

    /// Has a device fill frames with the bytes from `offset` on, which is a multiple of the page
    /// size. Returns how many bytes were filled, as [`read`](Self::read) does: with 0 the first
    /// page is zeros. `None`: they have to be read. The future is not dropped before its end.
    fn read_frames<'a>(&'a self, _offset: u64, _frames: &'a [Frame]) -> BoxFuture<'a, Result<Option<usize>>> {
        Box::pin(core::future::ready(Ok(None)))
    }

    /// Runs `clear` on the offset at which the file ends, if that is within the range: what its
    /// pages have after that is cleared before a device writes them. No write that makes the file
    /// longer begins meanwhile.
    fn with_end(&self, _range: Range<u64>, _clear: &mut dyn FnMut(u64)) {}

    /// Has a device write frames to `offset`, which is a multiple of the page size. Returns how
    /// many of the first frames were written; the others have to be [written](Self::write). The
    /// future is not dropped before its end.
    fn write_frames<'a>(&'a self, _offset: u64, _frames: &'a [Frame]) -> BoxFuture<'a, Result<usize>> {
        Box::pin(core::future::ready(Ok(0)))
    }
}

/// Makes the memory of files.
pub trait MemoryProvider: Send + Sync {
    /// Makes the memory for a new file. `initial` is its contents so far, which are copied only
    /// when they change. `quota` is charged for every page that is made, and released for every
    /// page that is freed.
    fn file_memory(
        &self,
        quota: Arc<dyn Quota>,
        initial: Option<InitialContents>,
    ) -> Result<Arc<dyn FileMemory>>;

    /// Makes the memory of a file of `size` bytes whose contents are in `store`. Its pages are
    /// those that are used, and are charged to no quota: they are freed when memory is short.
    fn stored_memory(&self, store: Arc<dyn Store>, size: u64) -> Result<Arc<dyn FileMemory>>;
}

/// A limit on the pages of files.
pub trait Quota: Send + Sync {
    /// Charges `pages`; false if that would exceed the limit.
    fn charge(&self, pages: u64) -> bool;
    /// Releases the charge for `pages`.
    fn release(&self, pages: u64);
}

/// The initial contents of a file: a range of bytes that live as long as they are needed.
#[derive(Clone)]
pub struct InitialContents {
    /// The object that owns the bytes of the contents.
    pub holder: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// Index of the first byte of the contents.
    pub start: usize,
    /// How many bytes the contents have.
    pub length: usize,
}

impl InitialContents {
    /// The bytes of the contents.
    pub fn bytes(&self) -> &[u8] {
        &(*self.holder).as_ref()[self.start..][..self.length]
    }
}
