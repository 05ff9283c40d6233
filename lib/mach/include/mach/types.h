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
typedef vm_offset_t vm_address_t;
typedef vm_offset_t pointer_t;

#define VM_PROT_NONE 0
#define VM_PROT_READ 1
#define VM_PROT_WRITE 2
#define VM_PROT_EXECUTE 4

#define VM_INHERIT_SHARE 0
#define VM_INHERIT_COPY 1
#define VM_INHERIT_NONE 2

#define TRUE 1
#define FALSE 0

/* Arrays and structures that calls return. */
typedef vm_offset_t *emulation_vector_t;
typedef integer_t *task_info_t;
typedef integer_t *thread_info_t;
typedef integer_t *host_info_t;
typedef integer_t *processor_info_t;
typedef integer_t *processor_set_info_t;
typedef natural_t *thread_state_t;
typedef struct {
    integer_t pagesize, free_count, active_count, inactive_count, wire_count, zero_fill_count, reactivations, pageins,
        pageouts, faults, cow_faults, lookups, hits;
} vm_statistics_data_t;
typedef struct {
    long seconds;
    integer_t microseconds;
    integer_t unused;
} time_value_t;
typedef struct {
    long seconds;
    long nanoseconds;
} time_value64_t;
typedef int vm_machine_attribute_t;
typedef int vm_machine_attribute_val_t;
typedef int memory_object_copy_strategy_t;
typedef int memory_object_return_t;

/* How a memory object is copied, which of its pages return, and the lock that changes nothing. */
#define MEMORY_OBJECT_COPY_NONE 0
#define MEMORY_OBJECT_COPY_CALL 1
#define MEMORY_OBJECT_COPY_DELAY 2
#define MEMORY_OBJECT_COPY_TEMPORARY 3
#define MEMORY_OBJECT_RETURN_NONE 0
#define MEMORY_OBJECT_RETURN_DIRTY 1
#define MEMORY_OBJECT_RETURN_ALL 2
#define VM_PROT_NO_CHANGE 8
typedef unsigned long rpc_uintptr_t;

#define SWITCH_OPTION_NONE 0
#define SWITCH_OPTION_DEPRESS 1
#define SWITCH_OPTION_WAIT 2

#endif
