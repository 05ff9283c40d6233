//! Fuzzes maps: any bytes are a sequence of map operations. The first byte says how much memory
//! there is, whether there is swap space, and whether large pages are used wherever they fit.
#![no_main]

#[path = "../../tests/model/contents.rs"]
mod contents;
#[path = "../../tests/model/driver.rs"]
mod driver;
#[path = "../../tests/model/pagers.rs"]
mod pagers;
#[path = "../../tests/model/swap.rs"]
mod swap;

use driver::{Conditions, STEP_BYTES, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&conditions, steps)) = data.split_first() else { return };
    let frames = 20 + u32::from(conditions >> 2);
    let (steps, _) = steps.as_chunks::<STEP_BYTES>();
    run(steps, Conditions { frames, swap: (conditions & 1 == 1).then_some(1 << 20), large_pages: conditions & 2 == 2 });
});
