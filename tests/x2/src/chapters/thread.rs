//! Tests of threads: ids, ThreadControl, ExchangeRegisters, deletion in every state (ABI 12.1,
//! 12.2; X.2 rules 5.1-5.34).

use crate::framework::fixture::{
    Space, activate, await_state, new_id, new_root_utcb, root_utcb_area, spawn, state_of, with_version,
};
use crate::framework::{arena, image, tests};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::syscall::ExchangedRegisters;
use l4::thread::{self, ThreadControl};
use l4::{kip, utcb};
use x2::control::{ExchangeControl, ThreadState};
use x2::{ErrorCode, IpcError, IpcErrorKind, IpcPhase, ThreadId, Time};

tests! {
    THR0001 [13.1] "the id words of the UTCB are the thread's" own_ids;
    THR0002 [5.23ac, 13.4] "ExchangeRegisters turns a global id into a local one and back" id_conversion;
    THR0003 [5.23a, 5.2] "ExchangeRegisters on what is no thread of the space is error 2" exchange_no_thread;
    THR0004 [5.4a, 6.1a] "only privileged spaces may call ThreadControl and SpaceControl" not_privileged;
    THR0005 [5.1, 5.5, 5.22] "an id that no thread can have is error 2" unavailable_destinations;
    THR0006 [5.6] "a space that does not exist is error 3" invalid_spaces;
    THR0007 [5.7] "a scheduler that does not exist is error 4" invalid_schedulers;
    THR0008 [5.9] "a UTCB location that is none is error 6" invalid_locations;
    THR0009 [5.4b] "a failed creation leaves no thread behind" failure_changes_nothing;
    THR0010 [5.6, 5.17, ABI 12.2] "deletion is idempotent, and not of oneself" deletion;
    THR0011 [5.3] "a deleted number can be used again, with any version" reuse_of_numbers;
    THR0012 [5.15, 7.8, ABI 19.7] "a sender to a deleted thread wakes with error 2" deleted_receiver;
    THR0013 [5.15, 7.8] "a receiver from a deleted thread wakes with error 2" deleted_sender;
    THR0014 [5.14ad] "a changed version makes the old id no thread's and wakes its partners" version_change;
    THR0015 [5.13, ABI 19.4, ABI 19.7] "a thread starts with its registers zero and its UTCB clean" clean_start;
    THR0016 [5.27, 5.28, 7.10] "a cancelled send or receive ends with error 3 in its phase" cancellation;
    THR0017 [5.27] "aborting a phase that there is not has no effect" abort_of_nothing;
    THR0018 [5.30] "a halted thread does not run until it is resumed" halting;
    THR0019 [5.30] "a thread halted in an IPC still receives" halted_receiver;
    THR0020 [5.24, 5.25, 5.26] "ExchangeRegisters reads and writes SP, IP, flags, handle and pager" reads_and_writes;
    THR0021 [5.33] "flags other than the arithmetic ones cannot be set" flags_are_masked;
    THR0022 [5.16] "deleting the last thread deletes the space" last_thread;
    THR0023 [5.2] "an inactive thread exists but is no thread's partner yet" inactive_thread;
    THR0024 [5.3, ABI 19.7] "many threads come and go" many_threads;
    THR0025 [5.8] "the pager of a new thread need not exist" absent_pager;
    THR0026 [5.10] "the UTCB of an active thread stays where it is" location_stays;
    THR0027 [5.12] "a new thread waits for its pager's message, and for the right one" start_message;
    THR0028 [5.29] "a new instruction pointer counts when the IPC is over" pointer_after_ipc;
    THR0029 [5.32] "one call reads, aborts, writes and halts, in this order" all_in_one_call;
    THR0030 [5.13] "a thread that is started by ExchangeRegisters finds nothing in its message registers" clean_messages;
    THR0031 [5.4abc] "of several errors the first is reported, and none changes anything" first_error;
    THR0032 [5.14c] "a handler, a redirector and a scheduler are none any more under another version" roles_end;
}

fn own_ids() {
    assert!(utcb::my_global_id().is_global() && utcb::my_local_id().is_local());
    assert_eq!(utcb::my_local_id().utcb_pointer(), utcb::pointer());
    assert_eq!(utcb::processor_number(), 0);
    assert_eq!(utcb::pager(), kip().root());
}

fn id_conversion() {
    let other = spawn(|| l4::start::halt());
    let local = thread::inspect(other).unwrap().id;
    assert!(local.is_local());
    assert_eq!(thread::inspect(local).unwrap().id, other);
    assert_eq!(thread::inspect(utcb::my_global_id()).unwrap().id, utcb::my_local_id());
}

const INVALID_THREAD: Option<ErrorCode> = Some(ErrorCode::InvalidThread);

fn exchange_no_thread() {
    let no_threads = [
        ThreadId::NIL,
        ThreadId::ANY,
        ThreadId::ANY_LOCAL,
        new_id(),
        kip().sigma0(),
        ThreadId::interrupt(1),
        with_version(utcb::my_global_id().number(), 2),
        ThreadId::local(utcb::pointer() + 0x40),
        ThreadId::local(root_utcb_area() + 200 * 1024 + 512),
    ];
    for id in no_threads {
        assert_eq!(thread::inspect(id).unwrap_err(), INVALID_THREAD, "{id:?}");
    }
}

fn arguments(space: ThreadId, pager: ThreadId, utcb: Option<u64>) -> ThreadControl {
    ThreadControl { space, scheduler: kip().root(), pager, utcb }
}

fn not_privileged() {
    let me = utcb::my_global_id();
    let other = Space::new().spawn(move || {
        let myself = utcb::my_global_id();
        let id = with_version(myself.number() + 500, 1);
        let create = thread::control(id, arguments(myself, ThreadId::NIL, None));
        assert_eq!(create, Err(Some(ErrorCode::NoPrivilege)));
        assert_eq!(thread::delete(me), Err(Some(ErrorCode::NoPrivilege)));
        let space = l4::space::control(myself, 0, x2::Fpage::NIL, x2::Fpage::NIL, ThreadId::NIL);
        assert_eq!(space, Err(Some(ErrorCode::NoPrivilege)));
        ipc::send(me, Message::new(1)).unwrap();
    });
    ipc::receive(other).unwrap();
}

fn unavailable_destinations() {
    let info = kip().thread_info();
    let root = kip().root();
    let bad = [
        ThreadId::local(utcb::pointer()),
        with_version(info.system_base, 1),
        with_version(info.user_base - 1, 1),
        with_version(1 << info.number_bits, 1),
        ThreadId::from_raw(u64::from(info.user_base + 300) << 32 | 0x40),
    ];
    for id in bad {
        assert_eq!(thread::control(id, arguments(root, ThreadId::NIL, None)), Err(INVALID_THREAD), "{id:?}");
    }
}

fn invalid_spaces() {
    for space in [new_id(), ThreadId::local(utcb::pointer()), ThreadId::interrupt(1), ThreadId::ANY] {
        let result = thread::control(new_id(), arguments(space, ThreadId::NIL, None));
        assert_eq!(result, Err(Some(ErrorCode::InvalidSpace)), "{space:?}");
    }
    // The thread is created active, in a space that is created with it.
    let id = new_id();
    let result = thread::control(id, arguments(id, kip().root(), Some(root_utcb_area())));
    assert_eq!(result, Err(Some(ErrorCode::InvalidSpace)));
}

fn invalid_schedulers() {
    for scheduler in [ThreadId::NIL, new_id(), ThreadId::interrupt(1), ThreadId::ANY] {
        let control = ThreadControl { scheduler, ..arguments(kip().root(), ThreadId::NIL, None) };
        assert_eq!(
            thread::control(new_id(), control),
            Err(Some(ErrorCode::InvalidScheduler)),
            "{scheduler:?}"
        );
    }
}

fn invalid_locations() {
    let root = kip().root();
    let used = utcb::pointer() - x2::utcb::MR0_OFFSET;
    for location in [Some(0), Some(root_utcb_area() + 8), Some(root_utcb_area() - 1024), Some(used), None] {
        let result = thread::control(new_id(), arguments(root, root, location));
        assert_eq!(result, Err(Some(ErrorCode::InvalidUtcbArea)), "{location:x?}");
    }
}

fn failure_changes_nothing() {
    let id = new_id();
    let root = kip().root();
    thread::control(id, arguments(root, root, Some(8))).unwrap_err();
    assert_eq!(thread::inspect(id).unwrap_err(), INVALID_THREAD);
    assert_eq!(ipc::send(id, Message::new(0)).unwrap_err().kind, IpcErrorKind::NonExistingPartner);
    activate(id, root, new_root_utcb()).expect("the id is still free");
}

fn deletion() {
    let id = spawn(|| l4::start::halt());
    assert_eq!(thread::delete(id), Ok(()));
    assert_eq!(thread::delete(id), Ok(()));
    assert_eq!(thread::delete(utcb::my_global_id()), Err(INVALID_THREAD));
    assert_eq!(ipc::send(id, Message::new(0)).unwrap_err().kind, IpcErrorKind::NonExistingPartner);
}

fn reuse_of_numbers() {
    let me = utcb::my_global_id();
    let first = spawn(|| l4::start::halt());
    let location = thread::local_id_of(first).unwrap().utcb_pointer() - x2::utcb::MR0_OFFSET;
    for version in [2, 3, u32::MAX, 1] {
        thread::delete(first).unwrap();
        let again = with_version(first.number(), version);
        activate(again, me, location).expect("the number is free");
        assert_eq!(thread::inspect(again).unwrap().id.utcb_pointer(), location + 512);
        for stale in [1, 2, 3, 4].map(|stale| with_version(first.number(), stale)) {
            assert_eq!(thread::inspect(stale).is_ok(), stale == again, "{stale:?} while there is {again:?}");
        }
    }
}

/// Makes a thread that receives from `partner` and reports the result to the test.
fn waiting_for(partner: ThreadId) -> ThreadId {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        let error = ipc::receive(partner).expect_err("no thread sends");
        ipc::send(me, Message::with_words(1, &[error.raw()])).unwrap();
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

/// Makes a thread that sends to `partner` and reports the result to the test.
fn sending_to(partner: ThreadId) -> ThreadId {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        let error = ipc::call(partner, Message::new(5)).expect_err("no thread receives");
        ipc::send(me, Message::with_words(1, &[error.raw()])).unwrap();
    });
    await_state(thread, ThreadState::PendingSend);
    thread
}

fn expect_error(thread: ThreadId, phase: IpcPhase, kind: IpcErrorKind) {
    let told = ipc::receive(thread).expect("the thread tells");
    assert_eq!(IpcError::from_raw(told.word(0)), Some(IpcError::new(phase, kind)));
}

fn deleted_receiver() {
    let receiver = spawn(|| l4::start::halt());
    let senders = [sending_to(receiver), sending_to(receiver)];
    thread::delete(receiver).unwrap();
    for sender in senders {
        expect_error(sender, IpcPhase::Send, IpcErrorKind::NonExistingPartner);
    }
}

fn deleted_sender() {
    let sender = spawn(|| l4::start::halt());
    let receivers = [waiting_for(sender), waiting_for(sender)];
    thread::delete(sender).unwrap();
    for receiver in receivers {
        expect_error(receiver, IpcPhase::Receive, IpcErrorKind::NonExistingPartner);
    }
}

fn version_change() {
    let me = utcb::my_global_id();
    let changed = spawn(move || {
        let error = ipc::receive(me).expect_err("its IPC is aborted");
        let id = utcb::my_global_id();
        ipc::send(me, Message::with_words(1, &[error.raw(), id.raw()])).unwrap();
    });
    await_state(changed, ThreadState::Waiting);
    let (receiver, sender) = (waiting_for(changed), sending_to(changed));
    let new = with_version(changed.number(), 7);
    thread::control(new, arguments(new, ThreadId::NIL, None)).expect("another version");
    expect_error(receiver, IpcPhase::Receive, IpcErrorKind::NonExistingPartner);
    expect_error(sender, IpcPhase::Send, IpcErrorKind::NonExistingPartner);
    let told = ipc::receive(new).expect("the thread goes on under its new id");
    assert_eq!((told.word(0), told.word(1)), (7, new.raw()), "cancelled while receiving");
    assert_eq!(thread::inspect(changed).unwrap_err(), INVALID_THREAD);
}

/// The registers with which the thread of `clean_start` began, combined by OR.
static REGISTERS: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn report_registers() -> ! {
    core::arch::naked_asm!(
        "or rax, rbx", "or rax, rcx", "or rax, rdx", "or rax, rsi", "or rax, rdi", "or rax, rbp",
        "or rax, r8", "or rax, r9", "or rax, r10", "or rax, r11", "or rax, r12", "or rax, r13", "or rax, r14",
        "or rax, r15", "mov [rip + {registers}], rax", "call {finish}", "ud2",
        registers = sym REGISTERS, finish = sym finish_report,
    )
}

extern "C" fn finish_report() -> ! {
    let expected = [kip().root().raw(), utcb::my_global_id().raw()];
    for index in 8..64 {
        assert_eq!(utcb::message_register(index), 0, "MR{index}");
    }
    for index in 0..33 {
        assert_eq!(utcb::buffer_register(index), 0, "BR{index}");
    }
    assert_eq!([utcb::pager().raw(), utcb::my_global_id().raw()], expected);
    assert!(utcb::exception_handler().is_nil());
    let _ = ipc::send(utcb::pager(), Message::new(crate::framework::runner::PASSED));
    l4::start::halt()
}

fn first_error() {
    let me = utcb::my_global_id();
    let (root, unused, local) = (kip().root(), new_id(), ThreadId::local(utcb::pointer()));
    // Each call also has all the faults whose errors come after the expected one.
    let wrong = move |space, scheduler| ThreadControl { space, scheduler, pager: root, utcb: Some(8) };
    for (id, arguments, error) in [
        (local, wrong(unused, unused), ErrorCode::InvalidThread),
        (new_id(), wrong(unused, unused), ErrorCode::InvalidSpace),
        (new_id(), wrong(root, unused), ErrorCode::InvalidScheduler),
        (new_id(), wrong(root, root), ErrorCode::InvalidUtcbArea),
    ] {
        assert_eq!(thread::control(id, arguments), Err(Some(error)));
    }
    let unprivileged = Space::new().spawn(move || {
        let result = thread::control(local, wrong(unused, unused));
        assert_eq!(result, Err(Some(ErrorCode::NoPrivilege)));
        ipc::send(me, Message::new(1)).unwrap();
    });
    ipc::receive(unprivileged).unwrap();
    // A call that fails must not carry out its valid parts, either.
    let thread = spawn(|| l4::start::halt());
    await_state(thread, ThreadState::Waiting);
    let newer = with_version(thread.number(), 9);
    let control = ThreadControl { space: thread, scheduler: unused, pager: me, utcb: None };
    assert_eq!(thread::control(newer, control), Err(Some(ErrorCode::InvalidScheduler)));
    assert_eq!(thread::inspect(newer).unwrap_err(), INVALID_THREAD);
    let seen = thread::inspect(thread).unwrap();
    assert!(seen.pager == root && seen.state.receiving, "pager and IPC are as before");
}

fn roles_end() {
    let me = utcb::my_global_id();
    let renew = |thread: ThreadId| {
        let newer = with_version(thread.number(), 5);
        let same =
            ThreadControl { space: thread, scheduler: ThreadId::NIL, pager: ThreadId::NIL, utcb: None };
        thread::control(newer, same).expect("another version");
        newer
    };
    let handler = spawn(|| l4::start::halt());
    let line = ThreadId::interrupt(13);
    thread::associate_interrupt(line, handler).expect("the line exists");
    renew(handler);
    let unchanged = x2::control::UNCHANGED;
    let schedule = move |id| thread::schedule(id, unchanged, unchanged, unchanged, unchanged).map(drop);
    assert_eq!(schedule(line), Err(INVALID_THREAD), "the interrupt has no handler");
    // Makes a thread whose scheduler is another thread of its caller's space.
    let space = Space::new();
    let scheduler = space.spawn(|| l4::start::halt());
    let caller = space.spawn(move || {
        loop {
            let id = ThreadId::from_raw(ipc::receive(me).expect("the test says whom").word(0));
            let refused = schedule(id) == Err(Some(ErrorCode::NoPrivilege));
            ipc::send(me, Message::with_words(1, &[refused.into()])).expect("the test waits");
        }
    });
    let scheduled = spawn(|| l4::start::halt());
    thread::control(scheduled, ThreadControl { scheduler, ..arguments(scheduled, ThreadId::NIL, None) })
        .unwrap();
    let is_refused =
        || ipc::call(caller, Message::with_words(0, &[scheduled.raw()])).expect("it answers").word(0) == 1;
    assert!(!is_refused());
    renew(scheduler);
    assert!(is_refused());
    // A message that leaves a space waits for another redirector.
    let redirected = Space::new();
    let waits = || {
        loop {
            let _ = ipc::wait();
        }
    };
    let (redirector, partner) = (spawn(waits), Space::new().spawn(waits));
    let sender = redirected.spawn(move || {
        image::take_from(me);
        ipc::receive(me).expect("the test says when");
        ipc::send(partner, Message::new(0)).expect("it waits");
    });
    await_state(partner, ThreadState::Waiting);
    ipc::receive(sender).unwrap();
    image::give_to(sender);
    await_state(sender, ThreadState::Waiting);
    l4::space::control(sender, 0, x2::Fpage::NIL, x2::Fpage::NIL, redirector).expect("it exists");
    let redirector = renew(redirector);
    await_state(redirector, ThreadState::Waiting);
    ipc::send(sender, Message::new(0)).unwrap();
    await_state(sender, ThreadState::PendingSend);
    assert_eq!([redirector, partner].map(state_of), [ThreadState::Waiting; 2], "neither has got it");
}

fn clean_start() {
    let id = new_id();
    let location = new_root_utcb();
    activate(id, kip().root(), location).unwrap();
    REGISTERS.store(u64::MAX, Ordering::Relaxed);
    let sp = arena::stack(14) + (1 << 14);
    let start = [id.raw(), report_registers as *const () as u64, sp];
    let order = Message::with_words(crate::framework::runner::START, &start);
    assert_eq!(ipc::call(kip().root(), order).unwrap().tag.label(), 1);
    while REGISTERS.load(Ordering::Relaxed) == u64::MAX {
        thread::yield_now();
    }
    assert_eq!(REGISTERS.load(Ordering::Relaxed), 0);
    // The new thread ends the test when its UTCB is clean too.
    l4::start::halt()
}

#[unsafe(naked)]
extern "C" fn report_message_registers() -> ! {
    core::arch::naked_asm!(
        "or rax, rbx", "or rax, r10", "or rax, r12", "or rax, r13", "or rax, r14", "or rax, r15",
        "mov [rip + {registers}], rax", "call {finish}", "ud2",
        registers = sym REGISTERS, finish = sym l4::start::halt,
    )
}

fn clean_messages() {
    let id = new_id();
    activate(id, kip().root(), new_root_utcb()).unwrap();
    REGISTERS.store(u64::MAX, Ordering::Relaxed);
    let sp = arena::stack(14) + (1 << 14);
    // SAFETY: the code needs only a stack.
    unsafe { thread::start(id, report_message_registers as *const () as u64, sp) }.unwrap();
    while REGISTERS.load(Ordering::Relaxed) == u64::MAX {
        thread::yield_now();
    }
    assert_eq!(REGISTERS.load(Ordering::Relaxed), 0);
}

fn cancellation() {
    let busy = spawn(|| l4::start::halt());
    for control in [ExchangeControl::ABORT_IPC, ExchangeControl::CANCEL_SEND] {
        let sender = sending_to(busy);
        // SAFETY: the thread gets an error of its IPC.
        let old =
            unsafe { thread::exchange_registers(sender, control, ExchangedRegisters::default()) }.unwrap();
        assert!(old.state.sending && !old.state.receiving && !old.state.halted);
        expect_error(sender, IpcPhase::Send, IpcErrorKind::Cancelled);
    }
    for control in [ExchangeControl::ABORT_IPC, ExchangeControl::CANCEL_RECEIVE] {
        let receiver = waiting_for(busy);
        // SAFETY: the thread gets an error of its IPC.
        let old =
            unsafe { thread::exchange_registers(receiver, control, ExchangedRegisters::default()) }.unwrap();
        assert!(old.state.receiving && !old.state.sending && !old.state.halted);
        expect_error(receiver, IpcPhase::Receive, IpcErrorKind::Cancelled);
    }
}

fn abort_of_nothing() {
    let busy = spawn(|| l4::start::halt());
    let (sender, receiver) = (sending_to(busy), waiting_for(busy));
    for (thread, control) in
        [(sender, ExchangeControl::CANCEL_RECEIVE), (receiver, ExchangeControl::CANCEL_SEND)]
    {
        // SAFETY: the call does not change the thread.
        unsafe { thread::exchange_registers(thread, control, ExchangedRegisters::default()) }.unwrap();
    }
    assert_eq!((state_of(sender), state_of(receiver)), (ThreadState::PendingSend, ThreadState::Waiting));
    assert_eq!(ipc::receive_timeout(sender, Time::period(2000)).unwrap_err().kind, IpcErrorKind::Timeout);
}

/// Incremented by the thread of `halting`.
static COUNTER: AtomicU64 = AtomicU64::new(0);

fn halting() {
    let counter = spawn(|| {
        loop {
            COUNTER.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    });
    let start = COUNTER.load(Ordering::Relaxed);
    while COUNTER.load(Ordering::Relaxed) == start {
        thread::yield_now();
    }
    assert!(!thread::stop(counter).unwrap().state.halted);
    let stopped = COUNTER.load(Ordering::Relaxed);
    for _ in 0..20 {
        thread::yield_now();
    }
    ipc::sleep(Time::period(3000));
    assert_eq!(COUNTER.load(Ordering::Relaxed), stopped);
    assert_eq!(state_of(counter), ThreadState::Inactive);
    assert!(thread::stop(counter).unwrap().state.halted);
    assert!(thread::resume(counter).unwrap().state.halted);
    while COUNTER.load(Ordering::Relaxed) == stopped {
        thread::yield_now();
    }
}

fn halted_receiver() {
    let me = utcb::my_global_id();
    let receiver = spawn(move || {
        let received = ipc::receive(me).unwrap();
        ipc::send(me, Message::with_words(1, &[received.word(0) + 1])).unwrap();
    });
    await_state(receiver, ThreadState::Waiting);
    assert!(thread::stop(receiver).unwrap().state.receiving);
    ipc::reply(receiver, Message::with_words(0, &[4])).expect("it still receives");
    assert_eq!(ipc::receive_timeout(receiver, Time::period(2000)).unwrap_err().kind, IpcErrorKind::Timeout);
    thread::resume(receiver).unwrap();
    assert_eq!(ipc::receive(receiver).unwrap().word(0), 5);
}

fn reads_and_writes() {
    let other = spawn(|| l4::start::halt());
    await_state(other, ThreadState::Waiting);
    thread::stop(other).unwrap();
    let control = ExchangeControl::SP
        .with(ExchangeControl::IP)
        .with(ExchangeControl::FLAGS)
        .with(ExchangeControl::HANDLE)
        .with(ExchangeControl::PAGER);
    let pager = utcb::my_global_id();
    let values = ExchangedRegisters {
        sp: 0x1000,
        ip: 0x2000,
        flags: 0x41,
        handle: 0x77,
        pager: pager.raw(),
        ..Default::default()
    };
    // SAFETY: the thread is halted and will be deleted.
    let before = unsafe { thread::exchange_registers(other, control, values) }.unwrap();
    // The thread is in a system call, so its IP is after the SYSCALL instruction of a stub.
    assert_eq!(before.ip & !0xfff, kip().word(x2::kip::IPC) & !0xfff);
    assert!(crate::framework::image::range().contains(&before.sp));
    assert_eq!((before.handle, before.pager), (0, kip().root()));
    let after = thread::inspect(other).unwrap();
    assert_eq!((after.sp, after.ip, after.handle, after.pager), (0x1000, 0x2000, 0x77, pager));
    assert_eq!(after.flags & x2::control::USER_FLAGS, 0x41);
}

fn flags_are_masked() {
    let other = spawn(|| l4::start::halt());
    thread::stop(other).unwrap();
    let values = ExchangedRegisters { flags: u64::MAX, ..Default::default() };
    // SAFETY: the thread is halted and will be deleted.
    unsafe { thread::exchange_registers(other, ExchangeControl::FLAGS, values) }.unwrap();
    let flags = thread::inspect(other).unwrap().flags;
    assert_eq!(flags & x2::control::USER_FLAGS, x2::control::USER_FLAGS);
    const INTERRUPTS: u64 = 1 << 9;
    const IO_PRIVILEGE: u64 = 3 << 12;
    const NESTED_AND_VIRTUAL: u64 = 1 << 14 | 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20;
    assert_eq!(flags & (INTERRUPTS | IO_PRIVILEGE | NESTED_AND_VIRTUAL), INTERRUPTS, "flags {flags:#x}");
}

fn last_thread() {
    let me = utcb::my_global_id();
    let space = Space::new();
    let thread = space.spawn(move || ipc::send(me, Message::new(1)).unwrap());
    ipc::receive(thread).unwrap();
    thread::delete(thread).unwrap();
    let result = thread::control(new_id(), arguments(thread, ThreadId::NIL, None));
    assert_eq!(result, Err(Some(ErrorCode::InvalidSpace)));
}

fn inactive_thread() {
    let id = new_id();
    thread::control(id, arguments(kip().root(), ThreadId::NIL, None)).unwrap();
    assert_eq!(state_of(id), ThreadState::Inactive);
    assert_eq!(thread::inspect(id).unwrap_err(), INVALID_THREAD, "ExchangeRegisters wants an active thread");
    // The thread becomes active, and waits, in the second of two steps.
    thread::control(id, arguments(kip().root(), ThreadId::NIL, Some(new_root_utcb()))).unwrap();
    assert_eq!(state_of(id), ThreadState::Inactive);
    thread::control(id, arguments(kip().root(), kip().root(), None)).unwrap();
    assert_eq!(state_of(id), ThreadState::Waiting);
}

fn many_threads() {
    let me = utcb::my_global_id();
    for _ in 0..20 {
        let threads: [ThreadId; 10] = core::array::from_fn(|_| new_id());
        let locations: [u64; 10] =
            core::array::from_fn(|index| root_utcb_area() + (100 + index as u64) * 1024);
        for (id, location) in threads.into_iter().zip(locations) {
            activate(id, me, location).unwrap();
        }
        for id in threads {
            thread::delete(id).unwrap();
        }
    }
}

fn absent_pager() {
    let id = new_id();
    let control = arguments(kip().root(), new_id(), Some(new_root_utcb()));
    thread::control(id, control).expect("the pager may come later");
    assert_eq!(state_of(id), ThreadState::Waiting);
}

fn location_stays() {
    let id = new_id();
    let location = new_root_utcb();
    activate(id, kip().root(), location).unwrap();
    let elsewhere = arguments(kip().root(), ThreadId::NIL, Some(new_root_utcb()));
    assert_eq!(thread::control(id, elsewhere), Err(Some(ErrorCode::InvalidUtcbArea)));
    thread::control(id, arguments(kip().root(), ThreadId::NIL, Some(location))).expect("where it is");
    assert_eq!(thread::local_id_of(id).unwrap().utcb_pointer(), location + x2::utcb::MR0_OFFSET);
}

fn start_message() {
    let me = utcb::my_global_id();
    let id = new_id();
    let control = arguments(kip().root(), me, Some(new_root_utcb()));
    thread::control(id, control).unwrap();
    let stranger = spawn(move || {
        let error =
            ipc::reply(id, Message::with_words(0, &[0x1000, 0x2000])).expect_err("it waits for its pager");
        ipc::send(me, Message::with_words(1, &[error.raw()])).unwrap();
    });
    expect_error(stranger, IpcPhase::Send, IpcErrorKind::Timeout);
    for wrong in [&[][..], &[1], &[1, 2, 3]] {
        ipc::reply(id, Message::with_words(0, wrong)).expect("it takes its pager's messages");
        await_state(id, ThreadState::Waiting);
    }
    // Nothing is mapped at the thread's first instruction: it faults there, with the IP and SP of
    // the message.
    ipc::reply(id, Message::with_words(0, &[0x1000, 0x2000])).expect("it still waits");
    let fault = ipc::receive(id).expect("its page fault");
    assert_eq!((fault.word(0), fault.word(1)), (0x1000, 0x1000));
    assert_eq!(thread::inspect(id).unwrap().sp, 0x2000);
}

fn pointer_after_ipc() {
    let me = utcb::my_global_id();
    let other = spawn(move || {
        let _ = ipc::receive(me);
    });
    await_state(other, ThreadState::Waiting);
    let control = ExchangeControl::SP.with(ExchangeControl::IP).with(ExchangeControl::PAGER);
    let values = ExchangedRegisters { sp: 0x2000, ip: 0x1000, pager: me.raw(), ..Default::default() };
    // SAFETY: the thread faults at its first instruction there, and is deleted.
    unsafe { thread::exchange_registers(other, control, values) }.unwrap();
    assert_eq!(state_of(other), ThreadState::Waiting, "the IPC goes on");
    ipc::send(other, Message::new(1)).expect("it receives");
    let fault = ipc::receive(other).expect("its page fault");
    assert_eq!((fault.word(0), fault.word(1)), (0x1000, 0x1000));
}

fn all_in_one_call() {
    let me = utcb::my_global_id();
    let other = spawn(move || {
        let _ = ipc::receive(me);
    });
    await_state(other, ThreadState::Waiting);
    let control = ExchangeControl::STOP
        .with(ExchangeControl::CANCEL_RECEIVE)
        .with(ExchangeControl::SP)
        .with(ExchangeControl::IP);
    let values = ExchangedRegisters { sp: 0x2000, ip: 0x1000, ..Default::default() };
    // SAFETY: the thread is halted and will be deleted.
    let old = unsafe { thread::exchange_registers(other, control, values) }.unwrap();
    assert!(old.state.receiving && !old.state.halted, "what it was doing before");
    assert!(old.ip != 0x1000 && old.sp != 0x2000);
    let now = thread::inspect(other).unwrap();
    assert_eq!((now.ip, now.sp, now.state.receiving, now.state.halted), (0x1000, 0x2000, false, true));
}
