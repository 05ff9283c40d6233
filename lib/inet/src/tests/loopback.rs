//! Sockets that talk to each other over `lo`.

use super::*;

#[test]
fn a_stream_carries_bytes_both_ways_and_ends() {
    for address in [v4(80), v6(80)] {
        let mut stack = stack();
        let (client, server) = pair(&mut stack, address);
        assert_eq!(send(&mut stack, client, b"hello"), Ok(5));
        assert!(stack.readiness(server).read);
        assert_eq!(receive(&mut stack, server).unwrap(), b"hello");
        assert_eq!(receive(&mut stack, server), Err(Error::WouldBlock));
        assert_eq!(send(&mut stack, server, b"world!"), Ok(6));
        assert_eq!(receive(&mut stack, client).unwrap(), b"world!");
        // Half close: the other direction stays.
        stack.shutdown(client, Direction::Write).unwrap();
        assert_eq!(receive(&mut stack, server).unwrap(), b"");
        assert!(stack.readiness(server).read_closed && !stack.readiness(server).hup);
        assert_eq!(send(&mut stack, client, b"x"), Err(Error::BrokenPipe));
        assert_eq!(send(&mut stack, server, b"late"), Ok(4));
        assert_eq!(receive(&mut stack, client).unwrap(), b"late");
        assert_eq!(stack.state(client), Ok(State::FinWait2));
        stack.close(server);
        assert_eq!(receive(&mut stack, client).unwrap(), b"");
        assert!(stack.readiness(client).hup);
        assert!(stack.sockets().iter().all(|info| info.state != State::LastAck));
        assert_eq!(stack.sockets().iter().filter(|info| info.state == State::TimeWait).count(), 1);
        stack.close(client);
        let mut now = Instant::default();
        seconds(&mut stack, &mut now, 61);
        assert!(stack.sockets().is_empty());
        assert_eq!(stack.next_deadline(), None);
    }
}

#[test]
fn queues_count_the_end_of_the_peer_until_it_is_read() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(80));
    let waiting = |stack: &Stack| {
        let info = stack.sockets().into_iter().find(|info| info.id == Some(server)).unwrap();
        (info.receive_queue, info.send_queue)
    };
    assert_eq!(send(&mut stack, client, b"four"), Ok(4));
    assert_eq!(waiting(&stack), (4, 0));
    stack.shutdown(client, Direction::Write).unwrap();
    assert_eq!(waiting(&stack), (5, 0));
    let mut buffer = [0; 4];
    stack.receive_from(server, &mut buffer, ReceiveFlags::default()).unwrap();
    assert_eq!(waiting(&stack), (1, 0), "a read of just the data does not come to the end");
    let peek = ReceiveFlags { peek: true, ..ReceiveFlags::default() };
    assert_eq!(stack.receive_from(server, &mut buffer, peek).unwrap().copied, 0);
    assert_eq!(waiting(&stack), (1, 0));
    assert_eq!(receive(&mut stack, server).unwrap(), b"");
    assert_eq!(waiting(&stack), (0, 0));

    let (client, server) = pair(&mut stack, v4(81));
    assert_eq!(send(&mut stack, client, b"four"), Ok(4));
    stack.shutdown(client, Direction::Write).unwrap();
    assert_eq!(receive(&mut stack, server).unwrap(), b"four");
    let info = stack.sockets().into_iter().find(|info| info.id == Some(server)).unwrap();
    assert_eq!(info.receive_queue, 0, "a read with room for more does");
}

#[test]
fn a_large_transfer_is_right_to_the_byte() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(81));
    let data = pattern(5_000_000, 1);
    let (mut sent, mut got) = (0, Vec::new());
    let mut now = Instant::default();
    while got.len() < data.len() {
        now = now + Duration::from_micros(10);
        stack.advance(now);
        match send(&mut stack, client, &data[sent..data.len().min(sent + 70_000)]) {
            Ok(count) => sent += count,
            Err(Error::WouldBlock) => {}
            Err(error) => panic!("{error}"),
        }
        let mut buffer = [0; 9000];
        if let Ok(received) = stack.receive_from(server, &mut buffer, ReceiveFlags::default()) {
            got.extend_from_slice(&buffer[..received.copied]);
        }
    }
    assert!(got == data);
    assert!(now < Instant::from_micros(100_000), "no step waits for a timer: {now:?}");
}

#[test]
fn a_port_without_a_listener_refuses() {
    let mut stack = stack();
    let client = stack.open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(stack.connect(client, v4(9)), Ok(Connect::Started));
    assert_eq!(stack.state(client), Ok(State::Closed));
    assert!(stack.readiness(client).error && stack.readiness(client).hup);
    assert_eq!(stack.take_error(client), Some(Error::ConnectionRefused));
    // The socket can be used again.
    let _listener = listener(&mut stack, v4(9));
    assert_eq!(stack.connect(client, v4(9)), Ok(Connect::Done));
}

#[test]
fn unread_data_and_linger_reset_the_connection() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(82));
    send(&mut stack, client, b"unread").unwrap();
    stack.close(server);
    assert_eq!(receive(&mut stack, client), Err(Error::ConnectionReset));
    assert_eq!(send(&mut stack, client, b"x"), Err(Error::BrokenPipe));
    let (client, server) = pair(&mut stack, v4(83));
    stack.configure(client, |options| options.linger = Some(Duration::ZERO)).unwrap();
    stack.close(client);
    assert_eq!(stack.take_error(server), Some(Error::ConnectionReset));
    assert!(stack.sockets().iter().all(|info| info.state != State::TimeWait));
}

/// Sends until nothing more fits.
fn fill(stack: &mut Stack, id: SocketId) -> usize {
    core::iter::from_fn(|| send(stack, id, &[7; 9000]).ok()).sum()
}

#[test]
fn a_close_can_be_awaited() {
    let mut stack = stack();
    // The peer has everything: there is nothing to wait for.
    let (client, server) = pair(&mut stack, v4(86));
    send(&mut stack, client, b"all").unwrap();
    assert!(!stack.begin_close(client));
    stack.close(client);
    assert_eq!(receive(&mut stack, server).unwrap(), b"all");
    stack.close(server);
    // The peer reads while the caller waits, which is told that it has read.
    let (client, server) = pair(&mut stack, v4(87));
    let sent = fill(&mut stack, client);
    assert!(stack.begin_close(client) && stack.begin_close(client) && stack.is_closing(client));
    while stack.ready().is_some() {}
    let mut read = 0;
    while stack.is_closing(client) {
        read += receive(&mut stack, server).unwrap().len();
    }
    assert!(core::iter::from_fn(|| stack.ready()).any(|id| id == client));
    assert_eq!(stack.state(client), Ok(State::FinWait2));
    assert!(read <= sent);
    stack.close(server);
    // The end of the connection makes it known, too.
    assert_eq!(stack.state(client), Ok(State::Closed));
    stack.close(client);
    assert_eq!(stack.state(client), Err(Error::NotFound));
    // The caller waits no longer: the rest arrives all the same.
    let (client, server) = pair(&mut stack, v4(88));
    let sent = fill(&mut stack, client);
    assert!(stack.begin_close(client));
    stack.close(client);
    let mut read = 0;
    loop {
        match receive(&mut stack, server).unwrap().len() {
            0 => break,
            count => read += count,
        }
    }
    assert_eq!(read, sent);
    stack.close(server);
    let mut now = Instant::default();
    seconds(&mut stack, &mut now, 61);
    assert!(stack.sockets().is_empty());
    assert_eq!(stack.memory(), 0);
    // What the program has not read resets the connection.
    let (client, server) = pair(&mut stack, v4(89));
    send(&mut stack, client, b"unread").unwrap();
    assert!(!stack.begin_close(server));
    stack.close(server);
    assert_eq!(receive(&mut stack, client), Err(Error::ConnectionReset));
    assert_eq!(stack.state(server), Err(Error::NotFound));
}

#[test]
fn a_connection_says_whether_it_acknowledges_quickly() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(90));
    assert_eq!(stack.acknowledges_quickly(server), Ok(true));
    // An acknowledgement goes with an answer.
    send(&mut stack, client, b"question").unwrap();
    receive(&mut stack, server).unwrap();
    send(&mut stack, server, b"answer").unwrap();
    assert_eq!(stack.acknowledges_quickly(server), Ok(false));
    assert_eq!(stack.acknowledges_quickly(client), Ok(true));
    // An acknowledgement that waited for nothing says that there are no answers.
    send(&mut stack, client, b"statement").unwrap();
    let mut now = Instant::default();
    seconds(&mut stack, &mut now, 1);
    assert_eq!(stack.acknowledges_quickly(server), Ok(true));
    for quick in [false, true] {
        stack.configure(server, |options| options.quick_ack = Some(quick)).unwrap();
        assert_eq!(stack.acknowledges_quickly(server), Ok(quick));
    }
}

#[test]
fn urgent_data_is_out_of_band() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(84));
    send(&mut stack, client, b"ab").unwrap();
    let urgent = SendFlags { urgent: true, ..SendFlags::default() };
    stack.send(client, b"!", None, urgent).unwrap();
    send(&mut stack, client, b"cd").unwrap();
    let mut now = Instant::default();
    seconds(&mut stack, &mut now, 1);
    assert!(stack.readiness(server).priority);
    assert_eq!(receive(&mut stack, server).unwrap(), b"ab");
    assert!(stack.queued(server).unwrap().at_mark);
    let mut byte = [0; 1];
    let flags = ReceiveFlags { urgent: true, ..ReceiveFlags::default() };
    assert_eq!(stack.receive_from(server, &mut byte, flags).map(|received| received.copied), Ok(1));
    assert_eq!(&byte, b"!");
    assert_eq!(receive(&mut stack, server).unwrap(), b"cd");
    assert!(!stack.readiness(server).priority);
}

#[test]
fn a_closed_window_stops_the_sender_and_opens_again() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(85));
    let data = pattern(2_000_000, 3);
    let mut sent = 0;
    while let Ok(count) = send(&mut stack, client, &data[sent..]) {
        sent += count;
    }
    assert!(sent < data.len() && !stack.readiness(client).write);
    let mut now = Instant::default();
    seconds(&mut stack, &mut now, 300);
    while stack.ready().is_some() {}
    let mut got = Vec::new();
    while let Ok(bytes) = receive(&mut stack, server) {
        got.extend_from_slice(&bytes);
    }
    assert!(stack.readiness(client).write);
    assert!(std::iter::from_fn(|| stack.ready()).any(|id| id == client));
    seconds(&mut stack, &mut now, 1);
    while let Ok(bytes) = receive(&mut stack, server) {
        got.extend_from_slice(&bytes);
    }
    assert!(got == data[..sent], "{} of {sent}", got.len());
}

#[test]
fn a_socket_can_connect_to_itself() {
    let mut stack = stack();
    let id = stack.open(Kind::Tcp(Family::V4)).unwrap();
    stack.bind(id, v4(1001)).unwrap();
    assert_eq!(stack.connect(id, v4(1001)), Ok(Connect::Done));
    assert_eq!(send(&mut stack, id, b"self"), Ok(4));
    assert_eq!(receive(&mut stack, id).unwrap(), b"self");
}

#[test]
fn datagrams_find_their_sockets() {
    for (family, any, to) in [(Family::V4, v4(53), v4(53)), (Family::V6, v6(53), v6(53))] {
        let mut stack = stack();
        let server = stack.open(Kind::Udp(family)).unwrap();
        stack.bind(server, any).unwrap();
        let client = stack.open(Kind::Udp(family)).unwrap();
        assert_eq!(stack.send(client, b"question", Some(to), SendFlags::default()), Ok(8));
        let mut buffer = [0; 4];
        let received = stack.receive_from(server, &mut buffer, ReceiveFlags::default()).unwrap();
        assert_eq!((received.copied, received.length, &buffer), (4, 8, b"ques"));
        let peer = received.from.unwrap();
        assert_eq!(stack.send(server, b"", Some(peer), SendFlags::default()), Ok(0));
        assert!(stack.readiness(client).read);
        assert_eq!(receive(&mut stack, client).unwrap(), b"");
        // The other end goes: a connected socket hears of it.
        stack.connect(client, to).unwrap();
        stack.close(server);
        send(&mut stack, client, b"lost").unwrap();
        assert_eq!(receive(&mut stack, client), Err(Error::ConnectionRefused));
        let large = vec![1; 65_600];
        assert_eq!(send(&mut stack, client, &large), Err(Error::MessageTooLong));
    }
}

#[test]
fn an_ipv6_socket_speaks_ipv4() {
    let mut stack = stack();
    let any = "[::]:700".parse().unwrap();
    let listener = listener(&mut stack, any);
    let client = stack.open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(stack.connect(client, v4(700)), Ok(Connect::Done));
    let (server, peer) = stack.accept(listener).unwrap();
    assert!(peer.to_string().starts_with("[::ffff:127.0.0.1]:"), "{peer}");
    assert_eq!(stack.local_address(server).unwrap().to_string(), "[::ffff:127.0.0.1]:700");
    let other = stack.open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(stack.bind(other, "0.0.0.0:700".parse().unwrap()), Err(Error::AddressInUse));
}

#[test]
fn ports_are_in_use_until_they_are_not() {
    let mut stack = stack();
    let first = listener(&mut stack, v4(90));
    let second = stack.open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(stack.bind(second, v4(90)), Err(Error::AddressInUse));
    let elsewhere = "192.0.2.1:90".parse().unwrap();
    assert_eq!(stack.bind(second, elsewhere), Err(Error::AddressNotAvailable));
    stack.close(first);
    let (client, server) = pair(&mut stack, v4(90));
    stack.close(server);
    stack.close(client);
    // The connection is in TIME_WAIT on the server's side now.
    assert_eq!(stack.bind(second, v4(90)), Err(Error::AddressInUse));
    stack.configure(second, |options| options.reuse_address = true).unwrap();
    assert_eq!(stack.bind(second, v4(90)), Ok(()));
}

#[test]
fn an_echo_request_is_answered() {
    for (family, address, message, reply) in [(Family::V4, v4(0), 8, 0), (Family::V6, v6(0), 128, 129)] {
        let mut stack = stack();
        let id = stack.open(Kind::IcmpEcho(family)).unwrap();
        let request = [message, 0, 0, 0, 0, 0, 0, 1, b'p', b'i', b'n', b'g'];
        stack.send(id, &request, Some(address), SendFlags::default()).unwrap();
        let answer = receive(&mut stack, id).unwrap();
        assert_eq!((answer[0], &answer[6..]), (reply, &request[6..]));
    }
}

#[test]
fn a_raw_socket_sees_the_answers() {
    let mut stack = stack();
    let id = stack.open(Kind::Raw(Family::V4, 1)).unwrap();
    let request = [8, 0, 0xf7, 0xfd, 0, 1, 0, 1];
    stack.send(id, &request, Some(v4(0)), SendFlags::default()).unwrap();
    let (first, second) = (receive(&mut stack, id).unwrap(), receive(&mut stack, id).unwrap());
    assert_eq!((first[20], second[20]), (8, 0));
    assert_eq!(first.len(), 28);
}

#[test]
fn idle_peers_are_probed_and_given_up() {
    let mut stack = stack();
    let (client, server) = pair(&mut stack, v4(91));
    stack
        .configure(client, |options| {
            options.keep_alive = true;
            options.keep_idle = Duration::from_secs(10);
            options.keep_interval = Duration::from_secs(2);
            options.keep_count = 3;
        })
        .unwrap();
    let mut now = Instant::default();
    seconds(&mut stack, &mut now, 100);
    assert_eq!(stack.state(client), Ok(State::Established), "the peer answers");
    stack.set_up(InterfaceIndex(1), false).unwrap();
    seconds(&mut stack, &mut now, 20);
    assert_eq!(stack.take_error(client), Some(Error::NetworkUnreachable), "there is no route");
    assert_eq!(stack.state(server), Ok(State::Established), "the peer did not ask");
}

#[test]
fn a_full_backlog_does_not_lose_the_others() {
    let mut stack = stack();
    let listener = stack.open(Kind::Tcp(Family::V4)).unwrap();
    stack.bind(listener, v4(92)).unwrap();
    stack.listen(listener, 2).unwrap();
    let clients: Vec<_> = (0..5)
        .map(|_| {
            let id = stack.open(Kind::Tcp(Family::V4)).unwrap();
            (id, stack.connect(id, v4(92)))
        })
        .collect();
    let done = clients.iter().filter(|client| client.1 == Ok(Connect::Done)).count();
    assert_eq!(done, 3, "one more than the backlog, as on Linux");
    let mut now = Instant::default();
    let mut accepted = 0;
    for _ in 0..20 {
        while stack.accept(listener).is_ok() {
            accepted += 1;
        }
        seconds(&mut stack, &mut now, 1);
    }
    assert_eq!(accepted, 5);
    assert!(clients.iter().all(|client| stack.state(client.0) == Ok(State::Established)));
}

#[test]
fn a_socket_that_connects_again_and_again_takes_no_memory() {
    let mut stack = stack();
    let server = listener(&mut stack, v4(80));
    let client = stack.open(Kind::Tcp(Family::V4)).unwrap();
    for _ in 0..3 {
        assert_eq!(stack.connect(client, v4(80)), Ok(Connect::Done));
        let (child, _) = stack.accept(server).unwrap();
        send(&mut stack, child, &pattern(5000, 1)).unwrap();
        stack.disconnect(client).unwrap();
        stack.close(child);
    }
    assert_eq!(stack.memory(), 0);
    // The same for one that listens when its connection has ended. It can be found at its port.
    assert_eq!(stack.connect(client, v4(80)), Ok(Connect::Done));
    let (child, _) = stack.accept(server).unwrap();
    stack.close(server);
    send(&mut stack, child, &pattern(5000, 1)).unwrap();
    stack.configure(child, |options| options.linger = Some(Duration::ZERO)).unwrap();
    stack.close(child);
    assert_eq!(stack.state(client), Ok(State::Closed));
    stack.listen(client, 1).unwrap();
    assert_eq!(stack.memory(), 0);
    let address = v4(stack.local_address(client).unwrap().port());
    let other = stack.open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(stack.connect(other, address), Ok(Connect::Done));
    assert!(stack.accept(client).is_ok());
}

#[test]
fn addresses_of_other_systems_send_nothing() {
    let mut stack = stack();
    let foreign: IpAddr = "192.0.2.1".parse().unwrap();
    let free = |stack: &mut Stack, kind| {
        let id = stack.open(kind).unwrap();
        stack.configure(id, |options| options.free_bind = true).unwrap();
        id
    };
    let udp = free(&mut stack, Kind::Udp(Family::V4));
    let flags = SendFlags { source: Some(foreign), ..SendFlags::default() };
    assert_eq!(stack.send(udp, b"x", Some(v4(53)), flags), Err(Error::InvalidArgument));
    let bound = free(&mut stack, Kind::Udp(Family::V4));
    stack.bind(bound, SocketAddr::new(foreign, 53)).unwrap();
    assert_eq!(stack.send(bound, b"x", Some(v4(53)), SendFlags::default()), Err(Error::InvalidArgument));
    let tcp = free(&mut stack, Kind::Tcp(Family::V4));
    stack.bind(tcp, SocketAddr::new(foreign, 4000)).unwrap();
    listener(&mut stack, v4(80));
    assert_eq!(stack.connect(tcp, v4(80)), Err(Error::InvalidArgument));
    // Any own address is a source.
    let flags = SendFlags { source: Some("127.0.0.9".parse().unwrap()), ..SendFlags::default() };
    assert_eq!(stack.send(udp, b"x", Some(v4(53)), flags), Ok(1));
}

#[test]
fn only_sockets_of_one_owner_share_a_port() {
    for kind in [Kind::Udp(Family::V4), Kind::Tcp(Family::V4)] {
        let mut stack = stack();
        let mut bind = |owner| {
            let id = stack.open_for(kind, owner).unwrap();
            stack.configure(id, |options| options.reuse_port = true).unwrap();
            stack.bind(id, v4(80))
        };
        assert_eq!(bind(1000), Ok(()));
        assert_eq!(bind(1000), Ok(()));
        assert_eq!(bind(1001), Err(Error::AddressInUse));
    }
    // Sockets that are bound to one address by `reuse_address` do not both listen.
    let mut stack = stack();
    let ids = [1000, 1001].map(|owner| {
        let id = stack.open_for(Kind::Tcp(Family::V4), owner).unwrap();
        stack
            .configure(id, |options| {
                options.reuse_address = true;
                options.reuse_port = true;
            })
            .unwrap();
        stack.bind(id, v4(80)).unwrap();
        id
    });
    stack.listen(ids[0], 1).unwrap();
    assert_eq!(stack.listen(ids[1], 1), Err(Error::AddressInUse));
}

#[test]
fn datagrams_that_find_no_room_are_counted() {
    let mut stack = stack();
    let server = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.configure(server, |options| options.receive_buffer = 2048).unwrap();
    stack.bind(server, v4(53)).unwrap();
    let client = stack.open(Kind::Udp(Family::V4)).unwrap();
    for _ in 0..3 {
        stack.send(client, &[0; 1500], Some(v4(53)), SendFlags::default()).unwrap();
    }
    assert_eq!(stack.interfaces().next().unwrap().counters.received_drops, 2);
}
