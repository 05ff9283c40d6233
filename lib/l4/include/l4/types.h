/* Words, thread ids, fpages, clock, time: the types of the L4 X.2 generic programming interface for
 * C and C++.
 *
 * Every type is a union: `raw` is the word (or words) of the interface, the other members are its
 * fields. Names that begin with `l4_` belong to these headers and are not part of the interface. */
#ifndef L4_TYPES_H
#define L4_TYPES_H

#define L4_64BIT 1
#define L4_LITTLE_ENDIAN 1
#define L4_ARCH_AMD64 1
#define L4_INLINE static inline __attribute__((unused))
#define L4_BITS_PER_WORD 64

typedef unsigned char L4_Word8_t;
typedef unsigned short L4_Word16_t;
typedef unsigned int L4_Word32_t;
typedef unsigned long L4_Word64_t;
typedef unsigned long L4_Word_t;
typedef signed long L4_SignedWord_t;
typedef L4_Word_t L4_Bool_t;

/* Error codes of all calls but Ipc (L4_ErrorCode). */
enum {
    L4_ErrOk = 0,
    L4_ErrNoPrivilege = 1,
    L4_ErrInvalidThread = 2,
    L4_ErrInvalidSpace = 3,
    L4_ErrInvalidScheduler = 4,
    L4_ErrInvalidParam = 5,
    L4_ErrUtcbArea = 6,
    L4_ErrKipArea = 7,
    L4_ErrNoMem = 8
};

/* Fpages. */

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t rwx : 3;
        L4_Word_t reserved : 1;
        L4_Word_t s : 6;
        L4_Word_t b : 54;
    } X;
} L4_Fpage_t;

#define L4_eXecutable 0x01
#define L4_Writable 0x02
#define L4_Readable 0x04
#define L4_NoAccess 0x00
#define L4_ReadeXecOnly 0x05
#define L4_ReadWriteOnly 0x06
#define L4_FullyAccessible 0x07

L4_INLINE L4_Fpage_t l4_fpage(L4_Word_t raw)
{
    L4_Fpage_t f;
    f.raw = raw;
    return f;
}

#define L4_Nilpage (l4_fpage(0))
#define L4_CompleteAddressSpace (l4_fpage(0x10))

L4_INLINE L4_Fpage_t L4_FpageLog2(L4_Word_t BaseAddress, int FpageSize)
{
    L4_Word_t size = (L4_Word_t)FpageSize & 0x3f;
    /* Base bits below 1024 are other fields; the kernel ignores those below the size. */
    return l4_fpage((BaseAddress & ~(L4_Word_t)0x3ff) | size << 4);
}

/* A size that is no power of two is rounded up to the next. */
L4_INLINE L4_Fpage_t L4_Fpage(L4_Word_t BaseAddress, L4_Word_t FpageSize)
{
    int log2 = 0;
    while (log2 < 63 && ((L4_Word_t)1 << log2) < FpageSize)
        log2++;
    return L4_FpageLog2(BaseAddress, log2);
}

L4_INLINE L4_Bool_t L4_IsNilFpage(L4_Fpage_t f) { return f.raw == 0; }
L4_INLINE L4_Word_t L4_SizeLog2(L4_Fpage_t f) { return f.raw >> 4 & 0x3f; }

/* 0 for nilpage; the complete address space has no size in a word and gives 2, as its size field
 * says. */
L4_INLINE L4_Word_t L4_Size(L4_Fpage_t f)
{
    return L4_SizeLog2(f) == 0 ? 0 : (L4_Word_t)1 << L4_SizeLog2(f);
}

L4_INLINE L4_Word_t L4_Address(L4_Fpage_t f)
{
    L4_Word_t low = ((L4_Word_t)1 << L4_SizeLog2(f)) - 1;
    return f.raw & ~(low | 0x3ff);
}

L4_INLINE L4_Word_t L4_Rights(L4_Fpage_t f) { return f.raw & 7; }
L4_INLINE L4_Fpage_t L4_FpageAddRights(L4_Fpage_t f, L4_Word_t rwx) { return l4_fpage(f.raw | (rwx & 7)); }
L4_INLINE L4_Fpage_t L4_FpageRemoveRights(L4_Fpage_t f, L4_Word_t rwx) { return l4_fpage(f.raw & ~(rwx & 7)); }
L4_INLINE L4_Fpage_t L4_Set_Rights(L4_Fpage_t *f, L4_Word_t rwx)
{
    return *f = L4_FpageAddRights(L4_FpageRemoveRights(*f, 7), rwx);
}
L4_INLINE L4_Fpage_t L4_FpageAddRightsTo(L4_Fpage_t *f, L4_Word_t rwx) { return *f = L4_FpageAddRights(*f, rwx); }
L4_INLINE L4_Fpage_t L4_FpageRemoveRightsFrom(L4_Fpage_t *f, L4_Word_t rwx)
{
    return *f = L4_FpageRemoveRights(*f, rwx);
}

/* IO fpages: size field 2, then log2 of the number of ports and the first port. */
L4_INLINE L4_Fpage_t L4_IoFpageLog2(L4_Word_t BasePort, int FpageSize)
{
    return l4_fpage((BasePort & 0xffff) << 16 | ((L4_Word_t)FpageSize & 0x3f) << 10 | 2 << 4);
}
L4_INLINE L4_Fpage_t L4_IoFpage(L4_Word_t BasePort, L4_Word_t FpageSize)
{
    int log2 = 0;
    while (log2 < 16 && ((L4_Word_t)1 << log2) < FpageSize)
        log2++;
    return L4_IoFpageLog2(BasePort, log2);
}
L4_INLINE L4_Bool_t L4_IsIoFpage(L4_Fpage_t f) { return L4_SizeLog2(f) == 2; }
L4_INLINE L4_Word_t L4_IoFpagePort(L4_Fpage_t f) { return f.raw >> 16 & 0xffff; }
L4_INLINE L4_Word_t L4_IoFpageSizeLog2(L4_Fpage_t f) { return f.raw >> 10 & 0x3f; }
L4_INLINE L4_Word_t L4_IoFpageSize(L4_Fpage_t f) { return (L4_Word_t)1 << L4_IoFpageSizeLog2(f); }

/* Thread ids. */

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t version : 32;
        L4_Word_t thread_no : 32;
    } X;
} L4_GthreadId_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t __zeros : 6;
        L4_Word_t local_id : 58;
    } X;
} L4_LthreadId_t;

typedef union {
    L4_Word_t raw;
    L4_GthreadId_t global;
    L4_LthreadId_t local;
} L4_ThreadId_t;

L4_INLINE L4_ThreadId_t l4_thread(L4_Word_t raw)
{
    L4_ThreadId_t t;
    t.raw = raw;
    return t;
}

#define L4_nilthread (l4_thread(0))
#define L4_anythread (l4_thread(~(L4_Word_t)0))
#define L4_anylocalthread (l4_thread(~(L4_Word_t)0x3f))

L4_INLINE L4_ThreadId_t L4_GlobalId(L4_Word_t threadno, L4_Word_t version)
{
    return l4_thread(threadno << 32 | (version & 0xffffffff));
}
L4_INLINE L4_Word_t L4_Version(L4_ThreadId_t t) { return t.raw & 0xffffffff; }
L4_INLINE L4_Word_t L4_ThreadNo(L4_ThreadId_t t) { return t.raw >> 32; }
L4_INLINE L4_Bool_t L4_IsThreadEqual(L4_ThreadId_t l, L4_ThreadId_t r) { return l.raw == r.raw; }
L4_INLINE L4_Bool_t L4_IsThreadNotEqual(L4_ThreadId_t l, L4_ThreadId_t r) { return l.raw != r.raw; }
L4_INLINE L4_Bool_t L4_IsNilThread(L4_ThreadId_t t) { return t.raw == 0; }
L4_INLINE L4_Bool_t L4_IsLocalId(L4_ThreadId_t t) { return (t.raw & 0x3f) == 0; }
L4_INLINE L4_Bool_t L4_IsGlobalId(L4_ThreadId_t t) { return (t.raw & 0x3f) != 0; }

/* Clock: microseconds. */

typedef union {
    L4_Word64_t raw;
    struct {
        L4_Word32_t low;
        L4_Word32_t high;
    } X;
} L4_Clock_t;

L4_INLINE L4_Clock_t l4_clock(L4_Word64_t raw)
{
    L4_Clock_t c;
    c.raw = raw;
    return c;
}

L4_INLINE L4_Clock_t L4_ClockAddUsec(L4_Clock_t c, L4_Word64_t usec) { return l4_clock(c.raw + usec); }
L4_INLINE L4_Clock_t L4_ClockSubUsec(L4_Clock_t c, L4_Word64_t usec) { return l4_clock(c.raw - usec); }
L4_INLINE L4_Bool_t L4_IsClockEarlier(L4_Clock_t l, L4_Clock_t r) { return l.raw < r.raw; }
L4_INLINE L4_Bool_t L4_IsClockLater(L4_Clock_t l, L4_Clock_t r) { return l.raw > r.raw; }
L4_INLINE L4_Bool_t L4_IsClockEqual(L4_Clock_t l, L4_Clock_t r) { return l.raw == r.raw; }
L4_INLINE L4_Bool_t L4_IsClockNotEqual(L4_Clock_t l, L4_Clock_t r) { return l.raw != r.raw; }

/* Time values. */

typedef union {
    L4_Word16_t raw;
    struct {
        L4_Word16_t m : 10;
        L4_Word16_t e : 5;
        L4_Word16_t a : 1;
    } period;
    struct {
        L4_Word16_t m : 10;
        L4_Word16_t c : 1;
        L4_Word16_t e : 4;
        L4_Word16_t a : 1;
    } point;
} L4_Time_t;

L4_INLINE L4_Time_t l4_time(L4_Word_t raw)
{
    L4_Time_t t;
    t.raw = (L4_Word16_t)raw;
    return t;
}

#define L4_Never (l4_time(0))
#define L4_ZeroTime (l4_time(0x0400))

/* The shortest representable period that is not shorter than `microseconds`; at most the longest
 * period. */
L4_INLINE L4_Time_t L4_TimePeriod(L4_Word64_t microseconds)
{
    L4_Word_t e;
    if (microseconds == 0)
        return L4_ZeroTime;
    for (e = 0; e < 32; e++) {
        L4_Word_t unit = (L4_Word_t)1 << e;
        L4_Word_t m = microseconds / unit + (microseconds % unit != 0);
        if (m < 1024)
            return l4_time(e << 10 | m);
    }
    return L4_Never;
}

/* The time point for `at`, seen from `now`; never if it is too far away (about 33.5 s) to be
 * one. */
L4_INLINE L4_Time_t l4_time_point(L4_Clock_t now, L4_Clock_t at)
{
    L4_Word_t e;
    if (at.raw < now.raw)
        at = now;
    for (e = 0; e < 16; e++)
        if ((at.raw - now.raw) >> e < 1024)
            return l4_time(0x8000 | e << 11 | (at.raw >> (e + 10) & 1) << 10 | (at.raw >> e & 0x3ff));
    return L4_Never;
}

#ifdef __cplusplus
static inline L4_Fpage_t operator+(const L4_Fpage_t &f, L4_Word_t rwx) { return L4_FpageAddRights(f, rwx); }
static inline L4_Fpage_t operator-(const L4_Fpage_t &f, L4_Word_t rwx) { return L4_FpageRemoveRights(f, rwx); }
static inline L4_Fpage_t operator+=(L4_Fpage_t &f, L4_Word_t rwx) { return f = f + rwx; }
static inline L4_Fpage_t operator-=(L4_Fpage_t &f, L4_Word_t rwx) { return f = f - rwx; }
static inline L4_Bool_t operator==(const L4_ThreadId_t &l, const L4_ThreadId_t &r) { return l.raw == r.raw; }
static inline L4_Bool_t operator!=(const L4_ThreadId_t &l, const L4_ThreadId_t &r) { return l.raw != r.raw; }
static inline L4_Clock_t operator+(const L4_Clock_t &l, int r) { return l4_clock(l.raw + r); }
static inline L4_Clock_t operator+(const L4_Clock_t &l, L4_Word64_t r) { return l4_clock(l.raw + r); }
static inline L4_Clock_t operator+(const L4_Clock_t &l, L4_Clock_t r) { return l4_clock(l.raw + r.raw); }
static inline L4_Clock_t operator-(const L4_Clock_t &l, int r) { return l4_clock(l.raw - r); }
static inline L4_Clock_t operator-(const L4_Clock_t &l, L4_Word64_t r) { return l4_clock(l.raw - r); }
static inline L4_Clock_t operator-(const L4_Clock_t &l, L4_Clock_t r) { return l4_clock(l.raw - r.raw); }
static inline L4_Bool_t operator<(const L4_Clock_t &l, const L4_Clock_t &r) { return l.raw < r.raw; }
static inline L4_Bool_t operator>(const L4_Clock_t &l, const L4_Clock_t &r) { return l.raw > r.raw; }
static inline L4_Bool_t operator<=(const L4_Clock_t &l, const L4_Clock_t &r) { return l.raw <= r.raw; }
static inline L4_Bool_t operator>=(const L4_Clock_t &l, const L4_Clock_t &r) { return l.raw >= r.raw; }
static inline L4_Bool_t operator==(const L4_Clock_t &l, const L4_Clock_t &r) { return l.raw == r.raw; }
static inline L4_Bool_t operator!=(const L4_Clock_t &l, const L4_Clock_t &r) { return l.raw != r.raw; }
#endif

#endif
