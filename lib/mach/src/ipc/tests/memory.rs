//! Tests of messages with memory out of line.

use super::super::typed::MsgOptions;
use super::super::*;
use super::support::*;
use crate::KernError;
use crate::machine::{PAGE_SIZE, Protection};
use crate::vm::Placement;

const DATA: u64 = 0x40_0000;
const DEALLOCATE: u64 = 1 << 31;

/// Fills pages at `DATA` with a pattern, and returns their bytes.
fn fill(system: &System, task: &Task, pages: u64) -> Vec<u8> {
    let bytes: Vec<u8> = (0..pages * PAGE_SIZE).map(|at| (at / 7) as u8).collect();
    system.run(async {
        task.map.allocate(Placement::Fixed(DATA), pages * PAGE_SIZE).await.unwrap();
        task.write(DATA, &bytes).await;
    });
    bytes
}

fn pair(system: &System) -> (Task, Task, Name, Name) {
    let (server, client) = (system.task(), system.task());
    let port = server.port();
    let sends = server.give(port, MAKE_SEND, &client);
    (server, client, port, sends)
}

#[test]
fn pages_are_copied_on_write_and_only_then() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    let bytes = fill(&system, &client, 64);
    let copied = system.machine.counters().copied;
    client.send(&to(sends, COPY_SEND).out_of_line(DATA + 100, 63 * PAGE_SIZE as u32, false));
    // What the sender writes after the send is not in the message.
    system.run(client.write(DATA + 100, b"later"));
    let message = server.receive(port);
    assert_eq!(message.word(0), u64::from(9 | 8u32 << 8) | DEALLOCATE | (63 * PAGE_SIZE) << 32);
    let at = message.word(8);
    assert_eq!(at % PAGE_SIZE, 100);
    system.run(async {
        let received = server.read(at, 63 * PAGE_SIZE as usize).await;
        assert_eq!(received, bytes[100..100 + 63 * PAGE_SIZE as usize]);
        server.write(at + PAGE_SIZE, b"mine").await;
        assert_eq!(client.read(DATA + 100 + PAGE_SIZE, 4).await, bytes[4196..4200]);
    });
    assert_eq!(system.machine.counters().copied - copied, 2);
}

#[test]
fn less_than_a_page_is_copied_as_bytes() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    let bytes = fill(&system, &client, 2);
    for (offset, length) in [(0, 1), (5, 4095), (4000, 200), (0, 4095)] {
        client.send(&to(sends, COPY_SEND).out_of_line(DATA + offset, length, false));
        let at = server.receive(port).word(8);
        let received = system.run(server.read(at, length as usize));
        assert_eq!(received, bytes[offset as usize..offset as usize + length as usize]);
    }
    client.send(&to(sends, COPY_SEND).out_of_line(1, 0, true));
    assert_eq!(server.receive(port).word(8), 0);
}

#[test]
fn memory_that_is_sent_away_is_gone() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    let bytes = fill(&system, &client, 4);
    client.send(&to(sends, COPY_SEND).out_of_line(DATA, 2 * PAGE_SIZE as u32, true).out_of_line(
        DATA + 2 * PAGE_SIZE + 8,
        8,
        true,
    ));
    let message = server.receive(port);
    system.run(async {
        let mut byte = [0];
        for page in 0..3 {
            let read = client.map.copyin(DATA + page * PAGE_SIZE, &mut byte).await;
            assert_eq!(read.unwrap_err().error, KernError::InvalidAddress);
        }
        assert_eq!(client.read(DATA + 3 * PAGE_SIZE, 1).await[0], bytes[3 * PAGE_SIZE as usize]);
        assert_eq!(server.read(message.word(8), 8192).await, bytes[..8192]);
        assert_eq!(server.read(message.word(24), 8).await, bytes[8200..8208]);
    });
}

#[test]
fn received_pages_have_the_rights_of_fresh_memory() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    fill(&system, &client, 1);
    system.run(client.map.protect(DATA, PAGE_SIZE, Protection::READ, true)).unwrap();
    client.send(&to(sends, COPY_SEND).out_of_line(DATA, PAGE_SIZE as u32, false));
    let at = server.receive(port).word(8);
    system.run(server.write(at, b"new"));
    let region = system.run(server.map.region(at)).unwrap();
    assert_eq!((region.protection, region.max_protection), (Protection::DEFAULT, Protection::ALL));
}

#[test]
fn arrays_of_rights_go_out_of_line() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    fill(&system, &client, 1);
    let ports: Vec<Name> = (0..5).map(|_| client.port()).collect();
    let mut array: Vec<u8> = ports.iter().flat_map(|name| name.0.to_le_bytes()).collect();
    array.extend([0; 4]);
    system.run(client.write(DATA, &array));
    client.send(&to(sends, COPY_SEND).rights_out_of_line(DATA, 6, MOVE_RECEIVE));
    assert!(ports.iter().all(|&name| client.kind(name) == Err(KernError::InvalidName)));
    let message = server.receive(port);
    assert_eq!(message.word(0), u64::from(MOVE_RECEIVE | 64 << 8) | DEALLOCATE | 6 << 32);
    let names = system.run(server.read(message.word(8), 24));
    let (names, _) = names.as_chunks::<4>();
    let names: Vec<Name> = names.iter().map(|&name| Name(u32::from_le_bytes(name))).collect();
    assert_eq!(names[5], Name::NULL);
    assert!(names[..5].iter().all(|&name| server.kind(name) == Ok(PortType::RECEIVE)));
}

#[test]
fn a_message_that_is_not_sent_comes_back() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    let bytes = fill(&system, &client, 3);
    server.space.set_queue_limit(port, 0).unwrap();
    let (moved, array, reply) = (client.port_to_send(), client.port(), client.port());
    system.run(client.write(DATA + 2 * PAGE_SIZE, &array.0.to_le_bytes()));
    let message = to(sends, MOVE_SEND)
        .reply(reply, MAKE_SEND_ONCE)
        .id(12)
        .right(moved, MOVE_RECEIVE)
        .out_of_line(DATA, PAGE_SIZE as u32, true)
        .rights_out_of_line(DATA + 2 * PAGE_SIZE, 1, MOVE_RECEIVE);
    assert_eq!(client.try_send(&message), Err(MsgErrorKind::SendTimedOut));
    let back = system.run(client.buffer());
    assert_eq!(back.bits, COMPLEX | MOVE_SEND | MOVE_SEND_ONCE << 8);
    assert_eq!((back.id, back.size as usize), (12, message.encode().len()));
    assert_eq!(client.kind(back.remote), Ok(PortType::SEND));
    assert_eq!(client.kind(back.local), Ok(PortType::SEND_ONCE));
    assert_eq!(back.name(8), moved);
    assert_eq!(client.kind(moved), Ok(PortType::SEND | PortType::RECEIVE));
    system.run(async {
        assert_eq!(client.read(back.word(24), 4096).await, bytes[..4096]);
        let array = Name(u32::from_le_bytes(client.read(back.word(40), 4).await.try_into().unwrap()));
        assert_eq!(client.kind(array), Ok(PortType::RECEIVE));
        // The message in the buffer can be sent again without a change, any number of times.
        let arguments = super::super::typed::MsgArguments {
            send_size: back.size,
            ..Task::arguments(MsgOptions::SEND | MsgOptions::SEND_TIMEOUT)
        };
        assert_eq!(client.call(&arguments).await.unwrap_err().kind, MsgErrorKind::SendTimedOut);
        server.space.set_queue_limit(port, 1).unwrap();
        let again = client.buffer().await;
        assert_eq!((again.bits, again.size), (back.bits, back.size));
        client.call(&arguments).await.unwrap();
    });
    let arrived = server.receive(port);
    assert_eq!((arrived.id, arrived.local), (12, port));
    assert_eq!(system.run(server.read(arrived.word(24), 4096)), bytes[..4096]);
    server.space.deallocate(arrived.remote).unwrap();
    assert_eq!(client.receive(reply).id, 71);
}

#[test]
fn memory_that_does_not_fit_is_told() {
    let system = System::new();
    let (server, client, port, sends) = pair(&system);
    fill(&system, &client, 2);
    // The server gets an address space in which only one page is free.
    let map = system.run(crate::vm::VmMap::new(server.map.vm(), PAGE_SIZE, 18 * PAGE_SIZE)).unwrap();
    system.run(map.allocate(Placement::Fixed(PAGE_SIZE), 16 * PAGE_SIZE)).unwrap();
    let receiver = Receiver { task: Task { map, ..server.clone() }, buffer: PAGE_SIZE };
    let own = client.port();
    client.send(
        &to(sends, COPY_SEND)
            .out_of_line(DATA, 2 * PAGE_SIZE as u32, false)
            .right(own, MAKE_SEND)
            .out_of_line(DATA, 10, false),
    );
    let arguments = super::super::typed::MsgArguments {
        address: receiver.buffer,
        receive_name: port,
        ..Task::arguments(MsgOptions::RECEIVE)
    };
    let error = system.run(receiver.task.call(&arguments)).unwrap_err();
    assert_eq!((error.kind, error.shortage), (MsgErrorKind::ReceiveBodyError, Shortage::VM_SPACE));
    assert_eq!(error.code(), 0x1000_500c);
    let bytes = system.run(receiver.task.read(receiver.buffer, 96));
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(word(40), 0, "two pages have no room");
    assert_eq!(server.kind(Name(word(56) as u32)), Ok(PortType::SEND));
    assert_eq!(word(72), 17 * PAGE_SIZE, "but one has");
}

struct Receiver {
    task: Task,
    buffer: u64,
}
