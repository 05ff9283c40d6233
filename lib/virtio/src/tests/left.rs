//! Tests of what a driver finds of an earlier one.

use super::model::{Loop, Memory, Shared};
use crate::left::Left;
use crate::queue::Queue;

#[test]
fn a_driver_that_is_started_again_finds_what_the_device_has_completed_and_what_not() {
    let shared = Shared::new(4, 0);
    assert_eq!((shared.memory().counts(), shared.memory().left(0)), ((0, 0), Vec::new()));
    let mut memory = Memory::default();
    let mut device = Loop::new(&shared, 0);
    let pieces: Vec<_> = (1..=7).map(|length| memory.add(vec![0; length])).collect();
    {
        let mut queue = Queue::new(shared.memory(), 0);
        // Five requests are completed, of which the driver has taken three.
        for piece in &pieces[..3] {
            queue.give(&[], &[*piece]).unwrap();
            device.see();
            device.complete(&mut memory, 0);
            queue.take().unwrap().expect("it is completed");
        }
        for piece in &pieces[3..] {
            queue.give(&[], &[*piece]).unwrap();
        }
        device.see();
        for written in [2, 3] {
            let head = device.begun.remove(0);
            device.publish(head.into(), written);
        }
    }
    let left = shared.memory();
    assert_eq!(left.counts(), (7, 5));
    let of = |index: usize, written| {
        let piece = pieces[index];
        Left { address: piece.address, length: piece.length, written }
    };
    assert_eq!(left.left(3), [of(3, Some(2)), of(4, Some(3)), of(5, None), of(6, None)]);
    assert_eq!(left.left(5), [of(5, None), of(6, None)]);
    assert_eq!((left.left(7), left.left(8), left.left(1)), (Vec::new(), Vec::new(), Vec::new()));
    // The device says that it has completed another request.
    shared.used[1 + 2 * 3].store(77, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(left.left(3), Vec::new());
    left.clear();
    assert_eq!((left.counts(), left.left(0)), ((0, 0), Vec::new()));
}
