//! Shoot-downs: a processor that changes page tables tells the processors that may remember what
//! was there, and waits for their answers. Model-checked with loom.
use super::SpinLock;
#[cfg(not(loom))]
use core::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

/// What a processor lets others see of the page table that it uses, by the address of the root; 0 =
/// the kernel's own. Only that processor changes it. The fast path in assembly changes the first
/// word alone: its sender is at this processor, so the table that it leaves is not freed meanwhile.
#[repr(C)]
pub struct ActiveRoot {
    active: AtomicU64,
    /// The root table before the active one, until the processor does not use it any more.
    leaving: AtomicU64,
}

impl ActiveRoot {
    /// The kernel's own page tables are loaded.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { active: AtomicU64::new(0), leaving: AtomicU64::new(0) }
    }

    /// The kernel's own page tables are loaded.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { active: AtomicU64::new(0), leaving: AtomicU64::new(0) }
    }

    /// Whether the processor may remember what the page table with this root says: it has to be
    /// told what changes there. A processor that leaves the table forgets its content by itself,
    /// before it uses it again.
    #[inline]
    pub fn is(&self, root: u64) -> bool {
        // Acquire: what the processor did before it left is over.
        self.active.load(Ordering::Acquire) == root
    }

    /// Whether the processor may look at the page table with this root at all: it cannot be freed
    /// yet.
    #[inline]
    pub fn is_held(&self, root: u64) -> bool {
        // Acquire: a processor that is seen to use another one has either left this one, or says in
        // `leaving` that it has not. `leaving` is read after `active`, and written before it.
        self.active.load(Ordering::Acquire) == root || self.leaving.load(Ordering::Acquire) == root
    }

    /// Whether other page tables than the kernel's own are loaded.
    #[inline]
    pub fn is_any(&self) -> bool {
        !self.is(0)
    }

    /// Makes `root` the active root table. `load` loads it; that is a complete barrier.
    #[inline]
    pub fn change(&self, root: u64, load: impl FnOnce()) {
        self.leaving.store(self.active.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release: a processor that sees this sees that the old one is still used. The store comes
        // before the table is loaded: a processor that does not see it has changed the table before
        // that.
        self.active.store(root, Ordering::Release);
        load();
        // Release: the processor has ended all uses of the space that it leaves.
        self.leaving.store(0, Ordering::Release);
    }

    /// Makes the kernel's own root table the active one, which `load` loads.
    #[inline]
    pub fn unload(&self, load: impl FnOnce()) {
        if self.active.load(Ordering::Relaxed) != 0 {
            load();
            // Release: the processor has ended all uses of the space before.
            self.active.store(0, Ordering::Release);
        }
    }
}

impl Default for ActiveRoot {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a processor has a request to carry out.
pub struct Requested(AtomicBool);

impl Requested {
    /// The processor has no request.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The processor has no request.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether the processor has a request, as far as this can be seen without ordering.
    #[inline]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Requested {
    fn default() -> Self {
        Self::new()
    }
}

/// One request at a time: its sender holds the lock, interrupts the processors that it concerns and
/// waits for all of them. A processor that waits for the lock carries out the requests of others
/// meanwhile ([`SpinLock`]), so there is no circle of waiting processors.
pub struct ShootDown {
    sending: SpinLock<()>,
    /// How many processors have not carried out the request.
    waiting: AtomicU32,
}

impl ShootDown {
    /// No request.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { sending: SpinLock::new(()), waiting: AtomicU32::new(0) }
    }

    /// No request.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { sending: SpinLock::new(()), waiting: AtomicU32::new(0) }
    }

    /// Asks those of the `others` that the request `concerns` to carry it out, and waits until they
    /// have. `write` notes what the request is; `interrupt` makes a processor look at its `asked`
    /// flag. Returns how many processors were asked.
    pub fn send<'a, P: Copy>(
        &self,
        others: impl Iterator<Item = P> + Clone,
        concerns: impl Fn(P) -> bool,
        write: impl FnOnce(),
        asked: impl Fn(P) -> &'a Requested,
        interrupt: impl Fn(P),
    ) -> u32 {
        // The changes come before the look at which processors may remember them
        // (`ActiveRoot::change`).
        fence(Ordering::SeqCst);
        if !others.clone().any(&concerns) {
            return 0;
        }
        let _alone = self.sending.lock();
        write();
        let mut count = 0;
        for other in others.filter(|other| concerns(*other)) {
            count += 1;
            self.waiting.fetch_add(1, Ordering::Relaxed);
            // Release: the request is written completely before.
            asked(other).0.store(true, Ordering::Release);
            interrupt(other);
        }
        // Acquire: what the others did before they answered is over.
        while self.waiting.load(Ordering::Acquire) != 0 {
            spin_loop();
        }
        count
    }

    /// Lets the executing processor, if it is `asked`, `carry_out` the request.
    pub fn serve(&self, asked: &Requested, carry_out: impl FnOnce()) {
        // Acquire: the request is read after the flag.
        if asked.0.swap(false, Ordering::Acquire) {
            carry_out();
            // Release: the request has been carried out.
            self.waiting.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Default for ShootDown {
    fn default() -> Self {
        Self::new()
    }
}
