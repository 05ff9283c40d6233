//! The same calls have the same answers, whether the stack is here or in another task.

use super::*;
use crate::filter::{Program, Rules};
use crate::placement::{LONGEST, SHORT, Transport, answer};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// A task with a stack, as far as a host test needs one.
struct Task {
    stack: Stack,
    now: Instant,
    answer: Vec<u8>,
    /// Answers that are left until it ends.
    left: usize,
}

/// The way to a task.
struct Loop {
    task: Arc<Mutex<Task>>,
    answer: Vec<u8>,
}

impl Transport for Loop {
    fn call(&mut self, request: &[u8], long: bool) -> Option<&[u8]> {
        let Task { stack, now, answer: room, left } = &mut *self.task.lock().unwrap();
        *left = left.checked_sub(1)?;
        assert!(request.len() <= LONGEST);
        assert!(answer(stack, *now, request, room), "a client makes requests that there are");
        let most = if long { LONGEST } else { SHORT };
        assert!(room.len() <= most, "an answer of {} bytes", room.len());
        self.answer.clone_from(room);
        Some(&self.answer)
    }
}

fn task(first: u32) -> (Arc<Mutex<Task>>, Loop) {
    let mut stack = stack();
    stack.identify_from(first);
    let task = Task { stack, now: Instant::from_micros(0), answer: Vec::new(), left: usize::MAX };
    let task = Arc::new(Mutex::new(task));
    (task.clone(), Loop { task, answer: Vec::new() })
}

/// A stack in another task, and the task.
fn there() -> (Internet, Arc<Mutex<Task>>) {
    let mut internet = Internet::elsewhere();
    let Internet::There(remote) = &mut internet else { unreachable!() };
    let (task, way) = task(remote.next_identifier());
    remote.connect(Box::new(way));
    assert!(!remote.take_lost(), "there was none before");
    (internet, task)
}

fn here() -> Internet {
    let mut stack = stack();
    stack.identify_from(1);
    Internet::Here(Box::new(stack))
}

/// What is done with a stack. Numbers of sockets are those of a list of all that were made.
#[derive(Clone, Debug)]
enum Step {
    Open(Kind, u32),
    Close(usize),
    Bind(usize, SocketAddr),
    Connect(usize, SocketAddr),
    Disconnect(usize),
    Listen(usize, usize),
    Accept(usize),
    Send(usize, usize, Option<SocketAddr>, SendFlags),
    SendFrame(usize, usize),
    Receive(usize, usize, ReceiveFlags),
    Shutdown(usize, Direction),
    Configure(usize, u32),
    Filter(usize, bool),
    Join(usize, bool),
    Watch(usize, Membership, bool),
    Look(usize),
    Administer(u8),
    Lists,
    Time(u64),
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<bool>(), prop_oneof![Just(0_u16), 7000_u16..7004])
        .prop_map(|(is_v4, port)| if is_v4 { v4(port) } else { v6(port) })
}

fn kind() -> impl Strategy<Value = Kind> {
    let family = || prop_oneof![Just(Family::V4), Just(Family::V6)];
    prop_oneof![
        4 => family().prop_map(Kind::Tcp),
        4 => family().prop_map(Kind::Udp),
        1 => family().prop_map(Kind::IcmpEcho),
        1 => family().prop_map(|family| Kind::Raw(family, 1)),
        1 => any::<bool>().prop_map(|cooked| Kind::Packet { protocol: 3, cooked }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let of = 0..8_usize;
    let length = prop_oneof![4 => 0..600_usize, 1 => 0..70_000_usize];
    let flags = || (any::<bool>(), any::<bool>(), any::<bool>());
    let sending = (flags(), any::<bool>(), proptest::option::of(1..64_u8)).prop_map(
        |((urgent, more, dont_route), named, hops)| SendFlags {
            urgent,
            more,
            dont_route,
            interface: named.then_some(InterfaceIndex(1)),
            hops,
            ..SendFlags::default()
        },
    );
    let receiving = flags().prop_map(|(peek, discard, urgent)| ReceiveFlags {
        peek,
        // Only streams discard, and their callers say so.
        discard: discard && !urgent,
        urgent,
    });
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write), Just(Direction::Both)];
    let membership = prop_oneof![Just(Membership::Promiscuous), Just(Membership::Group([1; 6]))];
    prop_oneof![
        4 => (kind(), 0..3_u32).prop_map(|(kind, user)| Step::Open(kind, user)),
        1 => of.clone().prop_map(Step::Close),
        4 => (of.clone(), address()).prop_map(|(id, address)| Step::Bind(id, address)),
        4 => (of.clone(), address()).prop_map(|(id, address)| Step::Connect(id, address)),
        1 => of.clone().prop_map(Step::Disconnect),
        3 => (of.clone(), 0..4_usize).prop_map(|(id, backlog)| Step::Listen(id, backlog)),
        4 => of.clone().prop_map(Step::Accept),
        8 => (of.clone(), length.clone(), proptest::option::of(address()), sending)
            .prop_map(|(id, length, to, flags)| Step::Send(id, length, to, flags)),
        1 => (of.clone(), length.clone()).prop_map(|(id, length)| Step::SendFrame(id, length)),
        8 => (of.clone(), length, receiving).prop_map(|(id, room, flags)| Step::Receive(id, room, flags)),
        1 => (of.clone(), direction).prop_map(|(id, direction)| Step::Shutdown(id, direction)),
        2 => (of.clone(), any::<u32>()).prop_map(|(id, change)| Step::Configure(id, change)),
        1 => (of.clone(), any::<bool>()).prop_map(|(id, sets)| Step::Filter(id, sets)),
        1 => (of.clone(), any::<bool>()).prop_map(|(id, joins)| Step::Join(id, joins)),
        1 => (of.clone(), membership, any::<bool>()).prop_map(|(id, what, begins)| Step::Watch(id, what, begins)),
        4 => of.prop_map(Step::Look),
        2 => (0..12_u8).prop_map(Step::Administer),
        1 => Just(Step::Lists),
        2 => (0..2_000_000_u64).prop_map(Step::Time),
    ]
}

/// Does a step. What it answers is text, so that answers of all kinds can be compared.
fn act(stack: &mut Internet, sockets: &mut Vec<SocketId>, step: &Step) -> String {
    let Some(id) = (match step {
        Step::Open(..) | Step::Administer(_) | Step::Lists | Step::Time(_) => {
            Some(SocketId { index: 0, generation: 0 })
        }
        Step::Close(at) | Step::Bind(at, _) | Step::Connect(at, _) | Step::Disconnect(at) => {
            sockets.get(*at).copied()
        }
        Step::Listen(at, _) | Step::Accept(at) | Step::Send(at, ..) | Step::SendFrame(at, _) => {
            sockets.get(*at).copied()
        }
        Step::Receive(at, ..) | Step::Shutdown(at, _) | Step::Configure(at, _) | Step::Filter(at, _) => {
            sockets.get(*at).copied()
        }
        Step::Join(at, _) | Step::Watch(at, ..) | Step::Look(at) => sockets.get(*at).copied(),
    }) else {
        return "no such socket".into();
    };
    let lo = InterfaceIndex(1);
    match *step {
        Step::Open(kind, user) => {
            let opened = stack.open_for(kind, user);
            sockets.extend(opened);
            format!("{opened:?}")
        }
        Step::Close(_) => format!("{:?}", stack.close(id)),
        Step::Bind(_, address) => format!("{:?}", stack.bind(id, address)),
        Step::Connect(_, peer) => format!("{:?}", stack.connect(id, peer)),
        Step::Disconnect(_) => format!("{:?}", stack.disconnect(id)),
        Step::Listen(_, backlog) => format!("{:?}", stack.listen(id, backlog)),
        Step::Accept(_) => {
            let accepted = stack.accept(id);
            sockets.extend(accepted.map(|(id, _)| id));
            format!("{accepted:?}")
        }
        Step::Send(_, length, to, flags) => {
            // The callers give a stack no more at a time.
            let data = pattern(length.min(65536), length);
            format!("{:?}", stack.send(id, &data, to, flags))
        }
        Step::SendFrame(_, length) => {
            let data = pattern(length.min(65550), length);
            format!("{:?}", stack.send_frame(id, &data, lo, 0x800, [0; 6]))
        }
        Step::Receive(_, room, flags) => {
            let expected = stack.expected(id);
            let room = if flags.urgent { 1 } else { expected }.min(room);
            let mut buffer = vec![0; room];
            let discards = flags.discard && stack.state(id).is_ok();
            let received = stack.receive_from(id, &mut buffer, ReceiveFlags { discard: discards, ..flags });
            let count = received.map_or(0, |received| if discards { 0 } else { received.copied });
            format!("{received:?} {:?}", &buffer[..count])
        }
        Step::Shutdown(_, direction) => format!("{:?}", stack.shutdown(id, direction)),
        Step::Configure(_, change) => {
            let changed = stack.configure(id, |options| {
                options.no_delay = change & 1 != 0;
                options.reuse_address = change & 2 != 0;
                options.linger = (change & 4 != 0).then(|| Duration::from_millis(change.into()));
                options.receive_buffer = change as usize;
                options.icmp_filter = [change.into(); 4];
                options.interface = (change & 24 == 24).then_some(lo);
                options.only_v6 = change & 32 != 0;
                options.receive_errors = change & 64 != 0;
            });
            format!("{changed:?}")
        }
        Step::Filter(_, sets) => {
            // Takes 100 bytes of each packet.
            let program = [6, 0, 0, 0, 100, 0, 0, 0];
            let filter = sets.then(|| Program::new(&program, Rules::Packets).unwrap());
            format!("{:?}", stack.set_filter(id, filter))
        }
        Step::Join(_, joins) => {
            let group = IpAddr::V4(Ipv4Addr::new(224, 0, 0, 7));
            let done = if joins { stack.join(id, group, Some(lo)) } else { stack.leave(id, group, None) };
            format!("{done:?}")
        }
        Step::Watch(_, membership, begins) => format!("{:?}", stack.watch(id, lo, membership, begins)),
        Step::Look(_) => [
            format!("{:?}", stack.readiness(id)),
            format!("{:?}", stack.queued(id)),
            format!("{:?}", stack.options(id)),
            format!("{:?}", stack.state(id)),
            format!("{:?}", stack.local_address(id)),
            format!("{:?}", stack.peer_address(id)),
            format!("{:?}", stack.tcp_info(id)),
            format!("{:?}", stack.take_error(id)),
            format!("{:?}", stack.take_report(id)),
            format!("{:?}", stack.take_statistics(id)),
        ]
        .concat(),
        Step::Administer(number) => administer(stack, number),
        Step::Lists => [
            format!("{:?}", stack.interfaces()),
            format!("{:?}", stack.addresses()),
            format!("{:?}", stack.routes()),
            format!("{:?}", stack.neighbours()),
            format!("{:?}", stack.sockets()),
        ]
        .concat(),
        // The clock is not the stack's.
        Step::Time(_) => String::new(),
    }
}

/// The calls that change what the administrator has given.
fn administer(stack: &mut Internet, number: u8) -> String {
    let lo = InterfaceIndex(1);
    let own = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));
    let prefix = Prefix { address: own, length: 24 };
    let route = Route {
        destination: Prefix { address: Ipv4Addr::new(10, 9, 0, 0).into(), length: 16 },
        gateway: None,
        interface: lo,
        metric: 7,
        source: None,
        origin: RouteOrigin::Static,
        expires: None,
    };
    match number {
        0 => format!("{:?}", stack.set_up(lo, true)),
        1 => format!("{:?}", stack.set_mtu(lo, 1500)),
        2 => format!("{:?}", stack.set_promiscuous(lo, true)),
        3 => format!("{:?}", stack.add_address(lo, prefix)),
        4 => format!("{:?}", stack.remove_address(lo, own)),
        5 => format!("{:?}", stack.add_route(route)),
        6 => format!("{:?}", stack.replace_route(Route { metric: 8, ..route })),
        7 => format!("{:?}", stack.remove_route(route.destination, None, Some(lo), None)),
        8 => format!("{:?}", stack.route_to(Ipv4Addr::new(10, 9, 3, 3).into(), None)),
        9 => format!("{:?}", stack.set_neighbour(lo, own, Some([2; 6]))),
        10 => format!("{:?} {:?}", stack.start_dhcp(InterfaceIndex(9), "name"), stack.lease(lo)),
        _ => format!("{:?} {:?}", stack.interface(lo), stack.interface(InterfaceIndex(9))),
    }
}

/// The sockets that have become ready.
fn ready(stack: &mut Internet, now: Instant) -> Vec<(SocketId, Readiness)> {
    if let Internet::Here(stack) = stack
        && stack.next_deadline().is_some_and(|deadline| deadline <= now)
    {
        stack.advance(now);
    }
    std::iter::from_fn(|| stack.ready()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_same_calls_have_the_same_answers_here_and_there(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut near, (mut far, task)) = (here(), there());
        let (mut near_sockets, mut far_sockets) = (Vec::new(), Vec::new());
        let mut now = Instant::from_micros(0);
        for stack in [&mut near, &mut far] {
            stack.set_up(InterfaceIndex(1), true).unwrap();
        }
        for step in steps {
            if let Step::Time(micros) = step {
                now = now + Duration::from_micros(micros);
                near.here().unwrap().advance(now);
                let mut task = task.lock().unwrap();
                task.now = now;
                task.stack.advance(now);
            }
            let expected = act(&mut near, &mut near_sockets, &step);
            let seen = act(&mut far, &mut far_sockets, &step);
            prop_assert_eq!(expected, seen, "{:?}", step);
            far.refresh();
            let (mut expected, mut seen) = (ready(&mut near, now), ready(&mut far, now));
            // In several messages a socket may be named more than once: the last time counts.
            for list in [&mut expected, &mut seen] {
                list.reverse();
                let mut known = std::collections::HashSet::new();
                list.retain(|(id, _)| known.insert(*id));
                list.sort_by_key(|(id, _)| *id);
            }
            prop_assert_eq!(expected, seen, "{:?}", step);
        }
    }

    #[test]
    fn a_request_of_any_bytes_is_answered_or_refused(request in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut stack = stack();
        let mut room = Vec::new();
        answer(&mut stack, Instant::from_micros(0), &request, &mut room);
        prop_assert!(room.len() <= LONGEST);
    }

    #[test]
    fn an_answer_of_any_bytes_is_taken_or_ends_the_use_of_the_task(
        answers in proptest::collection::vec(proptest::collection::vec(0..4_u8, 0..60), 0..40),
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        /// A task that says anything.
        struct Liar(Vec<Vec<u8>>, Vec<u8>);
        impl Transport for Liar {
            fn call(&mut self, _: &[u8], _: bool) -> Option<&[u8]> {
                self.1 = self.0.pop()?;
                Some(&self.1)
            }
        }
        let mut internet = Internet::elsewhere();
        let Internet::There(remote) = &mut internet else { unreachable!() };
        remote.connect(Box::new(Liar(answers, Vec::new())));
        let mut sockets = vec![SocketId { index: 0, generation: 1 }];
        for step in steps {
            act(&mut internet, &mut sockets, &step);
            while internet.ready().is_some() {}
        }
    }
}

#[test]
fn the_sockets_of_a_task_that_has_ended_have_ended_and_new_ones_are_of_the_next() {
    let (mut internet, ended) = there();
    internet.set_up(InterfaceIndex(1), true).unwrap();
    let old = internet.open_for(Kind::Udp(Family::V4), 0).unwrap();
    internet.bind(old, v4(7000)).unwrap();
    ended.lock().unwrap().left = 0;
    assert_eq!(internet.bind(old, v4(7001)), Err(Error::NetworkDown), "the call that finds it out");
    let Internet::There(remote) = &mut internet else { unreachable!() };
    assert!(!remote.is_connected() && remote.take_lost() && !remote.take_lost());
    assert_eq!(internet.open_for(Kind::Udp(Family::V4), 0), Err(Error::NetworkDown));
    assert_eq!(internet.interfaces(), []);
    assert_eq!(internet.local_address(old), Err(Error::ConnectionReset));

    let Internet::There(remote) = &mut internet else { unreachable!() };
    let (_next, way) = task(remote.next_identifier());
    remote.connect(Box::new(way));
    let new = internet.open_for(Kind::Udp(Family::V4), 0).unwrap();
    assert_ne!(old, new);
    internet.bind(new, v4(7000)).unwrap();
    let mut buffer = [0; 10];
    let lost = internet.receive_from(old, &mut buffer, ReceiveFlags::default());
    assert_eq!(lost, Err(Error::ConnectionReset));
    assert_eq!(internet.take_error(old), Some(Error::ConnectionReset));
    let readiness = internet.readiness(old);
    assert!(readiness.read && readiness.write && readiness.hup && readiness.error);
    internet.close(old);
    assert_eq!(internet.local_address(new), Ok(v4(7000)), "the socket at the same place is another one");
}

#[test]
fn all_sockets_are_told_that_become_ready_between_two_answers() {
    let (mut internet, task) = there();
    internet.set_up(InterfaceIndex(1), true).unwrap();
    let open = |_| internet.open_for(Kind::Udp(Family::V4), 0).unwrap();
    let all: Vec<_> = (0..100).map(open).collect();
    for (id, port) in all.iter().zip(7000..) {
        internet.bind(*id, v4(port)).unwrap();
    }
    while internet.ready().is_some() {}
    let mut task = task.lock().unwrap();
    let sender = task.stack.open(Kind::Udp(Family::V4)).unwrap();
    for port in 7000..7100 {
        task.stack.send(sender, b"news", Some(v4(port)), SendFlags::default()).unwrap();
    }
    drop(task);
    internet.refresh();
    let mut told: Vec<_> = std::iter::from_fn(|| internet.ready()).map(|(id, _)| id).collect();
    told.retain(|id| all.contains(id));
    assert_eq!(told, all);
}

#[test]
fn a_long_list_comes_in_parts() {
    let (mut internet, _task) = there();
    for _ in 0..300 {
        internet.open_for(Kind::Udp(Family::V4), 0).unwrap();
    }
    assert_eq!(internet.sockets().len(), 300);
}
