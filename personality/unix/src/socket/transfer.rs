//! Sending and receiving on sockets (sendmsg(2), recvmsg(2)).

use super::rights::Rights;
use super::unix::{Message, Role, State, UnixSocket};
use super::{PeerCredentials, SocketType, UnixAddress};
use crate::file::OpenFile;
use crate::poll::{Readiness, until_ready_or_deadline};
use crate::sync::delay;
use crate::user_buffer::{copy_in_all, copy_out_all, resolve_message};
use crate::vfs::Caller;
use crate::{AttemptError, Error, Privilege, Result, UserBuffer};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;

/// Bytes that are counted for each message in addition to its contents.
const OVERHEAD: usize = 64;
/// The most bytes of a stream that are put into the inbox as one message.
const PIECE: usize = 65536;
/// Bytes of a stream are appended to the last message of the inbox until that has this many.
const JOINED: usize = 16384;

/// What is sent along with the bytes, and how.
#[derive(Default)]
pub struct SendHow {
    /// The address of the receiver; `None` for the connected peer.
    pub destination: Option<UnixAddress>,
    /// Open files to pass with the message (SCM_RIGHTS).
    pub files: Vec<Arc<OpenFile>>,
    /// The sender's limit of descriptors (RLIMIT_NOFILE), which is that of descriptors in flight as
    /// well.
    pub descriptor_limit: u64,
    /// The credentials that the receiver sees (SCM_CREDENTIALS); `None` for the sender's own.
    pub credentials: Option<PeerCredentials>,
    /// Whether to fail with `EAGAIN` instead of waiting (MSG_DONTWAIT).
    pub nonblock: bool,
}

/// How a message is received.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveHow {
    /// Whether to leave the message in the queue (MSG_PEEK).
    pub peek: bool,
    /// Whether to wait until the buffer is full (MSG_WAITALL; streams).
    pub wait_all: bool,
    /// Whether to fail with `EAGAIN` instead of waiting (MSG_DONTWAIT).
    pub nonblock: bool,
}

/// What recvmsg(2) returns in addition to the bytes.
#[derive(Default)]
pub struct Received {
    /// How many bytes were copied to the receiver.
    pub count: usize,
    /// The length of the whole message; bytes that were not copied are lost (MSG_TRUNC).
    pub length: usize,
    /// The address of the socket that sent the message.
    pub source: UnixAddress,
    /// The files that were passed with the message.
    pub files: Vec<Arc<OpenFile>>,
    /// The sender's credentials; `None` at the end of a stream.
    pub credentials: Option<PeerCredentials>,
}

impl State {
    /// Records a sender that waits for room in this socket's inbox.
    pub(super) fn note_waiting(&mut self, sender: &UnixSocket) {
        self.waiting.retain(|waiting| waiting.strong_count() > 0);
        if !self.waiting.iter().any(|waiting| waiting.ptr_eq(&sender.this)) {
            self.waiting.push(sender.this.clone());
        }
    }

    /// How many bytes of a stream the inbox still takes.
    fn room(&self) -> usize {
        self.options.receive_buffer.saturating_sub(self.queued)
    }
}

impl UnixSocket {
    /// Sends a message, or bytes of a stream (all of them, unless it must not wait). `EPIPE` if the
    /// receiver does not receive any more, `EMSGSIZE`, `ENOTCONN`, `ECONNREFUSED`.
    pub async fn send(&self, caller: &Caller<'_>, from: &mut dyn UserBuffer, send: SendHow) -> Result<usize> {
        let credentials = self.check_credentials(caller, send.credentials)?;
        let destination = match &send.destination {
            Some(_) if self.kind == SocketType::Stream => {
                return Err(if self.peer_address().is_ok() { Error::EISCONN } else { Error::EOPNOTSUPP });
            }
            Some(_) if self.kind == SocketType::Packets => None,
            // No reference to the receiver is held while waiting: when the receiver is closed, the
            // waiting senders are woken.
            Some(address) => Some(Arc::downgrade(&UnixSocket::find(caller, address).await?)),
            None => None,
        };
        let mut rights = Rights::new(send.files, caller, send.descriptor_limit)?;
        let start = from.transferred();
        let environment = &*caller.vfs.environment;
        let timeout = self.options().send_timeout.map(|t| environment.monotonic() + t);
        let deadline = if send.nonblock { Some(Duration::ZERO) } else { timeout };
        loop {
            let attempt = until_ready_or_deadline(&self.queue, Readiness::WRITE, environment, |_| {
                self.try_send(credentials, from, &mut rights, destination.as_ref())
                    .map_err(|not_done| (not_done, deadline))
            });
            let error = match attempt.await {
                Ok(_) if from.remaining() == 0 || self.kind != SocketType::Stream => {
                    return Ok(from.transferred() - start);
                }
                Ok(_) => continue,
                Err(AttemptError::NotResident) => {
                    let count = self.whole(from.remaining());
                    match resolve_message(from, count, false).await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(AttemptError::WouldBlock) => Error::EAGAIN,
                Err(AttemptError::Failed(error)) => error,
            };
            let sent = from.transferred() - start;
            return if sent > 0 && self.kind == SocketType::Stream { Ok(sent) } else { Err(error) };
        }
    }

    fn check_credentials(
        &self,
        caller: &Caller<'_>,
        shown: Option<PeerCredentials>,
    ) -> Result<PeerCredentials> {
        let own = PeerCredentials::of(caller);
        let Some(shown) = shown else { return Ok(own) };
        let (any_user, any_group) =
            (caller.identity.has_own(Privilege::SetUser), caller.identity.has_own(Privilege::SetGroup));
        let process = shown.process == own.process || caller.identity.has(Privilege::Administrator);
        if !process
            || (!any_user && shown.user != own.user)
            || (!any_group && !caller.identity.in_group(shown.group))
        {
            return Err(Error::EPERM);
        }
        Ok(shown)
    }

    /// Tries once to send. The files in `rights` are sent with the first bytes.
    pub(super) fn try_send(
        &self,
        credentials: PeerCredentials,
        from: &mut dyn UserBuffer,
        rights: &mut Rights,
        destination: Option<&Weak<UnixSocket>>,
    ) -> Result<usize, AttemptError> {
        let (source, limit, connected) = {
            let mut state = self.state.lock();
            if let Some(error) = state.error.take() {
                return Err(error.into());
            }
            if state.write_ended {
                return Err(Error::EPIPE.into());
            }
            let connected = match &state.role {
                Role::Connected(peer) => Some(peer.upgrade()),
                _ => None,
            };
            (state.address.clone(), state.options.send_buffer, connected)
        };
        delay("socket sends");
        let is_datagram = self.kind == SocketType::Datagram;
        let target = match (destination, connected) {
            (Some(target), _) => target.upgrade().ok_or(Error::ECONNREFUSED)?,
            (None, Some(Some(peer))) => peer,
            (None, Some(None)) if is_datagram => return Err(Error::ECONNREFUSED.into()),
            (None, Some(None)) => return Err(Error::EPIPE.into()),
            (None, None) => return Err(Error::ENOTCONN.into()),
        };
        if destination.is_some() && target.kind != self.kind {
            return Err(Error::EPROTOTYPE.into());
        }
        let sent = match self.kind {
            SocketType::Stream => target.take_piece(self, credentials, from, rights)?,
            _ => {
                if from.remaining() > limit {
                    return Err(Error::EMSGSIZE.into());
                }
                target.take_message(self, credentials, source, from, rights)?
            }
        };
        target.queue.wake(Readiness::READ);
        Ok(sent)
    }

    /// Puts bytes of a stream into the inbox of this socket, the receiver.
    fn take_piece(
        &self,
        sender: &UnixSocket,
        credentials: PeerCredentials,
        from: &mut dyn UserBuffer,
        rights: &mut Rights,
    ) -> Result<usize, AttemptError> {
        if from.remaining() == 0 {
            return Ok(0);
        }
        let mut state = self.state.lock();
        if state.read_ended {
            // Reading was shut down after the sender looked. The reader may have seen the end
            // already, and nothing must come after that.
            return Err(Error::EPIPE.into());
        }
        let room = state.room().saturating_sub(OVERHEAD);
        if room == 0 {
            state.note_waiting(sender);
            return Err(AttemptError::WouldBlock);
        }
        let count = from.remaining().min(room).min(PIECE);
        let joined = state.inbox.back_mut().filter(|last| {
            rights.is_empty() && last.credentials == credentials && last.bytes.len() + count <= JOINED
        });
        if let Some(last) = joined {
            let before = last.charge.amount();
            if !last.charge.change_memory(before + count as u64) {
                return Err(Error::ENOBUFS.into());
            }
            let copied = append(&mut last.bytes, count, from);
            let added = copied.as_ref().map_or(0, |copied| *copied as u64);
            last.charge.change_memory(before + added);
            let copied = copied?;
            state.queued += copied;
            return Ok(copied);
        }
        let charge = sender.account.charge_memory((count + OVERHEAD) as u64);
        let mut charge = charge.ok_or(Error::ENOBUFS)?;
        let mut bytes = Vec::new();
        let copied = append(&mut bytes, count, from)?;
        charge.change_memory((copied + OVERHEAD) as u64);
        let rights = core::mem::take(rights);
        state.queued += copied + OVERHEAD;
        let source = UnixAddress::Unnamed;
        state.inbox.push_back(Message { bytes, read: 0, rights, credentials, source, charge });
        Ok(copied)
    }

    /// Puts a whole message into the inbox of this socket, the receiver.
    fn take_message(
        &self,
        sender: &UnixSocket,
        credentials: PeerCredentials,
        source: UnixAddress,
        from: &mut dyn UserBuffer,
        rights: &mut Rights,
    ) -> Result<usize, AttemptError> {
        let mut state = self.state.lock();
        if state.read_ended {
            return Err(Error::EPIPE.into());
        }
        let length = from.remaining();
        // An empty inbox takes even a message that is larger than its limit.
        if !state.inbox.is_empty() && state.room() < length + OVERHEAD {
            state.note_waiting(sender);
            return Err(AttemptError::WouldBlock);
        }
        let charge = sender.account.charge_memory((length + OVERHEAD) as u64).ok_or(Error::ENOBUFS)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::ENOBUFS)?;
        bytes.resize(length, 0);
        copy_in_all(from, &mut bytes)?;
        state.queued += length + OVERHEAD;
        let rights = core::mem::take(rights);
        state.inbox.push_back(Message { bytes, read: 0, rights, credentials, source, charge });
        Ok(length)
    }

    /// Whether a send would not wait; otherwise this sender is recorded as waiting.
    pub(super) fn can_send(&self) -> bool {
        if self.state.lock().write_ended {
            return true;
        }
        let Some(peer) = self.peer() else { return self.kind == SocketType::Datagram };
        let mut state = peer.state.lock();
        let free = match self.kind {
            SocketType::Stream => state.room() > OVERHEAD,
            // There is room for a message of a usual size, a quarter of the buffer.
            _ => state.inbox.is_empty() || state.room() >= state.options.receive_buffer / 4,
        };
        if !free {
            state.note_waiting(self);
        }
        free
    }

    /// Receives a message, or bytes of a stream.
    pub async fn receive(
        &self,
        caller: &Caller<'_>,
        to: &mut dyn UserBuffer,
        how: ReceiveHow,
    ) -> Result<Received> {
        let environment = &*caller.vfs.environment;
        let timeout = self.options().receive_timeout.map(|t| environment.monotonic() + t);
        let deadline = if how.nonblock { Some(Duration::ZERO) } else { timeout };
        let mut all: Option<Received> = None;
        // A message can be received by only one of the threads that wait, so a new message wakes
        // only one of them.
        let left = || !self.state.lock().inbox.is_empty();
        let of_messages: Option<&(dyn Fn() -> bool + Sync)> = match self.kind {
            SocketType::Stream => None,
            _ => Some(&left),
        };
        loop {
            let attempt = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
                self.try_receive(to, how.peek).map_err(|not_done| (not_done, deadline))
            });
            let error = match attempt.exclusive(of_messages).await {
                Ok(received) => {
                    let count = received.count;
                    let total = match all.take() {
                        None => received,
                        Some(mut total) => {
                            total.count += count;
                            total.length += count;
                            total.files.extend(received.files);
                            total
                        }
                    };
                    let more = how.wait_all && !how.peek && self.kind == SocketType::Stream;
                    if !more || count == 0 || to.remaining() == 0 || !total.files.is_empty() {
                        return Ok(total);
                    }
                    all = Some(total);
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
            return all.ok_or(error);
        }
    }

    /// How many bytes of a buffer a transfer needs at a time: all `length` of a message, and any of
    /// a stream.
    fn whole(&self, length: usize) -> usize {
        if self.kind == SocketType::Stream { 1 } else { length }
    }

    /// How many bytes the first message of the inbox has.
    fn queued(&self) -> usize {
        self.state.lock().inbox.front().map_or(0, |message| message.bytes.len())
    }

    /// Tries once to receive, without blocking.
    pub(super) fn try_receive(&self, to: &mut dyn UserBuffer, peek: bool) -> Result<Received, AttemptError> {
        let mut state = self.state.lock();
        if self.kind != SocketType::Datagram && !matches!(state.role, Role::Connected(_)) {
            // A listening socket gives the errors of a socket without a connection.
            let listening = matches!(state.role, Role::Listening { .. });
            let invalid = listening || self.kind == SocketType::Stream;
            return Err(if invalid { Error::EINVAL } else { Error::ENOTCONN }.into());
        }
        if state.inbox.is_empty() {
            if let Some(error) = state.error.take() {
                return Err(error.into());
            }
            return if state.read_ended { Ok(Received::default()) } else { Err(AttemptError::WouldBlock) };
        }
        if self.kind == SocketType::Stream && to.remaining() == 0 {
            return Ok(Received::default());
        }
        let (received, gone) = match self.kind {
            SocketType::Stream => state.take_bytes(to, peek)?,
            _ => state.take_front(to, peek)?,
        };
        let waiting = if peek { Vec::new() } else { core::mem::take(&mut state.waiting) };
        drop(state);
        drop(gone);
        self.wake_senders(waiting);
        Ok(received)
    }
}

impl State {
    /// Copies the first message to the receiver's buffer and removes it from the inbox.
    fn take_front(
        &mut self,
        to: &mut dyn UserBuffer,
        peek: bool,
    ) -> Result<(Received, Vec<Message>), AttemptError> {
        let message = self.inbox.front().ok_or(AttemptError::WouldBlock)?;
        let length = message.bytes.len();
        let count = length.min(to.remaining());
        copy_out_all(to, &message.bytes[..count])?;
        let mut received = Received {
            count,
            length,
            source: message.source.clone(),
            files: Vec::new(),
            credentials: Some(message.credentials),
        };
        if peek {
            received.files = message.rights.copy();
            return Ok((received, Vec::new()));
        }
        let mut message = self.inbox.pop_front().ok_or(AttemptError::WouldBlock)?;
        self.queued -= length + OVERHEAD;
        received.files = core::mem::take(&mut message.rights).take();
        Ok((received, alloc::vec![message]))
    }

    /// Copies bytes of a stream to the receiver's buffer. A read may span several messages of the
    /// inbox, but it does not continue into one that carries files, nor into one of another sender
    /// if credentials are delivered.
    fn take_bytes(
        &mut self,
        to: &mut dyn UserBuffer,
        peek: bool,
    ) -> Result<(Received, Vec<Message>), AttemptError> {
        let mut received = Received::default();
        let mut gone = Vec::new();
        let mut index = 0;
        while to.remaining() > 0
            && let Some(message) = self.inbox.get_mut(index)
        {
            if received.count > 0 {
                let other = received.credentials != Some(message.credentials);
                if !message.rights.is_empty() || (self.options.pass_credentials && other) {
                    break;
                }
            }
            let copied = match to.copy_out(&message.bytes[message.read..]) {
                Ok(copied) => copied,
                Err(_) if received.count > 0 => break,
                Err(error) => return Err(error.into()),
            };
            received.count += copied;
            received.credentials = Some(message.credentials);
            let had_files = !message.rights.is_empty();
            let whole = message.read + copied == message.bytes.len();
            if peek {
                received.files.extend(message.rights.copy());
                index += 1;
            } else {
                received.files.extend(core::mem::take(&mut message.rights).take());
                message.read += copied;
                self.queued -= copied;
                if whole {
                    self.queued -= OVERHEAD;
                    gone.extend(self.inbox.pop_front());
                }
            }
            if !whole || had_files {
                break;
            }
        }
        received.length = received.count;
        Ok((received, gone))
    }
}

/// Appends up to `count` bytes of the sender's buffer to `bytes`.
fn append(bytes: &mut Vec<u8>, count: usize, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
    let start = bytes.len();
    bytes.try_reserve(count).map_err(|_| Error::ENOBUFS)?;
    bytes.resize(start + count, 0);
    let copied = from.copy_in(&mut bytes[start..]);
    bytes.truncate(start + copied.unwrap_or(0));
    Ok(copied?)
}
