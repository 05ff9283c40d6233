/* users: what the system keeps for each user is limited, one user's programs take nothing from
 * another's, and the superuser sets the limits (pipe(7), unix(7), epoll(7), inotify(7),
 * proc(5)). */
#define _GNU_SOURCE
#include "chosen.h"
#include "ended.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = 0, USER = 1000, OTHER = 1001, MANY = 40 };

static void setting(const char *name, const char *value)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/fs/%s", name);
    int file = open(path, O_WRONLY | O_TRUNC);
    if (file < 0 || write(file, value, strlen(value)) < 0)
        printf("  %s %s: %s\n", name, value, strerror(errno));
    close(file);
}

/* Each body runs in a process of its own, as this user, while the pipe `go` is open at the other
 * end. */
static int as(uid_t user, void (*body)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (user != ROOT && (setgroups(0, 0) || setgid(user) || setuid(user)))
            _exit(3);
        body();
        fflush(stdout);
        _exit(0);
    }
    return ended(child);
}

/* While one user has all that it may have, another user gets as much. */
static void all(const char *what, void (*body)(void))
{
    static const char *const names[] = {"user", "other", "root"};
    static const uid_t users[] = {USER, OTHER, ROOT};
    int first[2];
    if (pipe(first))
        exit(3);
    printf("%s\n", what);
    fflush(stdout);
    pid_t holder = fork();
    if (holder == 0) {
        close(first[0]);
        if (setgroups(0, 0) || setgid(USER) || setuid(USER))
            _exit(3);
        printf(" first\n");
        body();
        fflush(stdout);
        if (write(first[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(first[1]);
    char byte;
    if (read(first[0], &byte, 1) != 1)
        exit(3);
    close(first[0]);
    for (unsigned i = 0; i < sizeof users / sizeof *users; i++) {
        printf(" %s meanwhile\n", names[i]);
        printf("  ended %d\n", as(users[i], body));
    }
    kill(holder, SIGKILL);
    ended(holder);
    printf(" user afterwards\n");
    printf("  ended %d\n", as(USER, body));
}

static void some_pipes(void)
{
    int both[2], sizes[MANY] = {0}, made = 0, last = -1;
    for (; made < 12 && pipe(both) == 0; made++) {
        sizes[made] = fcntl(both[0], F_GETPIPE_SZ);
        last = both[0];
    }
    printf("  pipes:");
    for (int i = 0; i < made; i++)
        printf(" %d", sizes[i]);
    printf("%s%s\n", made < 12 ? ", then " : "", made < 12 ? strerror(errno) : "");
    if (last < 0)
        return;
    int grown = fcntl(last, F_SETPIPE_SZ, 1 << 18);
    printf("  grow: %s\n", grown < 0 ? strerror(errno) : "ok");
    printf("  shrink: %d\n", fcntl(last, F_SETPIPE_SZ, 4096));
    if (mkfifo("fifo", 0666) && errno != EEXIST)
        printf("  fifo: %s\n", strerror(errno));
    int fifo = open("fifo", O_RDWR);
    printf("  named pipe: %d, %s\n", fifo < 0 ? -1 : fcntl(fifo, F_GETPIPE_SZ), fifo < 0 ? strerror(errno) : "ok");
}

static int pipes(void)
{
    umask(0);
    setting("pipe-user-pages-soft", "64");
    all("pages of pipes, a soft limit", some_pipes);
    setting("pipe-user-pages-hard", "70");
    all("pages of pipes, a hard limit", some_pipes);
    setting("pipe-user-pages-hard", "0");
    setting("pipe-max-size", "20000");
    all("a smaller largest pipe", some_pipes);
    setting("pipe-max-size", "1048576");
    setting("pipe-user-pages-soft", "16384");
    return 0;
}

static int send_some(int socket, int file, unsigned count)
{
    char byte = 0, control[CMSG_SPACE(4 * sizeof file)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(count * sizeof file)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof file);
    for (unsigned i = 0; i < count; i++)
        memcpy(CMSG_DATA(header) + i * sizeof file, &file, sizeof file);
    return sendmsg(socket, &message, MSG_DONTWAIT);
}

static void some_messages(void)
{
    struct rlimit limit = {20, 20};
    int sockets[MANY][2], pairs = 0;
    for (; pairs < 6; pairs++)
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets[pairs]))
            printf("  socketpair: %s\n", strerror(errno));
    setrlimit(RLIMIT_NOFILE, &limit);
    int sent = 0;
    /* Few messages fit into each socket: their number is limited, too. */
    while (sent < MANY && send_some(sockets[sent % pairs][0], 0, 1) == 1)
        sent++;
    printf("  sent %d, %s\n", sent, sent < MANY ? strerror(errno) : "all");
    char byte;
    if (sent == 0)
        return;
    printf("  received %zd\n", recv(sockets[0][1], &byte, 1, MSG_DONTWAIT));
    printf("  one with four: %d\n", send_some(sockets[0][0], 0, 4));
    int more = send_some(sockets[0][0], 0, 1);
    printf("  one more: %s\n", more < 0 ? strerror(errno) : "ok");
}

static int messages(void)
{
    all("descriptors in flight", some_messages);
    return 0;
}

static void some_epoll_watches(void)
{
    int both[2], first = epoll_create1(0), second = epoll_create1(0), made = 0;
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe(both))
        return;
    while (made < MANY && epoll_ctl(made % 2 ? first : second, EPOLL_CTL_ADD, dup(both[0]), &event) == 0)
        made++;
    printf("  watched %d, %s\n", made, made < MANY ? strerror(errno) : "all");
    if (made > 0 && epoll_ctl(second, EPOLL_CTL_DEL, both[1] + 1, 0))
        printf("  removed: %s\n", strerror(errno));
    int again = epoll_ctl(first, EPOLL_CTL_ADD, both[0], &event);
    printf("  after one was removed: %s\n", again < 0 ? strerror(errno) : "ok");
}

static void some_instances(void)
{
    int made = 0;
    while (made < MANY && inotify_init1(0) >= 0)
        made++;
    printf("  instances %d, %s\n", made, made < MANY ? strerror(errno) : "all");
}

static void some_inotify_watches(void)
{
    int first = inotify_init1(0), second = inotify_init1(0), made = 0;
    char name[32];
    for (; made < MANY; made++) {
        snprintf(name, sizeof name, "w%d", made);
        if (mkdir(name, 0777) && errno != EEXIST)
            printf("  %s: %s\n", name, strerror(errno));
        if (inotify_add_watch(made % 2 ? first : second, name, IN_CREATE) < 0)
            break;
    }
    printf("  watched %d, %s\n", made, made < MANY ? strerror(errno) : "all");
    if (made == 0)
        return;
    printf("  the same again: %d\n", inotify_add_watch(second, "w0", IN_DELETE));
    printf("  removed: %d\n", inotify_rm_watch(second, 1));
    int again = inotify_add_watch(first, "w0", IN_CREATE);
    printf("  after one was removed: %s\n", again < 0 ? strerror(errno) : "ok");
}

static int watches(void)
{
    umask(0);
    setting("epoll/max_user_watches", "11");
    all("files that epoll watches", some_epoll_watches);
    setting("epoll/max_user_watches", "100000");
    setting("inotify/max_user_instances", "5");
    all("instances of inotify", some_instances);
    setting("inotify/max_user_instances", "128");
    setting("inotify/max_user_watches", "7");
    all("files that inotify watches", some_inotify_watches);
    setting("inotify/max_user_watches", "8192");
    return 0;
}

static void write_setting(void)
{
    int file = open("/proc/sys/fs/pipe-max-size", O_WRONLY);
    printf("  a user writes: %s\n", file < 0 ? strerror(errno) : "ok");
}

static int settings(void)
{
    static const char *const values[] = {"0", "1", "4097", "1000000000", "3000000000", "-1", "x", "12x", "  64\n"};
    static const char *const names[] = {"pipe-max-size", "pipe-user-pages-soft", "inotify/max_user_instances",
                                        "inotify/max_queued_events"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64], line[64];
        snprintf(path, sizeof path, "/proc/sys/fs/%s", names[i]);
        struct stat status;
        int file = open(path, O_RDWR);
        if (file < 0 || fstat(file, &status))
            return 1;
        ssize_t length = pread(file, line, sizeof line - 1, 0);
        printf("%s: mode %o, %.*s", names[i], status.st_mode, (int)length, line);
        char *old = strndup(line, length);
        for (unsigned n = 0; n < sizeof values / sizeof *values; n++) {
            ssize_t written = pwrite(file, values[n], strlen(values[n]), 0);
            const char *how = written < 0 ? strerror(errno) : "ok";
            length = pread(file, line, sizeof line - 1, 0);
            printf("  %s: %s, %.*s", values[n][0] == ' ' ? "with spaces" : values[n], how, (int)length, line);
        }
        if (pwrite(file, old, strlen(old), 0) < 0)
            return 1;
        free(old);
        close(file);
    }
    as(USER, write_setting);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        {"pipes", pipes}, {"messages", messages}, {"watches", watches}, {"settings", settings}};
    return RUN_CHOSEN(tests);
}
