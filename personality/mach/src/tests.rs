//! Tests of whole systems on the simulated machine. A thread's program is a list of steps, each a
//! trap and a check of its result.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use mach::Host;
use mach::ipc::{Disposition, Limits, Name, PortRight};
use mach::machine::simulated::{Executor, Simulated, SimulatedThread};
use mach::machine::{Event, PageFault, Protection, Resume, SystemCall};
use mach::thread::PriorityRange;
use mach::vm::Vm;
use mach::{KernError, KernResult};

use crate::image::tests::file;
use crate::script::Line;
use crate::{Services, System};

const FRAMES: u32 = 512;
const BOUNDS: (u64, u64) = (0x1000, 0x7fff_0000_0000);
/// The address of the test program's writable page.
const DATA: u64 = 0x40_0000;

/// A task that the machine's executor is to get.
type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the services of the system have been asked for.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    tasks: Vec<Task>,
    printed: Vec<u8>,
    log: Vec<String>,
    ended: Option<bool>,
}

impl Services<Simulated> for Recorder {
    fn spawn(&self, _: &SimulatedThread, task: impl Future<Output = ()> + Send + 'static) -> KernResult {
        self.0.lock().unwrap().tasks.push(Box::pin(task));
        Ok(())
    }

    async fn print(&self, text: &[u8]) {
        self.0.lock().unwrap().printed.extend_from_slice(text);
    }

    fn log(&self, line: core::fmt::Arguments<'_>) {
        self.0.lock().unwrap().log.push(line.to_string());
    }

    fn ended(&self, clean: bool) {
        self.0.lock().unwrap().ended = Some(clean);
    }
}

/// A step of a program: what the program first writes at [`DATA`], a trap, and the result that the
/// trap must have; `None` for the result of a trap that does not return.
#[derive(Clone)]
struct Step {
    store: Vec<u8>,
    number: i64,
    arguments: [u64; 6],
    expected: Option<u64>,
}

/// Programs by the numbers of their threads, each what is left of its steps.
type Programs = Arc<Mutex<HashMap<usize, VecDeque<Step>>>>;

struct World {
    machine: Simulated,
    system: Arc<System<Simulated, Recorder>>,
    recorder: Recorder,
    programs: Programs,
}

impl World {
    fn new() -> Self {
        let machine = Simulated::new(FRAMES);
        let host = Host::new(Vm::new(machine.clone()).unwrap(), PriorityRange::default(), 10_000);
        let recorder = Recorder::default();
        let system = System::new(&host, Limits::default(), 0, recorder.clone()).unwrap();
        let programs = Programs::default();
        let (of_machine, memory) = (programs.clone(), machine.clone());
        machine.set_program(move |thread, resume| {
            let mut programs = of_machine.lock().unwrap();
            let steps = programs.get_mut(&thread.number())?;
            if let Resume::Return(result) = resume {
                let Step { number, arguments, expected, .. } = steps.pop_front().unwrap();
                assert_eq!(Some(result), expected, "trap {number} with {arguments:x?}");
            }
            let Step { store, number, arguments, .. } = steps.front()?;
            if !store.is_empty() && memory.user_write_in(thread.space(), DATA, store).is_none() {
                return Some(Event::PageFault(PageFault {
                    address: DATA,
                    access: Protection::WRITE,
                    ip: DATA,
                }));
            }
            Some(Event::SystemCall(SystemCall { number: *number as u64, arguments: *arguments }))
        });
        Self { machine, system, recorder, programs }
    }

    /// Runs a program of one thread until nothing can go on.
    fn run(&self, line: &str, steps: &[Step]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = Line::parse(words).unwrap();
        let program = file(&[[1, 6, 120, DATA, 4, 0x1000]], DATA, b"data");
        self.programs.lock().unwrap().insert(self.machine.threads(), steps.iter().cloned().collect());
        let started = self.machine.block_on(self.system.start(&line, &program, BOUNDS));
        started.unwrap();
        let mut executor = Executor::new(self.machine.clone());
        for task in std::mem::take(&mut self.recorder.0.lock().unwrap().tasks) {
            executor.spawn(task);
        }
        executor.run();
    }

    fn left(&self) -> usize {
        self.programs.lock().unwrap().values().map(VecDeque::len).sum()
    }
}

const LINE: &str = "first ${host-port} ${device-port} x $(task-create) $(task-resume)";

/// The result of a trap that must have succeeded.
const OK: Option<u64> = Some(0);
/// The result of a trap that names another task.
const SEND_MESSAGE: Option<u64> = Some(0x1000_0007);

fn error(error: KernError) -> Option<u64> {
    Some(error as u64)
}

fn trap(number: i64, arguments: &[u64], result: Option<u64>) -> Step {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    Step { store: Vec::new(), number, arguments: all, expected: result }
}

/// The end of the caller's task, whose name is `task`.
fn terminate(task: u64) -> Step {
    trap(-69, &[task], None)
}

#[test]
fn a_program_finds_its_ports_and_ends_the_system() {
    let world = World::new();
    // The rights of the command line have the names 1 and 2, so the next name is 3.
    let steps = [
        trap(-28, &[], Some(3)),
        trap(-28, &[], Some(3)),
        trap(-26, &[], Some(4)),
        trap(-27, &[], Some(5)),
        trap(-29, &[], Some(6)),
        trap(-73, &[3, 6], OK),
        trap(-73, &[3, 6], error(KernError::InvalidName)),
        trap(-73, &[5, 6], SEND_MESSAGE),
        terminate(3),
    ];
    world.run(LINE, &steps);
    assert_eq!(world.recorder.0.lock().unwrap().ended, Some(true));
    assert_eq!((world.machine.threads(), world.left()), (0, 1));
}

#[test]
fn each_trap_without_a_meaning_has_its_result() {
    let world = World::new();
    let invalid = error(KernError::InvalidArgument);
    let mut steps = vec![trap(-28, &[], Some(3))];
    steps.extend([-10, -11, -12, -13, -55, -56].map(|number| trap(number, &[], OK)));
    steps.extend([0, -1, -16, -17, -18, -31, -52, -129].map(|number| trap(number, &[], invalid)));
    steps.extend([-39, -40].map(|number| trap(number, &[2], Some(2502))));
    // Only the caller's own task and thread are meant by these.
    steps.extend(
        [-64, -65, -66, -68, -69, -70, -71, -72, -73, -74, -75, -76]
            .map(|number| trap(number, &[2], SEND_MESSAGE)),
    );
    steps.push(terminate(3));
    world.run(LINE, &steps);
    assert_eq!(world.left(), 1);
}

#[test]
fn memory_and_ports_are_made_by_traps() {
    let world = World::new();
    let steps = [
        trap(-28, &[], Some(3)),
        trap(-65, &[3, DATA + 8, 0x2000, 1], OK),
        trap(-65, &[3, 0x10, 0x2000, 1], error(KernError::InvalidAddress)),
        trap(-66, &[3, DATA, 0], OK),
        trap(-72, &[3, 1, DATA + 16], OK),
        trap(-72, &[3, 9, DATA + 16], error(KernError::InvalidValue)),
        trap(-72, &[3, 1, 0x10], error(KernError::InvalidAddress)),
        trap(-75, &[3, 1, 77], OK),
        trap(-75, &[3, 1, 77], error(KernError::NameExists)),
        trap(-74, &[3, 77, 77, 20], OK),
        trap(-74, &[3, 78, 77, 20], error(KernError::RightExists)),
        trap(-74, &[3, 78, 77, 7], error(KernError::InvalidValue)),
        trap(-74, &[3, 78, 0, 20], error(KernError::InvalidCapability)),
        // The name 4 was allocated, and the port that could not be told has been given up.
        trap(-26, &[], Some(5)),
        trap(-66, &[3, DATA + 1, 0xfff], OK),
        trap(-72, &[3, 1, DATA + 16], error(KernError::InvalidAddress)),
        terminate(3),
    ];
    world.run(LINE, &steps);
    assert_eq!(world.left(), 1);
}

#[test]
fn text_is_printed_up_to_its_end() {
    let world = World::new();
    world.run(
        LINE,
        &[trap(-28, &[], Some(3)), trap(-30, &[DATA], OK), trap(-30, &[0x10], Some(1)), terminate(3)],
    );
    assert_eq!(world.recorder.0.lock().unwrap().printed, b"data");
}

#[test]
fn a_number_beyond_the_table_ends_the_task_and_is_reported() {
    let world = World::new();
    world.run(LINE, &[trap(-130, &[], None)]);
    let recorded = world.recorder.0.lock().unwrap();
    assert_eq!(recorded.ended, Some(false));
    assert!(recorded.log[0].contains("BadInstruction"), "{:?}", recorded.log);
}

/// A server and a client that send each other messages. Each has one buffer, at [`DATA`].
struct Pair {
    world: World,
    tasks: Vec<Arc<mach::Task<Simulated, crate::Native>>>,
}

/// The server's port, the client's right to it, and the client's reply port.
const PORT: u32 = 77;
const RIGHT: u32 = 88;
const REPLY: u32 = 99;
const SERVER: usize = 0;
const CLIENT: usize = 1;
const SEND: u64 = 1;
const RECEIVE: u64 = 2;
const COPY_SEND: u64 = 19;
const MAKE_SEND_ONCE: u64 = 21;
const MOVE_SEND_ONCE: u64 = 18;
/// The name of each reply right in the server: the lowest that is free.
const REPLY_RIGHT: u32 = 3;
/// The size of a request with a body.
const SIZE: usize = 32 + 0x300;

fn header(bits: u64, size: usize, remote: u32, local: u32, sequence: u64, id: u64) -> Vec<u8> {
    let words = [bits | (size as u64) << 32, remote.into(), local.into(), sequence | id << 32];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A request whose body has bytes that depend on its number.
fn request(number: u64) -> Vec<u8> {
    let mut bytes = header(COPY_SEND | MAKE_SEND_ONCE << 8, SIZE, RIGHT, REPLY, 0, number);
    bytes.extend((0..SIZE - 32).map(|at| (at as u64 * 7 + number) as u8));
    bytes
}

fn message(store: Vec<u8>, options: u64, receive: u32, room: u64, result: Option<u64>) -> Step {
    let size = if options & SEND == 0 { 0 } else { store.len() as u64 };
    Step { store, ..trap(-25, &[DATA, options, size, room, receive.into(), 0], result) }
}

/// The server's first wait.
fn wait(result: Option<u64>) -> Step {
    message(header(0, 32, 0, 0, 0, 0), RECEIVE, PORT, 0x400, result)
}

/// A call of the client.
fn call(number: u64) -> Step {
    message(request(number), SEND | RECEIVE, REPLY, 0x400, OK)
}

/// The server's answer to a request, and its wait for the next.
fn answer(number: u64, result: Option<u64>) -> Step {
    let reply = header(MOVE_SEND_ONCE, 32, REPLY_RIGHT, 0, 0, number + 100);
    message(reply, SEND | RECEIVE, PORT, 0x400, result)
}

impl Pair {
    fn new(server: Vec<Step>, client: Vec<Step>) -> Self {
        let world = World::new();
        for (number, (name, steps)) in [("server", server), ("client", client)].into_iter().enumerate() {
            let program = file(&[[1, 6, 120, DATA, 4, 0x1000]], DATA, b"data");
            let line = format!("{name} ${{host-port}} ${{device-port}} $(task-create) $(task-resume)");
            let line = Line::parse(line.split(' ')).unwrap();
            world.programs.lock().unwrap().insert(number, steps.into());
            world.machine.block_on(world.system.start(&line, &program, BOUNDS)).unwrap();
        }
        let tasks = world.system.host().tasks();
        let (server, client) = (tasks[SERVER].space(), tasks[CLIENT].space());
        server.allocate_name(PortRight::Receive, Name(PORT)).unwrap();
        client.allocate_name(PortRight::Receive, Name(REPLY)).unwrap();
        let right = server.extract_right(Name(PORT), Disposition::MakeSend).unwrap();
        client.insert_right(Name(RIGHT), right).unwrap();
        Self { world, tasks }
    }

    /// Runs both until nothing can go on. Returns how often the tasks that serve them were polled.
    fn run(&self) -> usize {
        let mut executor = Executor::new(self.world.machine.clone());
        for task in std::mem::take(&mut self.world.recorder.0.lock().unwrap().tasks) {
            executor.spawn(task);
        }
        let mut polls = 0;
        while executor.step() || self.world.machine.advance_to_next_timer() {
            polls += 1;
        }
        // Threads that wait for ever keep their tasks.
        std::mem::forget(executor);
        polls
    }

    fn bytes(&self, task: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.world.machine.block_on(self.tasks[task].map().copyin(DATA, &mut bytes)).unwrap();
        bytes
    }

    /// How many steps of a thread are left.
    fn left(&self, thread: usize) -> usize {
        self.world.programs.lock().unwrap()[&thread].len()
    }
}

#[test]
fn calls_between_two_tasks_wake_no_task_that_serves_them() {
    let polls = [2, 40].map(|calls| {
        let mut server = vec![wait(OK)];
        server.extend((1..calls).map(|number| answer(number, OK)));
        server.push(answer(calls, None));
        let pair = Pair::new(server, (1..=calls).map(call).collect());
        let polls = pair.run();
        assert_eq!((pair.left(SERVER), pair.left(CLIENT)), (1, 0), "only the server's last wait goes on");
        assert_eq!(pair.bytes(CLIENT, 32), header(18 << 8, 32, 0, REPLY, calls - 1, calls + 100));
        assert_eq!(pair.tasks[SERVER].space().name_count(), 3, "no reply right is left");
        polls
    });
    assert_eq!(polls[0], polls[1], "the number of calls makes no difference");
}

#[test]
fn a_message_is_the_same_by_the_short_way_and_by_the_queue() {
    for waits_first in [true, false] {
        let sleep = (!waits_first).then(|| trap(-61, &[0, 2, 1], OK));
        let server = sleep.into_iter().chain([wait(OK)]).collect();
        let pair = Pair::new(server, vec![message(request(5), SEND | RECEIVE, REPLY, 0x400, None)]);
        pair.run();
        let mut expected = request(5);
        expected[..32].copy_from_slice(&header(17 << 8 | 18, SIZE, REPLY_RIGHT, PORT, 0, 5));
        assert_eq!(pair.bytes(SERVER, SIZE), expected, "{waits_first}");
    }
}

#[test]
fn a_receiver_that_waits_for_a_set_gets_the_messages_of_its_members() {
    const SET: u32 = 66;
    let server = vec![message(header(0, 32, 0, 0, 0, 0), RECEIVE, SET, 0x400, OK)];
    let pair = Pair::new(server, vec![message(request(5), SEND | RECEIVE, REPLY, 0x400, None)]);
    let space = pair.tasks[SERVER].space();
    space.allocate_name(PortRight::PortSet, Name(SET)).unwrap();
    space.move_member(Name(PORT), Name(SET)).unwrap();
    pair.run();
    assert_eq!(pair.bytes(SERVER, 32), header(17 << 8 | 18, SIZE, REPLY_RIGHT, PORT, 0, 5));
}

#[test]
fn the_wait_of_a_held_receiver_ends_with_its_port() {
    let pair = Pair::new(vec![wait(Some(0x1000_4009))], vec![]);
    pair.run();
    assert_eq!(pair.left(SERVER), 1);
    pair.tasks[SERVER].space().destroy(Name(PORT)).unwrap();
    assert_eq!(pair.left(SERVER), 0);
}

#[test]
fn a_port_that_joins_a_set_ends_the_wait_at_the_port() {
    let pair = Pair::new(vec![wait(Some(0x1000_4006))], vec![]);
    pair.run();
    let space = pair.tasks[SERVER].space();
    let set = space.allocate(PortRight::PortSet).unwrap();
    space.move_member(Name(PORT), set).unwrap();
    assert_eq!(pair.left(SERVER), 0);
}

#[test]
fn a_held_receiver_can_be_interrupted() {
    let pair = Pair::new(vec![wait(Some(0x1000_4005))], vec![]);
    pair.run();
    let thread = pair.tasks[SERVER].threads().remove(0);
    assert!(thread.receiver.interrupt());
    assert!(!thread.receiver.interrupt());
    assert_eq!(pair.left(SERVER), 0);
}

#[test]
fn a_message_that_does_not_fit_a_held_receiver_goes_the_general_way() {
    let server = vec![message(header(0, 32, 0, 0, 0, 0), RECEIVE, PORT, 0x40, Some(0x1000_4004))];
    let pair = Pair::new(server, vec![message(request(5), SEND, REPLY, 0, OK)]);
    pair.run();
    assert_eq!((pair.left(SERVER), pair.left(CLIENT)), (0, 0));
    // The reply port was told that its right has ended.
    assert_eq!(pair.tasks[CLIENT].space().receive_status(Name(REPLY)).unwrap().messages, 1);
}

/// The option with which no message goes the short way: a time-out for receiving, which is not
/// reached.
const RECEIVE_TIMEOUT: u64 = 0x100;
/// The client's name for its own task, which is the first that it asks for.
const TASK: u32 = 3;

/// A number of 32 bits in a request: its type, and the number.
type Number = (u64, u32);

fn name(name: u32) -> Number {
    (15, name)
}

fn integer(value: u32) -> Number {
    (2, value)
}

/// A call of a kernel object by the client, with these numbers in its request.
fn object_call(object: u32, id: u64, numbers: &[Number], options: u64) -> Step {
    let size = 32 + 16 * numbers.len();
    let mut bytes = header(COPY_SEND | MAKE_SEND_ONCE << 8, size, object, REPLY, 0, id);
    for &(kind, number) in numbers {
        let descriptor = kind | 32 << 8 | 1 << 29 | 1u64 << 32;
        bytes.extend([descriptor, number.into()].iter().flat_map(|word: &u64| word.to_le_bytes()));
    }
    let mut step = message(bytes, SEND | RECEIVE | options, REPLY, 0x400, OK);
    step.arguments[5] = 1000;
    step
}

#[test]
fn a_call_of_a_kernel_object_is_the_same_by_the_short_way_and_the_general() {
    const HOST: u32 = 1;
    let calls: &[(u32, u64, &[Number])] = &[
        (TASK, 3201, &[name(REPLY)]),
        (TASK, 3201, &[name(12_345)]),
        (TASK, 3204, &[integer(1)]),
        (TASK, 3204, &[integer(17)]),
        // A reply with memory.
        (TASK, 3200, &[]),
        // A reply with a right.
        (TASK, 3216, &[name(REPLY), integer(21)]),
        (TASK, 3205, &[name(REPLY)]),
        (TASK, 2012, &[integer(1)]),
        (TASK, 2030, &[]),
        (HOST, 2012, &[integer(1)]),
        (TASK, 2030, &[integer(1), integer(2)]),
        (TASK, 3299, &[]),
        (TASK, 1, &[]),
    ];
    for &(object, id, numbers) in calls {
        let ways = [0, RECEIVE_TIMEOUT].map(|options| {
            let call = object_call(object, id, numbers, options);
            // The port for replies may be gone after the first call.
            let is_destroyed = id == 3205;
            let steps = if is_destroyed { vec![call.clone()] } else { vec![call.clone(); 2] };
            let pair = Pair::new(vec![], [vec![trap(-28, &[], Some(TASK.into()))], steps].concat());
            if is_destroyed {
                pair.world.programs.lock().unwrap().get_mut(&CLIENT).unwrap()[1].expected = Some(0x1000_4002);
            }
            pair.run();
            assert_eq!(pair.left(CLIENT), 0, "{id}");
            (pair.bytes(CLIENT, 0x400), pair.tasks[CLIENT].space().name_count())
        });
        assert!(ways[0] == ways[1], "call {id} of {object} with {numbers:?}: {ways:x?}");
    }
}

#[test]
fn calls_of_kernel_objects_wake_no_task_that_serves_the_caller() {
    let polls = [2, 40].map(|calls| {
        let call = object_call(TASK, 3201, &[name(REPLY)], 0);
        let steps = [vec![trap(-28, &[], Some(TASK.into()))], vec![call; calls]].concat();
        Pair::new(vec![], steps).run()
    });
    assert_eq!(polls[0], polls[1], "the number of calls makes no difference");
}

#[test]
fn a_message_to_oneself_is_the_same_by_the_short_way_and_by_the_queue() {
    let ways = [0, RECEIVE_TIMEOUT].map(|options| {
        let mut bytes = request(9);
        bytes[..32].copy_from_slice(&header(MAKE_SEND_ONCE, SIZE, REPLY, 0, 0, 9));
        let mut step = message(bytes, SEND | RECEIVE | options, REPLY, 0x400, OK);
        step.arguments[5] = 1000;
        let pair = Pair::new(vec![], vec![step; 3]);
        pair.run();
        assert_eq!(pair.left(CLIENT), 0);
        (pair.bytes(CLIENT, SIZE), pair.tasks[CLIENT].space().name_count())
    });
    assert_eq!(ways[0].0[..32], header(18 << 8, SIZE, 0, REPLY, 2, 9));
    assert!(ways[0] == ways[1]);
}

#[test]
fn traps_that_need_not_wait_wake_no_task() {
    let polls = [1, 20].map(|times| {
        let mut steps = vec![trap(-28, &[], Some(TASK.into()))];
        for _ in 0..times {
            let mut allocate = trap(-65, &[TASK.into(), DATA, 0x2000, 0], OK);
            allocate.store = 0x10_0000u64.to_le_bytes().to_vec();
            steps.push(allocate);
            steps.push(trap(-66, &[TASK.into(), 0x10_0000, 0x2000], OK));
            steps.push(trap(-72, &[TASK.into(), 1, DATA], OK));
            steps.push(trap(-61, &[0, 0, 0], OK));
        }
        let pair = Pair::new(vec![], steps);
        let polls = pair.run();
        assert_eq!(pair.left(CLIENT), 0);
        polls
    });
    assert_eq!(polls[0], polls[1]);
}

#[test]
fn a_result_for_a_page_that_is_not_in_memory_is_written_by_the_task() {
    // The page has not been touched.
    const FRESH: u64 = 0x10_0000;
    let allocate = |at| trap(-65, &[TASK.into(), at, 0x1000, 1], OK);
    let mut first = trap(-65, &[TASK.into(), DATA, 0x1000, 0], OK);
    first.store = FRESH.to_le_bytes().to_vec();
    let steps = vec![
        trap(-28, &[], Some(TASK.into())),
        first,
        allocate(FRESH + 8),
        trap(-72, &[TASK.into(), 1, FRESH + 16], OK),
        trap(-72, &[TASK.into(), 1, 0x10], error(KernError::InvalidAddress)),
    ];
    let pair = Pair::new(vec![], steps);
    pair.run();
    assert_eq!(pair.left(CLIENT), 0);
    let mut words = [0; 24];
    pair.world.machine.block_on(pair.tasks[CLIENT].map().copyin(FRESH, &mut words)).unwrap();
    let address = u64::from_le_bytes(words[8..16].try_into().unwrap());
    assert!(address >= BOUNDS.0 && address != FRESH, "{address:x}");
    assert_eq!(words[16], 4, "the name of the port");
}
