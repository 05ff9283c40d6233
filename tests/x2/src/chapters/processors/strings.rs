//! Tests of strings between processors, while pages are mapped and unmapped.
use super::place;
use crate::framework::arena;
use crate::framework::fixture::{Space, await_state, receive_as_pager, spawn};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{space, thread, utcb};
use x2::control::ThreadState;
use x2::message::StringDescriptor;
use x2::{Acceptor, Fpage, MapItem, Rights};

/// Makes the calling thread accept strings of up to `size` bytes into `buffer`, and nothing else.
fn accept_string(size: u64, buffer: u64) {
    // SAFETY: the buffers of these tests lie in the arena, which has no Rust objects; no mappings
    // are accepted.
    unsafe {
        utcb::accept(Acceptor::new(Fpage::NIL, true));
        utcb::set_buffer_register(1, StringDescriptor::new(size, 1, false).raw());
        utcb::set_buffer_register(2, buffer);
    }
}

fn string(address: u64, size: u64) -> [u64; 2] {
    [StringDescriptor::new(size, 1, false).raw(), address]
}

pub(super) fn strings() {
    const SIZE: usize = 20_000;
    let (source, target) = (arena::block(15), arena::block(15));
    let me = utcb::my_global_id();
    let receiver = place(
        spawn(move || {
            loop {
                accept_string(1 << 15, target);
                let got = ipc::receive(me).expect("the string arrives");
                utcb::accept_untyped_words();
                let sum = (0..SIZE as u64 / 8)
                    .fold(0u64, |sum, index| sum.rotate_left(1) ^ arena::read_at(target + 8 * index));
                ipc::send(me, Message::with_words(3, &[sum, got.tag.typed() as u64])).unwrap();
            }
        }),
        1,
    );
    for seed in 1..20u64 {
        let mut sum = 0u64;
        for index in 0..SIZE as u64 / 8 {
            let word = (index + 1).wrapping_mul(seed);
            arena::write_at(source + 8 * index, word);
            sum = sum.rotate_left(1) ^ word;
        }
        ipc::send(receiver, Message::new(1).typed_words(&string(source, SIZE as u64))).unwrap();
        let answer = ipc::receive(receiver).unwrap();
        assert_eq!((answer.word(0), answer.word(1)), (sum, 2), "seed {seed}");
    }
}

pub(super) fn string_faults() {
    const PAGES: u64 = 4;
    let block = arena::block(15);
    let me = utcb::my_global_id();
    for word in 0..PAGES * 512 {
        arena::write_at(block + 8 * word, word);
    }
    // The receiver's buffer has no page yet; the test, on the first processor, is its pager.
    let receiver = Space::new().spawn_paged_by(me, move || {
        accept_string(PAGES << 12, block + (PAGES << 12));
        let got = ipc::wait().expect("the string arrives");
        utcb::accept_untyped_words();
        let last = arena::read_at(block + ((2 * PAGES) << 12) - 8);
        ipc::send(got.from, Message::with_words(9, &[last])).unwrap();
        ipc::send(me, Message::with_words(9, &[last])).unwrap();
    });
    place(receiver, 1);
    let sender = place(
        spawn(move || {
            let words = string(block, PAGES << 12);
            let sent = ipc::call(receiver, Message::new(1).typed_words(&words)).expect("it arrives");
            assert_eq!(sent.word(0), PAGES * 512 - 1);
        }),
        2,
    );
    loop {
        let got = receive_as_pager(receiver).unwrap();
        if got.tag.label() == 9 {
            assert_eq!(got.word(0), PAGES * 512 - 1);
            break;
        }
        let address = got.word(0) & !0xfff;
        let item = MapItem::map(Fpage::memory(address, 12).with_rights(Rights::READ_WRITE), address);
        ipc::reply(receiver, Message::new(0).map_item(item)).unwrap();
    }
    await_state(sender, ThreadState::Waiting);
}

/// How many strings have come, and how many contained data that the sender had no longer when they
/// were copied.
static CAME: AtomicU64 = AtomicU64::new(0);
static SPOILT: AtomicU64 = AtomicU64::new(0);

/// Receives strings of one page for ever. All words of a string should be 0.
fn count_strings(buffer: u64) {
    loop {
        accept_string(1 << 12, buffer);
        let came = ipc::wait();
        utcb::accept_untyped_words();
        if came.is_ok() {
            let spoilt = (0..512).any(|word| arena::read_at(buffer + 8 * word) != 0);
            SPOILT.fetch_add(u64::from(spoilt), Ordering::Relaxed);
            CAME.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(super) fn string_of_lost_page() {
    const ROUNDS: u64 = 200;
    CAME.store(0, Ordering::Relaxed);
    SPOILT.store(0, Ordering::Relaxed);
    let (page, buffer) = (arena::page(), arena::block(12));
    let address = page.fpage(Rights::NONE).region().expect("memory").base;
    let receiver = place(spawn(move || count_strings(buffer)), 1);
    let send = move || {
        loop {
            let _ = ipc::send(receiver, Message::new(1).typed_words(&string(address, 1 << 12)));
        }
    };
    let sender = place(Space::new().spawn_paged_by(utcb::my_global_id(), send), 1);
    for round in 0..ROUNDS {
        let fault = receive_as_pager(sender).unwrap();
        assert_eq!(fault.word(0) & !0xfff, address, "round {round}");
        let before = CAME.load(Ordering::Relaxed);
        let item = MapItem::map(page.fpage(Rights::READ), address);
        ipc::reply(sender, Message::new(0).map_item(item)).unwrap();
        // Waits for some more strings, wherever the sender is.
        while CAME.load(Ordering::Relaxed) < before + 1 + round % 3 {
            // Lets other threads make progress under instruction counting.
            core::hint::spin_loop();
            thread::yield_now();
        }
        // Waits for a time that differs from round to round, without yielding: under instruction
        // counting, a yield would let another thread run.
        (0..round * 37 % 1000).for_each(|step| _ = core::hint::black_box(step));
        space::unmap_one(page.fpage(Rights::ALL));
        // No other space has the page now. If a copy were still in progress, from the first word to
        // the last, it would read these stores, which begin at the last word.
        (0..512).rev().for_each(|word| page.write(word, 1));
        (0..512).for_each(|word| page.write(word, 0));
    }
    assert_eq!(SPOILT.load(Ordering::Relaxed), 0, "strings with what the sender had no more");
}
