//! What a connection sends, and when.

use core::time::Duration;

use super::connection::{Connection, SCALE};
use super::segment::{Flags, LARGEST, Segment};
use super::sequence::{Ranges, Seq};
use crate::error::Error;
use crate::net::Net;
use crate::output::{Header, Sum};
use crate::path::{Cast, Path, Wish};
use crate::types::*;

/// The protocol's number.
pub(crate) const TCP: u8 = 6;
/// Retransmissions after which a peer is given up, as Linux has it (about 15 minutes).
const RETRIES: u32 = 15;
/// The same for a connection that the program has closed.
const ORPHAN_RETRIES: u32 = 8;
/// The same for the SYN of an end that was asked.
const SYN_ACK_RETRIES: u32 = 5;
/// How long a corked segment waits.
const CORKED: Duration = Duration::from_millis(200);

impl Connection {
    /// Sends the SYN, with its acknowledgement if the peer's has arrived.
    pub(crate) fn send_syn(&mut self, net: &mut Net, options: &Options) {
        let answer = self.state == State::SynReceived;
        let headers = if self.local.address.is_ipv4() { 40 } else { 60 };
        let offer = |peer| !answer || peer;
        let most = options.maximum_segment.map_or(65535, usize::from);
        let segment = Segment {
            seq: self.iss,
            ack: answer.then_some(self.rcv_nxt),
            flags: Flags { syn: true, ..Flags::default() },
            window: 65535,
            mss: Some(self.path.mtu.saturating_sub(headers).min(most).clamp(64, 65535) as u16),
            scale: offer(self.receive_scale > 0).then_some(SCALE),
            sack_permitted: offer(self.sack),
            stamp: offer(self.stamps).then(|| (net.now.stamp(), self.recent)),
            ..Segment::default()
        };
        self.edge = self.rcv_nxt + 65535;
        self.nxt = self.iss + 1;
        self.retransmit_at = Some(net.now + self.round_trip.timeout(self.backoff));
        self.timed = (self.backoff == 0).then_some((self.nxt, net.now));
        self.send_header(net, segment, 0, None);
    }

    /// Sends what may be sent now, and an acknowledgement if one is due.
    pub(crate) fn output(&mut self, net: &mut Net, options: &Options) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            return;
        }
        if self.state == State::Closed {
            if self.ack_now && self.lingering {
                self.send_ack(net, options);
            }
            return;
        }
        if self.path.generation != net.generation {
            self.find_path(net, options);
        }
        let mss = self.segment_size(options);
        self.send_lost(net, options, mss);
        while self.send_new(net, options, mss) {}
        self.arm(net, options);
        if self.ack_now || self.window_opened(options) {
            self.send_ack(net, options);
        }
    }

    /// Bytes of data in a segment that is sent now, at most.
    fn segment_size(&self, options: &Options) -> usize {
        let mss = options.maximum_segment.map_or(usize::MAX, usize::from).min(self.mss());
        mss.saturating_sub(self.option_length()).max(16)
    }

    fn find_path(&mut self, net: &mut Net, options: &Options) {
        let scope = self.remote.interface();
        let wish = Wish { interface: options.interface.or(scope), dont_route: options.dont_route };
        match net.path(self.remote.address, wish) {
            Ok(path) => self.path = path,
            // The connection waits for a route until it times out.
            Err(error) => self.soft_error = Some(error),
        }
    }

    /// Bytes of selective acknowledgements in the next header.
    fn option_length(&self) -> usize {
        match self.early.as_slice().len().min(3) {
            0 => 0,
            _ if !self.sack => 0,
            ranges => 4 + 8 * ranges,
        }
    }

    /// The most that one frame may hold, if the device cuts large segments.
    fn chunk(&self, net: &Net, mss: usize) -> usize {
        let cuts = self.path.cast == Cast::Unicast
            && net.link(self.path.interface).is_some_and(|link| link.public.offload.segmentation);
        if cuts { ((65535 - 120) / mss).max(1) * mss } else { mss }
    }

    /// Sends lost data again.
    fn send_lost(&mut self, net: &mut Net, options: &Options, mss: usize) {
        while let Some((start, end)) = self.congestion.lost(self.una, mss) {
            let pipe = self.congestion.pipe(self.una, self.nxt, mss);
            let Some(recovery) = &mut self.congestion.recovery else { return };
            if !recovery.urgent && pipe + mss.min(end.since(start)) > self.congestion.window {
                return;
            }
            recovery.urgent = false;
            let count = end.since(start).min(mss);
            recovery.next = start + count;
            self.retransmissions += 1;
            self.timed = None;
            self.send_data(net, options, start, count, mss);
        }
    }

    /// Sends a segment of new data, if there is one and it may be sent.
    fn send_new(&mut self, net: &mut Net, options: &Options, mss: usize) -> bool {
        let unsent = self.sending.len() - self.sent();
        let fin = self.fin && !self.fin_sent();
        if unsent == 0 && !fin {
            return false;
        }
        let in_flight = self.nxt.since(self.una);
        if in_flight == 0 && net.now.since(self.sent_at) > self.round_trip.timeout(0) {
            self.congestion.idle(mss);
        }
        let usable = (self.una + self.window).since(self.nxt);
        let pipe = self.congestion.pipe(self.una, self.nxt, mss);
        let room = self.congestion.window.saturating_sub(pipe);
        let most = usable.min(room);
        let mut count = unsent.min(most).min(self.chunk(net, mss));
        if count > mss && count < unsent {
            count -= count % mss;
        }
        let last = count == unsent;
        if count < mss && !last {
            // Small segments only because of a small window: not if a larger one can be expected.
            let by_peer = usable <= room && count * 2 >= self.largest_window;
            let by_network = room < usable;
            if in_flight > 0 || count == 0 || !(by_peer || by_network) {
                return false;
            }
        }
        if last && count < mss && !fin && self.hold_back(net, options, count) {
            return false;
        }
        if count == 0 && !(fin && last) {
            return false;
        }
        if count < mss {
            self.small_end = self.nxt + count;
        }
        let start = self.nxt;
        let whole = self.send_data(net, options, start, count, mss);
        whole && !(fin && last)
    }

    /// Whether a small segment waits: by Nagle's rule for earlier small ones to be acknowledged, or
    /// because the program said so.
    fn hold_back(&mut self, net: &Net, options: &Options, count: usize) -> bool {
        if count == 0 {
            return false;
        }
        if options.cork || self.more {
            if !self.uncorked {
                self.corked.get_or_insert(net.now + CORKED);
            }
            return !self.uncorked;
        }
        self.corked = None;
        !options.no_delay && self.small_end.after(self.una) && self.urgent_out.is_none()
    }

    /// Sends data from `start` on, and the FIN if it comes next. Answers whether the network took
    /// it.
    fn send_data(&mut self, net: &mut Net, options: &Options, start: Seq, count: usize, mss: usize) -> bool {
        let data = count.min(self.fin_seq().since(start));
        let end = start + data;
        let fin = self.fin && end == self.fin_seq();
        let urgent = self
            .urgent_out
            .filter(|urgent| urgent.after(start))
            .map_or(0, |urgent| u16::try_from(urgent.since(start)).unwrap_or(u16::MAX));
        let flags =
            Flags { fin, psh: data > 0 && end == self.fin_seq(), urg: urgent > 0, ..Flags::default() };
        let segment = Segment { seq: start, ack: Some(self.rcv_nxt), flags, urgent, ..Segment::default() };
        let end = end + usize::from(fin);
        if end.after(self.nxt) {
            if self.timed.is_none() && self.congestion.recovery.is_none() {
                self.timed = Some((end, net.now));
            }
            self.nxt = end;
        }
        self.corked = None;
        self.uncorked = false;
        self.sent_at = net.now;
        self.answers |= data > 0 && self.ack_at.is_some();
        self.waiting_since.get_or_insert(net.now);
        if self.retransmit_at.is_none() || start == self.una {
            self.retransmit_at = Some(net.now + self.round_trip.timeout(self.backoff));
        }
        self.advertise(options);
        let cut = (data > mss).then_some(mss as u16);
        self.transmit(net, segment, data, cut)
    }

    /// Sends an acknowledgement without data.
    fn send_ack(&mut self, net: &mut Net, options: &Options) {
        self.advertise(options);
        let segment = Segment { seq: self.nxt, ack: Some(self.rcv_nxt), ..Segment::default() };
        self.transmit(net, segment, 0, None);
    }

    /// Asks the peer for the state of its window, or whether it is there: the number is an old
    /// one, which the peer has to answer.
    fn probe(&mut self, net: &mut Net, options: &Options) {
        self.advertise(options);
        let segment = Segment { seq: self.una - 1, ack: Some(self.rcv_nxt), ..Segment::default() };
        self.transmit(net, segment, 0, None);
    }

    /// Whether the program has read so much that the peer should know.
    fn window_opened(&self, options: &Options) -> bool {
        if !self.may_receive() || self.orphan {
            return false;
        }
        let told = self.edge.since(self.rcv_nxt);
        let edge = self.next_edge(options);
        let more = edge.since(self.edge);
        more >= 2 * self.mss() && (told < options.receive_buffer / 4 || more >= options.receive_buffer / 2)
    }

    /// Whether an acknowledgement would tell of a larger window.
    pub(super) fn window_could_open(&self, options: &Options) -> bool {
        let more = self.next_edge(options).since(self.edge);
        more >= self.mss().min(options.receive_buffer / 2)
    }

    fn next_edge(&self, options: &Options) -> Seq {
        let free = options.receive_buffer.saturating_sub(self.receiving.len());
        let largest = if self.receive_scale > 0 { 65535 << self.receive_scale } else { 65535 };
        self.rcv_nxt + free.min(largest)
    }

    /// Moves the end of the window that is told, if that is worth it; it never goes back.
    fn advertise(&mut self, options: &Options) {
        if self.window_could_open(options) {
            self.edge = self.next_edge(options);
        }
    }

    /// Completes a header with acknowledgement, window and time stamp, and sends it.
    pub(crate) fn transmit(
        &mut self,
        net: &mut Net,
        mut segment: Segment<'_>,
        count: usize,
        cut: Option<u16>,
    ) -> bool {
        let window = self.edge.since(self.rcv_nxt) >> self.receive_scale;
        segment.window = window.min(65535) as u16;
        segment.stamp = self.stamps.then(|| (net.now.stamp(), self.recent));
        if self.sack && !self.early.is_empty() && !segment.flags.rst {
            segment.sack = selective(&self.early, self.latest);
        }
        if !segment.flags.rst {
            self.ack_now = false;
            self.ack_at = None;
            self.acked = self.rcv_nxt;
        }
        self.send_header(net, segment, count, cut)
    }

    fn send_header(
        &mut self,
        net: &mut Net,
        mut segment: Segment<'_>,
        count: usize,
        cut: Option<u16>,
    ) -> bool {
        segment.source_port = self.local.port;
        segment.destination_port = self.remote.port;
        let header = Header {
            source: self.local.address,
            destination: self.remote.address,
            protocol: TCP,
            hops: self.hops,
            traffic_class: self.traffic_class,
            dont_fragment: true,
        };
        let data = match count {
            0 => (&[][..], &[][..]),
            _ => self.sending.pieces(segment.seq.since(self.base), count),
        };
        send(net, &self.path, &header, &segment, data, cut)
    }

    /// Sets the timers for what is in flight or waits.
    fn arm(&mut self, net: &Net, options: &Options) {
        let in_flight = self.nxt.after(self.una);
        let waits = self.sending.len() > self.sent();
        if !in_flight {
            if !waits || self.corked.is_some() {
                self.retransmit_at = None;
                self.waiting_since = None;
            } else if self.retransmit_at.is_none() {
                // The window is closed.
                self.waiting_since.get_or_insert(net.now);
                self.retransmit_at = Some(net.now + self.round_trip.timeout(self.backoff));
            }
        }
        if !waits {
            self.corked = None;
        }
        let kept = options.keep_alive
            && matches!(self.state, State::Established | State::CloseWait | State::FinWait2)
            && !in_flight;
        self.keep_at = kept.then(|| {
            if self.keep_probes == 0 {
                self.heard_at.max(self.sent_at) + options.keep_idle
            } else {
                self.probed_at + options.keep_interval
            }
        });
    }

    /// Does what the timers ask for.
    pub(crate) fn expire(&mut self, net: &mut Net, options: &Options) {
        let now = net.now;
        if self.end_at.is_some_and(|at| at <= now) {
            self.die(None, net);
            return;
        }
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_now = true;
            self.answers = false;
        }
        if self.corked.is_some_and(|at| at <= now) {
            self.corked = None;
            self.uncorked = true;
        }
        if self.retransmit_at.is_some_and(|at| at <= now) {
            self.retransmit(net, options);
        }
        if self.keep_at.is_some_and(|at| at <= now) && self.state != State::Closed {
            let timed_out = options.user_timeout.is_some_and(|most| now.since(self.heard_at) >= most);
            if self.keep_probes >= options.keep_count || timed_out && self.keep_probes > 0 {
                let nxt = self.nxt;
                self.reset(net, nxt);
                let error = self.soft_error.unwrap_or(Error::TimedOut);
                self.die(Some(error), net);
                return;
            }
            self.keep_probes += 1;
            self.probed_at = now;
            self.probe(net, options);
        }
    }

    /// The retransmission timer has run out.
    fn retransmit(&mut self, net: &mut Net, options: &Options) {
        let retries = match self.state {
            State::SynSent => options.syn_retries,
            State::SynReceived => SYN_ACK_RETRIES,
            _ if self.orphan => ORPHAN_RETRIES,
            _ => RETRIES,
        };
        let waited = self.waiting_since.map_or(Duration::ZERO, |since| net.now.since(since));
        let late = options.user_timeout.is_some_and(|most| waited >= most && !most.is_zero());
        let silent = net.now.since(self.heard_at) >= self.round_trip.timeout(self.backoff);
        // A peer that keeps its window closed cannot hold a connection that no program has any
        // more.
        if self.backoff >= retries && (silent || self.orphan) || late {
            let error = self.soft_error.unwrap_or(Error::TimedOut);
            self.die(Some(error), net);
            return;
        }
        self.backoff += 1;
        match self.state {
            State::SynSent | State::SynReceived => {
                self.retransmissions += 1;
                self.send_syn(net, options);
            }
            _ if self.nxt == self.una => {
                let mss = self.segment_size(options);
                let count = (self.sending.len() - self.sent()).min(self.window).min(mss);
                if count > 0 {
                    // The window is small and stays so: it is used (RFC 1122, 4.2.3.4).
                    self.backoff = 0;
                    if count < mss {
                        self.small_end = self.nxt + count;
                    }
                    let start = self.nxt;
                    self.send_data(net, options, start, count, mss);
                } else {
                    self.probe(net, options);
                    self.retransmit_at = Some(net.now + self.round_trip.timeout(self.backoff));
                }
            }
            _ => {
                let mss = self.mss();
                self.timed = None;
                self.congestion.timed_out(self.una, self.nxt, mss, self.backoff > 1);
                self.retransmit_at = Some(net.now + self.round_trip.timeout(self.backoff));
            }
        }
    }
}

/// Sends a segment.
pub(crate) fn send(
    net: &mut Net,
    path: &Path,
    header: &Header,
    segment: &Segment<'_>,
    data: (&[u8], &[u8]),
    cut: Option<u16>,
) -> bool {
    let mut bytes = [0; LARGEST];
    let length = segment.write(&mut bytes);
    let mut packet = net.begin(header);
    packet.extend_from_slice(&bytes[..length]);
    packet.extend_from_slice(data.0);
    packet.extend_from_slice(data.1);
    net.send_segments(path, header, packet, Sum::At(16), cut).is_ok()
}

/// The ranges that are told to the peer: the latest first (RFC 2018).
fn selective(early: &Ranges, latest: Option<(Seq, Seq)>) -> [Option<(u32, u32)>; 3] {
    let ranges = early.as_slice();
    let latest = latest
        .and_then(|latest| ranges.iter().find(|range| !latest.0.before(range.0) && !latest.1.after(range.1)));
    let others = ranges.iter().filter(|range| Some(*range) != latest);
    let mut told = latest.into_iter().chain(others).map(|range| (range.0.0, range.1.0));
    core::array::from_fn(|_| told.next())
}
