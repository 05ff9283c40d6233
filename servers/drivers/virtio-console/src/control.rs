//! The messages between device and driver about ports, and the state of the ports (5.3.6.2). What
//! the device says is checked; messages without a meaning are ignored.

use crate::area::Host;
use core::array;

/// The most ports that the driver serves; a device may have more.
pub const PORTS: usize = 4;
/// The length of a message in bytes. Longer ones carry a name, which the driver does not need.
pub const LENGTH: usize = 8;

/// What a message is about, as the device and the driver encode it.
const DEVICE_READY: u16 = 0;
const PORT_ADD: u16 = 1;
const PORT_REMOVE: u16 = 2;
const PORT_READY: u16 = 3;
const PORT_OPEN: u16 = 6;

/// A message from the driver to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    port: u32,
    event: u16,
    value: u16,
}

impl Message {
    /// The message that asks the device for the messages about its ports.
    pub const DEVICE_READY: Message = Message { port: 0, event: DEVICE_READY, value: 1 };

    /// The message as the device reads it.
    pub fn bytes(self) -> [u8; LENGTH] {
        let [a, b, c, d] = self.port.to_le_bytes();
        let ([e, f], [g, h]) = (self.event.to_le_bytes(), self.value.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    fn read(bytes: &[u8]) -> Option<Message> {
        let &[a, b, c, d, e, f, g, h] = bytes.first_chunk()?;
        Some(Message {
            port: u32::from_le_bytes([a, b, c, d]),
            event: u16::from_le_bytes([e, f]),
            value: u16::from_le_bytes([g, h]),
        })
    }
}

/// The driver's answer to a message: at most two messages to the device.
pub type Answer = [Option<Message>; 2];

/// What is known about a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Port {
    /// Whether the device has it.
    exists: bool,
    /// Whether a client uses it.
    is_used: bool,
    host: Host,
}

/// The ports of a device.
#[derive(Debug)]
pub struct Ports {
    ports: [Port; PORTS],
}

impl Default for Ports {
    fn default() -> Ports {
        Ports { ports: array::from_fn(|_| Port::default()) }
    }
}

impl Ports {
    /// Takes a message of the device. Returns the driver's answer to it.
    pub fn take(&mut self, message: &[u8]) -> Answer {
        let Some(Message { port: number, event, value }) = Message::read(message) else { return [None; 2] };
        let Some(port) = usize::try_from(number).ok().and_then(|number| self.ports.get_mut(number)) else {
            return [None; 2];
        };
        match event {
            PORT_ADD if !port.exists => {
                port.exists = true;
                let ready = Message { port: number, event: PORT_READY, value: 1 };
                return [Some(ready), port.is_used.then_some(opened(number, true))];
            }
            PORT_REMOVE if port.exists => {
                port.exists = false;
                port.close();
            }
            PORT_OPEN if port.exists && value != 0 => port.host = Host::Open,
            PORT_OPEN if port.exists => port.close(),
            _ => {}
        }
        [None; 2]
    }

    /// Whether the device has a port, a number below [`PORTS`].
    pub fn exists(&self, port: usize) -> bool {
        self.ports[port].exists
    }

    /// The state of the host's end of a port, a number below [`PORTS`].
    pub fn host(&self, port: usize) -> Host {
        self.ports[port].host
    }

    /// A client begins to use the port, or ends. Returns the message that tells the device.
    pub fn use_port(&mut self, port: usize, is_used: bool) -> Option<Message> {
        let Port { exists, is_used: before, .. } = self.ports[port];
        self.ports[port].is_used = is_used;
        (exists && before != is_used).then(|| opened(port as u32, is_used))
    }
}

impl Port {
    /// The host's end is closed, if it was open: a device need not say that an end is open that it
    /// says is closed.
    fn close(&mut self) {
        if self.host == Host::Open {
            self.host = Host::Closed;
        }
    }
}

/// The message that this machine has opened its end of a port, or has closed it.
fn opened(port: u32, value: bool) -> Message {
    Message { port, event: PORT_OPEN, value: value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(port: u32, event: u16, value: u16) -> [u8; LENGTH] {
        Message { port, event, value }.bytes()
    }

    #[test]
    fn a_port_is_added_used_opened_and_closed() {
        let mut ports = Ports::default();
        assert_eq!(Message::DEVICE_READY.bytes(), [0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(ports.use_port(1, true), None, "the device does not have it yet");
        let ready = Message { port: 1, event: PORT_READY, value: 1 };
        assert_eq!(ports.take(&message(1, PORT_ADD, 0)), [Some(ready), Some(opened(1, true))]);
        assert_eq!(ports.host(1), Host::Absent);
        assert_eq!(ports.take(&message(1, PORT_OPEN, 1)), [None; 2]);
        assert_eq!(ports.host(1), Host::Open);
        ports.take(&message(1, PORT_OPEN, 0));
        assert_eq!((ports.host(1), ports.host(2)), (Host::Closed, Host::Absent));
        assert_eq!(ports.use_port(1, false), Some(opened(1, false)));
        assert_eq!(ports.use_port(1, false), None);
        assert_eq!(ports.use_port(1, true), Some(opened(1, true)));
    }

    #[test]
    fn a_port_that_is_added_before_it_is_used_is_ready_first_and_opened_later() {
        let mut ports = Ports::default();
        let ready = Message { port: 3, event: PORT_READY, value: 1 };
        assert_eq!(ports.take(&message(3, PORT_ADD, 0)), [Some(ready), None]);
        assert_eq!(ports.take(&message(3, PORT_ADD, 0)), [None; 2], "a second one means nothing");
        assert_eq!(ports.use_port(3, true), Some(opened(3, true)));
    }

    #[test]
    fn a_port_that_is_removed_is_closed() {
        let mut ports = Ports::default();
        ports.take(&message(2, PORT_ADD, 0));
        ports.take(&message(2, PORT_OPEN, 1));
        ports.take(&message(2, PORT_REMOVE, 0));
        assert_eq!((ports.host(2), ports.use_port(2, true)), (Host::Closed, None));
    }

    #[test]
    fn messages_without_a_meaning_are_ignored() {
        let mut ports = Ports::default();
        for bad in [
            message(PORTS as u32, PORT_ADD, 0),
            message(u32::MAX, PORT_OPEN, 1),
            message(1, PORT_OPEN, 1),
            message(1, PORT_REMOVE, 0),
            message(1, PORT_READY, 1),
            message(1, 77, 1),
        ] {
            assert_eq!(ports.take(&bad), [None; 2]);
        }
        for length in 0..LENGTH {
            assert_eq!(ports.take(&message(0, PORT_ADD, 0)[..length]), [None; 2]);
        }
        assert!((0..PORTS).all(|port| ports.host(port) == Host::Absent));
        // A name follows this message, which is read as far as it is known.
        assert!(ports.take(&[&message(1, PORT_ADD, 0)[..], b"name"].concat())[0].is_some());
    }

    proptest! {
        #[test]
        fn no_message_is_answered_about_a_port_that_there_is_not(
            messages in proptest::collection::vec((0u32..6, 0u16..9, any::<u16>()), 0..200),
        ) {
            let mut ports = Ports::default();
            for (port, event, value) in messages {
                for answer in ports.take(&message(port, event, value)).into_iter().flatten() {
                    prop_assert!(answer.port == port && (port as usize) < PORTS && event == PORT_ADD);
                }
            }
        }
    }
}
