/* Random system calls with their arguments, and memory that changes meanwhile. */
#ifndef FUZZ_H
#define FUZZ_H

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { CALL_NUMBERS = 462 };

struct random_state {
    uint64_t word;
};

static uint64_t random_word(struct random_state *state)
{
    state->word += 0x9e3779b97f4a7c15;
    uint64_t word = state->word;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

static uint64_t below(struct random_state *state, uint64_t bound)
{
    return random_word(state) % bound;
}

static long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The system calls with what they take, a letter each: f descriptor, p memory, v vector of memory,
 * m message header, S name, s size, o offset, i small number, g flags, w any word, t time, T
 * milliseconds, d process, n signal, a page address, l length of mappings, r protection, M flags of
 * mappings, c clone flags, k stack, u user, x futex operation, X: it forks */
static const struct {
    short number;
    const char *arguments;
} table[] = {
    {SYS_read, "fps"}, {SYS_write, "fps"}, {SYS_open, "Sgi"}, {SYS_close, "f"}, {SYS_stat, "Sp"}, {SYS_fstat, "fp"},
    {SYS_lstat, "Sp"}, {SYS_poll, "piT"}, {SYS_lseek, "foi"}, {SYS_mmap, "alrMfo"}, {SYS_mprotect, "alr"}, {SYS_munmap, "al"},
    {SYS_brk, "w"}, {SYS_rt_sigaction, "nppi"}, {SYS_rt_sigprocmask, "ippi"}, {SYS_ioctl, "fwp"}, {SYS_pread64, "fpso"},
    {SYS_pwrite64, "fpso"}, {SYS_readv, "fvi"}, {SYS_writev, "fvi"}, {SYS_access, "Si"}, {SYS_pipe, "p"},
    {SYS_select, "ipppt"}, {SYS_sched_yield, ""}, {SYS_mremap, "allgaa"}, {SYS_msync, "ali"}, {SYS_mincore, "alp"},
    {SYS_madvise, "ali"}, {SYS_dup, "f"}, {SYS_dup2, "ff"}, {SYS_nanosleep, "tp"}, {SYS_getitimer, "ip"}, {SYS_alarm, "i"},
    {SYS_setitimer, "ipp"}, {SYS_getpid, ""}, {SYS_sendfile, "ffps"}, {SYS_socket, "igi"}, {SYS_connect, "fpi"},
    {SYS_accept, "fpp"}, {SYS_sendto, "fpsgpi"}, {SYS_recvfrom, "fpsgpp"}, {SYS_sendmsg, "fmg"}, {SYS_recvmsg, "fmg"},
    {SYS_shutdown, "fi"}, {SYS_bind, "fpi"}, {SYS_listen, "fi"}, {SYS_getsockname, "fpp"}, {SYS_getpeername, "fpp"},
    {SYS_socketpair, "iiip"}, {SYS_setsockopt, "fiipi"}, {SYS_getsockopt, "fiipp"}, {SYS_clone, "ckppw"}, {SYS_fork, "X"},
    {SYS_execve, "Spp"}, {SYS_wait4, "dpgp"}, {SYS_kill, "dn"}, {SYS_uname, "p"}, {SYS_fcntl, "fiw"}, {SYS_flock, "fi"},
    {SYS_fsync, "f"}, {SYS_truncate, "So"}, {SYS_ftruncate, "fo"}, {SYS_getdents, "fps"}, {SYS_getcwd, "ps"},
    {SYS_chdir, "S"}, {SYS_fchdir, "f"}, {SYS_rename, "SS"}, {SYS_mkdir, "Si"}, {SYS_rmdir, "S"}, {SYS_creat, "Si"},
    {SYS_link, "SS"}, {SYS_unlink, "S"}, {SYS_symlink, "SS"}, {SYS_readlink, "Sps"}, {SYS_chmod, "Sg"}, {SYS_fchmod, "fg"},
    {SYS_chown, "Suu"}, {SYS_umask, "i"}, {SYS_gettimeofday, "pp"}, {SYS_getrlimit, "ip"}, {SYS_getrusage, "ip"},
    {SYS_sysinfo, "p"}, {SYS_times, "p"}, {SYS_ptrace, "idpp"}, {SYS_syslog, "ips"}, {SYS_setuid, "u"}, {SYS_setgid, "u"},
    {SYS_setpgid, "dd"}, {SYS_setsid, ""}, {SYS_setreuid, "uu"}, {SYS_getgroups, "ip"}, {SYS_setgroups, "ip"},
    {SYS_getpgid, "d"}, {SYS_getsid, "d"}, {SYS_capget, "pp"}, {SYS_capset, "pp"}, {SYS_rt_sigpending, "pi"},
    {SYS_rt_sigtimedwait, "ppti"}, {SYS_rt_sigqueueinfo, "dnp"}, {SYS_sigaltstack, "pp"}, {SYS_utime, "Sp"},
    {SYS_mknod, "Sgi"}, {SYS_personality, "w"}, {SYS_statfs, "Sp"}, {SYS_fstatfs, "fp"}, {SYS_getpriority, "id"},
    {SYS_setpriority, "idi"}, {SYS_sched_setparam, "dp"}, {SYS_sched_getparam, "dp"}, {SYS_sched_setscheduler, "dip"},
    {SYS_sched_getscheduler, "d"}, {SYS_sched_rr_get_interval, "dp"}, {SYS_mlock, "al"}, {SYS_munlock, "al"},
    {SYS_mlockall, "i"}, {SYS_munlockall, ""}, {SYS_prctl, "ippww"}, {SYS_arch_prctl, "wp"}, {SYS_setrlimit, "ip"},
    {SYS_chroot, "S"}, {SYS_sync, ""}, {SYS_mount, "SSSgp"}, {SYS_umount2, "Si"}, {SYS_pivot_root, "SS"}, {SYS_adjtimex, "p"}, {SYS_clock_adjtime, "ip"},
    {SYS_sethostname, "ps"}, {SYS_gettid, ""},
    {SYS_readahead, "fos"}, {SYS_setxattr, "SSpsi"}, {SYS_getxattr, "SSps"}, {SYS_listxattr, "Sps"}, {SYS_tkill, "dn"},
    {SYS_futex, "pxitpi"}, {SYS_sched_setaffinity, "dsp"}, {SYS_sched_getaffinity, "dsp"}, {SYS_epoll_create, "i"},
    {SYS_getdents64, "fps"}, {SYS_set_tid_address, "p"}, {SYS_restart_syscall, ""}, {SYS_timer_create, "ipp"},
    {SYS_timer_settime, "iipp"}, {SYS_timer_gettime, "ip"}, {SYS_timer_getoverrun, "i"}, {SYS_timer_delete, "i"},
    {SYS_clock_gettime, "ip"}, {SYS_clock_getres, "ip"}, {SYS_clock_nanosleep, "iitp"}, {SYS_epoll_wait, "fpiT"},
    {SYS_epoll_ctl, "fifp"}, {SYS_tgkill, "ddn"}, {SYS_utimes, "Sp"}, {SYS_waitid, "idpgp"}, {SYS_inotify_init, ""},
    {SYS_inotify_add_watch, "fSg"}, {SYS_inotify_rm_watch, "fi"}, {SYS_openat, "fSgi"}, {SYS_mkdirat, "fSi"},
    {SYS_mknodat, "fSgi"}, {SYS_fchownat, "fSuui"}, {SYS_newfstatat, "fSpg"}, {SYS_unlinkat, "fSg"}, {SYS_renameat, "fSfS"},
    {SYS_linkat, "fSfSg"}, {SYS_symlinkat, "SfS"}, {SYS_readlinkat, "fSps"}, {SYS_fchmodat, "fSi"}, {SYS_faccessat, "fSi"},
    {SYS_pselect6, "ippptp"}, {SYS_ppoll, "pitpi"}, {SYS_unshare, "g"}, {SYS_set_robust_list, "ps"},
    {SYS_get_robust_list, "dpp"}, {SYS_splice, "fpfpsi"}, {SYS_tee, "ffsi"}, {SYS_sync_file_range, "foog"},
    {SYS_vmsplice, "fvii"}, {SYS_utimensat, "fSpg"}, {SYS_epoll_pwait, "fpiTpi"}, {SYS_signalfd, "fpi"},
    {SYS_timerfd_create, "ig"}, {SYS_eventfd, "i"}, {SYS_fallocate, "fioo"}, {SYS_timerfd_settime, "fipp"},
    {SYS_timerfd_gettime, "fp"}, {SYS_accept4, "fppg"}, {SYS_signalfd4, "fpig"}, {SYS_eventfd2, "ig"},
    {SYS_epoll_create1, "g"}, {SYS_dup3, "ffg"}, {SYS_pipe2, "pg"}, {SYS_inotify_init1, "g"}, {SYS_preadv, "fvio"},
    {SYS_pwritev, "fvio"}, {SYS_rt_tgsigqueueinfo, "ddnp"}, {SYS_recvmmsg, "fmigt"}, {SYS_prlimit64, "dipp"},
    {SYS_sendmmsg, "fmig"}, {SYS_getcpu, "pp"}, {SYS_sched_setattr, "dpi"}, {SYS_sched_getattr, "dpsi"},
    {SYS_renameat2, "fSfSi"}, {SYS_getrandom, "psi"}, {SYS_memfd_create, "Si"}, {SYS_execveat, "fSppg"}, {SYS_membarrier, "gi"},
    {SYS_mlock2, "ali"}, {SYS_copy_file_range, "fpfpsi"}, {SYS_preadv2, "fviooi"}, {SYS_pwritev2, "fviooi"},
    {SYS_statx, "fSgwp"}, {SYS_pidfd_send_signal, "fnpi"}, {SYS_pidfd_open, "di"}, {SYS_pidfd_getfd, "ffi"}, {SYS_clone3, "pi"},
    {SYS_close_range, "ffi"}, {SYS_openat2, "fSps"}, {SYS_faccessat2, "fSig"}, {SYS_open_tree, "fSg"}, {SYS_move_mount, "fSfSg"},
    {SYS_fsopen, "Sg"}, {SYS_fsconfig, "fiSpi"}, {SYS_fsmount, "fgg"}, {SYS_fspick, "fSg"}, {SYS_mount_setattr, "fSgps"},
    {SYS_epoll_pwait2, "fpitpi"},
    {SYS_rt_sigreturn, ""}, {SYS_pause, ""}, {SYS_exit, "i"}, {SYS_exit_group, "i"}, {SYS_rt_sigsuspend, "pi"},
};


enum { TABLE = sizeof table / sizeof *table, PAGE = 4096, PAGES = 12, STACK_WORDS = 512 };

/* Memory for arguments. Its pages are those of a file, any of which may be elsewhere, or without
 * rights, or gone at times. The page after them is not mapped, and the page before them can only be
 * read. The threads write them at a second place, where they stay. */
static char *arena, *shadow;
static int arena_file;
/* Stacks of random clones: each word is the address where such a thread begins. */
static uint64_t stacks[STACK_WORDS];

/* Processes that a random id may name; the kernel interface page, if the system has one. */
static volatile pid_t *others;
static int other_count;
static volatile uint64_t *kernel_interface;

static long any_place(struct random_state *state)
{
    uint64_t page = below(state, PAGES) * PAGE;
    switch (below(state, 4)) {
    case 0: return (long)(arena + page);
    case 1: return (long)(arena + page + below(state, PAGE / 8) * 8);
    case 2: return (long)(arena + page + PAGE - 8 * below(state, 16));
    default: return (long)(arena + page + below(state, PAGE));
    }
}

static long any_pointer(struct random_state *state)
{
    switch (below(state, 24)) {
    case 0: return 0;
    case 1: return (long)(arena + PAGES * PAGE - below(state, 64));
    case 2: return (long)(arena + PAGES * PAGE);
    case 3: return (long)(arena - below(state, PAGE));
    case 4: return 0x7ffffffff000 - (long)below(state, 64);
    case 5: return (long)(0xffff800000000000 | random_word(state));
    case 6: return (long)random_word(state);
    default: return any_place(state);
    }
}

static long any_size(struct random_state *state)
{
    switch (below(state, 10)) {
    case 0: return 0;
    case 1: return -1;
    case 2: return (long)(random_word(state) & 0x7fffffff);
    case 3: return 65536 + (long)below(state, 65536);
    case 4: return PAGE - 2 + (long)below(state, 4);
    case 5: return 8 << below(state, 6);
    default: return (long)below(state, 256);
    }
}

static const char *const names[] = {
    "a", "b", "c", "d", "d/a", "d/b", "..", ".", "", "/", "/proc/self/maps", "/proc/self/fd/3", "/proc/self/stat", "/dev/null",
    "/dev/zero", "/dev/ptmx", "/proc/self/mem", "/proc/1/maps", "/proc/self/task", "/proc/mounts", "/tmp", "link", "link/a",
    "/bin/busybox", "/proc/self/exe", "/dev/fd/7", "/proc/thread-self/status", "fifo", "user.name", "/sys/devices",
};

static long any_name(struct random_state *state)
{
    switch (below(state, 12)) {
    case 0: return any_pointer(state);
    case 1: return any_place(state);
    default: return (long)names[below(state, sizeof names / sizeof *names)];
    }
}

/* A word as fields of structures hold them. */
static uint64_t any_field(struct random_state *state)
{
    switch (below(state, 8)) {
    case 0: return 0;
    case 1: return (uint64_t)any_pointer(state);
    case 2: return (uint64_t)any_size(state);
    case 3: return random_word(state);
    case 4: return below(state, 32) | below(state, 32) << 32;
    case 5: return 1ull << below(state, 64);
    case 6: return (uint64_t)any_name(state);
    default: return below(state, 40);
    }
}

static void write_shadow(long place, unsigned word, uint64_t value)
{
    uint64_t offset = ((uint64_t)place - (uint64_t)arena) / 8 + word;
    if (offset < PAGES * PAGE / 8)
        __atomic_store_n((uint64_t *)shadow + offset, value, __ATOMIC_RELAXED);
}

static void scribble(struct random_state *state)
{
    write_shadow((long)arena, (unsigned)below(state, PAGES * PAGE / 8), any_field(state));
}

static void change_mapping(struct random_state *state)
{
    long offset = (long)below(state, PAGES) * PAGE, page = (long)arena + offset;
    switch (below(state, 8)) {
    case 0: raw_call(SYS_munmap, page, PAGE, 0, 0, 0, 0); break;
    case 1: raw_call(SYS_mprotect, page, PAGE, (long)below(state, 8), 0, 0, 0); break;
    case 2: raw_call(SYS_madvise, page, PAGE, 4, 0, 0, 0); break;
    case 3: raw_call(SYS_mmap, page, PAGE, 3, MAP_PRIVATE | MAP_FIXED, arena_file, offset); break;
    case 4: raw_call(SYS_mmap, page, PAGE, 3, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0); break;
    default: raw_call(SYS_mmap, page, PAGE, 3, MAP_SHARED | MAP_FIXED, arena_file, offset);
    }
}

/* A structure of words in the arena. */
static long any_structure(struct random_state *state)
{
    if (below(state, 4) == 0)
        return any_pointer(state);
    long place = any_place(state);
    for (unsigned word = 0, words = (unsigned)below(state, 10); word < words; word++)
        write_shadow(place, word, any_field(state));
    return place;
}

/* A vector of pieces of memory. */
static long any_vector(struct random_state *state)
{
    if (below(state, 8) == 0)
        return any_pointer(state);
    long place = any_place(state);
    for (unsigned word = 0; word < 8; word += 2) {
        write_shadow(place, word, (uint64_t)any_pointer(state));
        write_shadow(place, word + 1, (uint64_t)any_size(state));
    }
    return place;
}

/* The header of a message: name, its length, pieces, their number, control, its length, flags. */
static long any_message(struct random_state *state)
{
    if (below(state, 8) == 0)
        return any_pointer(state);
    long place = any_place(state);
    uint64_t words[] = {(uint64_t)any_pointer(state), below(state, 130), (uint64_t)any_vector(state), below(state, 5),
                        (uint64_t)any_structure(state), below(state, 64), below(state, 64)};
    for (unsigned word = 0; word < sizeof words / sizeof *words; word++)
        write_shadow(place, word, below(state, 8) == 0 ? any_field(state) : words[word]);
    return place;
}

/* A time, up to ten milliseconds as a rule. */
static long any_time(struct random_state *state)
{
    if (below(state, 8) == 0)
        return any_pointer(state);
    long place = any_place(state);
    write_shadow(place, 0, below(state, 16) == 0 ? random_word(state) : 0);
    write_shadow(place, 1, below(state, 10000000));
    return place;
}

static long any_process(struct random_state *state)
{
    switch (below(state, 8)) {
    case 0: return -(long)below(state, 40);
    case 1: return (long)below(state, 64);
    case 2: return (long)(int)random_word(state);
    case 3: return others[below(state, (uint64_t)other_count)];
    case 4: return 0;
    default: return raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    }
}

static long any_flags(struct random_state *state)
{
    switch (below(state, 6)) {
    case 0: return (long)random_word(state);
    case 1: return (long)(1ull << below(state, 32));
    case 2: return (long)(1ull << below(state, 24) | 1ull << below(state, 24));
    case 3: return 04000 | 02000000;
    default: return (long)below(state, 8);
    }
}

static long any_clone_flags(struct random_state *state)
{
    /* Flags for clone: mostly those that make a thread, or a process. */
    static const long sets[] = {0x3d0f00, 0x10f00, 0x11, 0x4111, 0x111, 0x1200011, 0x11 | CLONE_PIDFD};
    long flags = sets[below(state, sizeof sets / sizeof *sets)];
    return below(state, 4) == 0 ? flags ^ 1l << below(state, 32) : flags;
}

static long argument(struct random_state *state, char kind)
{
    switch (kind) {
    case 'f': return below(state, 16) == 0 ? any_flags(state) : (long)below(state, 28) - (below(state, 30) == 0 ? 100 : 0);
    case 'p': return any_structure(state);
    case 'v': return any_vector(state);
    case 'm': return any_message(state);
    case 'S': return any_name(state);
    case 's': return any_size(state);
    case 'o': return below(state, 3) == 0 ? (long)random_word(state) >> below(state, 60) : (long)below(state, 10000);
    case 'i': return (long)below(state, below(state, 8) == 0 ? 70 : 8) - (below(state, 20) == 0);
    case 'g': return any_flags(state);
    case 't': return any_time(state);
    case 'T': return (long)below(state, 10);
    case 'd': return any_process(state);
    case 'n': return (long)below(state, 66);
    case 'a': return below(state, 8) == 0 ? any_pointer(state) & -PAGE : (long)(arena + below(state, PAGES) * PAGE);
    case 'l': return below(state, 8) == 0 ? any_size(state) : (long)below(state, 5) * PAGE;
    case 'r': return (long)below(state, 8);
    case 'M': return (long)(1 + below(state, 2)) | (long)below(state, 4) << 4 | (below(state, 6) == 0 ? any_flags(state) : 0);
    case 'c': return any_clone_flags(state);
    case 'k': return below(state, 3) == 0 ? any_pointer(state) : (long)&stacks[below(state, STACK_WORDS / 2)];
    case 'u': return (long)below(state, 3) * 1000 - 1;
    case 'x': return (long)below(state, 14) | (below(state, 2) == 0 ? 128 : 0);
    default: return (long)any_field(state);
    }
}

struct call {
    /* The number of the call. Below 0: a call of the L4 kernel. */
    int number;
    /* Whether the call makes a second process, in which it returns 0. */
    int forks;
    long arguments[6];
};

static void choose_call(struct random_state *state, struct call *call)
{
    *call = (struct call){0};
    const char *kinds = "wwwwww";
    if (kernel_interface && below(state, 32) == 0) {
        call->number = -1;
        return;
    }
    uint64_t chosen = below(state, TABLE + TABLE / 16);
    call->number = chosen < TABLE ? table[chosen].number : (int)below(state, CALL_NUMBERS);
    if (chosen < TABLE)
        kinds = table[chosen].arguments;
    /* Calls that end the worker or make it wait are rarer. */
    switch (call->number) {
    case SYS_exit: case SYS_exit_group: case SYS_rt_sigreturn: case SYS_pause: case SYS_rt_sigsuspend: case SYS_execve:
    case SYS_execveat: case SYS_vfork: case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_close_range:
        if (below(state, 16) != 0) {
            call->number = SYS_sched_yield;
            return;
        }
    }
    call->forks = *kinds == 'X';
    for (int i = 0; i < 6 && kinds[i]; i++)
        call->arguments[i] = argument(state, kinds[i]);
}

/* The kernel's own calls. */

/* Calls `entry` with these registers; which of them are arguments depends on the call. */
static void call_entry(uint64_t entry, const uint64_t registers[7])
{
    register uint64_t r8 __asm__("r8") = registers[3], r9 __asm__("r9") = registers[4], r10 __asm__("r10") = registers[5];
    uint64_t rdi = registers[0], rsi = registers[1], rdx = registers[2], rax = registers[6];
    __asm__ volatile("push %%rbp; push %%rbx; sub $128, %%rsp; call *%%rcx; add $128, %%rsp; pop %%rbx; pop %%rbp"
                     : "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r8), "+r"(r9), "+r"(r10), "+a"(rax), "+c"(entry)
                     :
                     : "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

static uint64_t any_thread(struct random_state *state, const uint64_t *registers)
{
    switch (below(state, 8)) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return ~63ull;
    case 3: return (uint64_t)registers;
    /* The thread's own id, or its server's. */
    case 4: return registers[-15];
    case 5: return registers[-11];
    case 6: return random_word(state);
    default: return below(state, 400) << 32 | (1 + below(state, 4));
    }
}

static void native_call(struct random_state *state)
{
    uint64_t *own;
    __asm__ volatile("movq %%gs:0, %0" : "=r"(own));
    for (int i = (int)below(state, 8); i > 0; i--) {
        int word = (int)below(state, 112) - 48;
        own[word] = below(state, 3) == 0 ? any_thread(state, own) : any_field(state);
    }
    uint64_t registers[7];
    for (int i = 0; i < 7; i++)
        registers[i] = below(state, 2) == 0 ? any_thread(state, own) : any_field(state);
    if (below(state, 2) == 0)
        registers[0] = (uint64_t)own;
    /* For calls with timeouts: none or short ones. */
    if (below(state, 4) != 0)
        registers[3] = below(state, 2) == 0 ? 0x04000400 : 0x08010801;
    call_entry(kernel_interface[(0x1a0 + 8 * below(state, 15)) / 8], registers);
}

/* Makes the arena, and stacks for threads that begin at `cloned`. */
static void prepare(volatile pid_t *processes, int count, int has_kernel_interface, void (*cloned)(void))
{
    others = processes;
    other_count = count;
    kernel_interface = has_kernel_interface ? (volatile uint64_t *)0x7fff80000000 : 0;
    arena_file = fcntl(memfd_create("arena", 0), F_DUPFD, 40);
    ftruncate(arena_file, PAGES * PAGE);
    shadow = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, arena_file, 0);
    char *all = mmap(0, (PAGES + 2) * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    arena = all + PAGE;
    munmap(arena + PAGES * PAGE, PAGE);
    mmap(arena, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, arena_file, 0);
    for (int i = 0; i < STACK_WORDS; i++)
        stacks[i] = (uint64_t)cloned;
}

#endif
