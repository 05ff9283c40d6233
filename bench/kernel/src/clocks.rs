//! Whether cycles mean anything: the rate of the time-stamp counter by SystemClock, while the
//! processor computes and while it sleeps, and by the old interval timer (8254), which has a
//! crystal of its own.

use core::arch::x86_64::{__cpuid, CpuidResult};
use core::fmt;

use bench_framework::now;
use l4::{ipc, port, println, sigma0, thread};
use x2::{Fpage, Time};

/// Ticks of the interval timer per second.
const TIMER_HZ: u64 = 1_193_182;
/// How long is measured, in microseconds; less than half of what the interval timer can count.
const INTERVAL: u64 = 25_000;
/// How often the interval timer is tried. If it gets to its largest value again before it is read,
/// the rate is too large: the host of an emulator may have had other work to do.
const TRIES: u32 = 5;
const COUNTER: u16 = 0x42;
const COMMAND: u16 = 0x43;
const CONTROL: u16 = 0x61;
/// Readings of a clock, of which the one that took least time counts.
const READINGS: u32 = 32;
/// The rates of two clocks may differ by one part in this number.
const PRECISION: u64 = 200;

/// Ticks of the time-stamp counter per millisecond.
pub(crate) struct Rates {
    computing: u64,
    sleeping: u64,
    by_timer: u64,
}

impl Rates {
    pub(crate) fn measure() -> Self {
        let computing = by_system_clock(|| {
            let start = thread::system_clock();
            while thread::system_clock() < start + INTERVAL {}
        });
        let sleeping = by_system_clock(|| ipc::sleep(Time::period(INTERVAL)));
        Self {
            computing,
            sleeping,
            by_timer: (0..TRIES).filter_map(|_| by_interval_timer()).min().unwrap_or(0),
        }
    }

    /// The rate to convert cycles by.
    pub(crate) fn khz(&self) -> u64 {
        self.computing
    }

    /// Whether the three are the same.
    pub(crate) fn agree(&self) -> bool {
        let near = |rate: u64| rate.abs_diff(self.computing) <= self.computing / PRECISION;
        self.computing != 0 && near(self.sleeping) && near(self.by_timer)
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { computing, sleeping, by_timer } = self;
        write!(
            formatter,
            "{computing} by SystemClock, computing; {sleeping}, sleeping; {by_timer} by the interval timer"
        )
    }
}

/// Says which processor this is, and whether its time-stamp counter always runs at one rate.
pub(crate) fn describe_processor() {
    let mut name = [0; 48];
    for (place, leaf) in name.chunks_exact_mut(16).zip(0x8000_0002u32..) {
        let CpuidResult { eax, ebx, ecx, edx } = __cpuid(leaf);
        for (bytes, word) in place.chunks_exact_mut(4).zip([eax, ebx, ecx, edx]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
    let name = core::str::from_utf8(&name).unwrap_or("?").trim_matches(['\0', ' ']);
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    let rate = if invariant { "does not change its rate" } else { "may change its rate" };
    println!("# {name}; its time-stamp counter {rate}");
}

/// Gets the interval timer's ports.
pub(crate) fn prepare() {
    for ports in [Fpage::io(COUNTER, 1), Fpage::io(CONTROL, 0)] {
        assert_eq!(sigma0::request_ports(ports), Ok(true), "sigma0 gives the root task all ports");
    }
}

/// What `clock` says, and the time-stamp counter in the middle of the quickest reading.
fn read(clock: impl Fn() -> u64) -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..READINGS {
        let start = now();
        let value = clock();
        let took = now() - start;
        if took < best.0 {
            best = (took, value, start + took / 2);
        }
    }
    (best.1, best.2)
}

fn by_system_clock(wait: impl FnOnce()) -> u64 {
    let (start, first) = read(thread::system_clock);
    wait();
    let (end, last) = read(thread::system_clock);
    (last - first) * 1000 / (end - start).max(1)
}

fn by_interval_timer() -> Option<u64> {
    // SAFETY: the kernel has used this counter at boot alone, and it drives nothing but the
    // loudspeaker, which is off.
    unsafe {
        port::write8(CONTROL, port::read8(CONTROL) & !2 | 1);
        // Counter 2, low byte then high byte, counting down once from the largest value.
        port::write8(COMMAND, 0xb0);
        port::write8(COUNTER, 0xff);
        port::write8(COUNTER, 0xff);
    }
    let count = || {
        // SAFETY: as above: the count is latched, then read.
        unsafe {
            port::write8(COMMAND, 0x80);
            u64::from(u16::from_le_bytes([port::read8(COUNTER), port::read8(COUNTER)]))
        }
    };
    let (start, first) = read(count);
    let ticks = INTERVAL * TIMER_HZ / 1_000_000;
    // The counter stops nowhere: below the last readings it would go on from the largest value.
    let end = start.saturating_sub(ticks);
    let mut previous = start;
    loop {
        let present = count();
        if present <= end || present > previous {
            break;
        }
        previous = present;
    }
    let (end, last) = read(count);
    let passed = start.checked_sub(end).filter(|passed| *passed > 0)?;
    Some((last - first) * TIMER_HZ / passed / 1000)
}
