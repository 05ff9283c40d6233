//! Tests of what the caller of the stack is told of changes.

use super::*;
use proptest::prelude::*;

/// What a listener knows: it begins with what there is, and applies the changes.
struct Known {
    interfaces: Vec<Interface>,
    addresses: Vec<Address>,
    routes: Vec<Route>,
    neighbours: Vec<Neighbour>,
}

/// Puts what is new in place of what it replaces, or takes what has gone away.
fn apply<T: Clone>(list: &mut Vec<T>, new: &T, gone: bool, same: impl Fn(&T, &T) -> bool) {
    let before = list.len();
    list.retain(|old| !same(old, new));
    assert!(!gone || list.len() + 1 == before, "what has gone was there");
    if !gone {
        list.push(new.clone());
    }
}

impl Known {
    fn of(stack: &Stack) -> Known {
        Known {
            interfaces: stack.interfaces().cloned().collect(),
            addresses: stack.addresses().copied().collect(),
            routes: stack.routes().copied().collect(),
            neighbours: stack.neighbours().collect(),
        }
    }

    fn learn(&mut self, stack: &mut Stack) {
        while let Some(Change { gone, subject }) = stack.next_change() {
            match subject {
                Subject::Missed => panic!("they were taken in time"),
                Subject::Interface(new) => apply(&mut self.interfaces, &new, gone, |a, b| a.index == b.index),
                Subject::Address(new, name) => {
                    assert!(stack.interfaces().all(|i| i.index != new.interface || i.name == name));
                    let same = |a: &Address, b: &Address| {
                        a.interface == b.interface && a.prefix.address == b.prefix.address
                    };
                    apply(&mut self.addresses, &new, gone, same);
                }
                Subject::Route(new) => apply(&mut self.routes, &new, gone, |a, b| {
                    a.destination == b.destination
                        && a.metric == b.metric
                        && (a.destination.address.is_ipv4()
                            || a.gateway == b.gateway && a.interface == b.interface)
                }),
                Subject::Neighbour(new) => {
                    // One that was only asked for is not known.
                    self.neighbours.push(new);
                    let same =
                        |a: &Neighbour, b: &Neighbour| a.interface == b.interface && a.address == b.address;
                    let known = self.neighbours.iter().filter(|old| same(old, &new)).count();
                    if known > 1 {
                        let at = self.neighbours.iter().position(|old| same(old, &new));
                        self.neighbours.remove(at.unwrap());
                    }
                    if gone {
                        self.neighbours.retain(|old| !same(old, &new));
                    }
                }
            }
        }
    }

    /// Checks that the listener knows what there is.
    fn check(&self, stack: &Stack) {
        let sorted = |list: Vec<String>| {
            let mut list = list;
            list.sort();
            list
        };
        let text = |interface: &Interface| {
            format!("{:?}", (&interface.name, interface.up, interface.mtu, interface.link))
        };
        assert_eq!(
            sorted(self.interfaces.iter().map(text).collect()),
            sorted(stack.interfaces().map(text).collect())
        );
        assert_eq!(
            sorted(self.addresses.iter().map(|own| format!("{own:?}")).collect()),
            sorted(stack.addresses().map(|own| format!("{own:?}")).collect())
        );
        // A route's lifetime may have been prolonged.
        let text = |route: &Route| format!("{:?}", Route { expires: None, ..*route });
        assert_eq!(
            sorted(self.routes.iter().map(text).collect()),
            sorted(stack.routes().map(text).collect())
        );
        let text = |known: &Neighbour| format!("{:?}", (known.interface, known.address, known.mac));
        let told = |known: &Neighbour| !matches!(known.state, NeighbourState::Incomplete);
        assert_eq!(
            sorted(self.neighbours.iter().map(text).collect()),
            sorted(stack.neighbours().filter(told).map(|known| text(&known)).collect())
        );
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Up(bool),
    Link(bool),
    Mtu(u16),
    Add(u8),
    Remove(u8),
    Route(u8, u8),
    Replace(u8, u8),
    NoRoute(u8),
    Neighbour(u8, bool),
    Hear(u8),
    Send(u8),
    Advertise(bool),
    Wait(u16),
    Interface(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<bool>().prop_map(Step::Up),
        any::<bool>().prop_map(Step::Link),
        (576..2000u16).prop_map(Step::Mtu),
        (1..6u8).prop_map(Step::Add),
        (1..6u8).prop_map(Step::Remove),
        (1..4u8, 1..6u8).prop_map(|(a, b)| Step::Route(a, b)),
        (1..4u8, 1..6u8).prop_map(|(a, b)| Step::Replace(a, b)),
        (1..4u8).prop_map(Step::NoRoute),
        (1..6u8, any::<bool>()).prop_map(|(a, b)| Step::Neighbour(a, b)),
        (1..6u8).prop_map(Step::Hear),
        (1..6u8).prop_map(Step::Send),
        any::<bool>().prop_map(Step::Advertise),
        (1..5000u16).prop_map(Step::Wait),
        any::<bool>().prop_map(Step::Interface),
    ]
}

/// A reply of ARP from the neighbour 10.0.0.`number`.
fn reply(number: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, number, 8, 6];
    frame.extend([
        0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 1, number, 10, 0, 0, number, 2, 0, 0, 0, 0, 1, 10, 0, 0, to,
    ]);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_listener_knows_what_there_is(steps in proptest::collection::vec(step(), 1..80)) {
        let mut stack = stack();
        let mac = [2, 0, 0, 0, 0, 1];
        let mut interface = stack.add_interface("eth0", mac, 1500, Offload::default()).unwrap();
        let mut now = Instant::default();
        let mut known = Known::of(&stack);
        stack.note_changes(true);
        let ip = |number: u8| IpAddr::V4(Ipv4Addr::new(10, 0, 0, number));
        let network = |number: u8| Prefix { address: Ipv4Addr::new(10, number, 0, 0).into(), length: 16 };
        for step in steps {
            // Each of these may be refused.
            match step {
                Step::Up(up) => stack.set_up(interface, up).unwrap(),
                Step::Link(link) => stack.set_link(interface, link).unwrap(),
                Step::Mtu(mtu) => stack.set_mtu(interface, mtu.into()).unwrap(),
                Step::Add(number) => {
                    let _ = stack.add_address(interface, Prefix { address: ip(number), length: 24 });
                }
                Step::Remove(number) => {
                    let _ = stack.remove_address(interface, ip(number));
                }
                Step::Route(to, gateway) | Step::Replace(to, gateway) => {
                    let route = Route {
                        destination: network(to),
                        gateway: Some(ip(gateway)),
                        interface,
                        metric: 0,
                        source: None,
                        origin: RouteOrigin::Static,
                        expires: None,
                    };
                    let _ = match step {
                        Step::Route(..) => stack.add_route(route),
                        _ => stack.replace_route(route),
                    };
                }
                Step::NoRoute(to) => {
                    let _ = stack.remove_route(network(to), None, None, None);
                }
                Step::Neighbour(number, there) => {
                    let _ = stack.set_neighbour(interface, ip(number), there.then_some([2, 0, 0, 0, 9, number]));
                }
                Step::Hear(number) => stack.receive(interface, &reply(number, 1), now),
                Step::Send(number) => {
                    let socket = stack.open(Kind::Udp(Family::V4)).unwrap();
                    let _ = stack.send(socket, b"x", Some(SocketAddr::new(ip(number), 9)), SendFlags::default());
                    stack.close(socket);
                }
                Step::Advertise(there) => {
                    let lifetime = if there { 1800 } else { 0 };
                    stack.receive(interface, &super::discovery::advertisement(lifetime, 7), now);
                }
                Step::Wait(milliseconds) => {
                    now = now + Duration::from_millis(milliseconds.into());
                    stack.advance(now);
                }
                Step::Interface(other) => {
                    stack.remove_interface(interface).unwrap();
                    let name = if other { "eth1" } else { "eth0" };
                    interface = stack.add_interface(name, mac, 1500, Offload::default()).unwrap();
                }
            }
            while stack.transmit(interface).is_some() {}
            known.learn(&mut stack);
            known.check(&stack);
        }
        stack.note_changes(false);
        stack.remove_interface(interface).unwrap();
        prop_assert_eq!(stack.next_change(), None);
    }
}

#[test]
fn changes_that_are_not_taken_have_a_limit_and_the_loss_is_told() {
    let mut stack = stack();
    stack.note_changes(true);
    let most = crate::changes::MOST;
    for round in 0..most + 2 {
        stack.set_up(InterfaceIndex(1), round % 2 == 1).unwrap();
    }
    let is_of_lo = |change: Change| match change.subject {
        Subject::Interface(interface) => interface.index == InterfaceIndex(1),
        _ => false,
    };
    let mut queue: Vec<_> = core::iter::from_fn(|| stack.next_change()).collect();
    assert!(queue.len() <= most);
    let missed = queue.iter().position(|change| change.subject == Subject::Missed);
    queue.drain(..=missed.expect("it is told"));
    assert!(!queue.is_empty() && queue.into_iter().any(is_of_lo));
    // What is taken in time is told whole.
    stack.set_up(InterfaceIndex(1), false).unwrap();
    let next: Vec<_> = core::iter::from_fn(|| stack.next_change()).collect();
    assert!(next.iter().all(|change| change.subject != Subject::Missed));
}
