//! Layouts of addresses of the Unix domain, message headers, control messages and credentials, and
//! the options of sockets.

use super::{Fields, Writer};
use alloc::vec::Vec;
use core::time::Duration;
use unix::socket::{PeerCredentials, SocketType, UnixAddress};
use unix::{Error, Result};

/// The number of the family of the Unix domain (AF_UNIX).
pub const FAMILY_UNIX: u16 = 1;
/// Bytes of the largest address that a program may pass (struct sockaddr_storage).
pub const ADDRESS_MAXIMUM: usize = 128;
/// Bytes of the field sun_path.
const PATH_SIZE: usize = 108;

/// The type of a socket, from its number without flags: `EINVAL` if there is no such type,
/// `ESOCKTNOSUPPORT` if the Unix domain does not have it.
pub fn socket_type(number: u32) -> Result<SocketType> {
    match number {
        1 => Ok(SocketType::Stream),
        // A raw socket is a datagram socket in the Unix domain, as on Linux.
        2 | 3 => Ok(SocketType::Datagram),
        5 => Ok(SocketType::Packets),
        4 | 6 | 10 => Err(Error::ESOCKTNOSUPPORT),
        _ => Err(Error::EINVAL),
    }
}

/// The number by which SO_TYPE reports the type.
pub fn to_socket_type(kind: SocketType) -> u32 {
    match kind {
        SocketType::Stream => 1,
        SocketType::Datagram => 2,
        SocketType::Raw => 3,
        SocketType::Packets => 5,
    }
}

/// Reads a struct sockaddr_un of this length. `EINVAL` if it is too short or too long, or of
/// another family.
pub fn address(bytes: &[u8]) -> Result<UnixAddress> {
    if bytes.len() > 2 + PATH_SIZE || bytes.u16_at(0)? != FAMILY_UNIX {
        return Err(Error::EINVAL);
    }
    Ok(match &bytes[2..] {
        [] => UnixAddress::Unnamed,
        [0, name @ ..] => UnixAddress::Abstract(name.to_vec()),
        path => {
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            UnixAddress::Path(path[..end].to_vec())
        }
    })
}

/// Writes a struct sockaddr_un, which is only the family if there is no name.
pub fn to_address(address: &UnixAddress) -> Vec<u8> {
    let mut bytes = FAMILY_UNIX.to_le_bytes().to_vec();
    match address {
        UnixAddress::Unnamed => {}
        UnixAddress::Path(path) => {
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        UnixAddress::Abstract(name) => {
            bytes.push(0);
            bytes.extend_from_slice(name);
        }
    }
    bytes
}

/// The header of a message (struct msghdr).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageHeader {
    /// Address of the socket address (msg_name), or 0.
    pub name: u64,
    /// Bytes of the socket address (msg_namelen).
    pub name_length: u32,
    /// Address of the array of iovec (msg_iov).
    pub ranges: u64,
    /// Elements of the array of iovec (msg_iovlen).
    pub range_count: u64,
    /// Address of the control messages (msg_control).
    pub control: u64,
    /// Bytes of the control messages (msg_controllen).
    pub control_length: u64,
}

impl MessageHeader {
    /// Bytes of struct msghdr.
    pub const SIZE: usize = 56;
    /// Offset of msg_namelen.
    pub const NAME_LENGTH_AT: u64 = 8;
    /// Offset of msg_controllen; msg_flags follows it.
    pub const CONTROL_LENGTH_AT: u64 = 40;

    /// Reads a struct msghdr.
    pub fn from_bytes(bytes: &[u8; MessageHeader::SIZE]) -> Result<MessageHeader> {
        Ok(MessageHeader {
            name: bytes.u64_at(0)?,
            name_length: bytes.u32_at(8)?,
            ranges: bytes.u64_at(16)?,
            range_count: bytes.u64_at(24)?,
            control: bytes.u64_at(32)?,
            control_length: bytes.u64_at(40)?,
        })
    }
}

const CONTROL_HEADER: usize = 16;
const LEVEL_SOCKET: u32 = 1;
const RIGHTS: u32 = 1;
const CREDENTIALS: u32 = 2;

/// The descriptors and credentials in the control messages of a send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Descriptors that are passed with the message.
    pub descriptors: Vec<i32>,
    /// Credentials that the receiver sees.
    pub credentials: Option<PeerCredentials>,
    /// Control messages of other levels: level, type and data of each.
    pub others: Vec<(u32, u32, Vec<u8>)>,
}

/// Reads the control messages of a send. `EINVAL` if they are malformed or of an unknown type of
/// the level of all sockets.
pub fn control(mut bytes: &[u8]) -> Result<Control> {
    let mut control = Control::default();
    while bytes.len() >= CONTROL_HEADER {
        let length = usize::try_from(bytes.u64_at(0)?).map_err(|_| Error::EINVAL)?;
        if length < CONTROL_HEADER || length > bytes.len() {
            return Err(Error::EINVAL);
        }
        let data = &bytes[CONTROL_HEADER..length];
        match (bytes.u32_at(8)?, bytes.u32_at(12)?) {
            (LEVEL_SOCKET, RIGHTS) => {
                let numbers = data.chunks_exact(4).map(|number| number.i32_at(0));
                control.descriptors.extend(numbers.collect::<Result<Vec<i32>>>()?);
            }
            (LEVEL_SOCKET, CREDENTIALS) if data.len() == 12 => {
                let (process, user, group) = (data.u32_at(0)?, data.u32_at(4)?, data.u32_at(8)?);
                control.credentials = Some(PeerCredentials { process, user, group });
            }
            (LEVEL_SOCKET, _) => return Err(Error::EINVAL),
            (level, kind) => control.others.push((level, kind, data.to_vec())),
        }
        bytes = &bytes[length.next_multiple_of(8).min(bytes.len())..];
    }
    Ok(control)
}

/// Writes the credentials as a struct ucred.
pub fn to_credentials(credentials: PeerCredentials) -> [u8; 12] {
    Writer::new().u32(0, credentials.process).u32(4, credentials.user).u32(8, credentials.group).done()
}

/// Writes control messages, for a program that has room for `room` bytes of them.
pub struct ControlWriter {
    bytes: Vec<u8>,
    room: usize,
    /// Whether a part did not fit into the program's buffer (MSG_CTRUNC).
    pub truncated: bool,
}

impl ControlWriter {
    /// Makes a writer that has written nothing yet.
    pub fn new(room: usize) -> ControlWriter {
        ControlWriter { bytes: Vec::new(), room, truncated: false }
    }

    /// The bytes that have been written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many descriptors fit in a control message of their own.
    pub fn descriptor_room(&self) -> usize {
        (self.room - self.bytes.len()).saturating_sub(CONTROL_HEADER) / 4
    }

    /// Adds a control message of any level.
    pub fn append(&mut self, level: u32, kind: u32, data: &[u8]) {
        let left = self.room - self.bytes.len();
        if left < CONTROL_HEADER {
            self.truncated = true;
            return;
        }
        let fits = data.len().min(left - CONTROL_HEADER);
        self.truncated |= fits < data.len();
        let length = CONTROL_HEADER + fits;
        self.bytes.extend_from_slice(&(length as u64).to_le_bytes());
        self.bytes.extend_from_slice(&level.to_le_bytes());
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(&data[..fits]);
        let padded = self.bytes.len().next_multiple_of(8).min(self.room);
        self.bytes.resize(padded, 0);
    }

    /// Adds a control message with credentials (SCM_CREDENTIALS).
    pub fn credentials(&mut self, credentials: PeerCredentials) {
        self.append(LEVEL_SOCKET, CREDENTIALS, &to_credentials(credentials));
    }

    /// Adds a control message with descriptors (SCM_RIGHTS).
    pub fn descriptors(&mut self, descriptors: &[i32]) {
        let bytes: Vec<u8> = descriptors.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.append(LEVEL_SOCKET, RIGHTS, &bytes);
    }
}

/// Reads a time-out (struct timeval): `None` for 0, which means no limit. `EDOM` if the
/// microseconds are not below one second. A negative time-out ends immediately.
pub fn timeout(bytes: &[u8; 16]) -> Result<Option<Duration>> {
    let (seconds, microseconds) = (bytes.i64_at(0)?, bytes.i64_at(8)?);
    if !(0..1_000_000).contains(&microseconds) {
        return Err(Error::EDOM);
    }
    let Ok(seconds) = u64::try_from(seconds) else { return Ok(Some(Duration::ZERO)) };
    let time = Duration::new(seconds, microseconds as u32 * 1000);
    Ok(if time.is_zero() { None } else { Some(time) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_conversion_both_ways() {
        for (bytes, expected) in [
            (&b"\x01\0"[..], UnixAddress::Unnamed),
            (b"\x01\0/run/x\0", UnixAddress::Path(b"/run/x".to_vec())),
            (b"\x01\0\0name", UnixAddress::Abstract(b"name".to_vec())),
            (b"\x01\0\0", UnixAddress::Abstract(Vec::new())),
        ] {
            assert_eq!(address(bytes).as_ref(), Ok(&expected));
            assert_eq!(to_address(&expected), bytes);
        }
        assert_eq!(address(b"\x01\0/run/x"), Ok(UnixAddress::Path(b"/run/x".to_vec())), "without its end");
        assert_eq!(address(b"\x02\0/run/x"), Err(Error::EINVAL));
        assert_eq!(address(b"\x01"), Err(Error::EINVAL));
        assert_eq!(address(&[1; 111]), Err(Error::EINVAL));
    }

    #[test]
    fn control_messages_are_written_and_read() {
        let peer = PeerCredentials { process: 5, user: 6, group: 7 };
        let mut writer = ControlWriter::new(256);
        writer.credentials(peer);
        writer.descriptors(&[3, 4, 5]);
        assert!(!writer.truncated);
        assert_eq!(writer.bytes().len(), 32 + 32);
        let read = control(writer.bytes()).unwrap();
        assert_eq!((read.descriptors, read.credentials), (vec![3, 4, 5], Some(peer)));
        let mut small = ControlWriter::new(16 + 8);
        assert_eq!(small.descriptor_room(), 2);
        small.descriptors(&[1, 2]);
        assert!(!small.truncated);
        small.credentials(peer);
        assert!(small.truncated);
        let header = |length: u64, level: u32, kind: u32| {
            Writer::<24>::new().u64(0, length).u32(8, level).u32(12, kind).done()
        };
        for bad in [header(8, 1, 1), header(25, 1, 1), header(20, 1, 2), header(20, 1, 9)] {
            assert_eq!(control(&bad), Err(Error::EINVAL));
        }
        let others = vec![(41, 9, vec![0; 4])];
        assert_eq!(control(&header(20, 41, 9)), Ok(Control { others, ..Control::default() }));
    }

    #[test]
    fn timeouts_are_read_as_linux_does() {
        let of = |seconds: i64, microseconds: i64| {
            timeout(&Writer::new().i64(0, seconds).i64(8, microseconds).done())
        };
        assert_eq!(of(0, 0), Ok(None));
        assert_eq!(of(1, 5), Ok(Some(Duration::new(1, 5000))));
        assert_eq!(of(-1, 5), Ok(Some(Duration::ZERO)));
        assert_eq!(of(0, 1_000_000), Err(Error::EDOM));
    }
}
