//! A server: answers each request, a number, with the number of requests so far and the sum of
//! their numbers.
#![cfg_attr(target_os = "none", no_std, no_main)]

/// The stubs of `greeting.defs`, which `mig` writes.
#[allow(dead_code, unreachable_pub, clippy::all, reason = "a server needs a part of them")]
mod greeting;

use core::fmt::Write;
use direct::Status;
use greeting::{Server, serve};
use l4::direct::Direct;
use l4::utcb;
use l4::x2::ThreadId;
use rt::root::{self, Console};
use rt::start_page;

// The entry. Root maps the kernel interface page at the same address in each server.
l4::program!(run, kip = start_page::KIP);

// The run-time allocates here.
rt::heap!(64 << 10);

#[derive(Default)]
struct Greeter {
    count: u64,
    sum: u64,
}

impl Server for Greeter {
    fn greeting_greet(&mut self, _: ThreadId, number: u64) -> Result<(u64, u64), Status> {
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
        Ok((self.count, self.sum))
    }
}

fn run() -> ! {
    root::report_panics();
    let (name, arguments) = start_page::read().expect("root has started this program");
    let _ = writeln!(Console, "{name}: ready, with arguments {arguments:?}");
    // From now on a client finds this thread by the server's name in the boot configuration.
    root::names::register(utcb::my_global_id()).expect("it is a thread of this server");
    let (mut greeter, mut registers) = (Greeter::default(), Direct::default());
    loop {
        let mut received = registers.wait(&mut []);
        // An error ends the inner loop: the client did not wait for its answer, or is gone.
        while let Ok((client, tag)) = received {
            received = match serve(&mut greeter, client, tag, &mut registers, &[], &mut []) {
                // One system call answers this client, without waiting for it, and waits for the
                // next.
                Some(reply) => registers.reply_wait(client, &reply, &mut []),
                None => registers.wait(&mut []),
            };
        }
    }
}
