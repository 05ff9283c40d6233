//! The kernel interface page: how a program finds it, and its words (ABI 3, 4).

use crate::syscall;
use core::sync::atomic::{AtomicU64, Ordering};
use x2::ThreadId;
use x2::kip::{self, ClockInfo, MemoryDescriptor, MemoryInfo, PageInfo, ProcessorInfo, ThreadInfo, UtcbInfo};

/// The results of the KernelInterface instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelInterface {
    /// The address of the page in this space.
    pub base: u64,
    /// ApiVersion word.
    pub api_version: u64,
    /// ApiFlags word.
    pub api_flags: u64,
    /// KernelId word.
    pub kernel_id: u64,
}

/// Executes the KernelInterface instruction (`lock; nop`). It is a slow trap, so programs execute
/// it only once.
pub fn kernel_interface() -> KernelInterface {
    let (base, api_version, api_flags, kernel_id);
    // SAFETY: the kernel changes only these four registers and reads no memory of the program.
    unsafe {
        core::arch::asm!(
            ".byte 0xf0, 0x90",
            out("rax") base, out("rcx") api_version, out("rdx") api_flags, out("rsi") kernel_id,
            options(nomem, nostack, preserves_flags)
        );
    }
    KernelInterface { base, api_version, api_flags, kernel_id }
}

/// The address of the page; 0 before [`init`].
static BASE: AtomicU64 = AtomicU64::new(0);

/// Finds the page and the entries of system calls. The start-up code of a program calls it first.
/// The values are valid in every space that has the page at this address and shares this program's
/// data.
pub(crate) fn init() {
    init_at(kernel_interface().base);
}

/// Takes the entries of system calls from the page at a known address.
pub(crate) fn init_at(base: u64) {
    // Relaxed: only one thread runs now, and starting another one orders memory accesses.
    BASE.store(base, Ordering::Relaxed);
    syscall::entry::set_all(|offset| kip().word(offset));
}

/// The kernel interface page of this space.
pub fn kip() -> Kip {
    Kip { base: BASE.load(Ordering::Relaxed) }
}

/// The kernel interface page. Its content never changes.
#[derive(Clone, Copy, Debug)]
pub struct Kip {
    base: u64,
}

impl Kip {
    /// The address of the page.
    pub fn base(self) -> u64 {
        self.base
    }

    /// The word at byte `offset`, a multiple of 8 below the page's size (see [`x2::kip`]).
    pub fn word(self, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(8) && offset < kip::SIZE as usize, "no such word in the page");
        // SAFETY: the page is mapped readable in every space that can run this code and never
        // changes; `base` is its address since `init`, and `offset` was checked.
        unsafe { ((self.base as usize + offset) as *const u64).read() }
    }

    /// The word ThreadInfo: how thread numbers are used.
    pub fn thread_info(self) -> ThreadInfo {
        ThreadInfo::from_raw(self.word(kip::THREAD_INFO))
    }

    /// The thread numbers of message-signalled interrupts.
    /// [`interrupt_message`](crate::extension::interrupt_message) gives the message of each.
    pub fn message_interrupts(self) -> core::ops::Range<u32> {
        let count = (self.word(kip::EXTENSIONS) >> kip::INTERRUPT_MESSAGES_SHIFT) as u16;
        let end = self.thread_info().system_base;
        end - u32::from(count)..end
    }

    /// The word UtcbInfo: sizes and alignment of UTCBs.
    pub fn utcb_info(self) -> UtcbInfo {
        UtcbInfo::from_raw(self.word(kip::UTCB_INFO))
    }

    /// The word PageInfo: page sizes and rights.
    pub fn page_info(self) -> PageInfo {
        PageInfo::from_raw(self.word(kip::PAGE_INFO))
    }

    /// The word ClockInfo: precision of the clock.
    pub fn clock_info(self) -> ClockInfo {
        ClockInfo::from_raw(self.word(kip::CLOCK_INFO))
    }

    /// The microseconds of the clock per tick of the time-stamp counter, times
    /// 2^[`CLOCK_SHIFT`](kip::CLOCK_SHIFT); `None` if the counter's rate is not known to be
    /// constant.
    pub fn clock_scale(self) -> Option<core::num::NonZeroU64> {
        core::num::NonZeroU64::new(self.word(kip::CLOCK_SCALE))
    }

    /// The word ProcessorInfo: how many processors there are.
    pub fn processor_info(self) -> ProcessorInfo {
        ProcessorInfo::from_raw(self.word(kip::PROCESSOR_INFO))
    }

    /// The memory descriptors, in their order: later ones override earlier ones.
    pub fn memory_descriptors(self) -> impl Iterator<Item = MemoryDescriptor> + Clone {
        let MemoryInfo { offset, count } = MemoryInfo::from_raw(self.word(kip::MEMORY_INFO));
        (0..count).map(move |index| {
            let at = offset + index * MemoryDescriptor::SIZE;
            MemoryDescriptor::from_words([self.word(at), self.word(at + 8)])
        })
    }

    /// Global id of sigma0.
    pub fn sigma0(self) -> ThreadId {
        initial_server(self, 0)
    }

    /// Global id of the root task.
    pub fn root(self) -> ThreadId {
        initial_server(self, 2)
    }
}

/// The initial servers have consecutive numbers from UserBase and version 1 (X.2 rule 10.4).
fn initial_server(kip: Kip, index: u32) -> ThreadId {
    ThreadId::interrupt(kip.thread_info().user_base + index)
}
