#ifndef PORTS_H
#define PORTS_H
#include <mach/port.h>
#include <stdint.h>
typedef mach_port_t some_ports_t[4], three_ports_t[3], *ports_t, *any_ports_t;
#endif
