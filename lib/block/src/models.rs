//! The client and the driver on two processors, explored by loom: every interleaving.

use crate::area::Area;
use crate::request::{Operation, Request, Segments};
use loom::sync::Arc;
use loom::thread;
use ring::lane::{Receiver, Sender};

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
