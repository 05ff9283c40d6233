//! Address spaces' memory: page tables, and the mapping database, which records which page was
//! mapped from which (X.2 rules 7.32 to 7.40, 8.1 to 8.8, K7, K12).
//!
//! | file | what |
//! |------|------|
//! | `space` | the memory of one space: tables, account, areas that are not mappable |
//! | `map` | map and grant items |
//! | `unmap` | unmap, flush, status; destruction of a space |
//! | `control` | MapControl: an owner arranges its spaces' memory |
//! | `sigma0` | sigma0's page faults |
//! | `ports` | I/O ports: a second forest with the same rules |
//! | `memory_type` | how memory is cached |
//! | `inspect` | what the debugger shows |
//! | `lock` | one processor at a time, and the entry points |
//! | `cursor` | how far a preempted operation has come |
//! | `walk` | the walk through everything derived from a page |
//! | `turn` | one call of an operation: when it looks for interrupts |
//! | `tree` | the forest: roots, freeing |
//! | `split` | large pages become small ones |
//! | `node` | one holding, its lists, its status |
//! | `table` | page tables and their shadows |
//! | `spare` | empty tables that stay where they are |
//! | `changes` | invalidations collected until they are made known |
//!
//! What a mapping costs: a node of 32 bytes, paid by the mapper; a page-table entry and a shadow
//! word, 12 bytes, in tables of 6 KiB, paid by the holder. A table that maps nothing but other
//! tables, or the kernel's pages, has 4 KiB. A large page from which smaller ones are derived has
//! an array of 2 KiB for each level between; memory of sigma0 that is mapped in small pages has one
//! such array and one node for each 2 MiB, and a root with an array for each GiB. A record of 16
//! bytes describes each frame of kernel memory.
//!
//! Operations that can take long are preemptible (K2): they return [`Progress::Preempted`] and are
//! called again. Kernel memory runs out as an error of the mapping operation only (K4): unmapping
//! never fails.
//!
//! Locks (K12): one processor at a time changes mappings (`lock`). Below that see `tree` (the trees
//! and the entries that map pages) and `table` (structure); order: tree, then space.
mod changes;
mod control;
mod cursor;
pub mod inspect;
mod lock;
mod map;
mod memory_type;
mod node;
mod ports;
mod sigma0;
mod space;
mod spare;
mod split;
mod table;
mod tree;
mod turn;
mod unmap;
mod walk;

pub use control::{control, try_control_page};
pub use cursor::{Cursor, Progress};
pub use lock::{
    destroy, finish_walk, give_back, held_ports, lock, map, set_memory_type, sigma0_fault, try_lock, unmap,
};
pub use map::try_map_page;
pub use node::usage;
pub use space::{KernelPage, SIGMA0, SpaceMemory, Translation};
pub use spare::or_from_spare;
pub use tree::init;
pub use unmap::try_unmap_page;

#[cfg(test)]
mod tests;
