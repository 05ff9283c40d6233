//! Tests of whole stacks.

mod cable;
mod changes;
mod dhcp;
mod discovery;
mod hostile;
mod loopback;
mod packets;
mod placement;
mod rules;
mod wrap;

use crate::*;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

pub(crate) fn stack() -> Stack {
    Stack::new([7; 32], Limits::default())
}

pub(crate) fn v4(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

pub(crate) fn v6(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port)
}

/// A listener at an address.
pub(crate) fn listener(stack: &mut Stack, address: SocketAddr) -> SocketId {
    let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
    let id = stack.open(Kind::Tcp(family)).unwrap();
    stack.configure(id, |options| options.reuse_address = true).unwrap();
    stack.bind(id, address).unwrap();
    stack.listen(id, 16).unwrap();
    id
}

/// Two ends of a connection over `lo`.
pub(crate) fn pair(stack: &mut Stack, address: SocketAddr) -> (SocketId, SocketId) {
    let listener = listener(stack, address);
    let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
    let client = stack.open(Kind::Tcp(family)).unwrap();
    assert_eq!(stack.connect(client, address), Ok(Connect::Done));
    let (server, peer) = stack.accept(listener).unwrap();
    assert_eq!(Ok(peer), stack.local_address(client));
    stack.close(listener);
    (client, server)
}

pub(crate) fn send(stack: &mut Stack, id: SocketId, data: &[u8]) -> Result<usize> {
    stack.send(id, data, None, SendFlags::default())
}

pub(crate) fn receive(stack: &mut Stack, id: SocketId) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 1 << 20];
    let received = stack.receive_from(id, &mut buffer, ReceiveFlags::default())?;
    buffer.truncate(received.copied);
    Ok(buffer)
}

pub(crate) fn seconds(stack: &mut Stack, from: &mut Instant, count: u64) {
    for _ in 0..count * 10 {
        *from = *from + Duration::from_millis(100);
        stack.advance(*from);
    }
}

pub(crate) fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at + seed).wrapping_mul(2654435761) >> 13) as u8).collect()
}
