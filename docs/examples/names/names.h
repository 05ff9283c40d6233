/* The types of the interface. */
#ifndef NAMES_H
#define NAMES_H

#define NAME_BYTES 64

typedef char port_name_t[NAME_BYTES];
typedef const char *const_port_name_t;

#endif
