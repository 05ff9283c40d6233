//! A client of `greeter`: asks twice, prints the answers, and switches the machine off.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::fmt::Write;
use l4::ipc::{self, Message};
use rt::root::{self, Console, End};
use rt::start_page;

const GREET: u64 = 1;

l4::program!(run, kip = start_page::KIP);

rt::heap!(64 << 10);

fn run() -> ! {
    root::report_panics();
    // Until this look-up the kernel lets neither of the two send to the other.
    let greeter = root::names::lookup_wait("greeter").expect("the boot configuration has a greeter");
    for number in [20, 22] {
        let answer = ipc::call(greeter, Message::with_words(GREET, &[number])).expect("the greeter answers");
        let _ = writeln!(Console, "guest: greeting {}, sum {}", answer.word(1), answer.word(2));
    }
    // The machine may go on for an instant after the request.
    let _ = root::end_system(End::PowerOff(0));
    l4::start::halt()
}
