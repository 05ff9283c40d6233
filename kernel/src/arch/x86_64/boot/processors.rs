//! Starting the other processors (sending of the start-up messages: Intel SDM 3A, "MP
//! Initialization Protocol").
//!
//! They come up in parallel: the first processor sends each candidate its messages, then waits for
//! all. One that does not come in time is reported, reset again and left out. Those that came get
//! the numbers from 1 on, and then the stacks and data of that number; with these they wait until
//! [`release`].
use core::arch::global_asm;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::super::features::Features;
use super::super::instructions::{msr, read_msr, read_time_stamp, write_msr};
use super::super::local_apic::LOCAL_APIC;
use super::super::{cpu_local, extended_state, features, idt, interrupts, layout, paging, time};
use crate::arch::entry;
use crate::boot::acpi::Tables;
use crate::boot::candidates::Candidates;
use crate::boot::time_stamps::{Comparison, Counter, Differences};
use crate::boot::{BootInformation, MemoryKind};
use crate::kip::MAX_PROCESSORS;
use crate::memory::{Account, PAGE_SIZE, PhysAddr, Use, frame, node};
use crate::{config, log};

global_asm!(include_str!("processors.S"));

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
}

// States of a processor's start, in `candidate_states`.

/// The processor is not to be started.
const ABSENT: u32 = 0;
/// The start-up messages were sent; the processor has not answered yet.
const AWAITED: u32 = 1;
/// The processor runs, without a stack, and waits for its number (the assembly sets this).
const CAME: u32 = 2;

// These statics are read by the assembly. Candidates are in the order of the firmware's tables,
// without the first processor.
#[unsafe(no_mangle)]
static candidate_count: AtomicU32 = AtomicU32::new(0);
#[unsafe(no_mangle)]
static candidate_ids: [AtomicU32; MAX_PROCESSORS] = [const { AtomicU32::new(0) }; MAX_PROCESSORS];
#[unsafe(no_mangle)]
static candidate_states: [AtomicU32; MAX_PROCESSORS] = [const { AtomicU32::new(ABSENT) }; MAX_PROCESSORS];
/// Numbers of the processors that start; 0 = not assigned yet.
#[unsafe(no_mangle)]
static candidate_numbers: [AtomicU32; MAX_PROCESSORS] = [const { AtomicU32::new(0) }; MAX_PROCESSORS];
#[unsafe(no_mangle)]
static processor_stacks: [AtomicU64; MAX_PROCESSORS] = [const { AtomicU64::new(0) }; MAX_PROCESSORS];
#[unsafe(no_mangle)]
static processor_root: AtomicU64 = AtomicU64::new(0);
#[unsafe(no_mangle)]
static processor_trampoline: AtomicU32 = AtomicU32::new(0);

/// The local APIC ids of processors, by number.
static LOCAL_APIC_IDS: [AtomicU32; MAX_PROCESSORS] = [const { AtomicU32::new(0) }; MAX_PROCESSORS];
/// How many processors have everything they need, not counting the first.
static READY: AtomicU32 = AtomicU32::new(0);
/// Processors that run, with numbers below; 0 while others are being started.
static RUNNING: AtomicU32 = AtomicU32::new(1);
/// Set when the kernel is complete, so that processors may run threads.
static RELEASED: AtomicBool = AtomicBool::new(false);
static TIME_STAMPS: Comparison = Comparison::new();

/// Microseconds between the reset and the start-up message, and between the first of these and the
/// second.
const RESET_TIME: u64 = 10_000;
const SECOND_MESSAGE: u64 = 200;
/// Microseconds after which a processor is given up. An emulator on a busy machine takes its time.
const PATIENCE: u64 = 5_000_000;

/// How many processors run threads. Their numbers are 0 to this number less 1.
pub fn count() -> u32 {
    // Relaxed: set before the first thread runs.
    RUNNING.load(Ordering::Relaxed)
}

/// The local APIC id of processor `number`.
pub fn local_apic_id(number: u32) -> u32 {
    LOCAL_APIC_IDS[number as usize].load(Ordering::Relaxed)
}

/// Starts the processors that the firmware's tables name, as many as are configured. Called once,
/// by the first processor, when the kernel's allocator works; boot memory may still be taken.
pub(in crate::arch::x86_64) fn start(boot: &BootInformation, tables: &Tables) {
    let own = LOCAL_APIC.id();
    LOCAL_APIC_IDS[0].store(own, Ordering::Relaxed);
    node::set_processor(0, tables.nodes.of_processor(own));
    let candidates = choose_candidates(own, tables);
    if candidates == 0 {
        return;
    }
    let Some(page) = trampoline_page(boot) else {
        log::warning!("no memory below 640 KiB: the other processors cannot be started");
        return;
    };
    candidate_count.store(candidates as u32, Ordering::Relaxed);
    processor_root.store(paging::kernel_root().value(), Ordering::Relaxed);
    processor_trampoline.store(page.value() as u32, Ordering::Relaxed);
    let copy = layout::phys_to_virt(page);
    let mut saved = [0; TRAMPOLINE_ROOM];
    // SAFETY: the page is memory that nothing uses while this runs; the first megabyte is in the
    // direct map.
    unsafe {
        copy.copy_to_nonoverlapping(saved.as_mut_ptr(), TRAMPOLINE_ROOM);
        place_trampoline(copy, page);
    }
    RUNNING.store(0, Ordering::Relaxed);
    for state in &candidate_states[..candidates] {
        // Release: a processor that sees that it is awaited sees all of the above.
        state.store(AWAITED, Ordering::Release);
    }
    send_messages(candidates, page);
    await_all(candidates);
    // SAFETY: as above; a processor that did not come was reset and does not execute the copy.
    unsafe { copy.copy_from_nonoverlapping(saved.as_ptr(), TRAMPOLINE_ROOM) }
    let running = number_all(candidates, tables);
    RUNNING.store(running, Ordering::Relaxed);
    let Differences { found, left } = compare_time_stamps();
    log::info!("processors: {running} run");
    match left {
        0 if found == 0 => {}
        0 => log::info!("time-stamp counters differed by up to {found} ticks: they have been set"),
        _ => log::warning!("time-stamp counters differ by up to {left} ticks: the clock may jump"),
    }
}

/// Chooses the processors to start, and returns how many there are.
fn choose_candidates(own: u32, tables: &Tables) -> usize {
    let wanted = (config::get().processors as usize).min(MAX_PROCESSORS);
    let (listed, beyond) = match &config::get().apic_ids {
        Some(ids) => (ids.get(), 0),
        None => (tables.processors(), tables.processors_beyond),
    };
    let candidates = Candidates::choose(own, listed, wanted, |id| {
        log::warning!("processor with local APIC id {id} is skipped: the id is too large");
    });
    let ignored = candidates.left_out + beyond;
    if ignored > 0 {
        log::info!("processors: {ignored} of the firmware's tables are not used (processors={wanted})");
    }
    for (place, &id) in candidate_ids.iter().zip(candidates.ids()) {
        place.store(id, Ordering::Relaxed);
    }
    candidates.ids().len()
}

/// Lets the other processors run threads.
pub fn release() {
    // Release: processors that see the flag see the complete kernel.
    RELEASED.store(true, Ordering::Release);
}

/// Bytes reserved for the trampoline, which is smaller.
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

// Offsets of the words of the trampoline to which the page's address or the image's displacement is
// added.
const TABLE_BASE: usize = 42;
const ENTRY_32: usize = 48;
const ENTRY_64: usize = 56;
const DISPLACEMENT: usize = 64;

/// # Safety
/// `copy` is where the memory at `page` is reached, and nothing else uses it.
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

fn is_awaited(candidate: usize) -> bool {
    candidate_states[candidate].load(Ordering::Acquire) == AWAITED
}

fn id_of(candidate: usize) -> u32 {
    candidate_ids[candidate].load(Ordering::Relaxed)
}

fn send_messages(candidates: usize, page: PhysAddr) {
    (0..candidates).for_each(|candidate| LOCAL_APIC.send_reset(id_of(candidate)));
    wait(RESET_TIME);
    (0..candidates).for_each(|candidate| LOCAL_APIC.send_start(id_of(candidate), page));
    wait(SECOND_MESSAGE);
    (0..candidates)
        .filter(|&candidate| is_awaited(candidate))
        .for_each(|candidate| LOCAL_APIC.send_start(id_of(candidate), page));
}

/// Waits until every candidate has come or is given up.
fn await_all(candidates: usize) {
    let end = time::clock() + PATIENCE;
    for (candidate, state) in candidate_states.iter().enumerate().take(candidates) {
        while is_awaited(candidate) && time::clock() < end {
            spin_loop();
        }
        // A processor that comes after this finds that it is not waited for, and stops.
        let late = state.compare_exchange(AWAITED, ABSENT, Ordering::AcqRel, Ordering::Acquire);
        if late.is_ok() {
            let id = id_of(candidate);
            log::warning!("processor with local APIC id {id} does not start: it is not used");
            LOCAL_APIC.send_reset(id);
        }
    }
}

/// Gives those that have come their numbers, and what they need; returns how many processors run.
fn number_all(candidates: usize, tables: &Tables) -> u32 {
    let mut running = 1;
    for (candidate, state) in candidate_states.iter().enumerate().take(candidates) {
        if state.load(Ordering::Relaxed) != CAME {
            continue;
        }
        let (number, id) = (running, id_of(candidate));
        LOCAL_APIC_IDS[number as usize].store(id, Ordering::Relaxed);
        node::set_processor(number, tables.nodes.of_processor(id));
        // SAFETY: once for each number; the frames are the kernel's for ever.
        let prepare = || unsafe { cpu_local::prepare(number, allocate_page) };
        let top = node::from(node::of_processor(number), prepare);
        processor_stacks[number as usize].store(top, Ordering::Relaxed);
        // Release: a processor that sees its number sees what is made for it.
        candidate_numbers[candidate].store(number, Ordering::Release);
        running += 1;
    }
    let end = time::clock() + PATIENCE;
    while READY.load(Ordering::Acquire) < running - 1 {
        assert!(time::clock() < end, "a processor has begun and stopped (apic-ids= can leave it out)");
        spin_loop();
    }
    running
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
    // SAFETY: called once on this processor, for which the area was prepared.
    unsafe {
        cpu_local::load(number);
        idt::load();
    }
    features::enable();
    extended_state::enable();
    interrupts::enable();
    entry::init();
    READY.fetch_add(1, Ordering::Release);
    compare_time_stamps();
    while !RELEASED.load(Ordering::Acquire) {
        spin_loop();
    }
    entry::start_scheduling()
}

/// The time-stamp counter of the executing processor.
struct TimeStampCounter;

impl Counter for TimeStampCounter {
    fn read(&self) -> u64 {
        // SAFETY: every 64-bit processor has LFENCE. It keeps the counter from being read early.
        unsafe { core::arch::x86_64::_mm_lfence() };
        read_time_stamp()
    }

    fn advance(&self, ticks: u64) {
        // Where a difference can be added to the counter, the time that the writing takes is not
        // lost.
        // SAFETY: CPUID says whether there is an adjustment; all processors have the other
        // register. Until now this processor's clock was used only for waiting.
        unsafe {
            if features::has(Features::TSC_ADJUST) {
                let adjustment = read_msr(msr::TIME_STAMP_ADJUSTMENT);
                write_msr(msr::TIME_STAMP_ADJUSTMENT, adjustment.wrapping_add(ticks));
            } else {
                write_msr(msr::TIME_STAMP, read_time_stamp() + ticks);
            }
        }
    }
}

/// Makes the time-stamp counters of all running processors agree.
fn compare_time_stamps() -> Differences {
    // Relaxed: only the number of processors is learnt from it.
    let running = loop {
        match RUNNING.load(Ordering::Relaxed) {
            0 => spin_loop(),
            running => break running,
        }
    };
    TIME_STAMPS.take_part(running, &TimeStampCounter)
}
