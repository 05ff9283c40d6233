//! Advisory locks: fcntl(2) record locks (of processes and of open file descriptions) and flock(2).

use crate::account::{Account, Charge, Kept};
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::process_context::ProcessId;
use crate::sync::SpinLock;
use crate::{AttemptError, Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The owner of an advisory lock on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockOwner {
    /// A descriptor table, for the record locks of a process (F_SETLK).
    Table(u64),
    /// An open file description (F_OFD_SETLK, flock).
    Description(u64),
}

/// The accesses that a lock excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// The lock excludes writers (F_RDLCK, LOCK_SH).
    Shared,
    /// The lock excludes readers and writers (F_WRLCK, LOCK_EX).
    Exclusive,
}

/// The bytes `start..end` of a file; an `end` of `u64::MAX` means the end of the file, however far
/// that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRange {
    /// Offset of the first byte of the range.
    pub start: u64,
    /// Offset after the last byte of the range.
    pub end: u64,
}

impl LockRange {
    /// The range that is the whole file.
    pub const ALL: LockRange = LockRange { start: 0, end: u64::MAX };

    /// The range of an flock structure (fcntl(2)) that begins `length` bytes before `start` if the
    /// length is negative, or reaches to the end of the file if it is 0.
    pub fn new(start: i64, length: i64) -> Result<LockRange> {
        let end = start.checked_add(length).ok_or(Error::EOVERFLOW)?;
        let (start, end) = match length {
            0 => (start, None),
            1.. => (start, Some(end)),
            _ => (end, Some(start)),
        };
        let start = u64::try_from(start).map_err(|_| Error::EINVAL)?;
        Ok(LockRange { start, end: end.map_or(u64::MAX, |end| end as u64) })
    }

    fn overlaps(&self, other: &LockRange) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// What a lock was made by. It decides nothing, but is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockMaker {
    /// The process.
    pub process: ProcessId,
    /// The id of the open file.
    pub file: u64,
}

/// A lock as F_GETLK describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLock {
    /// The owner that holds the lock.
    pub owner: LockOwner,
    /// The process and the open file that made the lock.
    pub by: LockMaker,
    /// The accesses that the lock excludes.
    pub kind: LockKind,
    /// The bytes of the file that the lock covers.
    pub range: LockRange,
}

/// A lock that is held, with its charge.
struct Held {
    lock: RecordLock,
    /// The lock's memory, charged to the account of the user that made the lock. Locks of whole
    /// files have no charge: there are no more of them than open files, which are charged already.
    _charge: Option<Charge>,
}

/// The locks of one vnode.
///
/// In both lists the locks of an owner stand together, by their offsets, and the owners in the
/// order in which they got their first locks. F_GETLK answers the first lock in this order that
/// conflicts.
#[derive(Default)]
pub struct LockTable {
    records: SpinLock<Vec<Held>>,
    whole: SpinLock<Vec<Held>>,
    released: PollQueue,
}

/// How many locks one file can have.
const LOCKS_MAXIMUM: usize = 16384;
/// How many bytes of memory are charged for one lock.
const LOCK_BYTES: u64 = 128;

impl LockTable {
    /// Takes a record lock for a user, replacing what the owner has in that range, or releases the
    /// range if `kind` is `None`. `ENOLCK` if the file or the user has too many locks. Does not
    /// block.
    pub fn try_set(
        &self,
        account: &Arc<Account>,
        owner: LockOwner,
        by: LockMaker,
        kind: Option<LockKind>,
        range: LockRange,
    ) -> Result<(), AttemptError> {
        let shrunk = set(&self.records, Some(account), owner, by, kind, range)?;
        if shrunk {
            self.released_by(owner);
        }
        Ok(())
    }

    /// To be called when `owner` has released a lock. Owners that wait for it then look at the
    /// table again, and until they have done so they are not recorded as waiting for it.
    fn released_by(&self, owner: LockOwner) {
        Waiting::no_more(self.id(), owner);
        self.released.wake(Readiness::READ);
    }

    fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Takes a record lock, waiting for it. `EDEADLK` if the holders of conflicting locks wait for
    /// this owner.
    pub async fn set(
        &self,
        account: &Arc<Account>,
        owner: LockOwner,
        by: LockMaker,
        kind: LockKind,
        range: LockRange,
    ) -> Result<()> {
        let _waiting = Waiting::register(owner);
        let done = until_ready(&self.released, Readiness::READ, || {
            loop {
                match self.try_set(account, owner, by, Some(kind), range) {
                    Err(AttemptError::WouldBlock) => {}
                    done => return done,
                }
                // If no lock conflicts any more, the loop tries to set the lock again.
                if let Some(holder) = self.conflict(owner, kind, range) {
                    Waiting::on(self.id(), owner, holder.owner)?;
                    // The holder may have released its lock after `conflict` was called and before
                    // the wait was recorded. The release has then not removed this record, so look
                    // at the table again.
                    if self.conflict(owner, kind, range).is_some_and(|now| now.owner == holder.owner) {
                        return Err(AttemptError::WouldBlock);
                    }
                }
            }
        })
        .await;
        finish(done)
    }

    /// The first lock that conflicts with a lock of `owner` of this kind and range (F_GETLK).
    pub fn conflict(&self, owner: LockOwner, kind: LockKind, range: LockRange) -> Option<RecordLock> {
        first_conflict(&self.records.lock(), owner, kind, range)
    }

    /// Takes a lock of the whole file (flock(2)), or unlocks it if `kind` is `None`. Does not
    /// block. A change of the kind releases the old lock first.
    pub fn try_lock_whole(
        &self,
        owner: LockOwner,
        by: LockMaker,
        kind: Option<LockKind>,
    ) -> Result<(), AttemptError> {
        match set(&self.whole, None, owner, by, kind, LockRange::ALL) {
            Ok(shrunk) => {
                if shrunk {
                    self.released.wake(Readiness::READ);
                }
                Ok(())
            }
            Err(AttemptError::WouldBlock) => {
                if set(&self.whole, None, owner, by, None, LockRange::ALL)? {
                    self.released.wake(Readiness::READ);
                }
                Err(AttemptError::WouldBlock)
            }
            failed => failed.map(drop),
        }
    }

    /// Takes a lock of the whole file (flock(2)), waiting for it.
    pub async fn lock_whole(&self, owner: LockOwner, by: LockMaker, kind: Option<LockKind>) -> Result<()> {
        finish(until_ready(&self.released, Readiness::READ, || self.try_lock_whole(owner, by, kind)).await)
    }

    /// Releases all locks on the file that `owner` holds.
    pub fn release(&self, owner: LockOwner) {
        let mut shrunk = false;
        for list in [&self.records, &self.whole] {
            let mut list = list.lock();
            let before = list.len();
            list.retain(|held| held.lock.owner != owner);
            shrunk |= list.len() != before;
        }
        if shrunk {
            self.released_by(owner);
        }
    }

    /// The locks that the open file with this id made for `table` or for itself: first that of the
    /// whole file.
    pub fn made_by(&self, file: u64, table: LockOwner) -> Vec<(RecordLock, bool)> {
        let owners = [table, LockOwner::Description(file)];
        let mut made = Vec::new();
        for (list, is_whole) in [(&self.whole, true), (&self.records, false)] {
            let list = list.lock();
            let locks = list.iter().map(|held| held.lock);
            made.extend(
                locks
                    .filter(|lock| lock.by.file == file && owners.contains(&lock.owner))
                    .map(|lock| (lock, is_whole)),
            );
        }
        made
    }

    /// All locks of the file.
    #[cfg(test)]
    pub(crate) fn list(&self) -> Vec<RecordLock> {
        let mut all: Vec<RecordLock> = self.records.lock().iter().map(|held| held.lock).collect();
        all.extend(self.whole.lock().iter().map(|held| held.lock));
        all
    }
}

fn finish(done: Result<(), AttemptError>) -> Result<()> {
    match done {
        Ok(()) => Ok(()),
        Err(AttemptError::Failed(error)) => Err(error),
        Err(AttemptError::WouldBlock | AttemptError::NotResident) => Err(Error::EAGAIN),
    }
}

fn first_conflict(list: &[Held], owner: LockOwner, kind: LockKind, range: LockRange) -> Option<RecordLock> {
    list.iter().map(|held| held.lock).find(|lock| {
        lock.owner != owner
            && lock.range.overlaps(&range)
            && (kind == LockKind::Exclusive || lock.kind == LockKind::Exclusive)
    })
}

/// Replaces the locks of `owner` in `range`; true if another owner may now get a lock.
fn set(
    list: &SpinLock<Vec<Held>>,
    account: Option<&Arc<Account>>,
    owner: LockOwner,
    by: LockMaker,
    kind: Option<LockKind>,
    range: LockRange,
) -> Result<bool, AttemptError> {
    let mut list = list.lock();
    if let Some(kind) = kind
        && first_conflict(&list, owner, kind, range).is_some()
    {
        return Err(AttemptError::WouldBlock);
    }
    // Unlocking in the middle of a lock splits it in two and adds one or two elements; other
    // unlocking adds none, and always succeeds.
    let surrounds = |lock: RecordLock| lock.range.start < range.start && range.end < lock.range.end;
    let grows = kind.is_some() || list.iter().any(|held| held.lock.owner == owner && surrounds(held.lock));
    let has_room = account.is_none_or(|account| account.has_memory(2 * LOCK_BYTES));
    if grows && (list.len() + 2 > LOCKS_MAXIMUM || !has_room || list.try_reserve(2).is_err()) {
        return Err(Error::ENOLCK.into());
    }
    let held = |lock| {
        let charge = account.and_then(|account| account.charge(Kept::ServerMemory, LOCK_BYTES, |_| true));
        Held { lock, _charge: charge }
    };
    let mut shrunk = false;
    let mut index = list.iter().position(|held| held.lock.owner == owner).unwrap_or(list.len());
    let first = index;
    let (mut merged, mut maker) = (range, None);
    while let Some(lock) = list.get(index).map(|held| held.lock).filter(|lock| lock.owner == owner) {
        let adjacent = lock.range.start <= merged.end && merged.start <= lock.range.end;
        if Some(lock.kind) == kind && adjacent {
            merged.start = merged.start.min(lock.range.start);
            merged.end = merged.end.max(lock.range.end);
            // The lock that was there grows.
            maker = maker.or(Some(lock.by));
            list.remove(index);
        } else if lock.range.overlaps(&range) {
            shrunk |= lock.kind == LockKind::Exclusive || kind.is_none();
            list.remove(index);
            for (start, end) in [(lock.range.start, range.start), (range.end, lock.range.end)] {
                if start < end {
                    list.insert(index, held(RecordLock { range: LockRange { start, end }, ..lock }));
                    index += 1;
                }
            }
        } else {
            index += 1;
        }
    }
    if let Some(kind) = kind {
        let after = list[first..index].partition_point(|held| held.lock.range.start < merged.start);
        list.insert(first + after, held(RecordLock { owner, by: maker.unwrap_or(by), kind, range: merged }));
    }
    Ok(shrunk)
}

/// Which owner waits for which other one, across all files. An owner waits for at most one lock at
/// a time per thread. A cycle is a deadlock of the owners in it.
static WAITS: SpinLock<Vec<Wait>> = SpinLock::new(Vec::new());

/// Records that `waiter` waits for a lock of `holder` in the lock table at address `table`.
struct Wait {
    table: usize,
    waiter: LockOwner,
    holder: LockOwner,
}

/// Keeps the entry of one waiter in [`WAITS`], and removes it when dropped.
struct Waiting(LockOwner);

impl Waiting {
    fn register(owner: LockOwner) -> Waiting {
        Waiting(owner)
    }

    /// Records that `owner` is about to wait for `holder`. `EDEADLK` if that closes a cycle.
    fn on(table: usize, owner: LockOwner, holder: LockOwner) -> Result<()> {
        let mut waits = WAITS.lock();
        waits.retain(|wait| wait.waiter != owner);
        let mut next = holder;
        // A chain of waiters is no longer than the number of waiters.
        for _ in 0..=waits.len() {
            if next == owner {
                return Err(Error::EDEADLK);
            }
            match waits.iter().find(|wait| wait.waiter == next) {
                Some(wait) => next = wait.holder,
                None => break,
            }
        }
        // An open file description has no process that could be blocked, so the graph has only
        // tables.
        if matches!(owner, LockOwner::Table(_)) {
            waits.try_reserve(1).map_err(|_| Error::ENOLCK)?;
            waits.push(Wait { table, waiter: owner, holder });
        }
        Ok(())
    }

    /// Removes the records of owners that wait for a lock of `holder` in this table. An owner that
    /// finds that it still has to wait records that again.
    fn no_more(table: usize, holder: LockOwner) {
        WAITS.lock().retain(|wait| wait.table != table || wait.holder != holder);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITS.lock().retain(|wait| wait.waiter != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Settings;
    use crate::testing::{Task, account};
    use proptest::prelude::*;

    const A: LockOwner = LockOwner::Table(1_000_001);
    const B: LockOwner = LockOwner::Table(1_000_002);

    fn by(process: u32) -> LockMaker {
        LockMaker { process, file: 0 }
    }

    fn range(start: u64, end: u64) -> LockRange {
        LockRange { start, end }
    }

    #[test]
    fn lock_ranges_follow_fcntl() {
        assert_eq!(LockRange::new(10, 5), Ok(range(10, 15)));
        assert_eq!(LockRange::new(10, -5), Ok(range(5, 10)));
        assert_eq!(LockRange::new(10, 0), Ok(range(10, u64::MAX)));
        assert_eq!(LockRange::new(3, -5), Err(Error::EINVAL));
        assert_eq!(LockRange::new(i64::MAX, 2), Err(Error::EOVERFLOW));
    }

    #[test]
    fn conflicting_locks_wait_for_their_holder() {
        let table = Arc::new(LockTable::default());
        table.try_set(&account(), A, by(1), Some(LockKind::Exclusive), range(0, 10)).unwrap();
        assert_eq!(
            table.try_set(&account(), B, by(2), Some(LockKind::Shared), range(5, 6)),
            Err(AttemptError::WouldBlock)
        );
        table.try_set(&account(), B, by(2), Some(LockKind::Shared), range(10, 20)).unwrap();
        assert_eq!(table.conflict(B, LockKind::Shared, range(0, 30)).unwrap().by.process, 1);
        let copy = table.clone();
        let mut waiter =
            Task::new(async move { copy.set(&account(), B, by(2), LockKind::Shared, range(5, 6)).await });
        waiter.waits();
        table.try_set(&account(), A, by(1), None, range(0, 10)).unwrap();
        assert_eq!(waiter.finish(), Ok(()));
    }

    #[test]
    fn the_first_conflicting_lock_of_an_owner_is_the_one_with_the_lowest_offset() {
        let table = LockTable::default();
        let set =
            |owner, kind, from, to| table.try_set(&account(), owner, by(1), kind, range(from, to)).unwrap();
        for start in [40, 0, 60, 20] {
            set(A, Some(LockKind::Exclusive), start, start + 10);
        }
        let first = |from| table.conflict(B, LockKind::Shared, range(from, 100)).unwrap().range;
        assert_eq!((first(0), first(10), first(25)), (range(0, 10), range(20, 30), range(20, 30)));
        // A change of the kind in the middle of a lock leaves the parts in their order.
        set(A, Some(LockKind::Shared), 22, 24);
        let conflict = |from| table.conflict(B, LockKind::Exclusive, range(from, 100)).unwrap();
        assert_eq!(
            (first(20), conflict(22).kind, first(22)),
            (range(20, 22), LockKind::Shared, range(24, 30))
        );
        set(A, None, 0, 30);
        assert_eq!(first(0), range(40, 50));
    }

    #[test]
    fn a_lock_that_grows_is_still_that_of_the_open_file_that_made_it() {
        let table = LockTable::default();
        let set = |file, kind, from, to| {
            let by = LockMaker { process: 1, file };
            table.try_set(&account(), A, by, Some(kind), range(from, to)).unwrap();
        };
        set(7, LockKind::Shared, 10, 15);
        set(8, LockKind::Shared, 15, 20);
        set(8, LockKind::Exclusive, 30, 40);
        let made = |file| table.made_by(file, A).into_iter().map(|(lock, _)| lock.range).collect::<Vec<_>>();
        assert_eq!((made(7), made(8)), (vec![range(10, 20)], vec![range(30, 40)]));
        assert!(table.made_by(7, B).is_empty(), "the locks of another process");
        let file = LockOwner::Description(7);
        table.try_lock_whole(file, LockMaker { process: 2, file: 7 }, Some(LockKind::Shared)).unwrap();
        let all = table.made_by(7, A);
        assert_eq!(
            all.iter().map(|(lock, is_whole)| (lock.by.process, *is_whole)).collect::<Vec<_>>(),
            [(2, true), (1, false)]
        );
    }

    #[test]
    fn a_lock_that_would_deadlock_is_refused() {
        let (a, b) = (LockOwner::Table(2_000_001), LockOwner::Table(2_000_002));
        let table = Arc::new(LockTable::default());
        table.try_set(&account(), a, by(1), Some(LockKind::Exclusive), range(0, 1)).unwrap();
        table.try_set(&account(), b, by(2), Some(LockKind::Exclusive), range(1, 2)).unwrap();
        let copy = table.clone();
        let mut waiter =
            Task::new(async move { copy.set(&account(), a, by(1), LockKind::Exclusive, range(1, 2)).await });
        waiter.waits();
        let copy = table.clone();
        let mut second =
            Task::new(async move { copy.set(&account(), b, by(2), LockKind::Exclusive, range(0, 1)).await });
        assert_eq!(second.finish(), Err(Error::EDEADLK));
        table.release(b);
        assert_eq!(waiter.finish(), Ok(()));
    }

    #[test]
    fn an_owner_that_got_its_lock_and_has_not_run_yet_counts_as_waiting_for_none() {
        let (a, b) = (LockOwner::Table(3_000_001), LockOwner::Table(3_000_002));
        let table = Arc::new(LockTable::default());
        table.try_set(&account(), a, by(1), Some(LockKind::Exclusive), range(0, 1)).unwrap();
        table.try_set(&account(), b, by(2), Some(LockKind::Exclusive), range(1, 2)).unwrap();
        let copy = table.clone();
        let mut first =
            Task::new(async move { copy.set(&account(), a, by(1), LockKind::Exclusive, range(1, 2)).await });
        first.waits();
        // The second owner releases the lock that the first waits for. Before the first has run,
        // the second asks for the lock that the first holds.
        table.try_set(&account(), b, by(2), None, range(1, 2)).unwrap();
        let copy = table.clone();
        let mut second =
            Task::new(async move { copy.set(&account(), b, by(2), LockKind::Exclusive, range(0, 1)).await });
        second.waits();
        assert_eq!(first.finish(), Ok(()));
        table.release(a);
        assert_eq!(second.finish(), Ok(()));
    }

    #[test]
    fn an_flock_upgrade_releases_the_old_lock_first() {
        let table = LockTable::default();
        table.try_lock_whole(A, by(1), Some(LockKind::Shared)).unwrap();
        table.try_lock_whole(B, by(1), Some(LockKind::Shared)).unwrap();
        assert_eq!(table.try_lock_whole(A, by(1), Some(LockKind::Exclusive)), Err(AttemptError::WouldBlock));
        table.try_lock_whole(B, by(1), Some(LockKind::Exclusive)).unwrap();
    }

    proptest! {
        /// Record locks behave as a model does that has one cell for each byte.
        #[test]
        fn record_locks_match_a_byte_model(
            steps in proptest::collection::vec((0u64..3, 0u8..3, 0u64..16, 1u64..8), 1..40)
        ) {
            let table = LockTable::default();
            let mut model = [[None; 3]; 24];
            for (owner, kind, start, length) in steps {
                let kind = [None, Some(LockKind::Shared), Some(LockKind::Exclusive)][kind as usize];
                let cells = start as usize..(start + length) as usize;
                let conflict = kind.is_some_and(|kind| model[cells.clone()].iter().any(|cell: &[Option<LockKind>; 3]| {
                    (0..3).any(|other| other != owner as usize && cell[other].is_some_and(|held| {
                        held == LockKind::Exclusive || kind == LockKind::Exclusive
                    }))
                }));
                let done = table.try_set(&account(), LockOwner::Table(owner), by(0), kind, range(start, start + length));
                prop_assert_eq!(done.is_err(), conflict);
                if !conflict {
                    model[cells].iter_mut().for_each(|cell| cell[owner as usize] = kind);
                }
                for (byte, cell) in model.iter().enumerate() {
                    for owner in 0..3 {
                        let held: Vec<_> = table.list().into_iter().filter(|lock| {
                            lock.owner == LockOwner::Table(owner) && lock.range.start <= byte as u64 && (byte as u64) < lock.range.end
                        }).collect();
                        prop_assert!(held.len() <= 1);
                        prop_assert_eq!(held.first().map(|lock| lock.kind), cell[owner as usize]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_user_at_the_limit_of_locks_can_release_them() {
        // The account has memory for five locks. A change asks for room for two more, so there can
        // be four.
        let user = Account::new(1000, Settings::new(2 * 5 * LOCK_BYTES));
        let table = LockTable::default();
        let set = |kind, start, end| table.try_set(&user, A, by(1), kind, range(start, end));
        let exclusive = Some(LockKind::Exclusive);
        for start in [0, 10, 20, 30] {
            assert_eq!(set(exclusive, start, start + 5), Ok(()));
        }
        assert_eq!(set(exclusive, 40, 45), Err(Error::ENOLCK.into()));
        assert_eq!(set(None, 1, 2), Err(Error::ENOLCK.into()), "that would make two of one");
        assert_eq!(table.try_set(&account(), B, by(1), exclusive, range(40, 45)), Ok(()), "another user's");
        assert_eq!(set(None, 0, 5), Ok(()));
        assert_eq!(set(None, 11, 12), Ok(()), "now it may be split");
        assert_eq!(user.amount(Kept::ServerMemory), 4 * LOCK_BYTES);
        table.release(A);
        assert_eq!(user.amount(Kept::ServerMemory), 0);
    }
}
