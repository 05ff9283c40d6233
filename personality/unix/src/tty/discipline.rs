//! The line discipline: what happens to a byte between the keyboard and the reader.
//!
//! A plain state machine: it knows no processes, no waiting and no clock.

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
    /// Output is stopped (^S).
    pub(super) stopped: bool,
    /// Bytes that can be read: whole lines in canonical mode.
    ready: Ring,
    /// The lengths of those lines.
    lines: VecDeque<usize>,
    /// The line that is being edited.
    edit: Vec<u8>,
    /// The column in which that line began.
    edit_column: u32,
    /// The next character is literal (^V).
    literal: bool,
    /// In the middle of printing what is erased (ECHOPRT).
    erasing: bool,
    /// The stop character was sent to control input.
    input_stopped: bool,
}

/// Bytes of input that are kept, a line's length included.
pub(super) const INPUT_MAXIMUM: usize = 4096;

/// What the terminal has to do after a byte was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// A signal for the foreground group.
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

    /// Whether a byte can be received now; otherwise it waits for the reader. If the buffer is full
    /// of one line without an end, no reader can make room: then bytes are received and lost.
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

    /// A break condition arrived.
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

    /// Adds an ordinary byte.
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
        // A newline that is literal is echoed as a control character.
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
                // If there is no memory, the byte is lost, as on an overrun line.
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
        // Echo that cannot be kept is lost.
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

    /// The columns of a byte that was echoed at `column`.
    fn echoed_width(&self, column: u32, byte: u8) -> u32 {
        match byte {
            b'\t' => width(&self.settings, column, byte),
            byte if byte.is_ascii_control() => 2 * u32::from(self.local(LocalModes::ECHO_CONTROL)),
            byte => width(&self.settings, column, byte),
        }
    }

    /// The last character of the line, of one byte or, as UTF-8, several.
    fn take_character(&mut self) -> Option<Vec<u8>> {
        let mut start = self.edit.len().checked_sub(1)?;
        while start > 0 && is_continuation(&self.settings, self.edit[start]) {
            start -= 1;
        }
        Some(self.edit.split_off(start))
    }

    /// The erase, kill or word-erase character.
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
            // To find the column where the cursor was before the character, follow the line from
            // its start.
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

    /// Sends stop and start characters to control input (IXOFF).
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

    /// Bytes that a read in raw mode would get; in canonical mode those of whole lines.
    pub(super) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Whether a read in canonical mode would not wait.
    pub(super) fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Copies out what one read gets: at most one line in canonical mode. A line may be read in
    /// pieces.
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

    /// Throws input away.
    pub(super) fn flush_input(&mut self) {
        self.ready.clear();
        self.lines.clear();
        self.edit.clear();
        self.literal = false;
        self.erasing = false;
        self.control_input();
    }

    /// Takes new settings. What was typed so far can be read in the new mode.
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
