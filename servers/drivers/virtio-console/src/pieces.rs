//! Which pieces of the memory for one queue the device has.

use virtio::queue::Token;

/// The most pieces that a queue can have.
pub const MOST: usize = 16;

/// The pieces of memory for one queue, and which of them each request of the device has.
#[derive(Debug, Default)]
pub struct Pieces {
    free: [bool; MOST],
    /// For each request, by its number, the piece that it has.
    of_request: [usize; MOST],
}

impl Pieces {
    /// The piece with this number, below [`MOST`], is free from now on.
    pub fn add(&mut self, piece: usize) {
        self.free[piece] = true;
    }

    /// The piece is not free any more, although the device does not have it.
    pub fn keep(&mut self, piece: usize) {
        self.free[piece] = false;
    }

    /// The number of a piece that the device does not have.
    pub fn free(&self) -> Option<usize> {
        self.free.iter().position(|&is_free| is_free)
    }

    /// The request has the piece from now on. The number of a request is below the size of its
    /// queue, which is at most [`MOST`].
    pub fn give(&mut self, piece: usize, request: Token) {
        self.free[piece] = false;
        self.of_request[request.index()] = piece;
    }

    /// The request is completed. Returns the piece that it had, which is free again.
    pub fn take(&mut self, request: Token) -> usize {
        let piece = self.of_request[request.index()];
        self.free[piece] = true;
        piece
    }
}

/// How many pieces of `length` bytes the device may get for input in addition to the `given` ones
/// that it has, so that all fit into a ring with `room` bytes, whatever the device writes.
pub fn more_input(room: usize, given: usize, length: usize) -> usize {
    (room / length).saturating_sub(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn the_device_gets_no_more_than_fits() {
        assert_eq!(more_input(65536, 0, 4096), 16);
        assert_eq!(more_input(65536, 16, 4096), 0);
        assert_eq!(more_input(4095, 0, 4096), 0);
        assert_eq!(more_input(8191, 1, 4096), 0);
        assert_eq!(more_input(8192, 1, 4096), 1);
        assert_eq!(more_input(0, 3, 4096), 0);
    }

    #[test]
    fn whatever_the_device_writes_fits_into_the_ring() {
        const SIZE: usize = 64;
        const LENGTH: usize = 8;
        let ring = ring::Ring::<SIZE>::default();
        let (mut writer, mut reader) = (ring::Writer::new(&ring), ring::Reader::new(&ring));
        let (mut given, mut model, mut next) = (0, VecDeque::new(), 1u32);
        for step in 0..10_000 {
            next = next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let size = (next >> 24) as usize;
            given += more_input(writer.room(), given, LENGTH);
            if step % 3 != 0 && given > 0 {
                let bytes: Vec<u8> = (0..1 + size % LENGTH).map(|byte| (step + byte) as u8).collect();
                assert_eq!(writer.write(&bytes), bytes.len(), "nothing is lost");
                model.extend(bytes);
                given -= 1;
            } else {
                reader.read_each(size % 11, |byte| assert_eq!(model.pop_front(), Some(byte)));
            }
        }
    }
}
