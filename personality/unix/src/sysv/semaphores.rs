//! Sets of semaphores (semop(2)), with adjustments at the end of a process (SEM_UNDO).

use super::User;
use super::objects::{Access, Find, Object, Permission, Registry};
use crate::account::Charge;
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::sync::SpinLock;
use crate::{AttemptError, Error, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most sets of semaphores (SEMMNI).
pub const SETS_LIMIT: u32 = 32000;
/// The most semaphores of a set (SEMMSL).
pub const SIZE_LIMIT: usize = 32000;
/// The most operations of one call (SEMOPM).
pub const OPERATIONS_LIMIT: usize = 500;
/// The largest value of a semaphore (SEMVMX).
pub const VALUE_LIMIT: i32 = 32767;

/// One operation on a semaphore of a set (struct sembuf).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The number of the semaphore in its set.
    pub number: u16,
    /// What is added to its value; 0 waits until the value is 0.
    pub change: i16,
    /// The call fails with `EAGAIN` instead of waiting.
    pub no_wait: bool,
    /// The change is taken back when the process ends.
    pub undo: bool,
}

/// One semaphore.
#[derive(Clone, Copy, Debug, Default)]
pub struct Semaphore {
    /// Its value.
    pub value: i32,
    /// The process that changed it last.
    pub process: u32,
    /// How many callers wait until the value increases.
    pub waits_for_more: u32,
    /// How many callers wait until the value is 0.
    pub waits_for_zero: u32,
}

/// A set of semaphores.
pub struct Set {
    /// The owner of the set, and what others may do with it.
    pub permission: Permission,
    /// The semaphores of the set.
    pub semaphores: Vec<Semaphore>,
    /// When an operation was done last, in seconds since 1970; 0 for never.
    pub operated: i64,
    /// When the set was made or changed otherwise.
    pub changed: i64,
    queue: Arc<PollQueue>,
    _charge: Charge,
}

impl Object for Set {
    fn permission(&self) -> &Permission {
        &self.permission
    }
}

/// All sets of semaphores.
pub struct Semaphores(SpinLock<State>);

struct State {
    sets: Registry<Set>,
    /// What is added to each semaphore of a set when a process ends, by process and set.
    undo: Undo,
}

type Undo = BTreeMap<(u32, i32), (Vec<i32>, Charge)>;

impl Default for Semaphores {
    fn default() -> Semaphores {
        Semaphores(SpinLock::new(State { sets: Registry::new(SETS_LIMIT), undo: Undo::new() }))
    }
}

/// For what a call has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    More(u16),
    Zero(u16),
}

impl Semaphores {
    /// Reads or changes the registry, which is locked meanwhile.
    pub fn with<R>(&self, work: impl FnOnce(&mut Registry<Set>) -> R) -> R {
        work(&mut self.0.lock().sets)
    }

    /// The id of the set that `find` describes, of at least `size` semaphores (semget(2)).
    /// `EINVAL`, `ENOSPC`, and the errors of a look-up.
    pub fn get(&self, user: &User, find: Find, size: usize) -> Result<i32> {
        self.with(|sets| {
            let large_enough =
                |set: &Set| if size > set.semaphores.len() { Err(Error::EINVAL) } else { Ok(()) };
            if size > SIZE_LIMIT {
                return Err(Error::EINVAL);
            }
            if let Some(id) = sets.find(user, find, large_enough)? {
                return Ok(id);
            }
            if size == 0 {
                return Err(Error::EINVAL);
            }
            let mut semaphores = Vec::new();
            semaphores.try_reserve_exact(size).map_err(|_| Error::ENOMEM)?;
            semaphores.resize(size, Semaphore::default());
            let charge = user.charge((size * size_of::<Semaphore>()) as u64)?;
            sets.add(user, find, |permission| Set {
                permission,
                semaphores,
                operated: 0,
                changed: user.now,
                queue: Arc::new(PollQueue::new()),
                _charge: charge,
            })
        })
    }

    /// Does all operations, or waits until that is possible (semop(2)). The future may be dropped.
    ///
    /// `EINVAL`, `EFBIG`, `EACCES`, `ERANGE`, `EAGAIN`; `EIDRM` if the set has been removed
    /// meanwhile.
    pub async fn operate(&self, user: &User, id: i32, operations: &[Operation]) -> Result<()> {
        let queue = self.with(|sets| {
            let set = sets.get(id)?;
            let count = set.semaphores.len();
            if operations.iter().any(|operation| usize::from(operation.number) >= count) {
                return Err(Error::EFBIG);
            }
            let changes = operations.iter().any(|operation| operation.change != 0);
            set.permission.check(user, if changes { Access::Write } else { Access::Read })?;
            Ok(set.queue.clone())
        })?;
        let mut waiting = Waiting { semaphores: self, id, obstacle: None };
        let attempt = || {
            self.attempt(user, id, operations, &mut waiting).map_err(|error| match error {
                // The set was there when the call began.
                AttemptError::Failed(Error::EINVAL) => AttemptError::Failed(Error::EIDRM),
                error => error,
            })
        };
        match until_ready(&queue, Readiness::READ, attempt).await {
            Ok(()) => Ok(()),
            Err(AttemptError::Failed(error)) => Err(error),
            Err(_) => Err(Error::EAGAIN),
        }
    }

    fn attempt(
        &self,
        user: &User,
        id: i32,
        operations: &[Operation],
        waiting: &mut Waiting<'_>,
    ) -> Result<(), AttemptError> {
        let (done, queue) = {
            let State { sets, undo } = &mut *self.0.lock();
            let set = sets.get_mut(id)?;
            (set.try_all(user, id, operations, undo)?, set.queue.clone())
        };
        match done {
            None => {
                queue.wake(Readiness::READ);
                Ok(())
            }
            Some((_, true)) => Err(Error::EAGAIN.into()),
            Some((obstacle, false)) => {
                waiting.set(Some(obstacle));
                Err(AttemptError::WouldBlock)
            }
        }
    }

    /// Sets the value of one semaphore (SETVAL), or of all (`None`, SETALL). `ERANGE`, `EINVAL`,
    /// `EACCES`.
    pub fn set(&self, user: &User, id: i32, number: Option<usize>, values: &[i32]) -> Result<()> {
        if values.iter().any(|value| !(0..=VALUE_LIMIT).contains(value)) {
            return Err(Error::ERANGE);
        }
        let queue = {
            let State { sets, undo } = &mut *self.0.lock();
            let set = sets.get_mut(id)?;
            set.permission.check(user, Access::Write)?;
            let first = number.unwrap_or(0);
            let end = first.checked_add(values.len()).ok_or(Error::EINVAL)?;
            let semaphores = set.semaphores.get_mut(first..end).ok_or(Error::EINVAL)?;
            for (semaphore, value) in semaphores.iter_mut().zip(values) {
                (semaphore.value, semaphore.process) = (*value, user.process);
            }
            for (_, (changes, _)) in undo.iter_mut().filter(|((_, set), _)| *set == id) {
                changes[first..end].fill(0);
            }
            set.changed = user.now;
            set.queue.clone()
        };
        queue.wake(Readiness::READ);
        Ok(())
    }

    /// Removes a set; callers that wait fail (IPC_RMID). `EINVAL`, `EPERM`.
    pub fn remove(&self, user: &User, id: i32) -> Result<()> {
        let set = {
            let State { sets, undo } = &mut *self.0.lock();
            sets.get(id)?.permission.check_owner(user)?;
            undo.retain(|(_, set), _| *set != id);
            sets.remove(id)?
        };
        set.queue.wake(Readiness::READ);
        Ok(())
    }

    /// Takes back what process `process`, which has ended, wanted to be taken back.
    pub fn process_ended(&self, process: u32, now: i64) {
        let mut woken = Vec::new();
        {
            let State { sets, undo } = &mut *self.0.lock();
            let own = (process, i32::MIN)..=(process, i32::MAX);
            let ids: Vec<i32> = undo.range(own).map(|((_, id), _)| *id).collect();
            for id in ids {
                let Some((changes, _)) = undo.remove(&(process, id)) else { continue };
                let Ok(set) = sets.get_mut(id) else { continue };
                for (semaphore, change) in set.semaphores.iter_mut().zip(changes) {
                    if change != 0 {
                        semaphore.value = (semaphore.value + change).clamp(0, VALUE_LIMIT);
                        semaphore.process = process;
                    }
                }
                set.operated = now;
                woken.push(set.queue.clone());
            }
        }
        woken.iter().for_each(|queue| queue.wake(Readiness::READ));
    }
}

impl Set {
    /// Does all operations, or none: then it says which one has to wait, and whether it must not.
    fn try_all(
        &mut self,
        user: &User,
        id: i32,
        operations: &[Operation],
        undo: &mut Undo,
    ) -> Result<Option<(Obstacle, bool)>> {
        let (own, count) = ((user.process, id), self.semaphores.len());
        let undoes = operations.iter().any(|operation| operation.undo && operation.change != 0);
        if undoes && !undo.contains_key(&own) {
            let charge = user.charge((count * size_of::<i32>()) as u64)?;
            let mut changes = Vec::new();
            changes.try_reserve_exact(count).map_err(|_| Error::ENOMEM)?;
            changes.resize(count, 0);
            undo.insert(own, (changes, charge));
        }
        let mut changed: Vec<(usize, i32)> = Vec::new();
        let mut result = Ok(None);
        for operation in operations {
            let index = usize::from(operation.number);
            let value = self.semaphores.get(index).ok_or(Error::EFBIG)?.value;
            let new = value + i32::from(operation.change);
            match operation.change {
                0 if value == 0 => continue,
                0 => result = Ok(Some((Obstacle::Zero(operation.number), operation.no_wait))),
                _ if new < 0 => result = Ok(Some((Obstacle::More(operation.number), operation.no_wait))),
                _ if new > VALUE_LIMIT => result = Err(Error::ERANGE),
                _ => {
                    changed.push((index, value));
                    self.semaphores[index].value = new;
                    continue;
                }
            }
            break;
        }
        if !matches!(result, Ok(None)) {
            for (index, value) in changed.into_iter().rev() {
                self.semaphores[index].value = value;
            }
            return result;
        }
        for operation in operations {
            self.semaphores[usize::from(operation.number)].process = user.process;
            if operation.undo
                && let Some((changes, _)) = undo.get_mut(&own)
            {
                changes[usize::from(operation.number)] -= i32::from(operation.change);
            }
        }
        self.operated = user.now;
        result
    }
}

/// Counts a caller among those that wait for a semaphore, until this is dropped.
struct Waiting<'a> {
    semaphores: &'a Semaphores,
    id: i32,
    obstacle: Option<Obstacle>,
}

impl Waiting<'_> {
    fn set(&mut self, obstacle: Option<Obstacle>) {
        if self.obstacle == obstacle {
            return;
        }
        let old = core::mem::replace(&mut self.obstacle, obstacle);
        self.semaphores.with(|sets| {
            // A set that has been removed counts no more.
            let Ok(set) = sets.get_mut(self.id) else { return };
            let mut count = |obstacle: Option<Obstacle>, by: i32| {
                let count = match obstacle {
                    Some(Obstacle::More(number)) => {
                        set.semaphores.get_mut(usize::from(number)).map(|s| &mut s.waits_for_more)
                    }
                    Some(Obstacle::Zero(number)) => {
                        set.semaphores.get_mut(usize::from(number)).map(|s| &mut s.waits_for_zero)
                    }
                    None => None,
                };
                if let Some(count) = count {
                    *count = count.saturating_add_signed(by);
                }
            };
            count(old, -1);
            count(obstacle, 1);
        });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.set(None);
    }
}
