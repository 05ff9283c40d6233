//! File memory from the server's own heap: for a system that shares no memory with its programs,
//! and for tests.

use crate::sync::SpinLock;
use crate::vfs::{FileMemory, InitialContents, MemoryProvider, PAGE_SIZE, Quota};
use crate::{AttemptError, CopyError, Error, MaybeReady, Result, UserBuffer};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Makes the memory of files from the heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapMemory;

impl MemoryProvider for HeapMemory {
    fn file_memory(
        &self,
        quota: Arc<dyn Quota>,
        initial: Option<InitialContents>,
    ) -> Result<Arc<dyn FileMemory>> {
        Ok(Arc::new(HeapFile { quota, pages: SpinLock::new(Pages { resident: BTreeMap::new(), initial }) }))
    }
}

/// The most pages that one call copies, so that the lock is held for a bounded time.
const PAGES_AT_ONCE: usize = 16;

struct HeapFile {
    quota: Arc<dyn Quota>,
    pages: SpinLock<Pages>,
}

struct Pages {
    resident: BTreeMap<u64, Vec<u8>>,
    /// The contents of absent pages; truncation cuts them.
    initial: Option<InitialContents>,
}

impl Pages {
    fn initial_page(&self, page: u64) -> &[u8] {
        let bytes = self.initial.as_ref().map_or(&[][..], InitialContents::bytes);
        let start = usize::try_from(page).ok().and_then(|p| p.checked_mul(PAGE_SIZE)).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        &rest[..rest.len().min(PAGE_SIZE)]
    }

    fn initial_pages(&self) -> u64 {
        self.initial.as_ref().map_or(0, |initial| initial.length.div_ceil(PAGE_SIZE) as u64)
    }

    /// A page of the file, made if it is absent.
    fn page(&mut self, page: u64, quota: &dyn Quota) -> Result<&mut Vec<u8>> {
        if !self.resident.contains_key(&page) {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(PAGE_SIZE).map_err(|_| Error::ENOMEM)?;
            bytes.extend_from_slice(self.initial_page(page));
            bytes.resize(PAGE_SIZE, 0);
            if !quota.charge(1) {
                return Err(Error::ENOSPC);
            }
            self.resident.insert(page, bytes);
        }
        Ok(self.resident.get_mut(&page).expect("just made"))
    }
}

/// The first part of a range that lies in one page: the page, the offset in it, and the length.
fn piece(offset: u64, length: usize) -> (u64, usize, usize) {
    let within = (offset % PAGE_SIZE as u64) as usize;
    (offset / PAGE_SIZE as u64, within, length.min(PAGE_SIZE - within))
}

impl HeapFile {
    fn read_now(
        &self,
        mut offset: u64,
        length: usize,
        to: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        const ZEROS: &[u8; PAGE_SIZE] = &[0; PAGE_SIZE];
        let length = length.min(to.remaining()).min(PAGES_AT_ONCE * PAGE_SIZE);
        let pages = self.pages.lock();
        let mut done = 0;
        while done < length {
            let (page, within, count) = piece(offset, length - done);
            let bytes = match pages.resident.get(&page) {
                Some(bytes) => &bytes[..],
                None => pages.initial_page(page),
            };
            let held = bytes.get(within..).unwrap_or_default();
            let source = if held.is_empty() { &ZEROS[..count] } else { &held[..held.len().min(count)] };
            match to.copy_out(source) {
                Ok(copied) => {
                    done += copied;
                    offset += copied as u64;
                    if copied < source.len() {
                        break;
                    }
                }
                Err(error) => return stopped(done, error),
            }
        }
        Ok(done)
    }

    fn write_now(
        &self,
        mut offset: u64,
        length: usize,
        from: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        let length = length.min(from.remaining()).min(PAGES_AT_ONCE * PAGE_SIZE);
        let mut pages = self.pages.lock();
        let mut done = 0;
        while done < length {
            let (page, within, count) = piece(offset, length - done);
            let bytes = match pages.page(page, &*self.quota) {
                Ok(bytes) => bytes,
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error.into()),
            };
            match from.copy_in(&mut bytes[within..][..count]) {
                Ok(copied) => {
                    done += copied;
                    offset += copied as u64;
                    if copied < count {
                        break;
                    }
                }
                Err(error) => return stopped(done, error),
            }
        }
        Ok(done)
    }
}

fn stopped(done: usize, error: CopyError) -> Result<usize, AttemptError> {
    if done > 0 { Ok(done) } else { Err(error.into()) }
}

impl FileMemory for HeapFile {
    fn read<'a>(
        &'a self,
        offset: u64,
        length: usize,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        MaybeReady::ready(self.read_now(offset, length, to))
    }

    fn write<'a>(
        &'a self,
        offset: u64,
        length: usize,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        MaybeReady::ready(self.write_now(offset, length, from))
    }

    fn truncate(&self, size: u64) -> MaybeReady<'_, ()> {
        let (last, within, _) = piece(size, 0);
        let mut pages = self.pages.lock();
        if let Some(initial) = &mut pages.initial {
            initial.length = initial.length.min(usize::try_from(size).unwrap_or(usize::MAX));
        }
        let freed = pages.resident.split_off(&(last + u64::from(within > 0)));
        if let Some(bytes) = pages.resident.get_mut(&last) {
            bytes[within..].fill(0);
        }
        drop(pages);
        self.quota.release(freed.len() as u64);
        MaybeReady::ready(())
    }

    fn allocate(&self, offset: u64, length: u64, punch: bool) -> MaybeReady<'_, Result<()>> {
        let end = offset + length;
        if !punch {
            for page in offset / PAGE_SIZE as u64..end.div_ceil(PAGE_SIZE as u64) {
                if let Err(error) = self.pages.lock().page(page, &*self.quota) {
                    return MaybeReady::ready(Err(error));
                }
            }
            return MaybeReady::ready(Ok(()));
        }
        let mut freed = 0;
        let mut pages = self.pages.lock();
        let initial_pages = pages.initial_pages();
        let last_held = pages.resident.last_key_value().map_or(0, |(page, _)| page + 1).max(initial_pages);
        let end = end.min(last_held * PAGE_SIZE as u64);
        let mut at = offset;
        while at < end {
            let (page, within, count) = piece(at, usize::try_from(end - at).unwrap_or(usize::MAX));
            at += count as u64;
            if count == PAGE_SIZE && page >= initial_pages {
                freed += u64::from(pages.resident.remove(&page).is_some());
            } else if page < initial_pages || pages.resident.contains_key(&page) {
                match pages.page(page, &*self.quota) {
                    Ok(bytes) => bytes[within..][..count].fill(0),
                    Err(error) => return MaybeReady::ready(Err(error)),
                }
            }
        }
        drop(pages);
        self.quota.release(freed);
        MaybeReady::ready(Ok(()))
    }

    fn seek(&self, offset: u64, size: u64, hole: bool) -> Option<u64> {
        let pages = self.pages.lock();
        let initial = pages.initial_pages();
        let end = size.div_ceil(PAGE_SIZE as u64);
        let mut page = offset / PAGE_SIZE as u64;
        loop {
            if page >= end {
                return hole.then_some(size);
            }
            let is_data = page < initial || pages.resident.contains_key(&page);
            if is_data != hole {
                return Some(offset.max(page * PAGE_SIZE as u64));
            }
            page = match hole {
                true => page + 1,
                // The next page at or after `page` that the file has in memory.
                false => pages.resident.range(page..).next().map_or(end, |(page, _)| *page),
            };
        }
    }

    fn pages(&self) -> u64 {
        let pages = self.pages.lock();
        (pages.resident.len() as u64).max(pages.initial_pages())
    }
}

impl Drop for HeapFile {
    fn drop(&mut self) {
        self.quota.release(self.pages.get_mut().resident.len() as u64);
    }
}
