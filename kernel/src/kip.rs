//! The kernel interface page (ABI 3, X.2 rules 10.1-10.9): one page of the image, identical in
//! every space, constant once the first user program runs.
//!
//! The image carries it with the magic word and the place and capacity of the memory descriptors,
//! because Pistachio's kickstart finds it there and fills in servers, memory and boot info before
//! the kernel runs (ABI 1.4, 1.5). Booted otherwise, the kernel writes the same itself. Then
//! [`complete`] adds what only the kernel knows.
use x2::kip::{
    API_FLAGS, API_FLAGS_VALUE, API_VERSION, API_VERSION_VALUE, BOOT_INFO, CLOCK_INFO, CLOCK_SCALE,
    ClockInfo, EXTENSIONS, INTERRUPT_MESSAGES_SHIFT, KERNEL_DESCRIPTOR_POINTER, KIP_AREA_INFO, MAGIC,
    MAGIC_VALUE, MEMORY_INFO, MemoryDescriptor, MemoryInfo, NO_ISOLATION_CLAIM, PAGE_INFO,
    PROCESSOR_DESCRIPTOR_POINTER, PROCESSOR_DESCRIPTOR_SIZE, PROCESSOR_DESCRIPTORS, PROCESSOR_INFO, PageInfo,
    ProcessorInfo, RESERVED_MEMORY_0, ROOT, SIGMA0, SIZE, SIZE_LOG2, THREAD_INFO, ThreadInfo, UTCB_INFO,
    UtcbInfo, kernel_descriptor, server,
};
use x2::{Rights, Time};

use crate::arch;
use crate::boot_cell::BootCell;
use crate::initial_servers::InitialServer;
use crate::memory::{PhysAddr, PhysRange};
use crate::sync::SEVERAL;

/// The maximum number of processors: what the page has room to describe.
pub const MAX_PROCESSORS: usize = if SEVERAL { 64 } else { 1 };
/// How many bits of a thread id the thread number has.
pub const THREAD_NUMBER_BITS: u32 = 18;

const WORDS: usize = SIZE as usize / 8;
const KERNEL_DESCRIPTOR: usize = PROCESSOR_DESCRIPTORS + MAX_PROCESSORS * PROCESSOR_DESCRIPTOR_SIZE;
const VERSION_STRING: &[u8] =
    concat!("Macadamia ", env!("CARGO_PKG_VERSION"), ", L4 X.2 for AMD64").as_bytes();
/// After the version string: its NUL and that of the empty list of feature strings, which must stay
/// empty (K1).
const MEMORY_DESCRIPTORS: usize =
    (KERNEL_DESCRIPTOR + kernel_descriptor::VERSION_STRING + VERSION_STRING.len() + 2).next_multiple_of(16);
/// How many memory descriptors fit into the page.
pub const CAPACITY: usize = (SIZE as usize - MEMORY_DESCRIPTORS) / MemoryDescriptor::SIZE;

/// Kernel id and subid of Macadamia, which no other X.2 kernel uses.
pub const KERNEL_ID: u64 = kernel_descriptor::id(0x4d, 1);
const SUPPLIER: u64 = u32::from_le_bytes(*b"MACA") as u64;

#[repr(C, align(4096))]
struct Page([u64; WORDS]);

/// The page is in a section of its own, so that the linker script puts it into the image's data
/// whether or not anything refers to it.
#[used]
#[unsafe(link_section = ".kip")]
static PAGE: BootCell<Page> = BootCell::new(Page::at_image_time());

impl Page {
    const fn at_image_time() -> Self {
        let mut words = [0; WORDS];
        words[MAGIC / 8] = MAGIC_VALUE;
        words[API_VERSION / 8] = API_VERSION_VALUE;
        words[API_FLAGS / 8] = API_FLAGS_VALUE;
        words[MEMORY_INFO / 8] = MemoryInfo { offset: MEMORY_DESCRIPTORS, count: CAPACITY }.raw();
        words[UTCB_INFO / 8] = UtcbInfo::AMD64.raw();
        // Every processor has these page sizes. The original kickstart steps through memory by the
        // smallest of these pages, and would do so for ever if there were none.
        words[PAGE_INFO / 8] = PageInfo::new(Rights::ALL, 1 << 12 | 1 << 21).raw();
        words[KIP_AREA_INFO / 8] = SIZE_LOG2 as u64;
        words[PROCESSOR_DESCRIPTOR_POINTER / 8] = PROCESSOR_DESCRIPTORS as u64;
        words[KERNEL_DESCRIPTOR_POINTER / 8] = KERNEL_DESCRIPTOR as u64;
        words[(KERNEL_DESCRIPTOR + kernel_descriptor::ID) / 8] = KERNEL_ID;
        words[(KERNEL_DESCRIPTOR + kernel_descriptor::DATE) / 8] = kernel_descriptor::date(2026, 11, 21);
        words[(KERNEL_DESCRIPTOR + kernel_descriptor::VERSION) / 8] = kernel_descriptor::version(0, 1, 0);
        words[(KERNEL_DESCRIPTOR + kernel_descriptor::SUPPLIER) / 8] = SUPPLIER;
        let mut index = 0;
        while index < VERSION_STRING.len() {
            let at = KERNEL_DESCRIPTOR + kernel_descriptor::VERSION_STRING + index;
            words[at / 8] |= (VERSION_STRING[index] as u64) << (at % 8 * 8);
            index += 1;
        }
        Self(words)
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo::from_raw(self.0[MEMORY_INFO / 8])
    }

    fn descriptor(&self, index: usize) -> MemoryDescriptor {
        let at = MEMORY_DESCRIPTORS / 8 + index * 2;
        MemoryDescriptor::from_words([self.0[at], self.0[at + 1]])
    }

    /// Removes all memory descriptors, which at image time are only announced.
    fn clear_memory(&mut self) {
        self.0[MEMORY_INFO / 8] = MemoryInfo { offset: MEMORY_DESCRIPTORS, count: 0 }.raw();
    }

    fn add_memory(&mut self, descriptor: MemoryDescriptor) -> Result<(), Full> {
        let count = self.memory_info().count;
        if count >= CAPACITY {
            return Err(Full);
        }
        let at = MEMORY_DESCRIPTORS / 8 + count * 2;
        self.0[at..at + 2].copy_from_slice(&descriptor.to_words());
        self.0[MEMORY_INFO / 8] = MemoryInfo { offset: MEMORY_DESCRIPTORS, count: count + 1 }.raw();
        Ok(())
    }

    fn server(&self, at: usize) -> InitialServer {
        let word = |offset: usize| self.0[(at + offset) / 8];
        InitialServer {
            ip: word(server::IP),
            sp: word(server::SP),
            low: word(server::LOW),
            high: word(server::HIGH),
        }
    }

    fn set_server(&mut self, at: usize, value: InitialServer) {
        for (offset, word) in [
            (server::SP, value.sp),
            (server::IP, value.ip),
            (server::LOW, value.low),
            (server::HIGH, value.high),
        ] {
            self.0[(at + offset) / 8] = word;
        }
    }

    fn complete(&mut self, facts: &Facts<'_>) {
        self.0[RESERVED_MEMORY_0 / 8] = facts.image.start.value();
        self.0[RESERVED_MEMORY_0 / 8 + 1] = facts.image.end.value();
        let precision = ClockInfo { read_precision: Time::period(1), schedule_precision: Time::period(1000) };
        self.0[CLOCK_INFO / 8] = precision.raw();
        let threads = ThreadInfo {
            number_bits: THREAD_NUMBER_BITS,
            system_base: facts.interrupts,
            user_base: facts.interrupts + ThreadInfo::KERNEL_NUMBERS,
        };
        self.0[THREAD_INFO / 8] = threads.raw();
        self.0[PAGE_INFO / 8] = PageInfo::new(facts.rights, facts.page_sizes).raw();
        let processors = ProcessorInfo {
            processors: facts.processors.len() as u32,
            descriptor_log2: PROCESSOR_DESCRIPTOR_SIZE.ilog2(),
        };
        self.0[PROCESSOR_INFO / 8] = processors.raw();
        for (index, processor) in facts.processors.iter().enumerate() {
            let at = (PROCESSOR_DESCRIPTORS + index * PROCESSOR_DESCRIPTOR_SIZE) / 8;
            self.0[at] = processor.external_khz;
            self.0[at + 1] = processor.internal_khz;
        }
        self.0[EXTENSIONS / 8] = x2::extension::VERSION
            | if facts.isolates { 0 } else { NO_ISOLATION_CLAIM }
            | u64::from(facts.messages) << INTERRUPT_MESSAGES_SHIFT;
        self.0[CLOCK_SCALE / 8] = facts.clock_scale.unwrap_or(0);
    }
}

/// There are more memory descriptors than the page has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// A processor's frequencies in kHz.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// Bus.
    pub external_khz: u64,
    /// The frequency of the core: the rate of the time-stamp counter.
    pub internal_khz: u64,
}

/// What only the kernel knows, for [`complete`].
pub struct Facts<'a> {
    /// Kernel image and boot memory.
    pub image: PhysRange,
    /// Number of interrupts: their threads have the numbers below.
    pub interrupts: u32,
    /// How many of the interrupts are message-signalled: these are the last.
    pub messages: u32,
    /// Rights that can be set independently of each other.
    pub rights: Rights,
    /// The page sizes that the processor supports, added up.
    pub page_sizes: u64,
    /// The processors, at most [`MAX_PROCESSORS`].
    pub processors: &'a [Processor],
    /// Does the processor keep user programs from reading kernel memory (K14)?
    pub isolates: bool,
    /// The word ClockScale, if programs may calculate the clock from the time-stamp counter.
    pub clock_scale: Option<u64>,
}

/// The physical address of the kernel interface page, which every space has read-only.
pub fn physical_address() -> PhysAddr {
    arch::image_to_phys(&raw const *PAGE.get())
}

/// The word at a byte offset of the page (constants of `x2::kip`).
pub fn word(offset: usize) -> u64 {
    PAGE.get().0[offset / 8]
}

/// Sets the word at a byte offset: for the system-call entries, which the entry code knows.
///
/// # Safety
/// Boot only: no user program and no other processor runs.
pub unsafe fn set_word(offset: usize, value: u64) {
    // SAFETY: the caller keeps this function's contract.
    unsafe { PAGE.get_mut().0[offset / 8] = value }
}

/// The memory descriptors; later ones override earlier ones.
pub fn memory_descriptors() -> impl Iterator<Item = MemoryDescriptor> {
    let page = PAGE.get();
    (0..page.memory_info().count.min(CAPACITY)).map(|index| page.descriptor(index))
}

/// sigma0 and the root task as a loader (kickstart, or the kernel's own boot code) described them.
pub fn servers() -> (InitialServer, InitialServer) {
    (PAGE.get().server(SIGMA0), PAGE.get().server(ROOT))
}

/// Describes servers, boot info and memory, as kickstart would have done.
///
/// # Safety
/// As for [`set_word`].
pub unsafe fn describe(
    sigma0: InitialServer,
    root: InitialServer,
    boot_info: PhysAddr,
    memory: impl IntoIterator<Item = MemoryDescriptor>,
) -> Result<(), Full> {
    // SAFETY: the caller keeps this function's contract.
    let page = unsafe { PAGE.get_mut() };
    page.set_server(SIGMA0, sigma0);
    page.set_server(ROOT, root);
    page.0[BOOT_INFO / 8] = boot_info.value();
    page.clear_memory();
    memory.into_iter().try_for_each(|descriptor| page.add_memory(descriptor))
}

/// Adds what only the kernel knows, and `memory` (what the kernel reserves) after what is described
/// already.
///
/// # Safety
/// As for [`set_word`].
pub unsafe fn complete(
    facts: &Facts<'_>,
    memory: impl IntoIterator<Item = MemoryDescriptor>,
) -> Result<(), Full> {
    // SAFETY: the caller keeps this function's contract.
    let page = unsafe { PAGE.get_mut() };
    page.complete(facts);
    memory.into_iter().try_for_each(|descriptor| page.add_memory(descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use x2::kip::MemoryKind;

    fn bytes(page: &Page) -> Vec<u8> {
        page.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// What kickstart needs in the image (ABI 1.4).
    /// Rules: ABI 1.4.
    #[test]
    fn kickstart_can_use_the_image() {
        let page = Page::at_image_time();
        assert_eq!(page.0[0], 0x4be6_344c);
        let info = page.memory_info();
        assert!(info.offset >= 0x240 && info.offset.is_multiple_of(16));
        assert!(info.count >= 64 && info.offset + info.count * MemoryDescriptor::SIZE <= SIZE as usize);
        assert_eq!(page.0[PAGE_INFO / 8], 0x20_1007);
    }

    /// Rules: 10.3.
    #[test]
    fn version_string_ends_an_empty_feature_list() {
        let bytes = bytes(&Page::at_image_time());
        let at = usize::from_le_bytes(bytes[0x18..0x20].try_into().unwrap());
        let string = &bytes[at + kernel_descriptor::VERSION_STRING..];
        assert!(string.starts_with(b"Macadamia "));
        let end = string.iter().position(|&byte| byte == 0).unwrap();
        assert_eq!(string[end + 1], 0, "no feature strings");
        assert!(at + kernel_descriptor::VERSION_STRING + end + 2 <= MEMORY_DESCRIPTORS);
    }

    /// Rules: 10.1.
    #[test]
    fn completing_fills_the_words_that_programs_read() {
        let mut page = Page::at_image_time();
        let range = PhysRange::new(PhysAddr::new(0x80_0000), PhysAddr::new(0x84_0000));
        let facts = Facts {
            image: range,
            interrupts: 24,
            messages: 8,
            rights: Rights::ALL,
            page_sizes: 0x20_1000,
            processors: &[Processor { external_khz: 1000, internal_khz: 2_000_000 }; 2],
            isolates: false,
            clock_scale: Some(77),
        };
        page.complete(&facts);
        assert_eq!(page.0[THREAD_INFO / 8], 0x0380_1812);
        assert_eq!(page.0[PAGE_INFO / 8], 0x20_1007);
        assert_eq!(page.0[PROCESSOR_INFO / 8], 5 << 60 | 1);
        assert_eq!(page.0[0x260 / 8..0x270 / 8], [1000, 2_000_000]);
        assert_eq!(page.0[EXTENSIONS / 8], 8 << 32 | 1 << 16 | 1);
        assert_eq!(page.0[CLOCK_SCALE / 8], 77);
        assert_eq!(page.0[RESERVED_MEMORY_0 / 8..][..2], [0x80_0000, 0x84_0000]);
        page.clear_memory();
        let descriptor = MemoryDescriptor::physical(MemoryKind::Reserved, 0, 0x80_0000, 0x83_ffff);
        for _ in 0..CAPACITY {
            page.add_memory(descriptor).unwrap();
        }
        assert_eq!(page.add_memory(descriptor), Err(Full));
        assert_eq!(page.descriptor(CAPACITY - 1), descriptor);
    }
}
