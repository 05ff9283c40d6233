//! The trace buffer (K11): per processor, a ring of the latest events. Which events are recorded is
//! a set, empty unless the boot option `trace=` or the debugger's command says otherwise; an event
//! outside of it costs one load and one branch. The buffer's memory is taken when the first event
//! is wanted.
pub mod ring;

use core::fmt::{self, Write};
use core::mem::size_of;

pub use ::trace::Event;
use ::trace::{EventSet, Record};

use self::ring::Wanted;
use crate::kip::MAX_PROCESSORS;
use crate::memory::{Account, Frame, OutOfMemory, PAGE_SIZE, PhysAddr, Use, frame};
use crate::{arch, processor};

/// How many frames the ring of one processor has.
const FRAMES: usize = 32;
const PER_FRAME: u64 = PAGE_SIZE / size_of::<Record>() as u64;
/// How many events one ring keeps.
pub const CAPACITY: u64 = FRAMES as u64 * PER_FRAME;

type Ring = ring::Ring<FRAMES>;

static WANTED: Wanted = Wanted::new();
static RINGS: [Ring; MAX_PROCESSORS] = [const { Ring::new() }; MAX_PROCESSORS];

/// Records an event, with the two words that it means, if it is wanted.
#[inline]
pub fn event(event: Event, a: u64, b: u64) {
    if EventSet(WANTED.get()).contains(event) {
        record(event, a, b);
    }
}

#[cold]
fn record(event: Event, a: u64, b: u64) {
    let processor = arch::cpu_number();
    let ring = &RINGS[processor as usize];
    let thread = processor::this().current.get().map_or(0, |thread| thread.id().number());
    let record = Record {
        time: arch::read_time_stamp(),
        a,
        b,
        thread,
        processor: processor as u16,
        event: event as u8,
        reserved: 0,
    };
    // SAFETY: events are wanted only when every ring has its frames; this processor alone writes
    // the place.
    unsafe { place(ring, ring.count()).write(record) }
    ring.advance();
}

/// Where event `number` of a ring is, or was before the ring came round again. The ring has memory.
fn place(ring: &Ring, number: u64) -> *mut Record {
    let index = number % CAPACITY;
    let frame = ring.frame((index / PER_FRAME) as usize);
    let base = arch::phys_to_virt(PhysAddr::new(u64::from(frame) * PAGE_SIZE)).cast::<Record>();
    base.wrapping_add((index % PER_FRAME) as usize)
}

/// Gives a ring its memory, all of it or none.
fn allocate(ring: &Ring) -> Result<(), OutOfMemory> {
    let mut frames: [Option<Frame>; FRAMES] = [const { None }; FRAMES];
    for place in &mut frames {
        *place = Some(frame::alloc(Account::KERNEL, Use::Kernel)?);
    }
    ring.set_frames(
        frames.map(|frame| frame.map_or(0, |frame| (frame.into_raw().value() / PAGE_SIZE) as u32)),
    );
    Ok(())
}

/// Records the events of `set` from now on, and no others.
pub fn select(set: EventSet) -> Result<(), OutOfMemory> {
    if set != EventSet::NONE {
        for ring in &RINGS[..arch::cpu_count() as usize] {
            if !ring.has_memory() {
                allocate(ring)?;
            }
        }
    }
    WANTED.set(set.0);
    // The fast path records nothing.
    processor::allow_fast_path(set == EventSet::NONE);
    Ok(())
}

/// Prints what the rings hold, oldest first, in the form that the host's tools read.
pub fn dump(out: &mut impl Write) -> fmt::Result {
    for ring in RINGS.iter().filter(|ring| ring.has_memory()) {
        let end = ring.count();
        for number in end.saturating_sub(CAPACITY)..end {
            // SAFETY: the ring has memory, and nothing runs that would write to it.
            let record = unsafe { place(ring, number).read() };
            writeln!(out, "{}", record.line())?;
        }
    }
    Ok(())
}

/// Forgets the rings of an earlier test's machine.
#[cfg(test)]
fn reset() {
    WANTED.set(0);
    RINGS.iter().for_each(Ring::reset);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Machine;
    use crate::memory::injection;

    fn lines() -> Vec<Record> {
        let mut text = String::new();
        dump(&mut text).unwrap();
        text.lines().map(|line| Record::parse_line(line).unwrap()).collect()
    }

    #[test]
    fn keeps_the_latest_wanted_events() {
        let _machine = Machine::new(1 << 20);
        reset();
        event(Event::Switch, 1, 2);
        assert_eq!(lines(), [], "nothing is wanted yet");
        select(EventSet::parse("switch,idle").unwrap()).unwrap();
        for number in 0..CAPACITY + 10 {
            event(Event::Switch, number, 0);
            event(Event::Timer, number, 0);
        }
        let kept = lines();
        assert_eq!(kept.len() as u64, CAPACITY);
        assert!(kept.iter().zip(10..).all(|(record, number)| record.a == number));
        select(EventSet::NONE).unwrap();
        event(Event::Switch, 0, 0);
        assert_eq!(lines(), kept, "what was recorded stays");
        reset();
    }

    #[test]
    fn without_memory_nothing_changes() {
        let _machine = Machine::new(1 << 20);
        reset();
        let free = frame::statistics().of(Use::Free);
        for nth in [1, 2, FRAMES as u64] {
            injection::fail_nth(nth as _);
            assert_eq!(select(EventSet::parse("all").unwrap()), Err(OutOfMemory));
            assert_eq!(frame::statistics().of(Use::Free), free);
            event(Event::Switch, 1, 2);
        }
        injection::fail_nth(0);
        assert_eq!(lines(), []);
    }
}
