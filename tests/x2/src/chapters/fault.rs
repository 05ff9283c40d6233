//! Tests of page faults (ABI 13; X.2 rules 5.34, 12.2, 12.3).

use crate::framework::arena::{self, read_at, write_at};
use crate::framework::fixture::{
    Space, await_state, call_as_pager, image_fault_answer, new_id, receive_as_pager,
};
use crate::framework::tests;
use l4::ipc::{self, Message, Received};
use l4::{kip, thread, utcb};
use x2::control::ThreadState;
use x2::protocol::{self, page_fault_tag};
use x2::{Acceptor, Fpage, MapItem, Rights, ThreadId};

tests! {
    FLT0001 [12.2, 12.3, ABI 13] "a read fault tells label, address and instruction, and goes on with the mapping" read_fault;
    FLT0002 [12.2] "a write fault tells that it was a write" write_fault;
    FLT0003 [12.3] "a reply without a mapping lets the thread fault again" reply_without_mapping;
    FLT0004 [12.3, 13.3] "a fault leaves message registers, acceptor and error word alone" fault_preserves_utcb;
    FLT0005 [7.34] "writing to a page mapped for reading faults, and mapping it again adds the right" write_to_read_only;
    FLT0006 [5.34] "the thread of a pager that does not exist is halted" no_pager;
    FLT0007 [12.3] "a pager can grant the page" granting_pager;
    FLT0008 [6.6] "writing to the kernel interface page faults and cannot be allowed" write_to_kip;
    FLT0009 [10.9] "an address of the kernel's faults like an unmapped one" kernel_address;
    FLT0010 [12.2, ABI 19.14] "code on a page without execute right faults with that access" execute_fault;
    FLT0011 [12.3] "the window of a fault is the whole space" window_is_complete;
    FLT0012 [5.34, 5.15] "deleting a pager that owes the reply halts the thread" pager_deleted;
    FLT0013 [5.31ab] "an aborted page fault comes again, and the thread's words are as they were" aborted;
}

/// An address at which nothing is mapped in a space that a test has made.
const FAR: u64 = 0x4000_0000_0000;

/// Answers `fault` with `message`, and receives the thread's next message that is not a fault on
/// the program.
fn answer(fault: Received, message: Message) -> Received {
    call_as_pager(fault.from, message)
}

fn page_at(page: arena::Page, address: u64, rights: Rights) -> Message {
    Message::new(0).map_item(MapItem::map(page.fpage(rights), address))
}

/// Makes a thread in a new space that reads the word at `address` and sends it to this thread, its
/// pager.
fn reader(address: u64) -> ThreadId {
    let me = utcb::my_global_id();
    Space::new().spawn_paged_by(me, move || {
        let value = read_at(address);
        ipc::send(me, Message::with_words(1, &[value])).expect("the test waits");
    })
}

fn expect_fault(received: Received, access: Rights, address: u64) {
    assert_eq!(received.tag, page_fault_tag(access));
    assert_eq!(received.word(0), address);
    assert!(crate::framework::image::range().contains(&received.word(1)), "IP {:#x}", received.word(1));
}

fn read_fault() {
    let page = arena::page();
    page.write(3, 0xfeed);
    let thread = reader(FAR + 24);
    let fault = receive_as_pager(thread).unwrap();
    assert_eq!(fault.from, thread);
    expect_fault(fault, Rights::READ, FAR + 24);
    let result = answer(fault, page_at(page, FAR, Rights::READ));
    assert_eq!((result.tag.label(), result.word(0)), (1, 0xfeed));
}

fn write_fault() {
    let page = arena::page();
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        write_at(FAR + 0xff8, 0xbeef);
        ipc::send(me, Message::new(1)).unwrap();
    });
    let fault = receive_as_pager(thread).unwrap();
    expect_fault(fault, Rights::WRITE, FAR + 0xff8);
    assert_eq!(answer(fault, page_at(page, FAR, Rights::READ_WRITE)).tag.label(), 1);
    assert_eq!(page.read(511), 0xbeef);
}

fn reply_without_mapping() {
    let page = arena::page();
    page.write(0, 7);
    let mut fault = receive_as_pager(reader(FAR)).unwrap();
    for _ in 0..3 {
        fault = answer(fault, Message::with_words(0, &[1, 2, 3]));
        expect_fault(fault, Rights::READ, FAR);
        fault = answer(fault, Message::new(0).map_item(MapItem::map(Fpage::NIL, 0)));
        expect_fault(fault, Rights::READ, FAR);
    }
    assert_eq!(answer(fault, page_at(page, FAR, Rights::READ)).word(0), 7);
}

fn fault_preserves_utcb() {
    let page = arena::page();
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        (0..64).for_each(|index| utcb::set_message_register(index, 0x9000 + index as u64));
        let acceptor = Acceptor::new(Fpage::memory(FAR, 16), true);
        // SAFETY: no Rust object lies in the window.
        unsafe { utcb::accept(acceptor) };
        utcb::set_error_word(0x55);
        utcb::set_virtual_sender(ThreadId::interrupt(77));
        read_at(FAR);
        (0..64).for_each(|index| assert_eq!(utcb::message_register(index), 0x9000 + index as u64));
        assert_eq!(utcb::buffer_register(0), acceptor.raw());
        assert_eq!(utcb::error_word(), 0x55);
        assert_eq!(utcb::actual_sender(), ThreadId::interrupt(77));
        ipc::send(me, Message::new(1)).unwrap();
    });
    let fault = receive_as_pager(thread).unwrap();
    assert_eq!(fault.word(0), FAR);
    let message = page_at(page, FAR, Rights::READ);
    assert_eq!(answer(fault, message).tag.label(), 1);
}

fn aborted() {
    let page = arena::page();
    page.write(0, 6);
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        (0..64).for_each(|index| utcb::set_message_register(index, 0x9000 + index as u64));
        utcb::set_error_word(0x55);
        let value = read_at(FAR);
        (0..64).for_each(|index| assert_eq!(utcb::message_register(index), 0x9000 + index as u64));
        assert_eq!(utcb::error_word(), 0x55, "no error is shown");
        ipc::send(me, Message::with_words(1, &[value])).unwrap();
    });
    let mut fault = receive_as_pager(thread).unwrap();
    for _ in 0..3 {
        expect_fault(fault, Rights::READ, FAR);
        assert!(thread::abort_ipc(thread).expect("its pager is in this space").state.receiving);
        fault = receive_as_pager(thread).unwrap();
    }
    let told = answer(fault, page_at(page, FAR, Rights::READ));
    assert_eq!((told.tag.label(), told.word(0)), (1, 6));
}

fn write_to_read_only() {
    let page = arena::page();
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        read_at(FAR);
        write_at(FAR, 5);
        ipc::send(me, Message::new(1)).unwrap();
    });
    let fault = receive_as_pager(thread).unwrap();
    expect_fault(fault, Rights::READ, FAR);
    let fault = answer(fault, page_at(page, FAR, Rights::READ));
    expect_fault(fault, Rights::WRITE, FAR);
    assert_eq!(page.read(0), 0);
    assert_eq!(answer(fault, page_at(page, FAR, Rights::READ_WRITE)).tag.label(), 1);
    assert_eq!(page.read(0), 5);
}

fn no_pager() {
    for pager in [ThreadId::NIL, new_id(), ThreadId::ANY] {
        let thread = crate::framework::fixture::spawn(move || {
            utcb::set_pager(pager);
            read_at(FAR);
        });
        await_state(thread, ThreadState::Inactive);
        let seen = thread::inspect(thread).expect("the thread exists");
        assert!(seen.state.halted, "pager {pager:?}");
    }
}

fn granting_pager() {
    let page = arena::page();
    page.write(0, 9);
    let fault = receive_as_pager(reader(FAR)).unwrap();
    let item = MapItem::grant(page.fpage(Rights::READ_WRITE), FAR);
    assert_eq!(answer(fault, Message::new(0).map_item(item)).word(0), 9);
}

fn write_to_kip() {
    let page = arena::page();
    let me = utcb::my_global_id();
    let base = kip().base();
    let thread = Space::new().spawn_paged_by(me, move || write_at(base + 8, 1));
    let fault = receive_as_pager(thread).unwrap();
    expect_fault(fault, Rights::WRITE, base + 8);
    let fault = answer(fault, page_at(page, base, Rights::ALL));
    expect_fault(fault, Rights::WRITE, base + 8);
    assert_eq!(kip().word(x2::kip::API_VERSION), x2::kip::API_VERSION_VALUE);
}

fn kernel_address() {
    let page = arena::page();
    for address in [0xffff_8000_0000_0000, 0xffff_ffff_8080_0000, 0xffff_ffff_ffff_fff8, (1 << 47) - 4096] {
        let fault = receive_as_pager(reader(address)).unwrap();
        expect_fault(fault, Rights::READ, address);
        let fault = answer(fault, page_at(page, address, Rights::ALL));
        expect_fault(fault, Rights::READ, address);
    }
}

fn execute_fault() {
    if !kip().page_info().rights().contains(Rights::EXECUTE) {
        crate::framework::failure::skip("this processor cannot forbid execution");
    }
    let page = arena::page();
    // The instruction `ret`.
    page.write(0, 0xc3);
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        // SAFETY: the page holds a return instruction.
        unsafe { core::arch::asm!("call {}", in(reg) FAR) };
        ipc::send(me, Message::new(1)).unwrap();
    });
    let fault = receive_as_pager(thread).unwrap();
    assert_eq!(protocol::of(fault.tag), protocol::PAGE_FAULT);
    let fault = answer(fault, page_at(page, FAR, Rights::READ));
    assert_eq!((fault.tag, fault.word(0), fault.word(1)), (page_fault_tag(Rights::EXECUTE), FAR, FAR));
    assert_eq!(answer(fault, page_at(page, FAR, Rights::READ_EXECUTE)).tag.label(), 1);
}

fn window_is_complete() {
    let page = arena::page();
    page.write(0, 3);
    let fault = receive_as_pager(reader(FAR)).unwrap();
    // A mapping at another address than that of the fault is allowed, but the fault is repeated.
    let fault = answer(fault, page_at(page, FAR + 0x10_0000, Rights::READ));
    expect_fault(fault, Rights::READ, FAR);
    assert_eq!(answer(fault, page_at(page, FAR, Rights::READ)).word(0), 3);
}

fn pager_deleted() {
    let pager = crate::framework::fixture::spawn(|| {
        let mut received = ipc::wait().expect("a fault");
        while let Some(message) = image_fault_answer(received) {
            received = ipc::reply_wait(received.from, message).expect("a fault");
        }
        // The fault is received and never answered.
        l4::start::halt()
    });
    let thread = Space::new().spawn_paged_by(pager, || {
        read_at(FAR);
    });
    // The pager sleeps in an IPC of its own only after it has received the fault.
    await_state(pager, ThreadState::Waiting);
    while thread::inspect(thread).is_err() {
        thread::yield_now();
    }
    while !thread::inspect(thread).expect("its pager is in this space").state.receiving {
        thread::yield_now();
    }
    thread::delete(pager).unwrap();
    await_state(thread, ThreadState::Inactive);
}
