//! The table of system calls.

mod descriptor;
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
mod schedule;
mod signal;
mod socket;
mod splice;
mod system;
mod time;

use crate::call::{Call, Done};
use crate::layout::file::EntryLayout;
use crate::names::number::*;
use crate::{errno, leave};
use mach::Machine;
use path::Named;
use process::{change_credentials, optional_id};
use unix::Error;

/// Makes [`dispatch`] and [`is_served`] of one list.
macro_rules! table {
    ($call:ident, $number:ident: $($($name:ident)|+ => $work:expr,)*) => {
        /// Finds and runs the call. What is not here does not exist: `ENOSYS`, and a line in the log.
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
        #[expect(non_upper_case_globals, reason = "calls go by their own names")]
        pub fn is_served(number: u64) -> bool {
            matches!(number, $($($name)|+)|*)
        }
    };
}

table! { call, number:
    // Files by descriptor.
    read => descriptor::read(call).await,
    write => descriptor::write(call).await,
    readv => descriptor::readv(call).await,
    writev => descriptor::writev(call).await,
    pread64 => descriptor::pread64(call).await,
    pwrite64 => descriptor::pwrite64(call).await,
    preadv => descriptor::preadv(call, false).await,
    pwritev => descriptor::pwritev(call, false).await,
    preadv2 => descriptor::preadv(call, true).await,
    pwritev2 => descriptor::pwritev(call, true).await,
    lseek => descriptor::lseek(call).await,
    sendfile => splice::sendfile(call).await,
    copy_file_range => splice::copy_file_range(call).await,
    splice => splice::splice(call).await,
    tee => splice::tee(call).await,
    vmsplice => splice::vmsplice(call).await,
    memfd_create => descriptor::memfd_create(call).await,
    open => descriptor::open(call).await,
    creat => descriptor::creat(call).await,
    openat => descriptor::openat(call).await,
    openat2 => descriptor::openat2(call).await,
    close => descriptor::close(call),
    close_range => descriptor::close_range(call),
    dup => descriptor::dup(call),
    dup2 => descriptor::dup2(call),
    dup3 => descriptor::dup3(call),
    pipe => descriptor::pipe(call, 0).await,
    pipe2 => descriptor::pipe(call, call.uint(1)).await,
    fcntl => descriptor::fcntl(call).await,
    ioctl => ioctl::ioctl(call).await,
    flock => descriptor::flock(call).await,
    fsync | fdatasync | sync_file_range => descriptor::fsync(call).await,
    sync | syncfs => descriptor::sync(call).await,
    fadvise64 | readahead => descriptor::fadvise64(call),
    ftruncate => descriptor::ftruncate(call).await,
    fallocate => descriptor::fallocate(call).await,
    getdents64 => descriptor::getdents(call, EntryLayout::Wide).await,
    getdents => descriptor::getdents(call, EntryLayout::Old).await,

    // Names and attributes.
    stat => path::stat(call, true).await,
    lstat => path::stat(call, false).await,
    fstat => path::fstat(call).await,
    newfstatat => path::newfstatat(call).await,
    statx => path::statx(call).await,
    access => path::access(call).await,
    faccessat => path::faccessat(call, 0).await,
    faccessat2 => path::faccessat(call, call.uint(3)).await,
    getcwd => path::getcwd(call).await,
    chdir => path::chdir(call).await,
    fchdir => path::fchdir(call).await,
    chroot => path::chroot(call).await,
    mkdir => path::mkdir(call, false).await,
    mkdirat => path::mkdir(call, true).await,
    rmdir => path::rmdir(call).await,
    unlink => path::unlink(call).await,
    unlinkat => path::unlinkat(call).await,
    mknod => path::mknod(call, false).await,
    mknodat => path::mknod(call, true).await,
    symlink => path::symlink(call, false).await,
    symlinkat => path::symlink(call, true).await,
    readlink => path::readlink(call, false).await,
    readlinkat => path::readlink(call, true).await,
    link => path::link(call).await,
    linkat => path::linkat(call).await,
    rename => path::rename(call).await,
    renameat => path::renameat(call, 0).await,
    renameat2 => path::renameat(call, call.uint(4)).await,
    chmod => path::chmod(call).await,
    fchmod => path::fchmod(call).await,
    fchmodat => path::fchmodat(call, 0).await,
    fchmodat2 => path::fchmodat(call, call.uint(3)).await,
    chown => path::chown(call, true).await,
    lchown => path::chown(call, false).await,
    fchown => path::fchown(call).await,
    fchownat => path::fchownat(call).await,
    utime => path::utimes(call, true, false).await,
    utimes => path::utimes(call, false, false).await,
    futimesat => path::utimes(call, false, true).await,
    utimensat => path::utimensat(call).await,
    truncate => path::truncate(call).await,
    umask => path::umask(call),
    statfs => path::statfs(call).await,
    fstatfs => path::fstatfs(call).await,
    getxattr => path::getxattr(call, Named::Path).await,
    lgetxattr => path::getxattr(call, Named::Link).await,
    fgetxattr => path::getxattr(call, Named::Open).await,
    listxattr => path::listxattr(call, Named::Path).await,
    llistxattr => path::listxattr(call, Named::Link).await,
    flistxattr => path::listxattr(call, Named::Open).await,
    setxattr => path::setxattr(call, Named::Path).await,
    lsetxattr => path::setxattr(call, Named::Link).await,
    fsetxattr => path::setxattr(call, Named::Open).await,
    removexattr => path::removexattr(call, Named::Path).await,
    lremovexattr => path::removexattr(call, Named::Link).await,
    fremovexattr => path::removexattr(call, Named::Open).await,
    mount => mount::mount(call).await,
    umount2 => mount::umount2(call).await,

    // Waiting for files.
    poll => poll::poll(call).await,
    ppoll => poll::ppoll(call).await,
    select => poll::select(call).await,
    pselect6 => poll::pselect6(call).await,
    epoll_create => poll::epoll_create_old(call),
    epoll_create1 => poll::epoll_create(call, call.uint(0)),
    epoll_ctl => poll::epoll_ctl(call).await,
    epoll_wait => poll::epoll_wait(call).await,
    epoll_pwait => poll::epoll_pwait(call).await,
    epoll_pwait2 => poll::epoll_pwait2(call).await,
    eventfd => poll::eventfd(call, 0),
    eventfd2 => poll::eventfd(call, call.uint(1)),
    timerfd_create => poll::timerfd_create(call),
    timerfd_settime => poll::timerfd_settime(call).await,
    timerfd_gettime => poll::timerfd_gettime(call).await,
    signalfd => poll::signalfd(call, 0).await,
    signalfd4 => poll::signalfd(call, call.uint(3)).await,

    inotify_init => inotify::inotify_init(call, 0),
    inotify_init1 => inotify::inotify_init(call, call.uint(0)),
    inotify_add_watch => inotify::inotify_add_watch(call).await,
    inotify_rm_watch => inotify::inotify_rm_watch(call),

    // Sockets.
    socket => socket::socket(call),
    socketpair => socket::socketpair(call).await,
    bind => socket::bind(call).await,
    listen => socket::listen(call),
    connect => socket::connect(call).await,
    accept => socket::accept(call, 0).await,
    accept4 => socket::accept(call, call.uint(3)).await,
    getsockname => socket::getsockname(call).await,
    getpeername => socket::getpeername(call).await,
    shutdown => socket::shutdown(call),
    sendto => socket::sendto(call).await,
    sendmsg => socket::sendmsg(call).await,
    sendmmsg => socket::sendmmsg(call).await,
    recvfrom => socket::recvfrom(call).await,
    recvmsg => socket::recvmsg(call).await,
    recvmmsg => socket::recvmmsg(call).await,
    setsockopt => socket::setsockopt(call).await,
    getsockopt => socket::getsockopt(call).await,

    // Processes and threads.
    fork => program::fork(call, false).await,
    vfork => program::fork(call, true).await,
    clone => program::clone(call).await,
    clone3 => program::clone3(call).await,
    unshare => program::unshare(call),
    execve => program::execve(call).await,
    execveat => program::execveat(call).await,
    exit => leave::exit(call),
    exit_group => leave::exit_group(call),
    wait4 => process::wait4(call).await,
    pidfd_open => pidfd::pidfd_open(call),
    pidfd_send_signal => pidfd::pidfd_send_signal(call).await,
    pidfd_getfd => pidfd::pidfd_getfd(call),
    waitid => process::waitid(call).await,
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
    getresuid => process::get_three(call, call.thread.credentials().user).await,
    getresgid => process::get_three(call, call.thread.credentials().group).await,
    getgroups => process::getgroups(call).await,
    setgroups => process::setgroups(call).await,
    setuid | setgid | setreuid | setregid | setresuid | setresgid | setfsuid | setfsgid => set_ids(call, number),
    prlimit64 => process::prlimit64(call).await,
    getrlimit => process::getrlimit(call).await,
    setrlimit => process::setrlimit(call).await,
    getrusage => process::getrusage(call).await,
    times => process::times(call).await,
    getpriority => process::getpriority(call),
    setpriority => process::setpriority(call),
    prctl => process::prctl(call).await,
    arch_prctl => process::arch_prctl(call).await,
    set_tid_address => process::set_tid_address(call),
    set_robust_list => process::set_robust_list(call),
    get_robust_list => process::get_robust_list(call).await,
    sched_yield => schedule::sched_yield().await,
    sched_getaffinity => schedule::sched_getaffinity(call).await,
    sched_setaffinity => schedule::sched_setaffinity(call).await,
    sched_getparam => schedule::sched_param(call, None).await,
    sched_setparam => schedule::sched_param(call, Some(1)).await,
    sched_setscheduler => schedule::sched_param(call, Some(2)).await,
    sched_getscheduler => schedule::sched_getscheduler(call),
    sched_get_priority_max => schedule::sched_priority_bound(call, 99),
    sched_rr_get_interval => schedule::sched_rr_get_interval(call).await,
    sched_getattr => schedule::sched_getattr(call).await,
    sched_setattr => schedule::sched_setattr(call).await,
    ioprio_get => schedule::ioprio_get(call),
    sched_get_priority_min => schedule::sched_priority_bound(call, 1),
    // Restartable sequences and memory policies are optional, and programs do without.
    rseq | get_mempolicy | set_mempolicy | mbind => Err(Error::ENOSYS.into()),

    // Signals.
    rt_sigaction => signal::rt_sigaction(call).await,
    rt_sigprocmask => signal::rt_sigprocmask(call).await,
    rt_sigreturn => leave::rt_sigreturn(call).await,
    rt_sigpending => signal::rt_sigpending(call).await,
    rt_sigsuspend => signal::rt_sigsuspend(call).await,
    rt_sigtimedwait => signal::rt_sigtimedwait(call).await,
    rt_sigqueueinfo => signal::rt_sigqueueinfo(call, false).await,
    rt_tgsigqueueinfo => signal::rt_sigqueueinfo(call, true).await,
    pause => signal::pause(call).await,
    kill => signal::kill(call),
    tkill => signal::tgkill(call, false),
    tgkill => signal::tgkill(call, true),
    sigaltstack => signal::sigaltstack(call).await,
    restart_syscall => signal::restart_syscall(call).await,

    // Memory.
    mmap => memory::mmap(call).await,
    munmap => memory::munmap(call).await,
    mprotect => memory::mprotect(call).await,
    mremap => memory::mremap(call).await,
    brk => memory::brk(call).await,
    madvise => memory::madvise(call).await,
    msync => memory::msync(call).await,
    mincore => memory::mincore(call).await,
    mlock => memory::mlock(call, true).await,
    mlock2 => memory::mlock2(call).await,
    munlock => memory::mlock(call, false).await,
    mlockall => memory::mlockall(call).await,
    munlockall => memory::munlockall(call).await,
    membarrier => memory::membarrier(call),
    futex => futex::futex(call).await,

    // Time.
    clock_gettime => time::clock_gettime(call).await,
    clock_getres => time::clock_getres(call).await,
    clock_settime => time::clock_settime(call).await,
    clock_nanosleep => time::clock_nanosleep(call).await,
    nanosleep => time::nanosleep(call).await,
    settimeofday => time::settimeofday(call).await,
    gettimeofday => time::gettimeofday(call).await,
    time => time::time(call).await,
    getitimer => time::getitimer(call).await,
    setitimer => time::setitimer(call).await,
    alarm => time::alarm(call),
    timer_create => time::timer_create(call).await,
    timer_settime => time::timer_settime(call).await,
    timer_gettime => time::timer_gettime(call).await,
    timer_getoverrun => time::timer_getoverrun(call),
    timer_delete => time::timer_delete(call),

    // The system.
    uname => system::uname(call).await,
    sethostname => system::set_name(call, false).await,
    setdomainname => system::set_name(call, true).await,
    sysinfo => system::sysinfo(call).await,
    getrandom => system::getrandom(call).await,
    getcpu => system::getcpu(call).await,
    personality => system::personality(call),
    syslog => system::syslog(call).await,
    reboot => system::reboot(call),
    capget => system::capget(call).await,
    capset => system::capset(call).await,
}

/// The calls that change user and group ids.
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
fn set_ids<M: Machine>(call: &Call<'_, M>, number: u64) -> Done {
    let id = |index| optional_id(call.uint(index));
    let (first, second, third) = (call.uint(0), id(1), id(2));
    let old = call.thread.credentials();
    match number {
        setuid | setgid if first == u32::MAX => Err(Error::EINVAL.into()),
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
