//! Sockets of packet(7): frames of interfaces as they are on the cable, for programs that watch or
//! speak protocols of links. A program needs a privilege for them.

mod ring;

use super::inet::{Asked, how, time};
use super::{Address, MessageFlags, Received};
use crate::layout::{Fields, Writer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use inet::{Interface, InterfaceIndex, Kind, LinkHeader, Membership};
use ring::Ring;
pub(crate) use ring::{HEADER, RingRequest, VERSION};
use unix::file::{FileObject, Io, OpenFile};
use unix::poll::{PollQueue, Readiness};
use unix::socket::{InetReceiveHow, InetReceived, InetSocket, SocketType, Taker};
use unix::sync::SpinLock;
use unix::vfs::{Caller, FileMemory, FileType, OpenFlags};
use unix::{AttemptError, Environment, Error, Result, UserBuffer};

/// The number of the family (AF_PACKET).
pub(crate) const FAMILY_PACKET: u16 = 17;
/// The level of the options and control messages (SOL_PACKET).
pub(crate) const LEVEL_PACKET: u32 = 263;
/// Bytes of struct sockaddr_ll.
const ADDRESS_SIZE: usize = 20;
/// Bytes of a hardware address.
const HARDWARE_SIZE: usize = 6;

/// An address of packets (struct sockaddr_ll).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketAddress {
    /// The type of the frame's payload.
    protocol: u16,
    /// The number of the interface; 0 for all of them.
    interface: u32,
    /// The type of the interface's hardware.
    hardware: u16,
    /// How the frame was addressed (PACKET_HOST and so on).
    class: u8,
    /// The hardware address, if there is one.
    address: Option<[u8; HARDWARE_SIZE]>,
}

impl PacketAddress {
    /// Reads a struct sockaddr_ll. `EINVAL`.
    fn from_bytes(bytes: &[u8]) -> Result<PacketAddress> {
        if bytes.len() < ADDRESS_SIZE || bytes.u16_at(0)? != FAMILY_PACKET {
            return Err(Error::EINVAL);
        }
        let address = (usize::from(bytes[11]) >= HARDWARE_SIZE).then(|| bytes.field(12)).transpose()?;
        let protocol = u16::from_be_bytes(bytes.field(2)?);
        Ok(PacketAddress { protocol, interface: bytes.u32_at(4)?, hardware: 0, class: 0, address })
    }

    /// The type of the frames.
    pub(crate) fn protocol(self) -> u16 {
        self.protocol
    }

    /// The number of the interface; 0 for all of them.
    pub(crate) fn interface(self) -> u32 {
        self.interface
    }

    /// Writes a struct sockaddr_ll.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let length = if self.address.is_some() { HARDWARE_SIZE as u8 } else { 0 };
        let bytes =
            Writer::<ADDRESS_SIZE>::new().u16(0, FAMILY_PACKET).bytes(2, &self.protocol.to_be_bytes());
        let bytes = bytes.u32(4, self.interface).u16(8, self.hardware).bytes(10, &[self.class, length]);
        bytes.bytes(12, &self.address.unwrap_or_default()).done().to_vec()
    }

    /// The source of a frame that was received at an interface.
    fn of(header: &LinkHeader, interface: InterfaceIndex) -> PacketAddress {
        PacketAddress {
            protocol: header.protocol,
            interface: interface.0,
            hardware: if interface.0 == 1 { 772 } else { 1 },
            class: header.class as u8,
            address: Some(header.source),
        }
    }
}

/// A socket of packets.
pub(crate) struct PacketSocket {
    inner: Arc<InetSocket>,
    environment: Arc<dyn Environment>,
    state: SpinLock<State>,
    /// The memory into which frames are written as they arrive, if the program wants that.
    ring: SpinLock<Option<Arc<Ring>>>,
    /// How many calls ask for the ring to be filled; the first of them does it.
    fillers: AtomicU32,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// The type of the frames that are received; 3 for all, 0 for none.
    protocol: u16,
    /// The interface to which the socket is bound.
    interface: Option<InterfaceIndex>,
    /// The layout of the ring (PACKET_VERSION).
    version: u32,
    /// Bytes that are left free before each frame in the ring (PACKET_RESERVE).
    reserve: u32,
}

/// Makes a socket. `EPERM` without the privilege, `ESOCKTNOSUPPORT`, `ENOMEM`, `ENOBUFS`.
pub(super) fn create(
    caller: &Caller<'_>,
    kind: u32,
    protocol: i32,
    flags: OpenFlags,
) -> Result<Arc<OpenFile>> {
    const DATAGRAM: u32 = 2;
    const RAW: u32 = 3;
    if !matches!(kind, DATAGRAM | RAW) {
        return Err(Error::ESOCKTNOSUPPORT);
    }
    // The number has the order of bytes of the network.
    let protocol = (protocol as u16).swap_bytes();
    let inner = InetSocket::open(caller, Kind::Packet { protocol, cooked: kind == DATAGRAM })?;
    let socket = Arc::new(PacketSocket {
        inner,
        environment: caller.vfs.environment.clone(),
        state: SpinLock::new(State { protocol, ..State::default() }),
        ring: SpinLock::new(None),
        fillers: AtomicU32::new(0),
    });
    Ok(OpenFile::of_object(socket, flags | OpenFlags::READ_WRITE))
}

impl PacketSocket {
    /// The socket of the stack.
    pub(crate) fn inner(&self) -> &InetSocket {
        &self.inner
    }

    /// The number of the protocol (SO_PROTOCOL), in the order of bytes of the network.
    pub(super) fn protocol(&self) -> u32 {
        self.state.lock().protocol.swap_bytes().into()
    }

    /// What is known of an interface.
    fn interface(&self, index: InterfaceIndex) -> Option<Interface> {
        self.inner.network().with(|stack| stack.interface(index))
    }

    /// The socket's own address: what it receives, and where.
    pub(super) fn address(&self) -> PacketAddress {
        let State { protocol, interface, .. } = *self.state.lock();
        let known = interface.and_then(|index| self.interface(index));
        PacketAddress {
            protocol,
            interface: interface.map_or(0, |index| index.0),
            hardware: known.as_ref().map_or(0, crate::layout::interface::device_type),
            class: 0,
            address: known.map(|known| known.mac),
        }
    }

    /// Lets the socket receive frames of one type at one interface, or at all. Type 0 leaves the
    /// type as it is. `ENODEV`.
    pub(super) fn bind(&self, bytes: &[u8]) -> Result<()> {
        let wanted = PacketAddress::from_bytes(bytes)?;
        let interface = (wanted.interface != 0).then_some(InterfaceIndex(wanted.interface));
        let old = self.state.lock().protocol;
        let protocol = if wanted.protocol == 0 { old } else { wanted.protocol };
        self.inner.network().with(|stack| stack.bind_packet(self.inner.id(), protocol, interface))?;
        let mut state = self.state.lock();
        (state.protocol, state.interface) = (protocol, interface);
        Ok(())
    }

    /// Tries once to send a frame, to the interface that the address names or to which the socket
    /// is bound. `ENXIO` if there is none.
    pub(super) fn try_send(
        &self,
        from: &mut dyn UserBuffer,
        destination: Option<&[u8]>,
    ) -> Result<usize, AttemptError> {
        let state = *self.state.lock();
        let to = destination.map(PacketAddress::from_bytes).transpose()?;
        let interface = match to {
            Some(to) => Some(InterfaceIndex(to.interface)),
            None => state.interface,
        };
        let known = interface.and_then(|index| self.interface(index)).ok_or(Error::ENXIO)?;
        let is_cooked = self.inner.kind() == SocketType::Datagram;
        let address = match to.and_then(|to| to.address) {
            None if is_cooked && !known.loopback => return Err(Error::EINVAL.into()),
            address => address.unwrap_or_default(),
        };
        let protocol = to.map_or(state.protocol, |to| to.protocol);
        self.inner.try_send_frame(from, known.index, protocol, address)
    }

    /// Receives a frame.
    pub(super) async fn receive(
        &self,
        caller: &Caller<'_>,
        to: &mut dyn UserBuffer,
        flags: MessageFlags,
        nonblock: bool,
    ) -> Result<Received> {
        if flags.contains(MessageFlags::OUT_OF_BAND) {
            return Err(Error::EINVAL);
        }
        if flags.contains(MessageFlags::ERROR_QUEUE) {
            return Err(Error::EAGAIN);
        }
        let received = self.inner.receive(caller, to, how(flags, nonblock)).await?;
        let mut control: Vec<_> = time(&self.inner, &*self.environment, &received).into_iter().collect();
        let wants_data = self.inner.options().control & Asked::PacketData.bit() != 0;
        if let Some(header) = received.link.filter(|_| wants_data) {
            control.push((LEVEL_PACKET, 8, self.auxiliary(&header, &received)));
        }
        let source = match (received.link, received.interface) {
            (Some(header), Some(interface)) => Some(Address::Packet(PacketAddress::of(&header, interface))),
            _ => None,
        };
        let (count, length) = (received.count, received.length);
        Ok(Received { count, length, source, control, ..Received::default() })
    }

    /// Where the network's header begins in what the socket receives.
    fn network_offset(&self) -> u16 {
        if self.inner.kind() == SocketType::Datagram { 0 } else { 14 }
    }

    /// A struct tpacket_auxdata.
    fn auxiliary(&self, header: &LinkHeader, received: &InetReceived) -> Vec<u8> {
        const FOR_USER: u32 = 1;
        const NO_CHECKSUM: u32 = 8;
        // What stays in the system has no checksums.
        let local = received.interface == Some(InterfaceIndex(1));
        let status = FOR_USER | if local { NO_CHECKSUM } else { 0 };
        let bytes = Writer::<20>::new().u32(0, status).u32(4, header.whole as u32);
        bytes.u32(8, received.length as u32).u16(14, self.network_offset()).done().to_vec()
    }

    /// PACKET_ADD_MEMBERSHIP and PACKET_DROP_MEMBERSHIP, by a struct packet_mreq. `EINVAL`,
    /// `ENODEV`.
    pub(crate) fn change_membership(&self, bytes: &[u8], begins: bool) -> Result<()> {
        let interface = InterfaceIndex(bytes.u32_at(0)?);
        let (kind, length) = (bytes.u16_at(4)?, usize::from(bytes.u16_at(6)?));
        bytes.field::<8>(8)?;
        if length > HARDWARE_SIZE {
            return Err(Error::EINVAL);
        }
        let membership = match kind {
            // A group, or an own address in addition to the interface's.
            0 | 3 => Membership::Group(bytes.field(8)?),
            1 => Membership::Promiscuous,
            2 => Membership::AllGroups,
            _ => return Err(Error::EINVAL),
        };
        let changed =
            self.inner.network().with(|stack| stack.watch(self.inner.id(), interface, membership, begins));
        // Linux does not say that there was nothing to be dropped.
        if begins { Ok(changed?) } else { Ok(()) }
    }

    /// PACKET_STATISTICS: how many frames there were since this was last asked for, and for how
    /// many of them there was no room.
    pub(crate) fn take_statistics(&self) -> Result<Vec<u8>> {
        let statistics = self.inner.network().with(|stack| stack.take_statistics(self.inner.id()))?;
        Ok([statistics.received.to_le_bytes(), statistics.dropped.to_le_bytes()].concat())
    }

    /// The layout of the ring (PACKET_VERSION).
    pub(crate) fn version(&self) -> u32 {
        self.state.lock().version
    }

    /// Sets the layout of the ring that will be made. `EINVAL` if there is no such layout, `EBUSY`
    /// if there is a ring.
    pub(crate) fn set_version(&self, version: u32) -> Result<()> {
        self.check_no_ring()?;
        if version != VERSION {
            return Err(Error::EINVAL);
        }
        self.state.lock().version = version;
        Ok(())
    }

    /// Bytes that are left free before each frame in the ring (PACKET_RESERVE).
    pub(crate) fn reserve(&self) -> u32 {
        self.state.lock().reserve
    }

    /// Sets them, before the ring is made. `EINVAL`, `EBUSY`.
    pub(crate) fn set_reserve(&self, bytes: u32) -> Result<()> {
        self.check_no_ring()?;
        if bytes > i32::MAX as u32 {
            return Err(Error::EINVAL);
        }
        self.state.lock().reserve = bytes;
        Ok(())
    }

    fn check_no_ring(&self) -> Result<()> {
        if self.ring.lock().is_some() { Err(Error::EBUSY) } else { Ok(()) }
    }

    /// PACKET_RX_RING: makes the memory into which frames are written, or forgets it. `EINVAL`,
    /// `EBUSY` if there is one, `ENOMEM`.
    pub(crate) async fn set_ring(
        self: &Arc<PacketSocket>,
        caller: &Caller<'_>,
        request: RingRequest,
    ) -> Result<()> {
        if request.is_none() {
            request.check_none()?;
            // Its memory may be large, and is freed after the lock.
            let before = self.ring.lock().take();
            drop(before);
            return Ok(());
        }
        self.check_no_ring()?;
        let State { version, reserve, .. } = *self.state.lock();
        if version != VERSION {
            return Err(Error::EINVAL);
        }
        let ring = Ring::new(caller, request, reserve, self.network_offset()).await?;
        let mut place = self.ring.lock();
        if place.is_some() {
            return Err(Error::EBUSY);
        }
        *place = Some(Arc::new(ring));
        drop(place);
        let this: Arc<dyn Taker> = self.clone();
        self.inner.set_taker(Arc::downgrade(&this));
        self.fill();
        Ok(())
    }

    /// Writes the frames that have arrived to the ring, as far as it has room and its memory can be
    /// reached without waiting.
    fn fill(&self) {
        if self.ring.lock().is_none() {
            return;
        }
        // Only one call fills the ring; others, also those that the filling itself causes, let it
        // look again.
        let mut asked = self.fillers.fetch_add(1, Ordering::AcqRel) + 1;
        if asked != 1 {
            return;
        }
        while asked != 0 {
            while self.move_frame() {}
            asked = self.fillers.fetch_sub(asked, Ordering::AcqRel) - asked;
        }
    }

    /// Moves one frame from the socket's queue to the ring; false if that is not possible now.
    fn move_frame(&self) -> bool {
        // The ring is looked up for each frame: while a call fills one, the program can replace it.
        let Some(ring) = self.ring.lock().clone() else { return false };
        let ready = self.inner.network().with(|stack| stack.readiness(self.inner.id()));
        // The error is for the program, which takes it by a call.
        if !ready.read || ready.error || !ring.has_room() {
            return false;
        }
        let peek = InetReceiveHow { peek: true, ..InetReceiveHow::default() };
        let mut bytes = unix::Bytes::empty(ring.room());
        let Ok(received) = self.inner.try_receive(&mut bytes, peek) else { return false };
        if !ring.put(&*self.environment, &received, bytes.done()) {
            return false;
        }
        // It is in the ring, and leaves the queue.
        self.inner.try_receive(&mut unix::Bytes::empty(0), InetReceiveHow::default()).is_ok()
    }
}

impl Taker for PacketSocket {
    fn arrived(&self) {
        self.fill();
    }
}

impl FileObject for PacketSocket {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        Ok(self.inner.try_receive(to, InetReceiveHow::default())?.count)
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        self.try_send(from, None)
    }

    fn readiness(&self) -> Readiness {
        self.fill();
        let mut ready = self.inner.readiness();
        let ring = self.ring.lock().clone();
        if ring.is_some_and(|ring| ring.has_frame()) {
            ready |= Readiness::READ;
        }
        ready
    }

    fn queue(&self) -> Option<&PollQueue> {
        self.inner.queue()
    }

    fn deadline(&self, io: &Io<'_>, write: bool) -> Option<Duration> {
        self.inner.deadline(io, write)
    }

    fn file_type(&self) -> FileType {
        FileType::Socket
    }

    fn label(&self) -> &'static str {
        "socket"
    }

    fn readable_bytes(&self) -> Result<usize> {
        self.inner.readable_bytes()
    }

    fn memory(&self) -> Result<Arc<dyn FileMemory>> {
        self.ring.lock().as_ref().map(|ring| ring.memory()).ok_or(Error::EINVAL)
    }
}
