#ifndef ODD_H
#define ODD_H
#include <stdint.h>
typedef struct { char bytes[3]; } triple_t;
typedef triple_t triples_t[6], *many_triples_t;
typedef const triple_t *const_many_triples_t;
typedef uint64_t *page_t;
#endif
