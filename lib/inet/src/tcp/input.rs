//! What a connection does with a segment (RFC 9293, 3.10.7; RFC 5961; RFC 7323).

use super::connection::{Connection, DELAYED};
use super::segment::{Flags, Segment};
use super::sequence::Seq;
use crate::error::Error;
use crate::net::Net;
use crate::types::*;

/// A time stamp of the peer's is not compared if it is older (RFC 7323).
const STAMP_AGE: core::time::Duration = core::time::Duration::from_secs(24 * 24 * 3600);

impl Connection {
    /// Takes a segment of this connection.
    pub(crate) fn input(&mut self, net: &mut Net, options: &Options, segment: &Segment<'_>) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.answered(net, options, segment),
            _ => self.synchronized(net, options, segment),
        }
    }

    /// In SYN_SENT.
    fn answered(&mut self, net: &mut Net, options: &Options, segment: &Segment<'_>) {
        if let Some(ack) = segment.ack
            && (!ack.after(self.iss) || ack.after(self.nxt))
        {
            if !segment.flags.rst {
                self.reset(net, ack);
            }
            return;
        }
        if segment.flags.rst {
            if segment.ack.is_some() {
                self.die(Some(Error::ConnectionRefused), net);
            }
            return;
        }
        if !segment.flags.syn {
            return;
        }
        self.learn(segment, net.now);
        self.heard_at = net.now;
        self.window = segment.window.into();
        self.largest_window = self.window;
        self.window_seq = segment.seq;
        if let Some(ack) = segment.ack {
            self.measure(net, segment, ack);
            self.window_ack = ack;
            self.establish();
            self.ack_now = true;
        } else {
            // Both ends have begun.
            self.state = State::SynReceived;
            self.send_syn(net, options);
        }
    }

    fn synchronized(&mut self, net: &mut Net, options: &Options, segment: &Segment<'_>) {
        let mut segment = segment.clone();
        if self.state == State::SynReceived && segment.flags.syn && segment.seq + 1 == self.rcv_nxt {
            // The answer to the own SYN, when both ends have begun.
            segment.flags.syn = false;
            segment.seq = segment.seq + 1;
        }
        let segment = &segment;
        // A peer that stops sending time stamps is wrong, but its data is not.
        if let Some((stamp, _)) = segment.stamp
            && self.stamps
            && !segment.flags.rst
            && (stamp.wrapping_sub(self.recent) as i32) < 0
            && net.now.since(self.recent_at) < STAMP_AGE
        {
            self.challenge(net);
            return;
        }
        if !self.acceptable(segment) {
            // A probe of an idle peer and a segment that was sent twice are answered.
            if !segment.flags.rst {
                self.challenge(net);
                // What it acknowledges holds nevertheless, if only its data is old.
                if let Some(ack) = segment.ack
                    && segment.seq.before(self.rcv_nxt)
                    && self.state != State::SynReceived
                    && ack.after(self.una)
                    && !ack.after(self.nxt)
                {
                    self.acknowledge(net, options, segment, ack);
                }
            }
            return;
        }
        if segment.flags.rst {
            if segment.seq != self.rcv_nxt {
                self.challenge(net);
                return;
            }
            let error = match self.state {
                State::SynReceived => Error::ConnectionRefused,
                State::CloseWait => Error::BrokenPipe,
                _ => Error::ConnectionReset,
            };
            let ended = matches!(self.state, State::Closing | State::LastAck);
            self.die((!ended).then_some(error), net);
            return;
        }
        if segment.flags.syn {
            self.challenge(net);
            return;
        }
        let Some(ack) = segment.ack else { return };
        if ack.after(self.nxt) || ack.before(self.una - self.largest_window.max(1 << 16)) {
            if self.state == State::SynReceived {
                self.reset(net, ack);
            } else {
                self.challenge(net);
            }
            return;
        }
        if self.state == State::SynReceived {
            if !ack.after(self.iss) {
                return;
            }
            self.measure(net, segment, ack);
            self.establish();
            self.tell_window(segment, ack);
        }
        self.heard_at = net.now;
        self.keep_probes = 0;
        self.acknowledge(net, options, segment, ack);
        if self.state == State::Closed || self.lingering {
            return;
        }
        if let Some((stamp, _)) = segment.stamp
            && self.stamps
            && !segment.seq.after(self.acked)
            && !(segment.seq + segment.length()).before(self.acked)
        {
            self.recent = stamp;
            self.recent_at = net.now;
        }
        if segment.flags.urg && self.may_receive() && segment.urgent > 0 {
            let urgent = segment.seq + usize::from(segment.urgent) - 1;
            if !urgent.before(self.rcv_nxt) && self.urgent_in.is_none_or(|old| urgent.after(old)) {
                self.urgent_in = Some(urgent);
                self.urgent_read = false;
                self.changed = true;
            }
        }
        if !segment.payload.is_empty() {
            self.data(net, options, segment);
        }
        if segment.flags.fin && self.fin_in.is_none() && self.state != State::Closed {
            let fin = segment.seq + segment.payload.len();
            if !fin.after(self.edge) && !fin.before(self.rcv_nxt) {
                self.fin_in = Some(fin);
                self.ack_now = true;
            }
        }
        self.take_fin(net);
    }

    /// Whether a segment is in the window.
    fn acceptable(&self, segment: &Segment<'_>) -> bool {
        let end = segment.seq + segment.length();
        let window = self.edge.since(self.rcv_nxt);
        if segment.length() == 0 {
            return if window == 0 {
                segment.seq == self.rcv_nxt
            } else {
                !segment.seq.before(self.rcv_nxt) && segment.seq.before(self.edge)
                    || segment.seq == self.rcv_nxt
            };
        }
        // With a closed window a segment is acceptable for what it acknowledges if it is the next
        // one; its data is not taken.
        if window == 0 {
            return segment.seq == self.rcv_nxt;
        }
        segment.seq.before(self.edge) && end.after(self.rcv_nxt)
    }

    /// The peer sends something that is out of order: it is told the state of this end, but not
    /// too often.
    fn challenge(&mut self, net: &mut Net) {
        if net.may_answer() {
            self.ack_now = true;
        }
    }

    /// Takes the acknowledgement, the window and the selective acknowledgements.
    fn acknowledge(&mut self, net: &mut Net, options: &Options, segment: &Segment<'_>, ack: Seq) {
        let mss = self.mss();
        let was_writable = self.writable(options);
        let window_before = self.window;
        self.tell_window(segment, ack);
        if self.sack {
            for (start, end) in segment.sack.iter().flatten() {
                self.congestion.selective(Seq(*start), Seq(*end), self.una.max(ack), self.nxt);
            }
        }
        if ack.after(self.una) {
            let acked = ack.since(self.una);
            // The window was the limit if there was no room for another segment.
            let limited = self.congestion.pipe(self.una, self.nxt, mss) + mss >= self.congestion.window;
            self.measure(net, segment, ack);
            let data = ack.since(self.base).min(self.sending.len());
            self.sending.consume(data);
            self.base = self.base + data;
            self.bytes_acked += data as u64;
            self.una = ack;
            // Numbers are compared with these only while they are less than 2^31 apart.
            self.small_end = self.small_end.max(ack);
            self.nxt = self.nxt.max(ack);
            self.backoff = 0;
            self.soft_error = None;
            self.congestion.acknowledged(ack, acked, mss, limited);
            let flying = self.nxt.after(self.una);
            self.waiting_since = flying.then_some(net.now);
            self.retransmit_at = flying.then(|| net.now + self.round_trip.timeout(0));
            if self.urgent_out.is_some_and(|urgent| !urgent.after(ack)) {
                self.urgent_out = None;
            }
            if self.sending.len() == 0 && net.is_short(self.owner) {
                net.shrink(self.sending.release(), self.owner);
            }
            if self.fin && ack.after(self.fin_seq()) {
                self.fin_acknowledged(net, options);
                self.changed = true;
            }
        } else if ack == self.una && self.nxt.after(self.una) {
            if segment.payload.is_empty() && !segment.flags.fin && self.window == window_before {
                self.congestion.duplicates += 1;
            }
        } else if self.nxt == self.una && window_before == 0 && self.window > 0 {
            // A window has opened.
            self.backoff = 0;
            self.retransmit_at = None;
        }
        if self.nxt.after(self.una) {
            self.congestion.check(self.una, self.nxt, mss);
        }
        if !was_writable && self.writable(options) {
            self.changed = true;
        }
    }

    fn tell_window(&mut self, segment: &Segment<'_>, ack: Seq) {
        let newer = segment.seq.after(self.window_seq)
            || segment.seq == self.window_seq && !ack.before(self.window_ack);
        if !newer || ack.before(self.una) {
            return;
        }
        self.window = usize::from(segment.window) << self.send_scale;
        // The window counts from the acknowledgement on, which may be new.
        self.window_seq = segment.seq;
        self.window_ack = ack;
        self.largest_window = self.largest_window.max(self.window);
    }

    /// Takes the round trip time that an acknowledgement tells.
    fn measure(&mut self, net: &Net, segment: &Segment<'_>, ack: Seq) {
        if let Some((timed, since)) = self.timed {
            if !ack.before(timed) {
                self.round_trip.add(net.now.since(since));
                self.timed = None;
            }
        } else if self.stamps
            && let Some((_, echo)) = segment.stamp
            && echo != 0
        {
            let millis = net.now.stamp().wrapping_sub(echo);
            if millis < 1 << 20 {
                self.round_trip.add(core::time::Duration::from_millis(millis.into()));
            }
        }
    }

    fn fin_acknowledged(&mut self, net: &mut Net, options: &Options) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.orphan {
                    self.end_at = Some(net.now + options.linger2);
                }
            }
            State::Closing => self.linger(net),
            State::LastAck => self.die(None, net),
            _ => {}
        }
    }

    /// Both ends have finished: the connection goes to TIME_WAIT.
    fn linger(&mut self, net: &mut Net) {
        let ack_now = self.ack_now;
        self.lingering = true;
        self.die(None, net);
        self.ack_now = ack_now;
    }

    /// Takes the data of a segment that is in the window.
    fn data(&mut self, net: &mut Net, options: &Options, segment: &Segment<'_>) {
        if !self.may_receive() || self.fin_in.is_some_and(|fin| !segment.seq.before(fin)) {
            return;
        }
        if self.orphan {
            // No program will read it: the peer has to know.
            let reset_at = self.nxt;
            self.reset(net, reset_at);
            self.die(Some(Error::ConnectionReset), net);
            return;
        }
        let skip = self.rcv_nxt.since(segment.seq);
        let Some(data) = segment.payload.get(skip..) else {
            self.ack_now = true;
            return;
        };
        let start = segment.seq + skip;
        let data = &data[..data.len().min(self.edge.since(start))];
        if data.is_empty() {
            self.ack_now = true;
            return;
        }
        let offset = self.receiving.len() + start.since(self.rcv_nxt);
        let growth = self.receiving.growth(offset + data.len());
        if growth > 0 && !net.grow(growth, self.owner) {
            // The peer sends it again; perhaps there is memory then.
            self.ack_now = true;
            return;
        }
        self.receiving.reserve(offset + data.len());
        let end = start + data.len();
        if start != self.rcv_nxt {
            if let Some(range) = self.early.insert(start, end) {
                self.receiving.write(offset, data);
                self.latest = Some(range);
            }
            self.ack_now = true;
            return;
        }
        self.receiving.write(offset, data);
        let mut reached = end;
        if !self.early.is_empty() {
            self.early.trim(reached);
            if let Some(first) = self.early.first()
                && first.0 == reached
            {
                reached = first.1;
                self.early.trim(reached);
            }
            // Holes are filled: the sender waits for that news.
            self.ack_now = true;
        }
        let count = reached.since(self.rcv_nxt);
        self.receiving.extend(count);
        self.rcv_nxt = reached;
        self.bytes_received += count as u64;
        self.changed = true;
        if self.read_closed {
            let length = self.receiving.len();
            self.receiving.consume(length);
            self.forget_urgent();
        }
        // Every second full segment is acknowledged, and one after which the peer can send no other
        // one if there is room for it; others wait for company.
        let waiting = self.rcv_nxt.since(self.acked);
        let room = self.edge.since(self.rcv_nxt);
        let stuck = room < 2 * self.mss() && self.window_could_open(options);
        if waiting >= 2 * self.mss() || stuck || options.quick_ack == Some(true) {
            self.ack_now = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(net.now + DELAYED);
        }
    }

    /// Takes the peer's FIN, if everything before it has arrived.
    fn take_fin(&mut self, net: &mut Net) {
        if self.fin_in != Some(self.rcv_nxt) {
            return;
        }
        self.rcv_nxt = self.rcv_nxt + 1;
        self.ack_now = true;
        self.answers = true;
        self.changed = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.linger(net),
            _ => {}
        }
    }

    /// Sends a reset with the given number.
    pub(crate) fn reset(&mut self, net: &mut Net, seq: Seq) {
        let segment = Segment {
            seq,
            ack: Some(self.rcv_nxt),
            flags: Flags { rst: true, ..Flags::default() },
            ..Segment::default()
        };
        self.transmit(net, segment, 0, None);
    }
}
