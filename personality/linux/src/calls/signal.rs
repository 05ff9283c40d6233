//! Calls on signals: actions, masks, sending, waiting.

use crate::call::{Call, Done, Outcome, Stop};
use crate::layout::signal::{
    MINIMUM_STACK, action, information, optional_signal, signal, stack, to_action, to_information, to_stack,
};
use mach::Machine;
use unix::process::{Pid, Target};
use unix::signal::{RestartKind, SignalSet};
use unix::{Error, Result};

/// Checks the size of a signal set, which must be 8 bytes.
fn check_size(size: u64) -> Result<()> {
    if size == 8 { Ok(()) } else { Err(Error::EINVAL) }
}

pub(crate) async fn rt_sigaction<M: Machine>(call: &Call<'_, M>) -> Done {
    check_size(call.arg(3))?;
    let (pid, signal) = (call.pid(), signal(call.arg(0))?);
    let old = match call.arg(1) {
        0 => call.table(|table| Ok::<_, Error>(table.process(pid)?.actions().lock().get(signal)))?,
        address => {
            let new = action(&call.read(address).await?)?;
            call.table(|table| table.set_action(pid, signal, new))?
        }
    };
    call.write_optional(call.arg(2), &to_action(&old)).await?;
    Ok(0)
}

/// Does [`rt_sigaction`] without blocking; `None` if an argument is wrong or the program's memory
/// is not resident.
pub(crate) fn try_rt_sigaction<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    check_size(call.arg(3)).ok()?;
    let (pid, signal) = (call.pid(), signal(call.arg(0)).ok()?);
    let new = match call.arg(1) {
        0 => None,
        _ if SignalSet::UNMASKABLE.contains(signal) => return None,
        address => Some(action(&call.try_read(address)?).ok()?),
    };
    let old = call.table(|table| Some(table.process(pid).ok()?.actions().lock().get(signal)))?;
    call.try_write_optional(call.arg(2), &to_action(&old))?;
    if let Some(new) = new {
        call.table(|table| table.set_action(pid, signal, new)).ok()?;
    }
    Some(Ok(0))
}

async fn read_set<M: Machine>(call: &Call<'_, M>, address: u64) -> Result<SignalSet> {
    Ok(set_of(call.read(address).await?))
}

/// The set that these bytes of a program's memory are.
fn set_of(bytes: [u8; 8]) -> SignalSet {
    SignalSet::from_bits(u64::from_le_bytes(bytes))
}

/// The signal mask that `how` (SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK) makes of `old` and `set`.
fn changed_mask(how: u32, old: SignalSet, set: SignalSet) -> Result<SignalSet> {
    match how {
        0 => Ok(old | set),
        1 => Ok(old & !set),
        2 => Ok(set),
        _ => Err(Error::EINVAL),
    }
}

pub(crate) async fn rt_sigprocmask<M: Machine>(call: &Call<'_, M>) -> Done {
    check_size(call.arg(3))?;
    let tid = call.tid();
    let old = call.table(|table| table.thread(tid).map(|thread| thread.blocked()))?;
    if call.arg(1) != 0 {
        let set = read_set(call, call.arg(1)).await?;
        let new = changed_mask(call.uint(0), old, set)?;
        call.table(|table| table.set_mask(tid, new))?;
    }
    call.write_optional(call.arg(2), &old.bits().to_le_bytes()).await?;
    Ok(0)
}

/// Does [`rt_sigprocmask`] without blocking; `None` if a signal is pending that the new mask could
/// concern, an argument is wrong, or the program's memory is not resident.
pub(crate) fn try_rt_sigprocmask<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    check_size(call.arg(3)).ok()?;
    let tid = call.tid();
    let old = call.table(|table| {
        let (thread, process) = (table.thread(tid).ok()?, table.process_of(tid).ok()?);
        let quiet = thread.pending().set().is_empty() && process.pending().set().is_empty();
        quiet.then(|| thread.blocked())
    })?;
    let new = match call.arg(1) {
        0 => None,
        address => Some(changed_mask(call.uint(0), old, set_of(call.try_read(address)?)).ok()?),
    };
    call.try_write_optional(call.arg(2), &old.bits().to_le_bytes())?;
    if let Some(new) = new {
        call.table(|table| table.set_mask(tid, new)).ok()?;
    }
    Some(Ok(0))
}

pub(crate) async fn rt_sigpending<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.arg(1) > 8 {
        return Err(Error::EINVAL.into());
    }
    let tid = call.tid();
    let pending = call.table(|table| {
        let (thread, process) = (table.thread(tid)?, table.process_of(tid)?);
        Ok::<_, Error>((thread.pending().set() | process.pending().set()) & thread.blocked())
    })?;
    call.write(call.arg(0), &pending.bits().to_le_bytes()[..call.arg(1) as usize]).await?;
    Ok(0)
}

pub(crate) async fn rt_sigsuspend<M: Machine>(call: &Call<'_, M>) -> Done {
    check_size(call.arg(1))?;
    let mask = read_set(call, call.arg(0)).await?;
    let tid = call.tid();
    call.table(|table| table.set_temporary_mask(tid, mask))?;
    call.wait(RestartKind::RestartNoHand, core::future::pending()).await
}

pub(crate) async fn pause<M: Machine>(call: &Call<'_, M>) -> Done {
    call.wait(RestartKind::RestartNoHand, core::future::pending()).await
}

pub(crate) async fn rt_sigtimedwait<M: Machine>(call: &Call<'_, M>) -> Done {
    check_size(call.arg(3))?;
    let wanted = read_set(call, call.arg(0)).await?;
    let timeout = call.time(2).await?;
    let (tid, system) = (call.tid(), call.system());
    let deadline = timeout.map(|time| system.environment().monotonic().saturating_add(time));
    let waiting = system.processes().wait_signal(tid, wanted);
    let taken =
        call.wait(RestartKind::Never, super::time::until(&**system.environment(), deadline, waiting)).await?;
    let taken = taken.ok_or(Error::EAGAIN)?;
    call.write_optional(call.arg(1), &to_information(&taken)).await?;
    Ok(taken.signal.number().into())
}

pub(crate) fn kill<M: Machine>(call: &Call<'_, M>) -> Done {
    let signal = optional_signal(call.arg(1))?;
    let target = match call.int(0) {
        i32::MIN => return Err(Error::ESRCH.into()),
        -1 => Target::Everyone,
        0 => Target::Group(call.table(|table| Ok::<_, Error>(table.process(call.pid())?.group()))?),
        number @ 1.. => Target::Process(process_of(call, call.id(number)?)),
        number => Target::Group(call.id(-number)?),
    };
    let tid = call.tid();
    call.table(|table| table.kill(tid, target, signal))?;
    Ok(0)
}

/// The process whose id kill(2) gets: the id of any thread is accepted for its process.
fn process_of<M: Machine>(call: &Call<'_, M>, id: Pid) -> Pid {
    call.table(|table| table.thread(id).map_or(id, |thread| thread.pid()))
}

/// The id of a thread by its number. `EINVAL` unless that is positive, `ESRCH`.
fn thread_id<M: Machine>(call: &Call<'_, M>, number: i32) -> Result<Pid> {
    if number <= 0 { Err(Error::EINVAL) } else { call.id(number) }
}

pub(crate) fn tgkill<M: Machine>(call: &Call<'_, M>, has_process: bool) -> Done {
    let next = usize::from(has_process);
    let process = if has_process { Some(thread_id(call, call.int(0))?) } else { None };
    let (target, signal) = (thread_id(call, call.int(next))?, optional_signal(call.arg(next + 1))?);
    let tid = call.tid();
    call.table(|table| table.kill_thread(tid, process, target, signal))?;
    Ok(0)
}

pub(crate) async fn rt_sigqueueinfo<M: Machine>(call: &Call<'_, M>, to_thread: bool) -> Done {
    let next = usize::from(to_thread);
    let process = call.id(call.int(0))?;
    let signal = optional_signal(call.arg(next + 1))?;
    let bytes = call.read::<128>(call.arg(next + 2)).await?;
    let to_self = process == call.pid();
    let information = signal.map(|signal| information(signal, &bytes, to_self)).transpose()?;
    let tid = call.tid();
    if to_thread {
        let target = thread_id(call, call.int(1))?;
        call.table(|table| table.send_to_thread(tid, Some(process), target, signal, information))?;
    } else {
        let process = process_of(call, process);
        call.table(|table| table.send_to_process(tid, process, signal, information))?;
    }
    Ok(0)
}

pub(crate) async fn sigaltstack<M: Machine>(call: &Call<'_, M>) -> Done {
    let (tid, pointer) = (call.tid(), call.registers()?.rsp);
    let old = call.table(|table| table.thread(tid).map(|thread| thread.stack))?;
    if call.arg(0) != 0 {
        let new = stack(&call.read::<24>(call.arg(0)).await?)?;
        call.table(|table| table.thread_mut(tid)?.stack.replace(new, pointer, MINIMUM_STACK))?;
    }
    call.write_optional(call.arg(1), &to_stack(&old, pointer)).await?;
    Ok(0)
}

/// Does [`sigaltstack`] without the caller's registers, if it only asks and there is no stack:
/// where the caller's stack pointer is makes no difference then.
pub(crate) fn try_sigaltstack<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    let tid = call.tid();
    let old = call.table(|table| table.thread(tid).map(|thread| thread.stack)).ok()?;
    if call.arg(0) != 0 || old.is_set() {
        return None;
    }
    call.answer(&[(call.arg(1), &to_stack(&old, 0))], 0)
}

/// restart_syscall(2): continues a call that a signal interrupted.
pub(crate) async fn restart_syscall<M: Machine>(call: &Call<'_, M>) -> Done {
    use crate::kept::Continuation;
    match call.kept.take_continuation() {
        Some(Continuation::Sleep { clock, deadline, remaining }) => {
            super::time::sleep(call, clock, deadline, remaining).await
        }
        Some(Continuation::Futex { address, shared, expected, bits, deadline }) => {
            super::futex::wait_until(call, (address, shared), (expected, bits), Some(deadline)).await
        }
        Some(Continuation::Poll { array, count, deadline }) => {
            super::poll::poll_until(call, array, count, deadline).await
        }
        None => Err(Stop::Outcome(Outcome::Return(crate::errno::result(Err(Error::EINTR))))),
    }
}
