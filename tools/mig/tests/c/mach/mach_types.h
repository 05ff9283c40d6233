#include <mach/boolean.h>
#include <mach/kern_return.h>
#include <mach/port.h>
