//! Calls on receive rights and port sets: status, limits, counts, membership.

use alloc::vec::Vec;

use super::entry::Object;
use super::{Ipc, Name, Space};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// The state of the port of a receive right: `mach_port_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The set in which the port is, or the null name.
    pub set: Name,
    /// The sequence number that the port's next received message gets.
    pub sequence: u32,
    /// How often the receiver has made a send right, since the count was set.
    pub make_send_count: u32,
    /// How many messages the queue holds before senders wait.
    pub queue_limit: u32,
    /// How many messages are in the queue.
    pub messages: u32,
    /// How many send-once rights to the port exist.
    pub send_once_rights: u32,
    /// Whether send rights to the port exist.
    pub send_rights: bool,
    /// Whether a task has asked for a port-destroyed notification.
    pub port_destroyed: bool,
    /// Whether a task has asked for a no-senders notification.
    pub no_senders: bool,
}

/// A number as 32 bits hold it: `u32::MAX` for all that are greater.
fn shown(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<M: Machine> Space<M> {
    /// The state of the port of a receive right: `mach_port_get_receive_status`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: it has no receive right.
    /// `InvalidTask`: the space has ended.
    pub fn receive_status(&self, name: Name) -> KernResult<PortStatus> {
        let port = self.receive_port(name)?;
        let state = port.state.lock();
        let set = state.membership.as_ref().map_or(Name::NULL, |of| of.set.state.lock().name);
        Ok(PortStatus {
            set,
            sequence: state.sequence,
            make_send_count: state.make_send_count,
            queue_limit: state.queue_limit,
            messages: shown(state.queue.len() as u64),
            send_once_rights: shown(state.send_once_rights),
            send_rights: state.send_rights > 0,
            port_destroyed: state.port_destroyed.is_some(),
            no_senders: state.no_senders.is_some(),
        })
    }

    /// How many send rights there are to the port of a receive right: `mach_port_get_srights`.
    ///
    /// # Errors
    /// Those of [`receive_status`](Self::receive_status).
    pub fn send_rights(&self, name: Name) -> KernResult<u32> {
        let port = self.receive_port(name)?;
        let rights = port.state.lock().send_rights;
        Ok(shown(rights))
    }

    /// Sets how many messages the port's queue holds before senders wait: `mach_port_set_qlimit`.
    /// Waiting senders for which there is room now are woken. Never blocks.
    ///
    /// # Errors
    /// `InvalidValue`: the limit is greater than the system allows. Also those of
    /// [`receive_status`](Self::receive_status).
    pub fn set_queue_limit(&self, name: Name, limit: u32) -> KernResult {
        if limit > self.ipc.limits.longest_queue {
            return Err(KernError::InvalidValue);
        }
        let port = self.receive_port(name)?;
        port.state.lock().queue_limit = limit;
        loop {
            // The lock is released after each grant, because no waiter may be woken under the lock.
            let next = port.state.lock().grant();
            match next {
                Some(waker) => waker.wake(),
                None => return Ok(()),
            }
        }
    }

    /// Sets the port's make-send count: `mach_port_set_mscount`.
    ///
    /// # Errors
    /// Those of [`receive_status`](Self::receive_status).
    pub fn set_make_send_count(&self, name: Name, count: u32) -> KernResult {
        self.receive_port(name)?.state.lock().make_send_count = count;
        Ok(())
    }

    /// Sets the sequence number that the port's next received message gets: `mach_port_set_seqno`.
    ///
    /// # Errors
    /// Those of [`receive_status`](Self::receive_status).
    pub fn set_sequence(&self, name: Name, sequence: u32) -> KernResult {
        self.receive_port(name)?.state.lock().sequence = sequence;
        Ok(())
    }

    /// Sets the protected payload: a number that received messages have in the place of the port's
    /// name. `None` removes it. These are `mach_port_set_protected_payload` and
    /// `mach_port_clear_protected_payload`. The payload is also removed when the receive right is
    /// moved.
    ///
    /// # Errors
    /// Those of [`receive_status`](Self::receive_status).
    pub fn set_protected_payload(&self, name: Name, payload: Option<u64>) -> KernResult {
        self.receive_port(name)?.state.lock().payload = payload;
        Ok(())
    }

    /// Moves a receive right into the port set `after`, out of the set in which it is; if `after`
    /// is the null name, only out of its set. This is `mach_port_move_member`. Receivers that wait
    /// for the port alone fail with `ReceivePortChanged`. Never blocks.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidRight`: one of the names denotes nothing, `member` has no receive
    /// right, or `after` is no port set. `NotInSet`: `after` is the null name and the port is in no
    /// set. `ResourceShortage`: no memory for a member. `InvalidTask`: the space has ended.
    pub fn move_member(&self, member: Name, after: Name) -> KernResult {
        let (port, set) = self.change(|table, _| {
            let port = table.get(member).ok_or(KernError::InvalidName)?;
            let port = port.receive_port().cloned().ok_or(KernError::InvalidRight)?;
            if after == Name::NULL {
                return Ok((port, None));
            }
            match &table.get(after).ok_or(KernError::InvalidName)?.object {
                Object::Set(set) => Ok((port, Some(set.clone()))),
                _ => Err(KernError::InvalidRight),
            }
        })?;
        // The port or the set may have ended since. `move_member` checks both under their locks.
        let moved = self.ipc.move_member(&port, set.as_ref(), self.id);
        match moved {
            Ok(was_in_set) if set.is_none() && !was_in_set => Err(KernError::NotInSet),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The names of the ports that are members of a port set: `mach_port_get_set_status`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: it denotes no port set.
    /// `InvalidTask`: the space has ended.
    pub fn set_status(&self, name: Name) -> KernResult<Vec<Name>> {
        let set = self.change(|table, _| match &table.get(name).ok_or(KernError::InvalidName)?.object {
            Object::Set(set) => Ok(set.clone()),
            _ => Err(KernError::InvalidRight),
        })?;
        let members = Ipc::members(&set);
        Ok(members.iter().filter_map(|port| port.name_in(self.id)).collect())
    }
}
