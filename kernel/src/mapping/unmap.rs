//! Unmap, flush, status (X.2 rules 8.1 to 8.8), and the end of a space.
use core::pin::Pin;

use x2::{Fpage, Region, Rights};

use super::changes::{ChangedPage, Noted};
use super::cursor::{Cursor, Progress};
use super::ports;
use super::space::SpaceMemory;
use super::spare;
use super::table::{self, Place};
use super::tree::{self, TREE_LEVEL};
use super::turn::{SIGMA0_PAGE, SKIPPED, Turn, UNMAP_STEP};
use super::walk::{self, Mapped, Revoke};
use crate::arch;
use crate::arch::page_entry::page_bits;
use crate::memory::{OutOfMemory, PhysAddr, VirtAddr};

/// What to do to a range of a space's pages.
pub(super) struct Revocation {
    pub(super) space: SpaceMemory,
    /// First address, of a page.
    pub(super) start: u64,
    /// Last address, inclusive.
    pub(super) last: u64,
    pub(super) what: Revoke,
    /// Also revokes kernel frames: the space is being destroyed.
    pub(super) everything: bool,
}

/// What Unmap reports of a range of pages.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// The status of the pages before it was reset.
    pub(super) status: Rights,
    /// The rights that the space itself had to the pages, before they were revoked.
    pub(super) held: Rights,
}

/// Revokes the rights in `fpage` from everything that is derived from `space`'s pages in it, and
/// from these themselves if `flush`; returns their access status (ABI 12.6, X.2 rules 8.2 to 8.8).
/// Never fails. Preemption point.
///
/// A page that cannot be read any more is removed, whatever else it allowed. The status of a large
/// page belongs to the whole page: an fpage that covers only a part of it sees, but does not reset,
/// what the holder did through it. In a space whose status belongs to its owner
/// ([`SpaceMemory::set_owned`]) nothing is reset.
///
/// I/O ports are always removed, whatever rights the fpage names, and have no status (X.2 rule
/// 8.9).
pub(super) fn unmap(
    cursor: Pin<&mut Cursor>,
    space: SpaceMemory,
    fpage: Fpage,
    flush: bool,
) -> Progress<Rights> {
    let cursor = cursor.project();
    let Some(region) = fpage.region() else {
        return match ports::unmap(cursor, space, fpage, flush) {
            Progress::Preempted => Progress::Preempted,
            Progress::Done(()) => Progress::Done(Rights::NONE),
        };
    };
    let what = revocation(space, fpage, flush);
    let (start, last) = (region.base, region.last());
    match (Revocation { space, start, last, what, everything: false }).run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(seen) => Progress::Done(seen.status),
    }
}

/// What Unmap does to `fpage`.
#[inline(always)]
fn revocation(space: SpaceMemory, fpage: Fpage, flush: bool) -> Revoke {
    let forget = if space.is_owned() { Rights::NONE } else { Rights::ALL };
    Revoke { rights: fpage.rights(), flush, forget, own_use: true }
}

/// [`unmap`] without a preemption point, where `fpage` is one small page from which nothing is
/// derived, and not the last one of its table. In any other case the result is `None`, and nothing
/// is done. The caller holds [`super::lock()`].
#[inline(always)]
pub fn try_unmap_page(space: SpaceMemory, fpage: Fpage, flush: bool) -> Option<Rights> {
    if fpage.size_field() != page_bits(1) {
        return None;
    }
    let address = VirtAddr::new(fpage.raw()).align_down(page_bits(1));
    plain_page(space, address, revocation(space, fpage, flush)).map(|seen| seen.status)
}

/// The common case: at `address` is one small page from which nothing is derived, and more in its
/// table, or that stays anyway. Anything else: `None`, nothing done.
#[inline(always)]
pub(super) fn plain_page(space: SpaceMemory, address: VirtAddr, what: Revoke) -> Option<Seen> {
    if address.value() >= arch::USER_END || space.is_sigma0() || space.excludes(address) {
        return None;
    }
    let place = table::small_table(space, address)?.small_place(address);
    if !place.entry.is_page(1) {
        return None;
    }
    let mut changes = ChangedPage::new();
    let seen = plain_page_at(space, address, place, what, &mut changes)?;
    changes.finish();
    Some(seen)
}

/// Like [`plain_page`], for what is found at `place`, a small page; the caller finishes the
/// changes.
#[inline(always)]
fn plain_page_at(
    space: SpaceMemory,
    address: VirtAddr,
    place: Place,
    what: Revoke,
    changes: &mut impl Noted,
) -> Option<Seen> {
    let Place { at, entry, .. } = place;
    let described = at.described();
    let node = described.node();
    if node.is_none() {
        return None;
    }
    let _tree = tree::lock(entry.address());
    if !node.is_plain() {
        return None;
    }
    let held = entry.rights();
    let revoke = if what.flush { what.rights } else { Rights::NONE };
    let status = if what.own_use && revoke.contains(Rights::READ) {
        tree::free_plain(node, changes.remove(&described, space, address)?)
    } else {
        if what.own_use {
            walk::reduce(Mapped { node, at, space, address }, entry, revoke, changes);
        }
        node.mine(what.forget)
    };
    Some(Seen { status: with_execute(status, held.contains(Rights::EXECUTE)), held })
}

/// Removes all mappings of a space with everything derived from them, then frees it; the name is
/// invalid from then on. Kernel frames in it are no longer mapped, but not freed. The space must
/// not be active on any processor, and no operation may map to it any more. Preemption point.
pub(super) fn destroy(cursor: Pin<&mut Cursor>, space: SpaceMemory) -> Progress<()> {
    let cursor = cursor.project();
    spare::end_space(space);
    if space.ports().is_some()
        && let Progress::Preempted = ports::destroy(cursor, space)
    {
        return Progress::Preempted;
    }
    let everything =
        Revocation { space, start: 0, last: arch::USER_END - 1, what: Revoke::ALL, everything: true };
    match everything.run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(_) => {
            space.delete();
            Progress::Done(())
        }
    }
}

impl Revocation {
    pub(super) fn run(&self, cursor: &mut Cursor) -> Progress<Seen> {
        let mut turn = Turn::new();
        if cursor.is_walking() {
            match cursor.continue_walk(&mut turn) {
                None => return Progress::Preempted,
                Some(status) => page_done(cursor, status),
            }
        }
        if self.space.root().used() == 0 && !self.space.is_sigma0() && !cursor.is_active() {
            // Nothing is mapped in the whole range.
            return cursor.finish(Seen { status: Rights::NONE, held: Rights::NONE });
        }
        // sigma0 has no memory beyond what nodes can name.
        let memory_end = if self.space.is_sigma0() { ports::PORT_BASE } else { arch::USER_END };
        let end = if self.space.is_ports() { self.last } else { self.last.min(memory_end) };
        loop {
            let address = VirtAddr::new(self.start.saturating_add(cursor.offset));
            if address.value() >= end {
                let seen = Seen { status: cursor.rights, held: cursor.held };
                return cursor.finish(seen);
            }
            if turn.gives_way(UNMAP_STEP) || !self.step(cursor, address, &mut turn) {
                return Progress::Preempted;
            }
        }
    }

    /// Handles what is mapped at `address`. Returns false if it was preempted meanwhile.
    #[inline]
    fn step(&self, cursor: &mut Cursor, address: VirtAddr, turn: &mut Turn) -> bool {
        if !self.everything
            && let Some(area) = self.space.area_in(Region { base: address.value(), size_log2: 12 })
        {
            cursor.offset += area.last() + 1 - address.value();
            return true;
        }
        if self.space.is_sigma0() {
            return self.sigma0_step(cursor, address, turn);
        }
        let place = table::find(self.space, address, 1);
        if place.entry.is_page(place.level) {
            if place.level == 1
                && self.last - address.value() >= (1 << page_bits(1)) - 1
                && let Some(seen) = plain_page_at(self.space, address, place, self.what, &mut turn.changes)
            {
                cursor.rights = cursor.rights.or(seen.status);
                cursor.held = cursor.held.or(seen.held);
                cursor.offset += 1 << page_bits(1);
                return true;
            }
            return self.page(cursor, address, place, turn);
        }
        let (bits, skipped) = (page_bits(place.level), place.empty_behind());
        turn.did(skipped / SKIPPED);
        cursor.offset += to_boundary(address, bits) + (u64::from(skipped) << bits);
        true
    }

    /// Handles one page of the space.
    #[inline]
    fn page(&self, cursor: &mut Cursor, address: VirtAddr, place: Place, turn: &mut Turn) -> bool {
        let bits = page_bits(place.level);
        let node = place.at.node();
        if node.is_none() {
            if self.everything {
                place.at.remove(&mut turn.changes);
            }
            cursor.offset += to_boundary(address, bits);
            return true;
        }
        let page = place.entry;
        let start = page.address().align_down(bits);
        let _tree = tree::lock(start);
        cursor.page = page.rights();
        cursor.held = cursor.held.or(cursor.page);
        let mut range = Region { base: start.value(), size_log2: bits };
        let mut what = self.what;
        cursor.advance = bits as u8;
        let offset = address.value() & (range.last() - range.base);
        if offset != 0 || self.last - address.value() < range.last() - range.base {
            if what.flush && !page.rights().and(what.rights).is_none() {
                match cursor.split(node, turn) {
                    Ok(Progress::Preempted) => return false,
                    // The page was split into smaller pages.
                    Ok(Progress::Done(())) => return true,
                    Err(OutOfMemory) => {}
                }
                what.rights = Rights::ALL;
                cursor.advance = self.block_bits(address, bits) as u8;
            } else {
                range = Region { base: range.base + offset, size_log2: self.block_bits(address, bits) };
                cursor.advance = range.size_log2 as u8;
            }
        }
        match cursor.walk(node, range, what, turn) {
            None => false,
            Some(status) => {
                page_done(cursor, status);
                true
            }
        }
    }

    /// log2 of the largest block at `address`, at most 2^`most`, that lies in the range.
    fn block_bits(&self, address: VirtAddr, most: u32) -> u32 {
        let aligned = address.value().trailing_zeros();
        let fits = (self.last - address.value()).saturating_add(1).ilog2();
        most.min(aligned).min(fits)
    }

    /// Handles one GiB, or the rest of the region, of sigma0's holding, and the status of its own
    /// use of it. sigma0 keeps its own pages in any case.
    fn sigma0_step(&self, cursor: &mut Cursor, address: VirtAddr, turn: &mut Turn) -> bool {
        let bits = self.block_bits(address, page_bits(TREE_LEVEL));
        let range = Region { base: address.value(), size_log2: bits };
        cursor.advance = bits as u8;
        cursor.page = Rights::ALL;
        if !self.take_sigma0_status(cursor, range, turn) {
            return false;
        }
        let physical = PhysAddr::new(range.base);
        let _tree = tree::lock(physical);
        let root = tree::root(physical);
        if root.is_none() {
            page_done(cursor, Rights::NONE);
            return true;
        }
        match cursor.walk(root, range, Revoke { flush: false, ..self.what }, turn) {
            None => false,
            Some(status) => {
                page_done(cursor, status);
                true
            }
        }
    }

    /// Collects the status of sigma0's own pages in `range`, which is reset for pages that lie in
    /// it as a whole. Returns false if it was preempted meanwhile.
    fn take_sigma0_status(&self, cursor: &mut Cursor, range: Region, turn: &mut Turn) -> bool {
        let begin = cursor.looked_at;
        while cursor.looked_at <= range.last() - range.base {
            if cursor.looked_at != begin && turn.gives_way(SIGMA0_PAGE) {
                return false;
            }
            let address = VirtAddr::new(range.base + cursor.looked_at);
            if let Some(area) = self.space.area_in(Region { base: address.value(), size_log2: 12 }) {
                cursor.looked_at += area.last() + 1 - address.value();
                continue;
            }
            let place = table::find(self.space, address, 1);
            if place.entry.is_page(place.level) && place.at.node().is_none() {
                let status = place.entry.status();
                cursor.rights = cursor.rights.or(with_execute(status, true));
                if !status.is_none() && page_bits(place.level) <= range.size_log2 {
                    place.at.take_status();
                    turn.changes.invalidate(self.space, address);
                }
            }
            cursor.looked_at += to_boundary(address, page_bits(place.level));
        }
        true
    }
}

/// The walk over a page is over, or was not needed.
#[inline]
fn page_done(cursor: &mut Cursor, status: Rights) {
    cursor.rights = cursor.rights.or(with_execute(status, cursor.page.contains(Rights::EXECUTE)));
    cursor.offset += 1 << cursor.advance;
    cursor.looked_at = 0;
}

/// The processor does not tell execution from reading (X.2 rule 8.7).
#[inline]
fn with_execute(status: Rights, executable: bool) -> Rights {
    if executable && status.contains(Rights::READ) { status.or(Rights::EXECUTE) } else { status }
}

/// Bytes from `address` to the end of its block of 2^`bits`.
#[inline]
pub(super) fn to_boundary(address: VirtAddr, bits: u32) -> u64 {
    (1 << bits) - (address.value() & ((1 << bits) - 1))
}
