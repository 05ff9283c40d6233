//! The page queues: which pages are in use (active), which may soon be taken (inactive), which
//! cannot be taken because they have nowhere to go (stranded), which are free.
//!
//! All queues are under one spin lock, the last in the lock order (map, translation, object,
//! queues). A page's owner is recorded here, so that the page-out scan finds its way from a frame
//! to the object; the state of the page itself is in the object's slot.

use alloc::sync::Weak;
use alloc::vec::Vec;

use super::object::{PageKind, VmObject};
use crate::machine::{Frame, Machine};
use crate::{KernError, KernResult};

const NIL: u32 = u32::MAX;
/// How many free frames are kept in these queues rather than given back to the machine, whose
/// allocator costs more.
const FREE_KEPT: usize = 256;

/// How many free frames are taken from the machine in one call, as a power of two.
const FREE_REFILL: u32 = 5;

/// The queue in which a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The page is in no queue: it is free, wired, or not the library's.
    None,
    Active,
    Inactive,
    /// The page would have to be written, and there is no swap space for it. Page-out does not look
    /// at it until there is.
    Stranded,
}

/// The record of a frame, 32 bytes.
struct FrameRecord<M: Machine> {
    owner: Weak<VmObject<M>>,
    index: u64,
    next: u32,
    previous: u32,
    queue: Queue,
    kind: PageKind,
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    count: u32,
}

const EMPTY: List = List { head: NIL, tail: NIL, count: 0 };

/// The queues and the table of frames.
pub(crate) struct Queues<M: Machine> {
    frames: Vec<FrameRecord<M>>,
    free: Vec<Frame>,
    /// Free frames that only page-out gets: `free_reserve` of them, less those that it is using.
    reserve: Vec<Frame>,
    free_reserve: usize,
    active: List,
    inactive: List,
    stranded: List,
    wired: u32,
    /// How many frames have pages of each kind.
    kinds: [u32; PageKind::COUNT as usize],
}

impl<M: Machine> Queues<M> {
    /// The queues over all frames of a machine, `free_reserve` of which are set aside.
    pub(crate) fn new(machine: &M, free_reserve: u32) -> KernResult<Self> {
        let limit = machine.frame_limit() as usize;
        let free_reserve = free_reserve as usize;
        let (mut frames, mut free, mut reserve) = (Vec::new(), Vec::new(), Vec::new());
        frames.try_reserve_exact(limit).map_err(|_| KernError::ResourceShortage)?;
        free.try_reserve_exact(FREE_KEPT).map_err(|_| KernError::ResourceShortage)?;
        reserve.try_reserve_exact(free_reserve).map_err(|_| KernError::ResourceShortage)?;
        frames.resize_with(limit, || FrameRecord {
            owner: Weak::new(),
            index: 0,
            next: NIL,
            previous: NIL,
            queue: Queue::None,
            kind: PageKind::Anonymous,
        });
        reserve.extend((0..free_reserve).map_while(|_| machine.allocate_frames(0)));
        let [active, inactive, stranded] = [EMPTY; 3];
        Ok(Self {
            frames,
            free,
            reserve,
            free_reserve,
            active,
            inactive,
            stranded,
            wired: 0,
            kinds: [0; PageKind::COUNT as usize],
        })
    }

    /// How many frames can be allocated now without a privilege.
    pub(crate) fn free_count(&self, machine: &M) -> u32 {
        self.free.len() as u32 + machine.free_frames()
    }

    /// How many frames only page-out can allocate now.
    pub(crate) fn reserve_count(&self) -> u32 {
        self.reserve.len() as u32
    }

    /// Whether fewer frames are free than `target`. The machine is asked only if too few are kept
    /// here.
    pub(crate) fn is_low(&self, machine: &M, target: u32) -> bool {
        (self.free.len() as u32) < target && self.free_count(machine) < target
    }

    /// How many pages are active and inactive.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.active.count, self.inactive.count)
    }

    /// How many pages cannot be taken: those that have nowhere to go, and those that are wired.
    pub(crate) fn kept_counts(&self) -> (u32, u32) {
        (self.stranded.count, self.wired)
    }

    /// How many pages of this kind there are.
    pub(crate) fn count_of(&self, kind: PageKind) -> u32 {
        self.kinds[kind as usize]
    }

    /// Makes the pages inactive again that have been stranded longest, at most so many.
    pub(crate) fn try_stranded(&mut self, most: u32) {
        for _ in 0..most.min(self.stranded.count) {
            self.move_to(Frame(self.stranded.head), Queue::Inactive);
        }
    }

    /// Allocates a frame for page `index` of `owner`; the page starts active.
    #[inline(always)]
    pub(crate) fn allocate(
        &mut self,
        machine: &M,
        owner: Weak<VmObject<M>>,
        kind: PageKind,
        index: u64,
    ) -> Option<Frame> {
        let frame = match self.free.pop() {
            Some(frame) => frame,
            None => self.refill(machine)?,
        };
        self.set_owner(frame, owner, kind, index);
        self.push(frame, Queue::Active);
        Some(frame)
    }

    /// Allocates a frame like [`allocate`](Self::allocate), but from the reserve.
    pub(crate) fn allocate_reserved(
        &mut self,
        owner: Weak<VmObject<M>>,
        kind: PageKind,
        index: u64,
    ) -> Option<Frame> {
        let frame = self.reserve.pop()?;
        self.set_owner(frame, owner, kind, index);
        self.push(frame, Queue::Active);
        Some(frame)
    }

    /// Takes frames from the machine: one to use now, and more for later.
    #[cold]
    fn refill(&mut self, machine: &M) -> Option<Frame> {
        // The frames are allocated together if that many are free: neighbouring pages in
        // neighbouring frames are one change of a translation.
        if let Some(first) = machine.allocate_frames(FREE_REFILL) {
            self.free.extend((1..1 << FREE_REFILL).rev().map(|number| Frame(first.0 + number)));
            return Some(first);
        }
        let frame = machine.allocate_frames(0)?;
        self.free.extend((1..1 << FREE_REFILL).map_while(|_| machine.allocate_frames(0)));
        Some(frame)
    }

    /// Allocates a run of 2^`order` frames for as many pages, like [`allocate`](Self::allocate).
    pub(crate) fn allocate_run(
        &mut self,
        machine: &M,
        owner: &Weak<VmObject<M>>,
        kind: PageKind,
        index: u64,
        order: u32,
    ) -> Option<Frame> {
        // The free frames kept here may be what the machine lacks for a run, so they are given
        // back.
        let first = machine.allocate_frames(order).or_else(|| {
            self.give_back(machine, 0);
            machine.allocate_frames(order)
        })?;
        for number in 0..1 << order {
            let frame = Frame(first.0 + number);
            self.set_owner(frame, owner.clone(), kind, index + u64::from(number));
            self.push(frame, Queue::Active);
        }
        Some(first)
    }

    /// Frees a frame, which must not be mapped.
    pub(crate) fn free(&mut self, machine: &M, frame: Frame, wired: bool) {
        self.unlink(frame);
        self.wired -= u32::from(wired);
        let record = &mut self.frames[frame.0 as usize];
        record.owner = Weak::new();
        self.kinds[record.kind as usize] -= 1;
        if self.reserve.len() < self.free_reserve {
            return self.reserve.push(frame);
        }
        if self.free.len() == FREE_KEPT {
            self.give_back(machine, FREE_KEPT / 2);
        }
        self.free.push(frame);
    }

    /// Gives all free frames back to the machine. Nothing can be allocated afterwards.
    pub(crate) fn give_back_all(&mut self, machine: &M) {
        self.give_back(machine, 0);
        self.reserve.drain(..).for_each(|frame| machine.release_frames(frame, 0));
    }

    /// Gives the free frames kept here back to the machine, except for `keep`, so that they can
    /// form larger runs.
    pub(crate) fn give_back(&mut self, machine: &M, keep: usize) {
        self.free.drain(keep.min(self.free.len())..).for_each(|frame| machine.release_frames(frame, 0));
    }

    /// Gives a frame that is free to an object.
    #[inline]
    fn set_owner(&mut self, frame: Frame, owner: Weak<VmObject<M>>, kind: PageKind, index: u64) {
        let record = &mut self.frames[frame.0 as usize];
        (record.owner, record.kind, record.index) = (owner, kind, index);
        self.kinds[kind as usize] += 1;
    }

    /// Gives a frame that is not free to another object.
    pub(crate) fn give(&mut self, frame: Frame, owner: Weak<VmObject<M>>, kind: PageKind, index: u64) {
        self.kinds[self.frames[frame.0 as usize].kind as usize] -= 1;
        self.set_owner(frame, owner, kind, index);
    }

    pub(crate) fn owner(&self, frame: Frame) -> (Weak<VmObject<M>>, u64) {
        let record = &self.frames[frame.0 as usize];
        (record.owner.clone(), record.index)
    }

    /// Moves a frame to the end of a queue.
    pub(crate) fn move_to(&mut self, frame: Frame, queue: Queue) {
        self.unlink(frame);
        self.push(frame, queue);
    }

    /// Takes a frame out of its queue while it is wired.
    pub(crate) fn wire(&mut self, frame: Frame) {
        self.unlink(frame);
        self.wired += 1;
    }

    /// Puts a frame back into a queue when its last wiring ends.
    pub(crate) fn unwire(&mut self, frame: Frame) {
        self.wired -= 1;
        self.push(frame, Queue::Active);
    }

    /// Lists the pages that have been longest in a queue, oldest first. Returns how many there are.
    pub(crate) fn oldest(&self, queue: Queue, frames: &mut [Frame]) -> usize {
        let mut at = match queue {
            Queue::Active => self.active.head,
            Queue::Inactive => self.inactive.head,
            Queue::Stranded => self.stranded.head,
            Queue::None => NIL,
        };
        let mut count = 0;
        while at != NIL && count < frames.len() {
            frames[count] = Frame(at);
            count += 1;
            at = self.frames[at as usize].next;
        }
        count
    }

    fn list(&mut self, queue: Queue) -> Option<&mut List> {
        match queue {
            Queue::None => None,
            Queue::Active => Some(&mut self.active),
            Queue::Inactive => Some(&mut self.inactive),
            Queue::Stranded => Some(&mut self.stranded),
        }
    }

    #[inline]
    fn push(&mut self, frame: Frame, queue: Queue) {
        let Some(list) = self.list(queue) else { return };
        let previous = core::mem::replace(&mut list.tail, frame.0);
        list.count += 1;
        if previous == NIL {
            list.head = frame.0;
        } else {
            self.frames[previous as usize].next = frame.0;
        }
        let record = &mut self.frames[frame.0 as usize];
        (record.previous, record.next, record.queue) = (previous, NIL, queue);
    }

    fn unlink(&mut self, frame: Frame) {
        let FrameRecord { next, previous, queue, .. } = self.frames[frame.0 as usize];
        let Some(list) = self.list(queue) else { return };
        list.count -= 1;
        if previous == NIL {
            list.head = next;
        }
        if next == NIL {
            list.tail = previous;
        }
        if previous != NIL {
            self.frames[previous as usize].next = next;
        }
        if next != NIL {
            self.frames[next as usize].previous = previous;
        }
        self.frames[frame.0 as usize].queue = Queue::None;
    }
}
