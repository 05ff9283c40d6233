//! Tests of map and grant items (ABI 8, 9; X.2 rules 7.32-7.41).

use crate::framework::arena::{self, Page, read_at, write_at};
use crate::framework::fixture::{Space, receive_as_pager};
use crate::framework::tests;
use l4::ipc::{self, Message};
use l4::{kip, utcb};
use x2::{Acceptor, Fpage, IpcErrorKind, MapItem, MessageTag, Rights, ThreadId};

tests! {
    MAP0001 [7.32] "a page mapped into a window is the same memory" same_memory;
    MAP0002 [7.32] "the send base places a small fpage in a large window" small_into_large;
    MAP0003 [7.32] "the send base selects a part of a fpage larger than the window" large_into_small;
    MAP0004 [7.38] "the receiver sees what was mapped, and where" delivered_item;
    MAP0005 [7.34, ABI 19.3] "a mapping never has more rights than its sender has" rights_are_limited;
    MAP0006 [7.35] "a nil item, a nil window and unusable sizes map nothing and are no error" nothing_to_map;
    MAP0007 [7.26a] "several items in one message are all mapped" several_items;
    MAP0008 [7.39] "a granted page leaves its granter" grant_moves;
    MAP0009 [7.37] "mapping another page over a page replaces it" overmapping;
    MAP0010 [7.32] "2 MiB of memory are mapped by one item" large_pages;
    MAP0011 [7.32] "a page of a large mapping can be mapped on" page_of_large;
    MAP0012 [7.36] "what the sender does not have stays what it was" holes;
    MAP0013 [7.35] "an item within one space does nothing" within_one_space;
    MAP0014 [6.6, 7.35] "kernel interface page and UTCBs cannot be mapped, nor mapped over" protected_areas;
    MAP0015 [7.35] "an item for a receiver that takes no items is no error" acceptor_of_words;
    MAP0016 [7.13] "a typed item of no known type is a message overflow for both" unknown_item;
    MAP0017 [7.26a] "untyped words before the items arrive too" words_and_items;
}

/// The address at which spaces made by tests receive mappings.
pub(crate) const WINDOW: u64 = 0x1234_0000_0000;
const WINDOW_FPAGE: Fpage = Fpage::memory(WINDOW, 30);

/// Orders for a worker: the label is the operation, the words are its arguments.
const RECEIVE: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 3;
const MAP: u64 = 4;
const UNMAP: u64 = 5;

/// A worker: a thread in a space of its own that changes its memory as this thread orders.
#[derive(Clone, Copy)]
pub(crate) struct Worker(pub(crate) ThreadId);

impl Worker {
    /// A worker in a new space; faults on unmapped memory end the test.
    pub(crate) fn new() -> Self {
        Self::in_space(&Space::new())
    }

    pub(crate) fn in_space(space: &Space) -> Self {
        let master = utcb::my_global_id();
        Self(space.spawn(move || work(master)))
    }

    fn order(self, label: u64, words: &[u64]) -> ipc::Received {
        ipc::call(self.0, Message::with_words(label, words)).expect("the worker answers")
    }

    /// Makes the worker accept `acceptor` in its next IPC, and sends it the items. Returns the tag
    /// and the fpage of the first item that it got.
    pub(crate) fn take(self, acceptor: Acceptor, items: &[MapItem]) -> (MessageTag, Fpage) {
        self.order(RECEIVE, &[acceptor.raw()]);
        let message = items.iter().fold(Message::new(0), |message, &item| message.map_item(item));
        let received = ipc::call(self.0, message).expect("the worker takes the items");
        (MessageTag::from_raw(received.word(0)), Fpage::from_raw(received.word(1)))
    }

    /// Maps `item` to the worker at `WINDOW` + the item's send base.
    pub(crate) fn take_in_window(self, item: MapItem) -> Fpage {
        self.take(Acceptor::new(WINDOW_FPAGE, false), &[item]).1
    }

    pub(crate) fn read(self, address: u64) -> u64 {
        self.order(READ, &[address]).word(0)
    }

    pub(crate) fn write(self, address: u64, value: u64) {
        self.order(WRITE, &[address, value]);
    }

    /// Makes the worker unmap `fpage`. Returns the result of Unmap.
    pub(crate) fn unmap(self, fpage: Fpage) -> Fpage {
        Fpage::from_raw(self.order(UNMAP, &[fpage.raw()]).word(0))
    }

    /// Makes the worker send `item` to another worker, which receives it in its window.
    pub(crate) fn map_to(self, other: Worker, item: MapItem) {
        other.order(RECEIVE, &[Acceptor::new(WINDOW_FPAGE, false).raw()]);
        let [base, fpage] = item.to_words(false);
        self.order(MAP, &[other.0.raw(), base, fpage]);
    }
}

fn work(master: ThreadId) {
    let mut order = ipc::receive(master).expect("an order");
    loop {
        let word = |index| order.word(index);
        let answer = match order.tag.label() {
            RECEIVE => receive_items(master, Acceptor::from_raw(word(0))),
            READ => Some(Message::with_words(0, &[read_at(word(0))])),
            WRITE => {
                write_at(word(0), word(1));
                Some(Message::new(0))
            }
            MAP => {
                let (to, words) = (ThreadId::from_raw(word(0)), [word(1), word(2)]);
                let item = MapItem::from_words(words).expect("an item");
                ipc::call(to, Message::new(0).map_item(item)).expect("the other worker takes it");
                Some(Message::new(0))
            }
            UNMAP => {
                let told = l4::space::unmap_one(Fpage::from_raw(word(0)));
                Some(Message::with_words(0, &[told.raw()]))
            }
            label => panic!("no such order: {label}"),
        };
        order = match answer {
            Some(answer) => ipc::call(master, answer).expect("an order"),
            None => ipc::receive(master).expect("an order"),
        };
    }
}

/// Answers the order, then receives items from any thread and reports the tag and the first item's
/// fpage to their sender; to the master by returning the report.
fn receive_items(master: ThreadId, acceptor: Acceptor) -> Option<Message> {
    // SAFETY: no Rust object lies in the windows of these tests.
    unsafe { utcb::accept(acceptor) };
    ipc::send(master, Message::new(0)).expect("the master waits");
    let received = ipc::wait().expect("items");
    utcb::accept_untyped_words();
    let fpage = received.map_item(0).map_or(0, |item| item.fpage.raw());
    let report = Message::with_words(0, &[received.tag.raw(), fpage]);
    if received.from == master {
        return Some(report);
    }
    ipc::send(received.from, report).expect("the sender waits");
    None
}

fn map(page: Page, rights: Rights, offset: u64) -> MapItem {
    MapItem::map(page.fpage(rights), offset)
}

fn same_memory() {
    let worker = Worker::new();
    let page = arena::page();
    worker.take_in_window(map(page, Rights::READ_WRITE, 0));
    page.write(1, 11);
    assert_eq!(worker.read(WINDOW + 8), 11);
    worker.write(WINDOW + 16, 22);
    assert_eq!(page.read(2), 22);
}

fn small_into_large() {
    let worker = Worker::new();
    let page = arena::page();
    page.write(0, 5);
    for (base, offset) in
        [(0x5000, 0x5000), (WINDOW + 0x7000, 0x7000), (1 << 30 | 0x9000, 0x9000), (0xb400, 0xb000)]
    {
        worker.take_in_window(map(page, Rights::READ, base));
        assert_eq!(worker.read(WINDOW + offset), 5, "send base {base:#x}");
    }
}

fn large_into_small() {
    let worker = Worker::new();
    let block = arena::block(16);
    for index in 0..16 {
        Page { address: block + index * 4096 }.write(0, index);
    }
    let item = MapItem::map(Fpage::memory(block, 16).with_rights(Rights::READ), 0x123_6000);
    let window = Fpage::memory(WINDOW + 0x3000, 12);
    let (_, delivered) = worker.take(Acceptor::new(window, false), &[item]);
    assert_eq!(delivered, window.with_rights(Rights::READ));
    assert_eq!(worker.read(WINDOW + 0x3000), 6);
}

fn delivered_item() {
    let worker = Worker::new();
    let page = arena::page();
    let delivered = worker.take_in_window(map(page, Rights::READ, 0x4000));
    assert_eq!(delivered, Fpage::memory(WINDOW + 0x4000, 12).with_rights(Rights::READ));
}

fn rights_are_limited() {
    let page = arena::page();
    let space = Space::new();
    let (first, second) = (Worker::new(), Worker::in_space(&space));
    first.take_in_window(map(page, Rights::READ, 0));
    let all = Fpage::memory(WINDOW, 12).with_rights(Rights::ALL);
    first.map_to(second, MapItem::map(all, 0));
    assert_eq!(second.read(WINDOW), 0);
    // Writing there must fault: the writer's pager is this thread, which sees it.
    let writer = space.spawn_paged_by(utcb::my_global_id(), || write_at(WINDOW, 1));
    let fault = receive_as_pager(writer).unwrap();
    assert_eq!(fault.tag, x2::protocol::page_fault_tag(Rights::WRITE));
    assert_eq!(fault.word(0), WINDOW);
    assert_eq!(page.read(0), 0);
}

fn nothing_to_map() {
    let worker = Worker::new();
    let page = arena::page();
    let window = Acceptor::new(WINDOW_FPAGE, false);
    let unusable = Fpage::from_raw(page.address | 5 << 4 | 7);
    for (acceptor, fpage) in [
        (window, Fpage::NIL),
        (window, unusable),
        (window, page.fpage(Rights::NONE)),
        (Acceptor::new(unusable, false), page.fpage(Rights::ALL)),
        (window, Fpage::memory(WINDOW, 12).with_rights(Rights::ALL)),
    ] {
        let (tag, delivered) = worker.take(acceptor, &[MapItem::map(fpage, 0)]);
        assert_eq!(tag, MessageTag::new(0, 0, 2), "{fpage:?}");
        assert!(delivered.is_nil(), "{fpage:?} gives {delivered:?}");
    }
}

fn several_items() {
    let worker = Worker::new();
    let pages: [Page; 20] = core::array::from_fn(|index| {
        let page = arena::page();
        page.write(0, 100 + index as u64);
        page
    });
    let items =
        core::array::from_fn::<_, 20, _>(|index| map(pages[index], Rights::READ, index as u64 * 0x2000));
    let (tag, _) = worker.take(Acceptor::new(WINDOW_FPAGE, false), &items);
    assert_eq!(tag, MessageTag::new(0, 0, 40));
    for index in 0..20 {
        assert_eq!(worker.read(WINDOW + index * 0x2000), 100 + index);
    }
}

fn grant_moves() {
    let page = arena::page();
    let (first, second) = (Worker::new(), Worker::new());
    page.write(0, 77);
    first.take_in_window(map(page, Rights::READ_WRITE, 0));
    first.map_to(second, MapItem::grant(Fpage::memory(WINDOW, 12).with_rights(Rights::READ_WRITE), 0x3000));
    assert_eq!(second.read(WINDOW + 0x3000), 77);
    // The granter cannot map from a page that it has granted away.
    let third = Worker::new();
    third.take_in_window(map(arena::page(), Rights::READ, 0x3000));
    first.map_to(third, MapItem::map(Fpage::memory(WINDOW, 12).with_rights(Rights::READ), 0x3000));
    assert_eq!(third.read(WINDOW + 0x3000), 0, "nothing came from the granter");
    // The grantee's page was mapped from one of this space's: revoking it here also removes it
    // there.
    l4::space::unmap_one(page.fpage(Rights::ALL));
    second.take_in_window(map(arena::page(), Rights::READ, 0x3000));
    assert_eq!(second.read(WINDOW + 0x3000), 0);
}

fn overmapping() {
    let worker = Worker::new();
    let (first, second) = (arena::page(), arena::page());
    first.write(0, 1);
    second.write(0, 2);
    worker.take_in_window(map(first, Rights::READ_WRITE, 0));
    assert_eq!(worker.read(WINDOW), 1);
    worker.take_in_window(map(second, Rights::READ_WRITE, 0));
    assert_eq!(worker.read(WINDOW), 2);
    worker.take_in_window(map(first, Rights::READ_WRITE, 0));
    assert_eq!(worker.read(WINDOW), 1);
}

fn large_pages() {
    let worker = Worker::new();
    let block = arena::block(21);
    for offset in (0..1 << 21).step_by(4096) {
        Page { address: block + offset }.write(0, offset);
    }
    let fpage = Fpage::memory(block, 21).with_rights(Rights::READ_WRITE);
    let delivered = worker.take_in_window(MapItem::map(fpage, 1 << 21));
    assert_eq!(delivered, Fpage::memory(WINDOW + (1 << 21), 21).with_rights(Rights::READ_WRITE));
    for offset in (0..1 << 21).step_by(0x1f000) {
        assert_eq!(worker.read(WINDOW + (1 << 21) + (offset & !0xfff)), offset & !0xfff);
    }
}

fn page_of_large() {
    let (first, second) = (Worker::new(), Worker::new());
    let block = arena::block(21);
    Page { address: block + 0x5000 }.write(0, 55);
    let fpage = Fpage::memory(block, 21).with_rights(Rights::READ_WRITE);
    first.take_in_window(MapItem::map(fpage, 0));
    let page = Fpage::memory(WINDOW + 0x5000, 12).with_rights(Rights::READ);
    first.map_to(second, MapItem::map(page, 0x8000));
    assert_eq!(second.read(WINDOW + 0x8000), 55);
    assert_eq!(first.read(WINDOW + 0x5000), 55);
}

fn holes() {
    let (first, second) = (Worker::new(), Worker::new());
    let (here, there) = (arena::page(), arena::page());
    here.write(0, 1);
    there.write(0, 2);
    first.take_in_window(map(here, Rights::READ, 0x1000));
    second.take_in_window(map(there, Rights::READ, 0));
    // The first worker has only the second of these two pages.
    let both = Fpage::memory(WINDOW, 13).with_rights(Rights::READ);
    first.map_to(second, MapItem::map(both, 0));
    assert_eq!(second.read(WINDOW + 0x1000), 1);
    assert_eq!(second.read(WINDOW), 2);
}

fn within_one_space() {
    let me = utcb::my_global_id();
    let page = arena::page();
    page.write(0, 1);
    let other = arena::page();
    other.write(0, 2);
    let sender = crate::framework::fixture::spawn(move || {
        let item = MapItem::map(page.fpage(Rights::ALL), other.address);
        ipc::send(me, Message::new(0).map_item(item)).unwrap();
    });
    // SAFETY: the window is one page of the arena, used as words only.
    unsafe { utcb::accept(Acceptor::new(other.fpage(Rights::NONE), false)) };
    let received = ipc::receive(sender).expect("no error");
    assert!(received.map_item(0).unwrap().fpage.is_nil());
    assert_eq!(other.read(0), 2);
}

fn protected_areas() {
    let worker = Worker::new();
    let page = arena::page();
    // Pages over the worker's kernel interface page and its UTCBs are not mapped: otherwise it
    // would not answer any more.
    let utcbs = crate::framework::fixture::root_utcb_area();
    for area in [kip().base(), utcbs] {
        let window = Acceptor::new(Fpage::memory(area, 12), false);
        let (tag, delivered) = worker.take(window, &[map(page, Rights::ALL, area)]);
        assert_eq!((tag, delivered.is_nil()), (MessageTag::new(0, 0, 2), true), "{area:#x}");
    }
    assert_eq!(worker.read(kip().base() + 8), x2::kip::API_VERSION_VALUE);
    // Pages of this space's kernel interface page and UTCBs cannot be mapped to others.
    for area in [kip().base(), utcbs] {
        let item = MapItem::map(Fpage::memory(area, 12).with_rights(Rights::ALL), 0);
        assert!(worker.take_in_window(item).is_nil(), "{area:#x}");
    }
}

fn acceptor_of_words() {
    let worker = Worker::new();
    let (tag, delivered) = worker.take(Acceptor::UNTYPED_WORDS, &[map(arena::page(), Rights::ALL, 0)]);
    assert_eq!(tag, MessageTag::new(0, 0, 2));
    assert!(delivered.is_nil());
}

fn unknown_item() {
    for kind in [0xc, 0xe] {
        let me = utcb::my_global_id();
        let receiver = Space::new().spawn(move || {
            let error = ipc::receive(me).expect_err("the item is of no known type");
            assert_eq!((error.phase, error.kind), (x2::IpcPhase::Receive, IpcErrorKind::MessageOverflow));
            ipc::send(me, Message::new(1)).unwrap();
        });
        let message = Message::with_words(0, &[5]).typed_words(&[kind, 0]);
        let error = ipc::send(receiver, message).expect_err("the item is of no known type");
        assert_eq!((error.phase, error.kind), (x2::IpcPhase::Send, IpcErrorKind::MessageOverflow));
        ipc::receive(receiver).unwrap();
    }
}

fn words_and_items() {
    let me = utcb::my_global_id();
    let page = arena::page();
    page.write(0, 4);
    let receiver = Space::new().spawn(move || {
        // SAFETY: no Rust object lies in the window.
        unsafe { utcb::accept(Acceptor::new(WINDOW_FPAGE, false)) };
        let received = ipc::receive(me).unwrap();
        let words = [received.word(0), received.word(1), read_at(WINDOW)];
        ipc::send(me, Message::with_words(0, &words)).unwrap();
    });
    let message = Message::with_words(0, &[1, 2]).map_item(map(page, Rights::READ, 0));
    let answer = ipc::call(receiver, message).unwrap();
    assert_eq!([answer.word(0), answer.word(1), answer.word(2)], [1, 2, 4]);
}
