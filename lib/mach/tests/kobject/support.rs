//! A system of native tasks on the simulated machine, and programs that call the kernel's objects
//! by the generated clients: each call is a message that `mach_msg` sends and whose reply it
//! receives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mach::ipc::typed::{MsgArguments, MsgOptions, mach_msg};
use mach::ipc::{Disposition, Interruption, Ipc, Limits, Name, NameRule, PortRight, Right, Space};
use mach::kobject::{Environment, Kernel, PortPersonality, TaskPorts, ThreadPorts};
use mach::machine::PAGE_SIZE;
use mach::machine::simulated::{Simulated, SimulatedThread};
use mach::thread::{Exception, Handled, PriorityRange};
use mach::vm::{Placement, Vm, VmMap};
use mach::{Host, KernResult, Personality};
use message::{AsyncTransport, Call, Error, Status};

pub(crate) type Task = mach::Task<Simulated, Native>;
pub(crate) type Thread = mach::Thread<Simulated, Native>;

/// The personality of the tests' tasks: nothing but ports.
pub(crate) struct Native;

impl Personality<Simulated> for Native {
    type Task = TaskPorts<Simulated>;
    type Thread = ThreadPorts<Simulated>;

    async fn raise(_thread: &Arc<Thread>, _exception: &Exception) -> Handled {
        Handled::Pass
    }

    fn task_ended(task: &TaskPorts<Simulated>) {
        task.end();
    }

    fn thread_ended(thread: &ThreadPorts<Simulated>) {
        thread.end();
    }
}

impl PortPersonality<Simulated> for Native {
    fn task_ports(task: &TaskPorts<Simulated>) -> &TaskPorts<Simulated> {
        task
    }

    fn thread_ports(thread: &ThreadPorts<Simulated>) -> &ThreadPorts<Simulated> {
        thread
    }

    fn new_task(
        _parent: &Arc<Task>,
        _map: &Arc<VmMap<Simulated>>,
        ports: TaskPorts<Simulated>,
    ) -> TaskPorts<Simulated> {
        ports
    }

    fn new_thread(
        _task: &Arc<Task>,
        _context: &SimulatedThread,
        ports: ThreadPorts<Simulated>,
    ) -> ThreadPorts<Simulated> {
        ports
    }
}

/// Records the threads that were begun.
#[derive(Default)]
pub(crate) struct Begun(pub(crate) Mutex<BTreeMap<u64, std::sync::Weak<Thread>>>);

impl Environment<Simulated, Native> for Begun {
    fn begin(&self, thread: &Arc<Thread>) -> KernResult {
        self.0.lock().unwrap().insert(thread.id(), Arc::downgrade(thread));
        Ok(())
    }
}

pub(crate) const FRAMES: u32 = 512;
const RANGE: PriorityRange = PriorityRange { lowest: 10, highest: 72 };
/// The time of day when the machine starts, in seconds.
pub(crate) const STARTED: u64 = 1_000_000_000;

/// A system. When it is dropped, it checks that nothing has leaked.
pub(crate) struct System {
    pub(crate) machine: Simulated,
    frames: u32,
    kernel: Option<Arc<Kernel<Simulated, Native>>>,
    pub(crate) begun: Arc<Begun>,
}

impl System {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::with_frames(FRAMES, limits)
    }

    pub(crate) fn with_frames(frames: u32, limits: Limits) -> Self {
        let machine = Simulated::new(frames);
        let host = Host::new(Vm::new(machine.clone()).unwrap(), RANGE, 10_000);
        let ipc = Ipc::new(host.vm(), NameRule::Lowest, limits).unwrap();
        let kernel = Kernel::new(&host, &ipc, STARTED * 1_000_000).unwrap();
        let begun = Arc::new(Begun::default());
        let server: Arc<dyn Environment<Simulated, Native>> = begun.clone();
        kernel.set_environment(Arc::downgrade(&server));
        Self { machine, frames, kernel: Some(kernel), begun }
    }

    pub(crate) fn kernel(&self) -> &Arc<Kernel<Simulated, Native>> {
        self.kernel.as_ref().unwrap()
    }

    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.machine.block_on(future)
    }

    /// Makes a task with a buffer for messages.
    pub(crate) async fn program(&self) -> Program {
        let task = self.kernel().create_first_task(PAGE_SIZE, 1 << 47, |ports| ports).await.unwrap();
        Program::of(task).await
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for task in self.kernel().host().tasks() {
            self.machine.block_on(task.terminate());
        }
        let kernel = self.kernel.take().unwrap();
        self.machine.block_on(kernel.host().vm().finish_writes());
        let (host, ipc) = (kernel.host().clone(), kernel.ipc().clone());
        drop(kernel);
        assert_eq!(ipc.ports(), 0, "ports leaked");
        drop(ipc);
        assert_eq!(host.vm().statistics().free, self.frames, "frames leaked");
        drop(host);
        let counts = (self.machine.threads(), self.machine.pmaps(), self.machine.reserved());
        assert_eq!(counts, (0, 0, 0), "threads, address spaces or server memory leaked");
    }
}

/// The address of the message buffer in each task.
pub(crate) const BUFFER: u64 = 0x10_0000;
const BUFFER_SIZE: u64 = 16 * PAGE_SIZE;

/// A task that calls the kernel.
pub(crate) struct Program {
    pub(crate) task: Arc<Task>,
    pub(crate) interruption: Arc<Interruption>,
    reply: Name,
}

impl Program {
    pub(crate) async fn of(task: Arc<Task>) -> Self {
        task.map().allocate(Placement::Fixed(BUFFER), BUFFER_SIZE).await.unwrap();
        let reply = task.space().allocate(PortRight::Receive).unwrap();
        Self { task, interruption: Arc::new(Interruption::new()), reply }
    }

    pub(crate) fn space(&self) -> &Arc<Space<Simulated>> {
        self.task.space()
    }

    /// The task's name for a right.
    pub(crate) fn name(&self, right: Right<Simulated>) -> u64 {
        u64::from(self.space().copyout_right(right).unwrap().0)
    }

    /// The task's name for its own port.
    pub(crate) fn own(&self) -> u64 {
        self.name(self.task.own_right())
    }

    /// The task's name for the port of another task.
    pub(crate) fn name_of(&self, other: &Program) -> u64 {
        self.name(other.task.own_right())
    }

    /// The port for replies, if the program still has it.
    pub(crate) fn reply_name(&self) -> Option<Name> {
        let kind = self.space().port_type(self.reply).ok()?;
        kind.contains(mach::ipc::PortType::RECEIVE).then_some(self.reply)
    }

    /// Sends the message in the buffer, or receives one into it.
    pub(crate) async fn try_message(
        &self,
        options: MsgOptions,
        length: usize,
        receive: Name,
    ) -> Result<(), i32> {
        let arguments = MsgArguments {
            address: BUFFER,
            options,
            send_size: length as u32,
            receive_size: BUFFER_SIZE as u32,
            receive_name: receive,
            timeout: 0,
            notify: Name::NULL,
        };
        let done = mach_msg(self.space(), &**self.task.map(), &arguments, &self.interruption).await;
        done.map_err(|error| error.code() as i32)
    }

    pub(crate) async fn message(
        &self,
        options: MsgOptions,
        bytes: &mut [u8],
        length: usize,
        receive: Name,
    ) -> Result<(), i32> {
        self.task.map().copyout(BUFFER, &bytes[..length]).await.unwrap();
        self.try_message(options, length, receive).await?;
        let room = bytes.len().min(BUFFER_SIZE as usize);
        self.task.map().copyin(BUFFER, &mut bytes[..room]).await.unwrap();
        Ok(())
    }

    pub(crate) async fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.task.map().copyin(address, &mut bytes).await.unwrap();
        bytes
    }

    pub(crate) async fn words(&self, memory: message::Memory) -> Vec<u32> {
        let bytes = self.read(memory.address, 4 * memory.count as usize).await;
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// Receives a notification without waiting. Returns its id and the first word of its body.
    pub(crate) async fn notification(&self, name: Name) -> Result<(u32, u32), i32> {
        let mut bytes = [0; 64];
        let options = MsgOptions::RECEIVE | MsgOptions::RECEIVE_TIMEOUT;
        self.message(options, &mut bytes, 0, name).await?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        Ok((word(28), word(40)))
    }

    pub(crate) fn port(&self) -> Name {
        self.space().allocate(PortRight::Receive).unwrap()
    }

    pub(crate) fn port_to_send(&self) -> Name {
        let name = self.port();
        let right = self.space().extract_right(name, Disposition::MakeSend).unwrap();
        self.space().insert_right(name, right).unwrap();
        name
    }
}

impl AsyncTransport for &Program {
    fn reply_port(&mut self) -> u64 {
        u64::from(self.reply.0)
    }

    async fn call(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32> {
        assert_eq!(call.options, 0);
        let program: &Program = self;
        program.message(MsgOptions::SEND | MsgOptions::RECEIVE, message, length, program.reply).await
    }

    async fn send(&mut self, message: &mut [u8], length: usize, _call: &Call) -> Result<(), i32> {
        let program: &Program = self;
        program.message(MsgOptions::SEND, message, length, Name::NULL).await
    }
}

/// Calls a routine of an interface: `call!(program, mach, to, routine(arguments))`.
#[macro_export]
macro_rules! call {
    ($program:expr, $interface:ident, $to:expr, $routine:ident($($argument:expr),*)) => {{
        let mut transport = &$program;
        let mut client = mach_interfaces::$interface::Client { transport: &mut transport, to: $to };
        client.$routine($($argument),*).await
    }};
}

/// The error of a call that the kernel has answered with a status.
pub(crate) fn status<T>(number: i32) -> Result<T, Error> {
    Err(Error::Status(Status(number)))
}
