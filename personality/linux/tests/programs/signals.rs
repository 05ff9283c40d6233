//! Tests of signals, timers, jobs and terminals.

use crate::world::{self, DATA, Program, World};
use crate::{EAGAIN, EINTR, bytes, run, run_in};
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn a_handler_restarts_or_interrupts_the_call_as_its_flags_say() {
    run(async |p| {
        assert_eq!(p.call(22, &[DATA]).await?, 0);
        let count = Rc::new(RefCell::new(0));
        for (flags, expected) in [(0x1000_0000, 1), (0, EINTR)] {
            let seen = count.clone();
            p.handle(10, flags, move |p| {
                let seen = seen.clone();
                Box::pin(async move {
                    assert_eq!((p.state.rdi, p.state.rsp % 16), (10, 8));
                    // Calls in a handler do not change the registers of the interrupted code.
                    assert_eq!(p.call(39, &[]).await?, 1);
                    *seen.borrow_mut() += 1;
                    Ok(())
                })
            })
            .await?;
            p.fork(|p| {
                Box::pin(async move {
                    p.pass(1000).await?;
                    assert_eq!(p.call(62, &[1, 10]).await?, 0);
                    p.pass(1000).await?;
                    assert_eq!(p.call(1, &[1, DATA, 1]).await?, 1);
                    p.exit(0).await
                })
            })
            .await?;
            p.state.rbx = 77;
            assert_eq!(p.call(0, &[0, DATA + 8, 1]).await?, expected);
            assert_eq!(p.state.rbx, 77);
            assert_eq!(p.wait(0).await?.1, 0);
        }
        assert_eq!(*count.borrow(), 2);
        assert_eq!(p.call(0, &[0, DATA + 8, 1]).await?, 1, "the byte that was not read");
        Ok(())
    });
}

#[test]
fn a_fault_raises_a_signal_with_its_address() {
    let world = run(async |p| {
        let address = 0x6000_0000u64;
        p.handle(11, 4, move |p| {
            Box::pin(async move {
                // siginfo has SEGV_MAPERR and the address; the context has the address in CR2.
                let (information, context) = (p.state.rsi, p.state.rdx);
                assert_eq!((p.load_u32(information).await?, p.load_u32(information + 8).await?), (11, 1));
                assert_eq!(p.load_u64(information + 16).await?, address);
                assert_eq!(p.load_u64(context + 40 + 176).await?, address);
                let map = [address, 4096, 3, 0x32, u64::MAX, 0];
                assert_eq!(p.call(9, &map).await?, address as i64);
                Ok(())
            })
        })
        .await?;
        p.store(address, b"repaired").await?;
        assert_eq!(&p.load::<8>(address).await?, b"repaired");
        p.fork(|p| {
            Box::pin(async move {
                assert_eq!(p.call(13, &[11, 0, 0, 8]).await?, 0);
                let default = bytes(&[0, 0, 0, 0]);
                p.store(DATA, &default).await?;
                assert_eq!(p.call(13, &[11, DATA, 0, 8]).await?, 0);
                p.store(8, b"x").await
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?, (2, 11));
        Ok(())
    });
    assert!(
        world.log().iter().any(|line| line.contains("Segmentation fault") && line.contains("0x8")),
        "{:?}",
        world.log()
    );
}

#[test]
fn a_sleep_continues_after_a_stop_and_continue() {
    run(async |p| {
        p.fork(|p| {
            Box::pin(async move {
                p.store(DATA, &bytes(&[1, 0])).await?;
                // The process is stopped during its sleep, and then sleeps until the original time.
                assert_eq!(p.call(35, &[DATA, DATA + 16]).await?, 0);
                p.call(228, &[1, DATA]).await?;
                assert_eq!(p.load_u64(DATA).await?, 1);
                p.exit(0).await
            })
        })
        .await?;
        p.pass(1000).await?;
        assert_eq!(p.call(62, &[2, 19]).await?, 0);
        assert_eq!(p.wait(2).await?, (2, 0x137f));
        p.pass(1000).await?;
        assert_eq!(p.call(62, &[2, 18]).await?, 0);
        assert_eq!(p.wait(8).await?, (2, 0xffff));
        assert_eq!(p.wait(0).await?, (2, 0));
        Ok(())
    });
}

#[test]
fn an_interval_timer_interrupts_a_sleep() {
    run(async |p| {
        let alarms = Rc::new(RefCell::new(0));
        let seen = alarms.clone();
        p.handle(14, 0, move |_| {
            *seen.borrow_mut() += 1;
            Box::pin(async { Ok(()) })
        })
        .await?;
        // The timer expires every 100 ms.
        p.store(DATA, &bytes(&[0, 100_000, 0, 100_000])).await?;
        assert_eq!(p.call(38, &[0, DATA, 0]).await?, 0);
        for _ in 0..3 {
            assert_eq!(p.call(34, &[]).await?, EINTR);
        }
        p.store(DATA, &bytes(&[10, 0])).await?;
        assert_eq!(p.call(35, &[DATA, DATA + 16]).await?, EINTR);
        let left = p.load_u64(DATA + 16).await?;
        assert_eq!(left, 9, "what is left of the sleep");
        assert_eq!(*alarms.borrow(), 4);
        p.store(DATA, &bytes(&[0, 0, 0, 0])).await?;
        assert_eq!(p.call(38, &[0, DATA, 0]).await?, 0);
        Ok(())
    });
}

#[test]
fn signalfd_reads_signals_and_ppoll_admits_them_by_its_mask() {
    run(async |p| {
        p.store(DATA, &bytes(&[1 << 9])).await?;
        assert_eq!(p.call(14, &[0, DATA, 0, 8]).await?, 0);
        let signals = p.call(289, &[u64::MAX, DATA, 8, 0]).await? as u64;
        p.fork(|p| {
            Box::pin(async move {
                p.pass(1000).await?;
                assert_eq!(p.call(62, &[1, 10]).await?, 0);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.call(0, &[signals, DATA + 256, 1000]).await?, 128);
        assert_eq!((p.load_u32(DATA + 256).await?, p.load_u32(DATA + 256 + 12).await?), (10, 2));
        p.wait(0).await?;
        // The mask of ppoll admits the signal while the call waits, and only then.
        let seen = Rc::new(RefCell::new(0));
        let count = seen.clone();
        p.handle(10, 0x1000_0000, move |_| {
            *count.borrow_mut() += 1;
            Box::pin(async { Ok(()) })
        })
        .await?;
        assert_eq!(p.call(62, &[1, 10]).await?, 0);
        assert_eq!(*seen.borrow(), 0);
        p.store(DATA, &bytes(&[0])).await?;
        assert_eq!(p.call(271, &[0, 0, 0, DATA, 8]).await?, EINTR);
        assert_eq!(*seen.borrow(), 1);
        assert_eq!(p.call(14, &[0, 0, DATA, 8]).await?, 0);
        assert_eq!(p.load_u64(DATA).await?, 1 << 9, "the old mask is back");
        // sigtimedwait takes a blocked signal, too.
        assert_eq!(p.call(62, &[1, 10]).await?, 0);
        assert_eq!(p.call(128, &[DATA, DATA + 256, 0, 8]).await?, 10);
        p.store(DATA + 16, &bytes(&[0, 1000])).await?;
        assert_eq!(p.call(128, &[DATA, 0, DATA + 16, 8]).await?, EAGAIN);
        Ok(())
    });
}

#[test]
fn a_shell_controls_jobs_on_a_terminal() {
    let world = World::new();
    let terminal = world.install_terminal();
    run_in(&world, async move |p| {
        let keyboard = terminal.clone();
        p.fork(move |p| {
            let keyboard = keyboard.clone();
            Box::pin(async move { shell(p, &keyboard).await })
        })
        .await?;
        assert_eq!(p.wait(0).await?, (2, 0x900), "the shell reached its end");
        // The last job of the shell was left stopped in an orphaned group and got SIGHUP.
        assert_eq!(p.wait(0).await?, (4, 1));
        Ok(())
    });
}

async fn shell(p: &mut Program, keyboard: &unix::tty::Terminal) -> Result<(), world::Gone> {
    const TIOCGPGRP: u64 = 0x540f;
    const TIOCSPGRP: u64 = 0x5410;
    assert_eq!(p.call(112, &[]).await?, 2);
    let path = p.string(DATA, "/tty").await?;
    let tty = p.call(2, &[path, 2, 0]).await? as u64;
    assert_eq!(p.call(16, &[tty, TIOCGPGRP, DATA]).await?, 0);
    assert_eq!(p.load_u32(DATA).await?, 2, "opening made it the controlling terminal");
    assert_eq!(p.call(16, &[tty, 0x5413, DATA]).await?, 0);
    assert_eq!(p.call(16, &[77, 0x5413, DATA + 8]).await?, -9);
    // The shell ignores the signals that stop a background process.
    for signal in [20, 21, 22] {
        p.store(DATA, &bytes(&[1, 0, 0, 0])).await?;
        assert_eq!(p.call(13, &[signal, DATA, 0, 8]).await?, 0);
    }
    // A job in the foreground is interrupted by ^C.
    let job = p.fork(move |p| Box::pin(async move { foreground_job(p, tty).await })).await? as u64;
    p.call(109, &[job, job]).await?;
    p.store(DATA, &(job as u32).to_le_bytes()).await?;
    assert_eq!(p.call(16, &[tty, TIOCSPGRP, DATA]).await?, 0);
    p.pass(10_000).await?;
    let now = std::time::Duration::from_secs(1);
    keyboard.receive(b"line\n", now);
    p.pass(10_000).await?;
    keyboard.receive(b"\x1a", now);
    assert_eq!(p.wait(2).await?, (job as i64, 0x147f), "stopped by ^Z");
    p.store(DATA, &2u32.to_le_bytes()).await?;
    assert_eq!(p.call(16, &[tty, TIOCSPGRP, DATA]).await?, 0);
    assert_eq!(p.call(62, &[(-(job as i64)) as u64, 18]).await?, 0);
    assert_eq!(p.wait(2).await?, (job as i64, 0x157f), "stopped, because it reads in the background");
    p.store(DATA, &(job as u32).to_le_bytes()).await?;
    assert_eq!(p.call(16, &[tty, TIOCSPGRP, DATA]).await?, 0);
    assert_eq!(p.call(62, &[(-(job as i64)) as u64, 18]).await?, 0);
    p.pass(10_000).await?;
    keyboard.receive(b"\x03", now);
    assert_eq!(p.wait(2).await?, (job as i64, 2), "interrupted by ^C");
    // Another job is stopped when the shell ends.
    let last = p
        .fork(|p| {
            Box::pin(async move {
                p.call(109, &[0, 0]).await?;
                for signal in [20, 21, 22] {
                    p.store(DATA, &bytes(&[0, 0, 0, 0])).await?;
                    assert_eq!(p.call(13, &[signal, DATA, 0, 8]).await?, 0);
                }
                p.call(62, &[0, 20]).await?;
                p.call(34, &[]).await?;
                panic!("it went on");
            })
        })
        .await?;
    assert_eq!(p.wait(2).await?, (last, 0x147f));
    p.exit(9).await
}

/// Reads lines of the terminal until a signal ends the process.
async fn foreground_job(p: &mut Program, tty: u64) -> Result<(), world::Gone> {
    p.call(109, &[0, 0]).await?;
    for signal in [20, 21, 22] {
        p.store(DATA, &bytes(&[0, 0, 0, 0])).await?;
        assert_eq!(p.call(13, &[signal, DATA, 0, 8]).await?, 0);
    }
    p.pass(5000).await?;
    assert_eq!(p.call(0, &[tty, DATA, 100]).await?, 5);
    assert_eq!(&p.load::<5>(DATA).await?, b"line\n");
    loop {
        p.call(0, &[tty, DATA, 100]).await?;
    }
}
