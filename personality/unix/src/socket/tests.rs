//! Tests of the rules of unix(7).

use super::rights::in_flight;
use super::*;
use crate::account::{Account, FILE_BYTES, Kept, Settings};
use crate::file::OpenFile;
use crate::poll::Readiness;
use crate::testing::{Task, World, has_happened, meanwhile, now};
use crate::vfs::{At, Mode, OpenFlags};
use crate::{Bytes, Error, Identity, Result};
use core::time::Duration;
use proptest::prelude::*;
use std::sync::Arc;

fn world() -> &'static World {
    Box::leak(Box::new(World::new()))
}

/// Waits until a condition holds; false if it does not hold within the time that a thread may be
/// kept from running on a busy machine. Files disappear a moment after the last close: another
/// test's thread may be the one that drops the files of messages, and a search for cycles on
/// another thread holds every socket in flight while it looks.
fn soon(holds: impl Fn() -> bool) -> bool {
    (0..60_000).any(|_| {
        let yes = holds();
        if !yes {
            std::thread::sleep(Duration::from_millis(1));
        }
        yes
    })
}

fn of(file: &OpenFile) -> Arc<UnixSocket> {
    file.object_as().unwrap()
}

fn pair(w: &World, kind: SocketType) -> (Arc<OpenFile>, Arc<OpenFile>) {
    socket_pair(&w.caller(), kind, OpenFlags::NONBLOCK).unwrap()
}

fn send(w: &World, file: &OpenFile, bytes: &[u8], files: Vec<Arc<OpenFile>>) -> Result<usize> {
    let how = SendHow { files, nonblock: true, descriptor_limit: 5, ..Default::default() };
    now(of(file).send(&w.caller(), &mut Bytes::of(bytes), how))
}

fn receive(w: &World, file: &OpenFile, count: usize, peek: bool) -> Result<(Vec<u8>, Received)> {
    let mut to = Bytes::empty(count);
    let how = ReceiveHow { peek, nonblock: true, ..Default::default() };
    let received = now(of(file).receive(&w.caller(), &mut to, how))?;
    Ok((to.done().to_vec(), received))
}

fn path(name: &str) -> UnixAddress {
    UnixAddress::Path(name.as_bytes().to_vec())
}

fn hidden(name: &str) -> UnixAddress {
    UnixAddress::Abstract(name.as_bytes().to_vec())
}

/// A listening socket with this name.
fn listener(w: &World, kind: SocketType, address: &UnixAddress, backlog: usize) -> Arc<OpenFile> {
    let file = socket(&w.caller(), kind, OpenFlags::empty()).unwrap();
    now(of(&file).bind(&w.caller(), address.clone())).unwrap();
    of(&file).listen(&w.caller(), backlog).unwrap();
    file
}

fn connect(w: &World, file: &OpenFile, address: &UnixAddress) -> Result<()> {
    now(of(file).connect(&w.caller(), address, true))
}

fn accept(w: &World, file: &OpenFile) -> Result<Arc<OpenFile>> {
    now(of(file).accept(&w.caller(), true, OpenFlags::NONBLOCK))
}

#[test]
fn a_stream_carries_bytes_both_ways() {
    let w = world();
    let (a, b) = pair(w, SocketType::Stream);
    assert_eq!(w.read(&b, 9), Err(Error::EAGAIN));
    assert_eq!(w.write(&a, b"hello "), Ok(6));
    assert_eq!(w.write(&a, b"world"), Ok(5));
    assert_eq!(b.readiness(), Readiness::READ | Readiness::WRITE);
    assert_eq!(b.object().unwrap().readable_bytes(), Ok(11));
    assert_eq!(receive(w, &b, 4, true).unwrap().0, b"hell");
    assert_eq!(w.read(&b, 99), Ok(b"hello world".to_vec()));
    assert_eq!(w.write(&b, b"back"), Ok(4));
    assert_eq!(w.read(&a, 2), Ok(b"ba".to_vec()));
    assert_eq!(w.read(&a, 2), Ok(b"ck".to_vec()));
    assert_eq!(of(&a).peer_credentials(), Some(PeerCredentials { process: 10, user: 0, group: 0 }));
}

#[test]
fn a_full_stream_makes_the_writer_wait() {
    let w = world();
    let (a, b) = pair(w, SocketType::Stream);
    let written = w.write(&a, &[1; 1 << 20]).unwrap();
    assert!(written > 100_000 && written < 212_992);
    assert_eq!(w.write(&a, b"x"), Err(Error::EAGAIN));
    assert!(!a.readiness().contains(Readiness::WRITE));
    a.set_flag(OpenFlags::NONBLOCK, false);
    let writer = a.clone();
    let mut task = Task::new(async move { writer.write(&w.caller(), &mut Bytes::of(&[2; 300_000])).await });
    task.waits();
    let mut got = 0;
    while got < written + 300_000 {
        got += w.read(&b, 50_000).unwrap().len();
        let _ = task.run().map(|done| assert_eq!(done, Ok(300_000)));
    }
    assert_eq!(w.read(&b, 1), Err(Error::EAGAIN));
}

#[test]
fn shutdown_and_close_end_a_stream() {
    let w = world();
    let (a, b) = pair(w, SocketType::Stream);
    w.write(&a, b"last").unwrap();
    of(&a).shutdown(Shutdown::Write);
    assert_eq!(w.write(&a, b"x"), Err(Error::EPIPE));
    assert_eq!(w.read(&b, 9), Ok(b"last".to_vec()));
    assert_eq!(w.read(&b, 9), Ok(vec![]));
    assert!(b.readiness().contains(Readiness::READ_HANGUP) && !b.readiness().contains(Readiness::HANGUP));
    w.write(&b, b"still").unwrap();
    assert_eq!(w.read(&a, 9), Ok(b"still".to_vec()));
    drop(b);
    assert!(a.readiness().contains(Readiness::HANGUP));
    assert_eq!(w.read(&a, 9), Ok(vec![]));
    // If a side is closed with unread data, the other side gets `ECONNRESET`, once.
    let (a, b) = pair(w, SocketType::Stream);
    w.write(&a, b"unread").unwrap();
    drop(b);
    assert!(a.readiness().contains(Readiness::ERROR));
    assert_eq!(w.read(&a, 9), Err(Error::ECONNRESET));
    assert_eq!(w.read(&a, 9), Ok(vec![]));
    assert_eq!(w.write(&a, b"x"), Err(Error::EPIPE));
    let lone = socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap();
    assert_eq!(w.read(&lone, 1), Err(Error::EINVAL));
    assert_eq!(w.write(&lone, b"x"), Err(Error::ENOTCONN));
}

#[test]
fn connect_and_accept_find_each_other_by_name() {
    let w = world();
    for (kind, address) in [(SocketType::Stream, path("/sock")), (SocketType::Packets, hidden("name"))] {
        let client = socket(&w.caller(), kind, OpenFlags::NONBLOCK).unwrap();
        let listening = listener(w, kind, &address, 1);
        assert!(of(&listening).is_listening());
        assert_eq!(accept(w, &listening).err(), Some(Error::EAGAIN));
        connect(w, &client, &address).unwrap();
        assert_eq!(connect(w, &client, &address), Err(Error::EISCONN));
        assert_eq!(w.write(&client, b"early"), Ok(5), "what is sent before accept arrives");
        assert_eq!(listening.readiness(), Readiness::READ);
        let server = accept(w, &listening).unwrap();
        assert_eq!(w.read(&server, 9), Ok(b"early".to_vec()));
        assert_eq!(of(&server).address(), address);
        assert_eq!(of(&client).peer_address(), Ok(address.clone()));
        assert_eq!(of(&server).peer_address(), Ok(UnixAddress::Unnamed));
        assert_eq!(of(&client).peer_credentials().unwrap().process, 10);
        // The name cannot be bound again while the file exists. After the listener is closed,
        // connections are refused.
        let other = socket(&w.caller(), kind, OpenFlags::empty()).unwrap();
        assert_eq!(now(of(&other).bind(&w.caller(), address.clone())), Err(Error::EADDRINUSE));
        drop(listening);
        let late = socket(&w.caller(), kind, OpenFlags::empty()).unwrap();
        assert_eq!(connect(w, &late, &address), Err(Error::ECONNREFUSED));
    }
    w.put("/file", b"");
    let client = socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap();
    assert_eq!(connect(w, &client, &path("/file")), Err(Error::ECONNREFUSED));
    assert_eq!(connect(w, &client, &path("/none")), Err(Error::ENOENT));
    assert_eq!(connect(w, &client, &hidden("none")), Err(Error::ECONNREFUSED));
    let packets = listener(w, SocketType::Packets, &hidden("packets"), 1);
    assert_eq!(connect(w, &client, &hidden("packets")), Err(Error::EPROTOTYPE));
    drop(packets);
    let again = listener(w, SocketType::Stream, &hidden("packets"), 1);
    drop(again);
    let auto = socket(&w.caller(), SocketType::Datagram, OpenFlags::empty()).unwrap();
    now(of(&auto).bind(&w.caller(), UnixAddress::Unnamed)).unwrap();
    assert_eq!(of(&auto).address(), hidden("00000"));
    assert_eq!(now(of(&auto).bind(&w.caller(), hidden("x"))), Err(Error::EINVAL));
    assert_eq!(of(&auto).listen(&w.caller(), 1), Err(Error::EOPNOTSUPP));
}

#[test]
fn connecting_needs_write_permission() {
    let mut w = World::new();
    let listening = listener(&w, SocketType::Stream, &path("/sock"), 1);
    w.become_user(5, 5);
    let client = socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap();
    assert_eq!(connect(&w, &client, &path("/sock")), Err(Error::EACCES));
    drop(listening);
    let mut private = World::new();
    private.become_user(5, 5);
    let file = socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap();
    assert_eq!(now(of(&file).bind(&private.caller(), path("/x"))), Err(Error::EACCES));
}

#[test]
fn connect_waits_while_the_backlog_is_full() {
    let w = world();
    let address = hidden("backlog");
    let listening = listener(w, SocketType::Stream, &address, 0);
    let (first, second) = (
        socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap(),
        socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap(),
    );
    connect(w, &first, &address).unwrap();
    assert_eq!(connect(w, &second, &address), Err(Error::EAGAIN));
    let waiting = second.clone();
    let mut task =
        Task::new(async move { of(&waiting).connect(&w.caller(), &hidden("backlog"), false).await });
    task.waits();
    let server = accept(w, &listening).unwrap();
    assert_eq!(task.finish(), Ok(()));
    drop(server);
    assert_eq!(w.read(&first, 1), Ok(vec![]));
    // A connection that waits is refused when the listener is closed.
    let third = socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap();
    let mut task = Task::new(async move { of(&third).connect(&w.caller(), &hidden("backlog"), false).await });
    task.waits();
    drop(listening);
    assert_eq!(task.finish(), Err(Error::ECONNREFUSED));
    // A connection that was never accepted is at its end, too.
    assert_eq!(w.read(&second, 1), Ok(vec![]));
}

#[test]
fn datagrams_keep_their_boundaries() {
    let w = world();
    let server = socket(&w.caller(), SocketType::Datagram, OpenFlags::NONBLOCK).unwrap();
    now(of(&server).bind(&w.caller(), path("/dgram"))).unwrap();
    let client = socket(&w.caller(), SocketType::Datagram, OpenFlags::NONBLOCK).unwrap();
    now(of(&client).bind(&w.caller(), hidden("client"))).unwrap();
    let to = |destination| SendHow { destination: Some(destination), nonblock: true, ..Default::default() };
    let send_to =
        |bytes: &[u8], address| now(of(&client).send(&w.caller(), &mut Bytes::of(bytes), to(address)));
    assert_eq!(send_to(b"one", path("/dgram")), Ok(3));
    assert_eq!(send_to(b"", path("/dgram")), Ok(0));
    assert_eq!(send_to(b"three", path("/dgram")), Ok(5));
    assert_eq!(send_to(b"x", hidden("unbound")), Err(Error::ECONNREFUSED));
    let (bytes, received) = receive(w, &server, 2, false).unwrap();
    assert_eq!((bytes, received.count, received.length), (b"on".to_vec(), 2, 3), "the rest is lost");
    assert_eq!(received.source, hidden("client"));
    assert_eq!(receive(w, &server, 9, false).unwrap().1.length, 0);
    assert_eq!(receive(w, &server, 9, true).unwrap().0, b"three");
    assert_eq!(receive(w, &server, 9, false).unwrap().0, b"three");
    assert_eq!(w.read(&server, 9), Err(Error::EAGAIN));
    assert_eq!(w.write(&client, b"x"), Err(Error::ENOTCONN));
    connect(w, &client, &path("/dgram")).unwrap();
    assert_eq!(w.write(&client, b"connected"), Ok(9));
    assert_eq!(w.write(&client, &vec![0; 300_000]), Err(Error::EMSGSIZE));
    let mut sent = 0;
    while w.write(&client, &[0; 1000]).is_ok() {
        sent += 1;
    }
    assert!((100..400).contains(&sent));
    assert!(!client.readiness().contains(Readiness::WRITE));
    client.set_flag(OpenFlags::NONBLOCK, false);
    let writer = client.clone();
    let mut task = Task::new(async move { writer.write(&w.caller(), &mut Bytes::of(&[0; 1000])).await });
    task.waits();
    for _ in 0..3 {
        receive(w, &server, 2000, false).unwrap();
    }
    assert_eq!(task.finish(), Ok(1000));
    drop(server);
    assert_eq!(w.write(&client, b"x"), Err(Error::ECONNREFUSED));
    let (a, b) = pair(w, SocketType::Packets);
    send(w, &a, b"one", vec![]).unwrap();
    send(w, &a, b"two", vec![]).unwrap();
    assert_eq!(w.read(&b, 99), Ok(b"one".to_vec()));
    drop(a);
    assert_eq!(w.read(&b, 99), Err(Error::ECONNRESET).or(Ok::<_, Error>(b"two".to_vec())));
}

#[test]
fn open_files_are_passed_with_a_message() {
    let w = world();
    let (a, b) = pair(w, SocketType::Stream);
    w.put("/f", b"content");
    let file = w.open("/f", OpenFlags::READ).unwrap();
    w.write(&a, b"before").unwrap();
    assert_eq!(send(w, &a, b"with", vec![file.clone(), file.clone()]), Ok(4));
    w.write(&a, b"after").unwrap();
    let (bytes, received) = receive(w, &b, 99, false).unwrap();
    assert_eq!((bytes.as_slice(), received.files.len()), (&b"before"[..], 0), "files are a border");
    assert_eq!(receive(w, &b, 99, true).unwrap().1.files.len(), 2);
    let (bytes, received) = receive(w, &b, 2, false).unwrap();
    assert_eq!((bytes.as_slice(), received.files.len()), (&b"wi"[..], 2));
    assert!(Arc::ptr_eq(&received.files[0], &file));
    assert_eq!(receive(w, &b, 99, false).unwrap().0, b"thafter");
    assert_eq!(received.credentials.unwrap().process, 10);
    drop(received);
    assert!(soon(|| Arc::strong_count(&file) == 1));
    let many = vec![file.clone(); 254];
    assert_eq!(send(w, &a, b"x", many), Err(Error::EINVAL));
    // A failed send leaves no files in flight. Neither does a message that is read without a buffer
    // for them.
    drop(b);
    assert_eq!(send(w, &a, b"x", vec![file.clone()]), Err(Error::EPIPE));
    let (a, b) = pair(w, SocketType::Datagram);
    send(w, &a, b"x", vec![file.clone()]).unwrap();
    w.read(&b, 9).unwrap();
    assert!(soon(|| Arc::strong_count(&file) == 1));
}

#[test]
fn credentials_that_a_sender_states_are_checked() {
    let mut w = World::new();
    w.identity = Identity::new(5, 6, Arc::new([7]));
    let (a, b) = pair(&w, SocketType::Datagram);
    let show = |process, user, group| {
        let credentials = Some(PeerCredentials { process, user, group });
        let how = SendHow { credentials, nonblock: true, ..Default::default() };
        now(of(&a).send(&w.caller(), &mut Bytes::of(b"x"), how))
    };
    assert_eq!(show(10, 5, 7), Ok(1));
    assert_eq!(receive(&w, &b, 9, false).unwrap().1.credentials.unwrap().group, 7);
    for (process, user, group) in [(11, 5, 6), (10, 0, 6), (10, 5, 0)] {
        assert_eq!(show(process, user, group), Err(Error::EPERM));
    }
}

#[test]
fn a_receive_waits_for_all_bytes_or_its_timeout() {
    let w = world();
    let (a, b) = pair(w, SocketType::Stream);
    let socket = of(&b);
    let mut task = Task::new(async move {
        let mut to = Bytes::empty(6);
        let how = ReceiveHow { wait_all: true, ..Default::default() };
        socket.receive(&w.caller(), &mut to, how).await.map(|received| received.count)
    });
    w.write(&a, b"abc").unwrap();
    task.waits();
    w.write(&a, b"def").unwrap();
    assert_eq!(task.finish(), Ok(6));
    let timeout = Some(Duration::from_secs(1));
    of(&b).set_options(SocketOptions { receive_timeout: timeout, ..of(&b).options() });
    b.set_flag(OpenFlags::NONBLOCK, false);
    let mut task = Task::new(async move { b.read(&w.caller(), &mut Bytes::empty(1)).await });
    task.waits();
    w.environment.advance(Duration::from_secs(1));
    assert_eq!(task.finish(), Err(Error::EAGAIN));
}

#[test]
fn sockets_that_hold_only_each_other_are_collected() {
    let w = world();
    // One socket is in a message to itself, and two are in messages to each other.
    let (a, b) = pair(w, SocketType::Stream);
    let (c, d) = pair(w, SocketType::Datagram);
    w.put("/held", b"");
    let held = w.open("/held", OpenFlags::READ).unwrap();
    send(w, &a, b"x", vec![b.clone(), held.clone()]).unwrap();
    send(w, &c, b"x", vec![c.clone(), held.clone()]).unwrap();
    send(w, &d, b"x", vec![d.clone()]).unwrap();
    let ids = [a.id(), b.id(), c.id(), d.id()];
    assert_eq!(in_flight(&ids), 3);
    drop((a, c));
    assert_eq!(in_flight(&ids), 3, "b and d are still open");
    drop(b);
    drop(d);
    // Later closes find the cycles. How many closes that takes depends on what other tests have in
    // flight.
    assert!(soon(|| {
        drop(socket(&w.caller(), SocketType::Stream, OpenFlags::empty()));
        in_flight(&ids) == 0
    }));
    assert!(soon(|| Arc::strong_count(&held) == 1));
}

#[test]
fn sockets_in_flight_to_a_socket_in_use_are_kept() {
    let w = world();
    let (outer, inner) = pair(w, SocketType::Stream);
    let (x, y) = pair(w, SocketType::Stream);
    w.write(&x, b"inside").unwrap();
    send(w, &outer, b"x", vec![y]).unwrap();
    drop(socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap());
    let (_, received) = receive(w, &inner, 9, false).unwrap();
    assert_eq!(w.read(&received.files[0], 9), Ok(b"inside".to_vec()));
}

#[test]
fn a_long_chain_of_sockets_in_flight_is_dropped_without_recursion() {
    let w = world();
    let (first, mut last) = pair(w, SocketType::Stream);
    for _ in 0..5000 {
        let (a, b) = pair(w, SocketType::Stream);
        send(w, &a, b"x", vec![last]).unwrap();
        drop(a);
        last = b;
    }
    drop(last);
    assert!(soon(|| w.read(&first, 1) == Ok(vec![])), "the far end is gone");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// All bytes that are written to a stream are read, in order, however they are split.
    #[test]
    fn bytes_of_a_stream_arrive_in_order(steps in proptest::collection::vec((any::<bool>(), 1usize..60_000), 1..60)) {
        let w = world();
        let (a, b) = pair(w, SocketType::Stream);
        let (mut sent, mut got) = (0usize, 0usize);
        for (write, count) in steps {
            if write {
                let bytes: Vec<u8> = (sent..sent + count).map(|i| (i / 7) as u8).collect();
                match w.write(&a, &bytes) {
                    Ok(count) => sent += count,
                    Err(error) => prop_assert_eq!(error, Error::EAGAIN),
                }
            } else {
                match w.read(&b, count) {
                    Ok(bytes) => {
                        let expected: Vec<u8> = (got..got + bytes.len()).map(|i| (i / 7) as u8).collect();
                        prop_assert!(bytes == expected, "bytes differ");
                        prop_assert!(bytes.len() == count.min(sent - got));
                        got += bytes.len();
                    }
                    Err(error) => { prop_assert_eq!(error, Error::EAGAIN); prop_assert_eq!(sent, got); }
                }
            }
            prop_assert_eq!(b.object().unwrap().readable_bytes(), Ok(sent - got));
        }
    }
}

#[test]
fn names_of_removed_sockets_can_be_bound_again() {
    let w = world();
    let listening = listener(w, SocketType::Stream, &path("/s"), 1);
    now(w.caller().unlink(&At::Current, b"/s")).unwrap();
    let again = listener(w, SocketType::Stream, &path("/s"), 1);
    let client = socket(&w.caller(), SocketType::Stream, OpenFlags::empty()).unwrap();
    connect(w, &client, &path("/s")).unwrap();
    assert!(accept(w, &listening).is_err());
    assert!(accept(w, &again).is_ok());
    let mode = now(w.caller().status(&At::Current, b"/s", true, false)).unwrap().mode;
    assert_eq!(mode, Mode::new(0o755));
}

#[test]
fn no_bytes_come_after_the_end_of_a_stream() {
    let w = world();
    let (one, other) = pair(w, SocketType::Stream);
    let (ending, reading) = (one.clone(), other.clone());
    meanwhile("socket sends", move || {
        of(&ending).shutdown(Shutdown::Write);
        assert_eq!(receive(w, &reading, 9, false).unwrap().0, b"");
    });
    assert_eq!(send(w, &one, b"late", vec![]), Err(Error::EPIPE));
    assert!(has_happened());
    assert_eq!(receive(w, &other, 9, false).unwrap().0, b"");
}

#[test]
fn a_socket_that_two_threads_bind_gets_one_name() {
    let w = world();
    let file = socket(&w.caller(), SocketType::Stream, OpenFlags::NONBLOCK).unwrap();
    let second = Arc::new(std::sync::Mutex::new(None));
    let (place, same) = (second.clone(), file.clone());
    meanwhile("socket binds", move || {
        let mut binding = Task::new(async move { of(&same).bind(&w.caller(), path("/second")).await });
        let done = binding.run();
        *place.lock().unwrap() = Some((binding, done));
    });
    assert_eq!(now(of(&file).bind(&w.caller(), path("/first"))), Ok(()));
    assert!(has_happened());
    let (mut binding, done) = second.lock().unwrap().take().unwrap();
    assert_eq!(done.unwrap_or_else(|| binding.finish()), Err(Error::EINVAL));
    assert_eq!(of(&file).address(), path("/first"));
    assert_eq!(w.open("/second", OpenFlags::PATH).err(), Some(Error::ENOENT));
}

#[test]
fn descriptors_in_flight_are_limited_per_user() {
    let mut w = World::new();
    w.put("/held", b"");
    let held = w.open("/held", OpenFlags::READ).unwrap();
    w.become_user(1000, 1000);
    let (a, b) = pair(&w, SocketType::Datagram);
    let with = |count| vec![held.clone(); count];
    assert_eq!(send(&w, &a, b"x", with(5)), Ok(1));
    assert_eq!(send(&w, &a, b"x", with(3)), Ok(1), "no more than the limit were there");
    assert_eq!(send(&w, &a, b"x", with(1)), Err(Error::ETOOMANYREFS));
    assert_eq!(send(&w, &a, b"x", vec![]), Ok(1));
    assert_eq!(w.process.account.amount(Kept::DescriptorsInFlight), 8);
    let user = core::mem::replace(&mut w.process.account, Account::new(1001, Settings::new(1 << 20)));
    assert_eq!(send(&w, &a, b"x", with(1)), Ok(1), "another user's count by themselves");
    w.process.account = user;
    assert_eq!(receive(&w, &b, 9, false).unwrap().1.files.len(), 5);
    assert_eq!(send(&w, &a, b"x", with(1)), Ok(1));
    drop((a, b));
    assert_eq!(w.process.account.amount(Kept::DescriptorsInFlight), 0);
}

#[test]
fn sent_bytes_are_charged_to_the_sender_until_they_are_received() {
    let mut w = World::new();
    w.become_user(1000, 1000);
    // The account has memory for two sockets and some bytes.
    w.process.account = Account::new(1000, Settings::new(2 * (2 * FILE_BYTES + 5000)));
    for kind in [SocketType::Datagram, SocketType::Stream] {
        let (a, b) = pair(&w, kind);
        assert_eq!(send(&w, &a, &[0; 3000], vec![]), Ok(3000));
        assert_eq!(send(&w, &a, &[0; 3000], vec![]), Err(Error::ENOBUFS));
        assert_eq!(receive(&w, &b, 3000, false).unwrap().0.len(), 3000);
        assert_eq!(w.process.account.amount(Kept::ServerMemory), 2 * FILE_BYTES);
        assert_eq!(send(&w, &a, &[0; 3000], vec![]), Ok(3000));
        drop((a, b));
        assert_eq!(w.process.account.amount(Kept::ServerMemory), 0);
    }
}
