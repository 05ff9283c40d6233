//! Layouts of System V objects (linux/ipc.h, asm-generic/{shm,msg}buf.h, asm/sembuf.h), and the
//! texts of /proc/sysvipc.

use super::{Fields, Writer};
use alloc::string::String;
use core::fmt::Write;
use unix::Result;
use unix::sysv::SystemV;
use unix::sysv::messages::Queue;
use unix::sysv::objects::Permission;
use unix::sysv::semaphores::Set;
use unix::sysv::shared_memory::Segment;

/// Bytes of struct ipc64_perm.
pub const PERMISSION_SIZE: usize = 48;
/// Bytes of struct msqid64_ds.
pub const QUEUE_SIZE: usize = 120;
/// Offset in it of the limit on its bytes.
const QUEUE_LIMIT: usize = 88;
/// The mode bit of a segment that exists only as long as it is attached.
const REMOVED: u32 = 0o1000;
/// The mode bit of a segment that stays in memory.
const LOCKED: u32 = 0o2000;

fn permission<const N: usize>(permission: &Permission, mode: u32) -> Writer<N> {
    Writer::new()
        .i32(0, permission.key)
        .u32(4, permission.user)
        .u32(8, permission.group)
        .u32(12, permission.creator)
        .u32(16, permission.creator_group)
        .u32(20, mode)
        .u16(24, permission.sequence as u16)
}

/// Reads what IPC_SET changes from a struct ipc64_perm: owner and mode.
pub fn changes(bytes: &[u8; PERMISSION_SIZE]) -> Result<((u32, u32), u32)> {
    Ok(((bytes.u32_at(4)?, bytes.u32_at(8)?), bytes.u32_at(20)?))
}

/// The limit that a struct msqid64_ds sets.
pub fn queue_limit(bytes: &[u8; QUEUE_SIZE]) -> Result<u64> {
    bytes.u64_at(QUEUE_LIMIT)
}

fn mode(segment: &Segment) -> u32 {
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    segment.permission.mode | bit(segment.is_removed(), REMOVED) | bit(segment.is_locked, LOCKED)
}

/// Writes a struct shmid64_ds.
pub fn segment(segment: &Segment) -> [u8; 112] {
    permission(&segment.permission, mode(segment))
        .u64(48, segment.size)
        .i64(56, segment.attached)
        .i64(64, segment.detached)
        .i64(72, segment.changed)
        .u32(80, segment.creator)
        .u32(84, segment.user)
        .u64(88, segment.attachments())
        .done()
}

/// Writes a struct semid64_ds.
pub fn set(set: &Set) -> [u8; 104] {
    permission(&set.permission, set.permission.mode)
        .i64(48, set.operated)
        .i64(64, set.changed)
        .u64(80, set.semaphores.len() as u64)
        .done()
}

/// Writes a struct msqid64_ds.
pub fn queue(queue: &Queue) -> [u8; QUEUE_SIZE] {
    permission(&queue.permission, queue.permission.mode)
        .i64(48, queue.sent)
        .i64(56, queue.received)
        .i64(64, queue.changed)
        .u64(72, queue.bytes)
        .u64(80, queue.len() as u64)
        .u64(QUEUE_LIMIT, queue.limit)
        .u32(96, queue.sender)
        .u32(100, queue.receiver)
        .done()
}

/// The text of /proc/sysvipc/shm.
pub fn segments_text(objects: &SystemV) -> String {
    let mut text = String::from(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
         atime      dtime      ctime                   rss                  swap\n",
    );
    objects.segments.with(|segments| {
        for (id, segment) in segments.iter() {
            let owner = &segment.permission;
            let _ = writeln!(
                text,
                "{:10} {id:10}  {:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {:21} {:21}",
                owner.key,
                mode(segment),
                segment.size,
                segment.creator,
                segment.user,
                segment.attachments(),
                owner.user,
                owner.group,
                owner.creator,
                owner.creator_group,
                segment.attached,
                segment.detached,
                segment.changed,
                0,
                0,
            );
        }
    });
    text
}

/// The text of /proc/sysvipc/sem.
pub fn sets_text(objects: &SystemV) -> String {
    let mut text = String::from(
        "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n",
    );
    objects.semaphores.with(|sets| {
        for (id, set) in sets.iter() {
            let owner = &set.permission;
            let _ = writeln!(
                text,
                "{:10} {id:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
                owner.key,
                owner.mode,
                set.semaphores.len(),
                owner.user,
                owner.group,
                owner.creator,
                owner.creator_group,
                set.operated,
                set.changed,
            );
        }
    });
    text
}

/// The text of /proc/sysvipc/msg.
pub fn queues_text(objects: &SystemV) -> String {
    let mut text = String::from(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      \
         stime      rtime      ctime\n",
    );
    objects.queues.with(|queues| {
        for (id, queue) in queues.iter() {
            let owner = &queue.permission;
            let _ = writeln!(
                text,
                "{:10} {id:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
                owner.key,
                owner.mode,
                queue.bytes,
                queue.len(),
                queue.sender,
                queue.receiver,
                owner.user,
                owner.group,
                owner.creator,
                owner.creator_group,
                queue.sent,
                queue.received,
                queue.changed,
            );
        }
    });
    text
}
