//! Slabs: objects of one size packed into frames.
//!
//! An object's frame knows how many of its objects are in use and where the first free one is; free
//! objects of a frame are linked through a 16-bit word inside each, relative to the natural order,
//! so that a fresh (zero) frame is already a complete free list. Places are counted in cache lines,
//! or in objects that are no whole lines: so nothing is divided. Frames with free objects form a
//! list. A frame whose last object is freed goes back to the frame pool, except one that is kept
//! for the next allocation.
//!
//! A *stable* slab (thread control blocks) never gives frames back and never clears objects: a
//! holder of an old pointer finds an object of the same type there (K12). As no frame has to become
//! empty, what is freed is *at hand*: a list of its own, last in, first out, linked through a word
//! inside each, for which the frames count it as in use.
//!
//! *Nodes* (see `node`): each has its frames. The slab has the list of one node at hand, and
//! changes it when an object of another is wanted. A frame's record says in which node's list it
//! is: the node for which it was taken, even if its memory is another node's.
//!
//! *Colouring*: where objects do not fill a frame, frames start them at different cache lines; a
//! stable slab of 512-byte objects uses seven per frame in order to have eight colours, so that the
//! hot lines of different threads do not compete for the same cache sets.

mod fast;
mod layout;
mod objects;

use core::ops::DerefMut;
use core::sync::atomic::Ordering;

pub(crate) use self::fast::FastSlab;
use self::layout::Layout;
pub use self::objects::{CLEARED, ObjectSlab, Reserved};

use super::frame::{self, Record};
use super::node::{self, MAX_NODES};
use super::{Account, OutOfMemory, PAGE_SIZE, PhysAddr, Use, detour, injection};
use crate::arch;
use crate::sync::{BelowGuard, SpinLock, SpinLockGuard};

/// The list of free objects at hand is empty.
const NONE_AT_HAND: PhysAddr = PhysAddr::new(0);

/// The list of frames that have free objects.
#[derive(Clone, Copy)]
struct Frames {
    /// The first frame with free objects; 0 = none.
    partial: u32,
    /// One without used objects kept for the next allocation, also in the list; 0 = none.
    spare: u32,
}

/// The changing part of a slab, under its lock.
struct State {
    layout: Layout,
    /// The frames of the memory node from which objects are taken now.
    here: Frames,
    node: u8,
    /// The frames of the other nodes; what stands here about `node` means nothing.
    others: [Frames; MAX_NODES],
    /// The first object at hand; 0 = none.
    at_hand: PhysAddr,
    objects: u32,
    frames: u32,
    /// The machine that this state is about.
    machine: u32,
}

/// Objects of one size, found by physical address. [`ObjectSlab`] is the typed form.
pub struct Slab {
    state: SpinLock<State>,
    usage: Use,
}

impl Slab {
    /// A slab of objects of `size` bytes (4..=4096), aligned to the largest power of two that
    /// divides `size`, at most to a cache line if coloured.
    pub const fn new(usage: Use, size: u32) -> Self {
        Self { state: SpinLock::new(State::new(Layout::cleared(size))), usage }
    }

    /// Sets the object size at boot, when it depends on the processor. Only before the first
    /// allocation.
    pub fn set_size(&self, size: u32) {
        let mut state = self.lock();
        assert!(state.frames == 0 && size >= 4 && size <= PAGE_SIZE as u32);
        state.layout = Layout::cleared(size);
    }

    /// An object, charged to `account`: zeroed, or as its last user left it if the slab does not
    /// clear them.
    pub fn alloc(&self, account: Account) -> Result<PhysAddr, OutOfMemory> {
        self.alloc_with::<false>(account)
    }

    /// Like [`alloc`](Self::alloc), for a caller that has charged this and more to the account
    /// already.
    pub fn alloc_paid(&self, account: Account) -> Result<PhysAddr, OutOfMemory> {
        self.alloc_with::<true>(account)
    }

    fn alloc_with<const PAID: bool>(&self, account: Account) -> Result<PhysAddr, OutOfMemory> {
        let state = self.lock();
        let layout = state.layout;
        self.alloc_in::<PAID>(state, layout, account)
    }

    /// [`Slab::alloc`] with the lock held; `layout` is the slab's.
    #[inline(always)]
    fn alloc_in<const PAID: bool>(
        &self,
        state: impl DerefMut<Target = State>,
        layout: Layout,
        account: Account,
    ) -> Result<PhysAddr, OutOfMemory> {
        let object = self.alloc_raw::<PAID>(state, layout, account)?;
        if layout.cleared {
            layout.link(object).store(0, Ordering::Relaxed);
        }
        Ok(object)
    }

    /// An object with any contents. `PAID`: the account is charged already.
    #[inline(always)]
    fn alloc_raw<const PAID: bool>(
        &self,
        mut state: impl DerefMut<Target = State>,
        layout: Layout,
        account: Account,
    ) -> Result<PhysAddr, OutOfMemory> {
        if !detour::none() {
            Self::detour(&mut state)?;
        } else if layout.stable && state.at_hand != NONE_AT_HAND {
            if !PAID {
                account.charge(u64::from(layout.size))?;
            }
            return Ok(state.take_at_hand(layout));
        }
        if !PAID {
            account.charge(u64::from(layout.size))?;
        }
        if state.here.partial == 0
            && let Err(error) = self.grow(&mut state, account)
        {
            drop(state);
            if !PAID {
                account.credit(u64::from(layout.size));
            }
            return Err(error);
        }
        let number = state.here.partial;
        let record = frame::record(number);
        if number == state.here.spare {
            state.here.spare = 0;
        }
        let place = u32::from(record.first.get());
        let object = layout.object_at(number, place);
        let next =
            (place + layout.step()).wrapping_add(u32::from(layout.link(object).load(Ordering::Relaxed)));
        // Links are 16 bits, places in a frame 8.
        record.first.set(next as u8);
        let used = record.used.get() + 1;
        record.used.set(used);
        if u32::from(used) == layout.per_frame {
            Self::pop(&mut state, record);
        }
        state.objects += 1;
        Ok(object)
    }

    /// Returns an object.
    ///
    /// # Safety
    /// The object came from this slab, charged to `account`, and is not in use any more. (An object
    /// of a stable slab may still be read, to find out that it is gone.)
    pub unsafe fn free(&self, object: PhysAddr, account: Account) {
        let state = self.lock();
        let layout = state.layout;
        // SAFETY: the caller keeps this function's contract.
        unsafe { self.free_in(state, layout, object, account) };
    }

    /// [`Slab::free`] with the lock held; `layout` is the slab's.
    ///
    /// # Safety
    /// As for [`Slab::free`].
    #[inline(always)]
    unsafe fn free_in(
        &self,
        state: impl DerefMut<Target = State>,
        layout: Layout,
        object: PhysAddr,
        account: Account,
    ) {
        if layout.cleared {
            // SAFETY: the object is the caller's, and of this size.
            unsafe { arch::phys_to_virt(object).write_bytes(0, layout.size as usize) };
        }
        self.free_raw(state, layout, object);
        account.credit(u64::from(layout.size));
    }

    /// Like [`free`](Self::free), for a caller that puts what was charged back, with more.
    ///
    /// # Safety
    /// As for [`free`](Self::free); and the object holds zeros.
    pub unsafe fn free_paid(&self, object: PhysAddr) {
        let state = self.lock();
        let layout = state.layout;
        self.free_raw(state, layout, object);
    }

    /// Returns an object. If the slab clears objects, it holds zeros.
    #[inline(always)]
    fn free_raw(&self, mut state: impl DerefMut<Target = State>, layout: Layout, object: PhysAddr) {
        if layout.stable && detour::none() {
            return state.keep_at_hand(layout, object);
        }
        let number = (object.value() / PAGE_SIZE) as u32;
        let record = frame::record_of(object);
        let place = layout.place(number, object);
        let used = record.used.get();
        // In a full frame `first` is the stale end of its list; nothing follows that link.
        let link = u16::from(record.first.get()).wrapping_sub((place + layout.step()) as u16);
        layout.link(object).store(link, Ordering::Relaxed);
        record.first.set(place as u8);
        record.used.set(used - 1);
        if u32::from(used) == layout.per_frame {
            Self::push(&mut state, number, record);
        }
        if used == 1 && !layout.stable {
            self.release_empty(&mut state, number, layout.cleared.then_some(layout));
        }
        state.objects -= 1;
    }

    /// All objects of a frame of their own, with any contents, charged to `account`: where the
    /// frame is.
    #[inline]
    fn alloc_frame(
        &self,
        mut state: impl DerefMut<Target = State>,
        layout: Layout,
        account: Account,
    ) -> Result<PhysAddr, OutOfMemory> {
        injection::check()?;
        let cost = u64::from(layout.size * layout.per_frame);
        account.charge(cost)?;
        let node = if node::are_several() { node::wanted() } else { 0 };
        let number = frame::take_near(node, account, self.usage).inspect_err(|_| account.credit(cost))?;
        // A full frame is in no list; this says in which it comes.
        let record = frame::record(number);
        record.place.set(node.into());
        record.used.set(layout.per_frame as u16);
        state.frames += 1;
        state.objects += layout.per_frame;
        Ok(PhysAddr::new(u64::from(number) * PAGE_SIZE))
    }

    /// Returns all objects of a full frame.
    ///
    /// # Safety
    /// They came from this slab, charged to `account`, and are not in use any more.
    #[cold]
    unsafe fn free_frame(
        &self,
        mut state: impl DerefMut<Target = State>,
        layout: Layout,
        frame: PhysAddr,
        account: Account,
    ) {
        let number = (frame.value() / PAGE_SIZE) as u32;
        debug_assert!(u32::from(frame::record(number).used.get()) == layout.per_frame);
        state.frames -= 1;
        state.objects -= layout.per_frame;
        frame::free_number(number, false);
        account.credit(u64::from(layout.size * layout.per_frame));
    }

    /// Objects in use and frames held.
    pub fn usage(&self) -> (u32, u32) {
        let state = self.lock();
        (state.objects, state.frames)
    }

    #[inline(always)]
    fn lock(&self) -> SpinLockGuard<'_, State> {
        let mut state = self.state.lock();
        state.renew();
        state
    }

    /// Like [`Self::lock`], where that costs nothing.
    ///
    /// # Safety
    /// As for [`SpinLock::lock_below`].
    #[inline(always)]
    unsafe fn lock_below(&self) -> BelowGuard<'_, State> {
        // SAFETY: the caller keeps this function's contract.
        let mut state = unsafe { self.state.lock_below() };
        state.renew();
        state
    }

    /// Looks whether an allocation has to take an unusual path, before it changes anything.
    #[cold]
    fn detour(state: &mut State) -> Result<(), OutOfMemory> {
        injection::check()?;
        if node::are_several() {
            state.turn_to(node::wanted());
        }
        Ok(())
    }

    /// The list at hand is empty: takes a frame, or if there is none brings the list of another
    /// node to hand.
    #[cold]
    fn grow(&self, state: &mut State, account: Account) -> Result<(), OutOfMemory> {
        match frame::take_near(state.node, account, self.usage) {
            Ok(number) => {
                state.frames += 1;
                let record = frame::record(number);
                record.place.set(state.node.into());
                record.first.set((state.layout.start(number) / state.layout.unit) as u8);
                Self::push(state, number, record);
                Ok(())
            }
            Err(error) => {
                let has = |node: u8| node != state.node && state.others[usize::from(node)].partial != 0;
                let other = node::nearest(state.node, has).ok_or(error)?;
                state.turn_to(other);
                Ok(())
            }
        }
    }

    /// A frame has become empty: keeps it as the spare one, or frees it if there is one. `zeroed`:
    /// its objects, in this layout, hold zeros except for their links.
    #[cold]
    fn release_empty(&self, state: &mut State, number: u32, zeroed: Option<Layout>) {
        let record = frame::record(number);
        let frames = state.frames_of(record);
        if frames.spare == 0 {
            frames.spare = number;
            return;
        }
        let (next, back) = (record.link.get(), record.back.get());
        if back == 0 {
            frames.partial = next;
        } else {
            frame::record(back).link.set(next);
        }
        if next != 0 {
            frame::record(next).back.set(back);
        }
        state.frames -= 1;
        if let Some(layout) = zeroed {
            for index in 0..layout.per_frame {
                layout.link(layout.object(number, index)).store(0, Ordering::Relaxed);
            }
        }
        frame::free_number(number, zeroed.is_some());
    }

    /// Takes the first frame off the list, because it has no free object left.
    #[cold]
    fn pop(state: &mut State, record: &Record) {
        state.here.partial = record.link.get();
        if state.here.partial != 0 {
            frame::record(state.here.partial).back.set(0);
        }
    }

    #[cold]
    fn push(state: &mut State, number: u32, record: &Record) {
        let frames = state.frames_of(record);
        record.link.set(frames.partial);
        record.back.set(0);
        if frames.partial != 0 {
            frame::record(frames.partial).back.set(number);
        }
        frames.partial = number;
    }
}

impl State {
    const fn new(layout: Layout) -> Self {
        const NONE: Frames = Frames { partial: 0, spare: 0 };
        let at_hand = NONE_AT_HAND;
        Self {
            layout,
            here: NONE,
            node: 0,
            others: [NONE; MAX_NODES],
            at_hand,
            objects: 0,
            frames: 0,
            machine: 0,
        }
    }

    /// Takes the first object at hand; there is one.
    #[inline(always)]
    fn take_at_hand(&mut self, layout: Layout) -> PhysAddr {
        let object = self.at_hand;
        self.at_hand = PhysAddr::new(layout.next_at_hand(object).load(Ordering::Relaxed));
        self.objects += 1;
        object
    }

    /// Puts an object that is freed into the list at hand.
    #[inline(always)]
    fn keep_at_hand(&mut self, layout: Layout, object: PhysAddr) {
        layout.next_at_hand(object).store(self.at_hand.value(), Ordering::Relaxed);
        self.at_hand = object;
        self.objects -= 1;
    }

    /// Host tests need this: statics outlive the machine that they describe, and a new machine
    /// begins with empty ones.
    #[inline(always)]
    fn renew(&mut self) {
        if arch::IS_MODEL && self.machine != arch::machine() {
            *self = Self { machine: arch::machine(), ..Self::new(self.layout) };
        }
    }

    /// The list of a frame.
    fn frames_of(&mut self, record: &Record) -> &mut Frames {
        let node = record.place.get() as usize;
        if node == usize::from(self.node) { &mut self.here } else { &mut self.others[node] }
    }

    /// Makes the frames of `node` the ones from which objects are taken.
    fn turn_to(&mut self, node: u8) {
        if node != self.node {
            self.others[usize::from(self.node)] = self.here;
            self.here = self.others[usize::from(node)];
            self.node = node;
        }
    }
}
