//! IPv6 on a cable: neighbours, duplicates, routers.

use super::cable::{Cable, transfer};
use super::*;
use crate::checksum::{fold, pseudo, sum};
use core::net::SocketAddrV6;

/// The address of the second stack's link.
const SECOND: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 2);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

fn cable(bad: u64) -> Cable {
    let mut cable = Cable::new(Offload::default(), 1500, bad, 40);
    cable.run(Duration::from_secs(20));
    cable
}

fn second(cable: &Cable, port: u16) -> SocketAddr {
    SocketAddr::V6(SocketAddrV6::new(SECOND, port, 0, cable.interfaces[0].0))
}

/// A frame with a message of ICMPv6 to all nodes.
fn message(source: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let all: Ipv6Addr = "ff02::1".parse().unwrap();
    let head = pseudo(source.into(), all.into(), 58, message.len());
    let value = !fold(sum(&message, head));
    message[2..4].copy_from_slice(&value.to_be_bytes());
    let mut frame = vec![0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 99, 0x86, 0xdd];
    frame.extend_from_slice(&[0x60, 0, 0, 0, 0, message.len() as u8, 58, 255]);
    frame.extend_from_slice(&source.octets());
    frame.extend_from_slice(&all.octets());
    frame.extend_from_slice(&message);
    frame
}

/// A router's advertisement of the network 2001:db8::/64.
pub(crate) fn advertisement(lifetime: u16, valid: u32) -> Vec<u8> {
    let mut bytes = vec![134, 0, 0, 0, 64, 0, (lifetime >> 8) as u8, lifetime as u8];
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&[1, 1, 2, 0, 0, 0, 0, 99]);
    bytes.extend_from_slice(&[3, 4, 64, 0xc0]);
    bytes.extend_from_slice(&valid.to_be_bytes());
    bytes.extend_from_slice(&valid.min(600).to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).octets());
    message(ROUTER, bytes)
}

#[test]
fn neighbours_find_each_other_and_carry_streams() {
    let mut cable = cable(0);
    let to = second(&cable, 80);
    let time = transfer(&mut cable, to, 300_000, Duration::from_secs(60));
    assert!(time < Duration::from_secs(1), "{time:?}");
    let known = |neighbour: &Neighbour| {
        neighbour.address == IpAddr::V6(SECOND) && neighbour.mac == Some([2, 0, 0, 0, 0, 2])
    };
    assert!(cable.stacks[0].neighbours().any(|neighbour| known(&neighbour)));
    // Datagrams in fragments, too.
    let server = cable.stacks[1].open(Kind::Udp(Family::V6)).unwrap();
    cable.stacks[1].bind(server, "[::]:53".parse().unwrap()).unwrap();
    let client = cable.stacks[0].open(Kind::Udp(Family::V6)).unwrap();
    let (data, to) = (pattern(9000, 4), second(&cable, 53));
    cable.stacks[0].send(client, &data, Some(to), SendFlags::default()).unwrap();
    cable.run(Duration::from_millis(10));
    assert!(receive(&mut cable.stacks[1], server).unwrap() == data);
}

#[test]
fn a_bad_network_loses_no_byte_of_ipv6() {
    let mut cable = cable(0);
    cable.bad = 10;
    let to = second(&cable, 80);
    transfer(&mut cable, to, 40_000, Duration::from_secs(3600));
}

#[test]
fn a_neighbour_that_is_not_there_is_unreachable() {
    let mut cable = cable(0);
    let absent = SocketAddrV6::new("fe80::9".parse().unwrap(), 80, 0, cable.interfaces[0].0);
    let client = cable.stacks[0].open(Kind::Tcp(Family::V6)).unwrap();
    assert_eq!(cable.stacks[0].connect(client, absent.into()), Ok(Connect::Started));
    cable.run(Duration::from_secs(10));
    assert_eq!(cable.stacks[0].take_error(client), Some(Error::HostUnreachable));
}

#[test]
fn an_address_of_another_system_is_not_used() {
    let mut stack = stack();
    let mac = [2, 0, 0, 0, 0, 2];
    let interface = stack.add_interface("eth0", mac, 1500, Offload::default()).unwrap();
    stack.set_up(interface, true).unwrap();
    assert!(stack.addresses().any(|own| own.prefix.address == IpAddr::V6(SECOND) && own.tentative));
    let mut answer = vec![136, 0, 0, 0, 0x20, 0, 0, 0];
    answer.extend_from_slice(&SECOND.octets());
    answer.extend_from_slice(&[2, 1, 2, 0, 0, 0, 0, 99]);
    stack.receive(interface, &message(SECOND, answer), Instant::from_micros(10));
    assert!(stack.addresses().all(|own| own.prefix.address != IpAddr::V6(SECOND)));
}

#[test]
fn a_router_brings_an_address_and_a_route() {
    let mut cable = cable(0);
    let (interface, mut now) = (cable.interfaces[0], cable.now);
    let stack = &mut cable.stacks[0];
    let own: IpAddr = "2001:db8::ff:fe00:1".parse().unwrap();
    stack.receive(interface, &advertisement(1800, 86_400), now);
    assert!(stack.addresses().any(|address| address.prefix.address == own && address.tentative));
    seconds(stack, &mut now, 2);
    let far = "2001:db8:1::7".parse().unwrap();
    let (route, source) = stack.route_to(far, None).unwrap();
    assert_eq!((route.gateway, source), (Some(ROUTER.into()), own));
    let near = "2001:db8::7".parse().unwrap();
    assert_eq!(stack.route_to(near, None).unwrap().0.gateway, None);
    // A forged advertisement cannot end the address immediately.
    stack.receive(interface, &advertisement(1800, 0), now);
    let left = stack.addresses().find(|address| address.prefix.address == own).unwrap().expires.unwrap();
    assert!(left.since(now) >= Duration::from_secs(7199), "{left:?}");
    // The router retires.
    stack.receive(interface, &advertisement(0, 86_400), now);
    assert_eq!(stack.route_to(far, None).unwrap_err(), Error::NetworkUnreachable);
    // Nothing renews the address.
    stack.advance(now + Duration::from_secs(86_401));
    assert!(stack.addresses().all(|address| address.prefix.address != own));
}

#[test]
fn many_routers_bring_few_routes() {
    let mut cable = cable(0);
    let (interface, now) = (cable.interfaces[0], cable.now);
    for number in 0..1000u16 {
        let mut frame = advertisement(1800, 86_400);
        frame[14 + 8 + 14..14 + 8 + 16].copy_from_slice(&(number + 2).to_be_bytes());
        let at = 14 + 40 + 16 + 8 + 16;
        frame[at + 4..at + 6].copy_from_slice(&number.to_be_bytes());
        frame[56..58].fill(0);
        let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number + 2);
        let frame = message(source, frame[54..].to_vec());
        cable.stacks[0].receive(interface, &frame, now);
    }
    assert!((16..40).contains(&cable.stacks[0].routes().count()));
    assert!((16..40).contains(&cable.stacks[0].addresses().count()));
}

#[test]
fn addresses_of_a_link_are_found_without_a_scope_and_by_their_own_system() {
    let mut cable = cable(0);
    let scoped = second(&cable, 80);
    let bare: SocketAddr = SocketAddrV6::new(SECOND, 80, 0, 0).into();
    let server = listener(&mut cable.stacks[1], scoped);
    let echo = cable.stacks[1].open(Kind::Udp(Family::V6)).unwrap();
    cable.stacks[1].bind(echo, second(&cable, 53)).unwrap();
    for to in [scoped, bare] {
        // From the other system, and from the own one.
        for at in [0, 1] {
            let client = cable.stacks[at].open(Kind::Tcp(Family::V6)).unwrap();
            cable.stacks[at].connect(client, to).unwrap();
            cable.run(Duration::from_millis(10));
            assert_eq!(cable.stacks[at].state(client), Ok(State::Established), "{to} from {at}");
            cable.stacks[1].accept(server).unwrap();
            let client = cable.stacks[at].open(Kind::Udp(Family::V6)).unwrap();
            cable.stacks[at].connect(client, SocketAddr::new(to.ip(), 53)).unwrap();
            send(&mut cable.stacks[at], client, b"question").unwrap();
            cable.run(Duration::from_millis(10));
            let mut buffer = [0; 16];
            let stack = &mut cable.stacks[1];
            let from = stack.receive_from(echo, &mut buffer, ReceiveFlags::default()).unwrap().from;
            stack.send(echo, b"answer", from, SendFlags::default()).unwrap();
            cable.run(Duration::from_millis(10));
            assert_eq!(receive(&mut cable.stacks[at], client), Ok(b"answer".to_vec()));
        }
    }
    // A socket that is bound to the address connects to it.
    let client = cable.stacks[1].open(Kind::Tcp(Family::V6)).unwrap();
    cable.stacks[1].bind(client, second(&cable, 4000)).unwrap();
    assert_eq!(cable.stacks[1].connect(client, scoped), Ok(Connect::Done));
}

#[test]
fn a_prolonged_address_keeps_the_route_to_its_network() {
    let mut cable = cable(0);
    let (interface, mut now) = (cable.interfaces[0], cable.now);
    let stack = &mut cable.stacks[0];
    let kernel = |stack: &Stack| {
        let network: IpAddr = "2001:db8::".parse().unwrap();
        stack.routes().any(|route| {
            route.origin == RouteOrigin::Kernel
                && route.destination == Prefix { address: network, length: 64 }
        })
    };
    for _ in 0..5 {
        stack.receive(interface, &advertisement(1800, 8000), now);
        now = now + Duration::from_secs(5000);
        stack.advance(now);
        assert!(kernel(stack));
    }
    stack.advance(now + Duration::from_secs(8000));
    assert!(!kernel(stack));
}
