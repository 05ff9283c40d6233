//! Walks through a holding and everything derived from it, to revoke rights and to collect status.
//!
//! A walk goes through the nodes below its *top* in depth-first order: a node, its children, the
//! lists of its parts. It revokes on the way down; on the way up it reports status and frees,
//! without recursion. Because it revokes before it goes deeper, a page that it has passed cannot
//! pass on more than it still has: a program cannot keep a walk busy by mapping on.
//!
//! A walk may be restricted to a range of the memory: then large pages below the top are split, so
//! that only the range is affected; if there is no memory to split a page, it is removed whole
//! (K4).
//!
//! Between any two steps the tree is consistent and the walk can be suspended. Then other
//! operations may free the nodes that it refers to; they are marked, and [`node_goes`] moves the
//! walk on (K12).
use core::ptr;

use x2::{Region, Rights};

use super::changes::{Changes, Noted};
use super::cursor::Progress;
use super::node::{NodeId, Status};
use super::space::SpaceMemory;
use super::split::{Prepared, split};
use super::table::EntryRef;
use super::tree;
use super::turn::{LONG_STEP, Turn, Work};
use crate::arch::page_entry::{ENTRIES, MemoryType, PageEntry, index, page_bits};
use crate::memory::{OutOfMemory, PhysAddr, VirtAddr};
use crate::sync::SpinLock;

/// The work of a step of a walk; `CHANGE` is added if the step changes a page.
const STEP: Work = 2;
const CHANGE: Work = 4;
/// Pieces among which the next part is looked for with one unit of work.
const SEARCHED: Work = 12;

/// The place at a node where the walk goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The walk is at the node itself.
    Enter,
    /// The walk is at the list of the node's children.
    Children,
    /// The walk is at the list of one of the node's parts.
    Part(u16),
    /// The walk has passed everything below the node, whose array takes long to free.
    Leave,
}

/// What a walk revokes, and which status it resets.
#[derive(Clone, Copy)]
pub(super) struct Revoke {
    /// Rights that are revoked from everything derived.
    pub(super) rights: Rights,
    /// Revokes also the holder's own page.
    pub(super) flush: bool,
    /// Which status of the holder is reset: read, write.
    pub(super) forget: Rights,
    /// Whether the holder's own use counts as status, or only that of what is derived.
    pub(super) own_use: bool,
}

impl Revoke {
    /// Everything goes.
    pub(super) const ALL: Self =
        Self { rights: Rights::ALL, flush: true, forget: Rights::ALL, own_use: true };
}

/// A walk and how far it has come. All zero and [`Walk::IDLE`]: none.
pub(super) struct Walk {
    /// The holding: visited, but not changed, except for `own`.
    top: NodeId,
    at: NodeId,
    /// The page of the space that unmaps.
    own: NodeId,
    /// The large page that is being removed whole with everything below.
    whole: NodeId,
    step: Step,
    revoke: Rights,
    result: Rights,
    /// Which status of the holder is reset.
    forget: Rights,
    /// The memory type that pages get, instead of losing rights.
    memory_type: Option<MemoryType>,
    /// Memory that is affected: 2^`bits` bytes from `start` on.
    start: PhysAddr,
    bits: u8,
    done: bool,
    /// While suspended: the list of suspended walks.
    next: *mut Walk,
    prev: *mut Walk,
}

/// The walks that are suspended: a node that goes tells them.
struct Suspended(*mut Walk);

// SAFETY: the list is only used under its lock, and a walk in it is touched by others only under
// that lock and the tree locks, never while its owner runs it.
unsafe impl Send for Suspended {}

static SUSPENDED: SpinLock<Suspended> = SpinLock::new(Suspended(ptr::null_mut()));

/// Forgets all walks that were suspended: for a new machine.
pub(super) fn init() {
    SUSPENDED.lock().0 = ptr::null_mut();
}

impl Walk {
    pub(super) const IDLE: Self = Self {
        top: NodeId::NONE,
        at: NodeId::NONE,
        own: NodeId::NONE,
        whole: NodeId::NONE,
        step: Step::Enter,
        revoke: Rights::NONE,
        result: Rights::NONE,
        forget: Rights::NONE,
        memory_type: None,
        start: PhysAddr::new(0),
        bits: 0,
        done: true,
        next: ptr::null_mut(),
        prev: ptr::null_mut(),
    };

    /// A walk that does `what` to what `own` holds of `range`. `own` is a page inside the range, or
    /// a larger one that is not flushed, or a root.
    pub(super) fn new(own: NodeId, range: Region, what: Revoke, changes: &mut Changes) -> Self {
        let top = own.holding();
        let Revoke { rights: revoke, flush, forget, own_use } = what;
        let (start, bits) = (PhysAddr::new(range.base), range.size_log2 as u8);
        let mut walk = Self { top, own, at: top, revoke, forget, start, bits, done: false, ..Self::IDLE };
        if own.is_mapped() && own_use {
            let revoke = if flush { revoke } else { Rights::NONE };
            if own.bits() <= range.size_log2 {
                act(own, revoke, changes);
                walk.result = own.mine(forget);
            } else {
                // A large page's own status belongs to all of it, so it cannot be reset for a part.
                walk.result = own.mine(Rights::NONE).or(own.entry().load().status());
            }
        }
        walk
    }

    /// A walk that gives everything derived from `root` in `range` a memory type.
    pub(super) fn for_type(
        root: NodeId,
        range: Region,
        memory_type: MemoryType,
        changes: &mut Changes,
    ) -> Self {
        let nothing = Revoke { rights: Rights::NONE, flush: false, forget: Rights::NONE, own_use: true };
        Self { memory_type: Some(memory_type), ..Self::new(root, range, nothing, changes) }
    }

    /// The status in the range that the holder of the top had not seen.
    pub(super) fn result(&self) -> Rights {
        self.result
    }

    /// Goes on until the end (true) or until an interrupt is pending. Under the tree lock.
    pub(super) fn run(&mut self, turn: &mut Turn, prepared: &mut Prepared) -> bool {
        while !self.done {
            let work = if self.step == Step::Leave { LONG_STEP } else { STEP };
            if turn.gives_way(work) || !self.step(turn, prepared) {
                return false;
            }
        }
        true
    }

    /// Whether it is done: otherwise a split gives way to an interrupt.
    #[inline]
    fn step(&mut self, turn: &mut Turn, prepared: &mut Prepared) -> bool {
        match self.step {
            Step::Enter => {
                if !self.enter_node(turn, prepared) {
                    return false;
                }
                self.step = Step::Children;
            }
            Step::Children => {
                let child = self.at.child();
                if child.is_none() {
                    self.step = Step::Part(0);
                } else {
                    (self.at, self.step) = (child, Step::Enter);
                }
            }
            Step::Part(from) => {
                if !self.at.has_array() {
                    self.leave_node();
                    return true;
                }
                let (first, last) = self.pieces(self.at);
                let first = first.max(usize::from(from));
                let found = self.at.next_part_list(first, last);
                turn.did(found.map_or(ENTRIES, |(piece, _)| piece - first) as Work / SEARCHED);
                (self.at, self.step) = found.map_or((self.at, Step::Leave), |(_, head)| (head, Step::Enter));
            }
            Step::Leave => self.leave_node(),
        }
        true
    }

    /// Whether all of `node` is affected.
    #[inline]
    fn covers(&self, node: NodeId) -> bool {
        !self.whole.is_none() || node.bits() <= u32::from(self.bits)
    }

    /// Which parts of `node` lie in the range.
    fn pieces(&self, node: NodeId) -> (usize, usize) {
        if self.covers(node) {
            return (0, ENTRIES - 1);
        }
        let below = node.level() - 1;
        let last = self.start.value() + ((1 << self.bits) - 1);
        (index(self.start.value(), below), index(last, below))
    }

    #[inline]
    fn in_holding(&self, node: NodeId) -> bool {
        node == self.top || (node.is_part() && node.holding() == self.top)
    }

    /// Revokes from the node. Whether it is done: otherwise a split gives way.
    #[inline]
    fn enter_node(&mut self, turn: &mut Turn, prepared: &mut Prepared) -> bool {
        let node = self.at;
        if !node.is_mapped() || self.in_holding(node) {
            return true;
        }
        turn.did(CHANGE);
        if let Some(memory_type) = self.memory_type {
            return self.change_type(node, memory_type, turn, prepared);
        }
        if !self.whole.is_none() {
            act(node, Rights::ALL, &mut turn.changes);
        } else if node.bits() <= u32::from(self.bits) {
            act(node, self.revoke, &mut turn.changes);
        } else {
            return self.enter_large(node, turn, prepared);
        }
        true
    }

    /// Revokes from a part of a page that is larger than the range.
    #[cold]
    fn enter_large(&mut self, node: NodeId, turn: &mut Turn, prepared: &mut Prepared) -> bool {
        let page = node.entry().load();
        if page.rights().and(self.revoke).is_none() {
            self.result = self.result.or(page.status());
            return true;
        }
        match split(node, prepared, turn) {
            Ok(progress) => return progress == Progress::Done(()),
            Err(OutOfMemory) => {
                self.whole = node;
                act(node, Rights::ALL, &mut turn.changes);
            }
        }
        true
    }

    /// Gives the page of a mapped node its memory type; a larger one than the range is split, or
    /// changes as a whole. Whether it is done: otherwise a split gives way.
    #[cold]
    fn change_type(
        &self,
        node: NodeId,
        memory_type: MemoryType,
        turn: &mut Turn,
        prepared: &mut Prepared,
    ) -> bool {
        let at = node.entry();
        if at.load().memory_type(node.level()) == memory_type {
            return true;
        }
        if node.bits() > u32::from(self.bits)
            && let Ok(progress) = split(node, prepared, turn)
        {
            return progress == Progress::Done(());
        }
        at.set_memory_type(memory_type);
        turn.changes.invalidate(at.table().space().memory(), at.virtual_address());
        true
    }

    /// All below the node is done: tells its status upwards, frees it if nothing is left of it,
    /// goes on.
    #[inline]
    fn leave_node(&mut self) {
        let node = self.at;
        let holding = self.in_holding(node);
        if node.level() > 1 {
            self.leave_parts(node, holding);
        }
        if holding {
            let mine = node.mine(if self.covers(node) { self.forget } else { Rights::NONE });
            self.result = self.result.or(mine);
        }
        if node == self.whole {
            self.whole = NodeId::NONE;
        }
        if node == self.own {
            self.own = NodeId::NONE;
        }
        if node == self.top {
            tree::release(node);
            self.done = true;
            return;
        }
        node.notify_parent();
        self.leave_to_next(node);
        if tree::is_void(node) {
            tree::free(node);
        }
    }

    #[cold]
    fn leave_parts(&mut self, node: NodeId, holding: bool) {
        let (first, last) = self.pieces(node);
        let whole_pieces = self.covers(node) || page_bits(node.level() - 1) <= u32::from(self.bits);
        if holding && !self.covers(node) {
            node.spread_status();
        }
        let forget = if holding && whole_pieces { self.forget } else { Rights::NONE };
        let mine = node.collect_parts(first, last, forget);
        if holding {
            self.result = self.result.or(mine);
        }
    }

    /// Moves on past `node`, at which the walk stands and which is not the top.
    fn leave_to_next(&mut self, node: NodeId) {
        let next = node.next();
        let parent = node.parent();
        (self.at, self.step) = if !next.is_none() {
            (next, Step::Enter)
        } else if parent.level() == node.level() {
            (parent, Step::Part(0))
        } else {
            (parent, Step::Part(index(node.address().value(), node.level()) as u16 + 1))
        };
    }

    /// Suspends the walk: from now on, until [`Walk::end_suspension`], it must not move in memory.
    pub(super) fn suspend(&mut self) {
        debug_assert!(!self.done);
        self.watch();
        let this = ptr::from_mut(self);
        let mut list = SUSPENDED.lock();
        self.prev = ptr::null_mut();
        self.next = list.0;
        if !self.next.is_null() {
            // SAFETY: walks in the list are suspended and in place; the list's lock is held.
            unsafe { (*self.next).prev = this };
        }
        list.0 = this;
    }

    fn watch(&self) {
        self.at.watch();
        self.top.watch();
        if !self.own.is_none() {
            self.own.watch();
        }
        if !self.whole.is_none() {
            self.whole.watch();
        }
    }

    /// Ends a suspension.
    pub(super) fn end_suspension(&mut self) {
        let mut list = SUSPENDED.lock();
        if self.prev.is_null() {
            list.0 = self.next;
        } else {
            // SAFETY: walks in the list are suspended and in place; the list's lock is held.
            unsafe { (*self.prev).next = self.next };
        }
        if !self.next.is_null() {
            // SAFETY: as above.
            unsafe { (*self.next).prev = self.prev };
        }
    }

    /// The walk is not continued, because its cursor goes. Pages that it has removed stay removed;
    /// their nodes go when the last mapping derived from them goes. Under the tree lock, not
    /// suspended.
    pub(super) fn abandon(&mut self) {
        if !self.done {
            let (at, own) = (self.at, self.own);
            self.done = true;
            if !own.is_none() && own != at {
                tree::release_below(own, at);
            }
            tree::release(at);
        }
    }

    /// The first physical address of the affected memory.
    pub(super) fn address(&self) -> PhysAddr {
        self.start
    }

    fn node_goes(&mut self, node: NodeId) {
        if self.done {
            return;
        }
        if self.whole == node {
            self.whole = NodeId::NONE;
        }
        if self.own == node {
            self.own = NodeId::NONE;
        }
        if self.top == node {
            self.done = true;
        } else if self.at == node {
            // The node is void, so there is nothing below it that was not visited.
            self.leave_to_next(node);
            self.watch();
        }
    }
}

/// Whether a suspended walk stands on a node, which it frees itself if it is void. Under the tree
/// lock.
#[cold]
pub(super) fn stands_on(node: NodeId) -> bool {
    let list = SUSPENDED.lock();
    let mut walk = list.0;
    while !walk.is_null() {
        // SAFETY: as in [`node_goes`].
        let suspended = unsafe { &*walk };
        if suspended.at == node && !suspended.done {
            return true;
        }
        walk = suspended.next;
    }
    false
}

/// A marked node is about to be freed: moves the walks that refer to it. Under the tree lock.
#[cold]
pub(super) fn node_goes(node: NodeId) {
    let list = SUSPENDED.lock();
    let mut walk = list.0;
    while !walk.is_null() {
        // SAFETY: walks in the list are suspended and in place, their owners do not use them
        // meanwhile; the lock is held.
        let suspended = unsafe { &mut *walk };
        suspended.node_goes(node);
        walk = suspended.next;
    }
}

/// Takes `revoke` from a mapped node's page, removing it if it cannot be read any more, and moves
/// its status from the page-table entry to the node.
#[inline]
pub(super) fn act(node: NodeId, revoke: Rights, changes: &mut Changes) {
    if revoke.contains(Rights::READ) {
        tree::unmap(node, changes);
        return;
    }
    let at = node.entry();
    let mapped = Mapped { node, at, space: at.table().space().memory(), address: at.virtual_address() };
    reduce(mapped, at.load(), revoke, changes);
}

/// Where a node is mapped: the space and the address.
pub(super) struct Mapped {
    pub(super) node: NodeId,
    pub(super) at: EntryRef,
    pub(super) space: SpaceMemory,
    pub(super) address: VirtAddr,
}

/// Takes `revoke`, without reading, from `page`, which is what the entry was when it was last
/// looked at, and moves its status to the node.
#[inline(always)]
pub(super) fn reduce(mapped: Mapped, page: PageEntry, revoke: Rights, changes: &mut impl Noted) {
    let Mapped { node, at, space, address } = mapped;
    debug_assert!(!revoke.contains(Rights::READ));
    let left = page.rights().without(revoke);
    let reduced = !revoke.is_none() && left != page.rights();
    if reduced {
        at.set_rights(left);
    }
    let status = if page.status().is_none() { page.status() } else { at.take_status().status() };
    if reduced || !status.is_none() {
        changes.invalidate(space, address);
        node.add_status(Status::fresh(status));
    }
}
