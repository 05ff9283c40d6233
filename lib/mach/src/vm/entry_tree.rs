//! The ordered set of a map's ranges: a balanced tree (AVL) that also knows its gaps, threaded with
//! a list.
//!
//! Nodes live in one vector and are named by [`EntryId`]. Look-up, insertion, removal and the
//! search for a gap take logarithmic time; stepping to a neighbour takes constant time. Each node
//! holds the largest gap *before* any range of its subtree, which is what makes "the first hole of
//! this size" logarithmic.

use alloc::vec::Vec;

/// A reference to a range of a tree; valid as long as the range is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryId(u32);

const NIL: u32 = u32::MAX;

struct Node<T> {
    start: u64,
    end: u64,
    left: u32,
    right: u32,
    next: u32,
    previous: u32,
    height: u8,
    largest_gap: u64,
    /// `None` in nodes that are not in use; those are chained by `next`.
    value: Option<T>,
}

/// Disjoint ranges, each with a value, within `lowest..highest`.
pub(crate) struct EntryTree<T> {
    nodes: Vec<Node<T>>,
    root: u32,
    first: u32,
    last: u32,
    unused: u32,
    count: usize,
    lowest: u64,
    highest: u64,
    /// The result of the last look-up: the next is often near it.
    hint: u32,
}

/// The error that there is no memory for another node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl<T> EntryTree<T> {
    /// How many bytes a node takes.
    pub(crate) const NODE_BYTES: usize = size_of::<Node<T>>();

    pub(crate) fn new(lowest: u64, highest: u64) -> Self {
        Self {
            nodes: Vec::new(),
            root: NIL,
            first: NIL,
            last: NIL,
            unused: NIL,
            count: 0,
            lowest,
            highest,
            hint: NIL,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn node(&self, at: u32) -> &Node<T> {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node<T> {
        &mut self.nodes[at as usize]
    }

    fn id(at: u32) -> Option<EntryId> {
        (at != NIL).then_some(EntryId(at))
    }

    pub(crate) fn start(&self, id: EntryId) -> u64 {
        self.node(id.0).start
    }

    pub(crate) fn end(&self, id: EntryId) -> u64 {
        self.node(id.0).end
    }

    pub(crate) fn get(&self, id: EntryId) -> &T {
        self.node(id.0).value.as_ref().expect("the name of a range in the tree")
    }

    pub(crate) fn get_mut(&mut self, id: EntryId) -> &mut T {
        self.node_mut(id.0).value.as_mut().expect("the name of a range in the tree")
    }

    pub(crate) fn next(&self, id: EntryId) -> Option<EntryId> {
        Self::id(self.node(id.0).next)
    }

    pub(crate) fn previous(&self, id: EntryId) -> Option<EntryId> {
        Self::id(self.node(id.0).previous)
    }

    pub(crate) fn first(&self) -> Option<EntryId> {
        Self::id(self.first)
    }

    pub(crate) fn last(&self) -> Option<EntryId> {
        Self::id(self.last)
    }

    /// The range that contains `address`.
    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<EntryId> {
        if let Some(node) = self.nodes.get(self.hint as usize)
            && node.start <= address
            && address < node.end
        {
            return Some(EntryId(self.hint));
        }
        let found = self.find_at_or_after(address)?;
        if self.start(found) > address {
            return None;
        }
        self.hint = found.0;
        Some(found)
    }

    /// The range that contains `address`, or else the next range above it.
    pub(crate) fn find_at_or_after(&self, address: u64) -> Option<EntryId> {
        let (mut at, mut above) = (self.root, NIL);
        while at != NIL {
            let node = self.node(at);
            if address < node.end {
                above = at;
                if address >= node.start {
                    break;
                }
                at = node.left;
            } else {
                at = node.right;
            }
        }
        Self::id(above)
    }

    /// Reserves memory for `more` nodes: so many calls of [`insert`](Self::insert) cannot fail
    /// then.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let spare = self.nodes.len() - self.count;
        self.nodes.try_reserve(more.saturating_sub(spare)).map_err(|_| OutOfMemory)
    }

    /// Adds a range that overlaps no other and lies within the bounds.
    pub(crate) fn insert(&mut self, start: u64, end: u64, value: T) -> EntryId {
        debug_assert!(self.lowest <= start && start < end && end <= self.highest);
        let next = self.find_at_or_after(start).map_or(NIL, |id| id.0);
        debug_assert!(next == NIL || self.node(next).start >= end, "ranges do not overlap");
        let previous = if next == NIL { self.last } else { self.node(next).previous };
        let node = Node {
            start,
            end,
            left: NIL,
            right: NIL,
            next,
            previous,
            height: 1,
            largest_gap: 0,
            value: Some(value),
        };
        let at = match self.unused {
            NIL => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
            unused => {
                self.unused = self.node(unused).next;
                self.nodes[unused as usize] = node;
                unused
            }
        };
        match previous {
            NIL => self.first = at,
            previous => self.node_mut(previous).next = at,
        }
        match next {
            NIL => self.last = at,
            next => self.node_mut(next).previous = at,
        }
        self.count += 1;
        // The gap before the next range has changed, too. The new leaf lies below the node of the
        // next range, and all nodes on the path to it are recomputed.
        self.root = self.insert_below(self.root, at);
        EntryId(at)
    }

    /// Adds a range above all others, to the list only: [`balance_all`](Self::balance_all) must
    /// follow before any look-up. For building a whole tree; only ranges added so may be in it.
    pub(crate) fn append(&mut self, start: u64, end: u64, value: T) {
        let at = self.nodes.len() as u32;
        let previous = core::mem::replace(&mut self.last, at);
        debug_assert!(self.count == self.nodes.len() && self.lowest <= start && end <= self.highest);
        match previous {
            NIL => self.first = at,
            previous => self.node_mut(previous).next = at,
        }
        self.nodes.push(Node {
            start,
            end,
            left: NIL,
            right: NIL,
            next: NIL,
            previous,
            height: 1,
            largest_gap: 0,
            value: Some(value),
        });
        self.count += 1;
    }

    /// Builds the tree from ranges that were all added by [`append`](Self::append).
    pub(crate) fn balance_all(&mut self) {
        self.root = self.balance_range(0, self.nodes.len() as u32);
    }

    fn balance_range(&mut self, from: u32, to: u32) -> u32 {
        if from == to {
            return NIL;
        }
        let middle = from.midpoint(to);
        let left = self.balance_range(from, middle);
        let right = self.balance_range(middle + 1, to);
        let node = self.node_mut(middle);
        (node.left, node.right) = (left, right);
        self.refresh(middle);
        middle
    }

    /// Removes all ranges, in no particular order. Yields the size and value of each.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, T)> {
        let empty = Self::new(self.lowest, self.highest);
        let nodes = core::mem::replace(self, empty).nodes;
        nodes.into_iter().filter_map(|node| Some((node.end - node.start, node.value?)))
    }

    /// Removes a range, and returns its value.
    pub(crate) fn remove(&mut self, id: EntryId) -> T {
        let Node { start, next, previous, .. } = *self.node(id.0);
        match previous {
            NIL => self.first = next,
            previous => self.node_mut(previous).next = next,
        }
        match next {
            NIL => self.last = previous,
            next => self.node_mut(next).previous = previous,
        }
        self.root = self.remove_below(self.root, start);
        if self.hint == id.0 {
            self.hint = NIL;
        }
        self.count -= 1;
        let unused = self.unused;
        let node = self.node_mut(id.0);
        // The range is empty: no hint or search can find it.
        (node.start, node.end, node.next) = (0, 0, unused);
        let value = node.value.take();
        self.unused = id.0;
        value.expect("the name of a range in the tree")
    }

    /// Moves the bounds of a range, which must not overlap its neighbours.
    pub(crate) fn resize(&mut self, id: EntryId, start: u64, end: u64) {
        debug_assert!(start < end);
        debug_assert!(self.previous(id).is_none_or(|previous| self.end(previous) <= start));
        debug_assert!(self.next(id).is_none_or(|next| end <= self.start(next)));
        let node = self.node_mut(id.0);
        (node.start, node.end) = (start, end);
        let next = node.next;
        self.refresh_path(start);
        if next != NIL {
            self.refresh_path(self.node(next).start);
        }
    }

    /// The lowest address at or above `from` of a free range of `size` bytes that ends at or below
    /// `to`, where the address is a multiple of `alignment` (a power of two).
    pub(crate) fn find_gap_above(&self, from: u64, to: u64, size: u64, alignment: u64) -> Option<u64> {
        let (from, to) = (from.max(self.lowest), to.min(self.highest));
        let fits = |start: u64, end: u64| {
            let start = start.max(from).checked_next_multiple_of(alignment)?;
            (start.checked_add(size)? <= end.min(to)).then_some(start)
        };
        let end_of_last = if self.last == NIL { self.lowest } else { self.node(self.last).end };
        self.lowest_gap(self.root, from, size, &fits).or_else(|| fits(end_of_last, self.highest))
    }

    /// Finds a free range as [`find_gap_above`](Self::find_gap_above) does, but at the highest such
    /// address.
    pub(crate) fn find_gap_below(&self, from: u64, to: u64, size: u64, alignment: u64) -> Option<u64> {
        let (from, to) = (from.max(self.lowest), to.min(self.highest));
        let fits = |start: u64, end: u64| {
            let place = end.min(to).checked_sub(size)? & !(alignment - 1);
            (place >= start.max(from)).then_some(place)
        };
        let end_of_last = if self.last == NIL { self.lowest } else { self.node(self.last).end };
        fits(end_of_last, self.highest).or_else(|| self.highest_gap(self.root, to, size, &fits))
    }

    fn lowest_gap(
        &self,
        at: u32,
        from: u64,
        size: u64,
        fits: &impl Fn(u64, u64) -> Option<u64>,
    ) -> Option<u64> {
        if at == NIL || self.node(at).largest_gap < size {
            return None;
        }
        let node = self.node(at);
        let left = if node.start > from { self.lowest_gap(node.left, from, size, fits) } else { None };
        left.or_else(|| fits(self.gap_start(at), node.start))
            .or_else(|| self.lowest_gap(node.right, from, size, fits))
    }

    fn highest_gap(
        &self,
        at: u32,
        to: u64,
        size: u64,
        fits: &impl Fn(u64, u64) -> Option<u64>,
    ) -> Option<u64> {
        if at == NIL || self.node(at).largest_gap < size {
            return None;
        }
        let node = self.node(at);
        let right = if node.end < to { self.highest_gap(node.right, to, size, fits) } else { None };
        right
            .or_else(|| fits(self.gap_start(at), node.start))
            .or_else(|| self.highest_gap(node.left, to, size, fits))
    }

    /// The start of the gap before a range.
    fn gap_start(&self, at: u32) -> u64 {
        match self.node(at).previous {
            NIL => self.lowest,
            previous => self.node(previous).end,
        }
    }

    fn height(&self, at: u32) -> u8 {
        if at == NIL { 0 } else { self.node(at).height }
    }

    fn gap(&self, at: u32) -> u64 {
        if at == NIL { 0 } else { self.node(at).largest_gap }
    }

    /// Recomputes what a node stores about its subtree.
    fn refresh(&mut self, at: u32) {
        let node = self.node(at);
        let own = node.start - self.gap_start(at);
        let largest_gap = own.max(self.gap(node.left)).max(self.gap(node.right));
        let height = 1 + self.height(node.left).max(self.height(node.right));
        let node = self.node_mut(at);
        (node.largest_gap, node.height) = (largest_gap, height);
    }

    /// Recomputes the nodes from the root to the range at `start`.
    fn refresh_path(&mut self, start: u64) {
        self.refresh_below(self.root, start);
    }

    fn refresh_below(&mut self, at: u32, start: u64) {
        if at == NIL {
            return;
        }
        let node = self.node(at);
        if start < node.start {
            self.refresh_below(node.left, start);
        } else if start > node.start {
            self.refresh_below(node.right, start);
        }
        self.refresh(at);
    }

    fn insert_below(&mut self, at: u32, new: u32) -> u32 {
        if at == NIL {
            self.refresh(new);
            return new;
        }
        if self.node(new).start < self.node(at).start {
            let left = self.insert_below(self.node(at).left, new);
            self.node_mut(at).left = left;
        } else {
            let right = self.insert_below(self.node(at).right, new);
            self.node_mut(at).right = right;
        }
        self.balance(at)
    }

    /// Removes the range at `start` from a subtree. Returns the new root of the subtree.
    fn remove_below(&mut self, at: u32, start: u64) -> u32 {
        if at == NIL {
            return NIL;
        }
        let Node { start: own, left, right, .. } = *self.node(at);
        if start < own {
            let left = self.remove_below(left, start);
            self.node_mut(at).left = left;
        } else if start > own {
            let right = self.remove_below(right, start);
            self.node_mut(at).right = right;
        } else {
            // The gap before the next range has changed. The next range is in one of three places:
            // above, if there is nothing to the right, and then it is refreshed on the way back; to
            // the right, if there is nothing to the left, as a balanced tree then has a single
            // range there; otherwise it takes this one's place.
            if right == NIL {
                return left;
            }
            if left == NIL {
                self.refresh(right);
                return right;
            }
            let mut successor = right;
            while self.node(successor).left != NIL {
                successor = self.node(successor).left;
            }
            let right = self.remove_below(right, self.node(successor).start);
            let node = self.node_mut(successor);
            (node.left, node.right) = (left, right);
            return self.balance(successor);
        }
        self.balance(at)
    }

    fn balance(&mut self, at: u32) -> u32 {
        let Node { left, right, .. } = *self.node(at);
        if self.height(left) > self.height(right) + 1 {
            if self.height(self.node(left).right) > self.height(self.node(left).left) {
                let left = self.rotate_left(left);
                self.node_mut(at).left = left;
            }
            self.rotate_right(at)
        } else if self.height(right) > self.height(left) + 1 {
            if self.height(self.node(right).left) > self.height(self.node(right).right) {
                let right = self.rotate_right(right);
                self.node_mut(at).right = right;
            }
            self.rotate_left(at)
        } else {
            self.refresh(at);
            at
        }
    }

    fn rotate_left(&mut self, at: u32) -> u32 {
        let right = self.node(at).right;
        self.node_mut(at).right = self.node(right).left;
        self.node_mut(right).left = at;
        self.refresh(at);
        self.refresh(right);
        right
    }

    fn rotate_right(&mut self, at: u32) -> u32 {
        let left = self.node(at).left;
        self.node_mut(at).left = self.node(left).right;
        self.node_mut(left).right = at;
        self.refresh(at);
        self.refresh(left);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    const TOP: u64 = 1000;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64),
        Remove(u64),
        Shrink(u64, u64),
        Gap(u64, u64, u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..TOP, 1..20u64).prop_map(|(start, size)| Step::Insert(start, size)),
            2 => (0..TOP).prop_map(Step::Remove),
            1 => (0..TOP, 1..10u64).prop_map(|(at, by)| Step::Shrink(at, by)),
            1 => (0..TOP, 1..60u64, 0..4u32).prop_map(|(from, size, shift)| Step::Gap(from, size, shift)),
        ];
        proptest::collection::vec(step, 0..300)
    }

    fn is_free(model: &BTreeMap<u64, u64>, start: u64, end: u64) -> bool {
        model.range(..end).next_back().is_none_or(|(_, &last)| last <= start) && end <= TOP
    }

    fn check(tree: &EntryTree<u64>, at: u32) -> u8 {
        if at == NIL {
            return 0;
        }
        let node = tree.node(at);
        let (left, right) = (check(tree, node.left), check(tree, node.right));
        assert!(left.abs_diff(right) <= 1 && node.height == 1 + left.max(right), "balanced");
        let own = node.start - tree.gap_start(at);
        assert_eq!(node.largest_gap, own.max(tree.gap(node.left)).max(tree.gap(node.right)));
        node.height
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_map_with_gaps(steps in steps()) {
            let (mut tree, mut model) = (EntryTree::new(0, TOP), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(start, size) if is_free(&model, start, start + size) => {
                        tree.reserve(1).unwrap();
                        tree.insert(start, start + size, start);
                        model.insert(start, start + size);
                    }
                    Step::Insert(..) => {}
                    Step::Remove(at) => {
                        let expected = model.range(..=at).next_back().filter(|(_, end)| at < **end);
                        let expected = expected.map(|(&start, _)| start);
                        let found = tree.find(at);
                        prop_assert_eq!(found.map(|id| tree.start(id)), expected);
                        if let Some(id) = found {
                            tree.remove(id);
                            model.remove(&expected.unwrap());
                        }
                    }
                    Step::Shrink(at, by) => {
                        if let Some(id) = tree.find(at) {
                            let (start, end) = (tree.start(id), tree.end(id));
                            if end - start > by {
                                tree.resize(id, start + by, end);
                                model.remove(&start);
                                model.insert(start + by, end);
                            }
                        }
                    }
                    Step::Gap(from, size, shift) => {
                        let good = |&start: &u64| {
                            start.is_multiple_of(1 << shift) && start + size <= TOP && is_free(&model, start, start + size)
                        };
                        let lowest = (from..TOP).find(good);
                        prop_assert_eq!(tree.find_gap_above(from, TOP, size, 1 << shift), lowest);
                        let highest = (0..from).rev().filter(|start| start + size <= from).find(good);
                        prop_assert_eq!(tree.find_gap_below(0, from, size, 1 << shift), highest);
                    }
                }
                check(&tree, tree.root);
                prop_assert_eq!(tree.len(), model.len());
            }
            let mut copy = EntryTree::new(0, TOP);
            model.iter().for_each(|(&start, &end)| copy.append(start, end, start));
            copy.balance_all();
            check(&copy, copy.root);
            for at in 0..TOP {
                prop_assert_eq!(copy.find(at).map(|id| *copy.get(id)), tree.find(at).map(|id| tree.start(id)));
            }
            prop_assert_eq!(copy.drain().count(), model.len());
            let mut at = tree.first();
            for (&start, &end) in &model {
                let id = at.unwrap();
                prop_assert_eq!((tree.start(id), tree.end(id)), (start, end));
                at = tree.next(id);
            }
            prop_assert_eq!(at, None);
        }
    }
}
