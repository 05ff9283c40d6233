#include <stdint.h>
#include <mach/boolean.h>
typedef unsigned char byte_t;
