//! Packets that arrive in pieces (RFC 815, RFC 5722). Pieces that overlap make the whole packet
//! invalid, and so do pieces that would make it too long.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use crate::time::Instant;

/// How long the rest of a packet is waited for.
const AGE: Duration = Duration::from_secs(30);
/// The largest payload of a packet.
const LARGEST: usize = 65535;
/// Pieces of a packet. A packet of the largest size on a path with the smallest MTU has fewer.
const PIECES: usize = 130;
/// Memory that is counted for a packet in addition to its bytes.
const OVERHEAD: usize = 256;

/// Which packet a fragment belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Whole {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) identification: u32,
    /// Of IPv4; zero for IPv6.
    pub(crate) protocol: u8,
}

struct Partial {
    whole: Whole,
    /// The protocol of the first piece.
    protocol: u8,
    bytes: Vec<u8>,
    /// The pieces that have arrived, in order: first byte and end.
    pieces: Vec<(usize, usize)>,
    /// The payload's length, as the last piece told it.
    length: Option<usize>,
    /// A piece was invalid: the others are dropped until this is forgotten.
    poisoned: bool,
    expires: Instant,
}

/// Packets of which pieces have arrived, the oldest first.
#[derive(Default)]
pub(crate) struct Fragments {
    partial: VecDeque<Partial>,
    bytes: usize,
}

impl Fragments {
    /// Takes a piece. Answers the protocol and the payload of the packet if it is whole.
    #[expect(clippy::too_many_arguments, reason = "the fields of a fragment's header")]
    pub(crate) fn add(
        &mut self,
        whole: Whole,
        protocol: u8,
        offset: usize,
        more: bool,
        data: &[u8],
        now: Instant,
        limit: usize,
    ) -> Option<(u8, Vec<u8>)> {
        self.expire(now);
        let index = match self.partial.iter().position(|partial| partial.whole == whole) {
            Some(index) => index,
            None => {
                self.partial.push_back(Partial {
                    whole,
                    protocol,
                    bytes: Vec::new(),
                    pieces: Vec::new(),
                    length: None,
                    poisoned: false,
                    expires: now + AGE,
                });
                self.bytes += OVERHEAD;
                self.partial.len() - 1
            }
        };
        let partial = self.partial.get_mut(index)?;
        let before = partial.bytes.capacity();
        let complete = partial.add(protocol, offset, more, data);
        self.bytes = self.bytes + partial.bytes.capacity() - before;
        if complete {
            let partial = self.partial.remove(index)?;
            self.bytes -= OVERHEAD + partial.bytes.capacity();
            return Some((partial.protocol, partial.bytes));
        }
        // The oldest give way, and this one if it is the last.
        while self.bytes > limit {
            let oldest = self.partial.pop_front()?;
            self.bytes -= OVERHEAD + oldest.bytes.capacity();
        }
        None
    }

    fn expire(&mut self, now: Instant) {
        while self.partial.front().is_some_and(|partial| partial.expires <= now) {
            if let Some(old) = self.partial.pop_front() {
                self.bytes -= OVERHEAD + old.bytes.capacity();
            }
        }
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.bytes
    }
}

impl Partial {
    fn add(&mut self, protocol: u8, offset: usize, more: bool, data: &[u8]) -> bool {
        let end = offset + data.len();
        if self.poisoned {
            return false;
        }
        let valid = !data.is_empty()
            && end <= LARGEST
            && (!more || data.len().is_multiple_of(8))
            && self.pieces.len() < PIECES
            && match self.length {
                Some(length) => more && end <= length,
                None => more || self.pieces.last().is_none_or(|last| last.1 <= end),
            };
        let place = self.pieces.partition_point(|piece| piece.0 < offset);
        // A piece that the network doubled is no overlap.
        if self.pieces.get(place) == Some(&(offset, end)) {
            return false;
        }
        let free = self.pieces.get(place).is_none_or(|next| end <= next.0)
            && (place == 0 || self.pieces[place - 1].1 <= offset);
        if !valid || !free {
            self.poisoned = true;
            self.bytes = Vec::new();
            return false;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(data);
        self.pieces.insert(place, (offset, end));
        if offset == 0 {
            self.protocol = protocol;
        }
        if !more {
            self.length = Some(end);
        }
        let mut reached = 0;
        for piece in &self.pieces {
            if piece.0 != reached {
                return false;
            }
            reached = piece.1;
        }
        self.length == Some(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(identification: u32) -> Whole {
        let address = "10.0.0.1".parse().unwrap();
        Whole { source: address, destination: address, identification, protocol: 17 }
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_are_the_packet(
            data in proptest::collection::vec(any::<u8>(), 1..4000),
            order in any::<u64>(),
            size in 1usize..100,
        ) {
            let size = size * 8;
            let mut pieces: Vec<usize> = (0..data.len().div_ceil(size)).collect();
            prop_assume!(pieces.len() < PIECES);
            let mut random = crate::hash::Random::new(crate::hash::Key::new([0; 16]));
            for at in 0..pieces.len() {
                pieces.swap(at, ((random.next() ^ order) % data.len() as u64) as usize % (at + 1));
            }
            let mut fragments = Fragments::default();
            let mut result = None;
            for (count, piece) in pieces.iter().enumerate() {
                prop_assert!(result.is_none(), "whole after {count} pieces");
                let offset = piece * size;
                let end = data.len().min(offset + size);
                let now = Instant::from_micros(count as u64);
                let more = end < data.len();
                result = fragments.add(whole(1), 17, offset, more, &data[offset..end], now, 1 << 20);
                if result.is_none() && count % 2 == 0 {
                    // The network doubles pieces.
                    let again = fragments.add(whole(1), 17, offset, more, &data[offset..end], now, 1 << 20);
                    prop_assert!(again.is_none());
                }
            }
            prop_assert_eq!(result, Some((17, data)));
            prop_assert_eq!(fragments.held(), 0);
        }
    }

    #[test]
    fn pieces_that_overlap_are_refused() {
        let mut fragments = Fragments::default();
        let now = Instant::default();
        let mut add =
            |offset, more, data: &[u8]| fragments.add(whole(2), 17, offset, more, data, now, 1 << 20);
        assert_eq!(add(0, true, &[1; 16]), None);
        assert_eq!(add(8, true, &[2; 16]), None);
        assert_eq!(add(16, false, &[3; 8]), None, "the packet stays invalid");
    }

    #[test]
    fn memory_is_bounded_and_old_packets_are_forgotten() {
        let mut fragments = Fragments::default();
        for identification in 0..1000 {
            let at = Instant::from_micros(identification.into());
            let offset = 8 * (identification as usize % 8000);
            fragments.add(whole(identification), 17, offset, true, &[0; 64], at, 100_000);
            assert!(fragments.held() <= 100_000);
        }
        let later = Instant::default() + AGE * 2;
        fragments.add(whole(5000), 17, 0, true, &[0; 64], later, 100_000);
        assert!(fragments.held() < 1000);
    }
}
