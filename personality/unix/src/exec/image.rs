//! Images: what a file has to say before it can be loaded, whatever its format is.
//!
//! An [`ImageFormat`] reads files of one kind; what it makes of them is an [`Image`], from which
//! everything else of exec goes on. A script is no image: exec follows its first line.

use crate::{Error, Result};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// How many bytes at the start of a file are looked at to find its format.
pub const START_SIZE: usize = 256;

/// A format of program files. Nothing in a file is trusted: one that cannot be loaded is refused as
/// a whole. Immediate.
pub trait ImageFormat: Send + Sync {
    /// Whether a file that starts with these bytes is of this format. They are the first
    /// [`START_SIZE`], or all if there are fewer.
    fn recognises(&self, start: &[u8]) -> bool;

    /// Which bytes of such a file describe its parts, at most 64 KiB. `ENOEXEC`: it is damaged, or
    /// no program for this machine.
    fn headers(&self, start: &[u8]) -> Result<Range<u64>>;

    /// What a file of `size` bytes says that starts with `start` and has these `headers` (fewer
    /// than asked for, if the file ends before). Addresses must lie below `limit`. `ENOEXEC`;
    /// `ENOMEM` if its segments leave the address space.
    fn parse(&self, start: &[u8], headers: &[u8], size: u64, limit: u64) -> Result<Image>;
}

/// A part of the file that goes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the segment's first byte, before relocation.
    pub address: u64,
    /// Size of the segment in memory, in bytes.
    pub memory_size: u64,
    /// Where it is in the file; congruent to `address` modulo the page size.
    pub offset: u64,
    /// How many bytes of the segment come from the file; the rest is zero.
    pub file_size: u64,
    /// Access rights of the segment's pages.
    pub rights: Rights,
}

/// Rights to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

/// A program or interpreter as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Whether addresses are relative to a base that the loader chooses.
    pub is_relocatable: bool,
    /// Entry point, before relocation.
    pub entry: u64,
    /// Segments to load, at least one.
    pub segments: Vec<Segment>,
    /// Where in the file the path of its interpreter is, with the terminating zero.
    pub interpreter: Option<Range<u64>>,
    /// Whether the program wants an executable stack.
    pub executable_stack: bool,
    /// Address of the image's headers in memory, before relocation; 0 if no segment has them.
    pub headers_address: u64,
    /// How many headers there are.
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

    /// Adds a segment of a file of `size` bytes, unless it is empty. It must lie below `limit`;
    /// `alignment` is what it asks for, and is ignored if it is none. `ENOEXEC`, `ENOMEM`.
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

    /// The image with all its segments, at least one, in order of address. Segments may share a
    /// page only where the later one replaces the earlier one's padding; bytes must not overlap.
    /// `ENOEXEC`.
    pub fn finish(mut self) -> Result<Image> {
        self.segments.sort_by_key(|segment| segment.address);
        let overlaps = |pair: &[Segment]| pair[0].address + pair[0].memory_size > pair[1].address;
        if self.segments.is_empty() || self.segments.windows(2).any(overlaps) {
            return Err(Error::ENOEXEC);
        }
        Ok(self)
    }

    /// The interpreter's path from its bytes in the file. `ENOEXEC` if it has no end or is empty.
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

    /// What to map, in order, when the image is moved by `bias` (0 if it is not relocatable).
    pub fn mappings(&self, bias: u64) -> impl Iterator<Item = Mapping> + '_ {
        self.segments.iter().map(move |segment| Mapping::of(segment, bias))
    }
}

/// How one segment comes into memory: pages of the file, cleared bytes, pages of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First page.
    pub address: u64,
    /// Bytes mapped from the file, whole pages; 0: none.
    pub file_length: u64,
    /// Where in the file, a multiple of the page size.
    pub offset: u64,
    /// First byte after those from the file that has to be cleared, up to the end of its page.
    pub clear_from: u64,
    /// Bytes of zero pages after those from the file.
    pub zero_length: u64,
    /// Access rights of all these pages.
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

    /// The bytes of the last file page that have to be cleared. In pages that cannot be written
    /// they keep what the file has there.
    pub fn clear(&self) -> Range<u64> {
        let end = self.address + self.file_length;
        if self.file_length == 0 || !self.rights.write { end..end } else { self.clear_from..end }
    }
}
