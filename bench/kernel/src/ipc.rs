//! IPC: one way and round trip, within and across spaces, by the number of untyped words.

use core::arch::{asm, naked_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{AVERAGED, fixture, measure, measure_at, now, report};
use l4::ipc::{self, Message};
use l4::{kip, syscall, utcb};
use x2::message::StringDescriptor;
use x2::{Acceptor, Fpage, MessageTag, ThreadId, Timeouts};

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

/// Sends `R9` as a whole message to `RSI` and waits for its next one, for ever: no compiler in between.
#[unsafe(naked)]
extern "C" fn bare_partner() -> ! {
    naked_asm!(
        "mov r12, [rip + {root}]",
        "xor esi, esi",
        "mov rdx, r12",
        "xor r8d, r8d",
        "call [rip + {ipc}]",
        "2: mov rsi, [rip + {root}]",
        "mov rdx, rsi",
        "xor r8d, r8d",
        "call [rip + {ipc}]",
        "jmp 2b",
        root = sym ROOT,
        ipc = sym IPC,
    )
}

/// The root task's id and the address of the Ipc stub, for [`bare_partner`].
static ROOT: AtomicU64 = AtomicU64::new(0);
static IPC: AtomicU64 = AtomicU64::new(0);

/// `rounds` round trips to `partner` with `tag`, in a loop of eight instructions.
fn bare_round_trips(partner: ThreadId, tag: MessageTag, rounds: u64) {
    // SAFETY: the registers that the call changes are named or saved; the partner answers with a message of words.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "push rdi",
            "push rsi",
            "2: mov rsi, [rsp]",
            "mov rdx, rsi",
            "xor r8d, r8d",
            "call [rip + {ipc}]",
            "dec qword ptr [rsp + 8]",
            "jnz 2b",
            "add rsp, 16",
            "pop rbx",
            "pop rbp",
            ipc = sym IPC,
            inout("r9") tag.raw() => _,
            out("rax") _, out("rcx") _, out("rdx") _, inout("rsi") partner.raw() => _, inout("rdi") rounds => _, out("r8") _, out("r10") _,
            out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
}

const STRING_LOG2: u32 = 18;

#[repr(C, align(4096))]
struct Area(UnsafeCell<[u8; 1 << STRING_LOG2]>);

// SAFETY: nothing forms a reference to the content.
unsafe impl Sync for Area {}

static SOURCE: Area = Area(UnsafeCell::new([0; 1 << STRING_LOG2]));
static TARGET: Area = Area(UnsafeCell::new([0; 1 << STRING_LOG2]));

/// Takes strings and answers with an empty message.
extern "C" fn take_strings() -> ! {
    let root = kip().root();
    // SAFETY: the buffer is for strings only.
    unsafe {
        utcb::accept(Acceptor::new(Fpage::NIL, true));
        utcb::set_buffer_register(1, StringDescriptor::new(1 << STRING_LOG2, 1, false).raw());
        utcb::set_buffer_register(2, TARGET.0.get() as u64);
    }
    let mut received = ipc::receive(root);
    loop {
        received = match received {
            Ok(_) => ipc::call(root, Message::new(0)),
            Err(_) => ipc::receive(root),
        };
    }
}

/// A string and the empty answer, by the string's size.
fn strings() {
    let partner = fixture::here(take_strings);
    for size in [1, 64, 512, 4096, 16384, 65536, 262_144] {
        let words = [StringDescriptor::new(size, 1, false).raw(), SOURCE.0.get() as u64];
        measure_at("string-and-answer", size, 1, || {
            ipc::call(partner, Message::new(0).typed_words(&words)).expect("the string arrives");
        });
    }
}

/// One way, as the papers measure it: both sides are loops in assembly around the stub.
fn bare() {
    ROOT.store(kip().root().raw(), Ordering::Relaxed);
    IPC.store(kip().word(x2::kip::IPC), Ordering::Relaxed);
    let (near, far) = (fixture::here(bare_partner), fixture::elsewhere(bare_partner));
    for (test, partner) in [("ipc-bare-across-spaces", far), ("ipc-bare-within-a-space", near)] {
        for words in 0..=7 {
            let tag = MessageTag::new(0, words, 0);
            bare_round_trips(partner, tag, 1);
            let start = now();
            bare_round_trips(partner, tag, AVERAGED);
            report(test, words as u64, (now() - start) / (2 * AVERAGED));
        }
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
    bare();
    strings();
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
