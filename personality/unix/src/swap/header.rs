//! The header of a swap area, as mkswap(8) writes it into the first page.

use super::PAGE;
use alloc::vec::Vec;

/// The most numbers of bad pages for which the header has room.
const MOST_BAD: u32 = ((PAGE - 10 - BAD as u64) / 4) as u32;
const VERSION: usize = 1024;
const LAST_PAGE: usize = 1028;
const BAD_COUNT: usize = 1032;
const BAD: usize = 1536;
const SIGNATURE: &[u8] = b"SWAPSPACE2";
/// The pages of an area are numbered by so many bits.
pub(super) const PAGE_BITS: u32 = 27;

/// What the header of a swap area says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// How many pages the area has, the header among them.
    pub pages: u32,
    /// How many the header says, if that is more than can be used.
    pub oversized: Option<u32>,
    /// The pages that cannot be used.
    pub bad: Vec<u32>,
}

/// Why an area is refused. The texts are those that administrators know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The first page does not end with the signature.
    NoSignature,
    /// The header has another version.
    Version(u32),
    /// There are no pages, or none that can be used.
    Empty,
    /// The area has fewer pages than the header says.
    TooShort,
    /// A file has bad pages, there are too many of them, or one is not in the area.
    BadPages,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refused::NoSignature => f.write_str("Unable to find swap-space signature"),
            Refused::Version(version) => write!(f, "Unable to handle swap header version {version}"),
            Refused::Empty => f.write_str("Empty swap-file"),
            Refused::TooShort => f.write_str("Swap area shorter than signature indicates"),
            Refused::BadPages => f.write_str("Swap area has bad pages that it cannot have"),
        }
    }
}

/// Reads the header in the first page of an area of so many bytes.
pub(super) fn parse(page: &[u8; PAGE as usize], bytes: u64, is_file: bool) -> Result<Header, Refused> {
    let word = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    if !page.ends_with(SIGNATURE) {
        return Err(Refused::NoSignature);
    }
    if word(VERSION) != 1 {
        return Err(Refused::Version(word(VERSION)));
    }
    let (last, count) = (word(LAST_PAGE), word(BAD_COUNT));
    if last == 0 {
        return Err(Refused::Empty);
    }
    let all = u64::from(last) + 1;
    let pages = all.min(1 << PAGE_BITS) as u32;
    if u64::from(pages) > bytes / PAGE {
        return Err(Refused::TooShort);
    }
    if count > MOST_BAD || (count > 0 && is_file) {
        return Err(Refused::BadPages);
    }
    let mut bad: Vec<u32> = (0..count as usize).map(|index| word(BAD + 4 * index)).collect();
    if bad.iter().any(|&page| page == 0 || page > last) {
        return Err(Refused::BadPages);
    }
    bad.retain(|&page| page < pages);
    bad.sort_unstable();
    bad.dedup();
    if bad.len() as u32 + 1 >= pages {
        return Err(Refused::Empty);
    }
    Ok(Header { pages, oversized: (all > pages.into()).then_some(last), bad })
}
