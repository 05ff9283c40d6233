use super::model::{Loop, Memory, Shared};
use crate::queue::{Completed, Piece, Queue, Token};
use crate::{Error, features};
use proptest::prelude::*;
use std::collections::HashMap;

/// A request of a test: the bytes of the pieces that the device reads, and the lengths of those
/// that it writes.
#[derive(Clone, Debug)]
struct Wanted {
    readable: Vec<Vec<u8>>,
    writable: Vec<usize>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    (prop::collection::vec(bytes, 0..6), prop::collection::vec(0usize..60, 0..6))
        .prop_map(|(readable, writable)| Wanted { readable, writable })
}

#[derive(Clone, Debug)]
enum Step {
    Give(Wanted),
    /// The device completes one of its requests, and the driver takes what is completed.
    Complete(usize),
    Take,
    /// Whether the device waits for a notification from now on.
    Wait(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => wanted().prop_map(Step::Give),
        4 => any::<usize>().prop_map(Step::Complete),
        2 => Just(Step::Take),
        1 => any::<bool>().prop_map(Step::Wait),
    ]
}

/// What the test records about a request that the driver has given.
struct Given {
    bytes: Vec<u8>,
    writable: Vec<Piece>,
}

struct Driver<'a> {
    queue: Queue<'a>,
    given: HashMap<Token, Given>,
    memory: Memory,
}

impl Driver<'_> {
    /// Gives a request to the device. Returns whether the queue had room for it.
    fn give(&mut self, wanted: &Wanted, size: usize) -> bool {
        let readable: Vec<Piece> =
            wanted.readable.iter().map(|bytes| self.memory.add(bytes.clone())).collect();
        let writable: Vec<Piece> =
            wanted.writable.iter().map(|&length| self.memory.add(vec![0; length])).collect();
        match self.queue.give(&readable, &writable) {
            Ok(token) => {
                let given = Given { bytes: wanted.readable.concat(), writable };
                assert!(self.given.insert(token, given).is_none(), "a number of its own");
                true
            }
            Err(Error::Length) => {
                let count = readable.len() + writable.len();
                assert!(count == 0 || count > size);
                false
            }
            Err(error) => {
                assert_eq!(error, Error::Full);
                assert!(self.queue.outstanding() > 0);
                false
            }
        }
    }

    /// Takes all completed requests, and compares what the device has written with what it has
    /// read.
    fn take(&mut self) {
        while let Some(Completed { token, written }) = self.queue.take().expect("a correct device") {
            let given = self.given.remove(&token).expect("it was given");
            let all = given.writable.iter().flat_map(|&piece| self.memory.bytes(piece).to_vec());
            let room: u32 = given.writable.iter().map(|piece| piece.length).sum();
            assert_eq!(written, room.min(given.bytes.len() as u32));
            let all: Vec<u8> = all.take(written as usize).collect();
            // The device must fill each piece before it writes to the next.
            assert_eq!(all, given.bytes[..written as usize]);
        }
    }
}

fn play(size: u16, entries: u16, agreed: u64, steps: &[Step]) {
    let shared = Shared::new(size, entries);
    let mut device = Loop::new(&shared, agreed);
    let queue = Queue::new(shared.memory(), agreed);
    let mut driver = Driver { queue, given: HashMap::new(), memory: Memory::default() };
    let mut waits = true;
    for step in steps {
        match step {
            Step::Give(wanted) => {
                let is_given = driver.give(wanted, size.into());
                let must_notify = driver.queue.must_notify();
                assert!(!must_notify || is_given);
                if is_given && waits {
                    assert!(must_notify, "a device that waits is notified");
                }
                if must_notify {
                    waits = false;
                    device.see();
                }
            }
            Step::Complete(which) => {
                device.see();
                if !device.begun.is_empty() {
                    let news = driver.queue.expect_interrupt();
                    let is_interrupted = device.complete(&mut driver.memory, which % device.begun.len());
                    assert!(news || is_interrupted, "a driver that waits is interrupted");
                    driver.queue.expect_no_interrupt();
                }
            }
            Step::Take => driver.take(),
            Step::Wait(wait) => {
                device.see();
                device.wait(*wait);
                waits = *wait;
            }
        }
        assert_eq!(usize::from(driver.queue.outstanding()), driver.given.len());
    }
    device.see();
    while !device.begun.is_empty() {
        device.complete(&mut driver.memory, 0);
        driver.take();
    }
    driver.take();
    assert!(driver.given.is_empty());
    // When no request is left, all descriptors must be free.
    let piece = driver.memory.add(vec![1]);
    for _ in 0..size {
        driver.queue.give(&[piece], &[]).expect("room");
    }
    assert_eq!(driver.queue.give(&[piece], &[]), Err(Error::Full));
}

proptest! {
    #[test]
    fn what_a_device_reads_and_writes_are_the_bytes_of_the_request(
        size in 0u32..6,
        entries in 0u16..8,
        agreed in 0u64..4,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let feature = |bit: u64, feature: u64| if agreed & bit != 0 { feature } else { 0 };
        let agreed = feature(1, features::EVENT_INDEX) | feature(2, features::INDIRECT);
        play(1 << size, entries, agreed, &steps);
    }
}

#[test]
fn the_counts_pass_their_end() {
    for agreed in [0, features::EVENT_INDEX, features::EVENT_INDEX | features::INDIRECT] {
        let one = Wanted { readable: vec![vec![1, 2], vec![3]], writable: vec![1, 4] };
        let round = [Step::Wait(true), Step::Give(one), Step::Complete(0), Step::Take];
        let steps: Vec<Step> = round.iter().cloned().cycle().take(4 * 70_000).collect();
        play(4, 4, agreed, &steps);
    }
}

#[test]
fn a_request_of_no_piece_or_of_more_than_can_be_is_refused() {
    let shared = Shared::new(4, 2);
    let mut queue = Queue::new(shared.memory(), features::INDIRECT);
    let piece = Piece { address: 0x1000, length: 1 };
    let large = Piece { address: 0x1000, length: u32::MAX };
    assert_eq!(queue.give(&[], &[]), Err(Error::Length));
    assert_eq!(queue.give(&[piece; 3], &[piece; 2]), Err(Error::Length));
    assert_eq!(queue.give(&[piece], &[large]), Err(Error::Length));
    assert_eq!((queue.outstanding(), queue.must_notify()), (0, false));
    // Each table has two entries. So a request of two pieces takes one descriptor, and one of three
    // pieces takes three.
    assert!(queue.give(&[piece; 2], &[]).is_ok() && queue.give(&[piece], &[piece; 2]).is_ok());
    assert_eq!(queue.give(&[piece], &[]), Err(Error::Full));
}

#[test]
fn a_device_that_does_not_wait_is_not_notified() {
    for agreed in [0, features::EVENT_INDEX] {
        let shared = Shared::new(4, 0);
        let mut device = Loop::new(&shared, agreed);
        let mut queue = Queue::new(shared.memory(), agreed);
        let piece = Piece { address: 0x1000, length: 1 };
        device.wait(false);
        queue.give(&[piece], &[]).unwrap();
        assert!(!queue.must_notify());
        device.see();
        device.wait(true);
        queue.give(&[piece], &[]).unwrap();
        queue.give(&[piece], &[]).unwrap();
        assert!(queue.must_notify() && !queue.must_notify(), "once for both");
    }
}

#[test]
fn a_driver_that_asks_for_no_interrupts_gets_none() {
    for agreed in [0, features::EVENT_INDEX] {
        let shared = Shared::new(4, 0);
        let mut device = Loop::new(&shared, agreed);
        let mut queue = Queue::new(shared.memory(), agreed);
        let piece = Piece { address: 0x1000, length: 1 };
        assert!((0..3).all(|_| queue.give(&[], &[piece]).is_ok()));
        device.see();
        queue.expect_no_interrupt();
        assert!(!device.publish(0, 0));
        assert!(queue.expect_interrupt(), "it is there already");
        assert!(queue.take().unwrap().is_some());
        assert!(!queue.expect_interrupt());
        assert!(device.publish(1, 1));
    }
}
