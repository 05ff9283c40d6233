#ifndef _MACH_NOTIFY_H_
#define _MACH_NOTIFY_H_
#define MACH_NOTIFY_SEND_ONCE 71
#endif
