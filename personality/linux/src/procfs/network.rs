//! The texts in /proc/net, and in /proc/sys/net, about the network (proc(5)).

use crate::socket::state_number;
use alloc::format;
use alloc::string::String;
use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};
use inet::{Family, Interface, Internet, Kind, NeighbourState, State, Timer};
use unix::network::{Network, SocketEntry};

/// The text of the file with this path below /proc; `None` if it is not about the network.
pub(super) fn file(network: &Network, path: &str) -> Option<String> {
    if let Some(name) = path.strip_prefix("net/") {
        return text(network, name);
    }
    Some(
        match path.strip_prefix("sys/net/")? {
            "core/rmem_default" | "core/rmem_max" | "core/wmem_default" | "core/wmem_max" => "212992\n",
            "core/somaxconn" => "4096\n",
            "core/optmem_max" => "20480\n",
            "core/netdev_max_backlog" => "1000\n",
            "ipv4/ip_forward" => "0\n",
            "ipv4/ip_local_port_range" => "32768\t60999\n",
            "ipv4/ip_unprivileged_port_start" => "1024\n",
            "ipv4/ip_default_ttl" => "64\n",
            "ipv4/ping_group_range" => "0\t2147483647\n",
            "ipv4/tcp_max_syn_backlog" => "1024\n",
            "ipv4/tcp_syncookies" => "1\n",
            "ipv4/tcp_keepalive_time" => "7200\n",
            "ipv4/tcp_keepalive_intvl" => "75\n",
            "ipv4/tcp_keepalive_probes" => "9\n",
            "ipv4/tcp_fin_timeout" => "60\n",
            "ipv4/tcp_congestion_control" => "cubic\n",
            "ipv4/tcp_available_congestion_control" => "cubic\n",
            "ipv4/tcp_rmem" => "4096\t131072\t6291456\n",
            "ipv4/tcp_wmem" => "4096\t16384\t4194304\n",
            "ipv6/conf/all/disable_ipv6" | "ipv6/conf/default/disable_ipv6" => "0\n",
            "ipv6/bindv6only" => "0\n",
            _ => return None,
        }
        .into(),
    )
}

fn text(network: &Network, name: &str) -> Option<String> {
    let tcp = |kind: Kind, wanted: Family| matches!(kind, Kind::Tcp(family) if family == wanted);
    let udp = |kind: Kind, wanted: Family| matches!(kind, Kind::Udp(family) if family == wanted);
    let raw = |kind: Kind, wanted: Family| matches!(kind, Kind::Raw(family, _) if family == wanted);
    let icmp = |kind: Kind, wanted: Family| matches!(kind, Kind::IcmpEcho(family) if family == wanted);
    Some(match name {
        "dev" => devices(network),
        "tcp" => sockets(network, |kind| tcp(kind, Family::V4), false, true),
        "tcp6" => sockets(network, |kind| tcp(kind, Family::V6), true, true),
        "udp" => sockets(network, |kind| udp(kind, Family::V4), false, false),
        "udp6" => sockets(network, |kind| udp(kind, Family::V6), true, false),
        "raw" => sockets(network, |kind| raw(kind, Family::V4), false, false),
        "raw6" => sockets(network, |kind| raw(kind, Family::V6), true, false),
        "icmp" => sockets(network, |kind| icmp(kind, Family::V4), false, false),
        "icmp6" => sockets(network, |kind| icmp(kind, Family::V6), true, false),
        "route" => routes(network),
        "if_inet6" => addresses(network),
        "arp" => neighbours(network),
        "sockstat" => statistics(network),
        _ => return None,
    })
}

/// The text of /proc/net/dev: what went through the interfaces.
fn devices(network: &Network) -> String {
    let mut text = String::from(
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo \
         colls carrier compressed\n",
    );
    let mut line = |interface: &Interface| {
        let c = &interface.counters;
        let _ = writeln!(
            text,
            "{:>6}: {:7} {:7} {:4} {:4}    0     0          0 {:9} {:8} {:7} {:4} {:4}    0     0       0          0",
            interface.name,
            c.received_bytes,
            c.received_packets,
            c.received_errors,
            c.received_drops,
            c.received_multicast,
            c.sent_bytes,
            c.sent_packets,
            c.sent_errors,
            c.sent_drops,
        );
    };
    network.with(Internet::interfaces).iter().for_each(&mut line);
    text
}

/// An address and port as the files of sockets show them: words of the address as numbers.
fn shown(address: SocketAddr, v6: bool) -> String {
    let words = |octets: &[u8]| {
        let words =
            octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        words.map(|word| format!("{word:08X}")).collect::<String>()
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) if v6 && ip.is_unspecified() => words(&[0; 16]),
        IpAddr::V4(ip) if v6 => words(&ip.to_ipv6_mapped().octets()),
        IpAddr::V4(ip) => words(&ip.octets()),
        IpAddr::V6(ip) => words(&ip.octets()),
    };
    format!("{ip}:{:04X}", address.port())
}

/// The text of a file that lists the sockets of one protocol and family.
fn sockets(network: &Network, is_wanted: impl Fn(Kind) -> bool, v6: bool, is_tcp: bool) -> String {
    /// Times are shown in hundredths of seconds.
    const TICK_MILLISECONDS: u128 = 10;
    let column = if v6 { " ".repeat(24) } else { String::new() };
    let first = if v6 { "remote_address" } else { "rem_address  " };
    let mut text =
        format!("  sl  local_address{column} {first}{column} st tx_queue rx_queue tr tm->when retrnsmt");
    text += "   uid  timeout inode";
    text += if is_tcp { "\n" } else { " ref pointer drops\n" };
    let entries = network.sockets().into_iter().filter(|entry| is_wanted(entry.info.kind));
    for (index, SocketEntry { info, user, inode }) in entries.enumerate() {
        let (local, remote) = (shown(info.local, v6), shown(info.remote, v6));
        let (timer, when) = info.timer.map_or((0, 0), |(timer, time)| {
            let kind = match timer {
                Timer::Retransmission => 1,
                Timer::KeepAlive => 2,
                Timer::TimeWait => 3,
                Timer::Probe => 4,
            };
            (kind, time.as_millis() / TICK_MILLISECONDS)
        });
        // The file does not show the backlog.
        let send = if info.state == State::Listen { 0 } else { info.send_queue };
        let receive = info.receive_queue;
        let state = state_number(info.state);
        let _ = write!(
            text,
            "{index:4}: {local} {remote} {state:02X} {send:08X}:{receive:08X} {timer:02X}:{when:08X} 00000000 \
             {user:5}        0 {inode} 1 0000000000000000"
        );
        text += &if is_tcp { String::from("\n") } else { format!(" {}\n", info.drops) };
    }
    text
}

/// The text of /proc/net/route: the routes of IPv4.
fn routes(network: &Network) -> String {
    let mut text =
        String::from("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n");
    network.with(|stack| {
        for route in stack.routes() {
            let IpAddr::V4(to) = route.destination.address else { continue };
            let Some(interface) = stack.interface(route.interface) else { continue };
            if interface.loopback {
                continue;
            }
            let word = |ip: core::net::Ipv4Addr| u32::from_ne_bytes(ip.octets());
            let gateway = match route.gateway {
                Some(IpAddr::V4(ip)) => word(ip),
                _ => 0,
            };
            let length = route.destination.length;
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0).to_be();
            let flags = 1 | if gateway != 0 { 2 } else { 0 } | if length == 32 { 4 } else { 0 };
            let _ = writeln!(
                text,
                "{}\t{:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t{}\t{mask:08X}\t0\t0\t0",
                interface.name,
                word(to),
                route.metric,
            );
        }
    });
    text
}

/// The text of /proc/net/if_inet6: the addresses of IPv6.
fn addresses(network: &Network) -> String {
    let mut text = String::new();
    network.with(|stack| {
        for address in stack.addresses() {
            let IpAddr::V6(ip) = address.prefix.address else { continue };
            let Some(interface) = stack.interface(address.interface) else { continue };
            let scope = match ip {
                ip if ip.is_loopback() => 0x10,
                ip if ip.is_unicast_link_local() => 0x20,
                _ => 0,
            };
            let flags = if address.tentative { 0xc0 } else { 0x80 };
            let octets = ip.octets().iter().map(|octet| format!("{octet:02x}")).collect::<String>();
            let (index, length) = (address.interface.0, address.prefix.length);
            let _ = writeln!(
                text,
                "{octets} {index:02x} {length:02x} {scope:02x} {flags:02x} {:>8}",
                interface.name
            );
        }
    });
    text
}

/// The text of /proc/net/arp: the neighbours of IPv4.
fn neighbours(network: &Network) -> String {
    let mut text =
        String::from("IP address       HW type     Flags       HW address            Mask     Device\n");
    network.with(|stack| {
        for neighbour in stack.neighbours() {
            let IpAddr::V4(ip) = neighbour.address else { continue };
            let Some(interface) = stack.interface(neighbour.interface) else { continue };
            let flags = match (neighbour.mac, neighbour.state) {
                (_, NeighbourState::Permanent) => 6,
                (Some(_), _) => 2,
                (None, _) => 0,
            };
            let mac = hardware_address(neighbour.mac.unwrap_or_default());
            let ip = format!("{ip}");
            let _ =
                writeln!(text, "{ip:<16} 0x1         0x{flags:<10x}{mac}     *        {}", interface.name);
        }
    });
    text
}

/// A hardware address, as files show it.
pub(crate) fn hardware_address(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// The text of /proc/net/sockstat: how many sockets there are.
fn statistics(network: &Network) -> String {
    let (mut tcp, mut wait, mut udp, mut raw) = (0, 0, 0, 0);
    for SocketEntry { info, .. } in network.sockets() {
        match info.kind {
            Kind::Tcp(_) if info.state == inet::State::TimeWait => wait += 1,
            Kind::Tcp(_) => tcp += 1,
            Kind::Udp(_) => udp += 1,
            Kind::Raw(..) | Kind::IcmpEcho(_) | Kind::Packet { .. } => raw += 1,
        }
    }
    format!(
        "sockets: used {}\nTCP: inuse {tcp} orphan 0 tw {wait} alloc {tcp} mem 0\nUDP: inuse {udp} mem 0\n\
         UDPLITE: inuse 0\nRAW: inuse {raw}\nFRAG: inuse 0 memory 0\n",
        tcp + udp + raw
    )
}
