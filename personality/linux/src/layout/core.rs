//! The layout of core files (core(5)): an ELF file with notes about the threads, and the memory.

use super::Writer;
use super::registers::{LEGACY_SIZE, REGISTERS_SIZE};
use alloc::vec::Vec;
use core::time::Duration;

const PAGE: u64 = 4096;
const HEADER: usize = 64;
const SEGMENT: usize = 56;

/// Kinds of notes.
const PRSTATUS: u32 = 1;
const FPREGSET: u32 = 2;
const PRPSINFO: u32 = 3;
const AUXV: u32 = 6;
const SIGINFO: u32 = 0x5349_4749;
const FILE: u32 = 0x4649_4c45;
const XSTATE: u32 = 0x202;

/// What a core file says about a process.
pub struct Process {
    /// Its id, its parent's, its group's and its session's.
    pub ids: [u32; 4],
    /// Its real user and group id.
    pub user: [u32; 2],
    /// Its nice value.
    pub nice: i8,
    /// Its name.
    pub name: Vec<u8>,
    /// Its arguments, each with a zero byte.
    pub arguments: Vec<u8>,
    /// The auxiliary vector of its program.
    pub auxiliary: Vec<u8>,
    /// The information of the signal that has ended it.
    pub information: [u8; 128],
    /// The number of that signal.
    pub signal: u8,
}

/// What a core file says about a thread.
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// Its registers.
    pub registers: [u8; REGISTERS_SIZE],
    /// Its extended state.
    pub extended: Vec<u8>,
    /// Pending and blocked signals.
    pub signals: [u64; 2],
    /// Processor time in the program and in the system.
    pub times: [Duration; 2],
}

/// A range of memory.
pub struct Range {
    /// Its first address.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// How many of them are in the file.
    pub kept: u64,
    /// Access rights: read 4, write 2, execute 1.
    pub rights: u32,
    /// The name and the offset of the file that is mapped there.
    pub file: Option<(Vec<u8>, u64)>,
}

/// The beginning of a core file: all but the memory, and where that of each range begins.
pub fn head(process: &Process, threads: &[Thread], ranges: &[Range]) -> (Vec<u8>, Vec<u64>) {
    let notes = notes(process, threads, ranges);
    let count = ranges.len() + 1;
    let notes_at = HEADER + SEGMENT * count;
    let mut at = ((notes_at + notes.len()) as u64).next_multiple_of(PAGE);
    let mut bytes = header(count);
    bytes.extend(segment(4, 0, notes_at as u64, 0, [notes.len() as u64, 0], 4));
    let mut places = Vec::new();
    for range in ranges {
        places.push(at);
        bytes.extend(segment(1, range.rights, at, range.start, [range.kept, range.length], PAGE));
        at += range.kept.next_multiple_of(PAGE);
    }
    bytes.extend(notes);
    (bytes, places)
}

fn header(segments: usize) -> Vec<u8> {
    const CORE: u16 = 4;
    const X86_64: u16 = 62;
    Writer::<HEADER>::new()
        .bytes(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1])
        .u16(16, CORE)
        .u16(18, X86_64)
        .u32(20, 1)
        .u64(32, HEADER as u64)
        .u16(52, HEADER as u16)
        .u16(54, SEGMENT as u16)
        // More segments than fit the field: readers see as many as they can.
        .u16(56, u16::try_from(segments).unwrap_or(u16::MAX - 1))
        .done()
        .to_vec()
}

fn segment(kind: u32, rights: u32, at: u64, address: u64, sizes: [u64; 2], alignment: u64) -> [u8; SEGMENT] {
    Writer::new()
        .u32(0, kind)
        .u32(4, rights)
        .u64(8, at)
        .u64(16, address)
        .u64(32, sizes[0])
        .u64(40, sizes[1])
        .u64(48, alignment)
        .done()
}

fn notes(process: &Process, threads: &[Thread], ranges: &[Range]) -> Vec<u8> {
    let mut notes = Vec::new();
    for (index, thread) in threads.iter().enumerate() {
        note(&mut notes, b"CORE", PRSTATUS, &status(process, thread));
        if index == 0 {
            note(&mut notes, b"CORE", PRPSINFO, &description(process));
            note(&mut notes, b"CORE", SIGINFO, &process.information);
            note(&mut notes, b"CORE", AUXV, &process.auxiliary);
            note(&mut notes, b"CORE", FILE, &files(ranges));
        }
        note(&mut notes, b"CORE", FPREGSET, &thread.extended[..LEGACY_SIZE.min(thread.extended.len())]);
        note(&mut notes, b"LINUX", XSTATE, &thread.extended);
    }
    notes
}

fn note(notes: &mut Vec<u8>, owner: &[u8], kind: u32, contents: &[u8]) {
    let padded = |bytes: &[u8], notes: &mut Vec<u8>| {
        notes.extend_from_slice(bytes);
        notes.resize(notes.len().next_multiple_of(4), 0);
    };
    for word in [owner.len() as u32 + 1, contents.len() as u32, kind] {
        notes.extend(word.to_le_bytes());
    }
    notes.extend_from_slice(owner);
    padded(&[0], notes);
    padded(contents, notes);
}

/// A struct elf_prstatus.
fn status(process: &Process, thread: &Thread) -> [u8; 336] {
    let [_, parent, group, session] = process.ids;
    let time = |time: Duration| (time.as_secs(), u64::from(time.subsec_micros()));
    let (user, system) = (time(thread.times[0]), time(thread.times[1]));
    Writer::new()
        .u32(0, process.signal.into())
        .u16(12, process.signal.into())
        .u64(16, thread.signals[0])
        .u64(24, thread.signals[1])
        .u32(32, thread.tid)
        .u32(36, parent)
        .u32(40, group)
        .u32(44, session)
        .u64(48, user.0)
        .u64(56, user.1)
        .u64(64, system.0)
        .u64(72, system.1)
        .bytes(112, &thread.registers)
        .u32(328, 1)
        .done()
}

/// A struct elf_prpsinfo.
fn description(process: &Process) -> [u8; 136] {
    const NAME: usize = 15;
    const ARGUMENTS: usize = 79;
    let mut arguments = process.arguments.clone();
    while arguments.last() == Some(&0) {
        arguments.pop();
    }
    arguments.truncate(ARGUMENTS);
    arguments.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    let name = &process.name[..process.name.len().min(NAME)];
    let writer = Writer::new()
        .bytes(1, &[b'R', 0, process.nice as u8])
        .u32(16, process.user[0])
        .u32(20, process.user[1])
        .bytes(40, name)
        .bytes(56, &arguments);
    process
        .ids
        .into_iter()
        .enumerate()
        .fold(writer, |writer, (index, id)| writer.u32(24 + 4 * index, id))
        .done()
}

/// The list of mapped files.
fn files(ranges: &[Range]) -> Vec<u8> {
    let mapped = || ranges.iter().filter_map(|range| Some((range, range.file.as_ref()?)));
    let mut bytes: Vec<u8> = [mapped().count() as u64, PAGE].into_iter().flat_map(u64::to_le_bytes).collect();
    for (range, (_, offset)) in mapped() {
        let words = [range.start, range.start + range.length, offset / PAGE];
        bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
    }
    for (_, (name, _)) in mapped() {
        bytes.extend_from_slice(name);
        bytes.push(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Fields;

    #[test]
    fn a_core_file_begins_with_its_segments_and_notes() {
        let process = Process {
            ids: [7, 1, 7, 7],
            user: [0, 0],
            nice: 0,
            name: b"program".to_vec(),
            arguments: b"program\0-x\0".to_vec(),
            auxiliary: vec![0; 16],
            information: [0; 128],
            signal: 11,
        };
        let thread = |tid| Thread {
            tid,
            registers: [tid as u8; REGISTERS_SIZE],
            extended: vec![0; 832],
            signals: [0; 2],
            times: [Duration::ZERO; 2],
        };
        let range = |start, kept, file| Range { start, length: 0x3000, kept, rights: 6, file };
        let ranges =
            [range(0x40_0000, 0x1000, Some((b"/bin/x".to_vec(), 0x2000))), range(0x50_0000, 0x3000, None)];
        let (head, places) = head(&process, &[thread(7), thread(8)], &ranges);
        assert_eq!((head.u16_at(16), head.u16_at(56)), (Ok(4), Ok(3)));
        let load = |index: usize, at: usize| head.u64_at(64 + 56 * index + at);
        assert_eq!((load(1, 8), load(1, 16)), (Ok(places[0]), Ok(0x40_0000)));
        assert_eq!((load(2, 8), places[1] - places[0]), (Ok(places[1]), 0x1000));
        assert!(places[0].is_multiple_of(4096) && places[0] >= head.len() as u64);
        // Notes follow each other to their end.
        let (start, size) = (load(0, 8).unwrap() as usize, load(0, 32).unwrap() as usize);
        let (mut at, mut kinds) = (start, Vec::new());
        while at < start + size {
            let word = |index: usize| head.u32_at(at + 4 * index).unwrap() as usize;
            kinds.push(word(2) as u32);
            at += 12 + word(0).next_multiple_of(4) + word(1).next_multiple_of(4);
        }
        assert_eq!(at, head.len());
        let first = [PRSTATUS, PRPSINFO, SIGINFO, AUXV, FILE, FPREGSET, XSTATE];
        assert_eq!(kinds, [&first[..], &[PRSTATUS, FPREGSET, XSTATE]].concat());
    }
}
