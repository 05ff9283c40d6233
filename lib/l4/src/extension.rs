//! The extensions: ownership and confinement, thread state, notification.
//! `docs/src/reference/extensions.md` is their reference.

use crate::{syscall, thread, utcb};
use x2::extension::{MapItem, MessageSource, SpaceOption, SystemCallMode, TableRequest, thread_state};
use x2::protocol::exception;
use x2::{ErrorCode, ThreadId};

/// Makes the system call SpaceOptions for the space of thread `space`. Returns the two result
/// words.
pub fn space_options(space: ThreadId, option: SpaceOption, values: [u64; 2]) -> thread::Result<[u64; 2]> {
    let (result, answers) = syscall::space_options(space.raw(), option as u64, values);
    thread::check(result).map(|()| answers)
}

/// How many bytes of kernel memory the account of a space has in use (only for privileged spaces
/// and the space's owner).
pub fn kernel_memory(space: ThreadId) -> thread::Result<u64> {
    space_options(space, SpaceOption::Information, [0; 2]).map(|[used, _]| used)
}

/// Limits the kernel memory of a space to `bytes` (privileged); `u64::MAX`: no limit.
pub fn set_quota(space: ThreadId, bytes: u64) -> thread::Result<()> {
    space_options(space, SpaceOption::Quota, [bytes, 0]).map(drop)
}

/// Gives a space to `owner` (privileged); nil takes it from its owner.
pub fn set_owner(space: ThreadId, owner: ThreadId) -> thread::Result<()> {
    space_options(space, SpaceOption::Owner, [owner.raw(), 0]).map(drop)
}

/// Sets what a foreign `syscall` does in a space.
pub fn set_system_call_mode(space: ThreadId, mode: SystemCallMode) -> thread::Result<()> {
    space_options(space, SpaceOption::SystemCallMode, [mode as u64, 0]).map(drop)
}

/// Sets where bounce mode continues in a space.
pub fn set_emulation_entry(space: ThreadId, entry: u64) -> thread::Result<()> {
    space_options(space, SpaceOption::EmulationEntry, [entry, 0]).map(drop)
}

/// Lets threads of `space` send to the space of `other`, or not.
pub fn set_open(space: ThreadId, other: ThreadId, open: bool) -> thread::Result<()> {
    space_options(space, SpaceOption::Open, [other.raw(), open.into()]).map(drop)
}

/// The write with which a device raises a message-signalled interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptMessage {
    /// Address to which the device writes.
    pub address: u64,
    /// Value that the device writes.
    pub data: u64,
}

/// The message by which a device whose messages are not remapped raises the message-signalled
/// interrupt with thread number `number` (privileged).
pub fn interrupt_message(number: u32) -> thread::Result<InterruptMessage> {
    interrupt_message_of(number, MessageSource::Unchecked)
}

/// The message by which `source` raises the message-signalled interrupt with thread number `number`
/// (privileged). If messages are remapped, no other source raises it from now on, as soon as the
/// units have forgotten what they have read.
pub fn interrupt_message_of(number: u32, source: MessageSource) -> thread::Result<InterruptMessage> {
    let values = [number.into(), source.word()];
    let [address, data] = space_options(ThreadId::NIL, SpaceOption::InterruptMessage, values)?;
    Ok(InterruptMessage { address, data })
}

/// Makes a request about the table of interrupts (privileged). Returns what the units' register of
/// the table's address has to hold, and how many I/O APICs have no source yet.
pub fn interrupt_table(request: TableRequest) -> thread::Result<[u64; 2]> {
    space_options(ThreadId::NIL, SpaceOption::InterruptTable, request.words())
}

/// Carries out a batch of MapControl items (at most
/// [`MAX_MAP_ITEMS`](x2::extension::MAX_MAP_ITEMS)) on the space of thread `space`, which the
/// caller's space owns. An error contains the number of the item that failed; earlier items have
/// been carried out.
pub fn map_control(
    space: ThreadId,
    items: &mut [MapItem],
) -> core::result::Result<(), (usize, Option<ErrorCode>)> {
    // SAFETY: the items belong to this program, and are borrowed exclusively.
    let (result, done) =
        unsafe { syscall::map_control(space.raw(), items.as_mut_ptr() as u64, items.len() as u64) };
    thread::check(result).map_err(|error| (done as usize, error))
}

/// Carries out one MapControl item on the space of thread `space`, which the caller's space owns.
/// The item is passed in registers. Returns the item's answer.
#[inline]
pub fn map_control_one(space: ThreadId, item: &MapItem) -> core::result::Result<u64, Option<ErrorCode>> {
    let (result, answer) = syscall::map_control_one(space.raw(), item);
    thread::check(result).map(|()| answer)
}

/// Sets notification bits of a thread. Never blocks.
pub fn notify(thread: ThreadId, bits: u64) -> thread::Result<()> {
    thread::check(syscall::notify(thread.raw(), bits))
}

/// The state of a thread, as ThreadState returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State(pub u64);

impl State {
    /// Whether the thread is halted.
    pub fn is_halted(self) -> bool {
        self.0 & thread_state::IS_HALTED != 0
    }

    /// Whether the thread waits for the answer to a message that the kernel has sent in its name.
    pub fn awaits_answer(self) -> bool {
        self.0 & thread_state::AWAITS_ANSWER != 0
    }

    /// Whether a recall of the thread is pending.
    pub fn is_recalled(self) -> bool {
        self.0 & thread_state::RECALL_PENDING != 0
    }

    /// Whether the thread has used x87, SSE or AVX, or been given such registers. Otherwise its
    /// extended state is the initial one.
    pub fn has_extended_state(self) -> bool {
        self.0 & thread_state::HAS_EXTENDED_STATE != 0
    }
}

/// The integer registers of a thread, in the order of the exception message, then the FS and GS
/// bases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers(pub [u64; 20]);

impl Registers {
    /// Index of the FS base among the registers.
    pub const FS_BASE: usize = 19;
    /// Index of the GS base among the registers.
    pub const GS_BASE: usize = 20;

    /// The value of the register that belongs to message register `index` (1..=20): see
    /// [`exception`], [`FS_BASE`](Self::FS_BASE) and [`GS_BASE`](Self::GS_BASE).
    pub fn get(&self, index: usize) -> u64 {
        self.0[index - 1]
    }

    /// Sets the register that belongs to message register `index`.
    pub fn set(&mut self, index: usize, value: u64) {
        self.0[index - 1] = value;
    }

    /// The instruction pointer.
    pub fn rip(&self) -> u64 {
        self.get(exception::RIP)
    }
}

/// The breakpoints of a thread, in the formats of the debug registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Breakpoints {
    /// The addresses, as in DR0 to DR3: of the user area.
    pub addresses: [u64; 4],
    /// Which are enabled, conditions and sizes, as bits 0 to 7 and 16 to 31 of DR7.
    pub control: u64,
    /// Why the thread's last debug exception came, as in DR6. It is only read.
    pub status: u64,
}

/// Makes the system call ThreadState without a buffer: `control` must not have the bits for
/// extended state.
///
/// # Safety
/// If registers are written, the thread must be able to continue with them.
unsafe fn call(thread: ThreadId, control: u64) -> thread::Result<State> {
    // SAFETY: no buffer is used; the rest is the caller's promise.
    let (result, state, _) = unsafe { syscall::thread_state(thread.raw(), control, 0, 0) };
    thread::check(result).map(|()| State(state))
}

/// Reads the state of a thread whose space the caller's space owns.
pub fn state(thread: ThreadId) -> thread::Result<State> {
    // SAFETY: the call only reads; it changes nothing of the thread.
    unsafe { call(thread, 0) }
}

/// Makes an owned thread send an exception message before its next instruction at user level.
pub fn recall(thread: ThreadId) -> thread::Result<State> {
    // SAFETY: no register changes.
    unsafe { call(thread, thread_state::RECALL) }
}

/// Reads the integer registers of a thread that does not run, in an owned space. The caller's
/// message registers are overwritten.
pub fn read_registers(thread: ThreadId) -> thread::Result<Registers> {
    // SAFETY: the call only reads; it changes nothing of the thread.
    unsafe { call(thread, thread_state::READ_REGISTERS) }?;
    Ok(Registers(core::array::from_fn(|index| utcb::message_register(index + 1))))
}

/// Writes the integer registers of a thread that does not run, in an owned space. The caller's
/// message registers are overwritten.
///
/// # Safety
/// The thread must be able to continue with these registers.
pub unsafe fn write_registers(thread: ThreadId, registers: &Registers) -> thread::Result<State> {
    for (index, &value) in registers.0.iter().enumerate() {
        utcb::set_message_register(index + 1, value);
    }
    // SAFETY: the caller promises that the thread can continue with these registers.
    unsafe { call(thread, thread_state::WRITE_REGISTERS) }
}

/// Reads the integer registers of a thread that does not run, in an owned space, and exchanges its
/// extended state for the one in `image`: the beginning of an image in XSAVE's standard format is
/// enough, if its header says that the rest is initial. Returns the registers and how many bytes of
/// the old extended state are in `image`. The caller's message registers are overwritten.
pub fn exchange_extended_state(thread: ThreadId, image: &mut [u8]) -> thread::Result<(Registers, usize)> {
    let control = thread_state::READ_REGISTERS | thread_state::READ_EXTENDED | thread_state::WRITE_EXTENDED;
    // SAFETY: the kernel reads and writes within the image. The owner of the other thread is
    // responsible for Rust code in it.
    let (result, _, read) = unsafe {
        syscall::thread_state(thread.raw(), control, image.as_mut_ptr() as u64, image.len() as u64)
    };
    thread::check(result)?;
    Ok((Registers(core::array::from_fn(|index| utcb::message_register(index + 1))), read as usize))
}

/// Writes the integer registers and the extended state of a thread that does not run, in an owned
/// space. The caller's message registers are overwritten.
///
/// # Safety
/// The thread must be able to continue with these registers.
pub unsafe fn write_all(thread: ThreadId, registers: &Registers, image: &[u8]) -> thread::Result<()> {
    for (index, &value) in registers.0.iter().enumerate() {
        utcb::set_message_register(index + 1, value);
    }
    let control = thread_state::WRITE_REGISTERS | thread_state::WRITE_EXTENDED;
    // SAFETY: the kernel reads only the image; the caller promises that the thread can continue.
    let (result, ..) =
        unsafe { syscall::thread_state(thread.raw(), control, image.as_ptr() as u64, image.len() as u64) };
    thread::check(result)
}

/// Reads the breakpoints of a thread that does not run, in an owned space. The caller's message
/// registers are overwritten.
pub fn read_breakpoints(thread: ThreadId) -> thread::Result<Breakpoints> {
    // SAFETY: the call only reads; it changes nothing of the thread.
    unsafe { call(thread, thread_state::READ_BREAKPOINTS) }?;
    Ok(Breakpoints {
        addresses: core::array::from_fn(|index| {
            utcb::message_register(thread_state::BREAKPOINT_ADDRESSES + index)
        }),
        control: utcb::message_register(thread_state::BREAKPOINT_CONTROL),
        status: utcb::message_register(thread_state::BREAKPOINT_STATUS),
    })
}

/// Sets the breakpoints of a thread that does not run, in an owned space: it causes a debug
/// exception (1) at each. The caller's message registers are overwritten.
pub fn write_breakpoints(thread: ThreadId, breakpoints: &Breakpoints) -> thread::Result<State> {
    for (address, index) in breakpoints.addresses.into_iter().zip(thread_state::BREAKPOINT_ADDRESSES..) {
        utcb::set_message_register(index, address);
    }
    utcb::set_message_register(thread_state::BREAKPOINT_CONTROL, breakpoints.control);
    // SAFETY: no register changes with which the thread continues.
    unsafe { call(thread, thread_state::WRITE_BREAKPOINTS) }
}

/// Sets the exception handler and the pager of an owned thread; `None` leaves one unchanged.
pub fn set_handlers(
    thread: ThreadId,
    exception_handler: Option<ThreadId>,
    pager: Option<ThreadId>,
) -> thread::Result<()> {
    let mut control = 0;
    if let Some(handler) = exception_handler {
        utcb::set_message_register(21, handler.raw());
        control |= thread_state::SET_EXCEPTION_HANDLER;
    }
    if let Some(pager) = pager {
        utcb::set_message_register(22, pager.raw());
        control |= thread_state::SET_PAGER;
    }
    // SAFETY: no register changes.
    unsafe { call(thread, control) }.map(drop)
}

/// Reads the extended state of an owned thread that does not run. Returns its size in bytes.
pub fn read_extended_state(thread: ThreadId, buffer: &mut [u8]) -> thread::Result<usize> {
    let (control, address) = (thread_state::READ_EXTENDED, buffer.as_mut_ptr() as u64);
    // SAFETY: the kernel writes within the buffer.
    let (result, _, read) =
        unsafe { syscall::thread_state(thread.raw(), control, address, buffer.len() as u64) };
    thread::check(result).map(|()| read as usize)
}

/// Writes the extended state of an owned thread that does not run.
pub fn write_extended_state(thread: ThreadId, image: &[u8]) -> thread::Result<()> {
    let (control, address) = (thread_state::WRITE_EXTENDED, image.as_ptr() as u64);
    // SAFETY: the kernel reads only the image. The owner of the other thread is responsible for
    // Rust code in it.
    let (result, ..) = unsafe { syscall::thread_state(thread.raw(), control, address, image.len() as u64) };
    thread::check(result)
}
