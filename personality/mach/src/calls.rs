//! What the traps do.

use alloc::sync::Arc;

use mach::ipc::typed::{MsgArguments, MsgOptions, hold, mach_msg, try_mach_msg};
use mach::ipc::{Disposition, Name, PortRight, Rest, Right};
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
/// The result of `swtch`: there may have been other threads.
const GAVE_WAY: u32 = 1;
/// The options of `thread_switch`: only other threads first, with a lower priority for a time, or
/// not before a time.
const SWITCH_NONE: u32 = 0;
const SWITCH_DEPRESS: u32 = 1;
const SWITCH_WAIT: u32 = 2;
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
    let arguments = &call.arguments;
    if Trap::is_message(call.number) {
        return try_mach_msg(&thread.receiver, &message_arguments(arguments, Name::NULL), call);
    }
    let Some(trap) = Trap::of(call.number) else { return Attempt::Event };
    let call = Call { system, thread, arguments, trap };
    let result = call.without_wait().or_else(|| call.try_now());
    result.map_or(Attempt::Event, |result| Attempt::Return(u64::from(result)))
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
    let result = match thread.receiver.take_rest() {
        Rest::Write { bytes, address, result, failure } => {
            let written = trap.write(address, &bytes).await;
            Some(written.map_or(failure, |()| result))
        }
        rest if trap.trap == Trap::Message => trap.message(call, matches!(rest, Rest::Receive)).await,
        _ => match trap.without_wait() {
            Some(result) => Some(result),
            None => Some(trap.with_wait().await),
        },
    };
    result.map_or(Next::Held, |result| Next::Resume(Resume::Return(u64::from(result))))
}

/// How a thread goes on after an event.
pub(crate) enum Next {
    /// It is resumed.
    Resume(Resume),
    /// It waits, and is resumed or has another event without its task.
    Held,
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

fn name_or_null(name: KernResult<Name>) -> u32 {
    name.unwrap_or(Name::NULL).0
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
            Trap::ReplyPort => name_or_null(space.allocate(PortRight::Receive)),
            Trap::ThreadSelf => name_or_null(self.thread.ports.name_self(space)),
            Trap::TaskSelf => name_or_null(self.task().ports.name_self()),
            Trap::HostSelf => name_or_null(self.system.kernel.name_host(space)),
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
            Trap::DepressAbort if self.thread.ports.is_own_name(space, Name(self.word(0))) => SUCCESS,
            Trap::DepressAbort | Trap::TaskSetSpecialPort => SEND_MESSAGE,
            _ => return None,
        })
    }

    async fn with_wait(&self) -> u32 {
        let done = match self.trap {
            Trap::Print => self.print().await,
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

    /// Does a trap that may have to wait, if it need not. `None`: nothing has been done, or what is
    /// left is the receiver's [`Rest`].
    fn try_now(&self) -> Option<u32> {
        match self.trap {
            Trap::Switch | Trap::SwitchPriority => Some(GAVE_WAY),
            Trap::ThreadSwitch if matches!(self.word(1), SWITCH_NONE | SWITCH_DEPRESS) => Some(SUCCESS),
            Trap::VmAllocate if self.names_own_task() => self.try_allocate(),
            Trap::VmDeallocate if self.names_own_task() => self.try_deallocate(),
            Trap::PortAllocate if self.names_own_task() => self.try_allocate_port(),
            _ => None,
        }
    }

    fn names_own_task(&self) -> bool {
        self.task().ports.is_own_name(Name(self.word(0)))
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
    /// `sent`: what was to be sent is sent.
    async fn message(&self, call: &SystemCall, sent: bool) -> Option<u32> {
        let mut arguments = message_arguments(self.arguments, Name::NULL);
        if sent {
            arguments.options -= MsgOptions::SEND;
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
        if hold(&self.thread.receiver, &arguments, call) {
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

    /// `thread_switch(thread, option, milliseconds)`, where it waits.
    async fn switch(&self) -> KernResult {
        match self.word(1) {
            SWITCH_WAIT => {
                let machine = self.system.host().machine();
                machine.sleep_until(machine.now() + u64::from(self.word(2)) * 1000).await;
                Ok(())
            }
            _ => Err(KernError::InvalidArgument),
        }
    }

    /// Writes a result to the program's memory, and returns that the trap has succeeded. `None`: it
    /// could not be written now, which is left to the thread's task.
    fn tell(&self, address: u64, bytes: &[u8]) -> Option<u32> {
        let written = self.task().map().try_copyout(address, bytes);
        if !written {
            self.thread.receiver.leave_write(bytes, address, SUCCESS, KernError::InvalidAddress as u32);
        }
        written.then_some(SUCCESS)
    }

    /// `vm_allocate(task, address, size, anywhere)` without waiting.
    fn try_allocate(&self) -> Option<u32> {
        let &[_, at, size, anywhere, ..] = self.arguments;
        let (map, mut bytes) = (self.task().map(), [0; 8]);
        if !map.try_copyin(at, &mut bytes) {
            return None;
        }
        let allocated = match size {
            0 => Ok(0),
            _ => map.try_allocate(placement(u64::from_le_bytes(bytes), anywhere), size)?,
        };
        match allocated {
            Ok(address) => self.tell(at, &address.to_le_bytes()),
            Err(error) => Some(error as u32),
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

    /// The range of `vm_deallocate(task, address, size)`, whose start is rounded down to a page.
    fn range(&self) -> KernResult<(u64, u64)> {
        let &[_, start, size, ..] = self.arguments;
        let first = start & !(PAGE_SIZE - 1);
        Ok((first, (start - first).checked_add(size).ok_or(KernError::InvalidArgument)?))
    }

    /// `vm_deallocate(task, address, size)` without waiting.
    fn try_deallocate(&self) -> Option<u32> {
        if self.arguments[2] == 0 {
            return Some(SUCCESS);
        }
        match self.range() {
            Ok((first, size)) => self.task().map().try_deallocate(first, size).map(code),
            Err(error) => Some(error as u32),
        }
    }

    /// `vm_deallocate(task, address, size)`.
    async fn deallocate(&self) -> KernResult {
        if self.arguments[2] == 0 {
            return Ok(());
        }
        let (first, size) = self.range()?;
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

    /// `mach_port_allocate(task, right, name)` without waiting.
    fn try_allocate_port(&self) -> Option<u32> {
        let right = PortRight::from_number(self.word(1));
        match right.and_then(|right| self.task().space().allocate(right)) {
            Ok(name) => {
                let written = self.task().map().try_copyout(self.arguments[2], &name.0.to_le_bytes());
                if !written {
                    // The name is given up, and the general way begins from the start.
                    let _ = self.task().space().destroy(name);
                }
                written.then_some(SUCCESS)
            }
            Err(error) => Some(error as u32),
        }
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
