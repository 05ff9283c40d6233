//! Prints root's own lines and those of servers on the console. One lock keeps the lines of
//! different request threads apart.

use core::fmt;
use l4::{print, println};
use macadamia_sync::{SpinGuard, SpinLock};

static TURN: SpinLock<()> = SpinLock::new(());

/// Takes the lock of the console. Only threads that are never preempted may print: a thread that
/// polls the lock of a preempted thread would wait for ever.
fn turn() -> SpinGuard<'static, ()> {
    TURN.lock()
}

/// Prints one of root's own lines.
pub(crate) fn report(line: fmt::Arguments<'_>) {
    let _turn = turn();
    println!("{line}");
}

/// Prints text that a server has sent.
pub(crate) fn print_text(text: impl Iterator<Item = char>) {
    let _turn = turn();
    text.for_each(|character| print!("{character}"));
}
