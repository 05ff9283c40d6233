//! Random sequences of operations on the names, ports and messages of three tasks, compared with a
//! model (see `ipc/`).

#[path = "ipc/driver.rs"]
mod driver;
#[path = "ipc/model.rs"]
mod model;
#[path = "ipc/wire.rs"]
mod wire;

use driver::{Outcomes, STEP_BYTES, run};

/// Operations of one sequence; after each sequence nothing may be left.
const SEQUENCE: usize = 1000;

/// The bytes of a sequence.
fn steps(mut seed: u64, count: usize) -> Vec<[u8; STEP_BYTES]> {
    let mut word = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).to_le_bytes()
    };
    (0..count).map(|_| word()).collect()
}

/// Results that are seldom; a campaign has reached them.
const SELDOM: [(&str, &str); 8] = [
    ("copyout", "NoSpace"),
    ("insert", "NoSpace"),
    ("modify_references", "UrefsOverflow"),
    ("port destroyed", "received"),
    ("receive", "ReceiveBodyError"),
    ("receive", "ReceiveHeaderError"),
    ("receive", "ReceiveTooLarge"),
    ("send", "SendTimedOut"),
];

/// Sequences from each seed of a range, `IPC_SEEDS=FIRST..END` if it is set: 10^6 operations, and
/// 10^7 in full campaigns.
#[test]
fn ports_are_as_the_model_says() {
    let sequences = if std::env::var_os("MAC_TEST_ALL").is_some() { 10_000 } else { 1000 };
    let asked = std::env::var("IPC_SEEDS").ok();
    let seeds = match asked.as_deref().and_then(|range| range.split_once("..")) {
        Some((first, end)) => first.parse().unwrap()..end.parse().unwrap(),
        None => 0..sequences,
    };
    println!("seeds {seeds:?}, {SEQUENCE} operations each");
    let mut outcomes = Outcomes::new();
    for seed in seeds {
        // Shown if the sequence fails.
        eprintln!("seed {seed}");
        for (outcome, count) in run(&steps(seed, SEQUENCE)) {
            *outcomes.entry(outcome).or_default() += count;
        }
    }
    if asked.is_none() {
        for (operation, outcome) in SELDOM {
            assert!(outcomes.contains_key(&(operation, outcome.into())), "{operation}: no {outcome}");
        }
    }
    for ((operation, outcome), count) in &outcomes {
        println!("{operation:20} {outcome:20} {count:10}");
    }
}
