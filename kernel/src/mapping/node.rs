//! Nodes of the mapping database: their fields, the lists that they form, and the status that they
//! keep.
//!
//! A node is a *holding*: a naturally aligned block of memory of one page size (its level) that a
//! space has from its parent. Derived holdings of the same size hang in the node's `child` list.
//! Smaller ones hang in an array of 512 lists, `parts`, one for each piece of the next smaller
//! size; so does, always first in its list, the node of a *part*: a piece of the same holding that
//! is treated on its own, because the large page was split, or (without a page-table entry of its
//! own) because still smaller holdings were derived from it. What is derived from a part are its
//! own children, the rest of its list, and the same piece of what hangs above it.
//!
//! So splitting a page never touches what is derived from it, granting moves one node to another
//! page-table entry, and no list is searched.
//!
//! A node is *mapped* while a page-table entry maps its block. Otherwise it is the root, a part
//! without an entry, a holding that lives on in parts, or a holding that is being removed.
//!
//! Everything here runs under the tree lock of the memory concerned ([`lock`](mod@super::lock)).
use core::cell::Cell;

use x2::Rights;

use super::lock;
use super::table;
use crate::arch;
use crate::arch::page_entry::{ENTRIES, index, page_bits};
use crate::memory::{Account, FastSlab, OutOfMemory, PAGE_SIZE, PhysAddr, Slab, Use};

/// A node of the mapping database, or none. The physical address divided by the node's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub(super) struct NodeId(u32);

/// One mapping of a block of memory in a space. 32 bytes.
#[repr(C)]
pub(super) struct Node {
    parent: Cell<NodeId>,
    child: Cell<NodeId>,
    next: Cell<NodeId>,
    /// The node before in the list; none: the list's head.
    prev: Cell<NodeId>,
    /// Number of the array with the lists of the parts; 0 = none.
    parts: Cell<u32>,
    /// Mapped: where the page-table entry is ([`table::EntryRef`]). Otherwise: the block's first
    /// frame number.
    place: Cell<u32>,
    /// The account that pays for the node: that of the space that mapped the page.
    account: Cell<Account>,
    /// The account that pays for the array.
    parts_account: Cell<Account>,
    /// Parts' lists that are not empty.
    parts_used: Cell<u16>,
    /// Bits 0..=2 level, then the flags.
    flags: Cell<u8>,
    /// [`Status`]
    status: Cell<u8>,
}

impl Node {
    /// A node that is not mapped, in no list.
    const fn new(account: Account, level: u32) -> Self {
        Self {
            parent: Cell::new(NodeId::NONE),
            child: Cell::new(NodeId::NONE),
            next: Cell::new(NodeId::NONE),
            prev: Cell::new(NodeId::NONE),
            parts: Cell::new(0),
            place: Cell::new(0),
            account: Cell::new(account),
            parts_account: Cell::new(account),
            parts_used: Cell::new(0),
            flags: Cell::new(level as u8),
            status: Cell::new(0),
        }
    }
}

const NODE_SIZE: u64 = 32;
const _: () = assert!(size_of::<Node>() == NODE_SIZE as usize);

const LEVEL: u8 = 7;
/// The node is a part of its parent's block, not a mapping derived from the parent.
const PART: u8 = 1 << 3;
const MAPPED: u8 = 1 << 4;
/// A suspended walk stands on the node, or refers to it.
const WATCHED: u8 = 1 << 5;

// SAFETY: nodes are made and freed under [`super::lock()`] only.
static NODES: FastSlab<{ NODE_SIZE as u32 }> = unsafe { FastSlab::new(Use::MapNodes) };
static ARRAYS: Slab = Slab::new(Use::MapArrays, ARRAY_SIZE as u32);
/// Size of an array of 512 lists, or of the shadow of a page table.
pub(super) const ARRAY_SIZE: u64 = 4 * ENTRIES as u64;

/// Nodes that are made together.
pub(super) const GROUP: usize = (PAGE_SIZE / NODE_SIZE) as usize;

/// The first of a group of nodes for `account`, all to be prepared ([`NodeId::prepare`]).
pub(super) fn alloc_group(account: Account) -> Result<NodeId, OutOfMemory> {
    Ok(NodeId((NODES.alloc_frame(account)?.value() / NODE_SIZE) as u32))
}

/// Frees a group of nodes that were prepared, of which `first` is the first, and never used.
pub(super) fn free_group(first: NodeId) {
    // SAFETY: nothing but the table for which they were prepared refers to them, and that goes,
    // too.
    unsafe { NODES.free_frame(PhysAddr::new(u64::from(first.0) * NODE_SIZE), first.account()) };
}

/// Nodes and arrays in use, for leak checks and the debugger.
pub fn usage() -> (u32, u32) {
    let _alone = lock();
    (NODES.usage().0, ARRAYS.usage().0)
}

/// Access status as two bits, write and read (rights shifted by one): what the holder has not seen
/// yet, and what the parent has not been told yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Status(u8);

impl Status {
    const MINE: u8 = 0b0011;
    const UP: u8 = 0b1100;

    /// A status that neither the holder nor its parent knows yet.
    pub(super) fn fresh(status: Rights) -> Self {
        let bits = Self::mine_bits(status);
        Self(bits | bits << 2)
    }

    /// The bits of what the holder has not seen of `status`.
    fn mine_bits(status: Rights) -> u8 {
        (status.bits() >> 1) as u8
    }

    /// The status that the space of the mapping has not seen yet, as rights.
    pub(super) fn mine(self) -> Rights {
        Rights::from_bits(u64::from(self.0 & Self::MINE) << 1)
    }

    /// The status that the parent must be told, as news to it and to its own parent.
    fn up(self) -> Self {
        Self(self.0 & Self::UP | (self.0 & Self::UP) >> 2)
    }
}

/// A list of nodes inside an array: a [`NodeId`] in bits 0..=27, the piece's [`Status`] above.
#[repr(transparent)]
struct Slot(Cell<u32>);

impl Slot {
    const NODE: u32 = (1 << 28) - 1;

    fn head(&self) -> NodeId {
        NodeId(self.0.get() & Self::NODE)
    }

    fn set_head(&self, node: NodeId) {
        self.0.set(self.0.get() & !Self::NODE | node.0);
    }

    fn add_status(&self, status: Status) {
        self.0.set(self.0.get() | u32::from(status.0) << 28);
    }
}

/// An array of 2 KiB for `account`: its physical address divided by its size.
pub(super) fn alloc_array(account: Account) -> Result<u32, OutOfMemory> {
    Ok((ARRAYS.alloc(account)?.value() / ARRAY_SIZE) as u32)
}

/// Frees an array of parts' lists.
pub(super) fn free_array(array: u32, account: Account) {
    // SAFETY: arrays are owned by the one node or table that names them, which the caller is taking
    // apart.
    unsafe { ARRAYS.free(PhysAddr::new(u64::from(array) * ARRAY_SIZE), account) };
}

/// Like [`free_array`] of one that holds only zeros.
pub(super) fn free_zero_array(array: u32, account: Account) {
    // SAFETY: as in `free_array`.
    unsafe { ARRAYS.free_paid(PhysAddr::new(u64::from(array) * ARRAY_SIZE)) };
    account.credit(ARRAY_SIZE);
}

/// The words of an array of parts' lists.
#[inline]
pub(super) fn array_words(array: u32) -> &'static [Cell<u32>; ENTRIES] {
    let address = PhysAddr::new(u64::from(array) * ARRAY_SIZE);
    // SAFETY: array indices come from `alloc_array` and are forgotten when the array is freed;
    // cells of integers have no invalid values. The owner's lock keeps other processors out.
    unsafe { &*arch::phys_to_virt(address).cast() }
}

impl NodeId {
    /// No node.
    pub(super) const NONE: Self = Self(0);

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The node's number, as it is kept in the shadow of a page table.
    #[inline]
    pub(super) fn raw(self) -> u32 {
        self.0
    }

    /// The node that a page table's shadow names.
    #[inline]
    pub(super) fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    #[inline]
    fn node(self) -> &'static Node {
        debug_assert!(!self.is_none());
        // SAFETY: ids are made by `alloc` only, and every reference to a node (list, shadow,
        // watched cursor) is removed before it is freed. The fields are cells, used by the holder
        // of the tree lock.
        let node: &'static Node =
            unsafe { &*arch::phys_to_virt(PhysAddr::new(u64::from(self.0) * NODE_SIZE)).cast() };
        debug_assert!(node.flags.get() & LEVEL != 0, "{self:?} is free");
        node
    }

    /// A new node, not mapped, in no list, paid by `account`.
    #[inline(always)]
    pub(super) fn alloc(account: Account, level: u32) -> Result<Self, OutOfMemory> {
        let address = NODES.alloc(account)?;
        // SAFETY: the memory was allocated for this node just now.
        unsafe { arch::phys_to_virt(address).cast::<Node>().write(Node::new(account, level)) };
        let id = Self((address.value() / NODE_SIZE) as u32);
        Ok(id)
    }

    /// The node that is `number` nodes after this one in its group.
    #[inline]
    pub(super) fn later(self, number: u32) -> NodeId {
        Self(self.0 + number)
    }

    /// Makes a node of a new group the part of `whole`, of `level`, that `entry` will map; it is in
    /// no list yet.
    #[inline]
    pub(super) fn prepare(self, whole: NodeId, level: u32, entry: table::EntryRef) {
        let account = whole.account();
        let part = Node {
            parent: Cell::new(whole),
            place: Cell::new(entry.raw()),
            flags: Cell::new(level as u8 | PART | MAPPED),
            ..Node::new(account, level)
        };
        // SAFETY: the memory is a new node's.
        unsafe {
            arch::phys_to_virt(PhysAddr::new(u64::from(self.0) * NODE_SIZE)).cast::<Node>().write(part)
        };
    }

    /// Whether the node, which is [prepared](Self::prepare), is so for a part of `whole`, at the
    /// same payer's cost.
    pub(super) fn is_prepared_for(self, whole: NodeId) -> bool {
        self.parent() == whole && self.account() == whole.account()
    }

    /// Links the parts that were prepared in `table`, one for each piece, into the node's lists,
    /// each at the head of its piece's list. If a list begins with a part already, that part gets
    /// the table's entry instead.
    pub(super) fn link_parts(self, table: table::Table) {
        let slots = array_words(self.node().parts.get());
        for (piece, (place, word)) in slots.iter().zip(table.shadow()).enumerate() {
            let there = place.get();
            if there & Slot::NODE == 0 {
                // Like [`Slot::set_head`] does.
                place.set(there | word.get());
            } else {
                self.link_before(piece, word, table.entry(piece));
            }
        }
        self.node().parts_used.set(ENTRIES as u16);
    }

    #[cold]
    fn link_before(self, piece: usize, word: &Cell<u32>, entry: table::EntryRef) {
        let slot = self.slot(piece);
        let (head, part) = (slot.head(), Self(word.get()));
        if head.is_part() {
            head.set_entry(entry);
            word.set(head.raw());
            part.clear_entry(PhysAddr::new(0));
            part.free_small();
        } else {
            part.insert(Self::NONE, head);
            slot.set_head(part);
        }
    }

    /// Frees a node that is in no list, and its array.
    pub(super) fn free(self) {
        let node = self.node();
        if node.parts.get() != 0 {
            debug_assert!(node.parts_used.get() == 0);
            free_array(node.parts.get(), node.parts_account.get());
        }
        self.free_small();
    }

    /// Frees a node that is in no list and has no array.
    #[inline(always)]
    pub(super) fn free_small(self) {
        let node = self.node();
        debug_assert!(node.child.get().is_none() && node.parts_used.get() == 0);
        if cfg!(debug_assertions) {
            // This makes a use of the node after its end fail.
            node.flags.set(0);
        }
        // SAFETY: nothing refers to the node any more.
        unsafe { NODES.free(PhysAddr::new(u64::from(self.0) * NODE_SIZE), node.account.get()) };
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        u32::from(self.node().flags.get() & LEVEL)
    }

    /// log2 of the size of the node's block.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        page_bits(self.level())
    }

    #[inline]
    pub(super) fn is_part(self) -> bool {
        self.node().flags.get() & PART != 0
    }

    #[inline]
    pub(super) fn is_mapped(self) -> bool {
        self.node().flags.get() & MAPPED != 0
    }

    #[inline]
    pub(super) fn is_watched(self) -> bool {
        self.node().flags.get() & WATCHED != 0
    }

    pub(super) fn watch(self) {
        let flags = &self.node().flags;
        flags.set(flags.get() | WATCHED);
    }

    #[inline]
    pub(super) fn parent(self) -> NodeId {
        self.node().parent.get()
    }

    #[inline]
    pub(super) fn child(self) -> NodeId {
        self.node().child.get()
    }

    #[inline]
    pub(super) fn next(self) -> NodeId {
        self.node().next.get()
    }

    /// Whether the node is an ordinary small page from which nothing is derived.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        let node = self.node();
        node.flags.get() & !WATCHED == MAPPED | 1 && node.child.get().is_none()
    }

    /// Whether nothing is derived from the node and it has no parts.
    #[inline]
    pub(super) fn is_leaf(self) -> bool {
        self.node().child.get().is_none() && self.node().parts_used.get() == 0
    }

    #[inline]
    pub(super) fn has_parts(self) -> bool {
        self.node().parts_used.get() != 0
    }

    pub(super) fn account(self) -> Account {
        self.node().account.get()
    }

    /// The page-table entry of a mapped node.
    #[inline]
    pub(super) fn entry(self) -> table::EntryRef {
        debug_assert!(self.is_mapped());
        table::EntryRef::from_raw(self.node().place.get())
    }

    /// Records that `entry` maps the node.
    #[inline]
    pub(super) fn set_entry(self, entry: table::EntryRef) {
        let node = self.node();
        node.place.set(entry.raw());
        node.flags.set(node.flags.get() | MAPPED);
    }

    /// The node, whose block begins at `address`, is not mapped any more.
    #[inline]
    pub(super) fn clear_entry(self, address: PhysAddr) {
        let node = self.node();
        node.place.set((address.value() >> 12) as u32);
        node.flags.set(node.flags.get() & !MAPPED);
    }

    /// The physical address at which the node's block begins.
    #[inline]
    pub(super) fn address(self) -> PhysAddr {
        let node = self.node();
        if node.flags.get() & MAPPED != 0 {
            self.entry().load().address().align_down(self.bits())
        } else {
            PhysAddr::new(u64::from(node.place.get()) << 12)
        }
    }

    /// The topmost node of the holding that this node is, or is a part of.
    #[inline]
    pub(super) fn holding(self) -> NodeId {
        let mut node = self;
        while node.is_part() {
            node = node.parent();
        }
        node
    }

    #[inline]
    fn slot(self, piece: usize) -> &'static Slot {
        let word = &array_words(self.node().parts.get())[piece];
        // SAFETY: a Slot is a transparent Cell<u32>.
        unsafe { &*(&raw const *word).cast::<Slot>() }
    }

    /// The first node of the list of `piece`, if there are lists.
    #[inline]
    pub(super) fn part_list(self, piece: usize) -> NodeId {
        if self.node().parts.get() == 0 { NodeId::NONE } else { self.slot(piece).head() }
    }

    /// The first list that is not empty among pieces `from..=last`, and its piece.
    pub(super) fn next_part_list(self, from: usize, last: usize) -> Option<(usize, NodeId)> {
        if !self.has_parts() {
            return None;
        }
        (from..=last).map(|piece| (piece, self.slot(piece).head())).find(|(_, head)| !head.is_none())
    }

    /// Whether there is an array of parts' lists.
    #[inline]
    pub(super) fn has_array(self) -> bool {
        self.node().parts.get() != 0
    }

    /// Makes the array of parts' lists, paid by `account`, unless there is one.
    pub(super) fn make_parts(self, account: Account) -> Result<(), OutOfMemory> {
        let node = self.node();
        if node.parts.get() == 0 {
            node.parts.set(alloc_array(account)?);
            node.parts_account.set(account);
        }
        Ok(())
    }

    /// Puts this node, whose block begins at `address`, into `parent`'s list for it: among its
    /// children if it is as large, else into the list of its piece (which must exist). As a part it
    /// goes first, otherwise after a part.
    #[inline]
    pub(super) fn link(self, parent: NodeId, address: PhysAddr, part: bool) {
        let node = self.node();
        node.parent.set(parent);
        let level = self.level();
        if part {
            node.flags.set(node.flags.get() | PART);
        }
        if parent.level() == level {
            debug_assert!(!part);
            self.insert(NodeId::NONE, parent.child());
            parent.node().child.set(self);
            return;
        }
        debug_assert!(parent.level() == level + 1);
        let slot = parent.slot(index(address.value(), level));
        let head = slot.head();
        if head.is_none() {
            let used = &parent.node().parts_used;
            used.set(used.get() + 1);
        }
        if !head.is_none() && head.is_part() && !part {
            self.insert(head, head.next());
        } else {
            self.insert(NodeId::NONE, head);
            slot.set_head(self);
        }
    }

    /// Whether small pages that are derived from the node go into one of its lists, which is there.
    #[inline]
    pub(super) fn takes_small_pages(self) -> bool {
        match self.level() {
            1 => true,
            2 => self.has_array(),
            _ => false,
        }
    }

    /// Like [`link`](Self::link), for a small page that is no part, below a parent that takes it.
    #[inline(always)]
    pub(super) fn link_small(self, parent: NodeId, address: PhysAddr) {
        debug_assert!(parent.takes_small_pages() && self.level() == 1);
        self.node().parent.set(parent);
        let above = parent.node();
        if parent.level() == 1 {
            self.insert(NodeId::NONE, above.child.get());
            above.child.set(self);
            return;
        }
        let slot = parent.slot(index(address.value(), 1));
        let head = slot.head();
        if head.is_none() {
            above.parts_used.set(above.parts_used.get() + 1);
            slot.set_head(self);
        } else if head.is_part() {
            self.insert(head, head.next());
        } else {
            self.insert(NodeId::NONE, head);
            slot.set_head(self);
        }
    }

    #[inline]
    fn insert(self, prev: NodeId, next: NodeId) {
        let node = self.node();
        node.prev.set(prev);
        node.next.set(next);
        if !prev.is_none() {
            prev.node().next.set(self);
        }
        if !next.is_none() {
            next.node().prev.set(self);
        }
    }

    /// Takes the node out of its list.
    #[inline]
    pub(super) fn unlink(self) {
        let node = self.node();
        let (parent, prev, next) = (node.parent.get(), node.prev.get(), node.next.get());
        if !next.is_none() {
            next.node().prev.set(prev);
        }
        if !prev.is_none() {
            prev.node().next.set(next);
            return;
        }
        let level = self.level();
        if parent.level() == level {
            parent.node().child.set(next);
            return;
        }
        parent.slot(index(self.address().value(), level)).set_head(next);
        if next.is_none() {
            let used = &parent.node().parts_used;
            used.set(used.get() - 1);
        }
    }

    /// What [`notify_parent`](Self::notify_parent) and [`unlink`](Self::unlink) do, for an ordinary
    /// small page's node, whose block begins at `address` and whose status is `status`. Returns the
    /// parent.
    #[inline(always)]
    pub(super) fn leave_parent(self, address: PhysAddr, status: Status) -> NodeId {
        let node = self.node();
        debug_assert!(self.level() == 1 && !self.is_part());
        let (parent, prev, next) = (node.parent.get(), node.prev.get(), node.next.get());
        let news = status.up();
        let slot = (parent.level() > 1).then(|| parent.slot(index(address.value(), 1)));
        if news.0 != 0 {
            slot.map_or_else(|| parent.add_status(news), |slot| slot.add_status(news));
        }
        if !next.is_none() {
            next.node().prev.set(prev);
        }
        match slot {
            _ if !prev.is_none() => prev.node().next.set(next),
            None => parent.node().child.set(next),
            Some(slot) => {
                slot.set_head(next);
                if next.is_none() {
                    let used = &parent.node().parts_used;
                    used.set(used.get() - 1);
                }
            }
        }
        parent
    }

    /// The node's status together with `status`, the access bits of its page that have not been
    /// reported yet.
    #[inline(always)]
    pub(super) fn status_with(self, status: Rights) -> Status {
        Status(self.status().0 | Status::fresh(status).0)
    }

    /// Adds to the status of the node itself.
    #[inline]
    pub(super) fn add_status(self, status: Status) {
        let node = self.node();
        node.status.set(node.status.get() | status.0);
    }

    #[inline]
    fn status(self) -> Status {
        Status(self.node().status.get())
    }

    /// Takes over the status of the large page of which the node becomes a part.
    pub(super) fn inherit_status(self, whole: NodeId) {
        self.add_status(Status(whole.node().status.get() & Status::MINE));
    }

    /// The status that the holder has not seen. What of it is in `forget` is cleared.
    #[inline]
    pub(super) fn mine(self, forget: Rights) -> Rights {
        let status = &self.node().status;
        let mine = Status(status.get()).mine();
        status.set(status.get() & !Status::mine_bits(forget));
        mine
    }

    /// Adds the node's status to what the parent knows.
    #[inline]
    pub(super) fn notify_parent(self) {
        let node = self.node();
        let news = self.status().up();
        if news.0 == 0 {
            return;
        }
        node.status.set(node.status.get() & !Status::UP);
        let parent = node.parent.get();
        if self.is_part() {
            // A part belongs to the same holder: only its parent needs the news.
            parent.add_status(Status(news.0 & Status::UP));
        } else if parent.level() == self.level() {
            parent.add_status(news);
        } else {
            parent.slot(index(self.address().value(), self.level())).add_status(news);
        }
    }

    /// Moves what the holder has not seen of the whole block to every piece, so that it can be
    /// seen, and forgotten, piece by piece. Without an array it stays.
    pub(super) fn spread_status(self) {
        if self.node().parts.get() != 0 && !self.mine(Rights::NONE).is_none() {
            let mine = Status(self.node().status.get() & Status::MINE);
            self.mine(Rights::ALL);
            for piece in 0..ENTRIES {
                self.slot(piece).add_status(mine);
            }
        }
    }

    /// Collects the status kept for pieces `from..=last`: moves what is to be reported to the
    /// parent into the node, and returns what the holder has not seen, of which `forget` is
    /// forgotten.
    pub(super) fn collect_parts(self, from: usize, last: usize, forget: Rights) -> Rights {
        let parts = self.node().parts.get();
        if parts == 0 {
            return Rights::NONE;
        }
        // The masks work on whole words, as there are many slots ([`Slot`]).
        let left = !(u32::from(Status::UP | Status::mine_bits(forget)) << 28);
        let mut seen = 0;
        for word in &array_words(parts)[from..=last] {
            let value = word.get();
            if value > Slot::NODE {
                seen |= value;
                word.set(value & left);
            }
        }
        let status = Status((seen >> 28) as u8);
        self.add_status(Status(status.0 & Status::UP));
        status.mine()
    }
}
