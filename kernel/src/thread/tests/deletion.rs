//! A thread goes that has never run: by the short form if it is named nowhere, otherwise together
//! with its relations to others (X.2 rule 5.15).
use x2::{IpcError, IpcErrorKind, IpcPhase, ThreadId};

use super::Register::*;
use super::{World, error, id, invariants};
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::thread::table::threads;
use crate::{arch, interrupt};

/// A line, and the thread that handles it.
const LINE: u32 = 7;

fn victim() -> ThreadId {
    id(4, 1)
}

/// Root makes a thread in its own space, which is inactive or awaits its start.
fn create(world: &World, thread: ThreadId, scheduler: ThreadId, active: bool) {
    let (root, number) = (world.root(), thread.number() - interrupt::user_base());
    let location = super::UTCB_AREA + 1024 * u64::from(number);
    let (pager, location) = if active { (root.id(), location) } else { (ThreadId::NIL, u64::MAX) };
    let arguments = [
        (Rdi, thread.raw()),
        (R8, root.id().raw()),
        (Rdx, scheduler.raw()),
        (Rsi, pager.raw()),
        (R9, location),
    ];
    world.call(Call::ThreadControl, root, &arguments);
    assert_eq!(root.registers.rax().get(), 1, "ThreadControl fails: {}", error(root));
}

/// Root deletes the victim, by the short form if that can be. Returns whether it was done so.
fn delete(world: &World) -> bool {
    let root = world.root();
    world.short.set(false);
    world.switch_to(root);
    for (register, value) in [(Rdi, victim().raw()), (R8, 0)] {
        register.of(root).set(value);
    }
    let short = world.try_control(root);
    if !short {
        world.call(Call::ThreadControl, root, &[]);
    }
    assert_eq!(root.registers.rax().get(), 1);
    assert!(threads().by_number(victim().number()).is_none());
    invariants::check();
    short
}

/// A thread of root's that sends to the victim, or receives from it.
fn partner(world: &World, phase: IpcPhase) -> ThreadRef {
    let partner = world.spawn(id(5, 1), id(2, 1));
    let [to, from] = match phase {
        IpcPhase::Send => [victim(), ThreadId::NIL],
        IpcPhase::Receive => [ThreadId::NIL, victim()],
    };
    world.call(Call::Ipc, partner, &[(Rsi, to.raw()), (Rdx, from.raw()), (R8, 0), (R9, 0)]);
    assert!(!partner.is_runnable());
    partner
}

#[test]
fn a_thread_that_no_other_knows_is_deleted_by_try_delete() {
    for active in [false, true] {
        let world = World::new();
        create(&world, victim(), id(2, 1), active);
        assert!(delete(&world));
    }
}

/// Rules: 5.15.
#[test]
fn a_thread_whose_partner_waits_is_not_deleted_by_try_delete() {
    for (active, phase) in [
        (true, IpcPhase::Send),
        (true, IpcPhase::Receive),
        (false, IpcPhase::Send),
        (false, IpcPhase::Receive),
    ] {
        let world = World::new();
        create(&world, victim(), id(2, 1), active);
        let partner = partner(&world, phase);
        assert!(!delete(&world));
        assert!(partner.is_runnable(), "no thread waits for a deleted one");
        world.proceed();
        assert_eq!(error(partner), IpcError::new(phase, IpcErrorKind::NonExistingPartner).raw());
    }
}

#[test]
fn a_scheduler_is_not_deleted_by_try_delete() {
    for active in [false, true] {
        let world = World::new();
        create(&world, victim(), id(2, 1), active);
        create(&world, id(6, 1), victim(), false);
        assert!(!delete(&world));
        assert!(world.thread(id(6, 1)).scheduler.get().is_nil());
    }
}

/// The interrupt of a deleted handler belongs to another thread afterwards.
#[test]
fn a_handler_with_an_interrupt_is_not_deleted_by_try_delete() {
    let world = World::new();
    create(&world, victim(), id(2, 1), true);
    let root = world.root();
    let associate = |handler: ThreadId| {
        let line = ThreadId::interrupt(LINE).raw();
        let arguments = [(Rdi, line), (R8, line), (Rdx, 0), (Rsi, handler.raw()), (R9, u64::MAX)];
        world.call(Call::ThreadControl, root, &arguments);
        assert_eq!(root.registers.rax().get(), 1, "ThreadControl fails: {}", error(root));
    };
    associate(victim());
    arch::raise_line(LINE, 0);
    world.attend();
    let pending = |thread: ThreadId| world.thread(thread).pending_interrupts.get().is_some();
    assert!(pending(victim()));
    assert!(!delete(&world));
    create(&world, id(6, 1), id(2, 1), true);
    associate(id(6, 1));
    arch::raise_line(LINE, 0);
    world.attend();
    assert!(pending(id(6, 1)));
}
