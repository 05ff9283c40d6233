//! The state of every unit of a power-of-two address range: a binary trie whose leaves are aligned
//! blocks of one state.
//!
//! Requests are fpages, that is aligned blocks too, so each concerns exactly one subtree: a request
//! takes time proportional to the depth of the trie plus the number of leaves in that subtree. Two
//! equal sibling leaves become one, so the trie is as small as the states allow. Every inner node
//! stores the size of the largest free block below it, which makes the search for any block of a
//! size a single descent.
//!
//! Page faults come one after the other at neighbouring addresses, so the path to the last unit is
//! remembered. The next access descends only from the node where its path differs from that one,
//! and updates nodes upwards only as long as they change.
//!
//! Nodes come from a table that the owner of the pool provides; when it is full, requests that
//! would need more are refused and nothing changes.

use x2::ThreadId;

/// The state of a unit: whether it is available, and which thread has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A unit that is never given to any thread.
    Unavailable,
    /// Free for every thread: by a page fault, by its address, and for a request for any block.
    Conventional,
    /// Free for a thread that asks for exactly this address.
    OnRequest,
    /// A unit that is given to every thread that asks for exactly this address.
    Shared,
    /// A unit that was given to this thread.
    Owned(ThreadId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    Leaf(State),
    Inner(u32),
}

/// A node of the trie; the table given to a pool is an array of these.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    children: [Entry; 2],
    /// For each child: 1 + binary logarithm of the largest free conventional block in it, 0 = none.
    largest: [u8; 2],
}

impl Node {
    /// The node with which a new table is filled.
    pub const UNUSED: Self = Self { children: [Entry::Leaf(State::Unavailable); 2], largest: [0; 2] };
}

/// The error that the table of nodes is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfNodes;

/// The states of a range of 2^`TOP` addresses in units of 2^`UNIT`. All are unavailable at first.
#[derive(Debug)]
pub struct Pool<'a, const TOP: u32, const UNIT: u32> {
    nodes: &'a mut [Node],
    /// The first of a list of unused nodes below `fresh`, which are linked by their first child.
    unused: Option<u32>,
    /// The index of the first node that has never been used; so have those after it.
    fresh: u32,
    available: u32,
    root: Entry,
    way: Way,
}

/// The path to the last unit: inner nodes from the root on, of which the first `length` are valid.
#[derive(Debug)]
struct Way {
    address: u64,
    length: usize,
    nodes: [u32; 64],
}

impl Way {
    const NONE: Self = Self { address: 0, length: 0, nodes: [0; 64] };
}

/// The number 2^`order` - 1.
const fn mask(order: u32) -> u64 {
    if order >= 64 { u64::MAX } else { (1 << order) - 1 }
}

impl<'a, const TOP: u32, const UNIT: u32> Pool<'a, TOP, UNIT> {
    /// A pool that keeps its nodes in `nodes` (more than 2^32 are not used).
    pub fn new(nodes: &'a mut [Node]) -> Self {
        let available = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        Self {
            nodes,
            unused: None,
            fresh: 0,
            available,
            root: Entry::Leaf(State::Unavailable),
            way: Way::NONE,
        }
    }

    /// Moves the pool into a larger table.
    pub fn moved_to<'b>(self, nodes: &'b mut [Node]) -> Pool<'b, TOP, UNIT> {
        let used = self.fresh as usize;
        nodes[..used].copy_from_slice(&self.nodes[..used]);
        let length = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let available = self.available + (length - self.nodes.len() as u32);
        Pool { nodes, unused: self.unused, fresh: self.fresh, available, root: self.root, way: Way::NONE }
    }

    /// How many nodes of the table are unused.
    pub fn available_nodes(&self) -> u32 {
        self.available
    }

    /// Gives the units that lie wholly in `first ..= last` the state `state`, whatever states they
    /// had.
    pub fn set(&mut self, first: u64, last: u64, state: State) -> Result<(), OutOfNodes> {
        let first = match first.checked_add(mask(UNIT)) {
            Some(first) => first & !mask(UNIT),
            None => return Ok(()),
        };
        let last = match last.checked_add(1) {
            None => last,
            Some(end) if end & !mask(UNIT) == 0 => return Ok(()),
            Some(end) => (end & !mask(UNIT)) - 1,
        };
        if first > last {
            return Ok(());
        }
        // Two paths of nodes, one for each end of the range.
        self.need(2 * TOP)?;
        self.replace(first, last.min(mask(TOP)), &|_| state);
        Ok(())
    }

    /// The state of the unit at `address`.
    pub fn state(&self, address: u64) -> State {
        let mut entry = self.root;
        let mut order = TOP;
        loop {
            match entry {
                Entry::Leaf(state) => return state,
                Entry::Inner(index) => {
                    order -= 1;
                    entry = self.nodes[index as usize].children[(address >> order & 1) as usize];
                }
            }
        }
    }

    /// The state of the unit at `address`; faster than [`Pool::state`] if it is near the last unit.
    pub fn next_state(&mut self, address: u64) -> State {
        match self.go(address) {
            Entry::Leaf(state) => state,
            Entry::Inner(_) => unreachable!("a way ends at a leaf"),
        }
    }

    /// Descends to the leaf of `address`, from the node where its path differs from the remembered
    /// one.
    fn go(&mut self, address: u64) -> Entry {
        let address = address & mask(TOP);
        let common =
            (((address ^ self.way.address) << (64 - TOP)) | (mask(64 - TOP))).leading_zeros() as usize;
        let mut depth = self.way.length.min(common + 1);
        let mut entry = match depth {
            0 => self.root,
            _ => self.child(self.way.nodes[depth - 1], depth - 1, address),
        };
        while let Entry::Inner(index) = entry {
            self.way.nodes[depth] = index;
            entry = self.child(index, depth, address);
            depth += 1;
        }
        (self.way.address, self.way.length) = (address, depth);
        entry
    }

    /// The child of the node `index` at `depth` on the path to `address`.
    fn child(&self, index: u32, depth: usize, address: u64) -> Entry {
        self.nodes[index as usize].children[Self::side(depth, address)]
    }

    fn side(depth: usize, address: u64) -> usize {
        (address >> (TOP as usize - 1 - depth) & 1) as usize
    }

    /// Gives the unit at `address` to `owner` if it is free; faster than [`Pool::take`] if it is
    /// near the last unit.
    pub fn take_unit(&mut self, address: u64, owner: ThreadId) -> Result<(), OutOfNodes> {
        let entry = self.go(address);
        if !matches!(entry, Entry::Leaf(State::Conventional | State::OnRequest)) {
            return Ok(());
        }
        self.need(TOP)?;
        for depth in self.way.length..(TOP - UNIT) as usize {
            let index = self.allocate(entry);
            self.way.nodes[depth] = index;
        }
        let mut depth = (TOP - UNIT) as usize;
        let new_from = core::mem::replace(&mut self.way.length, depth);
        let mut below = Entry::Leaf(State::Owned(owner));
        while depth > 0 {
            depth -= 1;
            let (index, order) = (self.way.nodes[depth], TOP - 1 - depth as u32);
            let side = Self::side(depth, address);
            let base = |side: usize| address & !mask(order + 1) | (side as u64) << order;
            let largest = self.largest_of(below, base(side), order);
            let other = self.nodes[index as usize].children[1 - side];
            if depth >= new_from {
                self.nodes[index as usize].largest[1 - side] = self.largest_of(other, base(1 - side), order);
            }
            if matches!((below, other), (Entry::Leaf(below), Entry::Leaf(other)) if below == other) {
                self.release(index);
                self.way.length = depth;
                continue;
            }
            let node = &mut self.nodes[index as usize];
            let same = node.largest[side] == largest && node.children[side] == below;
            node.children[side] = below;
            node.largest[side] = largest;
            if same && depth < new_from {
                return Ok(());
            }
            below = Entry::Inner(index);
        }
        self.root = below;
        Ok(())
    }

    /// Whether `allowed` holds for every unit of the aligned block at `base`.
    pub fn all(&self, base: u64, order: u32, allowed: impl Fn(State) -> bool) -> bool {
        let mut entry = self.root;
        let mut depth_order = TOP;
        while let Entry::Inner(index) = entry {
            if depth_order == order {
                return self.all_below(entry, &allowed);
            }
            depth_order -= 1;
            entry = self.nodes[index as usize].children[(base >> depth_order & 1) as usize];
        }
        self.all_below(entry, &allowed)
    }

    /// Recurses at most `TOP - UNIT` levels.
    fn all_below(&self, entry: Entry, allowed: &impl Fn(State) -> bool) -> bool {
        match entry {
            Entry::Leaf(state) => allowed(state),
            Entry::Inner(index) => {
                self.nodes[index as usize].children.iter().all(|&child| self.all_below(child, allowed))
            }
        }
    }

    /// Gives every free unit of the aligned block at `base` to `owner`.
    pub fn take(&mut self, base: u64, order: u32, owner: ThreadId) -> Result<(), OutOfNodes> {
        self.need(TOP)?;
        self.replace(base, base | mask(order), &|state| match state {
            State::Conventional | State::OnRequest => State::Owned(owner),
            other => other,
        });
        Ok(())
    }

    /// Gives `owner` some conventional block of 2^`order`, never the one at address 0; `None` if
    /// there is none. Among the free blocks that are large enough a small one is preferred, among
    /// equal ones that with the highest address: other threads ask for low memory by its address.
    pub fn take_any(&mut self, order: u32, owner: ThreadId) -> Result<Option<u64>, OutOfNodes> {
        if order < UNIT || order > TOP || u32::from(self.largest_of(self.root, 0, TOP)) <= order {
            return Ok(None);
        }
        self.need(TOP)?;
        let mut entry = self.root;
        let mut base = 0;
        let mut depth_order = TOP;
        while let Entry::Inner(index) = entry {
            depth_order -= 1;
            let Node { children, largest: [low, high] } = self.nodes[index as usize];
            let fits = |largest: u8| u32::from(largest) > order;
            if fits(high) && (!fits(low) || high <= low) {
                base |= 1 << depth_order;
                entry = children[1];
            } else {
                entry = children[0];
            }
        }
        let base = base + (mask(depth_order) - mask(order));
        self.take(base, order, owner)?;
        Ok(Some(base))
    }

    /// The number of units for which `counted` holds.
    pub fn count(&self, counted: impl Fn(State) -> bool) -> u64 {
        self.count_below(self.root, TOP, &counted)
    }

    /// Recurses at most `TOP - UNIT` levels.
    fn count_below(&self, entry: Entry, order: u32, counted: &impl Fn(State) -> bool) -> u64 {
        match entry {
            Entry::Leaf(state) if counted(state) => mask(order - UNIT).saturating_add(1),
            Entry::Leaf(_) => 0,
            Entry::Inner(index) => {
                let [low, high] = self.nodes[index as usize].children;
                self.count_below(low, order - 1, counted) + self.count_below(high, order - 1, counted)
            }
        }
    }

    fn need(&self, nodes: u32) -> Result<(), OutOfNodes> {
        if self.available < nodes { Err(OutOfNodes) } else { Ok(()) }
    }

    /// Replaces the state of every unit in `first ..= last`, which begins and ends on boundaries of
    /// units. There must be free nodes for the paths to both ends.
    fn replace(&mut self, first: u64, last: u64, new: &impl Fn(State) -> State) {
        self.way.length = 0;
        self.root = self.replace_below(self.root, 0, TOP, first, last, new);
    }

    /// Recurses at most `TOP - UNIT` levels.
    fn replace_below(
        &mut self,
        entry: Entry,
        base: u64,
        order: u32,
        first: u64,
        last: u64,
        new: &impl Fn(State) -> State,
    ) -> Entry {
        let end = base | mask(order);
        if last < base || first > end {
            return entry;
        }
        let index = match entry {
            Entry::Leaf(state) if new(state) == state => return entry,
            Entry::Leaf(state) if first <= base && end <= last => return Entry::Leaf(new(state)),
            Entry::Leaf(_) => self.allocate(entry),
            Entry::Inner(index) => index,
        };
        for side in 0..2 {
            let child_base = base + ((side as u64) << (order - 1));
            let child = self.nodes[index as usize].children[side];
            let child = self.replace_below(child, child_base, order - 1, first, last, new);
            let largest = self.largest_of(child, child_base, order - 1);
            let node = &mut self.nodes[index as usize];
            node.children[side] = child;
            node.largest[side] = largest;
        }
        match self.nodes[index as usize].children {
            [Entry::Leaf(low), Entry::Leaf(high)] if low == high => {
                self.release(index);
                Entry::Leaf(low)
            }
            _ => Entry::Inner(index),
        }
    }

    /// 1 + order of the largest conventional block that may be given to a thread which asks for any
    /// block: not the one at address 0.
    fn largest_of(&self, entry: Entry, base: u64, order: u32) -> u8 {
        match entry {
            Entry::Leaf(State::Conventional) if base == 0 && order == UNIT => 0,
            Entry::Leaf(State::Conventional) if base == 0 => order as u8,
            Entry::Leaf(State::Conventional) => order as u8 + 1,
            Entry::Leaf(_) => 0,
            Entry::Inner(index) => {
                let [low, high] = self.nodes[index as usize].largest;
                low.max(high)
            }
        }
    }

    /// Allocates a node whose children are both `entry`.
    fn allocate(&mut self, entry: Entry) -> u32 {
        let index = match self.unused {
            Some(index) => {
                self.unused = match self.nodes[index as usize].children[0] {
                    Entry::Inner(next) => Some(next),
                    Entry::Leaf(_) => None,
                };
                index
            }
            None => {
                self.fresh += 1;
                self.fresh - 1
            }
        };
        self.available -= 1;
        self.nodes[index as usize] = Node { children: [entry; 2], largest: [0; 2] };
        index
    }

    fn release(&mut self, index: u32) {
        self.nodes[index as usize] = match self.unused {
            Some(next) => Node { children: [Entry::Inner(next); 2], largest: [0; 2] },
            None => Node::UNUSED,
        };
        self.unused = Some(index);
        self.available += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Small<'a> = Pool<'a, 16, 8>;

    impl Pool<'_, 16, 8> {
        /// Checks that every inner node stores the right size, and that no two sibling leaves are
        /// equal.
        fn check(&self, entry: Entry, base: u64, order: u32) {
            let Entry::Inner(index) = entry else { return };
            let node = self.nodes[index as usize];
            for (side, child) in node.children.into_iter().enumerate() {
                let child_base = base + ((side as u64) << (order - 1));
                assert_eq!(node.largest[side], self.largest_of(child, child_base, order - 1));
                self.check(child, child_base, order - 1);
            }
            let [low, high] = node.children;
            assert!(matches!(low, Entry::Inner(_)) || low != high, "equal siblings at {base:#x}");
        }
    }

    fn thread(number: u32) -> ThreadId {
        ThreadId::interrupt(number)
    }

    #[test]
    fn equal_siblings_merge_again() {
        let mut nodes = [Node::UNUSED; 64];
        let mut pool = Small::new(&mut nodes);
        pool.set(0, 0xffff, State::Conventional).unwrap();
        assert_eq!(pool.available_nodes(), 64);
        for unit in 0..256u64 {
            pool.set(unit << 8, unit << 8 | 0xff, State::Shared).unwrap();
        }
        assert_eq!(pool.available_nodes(), 64);
        assert_eq!(pool.count(|state| state == State::Shared), 256);
    }

    #[test]
    fn ranges_that_are_not_units_shrink() {
        let mut nodes = [Node::UNUSED; 64];
        let mut pool = Small::new(&mut nodes);
        pool.set(0x180, 0x47f, State::Conventional).unwrap();
        assert_eq!(pool.state(0x1ff), State::Unavailable);
        assert_eq!(pool.state(0x200), State::Conventional);
        assert_eq!(pool.state(0x3ff), State::Conventional);
        assert_eq!(pool.state(0x400), State::Unavailable);
        pool.set(0x510, 0x520, State::Conventional).unwrap();
        assert_eq!(pool.count(|state| state == State::Conventional), 2);
        pool.set(0, u64::MAX, State::Shared).unwrap();
        assert_eq!(pool.count(|state| state == State::Shared), 256);
        pool.set(u64::MAX - 3, u64::MAX, State::Conventional).unwrap();
        assert_eq!(pool.count(|state| state == State::Shared), 256);
    }

    #[test]
    fn any_block_is_aligned_small_first_high_first_and_never_zero() {
        let mut nodes = [Node::UNUSED; 64];
        let mut pool = Small::new(&mut nodes);
        pool.set(0, 0x3fff, State::Conventional).unwrap();
        pool.set(0x8000, 0x80ff, State::Conventional).unwrap();
        assert_eq!(pool.take_any(8, thread(1)), Ok(Some(0x8000)));
        assert_eq!(pool.take_any(8, thread(1)), Ok(Some(0x3f00)));
        assert_eq!(pool.take_any(12, thread(1)), Ok(Some(0x2000)));
        assert_eq!(pool.take_any(13, thread(1)), Ok(None));
        let mut taken = 0;
        while let Some(base) = pool.take_any(8, thread(2)).unwrap() {
            assert_ne!(base, 0);
            taken += 1;
        }
        assert_eq!(taken, 64 - 1 - 16 - 1);
        assert_eq!(pool.state(0), State::Conventional);
    }

    #[test]
    fn a_full_table_refuses_and_changes_nothing() {
        let mut nodes = [Node::UNUSED; 40];
        let mut pool = Small::new(&mut nodes);
        pool.set(0, 0xffff, State::Conventional).unwrap();
        let mut unit = 0;
        while pool.take(unit << 8, 8, thread(unit as u32 + 1)).is_ok() {
            unit += 1;
        }
        let free = pool.count(|state| state == State::Conventional);
        assert_eq!(pool.take_any(8, thread(999)), Err(OutOfNodes));
        assert_eq!(pool.count(|state| state == State::Conventional), free);
        let mut larger = [Node::UNUSED; 400];
        let mut pool = pool.moved_to(&mut larger);
        assert_eq!(pool.state(0x100), State::Owned(thread(2)));
        pool.take(unit << 8, 8, thread(7)).unwrap();
        assert_eq!(pool.state(unit << 8), State::Owned(thread(7)));
        assert_eq!(pool.count(|state| state == State::Conventional), free - 1);
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Set(u64, u64, u8),
        Take(u64, u32, u32),
        TakeAny(u32, u32),
        TakeUnit(u64, u32),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (0..0x1_0000u64, 0..0x1_0000u64, 0..4u8).prop_map(|(a, b, s)| Operation::Set(a, b, s)),
            (0..256u64, 8..=16u32, 1..4u32)
                .prop_map(|(unit, order, thread)| Operation::Take(unit, order, thread)),
            (7..=17u32, 1..4u32).prop_map(|(order, thread)| Operation::TakeAny(order, thread)),
            (0..0x1_0000u64, 1..4u32).prop_map(|(address, thread)| Operation::TakeUnit(address, thread)),
        ]
    }

    proptest! {
        /// Compares the trie with an array of 256 states.
        #[test]
        fn behaves_like_an_array(operations in prop::collection::vec(operation(), 1..60)) {
            let mut nodes = vec![Node::UNUSED; 1024];
            let mut pool = Small::new(&mut nodes);
            let mut model = [State::Unavailable; 256];
            for operation in operations {
                match operation {
                    Operation::Set(first, last, state) => {
                        let state = [State::Unavailable, State::Conventional, State::OnRequest, State::Shared]
                            [state as usize];
                        pool.set(first, last, state).unwrap();
                        for unit in 0..256u64 {
                            if first <= unit << 8 && (unit << 8 | 0xff) <= last {
                                model[unit as usize] = state;
                            }
                        }
                    }
                    Operation::Take(unit, order, number) => {
                        let base = unit << 8 & !mask(order);
                        let states = &mut model[(base >> 8) as usize..((base | mask(order)) >> 8) as usize + 1];
                        let allowed = |state| state != State::Unavailable;
                        prop_assert_eq!(pool.all(base, order, allowed), states.iter().all(|&state| allowed(state)));
                        pool.take(base, order, thread(number)).unwrap();
                        for state in states {
                            if matches!(state, State::Conventional | State::OnRequest) {
                                *state = State::Owned(thread(number));
                            }
                        }
                    }
                    Operation::TakeUnit(address, number) => {
                        let state = &mut model[(address >> 8) as usize];
                        prop_assert_eq!(pool.next_state(address), *state);
                        pool.take_unit(address, thread(number)).unwrap();
                        if matches!(state, State::Conventional | State::OnRequest) {
                            *state = State::Owned(thread(number));
                        }
                    }
                    Operation::TakeAny(order, number) => {
                        let fits = |base: u64| {
                            base != 0 && (base >> 8..=(base | mask(order)) >> 8)
                                .all(|unit| model[unit as usize] == State::Conventional)
                        };
                        let possible = (8..=16).contains(&order)
                            && (0..0x1_0000u64).step_by(1 << order).any(fits);
                        match pool.take_any(order, thread(number)).unwrap() {
                            None => prop_assert!(!possible),
                            Some(base) => {
                                prop_assert!(base & mask(order) == 0 && fits(base));
                                model[(base >> 8) as usize..=((base | mask(order)) >> 8) as usize]
                                    .fill(State::Owned(thread(number)));
                            }
                        }
                    }
                }
                for unit in 0..256u64 {
                    prop_assert_eq!(pool.state(unit << 8), model[unit as usize]);
                    prop_assert_eq!(pool.next_state(unit << 8), model[unit as usize]);
                }
                pool.check(pool.root, 0, 16);
            }
            pool.set(0, 0xffff, State::Shared).unwrap();
            prop_assert_eq!(pool.available_nodes(), 1024);
        }
    }
}
