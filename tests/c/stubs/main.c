/* Measures the cost of a call between two spaces by the C stubs that mig writes of
 * bench/kernel/src/adder.defs: a call with four words there and two back, and a call with 512 bytes
 * each way. As in the benchmarks in Rust, each call is measured with several numbers of rounds. */
/* The compiler must use no extended registers: the kernel would save and restore them at every
 * switch, which is not a cost of the stubs. */
#pragma GCC target("general-regs-only")
#include "adder.h"
#include <l4/extension.h>
#include <l4/kdebug.h>
#include <l4/kip.h>
#include <l4/misc.h>
#include <l4/schedule.h>
#include <l4/space.h>
#include <tap.h>

#define BLOCK 512
#define UTCB_AREA 0x7fff80010000

extern char __program_start[], __program_end[];

static int32_t do_add(void *self, L4_ThreadId_t caller, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                      uint64_t *sum, uint64_t *count)
{
    (void)self, (void)caller;
    *sum = a + b + c + d;
    *count = 4;
    return 0;
}

static int32_t do_send_back(void *self, L4_ThreadId_t caller, const void *block, void *copy)
{
    (void)self, (void)caller;
    __builtin_memcpy(copy, block, BLOCK);
    return 0;
}

static const struct adder_functions functions = {do_add, do_send_back};

/* The server's thread for calls whose arguments and results are words. */
static void serve_words(void)
{
    struct mig_l4_message message = {{0}};
    for (;;) {
        L4_ThreadId_t caller = mig_l4_wait(&message);
        while (!L4_IpcFailed(mig_l4_tag(&message)) && adder_serve(&functions, 0, caller, &message, 0, 0, 0))
            caller = mig_l4_reply_wait(&message, caller);
    }
}

/* The server's thread for calls whose arguments and results are string items. */
static void serve_blocks(void)
{
    static char block[BLOCK], room[BLOCK];
    const void *strings[1] = {block};
    struct mig_l4_message message = {{0}};
    L4_LoadBR(1, BLOCK << 10);
    L4_LoadBR(2, (L4_Word_t)block);
    L4_LoadBR(0, 1);
    for (;;) {
        L4_ThreadId_t caller = mig_l4_wait(&message);
        while (!L4_IpcFailed(mig_l4_tag(&message)) && adder_serve(&functions, 0, caller, &message, strings, room, BLOCK))
            caller = mig_l4_reply_wait(&message, caller);
    }
}

/* Starts a thread in a new space, into which this program's memory is mapped. */
static L4_ThreadId_t start(int number, void (*body)(void))
{
    static char stacks[2][4096] __attribute__((aligned(16)));
    static int used;
    L4_ThreadId_t me = L4_Myself(), thread = L4_GlobalId(L4_ThreadNo(me) + 20 + number, 1);
    L4_Word_t old, done, first = (L4_Word_t)__program_start & ~0xfffUL;
    L4_Fpage_t target = L4_FpageAddRights(L4_FpageLog2(first, 12), L4_FullyAccessible);
    L4_MapControlItem_t item = L4_MapControlItem(
        L4_MapControlMap, target, ((L4_Word_t)__program_end - first + 4095) / 4096, first);
    CHECK(L4_ThreadControl(thread, thread, me, L4_nilthread, (void *)~0UL));
    CHECK(L4_SpaceControl(thread, 0, L4_FpageLog2((L4_Word_t)L4_GetKernelInterface(), 12),
                          L4_FpageLog2(UTCB_AREA, 12), L4_anythread, &old));
    CHECK(L4_SetOwner(thread, me));
    CHECK(L4_MapControl(thread, &item, 1, &done) && done == 1);
    CHECK(L4_ThreadControl(thread, thread, me, me, (void *)UTCB_AREA));
    /* C functions expect the stack pointer as a call leaves it: at the return address, 8 bytes
     * below a multiple of 16. */
    L4_LoadMR(0, 2);
    L4_LoadMR(1, (L4_Word_t)body);
    L4_LoadMR(2, (L4_Word_t)(stacks[used++] + sizeof stacks[0]) - 8);
    CHECK(L4_IpcSucceeded(L4_Send(thread)));
    /* A timeslice of an hour, so that none ends during a measurement. */
    CHECK(L4_Set_Timeslice(thread, L4_TimePeriod(3600000000UL), L4_Never));
    return thread;
}

static void print(const char *string)
{
    for (; *string; string++)
        L4_KDB_PrintChar(*string);
}

static void print_number(L4_Word_t number)
{
    if (number >= 10)
        print_number(number / 10);
    L4_KDB_PrintChar((char)('0' + number % 10));
}

static void report(const char *test, L4_Word_t rounds, L4_Word_t value)
{
    print("{\"test\":\"");
    print(test);
    print("\",\"parameter\":");
    print_number(rounds);
    print(",\"counter\":\"instructions\",\"value\":");
    print_number(value);
    print("}\r\n");
}

/* The stubs are inline functions. These functions have them out of line, so that their size can be
 * read from the program. */
__attribute__((noinline)) int32_t call_by_stub_in_c(L4_ThreadId_t server, L4_Word_t a, L4_Word_t b, L4_Word_t c,
                                                    L4_Word_t d, L4_Word_t *sum, L4_Word_t *count)
{
    return add(server, a, b, c, d, sum, count);
}

__attribute__((noinline)) int32_t call_with_block_in_c(L4_ThreadId_t server, const void *block, void *copy)
{
    return send_back(server, block, copy);
}

static void words(void)
{
    L4_ThreadId_t server = start(0, serve_words);
    L4_Word_t sum, count;
    CHECK(call_by_stub_in_c(server, 1, 2, 3, 4, &sum, &count) == 0 && sum == 10 && count == 4);
    for (L4_Word_t rounds = 32; rounds <= 128; rounds *= 2) {
        L4_Word_t begin = __builtin_ia32_rdtsc();
        for (L4_Word_t i = 0; i < rounds; i++)
            CHECK(add(server, 1, 2, 3, 4, &sum, &count) == 0 && sum == 10 && count == 4);
        report("call-by-generated-stub-in-c", rounds, __builtin_ia32_rdtsc() - begin);
    }
    for (L4_Word_t rounds = 32; rounds <= 128; rounds *= 2) {
        L4_Word_t begin = __builtin_ia32_rdtsc();
        for (L4_Word_t i = 0; i < rounds; i++)
            CHECK(call_by_stub_in_c(server, 1, 2, 3, 4, &sum, &count) == 0 && sum == 10 && count == 4);
        report("call-by-generated-stub-in-c-out-of-line", rounds, __builtin_ia32_rdtsc() - begin);
    }
}

static void blocks(void)
{
    static char block[BLOCK] = "a block", copy[BLOCK];
    L4_ThreadId_t server = start(1, serve_blocks);
    CHECK(call_with_block_in_c(server, block, copy) == 0 && !__builtin_memcmp(block, copy, BLOCK));
    for (L4_Word_t rounds = 32; rounds <= 128; rounds *= 2) {
        L4_Word_t begin = __builtin_ia32_rdtsc();
        for (L4_Word_t i = 0; i < rounds; i++)
            CHECK(call_with_block_in_c(server, block, copy) == 0);
        report("call-with-512-bytes-each-way-in-c", rounds, __builtin_ia32_rdtsc() - begin);
    }
}

static const tap_test_t tests[] = {
    {"BSTB0001", "calls of four words are answered with two", words},
    {"BSTB0002", "calls with 512 bytes are answered with them", blocks},
};

int main(void)
{
    L4_Set_Timeslice(L4_Myself(), L4_TimePeriod(3600000000UL), L4_Never);
    TAP_RUN(tests);
}
