//! What goes with the text on the way to the guest's terminal: commands as in Telnet (RFC 854), so
//! that the size of the window (RFC 1073) needs no line of its own. The other end is the Unix
//! server's with the argument `line=telnet`.

/// The byte before a command; twice it stands for itself.
const COMMAND: u8 = 255;
const SUBNEGOTIATION: u8 = 250;
const WINDOW_SIZE: u8 = 31;
const END: u8 = 240;

/// Text, on such a line.
pub(super) fn text(bytes: &[u8]) -> Vec<u8> {
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
    [&[COMMAND, SUBNEGOTIATION, WINDOW_SIZE], &text(&[a, b, c, d])[..], &[COMMAND, END]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text() {
        assert_eq!(text(b"a\xffb"), b"a\xff\xffb");
        assert_eq!(window_size(24, 80), [255, 250, 31, 0, 80, 0, 24, 255, 240]);
        assert_eq!(window_size(1, 255), [255, 250, 31, 0, 255, 255, 0, 1, 255, 240]);
    }
}
