//! How a client's request becomes commands of the device: a device takes only so much memory at a
//! time, and is not expected to write through its cache.

use crate::driver::Job;
use crate::pools::Piece;
use crate::request::Operation;
use crate::{Error, PAGE, SECTOR};

/// The most memory of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a piece of memory, a multiple of 512.
    pub piece: u64,
    /// The most pieces of memory, at least 1.
    pub pieces: usize,
    /// The most pages that the pieces touch. A longest piece must not touch more.
    pub pages: u64,
}

impl Limits {
    /// How many of the pieces, from the first on, one command takes: at least one, if there is one.
    fn count(&self, pieces: &[Piece]) -> usize {
        let mut pages = 0;
        let fits = |piece: &&Piece| {
            pages += (piece.address + piece.length).div_ceil(PAGE) - piece.address / PAGE;
            pages <= self.pages
        };
        let count = pieces.iter().take(self.pieces).take_while(fits).count();
        count.max(1).min(pieces.len())
    }
}

/// A command of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Reads sectors from this one on into memory.
    Read(u64, &'a [Piece]),
    /// Writes sectors from this one on from memory.
    Write(u64, &'a [Piece]),
    /// Flushes the device's cache.
    Flush,
    /// Discards so many sectors from this one on.
    Discard(u64, u32),
}

/// How far a client's request is.
#[derive(Debug)]
pub struct Work {
    job: Job,
    /// The next sector, and the index of the piece of memory with its data.
    sector: u64,
    piece: usize,
    /// How many commands the device has.
    outstanding: usize,
    /// Whether all commands before the last flush have been given, and that flush.
    moved: bool,
    flushed: bool,
    result: Result<(), Error>,
}

impl Work {
    /// The work of this request for a device that flushes, or has no cache.
    pub fn new(job: Job, flushes: bool) -> Work {
        let moved = matches!(job.operation, Operation::Flush);
        // A device without a cache has stored what it has written.
        let flushed =
            !flushes || !matches!(job.operation, Operation::Flush | Operation::Write { through: true });
        let sector = job.sector;
        Work { job, sector, piece: 0, outstanding: 0, moved, flushed, result: Ok(()) }
    }

    /// The slot of the request.
    pub fn slot(&self) -> usize {
        self.job.slot
    }

    /// The next command; `None`: there is none now. Once it was given to the device, the caller
    /// calls [`given`](Work::given).
    pub fn next(&self, limits: &Limits) -> Option<Command<'_>> {
        if self.result.is_err() {
            return None;
        }
        if self.moved {
            // The flush comes after all data have been written.
            return (!self.flushed && self.outstanding == 0).then_some(Command::Flush);
        }
        let pieces = &self.job.pieces[self.piece..];
        let pieces = &pieces[..limits.count(pieces)];
        Some(match self.job.operation {
            Operation::Read => Command::Read(self.sector, pieces),
            Operation::Write { .. } => Command::Write(self.sector, pieces),
            Operation::Flush => Command::Flush,
            Operation::Discard => Command::Discard(self.sector, self.job.sectors),
        })
    }

    /// The device has been given the [next](Work::next) command, with the same limits.
    pub fn given(&mut self, limits: &Limits) {
        self.outstanding += 1;
        if self.moved {
            self.flushed = true;
            return;
        }
        let pieces = &self.job.pieces[self.piece..];
        let count = limits.count(pieces);
        let bytes: u64 = pieces[..count].iter().map(|piece| piece.length).sum();
        self.piece += count;
        self.sector += bytes / SECTOR;
        self.moved = self.piece == self.job.pieces.len();
    }

    /// The device has ended a command with this result. The first error is that of the request.
    pub fn ended(&mut self, result: Result<(), Error>) {
        self.outstanding -= 1;
        self.result = self.result.and(result);
    }

    /// The result of the request, when it has ended.
    pub fn result(&self) -> Option<Result<(), Error>> {
        let is_over = self.result.is_err() || self.moved && self.flushed;
        (is_over && self.outstanding == 0).then_some(self.result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(operation: Operation, lengths: &[u64]) -> Job {
        let mut address = 0x1000;
        let mut pieces = Vec::new();
        for &length in lengths {
            pieces.push(Piece { address, length });
            address += length + 0x1000;
        }
        let sectors = (lengths.iter().sum::<u64>() / SECTOR) as u32;
        Job { slot: 3, operation, sector: 100, sectors, pieces }
    }

    fn pieces(pieces: usize) -> Limits {
        Limits { piece: u64::MAX, pieces, pages: u64::MAX }
    }

    #[test]
    fn a_write_through_is_flushed_after_its_data() {
        for flushes in [true, false] {
            let mut work = Work::new(job(Operation::Write { through: true }, &[512, 1024, 512]), flushes);
            assert!(matches!(work.next(&pieces(2)), Some(Command::Write(100, pieces)) if pieces.len() == 2));
            work.given(&pieces(2));
            assert!(matches!(work.next(&pieces(2)), Some(Command::Write(103, pieces)) if pieces.len() == 1));
            work.given(&pieces(2));
            assert_eq!((work.next(&pieces(2)), work.result()), (None, None));
            work.ended(Ok(()));
            assert_eq!((work.next(&pieces(2)), work.result()), (None, None));
            work.ended(Ok(()));
            if flushes {
                assert_eq!((work.next(&pieces(2)), work.result()), (Some(Command::Flush), None));
                work.given(&pieces(2));
                assert_eq!((work.next(&pieces(2)), work.result()), (None, None));
                work.ended(Err(Error::Device));
            }
            let expected = if flushes { Err(Error::Device) } else { Ok(()) };
            assert_eq!((work.next(&pieces(2)), work.result()), (None, Some(expected)));
        }
    }

    #[test]
    fn after_an_error_nothing_more_is_given_and_the_request_ends_when_the_device_has_nothing_of_it() {
        let mut work = Work::new(job(Operation::Read, &[512; 3]), true);
        work.given(&pieces(1));
        work.given(&pieces(1));
        work.ended(Err(Error::Unsupported));
        assert_eq!((work.next(&pieces(1)), work.result()), (None, None));
        work.ended(Err(Error::Device));
        assert_eq!(work.result(), Some(Err(Error::Unsupported)));
    }

    #[test]
    fn a_flush_is_nothing_for_a_device_without_a_cache() {
        assert_eq!(Work::new(job(Operation::Flush, &[]), false).result(), Some(Ok(())));
        let mut work = Work::new(job(Operation::Flush, &[]), true);
        assert_eq!((work.result(), work.next(&pieces(9))), (None, Some(Command::Flush)));
        work.given(&pieces(9));
        work.ended(Ok(()));
        assert_eq!(work.result(), Some(Ok(())));
    }

    proptest! {
        /// The commands together are the request, piece by piece, in any order of completion.
        #[test]
        fn commands_are_the_request(
            lengths in proptest::collection::vec(1u64..9, 1..40),
            most in 1usize..12,
            pages in 2u64..12,
        ) {
            let limits = Limits { piece: PAGE, pieces: most, pages };
            let lengths: Vec<u64> = lengths.iter().map(|length| length * 512).collect();
            let job = job(Operation::Read, &lengths);
            let mut work = Work::new(job.clone(), true);
            let (mut pieces, mut sector, mut commands) = (Vec::new(), job.sector, 0);
            while let Some(Command::Read(at, some)) = work.next(&limits) {
                prop_assert_eq!(at, sector);
                let touched = |piece: &Piece| (piece.address + piece.length).div_ceil(PAGE) - piece.address / PAGE;
                prop_assert!(some.len() <= most && some.iter().map(touched).sum::<u64>() <= pages);
                sector += some.iter().map(|piece| piece.length).sum::<u64>() / 512;
                pieces.extend_from_slice(some);
                work.given(&limits);
                commands += 1;
            }
            prop_assert_eq!(pieces, job.pieces);
            for left in (0..commands).rev() {
                prop_assert_eq!(work.result(), None);
                work.ended(Ok(()));
                prop_assert_eq!(work.result().is_some(), left == 0);
            }
        }
    }
}
