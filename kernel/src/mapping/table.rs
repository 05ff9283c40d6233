//! Page tables of user spaces and their shadows.
//!
//! A table has a *shadow*, an array of 512 words: for an entry that maps a page the word names the
//! page's node in the mapping database, so that the way from a fault address to the node costs no
//! search. It is zero for pages without a node: kernel frames (KIP, UTCBs) and sigma0's own
//! idempotent pages. The table's frame record names the shadow, the space and the address from
//! which the table maps, so that the way back costs no search either.
//!
//! A table gets a shadow of its own with its first page that has a node ([`EntryRef::for_node`]),
//! and keeps it. Before that, and in tables that only lead to others for ever, its shadow is the
//! one that all such tables have in common, which holds only zeros. So code that reads a shadow
//! need not ask whether there is one; only a [`NodeEntry`] is filled for a node.
//!
//! A table exists only while it has an entry, or is the spare one of its space ([`super::spare`]);
//! when it is freed, it is known to be zero.
//!
//! Locks: a space's lock covers which tables it has and how many entries they use; the entries that
//! map pages, and the shadow words next to them, change only under the tree lock of the memory that
//! they map (K12).
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::changes::{Changes, Emptied, Noted};
use super::node::{NodeId, alloc_array, array_words, free_zero_array};
use super::space::{SpaceId, SpaceMemory};
use super::spare;
use crate::arch;
use crate::arch::page_entry::{ENTRIES, MemoryType, PageEntry, index, page_bits};
use crate::memory::frame::{self, Use};
use crate::memory::{Account, OutOfMemory, PAGE_SIZE, PhysAddr, VirtAddr, node};

/// The shadow of all tables that have none of their own: an array of zeros, to which nothing else
/// is ever written. Made at boot.
static NO_SHADOW: AtomicU32 = AtomicU32::new(0);

/// Makes what tables have in common: for a new machine.
///
/// # Panics
/// If there is no kernel memory yet.
pub(super) fn init() {
    let zeros = alloc_array(Account::KERNEL).expect("the machine has kernel memory");
    NO_SHADOW.store(zeros, Ordering::Relaxed);
}

/// A page table: its frame number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Table(u32);

/// A page-table entry: its physical address divided by 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryRef(u32);

/// An entry whose table has a shadow of its own: it may get a page that has a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NodeEntry(EntryRef);

/// An entry, the record of its table, and its word in the shadow.
pub(super) struct Described {
    at: EntryRef,
    record: &'static frame::Record,
    shadow: &'static Cell<u32>,
}

/// Where a walk down the tables ended: at an entry that maps a page, at an empty one, or at the
/// level asked for.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) at: EntryRef,
    pub(super) level: u32,
    pub(super) entry: PageEntry,
}

impl Place {
    /// If the walk ended at an empty entry: how many empty entries follow in its table, up to a
    /// limit. With it a search for pages steps over large holes quickly. The count stops at the end
    /// of a group of entries that is not empty.
    #[inline]
    pub(super) fn empty_behind(&self) -> u32 {
        const GROUP: usize = 8;
        const MOST: usize = 16 * GROUP;
        if self.entry != PageEntry::EMPTY {
            return 0;
        }
        let first = self.at.index() + 1;
        let is_empty = |index: usize| self.at.table().entry(index).load() == PageEntry::EMPTY;
        let mut end = first;
        while end < ENTRIES && !end.is_multiple_of(GROUP) && is_empty(end) {
            end += 1;
        }
        if end.is_multiple_of(GROUP) {
            let last = (first + MOST).min(ENTRIES);
            while end + GROUP <= last && self.at.table().group_is_empty::<GROUP>(end) {
                end += GROUP;
            }
        }
        (end - first) as u32
    }
}

impl Table {
    /// An empty table of `level` for `space`, mapping from `address`, from the space's node.
    #[inline]
    pub(super) fn alloc_in(space: SpaceMemory, level: u32, address: VirtAddr) -> Result<Self, OutOfMemory> {
        if node::are_several() {
            return Self::alloc_from(space.node(), space, level, address);
        }
        Self::alloc(space.id(), space.account(), level, address)
    }

    #[cold]
    fn alloc_from(node: u8, space: SpaceMemory, level: u32, address: VirtAddr) -> Result<Self, OutOfMemory> {
        node::from(node, || Self::alloc(space.id(), space.account(), level, address))
    }

    /// An empty table of `level` for `space`, mapping from `address`.
    pub(super) fn alloc(
        space: SpaceId,
        account: Account,
        level: u32,
        address: VirtAddr,
    ) -> Result<Self, OutOfMemory> {
        account.charge(PAGE_SIZE)?;
        let number = frame::alloc_number(account, Use::PageTables);
        let number = number.inspect_err(|_| account.credit(PAGE_SIZE))?;
        let record = frame::record(number);
        record.link.set(NO_SHADOW.load(Ordering::Relaxed));
        record.back.set(space.raw());
        record.place.set((address.value() >> page_bits(2)) as u32);
        record.first.set(level as u8);
        Ok(Self(number))
    }

    /// Makes a root table share the kernel's half of all spaces.
    pub(super) fn fill_kernel_half(self) {
        let half = arch::kernel_half();
        let entries = arch::phys_to_virt(self.address()).cast::<u64>();
        // SAFETY: a table has room for both halves, and nothing else uses this one yet.
        unsafe { entries.add(ENTRIES - half.len()).copy_from_nonoverlapping(half.as_ptr(), half.len()) };
    }

    /// Undoes [`fill_kernel_half`](Self::fill_kernel_half): the table holds only zeros again.
    pub(super) fn clear_kernel_half(self) {
        let half = arch::kernel_half().len();
        let entries = arch::phys_to_virt(self.address()).cast::<u64>();
        // SAFETY: as above; no processor uses the table any more.
        unsafe { entries.add(ENTRIES - half).write_bytes(0, half) };
    }

    /// Whether the `GROUP` entries from `first` on are empty.
    #[inline]
    fn group_is_empty<const GROUP: usize>(self, first: usize) -> bool {
        debug_assert!(first + GROUP <= ENTRIES);
        let first = self.entry(first);
        (0..GROUP as u32).fold(0, |all, number| all | first.later(number).load().raw()) == 0
    }

    /// Frees a table that can no longer be reached, not even by a processor. `zeroed`: it holds
    /// only zeros.
    pub(super) fn free(self, zeroed: bool) {
        debug_assert!(self.used() == 0);
        self.give_back(self.space().memory().account(), zeroed);
    }

    /// Frees the table and its shadow, which holds only zeros.
    fn give_back(self, account: Account, zeroed: bool) {
        if self.has_shadow() {
            free_zero_array(self.record().link.get(), account);
        }
        frame::free_number(self.0, zeroed);
        account.credit(PAGE_SIZE);
    }

    /// Whether the table has a shadow of its own.
    #[inline(always)]
    fn has_shadow(self) -> bool {
        // Relaxed: written at boot.
        self.record().link.get() != NO_SHADOW.load(Ordering::Relaxed)
    }

    /// Gives the table a shadow of its own, paid by its space.
    #[cold]
    fn make_shadow(self) -> Result<(), OutOfMemory> {
        let space = self.space().memory();
        let make = || alloc_array(space.account());
        let shadow = if node::are_several() { node::from(space.node(), make)? } else { make()? };
        self.record().link.set(shadow);
        Ok(())
    }

    pub(super) fn from_entry(entry: PageEntry) -> Self {
        Self((entry.address().value() / PAGE_SIZE) as u32)
    }

    pub(super) fn address(self) -> PhysAddr {
        PhysAddr::new(u64::from(self.0) * PAGE_SIZE)
    }

    #[inline]
    fn record(self) -> &'static frame::Record {
        frame::record(self.0)
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        u32::from(self.record().first.get())
    }

    #[inline]
    pub(super) fn space(self) -> SpaceId {
        SpaceId::from_raw(self.record().back.get())
    }

    /// How many entries of the table are not empty.
    pub(super) fn used(self) -> u32 {
        u32::from(self.record().used.get())
    }

    /// The table's number.
    pub(super) fn raw(self) -> u32 {
        self.0
    }

    /// The table with this number; 0 = none.
    pub(super) fn from_raw(raw: u32) -> Option<Self> {
        (raw != 0).then_some(Self(raw))
    }

    /// Whether the table is one of `level` for `space`, mapping from `start`.
    pub(super) fn is_for(self, space: SpaceId, start: VirtAddr, level: u32) -> bool {
        self.space() == space && self.start() == start.value() && self.level() == level
    }

    /// Says how many entries of a table that is being prepared are.
    pub(super) fn set_used(self, used: usize) {
        self.record().used.set(used as u16);
    }

    /// Frees a table that was prepared for `account` and is not used.
    pub(super) fn free_prepared(self, account: Account) {
        let zeroed = self.used() == 0;
        self.shadow().iter().for_each(|word| word.set(0));
        self.set_used(0);
        self.give_back(account, zeroed);
    }

    fn start(self) -> u64 {
        u64::from(self.record().place.get()) << page_bits(2)
    }

    #[inline]
    pub(super) fn entry(self, index: usize) -> EntryRef {
        EntryRef(self.0 << 9 | index as u32)
    }

    /// The place of `address` in this table of small pages.
    #[inline(always)]
    pub(super) fn small_place(self, address: VirtAddr) -> Place {
        let at = self.entry(index(address.value(), 1));
        Place { at, level: 1, entry: at.load() }
    }

    /// The words of the shadow.
    #[inline]
    pub(super) fn shadow(self) -> &'static [Cell<u32>; ENTRIES] {
        array_words(self.record().link.get())
    }

    /// Puts the table at the head of a list of tables that are to be freed. The list goes through
    /// the field that said where the table mapped from.
    pub(super) fn push(self, list: &mut u32) {
        self.record().place.set(*list);
        *list = self.0;
    }

    /// Takes the first table off a list of tables.
    pub(super) fn pop(list: &mut u32) -> Option<Self> {
        let table = (*list != 0).then_some(Self(*list))?;
        *list = table.record().place.get();
        Some(table)
    }
}

impl EntryRef {
    #[inline]
    pub(super) fn raw(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    #[inline]
    fn word(self) -> &'static AtomicU64 {
        // SAFETY: references are made from tables in use, by index; tables are kernel memory,
        // always mapped. A word that the processor also writes is atomic.
        unsafe { &*arch::phys_to_virt(PhysAddr::new(u64::from(self.0) * 8)).cast() }
    }

    #[inline]
    pub(super) fn load(self) -> PageEntry {
        // Relaxed here and below: the locks order what processors do to an entry; the processor's
        // own walks and status updates are atomic.
        PageEntry::from_raw(self.word().load(Ordering::Relaxed))
    }

    /// Replaces the entry. Only for an entry that is empty, or whose status does not matter.
    #[inline]
    fn store(self, entry: PageEntry) {
        self.word().store(entry.raw(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn table(self) -> Table {
        Table(self.0 >> 9)
    }

    /// The entry that is `number` entries after this one in the same table.
    pub(super) fn later(self, number: u32) -> Self {
        debug_assert!(self.index() + (number as usize) < ENTRIES);
        Self(self.0 + number)
    }

    #[inline]
    fn index(self) -> usize {
        self.0 as usize % ENTRIES
    }

    /// The node that maps this page.
    #[inline]
    pub(super) fn node(self) -> NodeId {
        self.described().node()
    }

    /// The address that the entry maps.
    #[inline]
    pub(super) fn virtual_address(self) -> VirtAddr {
        let table = self.table();
        VirtAddr::new(table.start() + ((self.index() as u64) << page_bits(table.level())))
    }

    /// Fills an empty entry with a page that has no node.
    #[inline(always)]
    pub(super) fn install(self, page: PageEntry) {
        debug_assert!(self.load() == PageEntry::EMPTY && self.node().is_none());
        let used = &self.table().record().used;
        used.set(used.get() + 1);
        self.store(page);
    }

    /// The entry in the form for a page that has a node, if its table has a shadow of its own.
    #[inline(always)]
    pub(super) fn ready_for_node(self) -> Option<NodeEntry> {
        self.table().has_shadow().then_some(NodeEntry(self))
    }

    /// Like [`ready_for_node`](Self::ready_for_node); the table is made ready if it is not, and
    /// stays so.
    #[inline]
    pub(super) fn for_node(self) -> Result<NodeEntry, OutOfMemory> {
        if !self.table().has_shadow() {
            self.table().make_shadow()?;
        }
        Ok(NodeEntry(self))
    }

    /// Gives the entry of a table that is not in use yet the status of `page`, which has some.
    #[inline]
    pub(super) fn set_status_of(self, page: PageEntry) {
        self.store(self.load().touched(page.status().contains(x2::Rights::WRITE)));
    }

    /// Replaces a page, which had a node, by a table that maps the same, in parts.
    pub(super) fn replace_by_table(self, table: Table) {
        self.table().shadow()[self.index()].set(0);
        self.store(PageEntry::table(table.address()));
    }

    /// Sets a page's rights. The caller lets the TLBs know if they are less.
    pub(super) fn set_rights(self, rights: x2::Rights) {
        let word = self.word();
        // The processor may add status bits meanwhile.
        let mut entry = self.load();
        while let Err(now) = word.compare_exchange_weak(
            entry.raw(),
            entry.with_rights(rights).raw(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            entry = PageEntry::from_raw(now);
        }
    }

    /// Sets how a page is cached. The caller lets the TLBs know.
    pub(super) fn set_memory_type(self, memory_type: MemoryType) {
        let level = self.table().level();
        let word = self.word();
        // The processor may add status bits meanwhile.
        let mut entry = self.load();
        while let Err(now) = word.compare_exchange_weak(
            entry.raw(),
            entry.with_memory_type(level, memory_type).raw(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            entry = PageEntry::from_raw(now);
        }
    }

    /// Notes an access by the kernel on behalf of a user in the status of `page`, if that is what
    /// is still there.
    pub(super) fn touch(self, page: PageEntry, write: bool) {
        // If the exchange fails, the entry has just been changed, or the processor has set a status
        // bit.
        let touched = page.touched(write).raw();
        let _ = self.word().compare_exchange(page.raw(), touched, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Clears a page's status and returns the entry as it was. The caller lets the TLBs know.
    pub(super) fn take_status(self) -> PageEntry {
        let clear = PageEntry::from_raw(u64::MAX).without_status().raw();
        PageEntry::from_raw(self.word().fetch_and(clear, Ordering::Relaxed))
    }

    /// Empties the entry and returns it as it was, with the status up to that moment; frees tables
    /// that become empty.
    #[inline]
    pub(super) fn remove(self, changes: &mut Changes) -> PageEntry {
        self.described().remove(self.table().space().memory(), self.virtual_address(), changes)
    }

    /// The entry and what is kept about it.
    #[inline(always)]
    pub(super) fn described(self) -> Described {
        let record = self.table().record();
        Described { at: self, record, shadow: &array_words(record.link.get())[self.index()] }
    }
}

impl NodeEntry {
    /// The entry.
    #[inline]
    pub(super) fn entry(self) -> EntryRef {
        self.0
    }

    /// Fills the entry, which is empty, with a page for `node`.
    #[inline(always)]
    pub(super) fn install(self, page: PageEntry, node: NodeId) {
        debug_assert!(self.0.load() == PageEntry::EMPTY);
        let table = self.0.table();
        table.shadow()[self.0.index()].set(node.raw());
        let used = &table.record().used;
        used.set(used.get() + 1);
        self.0.store(page);
    }

    /// Fills an entry of a table that is not in use yet.
    #[inline]
    pub(super) fn prepare(self, page: PageEntry, node: NodeId) {
        self.0.table().shadow()[self.0.index()].set(node.raw());
        self.0.store(page);
    }
}

impl Described {
    /// See [`EntryRef::node`].
    #[inline(always)]
    pub(super) fn node(&self) -> NodeId {
        NodeId::from_raw(self.shadow.get())
    }

    /// Like [`EntryRef::remove`]; it is `space`'s entry for `address`.
    #[inline]
    pub(super) fn remove(&self, space: SpaceMemory, address: VirtAddr, changes: &mut Changes) -> PageEntry {
        let entry = self.take(space, address, changes);
        let table = self.at.table();
        if table.used() == 0 && space.spare() != Some(table) {
            if space.keeps_spare() {
                spare::keep(space, table);
            } else {
                changes.emptied = release_tables(space, table, changes.emptied);
            }
        }
        entry
    }

    /// Whether the table stays in place when the entry is empty: others are not, or it is `space`'s
    /// spare one anyway.
    #[inline(always)]
    pub(super) fn table_stays(&self, space: SpaceMemory) -> bool {
        self.record.used.get() > 1 || space.spare() == Some(self.at.table())
    }

    /// Like [`Self::remove`], but nothing is done about the table. A page without a node may be in
    /// a table without a shadow of its own: the zero that is written then is all that is ever
    /// written to the common one.
    #[inline(always)]
    pub(super) fn take(&self, space: SpaceMemory, address: VirtAddr, changes: &mut impl Noted) -> PageEntry {
        let Self { at, record, shadow } = *self;
        debug_assert!(at.table().space() == space.id() && at.virtual_address() == address);
        changes.invalidate(space, address);
        shadow.set(0);
        let entry = PageEntry::from_raw(at.word().swap(0, Ordering::Relaxed));
        let _lock = space.lock();
        record.used.set(record.used.get() - 1);
        entry
    }
}

/// Takes out `table`, which is empty, and those above that become empty by that.
pub(super) fn release(space: SpaceMemory, table: Table, changes: &mut Changes) {
    changes.invalidate(space, VirtAddr::new(table.start()));
    changes.emptied = release_tables(space, table, changes.emptied);
}

/// Like [`release`]; a translation in `table` has been invalidated since it led to a page. Returns
/// `emptied` with what was taken out.
#[cold]
fn release_tables(space: SpaceMemory, mut table: Table, mut emptied: Emptied) -> Emptied {
    let _lock = space.lock();
    let address = VirtAddr::new(table.start());
    space.forget_table();
    while table.used() == 0 && table != space.root() {
        let above = find(space, address, table.level() + 1);
        debug_assert!(above.level == table.level() + 1 && Table::from_entry(above.entry) == table);
        above.at.store(PageEntry::EMPTY);
        let parent = above.at.table();
        let used = &parent.record().used;
        used.set(used.get() - 1);
        if space.spare() == Some(table) {
            space.replace_spare(None);
        }
        emptied = emptied.with(table);
        table = parent;
    }
    emptied
}

/// Walks down `space`'s tables towards `address`, at most to `level`.
#[inline]
pub(super) fn find(space: SpaceMemory, address: VirtAddr, level: u32) -> Place {
    let (root, root_level) = space.root_and_level();
    let mut first = root.0 << 9;
    let (mut at_level, mut shift) = (root_level, page_bits(root_level));
    loop {
        // This does what [`Table::entry`], [`index`] and [`Table::from_entry`] do, in fewer steps.
        let at = EntryRef(first | ((address.value() >> shift) as u32 % ENTRIES as u32));
        let entry = at.load();
        if at_level == level || !entry.points_to_table() {
            return Place { at, level: at_level, entry };
        }
        first = (entry.address().value() >> 3) as u32;
        at_level -= 1;
        shift -= ENTRIES.ilog2();
    }
}

/// The table of small pages for `address`, which is the user's, in a space's memory, if there is
/// one. Under [`super::lock()`].
#[inline(always)]
pub(super) fn small_table(space: SpaceMemory, address: VirtAddr) -> Option<Table> {
    debug_assert!(!space.is_ports() && address.value() < arch::USER_END);
    let recent = space.recent_table(address);
    debug_assert!(recent.is_none_or(|table| find(space, address, 1).at.table() == table));
    recent.or_else(|| {
        let place = find_and_remember(space, address);
        (place.level == 1).then(|| place.at.table())
    })
}

/// Like [`find`], to the lowest level, of a space's memory. Under [`super::lock()`].
#[inline(always)]
pub(super) fn find_small(space: SpaceMemory, address: VirtAddr) -> Place {
    debug_assert!(!space.is_ports() && address.value() < arch::USER_END);
    match space.recent_table(address) {
        Some(table) => table.small_place(address),
        None => find_and_remember(space, address),
    }
}

/// Like [`find_small`], for an address that the table found last does not cover.
#[inline(never)]
fn find_and_remember(space: SpaceMemory, address: VirtAddr) -> Place {
    let place = find(space, address, 1);
    if place.level == 1 {
        space.remember_table(address, place.at.table());
    }
    place
}

/// Makes the tables between the root and `level` for `address` where there are none; the space must
/// not have a page there. Returns the entry of `level`. On failure tables that were made stay until
/// [`trim`].
pub(super) fn make(space: SpaceMemory, address: VirtAddr, level: u32) -> Result<EntryRef, OutOfMemory> {
    make_from(find(space, address, level), space, address, level)
}

/// Like [`make`], from where [`find`] came to.
#[inline]
pub(super) fn make_from(
    place: Place,
    space: SpaceMemory,
    address: VirtAddr,
    level: u32,
) -> Result<EntryRef, OutOfMemory> {
    if place.level == level { Ok(place.at) } else { make_tables(place, space, address, level) }
}

fn make_tables(
    mut place: Place,
    space: SpaceMemory,
    address: VirtAddr,
    level: u32,
) -> Result<EntryRef, OutOfMemory> {
    while place.level > level {
        debug_assert!(place.entry == PageEntry::EMPTY);
        let below = place.level - 1;
        let start = address.align_down(page_bits(place.level));
        let table = Table::alloc_in(space, below, start)?;
        let _lock = space.lock();
        let used = &place.at.table().record().used;
        used.set(used.get() + 1);
        place.at.store(PageEntry::table(table.address()));
        let at = table.entry(index(address.value(), below));
        place = Place { at, level: below, entry: PageEntry::EMPTY };
    }
    Ok(place.at)
}

/// Frees empty tables on the way to `address`, after a failed [`make`].
pub(super) fn trim(space: SpaceMemory, address: VirtAddr, changes: &mut Changes) {
    let place = find(space, address, 1);
    let table = place.at.table();
    if table.used() == 0 && table != space.root() {
        release(space, table, changes);
    }
}
