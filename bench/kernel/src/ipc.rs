//! IPC: one way and round trip, within and across spaces, by the number of untyped words.

use crate::{fixture, measure, measure_at};
use l4::ipc::{self, Message};
use l4::{kip, syscall, utcb};
use x2::{MessageTag, ThreadId, Timeouts};

/// Answers every message of the root task with its own length.
extern "C" fn echo() -> ! {
    let root = kip().root();
    let mut answer = ipc::receive(root);
    loop {
        let words = answer.map_or(0, |received| received.tag.untyped());
        let tag = MessageTag::new(0, words, 0);
        answer = ipc::ipc(root, root, Timeouts::NEVER, tag);
    }
}

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

pub(crate) fn run() {
    let (near, far) = (fixture::here(echo), fixture::elsewhere(echo));
    for words in [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 60, 63] {
        let tag = MessageTag::new(0, words, 0);
        for (test, partner) in [("ipc-one-way-across-spaces", far), ("ipc-one-way-within-a-space", near)] {
            measure_at(test, words as u64, 2, || {
                ipc::ipc(partner, partner, Timeouts::NEVER, tag).expect("the partner answers");
            });
        }
    }
    // The bare stub: message registers in processor registers, nothing copied to or from the UTCB.
    let registers = [0; 8];
    let pointer = utcb::pointer();
    measure("ipc-round-trip-across-spaces-bare-stub", || {
        // SAFETY: the UTCB pointer is this thread's, and nothing is accepted but words.
        let _ = unsafe { syscall::ipc(far.raw(), far.raw(), 0, registers, pointer) };
    });
    let server = fixture::elsewhere(serve);
    measure("call-to-open-wait-server", || {
        ipc::call(server, Message::new(0)).expect("the server answers");
    });
}
