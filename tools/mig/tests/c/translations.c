#include "loopback.h"
#include "translations_user.h"
#include "translations_server.h"

extern boolean_t translations_server(mach_msg_header_t *, mach_msg_header_t *);
static struct object objects[10];

object_t object_of_port(mach_port_t port)
{
	objects[port] = (struct object) { port, objects[port].references + 1 };
	return &objects[port];
}

mach_port_t port_of_object(object_t object)
{
	return object->port;
}

void object_release(object_t object)
{
	object->references--;
}

static mach_port_t all_ports[] = { 4, 5 };

kern_return_t server_translated(object_t object, object_t other, server_size_t size, renamed_t plain, object_t *made,
    objects_t *all, mach_msg_type_number_t *allCnt)
{
	check(object == &objects[1] && object->references == 1 && other == &objects[2] && other->references == 1);
	check(size == -1 && plain == 6);
	*made = &objects[3];
	(*made)->port = 3;
	*all = all_ports;
	*allCnt = 2;
	return KERN_SUCCESS;
}

int main(void)
{
	loopback_server = translations_server;
	mach_port_t made = 0;
	objects_t all;
	mach_msg_type_number_t allCnt;
	check(translated(1, 2, 0xffffffff, 6, &made, &all, &allCnt) == KERN_SUCCESS);
	check(made == 3 && allCnt == 2 && all == all_ports);
	check(objects[1].references == 0 && objects[2].references == 0);
	return 0;
}
