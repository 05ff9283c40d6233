// Multiboot Specification 0.6.96, section 3.3.
#ifndef MULTIBOOT_H
#define MULTIBOOT_H

#include <stdint.h>

#define MULTIBOOT_MAGIC 0x2badb002

enum { MULTIBOOT_HAS_LINE = 1 << 2, MULTIBOOT_HAS_MODULES = 1 << 3, MULTIBOOT_HAS_MAP = 1 << 6 };

struct multiboot {
    uint32_t flags, memory_low, memory_high, boot_device, line, module_count, modules;
    uint32_t symbols[4];
    uint32_t map_size, map;
};

struct multiboot_module {
    uint32_t start, end, line, reserved;
};

struct multiboot_range {
    uint32_t entry_size;
    uint64_t base, size;
    uint32_t type;
} __attribute__((packed));

#endif
