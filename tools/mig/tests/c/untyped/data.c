#include "loopback.h"
#include "untyped.h"
#include "data_user.h"
#include "data_server.h"
#ifdef RUST
extern void rust_client(void);
#endif

kern_return_t server_nothing(mach_port_t port)
{
	return port == 7 ? KERN_SUCCESS : KERN_INVALID_ARGUMENT;
}

kern_return_t server_numbers(mach_port_t port, int a, short b, uint64_t c, char *d, uint64_t *e)
{
	(void) port;
	if (a == -1)
		return 5;
	*d = b;
	*e = c + a;
	return KERN_SUCCESS;
}

kern_return_t server_right(mach_port_t port, mach_port_t a, mach_port_t *b)
{
	(void) port;
	*b = a + 1;
	return a ? KERN_SUCCESS : 6;
}

kern_return_t server_right_and_data(mach_port_t port, mach_port_t a, int b, mach_port_t *c, int *d)
{
	(void) port;
	*c = a + b;
	*d = a - b;
	return KERN_SUCCESS;
}

kern_return_t server_arrays(mach_port_t port, words_t a, mach_msg_type_number_t aCnt, bytes_t b,
    mach_msg_type_number_t bCnt, five_t c, words_t d, mach_msg_type_number_t *dCnt, bytes_t e,
    mach_msg_type_number_t *eCnt)
{
	(void) port;
	check(c[0] == 1 && c[4] == 5 && *dCnt == (aCnt == 3 ? 2 : 64));
	for (unsigned i = 0; i < aCnt; i++)
		d[i] = a[i] * 2;
	*dCnt = aCnt;
	memcpy(e, b, bCnt);
	*eCnt = bCnt;
	return KERN_SUCCESS;
}

kern_return_t server_both_ways(mach_port_t port, words_t a, mach_msg_type_number_t *aCnt)
{
	(void) port;
	for (unsigned i = 0; i < *aCnt; i++)
		a[i]++;
	if (*aCnt < 64)
		a[(*aCnt)++] = -1;
	return KERN_SUCCESS;
}

kern_return_t server_strings(mach_port_t port, name_t a, path_t b, name_t c, path_t d)
{
	(void) port;
	check(strlen(a) < 128 && strlen(b) < 1024);
	strcpy(c, a);
	strcpy(d, b);
	return KERN_SUCCESS;
}

/* Memory and rights that the C server returns, and the Rust server as well. */
char given[] = "given";
mach_port_t given_ports[] = { 31, 32, 33 };

kern_return_t server_memory(mach_port_t port, pointer_t a, mach_msg_type_number_t aCnt, ports_t b,
    mach_msg_type_number_t bCnt, int c, pointer_t *d, mach_msg_type_number_t *dCnt, ports_t *e,
    mach_msg_type_number_t *eCnt)
{
	(void) port;
	check(c == 9 && aCnt == 3 && !memcmp((char *) a, "abc", 3) && bCnt == 2 && b[1] == 22);
	*d = (pointer_t) given;
	*dCnt = 5;
	*e = given_ports;
	*eCnt = 3;
	return KERN_SUCCESS;
}

int only_memories;

kern_return_t server_only_memory(mach_port_t port, pointer_t a, mach_msg_type_number_t aCnt)
{
	(void) port, (void) a;
	only_memories += aCnt;
	return MIG_NO_REPLY;
}

kern_return_t server_same_count(mach_port_t port, int mask, masks_t masks, mach_msg_type_number_t *masksCnt,
    handlers_t handlers, masks_t flavors)
{
	(void) port;
	check(*masksCnt == 32);
	for (int i = 0; i < mask; i++) {
		masks[i] = i;
		handlers[i] = 100 + i;
		flavors[i] = 200 + i;
	}
	*masksCnt = mask;
	return KERN_SUCCESS;
}

int name_list[] = { 1, 2, 3 };

kern_return_t server_unbounded(mach_port_t port, names_t *names, mach_msg_type_number_t *namesCnt,
    names_t *types, mach_msg_type_number_t *typesCnt)
{
	(void) port;
	*names = name_list;
	*namesCnt = 3;
	*types = name_list + 1;
	*typesCnt = 0;
	return KERN_SUCCESS;
}

kern_return_t server_rights(mach_port_t port, mach_port_t a, mach_msg_type_name_t aPoly, three_ports_t b,
    small_ports_t c, mach_msg_type_number_t cCnt, any_ports_t d, mach_msg_type_name_t dPoly,
    mach_msg_type_number_t dCnt, mach_port_t *e, mach_msg_type_name_t *ePoly, three_ports_t f, small_ports_t g,
    mach_msg_type_number_t *gCnt, triples_t last, mach_msg_type_number_t lastCnt, triples_t h,
    mach_msg_type_number_t *hCnt, fixed_memory_t i)
{
	(void) port;
	check(aPoly == MACH_MSG_TYPE_PORT_SEND_ONCE && dPoly == MACH_MSG_TYPE_MOVE_RECEIVE && dCnt == 2);
	check(d == given_ports && i == name_list);
	*e = a + 1;
	*ePoly = MACH_MSG_TYPE_MAKE_SEND;
	for (int n = 0; n < 3; n++)
		f[2 - n] = b[n];
	for (unsigned n = 0; n < *gCnt; n++)
		g[n] += 1000;
	if (cCnt)
		g[(*gCnt)++] = c[cCnt - 1];
	memcpy(h, last, lastCnt * sizeof *last);
	*hCnt = lastCnt;
	return a == 1 ? 17 : KERN_SUCCESS;
}

int forgotten;
widget_t widget_of(int number) { return (widget_t) { number * 10 }; }
int number_of(widget_t widget) { return widget.number / 10; }
void forget(widget_t widget) { forgotten = widget.number; }

kern_return_t server_translated(mach_port_t port, widget_t a, widget_t *b)
{
	(void) port;
	check(a.number == 70);
	b->number = a.number + 10;
	return KERN_SUCCESS;
}

static void arrays_of_all_sizes(void)
{
	words_t a, d;
	bytes_t b, e;
	five_t c = { 1, 2, 3, 4, 5 };
	for (int i = 0; i < 64; i++)
		a[i] = 3 * i;
	for (int i = 0; i < 101; i++)
		b[i] = i + 1;
	for (unsigned n = 0; n <= 101; n++) {
		unsigned words = n % 65;
		mach_msg_type_number_t dCnt = words == 3 ? 2 : 90, eCnt = 0;
		kern_return_t result = arrays(7, a, words, b, n, c, d, &dCnt, e, &eCnt);
		check(result == (words == 3 ? MIG_ARRAY_TOO_LARGE : KERN_SUCCESS));
#ifdef RUST
		/* The Rust server's stub refuses three elements where the client has room for two. */
		if (words == 3)
			continue;
#endif
		/* A caller with too little room gets the elements that fit, and the number of all. */
		check(dCnt == words);
		if (result == KERN_SUCCESS)
			check(eCnt == n && !memcmp(b, e, n));
		for (unsigned i = 0; i < (words == 3 ? 2 : words); i++)
			check(d[i] == 6 * (int) i);
	}
	mach_msg_type_number_t dCnt = 64, eCnt = 0, aCnt;
	check(arrays(7, a, 65, b, 0, c, d, &dCnt, e, &eCnt) == MIG_ARRAY_TOO_LARGE);
	check(arrays(7, a, 0, b, 102, c, d, &dCnt, e, &eCnt) == MIG_ARRAY_TOO_LARGE);
	for (aCnt = 0; aCnt < 64;) {
		for (unsigned i = 0; i < aCnt; i++)
			a[i] = i;
		mach_msg_type_number_t before = aCnt;
		check(both_ways(7, a, &aCnt) == KERN_SUCCESS && aCnt == before + 1 && a[before] == -1);
		for (unsigned i = 0; i < before; i++)
			check(a[i] == (int) i + 1);
	}
}

static void texts(void)
{
	name_t a = "", c;
	path_t b = "", d;
	for (unsigned n = 0; n < 1024; n++) {
		memset(b, 'x', n);
		b[n] = 0;
		memset(a, 'y', n % 128);
		a[n % 128] = 0;
		check(strings(7, a, b, c, d) == KERN_SUCCESS && !strcmp(a, c) && !strcmp(b, d));
		check(loopback_request.head.msgh_size == 168 + (n + 1 + 3) / 4 * 4);
	}
}

static void memories(void)
{
	pointer_t d;
	ports_t e;
	mach_msg_type_number_t dCnt, eCnt;
	mach_port_t sent[] = { 21, 22 };
	check(memory(7, (pointer_t) "abc", 3, sent, 2, 9, &d, &dCnt, &e, &eCnt) == KERN_SUCCESS);
	check(d == (pointer_t) given && dCnt == 5 && e == given_ports && eCnt == 3);
	const mach_msg_ool_descriptor_t *first = (void *) (loopback_request.bytes + 28);
	const mach_msg_ool_ports_descriptor_t *second = (void *) (loopback_request.bytes + 44);
	check(first->deallocate == 1 && first->copy == 1 && first->type == 1 && first->size == 3);
	check(second->deallocate == 0 && second->copy == 0 && second->type == 2 && second->count == 2);
	check(only_memory(7, (pointer_t) "abcd", 4) == MACH_MSG_SUCCESS && only_memories == 4);
	names_t names, types;
	check(unbounded(7, &names, &dCnt, &types, &eCnt) == KERN_SUCCESS);
	check(names == name_list && dCnt == 3 && types == name_list + 1 && eCnt == 0);
	masks_t masks, flavors;
	handlers_t handlers;
	for (int n = 0; n <= 32; n++) {
		check(same_count(7, n, masks, &dCnt, handlers, flavors) == KERN_SUCCESS && dCnt == (unsigned) n);
		for (int i = 0; i < n; i++)
			check(masks[i] == i && handlers[i] == 100u + i && flavors[i] == 200 + i);
	}
}

static void many_rights(void)
{
	three_ports_t b = { 41, 42, 43 }, f;
	small_ports_t c = { 51, 52, 53, 54 };
	triples_t last = { { "abc" }, { "def" }, { "ghi" }, { "jkl" }, { "mno" } }, h;
	for (unsigned n = 0; n <= 5; n++) {
		small_ports_t g = { 61, 62, 63, 64 };
		mach_port_t e;
		mach_msg_type_name_t ePoly;
		mach_msg_type_number_t gCnt = n % 4, hCnt = 5, cCnt = n % 5;
		check(rights(7, 40, MACH_MSG_TYPE_MAKE_SEND_ONCE, b, c, cCnt, given_ports, MACH_MSG_TYPE_MOVE_RECEIVE,
		    2, TRUE, &e, &ePoly, f, g, &gCnt, last, n, h, &hCnt, name_list) == KERN_SUCCESS);
		check(e == 41 && ePoly == MACH_MSG_TYPE_PORT_SEND && f[0] == 43 && f[2] == 41);
		check(gCnt == n % 4 + (cCnt > 0) && hCnt == n && !memcmp(h, last, n * 3));
		for (unsigned i = 0; i < n % 4; i++)
			check(g[i] == 1061 + i);
		if (cCnt)
			check(g[n % 4] == 50 + cCnt);
	}
	small_ports_t g;
	mach_port_t e;
	mach_msg_type_name_t ePoly;
	mach_msg_type_number_t gCnt = 0, hCnt = 0;
	/* The stub must write the error where the server's function has written rights. */
	check(rights(7, 1, MACH_MSG_TYPE_MAKE_SEND_ONCE, b, c, 0, given_ports, MACH_MSG_TYPE_MOVE_RECEIVE, 2, TRUE,
	    &e, &ePoly, f, g, &gCnt, last, 0, h, &hCnt, name_list) == 17);
	check(loopback_reply.head.msgh_size == 36);
}

static int which_message;
static unsigned at_byte;
static unsigned char change;

static void meddle(int which, mach_msg_header_t *head)
{
	if (which == which_message && at_byte < head->msgh_size)
		((unsigned char *) head)[at_byte] ^= change;
}

/* A change of a message's number of descriptors, complexity, size or id, or of the type of a
   descriptor, yields an error. */
static void damage(void)
{
	loopback_meddle = meddle;
	for (which_message = 0; which_message < 2; which_message++)
		for (at_byte = 24; at_byte < 28; at_byte++) {
			mach_port_t c;
			int d;
			change = 1;
			kern_return_t result = right_and_data(7, 20, 3, &c, &d);
			check(result == (which_message ? MIG_TYPE_ERROR : MIG_BAD_ARGUMENTS));
		}
	static const struct { unsigned at; unsigned char change; } bytes[] = { { 3, 0x80 }, { 4, 4 }, { 38, 1 }, { 39, 1 } };
	for (which_message = 0; which_message < 2; which_message++)
		for (unsigned i = 0; i < sizeof bytes / sizeof *bytes; i++) {
			mach_port_t c;
			int d;
			at_byte = bytes[i].at;
			change = bytes[i].change;
			check(right_and_data(7, 20, 3, &c, &d) == (which_message ? MIG_TYPE_ERROR : MIG_BAD_ARGUMENTS));
		}
	which_message = 0;
	at_byte = 20;
	change = 0x40;
	check(nothing(7) == MIG_REPLY_MISMATCH);
	which_message = 1;
	check(nothing(7) == MIG_REPLY_MISMATCH);
	loopback_meddle = NULL;
}

int main(void)
{
	loopback_server = data_server;
	char d;
	uint64_t e;
	mach_port_t b;
	int n;
	check(nothing(7) == KERN_SUCCESS && nothing(8) == KERN_INVALID_ARGUMENT);
	check(numbers(7, 1, 2, 1ull << 40, &d, &e) == KERN_SUCCESS && d == 2 && e == (1ull << 40) + 1);
	check(numbers(7, -1, 2, 3, &d, &e) == 5);
	check(right(7, 30, &b) == KERN_SUCCESS && b == 31 && right(7, 0, &b) == 6);
	check(right_and_data(7, 30, 4, &b, &n) == KERN_SUCCESS && b == 34 && n == 26);
	arrays_of_all_sizes();
	texts();
	memories();
	many_rights();
	check(translated(7, 7, &n) == KERN_SUCCESS && n == 8 && forgotten == 70);
	check(loopback_reply_ports == 0);
	damage();
	check(data_subsystem.start == 3000 && data_subsystem.end == 3013 && data_subsystem.routine[4].max_reply_msg == 404);
	check(sizeof(union __RequestUnion__data_subsystem) == 1192 && data_subsystem.maxsize == 1196);
#ifdef RUST
	rust_client();
#endif
	return 0;
}
