//! Tests of running out of kernel memory: each allocation of each operation is made to fail. The
//! operation must return an error, and the kernel must have as much in use as before
//! (docs/src/architecture.md, K4).

use super::map::Worker;
use crate::framework::arena;
use crate::framework::fixture::{Space, activate, kip_area, new_id, root_utcb_area, spawn};
use crate::framework::leaks::{self, InUse};
use crate::framework::tests;
use l4::console::fail_kernel_allocation;
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{kip, space};
use x2::{Acceptor, ErrorCode, Fpage, IpcErrorKind, MapItem, Rights, ThreadId};

tests! {
    EXH0001 [EXT 9.1, 5.4ab] "creating a space fails with error 8 or not at all" create_space;
    EXH0002 [EXT 9.1] "configuring a space fails with error 8 or not at all" configure_space;
    EXH0003 [EXT 9.1, 5.4ab] "activating a thread fails with error 8 or not at all" activate_thread;
    EXH0004 [EXT 9.1, 7.13] "a map item that runs out ends with error 4 for both, and can be sent again" map_item;
    EXH0005 [EXT 9.1] "Unmap of a page of a large mapping does not fail" unmap_part;
    EXH0006 [EXT 9.1] "a program that uses up kernel memory leaves enough to the initial servers" reserve;
}

/// The addresses at which the program that uses up all memory maps pages, each of which needs a
/// page table.
const LARGE_WINDOW: Fpage = Fpage::memory(1 << 40, LARGE_WINDOW_LOG2);
const LARGE_WINDOW_LOG2: u32 = 37;

const NO_MEMORY: Option<ErrorCode> = Some(ErrorCode::NoMemory);

/// Calls `operation` with its first, its second, ... allocation failing, until none fails any more.
/// A failed call must free all kernel memory that it has allocated. `undo` takes back what the
/// successful call did. Returns how many calls failed.
fn fail_each<T>(mut operation: impl FnMut() -> thread::Result<T>, mut undo: impl FnMut(T)) -> u64 {
    leaks::require();
    // In the first run, objects are made that are made once and kept.
    undo(operation().expect("with memory it works"));
    for nth in 1..1000 {
        let before = InUse::now();
        fail_kernel_allocation(nth);
        let result = operation();
        let failed = !fail_kernel_allocation(0);
        match result {
            Ok(done) => {
                undo(done);
                if !failed {
                    return nth - 1;
                }
            }
            Err(error) => {
                assert!(failed, "no allocation failed, yet {error:?}");
                assert_eq!(error, NO_MEMORY, "allocation {nth}");
                let lost = before.leaked(InUse::now());
                assert!(lost.is_none(), "allocation {nth}: lost {lost:?}");
            }
        }
    }
    panic!("an operation does not allocate a thousand times");
}

fn create(id: ThreadId) -> thread::Result<()> {
    thread::control(
        id,
        ThreadControl { space: id, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None },
    )
}

fn delete(id: ThreadId) {
    thread::delete(id).expect("deletion never fails");
}

fn create_space() {
    let id = new_id();
    let failures = fail_each(|| create(id), |()| delete(id));
    assert!(failures >= 2, "a thread and a space at least, not {failures}");
}

fn configure_space() {
    let id = new_id();
    let area = Fpage::memory(root_utcb_area(), 18);
    let configure = || {
        let result = space::control(id, 0, kip_area(), area, ThreadId::ANY);
        result.map(drop)
    };
    create(id).unwrap();
    let failures = fail_each(configure, |()| {
        delete(id);
        create(id).unwrap();
    });
    assert!(failures >= 1, "page tables for the kernel interface page, not {failures}");
}

fn activate_thread() {
    let space = Space::new();
    let id = new_id();
    let failures = fail_each(|| activate(id, space.first, space.utcb_area + 0x2000), |()| delete(id));
    assert!(failures >= 2, "a thread and a UTCB at least, not {failures}");
}

fn map_item() {
    leaks::require();
    let page = arena::page();
    page.write(0, 7);
    let me = l4::utcb::my_global_id();
    let window = Acceptor::new(Fpage::memory(super::map::WINDOW, 30), false);
    let receiver = Space::new().spawn(move || {
        loop {
            // SAFETY: no Rust object lies in the window.
            unsafe { l4::utcb::accept(window) };
            let result = ipc::receive(me).map_err(|error| error.raw());
            l4::utcb::accept_untyped_words();
            let answer = match result {
                Ok(_) => Message::with_words(0, &[0, arena::read_at(super::map::WINDOW)]),
                Err(error) => Message::with_words(0, &[error, 0]),
            };
            ipc::send(me, answer).unwrap();
        }
    });
    // The receiver's code is there before memory runs out.
    ipc::call(receiver, Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), 0))).unwrap();
    space::unmap_one(page.fpage(Rights::ALL));
    for nth in 1..100 {
        fail_kernel_allocation(nth);
        let sent = ipc::send(receiver, Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), 0)));
        let failed = !fail_kernel_allocation(0);
        let told = ipc::receive(receiver).unwrap();
        if !failed {
            assert_eq!((sent, told.word(0), told.word(1)), (Ok(()), 0, 7));
            assert!(nth > 1, "a mapping takes memory");
            return;
        }
        let error = sent.expect_err("an allocation failed");
        assert_eq!(error.kind, IpcErrorKind::MessageOverflow);
        let seen = x2::IpcError::from_raw(told.word(0)).expect("the receiver too has an error");
        assert_eq!((seen.kind, seen.phase), (IpcErrorKind::MessageOverflow, x2::IpcPhase::Receive));
    }
    panic!("a mapping does not allocate a hundred times");
}

fn unmap_part() {
    leaks::require();
    // Any page but the first: other tests flush pages of the first large page, which come back as
    // small pages.
    let _ = arena::block(21);
    let block = arena::block(21);
    let part = Fpage::memory(block + 0x5000, 12).with_rights(Rights::ALL);
    for nth in (0..13).map(|power| 1 << power) {
        let worker = Worker::new();
        worker.take_in_window(MapItem::map(Fpage::memory(block, 21).with_rights(Rights::READ_WRITE), 0));
        fail_kernel_allocation(nth);
        space::unmap_one(part);
        let failed = !fail_kernel_allocation(0);
        // The page that was mapped at the target has been unmapped in any case: the new one is
        // another page.
        let other = arena::page();
        other.write(0, 3);
        worker.take_in_window(MapItem::map(other.fpage(Rights::READ), 0x5000));
        assert_eq!(worker.read(super::map::WINDOW + 0x5000), 3);
        if !failed {
            assert!(nth > 1, "splitting a large page takes memory");
            return;
        }
    }
    panic!("unmapping a page does not allocate four thousand times");
}

fn reserve() {
    let page = arena::page();
    page.write(0, 7);
    let me = l4::utcb::my_global_id();
    let glutton = Space::new().spawn(move || {
        loop {
            // SAFETY: no Rust object lies in the window.
            unsafe { l4::utcb::accept(Acceptor::new(LARGE_WINDOW, false)) };
            let taken = ipc::receive(me).is_ok();
            l4::utcb::accept_untyped_words();
            ipc::send(me, Message::with_words(0, &[u64::from(taken)])).unwrap();
        }
    });
    let feed = |at: u64| {
        let sent = ipc::send(glutton, Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), at)));
        assert_eq!(ipc::receive(glutton).unwrap().word(0) == 1, sent.is_ok());
        sent
    };
    let end = (0..1 << LARGE_WINDOW_LOG2).step_by(1 << 21).find_map(|at| feed(at).err());
    assert_eq!(end.expect("memory is not without end").kind, IpcErrorKind::MessageOverflow);
    // The threads belong to this space, which is an initial server's, and the pages have never been
    // touched.
    for _ in 0..10 {
        let thread = spawn(move || {
            ipc::send(me, Message::with_words(0, &[arena::page().read(0)])).unwrap();
        });
        assert_eq!(ipc::receive(thread).unwrap().word(0), 0);
    }
    assert_eq!(create(new_id()), Err(NO_MEMORY), "a space of its own is not the initial servers'");
}
