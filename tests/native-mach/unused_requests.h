/* The requests of memory_object.defs that a pager here never gets. */
#ifndef UNUSED_REQUESTS_H
#define UNUSED_REQUESTS_H

#include <memory_object_server.h>

kern_return_t memory_object_copy(memory_object_t old, memory_object_control_t old_control, vm_offset_t offset,
                                 vm_size_t length, memory_object_t new)
{
    (void)old, (void)old_control, (void)offset, (void)length, (void)new;
    return KERN_FAILURE;
}

kern_return_t memory_object_data_unlock(memory_object_t memory, memory_object_control_t memory_control,
                                        vm_offset_t offset, vm_size_t length, vm_prot_t access)
{
    (void)memory, (void)memory_control, (void)offset, (void)length, (void)access;
    return KERN_FAILURE;
}

kern_return_t memory_object_change_completed(memory_object_t memory, boolean_t may_cache,
                                             memory_object_copy_strategy_t strategy)
{
    (void)memory, (void)may_cache, (void)strategy;
    return KERN_FAILURE;
}

#endif
