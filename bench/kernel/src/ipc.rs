//! IPC: one way and round trip, within and across spaces, by the number of untyped words.

use core::arch::{asm, naked_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{AVERAGED, count_over_phases, fixture, measure, measure_at, region, report};
use bench_framework::{Range, now};
use l4::ipc::{self, Message};
use l4::{kip, registers, sigma0, space, syscall, thread, utcb};
use x2::message::StringDescriptor;
use x2::{Acceptor, Fpage, MapItem, MessageTag, Rights, ThreadId, Time, Timeouts};

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

/// Answers every message with the sum of its words, and how many they were.
extern "C" fn add() -> ! {
    let mut received = registers::receive(ThreadId::ANY);
    loop {
        received = match received {
            Ok((client, (tag, words))) => {
                let answer = [words.iter().sum(), tag.untyped() as u64, 0, 0, 0, 0, 0];
                registers::reply_wait(client, (MessageTag::new(0, 2, 0), answer))
            }
            Err(_) => registers::receive(ThreadId::ANY),
        };
    }
}

/// Sends `R9` as a whole message to `RSI` and waits for its next one, for ever: no compiler in
/// between.
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

/// A [`bare_partner`] in a program that has used an I/O port, [`PORT`], which it gets by the fault
/// of its first access.
#[unsafe(naked)]
extern "C" fn bare_partner_with_ports() -> ! {
    naked_asm!(
        "in al, {port}",
        "jmp {partner}",
        port = const PORT,
        partner = sym bare_partner,
    )
}

/// A port whose register means nothing: that of diagnostic codes.
const PORT: u16 = 0x80;

/// A [`bare_partner_with_ports`] in a space of its own.
fn partner_with_ports() -> ThreadId {
    let ports = Fpage::io(PORT, 0);
    assert_eq!(sigma0::request_ports(ports), Ok(true), "sigma0 gives the root task all ports");
    let partner = fixture::elsewhere(bare_partner_with_ports);
    let fault = ipc::receive(partner).expect("the fault of its access");
    assert_eq!(fault.word(0), ports.raw(), "it has no ports yet");
    ipc::send(partner, Message::new(0).map_item(MapItem::map(ports, 0))).expect("it waits for the port");
    partner
}

/// Answers each message with the whole message `R9` (its tag), as a server: it receives from any
/// thread.
#[unsafe(naked)]
extern "C" fn bare_server() -> ! {
    naked_asm!(
        "xor esi, esi",
        "2: mov rdx, -1",
        "xor r8d, r8d",
        "call [rip + {ipc}]",
        "jmp 2b",
        ipc = sym IPC,
    )
}

/// The id by which a [`bare_partner`] knows the root task, and the address of the Ipc stub.
static ROOT: AtomicU64 = AtomicU64::new(0);
static IPC: AtomicU64 = AtomicU64::new(0);

/// `rounds` round trips to `partner` with `tag`, in a loop of eight instructions.
fn bare_round_trips(partner: ThreadId, tag: MessageTag, rounds: u64) {
    // SAFETY: the registers that the call changes are named or saved; the partner answers with a
    // message of words.
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

/// Round trips in a loop that has the work of a convenience interface for each message, 26
/// instructions with the two of the stub: all message registers that processor registers carry come
/// from the UTCB and go there, and the sender is stored. `[RSP]` is how many, and after it come the
/// partner and room for the sender.
macro_rules! message_loop {
    () => {
        concat!(
            "2: mov rsi, [rsp + 8]\n",
            "mov rdx, rsi\n",
            "xor r8d, r8d\n",
            "mov rbp, gs:[0]\n",
            "mov r9, [rbp]\n",
            "mov rax, [rbp + 8]\n",
            "mov rbx, [rbp + 16]\n",
            "mov r10, [rbp + 24]\n",
            "mov r12, [rbp + 32]\n",
            "mov r13, [rbp + 40]\n",
            "mov r14, [rbp + 48]\n",
            "mov r15, [rbp + 56]\n",
            "call [rip + {ipc}]\n",
            "mov [rdi], r9\n",
            "mov [rdi + 8], rax\n",
            "mov [rdi + 16], rbx\n",
            "mov [rdi + 24], r10\n",
            "mov [rdi + 32], r12\n",
            "mov [rdi + 40], r13\n",
            "mov [rdi + 48], r14\n",
            "mov [rdi + 56], r15\n",
            "mov [rsp + 16], rsi\n",
            "dec qword ptr [rsp]\n",
            "jnz 2b",
        )
    };
}

/// A partner like [`bare_partner`], in a [`message_loop`]: it answers with what is in its UTCB, the
/// last message.
#[unsafe(naked)]
extern "C" fn loop_partner() -> ! {
    naked_asm!(
        "push 0",
        "push qword ptr [rip + {root}]",
        "push -1",
        "xor esi, esi",
        "mov rdx, [rsp + 8]",
        "xor r8d, r8d",
        "call [rip + {ipc}]",
        "mov [rdi], r9",
        message_loop!(),
        "ud2",
        root = sym ROOT,
        ipc = sym IPC,
    )
}

/// `rounds` round trips to a [`loop_partner`] with `tag`, in the same loop.
fn loop_round_trips(partner: ThreadId, tag: MessageTag, rounds: u64) {
    // SAFETY: as in [`bare_round_trips`]; the message registers in the UTCB mean nothing to Rust.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "push 0",
            "push rsi",
            "push rdi",
            "mov rbp, gs:[0]",
            "mov [rbp], r9",
            message_loop!(),
            "add rsp, 24",
            "pop rbx",
            "pop rbp",
            ipc = sym IPC,
            inout("r9") tag.raw() => _,
            out("rax") _, out("rcx") _, out("rdx") _, inout("rsi") partner.raw() => _, inout("rdi") rounds => _, out("r8") _, out("r10") _,
            out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
}

/// The numbers of words that messages have: all that are possible.
const WORDS: Range = Range::linear(0, 63, 1);
/// Words at which the plugin counts: none, all that registers hold, the first that memory holds,
/// all.
const COUNTED: [u64; 4] = [0, 7, 8, 63];
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
    let (near, far) = (fixture::here(take_strings), fixture::elsewhere(take_strings));
    for size in Range::geometric(1, 1 << STRING_LOG2, 4).values() {
        let words = [StringDescriptor::new(size, 1, false).raw(), SOURCE.0.get() as u64];
        for (test, partner) in [("string-and-answer", near), ("string-and-answer-across-spaces", far)] {
            measure_at(test, size, 1, || {
                ipc::call(partner, Message::new(0).typed_words(&words)).expect("the string arrives");
            });
        }
    }
}

/// Measures round trips to `partner` by the number of words; words beyond the seventh are in the
/// UTCBs. A round trip has `operations` operations, and the result is the cost of one.
fn bare_series(test: &'static str, partner: ThreadId, operations: u64) {
    series(test, partner, operations, bare_round_trips);
}

/// Measures as [`bare_series`] does, by these round trips.
fn series(
    test: &'static str,
    partner: ThreadId,
    operations: u64,
    round_trips: fn(ThreadId, MessageTag, u64),
) {
    for words in WORDS.values() {
        let tag = MessageTag::new(0, words as usize, 0);
        round_trips(partner, tag, 1);
        let start = now();
        round_trips(partner, tag, AVERAGED);
        report(test, words, (now() - start) / (operations * AVERAGED));
        if COUNTED.contains(&words) {
            region(format_args!("{test} at {words}"), operations * AVERAGED, || {
                round_trips(partner, tag, AVERAGED);
            });
        }
    }
}

/// Measures IPC as the papers do: both sides are loops in assembly around the stub.
fn bare() {
    ROOT.store(kip().root().raw(), Ordering::Relaxed);
    IPC.store(kip().word(x2::kip::IPC), Ordering::Relaxed);
    bare_series("ipc-bare-across-spaces", fixture::elsewhere(bare_partner), 2);
    bare_series("ipc-bare-within-a-space", fixture::here(bare_partner), 2);
    bare_series("call-to-open-wait-server-bare", fixture::elsewhere(bare_server), 1);
    series("ipc-loop-across-spaces", fixture::elsewhere(loop_partner), 2, loop_round_trips);
    series("ipc-loop-within-a-space", fixture::here(loop_partner), 2, loop_round_trips);
    bare_series("ipc-bare-across-spaces-with-ports", partner_with_ports(), 2);
    // The stubs of Ipc and Lipc are the same: what makes it local IPC are local ids.
    ROOT.store(utcb::my_local_id().raw(), Ordering::Relaxed);
    let partner = thread::local_id_of(fixture::here(bare_partner)).expect("a thread of this space");
    bare_series("lipc-bare-within-a-space", partner, 2);
}

/// Takes a page at [`WINDOW`] with each message, and answers.
extern "C" fn take_pages() -> ! {
    let root = kip().root();
    // SAFETY: nothing of the program lies in the window.
    unsafe { utcb::accept(Acceptor::new(Fpage::memory(WINDOW, 12), false)) };
    let mut received = ipc::receive(root);
    loop {
        received = match received {
            Ok(_) => ipc::call(root, Message::new(0)),
            Err(_) => ipc::receive(root),
        };
    }
}

/// An address at which the partners' spaces have nothing mapped.
const WINDOW: u64 = 0x5000_0000_0000;

/// A page mapped by a message, and the answer; then it is taken back, so that it is not there the
/// next time.
fn map_items() {
    let partner = fixture::elsewhere(take_pages);
    let page = Fpage::memory(SOURCE.0.get() as u64, 12).with_rights(Rights::ALL);
    measure("map-item-and-unmap", || {
        let item = MapItem::map(page.with_rights(Rights::READ_WRITE), WINDOW);
        ipc::call(partner, Message::new(0).map_item(item)).expect("the page arrives");
        space::unmap(&mut [page]);
    });
}

/// What a thesis compared (Darwin, table 9.1): one operation of an interface, four words there and
/// two back, by a stub that keeps them in registers. How large it is, is measured, too.
#[unsafe(no_mangle)]
#[inline(never)]
fn call_by_stub(server: ThreadId, words: [u64; 4]) -> ipc::Result<[u64; 2]> {
    let [a, b, c, d] = words;
    let (_, [a, b, ..]) = registers::call(server, (MessageTag::new(1, 4, 0), [a, b, c, d, 0, 0, 0]))?;
    Ok([a, b])
}

/// A call of four words and an answer of two by the convenience interface: it writes the message
/// into the UTCB, and reads the answer from there.
#[unsafe(no_mangle)]
#[inline(never)]
fn call_by_convenience_interface(server: ThreadId, words: [u64; 4]) -> ipc::Result<[u64; 2]> {
    let message = words.iter().fold(Message::new(1), |message, &word| message.word(word));
    let answer = ipc::call(server, message)?;
    Ok([answer.word(0), answer.word(1)])
}

/// The same word carried in the ways that a system call can take to a server: in processor
/// registers by the bare stub, by the convenience interface, and as 64 bytes of memory that the
/// kernel copies. (Foreign system calls are measured elsewhere.)
fn transports() {
    let (server, copier) = (fixture::elsewhere(serve), fixture::elsewhere(take_strings));
    measure("transport-registers", || {
        let message = (MessageTag::new(1, 7, 0), [1, 2, 3, 4, 5, 6, 7]);
        registers::ipc(server, server, Timeouts::NEVER, message).expect("the server answers");
    });
    measure("transport-convenience", || {
        let message = Message::with_words(1, &[1, 2, 3, 4, 5, 6, 7]);
        ipc::call(server, message).expect("the server answers");
    });
    let words = [StringDescriptor::new(64, 1, false).raw(), SOURCE.0.get() as u64];
    measure("transport-copied-arguments", || {
        ipc::call(copier, Message::new(0).typed_words(&words)).expect("the string arrives");
    });
}

/// Calls that wait with a timeout which does not end, and waits that end by it.
fn timeouts() {
    let server = fixture::elsewhere(serve);
    let timeouts = Timeouts::new(Time::NEVER, Time::period(1_000_000));
    measure("call-with-timeout", || {
        ipc::call_timeouts(server, Message::new(0), timeouts).expect("the server answers");
    });
    // The clock of an emulated machine jumps while nothing runs: only the plugin can count this.
    count_over_phases("timeout-expires", || {
        ipc::receive_timeout(server, Time::period(1)).expect_err("nobody sends");
    });
}

pub(crate) fn run() {
    let (near, far) = (fixture::here(echo), fixture::elsewhere(echo));
    for words in WORDS.values() {
        let tag = MessageTag::new(0, words as usize, 0);
        for (test, partner) in [("ipc-one-way-across-spaces", far), ("ipc-one-way-within-a-space", near)] {
            measure_at(test, words, 2, || {
                ipc::ipc(partner, partner, Timeouts::NEVER, tag).expect("the partner answers");
            });
        }
    }
    let adder = fixture::elsewhere(add);
    for (test, call) in [
        ("call-by-stub", call_by_stub as fn(_, _) -> _),
        ("call-by-convenience-interface", call_by_convenience_interface),
    ] {
        measure(test, || assert_eq!(call(adder, [1, 2, 3, 4]), Ok([10, 4])));
    }
    bare();
    strings();
    map_items();
    transports();
    timeouts();
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
