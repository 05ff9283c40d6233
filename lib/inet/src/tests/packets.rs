//! Packet sockets: what they see, by their type, their filter and what they asked interfaces for.

use super::*;
use crate::filter::{Program, Rules};

const ALL: u16 = 3;
const IPV4: u16 = 0x0800;

/// What a socket has received: how it was addressed, its length and its bytes.
fn seen(stack: &mut Stack, id: SocketId) -> Vec<(LinkClass, usize, Vec<u8>)> {
    let mut buffer = vec![0; 2048];
    let mut all = Vec::new();
    while let Ok(received) = stack.receive_from(id, &mut buffer, ReceiveFlags::default()) {
        let link = received.link.unwrap();
        all.push((link.class, link.whole, buffer[..received.copied].to_vec()));
    }
    all
}

/// A socket that sees frames of this type at this interface.
fn tap(stack: &mut Stack, protocol: u16, cooked: bool, interface: u32) -> SocketId {
    let id = stack.open(Kind::Packet { protocol: 0, cooked }).unwrap();
    stack.bind_packet(id, protocol, Some(InterfaceIndex(interface))).unwrap();
    id
}

/// Sends a datagram with two bytes over `lo`.
fn datagram(stack: &mut Stack) {
    let from = stack.open(Kind::Udp(Family::V4)).unwrap();
    let to = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.bind(to, v4(53)).unwrap();
    assert_eq!(stack.send(from, b"hi", Some(v4(53)), SendFlags::default()), Ok(2));
    stack.close(from);
    stack.close(to);
}

/// A stack with an interface that has a cable.
fn with_interface() -> (Stack, InterfaceIndex) {
    let mut stack = stack();
    let interface = stack.add_interface("eth0", [2, 0, 0, 0, 0, 2], 1500, Offload::default()).unwrap();
    stack.set_up(interface, true).unwrap();
    (stack, interface)
}

fn program(instructions: &[[u8; 8]]) -> Program {
    Program::new(&instructions.concat(), Rules::Packets).unwrap()
}

#[test]
fn what_goes_over_lo_is_seen_twice_by_those_that_see_all_and_once_by_others() {
    let mut stack = stack();
    let (raw, cooked) = (tap(&mut stack, ALL, false, 1), tap(&mut stack, IPV4, true, 1));
    let v6 = tap(&mut stack, 0x86dd, false, 1);
    let none = stack.open(Kind::Packet { protocol: 0, cooked: false }).unwrap();
    datagram(&mut stack);
    let all = seen(&mut stack, raw);
    let classes: Vec<_> = all.iter().map(|(class, length, _)| (*class, *length)).collect();
    assert_eq!(classes, [(LinkClass::Outgoing, 44), (LinkClass::Host, 44)]);
    assert_eq!((&all[0].2[12..15], &all[0].2[42..]), (&[8, 0, 0x45][..], &b"hi"[..]));
    let one = seen(&mut stack, cooked);
    assert_eq!((one.len(), one[0].0, one[0].1, one[0].2[0]), (1, LinkClass::Host, 30, 0x45));
    assert!(seen(&mut stack, v6).is_empty() && seen(&mut stack, none).is_empty());
    assert_eq!(stack.take_statistics(raw), Ok(PacketStatistics { received: 2, dropped: 0 }));
    assert_eq!(stack.take_statistics(raw), Ok(PacketStatistics::default()), "taken");
}

#[test]
fn a_filter_cuts_packets_and_drops_others_without_counting_them() {
    let mut stack = stack();
    let raw = tap(&mut stack, ALL, false, 1);
    // Only incoming packets, of each 20 bytes.
    let incoming = [
        [0x20, 0, 0, 0, 4, 0xf0, 0xff, 0xff],
        [0x15, 0, 0, 1, 0, 0, 0, 0],
        [6, 0, 0, 0, 20, 0, 0, 0],
        [6, 0, 0, 0, 0, 0, 0, 0],
    ];
    stack.set_filter(raw, Some(program(&incoming))).unwrap();
    datagram(&mut stack);
    let all = seen(&mut stack, raw);
    assert_eq!((all.len(), all[0].0, all[0].1, all[0].2.len()), (1, LinkClass::Host, 44, 20));
    assert_eq!(stack.take_statistics(raw), Ok(PacketStatistics { received: 1, dropped: 0 }));
    stack.set_filter(raw, None).unwrap();
    datagram(&mut stack);
    assert_eq!(seen(&mut stack, raw).len(), 2);
    // The filter of a socket of UDP sees the header of UDP, which the socket does not receive.
    let to = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.bind(to, v4(53)).unwrap();
    let port = [[0x28, 0, 0, 0, 2, 0, 0, 0], [0x15, 0, 0, 1, 53, 0, 0, 0]];
    let cut = [[6, 0, 0, 0, 10, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0, 0]];
    stack.set_filter(to, Some(program(&[&port[..], &cut[..]].concat()))).unwrap();
    let from = stack.open(Kind::Udp(Family::V4)).unwrap();
    stack.send(from, b"abcd", Some(v4(53)), SendFlags::default()).unwrap();
    assert_eq!(receive(&mut stack, to), Ok(b"ab".to_vec()));
    // It knows the network's protocol, but does not see its header, nor that of a link.
    for (code, offset, value, passes) in [
        (0x20, -0x1000, 0x0800, true),
        (0x20, -0x1000, 0x86dd, false),
        (0x28, -0x10_0000 + 2, 53, false),
        (0x28, -0x20_0000 + 2, 53, false),
    ] {
        let load = [&[code, 0, 0, 0][..], &i32::to_le_bytes(offset)].concat().try_into().unwrap();
        let compare = [&[0x15, 0, 0, 1][..], &u32::to_le_bytes(value)].concat().try_into().unwrap();
        stack.set_filter(to, Some(program(&[load, compare, cut[0], cut[1]]))).unwrap();
        stack.send(from, b"abcd", Some(v4(53)), SendFlags::default()).unwrap();
        assert_eq!(receive(&mut stack, to).is_ok(), passes, "{offset}");
    }
    let tcp = stack.open(Kind::Tcp(Family::V4)).unwrap();
    assert_eq!(stack.set_filter(tcp, None), Err(Error::NotSupported));
}

#[test]
fn the_memory_of_filters_counts_to_the_user_and_is_given_back() {
    const USER: u32 = 1000;
    let limits = Limits { memory: 128 << 10, ..Limits::default() };
    let mut stack = Stack::new([8; 32], limits);
    let longest = program(&[[6, 0, 0, 0, 1, 0, 0, 0]; 4096]);
    let sockets: Vec<_> = (0..4).map(|_| stack.open_for(Kind::Udp(Family::V4), USER).unwrap()).collect();
    // Half of the memory is enough for two of them.
    assert_eq!(stack.set_filter(sockets[0], Some(longest.clone())), Ok(false));
    assert_eq!(stack.set_filter(sockets[1], Some(longest.clone())), Ok(false));
    assert_eq!(stack.memory(), 64 << 10);
    assert_eq!(stack.set_filter(sockets[2], Some(longest.clone())), Err(Error::NoBufferSpace));
    assert_eq!(stack.set_filter(sockets[0], None), Ok(true));
    assert_eq!(stack.set_filter(sockets[2], Some(longest.clone())), Ok(false));
    stack.close(sockets[1]);
    assert_eq!(stack.set_filter(sockets[3], Some(longest)), Ok(false));
    let short = program(&[[6, 0, 0, 0, 1, 0, 0, 0]]);
    stack.close(sockets[2]);
    assert_eq!(stack.set_filter(sockets[3], Some(short)), Ok(true), "it replaces the long one");
    assert_eq!(stack.memory(), 8);
    stack.close(sockets[3]);
    assert_eq!(stack.memory(), 0);
}

#[test]
fn frames_to_others_are_seen_while_a_socket_asks_for_them() {
    let (mut stack, interface) = with_interface();
    let tap = tap(&mut stack, ALL, false, interface.0);
    let other = [[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 8]].concat();
    let frame = [&other[..], &[8, 0, 0x45]].concat();
    let arrive = |stack: &mut Stack| {
        stack.receive(interface, &frame, Instant::from_micros(1));
        seen(stack, tap).len()
    };
    assert_eq!(arrive(&mut stack), 0);
    let asking = stack.open(Kind::Packet { protocol: 0, cooked: false }).unwrap();
    stack.watch(asking, interface, Membership::Promiscuous, true).unwrap();
    stack.watch(asking, interface, Membership::Promiscuous, true).unwrap();
    stack.watch(asking, interface, Membership::Promiscuous, false).unwrap();
    assert_eq!(arrive(&mut stack), 1);
    stack.close(asking);
    assert_eq!(arrive(&mut stack), 0, "it asks for nothing any more");
    let none = stack.watch(tap, interface, Membership::Promiscuous, false);
    assert_eq!(none, Err(Error::AddressNotAvailable));
    let none = stack.watch(tap, InterfaceIndex(99), Membership::AllGroups, true);
    assert_eq!(none, Err(Error::NotFound));
    for _ in 0..64 {
        stack.watch(tap, interface, Membership::Group([1; 6]), true).unwrap();
    }
    let full = stack.watch(tap, interface, Membership::AllGroups, true);
    assert_eq!(full, Err(Error::NoBufferSpace));
}

#[test]
fn a_frame_that_is_sent_is_seen_by_all_but_its_sender() {
    let (mut stack, interface) = with_interface();
    let [sender, other] = [(); 2].map(|()| tap(&mut stack, ALL, false, interface.0));
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 2, 0x88, 0xb5, 7]].concat();
    while stack.transmit(interface).is_some() {}
    let _ = (seen(&mut stack, other), seen(&mut stack, sender));
    assert_eq!(stack.send_frame(sender, &frame, interface, 0, [0; 6]), Ok(15));
    assert_eq!(stack.transmit(interface).map(|frame| frame.bytes), Some(frame.clone()));
    assert_eq!(seen(&mut stack, other), [(LinkClass::Outgoing, 15, frame.clone())]);
    assert!(seen(&mut stack, sender).is_empty());
    // On `lo` it comes back, but not to the internet protocols, whose type it does not have.
    let lo = tap(&mut stack, ALL, false, 1);
    assert_eq!(stack.send_frame(sender, &frame, InterfaceIndex(1), 0, [0; 6]), Ok(15));
    let classes: Vec<_> = seen(&mut stack, lo).into_iter().map(|seen| seen.0).collect();
    assert_eq!(classes, [LinkClass::Outgoing, LinkClass::Host]);
    assert_eq!(stack.send_frame(sender, &frame[..13], interface, 0, [0; 6]), Err(Error::InvalidArgument));
    let long = vec![0; 1515];
    assert_eq!(stack.send_frame(sender, &long, interface, 0, [0; 6]), Err(Error::MessageTooLong));
}

#[test]
fn a_socket_is_told_that_its_interface_is_down() {
    let (mut stack, interface) = with_interface();
    let id = tap(&mut stack, ALL, false, interface.0);
    assert_eq!(stack.take_error(id), None);
    stack.set_up(interface, false).unwrap();
    assert!(stack.readiness(id).error);
    assert_eq!(stack.take_error(id), Some(Error::NetworkDown));
    assert_eq!(stack.bind_packet(id, ALL, Some(interface)), Ok(()));
    assert_eq!(receive(&mut stack, id), Err(Error::NetworkDown));
    assert_eq!(stack.bind_packet(id, ALL, Some(InterfaceIndex(99))), Err(Error::NotFound));
}
