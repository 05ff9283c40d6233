//! Tests of the signals that files send to their owners (O_ASYNC, F_SETOWN, F_SETSIG).

use crate::world::{self, DATA, Program, World};
use crate::{bytes, run, run_in};

const IO: u64 = 29;
const ASYNC: u64 = 0o20000;
const GETFL: u64 = 3;
const SETFL: u64 = 4;
const SETOWN: u64 = 8;
const GETOWN: u64 = 9;
const SETSIG: u64 = 10;
const SETOWN_EX: u64 = 15;
const GETOWN_EX: u64 = 16;
/// Where the handlers leave what the last signal said.
const SEEN: u64 = DATA + 0x4000;

/// Handles SIGIO and the signals 40 and 41: they leave their number, code, events and descriptor,
/// and count.
async fn watch(p: &mut Program) -> Result<(), world::Gone> {
    for signal in [IO, 40, 41, 17] {
        p.handle(signal, 4, |p| {
            Box::pin(async move {
                let (signal, information) = (p.state.rdi, p.state.rsi);
                let code = p.load_u32(information + 8).await?;
                let events = p.load_u64(information + 16).await?;
                let file = p.load_u32(information + 24).await?;
                let count = p.load_u64(SEEN + 32).await? + 1;
                p.store(SEEN, &bytes(&[signal, code.into(), events, file.into(), count])).await
            })
        })
        .await?;
    }
    Ok(())
}

/// What the last signal said since the last question, and how many there were.
async fn seen(p: &mut Program) -> Result<([u64; 4], u64), world::Gone> {
    p.check_recall().await?;
    let mut words = [0; 5];
    for (index, word) in words.iter_mut().enumerate() {
        *word = p.load_u64(SEEN + 8 * index as u64).await?;
    }
    p.store(SEEN, &[0; 40]).await?;
    let [signal, code, events, file, count] = words;
    Ok(([signal, code, events, file], count))
}

async fn fcntl(p: &mut Program, file: u64, command: u64, argument: u64) -> Result<i64, world::Gone> {
    p.call(72, &[file, command, argument]).await
}

/// Makes the caller the owner of the file and asks for signals.
async fn own(p: &mut Program, file: u64) -> Result<(), world::Gone> {
    let own = p.call(39, &[]).await? as u64;
    assert_eq!(fcntl(p, file, SETOWN, own).await?, 0);
    assert_eq!(fcntl(p, file, SETFL, ASYNC).await?, 0);
    Ok(())
}

async fn write(p: &mut Program, file: u64) -> Result<(), world::Gone> {
    assert_eq!(p.call(1, &[file, DATA, 1]).await?, 1);
    Ok(())
}

#[test]
fn the_owner_of_a_pipe_is_signalled_while_it_wants_to_be() {
    run(async |p| {
        watch(p).await?;
        let own = p.call(39, &[]).await? as u64;
        assert_eq!(p.call(22, &[DATA]).await?, 0);
        assert_eq!(fcntl(p, 0, SETOWN, 99).await?, -3, "no such process");
        assert_eq!(fcntl(p, 0, SETOWN, 1 << 31).await?, -22);
        assert_eq!(fcntl(p, 0, SETOWN, own).await?, 0);
        assert_eq!(fcntl(p, 0, GETOWN, 0).await?, own as i64);
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 0, "it was not asked for");
        assert_eq!(fcntl(p, 0, SETFL, ASYNC).await?, 0);
        assert_eq!(fcntl(p, 0, GETFL, 0).await? as u64 & ASYNC, ASYNC);
        write(p, 1).await?;
        let ([signal, code, ..], count) = seen(p).await?;
        assert_eq!((signal, code, count), (IO, 0x80, 1));
        // With a signal of its own it says what has happened to which descriptor.
        assert_eq!(fcntl(p, 0, SETSIG, 65).await?, -22);
        assert_eq!(fcntl(p, 0, SETSIG, 40).await?, 0);
        assert_eq!(fcntl(p, 0, 11, 0).await?, 40);
        write(p, 1).await?;
        assert_eq!(seen(p).await?, ([40, 1, 0x41, 0], 1));
        // Several events are several signals of a real-time signal.
        p.store(SEEN + 64, &bytes(&[1 << 39])).await?;
        assert_eq!(p.call(14, &[0, SEEN + 64, 0, 8]).await?, 0);
        for _ in 0..3 {
            write(p, 1).await?;
        }
        assert_eq!(p.call(14, &[1, SEEN + 64, 0, 8]).await?, 0);
        assert_eq!(seen(p).await?, ([40, 1, 0x41, 0], 3));
        // A signal whose codes mean something else says only that it is one of a file.
        assert_eq!(fcntl(p, 0, SETSIG, 17).await?, 0);
        write(p, 1).await?;
        assert_eq!(seen(p).await?, ([17, 0xffff_fffb, 0x41, 0], 1));
        assert_eq!(fcntl(p, 0, SETFL, 0).await?, 0);
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 0, "it is asked for no more");
        // Asking again after that names the descriptor by which it was asked.
        assert_eq!(fcntl(p, 0, SETSIG, 40).await?, 0);
        assert_eq!(p.call(33, &[0, 7]).await?, 7);
        assert_eq!(fcntl(p, 7, SETFL, ASYNC).await?, 0);
        write(p, 1).await?;
        assert_eq!(seen(p).await?, ([40, 1, 0x41, 7], 1));
        assert_eq!(fcntl(p, 0, SETFL, ASYNC).await?, 0, "nothing changes");
        assert_eq!(p.call(3, &[7]).await?, 0);
        // The last writer's end is told as bytes are.
        assert_eq!(p.call(3, &[1]).await?, 0);
        assert_eq!(seen(p).await?, ([40, 1, 0x41, 7], 1));
        assert_eq!(fcntl(p, 0, SETOWN, 0).await?, 0);
        assert_eq!(fcntl(p, 0, GETOWN, 0).await?, 0);
        Ok(())
    });
}

#[test]
fn the_owner_of_the_end_to_write_to_is_told_of_room() {
    run(async |p| {
        watch(p).await?;
        assert_eq!(p.call(22, &[DATA + 0x100]).await?, 0);
        own(p, 1).await?;
        assert_eq!(fcntl(p, 1, SETSIG, 40).await?, 0);
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 0);
        assert_eq!(p.call(0, &[0, DATA, 1]).await?, 1);
        assert_eq!(seen(p).await?, ([40, 2, 0x304, 1], 1));
        assert_eq!(p.call(3, &[0]).await?, 0);
        assert_eq!(seen(p).await?, ([40, 2, 0x304, 1], 1), "the last reader's end");
        Ok(())
    });
}

#[test]
fn sockets_signal_their_owners() {
    run(async |p| {
        watch(p).await?;
        let own_number = p.call(39, &[]).await? as u64;
        for family in [1, 2] {
            let (one, other) = match family {
                1 => {
                    assert_eq!(p.call(53, &[1, 1, 0, DATA + 0x100]).await?, 0);
                    (0, 1)
                }
                _ => {
                    // Two datagram sockets of 127.0.0.1, the second one connected to the first.
                    for socket in [0, 1] {
                        assert_eq!(p.call(41, &[2, 2, 0]).await?, socket);
                    }
                    p.store(DATA + 0x100, &bytes(&[2 | 0x0100_007f << 32, 0])).await?;
                    assert_eq!(p.call(49, &[0, DATA + 0x100, 16]).await?, 0);
                    p.store(DATA + 0x120, &bytes(&[16])).await?;
                    assert_eq!(p.call(51, &[0, DATA + 0x100, DATA + 0x120]).await?, 0);
                    assert_eq!(p.call(42, &[1, DATA + 0x100, 16]).await?, 0);
                    (0, 1)
                }
            };
            // The old calls for the owner of a socket.
            p.store(DATA + 0x200, &own_number.to_le_bytes()).await?;
            for (set, get) in [(0x8901, 0x8903), (0x8902, 0x8904)] {
                assert_eq!(fcntl(p, one, SETOWN, 0).await?, 0);
                assert_eq!(p.call(16, &[one, set, DATA + 0x200]).await?, 0);
                assert_eq!(p.call(16, &[one, get, DATA + 0x208]).await?, 0);
                assert_eq!(u64::from(p.load_u32(DATA + 0x208).await?), own_number);
            }
            p.store(DATA + 0x200, &1u32.to_le_bytes()).await?;
            assert_eq!(p.call(16, &[one, 0x5452, DATA + 0x200]).await?, 0, "FIOASYNC");
            assert_eq!(fcntl(p, one, SETSIG, 40).await?, 0);
            write(p, other).await?;
            assert_eq!(seen(p).await?, ([40, 1, 0x41, one], 1), "family {family}");
            assert_eq!(p.call(0, &[one, DATA, 1]).await?, 1);
            assert_eq!(seen(p).await?.1, 0, "reading is no news");
            assert_eq!(p.call(3, &[other]).await?, 0);
            if family == 1 {
                assert_eq!(seen(p).await?.0, [40, 6, 0x18, one], "the other end is gone");
            }
            assert_eq!(p.call(3, &[one]).await?, 0);
        }
        Ok(())
    });
}

#[test]
fn a_terminal_signals_its_foreground_group_unless_another_owner_was_set() {
    let world = World::new();
    let terminal = world.install_terminal();
    run_in(&world, async move |p| {
        let keyboard = terminal.clone();
        p.fork(move |p| {
            let keyboard = keyboard.clone();
            Box::pin(async move {
                watch(p).await?;
                assert_eq!(p.call(112, &[]).await?, 2);
                let path = p.string(DATA, "/tty").await?;
                let tty = p.call(2, &[path, 2, 0]).await? as u64;
                assert_eq!(fcntl(p, tty, SETFL, ASYNC).await?, 0);
                assert_eq!(fcntl(p, tty, GETOWN, 0).await?, -2, "the group");
                keyboard.receive(b"line\n", std::time::Duration::from_secs(1));
                let ([signal, ..], count) = seen(p).await?;
                assert_eq!((signal, count), (IO, 1));
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?, (2, 0));
        Ok(())
    });
}

#[test]
fn threads_and_groups_are_owners() {
    run(async |p| {
        watch(p).await?;
        assert_eq!(p.call(22, &[DATA + 0x100]).await?, 0);
        assert_eq!(fcntl(p, 0, GETOWN_EX, DATA).await?, 0);
        assert_eq!(p.load_u64(DATA).await?, 0, "no owner");
        for (kind, number, answer) in
            [(0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 1, -22), (0, 77, -3), (2, -1i32, -3)]
        {
            p.store(DATA, &bytes(&[kind | u64::from(number as u32) << 32])).await?;
            assert_eq!(fcntl(p, 0, SETOWN_EX, DATA).await?, answer, "{kind} {number}");
            if answer == 0 {
                p.store(DATA, &[0; 8]).await?;
                assert_eq!(fcntl(p, 0, GETOWN_EX, DATA).await?, 0);
                assert_eq!(p.load_u64(DATA).await?, kind | 1 << 32);
            }
        }
        assert_eq!(fcntl(p, 0, GETOWN, 0).await?, -1, "a group");
        // A group of two, of which each process gets the signal.
        assert_eq!(fcntl(p, 0, SETFL, ASYNC).await?, 0);
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    p.pass(5000).await?;
                    assert_eq!(seen(p).await?.1, 1);
                    p.exit(0).await
                })
            })
            .await? as u64;
        p.pass(500).await?;
        write(p, 1).await?;
        assert_eq!(seen(p).await?.0[0], IO);
        assert_eq!(p.wait(0).await?, (child as i64, 0));
        seen(p).await?;
        // The child as owner, from its own group: when it has ended, nothing is signalled, and the
        // process that gets its number is none of the owner's.
        let child = p.fork(|p| Box::pin(async move { p.exit(0).await })).await? as u64;
        assert_eq!(fcntl(p, 0, SETOWN, child).await?, 0);
        assert_eq!(fcntl(p, 0, GETOWN, 0).await?, child as i64);
        assert_eq!(p.wait(0).await?.1, 0);
        assert_eq!(fcntl(p, 0, GETOWN, 0).await?, 0, "the owner is gone");
        seen(p).await?;
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 0);
        Ok(())
    });
}

#[test]
fn the_setter_of_an_owner_must_be_allowed_to_signal_it() {
    run(async |p| {
        watch(p).await?;
        assert_eq!(p.call(22, &[DATA + 0x100]).await?, 0);
        own(p, 0).await?;
        let own = p.call(39, &[]).await? as u64;
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    p.call(105, &[1000]).await?;
                    assert_eq!(fcntl(p, 0, SETOWN, own).await?, 0);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        seen(p).await?;
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 0, "another user has set the owner");
        assert_eq!(fcntl(p, 0, SETOWN, own).await?, 0);
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 1);
        Ok(())
    });
}

#[test]
fn the_owner_survives_dup_fork_and_the_first_descriptor_and_ends_with_the_last() {
    run(async |p| {
        watch(p).await?;
        assert_eq!(p.call(22, &[DATA + 0x100]).await?, 0);
        own(p, 0).await?;
        assert_eq!(p.call(33, &[0, 5]).await?, 5);
        assert_eq!(p.call(3, &[0]).await?, 0);
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 1);
        // A child that has the only descriptor keeps the owner.
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    p.pass(5000).await?;
                    assert_eq!(seen(p).await?.1, 0, "the child is none");
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.call(3, &[5]).await?, 0);
        p.pass(500).await?;
        write(p, 1).await?;
        assert_eq!(seen(p).await?.1, 1);
        assert_eq!(p.wait(0).await?, (child, 0));
        seen(p).await?;
        assert_eq!(p.call(1, &[1, DATA, 1]).await?, -32);
        Ok(())
    });
}

#[test]
fn files_that_become_ready_by_signals_have_no_owners() {
    run(async |p| {
        watch(p).await?;
        // A signalfd for SIGIO with itself as the reason for SIGIO would never end.
        p.store(DATA, &bytes(&[1 << (IO - 1) | 1 << 9])).await?;
        assert_eq!(p.call(14, &[0, DATA, 0, 8]).await?, 0);
        let file = p.call(289, &[u64::MAX, DATA, 8, 0o4000]).await? as u64;
        own(p, file).await?;
        p.store(DATA + 8, &1u32.to_le_bytes()).await?;
        assert_eq!(p.call(16, &[file, 0x5452, DATA + 8]).await?, 0, "the flag is set already");
        let counter = p.call(290, &[0, 0]).await? as u64;
        assert_eq!(p.call(16, &[counter, 0x5452, DATA + 8]).await?, -25, "FIOASYNC");
        assert_eq!(p.call(62, &[1, 10]).await?, 0);
        assert_eq!(p.call(0, &[file, DATA + 0x100, 1000]).await?, 128, "one signal");
        Ok(())
    });
}

#[test]
fn sigio_says_that_there_was_no_room_for_a_signal_that_says_more() {
    run(async |p| {
        watch(p).await?;
        assert_eq!(p.call(22, &[DATA + 0x100]).await?, 0);
        own(p, 0).await?;
        assert_eq!(fcntl(p, 0, SETSIG, 40).await?, 0);
        // RLIMIT_SIGPENDING is 2; the signals 40 wait.
        p.store(DATA, &bytes(&[2, 2])).await?;
        assert_eq!(p.call(160, &[11, DATA]).await?, 0);
        p.store(DATA, &bytes(&[1 << 39])).await?;
        assert_eq!(p.call(14, &[0, DATA, 0, 8]).await?, 0);
        for _ in 0..2 {
            write(p, 1).await?;
        }
        assert_eq!(seen(p).await?.1, 0);
        for _ in 0..100 {
            write(p, 1).await?;
            assert_eq!(seen(p).await?.0[0], IO);
        }
        Ok(())
    });
}

#[test]
fn a_directory_that_changes_signals_its_owner() {
    const NOTIFY: u64 = 1026;
    const AGAIN: u64 = 0x8000_0000;
    run(async |p| {
        watch(p).await?;
        let path = p.string(DATA, "/d").await?;
        assert_eq!(p.call(83, &[path, 0o755]).await?, 0);
        let directory = p.call(2, &[path, 0]).await? as u64;
        let file = p.string(DATA + 0x40, "/d/file").await?;
        let other = p.string(DATA + 0x80, "/d/other").await?;
        let outside = p.string(DATA + 0xc0, "/outside").await?;
        assert_eq!(p.call(22, &[DATA + 0x100]).await?, 0);
        assert_eq!(fcntl(p, 1, NOTIFY, 4).await?, -20, "no directory");
        // It is told once of one kind of change.
        assert_eq!(fcntl(p, directory, NOTIFY, 4).await?, 0);
        assert_eq!(fcntl(p, directory, GETOWN, 0).await?, 1);
        let open = p.call(2, &[file, 0o102, 0o644]).await? as u64;
        let ([signal, code, ..], count) = seen(p).await?;
        assert_eq!((signal, code, count), (IO, 0x80, 1));
        assert_eq!(p.call(133, &[other, 0o100644, 0]).await?, 0);
        assert_eq!(seen(p).await?.1, 0, "it was told");
        // Again and again, of writes and removals, with a signal that says to which descriptor.
        assert_eq!(fcntl(p, directory, SETSIG, 40).await?, 0);
        assert_eq!(fcntl(p, directory, NOTIFY, 8 | AGAIN).await?, 0);
        assert_eq!(fcntl(p, directory, NOTIFY, 2).await?, 0, "in addition");
        write(p, open).await?;
        assert_eq!(seen(p).await?, ([40, 3, 0x441, directory], 1));
        write(p, open).await?;
        assert_eq!(seen(p).await?.1, 1);
        assert_eq!(p.call(90, &[file, 0o600]).await?, 0);
        assert_eq!(seen(p).await?.1, 0, "attributes were not asked for");
        assert_eq!(p.call(87, &[other]).await?, 0);
        assert_eq!(seen(p).await?.1, 1);
        assert_eq!(fcntl(p, directory, NOTIFY, 0).await?, 0);
        write(p, open).await?;
        assert_eq!(seen(p).await?.1, 0, "it is asked for no more");
        // A new name in the same directory is a removal, a creation and a change of names; a move
        // to another directory is no change of names.
        assert_eq!(fcntl(p, directory, NOTIFY, 4 | 8 | 0x10 | AGAIN).await?, 0);
        for (from, to, count) in [(file, other, 3), (other, outside, 1)] {
            assert_eq!(p.call(82, &[from, to]).await?, 0);
            assert_eq!(seen(p).await?.1, count);
        }
        assert_eq!(fcntl(p, directory, NOTIFY, 0).await?, 0);
        // The last descriptor ends it.
        assert_eq!(fcntl(p, directory, NOTIFY, 2 | AGAIN).await?, 0);
        assert_eq!(p.call(3, &[directory]).await?, 0);
        write(p, open).await?;
        assert_eq!(seen(p).await?.1, 0);
        Ok(())
    });
}
