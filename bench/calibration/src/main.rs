//! Calibration of the lab: an empty loop of known length must cost the same number of instructions every time, and
//! exactly three more for each round.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::arch::asm;
use l4::println;

l4::program!(run);

/// Rounds of the loop: from none to many, in steps that a linear fit can use.
const ROUNDS: [u64; 6] = [0, 1, 10, 100, 1_000, 10_000];
/// How often each length is measured.
const REPETITIONS: u64 = 5;

/// What the loop costs with that many rounds, by the time-stamp counter: under `-icount shift=0` in instructions.
#[inline(never)]
fn empty_loop(rounds: u64) -> u64 {
    let (start_low, start_high, end_low, end_high): (u64, u64, u64, u64);
    // SAFETY: counts down a register and reads the time-stamp counter, which user programs may.
    unsafe {
        asm!(
            "rdtsc",
            "mov {start_low}, rax",
            "mov {start_high}, rdx",
            "jmp 3f",
            "2: dec {rounds}",
            "3: test {rounds}, {rounds}",
            "jnz 2b",
            "rdtsc",
            rounds = inout(reg) rounds => _,
            start_low = out(reg) start_low,
            start_high = out(reg) start_high,
            out("rax") end_low,
            out("rdx") end_high,
            options(nomem, nostack),
        );
    }
    (end_high << 32 | end_low) - (start_high << 32 | start_low)
}

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
            println!(
                "{{\"test\":\"empty-loop\",\"parameter\":{rounds},\"counter\":\"instructions\",\"value\":{cost}}}"
            );
        }
    }
    let word = |passed: bool| if passed { "ok" } else { "not ok" };
    println!("{} 1 - CALI0001 an empty loop costs the same number of instructions every time", word(repeats));
    println!("{} 2 - CALI0002 each further round costs exactly its three instructions", word(proportional));
    l4::start::halt()
}
