//! `mach` as a program: native Mach programs on the L4 machine. Its arguments are the command lines
//! of boot modules ([`native_mach::script`]), each after a word `--`. The system ends when the last
//! thread of a program has ended: with status 0, or 1 if an exception has ended a task.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod services;

use alloc::string::String;
use core::fmt::{self, Write};

use l4::kip;
use mach::ipc::Limits;
use mach::thread::PriorityRange;
use mach::vm::Vm;
use mach::{Host, KernError};
use mach_l4::{Configuration, L4Machine, SpaceLayout, StartError};
use native_mach::System;
use native_mach::script::{Line, Script, ScriptError};
use rt::root::{self, Console, End, Status};
use rt::start_page;
use services::L4Services;

// The worker's stack is large, since futures are built on it before they move to the heap.
l4::program!(run, kip = start_page::KIP, stack = 1 << 20);

// The heap that is used until root has given the server more memory.
rt::heap!(1 << 20, grow = grow_heap);

/// The address from which on boot modules are mapped: far from the frames and the heap.
const MODULE_ROOM: u64 = 0x0600_0000_0000;
/// How many bytes of addresses each boot module has.
const ROOM: u64 = 1 << 32;
/// Lowest address that programs may use.
const LOWEST: u64 = 0x1000;
/// The time slice of a thread in microseconds.
const TIME_SLICE: u32 = 10_000;
/// The exit status of a system in which an exception has ended a task.
const NOT_CLEAN: u8 = 1;
/// The exit status of a system that could not be started.
const FAILED: u8 = 125;

/// Why the system could not start.
#[derive(Debug)]
enum Failure {
    NoStartPage,
    Script(ScriptError),
    Module(String, Status),
    Machine(StartError),
    Kernel(KernError),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoStartPage => formatter.write_str("root has not written a start page"),
            Failure::Script(error) => write!(formatter, "arguments: {error}"),
            Failure::Module(name, status) => write!(formatter, "there is no boot module {name}: {status:?}"),
            Failure::Machine(error) => write!(formatter, "{error}"),
            Failure::Kernel(error) => write!(formatter, "{error}"),
        }
    }
}

impl From<KernError> for Failure {
    fn from(error: KernError) -> Failure {
        Failure::Kernel(error)
    }
}

/// Prints a line by one write, so that no other server's text comes in between.
fn say(line: fmt::Arguments<'_>) {
    // An error is ignored: there is no other place where it could be reported.
    let _ = Console.write_str(&alloc::format!("mach: {line}\n"));
}

fn run() -> ! {
    root::report_panics();
    let failure = match serve() {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    say(format_args!("{failure}"));
    end(FAILED)
}

/// Starts the system and serves it; returns only if the start fails.
fn serve() -> Result<core::convert::Infallible, Failure> {
    let (_, arguments) = start_page::read().ok_or(Failure::NoStartPage)?;
    let script = Script::parse(arguments).map_err(Failure::Script)?;
    let mut modules = alloc::vec::Vec::new();
    for (line, room) in script.lines.into_iter().zip((MODULE_ROOM..).step_by(ROOM as usize)) {
        let file = root::memory::module(&line.module, room);
        let file = file.map_err(|status| Failure::Module(line.module.clone(), status))?;
        modules.push((line, file));
    }
    let configuration = Configuration {
        workers: usize::MAX,
        processors: kip().processor_info().processors as usize,
        frames: None,
        heap: None,
        grow_heap,
        layout: SpaceLayout::default(),
    };
    let machine = L4Machine::start(&configuration).map_err(Failure::Machine)?;
    let vm = Vm::new(machine.clone())?;
    let host = Host::new(vm.clone(), PriorityRange::default(), TIME_SLICE);
    let system = System::new(host.clone(), Limits::default(), L4Services::new(machine.clone()))?;
    machine.spawn(0, vm.page_out_daemon())?;
    machine.spawn(0, host.scheduler())?;
    let SpaceLayout { kernel_interface, utcb_area, .. } = configuration.layout;
    machine.spawn(0, start(system, modules, (LOWEST, kernel_interface.min(utcb_area))))?;
    machine.serve(0, &mut |_bits| {})
}

/// Starts the tasks of all boot modules.
async fn start(
    system: alloc::sync::Arc<System<L4Machine, L4Services>>,
    modules: alloc::vec::Vec<(Line, &'static [u8])>,
    bounds: (u64, u64),
) {
    for (line, file) in modules {
        if let Err(error) = system.start(&line, file, bounds).await {
            say(format_args!("{} cannot be started: {error}", line.module));
            end(FAILED)
        }
    }
}

/// Powers the machine off. An emulator exits with this status.
fn end(status: u8) -> ! {
    let refused = root::end_system(End::PowerOff(status));
    say(format_args!("the system could not be ended: {refused:?}"));
    root::exit(status.into())
}
