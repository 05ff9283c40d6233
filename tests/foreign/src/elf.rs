//! Parses the header and the segments of a static executable. Other files are refused.

/// A loadable segment.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) memory_size: u64,
    pub(crate) offset: usize,
    pub(crate) file_size: usize,
    /// PF_X = 1, PF_W = 2, PF_R = 4.
    pub(crate) flags: u32,
}

/// A static 64-bit executable.
#[derive(Clone, Copy)]
pub(crate) struct Executable {
    pub(crate) image: &'static [u8],
    pub(crate) entry: u64,
    headers: usize,
    pub(crate) header_size: usize,
    pub(crate) header_count: usize,
}

const LOAD: u32 = 1;
const EXECUTABLE: u64 = 2;
const X86_64: u64 = 62;

impl Executable {
    pub(crate) fn parse(image: &'static [u8]) -> Option<Executable> {
        let good = image.get(..5)? == b"\x7fELF\x02"
            && word(image, 16, 2)? == EXECUTABLE
            && word(image, 18, 2)? == X86_64;
        good.then_some(())?;
        let executable = Executable {
            image,
            entry: word(image, 24, 8)?,
            headers: word(image, 32, 8)? as usize,
            header_size: word(image, 54, 2)? as usize,
            header_count: word(image, 56, 2)? as usize,
        };
        executable
            .segments()
            .all(|segment| {
                segment.offset.checked_add(segment.file_size).is_some_and(|end| end <= image.len())
                    && segment.file_size as u64 <= segment.memory_size
                    && segment.address.checked_add(segment.memory_size).is_some_and(|end| end < 1 << 46)
            })
            .then_some(executable)
    }

    pub(crate) fn segments(self) -> impl Iterator<Item = Segment> {
        (0..self.header_count).filter_map(move |index| {
            let at = self.headers + index * self.header_size;
            let field = |offset, size| word(self.image, at + offset, size);
            (field(0, 4)? as u32 == LOAD).then_some(())?;
            Some(Segment {
                flags: field(4, 4)? as u32,
                offset: field(8, 8)? as usize,
                address: field(16, 8)?,
                file_size: field(32, 8)? as usize,
                memory_size: field(40, 8)?,
            })
        })
    }

    /// The address at which the program finds its own program headers: they lie in one of its
    /// segments.
    pub(crate) fn header_address(self) -> u64 {
        self.segments()
            .find(|segment| (segment.offset..segment.offset + segment.file_size).contains(&self.headers))
            .map_or(0, |segment| segment.address + (self.headers - segment.offset) as u64)
    }
}

/// The little-endian number of `size` bytes at `at`.
fn word(image: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = image.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}
