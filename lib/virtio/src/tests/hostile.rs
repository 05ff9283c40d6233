//! Tests with devices that write into shared memory what no correct device writes.

use super::model::{Loop, Shared};
use crate::queue::{Piece, Queue};
use crate::{Error, features};
use proptest::prelude::*;
use std::sync::atomic::Ordering::SeqCst;

const PIECE: Piece = Piece { address: 0x1000, length: 8 };

/// A queue of four descriptors with one request, of which the device may write eight bytes.
fn with_one(shared: &Shared) -> Queue<'_> {
    let mut queue = Queue::new(shared.memory(), 0);
    queue.give(&[PIECE], &[PIECE]).expect("there is room");
    queue
}

fn is_broken(queue: &mut Queue<'_>) -> bool {
    queue.take() == Err(Error::Broken)
        && queue.take() == Err(Error::Broken)
        && queue.give(&[PIECE], &[]) == Err(Error::Broken)
}

#[test]
fn a_request_that_the_device_does_not_have_breaks_the_queue() {
    // The device completes: the request's second descriptor, free ones, and ones that do not exist.
    for head in [1, 2, 3, 4, 0x1_0000, u32::MAX] {
        let shared = Shared::new(4, 0);
        let mut queue = with_one(&shared);
        Loop::new(&shared, 0).publish(head, 0);
        assert!(is_broken(&mut queue), "{head}");
    }
}

#[test]
fn a_request_that_is_completed_twice_breaks_the_queue() {
    let shared = Shared::new(4, 0);
    let mut queue = with_one(&shared);
    queue.give(&[PIECE], &[]).unwrap();
    let mut device = Loop::new(&shared, 0);
    device.publish(0, 8);
    assert!(queue.take().unwrap().is_some_and(|completed| completed.written == 8));
    device.publish(0, 8);
    assert!(is_broken(&mut queue));
}

#[test]
fn bytes_that_a_device_has_read_are_not_bytes_that_it_has_written() {
    let shared = Shared::new(4, 0);
    let mut queue = Queue::new(shared.memory(), 0);
    queue.give(&[PIECE], &[]).unwrap();
    Loop::new(&shared, 0).publish(0, 8);
    assert!(queue.take().unwrap().is_some_and(|completed| completed.written == 0));
}

#[test]
fn more_bytes_than_may_be_written_break_the_queue() {
    for written in [9, 16, u32::MAX] {
        let shared = Shared::new(4, 0);
        let mut queue = with_one(&shared);
        Loop::new(&shared, 0).publish(0, written);
        assert!(is_broken(&mut queue), "{written}");
    }
}

#[test]
fn a_count_beyond_the_requests_breaks_the_queue() {
    for count in [2u32, 5, 0xffff] {
        let shared = Shared::new(4, 0);
        let mut queue = with_one(&shared);
        shared.used[0].store(count << 16, SeqCst);
        assert!(is_broken(&mut queue), "{count}");
    }
}

#[test]
fn what_the_device_writes_over_the_descriptors_is_not_read() {
    let shared = Shared::new(4, 0);
    let mut queue = with_one(&shared);
    for descriptor in &shared.descriptors {
        descriptor.next.store(0xffff, SeqCst);
        descriptor.length.store(u32::MAX, SeqCst);
        descriptor.flags.store(0xffff, SeqCst);
    }
    shared.available.iter().for_each(|word| word.store(0x7777, SeqCst));
    Loop::new(&shared, 0).publish(0, 8);
    assert!(queue.take().unwrap().is_some());
    assert!((0..4).all(|_| queue.give(&[PIECE], &[]).is_ok()));
}

#[derive(Clone, Debug)]
enum Step {
    Give(usize, usize),
    Take,
    Expect,
    Used(usize, u32),
    Descriptor(usize, u32),
    Available(usize, u16),
}

fn step() -> impl Strategy<Value = Step> {
    // Small numbers are frequent, because checks are more likely to miss what is almost correct.
    let word = prop_oneof![any::<u32>(), 0u32..5, (0u32..5).prop_map(|count| count << 16)];
    prop_oneof![
        3 => (0usize..4, 0usize..4).prop_map(|(readable, writable)| Step::Give(readable, writable)),
        3 => Just(Step::Take),
        1 => Just(Step::Expect),
        6 => (prop_oneof![Just(0usize), any::<usize>()], word.clone()).prop_map(|(at, word)| Step::Used(at, word)),
        1 => (any::<usize>(), word).prop_map(|(at, word)| Step::Descriptor(at, word)),
        1 => (any::<usize>(), any::<u16>()).prop_map(|(at, word)| Step::Available(at, word)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn whatever_a_device_writes_the_driver_gets_an_error_or_a_request_of_its_own(
        agreed in 0u64..4,
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let feature = |bit: u64, feature: u64| if agreed & bit != 0 { feature } else { 0 };
        let agreed = feature(1, features::EVENT_INDEX) | feature(2, features::INDIRECT);
        let shared = Shared::new(4, 3);
        let mut queue = Queue::new(shared.memory(), agreed);
        let mut given = std::collections::HashMap::new();
        let mut is_broken = false;
        for step in steps {
            match step {
                Step::Give(readable, writable) => {
                    let result = queue.give(&[PIECE; 3][..readable.min(3)], &[PIECE; 3][..writable.min(3)]);
                    prop_assert_eq!(result == Err(Error::Broken), is_broken);
                    if let Ok(token) = result {
                        let room = 8 * writable.min(3) as u32;
                        prop_assert_eq!(given.insert(token, room), None);
                    }
                    queue.must_notify();
                }
                Step::Take => match queue.take() {
                    Ok(None) => prop_assert!(!is_broken),
                    Ok(Some(completed)) => {
                        let room = given.remove(&completed.token);
                        prop_assert!(!is_broken && room.is_some_and(|room| completed.written <= room));
                    }
                    Err(error) => {
                        prop_assert_eq!(error, Error::Broken);
                        is_broken = true;
                    }
                },
                Step::Expect => drop(queue.expect_interrupt()),
                Step::Used(at, word) => shared.used[at % shared.used.len()].store(word, SeqCst),
                Step::Descriptor(at, word) => {
                    let descriptor = &shared.descriptors[at % 4];
                    descriptor.next.store(word as u16, SeqCst);
                    descriptor.length.store(word, SeqCst);
                }
                Step::Available(at, word) => {
                    shared.available[at % shared.available.len()].store(word, SeqCst);
                }
            }
            prop_assert_eq!(usize::from(queue.outstanding()), given.len());
        }
    }
}
