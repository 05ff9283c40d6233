//! When interrupts are pending: never, or by a pseudo-random script.
use std::sync::atomic::{AtomicU64, Ordering};

use x2::extension::{MessageSource, TableRequest};

/// State of the generator; 0 = no interrupts.
static SEED: AtomicU64 = AtomicU64::new(0);
/// One poll in this number, on average, finds a pending interrupt.
static ONE_IN: AtomicU64 = AtomicU64::new(1);

/// How many short steps of a long operation go by between two polls: here few, so that tests can
/// interrupt anywhere.
pub const POLL_INTERVAL: u32 = 4;

/// Whether a device or the timer wants the processor. The kernel polls this inside long operations.
pub fn interrupt_pending() -> bool {
    let mut value = SEED.load(Ordering::Relaxed);
    if value == 0 {
        return false;
    }
    // xorshift64
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    SEED.store(value, Ordering::Relaxed);
    (value >> 20).is_multiple_of(ONE_IN.load(Ordering::Relaxed))
}

/// Lets one poll in `one_in` find an interrupt, chosen by `seed`. A seed of 0 ends interrupts.
pub(super) fn script(seed: u64, one_in: u64) {
    ONE_IN.store(one_in, Ordering::Relaxed);
    SEED.store(seed, Ordering::Relaxed);
}

/// The address and the data of a device's message. In the model, no device writes there.
pub fn interrupt_message(number: u32, processor: u32, _: MessageSource) -> [u64; 2] {
    [u64::from(processor), u64::from(number)]
}

/// The model has no unit between devices and memory.
pub fn interrupt_table(_: TableRequest) -> Option<[u64; 2]> {
    None
}
