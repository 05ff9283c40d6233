//! Tests of the server of the screen. What is on the screen is compared by the emulator's side,
//! which also presses the keys.

use crate::report::Report;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use console::client::{self, Console};
use core::fmt::Write;
use l4::x2::Time;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::{ipc, utcb};
use rt::root::{self, Status};

/// The address at which the areas are mapped, and how far one is from the next.
const AREA: u64 = 0x5000_0000;
const NEXT: u64 = 1 << 20;
const BITS: u64 = 1 << 7;

/// The main function of the client.
pub(crate) fn test() -> ! {
    let mut report = Report::plan(6);
    let me = utcb::my_global_id();
    let open = |number: u64, place: u64| client::open("screen", number, AREA + place * NEXT, me, BITS);
    let (first, second) = (open(1, 0), open(2, 1));
    report.test(first.is_ok() && second.is_ok(), "SCR0001", "two consoles of the screen are opened");
    let again = open(2, 2).map(drop);
    report.test(again == Err(Status::InUse), "SCR0002", "each has one client");
    let others = [(0, 3), (8, 4), (u64::MAX, 5)].map(|(number, place)| open(number, place).map(drop));
    report.test(others == [Err(Status::NotFound); 3], "SCR0003", "there are seven consoles");
    let (Ok(mut first), Ok(mut second)) = (first, second) else { l4::start::halt() };
    let sizes = [&first, &second].map(|console| console.size);
    let is_usual = matches!(sizes[0], Some((80, 25) | (100, 37) | (128, 48) | (160, 50)));
    report.test(is_usual && sizes[0] == sizes[1], "SCR0004", "the consoles have the size of the screen");
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    show(&mut second, "The second console\r\n> ");
    let many: String = (0..500).map(|_| "a line that is scrolled away\r\n").collect();
    show(&mut first, &many);
    show(
        &mut first,
        "\x1b[H\x1b[2JThe first console\r\n\x1b(0lqqk x\x1b(B\r\n\
         \x1b[31mred\x1b[32m green\x1b[0;1m bold\x1b[m\r\n\
         \x1b[5;8r\x1b[5;1Ha\nb\nc\n\rscrolled\n\n\x1b[r\x1b[10;1H> \x1b[6n",
    );
    let answer = typed(&mut first, 7);
    report.test(answer == b"\x1b[10;3R", "SCR0005", "a question for the cursor is answered");
    say("the first console is written");
    let key = typed(&mut first, 1);
    echo(&mut first, "the first", &key);
    say("change to the second");
    let key = typed(&mut second, 1);
    echo(&mut second, "the second", &key);
    let left = first.input.read(&mut [0; 8]);
    report.test(left == 0, "SCR0006", "keys go to the console that is visible only");
    l4::start::halt()
}

/// How often root starts a server again.
const RESTARTS: usize = 5;
/// How many rows are written to the server that ends.
const ROWS: usize = 20;
/// How long the client waits before it looks again.
const LOOK: Time = Time::period(10_000);

/// The main function of a client of a server that ends again and again.
pub(crate) fn test_ends() -> ! {
    let mut report = Report::plan(2);
    let me = utcb::my_global_id();
    let mut console = client::open("screen", 1, AREA, me, BITS).expect("there is a screen");
    let mut ends = 0;
    for row in 1..=ROWS {
        // Each colour but black, which does not show on black.
        let text = format!("\x1b[3{}mrow {row:02}.\x1b[m\r\n", 1 + row % 7);
        assert_eq!(console.output.write(text.as_bytes()), text.len(), "there is room for a row");
        while !console.output.is_drained() {
            ends += usize::from(go_on(&console, 1));
        }
    }
    report.test(ends == RESTARTS, "SCR0030", "a client goes on with each server that is started again");
    // The cursor is where it is after so many rows: none is there twice.
    console.output.write(b"\x1b[6n");
    let mut answer = Vec::new();
    while answer.last() != Some(&b'R') {
        let mut bytes = [0; 16];
        let count = console.input.read(&mut bytes);
        answer.extend_from_slice(&bytes[..count]);
        go_on(&console, 1);
    }
    report.test(answer == format!("\x1b[{};1R", ROWS + 1).as_bytes(), "SCR0031", "no row comes twice");
    say("all rows are written");
    for number in 1..=3 {
        say(&format!("press key {number}"));
        let mut key = [0; 8];
        while console.input.read(&mut key) == 0 {
            go_on(&console, 1);
        }
        let key = char::from(key[0]);
        say(&format!("key {number} is {key}"));
        // The keyboard's driver has ended; the next one is found within half a second.
        ipc::sleep(Time::period(2_000_000));
    }
    l4::start::halt()
}

/// Waits a moment. Opens the console again if its server was started again; returns whether it was.
fn go_on(console: &Console, number: u64) -> bool {
    ipc::sleep(LOOK);
    let thread = utcb::my_global_id();
    console.view.has_ended() && console.view.open_again("screen", number, thread, BITS).is_ok()
}

fn say(line: &str) {
    // The console cannot fail.
    let _ = writeln!(root::Console, "{line}");
}

/// Shows what was typed, and says so.
fn echo(console: &mut Console, name: &str, key: &[u8]) {
    let key = String::from_utf8_lossy(key);
    show(console, &key);
    let _ = writeln!(root::Console, "typed on {name}: {key}");
}

/// Writes all of a text on a console.
fn show(console: &mut Console, text: &str) {
    let mut left = text.as_bytes();
    while !left.is_empty() {
        left = &left[console.output.write(left)..];
        console.output.wait();
        if !left.is_empty() && !console.output.has_room() {
            wait();
        }
    }
}

/// Waits until `count` bytes have been typed on a console.
fn typed(console: &mut Console, count: usize) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 64]);
    while all.len() < count {
        match console.input.read(&mut buffer) {
            0 => wait(),
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
    all
}

/// Waits until the server has something new.
fn wait() {
    let told = ipc::wait();
    assert!(told.is_ok_and(|told| told.tag.label() == NOTIFICATION_LABEL && told.word(0) == BITS));
}
