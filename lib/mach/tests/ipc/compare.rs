//! The comparison of all that every task has with the model.

use mach::ipc::{Name, PortRight, PortType, Space};
use mach::machine::simulated::Simulated;

use super::{TASKS, World};
use crate::model::{Entry, Object};

impl World {
    /// Compares the names of all tasks and the state of all ports with the model.
    pub(super) fn compare(&mut self) {
        for task in 0..TASKS {
            let space = self.tasks[task].space.clone();
            let names: Vec<u32> = self.model.tasks[task].keys().copied().collect();
            let expected: Vec<_> =
                names.iter().map(|&name| (Name(name), kind(self.model.get(task, name).unwrap()))).collect();
            let mut found = space.names().unwrap();
            found.sort_by_key(|(name, _)| *name);
            assert_eq!(found, expected, "names of task {task}, step {}", self.step);
            for (name, _) in found {
                self.compare_name(task, &space, name);
            }
        }
    }

    fn compare_name(&mut self, task: usize, space: &Space<Simulated>, name: Name) {
        let step = self.step;
        let entry = *self.model.get(task, name.0).unwrap();
        let right = if entry.object == Object::Dead { PortRight::DeadName } else { PortRight::Send };
        let references = match entry.object {
            Object::Send(_) | Object::Both(_) | Object::Dead => entry.references,
            _ => 0,
        };
        assert_eq!(space.references(name, right), Ok(references), "step {step}");
        if let Object::Set(set) = entry.object {
            let mut members = space.set_status(name).unwrap();
            members.sort();
            let ports = self.model.ports.iter().filter(|state| state.set == Some(set));
            let mut expected: Vec<_> = ports.map(|state| Name(state.holder.unwrap().1)).collect();
            expected.sort();
            assert_eq!(members, expected, "step {step}");
        }
        let (Object::Receive(port) | Object::Both(port)) = entry.object else { return };
        let status = space.receive_status(name).unwrap();
        let state = &self.model.ports[port];
        let set = state.set.map_or(0, |set| {
            let names = &self.model.tasks[task];
            *names.iter().find(|(_, entry)| entry.object == Object::Set(set)).unwrap().0
        });
        let found =
            (status.set, status.sequence, status.make_send_count, status.queue_limit, status.messages);
        let expected = (Name(set), state.sequence, state.made, state.limit, state.queue.len() as u32);
        assert_eq!(found, expected, "port {port}, step {step}");
        let found = (status.send_once_rights, space.send_rights(name).unwrap());
        assert_eq!(found, (state.onces, state.sends), "port {port}, step {step}");
        let found = (status.send_rights, status.port_destroyed, status.no_senders);
        let expected = (state.sends > 0, state.destroyed.is_some(), state.no_senders.is_some());
        assert_eq!(found, expected, "port {port}, step {step}");
    }
}

fn kind(entry: &Entry) -> PortType {
    let kind = match entry.object {
        Object::Send(_) => PortType::SEND,
        Object::Receive(_) => PortType::RECEIVE,
        Object::Both(_) => PortType::SEND | PortType::RECEIVE,
        Object::Once(_) => PortType::SEND_ONCE,
        Object::Set(_) => PortType::PORT_SET,
        Object::Dead => PortType::DEAD_NAME,
    };
    if entry.request.is_some() { kind | PortType::DEAD_NAME_REQUEST } else { kind }
}
