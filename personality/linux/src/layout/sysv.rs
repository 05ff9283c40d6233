//! Layouts of System V objects (linux/ipc.h, asm-generic/{shm,msg}buf.h, asm/sembuf.h), and the
//! texts of /proc/sysvipc.

use super::{Fields, Writer};
use alloc::string::String;
use core::fmt::Write;
use unix::Result;
use unix::namespace::UserNamespace;
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

/// What users and processes are called where objects are shown.
pub struct Sight<'a> {
    /// The namespace of users of the process that looks.
    pub users: &'a UserNamespace,
    /// The number of a process there.
    pub number: &'a (dyn Fn(u32) -> u32 + Sync),
}

impl Sight<'_> {
    /// The user and the group that own an object, and those that made it.
    fn owners(&self, permission: &Permission) -> [u32; 4] {
        let Permission { user, group, creator, creator_group, .. } = *permission;
        let (shown_user, shown_group) = (|id| self.users.shown_user(id), |id| self.users.shown_group(id));
        [shown_user(user), shown_group(group), shown_user(creator), shown_group(creator_group)]
    }
}

fn permission<const N: usize>(permission: &Permission, mode: u32, sight: &Sight<'_>) -> Writer<N> {
    let [user, group, creator, creator_group] = sight.owners(permission);
    Writer::new()
        .i32(0, permission.key)
        .u32(4, user)
        .u32(8, group)
        .u32(12, creator)
        .u32(16, creator_group)
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
pub fn segment(segment: &Segment, sight: &Sight<'_>) -> [u8; 112] {
    permission(&segment.permission, mode(segment), sight)
        .u64(48, segment.size)
        .i64(56, segment.attached)
        .i64(64, segment.detached)
        .i64(72, segment.changed)
        .u32(80, (sight.number)(segment.creator))
        .u32(84, (sight.number)(segment.user))
        .u64(88, segment.attachments())
        .done()
}

/// Writes a struct semid64_ds.
pub fn set(set: &Set, sight: &Sight<'_>) -> [u8; 104] {
    permission(&set.permission, set.permission.mode, sight)
        .i64(48, set.operated)
        .i64(64, set.changed)
        .u64(80, set.semaphores.len() as u64)
        .done()
}

/// Writes a struct msqid64_ds.
pub fn queue(queue: &Queue, sight: &Sight<'_>) -> [u8; QUEUE_SIZE] {
    permission(&queue.permission, queue.permission.mode, sight)
        .i64(48, queue.sent)
        .i64(56, queue.received)
        .i64(64, queue.changed)
        .u64(72, queue.bytes)
        .u64(80, queue.len() as u64)
        .u64(QUEUE_LIMIT, queue.limit)
        .u32(96, (sight.number)(queue.sender))
        .u32(100, (sight.number)(queue.receiver))
        .done()
}

/// The text of /proc/sysvipc/shm.
pub fn segments_text(objects: &SystemV, sight: &Sight<'_>) -> String {
    let mut text = String::from(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
         atime      dtime      ctime                   rss                  swap\n",
    );
    objects.segments.with(|segments| {
        for (id, segment) in segments.iter() {
            let owner = &segment.permission;
            let [user, group, creator, creator_group] = sight.owners(owner);
            let _ = writeln!(
                text,
                "{:10} {id:10}  {:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {:21} {:21}",
                owner.key,
                mode(segment),
                segment.size,
                (sight.number)(segment.creator),
                (sight.number)(segment.user),
                segment.attachments(),
                user,
                group,
                creator,
                creator_group,
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
pub fn sets_text(objects: &SystemV, sight: &Sight<'_>) -> String {
    let mut text = String::from(
        "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n",
    );
    objects.semaphores.with(|sets| {
        for (id, set) in sets.iter() {
            let owner = &set.permission;
            let [user, group, creator, creator_group] = sight.owners(owner);
            let _ = writeln!(
                text,
                "{:10} {id:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
                owner.key,
                owner.mode,
                set.semaphores.len(),
                user,
                group,
                creator,
                creator_group,
                set.operated,
                set.changed,
            );
        }
    });
    text
}

/// The text of /proc/sysvipc/msg.
pub fn queues_text(objects: &SystemV, sight: &Sight<'_>) -> String {
    let mut text = String::from(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      \
         stime      rtime      ctime\n",
    );
    objects.queues.with(|queues| {
        for (id, queue) in queues.iter() {
            let owner = &queue.permission;
            let [user, group, creator, creator_group] = sight.owners(owner);
            let _ = writeln!(
                text,
                "{:10} {id:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
                owner.key,
                owner.mode,
                queue.bytes,
                queue.len(),
                (sight.number)(queue.sender),
                (sight.number)(queue.receiver),
                user,
                group,
                creator,
                creator_group,
                queue.sent,
                queue.received,
                queue.changed,
            );
        }
    });
    text
}
