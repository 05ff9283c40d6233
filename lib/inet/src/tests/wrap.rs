//! Connections that carry so much that their sequence numbers wrap.

use crate::flow::Endpoint;
use crate::net::Net;
use crate::path::Wish;
use crate::tcp::connection::Connection;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sequence::Seq;
use crate::*;
use core::net::{IpAddr, Ipv4Addr};

/// An end whose own next number is 1, and the peer's 100.
fn end() -> (Net, Connection) {
    let net = Net::new([7; 32], Limits::default());
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let path = net.path(address, Wish::default()).unwrap();
    let at = |port| Endpoint::new(address, port, path.interface);
    let mut connection = Connection::new(at(80), at(4000), path, Seq(0), net.now);
    let syn = Segment { seq: Seq(99), mss: Some(1000), ..Segment::default() };
    connection.learn(&syn, net.now);
    connection.edge = connection.rcv_nxt + 65535;
    connection.window_seq = syn.seq;
    connection.nxt = Seq(1);
    connection.establish();
    (net, connection)
}

/// A segment of the peer's that acknowledges everything.
fn answer<'a>(connection: &Connection, payload: &'a [u8]) -> Segment<'a> {
    Segment {
        seq: connection.rcv_nxt,
        ack: Some(connection.nxt),
        window: 65535,
        payload,
        ..Segment::default()
    }
}

#[test]
fn an_old_small_segment_holds_nothing_back() {
    let (mut net, mut connection) = end();
    let options = Options::default();
    for _ in 0..3 {
        // As if this much had been sent.
        connection.nxt = connection.nxt + (1 << 30);
        connection.base = connection.nxt;
        let answer = answer(&connection, &[]);
        connection.input(&mut net, &options, &answer);
    }
    let before = connection.nxt;
    connection.write(&mut net, &options, b"tail", SendFlags::default()).unwrap();
    connection.output(&mut net, &options);
    assert_eq!(connection.nxt, before + 4);
}

#[test]
fn an_old_urgent_byte_cuts_nothing_out() {
    for closed in [false, true] {
        let (mut net, mut connection) = end();
        let options = Options::default();
        let mut buffer = [0; 8];
        let flags = Flags { urg: true, ..Flags::default() };
        let segment = Segment { flags, urgent: 2, ..answer(&connection, b"a!b") };
        connection.read_closed = closed;
        connection.input(&mut net, &options, &segment);
        if !closed {
            assert_eq!(connection.read(&mut net, &options, &mut buffer, ReceiveFlags::default()), Ok(1));
            assert!(connection.queued(&options).at_mark);
            assert_eq!(connection.read(&mut net, &options, &mut buffer, ReceiveFlags::default()), Ok(1));
        }
        // After 4 GiB the numbers are the same.
        connection.read_closed = false;
        connection.rcv_nxt = Seq(100);
        connection.edge = Seq(100) + 65535;
        let segment = answer(&connection, b"a.b");
        connection.input(&mut net, &options, &segment);
        assert_eq!(connection.read(&mut net, &options, &mut buffer, ReceiveFlags::default()), Ok(3));
        assert_eq!(&buffer[..3], b"a.b");
    }
}
