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

/// The labels of requests, which are the numbers in `interfaces/root.defs`.
pub mod request {
    /// Prints text. Arguments: its length in bytes, then its bytes, eight in each word.
    pub const PRINT: u64 = 4000;
    /// Ends the server. Argument: a status for the report. It is never answered.
    pub const EXIT: u64 = 4001;
    /// Allocates zeroed memory. Arguments: address and size in bytes, multiples of the page size;
    /// nothing may be mapped there.
    pub const MEMORY_ALLOCATE: u64 = 4002;
    /// Frees memory. Arguments: address and size of a region, as it was allocated.
    pub const MEMORY_FREE: u64 = 4003;
    /// Makes a thread in the server's space. Arguments: instruction and stack pointer. The answer's
    /// second word is the thread's id.
    pub const THREAD_CREATE: u64 = 4004;
    /// Ends a thread of the server, not its first. Argument: its id.
    pub const THREAD_DELETE: u64 = 4005;
    /// Makes a space that the server owns, with its first thread. Arguments: kernel interface page,
    /// UTCB area, its size (log2), system-call mode, emulation entry, quota of kernel memory,
    /// handler. Answered with the space and the thread.
    pub const SPACE_CREATE: u64 = 4006;
    /// Makes a thread in a space that the server owns. Arguments: space, place in the UTCB area,
    /// handler. Answered with the thread.
    pub const SPACE_THREAD_CREATE: u64 = 4007;
    /// Ends a thread of a space that the server owns, not the last of the space. Argument: its id.
    pub const SPACE_THREAD_DELETE: u64 = 4008;
    /// Ends a space that the server owns, with all its threads. Argument: the space.
    pub const SPACE_DELETE: u64 = 4009;
    /// Asks how much memory the server could be given. Answered with bytes.
    pub const MEMORY_AVAILABLE: u64 = 4010;
    /// Allocates memory with any content. Arguments: address and size in bytes.
    pub const MEMORY_POOL: u64 = 4011;
    /// Maps a boot module. Arguments: an address after which there is room, then the module's name
    /// (length, bytes). Answered with address and size.
    pub const MODULE_MAP: u64 = 4012;
    /// Registers a thread of the server under the server's name. Argument: the thread's id.
    pub const NAME_REGISTER: u64 = 4013;
    /// Finds a server, and allows the two spaces to send to each other. Arguments: whether to wait
    /// until the server registers, then its name (length, bytes). Answered with a thread.
    pub const NAME_LOOKUP: u64 = 4014;
    /// Attaches an interrupt line to a thread of the server. Arguments: line, thread.
    pub const INTERRUPT_ATTACH: u64 = 4015;
    /// Detaches an interrupt line. Argument: the line.
    pub const INTERRUPT_DETACH: u64 = 4016;
    /// Maps device memory. Arguments: physical address, size in bytes, address.
    pub const DEVICE_MAP: u64 = 4017;
    /// Ends the system. Arguments: 0 power off or 1 reset, and a status. Answered only if it fails.
    pub const SYSTEM_END: u64 = 4018;
    /// Describes a resource of the server. Arguments: kind (0 interrupt, 1 I/O ports, 2 device
    /// memory, 3 PCI function) and index. Answered with two words: line and 0, first and last port,
    /// address and size, place and how many messages.
    pub const RESOURCE: u64 = 4019;
    /// Allocates memory that two servers share. Arguments: address, size, a thread of the other
    /// server. Answered with the share.
    pub const SHARE_CREATE: u64 = 4020;
    /// Maps memory that another server shares. Arguments: share, address. Answered with the size.
    pub const SHARE_MAP: u64 = 4021;
    /// Describes a server of the system. Argument: its index. Answered with the fields of
    /// [`super::servers::Server`].
    pub const SERVER: u64 = 4022;
    /// Allocates memory that devices may write. Arguments: address, size in bytes, how many bits a
    /// physical address may have. Answered with the physical address.
    pub const MEMORY_DMA: u64 = 4023;
    /// Describes registers of a PCI function of the server. Arguments: function, base address
    /// register. Answered with three words: 0 memory or 1 ports, the first address or port, how
    /// many.
    pub const PCI_REGION: u64 = 4024;
    /// Attaches an interrupt message of a PCI function to a thread of the server. Arguments:
    /// function, message, thread. Answered with the interrupt.
    pub const MESSAGE_ATTACH: u64 = 4025;
    /// Detaches the interrupt of a PCI function. Argument: the interrupt.
    pub const MESSAGE_DETACH: u64 = 4026;
    /// The label of all answers of root.
    pub const ANSWER: u64 = 4100;
}

/// The status of a request: the first word of its answer.
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
    /// There is not enough memory, of the machine or of the kernel, or there are not enough thread
    /// numbers.
    NoMemory = 4,
    /// There is no object of that name, or it is not for this server.
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

/// Sends a request of words. Returns its status. Blocks until root answers.
pub fn call(label: u64, words: &[u64]) -> Status {
    ask(Message::with_words(label, words)).err().unwrap_or(Status::Done)
}

/// Sends a request whose answer is only a status.
fn order(label: u64, words: &[u64]) -> Result<(), Status> {
    ask(Message::with_words(label, words)).map(drop)
}

/// Sends a request. The words of the answer follow the status, which is word 0.
///
/// # Errors
/// Root's status; `UnknownRequest` if the answer is malformed.
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

/// Starts a thread in this server's space at `ip` with `sp`. Returns its id.
///
/// # Errors
/// Root's status; `UnknownRequest` if the answer is malformed.
///
/// # Safety
/// `ip` must be code that can run with that stack and no other registers.
#[allow(unsafe_code, reason = "what the thread does is the caller's promise")]
pub unsafe fn create_thread(ip: u64, sp: u64) -> Result<ThreadId, Status> {
    let answer = ask(Message::with_words(request::THREAD_CREATE, &[ip, sp]))?;
    thread_in(answer, 1)
}

/// Ends a thread of this server's space, not its first.
///
/// # Errors
/// `InvalidArgument`: there is no such thread.
pub fn delete_thread(thread: ThreadId) -> Result<(), Status> {
    order(request::THREAD_DELETE, &[thread.raw()])
}

/// Ends this server; root reports `status`.
pub fn exit(status: u64) -> ! {
    // Root never answers this request. If it could not be sent, the thread can still stop.
    let _ = ipc::call(start_page::root(), Message::with_words(request::EXIT, &[status]));
    l4::start::halt()
}

/// The way in which the whole system ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine is switched off. Under an emulator with the debug-exit device, this status
    /// (0..=127) becomes the emulator's exit status 2 * status + 1.
    PowerOff(u8),
    /// The machine is reset, so that it boots again.
    Reboot,
}

/// Ends the system; for servers whose configuration says `power yes`.
///
/// # Errors
/// The function returns only if the system does not end. `NotFound`: the server has no permission;
/// `Unsupported`: the machine did not do it.
pub fn end_system(end: End) -> Status {
    let words = match end {
        End::PowerOff(status) => [0, status.into()],
        End::Reboot => [1, 0],
    };
    call(request::SYSTEM_END, &words)
}

/// Appends `text` to a message: its length in bytes, then its bytes, eight in each word.
pub fn with_text(message: Message, text: &[u8]) -> Message {
    let message = message.word(text.len() as u64);
    text.chunks(8).fold(message, |message, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        message.word(u64::from_le_bytes(word))
    })
}

/// Word `index` of an answer. An answer without it is malformed.
fn word_in(answer: Received, index: usize) -> Result<u64, Status> {
    if index < answer.tag.untyped() { Ok(answer.word(index)) } else { Err(Status::UnknownRequest) }
}

fn thread_in(answer: Received, index: usize) -> Result<ThreadId, Status> {
    word_in(answer, index).map(ThreadId::from_raw)
}
