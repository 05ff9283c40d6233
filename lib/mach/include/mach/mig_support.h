/* What generated stubs need of the program. */
#ifndef MACH_MIG_SUPPORT_H
#define MACH_MIG_SUPPORT_H

#include <mach/port.h>

/* Forgets all ports for replies. A task with the memory of another calls it before any stub: the
 * ports are those of the other. */
void mig_init(void *first);

/* A port for the reply to one call; gives it back; gives up a port whose state is not known. */
mach_port_t mig_get_reply_port(void);
void mig_put_reply_port(mach_port_t port);
void mig_dealloc_reply_port(mach_port_t port);

/* Copies a string of less than `size` bytes with its zero, or the beginning of a longer one with a
 * zero. Returns the length without the zero. */
vm_size_t mig_strncpy(char *to, const char *from, vm_size_t size);

#endif
