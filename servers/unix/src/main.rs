//! `unix` as a program: the Unix server on the L4 machine. Root starts it with the root file system
//! as the boot module `image.cpio`; its arguments are those of [`unix_server::options`]. When the
//! command ends, so does the system.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod about;
mod again;
mod bounce;
mod disk;
mod driver;
mod entropy;
mod environment;
mod hardware_clock;
mod host;
mod network;
mod network_task;
mod places;
mod port;
mod processor;
mod report;
mod shared_object;
mod shares;

use about::Moments;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use disk::Disk;
use driver::L4Driver;
use entropy::Source;
use environment::L4Environment;
use host::{HostStream, Streams};
use l4::thread::system_clock;
use mach::Machine;
use mach::vm::Vm;
use mach_l4::{Configuration, L4Machine};
use network::Card;
use network_task::NetworkTask;
use port::{Port, VirtualPorts};
use report::{Failure, say};
use rt::root::{self, End};
use rt::start_page;
use shares::{DiskFileServers, Shares};
use unix::Environment;
use unix::account::Capacity;
use unix::disk::About;
use unix::exec::Layout;
use unix::ext4::Ext4Type;
use unix::hardware_clock::set_system_time;
use unix::memory::ObjectProvider;
use unix::pipe::pipe;
use unix::thread::Host;
use unix::tty::Terminal;
use unix::v9fs::V9fsType;
use unix::vfs::{FileSystemType, OpenFlags};
use unix_server::front_ends::Personalities;
use unix_server::options::Options;
use unix_server::start::{self, Command, Descriptors, Parts, Root, Started};
use unix_server::streams::{Output, bring};
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
/// How often what files and disks have only in memory is written to where they are.
const WRITE_BACK: Duration = Duration::from_secs(5);
/// The largest status with which root ends the system.
const LARGEST_STATUS: u8 = 127;
/// The interface of the loopback, which every network has.
const LOOPBACK: inet::InterfaceIndex = inet::InterfaceIndex(1);
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
    let hardware_clock = hardware_clock::Clock::find();
    let shares = Shares::open();
    let disks = disk::reserve();
    let network_task = NetworkTask::open();
    // The interface is the task's, if there is one.
    let card = if network_task.is_none() { Card::open() } else { None };
    let streams = Streams::open(options.streams).map_err(Failure::NoStreams)?;
    let console = system_clock();
    let root = match &options.root {
        Some(name) => Root::Device(name.clone()),
        None => Root::Archive(Arc::new(root::memory::module(IMAGE, IMAGE_ROOM).map_err(Failure::NoImage)?)),
    };
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
    let processor = processor::describe(machine.extended_state_size());
    let driver =
        L4Driver::new(machine.clone(), port.clone(), own_heap, &options).map_err(|_| Failure::NoMemory)?;
    // The lender must exist as long as the server, so it is leaked.
    let lender = Box::leak(Box::new(machine.lender()));
    let borrowed = machine.frame_bytes() / 3 * BORROWED_THIRDS;
    own_heap.borrow_from(lender, borrowed as usize);
    let clock = driver.clock();
    let server = Server::new(driver, Personalities::new(processor), options.trace);
    let layout = configuration.layout;
    let random = Arc::new(L4Environment::new(machine.clone(), clock, hardware_clock, source.is_none()));
    let environment: Arc<dyn Environment> = random.clone();
    if let Err(error) = set_system_time(&*environment) {
        say(format_args!("unix: the hardware clock cannot be read: {error:?}"));
    }
    let disks: Vec<_> = disks.into_iter().filter_map(|index| disk::open(&machine, index)).collect();
    let spawner = machine.clone();
    vm.set_spawner(Arc::new(move |task| spawner.spawn(spawner.current_worker(), task).is_ok()));
    let parts = Parts {
        vm: vm.clone(),
        environment: environment.clone(),
        root,
        disks: Vec::new(),
        file_systems: Vec::new(),
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
    let told: Vec<_> = disks.iter().map(|(disk, _)| disk.clone()).collect();
    let (told_card, told_task) = (card.clone(), network_task.clone());
    let devices = Devices {
        port: port.clone(),
        card,
        network_task,
        consoles: consoles.clone(),
        streams: streams.clone(),
        shares: shares.clone(),
        disks,
    };
    let life = live(server, machine.clone(), parts, options, devices, moments);
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
        shares.notified(bits);
        told.iter().for_each(|disk| disk.notified(bits));
        told_card.iter().for_each(|card| card.notified(bits));
        told_task.iter().for_each(|task| task.notified(bits));
        streams.notified(bits);
    })
}

/// The Unix server on the L4 machine.
type UnixServer = Server<L4Machine, L4Driver, Personalities<L4Machine>>;

/// The drivers of devices that the system has.
struct Devices {
    port: Arc<Port>,
    card: Option<Arc<Card>>,
    network_task: Option<Arc<NetworkTask>>,
    consoles: VirtualPorts,
    streams: Streams,
    shares: Arc<Shares>,
    disks: Vec<(Arc<Disk>, About)>,
}

/// Runs the command on a new system. Returns its exit status.
async fn live(
    server: Arc<UnixServer>,
    machine: L4Machine,
    mut parts: Parts<L4Machine>,
    options: Options,
    devices: Devices,
    moments: Moments,
) -> unix::Result<u8> {
    let Devices { port, card, network_task, consoles, streams, shares, disks } = devices;
    let (vm, environment, root) = (parts.vm.clone(), parts.environment.clone(), parts.root.clone());
    let driver = server.driver();
    parts.file_systems = file_systems(&server, &parts, machine, &shares);
    let watching = environment.clone();
    driver.spawn_system_task(async move { shares.watch(&*watching).await })?;
    for (disk, about) in disks {
        let logging = server.clone();
        let clock = environment.clone();
        driver.spawn_system_task(disk.clone().look_after(clock, move |line| logging.log(line)))?;
        parts.disks.push((disk, about));
    }
    let started = match (start::system(&server, parts).await, &root) {
        (Err(error), Root::Device(name)) => {
            let text = format!("The root file system on {name} cannot be mounted: {error:?}\r\n");
            port.write(text.as_bytes()).await;
            port.drain().await;
            return Err(error);
        }
        (started, _) => started?,
    };
    for mount in &options.mounts {
        if let Err(error) = start::mount(&started, mount).await {
            let (source, place) =
                (String::from_utf8_lossy(&mount.source), String::from_utf8_lossy(&mount.place));
            server.log(format_args!("{source} cannot be mounted at {place}: {error:?}"));
        }
    }
    write_disks_back(&server, &started)?;
    if options.greet {
        let files = u64::try_from(environment.monotonic().as_micros()).unwrap_or(u64::MAX);
        let free = u64::from(vm.statistics().free) << 12;
        let kept = about::files(&root, started.system.vfs());
        let greeting = about::greeting(&Moments { files, ..moments }, &kept, free);
        port.write(greeting.as_bytes()).await;
    }
    connect_terminals(&server, &started, &port, &consoles, options.commands)?;
    let system = started.system.clone();
    driver.spawn_system_task(async move {
        system.timers().drive(&*environment, system.processes()).await;
    })?;
    let (system, clock) = (started.system.clone(), started.system.environment().clone());
    driver.spawn_system_task(async move {
        loop {
            clock.sleep_until(clock.monotonic() + WRITE_BACK).await;
            // A server that refuses pages is asked again the next time.
            let _ = system.vfs().synchronize().await;
        }
    })?;
    driver.spawn_system_task(vm.page_out_daemon())?;
    if let Some(card) = card {
        connect_network(&server, &started, card)?;
    }
    let network = started.system.vfs().network.clone();
    match network_task {
        Some(task) => connect_network_task(&server, &started, task)?,
        None => {
            // Not every system has an init that does it, and programs expect 127.0.0.1.
            network.with(|stack| stack.set_up(LOOPBACK, true))?;
            driver.spawn_system_task(async move { network.drive().await })?;
        }
    }
    let (system, clock) = (started.system.clone(), started.system.environment().clone());
    driver.spawn_system_task(async move {
        let mut next_check = clock.monotonic() + TIME_CHECK;
        loop {
            let next_sharing = clock.monotonic() + system.share_processors();
            clock.sleep_until(next_sharing.min(next_check)).await;
            if clock.monotonic() >= next_check {
                system.check_periodically();
                next_check = clock.monotonic() + TIME_CHECK;
            }
        }
    })?;
    let status = if options.command.is_empty() {
        start::run_init(&server, &started, options.environment).await;
        0
    } else {
        let command = Command { arguments: options.command, environment: options.environment };
        let (descriptors, outputs) = connect(&server, &started, &streams)?;
        let (clock, logging) = (started.system.environment().clone(), server.clone());
        driver.spawn_system_task(streams.look_after(clock, move |line| logging.log(line)))?;
        let status = start::run_command(&server, &started, command, descriptors).await?;
        for output in outputs {
            output.finish().await;
        }
        status
    };
    started.system.end_storage().await;
    // The error of a terminal that was hung up is ignored: it has no output to wait for.
    let _ = started.terminal.drain().await;
    port.drain().await;
    Ok(status)
}

/// Starts the tasks that connect the terminals of the serial line and of the virtual consoles with
/// their drivers. With `commands`, the serial line carries commands, too.
fn connect_terminals(
    server: &Arc<UnixServer>,
    started: &Started<L4Machine>,
    port: &Arc<Port>,
    consoles: &VirtualPorts,
    commands: bool,
) -> unix::Result<()> {
    let driver = server.driver();
    let environment = started.system.environment();
    let connect = |terminal: &Arc<Terminal>, port: &Arc<Port>, commands: bool| {
        let (shown, shower) = (terminal.clone(), port.clone());
        driver.spawn_system_task(async move { terminal_console::show(shown, &*shower).await })?;
        let (terminal, port, clock) = (terminal.clone(), port.clone(), environment.clone());
        let (looked_after, logging) = (port.clone(), server.clone());
        driver.spawn_system_task(looked_after.look_after(clock.clone(), move |line| logging.log(line)))?;
        driver.spawn_system_task(async move {
            terminal_console::listen(terminal, &*port, &*clock, commands).await
        })
    };
    connect(&started.line, port, commands)?;
    let Some(virtual_consoles) = &started.virtual_consoles else { return Ok(()) };
    for (terminal, port) in virtual_consoles.terminals().iter().zip(consoles.ports()) {
        connect(terminal, port, false)?;
    }
    driver.spawn_system_task(consoles.clone().watch(virtual_consoles.clone()))
}

/// The types of file systems whose files servers have.
fn file_systems(
    server: &Arc<UnixServer>,
    parts: &Parts<L4Machine>,
    machine: L4Machine,
    shares: &Arc<Shares>,
) -> Vec<(&'static str, Arc<dyn FileSystemType>)> {
    let memory = Arc::new(ObjectProvider(parts.vm.clone()));
    let environment = parts.environment.clone();
    let of_host =
        V9fsType { servers: shares.clone(), memory: memory.clone(), environment: environment.clone() };
    let logging = server.clone();
    let log = move |line: core::fmt::Arguments<'_>| logging.log(line);
    let servers =
        Arc::new(DiskFileServers { shares: shares.clone(), machine, clock: environment.clone(), log });
    let of_disks = Ext4Type { servers, memory, environment };
    vec![("9p", Arc::new(of_host)), ("ext4", Arc::new(of_disks))]
}

/// Starts the tasks that connect the network with the driver of its interface, and that configure
/// the interface. Does not wait for the network's servers.
fn connect_network(
    server: &Arc<UnixServer>,
    started: &Started<L4Machine>,
    card: Arc<Card>,
) -> unix::Result<()> {
    let (driver, system) = (server.driver(), &started.system);
    let (network, clock) = (system.vfs().network.clone(), system.environment().clone());
    let index = match card.attach(&network) {
        Ok(index) => index,
        Err(error) => {
            server.log(format_args!("the network interface cannot be used: {error:?}"));
            return Ok(());
        }
    };
    driver.spawn_system_task(card.clone().receive(network.clone(), index))?;
    driver.spawn_system_task(card.clone().send(network.clone(), index))?;
    let logging = server.clone();
    driver.spawn_system_task(card.look_after(clock, move |line| logging.log(line)))?;
    let (system, init, logging) = (system.clone(), started.init.clone(), server.clone());
    driver.spawn_system_task(network::configure(system, init, index, move |line| logging.log(line)))
}

/// Connects the network with the server that has its stack, and starts the tasks that look after
/// it. A server that cannot be used leaves the system without a network.
fn connect_network_task(
    server: &Arc<UnixServer>,
    started: &Started<L4Machine>,
    task: Arc<NetworkTask>,
) -> unix::Result<()> {
    let (system, driver) = (&started.system, server.driver());
    let network = system.vfs().network.clone();
    network.move_out();
    // One that has ended meanwhile is found to have ended.
    if let Err(status) = task.attach(&network, &**system.environment()) {
        server.log(format_args!("the server {} refuses: {status:?}", network_server::NAME));
    }
    driver.spawn_system_task(task.clone().listen(network.clone()))?;
    let logging = server.clone();
    driver.spawn_system_task(task.look_after(system.clone(), move |line| logging.log(line)))?;
    let Some(index) = network_task::interface(&network) else { return Ok(()) };
    let (system, init, logging) = (system.clone(), started.init.clone(), server.clone());
    driver.spawn_system_task(network::configure(system, init, index, move |line| logging.log(line)))
}

/// Starts the task that writes back what programs have written to disks.
fn write_disks_back(server: &Arc<UnixServer>, started: &Started<L4Machine>) -> unix::Result<()> {
    if started.system.vfs().disks.all().is_empty() {
        return Ok(());
    }
    let system = started.system.clone();
    server.driver().spawn_system_task(async move {
        let clock = system.environment().clone();
        loop {
            clock.sleep_until(clock.monotonic() + WRITE_BACK).await;
            system.vfs().disks.write_back().await;
        }
    })
}

/// Makes the pipes of the command's descriptors that are streams, and starts the tasks that pass
/// their bytes. Returns the command's ends of the pipes, and the streams of its output.
fn connect(
    server: &Arc<UnixServer>,
    started: &Started<L4Machine>,
    streams: &Streams,
) -> unix::Result<(Descriptors, Vec<Arc<Output<HostStream>>>)> {
    let (mut descriptors, mut outputs) = (Descriptors::default(), Vec::new());
    let context = started.init.context();
    for (number, stream) in streams.0.iter().enumerate() {
        let Some(stream) = stream.clone() else { continue };
        let (read, write) = pipe(&context.caller(), OpenFlags::empty())?;
        if number == 0 {
            descriptors[number] = Some(read);
            server.driver().spawn_system_task(async move { bring(stream, write).await })?;
        } else {
            descriptors[number] = Some(write);
            let output = Output::new(stream, &read);
            server.driver().spawn_system_task(output.clone().pass(read))?;
            outputs.push(output);
        }
    }
    Ok((descriptors, outputs))
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
