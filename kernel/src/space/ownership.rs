//! Which space owns a space, and what follows from it (K13): which threads it can reach, what a
//! foreign system call in it does, and what becomes of it when its owner ends.
//!
//! Owner and owned spaces are linked both ways, so that no link outlives its space: a space that is
//! destroyed leaves its owner's list, and its own owned spaces become [`Owner::Gone`]. The same
//! holds for openings.
//!
//! A space with a quota of its own has it taken out of its owner's quota; a space without one
//! counts at its owner's account (K4).

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::{NonNull, eq};

use x2::ErrorCode;
use x2::extension::{Quota, SystemCallMode};

use super::{CONTROL, NO_ENTRY, PORTS_TOO, Space, SpaceRef};
use crate::memory::{Account, ObjectSlab, OutOfMemory, Use};
use crate::sync::{SharedFlag, SharedHalf, SharedRef, SharedWord};
use crate::{arch, processor};

/// Which space owns a space, as one processor finds it.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// The space has no owner: an ordinary X.2 space.
    None,
    /// This space's.
    Space(SpaceRef),
    /// The owner no longer exists: the space's threads do not run.
    Gone,
}

/// A space that owned threads may send to although it is not their owner's.
struct Opening {
    from: SpaceRef,
    to: SpaceRef,
    /// Next opening of the same `from`.
    next: SharedRef<Opening>,
    /// Next opening to the same `to`.
    next_to: SharedRef<Opening>,
}

/// While an opening is free, the slab keeps its link where only processors under the lock look.
static OPENINGS: ObjectSlab<Opening, { offset_of!(Opening, next_to) as u32 }> = ObjectSlab::new(Use::Spaces);

/// How many openings a space can have: each costs a comparison in every send that goes elsewhere.
pub const MAX_OPENINGS: usize = 8;

/// A space's part in ownership. Like the space's other cells, touched under the lock of such calls
/// ([`super::CONTROL`]); what confines messages is read at any time.
pub struct Ownership {
    owner: SharedRef<Space>,
    /// The space had an owner, which is gone. Set before `owner` is cleared.
    orphaned: SharedFlag,
    /// First of the spaces that this space owns.
    owned: SharedRef<Space>,
    /// Next space with the same owner.
    next: SharedRef<Space>,
    /// Openings: spaces that this space's threads may send to.
    openings: SharedRef<Opening>,
    /// Openings of other spaces to this one.
    opened_by: SharedRef<Opening>,
    mode: SharedHalf,
    emulation_entry: SharedWord,
    sees_physical: SharedFlag,
    /// Whether entry code reports to the pagers and exception handlers that the kernel keeps: there
    /// is an owner, and nothing that needs the general path.
    keeps_handlers: SharedFlag,
    /// The part of the quota that is taken out of the owner's.
    reserved: Cell<u64>,
}

impl Ownership {
    /// Where entry code finds what a foreign system call does.
    pub const MODE: usize = offset_of!(Self, mode);
    /// Offset of the owner, for entry code.
    pub const OWNER: usize = offset_of!(Self, owner);
    /// Offset of the emulation entry, for entry code.
    pub const EMULATION_ENTRY: usize = offset_of!(Self, emulation_entry);

    /// Where entry code finds whether threads report to the handlers that the kernel keeps for them
    /// (a byte).
    pub const KEEPS_HANDLERS: usize = offset_of!(Self, keeps_handlers);

    pub(super) const fn new() -> Self {
        Self {
            owner: SharedRef::new(),
            orphaned: SharedFlag::new(false),
            owned: SharedRef::new(),
            next: SharedRef::new(),
            openings: SharedRef::new(),
            opened_by: SharedRef::new(),
            mode: SharedHalf::new(SystemCallMode::None as u32),
            emulation_entry: SharedWord::new(0),
            sees_physical: SharedFlag::new(false),
            keeps_handlers: SharedFlag::new(false),
            reserved: Cell::new(0),
        }
    }

    /// What a SYSCALL instruction outside the stubs does.
    #[inline]
    pub fn mode(&self) -> SystemCallMode {
        SystemCallMode::from_word(u64::from(self.mode.get())).unwrap_or(SystemCallMode::None)
    }

    /// Sets what a SYSCALL instruction outside the stubs does.
    pub fn set_mode(&self, mode: SystemCallMode) {
        self.mode.set(mode as u32);
    }

    /// The address at which bounce mode continues the program.
    #[inline]
    pub fn emulation_entry(&self) -> u64 {
        self.emulation_entry.get()
    }

    /// Sets where bounce mode continues: an address in the user area.
    pub fn set_emulation_entry(&self, entry: u64) {
        self.emulation_entry.set(entry);
    }

    /// Whether MapControl tells the space physical addresses.
    pub fn sees_physical(&self) -> bool {
        self.sees_physical.get()
    }

    /// Sets whether MapControl tells the space physical addresses.
    pub fn set_sees_physical(&self, allowed: bool) {
        self.sees_physical.set(allowed);
    }
}

impl Ownership {
    /// The space's owner now.
    #[inline]
    fn owner(&self) -> Owner {
        match self.owner.get() {
            Some(owner) => Owner::Space(owner),
            None if self.orphaned.get() => Owner::Gone,
            None => Owner::None,
        }
    }
}

impl Space {
    /// Whether the space has, or had, an owner: then its threads are confined.
    #[inline]
    pub fn is_owned(&self) -> bool {
        !matches!(self.ownership.owner(), Owner::None)
    }

    /// Whether the owner has gone: the threads are to halt.
    #[inline]
    pub fn is_orphaned(&self) -> bool {
        matches!(self.ownership.owner(), Owner::Gone)
    }

    /// Whether `space` owns this space.
    #[inline]
    pub fn is_owned_by(&self, space: &Space) -> bool {
        self.ownership.owner.get().is_some_and(|owner| eq(owner, space))
    }

    /// The space uses I/O ports: from now on entry code updates the permission bitmap whenever it
    /// leaves or enters the space. Every processor does so before the first one that fills its
    /// bitmap returns from here. (The word with the root is written last.)
    pub fn uses_ports(&'static self) {
        if !self.has_used_ports.get() || self.entry_root.get() & NO_ENTRY == 0 {
            let _control = CONTROL.lock();
            self.has_used_ports.set(true);
            self.update_entry_words();
        }
    }

    /// Tells the fast path in assembly how it may leave and enter the space, and to which handlers
    /// threads report. A restriction is the owner; or the space itself where the fast path may not
    /// leave or enter without a check.
    pub(super) fn update_entry_words(&'static self) {
        let root = self.memory.page_table_root().value();
        let (restriction, root) = match self.ownership.owner() {
            Owner::Gone => (Some(self), NO_ENTRY),
            _ if self.has_used_ports.get() && self.is_redirected() => (Some(self), NO_ENTRY),
            _ if self.has_used_ports.get() => (Some(self), root | PORTS_TOO),
            _ if self.is_redirected() => (Some(self), root),
            Owner::None => (None, root),
            Owner::Space(owner) => (Some(owner), root),
        };
        self.restriction.set(restriction);
        // The fast path for reports, in assembly, knows no redirectors, and does not close the
        // bitmap of a space with ports.
        let keeps = self.is_owned() && !self.is_redirected() && !self.has_used_ports.get();
        self.ownership.keeps_handlers.set(keeps);
        self.entry_root.set(root);
    }

    /// Whether a thread of this space can send to, or wait for, a thread of `other` (K13).
    #[inline]
    pub fn reaches(&self, other: &Space) -> bool {
        match self.ownership.owner() {
            Owner::None => true,
            owner => {
                eq(self, other)
                    || matches!(owner, Owner::Space(owner) if eq(owner, other))
                    || other.is_owned_by(self)
                    || openings(&self.ownership)
                        .any(|opening| eq(opening.to, other) && eq(opening.from, self))
            }
        }
    }

    /// Makes `owner` the owner of the space; `None`: it has none any more. Fails without any change
    /// if the space would own itself ([`InvalidSpace`]), or if the quota of the owner, which it
    /// shares, has not enough left for what it uses ([`NoMemory`]).
    ///
    /// [`InvalidSpace`]: ErrorCode::InvalidSpace
    /// [`NoMemory`]: ErrorCode::NoMemory
    pub fn set_owner(&'static self, owner: Option<SpaceRef>) -> Result<(), ErrorCode> {
        let mut above = owner;
        while let Some(space) = above {
            if eq(space, self) {
                return Err(ErrorCode::InvalidSpace);
            }
            above = space.ownership.owner.get();
        }
        let account = self.account();
        if account != Account::KERNEL {
            let shared = owner.filter(|_| account.limit() == Quota::UNLIMITED).and_then(account_to_share);
            account.share(shared, 0, 0).map_err(|_| ErrorCode::NoMemory)?;
        }
        self.leave_owner();
        self.memory.set_owned(owner.is_some());
        self.set_owner_word(match owner {
            Some(owner) => {
                self.ownership.next.set(owner.ownership.owned.replace(Some(self)));
                Owner::Space(owner)
            }
            None => Owner::None,
        });
        Ok(())
    }

    /// Sets whose the space is, and what follows for entry code.
    fn set_owner_word(&'static self, owner: Owner) {
        let ownership = &self.ownership;
        match owner {
            Owner::None => {
                ownership.orphaned.set(false);
                ownership.owner.set(None);
            }
            Owner::Space(owner) => {
                ownership.owner.set(Some(owner));
                ownership.orphaned.set(false);
            }
            Owner::Gone => {
                ownership.orphaned.set(true);
                ownership.owner.set(None);
            }
        }
        self.update_entry_words();
    }

    /// Sets how many bytes of kernel memory the space, which is no initial server's, may use, taken
    /// out of its owner's quota if it has an owner; [`Quota::UNLIMITED`] gives them back, and the
    /// space shares its owner's. Fails without any change if the owner has not so much left, or the
    /// space uses more already.
    pub fn set_quota(&self, quota: Quota) -> Result<(), OutOfMemory> {
        let account = self.account();
        let limit = account.limit();
        let bytes = quota.word();
        if bytes < account.used() {
            return Err(OutOfMemory);
        }
        let before = self.ownership.reserved.get();
        match self.ownership.owner.get() {
            None => {}
            Some(owner) if quota == Quota::UNLIMITED => {
                match account_to_share(owner) {
                    Some(shared) if account.upper() != Some(shared) => {
                        account.share(Some(shared), before, 0)?
                    }
                    _ => owner.account().credit(before),
                }
                self.ownership.reserved.set(0);
            }
            Some(_) if account.upper().is_some() => {
                // The bytes in use are in the owner's quota already, and grow no more beyond the
                // new quota.
                account.set_limit(quota);
                account.share(None, 0, bytes).inspect_err(|_| account.set_limit(limit))?;
                self.ownership.reserved.set(bytes);
            }
            Some(owner) => {
                let owner = owner.account();
                owner.charge(bytes.saturating_sub(before))?;
                owner.credit(before.saturating_sub(bytes));
                self.ownership.reserved.set(bytes);
            }
        }
        account.set_limit(quota);
        Ok(())
    }

    /// Lets threads of this space send to threads of `to`.
    pub fn open(&'static self, to: SpaceRef) -> Result<(), OutOfMemory> {
        if openings(&self.ownership).any(|opening| eq(opening.to, to)) {
            return Ok(());
        }
        if openings(&self.ownership).count() == MAX_OPENINGS {
            return Err(OutOfMemory);
        }
        let place = OPENINGS.alloc(self.account())?;
        // SAFETY: fresh memory for an Opening, freed only by `remove`, which takes it out of both
        // lists.
        let opening: &'static Opening = unsafe {
            place.write(Opening { from: self, to, next: SharedRef::new(), next_to: SharedRef::new() });
            place.as_ref()
        };
        opening.next.set(self.ownership.openings.replace(Some(opening)));
        opening.next_to.set(to.ownership.opened_by.replace(Some(opening)));
        Ok(())
    }

    /// Takes an opening back. No effect if there is none.
    pub fn close(&self, to: &Space) {
        if let Some(opening) = openings(&self.ownership).find(|opening| eq(opening.to, to)) {
            remove(opening);
        }
    }

    /// Ends all relations of a space that is being destroyed. Returns whether it is done.
    ///
    /// Preemption point: called again if not.
    pub(super) fn end_ownership(&'static self) -> bool {
        let _control = CONTROL.lock();
        let orphans = self.ownership.owned.get().is_some();
        let done = self.end_relations();
        if orphans {
            // The threads may be running on other processors.
            processor::alert_others();
        }
        done
    }

    fn end_relations(&'static self) -> bool {
        while let Some(space) = self.ownership.owned.get() {
            self.ownership.owned.set(space.ownership.next.take());
            self.account().credit(space.ownership.reserved.take());
            space.share_no_quota();
            space.set_owner_word(Owner::Gone);
            if arch::interrupt_pending() {
                return false;
            }
        }
        while let Some(opening) = self.ownership.openings.get().or(self.ownership.opened_by.get()) {
            remove(opening);
            if arch::interrupt_pending() {
                return false;
            }
        }
        self.share_no_quota();
        self.leave_owner();
        true
    }

    fn share_no_quota(&self) {
        if self.account() != Account::KERNEL {
            let result = self.account().share(None, 0, 0);
            debug_assert!(result.is_ok(), "no thread loses anything");
        }
    }

    fn leave_owner(&'static self) {
        let owner = self.ownership.owner.get();
        self.set_owner_word(Owner::None);
        if let Some(owner) = owner {
            // The limit stays; from here on the space has no owner.
            owner.account().credit(self.ownership.reserved.take());
            unlink(&owner.ownership.owned, |space| eq(space, self), |space| &space.ownership.next);
        }
    }
}

/// The account whose limit the spaces of `owner` share: none if that is the kernel's own.
fn account_to_share(owner: SpaceRef) -> Option<Account> {
    Some(owner.account()).filter(|&account| account != Account::KERNEL)
}

fn openings(ownership: &Ownership) -> impl Iterator<Item = &'static Opening> {
    // The loop is bounded, as another processor may be changing the list.
    core::iter::successors(ownership.openings.get(), |opening| opening.next.get()).take(MAX_OPENINGS)
}

/// Takes an opening out of both its lists and frees it.
fn remove(opening: &'static Opening) {
    unlink(&opening.from.ownership.openings, |other| eq(other, opening), |other| &other.next);
    unlink(&opening.to.ownership.opened_by, |other| eq(other, opening), |other| &other.next_to);
    let account = opening.from.account();
    // SAFETY: it came from this slab, and no list refers to it any more.
    unsafe { OPENINGS.free(NonNull::from(opening), account) };
}

/// Takes the element that `is_it` names out of a singly linked list.
fn unlink<T>(
    head: &SharedRef<T>,
    is_it: impl Fn(&'static T) -> bool,
    next: impl Fn(&'static T) -> &'static SharedRef<T>,
) {
    let mut link = head;
    while let Some(element) = link.get() {
        if is_it(element) {
            link.set(next(element).take());
            return;
        }
        link = next(element);
    }
}
