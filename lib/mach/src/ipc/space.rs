//! A task's name space, and the `mach_port_*` calls on names.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use super::account::{Account, Charge};
use super::entry::{Entry, MOST_REFERENCES, Object};
use super::notify::Later;
use super::port::Port;
use super::right::{OutOfMemory, Right};
use super::set::PortSet;
use super::table::Table;
use super::{Ipc, Name};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// A kind of right, with the number that Mach's interface has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRight {
    /// A right to send any number of messages.
    Send = 0,
    /// A right to receive the messages of a port.
    Receive = 1,
    /// A right to send one message.
    SendOnce = 2,
    /// A right to receive the messages of all ports of a port set.
    PortSet = 3,
    /// The name of a right to a port that has died.
    DeadName = 4,
}

impl PortRight {
    /// The kind of right that has the number `number` in Mach's interface.
    ///
    /// # Errors
    /// `InvalidValue`: no kind has this number.
    pub fn from_number(number: u32) -> KernResult<Self> {
        let all = [Self::Send, Self::Receive, Self::SendOnce, Self::PortSet, Self::DeadName];
        all.get(number as usize).copied().ok_or(KernError::InvalidValue)
    }
}

bitflags::bitflags! {
    /// The rights and requests of a name, with the bits of `mach_port_type_t`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PortType: u32 {
        /// The name has a send right.
        const SEND = 1 << 16;
        /// The name has a receive right.
        const RECEIVE = 1 << 17;
        /// The name has a send-once right.
        const SEND_ONCE = 1 << 18;
        /// The name denotes a port set.
        const PORT_SET = 1 << 19;
        /// The name is a dead name.
        const DEAD_NAME = 1 << 20;
        /// A message was sent with this name beyond the queue's limit, and the task is to be told
        /// when that message has left the queue.
        const ACCEPT_REQUEST = 1 << 30;
        /// The task is to be told when the port of the name dies.
        const DEAD_NAME_REQUEST = 1 << 31;
    }
}

/// The name space of one task: its names for rights. No method of a space blocks, except for the
/// spin locks; `mach_msg` is in [`typed`](super::typed).
pub struct Space<M: Machine> {
    pub(super) ipc: Arc<Ipc<M>>,
    pub(super) id: u64,
    pub(super) account: Arc<Account<M>>,
    pub(super) table: SpinLock<Table<M>>,
}

impl From<OutOfMemory> for KernError {
    fn from(_: OutOfMemory) -> Self {
        KernError::ResourceShortage
    }
}

impl<M: Machine> Space<M> {
    /// Makes a space without names, with the limits of the system.
    pub fn new(ipc: &Arc<Ipc<M>>) -> Arc<Self> {
        let account = Account::new(ipc, ipc.limits.bytes);
        let id = ipc.new_id();
        let table = Table::new(id, ipc.names, ipc.limits.names, account.clone());
        Arc::new(Self { ipc: ipc.clone(), id, account, table: SpinLock::new(table) })
    }

    /// The ports of the system to which the space belongs.
    pub fn ipc(&self) -> &Arc<Ipc<M>> {
        &self.ipc
    }

    /// How many bytes of server memory the space, its ports and its messages have in use.
    pub fn bytes(&self) -> usize {
        self.account.used()
    }

    /// Takes `bytes` from the space's account. `None`: there are no more.
    pub(crate) fn charge(&self, bytes: usize) -> Option<Charge<M>> {
        self.account.charge(bytes)
    }

    /// How many names the space has.
    pub fn name_count(&self) -> usize {
        self.table.lock().count()
    }

    /// Ends the space and all rights of the task: later calls fail with `InvalidTask`. Never
    /// blocks. The time grows with the number of names and of the messages in ports that end with
    /// them.
    pub fn terminate(&self) {
        let entries = self.table.lock().end();
        // The rights of each entry end before the next is looked at, so `later` stays small.
        for (name, mut entry) in entries {
            let mut later = Later::new();
            entry.cancel_requests(name, None, &mut later);
            entry.end(&mut later);
        }
    }

    /// Makes a right under a name that the space chooses: the receive right of a new port, a new
    /// port set, or a dead name. This is `mach_port_allocate`.
    ///
    /// # Errors
    /// `InvalidValue`: `right` is of another kind. `NoSpace`: the task has as many names as it may
    /// have. `ResourceShortage`: no memory, or more than the task may use. `InvalidTask`: the space
    /// has ended.
    pub fn allocate(&self, right: PortRight) -> KernResult<Name> {
        let entry = self.new_entry(right)?;
        self.insert_new(entry, None)
    }

    /// Makes a right as [`allocate`](Self::allocate) does, under the name `name`. This is
    /// `mach_port_allocate_name`.
    ///
    /// # Errors
    /// Those of [`allocate`](Self::allocate). `InvalidValue`: `name` is the null name or the dead
    /// name. `NameExists`: `name` denotes something.
    pub fn allocate_name(&self, right: PortRight, name: Name) -> KernResult {
        if !name.is_valid() {
            return Err(KernError::InvalidValue);
        }
        let entry = self.new_entry(right)?;
        self.insert_new(entry, Some(name)).map(|_| ())
    }

    fn new_entry(&self, right: PortRight) -> KernResult<Entry<M>> {
        Ok(match right {
            PortRight::Receive => Entry::new(Object::Receive(Port::create(&self.ipc, &self.account)?), 0),
            PortRight::PortSet => Entry::new(Object::Set(PortSet::new(&self.account)?), 0),
            PortRight::DeadName => Entry::new(Object::Dead, 1),
            PortRight::Send | PortRight::SendOnce => return Err(KernError::InvalidValue),
        })
    }

    fn insert_new(&self, entry: Entry<M>, name: Option<Name>) -> KernResult<Name> {
        let inserted = {
            let mut table = self.table.lock();
            match name {
                Some(name) => table.insert_at(name, entry).map(|()| name),
                None => table.insert(entry),
            }
        };
        // If there was an error, the entry that was not inserted is dropped here, without the lock.
        inserted.map_err(|(error, _)| error)
    }

    /// Calls `change` with the locked table. Rights and requests that end with the change end after
    /// the lock is released.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Table<M>, &mut Later<M>) -> KernResult<T>,
    ) -> KernResult<T> {
        let mut later = Later::new();
        let mut table = self.table.lock();
        if !table.is_alive() {
            return Err(KernError::InvalidTask);
        }
        change(&mut table, &mut later)
    }

    /// All names of the space and what they denote: `mach_port_names`.
    ///
    /// # Errors
    /// `InvalidTask`: the space has ended.
    pub fn names(&self) -> KernResult<Vec<(Name, PortType)>> {
        self.change(|table, _| {
            let names = table.names();
            Ok(names.into_iter().filter_map(|name| Some((name, table.get(name)?.kind()))).collect())
        })
    }

    /// What a name denotes, and the requests on it: `mach_port_type`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidTask`: the space has ended.
    pub fn port_type(&self, name: Name) -> KernResult<PortType> {
        self.change(|table, _| Ok(table.get(name).ok_or(KernError::InvalidName)?.kind()))
    }

    /// Gives the rights and requests of the name `old` the name `new`: `mach_port_rename`.
    ///
    /// # Errors
    /// `InvalidValue`: `new` is the null name or the dead name. `NameExists`: `new` denotes
    /// something. `InvalidName`: `old` denotes nothing. `ResourceShortage`: no memory for the
    /// entry. `InvalidTask`: the space has ended.
    pub fn rename(&self, old: Name, new: Name) -> KernResult {
        if !new.is_valid() {
            return Err(KernError::InvalidValue);
        }
        self.change(|table, _| table.rename(old, new))
    }

    /// Ends a name with all its rights and requests: `mach_port_destroy`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidTask`: the space has ended.
    pub fn destroy(&self, name: Name) -> KernResult {
        self.change(|table, later| {
            table.get(name).ok_or(KernError::InvalidName)?;
            if let Some(entry) = table.remove(name, None, later) {
                entry.end(later);
            }
            Ok(())
        })
    }

    /// Takes one reference from a send right, send-once right or dead name: `mach_port_deallocate`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: the name denotes only a receive
    /// right or a port set. `InvalidTask`: the space has ended.
    pub fn deallocate(&self, name: Name) -> KernResult {
        self.change(|table, later| {
            let entry = table.get(name).ok_or(KernError::InvalidName)?;
            match entry.object {
                Object::Receive(_) | Object::Set(_) => Err(KernError::InvalidRight),
                _ => table.change_references(name, -1, later),
            }
        })
    }

    /// How many references a name has to a right of the kind `right`, or 0 if the name denotes only
    /// rights of other kinds: `mach_port_get_refs`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidTask`: the space has ended.
    pub fn references(&self, name: Name, right: PortRight) -> KernResult<u32> {
        self.change(|table, _| {
            let entry = table.get(name).ok_or(KernError::InvalidName)?;
            Ok(match (right, &entry.object) {
                (PortRight::Send, Object::Send(_) | Object::SendReceive(..))
                | (PortRight::DeadName, Object::Dead) => entry.references,
                (PortRight::Receive, Object::Receive(_) | Object::SendReceive(..))
                | (PortRight::SendOnce, Object::SendOnce(_))
                | (PortRight::PortSet, Object::Set(_)) => 1,
                _ => 0,
            })
        })
    }

    /// Adds `delta` to the references that a name has to a right: `mach_port_mod_refs`. The right
    /// ends with its last reference.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: the name does not denote such a
    /// right. `InvalidValue`: there would be fewer references than none, or more than one to a
    /// right that can have only one. `UrefsOverflow`: there would be more than 65 535.
    /// `InvalidTask`: the space has ended.
    pub fn modify_references(&self, name: Name, right: PortRight, delta: i32) -> KernResult {
        self.change(|table, later| {
            let entry = table.get(name).ok_or(KernError::InvalidName)?;
            match (right, &entry.object) {
                (PortRight::Send, Object::Send(_) | Object::SendReceive(..))
                | (PortRight::DeadName, Object::Dead) => table.change_references(name, delta, later),
                (PortRight::Receive, Object::Receive(_) | Object::SendReceive(..))
                | (PortRight::SendOnce, Object::SendOnce(_))
                | (PortRight::PortSet, Object::Set(_)) => match delta {
                    0 => Ok(()),
                    -1 => table.end_single(name, later),
                    _ => Err(KernError::InvalidValue),
                },
                _ => Err(KernError::InvalidRight),
            }
        })
    }

    /// Gives the task a right under the name `name`: `mach_port_insert_right`. If the task has a
    /// name for a send or receive right to the port, then another send or receive right must get
    /// that name.
    ///
    /// # Errors
    /// The right is dropped on any error.
    /// `InvalidValue`: `name` is the null name or the dead name. `InvalidCapability`: `right` is no
    /// right, or a right to a dead port. `NameExists`: `name` denotes something else.
    /// `RightExists`: the task has another name for the port. `UrefsOverflow`: there would be more
    /// than 65 535 references. `NoSpace`, `ResourceShortage`: see [`allocate`](Self::allocate).
    /// `InvalidTask`: the space has ended.
    pub fn insert_right(&self, name: Name, right: Right<M>) -> KernResult {
        if !name.is_valid() {
            return Err(KernError::InvalidValue);
        }
        let Some(port) = right.living_port().cloned() else { return Err(KernError::InvalidCapability) };
        self.change(|table, later| {
            if !matches!(right, Right::SendOnce(_))
                && let Some(known) = table.name_of(&port)
            {
                if known != name {
                    later.drop_right(right);
                    return Err(KernError::RightExists);
                }
                return table.add_right(name, right, false, later);
            }
            let entry = Entry::of_right(right).ok_or(KernError::InvalidCapability)?;
            // A name whose port has died is not free either, although the caller does not know of
            // it yet.
            table.insert_at(name, entry).map_err(|(error, entry)| {
                entry.end(later);
                error
            })
        })
    }

    /// Takes or makes a right from a name, outside any message: `mach_port_extract_right`.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: the name has no right from which
    /// the disposition can take or make one. `ResourceShortage`: no memory for a send-once right.
    /// `InvalidTask`: the space has ended.
    pub fn extract_right(&self, name: Name, disposition: super::Disposition) -> KernResult<Right<M>> {
        self.change(|table, later| {
            let made = table.claim(name, disposition).map_err(KernError::from)?;
            Ok(table.commit(name, disposition, made, None, later))
        })
    }
}

impl<M: Machine> Drop for Space<M> {
    fn drop(&mut self) {
        self.terminate();
    }
}

impl<M: Machine> Table<M> {
    /// Adds `delta` to the references to a send right, send-once right or dead name.
    fn change_references(&mut self, name: Name, delta: i32, later: &mut Later<M>) -> KernResult {
        let entry = self.get(name).ok_or(KernError::InvalidName)?;
        let references = i64::from(entry.references) + i64::from(delta);
        match u32::try_from(references) {
            Err(_) => Err(KernError::InvalidValue),
            Ok(0) => self.end_last_reference(name, later),
            Ok(references) if references > MOST_REFERENCES => Err(KernError::UrefsOverflow),
            Ok(references) => {
                entry.references = references;
                Ok(())
            }
        }
    }

    /// Ends the send right, send-once right or dead name of a name, together with all references to
    /// it.
    fn end_last_reference(&mut self, name: Name, later: &mut Later<M>) -> KernResult {
        let entry = self.get(name).ok_or(KernError::InvalidName)?;
        if !matches!(entry.object, Object::SendReceive(..)) {
            if let Some(entry) = self.remove(name, None, later) {
                entry.end(later);
            }
            return Ok(());
        }
        entry.references = 0;
        self.replace(name, |object| match object {
            Object::SendReceive(send, receive) => {
                later.drop_right(Right::Send(send));
                Object::Receive(receive)
            }
            other => other,
        });
        Ok(())
    }

    /// Ends a right to which a name has always one reference: a receive right, a send-once right or
    /// a port set.
    fn end_single(&mut self, name: Name, later: &mut Later<M>) -> KernResult {
        let entry = self.get(name).ok_or(KernError::InvalidName)?;
        if matches!(entry.object, Object::SendReceive(..)) {
            // The send right stays in the entry. When the entry is next used, it becomes a dead
            // name, unless the port has survived because a port-destroyed notification took the
            // receive right.
            self.replace(name, |object| match object {
                Object::SendReceive(send, receive) => {
                    later.end_receive_right(receive);
                    Object::Send(send)
                }
                other => other,
            });
            return Ok(());
        }
        if let Some(entry) = self.remove(name, None, later) {
            entry.end(later);
        }
        Ok(())
    }
}
