//! A connection: its state, and what programs do with it.

use core::time::Duration;

use super::congestion::{Congestion, RoundTrip};
use super::segment::Segment;
use super::sequence::{Ranges, Seq};
use crate::error::{Error, Result};
use crate::flow::Endpoint;
use crate::net::Net;
use crate::path::Path;
use crate::ring::Ring;
use crate::time::Instant;
use crate::types::*;

/// Windows are told in units of 128 bytes, so that they reach 8 MiB.
pub(crate) const SCALE: u8 = 7;
/// What a peer takes that does not say how large its segments may be (RFC 9293).
pub(crate) const DEFAULT_MSS: u16 = 536;
/// An acknowledgement waits this long for data or another segment.
pub(crate) const DELAYED: Duration = Duration::from_millis(40);

/// One end of a connection, from SYN_SENT or ESTABLISHED on. TIME_WAIT is not among its states:
/// see [`super::waiting`].
pub(crate) struct Connection {
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
    pub(crate) path: Path,
    /// The user to whose share the buffers count.
    pub(crate) owner: u32,
    pub(crate) state: State,

    /// The number of the own SYN.
    pub(crate) iss: Seq,
    /// The oldest number that is not acknowledged.
    pub(crate) una: Seq,
    /// The number after the last one that was sent.
    pub(crate) nxt: Seq,
    /// The number of the first byte of `sending`.
    pub(crate) base: Seq,
    /// Data that is not acknowledged, then data that is not sent.
    pub(crate) sending: Ring,
    /// The peer's window from `una` on.
    pub(crate) window: usize,
    pub(crate) largest_window: usize,
    /// The segment that told the window.
    pub(crate) window_seq: Seq,
    pub(crate) window_ack: Seq,
    pub(crate) send_scale: u8,
    /// The largest segment that the peer takes.
    pub(crate) peer_mss: u16,
    /// The program sends no more.
    pub(crate) fin: bool,
    /// The end of the last segment that was smaller than others.
    pub(crate) small_end: Seq,
    /// The number after urgent data.
    pub(crate) urgent_out: Option<Seq>,
    /// Segments that are not full wait until this moment.
    pub(crate) corked: Option<Instant>,
    /// Segments have waited long enough to become full.
    pub(crate) uncorked: bool,
    /// The program has said that more follows.
    pub(crate) more: bool,

    /// The next number that is expected.
    pub(crate) rcv_nxt: Seq,
    pub(crate) receiving: Ring,
    /// Data that came early.
    pub(crate) early: Ranges,
    /// The early data that came last.
    pub(crate) latest: Option<(Seq, Seq)>,
    /// The end of the window that was told.
    pub(crate) edge: Seq,
    pub(crate) receive_scale: u8,
    /// The number of the peer's FIN, if it has arrived.
    pub(crate) fin_in: Option<Seq>,
    pub(crate) stamps: bool,
    pub(crate) sack: bool,
    /// The peer's time stamp, to be echoed, and when it came.
    pub(crate) recent: u32,
    pub(crate) recent_at: Instant,
    /// What was acknowledged last.
    pub(crate) acked: Seq,
    /// The number of the urgent byte.
    pub(crate) urgent_in: Option<Seq>,
    /// The urgent byte was read.
    pub(crate) urgent_read: bool,

    pub(crate) congestion: Congestion,
    pub(crate) round_trip: RoundTrip,
    /// A number whose acknowledgement is timed, and since when.
    pub(crate) timed: Option<(Seq, Instant)>,
    pub(crate) backoff: u32,
    /// When the peer was last sent data.
    pub(crate) sent_at: Instant,
    /// When the peer was last heard of.
    pub(crate) heard_at: Instant,
    /// Since when data waits for an acknowledgement.
    pub(crate) waiting_since: Option<Instant>,
    /// An acknowledgement is due in any case.
    pub(crate) ack_now: bool,

    /// Send again, or probe a window.
    pub(crate) retransmit_at: Option<Instant>,
    pub(crate) ack_at: Option<Instant>,
    /// The program answers what it receives: an acknowledgement went with data, or the peer has
    /// ended.
    pub(crate) answers: bool,
    pub(crate) keep_at: Option<Instant>,
    /// Probes without an answer.
    pub(crate) keep_probes: u32,
    /// When the last of them was sent.
    pub(crate) probed_at: Instant,
    /// Hop limit and traffic class of packets.
    pub(crate) hops: u8,
    pub(crate) traffic_class: u8,
    /// When a connection ends that the program has closed, and the peer has not.
    pub(crate) end_at: Option<Instant>,
    /// When the stack calls [`Connection::expire`].
    pub(crate) scheduled: Option<Instant>,

    pub(crate) read_closed: bool,
    /// The program has read up to the peer's FIN.
    pub(crate) end_read: bool,
    /// The program has closed the socket.
    pub(crate) orphan: bool,
    /// The caller of the stack waits for what was sent to be acknowledged: the socket stays known
    /// until it is closed once more.
    pub(crate) awaited: bool,
    pub(crate) error: Option<Error>,
    /// What a router said, which is the error if the connection times out.
    pub(crate) soft_error: Option<Error>,
    /// The listener whose queue holds this connection.
    pub(crate) parent: Option<SocketId>,
    /// Readiness may have changed.
    pub(crate) changed: bool,
    /// This end is in TIME_WAIT: the stack replaces it.
    pub(crate) lingering: bool,

    pub(crate) retransmissions: u32,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
}

impl Connection {
    /// An end that has sent and received nothing.
    pub(crate) fn new(local: Endpoint, remote: Endpoint, path: Path, iss: Seq, now: Instant) -> Connection {
        Connection {
            local,
            remote,
            path,
            owner: 0,
            state: State::Closed,
            iss,
            una: iss,
            nxt: iss,
            base: iss + 1,
            sending: Ring::default(),
            window: 0,
            largest_window: 0,
            window_seq: Seq(0),
            window_ack: iss,
            send_scale: 0,
            peer_mss: DEFAULT_MSS,
            fin: false,
            small_end: iss,
            urgent_out: None,
            corked: None,
            uncorked: false,
            more: false,
            rcv_nxt: Seq(0),
            receiving: Ring::default(),
            early: Ranges::default(),
            latest: None,
            edge: Seq(0),
            receive_scale: 0,
            fin_in: None,
            stamps: false,
            sack: false,
            recent: 0,
            recent_at: now,
            acked: Seq(0),
            urgent_in: None,
            urgent_read: false,
            congestion: Congestion::new(iss),
            round_trip: RoundTrip::default(),
            timed: None,
            backoff: 0,
            sent_at: now,
            heard_at: now,
            waiting_since: None,
            ack_now: false,
            retransmit_at: None,
            ack_at: None,
            answers: false,
            keep_at: None,
            keep_probes: 0,
            probed_at: now,
            hops: 64,
            traffic_class: 0,
            end_at: None,
            scheduled: None,
            read_closed: false,
            end_read: false,
            orphan: false,
            awaited: false,
            error: None,
            soft_error: None,
            parent: None,
            changed: false,
            lingering: false,
            retransmissions: 0,
            bytes_acked: 0,
            bytes_received: 0,
        }
    }

    /// Takes what the peer's SYN says.
    pub(crate) fn learn(&mut self, syn: &Segment<'_>, now: Instant) {
        self.rcv_nxt = syn.seq + 1;
        self.acked = self.rcv_nxt;
        self.edge = self.rcv_nxt;
        self.peer_mss = syn.mss.unwrap_or(DEFAULT_MSS).max(64);
        self.sack = syn.sack_permitted;
        if let Some(scale) = syn.scale {
            self.send_scale = scale;
            self.receive_scale = SCALE;
        }
        if let Some((stamp, _)) = syn.stamp {
            self.stamps = true;
            self.recent = stamp;
            self.recent_at = now;
        }
        let mss = self.mss();
        self.congestion.start(mss);
    }

    /// The connection has been made.
    pub(crate) fn establish(&mut self) {
        self.state = State::Established;
        self.una = self.iss + 1;
        self.nxt = self.nxt.max(self.una);
        self.backoff = 0;
        self.retransmit_at = None;
        self.waiting_since = None;
        self.congestion.recovery = None;
        self.changed = true;
    }

    /// Bytes of data in a full segment.
    pub(crate) fn mss(&self) -> usize {
        let headers = if self.local.address.is_ipv4() { 40 } else { 60 };
        let fits = self.path.mtu.saturating_sub(headers).min(self.peer_mss.into());
        fits.saturating_sub(if self.stamps { 12 } else { 0 }).max(32)
    }

    /// Bytes of `sending` that have been sent.
    pub(crate) fn sent(&self) -> usize {
        self.nxt.since(self.base).min(self.sending.len())
    }

    /// The number of the own FIN, when all data is there.
    pub(crate) fn fin_seq(&self) -> Seq {
        self.base + self.sending.len()
    }

    /// The own FIN has been sent.
    pub(crate) fn fin_sent(&self) -> bool {
        self.fin && self.nxt.after(self.fin_seq())
    }

    /// Both ends have finished the handshake, and this one may send.
    pub(crate) fn may_send(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait) && !self.fin
    }

    /// Data may still arrive.
    pub(crate) fn may_receive(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    fn connecting(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// Ends the connection without a word to the peer. Received data stays readable.
    pub(crate) fn die(&mut self, error: Option<Error>, net: &mut Net) {
        self.state = State::Closed;
        if error.is_some() {
            self.error = error;
        }
        net.shrink(self.sending.capacity(), self.owner);
        self.sending = Ring::default();
        self.early.clear();
        self.retransmit_at = None;
        self.ack_at = None;
        self.keep_at = None;
        self.end_at = None;
        self.ack_now = false;
        self.changed = true;
    }

    /// Gives back the memory of buffers that are empty.
    pub(crate) fn release_empty(&mut self, net: &mut Net) {
        if self.sending.len() == 0 {
            net.shrink(self.sending.release(), self.owner);
        }
        if self.receiving.len() == 0 && self.early.is_empty() {
            net.shrink(self.receiving.release(), self.owner);
        }
    }

    /// Gives back all memory of buffers.
    pub(crate) fn release(&mut self, net: &mut Net) {
        net.shrink(self.sending.capacity() + self.receiving.capacity(), self.owner);
        self.sending = Ring::default();
        self.receiving = Ring::default();
    }

    /// Takes data of the program, as much as there is room for.
    pub(crate) fn write(
        &mut self,
        net: &mut Net,
        options: &Options,
        data: &[u8],
        flags: SendFlags,
    ) -> Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.connecting() {
            return Err(Error::WouldBlock);
        }
        if !self.may_send() {
            return Err(Error::BrokenPipe);
        }
        let queued = self.sending.len();
        let room = options.send_buffer.saturating_sub(queued);
        let mut count = room.min(data.len());
        if count == 0 && !data.is_empty() {
            return Err(Error::WouldBlock);
        }
        let growth = self.sending.growth(queued + count);
        if growth > 0 && !net.grow(growth, self.owner) {
            // What is allocated is used.
            count = count.min(self.sending.capacity() - queued);
            if count == 0 {
                return Err(Error::NoBufferSpace);
            }
        }
        self.sending.reserve(queued + count);
        self.sending.write(queued, &data[..count]);
        self.sending.extend(count);
        self.more = flags.more;
        if flags.urgent && count == data.len() && count > 0 {
            self.urgent_out = Some(self.base + self.sending.len());
        }
        Ok(count)
    }

    /// Bytes that a program can read before urgent data, which stays out of the stream.
    fn readable(&self, options: &Options) -> (usize, bool) {
        let length = self.receiving.len();
        let first = self.rcv_nxt_of_data() - length;
        match self.urgent_in {
            Some(urgent) if !urgent.before(first) && urgent.since(first) < length => {
                match urgent.since(first) {
                    // At the mark: the urgent byte is skipped if it is not part of the stream.
                    0 if options.urgent_inline => (length, false),
                    0 => (length - 1, true),
                    before => (before, false),
                }
            }
            _ => (length, false),
        }
    }

    /// The number after the last byte of data, without the peer's FIN.
    fn rcv_nxt_of_data(&self) -> Seq {
        match self.fin_in {
            Some(fin) if self.rcv_nxt.after(fin) => fin,
            _ => self.rcv_nxt,
        }
    }

    /// Gives data to the program.
    pub(crate) fn read(
        &mut self,
        net: &mut Net,
        options: &Options,
        buffer: &mut [u8],
        flags: ReceiveFlags,
    ) -> Result<usize> {
        if flags.urgent {
            return self.read_urgent(options, buffer, flags.peek);
        }
        let (count, skip) = self.readable(options);
        if count == 0 && !(skip && self.receiving.len() == 1 && self.at_end()) {
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if self.at_end() || self.read_closed {
                self.end_read |= !flags.peek && self.has_fin();
                return Ok(0);
            }
            return Err(match self.state {
                State::SynSent | State::SynReceived => Error::WouldBlock,
                State::Closed => Error::NotConnected,
                _ => Error::WouldBlock,
            });
        }
        let skipped = usize::from(skip);
        let count = count.min(buffer.len());
        if !flags.discard {
            self.receiving.copy(skipped, &mut buffer[..count]);
        }
        if !flags.peek {
            self.receiving.consume(count + skipped);
            self.forget_urgent();
            self.end_read |= count < buffer.len() && self.receiving.len() == 0 && self.has_fin();
            if self.receiving.len() == 0
                && self.early.is_empty()
                && (net.is_short(self.owner) || self.at_end())
            {
                net.shrink(self.receiving.release(), self.owner);
            }
        }
        Ok(count)
    }

    /// Forgets an urgent byte that the program has gone past, so that a later byte with the same
    /// number is not taken for it.
    pub(crate) fn forget_urgent(&mut self) {
        let first = self.rcv_nxt_of_data() - self.receiving.len();
        self.urgent_in = self.urgent_in.filter(|urgent| !urgent.before(first));
    }

    /// The peer's FIN has been received, and all data before it.
    fn has_fin(&self) -> bool {
        self.fin_in.is_some_and(|fin| self.rcv_nxt.after(fin))
    }

    /// The numbers between what the program has read and what was received: bytes, and the peer's
    /// FIN.
    pub(crate) fn received(&self) -> usize {
        self.receiving.len() + usize::from(self.has_fin() && !self.end_read)
    }

    /// The numbers that were queued to be sent and are not acknowledged: bytes, and a SYN or FIN.
    pub(crate) fn unacknowledged(&self) -> usize {
        let is_one = matches!(self.state, State::SynSent | State::FinWait1 | State::Closing | State::LastAck);
        self.sending.len() + usize::from(is_one)
    }

    /// All data of the peer has been received.
    pub(crate) fn at_end(&self) -> bool {
        self.has_fin() || (self.state == State::Closed && self.error.is_none())
    }

    fn read_urgent(&mut self, options: &Options, buffer: &mut [u8], peek: bool) -> Result<usize> {
        let Some(urgent) = self.urgent_in.filter(|_| !options.urgent_inline && !self.urgent_read) else {
            return Err(Error::InvalidArgument);
        };
        let first = self.rcv_nxt_of_data() - self.receiving.len();
        if urgent.before(first) {
            return Err(Error::InvalidArgument);
        }
        if !urgent.before(self.rcv_nxt_of_data()) {
            return Err(Error::WouldBlock);
        }
        let Some(byte) = buffer.first_mut() else { return Ok(0) };
        self.receiving.copy(urgent.since(first), core::slice::from_mut(byte));
        self.urgent_read |= !peek;
        Ok(1)
    }

    /// Closes directions.
    pub(crate) fn shut(&mut self, net: &mut Net, direction: Direction) -> Result<()> {
        if self.connecting() || self.state == State::Closed {
            if self.connecting() && direction != Direction::Read {
                self.die(Some(Error::ConnectionReset), net);
            }
            return Err(Error::NotConnected);
        }
        if direction != Direction::Write {
            self.read_closed = true;
        }
        if direction != Direction::Read && !self.fin {
            self.fin = true;
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                state => state,
            };
        }
        self.changed = true;
        Ok(())
    }

    /// Whether there is room enough that writing makes sense.
    pub(crate) fn writable(&self, options: &Options) -> bool {
        !self.may_send() || self.sending.len() <= options.send_buffer - options.send_buffer / 3
    }

    pub(crate) fn readiness(&self, options: &Options) -> Readiness {
        let (count, skip) = self.readable(options);
        let end = self.at_end() || self.read_closed;
        let error = self.error.is_some();
        let urgent = self.urgent_in.is_some_and(|urgent| {
            !self.urgent_read && !urgent.before(self.rcv_nxt_of_data() - self.receiving.len())
        });
        Readiness {
            read: count >= options.receive_low_water.clamp(1, options.receive_buffer)
                || end
                || error
                || (count > 0 && skip && self.at_end()),
            write: !self.connecting() && self.writable(options),
            read_closed: end,
            hup: self.state == State::Closed || (self.fin && end),
            error,
            priority: urgent,
        }
    }

    pub(crate) fn queued(&self, options: &Options) -> Queued {
        let (receive, skip) = self.readable(options);
        Queued {
            receive,
            send: self.sending.len(),
            unsent: self.sending.len() - self.sent(),
            at_mark: skip || self.urgent_in == Some(self.rcv_nxt_of_data() - self.receiving.len()),
        }
    }

    pub(crate) fn info(&self) -> TcpInfo {
        let micros = |time: u64| u32::try_from(time).unwrap_or(u32::MAX);
        let bytes = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        TcpInfo {
            state: self.state,
            time_stamps: self.stamps,
            selective_acks: self.sack,
            window_scale: (self.receive_scale > 0).then_some((self.send_scale, self.receive_scale)),
            retransmission_timeout: micros(self.round_trip.timeout(self.backoff).as_micros() as u64),
            send_segment: bytes(self.mss()),
            round_trip: micros(self.round_trip.smoothed),
            round_trip_variation: micros(self.round_trip.variation),
            congestion_window: bytes(self.congestion.window),
            slow_start_threshold: bytes(self.congestion.threshold),
            in_flight: bytes(self.nxt.since(self.una)),
            retransmissions: self.retransmissions,
            backoff: self.backoff,
            peer_window: bytes(self.window),
            window: bytes(self.edge.since(self.rcv_nxt)),
            bytes_acked: self.bytes_acked,
            bytes_received: self.bytes_received,
        }
    }

    /// What the connection's timer is for, and when it ends.
    pub(crate) fn timer(&self) -> Option<(Timer, Instant)> {
        if let Some(at) = self.retransmit_at {
            return Some((if self.nxt == self.una { Timer::Probe } else { Timer::Retransmission }, at));
        }
        self.end_at.map(|at| (Timer::TimeWait, at)).or(self.keep_at.map(|at| (Timer::KeepAlive, at)))
    }

    /// When the connection wants [`Connection::expire`] to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.retransmit_at, self.ack_at, self.keep_at, self.end_at, self.corked].into_iter().flatten().min()
    }

    /// A segment was too large for the path, whose new MTU the net knows: what was sent is sent
    /// again in smaller pieces.
    pub(crate) fn too_long(&mut self, net: &Net) {
        if self.nxt.after(self.una) && !self.connecting() {
            let mss = self.mss();
            let window = self.congestion.window;
            self.congestion.timed_out(self.una, self.nxt, mss, false);
            // Nothing was lost by congestion.
            self.congestion.window = window;
            self.retransmit_at = Some(net.now + self.round_trip.timeout(self.backoff));
        }
    }

    /// A router or the peer's system has refused a packet of this connection.
    pub(crate) fn refused(&mut self, error: Error, seq: Seq, net: &mut Net) {
        // Only packets that are on their way can be refused (RFC 5927).
        if self.state == State::Closed || seq.before(self.una) || seq.after(self.nxt) {
            return;
        }
        if self.connecting() {
            self.die(Some(error), net);
        } else {
            self.soft_error = Some(error);
        }
    }
}
