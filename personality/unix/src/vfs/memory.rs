//! [`FileMemory`]: the pages of a file, one copy for read, write and mappings.

use crate::{AttemptError, MaybeReady, Result, UserBuffer};
use alloc::sync::Arc;
use core::any::Any;

/// Bytes of a page.
pub const PAGE_SIZE: usize = 4096;

/// The contents of one file as pages. Absent pages read as zeros, or as the initial contents that
/// it was made with.
pub trait FileMemory: Any + Send + Sync {
    /// Copies out from `offset`, at most `length` bytes.
    fn read<'a>(
        &'a self,
        offset: u64,
        length: usize,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>>;

    /// Copies in at `offset`, at most `length` bytes, making pages as needed (`ENOSPC`, `ENOMEM` if
    /// none could).
    fn write<'a>(
        &'a self,
        offset: u64,
        length: usize,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>>;

    /// The file now ends at `size`: frees pages beyond, in mappings too, and zeroes the rest of the
    /// last page.
    fn truncate(&self, size: u64) -> MaybeReady<'_, ()>;

    /// Makes pages (`punch` false) or frees and zeroes (`punch` true) a range.
    fn allocate(&self, offset: u64, length: u64, punch: bool) -> MaybeReady<'_, Result<()>>;

    /// The next offset from `offset` below `size` that is in an allocated page (or, with `hole`, is
    /// not).
    fn seek(&self, offset: u64, size: u64, hole: bool) -> Option<u64>;

    /// Pages that it holds.
    fn pages(&self) -> u64;
}

/// Where pages of files come from.
pub trait MemoryProvider: Send + Sync {
    /// Memory for a new file. `initial` is its contents so far, not copied before it must be.
    /// `quota` is asked for every page that is made and told of every page that is freed.
    fn file_memory(
        &self,
        quota: Arc<dyn Quota>,
        initial: Option<InitialContents>,
    ) -> Result<Arc<dyn FileMemory>>;
}

/// A limit on pages.
pub trait Quota: Send + Sync {
    /// Takes `pages`; false if there are not that many.
    fn charge(&self, pages: u64) -> bool;
    /// Gives `pages` back.
    fn release(&self, pages: u64);
}

/// The initial contents of a file: a range of bytes that live as long as they are needed.
#[derive(Clone)]
pub struct InitialContents {
    /// What holds the bytes.
    pub holder: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// Where they begin.
    pub start: usize,
    /// How many they are.
    pub length: usize,
}

impl InitialContents {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &(*self.holder).as_ref()[self.start..][..self.length]
    }
}
