//! Clients and drivers that break the rules.

use super::*;
use crate::client::{Client, Refused};
use crate::head::Head;
use crate::words::Word;
use crate::{MOST_PIECES, SHORTEST};
use proptest::prelude::*;
use ring::lane::Sender;

#[test]
fn a_client_that_breaks_the_rules_is_not_served() {
    let word = |buffer, length, more| Word { buffer, length, more }.raw();
    let long: Vec<u64> = (0..=MOST_PIECES).map(|buffer| word(buffer, 1000, true)).collect();
    for (what, words) in [
        ("no such buffer", &[word(BUFFERS, 100, false)][..]),
        ("a buffer twice", &[word(0, 100, true), word(0, 100, false)]),
        ("too short", &[word(0, HEAD + SHORTEST - 1, false)]),
        ("a head in two pieces", &[word(0, 8, true), word(1, 100, false)]),
        ("an empty piece", &[word(0, 100, true), word(1, 0, false)]),
        ("a piece beyond its buffer", &[word(0, BUFFER + 1, false)]),
        ("too many pieces", &long),
        ("other bits", &[u64::MAX]),
    ] {
        let area = Area::default();
        let mut driver = Driver::new(&area, pages());
        let mut sender = Sender::new(&area.to_send);
        words.iter().for_each(|&word| sender.send(word));
        assert_eq!(driver.take(), None, "{what}");
        sender.send(word(9, 100, false));
        Sender::new(&area.to_fill).send(word(0, 0, false));
        assert!(driver.take().is_none() && driver.take_empty().is_none() && !driver.sleep(), "{what}");
    }
    for buffers in [&[0, 0][..], &[BUFFERS]] {
        let area = Area::default();
        let mut driver = Driver::new(&area, pages());
        let mut sender = Sender::new(&area.to_fill);
        buffers.iter().for_each(|&buffer| sender.send(word(buffer, 0, false)));
        let taken = core::iter::from_fn(|| driver.take_empty()).count();
        assert_eq!((taken, driver.sleep()), (buffers.len() - 1, false));
    }
}

#[test]
fn a_driver_that_breaks_the_rules_gets_no_more_frames() {
    let word = |buffer, length| Word { buffer, length, more: false }.raw();
    for sent in [word(1, 0), word(BUFFERS, 0), u64::MAX] {
        let (memory, area) = (Memory::new(), Area::default());
        let mut client = Client::new(memory.buffers());
        client.restart(&area);
        // The frame has the buffers 0 and 1.
        client.send(&Head::default(), &[1; 3000]).unwrap();
        Sender::new(&area.sent).send(sent);
        while client.send(&Head::default(), &[1; 3000]) == Ok(()) {}
        assert_eq!(client.send(&Head::default(), &[1; 3000]), Err(Refused::Gone));
        assert!(client.is_gone());
    }
    for filled in [&[word(3, 100), word(3, 100)][..], &[word(BUFFERS, 100)], &[word(0, BUFFER + 1)]] {
        let (memory, area) = (Memory::new(), Area::default());
        let mut client = Client::new(memory.buffers());
        client.restart(&area);
        // The driver answers before the client could give it buffer 3 again.
        let mut sender = Sender::new(&area.filled);
        let address = pages().buffer(3);
        memory.set(address + 10, 2);
        filled.iter().for_each(|&word| sender.send(word));
        assert!(client.receive(&mut Vec::new()).is_none() && client.is_gone());
    }
}

#[test]
fn what_the_device_calls_a_frame_need_not_be_one() {
    for (pieces, length, is_frame) in [
        (1, HEAD + SHORTEST, true),
        (1, HEAD + SHORTEST - 1, false),
        (1, HEAD - 1, false),
        (1, 0, false),
        (0, 1000, false),
        (MOST_PIECES + 1, 1000, false),
    ] {
        let (memory, area) = (Memory::new(), Area::default());
        let mut client = Client::new(memory.buffers());
        client.restart(&area);
        let mut driver = Driver::new(&area, pages());
        let (buffer, piece) = driver.take_empty().unwrap();
        memory.set(piece.address + 10, pieces as u8);
        driver.filled(buffer, length);
        let received = client.receive(&mut Vec::new());
        assert_eq!(received.is_some(), is_frame, "{pieces} {length}");
        // The buffer is used again.
        let again: Vec<_> = core::iter::from_fn(|| driver.take_empty()).collect();
        assert!(again.len() == BUFFERS && again[BUFFERS - 1] == (buffer, piece) && !client.is_gone());
    }
}

#[test]
fn pools_that_are_not_made_of_pages_are_refused() {
    assert!(Pages::find(|offset| Ok::<_, ()>((offset + 8, 1 << 30))).unwrap().is_none());
    assert!(Pages::find(|offset| Ok::<_, ()>((offset, 4095))).unwrap().is_none());
    assert_eq!(Pages::find(|_| Err::<(u64, u64), _>(7)).map(drop), Err(7));
}

proptest! {
    /// Whatever a client writes: the driver's pieces are in the client's buffers, and no buffer is
    /// with the device twice.
    #[test]
    fn no_words_lead_a_driver_to_other_memory(
        words in proptest::collection::vec((any::<bool>(), 0usize..BUFFERS + 2, 0usize..BUFFER + 2, any::<bool>()), 1..100),
    ) {
        let area = Area::default();
        let mut driver = Driver::new(&area, pages());
        let (mut to_send, mut to_fill) = (Sender::new(&area.to_send), Sender::new(&area.to_fill));
        let mut addresses = Vec::new();
        for (sends, buffer, length, more) in words {
            let word = Word { buffer, length, more }.raw();
            if sends { to_send.send(word) } else { to_fill.send(word) }
            if let Some(frame) = driver.take() {
                prop_assert!(frame.pieces.len() <= MOST_PIECES);
                addresses.extend(frame.pieces.iter().map(|piece| (piece.address, piece.length)));
            }
            addresses.extend(driver.take_empty().map(|(_, piece)| (piece.address, piece.length)));
        }
        let inside = |&(address, length): &(u64, usize)| {
            length <= BUFFER && Memory::offset(address).is_multiple_of(BUFFER) && address >= BASE
        };
        prop_assert!(addresses.iter().all(inside));
        let mut buffers: Vec<u64> = addresses.iter().map(|&(address, _)| address).collect();
        buffers.sort_unstable();
        buffers.dedup();
        prop_assert_eq!(buffers.len(), addresses.len());
    }

    /// Whatever a driver and a device write: the client does not panic, and each of its calls ends.
    #[test]
    fn no_words_of_a_driver_stop_a_client(
        steps in proptest::collection::vec((0u8..5, any::<u64>(), any::<bool>()), 1..100),
    ) {
        let (memory, area) = (Memory::new(), Area::default());
        let mut client = Client::new(memory.buffers());
        client.restart(&area);
        let (mut sent, mut filled) = (Sender::new(&area.sent), Sender::new(&area.filled));
        for (step, word, plausible) in steps {
            let word = if plausible {
                Word { buffer: word as usize % BUFFERS, length: (word >> 8) as usize % BUFFER, more: false }.raw()
            } else {
                word
            };
            match step {
                0 => sent.send(word),
                1 => filled.send(word),
                2 => memory.0[word as usize % (ALL_WORDS / 2)].store(word, Ordering::Relaxed),
                3 => {
                    let _ = client.send(&Head::default(), &frame(word as u8, 14 + word as usize % 5000));
                }
                _ => {
                    let mut frame = Vec::new();
                    if client.receive(&mut frame).is_some() {
                        prop_assert!(frame.len() >= SHORTEST);
                    }
                    let _ = client.sleep_to_receive() | client.sleep_to_send();
                }
            }
        }
    }
}
