//! DHCP on the stack's interfaces.

use super::Stack;
use crate::error::{Error, Result};
use crate::time::Instant;
use crate::types::*;

/// DHCP on one interface.
pub(super) struct Entry {
    pub(super) interface: InterfaceIndex,
    pub(super) lease: Option<Lease>,
}

impl Stack {
    pub(super) fn begin_dhcp(&mut self, _interface: InterfaceIndex, _host_name: &str) -> Result<()> {
        Err(Error::NotSupported)
    }

    pub(super) fn end_dhcp(&mut self, _interface: InterfaceIndex) -> Result<()> {
        Err(Error::NotFound)
    }

    pub(super) fn renew_dhcp(&mut self, _interface: InterfaceIndex) {}

    pub(super) fn advance_dhcp(&mut self) {}

    pub(super) fn deadline_dhcp(&self) -> Option<Instant> {
        None
    }
}
