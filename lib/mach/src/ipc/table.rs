//! A task's table of names.
//!
//! Entries with low indices are in an array. A program may also choose a name itself, which can be
//! any number; if its index has no free place in the array, the entry is in a tree, and the table
//! gives out no other name with that index.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::account::Account;
use super::entry::{Entry, Object};
use super::free_names::FreeNames;
use super::notify::{AcceptRequest, Later};
use super::port::{DeadNameRequest, Holder, Port};
use super::reverse::Reverse;
use super::right::SendOnceRight;
use super::{Name, NameRule};
use crate::machine::Machine;
use crate::{KernError, KernResult};

struct Slot<M: Machine> {
    generation: u8,
    entry: Option<Entry<M>>,
}

/// The names of a space, and what they denote.
pub(super) struct Table<M: Machine> {
    /// The number of the space, which ports have in their `holder`.
    space: u64,
    rule: NameRule,
    alive: bool,
    slots: Vec<Slot<M>>,
    free: FreeNames,
    chosen: BTreeMap<Name, Entry<M>>,
    /// From each port to which the task has a send right to the name of that right.
    reverse: Reverse,
    count: usize,
    limit: usize,
    account: Arc<Account<M>>,
}

/// The error of an insertion, and the entry that was not inserted.
pub(super) type NotInserted<M> = (KernError, Entry<M>);

impl<M: Machine> Table<M> {
    const SLOT_BYTES: usize = size_of::<Slot<M>>() + Self::REQUEST_BYTES + Reverse::BYTES;
    const CHOSEN_BYTES: usize = 2 * size_of::<(Name, Entry<M>)>() + Self::REQUEST_BYTES + Reverse::BYTES;
    /// The most bytes that the requests on one name take, in the port's list and by themselves.
    const REQUEST_BYTES: usize =
        2 * size_of::<Option<DeadNameRequest<M>>>() + size_of::<AcceptRequest<M>>() + 32;

    pub(super) fn new(space: u64, rule: NameRule, limit: usize, account: Arc<Account<M>>) -> Self {
        Self {
            space,
            rule,
            alive: true,
            slots: Vec::new(),
            free: FreeNames::default(),
            chosen: BTreeMap::new(),
            reverse: Reverse::default(),
            count: 0,
            limit,
            account,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// How many names the table has.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn has_chosen(&self, index: usize) -> bool {
        !self.chosen.is_empty() && self.chosen.range(self.rule.names_of(index)).next().is_some()
    }

    fn raw(&mut self, name: Name) -> Option<&mut Entry<M>> {
        let (index, generation) = self.rule.split(name);
        if let Some(slot) = self.slots.get_mut(index)
            && slot.generation == generation
            && slot.entry.is_some()
        {
            return slot.entry.as_mut();
        }
        if self.chosen.is_empty() { None } else { self.chosen.get_mut(&name) }
    }

    /// The entry of a name, or `None` if the name denotes nothing. If the port of a send or
    /// send-once right has died, this call turns the right into a dead name first.
    #[inline]
    pub(super) fn get(&mut self, name: Name) -> Option<&mut Entry<M>> {
        // Most names are in the array and denote a right to a living port.
        let (index, generation) = self.rule.split(name);
        let is_alive = self.slots.get(index).is_some_and(|slot| {
            slot.generation == generation && slot.entry.as_ref().is_some_and(|entry| !entry.has_died())
        });
        if is_alive { self.slots[index].entry.as_mut() } else { self.get_other(name) }
    }

    /// The entry of a name whose port may have died, or that may not be in the array.
    #[inline(never)]
    fn get_other(&mut self, name: Name) -> Option<&mut Entry<M>> {
        let entry = self.raw(name)?;
        if entry.has_died() {
            let port = entry.object.send_port();
            // To drop a right to a dead port wakes no waiter and sends nothing, so the lock may be
            // held.
            entry.die();
            if let Some(port) = port {
                self.reverse.remove(port);
            }
        }
        self.raw(name)
    }

    /// The task's name for its receive or send right to a living port.
    pub(super) fn name_of(&self, port: &Port<M>) -> Option<Name> {
        port.name_in(self.space).or_else(|| self.reverse.get(port.id))
    }

    /// The task's name for its send right to a living port.
    pub(super) fn name_of_send_right(&self, port: &Port<M>) -> Option<Name> {
        self.reverse.get(port.id)
    }

    /// Adds an entry under a name that the table chooses.
    ///
    /// # Errors
    /// The entry comes back with each error. `InvalidTask`: the space has ended. `NoSpace`: the
    /// task has as many names as it may have. `ResourceShortage`: no memory.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry<M>) -> Result<Name, NotInserted<M>> {
        if let Err(error) = self.prepare(&entry) {
            return Err((error, entry));
        }
        let index = match self.free.lowest() {
            Some(index) => index,
            None => match self.grow() {
                Ok(index) => index,
                Err(error) => return Err((error, entry)),
            },
        };
        let name = self.rule.join(index, self.slots[index].generation);
        self.put(name, entry);
        Ok(name)
    }

    /// Adds an entry under the name `name`, which must be valid.
    ///
    /// # Errors
    /// Those of [`insert`](Self::insert). `NameExists`: `name` denotes something.
    pub(super) fn insert_at(&mut self, name: Name, entry: Entry<M>) -> Result<(), NotInserted<M>> {
        if self.raw(name).is_some() {
            return Err((KernError::NameExists, entry));
        }
        if let Err(error) = self.prepare(&entry) {
            return Err((error, entry));
        }
        if !self.has_slot(name) && !self.account.take(Self::CHOSEN_BYTES) {
            return Err((KernError::ResourceShortage, entry));
        }
        self.put(name, entry);
        Ok(())
    }

    /// Checks that the space may have one more entry, and makes room for a send right in `reverse`.
    #[inline]
    fn prepare(&mut self, entry: &Entry<M>) -> KernResult {
        if !self.alive {
            return Err(KernError::InvalidTask);
        }
        if self.count >= self.limit {
            return Err(KernError::NoSpace);
        }
        if entry.object.send_port().is_some() {
            self.reserve_send_right()?;
        }
        Ok(())
    }

    /// Makes the array longer, and returns the lowest of its new indices that is free.
    #[cold]
    fn grow(&mut self) -> KernResult<usize> {
        loop {
            let before = self.slots.len();
            let wanted = (before * 2).max(16).min(self.rule.end());
            let added = wanted.saturating_sub(before);
            if added == 0 {
                return Err(KernError::NoSpace);
            }
            if !self.account.take(added * Self::SLOT_BYTES) {
                return Err(KernError::ResourceShortage);
            }
            if self.slots.try_reserve_exact(added).is_err() || self.free.grow(wanted).is_err() {
                self.account.give(added * Self::SLOT_BYTES);
                return Err(KernError::ResourceShortage);
            }
            for index in before..wanted {
                self.slots.push(Slot { generation: self.rule.first(), entry: None });
                // Index 0 is left out: its names would include the null name.
                if index > 0 && !self.has_chosen(index) {
                    self.free.insert(index);
                }
            }
            if let Some(index) = self.free.lowest() {
                return Ok(index);
            }
        }
    }

    /// Puts an entry under a free name. Returns whether the entry is in the array.
    #[inline]
    fn put(&mut self, name: Name, entry: Entry<M>) -> bool {
        self.count += 1;
        self.note_holder(name, &entry);
        let (index, generation) = self.rule.split(name);
        match self.slots.get_mut(index) {
            Some(slot) if slot.entry.is_none() => {
                (slot.generation, slot.entry) = (generation, Some(entry));
                self.free.remove(index);
                true
            }
            _ => {
                self.chosen.insert(name, entry);
                self.free.remove(index);
                false
            }
        }
    }

    /// Records the name of a new entry in the port of its receive right or set, and for its send
    /// right in `reverse`.
    #[inline]
    fn note_holder(&mut self, name: Name, entry: &Entry<M>) {
        if let Some(port) = entry.object.send_port() {
            self.reverse.insert(port, name);
        }
        if let Some(port) = entry.receive_port() {
            port.state.lock().holder = Holder::Space(self.space, name);
        }
        if let Object::Set(set) = &entry.object {
            set.state.lock().name = name;
        }
    }

    /// Removes a name in the array that denotes a send-once right to a living port, if there is
    /// nothing else about it. `None`, and nothing has changed: the name is not of this kind.
    #[inline]
    pub(super) fn take_lone_send_once(&mut self, name: Name) -> Option<SendOnceRight<M>> {
        let (index, generation) = self.rule.split(name);
        let slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let entry = slot.entry.as_mut()?;
        if entry.request.is_some() || entry.accept.is_some() || entry.has_died() {
            return None;
        }
        match core::mem::replace(&mut entry.object, Object::Dead) {
            Object::SendOnce(right) => {
                (slot.entry, slot.generation) = (None, self.rule.next(generation));
                self.count -= 1;
                if !self.has_chosen(index) {
                    self.free.insert(index);
                }
                Some(right)
            }
            other => {
                entry.object = other;
                None
            }
        }
    }

    /// Removes the entry of a name, with its requests, from the table.
    fn take(&mut self, name: Name) -> Option<Entry<M>> {
        let (index, generation) = self.rule.split(name);
        let next = self.rule.next(generation);
        let in_slot = self.slots.get_mut(index).filter(|slot| slot.generation == generation);
        let entry = match in_slot.and_then(|slot| Some((slot.entry.take()?, slot))) {
            Some((entry, slot)) => {
                slot.generation = next;
                entry
            }
            None => {
                let entry = self.chosen.remove(&name)?;
                self.account.give(Self::CHOSEN_BYTES);
                entry
            }
        };
        if self.slots.get(index).is_some_and(|slot| slot.entry.is_none()) && !self.has_chosen(index) {
            self.free.insert(index);
        }
        self.count -= 1;
        if let Some(port) = entry.object.send_port() {
            self.reverse.remove(port);
        }
        Some(entry)
    }

    /// Removes a name. For its requests, port-deleted notifications are sent, except that a
    /// dead-name request to the port `silent` ends without one.
    pub(super) fn remove(
        &mut self,
        name: Name,
        silent: Option<&Arc<Port<M>>>,
        later: &mut Later<M>,
    ) -> Option<Entry<M>> {
        let mut entry = self.take(name)?;
        entry.cancel_requests(name, silent, later);
        Some(entry)
    }

    /// Makes room in `reverse` for one more port to which there is a send right.
    pub(super) fn reserve_send_right(&mut self) -> KernResult {
        self.reverse.reserve().map_err(|_| KernError::ResourceShortage)
    }

    /// Changes what a name denotes: `new` gets the old object and returns the new one. If the new
    /// object has a send right and the old one has none, the caller must have called
    /// [`reserve_send_right`](Self::reserve_send_right).
    pub(super) fn replace(&mut self, name: Name, new: impl FnOnce(Object<M>) -> Object<M>) {
        let space = self.space;
        let Some(entry) = self.raw(name) else { return };
        let old = core::mem::replace(&mut entry.object, Object::Dead);
        let sent = old.send_port();
        entry.object = new(old);
        let sends = entry.object.send_port();
        if let Some(port) = entry.receive_port() {
            port.state.lock().holder = Holder::Space(space, name);
        }
        match (sent, sends) {
            (Some(port), None) => self.reverse.remove(port),
            (None, Some(port)) => self.reverse.insert(port, name),
            _ => {}
        }
    }

    /// Moves an entry with its requests from the name `old` to the name `new`.
    ///
    /// # Errors
    /// `NameExists`: `new` denotes something. `InvalidName`: `old` denotes nothing.
    /// `ResourceShortage`: no memory for the entry.
    pub(super) fn rename(&mut self, old: Name, new: Name) -> KernResult {
        if self.raw(new).is_some() {
            return Err(KernError::NameExists);
        }
        // If the port has died, its right becomes a dead name first, which ends the requests.
        self.get(old).ok_or(KernError::InvalidName)?;
        let charged = !self.has_slot(new);
        if charged && !self.account.take(Self::CHOSEN_BYTES) {
            return Err(KernError::ResourceShortage);
        }
        // The limits were checked and the memory was charged, so nothing fails from here.
        let entry = self.take(old).ok_or(KernError::InvalidName)?;
        if let Some((request, port)) = entry.request.zip(entry.port()) {
            port.rename_request(request, new);
        }
        if let Some(accept) = &entry.accept {
            accept.rename(new);
        }
        let in_slot = self.put(new, entry);
        if charged && in_slot {
            // The new name has the index of the old one, and so its place in the array.
            self.account.give(Self::CHOSEN_BYTES);
        }
        Ok(())
    }

    /// Whether the name's index is in the array and no entry has it.
    fn has_slot(&self, name: Name) -> bool {
        let (index, _) = self.rule.split(name);
        self.slots.get(index).is_some_and(|slot| slot.entry.is_none())
    }

    /// All names: first those in the array by their indices, then those in the tree.
    pub(super) fn names(&mut self) -> Vec<Name> {
        let rule = self.rule;
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| slot.entry.is_some());
        let names = slots.map(|(index, slot)| rule.join(index, slot.generation));
        names.chain(self.chosen.keys().copied()).collect()
    }

    /// Ends the table and returns its entries. The table accepts no entry from then on.
    pub(super) fn end(&mut self) -> impl Iterator<Item = (Name, Entry<M>)> + use<M> {
        self.alive = false;
        (self.count, self.reverse, self.free) = (0, Reverse::default(), FreeNames::default());
        let slots = core::mem::take(&mut self.slots);
        let chosen = core::mem::take(&mut self.chosen);
        self.account.give(slots.len() * Self::SLOT_BYTES + chosen.len() * Self::CHOSEN_BYTES);
        let rule = self.rule;
        let slots = slots.into_iter().enumerate();
        slots
            .filter_map(move |(index, slot)| Some((rule.join(index, slot.generation), slot.entry?)))
            .chain(chosen)
    }
}
