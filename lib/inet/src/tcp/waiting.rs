//! TIME_WAIT: what must be known of a connection that has ended on both sides.

use core::time::Duration;

use super::connection::Connection;
use super::output::{TCP, send};
use super::segment::Segment;
use super::sequence::Seq;
use crate::flow::Endpoint;
use crate::net::Net;
use crate::output::Header;
use crate::path::Path;
use crate::time::Instant;
use crate::types::Family;

/// How long it lasts.
pub(crate) const LASTS: Duration = Duration::from_secs(60);

/// A connection in TIME_WAIT.
pub(crate) struct Waiting {
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
    path: Path,
    pub(crate) nxt: Seq,
    rcv_nxt: Seq,
    stamps: bool,
    recent: u32,
    pub(crate) deadline: Instant,
    pub(crate) family: Family,
}

/// What a segment means to a connection in TIME_WAIT.
pub(crate) enum Verdict {
    /// Nothing.
    Ignore,
    /// The peer ends again: TIME_WAIT begins again.
    Restart,
    /// It asks for a connection with newer numbers, which may begin.
    Again,
}

impl Waiting {
    pub(crate) fn new(connection: &Connection, family: Family, now: Instant) -> Waiting {
        Waiting {
            local: connection.local,
            remote: connection.remote,
            path: connection.path,
            nxt: connection.nxt,
            rcv_nxt: connection.rcv_nxt,
            stamps: connection.stamps,
            recent: connection.recent,
            deadline: now + LASTS,
            family,
        }
    }

    pub(crate) fn input(&mut self, net: &mut Net, segment: &Segment<'_>) -> Verdict {
        if segment.flags.rst {
            // A late reset must not end TIME_WAIT (RFC 1337).
            return Verdict::Ignore;
        }
        if segment.flags.syn && segment.ack.is_none() {
            let newer = match segment.stamp {
                Some((stamp, _)) if self.stamps => (stamp.wrapping_sub(self.recent) as i32) > 0,
                _ => false,
            };
            if newer || segment.seq.after(self.rcv_nxt) {
                return Verdict::Again;
            }
        }
        let restart = segment.flags.fin;
        if restart {
            self.deadline = net.now + LASTS;
        }
        if (segment.length() > 0 || segment.seq != self.rcv_nxt) && net.may_answer() {
            let header = Header {
                source: self.local.address,
                destination: self.remote.address,
                protocol: TCP,
                hops: 64,
                traffic_class: 0,
                dont_fragment: true,
            };
            let answer = Segment {
                source_port: self.local.port,
                destination_port: self.remote.port,
                seq: self.nxt,
                ack: Some(self.rcv_nxt),
                stamp: self.stamps.then(|| (net.now.stamp(), self.recent)),
                ..Segment::default()
            };
            send(net, &self.path, &header, &answer, (&[], &[]), None);
        }
        if restart { Verdict::Restart } else { Verdict::Ignore }
    }
}
