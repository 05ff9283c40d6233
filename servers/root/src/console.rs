//! Root's own lines on the console, and those that servers print through it. Lines of several
//! request threads come one after the other.

use core::fmt;
use l4::{print, println};
use macadamia_sync::{SpinGuard, SpinLock};

static TURN: SpinLock<()> = SpinLock::new(());

/// Waits until no other thread prints. Only threads that are not preempted may print, or the next
/// would wait for ever.
fn turn() -> SpinGuard<'static, ()> {
    TURN.lock()
}

/// Prints a line of root's own.
pub(crate) fn report(line: fmt::Arguments<'_>) {
    let _turn = turn();
    println!("{line}");
}

/// Prints a server's text.
pub(crate) fn print_text(text: impl Iterator<Item = char>) {
    let _turn = turn();
    text.for_each(|character| print!("{character}"));
}
