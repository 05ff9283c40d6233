//! Tests of strings in pieces that cross page boundaries in every way, with a page fault at each,
//! on one side and on both, with every form of transfer timeout (X.2 rules 1.16, 7.11, 7.22, 7.29).

use super::support::*;
use crate::framework::arena;
use crate::framework::fixture::{Space, spawn};
use crate::framework::tests;
use l4::ipc::{self, Message};
use l4::{thread, utcb};
use x2::message::StringDescriptor;
use x2::{IpcErrorKind, ThreadId, Time, Timeouts};

tests! {
    STB0001 [7.22, 7.29] "the sender's pieces fault at every page boundary that they begin, end or lie across" sender_faults;
    STB0002 [7.22, 7.29] "so do the receiver's" receiver_faults;
    STB0003 [7.22, 7.29] "both sides fault, each at boundaries of its own, in the same string" both_fault;
    STB0004 [1.16] "transfers with timeouts that are long enough go on after every fault" long_timeouts;
    STB0005 [1.16, 7.11] "a period ends the transfer at whichever page the sender's pager is silent about" silent_sender_period;
    STB0006 [1.16, 7.11] "so does a point" silent_sender_point;
    STB0007 [1.16, 7.11] "a period ends the transfer at whichever page the receiver's pager is silent about" silent_receiver_period;
    STB0008 [1.16, 7.11] "so does a point" silent_receiver_point;
    STB0009 [1.16, 7.11] "with timeout zero the transfer ends at whichever page of the sender is the first to be missing" zero_sender;
    STB0010 [1.16, 7.11] "or of the receiver" zero_receiver;
    STB0011 [7.22, 7.29] "a simple string of whole pages, from page to page, faults once at each on both sides" whole_pages;
    STB0012 [7.11, 5.27] "an abort at whichever page leaves all that came before it" aborted;
}

/// A piece of a string: the offset in its area, and the length.
type Piece = (u64, u64);

/// The pieces that are sent: the last byte of a page, the first of the next, one across a boundary,
/// a whole page with a byte on each side, a page, and some bytes in the middle of a page.
const SENT: [Piece; 6] =
    [(4095, 1), (4096, 1), (2 * 4096 - 7, 14), (3 * 4096 - 1, 4098), (5 * 4096, 4096), (7 * 4096 + 100, 50)];
/// The pieces of the buffer, whose boundaries are elsewhere in the string. The last one is longer
/// than needed.
const TAKEN: [Piece; 6] =
    [(10, 2000), (4096 - 5, 5), (4096, 3000), (3 * 4096 - 1000, 2000), (5 * 4096 - 1, 2), (6 * 4096, 4096)];
const LENGTH: u64 = length(&SENT);
/// How many pages each side uses.
const PAGES: usize = 7;
/// How long a finite timeout is, in microseconds.
const SHORT: u64 = 5000;

const fn length(pieces: &[Piece]) -> u64 {
    let mut sum = 0;
    let mut index = 0;
    while index < pieces.len() {
        sum += pieces[index].1;
        index += 1;
    }
    sum
}

/// The offset in the area of byte `index` of a string in these pieces.
fn place(pieces: &[Piece], index: u64) -> u64 {
    let mut index = index;
    for &(offset, size) in pieces {
        if index < size {
            return offset + index;
        }
        index -= size;
    }
    panic!("beyond the string");
}

/// A page that the transfer of a string reaches for the first time.
#[derive(Clone, Copy, Default)]
struct Met {
    /// The offset in the area at which the string reaches the page.
    offset: u64,
    /// How many bytes of the string are before this page.
    before: u64,
}

/// The pages that the first `LENGTH` bytes in these pieces reach, in order.
fn pages_met(pieces: &[Piece]) -> ([Met; 8], usize) {
    let (mut met, mut count, mut seen) = ([Met::default(); 8], 0, 0u64);
    for before in 0..LENGTH {
        let offset = place(pieces, before);
        if seen & 1 << (offset / 4096) == 0 {
            seen |= 1 << (offset / 4096);
            met[count] = Met { offset, before };
            count += 1;
        }
    }
    (met, count)
}

/// The words of a compound string, or buffer, of these pieces: a descriptor and a pointer for each.
fn words(area: Area, pieces: &[Piece; 6]) -> [u64; 12] {
    let mut words = [0; 12];
    for (index, (pair, &(offset, size))) in words.chunks_exact_mut(2).zip(pieces).enumerate() {
        let continues = index + 1 < pieces.len();
        pair.copy_from_slice(&[StringDescriptor::new(size, 1, continues).raw(), area.0 + offset]);
    }
    words
}

/// The conditions on one side of a transfer.
#[derive(Clone, Copy)]
struct Side {
    /// The pager of the side, which is in a space of its own if it has one.
    pager: Option<ThreadId>,
    /// Makes the side's transfer timeout, just before the transfer begins.
    limit: fn() -> Time,
    /// The number of pages of the side's memory that are present before the transfer.
    present: usize,
}

impl Side {
    const AT_HOME: Self = Self { pager: None, limit: never, present: 0 };

    fn paged_by(pager: ThreadId) -> Self {
        Self { pager: Some(pager), ..Self::AT_HOME }
    }

    fn start(self, body: impl FnOnce() + 'static) -> ThreadId {
        match self.pager {
            Some(pager) => Space::new().spawn_paged_by(pager, body),
            None => spawn(body),
        }
    }

    fn touch(self, area: Area, pieces: &[Piece]) {
        let (met, _) = pages_met(pieces);
        met[..self.present].iter().for_each(|met| {
            arena::read_at(area.0 + (met.offset & !7));
        });
    }
}

fn never() -> Time {
    Time::NEVER
}

fn zero() -> Time {
    Time::ZERO
}

fn period() -> Time {
    Time::period(SHORT)
}

fn point() -> Time {
    let now = thread::system_clock();
    Time::point(now, now + SHORT).expect("near")
}

/// Sends the string from `from` to `to`. Returns the error words of the sender and of the receiver.
fn transfer(from: Area, to: Area, sends: Side, takes: Side) -> [u64; 2] {
    let me = utcb::my_global_id();
    let (receiving, sending) = begin(me, from, to, sends, takes);
    ipc::send(receiving, Message::with_words(0, &[sending.raw()])).expect("it waits for that");
    results()
}

/// Starts both sides; the receiver waits for the id of the sender.
fn begin(me: ThreadId, from: Area, to: Area, sends: Side, takes: Side) -> (ThreadId, ThreadId) {
    let error = |result: ipc::Result<()>| result.map_or_else(|error| error.raw(), |()| 0);
    let receiving = takes.start(move || {
        let sender = ThreadId::from_raw(ipc::receive(me).expect("the sender's id").word(0));
        takes.touch(to, &TAKEN);
        accept(&words(to, &TAKEN));
        utcb::set_xfer_timeouts(Timeouts::new(Time::ZERO, (takes.limit)()));
        let result = error(ipc::receive(sender).map(drop));
        ipc::send(me, Message::with_words(2, &[result])).expect("the test waits");
    });
    let sending = sends.start(move || {
        sends.touch(from, &SENT);
        utcb::set_xfer_timeouts(Timeouts::new((sends.limit)(), Time::ZERO));
        let result = error(ipc::send(receiving, Message::new(4).typed_words(&words(from, &SENT))));
        ipc::send(me, Message::with_words(1, &[result])).expect("the test waits");
    });
    (receiving, sending)
}

/// The results that sender and receiver report.
fn results() -> [u64; 2] {
    let mut errors = [u64::MAX; 2];
    for _ in 0..2 {
        let told = ipc::wait().expect("both tell");
        errors[told.tag.label() as usize - 1] = told.word(0);
    }
    errors
}

/// Checks that `moved` bytes have arrived, and no more.
fn check(to: Area, moved: u64, seed: u64, old: u64) {
    for index in 0..LENGTH {
        let (offset, source) = (place(&TAKEN, index), place(&SENT, index));
        let expected = if index < moved { pattern(seed, source) } else { pattern(old, offset) };
        assert_eq!(to.read(offset), expected, "byte {index} of {LENGTH}, {moved} moved");
    }
}

/// Checks that the recorded faults, of writes or reads, are those of these pieces from page `first`
/// on.
fn check_faults(area: Area, pieces: &[Piece], write: bool, first: usize, count: usize) {
    let (met, pages) = pages_met(pieces);
    assert_eq!(pages, PAGES, "as the tests say");
    let noted = faults().filter(|fault| fault & 1 == u64::from(write) && fault & !0x7fff == area.0 & !0x7fff);
    let expected = met[first..first + count].iter();
    assert!(noted.eq(expected.map(|met| (area.0 + met.offset) & !1 | u64::from(write))));
}

fn sender_faults() {
    let (from, to) = (Area::new().fill(31), Area::new().fill(32));
    assert_eq!(transfer(from, to, Side::paged_by(pager(64)), Side::AT_HOME), [0, 0]);
    check(to, LENGTH, 31, 32);
    check_faults(from, &SENT, false, 0, PAGES);
}

fn receiver_faults() {
    let (from, to) = (Area::new().fill(33), Area::new().fill(34));
    assert_eq!(transfer(from, to, Side::AT_HOME, Side::paged_by(pager(64))), [0, 0]);
    check(to, LENGTH, 33, 34);
    check_faults(to, &TAKEN, true, 0, PAGES);
}

fn both_fault() {
    let (from, to) = (Area::new().fill(35), Area::new().fill(36));
    let pager = pager(64);
    assert_eq!(transfer(from, to, Side::paged_by(pager), Side::paged_by(pager)), [0, 0]);
    check(to, LENGTH, 35, 36);
    check_faults(from, &SENT, false, 0, PAGES);
    check_faults(to, &TAKEN, true, 0, PAGES);
}

fn long_period() -> Time {
    Time::period(20_000_000)
}

fn far_point() -> Time {
    let now = thread::system_clock();
    Time::point(now, now + 20_000_000).expect("near enough")
}

fn long_timeouts() {
    let (from, to) = (Area::new().fill(37), Area::new());
    let limits: [fn() -> Time; 2] = [long_period, far_point];
    for (sends, takes) in limits.into_iter().zip([far_point, long_period] as [fn() -> Time; 2]) {
        to.fill(38);
        let pager = pager(64);
        let sends = Side { limit: sends, ..Side::paged_by(pager) };
        let takes = Side { limit: takes, ..Side::paged_by(pager) };
        assert_eq!(transfer(from, to, sends, takes), [0, 0]);
        check(to, LENGTH, 37, 38);
        assert_eq!(faults().count(), 2 * PAGES);
    }
}

/// Makes transfers that end at each page of one side in turn, by this timeout, because the pager
/// does not answer.
fn silent(limit: fn() -> Time, sender: bool) {
    let (from, to) = (Area::new().fill(39), Area::new());
    let (met, pages) = pages_met(if sender { &SENT } else { &TAKEN });
    for (answered, met) in met[..pages].iter().enumerate() {
        to.fill(40);
        let faulting = Side { limit, ..Side::paged_by(pager(answered as u64)) };
        let (sends, takes) = if sender { (faulting, Side::AT_HOME) } else { (Side::AT_HOME, faulting) };
        let before = thread::system_clock();
        let errors = transfer(from, to, sends, takes);
        // A timeout to a point in time may expire up to one of its units early.
        assert!(thread::system_clock() - before >= SHORT - 32, "not before its time");
        assert_eq!(errors, expected(sender, met.before));
        check(to, met.before, 39, 40);
        let (area, pieces) = if sender { (from, &SENT) } else { (to, &TAKEN) };
        check_faults(area, pieces, !sender, 0, answered + 1);
    }
}

/// The error words if the timeout of the sender, or of the receiver, has ended the transfer.
fn expected(sender: bool, moved: u64) -> [u64; 2] {
    let (own, partners) = (IpcErrorKind::XferTimeoutOwn, IpcErrorKind::XferTimeoutPartner);
    let kinds = if sender { [own, partners] } else { [partners, own] };
    [send_error(kinds[0], moved).expect("an error").raw(), receive_error(kinds[1], moved)]
}

fn silent_sender_period() {
    silent(period, true);
}

fn silent_sender_point() {
    silent(point, true);
}

fn silent_receiver_period() {
    silent(period, false);
}

fn silent_receiver_point() {
    silent(point, false);
}

/// Makes transfers with a timeout of zero that end at each page of one side in turn, because the
/// pages from there on are missing.
fn impatient(sender: bool) {
    let (from, to) = (Area::new().fill(41), Area::new());
    let (met, pages) = pages_met(if sender { &SENT } else { &TAKEN });
    for present in 0..=pages {
        to.fill(42);
        let faulting = Side { limit: zero, present, ..Side::paged_by(pager(64)) };
        let (sends, takes) = if sender { (faulting, Side::AT_HOME) } else { (Side::AT_HOME, faulting) };
        let errors = transfer(from, to, sends, takes);
        let moved = met[..pages].get(present).map_or(LENGTH, |met| met.before);
        assert_eq!(errors, if present == pages { [0, 0] } else { expected(sender, moved) });
        check(to, moved, 41, 42);
        assert_eq!(faults().count(), present, "the pager is told of no fault of the transfer");
    }
}

fn zero_sender() {
    impatient(true);
}

fn zero_receiver() {
    impatient(false);
}

fn whole_pages() {
    const SIZE: u64 = 6 * 4096;
    let (from, to) = (Area::new().fill(43), Area::new());
    let me = utcb::my_global_id();
    let pager = pager(64);
    let receiving = Space::new().spawn_paged_by(pager, move || {
        let sender = ThreadId::from_raw(ipc::receive(me).expect("the sender's id").word(0));
        accept(&simple_words(to.0, SIZE));
        let arrived = ipc::receive(sender).is_ok();
        ipc::send(me, Message::with_words(1, &[arrived.into()])).expect("the test waits");
    });
    let sending = Space::new().spawn_paged_by(pager, move || {
        ipc::send(receiving, Message::new(1).typed_words(&simple_words(from.0, SIZE))).expect("it arrives");
    });
    ipc::send(receiving, Message::with_words(0, &[sending.raw()])).expect("it waits for that");
    assert_eq!(ipc::receive(receiving).expect("it tells").word(0), 1);
    to.check(0, SIZE, 43, 0);
    for (area, write) in [(from, 0), (to, 1)] {
        let noted = faults().filter(|fault| fault & 1 == write && fault & !0x7fff == area.0);
        assert!(noted.eq((0..6).map(|page| (area.0 + 4096 * page) | write)));
    }
}

fn aborted() {
    let (from, to) = (Area::new().fill(44), Area::new());
    let me = utcb::my_global_id();
    let (met, pages) = pages_met(&SENT);
    for (answered, met) in met[..pages].iter().enumerate() {
        to.fill(45);
        let sends = Side::paged_by(pager(answered as u64));
        let (receiving, sending) = begin(me, from, to, sends, Side::AT_HOME);
        ipc::send(receiving, Message::with_words(0, &[sending.raw()])).expect("it waits for that");
        while faults().count() < answered + 1 {
            ipc::sleep(Time::period(200));
        }
        // The receiver is in the test's space.
        thread::abort_ipc(receiving).expect("in reach");
        let aborted = IpcErrorKind::Aborted;
        let expected =
            [send_error(aborted, met.before).expect("an error").raw(), receive_error(aborted, met.before)];
        assert_eq!(results(), expected);
        check(to, met.before, 44, 45);
    }
}
