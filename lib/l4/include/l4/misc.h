/* Memory attributes (manual: miscellaneous). ProcessorControl and MemoryControl are in
 * <l4/arch.h>. */
#ifndef L4_MISC_H
#define L4_MISC_H

#include <l4/arch.h>

#define L4_DefaultMemory 0
#define L4_UncacheableMemory 1
#define L4_WriteCombiningMemory 2
#define L4_WriteThroughMemory 5
#define L4_WriteProtectedMemory 6
#define L4_WriteBackMemory 7

/* Gives the own mappings in an fpage one attribute; returns 1 if that worked. */
L4_INLINE L4_Word_t L4_Set_PageAttribute(L4_Fpage_t f, L4_Word_t attribute)
{
    L4_Word_t attributes[4] = { attribute, 0, 0, 0 };
    L4_LoadMR(0, L4_FpageRemoveRights(f, 7).raw);
    return L4_MemoryControl(0, attributes);
}
/* The low two bits of each of `n` fpages (1 to 64) select one of four attributes. */
L4_INLINE L4_Word_t L4_Set_PagesAttributes(L4_Word_t n, const L4_Fpage_t *fpages, const L4_Word_t *attributes)
{
    L4_Word_t i;
    for (i = 0; i < n; i++)
        L4_LoadMR((int)i, fpages[i].raw);
    return L4_MemoryControl(n - 1, attributes);
}

#endif
