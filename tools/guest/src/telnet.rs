//! What goes with the text on the way to the guest's terminal: commands as in Telnet (RFC 854), so
//! that the size of the window (RFC 1073) and the time need no line of their own. The other end is
//! the Unix server's with the argument `line=telnet`.

use std::time::Duration;

/// The byte before a command; twice it stands for itself.
const COMMAND: u8 = 255;
const SUBNEGOTIATION: u8 = 250;
const WINDOW_SIZE: u8 = 31;
/// An option of our own: the time, in microseconds since 1970.
const TIME: u8 = 200;
const END: u8 = 240;
/// The command that does nothing.
const NOTHING: u8 = 241;

/// Text, on such a line. It begins with a command: the guest loses what comes before it opens the
/// line, and takes nothing for text until a command has ended.
pub(super) fn text(bytes: &[u8]) -> Vec<u8> {
    [&[COMMAND, NOTHING], &escaped(bytes)[..]].concat()
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        escaped.push(byte);
        if byte == COMMAND {
            escaped.push(byte);
        }
    }
    escaped
}

/// The command that the window has this size now.
pub(super) fn window_size(rows: u16, columns: u16) -> Vec<u8> {
    let [a, b] = columns.to_be_bytes();
    let [c, d] = rows.to_be_bytes();
    command(WINDOW_SIZE, &[a, b, c, d])
}

/// The command that it is at least this time now, since 1970.
pub(super) fn time(since: Duration) -> Vec<u8> {
    command(TIME, &u64::try_from(since.as_micros()).unwrap_or(u64::MAX).to_be_bytes())
}

fn command(option: u8, value: &[u8]) -> Vec<u8> {
    [&[COMMAND, SUBNEGOTIATION, option], &escaped(value)[..], &[COMMAND, END]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text() {
        assert_eq!(text(b"a\xffb"), b"\xff\xf1a\xff\xffb");
        assert_eq!(window_size(24, 80), [255, 250, 31, 0, 80, 0, 24, 255, 240]);
        assert_eq!(window_size(1, 255), [255, 250, 31, 0, 255, 255, 0, 1, 255, 240]);
        let time = time(Duration::from_micros(0xf_42ff));
        assert_eq!(time, [255, 250, 200, 0, 0, 0, 0, 0, 15, 66, 255, 255, 255, 240]);
    }
}
