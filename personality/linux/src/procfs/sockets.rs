//! The files in /proc/net that list sockets of families other than those of the internet: the
//! sockets that descriptors of processes name.

use crate::layout::socket::to_socket_type;
use crate::socket::{Address, Socket};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use mach::Machine;
use unix::socket::UnixAddress;
use unix::thread::System;

/// The text of the file with this path below /proc; `None` if it lists no such sockets.
pub(super) fn file<M: Machine>(system: &System<M>, path: &str) -> Option<String> {
    let (head, line): (_, fn(u64, &Socket) -> Option<String>) = match path {
        "net/unix" => ("Num       RefCount Protocol Flags    Type St Inode Path\n", of_unix),
        "net/netlink" => (
            "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n",
            of_netlink,
        ),
        "net/packet" => ("sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n", of_packets),
        _ => return None,
    };
    let lines = all(system).into_iter().filter_map(|(inode, socket)| line(inode, &socket));
    Some(String::from(head) + &lines.collect::<String>())
}

/// The sockets that descriptors name, by their numbers as files.
fn all<M: Machine>(system: &System<M>) -> BTreeMap<u64, Socket> {
    let mut sockets = BTreeMap::new();
    for process in system.process_ids() {
        let Some(thread) = system.thread_of_process(process) else { continue };
        let descriptors = thread.descriptors();
        let files = descriptors.list().into_iter().filter_map(|number| descriptors.get(number).ok());
        sockets.extend(files.filter_map(|file| {
            let socket = Socket::of(&file)?;
            Some((file.metadata().number, socket))
        }));
    }
    sockets
}

fn of_unix(inode: u64, socket: &Socket) -> Option<String> {
    const LISTENS: u32 = 0x1_0000;
    let Socket::Unix(unix) = socket else { return None };
    let flags = if unix.is_listening() { LISTENS } else { 0 };
    let state = if unix.peer_address().is_ok() { 3 } else { 1 };
    let kind = to_socket_type(unix.kind());
    let name = match unix.address() {
        UnixAddress::Unnamed => String::new(),
        UnixAddress::Path(path) => format!(" {}", String::from_utf8_lossy(&path)),
        // A name without a file is shown with a mark before it, and zeros as that mark.
        UnixAddress::Abstract(name) => {
            format!(" @{}", String::from_utf8_lossy(&name).replace('\0', "@"))
        }
    };
    let place = "0000000000000000";
    Some(format!("{place}: 00000002 00000000 {flags:08X} {kind:04X} {state:02X} {inode:5}{name}\n"))
}

fn of_netlink(inode: u64, socket: &Socket) -> Option<String> {
    let (Socket::Netlink(_), Ok(Address::Netlink(address))) = (socket, socket.address()) else {
        return None;
    };
    let (place, protocol, zero) = ("0000000000000000", socket.protocol(), 0);
    Some(format!(
        "{place} {protocol:<3} {:<10} {:08x} {zero:<8} {zero:<8} {zero:<5} 2        {zero:<8} {inode:<8}\n",
        address.port(),
        address.groups(),
    ))
}

fn of_packets(inode: u64, socket: &Socket) -> Option<String> {
    let (Socket::Packet(packet), Ok(Address::Packet(address))) = (socket, socket.address()) else {
        return None;
    };
    let place = "0000000000000000";
    let kind = to_socket_type(socket.kind());
    let (protocol, interface, user) = (address.protocol(), address.interface(), packet.inner().user());
    // Whether it receives anything.
    let runs = u8::from(protocol != 0);
    Some(format!(
        "{place} 3      {kind:<4} {protocol:04x}   {interface:<5} {runs} 0      {user:<6} {inode:<6}\n"
    ))
}
