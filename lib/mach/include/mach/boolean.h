/* Truth values: boolean_t. */
#include <mach/types.h>
