//! The two sides of a lane on two processors, explored by loom: every interleaving.

use crate::SLOTS;
use crate::area::Area;
use crate::lane::{Lane, Receiver, Sender};
use crate::request::{Operation, Request, Segments};
use loom::sync::{Arc, Notify};
use loom::thread;

#[test]
fn loom_a_receiver_that_sleeps_is_notified_of_each_word() {
    loom::model(|| {
        let shared = Arc::new((Lane::default(), Notify::new()));
        let other = shared.clone();
        let receiver = thread::spawn(move || {
            let mut receiver = Receiver::new(&other.0);
            let mut got = 0;
            while got < SLOTS as u64 {
                match receiver.receive().unwrap() {
                    Some(word) => {
                        got += 1;
                        assert_eq!(word, got);
                    }
                    None if receiver.sleep() => {}
                    // Loom fails if the notification never comes.
                    None => other.1.wait(),
                }
            }
        });
        let mut sender = Sender::new(&shared.0);
        for word in 1..=SLOTS as u64 {
            sender.send(word);
            if sender.must_notify() {
                shared.1.notify();
            }
        }
        receiver.join().unwrap();
    });
}

#[test]
fn loom_the_driver_reads_the_whole_request() {
    loom::model(|| {
        let area = Arc::new(Area::default());
        let other = area.clone();
        let driver = thread::spawn(move || {
            let mut receiver = Receiver::new(&other.requests);
            if let Some(slot) = receiver.receive().unwrap() {
                let request = other.slots[slot as usize].read().unwrap();
                assert_eq!((request.operation, request.sector, request.sectors), (Operation::Discard, 7, 9));
            }
        });
        let (operation, segments) = (Operation::Discard, Segments::default());
        area.slots[1].write(&Request { operation, sector: 7, sectors: 9, offset: 0, segments });
        Sender::new(&area.requests).send(1);
        driver.join().unwrap();
    });
}
