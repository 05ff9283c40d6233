/* loopback.h includes this header for both dialects; only the typed one needs declarations. */
#include <string.h>
