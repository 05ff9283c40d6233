//! Two stacks with a cable between them, and what a bad network does to their packets.

use super::*;

/// A cable between two stacks. Each frame may be lost, doubled, reordered or corrupted.
pub(crate) struct Cable {
    pub(crate) stacks: [Stack; 2],
    pub(crate) interfaces: [InterfaceIndex; 2],
    pub(crate) now: Instant,
    /// Frames on their way to each stack, with the moment of their arrival.
    flying: [Vec<(Instant, Vec<u8>)>; 2],
    /// Of a hundred frames, how many are lost, doubled, delayed and corrupted.
    pub(crate) bad: u64,
    pub(crate) delay: Duration,
    random: crate::hash::Random,
}

impl Cable {
    pub(crate) fn new(offload: Offload, mtu: usize, bad: u64, seed: u8) -> Cable {
        let mut stacks = [1, 2].map(|number| Stack::new([seed.wrapping_add(number); 32], Limits::default()));
        let mut interfaces = [InterfaceIndex(0); 2];
        for (at, stack) in stacks.iter_mut().enumerate() {
            let mac = [2, 0, 0, 0, 0, at as u8 + 1];
            let interface = stack.add_interface("eth0", mac, mtu, offload).unwrap();
            stack.set_up(interface, true).unwrap();
            let address = Ipv4Addr::new(10, 0, 0, at as u8 + 1).into();
            stack.add_address(interface, Prefix { address, length: 24 }).unwrap();
            interfaces[at] = interface;
        }
        Cable {
            stacks,
            interfaces,
            now: Instant::from_micros(1_000_000),
            flying: Default::default(),
            bad,
            delay: Duration::from_micros(500),
            random: crate::hash::Random::new(crate::hash::Key::new([seed; 16])),
        }
    }

    fn unlucky(&mut self) -> bool {
        self.random.next() % 100 < self.bad
    }

    /// Collects what the stacks send.
    fn collect(&mut self) {
        for at in 0..2 {
            while let Some(frame) = self.stacks[at].transmit(self.interfaces[at]) {
                assert!(frame.segment.is_some() || frame.bytes.len() <= 1514, "{}", frame.bytes.len());
                for bytes in device(&frame) {
                    self.fly(1 - at, bytes);
                }
                self.stacks[at].recycle(frame);
            }
        }
    }

    fn fly(&mut self, to: usize, mut bytes: Vec<u8>) {
        if self.unlucky() {
            return;
        }
        if self.unlucky() {
            let at = self.random.next() as usize % bytes.len();
            bytes[at] ^= 1 << (self.random.next() % 8);
        }
        let late =
            if self.unlucky() { Duration::from_millis(self.random.next() % 20) } else { Duration::ZERO };
        let arrival = self.now + self.delay + late;
        if self.unlucky() {
            self.flying[to].push((arrival, bytes.clone()));
        }
        self.flying[to].push((arrival, bytes));
    }

    /// Goes on to the next event, at most to `until`.
    pub(crate) fn step(&mut self, until: Instant) {
        self.collect();
        let arrivals = self.flying.iter().flatten().map(|frame| frame.0);
        let deadlines = self.stacks.iter().filter_map(|stack| stack.next_deadline());
        let next = arrivals.chain(deadlines).min().unwrap_or(until).min(until);
        self.now = self.now.max(next);
        for at in 0..2 {
            let mut index = 0;
            while index < self.flying[at].len() {
                if self.flying[at][index].0 <= self.now {
                    let (_, bytes) = self.flying[at].remove(index);
                    self.stacks[at].receive(self.interfaces[at], &bytes, self.now);
                } else {
                    index += 1;
                }
            }
            self.stacks[at].advance(self.now);
        }
        self.collect();
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.step(until);
        }
    }
}

/// What a device does: completes checksums, and cuts large segments.
fn device(frame: &Frame) -> Vec<Vec<u8>> {
    let mut bytes = frame.bytes.clone();
    let Some(partial) = frame.checksum else { return vec![bytes] };
    let start = usize::from(partial.start);
    let place = start + usize::from(partial.offset);
    let v4 = bytes[14] >> 4 == 4;
    let sum_up = |bytes: &mut Vec<u8>| {
        let value = !crate::checksum::fold(crate::checksum::sum(&bytes[start..], 0));
        bytes[place..place + 2].copy_from_slice(&value.to_be_bytes());
    };
    let Some(size) = frame.segment else {
        sum_up(&mut bytes);
        return vec![bytes];
    };
    let header = start + usize::from(bytes[start + 12] >> 4) * 4;
    let (payload, last) = (bytes[header..].to_vec(), bytes[start + 13]);
    let seq = u32::from_be_bytes(bytes[start + 4..start + 8].try_into().unwrap());
    let source = if v4 { bytes[26..34].to_vec() } else { bytes[22..54].to_vec() };
    let pieces = payload.chunks(size.into()).enumerate();
    let count = payload.len().div_ceil(size.into());
    pieces
        .map(|(at, piece)| {
            let mut bytes = bytes[..header].to_vec();
            bytes.extend_from_slice(piece);
            let seq = seq.wrapping_add((at * usize::from(size)) as u32);
            bytes[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
            if at + 1 < count {
                bytes[start + 13] = last & !9;
            }
            let length = bytes.len() - start;
            let tail = [0, 6, (length >> 8) as u8, length as u8];
            let pseudo = crate::checksum::sum(&tail, crate::checksum::sum(&source, 0));
            bytes[place..place + 2].copy_from_slice(&crate::checksum::fold(pseudo).to_be_bytes());
            let total = (bytes.len() - 14 - if v4 { 0 } else { 40 }) as u16;
            bytes[if v4 { 16..18 } else { 18..20 }].copy_from_slice(&total.to_be_bytes());
            if v4 {
                bytes[24..26].fill(0);
                let sum = !crate::checksum::fold(crate::checksum::sum(&bytes[14..34], 0));
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            sum_up(&mut bytes);
            bytes
        })
        .collect()
}

pub(crate) fn there(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port)
}

/// Sends data from the first stack to the second, and back, and closes. Answers the time it took.
pub(crate) fn transfer(cable: &mut Cable, to: SocketAddr, length: usize, limit: Duration) -> Duration {
    let began = cable.now;
    let listener = listener(
        &mut cable.stacks[1],
        SocketAddr::new(
            if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) },
            to.port(),
        ),
    );
    let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
    let connect = |cable: &mut Cable| {
        let client = cable.stacks[0].open(Kind::Tcp(family)).unwrap();
        // While a neighbour is known not to answer, an attempt fails immediately.
        while let Err(error) = cable.stacks[0].connect(client, to) {
            assert_eq!(error, Error::HostUnreachable);
            cable.run(Duration::from_millis(100));
        }
        client
    };
    let mut client = connect(cable);
    let data = [pattern(length, 5), pattern(length, 6)];
    let mut server = None;
    let (mut sent, mut got) = ([0; 2], [Vec::new(), Vec::new()]);
    let mut closed = [false; 2];
    let mut ended = [false; 2];
    let mut is_unreachable = false;
    while !ended[0] || !ended[1] {
        assert!(cable.now.since(began) < limit, "sent {sent:?}, got {:?}", got.each_ref().map(Vec::len));
        // On a bad cable all questions for the neighbour's address may be lost. A program that is
        // told so before it is connected, by the state of its socket or by a call, tries again.
        let lost = cable.stacks[0].take_error(client) == Some(Error::HostUnreachable);
        if server.is_none() && (lost || is_unreachable) {
            is_unreachable = false;
            cable.stacks[0].close(client);
            client = connect(cable);
        }
        if server.is_none() {
            server = cable.stacks[1].accept(listener).ok().map(|accepted| accepted.0);
        }
        for (at, id) in [Some(client), server].into_iter().enumerate() {
            let Some(id) = id else { continue };
            let now = cable.now;
            let stack = cable.stacks[at].at(now);
            let rest = &data[at][sent[at]..];
            if rest.is_empty() {
                if !closed[at] {
                    closed[at] = true;
                    stack.shutdown(id, Direction::Write).unwrap();
                }
            } else {
                match send(stack, id, &rest[..rest.len().min(10_000)]) {
                    Ok(count) => sent[at] += count,
                    Err(Error::WouldBlock) => {}
                    Err(Error::HostUnreachable) if server.is_none() => {
                        is_unreachable = true;
                        continue;
                    }
                    Err(error) => panic!("{at}: {error} {:?}", stack.tcp_info(id)),
                }
            }
            match receive(stack, id) {
                Ok(bytes) if bytes.is_empty() => ended[at] = true,
                Ok(bytes) => got[at].extend_from_slice(&bytes),
                Err(Error::WouldBlock) => {}
                Err(error) => panic!("{at}: {error} {:?}", stack.tcp_info(id)),
            }
        }
        let until = cable.now + Duration::from_millis(5);
        cable.step(until);
    }
    assert!(got[0] == data[1] && got[1] == data[0]);
    cable.stacks[0].close(client);
    cable.stacks[1].close(server.unwrap());
    cable.stacks[1].close(listener);
    cable.now.since(began)
}

#[test]
fn a_good_cable_carries_streams_quickly() {
    for offload in [
        Offload::default(),
        Offload { transmit_checksum: true, segmentation: false },
        Offload { transmit_checksum: true, segmentation: true },
    ] {
        let mut cable = Cable::new(offload, 1500, 0, 0);
        let time = transfer(&mut cable, there(80), 2_000_000, Duration::from_secs(60));
        assert!(time < Duration::from_secs(1), "{time:?}");
        cable.run(Duration::from_secs(200));
        for stack in &cable.stacks {
            assert!(stack.sockets().is_empty(), "{:?}", stack.sockets());
            assert_eq!(stack.next_deadline(), None);
        }
    }
}

#[test]
fn large_datagrams_go_in_fragments() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 1);
    let server = cable.stacks[1].open(Kind::Udp(Family::V4)).unwrap();
    cable.stacks[1].bind(server, there(53)).unwrap();
    let client = cable.stacks[0].open(Kind::Udp(Family::V4)).unwrap();
    let data = pattern(20_000, 1);
    cable.stacks[0].send(client, &data, Some(there(53)), SendFlags::default()).unwrap();
    cable.run(Duration::from_millis(10));
    assert!(receive(&mut cable.stacks[1], server).unwrap() == data);
    cable.stacks[0].configure(client, |options| options.dont_fragment = true).unwrap();
    let refused = cable.stacks[0].send(client, &data, Some(there(53)), SendFlags::default());
    assert_eq!(refused, Err(Error::MessageTooLong));
    // Another port has no socket, and the client hears of it.
    cable.stacks[0].connect(client, there(54)).unwrap();
    send(&mut cable.stacks[0], client, b"x").unwrap();
    cable.run(Duration::from_millis(10));
    assert_eq!(cable.stacks[0].take_error(client), Some(Error::ConnectionRefused));
}

#[test]
fn a_host_that_is_not_there_is_unreachable() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 2);
    let client = cable.stacks[0].open(Kind::Tcp(Family::V4)).unwrap();
    let absent = "10.0.0.9:80".parse().unwrap();
    assert_eq!(cable.stacks[0].connect(client, absent), Ok(Connect::Started));
    cable.run(Duration::from_secs(10));
    assert_eq!(cable.stacks[0].take_error(client), Some(Error::HostUnreachable));
    let elsewhere = "192.0.2.1:80".parse().unwrap();
    assert_eq!(cable.stacks[0].connect(client, elsewhere), Err(Error::NetworkUnreachable));
    let refused = "10.0.0.2:81".parse().unwrap();
    let client = cable.stacks[0].open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(cable.stacks[0].connect(client, refused), Ok(Connect::Started));
    cable.run(Duration::from_secs(1));
    assert_eq!(cable.stacks[0].take_error(client), Some(Error::ConnectionRefused));
}

/// A peer that gets the answer to its SYN again after it has sent data may lose these data: the
/// network of an emulator does.
#[test]
fn a_peer_whose_acknowledgement_found_no_room_is_not_answered_again() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 4);
    let listener = listener(&mut cable.stacks[1], there(80));
    cable.stacks[1].listen(listener, 1).unwrap();
    // Two SYNs find one connection that waits, and room for one more.
    for count in [1, 2] {
        for _ in 0..count {
            let client = cable.stacks[0].open(Kind::Tcp(Family::V4)).unwrap();
            cable.stacks[0].connect(client, there(80)).unwrap();
        }
        cable.run(Duration::from_millis(100));
    }
    let mut alone = |time: u64| {
        for _ in 0..time {
            cable.now = cable.now + Duration::from_millis(100);
            cable.stacks[1].advance(cable.now);
            while let Some(frame) = cable.stacks[1].transmit(cable.interfaces[1]) {
                let flags = frame.bytes.get(14 + 20 + 13).copied().unwrap_or_default();
                assert_eq!(flags & 2, 0, "the SYN is answered again");
                cable.stacks[1].recycle(frame);
            }
        }
        (0..).take_while(|_| cable.stacks[1].accept(listener).is_ok()).count()
    };
    assert_eq!(alone(50), 2, "as many wait as may wait");
    assert_eq!(alone(100), 1, "the third has room now, and its peer need not ask");
}

#[test]
fn a_peer_that_vanishes_times_out() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 3);
    let listener = listener(&mut cable.stacks[1], there(80));
    let client = cable.stacks[0].open(Kind::Tcp(Family::V4)).unwrap();
    cable.stacks[0].connect(client, there(80)).unwrap();
    cable.run(Duration::from_secs(1));
    cable.stacks[1].accept(listener).unwrap();
    cable.bad = 100;
    cable.stacks[0].at(cable.now);
    send(&mut cable.stacks[0], client, b"anyone?").unwrap();
    cable.run(Duration::from_secs(2000));
    let error = cable.stacks[0].take_error(client);
    assert!(matches!(error, Some(Error::TimedOut | Error::HostUnreachable)), "{error:?}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]

    /// A tenth of the frames is lost, a tenth doubled, a tenth late, a tenth corrupted.
    #[test]
    fn a_bad_network_loses_no_byte(seed in 0u8..250, segmentation: bool) {
        let offload = Offload { transmit_checksum: segmentation, segmentation };
        let mut cable = Cable::new(offload, 1500, 10, seed);
        transfer(&mut cable, there(80), 60_000, Duration::from_secs(3600));
    }
}

#[test]
fn groups_are_looped_at_their_interface() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 9);
    let (stack, interface) = (&mut cable.stacks[0], cable.interfaces[0]);
    let group: IpAddr = "224.1.2.3".parse().unwrap();
    let id = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.configure(id, |options| options.interface = Some(interface)).unwrap();
    stack.bind(id, "0.0.0.0:5000".parse().unwrap()).unwrap();
    stack.join(id, group, Some(interface)).unwrap();
    stack.send(id, b"all", Some(SocketAddr::new(group, 5000)), SendFlags::default()).unwrap();
    let mut buffer = [0; 16];
    let received = stack.receive_from(id, &mut buffer, ReceiveFlags::default()).unwrap();
    assert_eq!((received.copied, received.interface), (3, interface));
    // Without a cable nothing is sent.
    stack.set_link(interface, false).unwrap();
    let _ = stack.send(id, b"all", Some(SocketAddr::new(group, 5000)), SendFlags::default());
    let counters = stack.interfaces().find(|other| other.index == interface).unwrap().counters;
    assert_eq!((counters.sent_errors, counters.sent_drops), (1, 0));
}

#[test]
fn another_address_of_a_network_keeps_its_route() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 12);
    let (stack, interface) = (&mut cable.stacks[0], cable.interfaces[0]);
    let [first, second]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.9"].map(|address| address.parse().unwrap());
    stack.add_address(interface, Prefix { address: second, length: 24 }).unwrap();
    stack.remove_address(interface, first).unwrap();
    assert_eq!(stack.route_to(there(80).ip(), None).unwrap().1, second);
    assert!(stack.routes().any(|route| route.source == Some(second)));
    stack.remove_address(interface, second).unwrap();
    assert!(stack.routes().all(|route| !route.destination.address.is_ipv4()));
}

#[test]
fn a_metric_tells_which_route_is_replaced_or_removed() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 13);
    let (stack, interface) = (&mut cable.stacks[0], cable.interfaces[0]);
    let all = Prefix { address: Ipv4Addr::UNSPECIFIED.into(), length: 0 };
    let route = |gateway: [u8; 4], metric| Route {
        destination: all,
        gateway: Some(Ipv4Addr::from(gateway).into()),
        interface,
        metric,
        source: None,
        origin: RouteOrigin::Static,
        expires: None,
    };
    let gateways = |stack: &Stack| -> Vec<_> {
        let routes = stack.routes().filter(|route| route.destination == all);
        routes.map(|route| (route.metric, route.gateway.unwrap())).collect()
    };
    stack.replace_route(route([10, 0, 0, 7], 100)).unwrap();
    stack.replace_route(route([10, 0, 0, 2], 0)).unwrap();
    stack.replace_route(route([10, 0, 0, 9], 0)).unwrap();
    let [seven, nine] = [7, 9].map(|last| IpAddr::from([10, 0, 0, last]));
    assert_eq!(gateways(stack), [(100, seven), (0, nine)]);
    let far = stack.replace_route(route([192, 0, 2, 1], 100));
    assert_eq!((far, gateways(stack)), (Err(Error::NetworkUnreachable), vec![(100, seven), (0, nine)]));
    // The same for one that is removed.
    stack.remove_route(all, None, None, Some(0)).unwrap();
    assert_eq!(gateways(stack), [(100, seven)]);
    assert_eq!(stack.remove_route(all, None, None, Some(0)), Err(Error::NotFound));
    assert_eq!(stack.remove_route(all, None, None, None), Ok(()));
}
