//! The system call futex(2).

use super::time::until;
use crate::call::{Call, Done};
use crate::futex::{Comparison, Futexes, MemoryWords, WakeOperation, holder};
use crate::kept::Continuation;
use alloc::boxed::Box;
use core::time::Duration;
use mach::Machine;
use unix::clock::{Clock, When};
use unix::signal::RestartKind;
use unix::sync::poll_once;
use unix::{Error, Result};

const WAIT: u32 = 0;
const WAKE: u32 = 1;
const REQUEUE: u32 = 3;
const CMP_REQUEUE: u32 = 4;
const WAKE_OP: u32 = 5;
const LOCK_PI: u32 = 6;
const UNLOCK_PI: u32 = 7;
const TRYLOCK_PI: u32 = 8;
const WAIT_BITSET: u32 = 9;
const WAKE_BITSET: u32 = 10;
const LOCK_PI2: u32 = 13;
const PRIVATE: u32 = 128;
const REALTIME: u32 = 256;

pub(crate) async fn futex<M: Machine>(call: &Call<'_, M>) -> Done {
    let (address, flags) = (call.arg(0), call.uint(1));
    let (command, shared) = (flags & !(PRIVATE | REALTIME), flags & PRIVATE == 0);
    if flags & REALTIME != 0 && !matches!(command, WAIT | WAIT_BITSET | LOCK_PI2) {
        return Err(Error::ENOSYS.into());
    }
    let memory = call.memory();
    let (words, futexes) = (MemoryWords(&*memory), &call.linux.futexes);
    let (value, count) = (call.uint(2), call.uint(3));
    // Locks have the numbers that threads have in their namespace; those of others have none.
    let thread = holder(call.thread.own_numbers());
    match command {
        WAIT => {
            let deadline = deadline(call, flags, true).await?;
            wait_until(call, (address, shared), (value, Futexes::ANY), deadline).await
        }
        WAIT_BITSET => {
            let deadline = deadline(call, flags, false).await?;
            wait_until(call, (address, shared), (value, call.uint(5)), deadline).await
        }
        WAKE => Ok(futexes.wake(&words, address, shared, limit(value), Futexes::ANY).await?.into()),
        WAKE_BITSET => Ok(futexes.wake(&words, address, shared, limit(value), call.uint(5)).await?.into()),
        REQUEUE | CMP_REQUEUE => {
            if (value as i32) < 0 || (count as i32) < 0 {
                return Err(Error::EINVAL.into());
            }
            let expected = (command == CMP_REQUEUE).then_some(call.uint(5));
            let moved = futexes.requeue(&words, address, call.arg(4), shared, value, count, expected).await?;
            Ok(match command {
                REQUEUE => moved.0.into(),
                _ => (moved.0 + moved.1).into(),
            })
        }
        WAKE_OP => {
            let (operation, comparison) = wake_operation(call.uint(5))?;
            let (first, second) = (address, call.arg(4));
            let (wake, also) = (limit(value), limit(count));
            let done =
                futexes.wake_operation(&words, first, second, shared, wake, also, operation, comparison);
            Ok(done.await?.into())
        }
        LOCK_PI | LOCK_PI2 => {
            // FUTEX_LOCK_PI's time is always on the wall clock.
            let clock = if command == LOCK_PI { REALTIME } else { flags };
            let deadline = deadline(call, clock, false).await?;
            let lives = |tid| {
                let found = i32::try_from(tid).ok().and_then(|tid| call.id(tid).ok());
                found.is_some_and(|tid| call.table(|table| table.thread(tid).is_ok()))
            };
            let locking = futexes.lock(&words, address, shared, thread, lives);
            // Boxed: only a command that waits needs this memory.
            let end = deadline.map(|deadline| call.with_slack(deadline));
            let locking = Box::pin(until(&**call.system().environment(), end, locking));
            let done = call.wait(RestartKind::RestartNoIntr, locking).await;
            match done {
                Ok(Some(locked)) => locked.map(|()| 0).map_err(Into::into),
                Ok(None) => {
                    futexes.give_up_lock(thread).await;
                    Err(Error::ETIMEDOUT.into())
                }
                Err(stop) => {
                    futexes.give_up_lock(thread).await;
                    Err(stop)
                }
            }
        }
        TRYLOCK_PI => {
            futexes.try_lock(&words, address, shared, thread).await?;
            Ok(0)
        }
        UNLOCK_PI => {
            futexes.unlock(&words, address, shared, thread).await?;
            Ok(0)
        }
        _ => Err(Error::ENOSYS.into()),
    }
}

/// Does [`futex`] if the command wakes waiters, or if it would wait for a word that has another
/// value already.
pub(crate) fn try_futex<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    let (address, flags) = (call.arg(0), call.uint(1));
    match flags & !(PRIVATE | REALTIME) {
        command @ (WAIT | WAIT_BITSET) => {
            let is_valid = address.is_multiple_of(4) && (command == WAIT || call.uint(5) != 0);
            let value = u32::from_le_bytes(call.try_read(address)?);
            let has_changed = is_valid && call.arg(3) == 0 && value != call.uint(2);
            has_changed.then(|| Err(Error::EAGAIN.into()))
        }
        WAKE | WAKE_BITSET | REQUEUE | CMP_REQUEUE | WAKE_OP => poll_once(futex(call)),
        // Locks with inheritance of priorities wait, or have waiters.
        _ => None,
    }
}

/// How many waiters to wake: Linux wakes one even if the program asks for none, or for a negative
/// number.
fn limit(value: u32) -> u32 {
    (value as i32).max(1) as u32
}

/// The deadline in argument 3: a duration (FUTEX_WAIT), or a time on the clock that the flags name.
async fn deadline<M: Machine>(call: &Call<'_, M>, flags: u32, relative: bool) -> Result<Option<Duration>> {
    let Some(time) = call.time(3).await? else { return Ok(None) };
    let system = call.system();
    let clock = if flags & REALTIME != 0 { Clock::Realtime } else { Clock::Monotonic };
    let when = if relative { When::After(time) } else { When::At(time) };
    clock.deadline(&**system.environment(), system.processes(), when).map(Some)
}

/// Waits for a futex word to change, until `deadline`. A wait with a deadline is continued after a
/// signal without a handler.
pub(crate) async fn wait_until<M: Machine>(
    call: &Call<'_, M>,
    (address, shared): (u64, bool),
    (expected, bits): (u32, u32),
    deadline: Option<Duration>,
) -> Done {
    let (memory, system) = (call.memory(), call.system());
    let words = MemoryWords(&*memory);
    let waiting = call.linux.futexes.wait(&words, address, shared, expected, bits);
    let restart = if deadline.is_some() { RestartKind::RestartBlock } else { RestartKind::RestartSys };
    let end = deadline.map(|deadline| call.with_slack(deadline));
    let waiting = Box::pin(until(&**system.environment(), end, waiting));
    match call.wait(restart, waiting).await {
        Ok(Some(woken)) => woken.map(|()| 0).map_err(Into::into),
        Ok(None) => Err(Error::ETIMEDOUT.into()),
        Err(stop) => {
            if let Some(deadline) = deadline {
                let rest = Continuation::Futex { address, shared, expected, bits, deadline };
                call.kept.set_continuation(rest);
            }
            Err(stop)
        }
    }
}

fn wake_operation(encoded: u32) -> Result<(WakeOperation, Comparison)> {
    const SHIFT: u32 = 8;
    let signed = |bits: u32| ((bits << 20) as i32 >> 20) as u32;
    let (kind, comparison) = (encoded >> 28, encoded >> 24 & 15);
    let (argument, against) = (signed(encoded >> 12 & 0xfff), signed(encoded & 0xfff));
    let argument = if kind & SHIFT != 0 { 1u32.wrapping_shl(argument) } else { argument };
    let operation = match kind & !SHIFT {
        0 => WakeOperation::Set(argument),
        1 => WakeOperation::Add(argument),
        2 => WakeOperation::Or(argument),
        3 => WakeOperation::AndNot(argument),
        4 => WakeOperation::Xor(argument),
        _ => return Err(Error::ENOSYS),
    };
    let comparison = match comparison {
        0 => Comparison::Equal(against),
        1 => Comparison::NotEqual(against),
        2 => Comparison::Less(against),
        3 => Comparison::LessOrEqual(against),
        4 => Comparison::Greater(against),
        5 => Comparison::GreaterOrEqual(against),
        _ => return Err(Error::ENOSYS),
    };
    Ok((operation, comparison))
}
