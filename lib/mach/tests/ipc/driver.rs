//! The driver performs random operations on the library and on the model, and compares their
//! answers and what every task has. The property tests and the fuzzer use it. A step of a sequence
//! is a few bytes, and any bytes are a valid step.

mod compare;
mod messages;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use mach::KernError;
use mach::ipc::{Disposition as Wire, Ipc, Limits, Name, NameRule, PortRight, Right as Held, Space};
use mach::machine::PAGE_SIZE;
use mach::machine::simulated::Simulated;
use mach::vm::{Placement, Vm, VmMap};

use crate::model::{
    DISPOSITIONS, Disposition, Entry, Later, MOST, Model, NAMES, Note, Object, Right, can_take,
};

/// How many bytes a step has.
pub(crate) const STEP_BYTES: usize = 8;
const TASKS: usize = 3;
/// The addresses in each task of its message, of its array of rights, and of its other data.
const BUFFER: u64 = 0x10_0000;
const ARRAY: u64 = BUFFER + PAGE_SIZE;
const DATA: u64 = BUFFER + 2 * PAGE_SIZE;
const FRAMES: u32 = 128;

struct Task {
    space: Arc<Space<Simulated>>,
    map: Arc<VmMap<Simulated>>,
}

struct World {
    machine: Simulated,
    ipc: Arc<Ipc<Simulated>>,
    vm: Arc<Vm<Simulated>>,
    tasks: Vec<Task>,
    model: Model,
    step: usize,
    outcomes: Outcomes,
}

/// How often each operation had each result.
pub(crate) type Outcomes = BTreeMap<(&'static str, String), u64>;

/// Runs a sequence, and compares the library with the model after each operation.
///
/// # Panics
/// If the library and the model differ, or a port or memory is left at the end.
pub(crate) fn run(steps: &[[u8; STEP_BYTES]]) -> Outcomes {
    let machine = Simulated::new(FRAMES);
    let vm = Vm::new(machine.clone()).unwrap();
    let limits = Limits { names: NAMES, ..Limits::default() };
    let ipc = Ipc::new(&vm, NameRule::Lowest, limits).unwrap();
    let mut world = World {
        machine: machine.clone(),
        ipc,
        vm,
        tasks: Vec::new(),
        model: Model::default(),
        step: 0,
        outcomes: Outcomes::new(),
    };
    for _ in 0..TASKS {
        let task = world.new_task();
        world.tasks.push(task);
        world.model.tasks.push(Default::default());
    }
    for (number, step) in steps.iter().enumerate() {
        world.step = number;
        world.perform(step);
        if number % 16 == 15 {
            world.compare();
        }
    }
    world.compare();
    for task in 0..TASKS {
        world.end_task(task);
    }
    let World { ipc, vm, tasks, outcomes, .. } = world;
    assert_eq!(ipc.ports(), 0, "ports leaked");
    drop((ipc, tasks));
    assert_eq!(vm.statistics().free, FRAMES, "frames leaked");
    drop(vm);
    assert_eq!(machine.reserved(), 0, "server memory leaked");
    outcomes
}

fn wire(disposition: Disposition) -> Wire {
    Wire::from_number(disposition.number()).unwrap()
}

impl World {
    fn new_task(&self) -> Task {
        let map = self.machine.block_on(VmMap::new(&self.vm, PAGE_SIZE, 1 << 30)).unwrap();
        self.machine.block_on(map.allocate(Placement::Fixed(BUFFER), 4 * PAGE_SIZE)).unwrap();
        Task { space: Space::new(&self.ipc), map }
    }

    /// Compares the library's result of an operation with the model's, and counts it.
    fn check<T: PartialEq + Debug, E: PartialEq + Debug>(
        &mut self,
        what: &'static str,
        result: Result<T, E>,
        expected: Result<T, E>,
    ) {
        assert_eq!(result, expected, "{what}, step {}", self.step);
        let outcome = result.map_or_else(|error| format!("{error:?}"), |_| "success".into());
        *self.outcomes.entry((what, outcome)).or_default() += 1;
    }

    /// A name of the task, or sometimes a name that denotes nothing.
    fn name(&self, task: usize, choice: u8) -> u32 {
        let names = &self.model.tasks[task];
        match choice {
            250 => 0,
            251 => u32::MAX,
            252.. => 500 + u32::from(choice),
            _ if names.is_empty() => 7,
            _ => *names.keys().nth(choice as usize % names.len()).unwrap(),
        }
    }

    /// A name with rights of the wanted kind, if the task has one, or sometimes any other name.
    fn name_of(&self, task: usize, choice: u8, is_wanted: impl Fn(Object) -> bool) -> u32 {
        let names = &self.model.tasks[task];
        let wanted = names.iter().filter(|(_, entry)| is_wanted(entry.object));
        match wanted.clone().count() {
            count if count > 0 && choice < 240 => {
                *wanted.map(|(name, _)| name).nth(choice as usize % count).unwrap()
            }
            _ => self.name(task, choice),
        }
    }

    /// In most cases a name that has the right for the disposition.
    fn name_for(&self, task: usize, choice: u8, disposition: Disposition) -> u32 {
        self.name_of(task, choice, |object| match disposition {
            Disposition::MoveReceive | Disposition::MakeSend | Disposition::MakeOnce => receives(object),
            Disposition::MoveSend | Disposition::CopySend => {
                matches!(object, Object::Send(_) | Object::Both(_))
            }
            Disposition::MoveOnce => matches!(object, Object::Once(_)),
        })
    }

    fn perform(&mut self, step: &[u8; STEP_BYTES]) {
        let [operation, task, a, b, c, d, e, f] = *step;
        let task = task as usize % TASKS;
        match operation % 64 {
            0..=5 => self.allocate(task, a, b),
            6 | 7 => self.destroy(task, a),
            8 | 9 => self.deallocate(task, a),
            10..=13 => self.modify(task, a, b, c),
            14 => self.rename(task, a, b),
            15..=24 => self.give(task, a, b, c, d),
            25..=27 => self.move_member(task, a, b),
            28 => self.set_limit(task, a, b),
            29..=33 => self.request(task, a, b, c, d),
            34..=48 => self.send(task, [a, b, c, d, e, f]),
            49..=62 => self.receive(task, a, b),
            _ if a < 30 => {
                self.end_task(task);
                self.tasks[task] = self.new_task();
            }
            _ => {}
        }
    }

    fn end_task(&mut self, task: usize) {
        // The model ends the names in the order in which the space lists and ends them.
        let order = self.tasks[task].space.names().unwrap();
        self.tasks[task].space.terminate();
        let mut names = std::mem::take(&mut self.model.tasks[task]);
        for (Name(name), _) in order {
            let entry = names.remove(&name).expect("the model has the name");
            // As in the library, the requests of a name end before its rights.
            let mut later = Later::default();
            self.model.tasks[task].insert(name, entry);
            let entry = self.model.remove(task, name, &mut later);
            self.model.end(entry, &mut later);
            self.model.finish(later);
        }
    }

    fn allocate(&mut self, task: usize, a: u8, b: u8) {
        let right = [
            PortRight::Receive,
            PortRight::Receive,
            PortRight::PortSet,
            PortRight::DeadName,
            PortRight::Send,
        ][a as usize % 5];
        let chosen = (b < 20).then(|| if b < 10 { u32::from(b) } else { self.name(task, a) });
        let space = &self.tasks[task].space;
        let result = match chosen {
            Some(name) => space.allocate_name(right, Name(name)).map(|()| name),
            None => space.allocate(right).map(|name| name.0),
        };
        let names = &self.model.tasks[task];
        let expected = if chosen.is_some_and(|name| name == 0 || name == u32::MAX) || right == PortRight::Send
        {
            Err(KernError::InvalidValue)
        } else if chosen.is_some_and(|name| names.contains_key(&name)) {
            Err(KernError::NameExists)
        } else if names.len() >= NAMES {
            Err(KernError::NoSpace)
        } else {
            let name = chosen.unwrap_or_else(|| self.model.lowest_name(task));
            let (object, references) = match right {
                PortRight::Receive => {
                    let port = self.model.new_port();
                    self.model.ports[port].holder = Some((task, name));
                    (Object::Receive(port), 0)
                }
                PortRight::PortSet => {
                    self.model.sets.push(Some(0));
                    (Object::Set(self.model.sets.len() - 1), 0)
                }
                _ => (Object::Dead, 1),
            };
            self.model.tasks[task].insert(name, Entry { object, references, request: None });
            Ok(name)
        };
        self.check("allocate", result, expected);
    }

    fn destroy(&mut self, task: usize, a: u8) {
        let name = self.name(task, a);
        let result = self.tasks[task].space.destroy(Name(name));
        let expected = match self.model.get(task, name) {
            None => Err(KernError::InvalidName),
            Some(_) => {
                self.end_name(task, name);
                Ok(())
            }
        };
        self.check("destroy", result, expected);
    }

    fn end_name(&mut self, task: usize, name: u32) {
        let mut later = Later::default();
        let entry = self.model.remove(task, name, &mut later);
        self.model.end(entry, &mut later);
        self.model.finish(later);
    }

    fn deallocate(&mut self, task: usize, a: u8) {
        let name = self.name(task, a);
        let result = self.tasks[task].space.deallocate(Name(name));
        let expected = match self.model.get(task, name).map(|entry| entry.object) {
            None => Err(KernError::InvalidName),
            Some(Object::Receive(_) | Object::Set(_)) => Err(KernError::InvalidRight),
            Some(_) => self.change_references(task, name, -1),
        };
        self.check("deallocate", result, expected);
    }

    fn change_references(&mut self, task: usize, name: u32, delta: i32) -> Result<(), KernError> {
        let entry = self.model.get(task, name).unwrap();
        match i64::from(entry.references) + i64::from(delta) {
            ..0 => return Err(KernError::InvalidValue),
            0 => {
                if let Object::Both(port) = entry.object {
                    (entry.object, entry.references) = (Object::Receive(port), 0);
                    self.model.drop_right(Right::Send(port));
                } else {
                    self.end_name(task, name);
                }
            }
            more if more > i64::from(MOST) => return Err(KernError::UrefsOverflow),
            references => entry.references = references as u32,
        }
        Ok(())
    }

    fn modify(&mut self, task: usize, a: u8, b: u8, c: u8) {
        let name = self.name(task, a);
        let right = PortRight::from_number(u32::from(b) % 5).unwrap();
        let delta = match c {
            0..=99 => -1,
            100..=199 => i32::from(c) % 5 - 2,
            200..=239 => 65_530,
            _ => -65_530,
        };
        let result = self.tasks[task].space.modify_references(Name(name), right, delta);
        let expected = match self.model.get(task, name).map(|entry| entry.object) {
            None => Err(KernError::InvalidName),
            Some(object) => match (right, object) {
                (PortRight::Send, Object::Send(_) | Object::Both(_))
                | (PortRight::DeadName, Object::Dead) => self.change_references(task, name, delta),
                (PortRight::Receive, Object::Receive(_) | Object::Both(_))
                | (PortRight::SendOnce, Object::Once(_))
                | (PortRight::PortSet, Object::Set(_)) => match (delta, object) {
                    (0, _) => Ok(()),
                    (-1, Object::Both(port)) => {
                        self.model.tasks[task].get_mut(&name).unwrap().object = Object::Send(port);
                        self.model.leave_holder(port);
                        self.model.drop_right(Right::Receive(port));
                        Ok(())
                    }
                    (-1, _) => {
                        self.end_name(task, name);
                        Ok(())
                    }
                    _ => Err(KernError::InvalidValue),
                },
                _ => Err(KernError::InvalidRight),
            },
        };
        self.check("modify_references", result, expected);
    }

    fn rename(&mut self, task: usize, a: u8, b: u8) {
        let old = self.name(task, a);
        let new = if b < 128 { u32::from(b) } else { self.name(task, b) };
        let result = self.tasks[task].space.rename(Name(old), Name(new));
        let names = &self.model.tasks[task];
        let expected = if new == 0 || new == u32::MAX {
            Err(KernError::InvalidValue)
        } else if names.contains_key(&new) {
            Err(KernError::NameExists)
        } else if self.model.get(task, old).is_none() {
            Err(KernError::InvalidName)
        } else {
            let entry = self.model.tasks[task].remove(&old).unwrap();
            if let Some((port, place)) = port_of(entry.object).zip(entry.request)
                && let Some(Some(request)) = self.model.ports[port].requests.get_mut(place)
            {
                request.0 = new;
            }
            if let Object::Receive(port) | Object::Both(port) = entry.object {
                self.model.ports[port].holder = Some((task, new));
            }
            self.model.tasks[task].insert(new, entry);
            Ok(())
        };
        self.check("rename", result, expected);
    }

    /// Extracts a right and gives it to a task, under a name that the space or the driver chooses.
    fn give(&mut self, task: usize, a: u8, b: u8, c: u8, d: u8) {
        // Receive rights are moved less often than others, so that ports keep their receivers.
        let disposition = DISPOSITIONS[if b < 160 { 3 + b as usize % 3 } else { b as usize % 6 }];
        let name = self.name_for(task, a, disposition);
        let other = c as usize % TASKS;
        let result = self.tasks[task].space.extract_right(Name(name), wire(disposition));
        let known = self.model.get(task, name).is_some();
        let mut copy = self.model.tasks[task].clone();
        if !can_take(&mut copy, name, disposition) {
            let error = if known { KernError::InvalidRight } else { KernError::InvalidName };
            return self.check("extract", result.map(drop), Err(error));
        }
        let mut later = Later::default();
        let right = self.model.take(task, name, disposition, &mut later);
        self.model.finish(later);
        let held = result.unwrap();
        if d < 170 {
            let name = self.tasks[other].space.copyout_right(held);
            let expected = self.model.copyout(other, right).map(Name).ok_or(KernError::NoSpace);
            return self.check("copyout", name, expected);
        }
        let wanted = if d < 210 { u32::from(d) - 165 } else { self.name(other, d.wrapping_mul(7)) };
        let result = self.tasks[other].space.insert_right(Name(wanted), held);
        let expected = self.insert(other, wanted, right);
        self.check("insert", result, expected);
    }

    fn insert(&mut self, task: usize, name: u32, right: Right) -> Result<(), KernError> {
        let mut later = Later::default();
        let result = if name == 0 || name == u32::MAX {
            later.rights.push(right);
            Err(KernError::InvalidValue)
        } else if let Some(port) = self.model.living(right) {
            let known = self.model.name_of(task, port).filter(|_| !matches!(right, Right::Once(_)));
            match known {
                Some(known) if known != name => {
                    later.rights.push(right);
                    Err(KernError::RightExists)
                }
                Some(_) if self.model.add(task, name, right, &mut later) => Ok(()),
                Some(_) => Err(KernError::UrefsOverflow),
                None => {
                    let error = match () {
                        () if self.model.tasks[task].contains_key(&name) => KernError::NameExists,
                        () if self.model.tasks[task].len() >= NAMES => KernError::NoSpace,
                        () => {
                            self.model.insert(task, name, right);
                            return Ok(());
                        }
                    };
                    if let Right::Receive(port) = right {
                        self.model.leave_holder(port);
                    }
                    later.rights.push(right);
                    Err(error)
                }
            }
        } else {
            later.rights.push(right);
            Err(KernError::InvalidCapability)
        };
        self.model.finish(later);
        result
    }

    fn receive_port(&mut self, task: usize, name: u32) -> Result<usize, KernError> {
        match self.model.get(task, name).map(|entry| entry.object) {
            None => Err(KernError::InvalidName),
            Some(Object::Receive(port) | Object::Both(port)) => Ok(port),
            Some(_) => Err(KernError::InvalidRight),
        }
    }

    fn move_member(&mut self, task: usize, a: u8, b: u8) {
        let member = self.name_of(task, a, receives);
        let after = match b {
            0..40 => 0,
            _ => self.name_of(task, b, |object| matches!(object, Object::Set(_))),
        };
        let result = self.tasks[task].space.move_member(Name(member), Name(after));
        let expected = match self.receive_port(task, member) {
            Err(error) => Err(error),
            Ok(port) if after == 0 => {
                let was = self.model.ports[port].set.take();
                was.map(drop).ok_or(KernError::NotInSet)
            }
            Ok(port) => match self.model.get(task, after).map(|entry| entry.object) {
                None => Err(KernError::InvalidName),
                Some(Object::Set(set)) => {
                    if self.model.ports[port].set != Some(set) {
                        let stamp = self.model.stamp(set);
                        self.model.ports[port].set = Some(set);
                        self.model.ports[port].queue.iter_mut().for_each(|message| message.stamp = stamp);
                    }
                    Ok(())
                }
                Some(_) => Err(KernError::InvalidRight),
            },
        };
        self.check("move_member", result, expected);
    }

    fn set_limit(&mut self, task: usize, a: u8, b: u8) {
        let (name, limit) = (self.name_of(task, a, receives), u32::from(b) % 18);
        let result = self.tasks[task].space.set_queue_limit(Name(name), limit);
        let expected =
            if limit > 16 { Err(KernError::InvalidValue) } else { self.receive_port(task, name).map(drop) };
        if let (Ok(()), Ok(port)) = (expected, self.receive_port(task, name)) {
            self.model.ports[port].limit = limit;
        }
        self.check("set_queue_limit", result, expected);
    }

    fn request(&mut self, task: usize, a: u8, b: u8, c: u8, d: u8) {
        let notify = self.name_of(task, b, receives);
        let name = match c % 4 {
            2 => self.name_of(task, a, |object| port_of(object).is_some() || object == Object::Dead),
            _ => self.name_of(task, a, receives),
        };
        let number = if c > 245 { 65 } else { [69, 70, 72, 70][c as usize % 4] };
        let sync = if d.is_multiple_of(2) { 0 } else { u32::from(d) % 5 };
        let space = self.tasks[task].space.clone();
        let held = match d {
            200.. => Ok(Held::Null),
            _ => space.extract_right(Name(notify), Wire::MakeSendOnce),
        };
        let expected = match d {
            200.. => Ok(None),
            _ => self.receive_port(task, notify).map(Some),
        };
        let to = match (held, expected) {
            (Err(one), Err(other)) => return assert_eq!(one, other, "step {}", self.step),
            (Ok(held), Ok(to)) => {
                self.model.ports.iter_mut().enumerate().for_each(|(port, state)| {
                    state.onces += u32::from(to == Some(port));
                });
                (held, to)
            }
            (held, to) => panic!("{:?} {to:?}, step {}", held.map(drop), self.step),
        };
        let (held, to) = to;
        let result = space.request_notification(Name(name), number, sync, held);
        let (expected, unused) = self.expect_request(task, name, (number, sync), to);
        if let Some(unused) = unused {
            self.model.drop_right(Right::Once(unused));
        }
        match (result, expected) {
            (Ok(previous), Ok(port)) => {
                self.check::<_, KernError>("request", Ok(previous.is_some()), Ok(port.is_some()));
                drop(previous);
                if let Some(port) = port {
                    self.model.drop_right(Right::Once(port));
                }
            }
            (result, expected) => {
                self.check("request", result.map(drop), expected.map(drop));
            }
        }
    }

    /// The model's answer to a request: the port of the request before it, or the error; and the
    /// port of a send-once right that was not used.
    fn expect_request(
        &mut self,
        task: usize,
        name: u32,
        (number, sync): (i32, u32),
        to: Option<usize>,
    ) -> (Result<Option<usize>, KernError>, Option<usize>) {
        match number {
            69 if sync != 0 => (Err(KernError::InvalidValue), to),
            69 => match self.receive_port(task, name) {
                Err(error) => (Err(error), to),
                Ok(port) => (Ok(std::mem::replace(&mut self.model.ports[port].destroyed, to)), None),
            },
            70 => match self.receive_port(task, name) {
                Err(error) => (Err(error), to),
                Ok(port) => {
                    let state = &mut self.model.ports[port];
                    let made = state.made;
                    match to {
                        Some(to) if state.sends == 0 && sync <= made => {
                            let previous = state.no_senders.take();
                            self.model.note(to, Note::NoSenders(made));
                            (Ok(previous), None)
                        }
                        to => (Ok(std::mem::replace(&mut state.no_senders, to)), None),
                    }
                }
            },
            72 => match self.model.get(task, name).copied() {
                None => (Err(KernError::InvalidName), to),
                Some(Entry { object: Object::Set(_), .. }) => (Err(KernError::InvalidRight), to),
                Some(Entry { object: Object::Dead, references, .. }) => match to {
                    Some(_) if sync > 0 && references >= MOST => (Err(KernError::UrefsOverflow), to),
                    Some(to) if sync > 0 => {
                        self.model.get(task, name).unwrap().references += 1;
                        self.model.note(to, Note::DeadName(name));
                        (Ok(None), None)
                    }
                    _ => (Err(KernError::InvalidArgument), to),
                },
                Some(entry) => {
                    let port = port_of(entry.object).unwrap();
                    let place = to.map(|to| {
                        let state = &mut self.model.ports[port];
                        let place = state.free.pop().unwrap_or_else(|| {
                            state.requests.push(None);
                            state.requests.len() - 1
                        });
                        state.requests[place] = Some((name, to));
                        place
                    });
                    let previous = entry.request.and_then(|place| self.model.take_request(port, place));
                    self.model.get(task, name).unwrap().request = place;
                    (Ok(previous.map(|(_, to)| to)), None)
                }
            },
            _ => (Err(KernError::InvalidValue), to),
        }
    }
}

fn receives(object: Object) -> bool {
    matches!(object, Object::Receive(_) | Object::Both(_))
}

fn port_of(object: Object) -> Option<usize> {
    match object {
        Object::Send(port) | Object::Receive(port) | Object::Both(port) | Object::Once(port) => Some(port),
        Object::Set(_) | Object::Dead => None,
    }
}
