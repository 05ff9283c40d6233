#ifndef ARRAYS_H
#define ARRAYS_H
#include <stdint.h>
typedef uint32_t words_t[64], five_t[5], *unbounded_t;
typedef const uint32_t *const_unbounded_t;
typedef char bytes_t[100], many_bytes_t[4100];
typedef struct { char bytes[3]; } triple_t;
typedef triple_t triples_t[8], four_triples_t[4];
typedef struct { short shorts[2]; } pair_t;
typedef pair_t *unbounded_pairs_t;
typedef const pair_t *const_unbounded_pairs_t;
typedef uint64_t *memory_t;
#endif
