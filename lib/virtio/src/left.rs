//! What an earlier driver has left in the memory of a queue: a driver that is started again, and
//! has the memory as it was, learns which requests the device has completed.

use crate::memory::QueueMemory;
use crate::queue::{COUNT, FIRST};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// A request of one piece that an earlier driver has given to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The address at which the device had the piece.
    pub address: u64,
    /// The length of the piece in bytes.
    pub length: u32,
    /// How many bytes the device says that it has written; `None`: it has not completed the
    /// request.
    pub written: Option<u32>,
}

impl QueueMemory<'_> {
    /// How many requests were given to the device, and how many it has completed, modulo 2^16. The
    /// device must have been reset.
    pub fn counts(&self) -> (u16, u16) {
        let given = self.available[COUNT].load(Ordering::Acquire);
        (given, (self.used[0].load(Ordering::Acquire) >> 16) as u16)
    }

    /// The requests from the one of the number `from` on, each of one piece, in the order in which
    /// they were given. The device must complete requests in this order, and must have been reset;
    /// no later one of the requests may have been taken. There are none if what is in the memory is
    /// not what a driver and such a device leave.
    pub fn left(&self, from: u16) -> Vec<Left> {
        let (given, completed) = self.counts();
        let count = given.wrapping_sub(from);
        let size = self.layout.size();
        if count > size || given.wrapping_sub(completed) > size {
            return Vec::new();
        }
        let all = (0..count).map(|index| self.request(from.wrapping_add(index), completed));
        all.collect::<Option<_>>().unwrap_or_default()
    }

    /// The request of a number. `None`: the device has completed another one instead.
    fn request(&self, number: u16, completed: u16) -> Option<Left> {
        let entry = usize::from(number & (self.layout.size() - 1));
        let head = self.available[FIRST + entry].load(Ordering::Relaxed);
        let descriptor = self.descriptors.get(usize::from(head))?;
        let length = descriptor.length.load(Ordering::Relaxed);
        let is_completed = (1..=self.layout.size()).contains(&completed.wrapping_sub(number));
        let written = if is_completed {
            let [used, written] = [1, 2].map(|word| self.used[word + 2 * entry].load(Ordering::Relaxed));
            if used != u32::from(head) {
                return None;
            }
            Some(written.min(length))
        } else {
            None
        };
        Some(Left { address: descriptor.address.load(Ordering::Relaxed), length, written })
    }

    /// Makes the memory zero, as a new queue needs it. The device must have been reset.
    pub fn clear(&self) {
        for descriptor in self.descriptors.iter().chain(self.tables) {
            descriptor.address.store(0, Ordering::Relaxed);
            descriptor.length.store(0, Ordering::Relaxed);
            descriptor.flags.store(0, Ordering::Relaxed);
            descriptor.next.store(0, Ordering::Relaxed);
        }
        self.available.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.used.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}
