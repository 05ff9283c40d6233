/* A transport within one program: mach_msg hands the request to a server's function and returns its
   reply, as the kernel would deliver both. */
#include <mach/message.h>
#include <mach/mig_errors.h>
#include <mach/mig_support.h>
#include <stdio.h>
#include <stdlib.h>

/* The function of the server that mach_msg calls with each request. */
extern boolean_t (*loopback_server)(mach_msg_header_t *, mach_msg_header_t *);
/* If set, is called with each message in transit and may change it: with 0 for a request, with 1
   for a reply. */
extern void (*loopback_meddle)(int which, mach_msg_header_t *);
/* The last request and reply as they were sent, and the options and timeout of the call. */
extern union loopback_buffer { mach_msg_header_t head; char bytes[65536]; uint64_t aligned; }
    loopback_request, loopback_reply;
extern mach_msg_option_t loopback_option;
extern mach_msg_timeout_t loopback_time;
/* The number of reply ports in use, and the number of bytes of memory that have been freed. */
extern int loopback_reply_ports;
extern vm_size_t loopback_freed;

#define check(condition) do { if (!(condition)) { \
	printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); exit(1); } } while (0)
