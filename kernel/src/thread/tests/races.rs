//! What another processor does between two steps of a call, at points that the kernel's code names.

use std::rc::Rc;

use x2::control::{ExchangeControl, UNCHANGED};
use x2::extension::{MapItem, MapOperation, ONE_MAP_ITEM, SpaceOption};
use x2::{ErrorCode, Fpage, IpcError, IpcErrorKind, IpcPhase, ThreadId, Time, Timeouts, utcb};

use super::Register::*;
use super::migration::schedule;
use super::{World, error, id, invariants};
use crate::arch;
use crate::sync::delay::{Point, script};
use crate::syscall::Call;
use crate::thread::{Continuation, flag};

/// A local id names what a word of the UTCB says. That begins to name a thread of another processor
/// after a call has looked it up.
/// Rules: 5.23a, 13.2.
#[test]
fn a_thread_that_gets_its_name_after_the_look_up_is_left_alone() {
    const PRIORITY: u64 = 7;
    let [rdx, r8, r9] = [Rdx, R8, R9].map(|register| (register, UNCHANGED));
    let calls = [
        (Call::ExchangeRegisters, Rax, [(Rsi, ExchangeControl::STOP.raw()), rdx, r8, r9]),
        (Call::Schedule, Rdi, [(Rsi, PRIORITY), rdx, r8, r9]),
        (Call::Notify, Rdi, [(Rsi, u64::MAX), rdx, r8, r9]),
    ];
    for (call, object, others) in calls {
        let world = World::with_processors(2);
        let [caller, target] = [4, 5].map(|number| world.spawn(id(number, 1), id(2, 1)));
        schedule(&world, world.root(), target, 1);
        world.serve_all();
        let block = target.utcb.get().expect("it is active");
        block.write(utcb::MY_GLOBAL_ID, 0);
        let name = target.id();
        script::once(Point::LookUp, move || block.write(utcb::MY_GLOBAL_ID, name.raw()));
        arch::select_processor(0);
        let arguments = [&[(object, target.local_id.get())], &others[..]].concat();
        world.call(call, caller, &arguments);
        assert!(script::is_done(), "{call:?}");
        assert!(caller.is_here(), "{call:?}");
        assert_eq!(error(caller), ErrorCode::InvalidThread.raw(), "{call:?}");
        assert!(!target.has(flag::HALTED), "{call:?}");
        assert_ne!(u64::from(target.priority.get()), PRIORITY, "{call:?}");
        assert_eq!(target.notification.load(core::sync::atomic::Ordering::Relaxed), 0, "{call:?}");
        invariants::check();
    }
}

/// A space gets another owner while the old one is about to arrange its pages.
/// Rules: EXT 4.4.
#[test]
fn an_owner_that_is_replaced_before_it_is_alone_arranges_nothing() {
    for replaced in [false, true] {
        let world = Rc::new(World::with_processors(2));
        let [owner, owned, other] = [4, 5, 6].map(|number| world.spawn(id(number, 1), id(number, 1)));
        let own = |world: &World, space: ThreadId, owner: ThreadId| {
            let option = (Rsi, SpaceOption::Owner as u64);
            let arguments = [(Rdi, space.raw()), option, (Rdx, owner.raw()), (R8, 0)];
            world.call(Call::SpaceOptions, world.root(), &arguments);
            assert_eq!(world.root().registers.rax().get(), 1);
        };
        own(&world, owned.id(), owner.id());
        schedule(&world, world.root(), owner, 1);
        world.serve_all();
        arch::select_processor(1);
        let item = MapItem::new(MapOperation::Query, Fpage::memory(0x40_0000, 12), 1, 0);
        if replaced {
            let world = Rc::clone(&world);
            script::once(Point::BeforeLock, move || {
                arch::select_processor(0);
                own(&world, owned.id(), other.id());
                arch::select_processor(1);
            });
        }
        let one = (Rdx, ONE_MAP_ITEM | item.control);
        let arguments = [(Rdi, owned.id().raw()), (Rsi, item.target), one, (R8, item.source)];
        world.call(Call::MapControl, owner, &arguments);
        assert!(script::is_done());
        assert_eq!(owner.registers.rax().get(), u64::from(!replaced));
        if replaced {
            assert_eq!(error(owner), ErrorCode::NoPrivilege.raw());
        }
    }
}

/// A thread gets another id just after it has been looked up by the one that it loses: for a
/// message or for its redirector, on either path, or for a receive. What was for the lost id is not
/// for the next.
/// Rules: 5.14a, 7.1.
#[test]
fn what_names_an_id_that_ends_after_the_look_up_is_not_for_the_next_id() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Way {
        Send,
        FastSend,
        RedirectedSend,
        Receive,
    }
    for way in [Way::Send, Way::FastSend, Way::RedirectedSend, Way::Receive] {
        let world = Rc::new(World::with_processors(2));
        let [named, changer] = [4, 5].map(|number| world.spawn(id(number, 1), id(2, 1)));
        let [redirector, actor] = [6, 7].map(|number| world.spawn(id(number, 1), id(number, 1)));
        if way == Way::RedirectedSend {
            let arguments =
                [(Rdi, actor.id().raw()), (Rsi, 0), (Rdx, 0), (R8, 0), (R9, redirector.id().raw())];
            world.call(Call::SpaceControl, world.root(), &arguments);
            assert_eq!(world.root().registers.rax().get(), 1);
            world.serve_all();
        }
        for thread in [named, changer] {
            arch::select_processor(0);
            schedule(&world, world.root(), thread, 1);
            world.serve_all();
        }
        arch::select_processor(1);
        world.call(Call::Ipc, named, &[(R9, 0), (Rsi, 0), (Rdx, ThreadId::ANY.raw()), (R8, 0)]);
        arch::select_processor(0);
        let (old, new) = (named.id(), id(4, 2));
        let other = Rc::clone(&world);
        let point = if way == Way::FastSend { Point::FastLookUp } else { Point::LookUp };
        script::once(point, move || {
            arch::select_processor(1);
            let arguments = [(Rdi, new.raw()), (R8, new.raw()), (Rdx, 0), (Rsi, 0), (R9, u64::MAX)];
            other.call(Call::ThreadControl, changer, &arguments);
            assert_eq!(named.id(), new);
            arch::select_processor(0);
        });
        let (to, from) = match way {
            Way::Receive => (ThreadId::NIL, old),
            Way::FastSend => (old, old),
            _ => (old, ThreadId::NIL),
        };
        // A send timeout is for the general path.
        let send = if way == Way::Send { Time::period(1000) } else { Time::NEVER };
        let timeouts = Timeouts::new(send, Time::NEVER).raw();
        world.call(Call::Ipc, actor, &[(R9, 0), (Rsi, to.raw()), (Rdx, from.raw()), (R8, timeouts)]);
        assert!(script::is_done(), "{way:?}");
        world.serve_all();
        assert_eq!(changer.registers.rax().get(), 1, "{way:?}");
        assert_eq!(actor.continuation(), Continuation::ReturnToUser, "{way:?}");
        let phase = if way == Way::Receive { IpcPhase::Receive } else { IpcPhase::Send };
        let expected = IpcError::new(phase, IpcErrorKind::NonExistingPartner);
        assert_eq!(error(actor), expected.raw(), "{way:?}");
        invariants::check();
    }
}
