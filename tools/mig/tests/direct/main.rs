//! Stubs over direct IPC: clients call servers, each in Rust and in C.

#[allow(dead_code, unreachable_pub, clippy::all, reason = "a generated module has everything for everyone")]
#[rustfmt::skip]
mod everything;
mod pipe;
#[path = "../programs/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod programs;
mod server;

use direct::x2::{Fpage, IpcError, MapItem, MessageTag, StringDescriptor, ThreadId};
use direct::{AsyncTransport, Error, Registers, Status, Transport};
use everything::{AsyncClient, Client, serve};
use mig::target::Target;
use server::Everything;
use std::fs;

/// A transport within one program: the call's message registers are memory, and a call invokes the
/// server's dispatching function directly.
struct Loopback {
    registers: [u64; 64],
    server: Everything,
}

/// The thread that the server sees as the caller.
const CALLER: ThreadId = ThreadId::from_raw(0x1234_0001);
const SERVER: ThreadId = ThreadId::from_raw(0x5678_0001);

impl Loopback {
    fn new() -> Loopback {
        Loopback { registers: [0xdead; 64], server: Everything::default() }
    }
}

impl Registers for Loopback {
    fn register(&self, index: usize) -> u64 {
        self.registers[index]
    }
    fn set_register(&mut self, index: usize, word: u64) {
        self.registers[index] = word;
    }
}

/// Message registers in memory, without IPC.
pub(crate) struct Memory(pub(crate) [u64; 64]);

impl Registers for Memory {
    fn register(&self, index: usize) -> u64 {
        self.0[index]
    }
    fn set_register(&mut self, index: usize, word: u64) {
        self.0[index] = word;
    }
}

/// Returns the tag of a message after its strings have been added as string items.
pub(crate) fn with_strings<R: Registers>(
    registers: &mut R,
    tag: MessageTag,
    strings: &[&[u8]],
) -> MessageTag {
    let mut at = tag.end();
    for string in strings {
        registers.set_register(at, StringDescriptor::new(string.len() as u64, 1, false).raw());
        registers.set_register(at + 1, string.as_ptr() as u64);
        at += 2;
    }
    tag.with_words(tag.untyped(), tag.typed() + 2 * strings.len())
}

impl Transport for Loopback {
    fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        assert_eq!(to, SERVER);
        let tag = with_strings(self, tag, strings);
        assert!(tag.is_well_formed());
        let mut room = vec![0; 10_000];
        let mut memory = Memory(self.registers);
        let reply = serve(&mut self.server, CALLER, tag, &mut memory, strings, &mut room);
        let reply = reply.expect("a reply");
        for (room, string) in rooms.iter_mut().zip(reply.strings()) {
            room[..string.len()].copy_from_slice(string);
        }
        let tag = with_strings(&mut memory, reply.tag, reply.strings());
        self.registers = memory.0;
        Ok(tag)
    }

    fn send(&mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError> {
        assert_eq!(to, SERVER);
        let tag = with_strings(self, tag, strings);
        let mut memory = Memory(self.registers);
        assert!(serve(&mut self.server, CALLER, tag, &mut memory, strings, &mut []).is_none());
        Ok(())
    }
}

/// Calls every routine of `everything.defs` and checks the results.
pub(crate) fn exercise<T: Transport>(transport: &mut T) {
    let mut client = Client { transport, to: SERVER };
    assert_eq!(client.numbers(1, 2, 3, 1 << 40, 6), Ok(((1 << 40) + 6, 7)));
    assert_eq!(client.numbers(255, 65535, u32::MAX, 0, 0), Ok((0x1_0001_00fd, 1)));
    assert_eq!(client.numbers(13, 0, 0, 0, 0), Err(Error::Status(Status(-13))));
    assert_eq!(client.nothing(), Ok(()));
    client.hint(7, b"a hint").unwrap();
    for length in 0..=40 {
        let text = &b"abcdefghijklmnopqrstuvwxyzabcdefghijklmn"[..length];
        let shorts: Vec<u16> = (0..length as u16 % 8).collect();
        let (pair, backwards, upper) =
            client.small(text, &shorts, &[1, 2, 3, 4, 5], b"name", &[length as u64, 2]).unwrap();
        let reversed: Vec<u16> = shorts.iter().rev().copied().collect();
        assert_eq!(
            (pair, &backwards[..], &upper[..]),
            ([15, length as u64], &reversed[..], &text.to_ascii_uppercase()[..])
        );
    }
    assert_eq!(
        client.small(&[0; 41], &[], &[0; 5], b"", &[0; 2]),
        Err(Error::Status(Status::ARRAY_TOO_LARGE))
    );
    bulk(&mut client);
    let page = MapItem::map(Fpage::memory(0x1000_0000, 12), 0x4000);
    assert_eq!(client.rights(99, 17, page), Ok((page, 100, 18)));
    let mut room = [0; 8];
    assert_eq!(client.change(b"1234", &mut room), Ok(5));
    assert_eq!(&room[..5], b"4321!");
    assert_eq!(client.change(b"12345678", &mut room), Err(Error::Status(Status::ARRAY_TOO_LARGE)));
}

fn bulk<T: Transport>(client: &mut Client<'_, T>) {
    let memory: Vec<u8> = (0..3000u32).map(|at| (at * 7) as u8).collect();
    let words: Vec<u8> = (0..100u64).flat_map(u64::to_le_bytes).collect();
    for length in [0, 1, 8, 1999, 2000] {
        let (mut copy, mut again) = (vec![0; 3000], vec![0; 2000]);
        let sizes = client.bulk(&memory, &memory[..length], &words, 9, &mut copy, &mut again).unwrap();
        assert_eq!(sizes, (3000, 4950 + 9, length));
        assert!(copy == memory && again[..length] == memory[..length]);
    }
    let (mut copy, mut again) = ([0; 10], [0; 10]);
    let small = client.bulk(&memory, &memory[..5], &words, 9, &mut copy, &mut again);
    assert_eq!(small, Err(Error::Status(Status::ARRAY_TOO_LARGE)));
}

#[test]
fn the_generated_module_is_what_the_definition_says() {
    let directory = programs::tests().join("direct");
    let text = fs::read_to_string(directory.join("everything.defs")).unwrap();
    let compiled = mig::compile(Target::by_name("mach64").unwrap(), "everything.defs", &text);
    let module = mig::direct::module(compiled.interface.as_ref().unwrap()).unwrap();
    let path = directory.join("everything.rs");
    if std::env::var_os("MIG_BLESS").is_some() {
        fs::write(&path, &module).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == module, "MIG_BLESS=1 writes tests/direct/everything.rs");
}

#[test]
fn a_client_in_rust_and_a_server_in_rust_understand_each_other() {
    let mut loopback = Loopback::new();
    exercise(&mut loopback);
    assert_eq!(loopback.server.hints, [(7, b"a hint".to_vec())]);
}

#[test]
fn any_words_are_answered_without_a_panic() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut server = Everything::default();
    for _ in 0..20_000 {
        let mut memory = Memory([0; 64]);
        let small = random() % 2 == 0;
        memory
            .0
            .iter_mut()
            .for_each(|word| *word = if small { random() % 64 } else { random() << 32 | random() });
        let untyped = (random() % 64) as usize;
        let tag = MessageTag::new(4999 + random() % 10, untyped, (random() % 9) as usize % (64 - untyped));
        let data = [7; 100];
        let strings = [&data[..(random() % 100) as usize], &data[..(random() % 100) as usize]];
        let mut room = [0; 200];
        let reply = serve(&mut server, CALLER, tag, &mut memory, &strings, &mut room);
        if let Some(reply) = reply {
            assert_eq!(reply.tag.label(), tag.label() + 100);
        }
    }
}

/// An asynchronous transport that has the reply when a call's future is polled for the first time.
struct Ready(Loopback);

impl Registers for Ready {
    fn register(&self, index: usize) -> u64 {
        self.0.register(index)
    }
    fn set_register(&mut self, index: usize, word: u64) {
        self.0.set_register(index, word);
    }
}

impl AsyncTransport for Ready {
    async fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        Transport::call(&mut self.0, to, tag, strings, rooms)
    }
}

#[test]
fn a_client_can_await_the_reply() {
    let mut transport = Ready(Loopback::new());
    let mut client = AsyncClient { transport: &mut transport, to: SERVER };
    let mut future = std::pin::pin!(client.numbers(1, 2, 3, 4, 5));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(future.as_mut().poll(&mut context), std::task::Poll::Ready(Ok((10, 6))));
}

#[test]
fn a_server_can_reply_later() {
    let mut server = Everything::default();
    let mut memory = Memory([0; 64]);
    let tag = everything::encode_numbers(&mut memory, 14, 0, 0, 0, 1).unwrap();
    assert!(serve(&mut server, CALLER, tag, &mut memory, &[], &mut []).is_none());
    let reply = everything::reply_numbers(&mut memory, Ok((5, 6)));
    assert_eq!(everything::decode_numbers(&memory, reply.tag), Ok((5, 6)));
    let reply = everything::reply_numbers(&mut memory, Err(Status(9)));
    assert_eq!(everything::decode_numbers(&memory, reply.tag), Err(Error::Status(Status(9))));
    // Results in string items.
    let reply = everything::reply_change(&mut memory, Ok(3), b"abcd");
    assert_eq!(reply.strings(), [b"abc"]);
    let reply = everything::reply_change(&mut memory, Ok(5), b"abcd");
    assert_eq!(everything::decode_change(&memory, reply.tag, 4), Err(Error::Status(Status::ARRAY_TOO_LARGE)));
}

#[test]
fn a_client_in_rust_and_a_server_in_c_understand_each_other() {
    let mut program = pipe::Program::start("server");
    exercise(&mut program);
}

#[test]
fn a_client_in_c_and_a_server_in_rust_understand_each_other() {
    let mut program = pipe::Program::start("client");
    let mut server = Everything::default();
    while let Some((tag, mut memory, strings)) = program.receive() {
        let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
        let mut room = vec![0; 10_000];
        if let Some(reply) = serve(&mut server, CALLER, tag, &mut memory, &strings, &mut room) {
            let tag = with_strings(&mut memory, reply.tag, reply.strings());
            program.send(tag, &memory, reply.strings());
        }
    }
    program.finish();
    assert_eq!(server.hints, [(7, b"a hint".to_vec())]);
}

#[test]
fn what_does_not_fit_is_an_error_at_its_place() {
    let arguments: Vec<String> = (0..64).map(|at| format!("a{at} : int")).collect();
    let text = format!(
        "subsystem a 1; type p = MACH_MSG_TYPE_COPY_SEND;\nroutine many(port : p; {});",
        arguments.join("; ")
    );
    let compiled = mig::compile(Target::by_name("mach64").unwrap(), "a.defs", &text);
    let error = mig::direct::module(compiled.interface.as_ref().unwrap()).unwrap_err();
    assert!(error.render(&compiled.source).contains("a.defs:2:9"));
    assert_eq!(error.message, "the request of `many` does not fit the registers");
}
