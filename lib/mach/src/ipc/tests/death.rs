//! Tests of the end of ports, tasks and threads at any point, and of cycles of receive rights.

use super::super::typed::{MsgArguments, MsgOptions};
use super::super::*;
use super::support::*;
use crate::KernError::*;
use crate::machine::simulated::Executor;

#[test]
fn a_receive_right_in_its_own_queue_ends() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    task.send(&to(port, COPY_SEND).right(port, MOVE_RECEIVE));
    assert_eq!(task.kind(port), Ok(PortType::DEAD_NAME));
}

#[test]
fn a_cycle_of_receive_rights_ends() {
    let system = System::new();
    let task = system.task();
    for length in 2..6 {
        let ports: Vec<Name> = (0..length).map(|_| task.port_to_send()).collect();
        for (at, &port) in ports.iter().enumerate() {
            let next = ports[(at + 1) % length];
            assert_ne!(task.kind(next), Ok(PortType::DEAD_NAME));
            task.send(&to(next, COPY_SEND).right(port, MOVE_RECEIVE));
        }
        assert!(ports.iter().all(|&port| task.kind(port) == Ok(PortType::DEAD_NAME)));
    }
}

#[test]
fn a_right_that_was_received_is_in_no_cycle() {
    let system = System::new();
    let task = system.task();
    let (one, two) = (task.port_to_send(), task.port_to_send());
    for _ in 0..3 {
        task.send(&to(two, COPY_SEND).right(one, MOVE_RECEIVE));
        assert_eq!(task.receive(two).name(8), one);
        task.send(&to(one, COPY_SEND).right(two, MOVE_RECEIVE));
        assert_eq!(task.receive(one).name(8), two);
    }
}

#[test]
fn a_chain_of_a_hundred_thousand_ports_ends() {
    let limits = Limits { names: 1 << 20, bytes: 1 << 30, ..Limits::default() };
    let system = System::with(NameRule::Lowest, limits);
    let task = system.task();
    // The queue of each new port gets the receive right of the port that was made before it.
    let mut last = task.port();
    for _ in 0..100_000 {
        let next = task.port_to_send();
        task.send(&to(next, MOVE_SEND).right(last, MOVE_RECEIVE));
        last = next;
    }
    assert_eq!(system.ipc().ports(), 100_001);
    task.space.destroy(last).unwrap();
    assert_eq!((system.ipc().ports(), task.space.name_count()), (0, 0));
}

#[test]
fn messages_of_a_dead_port_end() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let (port, reply) = (server.port(), client.port_to_send());
    let sends = server.give(port, MAKE_SEND, &client);
    let carried = client.port_to_send();
    client.send(&to(sends, COPY_SEND).reply(reply, MAKE_SEND_ONCE).right(carried, MOVE_RECEIVE));
    server.space.destroy(port).unwrap();
    assert_eq!(client.receive(reply).id, 71);
    assert_eq!(client.kind(carried), Ok(PortType::DEAD_NAME));
    assert_eq!(client.kind(sends), Ok(PortType::DEAD_NAME));
}

#[test]
fn a_sender_that_waits_for_a_port_that_dies_has_sent() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let (port, reply) = (server.port(), client.port());
    server.space.set_queue_limit(port, 0).unwrap();
    let sends = server.give(port, MAKE_SEND, &client);
    let mut executor = Executor::new(system.machine.clone());
    let sender = client.clone();
    executor.spawn(async move {
        let message = to(sends, COPY_SEND).reply(reply, MAKE_SEND_ONCE);
        sender.send_with(&message, Task::arguments(MsgOptions::SEND)).await.unwrap();
    });
    executor.run();
    server.space.terminate();
    assert!(executor.run());
    assert_eq!(client.receive(reply).id, 71);
}

#[test]
fn a_thread_that_ends_while_it_sends_takes_its_message_with_it() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let (port, reply) = (server.port(), client.port());
    server.space.set_queue_limit(port, 0).unwrap();
    let sends = server.give(port, MAKE_SEND, &client);
    let carried = client.port_to_send();
    let mut executor = Executor::new(system.machine.clone());
    let sender = client.clone();
    let thread = executor.spawn(async move {
        let message = to(sends, MOVE_SEND).reply(reply, MAKE_SEND_ONCE).right(carried, MOVE_RECEIVE);
        let _ = sender.send_with(&message, Task::arguments(MsgOptions::SEND)).await;
    });
    executor.run();
    assert!(server.space.receive_status(port).unwrap().send_rights);
    executor.cancel(thread);
    assert_eq!(client.receive(reply).id, 71);
    assert_eq!(client.kind(carried), Ok(PortType::DEAD_NAME));
    assert!(!server.space.receive_status(port).unwrap().send_rights);
}

#[test]
fn a_thread_that_ends_while_it_receives_takes_nothing() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    let mut executor = Executor::new(system.machine.clone());
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let receiver = task.clone();
            executor.spawn(async move {
                let arguments = MsgArguments { receive_name: port, ..Task::arguments(MsgOptions::RECEIVE) };
                receiver.call(&arguments).await.unwrap();
            })
        })
        .collect();
    executor.run();
    task.send(&to(port, COPY_SEND));
    // The message woke the first receiver. It ends without taking the message, so the second must
    // be woken and get it.
    executor.cancel(threads[0]);
    assert!(executor.run());
    assert_eq!(task.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
}

#[test]
fn a_task_that_ends_leaves_nothing() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, notify) = (task.port(), other.port());
    let set = task.space.allocate(PortRight::PortSet).unwrap();
    task.space.move_member(port, set).unwrap();
    let theirs = other.give(notify, MAKE_SEND, &task);
    let sends = task.give(port, MAKE_SEND, &other);
    assert_eq!(other.request(sends, 72, 0, notify), Ok(false));
    assert_eq!(other.request(notify, 70, 0, notify), Ok(false));
    other.send(&to(sends, COPY_SEND).right(notify, MAKE_SEND));
    task.send(&to(theirs, COPY_SEND).right(theirs, COPY_SEND));
    task.space.terminate();
    let mut ids: Vec<i32> = (0..2).map(|_| other.receive(notify).id).collect();
    ids.sort();
    assert_eq!(ids, [0, 72], "its message is delivered");
    other.space.modify_references(notify, PortRight::Send, -1).unwrap();
    assert_eq!(other.receive(notify).id, 70);
    assert_eq!(task.kind(set), Err(InvalidTask));
}
