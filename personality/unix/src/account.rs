//! Limits on what the system keeps on behalf of each user, so that one user's programs cannot use
//! up what the system has.
//!
//! An [`Account`] belongs to a real user id. An object that is kept for longer than a call holds a
//! [`Charge`] against the account, which exists as long as one of its charges does, even if the
//! user has no process. The limits are the same for all users ([`Settings`]), except for
//! descriptors in flight, which a limit of the process restricts.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Kinds of objects whose number is limited for each user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Pages of memory that the contents of pipes may fill.
    PipePages,
    /// Descriptors in messages that have not been received.
    DescriptorsInFlight,
    /// Files whose readiness is watched for longer than one call.
    PolledFiles,
    /// Queues of changes of files.
    ChangeQueues,
    /// Files whose changes such a queue reports.
    ObservedFiles,
    /// Bytes of the server's own memory, estimated: open files, contents of pipes and sockets,
    /// files of tmpfs, regions of memory, record locks, queued changes of files.
    ServerMemory,
    /// Bytes that the message queues of the user may hold (RLIMIT_MSGQUEUE).
    MessageQueues,
}

const KINDS: usize = 7;

/// A limit that the superuser can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The largest capacity of a pipe that needs no privilege, in bytes (pipe-max-size).
    PipeSize,
    /// The number of pages of pipes above which a user's new pipes get two pages; 0 for no limit
    /// (pipe-user-pages-soft).
    PipePagesSoft,
    /// The number of pages of pipes that a user may have; 0 for no limit (pipe-user-pages-hard).
    PipePagesHard,
    /// The limit on [`Kept::PolledFiles`] of a user.
    PolledFiles,
    /// How many unread changes of files one queue may hold.
    QueuedChanges,
    /// The limit on [`Kept::ChangeQueues`] of a user.
    ChangeQueues,
    /// The limit on [`Kept::ObservedFiles`] of a user.
    ObservedFiles,
    /// Whether only certain files may be given other names (protected_hardlinks): 1 or 0.
    ProtectedHardLinks,
    /// Whether only certain links are followed in sticky directories (protected_symlinks): 1 or 0.
    ProtectedSymbolicLinks,
    /// How many message queues there may be (queues_max).
    MessageQueues,
    /// The most messages of a queue that needs no privilege (msg_max).
    QueueLength,
    /// The most messages of a queue whose maker asks for no number (msg_default).
    QueueLengthDefault,
    /// The most bytes of a message of a queue that needs no privilege (msgsize_max).
    QueueMessageSize,
    /// The most bytes of a message of a queue whose maker asks for no number (msgsize_default).
    QueueMessageSizeDefault,
}

const SETTINGS: usize = 14;

/// Bytes that are charged for an open file, together with the object that it refers to.
pub const FILE_BYTES: u64 = 1024;
/// Bytes that are charged for a polled file, and for an observed one.
const POLLED_FILE_BYTES: u64 = 512;
const OBSERVED_FILE_BYTES: u64 = 256;
/// The memory for all polled files of a user, and that for all observed ones, may be up to 1/16 of
/// the server's memory.
const WATCHES_PART: u64 = 16;
/// A user has little of the server's memory if it has at most 1/64 of what a user may have.
const LITTLE_PART: u64 = 64;
/// The least and the greatest default for the number of files that a user may observe.
const OBSERVED_FILES: core::ops::RangeInclusive<u64> = 8192..=1_048_576;

/// How much a system can have.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// How many threads there can be.
    pub threads: usize,
    /// Bytes of the memory that the server itself can have.
    pub server_memory: u64,
}

impl Setting {
    /// The value that the setting gets if the superuser writes `value`; `None` if that is not
    /// possible.
    pub fn accept(self, value: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        match self {
            Setting::PipeSize if value > 1 << 31 => None,
            Setting::PipeSize => Some(value.max(PAGE).next_power_of_two()),
            Setting::PipePagesSoft | Setting::PipePagesHard => Some(value),
            Setting::PolledFiles => (value <= i64::MAX as u64).then_some(value),
            Setting::ProtectedHardLinks | Setting::ProtectedSymbolicLinks => (value <= 1).then_some(value),
            Setting::QueueLength | Setting::QueueLengthDefault => {
                (1..=crate::message_queue::LENGTH_MAXIMUM).contains(&value).then_some(value)
            }
            Setting::QueueMessageSize | Setting::QueueMessageSizeDefault => {
                (128..=crate::message_queue::SIZE_MAXIMUM).contains(&value).then_some(value)
            }
            _ => (value <= i32::MAX as u64).then_some(value),
        }
    }
}

/// The values of the limits, which all accounts share.
#[derive(Debug)]
pub struct Settings {
    values: [AtomicU64; SETTINGS],
    server_memory: u64,
}

impl Settings {
    /// The default settings of a system whose server can have `server_memory` bytes of memory. A
    /// user may have half of it.
    pub fn new(server_memory: u64) -> Arc<Settings> {
        let watches = server_memory / WATCHES_PART;
        let observed = (watches / OBSERVED_FILE_BYTES).clamp(*OBSERVED_FILES.start(), *OBSERVED_FILES.end());
        let polled = watches / POLLED_FILE_BYTES;
        let values = [1 << 20, 16384, 0, polled, 16384, 128, observed, 1, 1, 256, 10, 10, 8192, 8192];
        Arc::new(Settings { values: values.map(AtomicU64::new), server_memory: server_memory / 2 })
    }

    /// Whether a setting that is 1 or 0 is 1.
    pub fn is_on(&self, setting: Setting) -> bool {
        self.get(setting) != 0
    }

    // Relaxed ordering, here and below: each setting is a number by itself and orders nothing else.

    /// The value of a system-wide limit that all accounts share.
    pub fn get(&self, setting: Setting) -> u64 {
        self.values[setting as usize].load(Ordering::Relaxed)
    }

    /// Changes a setting. Objects that users have already are kept.
    pub fn set(&self, setting: Setting, value: u64) {
        self.values[setting as usize].store(value, Ordering::Relaxed);
    }
}

/// The account of a user: how much is charged to it.
#[derive(Debug)]
pub struct Account {
    user: u32,
    settings: Arc<Settings>,
    amounts: [AtomicU64; KINDS],
}

impl Account {
    /// Makes the account of a user to which nothing is charged yet. A user must not have two
    /// accounts.
    pub fn new(user: u32, settings: Arc<Settings>) -> Arc<Account> {
        Arc::new(Account { user, settings, amounts: Default::default() })
    }

    /// The id of the user.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The limits that apply to the account.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// How many objects of this kind are charged to the user.
    pub fn amount(&self, kept: Kept) -> u64 {
        self.amounts[kept as usize].load(Ordering::Relaxed)
    }

    /// Whether nothing is charged to the account, nor can be.
    pub(crate) fn is_closed(self: &Arc<Account>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// Charges `amount` more, if `allows` accepts the sum; otherwise `None`.
    pub fn charge(
        self: &Arc<Account>,
        kept: Kept,
        amount: u64,
        allows: impl Fn(u64) -> bool,
    ) -> Option<Charge> {
        let is_charged = self.add(kept, amount, allows);
        is_charged.then(|| Charge { account: self.clone(), kept, amount })
    }

    /// Charges `bytes` more of the server's memory; `None` if the sum would be more than a user may
    /// have. The superuser has no limit.
    pub fn charge_memory(self: &Arc<Account>, bytes: u64) -> Option<Charge> {
        self.charge(Kept::ServerMemory, bytes, |sum| self.allows_memory(sum))
    }

    fn allows_memory(&self, sum: u64) -> bool {
        self.user == 0 || sum <= self.settings.server_memory
    }

    /// Whether the user has so little of the server's memory that its programs still get more when
    /// memory is short.
    pub fn has_little(&self) -> bool {
        self.amount(Kept::ServerMemory) <= self.settings.server_memory / LITTLE_PART
    }

    /// Whether `bytes` more of the server's memory could be charged now.
    pub(crate) fn has_memory(&self, bytes: u64) -> bool {
        self.allows_memory(self.amount(Kept::ServerMemory).saturating_add(bytes))
    }

    fn add(&self, kept: Kept, amount: u64, allows: impl Fn(u64) -> bool) -> bool {
        let more = |now: u64| now.checked_add(amount).filter(|sum| allows(*sum));
        self.amounts[kept as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// An amount that is charged to an account until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    kept: Kept,
    amount: u64,
}

impl Charge {
    /// The amount of the charge.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// The account of the user to which this charge was made.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Changes the amount. Returns false and changes nothing if the new amount is more and `allows`
    /// does not accept what the account would have then.
    pub fn change(&mut self, amount: u64, allows: impl Fn(u64) -> bool) -> bool {
        let changed = match amount.checked_sub(self.amount) {
            Some(more) => self.account.add(self.kept, more, allows),
            None => {
                self.account.amounts[self.kept as usize].fetch_sub(self.amount - amount, Ordering::Relaxed);
                true
            }
        };
        if changed {
            self.amount = amount;
        }
        changed
    }

    /// Changes a charge for the server's memory, as [`Charge::change`] does with the user's limit.
    pub fn change_memory(&mut self, bytes: u64) -> bool {
        let account = self.account.clone();
        self.change(bytes, |sum| account.allows_memory(sum))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.amounts[self.kept as usize].fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_counts_until_it_is_dropped() {
        let account = Account::new(1000, Settings::new(1 << 20));
        let allows = |sum| sum <= 10;
        let mut first = account.charge(Kept::PolledFiles, 6, allows).unwrap();
        assert!(account.charge(Kept::PolledFiles, 5, allows).is_none());
        let second = account.charge(Kept::PolledFiles, 4, allows).unwrap();
        assert_eq!((account.amount(Kept::PolledFiles), account.amount(Kept::PipePages)), (10, 0));
        assert!(!first.change(7, allows), "one more than there may be");
        assert!(first.change(2, |_| false), "less is always allowed");
        drop(second);
        assert_eq!((first.amount(), account.amount(Kept::PolledFiles)), (2, 2));
        assert!(account.charge(Kept::PolledFiles, u64::MAX, |_| true).is_none(), "no sum overflows");
        drop(first);
        assert_eq!(account.amount(Kept::PolledFiles), 0);
        assert!(account.is_closed());
    }

    #[test]
    fn a_user_may_have_half_of_the_servers_memory_and_the_superuser_all() {
        let settings = Settings::new(1 << 20);
        let user = Account::new(1000, settings.clone());
        let mut half = user.charge_memory(1 << 19).unwrap();
        assert!(!user.has_little());
        assert!(user.charge_memory(1).is_none() && !half.change_memory((1 << 19) + 1));
        assert!(Account::new(1001, settings.clone()).charge_memory(1 << 19).is_some());
        assert!(Account::new(0, settings).charge_memory(1 << 20).is_some());
    }
}
