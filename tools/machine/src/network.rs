//! The network of a machine: what QEMU connects the machine's network device with.

use crate::devices::Device;
use crate::qemu::{Machine, value};
use anyhow::{Result, bail};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::str::FromStr;

/// The driver of the network device. QEMU's arguments for the device are the network's.
pub(crate) const NET: Device = Device {
    qemu: "",
    program: "virtio-net",
    server: "server net
    program    virtio-net
    priority   200
    memory     1M
    dma        16K
    pci        1af4:1041
    restart    yes
",
};

/// The internet protocols in a task of their own. Without it they are in the Unix server.
const SERVER: Device = Device {
    qemu: "",
    program: "network",
    server: "server network
    program    network
    priority   190
    memory     24M
    restart    yes
",
};

/// What a machine's network device is connected with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A network of the machine's own in the emulator, from which connections go out by way of the
    /// host: a router, DHCP and DNS.
    User,
    /// A network device of the host's, of this name.
    Tap(String),
    /// Another machine, which connects to this TCP port of the host.
    Listen(u16),
    /// Another machine, which listens on this TCP port of the host.
    Connect(u16),
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let port = |text: &str| {
            text.parse().ok().filter(|&port| port > 0).ok_or(format!("{text} is no number of a TCP port"))
        };
        match text.split_once('=') {
            None if text == "user" => Ok(Network::User),
            Some(("tap", name)) if is_name(name) => Ok(Network::Tap(name.into())),
            Some(("tap", name)) => Err(format!("{name} is no name of a network device")),
            Some(("peer", peer)) => match peer.split_once(':') {
                Some(("listen", number)) => port(number).map(Network::Listen),
                Some(("connect", number)) => port(number).map(Network::Connect),
                _ => Err("a peer is listen:PORT in one machine and connect:PORT in the other".into()),
            },
            _ => Err("a network is user, tap=DEVICE, peer=listen:PORT or peer=connect:PORT".into()),
        }
    }
}

/// Whether a network device of Linux can have this name.
fn is_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !name.is_empty() && name.len() < 16 && name.chars().all(is_allowed)
}

/// A port of the host's address 127.0.0.1 whose connections go to a port of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The port of the host.
    pub host: u16,
    /// The port of the machine.
    pub guest: u16,
    /// Whether it is a port of UDP, not of TCP.
    pub udp: bool,
}

impl FromStr for Published {
    type Err = String;

    fn from_str(text: &str) -> Result<Published, String> {
        let (ports, udp) = match text.split_once('/') {
            None | Some((_, "tcp")) => (text.split('/').next().unwrap_or_default(), false),
            Some((ports, "udp")) => (ports, true),
            Some((_, other)) => return Err(format!("{other} is neither tcp nor udp")),
        };
        let (host, guest) = ports.split_once(':').ok_or("the ports are HOST:GUEST, HOST:GUEST/udp")?;
        let port = |text: &str| {
            text.parse().ok().filter(|&port| port > 0).ok_or(format!("{text} is no number of a port"))
        };
        Ok(Published { host: port(host)?, guest: port(guest)?, udp })
    }
}

impl Published {
    fn protocol(self) -> &'static str {
        if self.udp { "udp" } else { "tcp" }
    }

    /// Checks that the host's port is free: QEMU's own message does not say how to choose another.
    fn check(self) -> Result<()> {
        let address = ("127.0.0.1", self.host);
        let bound =
            if self.udp { UdpSocket::bind(address).map(drop) } else { TcpListener::bind(address).map(drop) };
        if let Err(error) = bound {
            bail!(
                "port {} of this computer cannot be used ({error}): choose another, --publish HOST:{}",
                self.host,
                self.guest
            );
        }
        Ok(())
    }
}

impl Machine {
    /// Adds a network device with its driver. The `published` ports need the emulator's network.
    ///
    /// # Errors
    /// A port or a device of the host cannot be used, or another network than the emulator's cannot
    /// publish ports.
    pub fn add_network(&mut self, network: &Network, published: &[Published]) -> Result<()> {
        if !published.is_empty() && *network != Network::User {
            bail!(
                "--publish: only the emulator's network has ports of this computer: leave out the value of --net"
            );
        }
        let backend = match network {
            Network::User => {
                let mut backend = "user,id=net".to_string();
                for (number, &port) in published.iter().enumerate() {
                    let Published { host, guest, .. } = port;
                    let is_same = |other: &Published| other.host == host && other.udp == port.udp;
                    if published[..number].iter().any(is_same) {
                        bail!("--publish: port {host} of this computer is named twice");
                    }
                    port.check()?;
                    backend += &format!(",hostfwd={}:127.0.0.1:{host}-:{guest}", port.protocol());
                }
                backend
            }
            Network::Tap(name) => {
                if !Path::new("/sys/class/net").join(name).exists() {
                    bail!(
                        "--net tap={name}: there is no such network device; `ip tuntap add {name} mode tap user $USER` \
                         makes one"
                    );
                }
                format!("tap,id=net,ifname={name},script=no,downscript=no")
            }
            Network::Listen(port) => {
                Published { host: *port, guest: *port, udp: false }.check()?;
                format!("socket,id=net,listen=127.0.0.1:{port}")
            }
            Network::Connect(port) => connection(*port),
        };
        self.add_card(backend, network);
        Ok(())
    }

    /// Adds a network device with its driver, at one end of a cable whose hub listens on this TCP
    /// port of the host.
    pub fn add_cable(&mut self, port: u16, is_second: bool) {
        let network = if is_second { Network::Connect(port) } else { Network::Listen(port) };
        // The hub listens for both.
        self.add_card(connection(port), &network);
    }

    fn add_card(&mut self, backend: String, network: &Network) {
        self.extra.extend(["-netdev".into(), backend, "-device".into(), device(network)]);
        self.devices.push(NET);
    }
}

impl Machine {
    /// Places the internet protocols in a task of their own.
    pub fn add_network_server(&mut self) {
        self.devices.push(SERVER);
    }
}

/// The network of a test's machine. Nothing leaves it but to programs of the host that the options
/// name, at 10.0.2.100: at port 7 one sends back what it gets, and at port 9 one sends the checksum
/// of what it gets, 1988895 bytes.
const OF_TESTS: &str = "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:7-cmd:cat,\
                        guestfwd=tcp:10.0.2.100:9-cmd:sh -c 'head -c 1988895 | cksum'";

/// The program, for the shell, that answers one request of HTTP with a file of a directory.
const FILE_SERVER: &str = "tests/guests/host/serve.sh";

/// QEMU's arguments for the network of a test's machine, if it has one.
pub(crate) fn of_tests(wanted: bool) -> impl Iterator<Item = String> {
    let backend = OF_TESTS.to_string();
    let device = device(&Network::User);
    ["-netdev".to_string(), backend, "-device".into(), device].into_iter().filter(move |_| wanted)
}

impl Machine {
    /// Opens the network of a test's machine: programs of the host can connect to the TCP ports
    /// `published`, by ports of 127.0.0.1 that QEMU chooses ([`port_of_host`]); and at port 80 of
    /// 10.0.2.100 the machine gets the files of a directory of the host.
    ///
    /// # Errors
    /// The machine has no such network, or the directory's name cannot be given to QEMU.
    pub fn open_network(&mut self, published: &[u16], served: &Path) -> Result<()> {
        let Some(backend) = self.extra.iter_mut().find(|argument| *argument == OF_TESTS) else {
            bail!("the machine has no network of a test's");
        };
        let served = value(served)?;
        if served.contains([' ', '"', '\'', '\\']) {
            bail!("QEMU starts no program with such an argument: {served:?} (is TMPDIR such a path?)");
        }
        for port in published {
            *backend += &format!(",hostfwd=tcp:127.0.0.1:0-:{port}");
        }
        *backend += &format!(",guestfwd=tcp:10.0.2.100:80-cmd:sh {FILE_SERVER} {served}");
        Ok(())
    }
}

/// The port of 127.0.0.1 that QEMU has chosen for a TCP port of the machine, from what its monitor
/// says to `info usernet`.
pub fn port_of_host(usernet: &str, guest: u16) -> Option<u16> {
    usernet.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["TCP[HOST_FORWARD]", _, _, host, _, port, ..] if port.parse() == Ok(guest) => host.parse().ok(),
            _ => None,
        }
    })
}

/// QEMU's description of a network whose frames go to a TCP port of the host.
fn connection(port: u16) -> String {
    format!("socket,id=net,connect=127.0.0.1:{port}")
}

/// QEMU's description of the device that is connected with a network.
fn device(network: &Network) -> String {
    format!("virtio-net-pci,disable-legacy=on,romfile=,netdev=net,mac={}", address(network))
}

/// The address of a machine's device, which no other machine in the same network may have.
fn address(network: &Network) -> String {
    let [.., high, middle, low] = match network {
        Network::User | Network::Listen(_) => [0, 0x12, 0x34, 0x56],
        Network::Connect(_) => [0, 0x12, 0x34, 0x57],
        // Several machines of one host may be in one bridge.
        Network::Tap(_) => std::process::id().to_be_bytes(),
    };
    format!("52:54:00:{high:02x}:{middle:02x}:{low:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_ports_are_named_by_words() {
        assert_eq!("user".parse(), Ok(Network::User));
        assert_eq!("tap=tap-0".parse(), Ok(Network::Tap("tap-0".into())));
        assert_eq!("peer=listen:7000".parse(), Ok(Network::Listen(7000)));
        assert_eq!("peer=connect:7000".parse(), Ok(Network::Connect(7000)));
        for wrong in ["", "other", "tap=", "tap=a,b", "tap=0123456789abcdef", "peer=7000", "peer=listen:0"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        let port = |host, guest, udp| Ok(Published { host, guest, udp });
        assert_eq!("8080:80".parse(), port(8080, 80, false));
        assert_eq!("8080:80/tcp".parse(), port(8080, 80, false));
        assert_eq!("53:5353/udp".parse(), port(53, 5353, true));
        for wrong in ["", "80", "80:", "0:80", "80:70000", "80:80/sctp", "a:b"] {
            assert!(wrong.parse::<Published>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_network_is_an_option_of_qemu_with_a_driver() {
        let mut machine = Machine::default();
        // The host chooses a free port.
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let host = taken.local_addr().unwrap().port();
        let published = [Published { host, guest: 80, udp: false }];
        let refused = machine.add_network(&Network::User, &published).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("port {host} of this computer cannot be used")), "{refused}");
        assert!(machine.extra.is_empty() && machine.devices.is_empty());
        drop(taken);
        machine.add_network(&Network::User, &published).unwrap();
        assert_eq!(machine.extra[1], format!("user,id=net,hostfwd=tcp:127.0.0.1:{host}-:80"));
        assert!(machine.devices[0].server.starts_with("server net\n"));
        let twice = [published[0], published[0]];
        let error = machine.add_network(&Network::User, &twice).unwrap_err().to_string();
        assert!(error.contains("named twice"), "{error}");
    }

    #[test]
    fn other_networks_publish_nothing_and_have_addresses_of_their_own() {
        let published = [Published { host: 1, guest: 80, udp: false }];
        let mut machine = Machine::default();
        let refused = machine.add_network(&Network::Connect(7000), &published).unwrap_err().to_string();
        assert!(refused.contains("--publish"), "{refused}");
        machine.add_network(&Network::Connect(7000), &[]).unwrap();
        assert_eq!(machine.extra[1], "socket,id=net,connect=127.0.0.1:7000");
        assert_ne!(address(&Network::Connect(7000)), address(&Network::Listen(7000)));
        let [first, second] = [false, true].map(|is_second| {
            let mut machine = Machine::default();
            machine.add_cable(7000, is_second);
            assert!(machine.devices.len() == 1 && machine.extra[1].ends_with(",connect=127.0.0.1:7000"));
            machine.extra
        });
        assert_ne!(first[3], second[3], "the devices have two addresses");
        let missing = Network::Tap("no-such-device".into());
        let refused = machine.add_network(&missing, &[]).unwrap_err().to_string();
        assert!(refused.contains("ip tuntap add"), "{refused}");
    }

    #[test]
    fn the_network_of_a_test_is_opened_by_ports_that_qemu_chooses() {
        let mut machine = Machine::default();
        assert!(machine.open_network(&[80], Path::new("/tmp/served")).is_err(), "it has none");
        machine.extra.extend(of_tests(true));
        assert!(machine.open_network(&[80], Path::new("/tmp/a b")).is_err());
        machine.open_network(&[80, 22], Path::new("/tmp/a,b")).unwrap();
        assert_eq!(
            machine.extra[1],
            format!(
                "{OF_TESTS},hostfwd=tcp:127.0.0.1:0-:80,hostfwd=tcp:127.0.0.1:0-:22,\
                 guestfwd=tcp:10.0.2.100:80-cmd:sh {FILE_SERVER} /tmp/a,,b"
            )
        );
    }

    #[test]
    fn the_port_that_qemu_chose_is_found() {
        let said = "Hub -1 (net):\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\n  \
                    TCP[ESTABLISHED]   21       127.0.0.1  5555       10.0.2.15    22     0     0\n  \
                    TCP[HOST_FORWARD]  13       127.0.0.1 40123       10.0.2.15    22     0     0\n";
        assert_eq!(port_of_host(said, 22), Some(40123));
        assert_eq!(port_of_host(said, 80), None);
    }
}
