//! Tests of the headers, rights and replies of messages.

use super::super::typed::{MsgArguments, MsgOptions};
use super::super::*;
use super::support::*;
use crate::KernError::*;

#[test]
fn a_message_arrives_with_the_name_of_its_port() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let port = server.port();
    let sends = server.give(port, MAKE_SEND, &client);
    client.send(&to(sends, COPY_SEND).id(-7).bytes(b"hello"));
    let message = server.receive(port);
    assert_eq!((message.bits, message.size), (MOVE_SEND << 8, 48));
    assert_eq!((message.remote, message.local), (Name::NULL, port));
    assert_eq!((message.sequence, message.id), (0, -7));
    // The body of a message without rights or memory arrives unchanged, padded to 8 bytes.
    assert_eq!(message.word(0), u64::from(9 | 8 << 8 | 1u32 << 29) | 5 << 32);
    assert_eq!(&message.body[8..], b"hello\0\0\0");
    assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
}

#[test]
fn a_reply_port_arrives_as_the_right_to_reply() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let (port, reply) = (server.port(), client.port());
    let sends = server.give(port, MAKE_SEND, &client);
    for (made, arrives) in [(MAKE_SEND_ONCE, MOVE_SEND_ONCE), (MAKE_SEND, MOVE_SEND)] {
        client.send(&to(sends, COPY_SEND).reply(reply, made));
        let request = server.receive(port);
        assert_eq!(request.bits, arrives | MOVE_SEND << 8);
        server.send(&to(request.remote, arrives).id(100));
        let answer = client.receive(reply);
        assert_eq!((answer.bits, answer.local, answer.id), (arrives << 8, reply, 100));
        assert_eq!(server.kind(request.remote), Err(InvalidName));
    }
    assert_eq!(client.space.references(sends, PortRight::Send), Ok(1));
}

#[test]
fn one_call_sends_and_receives() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let (port, reply) = (server.port(), client.port());
    let sends = server.give(port, MAKE_SEND, &client);
    system.run(async {
        let mut executor = crate::machine::simulated::Executor::new(system.machine.clone());
        let peer = server.clone();
        executor.spawn(async move {
            for _ in 0..3 {
                let request = peer.wait(port).await.unwrap();
                let answer = to(request.remote, MOVE_SEND_ONCE).id(request.id + 100).bytes(&[1; 20]);
                peer.send_with(&answer, Task::arguments(MsgOptions::SEND)).await.unwrap();
            }
        });
        executor.block_on(async {
            for id in 0..3 {
                let arguments = MsgArguments {
                    receive_name: reply,
                    ..Task::arguments(MsgOptions::SEND | MsgOptions::RECEIVE)
                };
                let request = to(sends, COPY_SEND).reply(reply, MAKE_SEND_ONCE).id(id);
                client.send_with(&request, arguments).await.unwrap();
                let answer = client.buffer().await;
                assert_eq!((answer.id, answer.sequence), (id + 100, id as u32));
            }
        });
        assert!(executor.run());
    });
}

#[test]
fn rights_in_a_body_become_the_receivers() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let port = server.port();
    let sends = server.give(port, MAKE_SEND, &client);
    let (one, two, three) = (client.port(), client.port_to_send(), client.port());
    let once = client.give(three, MAKE_SEND_ONCE, &client);
    let message = to(sends, COPY_SEND)
        .right(one, MOVE_RECEIVE)
        .rights(&[two, Name::NULL, Name::DEAD, two], COPY_SEND)
        .bytes(&[1, 2, 3])
        .right(once, MOVE_SEND_ONCE)
        .right(three, MAKE_SEND)
        .right(three, MAKE_SEND_ONCE)
        .right(two, MOVE_SEND);
    client.send(&message);
    assert_eq!(client.kind(one), Err(InvalidName));
    assert_eq!(client.kind(once), Err(InvalidName));
    assert_eq!(client.kind(two), Ok(PortType::RECEIVE));
    let message = server.receive(port);
    assert_eq!(message.bits, COMPLEX | MOVE_SEND << 8);
    let descriptor = |kind: u32, number: u64| u64::from(kind | 64 << 8 | 1 << 29) | number << 32;
    let received = message.name(8);
    assert_eq!(message.word(0), descriptor(MOVE_RECEIVE, 1));
    assert_eq!(server.kind(received), Ok(PortType::RECEIVE));
    assert_eq!(message.word(16), descriptor(MOVE_SEND, 4));
    let send = message.name(24);
    assert_eq!([message.name(32), message.name(40), message.name(48)], [Name::NULL, Name::DEAD, send]);
    assert_eq!(server.space.references(send, PortRight::Send), Ok(3));
    assert_eq!(&message.body[64..67], &[1, 2, 3]);
    assert_eq!(message.word(72), descriptor(MOVE_SEND_ONCE, 1));
    assert_eq!(server.kind(message.name(80)), Ok(PortType::SEND_ONCE));
    assert_eq!(server.kind(message.name(96)), Ok(PortType::SEND));
    assert_eq!(server.kind(message.name(112)), Ok(PortType::SEND_ONCE));
    assert_eq!(message.name(128), send);
    // The client's message has moved a receive right to the server, so what is sent to that port
    // now arrives there.
    server.send(&to(send, COPY_SEND).id(3));
    assert_eq!(client.receive(two).id, 3);
}

#[test]
fn a_message_takes_what_it_can_take_and_no_more() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let port = server.port();
    let sends = server.give(port, MAKE_SEND, &client);
    // With one reference, one field of the header may copy the right that the other moves.
    for (remote, local) in [(COPY_SEND, MOVE_SEND), (MOVE_SEND, COPY_SEND)] {
        client.send(&to(sends, remote).reply(sends, local));
        let message = server.receive(port);
        assert_eq!((message.remote, message.local), (port, port));
        assert_eq!(client.kind(sends), Err(InvalidName));
        server.space.modify_references(port, PortRight::Send, -1).unwrap();
        assert_eq!(server.give(port, MAKE_SEND, &client), sends);
    }
    // One reference cannot be moved by two parts of a message.
    let twice = to(sends, MOVE_SEND).reply(sends, MOVE_SEND);
    assert_eq!(client.try_send(&twice), Err(MsgErrorKind::SendInvalidReply));
    let twice = to(sends, COPY_SEND).right(sends, MOVE_SEND).right(sends, MOVE_SEND);
    assert_eq!(client.try_send(&twice), Err(MsgErrorKind::SendInvalidRight));
    let twice = to(sends, COPY_SEND).right(sends, MOVE_SEND).right(sends, COPY_SEND);
    assert_eq!(client.try_send(&twice), Err(MsgErrorKind::SendInvalidRight));
    assert_eq!(client.space.references(sends, PortRight::Send), Ok(1));
    client.space.modify_references(sends, PortRight::Send, 1).unwrap();
    let twice = to(sends, MOVE_SEND).reply(sends, MOVE_SEND);
    client.send(&twice);
    assert_eq!(client.kind(sends), Err(InvalidName));
    let own = client.port_to_send();
    let wrong = to(own, COPY_SEND).right(own, MOVE_RECEIVE).right(own, MAKE_SEND);
    assert_eq!(client.try_send(&wrong), Err(MsgErrorKind::SendInvalidRight));
    assert_eq!(client.kind(own), Ok(PortType::SEND | PortType::RECEIVE));
}

#[test]
fn dead_names_are_carried_but_not_sent_to() {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let port = server.port();
    let sends = server.give(port, MAKE_SEND, &client);
    let gone = server.port();
    let (dead, once) = (server.give(gone, MAKE_SEND, &client), server.give(gone, MAKE_SEND_ONCE, &client));
    server.space.destroy(gone).unwrap();
    assert_eq!(client.try_send(&to(dead, COPY_SEND)), Err(MsgErrorKind::SendInvalidDest));
    assert_eq!(client.kind(dead), Ok(PortType::DEAD_NAME));
    assert_eq!(client.kind(once), Ok(PortType::DEAD_NAME));
    let message = to(sends, COPY_SEND)
        .reply(dead, COPY_SEND)
        .right(dead, MOVE_SEND)
        .right(once, MOVE_SEND_ONCE)
        .right(Name::DEAD, COPY_SEND);
    client.send(&message);
    assert_eq!((client.kind(dead), client.kind(once)), (Err(InvalidName), Err(InvalidName)));
    let message = server.receive(port);
    assert_eq!(message.remote, Name::DEAD);
    assert_eq!([message.name(8), message.name(24), message.name(40)], [Name::DEAD; 3]);
}

#[test]
fn a_payload_is_received_instead_of_the_name() {
    let system = System::new();
    let task = system.task();
    let port = task.port_to_send();
    task.space.set_protected_payload(port, Some(0x1234_5678_9abc_def0)).unwrap();
    task.send(&to(port, COPY_SEND));
    let message = task.receive(port);
    assert_eq!((message.bits, message.local.0, message.upper), (23 << 8, 0x9abc_def0, 0x1234_5678));
    task.space.set_protected_payload(port, None).unwrap();
    task.send(&to(port, COPY_SEND));
    assert_eq!(task.receive(port).local, port);
    task.space.set_protected_payload(port, Some(1)).unwrap();
    let moved = task.space.extract_right(port, Disposition::MoveReceive).unwrap();
    assert_eq!(task.space.copyout_right(moved), Ok(port));
    task.send(&to(port, COPY_SEND));
    assert_eq!(task.receive(port).local, port, "a receive right that moves loses its payload");
}

#[test]
fn a_moved_receive_right_keeps_its_messages_and_loses_its_counts() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let (port, carrier) = (task.port(), other.port());
    let set = task.space.allocate(PortRight::PortSet).unwrap();
    let to_other = other.give(carrier, MAKE_SEND, &task);
    let sends = task.give(port, MAKE_SEND, &other);
    task.space.move_member(port, set).unwrap();
    other.send(&to(sends, COPY_SEND).id(1));
    other.send(&to(sends, COPY_SEND).id(2));
    assert_eq!(task.receive(set).id, 1);
    task.send(&to(to_other, COPY_SEND).right(port, MOVE_RECEIVE));
    assert_eq!(task.space.set_status(set), Ok(vec![]));
    assert_eq!(task.try_receive(set), Err(MsgErrorKind::ReceiveTimedOut));
    // The receiver has a send right to the port, so the receive right gets the same name.
    assert_eq!(other.receive(carrier).name(8), sends);
    let status = other.space.receive_status(sends).unwrap();
    assert_eq!((status.sequence, status.make_send_count, status.messages), (0, 0, 1));
    assert_eq!((other.receive(sends).id, status.set), (2, Name::NULL));
}
