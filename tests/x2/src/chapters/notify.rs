//! Tests of notification (docs/src/architecture.md, K15; docs/src/reference/extensions.md,
//! "Notify").

use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, new_id, spawn};
use crate::framework::tests;
use l4::ipc::{self, Message, Received};
use l4::{extension, kip, thread, utcb};
use x2::control::ThreadState;
use x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use x2::{ErrorCode, IpcErrorKind, ThreadId, Time};

tests! {
    NTF0001 [EXT 7.1, EXT 7.2a] "a waiting thread gets the bits in a message without a sender" waiting;
    NTF0002 [EXT 7.1, EXT 7.3a] "bits that come before are joined and kept" kept;
    NTF0003 [EXT 7.3a] "a closed receive leaves the bits where they are" closed_receive;
    NTF0004 [EXT 7.3a] "an open receive that does not accept them leaves them" not_accepted;
    NTF0005 [EXT 7.2d] "the word is empty after delivery" cleared;
    NTF0006 [EXT 7.1] "a thread that does not exist, or is out of reach, is an error" no_thread;
    NTF0007 [EXT 7.3a] "an aborted receive loses no bits" aborted;
    NTF0008 [EXT 7.3bc] "neither a new version nor another thread with the id has bits of the old one" new_version;
    NTF0009 [EXT 7.2c] "notifications come before senders" before_senders;
    NTF0010 [EXT 7.1] "notifying no bits wakes no thread" no_bits;
}

/// Makes this thread's open receives end with notifications, too.
fn accept() {
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
}

fn expect(received: Received, bits: u64) {
    assert_eq!((received.tag.label(), received.tag.untyped()), (NOTIFICATION_LABEL, 1));
    assert_eq!((received.from, received.word(0)), (ThreadId::NIL, bits));
}

/// Receives without waiting long, since the message must be there already.
fn receive_now(from: ThreadId) -> ipc::Result<Received> {
    ipc::receive_timeout(from, Time::ZERO)
}

/// Makes a thread of this space that receives notifications and sends each word to the test.
fn listener() -> ThreadId {
    let me = utcb::my_global_id();
    spawn(move || {
        loop {
            accept();
            let received = ipc::receive(ThreadId::ANY).expect("notified");
            let (label, word) = (received.tag.label(), received.word(0));
            utcb::accept_untyped_words();
            ipc::send(me, Message::with_words(label, &[word])).expect("the test waits");
        }
    })
}

fn waiting() {
    let thread = listener();
    await_state(thread, ThreadState::Waiting);
    extension::notify(thread, 0x8000_0000_0000_0001).unwrap();
    let told = ipc::receive(thread).unwrap();
    assert_eq!((told.tag.label(), told.word(0)), (NOTIFICATION_LABEL, 0x8000_0000_0000_0001));
}

fn kept() {
    let me = utcb::my_global_id();
    extension::notify(me, 1).unwrap();
    extension::notify(me, 4).unwrap();
    accept();
    expect(receive_now(ThreadId::ANY).unwrap(), 5);
}

fn closed_receive() {
    let me = utcb::my_global_id();
    extension::notify(me, 2).unwrap();
    accept();
    assert_eq!(receive_now(kip().root()).unwrap_err().kind, IpcErrorKind::Timeout);
    assert_eq!(receive_now(ThreadId::ANY_LOCAL).unwrap_err().kind, IpcErrorKind::Timeout);
    expect(receive_now(ThreadId::ANY).unwrap(), 2);
}

fn not_accepted() {
    let me = utcb::my_global_id();
    extension::notify(me, 2).unwrap();
    utcb::accept_untyped_words();
    assert_eq!(receive_now(ThreadId::ANY).unwrap_err().kind, IpcErrorKind::Timeout);
    accept();
    expect(receive_now(ThreadId::ANY).unwrap(), 2);
}

fn cleared() {
    let me = utcb::my_global_id();
    extension::notify(me, 2).unwrap();
    accept();
    expect(receive_now(ThreadId::ANY).unwrap(), 2);
    assert_eq!(receive_now(ThreadId::ANY).unwrap_err().kind, IpcErrorKind::Timeout);
}

fn no_thread() {
    let refused = Err(Some(ErrorCode::InvalidThread));
    assert_eq!(extension::notify(new_id(), 1), refused);
    assert_eq!(extension::notify(ThreadId::NIL, 1), refused);
    assert_eq!(extension::notify(ThreadId::ANY, 1), refused);
    assert_eq!(extension::notify(Space::new().first, 1), refused, "an inactive thread");
    let me = utcb::my_global_id();
    let other = listener();
    let stranger = Space::new().spawn(|| {
        let _ = ipc::receive(ThreadId::ANY);
    });
    let thread = confined::spawn(&confined::space(), move || {
        let reaches = [(me, 0), (other, 1), (stranger, 1)]
            .map(|(thread, bits)| u64::from(extension::notify(thread, bits).is_ok()));
        ipc::send(me, Message::with_words(0, &reaches)).expect("the test waits");
    });
    let told = ipc::receive(thread).unwrap();
    let told = [told.word(0), told.word(1), told.word(2)];
    assert_eq!(told, [1, 0, 0], "its handler, another thread of its owner's, and a third space");
}

fn aborted() {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        let first = ipc::receive(me).expect_err("aborted").kind;
        accept();
        let second = ipc::receive(ThreadId::ANY).expect("notified").word(0);
        ipc::send(me, Message::with_words(0, &[first as u64, second])).expect("the test waits");
    });
    await_state(thread, ThreadState::Waiting);
    extension::notify(thread, 0x10).unwrap();
    thread::abort_ipc(thread).unwrap();
    let told = ipc::receive(thread).unwrap();
    assert_eq!([told.word(0), told.word(1)], [IpcErrorKind::Cancelled as u64, 0x10]);
}

fn new_version() {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        let _ = ipc::receive(me);
        accept();
        let none = receive_now(ThreadId::ANY).is_err();
        ipc::send(me, Message::with_words(0, &[none.into()])).expect("the test waits");
    });
    await_state(thread, ThreadState::Waiting);
    extension::notify(thread, 1).unwrap();
    let renamed = crate::framework::fixture::with_version(thread.number(), 2);
    let same =
        thread::ThreadControl { space: thread, scheduler: ThreadId::NIL, pager: ThreadId::NIL, utcb: None };
    thread::control(renamed, same).unwrap();
    assert_eq!(ipc::receive(renamed).unwrap().word(0), 1);
    extension::notify(renamed, 1).unwrap();
    thread::delete(renamed).unwrap();
    crate::framework::fixture::spawn_as(renamed, move || {
        accept();
        let none = receive_now(ThreadId::ANY).is_err();
        ipc::send(me, Message::with_words(0, &[none.into()])).expect("the test waits");
    });
    assert_eq!(ipc::receive(renamed).unwrap().word(0), 1);
}

fn before_senders() {
    let me = utcb::my_global_id();
    let sender = spawn(move || ipc::send(me, Message::with_words(3, &[3])).expect("the test waits"));
    await_state(sender, ThreadState::PendingSend);
    extension::notify(me, 8).unwrap();
    accept();
    expect(receive_now(ThreadId::ANY).unwrap(), 8);
    assert_eq!(receive_now(ThreadId::ANY).unwrap().tag.label(), 3);
}

fn no_bits() {
    let thread = listener();
    await_state(thread, ThreadState::Waiting);
    extension::notify(thread, 0).unwrap();
    await_state(thread, ThreadState::Waiting);
    assert_eq!(receive_now(thread).unwrap_err().kind, IpcErrorKind::Timeout);
}
