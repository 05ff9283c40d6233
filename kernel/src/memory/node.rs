//! Memory nodes: the kernel has memory in each, and its objects come from the one near the
//! processor that they are for.
//!
//! | object | from the node of |
//! |---|---|
//! | thread, space, UTCBs, extended state, mapping node | the home of the thread that it is made for |
//! | page table | the home that a thread of its space was last given; at first of the space's creator |
//! | stacks and data of a processor | that processor |
//!
//! A node that has nothing left gets it from the nearest that has. With one node nothing here is
//! asked: allocations look at one byte ([`super::detour`]), as they do for fault injection anyway.
use core::sync::atomic::{AtomicU8, Ordering};

use super::{PAGE_SIZE, PhysAddr, PhysRange, REGION_LIMIT, detour};
use crate::boot_cell::BootCell;
use crate::kip::MAX_PROCESSORS;
use crate::{arch, processor};

/// Most nodes.
pub const MAX_NODES: usize = 16;
/// The most separate ranges of kernel memory.
pub const MAX_PIECES: usize = 24;
/// The distance of a node from itself (ACPI 6.5, 5.2.17).
pub const LOCAL_DISTANCE: u8 = 10;
/// The distance of different nodes, if the firmware gives none.
pub const REMOTE_DISTANCE: u8 = 20;
/// No node.
const NONE: u8 = u8::MAX;

/// A piece of kernel memory, and its node.
pub type Piece = (PhysRange, u8);

/// The kernel's memory.
#[derive(Clone, Copy)]
pub struct Layout {
    pieces: [Piece; MAX_PIECES],
    count: usize,
    /// How many nodes there are, with or without kernel memory.
    pub nodes: usize,
    /// The distance from each node to each node (SLIT).
    pub distances: [[u8; MAX_NODES]; MAX_NODES],
}

impl Layout {
    /// No memory, in one node.
    pub const EMPTY: Self = Self {
        pieces: [(PhysRange::new(PhysAddr::new(0), PhysAddr::new(0)), 0); MAX_PIECES],
        count: 0,
        nodes: 1,
        distances: [[REMOTE_DISTANCE; MAX_NODES]; MAX_NODES],
    };

    /// No memory yet, in this many nodes at these distances.
    pub fn new(nodes: usize, distances: [[u8; MAX_NODES]; MAX_NODES]) -> Self {
        Self { nodes, distances, ..Self::EMPTY }
    }

    /// One piece, of the only node.
    pub fn one(region: PhysRange) -> Self {
        let mut layout = Self::EMPTY;
        layout.add(region, 0);
        layout
    }

    /// Adds a piece that overlaps no other, if there is room, and cuts it to whole frames below
    /// [`REGION_LIMIT`]. Frame 0 would be mistaken for the end of a list.
    pub fn add(&mut self, region: PhysRange, node: u8) {
        let start = region.start.value().max(1).next_multiple_of(PAGE_SIZE);
        let end = region.end.value().min(REGION_LIMIT) & !(PAGE_SIZE - 1);
        if start < end && self.count < MAX_PIECES {
            let at = self.pieces().partition_point(|(other, _)| other.start.value() < start);
            self.pieces.copy_within(at..self.count, at + 1);
            self.pieces[at] = (PhysRange::new(PhysAddr::new(start), PhysAddr::new(end)), node);
            self.count += 1;
        }
    }

    /// The pieces, by address.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces[..self.count]
    }

    /// Whether the frames' records, which lie in the first piece and span all, leave half of it.
    pub fn has_room_for_records(&self) -> bool {
        let [(first, _), .., (last, _)] = self.pieces() else { return self.count == 1 };
        let frames = (last.end.value() - first.start.value()) / PAGE_SIZE;
        frames * super::frame::RECORD_SIZE <= first.size() / 2
    }
}

static LAYOUT: BootCell<Layout> = BootCell::new(Layout::EMPTY);
/// The nodes of processors. Set before any but the first runs.
static PROCESSORS: [AtomicU8; MAX_PROCESSORS] = [const { AtomicU8::new(0) }; MAX_PROCESSORS];
/// Where the allocations that each processor makes just now come from, if the rule is another than
/// usual.
static CHOSEN: [AtomicU8; MAX_PROCESSORS] = [const { AtomicU8::new(NONE) }; MAX_PROCESSORS];

/// The kernel's memory.
pub fn layout() -> &'static Layout {
    LAYOUT.get()
}

/// Takes the kernel's memory into use.
///
/// # Safety
/// As for [`super::init`].
pub(super) unsafe fn init(layout: &Layout) {
    // SAFETY: the caller keeps this function's contract.
    unsafe { *LAYOUT.get_mut() = *layout }
    detour::set(detour::NODES, layout.nodes > 1);
    PROCESSORS.iter().for_each(|node| node.store(0, Ordering::Relaxed));
    CHOSEN.iter().for_each(|node| node.store(NONE, Ordering::Relaxed));
}

/// Processor `number`, which has not begun, is of `node`.
pub fn set_processor(number: u32, node: u8) {
    PROCESSORS[number as usize].store(node, Ordering::Relaxed);
}

/// The node of processor `number`.
pub fn of_processor(number: u32) -> u8 {
    PROCESSORS[number as usize].load(Ordering::Relaxed)
}

/// The node of an address in kernel memory.
pub fn of(address: PhysAddr) -> u8 {
    let piece = layout().pieces().iter().find(|(piece, _)| piece.start <= address && address < piece.end);
    piece.map_or(0, |piece| piece.1)
}

/// Whether there is more than one node.
#[inline(always)]
pub fn are_several() -> bool {
    detour::is_set(detour::NODES)
}

/// The node from which an object comes that is made now: that of the home of the thread for which
/// the kernel works.
pub fn wanted() -> u8 {
    let here = arch::cpu_number();
    match CHOSEN[here as usize].load(Ordering::Relaxed) {
        NONE => {
            let home = processor::this().current.get().map_or(here, |current| u32::from(current.home()));
            of_processor(home)
        }
        chosen => chosen,
    }
}

/// Calls `make`, during which kernel memory is allocated from `node`.
pub fn from<R>(node: u8, make: impl FnOnce() -> R) -> R {
    let chosen = &CHOSEN[arch::cpu_number() as usize];
    let before = chosen.swap(node, Ordering::Relaxed);
    let made = make();
    chosen.store(before, Ordering::Relaxed);
    made
}

/// The nearest node to `node`, itself included, of which `has` is true.
pub(super) fn nearest(node: u8, has: impl Fn(u8) -> bool) -> Option<u8> {
    let layout = layout();
    let distances = &layout.distances[usize::from(node)];
    (0..layout.nodes as u8).filter(|&other| has(other)).min_by_key(|&other| {
        let distance = if other == node { 0 } else { distances[usize::from(other)] };
        (distance, other)
    })
}
