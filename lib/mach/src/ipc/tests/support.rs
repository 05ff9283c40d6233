//! Helpers for the tests: a system that finds leaks when it is dropped, tasks, and messages in the
//! form in which programs write and read them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::typed::{MsgArguments, MsgOptions, mach_msg, restart};
use super::super::*;
use crate::machine::PAGE_SIZE;
use crate::machine::simulated::Simulated;
use crate::vm::{Placement, Vm, VmMap};

pub(super) const MOVE_RECEIVE: u32 = 16;
pub(super) const MOVE_SEND: u32 = 17;
pub(super) const MOVE_SEND_ONCE: u32 = 18;
pub(super) const COPY_SEND: u32 = 19;
pub(super) const MAKE_SEND: u32 = 20;
pub(super) const MAKE_SEND_ONCE: u32 = 21;
pub(super) const COMPLEX: u32 = 1 << 31;

/// The address of the message buffer in each task.
pub(super) const BUFFER: u64 = 0x10_0000;
const BUFFER_SIZE: u64 = 16 * PAGE_SIZE;
const FRAMES: u32 = 512;

/// A machine with a port system. When it is dropped, it checks that all memory has been given back.
pub(super) struct System {
    pub(super) machine: Simulated,
    vm: Option<Arc<Vm<Simulated>>>,
    ipc: Option<Arc<Ipc<Simulated>>>,
}

impl System {
    pub(super) fn new() -> Self {
        Self::with(NameRule::Lowest, Limits::default())
    }

    pub(super) fn with(names: NameRule, limits: Limits) -> Self {
        let machine = Simulated::new(FRAMES);
        let vm = Vm::new(machine.clone()).unwrap();
        let ipc = Ipc::new(&vm, names, limits).unwrap();
        Self { machine, vm: Some(vm), ipc: Some(ipc) }
    }

    pub(super) fn ipc(&self) -> &Arc<Ipc<Simulated>> {
        self.ipc.as_ref().unwrap()
    }

    pub(super) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.machine.block_on(future)
    }

    pub(super) fn task(&self) -> Task {
        let map = self.run(VmMap::new(self.vm.as_ref().unwrap(), PAGE_SIZE, 1 << 47)).unwrap();
        self.run(map.allocate(Placement::Fixed(BUFFER), BUFFER_SIZE)).unwrap();
        let task = Task {
            machine: self.machine.clone(),
            space: Space::new(self.ipc()),
            map,
            interruption: Arc::new(Interruption::new()),
        };
        assert!(task.space.name_count() == 0);
        task
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert_eq!(self.ipc().ports(), 0, "ports leaked");
        self.ipc = None;
        assert_eq!(self.vm.as_ref().unwrap().statistics().free, FRAMES, "frames leaked");
        self.vm = None;
        assert_eq!(self.machine.reserved(), 0, "server memory leaked");
    }
}

/// A task with one thread, and a message buffer.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) machine: Simulated,
    pub(super) space: Arc<Space<Simulated>>,
    pub(super) map: Arc<VmMap<Simulated>>,
    pub(super) interruption: Arc<Interruption>,
}

/// A message to be sent, as a program writes it.
#[derive(Clone, Default)]
pub(super) struct Msg {
    pub(super) bits: u32,
    pub(super) remote: Name,
    pub(super) local: Name,
    pub(super) id: i32,
    pub(super) body: Vec<u8>,
}

impl Default for Name {
    fn default() -> Self {
        Self::NULL
    }
}

pub(super) fn to(remote: Name, disposition: u32) -> Msg {
    Msg { bits: disposition, remote, ..Msg::default() }
}

impl Msg {
    pub(super) fn id(self, id: i32) -> Self {
        Self { id, ..self }
    }

    pub(super) fn reply(self, local: Name, disposition: u32) -> Self {
        Self { bits: self.bits | disposition << 8, local, ..self }
    }

    fn item(mut self, bits: u32, number: u32, data: &[u8]) -> Self {
        self.body.extend_from_slice(&bits.to_le_bytes());
        self.body.extend_from_slice(&number.to_le_bytes());
        self.body.extend_from_slice(data);
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        self
    }

    pub(super) fn right(self, name: Name, disposition: u32) -> Self {
        self.rights(&[name], disposition)
    }

    pub(super) fn rights(mut self, names: &[Name], disposition: u32) -> Self {
        self.bits |= COMPLEX;
        let data: Vec<u8> = names.iter().flat_map(|name| u64::from(name.0).to_le_bytes()).collect();
        self.item(disposition | 64 << 8 | 1 << 29, names.len() as u32, &data)
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        self.item(9 | 8 << 8 | 1 << 29, bytes.len() as u32, bytes)
    }

    pub(super) fn out_of_line(mut self, address: u64, bytes: u32, deallocate: bool) -> Self {
        self.bits |= COMPLEX;
        self.item(9 | 8 << 8 | u32::from(deallocate) << 31, bytes, &address.to_le_bytes())
    }

    pub(super) fn rights_out_of_line(mut self, address: u64, number: u32, disposition: u32) -> Self {
        self.bits |= COMPLEX;
        self.item(disposition | 64 << 8, number, &address.to_le_bytes())
    }

    /// Adds an item with any descriptor and 8 bytes of data.
    pub(super) fn raw(mut self, bits: u32, number: u32, data: u64) -> Self {
        self.bits |= COMPLEX;
        self.item(bits, number, &data.to_le_bytes())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let size = 32 + self.body.len() as u32;
        for word in [self.bits, size, self.remote.0, 0, self.local.0, 0, 0, self.id as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// A received message, as a program reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) bits: u32,
    pub(super) size: u32,
    pub(super) remote: Name,
    pub(super) local: Name,
    pub(super) upper: u32,
    pub(super) sequence: u32,
    pub(super) id: i32,
    pub(super) body: Vec<u8>,
}

impl Received {
    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let size = word(4);
        Self {
            bits: word(0),
            size,
            remote: Name(word(8)),
            local: Name(word(16)),
            upper: word(20),
            sequence: word(24),
            id: word(28) as i32,
            body: bytes[32..(size as usize).clamp(32, bytes.len())].to_vec(),
        }
    }

    /// The word of 64 bits at an offset of the body.
    pub(super) fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.body[at..at + 8].try_into().unwrap())
    }

    pub(super) fn name(&self, at: usize) -> Name {
        Name(self.word(at) as u32)
    }
}

impl Task {
    pub(super) fn arguments(options: MsgOptions) -> MsgArguments {
        MsgArguments {
            address: BUFFER,
            options,
            send_size: 0,
            receive_size: BUFFER_SIZE as u32,
            receive_name: Name::NULL,
            timeout: 0,
            notify: Name::NULL,
        }
    }

    pub(super) async fn call(&self, arguments: &MsgArguments) -> Result<(), MsgError> {
        mach_msg(&self.space, &*self.map, arguments, &self.interruption).await
    }

    pub(super) async fn write(&self, address: u64, bytes: &[u8]) {
        self.map.copyout(address, bytes).await.unwrap();
    }

    pub(super) async fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = alloc::vec![0; length];
        self.map.copyin(address, &mut bytes).await.unwrap();
        bytes
    }

    /// Reads the message in the task's buffer.
    pub(super) async fn buffer(&self) -> Received {
        Received::decode(&self.read(BUFFER, 4 * PAGE_SIZE as usize).await)
    }

    pub(super) async fn send_with(&self, message: &Msg, arguments: MsgArguments) -> Result<(), MsgError> {
        let bytes = message.encode();
        self.write(BUFFER, &bytes).await;
        let options = arguments.options | MsgOptions::SEND;
        self.call(&MsgArguments { send_size: bytes.len() as u32, options, ..arguments }).await
    }

    /// Sends a message without blocking.
    pub(super) fn try_send(&self, message: &Msg) -> Result<(), MsgErrorKind> {
        let arguments = Self::arguments(MsgOptions::SEND_TIMEOUT);
        self.machine.block_on(self.send_with(message, arguments)).map_err(|error| error.kind)
    }

    pub(super) fn send(&self, message: &Msg) {
        self.try_send(message).unwrap();
    }

    pub(super) async fn receive_with(&self, arguments: MsgArguments) -> Result<Received, MsgError> {
        let options = arguments.options | MsgOptions::RECEIVE;
        self.call(&MsgArguments { options, ..arguments }).await?;
        Ok(self.buffer().await)
    }

    /// Receives a message, and blocks until there is one. After an interruption it receives again,
    /// as a program's library does.
    pub(super) async fn wait(&self, name: Name) -> Result<Received, MsgErrorKind> {
        let mut options = MsgOptions::RECEIVE;
        loop {
            let arguments = MsgArguments { receive_name: name, ..Self::arguments(options) };
            match self.receive_with(arguments).await {
                Ok(received) => return Ok(received),
                Err(error) => options = restart(options, error).ok_or(error.kind)?,
            }
        }
    }

    /// Receives a message without blocking.
    pub(super) fn try_receive(&self, name: Name) -> Result<Received, MsgErrorKind> {
        let options = MsgOptions::RECEIVE_TIMEOUT;
        let arguments = MsgArguments { receive_name: name, ..Self::arguments(options) };
        self.machine.block_on(self.receive_with(arguments)).map_err(|error| error.kind)
    }

    pub(super) fn receive(&self, name: Name) -> Received {
        self.try_receive(name).unwrap()
    }

    pub(super) fn port(&self) -> Name {
        self.space.allocate(PortRight::Receive).unwrap()
    }

    /// Makes a port, whose receive right and one send right have one name.
    pub(super) fn port_to_send(&self) -> Name {
        let name = self.port();
        self.give(name, MAKE_SEND, self);
        name
    }

    /// Gives a right to another task, and returns its name there.
    pub(super) fn give(&self, name: Name, disposition: u32, other: &Self) -> Name {
        let disposition = Disposition::from_number(disposition).unwrap();
        other.space.copyout_right(self.space.extract_right(name, disposition).unwrap()).unwrap()
    }

    /// Asks for a notification to the port `notify`.
    pub(super) fn request(
        &self,
        name: Name,
        number: i32,
        sync: u32,
        notify: Name,
    ) -> crate::KernResult<bool> {
        let right = self.space.extract_right(notify, Disposition::MakeSendOnce)?;
        let previous = self.space.request_notification(name, number, sync, right)?;
        let had_one = previous.is_some();
        if let Some(previous) = previous {
            previous.use_up();
        }
        Ok(had_one)
    }

    pub(super) fn kind(&self, name: Name) -> Result<PortType, crate::KernError> {
        self.space.port_type(name)
    }
}
