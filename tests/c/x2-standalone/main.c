/* A root task that knows only the binary interface: no header of this project, fixed link address,
 * direct access to the first serial port (the kernel's boot option legacy-io). It stands for
 * programs built years ago. */

typedef unsigned long word;

enum {
    KIP_THREAD_INFO = 0x188,
    KIP_THREAD_CONTROL = 0x1a8,
    KIP_IPC = 0x1c0,
    KIP_UNMAP = 0x1d0,
    KIP_EXCHANGE_REGISTERS = 0x1d8,
    KIP_SYSTEM_CLOCK = 0x1e0,
    KIP_THREAD_SWITCH = 0x1e8
};

word kernel_interface(word words[3]);
word ipc(word entry, word to, word from, word timeouts);
void unmap(word entry, word control);
word thread_control(word entry, word dest, word space, word scheduler, word pager, word utcb);
word exchange_registers(word entry, word dest, word control, word sp, word ip);
word simple_call(word entry);
void standalone_main(void) __attribute__((noreturn));

static word page;

static word kip(word offset) { return *(word *)(page + offset); }

static volatile word *utcb(void)
{
    word pointer;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(pointer));
    return (volatile word *)pointer;
}

static word user_thread(word number) { return ((kip(KIP_THREAD_INFO) >> 20 & 0xfff) + number) << 32 | 1; }

/* The serial port. */

enum { COM1 = 0x3f8 };

static unsigned char in(unsigned short port)
{
    unsigned char value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static void out(unsigned short port, unsigned char value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void serial_init(void)
{
    out(COM1 + 3, 0x80);
    out(COM1 + 0, 1);
    out(COM1 + 1, 0);
    out(COM1 + 3, 3);
    out(COM1 + 1, 0);
    out(COM1 + 2, 7);
    out(COM1 + 4, 0xb);
    out(COM1 + 1, 1);
    in(COM1 + 5);
    in(COM1 + 6);
}

static void print_char(char c)
{
    if (c == '\n')
        print_char('\r');
    while (!(in(COM1 + 5) & 0x20))
        ;
    out(COM1, (unsigned char)c);
}

static void print(const char *string)
{
    while (*string)
        print_char(*string++);
}

/* The tests. */

static int number;

static void report(int good, const char *description)
{
    print(good ? "ok " : "not ok ");
    print_char((char)('1' + number++));
    print(" - ALONE000");
    print_char((char)('0' + number));
    print(" ");
    print(description);
    print("\n");
}

static int finds_the_page(void)
{
    word words[3], i;
    for (i = 0; i < 1000; i++) {
        if (kernel_interface(words) != page)
            return 0;
    }
    return kip(0) == 0x4be6344c && words[0] == 0x84050000 && words[1] == 4 && kip(8) == words[0];
}

static int clock_goes_on(void)
{
    word before = simple_call(kip(KIP_SYSTEM_CLOCK)), now = before, i;
    for (i = 0; i < 10000000 && now == before; i++) {
        now = simple_call(kip(KIP_SYSTEM_CLOCK));
        if (now < before)
            return 0;
    }
    return now > before;
}

static int ipc_errors(void)
{
    utcb()[0] = 0;
    ipc(kip(KIP_IPC), user_thread(9999), 0, 0);
    if (utcb()[0] != 0x8000 || utcb()[-9] != 4)
        return 0;
    utcb()[0] = 0;
    ipc(kip(KIP_IPC), 0, ~0UL, 0x0400);
    return utcb()[0] == 0x8000 && utcb()[-9] == 3;
}

static int sleeps(void)
{
    word before = simple_call(kip(KIP_SYSTEM_CLOCK));
    /* 5 * 2^10 microseconds */
    ipc(kip(KIP_IPC), 0, utcb()[-15], 10 << 10 | 5);
    return simple_call(kip(KIP_SYSTEM_CLOCK)) - before >= 5 << 10;
}

/* A word of conventional memory above the program that has not been used before. */
static volatile word *const scratch = (volatile word *)0x4000000;

static int pages_come_by_faults(void)
{
    word i;
    for (i = 0; i < 16; i++)
        scratch[i * 512] = i;
    for (i = 0; i < 16; i++)
        if (scratch[i * 512] != i)
            return 0;
    return 1;
}

static int pages_come_by_request(void)
{
    word fpage;
    utcb()[-16] = 0x10;
    utcb()[0] = 0xffffffffffa00002;
    utcb()[1] = 0x5000000 | 16 << 4;
    utcb()[2] = 0;
    ipc(kip(KIP_IPC), user_thread(0), user_thread(0), 0);
    fpage = utcb()[2];
    if (utcb()[0] != 2 << 6 || (utcb()[1] & 0xe) != 8 || (fpage & ~0x3ffUL) != 0x5000000)
        return 0;
    utcb()[-16] = 0;
    *(volatile word *)0x5008000 = 1;
    /* Unmap reports that the page was written. No other space has it, so nothing is unmapped. */
    utcb()[0] = fpage | 7;
    unmap(kip(KIP_UNMAP), 0);
    return (utcb()[0] & 2) && *(volatile word *)0x5008000 == 1;
}

static char stack[8192] __attribute__((aligned(16)));
static volatile word rounds;

static void partner(void)
{
    word from = ipc(kip(KIP_IPC), 0, ~0UL, 0);
    for (;;) {
        rounds++;
        utcb()[0] = 63;
        utcb()[1] += 1;
        from = ipc(kip(KIP_IPC), from, ~0UL, 0);
    }
}

static int thread_answers(void)
{
    word me = utcb()[-15], other = user_thread(5), i, from;
    /* The other thread's pager is this one, which does not wait for its faults. */
    for (i = 0; i < sizeof(stack); i += 4096)
        stack[i] = 0;
    stack[sizeof(stack) - 1] = 0;
    if (thread_control(kip(KIP_THREAD_CONTROL), other, me, me, me, (word)utcb() - 512 + 1024) != 1)
        return 0;
    from = exchange_registers(kip(KIP_EXCHANGE_REGISTERS), other, 0x11e, (word)stack + sizeof(stack) - 8, (word)partner);
    if (from != (word)utcb() + 1024)
        return 0;
    for (i = 0; i < 200; i++) {
        utcb()[0] = 63;
        utcb()[1] = i;
        utcb()[7] = 70 + i;
        utcb()[63] = 630 + i;
        if (ipc(kip(KIP_IPC), other, other, 0) != from)
            return 0;
        if (utcb()[0] != 63 || utcb()[1] != i + 1 || utcb()[7] != 70 + i || utcb()[63] != 630 + i)
            return 0;
        simple_call(kip(KIP_THREAD_SWITCH));
    }
    return rounds == 200;
}

static int thread_goes(void)
{
    word me = utcb()[-15];
    /* A thread cannot delete itself. */
    if (thread_control(kip(KIP_THREAD_CONTROL), me, 0, 0, 0, ~0UL) != 0)
        return 0;
    if (thread_control(kip(KIP_THREAD_CONTROL), user_thread(5), 0, 0, 0, ~0UL) != 1)
        return 0;
    ipc(kip(KIP_IPC), user_thread(5), 0, 0);
    return utcb()[0] == 0x8000 && utcb()[-9] == 4;
}

void standalone_main(void)
{
    word words[3];
    page = kernel_interface(words);
    serial_init();
    print("1..8\n");
    report(finds_the_page(), "lock; nop finds the kernel interface page, a thousand times"); // "ALONE0001" Rules: ABI 4, 10.2
    report(clock_goes_on(), "the clock goes on and never back"); // "ALONE0002" Rules: 2.1, 2.2a
    report(ipc_errors(), "failed IPCs leave tag and error code"); // "ALONE0003" Rules: 7.10, 7.9
    report(sleeps(), "a thread that waits for itself sleeps"); // "ALONE0004" Rules: 7.5
    report(pages_come_by_faults(), "sigma0 answers page faults"); // "ALONE0005" Rules: 12.5, ABI 2
    report(pages_come_by_request(), "sigma0 answers a request"); // "ALONE0006" Rules: 12.4, ABI 5
    report(thread_answers(), "a thread started by ExchangeRegisters answers 200 calls of 63 words"); // "ALONE0007" Rules: ABI 5, ABI 7
    report(thread_goes(), "a deleted thread is nobody"); // "ALONE0008" Rules: 5.17, ABI 12.2
    for (;;)
        ipc(kip(KIP_IPC), 0, utcb()[-15], 0);
}
