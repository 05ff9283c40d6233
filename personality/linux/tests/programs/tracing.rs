//! ptrace(2), process_vm_readv(2) and kcmp(2): a tracer and its tracees.

use super::run_in;
use crate::world::{DATA, Gone, Program, World};

const ESRCH: i64 = -3;
const EPERM: i64 = -1;
const EIO: i64 = -5;
const ECHILD: i64 = -10;

const TRACEME: u64 = 0;
const PEEKDATA: u64 = 2;
const PEEKUSER: u64 = 3;
const POKEDATA: u64 = 5;
const POKEUSER: u64 = 6;
const CONT: u64 = 7;
const GETREGS: u64 = 12;
const SETREGS: u64 = 13;
const ATTACH: u64 = 16;
const DETACH: u64 = 17;
const SYSCALL: u64 = 24;
const SETOPTIONS: u64 = 0x4200;
const GETEVENTMSG: u64 = 0x4201;
const GETSIGINFO: u64 = 0x4202;
const GETREGSET: u64 = 0x4204;
const SEIZE: u64 = 0x4206;
const INTERRUPT: u64 = 0x4207;
const LISTEN: u64 = 0x4208;
const GET_SYSCALL_INFO: u64 = 0x420e;

const STOP: u64 = 19;
const CONTINUE: u64 = 18;
const USR1: u64 = 10;
const WALL: u64 = 0x4000_0000;

/// Where tracers have what ptrace writes.
const AREA: u64 = DATA + 0x4000;

async fn ptrace(p: &mut Program, request: u64, tid: i64, address: u64, data: u64) -> Result<i64, Gone> {
    p.call(101, &[request, tid as u64, address, data]).await
}

/// Waits for a stop or the end of any tracee; returns its id and the status.
async fn wait(p: &mut Program) -> Result<(i64, u32), Gone> {
    p.wait(WALL).await
}

/// The word of struct user at this index.
async fn user(p: &mut Program, tid: i64, index: u64) -> Result<u64, Gone> {
    assert_eq!(ptrace(p, PEEKUSER, tid, 8 * index, AREA).await?, 0);
    p.load_u64(AREA).await
}

const RAX: u64 = 10;
const RDI: u64 = 14;
const CALL: u64 = 15;

/// A child that asks to be traced, stops, sends itself a signal, and exits.
async fn start(p: &mut Program) -> Result<i64, Gone> {
    let child = p
        .fork(|p| {
            Box::pin(async move {
                assert_eq!(ptrace(p, TRACEME, 0, 0, 0).await?, 0);
                let own = p.call(39, &[]).await? as u64;
                p.call(62, &[own, STOP]).await?;
                p.store(DATA, b"own data").await?;
                p.call(62, &[own, USR1]).await?;
                let status = p.call(102, &[]).await? as u64;
                p.exit(status + 7).await
            })
        })
        .await?;
    assert_eq!(wait(p).await?, (child, 0x137f));
    Ok(child)
}

#[test]
fn a_tracer_sees_and_suppresses_signals_and_reads_and_writes_memory_and_registers() {
    run_in(&World::new(), async |p| {
        let child = start(p).await?;
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        assert_eq!(wait(p).await?, (child, 0xa7f), "the signal is reported before it ends the child");
        assert_eq!(ptrace(p, GETSIGINFO, child, 0, AREA).await?, 0);
        assert_eq!((p.load_u32(AREA).await?, p.load_u32(AREA + 8).await?), (10, 0));
        assert_eq!(p.load_u32(AREA + 16).await?, child as u32, "the child sent it itself");
        assert_eq!(ptrace(p, PEEKDATA, child, DATA, AREA).await?, 0);
        assert_eq!(&p.load::<8>(AREA).await?, b"own data");
        assert_eq!(ptrace(p, POKEDATA, child, DATA, u64::from_le_bytes(*b"poked it")).await?, 0);
        // Text is private, too: a breakpoint changes the tracee alone.
        assert_eq!(ptrace(p, POKEDATA, child, 0x40_0800, 0xcc).await?, 0);
        assert_eq!(ptrace(p, PEEKDATA, child, 0x40_0800, AREA).await?, 0);
        assert_eq!(p.load_u64(AREA).await?, 0xcc);
        assert_ne!(p.load_u64(0x40_0800).await?, 0xcc);
        assert_eq!(ptrace(p, PEEKDATA, child, 8, AREA).await?, EIO);
        assert_eq!(ptrace(p, POKEDATA, child, 8, 1).await?, EIO);
        assert_eq!(ptrace(p, GETREGS, child, 0, AREA).await?, 0);
        assert_eq!(p.load_u64(AREA + 8 * 17).await?, 0x33, "the code segment");
        assert_eq!(ptrace(p, SETREGS, child, 0, AREA).await?, 0);
        p.store(AREA + 8 * 16, &(1u64 << 60).to_le_bytes()).await?;
        assert_eq!(ptrace(p, SETREGS, child, 0, AREA).await?, EIO, "no address of a program");
        assert_eq!(ptrace(p, POKEUSER, child, 3, 1).await?, EIO);
        p.store(AREA, &[AREA + 64, 4096].map(u64::to_le_bytes).concat()).await?;
        assert_eq!(ptrace(p, GETREGSET, child, 0x202, AREA).await?, 0);
        assert_eq!(p.load_u64(AREA + 8).await?, 832);
        assert_eq!(p.load_u64(AREA + 64 + 464).await?, 7, "x87, SSE and AVX");
        p.store(AREA, &[AREA + 64, 4096].map(u64::to_le_bytes).concat()).await?;
        assert_eq!(ptrace(p, GETREGSET, child, 1, AREA).await?, 0);
        assert_eq!(p.load_u64(AREA + 8).await?, 216);
        assert_eq!(ptrace(p, GETREGSET, child, 0x999, AREA).await?, -22);
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        assert_eq!(wait(p).await?, (child, 7 << 8), "the signal was suppressed");
        assert_eq!(wait(p).await?.0, ECHILD);
        Ok(())
    });
}

#[test]
fn stops_at_calls_show_and_change_the_call() {
    run_in(&World::new(), async |p| {
        let child = start(p).await?;
        assert_eq!(ptrace(p, SETOPTIONS, child, 0, 1).await?, 0);
        assert_eq!(ptrace(p, SETOPTIONS, child, 0, 1 << 30).await?, -22);
        assert_eq!(ptrace(p, SYSCALL, child, 0, 0).await?, 0);
        // The signal is sent: entry, the signal, then the exit.
        assert_eq!(wait(p).await?, (child, 0x857f));
        assert_eq!((user(p, child, CALL).await?, user(p, child, RAX).await? as i64), (62, -38));
        assert_eq!(ptrace(p, GET_SYSCALL_INFO, child, 88, AREA).await?, 80);
        let info: [u8; 80] = p.load(AREA).await?;
        assert_eq!((info[0], &info[4..8]), (1, &[0x3e, 0, 0, 0xc0][..]));
        assert_eq!(u64::from_le_bytes(info[24..32].try_into().unwrap()), 62);
        // Another signal is sent instead.
        assert_eq!(ptrace(p, POKEUSER, child, 8 * (RDI - 1), 12).await?, 0);
        assert_eq!(ptrace(p, SYSCALL, child, 0, 0).await?, 0);
        assert_eq!(wait(p).await?, (child, 0x857f));
        assert_eq!(user(p, child, RAX).await?, 0);
        assert_eq!(ptrace(p, GET_SYSCALL_INFO, child, 88, AREA).await?, 33);
        assert_eq!(ptrace(p, SYSCALL, child, 0, 0).await?, 0);
        assert_eq!(wait(p).await?, (child, 0xc7f), "SIGUSR2");
        assert_eq!(ptrace(p, SYSCALL, child, 0, 0).await?, 0);
        // getuid is replaced by no call, with a result that the tracer makes up.
        assert_eq!(wait(p).await?, (child, 0x857f));
        assert_eq!(user(p, child, CALL).await?, 102);
        assert_eq!(ptrace(p, POKEUSER, child, 8 * CALL, u64::MAX).await?, 0);
        assert_eq!(ptrace(p, POKEUSER, child, 8 * RAX, 30).await?, 0);
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        assert_eq!(wait(p).await?, (child, 37 << 8));
        Ok(())
    });
}

#[test]
fn children_of_tracees_are_traced_and_events_are_reported() {
    run_in(&World::new(), async |p| {
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    assert_eq!(ptrace(p, TRACEME, 0, 0, 0).await?, 0);
                    let own = p.call(39, &[]).await? as u64;
                    p.call(62, &[own, STOP]).await?;
                    let child = p.fork(|p| Box::pin(async move { p.exit(3).await })).await?;
                    assert_eq!(p.wait(0).await?, (child, 3 << 8));
                    p.exit(4).await
                })
            })
            .await?;
        assert_eq!(wait(p).await?, (child, 0x137f));
        // TRACEFORK and TRACEEXIT.
        assert_eq!(ptrace(p, SETOPTIONS, child, 0, 0x42).await?, 0);
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        let mut grandchild = 0;
        let mut seen = Vec::new();
        for _ in 0..2 {
            let (tid, status) = wait(p).await?;
            seen.push(status);
            if tid == child {
                assert_eq!(ptrace(p, GETEVENTMSG, child, 0, AREA).await?, 0);
                grandchild = p.load_u64(AREA).await? as i64;
            }
        }
        seen.sort();
        assert_eq!(seen, [0x137f, 0x1_057f], "the event in the parent, SIGSTOP in the child");
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        assert_eq!(ptrace(p, CONT, grandchild, 0, 0).await?, 0);
        assert_eq!(wait(p).await?, (grandchild, 0x6_057f), "its exit");
        assert_eq!(ptrace(p, GETEVENTMSG, grandchild, 0, AREA).await?, 0);
        assert_eq!(p.load_u64(AREA).await?, 3 << 8);
        assert_eq!(ptrace(p, CONT, grandchild, 0, 0).await?, 0);
        // The tracer learns of the end first, and only then the parent.
        assert_eq!(wait(p).await?, (grandchild, 3 << 8));
        let mut ends = Vec::new();
        loop {
            let (tid, status) = wait(p).await?;
            assert_eq!(tid, child);
            ends.push(status);
            if status & 0x7f == 0 {
                break;
            }
            // SIGCHLD is passed on.
            let signal = if status == 0x117f { 17 } else { 0 };
            assert_eq!(ptrace(p, CONT, child, 0, signal).await?, 0);
        }
        assert_eq!(ends, [0x117f, 0x6_057f, 4 << 8]);
        assert_eq!(wait(p).await?.0, ECHILD);
        Ok(())
    });
}

/// A child that sleeps for long.
async fn sleeper(p: &mut Program) -> Result<i64, Gone> {
    p.fork(|p| {
        Box::pin(async move {
            p.store(DATA, &[10u64, 0].map(u64::to_le_bytes).concat()).await?;
            assert_eq!(p.call(35, &[DATA, 0]).await?, 0);
            p.exit(5).await
        })
    })
    .await
}

#[test]
fn a_sleeping_process_is_attached_stopped_and_detached_and_notices_nothing() {
    run_in(&World::new(), async |p| {
        let child = sleeper(p).await?;
        p.pass(1000).await?;
        assert_eq!(ptrace(p, ATTACH, 1, 0, 0).await?, EPERM, "oneself");
        assert_eq!(ptrace(p, ATTACH, 99, 0, 0).await?, ESRCH);
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, ESRCH, "no tracee");
        assert_eq!(ptrace(p, ATTACH, child, 0, 0).await?, 0);
        assert_eq!(ptrace(p, ATTACH, child, 0, 0).await?, EPERM);
        assert_eq!(p.wait(0).await?, (child, 0x137f));
        // The sleep was interrupted, and goes on afterwards.
        assert_eq!(user(p, child, RAX).await? as i64, -516);
        assert_eq!(user(p, child, CALL).await?, 35);
        assert_eq!(ptrace(p, INTERRUPT, child, 0, 0).await?, EIO, "not seized");
        assert_eq!(ptrace(p, DETACH, child, 0, 0).await?, 0);
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, ESRCH);
        assert_eq!(p.wait(0).await?, (child, 5 << 8));
        Ok(())
    });
}

#[test]
fn a_seized_process_is_interrupted_and_reports_stops_of_its_group() {
    run_in(&World::new(), async |p| {
        let child = sleeper(p).await?;
        p.pass(1000).await?;
        assert_eq!(ptrace(p, SEIZE, child, 1, 0).await?, EIO);
        assert_eq!(ptrace(p, SEIZE, child, 0, 0).await?, 0);
        assert_eq!(p.wait(1).await?.0, 0, "it was not stopped");
        assert_eq!(ptrace(p, INTERRUPT, child, 0, 0).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0x80_057f));
        assert_eq!(ptrace(p, LISTEN, child, 0, 0).await?, 0, "a stop event");
        p.pass(1000).await?;
        assert_eq!(p.wait(0).await?, (child, 0x80_057f), "the group is not stopped");
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        assert_eq!(p.call(62, &[child as u64, STOP]).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0x137f), "the signal");
        assert_eq!(ptrace(p, CONT, child, 0, STOP).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0x80_137f), "the stop");
        assert_eq!(ptrace(p, LISTEN, child, 0, 0).await?, 0);
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, ESRCH, "it listens");
        assert_eq!(p.call(62, &[child as u64, CONTINUE]).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0x80_057f), "the stop has ended");
        assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0x127f), "SIGCONT itself");
        assert_eq!(ptrace(p, CONT, child, 0, CONTINUE).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 5 << 8));
        Ok(())
    });
}

#[test]
fn a_tracer_that_ends_leaves_its_tracees_running_or_kills_them() {
    run_in(&World::new(), async |p| {
        for (options, expected) in [(0, 5 << 8), (1 << 20, 9)] {
            let child = sleeper(p).await?;
            p.pass(1000).await?;
            let tracer = p
                .fork(move |p| {
                    Box::pin(async move {
                        assert_eq!(ptrace(p, SEIZE, child, 0, options).await?, 0);
                        assert_eq!(ptrace(p, INTERRUPT, child, 0, 0).await?, 0);
                        assert_eq!(wait(p).await?, (child, 0x80_057f));
                        p.exit(0).await
                    })
                })
                .await?;
            let mut ends = vec![p.wait(0).await?, p.wait(0).await?];
            ends.sort();
            assert_eq!(ends, [(child, expected), (tracer, 0)]);
        }
        Ok(())
    });
}

#[test]
fn a_stopped_tracee_can_be_killed_and_one_with_other_rights_not_traced() {
    run_in(&World::new(), async |p| {
        let child = start(p).await?;
        assert_eq!(p.call(62, &[child as u64, 9]).await?, 0);
        assert_eq!(wait(p).await?, (child, 9));
        let child = sleeper(p).await?;
        let other = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    assert_eq!(ptrace(p, ATTACH, child, 0, 0).await?, EPERM);
                    assert_eq!(ptrace(p, SEIZE, 1, 0, 0).await?, EPERM);
                    assert_eq!(ptrace(p, TRACEME, 0, 0, 0).await?, 0);
                    assert_eq!(ptrace(p, TRACEME, 0, 0, 0).await?, EPERM);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (other, 0));
        assert_eq!(p.wait(0).await?, (child, 5 << 8));
        Ok(())
    });
}

#[test]
fn exec_is_reported_as_the_tracer_wants() {
    for (options, expected) in [(0, 0x57f), (0x10, 0x4_057f)] {
        let world = World::new();
        let entry = world.code(|p| Box::pin(async move { p.exit(9).await }));
        world.install("/program", 0o755, &crate::world::elf(entry));
        run_in(&world, async move |p| {
            let child = p
                .fork(|p| {
                    Box::pin(async move {
                        assert_eq!(ptrace(p, TRACEME, 0, 0, 0).await?, 0);
                        let own = p.call(39, &[]).await? as u64;
                        p.call(62, &[own, STOP]).await?;
                        let path = p.string(DATA, "/program").await?;
                        p.call(59, &[path, 0, 0]).await?;
                        panic!("exec returned");
                    })
                })
                .await?;
            assert_eq!(wait(p).await?, (child, 0x137f));
            assert_eq!(ptrace(p, SETOPTIONS, child, 0, options).await?, 0);
            assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
            assert_eq!(wait(p).await?, (child, expected));
            assert_eq!(user(p, child, 16).await?, entry, "the program has not begun");
            assert_eq!(ptrace(p, CONT, child, 0, 0).await?, 0);
            assert_eq!(wait(p).await?, (child, 9 << 8));
            Ok(())
        });
    }
}

#[test]
fn memory_of_another_process_is_copied_and_compared() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        p.store(DATA + 0x100, b"in the child too").await?;
        let child = sleeper(p).await?;
        p.pass(1000).await?;
        p.store(DATA + 0x100, b"in the parent   ").await?;
        let vectors = [AREA, 16, DATA + 0x100, 16, 8, 16];
        p.store(AREA + 64, &vectors.map(u64::to_le_bytes).concat()).await?;
        let (local, remote, bad) = (AREA + 64, AREA + 80, AREA + 96);
        assert_eq!(p.call(310, &[child as u64, local, 1, remote, 1, 0]).await?, 16);
        assert_eq!(&p.load::<16>(AREA).await?, b"in the child too");
        assert_eq!(p.call(310, &[child as u64, local, 1, bad, 1, 0]).await?, -14);
        assert_eq!(p.call(310, &[child as u64, local, 1, remote, 2, 0]).await?, 16);
        assert_eq!(p.call(310, &[child as u64, local, 1, remote, 1, 1]).await?, -22);
        assert_eq!(p.call(310, &[99, local, 1, remote, 1, 0]).await?, ESRCH);
        p.store(AREA, b"written by other").await?;
        assert_eq!(p.call(311, &[child as u64, local, 1, remote, 1, 0]).await?, 16);
        let path = p.string(AREA + 0x200, &format!("/proc/{child}/mem")).await?;
        let file = p.call(2, &[path, 2, 0]).await? as u64;
        assert_eq!(p.call(17, &[file, AREA, 16, DATA + 0x100]).await?, 16);
        assert_eq!(&p.load::<16>(AREA).await?, b"written by other");
        assert_eq!(p.call(18, &[file, AREA, 16, 0x40_0800]).await?, 16, "text");
        assert_eq!(p.call(17, &[file, AREA, 16, 8]).await?, EIO);
        for kind in 0..5 {
            assert_eq!(p.call(312, &[1, 1, kind, 77, 77]).await?, if kind == 0 { -9 } else { 0 });
        }
        assert!(p.call(312, &[1, child as u64, 1, 0, 0]).await? > 0);
        assert_eq!(p.call(312, &[1, 1, 9, 0, 0]).await?, -22);
        assert_eq!(p.wait(0).await?, (child, 5 << 8));
        Ok(())
    });
}
