//! Tests of what keys stand for.

use super::*;
use crate::event::{PRESSED, RELEASED, REPEATED};
use crate::layout::{GERMAN, LAYOUTS, US};
use proptest::prelude::*;

const NORMAL: Modes = Modes { application_cursor: false, application_keypad: false, new_line: false };

/// What is typed when the last of `keys` is pressed while the others are held. All are released
/// then.
fn typed(map: &mut KeyMap, keys: &[u16], modes: Modes) -> Option<Typed> {
    let mut pressed = None;
    for &key in keys {
        pressed = map.event(Event::key(key, PRESSED), modes);
    }
    for &key in keys.iter().rev() {
        assert_eq!(map.event(Event::key(key, RELEASED), modes), None);
    }
    pressed
}

fn bytes(map: &mut KeyMap, keys: &[u16], modes: Modes) -> Vec<u8> {
    match typed(map, keys, modes) {
        Some(Typed::Bytes(sequence)) => sequence.to_vec(),
        Some(Typed::Action(action)) => panic!("{action:?}"),
        None => Vec::new(),
    }
}

/// The bytes of keys on an American keyboard whose locks are off.
fn us(keys: &[u16]) -> Vec<u8> {
    bytes(&mut KeyMap::new(&US), keys, NORMAL)
}

/// Codes of some letters and digits.
const A: u16 = 30;
const C: u16 = 46;
const E: u16 = 18;
const Z: u16 = 44;
const TWO: u16 = 3;
const SEVEN: u16 = 8;
const MINUS: u16 = 12;
const SLASH: u16 = 53;
const SPACE: u16 = 57;
const BRACKET: u16 = 26;
const SHIFT_KEY: u16 = code::RIGHT_SHIFT;
const CONTROL_KEY: u16 = code::LEFT_CONTROL;
const ALT_KEY: u16 = code::LEFT_ALT;

#[test]
fn characters_come_with_shift_control_and_alt() {
    for (keys, expected) in [
        (&[A][..], &b"a"[..]),
        (&[SHIFT_KEY, A], b"A"),
        (&[code::LEFT_SHIFT, TWO], b"@"),
        (&[CONTROL_KEY, C], &[3]),
        (&[code::RIGHT_CONTROL, SHIFT_KEY, C], &[3]),
        (&[CONTROL_KEY, Z], &[26]),
        (&[CONTROL_KEY, SPACE], &[0]),
        (&[CONTROL_KEY, TWO], &[0]),
        (&[CONTROL_KEY, SEVEN], &[0x1f]),
        (&[CONTROL_KEY, MINUS], &[0x1f]),
        (&[CONTROL_KEY, SHIFT_KEY, MINUS], &[0x1f]),
        (&[CONTROL_KEY, SLASH], &[0x7f]),
        (&[CONTROL_KEY, BRACKET], &[0x1b]),
        (&[CONTROL_KEY, 11], b""),
        (&[ALT_KEY, A], b"\x1ba"),
        (&[ALT_KEY, SHIFT_KEY, A], b"\x1bA"),
        (&[ALT_KEY, CONTROL_KEY, A], b"\x1b\x01"),
        (&[code::RIGHT_ALT, A], b"a"),
        (&[code::ESCAPE], b"\x1b"),
        (&[code::BACKSPACE], &[0x7f]),
        (&[CONTROL_KEY, code::BACKSPACE], &[8]),
        (&[ALT_KEY, code::BACKSPACE], b"\x1b\x7f"),
        (&[code::TAB], b"\t"),
        (&[SHIFT_KEY, code::TAB], b"\x1b\t"),
        (&[code::ENTER], b"\r"),
        (&[ALT_KEY, code::ENTER], b"\x1b\r"),
        (&[code::LEFT_META, A], b"a"),
        (&[code::SCROLL_LOCK], b""),
        (&[0x2ff], b""),
    ] {
        assert_eq!(us(keys), expected, "{keys:?}");
    }
}

/// The sequences are those that `infocmp linux` lists.
#[test]
fn cursor_and_function_keys_are_those_of_the_terminal_linux() {
    for (key, expected) in [
        (code::F1, &b"\x1b[[A"[..]),
        (code::F1 + 4, b"\x1b[[E"),
        (code::F1 + 5, b"\x1b[17~"),
        (code::F10, b"\x1b[21~"),
        (code::F11, b"\x1b[23~"),
        (code::F12, b"\x1b[24~"),
        (code::UP, b"\x1b[A"),
        (code::DOWN, b"\x1b[B"),
        (code::RIGHT, b"\x1b[C"),
        (code::LEFT, b"\x1b[D"),
        (code::HOME, b"\x1b[1~"),
        (code::INSERT, b"\x1b[2~"),
        (code::DELETE, b"\x1b[3~"),
        (code::END, b"\x1b[4~"),
        (code::PAGE_UP, b"\x1b[5~"),
        (code::PAGE_DOWN, b"\x1b[6~"),
    ] {
        assert_eq!(us(&[key]), expected, "{key}");
    }
    assert_eq!(us(&[SHIFT_KEY, code::F1]), b"\x1b[23~");
    assert_eq!(us(&[SHIFT_KEY, code::F1 + 2]), b"\x1b[25~");
    assert_eq!(us(&[SHIFT_KEY, code::F10]), b"\x1b[34~");
    assert_eq!(us(&[SHIFT_KEY, code::F11]), b"\x1b[23~");
}

#[test]
fn modes_change_cursor_keys_keypad_and_enter() {
    let map = &mut KeyMap::new(&US);
    let cursor = Modes { application_cursor: true, ..NORMAL };
    assert_eq!(bytes(map, &[code::UP], cursor), b"\x1bOA");
    assert_eq!(bytes(map, &[code::HOME], cursor), b"\x1b[1~");
    assert_eq!(bytes(map, &[code::KEYPAD_7 + 1], cursor), b"\x1bOA");
    let new_line = Modes { new_line: true, ..NORMAL };
    assert_eq!(bytes(map, &[code::ENTER], new_line), b"\r\n");
    assert_eq!(bytes(map, &[code::KEYPAD_ENTER], new_line), b"\r\n");
    let keypad = Modes { application_keypad: true, ..NORMAL };
    assert_eq!(bytes(map, &[code::KEYPAD_7], keypad), b"\x1bOw");
    assert_eq!(bytes(map, &[code::KEYPAD_ENTER], keypad), b"\x1bOM");
    assert_eq!(bytes(map, &[code::KEYPAD_STAR], keypad), b"\x1bOR");
    assert_eq!(bytes(map, &[SHIFT_KEY, code::KEYPAD_STAR], keypad), b"*");
    assert_eq!((bytes(map, &[code::NUM_LOCK], keypad), map.lights()), (b"\x1bOP".to_vec(), 0));
}

#[test]
fn the_keypad_has_digits_with_num_lock_and_cursor_keys_without() {
    let map = &mut KeyMap::new(&US);
    let keys: Vec<u16> = (code::KEYPAD_7..=code::KEYPAD_POINT).collect();
    let all = |map: &mut KeyMap| keys.iter().flat_map(|&key| bytes(map, &[key], NORMAL)).collect::<Vec<u8>>();
    let cursor = "\x1b[1~\x1b[A\x1b[5~-\x1b[D\x1b[G\x1b[C+\x1b[4~\x1b[B\x1b[6~\x1b[2~\x1b[3~";
    assert_eq!(all(map), cursor.as_bytes());
    assert_eq!(bytes(map, &[code::NUM_LOCK], NORMAL), b"");
    assert_eq!((all(map), map.lights()), (b"789-456+1230.".to_vec(), event::NUM_LOCK_LIGHT));
    assert_eq!(bytes(map, &[code::KEYPAD_SLASH], NORMAL), b"/");
    assert_eq!(bytes(map, &[code::KEYPAD_ENTER], NORMAL), b"\r");
}

#[test]
fn caps_lock_changes_letters_only_and_once_for_each_press() {
    let map = &mut KeyMap::new(&GERMAN);
    map.event(Event::key(code::CAPS_LOCK, PRESSED), NORMAL);
    map.event(Event::key(code::CAPS_LOCK, REPEATED), NORMAL);
    map.event(Event::key(code::CAPS_LOCK, RELEASED), NORMAL);
    assert_eq!(map.lights(), event::CAPS_LOCK_LIGHT);
    assert_eq!(bytes(map, &[A], NORMAL), b"A");
    assert_eq!(bytes(map, &[SHIFT_KEY, A], NORMAL), b"a");
    assert_eq!(bytes(map, &[39], NORMAL), "Ö".as_bytes());
    assert_eq!(bytes(map, &[TWO], NORMAL), b"2");
    assert_eq!(bytes(map, &[CONTROL_KEY, C], NORMAL), [3]);
    typed(map, &[code::CAPS_LOCK], NORMAL);
    assert_eq!((bytes(map, &[A], NORMAL), map.lights()), (b"a".to_vec(), 0));
}

#[test]
fn german_keys_have_a_third_character() {
    let map = &mut KeyMap::new(&GERMAN);
    assert_eq!(bytes(map, &[code::RIGHT_ALT, E], NORMAL), "€".as_bytes());
    assert_eq!(bytes(map, &[code::RIGHT_ALT, 16], NORMAL), b"@");
    assert_eq!(bytes(map, &[code::RIGHT_ALT, A], NORMAL), b"");
    assert_eq!(bytes(map, &[CONTROL_KEY, code::RIGHT_ALT, 12], NORMAL), [0x1c]);
    assert_eq!(bytes(map, &[ALT_KEY, 39], NORMAL), "\x1bö".as_bytes());
    assert_eq!(bytes(map, &[CONTROL_KEY, 39], NORMAL), b"");
    assert_eq!(bytes(map, &[Z], NORMAL), b"y");
}

#[test]
fn some_keys_are_actions() {
    let map = &mut KeyMap::new(&US);
    for (keys, action) in [
        (&[ALT_KEY, code::F1][..], Action::Console(1)),
        (&[CONTROL_KEY, ALT_KEY, code::F1 + 5], Action::Console(6)),
        (&[ALT_KEY, code::F12], Action::Console(12)),
        (&[ALT_KEY, code::LEFT], Action::PreviousConsole),
        (&[ALT_KEY, code::RIGHT], Action::NextConsole),
        (&[SHIFT_KEY, code::PAGE_UP], Action::ScrollBack),
        (&[SHIFT_KEY, code::PAGE_DOWN], Action::ScrollForward),
        (&[CONTROL_KEY, ALT_KEY, code::DELETE], Action::Restart),
    ] {
        assert_eq!(typed(map, keys, NORMAL), Some(Typed::Action(action)), "{keys:?}");
    }
    assert_eq!(bytes(map, &[CONTROL_KEY, code::DELETE], NORMAL), b"\x1b[3~");
}

#[test]
fn a_character_is_typed_by_its_number() {
    let map = &mut KeyMap::new(&US);
    let key = |map: &mut KeyMap, key, value| map.event(Event::key(key, value), NORMAL);
    key(map, ALT_KEY, PRESSED);
    for digit in [code::KEYPAD_7 + 8, code::KEYPAD_7 + 9, code::KEYPAD_7 + 10] {
        assert_eq!(key(map, digit, PRESSED), None);
        assert_eq!(key(map, digit, RELEASED), None);
    }
    assert_eq!(key(map, ALT_KEY, RELEASED), Some(Typed::Bytes(Sequence::of(b"{"))));
    assert_eq!(typed(map, &[ALT_KEY], NORMAL), None);
    key(map, ALT_KEY, PRESSED);
    (0..40).for_each(|_| assert_eq!(key(map, code::KEYPAD_7, PRESSED), None));
    assert_eq!(key(map, ALT_KEY, RELEASED), None, "there is no such character");
}

#[test]
fn after_lost_events_no_key_is_held() {
    let map = &mut KeyMap::new(&US);
    map.event(Event::key(CONTROL_KEY, PRESSED), NORMAL);
    map.event(Event::LOST, NORMAL);
    assert_eq!(bytes(map, &[A], NORMAL), b"a");
    assert_eq!(map.event(Event::key(CONTROL_KEY, RELEASED), NORMAL), None);
}

#[test]
fn a_held_key_types_again() {
    let map = &mut KeyMap::new(&US);
    let repeated = map.event(Event::key(A, REPEATED), NORMAL);
    assert_eq!(repeated, Some(Typed::Bytes(Sequence::of(b"a"))));
    map.event(Event::key(SHIFT_KEY, PRESSED), NORMAL);
    map.event(Event::key(SHIFT_KEY, REPEATED), NORMAL);
    map.event(Event::key(SHIFT_KEY, RELEASED), NORMAL);
    assert_eq!(bytes(map, &[A], NORMAL), b"a");
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let key = prop_oneof![prop::sample::select(MODIFIERS.to_vec()), 0u16..130, any::<u16>()];
    let value = prop_oneof![0..3, any::<i32>()];
    let kind = prop_oneof![9 => Just(event::KEY), 1 => 0u16..6];
    let event = (kind, key, value).prop_map(|(kind, code, value)| Event { kind, code, value });
    prop::collection::vec(event, 0..60)
}

proptest! {
    /// Whatever happened before: when every key has been released, keys stand for what they stand
    /// for on a keyboard with the same locks that was not used.
    #[test]
    fn modifiers_never_stick(events in events(), modes: [bool; 3], layout in 0..LAYOUTS.len(), key in 0u16..130) {
        let [application_cursor, application_keypad, new_line] = modes;
        let modes = Modes { application_cursor, application_keypad, new_line };
        let mut map = KeyMap::new(LAYOUTS[layout]);
        for &event in &events {
            if let Some(Typed::Bytes(sequence)) = map.event(event, modes) {
                prop_assert!(!sequence.is_empty());
            }
        }
        for event in events.iter().filter(|event| event.kind == event::KEY) {
            map.event(Event::key(event.code, RELEASED), modes);
        }
        let mut unused = KeyMap { caps_lock: map.caps_lock, num_lock: map.num_lock, ..KeyMap::new(LAYOUTS[layout]) };
        let pressed = Event::key(key, PRESSED);
        prop_assert_eq!(map.event(pressed, modes), unused.event(pressed, modes));
    }

    #[test]
    fn a_release_of_an_ordinary_key_types_nothing(events in events(), key in 0u16..130) {
        let mut map = KeyMap::new(&US);
        for &event in &events {
            map.event(event, NORMAL);
        }
        prop_assume!(key != ALT_KEY);
        prop_assert_eq!(map.event(Event::key(key, RELEASED), NORMAL), None);
    }
}
