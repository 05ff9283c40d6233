//! The model of ports, rights and messages: plain tables in which rights are counted one by one.
//! When a port dies, the tasks that asked for a notification are told in the order of their
//! requests.

use std::collections::{BTreeMap, VecDeque};

pub(crate) type Port = usize;
pub(crate) type Set = usize;

/// The most references that a name can have to a right.
pub(crate) const MOST: u32 = 65535;
/// The most names that one task can have.
pub(crate) const NAMES: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Null,
    Dead,
    Send(Port),
    Once(Port),
    Receive(Port),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Send(Port),
    Receive(Port),
    Both(Port),
    Once(Port),
    Set(Set),
    Dead,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) object: Object,
    pub(crate) references: u32,
    /// The index of the dead-name request in the port's list.
    pub(crate) request: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Deleted(u32),
    Destroyed(Port),
    NoSenders(u32),
    SendOnce,
    DeadName(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) to: Right,
    pub(crate) reply: Right,
    pub(crate) id: i32,
    pub(crate) note: Option<Note>,
    /// The rights that the message carries: those in line first, then those out of line.
    pub(crate) rights: Vec<Right>,
    pub(crate) in_line: usize,
    pub(crate) stamp: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PortState {
    pub(crate) alive: bool,
    pub(crate) holder: Option<(usize, u32)>,
    pub(crate) carrier: Option<Port>,
    pub(crate) sends: u32,
    pub(crate) onces: u32,
    pub(crate) made: u32,
    pub(crate) sequence: u32,
    pub(crate) limit: u32,
    pub(crate) queue: VecDeque<Message>,
    pub(crate) set: Option<Set>,
    pub(crate) no_senders: Option<Port>,
    pub(crate) destroyed: Option<Port>,
    /// Dead-name requests: the name of each, and the port to be told.
    pub(crate) requests: Vec<Option<(u32, Port)>>,
    /// The free indices of `requests`; the last of them is used next.
    pub(crate) free: Vec<usize>,
}

pub(crate) type Names = BTreeMap<u32, Entry>;

/// What is to be done when a call has changed the names: notifications first, then rights that end.
#[derive(Default)]
pub(crate) struct Later {
    pub(crate) notes: Vec<(Port, Note)>,
    pub(crate) rights: Vec<Right>,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) tasks: Vec<Names>,
    pub(crate) ports: Vec<PortState>,
    /// The stamp of the next message in each set; `None`: the set has ended.
    pub(crate) sets: Vec<Option<u64>>,
    garbage: Vec<Message>,
    is_emptying: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    MoveReceive,
    MoveSend,
    MoveOnce,
    CopySend,
    MakeSend,
    MakeOnce,
}

pub(crate) const DISPOSITIONS: [Disposition; 6] = [
    Disposition::MoveReceive,
    Disposition::MoveSend,
    Disposition::MoveOnce,
    Disposition::CopySend,
    Disposition::MakeSend,
    Disposition::MakeOnce,
];

impl Disposition {
    pub(crate) fn number(self) -> u32 {
        16 + DISPOSITIONS.iter().position(|&other| other == self).unwrap() as u32
    }

    pub(crate) fn takes(self) -> bool {
        matches!(self, Self::MoveReceive | Self::MoveSend | Self::MoveOnce)
    }
}

/// Takes a right from a copy of a task's names, as a message would. Returns false if the names do
/// not have the right.
pub(crate) fn can_take(names: &mut Names, name: u32, disposition: Disposition) -> bool {
    let Some(entry) = names.get_mut(&name) else { return false };
    match (disposition, entry.object) {
        (Disposition::MakeSend | Disposition::MakeOnce, Object::Receive(_) | Object::Both(_))
        | (Disposition::CopySend, Object::Send(_) | Object::Both(_) | Object::Dead) => true,
        (Disposition::MoveReceive, Object::Both(port)) => {
            entry.object = Object::Send(port);
            true
        }
        (Disposition::MoveReceive, Object::Receive(_)) | (Disposition::MoveOnce, Object::Once(_)) => {
            names.remove(&name);
            true
        }
        (Disposition::MoveSend, Object::Send(_) | Object::Both(_) | Object::Dead)
        | (Disposition::MoveOnce, Object::Dead) => {
            entry.references -= 1;
            match (entry.references, entry.object) {
                (0, Object::Both(port)) => entry.object = Object::Receive(port),
                (0, _) => drop(names.remove(&name)),
                _ => {}
            }
            true
        }
        _ => false,
    }
}

impl Model {
    pub(crate) fn new_port(&mut self) -> Port {
        self.ports.push(PortState { alive: true, limit: 5, ..PortState::default() });
        self.ports.len() - 1
    }

    fn is_dead(&self, port: Port) -> bool {
        !self.ports[port].alive
    }

    /// The entry of a name, after a right to a dead port has become a dead name.
    pub(crate) fn get(&mut self, task: usize, name: u32) -> Option<&mut Entry> {
        let entry = *self.tasks[task].get(&name)?;
        match entry.object {
            Object::Send(port) if self.is_dead(port) => self.ports[port].sends -= 1,
            Object::Once(port) if self.is_dead(port) => self.ports[port].onces -= 1,
            _ => return self.tasks[task].get_mut(&name),
        }
        let references = (entry.references + u32::from(entry.request.is_some())).min(MOST);
        self.tasks[task].insert(name, Entry { object: Object::Dead, references, request: None });
        self.tasks[task].get_mut(&name)
    }

    pub(crate) fn lowest_name(&self, task: usize) -> u32 {
        (1..).find(|name| !self.tasks[task].contains_key(name)).unwrap()
    }

    pub(crate) fn name_of(&self, task: usize, port: Port) -> Option<u32> {
        let is_of = |object| match object {
            Object::Send(other) | Object::Receive(other) | Object::Both(other) => other == port,
            _ => false,
        };
        self.tasks[task].iter().find(|(_, entry)| is_of(entry.object)).map(|(&name, _)| name)
    }

    pub(crate) fn leave_set(&mut self, port: Port) {
        self.ports[port].set = None;
    }

    /// Takes the receive right from the task or the message that has it.
    pub(crate) fn leave_holder(&mut self, port: Port) {
        self.leave_set(port);
        let state = &mut self.ports[port];
        (state.holder, state.made, state.sequence) = (None, 0, 0);
    }

    pub(crate) fn note(&mut self, to: Port, note: Note) {
        let reply = Right::Null;
        let rights = Vec::new();
        let message =
            Message { to: Right::Once(to), reply, id: 0, note: Some(note), rights, in_line: 0, stamp: 0 };
        self.push(to, message);
    }

    /// Puts a message into a queue, or destroys it if the port is dead or it would close a cycle.
    pub(crate) fn push(&mut self, port: Port, mut message: Message) {
        let mut moved: Vec<Port> = message
            .rights
            .iter()
            .filter_map(|right| if let Right::Receive(port) = right { Some(*port) } else { None })
            .collect();
        if let Some(Note::Destroyed(port)) = message.note {
            moved.push(port);
        }
        let mut at = Some(port);
        while let Some(carrier) = at.filter(|_| !moved.is_empty()) {
            if moved.contains(&carrier) {
                return self.destroy(message);
            }
            at = self.ports[carrier].carrier;
        }
        if self.is_dead(port) {
            return self.destroy(message);
        }
        for moved in moved {
            self.ports[moved].carrier = Some(port);
        }
        if let Some(set) = self.ports[port].set {
            message.stamp = self.stamp(set);
        }
        self.ports[port].queue.push_back(message);
    }

    pub(crate) fn stamp(&mut self, set: Set) -> u64 {
        let next = self.sets[set].as_mut().unwrap();
        *next += 1;
        *next
    }

    pub(crate) fn destroy(&mut self, message: Message) {
        self.drop_right(message.to);
        self.drop_right(message.reply);
        if let Some(Note::Destroyed(port)) = message.note {
            self.drop_right(Right::Receive(port));
        }
        for right in message.rights {
            self.drop_right(right);
        }
    }

    pub(crate) fn drop_right(&mut self, right: Right) {
        match right {
            Right::Null | Right::Dead => {}
            Right::Send(port) => {
                let state = &mut self.ports[port];
                state.sends -= 1;
                if state.sends == 0
                    && let Some(to) = state.no_senders.take()
                {
                    let made = state.made;
                    self.note(to, Note::NoSenders(made));
                }
            }
            Right::Once(port) if self.is_dead(port) => self.ports[port].onces -= 1,
            Right::Once(port) => self.note(port, Note::SendOnce),
            Right::Receive(port) => match self.ports[port].destroyed.take() {
                None => self.kill(port),
                Some(backup) => {
                    self.leave_holder(port);
                    self.ports[port].carrier = None;
                    self.note(backup, Note::Destroyed(port));
                }
            },
        }
    }

    fn kill(&mut self, port: Port) {
        self.leave_set(port);
        let state = &mut self.ports[port];
        (state.alive, state.holder, state.carrier) = (false, None, None);
        let queue = std::mem::take(&mut state.queue);
        let requests = std::mem::take(&mut state.requests);
        let no_senders = state.no_senders.take();
        for (name, to) in requests.into_iter().flatten() {
            self.note(to, Note::DeadName(name));
        }
        if let Some(to) = no_senders {
            self.drop_right(Right::Once(to));
        }
        self.garbage.extend(queue);
        if !std::mem::replace(&mut self.is_emptying, true) {
            while let Some(message) = self.garbage.pop() {
                self.destroy(message);
            }
            self.is_emptying = false;
        }
    }

    pub(crate) fn finish(&mut self, later: Later) {
        for (to, note) in later.notes {
            self.note(to, note);
        }
        for right in later.rights {
            self.drop_right(right);
        }
    }

    pub(crate) fn take_request(&mut self, port: Port, place: usize) -> Option<(u32, Port)> {
        let state = &mut self.ports[port];
        let taken = state.requests.get_mut(place)?.take()?;
        state.free.push(place);
        Some(taken)
    }

    /// Removes a name, and ends its request.
    pub(crate) fn remove(&mut self, task: usize, name: u32, later: &mut Later) -> Entry {
        let entry = self.tasks[task].remove(&name).unwrap();
        let port = match entry.object {
            Object::Send(port) | Object::Receive(port) | Object::Both(port) | Object::Once(port) => {
                Some(port)
            }
            _ => None,
        };
        if let Some((port, place)) = port.zip(entry.request)
            && let Some((_, to)) = self.take_request(port, place)
        {
            later.notes.push((to, Note::Deleted(name)));
        }
        entry
    }

    pub(crate) fn end(&mut self, entry: Entry, later: &mut Later) {
        match entry.object {
            Object::Send(port) => later.rights.push(Right::Send(port)),
            Object::Once(port) => later.rights.push(Right::Once(port)),
            Object::Receive(port) => {
                self.leave_holder(port);
                later.rights.push(Right::Receive(port));
            }
            Object::Both(port) => {
                self.leave_holder(port);
                later.rights.extend([Right::Send(port), Right::Receive(port)]);
            }
            Object::Set(set) => self.end_set(set),
            Object::Dead => {}
        }
    }

    fn end_set(&mut self, set: Set) {
        self.sets[set] = None;
        for state in self.ports.iter_mut().filter(|state| state.set == Some(set)) {
            state.set = None;
        }
    }

    /// Takes a right from a task's names, where [`can_take`] has returned true.
    pub(crate) fn take(
        &mut self,
        task: usize,
        name: u32,
        disposition: Disposition,
        later: &mut Later,
    ) -> Right {
        let entry = *self.get(task, name).unwrap();
        match (disposition, entry.object) {
            (Disposition::MakeSend, Object::Receive(port) | Object::Both(port)) => {
                self.ports[port].made += 1;
                self.ports[port].sends += 1;
                Right::Send(port)
            }
            (Disposition::MakeOnce, Object::Receive(port) | Object::Both(port)) => {
                self.ports[port].onces += 1;
                Right::Once(port)
            }
            (Disposition::CopySend, Object::Send(port) | Object::Both(port)) if !self.is_dead(port) => {
                self.ports[port].sends += 1;
                Right::Send(port)
            }
            (Disposition::MoveReceive, Object::Both(port)) => {
                self.tasks[task].get_mut(&name).unwrap().object = Object::Send(port);
                self.leave_holder(port);
                Right::Receive(port)
            }
            (Disposition::MoveReceive, Object::Receive(port)) => {
                self.remove(task, name, later);
                self.leave_holder(port);
                Right::Receive(port)
            }
            (Disposition::MoveOnce, Object::Once(port)) => {
                self.remove(task, name, later);
                Right::Once(port)
            }
            (Disposition::MoveSend | Disposition::MoveOnce, object) => {
                let port =
                    if let Object::Send(port) | Object::Both(port) = object { Some(port) } else { None };
                let left = self.tasks[task].get_mut(&name).unwrap();
                left.references -= 1;
                match (left.references, object) {
                    (0, Object::Both(port)) => left.object = Object::Receive(port),
                    (0, _) => drop(self.remove(task, name, later)),
                    _ => {
                        if let Some(port) = port {
                            self.ports[port].sends += 1;
                        }
                    }
                }
                port.map_or(Right::Dead, Right::Send)
            }
            _ => Right::Dead,
        }
    }

    /// Adds a right to the name of the task's other rights to the port. Returns false if there
    /// would be too many references.
    pub(crate) fn add(&mut self, task: usize, name: u32, right: Right, later: &mut Later) -> bool {
        let entry = self.get(task, name).unwrap();
        match (right, entry.object) {
            (Right::Send(port), Object::Receive(_)) => {
                (entry.object, entry.references) = (Object::Both(port), 1);
            }
            (Right::Receive(port), _) => {
                entry.object = Object::Both(port);
                self.ports[port].holder = Some((task, name));
            }
            (right, _) => {
                later.rights.push(right);
                if entry.references >= MOST {
                    return false;
                }
                entry.references += 1;
            }
        }
        true
    }

    pub(crate) fn insert(&mut self, task: usize, name: u32, right: Right) {
        let (object, references) = match right {
            Right::Send(port) => (Object::Send(port), 1),
            Right::Once(port) => (Object::Once(port), 1),
            Right::Receive(port) => {
                self.ports[port].holder = Some((task, name));
                (Object::Receive(port), 0)
            }
            Right::Null | Right::Dead => unreachable!("a right has an entry"),
        };
        self.tasks[task].insert(name, Entry { object, references, request: None });
    }

    pub(crate) fn living(&self, right: Right) -> Option<Port> {
        match right {
            Right::Send(port) | Right::Once(port) | Right::Receive(port) => {
                (!self.is_dead(port)).then_some(port)
            }
            _ => None,
        }
    }

    /// Gives a task a right, and returns its name; `None`: the task has as many names as it may
    /// have.
    pub(crate) fn copyout(&mut self, task: usize, right: Right) -> Option<u32> {
        let mut later = Later::default();
        let name = if right == Right::Null {
            Some(0)
        } else if let Some(port) = self.living(right) {
            let known = self.name_of(task, port).filter(|_| !matches!(right, Right::Once(_)));
            match known {
                Some(name) => {
                    self.add(task, name, right, &mut later);
                    Some(name)
                }
                None if self.tasks[task].len() >= NAMES => {
                    if let Right::Receive(port) = right {
                        self.leave_holder(port);
                    }
                    later.rights.push(right);
                    None
                }
                None => {
                    let name = self.lowest_name(task);
                    self.insert(task, name, right);
                    Some(name)
                }
            }
        } else {
            later.rights.push(right);
            Some(u32::MAX)
        };
        self.finish(later);
        name
    }

    /// Takes the first message that a receiver finds at a port or a set.
    pub(crate) fn pop(&mut self, source: Source) -> Option<(Port, Message)> {
        let port = match source {
            Source::Port(port) => port,
            Source::Set(set) => {
                let members = self.ports.iter().enumerate().filter(|(_, state)| state.set == Some(set));
                let ready = members.filter_map(|(port, state)| Some((state.queue.front()?.stamp, port)));
                ready.min()?.1
            }
        };
        let mut message = self.ports[port].queue.pop_front()?;
        // The stamp is not needed after this; the field holds the message's sequence number from
        // here.
        message.stamp = u64::from(self.ports[port].sequence);
        self.ports[port].sequence = self.ports[port].sequence.wrapping_add(1);
        let moved = message.rights.iter().copied();
        let destroyed = match message.note {
            Some(Note::Destroyed(port)) => Some(Right::Receive(port)),
            _ => None,
        };
        for right in moved.chain(destroyed) {
            if let Right::Receive(port) = right {
                self.ports[port].carrier = None;
            }
        }
        Some((port, message))
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Source {
    Port(Port),
    Set(Set),
}
