//! The server and the client of `good/untyped/data.defs` in Rust. They behave as the server and the
//! client of `c/untyped/data.c`, and call each other across languages.

mod stubs;
mod support;

use message::{Array, Error, Memory, Status};
use stubs::{Client, REPLY_BYTES, Server, serve};
use support::{Messages, memory};

unsafe extern "C" {
    static mut given: [u8; 6];
    static mut given_ports: [u32; 3];
    static mut name_list: [u32; 3];
    static mut only_memories: i32;
    static mut forgotten: i32;
    static mut loopback_server: extern "C" fn(*const u8, *mut u8) -> i32;
    fn data_server(request: *const u8, reply: *mut u8) -> i32;
}

/// A descriptor of memory at an address that C code gave.
fn of_c<T>(first: *const T, count: u32) -> Memory {
    Memory { address: first as u64, count, deallocate: false }
}

struct Data;

impl Server for Data {
    fn nothing(&mut self, port: u64) -> Result<(), Status> {
        if port == 7 { Ok(()) } else { Err(Status(4)) }
    }

    fn numbers(&mut self, _: u64, a: u32, b: u16, c: u64) -> Result<(u8, u64), Status> {
        if a as i32 == -1 { Err(Status(5)) } else { Ok((b as u8, c + u64::from(a))) }
    }

    fn right(&mut self, _: u64, a: u32) -> Result<u32, Status> {
        if a == 0 { Err(Status(6)) } else { Ok(a + 1) }
    }

    fn right_and_data(&mut self, _: u64, a: u32, b: u32) -> Result<(u32, u32), Status> {
        Ok((a + b, a.wrapping_sub(b)))
    }

    fn arrays(
        &mut self,
        _: u64,
        a: Array<u32, 64>,
        b: Array<u8, 101>,
        c: [u16; 5],
        d_room: usize,
    ) -> Result<(Array<u32, 64>, Array<u8, 101>), Status> {
        assert_eq!((c, d_room), ([1, 2, 3, 4, 5], if a.len() == 3 { 2 } else { 64 }));
        // Like the C server, this one gives three elements where the client has room for two: a
        // stub must refuse them.
        Ok((Array::from_fn(a.len(), |at| a[at].wrapping_mul(2)).unwrap(), b))
    }

    fn both_ways(&mut self, _: u64, a: Array<u32, 64>) -> Result<Array<u32, 64>, Status> {
        let more = a.iter().map(|word| word + 1).chain([u32::MAX]).take(64);
        Ok(Array::new(&more.collect::<Vec<_>>()).unwrap())
    }

    fn strings(
        &mut self,
        _: u64,
        a: Array<u8, 128>,
        b: Array<u8, 1024>,
    ) -> Result<(Array<u8, 128>, Array<u8, 1024>), Status> {
        Ok((a, b))
    }

    fn memory(&mut self, _: u64, a: Memory, b: Memory, c: u32) -> Result<(Memory, Memory), Status> {
        assert_eq!((memory::<u8>(&a), memory::<u32>(&b), c), (b"abc".to_vec(), vec![21, 22], 9));
        assert!(a.deallocate && !b.deallocate);
        Ok((of_c(&raw const given as *const u8, 5), of_c(&raw const given_ports as *const u32, 3)))
    }

    fn only_memory(&mut self, _: u64, a: Memory) -> Result<(), Status> {
        unsafe { only_memories += a.count as i32 };
        Ok(())
    }

    fn same_count(
        &mut self,
        _: u64,
        mask: u32,
    ) -> Result<(Array<u32, 32>, Array<u32, 32>, Array<u32, 32>), Status> {
        let from = |first: u32| Array::from_fn(mask as usize, |at| first + at as u32).unwrap();
        Ok((from(0), from(100), from(200)))
    }

    fn unbounded(&mut self, _: u64) -> Result<(Memory, Memory), Status> {
        let first = &raw const name_list as *const u32;
        Ok((of_c(first, 3), of_c(first.wrapping_add(1), 0)))
    }

    fn rights(
        &mut self,
        _: u64,
        a: u32,
        a_type: u32,
        b: [u32; 3],
        c: Array<u32, 4>,
        d: Memory,
        d_type: u32,
        g: Array<u32, 4>,
        last: Array<u8, 15>,
        i: Memory,
    ) -> Result<(u32, u32, [u32; 3], Array<u32, 4>, Array<u8, 15>), Status> {
        assert_eq!((a_type, d_type, d.count, d.deallocate, i.count), (18, 16, 2, true, 4));
        assert_eq!(d.address, &raw const given_ports as u64);
        if a == 1 {
            return Err(Status(17));
        }
        let more = g.iter().map(|right| right + 1000).chain(c.last().copied());
        let g = Array::new(&more.collect::<Vec<_>>()).unwrap();
        Ok((a + 1, 20, [b[2], b[1], b[0]], g, last))
    }

    fn translated(&mut self, _: u64, a: u32) -> Result<u32, Status> {
        unsafe { forgotten = 10 * a as i32 };
        Ok(a + 1)
    }
}

#[unsafe(no_mangle)]
extern "C" fn rust_server(request: *const u8, reply: *mut u8) -> i32 {
    let room = unsafe { &mut *reply.cast::<[u8; REPLY_BYTES]>() };
    support::answered(serve(&mut Data, support::received(request), room), reply)
}

extern "C" fn c_server(request: *const u8, reply: *mut u8) -> i32 {
    unsafe { data_server(request, reply) }
}

#[unsafe(no_mangle)]
extern "C" fn rust_client() {
    unsafe { loopback_server = c_server };
    let mut client = Client { transport: &mut Messages, to: 7 };
    assert_eq!(client.nothing(), Ok(()));
    assert_eq!(client.numbers(1, 2, 1 << 40), Ok((2, (1 << 40) + 1)));
    assert_eq!(client.numbers(u32::MAX, 2, 3), Err(Error::Status(Status(5))));
    assert_eq!((client.right(30), client.right(0)), (Ok(31), Err(Error::Status(Status(6)))));
    assert_eq!(client.right_and_data(30, 4), Ok((34, 26)));
    for length in 0..=64 {
        let a: Vec<u32> = (0..length).collect();
        let b = vec![7; length as usize];
        // For three elements the C server's function expects a client with room for two. This
        // client always has room for 64.
        if length != 3 {
            let (d, e) = client.arrays(&a, &b, &[1, 2, 3, 4, 5]).unwrap();
            assert!(d.iter().zip(&a).all(|(d, a)| *d == 2 * a) && e[..] == b[..] && d.len() == a.len());
        }
        let more = client.both_ways(&a).unwrap();
        assert_eq!(more.len(), a.len() + usize::from(length < 64));
        assert!(more.iter().zip(&a).all(|(more, a)| *more == a + 1));
    }
    let too_large = Err(Error::Status(Status::ARRAY_TOO_LARGE));
    assert_eq!(client.arrays(&[0; 65], &[], &[1, 2, 3, 4, 5]), too_large);
    assert_eq!(client.strings(&[b'x'; 128], b""), Err(Error::Status(Status::ARRAY_TOO_LARGE)));
    for length in [0, 1, 2, 3, 4, 1000, 1023] {
        let (a, b) = (vec![b'a'; length % 128], vec![b'b'; length]);
        let (c, d) = client.strings(&a, &b).unwrap();
        assert!(c[..] == a[..] && d[..] == b[..]);
    }
    let (d, e) = client.memory(Memory::of(b"abc"), Memory::of(&[21u32, 22]), 9).unwrap();
    assert_eq!((memory::<u8>(&d), memory::<u32>(&e)), (b"given".to_vec(), vec![31, 32, 33]));
    assert_eq!(client.only_memory(Memory::of(b"abcd")), Ok(()));
    for count in 0..=32 {
        let (masks, handlers, flavors) = client.same_count(count).unwrap();
        assert_eq!((masks.len(), handlers.len(), flavors.len()), (count as usize, count as usize, count as usize));
        assert!(handlers.iter().enumerate().all(|(at, handler)| *handler == 100 + at as u32));
    }
    let ports = of_c(&raw const given_ports as *const u32, 2);
    let list = of_c(&raw const name_list as *const u32, 4);
    for count in 0..4 {
        let (c, g) = (&[51, 52, 53, 54][..count], &[61, 62, 63][..count]);
        let ports = Memory { deallocate: true, ..ports };
        let (e, kind, f, g_back, h) =
            client.rights(40, 21, &[41, 42, 43], c, ports, 16, g, b"abcdef", list).unwrap();
        assert_eq!((e, kind, f, &h[..]), (41, 17, [43, 42, 41], &b"abcdef"[..]));
        let more: Vec<u32> = g.iter().map(|right| right + 1000).chain(c.last().copied()).collect();
        assert_eq!(g_back[..], more[..]);
    }
    let part = client.rights(40, 21, &[1, 2, 3], &[], ports, 16, &[], b"abcd", list);
    assert_eq!(part, Err(Error::Status(Status::ARRAY_TOO_LARGE)), "four bytes are no triples");
    assert_eq!(client.translated(7), Ok(8));
}
