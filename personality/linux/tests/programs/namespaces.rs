//! Namespaces of users, processes, names and objects: what programs see and may do in them, and
//! what they cannot do outside.

use super::run_in;
use crate::world::{DATA, Gone, Program, Steps, World};
use std::rc::Rc;

const EPERM: i64 = -1;
const ENOENT: i64 = -2;
const ESRCH: i64 = -3;
const EACCES: i64 = -13;
const EINVAL: i64 = -22;

const NEW_MOUNTS: u64 = 0x2_0000;
const NEW_NAMES: u64 = 0x400_0000;
const NEW_OBJECTS: u64 = 0x800_0000;
const NEW_USERS: u64 = 0x1000_0000;
const NEW_PROCESSES: u64 = 0x2000_0000;
const CHILD: u64 = 17;
const KILL: u64 = 9;
const TERMINATE: u64 = 15;

const PATH: u64 = DATA + 0x5000;
const TEXT: u64 = DATA + 0x6000;

/// Writes a text to a file by one write; returns the first error, or 0.
async fn write(p: &mut Program, path: &str, text: &str) -> Result<i64, Gone> {
    let path = p.string(PATH, path).await?;
    let file = p.call(2, &[path, 1, 0]).await?;
    if file < 0 {
        return Ok(file);
    }
    let from = p.string(TEXT, text).await?;
    let done = p.call(1, &[file as u64, from, text.len() as u64]).await?;
    p.call(3, &[file as u64]).await?;
    Ok(done.min(0))
}

/// The text of a file.
async fn read(p: &mut Program, path: &str) -> Result<String, Gone> {
    let path = p.string(PATH, path).await?;
    let file = p.call(2, &[path, 0, 0]).await?;
    assert!(file >= 0, "{file}");
    let count = p.call(0, &[file as u64, TEXT, 0x1000]).await?;
    p.call(3, &[file as u64]).await?;
    let bytes = p.load::<0x1000>(TEXT).await?;
    Ok(String::from_utf8(bytes[..count as usize].to_vec()).unwrap())
}

/// The text of a link.
async fn link(p: &mut Program, path: &str) -> Result<String, Gone> {
    let path = p.string(PATH, path).await?;
    let count = p.call(89, &[path, TEXT, 0x100]).await?;
    assert!(count > 0, "{count}");
    let bytes = p.load::<0x100>(TEXT).await?;
    Ok(String::from_utf8(bytes[..count as usize].to_vec()).unwrap())
}

async fn open(p: &mut Program, path: &str, flags: u64) -> Result<i64, Gone> {
    let path = p.string(PATH, path).await?;
    p.call(2, &[path, flags, 0o644]).await
}

/// Becomes user 1000, and then the superuser of a namespace of its own.
async fn become_superuser(p: &mut Program, more: u64) -> Result<(), Gone> {
    assert_eq!(p.call(106, &[1000]).await?, 0);
    assert_eq!(p.call(105, &[1000]).await?, 0);
    // A change of user ids would make the files of the process in /proc the superuser's.
    assert_eq!(p.call(157, &[4, 1]).await?, 0);
    assert_eq!(p.call(272, &[NEW_USERS | more]).await?, 0);
    assert_eq!(write(p, "/proc/self/uid_map", "0 1000 1").await?, 0);
    assert_eq!(write(p, "/proc/self/setgroups", "deny").await?, 0);
    assert_eq!(write(p, "/proc/self/gid_map", "0 1000 1\n").await?, 0);
    Ok(())
}

/// The status with which a child ends that does `steps`.
async fn child(
    p: &mut Program,
    flags: u64,
    steps: impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static,
) -> Result<u32, Gone> {
    assert!(p.spawn(56, &[flags | CHILD, 0, 0, 0, 0], steps).await? > 0);
    Ok(p.wait(0).await?.1)
}

fn world() -> Rc<World> {
    let world = World::new();
    world.install_proc();
    world.install("/secret", 0o600, b"secret");
    world.install("/open", 0o644, b"open");
    world.make_directory("/m", 0o755);
    world
}

#[test]
fn ids_have_other_numbers_in_a_namespace_of_users() {
    run_in(&world(), async |p| {
        let status = child(p, 0, |p| {
            Box::pin(async move {
                p.call(106, &[1000]).await?;
                p.call(105, &[1000]).await?;
                p.call(157, &[4, 1]).await?;
                assert_eq!(p.call(272, &[NEW_USERS]).await?, 0);
                assert_eq!((p.call(102, &[]).await?, p.call(104, &[]).await?), (65534, 65534));
                assert_eq!(read(p, "/proc/self/uid_map").await?, "");
                assert_eq!(read(p, "/proc/self/setgroups").await?, "allow\n");
                // Ids of others, and the group as long as groups could be left.
                for bad in ["0 0 1", "0 1001 1", "0 1000 2", "0 999 2"] {
                    assert_eq!(write(p, "/proc/self/uid_map", bad).await?, EPERM, "{bad}");
                }
                for bad in
                    ["0 1000", "0 1000 0", "x", "", "0 1000 1 1", "0 1 4294967295", "0 1000 1\n0 1000 1"]
                {
                    let done = write(p, "/proc/self/uid_map", bad).await?;
                    assert!(done == EINVAL || (bad.is_empty() && done == 0), "{bad}: {done}");
                }
                assert_eq!(write(p, "/proc/self/gid_map", "0 1000 1").await?, EPERM);
                assert_eq!(write(p, "/proc/self/uid_map", "0 1000 1").await?, 0);
                assert_eq!(write(p, "/proc/self/uid_map", "0 1000 1").await?, EPERM, "once only");
                assert_eq!(write(p, "/proc/self/setgroups", "deny").await?, 0);
                assert_eq!(write(p, "/proc/self/setgroups", "allow").await?, EPERM);
                assert_eq!(write(p, "/proc/self/gid_map", "7 1000 1").await?, 0);
                assert_eq!((p.call(102, &[]).await?, p.call(104, &[]).await?), (0, 7));
                assert_eq!(read(p, "/proc/self/uid_map").await?, "         0       1000          1\n");
                let status = read(p, "/proc/self/status").await?;
                assert!(status.contains("Uid:\t0\t0\t0\t0\nGid:\t7\t7\t7\t7\n"), "{status}");
                assert!(status.contains("CapEff:\t000001ffffffffff\n"), "{status}");
                // Ids without a number: those of files are shown as 65534, and no number means
                // them.
                let path = p.string(PATH, "/open").await?;
                assert_eq!(p.call(4, &[path, DATA]).await?, 0);
                assert_eq!(p.load_u64(DATA + 28).await?, 65534 << 32 | 65534);
                assert_eq!(p.call(105, &[1000]).await?, EINVAL);
                assert_eq!(p.call(117, &[0, 1, 0]).await?, EINVAL);
                assert_eq!(p.call(122, &[1]).await?, 0, "it says the old one");
                assert_eq!(p.call(122, &[u64::MAX]).await?, 0);
                assert_eq!(p.call(116, &[0, 0]).await?, EPERM, "setgroups");
                assert_eq!(p.call(92, &[path, 1, 1]).await?, EINVAL);
                assert_eq!(p.call(92, &[path, 0, 7]).await?, EPERM);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        Ok(())
    });
}

#[test]
fn a_superuser_of_a_namespace_is_none_outside_of_it() {
    run_in(&world(), async |p| {
        let other = p
            .fork(|p| {
                Box::pin(async move {
                    p.call(105, &[1001]).await?;
                    p.call(34, &[]).await?;
                    p.exit(1).await
                })
            })
            .await? as u64;
        let status = child(p, 0, move |p| {
            Box::pin(async move {
                become_superuser(p, 0).await?;
                assert_eq!((open(p, "/secret", 0).await?, open(p, "/open", 1).await?), (EACCES, EACCES));
                assert_eq!(open(p, "/new", 0o101).await?, EACCES);
                for path in [
                    "/proc/sys/fs/pipe-max-size",
                    "/proc/sysrq-trigger",
                    "/proc/1/oom_score_adj",
                    "/proc/1/uid_map",
                ] {
                    assert_eq!(open(p, path, 1).await?, EACCES, "{path}");
                }
                let path = p.string(PATH, "/open").await?;
                assert_eq!((p.call(90, &[path, 0o777]).await?, p.call(87, &[path]).await?), (EPERM, EACCES));
                for target in [1, other] {
                    assert_eq!(p.call(62, &[target, KILL]).await?, EPERM);
                    assert_eq!(p.call(101, &[16, target, 0, 0]).await?, EPERM, "ptrace");
                    assert_eq!(p.call(141, &[0, target, 5]).await?, EPERM, "setpriority");
                    assert_eq!(p.call(302, &[target, 7, 0, DATA]).await?, EPERM, "prlimit");
                }
                let host = p.string(TEXT, "mine").await?;
                assert_eq!(p.call(170, &[host, 4]).await?, EPERM, "the names are not its own");
                let (tmpfs, m) = (p.string(DATA, "tmpfs").await?, p.string(DATA + 0x20, "/m").await?);
                assert_eq!(p.call(165, &[tmpfs, m, tmpfs, 0, 0]).await?, EPERM, "nor are the mounts");
                assert_eq!(p.call(155, &[m, m]).await?, EPERM);
                assert_eq!(p.call(169, &[0xfee1_dead, 672_274_793, 0x4321_fedc]).await?, EPERM, "reboot");
                assert_eq!(p.call(227, &[0, DATA + 0x300]).await?, EPERM, "clock_settime");
                assert_eq!(p.call(41, &[2, 3, 1]).await?, EPERM, "a raw socket");
                let node = p.string(PATH, "/tmp-node").await?;
                assert_eq!(p.call(133, &[node, 0o20666, 0x103]).await?, EPERM, "mknod");
                // It is a superuser of what it makes.
                assert_eq!(p.call(272, &[NEW_NAMES | NEW_MOUNTS | NEW_OBJECTS]).await?, 0);
                assert_eq!(p.call(170, &[host, 4]).await?, 0);
                assert_eq!(read(p, "/proc/sys/kernel/hostname").await?, "mine\n");
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        assert_eq!(read(p, "/proc/sys/kernel/hostname").await?, "macadamia\n");
        assert_eq!(p.call(62, &[other, KILL]).await?, 0);
        assert_eq!(p.wait(0).await?.1, 9);
        Ok(())
    });
}

#[test]
fn mounts_of_a_namespace_open_no_devices_and_cannot_undo_those_outside() {
    let world = world();
    world.install_devices();
    run_in(&world, async |p| {
        let (tmpfs, m) = (p.string(DATA, "tmpfs").await?, p.string(DATA + 0x20, "/m").await?);
        assert_eq!(p.call(165, &[tmpfs, m, tmpfs, 2 | 8, 0]).await?, 0);
        let status = child(p, 0, move |p| {
            Box::pin(async move {
                become_superuser(p, NEW_MOUNTS).await?;
                let (proc, sysfs) =
                    (p.string(DATA + 0x40, "proc").await?, p.string(DATA + 0x60, "sysfs").await?);
                let slash = p.string(DATA + 0x80, "/").await?;
                assert_eq!(p.call(166, &[m, 2]).await?, EINVAL, "the mount stays");
                for flags in [0x20, 0x1020, 0x1020 | 2, 0x1020 | 8] {
                    assert_eq!(p.call(165, &[0, m, 0, flags, 0]).await?, EPERM, "{flags:#x}");
                }
                assert_eq!(p.call(165, &[0, m, 0, 0x1020 | 1 | 2 | 8, 0]).await?, 0, "more is allowed");
                assert_eq!(
                    p.call(165, &[slash, m, 0, 0x1000, 0]).await?,
                    EINVAL,
                    "it would show what is hidden"
                );
                assert_eq!(
                    p.call(165, &[proc, m, proc, 0, 0]).await?,
                    EPERM,
                    "the processes are not its own"
                );
                assert_eq!(p.call(165, &[sysfs, m, sysfs, 0, 0]).await?, EPERM);
                assert_eq!(p.call(165, &[tmpfs, m, tmpfs, 0, 0]).await?, 0);
                let node = p.string(PATH, "/m/null").await?;
                assert_eq!(p.call(133, &[node, 0o20666, 0x103]).await?, EPERM);
                assert_eq!(p.call(4, &[m, DATA + 0x200]).await?, 0);
                assert_eq!(p.load_u64(DATA + 0x200 + 28).await?, 0, "its own root directory");
                let options = p.string(DATA + 0xa0, "uid=1").await?;
                assert_eq!(p.call(165, &[tmpfs, m, tmpfs, 0, options]).await?, EINVAL);
                // Devices of the system can be used where they are bound, and not in mounts of its
                // own.
                assert!(open(p, "/dev/null", 2).await? >= 0);
                assert_eq!(p.call(165, &[0, m, 0, 0x1020, 0]).await?, EPERM, "devices stay closed");
                assert_eq!(p.call(165, &[0, m, 0, 0x1020 | 4, 0]).await?, 0);
                assert_eq!(p.call(166, &[m, 0]).await?, 0);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        assert_eq!(p.call(166, &[m, 0]).await?, 0);
        Ok(())
    });
}

#[test]
fn programs_with_set_id_bits_give_no_id_that_a_namespace_has_not() {
    let world = world();
    let checks = world.code(|p| {
        Box::pin(async move {
            let status = if p.call(107, &[]).await? == 0 { 3 } else { 4 };
            p.exit(status).await
        })
    });
    world.install("/setuid", 0o4755, &crate::world::elf(checks));
    run_in(&world, async |p| {
        fn boxed(inside: bool) -> impl for<'a> Fn(&'a mut Program) -> Steps<'a> + 'static {
            move |p| {
                Box::pin(async move {
                    p.call(106, &[1000]).await?;
                    p.call(105, &[1000]).await?;
                    p.call(157, &[4, 1]).await?;
                    if inside {
                        p.call(272, &[NEW_USERS]).await?;
                        assert_eq!(write(p, "/proc/self/uid_map", "5 1000 1").await?, 0);
                    }
                    let path = p.string(PATH, "/setuid").await?;
                    p.store(TEXT, &[0; 16]).await?;
                    p.call(59, &[path, TEXT, TEXT]).await?;
                    panic!("exec returned");
                })
            }
        }
        assert_eq!(child(p, 0, boxed(false)).await?, 0x300, "outside it is the superuser's");
        assert_eq!(child(p, 0, boxed(true)).await?, 0x400);
        Ok(())
    });
}

#[test]
fn processes_have_other_numbers_in_a_namespace_and_end_with_its_first_one() {
    run_in(&world(), async |p| {
        let status = child(p, NEW_PROCESSES, |p| {
            Box::pin(async move {
                assert_eq!((p.call(39, &[]).await?, p.call(186, &[]).await?), (1, 1));
                assert_eq!(p.call(110, &[]).await?, 0, "the parent is outside");
                let orphan = p
                    .fork(|p| {
                        Box::pin(async move {
                            assert_eq!((p.call(39, &[]).await?, p.call(110, &[]).await?), (2, 1));
                            p.call(34, &[]).await?;
                            p.exit(1).await
                        })
                    })
                    .await?;
                assert_eq!(orphan, 2);
                // Processes outside cannot be named, and the first one is protected from those
                // inside.
                assert_eq!(p.call(62, &[100, 0]).await?, ESRCH);
                for signal in [KILL, TERMINATE] {
                    assert_eq!(p.call(62, &[1, signal]).await?, 0);
                }
                assert_eq!(p.call(62, &[2, 0]).await?, 0);
                // The /proc of the parent shows it under its other number.
                let own = link(p, "/proc/self").await;
                assert!(own.is_ok());
                let (proc, m) = (p.string(DATA, "proc").await?, p.string(DATA + 0x20, "/m").await?);
                assert_eq!(p.call(165, &[proc, m, proc, 0, 0]).await?, 0);
                assert_eq!(link(p, "/m/self").await?, "1");
                let status = read(p, "/m/2/status").await?;
                assert!(status.contains("Pid:\t2\nPPid:\t1\n") && status.contains("NSpid:\t2\n"), "{status}");
                assert_eq!(open(p, "/m/3", 0).await?, ENOENT);
                assert_eq!(p.call(166, &[m, 2]).await?, 0);
                p.exit(7).await
            })
        })
        .await?;
        assert_eq!(status, 0x700);
        // Its other process was killed, and all are gone.
        assert_eq!(p.wait(0).await?.0, -10);
        Ok(())
    });
}

#[test]
fn a_signal_from_outside_ends_the_first_process_of_a_namespace() {
    run_in(&world(), async |p| {
        let first = p
            .spawn(56, &[NEW_PROCESSES | NEW_USERS | CHILD, 0, 0, 0, 0], |p| {
                Box::pin(async move {
                    p.call(34, &[]).await?;
                    p.exit(1).await
                })
            })
            .await? as u64;
        let status = read(p, &format!("/proc/{first}/status")).await?;
        assert!(status.contains(&format!("NSpid:\t{first}\t1\n")), "{status}");
        let own = link(p, "/proc/self/ns/pid").await?;
        assert_ne!(link(p, &format!("/proc/{first}/ns/pid")).await?, own);
        assert_eq!(own, "pid:[4026531836]");
        assert_eq!(p.call(62, &[first, TERMINATE]).await?, 0, "it has no handler");
        p.pass(1000).await?;
        assert_eq!(p.call(61, &[first, DATA, 1, 0]).await?, 0, "so it goes on");
        assert_eq!(p.call(62, &[first, KILL]).await?, 0);
        assert_eq!(p.wait(0).await?, (first as i64, 9));
        Ok(())
    });
}

#[test]
fn a_process_joins_the_namespaces_of_another() {
    run_in(&world(), async |p| {
        let first = p
            .spawn(56, &[NEW_PROCESSES | NEW_NAMES | NEW_MOUNTS | CHILD, 0, 0, 0, 0], |p| {
                Box::pin(async move {
                    let name = p.string(TEXT, "inner").await?;
                    p.call(170, &[name, 5]).await?;
                    p.call(34, &[]).await?;
                    p.exit(1).await
                })
            })
            .await? as u64;
        p.pass(1000).await?;
        let names = open(p, &format!("/proc/{first}/ns/uts"), 0).await? as u64;
        let processes = open(p, &format!("/proc/{first}/ns/pid"), 0).await? as u64;
        let mounts = open(p, &format!("/proc/{first}/ns/mnt"), 0).await? as u64;
        // What kind it is, and what it belongs to.
        assert_eq!(p.call(16, &[names, 0xb703, 0]).await?, NEW_NAMES as i64);
        let users = p.call(16, &[names, 0xb701, 0]).await? as u64;
        assert_eq!(p.call(16, &[users, 0xb703, 0]).await?, NEW_USERS as i64);
        assert_eq!(p.call(16, &[users, 0xb702, 0]).await?, EPERM, "it is the first one");
        let parent = p.call(16, &[processes, 0xb702, 0]).await? as u64;
        assert_eq!(p.call(16, &[parent, 0xb702, 0]).await?, EPERM);
        assert_eq!(p.call(16, &[names, 0xb702, 0]).await?, EINVAL);
        assert_eq!(p.call(16, &[names, 0xb7ff, 0]).await?, -25);
        let status = child(p, 0, move |p| {
            Box::pin(async move {
                assert_eq!(p.call(308, &[names, NEW_MOUNTS]).await?, EINVAL, "another kind");
                assert_eq!(p.call(308, &[users, 0]).await?, EINVAL, "it is in it");
                for file in [names, processes, mounts] {
                    assert_eq!(p.call(308, &[file, 0]).await?, 0);
                }
                assert_eq!(read(p, "/proc/sys/kernel/hostname").await?, "inner\n");
                assert!(p.call(39, &[]).await? > 1, "only its children are in the other one");
                let status = child(p, 0, |p| {
                    Box::pin(async move {
                        let own = p.call(39, &[]).await? as u64;
                        assert_eq!(p.call(110, &[]).await?, 0);
                        p.exit(own).await
                    })
                })
                .await?;
                assert_eq!(status, 0x200);
                p.call(105, &[1000]).await?;
                assert_eq!(p.call(308, &[names, 0]).await?, EPERM);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        assert_eq!(p.call(62, &[first, KILL]).await?, 0);
        assert_eq!(p.wait(0).await?.1, 9);
        // The namespace has ended.
        assert_eq!(p.call(308, &[processes, 0]).await?, 0);
        assert_eq!(p.call(57, &[]).await?, -12);
        assert_eq!(p.call(308, &[parent, 0]).await?, 0);
        Ok(())
    });
}

#[test]
fn objects_and_queues_of_a_namespace_are_its_own() {
    const KEY: u64 = 77;
    run_in(&world(), async |p| {
        let outside = p.call(68, &[KEY, 0o1600]).await?;
        assert!(outside >= 0);
        let status = child(p, NEW_OBJECTS, |p| {
            Box::pin(async move {
                assert_eq!(p.call(68, &[KEY, 0]).await?, ENOENT);
                assert!(p.call(68, &[KEY, 0o1600]).await? >= 0);
                assert!(p.call(29, &[KEY, 4096, 0o1600]).await? >= 0);
                let lines = read(p, "/proc/sysvipc/shm").await?.lines().count();
                assert_eq!(lines, 2);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        assert_eq!(read(p, "/proc/sysvipc/shm").await?.lines().count(), 1);
        assert_eq!(p.call(71, &[outside as u64, 0, 0]).await?, 0);
        Ok(())
    });
}

#[test]
fn flags_that_do_not_go_together_and_namespaces_that_there_are_not() {
    run_in(&world(), async |p| {
        for flags in [
            NEW_USERS | 0x200,                        // CLONE_FS
            NEW_PROCESSES | 0x1_0000 | 0x800 | 0x100, // CLONE_THREAD
            NEW_USERS | 0x8000,                       // CLONE_PARENT
            0x4000_0000,                              // CLONE_NEWNET
            0x200_0000,                               // CLONE_NEWCGROUP
        ] {
            assert_eq!(p.call(56, &[flags | CHILD, 0, 0, 0, 0]).await?, EINVAL, "{flags:#x}");
        }
        for flags in [0x4000_0000, 0x200_0000, 0x80] {
            assert_eq!(p.call(272, &[flags]).await?, EINVAL, "{flags:#x}");
        }
        let status = child(p, 0, |p| {
            Box::pin(async move {
                p.call(105, &[1000]).await?;
                for flags in [NEW_MOUNTS, NEW_NAMES, NEW_OBJECTS, NEW_PROCESSES] {
                    assert_eq!(p.call(272, &[flags]).await?, EPERM, "{flags:#x}");
                }
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        // Another root directory is not left by a namespace.
        let status = child(p, 0, |p| {
            Box::pin(async move {
                let m = p.string(PATH, "/m").await?;
                assert_eq!(p.call(161, &[m]).await?, 0);
                assert_eq!(p.call(272, &[NEW_USERS]).await?, EPERM);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(status, 0);
        Ok(())
    });
}
