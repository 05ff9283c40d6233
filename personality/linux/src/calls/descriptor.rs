//! Calls on descriptors: open, close, dup, fcntl, pipes, locks, and calls on the open file of a
//! descriptor.

use crate::call::{Call, Done, Stop};
use crate::layout::Fields;
use crate::layout::file::{CLOSE_ON_EXEC, EntryLayout, KNOWN_FLAGS, open_flags, to_open_flags};
use crate::layout::signal::optional_signal;
use crate::{directory_signals, signals_of_files};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::descriptor::DescriptorTable;
use unix::file::{LockKind, LockMaker, LockOwner, LockRange, OpenFile, SignalTarget, Whence};
use unix::process::{Pid, Process, Table};
use unix::signal::RestartKind;
use unix::sync::poll_once;
use unix::vfs::{Access, At, Caller, DirectoryEntry, Mode, OpenFlags, Restrictions, SealFlags};
use unix::{AttemptError, Error, Result};

/// The open file whose descriptor is argument `index`. `EBADF` also for a descriptor that only
/// names a file (O_PATH).
pub(crate) fn file<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Arc<OpenFile>> {
    open_file(&call.thread.descriptors(), call.int(index))
}

/// The open file of a descriptor. `EBADF` also for a descriptor that only names a file (O_PATH).
pub(crate) fn open_file(descriptors: &DescriptorTable, descriptor: i32) -> Result<Arc<OpenFile>> {
    let file = descriptors.get(descriptor)?;
    if file.flags().contains(OpenFlags::PATH) { Err(Error::EBADF) } else { Ok(file) }
}

/// The file whose descriptor is argument `index`, even if the descriptor only names it (O_PATH).
pub(crate) fn named_file<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Arc<OpenFile>> {
    call.thread.descriptors().get(call.int(index))
}

async fn open_at<M: Machine>(call: &Call<'_, M>, at: At, path: Vec<u8>, flags: u32, mode: u64) -> Done {
    let context = call.thread.context();
    let caller = context.caller();
    let mode = Mode::new((mode & 0o7777) as u16);
    // An open blocks only to wait for the other end of a FIFO.
    let opened =
        call.wait(RestartKind::RestartSys, caller.open(&at, &path, open_flags(flags), mode)).await??;
    insert(call, opened, flags & CLOSE_ON_EXEC != 0)
}

pub(crate) fn insert<M: Machine>(call: &Call<'_, M>, file: Arc<OpenFile>, close_on_exec: bool) -> Done {
    file.charge(&call.account())?;
    Ok(call.thread.descriptors().insert(file, close_on_exec, call.descriptor_limit())? as u64)
}

pub(crate) async fn open<M: Machine>(call: &Call<'_, M>) -> Done {
    open_at(call, At::Current, call.path(0).await?, call.uint(1), call.arg(2)).await
}

pub(crate) async fn creat<M: Machine>(call: &Call<'_, M>) -> Done {
    const WRITE_CREATE_TRUNCATE: u32 = 0o1101;
    open_at(call, At::Current, call.path(0).await?, WRITE_CREATE_TRUNCATE, call.arg(1)).await
}

pub(crate) async fn openat<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(1).await?;
    open_at(call, call.at_for(0, &path)?, path, call.uint(2), call.arg(3)).await
}

/// openat2(2).
pub(crate) async fn openat2<M: Machine>(call: &Call<'_, M>) -> Done {
    const SIZE: usize = 24;
    const LONGEST: u64 = 4096;
    /// RESOLVE_CACHED: the call must not wait for storage.
    const CACHED: u64 = 0x20;
    let size = call.arg(3);
    if size < SIZE as u64 {
        return Err(Error::EINVAL.into());
    }
    if size > LONGEST {
        return Err(Error::E2BIG.into());
    }
    let how = call.memory().read_bytes(call.arg(2), size as usize).await?;
    if how[SIZE..].iter().any(|byte| *byte != 0) {
        return Err(Error::E2BIG.into());
    }
    let resolve = how.u64_at(16)?;
    let restrictions = u32::try_from(resolve & !CACHED).ok().and_then(Restrictions::from_bits);
    let restrictions = restrictions.ok_or(Error::EINVAL)?;
    if restrictions.contains(Restrictions::BENEATH | Restrictions::IN_ROOT) {
        return Err(Error::EINVAL.into());
    }
    let flags = u32::try_from(how.u64_at(0)?).map_err(|_| Error::EINVAL)?;
    let mode = how.u64_at(8)?;
    let open = open_flags(flags);
    let makes = open.intersects(OpenFlags::CREATE | OpenFlags::TEMPORARY);
    if flags & !KNOWN_FLAGS != 0 || mode & !0o7777 != 0 || (mode != 0 && !makes) {
        return Err(Error::EINVAL.into());
    }
    let path = call.path(1).await?;
    let is_scoped = restrictions.contains(Restrictions::IN_ROOT);
    let at = if is_scoped { call.at(0)? } else { call.at_for(0, &path)? };
    let context = call.thread.context();
    let caller = Caller { restrictions, ..context.caller() };
    let opening = caller.open(&at, &path, open, Mode::new((mode & 0o7777) as u16));
    let opened = match resolve & CACHED {
        0 => call.wait(RestartKind::RestartSys, opening).await??,
        _ if makes || open.contains(OpenFlags::TRUNCATE) => return Err(Error::EAGAIN.into()),
        _ => poll_once(opening).ok_or(Error::EAGAIN)??,
    };
    insert(call, opened, flags & CLOSE_ON_EXEC != 0)
}

/// Whether an open with these flags succeeds only once (O_EXCL), so that it must not be tried.
pub(crate) fn is_exclusive(flags: u32) -> bool {
    open_flags(flags).contains(OpenFlags::EXCLUSIVE)
}

pub(crate) async fn close<M: Machine>(call: &Call<'_, M>) -> Done {
    if let Some(done) = try_close(call) {
        return done;
    }
    let file = call.thread.descriptors().remove(call.int(0))?;
    let context = call.thread.context();
    let caller = context.caller();
    // A signal ends the wait, and the descriptor is closed all the same.
    let lingering = unix::socket::close_and_linger(&caller, file);
    let _ = call.wait(RestartKind::RestartSys, lingering).await;
    Ok(0)
}

/// Closes a descriptor, unless that may have to wait.
pub(crate) fn try_close<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    match call.thread.descriptors().close_without_waiting(call.int(0)) {
        Ok(true) => Some(Ok(0)),
        Ok(false) => None,
        Err(error) => Some(Err(error.into())),
    }
}

pub(crate) fn close_range<M: Machine>(call: &Call<'_, M>) -> Done {
    const UNSHARE: u32 = 2;
    const MARK: u32 = 4;
    let (first, last, flags) = (call.uint(0), call.uint(1), call.uint(2));
    if flags & !(UNSHARE | MARK) != 0 || first > last {
        return Err(Error::EINVAL.into());
    }
    if flags & UNSHARE != 0 {
        call.thread.unshare_descriptors()?;
    }
    call.thread.descriptors().close_range(first, last, flags & MARK != 0)?;
    Ok(0)
}

pub(crate) fn dup<M: Machine>(call: &Call<'_, M>) -> Done {
    duplicate(call, 0, false)
}

fn duplicate<M: Machine>(call: &Call<'_, M>, least: i32, close_on_exec: bool) -> Done {
    let descriptors = call.thread.descriptors();
    Ok(descriptors.duplicate(call.int(0), least, close_on_exec, call.descriptor_limit())? as u64)
}

pub(crate) fn dup2<M: Machine>(call: &Call<'_, M>) -> Done {
    let (old, new) = (call.int(0), call.int(1));
    let done = call.thread.descriptors().duplicate_to(old, new, false, call.descriptor_limit());
    done.map(|_| new as u64).map_err(Stop::from)
}

pub(crate) fn dup3<M: Machine>(call: &Call<'_, M>) -> Done {
    let (old, new, flags) = (call.int(0), call.int(1), call.uint(2));
    if old == new || flags & !CLOSE_ON_EXEC != 0 {
        return Err(Error::EINVAL.into());
    }
    let close = flags & CLOSE_ON_EXEC != 0;
    call.thread.descriptors().duplicate_to(old, new, close, call.descriptor_limit())?;
    Ok(new as u64)
}

pub(crate) async fn pipe<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    const ALLOWED: u32 = CLOSE_ON_EXEC | 0o4000 | 0o40000;
    if flags & !ALLOWED != 0 {
        return Err(Error::EINVAL.into());
    }
    let status = open_flags(flags).intersection(OpenFlags::NONBLOCK | OpenFlags::DIRECT);
    let pair = unix::pipe::pipe(&call.thread.context().caller(), status)?;
    install_pair(call, pair, flags & CLOSE_ON_EXEC != 0, call.arg(0)).await
}

/// Makes descriptors for two files and stores their numbers at `address` in the program's memory.
pub(crate) async fn install_pair<M: Machine>(
    call: &Call<'_, M>,
    pair: (Arc<OpenFile>, Arc<OpenFile>),
    close_on_exec: bool,
    address: u64,
) -> Done {
    let account = call.account();
    pair.0.charge(&account)?;
    pair.1.charge(&account)?;
    let descriptors = call.thread.descriptors();
    let (first, second) = descriptors.insert_pair(pair, close_on_exec, call.descriptor_limit())?;
    let numbers = [first.to_le_bytes(), second.to_le_bytes()].concat();
    if let Err(error) = call.write(address, &numbers).await {
        let _ = (descriptors.close(first), descriptors.close(second));
        return Err(error.into());
    }
    Ok(0)
}

/// Begins or ends to signal the owner of the file of argument 0 when that becomes ready, after the
/// flag O_ASYNC has been changed from `before`. A terminal without an owner gets its foreground
/// group, or the caller if it has none.
pub(crate) fn change_signals<M: Machine>(call: &Call<'_, M>, file: &Arc<OpenFile>, before: bool) {
    let now = file.flags().contains(OpenFlags::ASYNC);
    if now == before || !file.can_signal() {
        return;
    }
    if !now {
        return signals_of_files::end::<M>(file);
    }
    if let Some(terminal) = file.object().and_then(|object| object.terminal())
        && file.signal_owner().is_none()
    {
        let group = terminal.foreground(&call.thread.context(), true).ok().and_then(Pid::new);
        let target = call.table(|table| match group {
            Some(group) => of_group(table, group).ok(),
            None => table.process(call.pid()).map(process_target).ok(),
        });
        file.set_signal_owner(target, call.thread.credentials());
    }
    signals_of_files::begin(call.system(), file, call.int(0));
}

fn process_target(process: &Process) -> SignalTarget {
    SignalTarget::Process(process.exact_pid())
}

/// What a program names by a number as that which gets signals for a file. `find` looks for an
/// owner of the right kind; without one nothing gets them. `ESRCH` if nothing has the number.
fn target<M: Machine>(
    call: &Call<'_, M>,
    number: i32,
    find: impl FnOnce(&Table, Pid) -> Result<SignalTarget>,
) -> Result<Option<SignalTarget>> {
    let id = call.id(number)?;
    call.table(|table| match find(table, id) {
        Ok(target) => Ok(Some(target)),
        Err(_) if table.has_id(id) => Ok(None),
        Err(_) => Err(Error::ESRCH),
    })
}

fn of_process(table: &Table, id: Pid) -> Result<SignalTarget> {
    table.process(id).map(process_target)
}

fn of_thread(table: &Table, id: Pid) -> Result<SignalTarget> {
    let process = table.process(table.thread(id)?.pid())?;
    Ok(SignalTarget::Thread(process.exact_pid(), id))
}

fn of_group(table: &Table, id: Pid) -> Result<SignalTarget> {
    table.group_leader(id).map(SignalTarget::Group)
}

/// Sets what gets signals for the file: a process, or with a negative number a group (F_SETOWN).
/// `ESRCH`, `EINVAL`.
pub(crate) fn set_owner<M: Machine>(call: &Call<'_, M>, file: &OpenFile, number: i32) -> Result<()> {
    let target = match number {
        0 => None,
        i32::MIN => return Err(Error::EINVAL),
        1.. => target(call, number, of_process)?,
        _ => target(call, -number, of_group)?,
    };
    file.set_signal_owner(target, call.thread.credentials());
    Ok(())
}

/// The kind of that which gets signals for the file, as F_GETOWN_EX has it, and its number; 0 if it
/// is not there any more.
fn owner<M: Machine>(call: &Call<'_, M>, file: &OpenFile) -> (u32, u32) {
    const THREAD: u32 = 0;
    const PROCESS: u32 = 1;
    const GROUP: u32 = 2;
    let Some(owner) = file.signal_owner() else { return (THREAD, 0) };
    let (kind, id) = match owner.target {
        SignalTarget::Thread(exact, id) => (
            THREAD,
            call.table(|table| {
                let is_there = table.thread(id).is_ok_and(|thread| thread.pid() == exact.pid());
                (is_there && table.exact_process(exact).is_ok()).then_some(id)
            }),
        ),
        SignalTarget::Process(exact) => {
            (PROCESS, call.table(|table| table.exact_process(exact).ok().map(|process| process.pid())))
        }
        SignalTarget::Group(leader) => (GROUP, call.table(|table| table.group_of(leader))),
    };
    (kind, id.map_or(0, |id| call.number(id)))
}

/// The number of what gets signals for the file, negative for a group (F_GETOWN).
pub(crate) fn owner_number<M: Machine>(call: &Call<'_, M>, file: &OpenFile) -> i32 {
    match owner(call, file) {
        (2, number) => -(number as i32),
        (_, number) => number as i32,
    }
}

pub(crate) async fn fcntl<M: Machine>(call: &Call<'_, M>) -> Done {
    const DUPFD: u32 = 0;
    const GETFD: u32 = 1;
    const SETFD: u32 = 2;
    const GETFL: u32 = 3;
    const SETFL: u32 = 4;
    const SETOWN: u32 = 8;
    const GETOWN: u32 = 9;
    const SETSIG: u32 = 10;
    const GETSIG: u32 = 11;
    const SETOWN_EX: u32 = 15;
    const GETOWN_EX: u32 = 16;
    const GETLEASE: u32 = 1025;
    const NOTIFY: u32 = 1026;
    const UNLOCKED: u64 = 2;
    const DUPFD_CLOEXEC: u32 = 1030;
    const SETPIPE_SZ: u32 = 1031;
    const GETPIPE_SZ: u32 = 1032;
    const ADD_SEALS: u32 = 1033;
    const GET_SEALS: u32 = 1034;
    let (descriptors, descriptor, argument) = (call.thread.descriptors(), call.int(0), call.arg(2));
    let file = descriptors.get(descriptor)?;
    let names_only = file.flags().contains(OpenFlags::PATH);
    match call.uint(1) {
        command if names_only && !matches!(command, DUPFD | DUPFD_CLOEXEC | GETFD | SETFD | GETFL) => {
            Err(Error::EBADF.into())
        }
        DUPFD => duplicate(call, call.int(2), false),
        DUPFD_CLOEXEC => duplicate(call, call.int(2), true),
        GETFD => Ok(descriptors.close_on_exec(descriptor)?.into()),
        SETFD => {
            descriptors.set_close_on_exec(descriptor, argument & 1 != 0)?;
            Ok(0)
        }
        GETFL => Ok(to_open_flags(file.flags(), file.location().is_some()).into()),
        SETFL => {
            let before = file.flags().contains(OpenFlags::ASYNC);
            file.set_flags(&call.thread.context().caller(), open_flags(argument as u32))?;
            change_signals(call, &file, before);
            Ok(0)
        }
        SETOWN => {
            set_owner(call, &file, call.int(2))?;
            Ok(0)
        }
        GETOWN => Ok(i64::from(owner_number(call, &file)) as u64),
        SETOWN_EX => {
            let owner = call.read::<8>(call.arg(2)).await?;
            let target = match (owner.u32_at(0)?, owner.i32_at(4)?) {
                (0..=2, 0) => None,
                (0, number) => target(call, number, of_thread)?,
                (1, number) => target(call, number, of_process)?,
                (2, number) => target(call, number, of_group)?,
                _ => return Err(Error::EINVAL.into()),
            };
            file.set_signal_owner(target, call.thread.credentials());
            Ok(0)
        }
        GETOWN_EX => {
            let (kind, number) = owner(call, &file);
            call.write(call.arg(2), &[kind.to_le_bytes(), number.to_le_bytes()].concat()).await?;
            Ok(0)
        }
        SETSIG => {
            file.set_signal(optional_signal(argument)?);
            Ok(0)
        }
        GETSIG => Ok(file.signal().map_or(0, |signal| signal.number().into())),
        NOTIFY => {
            // Without another owner the caller gets the signals.
            if file.signal_owner().is_none() {
                let target = call.table(|table| table.process(call.pid()).map(process_target)).ok();
                file.set_signal_owner(target, call.thread.credentials());
            }
            let (system, account) = (call.system(), call.account());
            directory_signals::ask(system, &file, &account, descriptor, argument as u32)?;
            Ok(0)
        }
        // No file has a lease.
        GETLEASE => Ok(UNLOCKED),
        SETPIPE_SZ | GETPIPE_SZ => {
            let end = file.pipe_end().ok_or(Error::EBADF)?;
            if call.uint(1) == GETPIPE_SZ {
                return Ok(end.pipe().capacity() as u64);
            }
            let size = usize::try_from(argument).map_err(|_| Error::EINVAL)?;
            Ok(end.pipe().set_capacity(&call.thread.credentials().identity(), size)? as u64)
        }
        ADD_SEALS => {
            file.check(Access::WRITE).map_err(|_| Error::EPERM)?;
            file.seal(SealFlags::from_bits(argument as u32).ok_or(Error::EINVAL)?).await?;
            Ok(0)
        }
        GET_SEALS => Ok(file.sealed()?.bits().into()),
        command => record_lock(call, &file, command).await,
    }
}

/// The locking commands of fcntl(2).
async fn record_lock<M: Machine>(call: &Call<'_, M>, file: &Arc<OpenFile>, command: u32) -> Done {
    const GETLK: u32 = 5;
    const SETLK: u32 = 6;
    const SETLKW: u32 = 7;
    const OFD: u32 = 31;
    let (command, owner) = match command {
        GETLK | SETLK | SETLKW => (command, call.thread.descriptors().lock_owner()),
        36..=38 => (command - OFD, LockOwner::Description(file.id())),
        _ => return Err(Error::EINVAL.into()),
    };
    let lock = call.read::<32>(call.arg(2)).await?;
    let kind = match lock.u16_at(0)? {
        0 => Some(LockKind::Shared),
        1 => Some(LockKind::Exclusive),
        2 if command != GETLK => None,
        _ => return Err(Error::EINVAL.into()),
    };
    let base = match lock.u16_at(2)? {
        0 => 0,
        1 => file.seek(0, Whence::Current).await? as i64,
        2 => file.metadata().size as i64,
        _ => return Err(Error::EINVAL.into()),
    };
    let start = base.checked_add(lock.i64_at(8)?).ok_or(Error::EOVERFLOW)?;
    let range = LockRange::new(start, lock.i64_at(16)?)?;
    let table = &file.hooks().ok_or(Error::EINVAL)?.locks;
    if command == GETLK {
        let mut answer = lock;
        match table.conflict(owner, kind.ok_or(Error::EINVAL)?, range) {
            None => answer[..2].copy_from_slice(&2u16.to_le_bytes()),
            Some(held) => {
                let kind = u16::from(held.kind == LockKind::Exclusive);
                let length = if held.range.end == u64::MAX { 0 } else { held.range.end - held.range.start };
                let process = if matches!(held.owner, LockOwner::Description(_)) {
                    -1
                } else {
                    call.number_of(held.by.process) as i32
                };
                answer[..2].copy_from_slice(&kind.to_le_bytes());
                answer[2..4].copy_from_slice(&0u16.to_le_bytes());
                answer[8..16].copy_from_slice(&held.range.start.to_le_bytes());
                answer[16..24].copy_from_slice(&length.to_le_bytes());
                answer[24..28].copy_from_slice(&process.to_le_bytes());
            }
        }
        call.write(call.arg(2), &answer).await?;
        return Ok(0);
    }
    let flags = file.flags();
    let needed = match kind {
        Some(LockKind::Shared) => OpenFlags::READ,
        Some(LockKind::Exclusive) => OpenFlags::WRITE,
        None => OpenFlags::empty(),
    };
    if !flags.contains(needed) {
        return Err(Error::EBADF.into());
    }
    let account = call.account();
    let by = LockMaker { process: call.pid().number(), file: file.id() };
    match (kind, command) {
        (Some(kind), SETLKW) => {
            call.wait(RestartKind::RestartSys, table.set(&account, owner, by, kind, range)).await??
        }
        _ => table.try_set(&account, owner, by, kind, range).map_err(not_done)?,
    }
    Ok(0)
}

/// The error of a call that may not wait.
pub(super) fn not_done(not_done: AttemptError) -> Error {
    match not_done {
        AttemptError::Failed(error) => error,
        AttemptError::WouldBlock => Error::EAGAIN,
        AttemptError::NotResident => Error::EFAULT,
    }
}

pub(crate) async fn flock<M: Machine>(call: &Call<'_, M>) -> Done {
    const NONBLOCK: u32 = 4;
    let file = file(call, 0)?;
    let kind = match call.uint(1) & !NONBLOCK {
        1 => Some(LockKind::Shared),
        2 => Some(LockKind::Exclusive),
        8 => None,
        _ => return Err(Error::EINVAL.into()),
    };
    let Some(hooks) = file.hooks() else { return Ok(0) };
    let owner = LockOwner::Description(file.id());
    let by = LockMaker { process: call.pid().number(), file: file.id() };
    match call.uint(1) & NONBLOCK != 0 || kind.is_none() {
        true => hooks.locks.try_lock_whole(owner, by, kind).map_err(not_done)?,
        false => call.wait(RestartKind::RestartSys, hooks.locks.lock_whole(owner, by, kind)).await??,
    }
    Ok(0)
}

pub(super) fn offset<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<u64> {
    u64::try_from(call.arg(index) as i64).map_err(|_| Error::EINVAL)
}

pub(crate) async fn lseek<M: Machine>(call: &Call<'_, M>) -> Done {
    let whence = match call.uint(2) {
        0 => Whence::Start,
        1 => Whence::Current,
        2 => Whence::End,
        3 => Whence::Data,
        4 => Whence::Hole,
        _ => return Err(Error::EINVAL.into()),
    };
    Ok(file(call, 0)?.seek(call.arg(1) as i64, whence).await?)
}

/// Does [`fsync`] for a file that has no storage to wait for.
pub(crate) fn try_fsync<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    let file = match file(call, 0) {
        Ok(file) => file,
        Err(error) => return Some(Err(error.into())),
    };
    poll_once(file.synchronize()).map(|done| done.map(|()| 0).map_err(Stop::from))
}

pub(crate) async fn fsync<M: Machine>(call: &Call<'_, M>) -> Done {
    file(call, 0)?.synchronize().await?;
    Ok(0)
}

/// sync(2), and syncfs(2) for one file system.
pub(crate) async fn sync<M: Machine>(call: &Call<'_, M>) -> Done {
    call.system().synchronize().await?;
    Ok(0)
}

/// fadvise64(2), readahead(2): all files are in memory already, so only the arguments are checked.
pub(crate) fn fadvise64<M: Machine>(call: &Call<'_, M>) -> Done {
    let file = file(call, 0)?;
    if file.object().is_some_and(|_| file.file_type() == unix::vfs::FileType::Fifo) {
        return Err(Error::ESPIPE.into());
    }
    if call.uint(3) > 5 || (call.arg(2) as i64) < 0 { Err(Error::EINVAL.into()) } else { Ok(0) }
}

pub(crate) async fn ftruncate<M: Machine>(call: &Call<'_, M>) -> Done {
    let size = offset(call, 1)?;
    let done = file(call, 0)?.truncate(&call.thread.context().caller(), size).await;
    done.inspect_err(|error| call.signal_for(*error))?;
    Ok(0)
}

pub(crate) async fn fallocate<M: Machine>(call: &Call<'_, M>) -> Done {
    const KEEP_SIZE: u32 = 1;
    const PUNCH_HOLE: u32 = 2;
    let (mode, start, length) = (call.uint(1), offset(call, 2)?, offset(call, 3)?);
    let punch = mode & PUNCH_HOLE != 0;
    if mode & !(KEEP_SIZE | PUNCH_HOLE) != 0 || (punch && mode & KEEP_SIZE == 0) {
        return Err(Error::EOPNOTSUPP.into());
    }
    let context = call.thread.context();
    file(call, 0)?.allocate(&context.caller(), start, length, mode & KEEP_SIZE != 0, punch).await?;
    Ok(0)
}

/// getdents64(2), and getdents(2), which has each entry's type at the end of the entry.
pub(crate) async fn getdents<M: Machine>(call: &Call<'_, M>, layout: EntryLayout) -> Done {
    let bytes = read_entries(call, layout).await?;
    call.write(call.arg(1), &bytes).await?;
    Ok(bytes.len() as u64)
}

/// Does [`getdents`] if nothing has to be waited for.
pub(crate) fn try_getdents<M: Machine>(call: &Call<'_, M>, layout: EntryLayout) -> Option<Done> {
    match poll_once(read_entries(call, layout))? {
        Ok(bytes) => call.answer(&[(call.arg(1), &bytes)], bytes.len() as u64),
        Err(error) => Some(Err(error.into())),
    }
}

/// Reads the next entries of a directory, as many as have room in the program's buffer.
async fn read_entries<M: Machine>(call: &Call<'_, M>, layout: EntryLayout) -> Result<Vec<u8>> {
    use crate::layout::file::append_entry;
    let room = (call.arg(2) as u32).min(64 << 10) as usize;
    let (file, context) = (file(call, 0)?, call.thread.context());
    let mut bytes = Vec::new();
    let append = |entry: &DirectoryEntry<'_>| append_entry(&mut bytes, room, layout, entry);
    file.read_directory(&context.caller(), append).await?;
    Ok(bytes)
}

/// memfd_create(2), without huge pages (`ENODEV`).
pub(crate) async fn memfd_create<M: Machine>(call: &Call<'_, M>) -> Done {
    const CLOSE: u32 = 1;
    const ALLOW_SEALING: u32 = 2;
    const HUGE: u32 = 4;
    const NAME_MAXIMUM: usize = 250;
    let flags = call.uint(1);
    if flags & HUGE != 0 {
        return Err(Error::ENODEV.into());
    }
    if flags & !(CLOSE | ALLOW_SEALING) != 0 {
        return Err(Error::EINVAL.into());
    }
    let seals = if flags & ALLOW_SEALING != 0 { SealFlags::empty() } else { SealFlags::SEAL };
    let name = call.memory().read_string(call.arg(0), NAME_MAXIMUM, Error::EINVAL).await?;
    let context = call.thread.context();
    let file = context.caller().make_memory_file([b"memfd:", &name[..]].concat(), seals).await?;
    insert(call, file, flags & CLOSE != 0)
}
