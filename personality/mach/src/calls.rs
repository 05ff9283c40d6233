//! What the traps do.

use alloc::sync::Arc;

use mach::ipc::typed::{MsgArguments, MsgOptions, mach_msg, park, try_mach_msg};
use mach::ipc::{Disposition, MsgErrorKind, Name, PortRight, Rest, Right};
use mach::machine::{
    Attempt, ExecutionContext, Machine, PAGE_SIZE, ProcessorException, Protection, Resume, SystemCall,
};
use mach::thread::Exception;
use mach::vm::{Inheritance, MapRequest, Placement};
use mach::{KernError, KernResult};

use crate::system::{ProgramTask, ProgramThread, Services, System};
use crate::trap::Trap;

/// The result of a successful call.
const SUCCESS: u32 = 0;
/// The result of a trap that names another task than the caller's: the program's library sends a
/// message instead.
const SEND_MESSAGE: u32 = 0x1000_0007;
/// The result of an operation on a port that is no device's.
const NO_SUCH_DEVICE: u32 = 2502;
/// The vector of the exception that a system call without a meaning raises.
const UNDEFINED_INSTRUCTION: u64 = 6;
/// The most bytes that one `mach_print` prints.
const LONGEST_PRINT: usize = 1 << 16;

/// Serves a trap that needs no wait.
#[inline]
pub(crate) fn try_call<M: Machine, S: Services<M>>(
    system: &Arc<System<M, S>>,
    thread: &Arc<ProgramThread<M>>,
    call: &SystemCall,
) -> Attempt {
    let Some(trap) = Trap::of(call.number) else { return Attempt::Event };
    let arguments = &call.arguments;
    if trap == Trap::Message {
        return try_mach_msg(&thread.parking, &message_arguments(arguments, Name::NULL), call);
    }
    let call = Call { system, thread, arguments, trap };
    call.without_wait().map_or(Attempt::Event, |result| Attempt::Return(u64::from(result)))
}

/// Serves a trap. Returns how the thread goes on.
pub(crate) async fn call<M: Machine, S: Services<M>>(
    system: &Arc<System<M, S>>,
    thread: &Arc<ProgramThread<M>>,
    call: &SystemCall,
) -> Next {
    let Some(trap) = Trap::of(call.number) else {
        let ip = thread.machine_thread().state().map_or(0, |state| state.rip);
        let exception = ProcessorException { vector: UNDEFINED_INSTRUCTION, error: 0, ip };
        let raised = alloc::boxed::Box::pin(thread.raise(&Exception::of_processor(&exception))).await;
        return raised.map_or(Next::End, |()| Next::Resume(Resume::Continue));
    };
    let trap = Call { system, thread, arguments: &call.arguments, trap };
    let result = match trap.without_wait() {
        _ if trap.trap == Trap::Message => trap.message(call).await,
        Some(result) => Some(result),
        None => Some(trap.with_wait().await),
    };
    result.map_or(Next::Parked, |result| Next::Resume(Resume::Return(u64::from(result))))
}

/// How a thread goes on after an event.
pub(crate) enum Next {
    /// It is resumed.
    Resume(Resume),
    /// It waits, and is resumed or has another event without its task.
    Parked,
    /// It does not go on.
    End,
}

/// A trap with its arguments.
struct Call<'a, M: Machine, S> {
    system: &'a Arc<System<M, S>>,
    thread: &'a Arc<ProgramThread<M>>,
    arguments: &'a [u64; 6],
    trap: Trap,
}

fn code(result: KernResult) -> u32 {
    match result {
        Ok(()) => SUCCESS,
        Err(error) => error as u32,
    }
}

impl<M: Machine, S: Services<M>> Call<'_, M, S> {
    fn task(&self) -> &Arc<ProgramTask<M>> {
        self.thread.task()
    }

    /// An argument of 32 bits.
    fn word(&self, index: usize) -> u32 {
        self.arguments[index] as u32
    }

    /// Does a trap that never waits. `None`: it is another trap.
    fn without_wait(&self) -> Option<u32> {
        let space = self.task().space();
        Some(match self.trap {
            Trap::ReplyPort => space.allocate(PortRight::Receive).map_or(Name::NULL.0, |name| name.0),
            Trap::ThreadSelf => self.name_of(self.thread.ports.own_right()),
            Trap::TaskSelf => self.name_of(self.task().ports.own_right()),
            Trap::HostSelf => self.name_of(self.system.kernel.host_right()),
            Trap::NullPort => Name::NULL.0,
            Trap::Invalid | Trap::EventWait => KernError::InvalidArgument as u32,
            Trap::DeviceWrite => NO_SUCH_DEVICE,
            Trap::PortDeallocate => self.own(|| space.deallocate(Name(self.word(1)))),
            Trap::PortAllocateName => {
                self.own(|| space.allocate_name(PortRight::from_number(self.word(1))?, Name(self.word(2))))
            }
            Trap::PortInsertRight => self.own(|| {
                let disposition = Disposition::from_number(self.word(3)).ok_or(KernError::InvalidValue)?;
                let right = match Name(self.word(2)) {
                    Name::NULL => Right::Null,
                    Name::DEAD => Right::Dead,
                    name => space.extract_right(name, disposition)?,
                };
                space.insert_right(Name(self.word(1)), right)
            }),
            Trap::TaskSuspend => self.own(|| self.task().suspend()),
            Trap::DepressAbort if self.names(&self.thread.ports.own_right()) => SUCCESS,
            Trap::DepressAbort | Trap::TaskSetSpecialPort => SEND_MESSAGE,
            _ => return None,
        })
    }

    async fn with_wait(&self) -> u32 {
        let done = match self.trap {
            Trap::Print => self.print().await,
            Trap::Switch | Trap::SwitchPriority => return self.give_way().await,
            Trap::ThreadSwitch => self.switch().await,
            Trap::SetSelfState => Err(KernError::InvalidArgument),
            _ if !self.names_own_task() => return SEND_MESSAGE,
            Trap::VmMap => return self.map().await.unwrap_or_else(|error| error as u32),
            Trap::VmAllocate => self.allocate().await,
            Trap::VmDeallocate => self.deallocate().await,
            Trap::TaskCreate => self.create_task().await,
            Trap::TaskTerminate => {
                self.task().terminate().await;
                Ok(())
            }
            Trap::PortAllocate => self.allocate_port().await,
            _ => Err(KernError::InvalidArgument),
        };
        code(done)
    }

    /// Gives the task a right, and returns the name.
    fn name_of(&self, right: Right<M>) -> u32 {
        self.task().space().copyout_right(right).map_or(Name::NULL.0, |name| name.0)
    }

    /// Whether the first argument is the task's name for the port of this right.
    fn names(&self, right: &Right<M>) -> bool {
        let named = self.task().space().extract_right(Name(self.word(0)), Disposition::CopySend);
        matches!((named, right), (Ok(Right::Send(named)), Right::Send(right)) if named.is_of_same_port(right))
    }

    fn names_own_task(&self) -> bool {
        self.names(&self.task().ports.own_right())
    }

    /// Does an operation on the task that the first argument names, which must be the caller's.
    fn own(&self, operation: impl FnOnce() -> KernResult) -> u32 {
        if self.names_own_task() { code(operation()) } else { SEND_MESSAGE }
    }

    /// Reads arguments from the stack, where they are above the return address.
    async fn on_stack<const N: usize>(&self) -> KernResult<[u64; N]> {
        let mut words = [0; N];
        let stack = self.thread.machine_thread().state()?.rsp;
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            let at = stack.wrapping_add(8 * (index as u64 + 1));
            self.read(at, &mut bytes).await?;
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }

    async fn read(&self, address: u64, buffer: &mut [u8]) -> KernResult {
        let read = self.task().map().copyin(address, buffer).await;
        read.map_err(|_| KernError::InvalidAddress)
    }

    async fn write(&self, address: u64, bytes: &[u8]) -> KernResult {
        let written = self.task().map().copyout(address, bytes).await;
        written.map_err(|_| KernError::InvalidAddress)
    }

    /// `mach_msg(message, options, send size, receive size, receive name, time-out, notify)`.
    /// The result is `None` if the caller waits for a message outside of its task.
    async fn message(&self, call: &SystemCall) -> Option<u32> {
        let mut arguments = message_arguments(self.arguments, Name::NULL);
        match self.thread.parking.take_rest() {
            Rest::All => {}
            Rest::Receive => arguments.options -= MsgOptions::SEND,
            Rest::Write(bytes, address, result) => {
                let written = self.write(address, &bytes).await;
                return Some(written.map_or(MsgErrorKind::ReceiveInvalidData as u32, |()| result));
            }
        }
        let options = arguments.options;
        let notifies = MsgOptions::SEND_NOTIFY | MsgOptions::SEND_CANCEL | MsgOptions::RECEIVE_NOTIFY;
        if options.intersects(notifies) {
            match self.on_stack::<1>().await {
                Ok([name]) => arguments.notify = Name(name as u32),
                Err(error) => return Some(error as u32),
            }
        }
        let (task, interruption) = (self.task(), &self.thread.ports.interruption);
        if options.contains(MsgOptions::SEND) {
            let only_send = MsgArguments { options: options - MsgOptions::RECEIVE, ..arguments };
            if let Err(error) = mach_msg(task.space(), &**task.map(), &only_send, interruption).await {
                return Some(error.code());
            }
            arguments.options -= MsgOptions::SEND;
        }
        if !options.contains(MsgOptions::RECEIVE) {
            return Some(SUCCESS);
        }
        if park(&self.thread.parking, &arguments, call) {
            return None;
        }
        let received = mach_msg(task.space(), &**task.map(), &arguments, interruption).await;
        Some(received.map_or_else(|error| error.code(), |()| SUCCESS))
    }

    /// `mach_print(string)`: prints up to the zero, or as much as is readable.
    async fn print(&self) -> KernResult {
        let (mut address, mut left) = (self.arguments[0], LONGEST_PRINT);
        while left > 0 {
            let mut bytes = [0; 256];
            let in_page = (PAGE_SIZE - address % PAGE_SIZE) as usize;
            let piece = &mut bytes[..in_page.min(256).min(left)];
            self.read(address, piece).await?;
            let end = piece.iter().position(|&byte| byte == 0);
            self.system.services.print(&piece[..end.unwrap_or(piece.len())]).await;
            if end.is_some() {
                break;
            }
            address = address.wrapping_add(piece.len() as u64);
            left -= piece.len();
            macadamia_sync::give_turn().await;
        }
        Ok(())
    }

    /// Lets other threads run. Returns 1 if there may have been others, as `swtch` does.
    async fn give_way(&self) -> u32 {
        macadamia_sync::give_turn().await;
        1
    }

    /// `thread_switch(thread, option, milliseconds)`.
    async fn switch(&self) -> KernResult {
        const NONE: u32 = 0;
        const DEPRESS: u32 = 1;
        const WAIT: u32 = 2;
        match self.word(1) {
            NONE | DEPRESS => {
                self.give_way().await;
                Ok(())
            }
            WAIT => {
                let machine = self.system.host().machine();
                machine.sleep_until(machine.now() + u64::from(self.word(2)) * 1000).await;
                Ok(())
            }
            _ => Err(KernError::InvalidArgument),
        }
    }

    /// `vm_allocate(task, address, size, anywhere)`.
    async fn allocate(&self) -> KernResult {
        let &[_, at, size, anywhere, ..] = self.arguments;
        let mut bytes = [0; 8];
        self.read(at, &mut bytes).await?;
        let placement = placement(u64::from_le_bytes(bytes), anywhere);
        let address = match size {
            0 => 0,
            _ => self.task().map().allocate(placement, size).await?,
        };
        self.write(at, &address.to_le_bytes()).await
    }

    /// `vm_deallocate(task, address, size)`.
    async fn deallocate(&self) -> KernResult {
        let &[_, start, size, ..] = self.arguments;
        if size == 0 {
            return Ok(());
        }
        let first = start & !(PAGE_SIZE - 1);
        let size = (start - first).checked_add(size).ok_or(KernError::InvalidArgument)?;
        self.task().map().deallocate(first, size).await
    }

    /// `vm_map(task, address, size, mask, anywhere, object, offset, copy, protection, maximum,
    /// inheritance)`, for memory without an object. With an object the result is that the program's
    /// library sends a message.
    async fn map(&self) -> KernResult<u32> {
        let &[_, at, size, mask, anywhere, object] = self.arguments;
        if Name(object as u32) != Name::NULL {
            return Ok(SEND_MESSAGE);
        }
        let [_, _, protection, max_protection, inheritance] = self.on_stack().await?;
        let mut bytes = [0; 8];
        self.read(at, &mut bytes).await?;
        let inheritance = match inheritance as u32 {
            0 => Inheritance::Share,
            1 => Inheritance::Copy,
            2 => Inheritance::None,
            _ => return Err(KernError::InvalidArgument),
        };
        let request = MapRequest {
            alignment: mask.checked_add(1).ok_or(KernError::InvalidArgument)?.max(PAGE_SIZE),
            protection: rights(protection)?,
            max_protection: rights(max_protection)?,
            inheritance,
            ..MapRequest::anonymous(size).at(placement(u64::from_le_bytes(bytes), anywhere))
        };
        let address = self.task().map().map(&request).await?;
        self.write(at, &address.to_le_bytes()).await?;
        Ok(SUCCESS)
    }

    /// `task_create(parent, inherit, child)`.
    async fn create_task(&self) -> KernResult {
        let child = self.system.kernel.create_task(self.task(), self.word(1) != 0).await?;
        let name = self.task().space().copyout_right(child.ports.own_right())?;
        self.write(self.arguments[2], &name.0.to_le_bytes()).await
    }

    /// `mach_port_allocate(task, right, name)`.
    async fn allocate_port(&self) -> KernResult {
        let space = self.task().space();
        let name = space.allocate(PortRight::from_number(self.word(1))?)?;
        let written = self.write(self.arguments[2], &name.0.to_le_bytes()).await;
        if written.is_err() {
            // The program cannot know the name, so the right is given up; it may be gone already.
            let _ = space.destroy(name);
        }
        written
    }
}

/// The arguments of `mach_msg` that are in registers, with the last one, which is on the stack.
fn message_arguments(registers: &[u64; 6], notify: Name) -> MsgArguments {
    let &[address, options, send_size, receive_size, receive_name, timeout] = registers;
    MsgArguments {
        address,
        options: MsgOptions::from_bits_truncate(options as u32),
        send_size: send_size as u32,
        receive_size: receive_size as u32,
        receive_name: Name(receive_name as u32),
        timeout: timeout as u32,
        notify,
    }
}

/// Where memory is placed, by the address and the flag of a call.
fn placement(address: u64, anywhere: u64) -> Placement {
    match anywhere as u32 {
        0 => Placement::Fixed(address & !(PAGE_SIZE - 1)),
        _ => Placement::Above(address.checked_next_multiple_of(PAGE_SIZE).unwrap_or(0)),
    }
}

/// The rights that an argument stands for.
fn rights(bits: u64) -> KernResult<Protection> {
    let bits = u8::try_from(bits as u32).ok();
    bits.and_then(Protection::from_bits).ok_or(KernError::InvalidArgument)
}
