// Loads kernel, sigma0 and root task, describes them and the memory in the kernel interface page,
// writes the boot info, and enters the kernel. Numbers in comments are sections of the ABI
// description.
#include <stddef.h>
#include <stdint.h>

#include "multiboot.h"

typedef uint64_t word;

enum { PAGE = 4096, MAX_MODULES = 32, TEXT = 4096 };
enum { KERNEL, SIGMA0, ROOT, FIRST_DATA };

// 64-bit ELF, as far as loading goes.
struct elf {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    word entry, headers, sections;
    uint32_t flags;
    uint16_t size, header_size, header_count;
};

struct program_header {
    uint32_t type, flags;
    word offset, virtual, physical, file_size, memory_size, align;
};

// Offsets in the kernel interface page (3), in words.
enum { KIP_SIGMA0 = 0x40 / 8, KIP_ROOT = 0x80 / 8, KIP_MEMORY_INFO = 0xa8 / 8, KIP_BOOT_INFO = 0x170 / 8,
       KIP_PAGE_INFO = 0x190 / 8 };
static const uint32_t KIP_MAGIC = 0x4be6344c;

// Types of memory descriptors (3) and subtypes of boot-loader memory (1.5).
enum { CONVENTIONAL = 1, RESERVED = 2, SHARED = 4, BOOT_LOADER = 0xe, ARCHITECTURE = 0xf };
enum { LOADER_INFO = 1, LOADER_SERVER = 2, LOADER_MODULE = 3 };

struct image {
    uint32_t low, high, entry;
    struct program_header text, data;
};

static struct multiboot_module modules[MAX_MODULES], originals[MAX_MODULES];
static unsigned module_count;
static struct image images[FIRST_DATA];
static uint8_t boot_info[PAGE] __attribute__((aligned(PAGE)));
static uint8_t multiboot_copy[PAGE + TEXT] __attribute__((aligned(PAGE)));

void enter(uint32_t entry) __attribute__((noreturn));

static void out(uint16_t port, uint8_t value) { __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port)); }

static void print(const char *text) {
    for (; *text; text++)
        out(0x3f8, *text);
}

static void print_number(uint32_t value) {
    print("0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        out(0x3f8, "0123456789abcdef"[value >> shift & 15]);
}

static void __attribute__((noreturn)) fail(const char *what, uint32_t value) {
    print("kickstart: ");
    print(what);
    print(" ");
    print_number(value);
    print("\r\n");
    out(0xf4, 17);
    for (;;)
        __asm__ volatile("cli; hlt");
}

// The compiler calls these two for copies of its own.
void *memcpy(void *to, const void *from, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = value;
    return to;
}

static size_t length(const char *text) {
    size_t size = 0;
    while (text[size])
        size++;
    return size;
}

// Where `option` begins in the command line, by substring search without quoting (1.2).
static const char *find_option(const char *line, const char *option) {
    for (; *line; line++) {
        size_t i = 0;
        while (option[i] && line[i] == option[i])
            i++;
        if (!option[i])
            return line + i;
    }
    return NULL;
}

static uint32_t size_option(const char *line, const char *option, uint32_t otherwise) {
    const char *text = find_option(line, option);
    if (!text)
        return otherwise;
    uint32_t value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * 10 + (*text++ - '0');
    switch (*text) {
    case 'G':
        return value << 30;
    case 'M':
        return value << 20;
    case 'K':
        return value << 10;
    }
    return value;
}

static int overlap(uint32_t low, uint32_t high, uint32_t other_low, uint32_t other_high) {
    return low < other_high && other_low < high;
}

// Loads every loadable segment to its physical address (1.3).
static void load_module(unsigned index) {
    const uint8_t *file = (const uint8_t *)originals[index].start;
    const struct elf *elf = (const struct elf *)file;
    struct image *image = &images[index];
    static const uint8_t ident[5] = {0x7f, 'E', 'L', 'F', 2};
    for (unsigned i = 0; i < sizeof ident; i++)
        if (elf->ident[i] != ident[i])
            fail("not a 64-bit ELF file: module", index);
    image->low = UINT32_MAX;
    image->entry = elf->entry;
    const struct program_header *headers = (const struct program_header *)(file + (uint32_t)elf->headers);
    for (unsigned i = 0; i < elf->header_count; i++) {
        const struct program_header *header = &headers[i];
        if (header->type != 1 || header->memory_size == 0)
            continue;
        if (header->physical + header->memory_size > UINT32_MAX)
            fail("segment above 4 GiB in module", index);
        uint32_t low = header->physical, high = low + (uint32_t)header->memory_size;
        for (unsigned other = 0; other < module_count; other++)
            if (overlap(low, high, originals[other].start, originals[other].end))
                fail("Conflict with module", other);
        for (unsigned other = 0; other < index; other++)
            if (overlap(low, high, images[other].low, images[other].high))
                fail("Conflict with loaded module", other);
        memcpy((void *)low, file + (uint32_t)header->offset, header->file_size);
        memset((uint8_t *)low + (uint32_t)header->file_size, 0, header->memory_size - header->file_size);
        if (low < image->low)
            image->low = low;
        if (high > image->high)
            image->high = high;
        if (header->flags & 1)
            image->text = *header;
        else
            image->data = *header;
    }
    if (image->high == 0)
        fail("nothing to load in module", index);
    modules[index].start = image->low;
    modules[index].end = image->high;
}

// 1.4: the page's magic in the loaded kernel, in steps of 4 bytes.
static word *find_kip(void) {
    for (uint32_t at = images[KERNEL].low & ~(PAGE - 1); at < images[KERNEL].high; at += 4) {
        uint32_t *words = (uint32_t *)at;
        if (words[0] == KIP_MAGIC && words[1] == 0)
            return (word *)words;
    }
    fail("no 64-bit kernel interface page in the kernel at", images[KERNEL].low);
}

// 3: the smallest page that the image's page names. The original steps through memory by it, and
// for ever where there is none.
static uint32_t smallest_page(const word *kip) {
    for (uint32_t size = 1 << 10; size; size <<= 1)
        if (kip[KIP_PAGE_INFO] & size)
            return size;
    fail("no page size in the kernel interface page of the image:", (uint32_t)kip[KIP_PAGE_INFO]);
}

static word *descriptors;
static uint32_t descriptor_count, descriptor_capacity;

static void describe(unsigned type, unsigned subtype, word low, word last) {
    if (descriptor_count == descriptor_capacity)
        fail("too many memory descriptors for the page:", descriptor_capacity);
    word *descriptor = descriptors + 2 * descriptor_count++;
    descriptor[0] = (low & ~(word)0x3ff) | subtype << 4 | type;
    descriptor[1] = last & ~(word)0x3ff;
}

static const struct multiboot_range *next_range(const struct multiboot_range *range) {
    return (const struct multiboot_range *)((const uint8_t *)range + range->entry_size + 4);
}

// 1.5: the memory descriptors, in this order.
static void describe_memory(const struct multiboot *info, word *kip, uint32_t kernel_memory) {
    const uint32_t page = smallest_page(kip);
    const struct multiboot_range *first = (const struct multiboot_range *)info->map;
    const struct multiboot_range *end = (const struct multiboot_range *)(info->map + info->map_size);
    descriptor_capacity = (uint32_t)kip[KIP_MEMORY_INFO];
    descriptors = kip + (uint32_t)(kip[KIP_MEMORY_INFO] >> 32) / 8;
    describe(SHARED, 0, 0, ~(word)0);
    for (const struct multiboot_range *range = first; range < end; range = next_range(range))
        if (range->size)
            describe(range->type == 1 ? CONVENTIONAL : ARCHITECTURE, range->type & 0xf, range->base,
                     range->base + range->size - 1);
    describe(SHARED, 0, 0xa0000, 0xbffff);
    describe(SHARED, 0, 0xc0000, 0xeffff);
    const uint32_t limit = 240 << 20, mask = (2 << 20) - 1;
    for (const struct multiboot_range *range = first; range < end; range = next_range(range)) {
        if (range->type != 1 || range->base >= limit)
            continue;
        uint32_t low = ((uint32_t)range->base + mask) & ~mask;
        word range_end = range->base + range->size;
        uint32_t high = (range_end > limit ? limit : (uint32_t)range_end) & ~mask;
        if (high <= low || high - low < kernel_memory)
            continue;
        // Takes whole pages, as far up as they fit.
        uint32_t start = low;
        while (start + page + kernel_memory <= high)
            start += page;
        describe(RESERVED, 0, start, start + kernel_memory - 1);
        break;
    }
    describe(BOOT_LOADER, LOADER_SERVER, images[SIGMA0].low, images[SIGMA0].high - 1);
    describe(BOOT_LOADER, LOADER_SERVER, images[ROOT].low, images[ROOT].high - 1);
    for (unsigned i = FIRST_DATA; i < module_count; i++)
        describe(BOOT_LOADER, LOADER_MODULE, modules[i].start, modules[i].end - 1);
    describe(BOOT_LOADER, LOADER_INFO, (uint32_t)boot_info, (uint32_t)boot_info + sizeof boot_info - 1);
    describe(BOOT_LOADER, LOADER_INFO, (uint32_t)multiboot_copy, (uint32_t)multiboot_copy + sizeof multiboot_copy - 1);
    kip[KIP_MEMORY_INFO] = (kip[KIP_MEMORY_INFO] & ~(word)UINT32_MAX) | descriptor_count;
}

// The information structure, the module list and all command lines, copied; the modules as they are
// now.
static void copy_multiboot(const struct multiboot *info) {
    struct multiboot *copy = (struct multiboot *)multiboot_copy;
    struct multiboot_module *list = (struct multiboot_module *)(copy + 1);
    char *text = (char *)(list + MAX_MODULES), *end = (char *)multiboot_copy + sizeof multiboot_copy;
    *copy = *info;
    copy->modules = (uint32_t)list;
    for (unsigned i = 0; i < module_count; i++) {
        size_t size = length((const char *)modules[i].line) + 1;
        if (size > (size_t)(end - text))
            fail("command lines of more bytes than", TEXT);
        memcpy(text, (const char *)modules[i].line, size);
        list[i] = modules[i];
        list[i].line = (uint32_t)text;
        text += size;
    }
}

static word *next_word;

static word *begin_record(word type) {
    word *record = next_word;
    record[0] = type;
    record[1] = 1;
    next_word = record + 3;
    return record;
}

// Appends the command line and links the record to the next one.
static void end_record(word *record, word *line_offset, const char *line) {
    if (line) {
        size_t size = length(line) + 1;
        *line_offset = (uint32_t)next_word - (uint32_t)record;
        memcpy(next_word, line, size);
        next_word += (size + 7) / 8;
    }
    record[2] = (uint32_t)next_word - (uint32_t)record;
    ((word *)boot_info)[4]++;
}

static void put_segment(const struct program_header *header) {
    *next_word++ = header->physical;
    *next_word++ = header->virtual;
    *next_word++ = header->file_size;
}

// 1.8: a record per module but the kernel, then the Multiboot record. The reserved header words
// hold garbage on purpose.
static void write_boot_info(int with_multiboot) {
    word *header = (word *)boot_info;
    header[0] = 0x14b0021d;
    header[1] = 1;
    header[3] = 0x40;
    header[4] = 0;
    header[5] = header[6] = header[7] = 0xdeadbeef;
    next_word = header + 8;
    for (unsigned i = SIGMA0; i < module_count; i++) {
        const char *line = (const char *)modules[i].line;
        if (i < FIRST_DATA) {
            word *record = begin_record(2);
            const struct program_header *data = &images[i].data;
            put_segment(&images[i].text);
            put_segment(data);
            *next_word++ = data->physical + data->file_size;
            *next_word++ = data->virtual + data->file_size;
            *next_word++ = data->memory_size - data->file_size;
            *next_word++ = images[i].entry;
            *next_word++ = 2;
            *next_word++ = 0;
            word *offset = next_word++;
            end_record(record, offset, line);
        } else {
            word *record = begin_record(1);
            *next_word++ = modules[i].start;
            *next_word++ = modules[i].end - modules[i].start;
            word *offset = next_word++;
            end_record(record, offset, line);
        }
    }
    if (with_multiboot) {
        word *record = begin_record(0x102);
        *next_word++ = (uint32_t)multiboot_copy;
        end_record(record, NULL, NULL);
    }
    header[2] = (uint32_t)next_word - (uint32_t)boot_info;
    if (header[2] > PAGE)
        fail("boot info of more than a page:", header[2]);
}

static void put_server(word *descriptor, const struct image *image) {
    descriptor[1] = image->entry;
    descriptor[2] = image->low;
    descriptor[3] = image->high;
}

// Spoils the checksum of the ACPI table with this name, which is the root table or one that it
// names: tests use it to see what the kernel makes of broken firmware. The root pointer itself lies
// in memory that cannot be written.
static void damage_table(const char *name) {
    const uint32_t *pointer = (const uint32_t *)0xe0000;
    while (pointer[0] != 0x20445352 || pointer[1] != 0x20525450) { // "RSD PTR "
        pointer += 4;
        if ((uint32_t)pointer >= 0x100000)
            fail("no ACPI tables to damage below", (uint32_t)pointer);
    }
    const uint32_t *root = (const uint32_t *)pointer[4];
    uint32_t wanted = *(const uint32_t *)name;
    if (*root != wanted) {
        const uint32_t *entry = root + 9, *end = root + root[1] / 4;
        while (entry < end && *(const uint32_t *)*entry != wanted)
            entry++;
        if (entry == end)
            fail("no such ACPI table to damage:", wanted);
        root = (const uint32_t *)*entry;
    }
    ((uint8_t *)root)[9]++;
}

void load(uint32_t magic, const struct multiboot *info) {
    if (magic != MULTIBOOT_MAGIC)
        fail("not started by Multiboot:", magic);
    if (!(info->flags & MULTIBOOT_HAS_MAP))
        fail("no memory map; flags", info->flags);
    if (!(info->flags & MULTIBOOT_HAS_MODULES) || info->module_count < FIRST_DATA)
        fail("modules wanted: kernel, sigma0, root; got", info->module_count);
    module_count = info->module_count < MAX_MODULES ? info->module_count : MAX_MODULES;
    memcpy(originals, (const void *)info->modules, module_count * sizeof originals[0]);
    memcpy(modules, originals, sizeof modules);
    const char *line = info->flags & MULTIBOOT_HAS_LINE ? (const char *)info->line : "";
    const char *table = find_option(line, "damage=");
    if (table)
        damage_table(table);
    for (unsigned i = KERNEL; i <= ROOT; i++)
        load_module(i);
    word *kip = find_kip();
    put_server(kip + KIP_SIGMA0, &images[SIGMA0]);
    put_server(kip + KIP_ROOT, &images[ROOT]);
    describe_memory(info, kip, size_option(line, "kmem=", 16 << 20));
    int with_multiboot = !find_option(line, "mbi=no");
    if (with_multiboot)
        copy_multiboot(info);
    if (!find_option(line, "bootinfo=no")) {
        write_boot_info(with_multiboot);
        kip[KIP_BOOT_INFO] = (uint32_t)boot_info;
    } else {
        kip[KIP_BOOT_INFO] = with_multiboot ? (uint32_t)multiboot_copy : 0;
    }
    enter(images[KERNEL].entry);
}
