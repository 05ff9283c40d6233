//! The table of system calls.

mod aio;
mod capability;
mod console;
mod descriptor;
pub(crate) mod disk;
mod fiemap;
mod futex;
mod inotify;
mod interface;
mod ioctl;
mod memory;
mod mount;
mod mount_file;
mod mqueue;
mod path;
mod pidfd;
pub(crate) mod poll;
mod process;
pub(crate) mod program;
mod ptrace;
mod remote;
mod rtc;
mod schedule;
mod seccomp;
mod signal;
mod socket;
mod splice;
mod swap;
mod system;
mod sysv;
mod time;
mod transfer;

#[cfg(test)]
mod tests;

use crate::call::{Call, Done};
use crate::layout::file::EntryLayout;
use crate::names::number::*;
use crate::{errno, return_to_user};
use core::future::Future;
use mach::Machine;
use path::Named;
use process::{change_credentials, optional_id};
use unix::Error;
use unix::namespace::IdKind;
use unix::sync::poll_once;

/// A call in memory of its own: the task of a thread then has room for a pointer instead of the
/// largest of all calls, and need not copy so much. The commonest calls do without.
fn boxed<F: Future<Output = Done>>(call: F) -> core::pin::Pin<alloc::boxed::Box<F>> {
    alloc::boxed::Box::pin(call)
}

/// How a call is tried without the thread's task. Each row of the table says it:
///
/// - `Once`: the call is polled once: until it is ready it has changed nothing that a second call
///   would not change in the same way; with a condition, only if that holds
/// - `Own`: this form of its own tries the call: it does all that can be done without waiting, or
///   nothing
/// - `Changes`: not tried: it could have to wait for memory or for a lock after it has changed
///   something
/// - `Waits`: not tried: it waits nearly always, so an attempt would be for nothing
/// - `Signals`: not tried: it can send a signal to the caller, which the thread's task delivers at
///   the end of the call at less cost than a recall
/// - `Threads`: not tried: it makes, moves, schedules or ends threads, the caller's own among them
/// - `Registers`: not tried: it reads or replaces the caller's registers
macro_rules! attempt {
    (Once; $work:expr) => {
        once(move || async move { $work })
    };
    (Once $condition:expr; $work:expr) => {
        if $condition { once(move || async move { $work }) } else { None }
    };
    (Own $attempt:expr; $work:expr) => {
        $attempt
    };
    (Changes; $work:expr) => {
        None
    };
    (Waits; $work:expr) => {
        None
    };
    (Signals; $work:expr) => {
        None
    };
    (Threads; $work:expr) => {
        None
    };
    (Registers; $work:expr) => {
        None
    };
}

/// Makes [`dispatch`] and [`try_table`] of a list, and for tests a function that says what is in
/// it.
macro_rules! table {
    ($call:ident, $number:ident: $($($name:ident)|+: $way:ident $(($condition:expr))? => $work:expr,)*) => {
        /// Finds and runs the call. A number that is not in the table is no call: `ENOSYS`, and a
        /// line in the log.
        #[expect(non_upper_case_globals, reason = "calls go by their own names")]
        pub(crate) async fn dispatch<M: Machine>($call: &Call<'_, M>, $number: u64) -> Done {
            match $number {
                $($($name)|+ => $work,)*
                unknown => no_call($call, unknown),
            }
        }

        /// Tries the call as its row says.
        #[inline]
        #[expect(non_upper_case_globals, reason = "calls go by their own names")]
        fn try_table<M: Machine>($call: &Call<'_, M>, $number: u64) -> Option<Done> {
            /// An attempt needs no memory of its own for the call.
            fn boxed<F>(call: F) -> F {
                call
            }
            match $number {
                $($($name)|+ => attempt!($way $($condition)?; $work),)*
                unknown => Some(no_call($call, unknown)),
            }
        }

        /// Whether there is such a call here.
        #[cfg(test)]
        #[expect(non_upper_case_globals, reason = "calls go by their own names")]
        fn is_served(number: u64) -> bool {
            matches!(number, $($($name)|+)|*)
        }
    };
}

/// The result of a number that is no call, with a line in the log.
fn no_call<M: Machine>(call: &Call<'_, M>, number: u64) -> Done {
    call.linux.log_unknown(call.thread, number);
    Ok(errno::result(Err(Error::ENOSYS)))
}

table! { call, number:
    // Files by descriptor.
    read: Own(transfer::try_read(call)) => transfer::read(call).await,
    write: Own(transfer::try_write(call)) => transfer::write(call).await,
    readv: Own(transfer::try_readv(call)) => transfer::readv(call).await,
    writev: Own(transfer::try_writev(call)) => transfer::writev(call).await,
    pread64: Own(transfer::try_pread(call)) => transfer::pread64(call).await,
    pwrite64: Own(transfer::try_pwrite(call)) => transfer::pwrite64(call).await,
    preadv: Once => boxed(transfer::preadv(call, false)).await,
    pwritev: Changes => boxed(transfer::pwritev(call, false)).await,
    preadv2: Once => boxed(transfer::preadv(call, true)).await,
    pwritev2: Changes => boxed(transfer::pwritev(call, true)).await,
    lseek: Once => descriptor::lseek(call).await,
    sendfile: Changes => boxed(splice::sendfile(call)).await,
    copy_file_range: Changes => boxed(splice::copy_file_range(call)).await,
    splice: Changes => boxed(splice::splice(call)).await,
    tee: Changes => boxed(splice::tee(call)).await,
    vmsplice: Changes => boxed(splice::vmsplice(call)).await,
    memfd_create: Once => boxed(descriptor::memfd_create(call)).await,
    open: Once(!descriptor::is_exclusive(call.uint(1))) => boxed(descriptor::open(call)).await,
    creat: Once => boxed(descriptor::creat(call)).await,
    openat: Once(!descriptor::is_exclusive(call.uint(2))) => boxed(descriptor::openat(call)).await,
    openat2: Changes => boxed(descriptor::openat2(call)).await,
    close: Own(descriptor::try_close(call)) => boxed(descriptor::close(call)).await,
    close_range: Once => descriptor::close_range(call),
    dup: Once => descriptor::dup(call),
    dup2: Once => descriptor::dup2(call),
    dup3: Once => descriptor::dup3(call),
    pipe: Changes => boxed(descriptor::pipe(call, 0)).await,
    pipe2: Changes => boxed(descriptor::pipe(call, call.uint(1))).await,
    fcntl: Once => boxed(descriptor::fcntl(call)).await,
    ioctl: Once(ioctl::only_asks(call.uint(1))) => boxed(ioctl::ioctl(call)).await,
    flock: Once => boxed(descriptor::flock(call)).await,
    fsync | fdatasync: Own(descriptor::try_fsync(call)) => boxed(descriptor::fsync(call)).await,
    sync_file_range: Waits => boxed(descriptor::fsync(call)).await,
    sync | syncfs: Waits => boxed(descriptor::sync(call)).await,
    fadvise64 | readahead: Once => descriptor::fadvise64(call),
    ftruncate: Once => boxed(descriptor::ftruncate(call)).await,
    fallocate: Once => boxed(descriptor::fallocate(call)).await,
    getdents64: Own(descriptor::try_getdents(call, EntryLayout::Wide)) => boxed(descriptor::getdents(call, EntryLayout::Wide)).await,
    getdents: Own(descriptor::try_getdents(call, EntryLayout::Old)) => boxed(descriptor::getdents(call, EntryLayout::Old)).await,

    // Names and attributes.
    stat: Once => path::stat(call, true).await,
    lstat: Once => path::stat(call, false).await,
    fstat: Once => path::fstat(call).await,
    newfstatat: Once => path::newfstatat(call).await,
    statx: Once => boxed(path::statx(call)).await,
    access: Once => path::access(call).await,
    faccessat: Once => boxed(path::faccessat(call, 0)).await,
    faccessat2: Once => boxed(path::faccessat(call, call.uint(3))).await,
    getcwd: Once => boxed(path::getcwd(call)).await,
    chdir: Once => boxed(path::chdir(call)).await,
    fchdir: Once => boxed(path::fchdir(call)).await,
    chroot: Once => boxed(path::chroot(call)).await,
    mkdir: Once => boxed(path::mkdir(call, false)).await,
    mkdirat: Once => boxed(path::mkdir(call, true)).await,
    rmdir: Once => boxed(path::rmdir(call)).await,
    unlink: Once => boxed(path::unlink(call)).await,
    unlinkat: Once => boxed(path::unlinkat(call)).await,
    mknod: Once => boxed(path::mknod(call, false)).await,
    mknodat: Once => boxed(path::mknod(call, true)).await,
    symlink: Once => boxed(path::symlink(call, false)).await,
    symlinkat: Once => boxed(path::symlink(call, true)).await,
    readlink: Once => boxed(path::readlink(call, false)).await,
    readlinkat: Once => boxed(path::readlink(call, true)).await,
    link: Once => boxed(path::link(call)).await,
    linkat: Once => boxed(path::linkat(call)).await,
    rename: Once => boxed(path::rename(call)).await,
    renameat: Once => boxed(path::renameat(call, 0)).await,
    renameat2: Once => boxed(path::renameat(call, call.uint(4))).await,
    chmod: Once => boxed(path::chmod(call)).await,
    fchmod: Once => boxed(path::fchmod(call)).await,
    fchmodat: Once => boxed(path::fchmodat(call, 0)).await,
    fchmodat2: Once => boxed(path::fchmodat(call, call.uint(3))).await,
    chown: Once => boxed(path::chown(call, true)).await,
    lchown: Once => boxed(path::chown(call, false)).await,
    fchown: Once => boxed(path::fchown(call)).await,
    fchownat: Once => boxed(path::fchownat(call)).await,
    utime: Once => boxed(path::utimes(call, true, false)).await,
    utimes: Once => boxed(path::utimes(call, false, false)).await,
    futimesat: Once => boxed(path::utimes(call, false, true)).await,
    utimensat: Once => boxed(path::utimensat(call)).await,
    truncate: Once => boxed(path::truncate(call)).await,
    umask: Once => path::umask(call),
    statfs: Once => boxed(path::statfs(call)).await,
    fstatfs: Once => boxed(path::fstatfs(call)).await,
    getxattr: Once => boxed(path::getxattr(call, Named::Path)).await,
    lgetxattr: Once => boxed(path::getxattr(call, Named::Link)).await,
    fgetxattr: Once => boxed(path::getxattr(call, Named::Open)).await,
    listxattr: Once => boxed(path::listxattr(call, Named::Path)).await,
    llistxattr: Once => boxed(path::listxattr(call, Named::Link)).await,
    flistxattr: Once => boxed(path::listxattr(call, Named::Open)).await,
    setxattr: Once => boxed(path::setxattr(call, Named::Path)).await,
    lsetxattr: Once => boxed(path::setxattr(call, Named::Link)).await,
    fsetxattr: Once => boxed(path::setxattr(call, Named::Open)).await,
    removexattr: Once => boxed(path::removexattr(call, Named::Path)).await,
    lremovexattr: Once => boxed(path::removexattr(call, Named::Link)).await,
    fremovexattr: Once => boxed(path::removexattr(call, Named::Open)).await,
    mount: Changes => boxed(mount::mount(call)).await,
    umount2: Changes => boxed(mount::umount2(call)).await,
    swapon: Changes => boxed(swap::swapon(call)).await,
    swapoff: Changes => boxed(swap::swapoff(call)).await,
    open_tree: Changes => boxed(mount_file::open_tree(call)).await,
    move_mount: Changes => boxed(mount_file::move_mount(call)).await,
    mount_setattr: Changes => boxed(mount_file::mount_setattr(call)).await,
    fsopen: Changes => boxed(mount_file::fsopen(call)).await,
    fspick: Changes => boxed(mount_file::fspick(call)).await,
    fsconfig: Changes => boxed(mount_file::fsconfig(call)).await,
    fsmount: Changes => boxed(mount_file::fsmount(call)).await,
    pivot_root: Changes => boxed(mount::pivot_root(call)).await,

    // Waiting for files.
    poll: Own(poll::try_poll(call)) => boxed(poll::poll(call)).await,
    ppoll: Own(poll::try_ppoll(call)) => boxed(poll::ppoll(call)).await,
    select: Own(poll::try_select(call)) => boxed(poll::select(call)).await,
    pselect6: Own(poll::try_pselect6(call)) => boxed(poll::pselect6(call)).await,
    epoll_create: Once => poll::epoll_create_old(call),
    epoll_create1: Once => poll::epoll_create(call, call.uint(0)),
    epoll_ctl: Once => boxed(poll::epoll_ctl(call)).await,
    epoll_wait: Own(poll::try_epoll_wait(call, false)) => boxed(poll::epoll_wait(call)).await,
    epoll_pwait: Own(poll::try_epoll_wait(call, true)) => boxed(poll::epoll_pwait(call)).await,
    epoll_pwait2: Changes => boxed(poll::epoll_pwait2(call)).await,
    eventfd: Once => poll::eventfd(call, 0),
    eventfd2: Once => poll::eventfd(call, call.uint(1)),
    timerfd_create: Once => poll::timerfd_create(call),
    timerfd_settime: Once(call.arg(3) == 0) => boxed(poll::timerfd_settime(call)).await,
    timerfd_gettime: Once => boxed(poll::timerfd_gettime(call)).await,
    signalfd: Once => boxed(poll::signalfd(call, 0)).await,
    signalfd4: Once => boxed(poll::signalfd(call, call.uint(3))).await,

    inotify_init: Once => inotify::inotify_init(call, 0),
    inotify_init1: Once => inotify::inotify_init(call, call.uint(0)),
    inotify_add_watch: Once => boxed(inotify::inotify_add_watch(call)).await,
    inotify_rm_watch: Once => inotify::inotify_rm_watch(call),

    // Sockets.
    socket: Once => socket::socket(call),
    socketpair: Changes => boxed(socket::socketpair(call)).await,
    bind: Changes => boxed(socket::bind(call)).await,
    listen: Once => socket::listen(call),
    connect: Changes => boxed(socket::connect(call)).await,
    accept: Once(call.arg(1) == 0) => boxed(socket::accept(call, 0)).await,
    accept4: Once(call.arg(1) == 0) => boxed(socket::accept(call, call.uint(3))).await,
    getsockname: Once => boxed(socket::getsockname(call)).await,
    getpeername: Once => boxed(socket::getpeername(call)).await,
    shutdown: Once => socket::shutdown(call),
    sendto: Own(socket::try_sendto(call)) => boxed(socket::sendto(call)).await,
    sendmsg: Own(socket::try_sendmsg(call)) => boxed(socket::sendmsg(call)).await,
    sendmmsg: Changes => boxed(socket::sendmmsg(call)).await,
    recvfrom: Own(socket::try_recvfrom(call)) => boxed(socket::recvfrom(call)).await,
    recvmsg: Changes => boxed(socket::recvmsg(call)).await,
    recvmmsg: Changes => boxed(socket::recvmmsg(call)).await,
    setsockopt: Once => boxed(socket::setsockopt(call)).await,
    getsockopt: Once(!socket::takes_error(call)) => boxed(socket::getsockopt(call)).await,

    // Processes and threads.
    fork: Threads => boxed(program::fork(call, false)).await,
    vfork: Threads => boxed(program::fork(call, true)).await,
    clone: Threads => boxed(program::clone(call)).await,
    clone3: Threads => boxed(program::clone3(call)).await,
    unshare: Threads => program::unshare(call),
    setns: Threads => program::setns(call),
    execve: Threads => boxed(program::execve(call)).await,
    execveat: Threads => boxed(program::execveat(call)).await,
    exit: Threads => return_to_user::exit(call),
    exit_group: Threads => return_to_user::exit_group(call),
    wait4: Own(process::try_wait4(call)) => boxed(process::wait4(call)).await,
    pidfd_open: Once => pidfd::pidfd_open(call),
    pidfd_send_signal: Signals => boxed(pidfd::pidfd_send_signal(call)).await,
    pidfd_getfd: Once => pidfd::pidfd_getfd(call),
    waitid: Waits => boxed(process::waitid(call)).await,
    getpid: Once => process::getpid(call),
    gettid: Once => process::gettid(call),
    getppid: Once => process::getppid(call),
    getpgid: Once => process::getpgid(call, call.int(0)),
    getpgrp: Once => process::getpgid(call, 0),
    getsid: Once => process::getsid(call),
    setpgid: Signals => process::setpgid(call),
    setsid: Signals => process::setsid(call),
    getuid: Once => process::own_id(call, IdKind::User, |ids| ids.real),
    geteuid: Once => process::own_id(call, IdKind::User, |ids| ids.effective),
    getgid: Once => process::own_id(call, IdKind::Group, |ids| ids.real),
    getegid: Once => process::own_id(call, IdKind::Group, |ids| ids.effective),
    getresuid: Once => boxed(process::get_three(call, IdKind::User)).await,
    getresgid: Once => boxed(process::get_three(call, IdKind::Group)).await,
    getgroups: Once => boxed(process::getgroups(call)).await,
    setgroups: Once => boxed(process::setgroups(call)).await,
    setuid | setgid | setreuid | setregid | setresuid | setresgid | setfsuid | setfsgid: Once => set_ids(call, number),
    prlimit64: Once(call.arg(2) == 0 || call.arg(3) == 0) => boxed(process::prlimit64(call)).await,
    getrlimit: Once => boxed(process::getrlimit(call)).await,
    setrlimit: Once => boxed(process::setrlimit(call)).await,
    getrusage: Once => boxed(process::getrusage(call)).await,
    times: Once => boxed(process::times(call)).await,
    getpriority: Once => process::getpriority(call),
    setpriority: Threads => process::setpriority(call),
    prctl: Once(!process::sets_filter(call)) => boxed(process::prctl(call)).await,
    arch_prctl: Registers => boxed(process::arch_prctl(call)).await,
    set_tid_address: Once => process::set_tid_address(call),
    set_robust_list: Once => process::set_robust_list(call),
    get_robust_list: Once => boxed(process::get_robust_list(call)).await,
    sched_yield: Waits => boxed(schedule::sched_yield()).await,
    sched_getaffinity: Once => boxed(schedule::sched_getaffinity(call)).await,
    sched_setaffinity: Threads => boxed(schedule::sched_setaffinity(call)).await,
    sched_getparam: Once => boxed(schedule::sched_param(call, None)).await,
    sched_setparam: Threads => boxed(schedule::sched_param(call, Some(1))).await,
    sched_setscheduler: Threads => boxed(schedule::sched_param(call, Some(2))).await,
    sched_getscheduler: Once => schedule::sched_getscheduler(call),
    sched_get_priority_max: Once => schedule::sched_priority_bound(call, 99),
    sched_rr_get_interval: Once => boxed(schedule::sched_rr_get_interval(call)).await,
    sched_getattr: Once => boxed(schedule::sched_getattr(call)).await,
    sched_setattr: Threads => boxed(schedule::sched_setattr(call)).await,
    ioprio_get: Once => schedule::ioprio_get(call),
    ioprio_set: Once => schedule::ioprio_set(call),
    sched_get_priority_min: Once => schedule::sched_priority_bound(call, 1),
    // Restartable sequences and memory policies are optional, and programs do without.
    rseq | get_mempolicy | set_mempolicy | mbind: Once => Err(Error::ENOSYS.into()),

    ptrace: Changes => boxed(ptrace::ptrace(call)).await,
    process_vm_readv: Changes => boxed(remote::process_vm(call, false)).await,
    process_vm_writev: Changes => boxed(remote::process_vm(call, true)).await,
    kcmp: Once => remote::kcmp(call),

    seccomp: Changes => boxed(seccomp::seccomp(call)).await,

    // Signals.
    rt_sigaction: Own(signal::try_rt_sigaction(call)) => signal::rt_sigaction(call).await,
    rt_sigprocmask: Own(signal::try_rt_sigprocmask(call)) => signal::rt_sigprocmask(call).await,
    rt_sigreturn: Registers => boxed(return_to_user::rt_sigreturn(call)).await,
    rt_sigpending: Once => boxed(signal::rt_sigpending(call)).await,
    rt_sigsuspend: Waits => boxed(signal::rt_sigsuspend(call)).await,
    rt_sigtimedwait: Waits => boxed(signal::rt_sigtimedwait(call)).await,
    rt_sigqueueinfo: Signals => boxed(signal::rt_sigqueueinfo(call, false)).await,
    rt_tgsigqueueinfo: Signals => boxed(signal::rt_sigqueueinfo(call, true)).await,
    pause: Waits => boxed(signal::pause(call)).await,
    kill: Signals => signal::kill(call),
    tkill: Signals => signal::tgkill(call, false),
    tgkill: Signals => signal::tgkill(call, true),
    sigaltstack: Own(signal::try_sigaltstack(call)) => boxed(signal::sigaltstack(call)).await,
    restart_syscall: Waits => boxed(signal::restart_syscall(call)).await,

    // Memory.
    mmap: Changes => boxed(memory::mmap(call)).await,
    munmap: Changes => boxed(memory::munmap(call)).await,
    mprotect: Once => boxed(memory::mprotect(call)).await,
    mremap: Changes => boxed(memory::mremap(call)).await,
    brk: Changes => boxed(memory::brk(call)).await,
    madvise: Once => boxed(memory::madvise(call)).await,
    msync: Once => boxed(memory::msync(call)).await,
    mincore: Once => boxed(memory::mincore(call)).await,
    mlock: Changes => boxed(memory::mlock(call, true)).await,
    mlock2: Changes => boxed(memory::mlock2(call)).await,
    munlock: Changes => boxed(memory::mlock(call, false)).await,
    mlockall: Changes => boxed(memory::mlockall(call)).await,
    munlockall: Changes => boxed(memory::munlockall(call)).await,
    membarrier: Once => memory::membarrier(call),
    futex: Own(futex::try_futex(call)) => futex::futex(call).await,

    // Asynchronous I/O.
    io_setup: Changes => boxed(aio::io_setup(call)).await,
    io_destroy: Changes => boxed(aio::io_destroy(call)).await,
    io_submit: Changes => boxed(aio::io_submit(call)).await,
    io_cancel: Once => boxed(aio::io_cancel(call)).await,
    io_getevents: Changes => boxed(aio::io_getevents(call)).await,
    io_pgetevents: Changes => boxed(aio::io_pgetevents(call)).await,

    // System V objects.
    shmget: Changes => boxed(sysv::shmget(call)).await,
    shmat: Changes => boxed(sysv::shmat(call)).await,
    shmdt: Changes => boxed(sysv::shmdt(call)).await,
    shmctl: Once => boxed(sysv::shmctl(call)).await,
    semget: Once => sysv::semget(call),
    semop: Once => boxed(sysv::semop(call, false)).await,
    semtimedop: Once => boxed(sysv::semop(call, true)).await,
    semctl: Once => boxed(sysv::semctl(call)).await,
    msgget: Once => sysv::msgget(call),
    msgsnd: Once => boxed(sysv::msgsnd(call)).await,
    msgrcv: Changes => boxed(sysv::msgrcv(call)).await,
    msgctl: Once => boxed(sysv::msgctl(call)).await,

    // POSIX message queues.
    mq_open: Changes => boxed(mqueue::mq_open(call)).await,
    mq_unlink: Once => boxed(mqueue::mq_unlink(call)).await,
    mq_timedsend: Changes => boxed(mqueue::mq_timedsend(call)).await,
    mq_timedreceive: Changes => boxed(mqueue::mq_timedreceive(call)).await,
    mq_notify: Once => boxed(mqueue::mq_notify(call)).await,
    mq_getsetattr: Once => boxed(mqueue::mq_getsetattr(call)).await,

    // Time.
    clock_gettime: Once => time::clock_gettime(call).await,
    clock_getres: Once => boxed(time::clock_getres(call)).await,
    clock_settime: Once => boxed(time::clock_settime(call)).await,
    clock_nanosleep: Waits => boxed(time::clock_nanosleep(call)).await,
    nanosleep: Waits => boxed(time::nanosleep(call)).await,
    adjtimex: Changes => boxed(time::adjtimex(call, 0)).await,
    clock_adjtime: Changes => boxed(time::adjtimex(call, 1)).await,
    settimeofday: Once => boxed(time::settimeofday(call)).await,
    gettimeofday: Once => time::gettimeofday(call).await,
    time: Once => boxed(time::time(call)).await,
    getitimer: Once => boxed(time::getitimer(call)).await,
    setitimer: Once(call.arg(2) == 0) => boxed(time::setitimer(call)).await,
    alarm: Once => time::alarm(call),
    timer_create: Changes => boxed(time::timer_create(call)).await,
    timer_settime: Once(call.arg(3) == 0) => boxed(time::timer_settime(call)).await,
    timer_gettime: Once => boxed(time::timer_gettime(call)).await,
    timer_getoverrun: Once => time::timer_getoverrun(call),
    timer_delete: Once => time::timer_delete(call),

    // The system.
    uname: Once => boxed(system::uname(call)).await,
    sethostname: Once => boxed(system::set_name(call, false)).await,
    setdomainname: Once => boxed(system::set_name(call, true)).await,
    sysinfo: Once => boxed(system::sysinfo(call)).await,
    getrandom: Once => boxed(system::getrandom(call)).await,
    getcpu: Once => boxed(system::getcpu(call)).await,
    personality: Once => system::personality(call),
    syslog: Once => boxed(system::syslog(call)).await,
    reboot: Signals => boxed(system::reboot(call)).await,
    vhangup: Signals => system::vhangup(call),
    capget: Once => boxed(capability::capget(call)).await,
    capset: Once => boxed(capability::capset(call)).await,
}

/// See [`FrontEnd::try_call`](unix::front_end::FrontEnd::try_call). The calls that only read a
/// number are found first: they need no room for what the others keep.
#[inline]
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
pub(crate) fn try_call<M: Machine>(call: &Call<'_, M>, number: u64) -> Option<Done> {
    match number {
        getpid => Some(process::getpid(call)),
        gettid => Some(process::gettid(call)),
        _ => try_longer_call(call, number),
    }
}

#[inline(never)]
fn try_longer_call<M: Machine>(call: &Call<'_, M>, number: u64) -> Option<Done> {
    if call.is_now_short_of_memory() && !needs_little(number) {
        return None;
    }
    try_table(call, number)
}

/// Polls a call once. The future lies in the frame of this function, so that no other call needs
/// room for it.
#[inline(never)]
fn once<F: Future<Output = Done>>(call: impl FnOnce() -> F) -> Option<Done> {
    poll_once(call())
}

/// Whether a call needs no memory of the server's worth mentioning, so that it is served also where
/// that is short.
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
pub(crate) fn needs_little(number: u64) -> bool {
    matches!(
        number,
        // Calls that give something back, or end a process or thread.
        exit | exit_group | close | close_range | munmap | kill | tkill | tgkill | wait4 | waitid | shutdown
            | timer_delete | inotify_rm_watch | rmdir | unlink | unlinkat | ftruncate | umount2 | swapoff
            | reboot
            // Calls that a program needs to go on.
            | read | readv | pread64 | write | writev | pwrite64 | lseek | rt_sigreturn | rt_sigaction
            | rt_sigprocmask | sigaltstack | futex | nanosleep | clock_nanosleep | restart_syscall | pause
            | sched_yield | set_tid_address | arch_prctl
            // Calls that only ask for something.
            | getpid | gettid | getppid | getuid | geteuid | getgid | getegid | clock_gettime | gettimeofday
            | times | getrusage | uname | sysinfo | fstat | syslog
    )
}

/// The calls that change user and group ids.
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
fn set_ids<M: Machine>(call: &Call<'_, M>, number: u64) -> Done {
    let old = call.thread.credentials();
    let kind = match number {
        setuid | setreuid | setresuid | setfsuid => IdKind::User,
        _ => IdKind::Group,
    };
    // A number that the namespace has not is no id at all.
    let id = |index| match optional_id(call.uint(index)) {
        Some(number) => old.namespace.id(kind, number).ok_or(Error::EINVAL).map(Some),
        None => Ok(None),
    };
    let first = id(0);
    if let setfsuid | setfsgid = number {
        let before = match kind {
            IdKind::User => old.namespace.shown_user(old.user.file),
            IdKind::Group => old.namespace.shown_group(old.group.file),
        };
        if let Ok(Some(first)) = first {
            change_credentials(call, |credentials| {
                Ok(match kind {
                    IdKind::User => credentials.set_file_user(first),
                    IdKind::Group => credentials.set_file_group(first),
                })
            })?;
        }
        return Ok(before.into());
    }
    let (first, second) = (first?, id(1));
    match number {
        setuid | setgid => {
            let first = first.ok_or(Error::EINVAL)?;
            change_credentials(call, |credentials| match kind {
                IdKind::User => credentials.set_user(first),
                IdKind::Group => credentials.set_group(first),
            })
        }
        setreuid | setregid => {
            let second = second?;
            change_credentials(call, |credentials| match kind {
                IdKind::User => credentials.set_real_effective_user(first, second),
                IdKind::Group => credentials.set_real_effective_group(first, second),
            })
        }
        _ => {
            let new = [first, second?, id(2)?];
            change_credentials(call, |credentials| match kind {
                IdKind::User => credentials.set_users(new),
                IdKind::Group => credentials.set_groups_ids(new),
            })
        }
    }
}
