//! Tests that compare random sequences of operations on the names, ports and messages of three
//! tasks with a model (in `ipc/`).

#[path = "ipc/bodies.rs"]
mod bodies;
#[path = "ipc/driver.rs"]
mod driver;
#[path = "ipc/model.rs"]
mod model;
#[path = "ipc/wire.rs"]
mod wire;

use driver::{Outcomes, STEP_BYTES, run};

/// How many operations a sequence has. After each sequence no port and no memory may be left.
const SEQUENCE: usize = 1000;

/// The random bytes of `count` operations.
fn steps(mut seed: u64, count: usize) -> Vec<[u8; STEP_BYTES]> {
    let mut word = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).to_le_bytes()
    };
    (0..count).map(|_| word()).collect()
}

/// Makes a random message whose parts are mostly valid.
fn message(random: &[[u8; STEP_BYTES]]) -> Vec<u8> {
    let [how, remote, to, local, reply, items, complex, cut] = random[0];
    let mut words = vec![0u32; 8];
    let sends =
        |choice: u8| if choice > 245 { u32::from(choice) % 8 + 15 } else { 17 + u32::from(choice) % 5 };
    words[0] = sends(remote) | sends(local) << 8;
    if local < 100 {
        words[0] &= 0xff;
    } else {
        words[4] = u32::from(reply) % 9;
    }
    words[0] |= if complex < 230 { 1 << 31 } else { u32::from(cut) << 16 };
    words[2] = 1 + u32::from(to) % 3;
    for &[kind, number, place, form, name, disposition, high, low] in &random[1..1 + items as usize % 6] {
        let disposition = 15 + u32::from(disposition) % 8;
        let (bits, size) = if kind < 128 { (disposition, 64) } else { (9, 8) };
        let mut descriptor = bits | size << 8;
        descriptor |= if form < 150 { 1 << 29 } else { u32::from(form & 1) << 31 };
        descriptor |= if high == 0 { 1 << (low % 32) } else { 0 };
        words.extend([descriptor, u32::from(number) % if form < 150 { 4 } else { 200 }]);
        match form {
            0..150 => {
                words.extend([[u32::from(name) % 9, 0]; 3].concat().iter().take(2 * (number as usize % 4)))
            }
            _ => words.extend([0x1000 * (u32::from(place) % 7) + u32::from(low), 0]),
        }
    }
    let mut bytes: Vec<u8> =
        [how].into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
    if cut > 240 {
        bytes.truncate(bytes.len() - cut as usize % 9);
    }
    bytes
}

/// Random messages that are mostly wrong in one part leave no port and no memory, whatever becomes
/// of them.
#[test]
fn no_message_leaves_anything() {
    let count = if std::env::var_os("MAC_TEST_ALL").is_some() { 500_000 } else { 20_000 };
    let mut results = std::collections::BTreeMap::new();
    for seed in 0..count {
        let result = bodies::send(&message(&steps(seed, 8)));
        *results.entry(format!("{result:?}")).or_insert(0) += 1;
    }
    for (result, count) in &results {
        println!("{result:30} {count:10}");
    }
    assert!(results.len() >= 8 && results["Ok(())"] > count / 10, "{results:?}");
}

/// Operations with results that random sequences reach rarely. A full campaign must reach each.
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

/// Runs a sequence for each seed of a range: `IPC_SEEDS=FIRST..END` if it is set, otherwise seeds
/// for 10^6 operations, or for 10^7 in a full campaign.
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
        // The test harness shows the output only if the test fails.
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
