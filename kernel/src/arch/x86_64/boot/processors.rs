//! Starting the other processors (issue of the start-up messages: Intel SDM 3A, "MP Initialization Protocol").
//!
//! They come up in parallel: the first processor sends each its messages, then waits for all. One that does not come in
//! time is reported, reset again and left out. Those that came wait until [`release`].
use core::arch::global_asm;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::super::instructions::read_time_stamp;
use super::super::{cpu_local, extended_state, features, idt, interrupts, layout, local_apic, paging, time};
use crate::arch::entry;
use crate::boot::acpi::Tables;
use crate::boot::{BootInformation, MemoryKind};
use crate::kip::MAX_PROCESSORS;
use crate::memory::{Account, PAGE_SIZE, PhysAddr, Use, frame};
use crate::{config, log};

global_asm!(include_str!("processors.S"));

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
}

// A processor's start, in `processor_states`; 2 stands for one that runs, on its own stack (the assembly sets it).

/// Not to be started.
const ABSENT: u32 = 0;
/// The messages are sent.
const AWAITED: u32 = 1;
/// It has everything it needs.
const READY: u32 = 3;

// What the assembly reads.
#[unsafe(no_mangle)]
static processor_count: AtomicU32 = AtomicU32::new(1);
#[unsafe(no_mangle)]
static processor_ids: [AtomicU32; MAX_PROCESSORS] = [const { AtomicU32::new(0) }; MAX_PROCESSORS];
#[unsafe(no_mangle)]
static processor_states: [AtomicU32; MAX_PROCESSORS] = [const { AtomicU32::new(ABSENT) }; MAX_PROCESSORS];
#[unsafe(no_mangle)]
static processor_stacks: [AtomicU64; MAX_PROCESSORS] = [const { AtomicU64::new(0) }; MAX_PROCESSORS];
#[unsafe(no_mangle)]
static processor_root: AtomicU64 = AtomicU64::new(0);
#[unsafe(no_mangle)]
static processor_trampoline: AtomicU32 = AtomicU32::new(0);

/// Processors that run, with numbers below; 0 while others are being started.
static RUNNING: AtomicU32 = AtomicU32::new(1);
/// The kernel is complete: threads can run.
static RELEASED: AtomicBool = AtomicBool::new(false);
/// The latest time stamp seen by any processor, while they are compared.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// How often a processor has come to a point where all meet.
static ARRIVALS: AtomicU32 = AtomicU32::new(0);
/// The farthest that a processor was behind another.
static BEHIND: AtomicU64 = AtomicU64::new(0);

/// Microseconds between the reset and the start-up message, and between the first of these and the second.
const RESET_TIME: u64 = 10_000;
const SECOND_MESSAGE: u64 = 200;
/// Microseconds after which a processor is given up. An emulator on a busy machine takes its time.
const PATIENCE: u64 = 5_000_000;
/// Readings of the time-stamp counter by each processor.
const READINGS: u32 = 1000;
/// Local APIC ids from here on cannot be read from CPUID leaf 1.
const WIDE_ID: u32 = 255;

/// How many processors run threads: their numbers are below.
pub fn count() -> u32 {
    // Relaxed: set before the first thread runs.
    RUNNING.load(Ordering::Relaxed)
}

/// The local APIC id of processor `number`.
pub fn local_apic_id(number: u32) -> u32 {
    processor_ids[number as usize].load(Ordering::Relaxed)
}

/// Starts the processors that the firmware's tables name, as many as are configured. Called once, by the first processor,
/// when the kernel's allocator works; boot memory may still be taken.
pub(in crate::arch::x86_64) fn start(boot: &BootInformation, tables: &Tables) {
    let own = local_apic::id();
    processor_ids[0].store(own, Ordering::Relaxed);
    let wanted = (config::get().processors as usize).min(MAX_PROCESSORS);
    let others = tables.processors().iter().copied().filter(|&id| id != own);
    let ignored = others.clone().count().saturating_sub(wanted - 1) + tables.processors_beyond;
    if ignored > 0 {
        log::info!("processors: {ignored} of the firmware's tables are not used (processors={wanted})");
    }
    let mut number = 1;
    for id in others.take(wanted - 1) {
        if id >= WIDE_ID {
            log::warning!("processor with local APIC id {id} is skipped: the id is too large");
            continue;
        }
        processor_ids[number].store(id, Ordering::Relaxed);
        number += 1;
    }
    if number == 1 {
        return;
    }
    let Some(page) = trampoline_page(boot) else {
        log::warning!("no memory below 640 KiB: the other processors cannot be started");
        return;
    };
    for (other, top) in processor_stacks.iter().enumerate().take(number).skip(1) {
        // SAFETY: once for each number; the frames are the kernel's for ever.
        top.store(unsafe { cpu_local::prepare(other as u32, allocate_page) }, Ordering::Relaxed);
    }
    processor_count.store(number as u32, Ordering::Relaxed);
    processor_root.store(paging::kernel_root().value(), Ordering::Relaxed);
    processor_trampoline.store(page.value() as u32, Ordering::Relaxed);
    let copy = layout::phys_to_virt(page);
    let mut saved = [0; TRAMPOLINE_ROOM];
    // SAFETY: the page is memory that nothing uses while this runs; the first megabyte is in the direct map.
    unsafe {
        copy.copy_to_nonoverlapping(saved.as_mut_ptr(), TRAMPOLINE_ROOM);
        place_trampoline(copy, page);
    }
    RUNNING.store(0, Ordering::Relaxed);
    for state in processor_states.iter().take(number).skip(1) {
        // Release: who sees itself awaited sees all of the above.
        state.store(AWAITED, Ordering::Release);
    }
    send_messages(number, page);
    let came = await_all(number);
    // SAFETY: as above; a processor that did not come was reset and does not execute the copy.
    unsafe { copy.copy_from_nonoverlapping(saved.as_ptr(), TRAMPOLINE_ROOM) }
    RUNNING.store(came, Ordering::Relaxed);
    compare_time_stamps();
    log::info!("processors: {came} run");
    match BEHIND.load(Ordering::Relaxed) {
        0 => {}
        behind => log::warning!("time-stamp counters differ by up to {behind} ticks: the clock may jump"),
    }
}

/// Lets the other processors run threads.
pub fn release() {
    // Release: they see the complete kernel.
    RELEASED.store(true, Ordering::Release);
}

/// More than the trampoline's size.
const TRAMPOLINE_ROOM: usize = 256;

/// The highest page of memory below 640 KiB.
fn trampoline_page(boot: &BootInformation) -> Option<PhysAddr> {
    const CONVENTIONAL_END: u64 = 640 << 10;
    let ranges = boot.memory().iter().filter(|range| range.kind == MemoryKind::Available);
    let last_page = |start: u64, end: u64| {
        let page = (end.min(CONVENTIONAL_END) & !(PAGE_SIZE - 1)).checked_sub(PAGE_SIZE)?;
        (page >= start && page > 0).then_some(PhysAddr::new(page))
    };
    ranges.filter_map(|range| last_page(range.start, range.end)).max()
}

// Offsets of the words of the trampoline to which the page's address or the image's displacement is added.
const TABLE_BASE: usize = 42;
const ENTRY_32: usize = 48;
const ENTRY_64: usize = 56;
const DISPLACEMENT: usize = 64;

/// # Safety
/// `copy` is where the memory at `page` is reached, and nobody else uses it.
unsafe fn place_trampoline(copy: *mut u8, page: PhysAddr) {
    let start = &raw const trampoline_start;
    let size = &raw const trampoline_end as usize - start as usize;
    assert!(size <= TRAMPOLINE_ROOM);
    let displacement = layout::displacement() as u32;
    // SAFETY: the caller's promise; the offsets are those of words of the trampoline.
    unsafe {
        copy.copy_from_nonoverlapping(start, size);
        for (offset, value) in [
            (TABLE_BASE, page.value() as u32),
            (ENTRY_32, displacement),
            (ENTRY_64, displacement),
            (DISPLACEMENT, displacement),
        ] {
            let word = copy.add(offset).cast::<u32>();
            word.write_unaligned(word.read_unaligned().wrapping_add(value));
        }
    }
}

fn wait(microseconds: u64) {
    let end = time::clock() + microseconds;
    while time::clock() < end {
        spin_loop();
    }
}

fn is_awaited(number: usize) -> bool {
    processor_states[number].load(Ordering::Acquire) == AWAITED
}

fn send_messages(number: usize, page: PhysAddr) {
    let id = |other: usize| processor_ids[other].load(Ordering::Relaxed);
    (1..number).for_each(|other| local_apic::send_reset(id(other)));
    wait(RESET_TIME);
    (1..number).for_each(|other| local_apic::send_start(id(other), page));
    wait(SECOND_MESSAGE);
    (1..number).filter(|&other| is_awaited(other)).for_each(|other| local_apic::send_start(id(other), page));
}

/// Waits until every processor is ready or given up; returns how many run, which then have the numbers below.
fn await_all(number: usize) -> u32 {
    let end = time::clock() + PATIENCE;
    for other in 1..number {
        let current = &processor_states[other];
        while current.load(Ordering::Acquire) != READY {
            spin_loop();
            if time::clock() < end {
                continue;
            }
            let id = processor_ids[other].load(Ordering::Relaxed);
            log::warning!("processor with local APIC id {id} does not start: it and later ones are not used");
            // Numbers have no gaps: what came up behind the gap is reset, too. Whoever begins late finds itself absent and
            // stops; whoever has begun already, how far ever, is reset.
            for late in other..number {
                processor_states[late].store(ABSENT, Ordering::Relaxed);
                local_apic::send_reset(processor_ids[late].load(Ordering::Relaxed));
            }
            return other as u32;
        }
    }
    number as u32
}

fn allocate_page() -> PhysAddr {
    match frame::alloc(Account::KERNEL, Use::Kernel) {
        Ok(frame) => frame.into_raw(),
        Err(_) => panic!("cannot start the system: no memory for the processors' stacks (kmem= makes more)"),
    }
}

/// The first Rust code of another processor, on its own stack and the final page tables.
#[unsafe(no_mangle)]
extern "C" fn processor_entry(number: u32) -> ! {
    // SAFETY: once on this processor; its area was prepared.
    unsafe {
        idt::load();
        cpu_local::load(number);
    }
    features::enable();
    extended_state::enable();
    interrupts::enable();
    entry::init();
    processor_states[number as usize].store(READY, Ordering::Release);
    compare_time_stamps();
    while !RELEASED.load(Ordering::Acquire) {
        spin_loop();
    }
    entry::enter()
}

/// Every running processor reads its time-stamp counter in turn with the others: a reading below one that another has
/// already published shows a counter that is behind.
fn compare_time_stamps() {
    // Relaxed: only the number of processors is learnt from it.
    while RUNNING.load(Ordering::Relaxed) == 0 {
        spin_loop();
    }
    meet(1);
    for _ in 0..READINGS {
        let latest = LATEST.load(Ordering::Acquire);
        // SAFETY: every 64-bit processor has LFENCE. It keeps the counter from being read before `latest`.
        unsafe { core::arch::x86_64::_mm_lfence() };
        let now = read_time_stamp();
        LATEST.fetch_max(now, Ordering::AcqRel);
        if now < latest {
            BEHIND.fetch_max(latest - now, Ordering::Relaxed);
        }
        spin_loop();
    }
    meet(2);
}

/// Waits until every running processor has come here for the `time`th time.
fn meet(time: u32) {
    // AcqRel and Acquire: what each did before, all see afterwards.
    ARRIVALS.fetch_add(1, Ordering::AcqRel);
    while ARRIVALS.load(Ordering::Acquire) < time * RUNNING.load(Ordering::Relaxed) {
        spin_loop();
    }
}
