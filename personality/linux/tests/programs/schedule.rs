//! Scheduling policies, priorities and nice values, by calls.

use super::{bytes, run, run_in};
use crate::world::{DATA, World};

const EINVAL: i64 = -22;
const EPERM: i64 = -1;

const SETPRIORITY: u64 = 141;
const SETPARAM: u64 = 142;
const GETPARAM: u64 = 143;
const SETSCHEDULER: u64 = 144;
const GETSCHEDULER: u64 = 145;
const INTERVAL: u64 = 148;
const IOPRIO_SET: u64 = 251;
const IOPRIO_GET: u64 = 252;
const SETATTR: u64 = 314;
const GETATTR: u64 = 315;

#[test]
fn a_policy_and_its_priority_are_set_and_inherited() {
    run(async |p| {
        p.store(DATA, &bytes(&[0])).await?;
        p.store(DATA + 8, &bytes(&[10])).await?;
        p.store(DATA + 16, &bytes(&[100])).await?;
        let (none, ten, hundred) = (DATA, DATA + 8, DATA + 16);
        assert_eq!(p.call(GETSCHEDULER, &[0]).await?, 0);
        assert_eq!(p.call(INTERVAL, &[0, DATA + 0x40]).await?, 0);
        assert_eq!(p.load_u64(DATA + 0x48).await?, 10_000_000);
        assert_eq!(p.call(SETSCHEDULER, &[0, 1, none]).await?, EINVAL);
        assert_eq!(p.call(SETSCHEDULER, &[0, 0, ten]).await?, EINVAL);
        assert_eq!(p.call(SETSCHEDULER, &[0, 1, hundred]).await?, EINVAL);
        assert_eq!(p.call(SETSCHEDULER, &[0, 6, ten]).await?, EINVAL, "SCHED_DEADLINE");
        assert_eq!(p.call(SETSCHEDULER, &[0, 2, ten]).await?, 0, "SCHED_RR");
        assert_eq!(p.call(GETSCHEDULER, &[0]).await?, 2);
        assert_eq!(p.call(GETPARAM, &[0, DATA + 0x40]).await?, 0);
        assert_eq!(p.load_u32(DATA + 0x40).await?, 10);
        assert_eq!(p.call(INTERVAL, &[0, DATA + 0x40]).await?, 0);
        assert_eq!(p.load_u64(DATA + 0x48).await?, 100_000_000);
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(GETSCHEDULER, &[0]).await?, 2);
                    // Without privilege and with RLIMIT_RTPRIO 0, real time can only be left.
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    p.store(DATA, &bytes(&[11])).await?;
                    assert_eq!(p.call(SETPARAM, &[0, DATA]).await?, EPERM);
                    p.store(DATA, &bytes(&[9])).await?;
                    assert_eq!(p.call(SETPARAM, &[0, DATA]).await?, 0);
                    p.store(DATA, &bytes(&[0])).await?;
                    assert_eq!(p.call(SETSCHEDULER, &[0, 3, DATA]).await?, 0);
                    p.store(DATA, &bytes(&[1])).await?;
                    assert_eq!(p.call(SETSCHEDULER, &[0, 1, DATA]).await?, EPERM);
                    let parent = p.call(110, &[]).await? as u64;
                    p.store(DATA, &bytes(&[0])).await?;
                    assert_eq!(p.call(SETSCHEDULER, &[parent, 0, DATA]).await?, EPERM);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        // SCHED_RESET_ON_FORK.
        assert_eq!(p.call(SETSCHEDULER, &[0, 0x4000_0001, ten]).await?, 0);
        assert_eq!(p.call(GETSCHEDULER, &[0]).await?, 0x4000_0001);
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(GETSCHEDULER, &[0]).await?, 0);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        Ok(())
    });
}

#[test]
fn attributes_of_scheduling_have_a_size_and_a_nice_value() {
    run(async |p| {
        let at = DATA + 0x100;
        assert_eq!(p.call(GETATTR, &[0, at, 47, 0]).await?, EINVAL);
        assert_eq!(p.call(GETATTR, &[0, at, 56, 0]).await?, 0);
        assert_eq!(p.load_u64(at).await?, 56, "SCHED_OTHER");
        let attributes = |policy: u64, flags, nice: i32, priority: u64| {
            bytes(&[48 | policy << 32, flags, u64::from(nice as u32) | priority << 32, 0, 0, 0, 0])
        };
        p.store(at, &attributes(3, 0, 5, 0)).await?;
        assert_eq!(p.call(SETATTR, &[0, at, 0]).await?, 0);
        assert_eq!(p.call(140, &[0, 0]).await?, 15, "the nice value is 5");
        p.store(at, &attributes(1, 0, 0, 7)).await?;
        assert_eq!(p.call(SETATTR, &[0, at, 1]).await?, EINVAL);
        assert_eq!(p.call(SETATTR, &[0, at, 0]).await?, 0);
        assert_eq!(p.call(GETATTR, &[0, at, 48, 0]).await?, 0);
        assert_eq!((p.load_u64(at).await?, p.load_u32(at + 20).await?), (48 | 1 << 32, 7));
        p.store(at, &attributes(6, 0, 0, 0)).await?;
        assert_eq!(p.call(SETATTR, &[0, at, 0]).await?, EINVAL);
        p.store(at, &bytes(&[64, 0, 0, 0, 0, 0, 0, 1])).await?;
        assert_eq!(p.call(SETATTR, &[0, at, 0]).await?, -7, "larger than is known");
        assert_eq!(p.load_u32(at).await?, 56);
        // Nice values.
        assert_eq!(p.call(SETPRIORITY, &[0, 0, -5i64 as u64]).await?, 0);
        p.store(at, &attributes(0, 0, 0, 0)).await?;
        assert_eq!(p.call(SETATTR, &[0, at, 0]).await?, 0);
        assert_eq!(p.call(105, &[1000]).await?, 0);
        p.store(at, &attributes(0, 0, -1, 0)).await?;
        assert_eq!(p.call(SETATTR, &[0, at, 0]).await?, EPERM);
        Ok(())
    });
}

#[test]
fn timed_waits_may_be_longer_by_the_timer_slack() {
    let world = World::new();
    let clock = world.clone();
    run_in(&world, async move |p| {
        assert_eq!(p.call(157, &[30]).await?, 50_000);
        p.store(DATA, &bytes(&[0, 10_000])).await?;
        let begin = clock.now();
        assert_eq!(p.call(35, &[DATA, 0]).await?, 0, "nanosleep of 10 us");
        assert!(clock.now() >= begin + 60, "it slept for {}", clock.now() - begin);
        assert_eq!(p.call(157, &[29, 1]).await?, 0);
        let begin = clock.now();
        assert_eq!(p.call(35, &[DATA, 0]).await?, 0);
        assert!(clock.now() < begin + 60, "it slept for {}", clock.now() - begin);
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(157, &[30]).await?, 1);
                    assert_eq!(p.call(157, &[29, 7000]).await?, 0);
                    assert_eq!(p.call(157, &[29, 0]).await?, 0);
                    assert_eq!(p.call(157, &[30]).await?, 1, "that with which it began");
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        assert_eq!(p.call(157, &[29, 0]).await?, 0);
        assert_eq!(p.call(157, &[30]).await?, 50_000);
        Ok(())
    });
}

#[test]
fn priorities_of_input_and_output_are_kept() {
    run(async |p| {
        assert_eq!(p.call(IOPRIO_GET, &[1, 0]).await?, 0);
        assert_eq!(p.call(IOPRIO_SET, &[1, 0, 2 << 13 | 8]).await?, EINVAL);
        assert_eq!(p.call(IOPRIO_SET, &[4, 0, 2 << 13]).await?, EINVAL);
        assert_eq!(p.call(IOPRIO_SET, &[1, 99, 2 << 13]).await?, -3);
        assert_eq!(p.call(IOPRIO_SET, &[1, 0, 2 << 13 | 6]).await?, 0);
        assert_eq!(p.call(IOPRIO_GET, &[1, 0]).await?, 2 << 13 | 6);
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(IOPRIO_GET, &[1, 0]).await?, 2 << 13 | 6);
                    assert_eq!(p.call(IOPRIO_SET, &[2, 0, 1 << 13 | 3]).await?, 0, "for the group");
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    assert_eq!(p.call(IOPRIO_SET, &[1, 0, 1 << 13]).await?, EPERM);
                    assert_eq!(p.call(IOPRIO_SET, &[1, 0, 3 << 13]).await?, 0);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        assert_eq!(p.call(IOPRIO_GET, &[1, 0]).await?, 1 << 13 | 3);
        Ok(())
    });
}
