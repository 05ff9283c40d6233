//! Tests of calls that are done in part, or by one process on another's behalf: interrupted writes,
//! wake-ups, and locks that exec releases.

use crate::world::{DATA, Gone, Program, World, elf};
use crate::{EAGAIN, EINTR, bytes, run, run_in};

const USR1: u64 = 10;
const RESTART: u64 = 0x1000_0000;

/// How many bytes can be read from a descriptor.
async fn readable(p: &mut Program, descriptor: u64) -> Result<i64, Gone> {
    const FIONREAD: u64 = 0x541b;
    assert_eq!(p.call(16, &[descriptor, FIONREAD, DATA + 0x100]).await?, 0);
    Ok(p.load_u32(DATA + 0x100).await?.into())
}

#[test]
fn an_interrupted_write_that_has_moved_bytes_returns_their_count() {
    run(async |p| {
        const LENGTH: u64 = 1 << 20;
        let memory = p.call(9, &[0, LENGTH, 3, 0x22, u64::MAX, 0]).await? as u64;
        p.store(DATA + 0x40, &bytes(&[memory, 5000, memory + 5000, LENGTH - 5000])).await?;
        for flags in [0, RESTART] {
            p.handle(USR1, flags, |_| Box::pin(async { Ok(()) })).await?;
            for vector in [false, true] {
                for socket in [false, true] {
                    let made = match socket {
                        true => p.call(53, &[1, 1, 0, DATA]).await?,
                        false => p.call(293, &[DATA, 0]).await?,
                    };
                    assert_eq!(made, 0);
                    let ends = [p.load_u32(DATA).await?, p.load_u32(DATA + 4).await?].map(u64::from);
                    for round in 0..2 {
                        p.fork(|p| {
                            Box::pin(async move {
                                p.pass(1000).await?;
                                assert_eq!(p.call(62, &[1, USR1]).await?, 0);
                                // This ends the write if it was restarted.
                                p.pass(1000).await?;
                                assert_eq!(p.call(62, &[1, 9]).await?, 0);
                                p.exit(0).await
                            })
                        })
                        .await?;
                        let before = readable(p, ends[0]).await?;
                        let written = match (round, vector) {
                            // No byte is moved: the write is interrupted. (One that is restarted
                            // would wait for ever.)
                            (1, _) if flags == RESTART => EINTR,
                            (_, false) => p.call(1, &[ends[1], memory, LENGTH]).await?,
                            (_, true) => p.call(20, &[ends[1], DATA + 0x40, 2]).await?,
                        };
                        let moved = readable(p, ends[0]).await? - before;
                        match round {
                            0 => assert!(written == moved && moved > 0, "{written} of {moved}"),
                            _ => assert_eq!((written, moved), (EINTR, 0)),
                        }
                        p.wait(0).await?;
                    }
                    for end in ends {
                        assert_eq!(p.call(3, &[end]).await?, 0);
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_wake_of_no_waiter_or_of_a_negative_number_wakes_one() {
    run(async |p| {
        const WAKE: u64 = 1;
        let word = p.call(9, &[0, 4096, 3, 0x21, u64::MAX, 0]).await? as u64;
        for _ in 0..3 {
            p.fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(202, &[word, 0, 0, 0]).await?, 0);
                    p.exit(0).await
                })
            })
            .await?;
        }
        p.pass(1000).await?;
        for (count, woken) in [(0, 1), (u64::from(u32::MAX), 1), (2, 1), (0, 0)] {
            assert_eq!(p.call(202, &[word, WAKE, count]).await?, woken, "{count}");
        }
        for _ in 0..3 {
            assert_eq!(p.wait(0).await?.1, 0);
        }
        Ok(())
    });
}

/// Sets or asks for (`command`) an exclusive lock of all of a file; returns the result.
async fn lock(p: &mut Program, file: u64, command: u64) -> Result<i64, Gone> {
    const EXCLUSIVE: u64 = 1;
    p.store(DATA + 0x200, &bytes(&[EXCLUSIVE, 0, 0, 0])).await?;
    p.call(72, &[file, command, DATA + 0x200]).await
}

const GET: u64 = 5;
const SET: u64 = 6;

#[test]
fn exec_releases_the_record_locks_of_the_files_that_it_closes() {
    const CLOSE: u64 = 0o2000000;
    let world = World::new();
    let program = world.code(|p| {
        Box::pin(async move {
            p.pass(2000).await?;
            p.exit(0).await
        })
    });
    world.install("/program", 0o755, &elf(program));
    let files = ["/kept", "/closed", "/again"];
    files.into_iter().for_each(|file| world.install(file, 0o644, b"text"));
    run_in(&world, async move |p| {
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    for (file, flags) in files.into_iter().zip([2, 2 | CLOSE, 2]) {
                        let path = p.string(DATA, file).await?;
                        let file = p.call(2, &[path, flags]).await? as u64;
                        assert_eq!(lock(p, file, SET).await?, 0);
                    }
                    // A second descriptor of a file, which exec closes, costs the file's lock, too.
                    let path = p.string(DATA, "/again").await?;
                    assert!(p.call(2, &[path, CLOSE]).await? >= 0);
                    let path = p.string(DATA, "/program").await?;
                    p.call(59, &[path, 0, 0]).await?;
                    panic!("exec returned");
                })
            })
            .await?;
        p.pass(1000).await?;
        let mut open = Vec::new();
        for file in files {
            let path = p.string(DATA, file).await?;
            open.push(p.call(2, &[path, 2]).await? as u64);
        }
        assert_eq!(lock(p, open[0], SET).await?, EAGAIN, "exec keeps it");
        assert_eq!(lock(p, open[0], GET).await?, 0);
        assert_eq!(i64::from(p.load_u32(DATA + 0x200 + 24).await?), child);
        assert_eq!(lock(p, open[1], SET).await?, 0);
        assert_eq!(lock(p, open[2], SET).await?, 0);
        assert_eq!(p.wait(0).await?.1, 0);
        assert_eq!(lock(p, open[0], SET).await?, 0, "its holder has ended");
        Ok(())
    });
}
