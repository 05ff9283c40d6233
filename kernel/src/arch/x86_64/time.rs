//! Time: the time-stamp counter as clock, the local APIC's timer for the next event. Both rates are
//! measured at boot against the HPET, or the old interval timer (8254) where there is none.
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::features::{self, Features};
use super::instructions::{in8, out8, read_time_stamp};
use super::local_apic::LOCAL_APIC;
use super::paging;
use crate::boot::acpi::Tables;
use crate::log;
use crate::memory::{PAGE_SIZE, PhysAddr};

/// A time that never comes.
const NEVER: u64 = u64::MAX;
/// How long the rates are measured: in fractions of a second.
const MEASURE: u64 = 100;
/// The maximum number of attempts; after them the measurement is given up.
const ATTEMPTS: u32 = 10;
/// Readings of which the best is taken. An emulator takes its time over the first ones.
const READINGS: u32 = 64;
/// See [`SCALE`].
pub(super) const SHIFT: u32 = x2::kip::CLOCK_SHIFT;

/// Microseconds per tick of the time-stamp counter, times 2^44.
pub(super) static SCALE: AtomicU64 = AtomicU64::new(0);
/// Ticks of the time-stamp counter per second.
static RATE: AtomicU64 = AtomicU64::new(0);
/// Ticks of the local APIC's timer per microsecond, times 2^16.
static TIMER_SCALE: AtomicU64 = AtomicU64::new(0);
/// Ticks of the local APIC's timer per second, for the kernel interface page.
static TIMER_RATE: AtomicU32 = AtomicU32::new(0);

/// Microseconds since some moment before boot. Never runs backwards.
#[inline]
pub fn clock() -> u64 {
    ((u128::from(read_time_stamp()) * u128::from(SCALE.load(Ordering::Relaxed))) >> SHIFT) as u64
}

/// Microseconds per tick of the time-stamp counter, times 2^[`SHIFT`].
pub fn clock_scale() -> u64 {
    SCALE.load(Ordering::Relaxed)
}

/// Rate of the time-stamp counter in kHz.
pub fn time_stamp_khz() -> u64 {
    RATE.load(Ordering::Relaxed) / 1000
}

/// Rate of the local APIC's bus clock in kHz.
pub fn bus_khz() -> u64 {
    u64::from(TIMER_RATE.load(Ordering::Relaxed)) * 16 / 1000
}

/// Sets the timer of this processor: one interrupt at `deadline` (as [`clock`]), or as soon as
/// possible if that is past; `u64::MAX` for none. Replaces what was set before. The interrupt may
/// come early, when the deadline is farther away than the timer can count: the clock decides, and
/// the timer is set again.
pub fn set_timer(deadline: u64) {
    if deadline == NEVER {
        LOCAL_APIC.start_timer(0);
        return;
    }
    let wait = u128::from(deadline.saturating_sub(clock()));
    let count = ((wait * u128::from(TIMER_SCALE.load(Ordering::Relaxed))) >> 16) + 1;
    LOCAL_APIC.start_timer(u32::try_from(count).unwrap_or(u32::MAX));
}

/// A clock of known rate.
trait Reference {
    /// Ticks per second.
    fn rate(&self) -> u64;
    /// Starts a measurement.
    fn start(&mut self);
    /// Ticks since the start, or `None` if it cannot count that far.
    fn ticks(&mut self) -> Option<u64>;
}

/// The HPET's main counter (IA-PC HPET Specification 1.0a, section 2.3).
struct Hpet {
    registers: *mut u64,
    rate: u64,
    start: u32,
}

const HPET_CONFIGURATION: usize = 0x10 / 8;
const HPET_COUNTER: usize = 0xf0 / 8;
const FEMTOSECONDS: u64 = 1_000_000_000_000_000;

impl Hpet {
    fn new(address: PhysAddr) -> Option<Self> {
        let registers = paging::map_device(address, PAGE_SIZE).cast::<u64>();
        // SAFETY: mapped; reading the capabilities has no effect.
        let period = unsafe { registers.read_volatile() } >> 32;
        // The specification bounds the period by 100 ns.
        (1..=100_000_000).contains(&period).then(|| Self { registers, rate: FEMTOSECONDS / period, start: 0 })
    }

    fn counter(&self) -> u32 {
        // SAFETY: mapped; reading the counter has no effect. 32 bits last more than 40 s at any
        // permitted rate.
        unsafe { self.registers.add(HPET_COUNTER).cast::<u32>().read_volatile() }
    }
}

impl Reference for Hpet {
    fn rate(&self) -> u64 {
        self.rate
    }

    fn start(&mut self) {
        // SAFETY: mapped; bit 0 lets the counter run and nothing else.
        unsafe {
            let configuration = self.registers.add(HPET_CONFIGURATION);
            configuration.write_volatile(configuration.read_volatile() | 1);
        }
        self.start = self.counter();
    }

    fn ticks(&mut self) -> Option<u64> {
        Some(u64::from(self.counter().wrapping_sub(self.start)))
    }
}

/// Channel 2 of the 8254, counting down once from 65535; its output, at port 0x61, tells when it
/// has passed zero.
struct IntervalTimer;

const CHANNEL_2: u16 = 0x42;
const TIMER_COMMAND: u16 = 0x43;
const SPEAKER: u16 = 0x61;

impl Reference for IntervalTimer {
    fn rate(&self) -> u64 {
        1_193_182
    }

    fn start(&mut self) {
        // SAFETY: the channel feeds only the loudspeaker, which stays off; documented commands.
        unsafe {
            out8(SPEAKER, (in8(SPEAKER) & !2) | 1);
            out8(TIMER_COMMAND, 0b1011_0000);
            out8(CHANNEL_2, 0xff);
            out8(CHANNEL_2, 0xff);
        }
    }

    fn ticks(&mut self) -> Option<u64> {
        // SAFETY: latches and reads the count.
        let (count, ended) = unsafe {
            out8(TIMER_COMMAND, 0b1000_0000);
            let count = u16::from_le_bytes([in8(CHANNEL_2), in8(CHANNEL_2)]);
            (count, in8(SPEAKER) & 0x20 != 0)
        };
        (!ended).then_some(u64::from(u16::MAX - count))
    }
}

/// The counts of the three clocks, read as close together as possible.
#[derive(Clone, Copy)]
struct Sample {
    reference: u64,
    time_stamp: u64,
    timer: u32,
}

/// The best of several readings: the one that took the least time, so that an interruption of the
/// (virtual) machine between the readings does not spoil it.
fn sample(reference: &mut dyn Reference) -> Option<Sample> {
    let mut best: Option<(u64, Sample)> = None;
    for _ in 0..READINGS {
        let before = read_time_stamp();
        let ticks = reference.ticks()?;
        let timer = LOCAL_APIC.timer_count();
        let after = read_time_stamp();
        let width = after.wrapping_sub(before);
        if best.is_none_or(|(least, _)| width < least) {
            best = Some((width, Sample { reference: ticks, time_stamp: before + width / 2, timer }));
        }
    }
    best.map(|(_, sample)| sample)
}

/// Rates per second of the time-stamp counter and the timer.
fn measure(reference: &mut dyn Reference) -> Option<(u64, u64)> {
    reference.start();
    LOCAL_APIC.start_timer(u32::MAX);
    let start = sample(reference)?;
    let wait = reference.rate() / MEASURE;
    while reference.ticks()? < start.reference + wait {
        core::hint::spin_loop();
    }
    let end = sample(reference)?;
    let rate = |ticks: u64| {
        let per_second = u128::from(ticks) * u128::from(reference.rate());
        (per_second / u128::from(end.reference - start.reference)) as u64
    };
    let rates =
        (rate(end.time_stamp.checked_sub(start.time_stamp)?), rate(u64::from(start.timer - end.timer)));
    (rates.0 >= 1_000_000 && (10_000..=u64::from(u32::MAX)).contains(&rates.1)).then_some(rates)
}

/// Measures the clocks. The boot processor's interrupts are off.
pub(super) fn init(tables: Option<&Tables>) {
    if !features::has(Features::INVARIANT_TSC) && !features::has(Features::HYPERVISOR) {
        log::warning!("the time-stamp counter of this processor may change its rate: the clock may be wrong");
    }
    let hpet = tables.and_then(|tables| tables.hpet).and_then(Hpet::new);
    let (name, rates) = match hpet {
        Some(mut hpet) => ("HPET", (0..ATTEMPTS).find_map(|_| measure(&mut hpet))),
        None => ("interval timer", (0..ATTEMPTS).find_map(|_| measure(&mut IntervalTimer))),
    };
    LOCAL_APIC.start_timer(0);
    let Some((time_stamp, timer)) = rates else {
        panic!("the clocks cannot be measured against the {name}");
    };
    RATE.store(time_stamp, Ordering::Relaxed);
    SCALE.store(((1_000_000 << SHIFT) / u128::from(time_stamp)) as u64, Ordering::Relaxed);
    TIMER_SCALE.store((timer << 16) / 1_000_000, Ordering::Relaxed);
    TIMER_RATE.store(timer as u32, Ordering::Relaxed);
    // In units of 10 kHz, rounded: the reference resolves no more in so short a time.
    let (time_stamp, timer) = ((time_stamp + 5_000) / 10_000, (timer + 5_000) / 10_000);
    log::info!(
        "clocks: time-stamp counter {}.{:02} MHz, timer {}.{:02} MHz, measured against the {name}",
        time_stamp / 100,
        time_stamp % 100,
        timer / 100,
        timer % 100
    );
}
