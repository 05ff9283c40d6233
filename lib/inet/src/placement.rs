//! A stack in the caller's own memory or in another task, with the same calls: [`Internet`].
//!
//! In another task each call is a message, and so is its result ([`Transport`]). [`answer`] makes
//! the calls there. What the other task says is checked like a packet from outside: an answer that
//! is none ends the use of the task, as its end does.
//!
//! A task that has ended takes its sockets with it. Their calls fail then, with
//! [`Error::ConnectionReset`], also when another task has taken its place: identifiers of its
//! sockets begin after those that were seen before ([`Stack::identify_from`]).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::error::{Error, Result};
use crate::filter::{INSTRUCTION_SIZE, Program};
use crate::stack::Stack;
use crate::time::Instant;
use crate::types::*;
use crate::wire::{Reader, Wire};

/// The most bytes of a request and of an answer.
pub const LONGEST: usize = 68 << 10;
/// The most bytes of a request or an answer that is not long.
pub const SHORT: usize = 480;

/// Sockets that one answer names as ready.
const READY: usize = 16;
/// The most bytes that are sent or received at a time.
const MOST: usize = 64 << 10;
const _: () = assert!(MOST + 1024 <= LONGEST && READY * 9 + 256 <= SHORT);
/// Bytes of a frame's header, which come in addition to what a frame carries.
const FRAME_HEADER: usize = 14;
/// Entries of one answer that lists something, and the most entries of a list.
const PAGE: usize = 64;
const LONGEST_LIST: usize = 1 << 16;
/// Number of the request for bytes, which has a form of its own.
const RECEIVE: u8 = 0;

/// The way to the task that has the stack.
pub trait Transport: Send {
    /// Sends a request and waits for the answer. With `long` the answer may have [`LONGEST`] bytes,
    /// otherwise it has at most [`SHORT`]. `None`: the task has ended, or it does not answer; it is
    /// not asked again.
    fn call(&mut self, request: &[u8], long: bool) -> Option<&[u8]>;
}

/// A stack, wherever it is.
pub enum Internet {
    /// In this program's memory.
    Here(Box<Stack>),
    /// In another task.
    There(Remote),
}

/// A stack in another task.
pub struct Remote {
    /// `None`: there is no such task now.
    transport: Option<Box<dyn Transport>>,
    /// The memory of requests.
    request: Vec<u8>,
    /// The first number of sockets that the present task has made, and the last that was seen.
    first: u32,
    last: u32,
    /// Sockets that have become ready.
    ready: VecDeque<(SocketId, Readiness)>,
    /// Whether the task has more of them, and how often it has said so in turn.
    has_more: bool,
    rounds: usize,
    /// Changes that have been noted, whether the task has more of them, and how often it has said
    /// so in turn.
    changes: VecDeque<Change>,
    has_changes: bool,
    change_rounds: usize,
    /// Whether a task has ended of whose sockets the caller was not told yet.
    has_lost: bool,
}

/// What a request answers.
trait Answer: for<'a> Wire<'a> {
    /// Whether the answer may be long.
    const LONG: bool = false;
    /// The answer of a stack that cannot be reached.
    fn refused(error: Error) -> Self;
}

impl<T: for<'a> Wire<'a>> Answer for Result<T> {
    fn refused(error: Error) -> Self {
        Err(error)
    }
}

impl<T: for<'a> Wire<'a>> Answer for Vec<T> {
    const LONG: bool = true;

    fn refused(_: Error) -> Self {
        Vec::new()
    }
}

impl Answer for () {
    fn refused(_: Error) {}
}

impl Answer for bool {
    fn refused(_: Error) -> bool {
        false
    }
}

impl Answer for Readiness {
    fn refused(_: Error) -> Readiness {
        Readiness { read: true, write: true, read_closed: true, hup: true, error: true, priority: false }
    }
}

impl Answer for Option<Error> {
    fn refused(error: Error) -> Option<Error> {
        Some(error)
    }
}

impl Answer for Option<ErrorReport> {
    const LONG: bool = true;

    fn refused(_: Error) -> Option<ErrorReport> {
        None
    }
}

impl Answer for Option<Lease> {
    fn refused(_: Error) -> Option<Lease> {
        None
    }
}

impl Answer for Option<Declined> {
    fn refused(_: Error) -> Option<Declined> {
        None
    }
}

impl Answer for Option<Interface> {
    fn refused(_: Error) -> Option<Interface> {
        None
    }
}

impl Wire<'_> for Program {
    fn put(&self, to: &mut Vec<u8>) {
        (self.length() * INSTRUCTION_SIZE).put(to);
        self.write(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Program> {
        Program::new(Wire::get(from)?, crate::filter::Rules::Packets).ok()
    }
}

/// Some entries of a list.
fn page<T>(all: impl Iterator<Item = T>, begin: u32) -> Vec<T> {
    all.skip(begin as usize).take(PAGE).collect()
}

/// Defines the requests once: the method of [`Internet`], its message, and the call in the other
/// task. In brackets is the socket whose request it is.
macro_rules! requests {
    ($($(#[$about:meta])* $number:literal $visibility:vis $name:ident $([$id:ident])? (
        $($argument:ident: $type:ty),*
    ) -> $answer:ty = |$stack:ident| $work:expr;)*) => {
        impl Internet {
            $($(#[$about])*
            #[inline]
            $visibility fn $name(&mut self, $($id: SocketId,)? $($argument: $type),*) -> $answer {
                match self {
                    Internet::Here($stack) => $work,
                    Internet::There(remote) => {
                        $(if remote.is_lost($id) {
                            return Answer::refused(Error::ConnectionReset);
                        })?
                        remote.ask(|to| {
                            u8::put(&$number, to);
                            $($id.put(to);)?
                            $($argument.put(to);)*
                        })
                    }
                }
            })*
        }

        /// Carries out the request of this number, and appends its answer. `None`: there is no such
        /// request.
        fn perform(stack: &mut Stack, number: u8, mut from: Reader<'_>, to: &mut Vec<u8>) -> Option<()> {
            match number {
                $($number => {
                    $(let $id: SocketId = Wire::get(&mut from)?;)?
                    $(let $argument: $type = Wire::get(&mut from)?;)*
                    from.finish()?;
                    let $stack = stack;
                    let answer: $answer = $work;
                    answer.put(to);
                })*
                _ => return None,
            }
            Some(())
        }
    };
}

requests! {
    1 request_socket(kind: Kind, owner: u32) -> Result<SocketId> = |stack| stack.open_for(kind, owner);
    2 request_accept[id]() -> Result<(SocketId, SocketAddress)> = |stack| stack.accept(id);
    3 request_options[id](options: Options) -> Result<()> =
        |stack| stack.configure(id, |own| *own = options);
    4 request_send[id](data: &[u8], to: Option<SocketAddress>, flags: SendFlags) -> Result<usize> =
        |stack| stack.send(id, data, to, flags);
    5 request_frame[id](data: &[u8], interface: InterfaceIndex, protocol: u16, to: [u8; 6]) -> Result<usize> =
        |stack| stack.send_frame(id, data, interface, protocol, to);
    6 some_interfaces(begin: u32) -> Vec<Interface> = |stack| page(stack.interfaces().cloned(), begin);
    7 some_addresses(begin: u32) -> Vec<Address> = |stack| page(stack.addresses().copied(), begin);
    8 some_routes(begin: u32) -> Vec<Route> = |stack| page(stack.routes().copied(), begin);
    9 some_neighbours(begin: u32) -> Vec<Neighbour> = |stack| page(stack.neighbours(), begin);
    10 some_sockets(begin: u32) -> Vec<SocketInfo> = |stack| page(stack.sockets().into_iter(), begin);
    11 look() -> () = |_stack| ();
    12 some_changes() -> Vec<Change> = |stack| core::iter::from_fn(|| stack.next_change()).take(PAGE).collect();

    /// As [`Stack::close`].
    20 pub close[id]() -> () = |stack| stack.close(id);
    /// As [`Stack::bind`].
    21 pub bind[id](address: SocketAddress) -> Result<()> = |stack| stack.bind(id, address);
    /// As [`Stack::bind_packet`].
    22 pub bind_packet[id](protocol: u16, interface: Option<InterfaceIndex>) -> Result<()> =
        |stack| stack.bind_packet(id, protocol, interface);
    /// As [`Stack::connect`].
    23 pub connect[id](peer: SocketAddress) -> Result<Connect> = |stack| stack.connect(id, peer);
    /// As [`Stack::disconnect`].
    24 pub disconnect[id]() -> Result<()> = |stack| stack.disconnect(id);
    /// As [`Stack::listen`].
    25 pub listen[id](backlog: usize) -> Result<()> = |stack| stack.listen(id, backlog);
    /// As [`Stack::shutdown`].
    26 pub shutdown[id](direction: Direction) -> Result<()> = |stack| stack.shutdown(id, direction);
    /// As [`Stack::local_address`].
    27 pub local_address[id]() -> Result<SocketAddress> = |stack| stack.local_address(id);
    /// As [`Stack::peer_address`].
    28 pub peer_address[id]() -> Result<SocketAddress> = |stack| stack.peer_address(id);
    /// As [`Stack::take_error`].
    29 pub take_error[id]() -> Option<Error> = |stack| stack.take_error(id);
    /// As [`Stack::take_report`].
    30 pub take_report[id]() -> Option<ErrorReport> = |stack| stack.take_report(id);
    /// As [`Stack::readiness`].
    31 pub readiness[id]() -> Readiness = |stack| stack.readiness(id);
    /// As [`Stack::queued`].
    32 pub queued[id]() -> Result<Queued> = |stack| stack.queued(id);
    /// As [`Stack::options`].
    33 pub options[id]() -> Result<Options> = |stack| stack.options(id).copied();
    /// As [`Stack::join`].
    34 pub join[id](group: IpAddr, interface: Option<InterfaceIndex>) -> Result<()> =
        |stack| stack.join(id, group, interface);
    /// As [`Stack::leave`].
    35 pub leave[id](group: IpAddr, interface: Option<InterfaceIndex>) -> Result<()> =
        |stack| stack.leave(id, group, interface);
    /// As [`Stack::state`].
    36 pub state[id]() -> Result<State> = |stack| stack.state(id);
    /// As [`Stack::tcp_info`].
    37 pub tcp_info[id]() -> Result<TcpInfo> = |stack| stack.tcp_info(id);
    /// As [`Stack::watch`].
    38 pub watch[id](interface: InterfaceIndex, membership: Membership, begins: bool) -> Result<()> =
        |stack| stack.watch(id, interface, membership, begins);
    /// As [`Stack::take_statistics`].
    39 pub take_statistics[id]() -> Result<PacketStatistics> = |stack| stack.take_statistics(id);
    /// As [`Stack::acknowledges_quickly`].
    43 pub acknowledges_quickly[id]() -> Result<bool> = |stack| stack.acknowledges_quickly(id);
    /// As [`Stack::begin_close`].
    41 pub begin_close[id]() -> bool = |stack| stack.begin_close(id);
    /// As [`Stack::is_closing`].
    42 pub is_closing[id]() -> bool = |stack| stack.is_closing(id);
    /// As [`Stack::set_filter`].
    40 pub set_filter[id](filter: Option<Program>) -> Result<bool> = |stack| stack.set_filter(id, filter);

    /// As [`Stack::set_up`].
    60 pub set_up(interface: InterfaceIndex, up: bool) -> Result<()> = |stack| stack.set_up(interface, up);
    /// As [`Stack::set_mtu`].
    61 pub set_mtu(interface: InterfaceIndex, mtu: usize) -> Result<()> =
        |stack| stack.set_mtu(interface, mtu);
    /// As [`Stack::set_promiscuous`].
    62 pub set_promiscuous(interface: InterfaceIndex, promiscuous: bool) -> Result<()> =
        |stack| stack.set_promiscuous(interface, promiscuous);
    /// As [`Stack::add_address`].
    63 pub add_address(interface: InterfaceIndex, prefix: Prefix) -> Result<()> =
        |stack| stack.add_address(interface, prefix);
    /// As [`Stack::remove_address`].
    64 pub remove_address(interface: InterfaceIndex, address: IpAddr) -> Result<()> =
        |stack| stack.remove_address(interface, address);
    /// As [`Stack::add_route`].
    65 pub add_route(route: Route) -> Result<()> = |stack| stack.add_route(route);
    /// As [`Stack::replace_route`].
    66 pub replace_route(route: Route) -> Result<()> = |stack| stack.replace_route(route);
    /// As [`Stack::remove_route`].
    67 pub remove_route(
        destination: Prefix, gateway: Option<IpAddr>, interface: Option<InterfaceIndex>, metric: Option<u32>
    ) -> Result<()> = |stack| stack.remove_route(destination, gateway, interface, metric);
    /// As [`Stack::route_to`].
    68 pub route_to(destination: IpAddr, interface: Option<InterfaceIndex>) -> Result<(Route, IpAddr)> =
        |stack| stack.route_to(destination, interface);
    /// As [`Stack::set_neighbour`].
    69 pub set_neighbour(interface: InterfaceIndex, address: IpAddr, mac: Option<[u8; 6]>) -> Result<()> =
        |stack| stack.set_neighbour(interface, address, mac);
    /// As [`Stack::start_dhcp`].
    70 pub start_dhcp(interface: InterfaceIndex, host_name: &str) -> Result<()> =
        |stack| stack.start_dhcp(interface, host_name);
    /// As [`Stack::lease`].
    71 pub lease(interface: InterfaceIndex) -> Option<Lease> = |stack| stack.lease(interface).cloned();
    /// As [`Stack::declined`].
    73 pub declined(interface: InterfaceIndex) -> Option<Declined> = |stack| stack.declined(interface);
    /// As [`Stack::note_changes`].
    74 pub note_changes(noted: bool) -> () = |stack| stack.note_changes(noted);
    /// The interface of this number.
    72 pub interface(index: InterfaceIndex) -> Option<Interface> =
        |stack| stack.interfaces().find(|interface| interface.index == index).cloned();
}

/// A list that a stack in another task answers in parts.
fn whole<T>(mut some: impl FnMut(u32) -> Vec<T>) -> Vec<T> {
    let mut list = Vec::new();
    while list.len() < LONGEST_LIST {
        let part = some(list.len() as u32);
        if part.is_empty() {
            break;
        }
        list.extend(part);
    }
    list
}

impl Internet {
    /// A stack in another task, which is not there yet.
    pub fn elsewhere() -> Internet {
        Internet::There(Remote {
            transport: None,
            request: Vec::new(),
            first: 0,
            last: 0,
            ready: VecDeque::new(),
            has_more: false,
            rounds: 0,
            changes: VecDeque::new(),
            has_changes: false,
            change_rounds: 0,
            has_lost: false,
        })
    }

    /// The stack, if it is in this program's memory.
    pub fn here(&mut self) -> Option<&mut Stack> {
        match self {
            Internet::Here(stack) => Some(stack),
            Internet::There(_) => None,
        }
    }

    /// As [`Stack::open_for`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_for(&mut self, kind: Kind, owner: u32) -> Result<SocketId> {
        let opened = self.request_socket(kind, owner);
        self.saw(opened.ok());
        opened
    }

    /// As [`Stack::accept`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddress)> {
        let accepted = self.request_accept(id);
        self.saw(accepted.ok().map(|(id, _)| id));
        accepted
    }

    /// As [`Stack::configure`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn configure(&mut self, id: SocketId, change: impl FnOnce(&mut Options)) -> Result<()> {
        if let Internet::Here(stack) = self {
            return stack.configure(id, change);
        }
        let mut options = self.options(id)?;
        change(&mut options);
        self.request_options(id, options)
    }

    /// As [`Stack::send`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn send(
        &mut self,
        id: SocketId,
        data: &[u8],
        to: Option<SocketAddress>,
        flags: SendFlags,
    ) -> Result<usize> {
        let is_there = matches!(self, Internet::There(_));
        if is_there && data.len() > MOST {
            return Err(Error::MessageTooLong);
        }
        let sent = self.request_send(id, data, to, flags);
        self.checked(sent, data.len())
    }

    /// As [`Stack::send_frame`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn send_frame(
        &mut self,
        id: SocketId,
        data: &[u8],
        interface: InterfaceIndex,
        protocol: u16,
        to: [u8; 6],
    ) -> Result<usize> {
        let is_there = matches!(self, Internet::There(_));
        if is_there && data.len() > MOST + FRAME_HEADER {
            return Err(Error::MessageTooLong);
        }
        let sent = self.request_frame(id, data, interface, protocol, to);
        self.checked(sent, data.len())
    }

    /// How many bytes were sent, which are not more than there were.
    #[inline]
    fn checked(&mut self, sent: Result<usize>, most: usize) -> Result<usize> {
        match self {
            Internet::There(remote) if sent.is_ok_and(|sent| sent > most) => {
                remote.lose();
                Err(Error::ConnectionReset)
            }
            _ => sent,
        }
    }

    /// As [`Stack::receive_from`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn receive_from(&mut self, id: SocketId, buffer: &mut [u8], flags: ReceiveFlags) -> Result<Received> {
        match self {
            Internet::Here(stack) => stack.receive_from(id, buffer, flags),
            Internet::There(remote) => remote.receive(id, buffer, flags),
        }
    }

    /// For how many bytes a receiver should have room: those that wait, or as many as it likes
    /// where to ask would cost as much as to receive.
    #[inline]
    pub fn expected(&mut self, id: SocketId) -> usize {
        match self {
            Internet::Here(stack) => stack.queued(id).map_or(0, |queued| queued.receive),
            Internet::There(_) => MOST,
        }
    }

    /// All interfaces, by number.
    pub fn interfaces(&mut self) -> Vec<Interface> {
        match self {
            Internet::Here(stack) => stack.interfaces().cloned().collect(),
            Internet::There(_) => whole(|begin| self.some_interfaces(begin)),
        }
    }

    /// All addresses of all interfaces.
    pub fn addresses(&mut self) -> Vec<Address> {
        match self {
            Internet::Here(stack) => stack.addresses().copied().collect(),
            Internet::There(_) => whole(|begin| self.some_addresses(begin)),
        }
    }

    /// All routes.
    pub fn routes(&mut self) -> Vec<Route> {
        match self {
            Internet::Here(stack) => stack.routes().copied().collect(),
            Internet::There(_) => whole(|begin| self.some_routes(begin)),
        }
    }

    /// All neighbours.
    pub fn neighbours(&mut self) -> Vec<Neighbour> {
        match self {
            Internet::Here(stack) => stack.neighbours().collect(),
            Internet::There(_) => whole(|begin| self.some_neighbours(begin)),
        }
    }

    /// As [`Stack::sockets`]. In another task the list may change while it is read.
    pub fn sockets(&mut self) -> Vec<SocketInfo> {
        match self {
            Internet::Here(stack) => stack.sockets(),
            Internet::There(_) => whole(|begin| self.some_sockets(begin)),
        }
    }

    /// The next socket whose readiness may have changed, and what it is ready for.
    #[inline]
    pub fn ready(&mut self) -> Option<(SocketId, Readiness)> {
        match self {
            Internet::Here(stack) => {
                let id = stack.ready()?;
                Some((id, stack.readiness(id)))
            }
            Internet::There(_) => self.ready_there(),
        }
    }

    fn ready_there(&mut self) -> Option<(SocketId, Readiness)> {
        loop {
            let Internet::There(remote) = self else { return None };
            if let Some(ready) = remote.ready.pop_front() {
                return Some(ready);
            }
            if !core::mem::take(&mut remote.has_more) {
                remote.rounds = 0;
                return None;
            }
            remote.rounds += 1;
            if remote.rounds > LONGEST_LIST / READY {
                remote.lose();
                return None;
            }
            self.look();
        }
    }

    /// As [`Stack::next_change`].
    #[inline]
    pub fn next_change(&mut self) -> Option<Change> {
        match self {
            Internet::Here(stack) => stack.next_change(),
            Internet::There(_) => self.next_change_there(),
        }
    }

    fn next_change_there(&mut self) -> Option<Change> {
        let Internet::There(remote) = self else { return None };
        if remote.changes.is_empty() && core::mem::take(&mut remote.has_changes) {
            remote.change_rounds += 1;
            if remote.change_rounds > LONGEST_LIST / PAGE {
                remote.lose();
                return None;
            }
            let some = self.some_changes();
            let Internet::There(remote) = self else { return None };
            remote.changes.extend(some);
        }
        let Internet::There(remote) = self else { return None };
        let next = remote.changes.pop_front();
        if next.is_none() {
            remote.change_rounds = 0;
        }
        next
    }

    /// Asks a stack in another task which sockets are ready; [`Internet::ready`] tells.
    pub fn refresh(&mut self) {
        if matches!(self, Internet::There(_)) {
            self.look();
        }
    }

    fn saw(&mut self, id: Option<SocketId>) {
        if let (Internet::There(remote), Some(id)) = (self, id) {
            remote.last = remote.last.max(id.generation);
        }
    }
}

impl Remote {
    /// The number from which the next task has to count its sockets ([`Stack::identify_from`]).
    pub fn next_identifier(&self) -> u32 {
        self.last.wrapping_add(1)
    }

    /// Uses this task from now on, which counts its sockets from [`Remote::next_identifier`].
    pub fn connect(&mut self, transport: Box<dyn Transport>) {
        self.lose();
        self.transport = Some(transport);
    }

    /// Whether there is a task.
    pub fn is_connected(&self) -> bool {
        self.transport.is_some()
    }

    /// Uses the task no more: its sockets have ended.
    pub fn lose(&mut self) {
        self.has_lost |= self.transport.take().is_some();
        self.ready.clear();
        self.changes.clear();
        (self.has_more, self.has_changes) = (false, false);
        self.first = self.next_identifier();
        self.last = self.first;
    }

    /// Whether sockets have ended since this was last asked for.
    pub fn take_lost(&mut self) -> bool {
        core::mem::take(&mut self.has_lost)
    }

    /// Whether the socket's task has ended.
    fn is_lost(&self, id: SocketId) -> bool {
        self.transport.is_none() || id.generation < self.first
    }

    fn ask<A: Answer>(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> A {
        let answer = self.exchange(A::LONG, write, |from| A::get(from));
        answer.unwrap_or_else(|| A::refused(Error::NetworkDown))
    }

    fn receive(&mut self, id: SocketId, buffer: &mut [u8], flags: ReceiveFlags) -> Result<Received> {
        /// The most that an answer has in addition to the bytes.
        const REST: usize = 300;
        if self.is_lost(id) {
            return Err(Error::ConnectionReset);
        }
        let limit = buffer.len().min(MOST);
        let write = |to: &mut Vec<u8>| {
            RECEIVE.put(to);
            id.put(to);
            limit.put(to);
            flags.put(to);
        };
        let answer = self.exchange(limit + REST > SHORT, write, |from| {
            let (bytes, received) = match Wire::get(from)? {
                Ok(received) => received,
                Err(error) => return Some(Err(error)),
            };
            let (bytes, received): (&[u8], Received) = (bytes, received);
            let is_right = match flags.discard {
                true => bytes.is_empty() && received.copied <= limit,
                false => bytes.len() == received.copied,
            };
            buffer.get_mut(..bytes.len()).filter(|_| is_right)?.copy_from_slice(bytes);
            Some(Ok(received))
        });
        answer.unwrap_or(Err(Error::NetworkDown))
    }

    /// Sends what `write` appends, and reads the result of the answer. `None`: there is no answer,
    /// and the task is not used any more.
    fn exchange<T>(
        &mut self,
        long: bool,
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(&mut Reader<'_>) -> Option<T>,
    ) -> Option<T> {
        self.request.clear();
        write(&mut self.request);
        let Remote { transport, request, ready, has_more, has_changes, .. } = self;
        let result = transport.as_mut()?.call(request, long).and_then(|answer| {
            let mut from = Reader(answer);
            let result = read(&mut from)?;
            let count = u8::get(&mut from)?;
            if usize::from(count) > READY {
                return None;
            }
            for _ in 0..count {
                ready.push_back(Wire::get(&mut from)?);
            }
            // A task that has more has named as many as an answer can.
            let more = bool::get(&mut from)?;
            *has_more |= more;
            *has_changes |= bool::get(&mut from)?;
            from.finish().filter(|()| !more || usize::from(count) == READY)?;
            Some(result)
        });
        if result.is_none() {
            self.lose();
        }
        result
    }
}

/// Carries out a request of an [`Internet`] whose stack this is, and writes the answer. Returns
/// false if it is none.
pub fn answer(stack: &mut Stack, now: Instant, request: &[u8], answer: &mut Vec<u8>) -> bool {
    answer.clear();
    stack.at(now);
    let mut from = Reader(request);
    let done = u8::get(&mut from).and_then(|number| match number {
        RECEIVE => receive(stack, from, answer),
        number => perform(stack, number, from, answer),
    });
    if done.is_none() {
        return false;
    }
    // Packets on `lo` arrive before the answer, so that it names the sockets that they make ready.
    if stack.next_deadline().is_some_and(|deadline| deadline <= now) {
        stack.advance(now);
    }
    let at = answer.len();
    answer.push(0);
    let mut count = 0;
    while usize::from(count) < READY
        && let Some(id) = stack.ready()
    {
        count += 1;
        (id, stack.readiness(id)).put(answer);
    }
    answer[at] = count;
    (usize::from(count) == READY && stack.has_ready()).put(answer);
    stack.has_changes().put(answer);
    true
}

/// Receives into the answer itself.
fn receive(stack: &mut Stack, mut from: Reader<'_>, to: &mut Vec<u8>) -> Option<()> {
    let (id, limit, flags): (SocketId, usize, ReceiveFlags) =
        (Wire::get(&mut from)?, Wire::get(&mut from)?, Wire::get(&mut from)?);
    from.finish()?;
    let queued = stack.queued(id).map_or(0, |queued| queued.receive);
    let limit = limit.min(MOST).min(if flags.urgent { 1 } else { queued });
    true.put(to);
    let at = to.len();
    limit.put(to);
    let begin = to.len();
    to.resize(begin + limit, 0);
    match stack.receive_from(id, &mut to[begin..], flags) {
        Ok(received) => {
            let length = if flags.discard { 0 } else { received.copied };
            to.truncate(begin + length);
            to[at..begin].copy_from_slice(&(length as u64).to_le_bytes());
            received.put(to);
        }
        Err(error) => {
            to.clear();
            Result::<()>::Err(error).put(to);
        }
    }
    Some(())
}
