//! Control blocks and UTCBs that are used again: a new thread finds nothing of the one before.

use core::cell::Cell;
use core::ptr::eq;
use core::sync::atomic::Ordering;

use x2::{ThreadId, Time, utcb};

use super::Register::*;
use super::{UTCB_AREA, World, id, invariants};
use crate::scheduler::timeouts::NEVER;
use crate::syscall::Call;
use crate::thread::ipc::cancel_receive;
use crate::thread::registers::USER_FLAGS;
use crate::thread::transfer_record::TransferRecord;
use crate::thread::{Tcb, ThreadRef, mark, table::threads};

/// Where the thread has its UTCB: in the frame of root's, so that the frame stays.
const LOCATION: u64 = UTCB_AREA + utcb::SIZE;

/// Leaves something in whatever a program, its partners or its owner can write.
fn use_up(thread: ThreadRef) {
    let block = thread.utcb.get().expect("it is active");
    let registers = &thread.registers;
    let words = (-64..64).map(|word| (word, 0x1111_u64.wrapping_mul(word as u64 | 1)));
    words.for_each(|(word, value)| block.write(word, value));
    let others =
        [&registers.rsp, &registers.rip, &registers.rflags, &registers.rdi, &registers.rsi, &registers.rbp];
    let bases = [
        &registers.fs_base,
        &registers.gs_base,
        &registers.rcx,
        &registers.rdx,
        &registers.r8,
        &registers.r11,
    ];
    for register in registers.message.iter().chain(others).chain(bases).chain(&thread.fault) {
        register.set(0x5a5a_5a5a);
    }
    let ids: [&Cell<ThreadId>; 4] =
        [&thread.receive_from, &thread.virtual_sender, &thread.owned_pager, &thread.owned_exception_handler];
    ids.into_iter().for_each(|cell| cell.set(id(2, 1)));
    for time in
        [&thread.quantum_over_at, &thread.preempted_at, &thread.send_deadline, &thread.receive_deadline]
    {
        time.set(77);
    }
    thread.timeslice.set(1);
    thread.timeslice_left.set(1);
    thread.maximum_delay.set(5);
    thread.sensitive_priority.set(200);
    thread.pending.set(1);
    thread.receive_timeout.set(3);
    thread.notification.store(9, Ordering::Relaxed);
}

/// Everything about a thread that the previous thread in its control block could have left.
fn found_in(thread: &Tcb) -> std::vec::Vec<u64> {
    let registers = &thread.registers;
    let words =
        [&registers.rsp, &registers.rip, &registers.rdi, &registers.rsi, &registers.rbp, &registers.fs_base];
    let more = [&registers.rcx, &registers.rdx, &registers.r8, &registers.r11];
    let times = [&thread.quantum_over_at, &thread.preempted_at];
    let ids = [thread.virtual_sender.get(), thread.owned_exception_handler.get()];
    let words = registers.message.iter().chain(words).chain(more).chain(times).chain(&thread.fault);
    words
        .map(Cell::get)
        .chain(ids.map(ThreadId::raw))
        .chain([thread.notification.load(Ordering::Relaxed), thread.flags.get().into()])
        .chain([thread.maximum_delay.get().into(), thread.pending.get().into()])
        .chain([thread.is_marked(mark::NAMED).into(), thread.is_marked(mark::HANDLES_INTERRUPTS).into()])
        .collect()
}

fn expect_new(thread: ThreadRef, pager: ThreadId) {
    assert!(found_in(thread).iter().all(|&word| word == 0), "{:x?}", found_in(thread));
    assert_eq!(thread.registers.rflags.get(), USER_FLAGS);
    assert_eq!(
        [thread.quantum_left.get(), thread.send_deadline.get(), thread.receive_deadline.get()],
        [NEVER; 3]
    );
    assert_eq!([thread.partner(), thread.receive_from.get(), thread.owned_pager.get()], [pager; 3]);
    assert_eq!(thread.receive_timeout.get(), Time::NEVER.raw());
    assert_eq!(thread.sensitive_priority.get(), thread.priority.get());
    assert_eq!(thread.timeslice.get(), thread.timeslice_left.get());
    assert!(thread.timeslice.get() > 1 && thread.extended_state.get().is_none());
    let Some(block) = thread.utcb.get() else { return assert!(pager.is_nil()) };
    assert!(thread.transfer_record.get().is_some_and(TransferRecord::is_unused));
    assert_eq!(thread.registers.gs_base.get(), thread.own_gs_base());
    let known = [
        (utcb::SELF_POINTER, thread.local_id.get()),
        (utcb::MY_GLOBAL_ID, thread.id().raw()),
        (utcb::PROCESSOR_NUMBER, 0),
        (utcb::PAGER, pager.raw()),
    ];
    for word in -64..64 {
        let expected = known.iter().find(|(known, _)| *known == word).map_or(0, |&(_, value)| value);
        assert_eq!(block.read(word), expected, "word {word}");
    }
}

/// Makes a thread, by the short form or not, active if it has a pager.
fn make(world: &World, short: bool, pager: ThreadId) -> ThreadRef {
    let root = world.root();
    let location = if pager.is_nil() { u64::MAX } else { LOCATION };
    let thread = id(5, 1).raw();
    let of_root = [(R8, root.id().raw()), (Rdx, root.id().raw())];
    control(world, short, &[(Rdi, thread), of_root[0], of_root[1], (Rsi, pager.raw()), (R9, location)]);
    world.thread(id(5, 1))
}

fn delete(world: &World, short: bool) {
    control(world, short, &[(Rdi, id(5, 1).raw()), (R8, 0)]);
    assert!(threads().find(id(5, 1)).is_none());
}

fn control(world: &World, short: bool, arguments: &[(super::Register, u64)]) {
    world.short.set(!short);
    let root = world.root();
    world.call(Call::ThreadControl, root, arguments);
    assert_eq!(root.registers.rax().get(), 1);
}

/// Rules: EXT 5.4.
#[test]
fn a_new_thread_finds_nothing_of_the_one_before() {
    let world = World::new();
    let pager = world.root().id();
    for (short, has_run, next) in
        [(true, false, pager), (true, true, pager), (false, true, pager), (true, true, ThreadId::NIL)]
    {
        let before = make(&world, short, pager);
        if has_run {
            cancel_receive(before);
        }
        use_up(before);
        delete(&world, short);
        let after = make(&world, short, next);
        assert!(eq(before, after), "the same control block");
        expect_new(after, next);
        invariants::check();
        delete(&world, !short);
    }
}

#[test]
fn no_thread_is_made_with_an_id_that_is_none() {
    let world = World::new();
    let root = world.root();
    for wrong in [0, u64::MAX, !0x3f, UTCB_AREA + 512, u64::from(u32::MAX) << 32 | 1] {
        for short in [true, false] {
            world.short.set(!short);
            let arguments =
                [(Rdi, wrong), (R8, root.id().raw()), (Rdx, root.id().raw()), (Rsi, 0), (R9, u64::MAX)];
            world.call(Call::ThreadControl, root, &arguments);
            assert_eq!((root.registers.rax().get(), super::error(root)), (0, 2), "{wrong:#x}");
        }
    }
}
