/* The kernel interface page (manual: basic kernel interface). */
#ifndef L4_KIP_H
#define L4_KIP_H

#include <l4/arch.h>

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t __padding : 16;
        L4_Word_t subid : 8;
        L4_Word_t id : 8;
        L4_Word_t __padding2 : 32;
    } x;
} L4_KernelId_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t __padding : 16;
        L4_Word_t subversion : 8;
        L4_Word_t version : 8;
        L4_Word_t __padding2 : 32;
    } x;
} L4_ApiVersion_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t ee : 2;
        L4_Word_t ww : 2;
        L4_Word_t __padding : 60;
    } x;
} L4_ApiFlags_t;

typedef struct {
    L4_Word_t n : 32;
    L4_Word_t MemDescPtr : 32;
} L4_MemoryInfo_t;

typedef struct {
    L4_Word_t low;
    L4_Word_t high;
} l4_range_t;

typedef struct {
    L4_Word_t magic;
    L4_ApiVersion_t ApiVersion;
    L4_ApiFlags_t ApiFlags;
    L4_Word_t KernelVerPtr;
    L4_Word_t __padding020[17]; /* kernel debugger, sigma0, sigma1, root task, reserved */
    L4_MemoryInfo_t MemoryInfo;
    L4_Word_t __padding0b0[2];
    l4_range_t MainMem;
    l4_range_t ReservedMem[2];
    l4_range_t DedicatedMem[5];
    L4_Word_t __padding140[2];
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t m : 10;
            L4_Word_t a : 6;
            L4_Word_t s : 6;
            L4_Word_t __padding : 42;
        } X;
    } UtcbAreaInfo;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t s : 6;
            L4_Word_t __padding : 58;
        } X;
    } KipAreaInfo;
    L4_Word_t __padding160[2];
    L4_Word_t BootInfo;
    L4_Word_t ProcDescPtr;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t ReadPrecision : 16;
            L4_Word_t SchedulePrecision : 16;
            L4_Word_t __padding : 32;
        } X;
    } ClockInfo;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t t : 8;
            L4_Word_t SystemBase : 12;
            L4_Word_t UserBase : 12;
            L4_Word_t __padding : 32;
        } X;
    } ThreadInfo;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t rwx : 3;
            L4_Word_t __padding : 7;
            L4_Word_t page_size_mask : 54;
        } X;
    } PageInfo;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t processors : 16;
            L4_Word_t __padding : 44;
            L4_Word_t s : 4;
        } X;
    } ProcessorInfo;
    L4_Word_t SpaceControl;
    L4_Word_t ThreadControl;
    L4_Word_t ProcessorControl;
    L4_Word_t MemoryControl;
    L4_Word_t Ipc;
    L4_Word_t Lipc;
    L4_Word_t Unmap;
    L4_Word_t ExchangeRegisters;
    L4_Word_t SystemClock;
    L4_Word_t ThreadSwitch;
    L4_Word_t Schedule;
    L4_Word_t __padding1f8[5];
    L4_Word_t ArchSyscall0;
    L4_Word_t ArchSyscall1;
    L4_Word_t ArchSyscall2;
    L4_Word_t ArchSyscall3;
} L4_KernelInterfacePage_t;

typedef union {
    L4_Word_t raw[4];
    struct {
        L4_Word_t ExternalFreq;
        L4_Word_t InternalFreq;
        L4_Word_t __padding[2];
    } X;
} L4_ProcDesc_t;

typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t type : 4;
        L4_Word_t t : 4;
        L4_Word_t __padding1 : 1;
        L4_Word_t v : 1;
        L4_Word_t low : 54;
        L4_Word_t __padding2 : 10;
        L4_Word_t high : 54;
    } x;
} L4_MemoryDesc_t;

#define L4_MAGIC 0x4be6344cUL

#define L4_APIVERSION_2 0x02
#define L4_APIVERSION_4 0x04
#define L4_APIVERSION_X0 0x83
#define L4_APIVERSION_X1 0x83
#define L4_APIVERSION_X2 0x84
#define L4_APIVERSION_L4SEC 0x85
#define L4_APIVERSION_N1 0x86
#define L4_APIFLAG_LE 0x00
#define L4_APIFLAG_BE 0x01
#define L4_APIFLAG_32BIT 0x00
#define L4_APIFLAG_64BIT 0x01

#define L4_UndefinedMemoryType 0x0
#define L4_ConventionalMemoryType 0x1
#define L4_ReservedMemoryType 0x2
#define L4_DedicatedMemoryType 0x3
#define L4_SharedMemoryType 0x4
#define L4_BootLoaderSpecificMemoryType 0xe
#define L4_ArchitectureSpecificMemoryType 0xf

L4_INLINE void *L4_GetKernelInterface(void)
{
    L4_Word_t version, flags, id;
    return L4_KernelInterface(&version, &flags, &id);
}
L4_INLINE L4_Word_t L4_ApiVersion(void)
{
    L4_Word_t version, flags, id;
    (void)L4_KernelInterface(&version, &flags, &id);
    return version;
}
L4_INLINE L4_Word_t L4_ApiFlags(void)
{
    L4_Word_t version, flags, id;
    (void)L4_KernelInterface(&version, &flags, &id);
    return flags;
}
L4_INLINE L4_Word_t L4_KernelId(void)
{
    L4_Word_t version, flags, id;
    (void)L4_KernelInterface(&version, &flags, &id);
    return id;
}

L4_INLINE L4_KernelInterfacePage_t *l4_page(void *page) { return (L4_KernelInterfacePage_t *)page; }

/* Word `n` of the kernel descriptor: id, generation date, version, supplier, version string. */
L4_INLINE L4_Word_t *l4_kernel_descriptor(void *page, L4_Word_t n)
{
    return (L4_Word_t *)((char *)page + l4_page(page)->KernelVerPtr) + n;
}
L4_INLINE void L4_KernelGenDate(void *KernelInterface, L4_Word_t *year, L4_Word_t *month, L4_Word_t *day)
{
    L4_Word_t date = *l4_kernel_descriptor(KernelInterface, 1);
    *day = date & 0x1f;
    *month = date >> 5 & 0xf;
    *year = 2000 + (date >> 9 & 0x7f);
}
L4_INLINE L4_Word_t L4_KernelVersion(void *KernelInterface) { return *l4_kernel_descriptor(KernelInterface, 2); }
L4_INLINE L4_Word_t L4_KernelSupplier(void *KernelInterface) { return *l4_kernel_descriptor(KernelInterface, 3); }
L4_INLINE char *L4_KernelVersionString(void *KernelInterface)
{
    return (char *)l4_kernel_descriptor(KernelInterface, 4);
}

/* Feature string `num`, counted from 0; null after the last. */
L4_INLINE char *L4_Feature(void *KernelInterface, L4_Word_t num)
{
    char *string = L4_KernelVersionString(KernelInterface);
    for (;;) {
        while (*string)
            string++;
        string++;
        if (!*string)
            return 0;
        if (num-- == 0)
            return string;
    }
}
L4_INLINE L4_Bool_t L4_HasFeature(const char *feature_name)
{
    void *page = L4_GetKernelInterface();
    L4_Word_t num;
    const char *feature;
    for (num = 0; (feature = L4_Feature(page, num)) != 0; num++) {
        L4_Word_t i = 0;
        while (feature[i] && feature[i] == feature_name[i])
            i++;
        if (feature[i] == feature_name[i])
            return 1;
    }
    return 0;
}

L4_INLINE L4_Word_t L4_NumProcessors(void *KernelInterface)
{
    return l4_page(KernelInterface)->ProcessorInfo.X.processors + 1;
}
L4_INLINE L4_Word_t L4_NumMemoryDescriptors(void *KernelInterface) { return l4_page(KernelInterface)->MemoryInfo.n; }
L4_INLINE L4_Word_t L4_PageSizeMask(void *KernelInterface)
{
    return l4_page(KernelInterface)->PageInfo.raw & ~(L4_Word_t)0x3ff;
}
L4_INLINE L4_Word_t L4_PageRights(void *KernelInterface) { return l4_page(KernelInterface)->PageInfo.X.rwx; }
L4_INLINE L4_Word_t L4_ThreadIdBits(void *KernelInterface) { return l4_page(KernelInterface)->ThreadInfo.X.t; }
L4_INLINE L4_Word_t L4_ThreadIdSystemBase(void *KernelInterface)
{
    return l4_page(KernelInterface)->ThreadInfo.X.SystemBase;
}
L4_INLINE L4_Word_t L4_ThreadIdUserBase(void *KernelInterface)
{
    return l4_page(KernelInterface)->ThreadInfo.X.UserBase;
}
L4_INLINE L4_Word_t L4_ReadPrecision(void *KernelInterface)
{
    return l4_page(KernelInterface)->ClockInfo.X.ReadPrecision;
}
L4_INLINE L4_Word_t L4_SchedulePrecision(void *KernelInterface)
{
    return l4_page(KernelInterface)->ClockInfo.X.SchedulePrecision;
}
L4_INLINE L4_Word_t L4_UtcbAreaSizeLog2(void *KernelInterface)
{
    return l4_page(KernelInterface)->UtcbAreaInfo.X.s;
}
L4_INLINE L4_Word_t L4_UtcbAreaSize(void *KernelInterface)
{
    return (L4_Word_t)1 << L4_UtcbAreaSizeLog2(KernelInterface);
}
L4_INLINE L4_Word_t L4_UtcbAlignmentLog2(void *KernelInterface)
{
    return l4_page(KernelInterface)->UtcbAreaInfo.X.a;
}
L4_INLINE L4_Word_t L4_UtcbSize(void *KernelInterface)
{
    return l4_page(KernelInterface)->UtcbAreaInfo.X.m << L4_UtcbAlignmentLog2(KernelInterface);
}
L4_INLINE L4_Word_t L4_KipAreaSizeLog2(void *KernelInterface) { return l4_page(KernelInterface)->KipAreaInfo.X.s; }
L4_INLINE L4_Word_t L4_KipAreaSize(void *KernelInterface)
{
    return (L4_Word_t)1 << L4_KipAreaSizeLog2(KernelInterface);
}
L4_INLINE L4_Word_t L4_BootInfo(void *KernelInterface) { return l4_page(KernelInterface)->BootInfo; }

L4_INLINE L4_MemoryDesc_t *L4_MemoryDesc(void *KernelInterface, L4_Word_t num)
{
    L4_MemoryInfo_t info = l4_page(KernelInterface)->MemoryInfo;
    return num < info.n ? (L4_MemoryDesc_t *)((char *)KernelInterface + info.MemDescPtr) + num : 0;
}
L4_INLINE L4_Bool_t L4_IsMemoryDescVirtual(L4_MemoryDesc_t *m) { return m->x.v; }
/* The types of boot loader and architecture come with their subtype in bits 4 to 7. */
L4_INLINE L4_Word_t L4_MemoryDescType(L4_MemoryDesc_t *m)
{
    return m->raw[0] & (m->x.type >= L4_BootLoaderSpecificMemoryType ? 0xff : 0xf);
}
L4_INLINE L4_Word_t L4_MemoryDescLow(L4_MemoryDesc_t *m) { return m->raw[0] & ~(L4_Word_t)0x3ff; }
L4_INLINE L4_Word_t L4_MemoryDescHigh(L4_MemoryDesc_t *m) { return m->raw[1] | 0x3ff; }

L4_INLINE L4_ProcDesc_t *L4_ProcDesc(void *KernelInterface, L4_Word_t cpu)
{
    L4_KernelInterfacePage_t *page = l4_page(KernelInterface);
    if (cpu >= L4_NumProcessors(KernelInterface))
        return 0;
    return (L4_ProcDesc_t *)((char *)page + page->ProcDescPtr + (cpu << page->ProcessorInfo.X.s));
}
L4_INLINE L4_Word_t L4_ProcDescExternalFreq(L4_ProcDesc_t *p) { return p->X.ExternalFreq; }
L4_INLINE L4_Word_t L4_ProcDescInternalFreq(L4_ProcDesc_t *p) { return p->X.InternalFreq; }

#ifdef __cplusplus
static inline void *L4_KernelInterface(void) { return L4_GetKernelInterface(); }
static inline L4_Bool_t L4_IsVirtual(L4_MemoryDesc_t *m) { return L4_IsMemoryDescVirtual(m); }
static inline L4_Word_t L4_Type(L4_MemoryDesc_t *m) { return L4_MemoryDescType(m); }
static inline L4_Word_t L4_Low(L4_MemoryDesc_t *m) { return L4_MemoryDescLow(m); }
static inline L4_Word_t L4_High(L4_MemoryDesc_t *m) { return L4_MemoryDescHigh(m); }
static inline L4_Word_t L4_ExternalFreq(L4_ProcDesc_t *p) { return L4_ProcDescExternalFreq(p); }
static inline L4_Word_t L4_InternalFreq(L4_ProcDesc_t *p) { return L4_ProcDescInternalFreq(p); }
#endif

#endif
