//! Writes a small shared object (ELF) that has functions without data: what a program finds in its
//! memory by AT_SYSINFO_EHDR. It has the tables that dynamic linkers read (a hash table, and the
//! version of each symbol), and the sections by which debuggers find its symbols.

use alloc::vec::Vec;

/// A function in the code of a shared object.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The name of the function.
    pub name: &'static str,
    /// Where it begins in the code, in bytes.
    pub start: usize,
    /// Its length in bytes.
    pub size: usize,
}

/// The name of the object (DT_SONAME), and the version of its symbols: those of Linux, for which C
/// libraries ask.
const OBJECT_NAME: &str = "linux-vdso.so.1";
const VERSION_NAME: &str = "LINUX_2.6";

/// The code begins at a multiple of this.
const CODE_ALIGNMENT: usize = 32;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const DYNAMIC_ENTRIES: usize = 10;

/// A table of strings, each of which ends with a zero byte. The first one is empty.
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, string: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend_from_slice(string.as_bytes());
        self.0.push(0);
        at
    }
}

/// The hash of a name in ELF files.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        (hash ^ (hash >> 28) << 4) & 0x0fff_ffff
    })
}

/// Bytes of an ELF file.
#[derive(Default)]
struct Image(Vec<u8>);

impl Image {
    fn halves(&mut self, values: &[u16]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    fn words(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    fn longs(&mut self, values: &[u64]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }
}

/// A part of the file that is a section.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    start: usize,
    size: usize,
    /// The section that this one refers to, and a number that depends on the kind.
    link: u32,
    information: u32,
    alignment: u64,
    entry: u64,
}

/// The shared object with these functions in `code`. It is to be mapped as a whole, to be read and
/// executed; the code may refer to itself relative to the instruction pointer.
pub fn build(functions: &[Function], code: &[u8]) -> Vec<u8> {
    let mut strings = Strings(alloc::vec![0]);
    let names: Vec<u32> = functions.iter().map(|function| strings.add(function.name)).collect();
    let (object_name, version_name) = (strings.add(OBJECT_NAME), strings.add(VERSION_NAME));
    let count = functions.len() + 1;
    let dynamic = HEADER + 2 * PROGRAM_HEADER;
    let hashes = dynamic + DYNAMIC_ENTRIES * 16;
    let symbols = (hashes + 4 * (3 + count)).next_multiple_of(8);
    let versions = symbols + SYMBOL * count;
    let definitions = (versions + 2 * count).next_multiple_of(4);
    let texts = definitions + 2 * 28;
    let text = (texts + strings.0.len()).next_multiple_of(CODE_ALIGNMENT);
    let section = |name, kind, start, size, link, information, alignment, entry| Section {
        name,
        kind,
        flags: if kind == 1 { 6 } else { 2 },
        start,
        size,
        link,
        information,
        alignment,
        entry,
    };
    // The numbers of sections that others refer to.
    const SYMBOLS: u32 = 2;
    const STRINGS: u32 = 3;
    let mut sections = alloc::vec![
        section(".hash", 5, hashes, 4 * (3 + count), SYMBOLS, 0, 8, 4),
        section(".dynsym", 11, symbols, SYMBOL * count, STRINGS, 1, 8, SYMBOL as u64),
        section(".dynstr", 3, texts, strings.0.len(), 0, 0, 1, 0),
        section(".gnu.version", 0x6fff_ffff, versions, 2 * count, SYMBOLS, 0, 2, 2),
        section(".gnu.version_d", 0x6fff_fffd, definitions, 2 * 28, STRINGS, 2, 4, 0),
        section(".dynamic", 6, dynamic, DYNAMIC_ENTRIES * 16, STRINGS, 0, 8, 16),
        section(".text", 1, text, code.len(), 0, 0, CODE_ALIGNMENT as u64, 0),
    ];
    const TEXT: u16 = 7;
    let mut section_names = Strings(alloc::vec![0]);
    let mut name_offsets: Vec<u32> = sections.iter().map(|section| section_names.add(section.name)).collect();
    name_offsets.push(section_names.add(".shstrtab"));
    let after = text + code.len();
    let names_size = section_names.0.len();
    sections.push(Section { flags: 0, ..section(".shstrtab", 3, after, names_size, 0, 0, 1, 0) });
    let headers = (after + names_size).next_multiple_of(8);
    let size = headers + SECTION_HEADER * (sections.len() + 1);

    let mut image = Image(Vec::with_capacity(size));
    // 64 bits, little-endian, ELF version 1; a shared object for x86-64.
    image.0.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    image.halves(&[3, 62]);
    image.words(&[1]);
    image.longs(&[0, HEADER as u64, headers as u64]);
    image.words(&[0]);
    let section_count = sections.len() as u16 + 1;
    image.halves(&[
        HEADER as u16,
        PROGRAM_HEADER as u16,
        2,
        SECTION_HEADER as u16,
        section_count,
        section_count - 1,
    ]);
    // PT_LOAD, readable and executable; PT_DYNAMIC, readable.
    for (kind, flags, start, size) in [(1, 5, 0, size), (2, 4, dynamic, DYNAMIC_ENTRIES * 16)] {
        image.words(&[kind, flags]);
        let (start, size) = (start as u64, size as u64);
        image.longs(&[start, start, start, size, size, if kind == 1 { 0x1000 } else { 8 }]);
    }
    // DT_SONAME, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_VERSYM, DT_VERDEF,
    // DT_VERDEFNUM, DT_NULL.
    image.longs(&[14, object_name.into(), 4, hashes as u64, 5, texts as u64, 6, symbols as u64]);
    image.longs(&[10, strings.0.len() as u64, 11, SYMBOL as u64, 0x6fff_fff0, versions as u64]);
    image.longs(&[0x6fff_fffc, definitions as u64, 0x6fff_fffd, 2, 0, 0]);
    // The hash table: one bucket, whose chain has all symbols, the last first.
    image.words(&[1, count as u32, count as u32 - 1]);
    image.words(&(0..count as u32).map(|symbol| symbol.saturating_sub(1)).collect::<Vec<_>>());
    image.0.resize(symbols, 0);
    image.longs(&[0, 0, 0]);
    for (name, function) in names.iter().zip(functions) {
        // A global function in the section of the code.
        image.words(&[*name]);
        image.0.extend_from_slice(&[0x12, 0]);
        image.halves(&[TEXT]);
        image.longs(&[(text + function.start) as u64, function.size as u64]);
    }
    // Versions: the first symbol has none, the others have version 2. Version 1 is the object's own
    // name.
    image.halves(&(0..count).map(|symbol| if symbol == 0 { 0 } else { 2 }).collect::<Vec<u16>>());
    image.0.resize(definitions, 0);
    let defined = [(1, 1, object_name, OBJECT_NAME, 28), (0, 2, version_name, VERSION_NAME, 0)];
    for (flag, index, at, name, next) in defined {
        image.halves(&[1, flag, index, 1]);
        image.words(&[hash(name), 20, next, at, 0]);
    }
    image.0.extend_from_slice(&strings.0);
    image.0.resize(text, 0);
    image.0.extend_from_slice(code);
    image.0.extend_from_slice(&section_names.0);
    image.0.resize(headers, 0);
    image.longs(&[0; SECTION_HEADER / 8]);
    for (name, section) in name_offsets.iter().zip(&sections) {
        let address = if section.flags == 0 { 0 } else { section.start as u64 };
        image.words(&[*name, section.kind]);
        image.longs(&[section.flags, address, section.start as u64, section.size as u64]);
        image.words(&[section.link, section.information]);
        image.longs(&[section.alignment, section.entry]);
    }
    image.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [Function; 3] = [
        Function { name: "__vdso_first", start: 0, size: 5 },
        Function { name: "__vdso_second", start: 16, size: 9 },
        Function { name: "third", start: 32, size: 1 },
    ];

    fn long(image: &[u8], at: usize) -> usize {
        u64::from_le_bytes(image[at..at + 8].try_into().unwrap()) as usize
    }

    fn word(image: &[u8], at: usize) -> usize {
        u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize
    }

    fn half(image: &[u8], at: usize) -> usize {
        u16::from_le_bytes(image[at..at + 2].try_into().unwrap()).into()
    }

    fn string(image: &[u8], at: usize) -> &str {
        core::str::from_utf8(image[at..].split(|&byte| byte == 0).next().unwrap()).unwrap()
    }

    /// Finds a function as C libraries do: by the dynamic section, the hash table and the version.
    fn find(image: &[u8], name: &str, version: &str) -> Option<usize> {
        let dynamic = long(image, HEADER + PROGRAM_HEADER + 8);
        let entries: Vec<(usize, usize)> = (0..DYNAMIC_ENTRIES)
            .map(|i| (long(image, dynamic + 16 * i), long(image, dynamic + 16 * i + 8)))
            .collect();
        let value = |tag| entries.iter().find(|entry| entry.0 == tag).unwrap().1;
        let (hashes, strings, symbols) = (value(4), value(5), value(6));
        let (versions, mut definition) = (value(0x6fff_fff0), value(0x6fff_fffc));
        let buckets = word(image, hashes);
        let mut symbol = word(image, hashes + 8 + 4 * (hash(name) as usize % buckets));
        while symbol != 0 {
            let at = symbols + SYMBOL * symbol;
            if string(image, strings + word(image, at)) == name {
                let wanted = half(image, versions + 2 * symbol);
                while half(image, definition + 4) != wanted {
                    definition += word(image, definition + 16);
                }
                assert_eq!(word(image, definition + 8), hash(version) as usize);
                let named = word(image, definition + word(image, definition + 12));
                assert_eq!(string(image, strings + named), version);
                return Some(long(image, at + 8));
            }
            symbol = word(image, hashes + 8 + 4 * buckets + 4 * symbol);
        }
        None
    }

    #[test]
    fn functions_are_found_by_name_and_version() {
        let code: Vec<u8> = (0..40).collect();
        let image = build(&FUNCTIONS, &code);
        for function in FUNCTIONS {
            let at = find(&image, function.name, "LINUX_2.6").unwrap();
            assert_eq!(image[at] as usize, function.start, "{}", function.name);
        }
        assert_eq!(find(&image, "fourth", "LINUX_2.6"), None);
        assert_eq!(long(&image, HEADER + 32), image.len(), "all of the file is loaded");
    }

    #[test]
    fn debuggers_find_the_symbols_by_sections() {
        let image = build(&FUNCTIONS, &[0x90; 40]);
        let (headers, count) = (long(&image, 40), half(&image, 60));
        assert_eq!(headers + SECTION_HEADER * count, image.len());
        let header = |index: usize| headers + SECTION_HEADER * index;
        let names = long(&image, header(half(&image, 62)) + 24);
        let find = |name: &str| {
            (1..count).find(|&index| string(&image, names + word(&image, header(index))) == name).unwrap()
        };
        let symbols = find(".dynsym");
        let strings = find(".dynstr");
        assert_eq!(word(&image, header(symbols) + 40), strings, "the symbols' names");
        assert_eq!(long(&image, header(symbols) + 32), SYMBOL * 4);
        let first = long(&image, header(symbols) + 24) + SYMBOL;
        assert_eq!(half(&image, first + 6), find(".text"));
        assert_eq!(string(&image, long(&image, header(strings) + 24) + word(&image, first)), "__vdso_first");
        assert_eq!(word(&image, header(find(".gnu.version_d")) + 44), 2, "definitions");
    }
}
