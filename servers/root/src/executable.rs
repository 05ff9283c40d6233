//! What a server's program file says of itself: a static 64-bit ELF executable, or the reason why
//! it is none.

use alloc::vec::Vec;

/// A loadable segment. Its pages belong to no other segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Where it begins in the program's space; a multiple of [`PAGE`].
    pub address: u64,
    /// How many pages the segment has.
    pub pages: u64,
    /// What the segment begins with; the rest is zero.
    pub content: &'a [u8],
    /// The pages of the segment may be executed.
    pub execute: bool,
    /// The pages of the segment may be written.
    pub write: bool,
}

/// A program that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable<'a> {
    /// Where its first thread begins.
    pub entry: u64,
    /// Its segments, in ascending order.
    pub segments: Vec<Segment<'a>>,
}

/// Bytes in a page.
pub const PAGE: u64 = 4096;

/// Programs lie below: above are the areas that root lays out.
pub const PROGRAM_END: u64 = 0x7000_0000_0000;

const LOAD: u64 = 1;
const EXECUTABLE: u64 = 2;
const X86_64: u64 = 62;

impl<'a> Executable<'a> {
    /// Reads a program file.
    ///
    /// # Errors
    /// Why it cannot be loaded, as a text to read.
    pub fn parse(file: &'a [u8]) -> Result<Executable<'a>, &'static str> {
        let header = |offset, size| word(file, offset, size).ok_or("the file is cut off");
        if file.get(..5) != Some(b"\x7fELF\x02") || header(16, 2)? != EXECUTABLE || header(18, 2)? != X86_64 {
            return Err("not a static 64-bit x86 executable");
        }
        let (first, size, count) = (header(32, 8)?, header(54, 2)?, header(56, 2)?);
        let mut segments: Vec<Segment<'a>> = Vec::new();
        for index in 0..count {
            let at = first.checked_add(index * size).ok_or("the file is cut off")?;
            let field = |offset, size| header(at.saturating_add(offset), size);
            if field(0, 4)? != LOAD || field(40, 8)? == 0 {
                continue;
            }
            let segment =
                segment(file, field(4, 4)?, [field(8, 8)?, field(16, 8)?, field(32, 8)?, field(40, 8)?])?;
            if segments.last().is_some_and(|last| last.address + last.pages * PAGE > segment.address) {
                return Err("two segments overlap, share a page or are not in ascending order");
            }
            segments.push(segment);
        }
        let entry = header(24, 8)?;
        let holds_entry = |segment: &Segment<'_>| {
            segment.execute && (segment.address..segment.address + segment.pages * PAGE).contains(&entry)
        };
        if !segments.iter().any(holds_entry) {
            return Err("the entry lies in no executable segment");
        }
        Ok(Executable { entry, segments })
    }
}

fn segment(
    file: &[u8],
    flags: u64,
    [offset, address, file_size, memory_size]: [u64; 4],
) -> Result<Segment<'_>, &'static str> {
    if !address.is_multiple_of(PAGE) {
        return Err("a segment does not begin at a page");
    }
    let end = address.checked_add(memory_size).filter(|&end| end <= PROGRAM_END);
    let end = end.ok_or("a segment lies outside the memory of programs")?;
    let content = usize::try_from(offset)
        .ok()
        .zip(offset.checked_add(file_size).and_then(|end| usize::try_from(end).ok()))
        .and_then(|(start, end)| file.get(start..end))
        .ok_or("a segment's content lies outside the file")?;
    if file_size > memory_size {
        return Err("a segment has more content than memory");
    }
    let pages = (end - address).div_ceil(PAGE);
    Ok(Segment { address, pages, content, execute: flags & 1 != 0, write: flags & 2 != 0 })
}

/// The little-endian number of `size` bytes at `at`.
fn word(file: &[u8], at: u64, size: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = file.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with one segment of two pages at 16 MiB, eight bytes of it content.
    pub(crate) fn program() -> Vec<u8> {
        let mut file = vec![0; 64 + 56 + 8];
        let mut put = |at: usize, size: usize, value: u64| {
            file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        };
        put(0, 5, u64::from_le_bytes(*b"\x7fELF\x02\0\0\0"));
        for (at, size, value) in
            [(16, 2, 2), (18, 2, 62), (24, 8, 0x100_0010), (32, 8, 64), (54, 2, 56), (56, 2, 1)]
        {
            put(at, size, value);
        }
        for (at, size, value) in
            [(0, 4, 1), (4, 4, 5), (8, 8, 120), (16, 8, 0x100_0000), (32, 8, 8), (40, 8, 0x1001)]
        {
            put(64 + at, size, value);
        }
        file[120..].copy_from_slice(b"contents");
        file
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
    fn what_cannot_be_loaded_is_refused_with_the_reason() {
        let with = |at: usize, value: u64| {
            let mut file = program();
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
            Executable::parse(&file).unwrap_err()
        };
        assert_eq!(with(0, 0), "not a static 64-bit x86 executable");
        assert_eq!(with(24, 0x200_0000), "the entry lies in no executable segment");
        assert_eq!(with(32, u64::MAX - 3), "the file is cut off");
        assert_eq!(with(64 + 8, 121), "a segment's content lies outside the file");
        assert_eq!(with(64 + 8, u64::MAX), "a segment's content lies outside the file");
        assert_eq!(with(64 + 16, 0x100_0001), "a segment does not begin at a page");
        assert_eq!(with(64 + 16, u64::MAX - 4095), "a segment lies outside the memory of programs");
        assert_eq!(with(64 + 40, 7), "a segment has more content than memory");
        assert!(Executable::parse(b"").is_err());
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
