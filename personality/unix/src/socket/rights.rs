//! Descriptors in flight: open files that messages hold until they are received.
//!
//! A socket can be in flight in a message that only it (or another such socket) could receive; it
//! is then never received again. [`collect`] finds such cycles and discards their messages. Files
//! that messages held are dropped in a loop ([`REAPER`]), not recursively: a chain of sockets in
//! each other's messages may be longer than any stack.

use crate::account::{Charge, Kept};
use crate::file::OpenFile;
use crate::sync::SpinLock;
use crate::vfs::Caller;
use crate::{Error, Privilege, Result};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

/// The most descriptors that one message may carry.
pub(super) const RIGHTS_MAXIMUM: usize = 253;

/// The open files that one message carries, charged to the user that sent it.
#[derive(Default)]
pub struct Rights {
    files: Vec<Arc<OpenFile>>,
    charge: Option<Charge>,
}

/// How many messages hold each socket, by the id of its open file description.
struct InFlight {
    sockets: BTreeMap<u64, (Weak<OpenFile>, usize)>,
    /// How many sockets have been closed since the last search for cycles.
    closed: usize,
}

static IN_FLIGHT: SpinLock<InFlight> = SpinLock::new(InFlight { sockets: BTreeMap::new(), closed: 0 });

/// Files to drop, and whether a thread is dropping them now.
static REAPER: SpinLock<(Vec<Arc<OpenFile>>, bool)> = SpinLock::new((Vec::new(), false));

fn is_socket(file: &OpenFile) -> bool {
    file.socket().is_some()
}

impl Rights {
    /// Takes files into a message of a caller with this limit of descriptors. `EINVAL` for too many
    /// files, `ETOOMANYREFS` if more than the limit are in flight already for the user.
    pub fn new(files: Vec<Arc<OpenFile>>, caller: &Caller<'_>, limit: u64) -> Result<Rights> {
        if files.len() > RIGHTS_MAXIMUM {
            return Err(Error::EINVAL);
        }
        if files.is_empty() {
            return Ok(Rights::default());
        }
        let sockets: Vec<_> = files.iter().filter(|file| is_socket(file)).collect();
        let is_free = [Privilege::Resource, Privilege::Administrator];
        let is_free = is_free.into_iter().any(|privilege| caller.identity.has(privilege));
        let count = files.len() as u64;
        // Only the descriptors in flight before this message count against the limit.
        let allows = |sum: u64| is_free || sum - count <= limit;
        let charge = caller.process.account().charge(Kept::DescriptorsInFlight, count, allows);
        let charge = Some(charge.ok_or(Error::ETOOMANYREFS)?);
        let mut flight = IN_FLIGHT.lock();
        for file in sockets {
            flight.sockets.entry(file.id()).or_insert((Arc::downgrade(file), 0)).1 += 1;
        }
        drop(flight);
        Ok(Rights { files, charge })
    }

    /// Whether the message carries no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn land(&mut self) -> Vec<Arc<OpenFile>> {
        let files = core::mem::take(&mut self.files);
        self.charge = None;
        if files.is_empty() {
            return files;
        }
        let sockets: Vec<_> = files.iter().filter(|file| is_socket(file)).map(|file| file.id()).collect();
        let mut flight = IN_FLIGHT.lock();
        for id in sockets {
            if let Some((_, count)) = flight.sockets.get_mut(&id) {
                *count -= 1;
                if *count == 0 {
                    flight.sockets.remove(&id);
                }
            }
        }
        drop(flight);
        files
    }

    /// Takes the files out of the message, because it was received.
    pub fn take(mut self) -> Vec<Arc<OpenFile>> {
        self.land()
    }

    /// The ids of the open file descriptions in the message.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.iter().map(|file| file.id())
    }

    /// Clones the references to the files (MSG_PEEK).
    pub(super) fn copy(&self) -> Vec<Arc<OpenFile>> {
        self.files.clone()
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let files = self.land();
        if !files.is_empty() {
            reap(files);
        }
    }
}

/// Drops files without recursion: a call from within a drop only adds its files to the list.
fn reap(files: Vec<Arc<OpenFile>>) {
    let mut reaper = REAPER.lock();
    reaper.0.extend(files);
    if core::mem::replace(&mut reaper.1, true) {
        return;
    }
    loop {
        match reaper.0.pop() {
            Some(file) => {
                drop(reaper);
                drop(file);
                reaper = REAPER.lock();
            }
            None => {
                reaper.1 = false;
                return;
            }
        }
    }
}

/// How many sockets in flight a search for cycles looks at for each socket that was closed, so that
/// the cost of closing is bounded.
const LOOKS_FOR_A_CLOSE: usize = 16;

/// Discards the messages of sockets that can never be received. To be called after a socket was
/// closed.
pub(super) fn collect() {
    // The sockets that only messages refer to.
    let flight: Vec<(Arc<OpenFile>, usize)> = {
        let mut flight = IN_FLIGHT.lock();
        flight.closed += 1;
        if flight.closed * LOOKS_FOR_A_CLOSE < flight.sockets.len() {
            return;
        }
        flight.closed = 0;
        flight.sockets.values().filter_map(|(file, count)| Some((file.upgrade()?, *count))).collect()
    };
    if flight.is_empty() {
        return;
    }
    // One reference is this function's. If another thread holds one at this moment, a later search
    // finds the socket.
    let candidates: BTreeMap<u64, (&Arc<OpenFile>, usize)> = flight
        .iter()
        .filter(|(file, count)| Arc::strong_count(file) == count + 1)
        .map(|(file, count)| (file.id(), (file, *count)))
        .collect();
    let holds: BTreeMap<u64, Vec<u64>> = candidates
        .iter()
        .map(|(id, (file, _))| (*id, file.socket().map_or(Vec::new(), |s| s.held_files())))
        .collect();
    // Candidates that are also in messages of other sockets can still be received, and so can the
    // files in their own messages.
    let mut inside: BTreeMap<u64, usize> = BTreeMap::new();
    holds.values().flatten().for_each(|id| *inside.entry(*id).or_default() += 1);
    let outside = |id: &u64, count: usize| inside.get(id).copied().unwrap_or(0) < count;
    let mut pending: Vec<u64> =
        candidates.iter().filter(|(id, (_, count))| outside(id, *count)).map(|(id, _)| *id).collect();
    let mut alive: BTreeSet<u64> = BTreeSet::new();
    while let Some(id) = pending.pop() {
        if alive.insert(id) {
            let next = holds.get(&id).into_iter().flatten();
            pending.extend(next.filter(|next| candidates.contains_key(next)));
        }
    }
    for (id, (file, _)) in &candidates {
        if !alive.contains(id)
            && let Some(socket) = file.socket()
        {
            socket.discard_messages();
        }
    }
    // The references that this function holds may be the last ones by now.
    reap(flight.into_iter().map(|(file, _)| file).collect());
}

/// How many of the files are in flight (tests look for leaks of their own files).
#[cfg(test)]
pub(super) fn in_flight(ids: &[u64]) -> usize {
    let flight = IN_FLIGHT.lock();
    ids.iter().filter(|id| flight.sockets.contains_key(id)).count()
}
