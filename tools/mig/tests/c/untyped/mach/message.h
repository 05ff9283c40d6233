/* Messages of the untyped dialect, for 64 bits. */
#ifndef _MACH_MESSAGE_H_
#define _MACH_MESSAGE_H_

#include <mach/boolean.h>
#include <mach/kern_return.h>
#include <mach/port.h>

typedef uint32_t mach_msg_bits_t, mach_msg_size_t, mach_msg_timeout_t, natural_t;
typedef uint32_t mach_msg_type_name_t, mach_msg_type_number_t, mach_port_seqno_t;
typedef int mach_msg_id_t, mach_msg_option_t, mach_msg_return_t;
typedef unsigned long vm_offset_t, vm_size_t, vm_address_t;

#pragma pack(push, 4)

typedef struct {
	mach_msg_bits_t msgh_bits;
	mach_msg_size_t msgh_size;
	mach_port_t msgh_remote_port, msgh_local_port;
	mach_msg_size_t msgh_reserved;
	mach_msg_id_t msgh_id;
} mach_msg_header_t;

typedef struct {
	mach_msg_size_t msgh_descriptor_count;
} mach_msg_body_t;

typedef struct {
	mach_port_t name;
	uint32_t pad1;
	uint32_t pad2 : 16, disposition : 8, type : 8;
} mach_msg_port_descriptor_t;

typedef struct {
	void *address;
	uint32_t deallocate : 8, copy : 8, pad1 : 8, type : 8;
	mach_msg_size_t size;
} mach_msg_ool_descriptor_t;

typedef struct {
	void *address;
	uint32_t deallocate : 8, copy : 8, disposition : 8, type : 8;
	mach_msg_size_t count;
} mach_msg_ool_ports_descriptor_t;

typedef struct { unsigned val[2]; } security_token_t;
typedef struct { unsigned val[8]; } audit_token_t;

typedef struct {
	unsigned msgh_trailer_type, msgh_trailer_size;
	mach_port_seqno_t msgh_seqno;
	security_token_t msgh_sender;
	audit_token_t msgh_audit;
	uint64_t msgh_context;
	uint32_t msgh_ad, msgh_labels;
} mach_msg_max_trailer_t;

#pragma pack(pop)

#define MACH_MSGH_BITS(remote, local) ((remote) | ((local) << 8))
#define MACH_MSGH_BITS_REMOTE(bits) ((bits) & 0xff)
#define MACH_MSGH_BITS_LOCAL(bits) (((bits) >> 8) & 0xff)
#define MACH_MSGH_BITS_COMPLEX 0x80000000U

#define MACH_MSG_PORT_DESCRIPTOR 0
#define MACH_MSG_OOL_DESCRIPTOR 1
#define MACH_MSG_OOL_PORTS_DESCRIPTOR 2

#define MACH_MSG_TYPE_MOVE_RECEIVE 16
#define MACH_MSG_TYPE_MOVE_SEND 17
#define MACH_MSG_TYPE_MOVE_SEND_ONCE 18
#define MACH_MSG_TYPE_COPY_SEND 19
#define MACH_MSG_TYPE_MAKE_SEND 20
#define MACH_MSG_TYPE_MAKE_SEND_ONCE 21
#define MACH_MSG_TYPE_PORT_RECEIVE 16
#define MACH_MSG_TYPE_PORT_SEND 17
#define MACH_MSG_TYPE_PORT_SEND_ONCE 18
#define MACH_MSG_TYPE_PORT_ANY(x) ((x) >= 16 && (x) <= 21)

#define MACH_MSG_OPTION_NONE 0
#define MACH_SEND_MSG 1
#define MACH_RCV_MSG 2
#define MACH_SEND_TIMEOUT 0x10
#define MACH_RCV_TIMEOUT 0x100
#define MACH_RCV_SYNC_WAIT 0x4000
#define MACH_SEND_SYNC_OVERRIDE 0x100000
#define MACH_MSG_TRAILER_FORMAT_0 0
#define MACH_RCV_TRAILER_SENDER 2
#define MACH_RCV_TRAILER_AUDIT 3
#define MACH_RCV_TRAILER_TYPE(x) (((x) & 0xf) << 28)
#define MACH_RCV_TRAILER_ELEMENTS(x) (((x) & 0xf) << 24)
#define MACH_MSG_TIMEOUT_NONE 0
#define MACH_MSG_SUCCESS 0
#define MACH_SEND_INVALID_DATA 0x10000002
#define MACH_SEND_TIMED_OUT 0x10000004
#define MACH_SEND_INVALID_RIGHT 0x10000007
#define MACH_RCV_TOO_LARGE 0x10004004

mach_msg_return_t mach_msg(mach_msg_header_t *, mach_msg_option_t, mach_msg_size_t, mach_msg_size_t,
    mach_port_t, mach_msg_timeout_t, mach_port_t);
void mach_msg_destroy(mach_msg_header_t *);

#endif
