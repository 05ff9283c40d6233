//! A client of DHCP (RFC 2131), without sockets: messages in, messages out.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr, EthernetAddress};

use crate::hash::Random;
use crate::time::Instant;
use crate::types::{Lease, Prefix};

/// The first time between messages without an answer; it doubles up to the last.
const RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(64);
/// Requests without an answer after which servers are looked for again.
const REQUESTS: u32 = 4;
/// The shortest time between requests to renew a lease.
const RENEWAL: Duration = Duration::from_secs(60);
/// The shortest lease that is believed.
const SHORTEST: Duration = Duration::from_secs(60);
/// What is asked for: mask, router, name servers, host name, domain, MTU, broadcast address.
const WANTED: [u8; 7] = [1, 3, 6, 12, 15, 26, 28];
/// The option with the host name.
const HOST_NAME: u8 = 12;
/// Questions of ARP after which a granted address counts as free, and the time after each. A
/// network of today answers within milliseconds; RFC 5227 waits for seconds.
const PROBES: u32 = 2;
const PROBE: Duration = Duration::from_millis(250);
/// How long no server is asked after an address was declined (RFC 2131, 3.1).
const AFTER_DECLINE: Duration = Duration::from_secs(10);
/// Bytes that a server may send.
const LARGEST: u16 = 1432;

/// A message to be sent from port 68 to port 67.
pub(crate) struct Message {
    pub(crate) payload: Vec<u8>,
    /// Nothing means all, with an unspecified source.
    pub(crate) to: Option<Ipv4Addr>,
}

/// What a message from a server means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// There is a lease: a new one, or the old one for longer.
    Granted(Lease),
    /// The lease is no more.
    Lost,
    /// All systems are to be asked whether one has this address. If one has, the caller calls
    /// [`Client::decline`].
    Probe(Ipv4Addr),
}

enum State {
    /// Looking for servers.
    Selecting,
    /// A server has offered an address.
    Requesting { address: Ipv4Addr, server: Ipv4Addr },
    /// A server has granted an address, which another system may have.
    Probing { address: Ipv4Addr, terms: Terms },
    /// There is a lease, until `expires`; its server is asked to renew it from `renew` on, and all
    /// servers from `rebind` on.
    Bound { address: Ipv4Addr, server: Ipv4Addr, renew: Instant, rebind: Instant, expires: Instant },
}

/// What a server has granted, and when it is to be renewed.
struct Terms {
    lease: Lease,
    server: Ipv4Addr,
    renew: Instant,
    rebind: Instant,
}

/// The client of one interface.
pub(crate) struct Client {
    mac: [u8; 6],
    host_name: String,
    transaction: u32,
    state: State,
    /// When the next message is due.
    pub(crate) deadline: Instant,
    tries: u32,
    began: Instant,
}

impl Client {
    pub(crate) fn new(mac: [u8; 6], host_name: &str, random: &mut Random, now: Instant) -> Client {
        let fits = host_name.len() <= 63 && !host_name.is_empty();
        Client {
            mac,
            host_name: String::from(if fits { host_name } else { "" }),
            transaction: random.next() as u32,
            state: State::Selecting,
            deadline: now,
            tries: 0,
            began: now,
        }
    }

    /// Looks for servers again.
    fn restart(&mut self, random: &mut Random, now: Instant) {
        self.transaction = random.next() as u32;
        self.state = State::Selecting;
        self.tries = 0;
        self.began = now;
        self.deadline = now;
    }

    /// The cable was plugged in: the lease is asked for again.
    pub(crate) fn reconnect(&mut self, random: &mut Random, now: Instant) {
        match &mut self.state {
            State::Bound { renew, rebind, .. } => {
                *renew = now;
                *rebind = now;
                self.transaction = random.next() as u32;
                self.tries = 0;
                self.deadline = now;
            }
            _ => self.restart(random, now),
        }
    }

    /// Does what is due: a message, or the end of the lease.
    pub(crate) fn poll(&mut self, random: &mut Random, now: Instant) -> (Option<Message>, Option<Event>) {
        if self.deadline > now {
            return (None, None);
        }
        let mut event = None;
        match self.state {
            State::Requesting { .. } if self.tries >= REQUESTS => self.restart(random, now),
            State::Bound { expires, .. } if expires <= now => {
                self.restart(random, now);
                event = Some(Event::Lost);
            }
            _ => {}
        }
        if let State::Probing { address, .. } = self.state {
            if self.tries < PROBES {
                self.tries += 1;
                self.deadline = now + PROBE;
                return (None, Some(Event::Probe(address)));
            }
            if let State::Probing { address, terms } = mem::replace(&mut self.state, State::Selecting) {
                return (None, Some(self.bind(address, terms)));
            }
        }
        let message = match self.state {
            State::Selecting => Some(self.message(now, DhcpMessageType::Discover, None)),
            State::Requesting { .. } => Some(self.message(now, DhcpMessageType::Request, None)),
            State::Bound { server, renew, rebind, .. } if renew <= now => {
                let to = (rebind > now).then_some(server);
                Some(self.message(now, DhcpMessageType::Request, to))
            }
            State::Bound { .. } | State::Probing { .. } => None,
        };
        self.schedule(random, now);
        (message, event)
    }

    fn schedule(&mut self, random: &mut Random, now: Instant) {
        self.deadline = match self.state {
            State::Bound { renew, .. } if now < renew => renew,
            State::Bound { rebind, expires, .. } => {
                // Half of the time that is left, as the RFC has it.
                let until = if now < rebind { rebind } else { expires };
                (now + (until.since(now) / 2).max(RENEWAL)).min(expires.max(now))
            }
            _ => {
                let wait = (RETRY * (1 << self.tries.min(8))).min(LONGEST_RETRY);
                // Clients that began together do not go on together.
                let jitter = Duration::from_millis(random.next() % 1000);
                now + wait - Duration::from_millis(500) + jitter
            }
        };
        self.tries += 1;
    }

    fn message(&self, now: Instant, message_type: DhcpMessageType, to: Option<Ipv4Addr>) -> Message {
        let (client, requested, server) = match &self.state {
            State::Selecting => (Ipv4Addr::UNSPECIFIED, None, None),
            State::Requesting { address, server }
            | State::Probing { address, terms: Terms { server, .. } } => {
                (Ipv4Addr::UNSPECIFIED, Some(*address), Some(*server))
            }
            State::Bound { address, .. } => (*address, None, None),
        };
        // A message that declines an address asks for nothing, and gets no answer.
        let declines = message_type == DhcpMessageType::Decline;
        let name = [DhcpOption { kind: HOST_NAME, data: self.host_name.as_bytes() }];
        let mac = EthernetAddress(self.mac);
        let message = DhcpRepr {
            message_type,
            transaction_id: self.transaction,
            secs: if declines { 0 } else { now.since(self.began).as_secs().min(65535) as u16 },
            client_hardware_address: mac,
            client_ip: client,
            your_ip: Ipv4Addr::UNSPECIFIED,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            // There is no address yet that an answer could go to.
            broadcast: client.is_unspecified() && !declines,
            requested_ip: requested,
            client_identifier: Some(mac),
            server_identifier: server,
            parameter_request_list: (!declines).then_some(&WANTED),
            dns_servers: None,
            max_size: (!declines).then_some(LARGEST),
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: if self.host_name.is_empty() || declines { &[] } else { &name },
        };
        // Some servers drop messages that are shorter than those of BOOTP.
        let mut payload = alloc::vec![0; message.buffer_len().max(300)];
        // The buffer has the length that the message asked for.
        let _ = message.emit(&mut DhcpPacket::new_unchecked(&mut payload));
        Message { payload, to }
    }

    /// Takes a message that arrived at port 68.
    pub(crate) fn receive(&mut self, payload: &[u8], random: &mut Random, now: Instant) -> Option<Event> {
        let packet = DhcpPacket::new_checked(payload).ok()?;
        let message = DhcpRepr::parse(&packet).ok()?;
        if message.transaction_id != self.transaction
            || message.client_hardware_address != EthernetAddress(self.mac)
        {
            return None;
        }
        let server = message.server_identifier?;
        match (&self.state, message.message_type) {
            (State::Selecting, DhcpMessageType::Offer) if usable(message.your_ip) => {
                self.state = State::Requesting { address: message.your_ip, server };
                self.tries = 0;
                self.deadline = now;
                None
            }
            (State::Requesting { address, .. }, DhcpMessageType::Ack) if *address == message.your_ip => {
                self.state = State::Probing { address: message.your_ip, terms: terms(&message, server, now) };
                self.tries = 0;
                self.deadline = now;
                None
            }
            (State::Bound { address, renew, .. }, DhcpMessageType::Ack)
                if *address == message.your_ip && *renew <= now =>
            {
                Some(self.bind(message.your_ip, terms(&message, server, now)))
            }
            (State::Requesting { server: chosen, .. }, DhcpMessageType::Nak) if *chosen == server => {
                self.restart(random, now);
                // A server that refuses what it offers is not asked without end.
                self.deadline = now + RETRY;
                None
            }
            (State::Bound { renew, .. }, DhcpMessageType::Nak) if *renew <= now => {
                self.restart(random, now);
                Some(Event::Lost)
            }
            _ => None,
        }
    }

    /// The granted address is used from now on.
    fn bind(&mut self, address: Ipv4Addr, terms: Terms) -> Event {
        let Terms { lease, server, renew, rebind } = terms;
        self.state = State::Bound { address, server, renew, rebind, expires: lease.expires };
        self.tries = 0;
        self.deadline = renew;
        Event::Granted(lease)
    }

    /// Another system has the address that was granted: the server is told so, and servers are
    /// looked for again later. Returns the message, if an address is being probed.
    pub(crate) fn decline(&mut self, random: &mut Random, now: Instant) -> Option<Message> {
        let State::Probing { .. } = self.state else { return None };
        let message = self.message(now, DhcpMessageType::Decline, None);
        self.restart(random, now);
        self.deadline = now + AFTER_DECLINE;
        Some(message)
    }
}

/// What a server grants by a message.
fn terms(message: &DhcpRepr<'_>, server: Ipv4Addr, now: Instant) -> Terms {
    let seconds = |count: u32| Duration::from_secs(count.into());
    let lease = message.lease_duration.map_or(seconds(86400), seconds).max(SHORTEST);
    let renew = message.renew_duration.map_or(lease / 2, seconds).clamp(SHORTEST / 2, lease / 2);
    let rebind = message.rebind_duration.map_or(lease / 8 * 7, seconds).clamp(renew, lease / 8 * 7);
    let mask = message.subnet_mask.map_or(u32::MAX << 8, u32::from);
    let servers = message.dns_servers.iter().flatten();
    let lease = Lease {
        prefix: Prefix { address: message.your_ip.into(), length: mask.leading_ones() as u8 },
        router: message.router.filter(|router| usable(*router)).map(IpAddr::V4),
        name_servers: servers.filter(|server| usable(**server)).map(|server| IpAddr::V4(*server)).collect(),
        server: server.into(),
        expires: now + lease,
    };
    Terms { lease, server, renew: now + renew, rebind: now + rebind }
}

/// Whether an address can be that of a host.
fn usable(address: Ipv4Addr) -> bool {
    !address.is_unspecified() && !address.is_broadcast() && !address.is_multicast() && !address.is_loopback()
}
