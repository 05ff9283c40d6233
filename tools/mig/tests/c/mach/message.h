/* Messages of the typed dialect: headers of 32 bytes; descriptors of 8 bytes, or with NARROW of 4,
   and of 12 in the long form. */
#ifndef _MACH_MESSAGE_H_
#define _MACH_MESSAGE_H_

#include <mach/boolean.h>
#include <mach/kern_return.h>
#include <mach/port.h>

typedef uint32_t mach_msg_bits_t, mach_msg_size_t, mach_msg_timeout_t, natural_t;
typedef uint32_t mach_msg_type_name_t, mach_msg_type_number_t, mach_port_seqno_t;
typedef int mach_msg_id_t, mach_msg_option_t, mach_msg_return_t;
typedef unsigned long vm_offset_t, vm_size_t;

typedef struct {
	mach_msg_bits_t msgh_bits;
	mach_msg_size_t msgh_size;
#ifdef NARROW
	mach_port_t msgh_remote_port;
#else
	union { mach_port_t msgh_remote_port; uint64_t msgh_remote_slot; };
#endif
	union { mach_port_t msgh_local_port; uint64_t msgh_protected_payload; };
	mach_port_seqno_t msgh_seqno;
	mach_msg_id_t msgh_id;
} mach_msg_header_t;

#ifdef NARROW
typedef struct {
	unsigned msgt_name : 8, msgt_size : 8, msgt_number : 12, msgt_inline : 1, msgt_longform : 1,
	    msgt_deallocate : 1, msgt_unused : 1;
} mach_msg_type_t;

typedef struct {
	mach_msg_type_t msgtl_header;
	unsigned short msgtl_name, msgtl_size;
	natural_t msgtl_number;
} mach_msg_type_long_t;
#else
typedef struct {
	unsigned msgt_name : 8, msgt_size : 16, msgt_unused : 5, msgt_inline : 1, msgt_longform : 1,
	    msgt_deallocate : 1;
	natural_t msgt_number;
} __attribute__((aligned(8))) mach_msg_type_t;
#endif

#define MACH_MSGH_BITS(remote, local) ((remote) | ((local) << 8))
#define MACH_MSGH_BITS_REMOTE(bits) ((bits) & 0xff)
#define MACH_MSGH_BITS_LOCAL(bits) (((bits) >> 8) & 0xff)
#define MACH_MSGH_BITS_COMPLEX 0x80000000U

#define MACH_MSG_TYPE_UNSTRUCTURED 0
#define MACH_MSG_TYPE_BIT 0
#define MACH_MSG_TYPE_BOOLEAN 0
#define MACH_MSG_TYPE_INTEGER_16 1
#define MACH_MSG_TYPE_INTEGER_32 2
#define MACH_MSG_TYPE_CHAR 8
#define MACH_MSG_TYPE_BYTE 9
#define MACH_MSG_TYPE_INTEGER_8 9
#define MACH_MSG_TYPE_REAL 10
#define MACH_MSG_TYPE_INTEGER_64 11
#define MACH_MSG_TYPE_STRING 12
#define MACH_MSG_TYPE_STRING_C 12
#define MACH_MSG_TYPE_PORT_NAME 15
#define MACH_MSG_TYPE_MOVE_RECEIVE 16
#define MACH_MSG_TYPE_MOVE_SEND 17
#define MACH_MSG_TYPE_MOVE_SEND_ONCE 18
#define MACH_MSG_TYPE_COPY_SEND 19
#define MACH_MSG_TYPE_MAKE_SEND 20
#define MACH_MSG_TYPE_MAKE_SEND_ONCE 21
#define MACH_MSG_TYPE_PORT_RECEIVE 16
#define MACH_MSG_TYPE_PORT_SEND 17
#define MACH_MSG_TYPE_PORT_SEND_ONCE 18
#define MACH_MSG_TYPE_PROTECTED_PAYLOAD 23
#define MACH_MSG_TYPE_POLYMORPHIC ((mach_msg_type_name_t) -1)
#define MACH_MSG_TYPE_PORT_ANY(x) ((x) >= 16 && (x) <= 21)

#define MACH_MSG_OPTION_NONE 0
#define MACH_SEND_MSG 1
#define MACH_RCV_MSG 2
#define MACH_SEND_NOTIFY 0x20
#define MACH_RCV_TIMEOUT 0x100
#define MACH_MSG_TIMEOUT_NONE 0
#define MACH_MSG_SUCCESS 0
#define MACH_SEND_INVALID_DATA 0x10000002
#define MACH_RCV_TOO_LARGE 0x10004004

mach_msg_return_t mach_msg(mach_msg_header_t *, mach_msg_option_t, mach_msg_size_t, mach_msg_size_t,
    mach_port_t, mach_msg_timeout_t, mach_port_t);

#endif
