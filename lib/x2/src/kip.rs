//! The kernel interface page (ABI 3, X.2 rules 10.1-10.9): byte offsets of its words and their bit
//! layouts.

use crate::{Time, bits};

/// Size of the page, and log2 of it.
pub const SIZE: u64 = 4096;
/// Binary logarithm of [`SIZE`].
pub const SIZE_LOG2: u32 = 12;
/// Word 0: 'L', '4', 0xe6, 'K', and zeros (which say that the page has 64-bit words).
pub const MAGIC_VALUE: u64 = 0x4be6_344c;
/// ApiVersion: X.2 revision 5.
pub const API_VERSION_VALUE: u64 = 0x8405_0000;
/// ApiFlags: little endian, 64 bits.
pub const API_FLAGS_VALUE: u64 = 4;

/// Byte offset: magic.
pub const MAGIC: usize = 0x000;
/// Byte offset: ApiVersion.
pub const API_VERSION: usize = 0x008;
/// Byte offset: ApiFlags.
pub const API_FLAGS: usize = 0x010;
/// Byte offset: offset of the kernel descriptor.
pub const KERNEL_DESCRIPTOR_POINTER: usize = 0x018;
/// Byte offset: kernel debugger: four words, see [`server`].
pub const KDEBUG: usize = 0x020;
/// Byte offset: sigma0: four words, see [`server`].
pub const SIGMA0: usize = 0x040;
/// Byte offset: sigma1: four words, see [`server`].
pub const SIGMA1: usize = 0x060;
/// Byte offset: root task: four words, see [`server`].
pub const ROOT: usize = 0x080;
/// Byte offset: MemoryInfo, see [`MemoryInfo`].
pub const MEMORY_INFO: usize = 0x0a8;
/// Byte offset: lowest and (next word) highest address of reserved memory 0.
pub const RESERVED_MEMORY_0: usize = 0x0d0;
/// Byte offset: UtcbInfo, see [`UtcbInfo`].
pub const UTCB_INFO: usize = 0x150;
/// Byte offset: KipAreaInfo: bits 0..=5 log2 of the size.
pub const KIP_AREA_INFO: usize = 0x158;
/// Byte offset: physical address of the boot info, 0 = none.
pub const BOOT_INFO: usize = 0x170;
/// Byte offset: offset of the first processor descriptor.
pub const PROCESSOR_DESCRIPTOR_POINTER: usize = 0x178;
/// Byte offset: ClockInfo, see [`ClockInfo`].
pub const CLOCK_INFO: usize = 0x180;
/// Byte offset: ThreadInfo, see [`ThreadInfo`].
pub const THREAD_INFO: usize = 0x188;
/// Byte offset: PageInfo, see [`PageInfo`].
pub const PAGE_INFO: usize = 0x190;
/// Byte offset: ProcessorInfo, see [`ProcessorInfo`].
pub const PROCESSOR_INFO: usize = 0x198;
/// Byte offset: entry address of SpaceControl.
pub const SPACE_CONTROL: usize = 0x1a0;
/// Byte offset: entry address of ThreadControl.
pub const THREAD_CONTROL: usize = 0x1a8;
/// Byte offset: entry address of ProcessorControl.
pub const PROCESSOR_CONTROL: usize = 0x1b0;
/// Byte offset: entry address of MemoryControl.
pub const MEMORY_CONTROL: usize = 0x1b8;
/// Byte offset: entry address of Ipc.
pub const IPC: usize = 0x1c0;
/// Byte offset: entry address of Lipc.
pub const LIPC: usize = 0x1c8;
/// Byte offset: entry address of Unmap.
pub const UNMAP: usize = 0x1d0;
/// Byte offset: entry address of ExchangeRegisters.
pub const EXCHANGE_REGISTERS: usize = 0x1d8;
/// Byte offset: entry address of SystemClock.
pub const SYSTEM_CLOCK: usize = 0x1e0;
/// Byte offset: entry address of ThreadSwitch.
pub const THREAD_SWITCH: usize = 0x1e8;
/// Byte offset: entry address of Schedule.
pub const SCHEDULE: usize = 0x1f0;
/// Byte offset: entry address of the extension SpaceOptions (K1), 0 = not there.
pub const SPACE_OPTIONS: usize = 0x1f8;
/// Byte offset: entry address of the extension MapControl (K1), 0 = not there.
pub const MAP_CONTROL: usize = 0x200;
/// Byte offset: entry address of the extension ThreadState (K1), 0 = not there.
pub const THREAD_STATE: usize = 0x208;
/// Byte offset: entry address of the extension Notify (K1), 0 = not there.
pub const NOTIFY: usize = 0x210;
/// Byte offset: extension word (K1): bits 0..=15 version, bit 16 no isolation claim, bits 32..=47
/// how many of the interrupts below SystemBase, the last, are message-signalled.
pub const EXTENSIONS: usize = 0x218;
/// Byte offset: the clock's microseconds per tick of the time-stamp counter, times
/// 2^[`CLOCK_SHIFT`]. The clock is the counter times this word, shifted down. 0: programs cannot
/// rely on the counter.
pub const CLOCK_SCALE: usize = 0x220;
/// Byte offset: where the processor descriptors of this kernel begin.
pub const PROCESSOR_DESCRIPTORS: usize = 0x240;

/// Bit of the [`EXTENSIONS`] word: the processor does not isolate user programs from kernel memory
/// (K14).
pub const NO_ISOLATION_CLAIM: u64 = 1 << 16;

/// Where in the [`EXTENSIONS`] word the number of message-signalled interrupts begins; it has 16
/// bits.
pub const INTERRUPT_MESSAGES_SHIFT: u32 = 32;

/// See [`CLOCK_SCALE`].
pub const CLOCK_SHIFT: u32 = 44;

/// Byte offsets within the four words that describe an initial server.
pub mod server {
    /// Initial stack pointer.
    pub const SP: usize = 0;
    /// Initial instruction pointer.
    pub const IP: usize = 8;
    /// Lowest address of the loaded image.
    pub const LOW: usize = 16;
    /// First address after the loaded image.
    pub const HIGH: usize = 24;
}

/// Size of a processor descriptor: 4 words: external frequency, internal frequency (kHz), 0, 0.
pub const PROCESSOR_DESCRIPTOR_SIZE: usize = 32;

/// Byte offsets within the kernel descriptor.
pub mod kernel_descriptor {
    /// KernelId: bits 24..=31 id, 16..=23 subid.
    pub const ID: usize = 0x00;
    /// Generation date: bits 0..=4 day, 5..=8 month, 9..=15 year - 2000.
    pub const DATE: usize = 0x08;
    /// Version: bits 24..=31, 16..=23, 0..=15.
    pub const VERSION: usize = 0x10;
    /// Supplier: four characters.
    pub const SUPPLIER: usize = 0x18;
    /// Version string, NUL terminated, then the feature strings, ended by an empty one.
    pub const VERSION_STRING: usize = 0x20;

    /// KernelId word.
    pub const fn id(id: u8, subid: u8) -> u64 {
        (id as u64) << 24 | (subid as u64) << 16
    }

    /// Generation date word; `month` and `day` count from 1, `year` from 0.
    pub const fn date(year: u32, month: u32, day: u32) -> u64 {
        ((year - 2000) << 9 | month << 5 | day) as u64
    }

    /// Version word.
    pub const fn version(version: u8, subversion: u8, subsubversion: u16) -> u64 {
        (version as u64) << 24 | (subversion as u64) << 16 | subsubversion as u64
    }
}

/// MemoryInfo: bits 0..=31 number of memory descriptors, 32..=63 byte offset of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryInfo {
    /// Byte offset of the first descriptor in the page.
    pub offset: usize,
    /// Number of descriptors.
    pub count: usize,
}

impl MemoryInfo {
    /// The fields of the word.
    pub const fn from_raw(raw: u64) -> Self {
        Self { offset: bits(raw, 32, 63) as usize, count: bits(raw, 0, 31) as usize }
    }

    /// The word.
    pub const fn raw(self) -> u64 {
        (self.offset as u64) << 32 | self.count as u64 & 0xffff_ffff
    }
}

/// Type of memory that a memory descriptor tells of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryKind {
    /// Conventional memory: RAM for any thread that asks.
    Conventional,
    /// Reserved by the kernel.
    Reserved,
    /// Dedicated: given only to a thread that asks for the address.
    Dedicated,
    /// Shared: given to every thread that asks for the address (device memory).
    Shared,
    /// Boot loader: images, modules, boot info.
    BootLoader,
    /// Architecture-specific: of the type that the firmware reports.
    Architecture,
    /// A type without meaning.
    Undefined,
}

impl MemoryKind {
    const fn from_code(code: u64) -> Self {
        match code {
            1 => Self::Conventional,
            2 => Self::Reserved,
            3 => Self::Dedicated,
            4 => Self::Shared,
            0xe => Self::BootLoader,
            0xf => Self::Architecture,
            _ => Self::Undefined,
        }
    }

    const fn code(self) -> u64 {
        match self {
            Self::Undefined => 0,
            Self::Conventional => 1,
            Self::Reserved => 2,
            Self::Dedicated => 3,
            Self::Shared => 4,
            Self::BootLoader => 0xe,
            Self::Architecture => 0xf,
        }
    }
}

/// Subtypes of [`MemoryKind::BootLoader`].
pub mod boot_loader {
    /// Boot info or a copy of the boot loader's tables.
    pub const INFO: u8 = 1;
    /// Image of an initial server.
    pub const SERVER: u8 = 2;
    /// Another module.
    pub const MODULE: u8 = 3;
}

/// One memory descriptor: two words. Later descriptors override earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryDescriptor {
    /// Type.
    pub kind: MemoryKind,
    /// Subtype, 0..=15.
    pub subtype: u8,
    /// Virtual (part of the user address space), not physical memory.
    pub is_virtual: bool,
    /// First address, a multiple of 1024.
    pub low: u64,
    /// Last address, the one before a multiple of 1024.
    pub last: u64,
}

impl MemoryDescriptor {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// Physical memory `low ..= last`, widened to multiples of 1024 bytes.
    pub const fn physical(kind: MemoryKind, subtype: u8, low: u64, last: u64) -> Self {
        Self { kind, subtype, is_virtual: false, low: low & !0x3ff, last: last | 0x3ff }
    }

    /// The descriptor in two words of the page.
    pub const fn from_words(words: [u64; 2]) -> Self {
        Self {
            kind: MemoryKind::from_code(bits(words[0], 0, 3)),
            subtype: bits(words[0], 4, 7) as u8,
            is_virtual: words[0] & 1 << 9 != 0,
            low: words[0] & !0x3ff,
            last: words[1] | 0x3ff,
        }
    }

    /// The two words.
    pub const fn to_words(self) -> [u64; 2] {
        let head = (self.is_virtual as u64) << 9 | (self.subtype as u64 & 0xf) << 4 | self.kind.code();
        [self.low & !0x3ff | head, self.last & !0x3ff]
    }
}

/// UtcbInfo: bits 0..=9 m, 10..=15 a, 16..=21 s: UTCBs of m * 2^a bytes, aligned to 2^a, in areas
/// of at least 2^s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtcbInfo {
    /// m: size multiplier.
    pub multiplier: u64,
    /// a: log2 of the alignment.
    pub align_log2: u32,
    /// s: log2 of the smallest UTCB area.
    pub area_log2: u32,
}

impl UtcbInfo {
    /// The values on AMD64: UTCBs of 1024 bytes, areas from 4096 on.
    pub const AMD64: Self = Self { multiplier: 1, align_log2: 10, area_log2: 12 };

    /// The fields of the word.
    pub const fn from_raw(raw: u64) -> Self {
        Self {
            multiplier: bits(raw, 0, 9),
            align_log2: bits(raw, 10, 15) as u32,
            area_log2: bits(raw, 16, 21) as u32,
        }
    }

    /// The word.
    pub const fn raw(self) -> u64 {
        (self.area_log2 as u64) << 16 | (self.align_log2 as u64) << 10 | self.multiplier
    }

    /// Size of a UTCB in bytes.
    pub const fn utcb_size(self) -> u64 {
        self.multiplier << self.align_log2
    }
}

/// ClockInfo: bits 0..=15 ReadPrecision, 16..=31 SchedulePrecision, both periods (X.2 rules
/// 2.3-2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockInfo {
    /// Smallest difference that two readings of the clock can show.
    pub read_precision: Time,
    /// Largest lateness of a wake-up while nothing of higher priority runs.
    pub schedule_precision: Time,
}

impl ClockInfo {
    /// The fields of the word.
    pub const fn from_raw(raw: u64) -> Self {
        Self {
            read_precision: Time::from_raw(raw as u16),
            schedule_precision: Time::from_raw((raw >> 16) as u16),
        }
    }

    /// The word.
    pub const fn raw(self) -> u64 {
        (self.schedule_precision.raw() as u64) << 16 | self.read_precision.raw() as u64
    }
}

/// ThreadInfo: bits 0..=7 t, 8..=19 SystemBase, 20..=31 UserBase (X.2 rule 10.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadInfo {
    /// t: thread numbers have this many bits.
    pub number_bits: u32,
    /// First thread number that is not an interrupt's.
    pub system_base: u32,
    /// First thread number of user threads: sigma0; then sigma1 and the root task.
    pub user_base: u32,
}

impl ThreadInfo {
    /// Thread numbers of kernel threads, between SystemBase and UserBase.
    pub const KERNEL_NUMBERS: u32 = 32;

    /// The fields of the word.
    pub const fn from_raw(raw: u64) -> Self {
        Self {
            number_bits: bits(raw, 0, 7) as u32,
            system_base: bits(raw, 8, 19) as u32,
            user_base: bits(raw, 20, 31) as u32,
        }
    }

    /// The word.
    pub const fn raw(self) -> u64 {
        (self.user_base as u64) << 20 | (self.system_base as u64) << 8 | self.number_bits as u64
    }
}

/// PageInfo: bits 0..=2 rights that can be set independently, bit i of 10..=63: pages of 2^i bytes
/// exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageInfo(u64);

impl PageInfo {
    /// The word with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// `rights` and the page sizes in the mask `sizes` (a sum of powers of two).
    pub const fn new(rights: crate::Rights, sizes: u64) -> Self {
        Self(sizes & !0x3ff | rights.bits())
    }

    /// The word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Rights that can be controlled independently.
    pub const fn rights(self) -> crate::Rights {
        crate::Rights::from_bits(self.0)
    }

    /// Sum of the page sizes.
    pub const fn size_mask(self) -> u64 {
        self.0 & !0x3ff
    }
}

/// ProcessorInfo: bits 0..=15 number of processors - 1, 60..=63 log2 of the descriptor size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessorInfo {
    /// Number of processors.
    pub processors: u32,
    /// Log2 of the size of a processor descriptor.
    pub descriptor_log2: u32,
}

impl ProcessorInfo {
    /// The fields of the word.
    pub const fn from_raw(raw: u64) -> Self {
        Self { processors: bits(raw, 0, 15) as u32 + 1, descriptor_log2: bits(raw, 60, 63) as u32 }
    }

    /// The word.
    pub const fn raw(self) -> u64 {
        (self.descriptor_log2 as u64) << 60 | (self.processors as u64 - 1) & 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rights;

    /// Words read from a running system (ABI 3).
    /// Rules: ABI 3.
    #[test]
    fn measured_words() {
        assert_eq!(UtcbInfo::AMD64.raw(), 0x000c_2801);
        assert_eq!(UtcbInfo::from_raw(0xc2801).utcb_size(), 1024);
        let threads = ThreadInfo { number_bits: 18, system_base: 24, user_base: 56 };
        assert_eq!(threads.raw(), 0x0380_1812);
        assert_eq!(ThreadInfo::from_raw(0x0300_1012).user_base, 48);
        assert_eq!(PageInfo::new(Rights::ALL, 0x20_1000).raw(), 0x20_1007);
        assert_eq!(MemoryInfo { offset: 0x2e0, count: 20 }.raw(), 0x2e0_0000_0014);
        assert_eq!(ProcessorInfo { processors: 4, descriptor_log2: 5 }.raw(), 0x5000_0000_0000_0003);
        assert_eq!(kernel_descriptor::id(4, 2), 0x0402_0000);
        assert_eq!(kernel_descriptor::version(0, 4, 0), 0x0004_0000);
        assert_eq!(kernel_descriptor::date(2014, 3, 9), 14 << 9 | 3 << 5 | 9);
    }

    /// Rules: 10.8.
    #[test]
    fn memory_descriptors() {
        let words = [0x9fc00 | 0x2f, 0x9fc00];
        let descriptor = MemoryDescriptor::from_words(words);
        assert_eq!(descriptor.kind, MemoryKind::Architecture);
        assert_eq!((descriptor.subtype, descriptor.is_virtual), (2, false));
        assert_eq!((descriptor.low, descriptor.last), (0x9fc00, 0x9ffff));
        assert_eq!(descriptor.to_words(), words);
        let all = MemoryDescriptor::physical(MemoryKind::Shared, 0, 0, u64::MAX);
        assert_eq!(all.to_words(), [4, !0x3ff]);
        assert_eq!(MemoryDescriptor::from_words(all.to_words()), all);
        let user = MemoryDescriptor { is_virtual: true, ..all };
        assert!(MemoryDescriptor::from_words(user.to_words()).is_virtual);
    }

    /// Rules: 2.3.
    #[test]
    fn clock_info() {
        let clock = ClockInfo { read_precision: Time::period(1), schedule_precision: Time::period(100) };
        assert_eq!(clock.raw(), 0x0064_0001);
        assert_eq!(ClockInfo::from_raw(clock.raw()), clock);
    }
}
