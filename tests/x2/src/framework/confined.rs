//! Owned spaces for tests of the extensions.

use super::fixture::Space;
use l4::ipc::{self, Message};
use l4::{extension, kip, utcb};
use x2::ThreadId;

/// Makes a new space that the root task's space owns.
pub(crate) fn space() -> Space {
    let space = Space::new();
    extension::set_owner(space.first, kip().root()).expect("the root task is privileged");
    space
}

/// Makes a thread in `space`, which must be owned. It runs `body` after this thread has become its
/// exception handler.
pub(crate) fn spawn(space: &Space, body: impl FnOnce() + 'static) -> ThreadId {
    let me = utcb::my_global_id();
    let thread = space.spawn(move || {
        ipc::receive(me).expect("the test lets the thread go");
        body();
    });
    extension::set_handlers(thread, Some(me), None).expect("the thread is owned");
    ipc::send(thread, Message::new(0)).expect("the thread waits");
    thread
}
