/* The operations that LMbench's programs measure (lat_select, lat_sig, lat_ctx, bw_pipe and so
 * on) and calls.c does not, in instructions. Lines about UDP and TCP are in network.c. Those
 * about remote calls and disks are missing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "measure.h"
#include "stream.h"

enum { CHUNK = 64 << 10, FILE_SIZE = 2 << 20, PAGE = 4096 };

static char buffer[CHUNK], other[CHUNK];
static const char *const FILE_NAME = "/tmp/lmbench";

/* The file that most measurements use. */
static int file(void)
{
    int descriptor = (int)must(open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600), "open");
    for (int written = 0; written < FILE_SIZE; written += CHUNK)
        must(write(descriptor, buffer, CHUNK), "write");
    return descriptor;
}

static void files(int descriptor)
{
    struct stat status;
    CALL("fstat", 300, fstat(descriptor, &status));
    CALL("open and close a file", 300, close(open(FILE_NAME, O_RDONLY)));
    CALL("fcntl: lock and unlock", 300,
         (fcntl(descriptor, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_len = 1}),
          fcntl(descriptor, F_SETLK, &(struct flock){.l_type = F_UNLCK, .l_len = 1})));
}

/* Measures select and poll on `count` descriptors of one file or socket, which are ready. */
static void many(int descriptor, int count, const char *what)
{
    char name[40];
    struct pollfd polled[512];
    fd_set set;
    FD_ZERO(&set);
    int last = descriptor;
    for (int i = 0; i < count; i++) {
        last = (int)must(dup(descriptor), "dup");
        FD_SET(last, &set);
        polled[i] = (struct pollfd){.fd = last, .events = POLLIN};
    }
    snprintf(name, sizeof name, "select on %d %s", count, what);
    CALL(name, 50, ({ fd_set asked = set; struct timeval none = {0, 0}; select(last + 1, &asked, 0, 0, &none); }));
    snprintf(name, sizeof name, "poll on %d %s", count, what);
    CALL(name, 50, poll(polled, (nfds_t)count, 0));
    for (int i = 0; i < count; i++)
        close(polled[i].fd);
}

/* Measures the same on sockets, which have something to read. */
static void sockets(void)
{
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    must(write(pair[1], buffer, 1), "write");
    many(pair[0], 10, "sockets");
    many(pair[0], 100, "sockets");
    close(pair[0]), close(pair[1]);
}

/* Skips the store that faults, an instruction of three bytes. */
static void skip(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3;
}

static void protection(void)
{
    char *page = mmap(0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    MEASURE("protection fault and its signal", 200, __asm__ volatile(".byte 0xc6, 0x07, 0x01" ::"D"(page) : "memory"));
    signal(SIGSEGV, SIG_DFL);
}

/* Starts a process that sends back each byte. */
static pid_t echo(int in, int out, int theirs)
{
    pid_t child = fork();
    if (child == 0) {
        char byte;
        if (theirs >= 0)
            close(theirs);
        while (read(in, &byte, 1) == 1)
            if (write(out, &byte, 1) != 1)
                break;
        _exit(0);
    }
    return (pid_t)must(child, "fork");
}

static void round_trip(const char *name, int out, int in)
{
    char byte = 0;
    MEASURE(name, 200, (write(out, &byte, 1), read(in, &byte, 1)));
}

static void messages(void)
{
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    pid_t child = echo(pair[1], pair[1], pair[0]);
    close(pair[1]);
    round_trip("AF_UNIX stream round trip", pair[0], pair[0]);
    close(pair[0]);
    waitpid(child, 0, 0);
    must(mkfifo("/tmp/there", 0600), "mkfifo");
    must(mkfifo("/tmp/back", 0600), "mkfifo");
    int there = open("/tmp/there", O_RDWR), back = open("/tmp/back", O_RDWR);
    child = echo(there, back, -1);
    round_trip("FIFO round trip", there, back);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    close(there), close(back);
    unlink("/tmp/there"), unlink("/tmp/back");
}

/* Measures a connection, between a process that connects and one that accepts. */
static void connections(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/socket"};
    int listener = (int)must(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    must(bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    must(listen(listener, 8), "listen");
    CALL("AF_UNIX connection", 100, ({
             int client = socket(AF_UNIX, SOCK_STREAM, 0);
             int result = connect(client, (struct sockaddr *)&address, sizeof address);
             close(accept(listener, 0, 0));
             close(client);
             result;
         }));
    close(listener);
    unlink(address.sun_path);
}

static void shell(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "/tests/bin/calls x", (char *)0);
        _exit(9);
    }
    int status;
    must(waitpid(child, &status, 0), "waitpid");
    must(status == 0 ? 0 : -1, "the shell");
}

/* Sums of memory, so that the compiler does not leave it out. */
static long sum(const char *memory, int size)
{
    long total = 0;
    for (int i = 0; i < size; i += (int)sizeof total) {
        long word;
        memcpy(&word, memory + i, sizeof word);
        total += word;
        __asm__ volatile("" : "+r"(total));
    }
    return total;
}

/* A ring of processes, each with a pipe to the next, through which one byte goes round. Measures
 * a step: a write, a change of process, a read, and a number of KiB that each process reads
 * then. LMbench's lat_ctx subtracts write, read and the sum; this does not. */
static void ring(int processes, int kib)
{
    int pipes[96][2];
    pid_t others[96];
    char name[64], byte = 0;
    for (int i = 0; i < processes; i++)
        must(pipe(pipes[i]), "pipe");
    for (int i = 1; i < processes; i++)
        if ((others[i] = fork()) == 0) {
            /* Each process keeps only the ends of its own two pipes, so that all end when the
             * first ends. */
            for (int j = 0; j < processes; j++) {
                if (j != i)
                    close(pipes[j][1]);
                if (j != i - 1)
                    close(pipes[j][0]);
            }
            memset(buffer, 1, (size_t)kib << 10);
            while (read(pipes[i - 1][0], &byte, 1) == 1) {
                sum(buffer, kib << 10);
                if (write(pipes[i][1], &byte, 1) != 1)
                    break;
            }
            _exit(0);
        }
    if (kib == 0)
        snprintf(name, sizeof name, "ring of %d processes, a step", processes);
    else
        snprintf(name, sizeof name, "ring of %d processes with %d KiB, a step", processes, kib);
    int rounds = 640 / processes, last = processes - 1;
    MEASURE_EACH(name, rounds, processes,
                 (write(pipes[0][1], &byte, 1), read(pipes[last][0], &byte, 1), sum(buffer, kib << 10)));
    for (int i = 0; i < processes; i++) {
        close(pipes[i][1]);
        close(pipes[i][0]);
    }
    for (int i = 1; i < processes; i++)
        waitpid(others[i], 0, 0);
}

static void mappings(int descriptor)
{
    MEASURE("mmap 1 MiB of a file, touch each 16 KiB, munmap", 20, {
        volatile char *memory = mmap(0, 1 << 20, PROT_READ, MAP_SHARED, descriptor, 0);
        for (int at = 0; at < 1 << 20; at += 16 << 10)
            (void)memory[at];
        munmap((void *)memory, 1 << 20);
    });
    volatile char *memory = mmap(0, FILE_SIZE, PROT_READ, MAP_SHARED, descriptor, 0);
    int page = 0;
    MEASURE("page fault, file", 400, (void)memory[PAGE * page++]);
    munmap((void *)memory, FILE_SIZE);
}

/* Files that are created with a size, and deleted. */
static void creation(int kib)
{
    char name[40];
    snprintf(name, sizeof name, "create and delete a file of %d KiB", kib);
    CALL(name, 100, ({
             int made = open("/tmp/created", O_WRONLY | O_CREAT | O_TRUNC, 0600);
             long written = kib == 0 ? 0 : write(made, buffer, (size_t)kib << 10);
             close(made);
             written == -1 ? -1 : unlink("/tmp/created");
         }));
}

static void bandwidth(int descriptor)
{
    int ends[2];
    must(pipe(ends), "pipe");
    measure_stream("64 KiB through a pipe", ends, buffer, other, CHUNK);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    measure_stream("64 KiB through an AF_UNIX stream", ends, buffer, other, CHUNK);
    CALL("64 KiB of a file, read again", 40, pread(descriptor, buffer, CHUNK, 0));
    CALL("64 KiB of a file, written again", 40, pwrite(descriptor, buffer, CHUNK, 0));
    CALL("4 KiB of a file, lseek and read again", 300, (lseek(descriptor, 0, SEEK_SET), read(descriptor, buffer, PAGE)));
    CALL("4 KiB of a file, lseek and written again", 300,
         (lseek(descriptor, 0, SEEK_SET), write(descriptor, buffer, PAGE)));
    const char *memory = mmap(0, CHUNK, PROT_READ, MAP_SHARED, descriptor, 0);
    MEASURE("64 KiB of a mapped file, read again", 40, sum(memory, CHUNK));
    MEASURE("64 KiB of memory, copied", 40, (memcpy(other, buffer, CHUNK), sum(other, 8)));
    MEASURE("64 KiB of memory, read", 40, sum(buffer, CHUNK));
    MEASURE("64 KiB of memory, written", 40, (memset(buffer, 1, CHUNK), sum(buffer, 8)));
}

static void semaphores(void)
{
    int semaphore = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf both[2] = {{0, 1, 0}, {0, -1, 0}};
    CALL("semop, up and down", 300, semop(semaphore, both, 2));
    semctl(semaphore, 0, IPC_RMID);
}

int main(void)
{
    int descriptor = file();
    files(descriptor);
    for (int count = 10; count <= 500; count = count == 10 ? 100 : count + 400)
        many(descriptor, count, "files");
    sockets();
    protection();
    messages();
    connections();
    MEASURE("vfork, exec of a shell with a command, wait", 5, shell());
    for (int processes = 2; processes <= 64; processes *= 2)
        ring(processes, 0);
    ring(96, 0);
    for (int processes = 2; processes <= 16; processes = processes == 2 ? 8 : processes * 2)
        for (int kib = 16; kib <= 64; kib *= 4)
            ring(processes, kib);
    mappings(descriptor);
    for (int kib = 0; kib <= 10; kib += 10)
        creation(kib);
    bandwidth(descriptor);
    semaphores();
    unlink(FILE_NAME);
    return 0;
}
