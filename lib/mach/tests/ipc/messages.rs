//! Steps that send and receive messages, and the model's answers to them.

use mach::ipc::typed::{MsgArguments, MsgOptions, mach_msg};
use mach::ipc::{Interruption, MsgErrorKind, Name};
use mach::machine::PAGE_SIZE;

use super::{ARRAY, BUFFER, DATA, Task, World};
use crate::model::{DISPOSITIONS, Disposition, Later, Message, Note, Object, Right, Source, can_take};
use crate::wire::{HEADER, Reader, Writer};

impl World {
    fn call(&self, task: usize, arguments: &MsgArguments) -> Result<(), MsgErrorKind> {
        let Task { space, map } = &self.tasks[task];
        let interruption = Interruption::new();
        let call = mach_msg(space, &**map, arguments, &interruption);
        self.machine.block_on(call).map_err(|error| error.kind)
    }

    fn read(&self, task: usize, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.machine.block_on(self.tasks[task].map.copyin(address, &mut bytes)).unwrap();
        bytes
    }

    fn write(&self, task: usize, address: u64, bytes: &[u8]) {
        self.machine.block_on(self.tasks[task].map.copyout(address, bytes)).unwrap();
    }

    pub(super) fn send(&mut self, task: usize, [a, b, c, d, e, f]: [u8; 6]) {
        let disposition = |choice: u8| DISPOSITIONS[choice as usize % 6];
        // Most of the chosen dispositions are valid in a header.
        let sends = |choice: u8| match choice {
            0..6 => Disposition::MoveReceive,
            _ => DISPOSITIONS[1 + choice as usize % 5],
        };
        let remote = (self.name_for(task, a, sends(b)), sends(b));
        let local = match c {
            0..60 => (0, None),
            _ => (self.name_for(task, c, sends(d)), Some(sends(d))),
        };
        let count = e as usize % 4;
        let chosen = |at: usize| {
            let choice = f.wrapping_mul(31).wrapping_add(e.wrapping_mul(at as u8 * 11 + 3));
            let disposition = disposition((f >> 2).wrapping_add(choice >> 3).wrapping_add(at as u8));
            (self.name_for(task, choice, disposition), disposition)
        };
        let mut parcels: Vec<(u32, Disposition)> = (0..count).map(chosen).collect();
        let number = |disposition: Option<Disposition>| disposition.map_or(0, Disposition::number);
        let id = self.step as i32 + 1000;
        let mut writer = Writer::new((remote.0, remote.1.number()), (local.0, number(local.1)), id);
        for &(name, disposition) in &parcels {
            writer.right(name, disposition.number());
        }
        let in_line = parcels.len();
        if f % 8 == 0 {
            // An array of rights with one disposition, or memory of less or more than a page.
            let names = [e, e.wrapping_add(d)].map(|choice| self.name_for(task, choice, disposition(f >> 3)));
            let array: Vec<u8> = names.iter().flat_map(|name| name.to_le_bytes()).collect();
            self.write(task, ARRAY, &array);
            parcels.extend(names.map(|name| (name, disposition(f >> 3))));
            writer.rights(ARRAY, 2, disposition(f >> 3).number());
            self.write(task, DATA, &[id as u8; 40]);
            writer.memory(DATA, if f & 64 == 0 { 40 } else { PAGE_SIZE as usize });
        }
        self.write(task, BUFFER, &writer.0);
        let arguments = MsgArguments {
            address: BUFFER,
            options: MsgOptions::SEND | MsgOptions::SEND_TIMEOUT,
            send_size: writer.0.len() as u32,
            receive_size: 0,
            receive_name: Name::NULL,
            timeout: 0,
            notify: Name::NULL,
        };
        let result = self.call(task, &arguments);
        let expected = self.expect_send(task, remote, local, &parcels, (in_line, id));
        match expected {
            Ok(None) => self.check("send", result, Ok(())),
            Ok(Some(back)) => {
                self.check("send", result, Err(MsgErrorKind::SendTimedOut));
                self.check_return(task, back);
            }
            Err(error) => self.check("send", result, Err(error)),
        }
    }

    /// The model's answer to a send: the error, or nothing if the message was sent, or the error
    /// and the message that comes back.
    fn expect_send(
        &mut self,
        task: usize,
        remote: (u32, Disposition),
        local: (u32, Option<Disposition>),
        parcels: &[(u32, Disposition)],
        (in_line, id): (usize, i32),
    ) -> Result<Option<Message>, MsgErrorKind> {
        let is_valid = |name: u32| name != 0 && name != u32::MAX;
        if remote.1 == Disposition::MoveReceive || local.1 == Some(Disposition::MoveReceive) {
            return Err(MsgErrorKind::SendInvalidHeader);
        }
        if !is_valid(remote.0) {
            return Err(MsgErrorKind::SendInvalidDest);
        }
        // All rights are checked first, on a copy of the names in which rights to dead ports are
        // dead names.
        let names: Vec<u32> = self.model.tasks[task].keys().copied().collect();
        for name in names {
            self.model.get(task, name);
        }
        let mut copy = self.model.tasks[task].clone();
        let reply = local.1.filter(|_| is_valid(local.0)).map(|disposition| (local.0, disposition));
        let reply_first =
            reply.is_some_and(|reply| reply.0 == remote.0 && remote.1.takes() && !reply.1.takes());
        let dead = copy.get(&remote.0).is_some_and(|entry| entry.object == Object::Dead);
        let check = |copy: &mut _, is_reply| match (is_reply, reply) {
            (true, Some((name, disposition))) if !can_take(copy, name, disposition) => {
                Err(MsgErrorKind::SendInvalidReply)
            }
            (false, _) if dead || !can_take(copy, remote.0, remote.1) => Err(MsgErrorKind::SendInvalidDest),
            _ => Ok(()),
        };
        check(&mut copy, reply_first)?;
        check(&mut copy, !reply_first)?;
        let body = parcels.iter().filter(|(name, _)| is_valid(*name));
        if !body.clone().all(|&(name, disposition)| can_take(&mut copy, name, disposition)) {
            return Err(MsgErrorKind::SendInvalidRight);
        }
        let mut later = Later::default();
        let mut take = |name, disposition| match name {
            0 => Right::Null,
            u32::MAX => Right::Dead,
            name => self.model.take(task, name, disposition, &mut later),
        };
        let answer = |take: &mut dyn FnMut(u32, Disposition) -> Right| match local.1 {
            Some(disposition) => take(local.0, disposition),
            None => Right::Null,
        };
        let (to, reply) = if reply_first {
            let reply = answer(&mut take);
            (take(remote.0, remote.1), reply)
        } else {
            let to = take(remote.0, remote.1);
            (to, answer(&mut take))
        };
        let rights = parcels.iter().map(|&(name, disposition)| take(name, disposition)).collect();
        self.model.finish(later);
        let message = Message { to, reply, id, note: None, rights, in_line, stamp: 0 };
        let port = port_of_right(to).unwrap();
        let state = &self.model.ports[port];
        let is_full =
            matches!(to, Right::Send(_)) && state.alive && state.queue.len() >= state.limit as usize;
        if is_full && !self.is_circular(port, &message) {
            return Ok(Some(message));
        }
        self.model.push(port, message);
        Ok(None)
    }

    fn is_circular(&self, port: usize, message: &Message) -> bool {
        let mut at = Some(port);
        while let Some(carrier) = at {
            if message.rights.contains(&Right::Receive(carrier)) {
                return true;
            }
            at = self.model.ports[carrier].carrier;
        }
        false
    }

    /// Checks the message that came back in the sender's buffer, and gives its parts to the task
    /// again.
    fn check_return(&mut self, task: usize, message: Message) {
        let bytes = self.read(task, BUFFER, 512);
        let reader = Reader(&bytes);
        let names = [message.to, message.reply].map(|right| self.model.copyout(task, right).unwrap_or(0));
        assert_eq!([reader.u32(8), reader.u32(16)], names, "step {}", self.step);
        self.check_body(task, &reader, &message);
    }

    /// Compares the body with the model's, unmaps its memory, and returns how many rights got no
    /// name.
    fn check_body(&mut self, task: usize, reader: &Reader<'_>, message: &Message) -> usize {
        let mut missing = 0;
        let rights: Vec<u32> = message
            .rights
            .iter()
            .map(|&right| {
                let name = self.model.copyout(task, right);
                missing += usize::from(name.is_none());
                name.unwrap_or(0)
            })
            .collect();
        let (in_line, out_of_line) = rights.split_at(message.in_line);
        let mut at = HEADER;
        for &name in in_line {
            assert_eq!(reader.name(at + 8), Name(name), "step {}", self.step);
            at += 16;
        }
        if !out_of_line.is_empty() {
            let array = self.read(task, reader.u64(at + 8), 8);
            let array = Reader(&array);
            assert_eq!([array.u32(0), array.u32(4)], out_of_line, "step {}", self.step);
            let data = self.read(task, reader.u64(at + 24), 40);
            assert_eq!(data, [message.id as u8; 40]);
            for address in [reader.u64(at + 8), reader.u64(at + 24)] {
                let map = self.tasks[task].map.clone();
                self.machine.block_on(map.deallocate(address & !(PAGE_SIZE - 1), PAGE_SIZE)).unwrap();
            }
        }
        missing
    }

    pub(super) fn receive(&mut self, task: usize, a: u8, b: u8) {
        let name = self.name_of(task, a, |object| match object {
            Object::Receive(port) | Object::Both(port) => {
                let state = &self.model.ports[port];
                state.set.is_none() && (!state.queue.is_empty() || b > 230)
            }
            Object::Set(_) => true,
            _ => false,
        });
        let arguments = MsgArguments {
            address: BUFFER,
            options: MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT,
            send_size: 0,
            receive_size: if b < 20 { 32 } else { 512 },
            receive_name: Name(name),
            timeout: 0,
            notify: Name::NULL,
        };
        let result = self.call(task, &arguments);
        let source = match self.model.get(task, name).map(|entry| entry.object) {
            Some(Object::Receive(port) | Object::Both(port)) if self.model.ports[port].set.is_some() => {
                return self.check("receive", result, Err(MsgErrorKind::ReceiveInSet));
            }
            Some(Object::Receive(port) | Object::Both(port)) => Source::Port(port),
            Some(Object::Set(set)) => Source::Set(set),
            _ => return self.check("receive", result, Err(MsgErrorKind::ReceiveInvalidName)),
        };
        let Some((port, message)) = self.model.pop(source) else {
            return self.check("receive", result, Err(MsgErrorKind::ReceiveTimedOut));
        };
        self.check_received(task, port, message, (result, b < 20));
    }

    fn check_received(
        &mut self,
        task: usize,
        port: usize,
        mut message: Message,
        (result, small): (Result<(), MsgErrorKind>, bool),
    ) {
        let step = self.step;
        let bytes = self.read(task, BUFFER, 512);
        let reader = Reader(&bytes);
        let local = self.model.ports[port].holder.map_or(0, |(_, name)| name);
        let id = message.note.map_or(message.id, number);
        let expected = (local, message.stamp as u32, id);
        assert_eq!((reader.u32(16), reader.u32(24), reader.u32(28) as i32), expected, "step {step}");
        // A send-once right by which the message came is used up.
        match std::mem::replace(&mut message.to, Right::Null) {
            Right::Once(port) => self.model.ports[port].onces -= 1,
            right => self.model.drop_right(right),
        }
        let has_body = !message.rights.is_empty() || message.note.is_some_and(|note| note != Note::SendOnce);
        if small && has_body {
            self.check("receive", result, Err(MsgErrorKind::ReceiveTooLarge));
            return self.model.destroy(message);
        }
        let reply = std::mem::replace(&mut message.reply, Right::Null);
        let Some(name) = self.model.copyout(task, reply) else {
            self.check("receive", result, Err(MsgErrorKind::ReceiveHeaderError));
            return self.model.destroy(message);
        };
        assert_eq!(reader.u32(8), name, "step {step}");
        let missing = match message.note {
            None => self.check_body(task, &reader, &message),
            Some(Note::Destroyed(port)) => {
                let name = self.model.copyout(task, Right::Receive(port));
                assert_eq!(reader.u32(40), name.unwrap_or(0), "step {step}");
                usize::from(name.is_none())
            }
            Some(Note::SendOnce) => 0,
            Some(Note::Deleted(word) | Note::DeadName(word) | Note::NoSenders(word)) => {
                assert_eq!(reader.u32(40), word, "step {step}");
                0
            }
        };
        let expected = if missing > 0 { Err(MsgErrorKind::ReceiveBodyError) } else { Ok(()) };
        self.check("receive", result, expected);
        let what = match message.note {
            None => "message",
            Some(Note::Deleted(_)) => "port deleted",
            Some(Note::Destroyed(_)) => "port destroyed",
            Some(Note::NoSenders(_)) => "no senders",
            Some(Note::SendOnce) => "send once",
            Some(Note::DeadName(_)) => "dead name",
        };
        *self.outcomes.entry((what, "received".into())).or_default() += 1;
    }
}

fn number(note: Note) -> i32 {
    match note {
        Note::Deleted(_) => 65,
        Note::Destroyed(_) => 69,
        Note::NoSenders(_) => 70,
        Note::SendOnce => 71,
        Note::DeadName(_) => 72,
    }
}

fn port_of_right(right: Right) -> Option<usize> {
    match right {
        Right::Send(port) | Right::Once(port) => Some(port),
        _ => None,
    }
}
