/* The first process of a guest: mounts the usual file systems unless they are mounted already, runs
 * one command or else a login shell on the console, waits for it and for every orphan, and ends the
 * system.
 *
 *   init                 runs the command of /run/command (its words, each followed by NUL), or a
 *   login shell init -- COMMAND ...  not as the first process: runs the command on the terminal
 *   that it has poweroff, reboot     the same program under another name
 *
 * With the variable TTY the command is at a terminal as a user has it: what it prints and reads
 * there is treated as usual. The variable CONSOLES names virtual consoles on which login shells
 * run, too. The variables ROWS and COLUMNS say how large the terminal is. Under Linux, whose
 * command line gives the variables LOG and TERMINAL, the command's status is written to LOG as
 * "guest: status N" before the machine is switched off, and the command runs on TERMINAL. If there
 * is no command there and /sbin/init is another program, such as Debian's sysvinit, that becomes
 * the first process as soon as the usual file systems are there.
 *
 * Before anything else runs, the program sets the extended attributes that /run/attributes lists:
 * the archive that an image is has no room for them.
 *
 * A command's output is to arrive unchanged, and its input is not to be shown. So before it begins
 * the terminal is set accordingly, and a control sequence that shows nothing is written there: it
 * tells the program at the other end that it may begin to send the input. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

/* Debian's number of the group utmp. */
enum { UTMP = 43 };

static void end_system(int how)
{
    sync();
    if (reboot(how) == 0)
        for (;;)
            pause();
    perror("init: the system cannot be ended");
    exit(1);
}

/* A system that has them mounted answers EBUSY; one whose initial root has them built in has no
 * need for mount at all. */
static void make_file_systems(void)
{
    if (access("/proc/self", F_OK) != 0)
        mount("proc", "/proc", "proc", 0, 0);
    if (access("/dev/null", F_OK) != 0)
        mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
    if (access("/dev/pts/ptmx", F_OK) != 0) {
        mkdir("/dev/pts", 0755);
        mount("devpts", "/dev/pts", "devpts", 0, "gid=5,mode=620,ptmxmode=666");
    }
    if (access("/dev/shm", F_OK) != 0) {
        mkdir("/dev/shm", 01777);
        mount("tmpfs", "/dev/shm", "tmpfs", 0, 0);
    }
    if (access("/dev/fd", F_OK) != 0) {
        symlink("/proc/self/fd", "/dev/fd");
        symlink("/proc/self/fd/0", "/dev/stdin");
        symlink("/proc/self/fd/1", "/dev/stdout");
        symlink("/proc/self/fd/2", "/dev/stderr");
    }
    if (getenv("LOG"))
        mount("sysfs", "/sys", "sysfs", 0, 0);
}

/* The next word at *at, which NUL ends; *at is then after it. None before the end: 0. */
static char *next_word(char **at, char *end)
{
    char *word = *at, *last = memchr(word, 0, (size_t)(end - word));
    *at = last ? last + 1 : end;
    return last ? word : 0;
}

/* Hexadecimal digits become the bytes that they stand for, in the same place. Their number; -1 if
 * there is anything else. */
static ssize_t from_hexadecimal(char *digits)
{
    size_t length = strlen(digits);
    if (length % 2 != 0 || strspn(digits, "0123456789abcdef") != length)
        return -1;
    for (size_t byte = 0; byte < length / 2; byte++) {
        char pair[3] = {digits[2 * byte], digits[2 * byte + 1], 0};
        digits[byte] = (char)strtol(pair, 0, 16);
    }
    return (ssize_t)(length / 2);
}

/* Where a file system has no capabilities of files, a program that has some becomes set-user-id, as
 * Debian's own scripts make it then. False: it is another error or another attribute. */
static int replace_capability(const char *path, const char *name, int error)
{
    struct stat about;
    if (error != EOPNOTSUPP || strcmp(name, "security.capability") != 0)
        return 0;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode) &&
           chmod(path, (about.st_mode & 07777) | S_ISUID) == 0;
}

/* Sets the extended attributes of the list: path, name and value in hexadecimal digits, each
 * followed by NUL. The list is removed, so that nothing sets them again. */
static void set_attributes(void)
{
    static const char path[] = "/run/attributes";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    struct stat about;
    char *list = fstat(file, &about) == 0 ? malloc((size_t)about.st_size) : 0;
    ssize_t size = list ? read(file, list, (size_t)about.st_size) : -1;
    close(file);
    if (size < 0) {
        perror("init: /run/attributes");
        return;
    }
    char *at = list, *end = list + size, *of, *name, *value;
    while ((of = next_word(&at, end)) && (name = next_word(&at, end)) && (value = next_word(&at, end))) {
        ssize_t length = from_hexadecimal(value);
        if (length < 0)
            fprintf(stderr, "init: %s: damaged at %s\n", path, of);
        else if (lsetxattr(of, name, value, (size_t)length, 0) < 0 && !replace_capability(of, name, errno))
            fprintf(stderr, "init: %s of %s: %s\n", name, of, strerror(errno));
    }
    free(list);
    unlink(path);
}

/* The record of sessions, which login and script write only if it is there. */
static void make_record(void)
{
    int utmp = open("/run/utmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0664);
    if (utmp < 0)
        return;
    if (fchown(utmp, 0, UTMP) < 0 || fchmod(utmp, 0664) < 0)
        perror("init: /run/utmp");
    close(utmp);
}

/* The system is called what /etc/hostname says. */
static void set_name(void)
{
    char name[65];
    int file = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, name, sizeof name - 1);
    if (file >= 0)
        close(file);
    while (size > 0 && (unsigned char)name[size - 1] <= ' ')
        size--;
    if (size > 0)
        sethostname(name, (size_t)size);
}

/* The words of /run/command. None: 0. */
static char **command(void)
{
    static char words[65536];
    static char *list[1024];
    int file = open("/run/command", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, words, sizeof words - 1);
    if (file >= 0)
        close(file);
    int count = 0;
    for (char *word = words; word < words + size && count < 1023; word += strlen(word) + 1)
        list[count++] = word;
    return count > 0 ? list : 0;
}

/* Its size; for a command, unless a user is at the terminal, that what it prints and reads passes
 * as it is. */
static void set_terminal(int terminal, int for_command)
{
    struct winsize size = {0};
    if (getenv("ROWS") && getenv("COLUMNS")) {
        size.ws_row = (unsigned short)atoi(getenv("ROWS"));
        size.ws_col = (unsigned short)atoi(getenv("COLUMNS"));
        ioctl(terminal, TIOCSWINSZ, &size);
    }
    struct termios settings;
    if (for_command && !getenv("TTY") && tcgetattr(terminal, &settings) == 0) {
        settings.c_oflag &= ~OPOST;
        settings.c_lflag &= ~(tcflag_t)ECHO;
        cfsetspeed(&settings, B115200);
        tcsetattr(terminal, TCSANOW, &settings);
    }
    static const char ready[] = "\033_guest ready\033\\";
    if (for_command && write(terminal, ready, sizeof ready - 1) < 0)
        perror("init: the terminal");
    unsetenv("TTY");
    unsetenv("ROWS");
    unsetenv("COLUMNS");
}

/* A session of its own on the terminal, for a command or for a shell. */
static void take_terminal(int for_command)
{
    const char *name = getenv("TERMINAL");
    if (!name && !isatty(0))
        name = "/dev/console";
    setsid();
    if (name) {
        int terminal = open(name, O_RDWR);
        if (terminal >= 0) {
            for (int descriptor = 0; descriptor < 3; descriptor++)
                dup2(terminal, descriptor);
            if (terminal > 2)
                close(terminal);
        }
    }
    ioctl(0, TIOCSCTTY, 0);
    set_terminal(0, for_command);
}

/* Becomes the program, or fails as shells do. */
static void execute(const char *program, char **arguments)
{
    execvp(program, arguments);
    int error = errno;
    fprintf(stderr, "%s: %s\n", program, strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

/* The file for the line that tells the host the command's status, or -1. It is open from the start:
 * the command may remove all files. */
static int open_log(void)
{
    const char *log = getenv("LOG");
    return log ? open(log, O_WRONLY | O_NOCTTY | O_CLOEXEC) : -1;
}

static void report(int log, int status)
{
    if (log >= 0) {
        dprintf(log, "\nguest: status %d\n", status);
        tcdrain(log);
    }
}

static int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* When the leader of a session ends, Linux hangs its terminal up, and output that was not sent yet
 * is lost. So under Linux the leader waits for the command, and then for the output. */
static void lead_session(void)
{
    pid_t command = fork();
    if (command == 0)
        return;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    int status = 126 << 8;
    while (command > 0 && waitpid(command, &status, 0) < 0 && errno == EINTR)
        ;
    tcdrain(0);
    _exit(exit_status(status));
}

/* Becomes the command, or a login shell, on the terminal. */
static void become(char **words)
{
    static char *shell[] = {"-bash", 0}, *small_shell[] = {"-sh", 0};
    const char *program = words ? words[0] : access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    char **arguments = words ? words : strcmp(program, "/bin/sh") == 0 ? small_shell : shell;
    take_terminal(words != 0);
    if (words && getenv("LOG"))
        lead_session();
    unsetenv("LOG");
    unsetenv("TERMINAL");
    unsetenv("CONSOLES");
    setenv("HOME", "/root", 1);
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("TERM", getenv("TERM") ? getenv("TERM") : "vt100", 1);
    chdir("/root");
    execute(program, arguments);
}

/* A process that runs a login shell on a virtual console, and another when it has ended. */
static void serve_console(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/%s", name);
    if (access(path, F_OK) != 0 || fork() != 0)
        return;
    for (;;) {
        pid_t shell = fork();
        if (shell == 0) {
            setenv("TERMINAL", path, 1);
            setenv("TERM", "linux", 1);
            unsetenv("ROWS");
            become(0);
        }
        while (waitpid(shell, 0, 0) < 0 && errno == EINTR)
            ;
        sleep(1);
    }
}

/* Shells on the consoles that the variable CONSOLES names, separated by commas. */
static void serve_consoles(void)
{
    char *names = getenv("CONSOLES");
    for (char *name = names ? strtok(names, ",") : 0; name; name = strtok(0, ","))
        serve_console(name);
}

/* Becomes the init that a package has installed, if there is one. It ends the machine by itself,
 * and tells no status: that its start was reached is all there is to report. */
static void become_installed_init(void)
{
    struct stat installed, own;
    if (stat("/sbin/init", &installed) != 0 || stat("/proc/self/exe", &own) != 0)
        return;
    if (installed.st_ino == own.st_ino && installed.st_dev == own.st_dev)
        return;
    report(open_log(), 0);
    unsetenv("LOG");
    unsetenv("TERMINAL");
    static char *arguments[] = {"/sbin/init", 0};
    execv("/sbin/init", arguments);
    perror("init: /sbin/init");
}

static int run(char **words)
{
    pid_t child = fork();
    if (child < 0) {
        perror("init: fork");
        return 126;
    }
    if (child == 0)
        become(words);
    for (;;) {
        int status;
        pid_t ended = wait(&status);
        if (ended == child) {
            if (!words && WIFSTOPPED(status))
                continue;
            return exit_status(status);
        }
        if (ended < 0 && errno != EINTR)
            return 126;
    }
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    if (strcmp(name, "poweroff") == 0 || strcmp(name, "halt") == 0)
        end_system(RB_POWER_OFF);
    if (strcmp(name, "reboot") == 0)
        end_system(RB_AUTOBOOT);
    if (getpid() != 1 && argc > 2 && strcmp(argv[1], "--") == 0) {
        set_attributes();
        make_record();
        /* The command's descriptors may be pipes. */
        int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
        if (terminal >= 0)
            set_terminal(terminal, 1);
        execute(argv[2], argv + 2);
    }
    if (getpid() != 1) {
        fprintf(stderr, "%s: this is not how it is used: the kernel starts init\n", name);
        return 1;
    }
    umask(022);
    make_file_systems();
    set_attributes();
    make_record();
    set_name();
    char **words = command();
    if (!words)
        become_installed_init();
    serve_consoles();
    int log = open_log(), status = run(words);
    report(log, status);
    if (getenv("LOG")) {
        end_system(RB_POWER_OFF);
        for (;;)
            pause();
    }
    return status;
}
