/* A hostile Linux program: attack ATTACK [KIP UTCB SERVER]. It knows where the kernel interface
 * page and its UTCB are, and its server's thread id, or finds them as the Unix server's programs
 * can; where there is no such thing it faults. It exits with 0 if the attack got nothing; an attack
 * that ends in an exception or a fault is killed by its server. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef uint64_t word;

enum { IPC = 0x1c0, THREAD_CONTROL = 0x1a8, SPACE_CONTROL = 0x1a0, EXCHANGE_REGISTERS = 0x1d8, SCHEDULE = 0x1f0,
       UNMAP = 0x1d0, SPACE_OPTIONS = 0x1f8, MAP_CONTROL = 0x200, THREAD_STATE = 0x208, NOTIFY = 0x210 };

static word *kip, *mr, server, own;
/* The server's threads that take messages: one on each processor, with consecutive numbers. That
 * a thread takes a message shows nothing. */
static word workers = 1;

static int is_server(word id)
{
    return id >= server && id < server + (workers << 32) && (uint32_t)id == (uint32_t)server;
}

/* Every call has its arguments in these registers, whichever it is. */
static word call(int entry, word rdi, word rsi, word rdx, word r8_, word r9_, word rax)
{
    register word r8 __asm__("r8") = r8_, r9 __asm__("r9") = r9_;
    __asm__ volatile("push %%rbp; push %%rbx; sub $128, %%rsp; call *%%rcx; add $128, %%rsp; pop %%rbx; pop %%rbp"
                     : "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r8), "+r"(r9), "+a"(rax)
                     : "c"(kip[entry / 8])
                     : "r10", "r11", "r12", "r13", "r14", "r15", "memory");
    return entry == IPC ? r9 : rax;
}

/* Sends an empty message without waiting; returns whether a thread received it. */
static int reaches(word to)
{
    word tag = call(IPC, (word)mr, to, 0, 0x0400 << 16, 0, 0);
    return !(tag & 0x8000);
}

static int receives(word from)
{
    word tag = call(IPC, (word)mr, 0, from, 0x0400, 0, 0);
    return !(tag & 0x8000);
}

static void fail(const char *what, word value)
{
    printf("%s succeeded (%#llx)\n", what, (unsigned long long)value);
    exit(1);
}

static void every_thread(void)
{
    for (word number = 0; number < 2000; number++)
        for (word version = 1; version <= 3; version++)
            if (!is_server(number << 32 | version)) {
                if (reaches(number << 32 | version))
                    fail("sending", number);
                if (receives(number << 32 | version))
                    fail("receiving", number);
                if (call(NOTIFY, number << 32 | version, 1, 0, 0, 0, 0) && number != own >> 32)
                    fail("notifying", number);
            }
}

static void forged_ids(void)
{
    /* Writes another thread's identity, a pager and a handler of its choice into the words that
     * it can write. */
    for (int index = -48; index < 0; index++)
        if (index != -15)
            mr[index] = 0x3a00000001;
    mr[-15] = 0x3a00000001;
    every_thread();
    /* Propagation in the name of the root task. */
    mr[-6] = 0x3a00000001;
    for (word number = 0x30; number < 0x60; number++)
        if (!is_server(number << 32 | 1) && !(call(IPC, (word)mr, number << 32 | 1, 0, 0x0400 << 16, 0x1000, 0) & 0x8000))
            fail("a propagated send", number);
}

static void control_calls(void)
{
    for (word number = 0; number < 300; number++) {
        word id = number << 32 | 1;
        if (call(THREAD_CONTROL, id, 0, 0, 0, ~0ull, 0))
            fail("ThreadControl", number);
        if (call(SPACE_CONTROL, id, 0, 0, 0, ~0ull, 0))
            fail("SpaceControl", number);
        if (id != own && call(EXCHANGE_REGISTERS, ~0ull, 0x3ff, 0, 0, 0, id))
            fail("ExchangeRegisters", number);
        if (id != own && id != server && call(SCHEDULE, id, ~0ull, ~0ull, ~0ull, ~0ull, 0) > 1)
            fail("Schedule", number);
        for (word option = 0; option < 10; option++)
            if (call(SPACE_OPTIONS, id, option, id, 1, 0, 0))
                fail("SpaceOptions", number);
        if (call(MAP_CONTROL, id, (word)mr & ~0xfffull, 1, 0, 0, 0))
            fail("MapControl", number);
        if (call(THREAD_STATE, id, 0x7f, (word)mr & ~0xfffull, 832, 0, 0))
            fail("ThreadState", number);
    }
    /* Unmaps everything: this concerns only what the program has mapped to others, which is
     * nothing. */
    call(UNMAP, (word)mr, 0, 0, 0, 0x17, 0);
}

static void memory_of_sigma0(void)
{
    word sigma0 = kip[0x188 / 8] >> 20 << 32 | 1;
    mr[1] = 0x100000 | 12 << 4;
    mr[2] = 0;
    mr[-16] = 0x10;
    if (reaches(sigma0) || receives(sigma0))
        fail("asking sigma0", sigma0);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc < 5)
        return 2;
    int attack = atoi(argv[1]);
    if (argc == 2) {
        kip = (word *)0x7fff80000000;
        __asm__ volatile("movq %%gs:0, %0" : "=r"(mr));
        /* The process runs on the first processor. The server's first worker is the one of that
         * processor. */
        workers = sysconf(_SC_NPROCESSORS_ONLN);
        cpu_set_t first;
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        sched_setaffinity(0, sizeof first, &first);
        server = mr[-11];
    } else {
        kip = (word *)strtoull(argv[2], 0, 0);
        mr = (word *)strtoull(argv[3], 0, 0);
        server = strtoull(argv[4], 0, 0);
    }
    own = mr[-15];
    printf("attack %d\n", attack);
    fflush(stdout);
    switch (attack) {
    case 1: every_thread(); break;
    case 2: control_calls(); break;
    case 3: memory_of_sigma0(); break;
    case 4: forged_ids(); break;
    /* From here on the server is told of an exception or a fault. */
    case 10: __asm__ volatile(".byte 0xf0, 0x90"); break;
    case 11: __asm__ volatile("int3; cmpb $0, %al"); break;
    case 12: __asm__ volatile("cli"); break;
    case 13: __asm__ volatile("outb %%al, $0x64" : : "a"(0xfe)); break;
    case 14: __asm__ volatile("wrmsr" : : "c"(0xc0000082), "a"(0), "d"(0)); break;
    case 15: *(volatile word *)0xffff800000000000; break;
    case 16: *(volatile word *)0xffffffff80800000 = 1; break;
    case 17: ((void (*)(void))0xffffffff80800000)(); break;
    case 18: ((void (*)(void))0x123456789abcdef0)(); break;
    case 19: kip[0] = 0; break;
    case 20: __asm__ volatile("mov $0, %eax; mov %rax, %cr3"); break;
    case 21: __asm__ volatile("jmp *%0" : : "r"(kip[IPC / 8] + 1)); break;
    default: return 3;
    }
    return 0;
}
