/* Costs of system calls on names and descriptors that calls.c and lmbench.c do not make. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>
#include "measure.h"

enum { COUNT = 300, ENTRIES = 50 };

static char buffer[8192];

static void names(void)
{
    struct stat status;
    struct statfs system;
    must(mkdir("/tmp/names", 0700), "mkdir");
    must(chdir("/tmp/names"), "chdir");
    must(close((int)must(open("file", O_WRONLY | O_CREAT, 0600), "open")), "close");
    must(symlink("file", "name"), "symlink");
    CALL("access", COUNT, access("file", R_OK));
    CALL("lstat", COUNT, lstat("name", &status));
    CALL("readlink", COUNT, readlink("name", buffer, sizeof buffer));
    CALL("chmod", COUNT, chmod("file", 0600));
    CALL("chown", COUNT, chown("file", 0, 0));
    CALL("utimensat", COUNT, utimensat(AT_FDCWD, "file", 0, 0));
    CALL("truncate", COUNT, truncate("file", 100));
    CALL("statfs", COUNT, statfs("file", &system));
    CALL("getxattr, none", COUNT, getxattr("file", "user.none", buffer, 1) == -1 ? 0 : -1);
    CALL("rename, there and back", COUNT, (rename("file", "other") | rename("other", "file")));
    CALL("link and unlink", COUNT, (link("file", "other") | unlink("other")));
    CALL("symlink and unlink", COUNT, (symlink("file", "other") | unlink("other")));
    CALL("mkdir and rmdir", COUNT, (mkdir("other", 0700) | rmdir("other")));
    CALL("getcwd", COUNT, getcwd(buffer, sizeof buffer) ? 0 : -1);
    CALL("chdir", COUNT, chdir("/tmp/names"));
    unlink("name"), unlink("file");
}

static void directory(void)
{
    char name[16];
    must(mkdir("empty", 0700), "mkdir");
    CALL("opendir, readdir to the end, closedir, empty", COUNT, ({
             int opened = open("empty", O_RDONLY | O_DIRECTORY);
             while (syscall(SYS_getdents64, opened, buffer, sizeof buffer) > 0)
                 ;
             close(opened);
         }));
    rmdir("empty");
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof name, "entry%d", i);
        must(close((int)must(open(name, O_WRONLY | O_CREAT, 0600), "open")), "close");
    }
    int here = (int)must(open(".", O_RDONLY | O_DIRECTORY), "open");
    CALL("getdents64, 50 entries, and lseek", 100,
         (lseek(here, 0, SEEK_SET) == -1 ? -1 : syscall(SYS_getdents64, here, buffer, sizeof buffer)));
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof name, "entry%d", i);
        unlink(name);
    }
    close(here);
    must(chdir("/"), "chdir");
    rmdir("/tmp/names");
}

static void descriptors(void)
{
    int pair[2], flag = 1;
    socklen_t length = sizeof flag;
    struct iovec two[2] = {{buffer, 32}, {buffer + 32, 32}};
    int file = (int)must(open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0600), "open");
    int second = (int)must(open("/tmp/second", O_RDWR | O_CREAT | O_TRUNC, 0600), "open");
    must(write(file, buffer, sizeof buffer), "write");
    CALL("pread 1 byte", COUNT, pread(file, buffer, 1, 0));
    CALL("pread 64 bytes", COUNT, pread(file, buffer, 64, 0));
    CALL("pwrite 64 bytes", COUNT, pwrite(file, buffer, 64, 0));
    CALL("pread 4 KiB", COUNT, pread(file, buffer, 4096, 0));
    CALL("pwrite 4 KiB", COUNT, pwrite(file, buffer, 4096, 0));
    CALL("lseek", COUNT, lseek(file, 0, SEEK_SET));
    CALL("writev, two pieces", COUNT, (lseek(file, 0, SEEK_SET) | writev(file, two, 2)));
    CALL("readv, two pieces", COUNT, (lseek(file, 0, SEEK_SET) | readv(file, two, 2)));
    CALL("sendfile 4 KiB", COUNT, sendfile(second, file, &(off_t){0}, 4096));
    CALL("ftruncate", COUNT, ftruncate(file, 4096));
    CALL("fallocate", COUNT, fallocate(file, 0, 0, 4096));
    CALL("fsync", COUNT, fsync(file));
    CALL("fcntl F_GETFL", COUNT, fcntl(file, F_GETFL));
    CALL("fcntl F_SETFD", COUNT, fcntl(file, F_SETFD, FD_CLOEXEC));
    CALL("fcntl F_DUPFD and close", COUNT, close(fcntl(file, F_DUPFD, 20)));
    CALL("dup2 to a descriptor that is open", COUNT, dup2(file, second));
    REFUSED("close of no descriptor", COUNT, EBADF, close(999));
    CALL("flock, lock and unlock", COUNT, (syscall(SYS_flock, file, 2) | syscall(SYS_flock, file, 8)));
    CALL("dup and close", COUNT, close(dup(file)));
    CALL("pipe and close", COUNT, (pipe(pair) | close(pair[0]) | close(pair[1])));
    CALL("socketpair and close", COUNT,
         (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) | close(pair[0]) | close(pair[1])));
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
    CALL("datagram, send and receive", COUNT,
         (send(pair[0], buffer, 64, 0) == -1 ? -1 : recv(pair[1], buffer, 64, 0)));
    CALL("datagram, sendmsg and recvmsg", COUNT, ({
             struct msghdr message = {.msg_iov = two, .msg_iovlen = 2};
             sendmsg(pair[0], &message, 0) == -1 ? -1 : recvmsg(pair[1], &message, 0);
         }));
    CALL("getsockopt", COUNT, getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &flag, &length));
    close(pair[0]), close(pair[1]);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    CALL("AF_UNIX stream, write and read", COUNT,
         (write(pair[0], buffer, 64) == -1 ? -1 : read(pair[1], buffer, 64)));
    close(pair[0]), close(pair[1]);
    close(file), close(second);
    unlink("/tmp/file"), unlink("/tmp/second");
}

static void events(void)
{
    struct epoll_event event = {.events = EPOLLIN}, ready[4];
    uint64_t one = 1;
    int queue = (int)must(epoll_create1(0), "epoll_create1"), counter = (int)must(eventfd(0, 0), "eventfd");
    must(epoll_ctl(queue, EPOLL_CTL_ADD, counter, &event), "epoll_ctl");
    struct pollfd one_file = {.fd = counter, .events = POLLIN};
    CALL("eventfd and close", COUNT, close(eventfd(0, 0)));
    CALL("poll on an eventfd, none ready", COUNT, poll(&one_file, 1, 0));
    CALL("eventfd, write and read", COUNT, (write(counter, &one, 8) == -1 ? -1 : read(counter, &one, 8)));
    CALL("epoll_ctl", COUNT, epoll_ctl(queue, EPOLL_CTL_MOD, counter, &event));
    CALL("epoll_wait, none ready", COUNT, epoll_wait(queue, ready, 4, 0));
    one = 1;
    must(write(counter, &one, 8), "write");
    CALL("epoll_wait, one ready", COUNT, epoll_wait(queue, ready, 4, 0));
    close(queue), close(counter);
    int timer = (int)must(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
    struct itimerspec later = {.it_value = {1000, 0}};
    CALL("timerfd_settime", COUNT, timerfd_settime(timer, 0, &later, 0));
    CALL("timerfd_gettime", COUNT, timerfd_gettime(timer, &later));
    close(timer);
    int watched = (int)must(inotify_init1(IN_NONBLOCK), "inotify_init1");
    CALL("inotify, add a watch and take it away", COUNT,
         inotify_rm_watch(watched, inotify_add_watch(watched, "/tmp", IN_CREATE)));
    close(watched);
    int memory = (int)must(memfd_create("memory", 0), "memfd_create");
    close(memory);
    CALL("memfd_create and close", COUNT, close(memfd_create("memory", 0)));
}

static void terminal(void)
{
    struct termios settings;
    struct winsize size;
    int master = (int)must(posix_openpt(O_RDWR | O_NOCTTY), "posix_openpt");
    must(unlockpt(master), "unlockpt");
    CALL("ioctl TCGETS", COUNT, ioctl(master, TCGETS, &settings));
    CALL("ioctl TIOCGWINSZ", COUNT, ioctl(master, TIOCGWINSZ, &size));
    close(master);
}

int main(void)
{
    names();
    directory();
    descriptors();
    events();
    terminal();
    return 0;
}
