//! A simulated IOMMU: it reads tables as the hardware does, keeps what it has read until it is told
//! to forget it, and records what it refuses.

use crate::executable::PAGE;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Where its registers are.
pub(super) const REGISTERS: u64 = 0xfed9_0000;
/// The offset of its records of faults, and how many there are.
const RECORDS: u64 = 0x220;
const RECORD_COUNT: usize = 2;

/// Memory in words that are not zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(BTreeMap<u64, u64>);

impl Words {
    pub(super) fn read(&self, address: u64) -> u64 {
        assert!(address.is_multiple_of(8));
        self.0.get(&address).copied().unwrap_or(0)
    }

    pub(super) fn write(&mut self, address: u64, value: u64) {
        assert!(address.is_multiple_of(8));
        self.0.insert(address, value);
    }

    pub(super) fn clear(&mut self, memory: Range<u64>) {
        let words: Vec<u64> = self.0.range(memory).map(|(&at, _)| at).collect();
        for at in words {
            self.0.remove(&at);
        }
    }

    /// Makes these words those of another memory.
    pub(super) fn copy(&mut self, from: &Words, memory: Range<u64>) {
        self.clear(memory.clone());
        self.0.extend(from.0.range(memory).map(|(&at, &word)| (at, word)));
    }

    fn entries(&self, table: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.range(table..table + PAGE).map(move |(&at, &word)| ((at - table) / 8, word))
    }
}

/// Bits of the command register, and of the status register.
const REMAP: u32 = 1 << 25;
const SET_TABLE: u32 = 1 << 24;
const COMPATIBLE: u32 = 1 << 23;
/// What the kernel says that the register of the table of interrupts has to hold.
pub(super) const TABLE: u64 = 0x7f_0007;

/// What a unit can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    /// The numbers of levels of its tables: bit 1 stands for 3, bit 2 for 4.
    pub(super) levels: u64,
    /// Pages of 2 MiB (bit 0) and of 1 GiB (bit 1).
    pub(super) large: u64,
    /// It reads the processors' caches.
    pub(super) is_coherent: bool,
    /// It keeps also that an entry was absent.
    pub(super) keeps_absent: bool,
    /// It must be told that writes are to be in memory.
    pub(super) has_write_buffers: bool,
    pub(super) has_queue: bool,
    /// It remaps interrupts.
    pub(super) remaps: bool,
}

impl Abilities {
    pub(super) const USUAL: Abilities = Abilities {
        levels: 2,
        large: 3,
        is_coherent: false,
        keeps_absent: false,
        has_write_buffers: false,
        has_queue: true,
        remaps: true,
    };
}

/// The unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    abilities: Abilities,
    /// Memory as the unit sees it.
    pub(super) memory: Words,
    registers: BTreeMap<u64, u32>,
    status: u32,
    root: u64,
    head: u64,
    /// The entries of functions that it has kept.
    contexts: BTreeMap<u32, [u64; 2]>,
    /// The pages that it has kept, by their domains, and whether they may be used.
    pages: BTreeMap<(u64, u64), bool>,
    /// The entries of the table of interrupts that it has kept, with their sources.
    interrupt_entries: BTreeMap<u32, Option<u16>>,
    records: [[u32; 4]; RECORD_COUNT],
    /// How many interrupts it has sent.
    pub(super) interrupts: u32,
    /// Whether it does nothing any more that it is told.
    pub(super) is_stuck: bool,
}

impl Unit {
    pub(super) fn new(abilities: Abilities) -> Unit {
        Unit {
            abilities,
            memory: Words::default(),
            registers: BTreeMap::new(),
            // As some firmware leaves it: messages pass that name no entry.
            status: COMPATIBLE,
            root: 0,
            head: 0,
            contexts: BTreeMap::new(),
            pages: BTreeMap::new(),
            interrupt_entries: BTreeMap::new(),
            records: [[0; 4]; RECORD_COUNT],
            interrupts: 0,
            is_stuck: false,
        }
    }

    pub(super) fn is_coherent(&self) -> bool {
        self.abilities.is_coherent
    }

    pub(super) fn is_on(&self) -> bool {
        self.status >> 31 != 0
    }

    pub(super) fn read(&self, register: u64) -> u32 {
        let Abilities { levels, large, keeps_absent, has_write_buffers, .. } = self.abilities;
        let capabilities = 2
            | u64::from(has_write_buffers) << 4
            | 1 << 5
            | u64::from(keeps_absent) << 7
            | levels << 8
            | if levels & 4 != 0 { 47 << 16 } else { 38 << 16 }
            | (RECORDS / 16) << 24
            | large << 34
            | (RECORD_COUNT as u64 - 1) << 40
            | 3 << 54;
        let Abilities { is_coherent, has_queue, remaps, .. } = self.abilities;
        let extended = u64::from(is_coherent) | u64::from(has_queue) << 1 | u64::from(remaps) << 3;
        match register {
            0x8 => capabilities as u32,
            0xc => (capabilities >> 32) as u32,
            0x10 => extended as u32,
            0x14 => (extended >> 32) as u32,
            0x1c => self.status,
            0x34 => u32::from(self.has_fault()) << 1,
            0x220..0x240 => self.records[(register - RECORDS) as usize / 16][register as usize % 16 / 4],
            _ => self.registers.get(&register).copied().unwrap_or(0),
        }
    }

    fn has_fault(&self) -> bool {
        self.records.iter().any(|record| record[3] >> 31 != 0)
    }

    fn wide(&self, register: u64) -> u64 {
        u64::from(self.read(register)) | u64::from(self.read(register + 4)) << 32
    }

    /// The write of a register. Returns a word that the unit writes to memory, and its address.
    pub(super) fn write(&mut self, register: u64, value: u32) -> Option<(u64, u64)> {
        match register {
            0x18 if !self.is_stuck => self.command(value),
            0x22c | 0x23c if value >> 31 != 0 => self.records[(register - RECORDS) as usize / 16] = [0; 4],
            0x18 | 0x1c | 0x34 | 0x220..0x240 => {}
            0x88 => {
                self.registers.insert(register, value);
                return self.work();
            }
            _ => drop(self.registers.insert(register, value)),
        }
        None
    }

    fn command(&mut self, command: u32) {
        const QUEUE: u32 = 1 << 26;
        const LASTING: u32 = 1 << 31 | QUEUE | REMAP | COMPATIBLE;
        const ONCE: u32 = 1 << 30 | 1 << 27 | SET_TABLE;
        assert_eq!(command & !self.status & !(LASTING | ONCE), 0, "{command:x}");
        let changed = (command ^ self.status) & LASTING | command & ONCE;
        assert!(changed.count_ones() <= 1, "one command at a time");
        if changed & QUEUE != 0 {
            self.head = 0;
            assert!(self.wide(0x90).is_multiple_of(PAGE) && self.read(0x88) == 0);
        }
        if command >> 30 & 1 != 0 {
            self.root = self.wide(0x20);
        }
        assert!(self.root != 0 || command >> 31 == 0, "it has a table before it translates");
        if changed & command & REMAP != 0 {
            assert!(self.abilities.remaps && self.interrupt_entries.is_empty(), "it has forgotten others");
            assert_eq!(self.wide(0xb8), TABLE, "it uses the kernel's table");
            assert_eq!(command & COMPATIBLE | !self.status & SET_TABLE, 0, "and nothing else");
        }
        self.status = command & LASTING | (self.status | command) & (1 << 30 | SET_TABLE);
    }

    /// Carries out what is in the queue.
    fn work(&mut self) -> Option<(u64, u64)> {
        let (queue, tail) = (self.wide(0x90), self.wide(0x88));
        let mut written = None;
        while !self.is_stuck && self.status >> 26 & 1 != 0 && self.head != tail {
            let [low, high] = [0, 8].map(|offset| self.memory.read(queue + self.head + offset));
            match low & 0xf {
                1 => self.contexts.clear(),
                2 if low >> 4 & 3 == 1 => self.pages.clear(),
                2 => self.pages.retain(|&(domain, _), _| domain != low >> 16 & 0xffff),
                4 => self.interrupt_entries.clear(),
                5 if low >> 5 & 1 != 0 => written = Some((high, low >> 32)),
                other => panic!("descriptor {other}"),
            }
            self.head = (self.head + 16) % PAGE;
        }
        written
    }

    pub(super) fn is_remapping(&self) -> bool {
        self.status & REMAP != 0
    }

    /// A function sends the message that names entry `number`, which is for `source`. Returns
    /// whether it interrupts.
    pub(super) fn message(&mut self, place: u32, number: u32, source: Option<u16>) -> bool {
        let source = self.interrupt_entries.get(&number).copied().unwrap_or(source);
        if source.is_some() || self.abilities.keeps_absent {
            self.interrupt_entries.insert(number, source);
        }
        let may = source == Some((place >> 8) as u16);
        if !may {
            let reason = if source.is_some() { 0x26 } else { 0x22 };
            self.record(place, u64::from(number) << 48, false, reason);
        }
        may
    }

    /// The entry of a function: what is kept, or what is in the table.
    fn context(&self, place: u32) -> [u64; 2] {
        let (bus, within) = (u64::from(place >> 16), u64::from(place >> 8 & 0xff));
        if let Some(&kept) = self.contexts.get(&place) {
            return kept;
        }
        let entry = self.memory.read(self.root + bus * 16);
        if entry & 1 == 0 {
            return [0; 2];
        }
        let at = (entry & !(PAGE - 1)) + within * 16;
        [self.memory.read(at), self.memory.read(at + 8)]
    }

    /// All pages that a function can reach, by the tables or because they are kept.
    pub(super) fn reachable(&self, place: u32) -> BTreeSet<u64> {
        let [low, high] = self.context(place);
        let mut found = BTreeSet::new();
        if low & 1 == 0 {
            return found;
        }
        assert_eq!(low >> 2 & 3, 0, "only what is not translated yet");
        let (levels, domain) = ((high & 7) + 2, high >> 8 & 0xffff);
        assert!(self.abilities.levels >> (levels - 2) & 1 != 0 && domain < 256);
        self.walk(low & !(PAGE - 1), levels, 0, &mut found);
        for (&(_, page), &may) in self.pages.iter().filter(|&(&(of, _), _)| of == domain) {
            if may {
                found.insert(page);
            } else {
                found.remove(&page);
            }
        }
        found
    }

    fn walk(&self, table: u64, level: u64, base: u64, found: &mut BTreeSet<u64>) {
        let span = PAGE << (9 * (level - 1));
        for (index, entry) in self.memory.entries(table).filter(|(_, entry)| entry & 3 != 0) {
            assert_eq!(entry & 3, 3);
            let (at, target) = (base + index * span, entry & 0xf_ffff_ffff_f000);
            if level == 1 || entry >> 7 & 1 != 0 {
                assert!(
                    level == 1
                        || level == 2 && self.abilities.large & 1 != 0
                        || self.abilities.large & 2 != 0
                );
                assert_eq!(at, target, "addresses of devices are physical ones");
                found.extend((at..at + span).step_by(PAGE as usize));
            } else {
                self.walk(target, level - 1, at, found);
            }
        }
    }

    /// A function reads or writes a page. Returns whether it can.
    pub(super) fn access(&mut self, place: u32, page: u64, is_read: bool) -> bool {
        if !self.is_on() {
            return true;
        }
        let context @ [low, high] = self.context(place);
        let is_there = low & 1 != 0;
        if is_there || self.abilities.keeps_absent {
            self.contexts.insert(place, context);
        }
        let key = (high >> 8 & 0xffff, page);
        let kept = self.pages.get(&key).copied();
        let may = is_there && kept.unwrap_or_else(|| self.reachable(place).contains(&page));
        if is_there && (may || self.abilities.keeps_absent) {
            self.pages.insert(key, may);
        }
        if !may && low & 2 == 0 {
            self.record(place, page, is_read, if is_there { 6 } else { 2 });
        }
        may
    }

    fn record(&mut self, place: u32, page: u64, is_read: bool, reason: u32) {
        let is_first = !self.has_fault();
        let Some(free) = self.records.iter_mut().find(|record| record[3] >> 31 == 0) else { return };
        *free = [page as u32, (page >> 32) as u32, place >> 8, 1 << 31 | u32::from(is_read) << 30 | reason];
        if is_first && self.read(0x38) >> 31 == 0 {
            self.interrupts += 1;
        }
    }

    /// The function uses all that it can, so that the unit keeps it.
    pub(super) fn use_all(&mut self, place: u32) {
        let context @ [low, high] = self.context(place);
        if low & 1 != 0 {
            self.contexts.insert(place, context);
            for page in self.reachable(place) {
                self.pages.insert((high >> 8 & 0xffff, page), true);
            }
        }
    }
}
