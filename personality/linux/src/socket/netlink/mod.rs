//! Sockets of netlink(7), by which programs ask for interfaces, addresses, routes and neighbours
//! (rtnetlink(7)) and for other sockets (sock_diag(7)). A request is answered when it is sent.

mod diagnosis;
mod message;
mod route;

use super::{MessageFlags, Received, Sending};
use crate::errno;
use crate::layout::{Fields, Writer};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use message::{ACKNOWLEDGE, CAPPED, DONE, DUMP, ERROR, MULTIPART, Message, REQUEST, Request, requests};
use unix::account::{Account, Charge, FILE_BYTES};
use unix::file::{FileObject, Io, OpenFile};
use unix::network::{ChangeListener, Network};
use unix::poll::{PollQueue, Readiness, until_ready_or_deadline};
use unix::socket::{SocketOptions, SocketType};
use unix::sync::SpinLock;
use unix::vfs::{Caller, FileType, OpenFlags};
use unix::{AttemptError, Error, Privilege, Result, UserBuffer};

/// The number of the family (AF_NETLINK).
pub(crate) const FAMILY_NETLINK: u16 = 16;
/// Bytes of struct sockaddr_nl.
const ADDRESS_SIZE: usize = 12;
/// The most bytes of one request.
const REQUEST_MAXIMUM: usize = 65536;
/// The most bytes of answers that wait to be received.
const ANSWERS_MAXIMUM: usize = 1 << 20;
/// Bytes that are charged for an answer in addition to its own.
const ENTRY: usize = 64;
/// Answers of a dump are joined until they have so many bytes.
const JOINED: usize = 4096;

/// The protocols of netlink that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Interfaces, addresses, routes (NETLINK_ROUTE).
    Route = 0,
    /// Sockets (NETLINK_SOCK_DIAG).
    Diagnosis = 4,
    /// Events of devices (NETLINK_KOBJECT_UEVENT), of which none is sent.
    Events = 15,
}

/// The address of a socket of netlink (struct sockaddr_nl).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetlinkAddress {
    port: u32,
    groups: u32,
}

impl NetlinkAddress {
    /// Reads a struct sockaddr_nl.
    fn from_bytes(bytes: &[u8]) -> Result<NetlinkAddress> {
        if bytes.len() < ADDRESS_SIZE || bytes.u16_at(0)? != FAMILY_NETLINK {
            return Err(Error::EINVAL);
        }
        Ok(NetlinkAddress { port: bytes.u32_at(4)?, groups: bytes.u32_at(8)? })
    }

    /// The number by which the socket is known to the system.
    pub(crate) fn port(self) -> u32 {
        self.port
    }

    /// The groups whose messages the socket receives, a bit for each.
    pub(crate) fn groups(self) -> u32 {
        self.groups
    }

    /// Writes a struct sockaddr_nl.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let bytes = Writer::<ADDRESS_SIZE>::new().u16(0, FAMILY_NETLINK).u32(4, self.port);
        bytes.u32(8, self.groups).done().to_vec()
    }
}

/// The options of netlink(7) that are kept and read back: PKTINFO, BROADCAST_ERROR, NO_ENOBUFS,
/// LISTEN_ALL_NSID, CAP_ACK, EXT_ACK, GET_STRICT_CHK.
const KEPT: [u32; 7] = [3, 4, NO_LOSS, 8, 10, 11, 12];
/// The option of a socket that is not told that messages were lost (NETLINK_NO_ENOBUFS).
const NO_LOSS: u32 = 5;
/// Groups have numbers from 1 to this.
const GROUPS: u32 = 64;

/// A socket of netlink.
pub(crate) struct NetlinkSocket {
    this: Weak<NetlinkSocket>,
    network: Arc<Network>,
    /// The user that made the socket, to which messages to groups are charged.
    account: Arc<Account>,
    protocol: Protocol,
    kind: SocketType,
    state: SpinLock<State>,
    queue: PollQueue,
    _charge: Charge,
}

#[derive(Default)]
struct State {
    /// The number by which the socket is known to the system; 0 as long as it has none.
    port: u32,
    /// The groups whose messages the socket receives, a bit for each, from group 1 on.
    groups: u64,
    /// The socket has asked to be told of changes.
    is_listening: bool,
    options: SocketOptions,
    /// The options of netlink(7) that are set, a bit for each.
    kept: u32,
    /// Each is one message for the receiver.
    answers: VecDeque<Answer>,
    /// How many bytes the answers have.
    queued: usize,
    /// Answers were lost, which the next receive says.
    has_lost: bool,
}

/// A message that waits to be received.
struct Answer {
    bytes: Vec<u8>,
    /// The group to which it was sent; 0 for the answer to a request.
    group: u32,
    /// To the user that asked, or for a message to a group to the one that made the socket.
    _charge: Charge,
}

impl State {
    /// Queues a message, or loses it if the queue would have more than `most` bytes. Whether it is
    /// there.
    fn queue(&mut self, account: &Arc<Account>, bytes: Vec<u8>, group: u32, most: usize) -> bool {
        let is_possible = self.queued + bytes.len() <= most;
        let charge = account.charge_memory((bytes.capacity() + ENTRY) as u64);
        let Some(charge) = charge.filter(|_| is_possible) else {
            match group {
                0 => self.has_lost = true,
                _ => self.lose(),
            }
            return false;
        };
        self.queued += bytes.len();
        self.answers.push_back(Answer { bytes, group, _charge: charge });
        true
    }

    /// A message to a group was lost, which the next receive says if the program wants it.
    fn lose(&mut self) {
        self.has_lost |= self.kept & 1 << NO_LOSS == 0;
    }
}

/// Makes a socket. `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`, `ENOMEM`.
pub(super) fn create(
    caller: &Caller<'_>,
    kind: u32,
    protocol: i32,
    flags: OpenFlags,
) -> Result<Arc<OpenFile>> {
    let kind = match kind {
        2 => SocketType::Datagram,
        3 => SocketType::Raw,
        _ => return Err(Error::ESOCKTNOSUPPORT),
    };
    let protocol = match protocol {
        0 => Protocol::Route,
        4 => Protocol::Diagnosis,
        15 => Protocol::Events,
        _ => return Err(Error::EPROTONOSUPPORT),
    };
    let charge = caller.process.account().charge_memory(FILE_BYTES).ok_or(Error::ENOMEM)?;
    let network = caller.vfs.network.clone();
    let account = caller.process.account();
    let (state, queue) = (SpinLock::new(State::default()), PollQueue::new());
    let make = |this: &Weak<NetlinkSocket>| {
        let this = this.clone();
        NetlinkSocket { this, network, account, protocol, kind, state, queue, _charge: charge }
    };
    Ok(OpenFile::of_object(Arc::new_cyclic(make), flags | OpenFlags::READ_WRITE))
}

impl NetlinkSocket {
    pub(super) fn kind(&self) -> SocketType {
        self.kind
    }

    pub(super) fn protocol(&self) -> u32 {
        self.protocol as u32
    }

    pub(super) fn options(&self) -> SocketOptions {
        self.state.lock().options
    }

    pub(super) fn set_options(&self, options: SocketOptions) {
        self.state.lock().options = options;
    }

    pub(super) fn address(&self) -> NetlinkAddress {
        let state = self.state.lock();
        // An address has only the first 32 groups.
        NetlinkAddress { port: state.port, groups: state.groups as u32 }
    }

    /// Gives the socket a port: the one in these bytes, or if that is 0 one that the system
    /// chooses. The socket joins and leaves groups as the bytes say.
    pub(super) fn bind(&self, caller: &Caller<'_>, bytes: &[u8]) -> Result<()> {
        let wanted = NetlinkAddress::from_bytes(bytes)?;
        let mut state = self.state.lock();
        if state.port != 0 && wanted.port != 0 && wanted.port != state.port {
            return Err(Error::EINVAL);
        }
        if wanted.port != 0 {
            state.port = wanted.port;
        }
        let groups = state.groups >> 32 << 32 | u64::from(wanted.groups);
        drop(state);
        self.set_groups(|_| groups);
        self.claim_port(caller);
        Ok(())
    }

    /// Changes the groups whose messages the socket receives.
    fn set_groups(&self, change: impl FnOnce(u64) -> u64) {
        let mut state = self.state.lock();
        state.groups = change(state.groups);
        // Of the other protocols no messages are sent to groups.
        let begins = state.groups != 0 && self.protocol == Protocol::Route && !state.is_listening;
        state.is_listening |= begins;
        drop(state);
        if begins {
            self.network.add_change_listener(self.this.clone());
        }
    }

    /// Sets an option of netlink(7). `ENOPROTOOPT`, `EINVAL` for a group that does not exist.
    pub(crate) fn set_option(&self, option: u32, value: u32) -> Result<()> {
        const JOIN: u32 = 1;
        const LEAVE: u32 = 2;
        match option {
            JOIN | LEAVE if value == 0 || value > GROUPS => return Err(Error::EINVAL),
            JOIN => self.set_groups(|groups| groups | 1 << (value - 1)),
            LEAVE => self.set_groups(|groups| groups & !(1 << (value - 1))),
            option if KEPT.contains(&option) => {
                let (bit, mut state) = (1 << option, self.state.lock());
                state.kept = if value != 0 { state.kept | bit } else { state.kept & !bit };
            }
            _ => return Err(Error::ENOPROTOOPT),
        }
        Ok(())
    }

    /// The value of an option of netlink(7). `ENOPROTOOPT`.
    pub(crate) fn option(&self, option: u32) -> Result<Vec<u8>> {
        const MEMBERSHIPS: u32 = 9;
        let state = self.state.lock();
        match option {
            MEMBERSHIPS => Ok(state.groups.to_le_bytes().to_vec()),
            option if KEPT.contains(&option) => Ok((state.kept >> option & 1).to_le_bytes().to_vec()),
            _ => Err(Error::ENOPROTOOPT),
        }
    }

    /// Connects the socket, which always sends to the system.
    pub(super) fn connect(&self, caller: &Caller<'_>, bytes: &[u8]) -> Result<()> {
        if bytes.u16_at(0)? != 0 {
            NetlinkAddress::from_bytes(bytes)?;
        }
        self.claim_port(caller);
        Ok(())
    }

    /// Chooses a port for a socket without one: the process id for the first socket of a process
    /// would be usual, but only has to be unique, which a number that counts down is.
    fn claim_port(&self, caller: &Caller<'_>) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(u32::MAX - 4096);
        let mut state = self.state.lock();
        if state.port == 0 {
            let own = caller.process.process();
            // Relaxed ordering: the numbers have to be different, and order nothing else.
            let other = NEXT.fetch_sub(1, Ordering::Relaxed);
            state.port = if self.protocol == Protocol::Route { own } else { other };
        }
        state.port
    }

    /// Sends requests to the system, and queues their answers. `ECONNREFUSED` if they are for
    /// another process, `EMSGSIZE`.
    pub(super) fn send(
        &self,
        caller: &Caller<'_>,
        from: &mut dyn UserBuffer,
        sending: &Sending,
    ) -> Result<usize, AttemptError> {
        if sending.flags.contains(MessageFlags::OUT_OF_BAND) {
            return Err(Error::EOPNOTSUPP.into());
        }
        if let Some(bytes) = &sending.destination {
            let to = NetlinkAddress::from_bytes(bytes)?;
            if to.port != 0 || to.groups != 0 {
                return Err(Error::ECONNREFUSED.into());
            }
        }
        let count = from.remaining();
        if count > REQUEST_MAXIMUM {
            return Err(Error::EMSGSIZE.into());
        }
        let mut bytes = alloc::vec![0; count];
        unix::copy_in_all(from, &mut bytes)?;
        let port = self.claim_port(caller);
        for request in requests(&bytes) {
            // More requests would only be work without an answer.
            if self.state.lock().has_lost {
                break;
            }
            let answers = self.answer(caller, &request, port);
            self.queue_answers(caller, answers);
        }
        Ok(count)
    }

    /// Queues answers. Those that a program leaves unread have a limit; what is above it is lost.
    fn queue_answers(&self, caller: &Caller<'_>, answers: Vec<Vec<u8>>) {
        if answers.is_empty() {
            return;
        }
        let account = caller.process.account();
        let mut state = self.state.lock();
        for answer in answers {
            if !state.queue(&account, answer, 0, ANSWERS_MAXIMUM) {
                break;
            }
        }
        drop(state);
        self.queue.wake(Readiness::READ);
    }

    /// The answers to a request, joined to messages for the receiver.
    fn answer(&self, caller: &Caller<'_>, request: &Request<'_>, port: u32) -> Vec<Vec<u8>> {
        if request.flags & REQUEST == 0 || request.kind < 16 {
            return Vec::new();
        }
        let answers = match self.protocol {
            Protocol::Route => route::answer(&self.network, caller, request, port),
            Protocol::Diagnosis => diagnosis::answer(&self.network, request, port),
            Protocol::Events => Err(Error::EOPNOTSUPP),
        };
        let is_dump =
            request.flags & DUMP != 0 && (self.protocol != Protocol::Route || request.kind % 4 == 2);
        match answers {
            Ok(answers) if is_dump => joined(answers, request, port),
            Ok(answers) => {
                let acknowledgement = (request.flags & ACKNOWLEDGE != 0).then(|| report(request, port, None));
                answers.into_iter().chain(acknowledgement).collect()
            }
            Err(error) => alloc::vec![report(request, port, Some(error))],
        }
    }

    /// The length of the next answer in bytes; 0 if there is none.
    fn next_length(&self) -> usize {
        self.state.lock().answers.front().map_or(0, |answer| answer.bytes.len())
    }

    fn try_receive(&self, to: &mut dyn UserBuffer, peek: bool) -> Result<Received, AttemptError> {
        let mut state = self.state.lock();
        if core::mem::take(&mut state.has_lost) {
            return Err(Error::ENOBUFS.into());
        }
        let answer = state.answers.front().ok_or(AttemptError::WouldBlock)?;
        let (length, group) = (answer.bytes.len(), answer.group);
        let count = length.min(to.remaining());
        unix::copy_out_all(to, &answer.bytes[..count])?;
        if !peek {
            state.answers.pop_front();
            state.queued -= length;
        }
        // The system's own port is 0.
        let groups = if group == 0 { 0 } else { 1u32.checked_shl(group - 1).unwrap_or(0) };
        let source = Some(super::Address::Netlink(NetlinkAddress { port: 0, groups }));
        Ok(Received { count, length, source, ..Received::default() })
    }

    /// Receives an answer.
    pub(super) async fn receive(
        &self,
        caller: &Caller<'_>,
        to: &mut dyn UserBuffer,
        flags: MessageFlags,
        nonblock: bool,
    ) -> Result<Received> {
        if flags.contains(MessageFlags::OUT_OF_BAND) {
            return Err(Error::EOPNOTSUPP);
        }
        let environment = &*caller.vfs.environment;
        let timeout = self.options().receive_timeout.map(|t| environment.monotonic() + t);
        let deadline = if nonblock { Some(Duration::ZERO) } else { timeout };
        let peek = flags.contains(MessageFlags::PEEK);
        loop {
            let attempt = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
                self.try_receive(to, peek).map_err(|not_done| (not_done, deadline))
            });
            match attempt.await {
                Ok(received) => return Ok(received),
                Err(AttemptError::NotResident) => {
                    let length = self.next_length();
                    unix::resolve_message(to, length, true).await?;
                }
                Err(AttemptError::WouldBlock) => return Err(Error::EAGAIN),
                Err(AttemptError::Failed(error)) => return Err(error),
            }
        }
    }
}

impl ChangeListener for NetlinkSocket {
    fn changed(&self, change: &inet::Change) {
        let told = route::notification(change, self.network.now());
        let mut state = self.state.lock();
        let Some((group, message)) = told else {
            state.lose();
            return;
        };
        if state.groups >> (group - 1) & 1 == 0 {
            return;
        }
        let most = state.options.receive_buffer.min(ANSWERS_MAXIMUM);
        // The next receive says that a message was lost.
        let _ = state.queue(&self.account, message, group, most);
    }

    fn wake(&self) {
        let readiness = FileObject::readiness(self) & (Readiness::READ | Readiness::ERROR);
        if !readiness.is_empty() {
            self.queue.wake(readiness);
        }
    }
}

/// Joins the answers of a dump to larger messages, the last of which says that it is the end.
fn joined(answers: Vec<Vec<u8>>, request: &Request<'_>, port: u32) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for answer in answers {
        match messages.last_mut() {
            Some(last) if last.len() + answer.len() <= JOINED => last.extend(answer),
            _ => messages.push(answer),
        }
    }
    let end = Message::answer(request, port, DONE, MULTIPART, &0u32.to_le_bytes()).done();
    messages.push(end);
    messages
}

/// A message that reports an error of a request, or that it was done.
fn report(request: &Request<'_>, port: u32, error: Option<Error>) -> Vec<u8> {
    let number = error.map_or(0, |error| -errno::number(error));
    let header = &request.bytes[..message::HEADER];
    let fixed = [&number.to_le_bytes()[..], header].concat();
    Message::answer(request, port, ERROR, CAPPED, &fixed).done()
}

/// `EPERM` unless the caller may change interfaces, addresses and routes.
fn check_privilege(caller: &Caller<'_>) -> Result<()> {
    if caller.identity.has(Privilege::Network) { Ok(()) } else { Err(Error::EPERM) }
}

impl FileObject for NetlinkSocket {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        Ok(self.try_receive(to, false)?.count)
    }

    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        self.send(io.caller, from, &Sending::to(None, MessageFlags::empty()))
    }

    fn readiness(&self) -> Readiness {
        let state = self.state.lock();
        let mut ready = Readiness::WRITE;
        ready.set(Readiness::READ, state.has_lost || !state.answers.is_empty());
        ready.set(Readiness::ERROR, state.has_lost);
        ready
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn deadline(&self, io: &Io<'_>, write: bool) -> Option<Duration> {
        let options = self.options();
        let timeout = if write { options.send_timeout } else { options.receive_timeout };
        Some(io.started + timeout?)
    }

    fn file_type(&self) -> FileType {
        FileType::Socket
    }

    fn label(&self) -> &'static str {
        "socket"
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.next_length())
    }
}
