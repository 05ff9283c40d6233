//! DHCP with a server that the test plays.

use super::*;
use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// A client's stack, and the server's, which has a socket at port 67.
struct Network {
    stacks: [Stack; 2],
    interface: InterfaceIndex,
    socket: SocketId,
    now: Instant,
    /// Messages that the client sent.
    asked: Vec<DhcpMessageType>,
    answering: bool,
    refusing: bool,
    /// The address that the server grants.
    granting: Ipv4Addr,
    /// When the server wants a lease to be renewed.
    renewal: Option<u32>,
}

impl Network {
    fn new() -> Network {
        let mut stacks = [3, 4].map(|seed| Stack::new([seed; 32], Limits::default()));
        let mut interface = InterfaceIndex(0);
        for (at, stack) in stacks.iter_mut().enumerate() {
            let mac = [2, 0, 0, 0, 1, at as u8];
            interface = stack.add_interface("eth0", mac, 1500, Offload::default()).unwrap();
            stack.set_up(interface, true).unwrap();
        }
        let prefix = Prefix { address: SERVER.into(), length: 24 };
        stacks[1].add_address(interface, prefix).unwrap();
        let socket = stacks[1].open(Kind::Udp(Family::V4)).unwrap();
        stacks[1].configure(socket, |options| options.broadcast = true).unwrap();
        stacks[1].bind(socket, "0.0.0.0:67".parse().unwrap()).unwrap();
        let now = Instant::from_micros(5);
        let (asked, answering, refusing) = (Vec::new(), true, false);
        Network {
            stacks,
            interface,
            socket,
            now,
            asked,
            answering,
            refusing,
            granting: ADDRESS,
            renewal: None,
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            let mut moved = false;
            for at in 0..2 {
                while let Some(frame) = self.stacks[at].transmit(self.interface) {
                    self.stacks[1 - at].receive(self.interface, &frame.bytes, self.now);
                    moved = true;
                }
            }
            while let Ok(payload) = receive(&mut self.stacks[1], self.socket) {
                self.answer(&payload);
                moved = true;
            }
            if !moved {
                let deadlines = self.stacks.iter().filter_map(|stack| stack.next_deadline());
                self.now = deadlines.min().unwrap_or(until).min(until).max(self.now);
                self.stacks.iter_mut().for_each(|stack| stack.advance(self.now));
            }
        }
    }

    fn answer(&mut self, payload: &[u8]) {
        let packet = DhcpPacket::new_unchecked(payload);
        let question = DhcpRepr::parse(&packet).unwrap();
        self.asked.push(question.message_type);
        if !self.answering {
            return;
        }
        let message_type = match question.message_type {
            DhcpMessageType::Discover => DhcpMessageType::Offer,
            _ if self.refusing => DhcpMessageType::Nak,
            _ => DhcpMessageType::Ack,
        };
        let servers = [10, 0, 2, 3];
        let mut options = vec![DhcpOption { kind: 6, data: &servers }];
        let renewal = self.renewal.map(u32::to_be_bytes);
        for kind in [58, 59] {
            options.extend(renewal.as_ref().map(|data| DhcpOption { kind, data }));
        }
        let answer = DhcpRepr {
            message_type,
            your_ip: self.granting,
            router: Some(SERVER),
            subnet_mask: Some(Ipv4Addr::new(255, 255, 255, 0)),
            server_identifier: Some(SERVER),
            lease_duration: Some(3600),
            parameter_request_list: None,
            client_identifier: None,
            requested_ip: None,
            max_size: None,
            additional_options: &options,
            ..question.clone()
        };
        let mut bytes = vec![0; answer.buffer_len()];
        answer.emit(&mut DhcpPacket::new_unchecked(&mut bytes)).unwrap();
        let to = if question.client_ip.is_unspecified() { Ipv4Addr::BROADCAST } else { question.client_ip };
        let to = SocketAddr::new(to.into(), 68);
        let flags = SendFlags { interface: Some(self.interface), ..SendFlags::default() };
        self.stacks[1].at(self.now).send(self.socket, &bytes, Some(to), flags).unwrap();
    }

    fn has_address(&self) -> bool {
        self.stacks[0].addresses().any(|own| own.prefix.address == IpAddr::V4(ADDRESS))
    }
}

#[test]
fn a_lease_is_taken_renewed_and_lost() {
    let mut network = Network::new();
    network.stacks[0].start_dhcp(network.interface, "macadamia").unwrap();
    network.run(Duration::from_secs(1));
    let lease = network.stacks[0].lease(network.interface).unwrap().clone();
    assert_eq!(lease.prefix, Prefix { address: ADDRESS.into(), length: 24 });
    assert_eq!(lease.router, Some(SERVER.into()));
    assert_eq!(lease.name_servers, ["10.0.2.3".parse::<IpAddr>().unwrap()]);
    assert!(network.has_address());
    let far = "192.0.2.7".parse().unwrap();
    let (route, source) = network.stacks[0].route_to(far, None).unwrap();
    assert_eq!((route.gateway, source), (Some(SERVER.into()), ADDRESS.into()));
    assert_eq!(network.asked, [DhcpMessageType::Discover, DhcpMessageType::Request]);
    // The lease is renewed at half of its time.
    network.run(Duration::from_secs(1900));
    assert_eq!(network.asked.len(), 3);
    assert!(network.stacks[0].lease(network.interface).unwrap().expires > lease.expires);
    // The server goes: the lease lasts until its end, and is asked for again.
    network.answering = false;
    network.run(Duration::from_secs(3300));
    assert!(network.has_address());
    network.run(Duration::from_secs(600));
    assert!(!network.has_address());
    assert_eq!(network.stacks[0].lease(network.interface), None);
    assert_eq!(network.stacks[0].route_to(far, None).unwrap_err(), Error::NetworkUnreachable);
    // It comes back.
    network.answering = true;
    network.run(Duration::from_secs(100));
    assert!(network.has_address());
    network.stacks[0].stop_dhcp(network.interface).unwrap();
    assert!(!network.has_address());
}

#[test]
fn a_server_that_refuses_is_not_asked_without_end() {
    let mut network = Network::new();
    network.refusing = true;
    network.stacks[0].start_dhcp(network.interface, "").unwrap();
    network.run(Duration::from_secs(60));
    assert!(!network.has_address());
    assert!((4..100).contains(&network.asked.len()), "{}", network.asked.len());
    network.refusing = false;
    network.run(Duration::from_secs(60));
    assert!(network.has_address());
}

#[test]
fn a_network_without_a_server_is_asked_less_and_less() {
    let mut network = Network::new();
    network.answering = false;
    network.stacks[0].start_dhcp(network.interface, "x").unwrap();
    network.run(Duration::from_secs(3600));
    assert!((20..70).contains(&network.asked.len()), "{}", network.asked.len());
    // The cable is plugged out and in: it is asked at that moment.
    let asked = network.asked.len();
    network.answering = true;
    network.stacks[0].set_link(network.interface, false).unwrap();
    network.stacks[0].set_link(network.interface, true).unwrap();
    network.run(Duration::from_millis(10));
    assert!(network.asked.len() > asked);
    network.run(Duration::from_millis(600));
    assert!(network.has_address());
}

#[test]
fn a_renewed_lease_keeps_the_route_to_its_network() {
    let mut network = Network::new();
    network.stacks[0].start_dhcp(network.interface, "x").unwrap();
    network.run(Duration::from_secs(3 * 3600));
    let (route, source) = network.stacks[0].route_to("10.0.2.77".parse().unwrap(), None).unwrap();
    assert_eq!((route.origin, source), (RouteOrigin::Kernel, ADDRESS.into()));
}

#[test]
fn a_lease_that_is_to_be_renewed_immediately_is_not_asked_for_without_end() {
    let mut network = Network::new();
    network.renewal = Some(0);
    network.stacks[0].start_dhcp(network.interface, "x").unwrap();
    network.run(Duration::from_secs(600));
    assert!(network.has_address());
    assert!((3..30).contains(&network.asked.len()), "{}", network.asked.len());
}

#[test]
fn an_interface_that_comes_up_again_has_its_routes_again() {
    let mut network = Network::new();
    let interface = network.interface;
    network.stacks[0].start_dhcp(interface, "x").unwrap();
    network.run(Duration::from_secs(1));
    network.stacks[0].set_up(interface, false).unwrap();
    network.run(Duration::from_secs(1));
    network.stacks[0].set_up(interface, true).unwrap();
    network.run(Duration::from_secs(1));
    let far = "192.0.2.7".parse().unwrap();
    let (route, source) = network.stacks[0].route_to(far, None).unwrap();
    assert_eq!((route.gateway, source), (Some(SERVER.into()), ADDRESS.into()));
    // The administrator's address does not end with the lease.
    network.stacks[0].remove_address(interface, ADDRESS.into()).unwrap();
    network.stacks[0].add_address(interface, Prefix { address: ADDRESS.into(), length: 24 }).unwrap();
    network.run(Duration::from_secs(3600));
    network.answering = false;
    network.run(Duration::from_secs(2 * 3600));
    assert_eq!(network.stacks[0].lease(interface), None);
    assert!(network.has_address());
}

#[test]
fn an_address_that_another_system_has_is_declined_and_another_one_asked_for() {
    let mut network = Network::new();
    let interface = network.interface;
    // The server's own stack has the address that it grants.
    let taken = Prefix { address: ADDRESS.into(), length: 24 };
    network.stacks[1].add_address(interface, taken).unwrap();
    network.stacks[0].start_dhcp(interface, "x").unwrap();
    network.run(Duration::from_secs(5));
    use DhcpMessageType::{Decline, Discover, Request};
    assert_eq!(network.asked, [Discover, Request, Decline]);
    assert!(!network.has_address());
    assert_eq!(network.stacks[0].lease(interface), None);
    let declined = Declined { address: ADDRESS, mac: [2, 0, 0, 0, 1, 1] };
    assert_eq!(network.stacks[0].declined(interface), Some(declined));
    // The system that has the address has not heard that another one uses it.
    let known = |other: IpAddr| network.stacks[1].neighbours().any(|neighbour| neighbour.address == other);
    assert!(!known(ADDRESS.into()));
    // Servers are asked again after ten seconds.
    network.granting = Ipv4Addr::new(10, 0, 2, 16);
    network.run(Duration::from_secs(10));
    assert_eq!(network.asked, [Discover, Request, Decline, Discover, Request]);
    let lease = network.stacks[0].lease(interface).unwrap();
    assert_eq!(lease.prefix.address, IpAddr::V4(network.granting));
    assert_eq!(network.stacks[0].declined(interface), None);
}

#[test]
fn an_address_that_another_system_is_about_to_use_is_declined() {
    let mut network = Network::new();
    let interface = network.interface;
    network.stacks[0].start_dhcp(interface, "x").unwrap();
    // A question for this address, as of a system that was granted it, too.
    network.run(Duration::from_millis(100));
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 1, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 1, 9, 0, 0, 0, 0]);
    arp.extend([0; 6]);
    arp.extend(ADDRESS.octets());
    network.stacks[0].receive(interface, &arp, network.now);
    network.run(Duration::from_secs(1));
    assert_eq!(network.asked.last(), Some(&DhcpMessageType::Decline));
    assert!(!network.has_address());
    // Once the address is used, the same question gets an answer.
    network.run(Duration::from_secs(12));
    assert!(network.has_address());
    network.stacks[0].receive(interface, &arp, network.now);
    let answers = std::iter::from_fn(|| network.stacks[0].transmit(interface));
    assert!(answers.into_iter().any(|frame| frame.bytes[12..14] == [8, 6] && frame.bytes[21] == 2));
    assert!(network.has_address());
}
