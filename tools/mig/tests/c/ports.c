#include "loopback.h"
#include "ports_user.h"
#include "ports_server.h"

extern boolean_t ports_server(mach_msg_header_t *, mach_msg_header_t *);
#ifdef RUST
extern void rust_client(void);
#endif

kern_return_t server_polymorphic_ports(mach_port_t port, mach_port_t b, mach_port_t *c, mach_msg_type_name_t *cPoly,
    mach_port_t *d, mach_port_t *e, mach_msg_type_name_t *ePoly)
{
	check(port == 11 && b == 12 && *c == 13);
	check(*cPoly == MACH_MSG_TYPE_PORT_SEND_ONCE || *cPoly == MACH_MSG_TYPE_INTEGER_32);
	*c = 23;
	*cPoly = *cPoly == MACH_MSG_TYPE_INTEGER_32 ? MACH_MSG_TYPE_INTEGER_32 : MACH_MSG_TYPE_MAKE_SEND;
	*d = 24;
	*e = 25;
	*ePoly = MACH_MSG_TYPE_COPY_SEND;
	return KERN_SUCCESS;
}

int replied;

kern_return_t server_reply_port_of_the_server(mach_port_t port, mach_msg_type_name_t portPoly, mach_port_t b,
    mach_msg_type_name_t bPoly, mach_port_t reply, mach_msg_type_name_t replyPoly)
{
	check(port == 11 && portPoly == MACH_MSG_TYPE_PORT_SEND && b == 12 && bPoly == MACH_MSG_TYPE_PORT_SEND);
	check(reply == MACH_PORT_NULL && replyPoly == 0);
	replied++;
	return MIG_NO_REPLY;
}

kern_return_t server_reply_port_of_the_user(mach_port_t port, some_ports_t got, mach_msg_type_number_t *gotCnt,
    const some_ports_t sent, mach_msg_type_number_t sentCnt, mach_port_t *more, mach_msg_type_name_t *morePoly)
{
	(void) port;
	for (unsigned i = 0; i < sentCnt; i++)
		got[i] = sent[i] + 100;
	*gotCnt = sentCnt;
	++*more;
	*morePoly = MACH_MSG_TYPE_MOVE_SEND;
	return KERN_SUCCESS;
}

kern_return_t server_port_in_the_middle(uint32_t a, mach_port_t reply, mach_port_t port, uint32_t number, uint32_t *b)
{
	check(port == 11 && reply == 42 && number == 77);
	*b = a + 1;
	return KERN_SUCCESS;
}

mach_port_t given[] = { 31, 32, 33 };

kern_return_t server_many_ports(mach_port_t port, ports_t a, mach_msg_type_number_t aCnt, any_ports_t b,
    mach_msg_type_name_t bPoly, mach_msg_type_number_t bCnt, const three_ports_t c, any_ports_t *d,
    mach_msg_type_name_t *dPoly, mach_msg_type_number_t *dCnt, ports_t *e, mach_msg_type_number_t *eCnt)
{
	(void) port;
	check(aCnt == 2 && a[1] == 2 && bCnt == 3 && b[2] == 33 && bPoly == MACH_MSG_TYPE_MOVE_RECEIVE);
	check(c[0] == 7 && c[1] == 8 && c[2] == 9);
	*d = given;
	*dCnt = 1;
	*dPoly = MACH_MSG_TYPE_MOVE_SEND_ONCE;
	*e = given + 1;
	*eCnt = 2;
	return KERN_SUCCESS;
}

int main(void)
{
	loopback_server = ports_server;
	mach_port_t c = 13, d = 0, e = 0;
	mach_msg_type_name_t cPoly = MACH_MSG_TYPE_MAKE_SEND_ONCE, dPoly;
	check(user_polymorphic_ports(11, MACH_MSG_TYPE_COPY_SEND, 12, MACH_MSG_TYPE_COPY_SEND, &c, &cPoly, &d, &dPoly,
	    &e) == KERN_SUCCESS);
	check(c == 23 && cPoly == MACH_MSG_TYPE_PORT_SEND && d == 24 && dPoly == MACH_MSG_TYPE_MOVE_SEND && e == 25);
	check(loopback_option == (MACH_SEND_MSG | MACH_RCV_MSG | MACH_SEND_NOTIFY | MACH_RCV_TIMEOUT));
	check(loopback_time == 10);

	check(user_reply_port_of_the_server(11, MACH_MSG_TYPE_MOVE_SEND, 12) == MACH_MSG_SUCCESS && replied == 1);

	for (unsigned n = 0; n <= 4; n++) {
		some_ports_t got, sent = { 1, 2, 3, 4 };
		mach_msg_type_number_t count = 4;
		mach_port_t more = 50;
		check(user_reply_port_of_the_user(11, 42, MACH_MSG_TYPE_MAKE_SEND_ONCE, got, &count, sent, n, &more,
		    MACH_MSG_TYPE_MOVE_SEND) == KERN_SUCCESS);
		check(count == n && more == 51);
		for (unsigned i = 0; i < n; i++)
			check(got[i] == 101 + i);
		check(loopback_request.head.msgh_local_port == 42);
	}

	uint32_t b = 0;
	check(user_port_in_the_middle(1, 42, 11, 5, 0x1000, &b) == KERN_SUCCESS && b == 2);
	check(loopback_time == 5 && (loopback_option & 0x1000));

	mach_port_t some[] = { 1, 2 };
	any_ports_t anything;
	mach_msg_type_name_t anyPoly;
	ports_t ports;
	mach_msg_type_number_t anyCnt, portsCnt;
	three_ports_t three = { 7, 8, 9 };
	check(user_many_ports(11, some, 2, given, MACH_MSG_TYPE_MOVE_RECEIVE, 3, TRUE, three, &anything, &anyPoly,
	    &anyCnt, &ports, &portsCnt) == KERN_SUCCESS);
	check(anything == given && anyCnt == 1 && anyPoly == MACH_MSG_TYPE_MOVE_SEND_ONCE);
	check(ports == given + 1 && portsCnt == 2);
	check(loopback_reply_ports == 0);
#ifdef RUST
	rust_client();
#endif
	return 0;
}
