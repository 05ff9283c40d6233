/* A transport within one program for messages of the untyped dialect: see loopback.h. */
#include "loopback.h"
#include "untyped.h"

NDR_record_t NDR_record = { 0, 0, 0, 0, 1, 0, 0, 0 };
boolean_t (*loopback_server)(mach_msg_header_t *, mach_msg_header_t *);
void (*loopback_meddle)(int which, mach_msg_header_t *);
union loopback_buffer loopback_request, loopback_reply;
mach_msg_option_t loopback_option;
mach_msg_timeout_t loopback_time;
int loopback_reply_ports, loopback_special_ports, loopback_destroyed;
mach_msg_return_t loopback_result;

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

/* Delivers a message as the kernel does: translates valid descriptors, and appends a trailer. */
static int deliver(mach_msg_header_t *head, int elements, unsigned first)
{
	char *at = (char *) (head + 1), *end = (char *) head + head->msgh_size;
	unsigned complex = head->msgh_bits & MACH_MSGH_BITS_COMPLEX, count = 0;
	mach_port_t remote = head->msgh_remote_port, local = head->msgh_local_port;
	mach_msg_max_trailer_t *trailer = (mach_msg_max_trailer_t *) end;
	if (head->msgh_size < sizeof *head || head->msgh_size % 4 || head->msgh_reserved)
		return 0;
	if (complex) {
		memcpy(&count, at, 4);
		at += 4;
	}
	if (complex && !count)
		return 0;
	for (; count > 0; count--) {
		mach_msg_port_descriptor_t *port = (mach_msg_port_descriptor_t *) at;
		mach_msg_ool_ports_descriptor_t *memory = (mach_msg_ool_ports_descriptor_t *) at;
		if (at + 12 > end)
			return 0;
		switch (port->type) {
		case MACH_MSG_PORT_DESCRIPTOR:
			if (!MACH_MSG_TYPE_PORT_ANY(port->disposition) || port->pad1 || port->pad2)
				return 0;
			port->disposition = received(port->disposition);
			at += sizeof *port;
			break;
		case MACH_MSG_OOL_PORTS_DESCRIPTOR:
			if (!MACH_MSG_TYPE_PORT_ANY(memory->disposition))
				return 0;
			memory->disposition = received(memory->disposition);
			at += sizeof *memory;
			break;
		case MACH_MSG_OOL_DESCRIPTOR:
			if (memory->disposition || memory->copy > 1 || memory->deallocate > 1)
				return 0;
			at += sizeof *memory;
			break;
		default:
			return 0;
		}
	}
	if (at < end && (end - at < 8 || memcmp(at, &NDR_record, 8)))
		return 0;
	head->msgh_bits = complex | MACH_MSGH_BITS(received(MACH_MSGH_BITS_LOCAL(head->msgh_bits)),
	    received(MACH_MSGH_BITS_REMOTE(head->msgh_bits)));
	head->msgh_remote_port = local;
	head->msgh_local_port = remote;
	trailer->msgh_trailer_type = MACH_MSG_TRAILER_FORMAT_0;
	trailer->msgh_trailer_size = elements;
	trailer->msgh_seqno = 77;
	trailer->msgh_sender = (security_token_t) { { first, first + 1 } };
	trailer->msgh_audit = (audit_token_t) { { first + 2, [7] = first + 9 } };
	trailer->msgh_context = 0x100000000 + first;
	return 1;
}

static int elements_of(mach_msg_option_t option)
{
	switch (option >> 24 & 0xf) {
	case 0:
		return 8;
	case MACH_RCV_TRAILER_SENDER:
		return 20;
	default:
		return 52;
	}
}

mach_msg_return_t mach_msg(mach_msg_header_t *message, mach_msg_option_t option, mach_msg_size_t send,
    mach_msg_size_t receive, mach_port_t port, mach_msg_timeout_t time, mach_port_t notify)
{
	static union loopback_buffer request, reply;
	int elements = elements_of(option);
	(void) port, (void) notify;
	check(send == message->msgh_size);
	memcpy(&loopback_request, message, send);
	memcpy(&request, message, send);
	loopback_option = option;
	loopback_time = time;
	if (loopback_result)
		return loopback_result;
	if (!deliver(&request.head, loopback_trailer, 100))
		return MACH_SEND_INVALID_DATA;
	if (loopback_meddle)
		loopback_meddle(0, &request.head);
	memset(&reply, 0xee, sizeof reply);
	loopback_server(&request.head, &reply.head);
	memcpy(&loopback_reply, &reply, reply.head.msgh_size);
	if (!(option & MACH_RCV_MSG))
		return MACH_MSG_SUCCESS;
	if (!deliver(&reply.head, elements, 200))
		return MACH_SEND_INVALID_DATA;
	if (loopback_meddle)
		loopback_meddle(1, &reply.head);
	if (reply.head.msgh_size + elements > receive)
		return MACH_RCV_TOO_LARGE;
	memcpy(message, &reply, reply.head.msgh_size + elements);
	return MACH_MSG_SUCCESS;
}

int loopback_trailer = 68;

void mach_msg_destroy(mach_msg_header_t *head)
{
	(void) head;
	loopback_destroyed++;
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
	check(port == 99 || loopback_meddle);
	loopback_reply_ports--;
}

mach_port_t mig_get_special_reply_port(void)
{
	loopback_special_ports++;
	return 98;
}

void mig_dealloc_special_reply_port(mach_port_t port)
{
	check(port == 98);
	loopback_special_ports--;
}
