//! The client and the driver on two processors, explored by loom.

use crate::area::Area;
use crate::buffers::{ALL_WORDS, Buffers};
use crate::client::Client;
use crate::driver::{Driver, Pages};
use crate::head::Head;
use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Notify};
use loom::thread;

#[test]
fn loom_the_driver_is_notified_of_a_frame_and_the_client_that_it_was_sent() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 10_000;
    model.check(|| {
        let shared = Arc::new((Area::default(), Notify::new(), Notify::new()));
        let other = shared.clone();
        let driver = thread::spawn(move || {
            let (area, work, news) = &*other;
            let pages = Pages::find(|offset| Ok::<_, ()>((offset, 1 << 20))).unwrap().unwrap();
            let mut driver = Driver::new(area, pages);
            let frame = loop {
                while driver.take_empty().is_some() {}
                if let Some(frame) = driver.take() {
                    break frame;
                }
                if !driver.sleep() {
                    // Loom fails if the notification never comes.
                    work.wait();
                }
            };
            driver.sent(&frame);
            if driver.must_notify() {
                news.notify();
            }
        });
        let words: Vec<_> = (0..ALL_WORDS).map(|_| AtomicU64::new(0)).collect();
        let (area, work, news) = &*shared;
        let mut client = Client::new(Buffers::new(&words).unwrap());
        client.restart(area);
        // The second frame has buffers only when the first one was sent.
        for length in [80, 20] {
            let frame = vec![1; length];
            while client.send(&Head::default(), &frame).is_err() {
                if !client.sleep_to_send() {
                    news.wait();
                }
            }
            if client.must_notify() {
                work.notify();
            }
        }
        driver.join().unwrap();
    });
}
