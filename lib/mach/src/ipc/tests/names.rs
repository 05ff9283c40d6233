//! Tests of names and references: the calls of the subsystem `mach_port`.

use super::super::*;
use super::support::*;
use crate::KernError::{self, *};

#[test]
fn names_are_the_lowest_that_are_free() {
    let system = System::new();
    let task = system.task();
    let names: Vec<_> = (0..40).map(|_| task.port()).collect();
    assert_eq!(names, (1..=40).map(Name).collect::<Vec<_>>());
    task.space.destroy(Name(7)).unwrap();
    task.space.destroy(Name(3)).unwrap();
    assert_eq!((task.port(), task.port(), task.port()), (Name(3), Name(7), Name(41)));
}

#[test]
fn a_name_with_a_generation_is_not_used_again_soon() {
    let system = System::with(NameRule::Generation, Limits::default());
    let task = system.task();
    assert_eq!((task.port(), task.port()), (Name(0x103), Name(0x203)));
    task.space.destroy(Name(0x103)).unwrap();
    assert_eq!(task.kind(Name(0x103)), Err(InvalidName));
    assert_eq!(task.port(), Name(0x107));
    assert_eq!(task.kind(Name(0x103)), Err(InvalidName));
    let mut name = Name(0x107);
    for _ in 0..64 {
        task.space.destroy(name).unwrap();
        name = task.port();
        assert_eq!(name.0 & 3, 3);
    }
    assert_eq!(name, Name(0x107));
}

#[test]
fn a_task_can_choose_any_name() {
    for rule in [NameRule::Lowest, NameRule::Generation] {
        let system = System::with(rule, Limits::default());
        let task = system.task();
        let chosen = [2, 18, 0x103, 0x7fff_ffff, 0xffff_fffe, 0x303, 0x304];
        for (count, name) in chosen.into_iter().map(Name).enumerate() {
            task.space.allocate_name(PortRight::DeadName, name).unwrap();
            assert_eq!(task.space.name_count(), count + 1);
            assert_eq!(task.space.allocate_name(PortRight::PortSet, name), Err(NameExists));
        }
        for name in [Name::NULL, Name::DEAD] {
            assert_eq!(task.space.allocate_name(PortRight::Receive, name), Err(InvalidValue));
        }
        let mut all: Vec<Name> = (0..100).map(|_| task.port()).collect();
        all.extend(chosen.map(Name));
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
        let mut names: Vec<_> = task.space.names().unwrap().into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, all);
        // A name that a task has chosen and given up is free again, for the task and for the space.
        for name in chosen.into_iter().map(Name) {
            task.space.destroy(name).unwrap();
            assert_eq!(task.kind(name), Err(InvalidName));
            task.space.allocate_name(PortRight::Receive, name).unwrap();
        }
    }
}

#[test]
fn kinds_of_rights() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port();
    let set = task.space.allocate(PortRight::PortSet).unwrap();
    let dead = task.space.allocate(PortRight::DeadName).unwrap();
    for right in [PortRight::Send, PortRight::SendOnce] {
        assert_eq!(task.space.allocate(right), Err(InvalidValue));
    }
    assert_eq!(task.kind(port), Ok(PortType::RECEIVE));
    assert_eq!(task.kind(set), Ok(PortType::PORT_SET));
    assert_eq!(task.kind(dead), Ok(PortType::DEAD_NAME));
    let once = task.give(port, MAKE_SEND_ONCE, &other);
    let sends = task.give(port, MAKE_SEND, &other);
    assert_eq!(other.kind(once), Ok(PortType::SEND_ONCE));
    assert_eq!(other.kind(sends), Ok(PortType::SEND));
    assert_eq!(task.give(port, MAKE_SEND, &task), port);
    assert_eq!(task.kind(port), Ok(PortType::SEND | PortType::RECEIVE));
    assert_eq!(PortRight::from_number(5), Err(InvalidValue));
}

#[test]
fn references_are_counted_and_do_not_overflow() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port();
    let sends = task.give(port, MAKE_SEND, &other);
    assert_eq!(task.give(port, MAKE_SEND, &other), sends);
    let references = |name, right| other.space.references(name, right);
    assert_eq!(references(sends, PortRight::Send), Ok(2));
    assert_eq!(references(sends, PortRight::Receive), Ok(0));
    assert_eq!(references(sends, PortRight::DeadName), Ok(0));
    let modify = |right, delta| other.space.modify_references(sends, right, delta);
    assert_eq!(modify(PortRight::Send, 65533), Ok(()));
    assert_eq!(modify(PortRight::Send, 1), Err(UrefsOverflow));
    assert_eq!(modify(PortRight::Send, i32::MAX), Err(UrefsOverflow));
    assert_eq!(modify(PortRight::Send, i32::MIN), Err(InvalidValue));
    assert_eq!(modify(PortRight::Receive, -1), Err(InvalidRight));
    // A received message may bring one reference too many, which is dropped; an insertion may not.
    assert_eq!(task.give(port, MAKE_SEND, &other), sends);
    assert_eq!(references(sends, PortRight::Send), Ok(65535));
    let right = task.space.extract_right(port, Disposition::MakeSend).unwrap();
    assert_eq!(other.space.insert_right(sends, right), Err(UrefsOverflow));
    assert_eq!(modify(PortRight::Send, -65534), Ok(()));
    other.space.deallocate(sends).unwrap();
    assert_eq!(other.kind(sends), Err(InvalidName));
    assert!(!task.space.receive_status(port).unwrap().send_rights);
}

#[test]
fn single_rights_have_one_reference() {
    let system = System::new();
    let task = system.task();
    let (port, set) = (task.port(), task.space.allocate(PortRight::PortSet).unwrap());
    let once = task.give(port, MAKE_SEND_ONCE, &task);
    for (name, right) in [(port, PortRight::Receive), (set, PortRight::PortSet), (once, PortRight::SendOnce)]
    {
        assert_eq!(task.space.references(name, right), Ok(1));
        assert_eq!(task.space.modify_references(name, right, 0), Ok(()));
        for delta in [1, -2] {
            assert_eq!(task.space.modify_references(name, right, delta), Err(InvalidValue));
        }
    }
    assert_eq!(task.space.deallocate(port), Err(InvalidRight));
    assert_eq!(task.space.deallocate(set), Err(InvalidRight));
    assert_eq!(task.space.deallocate(once), Ok(()));
    assert_eq!(task.receive(port).id, 71);
    assert_eq!(task.space.modify_references(set, PortRight::PortSet, -1), Ok(()));
    assert_eq!(task.space.modify_references(port, PortRight::Receive, -1), Ok(()));
    assert_eq!(task.space.name_count(), 0);
    for name in [port, Name::NULL, Name::DEAD] {
        assert_eq!(task.space.deallocate(name), Err(InvalidName));
        assert_eq!(task.space.destroy(name), Err(InvalidName));
        assert_eq!(task.space.modify_references(name, PortRight::Send, 0), Err(InvalidName));
    }
}

#[test]
fn the_end_of_a_receive_right_leaves_the_send_right_as_a_dead_name() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    task.space.modify_references(port, PortRight::Send, 4).unwrap();
    task.space.modify_references(port, PortRight::Receive, -1).unwrap();
    assert_eq!(task.kind(port), Ok(PortType::DEAD_NAME));
    assert_eq!(task.space.references(port, PortRight::DeadName), Ok(5));
    assert_eq!(task.space.modify_references(port, PortRight::DeadName, -6), Err(InvalidValue));
    assert_eq!(task.space.modify_references(port, PortRight::DeadName, -5), Ok(()));
    assert_eq!(task.kind(port), Err(InvalidName));
}

#[test]
fn a_rename_keeps_everything_but_the_name() {
    for rule in [NameRule::Lowest, NameRule::Generation] {
        let system = System::with(rule, Limits::default());
        let (task, other) = (system.task(), system.task());
        let (port, notify) = (task.port(), other.port());
        let sends = task.give(port, MAKE_SEND, &other);
        assert_eq!(other.request(sends, 72, 0, notify), Ok(false));
        for new in [0x1234_5678, 0x1234_5679, sends.0 ^ 4, 9].map(Name) {
            let old = *other
                .space
                .names()
                .unwrap()
                .iter()
                .map(|(name, _)| name)
                .find(|&&name| name != notify)
                .unwrap();
            assert_eq!(other.space.rename(old, notify), Err(NameExists));
            assert_eq!(other.space.rename(old, old), Err(NameExists));
            assert_eq!(other.space.rename(old, Name::DEAD), Err(InvalidValue));
            assert_eq!(other.space.rename(Name(0x4444), Name(0x4445)), Err(InvalidName));
            other.space.rename(old, new).unwrap();
            assert_eq!(other.kind(old), Err(InvalidName));
            assert_eq!(other.kind(new), Ok(PortType::SEND | PortType::DEAD_NAME_REQUEST));
            assert_eq!(task.give(port, MAKE_SEND, &other), new);
        }
        task.space.rename(port, Name(77)).unwrap();
        other.send(&to(Name(9), COPY_SEND).id(5));
        assert_eq!(task.receive(Name(77)).local, Name(77));
        task.space.destroy(Name(77)).unwrap();
        let told = other.receive(notify);
        assert_eq!((told.id, told.name(8)), (72, Name(9)));
        assert_eq!(other.space.references(Name(9), PortRight::DeadName), Ok(6));
    }
}

#[test]
fn rights_are_inserted_where_their_port_is_named() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port();
    let make = |disposition| task.space.extract_right(port, disposition).unwrap();
    let insert = |name, right| other.space.insert_right(Name(name), right);
    assert_eq!(insert(20, make(Disposition::MakeSend)), Ok(()));
    assert_eq!(insert(20, make(Disposition::MakeSend)), Ok(()));
    assert_eq!(other.space.references(Name(20), PortRight::Send), Ok(2));
    assert_eq!(insert(21, make(Disposition::MakeSend)), Err(RightExists));
    assert_eq!(insert(20, make(Disposition::MakeSendOnce)), Err(NameExists));
    assert_eq!(insert(21, make(Disposition::MakeSendOnce)), Ok(()));
    assert_eq!(insert(21, make(Disposition::MakeSendOnce)), Err(NameExists));
    assert_eq!(insert(0, make(Disposition::MakeSend)), Err(InvalidValue));
    assert_eq!(insert(22, Right::Null), Err(InvalidCapability));
    assert_eq!(insert(22, Right::Dead), Err(InvalidCapability));
    // A receive right can be inserted only under the name of the task's send right to the port.
    assert_eq!(insert(23, make(Disposition::MoveReceive)), Err(RightExists));
    assert_eq!(other.kind(Name(20)), Ok(PortType::DEAD_NAME), "the refused right has ended");
    assert_eq!(task.kind(port), Err(InvalidName));
    let port = task.port();
    let sends = task.give(port, MAKE_SEND, &other);
    let right = task.space.extract_right(port, Disposition::MoveReceive).unwrap();
    assert_eq!(other.space.insert_right(sends, right), Ok(()));
    assert_eq!(other.kind(sends), Ok(PortType::SEND | PortType::RECEIVE));
}

#[test]
fn rights_are_extracted_by_their_dispositions() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port();
    let (sends, once) = (task.give(port, MAKE_SEND, &other), task.give(port, MAKE_SEND_ONCE, &other));
    let extract = |name, disposition| other.space.extract_right(name, disposition).map(drop);
    use Disposition::*;
    for wrong in [MakeSend, MakeSendOnce, MoveReceive, MoveSendOnce] {
        assert_eq!(extract(sends, wrong), Err(InvalidRight));
    }
    for wrong in [MakeSend, CopySend, MoveReceive, MoveSend] {
        assert_eq!(extract(once, wrong), Err(InvalidRight));
    }
    assert_eq!(extract(Name(99), CopySend), Err(InvalidName));
    assert_eq!(extract(sends, CopySend), Ok(()));
    assert_eq!(extract(sends, MoveSend), Ok(()));
    assert_eq!(other.kind(sends), Err(InvalidName));
    assert_eq!(extract(once, MoveSendOnce), Ok(()));
    assert_eq!(task.receive(port).id, 71, "a send-once right that is dropped tells");
}

#[test]
fn receive_rights_have_a_status() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port();
    let set = task.space.allocate(PortRight::PortSet).unwrap();
    let status = || task.space.receive_status(port).unwrap();
    let fresh = PortStatus {
        set: Name::NULL,
        sequence: 0,
        make_send_count: 0,
        queue_limit: 5,
        messages: 0,
        send_once_rights: 0,
        send_rights: false,
        port_destroyed: false,
        no_senders: false,
    };
    assert_eq!(status(), fresh);
    let sends = task.give(port, MAKE_SEND, &other);
    task.give(port, MAKE_SEND, &other);
    task.give(port, MAKE_SEND_ONCE, &other);
    other.send(&to(sends, COPY_SEND));
    task.space.set_queue_limit(port, 16).unwrap();
    task.space.set_sequence(port, 7).unwrap();
    task.space.move_member(port, set).unwrap();
    let used = PortStatus {
        set,
        sequence: 7,
        make_send_count: 2,
        queue_limit: 16,
        messages: 1,
        send_once_rights: 1,
        send_rights: true,
        ..fresh
    };
    assert_eq!(status(), used);
    assert_eq!(task.space.send_rights(port), Ok(2), "the message has one");
    task.space.set_make_send_count(port, 100).unwrap();
    task.give(port, MAKE_SEND, &other);
    assert_eq!(status().make_send_count, 101);
    task.space.rename(set, Name(50)).unwrap();
    assert_eq!(status().set, Name(50));
    assert_eq!(task.receive(Name(50)).sequence, 7);
    assert_eq!(status().sequence, 8);
    assert_eq!(task.space.set_queue_limit(port, 17), Err(InvalidValue));
    for name in [Name(50), Name(99)] {
        let error = if name == Name(50) { InvalidRight } else { InvalidName };
        assert_eq!(task.space.receive_status(name).map(drop), Err(error));
        assert_eq!(task.space.set_queue_limit(name, 1), Err(error));
        assert_eq!(task.space.set_sequence(name, 1), Err(error));
        assert_eq!(task.space.set_make_send_count(name, 1), Err(error));
        assert_eq!(task.space.set_protected_payload(name, None), Err(error));
    }
}

#[test]
fn names_and_memory_have_limits() {
    let limits = Limits { names: 20, ..Limits::default() };
    let system = System::with(NameRule::Lowest, limits);
    let (task, other) = (system.task(), system.task());
    let mut names: Vec<Name> = (0..20).map(|_| task.port()).collect();
    assert_eq!(task.space.allocate(PortRight::Receive), Err(NoSpace));
    assert_eq!(task.space.allocate_name(PortRight::DeadName, Name(99)), Err(NoSpace));
    let port = other.port();
    let right = other.space.extract_right(port, Disposition::MakeSend).unwrap();
    assert_eq!(task.space.copyout_right(right), Err(NoSpace));
    task.space.destroy(names.pop().unwrap()).unwrap();
    task.port();

    let system = System::with(NameRule::Lowest, Limits { bytes: 20_000, ..Limits::default() });
    let task = system.task();
    let mut count = 0;
    let error = loop {
        match task.space.allocate(PortRight::Receive) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, KernError::ResourceShortage);
    assert!(count > 5 && task.space.bytes() <= 20_000, "{count}");
    task.space.destroy(Name(1)).unwrap();
    task.port();
    task.space.terminate();
    assert_eq!(task.space.bytes(), 0);
    assert_eq!(task.space.allocate(PortRight::Receive), Err(InvalidTask));
    assert_eq!(task.space.names().map(drop), Err(InvalidTask));
}

#[test]
fn sets_have_members() {
    let system = System::new();
    let task = system.task();
    let (one, two) = (task.port(), task.port());
    let set = |task: &Task| task.space.allocate(PortRight::PortSet).unwrap();
    let (first, second) = (set(&task), set(&task));
    assert_eq!(task.space.move_member(one, Name::NULL), Err(NotInSet));
    assert_eq!(task.space.move_member(one, two), Err(InvalidRight));
    assert_eq!(task.space.move_member(one, Name(99)), Err(InvalidName));
    assert_eq!(task.space.move_member(first, second), Err(InvalidRight));
    assert_eq!(task.space.move_member(Name(99), second), Err(InvalidName));
    task.space.move_member(one, first).unwrap();
    task.space.move_member(two, first).unwrap();
    task.space.move_member(two, first).unwrap();
    assert_eq!(task.space.set_status(first), Ok(vec![one, two]));
    task.space.move_member(one, second).unwrap();
    assert_eq!(task.space.set_status(first), Ok(vec![two]));
    assert_eq!(task.space.set_status(second), Ok(vec![one]));
    assert_eq!(task.space.set_status(one), Err(InvalidRight));
    task.space.move_member(one, Name::NULL).unwrap();
    assert_eq!(task.space.set_status(second), Ok(vec![]));
    task.space.destroy(first).unwrap();
    assert_eq!(task.space.receive_status(two).unwrap().set, Name::NULL);
    assert_eq!(task.space.set_status(first), Err(InvalidName));
    // A port that ends leaves its set.
    task.space.move_member(two, second).unwrap();
    task.space.destroy(two).unwrap();
    assert_eq!(task.space.set_status(second), Ok(vec![]));
}
