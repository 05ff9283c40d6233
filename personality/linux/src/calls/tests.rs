//! Tests that every call of some kinds of programs is served. The lists of calls were made by
//! tracing such programs.

use super::is_served;
use crate::name;

const MILESTONES: [(&str, &str); 7] = [
    (
        "a static program",
        "arch_prctl set_tid_address exit_group execve prlimit64 brk write getrandom rseq set_robust_list mprotect \
         newfstatat ioctl readlink writev",
    ),
    (
        "a static shell's script",
        "mmap munmap rt_sigprocmask openat close read rt_sigaction wait4 lseek dup2 getuid getegid geteuid getgid \
         fcntl getpid rt_sigreturn getppid unlink getdents64 chdir pipe2 mkdir clone clock_nanosleep uname umask \
         statfs prctl kill vfork chmod rename chown rmdir utimensat link rt_sigsuspend getgroups sendfile symlink",
    ),
    ("dynamic programs, lua, tcc", "access pread64 unlinkat clone3 clock_gettime"),
    (
        "bash and coreutils",
        "futex sysinfo socket connect getcwd getpgrp sched_getaffinity fadvise64 fdatasync fsync fstatfs sigaltstack \
         setpgid copy_file_range ftruncate fchmodat fchdir statx flistxattr getxattr fchownat dup3 fgetxattr \
         timer_create fsetxattr getrusage mkdirat timer_settime chroot mknodat lgetxattr getpriority sync symlinkat \
         linkat setpriority renameat2",
    ),
    ("interactive shells", "poll getpeername pselect6 dup faccessat2 setsid signalfd4 restart_syscall"),
    (
        "threads and run-time systems",
        "bind madvise setsockopt exit sendto recvfrom getsockname listen accept4 setitimer fchown gettid mremap \
         pwrite64 close_range epoll_create1 fchmod setresuid setresgid get_mempolicy set_mempolicy setxattr stat \
         getsockopt recvmsg setgroups accept shutdown socketpair epoll_wait alarm epoll_create setgid epoll_ctl setuid \
         sendmsg open eventfd2 sendmmsg getresgid flock getresuid mount umount2 sync_file_range msync lchown",
    ),
    (
        "other calls that programs of these kinds may make",
        "lstat fstat readv preadv pwritev preadv2 pwritev2 select pselect6 ppoll epoll_pwait epoll_pwait2 eventfd \
         signalfd timerfd_create timerfd_settime timerfd_gettime recvmmsg inotify_init inotify_init1 \
         inotify_add_watch inotify_rm_watch splice tee vmsplice memfd_create pidfd_open pidfd_send_signal \
         pidfd_getfd waitid openat2 faccessat creat pipe truncate fallocate readahead syncfs getdents \
         fork execveat unshare getpgid getsid setreuid setregid setfsuid setfsgid getrlimit setrlimit times \
         get_robust_list sched_yield sched_setaffinity sched_getparam sched_setparam sched_getscheduler \
         sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_getattr \
         sched_setattr rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo pause tkill tgkill mincore \
         mlock mlock2 munlock mlockall munlockall membarrier clock_getres clock_settime nanosleep gettimeofday \
         settimeofday time getitimer timer_gettime timer_getoverrun timer_delete sethostname setdomainname getcpu \
         capget capset personality syslog reboot removexattr lremovexattr fremovexattr listxattr llistxattr \
         lsetxattr utime utimes futimesat mknod renameat readlinkat fchmodat2 ioprio_get mbind ptrace \
         process_vm_readv process_vm_writev kcmp shmget shmat shmdt shmctl semget semop semtimedop semctl msgget \
         msgsnd msgrcv msgctl seccomp mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr \
         io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents ioprio_set pivot_root adjtimex \
         clock_adjtime \
         open_tree move_mount mount_setattr fsopen fspick fsconfig fsmount swapon swapoff",
    ),
];

#[test]
fn every_call_of_the_milestones_is_served() {
    let number = |wanted: &str| (0..1024).find(|number| name(*number) == Some(wanted));
    let mut missing = Vec::new();
    for (milestone, names) in MILESTONES {
        for name in names.split_whitespace() {
            let number = number(name).unwrap_or_else(|| panic!("{name} is no call"));
            if !is_served(number) {
                missing.push(format!("{name} ({milestone})"));
            }
        }
    }
    assert!(missing.is_empty(), "not served: {}", missing.join(", "));
}

#[test]
fn unknown_calls_are_not_served() {
    assert!(!is_served(335));
    assert!(!is_served(1 << 40));
    assert_eq!(name(335), None);
}

/// The numbers of Linux 6.1: those that other architectures have, and those of later versions, are
/// left out.
fn numbers_of_linux() -> impl Iterator<Item = (u64, &'static str)> {
    (0..=450).filter_map(|number| name(number).map(|name| (number, name)))
}

/// Rows of the table that answer as a Linux without the call does, without a line in the log.
const REFUSED: [&str; 4] = ["rseq", "get_mempolicy", "set_mempolicy", "mbind"];

/// Numbers that Linux 6.1 does not serve either, as Debian builds it.
const NOWHERE: [&str; 16] = [
    "uselib",
    "_sysctl",
    "create_module",
    "get_kernel_syms",
    "query_module",
    "nfsservctl",
    "getpmsg",
    "putpmsg",
    "afs_syscall",
    "tuxcall",
    "security",
    "set_thread_area",
    "get_thread_area",
    "epoll_ctl_old",
    "epoll_wait_old",
    "vserver",
];

/// The section of the chapter about the calls of Linux that counts them.
fn counted_in_the_book() -> Vec<&'static str> {
    let chapter = include_str!("../../../../docs/src/linux-calls.md");
    let (_, section) = chapter.split_once("\n## How many there are\n").unwrap();
    section.split("\n## ").next().unwrap().split_whitespace().collect()
}

#[test]
fn the_book_says_how_many_calls_there_are_and_which_are_missing() {
    let is_here = |&(number, name): &(u64, &str)| is_served(number) && !REFUSED.contains(&name);
    let all = numbers_of_linux().count();
    let here = numbers_of_linux().filter(is_here).count();
    let quoted = |names: Vec<&str>| {
        let (last, others) = names.split_last().unwrap();
        format!(
            "{} and `{last}`",
            others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        )
    };
    let missing = |nowhere| {
        let absent = numbers_of_linux().filter(|call| !is_here(call)).map(|(_, name)| name);
        absent.filter(|name| NOWHERE.contains(name) == nowhere).collect::<Vec<_>>()
    };
    assert_eq!(missing(true).len(), NOWHERE.len());
    let text = format!(
        "Linux 6.1 has {all} numbers of system calls. {here} of them are calls here, if only in part. {} are calls of \
         Linux and not here: {}. {} are no calls there either: {}.",
        missing(false).len(),
        quoted(missing(false)),
        NOWHERE.len(),
        quoted(missing(true)),
    );
    let book = counted_in_the_book().join(" ");
    assert!(book.starts_with(&text), "the chapter must say:\n{text}\nand says:\n{book}");
}
