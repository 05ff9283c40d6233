//! A test of the kernel by random calls. Hostile threads in three spaces, one of which owns
//! another, make random system calls of the X.2 interface and of the extensions, and do other
//! things that programs should not do. A thread with all privileges makes random calls about them.
//! The root task supervises the threads and deletes them at random moments. It reports in TAP that
//! it and a heartbeat thread keep running, that every call has been made and each of its errors has
//! occurred, and that at the end all kernel objects are freed.
//!
//! The arguments on its command line are `seed=NUMBER`, the seed of the random numbers, and
//! `calls=NUMBER`, the total number of calls. The kernel's boot option `kdb=test` is needed.
//!
//! * `attacker` and `controller` are the threads that make calls, `choose` chooses the calls and
//!   their arguments, `invoke` makes a call with arbitrary registers;
//! * `scarcity` has calls of the controller that provoke errors which random arguments do not;
//! * `supervisor` makes and deletes the threads; `layout` defines their memory and thread numbers;
//! * `kind` lists the calls with the errors that have to come.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod attacker;
mod choose;
mod controller;
mod heartbeat;
mod invoke;
mod kind;
mod layout;
mod random;
mod scarcity;
mod supervisor;

use core::sync::atomic::{AtomicU64, Ordering};
use kind::{COLUMNS, Kind};
use l4::console::kernel_statistic;
use l4::{extension, kip, print, println, start};
use layout::Slot;
use random::Random;
use supervisor::Supervisor;
use x2::kdebug::statistic;

l4::program!(run);

/// The minimum number of rounds. After each, all attackers are deleted, and the kernel objects in
/// use are counted. Objects that are made once and kept are made in the first round.
const ROUNDS: u64 = 10;
/// The maximum number of calls in a round.
const LONGEST_ROUND: u64 = 100_000;
/// The number of rounds is multiplied by up to this factor while an error is missing that must
/// occur.
const PATIENCE: u64 = 4;
const COUNTED: [(u64, &str); 4] = [
    (statistic::FRAMES, "frames"),
    (statistic::THREADS, "threads"),
    (statistic::SPACES, "spaces"),
    (statistic::MAP_NODES, "map nodes"),
];
const DEFAULT_CALLS: u64 = 1_000_000;

static STATE: AtomicU64 = AtomicU64::new(0);

/// How many kernel objects of each kind are in use, and how much memory is charged to the root
/// task's account.
fn in_use() -> [u64; COUNTED.len() + 1] {
    let mut counts = [0; COUNTED.len() + 1];
    for (count, (which, _)) in counts.iter_mut().zip(COUNTED) {
        *count = kernel_statistic(which).expect("the kernel's boot option kdb=test is given");
    }
    counts[COUNTED.len()] = extension::kernel_memory(kip().root()).expect("the root task is privileged");
    counts
}

struct Report {
    number: usize,
}

impl Report {
    fn result(&mut self, good: bool, id: core::fmt::Arguments<'_>, sentence: &str) {
        self.number += 1;
        println!("{}ok {} - {id} {sentence}", if good { "" } else { "not " }, self.number);
    }
}

fn run() -> ! {
    for page in layout::image().step_by(4096) {
        // SAFETY: the byte lies in this program.
        unsafe { (page as *const u8).read_volatile() };
    }
    let mut line = [0; 1024];
    let line = core::str::from_utf8(l4::boot_info::command_line(&mut line)).unwrap_or_default();
    let argument = |name: &str| {
        line.split(' ')
            .filter_map(|word| word.split_once('='))
            .find(|word| word.0 == name)?
            .1
            .parse::<u64>()
            .ok()
    };
    let (seed, calls) = (argument("seed").unwrap_or(1), argument("calls").unwrap_or(DEFAULT_CALLS));
    STATE.store(seed, Ordering::Relaxed);
    let random = Random::new(&STATE);
    layout::CONTROLLER.state.store(random.word(), Ordering::Relaxed);
    heartbeat::make_threads();
    println!("1..{}", 5 + Kind::ALL.iter().filter(|kind| kind.expected() != 0).count());
    let mut supervisor = Supervisor::new(random);
    let (mut rounds, mut beats, mut first) = (0, 0, None);
    let (mut ended, mut grown) = (Ok(()), false);
    // Rare results may need more rounds.
    let round = (calls / ROUNDS).clamp(1, LONGEST_ROUND);
    while rounds * round < calls || (rounds * round < PATIENCE * calls && !everything_came()) {
        rounds += 1;
        ended = supervisor.round(round);
        beats += u64::from(heartbeat::beats());
        println!("# round {rounds}: {} calls", supervisor.calls);
        if ended.is_err() {
            break;
        }
        let now = in_use();
        let before = *first.get_or_insert(now);
        let names = COUNTED.map(|(_, name)| name).into_iter().chain(["bytes of the root task's"]);
        for ((before, now), name) in before.into_iter().zip(now).zip(names) {
            if now > before {
                println!("# {name}: {now}, and {before} after the first round");
                grown = true;
            }
        }
    }
    if let Err(why) = ended {
        println!("# {why}");
    }
    println!(
        "# seed {seed}: {} calls, {} of them the attackers', in {rounds} rounds; {} attackers made, {} messages answered",
        supervisor.calls, supervisor.attackers, supervisor.made, supervisor.messages
    );
    let mut report = Report { number: 0 };
    let all = ended.is_ok() && supervisor.calls >= calls;
    report.result(all, format_args!("FUZZ0001"), "the supervisor goes on until all calls have been made");
    report.result(beats == rounds, format_args!("FUZZ0002"), "a thread that none of them may reach goes on");
    report.result(ended.is_ok() && !grown, format_args!("FUZZ0003"), "what the attackers had is given back");
    let own = supervisor.attackers > supervisor.calls / 4 * 3;
    report.result(
        own,
        format_args!("FUZZ0004"),
        "most calls are made by attackers, who do not only stand still",
    );
    for (kind, error) in controllers_wrong_errors() {
        println!("# {kind:?} of the controller has given {error}");
    }
    report.result(
        controllers_wrong_errors().next().is_none(),
        format_args!("FUZZ0005"),
        "no call of the controller gives an error that its interface does not have",
    );
    for (index, &kind) in Kind::ALL.iter().enumerate() {
        report_kind(&mut report, index, kind);
    }
    println!("# done");
    start::halt()
}

fn records() -> impl Iterator<Item = &'static Slot> {
    layout::slots().iter().chain([&layout::CONTROLLER])
}

/// How often calls of a kind had the result of this column.
fn count(kind: Kind, column: usize) -> u64 {
    records().map(|record| record.result(kind, column)).sum()
}

/// The results that calls of a kind have had, as bits.
fn reached(kind: Kind) -> u32 {
    (0..COLUMNS).filter(|&column| count(kind, column) > 0).fold(0, |bits, column| bits | 1 << column)
}

/// The errors of the controller's calls that the interface does not define. Attackers' calls are
/// not checked: other threads set an attacker's registers, even between a call and its count.
fn controllers_wrong_errors() -> impl Iterator<Item = (Kind, usize)> {
    let results = Kind::ALL.iter().flat_map(|&kind| (0..COLUMNS).map(move |column| (kind, column)));
    results.filter(|&(kind, column)| {
        layout::CONTROLLER.result(kind, column) > 0 && kind.expected() & 1 << column == 0
    })
}

/// How many calls of a kind have begun.
fn begun(kind: Kind) -> u64 {
    records().map(|record| record.begun(kind)).sum()
}

/// Whether every result has occurred that must occur.
fn everything_came() -> bool {
    Kind::ALL.iter().all(|&kind| kind.expected() & !reached(kind) == 0)
}

/// Reports how often each result of a call has occurred, and whether all results have occurred that
/// must.
fn report_kind(report: &mut Report, index: usize, kind: Kind) {
    print!("# {kind:?}: {}:", begun(kind));
    for column in 0..COLUMNS {
        match count(kind, column) {
            0 => {}
            count => print!(" {column}: {count}"),
        }
    }
    println!("");
    if kind.expected() != 0 {
        let (good, id) = (kind.expected() & !reached(kind) == 0, 10 + index);
        report.result(good, format_args!("FUZZ{id:04}"), "the call succeeds, and each of its errors comes");
    }
}
