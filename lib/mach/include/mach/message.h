/* Typed messages of 64-bit programs. */
#ifndef MACH_MESSAGE_H
#define MACH_MESSAGE_H

#include <mach/kern_return.h>
#include <mach/port.h>

typedef int mach_msg_return_t;
typedef int mach_msg_option_t;
typedef unsigned int mach_msg_size_t;
typedef unsigned int mach_msg_timeout_t;
typedef int mach_msg_id_t;

typedef unsigned int mach_msg_type_number_t;
typedef unsigned int mach_msg_type_name_t;

/* A port's name in a message takes 8 bytes. */
typedef struct {
    unsigned int msgh_bits;
    mach_msg_size_t msgh_size;
    mach_port_t msgh_remote_port;
    unsigned int msgh_unused1;
    mach_port_t msgh_local_port;
    unsigned int msgh_unused2;
    unsigned int msgh_seqno;
    mach_msg_id_t msgh_id;
} mach_msg_header_t;

/* What follows in the body: the kind of data, its size in bits, and the number of elements. */
typedef struct {
    unsigned int msgt_name : 8;
    unsigned int msgt_size : 16;
    unsigned int msgt_unused : 5;
    unsigned int msgt_inline : 1;
    unsigned int msgt_longform : 1;
    unsigned int msgt_deallocate : 1;
    unsigned int msgt_number;
} mach_msg_type_t;

_Static_assert(sizeof(mach_msg_header_t) == 32, "the size of a header");
_Static_assert(sizeof(mach_msg_type_t) == 8, "the size of a descriptor");

#define MACH_MSGH_BITS_COMPLEX 0x80000000u
#define MACH_MSGH_BITS(remote, local) ((remote) | (local) << 8)
#define MACH_MSGH_BITS_REMOTE(bits) ((bits) & 0xff)
#define MACH_MSGH_BITS_LOCAL(bits) (((bits) >> 8) & 0xff)

#define MACH_MSG_TYPE_BOOLEAN 0
#define MACH_MSG_TYPE_INTEGER_16 1
#define MACH_MSG_TYPE_INTEGER_32 2
#define MACH_MSG_TYPE_CHAR 8
#define MACH_MSG_TYPE_BYTE 9
#define MACH_MSG_TYPE_INTEGER_64 11
#define MACH_MSG_TYPE_STRING_C 12
#define MACH_MSG_TYPE_PORT_NAME 15
#define MACH_MSG_TYPE_MOVE_RECEIVE 16
#define MACH_MSG_TYPE_MOVE_SEND 17
#define MACH_MSG_TYPE_MOVE_SEND_ONCE 18
#define MACH_MSG_TYPE_COPY_SEND 19
#define MACH_MSG_TYPE_MAKE_SEND 20
#define MACH_MSG_TYPE_MAKE_SEND_ONCE 21

#define MACH_MSG_TYPE_PORT_RECEIVE MACH_MSG_TYPE_MOVE_RECEIVE
#define MACH_MSG_TYPE_PORT_SEND MACH_MSG_TYPE_MOVE_SEND
#define MACH_MSG_TYPE_PORT_SEND_ONCE MACH_MSG_TYPE_MOVE_SEND_ONCE
#define MACH_MSG_TYPE_PORT_ANY(type) ((type) >= MACH_MSG_TYPE_MOVE_RECEIVE && (type) <= MACH_MSG_TYPE_MAKE_SEND_ONCE)

#define MACH_MSG_OPTION_NONE 0
#define MACH_SEND_MSG 0x1
#define MACH_RCV_MSG 0x2
#define MACH_SEND_TIMEOUT 0x10
#define MACH_SEND_NOTIFY 0x20
#define MACH_SEND_INTERRUPT 0x40
#define MACH_SEND_CANCEL 0x80
#define MACH_RCV_TIMEOUT 0x100
#define MACH_RCV_NOTIFY 0x200
#define MACH_RCV_INTERRUPT 0x400
#define MACH_RCV_LARGE 0x800
#define MACH_MSG_TIMEOUT_NONE 0

/* Sends a message, receives one, or does both. A call that was interrupted is made again, unless
 * the options say that the caller wants to know. */
mach_msg_return_t mach_msg(mach_msg_header_t *message, mach_msg_option_t option, mach_msg_size_t send_size,
                           mach_msg_size_t receive_size, mach_port_t receive_name, mach_msg_timeout_t timeout,
                           mach_port_t notify);

#define MACH_MSG_SUCCESS 0
#define MACH_SEND_INVALID_DATA 0x10000002
#define MACH_SEND_INVALID_DEST 0x10000003
#define MACH_SEND_TIMED_OUT 0x10000004
#define MACH_SEND_WILL_NOTIFY 0x10000005
#define MACH_SEND_NOTIFY_IN_PROGRESS 0x10000006
#define MACH_SEND_INTERRUPTED 0x10000007
#define MACH_SEND_MSG_TOO_SMALL 0x10000008
#define MACH_SEND_INVALID_REPLY 0x10000009
#define MACH_SEND_INVALID_RIGHT 0x1000000a
#define MACH_SEND_INVALID_NOTIFY 0x1000000b
#define MACH_SEND_INVALID_MEMORY 0x1000000c
#define MACH_SEND_NO_BUFFER 0x1000000d
#define MACH_SEND_INVALID_TYPE 0x1000000f
#define MACH_SEND_INVALID_HEADER 0x10000010
#define MACH_RCV_INVALID_NAME 0x10004002
#define MACH_RCV_TIMED_OUT 0x10004003
#define MACH_RCV_TOO_LARGE 0x10004004
#define MACH_RCV_INTERRUPTED 0x10004005
#define MACH_RCV_PORT_CHANGED 0x10004006
#define MACH_RCV_INVALID_NOTIFY 0x10004007
#define MACH_RCV_INVALID_DATA 0x10004008
#define MACH_RCV_PORT_DIED 0x10004009
#define MACH_RCV_IN_SET 0x1000400a
#define MACH_RCV_HEADER_ERROR 0x1000400b
#define MACH_RCV_BODY_ERROR 0x1000400c

#endif
