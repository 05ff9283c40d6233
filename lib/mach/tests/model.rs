//! Property tests: random sequences of operations on several maps, compared byte for byte with a
//! reference model (see `model/`).

#[path = "model/contents.rs"]
mod contents;
#[path = "model/driver.rs"]
mod driver;
#[path = "model/pagers.rs"]
mod pagers;
#[path = "model/swap.rs"]
mod swap;

use driver::{Conditions, STEP_BYTES, run};
use proptest::prelude::*;

fn steps() -> impl Strategy<Value = Vec<[u8; STEP_BYTES]>> {
    proptest::collection::vec(any::<[u8; STEP_BYTES]>(), 1..60)
}

/// The number of cases of one test; `PROPTEST_CASES` sets more.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(cases),
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn memory_is_as_the_model_says(steps in steps(), large_pages in any::<bool>()) {
        run(&steps, Conditions { frames: 4096, swap: None, large_pages });
    }

    #[test]
    fn memory_is_as_the_model_says_under_pressure(steps in steps(), large_pages in any::<bool>()) {
        run(&steps, Conditions { frames: 24, swap: Some(1 << 20), large_pages });
    }

    #[test]
    fn memory_is_as_the_model_says_when_swap_space_is_full(
        steps in steps(),
        room in 1usize..40,
        large_pages in any::<bool>(),
    ) {
        run(&steps, Conditions { frames: 24, swap: Some(room), large_pages });
    }

    #[test]
    fn memory_is_as_the_model_says_when_it_runs_out(steps in steps(), large_pages in any::<bool>()) {
        run(&steps, Conditions { frames: 24, swap: None, large_pages });
    }
}
