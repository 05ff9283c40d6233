//! This processor's local APIC: interrupt acceptance and the one-shot timer. Its registers are memory (xAPIC), or
//! model-specific registers where the firmware has turned x2APIC on.
use core::sync::atomic::{AtomicU64, Ordering};

use super::instructions::{msr, read_msr, write_msr};
use super::paging;
use crate::memory::{PAGE_SIZE, PhysAddr, PhysRange};

const ID: u32 = 0x20;
const TASK_PRIORITY: u32 = 0x80;
const END_OF_INTERRUPT: u32 = 0xb0;
const SPURIOUS: u32 = 0xf0;
const REQUESTS: u32 = 0x200;
const COMMAND: u32 = 0x300;
const COMMAND_DESTINATION: u32 = 0x310;
const TIMER: u32 = 0x320;
const PERFORMANCE: u32 = 0x340;
const LINE_0: u32 = 0x350;
const LINE_1: u32 = 0x360;
const ERROR: u32 = 0x370;
const INITIAL_COUNT: u32 = 0x380;
const CURRENT_COUNT: u32 = 0x390;
const DIVIDE: u32 = 0x3e0;

const ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const NON_MASKABLE: u32 = 4 << 8;
const DIVIDE_BY_16: u32 = 3;

// The command register: what is sent.
const RESET: u32 = 5 << 8;
const START: u32 = 6 << 8;
const ASSERT: u32 = 1 << 14;
const SENDING: u32 = 1 << 12;

const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;
const X2APIC_REGISTERS: u32 = 0x800;

/// Where the registers are mapped; 0 = they are model-specific registers.
static REGISTERS: AtomicU64 = AtomicU64::new(0);

fn read(register: u32) -> u32 {
    match REGISTERS.load(Ordering::Relaxed) {
        // SAFETY: x2APIC mode is on, so the register exists.
        0 => unsafe { read_msr(X2APIC_REGISTERS + register / 16) as u32 },
        // SAFETY: the registers are mapped there for ever.
        base => unsafe { ((base + u64::from(register)) as *const u32).read_volatile() },
    }
}

fn write(register: u32, value: u32) {
    match REGISTERS.load(Ordering::Relaxed) {
        // SAFETY: x2APIC mode is on, so the register exists; the values are those that this module means.
        0 => unsafe { write_msr(X2APIC_REGISTERS + register / 16, u64::from(value)) },
        // SAFETY: the registers are mapped there for ever; the values are those that this module means.
        base => unsafe { ((base + u64::from(register)) as *mut u32).write_volatile(value) },
    }
}

/// Finds and maps the registers; returns the memory they take, which is the kernel's. Once, by the boot processor.
pub(super) fn map() -> Option<PhysRange> {
    // SAFETY: every processor with a local APIC has the register.
    let base = unsafe { read_msr(msr::APIC_BASE) };
    if base & BASE_X2APIC != 0 {
        return None;
    }
    // SAFETY: as above; the address stays as the firmware set it.
    unsafe { write_msr(msr::APIC_BASE, base | BASE_ENABLED) }
    let address = PhysAddr::new(base & paging::ADDRESS);
    REGISTERS.store(paging::map_device(address, PAGE_SIZE) as u64, Ordering::Relaxed);
    Some(PhysRange::new(address, address.offset(PAGE_SIZE)))
}

/// Brings the local APIC of another processor into the mode of the first one's.
pub(super) fn follow_first() {
    let mode = if REGISTERS.load(Ordering::Relaxed) == 0 { BASE_X2APIC } else { 0 };
    // SAFETY: every processor with a local APIC has the register; the first processor found the mode to exist, and the
    // address of the registers stays as it is.
    unsafe { write_msr(msr::APIC_BASE, read_msr(msr::APIC_BASE) | BASE_ENABLED | mode) }
}

/// Sends a message to the processor with local APIC id `destination`.
fn send(destination: u32, command: u32) {
    match REGISTERS.load(Ordering::Relaxed) {
        // SAFETY: x2APIC mode is on, so the register exists: it is one of 64 bits there.
        0 => unsafe {
            write_msr(X2APIC_REGISTERS + COMMAND / 16, u64::from(destination) << 32 | u64::from(command));
        },
        base => {
            let register = |register: u32| (base + u64::from(register)) as *mut u32;
            // SAFETY: the registers are mapped there for ever.
            unsafe {
                register(COMMAND_DESTINATION).write_volatile(destination << 24);
                register(COMMAND).write_volatile(command);
                while register(COMMAND).read_volatile() & SENDING != 0 {
                    core::hint::spin_loop();
                }
            }
        }
    }
}

/// Resets another processor: it waits for a start-up message then.
pub(super) fn send_reset(destination: u32) {
    send(destination, RESET | ASSERT);
}

/// Lets a processor that was reset begin in real mode at the beginning of the page at `page`, below 1 MiB.
pub(super) fn send_start(destination: u32, page: PhysAddr) {
    send(destination, START | ASSERT | (page.value() / PAGE_SIZE) as u32);
}

/// Interrupts another processor.
#[inline]
pub(super) fn send_interrupt(destination: u32, vector: u8) {
    // Release order: the local APIC's registers are uncached memory, which is written after what was written before.
    send(destination, ASSERT | u32::from(vector));
}

/// Interrupts another processor, whatever it does.
pub(super) fn send_non_maskable(destination: u32) {
    send(destination, ASSERT | NON_MASKABLE);
}

/// Turns this processor's local APIC on: the timer is stopped, the old interrupt controllers' line is closed.
pub(super) fn enable(timer_vector: u8, spurious_vector: u8) {
    write(TASK_PRIORITY, 0);
    write(LINE_0, MASKED);
    write(LINE_1, NON_MASKABLE);
    write(PERFORMANCE, MASKED);
    write(ERROR, MASKED | u32::from(spurious_vector));
    write(DIVIDE, DIVIDE_BY_16);
    write(TIMER, u32::from(timer_vector));
    write(INITIAL_COUNT, 0);
    write(SPURIOUS, ENABLE | u32::from(spurious_vector));
    end_of_interrupt();
}

/// This processor's local APIC id.
pub fn id() -> u32 {
    match REGISTERS.load(Ordering::Relaxed) {
        0 => read(ID),
        _ => read(ID) >> 24,
    }
}

/// The interrupt that was taken last is dealt with.
#[inline]
pub fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}

/// Is an interrupt with a vector of the 32 from `group * 32` on waiting to be taken?
#[inline]
pub fn is_requested(group: u32) -> bool {
    read(REQUESTS + group * 16) != 0
}

/// Starts the timer: one interrupt after `count` of its ticks. 0 stops it.
#[inline]
pub fn start_timer(count: u32) {
    write(INITIAL_COUNT, count);
}

/// What is left of the timer's count.
pub fn timer_count() -> u32 {
    read(CURRENT_COUNT)
}
