//! `unix` as a program: the Unix server on the L4 machine. Root starts it with the root file system
//! as the boot module `image.cpio`; its arguments are those of [`unix_server::options`]. When the
//! command ends, so does the system.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod about;
mod bounce;
mod driver;
mod entropy;
mod environment;
mod port;
mod processor;
mod report;
mod shared_object;

use about::Moments;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;
use driver::L4Driver;
use entropy::Source;
use environment::L4Environment;
use l4::thread::system_clock;
use mach::vm::Vm;
use mach_l4::{Configuration, L4Machine};
use port::{Port, VirtualPorts};
use report::{Failure, say};
use rt::root::{self, End};
use rt::start_page;
use unix::Environment;
use unix::account::Capacity;
use unix::exec::Layout;
use unix::thread::Host;
use unix::tty::Terminal;
use unix_server::front_ends::Personalities;
use unix_server::options::Options;
use unix_server::start::{self, Command, Parts};
use unix_server::{Server, console as terminal_console};

// The worker's stack is large, since futures are built on it before they move to the heap.
l4::program!(run, kip = start_page::KIP, stack = 1 << 20);

// The heap that is used until root has given the server more memory.
rt::heap!(1 << 20, grow = grow_heap, borrowing = own_heap);

/// The address at which the archive is mapped: far from the frames and the heap.
const IMAGE_ROOM: u64 = 0x0600_0000_0000;
/// The name of the boot module that holds the root file system.
const IMAGE: &str = "image.cpio";
/// Lowest address that programs may use.
const LOWEST: u64 = 0x1_0000;
/// The server's heap begins with one part in `HEAP_PART` of the memory, and may borrow so many
/// thirds of the programs' memory. All files that file systems may have fit into that, and programs
/// keep the rest.
const HEAP_PART: u64 = 8;
const BORROWED_THIRDS: u64 = 2;
/// One part in so many of the heap is kept from large allocations. Where a request that may fail
/// begins, at least twice as much is free, because [`L4Driver`] refuses requests below that.
const KEPT_PART: u64 = 16;
/// Bytes of the server's heap that a thread of a program may need.
const HEAP_PER_THREAD: usize = 32 << 10;
/// How often the processor time of processes is compared with their limits, and the load average is
/// updated.
const TIME_CHECK: Duration = Duration::from_secs(1);
/// The largest status with which root ends the system.
const LARGEST_STATUS: u8 = 127;
/// The exit status of a system that could not be started.
const FAILED: u8 = 125;

fn run() -> ! {
    root::report_panics();
    let failure = match serve() {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    say(format_args!("unix: {failure}"));
    end(FAILED)
}

/// Starts the system and serves it; returns only if the start fails.
fn serve() -> Result<core::convert::Infallible, Failure> {
    let (_, arguments) = start_page::read().ok_or(Failure::NoStartPage)?;
    let options = Options::parse(arguments).map_err(|unknown| Failure::Argument(unknown.0))?;
    let begun = system_clock();
    // The drivers are opened first: the memory that this server shares with them counts against its
    // quota, of which the allocations below may leave nothing.
    let port = Port::open();
    let consoles = VirtualPorts::open();
    let source = Source::open();
    let console = system_clock();
    let archive = root::memory::module(IMAGE, IMAGE_ROOM).map_err(Failure::NoImage)?;
    let heap = root::memory::available().map_err(Failure::NoMemoryFromRoot)? / HEAP_PART;
    let configuration = Configuration {
        workers: options.workers.unwrap_or(usize::MAX),
        processors: about::processors(),
        frames: None,
        heap: Some(heap),
        grow_heap,
        layout: Default::default(),
    };
    let machine = L4Machine::start(&configuration).map_err(Failure::Machine)?;
    let own_heap = own_heap().ok_or(Failure::NoMemory)?;
    own_heap.keep((heap / KEPT_PART) as usize);
    let vm = Vm::new(machine.clone()).map_err(|_| Failure::NoMemory)?;
    let processor = processor::describe(about::processors(), machine.extended_state_size());
    let driver =
        L4Driver::new(machine.clone(), port.clone(), own_heap, &options).map_err(|_| Failure::NoMemory)?;
    // The lender must exist as long as the server, so it is leaked.
    let lender = Box::leak(Box::new(machine.lender()));
    let borrowed = machine.frame_bytes() / 3 * BORROWED_THIRDS;
    own_heap.borrow_from(lender, borrowed as usize);
    let server = Server::new(driver, Personalities::new(processor), options.trace);
    let layout = configuration.layout;
    let random = Arc::new(L4Environment::new(machine.clone(), options.time, source.is_none()));
    let environment: Arc<dyn Environment> = random.clone();
    let parts = Parts {
        vm: vm.clone(),
        environment: environment.clone(),
        archive: Arc::new(archive),
        layout: Layout { low: LOWEST, high: layout.kernel_interface.min(layout.utcb_area), randomise: true },
        capacity: Capacity { threads: heap as usize / HEAP_PER_THREAD, server_memory: heap + borrowed },
        screen: consoles.screen(),
        console: options.console.clone(),
    };
    if let Some(source) = source {
        let logging = server.clone();
        let seeding = source.seed(random, move |line| logging.log(line));
        server.driver().spawn_system_task(seeding).map_err(|_| Failure::NoMemory)?;
    }
    let moments = Moments { begun, console, files: console };
    let life = live(server, parts, options, (port.clone(), consoles.clone()), moments);
    let started = machine.spawn(0, async move {
        match life.await {
            Ok(status) => end(status),
            Err(error) => {
                say(format_args!("unix: cannot start: {error:?}"));
                end(FAILED)
            }
        }
    });
    started.map_err(|_| Failure::NoMemory)?;
    machine.serve(0, &mut |bits| {
        port.notified(bits);
        consoles.notified(bits);
    })
}

/// Runs the command on a new system. Returns its exit status.
async fn live(
    server: Arc<Server<L4Machine, L4Driver, Personalities<L4Machine>>>,
    parts: Parts<L4Machine>,
    options: Options,
    (port, consoles): (Arc<Port>, VirtualPorts),
    moments: Moments,
) -> unix::Result<u8> {
    let (vm, environment, archive) = (parts.vm.clone(), parts.environment.clone(), parts.archive.clone());
    let clock = environment.clone();
    let driver = server.driver();
    let started = start::system(&server, parts).await?;
    if options.greet {
        let files = u64::try_from(environment.monotonic().as_micros()).unwrap_or(u64::MAX);
        let free = u64::from(vm.statistics().free) << 12;
        let greeting = about::greeting(&Moments { files, ..moments }, (*archive).as_ref(), free);
        port.write(greeting.as_bytes()).await;
    }
    let connect = |terminal: Arc<Terminal>, port: Arc<Port>, commands: bool| {
        let (shown, shower, clock) = (terminal.clone(), port.clone(), clock.clone());
        driver.spawn_system_task(async move { terminal_console::show(shown, &*shower).await })?;
        driver.spawn_system_task(async move {
            terminal_console::listen(terminal, &*port, &*clock, commands).await
        })
    };
    connect(started.line.clone(), port.clone(), options.commands)?;
    if let Some(virtual_consoles) = &started.virtual_consoles {
        for (terminal, port) in virtual_consoles.terminals().iter().zip(consoles.ports()) {
            connect(terminal.clone(), port.clone(), false)?;
        }
        driver.spawn_system_task(consoles.clone().watch(virtual_consoles.clone()))?;
    }
    let system = started.system.clone();
    driver.spawn_system_task(async move {
        system.timers().drive(&*environment, system.processes()).await;
    })?;
    driver.spawn_system_task(vm.page_out_daemon())?;
    let (system, clock) = (started.system.clone(), started.system.environment().clone());
    driver.spawn_system_task(async move {
        loop {
            clock.sleep_until(clock.monotonic() + TIME_CHECK).await;
            system.check_periodically();
        }
    })?;
    let status = if options.command.is_empty() {
        start::run_init(&server, &started, options.environment).await;
        0
    } else {
        let command = Command { arguments: options.command, environment: options.environment };
        start::run_command(&server, &started, command).await?
    };
    // The error of a terminal that was hung up is ignored: it has no output to wait for.
    let _ = started.terminal.drain().await;
    port.drain().await;
    Ok(status)
}

/// Powers the machine off. An emulator exits with this status.
pub(crate) fn end(status: u8) -> ! {
    // The whole status is printed, because the emulator's exit status has too few bits for it.
    say(format_args!("guest: status {status}"));
    // The emulator's exit status cannot hold a larger number.
    let refused = root::end_system(End::PowerOff(status.min(LARGEST_STATUS)));
    say(format_args!("unix: the system could not be ended: {refused:?}"));
    root::exit(status.into())
}

/// Restarts the whole machine.
pub(crate) fn restart() -> ! {
    say(format_args!("unix: the machine starts anew"));
    let refused = root::end_system(End::Reboot);
    say(format_args!("unix: the machine could not be restarted: {refused:?}"));
    end(FAILED)
}
