//! Tests of sockets of the internet domains and of netlink, through the system calls of programs.

use crate::world::{DATA, Gone, Program, World};
use crate::{EAGAIN, bytes, run, run_in};
use unix::testing::NetworkTask;

const V4: u64 = 2;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
const NONBLOCK: u64 = 0o4000;
/// Where the tests keep an address, and the length of one.
const NAME: u64 = DATA + 0x100;
const LENGTH: u64 = DATA + 0x140;

/// Stores the address 127.0.0.1 with this port.
async fn here(p: &mut Program, port: u16) -> Result<(), Gone> {
    let port = port.to_be_bytes();
    p.store(NAME, &[2, 0, port[0], port[1], 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).await
}

/// The port of the socket.
async fn port(p: &mut Program, socket: u64) -> Result<u16, Gone> {
    p.store(LENGTH, &16u32.to_le_bytes()).await?;
    assert_eq!(p.call(51, &[socket, NAME, LENGTH]).await?, 0);
    assert_eq!(p.load_u32(LENGTH).await?, 16);
    let name = p.load::<4>(NAME).await?;
    assert_eq!(name[..2], [2, 0]);
    Ok(u16::from_be_bytes([name[2], name[3]]))
}

/// Binds the socket to a free port of 127.0.0.1, which it returns.
async fn bind(p: &mut Program, socket: u64) -> Result<u16, Gone> {
    here(p, 0).await?;
    assert_eq!(p.call(49, &[socket, NAME, 16]).await?, 0);
    port(p, socket).await
}

/// The value of an option that is an int.
async fn option(p: &mut Program, socket: u64, level: u64, option: u64) -> Result<i64, Gone> {
    p.store(LENGTH, &4u32.to_le_bytes()).await?;
    match p.call(55, &[socket, level, option, LENGTH + 8, LENGTH]).await? {
        0 => Ok(p.load_u32(LENGTH + 8).await?.into()),
        error => Ok(error),
    }
}

#[test]
fn a_server_and_a_client_exchange_bytes_over_the_loopback() {
    run(async |p| {
        assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 0);
        let server = bind(p, 0).await?;
        assert_eq!(p.call(50, &[0, 5]).await?, 0);
        assert_eq!(option(p, 0, 1, 30).await?, 1, "it listens");
        assert_eq!(p.call(41, &[V4, STREAM, 6]).await?, 1);
        here(p, server).await?;
        assert_eq!(p.call(42, &[1, NAME, 16]).await?, 0);
        assert_eq!(p.call(42, &[1, NAME, 16]).await?, -106);
        let client = port(p, 1).await?;
        p.store(LENGTH, &16u32.to_le_bytes()).await?;
        assert_eq!(p.call(288, &[0, NAME, LENGTH, NONBLOCK]).await?, 2);
        assert_eq!(p.load::<8>(NAME).await?[4..], [127, 0, 0, 1]);
        let name = p.load::<4>(NAME).await?;
        assert_eq!(u16::from_be_bytes([name[2], name[3]]), client);
        p.store(DATA, b"question").await?;
        assert_eq!(p.call(1, &[1, DATA, 8]).await?, 8);
        assert_eq!(p.call(45, &[2, DATA + 0x200, 100, 2, 0, 0]).await?, 8, "peek");
        assert_eq!(p.call(16, &[2, 0x541b, LENGTH]).await?, 0, "FIONREAD");
        assert_eq!(p.load_u32(LENGTH).await?, 8);
        assert_eq!(p.call(0, &[2, DATA + 0x200, 5]).await?, 5);
        assert_eq!(p.call(0, &[2, DATA + 0x205, 100]).await?, 3);
        assert_eq!(&p.load::<8>(DATA + 0x200).await?, b"question");
        assert_eq!(p.call(0, &[2, DATA, 1]).await?, EAGAIN);
        // The client says no more, and still gets the answer.
        assert_eq!(p.call(48, &[1, 1]).await?, 0);
        assert_eq!(p.call(0, &[2, DATA, 1]).await?, 0, "the end");
        assert_eq!(p.call(44, &[2, DATA, 6, 0, 0, 0]).await?, 6);
        assert_eq!(p.call(3, &[2]).await?, 0);
        assert_eq!(p.call(0, &[1, DATA + 0x200, 100]).await?, 6);
        assert_eq!(p.call(0, &[1, DATA + 0x200, 100]).await?, 0);
        assert_eq!(p.call(44, &[1, DATA, 1, 0x4000, 0, 0]).await?, -32);
        Ok(())
    });
}

#[test]
fn a_connection_that_need_not_wait_is_made_refused_and_polled() {
    run(async |p| {
        assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 0);
        let port = bind(p, 0).await?;
        assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 1);
        here(p, port).await?;
        assert_eq!(p.call(42, &[1, NAME, 16]).await?, -111, "no socket listens");
        assert_eq!(p.call(3, &[1]).await?, 0);
        assert_eq!(p.call(50, &[0, 5]).await?, 0);
        assert_eq!(p.call(41, &[V4, STREAM | NONBLOCK, 0]).await?, 1);
        let done = p.call(42, &[1, NAME, 16]).await?;
        assert!([0, -115].contains(&done), "{done}");
        // The socket is ready to be written to when the peer has answered.
        p.store(DATA, &bytes(&[1 | 4 << 32])).await?;
        assert_eq!(p.call(7, &[DATA, 1, 1000]).await?, 1);
        assert_eq!(p.load_u64(DATA).await?, 1 | 4 << 32 | 4 << 48);
        assert_eq!(option(p, 1, 1, 4).await?, 0, "SO_ERROR");
        p.store(DATA, &bytes(&[1 << 32])).await?;
        assert_eq!(p.call(7, &[DATA, 1, 1000]).await?, 1, "a connection waits to be accepted");
        assert_eq!(p.call(288, &[0, 0, 0, 0]).await?, 2);
        assert_eq!(option(p, 2, 6, 1).await?, 0, "TCP_NODELAY");
        p.store(DATA, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[2, 6, 1, DATA, 4]).await?, 0);
        assert_eq!(option(p, 2, 6, 1).await?, 1);
        assert_eq!(option(p, 2, 6, 99).await?, -92);
        assert_eq!((option(p, 2, 1, 3).await?, option(p, 2, 1, 39).await?), (1, 2));
        assert_eq!(option(p, 2, 1, 38).await?, 6, "SO_PROTOCOL");
        Ok(())
    });
}

#[test]
fn datagrams_arrive_whole_with_what_the_receiver_asked_for() {
    run(async |p| {
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 0);
        let receiver = bind(p, 0).await?;
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 1);
        assert_eq!(p.call(44, &[1, DATA, 4, 0, 0, 0]).await?, -89, "no destination");
        p.store(DATA, &1u32.to_le_bytes()).await?;
        for asked in [8, 12] {
            assert_eq!(p.call(54, &[0, 0, asked, DATA, 4]).await?, 0);
        }
        p.store(DATA, b"datagram").await?;
        here(p, receiver).await?;
        assert_eq!(p.call(44, &[1, DATA, 8, 0, NAME, 16]).await?, 8);
        // The message comes with the interface and the address to which it was sent, and its hops.
        let message = DATA + 0x200;
        p.store(message, &bytes(&[NAME, 16, message + 64, 1, message + 128, 128, 0])).await?;
        p.store(message + 64, &bytes(&[DATA + 0x400, 100])).await?;
        assert_eq!(p.call(47, &[0, message, 0]).await?, 8);
        assert_eq!(p.load_u64(message + 40).await?, 32 + 24, "the length of the control messages");
        assert_eq!((p.load_u32(message + 128 + 8).await?, p.load_u32(message + 128 + 12).await?), (0, 8));
        assert_eq!(p.load_u32(message + 128 + 16).await?, 1, "the loopback");
        assert_eq!(p.load::<4>(message + 128 + 24).await?, [127, 0, 0, 1]);
        assert_eq!((p.load_u32(message + 160 + 12).await?, p.load_u32(message + 160 + 16).await?), (2, 64));
        // The receiver has never touched the memory for a large message.
        assert_eq!(p.call(9, &[0, 0x10000, 3, 0x22, u64::MAX, 0]).await? & 0xfff, 0);
        let memory = p.call(9, &[0, 0x10000, 3, 0x22, u64::MAX, 0]).await? as u64;
        let fresh = p.call(9, &[0, 0x10000, 3, 0x22, u64::MAX, 0]).await? as u64;
        p.store(memory + 29_000, b"end").await?;
        here(p, receiver).await?;
        assert_eq!(p.call(44, &[1, memory, 30_000, 0, NAME, 16]).await?, 30_000);
        assert_eq!(p.call(45, &[0, fresh, 0x10000, 0, 0, 0]).await?, 30_000);
        assert_eq!(&p.load::<3>(fresh + 29_000).await?, b"end");
        assert_eq!(p.call(44, &[1, memory, 65_536, 0, NAME, 16]).await?, -90);
        Ok(())
    });
}

#[test]
fn a_message_shows_nothing_of_longer_ones_before_it() {
    run(async |p| {
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 0);
        let receiver = bind(p, 0).await?;
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 1);
        let memory = p.call(9, &[0, 0x4000, 3, 0x22, u64::MAX, 0]).await? as u64;
        let other = p.call(9, &[0, 0x4000, 3, 0x22, u64::MAX, 0]).await? as u64;
        p.store(memory, &[7; 9000]).await?;
        for length in [9000, 600, 2000] {
            here(p, receiver).await?;
            assert_eq!(p.call(44, &[1, memory, length, 0, NAME, 16]).await?, length as i64);
            p.store(other, &[0; 0x3000]).await?;
            assert_eq!(p.call(45, &[0, other, 0x3000, 0, 0, 0]).await?, length as i64);
            assert_eq!(p.load::<2>(other + length - 1).await?, [7, 0], "{length}");
        }
        Ok(())
    });
}

#[test]
fn a_datagram_of_the_unix_domain_arrives_in_memory_that_was_never_touched() {
    run(async |p| {
        assert_eq!(p.call(53, &[1, DATAGRAM, 0, DATA]).await?, 0);
        let memory = p.call(9, &[0, 0x10000, 3, 0x22, u64::MAX, 0]).await? as u64;
        let fresh = p.call(9, &[0, 0x10000, 3, 0x22, u64::MAX, 0]).await? as u64;
        assert_eq!(p.call(44, &[0, memory, 30_000, 0, 0, 0]).await?, 30_000);
        assert_eq!(p.call(45, &[1, fresh, 0x10000, 0, 0, 0]).await?, 30_000);
        Ok(())
    });
}

#[test]
fn low_ports_and_raw_sockets_need_privileges() {
    run(async |p| {
        assert_eq!(p.call(41, &[V4, 3, 255]).await?, 0, "the superuser may");
        assert_eq!(p.call(3, &[0]).await?, 0);
        assert_eq!(p.call(105, &[1000]).await?, 0);
        assert_eq!(p.call(41, &[V4, 3, 255]).await?, -1);
        assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 0);
        here(p, 80).await?;
        assert_eq!(p.call(49, &[0, NAME, 16]).await?, -13);
        here(p, 8080).await?;
        assert_eq!(p.call(49, &[0, NAME, 16]).await?, 0);
        p.store(NAME, &[2, 0, 0, 99, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 1);
        assert_eq!(p.call(49, &[1, NAME, 16]).await?, -13, "before the address is looked at");
        assert_eq!(p.call(41, &[V4, DATAGRAM, 1]).await?, 2, "everybody may send echo requests");
        Ok(())
    });
}

#[test]
fn netlink_lists_the_loopback_with_its_addresses() {
    run(async |p| {
        assert_eq!(p.call(41, &[16, 3, 0]).await?, 0);
        p.store(NAME, &[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
        assert_eq!(p.call(49, &[0, NAME, 12]).await?, 0);
        for (kind, answer) in [(18u16, 16u16), (22, 20)] {
            let mut request = vec![20, 0, 0, 0];
            request.extend(kind.to_le_bytes());
            request.extend([1, 3, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            p.store(DATA, &request).await?;
            assert_eq!(p.call(44, &[0, DATA, 20, 0, 0, 0]).await?, 20);
            let length = p.call(45, &[0, DATA + 0x200, 0x4000, 0, 0, 0]).await?;
            assert!(length > 100, "{length}");
            assert_eq!(p.load::<2>(DATA + 0x204).await?, answer.to_le_bytes());
            let text = p.load::<0x100>(DATA + 0x200).await?;
            assert!(text.windows(3).any(|part| part == b"lo\0"));
            assert_eq!(p.call(45, &[0, DATA + 0x200, 0x4000, 0, 0, 0]).await?, 20);
            assert_eq!(p.load::<2>(DATA + 0x204).await?, [3, 0], "the end");
        }
        // The requests of netdevice(7) answer the same, to a socket of any family.
        p.store(NAME, b"lo\0").await?;
        assert_eq!(p.call(16, &[0, 0x8915, NAME]).await?, 0);
        assert_eq!(p.load::<8>(NAME + 16).await?, [2, 0, 0, 0, 127, 0, 0, 1]);
        assert_eq!(p.call(16, &[0, 0x8933, NAME]).await?, 0);
        assert_eq!(p.load_u32(NAME + 16).await?, 1);
        p.store(NAME, b"no\0").await?;
        assert_eq!(p.call(16, &[0, 0x8915, NAME]).await?, -19);
        Ok(())
    });
}

#[test]
fn what_a_call_refuses_changes_nothing() {
    run(async |p| {
        let (freebind, discover, timeout) = ((0, 15), (0, 10), (6, 18));
        assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 0);
        let set = async |p: &mut Program, (level, name): (u64, u64), value: i32| {
            p.store(DATA, &value.to_le_bytes()).await?;
            p.call(54, &[0, level, name, DATA, 4]).await
        };
        for (of, value, wrong) in [(discover, 2, 9), (timeout, 1000, -1)] {
            assert_eq!(set(p, of, value).await?, 0);
            assert_eq!(set(p, of, wrong).await?, -22);
            assert_eq!(option(p, 0, of.0, of.1).await?, value.into());
        }
        // Options that sockets of all families have leave the sizes of buffers as they were.
        let size = option(p, 0, 1, 8).await?;
        assert_eq!(set(p, (0, 7), 1).await?, 0, "IP_RETOPTS");
        assert_eq!((option(p, 0, 0, 7).await?, option(p, 0, 1, 8).await?), (1, size));
        // A socket that listens takes no data, however much it is.
        bind(p, 0).await?;
        assert_eq!(p.call(50, &[0, 5]).await?, 0);
        for length in [1, 5000] {
            assert_eq!(p.call(44, &[0, DATA, length, 0x4000, 0, 0]).await?, -32);
        }
        // An address that is not the system's can be bound, but nothing is sent from it.
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 1);
        p.store(DATA, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[1, freebind.0, freebind.1, DATA, 4]).await?, 0);
        p.store(NAME, &[2, 0, 0, 0, 10, 9, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
        assert_eq!(p.call(49, &[1, NAME, 16]).await?, 0);
        here(p, 9).await?;
        assert_eq!(p.call(44, &[1, DATA, 4, 0, NAME, 16]).await?, -22);
        // Of the clocks of the day only the one itself can be set.
        p.store(DATA, &bytes(&[1, 0])).await?;
        for clock in [5, 8, 11] {
            assert_eq!(p.call(227, &[clock, DATA]).await?, -22);
        }
        Ok(())
    });
}

#[test]
fn netlink_refuses_short_requests_and_says_that_answers_were_lost() {
    const ROUTE: u64 = 16;
    fn header(kind: u16, flags: u16) -> Vec<u8> {
        [&16u32.to_le_bytes()[..], &kind.to_le_bytes(), &flags.to_le_bytes(), &[0; 8]].concat()
    }
    run(async |p| {
        assert_eq!(p.call(41, &[ROUTE, 3, 0]).await?, 0);
        for kind in [16, 20, 24, 25, 28] {
            p.store(DATA, &header(kind, 5)).await?;
            assert_eq!(p.call(44, &[0, DATA, 16, 0, 0, 0]).await?, 16);
            assert_eq!(p.call(45, &[0, DATA, 100, 0, 0, 0]).await?, 36);
            let error = p.load_u32(DATA + 16).await? as i32;
            assert!([-22, -19].contains(&error), "{kind}: {error}");
        }
        // Answers that nothing reads have a limit. What is lost is said once.
        p.store(DATA, &header(18, 0x301)).await?;
        let mut sent = 0;
        p.store(LENGTH, &bytes(&[8 << 32])).await?;
        while p.load_u64(LENGTH).await? & 8 << 48 == 0 {
            assert_eq!(p.call(44, &[0, DATA, 16, 0, 0, 0]).await?, 16);
            sent += 1;
            assert!(sent < 100_000, "there is no limit");
            p.store(LENGTH, &bytes(&[8 << 32])).await?;
            p.call(7, &[LENGTH, 1, 0]).await?;
        }
        assert_eq!(p.call(45, &[0, DATA, 1, 0x40, 0, 0]).await?, -105, "ENOBUFS");
        assert_eq!(p.call(45, &[0, DATA, 1, 0x40, 0, 0]).await?, 1);
        Ok(())
    });
}

#[test]
fn all_of_this_is_so_with_the_network_in_another_task() {
    let tests: &[fn()] = &[
        a_server_and_a_client_exchange_bytes_over_the_loopback,
        a_connection_that_need_not_wait_is_made_refused_and_polled,
        datagrams_arrive_whole_with_what_the_receiver_asked_for,
        a_message_shows_nothing_of_longer_ones_before_it,
        a_datagram_of_the_unix_domain_arrives_in_memory_that_was_never_touched,
        low_ports_and_raw_sockets_need_privileges,
        netlink_lists_the_loopback_with_its_addresses,
        what_a_call_refuses_changes_nothing,
        netlink_refuses_short_requests_and_says_that_answers_were_lost,
    ];
    for test in tests {
        unix::testing::elsewhere(test);
    }
}

#[test]
fn sockets_end_with_the_task_that_has_them_and_new_ones_are_of_the_next_task() {
    let world = {
        let mut made = None;
        unix::testing::elsewhere(|| made = Some(World::new()));
        made.unwrap()
    };
    let (network, environment) = (world.system.vfs().network.clone(), world.system.environment().clone());
    run_in(&world, async move |p| {
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 0);
        let bound = bind(p, 0).await?;
        assert_eq!(p.call(7, &[DATA + 0x300, 0, 0]).await?, 0);
        network.disconnect();
        // What waits is woken by the end, and a wait after it does not begin.
        p.store(DATA, &bytes(&[1 << 32])).await?;
        assert_eq!(p.call(7, &[DATA, 1, 1000]).await?, 1);
        let ready = p.load_u64(DATA).await? >> 48;
        assert_eq!(ready & (1 | 8 | 16), 1 | 8 | 16, "POLLIN, POLLERR, POLLHUP");
        assert_eq!(p.call(0, &[0, DATA, 10]).await?, -104, "ECONNRESET");
        assert_eq!(option(p, 0, 1, 4).await?, 104, "SO_ERROR");
        assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, -100, "ENETDOWN: there is no task");
        network.connect(Box::new(NetworkTask::new(&network.attachment(), environment.clone())));
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 1);
        here(p, bound).await?;
        assert_eq!(p.call(49, &[1, NAME, 16]).await?, 0, "the address is free");
        assert_eq!(p.call(0, &[0, DATA, 10]).await?, -104, "the old socket stays what it is");
        Ok(())
    });
}
