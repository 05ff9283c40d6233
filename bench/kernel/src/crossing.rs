//! Costs between processors: of a message one way by the number of its registers, and of Unmap by
//! the number of pages and of the processors that have to forget translations.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::fmt;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};

use bench_framework::{Range, region, repeat};
use l4::ipc;
use l4::{space, thread, utcb};
use x2::control::UNCHANGED;
use x2::{Fpage, MessageTag, Rights, ThreadId, Timeouts};

use crate::{AVERAGED, fixture};

/// Rounds of PAUSE after which a receiver waits again, while its processor still polls.
const REST_OF_SENDER: u64 = 20;
/// Rounds after which an idle processor sleeps.
pub(crate) const LONG: u64 = 1000;
/// The states of the partner's processor when a message comes, each with the number of rounds to
/// wait until the processor is in that state.
pub(crate) const STATES: [(&str, u64); 2] = [("poll", 0), ("sleep", LONG)];
const WORDS: Range = Range::linear(0, 63, 1);
/// Numbers of words of messages without an answer.
const WORDS_SENT: Range = Range::linear(0, 63, 21);
const MOST_PAGES_LOG2: u64 = 8;

#[repr(C, align(0x10_0000))]
struct Pages(UnsafeCell<[u8; 0x1000 << MOST_PAGES_LOG2]>);

// SAFETY: nothing forms a reference to the content.
unsafe impl Sync for Pages {}

static PAGES: Pages = Pages(UnsafeCell::new([0; 0x1000 << MOST_PAGES_LOG2]));

/// Rounds for which a partner waits before it answers.
static REST: AtomicU64 = AtomicU64::new(0);

extern "C" fn receive() -> ! {
    loop {
        let _ = ipc::receive(ThreadId::ANY);
    }
}

/// Answers each message with its own length, as a server.
extern "C" fn answer() -> ! {
    let mut received = ipc::receive(ThreadId::ANY);
    loop {
        received = match received {
            Ok(request) => {
                pause(REST.load(Ordering::Relaxed));
                let tag = MessageTag::new(0, request.tag.untyped(), 0);
                ipc::ipc(request.from, ThreadId::ANY, Timeouts::NEVER, tag)
            }
            Err(_) => ipc::receive(ThreadId::ANY),
        };
    }
}

/// Keeps a processor at work in this space.
extern "C" fn spin() -> ! {
    loop {
        spin_loop();
    }
}

/// Executes one and the same PAUSE so often: the plugin knows polling by that, and a compiler would
/// make several of it.
pub(crate) fn pause(rounds: u64) {
    if rounds > 0 {
        // SAFETY: changes nothing but the register that counts.
        unsafe {
            asm!("2: pause", "dec {}", "jnz 2b", inout(reg) rounds => _, options(nomem, nostack));
        }
    }
}

/// Lets `thread` live on a processor.
pub(crate) fn place(thread: ThreadId, processor: u64) {
    thread::schedule(thread, UNCHANGED, processor, UNCHANGED, UNCHANGED).expect("this is its scheduler");
}

pub(crate) fn run(processors: u64) {
    ping_pong();
    send();
    shoot_down(processors);
}

/// Calls and answers, to processors that poll and to such that sleep: each half of a round trip is
/// a message one way.
fn ping_pong() {
    let partners = [("within a space", fixture::here(answer)), ("across spaces", fixture::elsewhere(answer))];
    for (from, to) in [(0, 1), (1, 0)] {
        place(utcb::my_global_id(), from);
        for (spaces, partner) in partners {
            place(partner, to);
            for (state, rest) in STATES {
                REST.store(rest, Ordering::Relaxed);
                let name = format_args!("one way {spaces}, client on {from}, targets {state}");
                by_words(name, WORDS, 2, |words| {
                    pause(rest);
                    let tag = MessageTag::new(0, words, 0);
                    ipc::ipc(partner, partner, Timeouts::NEVER, tag).expect("it answers");
                });
            }
        }
    }
    place(utcb::my_global_id(), 0);
}

/// Messages without an answer: the sender returns to its processor by itself.
fn send() {
    let receiver = fixture::elsewhere(receive);
    place(receiver, 1);
    for (state, rest) in STATES {
        by_words(format_args!("send alone across spaces, target {state}"), WORDS_SENT, 1, |words| {
            pause(rest.max(REST_OF_SENDER));
            let tag = MessageTag::new(0, words, 0);
            ipc::ipc(receiver, ThreadId::NIL, Timeouts::NEVER, tag).expect("it waits");
        });
    }
}

/// Measures an operation of `messages` messages at each number of words.
fn by_words(name: fmt::Arguments<'_>, range: Range, messages: u64, mut operation: impl FnMut(usize)) {
    for words in range.values().map(|words| words as usize) {
        (0..4).for_each(|_| operation(words));
        region(format_args!("{name} at {words}"), AVERAGED * messages, || {
            repeat(AVERAGED, || operation(words));
            pause(LONG);
        });
    }
}

/// Measures flushes of pages while `processors` other processors run threads of this space.
fn shoot_down(processors: u64) {
    let start = PAGES.0.get() as u64;
    let area = |log2: u64| Fpage::memory(start, 12 + log2 as u32).with_rights(Rights::ALL);
    // Partners in other spaces have these pages, too, until then.
    // SAFETY: there are no references to the area, and its next use brings pages again.
    unsafe { space::flush(&mut [area(MOST_PAGES_LOG2)]) };
    for others in 0..processors {
        if others > 0 {
            place(fixture::here(spin), others);
            pause(LONG);
        }
        for log2 in (0..=MOST_PAGES_LOG2).step_by(2) {
            let pages = 1 << log2;
            for page in (start..start + pages * 0x1000).step_by(0x1000) {
                // SAFETY: within the area, which nothing else uses.
                unsafe { (page as *mut u8).write_volatile(1) };
            }
            pause(LONG);
            region(format_args!("flush, {others} others at {pages}"), 1, || {
                // SAFETY: as above.
                unsafe { space::flush(&mut [area(log2)]) };
                pause(LONG);
            });
        }
    }
}
