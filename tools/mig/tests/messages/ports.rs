//! The server and the client of `good/typed/ports.defs` in Rust. They behave as the server and the
//! client of `c/ports.c`, and call each other across languages.

mod stubs;
mod support;

use message::{Array, Memory, Status};
use stubs::{Client, REPLY_BYTES, Server, serve};
use support::{Messages, memory};

/// The option of `mach_msg` that the definition names, which generated stubs import from this
/// module.
pub const MACH_SEND_NOTIFY: u32 = 0x20;

unsafe extern "C" {
    static mut given: [u32; 3];
    static mut replied: i32;
    static mut loopback_server: extern "C" fn(*const u8, *mut u8) -> i32;
    static mut loopback_option: i32;
    static mut loopback_time: u32;
    fn ports_server(request: *const u8, reply: *mut u8) -> i32;
}

fn of_c(first: usize, count: u32) -> Memory {
    let address = &raw const given as u64 + 4 * first as u64;
    Memory { address, count, deallocate: false }
}

struct Ports;

impl Server for Ports {
    fn polymorphic_ports(
        &mut self,
        port: u64,
        b: u64,
        c: u64,
        c_type: u32,
    ) -> Result<(u64, u32, u64, u64, u32), Status> {
        assert_eq!((port, b, c, c_type), (11, 12, 13, 18));
        Ok((23, 20, 24, 25, 19))
    }

    fn reply_port_of_the_server(
        &mut self,
        port: u64,
        port_type: u32,
        b: u64,
        b_type: u32,
        reply: u64,
        reply_type: u32,
    ) -> Result<(), Status> {
        assert_eq!((port, port_type, b, b_type, reply, reply_type), (11, 17, 12, 17, 0, 0));
        unsafe { replied += 1 };
        Ok(())
    }

    fn reply_port_of_the_user(
        &mut self,
        _: u64,
        sent: Array<u64, 4>,
        more: u64,
    ) -> Result<(Array<u64, 4>, u64, u32), Status> {
        Ok((Array::from_fn(sent.len(), |at| sent[at] + 100).unwrap(), more + 1, 17))
    }

    fn port_in_the_middle(&mut self, a: u32, reply: u64, port: u64, number: u32) -> Result<u32, Status> {
        assert_eq!((reply, port, number), (42, 11, 77));
        Ok(a + 1)
    }

    fn many_ports(
        &mut self,
        _: u64,
        a: Memory,
        b: Memory,
        b_type: u32,
        c: [u64; 3],
    ) -> Result<(Memory, u32, Memory), Status> {
        assert_eq!((memory::<u32>(&a), memory::<u32>(&b)), (vec![1, 2], vec![31, 32, 33]));
        assert_eq!((a.deallocate, b.deallocate, b_type, c), (false, true, 16, [7, 8, 9]));
        Ok((of_c(0, 1), 18, of_c(1, 2)))
    }
}

#[unsafe(no_mangle)]
extern "C" fn rust_server(request: *const u8, reply: *mut u8) -> i32 {
    let room = unsafe { &mut *reply.cast::<[u8; REPLY_BYTES]>() };
    support::answered(serve(&mut Ports, support::received(request), room), reply)
}

extern "C" fn c_server(request: *const u8, reply: *mut u8) -> i32 {
    unsafe { ports_server(request, reply) }
}

fn last_call() -> (i32, u32) {
    unsafe { (loopback_option, loopback_time) }
}

#[unsafe(no_mangle)]
extern "C" fn rust_client() {
    unsafe { loopback_server = c_server };
    let mut client = Client { transport: &mut Messages, to: 11 };
    let (c, c_type, d, d_type, e) = client.polymorphic_ports(19, 12, 19, 13, 21).unwrap();
    assert_eq!((c, c_type, d, d_type, e), (23, 17, 24, 17, 25));
    assert_eq!(last_call(), (3 | 0x20 | 0x100, 10));
    assert_eq!(client.reply_port_of_the_server(17, 12), Ok(()));
    assert_eq!(last_call(), (1 | 0x20, 0));
    for count in 0..=4 {
        let sent = &[1, 2, 3, 4][..count];
        let (got, more) = client.reply_port_of_the_user(42, 21, sent, 50, 17).unwrap();
        assert!(got.iter().zip(sent).all(|(got, sent)| *got == sent + 100) && got.len() == count);
        assert_eq!(more, 51);
    }
    assert_eq!(client.port_in_the_middle(1, 42, 5, 0x1000), Ok(2));
    assert_eq!(last_call(), (3 | 0x1000 | 0x100, 5));
    let many = Memory { deallocate: true, ..of_c(0, 3) };
    let (d, d_type, e) = client.many_ports(Memory::of(&[1u32, 2]), many, 16, &[7, 8, 9]).unwrap();
    assert_eq!((memory::<u32>(&d), d_type, memory::<u32>(&e)), (vec![31], 18, vec![32, 33]));
}
