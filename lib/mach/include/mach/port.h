/* Names of ports, kinds of rights, and the types of the kernel's objects, which are names. */
#ifndef MACH_PORT_H
#define MACH_PORT_H

#include <mach/types.h>

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

typedef mach_port_t mach_port_name_t;
typedef mach_port_t *mach_port_array_t;
typedef mach_port_t *mach_port_name_array_t;
typedef mach_port_t mach_port_make_send_t;
typedef mach_port_t mach_port_poly_t;
typedef mach_port_t mach_port_send_t;
typedef mach_port_t mach_port_send_once_t;
typedef unsigned int mach_port_type_t;
typedef mach_port_type_t *mach_port_type_array_t;
typedef unsigned int mach_port_urefs_t;
typedef int mach_port_delta_t;
typedef unsigned int mach_port_seqno_t;
typedef unsigned int mach_port_mscount_t;
typedef unsigned int mach_port_msgcount_t;

#define MACH_PORT_TYPE(right) (1u << ((right) + 16))
#define MACH_PORT_TYPE_SEND MACH_PORT_TYPE(MACH_PORT_RIGHT_SEND)
#define MACH_PORT_TYPE_RECEIVE MACH_PORT_TYPE(MACH_PORT_RIGHT_RECEIVE)
#define MACH_PORT_TYPE_SEND_ONCE MACH_PORT_TYPE(MACH_PORT_RIGHT_SEND_ONCE)
#define MACH_PORT_TYPE_PORT_SET MACH_PORT_TYPE(MACH_PORT_RIGHT_PORT_SET)
#define MACH_PORT_TYPE_DEAD_NAME MACH_PORT_TYPE(MACH_PORT_RIGHT_DEAD_NAME)

typedef struct {
    mach_port_t mps_pset;
    mach_port_seqno_t mps_seqno;
    mach_port_mscount_t mps_mscount;
    mach_port_msgcount_t mps_qlimit;
    mach_port_msgcount_t mps_msgcount;
    unsigned int mps_sorights;
    boolean_t mps_srights;
    boolean_t mps_pdrequest;
    boolean_t mps_nsrequest;
} mach_port_status_t;

typedef unsigned int mach_port_ktype_t;

typedef mach_port_t task_t;
typedef mach_port_t thread_t;
typedef mach_port_t vm_task_t;
typedef mach_port_t ipc_space_t;
typedef mach_port_t host_t;
typedef mach_port_t host_priv_t;
typedef mach_port_t processor_t;
typedef mach_port_t processor_name_t;
typedef mach_port_t processor_set_t;
typedef mach_port_t processor_set_name_t;
typedef mach_port_t memory_object_t;
typedef mach_port_t memory_object_control_t;
typedef mach_port_t memory_object_name_t;
typedef mach_port_t *task_array_t;
typedef mach_port_t *thread_array_t;
typedef mach_port_t *processor_array_t;
typedef mach_port_t *processor_name_array_t;
typedef mach_port_t *processor_set_name_array_t;

#endif
