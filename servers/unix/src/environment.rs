//! Time and randomness that the machine provides.

use crate::hardware_clock::Clock as RealTimeClock;
use crate::processor;
use crate::shared_object::Clock;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use l4::kip;
use l4::x2::kip::CLOCK_SHIFT;
use mach::Machine;
use mach_l4::L4Machine;
use unix::hardware_clock::HardwareClock;
use unix::sync::SpinLock;
use unix::{BoxFuture, Environment, Error, Result, Seeding, Timestamp};
use unix_server::random::Random;

/// How the monotonic clock follows from the processor's time-stamp counter: the nanoseconds are the
/// counter times the multiplier, shifted down.
#[derive(Clone, Copy)]
pub(crate) struct TimeScale {
    pub(crate) multiplier: u64,
    /// Less than 64.
    pub(crate) shift: u32,
}

impl TimeScale {
    /// The scale of the kernel's clock; `None` if programs cannot rely on the counter. The kernel's
    /// microseconds are those of this clock, without the rest.
    pub(crate) fn of_kernel() -> Option<TimeScale> {
        let multiplier = kip().clock_scale()?.get().checked_mul(1000)?;
        Some(TimeScale { multiplier, shift: CLOCK_SHIFT })
    }

    /// The nanoseconds at a count of the counter.
    fn nanoseconds(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.multiplier)) >> self.shift) as u64
    }
}

/// The Unix library's source of time and randomness on L4.
pub(crate) struct L4Environment {
    machine: L4Machine,
    /// The page from which programs read the clocks. It has the time at which the machine's clock
    /// was 0.
    clock: Clock,
    scale: Option<TimeScale>,
    random: SpinLock<Random>,
    seeding: Seeding,
    hardware_clock: Option<RealTimeClock>,
    /// Whether a program has set the clock of the day.
    is_set: AtomicBool,
}

impl L4Environment {
    /// The environment of a machine. The random source begins with what the processor has of
    /// entropy; with `is_seeded` that is enough.
    pub(crate) fn new(
        machine: L4Machine,
        clock: Clock,
        hardware_clock: Option<RealTimeClock>,
        is_seeded: bool,
    ) -> L4Environment {
        let mut random = Random::new();
        random.stir([clock.start(&machine), machine.now(), 0]);
        for _ in 0..4 {
            random.stir(processor::entropy());
        }
        let seeding = Seeding::default();
        if is_seeded {
            seeding.finish();
        }
        let scale = TimeScale::of_kernel();
        let is_set = AtomicBool::new(false);
        let random = SpinLock::new(random);
        L4Environment { machine, clock, scale, random, seeding, hardware_clock, is_set }
    }

    /// The monotonic clock, in nanoseconds.
    fn nanoseconds(&self) -> u64 {
        match self.scale {
            Some(scale) => scale.nanoseconds(processor::time_stamp()),
            None => self.machine.now() * 1000,
        }
    }

    /// Says that the random source has been seeded. Returns whether it had not been before.
    pub(crate) fn finish_seeding(&self) -> bool {
        let is_first = !self.seeding.is_seeded();
        self.seeding.finish();
        is_first
    }
}

impl Environment for L4Environment {
    fn realtime(&self) -> Timestamp {
        let time = Duration::from_nanos(self.clock.start(&self.machine) + self.nanoseconds());
        Timestamp { seconds: time.as_secs().cast_signed(), nanoseconds: time.subsec_nanos() }
    }

    fn advance_to(&self, least: Timestamp) {
        if self.is_set.load(Ordering::Relaxed) {
            return;
        }
        let seconds = u64::try_from(least.seconds).unwrap_or(0);
        let start = Duration::new(seconds, least.nanoseconds).saturating_sub(self.monotonic());
        self.clock.advance_start(&self.machine, start);
    }

    fn set_realtime(&self, time: Timestamp) -> Result<()> {
        let seconds = u64::try_from(time.seconds).map_err(|_| Error::EINVAL)?;
        let start = Duration::new(seconds, time.nanoseconds).checked_sub(self.monotonic());
        self.clock.set_start(&self.machine, start.ok_or(Error::EINVAL)?);
        self.is_set.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn hardware_clock(&self) -> Option<&dyn HardwareClock> {
        self.hardware_clock.as_ref().map(|clock| clock as &dyn HardwareClock)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut random = self.random.lock();
        // The time of the request is mixed in, since no program knows it exactly.
        random.stir([processor::time_stamp(), bytes.len() as u64, 0]);
        random.fill(bytes);
    }

    fn stir(&self, bytes: &[u8]) {
        let mut random = self.random.lock();
        random.absorb(bytes);
        random.stir([processor::time_stamp(), 0, 0]);
    }

    fn seeding(&self) -> Option<&Seeding> {
        Some(&self.seeding)
    }

    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        // Rounded up: a sleeping task is never woken early.
        let time = u64::try_from(deadline.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        let machine = self.machine.clone();
        Box::pin(async move { machine.sleep_until(time).await })
    }
}
