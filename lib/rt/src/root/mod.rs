//! Requests to root (`interfaces/root.defs`), by direct IPC with words in message registers.
//!
//! A request is an IPC to root's thread for the processor ([`start_page::root`]), its label the
//! request's number. The answer has the label [`request::ANSWER`] and a [`Status`] in its first
//! word. Root answers without blocking, except a [`lookup`](names::lookup) that waits for a name.
//! Every function here uses the thread's message registers.
//!
//! | module | subject |
//! |---|---|
//! | [`memory`] | memory at addresses that the server chooses, boot modules |
//! | [`space`] | address spaces that the server owns, and their threads |
//! | [`names`] | finding other servers |
//! | [`share`] | memory shared with another server |
//! | [`device`] | interrupts, device memory |
//! | [`pci`] | PCI functions, message-signalled interrupts |
//! | [`console`] | printing through root; panics |

pub mod console;
pub mod device;
pub mod memory;
pub mod names;
pub mod pci;
pub mod servers;
pub mod share;
pub mod space;

pub use console::{Console, PANIC_STATUS, report_panics};

use crate::start_page;
use l4::ipc::{self, Message, Received};
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
    /// A thread in the server's space: instruction and stack pointer. The answer's second word is
    /// its id.
    pub const THREAD_CREATE: u64 = 4004;
    /// Ends a thread of the server that is not its first: its id.
    pub const THREAD_DELETE: u64 = 4005;
    /// A space of the server's with its first thread: kernel interface page, UTCB area, its size
    /// (log2), system-call mode, emulation entry, quota of kernel memory, handler. Answered with
    /// the space and the thread.
    pub const SPACE_CREATE: u64 = 4006;
    /// A thread in a space of the server's: space, place in the UTCB area, handler. Answered with
    /// the thread.
    pub const SPACE_THREAD_CREATE: u64 = 4007;
    /// Ends a thread of a space of the server's, not the last of its space: its id.
    pub const SPACE_THREAD_DELETE: u64 = 4008;
    /// Ends a space of the server's with all its threads: the space.
    pub const SPACE_DELETE: u64 = 4009;
    /// How much memory the server could be given: answered with bytes.
    pub const MEMORY_AVAILABLE: u64 = 4010;
    /// Memory as it is, not zeroed: address and size in bytes.
    pub const MEMORY_POOL: u64 = 4011;
    /// Maps a boot module: address from which on there is room, then its name (length, bytes).
    /// Answered with address and size.
    pub const MODULE_MAP: u64 = 4012;
    /// Registers a thread of the server under the server's name: its id.
    pub const NAME_REGISTER: u64 = 4013;
    /// Finds a server and opens the two spaces to each other: whether to wait until it registers,
    /// then its name (length, bytes). Answered with a thread.
    pub const NAME_LOOKUP: u64 = 4014;
    /// Attaches an interrupt line to a thread of the server: line, thread.
    pub const INTERRUPT_ATTACH: u64 = 4015;
    /// Detaches an interrupt line.
    pub const INTERRUPT_DETACH: u64 = 4016;
    /// Maps device memory: physical address, size in bytes, address.
    pub const DEVICE_MAP: u64 = 4017;
    /// Ends the system: how, and a status. Not answered if it works.
    pub const SYSTEM_END: u64 = 4018;
    /// One of the server's resources: kind (0 interrupt, 1 I/O ports, 2 device memory, 3 PCI
    /// function) and which. Answered with two words: line and 0, first and last port, address and
    /// size, place and how many messages.
    pub const RESOURCE: u64 = 4019;
    /// Memory for two servers: address, size, a thread of the other server. Answered with the
    /// share.
    pub const SHARE_CREATE: u64 = 4020;
    /// Maps what another server shares: share, address. Answered with its size.
    pub const SHARE_MAP: u64 = 4021;
    /// A server of the system: which. Answered with what [`super::servers::Server`] holds.
    pub const SERVER: u64 = 4022;
    /// Memory for devices: address, size in bytes, how many bits a physical address may have.
    /// Answered with the physical address.
    pub const MEMORY_DMA: u64 = 4023;
    /// Registers of one of the server's PCI functions: which function, which base address. Answered
    /// with three words: 0 memory or 1 ports, the first, how many.
    pub const PCI_REGION: u64 = 4024;
    /// Attaches a message of a PCI function to a thread of the server: function, which message,
    /// thread. Answered with the interrupt.
    pub const MESSAGE_ATTACH: u64 = 4025;
    /// Detaches such an interrupt.
    pub const MESSAGE_DETACH: u64 = 4026;
    /// Label of each answer of root.
    pub const ANSWER: u64 = 4100;
}

/// How a request went: the first word of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Status {
    /// The request was carried out.
    Done = 0,
    /// A word of the request is not valid.
    InvalidArgument = 1,
    /// There is no such request.
    UnknownRequest = 2,
    /// The server would have more than its configuration allows.
    QuotaExceeded = 3,
    /// Memory, of the machine or of the kernel, or thread numbers do not suffice.
    NoMemory = 4,
    /// There is nothing of that name, or it is not for this server.
    NotFound = 5,
    /// The resource is in use already.
    InUse = 6,
    /// The machine cannot do what was requested.
    Unsupported = 7,
}

impl Status {
    /// The status with this number.
    pub fn from_word(word: u64) -> Option<Status> {
        use Status::{
            Done, InUse, InvalidArgument, NoMemory, NotFound, QuotaExceeded, UnknownRequest, Unsupported,
        };
        const ALL: [Status; 8] =
            [Done, InvalidArgument, UnknownRequest, QuotaExceeded, NoMemory, NotFound, InUse, Unsupported];
        ALL.into_iter().find(|&status| status as u64 == word)
    }
}

/// Sends a request of words and reports how it went. Blocks until root answers.
pub fn call(label: u64, words: &[u64]) -> Status {
    ask(Message::with_words(label, words)).err().unwrap_or(Status::Done)
}

/// [`ask`] for requests whose answer is only a status.
fn order(label: u64, words: &[u64]) -> Result<(), Status> {
    ask(Message::with_words(label, words)).map(drop)
}

/// Sends a request. The answer's words follow the status, which is word 0.
///
/// # Errors
/// Root's status; `UnknownRequest` if it did not answer as it should.
fn ask(message: Message) -> Result<Received, Status> {
    let answer = ipc::call(start_page::root(), message).map_err(|_| Status::UnknownRequest)?;
    if answer.tag.label() != request::ANSWER || answer.tag.untyped() == 0 {
        return Err(Status::UnknownRequest);
    }
    match Status::from_word(answer.word(0)) {
        Some(Status::Done) => Ok(answer),
        refused => Err(refused.unwrap_or(Status::UnknownRequest)),
    }
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
    let answer = ask(Message::with_words(request::THREAD_CREATE, &[ip, sp]))?;
    thread_in(answer, 1)
}

/// Ends a thread of this server's space, not its first.
///
/// # Errors
/// `InvalidArgument`: it is no such thread.
pub fn delete_thread(thread: ThreadId) -> Result<(), Status> {
    order(request::THREAD_DELETE, &[thread.raw()])
}

/// Ends this server; root reports `status`.
pub fn exit(status: u64) -> ! {
    // Root answers no exit; if the request could not be sent, the thread can still stop.
    let _ = ipc::call(start_page::root(), Message::with_words(request::EXIT, &[status]));
    l4::start::halt()
}

/// How the whole system ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine is switched off. Under an emulator with the debug-exit device, this status
    /// (0..=127) becomes the emulator's exit status 2 * status + 1.
    PowerOff(u8),
    /// The machine restarts.
    Reboot,
}

/// Ends the system; for servers whose configuration says `power yes`.
///
/// # Errors
/// Does not return if it works. `NotFound`: the server may not; `Unsupported`: the machine did not
/// do it.
pub fn end_system(end: End) -> Status {
    let words = match end {
        End::PowerOff(status) => [0, status.into()],
        End::Reboot => [1, 0],
    };
    call(request::SYSTEM_END, &words)
}

/// A message whose last words are `text`: its length in bytes, then its bytes, eight a word.
pub fn with_text(message: Message, text: &[u8]) -> Message {
    let message = message.word(text.len() as u64);
    text.chunks(8).fold(message, |message, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        message.word(u64::from_le_bytes(word))
    })
}

/// Word `index` of an answer; root's answer is wrong without it.
fn word_in(answer: Received, index: usize) -> Result<u64, Status> {
    if index < answer.tag.untyped() { Ok(answer.word(index)) } else { Err(Status::UnknownRequest) }
}

fn thread_in(answer: Received, index: usize) -> Result<ThreadId, Status> {
    word_in(answer, index).map(ThreadId::from_raw)
}
