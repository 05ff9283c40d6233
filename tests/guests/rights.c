/* rights TEST: what a user's process tries to do with names, descriptors, signals, terminals and
 * ids that are not its own. */
#define _GNU_SOURCE
#include "chosen.h"
#include "ended.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

enum { USER = 1000, OTHER = 1001 };

static void show(const char *what, long result)
{
    printf("  %s: %s\n", what, result < 0 ? strerror(errno) : "ok");
}

static void become(uid_t user, gid_t group)
{
    if (setgroups(0, 0) || setresgid(group, group, group) || setresuid(user, user, user))
        exit(3);
}

static int as(uid_t user, void (*body)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        become(user, user);
        body();
        fflush(stdout);
        _exit(0);
    }
    return ended(child);
}

static void make(const char *name, uid_t owner, mode_t mode)
{
    int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0 || write(file, "x", 1) != 1 || fchown(file, owner, owner) || fchmod(file, mode))
        exit(3);
    close(file);
}

static void make_directory(const char *name, uid_t owner, mode_t mode)
{
    if (mkdir(name, 0700) || chown(name, owner, owner) || chmod(name, mode))
        exit(3);
}

static void show_mode(const char *name)
{
    struct stat status;
    if (lstat(name, &status) == 0)
        printf("  %s: %o %u %u\n", name, status.st_mode, status.st_uid, status.st_gid);
}

static void links(void)
{
    show("link to another's file", link("secret", "sticky/a"));
    show("link to a readable file", link("readable", "sticky/b"));
    show("link to a writable file", link("writable", "sticky/c"));
    show("link to a set-id program", link("program", "sticky/d"));
    show("link to a device", link("device", "sticky/e"));
    show("link to one's own", link("mine", "sticky/f"));
    int file = open("readable", O_RDONLY), own = open("mine", O_RDONLY);
    show("link of a descriptor", linkat(file, "", AT_FDCWD, "sticky/g", AT_EMPTY_PATH));
    show("link of one's own descriptor", linkat(own, "", AT_FDCWD, "sticky/h", AT_EMPTY_PATH));
    show("open another's link in a sticky directory", open("sticky/trap", O_RDONLY));
    show("create through it", open("sticky/trap-new", O_RDONLY | O_CREAT, 0600));
    show("open one's own link there", symlink("../mine", "sticky/own") ? -1 : open("sticky/own", O_RDONLY));
    show("open another's link elsewhere", open("open/trap", O_RDONLY));
    show("remove another's file", unlink("sticky/theirs"));
    show("rename another's file", rename("sticky/theirs", "sticky/ours"));
    show("replace another's file", rename("mine", "sticky/theirs"));
    show("exchange with another's file", syscall(SYS_renameat2, AT_FDCWD, "mine", AT_FDCWD, "sticky/theirs", 2));
    show("remove another's directory", rmdir("sticky/directory"));
    show("move another's directory", rename("open/directory", "open/moved"));
    show("remove another's file elsewhere", unlink("open/theirs"));
}

static int names(void)
{
    umask(0);
    if (chmod(".", 0777))
        return 3;
    make("secret", 0, 0600);
    make("readable", 0, 0644);
    make("writable", 0, 0666);
    make("program", 0, 04777);
    make("mine", USER, 0600);
    if (mknod("device", S_IFCHR | 0666, makedev(1, 3)) || chmod("device", 0666))
        return 3;
    make_directory("sticky", 0, 01777);
    make_directory("open", 0, 0777);
    make("sticky/theirs", OTHER, 0666);
    make("open/theirs", OTHER, 0600);
    make_directory("sticky/directory", OTHER, 0777);
    make_directory("open/directory", OTHER, 0755);
    if (symlink("../mine", "sticky/trap") || symlink("../new", "sticky/trap-new") || symlink("../mine", "open/trap"))
        return 3;
    if (lchown("sticky/trap", OTHER, OTHER) || lchown("sticky/trap-new", OTHER, OTHER) || lchown("open/trap", OTHER, OTHER))
        return 3;
    return as(USER, links);
}

static void attributes(void)
{
    show("mode of another's file", chmod("readable", 0777));
    show("owner of one's own file", chown("mine", OTHER, -1));
    show("group of one's own file", chown("mine", -1, OTHER));
    show("times of another's file", utimes("readable", 0));
    show("times of another's writable file", utimes("writable", 0));
    show("set-group-id for a foreign group", chmod("foreign", 02755));
    show_mode("foreign");
    int file = open("bits", O_WRONLY);
    show("write to a set-id file", write(file, "y", 1));
    show_mode("bits");
    show("truncate a set-id file", truncate("bits2", 0));
    show_mode("bits2");
    show("chown of a set-id file", chown("bits3", -1, USER));
    show_mode("bits3");
    int made = open("group/file", O_CREAT | O_WRONLY, 02775);
    show("create in a set-group-id directory", made);
    show_mode("group/file");
    show("make a directory there", mkdir("group/directory", 0755));
    show_mode("group/directory");
    show("no access time of another's file", open("readable", O_RDONLY | O_NOATIME));
    show("truncate another's file", truncate("readable", 0));
    show("trusted attribute", syscall(SYS_setxattr, "mine", "trusted.a", "b", 1, 0));
    show("enter a closed directory", chdir("closed"));
    show("name in a closed directory", access("closed/file", F_OK));
    show("access as another", faccessat(AT_FDCWD, "secret", R_OK, 0));
}

static void descriptors(void)
{
    char byte, path[32];
    int named = open("readable", O_PATH), closed = open("secret", O_PATH);
    show("read by a name", read(named, &byte, 1));
    show("mode by a name", fchmod(named, 0777));
    show("owner by a name", fchown(named, USER, USER));
    show("size by a name", ftruncate(named, 0));
    show("ioctl by a name", ioctl(named, FIONREAD, path));
    show("map by a name", fcntl(named, F_SETFL, 0));
    show("list by a name", syscall(SYS_getdents64, named, path, sizeof path));
    show("directory by a name", fchdir(named));
    snprintf(path, sizeof path, "/proc/self/fd/%d", named);
    show("open again to read", open(path, O_RDONLY));
    show("open again to write", open(path, O_WRONLY));
    snprintf(path, sizeof path, "/proc/self/fd/%d", closed);
    show("open what is closed", open(path, O_RDONLY));
    int pipes[2];
    if (pipe(pipes))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", pipes[0]);
    show("write to a pipe's reader", write(pipes[0], "x", 1));
    show("open a pipe again to write", open(path, O_WRONLY | O_NONBLOCK));
    int memory = syscall(SYS_memfd_create, "m", 0);
    fchmod(memory, 0400);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    show("open a memory file again to write", open(path, O_WRONLY));
}

static int files(void)
{
    umask(0);
    if (chmod(".", 0755))
        return 3;
    make("secret", 0, 0600);
    make("readable", 0, 0644);
    make("writable", 0, 0666);
    make("mine", USER, 0600);
    make("foreign", USER, 0644);
    make("bits", USER, 06777);
    make("bits2", USER, 06777);
    make("bits3", USER, 06777);
    make_directory("group", 0, 02777);
    make_directory("closed", 0, 0700);
    make("closed/file", USER, 0666);
    if (chown("foreign", USER, OTHER) || chown("group", 0, OTHER) || chmod("group", 02777))
        return 3;
    printf("attributes\n");
    as(USER, attributes);
    printf("descriptors\n");
    return as(USER, descriptors);
}

static void privileges(void)
{
    struct rlimit limit = {1 << 19, 1 << 19}, higher = {1 << 20, 1 << 20};
    struct timeval now = {0, 0};
    setrlimit(RLIMIT_NOFILE, &limit);
    show("raise a limit", setrlimit(RLIMIT_NOFILE, &higher));
    show("raise the priority", setpriority(PRIO_PROCESS, 0, -5));
    show("set groups", setgroups(0, 0));
    show("become the superuser", setuid(0));
    show("change the root", chroot("."));
    show("mount", mount("none", ".", "tmpfs", 0, 0));
    show("unmount", umount("/proc"));
    show("make a device", mknod("device", S_IFCHR | 0600, makedev(1, 1)));
    show("set the time", settimeofday(&now, 0));
    show("set the name", sethostname("x", 1));
    show("write the name", open("/proc/sys/kernel/hostname", O_WRONLY));
    show("write what follows a crash", open("/proc/sys/kernel/core_pattern", O_WRONLY));
    show("read the log", syscall(SYS_syslog, 3, 0, 0) < 0 && errno == EPERM ? -1 : 0);
    show("restart", syscall(SYS_reboot, 0xfee1dead, 672274793, 0x1234567, 0));
    show("hang up", vhangup());
}

static void signals(void)
{
    siginfo_t information = {.si_code = SI_KERNEL};
    information.si_signo = SIGUSR1;
    show("signal of the system to another", syscall(SYS_rt_sigqueueinfo, getppid(), 0, &information));
    show("kill the superuser", kill(getppid(), 0));
    show("continue it, in one session", kill(getppid(), SIGCONT));
    show("kill its thread", syscall(SYS_tgkill, getppid(), getppid(), 0));
    show("kill the first process", kill(1, 0));
    show("its group", setpgid(getppid(), 0));
    setsid();
    show("continue it, from another session", kill(getppid(), SIGCONT));
    show("a group of another session", setpgid(0, getpgid(getppid())));
}

static int pair[2];

static void credentials(void)
{
    struct ucred ids[] = {{getpid(), USER, USER}, {1, USER, USER}, {getpid(), 0, USER}, {getpid(), USER, 0}};
    static const char *names[] = {"one's own ids", "another process", "the superuser", "its group"};
    for (unsigned i = 0; i < 4; i++) {
        char space[CMSG_SPACE(sizeof ids[i])] = {0};
        struct iovec byte = {"x", 1};
        struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_CREDENTIALS;
        header->cmsg_len = CMSG_LEN(sizeof ids[i]);
        memcpy(CMSG_DATA(header), &ids[i], sizeof ids[i]);
        show(names[i], sendmsg(pair[0], &message, 0));
    }
    struct sockaddr_un address = {AF_UNIX, "socket"};
    show("connect to a closed socket", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address));
}

static int slave;
static char terminal[64];

static void foreign_terminal(void)
{
    show("its foreground group", tcsetpgrp(slave, getpgrp()));
    pid_t group;
    show("read its foreground group", ioctl(slave, TIOCGPGRP, &group));
    show("take it without a session", ioctl(slave, TIOCSCTTY, 1));
    setsid();
    show("take it from its session", ioctl(slave, TIOCSCTTY, 0));
    show("steal it", ioctl(slave, TIOCSCTTY, 1));
    show("open it", open(terminal, O_RDWR | O_NOCTTY));
}

static int others(void)
{
    if (chmod(".", 0777))
        return 3;
    printf("privileges\n");
    as(USER, privileges);
    printf("signals\n");
    as(USER, signals);
    printf("credentials\n");
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {AF_UNIX, "socket"};
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || bind(listener, (void *)&address, sizeof address) || listen(listener, 1))
        return 3;
    chmod("socket", 0700);
    as(USER, credentials);
    printf("terminals\n");
    fflush(stdout);
    pid_t leader = fork();
    if (leader == 0) {
        int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0, number;
        if (setsid() < 0 || ioctl(master, TIOCSPTLCK, &zero) || ioctl(master, TIOCGPTN, &number))
            _exit(3);
        snprintf(terminal, sizeof terminal, "/dev/pts/%d", number);
        slave = open(terminal, O_RDWR);
        if (slave < 0 || fchown(slave, 0, 5) || fchmod(slave, 0620))
            _exit(4);
        _exit(as(USER, foreign_terminal));
    }
    return ended(leader);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {{"names", names}, {"files", files}, {"others", others}};
    return RUN_CHOSEN(tests);
}
