//! Accounts: how many bytes of kernel memory a space, or several that share a quota, may use (K4).
//!
//! An [`Account`] is a 16-bit name, small enough for every map node to carry its payer. Its state
//! lives in a table that grows by frames of kernel memory. It disappears when there are no
//! references any more and everything charged to it has been returned. Accounts can share the quota
//! of another ([`Account::share`]).
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use x2::extension::Quota;

use super::counters::{self, Counters, Table as _};
use super::{OutOfMemory, PAGE_SIZE, PhysAddr, Use, frame};
use crate::arch;
use crate::sync::SpinLock;

/// A limit on kernel memory and what is used of it. A plain name: copies are the same account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account(u16);

/// One account; 32 bytes.
#[repr(C)]
struct State {
    counters: Counters,
    /// While the slot is free: the next free slot, plus one.
    next_free: AtomicU32,
}

const PER_FRAME: usize = PAGE_SIZE as usize / size_of::<State>();
const FRAMES: usize = (u16::MAX as usize + 1) / PER_FRAME;
const _: () = assert!(size_of::<State>() == 32);

/// Where the table's frames are in the direct map; null = not there yet. Written under [`SLOTS`]
/// only.
static TABLE: [AtomicPtr<State>; FRAMES] = [const { AtomicPtr::new(null_mut()) }; FRAMES];

/// Which slots are free: a list threaded through them, and how many have ever been used.
struct Slots {
    first_free: u32,
    ever_used: u32,
}

static SLOTS: SpinLock<Slots> = SpinLock::new(Slots { first_free: 0, ever_used: 0 });

/// Makes the kernel's own account. Called once, by [`super::init`].
pub(super) fn init() {
    for entry in &TABLE {
        entry.store(null_mut(), Ordering::Relaxed);
    }
    *SLOTS.lock() = Slots { first_free: 0, ever_used: 0 };
    let kernel = Account::create(Quota::UNLIMITED).expect("kernel memory holds at least one frame");
    assert!(kernel == Account::KERNEL);
}

impl Account {
    /// The kernel's own account: unlimited, permanent.
    pub const KERNEL: Self = Self(0);

    /// A new account with this limit and one reference.
    pub fn create(limit: Quota) -> Result<Self, OutOfMemory> {
        let mut slots = SLOTS.lock();
        let id = if slots.first_free != 0 {
            let id = slots.first_free - 1;
            slots.first_free = Self(id as u16).state().next_free.load(Ordering::Relaxed);
            id
        } else {
            let id = slots.ever_used;
            if id > u32::from(u16::MAX) {
                return Err(OutOfMemory);
            }
            let entry = &TABLE[id as usize / PER_FRAME];
            if entry.load(Ordering::Relaxed).is_null() {
                let number = frame::alloc_number(Self(id as u16), Use::Accounts)?;
                let table = PhysAddr::new(u64::from(number) * PAGE_SIZE);
                entry.store(arch::phys_to_virt(table).cast(), Ordering::Relaxed);
            }
            slots.ever_used += 1;
            id
        };
        let account = Self(id as u16);
        account.counters().reset(limit.word());
        Ok(account)
    }

    /// Adds a reference (another space that shares the quota).
    pub fn retain(self) {
        self.counters().retain();
    }

    /// All accounts in use, for the debugger: number, bytes used, limit, references.
    pub fn all() -> impl Iterator<Item = (u16, u64, Quota, u32)> {
        let end = SLOTS.try_lock().map_or(0, |slots| slots.ever_used);
        (0..end).map(|id| Self(id as u16)).filter_map(|account| {
            let references = account.counters().references()?;
            Some((account.0, account.used(), account.limit(), references))
        })
    }

    /// The account's number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The account with this number, which exists.
    pub(super) fn numbered(number: u16) -> Self {
        Self(number)
    }

    /// Drops a reference. What is still charged keeps the account until it is returned.
    pub fn release(self) {
        if self.counters().release() {
            self.reclaim();
        }
    }

    /// Bytes that may be used. More than that may be in use after the limit was lowered.
    pub fn limit(self) -> Quota {
        Quota::from_word(self.counters().limit()).expect("only quotas are set")
    }

    /// Sets the limit. Memory that is in use already stays in use.
    pub fn set_limit(self, limit: Quota) {
        self.counters().set_limit(limit.word());
    }

    /// The upper account, at which what this one uses counts, too.
    pub fn upper(self) -> Option<Self> {
        Some(self.counters().upper()).filter(|&upper| upper != counters::NONE).map(Self)
    }

    /// Changes the upper account, whose limit this one shares: from now on what is used counts at
    /// `upper` and no more at the present one. `prepaid` bytes were taken out of `upper` for this
    /// account before; `kept` bytes stay taken out of the present one. Fails without any change if
    /// `upper`, or the present one for what is kept, has not so much left. There is one such call
    /// at a time for an account.
    ///
    /// The kernel's own account shares no other account's quota, and no account shares its.
    pub fn share(self, upper: Option<Self>, prepaid: u64, kept: u64) -> Result<(), OutOfMemory> {
        debug_assert!(self != Self::KERNEL && upper != Some(self));
        let upper = upper.map_or(counters::NONE, |upper| upper.0);
        if Accounts.relink(self.0, upper, prepaid, kept) { Ok(()) } else { Err(OutOfMemory) }
    }

    /// Bytes in use, including those of accounts that share this one's quota.
    pub fn used(self) -> u64 {
        self.counters().used()
    }

    /// Takes `bytes` out of the quota.
    #[inline(always)]
    pub fn charge(self, bytes: u64) -> Result<(), OutOfMemory> {
        if Accounts.charge(self.0, bytes) { Ok(()) } else { Err(OutOfMemory) }
    }

    /// Puts `bytes` back into the quota.
    #[inline(always)]
    pub fn credit(self, bytes: u64) {
        Accounts.credit(self.0, bytes);
    }

    /// Like [`Self::charge`], for callers that call nothing else: no register is to be saved for an
    /// account that shares no quota. Returns whether that many bytes were left.
    #[inline(always)]
    pub fn charge_apart(self, bytes: u64) -> bool {
        let charged = Accounts.charge_alone(self.0, bytes);
        charged.unwrap_or_else(|_| arch::ask_seldom(charge_seldom, self.0.into(), bytes) != 0)
    }

    /// Like [`Self::credit`], for callers that call nothing else.
    #[inline(always)]
    pub fn credit_apart(self, bytes: u64) {
        let (upper, unused) = Accounts.credit_alone(self.0, bytes);
        if unused {
            arch::call_seldom(reclaim_seldom, self.0.into(), 0);
        }
        if upper != counters::NONE {
            arch::call_seldom(credit_seldom, upper.into(), bytes);
        }
    }

    /// Frees the slot, if it is unused now that the lock is held.
    #[cold]
    fn reclaim(self) {
        let mut slots = SLOTS.lock();
        if self.counters().claim() {
            self.state().next_free.store(slots.first_free, Ordering::Relaxed);
            slots.first_free = u32::from(self.0) + 1;
        }
    }

    #[inline]
    fn counters(self) -> &'static Counters {
        &self.state().counters
    }

    #[inline]
    fn state(self) -> &'static State {
        let table = TABLE[self.0 as usize / PER_FRAME].load(Ordering::Relaxed);
        // SAFETY: an Account exists only for a slot of a table frame that was entered into TABLE
        // and is never freed; the state is all atomics, and zero is a valid one.
        unsafe { &*table.add(self.0 as usize % PER_FRAME) }
    }
}

/// [`Account::charge`].
extern "C" fn charge_seldom(number: u64, bytes: u64) -> u64 {
    Account(number as u16).charge(bytes).is_ok().into()
}

/// [`Account::credit`].
extern "C" fn credit_seldom(number: u64, bytes: u64) {
    Account(number as u16).credit(bytes);
}

/// [`Account::reclaim`].
extern "C" fn reclaim_seldom(number: u64, _: u64) {
    Account(number as u16).reclaim();
}

struct Accounts;

impl counters::Table for Accounts {
    #[inline]
    fn counters(&self, number: u16) -> &Counters {
        Account(number).counters()
    }

    #[cold]
    fn reclaim(&self, number: u16) {
        Account(number).reclaim();
    }
}
