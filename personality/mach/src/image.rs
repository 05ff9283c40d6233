//! Program images: static ELF files for x86-64.

use alloc::vec::Vec;

use mach::KernError;
use mach::machine::{Machine, PAGE_SIZE, Protection};
use mach::vm::{MapRequest, Placement, VmMap};

/// A part of a program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The address of the first byte of the content.
    pub address: u64,
    /// How many bytes the segment has. Those beyond the content are zero.
    pub size: u64,
    /// The bytes with which the segment begins.
    pub content: &'a [u8],
    /// The rights to the segment's pages.
    pub protection: Protection,
}

/// A program that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// The address of the first instruction.
    pub entry: u64,
    /// The parts of the program's memory.
    pub segments: Vec<Segment<'a>>,
}

/// Why a program cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The file is no 64-bit ELF file for this machine.
    NotElf,
    /// The program needs an interpreter or a loader that chooses its address.
    NotStatic,
    /// A header or a content lies outside the file, or the numbers of a header make no sense.
    Damaged,
    /// The segments do not fit into the address space, or share pages.
    DoesNotFit,
    /// Memory is short.
    NoMemory,
}

impl core::fmt::Display for ImageError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::NotElf => "not a 64-bit ELF file for x86-64",
            Self::NotStatic => "not a static program",
            Self::Damaged => "the file is damaged",
            Self::DoesNotFit => "its segments lie outside the memory of programs or share pages",
            Self::NoMemory => "there is not enough memory",
        })
    }
}

impl core::error::Error for ImageError {}

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// The most program headers that are read.
const MOST_HEADERS: usize = 64;
/// The kind of a file that is linked at fixed addresses.
const FIXED: u64 = 2;
const X86_64: u64 = 62;
const LOAD: u64 = 1;
const INTERPRETER: u64 = 3;

/// The number of `size` bytes at `at`.
fn number(bytes: &[u8], at: usize, size: usize) -> Result<u64, ImageError> {
    let field = bytes.get(at..at + size).ok_or(ImageError::Damaged)?;
    Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

impl<'a> Image<'a> {
    /// Reads a program file.
    ///
    /// # Errors
    /// The reason why the program cannot be loaded.
    pub fn parse(file: &'a [u8]) -> Result<Self, ImageError> {
        if file.len() < HEADER || !file.starts_with(b"\x7fELF\x02\x01") || number(file, 18, 2)? != X86_64 {
            return Err(ImageError::NotElf);
        }
        if number(file, 16, 2)? != FIXED {
            return Err(ImageError::NotStatic);
        }
        let (table, size, count) =
            (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)? as usize);
        if size != PROGRAM_HEADER as u64 || count > MOST_HEADERS {
            return Err(ImageError::Damaged);
        }
        let table =
            usize::try_from(table).ok().and_then(|table| file.get(table..)).ok_or(ImageError::Damaged)?;
        let mut segments = Vec::new();
        for index in 0..count {
            let header = table.get(index * PROGRAM_HEADER..).ok_or(ImageError::Damaged)?;
            match number(header, 0, 4)? {
                INTERPRETER => return Err(ImageError::NotStatic),
                LOAD if number(header, 40, 8)? > 0 => segments.push(segment(file, header)?),
                _ => {}
            }
        }
        Ok(Self { entry: number(file, 24, 8)?, segments })
    }

    /// Puts the program into an address space.
    ///
    /// # Errors
    /// `DoesNotFit`, `NoMemory`. A part of the program may be there then.
    pub async fn load<M: Machine>(&self, map: &VmMap<M>) -> Result<(), ImageError> {
        let error = |error| match error {
            KernError::ResourceShortage => ImageError::NoMemory,
            _ => ImageError::DoesNotFit,
        };
        for segment in &self.segments {
            let first = segment.address & !(PAGE_SIZE - 1);
            let size = segment.address + segment.size - first;
            let request = MapRequest::anonymous(size).at(Placement::Fixed(first));
            map.map(&request).await.map_err(error)?;
            let copied = map.copyout(segment.address, segment.content).await;
            copied.map_err(|fault| error(fault.error))?;
            let protected = map.protect(first, size, segment.protection, false).await;
            protected.map_err(error)?;
        }
        Ok(())
    }
}

fn segment<'a>(file: &'a [u8], header: &[u8]) -> Result<Segment<'a>, ImageError> {
    let word = |at| number(header, at, 8);
    let (offset, address, length, size) = (word(8)?, word(16)?, word(32)?, word(40)?);
    let end = offset.checked_add(length).ok_or(ImageError::Damaged)?;
    let content = file.get(offset as usize..end as usize).ok_or(ImageError::Damaged)?;
    if length > size || address.checked_add(size).is_none() {
        return Err(ImageError::Damaged);
    }
    let flags = number(header, 4, 4)?;
    // The file's bits are execute 1, write 2, read 4.
    let mut protection = Protection::NONE;
    protection.set(Protection::EXECUTE, flags & 1 != 0);
    protection.set(Protection::WRITE, flags & 2 != 0);
    protection.set(Protection::READ, flags & 4 != 0);
    Ok(Segment { address, size, content, protection })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program file with these program headers: kind, flags, offset, address, length and size.
    pub(crate) fn file(headers: &[[u64; 6]], entry: u64, content: &[u8]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(HEADER, 0);
        let mut put = |at: usize, size: usize, value: u64| {
            file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        };
        for (at, size, value) in
            [(16, 2, 2), (18, 2, 62), (24, 8, entry), (32, 8, 64), (54, 2, 56), (56, 2, headers.len() as u64)]
        {
            put(at, size, value);
        }
        for [kind, flags, offset, address, length, size] in headers {
            for word in [kind | flags << 32, *offset, *address, 0, *length, *size, 0x1000] {
                file.extend(word.to_le_bytes());
            }
        }
        file.extend(content);
        file
    }

    #[test]
    fn a_program_is_read() {
        let text = file(&[[1, 5, 176, 0x40_0010, 4, 4], [4, 0, 0, 0, 0, 0]], 0x40_0010, b"");
        assert_eq!(Image::parse(&text), Err(ImageError::Damaged), "the content is missing");
        let text = file(&[[1, 5, 120, 0x40_0010, 4, 0x2000]], 0x40_0010, b"code");
        let image = Image::parse(&text).unwrap();
        assert_eq!(image.entry, 0x40_0010);
        let protection = Protection::READ | Protection::EXECUTE;
        assert_eq!(
            image.segments,
            [Segment { address: 0x40_0010, size: 0x2000, content: b"code", protection }]
        );
    }

    #[test]
    fn other_files_are_refused() {
        let good = file(&[[1, 5, 120, 0x40_0000, 4, 4]], 0x40_0000, b"code");
        let with = |at: usize, bytes: &[u8]| {
            let mut bad = good.clone();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            Image::parse(&bad).map(|_| ())
        };
        for (at, bytes, error) in [
            (0, &b"\x7eELF"[..], ImageError::NotElf),
            (4, &[1], ImageError::NotElf),
            (18, &[3], ImageError::NotElf),
            (16, &[3], ImageError::NotStatic),
            (64, &[3], ImageError::NotStatic),
            (54, &[64], ImageError::Damaged),
            (56, &[65], ImageError::Damaged),
            (32, &[0xff; 8], ImageError::Damaged),
            (64 + 8, &[0xff; 8], ImageError::Damaged),
            (64 + 16, &[0xff; 8], ImageError::Damaged),
            (64 + 32, &[0xff; 8], ImageError::Damaged),
            (64 + 40, &[3], ImageError::Damaged),
        ] {
            assert_eq!(with(at, bytes), Err(error), "{bytes:?} at {at}");
        }
        for length in 0..good.len() {
            assert!(Image::parse(&good[..length]).is_err(), "{length} bytes");
        }
    }
}
