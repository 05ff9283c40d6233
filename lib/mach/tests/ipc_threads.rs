//! Tests with tasks on host threads, which stand for processors. Each message must arrive once and
//! in order while ports and tasks end, and nothing may be left afterwards.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use mach::ipc::typed::{MsgArguments, MsgOptions, mach_msg};
use mach::ipc::{
    Disposition, Interruption, Ipc, Limits, MsgErrorKind, Name, NameRule, PortRight, Right, Space,
};
use mach::machine::PAGE_SIZE;
use mach::machine::simulated::Simulated;
use mach::vm::{Placement, Vm, VmMap};

const BUFFER: u64 = 0x10_0000;
const FRAMES: u32 = 256;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

struct System {
    machine: Simulated,
    vm: Arc<Vm<Simulated>>,
    ipc: Arc<Ipc<Simulated>>,
}

impl System {
    fn new() -> Self {
        let machine = Simulated::new(FRAMES);
        let vm = Vm::new(machine.clone()).unwrap();
        let ipc = Ipc::new(&vm, NameRule::Generation, Limits::default()).unwrap();
        Self { machine, vm, ipc }
    }

    fn task(&self) -> Task {
        let map = block_on(VmMap::new(&self.vm, PAGE_SIZE, 1 << 30)).unwrap();
        block_on(map.allocate(Placement::Fixed(BUFFER), PAGE_SIZE)).unwrap();
        Task { space: Space::new(&self.ipc), map, interruption: Arc::new(Interruption::new()) }
    }

    fn end(self) {
        assert_eq!(self.ipc.ports(), 0, "ports leaked");
        drop(self.ipc);
        assert_eq!(self.vm.statistics().free, FRAMES, "frames leaked");
        drop(self.vm);
        assert_eq!(self.machine.reserved(), 0, "server memory leaked");
    }
}

/// One thread of a task, with a message buffer.
#[derive(Clone)]
struct Task {
    space: Arc<Space<Simulated>>,
    map: Arc<VmMap<Simulated>>,
    interruption: Arc<Interruption>,
}

impl Task {
    fn call(&self, options: MsgOptions, send_size: u32, receive_name: Name) -> Result<(), MsgErrorKind> {
        let arguments = MsgArguments {
            address: BUFFER,
            options,
            send_size,
            receive_size: PAGE_SIZE as u32,
            receive_name,
            timeout: 0,
            notify: Name::NULL,
        };
        let call = mach_msg(&self.space, &*self.map, &arguments, &self.interruption);
        block_on(call).map_err(|error| error.kind)
    }

    /// Sends a header with two words as its body, or with a right as its body.
    fn send(
        &self,
        options: MsgOptions,
        bits: u32,
        ports: [Name; 2],
        words: (i32, Option<(Name, u32)>),
    ) -> Result<(), MsgErrorKind> {
        let complex = if words.1.is_some() { 1 << 31 } else { 0 };
        let mut message = Vec::new();
        for word in [bits | complex, 0, ports[0].0, 0, ports[1].0, 0, 0, words.0 as u32] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        if let Some((name, disposition)) = words.1 {
            message.extend_from_slice(&(disposition | 64 << 8 | 1 << 29).to_le_bytes());
            message.extend_from_slice(&1u32.to_le_bytes());
            message.extend_from_slice(&u64::from(name.0).to_le_bytes());
        }
        block_on(self.map.copyout(BUFFER, &message)).unwrap();
        self.call(options | MsgOptions::SEND, message.len() as u32, Name::NULL)
    }

    /// Receives a message, and returns its remote port, local port, id, and the name in the body.
    fn receive(&self, options: MsgOptions, name: Name) -> Result<(Name, Name, i32, Name), MsgErrorKind> {
        self.call(options | MsgOptions::RECEIVE, 0, name)?;
        let mut bytes = [0; 48];
        block_on(self.map.copyin(BUFFER, &mut bytes)).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        Ok((Name(word(8)), Name(word(16)), word(28) as i32, Name(word(40))))
    }

    fn give(&self, name: Name, disposition: Disposition, other: &Task) -> Name {
        other.space.copyout_right(self.space.extract_right(name, disposition).unwrap()).unwrap()
    }

    fn port(&self) -> Name {
        self.space.allocate(PortRight::Receive).unwrap()
    }
}

const COPY_SEND: u32 = 19;
const MAKE_SEND_ONCE: u32 = 21;
const MOVE_SEND_ONCE: u32 = 18;
const MOVE_RECEIVE: u32 = 16;

/// Clients send more requests than the queue holds, and several threads serve them from a port set.
#[test]
fn requests_are_answered_whatever_the_order_of_processors() {
    const CLIENTS: i32 = 3;
    const REQUESTS: i32 = 3000;
    let system = System::new();
    let server = system.task();
    let set = server.space.allocate(PortRight::PortSet).unwrap();
    let ports = [server.port(), server.port()];
    ports.iter().for_each(|&port| server.space.move_member(port, set).unwrap());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = system.task();
            let port = ports[number as usize % 2];
            let sends = server.give(port, Disposition::MakeSend, &client);
            thread::spawn(move || {
                let reply = client.port();
                for id in 0..REQUESTS {
                    let id = number * REQUESTS + id;
                    let bits = COPY_SEND | MAKE_SEND_ONCE << 8;
                    client.send(MsgOptions::empty(), bits, [sends, reply], (id, None)).unwrap();
                    let (_, local, answer, _) = client.receive(MsgOptions::empty(), reply).unwrap();
                    assert_eq!((local, answer), (reply, -id));
                }
            })
        })
        .collect();
    let served = Arc::new(AtomicU64::new(0));
    let servers: Vec<_> = (0..2)
        .map(|_| {
            let (thread, served) = (Task { space: server.space.clone(), ..system.task() }, served.clone());
            thread::spawn(move || {
                loop {
                    match thread.receive(MsgOptions::empty(), set) {
                        Ok((remote, _, id, _)) => {
                            served.fetch_add(1, Ordering::Relaxed);
                            let answer = (-id, None);
                            thread
                                .send(MsgOptions::empty(), MOVE_SEND_ONCE, [remote, Name::NULL], answer)
                                .unwrap();
                        }
                        // The set's end is told to a thread that waits. One that begins to
                        // receive after it finds that there is no such name.
                        Err(MsgErrorKind::ReceivePortDied | MsgErrorKind::ReceiveInvalidName) => return,
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    server.space.destroy(set).unwrap();
    servers.into_iter().for_each(|server| server.join().unwrap());
    assert_eq!(served.load(Ordering::Relaxed), (CLIENTS * REQUESTS) as u64);
    drop(server);
    system.end();
}

/// Senders wait for a full queue when the port or the receiver's task ends. The messages that were
/// received are in order, and all others count as sent.
#[test]
fn ports_end_while_they_are_used() {
    for round in 0..200u32 {
        let system = System::new();
        let server = system.task();
        let port = server.port();
        let start = Arc::new(Barrier::new(4));
        let senders: Vec<_> = (0..2)
            .map(|number| {
                let (client, start) = (system.task(), start.clone());
                let sends = server.give(port, Disposition::MakeSend, &client);
                let reply = client.port();
                thread::spawn(move || {
                    start.wait();
                    let mut sent = 0;
                    for id in 0..60 {
                        let bits = COPY_SEND | MAKE_SEND_ONCE << 8;
                        match client.send(MsgOptions::empty(), bits, [sends, reply], (id, None)) {
                            Ok(()) => sent += 1,
                            Err(error) => {
                                assert_eq!(error, MsgErrorKind::SendInvalidDest, "client {number}");
                                break;
                            }
                        }
                    }
                    (client, reply, sent)
                })
            })
            .collect();
        let receiver = {
            let (server, start) = (server.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                let mut last = [-1; 2];
                for _ in 0..round {
                    let Ok((reply, _, id, _)) = server.receive(MsgOptions::empty(), port) else { return };
                    let sender = usize::from(id <= last[0]);
                    last[sender] = last[sender].max(id);
                    let _ = server.space.deallocate(reply);
                }
            })
        };
        start.wait();
        for _ in 0..round * 50 {
            std::hint::spin_loop();
        }
        match round % 3 {
            0 => server.space.destroy(port).unwrap(),
            1 => server.space.terminate(),
            _ => {
                // The receive right is taken out of the space and dropped, which ends the port.
                let right = server.space.extract_right(port, Disposition::MoveReceive).unwrap();
                assert!(matches!(right, Right::Receive(_)));
                drop(right);
            }
        }
        receiver.join().unwrap();
        for sender in senders {
            let (client, reply, sent) = sender.join().unwrap();
            // Each send-once right for a reply must come back as a notification, whether its
            // message was received, destroyed or never queued.
            let mut back = 0;
            while let Ok((_, _, id, _)) = client.receive(MsgOptions::RECEIVE_TIMEOUT, reply) {
                assert_eq!(id, 71);
                back += 1;
            }
            assert_eq!(back, sent);
            assert_eq!(client.space.receive_status(reply).unwrap().send_once_rights, 0);
        }
        drop(server);
        system.end();
    }
}

/// Two tasks send each other the receive rights of two ports at the same time. In some
/// interleavings both sends together would close a cycle.
#[test]
fn two_processors_close_no_cycle() {
    for _ in 0..500 {
        let system = System::new();
        let (one, other) = (system.task(), system.task());
        let (first, second) = (one.port(), other.port());
        let to_second = other.give(second, Disposition::MakeSend, &one);
        let to_first = one.give(first, Disposition::MakeSend, &other);
        let start = Arc::new(Barrier::new(2));
        let threads = [(one, to_second, first), (other, to_first, second)].map(|(task, to, moved)| {
            let start = start.clone();
            thread::spawn(move || {
                start.wait();
                let body = (0, Some((moved, MOVE_RECEIVE)));
                task.send(MsgOptions::empty(), COPY_SEND, [to, Name::NULL], body).unwrap();
                task
            })
        });
        let tasks = threads.map(|thread| thread.join().unwrap());
        drop(tasks);
        system.end();
    }
}

/// Several threads of one task make, move and take away names of that task.
#[test]
fn threads_of_one_task_share_its_names() {
    let system = System::new();
    let (task, other) = (system.task(), system.task());
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let (task, other) = (task.clone(), other.clone());
            thread::spawn(move || {
                for turn in 0..2000 {
                    let port = task.port();
                    let theirs = task.give(port, Disposition::MakeSend, &other);
                    let again = other.give(theirs, Disposition::CopySend, &task);
                    assert_eq!(again, port, "thread {number}, turn {turn}");
                    match turn % 3 {
                        0 => task.space.destroy(port).unwrap(),
                        1 => {
                            let moved = task.give(port, Disposition::MoveReceive, &other);
                            assert_eq!(moved, theirs);
                            other.space.modify_references(moved, PortRight::Receive, -1).unwrap();
                            task.space.deallocate(port).unwrap();
                        }
                        _ => {
                            task.space.modify_references(port, PortRight::Receive, -1).unwrap();
                            task.space.deallocate(port).unwrap();
                        }
                    }
                    other.space.deallocate(theirs).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((task.space.name_count(), other.space.name_count()), (0, 0));
    drop((task, other));
    system.end();
}
