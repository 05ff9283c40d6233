// Calls at the edges of what they accept: what Linux answers is what has to be answered. Nothing
// here changes anything outside the directory in which it runs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BAD ((void *)8)
#define S(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static char buffer[8192];
static char longname[300];
static char longpath[5000];

static void files(void) {
    S(openat, AT_FDCWD, "", O_RDONLY);
    S(openat, AT_FDCWD, BAD, O_RDONLY);
    S(openat, AT_FDCWD, "none", O_RDONLY);
    S(openat, AT_FDCWD, longname, O_RDONLY);
    S(openat, AT_FDCWD, longpath, O_RDONLY);
    S(openat, 99, "none", O_RDONLY);
    S(openat, AT_FDCWD, "none/below", O_RDONLY);
    S(openat, AT_FDCWD, "file", O_RDWR | O_CREAT | O_EXCL, 0644); // 3
    S(openat, AT_FDCWD, "file", O_RDWR | O_CREAT | O_EXCL, 0644);
    S(openat, AT_FDCWD, "file", O_RDONLY | O_DIRECTORY);
    S(openat, AT_FDCWD, "file/", O_RDONLY);
    S(openat, AT_FDCWD, "file/below", O_RDONLY);
    S(openat, 3, "below", O_RDONLY);
    S(openat, AT_FDCWD, "new/", O_WRONLY | O_CREAT, 0644);
    S(openat, AT_FDCWD, "new", O_WRONLY | O_CREAT | O_DIRECTORY, 0644);
    S(openat, AT_FDCWD, ".", O_WRONLY);
    S(openat, AT_FDCWD, ".", O_RDONLY | O_CREAT, 0644);
    S(mkdirat, AT_FDCWD, "dir", 0755);
    S(mkdirat, AT_FDCWD, "dir", 0755);
    S(mkdirat, AT_FDCWD, "dir/", 0755);
    S(mkdirat, AT_FDCWD, "a/b", 0755);
    S(mkdirat, AT_FDCWD, "file/b", 0755);
    S(mkdirat, AT_FDCWD, ".", 0755);
    S(mkdirat, AT_FDCWD, "..", 0755);
    S(mkdirat, AT_FDCWD, "", 0755);
    S(symlinkat, "loop", AT_FDCWD, "loop");
    S(symlinkat, "", AT_FDCWD, "empty");
    S(symlinkat, "none", AT_FDCWD, "dangling");
    S(openat, AT_FDCWD, "loop", O_RDONLY);
    S(openat, AT_FDCWD, "loop", O_RDONLY | O_NOFOLLOW);
    S(openat, AT_FDCWD, "dangling", O_RDONLY);
    S(openat, AT_FDCWD, "dangling", O_RDWR | O_CREAT | O_EXCL, 0644);
    S(openat, AT_FDCWD, "dangling/", O_RDWR | O_CREAT, 0644);
    S(readlink, "file", buffer, sizeof buffer);
    S(readlink, "none", buffer, sizeof buffer);
    S(readlink, "loop", buffer, 0);
    S(readlink, "loop", buffer, -1L);
    S(readlink, "loop", BAD, 10);
    S(readlinkat, 3, "", buffer, 10);
    S(linkat, AT_FDCWD, "dir", AT_FDCWD, "dirlink", 0);
    S(linkat, AT_FDCWD, "none", AT_FDCWD, "link", 0);
    S(linkat, AT_FDCWD, "file", AT_FDCWD, "file", 0);
    S(linkat, AT_FDCWD, "file", AT_FDCWD, "link", 0x8000);
    S(linkat, AT_FDCWD, "dangling", AT_FDCWD, "link", AT_SYMLINK_FOLLOW);
    S(linkat, AT_FDCWD, "file", AT_FDCWD, "link/", 0);
    S(linkat, AT_FDCWD, "file", AT_FDCWD, "link", 0);
    S(unlinkat, AT_FDCWD, "dir", 0);
    S(unlinkat, AT_FDCWD, "file", AT_REMOVEDIR);
    S(unlinkat, AT_FDCWD, "file/", 0);
    S(unlinkat, AT_FDCWD, "link", 0x1000);
    S(unlinkat, AT_FDCWD, "dangling/", AT_REMOVEDIR);
    S(unlinkat, AT_FDCWD, ".", AT_REMOVEDIR);
    S(unlinkat, AT_FDCWD, "dir/.", AT_REMOVEDIR);
    S(unlinkat, AT_FDCWD, "dir/..", AT_REMOVEDIR);
    S(unlinkat, AT_FDCWD, "none", 0);
    S(mkdirat, AT_FDCWD, "dir/sub", 0755);
    S(unlinkat, AT_FDCWD, "dir", AT_REMOVEDIR);
    S(renameat2, AT_FDCWD, "dir", AT_FDCWD, "dir/sub/in", 0);
    S(renameat2, AT_FDCWD, "dir", AT_FDCWD, "file", 0);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "dir", 0);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "link", 0);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "dangling", RENAME_NOREPLACE);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "none", RENAME_EXCHANGE);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "dangling", RENAME_NOREPLACE | RENAME_EXCHANGE);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "dir", RENAME_EXCHANGE);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "dir", RENAME_EXCHANGE);
    S(renameat2, AT_FDCWD, "file", AT_FDCWD, "x", 0x80);
    S(renameat2, AT_FDCWD, ".", AT_FDCWD, "x", 0);
    S(renameat2, AT_FDCWD, "none", AT_FDCWD, "x", 0);
    S(renameat2, AT_FDCWD, "file/", AT_FDCWD, "x", 0);
    S(renameat2, AT_FDCWD, "dir", AT_FDCWD, "x/", 0);
    S(renameat2, AT_FDCWD, "x", AT_FDCWD, "dir", 0);
    S(newfstatat, AT_FDCWD, "", buffer, 0);
    S(newfstatat, AT_FDCWD, "file", buffer, 0x80);
    S(newfstatat, AT_FDCWD, "file", BAD, 0);
    S(newfstatat, 99, "", buffer, AT_EMPTY_PATH);
    S(newfstatat, AT_FDCWD, "loop", buffer, 0);
    S(statx, AT_FDCWD, "file", 0, 0x80000000u, buffer);
    S(statx, AT_FDCWD, "file", 0x6000, 0x7ff, buffer);
    S(faccessat, AT_FDCWD, "file", 8);
    S(faccessat, AT_FDCWD, "none", 0);
    S(faccessat, AT_FDCWD, "file", X_OK);
    S(faccessat2, AT_FDCWD, "file", R_OK, 0x8000);
    S(faccessat2, AT_FDCWD, "loop", R_OK, AT_SYMLINK_NOFOLLOW);
    S(chdir, "file");
    S(chdir, "none");
    S(chdir, BAD);
    S(fchdir, 3);
    S(fchmodat, AT_FDCWD, "none", 0644);
    S(fchmodat, AT_FDCWD, "file", 0600);
    S(fchownat, AT_FDCWD, "file", 0, 0, 0x80);
    S(fchown, 99, 0, 0);
    S(truncate, "dir", 0);
    S(truncate, "file", -1L);
    S(truncate, "none", 0);
    S(ftruncate, 3, -1L);
    S(ftruncate, 99, 0);
    S(ftruncate, 3, 10);
    S(statfs, "none", buffer);
    S(fstatfs, 99, buffer);
    S(getcwd, buffer, 1);
    S(getcwd, BAD, 100);
    S(mknodat, AT_FDCWD, "fifo", S_IFIFO | 0644, 0);
    S(mknodat, AT_FDCWD, "fifo", S_IFIFO | 0644, 0);
    S(mknodat, AT_FDCWD, "bad", S_IFDIR | 0644, 0);
    S(mknodat, AT_FDCWD, "bad", 0170000 | 0644, 0);
    S(openat, AT_FDCWD, "fifo", O_WRONLY | O_NONBLOCK);
    S(utimensat, AT_FDCWD, "none", 0, 0);
    S(utimensat, AT_FDCWD, "file", 0, 0x80);
    S(openat, AT_FDCWD, "dir", O_TMPFILE | O_RDONLY, 0600);
    struct open_how how = {.flags = O_RDONLY, .mode = 0644};
    S(openat2, AT_FDCWD, "file", &how, sizeof how);
    S(openat2, AT_FDCWD, "file", &how, 8);
    how.mode = 0;
    how.flags = 1ull << 40;
    S(openat2, AT_FDCWD, "file", &how, sizeof how);
}

static void descriptors(void) {
    S(read, 99, buffer, 1);
    S(read, 3, BAD, 1);
    S(read, 3, BAD, 0);
    S(write, 3, BAD, 1);
    S(read, 3, buffer, 0);
    S(pread64, 3, buffer, 1, -1L);
    S(pwrite64, 3, buffer, 1, -1L);
    S(lseek, 3, -1L, SEEK_SET);
    S(lseek, 3, 0, 9);
    S(lseek, 3, 1000, SEEK_END);
    S(lseek, 3, 2000, SEEK_DATA);
    S(lseek, 3, INT64_MAX, SEEK_SET);
    S(lseek, 3, 0, SEEK_SET);
    S(lseek, 99, 0, SEEK_SET);
    S(openat, AT_FDCWD, ".", O_RDONLY); // next
    int directory = openat(AT_FDCWD, ".", O_RDONLY);
    S(read, directory, buffer, 1);
    S(write, directory, buffer, 1);
    S(getdents64, 3, buffer, 100);
    S(getdents64, directory, buffer, 1);
    S(ftruncate, directory, 0);
    S(fallocate, 3, 0, 0, 0);
    S(fallocate, 3, 0, -1L, 1);
    S(fallocate, 3, 2, 0, 1);
    S(fallocate, 3, 0x1000, 0, 1);
    S(fallocate, directory, 0, 0, 1);
    S(fadvise64, 3, 0, 0, 99);
    S(fadvise64, 99, 0, 0, 0);
    S(fsync, 99);
    S(dup, 99);
    S(dup2, 3, 3);
    S(dup2, 99, 3);
    S(dup2, 3, -1L);
    S(dup3, 3, 3, 0);
    S(dup3, 3, 4, 1);
    S(fcntl, 99, F_GETFD);
    S(fcntl, 3, 999, 0);
    S(fcntl, 3, F_DUPFD, -1L);
    S(fcntl, 3, F_DUPFD, 1 << 24);
    S(fcntl, 3, F_SETFL, O_APPEND);
    S(fcntl, 3, F_GETFL);
    S(fcntl, 3, F_SETFL, 0);
    S(fcntl, 3, F_GETOWN);
    S(fcntl, 3, F_GETLEASE);
    S(fcntl, 3, F_GETPIPE_SZ);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = 9};
    S(fcntl, 3, F_SETLK, &lock);
    lock.l_whence = SEEK_SET;
    lock.l_start = -1;
    S(fcntl, 3, F_SETLK, &lock);
    lock.l_start = 0;
    lock.l_type = 9;
    S(fcntl, 3, F_SETLK, &lock);
    lock.l_type = F_WRLCK;
    S(fcntl, directory, F_SETLK, &lock);
    S(fcntl, 3, F_SETLK, &lock);
    S(fcntl, 3, F_SETLK, BAD);
    S(flock, 3, 0);
    S(flock, 3, LOCK_EX | LOCK_NB);
    S(flock, 99, LOCK_EX);
    S(close, 99);
    S(close_range, 5, 4, 0);
    S(close_range, 200, 300, 8);
    S(close_range, 200, 300, 0);
    S(pipe2, buffer, 1);
    S(pipe2, BAD, 0);
    int ends[2];
    S(pipe2, ends, O_NONBLOCK);
    S(read, ends[0], buffer, 1);
    S(read, ends[1], buffer, 1);
    S(write, ends[0], buffer, 1);
    S(lseek, ends[0], 0, SEEK_CUR);
    S(pread64, ends[0], buffer, 1, 0);
    S(fcntl, ends[0], F_GETPIPE_SZ);
    S(fcntl, ends[0], F_SETPIPE_SZ, 0);
    S(fcntl, ends[0], F_SETPIPE_SZ, 5000);
    S(write, ends[1], buffer, 8192);
    S(write, ends[1], buffer, 1);
    S(fcntl, ends[0], F_SETPIPE_SZ, 4096);
    S(ftruncate, ends[1], 0);
    S(fsync, ends[1]);
    S(fallocate, ends[1], 0, 0, 1);
    S(splice, ends[0], 0, 3, 0, 10, 0x100);
    S(splice, 3, 0, 3, 0, 10, 0);
    S(tee, ends[0], ends[1], 10, 0);
    S(tee, 3, ends[1], 10, 0);
    S(sendfile, 3, ends[0], 0, 10);
    S(copy_file_range, 3, 0, ends[1], 0, 10, 0);
    S(copy_file_range, 3, 0, 3, 0, 10, 1);
    S(close, ends[0]);
    signal(SIGPIPE, SIG_IGN);
    S(write, ends[1], buffer, 1);
    S(ioctl, 3, 0x5401, buffer);
    S(ioctl, ends[1], 0x5413, buffer);
    S(ioctl, 99, 0x5401, buffer);
    S(ioctl, 3, 0x541b, BAD);
    S(ioctl, 3, 0x12345678, 0);
    struct iovec vector = {buffer, -1};
    S(writev, 3, &vector, 1);
    S(readv, 3, BAD, 1);
    S(readv, 3, 0, 0);
    S(readv, 3, &vector, 1025);
    S(readv, 3, &vector, -1L);
    S(preadv2, 3, 0, 0, 0, 0, 0x1000);
}

static void memory(void) {
    S(mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0);
    S(mmap, 0, 4096, PROT_READ, MAP_ANONYMOUS, -1L, 0);
    S(mmap, 0, 4096, PROT_READ, MAP_PRIVATE, -1L, 0);
    S(mmap, 0, 4096, PROT_READ, MAP_PRIVATE, 3, 1);
    S(mmap, 0, 1ull << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0);
    S(mmap, 0, -1ull, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0);
    int readonly = openat(AT_FDCWD, "file", O_RDONLY), writeonly = openat(AT_FDCWD, "file", O_WRONLY);
    S(mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, readonly, 0);
    S(mmap, 0, 4096, PROT_READ, MAP_SHARED, writeonly, 0);
    S(mmap, 0, 4096, PROT_READ, 4 | MAP_ANONYMOUS, -1L, 0);
    char *there = (char *)S(mmap, 0, 8192, PROT_READ, MAP_SHARED, readonly, 0);
    S(mprotect, there, 4096, PROT_READ | PROT_WRITE);
    S(mprotect, there + 1, 4096, PROT_READ);
    S(mprotect, there, 4096, 0x100);
    S(mprotect, there, 0, PROT_READ);
    S(munmap, there + 1, 4096);
    S(munmap, there, 0);
    S(madvise, there, 4096, 999);
    S(madvise, there + 1, 4096, MADV_NORMAL);
    S(madvise, there, 4096, MADV_DONTNEED);
    S(mremap, there, 0, 0, 0);
    S(mremap, there, 4096, 0, MREMAP_MAYMOVE);
    S(mremap, there + 1, 4096, 8192, MREMAP_MAYMOVE);
    S(mremap, there, 4096, 8192, 8);
    S(mremap, there, 4096, 8192, MREMAP_FIXED);
    S(munmap, there, 8192);
    S(mprotect, there, 4096, PROT_READ);
    S(madvise, there, 4096, MADV_NORMAL);
    S(mremap, there, 4096, 8192, MREMAP_MAYMOVE);
    S(close, readonly);
    S(close, writeonly);
}

static void processes(void) {
    S(wait4, -1L, 0, 0, 0);
    S(wait4, 1, 0, 0x1000, 0);
    S(wait4, 99999, 0, 0, 0);
    S(waitid, 9, 0, 0, WEXITED, 0);
    S(waitid, P_ALL, 0, 0, 0, 0);
    S(waitid, P_ALL, 0, 0, WEXITED, 0);
    S(kill, getpid(), 65);
    S(kill, 4000000, 0);
    S(kill, getpid(), 0);
    S(tgkill, getpid(), 4000000, 0);
    S(tgkill, -1L, 1, 0);
    S(setpgid, 0, -1L);
    S(setpgid, 4000000, 0);
    S(getpgid, 4000000);
    S(getsid, 4000000);
    S(getpriority, 9, 0);
    S(getpriority, 0, 4000000);
    S(setpriority, 0, 4000000, 0);
    S(getrusage, 9, buffer);
    S(prlimit64, 0, 99, 0, buffer);
    S(prlimit64, 4000000, 0, 0, 0);
    struct rlimit limit = {2, 1};
    S(prlimit64, 0, RLIMIT_CORE, &limit, 0);
    S(prctl, 9999, 0, 0, 0, 0);
    S(prctl, 1, 99, 0, 0, 0);
    S(prctl, 38, 2, 0, 0, 0);
    S(prctl, 4, 9, 0, 0, 0);
    S(arch_prctl, 0x9999, 0);
    S(set_robust_list, 0, 1);
    S(sched_getparam, 4000000, buffer);
    S(sched_getscheduler, 0);
    S(sched_get_priority_max, 1);
    S(sched_get_priority_max, 99);
    S(sched_getaffinity, 0, 1, buffer);
    S(sched_getaffinity, 4000000, 128, buffer);
    S(personality, 0xffffffff);
    S(getgroups, -1L, 0);
    S(setgroups, 99999999, 0);
    S(setresuid, -1L, -1L, -1L);
    S(unshare, 0x12345);
    S(execve, "none", 0, 0);
    S(execve, "dir", 0, 0);
    S(execve, "file", 0, 0);
    S(execve, "", 0, 0);
    S(pidfd_open, 4000000, 0);
    S(pidfd_open, -1L, 0);
    S(pidfd_open, getpid(), 1);
    S(pidfd_send_signal, 3, 0, 0, 0);
    S(getrandom, buffer, 8, 0x100);
    S(getrandom, buffer, 8, 6);
    S(uname, BAD);
    S(sysinfo, BAD);
    S(times, BAD);
    S(getcpu, BAD, 0, 0);
    S(membarrier, 99, 0, 0);
    S(capget, BAD, 0);
    S(syslog, 99, 0, 0);
    S(umask, 0);
    S(umask, 022);
    S(chroot, "file");
    S(chroot, "none");
    S(mincore, BAD, 1, buffer);
    S(mlock2, 0, 0, 9);
    S(mlockall, 8);
    S(mlockall, 0);
}

static void signals_and_time(void) {
    struct { void *handler; unsigned long flags; void *restorer; uint64_t mask; } action = {0};
    S(rt_sigaction, SIGKILL, &action, 0, 8);
    S(rt_sigaction, 65, 0, 0, 8);
    S(rt_sigaction, SIGUSR1, 0, 0, 4);
    S(rt_sigaction, 0, 0, 0, 8);
    S(rt_sigaction, SIGUSR1, BAD, 0, 8);
    S(rt_sigprocmask, 9, buffer, 0, 8);
    S(rt_sigprocmask, 0, buffer, 0, 4);
    S(rt_sigprocmask, 0, BAD, 0, 8);
    S(rt_sigpending, buffer, 9);
    S(rt_sigsuspend, buffer, 4);
    struct timespec none = {0, 0}, bad = {0, 1000000000}, negative = {-1, 0};
    uint64_t set = 1 << (SIGUSR2 - 1);
    S(rt_sigtimedwait, &set, 0, &none, 8);
    S(rt_sigtimedwait, &set, 0, &bad, 8);
    stack_t stack = {buffer, 0x10, 4096};
    S(sigaltstack, &stack, 0);
    stack.ss_flags = 0;
    stack.ss_size = 16;
    S(sigaltstack, &stack, 0);
    S(clock_gettime, 99, buffer);
    S(clock_gettime, 0, BAD);
    S(clock_getres, 99, buffer);
    S(clock_nanosleep, 99, 0, &none, 0);
    S(clock_nanosleep, 1, 0, &bad, 0);
    S(clock_nanosleep, 3, 0, &none, 0);
    S(nanosleep, &bad, 0);
    S(nanosleep, &negative, 0);
    S(nanosleep, BAD, 0);
    S(nanosleep, &none, 0);
    S(timer_delete, 99);
    S(timer_gettime, 99, buffer);
    S(timer_create, 99, 0, buffer);
    S(timer_create, 1, 0, BAD);
    S(getitimer, 9, buffer);
    S(timerfd_create, 99, 0);
    S(timerfd_create, 1, 1);
    S(timerfd_settime, 3, 0, buffer, 0);
    S(timerfd_gettime, 99, buffer);
    S(eventfd2, 0, 0x100);
    int counter = S(eventfd2, 0, EFD_NONBLOCK);
    S(read, counter, buffer, 4);
    S(read, counter, buffer, 8);
    S(write, counter, buffer, 4);
    S(signalfd4, -1L, &set, 4, 0);
    S(signalfd4, 3, &set, 8, 0);
    S(signalfd4, -1L, &set, 8, 1);
    S(inotify_init1, 1);
    S(inotify_add_watch, 3, "file", IN_OPEN);
    int watcher = S(inotify_init1, IN_NONBLOCK);
    S(inotify_add_watch, watcher, "none", IN_OPEN);
    S(inotify_add_watch, watcher, "file", 0);
    S(inotify_add_watch, watcher, "file", IN_OPEN | IN_ONLYDIR);
    S(inotify_add_watch, watcher, "file", IN_OPEN);
    S(inotify_add_watch, watcher, "file", IN_OPEN | IN_MASK_CREATE);
    S(inotify_rm_watch, watcher, 9);
    S(read, watcher, buffer, 8192);
    S(epoll_create1, 1);
    S(epoll_create, 0);
    int epoll = S(epoll_create1, 0);
    struct epoll_event event = {.events = EPOLLIN};
    S(epoll_ctl, epoll, EPOLL_CTL_ADD, 3, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_ADD, epoll, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_ADD, 99, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_DEL, counter, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_MOD, counter, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_ADD, counter, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_ADD, counter, &event);
    S(epoll_ctl, epoll, 9, counter, &event);
    S(epoll_ctl, epoll, EPOLL_CTL_ADD, counter, BAD);
    S(epoll_wait, epoll, buffer, 0, 0);
    S(epoll_wait, epoll, buffer, 1, 0);
    S(epoll_wait, 3, buffer, 1, 0);
    S(poll, BAD, 1, 0);
    S(poll, 0, 1 << 30, 0);
    S(poll, 0, 0, 0);
    S(ppoll, 0, 0, &bad, 0, 8);
    S(select, -1L, 0, 0, 0, 0);
    int word = 5;
    S(futex, &word, FUTEX_WAIT, 4, 0);
    S(futex, (char *)&word + 1, FUTEX_WAIT, 5, 0);
    S(futex, &word, FUTEX_WAKE, 1);
    S(futex, &word, 99, 1);
    S(futex, BAD, FUTEX_WAKE_PRIVATE, 1);
    S(futex, &word, FUTEX_WAIT_BITSET, 5, 0, 0, 0);
}

static void sockets(void) {
    S(socket, 99, SOCK_STREAM, 0);
    S(socket, AF_UNIX, 99, 0);
    S(socket, AF_UNIX, SOCK_STREAM | 0x100, 0);
    S(socket, AF_UNIX, SOCK_STREAM, 9);
    S(socketpair, AF_UNIX, SOCK_STREAM, 0, BAD);
    int stream = S(socket, AF_UNIX, SOCK_STREAM, 0), datagram = S(socket, AF_UNIX, SOCK_DGRAM, 0);
    S(listen, stream, 1);
    S(listen, datagram, 1);
    S(accept, datagram, 0, 0);
    S(accept, stream, 0, 0);
    S(accept4, stream, 0, 0, 1);
    S(getpeername, stream, buffer, BAD);
    S(getsockname, 3, buffer, BAD);
    S(getsockname, 99, buffer, BAD);
    S(shutdown, stream, 9);
    S(shutdown, stream, SHUT_RD);
    S(shutdown, 3, SHUT_RD);
    S(bind, stream, BAD, 10);
    S(bind, stream, buffer, 1000);
    S(bind, stream, buffer, -1L);
    S(connect, 3, buffer, 2);
    S(sendto, stream, "x", 1, MSG_NOSIGNAL, 0, 0);
    S(sendto, datagram, "x", 1, 0, 0, 0);
    S(sendto, 3, "x", 1, 0, 0, 0);
    S(recvfrom, stream, buffer, 1, 0, 0, 0);
    S(recvfrom, datagram, buffer, 1, MSG_DONTWAIT, 0, 0);
    S(recvfrom, datagram, buffer, 1, MSG_OOB, 0, 0);
    S(sendmsg, stream, BAD, 0);
    S(recvmsg, stream, BAD, 0);
    S(setsockopt, stream, 1, 999, buffer, 4);
    S(setsockopt, stream, 1, 2, buffer, 1);
    S(setsockopt, stream, 6, 1, buffer, 4);
    S(setsockopt, stream, 1, 3, buffer, 4);
    S(lseek, stream, 0, SEEK_CUR);
    S(pread64, stream, buffer, 1, 0);
    S(read, stream, buffer, 1);
    S(fsync, stream);
}

int main(void) {
    memset(longname, 'n', sizeof longname - 1);
    memset(longpath, '/', sizeof longpath - 1);
    files();
    descriptors();
    memory();
    processes();
    signals_and_time();
    sockets();
    return 0;
}
