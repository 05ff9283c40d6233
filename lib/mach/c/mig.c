/* Messages of stubs: calls that are made again after an interruption, and ports for replies. */
#include <mach.h>
#include <mach/mig_support.h>

mach_msg_return_t mach_msg(mach_msg_header_t *message, mach_msg_option_t option, mach_msg_size_t send_size,
                           mach_msg_size_t receive_size, mach_port_t receive_name, mach_msg_timeout_t timeout,
                           mach_port_t notify)
{
    for (;;) {
        mach_msg_return_t result =
            mach_msg_trap(message, option, send_size, receive_size, receive_name, timeout, notify);
        if (result == MACH_SEND_INTERRUPTED && !(option & MACH_SEND_INTERRUPT))
            continue;
        if (result != MACH_RCV_INTERRUPTED || (option & MACH_RCV_INTERRUPT))
            return result;
        option &= ~MACH_SEND_MSG;
        send_size = 0;
    }
}

/* Ports that no call uses. There is a place for each thread that calls at the same time. */
#define KEPT 16
static mach_port_t kept[KEPT];

void mig_init(void *first)
{
    (void)first;
    for (int place = 0; place < KEPT; place++)
        __atomic_store_n(&kept[place], MACH_PORT_NULL, __ATOMIC_RELEASE);
}

mach_port_t mig_get_reply_port(void)
{
    for (int place = 0; place < KEPT; place++) {
        mach_port_t port = __atomic_exchange_n(&kept[place], MACH_PORT_NULL, __ATOMIC_ACQ_REL);
        if (port != MACH_PORT_NULL)
            return port;
    }
    return mach_reply_port();
}

void mig_put_reply_port(mach_port_t port)
{
    for (int place = 0; place < KEPT; place++) {
        mach_port_t none = MACH_PORT_NULL;
        if (__atomic_compare_exchange_n(&kept[place], &none, port, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
    }
}

/* A late reply may come to the port, so it is not used again. */
void mig_dealloc_reply_port(mach_port_t port)
{
    (void)port;
}

vm_size_t mig_strncpy(char *to, const char *from, vm_size_t size)
{
    vm_size_t length = 0;
    for (; length + 1 < size && from[length]; length++)
        to[length] = from[length];
    if (size)
        to[length] = 0;
    return length;
}
