//! What drivers' connections do with a network in this server: interfaces come and go, frames
//! arrive and leave. A stack in another task has interfaces of its own, and gets none here.

use super::Network;
use crate::poll::{Readiness, until_ready};
use crate::{AttemptError, Error, Result};
use alloc::string::String;
use alloc::vec::Vec;
use inet::{Frame, InterfaceIndex, Internet, Offload};

impl Network {
    /// Adds the interface of a device, which is down until a program or DHCP sets it up. `EEXIST`
    /// for a name that is taken, `EINVAL` for a bad name or MTU, `EOPNOTSUPP` if the stack is in
    /// another task.
    pub fn attach(&self, name: &str, mac: [u8; 6], mtu: usize, offload: Offload) -> Result<InterfaceIndex> {
        self.with(|stack| {
            let stack = stack.here().ok_or(Error::EOPNOTSUPP)?;
            Ok(stack.add_interface(name, mac, mtu, offload)?)
        })
    }

    /// Says whether the interface's cable is plugged in.
    pub fn link(&self, interface: InterfaceIndex, plugged: bool) {
        // An interface that there is not any more has no link.
        let _ = self.with(|stack| stack.here().map(|stack| stack.set_link(interface, plugged)));
    }

    /// Takes a frame that has arrived. With `verified` the device has checked the checksums above
    /// IP.
    pub fn received(&self, interface: InterfaceIndex, frame: &[u8], verified: bool) {
        let now = self.now();
        self.with(|stack| {
            let Some(stack) = stack.here() else { return };
            match verified {
                true => stack.receive_verified(interface, frame, now),
                false => stack.receive(interface, frame, now),
            }
        });
    }

    /// The next frame that the interface's device has to send. Its buffer should come back by
    /// [`Network::recycle`].
    pub fn take_frame(&self, interface: InterfaceIndex) -> Option<Frame> {
        self.state.lock().as_mut()?.stack.here()?.transmit(interface)
    }

    /// Takes back the buffer of a frame that was sent.
    pub fn recycle(&self, frame: Frame) {
        if let Some(stack) = self.state.lock().as_mut().and_then(|state| state.stack.here()) {
            stack.recycle(frame);
        }
    }

    /// Waits until there is a frame for the device of `interface`.
    pub async fn frame_waits(&self, interface: InterfaceIndex) {
        let waits = || {
            let mut guard = self.state.lock();
            let stack = guard.as_mut().and_then(|state| state.stack.here());
            let waits = stack.is_some_and(|stack| stack.transmittable().any(|i| i == interface));
            if waits { Ok(()) } else { Err(AttemptError::WouldBlock) }
        };
        // The attempt has no error but that it would block, after which it is repeated.
        let _ = until_ready(&self.frames, Readiness::READ, waits).await;
    }

    /// The names and numbers of all interfaces.
    pub fn interface_names(&self) -> Vec<(InterfaceIndex, String)> {
        self.with(Internet::interfaces).into_iter().map(|i| (i.index, i.name)).collect()
    }
}
