#include "loopback.h"
#include "untyped.h"
#include "trailers_user.h"
#include "trailers_server.h"

kern_return_t server_tokens(mach_port_t port, security_token_t sender, audit_token_t audit, uint64_t context,
    int number, int a, int *b)
{
	check(port == 7 && sender.val[1] == 101 && audit.val[7] == 109 && context == 0x100000064 && number == 77);
	*b = a + 1;
	return KERN_SUCCESS;
}

kern_return_t server_limited(mach_port_t port, security_token_t sender, int a)
{
	check(port == 7 && sender.val[0] == 100 && a == 5);
	return MIG_NO_REPLY;
}

kern_return_t server_special(mach_port_t port, int a, int *b)
{
	(void) port;
	*b = a * 2;
	return KERN_SUCCESS;
}

kern_return_t server_in_the_middle(int a, mach_port_t reply, mach_port_t port, int *b)
{
	check(port == 7 && reply == 55);
	*b = a * 3;
	return KERN_SUCCESS;
}

int main(void)
{
	loopback_server = trailers_server;
	security_token_t sender;
	audit_token_t audit;
	int b;
	check(user_tokens(7, &sender, &audit, 4, &b) == KERN_SUCCESS && b == 5);
	check(sender.val[0] == 200 && sender.val[1] == 201 && audit.val[0] == 202 && audit.val[7] == 209);
	loopback_trailer = 52;
	check(user_tokens(7, &sender, &audit, 4, &b) == MIG_TRAILER_ERROR);
	loopback_trailer = 20;
	check(user_limited(7, 5) == MACH_MSG_SUCCESS && loopback_time == 100);
	check(loopback_option == (MACH_SEND_MSG | MACH_SEND_TIMEOUT));
	loopback_result = MACH_SEND_TIMED_OUT;
	check(user_limited(7, 5) == MACH_SEND_TIMED_OUT && loopback_destroyed == 1);
	loopback_result = MACH_SEND_INVALID_RIGHT;
	check(user_limited(7, 5) == MACH_SEND_INVALID_RIGHT && loopback_destroyed == 1);
	check(user_special(7, 5, &b) == MACH_SEND_INVALID_RIGHT && loopback_destroyed == 2);
	check(loopback_special_ports == 0 && loopback_reply_ports == 0);
	loopback_result = 0;
	check(user_special(7, 5, &b) == KERN_SUCCESS && b == 10 && loopback_time == 50 && loopback_special_ports == 1);
	check(loopback_option == (MACH_SEND_MSG | MACH_RCV_MSG | MACH_SEND_TIMEOUT | MACH_RCV_TIMEOUT |
	    MACH_SEND_SYNC_OVERRIDE | MACH_RCV_SYNC_WAIT));
	check(user_in_the_middle(5, 55, 7, 33, 0x2000, 1, &b) == KERN_SUCCESS && b == 15 && loopback_time == 33);
	check(loopback_option == (MACH_SEND_MSG | MACH_RCV_MSG | MACH_SEND_TIMEOUT | 0x2000));
	return 0;
}
