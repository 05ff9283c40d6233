//! Address spaces: memory, the KIP and UTCB areas, and the threads that live there.

mod ownership;
mod redirection;
pub mod redirector_word;

use core::cell::Cell;
use core::mem::offset_of;
use core::pin::Pin;
use core::ptr::NonNull;

use x2::extension::Quota;
use x2::{Region, Rights, ThreadId, utcb};

use crate::mapping::{self, Cursor, Progress, SpaceMemory};
use crate::memory::{Account, Frame, ObjectSlab, OutOfMemory, PhysAddr, Use, VirtAddr, frame};
use crate::sync::{SharedFlag, SharedRef, SharedWord, SpinLock};
use crate::thread::{Found, Tcb, Utcb, table};
use crate::{arch, config, kip};

pub use ownership::{MAX_OPENINGS, Ownership};
pub use redirection::Redirection;

/// Held while a system call changes which threads and spaces there are, and which space owns which;
/// never across a preemption point. Taken before every other lock.
pub static CONTROL: SpinLock<()> = SpinLock::new(());

/// How the kernel refers to a space. The holder of a reference keeps the space alive by a thread in
/// it, or is destroying it.
pub type SpaceRef = &'static Space;

/// An address space. It exists as long as it has threads.
///
/// The cells change under [`CONTROL`], the areas while the space has no active thread, and only
/// then are they read without it; what any processor reads at any time is shared. The object's
/// memory is never used as anything else. In whole cache lines: what entry code looks at together
/// stays in one.
#[repr(align(64))]
pub struct Space {
    /// Page tables and mappings.
    pub memory: SpaceMemory,
    /// What entry code loads to enter the space: its root table, with [`PORTS_TOO`] if it uses I/O
    /// ports, or [`NO_ENTRY`] if the general path decides whether threads here may run.
    pub(crate) entry_root: SharedWord,
    /// What entry code looks at before a message leaves the space: 0, or the only space that the
    /// message may go to without a check on the general path.
    pub(crate) restriction: SharedRef<Space>,
    has_used_ports: SharedFlag,
    /// The account that pays for the space's kernel memory.
    account: Account,
    kip_area: Cell<Option<Region>>,
    utcb_area: Cell<Option<Region>>,
    /// How many threads live in the space, active or not.
    threads: Cell<u32>,
    active_threads: Cell<u32>,
    /// How many UTCBs are in use.
    utcbs: Cell<u32>,
    /// The *page at hand*: the page of UTCBs that was used last, or [`NO_PAGE`]. Most often the
    /// next UTCB is there.
    utcb_page: Cell<u64>,
    /// How far its frame, in the direct map, is from it, and which UTCBs there are in use.
    utcb_distance: Cell<u64>,
    utcb_slots: Cell<Option<&'static Cell<u16>>>,
    pub(crate) privileged: Cell<bool>,
    /// Threads lately found by their local ids, for the fast path. A thread that is found here may
    /// have got another id since: the fast path compares it.
    pub(crate) local_ids: [SharedRef<Tcb>; REMEMBERED],
    /// Owner and confinement (K13), and what a foreign system call does (K9).
    pub ownership: Ownership,
    redirection: Redirection,
}

/// While a space is free, the slab keeps its link in a word that only processors under the lock
/// read.
static SPACES: ObjectSlab<Space, { offset_of!(Space, kip_area) as u32 }> = ObjectSlab::new(Use::Spaces);

const _: () = assert!(offset_of!(Space, entry_root) / 64 == offset_of!(Space, restriction) / 64);

/// How many spaces are in use, for leak checks.
pub fn spaces_in_use() -> u32 {
    SPACES.slab().usage().0
}

/// The account for a space that ThreadControl creates: an account of its own, whose only reference
/// the space takes over. Without a limit by boot option, SpaceOptions sets one.
fn account_of_new_space() -> Result<Account, OutOfMemory> {
    Account::create(config::get().space_quota.unwrap_or(Quota::UNLIMITED))
}

/// How many threads a space remembers by their local ids, at the places of their UTCBs modulo this
/// number.
pub(crate) const REMEMBERED: usize = 8;

/// A value that is no root table's address: entry code sees by the sign that it has to take the
/// general path, as it does with pointers.
pub(crate) const NO_ENTRY: u64 = 1 << 63;

/// The bit that, with the sign, says that entry code must update the I/O permission bitmap when it
/// leaves or enters the space.
pub(crate) const PORTS: u64 = 1 << 62;
/// Both bits, to be added to the root table.
pub(crate) const PORTS_TOO: u64 = NO_ENTRY | PORTS;

/// A value that is no page's address.
const NO_PAGE: u64 = 1;

/// How many UTCBs share a frame.
const UTCBS_PER_FRAME: u64 = crate::memory::PAGE_SIZE / utcb::SIZE;

/// A place for a UTCB, which is [taken](Space::take_utcb) into use before [`CONTROL`] is released,
/// or not at all.
pub struct VacantUtcb {
    /// The UTCBs of the frame that are in use, as [`slots`].
    used: &'static Cell<u16>,
    /// The UTCB's place in the frame.
    place: u32,
    block: &'static Utcb,
}

impl Space {
    /// Whether messages leave the space without a check, to any thread: it has no owner and no
    /// redirector.
    #[inline]
    pub fn is_unrestricted(&self) -> bool {
        self.restriction.get().is_none()
    }

    /// A space without threads, mappings and areas. The caller puts a thread into it, or calls
    /// [`Space::destroy`].
    pub fn create() -> Result<SpaceRef, OutOfMemory> {
        let account = account_of_new_space()?;
        Self::create_around(account, SpaceMemory::new).inspect_err(|_| account.release())
    }

    /// The space of sigma0, or that of another initial server, which no quota limits.
    pub fn create_initial(sigma0: bool) -> Result<SpaceRef, OutOfMemory> {
        Account::KERNEL.retain();
        let memory = if sigma0 { SpaceMemory::new_sigma0 } else { SpaceMemory::new };
        let space = Self::create_around(Account::KERNEL, memory)?;
        space.privileged.set(true);
        Ok(space)
    }

    fn create_around(
        account: Account,
        memory: fn(Account) -> Result<SpaceMemory, OutOfMemory>,
    ) -> Result<SpaceRef, OutOfMemory> {
        let place = SPACES.reserve(account)?;
        let memory = memory(account)?;
        let place = place.commit();
        // SAFETY: fresh memory for a Space, which lives until `destroy` has ended.
        unsafe {
            place.write(Self {
                memory,
                entry_root: SharedWord::new(memory.page_table_root().value()),
                restriction: SharedRef::new(),
                has_used_ports: SharedFlag::new(false),
                account,
                kip_area: Cell::new(None),
                utcb_area: Cell::new(None),
                threads: Cell::new(0),
                active_threads: Cell::new(0),
                utcbs: Cell::new(0),
                utcb_page: Cell::new(NO_PAGE),
                utcb_distance: Cell::new(0),
                utcb_slots: Cell::new(None),
                privileged: Cell::new(false),
                local_ids: [const { SharedRef::new() }; REMEMBERED],
                ownership: Ownership::new(),
                redirection: Redirection::new(),
            });
            Ok(place.as_ref())
        }
    }

    /// Destroys a space without threads: its mappings, what it mapped to others, and the object.
    ///
    /// Preemption point: called again after `Preempted`.
    pub fn destroy(&'static self, cursor: Pin<&mut Cursor>) -> Progress<()> {
        if !self.end_ownership() {
            return Progress::Preempted;
        }
        self.destroy_memory(cursor)
    }

    fn destroy_memory(&'static self, cursor: Pin<&mut Cursor>) -> Progress<()> {
        debug_assert!(self.threads.get() == 0);
        arch::tlb::unload(self);
        self.unmap_kip();
        if let Progress::Preempted = mapping::destroy(cursor, self.memory) {
            return Progress::Preempted;
        }
        let account = self.account;
        // SAFETY: no thread and no processor refers to the space any more, and its memory is gone.
        unsafe { SPACES.free(NonNull::from(self), account) };
        account.release();
        Progress::Done(())
    }

    /// Destroys a space that has just been created: there is nothing to unmap, so nothing to
    /// interrupt.
    pub fn discard(&'static self) {
        let mut cursor = core::pin::pin!(Cursor::new());
        while self.destroy_memory(cursor.as_mut()) == Progress::Preempted {}
    }

    /// The account that pays for what the space needs.
    pub fn account(&self) -> Account {
        self.account
    }

    /// Whether threads of the space may use the privileged system calls.
    pub fn is_privileged(&self) -> bool {
        self.privileged.get()
    }

    /// Where the KIP is, once configured.
    pub fn kip_area(&self) -> Option<Region> {
        self.kip_area.get()
    }

    /// Where UTCBs can be, once configured.
    pub fn utcb_area(&self) -> Option<Region> {
        self.utcb_area.get()
    }

    /// Whether threads can be activated here.
    pub fn is_configured(&self) -> bool {
        self.kip_area.get().is_some() && self.utcb_area.get().is_some()
    }

    /// Whether active threads use the KIP and UTCB areas.
    pub fn has_active_threads(&self) -> bool {
        self.active_threads.get() != 0
    }

    /// Whether more than one thread lives here.
    pub fn has_several_threads(&self) -> bool {
        self.threads.get() > 1
    }

    /// Counts a thread that comes to live here.
    pub fn add_thread(&self) {
        self.threads.set(self.threads.get() + 1);
    }

    /// Counts a thread that leaves. Returns whether it was the last.
    pub fn remove_thread(&self) -> bool {
        self.threads.set(self.threads.get() - 1);
        self.threads.get() == 0
    }

    /// Counts a thread that is activated here (or, with `false`, ceases to be active here).
    pub fn count_active(&self, active: bool) {
        let count = self.active_threads.get();
        self.active_threads.set(if active { count + 1 } else { count - 1 });
    }

    /// Whether threads have UTCBs here.
    pub fn has_utcbs(&self) -> bool {
        self.utcbs.get() != 0
    }

    /// Sets the areas; `None` leaves one as it is. No thread is active here, the areas do not
    /// overlap, nothing of the user's is mapped in them, and no thread has a UTCB if that area
    /// changes. Fails without any change.
    pub fn configure(&'static self, kip: Option<Region>, utcbs: Option<Region>) -> Result<(), OutOfMemory> {
        let kip = kip.filter(|_| kip != self.kip_area.get());
        let utcbs = utcbs.filter(|_| utcbs != self.utcb_area.get());
        if let Some(area) = kip {
            let page = self.memory.reserve_kernel_page(VirtAddr::new(area.base))?;
            // POINT OF NO RETURN.
            page.commit(kip::physical_address(), Rights::READ_EXECUTE);
            self.unmap_kip();
            self.kip_area.set(kip);
        }
        if utcbs.is_some() {
            debug_assert!(!self.has_utcbs());
            self.utcb_area.set(utcbs);
        }
        self.memory.set_areas(self.kip_area.get(), self.utcb_area.get());
        Ok(())
    }

    fn unmap_kip(&self) {
        if let Some(kip) = self.kip_area.take() {
            self.memory.remove_kernel_frame(VirtAddr::new(kip.base));
        }
    }

    /// Whether a UTCB block could be at `location`: in the area, and aligned.
    #[inline]
    pub fn is_utcb_location(&self, location: u64) -> bool {
        location.is_multiple_of(utcb::ALIGN)
            && self.utcb_area.get().is_some_and(|area| area.contains(location))
    }

    /// Makes `page` the page at hand; its frame is at `address`.
    fn keep_at_hand(&self, page: VirtAddr, address: PhysAddr) {
        self.utcb_page.set(page.value());
        let frame: *mut u8 = arch::phys_to_virt(address);
        self.utcb_distance.set((frame.expose_provenance() as u64).wrapping_sub(page.value()));
        self.utcb_slots.set(Some(slots(address)));
    }

    /// Makes `page` the page at hand, if it has UTCBs. Their frame stays while the caller holds
    /// [`CONTROL`].
    fn find_utcb_page(&self, page: VirtAddr) -> bool {
        let _walk = arch::tlb::Walk::begin();
        let frame = self.memory.kernel_frame(page);
        frame.inspect(|&frame| self.keep_at_hand(page, frame)).is_some()
    }

    /// Takes the UTCB block at `location`, which is a valid location, into use, zeroed. `Ok(None)`:
    /// it is in use.
    pub fn allocate_utcb(&self, location: u64) -> Result<Option<&'static Utcb>, OutOfMemory> {
        let page = page_of(location);
        if page.value() != self.utcb_page.get() && !self.find_utcb_page(page) {
            let frame = frame::alloc(self.account, Use::UserVisible)?;
            self.memory.insert_kernel_frame(page, frame.address(), Rights::READ_WRITE)?;
            let address = frame.into_raw();
            slots(address).set(0);
            self.keep_at_hand(page, address);
        }
        Ok(self.utcb_at_hand(location).map(|utcb| self.take_utcb(utcb)))
    }

    /// The place for a UTCB at `location`, if it is a valid location that is vacant, and in the
    /// page at hand. `None`: it has to be looked for in the general way.
    #[inline(always)]
    pub fn utcb_at_hand(&self, location: u64) -> Option<VacantUtcb> {
        // A location that is no multiple of a UTCB's size, or in another page, becomes a large
        // number.
        let place = location.wrapping_sub(self.utcb_page.get()).rotate_right(utcb::SIZE.trailing_zeros());
        if place >= UTCBS_PER_FRAME {
            return None;
        }
        let (used, place) = (self.utcb_slots.get()?, place as u32);
        if used.get() & 1 << place != 0 {
            return None;
        }
        let block = location.wrapping_add(self.utcb_distance.get()) as usize;
        // SAFETY: the location is a block's in the page at hand, whose frame is a UTCB frame; a
        // block is atomics that are valid whatever they hold. The frame stays while the UTCB is in
        // use, and the code that frees it forgets the reference.
        let block = unsafe { &*core::ptr::with_exposed_provenance::<Utcb>(block) };
        Some(VacantUtcb { used, place, block })
    }

    /// Takes a UTCB into use, zeroed.
    #[inline(always)]
    pub fn take_utcb(&self, VacantUtcb { used, place, block }: VacantUtcb) -> &'static Utcb {
        used.set(used.get() | 1 << place);
        self.utcbs.set(self.utcbs.get() + 1);
        block.clear();
        block
    }

    /// Gives `block`, which is at `location`, back, and its frame if it was the last in use there.
    #[inline(always)]
    pub fn free_utcb(&'static self, block: &'static Utcb, location: u64) {
        let (used, slot) = (slots(frame_of(block)), slot_of(location));
        let left = used.get() & !slot;
        used.set(left);
        self.utcbs.set(self.utcbs.get() - 1);
        if left == 0 {
            arch::call_seldom(
                free_utcb_frame,
                core::ptr::from_ref(self).expose_provenance() as u64,
                location,
            );
        }
    }

    /// The active thread of this space whose local id is `id`.
    ///
    /// The UTCB's MyGlobalId says which thread that is, and is believed only if that thread agrees
    /// (X.2 rule 13.2): a program that overwrites it only loses its own local ids.
    pub fn thread_with_local_id(&self, id: ThreadId) -> Option<Found> {
        let location = id.utcb_pointer().wrapping_sub(utcb::MR0_OFFSET);
        if !self.is_utcb_location(location) {
            return None;
        }
        let page = VirtAddr::new(location).align_down(crate::memory::PAGE_BITS);
        let _walk = arch::tlb::Walk::begin();
        let block = block_in(self.memory.kernel_frame(page)?, location);
        let thread =
            table::threads().find(block.read_id(utcb::MY_GLOBAL_ID)).filter(|&found| self.calls(found, id));
        if thread.is_some() {
            // The table keeps only the reference; a look-up makes it a [`Found`] again.
            self.local_ids[place_of(id)].set(thread.map(Found::anywhere));
        }
        thread
    }

    /// The thread with this local id, if it has been looked for lately. A thread whose end has
    /// begun keeps its local id until its UTCB goes, on any processor; it has lost its global id,
    /// and is not found.
    #[inline]
    pub fn remembered_local_id(&self, id: ThreadId) -> Option<Found> {
        let thread = Found::new(self.local_ids[place_of(id)].get()?);
        (!thread.found_id().is_nil() && self.calls(thread, id)).then_some(thread)
    }

    /// Whether `id` is the local id of `thread`, in this space. (A TCB is always one, if perhaps
    /// another thread's by now.)
    #[inline]
    fn calls(&self, thread: Found, id: ThreadId) -> bool {
        thread.local_id() == id.raw() && thread.is_in(self)
    }
}

/// Where a space remembers the thread with this local id.
#[inline]
fn place_of(id: ThreadId) -> usize {
    (id.raw() / utcb::SIZE) as usize % REMEMBERED
}

/// The page in which a UTCB is.
#[inline(always)]
fn page_of(location: u64) -> VirtAddr {
    VirtAddr::new(location).align_down(crate::memory::PAGE_BITS)
}

/// Frees the frame in which a UTCB of the space at this address was the last, at `location`.
#[cold]
extern "C" fn free_utcb_frame(space: u64, location: u64) {
    // SAFETY: [`Space::free_utcb`] has a reference to it.
    let space: SpaceRef = unsafe { &*core::ptr::with_exposed_provenance(space as usize) };
    let page = page_of(location);
    let address = {
        let _walk = arch::tlb::Walk::begin();
        space.memory.kernel_frame(page).expect("the UTCB was there")
    };
    space.utcb_page.set(NO_PAGE);
    space.utcb_slots.set(None);
    space.memory.remove_kernel_frame(page);
    // SAFETY: `allocate_utcb` charged the frame to this account and gave up ownership; no UTCB in
    // it is in use and it is mapped nowhere any more.
    drop(unsafe { Frame::from_raw(address, space.account) });
}

/// The bit of a UTCB in [`slots`].
#[inline(always)]
fn slot_of(location: u64) -> u16 {
    1 << (location / utcb::SIZE % UTCBS_PER_FRAME)
}

/// The frame in which a UTCB is.
#[inline(always)]
fn frame_of(block: &'static Utcb) -> PhysAddr {
    arch::virt_to_phys(block).align_down(crate::memory::PAGE_BITS)
}

/// Which UTCBs of a UTCB frame are in use, one bit each.
#[inline(always)]
fn slots(address: PhysAddr) -> &'static Cell<u16> {
    &frame::record_of(address).used
}

/// The UTCB block for `location` in the UTCB frame at `address`.
#[inline(always)]
fn block_in(address: PhysAddr, location: u64) -> &'static Utcb {
    let offset = location % crate::memory::PAGE_SIZE;
    // SAFETY: the frame is a UTCB frame in the direct map, the offset a block's; a block is atomics
    // that are valid whatever they hold. The frame stays while the UTCB is in use, and the code
    // that frees it forgets the reference.
    unsafe { &*arch::phys_to_virt(address.offset(offset)).cast::<Utcb>() }
}
