#ifndef _MACH_MIG_SUPPORT_H_
#define _MACH_MIG_SUPPORT_H_
#include <mach/message.h>
#include <string.h>

mach_port_t mig_get_reply_port(void);
void mig_dealloc_reply_port(mach_port_t);
void mig_put_reply_port(mach_port_t);
vm_size_t mig_strncpy(char *, const char *, vm_size_t);
void mig_allocate(vm_offset_t *, vm_size_t);
void mig_deallocate(vm_offset_t, vm_size_t);
#endif
