//! The kernel debugger, on the serial console.
//!
//! It is entered when the kernel has stopped (panic, exception in the kernel), and with the boot option `kdb` also by
//! programs that may (the enter form of INT3, ABI 15.1). Everything else stands still meanwhile. A non-maskable interrupt
//! prints the [`overview`] and goes on: so a machine that hangs can be asked where it is.
//!
//! Commands look at kernel structures as they are, possibly in the middle of a change: they print what they find, follow
//! only links that cannot dangle (thread control blocks are type-stable, K12), and stop after a bounded number.
mod command;
mod line;
mod show;
mod user;

use core::sync::atomic::{AtomicBool, Ordering};

use crate::console::{self, Console};
use crate::{arch, config};

use command::Command;
pub use user::breakpoint as user_breakpoint;

/// Exit status 2 * 17 + 1 = 35 of the emulator.
const EXIT_CODE: u32 = 17;

/// There are threads to show: before that, the debugger has nothing to look at.
static READY: AtomicBool = AtomicBool::new(false);

/// The kernel's structures are set up. Called once, at the end of boot.
pub fn init() {
    READY.store(true, Ordering::Relaxed);
}

/// Prints what an engineer wants to see first of a machine that has stopped or hangs.
pub fn overview() {
    if READY.load(Ordering::Relaxed) {
        show::overview(&mut Console);
    }
}

/// Takes commands until one says how to go on: `go` returns. Polls the serial port; interrupts stay off.
pub fn enter() {
    if !READY.load(Ordering::Relaxed) || config::get().no_kdb {
        return;
    }
    console::print(format_args!("kernel debugger; h for help\n"));
    loop {
        console::print(format_args!("kdb> "));
        let mut buffer = [0; line::LENGTH];
        let line = line::read(&mut buffer);
        match command::parse(line) {
            Ok(Command::Nothing) => {}
            Ok(Command::Go) => return,
            Ok(Command::Crash(how)) => arch::crash(how),
            Ok(Command::Exit) => arch::debug_exit(EXIT_CODE),
            Ok(Command::Reset) => arch::reset(),
            Ok(command) => show::execute(command, &mut Console),
            Err(error) => console::print(format_args!("{error}; h for help\n")),
        }
    }
}

#[cfg(test)]
mod tests;
