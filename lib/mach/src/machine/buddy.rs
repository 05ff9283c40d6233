//! A buddy allocator of frame numbers, for implementations of [`Machine`](super::Machine).

use alloc::vec::Vec;

/// Blocks have 2^0 to 2^`MAX_ORDER` frames (4 KiB to 1 GiB).
pub const MAX_ORDER: u32 = 18;

const NIL: u32 = u32::MAX;
const NOT_FREE: u8 = u8::MAX;

/// The record of a frame. `order` is set only in the first frame of a free block, which is also in
/// a list of free blocks.
#[derive(Clone, Copy)]
struct Link {
    next: u32,
    previous: u32,
    order: u8,
}

/// The allocator: free frames as aligned blocks of powers of two. It takes 12 bytes for each frame.
pub struct Buddy {
    links: Vec<Link>,
    heads: [u32; MAX_ORDER as usize + 1],
    free: u32,
}

impl Buddy {
    /// An allocator for frame numbers below `limit`, all in use. `None` if there is no memory for
    /// its records.
    pub fn new(limit: u32) -> Option<Self> {
        let mut links = Vec::new();
        links.try_reserve_exact(limit as usize).ok()?;
        links.resize(limit as usize, Link { next: NIL, previous: NIL, order: NOT_FREE });
        Some(Self { links, heads: [NIL; MAX_ORDER as usize + 1], free: 0 })
    }

    /// The number of free frames.
    pub fn free_frames(&self) -> u32 {
        self.free
    }

    /// Allocates an aligned block of 2^`order` frames, cut from the smallest free block that is
    /// large enough. `None` if there is none.
    pub fn allocate(&mut self, order: u32) -> Option<u32> {
        let mut found = (order..=MAX_ORDER).find(|&order| self.heads[order as usize] != NIL)?;
        let first = self.heads[found as usize];
        self.unlink(first, found);
        while found > order {
            found -= 1;
            self.link(first + (1 << found), found);
        }
        self.free -= 1 << order;
        Some(first)
    }

    /// Frees an aligned block of 2^`order` frames in use, joining it with its free neighbours.
    ///
    /// # Panics
    /// If the block is unaligned or outside the limit, or (where it can be seen) already free.
    pub fn release(&mut self, first: u32, order: u32) {
        let limit = self.links.len() as u32;
        assert!(order <= MAX_ORDER && first.is_multiple_of(1 << order) && first < limit);
        assert!(limit - first >= 1 << order, "block of frames outside the limit");
        assert!(self.links[first as usize].order == NOT_FREE, "frame {first} freed twice");
        self.free += 1 << order;
        let (mut first, mut order) = (first, order);
        while order < MAX_ORDER {
            let buddy = first ^ (1 << order);
            if buddy >= limit || self.links[buddy as usize].order != order as u8 {
                break;
            }
            self.unlink(buddy, order);
            first = first.min(buddy);
            order += 1;
        }
        self.link(first, order);
    }

    /// Adds a range of frames that the allocator did not have.
    pub fn donate(&mut self, first: u32, count: u32) {
        let end = first + count;
        let mut at = first;
        while at < end {
            let order = at.trailing_zeros().min((end - at).ilog2()).min(MAX_ORDER);
            self.release(at, order);
            at += 1 << order;
        }
    }

    fn link(&mut self, first: u32, order: u32) {
        let head = core::mem::replace(&mut self.heads[order as usize], first);
        if head != NIL {
            self.links[head as usize].previous = first;
        }
        self.links[first as usize] = Link { next: head, previous: NIL, order: order as u8 };
    }

    fn unlink(&mut self, first: u32, order: u32) {
        let Link { next, previous, .. } = self.links[first as usize];
        match previous {
            NIL => self.heads[order as usize] = next,
            previous => self.links[previous as usize].next = next,
        }
        if next != NIL {
            self.links[next as usize].previous = previous;
        }
        self.links[first as usize].order = NOT_FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_disjoint_and_join_again() {
        let mut buddy = Buddy::new(100).unwrap();
        buddy.donate(3, 97);
        assert_eq!(buddy.free_frames(), 97);
        let mut taken = Vec::new();
        for order in [0, 3, 5, 0, 1, 4] {
            let first = buddy.allocate(order).unwrap();
            assert!(first.is_multiple_of(1 << order) && first >= 3 && first + (1 << order) <= 100);
            taken.push((first, order));
        }
        let mut frames: Vec<u32> =
            taken.iter().flat_map(|&(first, order)| first..first + (1 << order)).collect();
        frames.sort_unstable();
        assert!(frames.windows(2).all(|pair| pair[0] < pair[1]));
        taken.iter().for_each(|&(first, order)| buddy.release(first, order));
        assert_eq!(buddy.free_frames(), 97);
        // All memory is free in one piece again: both aligned blocks of 32 frames can be allocated.
        assert!(buddy.allocate(5).is_some() && buddy.allocate(5).is_some());
    }

    #[test]
    fn exhaustion_is_an_answer_and_single_frames_can_be_freed_one_by_one() {
        let mut buddy = Buddy::new(16).unwrap();
        buddy.donate(0, 16);
        let run = buddy.allocate(4).unwrap();
        assert_eq!(buddy.allocate(0), None);
        (run..run + 16).for_each(|frame| buddy.release(frame, 0));
        assert_eq!(buddy.allocate(4), Some(run));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_double_free_is_noticed() {
        let mut buddy = Buddy::new(4).unwrap();
        buddy.release(0, 0);
        buddy.release(0, 0);
    }
}
