//! The kernel debugger, on the serial console.
//!
//! It is entered when the kernel has stopped (panic, exception in the kernel), and with the boot
//! option `kdb` also by programs that may (the enter form of INT3, ABI 15.1), with `kdb=break` also
//! by a break on the serial line, and by breakpoints and steps that it was told. Everything else,
//! on all processors, stands still meanwhile. A non-maskable interrupt prints the [`overview`] and
//! goes on: so a machine that hangs can be asked where it is.
//!
//! Commands look at kernel structures as they are, possibly in the middle of a change: they print
//! what they find, follow only links that cannot dangle (thread control blocks are type-stable,
//! K12), and stop after a bounded number.
mod break_key;
mod breakpoints;
mod command;
mod line;
mod show;
mod user;

use core::sync::atomic::{AtomicBool, Ordering};

use crate::console::{self, Console};
use crate::thread::ThreadRef;
use crate::{arch, config};

pub use break_key::{
    occurred as console_interrupt, serves_serial_port, take as take_byte, takes as takes_interrupt,
};
pub use breakpoints::{kernel_debug_exception, user_debug_exception};
use command::Command;
pub use user::breakpoint as user_breakpoint;

/// Exit status 2 * 17 + 1 = 35 of the emulator.
const EXIT_CODE: u32 = 17;

/// Whether there are threads to show: before that, the debugger has nothing to look at.
static READY: AtomicBool = AtomicBool::new(false);

/// The kernel's structures are set up. Called once, at the end of boot.
pub fn init() {
    READY.store(true, Ordering::Relaxed);
    break_key::init();
}

/// Prints what an engineer wants to see first of a machine that has stopped or hangs.
pub fn overview() {
    if READY.load(Ordering::Relaxed) {
        show::overview(&mut Console);
    }
}

/// Prints where the other processors were stopped, as addresses of a backtrace.
pub fn show_others() {
    for (number, address) in arch::stopped_others() {
        match address {
            Some(address) => {
                console::print(format_args!("processor {number} stands still\n  at {address:#018x}\n"))
            }
            None => console::print(format_args!("processor {number} does not stop\n")),
        }
    }
}

/// What the debugger has interrupted.
#[derive(Clone, Copy)]
enum Stopped {
    /// The kernel, which cannot go on.
    Dead,
    /// The kernel, at a breakpoint or after a step.
    Kernel,
    /// The processor is idle: no thread is ready.
    Idle,
    /// The current thread, while it executed at user level.
    Thread(ThreadRef),
}

/// How the machine goes on after the debugger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resume {
    Go,
    Step,
}

/// The kernel has stopped and said why: the engineer may look around.
pub fn after_the_end() {
    enter_debugger(Stopped::Dead);
}

/// Takes commands until one says how to go on. Polls the serial port; interrupts stay off.
fn enter_debugger(stopped: Stopped) -> Resume {
    if !READY.load(Ordering::Relaxed) || config::get().no_kdb {
        return Resume::Go;
    }
    let stopped_others = arch::stop_others();
    breakpoints::suspend();
    console::print(format_args!("kernel debugger; h for help\n"));
    if stopped_others {
        show_others();
    }
    if let Stopped::Thread(thread) = stopped {
        breakpoints::show_stopped(thread);
    }
    let resume = commands(stopped);
    breakpoints::resume_program(resume);
    if stopped_others {
        arch::resume_others();
    }
    resume
}

fn commands(stopped: Stopped) -> Resume {
    loop {
        console::print(format_args!("kdb> "));
        let mut buffer = [0; line::LENGTH];
        let line = line::read(&mut buffer);
        match command::parse(line) {
            Ok(Command::Nothing) => {}
            Ok(Command::Go) => return Resume::Go,
            Ok(Command::Step) if matches!(stopped, Stopped::Kernel | Stopped::Thread(_)) => {
                return Resume::Step;
            }
            Ok(Command::Step) => console::print(format_args!("nothing has stopped that could go on\n")),
            Ok(Command::Stop(breakpoint)) => match breakpoints::set(breakpoint) {
                Ok(number) => console::print(format_args!("breakpoint {number}\n")),
                Err(error) => console::print(format_args!("{error}\n")),
            },
            Ok(Command::Clear(number)) if !breakpoints::clear(number) => {
                console::print(format_args!("there is no breakpoint {number}\n"));
            }
            Ok(Command::Clear(_)) => {}
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
