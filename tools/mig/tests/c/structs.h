#ifndef STRUCTS_H
#define STRUCTS_H
#include <stdint.h>
typedef struct { char a, b, c; } bytes3_t;
typedef struct { short a; char b; } mixed_t;
#pragma pack(push, 4)
#ifdef NARROW
typedef struct { uint64_t a; short b; } wide_t;
#endif
#pragma pack(pop)
#ifndef NARROW
typedef struct { uint64_t a; short b; } wide_t;
#endif
typedef struct { wide_t a; bytes3_t b; } nested_t;
typedef struct { uint32_t words[700]; } large_t;
typedef struct { char bytes[5000]; } larger_t;
typedef struct { char bytes[32]; } label_t;
typedef wide_t *many_t;
typedef const wide_t *const_many_t;
typedef char name_t[32], path_t[40], version_t[512], short_string_t[20];
typedef const char *const_name_t, *const_path_t, *const_version_t, *const_short_string_t;
#endif
