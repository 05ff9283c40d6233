//! What the bytes of a keyboard mean. The crate `pc-keyboard` knows the codes.

use crate::controller::{ACCEPTED, REFUSED, Set};
use pc_keyboard::{KeyCode, KeyEvent, KeyState, ScancodeSet, ScancodeSet1, ScancodeSet2};

/// What a byte, with those before it, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A key was pressed or released, or is held and said to be pressed once more.
    Key {
        /// The code of the key, as Linux numbers it.
        code: u16,
        /// Whether it is pressed.
        is_pressed: bool,
    },
    /// The keyboard could not keep what has happened to its keys.
    Lost,
    /// A keyboard was plugged in, or has started for another reason: it has forgotten everything.
    Restarted,
    /// The keyboard has accepted the last byte that was sent to it.
    Accepted,
    /// The keyboard has refused the last byte that was sent to it.
    Refused,
}

/// The byte by which a keyboard says in set 1 that it could not keep what has happened.
const LOST_IN_SET_ONE: u8 = 0xff;

enum Codes {
    One(ScancodeSet1),
    Two(ScancodeSet2),
}

/// The state between two bytes.
pub struct Decoder {
    codes: Codes,
    /// Whether the first half of the code of the Pause key has come.
    is_pause: bool,
}

impl Decoder {
    /// A decoder of codes of this set.
    pub fn new(set: Set) -> Decoder {
        let codes = match set {
            Set::One => Codes::One(ScancodeSet1::new()),
            Set::Two => Codes::Two(ScancodeSet2::new()),
        };
        Decoder { codes, is_pause: false }
    }

    /// What this byte means. `None`: nothing without the next one, or the code is unknown.
    pub fn decode(&mut self, byte: u8) -> Option<Meaning> {
        match byte {
            ACCEPTED => return Some(Meaning::Accepted),
            REFUSED => return Some(Meaning::Refused),
            LOST_IN_SET_ONE => return Some(Meaning::Lost),
            _ => {}
        }
        let event = match &mut self.codes {
            Codes::One(codes) => codes.advance_state(byte),
            Codes::Two(codes) => codes.advance_state(byte),
        };
        // An unknown code is that of a key which has no meaning here.
        let KeyEvent { code, state } = event.ok()??;
        match code {
            KeyCode::TooManyKeys => return Some(Meaning::Lost),
            KeyCode::PowerOnTestOk => return Some(Meaning::Restarted),
            // The Pause key sends the code of no other key, and then that of Num Lock.
            KeyCode::RControl2 => {
                self.is_pause = true;
                return None;
            }
            _ => {}
        }
        let is_pause = core::mem::take(&mut self.is_pause) && code == KeyCode::NumpadLock;
        let code = number(if is_pause { KeyCode::PauseBreak } else { code })?;
        Some(Meaning::Key { code, is_pressed: state != KeyState::Up })
    }
}

/// The number of a key, as Linux has it. `None`: the code is no key of its own.
fn number(code: KeyCode) -> Option<u16> {
    use KeyCode as K;
    Some(match code {
        K::Escape => 1,
        K::Key1 => 2,
        K::Key2 => 3,
        K::Key3 => 4,
        K::Key4 => 5,
        K::Key5 => 6,
        K::Key6 => 7,
        K::Key7 => 8,
        K::Key8 => 9,
        K::Key9 => 10,
        K::Key0 => 11,
        K::OemMinus => 12,
        K::OemPlus => 13,
        K::Backspace => 14,
        K::Tab => 15,
        K::Q => 16,
        K::W => 17,
        K::E => 18,
        K::R => 19,
        K::T => 20,
        K::Y => 21,
        K::U => 22,
        K::I => 23,
        K::O => 24,
        K::P => 25,
        K::Oem4 => 26,
        K::Oem6 => 27,
        K::Return => 28,
        K::LControl => 29,
        K::A => 30,
        K::S => 31,
        K::D => 32,
        K::F => 33,
        K::G => 34,
        K::H => 35,
        K::J => 36,
        K::K => 37,
        K::L => 38,
        K::Oem1 => 39,
        K::Oem3 => 40,
        K::Oem8 => 41,
        K::LShift => 42,
        K::Oem7 => 43,
        K::Z => 44,
        K::X => 45,
        K::C => 46,
        K::V => 47,
        K::B => 48,
        K::N => 49,
        K::M => 50,
        K::OemComma => 51,
        K::OemPeriod => 52,
        K::Oem2 => 53,
        K::RShift => 54,
        K::NumpadMultiply => 55,
        K::LAlt => 56,
        K::Spacebar => 57,
        K::CapsLock => 58,
        K::F1 => 59,
        K::F2 => 60,
        K::F3 => 61,
        K::F4 => 62,
        K::F5 => 63,
        K::F6 => 64,
        K::F7 => 65,
        K::F8 => 66,
        K::F9 => 67,
        K::F10 => 68,
        K::NumpadLock => 69,
        K::ScrollLock => 70,
        K::Numpad7 => 71,
        K::Numpad8 => 72,
        K::Numpad9 => 73,
        K::NumpadSubtract => 74,
        K::Numpad4 => 75,
        K::Numpad5 => 76,
        K::Numpad6 => 77,
        K::NumpadAdd => 78,
        K::Numpad1 => 79,
        K::Numpad2 => 80,
        K::Numpad3 => 81,
        K::Numpad0 => 82,
        K::NumpadPeriod => 83,
        K::Oem5 => 86,
        K::F11 => 87,
        K::F12 => 88,
        K::Oem12 => 89,
        K::Oem10 => 92,
        K::Oem11 => 93,
        K::Oem9 => 94,
        K::NumpadEnter => 96,
        K::RControl => 97,
        K::NumpadDivide => 98,
        K::PrintScreen | K::SysRq => 99,
        K::RAltGr => 100,
        K::Home => 102,
        K::ArrowUp => 103,
        K::PageUp => 104,
        K::ArrowLeft => 105,
        K::ArrowRight => 106,
        K::End => 107,
        K::ArrowDown => 108,
        K::PageDown => 109,
        K::Insert => 110,
        K::Delete => 111,
        K::Mute => 113,
        K::VolumeDown => 114,
        K::VolumeUp => 115,
        K::PauseBreak => 119,
        K::Oem13 => 124,
        K::LWin => 125,
        K::RWin => 126,
        K::Apps => 127,
        K::Calculator => 140,
        K::NextTrack => 163,
        K::Play => 164,
        K::PrevTrack => 165,
        K::Stop => 166,
        K::WWWHome => 172,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(set: Set, bytes: &[u8]) -> Vec<Meaning> {
        let mut decoder = Decoder::new(set);
        bytes.iter().filter_map(|&byte| decoder.decode(byte)).collect()
    }

    fn pressed(code: u16) -> Meaning {
        Meaning::Key { code, is_pressed: true }
    }

    fn released(code: u16) -> Meaning {
        Meaning::Key { code, is_pressed: false }
    }

    #[test]
    fn keys_have_the_numbers_of_linux_in_both_sets() {
        for (one, two, code) in [
            (&[0x1e][..], &[0x1c][..], 30),
            (&[0x01], &[0x76], 1),
            (&[0x29], &[0x0e], 41),
            (&[0x2b], &[0x5d], 43),
            (&[0x28], &[0x52], 40),
            (&[0x56], &[0x61], 86),
            (&[0x3b], &[0x05], 59),
            (&[0x58], &[0x07], 88),
            (&[0x47], &[0x6c], 71),
            (&[0xe0, 0x47], &[0xe0, 0x6c], 102),
            (&[0xe0, 0x1d], &[0xe0, 0x14], 97),
            (&[0xe0, 0x38], &[0xe0, 0x11], 100),
            (&[0xe0, 0x35], &[0xe0, 0x4a], 98),
            (&[0xe0, 0x53], &[0xe0, 0x71], 111),
        ] {
            assert_eq!(decode(Set::One, one), [pressed(code)], "{one:x?}");
            assert_eq!(decode(Set::Two, two), [pressed(code)], "{two:x?}");
        }
        assert_eq!(decode(Set::One, &[0x9e, 0xe0, 0xc8]), [released(30), released(103)]);
        assert_eq!(decode(Set::Two, &[0xf0, 0x1c, 0xe0, 0xf0, 0x75]), [released(30), released(103)]);
    }

    /// The codes of set 1 without a prefix, up to that of F10, are Linux' numbers.
    #[test]
    fn most_numbers_are_the_codes_of_set_one() {
        for code in (1..=83).filter(|&code| decode(Set::One, &[code]).len() == 1) {
            assert_eq!(decode(Set::One, &[code]), [pressed(code.into())]);
        }
    }

    #[test]
    fn pause_is_not_num_lock_and_shifts_that_no_key_has_are_ignored() {
        let pause = [0xe1, 0x14, 0x77, 0xe1, 0xf0, 0x14, 0xf0, 0x77];
        assert_eq!(decode(Set::Two, &pause), [pressed(119), released(119)]);
        assert_eq!(decode(Set::Two, &[0x77, 0xf0, 0x77]), [pressed(69), released(69)]);
        let insert = [0xe0, 0xf0, 0x12, 0xe0, 0x70, 0xe0, 0xf0, 0x70, 0xe0, 0x12];
        assert_eq!(decode(Set::Two, &insert), [pressed(110), released(110)]);
        assert_eq!(decode(Set::Two, &[0xe0, 0x12, 0xe0, 0x7c]), [pressed(99)]);
    }

    #[test]
    fn answers_and_losses_are_no_keys() {
        use Meaning::{Accepted, Lost, Refused, Restarted};
        assert_eq!(
            decode(Set::Two, &[0xfa, 0xfe, 0x00, 0xff, 0xaa]),
            [Accepted, Refused, Lost, Lost, Restarted]
        );
        assert_eq!(decode(Set::Two, &[0x02, 0x1c]), [pressed(30)], "an unknown code is ignored");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>, is_one: bool) {
            decode(if is_one { Set::One } else { Set::Two }, &bytes);
        }
    }
}
