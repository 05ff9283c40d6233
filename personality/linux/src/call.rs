//! One system call: its arguments, how it ends, and its access to the program's memory.

use crate::decoded::{Answer, Left};
use crate::kept::Kept;
use crate::layout;
use crate::linux::Linux;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::sync::atomic::Ordering;
use core::time::Duration;
use mach::Machine;
use mach::machine::ThreadState;
use unix::account::Account;
use unix::memory::UserRanges;
use unix::namespace::{IdKind, UserNamespace};
use unix::process::{ExitStatus, Pid, Table};
use unix::signal::{RestartKind, Signal, SignalInformation};
use unix::socket::PeerCredentials;
use unix::sync::poll_once;
use unix::thread::{Shortage, System, Task, Thread};
use unix::vfs::{At, Metadata, PATH_MAXIMUM};
use unix::{Error, Privilege, Result, UserBuffer};

/// How a call ended. The type is small, since every call returns one; large parts are boxed.
pub enum Outcome {
    /// The call returns with this value in RAX.
    Return(u64),
    /// A signal interrupted the call; the signal decides whether the call is restarted.
    Interrupted(RestartKind),
    /// The call returns with all registers replaced.
    Registers(Box<ThreadState>),
    /// The call returns with the registers that it has given the thread (rt_sigreturn).
    Restored,
    /// The process has a new program, which starts with these registers, on the only thread of the
    /// process.
    Executed(Box<ThreadState>),
    /// The thread has to exit. If the process has to, that has begun already.
    Exit(ExitStatus),
}

/// Why a call did not return a value.
pub(crate) enum Stop {
    Error(Error),
    Outcome(Outcome),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// The result of the function that implements a call.
pub(crate) type Done = Result<u64, Stop>;

/// The number of calls that are tried without a look at the server's memory, where that was far
/// from short.
const UNWATCHED_CALLS: u32 = 8;

/// A system call that is being served.
pub(crate) struct Call<'a, M: Machine> {
    pub(crate) linux: &'a Linux<M>,
    pub(crate) thread: &'a Arc<Thread<M>>,
    pub(crate) arguments: [u64; 6],
    /// The state that is kept for the thread, with what an earlier attempt to do the call has left.
    pub(crate) kept: &'a Kept<M>,
}

impl<M: Machine> Call<'_, M> {
    /// Whether the server's memory is so short that calls of this program that need memory are
    /// refused.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.is_refused(self.system().host().shortage())
    }

    /// The same for a call that is tried. Where memory was far from short it is not looked at for
    /// some calls, because that takes as many instructions as a short call.
    #[inline(always)]
    pub(crate) fn is_now_short_of_memory(&self) -> bool {
        let unwatched = &self.linux.unwatched_calls;
        // Relaxed, and not atomic as a whole: the number of calls need not be exact.
        match unwatched.load(Ordering::Relaxed) {
            0 => self.look_at_memory(),
            left => {
                unwatched.store(left - 1, Ordering::Relaxed);
                false
            }
        }
    }

    #[inline(never)]
    fn look_at_memory(&self) -> bool {
        let shortage = self.system().host().shortage();
        if shortage == Shortage::Far {
            self.linux.unwatched_calls.store(UNWATCHED_CALLS, Ordering::Relaxed);
        }
        self.is_refused(shortage)
    }

    fn is_refused(&self, shortage: Shortage) -> bool {
        match shortage {
            Shortage::Far | Shortage::None => false,
            // Programs of users that have much of the server's memory are refused first.
            Shortage::Low => !self.has(Privilege::Administrator) && !self.account().has_little(),
            Shortage::Critical => true,
        }
    }

    /// Whether the caller has `privilege`.
    pub(crate) fn has(&self, privilege: Privilege) -> bool {
        self.thread.credentials().has(privilege)
    }

    /// The namespace of users in which the caller is.
    pub(crate) fn users(&self) -> UserNamespace {
        self.thread.credentials().namespace.clone()
    }

    /// The number that an id of a thread, process, group or session has for the caller; 0 if it has
    /// none.
    pub(crate) fn number(&self, id: Pid) -> u32 {
        if self.thread.sees_ids() {
            return id.number();
        }
        self.table(|table| table.number_for(self.tid(), id))
    }

    /// The same for a number that a file has of an id.
    pub(crate) fn number_of(&self, id: u32) -> u32 {
        Pid::new(id).map_or(0, |id| self.number(id))
    }

    /// The id to which the caller refers by a number. `ESRCH` if there is none, also for a number
    /// that is not positive.
    pub(crate) fn id(&self, number: i32) -> Result<Pid> {
        let number = u32::try_from(number).map_err(|_| Error::ESRCH)?;
        if self.thread.sees_ids() {
            return Pid::new(number).ok_or(Error::ESRCH);
        }
        self.table(|table| {
            let namespace = table.pid_namespace(self.pid());
            table.id_in(&namespace, number).ok_or(Error::ESRCH)
        })
    }

    /// The user of the system to which the caller refers by a number. `EINVAL` if its namespace has
    /// none.
    pub(crate) fn user(&self, number: u32) -> Result<u32> {
        self.users().id(IdKind::User, number).ok_or(Error::EINVAL)
    }

    /// The group of the system to which the caller refers by a number. `EINVAL` if its namespace
    /// has none.
    pub(crate) fn group(&self, number: u32) -> Result<u32> {
        self.users().id(IdKind::Group, number).ok_or(Error::EINVAL)
    }

    /// Metadata with the owner and the group that the caller sees.
    pub(crate) fn shown(&self, metadata: Metadata) -> Metadata {
        let users = self.users();
        let (user, group) = (users.shown_user(metadata.user), users.shown_group(metadata.group));
        Metadata { user, group, ..metadata }
    }

    /// Credentials of the sender of a message as the caller sees them.
    pub(crate) fn shown_peer(&self, peer: PeerCredentials) -> PeerCredentials {
        let users = self.users();
        let (user, group) = (users.shown_user(peer.user), users.shown_group(peer.group));
        PeerCredentials { process: self.number_of(peer.process), user, group }
    }

    /// The argument `index` as a 64-bit word.
    pub(crate) fn arg(&self, index: usize) -> u64 {
        self.arguments[index]
    }

    /// The argument `index` as an int.
    pub(crate) fn int(&self, index: usize) -> i32 {
        self.arguments[index] as i32
    }

    /// The argument `index` as an unsigned int.
    pub(crate) fn uint(&self, index: usize) -> u32 {
        self.arguments[index] as u32
    }

    /// The thread's registers.
    pub(crate) fn registers(&self) -> Result<ThreadState> {
        self.thread.registers()
    }

    pub(crate) fn system(&self) -> &Arc<System<M>> {
        self.thread.system()
    }

    pub(crate) fn memory(&self) -> Arc<Task<M>> {
        self.thread.memory().clone()
    }

    pub(crate) fn tid(&self) -> Pid {
        self.thread.tid()
    }

    pub(crate) fn pid(&self) -> Pid {
        self.thread.pid()
    }

    /// The account of the caller's user.
    pub(crate) fn account(&self) -> Arc<Account> {
        self.table(|table| table.user_account(self.tid()))
    }

    /// Calls `work` with the process table, which is locked meanwhile.
    pub(crate) fn table<R>(&self, work: impl FnOnce(&mut Table) -> R) -> R {
        self.system().processes().with(work)
    }

    /// Waits for `future` unless a signal comes first; the call then ends as `restart` says.
    pub(crate) async fn wait<T>(
        &self,
        restart: RestartKind,
        future: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        // The future is pinned here, so that futures that wait for it contain a pointer and no
        // second copy.
        let future = core::pin::pin!(future);
        let done = self.system().processes().interruptible(self.tid(), future).await;
        done.ok_or(Stop::Outcome(Outcome::Interrupted(restart)))
    }

    /// Waits for a transfer through `buffer`. If a signal comes first, the call returns the count
    /// of bytes that were moved, or is interrupted if there are none.
    pub(crate) async fn transfer<B: UserBuffer>(
        &self,
        buffer: &mut B,
        transfer: impl AsyncFnOnce(&mut B) -> Result<usize>,
    ) -> Done {
        // What an attempt without the thread's task has moved.
        let before = buffer.transferred();
        let done = {
            let moving = core::pin::pin!(transfer(buffer));
            self.system().processes().interruptible(self.tid(), moving).await
        };
        match done {
            Some(Ok(count)) => Ok((before + count) as u64),
            Some(Err(_)) if before > 0 => Ok(before as u64),
            Some(Err(error)) => {
                self.signal_for(error);
                Err(error.into())
            }
            None if buffer.transferred() > 0 => Ok(buffer.transferred() as u64),
            None => Err(Stop::Outcome(Outcome::Interrupted(RestartKind::RestartSys))),
        }
    }

    /// Sends the signal that an error of a write causes (SIGPIPE, SIGXFSZ), if there is one.
    pub(crate) fn signal_for(&self, error: Error) {
        let Some(signal) = Self::signal_of(error) else { return };
        let tid = self.tid();
        self.table(|table| table.generate_for_thread(tid, SignalInformation::system(signal)));
    }

    /// The signal that an error of a write causes.
    pub(crate) fn signal_of(error: Error) -> Option<Signal> {
        match error {
            Error::EPIPE => Some(Signal::PIPE),
            Error::EFBIG => Some(Signal::XFSZ),
            _ => None,
        }
    }

    /// Ends an attempt whose call is done with `value`, once these bytes are in the program's
    /// memory; a part with the address 0 is left out. If something has to be waited for (`None`),
    /// the thread's task copies them.
    pub(crate) fn answer(&self, parts: &[(u64, &[u8])], value: u64) -> Option<Done> {
        for (index, (address, bytes)) in parts.iter().enumerate() {
            match poll_once(self.write_optional(*address, bytes)) {
                Some(Ok(())) => {}
                Some(Err(error)) => return Some(Err(error.into())),
                None => {
                    let parts = parts[index..].iter().map(|(address, bytes)| (*address, bytes.to_vec()));
                    let answer = Answer { parts: parts.collect(), value };
                    self.kept.decoded.leave(Some(Left::Answer(answer)));
                    return None;
                }
            }
        }
        Some(Ok(value))
    }

    /// Copies the results of a call that an attempt has done.
    pub(crate) async fn finish(&self, answer: Answer) -> Done {
        for (address, bytes) in &answer.parts {
            self.write_optional(*address, bytes).await?;
        }
        Ok(answer.value)
    }

    /// A buffer that is one range of the program's memory. `EFAULT` if the range leaves the address
    /// space.
    pub(crate) fn buffer(&self, address: u64, length: u64) -> Result<UserRanges<M>> {
        let length = length.min(0x7fff_f000);
        address.checked_add(length).filter(|end| *end <= 1 << 47).ok_or(Error::EFAULT)?;
        Ok(UserRanges::one(&self.memory(), address, length as usize))
    }

    /// A buffer that consists of the ranges of an array of iovec.
    pub(crate) async fn buffers(&self, array: u64, count: u64) -> Result<UserRanges<M>> {
        if count > 1024 {
            return Err(Error::EINVAL);
        }
        let bytes = self.memory().read_bytes(array, count as usize * 16).await?;
        Ok(UserRanges::many(&self.memory(), layout::file::ranges(&bytes)?))
    }

    /// Reads a structure, if nothing has to be waited for.
    pub(crate) fn try_read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.thread.memory().try_read(address)
    }

    /// Writes a structure unless the address is 0, if nothing has to be waited for.
    pub(crate) fn try_write_optional<const N: usize>(&self, address: u64, bytes: &[u8; N]) -> Option<()> {
        if address == 0 { Some(()) } else { self.thread.memory().try_write(address, bytes) }
    }

    /// Reads `N` bytes at `address` in the program's memory. `EFAULT`.
    pub(crate) async fn read<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        self.thread.memory().read(address).await
    }

    /// Writes `bytes` to `address` in the program's memory. `EFAULT`.
    pub(crate) async fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.thread.memory().copy_out(address, bytes).await
    }

    /// Writes `bytes` to `address` in the program's memory, unless the address is 0. `EFAULT`.
    pub(crate) async fn write_optional(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if address == 0 { Ok(()) } else { self.write(address, bytes).await }
    }

    /// Reads the path to which argument `index` points.
    pub(crate) async fn path(&self, index: usize) -> Result<Vec<u8>> {
        self.memory().read_string(self.arg(index), PATH_MAXIMUM + 1, Error::ENAMETOOLONG).await
    }

    /// The directory that argument `index` of an `*at` call names.
    pub(crate) fn at(&self, index: usize) -> Result<At> {
        const CURRENT: i32 = -100;
        match self.int(index) {
            CURRENT => Ok(At::Current),
            descriptor => Ok(At::File(self.thread.descriptors().get(descriptor)?)),
        }
    }

    /// The directory that argument `index` names for `path`. If the path is absolute, the argument
    /// is ignored.
    pub(crate) fn at_for(&self, index: usize, path: &[u8]) -> Result<At> {
        if path.first() == Some(&b'/') { Ok(At::Current) } else { self.at(index) }
    }

    /// Reads the timespec to which argument `index` points; `None` for a null pointer.
    pub(crate) async fn time(&self, index: usize) -> Result<Option<Duration>> {
        match self.arg(index) {
            0 => Ok(None),
            address => layout::time::timespec(&self.read::<16>(address).await?).map(Some),
        }
    }

    /// When a wait ends that has this deadline: later by the thread's timer slack, unless the
    /// deadline has passed or the thread has real time.
    pub(crate) fn with_slack(&self, deadline: Duration) -> Duration {
        if deadline <= self.system().environment().monotonic() {
            return deadline;
        }
        let slack = self.table(|table| match table.thread(self.tid()) {
            Ok(thread) if !thread.schedule.is_real_time() => thread.timer_slack.now,
            _ => 0,
        });
        deadline.saturating_add(Duration::from_nanos(slack))
    }

    /// The caller's limit on descriptors (RLIMIT_NOFILE).
    pub(crate) fn descriptor_limit(&self) -> usize {
        let limit = self.thread.soft_limit(unix::process::Resource::Files);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}
