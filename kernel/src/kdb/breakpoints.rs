//! Breakpoints and single steps.
//!
//! A breakpoint is an address in whatever space is loaded: the processor watches it, nothing is
//! written into programs. It holds on the processor that it was set on, and there programs have
//! none of their own meanwhile. The debugger's own work meets none: they are off while it is
//! entered.
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, Ordering};

use super::show::Id;
use super::{Resume, Stopped, enter_debugger};
use crate::arch::{self, BREAKPOINTS, Breakpoint, DebugStatus, RESUME_FLAG, STEP_FLAG, StopAt};
use crate::console::{self, Console};
use crate::sync::SpinLock;
use crate::thread::ThreadRef;

static TABLE: SpinLock<[Option<Breakpoint>; BREAKPOINTS]> = SpinLock::new([None; BREAKPOINTS]);

/// The number of the thread that executes one instruction for the debugger; [`NO_THREAD`] or
/// [`KERNEL`].
static STEPPING: AtomicU32 = AtomicU32::new(NO_THREAD);
const NO_THREAD: u32 = u32::MAX;
const KERNEL: u32 = u32::MAX - 1;

/// Why a breakpoint cannot be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SetError {
    /// All breakpoints of the processor are in use.
    Full,
    /// A write of that size at that address cannot be watched.
    Shape,
    /// The address is not canonical.
    Address,
}

impl fmt::Display for SetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(formatter, "all {BREAKPOINTS} breakpoints are in use: clear one"),
            Self::Shape => {
                write!(formatter, "writes into 1, 2, 4 or 8 bytes are watched, at a multiple of the size")
            }
            Self::Address => write!(formatter, "the address is not canonical"),
        }
    }
}

/// Adds a breakpoint; it works from when the debugger is left. Returns its number.
pub(super) fn set(breakpoint: Breakpoint) -> Result<usize, SetError> {
    let right_shape = match breakpoint.at {
        StopAt::Execution => true,
        StopAt::Write { bytes } => {
            matches!(bytes, 1 | 2 | 4 | 8) && breakpoint.address.is_multiple_of(bytes.into())
        }
    };
    if !right_shape {
        return Err(SetError::Shape);
    }
    if !arch::is_canonical(breakpoint.address) {
        return Err(SetError::Address);
    }
    let mut table = TABLE.lock();
    let number = table.iter().position(Option::is_none).ok_or(SetError::Full)?;
    table[number] = Some(breakpoint);
    Ok(number)
}

/// Removes a breakpoint; whether there was one of that number.
pub(super) fn clear(number: u64) -> bool {
    let mut table = TABLE.lock();
    usize::try_from(number).ok().and_then(|number| table.get_mut(number)?.take()).is_some()
}

/// Prints them.
pub(super) fn list(out: &mut impl Write) -> fmt::Result {
    let table = *TABLE.lock();
    if table.iter().all(Option::is_none) {
        return writeln!(out, "no breakpoints");
    }
    for (number, breakpoint) in table.iter().enumerate() {
        match breakpoint {
            None => {}
            Some(Breakpoint { address, at: StopAt::Execution }) => {
                writeln!(out, "{number}: execution at {address:#018x}")?;
            }
            Some(Breakpoint { address, at: StopAt::Write { bytes } }) => {
                writeln!(out, "{number}: writes into {bytes} bytes at {address:#018x}")?;
            }
        }
    }
    Ok(())
}

/// Disables all breakpoints while the debugger runs.
pub(super) fn suspend() {
    arch::disable_breakpoints();
}

/// The debugger is left. A step stops in any case, and a second debug exception in the midst of the
/// first would lose it: breakpoints stay off meanwhile.
pub(super) fn resume_program(how: Resume) {
    if how == Resume::Go {
        arch::load_breakpoints(&TABLE.lock());
    }
}

/// Enters the debugger while `thread`, the current one, is stopped at user level, and lets it go on
/// as is wanted.
pub(super) fn stop_thread(thread: ThreadRef) {
    let step = enter_debugger(Stopped::Thread(thread)) == Resume::Step;
    let flags = thread.registers.rflags.get() & !STEP_FLAG;
    // If the thread stopped because of a breakpoint, it would stop again before it has done
    // anything.
    thread.registers.rflags.set(flags | RESUME_FLAG | if step { STEP_FLAG } else { 0 });
    STEPPING.store(if step { thread.id().number() } else { NO_THREAD }, Ordering::Relaxed);
    thread.return_with_all_registers();
}

/// A debug exception of the current thread at user level: `false` if it is the program's own
/// affair.
pub fn user_debug_exception(status: DebugStatus, current: ThreadRef) -> bool {
    let Some(reason) = reason(status, current.id().number()) else { return false };
    console::print(format_args!("{reason} thread {}\n", Id(current.id())));
    stop_thread(current);
    true
}

/// A debug exception in the kernel, at `address`: the flags to go on with, or `None` if the
/// debugger did not ask for it.
pub fn kernel_debug_exception(
    status: DebugStatus,
    address: u64,
    frame: &impl fmt::Display,
    flags: u64,
) -> Option<u64> {
    let reason = reason(status, KERNEL)?;
    console::print(format_args!("{reason} the kernel at {address:#018x}\n{frame}\n"));
    let step = enter_debugger(Stopped::Kernel) == Resume::Step;
    STEPPING.store(if step { KERNEL } else { NO_THREAD }, Ordering::Relaxed);
    Some(flags & !STEP_FLAG | RESUME_FLAG | if step { STEP_FLAG } else { 0 })
}

/// Why thread `number` has caused a debug exception, if that is one of the debugger's.
fn reason(status: DebugStatus, number: u32) -> Option<Reason> {
    let DebugStatus { breakpoints, step } = status;
    let table = *TABLE.lock();
    // On another processor than that of the debugger's breakpoints, a program may have its own.
    let breakpoints = if arch::debugger_stops() { breakpoints } else { 0 };
    let met = (0..BREAKPOINTS).find(|&number| breakpoints & 1 << number != 0 && table[number].is_some());
    let stepped = step && STEPPING.load(Ordering::Relaxed) == number;
    match met {
        Some(number) => Some(Reason::Breakpoint(number)),
        None => stepped.then_some(Reason::Step),
    }
}

/// Why the debugger was entered.
enum Reason {
    Breakpoint(usize),
    Step,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Breakpoint(number) => write!(formatter, "breakpoint {number} stops"),
            Self::Step => write!(formatter, "after one instruction of"),
        }
    }
}

/// Shows where the thread is that stopped, as the debugger is entered.
pub(super) fn show_stopped(thread: ThreadRef) {
    super::show::execute(super::command::Command::Thread(thread.id().number()), &mut Console);
}
