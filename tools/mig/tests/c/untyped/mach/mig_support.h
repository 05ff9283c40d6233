/* Of the other dialect. */
#include <string.h>
