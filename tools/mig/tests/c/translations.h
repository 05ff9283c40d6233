#ifndef TRANSLATIONS_H
#define TRANSLATIONS_H
#include <mach/port.h>
#include <stdint.h>
typedef struct object { mach_port_t port; int references; } *object_t;
typedef mach_port_t *objects_t;
typedef uint32_t renamed_t, user_size_t;
typedef int32_t server_size_t;
typedef uint32_t size_of_t;
object_t object_of_port(mach_port_t);
mach_port_t port_of_object(object_t);
void object_release(object_t);
#endif
