//! Tests of what happens when memory runs out: which process is ended, and that the others only
//! wait.

use crate::run_in;
use crate::world::{DATA, Gone, Program, World};
use std::rc::Rc;

const FRAMES: u32 = 600;
/// How many pages are free when a test begins to be short of memory.
const LEFT: u64 = 12;
const KILLED: u32 = 9;

const PAUSE: u64 = 34;
const PRCTL: u64 = 157;
const SET_DUMPABLE: u64 = 4;
const SECOND: u64 = 1_000_000;

fn world() -> Rc<World> {
    let world = World::with_frames(FRAMES);
    world.install_proc();
    world
}

/// Takes all memory except for `LEFT` pages.
async fn take_most(p: &mut Program) -> Result<(), Gone> {
    let pages = u64::from(p.world.free_frames()) - LEFT;
    p.take(pages).await
}

/// Blocks until a signal ends the process.
async fn block(p: &mut Program) -> Result<(), Gone> {
    p.call(PAUSE, &[]).await?;
    unreachable!("it was killed");
}

/// Makes a child that takes all memory except for `LEFT` pages, and blocks.
async fn hold_most(p: &mut Program) -> Result<i64, Gone> {
    let holder = p
        .fork(|p| {
            Box::pin(async move {
                take_most(p).await?;
                block(p).await
            })
        })
        .await?;
    p.pass(SECOND).await?;
    Ok(holder)
}

/// Makes a child that takes a little more memory than is free.
async fn take_more(p: &mut Program) -> Result<i64, Gone> {
    p.fork(|p| {
        Box::pin(async move {
            p.take(4 * LEFT).await?;
            p.exit(0).await
        })
    })
    .await
}

/// Writes `text` to /proc/self/oom_score_adj; returns the result of the call.
async fn set_adjustment(p: &mut Program, text: &str) -> Result<i64, Gone> {
    let path = p.string(DATA + 0x100, "/proc/self/oom_score_adj").await?;
    let file = p.call(2, &[path, 1]).await?;
    assert!(file >= 0, "{file}");
    p.string(DATA + 0x100, text).await?;
    let written = p.call(1, &[file as u64, DATA + 0x100, text.len() as u64]).await?;
    assert_eq!(p.call(3, &[file as u64]).await?, 0);
    Ok(written)
}

/// The oom_score of a process.
async fn score(p: &mut Program, pid: &str) -> Result<u64, Gone> {
    let path = p.string(DATA + 0x100, &format!("/proc/{pid}/oom_score")).await?;
    let file = p.call(2, &[path, 0]).await? as u64;
    let length = p.call(0, &[file, DATA + 0x200, 16]).await?;
    assert!(length > 1, "{length}");
    assert_eq!(p.call(3, &[file]).await?, 0);
    let text: [u8; 16] = p.load(DATA + 0x200).await?;
    Ok(std::str::from_utf8(&text[..length as usize - 1]).unwrap().parse().unwrap())
}

/// Waits for `children`; returns their ids and statuses, in the order in which they ended.
async fn wait_for(p: &mut Program, children: usize) -> Result<Vec<(i64, u32)>, Gone> {
    let mut ended = Vec::new();
    for _ in 0..children {
        ended.push(p.wait(0).await?);
    }
    Ok(ended)
}

fn choices(world: &World) -> Vec<String> {
    world.log().into_iter().filter(|line| line.contains("memory")).collect()
}

#[test]
fn the_largest_process_ends_when_another_needs_memory() {
    let world = world();
    run_in(&world, async |p| {
        let holder = hold_most(p).await?;
        for _ in 0..3 {
            take_more(p).await?;
        }
        let ended = wait_for(p, 4).await?;
        let killed: Vec<_> = ended.into_iter().filter(|(_, status)| *status != 0).collect();
        assert_eq!(killed, [(holder, KILLED)]);
        assert!(p.world.now() < 10 * SECOND, "no process waited for a time to pass");
        Ok(())
    });
    let lines = choices(&world);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("out of memory: killed process 2 (init), "), "{lines:?}");
}

#[test]
fn a_process_that_takes_all_memory_ends_in_any_call() {
    let world = world();
    run_in(&world, async |p| {
        for _ in 0..3 {
            // When the thread ends, a word has to be cleared in a page that is not resident yet.
            // That must not wait for memory either.
            let child = p
                .fork(|p| {
                    Box::pin(async move {
                        let untouched = p.call(9, &[0, 4096, 3, 0x22, u64::MAX, 0]).await?;
                        p.call(218, &[untouched as u64]).await?;
                        loop {
                            p.take(1).await?;
                        }
                    })
                })
                .await?;
            assert_eq!(p.wait(0).await?, (child, KILLED));
            // Copies of the server wait for memory as page faults do.
            let (holder, zeros) = (hold_most(p).await?, 4 * LEFT * 4096);
            assert_eq!(p.call(293, &[DATA, 0o4000]).await?, 0);
            let (reader, writer) = (p.load_u32(DATA).await?.into(), p.load_u32(DATA + 4).await?.into());
            let memory = p.call(9, &[0, zeros, 3, 0x22, u64::MAX, 0]).await? as u64;
            for page in 0..4 * LEFT {
                assert_eq!(p.call(1, &[writer, DATA, 8]).await?, 8);
                assert_eq!(p.call(0, &[reader, memory + page * 4096, 8]).await?, 8);
            }
            assert_eq!(p.wait(0).await?, (holder, KILLED));
            for (number, arguments) in [(11, [memory, zeros]), (3, [reader, 0]), (3, [writer, 0])] {
                assert_eq!(p.call(number, &arguments).await?, 0);
            }
        }
        assert!(p.world.now() < 10 * SECOND, "no process waited for a time to pass");
        Ok(())
    });
    assert_eq!(choices(&world).len(), 6);
}

#[test]
fn the_adjustment_changes_the_choice_and_minus_1000_prevents_it() {
    let world = world();
    run_in(&world, async |p| {
        let small = p
            .fork(|p| {
                Box::pin(async move {
                    p.take(4 * LEFT).await?;
                    assert_eq!(set_adjustment(p, "1000\n").await?, 5);
                    block(p).await
                })
            })
            .await?;
        let big = p
            .fork(|p| {
                Box::pin(async move {
                    assert_eq!(set_adjustment(p, "-1000").await?, 5);
                    p.pass(SECOND).await?;
                    take_most(p).await?;
                    p.take(2 * LEFT).await?;
                    p.pass(SECOND).await?;
                    // No other process is left that may be ended: this one has to end.
                    loop {
                        p.take(1).await?;
                    }
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (small, KILLED));
        assert_eq!(p.wait(0).await?, (big, KILLED));
        Ok(())
    });
    let lines = choices(&world);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("out of memory: killed process 2"), "{lines:?}");
    assert!(lines[1].contains("process 3: killed, because memory ran out"), "{lines:?}");
}

#[test]
fn another_process_is_chosen_if_the_first_frees_no_memory() {
    let world = world();
    run_in(&world, async |p| {
        // Two processes share all their memory; the end of the first of them frees nothing.
        let first = p
            .fork(|p| {
                Box::pin(async move {
                    take_most(p).await?;
                    p.fork(|p| Box::pin(block(p))).await?;
                    block(p).await
                })
            })
            .await?;
        p.pass(SECOND).await?;
        let taker = take_more(p).await?;
        let mut ended = wait_for(p, 3).await?;
        ended.sort_unstable();
        assert_eq!(ended, [(first, KILLED), (first + 1, KILLED), (taker, 0)]);
        Ok(())
    });
    assert_eq!(choices(&world).len(), 2);
}

#[test]
fn a_chosen_process_is_waited_for_only_a_limited_time() {
    let world = world();
    run_in(&world, async |p| {
        let deaf = p
            .fork(|p| {
                Box::pin(async move {
                    take_most(p).await?;
                    p.compute(1000 * SECOND).await;
                    p.check_recall().await?;
                    unreachable!("it was killed");
                })
            })
            .await?;
        p.pass(SECOND).await?;
        let next = p
            .fork(|p| {
                Box::pin(async move {
                    p.take(4 * LEFT).await?;
                    unreachable!("it was killed");
                })
            })
            .await?;
        // The largest process was waited for, and then the next one was chosen.
        assert_eq!(p.wait(0).await?, (next, KILLED));
        assert!(p.world.now() < 100 * SECOND);
        assert_eq!(p.wait(0).await?, (deaf, KILLED));
        Ok(())
    });
    assert_eq!(choices(&world).len(), 2);
}

#[test]
fn processes_that_share_memory_are_ended_together() {
    let world = world();
    run_in(&world, async |p| {
        let parent = p
            .fork(|p| {
                Box::pin(async move {
                    take_most(p).await?;
                    // The child shares its parent's memory until it executes a program.
                    p.spawn(58, &[], |p| Box::pin(block(p))).await?;
                    unreachable!("it was killed");
                })
            })
            .await?;
        p.pass(SECOND).await?;
        p.take(4 * LEFT).await?;
        let mut ended = wait_for(p, 2).await?;
        ended.sort_unstable();
        assert_eq!(ended, [(parent, KILLED), (parent + 1, KILLED)]);
        assert!(p.world.now() < 10 * SECOND, "no process waited for a time to pass");
        Ok(())
    });
    assert_eq!(choices(&world).len(), 2);
}

#[test]
fn the_oom_score_depends_on_size_and_adjustment() {
    const EACCES: i64 = -13;
    const EINVAL: i64 = -22;
    let world = world();
    run_in(&world, async |p| {
        assert_eq!(score(p, "1").await?, 0, "the first process is never ended");
        p.fork(|p| {
            Box::pin(async move {
                let small = score(p, "self").await?;
                p.take(u64::from(FRAMES) / 2).await?;
                // The score rises by two thirds of the adjustment.
                let more = score(p, "self").await? - small;
                assert!(small >= 666 && (330..=334).contains(&more), "{small}, {more}");
                for (text, result) in
                    [("1001", EINVAL), ("-1001", EINVAL), ("much", EINVAL), ("-500", 4), ("100", 3)]
                {
                    assert_eq!(set_adjustment(p, text).await?, result, "{text}");
                }
                assert_eq!(set_adjustment(p, "-1000").await?, 5);
                assert_eq!(score(p, "self").await?, 0);
                assert_eq!(set_adjustment(p, " 500\n").await?, 5);
                assert!(score(p, "self").await? > 1300);
                // A process that has lost the privilege to lower the value can raise it, and lower
                // it again to its value at that time.
                assert_eq!(p.call(105, &[1000]).await?, 0);
                // The files of the process belong to the superuser until it makes itself dumpable
                // again.
                let path = p.string(DATA + 0x100, "/proc/self/oom_score_adj").await?;
                assert_eq!(p.call(2, &[path, 1]).await?, EACCES);
                assert_eq!(p.call(PRCTL, &[SET_DUMPABLE, 1]).await?, 0);
                for (text, result) in [("499", EACCES), ("900", 3), ("500", 3), ("0", EACCES)] {
                    assert_eq!(set_adjustment(p, text).await?, result, "{text}");
                }
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}
