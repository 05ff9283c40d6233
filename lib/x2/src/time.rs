//! Time values: periods, points, timeouts (X.2 rules 1.1-1.11), in microseconds.

/// A 16-bit time value. Period: bit 15 = 0, 10..=14 e, 0..=9 m: m * 2^e microseconds. Point: bit 15
/// = 1, 11..=14 e, bit 10 c, 0..=9 m: the instant T with T\[e+9..=e\] = m, T\[e+10\] = c and zero
/// below bit e.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Time(u16);

/// When a wait ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// The phase does not wait at all.
    Immediately,
    /// When the clock has reached this value, never before.
    At(u64),
    /// The phase does not end by time.
    Never,
}

impl Time {
    /// The infinite period.
    pub const NEVER: Self = Self(0);
    /// The period of length zero.
    pub const ZERO: Self = Self(0x0400);
    /// The longest period: 1023 * 2^31 microseconds.
    pub const LONGEST: Self = Self(0x7fff);

    /// The time value with this raw value.
    pub const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    /// The raw value.
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// The shortest period that is at least `micros` long, never for more than the longest period.
    pub const fn period(micros: u64) -> Self {
        let mut exponent = 0;
        while exponent < 32 {
            let mantissa = micros.div_ceil(1 << exponent);
            if mantissa < 1024 {
                return Self::from_fields(mantissa, exponent);
            }
            exponent += 1;
        }
        Self::NEVER
    }

    /// The longest period that is at most `micros` long (the longest there is for more): what
    /// remains of something.
    pub const fn period_rounded_down(micros: u64) -> Self {
        if micros < 1 << 10 {
            return Self::from_fields(micros, 0);
        }
        let exponent = micros.ilog2() - 9;
        if exponent < 32 {
            Self((exponent << 10) as u16 | (micros >> exponent) as u16)
        } else {
            Self::LONGEST
        }
    }

    const fn from_fields(mantissa: u64, exponent: u32) -> Self {
        if mantissa == 0 { Self::ZERO } else { Self((exponent << 10) as u16 | mantissa as u16) }
    }

    /// The point for clock value `at`, made at clock value `now`; nothing if it is more than about
    /// 33.5 s away. The point can lie up to 2^e - 1 microseconds before `at` (X.2 rule 1.5). A past
    /// instant gives an expired point.
    pub const fn point(now: u64, at: u64) -> Option<Self> {
        let at = if at < now { now } else { at };
        let distance = at - now;
        let mut exponent = 0;
        while exponent < 16 {
            if distance >> exponent < 1024 {
                let mantissa = (at >> exponent & 0x3ff) as u16;
                let c = (at >> (exponent + 10) & 1) as u16;
                return Some(Self(1 << 15 | (exponent as u16) << 11 | c << 10 | mantissa));
            }
            exponent += 1;
        }
        None
    }

    /// Whether this is a point, not a period.
    pub const fn is_point(self) -> bool {
        self.0 & 1 << 15 != 0
    }

    /// Whether this is the infinite period.
    pub const fn is_never(self) -> bool {
        self.0 == 0
    }

    /// Length of a finite period in microseconds, nothing for never and for points. Any period with
    /// m = 0 and e > 0 has length zero (X.2 rule 1.2).
    pub const fn micros(self) -> Option<u64> {
        if self.is_point() || self.is_never() {
            return None;
        }
        Some((self.0 as u64 & 0x3ff) << (self.0 >> 10))
    }

    /// The instant that a point names for a reader at clock value `now`, nothing if it has expired
    /// or this is a period (X.2 rule 1.6).
    const fn point_instant(self, now: u64) -> Option<u64> {
        if !self.is_point() {
            return None;
        }
        let exponent = (self.0 >> 11 & 0xf) as u32;
        let c = self.0 as u64 >> 10 & 1;
        let mantissa = self.0 as u64 & 0x3ff;
        let mut prefix = now >> (exponent + 10);
        if prefix & 1 != c {
            prefix += 1;
        }
        let instant = prefix << (exponent + 10) | mantissa << exponent;
        if now < instant && instant - now <= 1023 << exponent { Some(instant) } else { None }
    }

    /// When a wait that starts at clock value `now` ends. A period is counted from `now`, a point
    /// is an instant; an expired point and a period of length zero do not wait.
    pub const fn deadline(self, now: u64) -> Deadline {
        if self.is_never() {
            return Deadline::Never;
        }
        if self.is_point() {
            return match self.point_instant(now) {
                Some(instant) => Deadline::At(instant),
                None => Deadline::Immediately,
            };
        }
        match self.micros() {
            None | Some(0) => Deadline::Immediately,
            Some(micros) => Deadline::At(now.saturating_add(micros)),
        }
    }

    /// Whether a wait with this timeout never blocks, whatever the clock says (false for points:
    /// ask [`Self::deadline`]).
    pub const fn is_zero(self) -> bool {
        matches!(self.micros(), Some(0))
    }
}

impl core::fmt::Debug for Time {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.micros() {
            Some(micros) => write!(f, "{micros} us"),
            None if self.is_never() => f.write_str("never"),
            None => write!(f, "point:{:#x}", self.0),
        }
    }
}

/// The timeouts word of Ipc and the XferTimeouts word: bits 0..=15 receive, 16..=31 send, the rest
/// ignored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Timeouts(u64);

impl Timeouts {
    /// Neither phase ends by time.
    pub const NEVER: Self = Self(0);
    /// Neither phase blocks.
    pub const ZERO: Self = Self::new(Time::ZERO, Time::ZERO);

    /// `send` for the send phase, `receive` for the receive phase.
    pub const fn new(send: Time, receive: Time) -> Self {
        Self((send.raw() as u64) << 16 | receive.raw() as u64)
    }

    /// The timeouts with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Send timeout.
    pub const fn send(self) -> Time {
        Time((self.0 >> 16) as u16)
    }

    /// Receive timeout.
    pub const fn receive(self) -> Time {
        Time(self.0 as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: 1.1, 1.2.
    #[test]
    fn period_constants() {
        assert_eq!(Time::NEVER.deadline(5), Deadline::Never);
        assert_eq!(Time::ZERO.raw(), 0x0400);
        assert_eq!(Time::ZERO.deadline(5), Deadline::Immediately);
        assert_eq!(Time::LONGEST.micros(), Some(1023 << 31));
        assert_eq!(Time::from_raw(0x1271).micros(), Some(10_000));
        for exponent in 1..32 {
            assert_eq!(Time::from_raw(exponent << 10).deadline(9), Deadline::Immediately);
        }
    }

    /// Rules: 1.1.
    #[test]
    fn periods_round_up_or_down_within_one_unit_of_the_exponent() {
        for micros in (0..70_000).chain((0..40).map(|s| (1u64 << s) + 1)) {
            let up = Time::period(micros);
            let down = Time::period_rounded_down(micros).micros().unwrap();
            assert!(down <= micros && micros - down <= micros / 512, "{micros} -> {down}");
            let up = up.micros().unwrap();
            assert!(up >= micros && up - micros <= micros / 256 + 1, "{micros} -> {up}");
        }
        assert_eq!(Time::period(u64::MAX), Time::NEVER);
        assert_eq!(Time::period((1023 << 31) + 1), Time::NEVER);
        assert_eq!(Time::period_rounded_down(u64::MAX), Time::LONGEST);
        assert_eq!(Time::period(1023), Time::from_raw(1023));
        assert_eq!(Time::period(1024).micros(), Some(1024));
    }

    /// X.2 rule 1.7.
    /// Rules: 1.3, 1.5, 1.6, 1.7.
    #[test]
    fn point_examples() {
        let point = Time::point(74565, 94565).unwrap();
        assert_eq!(point.raw(), 0xab8b);
        assert_eq!(point.deadline(74565), Deadline::At(94560));
        let point = Time::point(100_000, 140_000).unwrap();
        assert_eq!(point.raw(), 0xb08b);
        assert_eq!(point.deadline(100_000), Deadline::At(139_968));
        assert_eq!(point.deadline(150_000), Deadline::Immediately);
        assert_eq!(point.deadline(210_000), Deadline::At(271_040));
    }

    /// Rules: 1.5, 1.6.
    #[test]
    fn points_are_never_late_and_at_most_one_step_early() {
        let mut now = 1u64;
        for step in 0..2000u64 {
            now = now.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step) >> 16;
            let distance = now % 33_521_664 + 1;
            let point = Time::point(now, now + distance).unwrap();
            let exponent = point.raw() >> 11 & 0xf;
            match point.deadline(now) {
                Deadline::At(instant) => {
                    assert!(instant <= now + distance && now + distance - instant < 1 << exponent);
                }
                other => panic!("{other:?} for {now} + {distance}"),
            }
        }
        assert_eq!(Time::point(0, 1024 << 15), None);
        assert_eq!(Time::point(5000, 10).unwrap().deadline(5000), Deadline::Immediately);
    }

    /// Rules: 1.10.
    #[test]
    fn timeouts_word() {
        let timeouts = Timeouts::new(Time::ZERO, Time::period(7));
        assert_eq!(timeouts.raw(), 0x0400_0007);
        assert_eq!((timeouts.send(), timeouts.receive()), (Time::ZERO, Time::period(7)));
    }
}
