//! Seeds the random source from the server that drives a source of entropy, if there is one.

use crate::again;
use crate::environment::L4Environment;
use crate::places;
use crate::report::say;
use alloc::sync::Arc;
use core::fmt::Arguments;
use core::time::Duration;
use rt::root::Status;
use unix::Environment;
use virtio_rng::client::{self, Entropy};

/// How many unpredictable bytes seed the random source: as many as its key has.
const SEED: usize = 32;
/// The name of the server that drives the source.
const NAME: &str = "entropy";
/// The notification bits for the driver's news: none, since the source is asked now and then.
const NO_NEWS: u64 = 0;
/// How long after the first question for bytes the next one comes, if there were none. Each time
/// the interval doubles, up to the longest.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a seed the next one is mixed in.
const NEXT_SEED: Duration = Duration::from_secs(300);

/// The source of entropy.
pub(crate) struct Source(Entropy);

impl Source {
    /// Opens the source, unless there is none. Blocks until the driver has started.
    pub(crate) fn open() -> Option<Source> {
        match client::open(NAME, places::ENTROPY, l4::utcb::my_global_id(), NO_NEWS) {
            Ok(entropy) => Some(Source(entropy)),
            Err(Status::NotFound) => None,
            Err(status) => {
                say(format_args!("unix: the source of entropy cannot be opened: {status:?}"));
                None
            }
        }
    }

    /// Seeds the random source of `environment`, and mixes in a seed from time to time, until the
    /// driver has ended for good. Writes to the log, by `log`, what the random source depends on.
    pub(crate) async fn seed(mut self, environment: Arc<L4Environment>, log: impl Fn(Arguments<'_>)) {
        let mut interval = FIRST_INTERVAL;
        loop {
            let mut seed = [0; SEED];
            if self.0.read(&mut seed) {
                environment.stir(&seed);
                if environment.finish_seeding() {
                    log(format_args!("random: seeded by the server {NAME}"));
                }
                interval = NEXT_SEED;
            } else if self.0.has_ended() {
                let again = || self.0.open_again(NAME, l4::utcb::my_global_id(), NO_NEWS);
                if !again::connect(&*environment, again).await {
                    break;
                }
                interval = FIRST_INTERVAL;
            }
            environment.sleep_until(environment.monotonic() + interval).await;
            interval = (2 * interval).min(LONGEST_INTERVAL);
        }
        // What the processor has of entropy must do, as on a machine without a source.
        if environment.finish_seeding() {
            log(format_args!("random: the server {NAME} has ended; seeded by the processor"));
        }
    }
}
