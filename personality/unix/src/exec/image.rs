//! Images: what exec has to know of a program file before it loads it, whatever the file's format
//! is.
//!
//! An [`ImageFormat`] reads files of one kind and makes an [`Image`] of each. The rest of exec
//! works with the image. A script has no image: exec runs the interpreter that its first line
//! names.

use crate::{Error, Result};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a page of memory.
const PAGE: u64 = 4096;
/// How many bytes at the start of a file are read to find its format.
pub const START_SIZE: usize = 256;

/// A format of program files. Nothing in a file is trusted: a file that cannot be loaded is refused
/// as a whole. No method blocks.
pub trait ImageFormat: Send + Sync {
    /// Whether a file that begins with `start` is of this format. `start` is the first
    /// [`START_SIZE`] bytes, or the whole file if it is smaller.
    fn recognises(&self, start: &[u8]) -> bool;

    /// Which bytes of a file that begins with `start` describe its parts, at most 64 KiB. `ENOEXEC`
    /// if the file is damaged or no program for this machine.
    fn headers(&self, start: &[u8]) -> Result<Range<u64>>;

    /// The image of a file of `size` bytes that begins with `start` and has these `headers` (fewer
    /// bytes than [`headers`](Self::headers) asked for, if the file ends before). Addresses must
    /// lie below `limit`. `ENOEXEC` if the file is damaged; `ENOMEM` if its segments leave the
    /// address space.
    fn parse(&self, start: &[u8], headers: &[u8], size: u64, limit: u64) -> Result<Image>;
}

/// A segment: a part of a program file that is loaded into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the segment's first byte, before relocation.
    pub address: u64,
    /// Size of the segment in memory, in bytes.
    pub memory_size: u64,
    /// Offset of the segment in the file, in bytes; congruent to `address` modulo the page size.
    pub offset: u64,
    /// How many bytes of the segment come from the file; the rest is zero.
    pub file_size: u64,
    /// Access rights of the segment's pages.
    pub rights: Rights,
}

/// Access rights to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The program may load from the memory.
    pub read: bool,
    /// The program may store to the memory.
    pub write: bool,
    /// The program may execute instructions from the memory.
    pub execute: bool,
}

impl Rights {
    /// Every right.
    pub const ALL: Rights = Rights { read: true, write: true, execute: true };
}

/// A program or interpreter as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Whether the program's addresses are relative to a base that the loader chooses.
    pub is_relocatable: bool,
    /// The program's entry point, before relocation.
    pub entry: u64,
    /// The program's segments, at least one.
    pub segments: Vec<Segment>,
    /// Where in the file the path of the program's interpreter is, with the terminating zero.
    pub interpreter: Option<Range<u64>>,
    /// Whether the program wants an executable stack.
    pub executable_stack: bool,
    /// Address of the image's headers in memory, before relocation; 0 if no segment has them.
    pub headers_address: u64,
    /// How many headers the image has.
    pub header_count: usize,
    /// Largest alignment that a segment asks for; a power of two, at least the page size.
    pub alignment: u64,
    /// Page-aligned range of all segments, before relocation.
    pub span: Range<u64>,
}

impl Image {
    /// An image without segments, which [`add`](Self::add) gives it; then
    /// [`finish`](Self::finish).
    pub fn new(entry: u64, is_relocatable: bool) -> Image {
        Image {
            is_relocatable,
            entry,
            segments: Vec::new(),
            interpreter: None,
            executable_stack: false,
            headers_address: 0,
            header_count: 0,
            alignment: PAGE,
            span: Range { start: u64::MAX, end: 0 },
        }
    }

    /// Adds a segment of a file of `size` bytes, unless the segment is empty. The segment must lie
    /// below `limit`. `alignment` is the alignment that it asks for; a value that is no power of
    /// two is ignored. `ENOEXEC` if the segment is damaged, `ENOMEM` if it leaves the address
    /// space.
    pub fn add(&mut self, segment: Segment, alignment: u64, size: u64, limit: u64) -> Result<()> {
        if segment.memory_size == 0 {
            return Ok(());
        }
        let end = segment
            .address
            .checked_add(segment.memory_size)
            .filter(|end| *end <= limit)
            .ok_or(Error::ENOMEM)?;
        let file_end = segment.offset.checked_add(segment.file_size).ok_or(Error::ENOEXEC)?;
        let congruent = segment.address % PAGE == segment.offset % PAGE;
        if segment.file_size > segment.memory_size || file_end > size || !congruent {
            return Err(Error::ENOEXEC);
        }
        if alignment.is_power_of_two() && alignment < limit {
            self.alignment = self.alignment.max(alignment);
        }
        let start = segment.address & !(PAGE - 1);
        self.span = self.span.start.min(start)..self.span.end.max(end.next_multiple_of(PAGE));
        self.segments.try_reserve(1).map_err(|_| Error::ENOMEM)?;
        self.segments.push(segment);
        Ok(())
    }

    /// The image with all its segments, at least one, in order of address. Two segments may share a
    /// page only where the later one replaces the earlier one's padding; their bytes must not
    /// overlap. `ENOEXEC`.
    pub fn finish(mut self) -> Result<Image> {
        self.segments.sort_by_key(|segment| segment.address);
        let overlaps = |pair: &[Segment]| pair[0].address + pair[0].memory_size > pair[1].address;
        if self.segments.is_empty() || self.segments.windows(2).any(overlaps) {
            return Err(Error::ENOEXEC);
        }
        Ok(self)
    }

    /// The path of the interpreter, from its bytes in the file. `ENOEXEC` if the path has no
    /// terminating zero or is empty.
    pub fn interpreter_path(data: &[u8]) -> Result<&[u8]> {
        match data {
            [path @ .., 0] if !path.is_empty() => Ok(path.split(|byte| *byte == 0).next().unwrap_or(path)),
            _ => Err(Error::ENOEXEC),
        }
    }

    /// Bytes of address space that the program's segments span.
    pub fn span_size(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// The mappings that load the program, in order, when its addresses are moved by `bias` (0 if
    /// it is not relocatable).
    pub fn mappings(&self, bias: u64) -> impl Iterator<Item = Mapping> + '_ {
        self.segments.iter().map(move |segment| Mapping::of(segment, bias))
    }
}

/// How one segment comes into memory: pages of the file, then bytes that are cleared, then pages of
/// zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Address of the segment's first page.
    pub address: u64,
    /// Bytes mapped from the file, whole pages; 0 if the segment has none.
    pub file_length: u64,
    /// Offset in the file, in bytes; a multiple of the page size.
    pub offset: u64,
    /// Address of the first byte after those from the file. It is cleared with the rest of its
    /// page.
    pub clear_from: u64,
    /// Bytes of pages of zeros after the pages from the file.
    pub zero_length: u64,
    /// Access rights of all pages of the segment.
    pub rights: Rights,
}

impl Mapping {
    fn of(segment: &Segment, bias: u64) -> Mapping {
        let start = segment.address.wrapping_add(bias);
        let address = start & !(PAGE - 1);
        let file_end = start + segment.file_size;
        let end = (start + segment.memory_size).next_multiple_of(PAGE);
        let file_length = if segment.file_size == 0 { 0 } else { file_end.next_multiple_of(PAGE) - address };
        Mapping {
            address,
            file_length,
            offset: segment.offset & !(PAGE - 1),
            clear_from: file_end,
            zero_length: end - address - file_length,
            rights: segment.rights,
        }
    }

    /// The bytes of the last page from the file that have to be cleared. A page that cannot be
    /// written keeps what the file has there.
    pub fn clear(&self) -> Range<u64> {
        let end = self.address + self.file_length;
        if self.file_length == 0 || !self.rights.write { end..end } else { self.clear_from..end }
    }
}
