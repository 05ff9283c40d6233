//! ELF files for x86-64 (System V ABI, chapters 4 and 5).
//!
//! A file that cannot be loaded is refused as a whole: `ENOEXEC` if it is not a program for this
//! machine or is damaged, `ELIBBAD` if it is a damaged interpreter (the caller translates),
//! `ENOMEM` if its segments leave the address space.

use super::image::{Image, ImageFormat, Rights, Segment};
use crate::{Error, Result};
use core::ops::Range;

/// Bytes of an ELF file header.
const HEADER_SIZE: usize = 64;
/// Bytes of an ELF program header.
pub const PROGRAM_HEADER_SIZE: usize = 56;
/// The most bytes that all program headers of a file may take.
const MAX_PROGRAM_HEADERS: usize = 65536;
/// Bytes of the longest path of an interpreter, with its terminating zero.
const MAX_INTERPRETER: u64 = 4096;

/// The ELF format of program files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elf;

/// An ELF file header, as far as it is needed to read the program headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Whether the program's addresses are relative to a base that the loader chooses (ET_DYN).
    is_relocatable: bool,
    /// The program's entry point, before relocation.
    entry: u64,
    /// Offset of the program headers in the file, in bytes.
    headers_at: u64,
    /// How many program headers the file has.
    header_count: usize,
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Result<[u8; N]> {
    data.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Error::ENOEXEC)
}

fn u16_at(data: &[u8], at: usize) -> Result<u16> {
    bytes(data, at).map(u16::from_le_bytes)
}

fn u32_at(data: &[u8], at: usize) -> Result<u32> {
    bytes(data, at).map(u32::from_le_bytes)
}

fn u64_at(data: &[u8], at: usize) -> Result<u64> {
    bytes(data, at).map(u64::from_le_bytes)
}

impl Header {
    /// Reads the ELF header at the start of a file. `ENOEXEC` if the file is no x86-64 program.
    fn parse(data: &[u8]) -> Result<Header> {
        const ET_EXEC: u16 = 2;
        const ET_DYN: u16 = 3;
        const EM_X86_64: u16 = 62;
        // Class, byte order and version follow from the machine's number, so they are not checked.
        if data.len() < HEADER_SIZE || bytes(data, 0)? != [0x7f, b'E', b'L', b'F'] {
            return Err(Error::ENOEXEC);
        }
        let (kind, machine) = (u16_at(data, 16)?, u16_at(data, 18)?);
        let header_count = usize::from(u16_at(data, 56)?);
        let suits = machine == EM_X86_64
            && matches!(kind, ET_EXEC | ET_DYN)
            && usize::from(u16_at(data, 54)?) == PROGRAM_HEADER_SIZE
            && header_count != 0
            && header_count * PROGRAM_HEADER_SIZE <= MAX_PROGRAM_HEADERS;
        if !suits {
            return Err(Error::ENOEXEC);
        }
        let headers_at = u64_at(data, 32)?;
        headers_at
            .checked_add(MAX_PROGRAM_HEADERS as u64)
            .filter(|end| *end < i64::MAX as u64)
            .ok_or(Error::ENOEXEC)?;
        Ok(Header { is_relocatable: kind == ET_DYN, entry: u64_at(data, 24)?, headers_at, header_count })
    }

    /// Bytes of all program headers of the file.
    fn headers_size(&self) -> usize {
        self.header_count * PROGRAM_HEADER_SIZE
    }
}

impl ImageFormat for Elf {
    fn recognises(&self, start: &[u8]) -> bool {
        start.starts_with(b"\x7fELF")
    }

    fn headers(&self, start: &[u8]) -> Result<Range<u64>> {
        let header = Header::parse(start)?;
        Ok(header.headers_at..header.headers_at + header.headers_size() as u64)
    }

    /// Makes the image of a program from the ELF header in `start` and the program headers in
    /// `table`.
    fn parse(&self, start: &[u8], table: &[u8], size: u64, limit: u64) -> Result<Image> {
        const PT_LOAD: u32 = 1;
        const PT_INTERP: u32 = 3;
        const PT_GNU_STACK: u32 = 0x6474_e551;
        const PF_X: u32 = 1;
        let header = Header::parse(start)?;
        let mut image = Image::new(header.entry, header.is_relocatable);
        if table.len() < header.headers_size() {
            return Err(Error::ENOEXEC);
        }
        for entry in table.chunks_exact(PROGRAM_HEADER_SIZE).take(header.header_count) {
            let (kind, flags) = (u32_at(entry, 0)?, u32_at(entry, 4)?);
            match kind {
                PT_LOAD => image.add(segment(entry, flags)?, u64_at(entry, 48)?, size, limit)?,
                PT_INTERP if image.interpreter.is_none() => {
                    let (offset, length) = (u64_at(entry, 8)?, u64_at(entry, 32)?);
                    let end = offset.checked_add(length).filter(|end| *end <= size).ok_or(Error::ENOEXEC)?;
                    if !(2..=MAX_INTERPRETER).contains(&length) {
                        return Err(Error::ENOEXEC);
                    }
                    image.interpreter = Some(offset..end);
                }
                PT_GNU_STACK => image.executable_stack = flags & PF_X != 0,
                _ => {}
            }
        }
        let mut image = image.finish()?;
        image.header_count = header.header_count;
        image.headers_address = headers_address(&image, &header);
        Ok(image)
    }
}

/// The segment that the program header `entry` describes.
fn segment(entry: &[u8], flags: u32) -> Result<Segment> {
    Ok(Segment {
        offset: u64_at(entry, 8)?,
        address: u64_at(entry, 16)?,
        file_size: u64_at(entry, 32)?,
        memory_size: u64_at(entry, 40)?,
        rights: Rights { read: flags & 4 != 0, write: flags & 2 != 0, execute: flags & 1 != 0 },
    })
}

/// Address at which a segment has the program headers in memory, before relocation; 0 if they are
/// in no segment.
fn headers_address(image: &Image, header: &Header) -> u64 {
    let (start, size) = (header.headers_at, header.headers_size() as u64);
    let holds = |s: &&Segment| s.offset <= start && start + size <= s.offset + s.file_size;
    image.segments.iter().find(holds).map_or(0, |s| s.address + (start - s.offset))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::image::{Mapping, START_SIZE};
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = 1 << 47;

    pub(crate) fn program_header(kind: u32, flags: u32, words: [u64; 6]) -> Vec<u8> {
        let mut entry = [kind.to_le_bytes(), flags.to_le_bytes()].concat();
        words.iter().for_each(|word| entry.extend(word.to_le_bytes()));
        entry
    }

    /// The fields of the program header, in order: offset, address, physical address, file size,
    /// memory size, alignment.
    pub(crate) fn load(flags: u32, offset: u64, address: u64, file_size: u64, memory_size: u64) -> Vec<u8> {
        program_header(1, flags, [offset, address, 0, file_size, memory_size, 0x1000])
    }

    pub(crate) fn file(kind: u16, entry: u64, headers: &[Vec<u8>]) -> Vec<u8> {
        let mut data = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        data.extend(kind.to_le_bytes());
        data.extend(62u16.to_le_bytes());
        data.extend(1u32.to_le_bytes());
        data.extend(entry.to_le_bytes());
        data.extend(64u64.to_le_bytes());
        data.extend([0; 12]);
        data.extend(64u16.to_le_bytes());
        data.extend(56u16.to_le_bytes());
        data.extend((headers.len() as u16).to_le_bytes());
        data.extend([0; 6]);
        headers.iter().for_each(|header| data.extend(header));
        data.resize(0x4000, 0);
        data
    }

    pub(crate) fn parse(data: &[u8]) -> Result<Image> {
        let start = &data[..data.len().min(START_SIZE)];
        let headers = Elf.headers(start)?;
        let at = |offset: u64| (offset as usize).min(data.len());
        Elf.parse(start, &data[at(headers.start)..at(headers.end)], data.len() as u64, LIMIT)
    }

    #[test]
    fn a_static_program_is_described() {
        let data = file(
            2,
            0x401000,
            &[load(5, 0, 0x400000, 0x1800, 0x1800), load(6, 0x1800, 0x402800, 0x100, 0x3000)],
        );
        let image = parse(&data).unwrap();
        assert_eq!((image.entry, image.is_relocatable), (0x401000, false));
        assert_eq!((image.headers_address, image.span.clone()), (0x400040, 0x400000..0x406000));
        let mappings: Vec<Mapping> = image.mappings(0).collect();
        assert_eq!(
            (mappings[0].address, mappings[0].file_length, mappings[0].zero_length),
            (0x400000, 0x2000, 0)
        );
        assert!(mappings[0].clear().is_empty(), "text is not cleared");
        assert_eq!(
            (mappings[1].address, mappings[1].offset, mappings[1].file_length),
            (0x402000, 0x1000, 0x1000)
        );
        assert_eq!((mappings[1].clear(), mappings[1].zero_length), (0x402900..0x403000, 0x3000));
        assert!(!image.executable_stack);
    }

    #[test]
    fn a_dynamic_program_is_relocatable_and_names_its_interpreter() {
        let mut data = file(
            3,
            0x100,
            &[
                program_header(3, 4, [0x200, 0x200, 0, 8, 8, 1]),
                load(4, 0, 0, 0x300, 0x300),
                program_header(0x6474_e551, 7, [0; 6]),
                program_header(7, 4, [0; 6]),
            ],
        );
        data[0x200..0x208].copy_from_slice(b"/ld.so\0\0");
        let image = parse(&data).unwrap();
        assert!(image.is_relocatable && image.executable_stack);
        let range = image.interpreter.clone().unwrap();
        assert_eq!(
            Image::interpreter_path(&data[range.start as usize..range.end as usize]),
            Ok(&b"/ld.so"[..])
        );
        assert_eq!(image.mappings(0x5000_0000).next().unwrap().address, 0x5000_0000);
        assert_eq!(Image::interpreter_path(b"/ld"), Err(Error::ENOEXEC));
        assert_eq!(Image::interpreter_path(b"\0"), Err(Error::ENOEXEC));
    }

    #[test]
    fn damaged_and_foreign_files_are_refused() {
        let good = file(2, 0, &[load(5, 0, 0x400000, 0x1000, 0x1000)]);
        assert!(parse(&good).is_ok());
        let with = |at: usize, value: &[u8]| {
            let mut data = good.clone();
            data[at..at + value.len()].copy_from_slice(value);
            parse(&data)
        };
        let cases: &[(&str, usize, &[u8])] = &[
            ("magic", 0, b"\x7fELG"),
            ("relocatable object", 16, &[1, 0]),
            ("core file", 16, &[4, 0]),
            ("another machine", 18, &[183, 0]),
            ("no program headers", 56, &[0, 0]),
            ("too many program headers", 56, &[0xff, 0xff]),
            ("size of program headers", 54, &[32, 0]),
            ("program headers beyond the file", 32, &[0, 0, 1]),
            ("program headers at the end of the number range", 32, &[0xff; 8]),
            ("nothing to load", 64, &[6]),
            ("file part larger than memory", 64 + 40, &[0, 1]),
            ("file part beyond the file", 64 + 32, &[0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 9]),
            ("offset not congruent", 64 + 8, &[1]),
        ];
        for (what, at, value) in cases {
            assert_eq!(with(*at, value), Err(Error::ENOEXEC), "{what}");
        }
        assert!(with(4, &[1, 2, 3]).is_ok(), "class, byte order and version are not looked at");
        assert_eq!(with(64 + 16, &[0, 0, 0, 0, 0, 0, 0, 0x80]), Err(Error::ENOMEM), "kernel address");
        assert_eq!(with(64 + 40, &[0xff; 8]), Err(Error::ENOMEM), "wraps");
        assert!(Elf.recognises(&good) && !Elf.recognises(b"\x7fELG") && !Elf.recognises(b""));
        assert_eq!(Elf.headers(&good[..63]), Err(Error::ENOEXEC));
        assert_eq!(Elf.headers(b""), Err(Error::ENOEXEC));
        let overlap =
            file(2, 0, &[load(5, 0, 0x400000, 0x1000, 0x3000), load(6, 0, 0x401000, 0x1000, 0x1000)]);
        assert_eq!(parse(&overlap), Err(Error::ENOEXEC));
        let interpreter = file(2, 0, &[load(5, 0, 0, 64, 64), program_header(3, 4, [0x3ff9, 0, 0, 8, 8, 1])]);
        assert_eq!(parse(&interpreter), Err(Error::ENOEXEC), "path beyond the file");
        let empty = file(2, 0, &[load(5, 0, 0, 64, 64), program_header(3, 4, [0x200, 0, 0, 1, 1, 1])]);
        assert_eq!(parse(&empty), Err(Error::ENOEXEC), "path without a character");
    }

    proptest! {
        /// For any contents of a file: either the file is refused, or all its segments lie in the
        /// file and in the address space.
        #[test]
        fn damaged_files_are_refused_or_stay_in_bounds(edits in prop::collection::vec((0usize..0x200, any::<u8>()), 0..24), cut in 0usize..0x4001) {
            let mut data = file(3, 0x100, &[
                load(5, 0, 0, 0x800, 0x800),
                load(6, 0x800, 0x1800, 0x100, 0x9000),
                program_header(3, 4, [0x200, 0x200, 0, 8, 8, 1]),
            ]);
            edits.into_iter().for_each(|(at, value)| data[at] = value);
            data.truncate(cut);
            if let Ok(image) = parse(&data) {
                for mapping in image.mappings(0) {
                    prop_assert!(mapping.address + mapping.file_length + mapping.zero_length <= LIMIT + 4096);
                    prop_assert!(mapping.offset <= data.len() as u64);
                    prop_assert!(mapping.file_length < data.len() as u64 + 2 * 4096);
                    prop_assert!(mapping.clear().start <= mapping.clear().end);
                }
                prop_assert!(image.interpreter.is_none_or(|range| range.end <= data.len() as u64));
            }
        }
    }
}
