/* Servers. */
#ifndef MACH_SERVER_H
#define MACH_SERVER_H

#include <mach/message.h>

/* Carries out a request and writes the reply, as the servers do that mig writes. Returns FALSE if
 * no routine has the request's id. */
typedef boolean_t (*mach_msg_demux_t)(mach_msg_header_t *request, mach_msg_header_t *reply);

/* Receives requests of at most `most` bytes from a port or a port set and sends the replies of
 * `demux`, which have at most as many bytes. Returns the error that ends it. */
mach_msg_return_t mach_msg_server(mach_msg_demux_t demux, mach_msg_size_t most, mach_port_t port);

#endif
