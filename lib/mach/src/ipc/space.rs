//! A task's name space, and the `mach_port_*` calls on names.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use super::account::Account;
use super::entry::{Entry, MOST_REFERENCES, Object};
use super::notify::Later;
use super::port::Port;
use super::right::{OutOfMemory, Right};
use super::set::PortSet;
use super::table::Table;
use super::{Ipc, Name};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// A kind of right, with Mach's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRight {
    /// Send messages.
    Send = 0,
    /// Receive messages.
    Receive = 1,
    /// Send one message.
    SendOnce = 2,
    /// Receive the messages of several ports.
    PortSet = 3,
    /// A right to a port that has died.
    DeadName = 4,
}

impl PortRight {
    /// The kind with this number.
    ///
    /// # Errors
    /// `InvalidValue`: there is none.
    pub fn from_number(number: u32) -> KernResult<Self> {
        let all = [Self::Send, Self::Receive, Self::SendOnce, Self::PortSet, Self::DeadName];
        all.get(number as usize).copied().ok_or(KernError::InvalidValue)
    }
}

bitflags::bitflags! {
    /// What a name denotes: `mach_port_type_t`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PortType: u32 {
        /// A send right.
        const SEND = 1 << 16;
        /// A receive right.
        const RECEIVE = 1 << 17;
        /// A send-once right.
        const SEND_ONCE = 1 << 18;
        /// A port set.
        const PORT_SET = 1 << 19;
        /// A dead name.
        const DEAD_NAME = 1 << 20;
        /// A message is in the port's queue beyond its limit, and its sender is to be told when it
        /// has left.
        const ACCEPT_REQUEST = 1 << 30;
        /// The task is to be told when the port dies.
        const DEAD_NAME_REQUEST = 1 << 31;
    }
}

/// A task's name space.
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
    /// A space without names.
    pub fn new(ipc: &Arc<Ipc<M>>) -> Arc<Self> {
        let account = Account::new(ipc, ipc.limits.bytes);
        let id = ipc.new_id();
        let table = Table::new(id, ipc.names, ipc.limits.names, account.clone());
        Arc::new(Self { ipc: ipc.clone(), id, account, table: SpinLock::new(table) })
    }

    /// The system to which the space belongs.
    pub fn ipc(&self) -> &Arc<Ipc<M>> {
        &self.ipc
    }

    /// Bytes of server memory that the space, its ports and its messages have in use.
    pub fn bytes(&self) -> usize {
        self.account.used()
    }

    /// How many names there are.
    pub fn name_count(&self) -> usize {
        self.table.lock().count()
    }

    /// Ends the space: all rights of the task. Takes as long as there are names, and messages in
    /// ports that end with them; never blocks.
    pub fn terminate(&self) {
        let entries = self.table.lock().end();
        // Each entry ends by itself, so that what is collected stays small.
        for (name, mut entry) in entries {
            let mut later = Later::new();
            entry.cancel_requests(name, None, &mut later);
            entry.end(&mut later);
        }
    }

    /// A new right under a name that the space chooses: `mach_port_allocate`. A receive right of a
    /// new port, a new port set, or a dead name.
    ///
    /// # Errors
    /// `InvalidValue`: another kind. `NoSpace`, `ResourceShortage`: the limits of the space, or no
    /// memory. `InvalidTask`: the space has ended.
    pub fn allocate(&self, right: PortRight) -> KernResult<Name> {
        let entry = self.new_entry(right)?;
        self.insert_new(entry, None)
    }

    /// A new right under this name: `mach_port_allocate_name`.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate). `InvalidValue`: the null name or the dead name.
    /// `NameExists`.
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
        // The entry of a failure is dropped here, without the lock.
        inserted.map_err(|(error, _)| error)
    }

    /// Changes the table; what ends with the change ends after the lock is released.
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

    /// All names and what they denote: `mach_port_names`.
    ///
    /// # Errors
    /// `InvalidTask`.
    pub fn names(&self) -> KernResult<Vec<(Name, PortType)>> {
        self.change(|table, _| {
            let names = table.names();
            Ok(names.into_iter().filter_map(|name| Some((name, table.get(name)?.kind()))).collect())
        })
    }

    /// What a name denotes: `mach_port_type`.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidTask`.
    pub fn port_type(&self, name: Name) -> KernResult<PortType> {
        self.change(|table, _| Ok(table.get(name).ok_or(KernError::InvalidName)?.kind()))
    }

    /// Gives rights another name: `mach_port_rename`.
    ///
    /// # Errors
    /// `InvalidValue`: the new name is null or dead. `NameExists`: it denotes something.
    /// `InvalidName`: the old one denotes nothing. `ResourceShortage`, `InvalidTask`.
    pub fn rename(&self, old: Name, new: Name) -> KernResult {
        if !new.is_valid() {
            return Err(KernError::InvalidValue);
        }
        self.change(|table, _| table.rename(old, new))
    }

    /// Ends all rights of a name: `mach_port_destroy`.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidTask`.
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
    /// `InvalidName`, `InvalidTask`. `InvalidRight`: the name has none of those.
    pub fn deallocate(&self, name: Name) -> KernResult {
        self.change(|table, later| {
            let entry = table.get(name).ok_or(KernError::InvalidName)?;
            match entry.object {
                Object::Receive(_) | Object::Set(_) => Err(KernError::InvalidRight),
                _ => table.change_references(name, -1, later),
            }
        })
    }

    /// How many references a name has to a right: `mach_port_get_refs`. 0 if the name denotes other
    /// rights.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidTask`.
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

    /// Changes the references of a name to a right: `mach_port_mod_refs`. The last reference ends
    /// the right.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidTask`. `InvalidRight`: the name does not denote such a right.
    /// `InvalidValue`: there would be fewer than none, or the right has only ever one.
    /// `UrefsOverflow`.
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

    /// Gives the task a right under this name: `mach_port_insert_right`. A send or receive right to
    /// a port that the task has rights to must get the name of those.
    ///
    /// # Errors
    /// `InvalidValue`: the name is null or dead. `InvalidCapability`: no right, or of a dead port.
    /// `NameExists`: the name denotes something else. `RightExists`: the port has another name.
    /// `UrefsOverflow`, `NoSpace`, `ResourceShortage`, `InvalidTask`. The right is dropped then.
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
            // A dead name that the caller has not looked at yet is not free either.
            table.insert_at(name, entry).map_err(|(error, entry)| {
                entry.end(later);
                error
            })
        })
    }

    /// Takes or makes a right from a name, outside any message: `mach_port_extract_right`.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidTask`. `InvalidRight`: the name has not the right for it.
    /// `ResourceShortage`.
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
    /// Changes the references to a send right, send-once right or dead name.
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

    /// Ends a name's send right, send-once right or dead name.
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

    /// Ends a right that a name has once.
    fn end_single(&mut self, name: Name, later: &mut Later<M>) -> KernResult {
        let entry = self.get(name).ok_or(KernError::InvalidName)?;
        if matches!(entry.object, Object::SendReceive(..)) {
            // The send right stays; it is a dead name from the next look on, unless another task
            // gets the receive right.
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
