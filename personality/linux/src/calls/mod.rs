//! The table of system calls.

mod capability;
mod console;
mod descriptor;
pub(crate) mod disk;
mod futex;
mod inotify;
mod ioctl;
mod memory;
mod mount;
mod path;
mod pidfd;
mod poll;
mod process;
mod program;
mod ptrace;
mod remote;
mod schedule;
mod seccomp;
mod signal;
mod socket;
mod splice;
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
use core::task::{Context, Poll, Waker};
use mach::Machine;
use path::Named;
use process::{change_credentials, optional_id};
use unix::Error;

/// A call in memory of its own: the task of a thread then has room for a pointer instead of the
/// largest of all calls, and need not copy so much. The commonest calls do without.
fn boxed<F: Future<Output = Done>>(call: F) -> core::pin::Pin<alloc::boxed::Box<F>> {
    alloc::boxed::Box::pin(call)
}

/// Makes [`dispatch`] of a list, and for tests a function that says what is in it.
macro_rules! table {
    ($call:ident, $number:ident: $($($name:ident)|+ => $work:expr,)*) => {
        /// Finds and runs the call. A number that is not in the table is no call: `ENOSYS`, and a
        /// line in the log.
        #[expect(non_upper_case_globals, reason = "calls go by their own names")]
        pub(crate) async fn dispatch<M: Machine>($call: &Call<'_, M>, $number: u64) -> Done {
            match $number {
                $($($name)|+ => $work,)*
                unknown => {
                    $call.linux.log_unknown($call.thread, unknown);
                    Ok(errno::result(Err(Error::ENOSYS)))
                }
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

table! { call, number:
    // Files by descriptor.
    read => transfer::read(call).await,
    write => transfer::write(call).await,
    readv => transfer::readv(call).await,
    writev => transfer::writev(call).await,
    pread64 => transfer::pread64(call).await,
    pwrite64 => transfer::pwrite64(call).await,
    preadv => boxed(transfer::preadv(call, false)).await,
    pwritev => boxed(transfer::pwritev(call, false)).await,
    preadv2 => boxed(transfer::preadv(call, true)).await,
    pwritev2 => boxed(transfer::pwritev(call, true)).await,
    lseek => descriptor::lseek(call).await,
    sendfile => boxed(splice::sendfile(call)).await,
    copy_file_range => boxed(splice::copy_file_range(call)).await,
    splice => boxed(splice::splice(call)).await,
    tee => boxed(splice::tee(call)).await,
    vmsplice => boxed(splice::vmsplice(call)).await,
    memfd_create => boxed(descriptor::memfd_create(call)).await,
    open => boxed(descriptor::open(call)).await,
    creat => boxed(descriptor::creat(call)).await,
    openat => boxed(descriptor::openat(call)).await,
    openat2 => boxed(descriptor::openat2(call)).await,
    close => descriptor::close(call),
    close_range => descriptor::close_range(call),
    dup => descriptor::dup(call),
    dup2 => descriptor::dup2(call),
    dup3 => descriptor::dup3(call),
    pipe => boxed(descriptor::pipe(call, 0)).await,
    pipe2 => boxed(descriptor::pipe(call, call.uint(1))).await,
    fcntl => boxed(descriptor::fcntl(call)).await,
    ioctl => boxed(ioctl::ioctl(call)).await,
    flock => boxed(descriptor::flock(call)).await,
    fsync | fdatasync | sync_file_range => boxed(descriptor::fsync(call)).await,
    sync | syncfs => boxed(descriptor::sync(call)).await,
    fadvise64 | readahead => descriptor::fadvise64(call),
    ftruncate => boxed(descriptor::ftruncate(call)).await,
    fallocate => boxed(descriptor::fallocate(call)).await,
    getdents64 => boxed(descriptor::getdents(call, EntryLayout::Wide)).await,
    getdents => boxed(descriptor::getdents(call, EntryLayout::Old)).await,

    // Names and attributes.
    stat => path::stat(call, true).await,
    lstat => path::stat(call, false).await,
    fstat => path::fstat(call).await,
    newfstatat => path::newfstatat(call).await,
    statx => boxed(path::statx(call)).await,
    access => path::access(call).await,
    faccessat => boxed(path::faccessat(call, 0)).await,
    faccessat2 => boxed(path::faccessat(call, call.uint(3))).await,
    getcwd => boxed(path::getcwd(call)).await,
    chdir => boxed(path::chdir(call)).await,
    fchdir => boxed(path::fchdir(call)).await,
    chroot => boxed(path::chroot(call)).await,
    mkdir => boxed(path::mkdir(call, false)).await,
    mkdirat => boxed(path::mkdir(call, true)).await,
    rmdir => boxed(path::rmdir(call)).await,
    unlink => boxed(path::unlink(call)).await,
    unlinkat => boxed(path::unlinkat(call)).await,
    mknod => boxed(path::mknod(call, false)).await,
    mknodat => boxed(path::mknod(call, true)).await,
    symlink => boxed(path::symlink(call, false)).await,
    symlinkat => boxed(path::symlink(call, true)).await,
    readlink => boxed(path::readlink(call, false)).await,
    readlinkat => boxed(path::readlink(call, true)).await,
    link => boxed(path::link(call)).await,
    linkat => boxed(path::linkat(call)).await,
    rename => boxed(path::rename(call)).await,
    renameat => boxed(path::renameat(call, 0)).await,
    renameat2 => boxed(path::renameat(call, call.uint(4))).await,
    chmod => boxed(path::chmod(call)).await,
    fchmod => boxed(path::fchmod(call)).await,
    fchmodat => boxed(path::fchmodat(call, 0)).await,
    fchmodat2 => boxed(path::fchmodat(call, call.uint(3))).await,
    chown => boxed(path::chown(call, true)).await,
    lchown => boxed(path::chown(call, false)).await,
    fchown => boxed(path::fchown(call)).await,
    fchownat => boxed(path::fchownat(call)).await,
    utime => boxed(path::utimes(call, true, false)).await,
    utimes => boxed(path::utimes(call, false, false)).await,
    futimesat => boxed(path::utimes(call, false, true)).await,
    utimensat => boxed(path::utimensat(call)).await,
    truncate => boxed(path::truncate(call)).await,
    umask => path::umask(call),
    statfs => boxed(path::statfs(call)).await,
    fstatfs => boxed(path::fstatfs(call)).await,
    getxattr => boxed(path::getxattr(call, Named::Path)).await,
    lgetxattr => boxed(path::getxattr(call, Named::Link)).await,
    fgetxattr => boxed(path::getxattr(call, Named::Open)).await,
    listxattr => boxed(path::listxattr(call, Named::Path)).await,
    llistxattr => boxed(path::listxattr(call, Named::Link)).await,
    flistxattr => boxed(path::listxattr(call, Named::Open)).await,
    setxattr => boxed(path::setxattr(call, Named::Path)).await,
    lsetxattr => boxed(path::setxattr(call, Named::Link)).await,
    fsetxattr => boxed(path::setxattr(call, Named::Open)).await,
    removexattr => boxed(path::removexattr(call, Named::Path)).await,
    lremovexattr => boxed(path::removexattr(call, Named::Link)).await,
    fremovexattr => boxed(path::removexattr(call, Named::Open)).await,
    mount => boxed(mount::mount(call)).await,
    umount2 => boxed(mount::umount2(call)).await,

    // Waiting for files.
    poll => boxed(poll::poll(call)).await,
    ppoll => boxed(poll::ppoll(call)).await,
    select => boxed(poll::select(call)).await,
    pselect6 => boxed(poll::pselect6(call)).await,
    epoll_create => poll::epoll_create_old(call),
    epoll_create1 => poll::epoll_create(call, call.uint(0)),
    epoll_ctl => boxed(poll::epoll_ctl(call)).await,
    epoll_wait => boxed(poll::epoll_wait(call)).await,
    epoll_pwait => boxed(poll::epoll_pwait(call)).await,
    epoll_pwait2 => boxed(poll::epoll_pwait2(call)).await,
    eventfd => poll::eventfd(call, 0),
    eventfd2 => poll::eventfd(call, call.uint(1)),
    timerfd_create => poll::timerfd_create(call),
    timerfd_settime => boxed(poll::timerfd_settime(call)).await,
    timerfd_gettime => boxed(poll::timerfd_gettime(call)).await,
    signalfd => boxed(poll::signalfd(call, 0)).await,
    signalfd4 => boxed(poll::signalfd(call, call.uint(3))).await,

    inotify_init => inotify::inotify_init(call, 0),
    inotify_init1 => inotify::inotify_init(call, call.uint(0)),
    inotify_add_watch => boxed(inotify::inotify_add_watch(call)).await,
    inotify_rm_watch => inotify::inotify_rm_watch(call),

    // Sockets.
    socket => socket::socket(call),
    socketpair => boxed(socket::socketpair(call)).await,
    bind => boxed(socket::bind(call)).await,
    listen => socket::listen(call),
    connect => boxed(socket::connect(call)).await,
    accept => boxed(socket::accept(call, 0)).await,
    accept4 => boxed(socket::accept(call, call.uint(3))).await,
    getsockname => boxed(socket::getsockname(call)).await,
    getpeername => boxed(socket::getpeername(call)).await,
    shutdown => socket::shutdown(call),
    sendto => boxed(socket::sendto(call)).await,
    sendmsg => boxed(socket::sendmsg(call)).await,
    sendmmsg => boxed(socket::sendmmsg(call)).await,
    recvfrom => boxed(socket::recvfrom(call)).await,
    recvmsg => boxed(socket::recvmsg(call)).await,
    recvmmsg => boxed(socket::recvmmsg(call)).await,
    setsockopt => boxed(socket::setsockopt(call)).await,
    getsockopt => boxed(socket::getsockopt(call)).await,

    // Processes and threads.
    fork => boxed(program::fork(call, false)).await,
    vfork => boxed(program::fork(call, true)).await,
    clone => boxed(program::clone(call)).await,
    clone3 => boxed(program::clone3(call)).await,
    unshare => program::unshare(call),
    execve => boxed(program::execve(call)).await,
    execveat => boxed(program::execveat(call)).await,
    exit => return_to_user::exit(call),
    exit_group => return_to_user::exit_group(call),
    wait4 => boxed(process::wait4(call)).await,
    pidfd_open => pidfd::pidfd_open(call),
    pidfd_send_signal => boxed(pidfd::pidfd_send_signal(call)).await,
    pidfd_getfd => pidfd::pidfd_getfd(call),
    waitid => boxed(process::waitid(call)).await,
    getpid => process::getpid(call),
    gettid => process::gettid(call),
    getppid => process::getppid(call),
    getpgid => process::getpgid(call, call.int(0)),
    getpgrp => process::getpgid(call, 0),
    getsid => process::getsid(call),
    setpgid => process::setpgid(call),
    setsid => process::setsid(call),
    getuid => Ok(call.thread.credentials().user.real.into()),
    geteuid => Ok(call.thread.credentials().user.effective.into()),
    getgid => Ok(call.thread.credentials().group.real.into()),
    getegid => Ok(call.thread.credentials().group.effective.into()),
    getresuid => boxed(process::get_three(call, call.thread.credentials().user)).await,
    getresgid => boxed(process::get_three(call, call.thread.credentials().group)).await,
    getgroups => boxed(process::getgroups(call)).await,
    setgroups => boxed(process::setgroups(call)).await,
    setuid | setgid | setreuid | setregid | setresuid | setresgid | setfsuid | setfsgid => set_ids(call, number),
    prlimit64 => boxed(process::prlimit64(call)).await,
    getrlimit => boxed(process::getrlimit(call)).await,
    setrlimit => boxed(process::setrlimit(call)).await,
    getrusage => boxed(process::getrusage(call)).await,
    times => boxed(process::times(call)).await,
    getpriority => process::getpriority(call),
    setpriority => process::setpriority(call),
    prctl => boxed(process::prctl(call)).await,
    arch_prctl => boxed(process::arch_prctl(call)).await,
    set_tid_address => process::set_tid_address(call),
    set_robust_list => process::set_robust_list(call),
    get_robust_list => boxed(process::get_robust_list(call)).await,
    sched_yield => boxed(schedule::sched_yield()).await,
    sched_getaffinity => boxed(schedule::sched_getaffinity(call)).await,
    sched_setaffinity => boxed(schedule::sched_setaffinity(call)).await,
    sched_getparam => boxed(schedule::sched_param(call, None)).await,
    sched_setparam => boxed(schedule::sched_param(call, Some(1))).await,
    sched_setscheduler => boxed(schedule::sched_param(call, Some(2))).await,
    sched_getscheduler => schedule::sched_getscheduler(call),
    sched_get_priority_max => schedule::sched_priority_bound(call, 99),
    sched_rr_get_interval => boxed(schedule::sched_rr_get_interval(call)).await,
    sched_getattr => boxed(schedule::sched_getattr(call)).await,
    sched_setattr => boxed(schedule::sched_setattr(call)).await,
    ioprio_get => schedule::ioprio_get(call),
    sched_get_priority_min => schedule::sched_priority_bound(call, 1),
    // Restartable sequences and memory policies are optional, and programs do without.
    rseq | get_mempolicy | set_mempolicy | mbind => Err(Error::ENOSYS.into()),

    ptrace => boxed(ptrace::ptrace(call)).await,
    process_vm_readv => boxed(remote::process_vm(call, false)).await,
    process_vm_writev => boxed(remote::process_vm(call, true)).await,
    kcmp => remote::kcmp(call),

    seccomp => boxed(seccomp::seccomp(call)).await,

    // Signals.
    rt_sigaction => signal::rt_sigaction(call).await,
    rt_sigprocmask => signal::rt_sigprocmask(call).await,
    rt_sigreturn => boxed(return_to_user::rt_sigreturn(call)).await,
    rt_sigpending => boxed(signal::rt_sigpending(call)).await,
    rt_sigsuspend => boxed(signal::rt_sigsuspend(call)).await,
    rt_sigtimedwait => boxed(signal::rt_sigtimedwait(call)).await,
    rt_sigqueueinfo => boxed(signal::rt_sigqueueinfo(call, false)).await,
    rt_tgsigqueueinfo => boxed(signal::rt_sigqueueinfo(call, true)).await,
    pause => boxed(signal::pause(call)).await,
    kill => signal::kill(call),
    tkill => signal::tgkill(call, false),
    tgkill => signal::tgkill(call, true),
    sigaltstack => boxed(signal::sigaltstack(call)).await,
    restart_syscall => boxed(signal::restart_syscall(call)).await,

    // Memory.
    mmap => boxed(memory::mmap(call)).await,
    munmap => boxed(memory::munmap(call)).await,
    mprotect => boxed(memory::mprotect(call)).await,
    mremap => boxed(memory::mremap(call)).await,
    brk => boxed(memory::brk(call)).await,
    madvise => boxed(memory::madvise(call)).await,
    msync => boxed(memory::msync(call)).await,
    mincore => boxed(memory::mincore(call)).await,
    mlock => boxed(memory::mlock(call, true)).await,
    mlock2 => boxed(memory::mlock2(call)).await,
    munlock => boxed(memory::mlock(call, false)).await,
    mlockall => boxed(memory::mlockall(call)).await,
    munlockall => boxed(memory::munlockall(call)).await,
    membarrier => memory::membarrier(call),
    futex => futex::futex(call).await,

    // System V objects.
    shmget => boxed(sysv::shmget(call)).await,
    shmat => boxed(sysv::shmat(call)).await,
    shmdt => boxed(sysv::shmdt(call)).await,
    shmctl => boxed(sysv::shmctl(call)).await,
    semget => sysv::semget(call),
    semop => boxed(sysv::semop(call, false)).await,
    semtimedop => boxed(sysv::semop(call, true)).await,
    semctl => boxed(sysv::semctl(call)).await,
    msgget => sysv::msgget(call),
    msgsnd => boxed(sysv::msgsnd(call)).await,
    msgrcv => boxed(sysv::msgrcv(call)).await,
    msgctl => boxed(sysv::msgctl(call)).await,

    // Time.
    clock_gettime => time::clock_gettime(call).await,
    clock_getres => boxed(time::clock_getres(call)).await,
    clock_settime => boxed(time::clock_settime(call)).await,
    clock_nanosleep => boxed(time::clock_nanosleep(call)).await,
    nanosleep => boxed(time::nanosleep(call)).await,
    settimeofday => boxed(time::settimeofday(call)).await,
    gettimeofday => time::gettimeofday(call).await,
    time => boxed(time::time(call)).await,
    getitimer => boxed(time::getitimer(call)).await,
    setitimer => boxed(time::setitimer(call)).await,
    alarm => time::alarm(call),
    timer_create => boxed(time::timer_create(call)).await,
    timer_settime => boxed(time::timer_settime(call)).await,
    timer_gettime => boxed(time::timer_gettime(call)).await,
    timer_getoverrun => time::timer_getoverrun(call),
    timer_delete => time::timer_delete(call),

    // The system.
    uname => boxed(system::uname(call)).await,
    sethostname => boxed(system::set_name(call, false)).await,
    setdomainname => boxed(system::set_name(call, true)).await,
    sysinfo => boxed(system::sysinfo(call)).await,
    getrandom => boxed(system::getrandom(call)).await,
    getcpu => boxed(system::getcpu(call)).await,
    personality => system::personality(call),
    syslog => boxed(system::syslog(call)).await,
    reboot => system::reboot(call),
    vhangup => system::vhangup(call),
    capget => boxed(capability::capget(call)).await,
    capset => boxed(capability::capset(call)).await,
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

/// Calls whose futures can be dropped and begun again, and forms of others that do nothing unless
/// they can do all.
#[inline(never)]
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
fn try_longer_call<M: Machine>(call: &Call<'_, M>, number: u64) -> Option<Done> {
    match number {
        read => transfer::try_transfer(call, false),
        write => transfer::try_transfer(call, true),
        getppid => Some(process::getppid(call)),
        getuid => Some(Ok(call.thread.credentials().user.real.into())),
        geteuid => Some(Ok(call.thread.credentials().user.effective.into())),
        getgid => Some(Ok(call.thread.credentials().group.real.into())),
        getegid => Some(Ok(call.thread.credentials().group.effective.into())),
        clock_gettime => poll_once(time::clock_gettime(call)),
        gettimeofday => poll_once(time::gettimeofday(call)),
        stat => poll_once(path::stat(call, true)),
        lstat => poll_once(path::stat(call, false)),
        fstat => poll_once(path::fstat(call)),
        newfstatat => poll_once(path::newfstatat(call)),
        access => poll_once(path::access(call)),
        pread64 => transfer::try_pread(call),
        lseek => poll_once(descriptor::lseek(call)),
        rt_sigaction => signal::try_rt_sigaction(call),
        rt_sigprocmask => signal::try_rt_sigprocmask(call),
        _ => None,
    }
}

/// What a future gives at its first poll, if it does.
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match core::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Whether a call needs no memory of the server's worth mentioning, so that it is served also where
/// that is short.
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
pub(crate) fn needs_little(number: u64) -> bool {
    matches!(
        number,
        // Calls that give something back, or end a process or thread.
        exit | exit_group | close | close_range | munmap | kill | tkill | tgkill | wait4 | waitid | shutdown
            | timer_delete | inotify_rm_watch | rmdir | unlink | unlinkat | ftruncate | umount2 | reboot
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
    let id = |index| optional_id(call.uint(index));
    let (first, second, third) = (call.uint(0), id(1), id(2));
    let old = call.thread.credentials();
    match number {
        setuid | setgid if first == u32::MAX => Err(Error::EINVAL.into()),
        setfsuid if first == u32::MAX => Ok(old.user.file.into()),
        setfsgid if first == u32::MAX => Ok(old.group.file.into()),
        setuid => change_credentials(call, |credentials| credentials.set_user(first)),
        setgid => change_credentials(call, |credentials| credentials.set_group(first)),
        setreuid => {
            change_credentials(call, |credentials| credentials.set_real_effective_user(id(0), second))
        }
        setregid => {
            change_credentials(call, |credentials| credentials.set_real_effective_group(id(0), second))
        }
        setresuid => change_credentials(call, |credentials| credentials.set_users([id(0), second, third])),
        setresgid => {
            change_credentials(call, |credentials| credentials.set_groups_ids([id(0), second, third]))
        }
        setfsuid => {
            change_credentials(call, |credentials| Ok(credentials.set_file_user(first)))?;
            Ok(old.user.file.into())
        }
        _ => {
            change_credentials(call, |credentials| Ok(credentials.set_file_group(first)))?;
            Ok(old.group.file.into())
        }
    }
}
