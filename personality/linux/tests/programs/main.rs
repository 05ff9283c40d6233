//! Tests with programs on the simulated machine, from the system call to the memory and back.

mod attempts;
mod consoles;
mod costs;
mod edges;
mod files;
mod filters;
mod frames;
mod halves;
mod hammer;
mod hardware_clock;
mod internet;
mod lists;
mod namespaces;
mod owners;
mod packets;
mod protection;
mod queues;
mod random;
mod schedule;
mod shortage;
mod signals;
mod sockets;
mod sysv;
mod traces;
mod tracing;
mod world;

use std::cell::RefCell;
use std::rc::Rc;
use world::{DATA, Program, World, elf};

const EAGAIN: i64 = -11;
const EFAULT: i64 = -14;
const EINTR: i64 = -4;

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Runs `main` and checks that it reached its end, and that no process, memory or thread is left.
fn run(main: impl AsyncFn(&mut Program) -> Result<(), world::Gone> + 'static) -> Rc<World> {
    let world = World::new();
    run_in(&world, main);
    world
}

fn run_in(world: &Rc<World>, main: impl AsyncFn(&mut Program) -> Result<(), world::Gone> + 'static) {
    let done = Rc::new(RefCell::new(false));
    let (flag, main) = (done.clone(), Rc::new(main));
    world.run(move |p| {
        let (flag, main) = (flag.clone(), main.clone());
        Box::pin(async move {
            main(p).await?;
            *flag.borrow_mut() = true;
            p.exit(0).await
        })
    });
    assert!(*done.borrow(), "the first process did not reach its end: {:?}", world.log());
    assert_eq!(world.machine_threads(), 0, "threads of the machine are left");
    assert!(world.system.process_ids().is_empty(), "processes are left");
}

#[test]
fn a_forked_child_execs_with_a_pipe_and_is_waited_for() {
    let world = World::new();
    let two = world.code(|p| {
        Box::pin(async move {
            // The stack has: argc, argv[0], argv[1], null, envp[0], null, auxiliary vector.
            let stack = p.state.rsp;
            assert_eq!(stack % 16, 0);
            assert_eq!(p.load_u64(stack).await?, 2);
            let argument = p.load_u64(stack + 16).await?;
            let text: [u8; 6] = p.load(argument).await?;
            assert_eq!(&text, b"hello\0");
            let variable = p.load_u64(stack + 32).await?;
            assert_eq!(&p.load::<4>(variable).await?, b"A=1\0");
            assert_eq!(p.load_u64(stack + 40).await?, 0);
            assert_eq!(&p.load::<11>(DATA).await?, b"initialised");
            assert_eq!(p.load_u64(DATA + 0x20).await?, 0, "bss");
            assert_eq!(p.call(1, &[3, argument, 5]).await?, -9, "closed by exec");
            assert_eq!(p.call(1, &[5, argument, 5]).await?, 5);
            p.exit(7).await
        })
    });
    world.install("/two", 0o755, &elf(two));
    run_in(&world, async |p| {
        assert_eq!(p.call(293, &[DATA, 0o2000000]).await?, 0);
        assert_eq!((p.load_u32(DATA).await?, p.load_u32(DATA + 4).await?), (0, 1));
        // The pipe has descriptors that exec closes (2, 3) and one that it keeps (5).
        assert_eq!(p.call(33, &[1, 5]).await?, 5);
        assert_eq!(p.call(292, &[1, 3, 0o2000000]).await?, 3);
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    let path = p.string(DATA + 0x100, "/two").await?;
                    let hello = p.string(DATA + 0x110, "hello").await?;
                    let variable = p.string(DATA + 0x120, "A=1").await?;
                    p.store(DATA + 0x200, &bytes(&[path, hello, 0])).await?;
                    p.store(DATA + 0x220, &bytes(&[variable, 0])).await?;
                    let bad = p.string(DATA + 0x130, "/none").await?;
                    assert_eq!(p.call(59, &[bad, DATA + 0x200, DATA + 0x220]).await?, -2);
                    assert_eq!(p.call(59, &[path, 8, 0]).await?, EFAULT);
                    p.call(59, &[path, DATA + 0x200, DATA + 0x220]).await?;
                    panic!("exec returned");
                })
            })
            .await?;
        assert_eq!(child, 2);
        for descriptor in [1, 3, 5] {
            assert_eq!(p.call(3, &[descriptor]).await?, 0);
        }
        assert_eq!(p.call(0, &[0, DATA + 0x300, 100]).await?, 5);
        assert_eq!(&p.load::<5>(DATA + 0x300).await?, b"hello");
        assert_eq!(p.call(0, &[0, DATA + 0x300, 100]).await?, 0, "the writer is gone before its end is told");
        assert_eq!(p.wait(0).await?, (2, 0x700));
        assert_eq!(p.wait(0).await?.0, -10);
        Ok(())
    });
}

#[test]
fn a_script_is_executed_and_bad_files_are_refused() {
    let world = World::new();
    let interpreter = world.code(|p| {
        Box::pin(async move {
            let stack = p.state.rsp;
            assert_eq!(p.load_u64(stack).await?, 4);
            for (index, expected) in ["/sh", "-x y", "/script", "arg"].into_iter().enumerate() {
                let pointer = p.load_u64(stack + 8 + 8 * index as u64).await?;
                for (at, byte) in expected.bytes().chain([0]).enumerate() {
                    assert_eq!(p.load::<1>(pointer + at as u64).await?, [byte]);
                }
            }
            p.exit(3).await
        })
    });
    world.install("/sh", 0o755, &elf(interpreter));
    world.install("/script", 0o755, b"#! /sh -x y\necho\n");
    world.install("/loop", 0o755, b"#!/loop\n");
    world.install("/text", 0o755, b"echo\n");
    world.install("/empty", 0o755, b"");
    world.install("/private", 0o644, &elf(0));
    world.install("/cut", 0o755, &elf(0)[..100]);
    let mut foreign = elf(0);
    foreign[18] = 40;
    world.install("/arm", 0o755, &foreign);
    let mut high = elf(0);
    high[64 + 56 + 16 + 5] = 0xff;
    world.install("/high", 0o755, &high);
    run_in(&world, async |p| {
        let exec = async |p: &mut Program, path: &str| -> Result<i64, world::Gone> {
            let path = p.string(DATA, path).await?;
            let argument = p.string(DATA + 0x80, "arg").await?;
            p.store(DATA + 0x100, &bytes(&[path, argument, 0])).await?;
            p.call(59, &[path, DATA + 0x100, 0]).await
        };
        let own = p.string(DATA, "/init").await?;
        assert_eq!(p.call(2, &[own, 1, 0]).await?, -26, "it is being executed");
        let shell = p.string(DATA, "/sh").await?;
        let writer = p.call(2, &[shell, 1, 0]).await? as u64;
        assert_eq!(exec(p, "/sh").await?, -26, "it is being written");
        assert_eq!(p.call(3, &[writer]).await?, 0);
        assert_eq!(exec(p, "/loop").await?, -40);
        for path in ["/text", "/empty", "/cut", "/arm"] {
            assert_eq!(exec(p, path).await?, -8, "{path}");
        }
        assert_eq!(exec(p, "/high").await?, -12);
        assert_eq!(exec(p, "/private").await?, -13);
        assert_eq!(exec(p, "/").await?, -13);
        p.spawn(58, &[], |p| {
            Box::pin(async move {
                let path = p.string(DATA, "/script").await?;
                let argument = p.string(DATA + 0x80, "arg").await?;
                p.store(DATA + 0x100, &bytes(&[path, argument, 0])).await?;
                p.call(59, &[path, DATA + 0x100, 0]).await?;
                panic!("exec returned");
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?, (2, 0x300));
        Ok(())
    });
}

#[test]
fn fork_shares_shared_memory_and_copies_private_memory() {
    run(async |p| {
        let shared = p.call(9, &[0, 4096, 3, 0x21, u64::MAX, 0]).await? as u64;
        p.store(DATA, &5u32.to_le_bytes()).await?;
        p.fork(move |p| {
            Box::pin(async move {
                p.store(DATA, &6u32.to_le_bytes()).await?;
                p.pass(10).await?;
                p.store(shared, &1u32.to_le_bytes()).await?;
                assert_eq!(p.call(202, &[shared, 1, 1]).await?, 1, "one waiter of the shared word");
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.call(202, &[shared, 0, 0, 0]).await?, 0);
        assert_eq!((p.load_u32(shared).await?, p.load_u32(DATA).await?), (1, 5));
        assert_eq!(p.call(202, &[shared, 0, 0, 0]).await?, EAGAIN);
        p.store(DATA, &bytes(&[0, 5_000_000])).await?;
        assert_eq!(p.call(202, &[shared, 0, 1, DATA]).await?, -110);
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}

#[test]
fn a_thread_that_exits_clears_its_id_and_wakes_its_joiner() {
    run(async |p| {
        const FLAGS: u64 =
            0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x8_0000 | 0x10_0000 | 0x20_0000 | 0x100_0000;
        let stack = p.call(9, &[0, 0x4000, 3, 0x22, u64::MAX, 0]).await? as u64 + 0x4000;
        let tid = p
            .spawn(56, &[FLAGS, stack, DATA, DATA + 4, 0x1234_5000], move |p| {
                Box::pin(async move {
                    assert_eq!((p.state.rsp, p.state.fs_base, p.state.rax), (stack, 0x1234_5000, 0));
                    assert_eq!(p.load_u32(DATA + 4).await?, p.call(186, &[]).await? as u32);
                    assert_eq!(p.call(39, &[]).await?, 1, "the process's id");
                    p.store(DATA + 8, b"shared").await?;
                    p.pass(100).await?;
                    p.call(60, &[0]).await?;
                    panic!("exit returned");
                })
            })
            .await?;
        assert_eq!(p.load_u32(DATA).await?, tid as u32);
        // Waits for the thread as pthread_join does.
        while p.load_u32(DATA + 4).await? != 0 {
            let word = p.load_u32(DATA + 4).await?;
            assert!(matches!(p.call(202, &[DATA + 4, 0, word.into(), 0]).await?, 0 | EAGAIN));
        }
        assert_eq!(&p.load::<6>(DATA + 8).await?, b"shared");
        assert_eq!(p.call(234, &[1, tid as u64, 0]).await?, -3, "the thread is gone");
        Ok(())
    });
}

#[test]
fn a_mapped_file_shows_and_takes_its_contents() {
    let world = World::new();
    world.install("/file", 0o644, b"contents of the file");
    run_in(&world, async |p| {
        let path = p.string(DATA, "/file").await?;
        let file = p.call(2, &[path, 2, 0]).await? as u64;
        let shared = p.call(9, &[0, 4096, 3, 1, file, 0]).await? as u64;
        let private = p.call(9, &[0, 4096, 3, 2, file, 0]).await? as u64;
        p.store(shared, b"CONTENTS").await?;
        p.store(private, b"private!").await?;
        assert_eq!(p.call(17, &[file, DATA + 64, 20, 0]).await?, 20);
        assert_eq!(&p.load::<20>(DATA + 64).await?, b"CONTENTS of the file");
        assert_eq!(p.call(18, &[file, DATA + 64, 3, 9]).await?, 3);
        assert_eq!(&p.load::<12>(shared + 8).await?, b" CONthe file");
        assert_eq!(p.call(5, &[file, DATA + 256]).await?, 0);
        assert_eq!(p.load_u64(DATA + 256 + 48).await?, 20, "its size");
        assert_eq!(p.call(77, &[file, 4]).await?, 0);
        assert_eq!(&p.load::<6>(shared).await?, b"CONT\0\0");
        assert_eq!(p.call(0, &[file, 8, 1]).await?, EFAULT);
        Ok(())
    });
}

#[test]
fn an_unknown_call_is_logged_once() {
    let world = run(async |p| {
        for _ in 0..3 {
            assert_eq!(p.call(425, &[]).await?, -38);
            assert_eq!(p.call(9999, &[]).await?, -38);
        }
        Ok(())
    });
    let lines: Vec<String> = world.log().into_iter().filter(|line| line.contains("not available")).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("io_uring_setup"), "{lines:?}");
}

#[test]
fn many_processes_that_end_leave_nothing() {
    let world = World::new();
    run_in(&world, async |p| {
        let mut free = None;
        for round in 0..5 {
            for _ in 0..100 {
                p.fork(|p| {
                    Box::pin(async move {
                        p.store(DATA, b"own copy").await?;
                        p.exit(5).await
                    })
                })
                .await?;
            }
            for _ in 0..100 {
                assert_eq!(p.wait(0).await?.1, 0x500);
            }
            let now = p.world.free_frames();
            if round > 0 {
                assert_eq!(free, Some(now));
            }
            free = Some(now);
        }
        Ok(())
    });
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    /// Whatever calls a program makes, the system goes on, and the program gets a result, a signal
    /// or its end.
    #[test]
    fn hostile_calls_do_not_stop_the_system(calls in proptest::collection::vec((0u64..460, proptest::array::uniform6(0usize..12)), 1..40)) {
        const VALUES: [u64; 12] =
            [0, 1, 2, 4095, 4096, DATA, DATA + 1, DATA + 0x7ffc, 0x7fff_ffff_f000, 1 << 63, u64::MAX, u64::MAX - 4095];
        let world = World::new();
        run_in(&world, async move |p| {
            let calls = calls.clone();
            p.fork(move |p| {
                let calls = calls.clone();
                Box::pin(async move {
                    p.store(DATA, &[3; 64]).await?;
                    // An alarm ends the process if nothing else does.
                    assert_eq!(p.call(37, &[5]).await?, 0);
                    for (number, arguments) in calls {
                        // Leaves out calls that make threads, for which the test has no code, and
                        // calls that cancel the test's alarm.
                        if matches!(number, 13 | 15 | 37 | 38 | 56 | 57 | 58 | 435) {
                            continue;
                        }
                        let _ = p.call(number, &arguments.map(|index| VALUES[index])).await?;
                    }
                    p.exit(0).await
                })
            })
            .await?;
            loop {
                // Continues stopped children; the others end.
                let (pid, status) = p.wait(2).await?;
                if pid < 0 || status & 0xff != 0x7f {
                    return Ok(());
                }
                p.call(62, &[pid as u64, 18]).await?;
            }
        });
    }
}

#[test]
fn poll_select_epoll_and_timerfd_wait_for_files() {
    run(async |p| {
        assert_eq!(p.call(22, &[DATA]).await?, 0);
        let entries: Vec<u8> = [(0u32, 1u16), (1, 4), (77, 1), (u32::MAX, 1)]
            .iter()
            .flat_map(|(descriptor, events)| {
                [&descriptor.to_le_bytes()[..], &events.to_le_bytes(), &[9, 9]].concat()
            })
            .collect();
        p.store(DATA, &entries).await?;
        assert_eq!(p.call(7, &[DATA, 4, u64::MAX]).await?, 2, "writable, and no descriptor");
        let events: [u8; 32] = p.load(DATA).await?;
        assert_eq!([events[6], events[14], events[22], events[30]], [0, 4, 0x20, 0]);
        assert_eq!(p.call(7, &[DATA, 1, 100]).await?, 0, "the time passes");
        // select waits to read descriptor 0.
        p.store(DATA + 64, &bytes(&[1, 0, 0, 50_000])).await?;
        assert_eq!(p.call(23, &[1, DATA + 64, 0, 0, DATA + 80]).await?, 0);
        assert_eq!((p.load_u64(DATA + 64).await?, p.load_u64(DATA + 88).await?), (0, 0));
        p.store(DATA + 64, &bytes(&[1 << 40])).await?;
        assert_eq!(p.call(23, &[41, DATA + 64, 0, 0, 0]).await?, -9);
        // epoll waits for an event counter.
        let counter = p.call(290, &[0, 0o4000]).await? as u64;
        let epoll = p.call(291, &[0]).await? as u64;
        p.store(DATA + 128, &[1u32.to_le_bytes(), [7; 4], [8; 4]].concat()).await?;
        assert_eq!(p.call(233, &[epoll, 1, counter, DATA + 128]).await?, 0);
        assert_eq!(p.call(233, &[epoll, 1, counter, DATA + 128]).await?, -17);
        assert_eq!(p.call(232, &[epoll, DATA + 160, 4, 10]).await?, 0);
        p.fork(move |p| {
            Box::pin(async move {
                p.pass(1000).await?;
                p.store(DATA, &bytes(&[5])).await?;
                assert_eq!(p.call(1, &[counter, DATA, 8]).await?, 8);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.call(232, &[epoll, DATA + 160, 4, u64::MAX]).await?, 1);
        let event: [u8; 12] = p.load(DATA + 160).await?;
        assert_eq!(event, [1, 0, 0, 0, 7, 7, 7, 7, 8, 8, 8, 8]);
        assert_eq!(p.call(0, &[counter, DATA, 8]).await?, 8);
        assert_eq!(p.load_u64(DATA).await?, 5);
        assert_eq!(p.call(0, &[counter, DATA, 8]).await?, EAGAIN);
        p.wait(0).await?;
        // A timerfd becomes readable when it expires.
        let timer = p.call(283, &[1, 0]).await? as u64;
        p.store(DATA, &bytes(&[0, 0, 2, 0])).await?;
        assert_eq!(p.call(286, &[timer, 0, DATA, 0]).await?, 0);
        assert_eq!(p.call(0, &[timer, DATA, 8]).await?, 8);
        assert_eq!(p.load_u64(DATA).await?, 1);
        Ok(())
    });
}

/// The text of a file, through the buffer at DATA + 0x1000.
async fn text(p: &mut Program, path: &str) -> Result<String, world::Gone> {
    let path = p.string(DATA + 0x800, path).await?;
    let file = p.call(2, &[path, 0, 0]).await?;
    assert!(file >= 0, "{file}");
    let mut text = Vec::new();
    loop {
        let count = p.call(0, &[file as u64, DATA + 0x1000, 0x1000]).await?;
        if count <= 0 {
            assert_eq!(count, 0);
            p.call(3, &[file as u64]).await?;
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        let page: [u8; 0x1000] = p.load(DATA + 0x1000).await?;
        text.extend_from_slice(&page[..count as usize]);
    }
}

async fn link(p: &mut Program, path: &str) -> Result<String, world::Gone> {
    let path = p.string(DATA + 0x800, path).await?;
    let count = p.call(89, &[path, DATA + 0x1000, 0x100]).await?;
    assert!(count >= 0, "{count}");
    let bytes: [u8; 0x100] = p.load(DATA + 0x1000).await?;
    Ok(String::from_utf8_lossy(&bytes[..count as usize]).into_owned())
}

#[test]
fn files_of_proc_show_the_process() {
    let world = World::new();
    world.install_proc();
    world.install("/file", 0o644, b"x");
    run_in(&world, async |p| {
        p.fork(|p| {
            Box::pin(async move {
                assert_eq!(link(p, "/proc/self").await?, "2");
                assert_eq!(link(p, "/proc/self/exe").await?, "/init");
                assert_eq!(link(p, "/proc/1/cwd").await?, "/");
                let stat = text(p, "/proc/self/stat").await?;
                assert!(stat.starts_with("2 (init) R 1 1 1 0 -1 0 "), "{stat}");
                assert_eq!(stat.split_whitespace().count(), 52);
                let status = text(p, "/proc/2/status").await?;
                assert!(status.contains("PPid:\t1\n") && status.contains("Uid:\t0\t0\t0\t0\n"), "{status}");
                assert_eq!(text(p, "/proc/self/cmdline").await?, "init\0");
                let path = p.string(DATA, "/proc/self/oom_score_adj").await?;
                let number = p.string(DATA + 0x80, "1000").await?;
                let file = p.call(2, &[path, 0o1001, 0]).await? as u64;
                assert_eq!(p.call(1, &[file, number, 4]).await?, 4);
                let wrong = p.string(DATA + 0x80, "1001").await?;
                assert_eq!(p.call(1, &[file, wrong, 4]).await?, -22);
                assert_eq!(p.call(3, &[file]).await?, 0);
                assert_eq!(text(p, "/proc/self/oom_score_adj").await?, "1000\n");
                let maps = text(p, "/proc/self/maps").await?;
                assert!(
                    maps.contains("00400000-00401000 r-xp 00000000")
                        || maps.contains("400000-401000 r-xp 00000000")
                );
                assert!(
                    maps.lines().any(|line| line.ends_with(" /init")) && maps.contains("[stack]"),
                    "{maps}"
                );
                let path = p.string(DATA, "/file").await?;
                assert_eq!(p.call(2, &[path, 0, 0]).await?, 0);
                assert_eq!(link(p, "/proc/self/fd/0").await?, "/file");
                assert_eq!(text(p, "/proc/self/fd/0").await?, "x");
                assert!(text(p, "/proc/meminfo").await?.starts_with("MemTotal: "));
                assert_eq!(text(p, "/proc/sys/kernel/ostype").await?, "Linux\n");
                assert!(text(p, "/proc/mounts").await?.contains("proc /proc proc rw,relatime 0 0\n"));
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?, (2, 0));
        let path = p.string(DATA, "/proc").await?;
        let directory = p.call(2, &[path, 0o200000, 0]).await? as u64;
        let count = p.call(217, &[directory, DATA + 0x1000, 0x1000]).await? as usize;
        let bytes: [u8; 0x1000] = p.load(DATA + 0x1000).await?;
        let (mut names, mut at) = (Vec::new(), 0);
        while at < count {
            let length = usize::from(u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]));
            let name = bytes[at + 19..at + length].split(|byte| *byte == 0).next().unwrap();
            names.push(String::from_utf8_lossy(name).into_owned());
            at += length;
        }
        for expected in [".", "..", "self", "meminfo", "sys", "1"] {
            assert!(names.iter().any(|name| name == expected), "{expected} in {names:?}");
        }
        assert!(!names.contains(&"2".to_string()), "the child is gone");
        let gone = p.string(DATA, "/proc/2/stat").await?;
        assert_eq!(p.call(2, &[gone, 0, 0]).await?, -2);
        Ok(())
    });
}

/// Compiles only if `future` can move between workers.
fn can_move<F: Future + Send>(future: F) -> F {
    future
}

#[test]
fn the_futures_of_requests_can_move_between_workers() {
    let world = World::new();
    let requests = world.requests();
    drop(can_move(requests.0));
    drop(can_move(requests.1));
}

#[test]
fn programs_get_nothing_new_but_go_on_when_the_server_is_short_of_memory() {
    use unix::thread::Shortage;
    const ENOMEM: i64 = -12;
    let world = World::new();
    world.install_devices();
    run_in(&world, async |p| {
        let null = p.string(DATA, "/dev/null").await?;
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    let null = DATA;
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    let file = p.call(2, &[null, 2]).await?;
                    assert_eq!(file, 0);
                    p.world.set_shortage(Shortage::Low);
                    let file = p.call(2, &[null, 2]).await?;
                    assert_eq!(file, 1, "a user that has little gets something");
                    assert_eq!(p.call(3, &[1]).await?, 0);
                    let account = p.world.system.processes().with(|table| table.account_of(1000));
                    let _much = account.charge_memory(1 << 28).unwrap();
                    assert_eq!(p.call(2, &[null, 2]).await?, ENOMEM);
                    assert_eq!(p.call(57, &[]).await?, ENOMEM);
                    assert_eq!(p.call(9, &[0, 4096, 3, 0x22, u64::MAX, 0]).await?, ENOMEM);
                    assert_eq!(p.call(1, &[0, null, 1]).await?, 1, "what it has works");
                    assert_eq!(p.call(3, &[0]).await?, 0, "and can be given back");
                    p.exit(7).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 7 << 8));
        let file = p.call(2, &[null, 2]).await?;
        assert_eq!(file, 0, "the superuser still gets something");
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    p.world.set_shortage(Shortage::Critical);
                    assert_eq!(p.call(2, &[DATA, 2]).await?, ENOMEM);
                    // The program has never touched this page before.
                    p.store(DATA + 0x5000, b"x").await?;
                    panic!("a page fault was served");
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 9), "a process that needs memory to go on ends");
        p.world.set_shortage(Shortage::None);
        assert_eq!(p.call(2, &[null, 2]).await?, 1);
        Ok(())
    });
}
