//! What goes from one processor to another: IPC, notification, a thread itself.

use crate::crossing::place;
use crate::{count, fixture};
use l4::ipc::{self, Message};
use l4::{extension, kip, utcb};
use x2::extension::ACCEPT_NOTIFICATION;
use x2::{MessageTag, ThreadId, Timeouts};

/// Answers every message in an open wait, as servers do.
extern "C" fn serve() -> ! {
    let mut received = ipc::receive(ThreadId::ANY);
    loop {
        received = match received {
            Ok(request) => ipc::ipc(request.from, ThreadId::ANY, Timeouts::NEVER, MessageTag::new(0, 0, 0)),
            Err(_) => ipc::receive(ThreadId::ANY),
        };
    }
}

/// Takes notifications, and tells the root task of each.
extern "C" fn listener() -> ! {
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    loop {
        let _ = ipc::receive(ThreadId::ANY);
        let _ = ipc::send(kip().root(), Message::new(1));
    }
}

pub(crate) fn run() {
    for (test, server) in [
        ("call-to-another-processor-within-a-space", fixture::here(serve)),
        ("call-to-another-processor-across-spaces", fixture::elsewhere(serve)),
    ] {
        place(server, 1);
        count(test, || {
            ipc::call(server, Message::new(0)).expect("the server answers");
        });
    }
    let listener = fixture::here(listener);
    place(listener, 1);
    count("notify-another-processor-and-answer", || {
        extension::notify(listener, 1).expect("in reach");
        ipc::receive(listener).expect("it tells");
    });
    let moved = fixture::here(serve);
    count("thread-moved-and-back", || {
        place(moved, 1);
        place(moved, 0);
    });
}
