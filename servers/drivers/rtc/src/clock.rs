//! The registers of the clock (data sheet of the MC146818A).

/// The registers of time and date.
const SECONDS: u8 = 0;
const MINUTES: u8 = 2;
const HOURS: u8 = 4;
const DAY: u8 = 7;
const MONTH: u8 = 8;
const YEAR: u8 = 9;
/// Register A: whether the time is about to change, and the divider of the oscillator.
const A: u8 = 10;
const UPDATE_IN_PROGRESS: u8 = 1 << 7;
const DIVIDER: u8 = 7 << 4;
/// The divider for the oscillator that PCs have, of 32 768 Hz.
const RUNNING: u8 = 2 << 4;
/// Register B: whether the time stands still, and how it is written.
const B: u8 = 11;
const SET: u8 = 1 << 7;
const BINARY: u8 = 1 << 2;
const HOURS_TO_24: u8 = 1 << 1;
/// The bit of the hour after noon, where hours go to 12.
const AFTER_NOON: u8 = 1 << 7;

/// The first year. A clock has two digits of the year: those below 70 are of the next century.
const FIRST_YEAR: u32 = 1970;
/// How often the registers are looked at. A change takes 2.2 ms at most, and each look during one
/// is followed by a pause.
const LOOKS: usize = 100;

/// The registers of a clock.
pub trait Registers {
    /// Reads a register.
    fn read(&mut self, index: u8) -> u8;
    /// Writes a register.
    fn write(&mut self, index: u8, value: u8);
    /// Waits 100 microseconds or longer.
    fn pause(&mut self);
}

/// What a clock shows. Month and day begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Time {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

/// What the clock shows. `None`: it shows nothing that is a time, or changes without end.
pub fn read(clock: &mut impl Registers) -> Option<Time> {
    let mut last = None;
    for _ in 0..LOOKS {
        if clock.read(A) & UPDATE_IN_PROGRESS != 0 {
            clock.pause();
            continue;
        }
        // Of two equal ones in a row neither was read during a change.
        let bytes = [YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS].map(|index| clock.read(index));
        if last == Some(bytes) {
            return decode(bytes, clock.read(B));
        }
        last = Some(bytes);
    }
    None
}

/// Lets a clock go on that stands still since a driver has ended while it set it.
pub fn start(clock: &mut impl Registers) {
    let (a, b) = (clock.read(A), clock.read(B));
    if b & SET != 0 {
        clock.write(B, b & !SET);
        clock.write(A, a & !DIVIDER | RUNNING);
    }
}

/// Sets the clock. Returns false, and changes nothing, if a field is out of its range.
pub fn set(clock: &mut impl Registers, time: &Time) -> bool {
    let (a, b) = (clock.read(A), clock.read(B));
    let Some(bytes) = encode(time, b) else { return false };
    clock.write(B, b | SET);
    // The divider begins again when it is given back, so that the next second comes half a second
    // later.
    clock.write(A, a | DIVIDER);
    for (index, byte) in [YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS].into_iter().zip(bytes) {
        clock.write(index, byte);
    }
    clock.write(B, b & !SET);
    clock.write(A, a);
    true
}

/// The time of these registers, from the year to the second.
fn decode([year, month, day, hour, minute, second]: [u8; 6], b: u8) -> Option<Time> {
    let number = |byte: u8, range: core::ops::RangeInclusive<u32>| {
        let digits = (u32::from(byte >> 4), u32::from(byte & 0xf));
        let value = match b & BINARY != 0 {
            true => Some(byte.into()),
            false => (digits.0 < 10 && digits.1 < 10).then_some(10 * digits.0 + digits.1),
        };
        value.filter(|value| range.contains(value))
    };
    let hour = if b & HOURS_TO_24 != 0 {
        number(hour, 0..=23)?
    } else {
        // The hour after midnight, and that after noon, is the twelfth.
        number(hour & !AFTER_NOON, 1..=12)? % 12 + 12 * u32::from(hour & AFTER_NOON != 0)
    };
    let year = number(year, 0..=99)?;
    Some(Time {
        year: FIRST_YEAR + (year + 100 - FIRST_YEAR % 100) % 100,
        month: number(month, 1..=12)?,
        day: number(day, 1..=31)?,
        hour,
        minute: number(minute, 0..=59)?,
        second: number(second, 0..=59)?,
    })
}

/// The registers of this time, from the year to the second.
fn encode(time: &Time, b: u8) -> Option<[u8; 6]> {
    let in_range = (FIRST_YEAR..FIRST_YEAR + 100).contains(&time.year)
        && (1..=12).contains(&time.month)
        && (1..=31).contains(&time.day)
        && time.hour < 24
        && time.minute < 60
        && time.second < 60;
    if !in_range {
        return None;
    }
    let byte = |value: u32| {
        let value = value as u8;
        if b & BINARY != 0 { value } else { ((value / 10) << 4) | (value % 10) }
    };
    let hour = if b & HOURS_TO_24 != 0 {
        byte(time.hour)
    } else {
        byte((time.hour + 11) % 12 + 1) | if time.hour >= 12 { AFTER_NOON } else { 0 }
    };
    Some([
        byte(time.year % 100),
        byte(time.month),
        byte(time.day),
        hour,
        byte(time.minute),
        byte(time.second),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A clock that changes to another time after so many accesses, with its registers one by one.
    struct Changing {
        registers: [u8; 12],
        /// The next values, from which access on they come, and how many accesses a change takes.
        next: [u8; 12],
        left: usize,
        takes: usize,
        pauses: usize,
    }

    impl Changing {
        fn still(registers: [u8; 12]) -> Changing {
            Changing { registers, next: registers, left: usize::MAX, takes: 0, pauses: 0 }
        }

        /// The next access. A change begins `takes` accesses after it has been announced.
        fn step(&mut self) {
            self.left = self.left.saturating_sub(1);
            if self.left <= self.takes {
                self.registers[usize::from(A)] |= UPDATE_IN_PROGRESS;
                let changed = (self.takes - self.left).min(10);
                self.registers[..changed].copy_from_slice(&self.next[..changed]);
            }
            if self.left == 0 {
                (self.registers, self.left) = (self.next, usize::MAX);
            }
        }
    }

    impl Registers for Changing {
        fn read(&mut self, index: u8) -> u8 {
            self.step();
            self.registers[usize::from(index)]
        }

        fn write(&mut self, index: u8, value: u8) {
            self.registers[usize::from(index)] = value;
        }

        fn pause(&mut self) {
            self.pauses += 1;
            for _ in 0..10 {
                self.step();
            }
        }
    }

    fn time() -> impl Strategy<Value = Time> {
        (1970u32..2070, 1u32..=12, 1u32..=31, 0u32..24, 0u32..60, 0u32..60).prop_map(
            |(year, month, day, hour, minute, second)| Time { year, month, day, hour, minute, second },
        )
    }

    fn registers(b: u8) -> [u8; 12] {
        let mut registers = [0; 12];
        (registers[usize::from(A)], registers[usize::from(B)]) = (0x26, b);
        registers
    }

    const FORMS: [u8; 4] = [0, BINARY, HOURS_TO_24, BINARY | HOURS_TO_24];

    proptest! {
        #[test]
        fn what_is_set_is_read(time in time()) {
            for b in FORMS {
                let mut clock = Changing::still(registers(b));
                prop_assert!(set(&mut clock, &time));
                prop_assert_eq!((clock.registers[10], clock.registers[11]), (0x26, b));
                prop_assert_eq!(read(&mut clock), Some(time));
            }
        }

        #[test]
        fn what_is_read_during_a_change_is_one_of_the_two_times(
            times in (time(), time()), left in 1usize..60, takes in 0usize..30, form in 0usize..4,
        ) {
            let at = |time| {
                let mut clock = Changing::still(registers(FORMS[form]));
                set(&mut clock, time);
                clock.registers
            };
            let (registers, next) = (at(&times.0), at(&times.1));
            let mut clock = Changing { registers, next, left, takes: takes.max(11), pauses: 0 };
            let found = read(&mut clock).unwrap();
            prop_assert!(found == times.0 || found == times.1, "{:?}", found);
        }

        #[test]
        fn any_registers_are_a_time_or_none(bytes in any::<[u8; 12]>()) {
            if let Some(time) = read(&mut Changing::still(bytes)) {
                prop_assert!(encode(&time, bytes[usize::from(B)]).is_some());
            }
        }
    }

    #[test]
    fn a_clock_that_stands_still_goes_on() {
        for (before, after) in
            [([0x76, SET | 2], [0x26, 2]), ([0x26, SET | 2], [0x26, 2]), ([0x36, 2], [0x36, 2])]
        {
            let mut clock = Changing::still(registers(0));
            clock.registers[10..].copy_from_slice(&before);
            start(&mut clock);
            assert_eq!([clock.registers[10], clock.registers[11]], after);
        }
    }

    #[test]
    fn hours_to_twelve_are_those_of_the_data_sheet() {
        let mut hours = Vec::new();
        for hour in [0, 1, 11, 12, 13, 23] {
            let time = Time { year: 2026, month: 11, day: 27, hour, minute: 0, second: 0 };
            hours.push(encode(&time, 0).unwrap()[3]);
        }
        assert_eq!(hours, [0x12, 0x01, 0x11, 0x92, 0x81, 0x91]);
    }

    #[test]
    fn a_machine_without_a_clock_has_no_time() {
        let mut absent = Changing::still([0xff; 12]);
        assert_eq!(read(&mut absent), None);
        assert_eq!(absent.pauses, LOOKS);
    }

    #[test]
    fn a_time_out_of_range_is_refused_and_changes_nothing() {
        let good = Time { year: 2026, month: 2, day: 31, hour: 0, minute: 0, second: 0 };
        for bad in [
            Time { year: 2070, ..good },
            Time { year: 1969, ..good },
            Time { month: 0, ..good },
            Time { month: 13, ..good },
            Time { day: 0, ..good },
            Time { hour: 24, ..good },
            Time { minute: 60, ..good },
            Time { second: 60, ..good },
        ] {
            let mut clock = Changing::still(registers(2));
            assert!(!set(&mut clock, &bad), "{bad:?}");
            assert_eq!(clock.registers, registers(2));
        }
    }
}
