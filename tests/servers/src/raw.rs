//! Requests to root of any words, also those that no stub writes.

use direct::{REPLY, Status};
use l4::ipc::{self, Message};
use rt::start_page;

/// Makes a request of these words, which may be too many or too few, and waits for its answer.
///
/// # Errors
/// Root's status; 0 if the answer is none to this request.
pub(crate) fn call(label: u64, words: &[u64]) -> Result<(), Status> {
    let answer = ipc::call(start_page::root(), Message::with_words(label, words)).map_err(|_| Status(0))?;
    if answer.tag.label() != label + REPLY || answer.tag.untyped() == 0 {
        return Err(Status(0));
    }
    match answer.word(0) {
        0 => Ok(()),
        status => Err(Status(status as i32)),
    }
}

/// Whether a request was refused for this reason.
pub(crate) fn is_refused(result: Result<(), Status>, why: rt::root::Status) -> bool {
    result == Err(why.into())
}
