//! A server that makes random requests to root, to a driver and to sigma0, with arbitrary words,
//! items and strings. A second server checks meanwhile that it is still served, that no quota is
//! exceeded, and that the resources of the first are freed after its end.

use crate::report::Report;
use interfaces::root::id as request;
use l4::ipc;
use l4::x2::MessageTag;
use l4::x2::{Fpage, Rights, ThreadId, Time, Timeouts};
use l4::{kip, utcb};
use rt::root::{self, memory, names, servers};
use rt::start_page;

/// The attacker's index in the configuration, and how often root starts it again.
const ATTACKER: u64 = 2;
const RESTARTS: u64 = 5;
/// The attacker's quotas in the configuration.
const MEMORY: u64 = 4 << 20;
const THREADS: u64 = 8;
const SPACES: u64 = 3;
/// How many requests the attacker makes before it ends. For a hundredth of them the thread ends
/// before the answer.
const REQUESTS: u64 = 4000;
/// The area in which the program allocates memory, and the area of its own memory.
const AREA: u64 = 0x4000_0000;
const HERE: u64 = 0x5000_0000;
const STATUS: u64 = 9;

/// The stacks of the threads that this program makes, which only sleep.
static STACKS: [l4::start::Stack<4096>; 16] = [const { l4::start::Stack::new() }; 16];
/// After so many checks of a server that has ended, it is certain that root does not start it
/// again.
const LAST_LOOKS: u32 = 200;

struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// The address of a page of the area, or near it.
    fn address(&mut self) -> u64 {
        match self.below(8) {
            0 => self.word(),
            1 => AREA + self.below(1 << 20),
            2 => start_page::ADDRESS,
            _ => AREA + self.below(256) * 4096,
        }
    }

    fn size(&mut self) -> u64 {
        match self.below(8) {
            0 => self.word(),
            1 => self.below(1 << 13),
            _ => self.below(64) * 4096,
        }
    }

    fn thread(&mut self, last: u64) -> u64 {
        match self.below(8) {
            0 => self.word(),
            1 => utcb::my_global_id().raw(),
            2 => utcb::my_global_id().raw() + (self.below(8) << 32),
            3 => start_page::root().raw(),
            4 => utcb::pointer(),
            _ => last,
        }
    }

    fn word_of_a_request(&mut self, last: u64) -> u64 {
        match self.below(8) {
            0 => self.word(),
            1 => 1 << self.below(64),
            2 => self.address(),
            3 => self.size(),
            4 => self.thread(last),
            5 => last,
            _ => self.below(20),
        }
    }

    fn time(&mut self) -> Time {
        if self.below(100) == 0 { Time::ZERO } else { Time::period(2000) }
    }
}

/// The main function of the attacker. Its seed is the number of its restarts, so that no two runs
/// are equal.
pub(crate) fn attack() -> ! {
    let life = servers::describe(ATTACKER).map_or(0, |server| server.restarts);
    let mut random = Random(life + 1);
    let console = names::lookup_wait("console").unwrap_or(ThreadId::NIL);
    let targets =
        [start_page::root(), start_page::root(), start_page::root(), utcb::pager(), console, kip().sigma0()];
    let (mut last, mut made) = (0, 0);
    for _ in 0..REQUESTS {
        let label = match random.below(16) {
            0 => random.word() & 0xffff_ffff_ffff,
            _ => request::ROOT_PRINT + random.below(28),
        };
        // The program does not end yet, and shows nothing on the console, whose output is read as
        // the tests' report.
        if label == request::ROOT_EXIT || label == request::ROOT_PRINT {
            continue;
        }
        let to = targets[random.below(targets.len() as u64) as usize];
        let most = if random.below(8) == 0 { 58 } else { 9 };
        let untyped = random.below(most) as usize;
        for index in 1..=untyped {
            let word = match (label, index) {
                // A thread that faulted would end the server.
                (request::ROOT_THREAD_CREATE, 1) => idle as extern "C" fn() -> ! as usize as u64,
                (request::ROOT_THREAD_CREATE, 2) => STACKS[made % STACKS.len()].top() - 8,
                (
                    request::ROOT_MEMORY_ALLOCATE
                    | request::ROOT_MEMORY_FREE
                    | request::ROOT_MEMORY_POOL
                    | request::ROOT_MEMORY_DMA,
                    1,
                ) => random.address(),
                (
                    request::ROOT_MEMORY_ALLOCATE
                    | request::ROOT_MEMORY_FREE
                    | request::ROOT_MEMORY_POOL
                    | request::ROOT_MEMORY_DMA,
                    2,
                ) => random.size(),
                _ => random.word_of_a_request(last),
            };
            utcb::set_message_register(index, word);
        }
        let mut typed = 0;
        if random.below(6) == 0 {
            typed = 2;
            let item = [
                [0x8, Fpage::memory(HERE, 12).with_rights(Rights::ALL).raw()],
                [4096 << 10, HERE],
                [random.word(), random.word()],
            ];
            for (index, word) in item[random.below(3) as usize].into_iter().enumerate() {
                utcb::set_message_register(1 + untyped + index, word);
            }
        }
        let tag = MessageTag::new(label, untyped, typed);
        let (send, receive) = (random.time(), random.time());
        let from = if random.below(100) == 0 { ThreadId::NIL } else { to };
        if let Ok(answer) = ipc::ipc(to, from, Timeouts::new(send, receive), tag)
            && answer.tag.untyped() > 1
        {
            last = answer.word(1);
            made += usize::from(label == request::ROOT_THREAD_CREATE);
        }
    }
    root::exit(STATUS)
}

extern "C" fn idle() -> ! {
    l4::start::halt()
}

/// The main function of the watcher.
pub(crate) fn watch() -> ! {
    let mut report = Report::plan(3);
    let (mut within, mut served) = (true, true);
    let attacker = || servers::describe(ATTACKER);
    let available = memory::available();
    let mut looks = 0;
    let ended = (0..200_000).any(|_| {
        served &= memory::allocate(AREA, 0x3000).is_ok();
        // SAFETY: there are no references to the memory.
        served &= unsafe { memory::free(AREA, 0x3000) }.is_ok();
        served &= memory::available() == available && names::lookup("console").is_ok();
        let Ok(attacker) = attacker() else { return false };
        within &=
            attacker.used <= MEMORY && attacker.threads <= THREADS + SPACES && attacker.spaces <= 1 + SPACES;
        let over = !attacker.runs && attacker.restarts == RESTARTS;
        looks = if over { looks + 1 } else { 0 };
        ipc::sleep(Time::period(2000));
        looks == LAST_LOOKS
    });
    let status = attacker().is_ok_and(|attacker| attacker.end == Some(servers::End::Exit(STATUS)));
    report.test(
        ended && served && status,
        "ROOT0600",
        "who is served beside random requests is served as ever",
    );
    report.test(within, "ROOT0601", "no quota is exceeded by them");
    let left = attacker()
        .map(|attacker| attacker.used + attacker.threads + attacker.spaces + attacker.kernel_memory);
    report.test(
        left == Ok(0) && memory::available() == available,
        "ROOT0602",
        "what they brought is taken back",
    );
    l4::start::halt()
}
