//! 64-bit ELF executables as far as loading them by physical address needs (ELF-64 Object File
//! Format 1.5): the entry point and the loadable segments, all checked before anything is copied.
use core::fmt;

use crate::memory::{PhysAddr, PhysRange};

/// The maximum number of loadable segments in one program.
pub const MAX_SEGMENTS: usize = 16;

const HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: usize = 56;
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const EXECUTABLE: u16 = 2;
const X86_64: u16 = 62;
const LOADABLE: u32 = 1;

/// Why a file cannot be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElfError {
    /// Not ELF.
    Magic,
    /// ELF, but for another kind of processor or not linked to an address.
    Kind,
    /// A header or a segment reaches beyond the file, or a size overflows.
    Malformed,
    /// The file has no loadable segment, or more than [`MAX_SEGMENTS`].
    Segments,
    /// The entry point lies in no segment.
    Entry,
}

impl fmt::Display for ElfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Magic => "not an ELF file",
            Self::Kind => "not a 64-bit x86 executable linked to fixed addresses",
            Self::Malformed => "a malformed ELF file",
            Self::Segments => "an ELF file with no or too many loadable segments",
            Self::Entry => "an ELF file whose entry point is outside of its segments",
        })
    }
}

/// A loadable segment: `content` goes to the start of `physical`, the rest of which is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// The physical range to which the segment is copied.
    pub physical: PhysRange,
    /// The virtual address at which the program expects the segment.
    pub virtual_address: u64,
    /// The segment's bytes in the file.
    pub content: &'a [u8],
    /// ELF flags: 1 execute, 2 write, 4 read.
    pub flags: u32,
}

/// A checked executable.
#[derive(Clone, Copy, Debug)]
pub struct Executable<'a> {
    file: &'a [u8],
    entry: u64,
    table: usize,
    count: usize,
}

impl<'a> Executable<'a> {
    /// Checks a file; everything that the other functions return has been checked here.
    pub fn parse(file: &'a [u8]) -> Result<Self, ElfError> {
        if file.get(..4) != Some(b"\x7fELF") {
            return Err(ElfError::Magic);
        }
        if file.len() < HEADER_SIZE {
            return Err(ElfError::Malformed);
        }
        let half = |at: usize| u16::from_le_bytes([file[at], file[at + 1]]);
        if file[4] != CLASS_64 || file[5] != LITTLE_ENDIAN || half(16) != EXECUTABLE || half(18) != X86_64 {
            return Err(ElfError::Kind);
        }
        let table = usize::try_from(word(file, 32)).map_err(|_| ElfError::Malformed)?;
        let count = usize::from(half(56));
        let end = table.checked_add(count * PROGRAM_HEADER_SIZE).ok_or(ElfError::Malformed)?;
        if usize::from(half(54)) != PROGRAM_HEADER_SIZE || end > file.len() {
            return Err(ElfError::Malformed);
        }
        let executable = Self { file, entry: word(file, 24), table, count };
        let mut segments = 0;
        let mut entered = false;
        for header in executable.headers() {
            let segment = parse_segment(file, header)?;
            segments += 1;
            let offset = executable.entry.wrapping_sub(segment.virtual_address);
            entered |= offset < segment.physical.size();
        }
        match segments {
            1..=MAX_SEGMENTS if entered => Ok(executable),
            1..=MAX_SEGMENTS => Err(ElfError::Entry),
            _ => Err(ElfError::Segments),
        }
    }

    /// The address of the program's first instruction.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// What is to be loaded, in the order of the file. Segments of no bytes are left out.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'a>> {
        let file = self.file;
        self.headers().filter_map(move |header| parse_segment(file, header).ok())
    }

    /// The range from the lowest to the highest byte of all segments.
    pub fn span(&self) -> PhysRange {
        let start = self.segments().map(|segment| segment.physical.start).min().unwrap_or_default();
        let end = self.segments().map(|segment| segment.physical.end).max().unwrap_or_default();
        PhysRange::new(start, end)
    }

    /// The headers of the loadable segments that have a size.
    fn headers(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let table = &self.file[self.table..self.table + self.count * PROGRAM_HEADER_SIZE];
        table.chunks_exact(PROGRAM_HEADER_SIZE).filter(|header| {
            u32::from_le_bytes([header[0], header[1], header[2], header[3]]) == LOADABLE
                && word(header, 40) > 0
        })
    }
}

/// The 64-bit word at `at`, which the caller knows to be inside.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn parse_segment<'a>(file: &'a [u8], header: &[u8]) -> Result<Segment<'a>, ElfError> {
    let (offset, virtual_address, physical) = (word(header, 8), word(header, 16), word(header, 24));
    let (file_size, memory_size) = (word(header, 32), word(header, 40));
    let end = physical.checked_add(memory_size).ok_or(ElfError::Malformed)?;
    virtual_address.checked_add(memory_size).ok_or(ElfError::Malformed)?;
    let file_end = offset.checked_add(file_size).ok_or(ElfError::Malformed)?;
    if file_size > memory_size || file_end > file.len() as u64 {
        return Err(ElfError::Malformed);
    }
    Ok(Segment {
        physical: PhysRange::new(PhysAddr::new(physical), PhysAddr::new(end)),
        virtual_address,
        content: &file[offset as usize..file_end as usize],
        flags: u32::from_le_bytes([header[4], header[5], header[6], header[7]]),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An executable with one segment per `(physical = virtual, content, memory size)`.
    pub(crate) fn file(entry: u64, segments: &[(u64, &[u8], u64)]) -> Vec<u8> {
        let mut file = vec![0; HEADER_SIZE + segments.len() * PROGRAM_HEADER_SIZE];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[16..18].copy_from_slice(&EXECUTABLE.to_le_bytes());
        file[18..20].copy_from_slice(&X86_64.to_le_bytes());
        file[24..32].copy_from_slice(&entry.to_le_bytes());
        file[32..40].copy_from_slice(&(HEADER_SIZE as u64).to_le_bytes());
        file[54..56].copy_from_slice(&(PROGRAM_HEADER_SIZE as u16).to_le_bytes());
        file[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
        for (index, (address, content, size)) in segments.iter().enumerate() {
            let offset = file.len() as u64;
            file.extend_from_slice(content);
            let header = &mut file[HEADER_SIZE + index * PROGRAM_HEADER_SIZE..][..PROGRAM_HEADER_SIZE];
            header[0] = LOADABLE as u8;
            header[4] = 7;
            for (at, value) in
                [(8, offset), (16, *address), (24, *address), (32, content.len() as u64), (40, *size)]
            {
                header[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        file
    }

    /// Rules: ABI 1.3.
    #[test]
    fn reads_segments_and_span() {
        let file = file(0x100_0004, &[(0x100_0000, b"text", 8), (0x100_2000, b"", 0x1000), (0x1, b"", 0)]);
        let executable = Executable::parse(&file).unwrap();
        assert_eq!(executable.entry(), 0x100_0004);
        let segments: Vec<_> = executable.segments().collect();
        assert_eq!(segments.len(), 2);
        assert_eq!(segments[0].content, b"text");
        assert_eq!(segments[0].physical.size(), 8);
        assert_eq!(executable.span().start.value(), 0x100_0000);
        assert_eq!(executable.span().end.value(), 0x100_3000);
    }

    #[test]
    fn refuses_what_it_cannot_load() {
        let good = file(0x1000, &[(0x1000, b"abcd", 4)]);
        assert_eq!(Executable::parse(b"").err(), Some(ElfError::Magic));
        assert_eq!(Executable::parse(b"\x7fELF").err(), Some(ElfError::Malformed));
        assert_eq!(Executable::parse(&good[..good.len() - 1]).err(), Some(ElfError::Malformed));
        assert_eq!(Executable::parse(&file(0x1004, &[(0x1000, b"abcd", 4)])).err(), Some(ElfError::Entry));
        assert_eq!(
            Executable::parse(&file(0x1000, &[(0x1000, b"abcd", 3)])).err(),
            Some(ElfError::Malformed)
        );
        assert_eq!(Executable::parse(&file(0x1000, &[])).err(), Some(ElfError::Segments));
        assert_eq!(
            Executable::parse(&file(0, &[(0, b"x", u64::MAX), (2, b"", u64::MAX)])).err(),
            Some(ElfError::Malformed)
        );
        for (at, value) in [(4, 1), (5, 2), (16, 3), (18, 3)] {
            let mut other = good.clone();
            other[at] = value;
            assert_eq!(Executable::parse(&other).err(), Some(ElfError::Kind));
        }
    }

    /// No change of one byte, and no truncation, makes parsing panic.
    #[test]
    fn broken_files_are_harmless() {
        let good = file(0x1000, &[(0x1000, b"abcd", 0x2000), (0x4000, b"efgh", 4)]);
        for index in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut broken = good.clone();
                broken[index] = value;
                if let Ok(executable) = Executable::parse(&broken) {
                    executable.segments().for_each(drop);
                    executable.span();
                }
            }
            assert!(Executable::parse(&good[..index]).is_err());
        }
    }
}
