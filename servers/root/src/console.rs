//! Root's own lines on the console, and those that servers print through it. Lines of several
//! workers come one after the other.

use macadamia_sync::{SpinGuard, SpinLock};

static TURN: SpinLock<()> = SpinLock::new(());

/// Waits until no other thread prints. Only threads that nothing preempts may print, or the next
/// would wait for ever.
pub(crate) fn turn() -> SpinGuard<'static, ()> {
    TURN.lock()
}

/// Prints a line of root's own.
#[macro_export]
macro_rules! report {
    ($($arguments:tt)*) => {{
        let _turn = $crate::console::turn();
        ::l4::println!($($arguments)*);
    }};
}
