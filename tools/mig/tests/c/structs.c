#include "loopback.h"
#include "structs_user.h"
#include "structs_server.h"

extern boolean_t structs_server(mach_msg_header_t *, mach_msg_header_t *);

kern_return_t server_structs(mach_port_t port, bytes3_t a, mixed_t b, wide_t c, nested_t *d, large_t *e, label_t *f)
{
	(void) port;
	check(a.c == 3 && b.a == -2 && b.b == 4 && c.a == 1ull << 50 && c.b == 5);
	d->a = c;
	d->b = a;
	for (unsigned i = 0; i < 700; i++)
		e->words[i] = i;
	check(!strcmp(f->bytes, "before"));
	strcpy(f->bytes, "after");
	return KERN_SUCCESS;
}

static larger_t seen;

kern_return_t server_larger(mach_port_t port, larger_t a, uint32_t b)
{
	(void) port;
	check(b == 17);
	seen = a;
	return MIG_NO_REPLY;
}

kern_return_t server_many(mach_port_t port, const_many_t a, mach_msg_type_number_t aCnt, many_t *b,
    mach_msg_type_number_t *bCnt)
{
	(void) port;
	check(*bCnt >= aCnt);
	memcpy(*b, a, aCnt * sizeof *a);
	*bCnt = aCnt;
	return KERN_SUCCESS;
}

kern_return_t server_strings(mach_port_t port, const_name_t a, const_path_t b, const_short_string_t c, name_t d,
    version_t e, path_t f)
{
	(void) port;
	strcpy(d, a);
	snprintf(e, sizeof(version_t), "%s %s %s", a, b, c);
	strcpy(f, b);
	return KERN_SUCCESS;
}

int main(void)
{
	loopback_server = structs_server;
	nested_t d;
	static large_t e;
	label_t f = { "before" };
	wide_t c = { 1ull << 50, 5 };
	check(structs(1, (bytes3_t) { 1, 2, 3 }, (mixed_t) { -2, 4 }, c, &d, &e, &f) == KERN_SUCCESS);
	check(d.a.a == 1ull << 50 && d.b.b == 2 && e.words[699] == 699 && !strcmp(f.bytes, "after"));
	static larger_t large = { "x" };
	large.bytes[4999] = 'y';
	check(larger(1, large, 17) == MACH_MSG_SUCCESS && seen.bytes[0] == 'x' && seen.bytes[4999] == 'y');

	wide_t room[200], some[3] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
	many_t got = room;
	mach_msg_type_number_t count = 200;
	check(many(1, some, 3, &got, &count) == KERN_SUCCESS && count == 3 && got == room && got[2].b == 6);

	name_t name;
	version_t version;
	path_t path;
	static const char longest[] = "0123456789012345678901234567890123456789";
	for (unsigned n = 0; n < 40; n++) {
		char text[64];
		strcpy(text, longest);
		text[n] = 0;
		check(strings(1, "a name", text, "short", name, version, path) == KERN_SUCCESS);
		check(!strcmp(name, "a name") && !strcmp(path, text) && !strncmp(version, "a name ", 7));
	}
	return 0;
}
