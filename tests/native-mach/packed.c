/* Packed memory: a pager that keeps pages compressed. Its client uses a mebibyte like any memory;
 * what is not in memory takes a fraction of that here. */
#include "tap.h"
#include "threads.h"

#include "unused_requests.h"

#include <mach_port_user.h>

#define PAGE 4096u
#define PAGES 256u
/* How many pages are requested together. */
#define CLUSTER 8u

boolean_t memory_object_server(mach_msg_header_t *request, mach_msg_header_t *reply);

static mach_port_t self, object, control;
static volatile int completions, terminations;
static _Alignas(16) char stack[16384];

/* Packed bytes are literals and repetitions of what came before. A byte below 128 is followed by
 * one literal more than it says; another byte, less 125, is a number of bytes that have come
 * before, at the distance in the next two bytes. */

#define LEAST 3u
#define MOST 130u

static unsigned hash(const unsigned char *at)
{
    return ((unsigned)at[0] * 2654435761u ^ (unsigned)at[1] * 40503u ^ at[2]) % 1024;
}

/* Packs a page into fewer than PAGE bytes. Returns how many, or 0 if they do not suffice. */
static unsigned pack(const unsigned char *page, unsigned char *to)
{
    static unsigned short last[1024];
    unsigned from = 0, literals = 0, size = 0;
    memset(last, 0xff, sizeof last);
    while (from < PAGE) {
        unsigned length = 0, before = 0xffff;
        if (from + LEAST <= PAGE) {
            unsigned short *place = &last[hash(page + from)];
            before = *place;
            *place = (unsigned short)from;
        }
        if (before != 0xffff)
            while (length < MOST && from + length < PAGE && page[before + length] == page[from + length])
                length++;
        if (size + 4 >= PAGE)
            return 0;
        if (length >= LEAST) {
            unsigned distance = from - before;
            to[size++] = (unsigned char)(length + 125);
            to[size++] = (unsigned char)distance;
            to[size++] = (unsigned char)(distance >> 8);
            from += length;
            literals = 0;
            continue;
        }
        if (literals == 0 || literals == 128) {
            literals = 0;
            size++;
        }
        to[size++] = page[from++];
        to[size - 2 - literals] = (unsigned char)literals;
        literals++;
    }
    return size;
}

static void unpack(const unsigned char *from, unsigned size, unsigned char *page)
{
    unsigned to = 0;
    for (unsigned at = 0; at < size;) {
        unsigned kind = from[at++];
        if (kind < 128) {
            memcpy(page + to, from + at, kind + 1);
            at += kind + 1;
            to += kind + 1;
        } else {
            unsigned distance = from[at] + from[at + 1] * 256u;
            at += 2;
            for (unsigned left = kind - 125; left > 0; left--, to++)
                page[to] = page[to - distance];
        }
    }
}

/* Packed pages are lists of chunks. */

#define CHUNK 60u
#define CHUNKS (PAGES * 80u)

struct chunk {
    unsigned next;
    unsigned char bytes[CHUNK];
};

/* Chunk 0 is no chunk. */
static struct chunk chunks[CHUNKS + 1];
static unsigned free_chunks, used_chunks;
static struct {
    unsigned first, size;
} pages[PAGES];

static void forget(unsigned page)
{
    unsigned chunk = pages[page].first;
    while (chunk) {
        unsigned next = chunks[chunk].next;
        chunks[chunk].next = free_chunks;
        free_chunks = chunk;
        chunk = next;
        used_chunks--;
    }
    pages[page].first = pages[page].size = 0;
}

static void keep(unsigned page, const unsigned char *bytes)
{
    static unsigned char packed[PAGE];
    unsigned size = pack(bytes, packed);
    const unsigned char *from = packed;
    if (size == 0) {
        size = PAGE;
        from = bytes;
    }
    forget(page);
    pages[page].size = size;
    unsigned *link = &pages[page].first;
    for (unsigned done = 0; done < size; done += CHUNK) {
        /* There are chunks for all pages, packed or not. */
        unsigned chunk = free_chunks;
        free_chunks = chunks[chunk].next;
        used_chunks++;
        memcpy(chunks[chunk].bytes, from + done, size - done < CHUNK ? size - done : CHUNK);
        chunks[chunk].next = 0;
        *link = chunk;
        link = &chunks[chunk].next;
    }
}

static void take_out(unsigned page, unsigned char *bytes)
{
    static unsigned char packed[PAGE + CHUNK];
    unsigned size = 0;
    for (unsigned chunk = pages[page].first; chunk; chunk = chunks[chunk].next, size += CHUNK)
        memcpy(packed + size, chunks[chunk].bytes, CHUNK);
    if (pages[page].size == PAGE)
        memcpy(bytes, packed, PAGE);
    else
        unpack(packed, pages[page].size, bytes);
}

/* The pager. */

kern_return_t memory_object_init(memory_object_t memory, memory_object_control_t memory_control,
                                 memory_object_name_t name, vm_size_t page_size)
{
    (void)memory, (void)name, (void)page_size;
    control = memory_control;
    memory_object_set_cluster_size(control, CLUSTER * PAGE);
    return memory_object_ready(control, FALSE, MEMORY_OBJECT_COPY_DELAY);
}

kern_return_t memory_object_data_request(memory_object_t memory, memory_object_control_t memory_control,
                                         vm_offset_t offset, vm_size_t length, vm_prot_t access)
{
    static _Alignas(4096) unsigned char buffer[CLUSTER * PAGE];
    kern_return_t result = KERN_SUCCESS;
    (void)memory, (void)access;
    for (unsigned first = (unsigned)(offset / PAGE), end = first + (unsigned)(length / PAGE); first < end;) {
        unsigned count = 0;
        int is_there = pages[first].size > 0;
        while (first + count < end && count < CLUSTER && (pages[first + count].size > 0) == is_there) {
            if (is_there)
                take_out(first + count, buffer + count * PAGE);
            count++;
        }
        if (is_there)
            result = memory_object_data_supply(memory_control, first * PAGE, (pointer_t)buffer, count * PAGE, FALSE,
                                               VM_PROT_NONE, FALSE, MACH_PORT_NULL);
        else
            result = memory_object_data_unavailable(memory_control, first * PAGE, count * PAGE);
        first += count;
    }
    return result;
}

kern_return_t memory_object_data_return(memory_object_t memory, memory_object_control_t memory_control,
                                        vm_offset_t offset, pointer_t data, mach_msg_type_number_t size,
                                        boolean_t dirty, boolean_t kernel_copy)
{
    (void)memory, (void)memory_control, (void)dirty, (void)kernel_copy;
    for (vm_size_t done = 0; done < size; done += PAGE)
        keep((unsigned)((offset + done) / PAGE), (const unsigned char *)data + done);
    return vm_deallocate(self, data, size);
}

kern_return_t memory_object_terminate(memory_object_t memory, memory_object_control_t memory_control,
                                      memory_object_name_t name)
{
    (void)memory;
    for (unsigned page = 0; page < PAGES; page++)
        forget(page);
    mach_port_destroy(self, memory_control);
    mach_port_destroy(self, name);
    terminations++;
    return KERN_SUCCESS;
}

kern_return_t memory_object_lock_completed(memory_object_t memory, memory_object_control_t memory_control,
                                           vm_offset_t offset, vm_size_t length)
{
    (void)memory, (void)memory_control, (void)offset, (void)length;
    completions++;
    return KERN_SUCCESS;
}

kern_return_t memory_object_supply_completed(memory_object_t memory, memory_object_control_t memory_control,
                                             vm_offset_t offset, vm_size_t length, kern_return_t result,
                                             vm_offset_t error_offset)
{
    (void)memory, (void)memory_control, (void)offset, (void)length, (void)result, (void)error_offset;
    return KERN_FAILURE;
}

static void serve(void)
{
    mach_msg_server(memory_object_server, 4096, object);
    for (;;)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1000000);
}

/* The client. */

static unsigned char *memory;

static int wait_for(volatile int *count, int least)
{
    for (int waits = 0; *count < least && waits < 500; waits++)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 10);
    return *count >= least;
}

/* Has all pages leave memory, as page-out does when memory is short. */
static int page_out(void)
{
    int before = completions;
    kern_return_t asked = memory_object_lock_request(control, 0, PAGES * PAGE, MEMORY_OBJECT_RETURN_DIRTY, TRUE,
                                                     VM_PROT_NO_CHANGE, object);
    return asked == KERN_SUCCESS && wait_for(&completions, before + 1);
}

/* The byte of a log: lines that resemble each other. */
static unsigned char log_byte(unsigned at)
{
    static const char line[] = "the request was served in       microseconds\n";
    unsigned column = at % (sizeof line - 1), number = at / (sizeof line - 1);
    if (column >= 26 && column < 31) {
        for (unsigned place = column; place < 30; place++)
            number /= 10;
        return (unsigned char)('0' + number % 10);
    }
    return (unsigned char)line[column];
}

static int a_log_takes_little(void)
{
    vm_offset_t address = 0;
    self = mach_task_self();
    for (unsigned chunk = 1; chunk <= CHUNKS; chunk++)
        chunks[chunk].next = chunk < CHUNKS ? chunk + 1 : 0;
    free_chunks = 1;
    SAME(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &object), KERN_SUCCESS);
    SAME(mach_port_insert_right(self, object, object, MACH_MSG_TYPE_MAKE_SEND), KERN_SUCCESS);
    HOLDS(start_thread(self, serve, stack + sizeof stack) != MACH_PORT_NULL);
    SAME(vm_map(self, &address, PAGES * PAGE, 0, TRUE, object, 0, FALSE, VM_PROT_READ | VM_PROT_WRITE,
                VM_PROT_READ | VM_PROT_WRITE, VM_INHERIT_SHARE),
         KERN_SUCCESS);
    memory = (unsigned char *)address;
    for (unsigned at = 0; at < PAGES * PAGE; at++)
        memory[at] = log_byte(at);
    HOLDS(page_out());
    print("# ", decimal(PAGES * PAGE), " bytes take ", decimal(used_chunks * CHUNK), "\n", (char *)0);
    HOLDS(used_chunks > 0 && used_chunks * CHUNK < PAGES * PAGE / 4);
    return 0;
}

static int it_comes_back(void)
{
    for (unsigned at = 0; at < PAGES * PAGE; at++)
        SAME(memory[at], log_byte(at));
    return 0;
}

static int what_cannot_be_packed_is_kept_too(void)
{
    unsigned state = 1;
    for (unsigned at = 0; at < 4 * PAGE; at++) {
        state = state * 1664525u + 1013904223u;
        memory[at] = (unsigned char)(state >> 24);
    }
    unsigned before = used_chunks;
    HOLDS(page_out());
    HOLDS(used_chunks > before);
    state = 1;
    for (unsigned at = 0; at < 4 * PAGE; at++) {
        state = state * 1664525u + 1013904223u;
        SAME(memory[at], (unsigned char)(state >> 24));
    }
    SAME(memory[4 * PAGE], log_byte(4 * PAGE));
    return 0;
}

static int the_end_frees_all(void)
{
    SAME(vm_deallocate(self, (vm_offset_t)memory, PAGES * PAGE), KERN_SUCCESS);
    HOLDS(wait_for(&terminations, 1));
    SAME(used_chunks, 0);
    return 0;
}

static const struct test tests[] = {
    { "NATM0040", "a mebibyte of a log takes less than a quarter", a_log_takes_little },
    { "NATM0041", "the client finds what it wrote", it_comes_back },
    { "NATM0042", "pages that cannot be packed are kept as they are", what_cannot_be_packed_is_kept_too },
    { "NATM0043", "the end of the memory frees what was kept", the_end_frees_all },
};

int main(void)
{
    run_tests(tests, sizeof tests / sizeof tests[0]);
    return 0;
}
