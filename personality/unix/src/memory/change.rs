//! Changes of mappings: mprotect, mremap, madvise, msync, mincore, mlock.

use super::{Memory, PAGE, Region, check_limits, map_error, protection};
use crate::exec::Rights;
use crate::process::{Limits, Resource};
use crate::{Error, Result};
use alloc::vec::Vec;
use core::ops::Range;
use mach::vm::{Inheritance, MapRequest, Placement};
use mach::{KernError, Machine};

/// Where mremap(2) may move a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The mapping stays at its address.
    No,
    /// The mapping may be moved to any free address (MREMAP_MAYMOVE).
    Anywhere,
    /// The mapping is moved to this address and replaces what is mapped there (MREMAP_FIXED).
    To(u64),
}

/// The advice of madvise(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Advice that has no effect here.
    Hint,
    /// The contents are not needed any more: the pages show zeros or the file's contents again
    /// (MADV_DONTNEED, MADV_FREE).
    Forget,
    /// The pages will be needed soon (MADV_WILLNEED, MADV_POPULATE).
    Want,
    /// A child does not get the mapping (MADV_DONTFORK, true), or does again (MADV_DOFORK, false).
    Fork(bool),
}

impl<M: Machine> Memory<M> {
    /// Changes access rights (mprotect(2)). `EINVAL`, `ENOMEM` if a part of the range is not
    /// mapped, `EACCES`.
    pub async fn protect(&self, address: u64, length: u64, rights: Rights) -> Result<()> {
        let range = self.change_range(address, length, Error::ENOMEM)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions.lock().await;
        if !regions.covers(range.clone()) {
            return Err(Error::ENOMEM);
        }
        regions.check_cuts(&range)?;
        let length = range.end - range.start;
        self.map.protect(range.start, length, protection(rights), false).await.map_err(map_error)?;
        regions.update(range.clone(), |region| region.rights = rights);
        // Locked pages that could not be reached may be by now.
        let locked = regions.touching(range.clone()).any(|region| region.locked);
        self.keep_locked(locked, range).await;
        Ok(())
    }

    /// The range that a program names, as `user_range` has it, but with `ENOMEM` if it leaves the
    /// address space, and `wraps` if it leaves all addresses that there are.
    fn change_range(&self, address: u64, length: u64, wraps: Error) -> Result<Range<u64>> {
        if !address.is_multiple_of(PAGE) {
            return Err(Error::EINVAL);
        }
        let end = length.checked_next_multiple_of(PAGE).and_then(|length| address.checked_add(length));
        let end = end.ok_or(wraps)?;
        if end > self.layout.high { Err(Error::ENOMEM) } else { Ok(address..end) }
    }

    /// Resizes or moves a mapping (mremap(2)); returns its address. `EINVAL`, `EFAULT` if the range
    /// is not one mapping, `ENOMEM`.
    pub async fn remap(
        &self,
        old: u64,
        old_length: u64,
        new_length: u64,
        how: Move,
        limits: &Limits,
    ) -> Result<u64> {
        let range = self.user_range(old, old_length)?;
        let new_length =
            new_length.checked_next_multiple_of(PAGE).filter(|n| *n != 0).ok_or(Error::EINVAL)?;
        if range.is_empty() {
            // An old length of 0 would duplicate a shared mapping; that is not supported.
            return Err(Error::EINVAL);
        }
        let mut regions = self.regions.lock().await;
        let region =
            regions.at(old).filter(|region| region.range.end >= range.end).cloned().ok_or(Error::EFAULT)?;
        let old_length = range.end - range.start;
        if let Move::To(target) = how {
            self.check_range(target, new_length)?;
            if target < range.end && range.start < target + new_length {
                return Err(Error::EINVAL);
            }
        }
        // The moved region may be cut at both ends, and so may a region at the new address.
        regions.check_cuts(&range)?;
        if how != Move::No {
            regions.check_room()?;
        }
        if new_length < old_length {
            let cut = range.start + new_length..range.end;
            regions.check_hole(&cut)?;
            self.map.deallocate(cut.start, cut.end - cut.start).await.map_err(map_error)?;
            regions.remove(cut);
        }
        let kept = range.start..range.start + old_length.min(new_length);
        let more = new_length.saturating_sub(old_length);
        if more > 0 {
            check_limits(&regions.usage(), limits, more, region.rights.write && !region.shared)?;
        }
        if !matches!(how, Move::To(_)) {
            let grown = match more {
                0 => Ok(()),
                _ if region.range.end != range.end => Err(KernError::NoSpace),
                _ => self.extend(&region, kept.end, more).await,
            };
            if grown.is_ok() {
                regions.update(kept.clone(), |_| ());
                if more > 0 {
                    let more = kept.end..kept.end + more;
                    regions.replace(moved(&region, kept.end, more.clone()));
                    self.keep_locked(region.locked, more).await;
                }
                return Ok(old);
            }
            if how == Move::No {
                return Err(Error::ENOMEM);
            }
        }
        let target = self.relocate(&mut regions, &region, kept, new_length, how).await?;
        self.keep_locked(region.locked, target..target + new_length).await;
        Ok(target)
    }

    /// Maps `more` bytes at `end`, which continue `region`.
    async fn extend(&self, region: &Region, end: u64, more: u64) -> Result<(), KernError> {
        let request = self.continuation(region, end, more, Placement::Fixed(end)).await?;
        self.map.map(&request).await.map(|_| ())
    }

    /// The request that maps the continuation of `region`, from byte `from` of the region on.
    async fn continuation(
        &self,
        region: &Region,
        from: u64,
        length: u64,
        placement: Placement,
    ) -> Result<MapRequest<M>, KernError> {
        let mut request = match &region.kind {
            super::RegionKind::File { file, offset } => {
                let memory = file.memory(false).map_err(|_| KernError::Failure)?;
                let memory = super::ObjectMemory::of(memory).map_err(|_| KernError::Failure)?;
                let object = memory.object().clone();
                let offset = offset + (from - region.range.start);
                match region.shared {
                    true => MapRequest::shared(object, offset, length),
                    false => MapRequest::private(object, offset, length),
                }
            }
            // The object of shared zeros has no end; only Mach's map knows the object. `from` may
            // be the first byte after the region.
            super::RegionKind::SharedZeros => {
                let (object, offset) = self.map.shared_object(from - PAGE).await?;
                MapRequest::shared(object, offset + PAGE, length)
            }
            _ => MapRequest::anonymous(length),
        };
        request.protection = protection(region.rights);
        request.max_protection = protection(region.limit);
        Ok(request.at(placement))
    }

    /// Moves the part `kept` of `region` to a new range of `new_length` bytes, and maps the rest of
    /// that as its continuation. Every step that may fail comes before the old range changes, and
    /// the table of regions is true after each step.
    async fn relocate(
        &self,
        regions: &mut super::Regions,
        region: &Region,
        kept: Range<u64>,
        new_length: u64,
        how: Move,
    ) -> Result<u64> {
        let kept_length = kept.end - kept.start;
        // Reserve the whole new range with an empty mapping first, so that the later steps cannot
        // fail for want of addresses.
        let placement = match how {
            Move::To(target) => Placement::Replace(target),
            _ => Placement::Below(regions.mapping_top),
        };
        let mut hold = MapRequest::anonymous(new_length).at(placement);
        hold.protection = protection(region.rights);
        let target = self.map.map(&hold).await.map_err(map_error)?;
        let new = target..target + new_length;
        // The mapping that was at the new address is gone, even if a later step fails. So the table
        // has zeros there now.
        regions.replace(Region {
            kind: super::RegionKind::Zeros,
            shared: false,
            ..moved(region, kept.start, new.clone())
        });
        let done = match self.map_rest(region, &kept, target, new_length).await {
            Ok(()) => self.map.relocate(kept.start, kept_length, target).await.map_err(map_error),
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // If the deallocation fails, too, the zeros stay mapped, and the table has them.
            if self.map.deallocate(target, new_length).await.is_ok() {
                regions.remove(new);
            }
            return Err(error);
        }
        regions.remove(kept.clone());
        regions.replace(moved(region, kept.start, new));
        Ok(target)
    }

    /// Maps the part of a range at `target` that continues the part `kept` of `region`.
    async fn map_rest(&self, region: &Region, kept: &Range<u64>, target: u64, new_length: u64) -> Result<()> {
        let kept_length = kept.end - kept.start;
        if new_length > kept_length {
            let placement = Placement::Replace(target + kept_length);
            let request = self.continuation(region, kept.end, new_length - kept_length, placement).await;
            self.map.map(&request.map_err(map_error)?).await.map_err(map_error)?;
        }
        Ok(())
    }

    /// Applies the advice to a range (madvise(2)). `ENOMEM` if a part is not mapped, `EINVAL`.
    pub async fn advise(&self, address: u64, length: u64, advice: Advice) -> Result<()> {
        let range = self.change_range(address, length, Error::EINVAL)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions.lock().await;
        // Look up one region at a time. A list of them all could be long, and a change may join a
        // region with its neighbours.
        let mut from = range.start;
        while from < range.end
            && let Some(region) = regions.first_touching(from..range.end)
        {
            let part = region.range.start.max(from)..region.range.end.min(range.end);
            from = part.end;
            let length = part.end - part.start;
            match advice {
                Advice::Hint => {}
                Advice::Forget if region.locked => return Err(Error::EINVAL),
                Advice::Forget => self.map.forget(part.start, length).await.map_err(map_error)?,
                Advice::Want => self.populate(part, region.rights).await,
                Advice::Fork(inherited) => {
                    regions.check_cuts(&part)?;
                    let inheritance = match (inherited, region.shared) {
                        (false, _) => Inheritance::None,
                        (true, true) => Inheritance::Share,
                        (true, false) => Inheritance::Copy,
                    };
                    self.map.inherit(part.start, length, inheritance).await.map_err(map_error)?;
                    regions.update(part, |region| region.forked = inherited);
                }
            }
        }
        if regions.covers(range) { Ok(()) } else { Err(Error::ENOMEM) }
    }

    /// Checks that all of a range is mapped, as msync(2) and mincore(2) do. Nothing else is needed,
    /// since mappings show the pages of the files themselves. `ENOMEM`, `EINVAL`.
    pub async fn check_mapped(&self, address: u64, length: u64) -> Result<()> {
        let range = self.change_range(address, length, Error::ENOMEM)?;
        if self.regions.lock().await.covers(range) { Ok(()) } else { Err(Error::ENOMEM) }
    }

    /// The files of shared mappings in a range, for msync(2). `ENOMEM` if a part is not mapped.
    pub async fn shared_files(
        &self,
        address: u64,
        length: u64,
    ) -> Result<Vec<alloc::sync::Arc<crate::file::OpenFile>>> {
        self.check_mapped(address, length).await?;
        let range = self.change_range(address, length, Error::ENOMEM)?;
        let regions = self.regions.lock().await;
        let mut files = Vec::new();
        for region in regions.touching(range).filter(|region| region.shared) {
            if let super::RegionKind::File { file, .. } = &region.kind {
                files.try_reserve(1).map_err(|_| Error::ENOMEM)?;
                files.push(file.clone());
            }
        }
        Ok(files)
    }

    /// Locks or unlocks a range (mlock(2), munlock(2)). The pages of a locked range are brought in
    /// by this call, and stay in memory. `ENOMEM` if a part is not mapped or cannot be reached, or
    /// the limit is exceeded, `EPERM` if the process may not lock memory, `EAGAIN` if there is not
    /// so much memory.
    pub async fn lock(
        &self,
        address: u64,
        length: u64,
        lock: bool,
        limits: &Limits,
        privileged: bool,
    ) -> Result<()> {
        let start = address & !(PAGE - 1);
        let length = length.checked_add(address - start).ok_or(Error::EINVAL)?;
        let range = self.change_range(start, length, Error::EINVAL)?;
        self.lock_range(range, lock, limits, privileged).await
    }

    /// Locks or unlocks the address space (mlockall(2), munlockall(2)).
    pub async fn lock_all(
        &self,
        current: bool,
        future: bool,
        limits: &Limits,
        privileged: bool,
    ) -> Result<()> {
        {
            let mut regions = self.regions.lock().await;
            let total = regions.usage().total;
            if (current || future) && !privileged && total > limits.soft(Resource::LockedMemory) {
                return Err(if limits.soft(Resource::LockedMemory) == 0 {
                    Error::EPERM
                } else {
                    Error::ENOMEM
                });
            }
            regions.set_lock_future(future);
        }
        if future && !current {
            return Ok(());
        }
        let mut from = 0;
        loop {
            let next = self.regions.lock().await.from(from).next().map(|region| region.range.clone());
            let Some(range) = next else { return Ok(()) };
            from = range.end;
            match self.lock_range(range, current, limits, true).await {
                // Another thread has unmapped the range meanwhile, or not all pages can be there.
                Err(Error::ENOMEM | Error::EAGAIN) => {}
                done => done?,
            }
        }
    }

    async fn lock_range(
        &self,
        range: Range<u64>,
        lock: bool,
        limits: &Limits,
        privileged: bool,
    ) -> Result<()> {
        let mut regions = self.regions.lock().await;
        if !regions.covers(range.clone()) {
            return Err(Error::ENOMEM);
        }
        if lock && !privileged {
            let limit = limits.soft(Resource::LockedMemory);
            let sum = regions.usage().locked + (range.end - range.start);
            if sum > limit {
                return Err(if limit == 0 { Error::EPERM } else { Error::ENOMEM });
            }
        }
        regions.check_cuts(&range)?;
        regions.update(range.clone(), |region| region.locked = lock);
        // The table stays locked, so that what another thread unlocks is not kept afterwards.
        let (start, length) = (range.start, range.end - range.start);
        match lock {
            true if range.is_empty() => Ok(()),
            true => self.map.wire_rest(start, length).await.map_err(|error| match error {
                KernError::ResourceShortage => Error::EAGAIN,
                _ => Error::ENOMEM,
            }),
            false => self.map.unwire_parts(start, length).await.map_err(map_error),
        }
    }

    /// Keeps the pages of a range in memory if it is locked, as far as they can be brought in.
    pub(super) async fn keep_locked(&self, locked: bool, range: Range<u64>) {
        if locked {
            // A mapping that is locked need not have all its pages.
            let _ = self.map.wire_rest(range.start, range.end - range.start).await;
        }
    }
}

/// `region` after its contents were moved, cut to `range`: the contents that were at address `from`
/// are now at the beginning of `range`.
fn moved(region: &Region, from: u64, range: Range<u64>) -> Region {
    let mut moved = region.clone();
    if let super::RegionKind::File { offset, .. } = &mut moved.kind {
        *offset += from - region.range.start;
    }
    moved.range = range;
    moved.grows_down = false;
    moved
}
