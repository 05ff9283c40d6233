//! Filters of system calls: seccomp(2) and prctl(PR_SET_SECCOMP).

use super::{bytes, run_in};
use crate::world::{DATA, Gone, Program, World};

const EACCES: i64 = -13;
const EINVAL: i64 = -22;
const PRCTL: u64 = 157;
const SECCOMP: u64 = 317;
const GETPID: u64 = 39;
const GETUID: u64 = 102;
const ALLOW: u32 = 0x7fff_0000;

/// A filter at [`DATA`] that returns `value` for call `number` and allows others: the address of
/// its struct sock_fprog.
async fn filter(p: &mut Program, number: u64, value: u32) -> Result<u64, Gone> {
    let code = |code: u16, skip: u16, operand: u32| {
        u64::from(code) | u64::from(skip) << 16 | u64::from(operand) << 32
    };
    let program = [code(0x20, 0, 0), code(0x15, 0x100, number as u32), code(6, 0, value), code(6, 0, ALLOW)];
    p.store(DATA, &bytes(&program)).await?;
    p.store(DATA + 64, &bytes(&[program.len() as u64, DATA])).await?;
    Ok(DATA + 64)
}

#[test]
fn a_filter_decides_about_calls_and_is_inherited() {
    run_in(&World::new(), async |p| {
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    let program = filter(p, GETUID, 0x0005_0000 | 7).await?;
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    assert_eq!(p.call(SECCOMP, &[1, 0, program]).await?, EACCES);
                    assert_eq!(p.call(PRCTL, &[38, 1, 0, 0, 0]).await?, 0);
                    assert_eq!(p.call(SECCOMP, &[1, 0, DATA + 0x3000]).await?, EINVAL, "no program");
                    assert_eq!(p.call(SECCOMP, &[1, 0, program]).await?, 0);
                    assert_eq!(p.call(GETUID, &[]).await?, -7);
                    assert_eq!(p.call(PRCTL, &[21, 0]).await?, 2);
                    let program = filter(p, GETPID, 0x0005_0000 | 9).await?;
                    assert_eq!(p.call(PRCTL, &[22, 2, program]).await?, 0);
                    let child = p
                        .fork(|p| {
                            Box::pin(async move {
                                assert_eq!(p.call(GETUID, &[]).await?, -7);
                                assert_eq!(p.call(GETPID, &[]).await?, -9);
                                assert_eq!(p.call(186, &[]).await?, 3, "gettid");
                                p.exit(4).await
                            })
                        })
                        .await?;
                    assert_eq!(p.wait(0).await?, (child, 4 << 8));
                    p.exit(5).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 5 << 8));
        Ok(())
    });
}

#[test]
fn calls_that_are_not_allowed_end_the_process_or_raise_a_signal() {
    for (value, expected) in [(0x8000_0000_u32, 31), (0, 31), (0x0003_0000, 31)] {
        run_in(&World::new(), async move |p| {
            let child = p
                .fork(move |p| {
                    Box::pin(async move {
                        let program = filter(p, GETUID, value).await?;
                        assert_eq!(p.call(SECCOMP, &[1, 0, program]).await?, 0);
                        p.call(GETUID, &[]).await?;
                        panic!("it goes on");
                    })
                })
                .await?;
            assert_eq!(p.wait(0).await?, (child, expected));
            Ok(())
        });
    }
}

#[test]
fn strict_mode_allows_four_calls() {
    run_in(&World::new(), async |p| {
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    assert_eq!(p.call(SECCOMP, &[0, 0, 0]).await?, 0);
                    assert_eq!(p.call(0, &[77, DATA, 1]).await?, -9, "read");
                    p.call(GETPID, &[]).await?;
                    panic!("it goes on");
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 9));
        Ok(())
    });
}

#[test]
fn a_tracer_decides_where_a_filter_asks_it() {
    run_in(&World::new(), async |p| {
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    assert_eq!(p.call(101, &[0, 0, 0, 0]).await?, 0);
                    let own = p.call(GETPID, &[]).await? as u64;
                    p.call(62, &[own, 19]).await?;
                    let program = filter(p, GETUID, 0x7ff0_0000 | 55).await?;
                    assert_eq!(p.call(SECCOMP, &[1, 0, program]).await?, 0);
                    let status = p.call(GETUID, &[]).await? as u64;
                    p.exit(status).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0x137f));
        let tracee = child as u64;
        assert_eq!(p.call(101, &[0x4200, tracee, 0, 0x80]).await?, 0);
        assert_eq!(p.call(101, &[7, tracee, 0, 0]).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0x7_057f));
        assert_eq!(p.call(101, &[0x4201, tracee, 0, DATA]).await?, 0);
        assert_eq!(p.load_u64(DATA).await?, 55);
        // The tracer makes up the result.
        assert_eq!(p.call(101, &[6, tracee, 8 * 15, u64::MAX]).await?, 0);
        assert_eq!(p.call(101, &[6, tracee, 8 * 10, 33]).await?, 0);
        assert_eq!(p.call(101, &[7, tracee, 0, 0]).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 33 << 8));
        Ok(())
    });
}
