//! System V objects, by calls.

use super::{bytes, run_in};
use crate::world::{DATA, World};

const EINVAL: i64 = -22;
const EAGAIN: i64 = -11;
const CREATE: u64 = 0o1000;

const SHMGET: u64 = 29;
const SHMAT: u64 = 30;
const SHMCTL: u64 = 31;
const SEMGET: u64 = 64;
const SEMOP: u64 = 65;
const SEMCTL: u64 = 66;
const SHMDT: u64 = 67;
const MSGGET: u64 = 68;
const MSGSND: u64 = 69;
const MSGRCV: u64 = 70;
const MSGCTL: u64 = 71;
const SEMTIMEDOP: u64 = 220;

#[test]
fn a_segment_is_shared_by_key_and_goes_with_its_last_mapping() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let id = p.call(SHMGET, &[77, 5000, CREATE | 0o600]).await?;
        assert!(id >= 0, "{id}");
        let id = id as u64;
        assert_eq!(p.call(SHMGET, &[77, 5001, 0]).await?, EINVAL, "larger than it is");
        assert_eq!(p.call(SHMGET, &[78, 10, 0]).await?, -2);
        let at = p.call(SHMAT, &[id, 0, 0]).await? as u64;
        p.store(at + 4990, b"end of it").await?;
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    let id = p.call(SHMGET, &[77, 0, 0]).await? as u64;
                    let at = p.call(SHMAT, &[id, 0, 0o10000]).await? as u64;
                    assert_eq!(&p.load::<9>(at + 4990).await?, b"end of it");
                    assert_eq!(p.call(10, &[at, 4096, 3]).await?, -13, "attached to be read");
                    assert_eq!(p.call(SHMCTL, &[id, 2, DATA]).await?, 0);
                    assert_eq!(p.load_u64(DATA + 88).await?, 3, "two of the child, one of the parent");
                    assert_eq!(p.call(SHMDT, &[at]).await?, 0);
                    assert_eq!(p.call(SHMDT, &[at]).await?, EINVAL);
                    p.exit(0).await
                })
            })
            .await?;
        assert_eq!(p.wait(0).await?, (child, 0));
        let text = super::text(p, "/proc/sysvipc/shm").await?;
        assert!(text.lines().nth(1).unwrap().starts_with("        77 "), "{text}");
        assert_eq!(p.call(SHMCTL, &[id, 0, 0]).await?, 0);
        assert_eq!(p.call(SHMCTL, &[id, 2, DATA]).await?, 0);
        assert_eq!(p.load_u32(DATA + 20).await?, 0o1600, "it goes with its last mapping");
        assert_eq!(&p.load::<9>(at + 4990).await?, b"end of it");
        assert_eq!(p.call(SHMDT, &[at]).await?, 0);
        assert_eq!(p.call(SHMCTL, &[id, 2, DATA]).await?, EINVAL);
        assert_eq!(p.call(SHMAT, &[id, 0, 0]).await?, EINVAL);
        Ok(())
    });
}

#[test]
fn semaphores_wait_time_out_and_are_taken_back() {
    run_in(&World::new(), async |p| {
        let id = p.call(SEMGET, &[0, 2, 0o600]).await? as u64;
        // One operation: semaphore 0, -1, SEM_UNDO.
        p.store(DATA, &[0, 0, 0xff, 0xff, 0, 0x10]).await?;
        p.store(DATA + 16, &[0, 0, 0xff, 0xff, 0, 0x08]).await?;
        p.store(DATA + 32, &bytes(&[0, 5_000_000])).await?;
        assert_eq!(p.call(SEMOP, &[id, DATA + 16, 1]).await?, EAGAIN, "it must not wait");
        assert_eq!(p.call(SEMTIMEDOP, &[id, DATA, 1, DATA + 32]).await?, EAGAIN, "the time is over");
        assert_eq!(p.call(SEMOP, &[id, DATA, 501]).await?, -7);
        assert_eq!(p.call(SEMOP, &[id, DATA, 0]).await?, EINVAL);
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(SEMOP, &[id, DATA, 1]).await?, 0);
                    p.exit(0).await
                })
            })
            .await?;
        p.pass(1000).await?;
        assert_eq!(p.call(SEMCTL, &[id, 0, 14, 0]).await?, 1, "one waits");
        assert_eq!(p.call(SEMCTL, &[id, 0, 16, 1]).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0));
        assert_eq!(p.call(SEMCTL, &[id, 0, 12, 0]).await?, 1, "taken back at its end");
        assert_eq!(p.call(SEMCTL, &[id, 0, 11, 0]).await?, child);
        assert_eq!(p.call(SEMCTL, &[id, 0, 2, DATA + 64]).await?, 0);
        assert_eq!(p.load_u64(DATA + 64 + 80).await?, 2, "semaphores");
        assert_eq!(p.call(SEMCTL, &[id, 0, 0, 0]).await?, 0);
        assert_eq!(p.call(SEMCTL, &[id, 0, 12, 0]).await?, EINVAL);
        Ok(())
    });
}

#[test]
fn messages_go_from_one_process_to_another() {
    run_in(&World::new(), async |p| {
        let id = p.call(MSGGET, &[5, CREATE | 0o600]).await? as u64;
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    assert_eq!(p.call(MSGRCV, &[id, DATA, 100, 7, 0]).await?, 5);
                    assert_eq!(p.load_u64(DATA).await?, 7);
                    assert_eq!(&p.load::<5>(DATA + 8).await?, b"hello");
                    p.exit(0).await
                })
            })
            .await?;
        p.pass(1000).await?;
        p.store(DATA, &[&7u64.to_le_bytes()[..], b"hello"].concat()).await?;
        assert_eq!(p.call(MSGSND, &[id, DATA, 5, 0]).await?, 0);
        assert_eq!(p.wait(0).await?, (child, 0));
        assert_eq!(p.call(MSGRCV, &[id, DATA, 100, 0, 0o4000]).await?, -42);
        assert_eq!(p.call(MSGSND, &[id, DATA, 8193, 0]).await?, EINVAL);
        assert_eq!(p.call(MSGCTL, &[id, 2, DATA]).await?, 0);
        assert_eq!(p.load_u64(DATA + 88).await?, 16384);
        assert_eq!(p.call(MSGCTL, &[id, 0, 0]).await?, 0);
        assert_eq!(p.call(MSGSND, &[id, DATA, 5, 0]).await?, EINVAL);
        Ok(())
    });
}

#[test]
fn a_process_that_a_signal_ends_leaves_a_core_file() {
    let world = World::new();
    run_in(&world, async |p| {
        for (limit, expected) in [(0, 11), (u64::MAX, 0x8b)] {
            let child = p
                .fork(move |p| {
                    Box::pin(async move {
                        p.store(DATA, &bytes(&[limit, u64::MAX])).await?;
                        assert_eq!(p.call(160, &[4, DATA]).await?, 0);
                        p.store(DATA + 0x3000, b"in the core file").await?;
                        let own = p.call(39, &[]).await? as u64;
                        p.call(62, &[own, 11]).await?;
                        panic!("it goes on");
                    })
                })
                .await?;
            assert_eq!(p.wait(0).await?, (child, expected));
            let path = p.string(DATA, "core").await?;
            let file = p.call(2, &[path, 0]).await?;
            assert_eq!(file >= 0, limit > 0);
            if file >= 0 {
                assert_eq!(p.call(0, &[file as u64, DATA + 0x1000, 4096]).await?, 4096);
                assert_eq!(&p.load::<4>(DATA + 0x1000).await?, b"\x7fELF");
                let count = u64::from(p.load_u32(DATA + 0x1000 + 56).await? & 0xffff);
                // The segment with the program's data.
                let mut found = false;
                for index in 1..count {
                    let at = DATA + 0x1000 + 64 + 56 * index;
                    if p.load_u64(at + 16).await? == DATA {
                        found = true;
                        let offset = p.load_u64(at + 8).await?;
                        assert_eq!(p.call(17, &[file as u64, DATA + 0x4000, 16, offset + 0x3000]).await?, 16);
                        assert_eq!(&p.load::<16>(DATA + 0x4000).await?, b"in the core file");
                    }
                }
                assert!(found);
            }
        }
        Ok(())
    });
}
