//! Tests of every error of `mach_msg`. After an error the task must have what it had before.

use super::super::typed::{MsgArguments, MsgOptions, mach_msg};
use super::super::*;
use super::support::*;
use crate::machine::simulated::Simulated;
use crate::machine::{Machine, PAGE_SIZE};
use crate::vm::{MapCopy, VmMap};
use crate::{KernError, KernResult};

/// Everything that a task has: its names with their kinds and references, and the bytes in use.
fn state(task: &Task) -> (Vec<(Name, PortType, u32)>, usize) {
    let references = |name, kind: PortType| {
        let right = if kind.contains(PortType::DEAD_NAME) { PortRight::DeadName } else { PortRight::Send };
        task.space.references(name, right).unwrap()
    };
    let names = task.space.names().unwrap();
    let names = names.into_iter().map(|(name, kind)| (name, kind, references(name, kind))).collect();
    (names, task.space.bytes())
}

struct Scene {
    system: System,
    server: Task,
    client: Task,
    port: Name,
    sends: Name,
    once: Name,
    reply: Name,
}

fn scene() -> Scene {
    let system = System::new();
    let (server, client) = (system.task(), system.task());
    let port = server.port();
    let (sends, once) = (server.give(port, MAKE_SEND, &client), server.give(port, MAKE_SEND_ONCE, &client));
    let reply = client.port_to_send();
    Scene { system, server, client, port, sends, once, reply }
}

#[test]
fn a_message_that_cannot_be_sent_takes_nothing() {
    let Scene { system, server, client, port, sends, once, reply } = scene();
    let good = || to(sends, MOVE_SEND).reply(reply, MAKE_SEND_ONCE);
    let page = 0x80_0000;
    let cases = [
        (to(Name::NULL, COPY_SEND), MsgErrorKind::SendInvalidDest),
        (to(Name::DEAD, COPY_SEND), MsgErrorKind::SendInvalidDest),
        (to(Name(99), COPY_SEND), MsgErrorKind::SendInvalidDest),
        (to(sends, MAKE_SEND), MsgErrorKind::SendInvalidDest),
        (to(sends, MOVE_SEND_ONCE), MsgErrorKind::SendInvalidDest),
        (to(once, MOVE_SEND), MsgErrorKind::SendInvalidDest),
        (to(sends, MOVE_RECEIVE), MsgErrorKind::SendInvalidHeader),
        (to(sends, 0), MsgErrorKind::SendInvalidHeader),
        (to(sends, 22), MsgErrorKind::SendInvalidHeader),
        (to(sends, COPY_SEND | 1 << 16), MsgErrorKind::SendInvalidHeader),
        (to(sends, COPY_SEND).reply(reply, 0), MsgErrorKind::SendInvalidHeader),
        (to(sends, COPY_SEND).reply(reply, MOVE_RECEIVE), MsgErrorKind::SendInvalidHeader),
        (to(sends, COPY_SEND).reply(Name(99), MAKE_SEND), MsgErrorKind::SendInvalidReply),
        (to(sends, MOVE_SEND).reply(sends, MAKE_SEND), MsgErrorKind::SendInvalidReply),
        (to(once, MOVE_SEND_ONCE).reply(once, MOVE_SEND_ONCE), MsgErrorKind::SendInvalidReply),
        (good().right(reply, MOVE_RECEIVE).right(Name(99), COPY_SEND), MsgErrorKind::SendInvalidRight),
        (
            good()
                .right(once, MOVE_SEND_ONCE)
                .right(reply, MAKE_SEND_ONCE)
                .rights(&[reply, reply], MOVE_SEND),
            MsgErrorKind::SendInvalidRight,
        ),
        (good().right(reply, MOVE_RECEIVE).raw(1 << 24 | 1 << 29, 0, 0), MsgErrorKind::SendInvalidType),
        (good().raw(MOVE_SEND | 32 << 8 | 1 << 29, 1, 0), MsgErrorKind::SendInvalidType),
        (good().raw(9 | 8 << 8 | 1 << 29 | 1 << 31, 1, 0), MsgErrorKind::SendInvalidType),
        (good().raw(9 | 8 << 8 | 1 << 29, 9, 0), MsgErrorKind::SendMsgTooSmall),
        (good().raw(9 | 0xffff << 8 | 1 << 29, u32::MAX, 0), MsgErrorKind::SendMsgTooSmall),
        (good().raw(MOVE_SEND | 64 << 8 | 1 << 29, u32::MAX, 0), MsgErrorKind::SendMsgTooSmall),
        (good().right(reply, MOVE_RECEIVE).out_of_line(page, 10, true), MsgErrorKind::SendInvalidMemory),
        (good().out_of_line(page, 8192, true), MsgErrorKind::SendInvalidMemory),
        (good().out_of_line(u64::MAX - 10, 8192, true), MsgErrorKind::SendInvalidMemory),
        (good().out_of_line(BUFFER, 4096, true).out_of_line(page, 1, false), MsgErrorKind::SendInvalidMemory),
        (good().rights_out_of_line(page, 1, COPY_SEND), MsgErrorKind::SendInvalidMemory),
        (good().rights_out_of_line(page, u32::MAX, COPY_SEND), MsgErrorKind::SendNoBuffer),
    ];
    let before = state(&client);
    for (number, (message, error)) in cases.into_iter().enumerate() {
        assert_eq!(client.try_send(&message), Err(error), "case {number}");
        assert_eq!(state(&client), before, "case {number}");
        assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut), "case {number}");
    }
    let call = |address, send_size| {
        let arguments = MsgArguments { address, send_size, ..Task::arguments(MsgOptions::SEND) };
        system.run(client.call(&arguments)).map_err(|error| error.kind)
    };
    assert_eq!(call(BUFFER, 31), Err(MsgErrorKind::SendMsgTooSmall));
    assert_eq!(call(BUFFER, 34), Err(MsgErrorKind::SendMsgTooSmall));
    assert_eq!(call(page, 32), Err(MsgErrorKind::SendInvalidData));
    assert_eq!(call(BUFFER + 16 * PAGE_SIZE - 32, 64), Err(MsgErrorKind::SendInvalidData));
    assert_eq!(call(u64::MAX - 15, 64), Err(MsgErrorKind::SendInvalidData));
    assert_eq!(call(BUFFER, 0xffff_fffc), Err(MsgErrorKind::SendNoBuffer));
    assert_eq!(state(&client), before);
}

#[test]
fn a_message_that_cannot_be_received() {
    let Scene { system, server, client, port, sends, reply, .. } = scene();
    let send = || client.send(&to(sends, COPY_SEND).reply(reply, MAKE_SEND_ONCE).right(reply, MAKE_SEND));
    let receive = |arguments: MsgArguments| {
        let arguments = MsgArguments { receive_name: port, ..arguments };
        system.run(server.receive_with(arguments)).map_err(|error| (error.kind, error.code()))
    };
    let plain = Task::arguments(MsgOptions::RECEIVE);
    // A message that is too large stays in the queue if the receiver says so; otherwise it is
    // destroyed with what it carries.
    send();
    let large = MsgArguments { receive_size: 40, ..Task::arguments(MsgOptions::RECEIVE_LARGE) };
    for _ in 0..2 {
        assert_eq!(receive(large), Err((MsgErrorKind::ReceiveTooLarge, 0x1000_4004)));
        assert_eq!(system.run(server.buffer()).size, 48);
    }
    assert_eq!(
        receive(MsgArguments { receive_size: 40, ..plain }).unwrap_err().0,
        MsgErrorKind::ReceiveTooLarge
    );
    let header = system.run(server.buffer());
    assert_eq!((header.local, header.remote, header.bits), (port, Name::NULL, MOVE_SEND << 8));
    assert_eq!(client.receive(reply).id, 71);
    assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
    // The receiver's buffer cannot be written.
    send();
    let nowhere = MsgArguments { address: 0x80_0000, ..plain };
    assert_eq!(receive(nowhere).unwrap_err().0, MsgErrorKind::ReceiveInvalidData);
    assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
    server.space.terminate();
    assert_eq!(client.receive(reply).id, 71);
}

#[test]
fn rights_for_which_there_is_no_name() {
    let system = System::with(NameRule::Lowest, Limits { names: 3, ..Limits::default() });
    let (server, client) = (system.task(), system.task());
    let (port, reply) = (server.port(), client.port());
    let sends = server.give(port, MAKE_SEND, &client);
    let receive = || {
        let arguments = MsgArguments { receive_name: port, ..Task::arguments(MsgOptions::RECEIVE) };
        system.run(server.receive_with(arguments)).map_err(|error| error.code())
    };
    let other = client.port();
    let message =
        to(sends, COPY_SEND).reply(reply, MAKE_SEND).right(other, MAKE_SEND).right(reply, COPY_SEND);
    server.port();
    client.give(reply, MAKE_SEND, &client);
    client.send(&message);
    assert_eq!(receive(), Err(0x1000_600c), "one name for two rights");
    let received = system.run(server.buffer());
    assert_eq!((received.name(8), received.name(24)), (Name::NULL, received.remote));
    assert_eq!(server.space.references(received.remote, PortRight::Send), Ok(2));
    let message = to(sends, COPY_SEND).reply(reply, MAKE_SEND_ONCE).right(other, MAKE_SEND);
    client.send(&message);
    assert_eq!(receive(), Err(0x1000_600b));
    let received = system.run(server.buffer());
    assert_eq!((received.local, received.remote, received.bits), (port, Name::NULL, MOVE_SEND << 8));
    assert_eq!(client.receive(reply).id, 71);
}

#[test]
fn a_send_that_finds_no_memory_takes_nothing() {
    for limit in (2_000..40_000).step_by(700) {
        let system = System::with(NameRule::Lowest, Limits { bytes: limit, ..Limits::default() });
        let (server, client) = (system.task(), system.task());
        let Ok(port) = server.space.allocate(PortRight::Receive) else { continue };
        let Ok(own) = client.space.allocate(PortRight::Receive) else { continue };
        let right = server.space.extract_right(port, Disposition::MakeSend).unwrap();
        let Ok(sends) = client.space.copyout_right(right) else { continue };
        loop {
            let before = state(&client);
            let message = to(sends, COPY_SEND)
                .reply(own, MAKE_SEND_ONCE)
                .right(own, MAKE_SEND_ONCE)
                .rights(&[own; 3], MAKE_SEND)
                .bytes(&[0; 400]);
            match client.try_send(&message) {
                Ok(()) => server.space.set_queue_limit(port, 16).unwrap(),
                Err(error) => {
                    let expected = [MsgErrorKind::SendNoBuffer, MsgErrorKind::SendTimedOut];
                    assert!(expected.contains(&error), "{error:?}");
                    if error == MsgErrorKind::SendNoBuffer {
                        assert_eq!(state(&client), before);
                    }
                    break;
                }
            }
        }
    }
}

/// A task's memory that fails after `left` uses.
struct Failing {
    map: std::sync::Arc<VmMap<Simulated>>,
    left: std::sync::atomic::AtomicUsize,
}

impl Failing {
    fn check(&self) -> KernResult {
        use std::sync::atomic::Ordering::SeqCst;
        let left = self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| KernError::MemoryError)
    }
}

impl UserMemory<Simulated> for Failing {
    async fn copyin(&self, address: u64, buffer: &mut [u8]) -> KernResult {
        self.check()?;
        UserMemory::copyin(&*self.map, address, buffer).await
    }
    async fn copyout(&self, address: u64, bytes: &[u8]) -> KernResult {
        self.check()?;
        UserMemory::copyout(&*self.map, address, bytes).await
    }
    async fn copy_pages(&self, start: u64, size: u64) -> KernResult<MapCopy<Simulated>> {
        self.check()?;
        self.map.copy_pages(start, size).await
    }
    async fn insert_pages(&self, copy: MapCopy<Simulated>) -> Result<u64, (KernError, MapCopy<Simulated>)> {
        match self.check() {
            Ok(()) => self.map.insert_pages(copy).await,
            Err(error) => Err((error, copy)),
        }
    }
    async fn allocate(&self, size: u64) -> KernResult<u64> {
        self.check()?;
        UserMemory::allocate(&*self.map, size).await
    }
    async fn deallocate(&self, start: u64, size: u64) {
        UserMemory::deallocate(&*self.map, start, size).await;
    }
}

#[test]
fn memory_that_fails_at_any_use_loses_no_right() {
    let message = |sends, own, array| {
        to(sends, COPY_SEND)
            .reply(own, MAKE_SEND_ONCE)
            .right(own, MAKE_SEND)
            .out_of_line(BUFFER + 8 * PAGE_SIZE, 8192, true)
            .out_of_line(BUFFER + 12 * PAGE_SIZE, 100, false)
            .rights_out_of_line(array, 1, MAKE_SEND)
    };
    let mut reached = 0;
    for left in 0.. {
        let Scene { system, server, client, port, sends, reply, .. } = scene();
        let array = BUFFER + 14 * PAGE_SIZE;
        system.run(client.write(array, &reply.0.to_le_bytes()));
        let memory = |task: &Task, left: usize| Failing { map: task.map.clone(), left: left.into() };
        let bytes = message(sends, reply, array).encode();
        system.run(client.write(BUFFER, &bytes));
        let before = state(&client);
        let arguments = MsgArguments { send_size: bytes.len() as u32, ..Task::arguments(MsgOptions::SEND) };
        let failing = memory(&client, left);
        let sent = system.run(mach_msg(&client.space, &failing, &arguments, &client.interruption));
        match sent {
            Err(error) => {
                let expected = [MsgErrorKind::SendInvalidData, MsgErrorKind::SendInvalidMemory];
                assert!(expected.contains(&error.kind), "{error}");
                assert_eq!(state(&client), before);
                continue;
            }
            Ok(()) => assert!(left >= 5, "each part of the message is read"),
        }
        // The message has been sent; in the second half of the test the receiver's memory fails.
        let failing = memory(&server, left - 5);
        let arguments = MsgArguments { receive_name: port, ..Task::arguments(MsgOptions::RECEIVE) };
        let received = system.run(mach_msg(&server.space, &failing, &arguments, &server.interruption));
        assert_eq!(server.try_receive(port), Err(MsgErrorKind::ReceiveTimedOut));
        reached += 1;
        if received.is_ok() {
            break;
        }
    }
    assert_eq!(reached, 8, "uses of the receiver's memory, and none that fails");
}

#[test]
fn futures_can_move_between_workers() {
    fn check<T: Send>(future: T) -> T {
        future
    }
    let system = System::new();
    let task = system.task();
    let arguments = MsgArguments {
        receive_name: task.port(),
        ..Task::arguments(MsgOptions::RECEIVE_TIMEOUT | MsgOptions::RECEIVE)
    };
    let future = check(mach_msg(&task.space, &*task.map, &arguments, &task.interruption));
    assert_eq!(system.run(future).unwrap_err().kind, MsgErrorKind::ReceiveTimedOut);
    assert_eq!(system.machine.processors(), task.machine.processors());
}
