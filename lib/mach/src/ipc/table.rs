//! A task's table of names.
//!
//! Names whose index is near the lowest are in an array. A program may also choose names itself,
//! which can be any numbers; those are in a tree, and an index under which there is one is not used
//! for other names meanwhile.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::account::Account;
use super::entry::{Entry, Object};
use super::free_names::FreeNames;
use super::notify::{AcceptRequest, Later};
use super::port::{DeadNameRequest, Holder, Port};
use super::reverse::Reverse;
use super::{Name, NameRule};
use crate::machine::Machine;
use crate::{KernError, KernResult};

struct Slot<M: Machine> {
    generation: u8,
    entry: Option<Entry<M>>,
}

/// The names of a space.
pub(super) struct Table<M: Machine> {
    /// The number of the space.
    space: u64,
    rule: NameRule,
    alive: bool,
    slots: Vec<Slot<M>>,
    free: FreeNames,
    chosen: BTreeMap<Name, Entry<M>>,
    /// The names of ports to which there is a send right.
    reverse: Reverse,
    count: usize,
    limit: usize,
    account: Arc<Account<M>>,
}

/// An entry that found no place, and why.
pub(super) type NotInserted<M> = (KernError, Entry<M>);

impl<M: Machine> Table<M> {
    const SLOT_BYTES: usize = size_of::<Slot<M>>() + Self::REQUEST_BYTES + Reverse::BYTES;
    const CHOSEN_BYTES: usize = 2 * size_of::<(Name, Entry<M>)>() + Self::REQUEST_BYTES + Reverse::BYTES;
    /// What the requests on one name may take, at the port and by themselves.
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

    /// How many names there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

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

    /// The entry of a name. Rights of ports that have died are dead names from here on.
    pub(super) fn get(&mut self, name: Name) -> Option<&mut Entry<M>> {
        let entry = self.raw(name)?;
        if entry.has_died() {
            let port = entry.object.send_port();
            // The right of a dead port wakes no waiter and sends nothing when it is dropped.
            entry.die();
            if let Some(port) = port {
                self.reverse.remove(port);
            }
        }
        self.raw(name)
    }

    /// The name of the task's receive or send right to a living port.
    pub(super) fn name_of(&self, port: &Port<M>) -> Option<Name> {
        port.name_in(self.space).or_else(|| self.reverse.get(port.id))
    }

    /// Adds an entry under a name that the table chooses.
    ///
    /// # Errors
    /// `InvalidTask`: the space has ended. `NoSpace`: the limit of names. `ResourceShortage`.
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

    /// Adds an entry under this name, which must be valid.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). `NameExists`: the name denotes something.
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

    /// Checks that there may be one more entry, and makes room for it where that can fail.
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

    /// Makes the array longer; the lowest new index that is free.
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
                // Index 0 would share its name with the null name.
                if index > 0 && !self.has_chosen(index) {
                    self.free.insert(index);
                }
            }
            if let Some(index) = self.free.lowest() {
                return Ok(index);
            }
        }
    }

    /// Puts an entry in its place, which is free: true if that is in the array.
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

    /// Notes where the rights of a new entry are.
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

    /// Takes a name away: its entry, with its requests.
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

    /// Takes a name away. Its requests end with notifications, except one to be told by `silent`.
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

    /// Makes room for the name of one more port to which there is a send right.
    pub(super) fn reserve_send_right(&mut self) -> KernResult {
        self.reverse.reserve().map_err(|_| KernError::ResourceShortage)
    }

    /// Changes what a name denotes, in the same entry: `new` gets the old object. If the entry gets
    /// its first send right, room was made for it.
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

    /// Gives an entry another name. Its requests go on under that.
    ///
    /// # Errors
    /// `NameExists`, `InvalidName`, `ResourceShortage`.
    pub(super) fn rename(&mut self, old: Name, new: Name) -> KernResult {
        if self.raw(new).is_some() {
            return Err(KernError::NameExists);
        }
        // Dead rights become dead names first, so that their requests have ended.
        self.get(old).ok_or(KernError::InvalidName)?;
        let charged = !self.has_slot(new);
        if charged && !self.account.take(Self::CHOSEN_BYTES) {
            return Err(KernError::ResourceShortage);
        }
        // From here on nothing fails.
        let entry = self.take(old).ok_or(KernError::InvalidName)?;
        if let Some((request, port)) = entry.request.zip(entry.port()) {
            port.rename_request(request, new);
        }
        if let Some(accept) = &entry.accept {
            accept.rename(new);
        }
        let in_slot = self.put(new, entry);
        if charged && in_slot {
            // The old name had the place in the array that the new one has now.
            self.account.give(Self::CHOSEN_BYTES);
        }
        Ok(())
    }

    /// Whether there is a free place in the array for a name.
    fn has_slot(&self, name: Name) -> bool {
        let (index, _) = self.rule.split(name);
        self.slots.get(index).is_some_and(|slot| slot.entry.is_none())
    }

    /// All names, in the order of the array, then those that were chosen.
    pub(super) fn names(&mut self) -> Vec<Name> {
        let rule = self.rule;
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| slot.entry.is_some());
        let names = slots.map(|(index, slot)| rule.join(index, slot.generation));
        names.chain(self.chosen.keys().copied()).collect()
    }

    /// Ends the table; its entries.
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
