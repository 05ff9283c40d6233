//! The end: a panic or an exception in the kernel. Prints what is known, with a backtrace as plain
//! addresses, one `  at 0x...` line per frame, innermost first, which `./mac` turns into file and
//! line on the host. Then the debugger, the emulator's exit or silence.
//!
//! Nothing here uses per-processor data or takes a lock: the kernel may be broken in any way. The
//! other processors are stopped first, so that nothing changes what is looked at.
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{arch, kdb, log, screen};

/// The most frames that a backtrace prints.
const DEPTH: usize = 32;
/// What the emulator's exit device is told: exit status 2 * 16 + 1 = 33.
const EXIT_CODE: u32 = 16;

static NESTED: AtomicU32 = AtomicU32::new(0);
static EXIT: AtomicBool = AtomicBool::new(false);

/// On a panic, end the emulator (boot option `exit`).
pub fn set_exit(exit: bool) {
    EXIT.store(exit, Ordering::Relaxed);
}

/// Notes that the kernel is ending, and stops the other processors. A second end while the first is
/// reported stops without a report.
pub fn begin_report() {
    // If several processors panic, one reports.
    arch::stop_others();
    screen::take_back();
    if NESTED.fetch_add(1, Ordering::Relaxed) > 1 {
        stop_machine();
    }
}

/// Prints the chain of calls from a code address and a frame pointer.
pub fn backtrace(address: u64, frame_pointer: u64) {
    log::error!("backtrace:");
    let mut address = address;
    let mut frame = frame_pointer;
    for _ in 0..DEPTH {
        log::error!("  at {address:#018x}");
        if !arch::is_stack_word(frame) || !arch::is_stack_word(frame + 8) {
            return;
        }
        // SAFETY: both words were just found to be mapped kernel data.
        let (next, return_address) =
            unsafe { ((frame as *const u64).read(), (frame as *const u64).add(1).read()) };
        if !arch::is_code(return_address) || next != 0 && next <= frame {
            return;
        }
        (frame, address) = (next, return_address);
    }
}

/// After the report: prints where the other processors and the threads are, then ends the emulator
/// if asked to, else enters the debugger.
pub fn end_report() -> ! {
    log::error!("the kernel has stopped");
    // What follows is longer than a screen, and the debugger needs the serial line.
    screen::leave();
    kdb::show_others();
    kdb::overview();
    if !EXIT.load(Ordering::Relaxed) {
        // The report is complete: what goes wrong now is reported again.
        NESTED.store(0, Ordering::Relaxed);
        kdb::after_the_end();
    }
    stop_machine()
}

/// Ends the emulator if asked to, else stops this processor.
fn stop_machine() -> ! {
    if EXIT.load(Ordering::Relaxed) {
        arch::debug_exit(EXIT_CODE);
    }
    arch::stop()
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    begin_report();
    log::error!("kernel panic: {}", info.message());
    if let Some(location) = info.location() {
        log::error!("at {location}");
    }
    backtrace(panic as *const () as u64, arch::frame_pointer());
    end_report()
}
