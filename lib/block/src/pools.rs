//! Where the pages of a client's pools are for the device.

use crate::PAGE;
use crate::request::Request;
use alloc::vec::Vec;

/// A piece of memory, as the device reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub length: u64,
}

/// A run of pages that are contiguous for the device.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The number of the first page in the pool, and that of the page after the last.
    first: u64,
    end: u64,
    address: u64,
}

/// The pools of a client, by their numbers in requests.
#[derive(Debug, Default)]
pub struct Pools {
    /// The runs of each pool, in the order of their pages.
    pools: Vec<Vec<Run>>,
}

/// The most pools of a client.
const MOST_POOLS: usize = 16;

impl Pools {
    /// Adds a pool of `size` bytes, a multiple of the page size. `find` returns the address of the
    /// byte at an offset, and how many bytes are contiguous from there on. Returns the number of
    /// the pool in requests; `None`: there are too many pools, or the size is wrong.
    ///
    /// # Errors
    /// The first error of `find`.
    pub fn add<E>(
        &mut self,
        size: u64,
        mut find: impl FnMut(u64) -> Result<(u64, u64), E>,
    ) -> Result<Option<u16>, E> {
        if size == 0 || !size.is_multiple_of(PAGE) || size / PAGE > 1 << 32 || self.pools.len() == MOST_POOLS
        {
            return Ok(None);
        }
        let (mut runs, mut offset) = (Vec::<Run>::new(), 0);
        while offset < size {
            let (address, length) = find(offset)?;
            let length = length.min(size - offset) & !(PAGE - 1);
            if length == 0 || !address.is_multiple_of(PAGE) {
                return Ok(None);
            }
            let (first, end) = (offset / PAGE, (offset + length) / PAGE);
            match runs.last_mut() {
                Some(last) if last.address + (last.end - last.first) * PAGE == address => last.end = end,
                _ => runs.push(Run { first, end, address }),
            }
            offset += length;
        }
        self.pools.push(runs);
        Ok(Some(self.pools.len() as u16 - 1))
    }

    /// Appends to `pieces` the memory of a request's data, each piece with at most `longest` bytes.
    /// `None`: the request has pages that are in no pool; `pieces` may have some pieces then.
    pub(crate) fn resolve(&self, request: &Request, longest: u64, pieces: &mut Vec<Piece>) -> Option<()> {
        let (mut skip, mut left) = (u64::from(request.offset), request.bytes());
        for segment in request.segments.as_slice() {
            let runs = self.pools.get(usize::from(segment.pool))?;
            let (mut page, end) =
                (u64::from(segment.page), u64::from(segment.page) + u64::from(segment.count));
            while page < end {
                let at = runs.partition_point(|run| run.end <= page);
                let run = runs.get(at)?;
                let until = end.min(run.end);
                let address = run.address + (page - run.first) * PAGE + skip;
                let length = ((until - page) * PAGE - skip).min(left);
                append(pieces, Piece { address, length }, longest);
                (page, skip, left) = (until, 0, left - length);
            }
        }
        Some(())
    }
}

/// Appends a piece, as part of the last piece where that is possible, and as several where it is
/// too long.
fn append(pieces: &mut Vec<Piece>, mut piece: Piece, longest: u64) {
    if let Some(last) = pieces.last_mut()
        && last.address + last.length == piece.address
    {
        let more = piece.length.min(longest.saturating_sub(last.length));
        last.length += more;
        piece = Piece { address: piece.address + more, length: piece.length - more };
    }
    while piece.length > 0 {
        let length = piece.length.min(longest.max(1));
        pieces.push(Piece { address: piece.address, length });
        piece = Piece { address: piece.address + length, length: piece.length - length };
    }
}
