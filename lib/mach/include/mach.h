/* The interface of native Mach programs. */
#ifndef MACH_H
#define MACH_H

#include <mach/kern_return.h>
#include <mach/memory.h>
#include <mach/message.h>
#include <mach/server.h>
#include <mach/traps.h>
#include <mach/types.h>

#endif
