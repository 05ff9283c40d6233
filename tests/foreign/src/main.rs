//! Runs unmodified static Linux programs as a root task, to show that the kernel's extensions carry
//! a foreign system (K8, K9, K13, K15): each program lives in a space that this server owns; its
//! page faults are served by MapControl, its system calls arrive by redirection. The boot modules
//! are the programs; the results are TAP.
//!
//! This server is not a Unix: it implements only the system calls of a static "hello". It tests the
//! kernel.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod bounce;
mod bystander;
mod elf;
mod linux;
mod memory;
mod modules;
mod process;

use l4::println;
use process::{End, Mode, Process};

l4::program!(run);

/// The output of the hello program, which does not depend on the C library.
const HELLO: &[u8] = b"heap 99999, local 42, home /root, readlink -1 No such file or directory\n";

/// The attacks that must have no effect, and those that must end in an exception or a fault of the
/// attacker.
const HARMLESS: [u64; 4] = [1, 2, 3, 4];
const FATAL: [u64; 12] = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];

struct Report {
    number: usize,
}

impl Report {
    fn result(&mut self, good: bool, id: &str, sentence: core::fmt::Arguments<'_>) {
        self.number += 1;
        println!("{}ok {} - {id} {sentence}", if good { "" } else { "not " }, self.number);
    }
}

fn run() -> ! {
    let bystander = bystander::start();
    println!("1..{}", 4 + HARMLESS.len() + FATAL.len() + 1);
    let mut report = Report { number: 0 };
    for (index, (program, mode)) in [
        ("hello-musl", Mode::Exception),
        ("hello-glibc", Mode::Exception),
        ("hello-musl", Mode::Bounce),
        ("hello-glibc", Mode::Bounce),
    ]
    .into_iter()
    .enumerate()
    {
        let (end, output) = run_program(program, &[program, "world"], mode);
        let good = end == End::Exited(7) && output.ends_with(HELLO);
        if !good {
            println!("# {end:?}");
        }
        let id = ["FGN0001", "FGN0002", "FGN0003", "FGN0004"][index]; // Rules: EXT 5.2, EXT 5.3
        let how = if mode == Mode::Exception { "an exception message" } else { "its emulation library" };
        report.result(good, id, format_args!("{program} runs, its system calls delivered by {how}"));
    }
    for (index, attack) in HARMLESS.into_iter().enumerate() {
        let end = run_attack(attack);
        if end != End::Exited(0) {
            println!("# {end:?}");
        }
        let id = ["FGN0010", "FGN0011", "FGN0012", "FGN0013"][index]; // Rules: EXT 8.1
        report.result(end == End::Exited(0), id, format_args!("attack {attack} gets nothing"));
    }
    for (index, attack) in FATAL.into_iter().enumerate() {
        let end = run_attack(attack);
        let good = matches!(end, End::Exception(_) | End::Fault(_));
        if !good {
            println!("# {end:?}");
        }
        let id = FATAL_IDS[index];
        report.result(good, id, format_args!("attack {attack} ends the attacker, by its server"));
    }
    report.result(bystander.is_undisturbed(), "FGN0040", format_args!("nobody else notices")); // Rules: EXT 8.1
    l4::start::halt()
}

const FATAL_IDS: [&str; 12] = [
    "FGN0020", "FGN0021", "FGN0022", "FGN0023", "FGN0024", "FGN0025", "FGN0026", "FGN0027", "FGN0028",
    "FGN0029", "FGN0030", "FGN0031",
];

fn run_program(module: &str, arguments: &[&str], mode: Mode) -> (End, process::Output) {
    let image = modules::find(module).unwrap_or_else(|| panic!("there is no module {module}"));
    let mut process = Process::load(image, arguments, mode);
    let end = process.run();
    let output = process.output();
    process.delete();
    (end, output)
}

fn run_attack(attack: u64) -> End {
    let mut texts = [[0u8; 20]; 4];
    let words = [attack, process::KIP_AREA, process::UTCB_POINTER, l4::utcb::my_global_id().raw()];
    let mut arguments = ["attack"; 5];
    for ((text, word), argument) in texts.iter_mut().zip(words).zip(&mut arguments[1..]) {
        *argument = decimal(word, text);
    }
    run_program("attack", &arguments, Mode::Exception).0
}

/// `word` in decimal digits, written into `buffer`.
fn decimal(word: u64, buffer: &mut [u8; 20]) -> &str {
    let (mut rest, mut at) = (word, buffer.len());
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    core::str::from_utf8(&buffer[at..]).unwrap_or("0")
}
