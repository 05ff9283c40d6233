//! [`Notifier`]: an inotify instance, from which a program reads events.

use super::{Events, Watch};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;
use unix::account::{Account, Charge, Kept, Setting};
use unix::file::{FileObject, Io, OpenFile};
use unix::poll::{PollQueue, Readiness};
use unix::sync::SpinLock;
use unix::vfs::{DeviceNumber, Observer, OpenFlags, VnodeRef};
use unix::{AttemptError, Error, Result, UserBuffer, copy_out_all};

/// Bytes that are charged for an unread event, without its name.
const EVENT_BYTES: u64 = 128;

/// An event that an inotify instance reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The number of the watch; -1 if events were lost.
    pub(crate) watch: i32,
    /// The kinds of the event.
    pub(crate) events: Events,
    /// A number that the two events of one move share; 0 for other events.
    pub(crate) cookie: u32,
    /// The name of the changed file in the watched directory; empty if the watched file itself
    /// changed.
    pub(crate) name: Vec<u8>,
}

/// What happens if the instance watches the file already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchHow {
    /// The watch reports these events instead of the former ones.
    Replace,
    /// The watch reports these events in addition to the former ones (IN_MASK_ADD).
    Add,
    /// The call fails with `EEXIST` (IN_MASK_CREATE).
    New,
}

/// An inotify instance, which collects the events of its watches (inotify_init(2)).
pub(crate) struct Notifier {
    this: Weak<Notifier>,
    state: SpinLock<State>,
    queue: PollQueue,
    /// Converts an event to the format that the program reads.
    encode: fn(&Event) -> Vec<u8>,
    /// The most events that can be unread at a time.
    most_events: usize,
    /// The charge for the instance, to the account of the user that made it.
    charge: Charge,
}

struct State {
    watches: BTreeMap<i32, Arc<Watch>>,
    events: VecDeque<(Event, Charge)>,
    last: i32,
}

impl Notifier {
    /// Makes an inotify instance for this user; the only flag that is used is
    /// [`OpenFlags::NONBLOCK`]. `EMFILE` if the user has too many.
    pub(crate) fn create(
        account: &Arc<Account>,
        encode: fn(&Event) -> Vec<u8>,
        flags: OpenFlags,
    ) -> Result<Arc<OpenFile>> {
        let settings = account.settings();
        let most = settings.get(Setting::ChangeQueues);
        let charge = account.charge(Kept::ChangeQueues, 1, |sum| sum <= most).ok_or(Error::EMFILE)?;
        let most_events = usize::try_from(settings.get(Setting::QueuedChanges)).unwrap_or(usize::MAX);
        let state = State { watches: BTreeMap::new(), events: VecDeque::new(), last: 0 };
        let notifier = Arc::new_cyclic(|this| Notifier {
            this: this.clone(),
            state: SpinLock::new(state),
            queue: PollQueue::new(),
            encode,
            most_events,
            charge,
        });
        Ok(OpenFile::of_object(notifier, flags.intersection(OpenFlags::NONBLOCK) | OpenFlags::READ))
    }

    /// Watches a file; returns the number of the watch. `EINVAL` for a file that cannot be watched,
    /// `ENOSPC` for too many watches.
    pub(crate) fn watch(&self, file: &VnodeRef, events: Events, once: bool, how: WatchHow) -> Result<i32> {
        let hooks = file.hooks().ok_or(Error::EINVAL)?;
        // The watch is searched in the file's list of observers, because the instance's list may be
        // much longer.
        let known = (file.number(), file.metadata().device);
        hooks.observers.with(|observers| self.watch_observed(observers, known, (events, once), how))
    }

    /// Watches the file `file` whose observers are `observers`.
    fn watch_observed(
        &self,
        observers: &mut Vec<Weak<dyn Observer>>,
        file: (u64, DeviceNumber),
        (events, once): (Events, bool),
        how: WatchHow,
    ) -> Result<i32> {
        let mut state = self.state.lock();
        let watch_of =
            |observer: Arc<dyn Observer>| (observer as Arc<dyn Any + Send + Sync>).downcast::<Watch>().ok();
        let is_own =
            |watch: &Arc<Watch>| watch.notifier.ptr_eq(&self.this) && state.watches.contains_key(&watch.id);
        if let Some(known) = observers.iter().filter_map(Weak::upgrade).filter_map(watch_of).find(is_own) {
            match how {
                WatchHow::New => return Err(Error::EEXIST),
                WatchHow::Add => drop(known.mask.fetch_or(events.bits(), Ordering::Relaxed)),
                WatchHow::Replace => known.mask.store(events.bits(), Ordering::Relaxed),
            }
            return Ok(known.id);
        }
        let account = self.charge.account();
        let most = account.settings().get(Setting::ObservedFiles);
        let charge = account.charge(Kept::ObservedFiles, 1, |sum| sum <= most).ok_or(Error::ENOSPC)?;
        let id = state.last.checked_add(1).ok_or(Error::ENOSPC)?;
        let watch = Watch::new(self.this.clone(), id, (events, once), file, charge);
        state.last = id;
        let observer: Weak<Watch> = Arc::downgrade(&watch);
        observers.push(observer);
        state.watches.insert(id, watch);
        Ok(id)
    }

    /// The watches: number, file with its device, and the events that are reported.
    pub(crate) fn watches(&self) -> Vec<(i32, (u64, DeviceNumber), Events)> {
        let state = self.state.lock();
        state.watches.values().map(|watch| (watch.id, watch.file, watch.mask())).collect()
    }

    /// Ends a watch, and reports that as an event. `EINVAL` if there is none with this number.
    pub(crate) fn unwatch(&self, id: i32) -> Result<()> {
        if self.forget(id) { Ok(()) } else { Err(Error::EINVAL) }
    }

    /// Ends a watch, if there is one with this number.
    pub(super) fn forget(&self, id: i32) -> bool {
        let gone = self.state.lock().watches.remove(&id);
        if gone.is_some() {
            self.add(Event { watch: id, events: Events::IGNORED, cookie: 0, name: Vec::new() });
        }
        gone.is_some()
    }

    /// Adds an event, unless it is equal to the last one. If there are too many, or the user has
    /// too much of the server's memory, one event reports that some were lost.
    pub(super) fn add(&self, event: Event) {
        {
            let mut state = self.state.lock();
            let account = self.charge.account();
            let bytes = EVENT_BYTES + event.name.len() as u64;
            let charge = account.charge_memory(bytes).filter(|_| state.events.len() < self.most_events);
            let (event, charge) = match charge {
                Some(charge) => (event, Some(charge)),
                None => {
                    let lost = Event { watch: -1, events: Events::OVERFLOW, cookie: 0, name: Vec::new() };
                    (lost, account.charge(Kept::ServerMemory, EVENT_BYTES, |_| true))
                }
            };
            if state.events.back().is_some_and(|(last, _)| *last == event) {
                return;
            }
            state.events.extend(charge.map(|charge| (event, charge)));
        }
        self.queue.wake(Readiness::READ);
    }
}

impl FileObject for Notifier {
    fn can_signal(&self) -> bool {
        true
    }

    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let mut done = 0;
        loop {
            let next = self.state.lock().events.front().map(|(event, _)| event.clone());
            let Some(event) = next else {
                return if done > 0 { Ok(done) } else { Err(AttemptError::WouldBlock) };
            };
            let bytes = (self.encode)(&event);
            let copied = match to.remaining() < bytes.len() {
                true => Err(Error::EINVAL.into()),
                false => copy_out_all(to, &bytes),
            };
            match copied {
                Ok(()) => done += bytes.len(),
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
            // If another reader was faster, this event was read twice; it is never lost.
            let mut state = self.state.lock();
            if state.events.front().is_some_and(|(first, _)| *first == event) {
                state.events.pop_front();
            }
        }
    }

    fn readiness(&self) -> Readiness {
        if self.state.lock().events.is_empty() { Readiness::empty() } else { Readiness::READ }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn label(&self) -> &'static str {
        "anon_inode:inotify"
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.state.lock().events.iter().map(|(event, _)| (self.encode)(event).len()).sum())
    }
}
