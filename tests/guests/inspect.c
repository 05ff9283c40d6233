/* inspect TEST: what processes learn of each other through /proc and by calls, and what of it
 * remains valid when ids or programs change. */
#define _GNU_SOURCE
#include "chosen.h"
#include "ended.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { USER = 1000, OTHER = 1001 };

static char path[64];

static const char *of(pid_t pid, const char *name)
{
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return path;
}

static void show(const char *what, long result)
{
    printf("  %s: %s\n", what, result < 0 ? strerror(errno) : "ok");
}

static void become(uid_t user, gid_t group)
{
    if (setgroups(0, 0) || setresgid(group, group, group) || setresuid(user, user, user))
        exit(3);
}

/* Runs `body` in a child and waits for it. */
static void in_child(void (*body)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        body();
        fflush(stdout);
        _exit(0);
    }
    int status = ended(child);
    if (status)
        printf("  ended with %d\n", status);
}

/* A copy of this program with this owner and mode. */
static void install(const char *name, uid_t owner, mode_t mode)
{
    char buffer[65536];
    int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0700);
    for (ssize_t count; (count = read(from, buffer, sizeof buffer)) > 0;)
        if (write(to, buffer, count) != count)
            exit(3);
    if (fchown(to, owner, owner) || fchmod(to, mode))
        exit(3);
    close(from);
    close(to);
}

/* A process that a test looks at: it says when it is there, and stays until it is killed. */
static int told[2];

static void stay(void)
{
    if (write(told[1], "x", 1) != 1)
        _exit(3);
    for (;;)
        pause();
}

static void as_superuser(void) { stay(); }

static void as_user(void)
{
    become(USER, USER);
    prctl(PR_SET_DUMPABLE, 1);
    stay();
}

static void as_other(void)
{
    become(OTHER, OTHER);
    prctl(PR_SET_DUMPABLE, 1);
    stay();
}

static void as_other_group(void)
{
    become(USER, OTHER);
    prctl(PR_SET_DUMPABLE, 1);
    stay();
}

static void as_closed(void)
{
    become(USER, USER);
    prctl(PR_SET_DUMPABLE, 0);
    stay();
}

static void as_former_superuser(void)
{
    become(USER, USER);
    stay();
}

static void run(const char *name, const char *what)
{
    become(USER, USER);
    dup2(told[1], 9);
    execl(name, name, what, (char *)0);
    _exit(4);
}

static void as_set_id(void) { run("./raised", "stay"); }
static void as_former_set_id(void) { run("./raised", "stay-lowered"); }
static void as_unreadable(void) { run("./unreadable", "stay"); }
static void as_program(void) { run("./plain", "stay"); }

static pid_t start(void (*body)(void))
{
    fflush(stdout);
    if (pipe2(told, O_CLOEXEC))
        exit(3);
    pid_t child = fork();
    if (child == 0)
        body();
    char byte;
    close(told[1]);
    if (read(told[0], &byte, 1) != 1)
        printf("  did not start\n");
    close(told[0]);
    return child;
}

static void stop(pid_t child)
{
    kill(child, SIGKILL);
    ended(child);
}

static void try_open(pid_t pid, const char *name, int flags)
{
    char what[32];
    snprintf(what, sizeof what, "%s %s", flags == O_WRONLY ? "write" : "open", name);
    int file = open(of(pid, name), flags);
    show(what, file);
    close(file);
}

static void try_read(pid_t pid, const char *name)
{
    char what[32], text[4096];
    snprintf(what, sizeof what, "read %s", name);
    int file = open(of(pid, name), O_RDONLY);
    show(what, file < 0 ? file : read(file, text, sizeof text) < 0 ? -1 : 0);
    close(file);
}

/* Whether stat, open as `file`, shows addresses: fields 26 to 29 and 45 to 51 of proc(5), counted
 * from the end of the name. */
static int shows_addresses(int file)
{
    char text[1024] = "";
    ssize_t count = pread(file, text, sizeof text - 1, 0);
    if (count < 0)
        return -1;
    char *field = strrchr(text, ')') + 2;
    for (int number = 3; number < 28; number++)
        field = strchr(field, ' ') + 1;
    return strtoull(field, 0, 10) != 0;
}

static pid_t target;

static void look(void)
{
    static const char *links[] = {"cwd", "root", "exe", "fd/0"};
    static const char *shown[] = {"maps", "smaps", "smaps_rollup", "environ", "auxv", "oom_score_adj"};
    static const char *texts[] = {"io", "personality", "cmdline", "status", "statm", "limits"};
    char text[4096];
    become(USER, USER);
    prctl(PR_SET_DUMPABLE, 1);
    for (unsigned i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(text, sizeof text, "readlink %s", links[i]);
        char where[64];
        show(text, readlink(of(target, links[i]), where, sizeof where));
        try_open(target, links[i], O_RDONLY | O_NONBLOCK);
    }
    for (unsigned i = 0; i < sizeof shown / sizeof *shown; i++)
        try_open(target, shown[i], O_RDONLY);
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        try_read(target, texts[i]);
    try_open(target, "oom_score_adj", O_WRONLY);
    try_open(target, "fd", O_RDONLY | O_DIRECTORY);
    try_open(target, "task", O_RDONLY | O_DIRECTORY);
    int file = open(of(target, "stat"), O_RDONLY);
    printf("  addresses in stat: %d\n", shows_addresses(file));
    close(file);
    static const char *owned[] = {"", "task", "maps", "fd", "status", "cwd"};
    for (unsigned i = 0; i < sizeof owned / sizeof *owned; i++) {
        struct stat status;
        if (lstat(of(target, owned[i]), &status) == 0)
            printf("  /%s: %o %u %u\n", owned[i], status.st_mode, status.st_uid, status.st_gid);
    }
    int process = syscall(SYS_pidfd_open, target, 0);
    show("pidfd_getfd", syscall(SYS_pidfd_getfd, process, 0, 0));
    show("pidfd_getfd of none", syscall(SYS_pidfd_getfd, process, 77, 0));
    void *head;
    size_t size;
    show("get_robust_list", syscall(SYS_get_robust_list, target, &head, &size));
    struct rlimit64 limit;
    show("prlimit", syscall(SYS_prlimit64, target, RLIMIT_CORE, 0, &limit));
    errno = 0;
    getpriority(PRIO_PROCESS, target);
    show("getpriority", errno ? -1 : 0);
    show("setpriority", setpriority(PRIO_PROCESS, target, 5));
    cpu_set_t set;
    show("sched_getaffinity", sched_getaffinity(target, sizeof set, &set));
    show("sched_setaffinity", sched_setaffinity(target, sizeof set, &set));
    struct sched_param none = {0};
    show("sched_setscheduler", syscall(SYS_sched_setscheduler, target, SCHED_OTHER, &none));
    show("kill", kill(target, 0));
}

static int processes(void)
{
    static const struct {
        const char *name;
        void (*body)(void);
    } kinds[] = {
        {"the same user", as_user},
        {"the same user, closed", as_closed},
        {"another group", as_other_group},
        {"another user", as_other},
        {"the superuser", as_superuser},
        {"the superuser until now", as_former_superuser},
        {"a program", as_program},
        {"a set-id program", as_set_id},
        {"a set-id program that gave its rights up", as_former_set_id},
        {"a program that cannot be read", as_unreadable},
    };
    install("plain", 0, 0755);
    install("raised", 0, 04755);
    install("unreadable", 0, 0711);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        printf("%s\n", kinds[i].name);
        target = start(kinds[i].body);
        in_child(look);
        stop(target);
    }
    return 0;
}

static void own(void)
{
    char text[64];
    become(USER, USER);
    printf("  dumpable: %d\n", prctl(PR_GET_DUMPABLE));
    target = getpid();
    DIR *directory = opendir(of(target, "fd"));
    show("open fd", directory ? 0 : -1);
    show("readlink fd/0", readlink(of(target, "fd/0"), text, sizeof text));
    show("access fd", access(of(target, "fd"), R_OK | X_OK));
    show("readlink cwd", readlink(of(target, "cwd"), text, sizeof text));
    try_open(target, "maps", O_RDONLY);
    try_open(target, "environ", O_RDONLY);
    try_read(target, "io");
    try_open(target, "oom_score_adj", O_WRONLY);
    int file = open(of(target, "stat"), O_RDONLY);
    printf("  addresses in stat: %d\n", shows_addresses(file));
}

static void superuser_of_files(void)
{
    if (setresuid(0, USER, 0))
        exit(3);
    setfsuid(0);
    try_open(1, "maps", O_RDONLY);
    try_open(1, "cwd", O_RDONLY);
    show("pidfd_getfd", syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0), 0, 0));
}

static void ids(void)
{
    static const char *names[] = {"nothing", "setresgid", "setresuid", "setfsuid", "setfsgid", "seteuid and back", "setgroups"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            int done = 0, signal = -1;
            switch (i) {
            case 1: done = setresgid(-1, USER, -1); break;
            case 2: done = setresuid(USER, -1, -1); break;
            case 3: setfsuid(USER); break;
            case 4: setfsgid(USER); break;
            case 5: done = seteuid(USER) || seteuid(0); break;
            case 6: done = setgroups(0, 0); break;
            }
            prctl(PR_GET_PDEATHSIG, &signal);
            printf("  %s: %d dumpable %d death signal %d\n", names[i], done, prctl(PR_GET_DUMPABLE), signal);
            fflush(stdout);
            _exit(0);
        }
        ended(child);
    }
    fflush(stdout);
}

static int self(void)
{
    printf("a process that was the superuser's looks at itself\n");
    in_child(own);
    printf("the superuser for files only\n");
    in_child(superuser_of_files);
    printf("what changes of ids do\n");
    in_child(ids);
    return 0;
}

/* Files of /proc that were opened before the process ended or had another program. */
static int stale(void)
{
    static const char *names[] = {"stat", "status", "cmdline", "comm", "maps", "environ", "limits", "oom_score_adj"};
    enum { COUNT = sizeof names / sizeof *names };
    int files[COUNT];
    char text[4096];
    pid_t child = start(as_user);
    int directory = open(of(child, ""), O_RDONLY | O_DIRECTORY);
    int descriptors = open(of(child, "fd"), O_RDONLY | O_DIRECTORY);
    int link = open(of(child, "cwd"), O_PATH | O_NOFOLLOW);
    for (unsigned i = 0; i < COUNT; i++)
        files[i] = open(of(child, names[i]), O_RDONLY);
    stop(child);
    printf("when the process has gone\n");
    for (unsigned i = 0; i < COUNT; i++) {
        ssize_t count = read(files[i], text, sizeof text);
        snprintf(text, sizeof text, "%s %zd", names[i], count);
        show(text, count);
    }
    show("openat", openat(directory, "stat", O_RDONLY));
    show("openat fd", openat(descriptors, "0", O_PATH | O_NOFOLLOW));
    show("readlinkat", readlinkat(link, "", text, sizeof text));
    show("readlinkat in it", readlinkat(directory, "cwd", text, sizeof text));

    /* The user's process that is to have more rights soon. */
    install("raised", 0, 04755);
    int go[2];
    if (pipe2(told, O_CLOEXEC) || pipe(go))
        exit(3);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        become(USER, USER);
        prctl(PR_SET_DUMPABLE, 1);
        if (write(told[1], "x", 1) != 1 || read(go[0], text, 1) != 1)
            _exit(3);
        dup2(told[1], 9);
        execl("./raised", "./raised", "stay", (char *)0);
        _exit(4);
    }
    if (read(told[0], text, 1) != 1)
        exit(3);
    fflush(stdout);
    pid_t looker = fork();
    if (looker == 0) {
        become(USER, USER);
        int maps = open(of(child, "maps"), O_RDONLY), environ = open(of(child, "environ"), O_RDONLY);
        int status = open(of(child, "stat"), O_RDONLY), io = open(of(child, "io"), O_RDONLY);
        int list = open(of(child, "fd"), O_RDONLY | O_DIRECTORY);
        printf("before another program\n  addresses in stat: %d\n", shows_addresses(status));
        if (write(go[1], "x", 1) != 1 || read(told[0], text, 1) != 1)
            _exit(3);
        printf("with a set-id program\n  addresses in stat: %d\n", shows_addresses(status));
        printf("  maps: %zd\n", read(maps, text, sizeof text));
        printf("  environ: %zd\n", read(environ, text, sizeof text));
        show("io", read(io, text, sizeof text));
        show("readlinkat fd", readlinkat(list, "0", text, sizeof text));
        show("openat fd", openat(list, "0", O_RDONLY));
        fflush(stdout);
        _exit(0);
    }
    printf("looked: %d\n", ended(looker));
    stop(child);
    return 0;
}

/* The credentials that a set-id program gets. */
static int started(const char *name, const char *what, int flags)
{
    fflush(stdout);
    pid_t child = syscall(SYS_clone, (long)(flags | SIGCHLD), 0L, 0L, 0L, 0L);
    if (child == 0) {
        execl(name, name, what, (char *)0);
        _exit(4);
    }
    return ended(child);
}

static void programs_of_user(void)
{
    become(USER, USER);
    printf("alone: ");
    started("./raised", "ids", 0);
    printf("a group's: ");
    started("./group", "ids", 0);
    printf("with shared directories: ");
    started("./raised", "ids", CLONE_FS);
    printf("a group's with shared directories: ");
    started("./group", "ids", CLONE_FS);
    printf("with shared descriptors: ");
    started("./raised", "ids", CLONE_FILES);
    printf("unreadable: ");
    started("./unreadable", "ids", 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("without new privileges: ");
    started("./raised", "ids", 0);
}

static void programs_of_raised(void)
{
    if (setresuid(USER, 0, 0))
        exit(3);
    printf("of one that acts for the superuser: ");
    started("./plain", "ids", 0);
    printf("with shared directories: ");
    started("./plain", "ids", CLONE_FS);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("without new privileges: ");
    started("./plain", "ids", 0);
}

static int programs(void)
{
    install("plain", 0, 0755);
    install("raised", 0, 04755);
    install("group", OTHER, 02755);
    install("unreadable", 0, 0711);
    in_child(programs_of_user);
    in_child(programs_of_raised);
    return 0;
}

/* A child tries to end its parent with a signal of its choice after the parent has executed
 * another program. */
static int end(void)
{
    install("raised", 0, 04755);
    for (int executes = 0; executes < 2; executes++) {
        fflush(stdout);
        pid_t parent = fork();
        if (parent == 0) {
            become(USER, USER);
            int gate[2];
            if (pipe(gate))
                _exit(3);
            pid_t child = syscall(SYS_clone, (long)SIGUSR1, 0L, 0L, 0L, 0L);
            if (child == 0) {
                char byte;
                close(gate[1]);
                while (read(gate[0], &byte, 1) < 0)
                    ;
                _exit(0);
            }
            close(gate[0]);
            dup2(gate[1], 8);
            close(gate[1]);
            if (executes)
                execl("./raised", "./raised", "await", (char *)0);
            close(8);
            for (;;)
                pause();
        }
        printf("%s: %d\n", executes ? "of another program" : "of its parent", ended(parent));
    }
    return 0;
}

/* Parts of the tests above that run as programs of their own. */
static int staying(void)
{
    told[1] = 9;
    stay();
    return 0;
}

static int staying_lowered(void)
{
    return setresuid(USER, USER, USER) ? 3 : staying();
}

static int show_ids(void)
{
    uid_t user[3];
    gid_t group[3];
    int signal;
    getresuid(&user[0], &user[1], &user[2]);
    getresgid(&group[0], &group[1], &group[2]);
    prctl(PR_GET_PDEATHSIG, &signal);
    printf("%u %u %u, %u %u %u, dumpable %d\n", user[0], user[1], user[2], group[0], group[1], group[2], prctl(PR_GET_DUMPABLE));
    return 0;
}

static int await_child(void)
{
    close(8);
    return waitpid(-1, 0, __WALL) > 0 ? 0 : 5;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        {"processes", processes}, {"self", self},           {"stale", stale},       {"programs", programs},
        {"end", end},             {"stay", staying},        {"ids", show_ids},      {"stay-lowered", staying_lowered},
        {"await", await_child},
    };
    return RUN_CHOSEN(tests);
}
