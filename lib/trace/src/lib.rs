//! The kernel's trace events (K11 in `docs/src/architecture.md`): one list for the kernel that
//! writes them, the debugger that prints them and the host tool that makes tables of them.
//!
//! A [`Record`] is 32 bytes: when, where, which [`Event`], which thread, and two words whose
//! meaning the event names. The debugger prints records as [lines](Record::line) that a serial
//! console carries unharmed; [`Record::parse_line`] finds them again in whatever else the console
//! carried.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

use core::fmt;

macro_rules! events {
    ($($(#[$doc:meta])* $number:literal $name:ident $text:literal ($a:literal, $b:literal);)*) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Event {
            $($(#[$doc])* $name = $number,)*
        }

        impl Event {
            /// Every event.
            pub const ALL: &[Event] = &[$(Event::$name,)*];

            /// The event with this number.
            pub const fn from_number(number: u8) -> Option<Event> {
                match number {
                    $($number => Some(Event::$name),)*
                    _ => None,
                }
            }

            /// The event's name in tables and in filters.
            pub const fn name(self) -> &'static str {
                match self { $(Event::$name => $text,)* }
            }

            /// What its two words are; an empty name means that the word has no meaning.
            pub const fn words(self) -> (&'static str, &'static str) {
                match self { $(Event::$name => ($a, $b),)* }
            }
        }
    };
}

events! {
    /// A thread invoked Ipc or Lipc.
    1 IpcCall "ipc-call" ("to", "from");
    /// The send phase must wait for the receiver.
    2 IpcWaitSend "ipc-wait-send" ("to", "timeout");
    /// A message was transferred from the current thread's side.
    3 IpcTransfer "ipc-transfer" ("receiver", "tag");
    /// The receive phase must wait for a sender.
    4 IpcWaitReceive "ipc-wait-receive" ("from", "timeout");
    /// An IPC is over.
    5 IpcReturn "ipc-return" ("from", "tag");
    /// An IPC ended with this error word.
    6 IpcError "ipc-error" ("error", "partner");
    /// The processor goes on with another thread.
    8 Switch "switch" ("to", "space");
    /// The running thread lost the processor.
    9 Preempt "preempt" ("by", "");
    /// Nothing to run.
    10 Idle "idle" ("", "");
    /// Woken from idling.
    11 Wake "wake" ("vector", "");
    /// A page fault of user code.
    16 PageFault "page-fault" ("address", "ip");
    /// Another exception of user code.
    17 Exception "exception" ("number", "ip");
    /// A system call other than IPC.
    18 SystemCall "system-call" ("call", "argument");
    /// A foreign system call.
    19 Redirect "redirect" ("number", "ip");
    /// A thread continues in its emulation library.
    20 Bounce "bounce" ("number", "ip");
    /// A device's interrupt.
    24 Interrupt "interrupt" ("line", "handler");
    /// The interrupt's handler has acknowledged it.
    25 Acknowledge "acknowledge" ("line", "");
    /// The timer was set.
    26 TimerSet "timer-set" ("deadline", "");
    /// The timer fired.
    27 Timer "timer" ("now", "");
    /// An IPC timeout ended a wait.
    28 Timeout "timeout" ("thread", "");
    /// A forbidden access of user code to I/O ports.
    21 PortFault "port-fault" ("port", "ip");
    /// A thread was created or activated.
    32 ThreadCreate "thread-create" ("thread", "space");
    /// A thread was deleted.
    33 ThreadDelete "thread-delete" ("thread", "");
    /// A space was created.
    34 SpaceCreate "space-create" ("space", "");
    /// A space was deleted.
    35 SpaceDelete "space-delete" ("space", "");
    /// Pages were mapped by a message.
    40 Map "map" ("fpage", "target");
    /// Pages were unmapped.
    41 Unmap "unmap" ("fpage", "control");
    /// A MapControl batch.
    42 MapControl "map-control" ("space", "items");
    /// Translations were discarded on other processors.
    43 ShootDown "shoot-down" ("processors", "pages");
    /// A request was posted to another processor.
    48 Post "post" ("processor", "request");
    /// An inter-processor interrupt was sent.
    49 IpiSend "ipi-send" ("processor", "");
    /// An inter-processor interrupt was received.
    50 IpiReceive "ipi-receive" ("", "");
    /// A request from another processor was carried out.
    51 Serve "serve" ("request", "from");
    /// A thread moved to another processor.
    52 Migrate "migrate" ("thread", "processor");
    /// A thread was recalled by its owner.
    56 Recall "recall" ("thread", "");
    /// A notification was posted.
    57 Notify "notify" ("thread", "bits");
    /// A notification was delivered.
    58 Notified "notified" ("thread", "bits");
}

/// A set of events, as a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet(pub u64);

impl EventSet {
    /// No event.
    pub const NONE: EventSet = EventSet(0);
    /// Whether the event is in the set.
    pub const fn contains(self, event: Event) -> bool {
        self.0 >> event as u8 & 1 != 0
    }

    /// The events whose names are listed, separated by commas; a name that ends in `*` stands for
    /// all that begin so; `all` and `none` are sets of their own.
    ///
    /// # Errors
    /// The name that no event has.
    pub fn parse(text: &str) -> Result<EventSet, &str> {
        let mut set = EventSet::NONE;
        for name in text.split(',').filter(|name| !matches!(*name, "" | "none")) {
            let (stem, prefix) = name.strip_suffix('*').map_or((name, false), |stem| (stem, true));
            let named = Event::ALL.iter().filter(|event| {
                if prefix { event.name().starts_with(stem) } else { name == "all" || event.name() == stem }
            });
            let found = named.fold(0, |set, &event| set | 1 << event as u8);
            if found == 0 {
                return Err(name);
            }
            set.0 |= found;
        }
        Ok(set)
    }
}

/// One entry of the trace buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// The processor's time-stamp counter; 0 in a record that was never written.
    pub time: u64,
    /// First word of the event.
    pub a: u64,
    /// Second word of the event.
    pub b: u64,
    /// Number of the thread that ran.
    pub thread: u32,
    /// Number of the processor.
    pub processor: u16,
    /// Number of the event.
    pub event: u8,
    /// Zero.
    pub reserved: u8,
}

impl Record {
    /// A place in the buffer that holds nothing yet.
    pub const EMPTY: Record = Record { time: 0, a: 0, b: 0, thread: 0, processor: 0, event: 0, reserved: 0 };

    /// The record as a line for a serial console, without the line's end.
    pub fn line(&self) -> Line<'_> {
        Line(self)
    }

    /// Reads a record from a line of console output; `None` if the line holds none, or a damaged
    /// one.
    pub fn parse_line(line: &str) -> Option<Record> {
        let mut words = line.get(line.find(PREFIX)? + PREFIX.len()..)?.split_ascii_whitespace();
        let mut number = || u64::from_str_radix(words.next()?, 16).ok();
        let record = Record {
            processor: number()?.try_into().ok()?,
            time: number()?,
            event: number()?.try_into().ok()?,
            thread: number()?.try_into().ok()?,
            a: number()?,
            b: number()?,
            reserved: 0,
        };
        (number()? == record.check() && Event::from_number(record.event).is_some()).then_some(record)
    }

    /// A check sum, so that a line into which something else was printed is not taken for a record.
    fn check(&self) -> u64 {
        let words = [
            self.time,
            self.a,
            self.b,
            u64::from(self.thread) << 32 | u64::from(self.processor) << 8 | u64::from(self.event),
        ];
        let mixed = words
            .iter()
            .fold(0u64, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
        mixed >> 48
    }
}

/// What each line of a dump begins with.
pub const PREFIX: &str = "trace: ";

/// Prints a record as a line of a dump.
pub struct Line<'a>(&'a Record);

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { time, a, b, thread, processor, event, .. } = *self.0;
        write!(
            formatter,
            "{PREFIX}{processor:x} {time:x} {event:x} {thread:x} {a:x} {b:x} {:x}",
            self.0.check()
        )
    }
}

/// The words of a record with their names, for a reader.
pub struct Words<'a>(pub &'a Record);

impl fmt::Display for Words<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(event) = Event::from_number(self.0.event) else { return Ok(()) };
        let (a, b) = event.words();
        if !a.is_empty() {
            write!(formatter, "{a} {:#x}", self.0.a)?;
        }
        if !b.is_empty() {
            write!(formatter, ", {b} {:#x}", self.0.b)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_is_32_bytes_and_numbers_fit_a_set() {
        assert_eq!(size_of::<Record>(), 32);
        for &event in Event::ALL {
            assert_eq!(Event::from_number(event as u8), Some(event));
            assert!((event as u8) < 64 && event as u8 > 0);
        }
    }

    #[test]
    fn names_are_unique_words() {
        let mut names: Vec<_> = Event::ALL.iter().map(|event| event.name()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Event::ALL.len());
    }

    #[test]
    fn sets_are_written_as_names() {
        let ipc = EventSet::parse("ipc-*").unwrap();
        assert!(
            ipc.contains(Event::IpcCall) && ipc.contains(Event::IpcError) && !ipc.contains(Event::Switch)
        );
        let two = EventSet::parse("switch,page-fault,switch").unwrap();
        assert_eq!(two.0.count_ones(), 2);
        assert!(Event::ALL.iter().all(|&event| EventSet::parse("all").unwrap().contains(event)));
        assert_eq!(EventSet::parse("none"), Ok(EventSet::NONE));
        assert_eq!(EventSet::parse(""), Ok(EventSet::NONE));
        assert_eq!(EventSet::parse("swich"), Err("swich"));
        assert_eq!(EventSet::parse("switch,pagefault"), Err("pagefault"));
        assert_eq!(EventSet::parse("zzz*"), Err("zzz*"));
    }

    #[test]
    fn words_have_their_names() {
        let record = Record { event: Event::PageFault as u8, a: 0x1000, b: 0x40_0000, ..Record::EMPTY };
        assert_eq!(Words(&record).to_string(), "address 0x1000, ip 0x400000");
        let record = Record { event: Event::Idle as u8, ..Record::EMPTY };
        assert_eq!(Words(&record).to_string(), "");
    }

    proptest! {
        #[test]
        fn a_line_gives_back_its_record(
            time: u64, a: u64, b: u64, thread: u32, processor: u16, which in 0..Event::ALL.len(),
        ) {
            let event = Event::ALL[which] as u8;
            let record = Record { time, a, b, thread, processor, event, reserved: 0 };
            prop_assert_eq!(Record::parse_line(&format!("[noise] {}\r", record.line())), Some(record));
        }

        #[test]
        fn a_damaged_line_is_no_record(time: u64, a: u64, at in 7usize..20, byte in b'0'..=b'9') {
            let record = Record { time, a, event: 8, ..Record::EMPTY };
            let mut line = record.line().to_string().into_bytes();
            let at = at.min(line.len() - 1);
            prop_assume!(line[at] != byte && line[at] != b' ');
            line[at] = byte;
            let parsed = Record::parse_line(core::str::from_utf8(&line).unwrap());
            prop_assert!(parsed.is_none_or(|parsed| parsed == record));
        }

        #[test]
        fn any_text_is_a_record_or_not(text in "\\PC*") {
            let _ = Record::parse_line(&text);
        }
    }
}
