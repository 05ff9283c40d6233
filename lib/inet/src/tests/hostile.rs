//! Packets that mean harm: floods, fragments, noise. Memory stays bounded, and others are served.

use super::cable::{Cable, there};
use super::*;
use crate::hash::{Key, Random};

/// Completes the checksums of a frame of IPv4 with TCP, UDP or ICMP.
fn complete(frame: &mut [u8]) {
    use crate::checksum::{fold, pseudo, sum};
    let start = 14 + usize::from(frame[14] & 15) * 4;
    if start > frame.len() || start < 34 {
        return;
    }
    frame[24..26].fill(0);
    let value = !fold(sum(&frame[14..start], 0));
    frame[24..26].copy_from_slice(&value.to_be_bytes());
    let (at, protocol) = match frame[23] {
        6 => (start + 16, 6),
        17 => (start + 6, 17),
        1 => (start + 2, 0),
        _ => return,
    };
    if at + 2 > frame.len() {
        return;
    }
    frame[at..at + 2].fill(0);
    let address =
        |at: usize| IpAddr::V4(Ipv4Addr::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3]));
    let head =
        if protocol == 0 { 0 } else { pseudo(address(26), address(30), protocol, frame.len() - start) };
    let value = !fold(sum(&frame[start..], head));
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Completes the checksum of a frame of IPv6 without further headers.
fn complete_v6(frame: &mut [u8]) {
    use crate::checksum::{fold, pseudo, sum};
    let at = match frame[20] {
        6 => 54 + 16,
        17 => 54 + 6,
        58 => 54 + 2,
        _ => return,
    };
    if at + 2 > frame.len() {
        return;
    }
    frame[at..at + 2].fill(0);
    let address = |at: usize| {
        let octets: [u8; 16] = frame[at..at + 16].try_into().unwrap();
        IpAddr::V6(octets.into())
    };
    let head = pseudo(address(22), address(38), frame[20], frame.len() - 54);
    let value = !fold(sum(&frame[54..], head));
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// A frame to 10.0.0.2.
fn frame(source: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9, 8, 0];
    frame.extend_from_slice(&[0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0]);
    frame.extend_from_slice(&source);
    frame.extend_from_slice(&[10, 0, 0, 2]);
    frame.extend_from_slice(payload);
    let length = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    complete(&mut frame);
    frame
}

fn syn(number: u32) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..2].copy_from_slice(&(1024 + (number % 50_000) as u16).to_be_bytes());
    segment[2..4].copy_from_slice(&80u16.to_be_bytes());
    segment[4..8].copy_from_slice(&number.to_be_bytes());
    segment[12] = 5 << 4;
    segment[13] = 2;
    frame([10, 0, 0, 100 + (number / 50_000) as u8], 6, &segment)
}

/// What a stack holds, in the units of its limits.
fn check_bounds(stack: &Stack) {
    let limits = *stack.limits();
    let halves = stack.sockets().iter().filter(|info| info.state == State::SynReceived).count();
    assert!(halves <= limits.half_open);
    assert!(stack.neighbours().count() <= limits.neighbours);
    assert!(stack.memory() <= limits.memory);
}

#[test]
fn a_flood_of_half_open_connections_lets_others_in() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 9);
    let listener = listener(&mut cable.stacks[1], there(80));
    let mut answers = 0;
    for number in 0..100_000 {
        cable.stacks[1].receive(cable.interfaces[1], &syn(number), cable.now);
        while let Some(frame) = cable.stacks[1].transmit(cable.interfaces[1]) {
            answers += 1;
            cable.stacks[1].recycle(frame);
        }
        if number % 10_000 == 0 {
            check_bounds(&cable.stacks[1]);
        }
    }
    assert!(answers > 0);
    check_bounds(&cable.stacks[1]);
    // A client of good faith gets through, by a cookie, and its options survive.
    let client = cable.stacks[0].open(Kind::Tcp(Family::V4)).unwrap();
    cable.stacks[0].connect(client, there(80)).unwrap();
    cable.run(Duration::from_millis(100));
    assert_eq!(cable.stacks[0].state(client), Ok(State::Established));
    send(&mut cable.stacks[0], client, b"I am real").unwrap();
    cable.run(Duration::from_millis(100));
    let (server, _) = cable.stacks[1].accept(listener).unwrap();
    assert_eq!(receive(&mut cable.stacks[1], server).unwrap(), b"I am real");
    let info = cable.stacks[1].tcp_info(server).unwrap();
    assert!(info.time_stamps && info.selective_acks && info.window_scale == Some((7, 7)), "{info:?}");
    // An acknowledgement that answers no cookie makes no connection.
    let mut forged = syn(7);
    forged[34 + 13] = 16;
    forged[34 + 8..34 + 12].copy_from_slice(&0x1234_5678u32.to_be_bytes());
    complete(&mut forged);
    cable.stacks[1].receive(cable.interfaces[1], &forged, cable.now);
    assert_eq!(cable.stacks[1].accept(listener), Err(Error::WouldBlock));
    cable.run(Duration::from_secs(300));
    assert!(cable.stacks[1].sockets().iter().all(|info| info.state != State::SynReceived));
}

#[test]
fn a_flood_of_fragments_is_bounded_and_overlaps_are_refused() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 10);
    let server = cable.stacks[1].open(Kind::Udp(Family::V4)).unwrap();
    cable.stacks[1].bind(server, there(53)).unwrap();
    for number in 0..20_000u32 {
        let mut bytes = frame([10, 0, 0, 77], 17, &[0; 1400]);
        bytes[18..20].copy_from_slice(&(number as u16).to_be_bytes());
        bytes[20..22].copy_from_slice(&(0x2000u16 | (number % 8000) as u16).to_be_bytes());
        bytes[24..26].fill(0);
        let sum = !crate::checksum::fold(crate::checksum::sum(&bytes[14..34], 0));
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        cable.stacks[1].receive(cable.interfaces[1], &bytes, cable.now);
    }
    assert!(cable.stacks[1].fragments_held() <= cable.stacks[1].limits().fragments);
    // A datagram in fragments is received nevertheless.
    let client = cable.stacks[0].open(Kind::Udp(Family::V4)).unwrap();
    let data = pattern(5000, 2);
    cable.stacks[0].send(client, &data, Some(there(53)), SendFlags::default()).unwrap();
    cable.run(Duration::from_millis(10));
    assert!(receive(&mut cable.stacks[1], server).unwrap() == data);
}

#[test]
fn a_socket_that_is_not_read_drops_datagrams() {
    let mut stack = stack();
    let server = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.bind(server, v4(53)).unwrap();
    let client = stack.open(Kind::Udp(Family::V4)).unwrap();
    for _ in 0..10_000 {
        stack.send(client, &[1; 1000], Some(v4(53)), SendFlags::default()).unwrap();
    }
    assert!(stack.memory() < 600 << 10, "{}", stack.memory());
    let info = stack.sockets().into_iter().find(|info| info.id == Some(server)).unwrap();
    assert!(info.drops > 9000);
    stack.close(server);
    stack.close(client);
    assert_eq!(stack.memory(), 0);
}

#[test]
fn idle_connections_give_their_memory_to_busy_ones() {
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    let mut stack = Stack::new([8; 32], limits);
    let mut now = Instant::default();
    let mut exchange = |stack: &mut Stack, (client, server): (SocketId, SocketId)| {
        let data = pattern(100_000, 1);
        let mut got = Vec::new();
        let mut sent = 0;
        for _ in 0..100 {
            now = now + Duration::from_millis(10);
            stack.advance(now);
            sent += send(stack, client, &data[sent..]).unwrap_or(0);
            got.extend(receive(stack, server).unwrap_or_default());
        }
        assert!(got == data, "{} of {sent}", got.len());
    };
    let pairs: Vec<_> = (100..130).map(|port| pair(&mut stack, v4(port))).collect();
    for pair in &pairs {
        exchange(&mut stack, *pair);
        assert!(stack.memory() <= limits.memory);
    }
    for (client, server) in pairs {
        stack.close(client);
        stack.close(server);
    }
    assert_eq!(stack.memory(), 0);
}

#[test]
fn time_wait_is_bounded() {
    let limits = Limits { time_wait: 10, ..Limits::default() };
    let mut stack = Stack::new([9; 32], limits);
    let listener = listener(&mut stack, v4(80));
    for _ in 0..100 {
        let client = stack.open(Kind::Tcp(Family::V4)).unwrap();
        assert_eq!(stack.connect(client, v4(80)), Ok(Connect::Done));
        let (server, _) = stack.accept(listener).unwrap();
        stack.close(client);
        stack.close(server);
    }
    assert_eq!(stack.sockets().len(), 11, "{:?}", stack.sockets());
}

/// Frames of noise, and real ones with changed bytes whose checksums are right.
fn noise(rounds: u64) {
    let mut random = Random::new(Key::new([5; 16]));
    let mut real: Vec<Vec<u8>> = Vec::new();
    let mut cable = Cable::new(Offload::default(), 1500, 0, 11);
    for round in 0..rounds {
        if round % 20_000 == 0 {
            // A fresh system with sockets of all kinds in the middle of their work.
            cable = Cable::new(Offload::default(), 1500, 0, (round / 20_000) as u8);
            let listener = listener(&mut cable.stacks[1], there(80));
            let server = cable.stacks[1].open(Kind::Udp(Family::V4)).unwrap();
            cable.stacks[1].bind(server, there(53)).unwrap();
            cable.stacks[1].open(Kind::Raw(Family::V4, 1)).unwrap();
            cable.stacks[1].open(Kind::Raw(Family::V6, 58)).unwrap();
            cable.stacks[1].open(Kind::Packet { protocol: 3, cooked: false }).unwrap();
            cable.stacks[1].start_dhcp(cable.interfaces[1], "noise").unwrap();
            let client = cable.stacks[0].open(Kind::Tcp(Family::V4)).unwrap();
            cable.stacks[0].connect(client, there(80)).unwrap();
            cable.run(Duration::from_millis(10));
            let (server, _) = cable.stacks[1].accept(listener).unwrap();
            // Segments of the connection itself, as the peer would send them.
            real = vec![syn(1), frame([10, 0, 0, 1], 17, &[4, 0, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4])];
            real.push(frame([10, 0, 0, 1], 1, &[8, 0, 0, 0, 0, 1, 0, 1, 5, 6, 7]));
            let quote = frame([10, 0, 0, 2], 6, &[0, 80, 1, 1, 0, 0, 0, 0]);
            real.push(frame([10, 0, 0, 1], 1, &[&[3, 4, 0, 0, 0, 0, 2, 100][..], &quote[14..]].concat()));
            let _ = cable.stacks[1].send(server, &pattern(30_000, 1), None, SendFlags::default());
            for extra in [0, 1, 600] {
                let _ = send(&mut cable.stacks[0], client, &pattern(extra, 1));
                while let Some(frame) = cable.stacks[0].transmit(cable.interfaces[0]) {
                    real.push(frame.bytes);
                }
            }
            let mut arp = vec![0xff; 6];
            arp.extend_from_slice(&[2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1]);
            arp.extend_from_slice(&[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
            real.push(arp);
            for (next, body) in [
                (58, vec![128, 0, 0, 0, 0, 1, 0, 2]),
                (0, vec![58, 0, 1, 4, 0, 0, 0, 0, 135, 0]),
                (44, vec![17, 0, 0, 1, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8]),
                (
                    58,
                    [
                        &[135, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x80][..],
                        &[0; 9],
                        &[0xff, 0xfe, 0, 0, 2, 1, 1, 2, 0, 0, 0, 0, 1],
                    ]
                    .concat(),
                ),
            ] {
                let mut bytes = vec![0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
                bytes.extend_from_slice(&[0x60, 0, 0, 0, 0, body.len() as u8, next, 255]);
                bytes.extend_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
                bytes.extend_from_slice(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
                bytes.extend_from_slice(&body);
                real.push(bytes);
            }
            real.push(super::discovery::advertisement(1800, 86_400));
        }
        let mut bytes = if random.next().is_multiple_of(8) {
            let length = (random.next() % 200) as usize;
            (0..length).map(|_| random.next() as u8).collect()
        } else {
            real[random.next() as usize % real.len()].clone()
        };
        for _ in 0..random.next() % 4 {
            if bytes.len() > 14 {
                let at = 12 + random.next() as usize % (bytes.len().min(120) - 12);
                bytes[at] = random.next() as u8;
            }
        }
        if random.next().is_multiple_of(8) {
            bytes.truncate(random.next() as usize % (bytes.len() + 1));
        }
        if bytes.len() > 34 && bytes[12..14] == [8, 0] && !random.next().is_multiple_of(8) {
            if random.next().is_multiple_of(2) {
                let length = (bytes.len() - 14) as u16;
                bytes[16..18].copy_from_slice(&length.to_be_bytes());
            }
            complete(&mut bytes);
        } else if bytes.len() > 54 && bytes[12..14] == [0x86, 0xdd] && !random.next().is_multiple_of(8) {
            let length = (bytes.len() - 54) as u16;
            bytes[18..20].copy_from_slice(&length.to_be_bytes());
            complete_v6(&mut bytes);
        }
        cable.now = cable.now + Duration::from_micros(random.next() % 2000);
        cable.stacks[1].receive(cable.interfaces[1], &bytes, cable.now);
        cable.stacks[1].advance(cable.now);
        while let Some(frame) = cable.stacks[1].transmit(cable.interfaces[1]) {
            cable.stacks[1].recycle(frame);
        }
        while cable.stacks[1].ready().is_some() {}
        if round % 4096 == 0 {
            check_bounds(&cable.stacks[1]);
            assert!(cable.stacks[1].fragments_held() <= cable.stacks[1].limits().fragments);
        }
    }
}

/// `./mac test --all` sends ten million packets.
#[test]
fn noise_neither_panics_nor_grows() {
    noise(if std::env::var_os("MAC_TEST_ALL").is_some() { 10_000_000 } else { 100_000 });
}

/// The same with options in the IP header.
fn with_options(mut frame: Vec<u8>, options: &[u8]) -> Vec<u8> {
    frame[14] += options.len() as u8 / 4;
    frame.splice(34..34, options.iter().copied());
    let length = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    complete(&mut frame);
    frame
}

#[test]
fn options_of_headers_are_kept_and_source_routes_refused() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 10);
    let (interface, now) = (cable.interfaces[1], cable.now);
    let stack = &mut cable.stacks[1];
    let id = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.bind(id, there(53)).unwrap();
    let datagram = frame([10, 0, 0, 1], 17, &[0, 99, 0, 53, 0, 9, 0, 0, b'x']);
    let mut get = |bytes: &[u8]| {
        stack.receive(interface, bytes, now);
        let mut buffer = [0; 16];
        stack.receive_from(id, &mut buffer, ReceiveFlags::default()).map(|received| received.options)
    };
    assert_eq!(get(&datagram), Ok(HeaderOptions::default()));
    // Record route, as it is; and the router alert, which ends with zeros.
    for options in [&[7, 7, 4, 0, 0, 0, 0, 0][..], &[148, 4, 0, 0], &[1; 40]] {
        let kept = get(&with_options(datagram.clone(), options)).unwrap();
        assert_eq!(kept.bytes(), options);
    }
    for options in
        [&[131, 7, 4, 10, 0, 0, 9, 0][..], &[1, 137, 7, 4, 10, 0, 0, 9], &[7, 1, 0, 0], &[7, 9, 0, 0]]
    {
        assert_eq!(get(&with_options(datagram.clone(), options)), Err(Error::WouldBlock), "{options:?}");
    }
}

#[test]
fn what_comes_from_a_broadcast_address_is_not_answered() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 11);
    let (interface, now) = (cable.interfaces[1], cable.now);
    let stack = &mut cable.stacks[1];
    while stack.transmit(interface).is_some() {}
    for source in [[10, 0, 0, 255], [255; 4], [224, 0, 0, 1]] {
        stack.receive(interface, &frame(source, 17, &[0, 99, 0, 9, 0, 9, 0, 0, b'x']), now);
        stack.receive(interface, &frame(source, 1, &[8, 0, 0, 0, 0, 1, 0, 1]), now);
        assert_eq!(stack.transmit(interface), None);
    }
}

#[test]
fn a_user_has_half_of_the_sockets_and_of_the_memory_and_leaves_them_to_others() {
    const USER: u32 = 1000;
    let limits = Limits { memory: 1 << 20, sockets: 20, ..Limits::default() };
    let mut stack = Stack::new([8; 32], limits);
    let udp = Kind::Udp(Family::V4);
    let own: Vec<_> = (0..10).map(|_| stack.open_for(udp, USER).unwrap()).collect();
    assert_eq!(stack.open_for(udp, USER), Err(Error::NoBufferSpace));
    stack.close(own[9]);
    let last = stack.open_for(udp, USER).unwrap();
    // Datagrams that wait for sockets of the user take half of the memory, and no more.
    for (at, id) in own[..9].iter().chain([&last]).enumerate() {
        stack.bind(*id, v4(100 + at as u16)).unwrap();
    }
    let other = stack.open_for(udp, USER + 1).unwrap();
    for at in 0..200 {
        stack.send(other, &[0; 8000], Some(v4(100 + at % 10)), SendFlags::default()).unwrap();
    }
    assert!((400 << 10..=512 << 10).contains(&stack.memory()), "{}", stack.memory());
    // Connections of the user's listener are the user's.
    stack.close(own[0]);
    let listener = stack.open_for(Kind::Tcp(Family::V4), USER).unwrap();
    stack.bind(listener, v4(80)).unwrap();
    stack.listen(listener, 16).unwrap();
    let client = stack.open_for(Kind::Tcp(Family::V4), USER + 1).unwrap();
    let _ = stack.connect(client, v4(80));
    assert_eq!(stack.accept(listener), Err(Error::WouldBlock), "there is no socket for it");
    // Another user has room for both, and the superuser for what is left.
    stack.close(client);
    let (one, two) = (stack.open_for(udp, USER + 1).unwrap(), stack.open_for(udp, USER + 1).unwrap());
    stack.bind(one, v4(90)).unwrap();
    assert_eq!(stack.send(two, b"hello", Some(v4(90)), SendFlags::default()), Ok(5));
    assert_eq!(receive(&mut stack, one), Ok(b"hello".to_vec()));
    let rest = (0..20).map_while(|_| stack.open(udp).ok()).count();
    assert_eq!(rest, 7, "all that are left");
    for id in own.iter().chain([&last, &listener, &other, &one, &two]) {
        stack.close(*id);
    }
    assert_eq!(stack.memory(), 0);
    assert!(stack.open_for(udp, USER).is_ok());
}

#[test]
fn a_user_gets_back_the_memory_of_connections_however_they_end() {
    const USER: u32 = 1000;
    const HALF: usize = 128 << 10;
    let limits = Limits { memory: 2 * HALF, sockets: 40, ..Limits::default() };
    let (mut stack, mut now) = (Stack::new([9; 32], limits), Instant::from_micros(1));
    let tcp = Kind::Tcp(Family::V4);
    let server = stack.open_for(tcp, USER).unwrap();
    stack.bind(server, v4(80)).unwrap();
    stack.listen(server, 16).unwrap();
    let connect = |stack: &mut Stack| {
        let client = stack.open_for(tcp, USER).unwrap();
        assert_eq!(stack.connect(client, v4(80)), Ok(Connect::Done));
        (client, stack.accept(server).unwrap().0)
    };
    for round in 0..60 {
        let (client, child) = connect(&mut stack);
        // Twice as much is more than half of the memory: nothing of the last round is left.
        let sent = send(&mut stack, client, &[7; 30_000]);
        assert_eq!((sent, stack.memory()), (Ok(30_000), 64 << 10), "{round}");
        match round % 6 {
            0 => {}
            1 => assert_eq!(receive(&mut stack, child).unwrap().len(), 30_000),
            2 => {
                stack.configure(client, |options| options.linger = Some(Duration::ZERO)).unwrap();
            }
            3 => stack.disconnect(client).unwrap(),
            4 => stack.shutdown(child, Direction::Both).unwrap(),
            _ => {
                stack.shutdown(client, Direction::Write).unwrap();
                assert_eq!(receive(&mut stack, child).unwrap().len(), 30_000);
                assert_eq!(receive(&mut stack, child), Ok(Vec::new()));
            }
        }
        stack.close(client);
        stack.close(child);
        seconds(&mut stack, &mut now, 1);
        assert_eq!(stack.memory(), 0, "{round}");
    }
    // Connections that nothing is read from take half of the memory; the superuser has the rest.
    let ends: Vec<_> = (0..8).map(|_| connect(&mut stack)).collect();
    for (client, _) in &ends {
        while send(&mut stack, *client, &[7; 1000]).is_ok() {}
    }
    assert!((HALF - 8192..=HALF).contains(&stack.memory()), "{}", stack.memory());
    let (one, two) = pair(&mut stack, v4(81));
    assert_eq!(send(&mut stack, one, &[7; 20_000]), Ok(20_000));
    assert_eq!(receive(&mut stack, two).unwrap().len(), 20_000);
}
