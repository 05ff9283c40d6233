//! The longest operations, each a region of its own: in which of them the kernel does not look for
//! interrupts for how long is for the plugin to say (`./mac bench latency`).

use crate::world::{RUNNING, delete, id, make_program_space, make_space, make_thread, start};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{extension, kip, sigma0, space, thread, utcb};
use x2::extension::{MapItem, MapOperation};
use x2::message::StringDescriptor;
use x2::{Acceptor, Fpage, MessageTag, Rights, ThreadId, Time, Timeouts};

/// log2 of the memory that is mapped again and again, and copied: 4096 pages.
const REGION_BITS: u32 = 24;
const PAGES: u32 = 1 << (REGION_BITS - 12);
/// Copies of each page: enough for more than 10^5 mappings.
const COPIES: u64 = 25;
/// Pieces of a compound string.
const PIECES: u64 = 16;

/// Where the strings are.
static STRINGS: AtomicU64 = AtomicU64::new(0);

/// Does `operation`, as a region called `name`.
fn region(name: &str, operation: impl FnOnce()) {
    bench_framework::region(format_args!("{name}"), 1, operation);
}

pub(crate) fn run() {
    let memory = sigma0::request_any(REGION_BITS).ok().flatten().expect("sigma0 has memory").base;
    let half = 1 << (REGION_BITS - 1);
    // SAFETY: the region belongs to this program and holds nothing.
    (0..u64::from(PAGES)).for_each(|page| unsafe { ((memory + page * 4096) as *mut u8).write_volatile(1) });
    mappings(memory);
    large_pages();
    strings(memory, half);
    threads();
}

/// Measures operations while there are many mappings.
fn mappings(memory: u64) {
    let everything = || [Fpage::COMPLETE.with_rights(Rights::ALL)];
    make_owned(id(0));
    region("100 000 pages mapped into a space by MapControl", || {
        (0..COPIES).for_each(|copy| give(id(0), copy, memory))
    });
    region("unmap of everything, with 100 000 pages derived", || space::unmap(&mut everything()));
    (0..COPIES).for_each(|copy| give(id(0), copy, memory));
    region("deletion of a space with 100 000 pages", || delete(id(0)));
    (0..COPIES).for_each(|number| {
        make_owned(id(number));
        give(id(number), 0, memory);
    });
    region("unmap of everything that 25 spaces have, 100 000 pages", || space::unmap(&mut everything()));
    // These fpages are so short that the kernel does not look for interrupts within one.
    let pieces = |first: u64, bits: u32| -> [Fpage; 64] {
        core::array::from_fn(|piece| {
            Fpage::memory(first + ((piece as u64) << bits), bits).with_rights(Rights::ALL)
        })
    };
    region("unmap of 64 fpages of 1 GiB with nothing in them", || space::unmap(&mut pieces(64 << 30, 30)));
    (0..COPIES).for_each(|number| give(id(number), 0, memory));
    region("unmap of 64 single pages that 25 spaces have", || space::unmap(&mut pieces(memory, 12)));
    (0..COPIES).for_each(|number| give(id(number), 0, memory));
    region("deletion of these 25 spaces", || (0..COPIES).for_each(|number| delete(id(number))));
}

/// A space that this program arranges, with an active thread.
fn make_owned(id: ThreadId) {
    make_space(id, 12);
    extension::set_owner(id, utcb::my_global_id()).expect("the root task is privileged");
    make_thread(id, id, 0);
}

/// Maps the whole region into a space, at a place of its own, where no larger page fits: each small
/// one by itself.
fn give(space: ThreadId, copy: u64, memory: u64) {
    for part in 0..PAGES / 512 {
        let offset = u64::from(part) << 21;
        let target =
            Fpage::memory((16 << 30) + (copy << REGION_BITS) + offset + 4096, 12).with_rights(Rights::ALL);
        let mut items = [MapItem::new(MapOperation::Map, target, 512, memory + offset)];
        extension::map_control(space, &mut items).expect("the memory is this program's");
    }
}

/// A page of 2 MiB is split, and so is one that is mapped on.
fn large_pages() {
    let large = sigma0::request_any(21).ok().flatten().expect("sigma0 has memory").base;
    make_owned(id(0));
    let target = Fpage::memory(16 << 30, 21).with_rights(Rights::ALL);
    let mut items = [MapItem::new(MapOperation::Map, target, 1, large)];
    extension::map_control(id(0), &mut items).expect("the memory is this program's");
    region("a small page unmapped from a large one", || {
        space::unmap(&mut [Fpage::memory(large + 0x5000, 12).with_rights(Rights::ALL)]);
    });
    // SAFETY: nothing is kept there.
    region("a small page flushed from a large one", || unsafe {
        space::flush(&mut [Fpage::memory(large + 0x5000, 12).with_rights(Rights::ALL)]);
    });
    delete(id(0));
}

fn simple(address: u64, size: u64) -> [u64; 2] {
    [StringDescriptor::new(size, 1, false).raw(), address]
}

fn compound(address: u64, size: u64) -> [u64; PIECES as usize + 1] {
    let piece = size / PIECES;
    let mut words = [StringDescriptor::new(piece, PIECES as usize, false).raw(); PIECES as usize + 1];
    (1..).zip(&mut words[1..]).for_each(|(index, word)| *word = address + (index - 1) * piece);
    words
}

/// Takes strings into the second half of the memory, a simple buffer, then a compound one.
extern "C" fn receiver() -> ! {
    let (root, memory) = (kip().root(), STRINGS.load(Ordering::Relaxed));
    let half = 1 << (REGION_BITS - 1);
    let simple = simple(memory + half, half);
    let compound = compound(memory + half, half);
    for buffer in [&simple[..], &compound[..]].into_iter().cycle() {
        // SAFETY: nothing else lies in the buffer.
        unsafe {
            utcb::accept(Acceptor::new(Fpage::NIL, true));
            (1..).zip(buffer).for_each(|(index, &word)| utcb::set_buffer_register(index, word));
        }
        let _ = ipc::receive(root);
    }
    unreachable!("the cycle has no end")
}

/// Copies of 8 MiB to a thread in another space.
fn strings(memory: u64, half: u64) {
    STRINGS.store(memory, Ordering::Relaxed);
    let (space, partner) = (id(0), id(1));
    make_program_space(space);
    for part in 0..PAGES / 512 {
        let base = memory + (u64::from(part) << 21);
        let target = Fpage::memory(base, 12).with_rights(Rights::ALL);
        let mut items = [MapItem::new(MapOperation::Map, target, 512, base)];
        extension::map_control(space, &mut items).expect("the memory is this program's");
    }
    start(partner, space, 0, receiver);
    region("a string of 8 MiB copied", || {
        ipc::send(partner, Message::new(1).typed_words(&simple(memory, half))).expect("it is taken");
    });
    region("a string of 8 MiB copied in 16 pieces", || {
        ipc::send(partner, Message::new(1).typed_words(&compound(memory, half))).expect("it is taken");
    });
    delete(partner);
    delete(space);
}

/// Sends to the victim, which never receives, and waits for that.
extern "C" fn sender() -> ! {
    let victim = id(1);
    loop {
        let _ = ipc::ipc(victim, victim, Timeouts::NEVER, MessageTag::new(0, 0, 0));
        ipc::sleep(Time::NEVER);
    }
}

/// When all sleepers wake.
static ALARM: AtomicU64 = AtomicU64::new(0);

/// Sleeps until the common instant, then for ever.
extern "C" fn sleeper() -> ! {
    let now = thread::system_clock();
    let alarm = ALARM.load(Ordering::Relaxed).max(now + 1);
    let until = Time::point(now, alarm).unwrap_or(Time::NEVER);
    let _ = ipc::receive_timeout(utcb::my_global_id(), until);
    loop {
        ipc::sleep(Time::NEVER);
    }
}

/// Measures operations while there are many threads.
fn threads() {
    const OTHERS: u64 = RUNNING - 2;
    let (space, victim) = (id(0), id(1));
    make_program_space(space);
    // The victim waits for its start for ever.
    make_thread(victim, space, 0);
    let others = || (2..2 + OTHERS).map(id);
    for (number, other) in (1..).zip(others()) {
        start(other, space, number, sender);
        thread::switch_to(other);
    }
    region("deletion of a thread that 998 wait to send to", || delete(victim));
    others().for_each(delete);
    ALARM.store(thread::system_clock() + 20_000_000, Ordering::Relaxed);
    for (number, other) in (1..).zip(others()) {
        start(other, space, number, sleeper);
        thread::switch_to(other);
    }
    region("998 timeouts at the same instant", || ipc::sleep(Time::period(30_000_000)));
    let areas = [Fpage::memory(kip().base(), 12), Fpage::memory(0x7000_0000_0000, 12)];
    let me = utcb::my_global_id();
    region("a redirector set beside 998 threads", || {
        space::control(space, 0, Fpage::NIL, Fpage::NIL, me).expect("this thread exists");
    });
    let idle = id(2 + OTHERS);
    make_space(idle, 12);
    region("a UTCB area moved beside 998 threads", || {
        space::control(idle, 0, areas[0], areas[1], ThreadId::NIL).expect("no thread is active there");
    });
    delete(idle);
    region("deletion of 998 threads", || others().for_each(delete));
    delete(space);
}
