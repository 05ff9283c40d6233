//! Calls on processes and threads: wait, ids, groups, credentials, limits, usage, priorities.

use crate::call::{Call, Done, Outcome, Stop};
use crate::kept::Addresses;
use crate::layout::Fields;
use crate::layout::process::{limit, resource, to_limit, to_rusage, to_tms};
use crate::layout::signal::{child_code, optional_signal, wait_status};
use crate::layout::time::ticks;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use mach::Machine;
use mach::machine::ThreadState;
use unix::credentials::{Credentials, Ids};
use unix::namespace::IdKind;
use unix::process::{InspectAs, Limit, Pid, Resource, Usage, WaitFor, WaitOptions};
use unix::signal::{RestartKind, Signal};
use unix::vfs::OpenFlags;
use unix::{Error, Privilege, Result};

const WNOHANG: u32 = 1;
const WUNTRACED: u32 = 2;
const WEXITED: u32 = 4;
const WCONTINUED: u32 = 8;
const WNOWAIT: u32 = 0x100_0000;
const WNOTHREAD: u32 = 0x2000_0000;
const WALL: u32 = 0x4000_0000;
const WCLONE: u32 = 0x8000_0000;

fn wait_options(bits: u32) -> WaitOptions {
    let has = |bit| bits & bit != 0;
    WaitOptions {
        ended: has(WEXITED),
        stopped: has(WUNTRACED),
        continued: has(WCONTINUED),
        no_hang: has(WNOHANG),
        keep: has(WNOWAIT),
        only_clones: has(WCLONE),
        all_kinds: has(WALL),
        own_only: has(WNOTHREAD),
    }
}

/// The children and the options that the arguments of wait4 name.
fn waited_for<M: Machine>(call: &Call<'_, M>) -> Result<(WaitFor, WaitOptions)> {
    let bits = call.uint(2);
    if bits & !(WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WALL | WCLONE) != 0 {
        return Err(Error::EINVAL);
    }
    let own_group = || call.table(|table| table.process(call.pid()).map(|process| process.group()));
    let which = match call.int(0) {
        i32::MIN => return Err(Error::ESRCH),
        -1 => WaitFor::Any,
        0 => WaitFor::Group(own_group()?),
        number @ 1.. => WaitFor::Process(call.id(number).map_err(|_| Error::ECHILD)?),
        number => WaitFor::Group(call.id(-number).map_err(|_| Error::ECHILD)?),
    };
    Ok((which, wait_options(bits | WEXITED)))
}

pub(crate) async fn wait4<M: Machine>(call: &Call<'_, M>) -> Done {
    let (tid, (which, options)) = (call.tid(), waited_for(call)?);
    let found = call
        .wait(RestartKind::RestartSys, call.system().processes().wait_child(tid, which, options))
        .await??;
    let Some(report) = found else { return Ok(0) };
    let number = report.number;
    call.write_optional(call.arg(1), &wait_status(report.event).to_le_bytes()).await?;
    call.write_optional(call.arg(3), &to_rusage(&report.usage)).await?;
    Ok(number.into())
}

/// Does [`wait4`] if a child has something to report, or if the call must not wait.
pub(crate) fn try_wait4<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    let (which, options) = match waited_for(call) {
        Ok(arguments) => arguments,
        Err(error) => return Some(Err(error.into())),
    };
    match call.table(|table| table.wait_change(call.tid(), which, options)) {
        Ok(Some(report)) => {
            let status = wait_status(report.event).to_le_bytes();
            let usage = to_rusage(&report.usage);
            let parts: [(u64, &[u8]); 2] = [(call.arg(1), &status), (call.arg(3), &usage)];
            call.answer(&parts, report.number.into())
        }
        Ok(None) => options.no_hang.then_some(Ok(0)),
        Err(error) => Some(Err(error.into())),
    }
}

pub(crate) async fn waitid<M: Machine>(call: &Call<'_, M>) -> Done {
    let bits = call.uint(3);
    let wanted = WEXITED | WUNTRACED | WCONTINUED;
    if bits & !(wanted | WNOHANG | WNOWAIT | WNOTHREAD | WALL | WCLONE) != 0 || bits & wanted == 0 {
        return Err(Error::EINVAL.into());
    }
    let number = call.int(1);
    // An O_NONBLOCK process descriptor makes the call return without waiting.
    let mut immediate = false;
    let which = match call.uint(0) {
        0 => WaitFor::Any,
        1 | 2 if number < 0 || call.arg(0) == 1 && number == 0 => return Err(Error::EINVAL.into()),
        1 => WaitFor::Process(call.id(number).map_err(|_| Error::ECHILD)?),
        2 if number == 0 => {
            WaitFor::Group(call.table(|table| table.process(call.pid()).map(|process| process.group()))?)
        }
        2 => WaitFor::Group(call.id(number).map_err(|_| Error::ECHILD)?),
        3 => {
            let (process, flags) = super::pidfd::process_of(call, 1)?;
            immediate = flags.contains(OpenFlags::NONBLOCK);
            let pid = call.table(|table| table.exact_process(process).map(|process| process.pid()));
            WaitFor::Process(pid.map_err(|_| Error::ECHILD)?)
        }
        _ => return Err(Error::EINVAL.into()),
    };
    let mut options = wait_options(bits);
    let again = immediate && !options.no_hang;
    options.no_hang |= immediate;
    let tid = call.tid();
    let found = call
        .wait(RestartKind::RestartSys, call.system().processes().wait_child(tid, which, options))
        .await??;
    if found.is_none() && again {
        return Err(Error::EAGAIN.into());
    }
    let mut information = crate::layout::Writer::<128>::new();
    if let Some(report) = &found {
        let (code, status) = child_code(report.event);
        let child = Signal::CHLD.number().into();
        information = information
            .i32(0, child)
            .i32(8, code)
            .u32(16, report.number)
            .u32(20, call.users().shown_user(report.user))
            .i32(24, status);
        call.write_optional(call.arg(4), &to_rusage(&report.usage)).await?;
    }
    call.write_optional(call.arg(2), &information.done()).await?;
    Ok(0)
}

pub(crate) fn getpid<M: Machine>(call: &Call<'_, M>) -> Done {
    Ok(call.thread.own_numbers().process.into())
}

pub(crate) fn gettid<M: Machine>(call: &Call<'_, M>) -> Done {
    Ok(call.thread.own_numbers().thread.into())
}

pub(crate) fn getppid<M: Machine>(call: &Call<'_, M>) -> Done {
    let parent = call.table(|table| Ok::<_, Error>(table.process(call.pid())?.parent()))?;
    Ok(parent.map_or(0, |parent| call.number(parent).into()))
}

/// The process that an argument names; 0 names the caller's process.
fn process<M: Machine>(call: &Call<'_, M>, number: i32) -> Result<Pid> {
    if number == 0 { Ok(call.pid()) } else { call.id(number) }
}

pub(crate) fn getpgid<M: Machine>(call: &Call<'_, M>, number: i32) -> Done {
    let pid = process(call, number)?;
    let group = call.table(|table| Ok::<_, Error>(table.process(pid)?.group()))?;
    Ok(call.number(group).into())
}

pub(crate) fn getsid<M: Machine>(call: &Call<'_, M>) -> Done {
    let pid = process(call, call.int(0))?;
    let session = call.table(|table| Ok::<_, Error>(table.process(pid)?.session()))?;
    Ok(call.number(session).into())
}

pub(crate) fn setpgid<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.int(1) < 0 {
        return Err(Error::EINVAL.into());
    }
    let pid = process(call, call.int(0))?;
    let group = match call.int(1) {
        0 => pid,
        number => call.id(number).map_err(|_| Error::EPERM)?,
    };
    call.table(|table| table.set_group(call.pid(), pid, group))?;
    Ok(0)
}

pub(crate) fn setsid<M: Machine>(call: &Call<'_, M>) -> Done {
    let session = call.table(|table| table.set_session(call.pid()))?;
    Ok(call.number(session).into())
}

/// Replaces the caller's credentials by the result of `change`.
pub(crate) fn change_credentials<M: Machine>(
    call: &Call<'_, M>,
    change: impl FnOnce(&Credentials) -> Result<Credentials>,
) -> Done {
    let new = Arc::new(change(&call.thread.credentials())?);
    let tid = call.tid();
    call.table(|table| table.set_credentials(tid, new))?;
    Ok(0)
}

pub(crate) fn optional_id(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

/// A user or group id of the caller as it sees it.
pub(crate) fn own_id<M: Machine>(call: &Call<'_, M>, kind: IdKind, id: fn(&Ids) -> u32) -> Done {
    let credentials = call.thread.credentials();
    let users = &credentials.namespace;
    Ok(match kind {
        IdKind::User => users.shown_user(id(&credentials.user)),
        IdKind::Group => users.shown_group(id(&credentials.group)),
    }
    .into())
}

pub(crate) async fn get_three<M: Machine>(call: &Call<'_, M>, kind: IdKind) -> Done {
    const THREE: [fn(&Ids) -> u32; 3] = [|ids| ids.real, |ids| ids.effective, |ids| ids.saved];
    for (index, id) in THREE.into_iter().enumerate() {
        let id = own_id(call, kind, id)? as u32;
        call.write(call.arg(index), &id.to_le_bytes()).await?;
    }
    Ok(0)
}

pub(crate) async fn getgroups<M: Machine>(call: &Call<'_, M>) -> Done {
    let credentials = call.thread.credentials();
    let (groups, users) = (&credentials.groups, &credentials.namespace);
    let size = usize::try_from(call.int(0)).map_err(|_| Error::EINVAL)?;
    if size != 0 {
        if size < groups.len() {
            return Err(Error::EINVAL.into());
        }
        let bytes: Vec<u8> =
            groups.iter().flat_map(|group| users.shown_group(*group).to_le_bytes()).collect();
        call.write(call.arg(1), &bytes).await?;
    }
    Ok(groups.len() as u64)
}

pub(crate) async fn setgroups<M: Machine>(call: &Call<'_, M>) -> Done {
    let credentials = call.thread.credentials();
    let count = usize::try_from(call.int(0)).map_err(|_| Error::EINVAL)?;
    if !credentials.has_own(Privilege::SetGroup) || !credentials.namespace.may_set_groups() {
        return Err(Error::EPERM.into());
    }
    if count > Credentials::MAX_GROUPS {
        return Err(Error::EINVAL.into());
    }
    let bytes = call.memory().read_bytes(call.arg(1), 4 * count).await?;
    let groups: Vec<u32> =
        bytes.chunks_exact(4).map(|id| call.group(id.u32_at(0)?)).collect::<Result<_>>()?;
    change_credentials(call, |credentials| credentials.set_groups(&groups))
}

/// Checks that `rule` permits the caller to act on process `pid`; the caller's own process is
/// always permitted. `EPERM`, `ESRCH`.
fn check_target<M: Machine>(
    call: &Call<'_, M>,
    pid: Pid,
    rule: impl FnOnce(&Credentials, &Credentials) -> bool,
) -> Result<()> {
    let own = call.thread.credentials();
    let target = call.table(|table| Ok::<_, Error>(table.process(pid)?.credentials().clone()))?;
    if pid == call.pid() || rule(&own, &target) { Ok(()) } else { Err(Error::EPERM) }
}

/// Checks that the caller may change how process `pid` is scheduled. `EPERM`, `ESRCH`.
pub(crate) fn check_schedule<M: Machine>(call: &Call<'_, M>, pid: Pid) -> Result<()> {
    check_target(call, pid, Credentials::may_schedule)
}

pub(crate) async fn prlimit64<M: Machine>(call: &Call<'_, M>) -> Done {
    let (pid, kind) = (process(call, call.int(0))?, resource(call.uint(1).into())?);
    check_target(call, pid, Credentials::may_limit)?;
    let new = match call.arg(2) {
        0 => None,
        address => Some(limit(&call.read(address).await?)?),
    };
    let old = set_limit(call, pid, kind, new)?;
    call.write_optional(call.arg(3), &to_limit(old)).await?;
    Ok(0)
}

fn set_limit<M: Machine>(call: &Call<'_, M>, pid: Pid, kind: Resource, new: Option<Limit>) -> Result<Limit> {
    let privileged = call.has(Privilege::Resource);
    let old = call.table(|table| {
        let limits = &mut table.process_mut(pid)?.limits;
        let old = limits.get(kind);
        new.map_or(Ok(()), |new| limits.set(kind, new, privileged)).map(|()| old)
    })?;
    if let (Some(new), Resource::Stack, Some(thread)) = (new, kind, call.system().thread_of_process(pid)) {
        thread.memory().set_stack_limit(new.soft);
    }
    Ok(old)
}

pub(crate) async fn getrlimit<M: Machine>(call: &Call<'_, M>) -> Done {
    let kind = resource(call.uint(0).into())?;
    call.write(call.arg(1), &to_limit(call.thread.limits().get(kind))).await?;
    Ok(0)
}

pub(crate) async fn setrlimit<M: Machine>(call: &Call<'_, M>) -> Done {
    let kind = resource(call.uint(0).into())?;
    let new = limit(&call.read(call.arg(1)).await?)?;
    set_limit(call, call.pid(), kind, Some(new))?;
    Ok(0)
}

/// Resources used by the caller's process, and by children for which it waited.
fn usages<M: Machine>(call: &Call<'_, M>) -> Result<(Usage, Usage)> {
    call.table(|table| {
        let process = table.process(call.pid())?;
        Ok((table.usage(process), process.children_usage))
    })
}

pub(crate) async fn getrusage<M: Machine>(call: &Call<'_, M>) -> Done {
    let usage = match call.int(0) {
        0 => usages(call)?.0,
        -1 => usages(call)?.1,
        1 => call.table(|table| Ok::<_, Error>(table.thread(call.tid())?.usage()))?,
        _ => return Err(Error::EINVAL.into()),
    };
    call.write(call.arg(1), &to_rusage(&usage)).await?;
    Ok(0)
}

pub(crate) async fn times<M: Machine>(call: &Call<'_, M>) -> Done {
    let (own, children) = usages(call)?;
    call.write_optional(call.arg(0), &to_tms(&own, &children)).await?;
    Ok(ticks(call.system().environment().monotonic()))
}

/// The processes that the arguments of getpriority and setpriority name.
fn priority_targets<M: Machine>(call: &Call<'_, M>) -> Result<Vec<Pid>> {
    let number = call.int(1);
    let targets = match call.uint(0) {
        0 => alloc::vec![process(call, number)?],
        1 => {
            let own = call.table(|table| Ok::<_, Error>(table.process(call.pid())?.group()))?;
            let group = if number == 0 { own } else { call.id(number)? };
            call.table(|table| table.group_members(group))
        }
        2 => {
            let user = match number {
                0 => call.thread.credentials().user.real,
                number => call.user(number as u32)?,
            };
            let is_users = |process: &&unix::process::Process| process.credentials().user.real == user;
            call.table(|table| table.processes().filter(is_users).map(|process| process.pid()).collect())
        }
        _ => return Err(Error::EINVAL),
    };
    if targets.is_empty() { Err(Error::ESRCH) } else { Ok(targets) }
}

pub(crate) fn getpriority<M: Machine>(call: &Call<'_, M>) -> Done {
    let targets = priority_targets(call)?;
    let nice = |pid: &Pid| call.table(|table| table.process(*pid).map(|process| process.nice)).ok();
    let lowest = targets.iter().filter_map(nice).min().ok_or(Error::ESRCH)?;
    // The system call returns 40 to 1, so that no value looks like an error; the C library converts
    // it to the nice value.
    Ok((20 - i64::from(lowest)) as u64)
}

pub(crate) fn setpriority<M: Machine>(call: &Call<'_, M>) -> Done {
    let nice = call.int(2).clamp(-20, 19) as i8;
    let privileged = call.has(Privilege::Schedule);
    let set = |pid| {
        check_schedule(call, pid)?;
        call.table(|table| {
            let process = table.process_mut(pid)?;
            let floor = 20 - process.limits.soft(Resource::Nice).min(40) as i64;
            if nice < process.nice && !privileged && i64::from(nice) < floor {
                return Err(Error::EACCES);
            }
            process.nice = nice;
            Ok(())
        })?;
        super::schedule::apply_schedules(call, pid);
        Ok(())
    };
    // A process that the caller may not change does not keep the call from changing the others.
    let mut result = Ok(0);
    for pid in priority_targets(call)? {
        result = set(pid).map_or_else(|error: Error| Err(error.into()), |()| result);
    }
    result
}

/// The request of prctl that sets a filter of system calls.
const SET_SECCOMP: u32 = 22;

/// Whether this call of prctl changes which calls of the thread are observed.
pub(crate) fn sets_filter<M: Machine>(call: &Call<'_, M>) -> bool {
    call.uint(0) == SET_SECCOMP
}

pub(crate) async fn prctl<M: Machine>(call: &Call<'_, M>) -> Done {
    const SET_PDEATHSIG: u32 = 1;
    const GET_PDEATHSIG: u32 = 2;
    const GET_DUMPABLE: u32 = 3;
    const SET_DUMPABLE: u32 = 4;
    const SET_NAME: u32 = 15;
    const GET_NAME: u32 = 16;
    const SET_CHILD_SUBREAPER: u32 = 36;
    const GET_CHILD_SUBREAPER: u32 = 37;
    const SET_NO_NEW_PRIVS: u32 = 38;
    const GET_NO_NEW_PRIVS: u32 = 39;
    // The requests of prctl that always have the same answer here include those about timing modes,
    // which there are not.
    const GET_TIMING: u32 = 13;
    const GET_SECCOMP: u32 = 21;
    const GET_TIME_STAMPS: u32 = 25;
    const SET_TIMER_SLACK: u32 = 29;
    const GET_TIMER_SLACK: u32 = 30;
    const GET_HUGE_PAGES_DISABLED: u32 = 42;
    let (tid, pid, argument) = (call.tid(), call.pid(), call.arg(1));
    match call.uint(0) {
        SET_PDEATHSIG => {
            let signal = optional_signal(argument)?;
            call.table(|table| table.thread_mut(tid).map(|thread| thread.parent_death_signal = signal))?;
        }
        GET_PDEATHSIG => {
            let signal = call.table(|table| table.thread(tid).map(|thread| thread.parent_death_signal))?;
            let number = signal.map_or(0, |signal| u32::from(signal.number()));
            call.write(argument, &number.to_le_bytes()).await?;
        }
        GET_DUMPABLE => return Ok(call.table(|table| table.process(pid).map(|p| p.is_dumpable()))?.into()),
        SET_DUMPABLE if argument <= 1 => {
            call.table(|table| table.process_mut(pid).map(|process| process.set_dumpable(argument == 1)))?;
        }
        SET_NAME => {
            let name = call.memory().read_bytes(argument, 16).await.or(Err(Error::EFAULT));
            let name = match name {
                Ok(name) => name,
                // The memory after a short name may not be mapped.
                Err(_) => call.memory().read_string(argument, 16, Error::EFAULT).await?,
            };
            call.table(|table| table.set_name(tid, &name))?;
        }
        GET_NAME => {
            let mut name = call.table(|table| table.thread(tid).map(|thread| thread.name().to_vec()))?;
            name.resize(16, 0);
            call.write(argument, &name).await?;
        }
        SET_CHILD_SUBREAPER => {
            call.table(|table| table.process_mut(pid).map(|process| process.is_subreaper = argument != 0))?;
        }
        GET_CHILD_SUBREAPER => {
            let is = call.table(|table| table.process(pid).map(|process| process.is_subreaper))?;
            call.write(argument, &u32::from(is).to_le_bytes()).await?;
        }
        SET_NO_NEW_PRIVS if argument == 1 => {
            change_credentials(call, |old| Ok(Credentials { no_new_privileges: true, ..old.clone() }))?;
        }
        SET_SECCOMP => return super::seccomp::set_mode(call, argument, call.arg(2)).await,
        GET_SECCOMP => return Ok(super::seccomp::mode(call)),
        GET_TIMING | GET_HUGE_PAGES_DISABLED => {}
        SET_TIMER_SLACK => call.table(|table| {
            let slack = &mut table.thread_mut(tid)?.timer_slack;
            slack.now = if argument as i64 <= 0 { slack.first } else { argument };
            Ok::<_, Error>(())
        })?,
        GET_TIMER_SLACK => return Ok(call.table(|table| table.thread(tid).map(|t| t.timer_slack.now))?),
        GET_TIME_STAMPS => call.write(argument, &1u32.to_le_bytes()).await?,
        GET_NO_NEW_PRIVS => return Ok(call.thread.credentials().no_new_privileges.into()),
        _ => return super::capability::control(call),
    }
    Ok(0)
}

pub(crate) async fn arch_prctl<M: Machine>(call: &Call<'_, M>) -> Done {
    const SET_FS: u32 = 0x1002;
    const GET_FS: u32 = 0x1003;
    match call.uint(0) {
        SET_FS if call.arg(1) < 1 << 47 => {
            let state = ThreadState { rax: 0, fs_base: call.arg(1), ..call.registers()? };
            Err(Stop::Outcome(Outcome::Registers(Box::new(state))))
        }
        SET_FS => Err(Error::EPERM.into()),
        GET_FS => {
            call.write(call.arg(1), &call.registers()?.fs_base.to_le_bytes()).await?;
            Ok(0)
        }
        _ => Err(Error::EINVAL.into()),
    }
}

pub(crate) fn set_tid_address<M: Machine>(call: &Call<'_, M>) -> Done {
    let address = call.arg(0);
    Addresses::of(call.thread).clear_child_tid.store(address, Ordering::Relaxed);
    Ok(call.thread.own_numbers().thread.into())
}

pub(crate) fn set_robust_list<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.arg(1) != 24 {
        return Err(Error::EINVAL.into());
    }
    Addresses::of(call.thread).robust_list.store(call.arg(0), Ordering::Relaxed);
    Ok(0)
}

pub(crate) async fn get_robust_list<M: Machine>(call: &Call<'_, M>) -> Done {
    let tid = if call.int(0) == 0 { call.tid() } else { call.id(call.int(0))? };
    call.table(|table| {
        let pid = table.thread(tid)?.pid();
        table.may_inspect(call.tid(), pid, InspectAs::RealUser)
    })?;
    let thread = call.system().thread(tid).ok_or(Error::ESRCH)?;
    let head = Addresses::of(&thread).robust_list.load(Ordering::Relaxed);
    call.write(call.arg(2), &24u64.to_le_bytes()).await?;
    call.write(call.arg(1), &head.to_le_bytes()).await?;
    Ok(0)
}
