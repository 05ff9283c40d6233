/* The types of 64-bit programs: numbers of 32 bits, addresses and sizes of 64. */
#ifndef MACH_TYPES_H
#define MACH_TYPES_H

typedef unsigned int natural_t;
typedef int integer_t;
typedef unsigned long vm_offset_t;
typedef unsigned long vm_size_t;
typedef int boolean_t;
typedef int vm_prot_t;
typedef unsigned int vm_inherit_t;

#define VM_PROT_NONE 0
#define VM_PROT_READ 1
#define VM_PROT_WRITE 2
#define VM_PROT_EXECUTE 4

#define VM_INHERIT_SHARE 0
#define VM_INHERIT_COPY 1
#define VM_INHERIT_NONE 2

/* A port's name in a task, and the kinds of rights. */
typedef unsigned int mach_port_t;
typedef unsigned int mach_port_right_t;

#define MACH_PORT_NULL 0
#define MACH_PORT_DEAD 0xffffffffu

#define MACH_PORT_RIGHT_SEND 0
#define MACH_PORT_RIGHT_RECEIVE 1
#define MACH_PORT_RIGHT_SEND_ONCE 2
#define MACH_PORT_RIGHT_PORT_SET 3
#define MACH_PORT_RIGHT_DEAD_NAME 4

#define SWITCH_OPTION_NONE 0
#define SWITCH_OPTION_DEPRESS 1
#define SWITCH_OPTION_WAIT 2

#endif
