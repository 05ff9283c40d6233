//! The registers of x87, SSE and AVX. Never switched lazily (K14): a thread that has used them has
//! an area, which is written whenever the processor leaves the thread and read when it comes back.
//! While a thread without an area runs, CR0.TS is set (its first use is exception 7) and the
//! registers hold the initial state.
use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::{align_of, size_of};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use super::debug_registers::load_program_breakpoints;
use super::features::{self, Features};
use super::instructions::{cpuid, read_cr0, write_cr0};
use crate::arch::ProgramBreakpoints;
use crate::arch::extended_image::{
    AVX, CONTROL_WORD, EXTENDED_STATE_HEADER_END, ExtendedImage, LARGEST_EXTENDED_STATE, MXCSR, MXCSR_OFFSET,
    X87_SSE,
};
use crate::log;
use crate::memory::{Account, OutOfMemory, PhysAddr, Slab, Use};
use crate::thread::ThreadRef;
use crate::{arch, memory};

const LARGEST: usize = LARGEST_EXTENDED_STATE;
const LEGACY: u32 = 512;
/// CR0.TS.
pub(super) const TASK_SWITCHED: u64 = 1 << 3;

/// Where an area has the thread's breakpoints: neither FXSAVE nor XSAVE writes these bytes, nor
/// reads them back. So threads without extended registers pay nothing for breakpoints when the
/// processor goes to another thread.
const BREAKPOINTS: Range<usize> = 464..512;
const _: () = assert!(size_of::<ProgramBreakpoints>() == BREAKPOINTS.end - BREAKPOINTS.start);
const _: () = assert!(BREAKPOINTS.start.is_multiple_of(align_of::<ProgramBreakpoints>()));

/// A thread's extended registers, in XSAVE's standard format (FXSAVE's on processors without
/// XSAVE), and its [`BREAKPOINTS`].
#[repr(C, align(64))]
pub struct ExtendedState(UnsafeCell<[u8; LARGEST]>);

// SAFETY: an area belongs to one thread and is touched only by that thread's home processor.
unsafe impl Sync for ExtendedState {}

static SLAB: Slab = Slab::new(Use::ExtendedState, LARGEST as u32);
/// What XSAVE and XRSTOR handle; 0 = the processor has only FXSAVE.
pub(super) static COMPONENTS: AtomicU64 = AtomicU64::new(0);
pub(super) static INITIAL: ExtendedState = ExtendedState::initial();

impl ExtendedState {
    const fn initial() -> Self {
        Self(UnsafeCell::new(*ExtendedImage::new().bytes()))
    }

    /// The place of the thread's breakpoints, which are zero in a new area. Only the thread's home
    /// processor touches it; saving and restoring the registers does not.
    #[inline]
    fn breakpoints(&self) -> *mut ProgramBreakpoints {
        self.0.get().cast::<u8>().wrapping_add(BREAKPOINTS.start).cast()
    }

    fn save(&self) {
        let area = self.0.get();
        let components = COMPONENTS.load(Ordering::Relaxed);
        // SAFETY: the area is large enough for all components and aligned; CR0.TS is clear (the
        // callers' invariant).
        unsafe {
            if components == 0 {
                asm!("fxsave64 [{}]", in(reg) area, options(nostack, preserves_flags));
            } else {
                asm!("xsave64 [{}]", in(reg) area, in("eax") components as u32, in("edx") 0,
                     options(nostack, preserves_flags));
            }
        }
    }

    fn restore(&self) {
        let area = self.0.get();
        let components = COMPONENTS.load(Ordering::Relaxed);
        // SAFETY: the area holds what `save` wrote, or the initial image, so restoring cannot
        // fault; CR0.TS is clear.
        unsafe {
            if components == 0 {
                asm!("fxrstor64 [{}]", in(reg) area, options(nostack, preserves_flags));
            } else {
                asm!("xrstor64 [{}]", in(reg) area, in("eax") components as u32, in("edx") 0,
                     options(nostack, preserves_flags));
            }
        }
    }
}

fn allow_use(allowed: bool) {
    let cr0 = read_cr0() & !TASK_SWITCHED;
    // SAFETY: the bit only decides whether the extended registers can be used.
    unsafe { write_cr0(if allowed { cr0 } else { cr0 | TASK_SWITCHED }) }
}

/// Finds out which components there are, and enables them on the first processor.
pub(super) fn init() {
    if features::has(Features::XSAVE) {
        COMPONENTS.store(X87_SSE | if features::has(Features::AVX) { AVX } else { 0 }, Ordering::Relaxed);
    } else {
        SLAB.set_size(LEGACY);
    }
    enable();
    let components = COMPONENTS.load(Ordering::Relaxed);
    if components == 0 {
        log::debug!("extended state: {LEGACY} bytes, FXSAVE");
    } else {
        let size = cpuid(0xd, 0).ebx;
        assert!(size as usize <= LARGEST, "the extended state has an unknown format");
        log::debug!("extended state: components {components:#x}, {size} bytes, XSAVE");
    }
}

/// Enables the components on this processor; its registers hold the initial state then, and no
/// thread may use them.
pub(super) fn enable() {
    let components = COMPONENTS.load(Ordering::Relaxed);
    if components != 0 {
        // SAFETY: CR4.OSXSAVE is set and the processor has these components.
        unsafe {
            asm!("xsetbv", in("ecx") 0, in("eax") components as u32, in("edx") 0,
                 options(nomem, nostack, preserves_flags));
        }
    }
    allow_use(true);
    INITIAL.restore();
    allow_use(false);
}

/// An area with the initial state, charged to `account`.
pub fn allocate_extended_state(account: Account) -> Result<&'static ExtendedState, OutOfMemory> {
    let address = SLAB.alloc(account)?;
    let area = arch::phys_to_virt(address);
    // SAFETY: the slab gave memory of this size and alignment, which is the caller's alone from
    // here on.
    unsafe {
        area.cast::<u16>().write(CONTROL_WORD);
        area.add(MXCSR_OFFSET).cast::<u32>().write(MXCSR);
        Ok(&*area.cast::<ExtendedState>())
    }
}

/// The components that threads can use.
pub fn extended_components() -> u64 {
    COMPONENTS.load(Ordering::Relaxed).max(X87_SSE)
}

/// Bytes of a whole image.
pub fn extended_state_size() -> usize {
    if extended_components() & AVX != 0 { LARGEST_EXTENDED_STATE } else { EXTENDED_STATE_HEADER_END }
}

/// The size of an area: without XSAVE it has no header.
fn area_size() -> usize {
    if COMPONENTS.load(Ordering::Relaxed) == 0 { LEGACY as usize } else { extended_state_size() }
}

/// An image of an area whose thread's registers this processor does not hold.
pub fn read_extended_state(state: &'static ExtendedState) -> ExtendedImage {
    let mut image = ExtendedImage::new();
    let size = area_size();
    // SAFETY: the area has `area_size` bytes, and nothing writes to it while its thread is not
    // loaded.
    let area = unsafe { core::slice::from_raw_parts(state.0.get().cast::<u8>(), size) };
    image.bytes_mut()[..size].copy_from_slice(area);
    image.bytes_mut()[BREAKPOINTS].fill(0);
    if size == LEGACY as usize {
        image.set_components(X87_SSE);
    }
    image
}

/// Sets an area, whose thread's registers this processor does not hold, from an image that is valid
/// here.
pub fn write_extended_state(state: &'static ExtendedState, image: &ExtendedImage) {
    let size = area_size();
    // SAFETY: the area has `area_size` bytes, and nothing else uses it while its thread is not
    // loaded.
    let area = unsafe { core::slice::from_raw_parts_mut(state.0.get().cast::<u8>(), size) };
    let (before, after) = (..BREAKPOINTS.start, BREAKPOINTS.end..size);
    area[before].copy_from_slice(&image.bytes()[before]);
    area[after.clone()].copy_from_slice(&image.bytes()[after]);
}

/// The breakpoints of the thread that the area belongs to.
pub fn read_breakpoints(state: &'static ExtendedState) -> ProgramBreakpoints {
    // SAFETY: see `ExtendedState::breakpoints`.
    unsafe { state.breakpoints().read() }
}

/// Sets them. The processor must not hold the thread's registers, unless only the status changes.
pub fn write_breakpoints(state: &'static ExtendedState, breakpoints: &ProgramBreakpoints) {
    // SAFETY: see `ExtendedState::breakpoints`.
    unsafe { state.breakpoints().write(*breakpoints) }
}

/// Whether breakpoints are enabled.
#[inline]
fn has_breakpoints(state: &'static ExtendedState) -> bool {
    // SAFETY: see `ExtendedState::breakpoints`.
    unsafe { (*state.breakpoints()).control != 0 }
}

/// Returns an area. Its thread must not be the one whose registers this processor holds (switch
/// away from it first).
pub fn free_extended_state(state: &'static ExtendedState, account: Account) {
    let address: PhysAddr = arch::virt_to_phys(state);
    // SAFETY: the area came from the slab, and its thread gives up its only reference.
    unsafe { SLAB.free(address, account) }
}

/// The current thread, which had no area, uses its registers for the first time: they hold the
/// initial state already.
pub fn enter_extended_state(_state: &'static ExtendedState) {
    allow_use(true);
}

/// The processor leaves thread `from` for thread `to`. Between two threads without an area this
/// does nothing.
#[inline]
pub(super) fn switch_extended_state(from: Option<ThreadRef>, to: Option<ThreadRef>) {
    let (from, thread) = (from.and_then(|from| from.extended_state.get()), to);
    let to = to.and_then(|to| to.extended_state.get());
    if let Some(from) = from {
        from.save();
    }
    match (from, to) {
        (None, None) => {}
        (None, Some(to)) => {
            allow_use(true);
            to.restore();
        }
        (Some(_), Some(to)) => to.restore(),
        (Some(_), None) => {
            INITIAL.restore();
            allow_use(false);
        }
    }
    if from.is_some_and(has_breakpoints) || to.is_some_and(has_breakpoints) {
        load_program_breakpoints(thread);
    }
}

const _: () = assert!(LARGEST <= memory::PAGE_SIZE as usize && LARGEST.is_multiple_of(64));
