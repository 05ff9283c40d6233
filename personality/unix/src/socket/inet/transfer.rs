//! Sending and receiving on sockets of internet domains.

use super::InetSocket;
use crate::network::attempt;
use crate::poll::{Readiness, until_ready_or_deadline};
use crate::socket::SocketType;
use crate::user_buffer::{copy_in_all, copy_out_all, resolve_message};
use crate::vfs::Caller;
use crate::{AttemptError, Error, Result, UserBuffer};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use inet::{ErrorReport, HeaderOptions, InterfaceIndex, LinkHeader, ReceiveFlags, SendFlags, State};

/// The most bytes of a stream that are given to the stack at a time.
const PIECE: usize = 65536;
/// The most bytes of a datagram.
const DATAGRAM: usize = 65535;
/// The most bytes of a frame, with its header.
const FRAME: usize = 65536 + 14;
/// Up to this many bytes are copied through a buffer that need not be allocated.
const SMALL: usize = 512;

/// How a message is received.
#[derive(Clone, Copy, Debug, Default)]
pub struct InetReceiveHow {
    /// Whether to leave the message in the queue (MSG_PEEK).
    pub peek: bool,
    /// Whether to wait until the buffer is full (MSG_WAITALL; streams).
    pub wait_all: bool,
    /// Whether urgent data is asked for (MSG_OOB; streams).
    pub urgent: bool,
    /// Whether bytes of a stream are discarded instead of being copied (MSG_TRUNC).
    pub discard: bool,
    /// Whether to fail with `EAGAIN` instead of waiting (MSG_DONTWAIT).
    pub nonblock: bool,
}

/// What recvmsg(2) returns in addition to the bytes.
#[derive(Clone, Debug, Default)]
pub struct InetReceived {
    /// How many bytes were copied to the receiver, or discarded.
    pub count: usize,
    /// The length of the whole message; bytes that were not copied are lost.
    pub length: usize,
    /// The address of the sender; `None` for streams.
    pub source: Option<SocketAddr>,
    /// The address to which the message was sent.
    pub destination: Option<IpAddr>,
    /// The interface at which the message arrived.
    pub interface: Option<InterfaceIndex>,
    /// The hop limit of the message.
    pub hops: u8,
    /// The type of service, or traffic class, of the message.
    pub traffic_class: u8,
    /// When the message arrived ([`crate::Environment::monotonic`]).
    pub time: Duration,
    /// The options in the header of the packet (IPv4).
    pub options: HeaderOptions,
    /// The header of the frame, for a packet socket.
    pub link: Option<LinkHeader>,
}

impl InetSocket {
    /// Sends a message, or bytes of a stream (all of them, unless it must not wait). `EPIPE`,
    /// `EMSGSIZE`, `ENOTCONN`, `EDESTADDRREQ`, the socket's error, those of routes.
    pub async fn send(
        &self,
        caller: &Caller<'_>,
        from: &mut dyn UserBuffer,
        destination: Option<SocketAddr>,
        flags: SendFlags,
        nonblock: bool,
    ) -> Result<usize> {
        let is_stream = self.kind() == SocketType::Stream;
        // A stream ignores the destination, and says so if it has no peer.
        let destination = if is_stream { None } else { destination };
        let start = from.transferred();
        let environment = &*caller.vfs.environment;
        let timeout = self.options().send_timeout.map(|t| environment.monotonic() + t);
        let deadline = if nonblock { Some(Duration::ZERO) } else { timeout };
        loop {
            let attempt = until_ready_or_deadline(&self.queue, Readiness::WRITE, environment, |_| {
                self.try_send(from, destination, flags).map_err(|not_done| (not_done, deadline))
            });
            let error = match attempt.await {
                Ok(_) if from.remaining() == 0 || !is_stream => return Ok(from.transferred() - start),
                Ok(_) => continue,
                Err(AttemptError::NotResident) => {
                    match resolve_message(from, self.whole(DATAGRAM), false).await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(AttemptError::WouldBlock) => Error::EAGAIN,
                Err(AttemptError::Failed(error)) => error,
            };
            let sent = from.transferred() - start;
            return if sent > 0 && is_stream { Ok(sent) } else { Err(error) };
        }
    }

    /// Tries once to send.
    pub(super) fn try_send(
        &self,
        from: &mut dyn UserBuffer,
        destination: Option<SocketAddr>,
        flags: SendFlags,
    ) -> Result<usize, AttemptError> {
        let is_stream = self.kind() == SocketType::Stream;
        let count = if is_stream { from.remaining().min(PIECE) } else { from.remaining() };
        if count > DATAGRAM && !is_stream {
            return Err(Error::EMSGSIZE.into());
        }
        let takes_nothing = |stack: &mut inet::Internet| {
            // A socket that listens is never ready for it: the stack has the error.
            !stack.readiness(self.id).write && stack.state(self.id) != Ok(State::Listen)
        };
        if is_stream && count > SMALL && self.network.with(takes_nothing) {
            // Nothing is copied for a stream that takes nothing.
            return Err(AttemptError::WouldBlock);
        }
        let mut small = [0; SMALL];
        let mut large = self.large(count);
        let bytes = buffer(&mut small, &mut large, count)?;
        let copied = copy_in(from, bytes)?;
        if copied < count && !is_stream {
            from.retreat(copied);
            return Err(AttemptError::NotResident);
        }
        // Urgent data is the last byte of all, not of this piece.
        let rest = from.remaining() > 0;
        let flags =
            SendFlags { urgent: flags.urgent && !rest, more: flags.more || (rest && is_stream), ..flags };
        let sent = self.network.with(|stack| stack.send(self.id, &bytes[..copied], destination, flags));
        self.network.keep_buffer(large);
        let kept = if is_stream { sent.unwrap_or(0) } else { copied * usize::from(sent.is_ok()) };
        from.retreat(copied - kept);
        attempt(sent)
    }

    /// Receives a message, or bytes of a stream.
    pub async fn receive(
        &self,
        caller: &Caller<'_>,
        to: &mut dyn UserBuffer,
        how: InetReceiveHow,
    ) -> Result<InetReceived> {
        let environment = &*caller.vfs.environment;
        let is_stream = self.kind() == SocketType::Stream;
        let timeout = self.options().receive_timeout.map(|t| environment.monotonic() + t);
        let deadline = if how.nonblock { Some(Duration::ZERO) } else { timeout };
        // A message can be received by only one of the threads that wait, so a new message wakes
        // only one of them.
        let left = || self.network.with(|stack| stack.readiness(self.id).read);
        let of_messages: Option<&(dyn Fn() -> bool + Sync)> = if is_stream { None } else { Some(&left) };
        let mut total = 0;
        loop {
            let attempt = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
                self.try_receive(to, how).map_err(|not_done| (not_done, deadline))
            });
            let error = match attempt.exclusive(of_messages).await {
                Ok(mut received) => {
                    let more = how.wait_all && !how.peek && is_stream;
                    let count = received.count;
                    total += count;
                    if !more || count == 0 || to.remaining() == 0 {
                        if is_stream {
                            (received.count, received.length) = (total, total);
                        }
                        return Ok(received);
                    }
                    continue;
                }
                Err(AttemptError::NotResident) => {
                    match resolve_message(to, self.whole(self.queued()), true).await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(AttemptError::WouldBlock) => Error::EAGAIN,
                Err(AttemptError::Failed(error)) => error,
            };
            let received = InetReceived { count: total, length: total, ..InetReceived::default() };
            return if total > 0 { Ok(received) } else { Err(error) };
        }
    }

    /// Tries once to send a frame by a packet socket: a whole frame, or a payload of this type to
    /// this hardware address if the socket has no headers. `EMSGSIZE`, `ENETDOWN`, `ENOBUFS`,
    /// `ENODEV`.
    pub fn try_send_frame(
        &self,
        from: &mut dyn UserBuffer,
        interface: InterfaceIndex,
        protocol: u16,
        to: [u8; 6],
    ) -> Result<usize, AttemptError> {
        let count = from.remaining();
        if count > FRAME {
            return Err(Error::EMSGSIZE.into());
        }
        let mut small = [0; SMALL];
        let mut large = self.large(count);
        let bytes = buffer(&mut small, &mut large, count)?;
        copy_in_all(from, bytes)?;
        let sent = self.network.with(|stack| stack.send_frame(self.id, bytes, interface, protocol, to));
        self.network.keep_buffer(large);
        attempt(sent)
    }

    /// Tries once to receive, without blocking.
    pub fn try_receive(
        &self,
        to: &mut dyn UserBuffer,
        how: InetReceiveHow,
    ) -> Result<InetReceived, AttemptError> {
        let is_stream = self.kind() == SocketType::Stream;
        self.network.with(|stack| {
            let wanted = if how.urgent { 1 } else { stack.expected(self.id).min(PIECE) };
            let count = wanted.min(to.remaining());
            let is_empty =
                |stack: &mut inet::Internet| stack.queued(self.id).is_ok_and(|all| all.receive == 0);
            if is_stream && to.remaining() == 0 && !is_empty(stack) {
                return Ok(InetReceived::default());
            }
            let mut small = [0; SMALL];
            let mut large = self.large(count);
            let bytes = buffer(&mut small, &mut large, count)?;
            let flags = ReceiveFlags { peek: true, discard: false, urgent: how.urgent };
            let received = attempt(stack.receive_from(self.id, bytes, flags))?;
            // The message is taken out of the queue only after the receiver has it.
            let copied = match (how.discard, is_stream) {
                (true, true) => {
                    to.skip(received.copied);
                    received.copied
                }
                (_, true) => copy_out(to, &bytes[..received.copied])?,
                (_, false) => {
                    copy_out_all(to, &bytes[..received.copied])?;
                    received.copied
                }
            };
            if !how.peek && (copied > 0 || !is_stream) {
                let flags = ReceiveFlags { peek: false, discard: is_stream, urgent: how.urgent };
                // A message leaves the queue whole, and need not be copied again for that.
                let taken = if is_stream { copied } else { 0 };
                attempt(stack.receive_from(self.id, &mut bytes[..taken], flags))?;
            }
            self.network.keep_buffer(large);
            Ok(InetReceived {
                count: copied,
                length: if is_stream { copied } else { received.length },
                source: received.from.map(|address| self.shown(address)),
                destination: received.to,
                interface: Some(received.interface),
                hops: received.hops,
                traffic_class: received.traffic_class,
                time: crate::network::duration(received.time),
                options: received.options,
                link: received.link,
            })
        })
    }

    /// Memory for a copy of `count` bytes that are not few.
    fn large(&self, count: usize) -> Vec<u8> {
        if count > SMALL { self.network.take_buffer() } else { Vec::new() }
    }

    /// How many bytes of a buffer a transfer needs at a time: all `length` of a message, and any of
    /// a stream.
    fn whole(&self, length: usize) -> usize {
        if self.kind() == SocketType::Stream { 1 } else { length }
    }

    /// How many bytes wait to be received; of messages, those of the first.
    fn queued(&self) -> usize {
        self.network.with(|stack| stack.queued(self.id).map_or(0, |queued| queued.receive))
    }

    /// Takes the next entry of the queue of errors (MSG_ERRQUEUE). `EAGAIN` if it is empty.
    pub fn take_report(&self) -> Result<ErrorReport> {
        self.network.with(|stack| stack.take_report(self.id)).ok_or(Error::EAGAIN)
    }
}

/// `count` bytes of memory for a copy: of `small` if they fit, else of `large`, which grows and has
/// old contents. `ENOBUFS`.
fn buffer<'a>(small: &'a mut [u8; SMALL], large: &'a mut Vec<u8>, count: usize) -> Result<&'a mut [u8]> {
    if count <= SMALL {
        return Ok(&mut small[..count]);
    }
    if large.len() < count {
        large.try_reserve_exact(count - large.len()).map_err(|_| Error::ENOBUFS)?;
        large.resize(count, 0);
    }
    Ok(&mut large[..count])
}

/// Copies from the sender until `bytes` are full or the next byte cannot be copied now.
fn copy_in(from: &mut dyn UserBuffer, bytes: &mut [u8]) -> Result<usize, AttemptError> {
    let mut done = 0;
    while done < bytes.len() {
        match from.copy_in(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(copied) => done += copied,
            Err(_) if done > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Copies to the receiver until `bytes` end or the next byte cannot be copied now.
fn copy_out(to: &mut dyn UserBuffer, bytes: &[u8]) -> Result<usize, AttemptError> {
    let mut done = 0;
    while done < bytes.len() {
        match to.copy_out(&bytes[done..]) {
            Ok(0) => break,
            Ok(copied) => done += copied,
            Err(_) if done > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}
