//! Tests of the console's driver, whose port sends back what it is sent, and of its parts.

use crate::report::Report;
use alloc::vec::Vec;
use console::client::{self, Console, SERIAL};
use l4::ipc;
use l4::utcb;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use rt::root::share::{self, Share};
use rt::root::{Status, names};

/// The address at which areas are mapped.
const AREA: u64 = 0x5000_0000;
const BITS: u64 = 1 << 7;

pub(crate) fn test() -> ! {
    let mut report = Report::plan(6);
    shares(&mut report);
    let me = utcb::my_global_id();
    let opened = client::open("console", SERIAL, AREA, me, BITS);
    report.test(opened.is_ok(), "CON0001", "the console is opened");
    let again = client::open("console", SERIAL, AREA + (1 << 20), me, BITS).map(drop);
    report.test(again == Err(Status::InUse), "CON0002", "it has one client");
    let other = client::open("console", SERIAL + 1, AREA + (2 << 20), me, BITS).map(drop);
    report.test(other == Err(Status::NotFound), "CON0006", "it is one console");
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let sent: Vec<u8> = (0..20_000u32).map(|number| (number * 7 + number / 251) as u8).collect();
    let intact = opened.is_ok_and(|console| echoed(console, &sent) == sent);
    report.test(intact, "CON0003", "more than the rings hold goes out and comes back, every byte in order");
    l4::start::halt()
}

/// The bytes that come back when `bytes` are sent.
fn echoed(console: Console, bytes: &[u8]) -> Vec<u8> {
    let Console { mut output, mut input, .. } = console;
    let mut left = bytes;
    let mut got = Vec::new();
    let mut buffer = [0; 512];
    while got.len() < bytes.len() && input.lost() == 0 {
        // No more bytes are sent at a time than the ring of input can hold.
        let most = left.len().min(4000 - (bytes.len() - left.len() - got.len()));
        let written = output.write(&left[..most]);
        left = &left[written..];
        let count = input.read(&mut buffer);
        got.extend_from_slice(&buffer[..count]);
        output.wait();
        if written == 0 && count == 0 && !(most > 0 && output.has_room()) {
            let told = ipc::wait();
            if !told.is_ok_and(|told| told.tag.label() == NOTIFICATION_LABEL && told.word(0) == BITS) {
                break;
            }
        }
    }
    if output.is_drained() { got } else { Vec::new() }
}

fn shares(report: &mut Report) {
    let console = names::lookup_wait("console").unwrap_or(l4::x2::ThreadId::NIL);
    let wrong = [
        share::create(AREA, 4096, utcb::my_global_id()),
        share::create(AREA, 4096, utcb::pager()),
        share::create(AREA, 4097, console),
        share::create(AREA, 2 << 20, console),
        share::create(AREA, 0, console),
        share::create(AREA + 1, 4096, console),
    ];
    let refused = wrong.iter().all(|&result| result == Err(Status::InvalidArgument));
    report.test(
        refused,
        "ROOT0340",
        "a share of a wrong size, at a wrong address or with a wrong partner is refused",
    );
    let far = AREA + (16 << 20);
    let made: Vec<_> = (0..13).map(|index| share::create(far + index * 4096, 4096, console)).collect();
    let not_mine =
        made.iter().flatten().all(|&made| share::map(made, far + (1 << 20)) == Err(Status::NotFound));
    let unknown = share::map(Share::from_word(9999), far + (1 << 20)) == Err(Status::NotFound);
    let all = made.iter().all(Result::is_ok);
    report.test(
        all && not_mine && unknown,
        "ROOT0341",
        "what is shared is mapped by the partner and nobody else",
    );
}
