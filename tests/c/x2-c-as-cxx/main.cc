/* The C program once more, as C++: every function of the interface can be called from there too. */
#include "../x2-c/main.c"
