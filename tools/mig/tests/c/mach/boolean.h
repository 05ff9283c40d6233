#ifndef _MACH_BOOLEAN_H_
#define _MACH_BOOLEAN_H_
typedef int boolean_t;
#define TRUE 1
#define FALSE 0
#endif
