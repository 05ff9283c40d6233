//! Requests to root (`interfaces/root.defs`), by direct IPC with words in message registers.
//!
//! A request is an IPC to the thread's pager, which is root, its label the request's number. The answer has the label
//! [`request::ANSWER`] and a [`Status`] in its first word.

use core::fmt::{self, Write};
use l4::ipc::{self, Message};
use l4::utcb;
use l4::x2::ThreadId;

/// Labels: the numbers of `interfaces/root.defs`.
pub mod request {
    /// Print text: its length in bytes, then its bytes, eight a word.
    pub const PRINT: u64 = 4000;
    /// End the server: a status for the report. Never answered.
    pub const EXIT: u64 = 4001;
    /// Zeroed memory: address and size in bytes, whole pages where nothing is.
    pub const MEMORY_ALLOCATE: u64 = 4002;
    /// Gives memory back: address and size as allocated.
    pub const MEMORY_FREE: u64 = 4003;
    /// A thread in the server's space: instruction and stack pointer. The answer's second word is its id.
    pub const THREAD_CREATE: u64 = 4004;
    /// Ends a thread of the server's, not its first: its id.
    pub const THREAD_DELETE: u64 = 4005;
    /// Label of every answer.
    pub const ANSWER: u64 = 4100;
}

/// How a request went: the first word of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Status {
    /// It is done.
    Done = 0,
    /// A word of the request makes no sense.
    InvalidArgument = 1,
    /// There is no such request.
    UnknownRequest = 2,
    /// The server would have more than its configuration allows.
    QuotaExceeded = 3,
    /// Memory, of the machine or of the kernel, or thread numbers do not suffice.
    NoMemory = 4,
}

impl Status {
    /// The status with this number.
    pub fn from_word(word: u64) -> Option<Status> {
        use Status::{Done, InvalidArgument, NoMemory, QuotaExceeded, UnknownRequest};
        let all = [Done, InvalidArgument, UnknownRequest, QuotaExceeded, NoMemory];
        all.into_iter().find(|&status| status as u64 == word)
    }
}

/// Sends a request of words. Returns the status; `None` if root did not answer as it should. Blocks until root answers.
pub fn call(label: u64, words: &[u64]) -> Option<Status> {
    let answer = ipc::call(utcb::pager(), Message::with_words(label, words)).ok()?;
    let is_answer = answer.tag.label() == request::ANSWER && answer.tag.untyped() > 0;
    if is_answer { Status::from_word(answer.word(0)) } else { None }
}

/// Starts a thread of this server's space at `ip` with `sp`. Returns its id.
///
/// # Errors
/// Root's status; `UnknownRequest` if it did not answer as it should.
///
/// # Safety
/// `ip` is code that can run with that stack and nothing else.
#[allow(unsafe_code, reason = "what the thread does is the caller's promise")]
pub unsafe fn create_thread(ip: u64, sp: u64) -> Result<ThreadId, Status> {
    match call(request::THREAD_CREATE, &[ip, sp]) {
        Some(Status::Done) => Ok(ThreadId::from_raw(utcb::message_register(2))),
        refused => Err(refused.unwrap_or(Status::UnknownRequest)),
    }
}

/// Ends this server; root reports `status`.
pub fn exit(status: u64) -> ! {
    // Root answers no exit; if the request could not be sent, the thread can still stop.
    let _ = ipc::call(utcb::pager(), Message::with_words(request::EXIT, &[status]));
    l4::start::halt()
}

/// Bytes that one request can carry.
const TEXT: usize = 61 * 8;

/// The console, through root: each piece of up to 488 bytes is printed in one go.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.as_bytes().chunks(TEXT) {
            let mut message = Message::new(request::PRINT).word(piece.len() as u64);
            for bytes in piece.chunks(8) {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                message = message.word(u64::from_le_bytes(word));
            }
            ipc::call(utcb::pager(), message).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// What a server does on a panic: the message goes to the console, then it exits with this status.
pub const PANIC_STATUS: u64 = 101;

/// From now on a panic is printed through root and ends the server. Call it first in a server.
pub fn report_panics() {
    l4::start::set_panic_hook(|info| {
        // The console cannot be told if it does not work.
        let _ = writeln!(Console, "{}: {info}", crate::start_page::read().map_or("?", |(name, _)| name));
        exit(PANIC_STATUS)
    });
}
