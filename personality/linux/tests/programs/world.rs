//! A system on the simulated machine whose programs are Rust functions: they make system calls,
//! touch memory, fork, exec and handle signals as compiled programs do, but their instructions are
//! not executed.
//!
//! Each function has an address of code ([`World::code`]). A thread runs the function at its
//! instruction pointer: at its start, after exec, and when a signal handler is entered.

use linux::{Kept, Linux, Processor};
use mach::machine::simulated::{EXTENDED_SIZE, Executor, Simulated};
use mach::machine::{Machine, PageFault, Protection, Resume, SystemCall, ThreadState};
use mach::thread::ExceptionState;
use mach::vm::Vm;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Arguments as Text;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use unix::account::Capacity;
use unix::descriptor::DescriptorTable;
use unix::devfs::Terminals;
use unix::exec::{Arguments, Layout};
use unix::file::{DeviceDriver, FileObject};
use unix::front_end::{FrontEnd, FrontEndNumber, Next, Programs};
use unix::hardware_clock::{CalendarTime, HardwareClock};
use unix::memory::ObjectProvider;
use unix::signal::Fault;
use unix::sync::SpinLock;
use unix::thread::{ExecRequest, Host, Shortage, System, Thread};
use unix::tmpfs::{Tmpfs, TmpfsOptions};
use unix::tty::{Screen, Terminal, TerminalFile, VirtualConsoles, WindowSize};
use unix::vfs::{At, DeviceNumber, FileType, Mode, MountFlags, OpenContext, OpenFlags, Vfs};
use unix::{BoxFuture, Bytes, Environment, Seeding, Timestamp};

/// Why a program's function has to stop.
#[derive(Debug)]
pub(crate) enum Gone {
    /// The thread has ended.
    Ended,
    /// The process has executed another program.
    Replaced,
}

pub(crate) type Steps<'a> = Pin<Box<dyn Future<Output = Result<(), Gone>> + 'a>>;
pub(crate) type Code = Rc<dyn for<'a> Fn(&'a mut Program) -> Steps<'a>>;

/// The time and randomness of the simulated machine, with what the clock of the day was set
/// forward, in seconds.
struct MachineEnvironment(Simulated, Arc<Seeding>, AtomicI64, StandingClock);

/// A hardware clock that stands still.
struct StandingClock(SpinLock<CalendarTime>);

impl HardwareClock for StandingClock {
    fn read(&self) -> unix::Result<CalendarTime> {
        Ok(*self.0.lock())
    }
    fn set(&self, time: &CalendarTime) -> unix::Result<()> {
        *self.0.lock() = *time;
        Ok(())
    }
}

impl Environment for MachineEnvironment {
    fn realtime(&self) -> Timestamp {
        let now = self.0.now();
        let seconds = 1_000_000_000 + (now / 1_000_000) as i64 + self.2.load(Ordering::Relaxed);
        Timestamp { seconds, nanoseconds: (now % 1_000_000) as u32 * 1000 }
    }
    fn set_realtime(&self, time: Timestamp) -> unix::Result<()> {
        self.2.fetch_add(time.seconds - self.realtime().seconds, Ordering::Relaxed);
        Ok(())
    }
    fn hardware_clock(&self) -> Option<&dyn HardwareClock> {
        Some(&self.3)
    }
    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.now())
    }
    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0x5a);
    }
    fn stir(&self, _: &[u8]) {}
    fn seeding(&self) -> Option<&Seeding> {
        Some(&self.1)
    }
    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        let machine = self.0.clone();
        let time = u64::try_from(deadline.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        Box::pin(async move { machine.sleep_until(time).await })
    }
}

/// The driver that opens a terminal.
struct TerminalDriver(Arc<Terminal>);

impl DeviceDriver for TerminalDriver {
    fn open(&self, context: &OpenContext<'_>) -> unix::Result<Arc<dyn FileObject>> {
        let file: Arc<dyn FileObject> = TerminalFile::open(&self.0, context.process, None, context.flags)?;
        Ok(file)
    }
}

/// The call that a program makes with these registers.
fn call_of(state: &ThreadState) -> SystemCall {
    let arguments = [state.rdi, state.rsi, state.rdx, state.r10, state.r8, state.r9];
    SystemCall { number: state.rax, arguments }
}

type Starts = Mutex<Vec<(Arc<Thread<Simulated>>, Box<ThreadState>)>>;

/// Collects threads that have to be started, and the lines of the log.
struct TestHost {
    linux: Arc<Linux<Simulated>>,
    starts: Starts,
    log: Mutex<Vec<String>>,
    shortage: Mutex<Option<Shortage>>,
}

impl Host<Simulated> for TestHost {
    fn start_thread(&self, thread: Arc<Thread<Simulated>>, state: Box<ThreadState>) {
        self.starts.lock().unwrap().push((thread, state));
    }

    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)> {
        let linux: &dyn Programs = &*self.linux;
        linux.format().recognises(start).then_some((FrontEndNumber::default(), linux))
    }

    fn shortage(&self) -> Shortage {
        self.shortage.lock().unwrap().unwrap_or(Shortage::None)
    }

    fn log(&self, line: Text<'_>) {
        self.log.lock().unwrap().push(line.to_string());
    }
}

/// The system, and the code of its programs.
pub(crate) struct World {
    machine: Simulated,
    host: Arc<TestHost>,
    pub(crate) system: Arc<System<Simulated>>,
    pub(crate) linux: Arc<Linux<Simulated>>,
    code: RefCell<BTreeMap<u64, Code>>,
    next_address: Cell<u64>,
    init: RefCell<Option<Arc<Thread<Simulated>>>>,
}

pub(crate) const TEXT: u64 = 0x40_0000;
pub(crate) const DATA: u64 = 0x41_0000;

/// An ELF file with two segments, text and data, and this entry point.
pub(crate) fn elf(entry: u64) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(2u16.to_le_bytes());
    file.extend(62u16.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(entry.to_le_bytes());
    file.extend(64u64.to_le_bytes());
    file.extend([0; 12]);
    for half in [64u16, 56, 2, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut segment = |flags: u32, offset: u64, address: u64, size: u64, memory: u64| {
        file.extend(1u32.to_le_bytes());
        file.extend(flags.to_le_bytes());
        [offset, address, address, size, memory, 0x1000]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
    };
    segment(5, 0, TEXT, 0x1000, 0x1000);
    segment(6, 0x1000, DATA, 0x20, 0x8000);
    file.resize(0x1000, 0xc3);
    file.extend(b"initialised data here, then bss.");
    file
}

impl World {
    pub(crate) fn new() -> Rc<World> {
        World::with_frames(4096)
    }

    pub(crate) fn with_frames(frames: u32) -> Rc<World> {
        let seeding = Arc::new(Seeding::default());
        seeding.finish();
        World::with_seeding(frames, seeding)
    }

    /// A world whose random source is seeded when `seeding` has finished.
    pub(crate) fn with_seeding(frames: u32, seeding: Arc<Seeding>) -> Rc<World> {
        let machine = Simulated::new(frames);
        let vm = Vm::new(machine.clone()).unwrap();
        let noon = CalendarTime { year: 2001, month: 9, day: 9, hour: 12, minute: 0, second: 0 };
        let environment: Arc<dyn Environment> = Arc::new(MachineEnvironment(
            machine.clone(),
            seeding,
            AtomicI64::new(0),
            StandingClock(SpinLock::new(noon)),
        ));
        let memory = Arc::new(ObjectProvider(vm.clone()));
        let options = TmpfsOptions { mode: Mode::new(0o755), ..TmpfsOptions::for_memory(u64::from(frames)) };
        let root = Tmpfs::new(&options, memory, environment.clone()).unwrap();
        let vfs = Vfs::new(root, "root", environment.clone());
        unix::testing::place(&vfs.network, environment.clone());
        let linux = Arc::new(Linux::new(Processor {
            features: 0,
            more_features: 2,
            extended_size: EXTENDED_SIZE,
            shared_object: None,
        }));
        let host = Arc::new(TestHost {
            linux: linux.clone(),
            starts: Starts::default(),
            log: Mutex::default(),
            shortage: Mutex::default(),
        });
        let capacity = Capacity { threads: 5000, server_memory: 1 << 30 };
        let layout = Layout { low: 0x10000, high: 0x7fff_f000_0000, randomise: true };
        let system = System::new(vm, vfs, environment, layout, host.clone(), capacity);
        linux::register(&system);
        Rc::new(World {
            machine,
            host,
            system,
            linux,
            code: RefCell::default(),
            next_address: Cell::new(TEXT),
            init: RefCell::default(),
        })
    }

    /// Gives the function `code` an address, at which programs can execute it.
    pub(crate) fn code(&self, code: impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static) -> u64 {
        let address = self.next_address.get() + 16;
        self.next_address.set(address);
        self.code.borrow_mut().insert(address, Rc::new(code));
        address
    }

    /// The futures of a call and of a return of a thread, which are not run.
    pub(crate) fn requests(
        &self,
    ) -> (impl Future<Output = Next<Simulated>> + Send, impl Future<Output = Next<Simulated>> + Send) {
        let thread = self.machine.block_on(self.init());
        let (first, second) = (thread.clone(), thread);
        let linux = || {
            Linux::<Simulated>::new(Processor {
                features: 0,
                more_features: 0,
                extended_size: 512,
                shared_object: None,
            })
        };
        let (a, b) = (linux(), linux());
        let request = call_of(&ThreadState::default());
        (async move { a.serve_call(&first, &a.begin(&first), request).await }, async move {
            b.return_to_user(&second, &b.begin(&second), Resume::Continue).await
        })
    }

    /// Sets how short of memory the server itself is.
    pub(crate) fn set_shortage(&self, shortage: Shortage) {
        *self.host.shortage.lock().unwrap() = Some(shortage);
    }

    /// How many frames are free.
    pub(crate) fn free_frames(&self) -> u32 {
        self.system.vm().statistics().free
    }

    pub(crate) fn now(&self) -> u64 {
        self.machine.now()
    }

    /// How often the other processors were interrupted for barriers.
    pub(crate) fn synchronizations(&self) -> u64 {
        self.machine.counters().synchronizations
    }

    pub(crate) fn machine_threads(&self) -> usize {
        self.machine.threads()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.host.log.lock().unwrap().clone()
    }

    async fn init(&self) -> Arc<Thread<Simulated>> {
        if self.init.borrow().is_none() {
            let thread = self.system.create_init(DescriptorTable::new()).await.unwrap();
            *self.init.borrow_mut() = Some(thread);
        }
        self.init.borrow().clone().unwrap()
    }

    /// Puts a file into the file system.
    pub(crate) fn install(&self, path: &str, mode: u16, contents: &[u8]) {
        self.machine.block_on(async {
            let init = self.init().await;
            let context = init.context();
            let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
            let file =
                context.caller().open(&At::Current, path.as_bytes(), flags, Mode::new(mode)).await.unwrap();
            let count = file.write(&context.caller(), &mut Bytes::of(contents)).await.unwrap();
            assert_eq!(count, contents.len());
        });
    }

    /// Puts a file of this size, which contains zeros, into the file system.
    pub(crate) fn install_sparse(&self, path: &str, mode: u16, size: u64) {
        self.install(path, mode, b"");
        self.machine.block_on(async {
            let context = self.init().await.context();
            context.caller().truncate(&At::Current, path.as_bytes(), size).await.unwrap();
        });
    }

    /// Makes a directory unless it exists.
    pub(crate) fn make_directory(&self, path: &str, mode: u16) {
        self.machine.block_on(async {
            let context = self.init().await.context();
            match context.caller().make_directory(&At::Current, path.as_bytes(), Mode::new(mode)).await {
                Ok(()) | Err(unix::Error::EEXIST) => {}
                Err(error) => panic!("{path}: {error:?}"),
            }
        });
    }

    /// Makes the file system of /dev and mounts it.
    pub(crate) fn install_devices(&self) {
        self.install_terminals(None);
    }

    /// Makes three virtual consoles on this screen, of which the first is the console, and mounts
    /// /dev.
    pub(crate) fn install_consoles(&self, screen: Arc<dyn Screen>) -> Arc<VirtualConsoles> {
        let size = WindowSize { columns: 80, rows: 25, ..WindowSize::default() };
        let consoles = VirtualConsoles::new(3, size, &self.system.session_host(), screen);
        self.install_terminals(Some(consoles.clone()));
        consoles
    }

    fn install_terminals(&self, virtual_consoles: Option<Arc<VirtualConsoles>>) {
        self.make_directory("/dev", 0o755);
        self.machine.block_on(async {
            let context = self.init().await.context();
            let memory = Arc::new(ObjectProvider(self.system.vm().clone()));
            let environment = self.system.environment().clone();
            let ptys = unix::tty::Ptys::new(environment, self.system.session_host(), Default::default());
            let console = virtual_consoles.as_ref().map(|consoles| consoles.terminals()[0].clone());
            let terminals = Terminals { console, virtual_consoles, ..Terminals::of(ptys) };
            let terminals = Arc::new(terminals);
            self.system.set_terminals(terminals.clone());
            let root =
                unix::devfs::make(self.system.vfs(), terminals, memory, 1024, linux::DEVICES).await.unwrap();
            context.caller().mount(b"/dev", root, "dev", MountFlags::empty()).await.unwrap();
        });
    }

    /// Runs `main` as the first process, and all processes that it makes, until none can go on.
    pub(crate) fn run(self: &Rc<Self>, main: impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static) {
        let entry = self.code(main);
        self.install("/init", 0o755, &elf(entry));
        let mut executor = Executor::new(self.machine.clone());
        let world = self.clone();
        executor.spawn(async move {
            let init = world.init().await;
            let mut arguments = Arguments::new();
            arguments.push(b"init").unwrap();
            let request = ExecRequest {
                at: At::Current,
                path: b"/init".to_vec(),
                follow: true,
                empty: false,
                arguments,
                environment: Arguments::new(),
            };
            let executed = init.exec(request, std::future::ready(())).await.unwrap();
            drop(init);
            world.init.borrow_mut().replace(executed.thread.clone());
            world.run_thread(executed.thread, executed.state).await;
        });
        let world = self.clone();
        executor.spawn(async move {
            let system = world.system.clone();
            system.timers().drive(&**system.environment(), system.processes()).await;
        });
        loop {
            for (thread, state) in self.host.starts.lock().unwrap().drain(..) {
                let world = self.clone();
                executor.spawn(async move { world.run_thread(thread, state).await });
            }
            let started = !self.host.starts.lock().unwrap().is_empty();
            if !executor.step() && !started && !self.machine.advance_to_next_timer() {
                break;
            }
        }
        self.init.borrow_mut().take();
    }

    /// Makes a terminal, which programs open as /tty.
    pub(crate) fn install_terminal(&self) -> Arc<Terminal> {
        let number = DeviceNumber { major: 4, minor: 64 };
        let terminal = Terminal::new(number, self.system.session_host());
        self.system.vfs().register_device(false, number, Arc::new(TerminalDriver(terminal.clone())));
        self.machine.block_on(async {
            let context = self.init().await.context();
            let (caller, mode) = (context.caller(), Mode::new(0o666));
            caller.make_node(&At::Current, b"/tty", FileType::CharacterDevice, mode, number).await.unwrap();
        });
        terminal
    }

    /// Mounts procfs at /proc.
    pub(crate) fn install_proc(&self) {
        self.machine.block_on(async {
            let context = self.init().await.context();
            let caller = context.caller();
            let root = self.system.vfs().make_file_system(b"proc", b"", b"").await.unwrap();
            caller.make_directory(&At::Current, b"/proc", Mode::new(0o555)).await.unwrap();
            caller.mount(b"/proc", root, "proc", MountFlags::empty()).await.unwrap();
        });
    }

    async fn run_thread(self: Rc<Self>, thread: Arc<Thread<Simulated>>, state: Box<ThreadState>) {
        let kept = Arc::new(self.linux.begin(&thread));
        let mut program = Program { world: self.clone(), thread, kept, state: *state };
        let next = self.linux.return_to_user(&program.thread, &program.kept, Resume::Registers(state)).await;
        let mut result = program.accept(next);
        loop {
            match result {
                Err(Gone::Ended) => return,
                Err(Gone::Replaced) => {
                    let registers = Resume::Registers(Box::new(program.state));
                    let next = self.linux.return_to_user(&program.thread, &program.kept, registers).await;
                    result = program.accept(next);
                    continue;
                }
                Ok(()) => {}
            }
            let code = self.code.borrow().get(&program.state.rip).cloned();
            let Some(code) = code else {
                result = program.run_nothing().await;
                continue;
            };
            result = code(&mut program).await;
            assert!(result.is_err(), "a program fell off its end");
        }
    }
}

/// A thread, as its program sees it.
pub(crate) struct Program {
    pub(crate) world: Rc<World>,
    pub(crate) thread: Arc<Thread<Simulated>>,
    pub(crate) kept: Arc<Kept<Simulated>>,
    pub(crate) state: ThreadState,
}

impl Program {
    fn accept(&mut self, next: Next<Simulated>) -> Result<(), Gone> {
        match next {
            Next::Resume(Resume::Return(value)) => self.state.rax = value,
            // With what the server has left in the machine, where the registers were shown.
            Next::Resume(Resume::Continue | Resume::Reply(_)) => {
                self.state = self.thread.registers().unwrap_or(self.state);
            }
            Next::Resume(Resume::Registers(state)) => self.state = *state,
            Next::Executed(thread, state) => {
                self.kept = Arc::new(self.world.linux.begin(&thread));
                self.thread = thread;
                self.state = *state;
                return Err(Gone::Replaced);
            }
            Next::Ended => return Err(Gone::Ended),
        }
        Ok(())
    }

    /// Runs signal handlers until the program is at `expected` again. True if the call there has to
    /// be made again.
    fn run_handlers(&mut self, expected: u64) -> Pin<Box<dyn Future<Output = Result<bool, Gone>> + '_>> {
        Box::pin(async move {
            loop {
                match self.state.rip {
                    rip if rip == expected => return Ok(false),
                    rip if rip == expected - 2 => return Ok(true),
                    rip => {
                        let code = self.world.code.borrow().get(&rip).cloned();
                        let Some(code) = code else {
                            self.run_nothing().await?;
                            continue;
                        };
                        code(self).await?;
                        // The handler's return instruction takes the restorer's address off the
                        // stack.
                        self.state.rsp += 8;
                        self.state.rax = 15;
                        let next = self.world.clone().linux_call(self).await;
                        self.accept(next)?;
                    }
                }
            }
        })
    }

    /// Enters the server, as a thread does that was recalled.
    pub(crate) async fn check_recall(&mut self) -> Result<(), Gone> {
        // The server is entered even without a recall, since that has no effect on the program.
        let expected = self.state.rip;
        let tid = self.thread.tid();
        self.world.system.processes().with(|table| table.enter(tid));
        let world = self.world.clone();
        self.show_registers();
        let next = world.linux.return_to_user(&self.thread, &self.kept, Resume::Continue).await;
        self.accept(next)?;
        self.run_handlers(expected).await.map(|_| ())
    }

    /// Executes an address without code, which is an illegal instruction.
    async fn run_nothing(&mut self) -> Result<(), Gone> {
        let tid = self.thread.tid();
        self.world.system.processes().with(|table| table.enter(tid));
        let state = ExceptionState { error: 0, number: 6, address: self.state.rip };
        self.thread.force(Fault::IllegalInstruction, state);
        let world = self.world.clone();
        self.show_registers();
        let next = world.linux.return_to_user(&self.thread, &self.kept, Resume::Continue).await;
        self.accept(next)
    }

    /// Shows the thread's registers to the server, as the machine does.
    fn show_registers(&self) {
        self.world.machine.set_registers(self.thread.machine_thread(), &self.state);
    }

    /// Makes a system call; returns the value in RAX.
    pub(crate) async fn call(&mut self, number: u64, arguments: &[u64]) -> Result<i64, Gone> {
        self.check_recall().await?;
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let expected = self.state.rip;
        let [rdi, rsi, rdx, r10, r8, r9] = all;
        self.state = ThreadState { rax: number, rdi, rsi, rdx, r10, r8, r9, ..self.state };
        loop {
            let next = self.world.clone().linux_call(self).await;
            self.accept(next)?;
            if !self.run_handlers(expected).await? {
                return Ok(self.state.rax as i64);
            }
            self.state.rip = expected;
        }
    }

    /// Writes to memory, as store instructions do.
    pub(crate) async fn store(&mut self, mut address: u64, mut bytes: &[u8]) -> Result<(), Gone> {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min((4096 - address % 4096) as usize));
            self.store_piece(address, piece).await?;
            (address, bytes) = (address + piece.len() as u64, rest);
        }
        Ok(())
    }

    /// Does one store within a page.
    async fn store_piece(&mut self, address: u64, bytes: &[u8]) -> Result<(), Gone> {
        loop {
            let memory = self.thread.memory();
            let machine = &self.world.machine;
            let done = memory.map().with_pmap(|pmap| machine.user_write(pmap, address, bytes)).flatten();
            if done.is_some() {
                return Ok(());
            }
            self.fault(address, bytes.len(), Protection::WRITE).await?;
        }
    }

    /// Reads from memory, as a load instruction does.
    pub(crate) async fn load<const N: usize>(&mut self, address: u64) -> Result<[u8; N], Gone> {
        let mut bytes = [0; N];
        loop {
            let memory = self.thread.memory();
            let machine = &self.world.machine;
            let done = memory.map().with_pmap(|pmap| machine.user_read(pmap, address, &mut bytes)).flatten();
            if done.is_some() {
                return Ok(bytes);
            }
            self.fault(address, N, Protection::READ).await?;
        }
    }

    pub(crate) async fn load_u64(&mut self, address: u64) -> Result<u64, Gone> {
        Ok(u64::from_le_bytes(self.load(address).await?))
    }

    pub(crate) async fn load_u32(&mut self, address: u64) -> Result<u32, Gone> {
        Ok(u32::from_le_bytes(self.load(address).await?))
    }

    async fn fault(&mut self, address: u64, length: usize, access: Protection) -> Result<(), Gone> {
        let expected = self.state.rip;
        let tid = self.thread.tid();
        self.world.system.processes().with(|table| table.enter(tid));
        // The access may cross two pages, of which either may be missing.
        let last = address + length.max(1) as u64 - 1;
        let second = (last / 4096 != address / 4096).then_some(last);
        for at in core::iter::once(address).chain(second) {
            if self.thread.begin_fault() {
                let fault = PageFault { address: at, access, ip: expected };
                let _ = self.world.system.processes().killable(tid, self.thread.fault(&fault)).await;
            }
        }
        let world = self.world.clone();
        self.show_registers();
        let next = world.linux.return_to_user(&self.thread, &self.kept, Resume::Continue).await;
        self.accept(next)?;
        self.run_handlers(expected).await.map(|_| ())
    }

    /// Makes a child with the call `number` (fork, vfork, clone) and these arguments; the child
    /// runs `child`.
    pub(crate) async fn spawn(
        &mut self,
        number: u64,
        arguments: &[u64],
        child: impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static,
    ) -> Result<i64, Gone> {
        let back = self.state.rip;
        let address = self.world.code(child);
        self.state.rip = address;
        let result = self.call(number, arguments).await?;
        self.state.rip = back;
        Ok(result)
    }

    pub(crate) async fn fork(
        &mut self,
        child: impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static,
    ) -> Result<i64, Gone> {
        self.spawn(57, &[], child).await
    }

    /// Ends the process (exit_group(2)).
    pub(crate) async fn exit(&mut self, status: u64) -> Result<(), Gone> {
        self.call(231, &[status]).await?;
        panic!("exit returned");
    }

    /// Stores a string with a terminating zero at `address`; returns the address.
    pub(crate) async fn string(&mut self, address: u64, text: &str) -> Result<u64, Gone> {
        self.store(address, &[text.as_bytes(), &[0]].concat()).await?;
        Ok(address)
    }

    /// Installs a signal handler.
    pub(crate) async fn handle(
        &mut self,
        signal: u64,
        flags: u64,
        handler: impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static,
    ) -> Result<(), Gone> {
        let address = self.world.code(handler);
        let words = [address, flags | 0x0400_0000, 0xdead_0000, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.store(DATA + 0x7f00, &bytes).await?;
        assert_eq!(self.call(13, &[signal, DATA + 0x7f00, 0, 8]).await?, 0);
        Ok(())
    }

    /// Maps new memory and touches each of its pages.
    pub(crate) async fn take(&mut self, pages: u64) -> Result<(), Gone> {
        let memory = self.call(9, &[0, pages * 4096, 3, 0x22, u64::MAX, 0]).await?;
        assert!(memory > 0, "{memory}");
        for page in 0..pages {
            self.store(memory as u64 + page * 4096, &[1]).await?;
        }
        Ok(())
    }

    /// Computes for this time, in microseconds. Meanwhile it does not enter the server, even if it
    /// is recalled.
    pub(crate) async fn compute(&self, microseconds: u64) {
        let machine = self.world.machine.clone();
        machine.sleep_until(machine.now() + microseconds).await;
    }

    /// Lets other threads run for a while, while this one is in its program.
    pub(crate) async fn pass(&mut self, microseconds: u64) -> Result<(), Gone> {
        self.compute(microseconds).await;
        self.check_recall().await
    }

    /// Adds to the processor time that the program has used, in milliseconds.
    pub(crate) fn use_processor(&self, milliseconds: u64) {
        let (tid, time) = (self.thread.tid(), core::time::Duration::from_millis(milliseconds));
        self.world.system.processes().with(|table| table.account(tid, time, core::time::Duration::ZERO));
    }

    /// Waits for any child (wait4(2)); returns its id and status.
    pub(crate) async fn wait(&mut self, options: u64) -> Result<(i64, u32), Gone> {
        let pid = self.call(61, &[u64::MAX, DATA + 0x7e00, options, 0]).await?;
        let status = self.load_u32(DATA + 0x7e00).await?;
        Ok((pid, status))
    }
}

impl World {
    async fn linux_call(self: Rc<Self>, program: &mut Program) -> Next<Simulated> {
        let thread = program.thread.clone();
        program.show_registers();
        let request = call_of(&program.state);
        // Calls are tried without a task first, as by the server.
        let tried = match thread.is_observed() {
            true => None,
            false => self.linux.try_call(&thread, &program.kept, &request),
        };
        match tried {
            Some(value) => Next::Resume(Resume::Return(value)),
            None => self.linux.serve_call(&thread, &program.kept, request).await,
        }
    }
}
