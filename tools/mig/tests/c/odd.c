#include "loopback.h"
#include "odd_user.h"
#include "odd_server.h"

extern boolean_t odd_server(mach_msg_header_t *, mach_msg_header_t *);

kern_return_t server_triples(mach_port_t port, const triples_t a, mach_msg_type_number_t aCnt,
    const_many_triples_t b, mach_msg_type_number_t bCnt, uint32_t c, triples_t d, mach_msg_type_number_t *dCnt,
    many_triples_t *e, mach_msg_type_number_t *eCnt)
{
	(void) port;
	check(c == 5 && *dCnt == 6 && *eCnt == 682);
	memcpy(d, a, aCnt * 3);
	*dCnt = aCnt;
	memcpy(*e, b, bCnt * 3);
	*eCnt = bCnt;
	return KERN_SUCCESS;
}

kern_return_t server_pages(mach_port_t port, page_t a, page_t *b)
{
	(void) port;
	*b = a + 1;
	return KERN_SUCCESS;
}

int main(void)
{
	loopback_server = odd_server;
	static triple_t a[6], b[682], e[682];
	triples_t d;
	for (unsigned i = 0; i < 682; i++)
		b[i] = (triple_t) { { i, i >> 8, 3 } };
	for (unsigned i = 0; i < 6; i++)
		a[i] = (triple_t) { { i, 1, 2 } };
	for (unsigned n = 0; n <= 6; n++) {
		many_triples_t many = e;
		mach_msg_type_number_t dCnt = 6, eCnt = 682;
		check(triples(1, a, n, b, 682 - n, 5, d, &dCnt, &many, &eCnt) == KERN_SUCCESS);
		check(dCnt == n && eCnt == 682 - n && many == e);
		check(!memcmp(a, d, n * 3) && !memcmp(b, e, eCnt * 3));
	}
	uint64_t page[64];
	page_t got;
	check(pages(1, page, &got) == KERN_SUCCESS && got == page + 1);
	return 0;
}
