//! Tests of sigma0 (ABI 14; X.2 rules 12.4-12.6) by a client. The runner is the root task's first
//! thread, so the thread of a test is not one of root's to sigma0, which answers it only if it
//! serves all threads (`sigma0=open`).

use crate::framework::arena;
use crate::framework::tests;
use l4::ipc::{self, Message};
use l4::{kip, utcb};
use x2::protocol::{self, sigma0};
use x2::{Acceptor, Fpage, IpcErrorKind, MessageTag, Rights, Time, Timeouts};

tests! {
    SIG0001 [12.4] "any memory of a size is given, and given once" any_memory;
    SIG0002 [12.4] "memory that another thread owns is refused" foreign_memory;
    SIG0003 [12.4, 12.5] "kernel memory is refused, by request and by page fault" kernel_memory;
    SIG0004 [12.4, 12.5] "device memory is shared" shared_memory;
    SIG0005 [12.6] "malformed messages get no answer" malformed;
    SIG0006 [12.6] "sigma0 survives senders that do not wait for its answer" deserters;
    SIG0007 [9.4] "memory comes with the attributes asked for; with wrong ones it is refused" attributes;
}

/// Requests `fpage` of sigma0. Returns what it gave; nilpage if it refused.
fn ask(fpage: Fpage) -> Fpage {
    ask_with(fpage, 0)
}

fn ask_with(fpage: Fpage, attributes: u64) -> Fpage {
    // SAFETY: the memory that these tests request lies outside of this program.
    unsafe { utcb::accept(Acceptor::COMPLETE) };
    let message = Message::with_words(sigma0::REQUEST_TAG.label(), &[fpage.raw(), attributes]);
    let answer =
        ipc::call_timeouts(kip().sigma0(), message, Timeouts::new(Time::NEVER, Time::period(300_000)));
    utcb::accept_untyped_words();
    match answer {
        Ok(answer) => answer.map_item(0).expect("a map item").fpage,
        Err(_) => crate::framework::failure::skip("needs a sigma0 with sigma0=open on its command line"),
    }
}

fn any_memory() {
    let (first, second) = (ask(sigma0::any(12)), ask(sigma0::any(16)));
    let (first, second) = (first.region().unwrap(), second.region().unwrap());
    assert_eq!((first.size_log2, second.size_log2), (12, 16));
    assert!(!first.overlaps(second));
    for region in [first, second] {
        arena::write_at(region.last() - 7, 0x1234);
        assert_eq!(arena::read_at(region.last() - 7), 0x1234);
    }
    assert!(ask(sigma0::any(60)).is_nil());
}

fn foreign_memory() {
    let page = arena::page();
    assert!(ask(page.fpage(Rights::ALL)).is_nil(), "that is the root task's");
    assert!(ask(Fpage::memory(0xf0_0000, 12)).is_nil(), "that is sigma0's");
    assert!(ask(Fpage::COMPLETE).is_nil());
    assert!(ask(Fpage::NIL).is_nil());
}

fn kernel_memory() {
    assert!(!ask(sigma0::any(12)).is_nil());
    let mut reserved = kip()
        .memory_descriptors()
        .filter(|memory| !memory.is_virtual && memory.kind == x2::kip::MemoryKind::Reserved);
    assert!(reserved.clone().count() > 0);
    assert!(reserved.all(|memory| ask(Fpage::memory(memory.low, 12)).is_nil()));
    let image = kip()
        .memory_descriptors()
        .find(|memory| memory.kind == x2::kip::MemoryKind::Reserved && !memory.is_virtual)
        .unwrap();
    let fault = Message::with_words(protocol::page_fault_tag(Rights::READ).label(), &[image.low, 0x1000]);
    let answer = ipc::call(kip().sigma0(), fault).expect("an answer");
    assert!(answer.map_item(0).unwrap().fpage.is_nil());
}

fn shared_memory() {
    // The page has video memory of a PC.
    let page = Fpage::memory(0xb_8000, 12);
    assert_eq!(ask(page).region(), page.region());
    let me = utcb::my_global_id();
    let other = crate::framework::fixture::spawn(move || {
        assert_eq!(ask(page).region(), page.region());
        ipc::send(me, Message::new(1)).unwrap();
    });
    ipc::receive(other).unwrap();
}

fn malformed() {
    assert!(!ask(sigma0::any(12)).is_nil());
    let page = Fpage::memory(0x300_0000, 12).raw();
    for tag in [
        MessageTag::new(protocol::label(protocol::SIGMA0_RPC, 0), 1, 0),
        MessageTag::new(protocol::label(protocol::SIGMA0_RPC, 0), 4, 0),
        MessageTag::new(0x1230, 2, 0),
        MessageTag::new(protocol::label(protocol::SIGMA0_EXTENDED, 0), 2, 0),
        MessageTag::EMPTY,
    ] {
        utcb::set_message_register(1, page);
        utcb::set_message_register(2, 0);
        let timeouts = Timeouts::new(Time::NEVER, Time::period(2000));
        let result = ipc::ipc(kip().sigma0(), kip().sigma0(), timeouts, tag);
        assert_eq!(result.unwrap_err().kind, IpcErrorKind::Timeout, "{tag:?}");
    }
    assert!(!ask(sigma0::any(12)).is_nil());
}

fn deserters() {
    assert!(!ask(sigma0::any(12)).is_nil());
    for _ in 0..100 {
        let message = Message::with_words(sigma0::REQUEST_TAG.label(), &[sigma0::any(12).raw(), 0]);
        ipc::send(kip().sigma0(), message).expect("sigma0 receives");
    }
    assert!(!ask(sigma0::any(12)).is_nil());
}

fn attributes() {
    for attribute in [0, 1, 2, 5, 6, 7] {
        let region = ask_with(sigma0::any(12), attribute).region().expect("a page");
        arena::write_at(region.base, 0x55 + attribute);
        assert_eq!(arena::read_at(region.base), 0x55 + attribute);
        // The page is never freed, so no later test gets it with this memory type.
        assert!(!ask_with(Fpage::memory(region.base, 12), 7).is_nil());
    }
    for attribute in [3, 4, 8, u64::MAX] {
        assert!(ask_with(sigma0::any(12), attribute).is_nil(), "{attribute}");
    }
}
