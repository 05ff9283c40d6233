//! Where things go in physical memory at boot: what is free, and the first choice of kernel memory,
//! moved modules and the boot info. Only arithmetic; the caller does the copying.
use core::fmt;

use super::nodes::Nodes;
use super::{BootInformation, MemoryKind};
use crate::memory::node::Layout;
use crate::memory::{PAGE_BITS, PAGE_SIZE, PhysAddr, PhysRange, REGION_LIMIT};

/// The maximum number of free ranges; beyond it the smallest are forgotten.
const MAX_FREE: usize = 256;
/// Modules and the boot info go above this: old X.2 programs are linked at 15 and 16 MiB and use
/// memory from 32 MiB on without asking.
pub const QUIET: PhysAddr = PhysAddr::new(64 << 20);
/// The end of the memory that old programs reach with 32-bit addresses.
pub const LIMIT: PhysAddr = PhysAddr::new(4 << 30);

/// There is no free range of this size where it is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// For what.
    pub what: &'static str,
    /// Bytes.
    pub size: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "no {} KiB of free memory for {}", self.size.div_ceil(1024), self.what)
    }
}

/// The free physical memory, in whole pages.
#[derive(Clone)]
pub struct FreeMemory {
    ranges: [PhysRange; MAX_FREE],
    count: usize,
}

const NOTHING: PhysRange = PhysRange::new(PhysAddr::new(0), PhysAddr::new(0));

impl FreeMemory {
    /// The available memory below `limit`, without what any other kind of range covers and without
    /// the first megabyte.
    pub fn new(boot: &BootInformation, limit: u64) -> Self {
        let mut free = Self { ranges: [NOTHING; MAX_FREE], count: 0 };
        for range in boot.memory().iter().filter(|range| range.kind == MemoryKind::Available) {
            let end = range.end.min(limit) >> PAGE_BITS << PAGE_BITS;
            let start = range.start.max(1 << 20).next_multiple_of(PAGE_SIZE);
            let range = PhysRange::new(PhysAddr::new(start), PhysAddr::new(end));
            // Ranges of the firmware may overlap each other.
            free.remove(range);
            free.add(range);
        }
        for range in boot.memory().iter().filter(|range| range.kind != MemoryKind::Available) {
            free.remove(PhysRange::new(PhysAddr::new(range.start), PhysAddr::new(range.end)));
        }
        free
    }

    /// The free ranges, in no particular order.
    pub fn ranges(&self) -> &[PhysRange] {
        &self.ranges[..self.count]
    }

    /// How many bytes are free in all ranges.
    pub fn size(&self) -> u64 {
        self.ranges().iter().map(|range| range.size()).sum()
    }

    /// Whether every byte of the range is free.
    pub fn contains(&self, range: PhysRange) -> bool {
        self.ranges().iter().any(|free| free.start <= range.start && range.end <= free.end)
    }

    fn add(&mut self, range: PhysRange) {
        if range.size() == 0 {
            return;
        }
        if self.count < MAX_FREE {
            self.ranges[self.count] = range;
            self.count += 1;
        } else if let Some(smallest) = self.ranges.iter_mut().min_by_key(|range| range.size())
            && smallest.size() < range.size()
        {
            *smallest = range;
        }
    }

    /// Takes a range out, widened to whole pages; parts of it that are not free are ignored.
    pub fn remove(&mut self, range: PhysRange) {
        if range.size() == 0 {
            return;
        }
        let end = PhysAddr::new(range.end.value().saturating_add(PAGE_SIZE - 1)).align_down(PAGE_BITS);
        let range = PhysRange::new(range.start.align_down(PAGE_BITS), end);
        let mut index = 0;
        while index < self.count {
            let free = self.ranges[index];
            if !free.overlaps(range) {
                index += 1;
                continue;
            }
            self.count -= 1;
            self.ranges[index] = self.ranges[self.count];
            self.add(PhysRange::new(free.start, range.start));
            self.add(PhysRange::new(range.end, free.end));
        }
    }

    /// Takes `size` bytes, aligned to 2^`bits`, from the highest place between `floor` and
    /// `ceiling`.
    pub fn take_top(
        &mut self,
        size: u64,
        bits: u32,
        floor: PhysAddr,
        ceiling: PhysAddr,
        what: &'static str,
    ) -> Result<PhysRange, NoRoom> {
        let size = size.next_multiple_of(PAGE_SIZE);
        let place = |free: &PhysRange| {
            let start = PhysAddr::new(free.end.min(ceiling).value().checked_sub(size)?).align_down(bits);
            (start >= free.start.max(floor)).then_some(start)
        };
        let start = self.ranges().iter().filter_map(place).max().ok_or(NoRoom { what, size })?;
        let range = PhysRange::new(start, start.offset(size));
        self.remove(range);
        Ok(range)
    }

    /// Makes a range free again that was taken out before, widened to whole pages like there.
    pub fn give_back(&mut self, range: PhysRange) {
        let end = PhysAddr::new(range.end.value().next_multiple_of(PAGE_SIZE));
        let mut range = PhysRange::new(range.start.align_down(PAGE_BITS), end);
        let mut index = 0;
        while index < self.count {
            let free = self.ranges[index];
            if free.end == range.start || range.end == free.start {
                range = PhysRange::new(free.start.min(range.start), free.end.max(range.end));
                self.count -= 1;
                self.ranges[index] = self.ranges[self.count];
            } else {
                index += 1;
            }
        }
        self.add(range);
    }

    /// Takes memory like [`FreeMemory::take_top`] for a module: like [`FreeMemory::take_quiet`],
    /// but above [`LIMIT`] rather than below [`QUIET`].
    pub fn take_for_module(&mut self, size: u64) -> Result<PhysRange, NoRoom> {
        let what = "a module";
        let highest = PhysAddr::new(u64::MAX);
        self.take_top(size, PAGE_BITS, QUIET, LIMIT, what)
            .or_else(|_| self.take_top(size, PAGE_BITS, LIMIT, highest, what))
            .or_else(|_| self.take_quiet(size, what))
    }

    /// Takes memory like [`FreeMemory::take_top`], for what should be out of old programs' way:
    /// above [`QUIET`] if there is room, else anywhere below [`LIMIT`].
    pub fn take_quiet(&mut self, size: u64, what: &'static str) -> Result<PhysRange, NoRoom> {
        self.take_top(size, PAGE_BITS, QUIET, LIMIT, what)
            .or_else(|_| self.take_top(size, PAGE_BITS, PhysAddr::new(0), LIMIT, what))
    }

    /// Chooses the kernel's memory: `wanted` bytes, or by default an eighth of the free memory, at
    /// least 16 MiB and at most half of the largest range that can hold it. 2 MiB aligned, as high
    /// as possible below [`LIMIT`]. With several nodes each has its part of it, where the memory of
    /// that node allows it.
    pub fn take_kernel_memory(&mut self, wanted: Option<u64>, nodes: &Nodes) -> Result<Layout, NoRoom> {
        let mut free = self.clone();
        if nodes.count() > 1
            && let Some(layout) = free.take_of_each(wanted, nodes)
        {
            *self = free;
            return Ok(layout);
        }
        let size = match wanted {
            Some(size) => round(size),
            None => {
                let below = |range: &&PhysRange| range.end <= LIMIT;
                let largest = self.ranges().iter().filter(below).map(|range| range.size());
                let most = largest.max().unwrap_or(0) / 2;
                round((self.size() / 8).max(LEAST_KERNEL_MEMORY).min(most))
            }
        };
        let size = size.max(1 << KERNEL_MEMORY_BITS);
        let region =
            self.take_top(size, KERNEL_MEMORY_BITS, PhysAddr::new(0), LIMIT, "the kernel (see kmem=)")?;
        Ok(nodes.cut(region))
    }

    /// Kernel memory in each node that has room for its part. `None` if the first one of them has
    /// not room enough for what the kernel has to know about all.
    fn take_of_each(&mut self, wanted: Option<u64>, nodes: &Nodes) -> Option<Layout> {
        let mut layout = nodes.layout();
        let count = nodes.count() as u64;
        for node in 0..nodes.count() as u8 {
            let of_node = |free: &PhysRange| {
                let parts = nodes.ranges().iter().filter(move |part| part.1 == node);
                let ceiling = PhysAddr::new(REGION_LIMIT);
                let free = *free;
                parts.map(move |(part, _)| {
                    let (start, end) = (free.start.max(part.start), free.end.min(part.end).min(ceiling));
                    PhysRange::new(start, end.max(start))
                })
            };
            let parts = || self.ranges().iter().flat_map(of_node);
            let Some(largest) = parts().max_by_key(|part| part.size()) else { continue };
            let size = match wanted {
                Some(size) => size / count,
                None => {
                    let all: u64 = parts().map(|part| part.size()).sum();
                    (all / 8).max(LEAST_KERNEL_MEMORY / count).min(largest.size() / 2)
                }
            };
            let size = round(size).max(1 << KERNEL_MEMORY_BITS);
            let taken = self.take_top(size, KERNEL_MEMORY_BITS, largest.start, largest.end, "a node");
            if let Ok(piece) = taken {
                layout.add(piece, node);
            }
        }
        layout.has_room_for_records().then_some(layout)
    }
}

/// log2 of the alignment of kernel memory.
const KERNEL_MEMORY_BITS: u32 = 21;
/// Size of kernel memory by default, if the machine has enough.
const LEAST_KERNEL_MEMORY: u64 = 16 << 20;

/// Rounds up to whole units of kernel memory.
fn round(size: u64) -> u64 {
    size.saturating_add((1 << KERNEL_MEMORY_BITS) - 1) >> KERNEL_MEMORY_BITS << KERNEL_MEMORY_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Protocol;

    fn boot(ranges: &[(u64, u64, MemoryKind)]) -> BootInformation {
        let mut boot = BootInformation::empty(Protocol::Multiboot1);
        for &(start, end, kind) in ranges {
            boot.add_range(start, end - start, kind);
        }
        boot
    }

    fn range(start: u64, end: u64) -> PhysRange {
        PhysRange::new(PhysAddr::new(start), PhysAddr::new(end))
    }

    fn pc(megabytes: u64) -> FreeMemory {
        let boot = boot(&[
            (0, 0x9fc00, MemoryKind::Available),
            (0x9fc00, 0xa0000, MemoryKind::Reserved),
            (0x10_0000, (megabytes << 20) - 0x20000, MemoryKind::Available),
            ((megabytes << 20) - 0x20000, megabytes << 20, MemoryKind::Reserved),
        ]);
        FreeMemory::new(&boot, u64::MAX)
    }

    #[test]
    fn other_kinds_win_over_available() {
        let boot = boot(&[
            (0x10_0000, 0x100_0000, MemoryKind::Available),
            (0x80_0000, 0x90_0000, MemoryKind::Available),
            (0x20_0800, 0x20_0900, MemoryKind::Reserved),
        ]);
        let mut free = FreeMemory::new(&boot, u64::MAX);
        assert_eq!(free.size(), 0xf0_0000 - 0x1000);
        assert!(!free.contains(range(0x20_0000, 0x20_1000)));
        assert!(free.contains(range(0x20_1000, 0x30_0000)));
        free.remove(range(0, u64::MAX));
        assert_eq!(free.ranges(), []);
    }

    #[test]
    fn limit_cuts_memory_off() {
        let boot = boot(&[(0x10_0000, 0x1000_0000, MemoryKind::Available)]);
        let mut free = FreeMemory::new(&boot, 0x800_0000);
        let top = free.take_quiet(0x1000, "a test").unwrap();
        assert_eq!(top, range(0x7ff_f000, 0x800_0000));
    }

    /// Memory that is given back becomes one with what is free around it.
    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut free = pc(256);
        let (below, above) = (range(0x400_0000, 0x500_0000), range(0x500_0800, 0x700_0000));
        free.remove(below);
        free.remove(above);
        free.give_back(range(0x400_0800, 0x500_0000));
        assert!(free.contains(range(0x10_0000, 0x500_0000)));
        free.give_back(above);
        assert!(free.contains(range(0x10_0000, 0xffe_0000)));
    }

    /// Below 4 GiB out of old programs' way, else above, else anywhere.
    #[test]
    fn large_modules_go_above_4_gib() {
        let memory = [
            (0x10_0000, 0x8000_0000, MemoryKind::Available),
            (0x1_0000_0000, 0x1_8000_0000, MemoryKind::Available),
        ];
        let mut free = FreeMemory::new(&boot(&memory), u64::MAX);
        assert_eq!(free.take_for_module(0x4000_0000), Ok(range(0x4000_0000, 0x8000_0000)));
        assert_eq!(free.take_for_module(0x4000_0000), Ok(range(0x1_4000_0000, 0x1_8000_0000)));
        assert_eq!(free.take_for_module(0x3f00_0000), Ok(range(0x1_0100_0000, 0x1_4000_0000)));
        assert_eq!(free.take_for_module(0x3e00_0000), Ok(range(0x200_0000, 0x4000_0000)));
        assert!(free.take_for_module(0x3e00_0000).is_err());
    }

    /// The only piece.
    fn one(layout: Result<Layout, NoRoom>) -> PhysRange {
        let layout = layout.unwrap();
        let [(piece, 0)] = layout.pieces() else { panic!("{:?}", layout.pieces()) };
        *piece
    }

    #[test]
    fn each_node_has_kernel_memory() {
        let nodes = crate::boot::nodes::tests::halves(128 << 20);
        let mut free = pc(256);
        let layout = free.take_kernel_memory(None, &nodes).unwrap();
        assert_eq!(layout.pieces(), [(range(0x700_0000, 0x800_0000), 0), (range(0xee0_0000, 0xfe0_0000), 1)]);
        assert!(layout.pieces().iter().all(|(piece, _)| !free.contains(*piece)));
        let layout = pc(256).take_kernel_memory(Some(8 << 20), &nodes).unwrap();
        assert_eq!(layout.pieces(), [(range(0x7c0_0000, 0x800_0000), 0), (range(0xfa0_0000, 0xfe0_0000), 1)]);
        // The second node has no memory, or none that the kernel can use.
        let layout = pc(128).take_kernel_memory(None, &nodes).unwrap();
        assert_eq!((layout.nodes, layout.pieces()), (2, &[(range(0x6e0_0000, 0x7e0_0000), 0)][..]));
        // The memory of the first node is too small for the records of all frames.
        let nodes = crate::boot::nodes::tests::halves(2 << 30);
        let layout = pc(3 << 10).take_kernel_memory(Some(16 << 20), &nodes).unwrap();
        assert_eq!(layout.pieces(), [(range(0xbee0_0000, 0xbfe0_0000), 1)]);
    }

    #[test]
    fn kernel_memory_is_high_and_aligned() {
        let mut free = pc(256);
        let kernel = one(free.take_kernel_memory(None, &Nodes::ONE));
        assert_eq!(kernel, range(0xde0_0000, 0xfe0_0000));
        assert!(!free.contains(range(0xfc0_0000, 0xfc0_1000)));
        let module = free.take_quiet(0x1800, "a module").unwrap();
        assert_eq!(module.size(), 0x2000);
        assert!(module.start >= QUIET && !module.overlaps(kernel));
        assert_eq!(one(pc(256).take_kernel_memory(Some(3 << 20), &Nodes::ONE)).size(), 4 << 20);
        assert_eq!(
            pc(256).take_kernel_memory(Some(1 << 40), &Nodes::ONE).err(),
            Some(NoRoom { what: "the kernel (see kmem=)", size: 1 << 40 })
        );
        assert!(pc(256).take_kernel_memory(Some(u64::MAX), &Nodes::ONE).is_err());
    }

    #[test]
    fn small_machines_get_less() {
        let mut free = pc(24);
        let kernel = one(free.take_kernel_memory(None, &Nodes::ONE));
        assert!(kernel.size() <= 12 << 20);
        assert!(free.take_quiet(4096, "a module").is_ok());
    }

    #[test]
    fn too_many_pieces_forget_the_smallest() {
        let mut free = pc(256);
        for page in 0..600 {
            let start = 0x100_0000 + page * 0x3000;
            free.remove(range(start, start + 0x1000));
        }
        assert!(free.ranges().len() <= MAX_FREE);
        assert!(free.ranges().iter().all(|free| {
            (0..600).all(|page| {
                let start = 0x100_0000 + page * 0x3000;
                !free.overlaps(range(start, start + 0x1000))
            })
        }));
        assert!(free.contains(range(0x800_0000, 0x900_0000)), "the large ranges stay");
    }
}
