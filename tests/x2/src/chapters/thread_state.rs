//! Tests of ThreadState and recall (docs/src/architecture.md, K15;
//! docs/src/reference/extensions.md, "ThreadState").

use crate::framework::arena;
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, image_fault_answer, new_id, state_of};
use crate::framework::tests;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::extension::{self, Registers};
use l4::ipc::{self, Message};
use l4::{syscall, thread, utcb};
use x2::control::ThreadState;
use x2::extension::{RECALLED, thread_state};
use x2::message::StringDescriptor;
use x2::protocol::{self, exception};
use x2::{Acceptor, ErrorCode, Fpage, ThreadId};

tests! {
    TST0001 [EXT 6.1] "the registers of a waiting thread are read as it will return with them" read_waiting;
    TST0002 [EXT 6.1] "the registers of a thread that waits for an answer can be written" write_faulted;
    TST0003 [EXT 6.1] "a running thread's registers are out of reach, a halted one's are not" running;
    TST0004 [EXT 6.4] "only the owner may" owner_only;
    TST0005 [EXT 6.2] "addresses that are no user's are refused, and flags are masked" wrong_registers;
    TST0006 [EXT 6.1] "FS base and GS base are read and written; GS base 0 is the thread's own" bases;
    TST0007 [EXT 6.1] "the extended state is read and written" extended_state;
    TST0008 [EXT 6.1] "a thread without extended state has the initial one" initial_extended_state;
    TST0009 [EXT 6.2] "images that the processor would refuse are refused" wrong_images;
    TST0010 [EXT 6.2, EXT 1.2ab] "buffers that are not the caller's are refused before any change" wrong_buffers;
    TST0011 [EXT 6.3] "a looping thread is recalled" recall_running;
    TST0012 [EXT 6.3] "a thread that waits is recalled when its IPC is over" recall_waiting;
    TST0013 [EXT 6.3] "a thread that waits for an answer is recalled before its next instruction" recall_answered;
    TST0014 [EXT 6.3] "recalling twice is recalling once" recall_twice;
    TST0018 [EXT 6.3] "a halted thread is recalled without running, and stays halted" recall_halted;
    TST0019 [EXT 6.3] "of a halted thread is told what it does, so that its IPC can be ended for a recall" recall_halted_in_ipc;
    TST0020 [EXT 6.3] "a thread whose message lacks a page is told to be in its IPC, which can be ended for a recall" recall_in_transfer;
    TST0015 [EXT 6.2] "undefined control bits are refused" undefined_bits;
    TST0017 [EXT 6.1] "a call that reads and writes writes what the caller gave it" exchange;
    TST0016 [EXT 6.1] "a tag that is none, written to a waiting sender, is sent as an empty message" malformed_tag;
}

/// Makes a thread in an owned space that waits for a message from the test.
fn waiting() -> ThreadId {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        let word = ipc::receive(me).expect("the test sends").word(0);
        ipc::send(me, Message::with_words(1, &[word])).expect("the owner is in reach");
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

/// The counter of a thread that counts until it is stopped.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn counting() -> ThreadId {
    COUNT.store(0, Ordering::Relaxed);
    let thread = confined::spawn(&confined::space(), || {
        loop {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
    });
    while COUNT.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    thread
}

fn read_waiting() {
    let thread = waiting();
    let registers = extension::read_registers(thread).unwrap();
    let told = thread::inspect(thread).unwrap();
    assert_eq!((registers.rip(), registers.get(exception::RSP)), (told.ip, told.sp));
    assert_eq!(
        ipc::call(thread, Message::with_words(0, &[44])).unwrap().word(0),
        44,
        "it goes on undisturbed"
    );
}

fn write_faulted() {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        let value: u64;
        // SAFETY: the handler resumes the thread after the instruction, with a value in RAX.
        unsafe { asm!("ud2", out("rax") value) };
        ipc::send(me, Message::with_words(1, &[value])).expect("the owner is in reach");
    });
    let report = ipc::receive(thread).unwrap();
    let frame: [u64; 18] = core::array::from_fn(|index| report.word(index));
    let mut registers = extension::read_registers(thread).unwrap();
    assert_eq!(registers.0[..18], frame, "the same as in the message");
    registers.set(exception::RIP, registers.rip() + 2);
    registers.set(exception::RAX, 31);
    // SAFETY: the thread continues after the instruction.
    let state = unsafe { extension::write_registers(thread, &registers) }.unwrap();
    assert!(state.awaits_answer() && !state.is_halted());
    // The answer itself sets the registers again.
    let told = ipc::call(thread, Message::with_words(0, &registers.0[..18])).unwrap();
    assert_eq!(told.word(0), 31);
}

fn running() {
    let thread = counting();
    assert_eq!(extension::read_registers(thread), Err(Some(ErrorCode::InvalidParameter)));
    assert!(extension::state(thread).is_ok());
    thread::stop(thread).unwrap();
    let registers = extension::read_registers(thread).unwrap();
    assert!(crate::framework::image::range().contains(&registers.rip()));
    assert!(extension::state(thread).unwrap().is_halted());
}

fn owner_only() {
    let me = utcb::my_global_id();
    assert_eq!(extension::read_registers(me), Err(Some(ErrorCode::NoPrivilege)));
    let unowned = Space::new().spawn(move || {
        let _ = ipc::receive(me);
    });
    assert_eq!(extension::state(unowned), Err(Some(ErrorCode::NoPrivilege)));
    assert_eq!(extension::recall(new_id()), Err(Some(ErrorCode::InvalidThread)));
    assert_eq!(extension::recall(ThreadId::NIL), Err(Some(ErrorCode::InvalidThread)));
}

fn wrong_registers() {
    let thread = waiting();
    let good = extension::read_registers(thread).unwrap();
    for index in [exception::RIP, Registers::FS_BASE, Registers::GS_BASE] {
        for address in [1 << 47, (1 << 47) - 4096, 0xffff_8000_0000_0000, u64::MAX] {
            let mut registers = good;
            registers.set(index, address);
            // SAFETY: the call fails.
            let result = unsafe { extension::write_registers(thread, &registers) };
            assert_eq!(result, Err(Some(ErrorCode::InvalidParameter)));
        }
    }
    assert_eq!(extension::read_registers(thread).unwrap(), good);
    let mut registers = good;
    registers.set(exception::RFLAGS, u64::MAX);
    // SAFETY: the thread does not run before it has its own registers again.
    unsafe { extension::write_registers(thread, &registers) }.unwrap();
    let flags = extension::read_registers(thread).unwrap().get(exception::RFLAGS);
    // A debugger needs the trap flag.
    assert_eq!(flags, x2::control::PROGRAM_FLAGS | 0x202, "no I/O privilege");
    // SAFETY: these are the thread's own registers.
    unsafe { extension::write_registers(thread, &good) }.unwrap();
}

fn bases() {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        ipc::receive(me).expect("the test sends");
        let word: u64;
        // SAFETY: FS base points to a page of the program.
        unsafe { asm!("mov {}, fs:[8]", out(reg) word) };
        ipc::call(me, Message::with_words(1, &[word])).expect("the owner is in reach");
        ipc::send(me, Message::with_words(2, &[utcb::pointer()])).expect("the owner is in reach");
    });
    await_state(thread, ThreadState::Waiting);
    let page = arena::page();
    page.write(1, 0xabc);
    let mut registers = extension::read_registers(thread).unwrap();
    let own = registers.get(Registers::GS_BASE);
    registers.set(Registers::FS_BASE, page.address);
    registers.set(Registers::GS_BASE, page.address);
    // SAFETY: the program uses FS as the test sets it, and GS only after it was set back.
    unsafe { extension::write_registers(thread, &registers) }.unwrap();
    assert_eq!(extension::read_registers(thread).unwrap().get(Registers::GS_BASE), page.address);
    registers.set(Registers::GS_BASE, 0);
    // SAFETY: the program uses GS only after it was set back here.
    unsafe { extension::write_registers(thread, &registers) }.unwrap();
    assert_eq!(extension::read_registers(thread).unwrap().get(Registers::GS_BASE), own);
    // The thread's message; if the space does not have the arena's page, the runner serves the
    // fault.
    let told = ipc::call(thread, Message::new(0)).unwrap();
    assert_eq!((told.tag.label(), told.word(0)), (1, 0xabc));
    let told = ipc::call(thread, Message::new(0)).unwrap();
    assert_eq!(told.word(0), thread::local_id_of(thread).map_or(0, ThreadId::raw));
}

/// Offset of XMM3 in an image.
pub(super) const XMM3: usize = 160 + 3 * 16;

/// An image of the extended state.
#[repr(C, align(64))]
pub(super) struct Image(pub(super) [u8; 4096]);

impl Image {
    pub(super) const fn new() -> Self {
        Self([0; 4096])
    }

    pub(super) fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|index| self.0[at + index]))
    }

    pub(super) fn set_word(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

/// Makes a thread in an owned space with 0x77 in XMM3 that waits for a message and then reports
/// XMM3.
fn with_vector() -> ThreadId {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        let value: u64;
        // SAFETY: Rust code of this program does not use the vector registers.
        unsafe { asm!("movq xmm3, {}", in(reg) 0x77u64) };
        ipc::receive(me).expect("the test sends");
        // SAFETY: Rust code of this program does not use the vector registers.
        unsafe { asm!("movq {}, xmm3", out(reg) value) };
        ipc::send(me, Message::with_words(1, &[value])).expect("the owner is in reach");
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

fn extended_state() {
    let thread = with_vector();
    let mut image = Image::new();
    let size = extension::read_extended_state(thread, &mut image.0).unwrap();
    assert!(size >= 576);
    assert_eq!(image.word(XMM3), 0x77);
    assert_ne!(image.word(512) & 2, 0, "the image holds SSE");
    image.set_word(XMM3, 0x1122_3344_5566_7788);
    extension::write_extended_state(thread, &image.0[..size]).unwrap();
    assert_eq!(ipc::call(thread, Message::new(0)).unwrap().word(0), 0x1122_3344_5566_7788);
}

fn initial_extended_state() {
    let thread = waiting();
    let mut image = Image::new();
    let size = extension::read_extended_state(thread, &mut image.0).unwrap();
    assert_eq!((image.word(0) & 0xffff, image.word(24) & 0xffff_ffff), (0x37f, 0x1f80));
    image.set_word(XMM3, 9);
    image.set_word(512, 3);
    extension::write_extended_state(thread, &image.0[..size]).unwrap();
    let mut again = Image::new();
    extension::read_extended_state(thread, &mut again.0).unwrap();
    assert_eq!(again.word(XMM3), 9);
    assert_eq!(ipc::call(thread, Message::with_words(0, &[4])).unwrap().word(0), 4);
}

fn wrong_images() {
    let thread = with_vector();
    let mut good = Image::new();
    let size = extension::read_extended_state(thread, &mut good.0).unwrap();
    for (at, value) in [(512, 1 << 9), (512, u64::MAX), (520, 1 << 63), (528, 1), (568, 1), (24, 1 << 17)] {
        let mut image = Image(good.0);
        image.set_word(at, value);
        let result = extension::write_extended_state(thread, &image.0[..size]);
        assert_eq!(result, Err(Some(ErrorCode::InvalidParameter)), "{at} {value:#x}");
    }
    assert_eq!(ipc::call(thread, Message::new(0)).unwrap().word(0), 0x77, "nothing has changed");
}

fn wrong_buffers() {
    let thread = with_vector();
    let page = arena::page().address;
    let far = 0x4000_0000_0000;
    for (buffer, size) in
        [(far, 832), (page, 575), (page, 0), (u64::MAX - 100, 832), (0xffff_8000_0000_0000, 832)]
    {
        for control in [thread_state::READ_EXTENDED, thread_state::WRITE_EXTENDED] {
            let control = control | thread_state::RECALL;
            // SAFETY: the kernel refuses the call.
            let (result, ..) = unsafe { syscall::thread_state(thread.raw(), control, buffer, size) };
            assert_eq!(
                (result, utcb::error_code()),
                (0, Some(ErrorCode::InvalidParameter)),
                "{buffer:#x} {size}"
            );
        }
    }
    assert!(!extension::state(thread).unwrap().is_recalled());
}

/// The registers of a thread whose recall has been `received`.
pub(super) fn expect_recall(received: ipc::Received) -> [u64; 18] {
    assert_eq!(protocol::of(received.tag), protocol::ARCHITECTURE_EXCEPTION);
    assert_eq!(received.word(exception::NUMBER - 1), RECALLED);
    core::array::from_fn(|index| received.word(index))
}

fn recall_running() {
    let thread = counting();
    extension::recall(thread).unwrap();
    let frame = expect_recall(ipc::receive(thread).unwrap());
    let seen = COUNT.load(Ordering::Relaxed);
    thread::yield_now();
    assert_eq!(COUNT.load(Ordering::Relaxed), seen, "it does not run");
    ipc::send(thread, Message::with_words(0, &frame)).unwrap();
    while COUNT.load(Ordering::Relaxed) == seen {
        thread::yield_now();
    }
}

fn recall_waiting() {
    let thread = waiting();
    assert!(!extension::recall(thread).unwrap().is_recalled());
    let state = extension::state(thread).unwrap();
    assert!(state.is_recalled() && !state.awaits_answer());
    let frame = expect_recall(ipc::call(thread, Message::with_words(0, &[12])).unwrap());
    let told = ipc::call(thread, Message::with_words(0, &frame)).unwrap();
    assert_eq!((told.tag.label(), told.word(0)), (1, 12), "the message was not lost");
}

fn recall_answered() {
    let thread = confined::spawn(&confined::space(), || {
        // SAFETY: the handler resumes the thread after the instruction.
        unsafe { asm!("ud2") };
        panic!("the thread ran");
    });
    let report = ipc::receive(thread).unwrap();
    let mut frame: [u64; 18] = core::array::from_fn(|index| report.word(index));
    extension::recall(thread).unwrap();
    frame[exception::RIP - 1] += 2;
    let again = expect_recall(ipc::call(thread, Message::with_words(0, &frame)).unwrap());
    assert_eq!(again[exception::RIP - 1], frame[exception::RIP - 1]);
}

fn recall_twice() {
    let thread = counting();
    extension::recall(thread).unwrap();
    assert!(extension::recall(thread).unwrap().is_recalled());
    let frame = expect_recall(ipc::receive(thread).unwrap());
    let seen = COUNT.load(Ordering::Relaxed);
    ipc::send(thread, Message::with_words(0, &frame)).unwrap();
    while COUNT.load(Ordering::Relaxed) == seen {
        thread::yield_now();
    }
}

fn recall_halted() {
    let thread = counting();
    thread::stop(thread).unwrap();
    for _ in 0..2 {
        assert!(extension::recall(thread).unwrap().is_halted());
        let frame = expect_recall(ipc::receive(thread).unwrap());
        let state = extension::state(thread).unwrap();
        assert!(state.is_halted() && state.awaits_answer() && !state.is_recalled());
        ipc::send(thread, Message::with_words(0, &frame)).unwrap();
        thread::yield_now();
    }
    // A thread that is recalled first and then stopped sends its message as well.
    let running = counting();
    extension::recall(running).unwrap();
    thread::stop(running).unwrap();
    let frame = expect_recall(ipc::receive(running).unwrap());
    ipc::send(running, Message::with_words(0, &frame)).unwrap();
    thread::yield_now();
    for halted in [thread, running] {
        let state = extension::state(halted).unwrap();
        assert!(state.is_halted() && !state.awaits_answer());
    }
    let seen = COUNT.load(Ordering::Relaxed);
    thread::yield_now();
    assert_eq!(COUNT.load(Ordering::Relaxed), seen, "they do not run");
    thread::resume(running).unwrap();
    while COUNT.load(Ordering::Relaxed) == seen {
        thread::yield_now();
    }
}

fn recall_halted_in_ipc() {
    let thread = waiting();
    thread::stop(thread).unwrap();
    assert_eq!(state_of(thread), ThreadState::Inactive);
    let state = extension::recall(thread).unwrap();
    assert!(state.is_halted() && ThreadState::from_raw(state.0 & 0xf) == Some(ThreadState::Waiting));
    thread::abort_ipc(thread).unwrap();
    expect_recall(ipc::receive(thread).unwrap());
    assert!(extension::state(thread).unwrap().is_halted());
}

/// A recall of a thread in a transfer must end the transfer: no answer would ever come.
fn recall_in_transfer() {
    let me = utcb::my_global_id();
    let space = confined::space();
    let page = arena::page().address;
    let silent = confined::spawn(&space, move || {
        arena::read_at(page);
        // SAFETY: the buffer is a page that no other code uses, and no mappings are accepted.
        unsafe {
            utcb::accept(Acceptor::new(Fpage::NIL, true));
            utcb::set_buffer_register(1, StringDescriptor::new(4096, 1, false).raw());
            utcb::set_buffer_register(2, page);
        }
        let _ = ipc::receive(ThreadId::ANY);
        let _ = ipc::receive(me);
    });
    await_state(silent, ThreadState::Waiting);
    let absent = 0x5000_0000_0000;
    let thread = confined::spawn(&space, move || {
        ipc::receive(me).expect("the test lets it go");
        let message = Message::new(4).typed_words(&[StringDescriptor::new(64, 1, false).raw(), absent]);
        let _ = ipc::call(silent, message);
    });
    await_state(thread, ThreadState::Waiting);
    extension::set_handlers(thread, Some(me), Some(me)).unwrap();
    let mut message = ipc::call(thread, Message::new(0)).unwrap();
    while let Some(answer) = image_fault_answer(message) {
        message = ipc::call(thread, answer).unwrap();
    }
    assert_eq!((protocol::of(message.tag), message.word(0)), (protocol::PAGE_FAULT, absent));
    let state = extension::recall(thread).unwrap();
    assert!(state.awaits_answer());
    assert_eq!(ThreadState::from_raw(state.0 & 0xf), Some(ThreadState::Sending));
    thread::abort_ipc(thread).unwrap();
    expect_recall(ipc::receive(thread).unwrap());
}

fn undefined_bits() {
    let thread = waiting();
    for bit in 9..64 {
        // SAFETY: the kernel refuses the call.
        let (result, ..) = unsafe { syscall::thread_state(thread.raw(), 1 << bit, 0, 0) };
        assert_eq!((result, utcb::error_code()), (0, Some(ErrorCode::InvalidParameter)));
    }
}

fn malformed_tag() {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        ipc::send(me, Message::with_words(5, &[1, 2])).expect("the owner is in reach");
        ipc::send(me, Message::with_words(6, &[3])).expect("the owner is in reach");
    });
    await_state(thread, ThreadState::PendingSend);
    let mut registers = extension::read_registers(thread).unwrap();
    // MR0: 63 untyped and 63 typed words.
    registers.set(exception::R9, 7 << 16 | 63 << 6 | 63);
    // SAFETY: the program does not use R9 after the call.
    unsafe { extension::write_registers(thread, &registers) }.unwrap();
    let received = ipc::receive(thread).unwrap();
    assert_eq!((received.tag.label(), received.tag.untyped(), received.tag.typed()), (0, 0, 0));
    let next = ipc::receive(thread).unwrap();
    assert_eq!((next.tag.label(), next.word(0)), (6, 3), "the sender goes on");
}

fn exchange() {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        let value: u64;
        // SAFETY: the handler resumes the thread after the instruction, with a value in RAX.
        unsafe { asm!("mov eax, 7", "ud2", out("rax") value) };
        ipc::send(me, Message::with_words(1, &[value])).expect("the owner is in reach");
    });
    ipc::receive(thread).unwrap();
    let mut registers = extension::read_registers(thread).unwrap();
    assert_eq!(registers.get(exception::RAX), 7);
    registers.set(exception::RAX, 8);
    for (index, &value) in registers.0.iter().enumerate() {
        utcb::set_message_register(index + 1, value);
    }
    let both = thread_state::READ_REGISTERS | thread_state::WRITE_REGISTERS;
    // SAFETY: the thread does not depend on RAX before it continues.
    let (result, ..) = unsafe { syscall::thread_state(thread.raw(), both, 0, 0) };
    assert_eq!(result, 1);
    assert_eq!(utcb::message_register(exception::RAX), 7, "what it had");
    assert_eq!(extension::read_registers(thread).unwrap().get(exception::RAX), 8, "what it has");
}
