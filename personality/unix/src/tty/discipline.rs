//! The line discipline: what happens to a byte between the keyboard and the reader.
//!
//! The discipline is a plain state machine: it knows no processes, does not block and has no clock.

use super::output::{Output, is_continuation, width};
use super::settings::{InputModes, LocalModes, Settings};
use crate::process_context::FileSignal;
use crate::ring::Ring;
use crate::{AttemptError, UserBuffer};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Input, editing, echo and output of one terminal.
pub(super) struct Discipline {
    pub(super) settings: Settings,
    pub(super) output: Output,
    /// Whether output is stopped (^S).
    pub(super) stopped: bool,
    /// Bytes that can be read: whole lines in canonical mode.
    ready: Ring,
    /// The lengths of the lines in `ready`, in canonical mode.
    lines: VecDeque<usize>,
    /// The line that is being edited.
    edit: Vec<u8>,
    /// The column of the screen in which the edited line began.
    edit_column: u32,
    /// Whether the next character is literal (^V).
    literal: bool,
    /// Whether erased characters are being printed (ECHOPRT).
    erasing: bool,
    /// Whether the stop character was sent to stop the input (IXOFF).
    input_stopped: bool,
}

/// How many bytes of input are kept, including the length of a line.
pub(super) const INPUT_MAXIMUM: usize = 4096;

/// What the terminal has to do after it received a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// A signal for the foreground process group.
    pub(super) signal: Option<FileSignal>,
}

impl Discipline {
    pub(super) fn new(settings: Settings) -> Discipline {
        Discipline {
            settings,
            output: Output::new(),
            stopped: false,
            ready: Ring::new(INPUT_MAXIMUM),
            lines: VecDeque::new(),
            edit: Vec::new(),
            edit_column: 0,
            literal: false,
            erasing: false,
            input_stopped: false,
        }
    }

    fn local(&self, mode: LocalModes) -> bool {
        self.settings.local.contains(mode)
    }

    fn input(&self, mode: InputModes) -> bool {
        self.settings.input.contains(mode)
    }

    fn is(&self, byte: u8, character: u8) -> bool {
        character != 0 && byte == character
    }

    fn held(&self) -> usize {
        self.ready.len() + self.edit.len()
    }

    /// Whether a byte can be received now; otherwise the byte has to wait for the reader. If one
    /// line without an end fills the buffer, no reader can make room: bytes are then received and
    /// lost.
    pub(super) fn can_receive(&self) -> bool {
        let canonical = self.local(LocalModes::CANONICAL);
        let room = self.held() < INPUT_MAXIMUM - 1 && self.lines.len() < INPUT_MAXIMUM;
        room || (canonical && self.lines.is_empty())
    }

    /// Receives one byte.
    pub(super) fn receive(&mut self, byte: u8) -> Effect {
        let mut byte = if self.input(InputModes::STRIP) { byte & 0x7f } else { byte };
        if self.input(InputModes::UPPER_TO_LOWER) && self.local(LocalModes::EXTENDED) {
            byte = byte.to_ascii_lowercase();
        }
        if core::mem::take(&mut self.literal) {
            self.finish_erasing();
            self.add(byte);
            return Effect::default();
        }
        let characters = self.settings.characters;
        if self.input(InputModes::OUTPUT_CONTROL) {
            if self.is(byte, characters.start) {
                self.stopped = false;
                return Effect::default();
            }
            if self.is(byte, characters.stop) {
                self.stopped = true;
                return Effect::default();
            }
            if self.input(InputModes::ANY_STARTS) {
                self.stopped = false;
            }
        }
        if self.local(LocalModes::SIGNALS) {
            let signal = match byte {
                b if self.is(b, characters.interrupt) => Some(FileSignal::Interrupt),
                b if self.is(b, characters.quit) => Some(FileSignal::Quit),
                b if self.is(b, characters.suspend) => Some(FileSignal::Stop),
                _ => None,
            };
            if let Some(signal) = signal {
                self.interrupt(byte);
                return Effect { signal: Some(signal) };
            }
        }
        match byte {
            b'\r' if self.input(InputModes::IGNORE_CR) => return Effect::default(),
            b'\r' if self.input(InputModes::CR_TO_NL) => byte = b'\n',
            b'\n' if self.input(InputModes::NL_TO_CR) => byte = b'\r',
            _ => {}
        }
        if self.local(LocalModes::CANONICAL) {
            self.receive_canonical(byte);
        } else {
            self.echo(byte);
            self.keep(byte);
        }
        self.control_input();
        Effect::default()
    }

    /// Handles a break condition of the line.
    pub(super) fn receive_break(&mut self) -> Effect {
        if self.input(InputModes::IGNORE_BREAK) {
            return Effect::default();
        }
        if self.input(InputModes::BREAK_INTERRUPTS) {
            self.flush_all();
            return Effect { signal: Some(FileSignal::Interrupt) };
        }
        let mark: &[u8] = if self.input(InputModes::MARK_ERRORS) { &[0xff, 0, 0] } else { &[0] };
        mark.iter().for_each(|&byte| self.keep(byte));
        Effect::default()
    }

    fn interrupt(&mut self, byte: u8) {
        if !self.local(LocalModes::NO_FLUSH) {
            self.flush_all();
        }
        self.stopped = false;
        self.echo(byte);
    }

    fn flush_all(&mut self) {
        self.flush_input();
        self.output.bytes.clear();
    }

    fn receive_canonical(&mut self, byte: u8) {
        let c = self.settings.characters;
        let extended = self.local(LocalModes::EXTENDED);
        match byte {
            b if self.is(b, c.erase) || self.is(b, c.kill) || (extended && self.is(b, c.word_erase)) => {
                self.erase(byte);
            }
            b if extended && self.is(b, c.literal_next) => {
                self.literal = true;
                self.finish_erasing();
                if self.local(LocalModes::ECHO) && self.local(LocalModes::ECHO_CONTROL) {
                    self.show_raw(b"^\x08");
                }
            }
            b if extended && self.is(b, c.reprint) && self.local(LocalModes::ECHO) => {
                self.finish_erasing();
                self.echo(byte);
                self.show(b"\n");
                self.edit_column = 0;
                for byte in core::mem::take(&mut self.edit) {
                    self.echo(byte);
                    self.edit.push(byte);
                }
            }
            b'\n' => {
                if self.local(LocalModes::ECHO) || self.local(LocalModes::ECHO_NL) {
                    self.finish_erasing();
                    self.show(b"\n");
                }
                self.end_line(Some(byte));
            }
            b if self.is(b, c.end_of_file) => self.end_line(None),
            b if self.is(b, c.end_of_line) || (extended && self.is(b, c.end_of_line_2)) => {
                self.echo(byte);
                self.end_line(Some(byte));
            }
            byte => {
                self.finish_erasing();
                self.add(byte);
            }
        }
    }

    /// Adds an ordinary byte to the input.
    fn add(&mut self, byte: u8) {
        if self.held() >= INPUT_MAXIMUM - 1 {
            if self.input(InputModes::BELL_WHEN_FULL) {
                self.show_raw(b"\x07");
            }
            return;
        }
        if self.edit.is_empty() {
            self.edit_column = self.output.column;
        }
        // A literal newline is echoed as a control character.
        match byte {
            b'\n' if self.local(LocalModes::ECHO) => self.show_raw(b"^J"),
            byte => self.echo(byte),
        }
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        if self.held() >= INPUT_MAXIMUM - 1 {
            return;
        }
        let doubled = byte == 0xff && self.input(InputModes::MARK_ERRORS) && !self.input(InputModes::STRIP);
        for _ in 0..1 + usize::from(doubled) {
            if self.local(LocalModes::CANONICAL) {
                self.edit.push(byte);
            } else {
                // Without memory the byte is lost, as on an overrun line.
                let _ = self.ready.push(&[byte]);
            }
        }
    }

    fn end_line(&mut self, delimiter: Option<u8>) {
        let mut line = core::mem::take(&mut self.edit);
        line.extend(delimiter);
        if self.ready.push(&line).is_ok_and(|pushed| pushed == line.len()) {
            self.lines.push_back(line.len());
        }
        line.clear();
        self.edit = line;
        self.erasing = false;
    }

    fn show(&mut self, bytes: &[u8]) {
        // Echo for which there is no room is lost.
        let _ = self.output.write(&self.settings, bytes);
    }

    fn show_raw(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.output.column = match byte {
                0x08 => self.output.column.saturating_sub(1),
                byte => self.output.column + width(&self.settings, self.output.column, byte),
            };
        }
        let _ = self.output.write_raw(bytes);
    }

    /// Echoes a byte as the settings say.
    fn echo(&mut self, byte: u8) {
        if !self.local(LocalModes::ECHO) {
            return;
        }
        match byte {
            b'\n' | b'\t' => self.show(&[byte]),
            byte if byte.is_ascii_control() && self.local(LocalModes::ECHO_CONTROL) => {
                self.show_raw(&[b'^', byte ^ 0x40]);
            }
            byte => self.show(&[byte]),
        }
    }

    /// How many columns a byte takes that was echoed at `column`.
    fn echoed_width(&self, column: u32, byte: u8) -> u32 {
        match byte {
            b'\t' => width(&self.settings, column, byte),
            byte if byte.is_ascii_control() => 2 * u32::from(self.local(LocalModes::ECHO_CONTROL)),
            byte => width(&self.settings, column, byte),
        }
    }

    /// Removes the last character of the edited line, which is one byte or, as UTF-8, several.
    fn take_character(&mut self) -> Option<Vec<u8>> {
        let mut start = self.edit.len().checked_sub(1)?;
        while start > 0 && is_continuation(&self.settings, self.edit[start]) {
            start -= 1;
        }
        Some(self.edit.split_off(start))
    }

    /// Handles the erase, kill or word-erase character `byte`.
    fn erase(&mut self, byte: u8) {
        if self.edit.is_empty() {
            return;
        }
        let kill = self.is(byte, self.settings.characters.kill);
        let echo = self.local(LocalModes::ECHO);
        let visible = LocalModes::ECHO_KILL | LocalModes::KILL_ERASES | LocalModes::ECHO_ERASE;
        if kill && !(echo && self.local(visible)) {
            self.edit.clear();
            if echo {
                self.finish_erasing();
                self.echo(byte);
                if self.local(LocalModes::ECHO_KILL) {
                    self.show(b"\n");
                }
            }
            return;
        }
        let word = !kill && !self.is(byte, self.settings.characters.erase);
        let mut seen_word = false;
        while let Some(&last) = self.edit.last() {
            if word {
                let in_word = last.is_ascii_alphanumeric() || last == b'_' || last >= 0x80;
                if seen_word && !in_word {
                    break;
                }
                seen_word |= in_word;
            }
            let Some(character) = self.take_character() else { break };
            if echo {
                self.show_erased(byte, &character);
            }
            if !kill && !word {
                break;
            }
        }
        if self.edit.is_empty() {
            self.finish_erasing();
        }
    }

    fn show_erased(&mut self, byte: u8, character: &[u8]) {
        if self.local(LocalModes::ECHO_PRINT) {
            if !core::mem::replace(&mut self.erasing, true) {
                self.show_raw(b"\\");
            }
            character.iter().for_each(|&byte| self.echo(byte));
        } else if !self.local(LocalModes::ECHO_ERASE) {
            self.echo(byte);
        } else if character == b"\t" {
            // The column in which the cursor was before the character is found by following the
            // line from its start.
            let mut column = self.edit_column;
            for &byte in &self.edit {
                column += self.echoed_width(column, byte);
            }
            for _ in 0..width(&self.settings, column, b'\t') {
                self.show_raw(b"\x08");
            }
        } else {
            let columns: u32 = character.iter().map(|&byte| self.echoed_width(1, byte)).sum();
            for _ in 0..columns {
                self.show_raw(b"\x08 \x08");
            }
        }
    }

    fn finish_erasing(&mut self) {
        if core::mem::take(&mut self.erasing) {
            self.show_raw(b"/");
        }
    }

    /// Sends the stop or start character when the input buffer has got full or empty (IXOFF).
    fn control_input(&mut self) {
        if !self.input(InputModes::INPUT_CONTROL) {
            return;
        }
        let held = self.held();
        if !self.input_stopped && held > INPUT_MAXIMUM * 3 / 4 {
            self.input_stopped = true;
            self.show_raw(&[self.settings.characters.stop]);
        } else if self.input_stopped && held < INPUT_MAXIMUM / 4 {
            self.input_stopped = false;
            self.show_raw(&[self.settings.characters.start]);
        }
    }

    /// How many bytes a read in raw mode would get; in canonical mode how many bytes are in
    /// complete lines.
    pub(super) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Whether a read in canonical mode would not block.
    pub(super) fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Copies what one read gets: at most one line in canonical mode, which several reads may
    /// share.
    pub(super) fn read(&mut self, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let limit = match self.local(LocalModes::CANONICAL) {
            true => *self.lines.front().ok_or(AttemptError::WouldBlock)?,
            false => usize::MAX,
        };
        let count = self.ready.drain(limit, to)?;
        if let (true, Some(line)) = (self.local(LocalModes::CANONICAL), self.lines.front_mut()) {
            *line -= count;
            if *line == 0 {
                self.lines.pop_front();
            }
        }
        self.control_input();
        Ok(count)
    }

    /// Discards the input that was not read.
    pub(super) fn flush_input(&mut self) {
        self.ready.clear();
        self.lines.clear();
        self.edit.clear();
        self.literal = false;
        self.erasing = false;
        self.control_input();
    }

    /// Sets new settings. Input that was typed before can be read in the new mode.
    pub(super) fn set(&mut self, settings: Settings) {
        let was_canonical = self.local(LocalModes::CANONICAL);
        let is_canonical = settings.local.contains(LocalModes::CANONICAL);
        if was_canonical && !is_canonical {
            let edit = core::mem::take(&mut self.edit);
            let _ = self.ready.push(&edit);
            self.lines.clear();
            self.literal = false;
            self.erasing = false;
        } else if !was_canonical && is_canonical && !self.ready.is_empty() {
            self.lines.push_back(self.ready.len());
        }
        if !settings.input.contains(InputModes::OUTPUT_CONTROL) {
            self.stopped = false;
        }
        self.settings = settings;
    }
}
