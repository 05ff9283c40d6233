//! DHCP on the stack's interfaces: messages of the client by a socket, and leases as addresses and
//! routes.

use core::net::{IpAddr, Ipv4Addr};

use super::Stack;
use crate::dhcp::{Client, Event, Message};
use crate::error::{Error, Result};
use crate::time::Instant;
use crate::types::*;

/// The ports of client and server.
const CLIENT: u16 = 68;
const SERVER: u16 = 67;
/// The metric of the route that a lease brings.
const METRIC: u32 = 100;

/// DHCP on one interface.
pub(super) struct Entry {
    pub(super) interface: InterfaceIndex,
    client: Client,
    socket: SocketId,
    pub(super) lease: Option<Lease>,
    pub(super) declined: Option<Declined>,
}

impl Stack {
    pub(super) fn begin_dhcp(&mut self, interface: InterfaceIndex, host_name: &str) -> Result<()> {
        let link = self.net.link(interface).ok_or(Error::NotFound)?;
        if link.public.loopback {
            return Err(Error::InvalidArgument);
        }
        let mac = link.public.mac;
        let _ = self.end_dhcp(interface);
        let socket = self.open(Kind::Udp(Family::V4))?;
        self.configure(socket, |options| {
            options.interface = Some(interface);
            options.broadcast = true;
            options.reuse_address = true;
        })?;
        let any = SocketAddress::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), CLIENT);
        if let Err(error) = self.bind(socket, any) {
            self.close(socket);
            return Err(error);
        }
        let client = Client::new(mac, host_name, &mut self.net.random, self.net.now);
        self.dhcp.push(Entry { interface, client, socket, lease: None, declined: None });
        self.advance_dhcp();
        self.pump();
        Ok(())
    }

    pub(super) fn end_dhcp(&mut self, interface: InterfaceIndex) -> Result<()> {
        let at = self.dhcp.iter().position(|entry| entry.interface == interface).ok_or(Error::NotFound)?;
        let entry = self.dhcp.swap_remove(at);
        self.close(entry.socket);
        self.net.probed.retain(|probed| probed.0 != interface);
        self.drop_lease(interface, entry.lease);
        Ok(())
    }

    /// The cable was plugged in, or the interface has come up.
    pub(super) fn renew_dhcp(&mut self, interface: InterfaceIndex) {
        let now = self.net.now;
        for entry in self.dhcp.iter_mut().filter(|entry| entry.interface == interface) {
            entry.client.reconnect(&mut self.net.random, now);
        }
        self.advance_dhcp();
    }

    pub(super) fn advance_dhcp(&mut self) {
        for at in 0..self.dhcp.len() {
            self.receive_dhcp(at);
            self.decline_claimed(at);
            let now = self.net.now;
            let entry = &mut self.dhcp[at];
            let (message, event) = entry.client.poll(&mut self.net.random, now);
            if let Some(event) = event {
                self.apply(at, event);
            }
            if let Some(message) = message {
                self.send_dhcp(at, &message);
            }
        }
    }

    /// Declines an address that another system has.
    fn decline_claimed(&mut self, at: usize) {
        let interface = self.dhcp[at].interface;
        let claimed = |probed: &(InterfaceIndex, Ipv4Addr, Option<[u8; 6]>)| {
            let (probed, address, mac) = *probed;
            mac.filter(|_| probed == interface).map(|mac| Declined { address, mac })
        };
        let Some(declined) = self.net.probed.iter().find_map(claimed) else { return };
        self.net.probed.retain(|probed| probed.0 != interface);
        let now = self.net.now;
        if let Some(message) = self.dhcp[at].client.decline(&mut self.net.random, now) {
            self.dhcp[at].declined = Some(declined);
            self.send_dhcp(at, &message);
        }
    }

    /// Gives the client what has arrived.
    fn receive_dhcp(&mut self, at: usize) {
        let mut buffer = [0; 1500];
        loop {
            let socket = self.dhcp[at].socket;
            let received = match self.receive_datagram(socket, &mut buffer, ReceiveFlags::default()) {
                Ok(received) => received,
                // Errors of earlier messages do not matter: they are sent again.
                Err(Error::WouldBlock | Error::NotFound | Error::NotConnected) => return,
                Err(_) => continue,
            };
            if received.from.is_none_or(|from| from.port() != SERVER) {
                continue;
            }
            let now = self.net.now;
            let payload = &buffer[..received.copied];
            let event = self.dhcp[at].client.receive(payload, &mut self.net.random, now);
            if let Some(event) = event {
                self.apply(at, event);
            }
        }
    }

    fn send_dhcp(&mut self, at: usize, message: &Message) {
        let to = SocketAddress::new(IpAddr::V4(message.to.unwrap_or(Ipv4Addr::BROADCAST)), SERVER);
        let socket = self.dhcp[at].socket;
        // A message that cannot be sent now is sent again.
        let _ = self.send_datagram(socket, &message.payload, Some(to), SendFlags::default());
    }

    /// Sets or removes what a lease brings.
    fn apply(&mut self, at: usize, event: Event) {
        let interface = self.dhcp[at].interface;
        let new = match event {
            Event::Probe(address) => return self.net.probe(interface, address),
            Event::Granted(lease) => Some(lease),
            Event::Lost => None,
        };
        // The answer is known, or nothing is asked any more.
        self.net.probed.retain(|probed| probed.0 != interface);
        if new.is_some() {
            self.dhcp[at].declined = None;
        }
        let old = core::mem::replace(&mut self.dhcp[at].lease, new.clone());
        let same = |old: &Lease, new: &Lease| old.prefix == new.prefix && old.router == new.router;
        if let (Some(old), Some(new)) = (&old, &new)
            && same(old, new)
        {
            let addresses = self.net.addresses.iter_mut();
            let mut given = addresses.filter(|own| own.interface == interface && own.prefix == new.prefix);
            if let Some(own) = given.find(|own| own.expires.is_some()) {
                own.expires = Some(new.expires);
                let prolonged = *own;
                self.net.note_address(prolonged, false);
            }
        } else {
            self.drop_lease(interface, old);
        }
        let Some(lease) = new else { return };
        let prefix = lease.prefix;
        let expires = Some(lease.expires);
        // An address that is there already, of this lease or of the administrator's, stays.
        let _ = self.net.insert_address(Address {
            interface,
            prefix,
            expires,
            deprecated: None,
            tentative: false,
        });
        if let Some(router) = lease.router {
            let all = Prefix { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), length: 0 };
            // The route of this lease may be there, or have gone with the interface. Another
            // default route of this metric is preferred to the new one.
            let _ = self.net.insert_route(Route {
                destination: all,
                gateway: Some(router),
                interface,
                metric: METRIC,
                source: Some(prefix.address),
                origin: RouteOrigin::Dhcp,
                expires: None,
            });
        }
    }

    fn drop_lease(&mut self, interface: InterfaceIndex, lease: Option<Lease>) {
        let Some(lease) = lease else { return };
        let given =
            |own: &Address| own.interface == interface && own.prefix == lease.prefix && own.expires.is_some();
        if let Some(at) = self.net.addresses.iter().position(given) {
            self.net.drop_address(at);
        }
        self.net.retain_routes(|route| route.interface != interface || route.origin != RouteOrigin::Dhcp);
        self.net.generation += 1;
    }

    pub(super) fn deadline_dhcp(&self) -> Option<Instant> {
        self.dhcp.iter().map(|entry| entry.client.deadline).min()
    }
}
