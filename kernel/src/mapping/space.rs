//! The memory of an address space: its page tables, the account that pays for them, and what in it
//! is not mappable.
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use x2::{Region, Rights};

use super::changes::Changes;
use super::lock::lock;
use super::ports::{PORT_BASE, PORT_ROOT_LEVEL};
use super::spare;
use super::table::{self, EntryRef, Place, Table};
use crate::arch;
use crate::arch::page_entry::{PageEntry, ROOT_LEVEL, page_bits};
use crate::memory::{Account, ObjectSlab, OutOfMemory, PhysAddr, Use, VirtAddr, node};
use crate::sync::{InnerLock, InnerLockGuard, SharedByte, SharedFlag, SpinLockGuard};

/// The memory side of an address space. A plain name, valid until [`super::destroy`] is done with
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct SpaceMemory(SpaceId);

/// A space's state: its physical address divided by its alignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct SpaceId(u32);

/// Areas of a space that are not mappable: KIP and UTCBs (X.2 rule 6.6).
const AREAS: usize = 2;

/// First and last address of an area; a last address below the first: none.
struct Area {
    first: Cell<u64>,
    last: Cell<u64>,
}

impl Area {
    const fn none() -> Self {
        Self { first: Cell::new(u64::MAX), last: Cell::new(0) }
    }

    fn set(&self, region: Option<Region>) {
        self.first.set(region.map_or(u64::MAX, |region| region.base));
        self.last.set(region.map_or(0, Region::last));
    }

    fn region(&self) -> Region {
        let (first, last) = (self.first.get(), self.last.get());
        Region { base: first, size_log2: (last - first).trailing_ones() }
    }
}

/// Set at creation and, for the areas, while the space has no active thread; read by any processor.
/// The tables are covered by the locks named in [`super::table`].
#[repr(C, align(64))]
struct State {
    lock: InnerLock,
    sigma0: bool,
    /// Whether the tables describe a space's I/O ports ([`super::ports`]) and not memory.
    ports: bool,
    /// Whether status bits of the space's pages are reported to its owner.
    owned: SharedFlag,
    root_level: u8,
    /// The memory node from which the space's page tables are allocated.
    node: SharedByte,
    account: Account,
    root: Table,
    /// The ports of this memory, if it has any, or the memory that these ports belong to. The ports
    /// come with the first port and go with the space.
    twin: Cell<Option<SpaceMemory>>,
    /// The table that became empty last, or [`NO_TABLE`], or [`NO_SPARE`]. It may be in use again.
    spare: Cell<u32>,
    /// The table of small pages that a walk found last, if the other word is the number of the 2
    /// MiB that it maps.
    recent: Cell<Table>,
    recent_block: Cell<u32>,
    areas: [Area; AREAS],
}

/// There is no spare table ([`super::spare`]).
const NO_TABLE: u32 = 0;
/// The space has no spare table and gets none.
const NO_SPARE: u32 = u32::MAX;

/// The value that is no number of a 2 MiB block.
const NO_BLOCK: u32 = u32::MAX;

const ALIGNMENT: u64 = align_of::<State>() as u64;
const _: () = assert!(size_of::<State>() == 64);

static SPACES: ObjectSlab<State> = ObjectSlab::new(Use::Spaces);
/// sigma0's; 0 = not made yet. Entry code compares it with the word that is a [`SpaceMemory`].
pub static SIGMA0: AtomicU32 = AtomicU32::new(0);

impl SpaceId {
    pub(super) fn raw(self) -> u32 {
        self.0
    }

    pub(super) fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    pub(super) fn memory(self) -> SpaceMemory {
        SpaceMemory(self)
    }
}

/// The memory that a virtual address of a space refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The physical address.
    pub address: PhysAddr,
    /// The rights of user programs to the memory.
    pub rights: Rights,
    /// log2 of the size of the page.
    pub page_bits: u32,
}

impl Translation {
    /// The translation of `address` by the page that was found at `place`.
    fn of(place: Place, address: VirtAddr) -> Self {
        let bits = page_bits(place.level);
        let start = place.entry.address().align_down(bits).value();
        let address = PhysAddr::new(start + (address.value() & ((1 << bits) - 1)));
        Self { address, rights: place.entry.rights(), page_bits: bits }
    }
}

impl SpaceMemory {
    /// The memory of a new space, empty, with `account` (which gets one more reference) paying.
    pub fn new(account: Account) -> Result<Self, OutOfMemory> {
        Self::create(account, false, None)
    }

    /// The memory of sigma0: whatever is not the kernel's is mapped there at its own address, as it
    /// is touched. All ports are its own, too.
    pub fn new_sigma0(account: Account) -> Result<Self, OutOfMemory> {
        let memory = Self::create(account, true, None)?;
        memory.make_ports()?;
        SIGMA0.store(memory.0.raw(), Ordering::Relaxed);
        Ok(memory)
    }

    /// The memory of sigma0, which is made once and stays.
    pub(super) fn sigma0() -> Option<Self> {
        // Relaxed: it was stored by the processor that booted, before others ran.
        Some(SIGMA0.load(Ordering::Relaxed)).filter(|&raw| raw != 0).map(|raw| Self(SpaceId(raw)))
    }

    /// Memory, or the ports of `memory`.
    fn create(account: Account, sigma0: bool, memory: Option<Self>) -> Result<Self, OutOfMemory> {
        let state = SPACES.reserve(account)?;
        let address = arch::virt_to_phys(state.as_ptr());
        let id = SpaceId((address.value() / ALIGNMENT) as u32);
        let (root_level, start) =
            if memory.is_some() { (PORT_ROOT_LEVEL, PORT_BASE) } else { (ROOT_LEVEL, 0) };
        let root = Table::alloc(id, account, root_level, VirtAddr::new(start))?;
        if memory.is_none() {
            root.fill_kernel_half();
        }
        account.retain();
        let areas = [const { Area::none() }; AREAS];
        // SAFETY: the memory is reserved for this space, and becomes a State with this write.
        unsafe {
            state.commit().write(State {
                lock: InnerLock::new(),
                sigma0,
                ports: memory.is_some(),
                owned: SharedFlag::new(false),
                root_level: root_level as u8,
                account,
                node: SharedByte::new(if node::are_several() { node::wanted() } else { 0 }),
                root,
                twin: Cell::new(memory),
                areas,
                spare: Cell::new(if sigma0 || memory.is_some() { NO_SPARE } else { NO_TABLE }),
                recent: Cell::new(root),
                recent_block: Cell::new(NO_BLOCK),
            })
        };
        Ok(Self(id))
    }

    /// The memory node from which the space's page tables are allocated.
    pub(super) fn node(self) -> u8 {
        self.state().node.get()
    }

    /// Page tables come from `node` from now on, because a thread of the space lives there.
    pub fn set_node(self, node: u8) {
        self.state().node.set(node);
    }

    /// The ports of this memory, if it ever had any.
    pub(super) fn ports(self) -> Option<Self> {
        self.state().twin.get()
    }

    /// The ports of this memory, made if there are none.
    pub(super) fn make_ports(self) -> Result<Self, OutOfMemory> {
        if let Some(ports) = self.ports() {
            return Ok(ports);
        }
        let ports = Self::create(self.account(), self.is_sigma0(), Some(self))?;
        self.state().twin.set(Some(ports));
        Ok(ports)
    }

    /// Frees the ports of a space that has none mapped any more.
    pub(super) fn delete_ports(self) {
        if let Some(ports) = self.state().twin.take() {
            ports.delete();
        }
    }

    /// Whether this is a space's ports, not its memory.
    #[inline]
    pub(super) fn is_ports(self) -> bool {
        self.state().ports
    }

    /// The memory of the space whose ports these are.
    pub(super) fn memory_of_ports(self) -> Self {
        debug_assert!(self.is_ports());
        self.state().twin.get().unwrap_or(self)
    }

    /// Frees the root and the state of a space that maps nothing any more. The space must not be
    /// active anywhere.
    pub(super) fn delete(self) {
        let account = self.account();
        let root = self.root();
        debug_assert!(root.used() == 0);
        if !self.is_ports() {
            // A space without ports of its own may have those that all spaces have.
            arch::ports::forget(root.address());
            root.clear_kernel_half();
        }
        root.free(true);
        // SAFETY: the state came from this slab for this account; the name is invalid from now on.
        unsafe { SPACES.free(core::ptr::NonNull::from(self.state()), account) };
        account.release();
    }

    #[inline]
    fn state(self) -> &'static State {
        // SAFETY: ids are made by `create` and valid until `delete`; the fields are cells and
        // locks, or constant.
        unsafe { &*arch::phys_to_virt(PhysAddr::new(u64::from(self.0.0) * ALIGNMENT)).cast() }
    }

    /// The spare table ([`super::spare`]), if there is one; it may be in use again.
    #[inline]
    pub(super) fn spare(self) -> Option<Table> {
        Some(self.state().spare.get()).filter(|&raw| raw != NO_SPARE).and_then(Table::from_raw)
    }

    /// Sets which table is the spare one, of a space that may have one. Returns the one before.
    pub(super) fn replace_spare(self, table: Option<Table>) -> Option<Table> {
        let before = self.spare();
        if self.keeps_spare() {
            self.state().spare.set(table.map_or(NO_TABLE, Table::raw));
        }
        before
    }

    /// Whether the space may have a spare table.
    #[inline]
    pub(super) fn keeps_spare(self) -> bool {
        self.state().spare.get() != NO_SPARE
    }

    /// The space has no spare table now, and gets none.
    pub(super) fn keep_no_spare(self) {
        self.state().spare.set(NO_SPARE);
    }

    /// The table of small pages for `address`, if it is the one that was
    /// [found](Self::remember_table) last and is still in place.
    #[inline(always)]
    pub(super) fn recent_table(self, address: VirtAddr) -> Option<Table> {
        let state = self.state();
        let same = u64::from(state.recent_block.get()) == address.value() >> page_bits(2);
        same.then(|| state.recent.get())
    }

    /// A walk has found that `table` is that of small pages for `address`.
    #[inline(always)]
    pub(super) fn remember_table(self, address: VirtAddr, table: Table) {
        self.state().recent.set(table);
        self.state().recent_block.set((address.value() >> page_bits(2)) as u32);
    }

    /// Forgets the table found by the last search, because tables are freed.
    pub(super) fn forget_table(self) {
        self.state().recent_block.set(NO_BLOCK);
    }

    #[inline]
    pub(super) fn id(self) -> SpaceId {
        self.0
    }

    #[inline]
    pub(super) fn root(self) -> Table {
        self.state().root
    }

    /// The root, and its level.
    #[inline]
    pub(super) fn root_and_level(self) -> (Table, u32) {
        let state = self.state();
        (state.root, u32::from(state.root_level))
    }

    #[inline]
    pub(super) fn lock(self) -> InnerLockGuard<'static> {
        self.state().lock.lock()
    }

    /// The account that pays for the page tables, and for the nodes of what this space maps to
    /// others.
    #[inline]
    pub fn account(self) -> Account {
        self.state().account
    }

    /// Whether this is sigma0's space.
    #[inline]
    pub fn is_sigma0(self) -> bool {
        self.state().sigma0
    }

    /// Says whether the space has an owner (K13): then its pages' status is the owner's
    /// ([`super::control()`]), and the space's own Unmap calls do not reset it.
    pub fn set_owned(self, owned: bool) {
        self.state().owned.set(owned);
    }

    #[inline]
    pub(super) fn is_owned(self) -> bool {
        self.state().owned.get()
    }

    /// The physical address of the root table: what CR3 holds while the space is active.
    #[inline]
    pub fn page_table_root(self) -> PhysAddr {
        self.root().address()
    }

    /// Like [`Self::lookup`], for an access that the kernel makes on behalf of a user. `access` is
    /// one right; the access shows in the page's status. `None`: the user does not have the right.
    pub fn access(self, address: VirtAddr, access: Rights) -> Option<Translation> {
        // The entry is read once: the access is noted for the page that was found, or for none if
        // that page is removed meanwhile.
        let place = self.page_at(address)?;
        let translation = Translation::of(place, address);
        if !translation.rights.contains(access) {
            return None;
        }
        place.at.touch(place.entry, access.contains(Rights::WRITE));
        Some(translation)
    }

    /// What `address` means in this space now. The caller holds [`super::lock()`] or is within an
    /// [`arch::tlb::Walk`].
    pub fn lookup(self, address: VirtAddr) -> Option<Translation> {
        self.page_at(address).map(|place| Translation::of(place, address))
    }

    /// Where the page at `address` is, if there is one.
    fn page_at(self, address: VirtAddr) -> Option<Place> {
        if address.value() >= arch::USER_END {
            return None;
        }
        Some(table::find(self, address, 1)).filter(|place| place.entry.is_page(place.level))
    }

    /// Declares the KIP and UTCB areas (X.2 rule 6.3 has been checked; `None`: no such area).
    /// Mappings of the user in them must be flushed by the caller *before* ([`super::unmap()`]),
    /// with the space not having an active thread.
    pub fn set_areas(self, kip: Option<Region>, utcb: Option<Region>) {
        let _alone = lock();
        self.state().areas[0].set(kip);
        self.state().areas[1].set(utcb);
    }

    /// The areas that are not mappable.
    pub(super) fn areas(self) -> impl Iterator<Item = Region> {
        self.state().areas.iter().filter(|area| area.last.get() != 0).map(Area::region)
    }

    /// The KIP or UTCB area that has an address in common with `block`.
    #[inline]
    pub(super) fn area_in(self, block: Region) -> Option<Region> {
        let (first, last) = (block.base, block.last());
        let areas = &self.state().areas;
        areas.iter().find(|area| area.last.get() >= first && area.first.get() <= last).map(Area::region)
    }

    /// Whether the small page at `address` lies in the KIP or UTCB area.
    #[inline]
    pub(super) fn excludes(self, address: VirtAddr) -> bool {
        let address = address.value();
        self.state().areas.iter().any(|area| area.last.get() >= address && area.first.get() <= address)
    }

    /// The kernel frame (KIP or UTCB page) at `address`; never a page of the user's.
    pub fn kernel_frame(self, address: VirtAddr) -> Option<PhysAddr> {
        let place = table::find(self, address, 1);
        let is_kernels = place.level == 1 && place.entry.is_present() && place.at.node().is_none();
        is_kernels.then(|| place.entry.address())
    }

    /// Makes sure that [`KernelPage::commit`] can put a kernel frame at `address` (a KIP or UTCB
    /// page). If something is mapped there (which was to be flushed), there is no room for it.
    pub fn reserve_kernel_page(self, address: VirtAddr) -> Result<KernelPage, OutOfMemory> {
        let alone = lock();
        if table::find(self, address, 1).entry != PageEntry::EMPTY {
            return Err(OutOfMemory);
        }
        match spare::or_give_back(|| table::make(self, address, 1)) {
            Ok(entry) => Ok(KernelPage { _alone: alone, space: self, address, entry }),
            Err(error) => {
                table::trim(self, address, &mut Changes::new());
                Err(error)
            }
        }
    }

    /// Maps a kernel frame for the user at `address`, which lies in the KIP or UTCB area and is
    /// free.
    pub fn insert_kernel_frame(
        self,
        address: VirtAddr,
        frame: PhysAddr,
        rights: Rights,
    ) -> Result<(), OutOfMemory> {
        self.reserve_kernel_page(address)?.commit(frame, rights);
        Ok(())
    }

    /// Undoes [`SpaceMemory::insert_kernel_frame`]; returns the frame that was there, which no
    /// processor can reach through this space any more.
    pub fn remove_kernel_frame(self, address: VirtAddr) -> Option<PhysAddr> {
        let _alone = lock();
        let place = table::find(self, address, 1);
        if place.level != 1 || !place.entry.is_present() {
            return None;
        }
        if !place.at.node().is_none() {
            return None;
        }
        let mut changes = Changes::new();
        let entry = place.at.remove(&mut changes);
        changes.finish();
        Some(entry.address())
    }
}

/// A place for a kernel frame in a user space, whose page tables exist. Dropped unused, it leaves
/// no trace. No other operation on the space may come between reservation and use.
pub struct KernelPage {
    _alone: SpinLockGuard<'static, ()>,
    space: SpaceMemory,
    address: VirtAddr,
    entry: EntryRef,
}

impl KernelPage {
    /// Maps `frame` for the user with `rights`.
    pub fn commit(self, frame: PhysAddr, rights: Rights) {
        let _lock = self.space.lock();
        // The status bits are set already: the processor need not write them, and the kernel does
        // not read them.
        let page = PageEntry::page(frame, 1, rights).touched(true);
        self.entry.install(page);
    }
}

impl Drop for KernelPage {
    fn drop(&mut self) {
        table::trim(self.space, self.address, &mut Changes::new());
    }
}
