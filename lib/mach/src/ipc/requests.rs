//! Requests to be notified of what becomes of a port: `mach_port_request_notification`.

use alloc::sync::Arc;
use core::mem::replace;

use super::entry::{MOST_REFERENCES, Object};
use super::notify::{self, Notification};
use super::port::{DeadNameRequest, Port};
use super::right::{Right, SendOnceRight};
use super::{Name, Space};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// Mach's numbers of the notifications that a task can ask for.
const PORT_DESTROYED: i32 = 69;
const NO_SENDERS: i32 = 70;
const DEAD_NAME: i32 = 72;

impl<M: Machine> Port<M> {
    /// Adds a request for a dead-name notification, and returns its index in the list of requests.
    ///
    /// # Errors
    /// The right `notify` comes back. `ResourceShortage`: no memory. `None` in its place: the port
    /// is dead.
    fn add_request(
        &self,
        name: Name,
        notify: SendOnceRight<M>,
    ) -> Result<u32, (Option<KernError>, SendOnceRight<M>)> {
        let mut state = self.state.lock();
        if state.is_dead() {
            return Err((None, notify));
        }
        let place = match state.free_requests.pop() {
            Some(place) => place as usize,
            None => {
                let room = state.requests.try_reserve(1);
                let more = state.requests.len() + 1;
                if room.and_then(|()| state.free_requests.try_reserve(more)).is_err() {
                    return Err((Some(KernError::ResourceShortage), notify));
                }
                state.requests.push(None);
                more - 1
            }
        };
        state.requests[place] = Some(DeadNameRequest { name, notify });
        Ok(place as u32)
    }

    /// Removes a request. `None`: the port has died and has sent the notification.
    pub(super) fn take_request(&self, place: u32) -> Option<DeadNameRequest<M>> {
        let mut state = self.state.lock();
        let request = state.requests.get_mut(place as usize)?.take()?;
        state.free_requests.push(place);
        Some(request)
    }

    /// Gives a request another name, because the task has renamed its right.
    pub(super) fn rename_request(&self, place: u32, name: Name) {
        if let Some(Some(request)) = self.state.lock().requests.get_mut(place as usize) {
            request.name = name;
        }
    }
}

impl<M: Machine> Space<M> {
    /// Asks for a notification, which Mach's number of its message selects, and returns the right
    /// of the request that this one replaces. Without a right `notify`, the earlier request is only
    /// taken back. Never blocks.
    ///
    /// - `PORT_DESTROYED` (69): when the receive right would end, it goes in a notification to the
    ///   port of `notify` instead.
    /// - `NO_SENDERS` (70): when there is no send right to the port. If there is none now and the
    ///   make-send count has reached `sync`, the notification is sent immediately.
    /// - `DEAD_NAME` (72): when the port dies; the name has one more reference then. If the name is
    ///   a dead name now and `sync` is not 0, the notification is sent immediately.
    ///
    /// # Errors
    /// `InvalidValue`: there is no notification with this number, or `sync` is not 0 for
    /// `PORT_DESTROYED`. `InvalidCapability`: `notify` is neither the null right nor a send-once
    /// right. `InvalidName`, `InvalidRight`: the name denotes nothing, or no right of the kind that
    /// the notification is about. `InvalidArgument`: the name is a dead name already.
    /// `UrefsOverflow`: there would be more than 65 535 references. `ResourceShortage`: no memory.
    /// `InvalidTask`: the space has ended.
    pub fn request_notification(
        &self,
        name: Name,
        number: i32,
        sync: u32,
        notify: Right<M>,
    ) -> KernResult<Option<SendOnceRight<M>>> {
        let notify = match notify {
            Right::Null => None,
            Right::SendOnce(right) => Some(right),
            _ => return Err(KernError::InvalidCapability),
        };
        match number {
            PORT_DESTROYED if sync != 0 => Err(KernError::InvalidValue),
            PORT_DESTROYED => {
                let port = self.receive_port(name)?;
                let mut state = port.state.lock();
                if state.is_dead() {
                    // Another thread has ended the receive right since this call looked it up.
                    drop(state);
                    return Err(KernError::InvalidRight);
                }
                Ok(replace(&mut state.port_destroyed, notify))
            }
            NO_SENDERS => self.request_no_senders(name, sync, notify),
            DEAD_NAME => self.request_dead_name(name, sync != 0, notify),
            _ => Err(KernError::InvalidValue),
        }
    }

    fn request_no_senders(
        &self,
        name: Name,
        sync: u32,
        notify: Option<SendOnceRight<M>>,
    ) -> KernResult<Option<SendOnceRight<M>>> {
        let port = self.receive_port(name)?;
        let (previous, immediate) = {
            let mut state = port.state.lock();
            if state.is_dead() {
                drop(state);
                return Err(KernError::InvalidRight);
            }
            let count = state.make_send_count;
            let is_due = state.send_rights == 0 && sync <= count;
            match notify {
                Some(right) if is_due => (state.no_senders.take(), Some((right, count))),
                notify => (replace(&mut state.no_senders, notify), None),
            }
        };
        if let Some((right, count)) = immediate {
            notify::send(right, Notification::NoSenders(count));
        }
        Ok(previous)
    }

    pub(super) fn request_dead_name(
        &self,
        name: Name,
        immediate: bool,
        mut notify: Option<SendOnceRight<M>>,
    ) -> KernResult<Option<SendOnceRight<M>>> {
        // On an error `notify` still has its right, which is dropped after the lock is released.
        let unused = &mut notify;
        self.change(|table, later| {
            loop {
                let entry = table.get(name).ok_or(KernError::InvalidName)?;
                let port = match &entry.object {
                    Object::Set(_) => return Err(KernError::InvalidRight),
                    Object::Dead => {
                        if !immediate || unused.is_none() {
                            return Err(KernError::InvalidArgument);
                        }
                        if entry.references >= MOST_REFERENCES {
                            return Err(KernError::UrefsOverflow);
                        }
                        entry.references += 1;
                        if let Some(right) = unused.take() {
                            later.notify(right, Notification::DeadName(name));
                        }
                        return Ok(None);
                    }
                    _ => entry.port().cloned().ok_or(KernError::InvalidRight)?,
                };
                let old = entry.request;
                let added = match unused.take().map(|right| port.add_request(name, right)) {
                    None => None,
                    Some(Ok(place)) => Some(place),
                    Some(Err((error, right))) => {
                        *unused = Some(right);
                        match error {
                            Some(error) => return Err(error),
                            // The port has just died: with the next pass `get` makes the name a
                            // dead name.
                            None => continue,
                        }
                    }
                };
                entry.request = added;
                let previous = old.and_then(|place| port.take_request(place));
                return Ok(previous.map(|request| request.notify));
            }
        })
    }

    /// The length of the list of dead-name requests at the port of a receive right, and how many
    /// requests are in it: `mach_port_dnrequest_info`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: it has no receive right.
    /// `InvalidTask`: the space has ended.
    pub fn dead_name_requests(&self, name: Name) -> KernResult<(usize, usize)> {
        let port = self.receive_port(name)?;
        let state = port.state.lock();
        Ok((state.requests.len(), state.requests.iter().flatten().count()))
    }

    /// The port of a name's receive right.
    pub(super) fn receive_port(&self, name: Name) -> KernResult<Arc<Port<M>>> {
        self.change(|table, _| {
            let entry = table.get(name).ok_or(KernError::InvalidName)?;
            entry.receive_port().cloned().ok_or(KernError::InvalidRight)
        })
    }
}
