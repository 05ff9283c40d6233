#include "loopback.h"
#include "arrays_user.h"
#include "arrays_server.h"

extern boolean_t arrays_server(mach_msg_header_t *, mach_msg_header_t *);

kern_return_t server_varying(mach_port_t port, const words_t a, mach_msg_type_number_t aCnt, words_t b,
    mach_msg_type_number_t *bCnt, bytes_t c, mach_msg_type_number_t *cCnt)
{
	(void) port;
	check(*cCnt == 100);
	if (aCnt > *bCnt)
		return KERN_INVALID_ARGUMENT;
	for (unsigned i = 0; i < aCnt; i++)
		b[i] = a[i] * 2;
	*bCnt = aCnt;
	for (unsigned i = 0; i < aCnt; i++)
		c[i] = a[i];
	*cCnt = aCnt;
	return KERN_SUCCESS;
}

static char padding_seen[100], padding_more[100];
static unsigned padding_count[3];

kern_return_t server_padding(mach_port_t port, const bytes_t a, mach_msg_type_number_t aCnt, const triples_t b,
    mach_msg_type_number_t bCnt, const bytes_t c, mach_msg_type_number_t cCnt, uint32_t d)
{
	check(port == 3 && d == 0xabcdef01);
	memcpy(padding_seen, a, aCnt);
	memcpy(padding_more, c, cCnt);
	for (unsigned i = 0; i < bCnt; i++)
		check(b[i].bytes[0] == (char) i && b[i].bytes[2] == (char) (i + 2));
	padding_count[0] = aCnt, padding_count[1] = bCnt, padding_count[2] = cCnt;
	return MIG_NO_REPLY;
}

kern_return_t server_fixed(mach_port_t port, const five_t a, const four_triples_t b, five_t c, triple_t *d)
{
	(void) port;
	for (unsigned i = 0; i < 5; i++)
		c[4 - i] = a[i];
	*d = b[3];
	return KERN_SUCCESS;
}

kern_return_t server_large(mach_port_t port, const many_bytes_t a, mach_msg_type_number_t aCnt, many_bytes_t b,
    mach_msg_type_number_t *bCnt)
{
	(void) port;
	if (aCnt > *bCnt)
		aCnt = *bCnt;
	memcpy(b, a, aCnt);
	*bCnt = aCnt;
	return KERN_SUCCESS;
}

static uint32_t outside[2000];

kern_return_t server_either(mach_port_t port, const_unbounded_t a, mach_msg_type_number_t aCnt,
    const_unbounded_pairs_t b, mach_msg_type_number_t bCnt, unbounded_t *c, mach_msg_type_number_t *cCnt,
    uint32_t z)
{
	(void) port;
	check(*cCnt == 512 && z == 9);
	for (unsigned i = 0; i < bCnt; i++)
		check(b[i].shorts[1] == (short) i);
	if (aCnt > 512)
		*c = outside;
	memcpy(*c, a, aCnt * 4);
	*cCnt = aCnt;
	return KERN_SUCCESS;
}

static uint64_t given[3] = { 7, 8, 9 };

kern_return_t server_out_of_line(mach_port_t port, memory_t a, mach_msg_type_number_t aCnt, memory_t b,
    mach_msg_type_number_t bCnt, memory_t c, mach_msg_type_number_t cCnt, memory_t *e,
    mach_msg_type_number_t *eCnt, boolean_t *eDealloc, memory_t *f, mach_msg_type_number_t *fCnt)
{
	(void) port;
	check(aCnt == 2 && a[1] == 20 && bCnt == 1 && b[0] == 30 && cCnt == 0 && c == NULL);
	*e = given;
	*eCnt = 3;
	*eDealloc = TRUE;
	*f = given + 1;
	*fCnt = 1;
	return KERN_SUCCESS;
}

static void varying_sizes(void)
{
	words_t a, b;
	bytes_t c;
	for (unsigned i = 0; i < 64; i++)
		a[i] = 3 * i;
	for (unsigned n = 0; n <= 64; n++) {
		mach_msg_type_number_t bCnt = 64, cCnt = 100;
		check(varying(1, a, n, b, &bCnt, c, &cCnt) == KERN_SUCCESS && bCnt == n && cCnt == n);
		for (unsigned i = 0; i < n; i++)
			check(b[i] == 6 * i && c[i] == (char) (3 * i));
	}
	mach_msg_type_number_t bCnt = 10, cCnt = 100;
	check(varying(1, a, 11, b, &bCnt, c, &cCnt) == KERN_INVALID_ARGUMENT);
	check(varying(1, a, 65, b, &bCnt, c, &cCnt) == MIG_ARRAY_TOO_LARGE);
	cCnt = 4;
	check(varying(1, a, 5, b, &bCnt, c, &cCnt) == MIG_ARRAY_TOO_LARGE && cCnt == 5 && bCnt == 5);
}

static void paddings(void)
{
	char bytes[100];
	triples_t triples;
	for (unsigned i = 0; i < 100; i++)
		bytes[i] = i + 1;
	for (unsigned i = 0; i < 8; i++)
		triples[i] = (triple_t) { { i, 0, i + 2 } };
	for (unsigned n = 0; n <= 100; n++) {
		check(padding(3, bytes, n, triples, n % 9, bytes, 100 - n, 0xabcdef01) == MACH_MSG_SUCCESS);
		check(padding_count[0] == n && padding_count[1] == n % 9 && padding_count[2] == 100 - n);
		check(!memcmp(padding_seen, bytes, n) && !memcmp(padding_more, bytes, 100 - n));
	}
	check(padding(3, bytes, 101, triples, 0, bytes, 0, 0) == MIG_ARRAY_TOO_LARGE);
	check(padding(3, bytes, 0, triples, 9, bytes, 0, 0) == MIG_ARRAY_TOO_LARGE);
}

static void fixed_sizes(void)
{
	five_t a = { 1, 2, 3, 4, 5 }, c;
	four_triples_t b = { [3] = { "abc" } };
	triple_t d;
	check(fixed(1, a, b, c, &d) == KERN_SUCCESS);
	check(c[0] == 5 && c[4] == 1 && !memcmp(d.bytes, "abc", 3));
}

static void large_sizes(void)
{
	static many_bytes_t a, b;
	for (unsigned i = 0; i < sizeof a; i++)
		a[i] = i * 7;
	for (unsigned n = 0; n <= sizeof a; n += 205) {
		mach_msg_type_number_t bCnt = 4100;
		check(large(1, a, n, b, &bCnt) == KERN_SUCCESS && bCnt == n && !memcmp(a, b, n));
	}
}

static void either_way(void)
{
	static uint32_t a[2000], room[512];
	static pair_t b[3000];
	for (unsigned i = 0; i < 2000; i++)
		a[i] = i * i;
	for (unsigned i = 0; i < 3000; i++)
		b[i].shorts[1] = i;
	static const unsigned as[] = { 0, 1, 511, 512, 513, 2000 }, bs[] = { 0, 1, 2, 512, 513, 3000 };
	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < 6; j++) {
			unbounded_t c = room;
			mach_msg_type_number_t cCnt = 512;
			loopback_freed = 0;
			check(either(1, a, as[i], b, bs[j], &c, &cCnt, 9) == KERN_SUCCESS && cCnt == as[i]);
			check((c == outside) == (as[i] > 512) && !memcmp(a, c, cCnt * 4));
			vm_size_t freed = (as[i] > 512 ? as[i] * 4 : 0) + (bs[j] > 512 ? bs[j] * 4 : 0);
			check(loopback_freed == freed);
			unsigned complex = as[i] > 512 || bs[j] > 512;
			check(!(loopback_request.head.msgh_bits & MACH_MSGH_BITS_COMPLEX) == !complex);
		}
	unbounded_t c = room;
	mach_msg_type_number_t cCnt = 1;
	check(either(1, a, 3, b, 0, &c, &cCnt, 9) == KERN_SUCCESS && c != room && cCnt == 3 && c[2] == 4);
}

static void memory(void)
{
	uint64_t a[2] = { 10, 20 }, b[1] = { 30 };
	memory_t e, f;
	mach_msg_type_number_t eCnt, fCnt;
	check(out_of_line(1, a, 2, TRUE, b, 1, NULL, 0, &e, &eCnt, &f, &fCnt) == KERN_SUCCESS);
	check(e == given && eCnt == 3 && f == given + 1 && fCnt == 1);
}

int main(void)
{
	loopback_server = arrays_server;
	varying_sizes();
	paddings();
	fixed_sizes();
	large_sizes();
	either_way();
	memory();
	return 0;
}
