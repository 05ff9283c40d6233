//! Parses commands on the line of the console, as in Telnet (RFC 854): the size of the window (RFC
//! 1073), breaks, and what time it is. The emulated machine's serial port has no other way to
//! transmit them. Text begins with a command that does nothing: the beginning of what was sent
//! before the line was opened may be lost, and the rest of a command must not pass for text.

use core::time::Duration;
use unix::Timestamp;

/// Telnet's IAC, the byte before a command; two of them are a data byte of this value.
const COMMAND: u8 = 255;
const SUBNEGOTIATION: u8 = 250;
const BREAK: u8 = 243;
const END: u8 = 240;
/// Telnet's WILL, WON'T, DO and DON'T, which an option follows. They are skipped: nothing is
/// negotiated.
const NEGOTIATION: core::ops::RangeInclusive<u8> = 251..=254;
const WINDOW_SIZE: u8 = 31;
/// An option of our own: the time at the other end, in microseconds since 1970.
const TIME: u8 = 200;
/// The length in bytes of the longest subnegotiation that is understood, its option included.
const LONGEST: usize = 9;

/// The meaning of bytes on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The user typed this byte.
    Typed(u8),
    /// The user's window has got this size.
    Window {
        /// The number of lines.
        rows: u16,
        /// The number of characters in a line.
        columns: u16,
    },
    /// The user sent a break.
    Break,
    /// It is at least this time.
    Time(Timestamp),
}

/// The state of the parser, which tells commands from text. The bytes of a command may come in
/// several reads.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    /// A command has ended since the line was opened. What comes before is the rest of a command.
    is_in_step: bool,
    /// The bytes of the present subnegotiation, and how many have come: there may be more than are
    /// kept.
    said: [u8; LONGEST],
    length: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Text,
    Command,
    Option,
    Subnegotiation,
    CommandInSubnegotiation,
}

impl Decoder {
    /// Takes the next byte of the line. Returns what it completes, if anything.
    pub(crate) fn take(&mut self, byte: u8) -> Option<Input> {
        let (next, input) = match (self.state, byte) {
            (State::Text, COMMAND) => (State::Command, None),
            (State::Text, byte) => (State::Text, Some(Input::Typed(byte))),
            (State::Command, COMMAND) => (State::Text, Some(Input::Typed(COMMAND))),
            (State::Command, BREAK) => (State::Text, Some(Input::Break)),
            (State::Command, SUBNEGOTIATION) => {
                self.length = 0;
                (State::Subnegotiation, None)
            }
            (State::Command, byte) if NEGOTIATION.contains(&byte) => (State::Option, None),
            (State::Command | State::Option, _) => (State::Text, None),
            (State::Subnegotiation, COMMAND) => (State::CommandInSubnegotiation, None),
            (State::Subnegotiation, byte) | (State::CommandInSubnegotiation, byte @ COMMAND) => {
                if let Some(place) = self.said.get_mut(self.length) {
                    *place = byte;
                }
                self.length = self.length.saturating_add(1);
                (State::Subnegotiation, None)
            }
            (State::CommandInSubnegotiation, END) => (State::Text, self.said()),
            (State::CommandInSubnegotiation, _) => (State::Text, None),
        };
        let ends_command = !matches!(self.state, State::Text) && byte != COMMAND;
        self.is_in_step |= ends_command && matches!(next, State::Text);
        self.state = next;
        input.filter(|input| self.is_in_step || !matches!(input, Input::Typed(_)))
    }

    /// The meaning of a complete subnegotiation.
    fn said(&self) -> Option<Input> {
        match *self.said.get(..self.length)? {
            [WINDOW_SIZE, a, b, c, d] => {
                let (rows, columns) = (u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b]));
                Some(Input::Window { rows, columns })
            }
            [TIME, ref time @ ..] => {
                let time = Duration::from_micros(u64::from_be_bytes(time.try_into().ok()?));
                let seconds = i64::try_from(time.as_secs()).ok()?;
                Some(Input::Time(Timestamp { seconds, nanoseconds: time.subsec_nanos() }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const NOTHING: &[u8] = b"\xff\xf1";

    fn decoded(bytes: &[u8]) -> Vec<Input> {
        decoded_from(&[NOTHING, bytes].concat())
    }

    fn decoded_from(bytes: &[u8]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        bytes.iter().filter_map(|&byte| decoder.take(byte)).collect()
    }

    #[test]
    fn text_passes_and_its_commands_are_carried_out() {
        let text = |bytes: &[u8]| bytes.iter().map(|&byte| Input::Typed(byte)).collect::<Vec<_>>();
        assert_eq!(decoded(b"a\x1b\xff\xffb"), text(b"a\x1b\xffb"));
        assert_eq!(
            decoded(b"a\xff\xfa\x1f\0\x50\0\x18\xff\xf0b"),
            [Input::Typed(b'a'), Input::Window { rows: 24, columns: 80 }, Input::Typed(b'b')]
        );
        // In a window size, too, a byte of value 255 is doubled: this one has 255 columns.
        assert_eq!(
            decoded(b"\xff\xfa\x1f\0\xff\xff\x01\0\xff\xf0"),
            [Input::Window { rows: 256, columns: 255 }]
        );
        assert_eq!(
            decoded(b"\xff\xfa\xc8\0\0\0\0\0\x0f\x42\xff\xff\xff\xf0"),
            [Input::Time(Timestamp { seconds: 1, nanoseconds: 191_000 })]
        );
        assert_eq!(decoded(b"\xff\xf3x"), [Input::Break, Input::Typed(b'x')]);
    }

    #[test]
    fn the_rest_of_a_command_whose_beginning_is_lost_is_not_text() {
        let time = b"\xff\xfa\xc8\0\x06\x45\x61\xff\xff\xc8\x86,\xff\xf0";
        for lost in 1..time.len() {
            let line = [&time[lost..], NOTHING, b"a\xff\xffb"].concat();
            let expected = [b'a', 255, b'b'].map(Input::Typed);
            // A line that is cut between the two bytes that stand for one begins with a command.
            let found: Vec<_> = decoded_from(&line).into_iter().skip(if lost == 8 { 2 } else { 0 }).collect();
            assert_eq!(found, expected, "{lost} bytes are lost");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        // After a negotiation, another option's subnegotiation, one that is too short or too long,
        // or an unknown command, text is text again.
        for command in [
            &b"\xff\xfb\x1f"[..],
            b"\xff\xfa\x18\0xterm\xff\xf0",
            b"\xff\xfa\x1f\0\x50\xff\xf0",
            b"\xff\xfa\xff\xf0",
            b"\xff\xfa\xc8\0\0\0\0\0\0\x01\xff\xf0",
            b"\xff\xfa\xc8\0\0\0\0\0\0\0\x01\0\xff\xf0",
            b"\xff\xfa\x1f\0\x50\0\x18\0\xff\xf0",
            b"\xff\xf1",
            b"\xff\xfa\x1f\xff\xf1",
        ] {
            assert_eq!(decoded(&[command, b"x"].concat()), [Input::Typed(b'x')], "{command:x?}");
        }
    }
}
