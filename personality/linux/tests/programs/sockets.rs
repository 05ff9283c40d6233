//! Tests of sockets, through the system calls of programs.

use crate::world::{DATA, Program};
use crate::{EAGAIN, bytes, run};

const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
const NONBLOCK: u64 = 0o4000;

/// Stores a sockaddr_un at `at`; returns its length.
async fn name(p: &mut Program, at: u64, name: &[u8]) -> Result<u64, crate::world::Gone> {
    p.store(at, &[&1u16.to_le_bytes()[..], name].concat()).await?;
    Ok(2 + name.len() as u64)
}

/// Stores a msghdr at `at` for one range, with control messages.
async fn header(
    p: &mut Program,
    at: u64,
    range: (u64, u64),
    control: (u64, u64),
) -> Result<(), crate::world::Gone> {
    p.store(at + 64, &bytes(&[range.0, range.1])).await?;
    p.store(at, &bytes(&[0, 0, at + 64, 1, control.0, control.1, 0])).await
}

#[test]
fn unknown_families_and_types_are_refused() {
    run(async |p| {
        for (arguments, expected) in [
            ([2, STREAM, 17], -93),
            ([10, 5, 0], -94),
            ([2, 9, 0], -22),
            ([40, STREAM, 0], -97),
            ([16, STREAM, 0], -94),
            ([16, 3, 3], -93),
            ([1, 9, 0], -22),
            ([1, 4, 0], -94),
            ([1, STREAM, 5], -93),
            ([1, STREAM | 0x100, 0], -22),
        ] {
            assert_eq!(p.call(41, &arguments).await?, expected, "{arguments:?}");
        }
        assert_eq!(p.call(53, &[2, STREAM, 0, DATA]).await?, -95);
        assert_eq!(p.call(53, &[40, STREAM, 0, DATA]).await?, -97);
        assert_eq!(p.call(53, &[1, STREAM, 0, 8]).await?, -14);
        assert_eq!(p.call(293, &[DATA, 0]).await?, 0);
        assert_eq!(p.call(48, &[0, 0]).await?, -88, "a pipe is no socket");
        assert_eq!(p.call(48, &[9, 0]).await?, -9);
        Ok(())
    });
}

#[test]
fn a_server_and_a_client_exchange_bytes_and_credentials() {
    run(async |p| {
        let length = name(p, DATA, b"/socket\0").await?;
        assert_eq!(p.call(41, &[1, STREAM, 0]).await?, 0);
        assert_eq!(p.call(42, &[0, DATA, length]).await?, -2, "no socket has the name");
        assert_eq!(p.call(50, &[0, 5]).await?, -22, "not bound");
        assert_eq!(p.call(49, &[0, DATA, length]).await?, 0);
        assert_eq!(p.call(49, &[0, DATA, length]).await?, -22, "bound already");
        assert_eq!(p.call(50, &[0, 5]).await?, 0);
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(41, &[1, STREAM, 0]).await?, 1);
                    assert_eq!(p.call(42, &[1, DATA, length]).await?, 0);
                    assert_eq!(p.call(42, &[1, DATA, length]).await?, -106);
                    p.store(DATA + 0x200, b"question").await?;
                    assert_eq!(p.call(44, &[1, DATA + 0x200, 8, 0, 0, 0]).await?, 8);
                    assert_eq!(p.call(45, &[1, DATA + 0x200, 100, 0, 0, 0]).await?, 6);
                    assert_eq!(&p.load::<6>(DATA + 0x200).await?, b"answer");
                    assert_eq!(p.call(45, &[1, DATA + 0x200, 100, 0, 0, 0]).await?, 0, "the end");
                    p.exit(0).await
                })
            })
            .await?;
        p.store(DATA + 0x100, &110u32.to_le_bytes()).await?;
        assert_eq!(p.call(288, &[0, DATA + 0x110, DATA + 0x100, NONBLOCK | 0o2000000]).await?, 1);
        assert_eq!(p.load_u32(DATA + 0x100).await?, 2, "the client has no name");
        assert_eq!(p.call(72, &[1, 1]).await?, 1, "close on exec");
        assert_eq!(p.call(72, &[1, 3]).await? & NONBLOCK as i64, NONBLOCK as i64);
        // SO_PEERCRED returns the id of the client's process.
        p.store(DATA + 0x100, &12u32.to_le_bytes()).await?;
        assert_eq!(p.call(55, &[1, 1, 17, DATA + 0x110, DATA + 0x100]).await?, 0);
        assert_eq!(u64::from(p.load_u32(DATA + 0x110).await?), child as u64);
        // getsockname returns the server's own name.
        p.store(DATA + 0x100, &110u32.to_le_bytes()).await?;
        assert_eq!(p.call(51, &[1, DATA + 0x110, DATA + 0x100]).await?, 0);
        assert_eq!(p.load_u32(DATA + 0x100).await?, 10);
        assert_eq!(&p.load::<10>(DATA + 0x110).await?, b"\x01\0/socket\0");
        p.pass(1000).await?;
        assert_eq!(p.call(0, &[1, DATA + 0x200, 100]).await?, 8);
        assert_eq!(p.call(0, &[1, DATA + 0x200, 100]).await?, EAGAIN);
        p.store(DATA + 0x200, b"answer").await?;
        assert_eq!(p.call(1, &[1, DATA + 0x200, 6]).await?, 6);
        assert_eq!(p.call(48, &[1, 1]).await?, 0);
        assert_eq!(p.wait(0).await?.1, 0);
        // A send without a receiver is EPIPE, with SIGPIPE unless MSG_NOSIGNAL prevents it.
        assert_eq!(p.call(44, &[1, DATA, 1, 0x4000, 0, 0]).await?, -32);
        assert_eq!(p.call(87, &[DATA + 2]).await?, 0);
        Ok(())
    });
}

#[test]
fn descriptors_and_credentials_are_passed_with_messages() {
    run(async |p| {
        assert_eq!(p.call(53, &[1, STREAM, 0, DATA]).await?, 0);
        assert_eq!(p.call(293, &[DATA, 0]).await?, 0);
        let (one, other, read, write) = (0, 1, 2, 3);
        // The message carries the pipe's write end.
        let control = DATA + 0x100;
        p.store(control, &bytes(&[20, 1 << 32 | 1, write])).await?;
        header(p, DATA, (DATA + 0x200, 1), (control, 24)).await?;
        assert_eq!(p.call(46, &[one, DATA, 0]).await?, 1);
        assert_eq!(p.call(3, &[write]).await?, 0);
        // The receiver asks for credentials, too.
        p.store(DATA + 0x300, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[other, 1, 16, DATA + 0x300, 4]).await?, 0);
        header(p, DATA, (DATA + 0x200, 10), (control, 64)).await?;
        assert_eq!(p.call(47, &[other, DATA, 0x4000_0000]).await?, 1);
        assert_eq!(p.load_u64(DATA + 40).await?, 32 + 24, "the length of the control messages");
        assert_eq!(p.load_u32(DATA + 48).await?, 0x4000_0000, "the flags");
        assert_eq!((p.load_u64(control).await?, p.load_u32(control + 12).await?), (28, 2));
        assert_eq!(p.load_u32(control + 16).await?, 1, "the sender's id");
        assert_eq!((p.load_u64(control + 32).await?, p.load_u32(control + 44).await?), (20, 1));
        assert_eq!(p.load_u32(control + 48).await?, 3, "the new descriptor");
        assert_eq!(p.call(72, &[3, 1]).await?, 1, "closed at exec");
        assert_eq!(p.call(1, &[3, DATA, 5]).await?, 5);
        assert_eq!(p.call(0, &[read, DATA + 0x400, 9]).await?, 5);
        // The receiver has no room for the descriptor, which is therefore closed.
        p.store(control, &bytes(&[20, 1 << 32 | 1, 3])).await?;
        header(p, DATA, (DATA + 0x200, 1), (control, 24)).await?;
        assert_eq!(p.call(46, &[other, DATA, 0]).await?, 1);
        header(p, DATA, (DATA + 0x200, 10), (0, 0)).await?;
        assert_eq!(p.call(47, &[one, DATA, 0]).await?, 1);
        assert_eq!(p.load_u32(DATA + 48).await?, 8, "control messages were cut");
        // A number that is no descriptor, and other damaged control messages, are refused.
        p.store(control, &bytes(&[20, 1 << 32 | 1, 77])).await?;
        header(p, DATA, (DATA + 0x200, 1), (control, 24)).await?;
        assert_eq!(p.call(46, &[one, DATA, 0]).await?, -9);
        p.store(control, &bytes(&[100, 1 << 32 | 1, 3])).await?;
        assert_eq!(p.call(46, &[one, DATA, 0]).await?, -22);
        p.store(control, &bytes(&[28, 2 << 32 | 1, 77, 0])).await?;
        header(p, DATA, (DATA + 0x200, 1), (control, 32)).await?;
        assert_eq!(p.call(46, &[one, DATA, 0]).await?, 1, "the first process may claim to be another");
        Ok(())
    });
}

#[test]
fn datagrams_keep_their_bounds_and_show_their_senders() {
    run(async |p| {
        let here = name(p, DATA, b"\0here").await?;
        assert_eq!(p.call(41, &[1, DATAGRAM, 0]).await?, 0);
        assert_eq!(p.call(41, &[1, DATAGRAM, 0]).await?, 1);
        assert_eq!(p.call(49, &[0, DATA, here]).await?, 0);
        let there = name(p, DATA + 0x80, b"\0there").await?;
        assert_eq!(p.call(49, &[1, DATA + 0x80, there]).await?, 0);
        p.store(DATA + 0x200, b"twelve bytes").await?;
        assert_eq!(p.call(44, &[1, DATA + 0x200, 12, 0, 0, 0]).await?, -107, "no receiver is set");
        assert_eq!(p.call(44, &[1, DATA + 0x200, 12, 0, DATA, here]).await?, 12);
        assert_eq!(p.call(44, &[1, DATA + 0x200, 0, 0, DATA, here]).await?, 0);
        p.store(DATA + 0x300, &64u32.to_le_bytes()).await?;
        assert_eq!(
            p.call(45, &[0, DATA + 0x280, 3, 0x20 | 2, 0, 0]).await?,
            12,
            "peek, with the whole length"
        );
        assert_eq!(p.call(45, &[0, DATA + 0x280, 3, 0, DATA + 0x310, DATA + 0x300]).await?, 3);
        assert_eq!(p.load_u32(DATA + 0x300).await?, 8);
        assert_eq!(&p.load::<8>(DATA + 0x310).await?, b"\x01\0\0there");
        assert_eq!(p.call(45, &[0, DATA + 0x280, 3, 0, 0, 0]).await?, 0, "the empty one");
        assert_eq!(p.call(45, &[0, DATA + 0x280, 3, 0x40, 0, 0]).await?, EAGAIN);
        // The receive ends at the time-out of the socket.
        p.store(DATA + 0x400, &bytes(&[0, 5000])).await?;
        assert_eq!(p.call(54, &[0, 1, 20, DATA + 0x400, 16]).await?, 0);
        assert_eq!(p.call(45, &[0, DATA + 0x280, 3, 0, 0, 0]).await?, EAGAIN);
        // One call sends several messages.
        for at in [DATA + 0x500, DATA + 0x540] {
            p.store(at, &bytes(&[DATA, here, DATA + 0x580, 1, 0, 0, 0, 0])).await?;
        }
        p.store(DATA + 0x580, &bytes(&[DATA + 0x200, 6])).await?;
        assert_eq!(p.call(307, &[1, DATA + 0x500, 2, 0]).await?, 2);
        assert_eq!(p.load_u32(DATA + 0x540 + 56).await?, 6);
        for at in [DATA + 0x500, DATA + 0x540] {
            p.store(at, &bytes(&[0, 0, DATA + 0x580, 1, 0, 0, 0, 0])).await?;
        }
        assert_eq!(p.call(299, &[0, DATA + 0x500, 2, 0x1_0000, 0]).await?, 2);
        assert_eq!(p.load_u32(DATA + 0x500 + 56).await?, 6);
        // Options without effect can be read back.
        p.store(DATA + 0x400, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(54, &[0, 1, 2, DATA + 0x400, 4]).await?, 0);
        for (option, expected) in [(2, 1), (9, 0), (3, DATAGRAM), (30, 0), (4, 0), (39, 1)] {
            p.store(DATA + 0x400, &bytes(&[4])).await?;
            assert_eq!(p.call(55, &[0, 1, option, DATA + 0x408, DATA + 0x400]).await?, 0);
            assert_eq!(u64::from(p.load_u32(DATA + 0x408).await?), expected, "option {option}");
        }
        assert_eq!(p.call(55, &[0, 1, 999, DATA + 0x408, DATA + 0x400]).await?, -92);
        assert_eq!(p.call(55, &[0, 6, 1, DATA + 0x408, DATA + 0x400]).await?, -95);
        Ok(())
    });
}
