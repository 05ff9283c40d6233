//! Map and grant items (X.2 rules 7.32 to 7.40).
use core::pin::Pin;

use x2::fpage::Placement;
use x2::{Fpage, MapItem, Region, Rights};

use super::changes::Changes;
use super::cursor::{Cursor, Progress};
use super::memory_type;
use super::node::{NodeId, Status};
use super::ports;
use super::space::SpaceMemory;
use super::spare;
use super::table::{self, EntryRef, NodeEntry, Place};
use super::tree;
use super::turn::{LOOK, MAP_STEP, Turn};
use super::unmap::to_boundary;
use super::walk::Revoke;
use crate::arch;
use crate::arch::page_entry::{MemoryType, PageEntry, largest_level, page_bits};
use crate::memory::{Account, OutOfMemory, PhysAddr, VirtAddr};

/// A transfer of a range's pages from one space to another.
pub(super) struct Transfer {
    pub(super) from: SpaceMemory,
    pub(super) to: SpaceMemory,
    pub(super) source: u64,
    pub(super) target: u64,
    /// Offset of the last byte.
    pub(super) last: u64,
    pub(super) rights: Rights,
    pub(super) kind: Kind,
}

/// What happens to the pages of both spaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The target gets what the sender has.
    Map,
    /// The page goes from the sender to the target. Not for sigma0.
    Grant,
    /// The target becomes what the sender has, holes and exact rights included.
    Replace,
}

/// The result of a map or grant item.
pub(super) struct Transferred {
    /// The rights that were granted on any page.
    pub(super) rights: Rights,
    /// The size of the memory that the receiver now has from the sender.
    pub(super) bytes: u64,
}

/// A page that the sender has.
#[derive(Clone, Copy)]
struct Source {
    /// Memory at the address that is being mapped.
    address: PhysAddr,
    level: u32,
    rights: Rights,
    memory_type: MemoryType,
    /// The page's node; `NONE` for sigma0, whose root may not exist yet.
    node: NodeId,
}

/// The result of one step.
enum Step {
    /// The step has handled this number of bytes.
    Advance(u64),
    /// The tables have changed: the same address has to be looked at again.
    Again,
    /// An interrupt is pending.
    Preempted,
}

impl Step {
    fn after_split(split: Result<Progress<()>, OutOfMemory>) -> Result<Self, OutOfMemory> {
        Ok(if split? == Progress::Preempted { Self::Preempted } else { Self::Again })
    }
}

/// Maps or grants what `item` offers of `from`'s pages to the part of `window` in `to` that the
/// item selects, and returns the delivered fpage (X.2 rule 7.38): the part of the target region,
/// with the rights granted; nilpage if nothing was mapped. Preemption point.
///
/// I/O fpages meet I/O windows only (7.41, [`ports`]). Rules for memory: placement 7.32, rights
/// 7.34 (a page that was mapped from the same parent before gets both), no effect 7.35, holes 7.36,
/// other mappings in the way are flushed 7.37, grant 7.39 (which first flushes whatever is in the
/// way).
///
/// [`OutOfMemory`]: the pages so far stay mapped.
pub(super) fn map(
    cursor: Pin<&mut Cursor>,
    from: SpaceMemory,
    to: SpaceMemory,
    item: MapItem,
    window: Fpage,
) -> Progress<Result<Fpage, OutOfMemory>> {
    if item.fpage.is_io() {
        return ports::map(cursor, from, to, item, window);
    }
    let cursor = cursor.project();
    let (Some(send), Some(window)) = (item.fpage.region(), window.region()) else {
        return cursor.finish(Ok(Fpage::NIL));
    };
    if from == to || to.is_sigma0() || item.rights().is_none() {
        return cursor.finish(Ok(Fpage::NIL));
    }
    let Placement { source, target } = Placement::of(send, item.send_base, window);
    // sigma0 cannot lose memory: its grant items act as map items.
    let kind = if item.grant && !from.is_sigma0() { Kind::Grant } else { Kind::Map };
    let (rights, last) = (item.rights(), source.last() - source.base);
    let transfer = Transfer { from, to, source: source.base, target: target.base, last, rights, kind };
    match transfer.run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(Ok(done)) if done.rights.is_none() => Progress::Done(Ok(Fpage::NIL)),
        Progress::Done(Ok(done)) => Progress::Done(Ok(Fpage::from_region(target, done.rights))),
        Progress::Done(Err(error)) => Progress::Done(Err(error)),
    }
}

impl Transfer {
    /// Transfers page by page. Preemption point.
    #[inline]
    pub(super) fn run(&self, cursor: &mut Cursor) -> Progress<Result<Transferred, OutOfMemory>> {
        if self.last >> page_bits(1) == 0
            && !cursor.is_active()
            && let Some(result) = self.plain_page()
            && (result.is_ok() || !spare::give_back())
        {
            return Progress::Done(result);
        }
        self.run_pages(cursor)
    }

    /// The common case: one small page of memory to an empty place. Anything else: `None`, nothing
    /// done.
    #[inline]
    fn plain_page(&self) -> Option<Result<Transferred, OutOfMemory>> {
        if self.kind == Kind::Grant {
            return None;
        }
        let &Self { from, to, rights, .. } = self;
        let result = plain_page(from, to, VirtAddr::new(self.source), VirtAddr::new(self.target), rights);
        result.map(|rights| rights.map(|rights| Transferred { rights, bytes: 1 << page_bits(1) }))
    }

    fn run_pages(&self, cursor: &mut Cursor) -> Progress<Result<Transferred, OutOfMemory>> {
        let mut turn = Turn::new();
        if cursor.is_walking() && cursor.continue_walk(&mut turn).is_none() {
            return Progress::Preempted;
        }
        let last = self.last;
        loop {
            let offset = cursor.offset;
            let source = VirtAddr::new(self.source.saturating_add(offset));
            let target = VirtAddr::new(self.target.saturating_add(offset));
            if offset > last || source.value().max(target.value()) >= arch::USER_END {
                let done = Transferred { rights: cursor.rights, bytes: cursor.value };
                return cursor.finish(Ok(done));
            }
            if turn.gives_way(MAP_STEP) {
                return Progress::Preempted;
            }
            match self.step(cursor, source, target, last - offset, &mut turn) {
                Ok(Step::Advance(bytes)) => {
                    cursor.offset += bytes;
                    cursor.looked_at = 0;
                    if cursor.cap != 0
                        && target.offset(bytes).is_aligned(page_bits(u32::from(cursor.cap) + 1))
                    {
                        cursor.cap = 0;
                    }
                }
                Ok(Step::Again) => {}
                Ok(Step::Preempted) => return Progress::Preempted,
                Err(_) if spare::give_back() => {}
                Err(error) => return cursor.finish(Err(error)),
            }
        }
    }

    /// Transfers one page, or makes room for it, or skips a hole. `left`: bytes of the region that
    /// follow `source`.
    #[inline]
    fn step(
        &self,
        cursor: &mut Cursor,
        source: VirtAddr,
        target: VirtAddr,
        left: u64,
        turn: &mut Turn,
    ) -> Result<Step, OutOfMemory> {
        // The largest page that both addresses and the region allow.
        let limit = if cursor.cap == 0 { largest_level() } else { cursor.cap.into() };
        let alignment = source.value() | target.value();
        let mut level = limit;
        while level > 1 {
            let mask = (1 << page_bits(level)) - 1;
            if alignment & mask == 0 && left >= mask {
                break;
            }
            level -= 1;
        }
        while let Some(skip) = self.blocked(source, target, level) {
            if level == 1 {
                return self.skip(cursor, target, skip.min(left.saturating_add(1)), turn);
            }
            level -= 1;
        }
        let page = match self.find_source(source, level) {
            Ok(page) => page,
            Err(hole) => return self.skip(cursor, target, hole.min(left.saturating_add(1)), turn),
        };
        let level = level.min(page.level);
        let size = 1 << page_bits(level);
        let rights = tree::granted(self.rights, page.rights);
        if rights.is_none() {
            return self.skip(cursor, target, size, turn);
        }
        if self.kind == Kind::Grant && page.level > level {
            let _tree = tree::lock(page.address);
            return Step::after_split(cursor.split(page.node, turn));
        }
        let place = table::find(self.to, target, level);
        if place.entry != PageEntry::EMPTY {
            match self.make_room(cursor, &page, rights, target, level, place, turn)? {
                Step::Advance(_) => {}
                other => return Ok(other),
            }
        } else if self.kind == Kind::Grant {
            self.move_page(&page, source, place, target, level, rights)?;
        } else {
            self.derive_page(&page, place, target, level, rights)?;
        }
        cursor.rights = cursor.rights.or(rights);
        cursor.value += size;
        Ok(Step::Advance(size))
    }

    /// The sender has nothing to map for `bytes` from `target` on.
    fn skip(
        &self,
        cursor: &mut Cursor,
        target: VirtAddr,
        bytes: u64,
        turn: &mut Turn,
    ) -> Result<Step, OutOfMemory> {
        if self.kind != Kind::Replace {
            return Ok(Step::Advance(bytes));
        }
        let place = table::find(self.to, target, 1);
        let bits = page_bits(place.level);
        if !place.entry.is_page(place.level) || place.at.node().is_none() {
            return Ok(Step::Advance(bytes.min(to_boundary(target, bits))));
        }
        let start = place.entry.address().align_down(bits);
        let _tree = tree::lock(start);
        if !target.is_aligned(bits) || bytes < 1 << bits {
            return Step::after_split(cursor.split(place.at.node(), turn));
        }
        let range = Region { base: start.value(), size_log2: bits };
        Ok(match cursor.walk(place.at.node(), range, Revoke::ALL, turn) {
            None => Step::Preempted,
            Some(_) => Step::Again,
        })
    }

    /// If a block of `level` at either address meets a KIP or UTCB area (X.2 rule 6.6): how far the
    /// area goes.
    #[inline]
    fn blocked(&self, source: VirtAddr, target: VirtAddr, level: u32) -> Option<u64> {
        let bits = page_bits(level);
        let skip = |space: SpaceMemory, address: VirtAddr| {
            let area = space.area_in(Region { base: address.value(), size_log2: bits })?;
            Some(area.last() + 1 - address.value())
        };
        skip(self.from, source).or_else(|| skip(self.to, target))
    }

    /// The sender's page at `address`, or how far the hole there goes. sigma0's pages are at most
    /// of `level`.
    #[inline(always)]
    fn find_source(&self, address: VirtAddr, level: u32) -> Result<Source, u64> {
        if self.from.is_sigma0() {
            return find_sigma0_page(self.from, address, level);
        }
        let place = table::find(self.from, address, 1);
        let bits = page_bits(place.level);
        let node = if place.entry.is_page(place.level) { place.at.node() } else { NodeId::NONE };
        if node.is_none() {
            return Err(to_boundary(address, bits));
        }
        let offset = address.value() & ((1 << bits) - 1);
        let start = place.entry.address().align_down(bits);
        Ok(Source {
            address: start.offset(offset),
            level: place.level,
            rights: place.entry.rights(),
            memory_type: place.entry.memory_type(place.level),
            node,
        })
    }

    /// Maps where something is mapped already. Returns `Advance` if it is the right page with the
    /// right rights.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "the state of one step, in registers")]
    fn make_room(
        &self,
        cursor: &mut Cursor,
        page: &Source,
        rights: Rights,
        target: VirtAddr,
        level: u32,
        place: Place,
        turn: &mut Turn,
    ) -> Result<Step, OutOfMemory> {
        if place.entry.is_table(place.level) {
            if spare::release(self.to) {
                return Ok(Step::Again);
            }
            if self.kind == Kind::Grant {
                // Everything goes.
                return Ok(self.remove_smaller(cursor, page, target, level, true, turn));
            }
            return Ok(match self.remove_smaller(cursor, page, target, level, false, turn) {
                Step::Advance(_) => {
                    cursor.cap = level as u8 - 1;
                    Step::Again
                }
                other => other,
            });
        }
        let node = place.at.node();
        let bits = page_bits(place.level);
        let there = place.entry.address().align_down(bits).offset(target.value() & ((1 << bits) - 1));
        let _tree = tree::lock(there);
        let same = there == page.address && self.kind != Kind::Grant && self.is_derived(node, page);
        let present = place.entry.rights();
        let extra = if self.kind == Kind::Replace { present.without(rights) } else { Rights::NONE };
        if same && present.contains(rights) && extra.is_none() {
            return Ok(Step::Advance(0));
        }
        if place.level > level {
            return Step::after_split(cursor.split(node, turn));
        }
        let range = Region { base: there.value(), size_log2: bits };
        if same && !extra.is_none() {
            let what = Revoke { rights: extra, flush: true, forget: Rights::NONE, own_use: true };
            return Ok(match cursor.walk(node, range, what, turn) {
                None => Step::Preempted,
                Some(_) => Step::Again,
            });
        }
        if same {
            // More rights need no invalidation: the processor walks again before it reports a
            // fault.
            place.at.set_rights(present.or(rights));
            return Ok(Step::Advance(0));
        }
        Ok(match cursor.walk(node, range, Revoke::ALL, turn) {
            None => Step::Preempted,
            Some(_) => Step::Again,
        })
    }

    fn is_derived(&self, node: NodeId, page: &Source) -> bool {
        let source = if page.node.is_none() { tree::root(page.address) } else { page.node };
        !source.is_none() && tree::is_derived(node, source)
    }

    /// Removes pages that a table at the target maps and that are not from the same parent, or,
    /// with `all`, every page. `Advance`: the rest can stay. A page that is mapped, while this
    /// gives way, where it has looked already is found in its turn.
    fn remove_smaller(
        &self,
        cursor: &mut Cursor,
        page: &Source,
        target: VirtAddr,
        level: u32,
        all: bool,
        turn: &mut Turn,
    ) -> Step {
        let lowest = if all { 1 } else { level - 1 };
        let mut gets_done = false;
        while cursor.looked_at < 1 << page_bits(level) {
            if gets_done && turn.gives_way(LOOK) {
                return Step::Preempted;
            }
            gets_done = true;
            let found = table::find(self.to, target.offset(cursor.looked_at), lowest);
            if found.level >= level {
                // The table was freed with its last entry.
                cursor.looked_at = 0;
                return Step::Again;
            }
            let bits = page_bits(found.level);
            if found.entry.is_page(found.level) {
                let there = found.entry.address().align_down(bits);
                let _tree = tree::lock(there);
                let wanted = page.address.offset(cursor.looked_at);
                if all || there != wanted || !self.is_derived(found.at.node(), page) {
                    let range = Region { base: there.value(), size_log2: bits };
                    match cursor.walk(found.at.node(), range, Revoke::ALL, turn) {
                        None => return Step::Preempted,
                        Some(_) => continue,
                    }
                }
            }
            cursor.looked_at += 1 << bits;
        }
        cursor.looked_at = 0;
        // A table that has become empty may be there still.
        if all || spare::release(self.to) { Step::Again } else { Step::Advance(0) }
    }

    /// Maps a page at an address where nothing is mapped.
    #[inline(always)]
    fn derive_page(
        &self,
        page: &Source,
        place: Place,
        target: VirtAddr,
        level: u32,
        rights: Rights,
    ) -> Result<(), OutOfMemory> {
        let mapper = self.from.account();
        let _tree = tree::lock(page.address);
        let node = NodeId::alloc(mapper, level)?;
        let source = if page.node.is_none() { tree::make_root(page.address, mapper) } else { Ok(page.node) };
        let anchor = source.and_then(|source| tree::anchor(source, page.address, level, mapper));
        let at = anchor.and_then(|anchor| {
            let made = table::make_from(place, self.to, target, level).and_then(EntryRef::for_node);
            made.inspect_err(|_| {
                table::trim(self.to, target, &mut Changes::new());
                tree::release(anchor);
            })
        });
        match (anchor, at) {
            (Ok(anchor), Ok(at)) => {
                let _space = self.to.lock();
                let entry = PageEntry::page(page.address, level, rights);
                at.install(entry.with_memory_type(level, page.memory_type), node);
                node.set_entry(at.entry());
                node.link(anchor, page.address, false);
                Ok(())
            }
            _ => {
                node.free();
                Err(OutOfMemory)
            }
        }
    }

    /// Moves the sender's page to an empty place: the node stays where it is in the tree, with
    /// everything derived from it (X.2 rule 7.39).
    fn move_page(
        &self,
        page: &Source,
        source: VirtAddr,
        place: Place,
        target: VirtAddr,
        level: u32,
        rights: Rights,
    ) -> Result<(), OutOfMemory> {
        let _tree = tree::lock(page.address);
        let mut changes = Changes::new();
        let at = table::make_from(place, self.to, target, level)
            .and_then(EntryRef::for_node)
            .inspect_err(|_| table::trim(self.to, target, &mut Changes::new()))?;
        spare::claim(self.to, at.entry());
        let old = table::find(self.from, source, 1);
        debug_assert!(old.level == level && old.at.node() == page.node);
        let entry = old.at.remove(&mut changes);
        page.node.add_status(Status::fresh(entry.status()));
        let _space = self.to.lock();
        let entry = PageEntry::page(page.address, level, rights).with_memory_type(level, page.memory_type);
        at.install(entry, page.node);
        page.node.set_entry(at.entry());
        Ok(())
    }
}

/// [`map`] without a preemption point, with all of `to` as the window, where `item` maps one small
/// page to an empty place. Returns whether it is done. In any other case, also if there is no
/// memory for it, nothing is changed. The caller holds [`super::lock()`].
#[inline(always)]
pub fn try_map_page(from: SpaceMemory, to: SpaceMemory, item: MapItem) -> bool {
    const SMALL: u32 = page_bits(1);
    if item.grant || item.fpage.size_field() != SMALL || from == to || to.is_sigma0() {
        return false;
    }
    let source = VirtAddr::new(item.fpage.raw()).align_down(SMALL);
    let target = VirtAddr::new(item.send_base).align_down(SMALL);
    matches!(plain_page(from, to, source, target, item.rights()), Some(Ok(_)))
}

/// Maps the small page at `source` of `from`, memory, at `target`, where nothing is; returns the
/// rights that the target has. Anything else, also less than small pages and areas that are not
/// mappable: `None`, nothing done.
#[inline(always)]
pub(super) fn plain_page(
    from: SpaceMemory,
    to: SpaceMemory,
    source: VirtAddr,
    target: VirtAddr,
    rights: Rights,
) -> Option<Result<Rights, OutOfMemory>> {
    if from.is_ports()
        || source.value().max(target.value()) >= arch::USER_END
        || from.excludes(source)
        || to.excludes(target)
    {
        return None;
    }
    let place = table::find_small(to, target);
    if place.entry != PageEntry::EMPTY {
        return None;
    }
    let is_sigma0 = from.is_sigma0();
    let (page, parent) = if is_sigma0 {
        (sigma0_small_page(source, rights)?, NodeId::NONE)
    } else {
        derived(from, source, rights)?
    };
    let (address, mapper) = (page.address(), from.account());
    let _tree = tree::lock(address);
    let parent = if is_sigma0 { tree::root_for_small_pages(address) } else { parent };
    let made = if place.level == 1
        && let Some(at) = place.at.ready_for_node()
        && !parent.is_none()
        && parent.takes_small_pages()
    {
        NodeId::alloc(mapper, 1).map(|node| (at, parent, node))
    } else {
        prepare(to, target, place, parent, address, mapper)
    };
    let Ok((at, parent, node)) = made else { return Some(Err(OutOfMemory)) };
    let _space = to.lock();
    at.install(page, node);
    node.set_entry(at.entry());
    node.link_small(parent, address);
    Some(Ok(page.rights()))
}

/// A small page derived from that of `from`, not sigma0, at `source`, and its parent.
#[inline(always)]
fn derived(from: SpaceMemory, source: VirtAddr, rights: Rights) -> Option<(PageEntry, NodeId)> {
    let origin = table::find_small(from, source);
    if !origin.entry.is_page(origin.level) {
        return None;
    }
    let parent = origin.at.node();
    if parent.is_none() {
        return None;
    }
    let page = match origin.level {
        1 => origin.entry.derived(source.value(), 1, rights)?,
        2 => origin.entry.derived(source.value(), 2, rights)?,
        level => origin.entry.derived(source.value(), level, rights)?,
    };
    Some((page, parent))
}

/// A small page derived from sigma0's at `source`.
#[inline]
fn sigma0_small_page(source: VirtAddr, rights: Rights) -> Option<PageEntry> {
    const SMALL: u32 = page_bits(1);
    let address = PhysAddr::new(source.value());
    if rights.is_none() || tree::reserved_in(address, SMALL).is_some() {
        return None;
    }
    let memory_type = memory_type::of(address, SMALL)?;
    Some(PageEntry::page(address, 1, rights).with_memory_type(1, memory_type))
}

/// Makes what a small page at `address`, below `parent` (none: a root that is not there yet), still
/// needs: tables of its space, with the shadow of the last, a part of `parent`, its node. On
/// failure everything is as before.
#[cold]
fn prepare(
    to: SpaceMemory,
    target: VirtAddr,
    place: Place,
    parent: NodeId,
    address: PhysAddr,
    mapper: Account,
) -> Result<(NodeEntry, NodeId, NodeId), OutOfMemory> {
    let parent = if parent.is_none() { tree::make_root(address, mapper)? } else { parent };
    let anchor = tree::anchor(parent, address, 1, mapper)?;
    let made = table::make_from(place, to, target, 1).and_then(|at| {
        let node = NodeId::alloc(mapper, 1)?;
        // This is done last: a table that was there before would keep its shadow.
        at.for_node().map(|at| (at, anchor, node)).inspect_err(|_| node.free())
    });
    made.inspect_err(|_| {
        table::trim(to, target, &mut Changes::new());
        tree::release(anchor);
    })
}

/// sigma0's page at `address` (which `space` is its memory or its ports): idempotent, as large as
/// possible up to `level`, unless the memory is the kernel's. Else how far to skip.
fn find_sigma0_page(space: SpaceMemory, address: VirtAddr, mut level: u32) -> Result<Source, u64> {
    let physical = PhysAddr::new(address.value());
    if space.is_ports() {
        return Ok(sigma0_page(physical, level, MemoryType::USUAL));
    }
    loop {
        match tree::reserved_in(physical.align_down(page_bits(level)), page_bits(level)) {
            None => match memory_type::of(physical.align_down(page_bits(level)), page_bits(level)) {
                Some(memory_type) => return Ok(sigma0_page(physical, level, memory_type)),
                // Types change at page boundaries only.
                None => level -= 1,
            },
            Some(end) if level == 1 => {
                let end = PhysAddr::new(end.value().saturating_add(0xfff)).align_down(12);
                return Err(end.value() - address.value());
            }
            Some(_) => level -= 1,
        }
    }
}

fn sigma0_page(address: PhysAddr, level: u32, memory_type: MemoryType) -> Source {
    Source { address, level, rights: Rights::ALL, memory_type, node: NodeId::NONE }
}
