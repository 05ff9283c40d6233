//! The server's side: its client, and the requests to the stack.

use crate::client::Attachment;
use alloc::boxed::Box;
use alloc::vec::Vec;
use direct::{Array, Status};
use inet::placement::{SHORT, answer};
use inet::{Instant, Limits, Stack};
use interfaces::network::Server;
use l4::x2::ThreadId;

/// The least memory that is of use for buffers, and bytes of it for each socket that there may be.
const LEAST: usize = 1 << 20;
const SHARE: usize = 4096;

/// What the server asks of the machine.
pub trait Surroundings {
    /// The time.
    fn now(&self) -> Instant;
    /// Notifies a thread. Returns false if there is no such thread any more.
    fn notify(&self, thread: ThreadId, bits: u64) -> bool;
    /// A new stack is there: it gets the interfaces.
    fn begin(&mut self, stack: &mut Stack);
    /// The stack has done something, and may have frames to be sent.
    fn pass(&mut self, stack: &mut Stack, now: Instant);
}

/// The stack, its client, and what the server asks of the machine.
pub struct Service<S> {
    /// What the server asks of the machine.
    pub surroundings: S,
    /// Bytes that the buffers of sockets may have at most.
    memory: usize,
    client: Option<Client>,
    /// The memory of answers.
    answer: Vec<u8>,
}

/// The client, and its stack.
struct Client {
    stack: Box<Stack>,
    key: u64,
    thread: ThreadId,
    bits: u64,
    /// The client has been notified, and has not asked since.
    is_told: bool,
}

impl<S: Surroundings> Service<S> {
    /// A service without a client, whose sockets' buffers may have so many bytes.
    pub fn new(surroundings: S, memory: usize) -> Service<S> {
        Service { surroundings, memory, client: None, answer: Vec::new() }
    }

    /// The stack, if there is a client, and what the server asks of the machine.
    pub fn stack(&mut self) -> Option<(&mut Stack, &mut S)> {
        let client = self.client.as_mut()?;
        Some((&mut client.stack, &mut self.surroundings))
    }

    /// Does what is due, passes frames, and notifies the client if sockets have become ready of
    /// which it does not know.
    pub fn work(&mut self) {
        let now = self.surroundings.now();
        let Some(client) = &mut self.client else { return };
        if client.stack.next_deadline().is_some_and(|deadline| deadline <= now) {
            client.stack.advance(now);
        }
        self.surroundings.pass(&mut client.stack, now);
        client.tell(&self.surroundings);
    }

    fn attach(&mut self, about: &Attachment) -> Result<(), rt::root::Status> {
        let alive = |client: &Client| self.surroundings.notify(client.thread, 0);
        if self.client.as_ref().is_some_and(alive) {
            return Err(rt::root::Status::InUse);
        }
        let usual = Limits::default();
        let wanted = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let memory = wanted(about.memory).min(self.memory).max(LEAST);
        let sockets = wanted(about.sockets).min(memory / SHARE);
        let mut seed = [0; 32];
        for (part, word) in seed.chunks_exact_mut(8).zip(about.seed) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        let mut stack = Box::new(Stack::new(seed, Limits { memory, sockets, ..usual }));
        stack.identify_from(about.first);
        stack.at(self.surroundings.now());
        self.surroundings.begin(&mut stack);
        let Attachment { key, thread, bits, .. } = *about;
        self.client = Some(Client { stack, key, thread, bits, is_told: false });
        Ok(())
    }

    /// Carries out the client's request. The answer is in `self.answer`.
    fn carry_out(&mut self, key: u64, request: &[u8]) -> Result<&[u8], Status> {
        let now = self.surroundings.now();
        let client = self.client.as_mut().filter(|client| client.key == key);
        let client = client.ok_or(Status::from(rt::root::Status::NotFound))?;
        if !answer(&mut client.stack, now, request, &mut self.answer) {
            return Err(Status::BAD_ARGUMENTS);
        }
        // The answer says whether there is more to be asked for.
        client.is_told = client.stack.has_ready() || client.stack.has_changes();
        // Here and not after the answer was written: to send may need memory, and a request to root
        // for it would overwrite the answer's words.
        self.surroundings.pass(&mut client.stack, now);
        client.tell(&self.surroundings);
        Ok(&self.answer)
    }
}

impl Client {
    /// Notifies the client if there are sockets that are ready, or changes, of which it does not
    /// know.
    fn tell(&mut self, surroundings: &impl Surroundings) {
        if !self.is_told && (self.stack.has_ready() || self.stack.has_changes()) {
            // A client that has ended needs no news.
            surroundings.notify(self.thread, self.bits);
            self.is_told = true;
        }
    }
}

impl<S: Surroundings> Server for Service<S> {
    fn network_attach(
        &mut self,
        _: ThreadId,
        seed0: u64,
        seed1: u64,
        seed2: u64,
        seed3: u64,
        key: u64,
        memory: u64,
        sockets: u64,
        first: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), Status> {
        let first = u32::try_from(first).map_err(|_| Status::BAD_ARGUMENTS)?;
        let (seed, thread) = ([seed0, seed1, seed2, seed3], ThreadId::from_raw(thread));
        Ok(self.attach(&Attachment { seed, key, memory, sockets, first, thread, bits })?)
    }

    fn network_request(&mut self, _: ThreadId, key: u64, request: &[u8]) -> Result<Array<u8, SHORT>, Status> {
        Array::new(self.carry_out(key, request)?).ok_or(Status::ARRAY_TOO_LARGE)
    }

    fn network_transfer(
        &mut self,
        _: ThreadId,
        key: u64,
        request: &[u8],
        answer: &mut [u8],
    ) -> Result<usize, Status> {
        let done = self.carry_out(key, request)?;
        answer.get_mut(..done.len()).ok_or(Status::ARRAY_TOO_LARGE)?.copy_from_slice(done);
        Ok(done.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use alloc::vec;
    use core::net::{Ipv4Addr, SocketAddr};
    use inet::placement::{LONGEST, Remote, Transport};
    use inet::{Family, InterfaceIndex, Internet, Kind, SendFlags, Subject};
    use std::sync::Mutex;

    const KEY: u64 = 0x1234_5678_9abc;
    const LO: InterfaceIndex = InterfaceIndex(1);

    /// A machine that notes which notifications there were.
    #[derive(Default)]
    struct Notes {
        notified: Mutex<Vec<u64>>,
        has_client_ended: bool,
    }

    impl Surroundings for Notes {
        fn now(&self) -> Instant {
            Instant::from_micros(0)
        }

        fn notify(&self, _: ThreadId, bits: u64) -> bool {
            if bits != 0 {
                self.notified.lock().unwrap().push(bits);
            }
            !self.has_client_ended
        }

        fn begin(&mut self, stack: &mut Stack) {
            stack.set_up(LO, true).unwrap();
        }

        fn pass(&mut self, _: &mut Stack, _: Instant) {}
    }

    fn attach(service: &mut Service<Notes>, key: u64) -> Result<(), Status> {
        service.network_attach(ThreadId::NIL, 1, 2, 3, 4, key, 1 << 30, 100, 1, ThreadId::NIL.raw(), 8)
    }

    /// A client's way to the service, with this key.
    struct Way(Arc<Mutex<Service<Notes>>>, u64, Vec<u8>);

    impl Transport for Way {
        fn call(&mut self, request: &[u8], long: bool) -> Option<&[u8]> {
            let mut service = self.0.lock().unwrap();
            self.2.resize(LONGEST, 0);
            let length = if long {
                service.network_transfer(ThreadId::NIL, self.1, request, &mut self.2).ok()?
            } else {
                let answer = service.network_request(ThreadId::NIL, self.1, request).ok()?;
                self.2[..answer.len()].copy_from_slice(&answer);
                answer.len()
            };
            Some(&self.2[..length])
        }
    }

    fn client(service: &Arc<Mutex<Service<Notes>>>, key: u64) -> Internet {
        let mut client = Internet::elsewhere();
        let Internet::There(remote) = &mut client else { unreachable!() };
        Remote::connect(remote, Box::new(Way(service.clone(), key, vec![])));
        client
    }

    #[test]
    fn requests_need_the_key_of_the_client() {
        let service = Arc::new(Mutex::new(Service::new(Notes::default(), 8 << 20)));
        let mut early = client(&service, KEY);
        assert!(early.open_for(Kind::Udp(Family::V4), 0).is_err(), "there is no stack yet");
        attach(&mut service.lock().unwrap(), KEY).unwrap();
        assert!(client(&service, KEY).open_for(Kind::Udp(Family::V4), 0).is_ok());
        assert!(client(&service, KEY + 1).open_for(Kind::Udp(Family::V4), 0).is_err());
        let mut room = [0; 100];
        let mut service = service.lock().unwrap();
        let refused = service.network_transfer(ThreadId::NIL, KEY, &[255, 1, 2], &mut room);
        assert_eq!(refused, Err(Status::BAD_ARGUMENTS));
    }

    #[test]
    fn a_client_gives_way_to_another_one_only_when_it_has_ended() {
        let mut service = Service::new(Notes::default(), 8 << 20);
        attach(&mut service, KEY).unwrap();
        assert_eq!(attach(&mut service, KEY + 1), Err(rt::root::Status::InUse.into()));
        let (stack, _) = service.stack().unwrap();
        stack.open(Kind::Udp(Family::V4)).unwrap();
        service.surroundings.has_client_ended = true;
        attach(&mut service, KEY + 1).unwrap();
        assert_eq!(service.stack().unwrap().0.sockets().len(), 0, "the stack is a new one");
    }

    #[test]
    fn the_stack_has_no_more_memory_than_the_server_spares() {
        let mut service = Service::new(Notes::default(), 8 << 20);
        attach(&mut service, KEY).unwrap();
        let limits = service.stack().unwrap().0.limits();
        assert_eq!((limits.memory, limits.sockets), (8 << 20, 100));
    }

    #[test]
    fn the_client_is_notified_once_until_it_asks() {
        let service = Arc::new(Mutex::new(Service::new(Notes::default(), 8 << 20)));
        attach(&mut service.lock().unwrap(), KEY).unwrap();
        let mut client = client(&service, KEY);
        let socket = client.open_for(Kind::Udp(Family::V4), 0).unwrap();
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, 7000).into();
        client.bind(socket, address).unwrap();
        while client.ready().is_some() {}
        let arrive = || {
            let mut service = service.lock().unwrap();
            let (stack, _) = service.stack().unwrap();
            let sender = stack.open(Kind::Udp(Family::V4)).unwrap();
            stack.send(sender, b"news", Some(address), SendFlags::default()).unwrap();
            service.work();
            service.surroundings.notified.lock().unwrap().len()
        };
        assert_eq!((arrive(), arrive()), (1, 1), "the second message is no news");
        client.refresh();
        let told: Vec<_> = core::iter::from_fn(|| client.ready()).collect();
        assert!(told.iter().any(|(id, readiness)| *id == socket && readiness.read));
        assert_eq!(arrive(), 2);
    }

    #[test]
    fn the_client_is_notified_of_changes_that_it_did_not_make() {
        let service = Arc::new(Mutex::new(Service::new(Notes::default(), 8 << 20)));
        attach(&mut service.lock().unwrap(), KEY).unwrap();
        let mut client = client(&service, KEY);
        // As a link of a driver does that comes and goes.
        let change = |up: bool| {
            let mut service = service.lock().unwrap();
            service.stack().unwrap().0.set_up(LO, up).unwrap();
            service.work();
            service.surroundings.notified.lock().unwrap().len()
        };
        assert_eq!(change(false), 0, "it has not asked for changes");
        client.note_changes(true);
        assert_eq!((change(true), change(false)), (1, 1));
        client.refresh();
        let told: Vec<_> = core::iter::from_fn(|| client.next_change()).collect();
        let states = told.iter().filter_map(|change| match &change.subject {
            Subject::Interface(interface) => Some(interface.up),
            _ => None,
        });
        assert_eq!(states.collect::<Vec<_>>(), [true, false]);
        assert_eq!(change(true), 2);
    }
}
