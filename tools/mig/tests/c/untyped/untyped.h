/* Variables of the untyped dialect's transport, in addition to those of loopback.h. */

/* The size of the trailer of requests, in bytes. */
extern int loopback_trailer;
/* The number of special reply ports in use, and the number of destroyed messages. */
extern int loopback_special_ports, loopback_destroyed;
/* If it is not 0, mach_msg returns this error without sending. */
extern mach_msg_return_t loopback_result;
