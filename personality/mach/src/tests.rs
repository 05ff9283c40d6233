//! Tests of whole systems on the simulated machine. A thread's program is a list of steps, each a
//! trap and a check of its result.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use mach::Host;
use mach::ipc::Limits;
use mach::machine::simulated::{Executor, Simulated, SimulatedThread};
use mach::machine::{Event, Resume, SystemCall};
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

/// A trap and the result that it must have; `None` for the result of a trap that does not return.
type Step = (i64, [u64; 6], Option<u64>);

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
        let system = System::new(host, Limits::default(), recorder.clone()).unwrap();
        let programs = Programs::default();
        let of_machine = programs.clone();
        machine.set_program(move |thread, resume| {
            let mut programs = of_machine.lock().unwrap();
            let steps = programs.get_mut(&thread.number())?;
            if let Resume::Return(result) = resume {
                let (number, arguments, expected) = steps.pop_front().unwrap();
                assert_eq!(Some(result), expected, "trap {number} with {arguments:x?}");
            }
            let &(number, arguments, _) = steps.front()?;
            Some(Event::SystemCall(SystemCall { number: number as u64, arguments }))
        });
        Self { machine, system, recorder, programs }
    }

    /// Runs a program of one thread until nothing can go on.
    fn run(&self, line: &str, steps: &[Step]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = Line::parse(words).unwrap();
        let program = file(&[[1, 6, 120, DATA, 4, 0x1000]], DATA, b"data");
        self.programs.lock().unwrap().insert(self.machine.threads(), steps.iter().copied().collect());
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
    (number, all, result)
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
