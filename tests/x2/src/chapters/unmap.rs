//! Tests of Unmap: revocation, flush, status (ABI 12.6; X.2 rules 8.1-8.8).

use super::map::Worker;
use crate::framework::arena::{self, Page, read_at, write_at};
use crate::framework::fixture::{Space, call_as_pager, receive_as_pager};
use crate::framework::tests;
use l4::ipc::{self, Message};
use l4::{kip, space, utcb};
use x2::protocol::page_fault_tag;
use x2::{Fpage, MapItem, Rights, ThreadId};

tests! {
    UNM0001 [8.2d, 8.3] "unmap takes a page from the spaces that got it and leaves it here" unmap_takes_from_children;
    UNM0002 [8.3] "unmap of the write right leaves the page readable" revoke_write;
    UNM0003 [8.3] "unmap reaches the mappings of mappings" unmap_is_recursive;
    UNM0004 [8.2d] "flush takes the page from this space too" flush_takes_own;
    UNM0005 [8.3] "unmap without rights only reads the status" status_only;
    UNM0006 [8.5, 8.6] "the status tells reading from writing, and is reset by reading it" status_bits;
    UNM0007 [8.2a] "64 fpages in one call are all done" many_fpages;
    UNM0008 [8.2c, 8.8] "nil and unusable fpages come back without status" unusable_fpages;
    UNM0009 [6.6, 8.8] "kernel interface page and UTCBs are not affected" protected_areas;
    UNM0010 [8.4] "unmapping a page of a large mapping leaves the rest" page_of_large;
    UNM0011 [8.3] "a page of which a child lost the last right faults there" fault_after_unmap;
    UNM0012 [7.40] "a deep chain of mappings is revoked from its root" deep_chain;
    UNM0013 [7.40] "a page mapped to many spaces is revoked in all" wide_fan_out;
    UNM0014 [7.34, 8.2d] "a space that has flushed the right to write from its own page gets it again by a fault" own_right_again;
    UNM0015 [8.2b] "a thread without privileges takes back what it has mapped" without_privileges;
}

const FAR: u64 = 0x4000_0000_0000;

/// Makes a thread in a new space, paged by this thread, that reads (or writes) the word at [`FAR`]
/// whenever it is told to.
fn toucher(write: bool) -> ThreadId {
    let me = utcb::my_global_id();
    Space::new().spawn_paged_by(me, move || {
        loop {
            if write {
                write_at(FAR, 1)
            } else {
                drop_value(read_at(FAR))
            };
            ipc::call(me, Message::new(1)).expect("the test answers");
        }
    })
}

fn drop_value(_: u64) {}

/// Makes the thread access its page once more. If that faults, maps `page` with `rights`. Returns
/// whether it faulted.
fn faults(thread: ThreadId, page: Page, rights: Rights, access: Rights) -> bool {
    let received = call_as_pager(thread, Message::new(0));
    if received.tag.label() == 1 {
        return false;
    }
    assert_eq!((received.tag, received.word(0)), (page_fault_tag(access), FAR));
    let item = MapItem::map(page.fpage(rights), FAR);
    assert_eq!(call_as_pager(thread, Message::new(0).map_item(item)).tag.label(), 1);
    true
}

/// Serves the first page fault of a new thread of this kind by `page`.
fn give(thread: ThreadId, page: Page, rights: Rights) {
    let fault = receive_as_pager(thread).expect("its first fault");
    assert_eq!(fault.word(0), FAR);
    let item = MapItem::map(page.fpage(rights), FAR);
    assert_eq!(call_as_pager(thread, Message::new(0).map_item(item)).tag.label(), 1);
}

fn unmap_takes_from_children() {
    let page = arena::page();
    let thread = toucher(false);
    give(thread, page, Rights::READ_WRITE);
    assert!(!faults(thread, page, Rights::READ_WRITE, Rights::READ));
    space::unmap_one(page.fpage(Rights::ALL));
    page.write(0, 1);
    assert!(faults(thread, page, Rights::READ_WRITE, Rights::READ));
}

fn revoke_write() {
    let page = arena::page();
    let (reader, writer) = (toucher(false), toucher(true));
    give(reader, page, Rights::READ_WRITE);
    give(writer, page, Rights::READ_WRITE);
    space::unmap_one(page.fpage(Rights::WRITE));
    assert!(!faults(reader, page, Rights::READ_WRITE, Rights::READ));
    assert!(faults(writer, page, Rights::READ_WRITE, Rights::WRITE));
}

fn unmap_is_recursive() {
    let page = arena::page();
    page.write(0, 3);
    let workers: [Worker; 3] = core::array::from_fn(|_| Worker::new());
    let window = super::map::WINDOW;
    let first = workers[0].take_in_window(MapItem::map(page.fpage(Rights::READ), 0));
    assert!(!first.is_nil());
    let item = MapItem::map(Fpage::memory(window, 12).with_rights(Rights::READ), 0);
    workers[0].map_to(workers[1], item);
    assert_eq!(workers[1].read(window), 3);
    space::unmap_one(page.fpage(Rights::ALL));
    // The second worker's page is unmapped, so it can map nothing to the third, which keeps the
    // page that it had.
    let other = arena::page();
    other.write(0, 9);
    workers[2].take_in_window(MapItem::map(other.fpage(Rights::READ), 0));
    workers[1].map_to(workers[2], item);
    assert_eq!(workers[2].read(window), 9);
}

fn without_privileges() {
    let page = arena::page();
    page.write(0, 3);
    let [first, second, third]: [Worker; 3] = core::array::from_fn(|_| Worker::new());
    let window = super::map::WINDOW;
    first.take_in_window(MapItem::map(page.fpage(Rights::READ), 0));
    let item = MapItem::map(Fpage::memory(window, 12).with_rights(Rights::READ), 0);
    first.map_to(second, item);
    assert_eq!(second.read(window), 3);
    let all = Fpage::memory(window, 12).with_rights(Rights::ALL);
    assert!(first.unmap(all).rights().contains(Rights::READ), "it was read");
    // The second worker has no page that it could map any more; the third keeps the page that it
    // had.
    let other = arena::page();
    other.write(0, 9);
    third.take_in_window(MapItem::map(other.fpage(Rights::READ), 0));
    second.map_to(third, item);
    assert_eq!((third.read(window), first.read(window)), (9, 3));
}

fn flush_takes_own() {
    let page = arena::page();
    page.write(0, 3);
    let worker = Worker::new();
    // SAFETY: the page is used as words only; the runner gets it from sigma0 again when this thread
    // faults.
    unsafe { space::flush(&mut [page.fpage(Rights::ALL)]) };
    let delivered = worker.take_in_window(MapItem::map(page.fpage(Rights::READ), 0));
    assert!(delivered.is_nil(), "a flushed page cannot be mapped");
    assert_eq!(page.read(0), 3);
    assert!(!worker.take_in_window(MapItem::map(page.fpage(Rights::READ), 0)).is_nil());
}

fn own_right_again() {
    let (page, child) = (arena::page(), toucher(true));
    give(child, page, Rights::READ_WRITE);
    // SAFETY: the page stays readable; the runner writes there, too, when this thread faults.
    unsafe { space::flush(&mut [page.fpage(Rights::WRITE)]) };
    let worker = Worker::new();
    let delivered = worker.take_in_window(MapItem::map(page.fpage(Rights::READ_WRITE), 0));
    assert_eq!(delivered.rights(), Rights::READ, "what it has not it cannot give");
    page.write(1, 4);
    assert_eq!([page.read(0), page.read(1)], [1, 4], "nothing is lost");
    let delivered = worker.take_in_window(MapItem::map(page.fpage(Rights::READ_WRITE), 0));
    assert_eq!(delivered.rights(), Rights::READ_WRITE);
    assert!(faults(child, page, Rights::READ_WRITE, Rights::WRITE), "what was derived has lost it for good");
}

fn status_only() {
    let page = arena::page();
    let thread = toucher(false);
    give(thread, page, Rights::READ_WRITE);
    assert!(space::unmap_one(page.fpage(Rights::NONE)).rights().contains(Rights::READ));
    assert!(!faults(thread, page, Rights::READ_WRITE, Rights::READ));
}

/// The status bits for reading and writing; the processor does not distinguish execution from
/// reading.
fn status(page: Page) -> Rights {
    space::unmap_one(page.fpage(Rights::NONE)).rights().and(Rights::READ_WRITE)
}

fn status_bits() {
    let page = arena::page();
    let (reader, writer) = (toucher(false), toucher(true));
    give(reader, page, Rights::READ_WRITE);
    give(writer, page, Rights::READ_WRITE);
    status(page);
    assert_eq!(status(page), Rights::NONE);
    assert!(!faults(reader, page, Rights::ALL, Rights::READ));
    assert_eq!(status(page), Rights::READ);
    assert_eq!(status(page), Rights::NONE);
    assert!(!faults(writer, page, Rights::ALL, Rights::WRITE));
    assert_eq!(status(page), Rights::READ_WRITE);
    page.write(0, 1);
    assert_eq!(status(page), Rights::READ_WRITE, "the own mapping counts");
    assert_eq!(status(page), Rights::NONE);
}

fn many_fpages() {
    let pages: [Page; 64] = core::array::from_fn(|_| arena::page());
    let mut fpages = pages.map(|page| page.fpage(Rights::NONE));
    space::unmap(&mut fpages);
    for (index, page) in pages.into_iter().enumerate() {
        if index % 3 == 0 {
            page.write(0, 1);
        }
    }
    let mut fpages = pages.map(|page| page.fpage(Rights::NONE));
    space::unmap(&mut fpages);
    for (index, (fpage, page)) in fpages.into_iter().zip(pages).enumerate() {
        assert_eq!(fpage.region(), page.fpage(Rights::NONE).region());
        assert_eq!(fpage.rights().contains(Rights::WRITE), index % 3 == 0, "page {index}");
    }
}

fn unusable_fpages() {
    for raw in [0x7, 0x1000 | 5 << 4 | 7, 0x1000 | 11 << 4 | 2] {
        assert_eq!(space::unmap_one(Fpage::from_raw(raw)).raw(), raw & !7);
    }
}

fn protected_areas() {
    for area in [kip().base(), crate::framework::fixture::root_utcb_area()] {
        let mut fpages = [Fpage::memory(area, 12).with_rights(Rights::ALL)];
        // SAFETY: these pages cannot be flushed.
        unsafe { space::flush(&mut fpages) };
        assert_eq!(fpages[0], Fpage::memory(area, 12));
    }
    assert_eq!(kip().word(x2::kip::MAGIC), x2::kip::MAGIC_VALUE);
}

fn page_of_large() {
    let worker = Worker::new();
    let window = super::map::WINDOW;
    let block = arena::block(21);
    Page { address: block + 0x6000 }.write(0, 6);
    let fpage = Fpage::memory(block, 21).with_rights(Rights::READ_WRITE);
    worker.take_in_window(MapItem::map(fpage, 0));
    space::unmap_one(Fpage::memory(block + 0x5000, 12).with_rights(Rights::ALL));
    assert_eq!(worker.read(window + 0x6000), 6);
    assert_eq!(worker.read(window), 0);
}

fn fault_after_unmap() {
    let page = arena::page();
    let thread = toucher(true);
    give(thread, page, Rights::READ_WRITE);
    for _ in 0..20 {
        space::unmap_one(page.fpage(Rights::READ));
        assert!(faults(thread, page, Rights::READ_WRITE, Rights::WRITE));
        assert!(!faults(thread, page, Rights::READ_WRITE, Rights::WRITE));
    }
}

fn deep_chain() {
    const DEPTH: usize = 24;
    let page = arena::page();
    page.write(0, 8);
    let window = super::map::WINDOW;
    let chain: [Worker; DEPTH] = core::array::from_fn(|_| Worker::new());
    chain[0].take_in_window(MapItem::map(page.fpage(Rights::READ), 0));
    let item = MapItem::map(Fpage::memory(window, 12).with_rights(Rights::READ), 0);
    for pair in chain.windows(2) {
        pair[0].map_to(pair[1], item);
        assert_eq!(pair[1].read(window), 8);
    }
    space::unmap_one(page.fpage(Rights::ALL));
    let (last, probe) = (chain[DEPTH - 1], Worker::new());
    let other = arena::page();
    other.write(0, 1);
    probe.take_in_window(MapItem::map(other.fpage(Rights::READ), 0));
    last.map_to(probe, item);
    assert_eq!(probe.read(window), 1, "the end of the chain has nothing any more");
}

fn wide_fan_out() {
    const WIDTH: usize = 32;
    let page = arena::page();
    let threads: [ThreadId; WIDTH] = core::array::from_fn(|_| toucher(false));
    for thread in threads {
        give(thread, page, Rights::READ);
    }
    space::unmap_one(page.fpage(Rights::ALL));
    for thread in threads {
        assert!(faults(thread, page, Rights::READ, Rights::READ));
    }
}
