//! Connections of TCP: segments to their sockets, and what becomes of them.

use alloc::boxed::Box;
use core::time::Duration;

use super::ip::Packet;
use super::{Owner, Stack, Timed, find};
use crate::checksum;
use crate::error::{Error, Result};
use crate::flow::{Endpoint, FlowKey, PortKey};
use crate::net::LO;
use crate::output::Header;
use crate::path::{Cast, Wish};
use crate::socket::{PortUse, Role};
use crate::tcp::connection::Connection;
use crate::tcp::half::{Half, RETRIES};
use crate::tcp::initial;
use crate::tcp::output::{TCP, send};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sequence::Seq;
use crate::tcp::waiting::{Verdict, Waiting};
use crate::types::*;

/// How long returning cookies are expected after one was sent.
const COOKIES: Duration = Duration::from_secs(128);

impl Stack {
    /// Takes a segment.
    pub(super) fn take_segment(&mut self, packet: &Packet, bytes: &[u8]) -> Result<()> {
        if packet.cast != Cast::Local {
            // Nothing of TCP goes to groups.
            return Ok(());
        }
        if !packet.verified {
            let pseudo = checksum::pseudo(packet.source, packet.destination, TCP, bytes.len());
            if checksum::fold(checksum::sum(bytes, pseudo)) != 0xffff {
                return Err(Error::ProtocolError);
            }
        }
        let segment = Segment::parse(bytes).ok_or(Error::ProtocolError)?;
        let local = Endpoint::new(packet.destination, segment.destination_port, packet.interface);
        let remote = Endpoint::new(packet.source, segment.source_port, packet.interface);
        let flow = FlowKey::new(TCP, &local, &remote);
        match self.flows.get(&flow).copied() {
            Some(Owner::Socket(id)) => {
                let Stack { sockets, net, .. } = self;
                if let Ok(socket) = find(sockets, id)
                    && let Role::Stream(connection) = &mut socket.role
                {
                    connection.input(net, &socket.options, &segment);
                }
                self.settle(id.index);
            }
            Some(Owner::Half(serial)) => self.answer_half(serial, &flow, &segment),
            Some(Owner::Waiting(serial)) => {
                let Some(wait) = self.waits.get_mut(&serial) else { return Ok(()) };
                let (before, nxt) = (wait.deadline, wait.nxt);
                match wait.input(&mut self.net, &segment) {
                    Verdict::Ignore => {}
                    Verdict::Restart => {
                        let deadline = wait.deadline;
                        self.timers.remove(&(before, Timed::Waiting(serial)));
                        self.timers.insert((deadline, Timed::Waiting(serial)));
                    }
                    Verdict::Again => {
                        if self.find_listener(packet, &local, &flow).is_some() {
                            self.end_waiting(serial);
                            // Numbers of the new connection are after those of the old one.
                            self.ask(packet, local, remote, &flow, &segment, Some(nxt + 65537));
                        }
                    }
                }
            }
            None => self.ask(packet, local, remote, &flow, &segment, None),
        }
        Ok(())
    }

    fn find_listener(&self, packet: &Packet, local: &Endpoint, flow: &FlowKey) -> Option<SocketId> {
        let hash = crate::table::Hashed::hash(flow, self.net.key);
        let key = PortKey { protocol: TCP, port: local.port };
        self.lookup(key, packet.destination, packet.interface, hash, |socket| {
            matches!(socket.role, Role::Listener(_))
        })
    }

    /// A segment that belongs to no connection.
    fn ask(
        &mut self,
        packet: &Packet,
        local: Endpoint,
        remote: Endpoint,
        flow: &FlowKey,
        segment: &Segment<'_>,
        first: Option<Seq>,
    ) {
        let Some(id) = self.find_listener(packet, &local, flow) else {
            self.refuse(packet, segment);
            return;
        };
        if segment.flags.rst {
            return;
        }
        let Ok(path) =
            self.net.path(remote.address, Wish { interface: remote.interface(), dont_route: false })
        else {
            return;
        };
        let (now, room) = (self.net.now, self.halves.len() < self.net.limits.half_open);
        let Ok(socket) = find(&mut self.sockets, id) else { return };
        let options = socket.options;
        let Role::Listener(listener) = &mut socket.role else { return };
        let half = Half::new(id, local, remote, path, segment, &options, now);
        if segment.ack.is_some() {
            let expected = listener.cookies_until > now && !segment.flags.syn;
            match half.with_cookie(segment, &self.net, flow).filter(|_| expected) {
                Some(half) => self.complete(half, flow, segment),
                None => self.refuse(packet, segment),
            }
            return;
        }
        if !segment.flags.syn || segment.flags.fin {
            return;
        }
        if listener.queue.len() > listener.backlog {
            // The program does not keep up: the peer asks again.
            return;
        }
        if !room || listener.half > listener.backlog {
            listener.cookies_until = now + COOKIES;
            half.answer_by_cookie(&mut self.net, flow);
            return;
        }
        listener.half += 1;
        let serial = self.next_serial();
        let mut half = half;
        half.iss = first.unwrap_or_else(|| initial(flow, self.net.key, now));
        half.answer(&mut self.net);
        self.timers.insert((half.deadline, Timed::Half(serial)));
        self.flows.insert(*flow, Owner::Half(serial));
        self.halves.insert(serial, half);
    }

    /// A segment for a half-open connection.
    fn answer_half(&mut self, serial: u64, flow: &FlowKey, segment: &Segment<'_>) {
        let Some(half) = self.halves.get_mut(&serial) else { return };
        if segment.flags.rst {
            if segment.seq == half.irs + 1 {
                self.drop_half(serial);
            }
            return;
        }
        if segment.flags.syn {
            if segment.ack.is_none() && segment.seq == half.irs && self.net.may_answer() {
                half.answer_again(&mut self.net);
            }
            return;
        }
        let Some(ack) = segment.ack else { return };
        if ack != half.iss + 1 || segment.seq.before(half.irs + 1) || segment.seq.after(half.irs + 65536) {
            return;
        }
        let listener = half.listener;
        if !self.has_room(listener) {
            if let Some(half) = self.halves.get_mut(&serial) {
                half.acknowledge(segment);
            }
            return;
        }
        if let Some(half) = self.drop_half(serial) {
            self.complete(half, flow, segment);
        }
    }

    /// Whether one more connection may wait to be accepted.
    fn has_room(&self, listener: SocketId) -> bool {
        match self.socket(listener).map(|socket| &socket.role) {
            Ok(Role::Listener(listener)) => listener.queue.len() <= listener.backlog,
            _ => false,
        }
    }

    /// Forgets a half-open connection.
    fn drop_half(&mut self, serial: u64) -> Option<Half> {
        let half = self.halves.remove(&serial)?;
        self.timers.remove(&(half.deadline, Timed::Half(serial)));
        self.flows.remove(&FlowKey::new(TCP, &half.local, &half.remote));
        if let Ok(socket) = find(&mut self.sockets, half.listener)
            && let Role::Listener(listener) = &mut socket.role
        {
            listener.half -= 1;
        }
        Some(half)
    }

    /// The time has come to answer a SYN again, or to look for room for a connection that the peer
    /// has acknowledged.
    pub(super) fn expire_half(&mut self, serial: u64) {
        let Some(half) = self.halves.get(&serial) else { return };
        let (listener, flow) = (half.listener, FlowKey::new(TCP, &half.local, &half.remote));
        if let Some(segment) = half.acknowledgement()
            && self.has_room(listener)
        {
            if let Some(half) = self.drop_half(serial) {
                self.complete(half, &flow, &segment);
            }
            return;
        }
        let Some(half) = self.halves.get_mut(&serial) else { return };
        half.tries += 1;
        if half.tries > RETRIES {
            self.drop_half(serial);
            return;
        }
        half.answer(&mut self.net);
        let deadline = half.deadline;
        self.timers.insert((deadline, Timed::Half(serial)));
    }

    /// The peer has answered: the connection waits to be accepted.
    fn complete(&mut self, half: Half, flow: &FlowKey, segment: &Segment<'_>) {
        if !self.has_room(half.listener) {
            return;
        }
        let Ok(socket) = self.socket(half.listener) else { return };
        let (kind, options, owner) = (socket.kind, socket.options, socket.owner);
        let Ok(id) = self.open_with(kind, options, owner) else { return };
        let mut connection = half.complete(self.net.now);
        connection.owner = owner;
        connection.parent = Some(half.listener);
        connection.input(&mut self.net, &options, segment);
        let port = self.ports_entry(TCP, half.local.port);
        port.connections += 1;
        self.flows.insert(*flow, Owner::Socket(id));
        if let Ok(socket) = find(&mut self.sockets, id) {
            socket.local = half.local;
            socket.fixed = true;
            socket.peer = Some(half.remote);
            socket.port = PortUse::Counted;
            socket.role = Role::Stream(Box::new(connection));
        }
        if let Ok(socket) = find(&mut self.sockets, half.listener)
            && let Role::Listener(listener) = &mut socket.role
        {
            listener.queue.push_back(id);
            socket.announce(&mut self.net);
        }
        self.settle(id.index);
    }

    /// Answers a segment that belongs to no connection with a reset.
    fn refuse(&mut self, packet: &Packet, segment: &Segment<'_>) {
        if segment.flags.rst || !self.net.may_answer() {
            return;
        }
        let wish = Wish {
            interface: Endpoint::new(packet.source, 0, packet.interface).interface(),
            dont_route: false,
        };
        let Ok(path) = self.net.path(packet.source, wish) else { return };
        let header = Header {
            source: packet.destination,
            destination: packet.source,
            protocol: TCP,
            hops: 64,
            traffic_class: 0,
            dont_fragment: true,
        };
        let answer = Segment {
            source_port: segment.destination_port,
            destination_port: segment.source_port,
            seq: segment.ack.unwrap_or_default(),
            ack: segment.ack.is_none().then(|| segment.seq + segment.length()),
            flags: Flags { rst: true, ..Flags::default() },
            ..Segment::default()
        };
        send(&mut self.net, &path, &header, &answer, (&[], &[]), None);
    }

    /// Sends what a connection may send, sets its timer, tells its program, and takes it out of the
    /// tables if it has ended.
    pub(super) fn settle(&mut self, index: u32) {
        let Stack { sockets, net, timers, .. } = self;
        let Some(socket) = sockets.get_mut(index) else { return };
        let Role::Stream(connection) = &mut socket.role else { return };
        connection.output(net, &socket.options);
        let deadline = connection.deadline();
        if let Some(at) = deadline
            && connection.scheduled.is_none_or(|scheduled| scheduled > at)
        {
            if let Some(old) = connection.scheduled.replace(at) {
                timers.remove(&(old, Timed::Socket(index)));
            }
            timers.insert((at, Timed::Socket(index)));
        }
        let closed = connection.state == State::Closed;
        let tell = core::mem::take(&mut connection.changed) && connection.parent.is_none();
        let id = socket.id;
        if tell {
            socket.announce(net);
        }
        if closed {
            self.finish(id);
        }
    }

    /// A connection has ended.
    fn finish(&mut self, id: SocketId) {
        let Stack { sockets, net, timers, .. } = self;
        let Ok(socket) = find(sockets, id) else { return };
        let family = socket.family();
        let Role::Stream(connection) = &mut socket.role else { return };
        if let Some(at) = connection.scheduled.take() {
            timers.remove(&(at, Timed::Socket(id.index)));
        }
        let waiting =
            core::mem::take(&mut connection.lingering).then(|| Waiting::new(connection, family, net.now));
        let (orphan, parent) = (connection.orphan && !connection.awaited, connection.parent);
        if let Some(waiting) = waiting {
            self.begin_waiting(id, waiting);
        }
        self.leave_flow(id);
        if orphan {
            self.free(id);
        } else if let Some(parent) = parent
            && self.socket(id).is_ok_and(|socket| match &socket.role {
                // The program can still read what came before the end.
                Role::Stream(connection) => connection.error.is_some(),
                _ => false,
            })
        {
            if let Ok(socket) = find(&mut self.sockets, parent)
                && let Role::Listener(listener) = &mut socket.role
            {
                listener.queue.retain(|other| *other != id);
            }
            self.free(id);
        }
    }

    fn begin_waiting(&mut self, id: SocketId, waiting: Waiting) {
        while self.waits.len() >= self.net.limits.time_wait.max(1) {
            let Some(oldest) = self.waits.keys().next().copied() else { break };
            self.end_waiting(oldest);
        }
        self.leave_flow(id);
        let serial = self.next_serial();
        self.ports_entry(TCP, waiting.local.port).connections += 1;
        self.flows.insert(FlowKey::new(TCP, &waiting.local, &waiting.remote), Owner::Waiting(serial));
        self.timers.insert((waiting.deadline, Timed::Waiting(serial)));
        self.waits.insert(serial, waiting);
    }

    pub(super) fn end_waiting(&mut self, serial: u64) {
        let Some(waiting) = self.waits.remove(&serial) else { return };
        self.timers.remove(&(waiting.deadline, Timed::Waiting(serial)));
        let flow = FlowKey::new(TCP, &waiting.local, &waiting.remote);
        if matches!(self.flows.get(&flow), Some(Owner::Waiting(owner)) if *owner == serial) {
            self.flows.remove(&flow);
        }
        self.uncount(PortKey { protocol: TCP, port: waiting.local.port });
    }

    /// A connection's timer has run out.
    pub(super) fn expire(&mut self, index: u32) {
        let Stack { sockets, net, .. } = self;
        let Some(socket) = sockets.get_mut(index) else { return };
        let Role::Stream(connection) = &mut socket.role else { return };
        connection.scheduled = None;
        connection.expire(net, &socket.options);
        self.settle(index);
    }

    pub(super) fn connect_stream(&mut self, id: SocketId, peer: SocketAddress) -> Result<Connect> {
        let socket = self.socket_mut(id)?;
        match &mut socket.role {
            Role::Idle => {}
            Role::Stream(connection) => match connection.state {
                State::SynSent | State::SynReceived => return Err(Error::AlreadyConnecting),
                State::Closed => {
                    if let Some(error) = connection.error.take() {
                        return Err(error);
                    }
                }
                _ => return Err(Error::AlreadyConnected),
            },
            _ => return Err(Error::AlreadyConnected),
        }
        let (options, family) = (socket.options, socket.family());
        let mut remote = Endpoint::given(peer, family, options.only_v6)?;
        if remote.address.is_unspecified() {
            remote.address = if remote.address.is_ipv4() {
                core::net::Ipv4Addr::LOCALHOST.into()
            } else {
                core::net::Ipv6Addr::LOCALHOST.into()
            };
        }
        if remote.port == 0 {
            return Err(Error::ConnectionRefused);
        }
        let own = socket.local;
        let bound = own.interface().filter(|interface| *interface != LO);
        let interface = options.interface.or(remote.interface()).or(bound);
        let path = self.net.path(remote.address, Wish { interface, dont_route: options.dont_route })?;
        // Addresses of a link are those of the interface that the peer's segments arrive at.
        remote = Endpoint::new(remote.address, remote.port, path.interface);
        if matches!(path.cast, Cast::Multicast | Cast::Broadcast) {
            return Err(Error::NetworkUnreachable);
        }
        let socket = self.socket_mut(id)?;
        let mut local = socket.local;
        if socket.fixed && !local.address.is_unspecified() {
            if local.address.is_ipv4() != remote.address.is_ipv4() {
                return Err(Error::NetworkUnreachable);
            }
            if !self.net.is_local(local.address) {
                // It was bound before it is this system's, or has ceased to be.
                return Err(Error::InvalidArgument);
            }
            local = Endpoint::new(local.address, local.port, path.interface);
        } else {
            if path.source.is_unspecified() {
                return Err(Error::AddressNotAvailable);
            }
            local = Endpoint { port: local.port, ..Endpoint::new(path.source, 0, path.interface) };
        }
        if local.port == 0 {
            local.port = self.choose_port(id, &local, Some(&remote))?;
            self.ports_entry(TCP, local.port).connections += 1;
            self.socket_mut(id)?.port = PortUse::Counted;
        }
        let flow = FlowKey::new(TCP, &local, &remote);
        match self.flows.get(&flow) {
            None => {}
            // The numbers of the new connection are after those of the old one, by the clock.
            Some(Owner::Waiting(serial)) if options.reuse_address => self.end_waiting(*serial),
            Some(_) => return Err(Error::AddressNotAvailable),
        }
        let iss = initial(&flow, self.net.key, self.net.now);
        let mut connection = Connection::new(local, remote, path, iss, self.net.now);
        connection.owner = self.socket(id)?.owner;
        connection.hops = options.hops;
        connection.traffic_class = options.traffic_class;
        connection.state = State::SynSent;
        connection.send_syn(&mut self.net, &options);
        self.flows.insert(flow, Owner::Socket(id));
        let socket = self.socket_mut(id)?;
        socket.local = local;
        socket.peer = Some(remote);
        let role = core::mem::replace(&mut socket.role, Role::Stream(Box::new(connection)));
        if let Role::Stream(mut old) = role {
            old.release(&mut self.net);
        }
        self.settle(id.index);
        self.pump();
        let Role::Stream(connection) = &self.socket(id)?.role else {
            return Err(Error::ConnectionAborted);
        };
        // A peer on the same system may have refused it already. The socket has that error, as if
        // the peer were elsewhere.
        match connection.state {
            State::SynSent | State::SynReceived | State::Closed => Ok(Connect::Started),
            _ => Ok(Connect::Done),
        }
    }

    pub(super) fn send_stream(&mut self, id: SocketId, data: &[u8], flags: SendFlags) -> Result<usize> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        let Role::Stream(connection) = &mut socket.role else { return Err(Error::NotConnected) };
        let result = connection.write(net, &socket.options, data, flags);
        if result.is_ok() {
            self.settle(id.index);
        }
        result
    }

    pub(super) fn receive_stream(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        flags: ReceiveFlags,
    ) -> Result<Received> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        let Role::Stream(connection) = &mut socket.role else { return Err(Error::NotConnected) };
        let copied = connection.read(net, &socket.options, buffer, flags)?;
        let received = Received {
            copied,
            length: copied,
            from: None,
            to: None,
            interface: connection.path.interface,
            hops: 0,
            traffic_class: 0,
            time: net.now,
            link: None,
            options: HeaderOptions::default(),
        };
        if copied > 0 && !flags.peek {
            self.settle(id.index);
            self.pump();
        }
        Ok(received)
    }

    /// Ends a connection with a reset.
    pub(super) fn abort(&mut self, id: SocketId, error: Option<Error>) {
        let Stack { sockets, net, .. } = self;
        let Ok(socket) = find(sockets, id) else { return };
        let Role::Stream(connection) = &mut socket.role else { return };
        if !matches!(connection.state, State::Closed | State::SynSent) {
            let nxt = connection.nxt;
            connection.reset(net, nxt);
        }
        connection.die(error, net);
        self.settle(id.index);
    }

    /// The program closes a connection.
    pub(super) fn close_stream(&mut self, id: SocketId) {
        let Stack { sockets, net, .. } = self;
        let Ok(socket) = find(sockets, id) else { return };
        let options = socket.options;
        let Role::Stream(connection) = &mut socket.role else { return };
        let unread = connection.receiving.len() > 0;
        let hard = options.linger == Some(Duration::ZERO);
        let connecting = matches!(connection.state, State::SynSent | State::SynReceived);
        if connection.state == State::Closed || hard || unread || connecting {
            self.abort(id, None);
            return;
        }
        connection.orphan = true;
        net.shrink(connection.receiving.release(), connection.owner);
        connection.early.clear();
        connection.more = false;
        // A connection that can be shut is not closed yet: it goes on without the program.
        let _ = connection.shut(net, Direction::Both);
        if connection.state == State::FinWait2 {
            connection.end_at = Some(net.now + options.linger2);
        }
        self.settle(id.index);
    }

    /// A listener goes: connections that were not accepted are reset.
    pub(super) fn close_listener(&mut self, id: SocketId) {
        let Ok(socket) = find(&mut self.sockets, id) else { return };
        let Role::Listener(listener) = &mut socket.role else { return };
        let queue = core::mem::take(&mut listener.queue);
        for child in queue {
            self.abort(child, None);
            self.free(child);
        }
        let halves = self.halves.iter().filter(|(_, half)| half.listener == id);
        let halves: alloc::vec::Vec<u64> = halves.map(|(serial, _)| *serial).collect();
        for serial in halves {
            self.drop_half(serial);
        }
    }
}
