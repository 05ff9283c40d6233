//! Tests of ownership and confinement (docs/src/architecture.md, K13;
//! docs/src/reference/extensions.md, "Ownership and confinement" and "SpaceOptions").

use crate::framework::arena::{self, read_at};
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, new_id, spawn, state_of};
use crate::framework::{image, tests};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, syscall, utcb};
use x2::control::{ExchangeControl, ThreadState};
use x2::extension::{MapItem, MapOperation, SpaceOption};
use x2::protocol::{self, exception};
use x2::{ErrorCode, Fpage, IpcErrorKind, IpcPhase, Rights, ThreadId, Time, Timeouts};

tests! {
    CNF0001 [EXT 2.2] "an owned thread reaches its own space and its owner" reaches_owner;
    CNF0002 [EXT 2.2] "sending anywhere else is like sending to no thread" sends_nowhere_else;
    CNF0003 [EXT 2.2] "waiting for any other thread is like waiting for none" waits_for_no_other;
    CNF0004 [EXT 3.3] "an opened space can be reached until it is closed" open_and_close;
    CNF0005 [EXT 2.3, 7.2c] "a send that waits when its space is confined fails when it is served" confined_while_waiting;
    CNF0006 [EXT 2.1, EXT 2.4] "pager and exception handler in the UTCB are not believed" handlers_are_copies;
    CNF0007 [EXT 2.6] "KernelInterface and the debugger's instruction are exceptions" no_kernel_conventions;
    CNF0008 [EXT 2.5] "an owned thread cannot exchange registers of others or set its pager" exchange_registers;
    CNF0009 [EXT 2.1, EXT 2.5] "the owner controls the thread by ExchangeRegisters" owner_exchanges_registers;
    CNF0010 [EXT 2.5] "Schedule and ThreadSwitch do not reach others" schedule_reaches_no_other;
    CNF0011 [EXT 3.1] "a space cannot own itself, directly or through others" no_circles;
    CNF0012 [EXT 3.1] "only privileged spaces and the owner use SpaceOptions" privilege;
    CNF0013 [EXT 3.1, EXT 1.2b] "wrong options and values are errors" wrong_values;
    CNF0014 [EXT 2.7] "an orphan's threads halt, and a new owner resumes them" orphans;
    CNF0015 [EXT 2.2] "interrupts are out of reach" no_interrupts;
    CNF0016 [EXT 3.3] "a deleted space closes itself" deleted_space_closes;
    CNF0018 [EXT 3.2] "a quota limits what a space costs, and is given back" quota;
    CNF0019 [EXT 3.2] "a quota is taken out of the owner's" quota_of_owner;
    CNF0020 [EXT 2.1] "a pager that a program chose does not count once its space is owned" pager_chosen_before;
    CNF0021 [EXT 2.2] "an owned space reaches the spaces that it owns itself" reaches_owned;
    CNF0022 [EXT 2.2] "an interrupt is in reach of the owned thread that handles it, and of no other" own_interrupt;
    CNF0017 [EXT 3.3] "not more than eight spaces can be opened" openings_are_bounded;
    CNF0023 [EXT 2.4] "a pager and a handler out of a thread's reach hear of its faults and exceptions, and answer" reports_leave_the_reach;
    CNF0026 [EXT 2.4, 12.3] "a confined pager gives pages to a program of a space that it owns" pager_of_owned;
    CNF0025 [EXT 2.5] "ThreadSwitch gives no thread out of reach the processor" switch_reaches_no_other;
    CNF0027 [EXT 2.9] "a program does not stop its threads, and does not resume those that the owner has stopped" stops_no_thread;
    CNF0028 [EXT 2.9] "a program ends its threads' own IPC, not what the kernel does in their names" ends_own_ipc;
    CNF0024 [EXT 2.4, 5.12] "a thread of an owned space is started by a pager out of its reach" started_from_afar;
}

/// The result of an owned thread's attempt: 0 for success, otherwise the error word.
fn outcome(result: ipc::Result<()>) -> u64 {
    match result {
        Ok(()) => 0,
        Err(error) => error.raw(),
    }
}

/// Runs `attempt` in `space` and returns what it returned.
fn attempt_in(space: &Space, attempt: impl FnOnce() -> u64 + 'static) -> u64 {
    let me = utcb::my_global_id();
    let thread = confined::spawn(space, move || {
        let result = attempt();
        ipc::send(me, Message::with_words(1, &[result])).expect("the owner is in reach");
    });
    ipc::receive(thread).expect("the thread tells").word(0)
}

fn no_partner(phase: IpcPhase) -> u64 {
    x2::IpcError::new(phase, IpcErrorKind::NonExistingPartner).raw()
}

/// Makes a thread of a third space that receives from any thread.
fn stranger() -> ThreadId {
    let thread = Space::new().spawn(|| {
        let _ = ipc::receive(ThreadId::ANY);
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

fn reaches_owner() {
    let space = confined::space();
    let me = utcb::my_global_id();
    let sibling = confined::spawn(&space, move || {
        let got = ipc::receive(ThreadId::ANY).expect("the sibling sends").word(0);
        ipc::send(me, Message::with_words(2, &[got])).expect("the owner is in reach");
    });
    await_state(sibling, ThreadState::Waiting);
    assert_eq!(attempt_in(&space, move || outcome(ipc::send(sibling, Message::with_words(1, &[77])))), 0);
    assert_eq!(ipc::receive(sibling).unwrap().word(0), 77);
}

fn reaches_owned() {
    let (middle, lowest) = (confined::space(), Space::new());
    let me = utcb::my_global_id();
    let thread = lowest.spawn(move || {
        let _ = ipc::receive(me);
    });
    extension::set_owner(lowest.first, middle.first).unwrap();
    await_state(thread, ThreadState::Waiting);
    // The owner's send times out, because the thread waits for the test: so the owner may send to
    // it. For a thread of another owned space the same partner does not exist.
    let attempt = move || outcome(ipc::send_timeout(thread, Message::new(0), Time::ZERO));
    let timeout = x2::IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout).raw();
    assert_eq!(attempt_in(&middle, attempt), timeout);
    assert_eq!(attempt_in(&confined::space(), attempt), no_partner(IpcPhase::Send));
}

fn sends_nowhere_else() {
    let space = confined::space();
    let other = stranger();
    let zero = Time::ZERO;
    let send = move |to: ThreadId| move || outcome(ipc::send_timeout(to, Message::new(0), zero));
    for to in [other, kip().sigma0(), new_id()] {
        assert_eq!(attempt_in(&space, send(to)), no_partner(IpcPhase::Send), "{to:?}");
    }
    assert_eq!(state_of(other), ThreadState::Waiting);
}

fn waits_for_no_other() {
    let space = confined::space();
    let other = stranger();
    for from in [other, kip().sigma0(), ThreadId::interrupt(1)] {
        let wait = move || outcome(ipc::receive_timeout(from, Time::ZERO).map(drop));
        assert_eq!(attempt_in(&space, wait), no_partner(IpcPhase::Receive), "{from:?}");
    }
}

fn open_and_close() {
    let space = confined::space();
    let other = stranger();
    extension::set_open(space.first, other, true).unwrap();
    let third = stranger();
    let elsewhere = move || outcome(ipc::send_timeout(third, Message::new(0), Time::ZERO));
    assert_eq!(attempt_in(&space, elsewhere), no_partner(IpcPhase::Send), "another one was opened");
    assert_eq!(attempt_in(&space, move || outcome(ipc::send(other, Message::new(0)))), 0);
    extension::set_open(space.first, other, false).unwrap();
    let again = move || outcome(ipc::send_timeout(other, Message::new(0), Time::ZERO));
    assert_eq!(attempt_in(&space, again), no_partner(IpcPhase::Send));
}

fn confined_while_waiting() {
    let space = Space::new();
    let me = utcb::my_global_id();
    let busy = Space::new().spawn(move || {
        ipc::receive(me).expect("the test says when");
        let _ = ipc::receive_timeout(ThreadId::ANY, Time::period(1000));
        ipc::send(me, Message::new(9)).expect("the test waits");
    });
    let sender = space.spawn(move || {
        let result = outcome(ipc::send(busy, Message::new(0)));
        ipc::send(me, Message::with_words(1, &[result])).expect("the test waits");
    });
    await_state(sender, ThreadState::PendingSend);
    extension::set_owner(space.first, kip().root()).unwrap();
    ipc::send(busy, Message::new(0)).unwrap();
    assert_eq!(ipc::receive(sender).unwrap().word(0), no_partner(IpcPhase::Send));
    assert_eq!(ipc::receive(busy).unwrap().tag.label(), 9);
}

fn handlers_are_copies() {
    let space = confined::space();
    let thief = spawn(|| {
        let _ = ipc::receive(ThreadId::ANY);
        panic!("the thief got a message");
    });
    let thread = confined::spawn(&space, move || {
        utcb::set_pager(thief);
        utcb::set_exception_handler(thief);
        // The space has not accessed this page of the program, so the page fault goes to the true
        // pager.
        read_at(arena::page().address);
        // SAFETY: the handler of the exception does not resume the thread.
        unsafe { core::arch::asm!("ud2") };
    });
    let report = ipc::receive(thread).unwrap();
    assert_eq!(protocol::of(report.tag), protocol::ARCHITECTURE_EXCEPTION);
    assert_eq!(report.word(exception::NUMBER - 1), 6);
    assert_eq!(state_of(thief), ThreadState::Waiting);
}

/// The thread chooses `pager` by ExchangeRegisters, and then root again by its UTCB. Not inlined: a
/// second call uses the same pages of code as the first, and raises no fault between the two steps.
#[inline(never)]
fn choose_for_a_moment(pager: ThreadId) {
    let values = syscall::ExchangedRegisters { pager: pager.raw(), ..Default::default() };
    // SAFETY: only the pager changes.
    unsafe { thread::exchange_registers(utcb::my_global_id(), ExchangeControl::PAGER, values) }
        .expect("its own");
    utcb::set_pager(kip().root());
}

fn pager_chosen_before() {
    let space = Space::new();
    let me = utcb::my_global_id();
    let thief = spawn(|| {
        let _ = ipc::receive(ThreadId::ANY);
        panic!("the thief got a message");
    });
    let thread = space.spawn(move || {
        choose_for_a_moment(kip().root());
        choose_for_a_moment(thief);
        ipc::call(me, Message::new(1)).expect("the test waits");
        read_at(arena::page().address);
        ipc::send(me, Message::new(2)).expect("the owner is in reach");
    });
    ipc::receive(thread).unwrap();
    extension::set_owner(space.first, kip().root()).unwrap();
    assert_eq!(ipc::call(thread, Message::new(0)).unwrap().tag.label(), 2);
}

fn no_kernel_conventions() {
    let space = confined::space();
    // SAFETY: each instruction raises an exception whose handler does not resume the thread.
    let thread = confined::spawn(&space, || unsafe { core::arch::asm!(".byte 0xf0, 0x90") });
    assert_eq!(ipc::receive(thread).unwrap().word(exception::NUMBER - 1), 6);
    // SAFETY: the instruction raises an exception whose handler does not resume the thread.
    let thread = confined::spawn(&space, || unsafe { core::arch::asm!("int3", "cmp al, 0", in("al") b'!') });
    assert_eq!(ipc::receive(thread).unwrap().word(exception::NUMBER - 1), 3);
}

fn exchange_registers() {
    let space = confined::space();
    let other = stranger();
    let me = utcb::my_global_id();
    for id in [other, me, kip().root()] {
        let inspect = move || u64::from(thread::inspect(id) == Err(Some(ErrorCode::InvalidThread)));
        assert_eq!(attempt_in(&space, inspect), 1, "{id:?}");
    }
    // The thread sets its own pager. The call succeeds, but the kernel's copy stays: a fault still
    // goes to the runner.
    let own = move || {
        let values = syscall::ExchangedRegisters { pager: other.raw(), ..Default::default() };
        // SAFETY: only the pager would change.
        let result =
            unsafe { thread::exchange_registers(utcb::my_global_id(), ExchangeControl::PAGER, values) };
        read_at(arena::page().address);
        u64::from(result.is_ok())
    };
    assert_eq!(attempt_in(&space, own), 1);
}

fn owner_exchanges_registers() {
    let space = confined::space();
    let thread = confined::spawn(&space, || {
        let _ = ipc::receive(utcb::my_global_id());
    });
    await_state(thread, ThreadState::Waiting);
    let before = thread::stop(thread).unwrap();
    assert!(before.state.receiving && !before.state.halted);
    assert!(thread::resume(thread).unwrap().state.halted);
}

fn switch_reaches_no_other() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.store(0, Ordering::Relaxed);
    let other = Space::new().spawn(|| {
        loop {
            RUNS.fetch_add(1, Ordering::Relaxed);
        }
    });
    while RUNS.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    // From here on the thread runs only if it is given the processor, or if no other thread is
    // ready.
    thread::set_priority(other, 50).unwrap();
    let switch = move || {
        let before = RUNS.load(Ordering::Relaxed);
        (0..10).for_each(|_| thread::switch_to(other));
        RUNS.load(Ordering::Relaxed) - before
    };
    assert_eq!(attempt_in(&confined::space(), switch), 0);
}

fn stops_no_thread() {
    let space = confined::space();
    let me = utcb::my_global_id();
    let sibling = confined::spawn(&space, move || {
        let word = ipc::receive(me).expect("the test sends").word(0);
        ipc::send(me, Message::with_words(3, &[word])).expect("the owner is in reach");
    });
    await_state(sibling, ThreadState::Waiting);
    // A thread that stops itself continues, and reports that.
    let stop = move || {
        let own = thread::stop(utcb::my_global_id()).is_ok_and(|before| !before.state.halted);
        u64::from(own && thread::stop(sibling).is_ok_and(|before| before.state.receiving))
    };
    assert_eq!(attempt_in(&space, stop), 1);
    assert!(!extension::state(sibling).unwrap().is_halted());
    thread::stop(sibling).unwrap();
    let resume = move || u64::from(thread::resume(sibling).is_ok_and(|before| before.state.halted));
    assert_eq!(attempt_in(&space, resume), 1);
    assert!(extension::state(sibling).unwrap().is_halted());
    ipc::send(sibling, Message::with_words(0, &[9])).unwrap();
    thread::yield_now();
    thread::resume(sibling).unwrap();
    assert_eq!(ipc::receive(sibling).unwrap().word(0), 9);
}

fn ends_own_ipc() {
    let space = confined::space();
    let me = utcb::my_global_id();
    let waits = confined::spawn(&space, move || {
        let error = ipc::receive(ThreadId::ANY).expect_err("no thread sends").raw();
        ipc::send(me, Message::with_words(3, &[error])).expect("the owner is in reach");
    });
    await_state(waits, ThreadState::Waiting);
    let abort = move |thread| move || u64::from(thread::abort_ipc(thread).is_ok());
    assert_eq!(attempt_in(&space, abort(waits)), 1);
    let cancelled = x2::IpcError::new(IpcPhase::Receive, IpcErrorKind::Cancelled).raw();
    assert_eq!(ipc::receive(waits).unwrap().word(0), cancelled);
    // SAFETY: the test is the handler, and resumes the thread after the instruction.
    let reports = confined::spawn(&space, || unsafe {
        core::arch::asm!("ud2");
        loop {
            core::hint::spin_loop();
        }
    });
    let report = ipc::receive(reports).unwrap();
    let mut frame: [u64; 18] = core::array::from_fn(|index| report.word(index));
    assert_eq!(attempt_in(&space, abort(reports)), 1);
    assert!(extension::state(reports).unwrap().awaits_answer(), "it still waits for its handler");
    frame[exception::RIP - 1] += 2;
    ipc::send(reports, Message::with_words(0, &frame)).unwrap();
    assert_eq!(state_of(reports), ThreadState::Running);
}

fn schedule_reaches_no_other() {
    let space = confined::space();
    let other = stranger();
    let schedule = move || {
        let unchanged = x2::control::UNCHANGED;
        thread::switch_to(other);
        thread::schedule(other, unchanged, unchanged, unchanged, unchanged)
            .map_or(99, |(state, _)| state as u64)
    };
    assert_eq!(attempt_in(&space, schedule), ThreadState::Dead as u64);
}

fn no_circles() {
    let (a, b) = (Space::new(), Space::new());
    let refused = Err(Some(ErrorCode::InvalidSpace));
    assert_eq!(extension::set_owner(a.first, a.first), refused);
    extension::set_owner(a.first, b.first).unwrap();
    assert_eq!(extension::set_owner(b.first, a.first), refused);
    extension::set_owner(a.first, ThreadId::NIL).unwrap();
    extension::set_owner(b.first, a.first).unwrap();
    assert_eq!(extension::set_owner(new_id(), a.first), refused);
    assert_eq!(extension::set_owner(a.first, new_id()), refused);
}

fn privilege() {
    let (owner, owned) = (Space::new(), Space::new());
    extension::set_owner(owned.first, owner.first).unwrap();
    let me = utcb::my_global_id();
    let (first, own) = (owned.first, owner.first);
    let thread = owner.spawn(move || {
        let answers = [
            extension::space_options(first, SpaceOption::SystemCallMode, [1, 0]).is_ok(),
            extension::space_options(first, SpaceOption::Information, [0; 2]).is_ok(),
            extension::set_owner(first, ThreadId::NIL) == Err(Some(ErrorCode::NoPrivilege)),
            extension::space_options(first, SpaceOption::PhysicalAddresses, [1, 0])
                == Err(Some(ErrorCode::NoPrivilege)),
            extension::space_options(own, SpaceOption::Information, [0; 2])
                == Err(Some(ErrorCode::NoPrivilege)),
            extension::set_quota(first, 1 << 20) == Err(Some(ErrorCode::NoPrivilege)),
        ];
        let bits = answers.iter().enumerate().map(|(index, &good)| u64::from(good) << index).sum();
        ipc::send(me, Message::with_words(0, &[bits])).expect("the test waits");
    });
    assert_eq!(ipc::receive(thread).unwrap().word(0), 0b111111);
}

fn wrong_values() {
    let space = Space::new().first;
    let invalid = Err(Some(ErrorCode::InvalidParameter));
    let options = |option, values| extension::space_options(space, option, values);
    assert_eq!(options(SpaceOption::SystemCallMode, [3, 0]), invalid);
    assert_eq!(options(SpaceOption::EmulationEntry, [1 << 47, 0]), invalid);
    assert_eq!(options(SpaceOption::EmulationEntry, [u64::MAX, 0]), invalid);
    assert_eq!(options(SpaceOption::PhysicalAddresses, [2, 0]), invalid);
    assert_eq!(options(SpaceOption::Open, [space.raw(), 2]), invalid);
    assert_eq!(syscall::space_options(space.raw(), 100, [0; 2]).0, 0);
    assert_eq!(utcb::error_code(), Some(ErrorCode::InvalidParameter));
    let local = utcb::my_local_id();
    assert_eq!(extension::set_owner(local, ThreadId::NIL), Err(Some(ErrorCode::InvalidSpace)));
}

fn orphans() {
    let (owner, owned) = (Space::new(), Space::new());
    let me = utcb::my_global_id();
    let looping = owned.spawn(move || {
        loop {
            core::hint::spin_loop();
        }
    });
    let waiting = owned.spawn(move || {
        let _ = ipc::receive(me);
        ipc::send(me, Message::new(5)).expect("the new owner is in reach");
    });
    await_state(waiting, ThreadState::Waiting);
    // An inactive thread holds the owner's space.
    extension::set_owner(owned.first, owner.first).unwrap();
    thread::delete(owner.first).unwrap();
    await_state(looping, ThreadState::Inactive);
    extension::set_owner(owned.first, kip().root()).unwrap();
    assert!(thread::resume(looping).unwrap().state.halted);
    await_state(looping, ThreadState::Running);
    ipc::send(waiting, Message::new(0)).unwrap();
    assert_eq!(ipc::receive(waiting).unwrap().tag.label(), 5);
}

fn no_interrupts() {
    let space = confined::space();
    for line in 0..kip().thread_info().system_base {
        let to = ThreadId::interrupt(line);
        let send = move || outcome(ipc::send_timeout(to, Message::new(0), Time::ZERO));
        assert_eq!(attempt_in(&space, send), no_partner(IpcPhase::Send));
        let receive = move || outcome(ipc::receive_timeout(to, Time::ZERO).map(drop));
        assert_eq!(attempt_in(&space, receive), no_partner(IpcPhase::Receive));
    }
}

fn own_interrupt() {
    let space = confined::space();
    // A line on which no interrupt occurs.
    let line = ThreadId::interrupt(kip().thread_info().system_base - 1);
    let me = utcb::my_global_id();
    let acknowledge = move || outcome(ipc::send_timeout(line, Message::new(0), Time::ZERO));
    let handler = confined::spawn(&space, move || {
        ipc::receive(me).expect("the test says when");
        ipc::send(me, Message::with_words(1, &[acknowledge()])).expect("the owner is in reach");
    });
    await_state(handler, ThreadState::Waiting);
    thread::associate_interrupt(line, handler).unwrap();
    let of_another = attempt_in(&space, acknowledge);
    ipc::send(handler, Message::new(0)).unwrap();
    let nothing_to_acknowledge = x2::IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout).raw();
    assert_eq!(ipc::receive(handler).unwrap().word(0), nothing_to_acknowledge);
    assert_eq!(of_another, no_partner(IpcPhase::Send));
    thread::disassociate_interrupt(line).unwrap();
}

fn deleted_space_closes() {
    let space = confined::space();
    let victim = new_id();
    let arguments =
        ThreadControl { space: victim, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None };
    // There are more rounds than openings can exist at the same time.
    for _ in 0..20 {
        thread::control(victim, arguments).unwrap();
        extension::set_open(space.first, victim, true).unwrap();
        thread::delete(victim).unwrap();
    }
    // A new space may be allocated in the memory of the deleted one. It is not open.
    let later = stranger();
    let send = move || outcome(ipc::send_timeout(later, Message::new(0), Time::ZERO));
    assert_eq!(attempt_in(&space, send), no_partner(IpcPhase::Send));
}

/// How many bytes of kernel memory a space uses, and its quota.
fn kernel_memory(space: &Space) -> [u64; 2] {
    extension::space_options(space.first, SpaceOption::Information, [0; 2]).unwrap()
}

/// Maps pages 2 MiB apart, so that each needs a page table, until that fails. Returns how many were
/// mapped.
fn map_sparsely(space: &Space) -> u64 {
    let page = arena::page().address;
    let map = |index: u64| {
        let target = Fpage::memory(0x4000_0000_0000 + (index << 21), 12).with_rights(Rights::READ);
        extension::map_control(space.first, &mut [MapItem::new(MapOperation::Map, target, 1, page)])
    };
    let mapped = (0..64).take_while(|&index| map(index).is_ok()).count() as u64;
    if mapped < 64 {
        assert_eq!(map(mapped), Err((0, Some(ErrorCode::NoMemory))));
    }
    mapped
}

fn quota() {
    let space = confined::space();
    let [used, limit] = kernel_memory(&space);
    assert!(used > 0 && limit == u64::MAX);
    let refused = extension::set_quota(space.first, u64::MAX - 1);
    assert_eq!(refused, Err(Some(ErrorCode::InvalidParameter)));
    let refused = extension::set_quota(space.first, used - 1);
    assert_eq!(refused, Err(Some(ErrorCode::InvalidParameter)));
    extension::set_quota(space.first, used + 10 * 4096).unwrap();
    let mapped = map_sparsely(&space);
    assert!((1..=10).contains(&mapped), "{mapped} page tables in ten frames");
    assert!(kernel_memory(&space)[0] <= used + 10 * 4096);
    extension::set_quota(space.first, u64::MAX).unwrap();
    assert_eq!(map_sparsely(&space), 64);
    assert_eq!(extension::set_quota(kip().root(), 1 << 30), Err(Some(ErrorCode::InvalidParameter)));
}

fn quota_of_owner() {
    let (owner, owned) = (Space::new(), Space::new());
    let [used, _] = kernel_memory(&owner);
    extension::set_owner(owned.first, owner.first).unwrap();
    extension::set_quota(owner.first, used + (1 << 20)).unwrap();
    let refused = extension::set_quota(owned.first, (1 << 20) + 1);
    assert_eq!(refused, Err(Some(ErrorCode::NoMemory)));
    extension::set_quota(owned.first, 1 << 20).unwrap();
    assert_eq!(kernel_memory(&owner)[0], used + (1 << 20));
    extension::set_quota(owned.first, 1 << 19).unwrap();
    assert_eq!(kernel_memory(&owner)[0], used + (1 << 19));
    thread::delete(owned.first).unwrap();
    assert_eq!(kernel_memory(&owner)[0], used);
}

fn openings_are_bounded() {
    let space = confined::space();
    let others: [Space; 9] = core::array::from_fn(|_| Space::new());
    for other in &others[..8] {
        extension::set_open(space.first, other.first, true).unwrap();
        extension::set_open(space.first, other.first, true).unwrap();
    }
    assert_eq!(extension::set_open(space.first, others[8].first, true), Err(Some(ErrorCode::NoMemory)));
    extension::set_open(space.first, others[0].first, false).unwrap();
    extension::set_open(space.first, others[8].first, true).unwrap();
}

/// Serves page faults on the program, and resumes threads after exceptions at the next instruction,
/// except after one pair of bytes. Counts both.
fn handle(faults: &AtomicU64, exceptions: &AtomicU64) -> ! {
    let mut request = ipc::wait().unwrap();
    loop {
        let answer = if protocol::of(request.tag) == protocol::PAGE_FAULT {
            let address = request.word(0) & !0xfff;
            image::touch(address);
            faults.fetch_add(1, Ordering::Relaxed);
            let page = Fpage::memory(address, 12).with_rights(Rights::ALL);
            Message::new(0).map_item(x2::MapItem::map(page, address))
        } else {
            assert_eq!(protocol::of(request.tag), protocol::ARCHITECTURE_EXCEPTION);
            exceptions.fetch_add(1, Ordering::Relaxed);
            let words: [u64; exception::REPLY_WORDS] = core::array::from_fn(|index| request.word(index));
            let word = |index: usize| words[index] + if index + 1 == exception::RIP { 2 } else { 0 };
            (0..exception::REPLY_WORDS).fold(Message::new(0), |message, index| message.word(word(index)))
        };
        request = ipc::ipc(request.from, ThreadId::ANY, Timeouts::NEVER, answer.tag()).expect("it waits");
    }
}

/// Makes a handler in a space of its own.
fn far_handler(faults: &'static AtomicU64, exceptions: &'static AtomicU64) -> ThreadId {
    let handler = Space::new().spawn(move || handle(faults, exceptions));
    await_state(handler, ThreadState::Waiting);
    handler
}

fn reports_leave_the_reach() {
    static COUNTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    COUNTS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    let handler = far_handler(&COUNTS[0], &COUNTS[1]);
    let space = confined::space();
    let me = utcb::my_global_id();
    let thread = space.spawn(move || {
        ipc::receive(me).expect("the test lets the thread go");
        read_at(arena::page().address);
        // SAFETY: the handler lets the thread continue after the instruction.
        unsafe { core::arch::asm!("ud2") };
        let refused = outcome(ipc::send(handler, Message::new(1)));
        ipc::send(me, Message::with_words(1, &[refused])).expect("the owner is in reach");
    });
    extension::set_handlers(thread, Some(handler), Some(handler)).expect("the thread is owned");
    ipc::send(thread, Message::new(0)).expect("the thread waits");
    assert_eq!(ipc::receive(thread).unwrap().word(0), no_partner(IpcPhase::Send));
    assert!(COUNTS[0].load(Ordering::Relaxed) >= 1);
    assert_eq!(COUNTS[1].load(Ordering::Relaxed), 1);
}

fn pager_of_owned() {
    static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    COUNTS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    let [faults, exceptions, ends] = &COUNTS;
    let me = utcb::my_global_id();
    let (pagers, programs) = (confined::space(), Space::new());
    let pager = confined::spawn(&pagers, move || {
        let program = ThreadId::from_raw(ipc::receive(me).expect("the test names the program").word(0));
        extension::set_handlers(program, None, Some(utcb::my_global_id())).expect("the program is owned");
        ipc::send(program, Message::new(0)).expect("the program waits");
        handle(faults, exceptions)
    });
    extension::set_owner(programs.first, pagers.first).unwrap();
    let program = programs.spawn(move || {
        ipc::receive(pager).expect("the pager says when");
        read_at(arena::page().address);
        ends.store(1, Ordering::Relaxed);
        l4::start::halt();
    });
    await_state(program, ThreadState::Waiting);
    ipc::send(pager, Message::with_words(0, &[program.raw()])).unwrap();
    while ends.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    assert!(faults.load(Ordering::Relaxed) >= 1, "the page came from the confined pager");
    assert_eq!(exceptions.load(Ordering::Relaxed), 0);
}

fn started_from_afar() {
    let me = utcb::my_global_id();
    let pager = Space::new().spawn(move || {
        let id = ThreadId::from_raw(ipc::receive(me).unwrap().word(0));
        ipc::reply(id, Message::with_words(0, &[0x1000, 0x2000])).expect("it waits for its start");
        // Nothing is mapped at the thread's first instruction.
        let address = ipc::receive(id).expect("its page fault").word(0);
        ipc::send(me, Message::with_words(1, &[address])).unwrap();
    });
    let space = confined::space();
    let id = space.first;
    let control = ThreadControl { space: id, scheduler: kip().root(), pager, utcb: Some(space.utcb_area) };
    thread::control(id, control).expect("a thread in the owned space");
    ipc::send(pager, Message::with_words(0, &[id.raw()])).unwrap();
    assert_eq!(ipc::receive(pager).unwrap().word(0), 0x1000);
}
