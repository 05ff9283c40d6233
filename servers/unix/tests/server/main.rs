//! Tests of the server on the simulated machine. Scripts take the place of the instructions that
//! threads would execute.

mod other_front_end;

use linux::Processor;
use mach::machine::simulated::{Executor, Simulated, SimulatedThread};
use mach::machine::{Event, Machine, PageFault, ProcessorException, Protection, Resume, SystemCall};
use mach::vm::Vm;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Arguments;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use unix::account::Capacity;
use unix::exec::Layout;
use unix::front_end::FrontEnds;
use unix::process::Pid;
use unix::{BoxFuture, Environment, Timestamp};
use unix_server::console::Line;
use unix_server::front_ends::Personalities;
use unix_server::start::{self, Command, Parts, Root};
use unix_server::{Driver, Server};

/// A thread of the simulated machine, for which a script decides what it does.
struct Scripted<'a> {
    machine: &'a Simulated,
    thread: &'a SimulatedThread,
    number: usize,
}

/// What a scripted program does after it was resumed: it stops with this event, or computes until
/// it is recalled (`None`). A script decides by how often the thread has run before, and by how it
/// was resumed.
type Step = Option<Event>;

impl Scripted<'_> {
    fn call(&self, number: u64, arguments: &[u64]) -> Step {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Some(Event::SystemCall(SystemCall { number, arguments: all }))
    }

    /// Stores to memory as an instruction does. Returns false if that causes a page fault.
    fn store(&self, address: u64, bytes: &[u8]) -> bool {
        self.machine.user_write_in(self.thread.space(), address, bytes).is_some()
    }
}

/// Runs the programs of all threads of a machine by a script.
fn play(machine: &Simulated, script: impl Fn(&Scripted<'_>, usize, Resume) -> Step + Send + Sync + 'static) {
    let runs: Mutex<BTreeMap<usize, usize>> = Mutex::default();
    let on = machine.clone();
    machine.set_program(move |thread, resume| {
        let number = thread.number();
        let run = {
            let mut runs = runs.lock().unwrap();
            let runs = runs.entry(number).or_default();
            core::mem::replace(runs, *runs + 1)
        };
        script(&Scripted { machine: &on, thread, number }, run, resume)
    });
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The driver below the server under test.
struct TestDriver {
    tasks: Mutex<Vec<Task>>,
    shown: Mutex<Vec<u8>>,
    keyboard: Mutex<VecDeque<u8>>,
    log: Mutex<Vec<String>>,
}

impl Driver<Simulated> for TestDriver {
    type Task = ();

    fn identify(&self, _thread: &SimulatedThread, pid: Pid, tid: Pid) {
        assert_eq!(pid, tid, "no process of the tests has two threads");
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> unix::Result<()> {
        self.tasks.lock().unwrap().push(Box::pin(task));
        Ok(())
    }

    fn log(&self, line: Arguments<'_>) {
        self.log.lock().unwrap().push(line.to_string());
    }

    fn now(&self) -> core::time::Duration {
        core::time::Duration::ZERO
    }

    fn processors(&self) -> usize {
        1
    }
}

impl Line for TestDriver {
    async fn show(&self, bytes: &[u8]) {
        self.shown.lock().unwrap().extend_from_slice(bytes);
    }

    async fn typed(&self, buffer: &mut [u8]) -> usize {
        let taken = poll_fn(|_| match self.keyboard.lock().unwrap().pop_front() {
            Some(byte) => Poll::Ready(byte),
            None => Poll::Pending,
        });
        buffer[0] = taken.await;
        1
    }
}

struct TestEnvironment(Simulated);

impl Environment for TestEnvironment {
    fn realtime(&self) -> Timestamp {
        Timestamp::default()
    }
    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.now())
    }
    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0x5a);
    }
    fn stir(&self, _: &[u8]) {}
    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        let (machine, time) = (self.0.clone(), deadline.as_micros() as u64);
        Box::pin(async move { machine.sleep_until(time).await })
    }
}

const TEXT: u64 = 0x40_0000;
const DATA: u64 = 0x41_0000;

/// A static executable with a page of text and writable zeros at [`DATA`].
fn executable() -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for word in [TEXT, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 2, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for (flags, address, in_file, in_memory) in [(5u32, TEXT, 0x100u64, 0x100u64), (6, DATA, 0, 0x4000)] {
        file.extend(1u32.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for word in [0, address, address, in_file, in_memory, 0x1000] {
            file.extend(word.to_le_bytes());
        }
    }
    file.resize(0x100, 0xc3);
    file
}

/// A cpio archive with these executables, as (name, content).
fn archive(executables: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    let files = executables.iter().map(|(name, data)| (*name, 0o100755, &**data));
    for (name, mode, data) in files.chain([("TRAILER!!!", 0, &[][..])]) {
        let header: String = [0, mode, 0, 0, 1, 0, data.len(), 0, 0, 0, 0, name.len() + 1, 0]
            .iter()
            .map(|field| format!("{field:08x}"))
            .collect();
        archive.extend_from_slice(format!("070701{header}{name}\0").as_bytes());
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend_from_slice(data);
        archive.resize(archive.len().next_multiple_of(4), 0);
    }
    archive
}

/// The outcome of a command.
struct Run {
    status: u8,
    shown: String,
    log: Vec<String>,
}

/// Runs the script as the command `arguments`, and checks that only the first process is left.
fn run(
    arguments: &[&str],
    script: impl Fn(&Scripted<'_>, usize, Resume) -> Step + Send + Sync + 'static,
) -> Run {
    run_typing("", arguments, script)
}

/// Runs the script as a command, with `typed` as the input of the console.
fn run_typing(
    typed: &str,
    arguments: &[&str],
    script: impl Fn(&Scripted<'_>, usize, Resume) -> Step + Send + Sync + 'static,
) -> Run {
    run_system(Personalities::new(PROCESSOR), &[("bin/program", executable())], typed, arguments, script)
}

const PROCESSOR: Processor =
    Processor { features: 0, more_features: 0, extended_size: 832, shared_object: None };

/// Runs the script in a system with these front ends and executables.
fn run_system(
    front_ends: impl FrontEnds<Simulated>,
    executables: &[(&str, Vec<u8>)],
    typed: &str,
    arguments: &[&str],
    script: impl Fn(&Scripted<'_>, usize, Resume) -> Step + Send + Sync + 'static,
) -> Run {
    let machine = Simulated::new(4096);
    play(&machine, script);
    let driver = TestDriver {
        tasks: Mutex::default(),
        shown: Mutex::default(),
        keyboard: Mutex::new(typed.bytes().collect()),
        log: Mutex::default(),
    };
    let server = Server::new(driver, front_ends, false);
    let mut executor = Executor::new(machine.clone());
    let status = Rc::new(RefCell::new(None));
    let parts = Parts {
        vm: Vm::new(machine.clone()).unwrap(),
        environment: Arc::new(TestEnvironment(machine.clone())),
        root: Root::Archive(Arc::new(archive(executables))),
        disks: Vec::new(),
        file_systems: Vec::new(),
        layout: Layout { low: 0x10000, high: 0x7fff_f000_0000, randomise: true },
        capacity: Capacity { threads: 100, server_memory: 1 << 30 },
        screen: None,
        console: String::new(),
    };
    let command = Command {
        arguments: arguments.iter().map(|text| text.as_bytes().to_vec()).collect(),
        ..Command::default()
    };
    let environment = parts.environment.clone();
    let (main_server, main_status) = (server.clone(), status.clone());
    executor.spawn(async move {
        let started = start::system(&main_server, parts).await.unwrap();
        let shower = unix_server::console::show(started.terminal.clone(), main_server.driver());
        let listener = unix_server::console::listen(
            started.terminal.clone(),
            main_server.driver(),
            &*environment,
            false,
        );
        let shower = async {
            let (mut shower, mut listener) = (Box::pin(shower), Box::pin(listener));
            poll_fn(|cx| {
                let _ = shower.as_mut().poll(cx);
                listener.as_mut().poll(cx)
            })
            .await
        };
        let running = start::run_command(&main_server, &started, command, Default::default());
        let ended = futures_select(running, shower).await;
        started.terminal.drain().await.unwrap();
        *main_status.borrow_mut() = Some(ended.unwrap());
    });
    loop {
        for task in server.driver().tasks.lock().unwrap().drain(..) {
            executor.spawn(task);
        }
        let stuck = !executor.step() && server.driver().tasks.lock().unwrap().is_empty();
        if stuck && !machine.advance_to_next_timer() {
            break;
        }
    }
    let driver = server.driver();
    assert_eq!(machine.threads(), 1, "threads other than the first process's are left");
    let status = status.borrow_mut().take().expect("the command has not ended");
    let shown = String::from_utf8(driver.shown.lock().unwrap().clone()).unwrap();
    let log = driver.log.lock().unwrap().clone();
    Run { status, shown, log }
}

/// Runs `main` to its end. `other` is polled meanwhile, and afterwards until it makes no progress.
async fn futures_select<T>(main: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    let (mut main, mut other) = (Box::pin(main), Box::pin(other));
    let done = poll_fn(|cx| {
        let _ = other.as_mut().poll(cx);
        main.as_mut().poll(cx)
    })
    .await;
    poll_fn(|cx| {
        let _ = other.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
    done
}

const READ: u64 = 0;
const WRITE: u64 = 1;
const GETPID: u64 = 39;
const FORK: u64 = 57;
const WAIT: u64 = 61;
const KILL: u64 = 62;
const EXIT: u64 = 231;

fn fault(address: u64, access: Protection) -> Step {
    Some(Event::PageFault(PageFault { address, access, ip: TEXT }))
}

fn exception(vector: u64) -> Event {
    Event::Exception(ProcessorException { vector, error: 0, ip: TEXT })
}

#[test]
fn a_program_faults_writes_and_exits() {
    let run = run(&["program", "argument"], |thread, run, resume| match run {
        0 => {
            assert!(matches!(resume, Resume::Registers(state) if state.rip == TEXT));
            assert!(!thread.store(DATA, b"hello\n"));
            fault(DATA, Protection::WRITE)
        }
        1 => {
            assert_eq!(resume, Resume::Continue, "what faulted is tried again");
            assert!(thread.store(DATA, b"hello\n"));
            thread.call(WRITE, &[1, DATA, 6])
        }
        2 => {
            assert_eq!(resume, Resume::Return(6));
            thread.call(GETPID, &[])
        }
        _ => {
            assert_eq!(resume, Resume::Return(2));
            thread.call(EXIT, &[7])
        }
    });
    assert_eq!((run.status, &*run.shown), (7, "hello\r\n"));
}

#[test]
fn what_is_typed_arrives() {
    let run = run_typing("typed\n", &["program"], |thread, run, resume| match run {
        0 => thread.call(READ, &[0, DATA, 100]),
        1 => {
            assert_eq!(resume, Resume::Return(6));
            thread.call(WRITE, &[1, DATA, 6])
        }
        _ => thread.call(EXIT, &[0]),
    });
    assert!(run.shown.contains("typed\r\n"), "{:?}", run.shown);
}

#[test]
fn a_computing_child_is_recalled_and_killed() {
    let run = run(&["/bin/program"], |thread, run, resume| match (thread.number, run) {
        // Tasks 0 and 1 belong to the first process and to the command before it was loaded; task 2
        // is the command, 3 its child.
        (2, 0) => thread.call(FORK, &[]),
        (2, 1) => {
            assert_eq!(resume, Resume::Return(3));
            // The parent yields the processor, so that the child computes first.
            thread.call(24, &[])
        }
        (2, 2) => thread.call(KILL, &[3, 9]),
        (2, 3) => {
            assert_eq!(resume, Resume::Return(0));
            thread.call(WAIT, &[3, 0, 0, 0])
        }
        (2, 4) => {
            assert_eq!(resume, Resume::Return(3));
            thread.call(EXIT, &[0])
        }
        (3, 0) => {
            assert!(matches!(resume, Resume::Registers(state) if state.rax == 0));
            None
        }
        other => panic!("{other:?} {resume:?}"),
    });
    assert_eq!(run.status, 0);
}

#[test]
fn exceptions_are_signals_with_a_report() {
    for (event, signal, text) in [
        (exception(6), 4, "Illegal instruction"),
        (exception(0), 8, "Arithmetic exception"),
        (exception(13), 11, "Segmentation fault"),
        (exception(3), 5, "trap"),
        (fault(8, Protection::READ).unwrap(), 11, "Segmentation fault"),
        (fault(TEXT, Protection::WRITE).unwrap(), 11, "NotPermitted"),
        (exception(7), 9, "memory ran out"),
        (exception(2), 9, ""),
        (Event::Ended, 9, ""),
    ] {
        let run = run(&["program"], move |_, _, _| Some(event));
        assert_eq!(run.status, 128 + signal, "{event:?}");
        assert!(
            run.log.iter().any(|line| line.contains(text)) || text.is_empty(),
            "{event:?}: {:?}",
            run.log
        );
    }
}

#[test]
fn commands_that_do_not_run_say_why() {
    let missing = run(&["none"], |_, _, _| panic!("nothing runs"));
    assert_eq!((missing.status, &*missing.shown), (127, "cannot run 'none': ENOENT\r\n"));
    let directory = run(&["/bin"], |_, _, _| panic!("nothing runs"));
    assert_eq!(directory.status, 126);
}
