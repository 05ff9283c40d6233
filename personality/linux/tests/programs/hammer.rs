//! A fuzz test: processes without privileges make random system calls, with arguments that are
//! hostile or nearly right. Whatever happens to them, other processes go on, all their memory is
//! freed, and no call keeps the server from serving others.
//!
//! `HAMMER=SEED` runs only this seed, and prints each call before it is made.

use crate::world::{DATA, Gone, Program, World};
use std::cell::Cell;
use std::rc::Rc;

/// A random generator (xorshift64).
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len() as u64) as usize]
    }
}

/// Where the process has memory: random bytes, meaningful words, paths. Nothing is mapped after it.
const MEMORY: u64 = 0x1000_0000;
const WORDS: u64 = MEMORY + 0x1000;
const PATHS: u64 = MEMORY + 0x2000;
const EDGE: u64 = MEMORY + 0x3000;
/// Memory that can only be read.
const READ_ONLY: u64 = 0x2000_0000;
const PATH_STRIDE: u64 = 64;
const PATH_NAMES: &[&str] = &[
    "",
    "/",
    ".",
    "..",
    "a",
    "b",
    "a/b",
    "a/b/c",
    "../../h/a",
    "loop",
    "fifo",
    "/h",
    "/init",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts/0",
    "/dev/shm/x",
    "/proc",
    "/proc/self",
    "/proc/self/maps",
    "/proc/self/smaps",
    "/proc/self/stat",
    "/proc/self/fd",
    "/proc/self/fd/3",
    "/proc/self/exe",
    "/proc/self/cwd",
    "/proc/self/task",
    "/proc/self/mem",
    "/proc/1/status",
    "/proc/1/fd/0",
    "/proc/meminfo",
    "/proc/mounts",
    "/proc/sys/kernel/hostname",
    "#!/init",
    "tmpfs",
    "proc",
];

const RESTART: u64 = 219;
const EXIT: u64 = 60;
const EXIT_GROUP: u64 = 231;
const SIGRETURN: u64 = 15;
const EXECVE: u64 = 59;
/// Calls after which a process may have ended or be unusable. They are made rarely, so that the
/// process lives long enough for the others.
const DEADLY: &[u64] =
    &[EXIT, EXIT_GROUP, SIGRETURN, EXECVE, 322, 62, 200, 234, 129, 297, 424, 34, 130, RESTART];
/// Calls that make threads and processes.
const MULTIPLYING: &[u64] = &[56, 57, 58, 435];
/// Calls with many kinds of errors, which are made more often.
const RICH: &[u64] = &[
    0, 1, 2, 9, 10, 11, 16, 17, 18, 19, 20, 21, 25, 28, 40, 41, 42, 44, 45, 46, 47, 49, 50, 53, 72, 73, 74,
    76, 77, 82, 83, 84, 86, 88, 133, 144, 165, 188, 202, 206, 208, 209, 213, 217, 232, 233, 240, 242, 243,
    244, 254, 257, 270, 271, 275, 276, 278, 282, 283, 285, 286, 288, 290, 292, 293, 295, 296, 316, 319, 326,
    327, 328, 332, 436, 437,
];

fn argument(random: &mut Random) -> u64 {
    match random.below(30) {
        0 => 0,
        1 => u64::MAX,
        2 => random.below(10),
        3 => random.below(4096),
        4 => MEMORY,
        5 => MEMORY + random.below(4096),
        6 => EDGE - random.below(64),
        7 => READ_ONLY,
        8 => 0x7fff_ffff_e000,
        9 => 1 << 63,
        10 => 0xffff_8000_0000_0000,
        11 => 0xffff_ffff_8000_0000,
        12 => 0x7fff_ffff_f000 - random.below(64),
        13 => random.word(),
        14 => random.word() & 0xffff_ffff,
        15 => 1 << random.below(64),
        16 => crate::world::TEXT,
        17 => -100i64 as u64,
        18 => (random.below(4096) as i64).wrapping_neg() as u64,
        19 => random.below(64),
        20 | 21 => random.below(16),
        22..=24 => PATHS + PATH_STRIDE * random.below(PATH_NAMES.len() as u64),
        25..=27 => WORDS + 8 * random.below(480),
        28 => 4096 * random.below(64),
        _ => random.below(1 << 20),
    }
}

/// Fills the process's memory with data that calls may find there.
async fn fill(p: &mut Program, random: &mut Random) -> Result<(), Gone> {
    let mut memory = Vec::new();
    (0..512).for_each(|_| memory.extend(random.word().to_le_bytes()));
    p.store(MEMORY, &memory).await?;
    memory.clear();
    for _ in 0..512 {
        let word = match random.below(4) {
            0 => random.below(8),
            1 => random.below(8) | random.below(64) << 32,
            _ => argument(random),
        };
        memory.extend(word.to_le_bytes());
    }
    p.store(WORDS, &memory).await?;
    memory.clear();
    for name in PATH_NAMES {
        memory.extend(name.as_bytes());
        memory.resize(memory.len().next_multiple_of(PATH_STRIDE as usize).max(memory.len() + 1), 0);
        memory.resize(memory.len().next_multiple_of(PATH_STRIDE as usize), 0);
    }
    p.store(PATHS, &memory).await
}

/// Makes the calls of one process; `calls` is how many all processes of the seed may still make.
async fn hammer(p: &mut Program, seed: u64, calls: Rc<Cell<u64>>, show: bool) -> Result<(), Gone> {
    let tid = p.thread.tid().number();
    let mut random = Random(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed * 1000 + u64::from(tid) + 1));
    for step in 0.. {
        if calls.get() == 0 {
            break;
        }
        calls.set(calls.get() - 1);
        if step % 64 == 0 {
            // An alarm interrupts a call that blocks.
            p.call(37, &[1]).await?;
        }
        if step % 16 == 0 {
            fill(p, &mut random).await?;
        }
        let number = match random.below(100) {
            0 => random.word(),
            1..50 => random.of(RICH),
            _ => random.below(462),
        };
        if (DEADLY.contains(&number) && random.below(40) != 0)
            || (MULTIPLYING.contains(&number) && random.below(4) != 0)
        {
            continue;
        }
        let arguments: [u64; 6] = core::array::from_fn(|_| argument(&mut random));
        if show {
            let name = linux::name(number).unwrap_or("unknown");
            eprintln!("[{}.{tid}] {name} ({number}) {arguments:x?}", p.thread.pid());
        }
        let result = p.call(number, &arguments).await?;
        if show {
            eprintln!("[{}.{tid}] {name} = {result:#x}", p.thread.pid(), name = number);
        }
    }
    p.exit(0).await
}

/// Prepares the child of a seed: it becomes a user without privileges in a directory of its own,
/// with limits.
async fn confine(p: &mut Program) -> Result<(), Gone> {
    p.handle(14, 0, |_| Box::pin(async { Ok(()) })).await?;
    // The limits are those on processes, file size and core files; the others are as high as they
    // may be.
    for (resource, limit) in [(6, 12u64), (1, 1 << 20), (4, 0)] {
        p.store(DATA, &crate::bytes(&[limit, limit])).await?;
        assert_eq!(p.call(160, &[resource, DATA]).await?, 0);
    }
    let path = p.string(DATA, "/h").await?;
    assert_eq!(p.call(80, &[path]).await?, 0);
    assert_eq!(p.call(92, &[path, 1000, 1000]).await?, 0);
    assert_eq!((p.call(106, &[1000]).await?, p.call(105, &[1000]).await?), (0, 0));
    let null = p.string(DATA, "/dev/null").await?;
    for _ in 0..3 {
        p.call(2, &[null, 2]).await?;
    }
    let anonymous = |protection| [protection, 0x32, u64::MAX, 0];
    let [protection, flags, file, offset] = anonymous(3);
    p.call(9, &[MEMORY, EDGE - MEMORY, protection, flags, file, offset]).await?;
    let [protection, flags, file, offset] = anonymous(1);
    p.call(9, &[READ_ONLY, 4096, protection, flags, file, offset]).await?;
    Ok(())
}

/// Runs the processes of `seeds`, one seed after the other.
fn run_seeds(frames: u32, seeds: impl Iterator<Item = u64> + Clone + 'static, calls: u64, show: bool) {
    let world = World::with_frames(frames);
    world.install_devices();
    world.install_proc();
    world.make_directory("/h", 0o755);
    crate::run_in(&world, async move |p| {
        let mut before = None;
        for seed in seeds.clone() {
            let (tmpfs, path) = (p.string(DATA + 0x100, "tmpfs").await?, p.string(DATA + 0x120, "/h").await?);
            assert_eq!(p.call(165, &[tmpfs, path, tmpfs, 0, 0]).await?, 0);
            let left = Rc::new(Cell::new(calls));
            let counter = left.clone();
            let child = p
                .fork(move |p| {
                    let left = counter.clone();
                    Box::pin(async move {
                        if left.get() == calls {
                            confine(p).await?;
                        }
                        // Children begin with the same code.
                        hammer(p, seed, left, show).await
                    })
                })
                .await?;
            assert!(child > 0, "seed {seed}: the first process cannot fork: {child}");
            reap_all(p, seed, &left).await?;
            assert_eq!(p.call(166, &[path, 2]).await?, 0);
            // The first seed's run includes all allocations that are made once, at first use. The
            // free memory after later runs is compared with that after it.
            let free = p.world.free_frames();
            let expected = *before.get_or_insert(free);
            assert!(free >= expected, "seed {seed}: {free} frames are free, {expected} were");
        }
        Ok(())
    });
}

/// Waits until no child is left. A child that has not ended when all calls have been made may be
/// blocked: it gets some more seconds.
async fn reap_all(p: &mut Program, seed: u64, left: &Cell<u64>) -> Result<(), Gone> {
    let mut patience = 0;
    let mut last = left.get();
    loop {
        match p.wait(1).await?.0 {
            -10 => return Ok(()),
            0 => {}
            _ => continue,
        }
        // Waits for a tenth of a second.
        p.store(DATA, &crate::bytes(&[0, 100_000_000])).await?;
        p.call(35, &[DATA, 0]).await?;
        patience = if left.get() == last { patience + 1 } else { 0 };
        last = left.get();
        if patience >= 100 {
            left.set(0);
            p.call(62, &[u64::MAX, 9]).await?;
        }
        assert!(patience < 200, "seed {seed}: a process does not end when it is killed");
    }
}

#[test]
fn random_system_calls_do_not_harm_other_processes() {
    match std::env::var("HAMMER").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => run_seeds(2048, core::iter::once(seed), 2000, true),
        None => run_seeds(2048, 0..40, 1000, false),
    }
}
