//! Time and randomness that the machine provides.

use crate::processor;
use alloc::boxed::Box;
use core::time::Duration;
use mach::Machine;
use mach_l4::L4Machine;
use unix::sync::SpinLock;
use unix::{BoxFuture, Environment, Timestamp};
use unix_server::random::Random;

/// The Unix library's source of time and randomness on L4.
pub(crate) struct L4Environment {
    machine: L4Machine,
    /// The time at which the machine's clock was 0, in seconds since 1970.
    started: u64,
    random: SpinLock<Random>,
}

impl L4Environment {
    pub(crate) fn new(machine: L4Machine, started: u64) -> L4Environment {
        let mut random = Random::new();
        random.stir([started, machine.now(), 0]);
        for _ in 0..4 {
            random.stir(processor::entropy());
        }
        L4Environment { machine, started, random: SpinLock::new(random) }
    }
}

impl Environment for L4Environment {
    fn realtime(&self) -> Timestamp {
        let since = self.monotonic();
        let seconds = i64::try_from(self.started.saturating_add(since.as_secs())).unwrap_or(i64::MAX);
        Timestamp { seconds, nanoseconds: since.subsec_nanos() }
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.machine.now())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut random = self.random.lock();
        // The time of the request is mixed in, since no program knows it exactly.
        random.stir([processor::time_stamp(), bytes.len() as u64, 0]);
        random.fill(bytes);
    }

    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        // Rounded up: a sleeping task is never woken early.
        let time = u64::try_from(deadline.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        let machine = self.machine.clone();
        Box::pin(async move { machine.sleep_until(time).await })
    }
}
