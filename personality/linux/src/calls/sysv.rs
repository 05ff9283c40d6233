//! System V interprocess communication: shmget, semget, msgget and the calls that go with them.

use super::time::until;
use crate::call::{Call, Done};
use crate::layout::sysv as layout;
use crate::layout::{Fields, Writer};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::exec::Rights;
use unix::memory::{NewMapping, Place, RegionKind};
use unix::namespace::ObjectNamespace;
use unix::signal::RestartKind;
use unix::sysv::User;
use unix::sysv::messages::{self, Receive, Which};
use unix::sysv::objects::{Access, Find, Object, Registry};
use unix::sysv::semaphores::{self, Operation};
use unix::sysv::shared_memory::{self, Files};
use unix::{Error, Privilege, Result};

const CREATE: u32 = 0o1000;
const EXCLUSIVE: u32 = 0o2000;
const NO_WAIT: u32 = 0o4000;

const REMOVE: u32 = 0;
const SET: u32 = 1;
const STAT: u32 = 2;
const INFO: u32 = 3;
/// A bit that the C library of other machines sets in commands.
const VERSION: u32 = 0x100;

/// The objects of the caller's namespace.
fn objects<M: Machine>(call: &Call<'_, M>) -> Arc<ObjectNamespace> {
    call.thread.namespaces().objects.clone()
}

fn user<M: Machine>(call: &Call<'_, M>) -> User {
    User {
        identity: call.thread.credentials().effective_identity(),
        owner: objects(call).owner().clone(),
        process: call.pid().number(),
        now: call.system().environment().realtime().seconds,
        account: call.account(),
    }
}

fn find(key: i32, flags: u32) -> Find {
    Find { key, create: flags & CREATE != 0, exclusive: flags & EXCLUSIVE != 0, mode: flags & 0o777 }
}

/// The object that a command names: by its id, or, if `by_index` says so, by its index. `check`
/// says whether its reader needs permission.
fn object<'a, T: Object>(
    registry: &'a Registry<T>,
    user: &User,
    number: i32,
    by_index: bool,
    check: bool,
) -> Result<(i32, &'a T)> {
    let (id, object) = if by_index { registry.at(number)? } else { (number, registry.get(number)?) };
    if check {
        object.permission().check(user, Access::Read)?;
    }
    Ok((id, object))
}

pub(crate) async fn shmget<M: Machine>(call: &Call<'_, M>) -> Done {
    const HUGE: u32 = 0o4000;
    let (user, find, size) = (user(call), find(call.int(0), call.uint(2)), call.arg(1));
    let objects = objects(call);
    let segments = &objects.system_v.segments;
    if let Some(id) = segments.find(&user, find, size)? {
        return Ok(id as u64);
    }
    if call.uint(2) & HUGE != 0 {
        // There are no huge pages here.
        return Err(Error::ENOMEM.into());
    }
    let context = call.thread.context();
    let caller = context.caller();
    let name = format!("SYSV{:08x}", find.key).into_bytes();
    let [writable, readable] = caller.make_shared_memory(name, size.next_multiple_of(4096)).await?;
    Ok(segments.add(&user, find, size, Files { writable, readable })? as u64)
}

pub(crate) async fn shmat<M: Machine>(call: &Call<'_, M>) -> Done {
    const READ_ONLY: u32 = 0o10000;
    const ROUND: u32 = 0o20000;
    const REMAP: u32 = 0o40000;
    const EXECUTE: u32 = 0o100000;
    let (mut address, flags) = (call.arg(1), call.uint(2));
    if address != 0 && flags & ROUND != 0 {
        address &= !4095;
    }
    if !address.is_multiple_of(4096) || (address == 0 && flags & REMAP != 0) {
        return Err(Error::EINVAL.into());
    }
    let write = flags & READ_ONLY == 0;
    let (file, size) = objects(call).system_v.segments.attach(&user(call), call.int(0), write)?;
    let place = match address {
        0 => Place::Hint(0),
        address if flags & REMAP != 0 => Place::Fixed(address),
        address => Place::FixedFree(address),
    };
    let new = NewMapping {
        place,
        length: size,
        rights: Rights { read: true, write, execute: flags & EXECUTE != 0 },
        shared: true,
        file: Some((&file, 0)),
        grows_down: false,
        populate: false,
        locked: false,
    };
    let mapped = call.memory().map_new(&new, &call.thread.limits()).await;
    Ok(mapped.map_err(|error| if error == Error::EEXIST { Error::EINVAL } else { error })?)
}

/// shmdt(2): removes all parts of the mapping of a segment that begins at the address.
pub(crate) async fn shmdt<M: Machine>(call: &Call<'_, M>) -> Done {
    let (start, memory) = (call.arg(0), call.memory());
    let part = |address| {
        let memory = memory.clone();
        async move { memory.regions_from(address, 1).await.into_iter().next() }
    };
    let first = part(start).await.filter(|region| region.range.start == start).ok_or(Error::EINVAL)?;
    let RegionKind::File { file, offset: 0 } = first.kind else { return Err(Error::EINVAL.into()) };
    if !objects(call).system_v.segments.detach(&user(call), &file) {
        return Err(Error::EINVAL.into());
    }
    let mut next = Some(start);
    while let Some(at) = next.take() {
        let Some(region) = part(at).await else { break };
        let RegionKind::File { file: own, offset } = &region.kind else { break };
        let is_part = Arc::ptr_eq(own, &file) && region.range.start.wrapping_sub(start) == *offset;
        if !is_part || region.range.start != at {
            break;
        }
        memory.unmap(at, region.length()).await?;
        next = Some(region.range.end);
    }
    Ok(0)
}

pub(crate) async fn shmctl<M: Machine>(call: &Call<'_, M>) -> Done {
    const LOCK: u32 = 11;
    const UNLOCK: u32 = 12;
    const STAT_INDEX: u32 = 13;
    const SHM_INFO: u32 = 14;
    const STAT_ANY: u32 = 15;
    let (id, command, to, user) = (call.int(0), call.uint(1) & !VERSION, call.arg(2), user(call));
    let objects = objects(call);
    let segments = &objects.system_v.segments;
    match command {
        INFO => {
            let limit = shared_memory::SIZE_LIMIT;
            let words =
                [limit, 1, shared_memory::SEGMENTS_LIMIT.into(), shared_memory::SEGMENTS_LIMIT.into(), limit];
            let bytes: Vec<u8> = words.into_iter().chain([0; 4]).flat_map(u64::to_le_bytes).collect();
            call.write(to, &bytes).await?;
            Ok(segments.with(|segments| segments.largest_index()).into())
        }
        SHM_INFO => {
            let (used, pages, largest) = segments.with(|segments| {
                let pages: u64 = segments.iter().map(|(_, segment)| segment.size.div_ceil(4096)).sum();
                (segments.len() as u32, pages, segments.largest_index())
            });
            call.write(to, &Writer::<48>::new().u32(0, used).u64(8, pages).u64(16, pages).done()).await?;
            Ok(largest.into())
        }
        STAT | STAT_INDEX | STAT_ANY => {
            let number = |process| call.number_of(process);
            let sight = layout::Sight { users: &call.users(), number: &number };
            let (id, bytes) = segments.with(|segments| {
                let (id, segment) = object(segments, &user, id, command != STAT, command != STAT_ANY)?;
                Ok::<_, Error>((id, layout::segment(segment, &sight)))
            })?;
            call.write(to, &bytes).await?;
            Ok(if command == STAT { 0 } else { id as u64 })
        }
        SET => {
            let (owner, mode) = layout::changes(&call.read(to).await?)?;
            let owner = (call.user(owner.0)?, call.group(owner.1)?);
            segments.with(|segments| {
                let segment = segments.get_mut(id)?;
                segment.permission.check_owner(&user)?;
                segment.permission.set(owner, mode);
                segment.changed = user.now;
                Ok::<_, Error>(())
            })?;
            Ok(0)
        }
        LOCK | UNLOCK => {
            let may_lock = call.has(Privilege::LockMemory);
            segments.with(|segments| {
                let segment = segments.get_mut(id)?;
                if !may_lock {
                    segment.permission.check_owner(&user)?;
                }
                segment.is_locked = command == LOCK;
                Ok::<_, Error>(())
            })?;
            Ok(0)
        }
        REMOVE => {
            segments.remove(&user, id)?;
            Ok(0)
        }
        _ => Err(Error::EINVAL.into()),
    }
}

pub(crate) fn semget<M: Machine>(call: &Call<'_, M>) -> Done {
    let size = usize::try_from(call.int(1)).map_err(|_| Error::EINVAL)?;
    Ok(objects(call).system_v.semaphores.get(&user(call), find(call.int(0), call.uint(2)), size)? as u64)
}

/// semop(2) and, with a time limit, semtimedop(2).
pub(crate) async fn semop<M: Machine>(call: &Call<'_, M>, timed: bool) -> Done {
    const UNDO: u16 = 0x1000;
    let count = usize::try_from(call.arg(2)).unwrap_or(usize::MAX);
    if count == 0 || call.int(0) < 0 {
        return Err(Error::EINVAL.into());
    }
    if count > semaphores::OPERATIONS_LIMIT {
        return Err(Error::E2BIG.into());
    }
    let bytes = call.memory().read_bytes(call.arg(1), 6 * count).await?;
    let operations: Vec<Operation> = bytes
        .chunks_exact(6)
        .map(|bytes| {
            let flags = bytes.u16_at(4)?;
            Ok(Operation {
                number: bytes.u16_at(0)?,
                change: bytes.u16_at(2)? as i16,
                no_wait: u32::from(flags) & NO_WAIT != 0,
                undo: flags & UNDO != 0,
            })
        })
        .collect::<Result<_>>()?;
    let environment = call.system().environment();
    let limit = if timed { call.time(3).await? } else { None };
    let deadline = limit.map(|limit| environment.monotonic().saturating_add(limit));
    let user = user(call);
    let objects = objects(call);
    let operating = objects.system_v.semaphores.operate(&user, call.int(0), &operations);
    let operating = Box::pin(until(&**environment, deadline, operating));
    match call.wait(RestartKind::Never, operating).await? {
        Some(done) => done.map(|()| 0).map_err(Into::into),
        None => Err(Error::EAGAIN.into()),
    }
}

pub(crate) async fn semctl<M: Machine>(call: &Call<'_, M>) -> Done {
    const GETPID: u32 = 11;
    const GETVAL: u32 = 12;
    const GETALL: u32 = 13;
    const GETNCNT: u32 = 14;
    const GETZCNT: u32 = 15;
    const SETVAL: u32 = 16;
    const SETALL: u32 = 17;
    const STAT_INDEX: u32 = 18;
    const SEM_INFO: u32 = 19;
    const STAT_ANY: u32 = 20;
    let (id, command, to, user) = (call.int(0), call.uint(2) & !VERSION, call.arg(3), user(call));
    let objects = objects(call);
    let sets = &objects.system_v.semaphores;
    match command {
        INFO | SEM_INFO => {
            let (used, all, largest) = sets.with(|sets| {
                let all: usize = sets.iter().map(|(_, set)| set.semaphores.len()).sum();
                (sets.len() as u32, all as u32, sets.largest_index())
            });
            let (limit, size) = (semaphores::SETS_LIMIT, semaphores::SIZE_LIMIT as u32);
            let operations = semaphores::OPERATIONS_LIMIT as u32;
            let value = semaphores::VALUE_LIMIT as u32;
            let (used, all) = if command == INFO { (20, value) } else { (used, all) };
            let words = [
                limit * size,
                limit,
                limit * size,
                limit * size,
                size,
                operations,
                operations,
                used,
                value,
                all,
            ];
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            call.write(to, &bytes).await?;
            Ok(largest.into())
        }
        STAT | STAT_INDEX | STAT_ANY => {
            let number = |process| call.number_of(process);
            let sight = layout::Sight { users: &call.users(), number: &number };
            let (id, bytes) = sets.with(|sets| {
                let (id, set) = object(sets, &user, id, command != STAT, command != STAT_ANY)?;
                Ok::<_, Error>((id, layout::set(set, &sight)))
            })?;
            call.write(to, &bytes).await?;
            Ok(if command == STAT { 0 } else { id as u64 })
        }
        GETVAL | GETPID | GETNCNT | GETZCNT => {
            let number = usize::try_from(call.int(1)).map_err(|_| Error::EINVAL)?;
            let semaphore = sets.with(|sets| {
                let (_, set) = object(sets, &user, id, false, true)?;
                set.semaphores.get(number).copied().ok_or(Error::EINVAL)
            })?;
            Ok(match command {
                GETVAL => semaphore.value as u64,
                GETPID => call.number_of(semaphore.process).into(),
                GETNCNT => semaphore.waits_for_more.into(),
                _ => semaphore.waits_for_zero.into(),
            })
        }
        GETALL => {
            let bytes: Vec<u8> = sets.with(|sets| {
                let (_, set) = object(sets, &user, id, false, true)?;
                let values =
                    set.semaphores.iter().flat_map(|semaphore| (semaphore.value as u16).to_le_bytes());
                Ok::<_, Error>(values.collect())
            })?;
            call.write(to, &bytes).await?;
            Ok(0)
        }
        SETVAL => {
            let number = usize::try_from(call.int(1)).map_err(|_| Error::EINVAL)?;
            sets.set(&user, id, Some(number), &[to as i32])?;
            Ok(0)
        }
        SETALL => {
            let count = sets.with(|sets| {
                let set = sets.get(id)?;
                set.permission.check(&user, Access::Write)?;
                Ok::<_, Error>(set.semaphores.len())
            })?;
            let bytes = call.memory().read_bytes(to, 2 * count).await?;
            let values: Vec<i32> =
                bytes.chunks_exact(2).map(|value| Ok(i32::from(value.u16_at(0)?))).collect::<Result<_>>()?;
            sets.set(&user, id, None, &values)?;
            Ok(0)
        }
        SET => {
            let (owner, mode) = layout::changes(&call.read(to).await?)?;
            let owner = (call.user(owner.0)?, call.group(owner.1)?);
            sets.with(|sets| {
                let set = sets.get_mut(id)?;
                set.permission.check_owner(&user)?;
                set.permission.set(owner, mode);
                set.changed = user.now;
                Ok::<_, Error>(())
            })?;
            Ok(0)
        }
        REMOVE => {
            sets.remove(&user, id)?;
            Ok(0)
        }
        _ => Err(Error::EINVAL.into()),
    }
}

pub(crate) fn msgget<M: Machine>(call: &Call<'_, M>) -> Done {
    Ok(objects(call).system_v.queues.get(&user(call), find(call.int(0), call.uint(1)))? as u64)
}

pub(crate) async fn msgsnd<M: Machine>(call: &Call<'_, M>) -> Done {
    let size = usize::try_from(call.arg(2)).unwrap_or(usize::MAX);
    if size > messages::SIZE_LIMIT || call.int(0) < 0 {
        return Err(Error::EINVAL.into());
    }
    let kind = u64::from_le_bytes(call.read(call.arg(1)).await?) as i64;
    let bytes = call.memory().read_bytes(call.arg(1).wrapping_add(8), size).await?;
    let user = user(call);
    let no_wait = call.uint(3) & NO_WAIT != 0;
    let objects = objects(call);
    let sending = objects.system_v.queues.send(&user, call.int(0), (kind, bytes), no_wait);
    call.wait(RestartKind::Never, Box::pin(sending)).await??;
    Ok(0)
}

pub(crate) async fn msgrcv<M: Machine>(call: &Call<'_, M>) -> Done {
    const NO_ERROR: u32 = 0o10000;
    const EXCEPT: u32 = 0o20000;
    const COPY: u32 = 0o40000;
    let (kind, flags) = (call.arg(3) as i64, call.uint(4));
    if call.int(0) < 0 || (call.arg(2) as i64) < 0 {
        return Err(Error::EINVAL.into());
    }
    if flags & COPY != 0 {
        return Err(Error::ENOSYS.into());
    }
    let which = match kind {
        0 => Which::First,
        1.. if flags & EXCEPT != 0 => Which::Except(kind),
        1.. => Which::Of(kind),
        _ => Which::UpTo(kind.checked_neg().unwrap_or(i64::MAX)),
    };
    let room = usize::try_from(call.arg(2)).unwrap_or(usize::MAX);
    let how = Receive { which, room, truncate: flags & NO_ERROR != 0, no_wait: flags & NO_WAIT != 0 };
    let user = user(call);
    let objects = objects(call);
    let receiving = objects.system_v.queues.receive(&user, call.int(0), how);
    let (kind, bytes) = call.wait(RestartKind::Never, Box::pin(receiving)).await??;
    call.write(call.arg(1), &kind.to_le_bytes()).await?;
    call.write(call.arg(1).wrapping_add(8), &bytes).await?;
    Ok(bytes.len() as u64)
}

pub(crate) async fn msgctl<M: Machine>(call: &Call<'_, M>) -> Done {
    const STAT_INDEX: u32 = 11;
    const MSG_INFO: u32 = 12;
    const STAT_ANY: u32 = 13;
    let (id, command, to, user) = (call.int(0), call.uint(1) & !VERSION, call.arg(2), user(call));
    let objects = objects(call);
    let queues = &objects.system_v.queues;
    match command {
        INFO | MSG_INFO => {
            let (used, count, bytes, largest) = queues.with(|queues| {
                let count: usize = queues.iter().map(|(_, queue)| queue.len()).sum();
                let bytes: u64 = queues.iter().map(|(_, queue)| queue.bytes).sum();
                (queues.len() as u32, count as u32, bytes as u32, queues.largest_index())
            });
            let (limit, size, all) =
                (messages::QUEUES_LIMIT, messages::SIZE_LIMIT as u32, messages::BYTES_LIMIT as u32);
            let (pool, map, total) = match command {
                INFO => (limit * all / 1024, all, all),
                _ => (used, count, bytes),
            };
            let words = [pool, map, size, all, limit, 16, total, 0xffff];
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            call.write(to, &bytes).await?;
            Ok(largest.into())
        }
        STAT | STAT_INDEX | STAT_ANY => {
            let number = |process| call.number_of(process);
            let sight = layout::Sight { users: &call.users(), number: &number };
            let (id, bytes) = queues.with(|queues| {
                let (id, queue) = object(queues, &user, id, command != STAT, command != STAT_ANY)?;
                Ok::<_, Error>((id, layout::queue(queue, &sight)))
            })?;
            call.write(to, &bytes).await?;
            Ok(if command == STAT { 0 } else { id as u64 })
        }
        SET => {
            let bytes: [u8; layout::QUEUE_SIZE] = call.read(to).await?;
            let (owner, mode) = layout::changes(bytes.first_chunk().ok_or(Error::EINVAL)?)?;
            let owner = (call.user(owner.0)?, call.group(owner.1)?);
            queues.set(&user, id, owner, mode, layout::queue_limit(&bytes)?)?;
            Ok(0)
        }
        REMOVE => {
            queues.remove(&user, id)?;
            Ok(0)
        }
        _ => Err(Error::EINVAL.into()),
    }
}
