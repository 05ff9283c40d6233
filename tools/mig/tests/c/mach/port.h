#ifndef _MACH_PORT_H_
#define _MACH_PORT_H_
#include <stdint.h>
typedef uint32_t mach_port_t;
typedef uint32_t mach_port_name_t;
#define MACH_PORT_NULL ((mach_port_t) 0)
#endif
