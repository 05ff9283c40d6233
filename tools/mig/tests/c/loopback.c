#include "loopback.h"

boolean_t (*loopback_server)(mach_msg_header_t *, mach_msg_header_t *);
void (*loopback_meddle)(int which, mach_msg_header_t *);
union loopback_buffer loopback_request, loopback_reply;
mach_msg_option_t loopback_option;
mach_msg_timeout_t loopback_time;
int loopback_reply_ports;
vm_size_t loopback_freed;

#ifdef NARROW
enum { WORD = 4 };
#else
enum { WORD = 8 };
#endif

/* The type of a right in a received message, for the type in the sent message. */
static unsigned received(unsigned name)
{
	switch (name) {
	case MACH_MSG_TYPE_COPY_SEND:
	case MACH_MSG_TYPE_MAKE_SEND:
		return MACH_MSG_TYPE_PORT_SEND;
	case MACH_MSG_TYPE_MAKE_SEND_ONCE:
		return MACH_MSG_TYPE_PORT_SEND_ONCE;
	default:
		return name;
	}
}

/* Delivers a message as the kernel does: checks that items fill it, and translates rights. */
static int deliver(mach_msg_header_t *head)
{
	char *at = (char *) (head + 1), *end = (char *) head + head->msgh_size;
	int complex = 0;
	unsigned bits = head->msgh_bits & MACH_MSGH_BITS_COMPLEX;
	mach_port_t remote = head->msgh_remote_port, local = head->msgh_local_port;
	if (head->msgh_size < sizeof *head || head->msgh_size % WORD)
		return 0;
	while (at < end) {
		mach_msg_type_t type;
		uint64_t name, size, number, data;
		memcpy(&type, at, sizeof type);
		name = type.msgt_name;
		size = type.msgt_size;
		number = type.msgt_number;
#ifdef NARROW
		if (type.msgt_longform) {
			mach_msg_type_long_t type_long;
			memcpy(&type_long, at, sizeof type_long);
			name = type_long.msgtl_name;
			size = type_long.msgtl_size;
			number = type_long.msgtl_number;
			type_long.msgtl_name = received(name);
			memcpy(at, &type_long, sizeof type_long);
			at += sizeof type_long;
		} else
#endif
		{
			type.msgt_name = received(name);
			memcpy(at, &type, sizeof type);
			at += sizeof type;
		}
		complex |= MACH_MSG_TYPE_PORT_ANY(name) || !type.msgt_inline;
		if (MACH_MSG_TYPE_PORT_ANY(name) && size != 8 * WORD)
			return 0;
		data = type.msgt_inline ? (size * number + 7) / 8 : sizeof(void *);
		at += (data + WORD - 1) / WORD * WORD;
	}
	if (at != end || (complex && !bits))
		return 0;
	head->msgh_bits = bits | MACH_MSGH_BITS(received(MACH_MSGH_BITS_LOCAL(head->msgh_bits)),
	    received(MACH_MSGH_BITS_REMOTE(head->msgh_bits)));
	head->msgh_remote_port = local;
	head->msgh_local_port = remote;
	head->msgh_seqno = 77;
	return 1;
}

mach_msg_return_t mach_msg(mach_msg_header_t *message, mach_msg_option_t option, mach_msg_size_t send,
    mach_msg_size_t receive, mach_port_t port, mach_msg_timeout_t time, mach_port_t notify)
{
	static union loopback_buffer request, reply;
	(void) port, (void) notify;
	check(send == message->msgh_size);
	memcpy(&loopback_request, message, send);
	memcpy(&request, message, send);
	loopback_option = option;
	loopback_time = time;
	if (!deliver(&request.head))
		return MACH_SEND_INVALID_DATA;
	if (loopback_meddle)
		loopback_meddle(0, &request.head);
	memset(&reply, 0xee, sizeof reply);
	loopback_server(&request.head, &reply.head);
	if (!(option & MACH_RCV_MSG))
		return MACH_MSG_SUCCESS;
	memcpy(&loopback_reply, &reply, reply.head.msgh_size);
	if (!deliver(&reply.head))
		return MACH_SEND_INVALID_DATA;
	if (loopback_meddle)
		loopback_meddle(1, &reply.head);
	if (reply.head.msgh_size > receive)
		return MACH_RCV_TOO_LARGE;
	memcpy(message, &reply, reply.head.msgh_size);
	return MACH_MSG_SUCCESS;
}

mach_port_t mig_get_reply_port(void)
{
	loopback_reply_ports++;
	return 99;
}

void mig_put_reply_port(mach_port_t port)
{
	check(port == 99 || port == MACH_PORT_NULL || loopback_meddle);
	loopback_reply_ports--;
}

void mig_dealloc_reply_port(mach_port_t port)
{
	(void) port;
}

vm_size_t mig_strncpy(char *to, const char *from, vm_size_t size)
{
	vm_size_t length;
	for (length = 0; length < size && (to[length] = from[length]); length++);
	return length;
}

void mig_allocate(vm_offset_t *address, vm_size_t size)
{
	*address = (vm_offset_t) malloc(size);
}

void mig_deallocate(vm_offset_t address, vm_size_t size)
{
	(void) address;
	loopback_freed += size;
}
