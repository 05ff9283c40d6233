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
        assert_eq!(p.call(41, &[V4, STREAM | NONBLOCK, 0]).await?, 1);
        assert_eq!(p.call(42, &[1, NAME, 16]).await?, -115, "even if it was refused already");
        p.store(DATA, &bytes(&[1 | 4 << 32])).await?;
        assert_eq!(p.call(7, &[DATA, 1, 1000]).await?, 1);
        assert_eq!(p.load_u64(DATA).await? >> 48, 0x1c, "POLLOUT, POLLERR, POLLHUP");
        assert_eq!(option(p, 1, 1, 4).await?, 111, "SO_ERROR");
        assert_eq!(option(p, 1, 1, 4).await?, 0);
        assert_eq!(p.call(3, &[1]).await?, 0);
        assert_eq!(p.call(50, &[0, 5]).await?, 0);
        assert_eq!(p.call(41, &[V4, STREAM | NONBLOCK, 0]).await?, 1);
        assert_eq!(p.call(42, &[1, NAME, 16]).await?, -115, "even if the peer has answered");
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

/// Makes a listener (0) and the two ends of a connection to it (1 and 2).
async fn connection(p: &mut Program) -> Result<(), Gone> {
    assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 0);
    let server = bind(p, 0).await?;
    assert_eq!(p.call(50, &[0, 5]).await?, 0);
    assert_eq!(p.call(41, &[V4, STREAM, 0]).await?, 1);
    here(p, server).await?;
    assert_eq!(p.call(42, &[1, NAME, 16]).await?, 0);
    assert_eq!(p.call(43, &[0, 0, 0]).await?, 2);
    Ok(())
}

/// The time in microseconds (CLOCK_MONOTONIC).
async fn time(p: &mut Program) -> Result<u64, Gone> {
    assert_eq!(p.call(228, &[1, LENGTH]).await?, 0);
    Ok(p.load_u64(LENGTH).await? * 1_000_000 + p.load_u64(LENGTH + 8).await? / 1000)
}

/// Sends until nothing more fits, and sets SO_LINGER. Returns how many bytes were sent.
async fn fill(p: &mut Program, socket: u64, seconds: u32) -> Result<i64, Gone> {
    let memory = p.call(9, &[0, 0x4000, 3, 0x22, u64::MAX, 0]).await? as u64;
    let mut sent = 0;
    loop {
        match p.call(44, &[socket, memory, 0x4000, 0x4040, 0, 0]).await? {
            EAGAIN => break,
            count => sent += count,
        }
    }
    p.store(DATA, &bytes(&[1 | u64::from(seconds) << 32])).await?;
    assert_eq!(p.call(54, &[socket, 1, 13, DATA, 8]).await?, 0);
    Ok(sent)
}

/// Reads until the end, and returns how many bytes there were.
async fn drain(p: &mut Program, socket: u64) -> Result<i64, Gone> {
    let mut read = 0;
    loop {
        match p.call(0, &[socket, DATA, 0x1000]).await? {
            0 => return Ok(read),
            count => read += count,
        }
        assert!(read >= 0, "{read}");
    }
}

#[test]
fn a_close_lingers_until_the_peer_has_all_or_the_time_is_over() {
    const MILLISECOND: u64 = 1000;
    run(async |p| {
        // The peer reads nothing: the close waits as long as the option says, also if the socket
        // is not to wait. The rest is sent after that.
        connection(p).await?;
        assert_eq!(p.call(72, &[1, 4, 0o4000]).await?, 0, "O_NONBLOCK");
        let sent = fill(p, 1, 2).await?;
        let began = time(p).await?;
        assert_eq!(p.call(3, &[1]).await?, 0);
        let took = time(p).await? - began;
        assert!((2000 * MILLISECOND..2100 * MILLISECOND).contains(&took), "{took}");
        assert_eq!(p.call(3, &[1]).await?, -9);
        assert_eq!(drain(p, 2).await?, sent);
        assert_eq!((p.call(3, &[2]).await?, p.call(3, &[0]).await?), (0, 0));

        // The peer reads after 100 ms.
        connection(p).await?;
        let sent = fill(p, 1, 2).await?;
        p.fork(move |p| {
            Box::pin(async move {
                assert_eq!(p.call(3, &[1]).await?, 0, "the other process has it, too: no wait");
                p.store(DATA, &bytes(&[0, 100_000_000])).await?;
                assert_eq!(p.call(35, &[DATA, 0]).await?, 0);
                assert_eq!(drain(p, 2).await?, sent);
                p.exit(0).await
            })
        })
        .await?;
        // Only the last close waits: the child is to close first.
        p.store(DATA, &bytes(&[0, 50_000_000])).await?;
        assert_eq!(p.call(35, &[DATA, 0]).await?, 0);
        let began = time(p).await?;
        assert_eq!(p.call(3, &[1]).await?, 0);
        let took = time(p).await? - began;
        assert!((40 * MILLISECOND..200 * MILLISECOND).contains(&took), "{took}");
        assert_eq!(p.wait(0).await?.1, 0);
        assert_eq!((p.call(3, &[2]).await?, p.call(3, &[0]).await?), (0, 0));

        // The end of a process does not wait.
        connection(p).await?;
        let sent = fill(p, 1, 2).await?;
        p.fork(|p| Box::pin(async move { p.exit(0).await })).await?;
        let began = time(p).await?;
        assert_eq!(p.call(3, &[1]).await?, 0, "the child has it, too");
        assert_eq!(p.wait(0).await?.1, 0);
        let took = time(p).await? - began;
        assert!(took < 100 * MILLISECOND, "{took}");
        assert_eq!(drain(p, 2).await?, sent);
        Ok(())
    });
}

#[test]
fn a_signal_ends_the_wait_of_a_close() {
    const ALARM: u64 = 14;
    run(async |p| {
        connection(p).await?;
        fill(p, 1, 30).await?;
        p.handle(ALARM, 0x1000_0000, |_| Box::pin(async { Ok(()) })).await?;
        p.store(DATA, &bytes(&[0, 0, 0, 100_000])).await?;
        assert_eq!(p.call(38, &[0, DATA, 0]).await?, 0, "setitimer");
        let began = time(p).await?;
        assert_eq!(p.call(3, &[1]).await?, 0);
        let took = time(p).await? - began;
        assert!((90_000..1_000_000).contains(&took), "{took}");
        assert_eq!(p.call(3, &[1]).await?, -9, "it is closed");
        Ok(())
    });
}

/// A request of rtnetlink about the loopback's address 10.1.2.3.
fn address_request(kind: u16) -> Vec<u8> {
    let header = [&32u32.to_le_bytes()[..], &kind.to_le_bytes(), &5u16.to_le_bytes(), &[0; 8]].concat();
    [header, vec![2, 8, 0, 0, 1, 0, 0, 0, 8, 0, 2, 0, 10, 1, 2, 3]].concat()
}

/// The kinds of the messages that wait for a socket of netlink, and the groups that their addresses
/// name.
async fn waiting(p: &mut Program, socket: u64) -> Result<Vec<(u16, u32)>, Gone> {
    let mut kinds = Vec::new();
    loop {
        p.store(LENGTH, &12u32.to_le_bytes()).await?;
        match p.call(45, &[socket, DATA + 0x400, 0x1000, 0x40, NAME, LENGTH]).await? {
            EAGAIN => return Ok(kinds),
            error @ ..0 => kinds.push((0, error as u32)),
            _ => {
                let kind = u16::from_le_bytes(p.load::<2>(DATA + 0x404).await?);
                kinds.push((kind, p.load_u32(NAME + 8).await?));
            }
        }
    }
}

#[test]
fn members_of_groups_are_told_of_changes() {
    const LINK: u32 = 1;
    const ADDRESS: u32 = 0x10;
    run(async |p| {
        for socket in [0, 1] {
            assert_eq!(p.call(41, &[16, 3, 0]).await?, socket);
        }
        let mut name = [0; 12];
        (name[0], name[8]) = (16, (LINK | ADDRESS) as u8);
        p.store(NAME, &name).await?;
        assert_eq!(p.call(49, &[0, NAME, 12]).await?, 0);
        // The socket that makes a change is told of it, too, if it is a member.
        for (kind, socket) in [(20, 0), (21, 1)] {
            p.store(DATA, &address_request(kind)).await?;
            assert_eq!(p.call(44, &[socket, DATA, 32, 0, 0, 0]).await?, 32);
        }
        assert_eq!(waiting(p, 0).await?, [(20, ADDRESS), (2, 0), (21, ADDRESS)]);
        assert_eq!(waiting(p, 1).await?, [(2, 0)]);
        // A change by another interface, and one that changes nothing.
        for flags in [0, 0, 1] {
            p.store(NAME, b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0").await?;
            p.store(NAME + 16, &[flags, 0]).await?;
            assert_eq!(p.call(16, &[0, 0x8914, NAME]).await?, 0, "SIOCSIFFLAGS");
        }
        p.store(DATA, &bytes(&[1 << 32])).await?;
        assert_eq!(p.call(7, &[DATA, 1, 0]).await?, 1, "it can be read");
        assert_eq!(waiting(p, 0).await?, [(16, LINK), (16, LINK)]);

        // Groups are left and joined by number, and listed.
        let set = async |p: &mut Program, name: u64, group: u32| {
            p.store(DATA, &group.to_le_bytes()).await?;
            p.call(54, &[0, 270, name, DATA, 4]).await
        };
        for (name, group, done) in [(1, 0, -22), (1, 65, -22), (2, 1, 0), (1, 33, 0), (99, 1, -92)] {
            assert_eq!(set(p, name, group).await?, done);
        }
        p.store(LENGTH, &8u32.to_le_bytes()).await?;
        assert_eq!(p.call(55, &[0, 270, 9, DATA, LENGTH]).await?, 0);
        assert_eq!(p.load_u64(DATA).await?, u64::from(ADDRESS) | 1 << 32);
        for flags in [0, 1] {
            p.store(NAME, b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0").await?;
            p.store(NAME + 16, &[flags, 0]).await?;
            assert_eq!(p.call(16, &[0, 0x8914, NAME]).await?, 0);
        }
        assert_eq!(waiting(p, 0).await?, []);

        // What a member does not read has a limit, by its buffer's size. The loss is told once.
        p.store(DATA, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[0, 1, 8, DATA, 4]).await?, 0, "SO_RCVBUF");
        for _ in 0..50 {
            for kind in [20, 21] {
                p.store(DATA, &address_request(kind)).await?;
                assert_eq!(p.call(44, &[1, DATA, 32, 0, 0, 0]).await?, 32);
            }
            waiting(p, 1).await?;
        }
        let told = waiting(p, 0).await?;
        assert_eq!(told[..2], [(0, -105i32 as u32), (20, ADDRESS)]);
        assert!((10..60).contains(&told.len()), "{}", told.len());
        // It is not told if it has said so.
        assert_eq!(set(p, 5, 1).await?, 0);
        for _ in 0..50 {
            for kind in [20, 21] {
                p.store(DATA, &address_request(kind)).await?;
                assert_eq!(p.call(44, &[1, DATA, 32, 0, 0, 0]).await?, 32);
            }
            waiting(p, 1).await?;
        }
        assert_eq!(waiting(p, 0).await?.len() + 1, told.len());
        Ok(())
    });
}

#[test]
fn urgent_data_is_announced_marked_and_read_apart_or_in_its_place() {
    const URGENT: u64 = 1;
    const SIOCATMARK: u64 = 0x8905;
    run(async |p| {
        connection(p).await?;
        p.store(DATA, b"ab!cd").await?;
        assert_eq!(p.call(44, &[1, DATA, 2, 0, 0, 0]).await?, 2);
        assert_eq!(p.call(45, &[2, DATA + 0x200, 9, URGENT | 0x40, 0, 0]).await?, -22, "there is none");
        assert_eq!(p.call(44, &[1, DATA + 2, 1, URGENT, 0, 0]).await?, 1);
        assert_eq!(p.call(44, &[1, DATA + 3, 2, 0, 0, 0]).await?, 2);
        p.store(LENGTH, &bytes(&[2 | 2 << 32])).await?;
        assert_eq!(p.call(7, &[LENGTH, 1, 0]).await?, 1);
        assert_eq!(p.load_u64(LENGTH).await? >> 48, 2, "POLLPRI");
        // A read ends at the mark.
        assert_eq!(p.call(0, &[2, DATA + 0x200, 9]).await?, 2);
        assert_eq!(p.call(16, &[2, SIOCATMARK, LENGTH]).await?, 0);
        assert_eq!(p.load_u32(LENGTH).await?, 1);
        assert_eq!(p.call(45, &[2, DATA + 0x202, 9, URGENT | 2, 0, 0]).await?, 1, "peek");
        assert_eq!(p.call(45, &[2, DATA + 0x202, 9, URGENT, 0, 0]).await?, 1);
        assert_eq!(p.call(45, &[2, DATA + 0x202, 9, URGENT, 0, 0]).await?, -22, "it was read");
        assert_eq!(p.call(0, &[2, DATA + 0x203, 9]).await?, 2);
        assert_eq!(&p.load::<5>(DATA + 0x200).await?, b"ab!cd");
        assert_eq!(p.call(16, &[2, SIOCATMARK, LENGTH]).await?, 0);
        assert_eq!(p.load_u32(LENGTH).await?, 0);
        // SO_OOBINLINE.
        p.store(LENGTH, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[2, 1, 10, LENGTH, 4]).await?, 0);
        assert_eq!(p.call(44, &[1, DATA, 3, URGENT, 0, 0]).await?, 3);
        assert_eq!(p.call(0, &[2, DATA + 0x200, 9]).await?, 2);
        assert_eq!(p.call(45, &[2, DATA + 0x200, 9, URGENT, 0, 0]).await?, -22);
        assert_eq!(p.call(0, &[2, DATA + 0x200, 9]).await?, 1);
        assert_eq!(&p.load::<1>(DATA + 0x200).await?, b"!");
        Ok(())
    });
}

/// Receives a message with its control messages, which are at `DATA + 0x600`, and returns the count
/// and the length of these.
async fn receive_with_control(p: &mut Program, socket: u64, flags: u64) -> Result<(i64, u64), Gone> {
    let message = DATA + 0x500;
    p.store(message, &bytes(&[NAME, 16, message + 64, 1, DATA + 0x600, 128, 0])).await?;
    p.store(message + 64, &bytes(&[DATA + 0x400, 100])).await?;
    let count = p.call(47, &[socket, message, flags]).await?;
    Ok((count, p.load_u64(message + 40).await?))
}

#[test]
fn a_refused_datagram_is_in_the_queue_of_errors() {
    const ERRORS: u64 = 0x2000;
    run(async |p| {
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 0);
        bind(p, 0).await?;
        assert_eq!(receive_with_control(p, 0, ERRORS).await?.0, EAGAIN);
        p.store(DATA, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[0, 0, 11, DATA, 4]).await?, 0, "IP_RECVERR");
        here(p, 9).await?;
        p.store(DATA, b"lost").await?;
        assert_eq!(p.call(44, &[0, DATA, 4, 0, NAME, 16]).await?, 4);
        p.store(LENGTH, &bytes(&[0])).await?;
        assert_eq!(p.call(7, &[LENGTH, 1, 0]).await?, 1);
        assert_eq!(p.load_u64(LENGTH).await? >> 48, 8, "POLLERR");
        let (count, control) = receive_with_control(p, 0, ERRORS).await?;
        assert_eq!((count, control), (4, 48));
        assert_eq!(&p.load::<4>(DATA + 0x400).await?, b"lost");
        assert_eq!(p.load_u32(DATA + 0x500 + 48).await? as u64, ERRORS, "MSG_ERRQUEUE");
        assert_eq!(p.load::<8>(NAME).await?, [2, 0, 0, 9, 127, 0, 0, 1], "where it went to");
        // The level, the type, the error, that it came by ICMP, and the message's type and code.
        assert_eq!((p.load_u32(DATA + 0x608).await?, p.load_u32(DATA + 0x60c).await?), (0, 11));
        assert_eq!(p.load_u32(DATA + 0x610).await?, 111);
        assert_eq!(p.load::<4>(DATA + 0x614).await?, [2, 3, 3, 0]);
        assert_eq!(p.load::<8>(DATA + 0x620).await?, [2, 0, 0, 0, 127, 0, 0, 1], "from where");
        assert_eq!(receive_with_control(p, 0, ERRORS).await?.0, EAGAIN);
        Ok(())
    });
}

#[test]
fn a_datagram_has_the_time_of_its_arrival() {
    run(async |p| {
        assert_eq!(p.call(41, &[V4, DATAGRAM, 0]).await?, 0);
        let receiver = bind(p, 0).await?;
        // SO_TIMESTAMP in microseconds, SO_TIMESTAMPNS in nanoseconds; the second is preferred.
        for (option, unit) in [(29, 1_000_000), (35, 1_000_000_000)] {
            p.store(DATA, &1u32.to_le_bytes()).await?;
            assert_eq!(p.call(54, &[0, 1, option, DATA, 4]).await?, 0);
            here(p, receiver).await?;
            assert_eq!(p.call(44, &[0, DATA, 1, 0, NAME, 16]).await?, 1);
            p.pass(3_000_000).await?;
            assert_eq!(receive_with_control(p, 0, 0).await?, (1, 32));
            assert_eq!(
                (p.load_u32(DATA + 0x608).await?, p.load_u32(DATA + 0x60c).await? as u64),
                (1, option)
            );
            let arrived = p.load_u64(DATA + 0x610).await?;
            assert!(p.load_u64(DATA + 0x618).await? < unit);
            assert_eq!(p.call(228, &[0, LENGTH]).await?, 0);
            let age = p.load_u64(LENGTH).await? - arrived;
            assert!((2..=4).contains(&age), "{age}");
        }
        Ok(())
    });
}

/// Sets TCP_NODELAY: small segments do not wait for the acknowledgement of others.
async fn send_without_delay(p: &mut Program, socket: u64) -> Result<(), Gone> {
    p.store(DATA, &1u32.to_le_bytes()).await?;
    assert_eq!(p.call(54, &[socket, 6, 1, DATA, 4]).await?, 0);
    Ok(())
}

/// The events that an epoll file has, one socket at most, without waiting.
async fn event(p: &mut Program, epoll: u64) -> Result<u32, Gone> {
    match p.call(232, &[epoll, DATA + 0x700, 8, 0]).await? {
        0 => Ok(0),
        count => {
            assert_eq!(count, 1);
            p.load_u32(DATA + 0x700).await
        }
    }
}

#[test]
fn edges_of_a_connection_are_told_once() {
    const IN: u32 = 1;
    const OUT: u32 = 4;
    const HANGUP: u32 = 0x2000;
    const EDGE: u32 = 1 << 31;
    run(async |p| {
        connection(p).await?;
        send_without_delay(p, 1).await?;
        assert_eq!(p.call(291, &[0]).await?, 3);
        assert_eq!(p.call(291, &[0]).await?, 4);
        for (epoll, socket, events) in [(3, 2, IN | HANGUP | EDGE), (4, 1, OUT | EDGE)] {
            p.store(DATA, &[&events.to_le_bytes()[..], &[0; 8]].concat()).await?;
            assert_eq!(p.call(233, &[epoll, 1, socket, DATA]).await?, 0);
        }
        assert_eq!(event(p, 3).await?, 0);
        // Each arrival is an edge, whether what came before was read or not.
        for round in 0..3 {
            assert_eq!(p.call(1, &[1, DATA, 5]).await?, 5);
            assert_eq!((event(p, 3).await?, event(p, 3).await?), (IN, 0), "{round}");
        }
        assert_eq!(p.call(0, &[2, DATA + 0x100, 7]).await?, 7);
        assert_eq!(event(p, 3).await?, 0, "what is left is no edge");
        assert_eq!(p.call(0, &[2, DATA + 0x100, 99]).await?, 8);
        // There is room; then there is none; then there is some again.
        assert_eq!((event(p, 4).await? & OUT, event(p, 4).await?), (OUT, 0));
        fill(p, 1, 0).await?;
        assert_eq!(event(p, 4).await?, 0);
        event(p, 3).await?;
        let mut read = 0;
        while event(p, 4).await? & OUT == 0 {
            let count = p.call(45, &[2, DATA + 0x1000, 0x1000, 0x40, 0, 0]).await?;
            assert!(count > 0, "all was read: {read}");
            read += count;
        }
        while p.call(45, &[2, DATA + 0x1000, 0x1000, 0x40, 0, 0]).await? > 0 {}
        event(p, 3).await?;
        assert_eq!(p.call(48, &[1, 1]).await?, 0);
        assert_eq!((event(p, 3).await?, event(p, 3).await?), (IN | HANGUP, 0));
        Ok(())
    });
}

#[test]
fn bytes_are_spliced_from_a_connection_to_a_pipe_and_back() {
    run(async |p| {
        connection(p).await?;
        send_without_delay(p, 2).await?;
        assert_eq!(p.call(22, &[DATA]).await?, 0);
        assert_eq!((p.load_u32(DATA).await?, p.load_u32(DATA + 4).await?), (3, 4));
        let text: Vec<u8> = (0..3000u32).map(|at| (at * 7 % 251) as u8).collect();
        p.store(DATA + 0x1000, &text).await?;
        assert_eq!(p.call(1, &[1, DATA + 0x1000, 3000]).await?, 3000);
        assert_eq!(p.call(275, &[2, 0, 4, 0, 1000, 0]).await?, 1000);
        assert_eq!(p.call(275, &[2, 0, 4, 0, 5000, 0]).await?, 2000);
        // Back to the peer, and out of the pipe in pieces.
        assert_eq!(p.call(275, &[3, 0, 2, 0, 500, 0]).await?, 500);
        assert_eq!(p.call(275, &[3, 0, 2, 0, 5000, 0]).await?, 2500);
        assert_eq!(p.call(45, &[1, DATA + 0x3000, 3000, 0x100, 0, 0]).await?, 3000, "MSG_WAITALL");
        assert_eq!(p.load::<3000>(DATA + 0x3000).await?[..], text[..]);
        assert_eq!(p.call(275, &[2, DATA, 4, 0, 10, 0]).await?, -29, "a socket has no offset");
        assert_eq!(p.call(48, &[1, 1]).await?, 0);
        assert_eq!(p.call(275, &[2, 0, 4, 0, 10, 0]).await?, 0, "the end");
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
        a_close_lingers_until_the_peer_has_all_or_the_time_is_over,
        a_signal_ends_the_wait_of_a_close,
        members_of_groups_are_told_of_changes,
        urgent_data_is_announced_marked_and_read_apart_or_in_its_place,
        a_refused_datagram_is_in_the_queue_of_errors,
        a_datagram_has_the_time_of_its_arrival,
        edges_of_a_connection_are_told_once,
        bytes_are_spliced_from_a_connection_to_a_pipe_and_back,
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
