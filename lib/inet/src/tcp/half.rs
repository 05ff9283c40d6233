//! Connections that a listener has been asked for: half-open ones, and SYN cookies, which need no
//! memory (RFC 4987).

use core::time::Duration;

use super::connection::{Connection, SCALE};
use super::output::{TCP, send};
use super::segment::{Flags, Segment};
use super::sequence::Seq;
use crate::flow::{Endpoint, FlowKey, words};
use crate::net::Net;
use crate::output::Header;
use crate::path::Path;
use crate::time::Instant;
use crate::types::*;

/// How often a half-open connection's answer is sent again.
pub(crate) const RETRIES: u32 = 5;
/// The first of these times; the others double.
const RETRY: Duration = Duration::from_secs(1);
/// How long a cookie holds, at least and half of the most.
const TICK: u64 = 64_000_000;
/// The segments that a cookie can tell.
const SEGMENTS: [u16; 8] = [216, 536, 1220, 1300, 1400, 1440, 1460, 8960];

/// A half-open connection.
pub(crate) struct Half {
    pub(crate) listener: SocketId,
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
    pub(crate) path: Path,
    pub(crate) iss: Seq,
    pub(crate) irs: Seq,
    mss: Option<u16>,
    /// The largest segment that the listener asks for.
    limit: u16,
    scale: Option<u8>,
    sack: bool,
    /// The peer's time stamp.
    stamp: Option<u32>,
    pub(crate) tries: u32,
    /// The window and the time stamps of the peer's acknowledgement, if it has come and found no
    /// room among the connections that wait to be accepted.
    acknowledged: Option<(u16, Option<(u32, u32)>)>,
    /// When the answer was sent, if it was sent once.
    answered: Option<Instant>,
    pub(crate) deadline: Instant,
    /// Of the listener.
    pub(crate) hops: u8,
    pub(crate) traffic_class: u8,
}

impl Half {
    /// What a SYN asks for.
    pub(crate) fn new(
        listener: SocketId,
        local: Endpoint,
        remote: Endpoint,
        path: Path,
        syn: &Segment<'_>,
        options: &Options,
        now: Instant,
    ) -> Half {
        Half {
            listener,
            local,
            remote,
            path,
            iss: Seq(0),
            irs: syn.seq,
            mss: syn.mss,
            limit: options.maximum_segment.unwrap_or(u16::MAX),
            scale: syn.scale,
            sack: syn.sack_permitted,
            stamp: syn.stamp.map(|stamp| stamp.0),
            tries: 0,
            acknowledged: None,
            answered: None,
            deadline: now + RETRY,
            hops: options.hops,
            traffic_class: options.traffic_class,
        }
    }

    /// Sends the answer, with the given time stamp.
    fn send(&self, net: &mut Net, stamp: u32) {
        let headers = if self.local.address.is_ipv4() { 40 } else { 60 };
        let segment = Segment {
            source_port: self.local.port,
            destination_port: self.remote.port,
            seq: self.iss,
            ack: Some(self.irs + 1),
            flags: Flags { syn: true, ..Flags::default() },
            window: 65535,
            mss: Some(self.path.mtu.saturating_sub(headers).min(self.limit.into()).clamp(64, 65535) as u16),
            scale: self.scale.map(|_| SCALE),
            sack_permitted: self.sack,
            stamp: self.stamp.map(|recent| (stamp, recent)),
            ..Segment::default()
        };
        let header = Header {
            source: self.local.address,
            destination: self.remote.address,
            protocol: TCP,
            hops: self.hops,
            traffic_class: self.traffic_class,
            dont_fragment: true,
        };
        send(net, &self.path, &header, &segment, (&[], &[]), None);
    }

    /// Answers the SYN, for the first time or again. A peer that has acknowledged an answer gets no
    /// other one: what it has sent since then may be lost by that.
    pub(crate) fn answer(&mut self, net: &mut Net) {
        self.deadline = net.now + RETRY * (1 << self.tries.min(6));
        if self.acknowledged.is_none() {
            self.answered = (self.tries == 0).then_some(net.now);
            self.send(net, net.now.stamp());
        }
    }

    /// Keeps an acknowledgement that has found no room.
    pub(crate) fn acknowledge(&mut self, segment: &Segment<'_>) {
        self.acknowledged = Some((segment.window, segment.stamp));
    }

    /// The acknowledgement that has found no room, without its data.
    pub(crate) fn acknowledgement(&self) -> Option<Segment<'static>> {
        let (window, stamp) = self.acknowledged?;
        Some(Segment {
            source_port: self.remote.port,
            destination_port: self.local.port,
            seq: self.irs + 1,
            ack: Some(self.iss + 1),
            window,
            stamp,
            ..Segment::default()
        })
    }

    /// Answers a SYN that came again. When the answer is sent by itself does not change, and which
    /// answer the peer's acknowledgement is for can no longer be told.
    pub(crate) fn answer_again(&mut self, net: &mut Net) {
        self.answered = None;
        self.send(net, net.now.stamp());
    }

    /// Answers with a cookie instead of remembering anything.
    pub(crate) fn answer_by_cookie(mut self, net: &mut Net, flow: &FlowKey) {
        let mss = self.mss.unwrap_or(536);
        let index = SEGMENTS.iter().rposition(|&size| size <= mss).unwrap_or(0);
        self.iss = cookie(flow, self.irs, net.now.micros() / TICK, index as u64, net);
        // The other options return in the lowest bits of the time stamp's echo.
        let bits = u32::from(self.scale.unwrap_or(15)) | u32::from(self.sack) << 4;
        let now = net.now.stamp();
        let stamp = (now & !63) | bits;
        let stamp = if stamp > now { stamp.wrapping_sub(64) } else { stamp };
        if self.stamp.is_none() {
            self.scale = None;
            self.sack = false;
        }
        self.send(net, stamp);
    }

    /// The half-open connection whose cookie a segment brings back; `self` has its two ends.
    pub(crate) fn with_cookie(mut self, segment: &Segment<'_>, net: &Net, flow: &FlowKey) -> Option<Half> {
        self.irs = segment.seq - 1;
        self.iss = segment.ack? - 1;
        let now = net.now.micros() / TICK;
        let age = now.wrapping_sub(u64::from(self.iss.0 >> 27)) & 31;
        let index = self.iss.0 >> 24 & 7;
        let valid =
            age <= 1 && age <= now && cookie(flow, self.irs, now - age, index.into(), net) == self.iss;
        if !valid {
            return None;
        }
        self.mss = Some(SEGMENTS[index as usize]);
        self.scale = None;
        self.sack = false;
        if let Some((stamp, echo)) = segment.stamp {
            self.stamp = Some(stamp);
            self.scale = Some((echo & 15) as u8).filter(|&scale| scale != 15);
            self.sack = echo >> 4 & 1 == 1;
        }
        Some(self)
    }

    /// The connection, when the peer has answered the answer.
    pub(crate) fn complete(&self, now: Instant) -> Connection {
        let mut connection = Connection::new(self.local, self.remote, self.path, self.iss, now);
        connection.hops = self.hops;
        connection.traffic_class = self.traffic_class;
        let syn = Segment {
            seq: self.irs,
            mss: self.mss,
            scale: self.scale,
            sack_permitted: self.sack,
            stamp: self.stamp.map(|stamp| (stamp, 0)),
            ..Segment::default()
        };
        connection.learn(&syn, now);
        connection.edge = connection.rcv_nxt + 65535;
        connection.window_seq = self.irs;
        connection.nxt = self.iss + 1;
        if let Some(answered) = self.answered {
            connection.round_trip.add(now.since(answered));
        }
        connection.establish();
        connection
    }
}

/// The number of a SYN's answer that tells what the SYN said.
fn cookie(flow: &FlowKey, irs: Seq, tick: u64, index: u64, net: &Net) -> Seq {
    let [a, b, c, d, e] = words(flow);
    let hash = net.key.hash(&[a, b, c, d, e, u64::from(irs.0), tick, index]);
    Seq((tick as u32 & 31) << 27 | (index as u32) << 24 | (hash as u32 & 0xff_ffff))
}
