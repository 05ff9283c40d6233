//! The memory of a process: mmap(2), munmap(2), mprotect(2) and related calls over Mach's `vm_map`.
//!
//! Mach's map holds pages, rights and inheritance. The rest is kept here, in one [`Region`] for
//! each range that was mapped in one way: which file and offset it shows, whether it grows
//! downwards, what counts against which limit. The table of regions has an asynchronous lock; each
//! operation changes Mach's map first and, without another await, the table after it, so that a
//! dropped request leaves both in agreement.

mod change;
mod debug;
mod file_memory;
mod file_transfer;
mod program;
mod region;
mod user;

pub use change::{Advice, Move};
pub use file_memory::{ObjectMemory, ObjectProvider};
pub use program::{Execution, Loaded, NewSpace, ProgramFile};
pub use region::{REGIONS_MAXIMUM, Region, RegionKind, Usage};
pub use user::UserRanges;

use crate::account::Account;
use crate::exec::Layout;
use crate::exec::Rights;
use crate::file::OpenFile;
use crate::front_end::FrontEndNumber;
use crate::personality::{Task, Unix};
use crate::process::{Limits, Resource};
use crate::sync::{SpinLock, Turns};
use crate::vfs::{Access, Location, MountFlags, Seals};
use crate::{Error, Result};
use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use mach::machine::Protection;
use mach::vm::{MapRequest, Placement, VmMap, VmObject};
use mach::{KernError, Machine};
use region::Regions;

/// Bytes of a page of memory.
pub const PAGE: u64 = 4096;

/// The address at which a mapping is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this address if that is free, else at any; 0 means any address.
    Hint(u64),
    /// At this address, replacing what is mapped there (MAP_FIXED).
    Fixed(u64),
    /// At this address; an error if something is mapped there (MAP_FIXED_NOREPLACE).
    FixedFree(u64),
}

/// The mapping that mmap(2) asks for.
pub struct NewMapping<'a> {
    /// Where the mapping is placed.
    pub place: Place,
    /// Length in bytes; it is rounded up to pages.
    pub length: u64,
    /// Access rights of the mapping's pages.
    pub rights: Rights,
    /// Whether other processes that map the file see what is written (MAP_SHARED).
    pub shared: bool,
    /// The file and the offset in it, a multiple of the page size; `None` for zeros.
    pub file: Option<(&'a Arc<OpenFile>, u64)>,
    /// Whether the mapping grows downwards (MAP_GROWSDOWN).
    pub grows_down: bool,
    /// Whether the call brings the pages into memory (MAP_POPULATE).
    pub populate: bool,
    /// Whether the pages are brought in and stay in memory (MAP_LOCKED).
    pub locked: bool,
}

/// A mapping that is being made, and through which a file may be written: meanwhile, no seal can
/// forbid that.
struct Writing<'a>(&'a Seals);

impl Writing<'_> {
    /// `None` if the mapping may only be read. `EPERM`.
    fn begin(seals: &Seals, writes: bool) -> Result<Option<Writing<'_>>> {
        Ok(seals.begin_mapping(writes)?.then(|| Writing(seals)))
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.end_mapping();
    }
}

impl NewMapping<'_> {
    /// The most rights that mprotect(2) may give the mapping. A file that is not open for writing
    /// is not written through a shared mapping, and one on a mount with MS_NOEXEC is not executed.
    fn limit(&self) -> Rights {
        let Some((file, _)) = self.file else { return Rights::ALL };
        let forbids = |at: &Location| at.mount.flags().contains(MountFlags::NO_EXECUTE);
        Rights {
            read: true,
            write: !self.shared || file.check(Access::WRITE).is_ok(),
            execute: !file.location().is_some_and(forbids),
        }
    }
}

/// The addresses of a program's parts, for front ends that show them.
#[derive(Clone, Default)]
pub struct Details {
    /// Addresses of the program's text.
    pub code: Range<u64>,
    /// Addresses of the program's arguments.
    pub arguments: Range<u64>,
    /// Addresses of the program's environment.
    pub environment: Range<u64>,
    /// Address at which the program's stack began.
    pub stack_start: u64,
    /// The program's auxiliary vector, as pairs.
    pub auxiliary: alloc::vec::Vec<(u64, u64)>,
    /// The file that the program was loaded from.
    pub executable: Option<Arc<OpenFile>>,
    /// Keeps the program's file from being written while it is executed.
    pub execution: Option<Arc<Execution>>,
}

/// The Unix part of a Mach task: the regions of its map, and information about its program.
pub struct Memory<M: Machine> {
    map: Arc<VmMap<M>>,
    layout: Layout,
    /// Which front end serves the program.
    front_end: FrontEndNumber,
    regions: macadamia_sync::Mutex<Regions>,
    details: SpinLock<Details>,
    /// How many bytes a stack may grow to (RLIMIT_STACK).
    stack_limit: AtomicU64,
    /// What the front end has noted about the address space, in its own way.
    notes: AtomicU32,
}

/// After this many pages, bringing in a range lets other tasks run.
const POPULATE_TURN: u32 = 64;
/// Bytes that are kept free below a stack.
const STACK_GUARD: u64 = 256 * PAGE;

impl<M: Machine> Memory<M> {
    /// Makes a task of this user with an empty address space, for programs of a front end.
    /// `ENOMEM`.
    pub async fn create(
        host: &Arc<mach::Host<M, Unix>>,
        layout: &Layout,
        account: &Arc<Account>,
        front_end: FrontEndNumber,
    ) -> Result<Arc<Task<M>>> {
        let regions = Regions::new(layout.high, account)?;
        let memory = |map: &Arc<VmMap<M>>| Memory {
            map: map.clone(),
            layout: layout.clone(),
            front_end,
            regions: macadamia_sync::Mutex::new(regions),
            details: SpinLock::new(Details::default()),
            stack_limit: AtomicU64::new(8 << 20),
            notes: AtomicU32::new(0),
        };
        host.create_task_of(layout.low, layout.high, memory).await.map_err(map_error)
    }

    /// Makes a copy of a task for a child process of this user: private memory is shared until one
    /// of the two writes to it. `ENOMEM`.
    pub async fn fork(task: &Arc<Task<M>>, account: &Arc<Account>) -> Result<Arc<Task<M>>> {
        let regions = task.regions.lock().await;
        let copies = regions.for_child(account)?;
        let memory = |map: &Arc<VmMap<M>>| Memory {
            map: map.clone(),
            layout: task.layout.clone(),
            front_end: task.front_end,
            regions: macadamia_sync::Mutex::new(copies),
            details: SpinLock::new(task.details.lock().clone()),
            // Relaxed ordering, here and below: the limit is a plain number that orders nothing
            // else.
            stack_limit: AtomicU64::new(task.stack_limit.load(Ordering::Relaxed)),
            notes: AtomicU32::new(task.notes.load(Ordering::Relaxed)),
        };
        task.create_child(true, memory).await.map_err(map_error)
    }

    /// The map of the Mach task.
    pub fn map(&self) -> &Arc<VmMap<M>> {
        &self.map
    }

    /// A number that no other address space has had.
    pub fn map_id(&self) -> u64 {
        self.map.id()
    }

    /// Which front end serves the program.
    pub fn front_end(&self) -> FrontEndNumber {
        self.front_end
    }

    /// What the front end has noted about the address space. A copy of the address space has the
    /// same notes.
    pub fn notes(&self) -> &AtomicU32 {
        &self.notes
    }

    /// The addresses of the program's text, arguments, environment and stack.
    pub fn details(&self) -> Details {
        self.details.lock().clone()
    }

    /// The file that the program was loaded from; `None` if the task has no program.
    pub fn executable(&self) -> Option<Arc<OpenFile>> {
        self.details.lock().executable.clone()
    }

    /// Sets to how many bytes a stack may grow.
    pub fn set_stack_limit(&self, bytes: u64) {
        self.stack_limit.store(bytes, Ordering::Relaxed);
    }

    /// Up to `limit` regions that begin at `address` or above, in order of address.
    pub async fn regions_from(&self, address: u64, limit: usize) -> alloc::vec::Vec<Region> {
        self.regions.lock().await.from(address).take(limit).cloned().collect()
    }

    /// How many bytes are mapped in the address space, by kind.
    pub async fn usage(&self) -> Usage {
        self.regions.lock().await.usage()
    }

    /// Makes a mapping (mmap(2)); returns its address. `EINVAL`, `ENOMEM`, `EEXIST`, `EACCES`,
    /// `EPERM`, `ENODEV`, `EOVERFLOW`.
    pub async fn map_new(&self, new: &NewMapping<'_>, limits: &Limits) -> Result<u64> {
        if new.length == 0 {
            return Err(Error::EINVAL);
        }
        let length = new.length.checked_next_multiple_of(PAGE).ok_or(Error::ENOMEM)?;
        let object = self.object_for(new, length)?;
        let mut limit = new.limit();
        let mut writing = None;
        if new.shared
            && limit.write
            && let Some(seals) = new.file.and_then(|(file, _)| file.seals())
        {
            writing = Writing::begin(seals, new.rights.write)?;
            limit.write = writing.is_some();
        }
        if new.rights.execute && !limit.execute {
            return Err(Error::EPERM);
        }

        let mut regions = self.regions.lock().await;
        let replaced = match new.place {
            Place::Hint(_) => 0,
            Place::Fixed(address) | Place::FixedFree(address) => {
                self.check_range(address, length)?;
                regions.bytes_in(address..address + length)
            }
        };
        if replaced != 0 && matches!(new.place, Place::FixedFree(_)) {
            return Err(Error::EEXIST);
        }
        regions.check_room()?;
        let counts = !new.shared && new.rights.write;
        check_limits(&regions.usage(), limits, length.saturating_sub(replaced), counts)?;

        let (placement, fallback) = self.placement(&regions, new.place, length);
        let request = |placement| {
            let mut request = MapRequest::anonymous(length).at(placement);
            if let Some((object, offset)) = object.clone() {
                request = match new.shared {
                    true => MapRequest::shared(object, offset, length),
                    false => MapRequest::private(object, offset, length),
                }
                .at(placement);
            }
            request.protection = protection(new.rights);
            request.max_protection = protection(limit);
            request
        };
        let mut mapped = self.map.map(&request(placement)).await;
        for placement in fallback.into_iter().flatten() {
            if mapped == Err(KernError::NoSpace) {
                mapped = self.map.map(&request(placement)).await;
            }
        }
        let address = mapped.map_err(map_error)?;
        let lock_new = regions.lock_future();
        regions.replace(Region {
            range: address..address + length,
            rights: new.rights,
            limit,
            shared: new.shared,
            grows_down: new.grows_down,
            locked: new.locked || lock_new,
            forked: true,
            kind: match new.file {
                Some((file, offset)) => RegionKind::File { file: file.clone(), offset },
                None if new.shared => RegionKind::SharedZeros,
                None => RegionKind::Zeros,
            },
        });
        // From now on the region is counted.
        drop(writing);
        self.keep_locked(new.locked || lock_new, address..address + length).await;
        drop(regions);
        if new.populate {
            self.populate(address..address + length, new.rights).await;
        }
        Ok(address)
    }

    /// The memory object to map, with the offset in it, in bytes; `None` for private zeros.
    fn object_for(&self, new: &NewMapping<'_>, length: u64) -> Result<Option<(Arc<VmObject<M>>, u64)>> {
        let Some((file, offset)) = new.file else {
            if !new.shared {
                return Ok(None);
            }
            return Ok(Some((VmObject::anonymous(self.map.vm()).map_err(map_error)?, 0)));
        };
        if !offset.is_multiple_of(PAGE) {
            return Err(Error::EINVAL);
        }
        offset.checked_add(length).filter(|end| *end <= i64::MAX as u64).ok_or(Error::EOVERFLOW)?;
        let memory = file.memory(new.shared && new.rights.write)?;
        let memory = ObjectMemory::of(memory)?;
        Ok(Some((memory.object().clone(), offset)))
    }

    /// Checks that a range that a program names may be mapped: `EINVAL` if it is not aligned,
    /// `EPERM` below the lowest address, `ENOMEM` beyond the highest.
    fn check_range(&self, address: u64, length: u64) -> Result<()> {
        if !address.is_multiple_of(PAGE) {
            return Err(Error::EINVAL);
        }
        address.checked_add(length).filter(|end| *end <= self.layout.high).ok_or(Error::ENOMEM)?;
        if address < self.layout.low { Err(Error::EPERM) } else { Ok(()) }
    }

    /// The placement to try first, and the one to try if that fails.
    fn placement(&self, regions: &Regions, place: Place, length: u64) -> (Placement, [Option<Placement>; 2]) {
        match place {
            Place::Fixed(address) => (Placement::Replace(address), [None, None]),
            Place::FixedFree(address) => (Placement::Fixed(address), [None, None]),
            Place::Hint(hint) => {
                let below = Placement::Below(regions.mapping_top);
                let above = Some(Placement::Above(regions.mapping_top));
                let hint = hint & !(PAGE - 1);
                match hint != 0 && self.check_range(hint, length).is_ok() {
                    true => (Placement::Fixed(hint), [Some(below), above]),
                    false => (below, [above, None]),
                }
            }
        }
    }

    /// Removes the mappings of a range (munmap(2)). `EINVAL`, `ENOMEM`.
    pub async fn unmap(&self, address: u64, length: u64) -> Result<()> {
        let range = self.user_range(address, length)?;
        if range.is_empty() {
            return Err(Error::EINVAL);
        }
        let mut regions = self.regions.lock().await;
        let inside = range.start.max(self.layout.low)..range.end.min(self.layout.high);
        if !inside.is_empty() {
            regions.check_hole(&inside)?;
            let done = self.map.deallocate(inside.start, inside.end - inside.start).await;
            done.map_err(map_error)?;
            regions.remove(inside);
        }
        Ok(())
    }

    /// A page-aligned range that a program names. `EINVAL` if it is not aligned or leaves the
    /// address space.
    fn user_range(&self, address: u64, length: u64) -> Result<Range<u64>> {
        if !address.is_multiple_of(PAGE) {
            return Err(Error::EINVAL);
        }
        let length = length.checked_next_multiple_of(PAGE).ok_or(Error::EINVAL)?;
        let end = address.checked_add(length).filter(|end| *end <= self.layout.high).ok_or(Error::EINVAL)?;
        Ok(address..end)
    }

    /// Moves the end of the heap (brk(2)); returns the new end, or the old one if it cannot be
    /// moved.
    pub async fn set_break(&self, wanted: u64, limits: &Limits) -> u64 {
        let mut regions = self.regions.lock().await;
        let (start, old) = (regions.break_start, regions.break_end);
        let (old_end, new_end) = (old.next_multiple_of(PAGE), wanted.checked_next_multiple_of(PAGE));
        let Some(new_end) = new_end.filter(|_| wanted >= start && wanted < self.layout.high) else {
            return old;
        };
        let moved = match () {
            () if new_end == old_end => Ok(()),
            () if new_end < old_end => {
                let done = self.map.deallocate(new_end, old_end - new_end).await;
                done.map(|()| regions.remove(new_end..old_end)).map_err(map_error)
            }
            () => self.grow_break(&mut regions, old_end..new_end, limits).await,
        };
        if moved.is_ok() {
            regions.break_end = wanted;
        }
        regions.break_end
    }

    async fn grow_break(&self, regions: &mut Regions, range: Range<u64>, limits: &Limits) -> Result<()> {
        let length = range.end - range.start;
        regions.check_room()?;
        check_limits(&regions.usage(), limits, length, true)?;
        let request = MapRequest::anonymous(length).at(Placement::Fixed(range.start));
        self.map.map(&request).await.map_err(map_error)?;
        let rights = Rights { read: true, write: true, execute: false };
        let (kind, locked) = (RegionKind::Heap, regions.lock_future());
        regions.replace(Region { kind, locked, ..Region::zeros(range.clone(), rights) });
        self.keep_locked(locked, range).await;
        Ok(())
    }

    /// Makes a page ready for a copy, as a page fault of the program would: a stack grows if the
    /// page is below one.
    pub async fn resolve(&self, address: u64, access: Protection) -> Result<(), KernError> {
        match self.map.fault(address, access).await {
            Err(KernError::InvalidAddress) => self.extend_stack(address, access).await,
            done => done,
        }
    }

    /// Answers an access to an address where nothing is mapped: a stack above it grows. An error is
    /// that of the program's access, or `ResourceShortage`.
    pub async fn extend_stack(&self, address: u64, access: Protection) -> Result<(), KernError> {
        // Another thread may have made the stack grow meanwhile, so a failure here is no error.
        self.grow_stack(address).await;
        self.map.fault(address, access).await
    }

    /// Extends the stack above `address` down to that address, if there is one and its limit allows
    /// it.
    async fn grow_stack(&self, address: u64) {
        let mut regions = self.regions.lock().await;
        let limit = self.stack_limit.load(Ordering::Relaxed);
        let start = address & !(PAGE - 1);
        let Some(stack) = regions.stack_above(start) else { return };
        let guard_end = regions.end_before(stack.start).saturating_add(STACK_GUARD).max(self.layout.low);
        if stack.end - start > limit || start < guard_end {
            return;
        }
        let (rights, locked) =
            regions.at(stack.start).map(|region| (region.rights, region.locked)).unwrap_or_default();
        let mut request = MapRequest::anonymous(stack.start - start).at(Placement::Fixed(start));
        request.protection = protection(rights);
        if self.map.map(&request).await.is_ok() {
            regions.extend_down(stack.start, start);
            self.keep_locked(locked, start..stack.start).await;
        }
    }

    /// Whether a fault at `address`, where nothing is mapped, may make a stack grow.
    fn may_grow(&self, address: u64) -> bool {
        match self.regions.try_lock() {
            Some(regions) => regions.stack_above(address & !(PAGE - 1)).is_some(),
            None => true,
        }
    }

    /// Brings the pages of a range into memory, as far as that is possible.
    async fn populate(&self, range: Range<u64>, rights: Rights) {
        let access = if rights.write { Protection::WRITE } else { Protection::READ };
        if !rights.read && !rights.write {
            return;
        }
        let mut turns = Turns::every(POPULATE_TURN);
        for address in range.step_by(PAGE as usize) {
            if self.map.fault(address, access).await.is_err() {
                return;
            }
            turns.step().await;
        }
    }
}

/// Checks that `more` bytes may be mapped. `ENOMEM`.
fn check_limits(usage: &Usage, limits: &Limits, more: u64, counts_as_data: bool) -> Result<()> {
    let fits = |used: u64, limit| used.checked_add(more).is_some_and(|sum| sum <= limit);
    let data_fits = !counts_as_data || fits(usage.data, limits.soft(Resource::Data));
    if fits(usage.total, limits.soft(Resource::AddressSpace)) && data_fits {
        Ok(())
    } else {
        Err(Error::ENOMEM)
    }
}

/// Access rights in Mach's terms. Memory that may be written or executed can be read, since the
/// processor cannot forbid that.
pub(crate) fn protection(rights: Rights) -> Protection {
    let mut protection = Protection::NONE;
    protection.set(Protection::READ, rights.read || rights.write || rights.execute);
    protection.set(Protection::WRITE, rights.write);
    protection.set(Protection::EXECUTE, rights.execute);
    protection
}

/// The Unix error for a Mach map operation's error.
pub(crate) fn map_error(error: KernError) -> Error {
    match error {
        KernError::InvalidArgument => Error::EINVAL,
        KernError::ProtectionFailure | KernError::NoAccess => Error::EACCES,
        KernError::NotSupported => Error::ENODEV,
        KernError::MemoryFailure | KernError::MemoryError => Error::EIO,
        KernError::Aborted => Error::EINTR,
        _ => Error::ENOMEM,
    }
}

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;
