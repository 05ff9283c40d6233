//! Support for the tests of strings: areas of memory, threads that send, receive and page, and
//! their records.

use crate::framework::arena;
use crate::framework::fixture::{Space, await_state, image_fault_answer, spawn};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::utcb;
use x2::control::ThreadState;
use x2::message::StringDescriptor;
use x2::{Acceptor, Fpage, IpcError, IpcErrorKind, IpcPhase, MapItem, Rights, ThreadId, Timeouts, protocol};

/// The size of the areas that tests use, as a power of two.
pub(super) const AREA_LOG2: u32 = 15;

/// An area of memory, at the same address in every space in which its pages are mapped.
#[derive(Clone, Copy)]
pub(super) struct Area(pub(super) u64);

impl Area {
    pub(super) fn new() -> Self {
        Self(arena::block(AREA_LOG2))
    }

    /// The address of byte `index`.
    pub(super) fn at(self, index: u64) -> *mut u8 {
        assert!(index < 1 << AREA_LOG2, "within the area");
        (self.0 + index) as *mut u8
    }

    pub(super) fn read(self, index: u64) -> u8 {
        // SAFETY: the address is in the arena, to which there are no Rust references.
        unsafe { self.at(index).read_volatile() }
    }

    /// Fills the area with bytes that depend on `seed` and on the place.
    pub(super) fn fill(self, seed: u64) -> Self {
        for index in 0..1 << AREA_LOG2 {
            // SAFETY: the address is in the arena, to which there are no Rust references.
            unsafe { self.at(index).write_volatile(pattern(seed, index)) };
        }
        self
    }

    /// Checks that `size` bytes from `at` on are those of an area filled with `seed`, from `from`
    /// on.
    pub(super) fn check(self, at: u64, size: u64, seed: u64, from: u64) {
        for index in 0..size {
            assert_eq!(self.read(at + index), pattern(seed, from + index), "byte {index} of {size}");
        }
    }
}

pub(super) fn pattern(seed: u64, index: u64) -> u8 {
    (index.wrapping_mul(31) ^ index >> 8 ^ seed.wrapping_mul(97)) as u8
}

pub(super) fn simple_words(address: u64, size: u64) -> [u64; 2] {
    [StringDescriptor::new(size, 1, false).raw(), address]
}

/// Accepts strings into the buffers that `words` describe, from BR1 on.
pub(super) fn accept(words: &[u64]) {
    // SAFETY: the buffers lie in the arena, and no mappings are accepted.
    unsafe {
        utcb::accept(Acceptor::new(Fpage::NIL, true));
        for (index, &word) in words.iter().enumerate() {
            utcb::set_buffer_register(1 + index, word);
        }
    }
}

/// The message that the last receiver of [`receiver`] got: error word, tag, MR1...
pub(super) static GOT: [AtomicU64; 66] = [const { AtomicU64::new(0) }; 66];

pub(super) fn got(index: usize) -> u64 {
    GOT[index].load(Ordering::Relaxed)
}

pub(super) fn got_word(register: usize) -> u64 {
    got(1 + register)
}

/// Receives from `from` into `buffers`, records the message, and notifies `from`, which must be a
/// thread of the test.
pub(super) fn receive_and_note(from: ThreadId, buffers: &[u64], timeouts: Timeouts) {
    utcb::set_xfer_timeouts(timeouts);
    accept(buffers);
    let error = ipc::receive(from).map_or_else(|error| error.raw(), |_| 0);
    GOT[0].store(error, Ordering::Relaxed);
    for register in 0..64 {
        GOT[1 + register].store(utcb::message_register(register), Ordering::Relaxed);
    }
    let _ = ipc::send(from, Message::new(0x77));
}

/// Makes a thread in `space` (`None`: that of the test) that receives once from the test.
pub(super) fn receiver<const N: usize>(
    space: Option<(&Space, ThreadId)>,
    buffers: [u64; N],
    timeouts: Timeouts,
) -> ThreadId {
    let me = utcb::my_global_id();
    let body = move || receive_and_note(me, &buffers, timeouts);
    let thread = match space {
        None => spawn(body),
        Some((space, pager)) => space.spawn_paged_by(pager, body),
    };
    await_state(thread, ThreadState::Waiting);
    thread
}

/// Sends a message and waits until the receiver has recorded it. Returns the error, if any.
pub(super) fn send_noted(to: ThreadId, message: Message) -> Option<IpcError> {
    let error = ipc::send(to, message).err();
    ipc::receive(to).expect("the receiver tells");
    error
}

pub(super) fn send_error(kind: IpcErrorKind, offset: u64) -> Option<IpcError> {
    Some(IpcError::with_offset(IpcPhase::Send, kind, offset))
}

pub(super) fn receive_error(kind: IpcErrorKind, offset: u64) -> u64 {
    IpcError::with_offset(IpcPhase::Receive, kind, offset).raw()
}

/// The page faults in the arena that the pager of a test got, whether it answered them or not.
pub(super) static FAULTS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
pub(super) static FAULT_COUNT: AtomicU64 = AtomicU64::new(0);

pub(super) fn faults() -> impl Iterator<Item = u64> {
    (0..FAULT_COUNT.load(Ordering::Relaxed) as usize).map(|index| FAULTS[index].load(Ordering::Relaxed))
}

/// Makes a pager in the test's space, which maps each page at its own address. In the arena it maps
/// only the first `answers` pages. It records faults in the arena: the address, with bit 0 set for
/// a write.
pub(super) fn pager(answers: u64) -> ThreadId {
    FAULT_COUNT.store(0, Ordering::Relaxed);
    spawn(move || {
        let mut answer: Option<(ThreadId, Message)> = None;
        loop {
            let request = match answer.take() {
                Some((to, message)) => ipc::ipc(to, ThreadId::ANY, Timeouts::NEVER, message.tag()),
                None => ipc::wait(),
            };
            let Ok(request) = request else { continue };
            if let Some(message) = image_fault_answer(request) {
                answer = Some((request.from, message));
                continue;
            }
            assert_eq!(protocol::of(request.tag), protocol::PAGE_FAULT);
            let (address, write) = (request.word(0), protocol::fault_access(request.tag) == Rights::WRITE);
            let count = FAULT_COUNT.load(Ordering::Relaxed);
            FAULTS[count as usize].store(address & !1 | u64::from(write), Ordering::Relaxed);
            FAULT_COUNT.store(count + 1, Ordering::Relaxed);
            if count < answers {
                let page = Fpage::memory(address & !0xfff, 12).with_rights(Rights::ALL);
                answer = Some((request.from, Message::new(0).map_item(MapItem::map(page, address & !0xfff))));
            }
        }
    })
}

/// Makes a thread in a space of its own that sends the message made by `make` to the test, with
/// these transfer timeouts, and then its error word.
pub(super) fn sender(pager: ThreadId, timeouts: Timeouts, make: impl Fn() -> Message + 'static) -> ThreadId {
    let me = utcb::my_global_id();
    Space::new().spawn_paged_by(pager, move || {
        utcb::set_xfer_timeouts(timeouts);
        let error = ipc::send(me, make()).map_or_else(|error| error.raw(), |()| 0);
        let _ = ipc::send(me, Message::with_words(0x78, &[error]));
    })
}

/// Receives from `from` into `buffers`.
pub(super) fn receive(from: ThreadId, buffers: &[u64]) -> ipc::Result<ipc::Received> {
    accept(buffers);
    let received = ipc::receive(from);
    utcb::accept_untyped_words();
    received
}

/// The error word that a [`sender`] has reported.
pub(super) fn senders_error(sender: ThreadId) -> u64 {
    ipc::receive(sender).expect("the sender tells").word(0)
}
