//! Tests of the limits and the order of queues, of port sets, and of waits.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::typed::{MsgArguments, MsgOptions};
use super::super::*;
use super::support::*;
use crate::machine::Machine;
use crate::machine::simulated::Executor;

#[test]
fn senders_beyond_the_limit_wait_in_order() {
    let system = System::new();
    let server = system.task();
    let port = server.port();
    let mut executor = Executor::new(system.machine.clone());
    let sent = Rc::new(RefCell::new(Vec::new()));
    for id in 0..10 {
        let client = system.task();
        let sends = server.give(port, MAKE_SEND, &client);
        let sent = sent.clone();
        executor.spawn(async move {
            let message = to(sends, COPY_SEND).id(id);
            client.send_with(&message, Task::arguments(MsgOptions::SEND)).await.unwrap();
            sent.borrow_mut().push(id);
        });
    }
    executor.run();
    assert_eq!(*sent.borrow(), [0, 1, 2, 3, 4]);
    // A sender that comes later does not get the place for which an earlier sender waits.
    let late = system.task();
    let sends = server.give(port, MAKE_SEND, &late);
    let received = server.receive(port).id;
    assert_eq!(late.try_send(&to(sends, COPY_SEND)), Err(MsgErrorKind::SendTimedOut));
    executor.run();
    assert_eq!((received, sent.borrow().last()), (0, Some(&5)));
    server.space.set_queue_limit(port, 8).unwrap();
    executor.run();
    assert_eq!(sent.borrow().last(), Some(&8));
    for id in 1..10 {
        assert_eq!(server.receive(port).id, id);
        executor.run();
    }
    assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
}

#[test]
fn a_sender_that_gives_up_lets_the_next_go_on() {
    let system = System::new();
    let server = system.task();
    let port = server.port();
    server.space.set_queue_limit(port, 1).unwrap();
    let mut executor = Executor::new(system.machine.clone());
    let clients: Vec<Task> = (0..4).map(|_| system.task()).collect();
    let ids: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(id, client)| {
            let (client, sends) = (client.clone(), server.give(port, MAKE_SEND, client));
            executor.spawn(async move {
                let message = to(sends, COPY_SEND).id(id as i32);
                let result = client.send_with(&message, Task::arguments(MsgOptions::SEND)).await;
                assert_eq!(result.is_err(), id == 2);
            })
        })
        .collect();
    executor.run();
    // The second waiting sender is interrupted. The first is dropped after it was granted a place.
    assert!(clients[2].interruption.interrupt());
    executor.run();
    assert_eq!(server.receive(port).id, 0);
    executor.cancel(ids[1]);
    assert!(executor.run());
    assert_eq!(server.receive(port).id, 3);
    assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
    assert!(!clients[2].interruption.interrupt(), "it does not wait");
}

#[test]
fn there_is_always_room_for_send_once_rights() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    task.space.set_queue_limit(port, 0).unwrap();
    assert_eq!(task.try_send(&to(port, COPY_SEND)), Err(MsgErrorKind::SendTimedOut));
    for id in 0..40 {
        let once = task.give(port, MAKE_SEND_ONCE, &task);
        task.send(&to(once, MOVE_SEND_ONCE).id(id));
    }
    assert!((0..40).all(|id| {
        let message = task.receive(port);
        (message.id, message.sequence) == (id, id as u32)
    }));
}

#[test]
fn a_set_gives_messages_in_the_order_of_their_arrival() {
    let system = System::new();
    let task = system.task();
    let ports: Vec<Name> = (0..5).map(|_| task.port_to_send()).collect();
    let set = task.space.allocate(PortRight::PortSet).unwrap();
    task.send(&to(ports[3], COPY_SEND).id(0));
    task.send(&to(ports[3], COPY_SEND).id(1));
    for &port in &ports {
        task.space.move_member(port, set).unwrap();
    }
    let order = [4, 0, 2, 3, 0, 1, 4, 4, 2];
    for (id, &port) in order.iter().enumerate() {
        task.send(&to(ports[port], COPY_SEND).id(id as i32 + 2));
    }
    assert_eq!(task.try_receive(ports[0]), Err(MsgErrorKind::ReceiveInSet));
    for id in 0..6 {
        assert_eq!(task.receive(set).id, id);
    }
    // The messages of a port leave the set together with the port.
    task.space.move_member(ports[4], Name::NULL).unwrap();
    assert_eq!([task.receive(set).id, task.receive(set).id], [6, 7]);
    assert_eq!(task.receive(ports[4]).id, 8);
    assert_eq!(task.receive(set).id, 10);
    task.space.move_member(ports[4], set).unwrap();
    let message = task.receive(set);
    assert_eq!((message.id, message.local), (9, ports[4]));
    assert_eq!(task.try_receive(set), Err(MsgErrorKind::ReceiveTimedOut));
}

#[test]
fn receivers_are_told_what_becomes_of_their_port() {
    let system = System::new();
    let task = system.task();
    let set = task.space.allocate(PortRight::PortSet).unwrap();
    type Change = fn(&Task, Name, Name);
    let changes: [(Change, MsgErrorKind); 4] = [
        (|task, port, _| task.space.destroy(port).unwrap(), MsgErrorKind::ReceivePortDied),
        (|task, port, set| task.space.move_member(port, set).unwrap(), MsgErrorKind::ReceivePortChanged),
        (
            |task, port, _| {
                let right = task.space.extract_right(port, Disposition::MoveReceive).unwrap();
                assert_eq!(task.space.copyout_right(right), Ok(port));
            },
            MsgErrorKind::ReceivePortDied,
        ),
        (|task, _, _| assert!(task.interruption.interrupt()), MsgErrorKind::ReceiveInterrupted),
    ];
    for (change, error) in changes {
        let (port, result) = (task.port(), Rc::new(RefCell::new(None)));
        let mut executor = Executor::new(system.machine.clone());
        let (receiver, found) = (task.clone(), result.clone());
        executor.spawn(async move {
            let options = MsgOptions::RECEIVE_INTERRUPT;
            let arguments = MsgArguments { receive_name: port, ..Task::arguments(options) };
            *found.borrow_mut() = Some(receiver.receive_with(arguments).await.map_err(|error| error.kind));
        });
        executor.run();
        change(&task, port, set);
        assert!(executor.run());
        assert_eq!(*result.borrow(), Some(Err(error)));
    }
    let mut executor = Executor::new(system.machine.clone());
    let receiver = task.clone();
    executor.spawn(async move {
        assert_eq!(receiver.wait(set).await, Err(MsgErrorKind::ReceivePortDied));
    });
    executor.run();
    task.space.destroy(set).unwrap();
    assert!(executor.run());
    for name in [set, Name::NULL, Name::DEAD, task.space.allocate(PortRight::DeadName).unwrap()] {
        assert_eq!(task.try_receive(name), Err(MsgErrorKind::ReceiveInvalidName));
    }
}

#[test]
fn waits_end_with_their_time() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    let start = system.machine.now();
    let arguments = MsgArguments {
        receive_name: port,
        timeout: 30,
        ..Task::arguments(MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT)
    };
    let error = system.run(task.receive_with(arguments)).unwrap_err();
    assert_eq!((error.kind, system.machine.now() - start), (MsgErrorKind::ReceiveTimedOut, 30_000));
    task.space.set_queue_limit(port, 0).unwrap();
    let arguments = MsgArguments { timeout: 20, ..Task::arguments(MsgOptions::SEND_TIMEOUT) };
    let error = system.run(task.send_with(&to(port, COPY_SEND), arguments)).unwrap_err();
    assert_eq!((error.kind, system.machine.now() - start), (MsgErrorKind::SendTimedOut, 50_000));
    assert_eq!(error.code(), 0x1000_0004);
}

#[test]
fn a_library_makes_an_interrupted_call_again() {
    use super::super::typed::restart;
    let both = MsgOptions::SEND | MsgOptions::RECEIVE;
    let error = |kind: MsgErrorKind| MsgError::from(kind);
    assert_eq!(restart(both, error(MsgErrorKind::SendInterrupted)), Some(both));
    assert_eq!(restart(both, error(MsgErrorKind::ReceiveInterrupted)), Some(MsgOptions::RECEIVE));
    assert_eq!(restart(both | MsgOptions::SEND_INTERRUPT, error(MsgErrorKind::SendInterrupted)), None);
    assert_eq!(restart(both | MsgOptions::RECEIVE_INTERRUPT, error(MsgErrorKind::ReceiveInterrupted)), None);
    assert_eq!(restart(both, error(MsgErrorKind::SendTimedOut)), None);
}

#[test]
fn a_message_that_is_too_large_for_one_receiver_wakes_another() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let port = task.port_to_send();
    // The two threads belong to one task and have separate buffers.
    let (map, interruption) = (other.map.clone(), other.interruption.clone());
    let second = Task { map, interruption, ..task.clone() };
    let mut executor = Executor::new(system.machine.clone());
    let small = task.clone();
    executor.spawn(async move {
        let options = MsgOptions::RECEIVE_LARGE;
        let arguments = MsgArguments { receive_name: port, receive_size: 40, ..Task::arguments(options) };
        assert_eq!(small.receive_with(arguments).await.unwrap_err().kind, MsgErrorKind::ReceiveTooLarge);
        assert_eq!(small.buffer().await.size, 56);
    });
    executor.spawn(async move {
        assert_eq!(second.wait(port).await.unwrap().size, 56);
    });
    executor.run();
    let sender = system.task();
    let sends = task.give(port, COPY_SEND, &sender);
    sender.send(&to(sends, COPY_SEND).bytes(&[1; 13]));
    assert!(executor.run());
}
