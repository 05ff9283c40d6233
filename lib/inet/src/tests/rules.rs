//! The rules of TCP that only single segments show.

use super::cable::{Cable, there};
use super::*;
use crate::checksum::{fold, pseudo, sum};
use crate::tcp::segment::{Flags, LARGEST, Segment};
use crate::tcp::sequence::Seq;

const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A stack whose peer the test plays, segment for segment.
struct Line {
    stack: Stack,
    interface: InterfaceIndex,
    now: Instant,
}

/// A segment that the stack sent.
#[derive(Debug)]
struct Sent {
    seq: Seq,
    ack: Option<Seq>,
    flags: Flags,
    window: u16,
    mss: Option<u16>,
    sack: [Option<(u32, u32)>; 3],
    data: Vec<u8>,
}

impl Line {
    fn new() -> Line {
        let mut stack = stack();
        let interface = stack.add_interface("eth0", [2, 0, 0, 0, 0, 2], 1500, Offload::default()).unwrap();
        stack.set_up(interface, true).unwrap();
        stack.add_address(interface, Prefix { address: OWN.into(), length: 24 }).unwrap();
        stack.set_neighbour(interface, PEER.into(), Some([2, 0, 0, 0, 0, 1])).unwrap();
        let mut line = Line { stack, interface, now: Instant::from_micros(1_000_000) };
        line.stack.advance(line.now);
        line.sent();
        line
    }

    fn put(&mut self, segment: Segment<'_>) {
        let mut header = [0; LARGEST];
        let length = segment.write(&mut header);
        let mut payload = header[..length].to_vec();
        payload.extend_from_slice(segment.payload);
        let head = pseudo(PEER.into(), OWN.into(), 6, payload.len());
        let value = !fold(sum(&payload, head));
        payload[16..18].copy_from_slice(&value.to_be_bytes());
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let total = (payload.len() + 20) as u16;
        let mut ip = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 1, 0, 0, 64, 6, 0, 0];
        ip.extend_from_slice(&PEER.octets());
        ip.extend_from_slice(&OWN.octets());
        let value = !fold(sum(&ip, 0));
        ip[10..12].copy_from_slice(&value.to_be_bytes());
        frame.extend_from_slice(&ip);
        frame.extend_from_slice(&payload);
        self.stack.receive(self.interface, &frame, self.now);
    }

    /// The segments that the stack has sent.
    fn sent(&mut self) -> Vec<Sent> {
        let mut list = Vec::new();
        while let Some(frame) = self.stack.transmit(self.interface) {
            if frame.bytes[12..14] != [8, 0] || frame.bytes[23] != 6 {
                continue;
            }
            let segment = Segment::parse(&frame.bytes[34..]).unwrap();
            list.push(Sent {
                seq: segment.seq,
                ack: segment.ack,
                flags: segment.flags,
                window: segment.window,
                mss: segment.mss,
                sack: segment.sack,
                data: segment.payload.to_vec(),
            });
        }
        list
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self.stack.next_deadline().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.stack.advance(self.now);
        }
        self.now = until;
        self.stack.advance(until);
    }

    fn segment(seq: Seq, ack: Option<Seq>, payload: &[u8]) -> Segment<'_> {
        Segment {
            source_port: 4000,
            destination_port: 80,
            seq,
            ack,
            window: 65535,
            payload,
            ..Segment::default()
        }
    }

    /// A connection that the peer has asked for, its next number and the stack's.
    fn connection(&mut self, sack: bool) -> (SocketId, Seq, Seq) {
        let listener = listener(&mut self.stack, SocketAddr::new(OWN.into(), 80));
        let syn = Flags { syn: true, ..Flags::default() };
        self.put(Segment {
            flags: syn,
            mss: Some(1000),
            sack_permitted: sack,
            ..Line::segment(Seq(100), None, &[])
        });
        let answer = self.sent().pop().unwrap();
        assert!(answer.flags.syn && answer.ack == Some(Seq(101)));
        self.put(Line::segment(Seq(101), Some(answer.seq + 1), &[]));
        let (id, _) = self.stack.accept(listener).unwrap();
        (id, Seq(101), answer.seq + 1)
    }

    /// "Fragmentation needed", about a segment that was sent.
    fn complain(&mut self, seq: Seq, mtu: u16) {
        let [high, low] = mtu.to_be_bytes();
        let mut message = vec![3, 4, 0, 0, 0, 0, high, low];
        message.extend_from_slice(&[0x45, 0, 4, 16, 0, 1, 0x40, 0, 63, 6, 0, 0]);
        message.extend_from_slice(&OWN.octets());
        message.extend_from_slice(&PEER.octets());
        message.extend_from_slice(&[0, 80, 15, 160]);
        message.extend_from_slice(&seq.0.to_be_bytes());
        let value = !fold(sum(&message, 0));
        message[2..4].copy_from_slice(&value.to_be_bytes());
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let mut ip = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 1, 0, 0, 64, 1, 0, 0];
        ip.extend_from_slice(&PEER.octets());
        ip.extend_from_slice(&OWN.octets());
        let value = !fold(sum(&ip, 0));
        ip[10..12].copy_from_slice(&value.to_be_bytes());
        frame.extend_from_slice(&ip);
        frame.extend_from_slice(&message);
        self.stack.receive(self.interface, &frame, self.now);
    }
}

#[test]
fn resets_must_have_the_next_number() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    let reset = Flags { rst: true, ..Flags::default() };
    // In the window, but not exact: it is asked about. Outside: it is nothing.
    line.put(Segment { flags: reset, ..Line::segment(peer + 5, None, &[]) });
    let answers = line.sent();
    assert!(answers.len() == 1 && answers[0].ack == Some(peer) && !answers[0].flags.rst, "{answers:?}");
    line.put(Segment { flags: reset, ..Line::segment(peer - 5, None, &[]) });
    assert!(line.sent().is_empty());
    // A SYN does not end the connection, either.
    let syn = Flags { syn: true, ..Flags::default() };
    line.put(Segment { flags: syn, ..Line::segment(peer + 7, None, &[]) });
    assert_eq!(line.sent().len(), 1);
    assert_eq!(line.stack.state(id), Ok(State::Established));
    // An acknowledgement of what was not sent is answered and does nothing.
    line.put(Line::segment(peer, Some(own + 100), b"x"));
    assert_eq!(line.sent().len(), 1);
    assert_eq!(receive(&mut line.stack, id), Err(Error::WouldBlock));
    line.put(Segment { flags: reset, ..Line::segment(peer, None, &[]) });
    assert_eq!(receive(&mut line.stack, id), Err(Error::ConnectionReset));
    assert_eq!(line.stack.state(id), Ok(State::Closed));
}

#[test]
fn segments_without_a_connection_are_reset() {
    let mut line = Line::new();
    line.put(Line::segment(Seq(5), Some(Seq(77)), b"abc"));
    let answer = line.sent().pop().unwrap();
    assert!(answer.flags.rst && answer.seq == Seq(77) && answer.ack.is_none());
    line.put(Segment {
        flags: Flags { syn: true, ..Flags::default() },
        ..Line::segment(Seq(5), None, b"abc")
    });
    let answer = line.sent().pop().unwrap();
    assert!(answer.flags.rst && answer.seq == Seq(0) && answer.ack == Some(Seq(9)));
    line.put(Segment { flags: Flags { rst: true, ..Flags::default() }, ..Line::segment(Seq(5), None, &[]) });
    assert!(line.sent().is_empty());
}

#[test]
fn acknowledgements_wait_for_company() {
    let mut line = Line::new();
    let (_, peer, own) = line.connection(false);
    let full = pattern(1000, 1);
    line.put(Line::segment(peer, Some(own), &full));
    assert!(line.sent().is_empty());
    line.put(Line::segment(peer + 1000, Some(own), &full));
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 2000));
    line.put(Line::segment(peer + 2000, Some(own), b"x"));
    assert!(line.sent().is_empty());
    line.wait(Duration::from_millis(40));
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 2001));
}

#[test]
fn early_data_is_kept_and_told() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(true);
    let data = pattern(3000, 2);
    line.put(Line::segment(peer + 1000, Some(own), &data[1000..2000]));
    let answer = line.sent().pop().unwrap();
    let range = |start: Seq, end: Seq| Some((start.0, end.0));
    assert_eq!((answer.ack, answer.sack[0]), (Some(peer), range(peer + 1000, peer + 2000)));
    line.put(Line::segment(peer + 2500, Some(own), &data[2500..]));
    let answer = line.sent().pop().unwrap();
    assert_eq!(answer.sack[..2], [range(peer + 2500, peer + 3000), range(peer + 1000, peer + 2000)]);
    line.put(Line::segment(peer + 500, Some(own), &data[500..1200]));
    line.put(Line::segment(peer, Some(own), &data[..600]));
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 2000));
    line.put(Line::segment(peer + 1900, Some(own), &data[1900..2600]));
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 3000));
    assert!(receive(&mut line.stack, id).unwrap() == data);
}

#[test]
fn one_lost_segment_is_sent_once_again() {
    for sack in [false, true] {
        let mut line = Line::new();
        let (id, peer, own) = line.connection(sack);
        let data = pattern(8000, 3);
        line.stack.at(line.now).send(id, &data, None, SendFlags::default()).unwrap();
        let sent = line.sent();
        assert_eq!(sent.len(), 8);
        assert!(sent.iter().enumerate().all(|(at, segment)| segment.seq == own + at * 1000));
        // The second one is lost: the others are told one by one.
        line.put(Line::segment(peer, Some(own + 1000), &[]));
        let mut again = Vec::new();
        for at in 2..8 {
            let range = sack.then(|| ((own + 2000).0, (own + (at + 1) * 1000).0));
            line.put(Segment { sack: [range, None, None], ..Line::segment(peer, Some(own + 1000), &[]) });
            again.extend(line.sent());
        }
        assert_eq!(again.len(), 1, "{again:?}");
        assert_eq!((again[0].seq, &again[0].data[..]), (own + 1000, &data[1000..2000]));
        line.put(Line::segment(peer, Some(own + 8000), &[]));
        line.wait(Duration::from_secs(10));
        assert!(line.sent().is_empty());
        assert_eq!(line.stack.tcp_info(id).unwrap().retransmissions, 1);
    }
}

#[test]
fn retransmissions_back_off() {
    let mut line = Line::new();
    let (id, _, own) = line.connection(false);
    line.stack.at(line.now).send(id, b"data", None, SendFlags::default()).unwrap();
    assert_eq!(line.sent().len(), 1);
    let mut times = Vec::new();
    let began = line.now;
    for _ in 0..40 {
        line.wait(Duration::from_millis(100));
        for segment in line.sent() {
            assert_eq!((segment.seq, &segment.data[..]), (own, &b"data"[..]));
            times.push(line.now.since(began).as_millis());
        }
    }
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(times.len() >= 4 && gaps.windows(2).all(|pair| pair[1] >= pair[0] * 2 - 100), "{times:?}");
}

#[test]
fn small_segments_wait_unless_told_otherwise() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    for byte in [b"a", b"b", b"c"] {
        line.stack.at(line.now).send(id, byte, None, SendFlags::default()).unwrap();
    }
    assert_eq!(line.sent().len(), 1, "Nagle's rule");
    line.put(Line::segment(peer, Some(own + 1), &[]));
    assert_eq!(line.sent().pop().unwrap().data, b"bc");
    line.put(Line::segment(peer, Some(own + 3), &[]));
    line.stack.configure(id, |options| options.no_delay = true).unwrap();
    for byte in [b"a", b"b"] {
        line.stack.at(line.now).send(id, byte, None, SendFlags::default()).unwrap();
    }
    assert_eq!(line.sent().len(), 2);
    line.put(Line::segment(peer, Some(own + 5), &[]));
    // A cork holds back until it is pulled, or for 200 ms.
    line.stack.configure(id, |options| options.cork = true).unwrap();
    line.stack.at(line.now).send(id, b"head", None, SendFlags::default()).unwrap();
    assert!(line.sent().is_empty());
    line.stack.configure(id, |options| options.cork = false).unwrap();
    assert_eq!(line.sent().pop().unwrap().data, b"head");
    line.put(Line::segment(peer, Some(own + 9), &[]));
    line.stack.configure(id, |options| options.cork = true).unwrap();
    line.stack.at(line.now).send(id, b"body", None, SendFlags::default()).unwrap();
    line.wait(Duration::from_millis(199));
    assert!(line.sent().is_empty());
    line.wait(Duration::from_millis(2));
    assert_eq!(line.sent().pop().unwrap().data, b"body");
}

#[test]
fn a_closed_window_is_probed() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.put(Segment { window: 0, ..Line::segment(peer, Some(own), &[]) });
    line.stack.at(line.now).send(id, b"wait", None, SendFlags::default()).unwrap();
    assert!(line.sent().is_empty());
    let mut probes = 0;
    for _ in 0..300 {
        line.wait(Duration::from_secs(1));
        for probe in line.sent() {
            assert!(probe.data.is_empty() && probe.seq == own - 1);
            probes += 1;
            line.put(Segment { window: 0, ..Line::segment(peer, Some(own), &[]) });
        }
    }
    assert!((5..20).contains(&probes), "{probes}");
    assert_eq!(line.stack.state(id), Ok(State::Established));
    line.put(Line::segment(peer, Some(own), &[]));
    assert_eq!(line.sent().pop().unwrap().data, b"wait");
}

#[test]
fn the_own_window_never_shrinks_and_never_overflows() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.stack.configure(id, |options| options.receive_buffer = 4096).unwrap();
    let (mut next, mut edge) = (peer, Seq(0));
    let data = pattern(1000, 1);
    let mut got = 0;
    for round in 0..200 {
        line.put(Line::segment(next, Some(own), &data));
        line.wait(Duration::from_millis(50));
        for segment in line.sent() {
            let ack = segment.ack.unwrap();
            next = ack;
            let told = ack + usize::from(segment.window);
            assert!(edge == Seq(0) || !told.before(edge), "the edge went back");
            edge = told;
        }
        if round % 3 == 2 {
            got += receive(&mut line.stack, id).map_or(0, |bytes| bytes.len());
        }
        assert!(line.stack.memory() <= 256 << 10);
    }
    assert!(got > 50_000, "{got}");
}

#[test]
fn both_ends_close_at_the_same_time() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.stack.at(line.now).shutdown(id, Direction::Write).unwrap();
    let fin = line.sent().pop().unwrap();
    assert!(fin.flags.fin && fin.seq == own);
    let flags = Flags { fin: true, ..Flags::default() };
    line.put(Segment { flags, ..Line::segment(peer, Some(own), &[]) });
    assert_eq!(line.stack.state(id), Ok(State::Closing));
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 1));
    line.put(Line::segment(peer + 1, Some(own + 1), &[]));
    assert_eq!(line.stack.state(id), Ok(State::Closed));
    assert!(line.stack.sockets().iter().any(|info| info.state == State::TimeWait));
    // A FIN that comes again is acknowledged again; a reset does not end TIME_WAIT.
    line.put(Segment { flags, ..Line::segment(peer, Some(own), &[]) });
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 1));
    let reset = Flags { rst: true, ..Flags::default() };
    line.put(Segment { flags: reset, ..Line::segment(peer + 1, None, &[]) });
    assert!(line.stack.sockets().iter().any(|info| info.state == State::TimeWait));
    // A new connection with later numbers may begin.
    let syn = Flags { syn: true, ..Flags::default() };
    line.put(Segment { flags: syn, ..Line::segment(peer + 100_000, None, &[]) });
    let answer = line.sent().pop().unwrap();
    assert!(answer.flags.syn && answer.ack == Some(peer + 100_001));
}

#[test]
fn data_for_a_closed_socket_is_reset() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.stack.at(line.now).close(id);
    assert!(line.sent().pop().unwrap().flags.fin);
    line.put(Line::segment(peer, Some(own + 1), b"late"));
    assert!(line.sent().iter().any(|segment| segment.flags.rst));
    assert!(!line.stack.sockets().iter().any(|info| info.id == Some(id)));
}

#[test]
fn a_peer_that_does_not_end_is_forgotten() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.stack.at(line.now).close(id);
    line.put(Line::segment(peer, Some(own + 1), &[]));
    assert!(line.stack.sockets().iter().any(|info| info.state == State::FinWait2));
    line.wait(Duration::from_secs(61));
    assert!(line.stack.sockets().iter().all(|info| info.state == State::Listen));
}

#[test]
fn ends_that_begin_at_the_same_time_meet() {
    let mut cable = Cable::new(Offload::default(), 1500, 0, 20);
    let here = SocketAddr::new(PEER.into(), 80);
    let mut ids = Vec::new();
    for (at, (own, peer)) in [(here, there(80)), (there(80), here)].into_iter().enumerate() {
        let id = cable.stacks[at].open(Kind::Tcp(Family::V4)).unwrap();
        cable.stacks[at].bind(id, own).unwrap();
        // Both know each other, so that the SYNs cross.
        let mac = [2, 0, 0, 0, 0, 2 - at as u8];
        cable.stacks[at].set_neighbour(cable.interfaces[at], peer.ip(), Some(mac)).unwrap();
        assert_eq!(cable.stacks[at].connect(id, peer), Ok(Connect::Started));
        ids.push(id);
    }
    cable.run(Duration::from_millis(500));
    for (stack, id) in cable.stacks.iter().zip(&ids) {
        assert_eq!(stack.state(*id), Ok(State::Established));
    }
    cable.stacks[0].at(cable.now);
    send(&mut cable.stacks[0], ids[0], b"crossed").unwrap();
    cable.run(Duration::from_millis(100));
    assert_eq!(receive(&mut cable.stacks[1], ids[1]).unwrap(), b"crossed");
}

#[test]
fn a_router_with_a_small_mtu_makes_segments_small() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.stack.at(line.now).send(id, &pattern(1000, 1), None, SendFlags::default()).unwrap();
    let sent = line.sent().pop().unwrap();
    assert_eq!(sent.data.len(), 1000);
    line.complain(own, 600);
    let again = line.sent();
    assert_eq!(again.iter().map(|segment| segment.data.len()).collect::<Vec<_>>(), [560, 440]);
    line.put(Line::segment(peer, Some(own + 1000), &[]));
    assert_eq!(line.stack.queued(id).unwrap().send, 0);
}

#[test]
fn a_router_with_no_believable_mtu_makes_nothing_be_sent_again() {
    let mut line = Line::new();
    let (id, _, own) = line.connection(false);
    line.stack.at(line.now).send(id, &pattern(1000, 1), None, SendFlags::default()).unwrap();
    assert_eq!(line.sent().len(), 1);
    line.complain(own, 100);
    assert_eq!(line.sent().iter().map(|segment| segment.data.len()).sum::<usize>(), 1000);
    for _ in 0..10 {
        line.complain(own, 100);
        assert!(line.sent().is_empty());
    }
}

#[test]
fn a_small_window_that_stays_open_is_used() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    // The largest window was 65535 bytes, so that 100 bytes are not worth a segment of their own.
    line.put(Segment { window: 100, ..Line::segment(peer, Some(own), &[]) });
    let data = pattern(350, 7);
    line.stack.at(line.now).send(id, &data, None, SendFlags::default()).unwrap();
    assert!(line.sent().is_empty());
    let mut got = Vec::new();
    for _ in 0..40 {
        line.wait(Duration::from_millis(100));
        for segment in line.sent().into_iter().filter(|segment| !segment.data.is_empty()) {
            assert_eq!(segment.seq, own + got.len());
            assert!(segment.data.len() <= 100);
            got.extend(segment.data);
            line.put(Segment { window: 100, ..Line::segment(peer, Some(own + got.len()), &[]) });
        }
    }
    assert!(got == data);
    assert_eq!(line.stack.tcp_info(id).unwrap().retransmissions, 0);
}

#[test]
fn a_question_that_comes_again_changes_no_timer() {
    let mut line = Line::new();
    let listener = listener(&mut line.stack, SocketAddr::new(OWN.into(), 80));
    let flags = Flags { syn: true, ..Flags::default() };
    let syn = Segment { flags, mss: Some(1000), ..Line::segment(Seq(100), None, &[]) };
    line.put(syn.clone());
    let own = line.sent().pop().unwrap().seq + 1;
    line.wait(Duration::from_millis(900));
    line.put(syn);
    assert_eq!(line.sent().len(), 1);
    let timer = line.stack.sockets().iter().find(|info| info.state == State::SynReceived).unwrap().timer;
    assert_eq!(timer, Some((Timer::Retransmission, Duration::from_millis(100))));
    // What the acknowledgement is for is not known.
    line.put(Line::segment(Seq(101), Some(own), &[]));
    let (id, _) = line.stack.accept(listener).unwrap();
    assert_eq!(line.stack.tcp_info(id).unwrap().round_trip, 0);
}

#[test]
fn quick_acknowledgements_do_not_wait() {
    let mut line = Line::new();
    let (id, peer, own) = line.connection(false);
    line.put(Line::segment(peer, Some(own), b"x"));
    assert!(line.sent().is_empty());
    line.stack.configure(id, |options| options.quick_ack = Some(true)).unwrap();
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 1));
    line.put(Line::segment(peer + 1, Some(own), b"y"));
    assert_eq!(line.sent().pop().unwrap().ack, Some(peer + 2));
}

#[test]
fn the_largest_segment_is_told() {
    let mut line = Line::new();
    for (wanted, told) in [(None, 1460), (Some(700), 700), (Some(9000), 1460)] {
        let client = line.stack.open(Kind::Tcp(Family::V4)).unwrap();
        line.stack.configure(client, |options| options.maximum_segment = wanted).unwrap();
        line.stack.connect(client, SocketAddr::new(PEER.into(), 4000)).unwrap();
        assert_eq!(line.sent().pop().unwrap().mss, Some(told));
        line.stack.close(client);
        let server = listener(&mut line.stack, SocketAddr::new(OWN.into(), 80));
        line.stack.configure(server, |options| options.maximum_segment = wanted).unwrap();
        line.put(Segment {
            flags: Flags { syn: true, ..Flags::default() },
            ..Line::segment(Seq(100), None, &[])
        });
        assert_eq!(line.sent().pop().unwrap().mss, Some(told));
        line.stack.close(server);
    }
}
