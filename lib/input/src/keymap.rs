//! What keys stand for: the bytes that Linux' console sends for them, which are those that programs
//! expect with `TERM=linux`, or an action of the console.

use crate::code;
use crate::event::{self, Event};
use crate::layout::{Layout, Level};
use core::ops::Deref;

/// Something that is done when a key is pressed, instead of sending bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The virtual console of this number, 1..=12, is to be shown: Alt or Ctrl-Alt with F1 to F12.
    Console(u8),
    /// The console before the one that is shown: Alt with the cursor key to the left.
    PreviousConsole,
    /// The console after the one that is shown: Alt with the cursor key to the right.
    NextConsole,
    /// Text that has left the screen at the top is to be shown: Shift with Page Up.
    ScrollBack,
    /// The way back from there: Shift with Page Down.
    ScrollForward,
    /// The machine is to be restarted: Ctrl-Alt-Del.
    Restart,
}

/// What was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// These bytes, which belong to the console that is shown.
    Bytes(Sequence),
    /// An action of the console.
    Action(Action),
}

/// Modes of a console on which the bytes of keys depend. A program changes them by escape
/// sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Cursor keys send `ESC O` instead of `ESC [` (DECCKM, `ESC [ ? 1 h`).
    pub application_cursor: bool,
    /// The keypad sends sequences of its own (DECKPAM, `ESC =`).
    pub application_keypad: bool,
    /// Enter sends a line feed after the carriage return (LNM, `ESC [ 20 h`).
    pub new_line: bool,
}

/// The bytes of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    bytes: [u8; 8],
    length: u8,
}

impl Deref for Sequence {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Sequence {
    fn of(bytes: &[u8]) -> Sequence {
        let mut sequence = Sequence::default();
        sequence.push(bytes);
        sequence
    }

    /// Appends bytes. No key has more than fit.
    fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.bytes[usize::from(self.length)] = byte;
            self.length += 1;
        }
    }
}

/// The keys that change what others stand for, each as a bit of [`KeyMap::held`].
const MODIFIERS: [u16; 6] = [
    code::LEFT_SHIFT,
    code::RIGHT_SHIFT,
    code::LEFT_CONTROL,
    code::RIGHT_CONTROL,
    code::LEFT_ALT,
    code::RIGHT_ALT,
];
const SHIFT: u8 = 0b11;
const CONTROL: u8 = 0b1100;
const ALT: u8 = 0b1_0000;
const GRAPHIC: u8 = 0b10_0000;

/// What the keys from [`code::KEYPAD_7`] on stand for: with Num Lock, without it (another key), and
/// the letter of the sequence in application mode.
const KEYPAD: [(u8, u16, u8); 13] = [
    (b'7', code::HOME, b'w'),
    (b'8', code::UP, b'x'),
    (b'9', code::PAGE_UP, b'y'),
    (b'-', 0, b'S'),
    (b'4', code::LEFT, b't'),
    (b'5', code::KEYPAD_5, b'u'),
    (b'6', code::RIGHT, b'v'),
    (b'+', 0, b'l'),
    (b'1', code::END, b'q'),
    (b'2', code::DOWN, b'r'),
    (b'3', code::PAGE_DOWN, b's'),
    (b'0', code::INSERT, b'p'),
    (b'.', code::DELETE, b'n'),
];

/// The number in the sequences of the function keys from F6 on. On a PC with few keys Shift chooses
/// F11 to F20; so it does on Linux.
const FUNCTION: [u8; 15] = [17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34];

/// The state of a keyboard: which keys are held and which locks are on.
#[derive(Debug)]
pub struct KeyMap {
    layout: &'static Layout,
    /// The modifiers that are held: a bit for each of [`MODIFIERS`].
    held: u8,
    caps_lock: bool,
    num_lock: bool,
    /// The number of a character that is typed on the keypad while Alt is held.
    number: Option<u32>,
}

impl KeyMap {
    /// A keyboard of which no key is held, with all locks off.
    pub const fn new(layout: &'static Layout) -> KeyMap {
        KeyMap { layout, held: 0, caps_lock: false, num_lock: false, number: None }
    }

    /// Takes all keys as released, because events were lost or the keyboard has been removed. The
    /// locks stay as they are.
    pub fn release_all(&mut self) {
        self.held = 0;
        self.number = None;
    }

    /// The lights that show the locks: bits of [`event`].
    pub fn lights(&self) -> u32 {
        let light = |is_on: bool, bit: u32| if is_on { bit } else { 0 };
        light(self.num_lock, event::NUM_LOCK_LIGHT) | light(self.caps_lock, event::CAPS_LOCK_LIGHT)
    }

    /// What an event stands for, if it stands for something. `modes` are those of the console that
    /// is shown.
    pub fn event(&mut self, event: Event, modes: Modes) -> Option<Typed> {
        if event == Event::LOST {
            self.release_all();
        }
        if event.kind != event::KEY {
            return None;
        }
        if let Some(place) = MODIFIERS.iter().position(|&key| key == event.code) {
            return self.modifier(1 << place, event.value != event::RELEASED);
        }
        match event.value {
            event::PRESSED => self.press(event.code, modes),
            event::REPEATED if !is_lock(event.code) => self.press(event.code, modes),
            _ => None,
        }
    }

    /// A modifier is pressed or released. With the release of Alt, the character whose number was
    /// typed is complete.
    fn modifier(&mut self, bit: u8, is_held: bool) -> Option<Typed> {
        if is_held {
            self.held |= bit;
            return None;
        }
        self.held &= !bit;
        let number = self.number.take_if(|_| bit == ALT)?;
        let mut bytes = [0; 4];
        let character = char::from_u32(number)?.encode_utf8(&mut bytes);
        Some(Typed::Bytes(Sequence::of(character.as_bytes())))
    }

    fn is_held(&self, modifier: u8) -> bool {
        self.held & modifier != 0
    }

    fn press(&mut self, key: u16, modes: Modes) -> Option<Typed> {
        if let Some(action) = self.action(key) {
            return Some(Typed::Action(action));
        }
        match key {
            code::CAPS_LOCK => self.caps_lock = !self.caps_lock,
            code::NUM_LOCK if !modes.application_keypad => self.num_lock = !self.num_lock,
            _ => return self.bytes(key, modes).map(Typed::Bytes),
        }
        None
    }

    fn action(&self, key: u16) -> Option<Action> {
        let (shift, control, alt) = (self.is_held(SHIFT), self.is_held(CONTROL), self.is_held(ALT));
        match key {
            code::DELETE | code::KEYPAD_POINT if control && alt => Some(Action::Restart),
            code::LEFT if alt => Some(Action::PreviousConsole),
            code::RIGHT if alt => Some(Action::NextConsole),
            code::PAGE_UP if shift => Some(Action::ScrollBack),
            code::PAGE_DOWN if shift => Some(Action::ScrollForward),
            _ if alt => function(key).map(Action::Console),
            _ => None,
        }
    }

    fn bytes(&mut self, key: u16, modes: Modes) -> Option<Sequence> {
        match key {
            code::ESCAPE => Some(self.with_alt(&[0x1b])),
            code::BACKSPACE if self.is_held(CONTROL) => Some(self.with_alt(&[8])),
            code::BACKSPACE => Some(self.with_alt(&[0x7f])),
            code::TAB if self.is_held(SHIFT) => Some(Sequence::of(b"\x1b\t")),
            code::TAB => Some(self.with_alt(b"\t")),
            code::ENTER if modes.new_line => Some(self.with_alt(b"\r\n")),
            code::ENTER => Some(self.with_alt(b"\r")),
            code::NUM_LOCK => Some(Sequence::of(b"\x1bOP")),
            code::KEYPAD_7..=code::KEYPAD_POINT
            | code::KEYPAD_STAR
            | code::KEYPAD_SLASH
            | code::KEYPAD_ENTER => self.keypad(key, modes),
            _ => match function(key) {
                Some(number) => self.function(number),
                None => special(key, modes).or_else(|| self.character(key)),
            },
        }
    }

    /// The bytes, after an escape character if Alt is held.
    fn with_alt(&self, bytes: &[u8]) -> Sequence {
        let mut sequence = Sequence::of(if self.is_held(ALT) { b"\x1b" } else { b"" });
        sequence.push(bytes);
        sequence
    }

    fn function(&self, number: u8) -> Option<Sequence> {
        let number = if self.is_held(SHIFT) && number <= 10 { number + 10 } else { number };
        Some(match number {
            1..=5 => Sequence::of(&[0x1b, b'[', b'[', b'A' + number - 1]),
            _ => {
                let argument = FUNCTION.get(usize::from(number - 6))?;
                Sequence::of(&[0x1b, b'[', b'0' + argument / 10, b'0' + argument % 10, b'~'])
            }
        })
    }

    fn keypad(&mut self, key: u16, modes: Modes) -> Option<Sequence> {
        let (character, other, letter) = match key {
            code::KEYPAD_STAR => (b'*', 0, b'R'),
            code::KEYPAD_SLASH => (b'/', 0, b'Q'),
            code::KEYPAD_ENTER => (b'\r', 0, b'M'),
            _ => *KEYPAD.get(usize::from(key - code::KEYPAD_7))?,
        };
        if self.is_held(ALT) && character.is_ascii_digit() {
            let number = self.number.unwrap_or(0).saturating_mul(10);
            self.number = Some(number.saturating_add((character - b'0').into()));
            return None;
        }
        if modes.application_keypad && !self.is_held(SHIFT) {
            return Some(Sequence::of(&[0x1b, b'O', letter]));
        }
        match other {
            0 if character == b'\r' && modes.new_line => Some(Sequence::of(b"\r\n")),
            0 => Some(Sequence::of(&[character])),
            _ if self.num_lock => Some(Sequence::of(&[character])),
            _ => special(other, modes),
        }
    }

    /// The bytes of a key that bears a character: that of the level which Shift, Caps Lock and
    /// AltGr choose, or its control character, in UTF-8.
    fn character(&self, key: u16) -> Option<Sequence> {
        let shift = self.is_held(SHIFT) != (self.caps_lock && self.layout.is_letter(key));
        let level = match () {
            () if self.is_held(GRAPHIC) && self.layout.has_graphic => Level::Graphic,
            () if shift => Level::Shifted,
            () => Level::Plain,
        };
        let character = self.layout.character(key, level)?;
        if self.is_held(CONTROL) {
            let plain = || self.layout.character(key, Level::Plain);
            let control = control(character).or_else(|| control(plain()?))?;
            return Some(self.with_alt(&[control]));
        }
        let mut bytes = [0; 4];
        Some(self.with_alt(character.encode_utf8(&mut bytes).as_bytes()))
    }
}

/// Whether a key switches a lock, which it does only once while it is held.
fn is_lock(key: u16) -> bool {
    matches!(key, code::CAPS_LOCK | code::NUM_LOCK)
}

/// The number of a function key, 1..=12.
fn function(key: u16) -> Option<u8> {
    match key {
        code::F1..=code::F10 => u8::try_from(key - code::F1 + 1).ok(),
        code::F11 => Some(11),
        code::F12 => Some(12),
        _ => None,
    }
}

/// The bytes of a key that bears no character and is none of the above.
fn special(key: u16, modes: Modes) -> Option<Sequence> {
    let cursor = |letter: u8| {
        let introducer = if modes.application_cursor { b'O' } else { b'[' };
        Sequence::of(&[0x1b, introducer, letter])
    };
    Some(match key {
        code::UP => cursor(b'A'),
        code::DOWN => cursor(b'B'),
        code::RIGHT => cursor(b'C'),
        code::LEFT => cursor(b'D'),
        code::KEYPAD_5 => cursor(b'G'),
        code::HOME => Sequence::of(b"\x1b[1~"),
        code::INSERT => Sequence::of(b"\x1b[2~"),
        code::DELETE => Sequence::of(b"\x1b[3~"),
        code::END => Sequence::of(b"\x1b[4~"),
        code::PAGE_UP => Sequence::of(b"\x1b[5~"),
        code::PAGE_DOWN => Sequence::of(b"\x1b[6~"),
        code::PAUSE => Sequence::of(b"\x1b[P"),
        code::MENU => Sequence::of(b"\x1b[29~"),
        _ => return None,
    })
}

/// The control character of a key with this character.
fn control(character: char) -> Option<u8> {
    match character {
        'a'..='z' | '@'..='_' => u8::try_from(u32::from(character) & 0x1f).ok(),
        ' ' | '`' | '2' => Some(0),
        '3'..='7' => u8::try_from(0x1b + u32::from(character) - u32::from('3')).ok(),
        '-' => Some(0x1f),
        '8' | '/' | '?' => Some(0x7f),
        _ => None,
    }
}

#[cfg(test)]
#[path = "keymap_tests.rs"]
mod tests;
