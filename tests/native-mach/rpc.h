/* Messages in words: what the test programs and the measurements share. */
#ifndef RPC_H
#define RPC_H

#include <mach.h>

/* The largest body of a message, in bytes. */
#define LARGEST 4096

struct message {
    mach_msg_header_t header;
    mach_msg_type_t type;
    char data[LARGEST];
};

/* The size of a message with a body of `bytes` bytes: none, or a descriptor and data. */
static inline mach_msg_size_t message_size(unsigned bytes)
{
    return sizeof(mach_msg_header_t) + (bytes ? sizeof(mach_msg_type_t) + bytes : 0);
}

static inline void describe(struct message *message, unsigned bytes)
{
    message->type =
        (mach_msg_type_t){ .msgt_name = MACH_MSG_TYPE_BYTE, .msgt_size = 8, .msgt_inline = 1, .msgt_number = bytes };
}

/* Calls the server of `port` with the message, and waits for its answer at `reply`. */
static inline mach_msg_return_t call(struct message *message, mach_port_t port, mach_port_t reply, unsigned bytes)
{
    message->header.msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_COPY_SEND, MACH_MSG_TYPE_MAKE_SEND_ONCE);
    message->header.msgh_remote_port = port;
    message->header.msgh_local_port = reply;
    return mach_msg_trap(&message->header, MACH_SEND_MSG | MACH_RCV_MSG, message_size(bytes), sizeof *message, reply,
                         MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL);
}

/* Answers the message that was received, and waits for the next at `port`. */
static inline mach_msg_return_t answer_and_wait(struct message *message, mach_port_t port, unsigned bytes)
{
    message->header.msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_MOVE_SEND_ONCE, 0);
    message->header.msgh_local_port = MACH_PORT_NULL;
    return mach_msg_trap(&message->header, MACH_SEND_MSG | MACH_RCV_MSG, message_size(bytes), sizeof *message, port,
                         MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL);
}

/* Waits for a message at `port`. */
static inline mach_msg_return_t wait_at(struct message *message, mach_port_t port)
{
    return mach_msg_trap(&message->header, MACH_RCV_MSG, 0, sizeof *message, port, MACH_MSG_TIMEOUT_NONE,
                         MACH_PORT_NULL);
}

#endif
