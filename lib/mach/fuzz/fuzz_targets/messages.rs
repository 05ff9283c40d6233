//! Any bytes are a message.
#![no_main]

#[path = "../../tests/ipc/bodies.rs"]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Whether it can be sent does not matter.
    let _ = bodies::send(data);
});
