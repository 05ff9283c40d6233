//! Neighbour discovery (RFC 4861) and addresses that interfaces give themselves (RFC 4862).

use core::net::{IpAddr, Ipv6Addr};

use crate::error::Result;
use crate::net::Net;
use crate::time::Instant;
use crate::types::*;

impl Net {
    pub(crate) fn begin_v6(&mut self, _interface: InterfaceIndex) {}
    pub(crate) fn end_v6(&mut self, _interface: InterfaceIndex) {}
    pub(crate) fn ask_routers(&mut self, _interface: InterfaceIndex) {}
    pub(crate) fn advance_v6(&mut self) {}
    pub(crate) fn deadline_v6(&self) -> Option<Instant> {
        self.links.iter().filter_map(|link| link.solicit).map(|(at, _)| at).min()
    }
    pub(crate) fn solicit_v6(
        &mut self,
        _interface: InterfaceIndex,
        _target: Ipv6Addr,
        _mac: Option<[u8; 6]>,
    ) {
    }
    pub(crate) fn take_discovery(
        &mut self,
        _interface: InterfaceIndex,
        _source: IpAddr,
        _destination: IpAddr,
        _bytes: &[u8],
    ) -> Result<()> {
        Ok(())
    }
}
