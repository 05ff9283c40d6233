//! Printing through the kernel debugger's console (ABI 15.1): for privileged programs, and for
//! others when the system is booted with `kdb=user`.

use core::fmt::{self, Write};
use x2::kdebug;

/// Prints one byte.
pub fn print_byte(byte: u8) {
    // SAFETY: the kernel prints AL and changes no register or memory; the comparison after INT3
    // changes only flags.
    unsafe {
        core::arch::asm!("int3", "cmp al, {operation}", operation = const kdebug::PRINT_CHARACTER,
            in("al") byte, options(nomem, nostack));
    }
}

/// Reads one byte of input if there is one.
pub fn read_byte() -> Option<u8> {
    let value: u64;
    // SAFETY: the kernel sets RAX and changes nothing else.
    unsafe {
        core::arch::asm!("int3", "cmp al, {operation}", operation = const kdebug::READ_CHARACTER_NONBLOCKING,
            out("rax") value, options(nomem, nostack));
    }
    if value == u64::MAX { None } else { Some(value as u8) }
}

/// Reads a number that the kernel counts ([`kdebug::statistic`]). `None` unless the kernel was
/// booted with `kdb=test`.
pub fn kernel_statistic(which: u64) -> Option<u64> {
    let value: u64;
    // SAFETY: the kernel sets RAX and changes nothing else.
    unsafe {
        core::arch::asm!("int3", "cmp al, {operation}", operation = const kdebug::READ_STATISTIC,
            inout("rax") which => value, options(nomem, nostack));
    }
    if value == u64::MAX { None } else { Some(value) }
}

/// Makes the `nth` following allocation of kernel memory fail (0: none). Returns whether an earlier
/// request was still to take effect. It needs the boot option `kdb=test`.
pub fn fail_kernel_allocation(nth: u64) -> bool {
    let pending: u64;
    // SAFETY: the kernel sets RAX and changes nothing else here.
    unsafe {
        core::arch::asm!("int3", "cmp al, {operation}", operation = const kdebug::FAIL_ALLOCATION,
            inout("rax") nth => pending, options(nomem, nostack));
    }
    pending != 0
}

/// Makes the kernel show nothing on the screen any more, until it panics. Only for privileged
/// programs.
pub fn leave_screen() {
    // SAFETY: the kernel changes no register or memory; the comparison after INT3 changes only
    // flags.
    unsafe {
        core::arch::asm!("int3", "cmp al, {operation}", operation = const kdebug::LEAVE_SCREEN,
            options(nomem, nostack));
    }
}

/// The console as the target of formatted output.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, string: &str) -> fmt::Result {
        for byte in string.bytes() {
            if byte == b'\n' {
                print_byte(b'\r');
            }
            print_byte(byte);
        }
        Ok(())
    }
}

/// Prints like [`core::format_args`].
#[macro_export]
macro_rules! print {
    ($($arguments:tt)*) => {{
        // The console cannot fail.
        let _ = ::core::fmt::Write::write_fmt(&mut $crate::console::Console, ::core::format_args!($($arguments)*));
    }};
}

/// [`print!`] and a new line.
#[macro_export]
macro_rules! println {
    ($($arguments:tt)*) => {{
        $crate::print!($($arguments)*);
        $crate::print!("\n");
    }};
}
