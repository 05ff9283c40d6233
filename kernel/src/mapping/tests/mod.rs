//! Tests of the mapping rules, each named by its rule, and of random operations against a plain
//! model.
mod check;
mod exhaustion;
mod inspect;
mod left_over;
mod map_control;
mod memory_type;
mod model;
mod ports;
mod random;
mod rules;
mod sigma0;
mod spare;
mod split;

use std::pin::{Pin, pin};

use x2::{Fpage, MapItem, Rights};

use super::*;
use crate::arch::Machine;
use crate::memory::{self, Account, OutOfMemory, PhysAddr, PhysRange, VirtAddr};
use x2::extension::Quota;

const KIB4: u64 = 1 << 12;
const MIB2: u64 = 1 << 21;
const GIB: u64 = 1 << 30;
/// Kernel memory of the test machine, which sigma0 must not get. (It begins at 16 MiB.)
const KERNEL: PhysRange = PhysRange::new(PhysAddr::new(0x100_0000), PhysAddr::new(0x400_0000));

/// A machine with sigma0 (space 0) and some more spaces.
struct World {
    spaces: Vec<SpaceMemory>,
    /// What was in use before the spaces other than sigma0's were made.
    machine: Machine,
}

impl World {
    fn new(spaces: usize) -> Self {
        let machine = Machine::new(KERNEL.size());
        init(&[KERNEL]);
        let mut all = Vec::new();
        for number in 0..=spaces {
            let account = Account::create(Quota::UNLIMITED).unwrap();
            let new = if number == 0 { SpaceMemory::new_sigma0 } else { SpaceMemory::new };
            all.push(new(account).unwrap());
            account.release();
        }
        Self { spaces: all, machine }
    }

    /// Calls an operation until it is done, however often it is preempted.
    fn finish<T>(mut operation: impl FnMut(Pin<&mut Cursor>) -> Progress<T>) -> T {
        let mut cursor = pin!(Cursor::new());
        loop {
            if let Progress::Done(result) = operation(cursor.as_mut()) {
                return result;
            }
        }
    }

    fn try_map(&self, from: usize, to: usize, item: MapItem, window: Fpage) -> Result<Fpage, OutOfMemory> {
        Self::finish(|cursor| map(cursor, self.spaces[from], self.spaces[to], item, window))
    }

    fn map_page(&self, from: usize, to: usize, item: MapItem) -> bool {
        let _alone = lock();
        try_map_page(self.spaces[from], self.spaces[to], item)
    }

    /// Maps 2^`bits` bytes from `source` to `target`.
    fn map(&self, from: usize, source: u64, to: usize, target: u64, bits: u32, rights: Rights) -> Fpage {
        let item = MapItem::map(Fpage::memory(source, bits).with_rights(rights), target);
        self.try_map(from, to, item, Fpage::COMPLETE).unwrap()
    }

    fn grant(&self, from: usize, source: u64, to: usize, target: u64, bits: u32, rights: Rights) -> Fpage {
        let item = MapItem::grant(Fpage::memory(source, bits).with_rights(rights), target);
        self.try_map(from, to, item, Fpage::COMPLETE).unwrap()
    }

    /// Unmaps as a system call does: without a preemption point if that is possible.
    fn unmap(&self, space: usize, address: u64, bits: u32, revoke: Rights, flush: bool) -> Rights {
        let fpage = Fpage::memory(address, bits).with_rights(revoke);
        self.unmap_page(space, fpage, flush).unwrap_or_else(|| self.unmap_in_general(space, fpage, flush))
    }

    fn unmap_page(&self, space: usize, fpage: Fpage, flush: bool) -> Option<Rights> {
        let _alone = lock();
        try_unmap_page(self.spaces[space], fpage, flush)
    }

    fn unmap_in_general(&self, space: usize, fpage: Fpage, flush: bool) -> Rights {
        Self::finish(|cursor| unmap(cursor, self.spaces[space], fpage, flush))
    }

    fn status(&self, space: usize, address: u64, bits: u32) -> Rights {
        self.unmap(space, address, bits, Rights::NONE, false)
    }

    /// Memory and rights at `address`, if mapped.
    fn at(&self, space: usize, address: u64) -> Option<(u64, Rights)> {
        let translation = self.spaces[space].lookup(VirtAddr::new(address))?;
        Some((translation.address.value(), translation.rights))
    }

    fn page_bits(&self, space: usize, address: u64) -> u32 {
        self.spaces[space].lookup(VirtAddr::new(address)).map_or(0, |translation| translation.page_bits)
    }

    /// A user of the space accesses `address`.
    fn touch(&self, space: usize, address: u64, right: Rights) -> Option<u64> {
        let root = self.spaces[space].page_table_root();
        self.machine.access(root, VirtAddr::new(address), right).map(PhysAddr::value)
    }

    fn destroy(&mut self, space: usize) {
        let memory = self.spaces.remove(space);
        let root = memory.page_table_root();
        Self::finish(|cursor| destroy(cursor, memory));
        self.machine.forget(root);
    }

    /// Destroys all spaces but sigma0's and checks that nothing remains allocated.
    fn end(mut self) {
        while self.spaces.len() > 1 {
            self.destroy(1);
        }
        let (nodes, arrays) = usage();
        assert_eq!(nodes, 0, "nodes leaked");
        // The allocations are the directory's arrays, and one for each of sigma0's tables.
        let tables = memory::statistics().of(memory::Use::PageTables);
        assert!(arrays <= tables + 3, "{arrays} arrays, {tables} tables");
    }
}
