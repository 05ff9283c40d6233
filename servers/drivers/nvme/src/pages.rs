//! The memory of a command as the controller takes it: the address of the first byte, then the
//! addresses of pages, in a list if there is more than one (PRP entries and lists, 4.3).

use crate::command::Memory;
use block::PAGE;
use block::pools::Piece;

/// How many addresses a list has: a list of so many fits into [`LIST_BYTES`].
pub const LIST: usize = 127;
/// The distance of two lists in memory. A list never crosses the end of a page.
pub const LIST_BYTES: u64 = 1024;
/// How many pages a command reaches.
pub const PAGES: u64 = LIST as u64 + 1;

/// The memory of a command with these pieces. The addresses of the list at `list` are given to
/// `write` with their indexes. `None`: the pieces cannot be written like this: one begins or ends
/// in the middle of a page that the next one does not continue, or there are more than [`PAGES`].
pub fn memory(pieces: &[Piece], list: u64, mut write: impl FnMut(usize, u64)) -> Option<Memory> {
    let first = pieces.first()?.address;
    let (mut count, mut second, mut end) = (0, 0, first);
    // A page that the first address names is not in the list.
    let mut is_named = first.is_multiple_of(PAGE);
    for piece in pieces {
        if piece.address != end && !(piece.address.is_multiple_of(PAGE) && end.is_multiple_of(PAGE)) {
            return None;
        }
        end = piece.address.checked_add(piece.length)?;
        // If the piece begins in the middle of a page, that page is there already.
        for page in (piece.address.next_multiple_of(PAGE)..end).step_by(PAGE as usize) {
            if core::mem::take(&mut is_named) {
                continue;
            }
            if count == LIST {
                return None;
            }
            second = page;
            write(count, page);
            count += 1;
        }
    }
    Some(match count {
        0 | 1 => (first, second),
        _ => (first, list),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(pieces: &[(u64, u64)]) -> Option<(Memory, Vec<u64>)> {
        let pieces: Vec<_> = pieces.iter().map(|&(address, length)| Piece { address, length }).collect();
        let mut list = Vec::new();
        let memory = memory(&pieces, 0xf000, |index, page| {
            assert_eq!(index, list.len());
            list.push(page);
        })?;
        Some((memory, list))
    }

    #[test]
    fn one_or_two_pages_need_no_list() {
        assert_eq!(of(&[(0x1200, 0x200)]), Some(((0x1200, 0), vec![])));
        assert_eq!(of(&[(0x1000, 0x1000)]), Some(((0x1000, 0), vec![])));
        assert_eq!(of(&[(0x1e00, 0x400)]), Some(((0x1e00, 0x2000), vec![0x2000])));
        assert_eq!(of(&[(0x1e00, 0x200), (0x8000, 0x200)]), Some(((0x1e00, 0x8000), vec![0x8000])));
        let three = of(&[(0x1000, 0x1000), (0x8000, 0x1200)]);
        assert_eq!(three, Some(((0x1000, 0xf000), vec![0x8000, 0x9000])));
        let twice = of(&[(0x1000, 0x1000), (0x1000, 0x1000)]);
        assert_eq!(twice, Some(((0x1000, 0x1000), vec![0x1000])), "one page for two blocks");
    }

    #[test]
    fn pieces_that_leave_gaps_in_pages_are_refused() {
        assert_eq!(of(&[(0x1000, 0x200), (0x8000, 0x200)]), None);
        assert_eq!(of(&[(0x1000, 0x1000), (0x8200, 0x200)]), None);
        assert_eq!(of(&[(0, PAGES * PAGE)]).unwrap().1.len(), LIST);
        assert_eq!(of(&[(0, PAGES * PAGE + 512)]), None);
        assert_eq!(of(&[]), None);
    }

    proptest! {
        /// The bytes that the controller finds by the entries are those of the pieces.
        #[test]
        fn entries_are_the_pieces(
            runs in proptest::collection::vec(1u64..5, 1..12),
            skip in 0u64..8,
            cut in 0u64..8,
            longest in 1u64..20,
        ) {
            let (mut pieces, mut next, mut bytes) = (Vec::new(), 0x10_0000, Vec::new());
            for (number, pages) in runs.iter().enumerate() {
                let skip = if number == 0 { skip * 512 } else { 0 };
                let cut = if number + 1 == runs.len() { cut.min(7 - skip.min(7 * 512) / 512) * 512 } else { 0 };
                let (mut at, end) = (next + skip, next + pages * PAGE - cut);
                while at < end {
                    let length = (longest * 512).min(end - at);
                    pieces.push((at, length));
                    bytes.extend((at..at + length).step_by(512));
                    at += length;
                }
                next += (pages + 3) * PAGE;
            }
            let ((first, second), list) = of(&pieces).unwrap();
            prop_assert_eq!(second, match list.len() { 0 => 0, 1 => list[0], _ => 0xf000 });
            let pages = std::iter::once(first).chain(list);
            let found = pages.flat_map(|page| (page..(page + 1).next_multiple_of(PAGE)).step_by(512));
            let found: Vec<_> = found.take(bytes.len()).collect();
            prop_assert_eq!(found, bytes);
        }
    }
}
