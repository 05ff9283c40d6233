//! The codes of keys that have a meaning here, as Linux numbers them. Keys that bear characters are
//! in [`layout`](crate::layout).
#![allow(missing_docs, reason = "the names are those of the keys")]

pub const ESCAPE: u16 = 1;
pub const BACKSPACE: u16 = 14;
pub const TAB: u16 = 15;
pub const ENTER: u16 = 28;
pub const LEFT_CONTROL: u16 = 29;
pub const LEFT_SHIFT: u16 = 42;
pub const RIGHT_SHIFT: u16 = 54;
pub const KEYPAD_STAR: u16 = 55;
pub const LEFT_ALT: u16 = 56;
pub const CAPS_LOCK: u16 = 58;
/// F1; the next ones to F10 follow.
pub const F1: u16 = 59;
pub const F10: u16 = 68;
pub const NUM_LOCK: u16 = 69;
pub const SCROLL_LOCK: u16 = 70;
/// The key 7 of the keypad. 8, 9, minus, 4, 5, 6, plus, 1, 2, 3, 0 and the point follow.
pub const KEYPAD_7: u16 = 71;
pub const KEYPAD_5: u16 = 76;
pub const KEYPAD_POINT: u16 = 83;
pub const F11: u16 = 87;
pub const F12: u16 = 88;
pub const KEYPAD_ENTER: u16 = 96;
pub const RIGHT_CONTROL: u16 = 97;
pub const KEYPAD_SLASH: u16 = 98;
pub const RIGHT_ALT: u16 = 100;
pub const HOME: u16 = 102;
pub const UP: u16 = 103;
pub const PAGE_UP: u16 = 104;
pub const LEFT: u16 = 105;
pub const RIGHT: u16 = 106;
pub const END: u16 = 107;
pub const DOWN: u16 = 108;
pub const PAGE_DOWN: u16 = 109;
pub const INSERT: u16 = 110;
pub const DELETE: u16 = 111;
pub const PAUSE: u16 = 119;
pub const LEFT_META: u16 = 125;
pub const RIGHT_META: u16 = 126;
pub const MENU: u16 = 127;
