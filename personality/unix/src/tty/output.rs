//! Output processing (the second part of the line discipline).

use super::settings::{OutputModes, Settings};
use crate::Result;
use crate::ring::Ring;

/// The output that was not taken yet, and the column of the cursor after it.
pub(super) struct Output {
    pub(super) bytes: Ring,
    pub(super) column: u32,
}

/// The most bytes of output that are kept; a write beyond this number blocks.
const CAPACITY: usize = 8192;
/// How many more bytes echo may take. Echo beyond that is lost, because no process can be made to
/// wait until there is room for it.
const ECHO_RESERVE: usize = 4096;
/// Columns between two tabulator stops.
const TAB: u32 = 8;

impl Output {
    pub(super) const fn new() -> Output {
        Output { bytes: Ring::new(CAPACITY + ECHO_RESERVE), column: 0 }
    }

    /// How many bytes a program may write without blocking, whatever they are converted to.
    pub(super) fn room(&self, settings: &Settings) -> usize {
        let expansion = match settings.output {
            modes if !modes.contains(OutputModes::PROCESS) => 1,
            modes if modes.contains(OutputModes::EXPAND_TABS) => TAB as usize,
            _ => 2,
        };
        CAPACITY.saturating_sub(self.bytes.len()) / expansion
    }

    /// Converts and keeps bytes that a program writes (at most [`Output::room`]) or that are
    /// echoed.
    pub(super) fn write(&mut self, settings: &Settings, bytes: &[u8]) -> Result<()> {
        if !settings.output.contains(OutputModes::PROCESS) {
            bytes.iter().for_each(|&byte| self.follow(settings, byte));
            return self.bytes.push(bytes).map(drop);
        }
        bytes.iter().try_for_each(|&byte| self.process(settings, byte))
    }

    /// Keeps bytes without converting them.
    pub(super) fn write_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.push(bytes).map(drop)
    }

    fn process(&mut self, settings: &Settings, byte: u8) -> Result<()> {
        let modes = settings.output;
        match byte {
            b'\n' if modes.contains(OutputModes::NL_TO_CR_NL) => {
                self.column = 0;
                self.bytes.push(b"\r\n")?;
            }
            b'\n' => {
                if modes.contains(OutputModes::NL_RETURNS) {
                    self.column = 0;
                }
                self.bytes.push(b"\n")?;
            }
            b'\r' if modes.contains(OutputModes::NO_CR_AT_START) && self.column == 0 => {}
            b'\r' if modes.contains(OutputModes::CR_TO_NL) => {
                if modes.contains(OutputModes::NL_RETURNS) {
                    self.column = 0;
                }
                self.bytes.push(b"\n")?;
            }
            b'\t' if modes.contains(OutputModes::EXPAND_TABS) => {
                let spaces = TAB - self.column % TAB;
                self.column += spaces;
                self.bytes.push(&b"        "[..spaces as usize])?;
            }
            byte => {
                let upper = modes.contains(OutputModes::LOWER_TO_UPPER);
                let byte = if upper { byte.to_ascii_uppercase() } else { byte };
                self.follow(settings, byte);
                self.bytes.push(&[byte])?;
            }
        }
        Ok(())
    }

    /// Updates the column of the cursor for a byte of output.
    fn follow(&mut self, settings: &Settings, byte: u8) {
        self.column = match byte {
            b'\r' => 0,
            0x08 => self.column.saturating_sub(1),
            _ => self.column.saturating_add(width(settings, self.column, byte)),
        };
    }
}

/// The columns that a byte takes when it is shown at `column`: none for control bytes and the later
/// bytes of a UTF-8 character.
pub(super) fn width(settings: &Settings, column: u32, byte: u8) -> u32 {
    match byte {
        b'\t' => TAB - column % TAB,
        byte if byte.is_ascii_control() => 0,
        byte if is_continuation(settings, byte) => 0,
        _ => 1,
    }
}

/// Whether the byte continues a UTF-8 character.
pub(super) fn is_continuation(settings: &Settings, byte: u8) -> bool {
    settings.input.contains(super::InputModes::UTF8) && byte & 0xc0 == 0x80
}
