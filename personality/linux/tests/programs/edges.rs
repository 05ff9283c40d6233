//! Tests of calls at the edges of what they accept: descriptors that only name a file, full pipes,
//! negative ids, the longest path, settings.

use crate::world::{DATA, Gone, Program, World, elf};
use crate::{EAGAIN, bytes, run, run_in};

const EBADF: i64 = -9;
const EINVAL: i64 = -22;

#[test]
fn a_descriptor_that_only_names_a_file_serves_calls_on_names_alone() {
    const PATH: u64 = 0o10000000;
    let world = World::new();
    world.install("/file", 0o644, b"text");
    run_in(&world, async |p| {
        let path = p.string(DATA, "/file").await?;
        let name = p.string(DATA + 0x40, "user.test").await?;
        p.store(DATA + 0x80, &bytes(&[1 << 32 | 1])).await?;
        assert_eq!(p.call(2, &[path, PATH]).await?, 0);
        let at = DATA + 0x100;
        for (number, arguments) in [
            (91, [0, 0o600, 0, 0]),    // fchmod
            (93, [0, 0, 0, 0]),        // fchown
            (190, [0, name, name, 4]), // fsetxattr
            (193, [0, name, at, 100]), // fgetxattr
            (196, [0, at, 100, 0]),    // flistxattr
            (199, [0, name, 0, 0]),    // fremovexattr
            (74, [0, 0, 0, 0]),        // fsync
            (75, [0, 0, 0, 0]),        // fdatasync
            (187, [0, 0, 10, 0]),      // readahead
            (221, [0, 0, 10, 0]),      // fadvise64
            (8, [0, 0, 0, 0]),         // lseek
            (0, [0, at, 1, 0]),        // read
            (16, [0, 0x5401, at, 0]),  // ioctl
            (73, [0, 1, 0, 0]),        // flock
            (280, [0, 0, 0, 0]),       // utimensat without a path
            (9, [0, 4096, 1, 2]),      // mmap
            (217, [0, at, 100, 0]),    // getdents64
            (77, [0, 0, 0, 0]),        // ftruncate
        ] {
            assert_eq!(p.call(number, &arguments).await?, EBADF, "call {number}");
        }
        assert_eq!(p.call(5, &[0, at]).await?, 0, "fstat");
        assert_eq!(p.call(138, &[0, at]).await?, 0, "fstatfs");
        assert_eq!(p.call(72, &[0, 3]).await?, PATH as i64, "the flags");
        assert_eq!(p.call(7, &[DATA + 0x80, 1, 0]).await?, 1, "poll");
        p.store(DATA + 0x80, &bytes(&[1 << 32])).await?;
        assert_eq!(p.call(7, &[DATA + 0x80, 1, 0]).await?, 1, "poll");
        assert_eq!(p.load_u64(DATA + 0x80).await? >> 48, 0x20, "POLLNVAL");
        Ok(())
    });
}

#[test]
fn the_places_of_data_are_asked_for_as_the_manual_says() {
    const FIEMAP: u64 = 0xc020_660b;
    let world = World::new();
    world.install("/file", 0o644, b"text");
    run_in(&world, async |p| {
        let path = p.string(DATA, "/file").await?;
        assert_eq!(p.call(2, &[path, 0]).await?, 0);
        let at = DATA + 0x100;
        for (words, result, case) in [
            ([0, 0, 0, 1], EINVAL, "no bytes"),
            ([1 << 63, 1, 0, 1], -27, "EFBIG"),
            ([0, 1, 0, u64::from(u32::MAX)], EINVAL, "extents that are more than all addresses"),
            ([0, 1, 7, 1], -53, "EBADR: attributes"),
            ([0, 1, 1, 1], -95, "EOPNOTSUPP: a file in memory"),
        ] {
            p.store(at, &bytes(&words)).await?;
            assert_eq!(p.call(16, &[0, FIEMAP, at]).await?, result, "{case}");
            if result == -53 {
                assert_eq!(p.load_u32(at + 16).await?, 2, "the flags that there are not");
            }
        }
        Ok(())
    });
}

#[test]
fn vmsplice_does_not_wait_if_it_must_not() {
    run(async |p| {
        assert_eq!(p.call(293, &[DATA, 0]).await?, 0);
        let (read, write, nonblock) = (0, 1, 2);
        p.store(DATA + 0x10, &bytes(&[DATA, 4096])).await?;
        assert_eq!(p.call(278, &[read, DATA + 0x10, 1, nonblock]).await?, EAGAIN);
        for _ in 0..16 {
            assert_eq!(p.call(278, &[write, DATA + 0x10, 1, nonblock]).await?, 4096);
        }
        assert_eq!(p.call(278, &[write, DATA + 0x10, 1, nonblock]).await?, EAGAIN);
        assert_eq!(p.call(278, &[read, DATA + 0x10, 1, nonblock]).await?, 4096);
        // Memory that has never been used is brought in.
        let fresh = p.call(9, &[0, 4096, 3, 0x22, u64::MAX, 0]).await? as u64;
        p.store(DATA + 0x10, &bytes(&[fresh, 4096])).await?;
        assert_eq!(p.call(278, &[write, DATA + 0x10, 1, nonblock]).await?, 4096);
        Ok(())
    });
}

#[test]
fn negative_ids_and_clocks_are_refused_or_ignored() {
    run(async |p| {
        let minus = u64::from(u32::MAX);
        assert_eq!(p.call(122, &[minus]).await?, 0, "setfsuid");
        assert_eq!(p.call(122, &[minus]).await?, 0, "setfsuid has changed nothing");
        assert_eq!(p.call(123, &[minus]).await?, 0, "setfsgid");
        assert_eq!(p.call(123, &[minus]).await?, 0, "setfsgid has changed nothing");
        assert_eq!(p.call(229, &[minus, DATA]).await?, EINVAL, "clock_getres");
        assert_eq!(p.call(228, &[minus, DATA]).await?, EINVAL, "clock_gettime");
        for number in [142, 143, 144, 145, 148, 315] {
            assert_eq!(p.call(number, &[minus, DATA, 48, 0]).await?, EINVAL, "call {number}");
        }
        assert_eq!(p.call(143, &[0, 0]).await?, EINVAL, "sched_getparam without an address");
        assert_eq!(p.call(203, &[minus, 8, DATA]).await?, -3, "sched_setaffinity");
        for (policy, highest) in [(0, 0), (1, 99), (2, 99), (3, 0), (5, 0), (6, 0), (4, EINVAL), (7, EINVAL)]
        {
            assert_eq!(p.call(146, &[policy]).await?, highest, "policy {policy}");
        }
        Ok(())
    });
}

#[test]
fn ranges_that_are_none_are_refused() {
    run(async |p| {
        const PAGE: u64 = 4096;
        let at = p.call(9, &[0, 5 * PAGE, 3, 0x22, u64::MAX, 0]).await? as u64;
        assert_eq!(p.call(11, &[at + 3 * PAGE, PAGE]).await?, 0);
        let (madvise, mincore, msync, mprotect, mlock2) = (28, 27, 26, 10, 325);
        let (before_end, enomem) = (u64::MAX - PAGE + 1, -12);
        for (number, address, length, third, result) in [
            (madvise, at + 1, PAGE, 0, EINVAL),
            (madvise, at, u64::MAX, 0, EINVAL),
            (madvise, at, before_end, 0, EINVAL),
            (madvise, before_end, 2 * PAGE, 0, EINVAL),
            (madvise, at, 1 << 47, 0, enomem),
            (madvise, 0, PAGE, 0, enomem),
            (madvise, at, 5 * PAGE, 4, enomem),
            (madvise, at, 0, 99, EINVAL),
            (mincore, at, 5 * PAGE, DATA, enomem),
            (mincore, at, u64::MAX, DATA, enomem),
            (mincore, before_end, PAGE, DATA, enomem),
            (mincore, at, PAGE, u64::MAX, -14),
            (mincore, at, 0, u64::MAX, -14),
            (mincore, at, 0, 0, 0),
            (mlock2, at, PAGE, 2, EINVAL),
            (mlock2, at, before_end, 0, EINVAL),
            (mlock2, before_end, PAGE, 0, EINVAL),
            (mlock2, at, 5 * PAGE, 0, enomem),
            (mlock2, at, 1 << 40, 0, enomem),
            (msync, at, before_end, 4, enomem),
            (msync, at, 5 * PAGE, 1, enomem),
            (mprotect, at, before_end, 1, enomem),
            (mprotect, at, 5 * PAGE, 1, enomem),
        ] {
            let got = p.call(number, &[address, length, third]).await?;
            assert_eq!(got, result, "call {number} of {address:#x}, {length:#x}, {third:#x}");
        }
        Ok(())
    });
}

#[test]
fn a_path_has_at_most_4095_bytes() {
    let world = World::new();
    world.install("/file", 0o644, b"text");
    run_in(&world, async |p| {
        let at = p.call(9, &[0, 12288, 3, 0x22, u64::MAX, 0]).await? as u64;
        p.store(at, ("/".repeat(4091) + "file").as_bytes()).await?;
        assert_eq!(p.call(21, &[at, 0]).await?, 0, "4095 bytes");
        p.store(at, ("/".repeat(4092) + "file").as_bytes()).await?;
        assert_eq!(p.call(21, &[at, 0]).await?, -36, "4096 bytes");
        Ok(())
    });
}

#[test]
fn a_mapping_of_the_zero_device_is_one_of_zeros() {
    let world = World::new();
    world.install_devices();
    run_in(&world, async |p| {
        let zero = p.string(DATA, "/dev/zero").await?;
        assert_eq!(p.call(2, &[zero, 2]).await?, 0);
        let private = p.call(9, &[0, 8192, 3, 2, 0, 0]).await? as u64;
        assert_eq!(p.load_u64(private + 4096).await?, 0);
        p.store(private, b"mine").await?;
        // A child sees what is written to a shared mapping.
        let shared = p.call(9, &[0, 4096, 3, 1, 0, 0]).await? as u64;
        p.fork(move |p| {
            Box::pin(async move {
                p.store(shared, b"theirs").await?;
                p.exit(0).await
            })
        })
        .await?;
        p.wait(0).await?;
        assert_eq!(&p.load::<6>(shared).await?, b"theirs");
        assert_eq!(p.call(2, &[zero, 0]).await?, 1);
        assert_eq!(p.call(9, &[0, 4096, 3, 1, 1, 0]).await?, -13, "not open for writing");
        let other = p.call(9, &[0, 4096, 3, 2, 1, 0]).await? as u64;
        assert_eq!(p.load_u64(other).await?, 0);
        let null = p.string(DATA, "/dev/null").await?;
        assert_eq!(p.call(2, &[null, 2]).await?, 2);
        assert_eq!(p.call(9, &[0, 4096, 3, 2, 2, 0]).await?, -19);
        Ok(())
    });
}

#[test]
fn a_thread_in_proc_is_shown_apart_from_its_process() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let pid = p.call(39, &[]).await?;
        let name = p.string(DATA, "leader").await?;
        assert_eq!(p.call(157, &[15, name]).await?, 0);
        let path = p.string(DATA, &format!("/proc/self/task/{pid}/stat")).await?;
        assert_eq!(p.call(2, &[path, 0]).await?, 0);
        let count = p.call(0, &[0, DATA + 0x100, 0x200]).await? as usize;
        let text = p.load::<0x200>(DATA + 0x100).await?[..count].to_vec();
        assert!(
            text.starts_with(format!("{pid} (leader) R").as_bytes()),
            "{}",
            String::from_utf8_lossy(&text)
        );
        let path = p.string(DATA, &format!("/proc/self/task/{pid}/task")).await?;
        assert_eq!(p.call(21, &[path, 0]).await?, -2, "a thread has no threads");
        let path = p.string(DATA, &format!("/proc/self/task/{}/stat", pid + 100)).await?;
        assert_eq!(p.call(21, &[path, 0]).await?, -2);
        Ok(())
    });
}

#[test]
fn a_process_is_signalled_by_its_directory_in_proc() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    p.call(34, &[]).await?;
                    panic!("pause returned");
                })
            })
            .await?;
        let path = p.string(DATA, &format!("/proc/{child}")).await?;
        assert_eq!(p.call(2, &[path, 0o200000]).await?, 0);
        assert_eq!(p.call(424, &[0, 0, 0, 0]).await?, 0);
        let root = p.string(DATA, "/proc").await?;
        assert_eq!(p.call(2, &[root, 0o200000]).await?, 1);
        assert_eq!(p.call(424, &[1, 15, 0, 0]).await?, EBADF);
        assert_eq!(p.call(424, &[0, 15, 0, 0]).await?, 0);
        assert_eq!(p.wait(0).await?, (i64::from(child as i32), 15));
        assert_eq!(p.call(424, &[0, 15, 0, 0]).await?, -3);
        Ok(())
    });
}

#[test]
fn the_superuser_sets_the_clock_of_the_day_and_no_other() {
    const CLOCK_SETTIME: u64 = 227;
    const SETTIMEOFDAY: u64 = 164;
    run_in(&World::new(), async |p| {
        let at = async |p: &mut crate::world::Program, seconds: i64, parts: i64| {
            let bytes: Vec<u8> = [seconds, parts].iter().flat_map(|word| word.to_le_bytes()).collect();
            p.store(DATA, &bytes).await?;
            Ok::<_, crate::world::Gone>(DATA)
        };
        let day = 2_000_000_000;
        let time = at(p, day, 0).await?;
        assert_eq!(p.call(CLOCK_SETTIME, &[0, time]).await?, 0);
        assert!((day..day + 2).contains(&p.call(201, &[0]).await?));
        assert_eq!(p.call(CLOCK_SETTIME, &[1, time]).await?, -22, "the monotonic clock");
        let time = at(p, day / 2, 5).await?;
        assert_eq!(p.call(SETTIMEOFDAY, &[time, 0]).await?, 0, "also back");
        assert!((day / 2..day / 2 + 2).contains(&p.call(201, &[0]).await?));
        for (seconds, parts) in [(day, 1_000_000_000), (day, -1), (-1, 0), (8_277_292_036, 0)] {
            let time = at(p, seconds, parts).await?;
            assert_eq!(p.call(CLOCK_SETTIME, &[0, time]).await?, -22, "{seconds} {parts}");
        }
        assert_eq!(p.call(CLOCK_SETTIME, &[0, 8]).await?, -14);
        let time = at(p, day, 0).await?;
        assert_eq!(p.call(117, &[1000, 1000, 1000]).await?, 0);
        assert_eq!(p.call(CLOCK_SETTIME, &[0, time]).await?, -1);
        assert_eq!(p.call(SETTIMEOFDAY, &[time, 0]).await?, -1);
        assert!((day / 2..day / 2 + 2).contains(&p.call(201, &[0]).await?));
        Ok(())
    });
}

#[test]
fn the_protection_of_hard_links_can_be_switched_off() {
    let world = World::new();
    world.install_proc();
    world.install("/theirs", 0o600, b"text");
    world.make_directory("/open", 0o777);
    run_in(&world, async |p| {
        let open = p.string(DATA, "/open").await?;
        assert_eq!(p.call(90, &[open, 0o777]).await?, 0);
        let setting = p.string(DATA, "/proc/sys/fs/protected_hardlinks").await?;
        let theirs = p.string(DATA + 0x40, "/theirs").await?;
        let link = p.string(DATA + 0x80, "/open/link").await?;
        let digit = p.string(DATA + 0xc0, "0").await?;
        assert_eq!(p.call(2, &[setting, 2]).await?, 0);
        assert_eq!(p.call(0, &[0, DATA + 0x100, 8]).await?, 2);
        assert_eq!(&p.load::<2>(DATA + 0x100).await?, b"1\n");
        assert_eq!(p.call(117, &[minus_one(), 1000, minus_one()]).await?, 0);
        assert_eq!(p.call(86, &[theirs, link]).await?, -1, "neither owned nor readable");
        assert_eq!(p.call(117, &[minus_one(), 0, minus_one()]).await?, 0);
        assert_eq!(p.call(1, &[0, digit, 1]).await?, 1);
        assert_eq!(p.call(117, &[minus_one(), 1000, minus_one()]).await?, 0);
        assert_eq!(p.call(86, &[theirs, link]).await?, 0);
        Ok(())
    });
}

#[test]
fn the_system_takes_commands_by_a_file_and_modes_of_settings_are_final() {
    const ACCESS: u64 = 21;
    const EACCES: i64 = -13;
    const ENOSYS: i64 = -38;
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let file = p.string(DATA, "/proc/sysrq-trigger").await?;
        let text = p.string(DATA + 0x40, "sxbo").await?;
        assert_eq!(p.call(2, &[file, 0x201]).await?, 0, "O_WRONLY | O_TRUNC");
        assert_eq!(p.call(1, &[0, text, 4]).await?, 4, "only the first letter counts");
        assert_eq!(p.call(1, &[0, text + 1, 1]).await?, -22, "EINVAL");
        // The machine of this test cannot be ended.
        assert_eq!(p.call(1, &[0, text + 2, 1]).await?, ENOSYS);
        assert_eq!(p.call(1, &[0, text + 3, 1]).await?, ENOSYS);

        let paths = ["/proc/sys", "/proc/sys/fs", "/proc/sys/kernel/version", "/proc/irq", "/proc/version"];
        for (path, done) in paths.into_iter().zip([EACCES, EACCES, EACCES, 0, 0]) {
            let path = p.string(DATA + 0x80, path).await?;
            assert_eq!(p.call(ACCESS, &[path, 2]).await?, done);
            assert_eq!(p.call(ACCESS, &[path, 4]).await?, 0);
        }
        assert_eq!(p.call(117, &[minus_one(), 1000, minus_one()]).await?, 0);
        assert_eq!(p.call(2, &[file, 1]).await?, EACCES);
        Ok(())
    });
}

#[test]
fn files_of_proc_that_are_mounted_over_have_their_names() {
    const MOUNT: u64 = 165;
    const BIND: u64 = 0x1000;
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let none = p.string(DATA, "").await?;
        for path in ["/proc/sysrq-trigger", "/proc/sys/kernel/version", "/proc/1/status", "/proc/1/ns"] {
            let name = p.string(DATA + 0x40, path).await?;
            assert_eq!(p.call(MOUNT, &[name, name, none, BIND, none]).await?, 0, "{path}");
            let file = p.call(2, &[name, 0x20_0000]).await? as u64;
            let link = p.string(DATA + 0x80, &format!("/proc/self/fd/{file}")).await?;
            let length = p.call(89, &[link, DATA + 0x100, 100]).await? as usize;
            let target = p.load::<100>(DATA + 0x100).await?;
            assert_eq!(String::from_utf8_lossy(&target[..length]), path);
        }
        let mounts = p.string(DATA + 0x40, "/proc/self/mountinfo").await?;
        let file = p.call(2, &[mounts, 0]).await? as u64;
        let length = p.call(0, &[file, DATA + 0x1000, 2000]).await? as usize;
        let text = p.load::<2000>(DATA + 0x1000).await?;
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        for line in ["/sysrq-trigger /proc/sysrq-trigger ", "/sys/kernel/version /proc/sys/kernel/version "] {
            assert!(text.contains(line), "{text}");
        }
        Ok(())
    });
}

#[test]
fn barriers_for_all_threads_need_a_registration_that_exec_ends() {
    let world = World::new();
    let after = world.code(|p| {
        Box::pin(async move {
            assert_eq!(p.call(MEMBARRIER, &[8, 0, 0]).await?, -1, "exec ends the registration");
            p.exit(7).await
        })
    });
    world.install("/after", 0o755, &elf(after));
    run_in(&world.clone(), async move |p| {
        let made = || world.synchronizations();
        let barrier = async |p: &mut Program, command, flags| p.call(MEMBARRIER, &[command, flags, 0]).await;
        assert_eq!(barrier(p, 0, 0).await?, 127, "QUERY");
        for (command, flags) in [(0, 1), (1, 1), (3, 0), (8, 1), (128, 0), (256, 0), (u64::MAX, 0)] {
            assert_eq!(barrier(p, command, flags).await?, -22, "{command} {flags}");
        }
        assert_eq!((barrier(p, 8, 0).await?, barrier(p, 32, 0).await?), (-1, -1));
        assert_eq!((barrier(p, 64, 0).await?, barrier(p, 8, 0).await?), (0, -1));
        assert_eq!((barrier(p, 16, 0).await?, barrier(p, 4, 0).await?), (0, 0));
        assert_eq!(made(), 0);
        for (count, command) in (1..).zip([1, 2, 8, 32]) {
            assert_eq!(barrier(p, command, 0).await?, 0);
            assert_eq!(made(), count, "command {command}");
        }
        p.fork(|p| {
            Box::pin(async move {
                assert_eq!(p.call(MEMBARRIER, &[8, 0, 0]).await?, 0, "fork keeps it");
                let path = p.string(DATA, "/after").await?;
                p.call(59, &[path, 0, 0]).await?;
                panic!("exec returned");
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?.1, 0x700);
        Ok(())
    });
}

const MEMBARRIER: u64 = 324;

#[test]
fn the_effective_id_decides_about_priorities_and_processors_of_others() {
    run(async |p| {
        let target = p
            .fork(|p| {
                Box::pin(async move {
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    p.call(34, &[]).await?;
                    panic!("it went on");
                })
            })
            .await? as u64;
        p.pass(1000).await?;
        p.store(DATA, &bytes(&[1])).await?;
        for (real, effective, answer) in [(1000, 2000, -1), (2000, 1000, 0), (2000, 2000, -1)] {
            let child = p
                .fork(move |p| {
                    Box::pin(async move {
                        assert_eq!(p.call(117, &[real, effective, effective]).await?, 0);
                        assert_eq!(p.call(141, &[0, target, 5]).await?, answer, "setpriority");
                        assert_eq!(p.call(203, &[target, 8, DATA]).await?, answer, "sched_setaffinity");
                        p.exit(0).await
                    })
                })
                .await?;
            assert_eq!(p.wait(0).await?, (child, 0), "real {real}, effective {effective}");
        }
        assert_eq!(p.call(62, &[target, 9]).await?, 0);
        assert_eq!(p.wait(0).await?, (target as i64, 9));
        Ok(())
    });
}

#[test]
fn capget_shows_the_capabilities_of_the_process_that_it_names() {
    const HEADER: u64 = DATA + 0x100;
    const SETS: u64 = DATA + 0x200;
    async fn effective(p: &mut Program, target: u64) -> Result<u64, crate::world::Gone> {
        p.store(HEADER, &bytes(&[0x2008_0522 | target << 32])).await?;
        assert_eq!(p.call(125, &[HEADER, SETS]).await?, 0);
        Ok(u64::from(p.load_u32(SETS).await?) | u64::from(p.load_u32(SETS + 12).await?) << 32)
    }
    run(async |p| {
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    assert_eq!(p.call(105, &[1000]).await?, 0);
                    assert_eq!(effective(p, 0).await?, 0);
                    assert_ne!(effective(p, 1).await?, 0);
                    p.pass(5000).await?;
                    p.exit(0).await
                })
            })
            .await? as u64;
        p.pass(1000).await?;
        assert_ne!(effective(p, 0).await?, 0);
        assert_eq!(effective(p, child).await?, 0);
        p.store(HEADER, &bytes(&[0x2008_0522 | 99 << 32])).await?;
        assert_eq!(p.call(125, &[HEADER, SETS]).await?, -3, "no such process");
        assert_eq!(p.wait(0).await?, (child as i64, 0));
        Ok(())
    });
}

#[test]
fn the_first_conflicting_lock_of_a_file_is_answered() {
    const LOCK: u64 = DATA + 0x100;
    /// struct flock: the kind, from where, where it begins, its length, and its owner.
    async fn lock(p: &mut Program, command: u64, of: [u64; 3]) -> Result<i64, crate::world::Gone> {
        let [kind, start, length] = of;
        p.store(LOCK, &bytes(&[kind, start, length, 0])).await?;
        p.call(72, &[0, command, LOCK]).await
    }
    const READ: u64 = 0;
    const WRITE: u64 = 1;
    run(async |p| {
        let path = p.string(DATA, "/file").await?;
        assert_eq!(p.call(2, &[path, 0o102, 0o644]).await?, 0);
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    // The second one was made first.
                    assert_eq!(lock(p, 6, [WRITE, 50, 10]).await?, 0);
                    assert_eq!(lock(p, 6, [READ, 10, 10]).await?, 0);
                    p.pass(5000).await?;
                    p.exit(0).await
                })
            })
            .await?;
        p.pass(1000).await?;
        for (asked, answer) in [
            ([WRITE, 0, 100], [READ, 10, 10]),
            ([READ, 0, 100], [WRITE, 50, 10]),
            ([WRITE, 55, 1], [WRITE, 50, 10]),
        ] {
            assert_eq!(lock(p, 5, asked).await?, 0);
            let mut found = [0; 3];
            for (index, word) in found.iter_mut().enumerate() {
                *word = p.load_u64(LOCK + 8 * index as u64).await?;
            }
            assert_eq!((found[0] & 0xffff, &found[1..]), (answer[0], &answer[1..]), "{asked:?}");
            assert_eq!(i64::from(p.load_u32(LOCK + 24).await?), child);
        }
        assert_eq!(lock(p, 5, [WRITE, 20, 30]).await?, 0);
        assert_eq!(p.load_u64(LOCK).await? & 0xffff, 2, "none conflicts");
        assert_eq!(p.wait(0).await?, (child, 0));
        Ok(())
    });
}

fn minus_one() -> u64 {
    u64::from(u32::MAX)
}

#[test]
fn fdinfo_shows_what_each_kind_of_file_knows() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        async fn shown(p: &mut Program, path: &str) -> Result<String, Gone> {
            let name = p.string(DATA, path).await?;
            let file = p.call(2, &[name, 0]).await?;
            assert!(file >= 0, "{path}: {file}");
            let count = p.call(0, &[file as u64, DATA + 0x1000, 2000]).await? as usize;
            assert_eq!(p.call(3, &[file as u64]).await?, 0);
            Ok(String::from_utf8_lossy(&p.load::<2000>(DATA + 0x1000).await?[..count]).into_owned())
        }
        let ends = |text: &str, end: &str| assert!(text.ends_with(end), "{text:?} has no {end:?}");

        let name = p.string(DATA, "/file").await?;
        assert_eq!(p.call(2, &[name, 0o2_000_000 | 0o102, 0o600]).await?, 0);
        assert_eq!(p.call(1, &[0, DATA, 5]).await?, 5);
        let text = shown(p, "/proc/self/fdinfo/0").await?;
        assert!(text.starts_with("pos:\t5\nflags:\t02100002\nmnt_id:\t"), "{text:?}");

        assert_eq!(p.call(290, &[0x2a, 0]).await?, 1);
        let text = shown(p, "/proc/self/fdinfo/1").await?;
        assert!(text.contains("\neventfd-count:               2a\neventfd-id: "), "{text:?}");

        assert_eq!(p.call(283, &[7, 0]).await?, 2);
        p.store(DATA, &bytes(&[3, 0, 1 << 40, 5])).await?;
        assert_eq!(p.call(286, &[2, 1, DATA, 0]).await?, 0);
        let text = shown(p, "/proc/self/fdinfo/2").await?;
        assert!(text.contains("\nclockid: 7\nticks: 0\nsettime flags: 01\nit_value: ("), "{text:?}");
        ends(&text, ")\nit_interval: (3, 0)\n");

        p.store(DATA, &bytes(&[1 << 9])).await?;
        assert_eq!(p.call(289, &[u64::MAX, DATA, 8, 0]).await?, 3);
        ends(&shown(p, "/proc/self/fdinfo/3").await?, "\nsigmask:\t0000000000000200\n");

        assert_eq!(p.call(291, &[0]).await?, 4);
        p.store(DATA, &bytes(&[0xbeef_0000 << 32 | 1 << 31 | 1])).await?;
        p.store(DATA + 8, &bytes(&[0])).await?;
        assert_eq!(p.call(233, &[4, 1, 1, DATA]).await?, 0);
        let text = shown(p, "/proc/self/fdinfo/4").await?;
        assert!(
            text.contains("\ntfd:        1 events: 80000019 data:         beef0000  pos:0 ino:"),
            "{text:?}"
        );

        assert_eq!(p.call(294, &[0]).await?, 5);
        let name = p.string(DATA, "/file").await?;
        assert_eq!(p.call(254, &[5, name, 2]).await?, 1);
        let text = shown(p, "/proc/self/fdinfo/5").await?;
        assert!(text.contains("\ninotify wd:1 ino:") && text.contains(" mask:2 "), "{text:?}");

        let pid = p.call(39, &[]).await?;
        assert_eq!(p.call(434, &[pid as u64, 0]).await?, 6);
        ends(&shown(p, "/proc/self/fdinfo/6").await?, &format!("\nPid:\t{pid}\nNSpid:\t{pid}\n"));

        let name = p.string(DATA, "/proc/self/fdinfo/7").await?;
        assert_eq!(p.call(2, &[name, 0]).await?, -2);
        // Another user's process may not look.
        p.fork(move |p| {
            Box::pin(async move {
                assert_eq!(p.call(105, &[1000]).await?, 0);
                let directory = format!("/proc/{pid}/fdinfo");
                let file = format!("/proc/{pid}/fdinfo/0");
                for (path, result) in [(&*directory, -13), (&*file, -13), ("/proc/self/fdinfo", 7)] {
                    let name = p.string(DATA, path).await?;
                    assert_eq!(p.call(2, &[name, 0]).await?, result, "{path}");
                }
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}
