//! The calls poll, select and epoll, and those that make files to wait for: event counters, timers,
//! signals.

use super::descriptor::{file, insert, open_file};
use crate::call::{Call, Done, Stop};
use crate::epoll::{Epoll, EpollEvent, EpollSettings};
use crate::eventfd::EventCounter;
use crate::kept::Continuation;
use crate::layout::file::{CLOSE_ON_EXEC, open_flags};
use crate::layout::time::{itimerspec, to_itimerspec, to_timespec, to_timeval};
use crate::layout::{Fields, Writer};
use crate::signalfd::SignalFile;
use crate::timerfd::{Clock, TimerFile};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use mach::Machine;
use unix::poll::{Readiness, Watch, poll as poll_files};
use unix::process::Resource;
use unix::signal::{RestartKind, SignalSet};
use unix::sync::{Turns, poll_once};
use unix::timer::Setting;
use unix::vfs::OpenFlags;
use unix::{Error, Result};

/// After this many entries of a poll, reading them lets other tasks run.
const TURN: u32 = 1024;

const IN: u32 = 1;
const PRI: u32 = 2;
const OUT: u32 = 4;
const ERR: u32 = 8;
const HUP: u32 = 0x10;
const NVAL: u16 = 0x20;
const RDNORM: u32 = 0x40;
const RDBAND: u32 = 0x80;
const WRNORM: u32 = 0x100;
const WRBAND: u32 = 0x200;
const RDHUP: u32 = 0x2000;

fn interest(events: u32) -> Readiness {
    let mut interest = Readiness::empty();
    interest.set(Readiness::READ, events & (IN | RDNORM) != 0);
    interest.set(Readiness::WRITE, events & (OUT | WRNORM | WRBAND) != 0);
    interest.set(Readiness::PRIORITY, events & (PRI | RDBAND) != 0);
    interest.set(Readiness::READ_HANGUP, events & RDHUP != 0);
    interest
}

/// The events in `ready` that the program asked for; errors and hang-ups are always included.
fn events(ready: Readiness, asked: u32) -> u32 {
    const EVENTS: [(Readiness, u32); 4] = [
        (Readiness::READ, IN | RDNORM),
        (Readiness::WRITE, OUT | WRNORM | WRBAND),
        (Readiness::PRIORITY, PRI | RDBAND),
        (Readiness::READ_HANGUP, RDHUP),
    ];
    let found = EVENTS.iter().filter(|(kind, _)| ready.contains(*kind)).fold(0, |all, (_, bits)| all | bits);
    let mut events = found & asked;
    events |= if ready.contains(Readiness::ERROR) { ERR } else { 0 };
    events | if ready.contains(Readiness::HANGUP) { HUP } else { 0 }
}

/// Only changes are reported (EPOLLET).
const EDGE: u32 = 1 << 31;
/// One event is reported (EPOLLONESHOT).
const ONCE: u32 = 1 << 30;

/// The events for which an epoll instance watches a file, as programs see them in /proc. A one-shot
/// file that was reported has none.
pub(crate) fn watched_events(settings: &EpollSettings) -> u32 {
    let how = if settings.edge { EDGE } else { 0 } | if settings.once { ONCE } else { 0 };
    let asked = events(settings.interest, IN | OUT | PRI | RDHUP) | ERR | HUP;
    if settings.disarmed { how } else { how | asked }
}

/// The monotonic time at which the duration `time` has passed.
fn after<M: Machine>(call: &Call<'_, M>, time: Duration) -> Duration {
    call.system().environment().monotonic().saturating_add(time)
}

/// The deadline for a time-out in milliseconds; `None` for a negative one, which never ends.
fn milliseconds<M: Machine>(call: &Call<'_, M>, timeout: i32) -> Option<Duration> {
    u64::try_from(timeout).ok().map(|timeout| after(call, Duration::from_millis(timeout)))
}

pub(crate) async fn poll<M: Machine>(call: &Call<'_, M>) -> Done {
    let deadline = milliseconds(call, call.int(2));
    poll_until(call, call.arg(0), call.uint(1).into(), deadline).await
}

/// poll(2) with its time-out as a deadline. After a signal without a handler, the call is
/// continued.
pub(crate) async fn poll_until<M: Machine>(
    call: &Call<'_, M>,
    array: u64,
    count: u64,
    deadline: Option<Duration>,
) -> Done {
    let done = poll_array(call, array, count, deadline, RestartKind::RestartBlock).await;
    if matches!(done, Err(Stop::Outcome(_))) {
        call.kept.set_continuation(Continuation::Poll { array, count, deadline });
    }
    done
}

async fn poll_array<M: Machine>(
    call: &Call<'_, M>,
    array: u64,
    count: u64,
    deadline: Option<Duration>,
    restart: RestartKind,
) -> Done {
    if count > call.thread.soft_limit(Resource::Files) {
        return Err(Error::EINVAL.into());
    }
    let mut entries = call.memory().read_bytes(array, count as usize * 8).await?;
    let descriptors = call.thread.descriptors();
    let (mut watches, mut places) = (Vec::new(), Vec::new());
    let room = watches.try_reserve_exact(count as usize).and(places.try_reserve_exact(count as usize));
    room.map_err(|_| Error::ENOMEM)?;
    let mut invalid = 0;
    let mut turns = Turns::every(TURN);
    for (index, entry) in entries.chunks_exact_mut(8).enumerate() {
        turns.step().await;
        let (descriptor, asked) = (entry.i32_at(0)?, entry.u16_at(4)?);
        entry[6..].fill(0);
        match open_file(&descriptors, descriptor) {
            _ if descriptor < 0 => {}
            Err(_) => {
                entry[6..].copy_from_slice(&NVAL.to_le_bytes());
                invalid += 1;
            }
            Ok(file) => {
                watches.push(Watch::new(file, interest(asked.into())));
                places.push((index, u32::from(asked)));
            }
        }
    }
    // A number that is no descriptor is reported as an event (POLLNVAL), so the call does not wait.
    let deadline = if invalid > 0 { Some(Duration::ZERO) } else { deadline };
    let environment = call.system().environment().clone();
    let end = deadline.map(|deadline| call.with_slack(deadline));
    let ready = call.wait(restart, poll_files(&*environment, &mut watches, end)).await?;
    for (watch, (index, asked)) in watches.iter().zip(places) {
        let found = events(watch.ready, asked) as u16;
        entries[8 * index + 6..8 * index + 8].copy_from_slice(&found.to_le_bytes());
    }
    call.write(array, &entries).await?;
    Ok((ready + invalid) as u64)
}

/// Up to this many files are looked at in an attempt to do poll or select without waiting.
const FEW: usize = 128;

/// Does [`poll`] if a file is ready, or if the call must not wait.
pub(crate) fn try_poll<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    try_poll_array(call, call.int(2) == 0)
}

/// Does [`ppoll`] in the same cases, if it does not change the signal mask.
pub(crate) fn try_ppoll<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(3) != 0 {
        return None;
    }
    try_poll_array(call, is_zero_time(call, 2)?)
}

/// Whether the timespec or timeval in argument `index` is 0; false without one. `None` if it cannot
/// be read now, or is not valid.
fn is_zero_time<M: Machine>(call: &Call<'_, M>, index: usize) -> Option<bool> {
    match call.arg(index) {
        0 => Some(false),
        address => {
            let time = call.try_read::<16>(address)?;
            let (seconds, fraction) = (time.i64_at(0).ok()?, time.i64_at(8).ok()?);
            // 999999 is valid in both units.
            (seconds >= 0 && (0..1_000_000).contains(&fraction)).then_some(seconds == 0 && fraction == 0)
        }
    }
}

fn try_poll_array<M: Machine>(call: &Call<'_, M>, immediate: bool) -> Option<Done> {
    let (address, count) = (call.arg(0), call.uint(1) as usize);
    if count > FEW || count as u64 > call.thread.soft_limit(Resource::Files) {
        return None;
    }
    let mut entries = [0; 8 * FEW];
    let entries = &mut entries[..8 * count];
    poll_once(call.thread.memory().copy_in(address, entries))?.ok()?;
    let descriptors = call.thread.descriptors();
    let mut ready = 0;
    for entry in entries.as_chunks_mut::<8>().0 {
        let [a, b, c, d, low, high, ..] = *entry;
        let (descriptor, asked) = (i32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([low, high]));
        let found = match descriptors.readiness(descriptor) {
            _ if descriptor < 0 => 0,
            Err(_) => NVAL,
            Ok(found) => {
                let found = found.intersection(interest(asked.into()) | Readiness::ALWAYS);
                events(found, asked.into()) as u16
            }
        };
        ready += u64::from(found != 0);
        entry[6..].copy_from_slice(&found.to_le_bytes());
    }
    if ready == 0 && !immediate {
        return None;
    }
    poll_once(call.thread.memory().copy_out(address, entries))?.ok()?;
    Some(Ok(ready))
}

/// Replaces the signal mask for this call by the one at `address`, if that is not 0.
pub(super) async fn temporary_mask<M: Machine>(call: &Call<'_, M>, address: u64, size: u64) -> Result<()> {
    if address == 0 {
        return Ok(());
    }
    if size != 8 {
        return Err(Error::EINVAL);
    }
    let mask = SignalSet::from_bits(u64::from_le_bytes(call.read(address).await?));
    let tid = call.tid();
    call.table(|table| table.set_temporary_mask(tid, mask))
}

/// Restores the mask that [`temporary_mask`] replaced, for a call that was not interrupted.
pub(super) fn restore_mask<M: Machine>(call: &Call<'_, M>, done: &Done) {
    if !matches!(done, Err(Stop::Outcome(_))) {
        let tid = call.tid();
        call.table(|table| table.end_temporary_mask(tid));
    }
}

/// How much time is left until `deadline`.
fn left<M: Machine>(call: &Call<'_, M>, deadline: Duration) -> Duration {
    deadline.saturating_sub(call.system().environment().monotonic())
}

pub(crate) async fn ppoll<M: Machine>(call: &Call<'_, M>) -> Done {
    let deadline = call.time(2).await?.map(|time| after(call, time));
    temporary_mask(call, call.arg(3), call.arg(4)).await?;
    let done = poll_array(call, call.arg(0), call.uint(1).into(), deadline, RestartKind::RestartNoHand).await;
    restore_mask(call, &done);
    if let Some(deadline) = deadline {
        // If the remaining time cannot be written to the program's memory, the call succeeds all
        // the same.
        let _ = call.write(call.arg(2), &to_timespec(left(call, deadline))).await;
    }
    done
}

pub(crate) async fn select<M: Machine>(call: &Call<'_, M>) -> Done {
    let deadline = match call.arg(4) {
        0 => None,
        address => {
            let time = call.read::<16>(address).await?;
            let (seconds, microseconds) = (time.i64_at(0)?, time.i64_at(8)?);
            let seconds = u64::try_from(seconds).map_err(|_| Error::EINVAL)?;
            let microseconds = u64::try_from(microseconds).map_err(|_| Error::EINVAL)?;
            let time = Duration::from_secs(seconds).saturating_add(Duration::from_micros(microseconds));
            Some(after(call, time))
        }
    };
    let done = select_sets(call, deadline).await;
    if let Some(deadline) = deadline {
        let _ = call.write(call.arg(4), &to_timeval(left(call, deadline))).await;
    }
    done
}

pub(crate) async fn pselect6<M: Machine>(call: &Call<'_, M>) -> Done {
    let deadline = call.time(4).await?.map(|time| after(call, time));
    if call.arg(5) != 0 {
        let pair = call.read::<16>(call.arg(5)).await?;
        temporary_mask(call, pair.u64_at(0)?, pair.u64_at(8)?).await?;
    }
    let done = select_sets(call, deadline).await;
    restore_mask(call, &done);
    if let Some(deadline) = deadline {
        let _ = call.write(call.arg(4), &to_timespec(left(call, deadline))).await;
    }
    done
}

/// Does [`select`] if a file is ready, or if the call must not wait.
pub(crate) fn try_select<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    try_select_sets(call, is_zero_time(call, 4)?)
}

/// Does [`pselect6`] in the same cases, if it does not change the signal mask.
pub(crate) fn try_pselect6<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    let mask = match call.arg(5) {
        0 => 0,
        pair => call.try_read::<16>(pair)?.u64_at(0).ok()?,
    };
    if mask != 0 { None } else { try_select_sets(call, is_zero_time(call, 4)?) }
}

/// The time that is left is what the program has given: no time has passed.
fn try_select_sets<M: Machine>(call: &Call<'_, M>, immediate: bool) -> Option<Done> {
    /// Words of a set for [`FEW`] descriptors and more: the descriptors that a program has.
    const WORDS: usize = 16;
    let count = usize::try_from(call.int(0)).ok()?.min(call.descriptor_limit());
    let words = count.div_ceil(64);
    if words > WORDS {
        return None;
    }
    let memory = call.thread.memory();
    let mut sets = [[0u8; 8 * WORDS]; 3];
    for (index, set) in sets.iter_mut().enumerate() {
        if call.arg(1 + index) != 0 {
            poll_once(memory.copy_in(call.arg(1 + index), &mut set[..8 * words]))?.ok()?;
        }
    }
    let descriptors = call.thread.descriptors();
    let asked = sets.iter().flat_map(|set| &set[..8 * words]).map(|byte| byte.count_ones() as usize);
    if asked.sum::<usize>() > FEW {
        return None;
    }
    let mut found = 0;
    for word in 0..words {
        let asked = sets.each_ref().map(|set| set.as_chunks::<8>().0[word]).map(u64::from_le_bytes);
        let beyond = if count < 64 * (word + 1) { u64::MAX << (count % 64) } else { 0 };
        let mut left = (asked[0] | asked[1] | asked[2]) & !beyond;
        let mut ready = [0u64; 3];
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let state = descriptors.readiness((64 * word) as i32 + bit as i32).ok()?;
            for ((ready, asked), (_, counts)) in ready.iter_mut().zip(asked).zip(KINDS) {
                if asked >> bit & 1 != 0 && state.intersects(counts) {
                    *ready |= 1 << bit;
                    found += 1;
                }
            }
        }
        for (set, ready) in sets.iter_mut().zip(ready) {
            set.as_chunks_mut::<8>().0[word] = ready.to_le_bytes();
        }
    }
    if found == 0 && !immediate {
        return None;
    }
    for (index, set) in sets.iter().enumerate() {
        if call.arg(1 + index) != 0 {
            poll_once(memory.copy_out(call.arg(1 + index), &set[..8 * words]))?.ok()?;
        }
    }
    Some(Ok(found))
}

/// For each of select's three sets: the readiness that its descriptors wait for, and the readiness
/// with which they are reported.
const KINDS: [(Readiness, Readiness); 3] = [
    (Readiness::READ, Readiness::READ.union(Readiness::HANGUP).union(Readiness::ERROR)),
    (Readiness::WRITE, Readiness::WRITE.union(Readiness::ERROR)),
    (Readiness::PRIORITY, Readiness::PRIORITY),
];

async fn select_sets<M: Machine>(call: &Call<'_, M>, deadline: Option<Duration>) -> Done {
    let count = usize::try_from(call.int(0)).map_err(|_| Error::EINVAL)?;
    let count = count.min(call.descriptor_limit().min(1 << 20));
    let size = count.div_ceil(64) * 8;
    let mut sets: [Vec<u8>; 3] = Default::default();
    for (index, set) in sets.iter_mut().enumerate() {
        *set = match call.arg(1 + index) {
            0 => alloc::vec![0; size],
            address => call.memory().read_bytes(address, size).await?,
        };
    }
    let descriptors = call.thread.descriptors();
    let mut watches = Vec::new();
    let mut numbers = Vec::new();
    for number in 0..count {
        let asks = |set: &Vec<u8>| set[number / 8] & (1 << (number % 8)) != 0;
        let asked = sets.iter().zip(KINDS).filter(|(set, _)| asks(set)).map(|(_, (kind, _))| kind);
        let asked = asked.fold(Readiness::empty(), |all, kind| all | kind);
        if !asked.is_empty() {
            watches.push(Watch::new(open_file(&descriptors, number as i32)?, asked));
            numbers.push((number, asked));
        }
    }
    let environment = call.system().environment().clone();
    let end = deadline.map(|deadline| call.with_slack(deadline));
    call.wait(RestartKind::RestartNoHand, poll_files(&*environment, &mut watches, end)).await?;
    sets.iter_mut().for_each(|set| set.fill(0));
    let mut found = 0;
    for (watch, (number, asked)) in watches.iter().zip(numbers) {
        for (set, (kind, counts)) in sets.iter_mut().zip(KINDS) {
            if asked.contains(kind) && watch.ready.intersects(counts) {
                set[number / 8] |= 1 << (number % 8);
                found += 1;
            }
        }
    }
    for (index, set) in sets.iter().enumerate() {
        call.write_optional(call.arg(1 + index), set).await?;
    }
    Ok(found)
}

pub(crate) fn epoll_create<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    if flags & !CLOSE_ON_EXEC != 0 {
        return Err(Error::EINVAL.into());
    }
    insert(call, Epoll::create(call.account()), flags & CLOSE_ON_EXEC != 0)
}

pub(crate) fn epoll_create_old<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.int(0) <= 0 { Err(Error::EINVAL.into()) } else { epoll_create(call, 0) }
}

fn epoll<M: Machine>(call: &Call<'_, M>) -> Result<Arc<Epoll>> {
    file(call, 0)?.object_as().ok_or(Error::EINVAL)
}

pub(crate) async fn epoll_ctl<M: Machine>(call: &Call<'_, M>) -> Done {
    const ADD: u32 = 1;
    const DELETE: u32 = 2;
    const MODIFY: u32 = 3;
    let epoll = epoll(call)?;
    let (descriptor, target) = (call.int(2), file(call, 2)?);
    if call.uint(1) == DELETE {
        epoll.remove(descriptor, &target)?;
        return Ok(0);
    }
    let event = call.read::<12>(call.arg(3)).await?;
    let bits = event.u32_at(0)?;
    let settings = EpollSettings {
        interest: interest(bits),
        data: event.u64_at(4)?,
        edge: bits & EDGE != 0,
        once: bits & ONCE != 0,
        disarmed: false,
    };
    match call.uint(1) {
        ADD => epoll.add(descriptor, &target, settings)?,
        MODIFY => epoll.modify(descriptor, &target, settings)?,
        _ => return Err(Error::EINVAL.into()),
    }
    Ok(0)
}

async fn epoll_wait_until<M: Machine>(call: &Call<'_, M>, deadline: Option<Duration>) -> Done {
    let limit = usize::try_from(call.int(2)).ok().filter(|limit| *limit > 0).ok_or(Error::EINVAL)?;
    let (epoll, environment) = (epoll(call)?, call.system().environment().clone());
    let end = deadline.map(|deadline| call.with_slack(deadline));
    let found = call.wait(RestartKind::Never, epoll.wait(&*environment, limit.min(65536), end)).await?;
    call.write(call.arg(1), &to_events(&found)).await?;
    Ok(found.len() as u64)
}

/// The events in the layout of epoll_wait.
fn to_events(found: &[EpollEvent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12 * found.len());
    for event in found {
        let ready = events(event.ready, IN | OUT | PRI | RDHUP);
        bytes.extend_from_slice(&Writer::<12>::new().u32(0, ready).u64(4, event.data).done());
    }
    bytes
}

/// Does [`epoll_wait`] if there are events, or if the call must not wait. `has_mask`: it is
/// [`epoll_pwait`], and must not change the signal mask.
pub(crate) fn try_epoll_wait<M: Machine>(call: &Call<'_, M>, has_mask: bool) -> Option<Done> {
    let limit = usize::try_from(call.int(2)).ok().filter(|limit| (1..=1024).contains(limit))?;
    if has_mask && call.arg(4) != 0 {
        return None;
    }
    let found = epoll(call).ok()?.harvest(limit);
    if found.is_empty() {
        return (call.int(3) == 0).then_some(Ok(0));
    }
    call.answer(&[(call.arg(1), &to_events(&found))], found.len() as u64)
}

pub(crate) async fn epoll_wait<M: Machine>(call: &Call<'_, M>) -> Done {
    epoll_wait_until(call, milliseconds(call, call.int(3))).await
}

pub(crate) async fn epoll_pwait<M: Machine>(call: &Call<'_, M>) -> Done {
    temporary_mask(call, call.arg(4), call.arg(5)).await?;
    let done = epoll_wait(call).await;
    restore_mask(call, &done);
    done
}

pub(crate) async fn epoll_pwait2<M: Machine>(call: &Call<'_, M>) -> Done {
    let deadline = call.time(3).await?.map(|time| after(call, time));
    temporary_mask(call, call.arg(4), call.arg(5)).await?;
    let done = epoll_wait_until(call, deadline).await;
    restore_mask(call, &done);
    done
}

const NONBLOCK: u32 = 0o4000;

/// The status flags of a new file, from the flags of its call. `others` are flags of the call that
/// are not status flags; any further flag is `EINVAL`.
fn status_flags(flags: u32, others: u32) -> Result<OpenFlags> {
    match flags & !(CLOSE_ON_EXEC | NONBLOCK | others) {
        0 => Ok(open_flags(flags).intersection(OpenFlags::NONBLOCK)),
        _ => Err(Error::EINVAL),
    }
}

pub(crate) fn eventfd<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    const SEMAPHORE: u32 = 1;
    let status = status_flags(flags, SEMAPHORE)?;
    let counter = EventCounter::create(call.uint(0).into(), flags & SEMAPHORE != 0, status);
    insert(call, counter, flags & CLOSE_ON_EXEC != 0)
}

pub(crate) fn timerfd_create<M: Machine>(call: &Call<'_, M>) -> Done {
    let clock = Clock::new(call.int(0))?;
    let status = status_flags(call.uint(1), 0)?;
    let timer =
        TimerFile::create(call.system().environment().clone(), &call.linux.clock_changes, clock, status);
    insert(call, timer, call.uint(1) & CLOSE_ON_EXEC != 0)
}

fn timer_file<M: Machine>(call: &Call<'_, M>) -> Result<Arc<TimerFile>> {
    file(call, 0)?.object_as().ok_or(Error::EINVAL)
}

pub(crate) async fn timerfd_settime<M: Machine>(call: &Call<'_, M>) -> Done {
    const ABSOLUTE: u32 = 1;
    const CANCEL_ON_SET: u32 = 2;
    if call.uint(1) & !(ABSOLUTE | CANCEL_ON_SET) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (timer, new) = (timer_file(call)?, itimerspec(&call.read(call.arg(2)).await?)?);
    let (absolute, cancels) = (call.uint(1) & ABSOLUTE != 0, call.uint(1) & CANCEL_ON_SET != 0);
    let ((value, interval), is_cancelled) = timer.set(new.value, new.interval, absolute, cancels);
    call.write_optional(call.arg(3), &to_itimerspec(Setting { value, interval })).await?;
    // The timer is set nevertheless.
    if is_cancelled { Err(Error::ECANCELED.into()) } else { Ok(0) }
}

pub(crate) async fn timerfd_gettime<M: Machine>(call: &Call<'_, M>) -> Done {
    let (value, interval) = timer_file(call)?.setting();
    call.write(call.arg(1), &to_itimerspec(Setting { value, interval })).await?;
    Ok(0)
}

pub(crate) async fn signalfd<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    if call.arg(2) != 8 {
        return Err(Error::EINVAL.into());
    }
    let status = status_flags(flags, 0)?;
    let mask = SignalSet::from_bits(u64::from_le_bytes(call.read(call.arg(1)).await?));
    if call.int(0) == -1 {
        let signals = SignalFile::create(call.thread, mask, status);
        return insert(call, signals, flags & CLOSE_ON_EXEC != 0);
    }
    let signals: Arc<SignalFile<M>> = file(call, 0)?.object_as().ok_or(Error::EINVAL)?;
    signals.set_mask(mask);
    Ok(call.int(0) as u64)
}
