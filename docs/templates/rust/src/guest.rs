//! A client of `greeter`: asks twice, prints the answers, and switches the machine off.
#![cfg_attr(target_os = "none", no_std, no_main)]

/// The stubs of `greeting.defs`, which `mig` writes.
#[allow(dead_code, unreachable_pub, clippy::all, reason = "a client needs a part of them")]
mod greeting;

use core::fmt::Write;
use greeting::Client;
use l4::direct::Direct;
use rt::root::{self, Console, End};
use rt::start_page;

l4::program!(run, kip = start_page::KIP);

rt::heap!(64 << 10);

fn run() -> ! {
    root::report_panics();
    // Until this look-up the kernel lets neither of the two send to the other.
    let to = root::names::lookup_wait("greeter").expect("the boot configuration has a greeter");
    let mut greeter = Client { transport: &mut Direct::default(), to };
    for number in [20, 22] {
        let (count, sum) = greeter.greeting_greet(number).expect("the greeter answers");
        let _ = writeln!(Console, "guest: greeting {count}, sum {sum}");
    }
    // The machine may go on for an instant after the request.
    let _ = root::end_system(End::PowerOff(0));
    l4::start::halt()
}
