#pragma once
#include <stdint.h>
typedef uint64_t address_t;
typedef int info_t[32];
typedef char name_t[64], path_t[256];
typedef const char *const_name_t, *const_path_t;
typedef unsigned char byte_t, *memory_t, inband_t[128];
typedef struct { int numbers[13]; } statistics_t;
#include <mach/port.h>
typedef mach_port_t *ports_t;
