//! Tests of the driver of a source of random bytes.

use crate::report::Report;
use alloc::vec::Vec;
use l4::x2::Time;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::{ipc, utcb};
use rt::root::Status;
use virtio_rng::area::RING;
use virtio_rng::client::{self, Entropy};

/// The address at which areas are mapped.
const AREA: u64 = 0x5000_0000;
const BITS: u64 = 1 << 7;
/// How many bytes are read at a time, and how often.
const PIECE: usize = 32;
const PIECES: usize = 20 * RING / PIECE;

/// The main function of the client.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(3);
    let me = utcb::my_global_id();
    let opened = client::open("entropy", AREA, me, BITS);
    report.test(opened.is_ok(), "ENT0001", "the source is opened");
    let again = client::open("entropy", AREA + (1 << 20), me, BITS).map(drop);
    report.test(again == Err(Status::InUse), "ENT0002", "the source has one client");
    let are_random = opened.is_ok_and(|mut source| are_random(&read(&mut source)));
    report.test(are_random, "ENT0003", "more bytes than the ring holds come, and they are random");
    l4::start::halt()
}

/// How often root starts a driver again.
const RESTARTS: usize = 5;
/// How long the client waits before it looks again.
const LOOK: Time = Time::period(10_000);

/// The main function of a client of a driver that ends again and again.
pub(crate) fn test_ends() -> ! {
    let mut report = Report::plan(2);
    let me = utcb::my_global_id();
    let mut source = client::open("entropy", AREA, me, BITS).expect("there is a source");
    let (mut pieces, mut ends) = (Vec::new(), 0);
    while pieces.len() < PIECES {
        let mut piece = [0; PIECE];
        if source.read(&mut piece) {
            pieces.push(piece);
            continue;
        }
        ipc::sleep(LOOK);
        if source.has_ended() && source.open_again("entropy", me, BITS).is_ok() {
            ends += 1;
        }
    }
    report.test(ends == RESTARTS, "ENT0006", "the client goes on with each driver that is started again");
    report.test(are_random(&pieces), "ENT0007", "no bytes come twice");
    l4::start::halt()
}

/// The main function of a client without a source.
pub(crate) fn test_without() -> ! {
    let mut report = Report::plan(1);
    let opened = client::open("entropy", AREA, utcb::my_global_id(), BITS).map(drop);
    report.test(opened == Err(Status::NotFound), "ENT0004", "without the device there is no source");
    l4::start::halt()
}

/// Reads [`PIECES`] pieces, or less if the driver ends.
fn read(source: &mut Entropy) -> Vec<[u8; PIECE]> {
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let mut pieces = Vec::new();
    while pieces.len() < PIECES {
        let mut piece = [0; PIECE];
        if source.read(&mut piece) {
            pieces.push(piece);
            continue;
        }
        let told = ipc::wait();
        if !told.is_ok_and(|told| told.tag.label() == NOTIFICATION_LABEL && told.word(0) == BITS) {
            break;
        }
    }
    pieces
}

/// Whether there are all pieces, no two are the same, and about half of their bits are set.
fn are_random(pieces: &[[u8; PIECE]]) -> bool {
    let ones: u32 = pieces.iter().flatten().map(|byte| byte.count_ones()).sum();
    let bits = (8 * PIECE * PIECES) as u32;
    let mut sorted = pieces.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    // The deviation of a fair source is 101 of 40960 bits: a tenth of them is never reached.
    sorted.len() == PIECES && (bits * 45 / 100..bits * 55 / 100).contains(&ones)
}
