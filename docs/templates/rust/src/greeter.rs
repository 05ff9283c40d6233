//! A server: answers each request, a number, with the number of requests so far and the sum of
//! their numbers.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::fmt::Write;
use l4::ipc::{self, Message};
use l4::utcb;
use rt::root::{self, Console};
use rt::start_page;

/// The label of the one request that there is.
const GREET: u64 = 1;
/// The label of each answer; its first word is 0 if the request was understood.
const ANSWER: u64 = 100;

// The entry. Root maps the kernel interface page at the same address in each server.
l4::program!(serve, kip = start_page::KIP);

// The run-time allocates here.
rt::heap!(64 << 10);

fn serve() -> ! {
    root::report_panics();
    let (name, arguments) = start_page::read().expect("root has started this program");
    let _ = writeln!(Console, "{name}: ready, with arguments {arguments:?}");
    // From now on a client finds this thread by the server's name in the boot configuration.
    root::names::register(utcb::my_global_id()).expect("it is a thread of this server");
    let (mut count, mut sum) = (0, 0_u64);
    let mut received = ipc::wait();
    loop {
        received = match received {
            Ok(request) => {
                let answer = if request.tag.label() == GREET && request.tag.untyped() == 1 {
                    count += 1;
                    sum = sum.wrapping_add(request.word(0));
                    Message::with_words(ANSWER, &[0, count, sum])
                } else {
                    Message::with_words(ANSWER, &[1])
                };
                // One system call answers this client, without waiting for it, and waits for the
                // next.
                ipc::reply_wait(request.from, answer)
            }
            // The client did not wait for its answer, or is gone.
            Err(_) => ipc::wait(),
        };
    }
}
