/* The loop of a server: requests in, replies out. */
#include <mach.h>
#include <mach/mig_errors.h>
#include <mach/server.h>

/* Whether a reply is to be sent: there is a port for it, and the routine has not kept it. */
static int replies(const mig_reply_header_t *reply)
{
    int is_error = !(reply->Head.msgh_bits & MACH_MSGH_BITS_COMPLEX) && reply->RetCode == MIG_NO_REPLY;
    return reply->Head.msgh_remote_port != MACH_PORT_NULL && !is_error;
}

mach_msg_return_t mach_msg_server(mach_msg_demux_t demux, mach_msg_size_t most, mach_port_t port)
{
    vm_offset_t buffers = 0;
    vm_size_t size = (most + 4095ul) & ~4095ul;
    kern_return_t allocated = syscall_vm_allocate(mach_task_self(), &buffers, 2 * size, 1);
    if (allocated != KERN_SUCCESS)
        return allocated;
    mach_msg_header_t *request = (mach_msg_header_t *)buffers;
    mig_reply_header_t *reply = (mig_reply_header_t *)(buffers + size);
    mach_msg_return_t result;
    do {
        result = mach_msg(request, MACH_RCV_MSG, 0, most, port, MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL);
        if (result != MACH_MSG_SUCCESS)
            break;
        demux(request, &reply->Head);
        if (replies(reply)) {
            /* A caller that has gone does not stop the server. */
            mach_msg_return_t sent = mach_msg(&reply->Head, MACH_SEND_MSG | MACH_SEND_TIMEOUT, reply->Head.msgh_size, 0,
                                              MACH_PORT_NULL, 0, MACH_PORT_NULL);
            if (sent != MACH_MSG_SUCCESS && sent != MACH_SEND_INVALID_DEST && sent != MACH_SEND_TIMED_OUT)
                result = sent;
        }
    } while (result == MACH_MSG_SUCCESS);
    syscall_vm_deallocate(mach_task_self(), buffers, 2 * size);
    return result;
}
