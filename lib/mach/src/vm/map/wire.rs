//! Wiring: pages that stay in memory (`vm_wire`), for memory that devices reach or that may not
//! wait for a pager.

use alloc::sync::Arc;
use core::ops::Range;

use macadamia_sync::Turns;

use super::super::fault;
use super::super::object::{Backing, VmObject};
use super::entry::Entry;
use super::{EntryId, MapState, VmMap, page_range};
use crate::machine::{Machine, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

/// How often the pages of a range are brought in before the range counts as too large to be
/// resident as a whole.
const ROUNDS: usize = 8;

/// How many pages are brought in before other work has its turn.
const TURN: u32 = 64;

impl<M: Machine> VmMap<M> {
    /// Keeps the pages of a range in memory until [`unwire`](Self::unwire) has been called as
    /// often. Pages that can be written are made the map's own first. Wired pages are not taken by
    /// page-out; a fork may make a later write copy one.
    ///
    /// If the future is dropped before its end, nothing is wired; pages may have been brought into
    /// memory.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range, or a part of it is not mapped.
    /// `ProtectionFailure`: a part allows no access. `ResourceShortage`: the pages cannot all stay
    /// in memory together. What [`fault`](Self::fault) returns. Nothing is wired then.
    pub async fn wire(&self, start: u64, size: u64) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let pages = self.check_accessible(start, end).await?;
        if pages > self.vm.pages_that_may_be_wired() {
            return Err(KernError::ResourceShortage);
        }
        for _ in 0..ROUNDS {
            // The pages are brought in one by one, and then wired in one step if they are all still
            // there.
            let (mut at, mut turns) = (start, Turns::every(TURN));
            while at < end {
                let access = self.wiring_access(at).await?;
                self.fault(at, access).await?;
                turns.step().await;
                at += PAGE_SIZE;
            }
            if self.wire_resident(start, end).await? {
                return Ok(());
            }
        }
        Err(KernError::ResourceShortage)
    }

    /// Wires, once, the parts of a range that are mapped and not wired yet, as far as that is
    /// possible: what cannot be wired keeps no other entry from it.
    ///
    /// # Errors
    /// The first error of [`wire`](Self::wire).
    pub async fn wire_rest(&self, start: u64, size: u64) -> KernResult {
        let (mut start, end) = page_range(start, size)?;
        let mut result = Ok(());
        while let Some(part) = self.part(start, end, false).await? {
            result = result.and(self.wire(part.start, part.end - part.start).await);
            start = part.end;
        }
        result
    }

    /// Ends one wiring of each part of a range that is wired.
    ///
    /// # Errors
    /// `InvalidArgument`. `ResourceShortage`: a part may still be wired.
    pub async fn unwire_parts(&self, start: u64, size: u64) -> KernResult {
        let (mut start, end) = page_range(start, size)?;
        while let Some(part) = self.part(start, end, true).await? {
            // Another thread may have unmapped the part meanwhile.
            match self.unwire(part.start, part.end - part.start).await {
                Err(KernError::InvalidAddress) => {}
                done => done?,
            }
            start = part.end;
        }
        Ok(())
    }

    /// The first part of a range that lies in one entry, which is wired or is not.
    async fn part(&self, start: u64, end: u64, wired: bool) -> KernResult<Option<Range<u64>>> {
        let state = self.look().await?;
        let mut next = state.entries.find_at_or_after(start);
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            if (state.entries.get(id).wired > 0) == wired {
                return Ok(Some(state.entries.start(id).max(start)..state.entries.end(id).min(end)));
            }
            next = state.entries.next(id);
        }
        Ok(None)
    }

    /// Ends one wiring of a range.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range, or a part of it is not wired.
    /// `ResourceShortage`. Nothing has changed then.
    pub async fn unwire(&self, start: u64, size: u64) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        let wired = Self::is_mapped(state, start, end)
            && Self::entries_in(state, start, end).all(|id| state.entries.get(id).wired > 0);
        if !wired {
            return Err(KernError::InvalidAddress);
        }
        self.cut_range(state, start, end)?;
        let mut next = state.entries.find_at_or_after(start);
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            let size = state.entries.end(id) - state.entries.start(id);
            let entry = state.entries.get_mut(id);
            entry.wired -= 1;
            // The pages are wired once, by the first wiring of the entry.
            if entry.wired == 0 {
                let entry = state.entries.get(id);
                self.unwire_pages(entry, size);
            }
            next = state.entries.next(id);
        }
        self.simplify(state, start, end);
        Ok(())
    }

    /// Checks that all of a range is mapped and allows some access. Returns how many pages of it
    /// are not wired yet.
    async fn check_accessible(&self, start: u64, end: u64) -> KernResult<u64> {
        let state = self.look().await?;
        if !Self::is_mapped(&state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        if Self::entries_in(&state, start, end).any(|id| state.entries.get(id).protection.is_empty()) {
            return Err(KernError::ProtectionFailure);
        }
        let is_new = |entry: &Entry<M>| {
            let device =
                |object: &Arc<VmObject<M>>| matches!(object.state.lock().backing, Backing::Device(..));
            entry.wired == 0 && !entry.object.as_ref().is_some_and(device)
        };
        let new = Self::entries_in(&state, start, end).filter(|&id| is_new(state.entries.get(id)));
        let bytes = new.map(|id| state.entries.end(id).min(end) - state.entries.start(id).max(start));
        Ok(bytes.sum::<u64>() / PAGE_SIZE)
    }

    /// The access with which a page is brought in to be wired.
    async fn wiring_access(&self, address: u64) -> KernResult<Protection> {
        let mut state = self.look().await?;
        let id = state.entries.find(address).ok_or(KernError::InvalidAddress)?;
        let protection = state.entries.get(id).protection;
        if protection.is_empty() {
            return Err(KernError::ProtectionFailure);
        }
        let preferred = [Protection::WRITE, Protection::READ, Protection::EXECUTE];
        Ok(preferred.into_iter().find(|&access| protection.contains(access)).unwrap_or(Protection::READ))
    }

    /// Wires a range if every page is in memory, in the state that a write needs where writes are
    /// allowed. Returns false if not.
    async fn wire_resident(&self, start: u64, end: u64) -> KernResult<bool> {
        let state = &mut *self.change().await?;
        if !Self::is_mapped(state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        self.cut_range(state, start, end)?;
        if Self::entries_in(state, start, end).any(|id| state.entries.get(id).wired == u16::MAX) {
            return Err(KernError::ResourceShortage);
        }
        // Only pages of entries that are not wired yet are wired here. At the first page that is
        // missing, those before it are unwired.
        let missing = Self::entries_in(state, start, end).find(|&id| !self.wire_pages(state, id));
        for id in Self::entries_in(state, start, end) {
            match missing {
                Some(missing) if missing == id => break,
                Some(_) => self.unwire_entry(state, id),
                None => {}
            }
        }
        let mut next = state.entries.find_at_or_after(start).filter(|_| missing.is_none());
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            state.entries.get_mut(id).wired += 1;
            next = state.entries.next(id);
        }
        if missing.is_some() {
            self.simplify(state, start, end);
        }
        Ok(missing.is_none())
    }

    /// Wires the pages of an entry that is not wired. If one is not in memory, nothing is wired,
    /// and the result is false.
    fn wire_pages(&self, state: &MapState<M>, id: EntryId) -> bool {
        let entry = state.entries.get(id);
        let size = state.entries.end(id) - state.entries.start(id);
        let Some(object) = &entry.object else { return false };
        if entry.wired > 0 || matches!(object.state.lock().backing, Backing::Device(..)) {
            return true;
        }
        let own = entry.protection.contains(Protection::WRITE);
        if own && entry.needs_copy {
            return false;
        }
        let pages = entry.index(0)..entry.index(size);
        let missing = pages.clone().find(|&index| !fault::wire(&self.vm, object, index, own));
        if let Some(missing) = missing {
            (pages.start..missing).for_each(|index| fault::end_wiring(&self.vm, object, index));
        }
        missing.is_none()
    }

    /// Undoes [`wire_pages`](Self::wire_pages).
    fn unwire_entry(&self, state: &MapState<M>, id: EntryId) {
        let entry = state.entries.get(id);
        if entry.wired == 0 {
            self.unwire_pages(entry, state.entries.end(id) - state.entries.start(id));
        }
    }
}
