//! Descriptor tables: the small numbers by which a process knows its open files.

#[cfg(test)]
mod tests;

use crate::file::{LockOwner, OpenFile};
use crate::poll::Readiness;
use crate::sync::SpinLock;
use crate::vfs::OpenFlags;
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// A descriptor: an index into a descriptor table. Front ends pass the number that the program
/// gave; a negative one is `EBADF`.
pub type Descriptor = i32;

/// The descriptors of a process. Its threads share one table, as do processes that were made to
/// share their files.
pub struct DescriptorTable {
    /// Identifies the table as the owner of record locks.
    id: u64,
    slots: SpinLock<Slots>,
}

#[derive(Default)]
struct Slots {
    list: Vec<Option<Slot>>,
    /// All descriptors below this one are in use.
    lowest_free: usize,
}

#[derive(Clone)]
struct Slot {
    file: Arc<OpenFile>,
    close_on_exec: bool,
}

impl Slots {
    fn get(&self, descriptor: Descriptor) -> Result<&Slot> {
        let index = usize::try_from(descriptor).map_err(|_| Error::EBADF)?;
        self.list.get(index).and_then(Option::as_ref).ok_or(Error::EBADF)
    }

    fn get_mut(&mut self, descriptor: Descriptor) -> Result<&mut Slot> {
        let index = usize::try_from(descriptor).map_err(|_| Error::EBADF)?;
        self.list.get_mut(index).and_then(Option::as_mut).ok_or(Error::EBADF)
    }

    /// The lowest free index that is at least `least` and below `limit`; the table is enlarged if
    /// necessary.
    fn free_from(&mut self, least: usize, limit: usize) -> Result<usize> {
        let from = least.max(self.lowest_free);
        let rest = self.list.get(from..).unwrap_or_default();
        let index = match rest.iter().position(Option::is_none) {
            Some(offset) => from + offset,
            None => from.max(self.list.len()),
        };
        if index >= limit {
            return Err(Error::EMFILE);
        }
        self.grow(index + 1)?;
        if least <= self.lowest_free {
            self.lowest_free = index + 1;
        }
        Ok(index)
    }

    fn grow(&mut self, length: usize) -> Result<()> {
        if length > self.list.len() {
            self.list.try_reserve(length - self.list.len()).map_err(|_| Error::ENOMEM)?;
            self.list.resize(length, None);
        }
        Ok(())
    }

    fn take(&mut self, index: usize) -> Option<Slot> {
        let slot = self.list.get_mut(index)?.take()?;
        self.lowest_free = self.lowest_free.min(index);
        Some(slot)
    }
}

impl Default for DescriptorTable {
    fn default() -> Self {
        DescriptorTable::new()
    }
}

impl DescriptorTable {
    /// Makes a descriptor table without descriptors.
    pub fn new() -> DescriptorTable {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed ordering: the ids have to be unique, and order nothing else.
        DescriptorTable { id: NEXT.fetch_add(1, Ordering::Relaxed), slots: SpinLock::new(Slots::default()) }
    }

    /// Makes a new table with the same descriptors (fork). The new table does not own the record
    /// locks of the old one.
    pub fn copy(&self) -> Result<DescriptorTable> {
        let copy = DescriptorTable::new();
        {
            let slots = self.slots.lock();
            let mut to = copy.slots.lock();
            // The copy is no larger than it has to be.
            let used = slots.list.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            to.list.try_reserve_exact(used).map_err(|_| Error::ENOMEM)?;
            to.list.extend(slots.list[..used].iter().cloned());
            to.lowest_free = slots.lowest_free;
        }
        Ok(copy)
    }

    /// The owner of the record locks that are made through this table.
    pub fn lock_owner(&self) -> LockOwner {
        LockOwner::Table(self.id)
    }

    /// The open file that a descriptor refers to.
    pub fn get(&self, descriptor: Descriptor) -> Result<Arc<OpenFile>> {
        Ok(self.slots.lock().get(descriptor)?.file.clone())
    }

    /// For which operations the open file of a descriptor is ready. `EBADF` also for a descriptor
    /// that only names a file (O_PATH).
    pub fn readiness(&self, descriptor: Descriptor) -> Result<Readiness> {
        let slots = self.slots.lock();
        let file = &slots.get(descriptor)?.file;
        if file.flags().contains(OpenFlags::PATH) {
            return Err(Error::EBADF);
        }
        match file.object() {
            None => Ok(file.readiness()),
            // The object may take locks of its own, so the table's is released.
            Some(_) => {
                let file = file.clone();
                drop(slots);
                Ok(file.readiness())
            }
        }
    }

    /// Gives `file` the lowest free descriptor below `limit` (RLIMIT_NOFILE); `EMFILE` if there is
    /// none.
    pub fn insert(&self, file: Arc<OpenFile>, close_on_exec: bool, limit: usize) -> Result<Descriptor> {
        self.insert_from(0, file, close_on_exec, limit)
    }

    fn insert_from(
        &self,
        least: usize,
        file: Arc<OpenFile>,
        close_on_exec: bool,
        limit: usize,
    ) -> Result<Descriptor> {
        let limit = limit.min(Descriptor::MAX as usize);
        let mut slots = self.slots.lock();
        let index = slots.free_from(least, limit)?;
        slots.list[index] = Some(Slot { file, close_on_exec });
        Ok(index as Descriptor)
    }

    /// Gives each of two files a descriptor, or neither (pipe, socketpair).
    pub fn insert_pair(
        &self,
        files: (Arc<OpenFile>, Arc<OpenFile>),
        close_on_exec: bool,
        limit: usize,
    ) -> Result<(Descriptor, Descriptor)> {
        let first = self.insert(files.0, close_on_exec, limit)?;
        match self.insert(files.1, close_on_exec, limit) {
            Ok(second) => Ok((first, second)),
            Err(error) => {
                drop(self.remove(first));
                Err(error)
            }
        }
    }

    /// Makes another descriptor for the same open file, which is at least `least` (dup, F_DUPFD).
    /// `EINVAL` if `least` is not below the limit.
    pub fn duplicate(
        &self,
        descriptor: Descriptor,
        least: Descriptor,
        close_on_exec: bool,
        limit: usize,
    ) -> Result<Descriptor> {
        let file = self.get(descriptor)?;
        let least = usize::try_from(least).ok().filter(|&least| least < limit).ok_or(Error::EINVAL)?;
        self.insert_from(least, file, close_on_exec, limit)
    }

    /// Makes `new` refer to the open file of `old`, and closes what `new` referred to (dup2, dup3).
    /// `EBADF` if `new` is not below the limit. With `old == new` nothing changes; the front end
    /// has to return dup3's `EINVAL` for that.
    pub fn duplicate_to(
        &self,
        old: Descriptor,
        new: Descriptor,
        close_on_exec: bool,
        limit: usize,
    ) -> Result<Descriptor> {
        let file = self.get(old)?;
        let index = usize::try_from(new).ok().filter(|&index| index < limit).ok_or(Error::EBADF)?;
        if old == new {
            return Ok(new);
        }
        let mut slots = self.slots.lock();
        slots.grow(index + 1)?;
        let closed = slots.list[index].replace(Slot { file, close_on_exec });
        drop(slots);
        self.closed(closed);
        Ok(new)
    }

    /// Closes a descriptor.
    pub fn close(&self, descriptor: Descriptor) -> Result<()> {
        drop(self.remove(descriptor)?);
        Ok(())
    }

    /// Closes a descriptor, unless the close may have to wait: then false, and nothing has
    /// happened.
    pub fn close_without_waiting(&self, descriptor: Descriptor) -> Result<bool> {
        let index = usize::try_from(descriptor).map_err(|_| Error::EBADF)?;
        let mut slots = self.slots.lock();
        if slots.get(descriptor)?.file.object().is_some_and(|object| object.waits_at_close()) {
            return Ok(false);
        }
        let closed = slots.take(index);
        drop(slots);
        self.closed(closed);
        Ok(true)
    }

    /// Closes a descriptor and returns the open file that it referred to.
    pub fn remove(&self, descriptor: Descriptor) -> Result<Arc<OpenFile>> {
        let index = usize::try_from(descriptor).map_err(|_| Error::EBADF)?;
        let slot = self.slots.lock().take(index).ok_or(Error::EBADF)?;
        self.release_locks(&slot.file);
        Ok(slot.file)
    }

    /// Whether exec closes the descriptor.
    pub fn close_on_exec(&self, descriptor: Descriptor) -> Result<bool> {
        Ok(self.slots.lock().get(descriptor)?.close_on_exec)
    }

    /// Sets whether exec closes the descriptor.
    pub fn set_close_on_exec(&self, descriptor: Descriptor, close: bool) -> Result<()> {
        self.slots.lock().get_mut(descriptor)?.close_on_exec = close;
        Ok(())
    }

    /// Closes every descriptor in `first..=last`, or with `mark` only marks it to be closed on exec
    /// (close_range).
    pub fn close_range(&self, first: u32, last: u32, mark: bool) -> Result<()> {
        if first > last {
            return Err(Error::EINVAL);
        }
        let mut index = first as usize;
        loop {
            let mut slots = self.slots.lock();
            let end = slots.list.len().min(last as usize + 1);
            if index >= end {
                return Ok(());
            }
            let closed = match mark {
                true => {
                    slots.list[index].iter_mut().for_each(|slot| slot.close_on_exec = true);
                    None
                }
                false => slots.take(index),
            };
            drop(slots);
            self.closed(closed);
            index += 1;
        }
    }

    /// Closes the descriptors that are marked to be closed on exec. The table must not be shared
    /// any more.
    pub fn close_for_exec(&self) {
        let mut index = 0;
        loop {
            let mut slots = self.slots.lock();
            let Some(slot) = slots.list.get(index) else { return };
            let closed =
                if slot.as_ref().is_some_and(|slot| slot.close_on_exec) { slots.take(index) } else { None };
            drop(slots);
            self.closed(closed);
            index += 1;
        }
    }

    /// How many descriptors the table says that it has room for: 64, then 128 times a power of two.
    /// It does not shrink.
    pub fn room(&self) -> usize {
        match self.slots.lock().list.len() {
            ..=64 => 64,
            length => 128 * ((length - 1) / 128 + 1).next_power_of_two(),
        }
    }

    /// The descriptors that are in use, in order.
    pub fn list(&self) -> Vec<Descriptor> {
        let slots = self.slots.lock();
        let used = slots.list.iter().enumerate().filter(|(_, slot)| slot.is_some());
        used.map(|(index, _)| index as Descriptor).collect()
    }

    fn closed(&self, slot: Option<Slot>) {
        if let Some(slot) = slot {
            self.release_locks(&slot.file);
        }
    }

    /// Releases the process's record locks on a file, because one of its descriptors for the file
    /// is closed (POSIX).
    fn release_locks(&self, file: &OpenFile) {
        if let Some(hooks) = file.hooks() {
            hooks.locks.release(self.lock_owner());
            if let Some(object) = file.object() {
                object.descriptor_closed(self.lock_owner());
            }
        }
    }
}

impl Drop for DescriptorTable {
    fn drop(&mut self) {
        let slots = core::mem::take(self.slots.get_mut());
        for slot in slots.list.into_iter().flatten() {
            self.release_locks(&slot.file);
        }
    }
}
