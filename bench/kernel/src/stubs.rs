//! Measures the cost of a call between two spaces by the Rust stubs that `mig` writes of
//! `adder.defs`: a call with four words there and two back, and a call with 512 bytes each way.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[rustfmt::skip]
#[allow(clippy::all, dead_code, unreachable_pub, reason = "written by a program")]
mod adder;
#[allow(dead_code, reason = "other benchmarks use the rest")]
mod fixture;

use adder::{Client, Server, serve};
use bench_framework::{Range, check_counter, now, region, repeat, report};
use direct::{Error, Status};
use l4::direct::Direct;
use l4::println;
use x2::ThreadId;

l4::program!(run);

/// How many bytes the longer call sends each way.
const BLOCK: usize = 512;

struct Adder;

impl Server for Adder {
    #[inline(always)]
    fn add(&mut self, _: ThreadId, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64), Status> {
        Ok((a.wrapping_add(b).wrapping_add(c).wrapping_add(d), 4))
    }

    fn send_back(&mut self, _: ThreadId, block: &[u8], copy: &mut [u8]) -> Result<usize, Status> {
        copy.get_mut(..block.len()).ok_or(Status::ARRAY_TOO_LARGE)?.copy_from_slice(block);
        Ok(block.len())
    }
}

/// The server's thread for calls whose arguments and results are words.
extern "C" fn serve_words() -> ! {
    let mut registers = Direct::default();
    loop {
        let mut received = registers.wait(&mut []);
        while let Ok((from, tag)) = received {
            received = match serve(&mut Adder, from, tag, &mut registers, &[], &mut []) {
                Some(reply) => registers.reply_wait(from, &reply, &mut []),
                None => registers.wait(&mut []),
            };
        }
    }
}

/// The server's thread for calls that send and return a string item of [`BLOCK`] bytes.
extern "C" fn serve_blocks() -> ! {
    let (mut block, mut copy) = ([0; BLOCK], [0; BLOCK]);
    let mut registers = Direct::default();
    loop {
        let mut received = registers.wait(&mut [&mut block]);
        while let Ok((from, tag)) = received {
            received = match serve(&mut Adder, from, tag, &mut registers, &[&block], &mut copy) {
                Some(reply) => registers.reply_wait(from, &reply, &mut [&mut block]),
                None => registers.wait(&mut [&mut block]),
            };
        }
    }
}

/// Calls [`Client::add`] out of line, so that the size of the stub can be read from the program.
#[unsafe(no_mangle)]
#[inline(never)]
fn call_by_generated_stub(server: ThreadId, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64), Error> {
    Client { transport: &mut Direct::default(), to: server }.add(a, b, c, d)
}

/// Calls [`Client::send_back`] out of line, so that the size of the stub can be read.
#[unsafe(no_mangle)]
#[inline(never)]
fn call_with_block(server: ThreadId, block: &[u8; BLOCK], copy: &mut [u8; BLOCK]) -> Result<usize, Error> {
    Client { transport: &mut Direct::default(), to: server }.send_back(block, copy)
}

/// Measures an operation with several numbers of rounds, and marks 64 rounds for the plugin that
/// counts instructions.
fn measure(test: &str, mut operation: impl FnMut()) {
    operation();
    region(format_args!("{test}"), 64, || repeat(64, &mut operation));
    for rounds in Range::geometric(32, 128, 2).values() {
        let start = now();
        repeat(rounds, &mut operation);
        report(format_args!("{test}"), rounds, "instructions", now() - start);
    }
}

fn run() -> ! {
    println!("1..2");
    fixture::prepare();
    let adder = fixture::elsewhere(serve_words);
    // Without `call_by_generated_stub` the compiler inlines the stub into the measured loop.
    measure("call-by-generated-stub", || {
        let mut client = Client { transport: &mut Direct::default(), to: adder };
        assert_eq!(client.add(1, 2, 3, 4), Ok((10, 4)));
    });
    measure("call-by-generated-stub-out-of-line", || {
        assert_eq!(call_by_generated_stub(adder, 1, 2, 3, 4), Ok((10, 4)));
    });
    let adder = fixture::elsewhere(serve_blocks);
    let (block, mut copy) = ([7; BLOCK], [0; BLOCK]);
    measure("call-with-512-bytes-each-way", || {
        assert_eq!(call_with_block(adder, &block, &mut copy), Ok(BLOCK));
    });
    assert_eq!(block, copy, "the bytes arrive");
    println!("ok 1 - BSTB0003 every call was answered");
    check_counter(2, "BSTB0004");
    l4::start::halt()
}
