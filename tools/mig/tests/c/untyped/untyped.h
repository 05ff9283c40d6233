/* What the transport of the untyped dialect has in addition to loopback.h. */

/* Bytes of the trailer of requests. */
extern int loopback_trailer;
/* Special reply ports in use; how many messages were destroyed. */
extern int loopback_special_ports, loopback_destroyed;
/* What mach_msg returns without sending, if it is not 0. */
extern mach_msg_return_t loopback_result;
