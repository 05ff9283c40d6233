//! The pages of an object: a sparse array from page number to [`Slot`].
//!
//! The first few pages are kept in place; beyond that it is a radix tree with 64 slots a leaf, so
//! that a look-up is a handful of loads however large the object, and runs of pages are walked
//! without touching what is empty.

use alloc::boxed::Box;

use crate::machine::{Frame, Machine, Protection};
use crate::{KernError, KernResult};

/// The lowest bit of the pager's lock in a slot's flags.
const LOCK_SHIFT: u32 = 8;

bitflags::bitflags! {
    /// Properties of one page of an object.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct SlotFlags: u16 {
        /// A page-in owns the page: its contents are not valid yet. All other users wait.
        const BUSY = 1;
        /// There is no frame: the contents are with the object's pager. Only in objects that the
        /// library made itself.
        const PAGED_OUT = 1 << 1;
        /// The contents are newer than those with the pager, or the pager has none.
        const DIRTY = 1 << 2;
        /// A page-out reads the frame. The page stays where it is, and may be used.
        const CLEANING = 1 << 3;
        /// The frame may be mapped writable somewhere.
        const WRITABLE = 1 << 4;
        /// The frame may be mapped somewhere. If this is not set, no mapping has to be revoked: a
        /// file that is only read and written through the page cache needs no system calls.
        const MAPPED = 1 << 5;
        /// The pager keeps no copy of the page, which must be returned to it.
        const PRECIOUS = 1 << 6;
        /// The page was used since page-out last looked, in a way that the machine does not see.
        /// Page-out passes it over once.
        const REFERENCED = 1 << 7;
        /// The accesses that the pager forbids: the bits of a [`Protection`], see
        /// [`Slot::prohibited`].
        const LOCKED = 7 << LOCK_SHIFT;
    }
}

/// The record of one page of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The page's frame; undefined if `PAGED_OUT` is set.
    pub(crate) frame: Frame,
    /// How many wirings keep the page in memory.
    pub(crate) wired: u16,
    pub(crate) flags: SlotFlags,
}

impl Slot {
    pub(crate) fn new(frame: Frame, flags: SlotFlags) -> Self {
        Self { frame, wired: 0, flags }
    }

    /// The slot of a page whose contents only the pager has.
    pub(crate) fn paged_out() -> Self {
        Self::new(Frame(u32::MAX), SlotFlags::PAGED_OUT)
    }

    pub(crate) fn has(&self, flags: SlotFlags) -> bool {
        self.flags.intersects(flags)
    }

    pub(crate) fn is_resident(&self) -> bool {
        !self.has(SlotFlags::PAGED_OUT)
    }

    /// The accesses that the pager forbids for now.
    pub(crate) fn prohibited(&self) -> Protection {
        Protection::from_bits_truncate((self.flags.bits() >> LOCK_SHIFT) as u8)
    }

    /// Sets the accesses that the pager forbids.
    pub(crate) fn prohibit(&mut self, access: Protection) {
        self.flags.remove(SlotFlags::LOCKED);
        self.flags.insert(SlotFlags::from_bits_truncate(u16::from(access.bits()) << LOCK_SHIFT));
    }
}

const BITS: u32 = 6;
const FANOUT: usize = 1 << BITS;
const FEW: usize = 4;
const EMPTY: Slot = Slot { frame: Frame(u32::MAX), wired: 0, flags: SlotFlags::empty() };

struct Leaf {
    /// The mask of the slots that are in use.
    used: u64,
    slots: [Slot; FANOUT],
}

struct Branch {
    used: u64,
    children: [Option<Box<Node>>; FANOUT],
}

enum Node {
    Leaf(Leaf),
    Branch(Branch),
}

/// The size in bytes that is accounted for a node.
const NODE_BYTES: usize = size_of::<Node>();

enum Shape {
    Few([(u64, Slot); FEW]),
    /// `height` 0 means that the root is a leaf.
    Tree {
        root: Box<Node>,
        height: u32,
    },
}

/// A sparse array of slots. Memory for nodes is reserved with the machine, and given back by
/// [`clear`](Self::clear).
pub(crate) struct PageIndex {
    count: usize,
    shape: Shape,
}

/// A place in the index where no slot is.
pub(crate) struct Vacancy<'a> {
    place: Place<'a>,
    count: &'a mut usize,
}

enum Place<'a> {
    Few(&'a mut (u64, Slot), u64),
    Leaf(&'a mut Leaf, usize),
}

impl Vacancy<'_> {
    /// Puts a slot into the place.
    #[inline]
    pub(crate) fn fill(self, slot: Slot) {
        match self.place {
            Place::Few(place, index) => *place = (index, slot),
            Place::Leaf(leaf, at) => {
                leaf.used |= 1 << at;
                leaf.slots[at] = slot;
            }
        }
        *self.count += 1;
    }
}

impl Node {
    fn new<M: Machine>(machine: &M, height: u32) -> KernResult<Box<Self>> {
        if !machine.reserve_memory(NODE_BYTES) {
            return Err(KernError::ResourceShortage);
        }
        Ok(Box::new(match height {
            0 => Self::Leaf(Leaf { used: 0, slots: [EMPTY; FANOUT] }),
            _ => Self::Branch(Branch { used: 0, children: [const { None }; FANOUT] }),
        }))
    }

    fn used(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.used,
            Self::Branch(branch) => branch.used,
        }
    }

    fn get(&mut self, index: u64, height: u32) -> Option<&mut Slot> {
        let at = (index >> (height * BITS)) as usize % FANOUT;
        match self {
            Self::Leaf(leaf) => (leaf.used & (1 << at) != 0).then(|| &mut leaf.slots[at]),
            Self::Branch(branch) => branch.children[at].as_mut()?.get(index, height - 1),
        }
    }

    fn insert<M: Machine>(&mut self, machine: &M, index: u64, height: u32, slot: Slot) -> KernResult {
        let at = (index >> (height * BITS)) as usize % FANOUT;
        match self {
            Self::Leaf(leaf) => {
                leaf.used |= 1 << at;
                leaf.slots[at] = slot;
                Ok(())
            }
            Self::Branch(branch) => {
                let child = match &mut branch.children[at] {
                    Some(child) => child,
                    empty => {
                        branch.used |= 1 << at;
                        empty.insert(
                            Node::new(machine, height - 1).inspect_err(|_| branch.used &= !(1 << at))?,
                        )
                    }
                };
                let result = child.insert(machine, index, height - 1, slot);
                if child.used() == 0 {
                    branch.remove_child(machine, at);
                }
                result
            }
        }
    }

    fn remove<M: Machine>(&mut self, machine: &M, index: u64, height: u32) -> Option<Slot> {
        let at = (index >> (height * BITS)) as usize % FANOUT;
        match self {
            Self::Leaf(leaf) => (leaf.used & (1 << at) != 0).then(|| {
                leaf.used &= !(1 << at);
                leaf.slots[at]
            }),
            Self::Branch(branch) => {
                let child = branch.children[at].as_mut()?;
                let slot = child.remove(machine, index, height - 1);
                if child.used() == 0 {
                    branch.remove_child(machine, at);
                }
                slot
            }
        }
    }

    /// The first slot in use within this node, at `index` or after it.
    fn next(&self, index: u64, height: u32) -> Option<(u64, Slot)> {
        let at = (index >> (height * BITS)) as usize % FANOUT;
        let mut candidates = self.used() & (u64::MAX << at);
        let base = index & !((1u64 << (height * BITS)) * FANOUT as u64).wrapping_sub(1);
        while candidates != 0 {
            let place = candidates.trailing_zeros() as usize;
            let first = base | (place as u64) << (height * BITS);
            match self {
                Self::Leaf(leaf) => return Some((first, leaf.slots[place])),
                Self::Branch(branch) => {
                    let found = branch.children[place]
                        .as_ref()
                        .and_then(|child| child.next(first.max(index), height - 1));
                    if found.is_some() {
                        return found;
                    }
                }
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// The first page of a node that has one, or with `last` the last one. `base` is the first page
    /// that the node can have.
    fn end_page(&self, base: u64, height: u32, last: bool) -> u64 {
        let used = self.used();
        let at = if last { used.checked_ilog2().unwrap_or(0) } else { used.trailing_zeros() % 64 };
        let first = base + (u64::from(at) << (height * BITS));
        match self {
            Self::Branch(Branch { children, .. }) => {
                let child = children[at as usize].as_ref();
                child.map_or(first, |child| child.end_page(first, height - 1, last))
            }
            Self::Leaf(_) => first,
        }
    }

    /// How many slots are in use from `start` to before `end` within this node, whose first page is
    /// `base`.
    fn count_in(&self, base: u64, height: u32, start: u64, end: u64) -> u64 {
        match self {
            Self::Leaf(leaf) => {
                let below = |page: u64| match page.saturating_sub(base) {
                    all if all >= FANOUT as u64 => u64::MAX,
                    some => (1 << some) - 1,
                };
                u64::from((leaf.used & below(end) & !below(start)).count_ones())
            }
            Self::Branch(branch) => {
                let span = 1u64 << (height * BITS);
                let (mut used, mut count) = (branch.used, 0);
                while used != 0 {
                    let place = used.trailing_zeros();
                    used &= used - 1;
                    let first = base + u64::from(place) * span;
                    if first < end
                        && start < first.saturating_add(span)
                        && let Some(child) = &branch.children[place as usize]
                    {
                        count += child.count_in(first, height - 1, start, end);
                    }
                }
                count
            }
        }
    }

    fn drain<M: Machine>(self: Box<Self>, machine: &M, with: &mut impl FnMut(Slot)) {
        let mut used = self.used();
        match *self {
            Self::Leaf(ref leaf) => {
                while used != 0 {
                    with(leaf.slots[used.trailing_zeros() as usize]);
                    used &= used - 1;
                }
            }
            Self::Branch(branch) => {
                branch.children.into_iter().flatten().for_each(|child| child.drain(machine, with));
            }
        }
        machine.unreserve_memory(NODE_BYTES);
    }

    fn release<M: Machine>(self: Box<Self>, machine: &M) {
        self.drain(machine, &mut |_| {});
    }
}

impl Branch {
    fn remove_child<M: Machine>(&mut self, machine: &M, at: usize) {
        self.used &= !(1 << at);
        if let Some(child) = self.children[at].take() {
            child.release(machine);
        }
    }
}

/// The highest page number plus one that a tree of this height can hold.
fn capacity(height: u32) -> u64 {
    1u64.checked_shl((height + 1) * BITS).unwrap_or(u64::MAX)
}

impl PageIndex {
    pub(crate) const fn new() -> Self {
        Self { count: 0, shape: Shape::Few([(0, EMPTY); FEW]) }
    }

    /// How many slots are in use.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<Slot> {
        match &self.shape {
            Shape::Few(few) => few[..self.count].iter().find(|(at, _)| *at == index).map(|(_, slot)| *slot),
            Shape::Tree { root, height } => {
                if index >= capacity(*height) {
                    return None;
                }
                let mut node = root;
                let mut height = *height;
                loop {
                    let at = (index >> (height * BITS)) as usize % FANOUT;
                    match &**node {
                        Node::Leaf(leaf) => return (leaf.used & (1 << at) != 0).then(|| leaf.slots[at]),
                        Node::Branch(branch) => node = branch.children[at].as_ref()?,
                    }
                    height -= 1;
                }
            }
        }
    }

    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut Slot> {
        match &mut self.shape {
            Shape::Few(few) => {
                few[..self.count].iter_mut().find(|(at, _)| *at == index).map(|(_, slot)| slot)
            }
            Shape::Tree { root, height } if index < capacity(*height) => root.get(index, *height),
            Shape::Tree { .. } => None,
        }
    }

    /// The place of a slot that is not in use, if it exists without allocating memory.
    #[inline(always)]
    pub(crate) fn vacancy(&mut self, index: u64) -> Option<Vacancy<'_>> {
        let place = match &mut self.shape {
            Shape::Few(few) => {
                if few[..self.count].iter().any(|(at, _)| *at == index) {
                    return None;
                }
                Place::Few(few.get_mut(self.count)?, index)
            }
            Shape::Tree { root, height } => {
                if index >= capacity(*height) {
                    return None;
                }
                let (mut node, mut height) = (&mut **root, *height);
                loop {
                    let at = (index >> (height * BITS)) as usize % FANOUT;
                    match node {
                        Node::Leaf(leaf) if leaf.used & (1 << at) == 0 => break Place::Leaf(leaf, at),
                        Node::Leaf(_) => return None,
                        Node::Branch(branch) => node = branch.children[at].as_mut()?,
                    }
                    height -= 1;
                }
            }
        };
        Some(Vacancy { place, count: &mut self.count })
    }

    /// Adds a slot where none is. After an error nothing has changed.
    pub(crate) fn insert<M: Machine>(&mut self, machine: &M, index: u64, slot: Slot) -> KernResult {
        debug_assert!(self.get(index).is_none(), "a page twice in one object");
        match &mut self.shape {
            Shape::Few(few) if self.count < FEW => {
                few[self.count] = (index, slot);
                self.count += 1;
                return Ok(());
            }
            Shape::Few(few) => {
                let few = *few;
                let mut tree =
                    Self { count: 0, shape: Shape::Tree { root: Node::new(machine, 0)?, height: 0 } };
                for (at, slot) in few {
                    if let Err(error) = tree.insert(machine, at, slot) {
                        tree.clear(machine);
                        return Err(error);
                    }
                }
                *self = tree;
            }
            Shape::Tree { .. } => {}
        }
        let Shape::Tree { root, height } = &mut self.shape else { unreachable!("made a tree above") };
        while index >= capacity(*height) {
            let old = core::mem::replace(root, Node::new(machine, *height + 1)?);
            if let Node::Branch(branch) = &mut **root {
                branch.used = 1;
                branch.children[0] = Some(old);
            }
            *height += 1;
        }
        root.insert(machine, index, *height, slot)?;
        self.count += 1;
        Ok(())
    }

    pub(crate) fn remove<M: Machine>(&mut self, machine: &M, index: u64) -> Option<Slot> {
        match &mut self.shape {
            Shape::Few(few) => {
                let place = few[..self.count].iter().position(|(at, _)| *at == index)?;
                self.count -= 1;
                few.swap(place, self.count);
                Some(few[self.count].1)
            }
            Shape::Tree { root, height } => {
                if index >= capacity(*height) {
                    return None;
                }
                let slot = root.remove(machine, index, *height)?;
                self.count -= 1;
                if self.count == 0 {
                    self.clear(machine);
                }
                Some(slot)
            }
        }
    }

    /// The first slot in use at `index` or after it.
    pub(crate) fn next(&self, index: u64) -> Option<(u64, Slot)> {
        match &self.shape {
            Shape::Few(few) => {
                few[..self.count].iter().filter(|(at, _)| *at >= index).min_by_key(|(at, _)| *at).copied()
            }
            Shape::Tree { root, height } if index < capacity(*height) => root.next(index, *height),
            Shape::Tree { .. } => None,
        }
    }

    /// How many slots are in use from `start` to before `end`.
    pub(crate) fn count_in(&self, start: u64, end: u64) -> u64 {
        match &self.shape {
            Shape::Few(few) => {
                few[..self.count].iter().filter(|(at, _)| (start..end).contains(at)).count() as u64
            }
            // All slots lie in most ranges: that of a mapping of the whole object.
            Shape::Tree { root, height }
                if start <= root.end_page(0, *height, false) && root.end_page(0, *height, true) < end =>
            {
                self.count as u64
            }
            Shape::Tree { root, height } => root.count_in(0, *height, start, end),
        }
    }

    /// The slots in use from `start` to before `end`, in order.
    pub(crate) fn range(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Slot)> {
        let mut from = start;
        core::iter::from_fn(move || {
            let (index, slot) = self.next(from).filter(|(index, _)| *index < end)?;
            from = index + 1;
            Some((index, slot))
        })
    }

    /// Removes and returns the only slot, if there is a single one, in the first few places.
    #[inline]
    pub(crate) fn take_only(&mut self) -> Option<Slot> {
        let Shape::Few([(_, slot), ..]) = self.shape else { return None };
        (self.count == 1).then(|| {
            self.count = 0;
            slot
        })
    }

    /// Passes all slots to `with`, removes them, and unreserves the nodes' memory.
    pub(crate) fn drain<M: Machine>(&mut self, machine: &M, mut with: impl FnMut(Slot)) {
        let count = core::mem::take(&mut self.count);
        if let Shape::Few(few) = &self.shape {
            few[..count].iter().for_each(|&(_, slot)| with(slot));
        } else if let Shape::Tree { root, .. } = core::mem::replace(self, Self::new()).shape {
            root.drain(machine, &mut with);
        }
    }

    /// Removes all slots and unreserves the nodes' memory.
    pub(crate) fn clear<M: Machine>(&mut self, machine: &M) {
        self.drain(machine, |_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::simulated::{Failures, Simulated};
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    fn slot(number: u32) -> Slot {
        Slot::new(Frame(number), SlotFlags::empty())
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, Option<u32>),
        Fill(u64),
        Remove(u64),
        Next(u64),
        Count(u64, u64),
    }

    fn page_number() -> impl Strategy<Value = u64> {
        prop_oneof![0..8u64, 0..300u64, 0..100_000u64, Just(1 << 40), (1 << 52) - 4..1u64 << 52]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (page_number(), proptest::option::weighted(0.2, 0..8u32)).prop_map(|(index, fail)| Step::Insert(index, fail)),
            2 => page_number().prop_map(Step::Fill),
            2 => page_number().prop_map(Step::Remove),
            1 => page_number().prop_map(Step::Next),
            1 => (page_number(), page_number()).prop_map(|(start, end)| Step::Count(start, end)),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_map(steps in steps()) {
            let machine = Simulated::new(1);
            let (mut index, mut model) = (PageIndex::new(), BTreeMap::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(at, fail) => {
                        if model.contains_key(&at) {
                            continue;
                        }
                        machine.inject(Failures { reserve: fail, ..Failures::default() });
                        match index.insert(&machine, at, slot(number as u32)) {
                            Ok(()) => {
                                model.insert(at, slot(number as u32));
                            }
                            Err(error) => prop_assert!(fail.is_some() && error == KernError::ResourceShortage),
                        }
                        machine.inject(Failures::default());
                    }
                    Step::Fill(at) => {
                        let before = machine.reserved();
                        let vacant = index.vacancy(at).map(|vacancy| vacancy.fill(slot(number as u32))).is_some();
                        prop_assert!(!(vacant && model.contains_key(&at)) && machine.reserved() == before);
                        if vacant {
                            model.insert(at, slot(number as u32));
                        }
                    }
                    Step::Remove(at) => prop_assert_eq!(index.remove(&machine, at), model.remove(&at)),
                    Step::Next(at) => {
                        let expected = model.range(at..).next().map(|(&at, &slot)| (at, slot));
                        prop_assert_eq!(index.next(at), expected);
                    }
                    Step::Count(start, end) => {
                        let expected = model.keys().filter(|at| (start..end).contains(at)).count();
                        prop_assert_eq!(index.count_in(start, end), expected as u64);
                    }
                }
                prop_assert_eq!(index.len(), model.len());
            }
            let all: Vec<_> = index.range(0, u64::MAX).collect();
            prop_assert_eq!(all, model.iter().map(|(&at, &slot)| (at, slot)).collect::<Vec<_>>());
            for (&at, &slot) in &model {
                prop_assert_eq!(index.get(at), Some(slot));
                prop_assert_eq!(index.get_mut(at).copied(), Some(slot));
            }
            index.clear(&machine);
            prop_assert_eq!(machine.reserved(), 0);
        }
    }
}
