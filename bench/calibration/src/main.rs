//! Calibration of the lab: an empty loop of known length must cost the same number of instructions
//! every time, and exactly three more for each round.
#![cfg_attr(target_os = "none", no_std, no_main)]

use bench_framework::{empty_loop, report};
use l4::println;

l4::program!(run);

/// Rounds of the loop: from none to many, in steps that a linear fit can use.
const ROUNDS: [u64; 6] = [0, 1, 10, 100, 1_000, 10_000];
/// How often each length is measured.
const REPETITIONS: u64 = 5;

fn run() -> ! {
    println!("1..2");
    let mut repeats = true;
    let mut proportional = true;
    let empty = empty_loop(0);
    for rounds in ROUNDS {
        let first = empty_loop(rounds);
        proportional &= first == empty + 3 * rounds;
        for _ in 0..REPETITIONS {
            let cost = empty_loop(rounds);
            repeats &= cost == first;
            report(format_args!("empty-loop"), rounds, "instructions", cost);
        }
    }
    let word = |passed: bool| if passed { "ok" } else { "not ok" };
    println!("{} 1 - CALI0001 an empty loop costs the same number of instructions every time", word(repeats));
    println!("{} 2 - CALI0002 each further round costs exactly its three instructions", word(proportional));
    l4::start::halt()
}
