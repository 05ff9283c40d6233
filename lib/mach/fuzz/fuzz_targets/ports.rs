//! Any bytes are a sequence of operations on names, ports and messages.
#![no_main]

#[path = "../../tests/ipc/driver.rs"]
mod driver;
#[path = "../../tests/ipc/model.rs"]
mod model;
#[path = "../../tests/ipc/wire.rs"]
mod wire;

use driver::{STEP_BYTES, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (steps, _) = data.as_chunks::<STEP_BYTES>();
    run(steps);
});
