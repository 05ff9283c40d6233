//! A server that root starts from a boot configuration. Its argument says what it does: run tests that report in TAP, or
//! end in one of the ways in which a server can end.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::fmt::Write;
use rt::root::{self, Console, Status, request};
use rt::start_page;

l4::program!(run, kip = start_page::KIP);

rt::heap!(64 << 10);

fn run() -> ! {
    root::report_panics();
    let (_, arguments) = start_page::read().expect("root writes the start page");
    match arguments {
        "test one  two" => test(),
        "fault" => fault(),
        "panic" => panic!("as asked for"),
        "instruction" => {
            print_through_the_kernel();
            root::exit(1)
        }
        "exit" => root::exit(7),
        other => panic!("unknown argument {other}"),
    }
}

fn say(line: core::fmt::Arguments<'_>) {
    writeln!(Console, "{line}").expect("root prints");
}

fn test() -> ! {
    let mut number = 0;
    let mut report = |good: bool, id: &str, sentence: &str| {
        number += 1;
        say(format_args!("{}ok {number} - {id} {sentence}", if good { "" } else { "not " }));
    };
    say(format_args!("1..6"));
    let name = start_page::read().map(|(name, _)| name);
    report(
        name == Some("tests"),
        "ROOT0001",
        "a server is told its name and its arguments as they stand in the file",
    );
    report(
        root::call(4999, &[]) == Some(Status::UnknownRequest),
        "ROOT0002",
        "an unknown request is refused",
    );
    let too_long = root::call(request::PRINT, &[9, 0]);
    report(too_long == Some(Status::InvalidArgument), "ROOT0003", "text longer than the message is refused");
    let huge = root::call(request::PRINT, &[u64::MAX]);
    report(huge == Some(Status::InvalidArgument), "ROOT0004", "a length that overflows is refused");
    report(
        root::call(request::PRINT, &[]) == Some(Status::InvalidArgument),
        "ROOT0005",
        "a text without length is refused",
    );
    let privileged = l4::thread::delete(l4::utcb::my_global_id());
    report(privileged == Err(Some(l4::x2::ErrorCode::NoPrivilege)), "ROOT0006", "a server is not privileged");
    l4::start::halt()
}

/// Reads where nothing is.
fn fault() -> ! {
    // SAFETY: a plain load as machine code, from where no Rust object lies; it faults.
    unsafe {
        core::arch::asm!("mov rax, [rax]", inout("rax") 0x1234_5000u64 => _, options(nostack, readonly));
    }
    root::exit(1)
}

/// What only a privileged program may do.
fn print_through_the_kernel() {
    l4::console::print_byte(b'!');
}
