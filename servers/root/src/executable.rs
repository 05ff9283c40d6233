//! Parses a server's program file: a static 64-bit ELF executable, or the reason why it is none.

use alloc::vec::Vec;
use object::LittleEndian;
use object::elf::{EM_X86_64, ET_EXEC, FileHeader64, PF_W, PF_X, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

/// A loadable segment of a program. No page belongs to two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Where the segment begins in the program's space; a multiple of [`PAGE`].
    pub address: u64,
    /// How many pages the segment has.
    pub pages: u64,
    /// The bytes with which the segment begins; its remaining bytes are zero.
    pub content: &'a [u8],
    /// Whether the pages of the segment may be executed.
    pub execute: bool,
    /// Whether the pages of the segment may be written.
    pub write: bool,
}

/// A program that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable<'a> {
    /// The address at which the program's first thread begins.
    pub entry: u64,
    /// The loadable segments of the program, in ascending order.
    pub segments: Vec<Segment<'a>>,
}

/// Bytes in a page.
pub const PAGE: u64 = 4096;

/// The end of the addresses at which programs lie. Root lays out its own areas above it.
pub const PROGRAM_END: u64 = 0x7000_0000_0000;

impl<'a> Executable<'a> {
    /// Reads a program file.
    ///
    /// # Errors
    /// The reason why the program cannot be loaded, as text.
    pub fn parse(file: &'a [u8]) -> Result<Executable<'a>, &'static str> {
        const WRONG: &str = "not a static 64-bit x86 executable";
        let header = FileHeader64::<LittleEndian>::parse(file).map_err(|_| WRONG)?;
        let (kind, machine) = (header.e_type(LittleEndian), header.e_machine(LittleEndian));
        if !header.is_little_endian() || kind != ET_EXEC || machine != EM_X86_64 {
            return Err(WRONG);
        }
        let headers = header.program_headers(LittleEndian, file);
        let mut segments: Vec<Segment<'a>> = Vec::new();
        for header in headers.map_err(|_| "its program headers are cut off or have another size")? {
            if header.p_type(LittleEndian) != PT_LOAD || header.p_memsz(LittleEndian) == 0 {
                continue;
            }
            let segment = segment(file, header)?;
            if segments.last().is_some_and(|last| last.address + last.pages * PAGE > segment.address) {
                return Err("two segments overlap, share a page or are not in ascending order");
            }
            segments.push(segment);
        }
        let entry = header.e_entry(LittleEndian);
        let holds_entry = |segment: &Segment<'_>| {
            segment.execute && (segment.address..segment.address + segment.pages * PAGE).contains(&entry)
        };
        if !segments.iter().any(holds_entry) {
            return Err("the entry lies in no executable segment");
        }
        Ok(Executable { entry, segments })
    }
}

fn segment<'a>(file: &'a [u8], header: &ProgramHeader64<LittleEndian>) -> Result<Segment<'a>, &'static str> {
    let (address, memory_size) = (header.p_vaddr(LittleEndian), header.p_memsz(LittleEndian));
    if !address.is_multiple_of(PAGE) {
        return Err("a segment does not begin at a page");
    }
    let end = address.checked_add(memory_size).filter(|&end| end <= PROGRAM_END);
    let end = end.ok_or("a segment lies outside the memory of programs")?;
    let content = header.data(LittleEndian, file);
    let content = content.map_err(|()| "a segment's content lies outside the file")?;
    if header.p_filesz(LittleEndian) > memory_size {
        return Err("a segment has more content than memory");
    }
    let (pages, flags) = ((end - address).div_ceil(PAGE), header.p_flags(LittleEndian));
    Ok(Segment { address, pages, content, execute: flags.contains(PF_X), write: flags.contains(PF_W) })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The offset of the program header in a file with one segment.
    const HEADER: usize = 64;

    /// A program file with one segment of two pages at 16 MiB, of which eight bytes are content.
    pub(crate) fn program() -> Vec<u8> {
        file(&[[1, 5, 120, 0x100_0000, 0, 8, 0x1001, 0]])
    }

    /// A program file with these program headers: each is the type and flags, then the other words.
    fn file(headers: &[[u64; 8]]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(HEADER, 0);
        for (at, size, value) in [
            (16, 2, 2),
            (18, 2, 62),
            (24, 8, 0x100_0010),
            (32, 8, 64),
            (54, 2, 56),
            (56, 2, headers.len() as u64),
        ] {
            put(&mut file, at, size, value);
        }
        for [kind, flags, words @ ..] in headers {
            file.extend((kind | flags << 32).to_le_bytes());
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        file.extend(b"contents");
        file
    }

    fn put(file: &mut [u8], at: usize, size: usize, value: u64) {
        file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }

    #[test]
    fn a_program_is_read() {
        let file = program();
        let program = Executable::parse(&file).unwrap();
        let segment =
            Segment { address: 0x100_0000, pages: 2, content: b"contents", execute: true, write: false };
        assert_eq!(program, Executable { entry: 0x100_0010, segments: vec![segment] });
    }

    #[test]
    fn a_field_that_is_wrong_is_refused_with_the_reason() {
        const WRONG: &str = "not a static 64-bit x86 executable";
        const HEADERS: &str = "its program headers are cut off or have another size";
        const OUTSIDE: &str = "a segment's content lies outside the file";
        for (at, size, value, reason) in [
            (0, 4, 0, WRONG),
            (4, 1, 1, WRONG),
            (5, 1, 2, WRONG),
            (6, 1, 0, WRONG),
            (16, 2, 3, WRONG),
            (18, 2, 3, WRONG),
            (24, 8, 0x200_0000, "the entry lies in no executable segment"),
            (32, 8, u64::MAX - 3, HEADERS),
            (32, 8, 73, HEADERS),
            (54, 2, 55, HEADERS),
            (54, 2, 64, HEADERS),
            (56, 2, 2, HEADERS),
            (56, 2, 0xffff, HEADERS),
            (56, 2, 0, "the entry lies in no executable segment"),
            (HEADER, 4, 3, "the entry lies in no executable segment"),
            (HEADER + 4, 4, 6, "the entry lies in no executable segment"),
            (HEADER + 8, 8, 121, OUTSIDE),
            (HEADER + 8, 8, u64::MAX, OUTSIDE),
            (HEADER + 16, 8, 0x100_0001, "a segment does not begin at a page"),
            (HEADER + 16, 8, u64::MAX - 4095, "a segment lies outside the memory of programs"),
            (HEADER + 16, 8, PROGRAM_END - PAGE, "a segment lies outside the memory of programs"),
            (HEADER + 32, 8, u64::MAX, OUTSIDE),
            (HEADER + 32, 8, 9, OUTSIDE),
            (HEADER + 40, 8, 7, "a segment has more content than memory"),
            (HEADER + 40, 8, u64::MAX, "a segment lies outside the memory of programs"),
        ] {
            let mut file = program();
            put(&mut file, at, size, value);
            assert_eq!(Executable::parse(&file), Err(reason), "{value:#x} at {at}");
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused() {
        let file = program();
        for length in 0..file.len() {
            assert!(Executable::parse(&file[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn segments_that_overlap_share_a_page_or_descend_are_refused() {
        let two = |address: u64, size: u64| {
            let content = 64 + 2 * 56;
            let first = [1, 5, content, 0x100_0000, 0, 8, 0x1001, 0];
            Executable::parse(&file(&[first, [1, 6, content, address, 0, 8, size, 0]]))
                .map(|program| program.segments.len())
        };
        assert_eq!(two(0x100_2000, 8), Ok(2));
        for (address, size) in [(0x100_1000, 8), (0x100_0000, 8), (0xff_f000, 8), (0xff_f000, 0x10_0000)] {
            let reason = "two segments overlap, share a page or are not in ascending order";
            assert_eq!(two(address, size), Err(reason), "{address:#x}");
        }
        // Each is compared with the one before it, and not with the first only.
        let three = |address: u64| {
            let content = 64 + 3 * 56;
            let segment = |flags, address, size| [1, flags, content, address, 0, 8, size, 0];
            let (first, second) = (segment(5, 0x100_0000, 0x1001), segment(6, 0x100_2000, 0x1001));
            let program = file(&[first, second, segment(6, address, 8)]);
            Executable::parse(&program).map(|program| program.segments.len())
        };
        assert_eq!(three(0x100_4000), Ok(3));
        for address in [0x100_3000, 0x100_2000, 0x100_1000] {
            assert!(three(address).is_err(), "{address:#x}");
        }
    }

    proptest! {
        #[test]
        fn no_file_stops_root(changes in proptest::collection::vec((0usize..128, any::<u8>()), 0..20)) {
            let mut file = program();
            for (at, byte) in changes {
                file[at] = byte;
            }
            if let Ok(program) = Executable::parse(&file) {
                for segment in program.segments {
                    prop_assert!(segment.content.len() as u64 <= segment.pages * PAGE);
                    prop_assert!(segment.address + segment.pages * PAGE <= PROGRAM_END);
                }
            }
        }
    }
}
