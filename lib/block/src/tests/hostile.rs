//! Clients and drivers that break the rules.

use super::*;
use crate::area::Area;
use crate::client::Client;
use crate::driver::Driver;
use crate::pools::Pools;
use crate::{Error, SLOTS};
use proptest::prelude::*;
use ring::lane::{Receiver, Sender};

/// A pool of so many pages, contiguous from this address on.
fn pool(address: u64, pages: u64) -> Pools {
    let mut pools = Pools::default();
    let added = pools.add(pages * PAGE, |offset| Ok::<_, ()>((address + offset, pages * PAGE - offset)));
    assert_eq!(added, Ok(Some(0)));
    pools
}

/// What a driver of a device of 64 sectors answers to a request with a pool of 4 pages; `None`: it
/// takes the request.
fn refusal(request: &Request, device: &Description) -> Option<Error> {
    let area = Area::default();
    let (mut client, mut driver) = (Client::new(&area), Driver::new(&area));
    let ticket = client.issue(*request).unwrap();
    let taken = driver.take(device, &pool(0x10_0000, 4), 1 << 20);
    let answered = client.take();
    assert_eq!(taken.is_none(), answered.is_some());
    answered.map(|(other, result)| {
        assert_eq!(other, ticket);
        result.unwrap_err()
    })
}

#[test]
fn requests_that_are_not_valid_are_answered_with_the_reason() {
    let device = description(64);
    let (read, write) = (Operation::Read, Operation::Write { through: false });
    assert_eq!(refusal(&request(read, 56, 8, &[3]), &device), None);
    for (what, wrong) in [
        ("beyond the end", request(read, 57, 8, &[3])),
        ("no sectors", request(read, 0, 0, &[])),
        ("overflow", request(read, u64::MAX, 8, &[3])),
        ("no memory", request(read, 0, 8, &[])),
        ("a page too many", request(read, 0, 8, &[0, 1])),
        ("a page too few", request(read, 0, 16, &[0])),
        ("no such page", request(write, 0, 8, &[4])),
        ("no such page", request(write, 0, 16, &[u32::MAX, 0])),
        ("no such pool", Request { segments: Segments::default(), ..request(write, 0, 8, &[]) }),
        ("an offset that is no sector", Request { offset: 5, ..request(read, 0, 7, &[0]) }),
        ("an offset beyond the page", Request { offset: 4096, ..request(read, 0, 8, &[0, 1]) }),
        ("a flush of sectors", Request { sectors: 8, ..Request::flush() }),
        ("a discard with memory", request(Operation::Discard, 0, 8, &[0])),
    ] {
        assert_eq!(refusal(&wrong, &device), Some(Error::Invalid), "{what}");
    }
    let mut other_pool = Segments::default();
    assert!(other_pool.push(1, 0));
    let wrong = Request { segments: other_pool, ..request(read, 0, 8, &[]) };
    assert_eq!(refusal(&wrong, &device), Some(Error::Invalid));
    let read_only = Description { read_only: true, ..device };
    assert_eq!(refusal(&request(write, 0, 8, &[0]), &read_only), Some(Error::ReadOnly));
    assert_eq!(refusal(&request(Operation::Discard, 0, 8, &[]), &read_only), Some(Error::ReadOnly));
    let plain = Description { discard: 4, ..device };
    assert_eq!(refusal(&request(Operation::Discard, 0, 8, &[]), &plain), Some(Error::Unsupported));
    let large = Description { logical: 4096, ..device };
    assert_eq!(refusal(&request(read, 1, 8, &[0]), &large), Some(Error::Invalid));
    assert_eq!(refusal(&request(read, 8, 8, &[0]), &large), None);
}

#[test]
fn a_driver_that_answers_what_it_has_not_gets_no_more_requests() {
    for answer in [1, SLOTS as u64, u64::from(u32::MAX)] {
        let area = Area::default();
        let mut client = Client::new(&area);
        let ticket = client.issue(request(Operation::Read, 0, 8, &[0])).unwrap();
        Sender::new(&area.answers).send(answer);
        assert_eq!(client.take(), Some((ticket, Err(Error::Broken))));
        assert_eq!(client.take(), None);
        assert_eq!(client.issue(Request::flush()).unwrap_err(), Error::Broken);
    }
}

#[test]
fn a_driver_that_answers_twice_is_found_out() {
    let area = Area::default();
    let mut client = Client::new(&area);
    let first = client.issue(request(Operation::Read, 0, 8, &[0])).unwrap();
    let second = client.issue(request(Operation::Read, 0, 8, &[1])).unwrap();
    let mut sender = Sender::new(&area.answers);
    sender.send(0);
    sender.send(0);
    assert_eq!(client.take(), Some((first, Ok(()))));
    assert_eq!(client.take(), Some((second, Err(Error::Broken))));
}

#[test]
fn a_client_that_uses_a_slot_twice_or_one_that_is_none_is_not_served() {
    for slots in [&[0, 0][..], &[SLOTS as u64], &[u64::MAX]] {
        let area = Area::default();
        let mut driver = Driver::new(&area);
        area.slots[0].write(&request(Operation::Read, 0, 8, &[0]));
        let mut sender = Sender::new(&area.requests);
        slots.iter().for_each(|&slot| sender.send(slot));
        let (device, pools) = (description(64), pool(0, 4));
        let taken = core::iter::from_fn(|| driver.take(&device, &pools, 4096)).count();
        assert_eq!(taken, slots.len() - 1);
        sender.send(1);
        assert!(driver.take(&device, &pools, 4096).is_none() && !driver.sleep());
    }
}

proptest! {
    /// Whatever the client writes into the shared memory: the driver takes requests with memory in
    /// the client's pools only, and for sectors of the device, and never panics.
    #[test]
    fn no_words_lead_a_driver_to_other_memory(
        words in proptest::collection::vec((0usize..2, 0usize..35, any::<u64>(), any::<bool>()), 1..60),
        sent in proptest::collection::vec(0u64..3, 0..8),
    ) {
        let area = Area::default();
        let (mut driver, device) = (Driver::new(&area), description(1 << 20));
        let (start, pages) = (0x40_0000, 8);
        let pools = pool(start, pages);
        for &(slot, index, word, likely) in &words {
            let likely_word = match index {
                0 => word & 3 | (word >> 8 & 1) << 8,
                1 | 2 => word & 0x1f,
                _ => word & 0xf | (word >> 8 & 3) << 32,
            };
            area.slots[slot].set(index, if likely { likely_word } else { word });
        }
        let mut sender = Sender::new(&area.requests);
        sent.iter().for_each(|&slot| sender.send(slot));
        while let Some(job) = driver.take(&device, &pools, 1 << 16) {
            let memory: u64 = job.pieces.iter().map(|piece| piece.length).sum();
            let moves = job.operation.moves_data();
            prop_assert_eq!(memory, if moves { u64::from(job.sectors) * SECTOR } else { 0 });
            prop_assert!(job.sector + u64::from(job.sectors) <= device.sectors);
            for piece in &job.pieces {
                prop_assert!(piece.address >= start && piece.address + piece.length <= start + pages * PAGE);
            }
            driver.answer(job.slot, Ok(()));
        }
    }

    /// Whatever the driver writes into the shared memory: each request of the client ends once.
    #[test]
    fn no_words_of_a_driver_end_a_request_twice(answers in proptest::collection::vec(any::<(u64, bool)>(), 0..100)) {
        let area = Area::default();
        let mut client = Client::new(&area);
        let tickets: Vec<_> = (0..5).map(|_| client.issue(request(Operation::Read, 0, 8, &[0])).unwrap()).collect();
        let mut sender = Sender::new(&area.answers);
        let mut ended = Vec::new();
        for &(word, likely) in &answers {
            sender.send(if likely { word & 7 | word & 1 << 32 } else { word });
            ended.extend(core::iter::from_fn(|| client.take()).map(|(ticket, _)| ticket));
        }
        client.fail(Error::Gone);
        ended.extend(core::iter::from_fn(|| client.take()).map(|(ticket, _)| ticket));
        ended.sort();
        prop_assert_eq!(ended, tickets);
    }
}

#[test]
fn a_count_that_is_impossible_is_an_overflow() {
    let area = Area::default();
    let mut sender = Sender::new(&area.requests);
    (0..=SLOTS as u64).for_each(|word| sender.send(word));
    assert!(Receiver::new(&area.requests).receive().is_err());
}
