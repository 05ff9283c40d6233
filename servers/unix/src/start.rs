//! Starts a system up to its first program, and ends it.

use crate::front_ends;
use crate::options::STREAMS;
use crate::server::{Driver, Server};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::ready;
use mach::Machine;
use mach::vm::Vm;
use unix::account::Capacity;
use unix::descriptor::DescriptorTable;
use unix::devfs::{self, Terminals};
use unix::disk::{About, Cache, Disk, Disks, Store};
use unix::exec::{Arguments, Layout};
use unix::file::OpenFile;
use unix::front_end::FrontEnds;
use unix::initramfs::{self, UnpackError};
use unix::memory::ObjectProvider;
use unix::process::{ExitStatus, Pid, WaitFor, WaitOptions};
use unix::signal::{ChildEvent, Signal};
use unix::thread::{CloneRequest, ExecRequest, Executed, Host, System, Thread};
use unix::tmpfs::{Tmpfs, TmpfsOptions};
use unix::tty::{Ptys, Screen, Terminal, VirtualConsoles, WindowSize};
use unix::vfs::{At, Caller, DeviceNumber, FileSystemType, Mode, MountFlags, OpenFlags, Vfs, VnodeRef};
use unix::{Bytes, Environment, Error, Result};

/// A program that is to run, with its arguments and environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The name or path of the program, then its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// The environment variables of the program, as `NAME=VALUE`.
    pub environment: Vec<Vec<u8>>,
}

/// The files that a command has as its descriptors 0, 1 and 2, where these are not the console.
pub type Descriptors = [Option<Arc<OpenFile>>; STREAMS];

/// The parts that a Unix system is made of.
pub struct Parts<M: Machine> {
    /// The memory of programs.
    pub vm: Arc<Vm<M>>,
    /// The source of time and randomness.
    pub environment: Arc<dyn Environment>,
    /// Where the root file system is.
    pub root: Root,
    /// The disks, in the order of their names.
    pub disks: Vec<Opened<M>>,
    /// Types of file systems in addition to those that every system has.
    pub file_systems: Vec<(&'static str, Arc<dyn FileSystemType>)>,
    /// The range of addresses in which programs may have memory.
    pub layout: Layout,
    /// How many processes, threads and files the system can have.
    pub capacity: Capacity,
    /// The screen, if there is one: the number of its virtual consoles, their size, and the way to
    /// it.
    pub screen: Option<(u8, WindowSize, Arc<dyn Screen>)>,
    /// The name of the terminal that is /dev/console. If it is empty or that of no terminal, the
    /// serial line is.
    pub console: String,
}

/// Where the root file system is.
#[derive(Clone)]
pub enum Root {
    /// In memory. Its files come from a cpio archive.
    Archive(Arc<dyn AsRef<[u8]> + Send + Sync>),
    /// On the disk or partition with this name in /dev, or with `PARTUUID=` and the GUID of this
    /// partition. It lasts.
    Device(String),
}

/// A Unix system without processes, ready for the first one.
pub struct Started<M: Machine> {
    /// The Unix system.
    pub system: Arc<System<M>>,
    /// The first process. It runs no program, and waits for orphans in [`run_command`].
    pub init: Arc<Thread<M>>,
    /// The terminal of the console: the serial line or a virtual console.
    pub terminal: Arc<Terminal>,
    /// The terminal of the serial line.
    pub line: Arc<Terminal>,
    /// The virtual consoles, if there is a screen.
    pub virtual_consoles: Option<Arc<VirtualConsoles>>,
}

/// Adds the disks with their partitions, which are named after their families in this order.
///
/// # Errors
/// `ENOMEM`: memory is short.
async fn add_disks<M: Machine>(to: &Disks, vm: &Arc<Vm<M>>, disks: Vec<Opened<M>>) -> Result<()> {
    for (store, about) in disks {
        let cache = Cache::new(vm, store, &about)?;
        let before = to.all().iter().filter(|other| other.about.family == about.family).count();
        let (name, number) = about.family.name(before as u32);
        to.add(Disk::new(&name, number, about, cache)).await?;
    }
    Ok(())
}

/// A disk that was opened, and what it is.
type Opened<M> = (Arc<dyn Store<M>>, About);

/// One part in so many of the server's memory may be buffers of the network.
const NETWORK_PART: u64 = 8;
/// How many files the root file system may have in a machine with little memory.
const LEAST_FILES: u64 = 1 << 16;
/// The device number by which the console appears as a serial line.
const LINE: DeviceNumber = DeviceNumber { major: 4, minor: 64 };
/// Exit statuses, as in shells, of a command that does not exist, and of one that cannot be
/// executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// The directories in which a command without a slash is looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes the system: its file systems are mounted, and no program runs.
///
/// # Errors
/// The root file system cannot be made or mounted, or memory is short. Damage to the archive is
/// only logged.
pub async fn system<M: Machine, D: Driver<M>, F: FrontEnds<M>>(
    server: &Arc<Server<M, D, F>>,
    parts: Parts<M>,
) -> Result<Started<M>> {
    let Parts { vm, environment, root, disks, file_systems, layout, capacity, screen, console } = parts;
    let memory_pages = u64::from(vm.statistics().free);
    let memory = Arc::new(ObjectProvider(vm.clone()));
    let options = TmpfsOptions {
        kind: "rootfs",
        // Each file takes somewhat more than a KiB of the server's memory, so all together take
        // less than half of the memory that files can have.
        files: (memory_pages.saturating_mul(3) / 2).max(LEAST_FILES),
        mode: Mode::new(0o755),
        ..TmpfsOptions::for_memory(memory_pages)
    };
    let lasting = match root {
        Root::Archive(archive) => Err(archive),
        Root::Device(name) => Ok(name),
    };
    let bottom = match &lasting {
        Ok(_) => Tmpfs::new(&options, memory.clone(), environment.clone())?,
        Err(archive) => unpack(server, archive, &options, &memory, &environment).await?,
    };
    let vfs = Vfs::new(bottom, "rootfs", environment.clone());
    let network_bytes = capacity.server_memory / NETWORK_PART;
    vfs.network.limit_memory(usize::try_from(network_bytes).unwrap_or(usize::MAX));
    file_systems.into_iter().for_each(|(name, kind)| vfs.register_file_system(name, kind));
    add_disks(&vfs.disks, &vm, disks).await?;
    if let Ok(name) = &lasting
        && vfs.mount_root(name).await?
    {
        server.log(format_args!("the root file system on {name} can only be read"));
    }
    let system = System::new(vm, vfs.clone(), environment.clone(), layout, server.clone(), capacity);
    front_ends::register(&system);
    let host = system.session_host();
    let line = Terminal::new(LINE, host.clone());
    let ptys = Ptys::new(environment.clone(), host.clone(), Default::default());
    let virtual_consoles =
        screen.map(|(count, size, screen)| VirtualConsoles::new(count, size, &host, screen));
    let mut terminals = Terminals {
        console: None,
        lines: alloc::vec![line.clone()],
        virtual_consoles: virtual_consoles.clone(),
        ptys: ptys.clone(),
    };
    let terminal = terminals.find(&console).unwrap_or(&line).clone();
    if !console.is_empty() && terminal.name() != console {
        server.log(format_args!("there is no terminal {console}: the console is {}", terminal.name()));
    }
    terminals.console = Some(terminal.clone());
    let terminals = Arc::new(terminals);
    system.set_terminals(terminals.clone());
    let devices = devfs::make(&vfs, terminals, memory.clone(), memory_pages, front_ends::DEVICES).await?;

    let init = system.create_init(DescriptorTable::new()).await?;
    let context = init.context();
    let caller = context.caller();
    let in_memory = |mode: u16| {
        let options = TmpfsOptions { mode: Mode::new(mode), ..TmpfsOptions::for_memory(memory_pages) };
        Tmpfs::new(&options, memory.clone(), environment.clone())
    };
    let mut mounts: Vec<(&[u8], &str, VnodeRef)> = alloc::vec![
        (b"/dev", "devtmpfs", devices),
        (b"/dev/pts", "devpts", ptys.root()),
        (b"/dev/shm", "tmpfs", in_memory(0o1777)?),
        (b"/proc", "proc", vfs.make_file_system(b"proc", b"", b"").await?),
        (b"/sys", "sysfs", vfs.make_file_system(b"sysfs", b"", b"").await?),
    ];
    if lasting.is_ok() {
        // What programs keep there is of no use to those after the next start.
        mounts.push((b"/run", "tmpfs", in_memory(0o755)?));
        mounts.push((b"/tmp", "tmpfs", in_memory(0o1777)?));
    }
    for (path, source, root) in mounts {
        make_directory(&caller, path, Mode::new(0o755)).await?;
        caller.mount(path, root, source, MountFlags::empty()).await?;
    }
    make_directory(&caller, b"/tmp", Mode::new(0o1777)).await?;
    if lasting.is_ok() {
        make_directory(&caller, b"/run/lock", Mode::new(0o1777)).await?;
        system.load_seed().await;
    }
    Ok(Started { system, init, terminal, line, virtual_consoles })
}

/// The root directory of a file system in memory with the files of an archive.
async fn unpack<M: Machine, D: Driver<M>, F: FrontEnds<M>>(
    server: &Arc<Server<M, D, F>>,
    archive: &Arc<dyn AsRef<[u8]> + Send + Sync>,
    options: &TmpfsOptions,
    memory: &Arc<ObjectProvider<M>>,
    environment: &Arc<dyn Environment>,
) -> Result<VnodeRef> {
    let (root, unpacked) =
        initramfs::unpack(archive.clone(), options, memory.clone(), environment.clone()).await;
    match unpacked {
        Ok(()) => {}
        Err(UnpackError::Corrupt(damage)) => {
            server.log(format_args!("the root file system's archive is damaged: {damage:?}"));
        }
        Err(UnpackError::Failed(error)) => {
            server.log(format_args!("the root file system is not complete: {error:?}"));
        }
    }
    root.ok_or(Error::ENOMEM)
}

/// Mounts a file system, at a directory that is made if it does not exist.
///
/// # Errors
/// Those of mkdir(2) and mount(2).
pub async fn mount<M: Machine>(started: &Started<M>, mount: &crate::options::Mount) -> Result<()> {
    let context = started.init.context();
    let caller = context.caller();
    for (at, _) in mount.place.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/') {
        make_directory(&caller, &mount.place[..at], Mode::new(0o755)).await?;
    }
    make_directory(&caller, &mount.place, Mode::new(0o755)).await?;
    let root = caller.vfs.make_file_system(&mount.kind, &mount.source, b"").await?;
    let source = alloc::string::String::from_utf8_lossy(&mount.source);
    caller.mount(&mount.place, root, &source, MountFlags::empty()).await
}

/// Writes a file of the system's configuration, as the first process `init`, whose old content is
/// lost. Its directory is made if it does not exist.
///
/// # Errors
/// Those of open(2) and write(2).
pub async fn write_file<M: Machine>(
    init: &Thread<M>,
    directory: &[u8],
    name: &[u8],
    content: &[u8],
) -> Result<()> {
    let context = init.context();
    let caller = context.caller();
    make_directory(&caller, directory, Mode::new(0o755)).await?;
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let path = [directory, b"/", name].concat();
    let file = caller.open(&At::Current, &path, flags, Mode::new(0o644)).await?;
    let mut from = Bytes::of(content);
    while !from.left().is_empty() && file.write(&caller, &mut from).await? > 0 {}
    Ok(())
}

async fn make_directory(caller: &Caller<'_>, path: &[u8], mode: Mode) -> Result<()> {
    match caller.make_directory(&At::Current, path, mode).await {
        // If the directory is not there, and cannot be made, what it is for fails.
        Err(Error::EEXIST | Error::EROFS) => Ok(()),
        done => done,
    }
}

/// Runs `command` as a child of the first process, on the console, and waits for its end. Where
/// `descriptors` has a file, the command has it as the descriptor of that index. Returns its exit
/// status as a shell does: 128 and the number of the signal that killed it, if one did.
///
/// # Errors
/// There are not enough memory or threads.
pub async fn run_command<M: Machine, D: Driver<M>, F: FrontEnds<M>>(
    server: &Arc<Server<M, D, F>>,
    started: &Started<M>,
    mut command: Command,
    descriptors: Descriptors,
) -> Result<u8> {
    complete(&mut command);
    let request = CloneRequest { exit_signal: Some(Signal::CHLD), ..CloneRequest::default() };
    let thread = started.init.clone_thread(&request).await?.keep();
    let child = thread.pid();
    let (loader, loading, terminal) = (server.clone(), thread.clone(), started.terminal.clone());
    server.start(&thread, async move {
        let execution = Box::pin(execute(&loading, command, &terminal, descriptors));
        if let Some(Executed { thread, state }) = execution.await {
            loader.run(thread, state).await;
        }
    });
    let options = WaitOptions { ended: true, all_kinds: true, ..WaitOptions::default() };
    loop {
        match started.system.processes().wait_child(Pid::INIT, WaitFor::Any, options).await? {
            Some(report) if report.pid == child => return Ok(status_of(report.event)),
            _ => {}
        }
    }
}

/// Runs the init of the root file system as the first process. Returns when it has ended.
pub async fn run_init<M: Machine, D: Driver<M>, F: FrontEnds<M>>(
    server: &Arc<Server<M, D, F>>,
    started: &Started<M>,
    environment: Vec<Vec<u8>>,
) {
    let arguments = alloc::vec![b"/sbin/init".to_vec()];
    let mut command = Command { arguments, environment };
    complete(&mut command);
    let thread = started.init.clone();
    let descriptors = Descriptors::default();
    if let Some(Executed { thread, state }) = execute(&thread, command, &started.terminal, descriptors).await
    {
        server.clone().run(thread, state).await;
    }
}

/// Adds the environment variables that every program may rely on.
fn complete(command: &mut Command) {
    for (name, value) in [("PATH=", PATH), ("HOME=", "/root"), ("TERM=", "linux")] {
        if !command.environment.iter().any(|variable| variable.starts_with(name.as_bytes())) {
            command.environment.push([name.as_bytes(), value.as_bytes()].concat());
        }
    }
}

/// The exit status by which a shell would report this end of a child.
fn status_of(event: ChildEvent) -> u8 {
    match event {
        ChildEvent::Exited(status) => status,
        ChildEvent::Killed(signal) | ChildEvent::Dumped(signal) => 128 + signal.number(),
        ChildEvent::Stopped(_) | ChildEvent::Continued | ChildEvent::Traced { .. } => 0,
    }
}

/// Gives `thread`, of a process without a program, a session, a terminal and its program. `None`:
/// the command cannot be run, and the process has ended.
async fn execute<M: Machine>(
    thread: &Arc<Thread<M>>,
    command: Command,
    terminal: &Terminal,
    descriptors: Descriptors,
) -> Option<Executed<M>> {
    let done = async {
        prepare(thread, terminal, descriptors).await?;
        let request = find(thread, &command).await?;
        thread.exec(request, ready(())).await
    };
    match done.await {
        Ok(executed) => Some(executed),
        Err(error) => {
            complain(thread, &command, error).await;
            let status = if error == Error::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE };
            let pid = thread.pid();
            let status = ExitStatus::Exited(status);
            thread.system().processes().with(|table| table.begin_exit(pid, status));
            thread.exit(status, ready(())).await;
            None
        }
    }
}

/// Gives the process of `thread` a session of its own, with this terminal, which is also that of
/// the descriptors 0, 1 and 2 for which there is no other file. The first process gets no
/// controlling terminal: it exists for the sessions that it starts.
async fn prepare<M: Machine>(
    thread: &Arc<Thread<M>>,
    terminal: &Terminal,
    descriptors: Descriptors,
) -> Result<()> {
    let pid = thread.pid();
    let mut flags = OpenFlags::READ_WRITE;
    if pid == Pid::INIT {
        flags |= OpenFlags::NO_CONTROLLING_TERMINAL;
    } else {
        thread.system().processes().with(|table| table.set_session(pid))?;
    }
    let context = thread.context();
    let caller = context.caller();
    let path = format!("/dev/{}", terminal.name());
    let file = caller.open(&At::Current, path.as_bytes(), flags, Mode::new(0)).await?;
    for other in descriptors {
        thread.descriptors().insert(other.unwrap_or_else(|| file.clone()), false, STREAMS)?;
    }
    // If the home directory does not exist, the process stays in the root directory.
    let _ = caller.change_directory(&At::Current, b"/root", false).await;
    Ok(())
}

/// Finds the program of a command as a shell would.
async fn find<M: Machine>(thread: &Arc<Thread<M>>, command: &Command) -> Result<ExecRequest> {
    let name = command.arguments.first().ok_or(Error::ENOENT)?;
    let context = thread.context();
    let caller = context.caller();
    let mut path = name.clone();
    if !name.contains(&b'/') {
        let search = command.environment.iter().find_map(|variable| variable.strip_prefix(b"PATH="));
        let mut found = Err(Error::ENOENT);
        for directory in search.unwrap_or_default().split(|byte| *byte == b':') {
            path = [directory, b"/", name].concat();
            found = caller.find(&At::Current, &path, true).await.map(drop);
            if found.is_ok() {
                break;
            }
        }
        found?;
    }
    let strings = |list: &[Vec<u8>]| {
        let mut strings = Arguments::new();
        list.iter().try_for_each(|string| strings.push(string)).map(|()| strings)
    };
    Ok(ExecRequest {
        at: At::Current,
        path,
        follow: true,
        empty: false,
        arguments: strings(&command.arguments)?,
        environment: strings(&command.environment)?,
    })
}

/// Prints on its terminal why the command cannot be run.
async fn complain<M: Machine>(thread: &Arc<Thread<M>>, command: &Command, error: Error) {
    let name = command.arguments.first().map_or(&b""[..], |name| name);
    let line = [b"cannot run '", name, alloc::format!("': {error:?}\n").as_bytes()].concat();
    if let Ok(file) = thread.descriptors().get(2) {
        let context = thread.context();
        // An error of this write is ignored: there is no other place to report it.
        let _ = file.write(&context.caller(), &mut Bytes::of(&line)).await;
    }
}
