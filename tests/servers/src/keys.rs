//! Tests of the drivers of keyboards. For each key that the program asks for, the emulator presses
//! and releases it.

use crate::report::Report;
use alloc::vec::Vec;
use core::fmt::Write;
use input::client::{self, Input};
use input::event::{CAPS_LOCK_LIGHT, Event, PRESSED, RELEASED};
use input::keymap::{Action, KeyMap, Modes, Typed};
use input::layout::US;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::{ipc, utcb};
use rt::root::{Console, Status};

/// The address at which areas are mapped.
const AREA: u64 = 0x5000_0000;
const BITS: u64 = 1 << 7;
const NAME: &str = "keyboard";

/// Keys, by the names that the emulator has for them, with their codes.
const A: u16 = 30;
const F2: u16 = 60;
const UP: u16 = 103;
const LEFT_CONTROL: u16 = 29;
const RIGHT_CONTROL: u16 = 97;
const LEFT_ALT: u16 = 56;
const CAPS_LOCK: u16 = 58;
const KEYPAD_7: u16 = 71;
const DELETE: u16 = 111;

/// The main function of the client.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(10);
    let me = utcb::my_global_id();
    let opened = client::open(NAME, AREA, me, BITS);
    report.test(opened.is_ok(), "KEY0001", "the keyboard is opened");
    let again = client::open(NAME, AREA + (1 << 20), me, BITS).map(drop);
    report.test(again == Err(Status::InUse), "KEY0002", "the keyboard has one client");
    let Ok(mut input) = opened else { l4::start::halt() };
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let mut map = KeyMap::new(&US);
    let mut press = |name: &str, keys: &[u16]| {
        let (pressed, typed) = press(&mut input, &mut map, name, keys.len());
        input.set_lights(map.lights());
        let mut expected: Vec<Event> = keys.iter().map(|&key| Event::key(key, PRESSED)).collect();
        expected.extend(keys.iter().rev().map(|&key| Event::key(key, RELEASED)));
        (pressed == expected).then_some(typed)
    };
    let is_text = |typed: Option<Vec<Typed>>, text: &[u8]| {
        let typed = typed.as_deref();
        matches!(typed, Some([Typed::Bytes(bytes)]) if **bytes == *text)
    };
    let is_action = |typed: Option<Vec<Typed>>, action| typed.as_deref() == Some(&[Typed::Action(action)]);
    let good = is_text(press("a", &[A]), b"a");
    report.test(good, "KEY0003", "a key is pressed and released");
    let good = is_text(press("ctrl-a", &[LEFT_CONTROL, A]), &[1]);
    report.test(good, "KEY0004", "keys that are held together come in order");
    let good = is_text(press("ctrl_r-a", &[RIGHT_CONTROL, A]), &[1]);
    report.test(good, "KEY0005", "the right one of two keys has a code of its own");
    let good = is_text(press("up", &[UP]), b"\x1b[A");
    report.test(good, "KEY0006", "a cursor key is not a key of the keypad");
    let good = is_text(press("kp_7", &[KEYPAD_7]), b"\x1b[1~");
    report.test(good, "KEY0007", "a key of the keypad is not a cursor key");
    let good = is_action(press("alt-f2", &[LEFT_ALT, F2]), Action::Console(2));
    report.test(good, "KEY0008", "Alt and a function key choose a console");
    let good = is_action(press("ctrl-alt-delete", &[LEFT_CONTROL, LEFT_ALT, DELETE]), Action::Restart);
    report.test(good, "KEY0009", "three keys are held together");
    let good = press("caps_lock", &[CAPS_LOCK]).is_some_and(|typed| typed.is_empty())
        && is_text(press("a", &[A]), b"A");
    report.test(good && map.lights() == CAPS_LOCK_LIGHT, "KEY0010", "keys come after a light was changed");
    l4::start::halt()
}

/// The main function of a client without a keyboard.
pub(crate) fn test_without() -> ! {
    let mut report = Report::plan(1);
    let opened = client::open(NAME, AREA, utcb::my_global_id(), BITS).map(drop);
    report.test(opened == Err(Status::NotFound), "KEY0020", "without the device there is no keyboard");
    l4::start::halt()
}

/// Asks for keys, and returns what comes: as many events as keys are pressed and released, and what
/// was typed.
fn press(input: &mut Input, map: &mut KeyMap, name: &str, keys: usize) -> (Vec<Event>, Vec<Typed>) {
    let _ = writeln!(Console, "# press {name}.");
    let (mut events, mut typed) = (Vec::new(), Vec::new());
    while events.len() < 2 * keys {
        if let Some(event) = input.read() {
            events.push(event);
            typed.extend(map.event(event, Modes::default()));
            continue;
        }
        let told = ipc::wait();
        if !told.is_ok_and(|told| told.tag.label() == NOTIFICATION_LABEL && told.word(0) == BITS) {
            break;
        }
    }
    (events, typed)
}
