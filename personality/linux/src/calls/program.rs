//! Calls that make threads, processes and programs: clone, fork, vfork, unshare, execve.

use crate::call::{Call, Done, Outcome, Stop};
use crate::kept::Addresses;
use crate::layout::Fields;
use crate::layout::signal::optional_signal;
use crate::names::number;
use crate::nsfs::{self, Kind};
use crate::pidfd::PidFile;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use mach::Machine;
use mach::machine::ThreadState;
use unix::exec::Arguments;
use unix::process::{InspectAs, Resource, TraceEvent};
use unix::signal::{RestartKind, Signal};
use unix::sync::Turns;
use unix::thread::{CloneRequest, ExecRequest, Namespace, NewNamespaces};
use unix::vfs::At;
use unix::{Error, Result};

const CLONE_VM: u64 = 0x100;
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_SIGHAND: u64 = 0x800;
const CLONE_PTRACE: u64 = 0x2000;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_NEWNS: u64 = 0x2_0000;
const CLONE_SYSVSEM: u64 = 0x4_0000;
const CLONE_SETTLS: u64 = 0x8_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_DETACHED: u64 = 0x40_0000;
const CLONE_UNTRACED: u64 = 0x80_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
const CLONE_NEWUTS: u64 = 0x400_0000;
const CLONE_NEWIPC: u64 = 0x800_0000;
const CLONE_NEWUSER: u64 = 0x1000_0000;
const CLONE_NEWPID: u64 = 0x2000_0000;
const CLONE_IO: u64 = 0x8000_0000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// The arguments of clone, from registers (clone) or from a structure (clone3).
struct CloneArguments {
    flags: u64,
    exit_signal: u64,
    stack: u64,
    parent_tid: u64,
    pid_file: u64,
    child_tid: u64,
    tls: u64,
}

pub(crate) async fn fork<M: Machine>(call: &Call<'_, M>, vfork: bool) -> Done {
    let flags = if vfork { CLONE_VM | CLONE_VFORK } else { 0 };
    let exit_signal = Signal::CHLD.number().into();
    let nothing =
        CloneArguments { flags, exit_signal, stack: 0, parent_tid: 0, pid_file: 0, child_tid: 0, tls: 0 };
    clone_with(call, if vfork { number::vfork } else { number::fork }, nothing).await
}

pub(crate) async fn clone<M: Machine>(call: &Call<'_, M>) -> Done {
    let flags = call.arg(0) & 0xffff_ffff;
    // The kernel would store the thread id and the descriptor of the process at the same address.
    if flags & (CLONE_PIDFD | CLONE_PARENT_SETTID) == CLONE_PIDFD | CLONE_PARENT_SETTID {
        return Err(Error::EINVAL.into());
    }
    let arguments = CloneArguments {
        flags: flags & !0xff,
        exit_signal: flags & 0xff,
        stack: call.arg(1),
        parent_tid: call.arg(2),
        pid_file: call.arg(2),
        child_tid: call.arg(3),
        tls: call.arg(4),
    };
    clone_with(call, number::clone, arguments).await
}

pub(crate) async fn clone3<M: Machine>(call: &Call<'_, M>) -> Done {
    const KNOWN: usize = 88;
    let size = call.arg(1);
    if size < 64 {
        return Err(Error::EINVAL.into());
    }
    if size > 4096 {
        return Err(Error::E2BIG.into());
    }
    let mut bytes = call.memory().read_bytes(call.arg(0), size as usize).await?;
    if bytes.len() > KNOWN && bytes[KNOWN..].iter().any(|byte| *byte != 0) {
        return Err(Error::E2BIG.into());
    }
    bytes.resize(KNOWN, 0);
    let word = |index: usize| bytes.u64_at(8 * index);
    let (stack, stack_size) = (word(5)?, word(6)?);
    if (stack == 0) != (stack_size == 0) || word(0)? & (0xff | CLONE_DETACHED) != 0 {
        return Err(Error::EINVAL.into());
    }
    // The fields set_tid and cgroup are not supported.
    if word(8)? != 0 || word(9)? != 0 {
        return Err(Error::EINVAL.into());
    }
    let arguments = CloneArguments {
        flags: word(0)?,
        exit_signal: word(4)?,
        stack: stack.checked_add(stack_size).ok_or(Error::EINVAL)?,
        parent_tid: word(3)?,
        pid_file: word(1)?,
        child_tid: word(2)?,
        tls: word(7)?,
    };
    clone_with(call, number::clone3, arguments).await
}

async fn clone_with<M: Machine>(call: &Call<'_, M>, number: u64, arguments: CloneArguments) -> Done {
    const WITHOUT_EFFECT: u64 = CLONE_SYSVSEM | CLONE_DETACHED | CLONE_IO;
    const KNOWN: u64 = CLONE_VM
        | CLONE_FS
        | CLONE_FILES
        | CLONE_SIGHAND
        | CLONE_PIDFD
        | CLONE_VFORK
        | CLONE_PARENT
        | CLONE_THREAD
        | CLONE_SETTLS
        | CLONE_PARENT_SETTID
        | CLONE_CHILD_CLEARTID
        | CLONE_CHILD_SETTID
        | CLONE_CLEAR_SIGHAND
        | CLONE_PTRACE
        | CLONE_UNTRACED
        | NEW_NAMESPACES
        | WITHOUT_EFFECT;
    let flags = arguments.flags;
    let has = |flag: u64| flags & flag == flag;
    let contradictory = (has(CLONE_SIGHAND) && !has(CLONE_VM))
        || (has(CLONE_THREAD) && !has(CLONE_SIGHAND))
        || (has(CLONE_FS) && flags & (CLONE_NEWNS | CLONE_NEWUSER) != 0)
        || (has(CLONE_THREAD) && flags & (CLONE_NEWUSER | CLONE_NEWPID) != 0)
        || (has(CLONE_PARENT) && flags & (CLONE_NEWUSER | CLONE_NEWPID) != 0)
        || (has(CLONE_NEWIPC) && has(CLONE_SYSVSEM))
        || has(CLONE_SIGHAND | CLONE_CLEAR_SIGHAND)
        || (has(CLONE_PIDFD) && flags & (CLONE_THREAD | CLONE_DETACHED) != 0)
        || (has(CLONE_THREAD) && arguments.exit_signal != 0 && has(CLONE_CLEAR_SIGHAND));
    if flags & !KNOWN != 0 || contradictory {
        return Err(Error::EINVAL.into());
    }
    let tid = call.tid();
    // Signals that are pending are delivered before a child is made, and then the call is made
    // again.
    if call.table(|table| table.has_work(tid)) {
        return Err(Stop::Outcome(Outcome::Interrupted(RestartKind::RestartNoIntr)));
    }
    if has(CLONE_SETTLS) && arguments.tls >= 1 << 47 {
        return Err(Error::EPERM.into());
    }
    let chosen = |flag, address| if has(flag) { address } else { 0 };
    let request = CloneRequest {
        share_memory: has(CLONE_VM),
        share_descriptors: has(CLONE_FILES),
        share_directories: has(CLONE_FS),
        namespaces: namespaces(flags),
        share_actions: has(CLONE_SIGHAND),
        same_process: has(CLONE_THREAD),
        same_parent: has(CLONE_PARENT),
        clear_handlers: has(CLONE_CLEAR_SIGHAND),
        vfork: has(CLONE_VFORK),
        exit_signal: if has(CLONE_THREAD) { None } else { optional_signal(arguments.exit_signal)? },
        store_in_parent: chosen(CLONE_PARENT_SETTID, arguments.parent_tid),
        store_in_child: chosen(CLONE_CHILD_SETTID, arguments.child_tid),
    };
    let mut state = Box::new(ThreadState { rax: 0, ..call.registers()? });
    if arguments.stack != 0 {
        state.rsp = arguments.stack;
    }
    if has(CLONE_SETTLS) {
        state.fs_base = arguments.tls;
    }
    let unstarted = match call.thread.clone_thread(&request).await {
        // A signal has come since the check for pending ones: the call is made again after its
        // delivery.
        Err(Error::EINTR) => return Err(Stop::Outcome(Outcome::Interrupted(RestartKind::RestartNoIntr))),
        made => made?,
    };
    let child = unstarted.tid();
    // The child may be gone when its number is returned.
    let number_of_child = u64::from(call.number(child));
    let event = match () {
        () if request.vfork => TraceEvent::VFork,
        () if request.exit_signal == Some(Signal::CHLD) => TraceEvent::Fork,
        () => TraceEvent::Clone,
    };
    let message = call.table(|table| table.number_for_tracer(tid, child)).into();
    let stop = call.table(|table| table.event_stop(tid, event, message)).filter(|_| !has(CLONE_UNTRACED));
    if stop.is_some() || has(CLONE_PTRACE) {
        call.table(|table| table.inherit_tracing(tid, child));
        unstarted.thread().observe_calls();
    }
    if has(CLONE_PIDFD) && arguments.pid_file != 0 {
        super::pidfd::store_for_child(call, child, arguments.pid_file).await?;
    }
    Addresses::of(unstarted.thread())
        .clear_child_tid
        .store(chosen(CLONE_CHILD_CLEARTID, arguments.child_tid), Ordering::Relaxed);
    unstarted.start(state);
    if let Some(stop) = stop {
        call.linux.stop_in_call(call.thread, number, stop).await;
    }
    if request.vfork {
        call.system().processes().wait_vfork(tid, child).await;
        let event = TraceEvent::VForkDone;
        if let Some(stop) = call.table(|table| table.event_stop(tid, event, message)) {
            call.linux.stop_in_call(call.thread, number, stop).await;
        }
    }
    Ok(number_of_child)
}

/// The namespaces that can be made.
const NEW_NAMESPACES: u64 = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID;

/// The namespaces that flags ask for.
fn namespaces(flags: u64) -> NewNamespaces {
    let all = [
        (CLONE_NEWNS, NewNamespaces::MOUNTS),
        (CLONE_NEWUTS, NewNamespaces::NAMES),
        (CLONE_NEWIPC, NewNamespaces::OBJECTS),
        (CLONE_NEWUSER, NewNamespaces::USERS),
        (CLONE_NEWPID, NewNamespaces::PROCESSES),
    ];
    all.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, new)| new).collect()
}

pub(crate) fn unshare<M: Machine>(call: &Call<'_, M>) -> Done {
    let flags = call.arg(0);
    // Memory, signal actions and the thread's process are its own if it is the only one.
    const ALONE: u64 = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    if flags & !(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | NEW_NAMESPACES | ALONE) != 0 {
        return Err(Error::EINVAL.into());
    }
    if flags & ALONE != 0 && !call.table(|table| table.is_alone(call.tid())) {
        return Err(Error::EINVAL.into());
    }
    call.thread.unshare(namespaces(flags), flags & CLONE_FS != 0)?;
    if flags & CLONE_FILES != 0 {
        call.thread.unshare_descriptors()?;
    }
    Ok(0)
}

/// setns(2): into the namespace of a file, or into those of a process.
pub(crate) fn setns<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, kinds) = (call.thread.descriptors().get(call.int(0))?, call.arg(1) & 0xffff_ffff);
    if let Some(found) = file.object_as::<PidFile<M>>() {
        if kinds == 0 || kinds & !NEW_NAMESPACES != 0 {
            return Err(Error::EINVAL.into());
        }
        let process = found.process();
        let target = call.system().thread_of_exact(process).ok_or(Error::ESRCH)?;
        let chosen = KINDS.into_iter().filter(|(bit, _)| kinds & bit != 0);
        let all: Vec<Namespace> = chosen.map(|(_, kind)| nsfs::namespace_of(&target, kind)).collect();
        // The namespaces are taken first, as `may_inspect` requires.
        call.table(|table| {
            let pid = table.exact_process(process)?.pid();
            table.may_inspect(call.tid(), pid, InspectAs::RealUser)
        })?;
        call.thread.join(&all)?;
        return Ok(0);
    }
    let namespace = nsfs::namespace_in(&file).ok_or(Error::EINVAL)?;
    if kinds != 0 && kinds != flag(&namespace) {
        return Err(Error::EINVAL.into());
    }
    call.thread.join(core::slice::from_ref(&namespace))?;
    Ok(0)
}

/// The kinds of namespaces by their flags, that of users first.
const KINDS: [(u64, Kind); 5] = [
    (CLONE_NEWUSER, Kind::Users),
    (CLONE_NEWNS, Kind::Mounts),
    (CLONE_NEWPID, Kind::Processes),
    (CLONE_NEWUTS, Kind::Names),
    (CLONE_NEWIPC, Kind::Objects),
];

/// The flag with which a namespace of this kind is made.
pub(crate) fn flag(namespace: &Namespace) -> u64 {
    match namespace {
        Namespace::Users(_) => CLONE_NEWUSER,
        Namespace::Mounts(_) => CLONE_NEWNS,
        Namespace::Processes(_) => CLONE_NEWPID,
        Namespace::Names(_) => CLONE_NEWUTS,
        Namespace::Objects(_) => CLONE_NEWIPC,
    }
}

/// After this many strings, reading them lets other tasks run.
const STRINGS_TURN: u32 = 256;

/// A null-terminated array of strings in the program's memory; a null pointer is an empty array, as
/// in Linux.
async fn strings<M: Machine>(call: &Call<'_, M>, array: u64) -> Result<Arguments> {
    let limits = call.thread.limits();
    let limit = unix::exec::arguments::size_limit(limits.soft(Resource::Stack));
    let mut strings = Arguments::new();
    if array == 0 {
        return Ok(strings);
    }
    let memory = call.memory();
    let mut turns = Turns::every(STRINGS_TURN);
    for index in 0.. {
        turns.step().await;
        let pointer = u64::from_le_bytes(memory.read(array.wrapping_add(8 * index)).await?);
        if pointer == 0 {
            break;
        }
        let string = memory.read_string(pointer, unix::exec::arguments::STRING_LIMIT, Error::E2BIG).await?;
        strings.push(&string)?;
        if strings.stack_size() > limit {
            return Err(Error::E2BIG);
        }
    }
    Ok(strings)
}

pub(crate) async fn execve<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(0).await?;
    exec(call, At::Current, path, (true, false), (call.arg(1), call.arg(2))).await
}

pub(crate) async fn execveat<M: Machine>(call: &Call<'_, M>) -> Done {
    const SYMLINK_NOFOLLOW: u32 = 0x100;
    const EMPTY_PATH: u32 = 0x1000;
    let flags = call.uint(4);
    if flags & !(SYMLINK_NOFOLLOW | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let path = call.path(1).await?;
    let how = (flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0);
    exec(call, call.at_for(0, &path)?, path, how, (call.arg(2), call.arg(3))).await
}

async fn exec<M: Machine>(
    call: &Call<'_, M>,
    at: At,
    path: Vec<u8>,
    (follow, empty): (bool, bool),
    (arguments, environment): (u64, u64),
) -> Done {
    let mut arguments = strings(call, arguments).await?;
    if arguments.is_empty() {
        // Linux gives a program without arguments an empty string as its name, which the program
        // may rely on.
        arguments.push(b"")?;
    }
    let environment = strings(call, environment).await?;
    let request = ExecRequest { at, path, follow, empty, arguments, environment };
    let executed = call.thread.exec(request, call.linux.leave_memory(call.thread)).await?;
    Err(Stop::Outcome(Outcome::Executed(executed.state)))
}
