#pragma once
#include <mach/message.h>
typedef int words_t[64], masks_t[32], *names_t;
typedef char bytes_t[101], name_t[128], path_t[1024];
typedef vm_offset_t pointer_t;
typedef mach_port_t *ports_t, handlers_t[32], three_ports_t[3], small_ports_t[4], *any_ports_t;
typedef short five_t[5];
typedef struct { char bytes[3]; } triple_t;
typedef triple_t triples_t[5];
typedef int *fixed_memory_t;
typedef struct { int number; } widget_t;
widget_t widget_of(int);
int number_of(widget_t);
void forget(widget_t);
