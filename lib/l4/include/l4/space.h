/* Address spaces: unmapping (manual: address spaces). SpaceControl is in <l4/arch.h>. */
#ifndef L4_SPACE_H
#define L4_SPACE_H

#include <l4/arch.h>

L4_INLINE L4_Bool_t L4_WasReferenced(L4_Fpage_t f) { return (f.raw & L4_Readable) != 0; }
L4_INLINE L4_Bool_t L4_WasWritten(L4_Fpage_t f) { return (f.raw & L4_Writable) != 0; }
L4_INLINE L4_Bool_t L4_WaseXecuted(L4_Fpage_t f) { return (f.raw & L4_eXecutable) != 0; }

/* Unmaps `n` fpages (1 to 64), or flushes them; they come back with the access status in their
 * rights. */
L4_INLINE void l4_unmap_all(L4_Word_t n, L4_Fpage_t *fpages, L4_Word_t flush)
{
    L4_Word_t i;
    if (n == 0)
        return;
    for (i = 0; i < n; i++)
        L4_LoadMR((int)i, fpages[i].raw);
    L4_Unmap((n - 1) | flush << 6);
    for (i = 0; i < n; i++)
        L4_StoreMR((int)i, &fpages[i].raw);
}
L4_INLINE void L4_UnmapFpages(L4_Word_t n, L4_Fpage_t *fpages) { l4_unmap_all(n, fpages, 0); }
L4_INLINE void L4_FlushFpages(L4_Word_t n, L4_Fpage_t *fpages) { l4_unmap_all(n, fpages, 1); }
L4_INLINE L4_Fpage_t L4_UnmapFpage(L4_Fpage_t f)
{
    L4_UnmapFpages(1, &f);
    return f;
}
L4_INLINE L4_Fpage_t L4_Flush(L4_Fpage_t f)
{
    L4_FlushFpages(1, &f);
    return f;
}
/* Reads and resets the access status; revokes nothing. */
L4_INLINE L4_Fpage_t L4_GetStatus(L4_Fpage_t f) { return L4_UnmapFpage(L4_FpageRemoveRights(f, 7)); }

#ifdef __cplusplus
static inline L4_Fpage_t L4_Unmap(L4_Fpage_t f) { return L4_UnmapFpage(f); }
static inline void L4_Unmap(L4_Word_t n, L4_Fpage_t *fpages) { L4_UnmapFpages(n, fpages); }
static inline void L4_Flush(L4_Word_t n, L4_Fpage_t *fpages) { L4_FlushFpages(n, fpages); }
#endif

#endif
