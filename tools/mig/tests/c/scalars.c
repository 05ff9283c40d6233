#include "loopback.h"
#include "scalars_user.h"
#include "scalars_server.h"

extern boolean_t scalars_server(mach_msg_header_t *, mach_msg_header_t *);
static int hints;

kern_return_t server_add(mach_port_t port, uint32_t a, uint64_t b, uint64_t *sum, uint32_t *count)
{
	check(port == 5);
	if (a == 13)
		return KERN_INVALID_ARGUMENT;
	*sum = a + b;
	++*count;
	return KERN_SUCCESS;
}

kern_return_t server_hint(mach_port_t port, boolean_t on, byte_t how)
{
	check(port == 6 && on == TRUE && how == 200);
	hints++;
	return MIG_NO_REPLY;
}

kern_return_t server_nothing(mach_port_t port)
{
	return port == 7 ? KERN_SUCCESS : 1234;
}

static uint32_t change, byte;

static void meddle(int which, mach_msg_header_t *message)
{
	if (which == (int) (byte >> 31))
		((char *) message)[byte & 0x7fffffff] ^= change;
}

/* A change of any bit of a descriptor or of the message's size yields an error. */
static void damage(void)
{
	uint64_t sum;
	uint32_t count = 1;
	unsigned i, bit;
	loopback_meddle = meddle;
	for (i = 0; i < 4; i++)
		for (bit = 0; bit < 8; bit++) {
			change = 1u << bit;
			byte = sizeof(mach_msg_header_t) + i;
			check(add(5, 1, 2, &sum, &count) == MIG_BAD_ARGUMENTS);
			byte |= 1u << 31;
			check(add(5, 1, 2, &sum, &count) == MIG_TYPE_ERROR);
			byte = 4 + i;
			check(add(5, 1, 2, &sum, &count) == MIG_BAD_ARGUMENTS);
		}
	change = 0x80;
	byte = 3;
	check(add(5, 1, 2, &sum, &count) == MIG_BAD_ARGUMENTS);
	byte = 3 | 1u << 31;
	check(add(5, 1, 2, &sum, &count) == MIG_TYPE_ERROR);
	/* The client refuses a reply with another id, also if only the request's id was changed. */
	byte = 29;
	check(add(5, 1, 2, &sum, &count) == MIG_REPLY_MISMATCH);
	byte = 29 | 1u << 31;
	check(add(5, 1, 2, &sum, &count) == MIG_REPLY_MISMATCH);
	loopback_meddle = NULL;
}

/* A request with an id that no routine has gets an error reply. */
static void unknown(int id)
{
	union loopback_buffer request = { .head = { .msgh_size = sizeof(mach_msg_header_t), .msgh_id = id } }, reply;
	check(!scalars_server(&request.head, &reply.head));
	check(((mig_reply_header_t *) &reply)->RetCode == MIG_BAD_ID);
	check(reply.head.msgh_size == sizeof(mig_reply_header_t) && reply.head.msgh_id == id + 100);
	check(scalars_server_routine(&request.head) == 0);
}

int main(void)
{
	uint64_t sum = 0;
	uint32_t count = 41;
	loopback_server = scalars_server;
	check(add(5, 3000000000u, 1ull << 40, &sum, &count) == KERN_SUCCESS);
	check(sum == 3000000000u + (1ull << 40) && count == 42);
	check(add(5, 13, 0, &sum, &count) == KERN_INVALID_ARGUMENT && count == 42);
	check(hint(6, TRUE, 200) == MACH_MSG_SUCCESS && hints == 1);
	check(nothing(7) == KERN_SUCCESS && nothing(8) == 1234);
	damage();
	unknown(499);
	unknown(501);
	unknown(505);
	unknown(507);
	unknown(-1);
	check(loopback_reply_ports == 0);
	return 0;
}
