//! What callers give to the stack, and what it answers.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use crate::error::Error;
use crate::time::Instant;

/// An address with a port; for IPv6 its scope is an interface's index.
pub type SocketAddress = SocketAddr;

/// The number of an interface, from 1, which is `lo`. No two interfaces of a stack ever have the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceIndex(pub u32);

/// Names a socket of a stack. A closed socket's identifier names no other one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The family of addresses that a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, and IPv4 by mapped addresses unless [`Options::only_v6`] forbids it.
    V6,
}

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A stream: a listener or one end of a connection.
    Tcp(Family),
    /// Datagrams.
    Udp(Family),
    /// Echo requests and their replies (`ping`); the port is the identifier.
    IcmpEcho(Family),
    /// Packets of one protocol, by its number; 255 sends packets with an IP header of the
    /// caller's and receives none.
    Raw(Family, u8),
    /// Frames of Ethernet.
    Packet {
        /// The frames' type; 3 means all of them, 0 none.
        protocol: u16,
        /// Without the Ethernet header (`SOCK_DGRAM`).
        cooked: bool,
    },
}

/// How much the stack may hold. Everything that packets from outside can make it allocate is
/// bounded by these.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all sockets' buffers and filters.
    pub memory: usize,
    /// Sockets, with connections that have not been accepted.
    pub sockets: usize,
    /// Connections in TIME_WAIT; the oldest gives way.
    pub time_wait: usize,
    /// Half-open connections of all listeners; beyond these there are SYN cookies.
    pub half_open: usize,
    /// The largest backlog of a listener.
    pub backlog: usize,
    /// Bytes of fragments that wait for the rest of their packets.
    pub fragments: usize,
    /// Neighbours of all interfaces.
    pub neighbours: usize,
    /// Interfaces.
    pub interfaces: usize,
    /// Routes, and also addresses.
    pub routes: usize,
    /// Frames that wait for an interface's device, or bytes of 2 KiB for each on `lo`.
    pub frames: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory: 64 << 20,
            sockets: 16384,
            time_wait: 4096,
            half_open: 1024,
            backlog: 4096,
            fragments: 1 << 20,
            neighbours: 1024,
            interfaces: 64,
            routes: 1024,
            frames: 1024,
        }
    }
}

/// What a device does to packets by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// It completes the checksums of TCP and UDP in frames that it sends.
    pub transmit_checksum: bool,
    /// It cuts segments of TCP over IPv4 and IPv6 that are larger than the MTU.
    pub segmentation: bool,
}

/// A frame of Ethernet to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The frame, from the destination's address to the end of the payload, without checksum.
    pub bytes: alloc::vec::Vec<u8>,
    /// The checksum that the device has to complete.
    pub checksum: Option<PartialChecksum>,
    /// The frame holds a segment of TCP that the device has to cut into pieces with this many bytes
    /// of payload.
    pub segment: Option<u16>,
}

/// A checksum of the protocol above IP that holds only the sum of the pseudo header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The first byte that is summed, from the start of the frame.
    pub start: u16,
    /// Where the sum belongs, from `start`.
    pub offset: u16,
}

/// What a socket can do without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There is data, an end of data, an error or a connection to be accepted.
    pub read: bool,
    /// There is space to send, or sending fails.
    pub write: bool,
    /// The peer sends no more.
    pub read_closed: bool,
    /// Neither side sends any more.
    pub hup: bool,
    /// An error waits to be taken.
    pub error: bool,
    /// There is urgent data, or there is something in the queue of errors.
    pub priority: bool,
}

/// How data is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags {
    /// The last byte is urgent.
    pub urgent: bool,
    /// More data follows: a segment that is not full waits for it.
    pub more: bool,
    /// No router is used.
    pub dont_route: bool,
    /// The source's address of this datagram.
    pub source: Option<IpAddr>,
    /// The interface of this datagram.
    pub interface: Option<InterfaceIndex>,
    /// Hop limit of this datagram.
    pub hops: Option<u8>,
    /// Type of service or traffic class of this datagram.
    pub traffic_class: Option<u8>,
}

/// How data is received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveFlags {
    /// The data stays in the queue.
    pub peek: bool,
    /// Of streams: the data is discarded instead of being copied.
    pub discard: bool,
    /// The byte of urgent data is asked for.
    pub urgent: bool,
}

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes that were copied into the caller's buffer.
    pub copied: usize,
    /// Bytes that the datagram has: more than `copied` if it was cut.
    pub length: usize,
    /// Where it came from; nothing for streams.
    pub from: Option<SocketAddress>,
    /// Where it was sent to.
    pub to: Option<IpAddr>,
    /// The interface that it arrived at.
    pub interface: InterfaceIndex,
    /// Its hop limit when it arrived.
    pub hops: u8,
    /// Its type of service or traffic class.
    pub traffic_class: u8,
    /// When it arrived.
    pub time: Instant,
    /// Of a packet socket: the frame's header.
    pub link: Option<LinkHeader>,
    /// The options of its IPv4 header.
    pub options: HeaderOptions,
}

/// The options of an IPv4 header, as they arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderOptions {
    bytes: [u8; 40],
    length: u8,
}

impl Default for HeaderOptions {
    fn default() -> HeaderOptions {
        HeaderOptions { bytes: [0; 40], length: 0 }
    }
}

impl HeaderOptions {
    /// The options of a header, of which other protocols than IPv4 have none.
    pub(crate) fn of(header: &[u8]) -> HeaderOptions {
        let mut options = HeaderOptions::default();
        if let Some(bytes) = header.get(20..)
            && header[0] >> 4 == 4
        {
            let length = bytes.len().min(40);
            options.bytes[..length].copy_from_slice(&bytes[..length]);
            options.length = length as u8;
        }
        options
    }

    /// Options of these bytes; nothing if a header has no room for so many.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<HeaderOptions> {
        let mut options = HeaderOptions { length: bytes.len().try_into().ok()?, ..HeaderOptions::default() };
        options.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(options)
    }

    /// The bytes after the fixed header, with those that fill it up: nothing if there are none.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }
}

/// The header of a frame that a packet socket received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    /// The source's hardware address.
    pub source: [u8; 6],
    /// The type of the payload.
    pub protocol: u16,
    /// How the frame was addressed.
    pub class: LinkClass,
    /// Bytes that the frame has for the socket, before its filter cut it.
    pub whole: usize,
}

/// How a frame was addressed. The numbers are Linux' (PACKET_HOST and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkClass {
    /// To this system.
    Host,
    /// To all.
    Broadcast,
    /// To a group.
    Multicast,
    /// To another system.
    Other,
    /// Sent by this system.
    Outgoing,
}

/// What a packet socket asks an interface for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// Frames to other systems, too.
    Promiscuous,
    /// Frames to a group, which the interface passes on anyway.
    Group([u8; 6]),
    /// Frames to all groups, which the interface passes on anyway.
    AllGroups,
}

/// What happened to the frames for a packet socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStatistics {
    /// Frames that the socket was to receive.
    pub received: u32,
    /// Those of them for which there was no room.
    pub dropped: u32,
}

/// An entry of a socket's queue of errors (`IP_RECVERR`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReport {
    /// The error.
    pub error: Error,
    /// The destination of the packet that caused it.
    pub destination: SocketAddress,
    /// The router or host that reported it; nothing if it arose here.
    pub reporter: Option<IpAddr>,
    /// The type and code of the message of ICMP.
    pub message: (u8, u8),
    /// The largest packet that the path takes, if the error is [`Error::MessageTooLong`].
    pub mtu: u32,
    /// What is known of the payload of the packet that caused it.
    pub payload: alloc::vec::Vec<u8>,
}

/// Which directions of a connection are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Nothing more is received.
    Read,
    /// Nothing more is sent.
    Write,
    /// Both.
    Both,
}

/// How far a call of `connect` came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// The socket is connected.
    Done,
    /// The peer has been asked; the socket becomes ready for writing when it has answered.
    Started,
}

/// The states of a connection, as RFC 9293 has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// Everything that can be set at a socket, with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Probes are sent while a connection is idle.
    pub keep_alive: bool,
    /// Idle time before the first probe.
    pub keep_idle: Duration,
    /// Time between probes.
    pub keep_interval: Duration,
    /// Probes without an answer that end a connection.
    pub keep_count: u32,
    /// Small segments are sent although others are not acknowledged.
    pub no_delay: bool,
    /// Segments that are not full wait (`TCP_CORK`), at most 200 ms.
    pub cork: bool,
    /// Whether segments are acknowledged without delay: as the program has said. If it has not,
    /// they are acknowledged with delay.
    pub quick_ack: Option<bool>,
    /// What closing does with data that has not been sent: nothing means that it is sent in the
    /// background; zero means that the connection is reset.
    pub linger: Option<Duration>,
    /// The largest segment that is sent and asked for.
    pub maximum_segment: Option<u16>,
    /// A connection ends if data is not acknowledged for this long.
    pub user_timeout: Option<Duration>,
    /// Retransmissions of SYN before connecting fails.
    pub syn_retries: u32,
    /// How long a closed connection waits for the peer's end.
    pub linger2: Duration,
    /// Urgent data stays in the stream.
    pub urgent_inline: bool,
    /// The port can be bound although connections of an earlier socket use it.
    pub reuse_address: bool,
    /// Several sockets of one owner share the port.
    pub reuse_port: bool,
    /// Bytes that wait to be sent, at most.
    pub send_buffer: usize,
    /// Bytes that wait to be received, at most.
    pub receive_buffer: usize,
    /// Bytes that must wait before a stream is ready for reading.
    pub receive_low_water: usize,
    /// Hop limit of packets to one destination.
    pub hops: u8,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// An IPv6 socket takes no IPv4 packets.
    pub only_v6: bool,
    /// Datagrams may go to broadcast addresses.
    pub broadcast: bool,
    /// No router is used.
    pub dont_route: bool,
    /// Packets leave and arrive at this interface only.
    pub interface: Option<InterfaceIndex>,
    /// Hop limit of packets to groups.
    pub multicast_hops: u8,
    /// Packets to groups are received by this system's sockets as well.
    pub multicast_loop: bool,
    /// The interface of packets to groups.
    pub multicast_interface: Option<InterfaceIndex>,
    /// The address need not be this system's when it is bound.
    pub free_bind: bool,
    /// Errors go to the queue of errors.
    pub receive_errors: bool,
    /// Packets that are larger than the path takes are refused instead of being cut into fragments.
    pub dont_fragment: bool,
    /// Raw packets are sent with an IP header of the caller's.
    pub header_included: bool,
    /// Types of ICMP messages that a raw socket does not receive, a bit for each of 256.
    pub icmp_filter: [u64; 4],
}

impl Default for Options {
    fn default() -> Options {
        Options {
            keep_alive: false,
            keep_idle: Duration::from_secs(7200),
            keep_interval: Duration::from_secs(75),
            keep_count: 9,
            no_delay: false,
            cork: false,
            quick_ack: None,
            linger: None,
            maximum_segment: None,
            user_timeout: None,
            syn_retries: 6,
            linger2: Duration::from_secs(60),
            urgent_inline: false,
            reuse_address: false,
            reuse_port: false,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            receive_low_water: 1,
            hops: 64,
            traffic_class: 0,
            only_v6: false,
            broadcast: false,
            dont_route: false,
            interface: None,
            multicast_hops: 1,
            multicast_loop: true,
            multicast_interface: None,
            free_bind: false,
            receive_errors: false,
            dont_fragment: false,
            header_included: false,
            icmp_filter: [0; 4],
        }
    }
}

/// A connection of TCP, measured (`TCP_INFO`). Times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Its state.
    pub state: State,
    /// Time stamps are used.
    pub time_stamps: bool,
    /// Selective acknowledgements are used.
    pub selective_acks: bool,
    /// The peer's and the own shift of windows, if windows are scaled.
    pub window_scale: Option<(u8, u8)>,
    /// Time before the next retransmission.
    pub retransmission_timeout: u32,
    /// Largest segment that is sent.
    pub send_segment: u32,
    /// Round trip time, smoothed.
    pub round_trip: u32,
    /// Its mean deviation.
    pub round_trip_variation: u32,
    /// Congestion window, in bytes.
    pub congestion_window: u32,
    /// Slow start ends at this window, in bytes.
    pub slow_start_threshold: u32,
    /// Bytes that are not acknowledged.
    pub in_flight: u32,
    /// Segments that were sent again.
    pub retransmissions: u32,
    /// Retransmissions without an answer.
    pub backoff: u32,
    /// The peer's window.
    pub peer_window: u32,
    /// The own window.
    pub window: u32,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes that were received.
    pub bytes_received: u64,
}

/// What is in a socket's queues, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// To be received; of datagram sockets the size of the first datagram.
    pub receive: usize,
    /// Not yet acknowledged, or not yet taken by the device.
    pub send: usize,
    /// Of these, not yet sent for the first time.
    pub unsent: usize,
    /// The next byte to be received is the one after urgent data.
    pub at_mark: bool,
}

/// A socket or a connection in the tables of `/proc/net`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// The socket; nothing for connections in TIME_WAIT and for half-open ones.
    pub id: Option<SocketId>,
    /// What it is.
    pub kind: Kind,
    /// The own address.
    pub local: SocketAddress,
    /// The peer's, unspecified if there is none.
    pub remote: SocketAddress,
    /// The state; of datagram sockets Established if connected, else Closed.
    pub state: State,
    /// Bytes to be received, with the peer's FIN; of listeners the connections to be accepted.
    pub receive_queue: usize,
    /// Bytes that are not acknowledged, with a SYN or FIN; of listeners the backlog.
    pub send_queue: usize,
    /// The time until the connection's timer, and what it is for.
    pub timer: Option<(Timer, Duration)>,
    /// Datagrams that were dropped because the socket was full.
    pub drops: u64,
}

/// What a connection's timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// To send again.
    Retransmission,
    /// To ask if an idle peer is alive.
    KeepAlive,
    /// To end TIME_WAIT.
    TimeWait,
    /// To ask if a window has opened.
    Probe,
}

/// A network: an address and how many of its first bits belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// An address of the network; for an interface's address the address itself.
    pub address: IpAddr,
    /// Bits of the network, at most 32 or 128.
    pub length: u8,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface.
    pub interface: InterfaceIndex,
    /// The address and its network.
    pub prefix: Prefix,
    /// When it is used no more; nothing for addresses that the administrator gave.
    pub expires: Option<Instant>,
    /// When it is not chosen for new connections any more.
    pub deprecated: Option<Instant>,
    /// It is not used yet, because another system may have it, which is being asked.
    pub tentative: bool,
}

/// Where a route comes from, by Linux' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteOrigin {
    /// It belongs to an address (2).
    Kernel,
    /// The administrator or a program gave it (3, 4).
    Static,
    /// Router advertisements (9).
    RouterAdvertisement,
    /// DHCP (16).
    Dhcp,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub destination: Prefix,
    /// The router; nothing if the destinations are neighbours.
    pub gateway: Option<IpAddr>,
    /// The interface that leads there.
    pub interface: InterfaceIndex,
    /// Of routes to the same network the one with the smallest metric is used.
    pub metric: u32,
    /// The address that packets come from if their socket has none.
    pub source: Option<IpAddr>,
    /// Where the route comes from.
    pub origin: RouteOrigin,
    /// When it is used no more.
    pub expires: Option<Instant>,
}

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// It has been asked for, and has not answered.
    Incomplete,
    /// It has answered lately.
    Reachable,
    /// It has answered some time ago.
    Stale,
    /// It is being asked again.
    Probe,
    /// It does not answer.
    Failed,
    /// The administrator gave its address.
    Permanent,
}

/// A neighbour, as ARP or neighbour discovery know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The interface that leads to it.
    pub interface: InterfaceIndex,
    /// Its address.
    pub address: IpAddr,
    /// Its hardware address, if it is known.
    pub mac: Option<[u8; 6]>,
    /// What is known of it.
    pub state: NeighbourState,
}

/// What went through an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of frames that arrived.
    pub received_bytes: u64,
    /// Frames that arrived.
    pub received_packets: u64,
    /// Frames that arrived and were malformed.
    pub received_errors: u64,
    /// Packets that arrived and found no room in their socket's queue.
    pub received_drops: u64,
    /// Frames to groups that arrived.
    pub received_multicast: u64,
    /// Bytes of frames that were sent.
    pub sent_bytes: u64,
    /// Frames that were sent.
    pub sent_packets: u64,
    /// Packets that could not be sent because the interface was down or had no cable.
    pub sent_errors: u64,
    /// Packets that found no room in the interface's queue.
    pub sent_drops: u64,
}

/// An interface, as callers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: InterfaceIndex,
    /// Its name, at most 15 bytes.
    pub name: alloc::string::String,
    /// Its hardware address; zero for `lo`.
    pub mac: [u8; 6],
    /// The largest IP packet that fits in a frame.
    pub mtu: usize,
    /// What its device does by itself.
    pub offload: Offload,
    /// It is `lo`.
    pub loopback: bool,
    /// It may be used.
    pub up: bool,
    /// Its cable is plugged in.
    pub link: bool,
    /// All frames are given to packet sockets, not only those for this system.
    pub promiscuous: bool,
    /// What went through it.
    pub counters: Counters,
}

/// An address that a DHCP server granted, and that another system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined {
    /// The address.
    pub address: core::net::Ipv4Addr,
    /// The hardware address of the system that has it.
    pub mac: [u8; 6],
}

/// Something of the administrator's that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// It has been removed; else it is new or different.
    pub gone: bool,
    /// What it is.
    pub subject: Subject,
}

/// What a [`Change`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An interface.
    Interface(Interface),
    /// An address, and the name of its interface.
    Address(Address, alloc::string::String),
    /// A route.
    Route(Route),
    /// A neighbour.
    Neighbour(Neighbour),
    /// Changes before this one that were not taken in time: what there is now has to be asked for.
    Missed,
}

/// What a DHCP server granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address and its network.
    pub prefix: Prefix,
    /// The router of the network.
    pub router: Option<IpAddr>,
    /// Servers for names, at most three.
    pub name_servers: alloc::vec::Vec<IpAddr>,
    /// The server.
    pub server: IpAddr,
    /// When the lease ends.
    pub expires: Instant,
}
