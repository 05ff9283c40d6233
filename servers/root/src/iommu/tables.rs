//! The tables that units between devices and memory walk: the table of buses (root table), the
//! tables of functions (context tables), and the page tables of domains (second-level tables, of
//! three or four levels). The formats are those of the legacy mode in Intel's "Virtualization
//! Technology for Directed I/O", chapter 9.

use crate::executable::PAGE;
use crate::frames::Frames;
use crate::machine::Machine;
use crate::thread_numbers::ServerIndex;
use alloc::vec::Vec;
use core::ops::Range;

/// The owner, in the table of frames, of the memory that holds tables. No server has this index.
pub(crate) const TABLES: ServerIndex = ServerIndex::MAX - 2;

/// Bits of entries. A page may be read (bit 0) and written (bit 1).
const PRESENT: u64 = 1;
const ACCESS: u64 = 3;
/// The entry of a page table leads to a large page, not to another table.
const LARGE: u64 = 1 << 7;
/// Faults of the function are not recorded.
const QUIET: u64 = 1 << 1;
const ADDRESS: u64 = (1 << 52) - PAGE;

/// There is no memory for another table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// The memory of tables.
pub(crate) struct TableMemory<'a, M> {
    pub(crate) machine: &'a mut M,
    pub(crate) frames: &'a mut Frames,
    /// How many more pages tables may have.
    pub(crate) left: &'a mut u64,
    /// Whether a unit reads memory itself and not the processors' caches, so that what is written
    /// must be written back.
    pub(crate) needs_write_back: bool,
}

impl<M: Machine> TableMemory<'_, M> {
    /// A page of zeros, which is added to `pages`.
    pub(crate) fn take(&mut self, pages: &mut Vec<u64>) -> Result<u64, NoMemory> {
        if *self.left == 0 || pages.try_reserve(1).is_err() {
            return Err(NoMemory);
        }
        let block = self.frames.allocate_block(self.machine, TABLES, PAGE, u64::MAX);
        let block = block.map_err(|_| NoMemory)?;
        *self.left -= 1;
        pages.push(block.start);
        self.machine.write_memory(block.clone(), &[]);
        self.written(block.start, PAGE);
        Ok(block.start)
    }

    /// Takes back pages that no unit reads any more.
    pub(crate) fn give_back(&mut self, pages: Vec<u64>) {
        *self.left += pages.len() as u64;
        pages.into_iter().for_each(|page| self.frames.release(TABLES, &(page..page + PAGE)));
    }

    fn read(&self, address: u64) -> u64 {
        self.machine.read_word(address)
    }

    /// Writes a word of a table or of a queue.
    pub(crate) fn write(&mut self, address: u64, value: u64) {
        self.machine.write_word(address, value);
        self.written(address, 8);
    }

    fn written(&mut self, address: u64, size: u64) {
        if self.needs_write_back {
            self.machine.write_back(address, size);
        }
    }
}

/// The form of the page tables: all units must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// How many levels there are: 3 or 4.
    pub(crate) levels: u32,
    /// The highest level whose entries can lead to pages: 1 for pages of 4 KiB only, 2 for those of
    /// 2 MiB, 3 for those of 1 GiB.
    pub(crate) largest: u32,
    /// How many bits an address has at most.
    pub(crate) bits: u32,
}

/// The page tables of a domain, which map addresses to themselves.
pub(crate) struct PageTables {
    format: Format,
    /// All tables; the first is that of the highest level.
    pages: Vec<u64>,
}

impl PageTables {
    /// Tables that map nothing.
    pub(crate) fn new<M: Machine>(
        memory: &mut TableMemory<'_, M>,
        format: Format,
    ) -> Result<PageTables, NoMemory> {
        let mut pages = Vec::new();
        memory.take(&mut pages)?;
        Ok(PageTables { format, pages })
    }

    /// Maps pages of physical memory; a part may be mapped already. After an error nothing more is
    /// mapped than before: tables are made before the first entry for a page.
    pub(crate) fn map<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        ranges: &[Range<u64>],
    ) -> Result<(), NoMemory> {
        for fill in [false, true] {
            for range in ranges {
                if range.end > 1 << self.format.bits {
                    return Err(NoMemory);
                }
                self.enter(memory, self.pages[0], self.format.levels, range.clone(), fill)?;
            }
        }
        Ok(())
    }

    /// Makes the tables that `range` needs below the one at `table`, or with `fill` its entries.
    fn enter<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        table: u64,
        level: u32,
        range: Range<u64>,
        fill: bool,
    ) -> Result<(), NoMemory> {
        let span = PAGE << (9 * (level - 1));
        let mut at = range.start;
        while at < range.end {
            let next = ((at / span + 1) * span).min(range.end);
            let slot = table + at / span % 512 * 8;
            let entry = memory.read(slot);
            let is_leaf = entry & ACCESS != 0 && (level == 1 || entry & LARGE != 0);
            if is_leaf {
                // The same memory may have been granted twice.
            } else if entry & ACCESS == 0 && next - at == span && level <= self.format.largest {
                if fill {
                    memory.write(slot, at | ACCESS | if level > 1 { LARGE } else { 0 });
                }
            } else {
                let below = match entry & ACCESS {
                    0 => {
                        let below = memory.take(&mut self.pages)?;
                        memory.write(slot, below | ACCESS);
                        below
                    }
                    _ => entry & ADDRESS,
                };
                self.enter(memory, below, level - 1, at..next, fill)?;
            }
            at = next;
        }
        Ok(())
    }

    /// The memory of the tables, which no unit may read any more.
    pub(crate) fn into_pages(self) -> Vec<u64> {
        self.pages
    }
}

/// The tables by which a unit finds the domain of a function.
pub(crate) struct ContextTables {
    /// The table of buses; then the tables of functions, each with its bus.
    root: u64,
    contexts: Vec<(u8, u64)>,
}

impl ContextTables {
    /// Tables in which no function has a domain: none reaches any memory.
    pub(crate) fn new<M: Machine>(memory: &mut TableMemory<'_, M>) -> Result<ContextTables, NoMemory> {
        Ok(ContextTables { root: memory.take(&mut Vec::new())?, contexts: Vec::new() })
    }

    /// The address of the table of buses.
    pub(crate) fn root(&self) -> u64 {
        self.root
    }

    /// The address of the entry of a function, whose place is bus, device and function in bits
    /// 16..24, 11..16 and 8..11.
    fn entry<M: Machine>(&mut self, memory: &mut TableMemory<'_, M>, place: u32) -> Result<u64, NoMemory> {
        let (bus, within) = ((place >> 16) as u8, u64::from(place >> 8 & 0xff));
        let known = self.contexts.iter().find(|&&(other, _)| other == bus).map(|&(_, table)| table);
        let table = match known {
            Some(table) => table,
            None => {
                self.contexts.try_reserve(1).map_err(|_| NoMemory)?;
                let table = memory.take(&mut Vec::new())?;
                self.contexts.push((bus, table));
                memory.write(self.root + u64::from(bus) * 16, table | PRESENT);
                table
            }
        };
        Ok(table + within * 16)
    }

    /// Gives a function the domain of this number and these tables.
    pub(crate) fn attach<M: Machine>(
        &mut self,
        memory: &mut TableMemory<'_, M>,
        place: u32,
        domain: u16,
        tables: &PageTables,
    ) -> Result<(), NoMemory> {
        let entry = self.entry(memory, place)?;
        memory.write(entry, 0);
        memory.write(entry + 8, u64::from(domain) << 8 | u64::from(tables.format.levels - 2));
        memory.write(entry, tables.pages[0] | PRESENT);
        Ok(())
    }

    /// Takes a function's domain away. Whether its faults are recorded stays as it is.
    pub(crate) fn detach<M: Machine>(&mut self, memory: &mut TableMemory<'_, M>, place: u32) {
        if let Ok(entry) = self.entry(memory, place) {
            let quiet = memory.read(entry) & QUIET;
            memory.write(entry, quiet);
        }
    }

    /// Has the unit record no more faults of the function.
    pub(crate) fn silence<M: Machine>(&mut self, memory: &mut TableMemory<'_, M>, place: u32) {
        if let Ok(entry) = self.entry(memory, place) {
            let value = memory.read(entry) | QUIET;
            memory.write(entry, value);
        }
    }
}
